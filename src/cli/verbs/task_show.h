#ifndef CLI_VERBS_TASK_SHOW_H
#define CLI_VERBS_TASK_SHOW_H

#include "cli/verb.h"
#include "json/json.h"

/* Shows a task for people, on standard output. */
void task_show(const struct invocation *in, const struct json *task);

#endif
