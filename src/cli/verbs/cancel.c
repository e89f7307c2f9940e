/* `intact cancel`: the undo that the submitter of a task may request; undo.c is the operator's.
 * This is only the verb's description: operate.c sends it for one task, operation_start.c for
 * many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_cancel = {
    .name = "cancel",
    .summary = "cancel a task, as its submitter",
    .about =
        "Undoes a task for its submitter. A task that stopped in error is left to the operator.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact cancel o-17 --reason 'ordered twice'", "undo its effects"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
