/* Judges one overdue task: what to request of its owner, and when to check next. Pure; see
 * overdue.h. The codec of a request: store/row_request.h. */

#include "supervisor/overdue.h"

#include "core/retry.h"

/* What the rules will decide when the scheduler carries the request out; only for readers of the
 * row. */
static const char *outlook_of(const struct workflow_step *ws, const struct step *s, int64_t now)
{
    bool undo = s->direction == DIRECTION_UNDO;
    const struct call_spec *spec = undo ? &ws->undo : &ws->call;
    struct failure f = {.count = s->failure_count + 1, .retryable = true};
    int64_t at = 0;

    if (ws->signal.otherwise.ptr || ws->approve.otherwise.ptr)
        return "continue";
    if ((ws->kind == KIND_CALL || undo) && retry_next(&spec->retry, &f, now, &at))
        return "retry";
    if (undo)
        return "hold";
    if (ws->kind == KIND_TASK)
        return "stop";
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

static struct request_item request_of_attempt(const struct workflow *w, const struct task *t,
                                              uint16_t unit, int64_t at, int64_t now)
{
    const struct workflow_step *ws = &w->steps[unit];
    const struct step *s = &t->steps[unit];

    return (struct request_item){
        .kind = REQUEST_ATTEMPT,
        .step = ws->name,
        .of_item = unit_is_slot(w, unit),
        .item = s->item,
        .generation = unit_is_slot(w, unit) ? t->steps[unit_step(w, unit)].generation : 0,
        .direction = s->direction,
        .attempt = s->attempt,
        .outlook = slice_of(outlook_of(ws, s, now)),
        .until = ws->kind == KIND_SIGNAL ? at : 0,
    };
}

static int64_t earlier(int64_t a, int64_t b) /* 0: never */
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* A signal that was sent in time, or the end of a child, is about to be decided. */
static bool is_held(const struct workflow_step *ws, int64_t at, int64_t told_at, int64_t now)
{
    return (ws->kind == KIND_SIGNAL || ws->kind == KIND_TASK) && told_at != 0 && told_at <= at
           && now < at + NOTICE_HOLD_MS;
}

void overdue_judge(const struct workflow *w, const struct task *t, int64_t now, int64_t told_at,
                   const struct lost_time *lost, struct arena *a, struct verdict *ret)
{
    struct request r = {arena_alloc(a, (task_unit_count(t) + 2U) * sizeof *r.list), 0};
    size_t overdue = 0;
    size_t running = 0;
    int64_t next = 0;

    ASSERT(w->step_count == t->step_count);
    for (uint16_t i = 0; i < task_unit_count(t); i++) {
        const struct step *s = &t->steps[i];
        int64_t at = step_overdue_at(s, lost);
        bool open = at != 0;
        if (!open && s->complete_by != 0)
            at = signal_overdue_at(t, i, lost);
        if (at != 0 && at <= now && !is_held(&w->steps[i], at, told_at, now)) {
            r.list[r.count++] = request_of_attempt(w, t, i, at, now);
            overdue++;
        } else if (at != 0) {
            running += open;
            next = earlier(next, at);
        }
    }
    int64_t at = task_overdue_at(w, t, lost);
    int64_t set = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    int64_t to = task_extended_to(w, t, lost);
    bool extend = set <= now && set < to && to > now; /* otherwise nothing more could start */
    if (extend)
        r.list[r.count++] = (struct request_item){.kind = REQUEST_EXTEND, .until = to};
    if (at != 0 && at <= now) {
        r.list[r.count++] = (struct request_item){.kind = REQUEST_DEADLINE};
        overdue++;
    } else {
        next = earlier(next, at);
    }
    ASSERT(r.count == overdue + extend);
    *ret = (struct verdict){
        .request = r,
        .release = overdue > 0 && running == 0,
        .wake_at = overdue > 0 ? earlier(next, now + REMINDER_MS) : next,
    };
}
