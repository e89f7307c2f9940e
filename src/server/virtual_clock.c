/*
 * The clock of a server in virtual time. It stands while anything is under way: a request, or a job
 * of the store. Then it waits for some real milliseconds of quiet, since a client or an agent may
 * be about to send something, and looks at the store. What others do may hold it: an attempt at an
 * agent, work for an agent that does not ask for it, a receiver of a message that has not answered.
 * Otherwise it jumps to the next moment at which something is due.
 *
 * Only what tasks wait for moves the clock by itself: schedules go on forever, and deleting old
 * tasks is no reason to make them old. Moments of schedules on the way are stopped at.
 */

#include "server/virtual_clock.h"

#include <stdlib.h>

#include "background/messages.h"
#include "background/notices.h"
#include "background/schedules.h"
#include "background/submission_inbox.h"
#include "node/virtual_time.h"
#include "server/parts.h"
#include "store/codec/codec.h"
#include "store/job.h"
#include "supervisor/overdue.h"
#include "json/json.h"

enum {
    QUIET_MS = 20,      /* for clients that may be about to send something */
    QUIET_WAITS_MS = 3, /* where a client says that it waits */
    TICK_MS = 100,      /* real time is noticed by parked calls */
    NAMES_MAX = 100,    /* of agents that are told of */
    DUE_MAX = 16,       /* rows that are due first */
    PAGE_MAX = 500,
};

/* What is due in the store, and for which agents its tasks wait. */
struct look {
    struct store_job job;
    struct arena arena;
    int64_t after_at;    /* rows that are overdue until then were dealt with */
    struct row_page due; /* those that are due first, perhaps */
    int64_t due_at;      /* 0: nothing is due */
    struct slice *names;
    size_t name_count;
};

struct virtual_clock {
    struct run *run;
    struct server *sv;
    struct virtual_time *vt;
    uv_timer_t timer;
    int64_t ticked_at;   /* steady */
    int64_t quiet_since; /* steady; 0: something is under way */
    uint64_t seen;       /* arrivals until then */
    uint64_t scanned;    /* changes until the last scan, at `scanned_at` */
    int64_t scanned_at;
    bool looking, has_looked;
    struct look look;
    struct advance status; /* what is known now */
};

/* ---- is anything under way? ---- */

/* Grows with every change of a task. Clients that only look, again and again, do not matter. */
static uint64_t activity(const struct server *sv)
{
    struct scheduler_stats st;

    scheduler_stats(sv->scheduler, &st);
    return st.batches + st.changes;
}

static bool is_under_way(const struct virtual_clock *v, int64_t at)
{
    const struct server *sv = v->sv;
    const struct load *l = &sv->load;

    return (at != 0 && at <= server_now(v->sv)) || l->exchanges > l->awaiting || l->asks_open > 0
           || l->reads_open > 0 || l->lines_open > 0 || inbox_has_news(sv)
           || notices_part_has_news(sv) || parts_are_busy(sv, v->run->opened);
}

/* ---- looking at the store ---- */

static void note_name(struct look *k, struct slice name)
{
    if (name.len == 0 || name.ptr[0] == '@' || slice_eq(name, WAITING_TIME))
        return;
    for (size_t i = 0; i < k->name_count; i++)
        if (slice_eq(k->names[i], name))
            return;
    if (k->name_count < NAMES_MAX)
        k->names[k->name_count++] = arena_copy(&k->arena, name);
}

/* "bank", or ",bank,stock,time" */
static void note_names(struct look *k, struct slice waiting_for)
{
    const char *from = waiting_for.ptr;

    for (size_t i = 0; i <= waiting_for.len && from; i++) {
        if (i < waiting_for.len && waiting_for.ptr[i] != ',')
            continue;
        note_name(k, (struct slice){from, (size_t)(waiting_for.ptr + i - from)});
        from = waiting_for.ptr + i + 1;
    }
}

static void look_at_waiting(struct look *k, struct store *s)
{
    struct list_query q = {.states = 1U << TASK_PENDING, .limit = PAGE_MAX};
    struct error e = {0};

    for (bool more = true; more && k->name_count < NAMES_MAX;) {
        CLEANUP(arena_fini) struct arena page_arena = {0};
        struct row_page page = {0};
        if (s->ops->list(s, &q, &page_arena, &page, &e) != ERR_OK)
            return;
        for (size_t i = 0; i < page.count; i++)
            note_names(k, page.rows[i].waiting_for);
        more = page.more;
        q.before_seq = page.next_seq;
    }
}

