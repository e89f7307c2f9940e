/* `intact close`: a task in error stays there, and needs no operator any more; reopen.c reverses
 * it. This is only the verb's description: operate.c sends it for one task, operation_start.c for
 * many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {REASON_FLAG, MANY_FLAGS, {0}};

const struct verb verb_close = {
    .name = "close",
    .summary = "close a task that stopped in error",
    .about = "Closes a task that stopped in error: it needs no action any more. It stays in error, "
             "and accepts no verb but reopen.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact close o-17 --reason 'settled with the customer by telephone'",
                  "no more alerts"},
                 {"intact list --state error --closed false", "tasks that still need an operator"}},
    .run = operate,
};
