/* Explains a task of a simulated run with the words of `intact why` (explain.h). There are no
 * queues, and every agent is there. */

#include "simulation/explain.h"

#include <stdlib.h>

#include "why/why.h"

/* Every agent is connected, and has room. */
static void any_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){.connected = true, .free = true, .places = 1};
}

static void any_attempt(void *arg, int step, const struct attempt *a, struct attempt_view *ret)
{
    (void)arg;
    (void)step;
    (void)a;
    *ret = (struct attempt_view){0};
}

void explain(const struct workflow *w, const struct task *t, int64_t now, struct buf *ret_summary,
             struct buf *ret_moves)
{
    const struct facts facts = {.now = now,
                                .owner = OWNER_US,
                                .live = true,
                                .scan_ms = 1000,
                                .agent = any_agent,
                                .attempt = any_attempt};
    struct reasons *reasons = calloc(1, sizeof *reasons); /* too large for the stack */
    struct task named = *t;

    ASSERT(reasons);
    named.id = SLICE("TASK"); /* in the commands: whichever it will be */
    reasons_find(w, &named, &facts, reasons);
    const struct why why = {w, &named, &facts, reasons};
    why_summary(ret_summary, &why);
    for (size_t i = 0; i < reasons->count && i < 3; i++) {
        CLEANUP(buf_fini) struct buf moves = {0};
        why_moves(&moves, &why, &reasons->list[i]);
        if (moves.len > 0)
            buf_fmt(ret_moves, "%s%s", ret_moves->len > 0 ? "\n" : "", moves.ptr);
    }
    free(reasons);
}