static void look_run(struct store_job *j, struct store *s)
{
    struct look *k = CONTAINER_OF(j, struct look, job);
    struct error e = {0};

    (void)s->ops->overdue(s, INT64_MAX, k->after_at, INT64_MAX, DUE_MAX, &k->arena, &k->due,
                          &e); /* the store in memory has no trouble */
    k->names = arena_alloc(&k->arena, NAMES_MAX * sizeof *k->names);
    look_at_waiting(k, s);
}

/* `wake_at` of a row may be too early: something was due then, and is not any more. 0: nothing is
 * due at all. */
static int64_t due_of_row(struct virtual_clock *v, const struct task_row *row)
{
    const struct definition *d = registry_find(&v->sv->workflows, row->workflow, row->version);
    struct lost_time lost = supervisor_lost_time(v->sv->supervisor);
    struct verdict verdict;
    struct error e = {0};
    struct task t;

    if (row->wake_at <= server_now(v->sv) || !d
        || task_decode(&d->workflow, row, &v->look.arena, &t, &e) != ERR_OK)
        return row->wake_at;
    overdue_judge(&d->workflow, &t, row->wake_at, 0, &lost, &v->look.arena, &verdict);
    return verdict.request.count > 0 ? row->wake_at : verdict.wake_at;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void look_done(struct store_job *j)
{
    struct look *k = CONTAINER_OF(j, struct look, job);
    struct virtual_clock *v = CONTAINER_OF(k, struct virtual_clock, look);
    size_t i = 0;

    for (; i < k->due.count && (k->due_at == 0 || k->due.rows[i].wake_at < k->due_at); i++)
        k->due_at = sooner(k->due_at, due_of_row(v, &k->due.rows[i]));
    if (i == k->due.count && k->due.more) /* the others may be due from then on */
        k->due_at = sooner(k->due_at, k->due.rows[i - 1].wake_at);
    v->looking = false;
    v->has_looked = true;
}

static void look_begin(struct virtual_clock *v)
{
    bool scanned = v->scanned_at == server_now(v->sv) && v->scanned == activity(v->sv);

    arena_fini(&v->look.arena);
    v->look = (struct look){.job = {.run = look_run, .done = look_done},
                            .after_at = scanned ? server_now(v->sv) : 0};
    v->looking = true;
    v->sv->store->submit(v->sv->store, &v->look.job);
}

/* ---- what holds the clock ---- */

static bool is_excused(const struct advance *a, struct slice line)
{
    struct slice text = buf_view(&a->excused);

    return line.len <= text.len && memmem(text.ptr, text.len, line.ptr, line.len) != NULL;
}

/* `line` names it; `text` is for a person. */
static void hold(struct advance *a, const struct buf *line, const struct buf *json,
                 const struct buf *text)
{
    if (is_excused(a, buf_view(line)))
        return;
    if (a->regardless && !a->is_begun) {
        buf_slice(&a->excused, buf_view(line));
        return;
    }
    if (a->held_count++ < NAMES_MAX) {
        buf_str(&a->held, a->held.len > 0 ? "," : "");
        buf_slice(&a->held, buf_view(json));
    }
    if (a->held_text.len == 0)
        buf_slice(&a->held_text, buf_view(text));
}

static void hold_by_attempt(void *arg, const struct at_work *w)
{
    CLEANUP(buf_fini) struct buf line = {0};
    CLEANUP(buf_fini) struct buf json = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&line, "\n%.*s/%.*s.%" PRIu32 " %d %" PRIu32 "\n", SLICE_ARG(w->task),
            SLICE_ARG(w->step), w->item, w->undo, w->attempt);
    json_open(&json, '{');
    json_member_text(&json, "kind", SLICE("attempt"));
    json_member_text(&json, "task", w->task);
    json_member_text(&json, "step", w->step);
    json_member_text(&json, "direction", w->undo ? SLICE("undo") : SLICE("forward"));
    json_member_number(&json, "attempt", w->attempt);
    json_member_text(&json, "agent", w->agent);
    json_member_text(&json, "instance", w->instance);
    json_close(&json, '}');
    buf_fmt(&text, "attempt %" PRIu32 " of step %.*s%s of task %.*s is at work at agent %.*s",
            w->attempt, SLICE_ARG(w->step), w->undo ? " (undo)" : "", SLICE_ARG(w->task),
            SLICE_ARG(w->agent));
    hold(arg, &line, &json, &text);
}

