/* `intact pause`: nothing of a task starts; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_pause = {
    .name = "pause",
    .summary = "let nothing more of a task start",
    .about = "Lets nothing more of a task start until it is resumed. Its clocks stand still: its "
             "complete-by, its beginning, the waits before further tries. What its agents are at "
             "work on may end.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact pause o-17 --reason 'the warehouse counts its stock'",
                  "until it is resumed"}},
    .run = operate,
};
