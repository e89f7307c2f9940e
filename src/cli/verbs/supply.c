/* `intact supply`: an operator gives a step's output by hand, because the step took effect or was
 * done elsewhere. This is only the verb's description: operate.c sends it for one task,
 * operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "the step, or an item of it (pack.3); required"},
    {.name = "output",
     .value = "JSON",
     .help = "output of the step; @FILE reads a file, - standard input; required"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_supply = {
    .name = "supply",
    .summary = "supply the output of a step",
    .about = "Treats a step as completed with the given output, because a person "
             "found or made its effect. If the task is undone, the step is "
             "compensated. For a step without effect, use skip.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact supply o-17 --step charge --output '{\"id\": \"ch-17\"}' --reason 'found "
                  "it at the bank'",
                  "the outcome is known"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
