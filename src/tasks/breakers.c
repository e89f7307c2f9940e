/* The breakers and settings of agents: when attempts are held back, and what is stored of it. The
 * state machine is pure and in dispatch/breaker.c; job.c stores, landed results come back through
 * turn.c. */

#include "tasks/breakers.h"

#include <stdlib.h>

#include "base/log.h"
#include "tasks/task_inbox.h"

/*
 * The breakers of agents, and the settings of agents. An ended attempt counts once its end is
 * durable; each attempt asks before it starts. Where the store is shared, each node has its own
 * breakers, counts for itself and makes its own trials, but it stores each opening and closing, and
 * the other nodes follow (shared.c learns that there is something to read). A change by hand is
 * stored first; then all nodes follow it, this one too.
 *
 * A write is fenced by what was last read: a node that missed a change gets a conflict, reads the
 * change and follows it. While the store is unavailable, breakers work in memory, and the latest
 * state is written later.
 *
 * Failures during an outage do not count (decide.c). Those before the breaker opened do. The latest
 * of these are remembered, so that their steps can be retried early when the outage is over.
 */

enum { RECENT_FIRST = 16, RECENT_MAX = 1024, ID_MAX = 128 };

struct recent_failure {
    int64_t at;
    uint32_t attempt;
    uint16_t step;
    uint8_t direction, id_len;
    char id[ID_MAX];
};

/* ---- remembered failures ---- */

static struct recent_failure *recent_place(struct recent *r)
{
    if (r->count == r->cap && r->cap < RECENT_MAX) {
        r->cap = r->cap ? r->cap * 2 : RECENT_FIRST;
        r->list = reallocarray(r->list, r->cap, sizeof *r->list);
        ASSERT(r->list);
    }
    if (r->count < r->cap)
        return &r->list[r->count++];
    struct recent_failure *f = &r->list[r->next];
    r->next = (r->next + 1) % r->cap;
    return f;
}

static void remember(struct agent *a, const struct live *l, uint16_t step, int64_t now)
{
    const struct step *st = &l->task.steps[step];

    if (l->id.len > ID_MAX)
        return;
    struct recent_failure *f = recent_place(&a->recent);
    *f = (struct recent_failure){.at = now,
                                 .attempt = st->attempt,
                                 .step = step,
                                 .direction = (uint8_t)st->direction,
                                 .id_len = (uint8_t)l->id.len};
    memcpy(f->id, l->id.ptr, l->id.len);
}

/* Retries now, latest first and at most `max`, what failed in the outage or shortly before it was
 * detected. */
static void hasten(struct tasks *ts, struct agent *a, size_t max)
{
    struct recent *r = &a->recent;
    int64_t from = a->outage_at - a->settings.breaker.window_ms;

    while (max > 0 && r->count > 0) {
        const struct recent_failure *f = &r->list[--r->count];
        const struct event e = {.kind = EVENT_HASTEN,
                                .step = f->step,
                                .direction = (enum direction)f->direction,
                                .attempt = f->attempt};
        if (f->at < from)
            continue;
        inbox_post_event(ts, (struct slice){f->id, f->id_len}, &e);
        max--;
    }
    r->next = 0;
    if (r->count > 0)
        return;
    free(r->list);
    *r = (struct recent){0};
}

/* ---- changes of state ---- */

static void log_state(const struct agent *a, int64_t now)
{
    const struct breaker *b = &a->breaker;
    CLEANUP(buf_fini) struct buf reason = {0};

    log_word(&reason, slice_of(b->reason));
    switch (b->state) {
    case BREAKER_OPEN:
        log_line(LOG_WARN, "event=breaker_open agent=%.*s by_hand=%s wait_ms=%" PRId64 " reason=%s",
                 SLICE_ARG(a->name), b->by_hand ? "yes" : "no",
                 b->until ? max_i64(b->until - now, 0) : 0, reason.ptr);
        return;
    case BREAKER_HALF_OPEN:
        log_line(LOG_INFO, "event=breaker_half_open agent=%.*s trials=%" PRIu32, SLICE_ARG(a->name),
                 a->settings.breaker.trials);
        return;
    case BREAKER_CLOSED:
    case BREAKER_STATE_COUNT:
        log_line(LOG_INFO, "event=breaker_closed agent=%.*s reason=%s", SLICE_ARG(a->name),
                 reason.ptr);
        return;
    }
    UNREACHABLE();
}

