/* `intact correct`: another input for a step or a task. This is only the verb's description:
 * operate.c sends it for one task, operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {
    {.name = "step",
     .value = "STEP",
     .help = "step to correct, or an item of it (pack.3)",
     .initial = "the input of the task"},
    {.name = "input",
     .value = "JSON",
     .help = "new input; @FILE reads a file, - standard input; required"},
    REASON_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_correct = {
    .name = "correct",
    .summary = "change the input of a step or a task",
    .about = "Changes the input of a step that has not completed, or of the task "
             "(for steps whose input is not recorded yet). A step that was "
             "requested before gets a new idempotency key, TASK/STEP~2. Refused "
             "while the step is running or in doubt. Then retry the task.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples = {{"intact correct o-17 --step charge --input '{\"amount\": 1290, \"card\": "
                  "\"tok_1Nv1\"}' --reason 'the card was replaced'",
                  "for the next attempt of a step"},
                 {"intact correct o-17 --input @order.json --reason 'the address was wrong'",
                  "for steps that have not started"}},
    .run = operate,
};