static void hold_by_agent(void *arg, struct slice agent)
{
    CLEANUP(buf_fini) struct buf line = {0};
    CLEANUP(buf_fini) struct buf json = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&line, "\nagent %.*s\n", SLICE_ARG(agent));
    json_open(&json, '{');
    json_member_text(&json, "kind", SLICE("agent"));
    json_member_text(&json, "agent", agent);
    json_close(&json, '}');
    buf_fmt(&text, "work waits for agent %.*s, which does not ask for any", SLICE_ARG(agent));
    hold(arg, &line, &json, &text);
}

static void hold_by_message(void *arg, struct slice target)
{
    CLEANUP(buf_fini) struct buf line = {0};
    CLEANUP(buf_fini) struct buf json = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&line, "\nmessage %.*s\n", SLICE_ARG(target));
    json_open(&json, '{');
    json_member_text(&json, "kind", SLICE("message"));
    json_member_text(&json, "target", target);
    json_close(&json, '}');
    buf_fmt(&text, "%.*s has not answered to a status message yet", SLICE_ARG(target));
    hold(arg, &line, &json, &text);
}

/* Tells `a` what holds the clock now. True: something does. */
static bool is_held(struct virtual_clock *v, struct advance *a)
{
    const struct scheduler *s = v->sv->scheduler;

    buf_fini(&a->held);
    buf_fini(&a->held_text);
    a->held_count = 0;
    scheduler_at_work(s, hold_by_attempt, a);
    scheduler_missed(s, hold_by_agent, a);
    for (size_t i = 0; i < v->look.name_count; i++)
        if (scheduler_is_missed(s, v->look.names[i]))
            hold_by_agent(a, v->look.names[i]);
    messages_each_delivery(v->sv, hold_by_message, a);
    return a->held_count > 0;
}

/* ---- jumping ---- */

/* When something is due for tasks; 0: nothing is. */
static int64_t tasks_next(const struct virtual_clock *v)
{
    int64_t due = scheduler_due_at(v->sv->scheduler);

    return sooner(v->look.due_at, due > server_now(v->sv) ? due : 0);
}

static int64_t all_next(const struct virtual_clock *v)
{
    int64_t moment = schedules_due_at(v->sv);

    return sooner(tasks_next(v), moment > server_now(v->sv) ? moment : 0);
}

/* What is overdue is looked for at once: scans at moments that were passed would find nothing. */
static void jump(struct virtual_clock *v, int64_t to)
{
    int64_t by = max_i64(to, server_now(v->sv)) - server_now(v->sv);

    log_line(LOG_DEBUG, "event=clock_moved ms=%" PRId64, by);
    atomic_fetch_add(&v->vt->now_ms, by);
    atomic_fetch_add(&v->vt->jumped_ms, by);
    virtual_headers(v->sv);
    scheduler_calls_move(v->sv->scheduler, by);
    supervisor_left_out(v->sv->supervisor);
    v->scanned_at = server_now(v->sv);
    v->scanned = activity(v->sv);
    v->has_looked = false;
    v->quiet_since = 0;
}

/* ---- what clients wish ---- */

static struct advance *first_advance(struct virtual_clock *v)
{
    struct link *l = list_first(&v->vt->advances);

    return l ? CONTAINER_OF(l, struct advance, link) : NULL;
}

static void end_advance(struct virtual_clock *v, struct advance *a, enum advance_end how)
{
    a->next_at = all_next(v);
    link_remove(&a->link);
    a->ended(a, how);
}

/* False: it is over. */
static bool is_patient(struct advance *a)
{
    int64_t now = server_steady(NULL);

    if (a->still_since == 0)
        a->still_since = now;
    return now - a->still_since < a->patience_ms;
}

enum course { WAITS, MOVED, ENDED };

/* ENDED: `a` is gone. */
static enum course go_on(struct virtual_clock *v, struct advance *a)
{
    bool held = is_held(v, a);
    int64_t now = server_now(v->sv);

