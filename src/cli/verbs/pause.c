/* `intact pause`: nothing of a task starts until resume.c. This is only the verb's description:
 * operate.c sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_pause = {
    .name = "pause",
    .summary = "pause a task",
    .about = "Pauses a task: no step starts until it is resumed, and its clocks "
             "stop. Running attempts may end.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact pause o-17 --reason 'the warehouse counts its stock'", "pause it"}},
    .run = operate,
};
