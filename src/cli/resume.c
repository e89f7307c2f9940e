/* `intact resume`: ends a pause; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, WAIT_FLAG, MANY_FLAGS, {0}};

const struct verb verb_resume = {
    .name = "resume",
    .summary = "let a paused task go on",
    .about = "Lets a paused task go on. It has the time that it had: its complete-by has moved by "
             "as long as it was paused.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact resume o-17 --reason 'the stock is counted'", "where it stands"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