/* The state differs from the previous one, whether this node or another one changed it. */
static void changed(struct tasks *ts, struct agent *a, enum breaker_state was)
{
    enum breaker_state is = a->breaker.state;
    int64_t now = tasks_now(ts);

    a->transitions[is]++;
    log_state(a, now);
    if (was == BREAKER_CLOSED)
        a->outage_at = now;
    if (is != BREAKER_CLOSED && !link_is_in(&a->shut))
        list_push(&ts->shut, &a->shut);
    if (is == BREAKER_CLOSED) {
        link_remove(&a->shut);
        hasten(ts, a, SIZE_MAX);
    }
    if (is == BREAKER_HALF_OPEN) /* otherwise no step may be due for the trials */
        hasten(ts, a, a->settings.breaker.trials);
}

/* Other nodes must follow. Half-open is not saved: each node detects itself when trials begin. */
static void to_be_saved(struct tasks *ts, struct agent *a)
{
    if (a->breaker.state != BREAKER_HALF_OPEN && !link_is_in(&a->unsaved))
        list_push(&ts->unsaved, &a->unsaved);
}

void breakers_tick(struct tasks *ts, int64_t now)
{
    LIST_FOREACH (link, after, &ts->shut) {
        struct agent *a = CONTAINER_OF(link, struct agent, shut);
        enum breaker_state was = a->breaker.state;
        if (breaker_tick(&a->breaker, &a->settings.breaker, now))
            changed(ts, a, was);
    }
}

int64_t breakers_next(const struct tasks *ts)
{
    int64_t next = 0;

    LIST_FOREACH (link, after, &ts->shut) {
        const struct agent *a = CONTAINER_OF(link, struct agent, shut);
        int64_t at = breaker_next(&a->breaker, &a->settings.breaker);
        if (at != 0 && (next == 0 || at < next))
            next = at;
    }
    return next;
}

/* ---- attempts ---- */

static bool has_agent(const struct workflow_step *ws, enum direction d)
{
    return ws->kind == KIND_CALL || (d == DIRECTION_UNDO && ws->undo_kind == UNDO_CALL);
}

struct agent *agent_of_attempts(struct tasks *ts, const struct live *l, uint16_t step,
                                enum direction d)
{
    const struct workflow_step *ws = &l->definition->workflow.steps[step];

    ASSERT(has_agent(ws, d));
    return dispatch_agent(&ts->dispatch, d == DIRECTION_UNDO ? ws->undo.agent : ws->call.agent);
}

bool breakers_spare(struct tasks *ts, const struct live *l, const struct event *e)
{
    bool fails = e->kind == EVENT_TIMEOUT || e->kind == EVENT_SILENCE
                 || (e->kind == EVENT_RESULT && e->failed);

    if (!fails || e->step < 0 || e->step >= task_unit_count(&l->task)
        || !has_agent(&l->definition->workflow.steps[e->step], e->direction))
        return false;
    const struct agent *a = agent_of_attempts(ts, l, (uint16_t)e->step, e->direction);
    return a->breaker.state != BREAKER_CLOSED;
}

void breakers_end_trial(struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];

    if (ls->trial == 0)
        return;
    breaker_trial_over(&ls->tries->breaker, ls->trial);
    ls->trial = 0;
}

/* Is a step waiting for its retry time, other than at its agent's request? */
static bool waits_for_its_time(const struct live *l, uint16_t step, int64_t now)
{
    return !l->steps[step].wished && l->task.steps[step].wait_until > now;
}

static void ended(struct tasks *ts, struct agent *a, enum breaker_end end, int64_t began_at)
{
    enum breaker_state was = a->breaker.state;
    int64_t now = tasks_now(ts);
    uint64_t seed = hash_stable(a->name.ptr, a->name.len) ^ hash_stable(ts->me.ptr, ts->me.len);

    if (breaker_ended(&a->breaker, &a->settings.breaker, end, began_at, now,
                      seed ^ (uint64_t)now)) {
        changed(ts, a, was);
        to_be_saved(ts, a);
    } else if (was == BREAKER_HALF_OPEN && end != END_BAD) {
        hasten(ts, a, 1); /* the next trial */
    }
}

static bool is_slow(const struct agent *a, int64_t took)
{
    int64_t slow_ms = a->settings.breaker.slow_ms;

    return slow_ms > 0 && took > slow_ms;
}

/* The service did its part when it accepted the attempt. How and when the attempt ends elsewhere
 * says nothing about the service and does not count. */
void breakers_handed_over(struct tasks *ts, struct agent *a, const struct handed_over *h)
{
    ended(ts, a, END_GOOD, h->began_at);
}

void breakers_count(struct tasks *ts, struct agent *a, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];
    struct attempt_end *end = &ls->end;
    int64_t now = tasks_now(ts);

    if (end->bad && waits_for_its_time(l, step, now))
        remember(a, l, step, now);
    bool slow = !end->bad && is_slow(a, end->ended_at - end->began_at);
    ended(ts, a, end->bad ? END_BAD : slow ? END_SLOW : END_GOOD, end->began_at);
    *end = (struct attempt_end){0};
    ls->wished = false;
}

