/* `intact resolve`: an operator states that a step in doubt did not take effect; supply.c is for
 * one that did. This is only the verb's description: operate.c sends it for one task,
 * operation_start.c for many. */

#include "cli/verbs.h"
#include "cli/verbs/operate.h"
#include "cli/verbs/operation_start.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "the step, or an item of it (pack.3); required"},
    {.name = "effect",
     .value = "EFFECT",
     .help = "none (it took no effect); required",
     .kind = WORD_HINTS,
     .choices = "none"},
    {.name = "attempt",
     .value = "N",
     .help = "latest attempt that was checked: refused after a later one"},
    REASON_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_resolve = {
    .name = "resolve",
    .summary = "state that a step in doubt took no effect",
    .about = "States that no attempt of the step so far took effect, as checked by "
             "a person. The step is no longer in doubt: it can be corrected or "
             "retried, and is not compensated if the task is undone. Refused while "
             "an attempt may still take effect. For a step that took effect, use "
             "supply.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples =
        {{"intact resolve o-17 --step ship --effect none --attempt 2 --reason 'no parcel has "
          "left'",
          "after asking the carrier"}},
    .run = operate,
};
