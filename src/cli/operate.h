#ifndef CLI_OPERATE_H
#define CLI_OPERATE_H

/* What retry, skip, undo, pause and others have in common: a task, perhaps a step, and why. */

#include "cli/verb.h"

/* The verb's name is the last part of the call's path. --step, --from, --input, --output and
 * --effect are for those that have them. */
int operate(struct invocation *in);

/* --input or --output: adds the member, JSON as it is given, or in a file (@FILE), or on standard
 * input (-). False: it has been said what is wrong. */
bool operate_value(const struct invocation *in, const char *flag, const char *value, struct buf *b);

/* --effect none, and nothing else; it has been said. */
bool operate_effect_ok(const struct invocation *in);

#define REASON_FLAG                                                                 \
    {                                                                               \
        .name = "reason", .value = "TEXT", .help = "reason for the audit; required" \
    }

/* Of a verb after which the task goes on. */
#define WAIT_FLAG                                                                      \
    {                                                                                  \
        .name = "wait", .value = "TIME", .help = "wait for the end, at most this long" \
    }
#define WAIT_EXITS                                                                               \
    "1 if the server refused, or with --wait if the task did not end as processed (compensated " \
    "after an undo)"

#endif