/* ---- stored settings and breaker states ---- */

static void take_settings(struct tasks *ts, struct agent *a, struct slice text)
{
    struct agent_settings st = settings_default();
    struct arena fresh = {0};
    struct error e = {0};

    if (slice_eq(text, a->settings_text))
        return;
    if (text.ptr && settings_parse(text, &fresh, &st, &e) != ERR_OK)
        log_line(LOG_ERROR, "event=agent_unreadable agent=%.*s reason=\"%s\"", SLICE_ARG(a->name),
                 e.text); /* the defaults apply */
    a->settings_text = arena_copy(&fresh, text);
    a->settings = st;
    arena_fini(&a->settings_arena);
    a->settings_arena = fresh;
    dispatch_limit(&ts->dispatch, a, tasks_now(ts));
    enum breaker_state was = a->breaker.state;
    if (breaker_ruled(&a->breaker, &a->settings.breaker, tasks_now(ts))) {
        changed(ts, a, was);
        to_be_saved(ts, a);
    }
}

static void set_breaker_text(struct agent *a, struct slice text)
{
    struct arena fresh = {0};

    text = arena_copy(&fresh, text);
    arena_fini(&a->breaker_arena);
    a->breaker_arena = fresh;
    a->breaker_text = text;
}

static void take_breaker(struct tasks *ts, struct agent *a, struct slice text)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct breaker_record rec;
    enum breaker_state was = a->breaker.state;

    if (slice_eq(text, a->breaker_text))
        return;
    set_breaker_text(a, text);
    link_remove(&a->unsaved); /* the state in the store wins */
    if (!text.ptr || breaker_record_read(text, &tree, &rec) != ERR_OK)
        return;
    if (rec.state == BREAKER_OPEN && !rec.by_hand && a->settings.breaker.off)
        return;
    if (breaker_follow(&a->breaker, &a->settings.breaker, &rec, tasks_now(ts)))
        changed(ts, a, was);
}

void breakers_stored(struct tasks *ts, const struct agent_row *row)
{
    struct agent *a = dispatch_agent(&ts->dispatch, row->name);

    take_settings(ts, a, row->settings);
    take_breaker(ts, a, row->breaker);
}

void breakers_by_hand(const struct tasks *ts, struct slice name, bool open, struct slice reason,
                      struct buf *ret)
{
    const struct agent *a = map_get(&ts->dispatch.agents, name);
    struct breaker b = a ? a->breaker : (struct breaker){0};

    if (open)
        breaker_open_by_hand(&b, reason, tasks_now(ts));
    else
        breaker_close_by_hand(&b, reason, tasks_now(ts));
    const struct breaker_record rec = breaker_record(&b);
    breaker_record_write(ret, &rec);
}

void breakers_stored_elsewhere(struct tasks *ts, uint64_t generation)
{
    ts->agents_stale |= generation > ts->agents_generation;
}

void breakers_read(struct tasks *ts, const struct agent_row *rows, size_t count,
                   uint64_t generation)
{
    ts->agents_stale = false;
    ts->agents_known = true;
    ts->agents_generation = generation;
    for (size_t i = 0; i < count; i++)
        breakers_stored(ts, &rows[i]);
}

size_t breakers_to_save(struct tasks *ts, struct arena *a, struct agent_change *ret, size_t max)
{
    size_t count = 0;

    for (struct link *first = NULL; count < max && (first = list_first(&ts->unsaved));) {
        CLEANUP(buf_fini) struct buf text = {0};
        struct agent *agent = CONTAINER_OF(first, struct agent, unsaved);
        const struct breaker_record rec = breaker_record(&agent->breaker);
        link_remove(first);
        breaker_record_write(&text, &rec);
        ret[count++] = (struct agent_change){.name = arena_copy(a, agent->name),
                                             .part = AGENT_BREAKER,
                                             .text = arena_copy(a, buf_view(&text)),
                                             .fenced = true,
                                             .was = arena_copy(a, agent->breaker_text)};
    }
    return count;
}

/* A write of unknown outcome is repeated: if the first one was durable, the second conflicts with
 * it, and the row that is then read brings nothing new. */
void breakers_saved(struct tasks *ts, const struct agent_change *c, enum err err)
{
    struct agent *a = dispatch_agent(&ts->dispatch, c->name);

    if (err == ERR_OK) {
        set_breaker_text(a, c->text);
    } else if (err == ERR_CONFLICT) {
        ts->agents_stale = true;
        ts->agents_generation = 0; /* the row may have been read before and dropped since */
        set_breaker_text(a, SLICE_NONE);
    } else if (err_is_transient(err)) {
        to_be_saved(ts, a);
    }
}
