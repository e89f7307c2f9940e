/* Judges one overdue task and writes the request for it. Pure; see overdue.h. */

#include "supervisor/overdue.h"

#include "core/retry.h"
#include "json/json.h"

/* What the rules will decide when the scheduler carries the request out; only for readers of the
 * row. */
static const char *what_to_do(const struct workflow_step *ws, const struct step *s, int64_t now)
{
    bool undo = s->direction == DIRECTION_UNDO;
    const struct call_spec *spec = undo ? &ws->undo : &ws->call;
    struct failure f = {.count = s->failure_count + 1, .retryable = true};
    int64_t at = 0;

    if (retry_next(&spec->retry, &f, now, &at))
        return "retry";
    if (undo)
        return "hold";
    switch (ws->on_failure) {
    case ON_FAILURE_UNDO:
        return "undo";
    case ON_FAILURE_HOLD:
        return "hold";
    case ON_FAILURE_CONTINUE:
        return "continue";
    }
    UNREACHABLE();
}

static void request_step(struct buf *b, const struct workflow_step *ws, const struct step *s,
                         int64_t now)
{
    json_open(b, '{');
    json_key(b, "step");
    json_string(b, ws->name);
    json_key(b, "direction");
    json_string(b, slice_of(direction_text(s->direction)));
    json_key(b, "attempt");
    json_number(b, s->attempt);
    json_key(b, "do");
    json_string(b, slice_of(what_to_do(ws, s, now)));
    json_close(b, '}');
}

static void request_extension(struct buf *b, int64_t until)
{
    json_open(b, '{');
    json_key(b, "do");
    json_string(b, SLICE("extend"));
    json_key(b, "until");
    json_number(b, until);
    json_close(b, '}');
}

static int64_t earlier(int64_t a, int64_t b) /* 0: never */
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

void overdue_judge(const struct workflow *w, const struct task *t, int64_t now,
                   const struct lost_time *lost, struct buf *text, struct verdict *ret)
{
    size_t overdue = 0;
    size_t running = 0;
    int64_t next = 0;

    json_open(text, '[');
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        int64_t at = step_overdue_at(s, lost);
        if (at != 0 && at <= now) {
            request_step(text, &w->steps[i], s, now);
            overdue++;
        } else if (at != 0) {
            running++;
            next = earlier(next, at);
        }
    }
    int64_t at = task_overdue_at(w, t, lost);
    int64_t said = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    bool extend = said <= now && said < at && at > now; /* otherwise nothing more could start */
    if (extend)
        request_extension(text, at);
    if (at != 0 && at <= now) {
        json_open(text, '{');
        json_key(text, "do");
        json_string(text, SLICE("deadline"));
        json_close(text, '}');
        overdue++;
    } else {
        next = earlier(next, at);
    }
    json_close(text, ']');
    *ret = (struct verdict){
        .request = overdue > 0 || extend,
        .release = overdue > 0 && running == 0,
        .wake_at = overdue > 0 ? earlier(next, now + REMINDER_MS) : next,
    };
}
