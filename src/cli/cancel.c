/* `intact cancel`: the submitter's undo; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_cancel = {
    .name = "cancel",
    .summary = "undo a task that is not wanted any more",
    .about = "Undoes a task that is not wanted any more. As undo, for whoever submitted it: a task "
             "that stopped in error is left to the operator.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact cancel o-17 --reason 'ordered twice'", "whatever it did is undone"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
