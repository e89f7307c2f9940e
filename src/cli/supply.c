/* `intact supply`: a step's output by hand; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "which one; required"},
    {.name = "output",
     .value = "JSON",
     .help = "what it would have answered; @FILE reads it from a file, - from standard input; "
             "required"},
    REASON_FLAG,
    WAIT_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_supply = {
    .name = "supply",
    .summary = "say what a step would have answered",
    .about = "Takes a step for completed, with the output that is given: it took effect, as "
             "somebody found out or saw to. If the task is undone later, the step is compensated. "
             "(skip is for a step without effect.)",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact supply o-17 --step charge --output '{\"id\": \"ch-17\"}' --reason 'found "
                  "it at the bank'",
                  "it is known what came out of it"}},
    .exits = WAIT_EXITS,
    .run = operate,
};
