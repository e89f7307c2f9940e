/* `intact retry`: new attempts for what failed; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "this one only", .initial = "all that failed"},
    {.name = "from", .value = "STEP", .help = "this one and all that come after it, anew"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_retry = {
    .name = "retry",
    .summary = "try a task that stopped in error again",
    .about =
        "Tries a task that stopped in error again, in the direction in which it went: all "
        "that failed, or one step. Ask for it when what made it fail is mended. With --from, a "
        "step and all that come after it start anew: their inputs are evaluated again, and "
        "their requests get other idempotency keys (TASK/STEP~2). That is refused if one of "
        "them is at work, is in doubt, or took effect and has an undo.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact retry o-17 --reason 'the card service is back'", "all that failed"},
                 {"intact retry o-17 --step charge --reason 'limit raised'", "one step of it"},
                 {"intact retry o-17 --from charge --reason 'the amount was corrected'",
                  "as if it came to that step for the first time"},
                 {"intact retry o-17 --reason 'the card service is back' --wait 30s",
                  "wait for its end, and say by the exit status whether it is a good one"},
                 {"intact retry --all --state error --error declined --reason 'the bank is back'",
                  "all that stopped with that error, see intact operation start --help"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
