#ifndef CLI_VERBS_EVAL_CONTEXT_H
#define CLI_VERBS_EVAL_CONTEXT_H

/* What expressions see in `intact eval`: the value of `.`, from files, the command line and a task
 * of a server. */

#include "base/arena.h"
#include "cli/verb.h"
#include "json/json.h"

/* A member of the context. */
struct eval_member {
    struct slice name, json;
};

/* Reads --context, --task, --input and --set; a later one of these replaces members of an earlier
 * one. Returns the exit status; anything but CLI_OK was reported. *ret is in `a`. */
int eval_context_read(const struct invocation *in, struct arena *a, const struct json **ret);

/* eval_task.c: the members that expressions of a task see, from its record on a server: input,
 * steps, task, and what --step adds. */
enum { EVAL_TASK_MEMBERS = 6 };
int eval_task_read(const struct invocation *in, struct arena *a,
                   struct eval_member ret[EVAL_TASK_MEMBERS], size_t *ret_count);

#endif
