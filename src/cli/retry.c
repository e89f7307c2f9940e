#include "cli/operate.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "this one only", .initial = "all that failed"},
    REASON_FLAG,
    {0},
};

const struct verb verb_retry = {
    .name = "retry",
    .summary = "try a task that stopped in error again",
    .about = "Tries a task that stopped in error again, in the direction in which it went: all "
             "that failed, or one step. Ask for it when what made it fail is mended.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}},
    .flags = flags,
    .examples = {{"intact retry o-17 --reason 'the card service is back'", "all that failed"},
                 {"intact retry o-17 --step charge --reason 'limit raised'", "one step of it"}},
    .run = operate,
};
