/* `intact correct`: another input for a step or a task; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "of this step", .initial = "the task's own"},
    {.name = "input",
     .value = "JSON",
     .help = "the right one; @FILE reads it from a file, - from standard input; required"},
    REASON_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_correct = {
    .name = "correct",
    .summary = "give a step, or the task, another input",
    .about = "Gives a step that has not completed another input, or the task itself (for the steps "
             "whose input is not recorded yet). A step that was asked for before gets another "
             "idempotency key, TASK/STEP~2: one key never stands for two requests. It is refused "
             "while the step is at work, or in doubt. Then retry it.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact correct o-17 --step charge --input '{\"amount\": 1290, \"card\": "
                  "\"tok_1Nv1\"}' --reason 'the card was replaced'",
                  "for the step's next attempt"},
                 {"intact correct o-17 --input @order.json --reason 'the address was wrong'",
                  "the task's, for steps that have not begun"}},
    .run = operate,
};
