/* `intact resume`: ends a pause (pause.c). This is only the verb's description: operate.c sends
 * it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_resume = {
    .name = "resume",
    .summary = "resume a paused task",
    .about = "Resumes a paused task. Its complete-by is later by the duration of the pause.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact resume o-17 --reason 'the stock is counted'", "continue the task"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
