/* `intact resolve`: a step in doubt did not take effect; see operate.c. */

#include "cli/operate.h"
#include "cli/operation_start.h"
#include "cli/verbs.h"

static const struct flag flags[] = {
    {.name = "step", .value = "STEP", .help = "which one; required"},
    {.name = "effect",
     .value = "EFFECT",
     .help = "none: it took no effect; required",
     .kind = WORD_HINTS,
     .choices = "none"},
    {.name = "attempt",
     .value = "N",
     .help = "the latest that was looked at: refused if another one began since"},
    REASON_FLAG,
    MANY_FLAGS,
    {0},
};

const struct verb verb_resolve = {
    .name = "resolve",
    .summary = "say that a step in doubt did not take effect",
    .about =
        "Somebody looked, and found that no attempt of the step so far took effect. Then it is "
        "in doubt no more: the task can be undone, and the step is not compensated; it can be "
        "corrected, or tried again. It is refused while an attempt may still take effect: "
        "until a second after its complete-by. With --attempt it is refused as well if another "
        "attempt has begun since somebody looked; of many tasks, if one began after the "
        "operation did. The attempts keep what was known of them. (For a step that did take "
        "effect there is supply, with its output.)",
    .arguments = {{.name = "TASK", .kind = WORD_TASK, .optional = true}},
    .flags = flags,
    .examples =
        {{"intact resolve o-17 --step ship --effect none --attempt 2 --reason 'no parcel has "
          "left'",
          "somebody asked the carrier"}},
    .run = operate,
};
