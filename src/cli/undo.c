/* `intact undo`: an operator's undo; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_undo = {
    .name = "undo",
    .summary = "turn a task back",
    .about = "Turns a task back, whether it is on its way, stopped in error, or processed: every "
             "effect, certain or in doubt, is compensated, then what its workflow has under "
             "on_undo is run. Not possible once its pivot has completed, nor of a processed task "
             "whose undo_until has passed. With --all, processed tasks are undone only if "
             "--state names them.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact undo o-17 --reason 'the customer withdrew'", "all it did is undone"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
