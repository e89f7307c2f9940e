/* `intact reopen`: reverses close.c, so that a task in error needs an operator again. This is
 * only the verb's description: operate.c sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_reopen = {
    .name = "reopen",
    .summary = "reopen a closed task",
    .about = "Reopens a closed task: it is in error, and needs an operator again.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact reopen o-17 --reason 'it was not settled after all'", "reopen it"}},
    .run = operate,
};
