/* `intact reopen`: reverses close; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_reopen = {
    .name = "reopen",
    .summary = "take back that a task was closed",
    .about = "Takes back that a task was closed: it is in error as before, and somebody has to see "
             "to it.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact reopen o-17 --reason 'it was not settled after all'",
                  "as it was before"}},
    .run = operate,
};
