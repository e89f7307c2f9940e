/* `intact close`: a task in error stays there; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_close = {
    .name = "close",
    .summary = "leave a task that stopped in error as it is",
    .about = "Leaves a task that stopped in error as it is: nobody has to see to it any more. It "
             "stays in error, and nothing can be done to it but to reopen it.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact close o-17 --reason 'settled with the customer by telephone'",
                  "no alert of it any more"},
                 {"intact list --state error --closed false",
                  "those that somebody has to see to yet"}},
    .run = operate,
};