    a->is_begun = true;
    if (!held)
        a->still_since = 0;
    if (a->to == 0) {
        end_advance(v, a, ADVANCE_DONE);
        return ENDED;
    }
    if (held && is_patient(a))
        return WAITS;
    if (held || now >= a->to) {
        end_advance(v, a, now >= a->to ? ADVANCE_DONE : ADVANCE_HELD);
        return ENDED;
    }
    int64_t next = all_next(v);
    jump(v, next != 0 && next < a->to ? next : a->to);
    return MOVED;
}

/* By itself. */
static bool moves(struct virtual_clock *v)
{
    const struct load *l = &v->sv->load;

    if (v->vt->mode == VIRTUAL_MANUAL
        || (v->vt->mode == VIRTUAL_WAITS && l->awaiting == 0 && l->lines_waiting == 0))
        return false;
    if (is_held(v, &v->status) || tasks_next(v) == 0)
        return false;
    jump(v, all_next(v));
    return true;
}

/* ---- turns ---- */

static bool wishes_or_moves(struct virtual_clock *v)
{
    for (struct advance *a = NULL; (a = first_advance(v));) {
        enum course course = go_on(v, a);
        if (course != ENDED)
            return course == MOVED;
    }
    return moves(v);
}

static int64_t quiet_ms(const struct virtual_clock *v)
{
    bool told = v->vt->mode != VIRTUAL_AUTO || !list_empty(&v->vt->advances);

    return told ? QUIET_WAITS_MS : QUIET_MS;
}

/* Parked calls wait in real time. */
static void tick(struct virtual_clock *v)
{
    int64_t steady = server_steady(NULL);

    if (steady - v->ticked_at < TICK_MS)
        return;
    scheduler_calls_move(v->sv->scheduler, v->ticked_at - steady);
    v->ticked_at = steady;
}

static void fired(uv_timer_t *t)
{
    (void)t; /* a turn follows */
}

static void turn_in(struct virtual_clock *v, int64_t ms)
{
    if (!uv_is_closing((uv_handle_t *)&v->timer)) /* it has a callback */
        (void)uv_timer_start(&v->timer, fired, (uint64_t)max_i64(1, ms), 0);
}

/* Nothing is under way, and has not been since then. */
static int64_t quiet_for(struct virtual_clock *v)
{
    uint64_t sum = activity(v->sv);
    int64_t steady = server_steady(NULL);

    if (v->quiet_since == 0 || sum != v->seen) {
        v->quiet_since = steady;
        v->has_looked = false;
    }
    v->seen = sum;
    return steady - v->quiet_since;
}

int64_t virtual_clock_turn(struct virtual_clock *v, int64_t at)
{
    if (v->sv->ended || v->sv->draining)
        return at;
    tick(v);
    if (v->looking)
        return at;
    if (is_under_way(v, at)) {
        v->quiet_since = 0;
        return at;
    }
    int64_t left = quiet_ms(v) - quiet_for(v);
    if (left > 0) {
        turn_in(v, left);
    } else if (!v->has_looked) {
        look_begin(v);
    } else if (wishes_or_moves(v)) {
        return server_now(v->sv);
    } else {
        turn_in(v, TICK_MS);
    }
    return at;
}

static void woken(void *arg)
{
    turn_in(arg, 1);
}

/* ---- life ---- */

struct virtual_clock *virtual_clock_new(struct run *run)
{
    struct virtual_time *vt = run->sv.config.virtual_time;
    struct virtual_clock *v = vt ? calloc(1, sizeof *v) : NULL;

    if (!vt)
        return NULL;
    ASSERT(v);
    v->run = run;
    v->sv = &run->sv;
    v->vt = vt;
    v->ticked_at = server_steady(NULL);
    list_init(&vt->advances);
    list_init(&v->status.link);
    vt->woken = woken;
    vt->arg = v;
    int rc = uv_timer_init(&run->sv.loop, &v->timer);
    ASSERT(rc == 0);
    return v;
}

void virtual_clock_close(struct virtual_clock *v)
{
    if (!v)
        return;
    for (struct advance *a = NULL; (a = first_advance(v));)
        end_advance(v, a, ADVANCE_ENDING);
    uv_close((uv_handle_t *)&v->timer, NULL);
}

bool virtual_clock_is_busy(const struct virtual_clock *v)
{
    return v && v->looking;
}

void virtual_clock_free(struct virtual_clock *v)
{
    if (!v)
        return;
    arena_fini(&v->look.arena);
    advance_fini(&v->status);
    free(v);
}
