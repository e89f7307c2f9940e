/* `intact undo`: an operator's undo; cancel.c is the submitter's. This is only the verb's
 * description: operate.c sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_undo = {
    .name = "undo",
    .summary = "undo a task",
    .about = "Undoes a task that is active, stopped in error, or processed: every effect, certain "
             "or in doubt, is compensated, then the steps under on_undo run. Refused after a pivot "
             "has completed, and for a processed task after its undo_until. With --all, processed "
             "tasks are undone only if --state names them.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact undo o-17 --reason 'the customer withdrew'", "undo its effects"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
