/* `intact retry`: new attempts for what failed. This is only the verb's description: operate.c
 * sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {
    {.name = "step",
     .value = "STEP",
     .help = "only this step, or item of one (pack.3)",
     .initial = "all failed steps"},
    {.name = "from", .value = "STEP", .help = "restart this step and all later ones"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_retry = {
    .name = "retry",
    .summary = "retry a task that stopped in error",
    .about = "Retries a task that stopped in error, in its direction: all failed "
             "steps, or one. With --from, a step and all later ones restart with "
             "new inputs and idempotency keys (TASK/STEP~2). That is refused if one "
             "of them is running, is in doubt, or took effect and has an undo.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact retry o-17 --reason 'the card service is back'", "all failed steps"},
                 {"intact retry o-17 --step charge --reason 'limit raised'", "one step"},
                 {"intact retry o-17 --from charge --reason 'the amount was corrected'",
                  "restart from a step"},
                 {"intact retry o-17 --reason 'the card service is back' --wait 30s",
                  "wait for the end"},
                 {"intact retry --all --state error --error declined --reason 'the bank is back'",
                  "all tasks with this error"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
