/* `intact skip`: goes on without a step; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "which one; required"},
    {.name = "output", .value = "JSON", .help = "what it would have answered", .initial = "null"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_skip = {
    .name = "skip",
    .summary = "take a step for done",
    .about = "Takes a step for done that was done by other means, or need not be done. What is in "
             "doubt stays in doubt for a later undo. On the way back it takes the step for undone.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact skip o-17 --step charge --output '{\"receipt\": 5}' --reason 'paid in "
                  "cash'",
                  "done by hand, with what came out of it"},
                 {"intact skip o-17 --step notify --reason 'told by telephone'",
                  "not needed any more"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
