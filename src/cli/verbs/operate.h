#ifndef CLI_VERBS_OPERATE_H
#define CLI_VERBS_OPERATE_H

/* Shared by retry, skip, undo, pause and others: a task, perhaps a step, and a reason. */

#include "cli/verb.h"

/* The verb's name is the last part of the path. Handles --step, --from, --input, --output and
 * --effect of verbs that have them. */
int operate(struct invocation *in);

/* Adds --input or --output as a member: JSON, or from a file (@FILE) or standard input (-). False:
 * invalid, which was reported. */
bool operate_value(const struct invocation *in, const char *flag, const char *value, struct buf *b);

/* Is --effect "none"? Otherwise reports it. */
bool operate_effect_ok(const struct invocation *in);

#define REASON_FLAG                                                                 \
    {                                                                               \
        .name = "reason", .value = "TEXT", .help = "reason for the audit; required" \
    }

/* For verbs after which the task goes on. */
#define WAIT_FLAG                                                                      \
    {                                                                                  \
        .name = "wait", .value = "TIME", .help = "wait for the end, at most this long" \
    }
#define WAIT_EXITS                                                                               \
    "1 if the server refused, or with --wait if the task did not end as processed (compensated " \
    "after an undo)"

#endif
