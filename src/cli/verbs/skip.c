/* `intact skip`: a task continues without a step. This is only the verb's description: operate.c
 * sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "the step, or an item of it (pack.3); required"},
    {.name = "output", .value = "JSON", .help = "output of the step", .initial = "null"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_skip = {
    .name = "skip",
    .summary = "skip a step",
    .about = "Treats a step as completed (in an undo: as undone) that was done by "
             "other means or is not needed. A step in doubt stays in doubt for a "
             "later undo.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact skip o-17 --step charge --output '{\"receipt\": 5}' --reason 'paid in "
                  "cash'",
                  "done by hand, with its output"},
                 {"intact skip o-17 --step notify --reason 'told by telephone'",
                  "no longer needed"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
