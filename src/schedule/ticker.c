/*
 * Decides the moments of schedules that are due: see ticker.h. tick_run is on the store's thread,
 * all else on the event loop.
 */

#include "schedule/ticker.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "schedule/row.h"
#include "store/store.h"

enum {
    BATCH_MAX = 400,    /* schedules in one transaction */
    EFFORT_MS = 20,     /* the store does nothing else meanwhile */
    OTHERS_MS = 30000,  /* a look at what other nodes may have changed */
    LOOK_MS = 1000,     /* after a failure; at what waits for a run */
    WAITS_PER_S = 1000, /* schedules that wait for a run are looked at so often */
    UNDOS_MAX = BATCH_MAX,
    RUN_ID_SIZE = 160,
};

/* What happened to a schedule, for the log. */
struct told {
    char name[80];
    uint64_t missed, skipped, failed;
    bool is_news;
};

/* One transaction. */
struct tick {
    struct store_job job;
    struct fence fence;
    char lease[32];
    struct schedule_look look;
    struct schedule_change changes[2 * BATCH_MAX];
    size_t count;
    struct told told[2 * BATCH_MAX];
    struct {
        size_t change; /* the one that wants it */
        char run[RUN_ID_SIZE];
    } undos[UNDOS_MAX];
    size_t undo_count;
    struct ticker_stats done;
    bool more;       /* there is more to do at once */
    int64_t next_at; /* when something is due next; 0: nothing is */
    struct arena arena;
    struct buf docs[2 * BATCH_MAX];
    enum err err;
    struct error error;
};

struct ticker {
    struct ticker_config config;
    struct tick tick;
    bool busy, hinted, ended, led, draining;
    int64_t due_at;     /* by the store's time: of the next look; 0: none is due by time */
    int64_t waiting_at; /* steady: not before then those are looked at that wait for a run */
    struct ticker_stats stats;
};

static int64_t now_of(const struct ticker *tk)
{
    return tk->config.now(tk->config.arg);
}

static int64_t steady_of(const struct ticker *tk)
{
    return tk->config.steady(tk->config.arg);
}

/* ---- on the store's thread ---- */

/* A schedule that cannot be read would stay due. */
static void set_aside(struct tick *t, const struct schedule_row *row, const struct error *e)
{
    struct schedule_change *c = &t->changes[t->count];

    t->told[t->count++] = (struct told){0};
    log_line(LOG_ERROR, "event=schedule_unreadable schedule=%.*s reason=\"%s\"",
             SLICE_ARG(row->name), e->text);
    *c = (struct schedule_change){.row = *row};
    c->row.revision++;
    c->row.next_at = 0;
    c->row.waits = false;
}

/* A gap that grows is told of once. */
static bool has_new_gap(const struct schedule_state *was, const struct schedule_state *is)
{
    if (is->gap_count == 0)
        return false;
    return was->gap_count == 0
           || was->gaps[was->gap_count - 1].first != is->gaps[is->gap_count - 1].first;
}

static void note_told(struct tick *t, const struct schedule_state *was,
                      const struct schedule_state *is, struct slice name)
{
    struct told *told = &t->told[t->count - 1];

    *told = (struct told){.missed = is->missed_count - was->missed_count,
                          .skipped = is->skipped_count - was->skipped_count,
                          .failed = is->failed_count - was->failed_count,
                          .is_news = has_new_gap(was, is)};
    memcpy(told->name, name.ptr, name.len < sizeof told->name ? name.len : sizeof told->name - 1);
}

static void note_undo(struct tick *t, struct slice run)
{
    if (t->undo_count == UNDOS_MAX || run.len >= RUN_ID_SIZE)
        return; /* it is asked for again */
    t->undos[t->undo_count].change = t->count - 1;
    memcpy(t->undos[t->undo_count].run, run.ptr, run.len);
    t->undos[t->undo_count++].run[run.len] = 0;
}

static void submit_all(struct tick *t, const struct schedule *s, const struct plan *plan,
                       struct schedule_change *c)
{
    struct submission_row *rows = arena_alloc(&t->arena, (plan->fire_count + 1) * sizeof *rows);

    for (size_t i = 0; i < plan->fire_count; i++) {
        const struct fire *f = &plan->fires[i];
        struct slice id = run_id(s->name, f->moment, &t->arena);
        rows[i] = run_submission(s, schedule_person(&c->row), id, f->input, t->look.now);
        t->done.late_ms = t->look.now - schedule_due_at(s, f->moment);
    }
    c->submissions = rows;
    c->submission_count = plan->fire_count;
}

static struct submission_row *copy_all(struct arena *a, const struct schedule_change *c)
{
    struct submission_row *rows = arena_alloc(a, (c->submission_count + 1) * sizeof *rows);

    for (size_t i = 0; i < c->submission_count; i++) {
        rows[i] = c->submissions[i];
        rows[i].workflow = arena_copy(a, rows[i].workflow);
        rows[i].tags = arena_copy(a, rows[i].tags);
        rows[i].reply_to = arena_copy(a, rows[i].reply_to);
    }
    return rows;
}

static void decide_row(struct tick *t, const struct schedule_row *row)
{
    struct schedule_state *st = arena_alloc(&t->arena, sizeof *st);
    struct plan *plan = arena_alloc(&t->arena, sizeof *plan);
    struct schedule *s = NULL;
    struct error e = {0};

    if (schedule_decode(row, &t->arena, &s, st, &e) != ERR_OK) {
        set_aside(t, row, &e);
        return;
    }
    struct schedule_state was = *st;
    struct schedule_change *c = &t->changes[t->count];
    struct buf *doc = &t->docs[t->count++];
    *c = (struct schedule_change){.row = *row};
    plan_decide(s, st, row->run_is_open, t->look.now, &t->arena, plan);
    submit_all(t, s, plan, c);
    schedule_encode(s, st, t->look.now, doc, &c->row);
    c->submissions = copy_all(&t->arena, c); /* the schedule goes now */
    c->row.workflow = row->workflow;
    c->row.text = row->text;
    note_told(t, &was, st, row->name);
    if (plan->undo)
        note_undo(t, st->run);
    t->more |= plan->more;
    if (c->row.next_at && (!t->next_at || c->row.next_at < t->next_at))
        t->next_at = c->row.next_at;
    schedule_free(s);
}

static void tick_run(struct store_job *j, struct store *store)
{
    struct tick *t = CONTAINER_OF(j, struct tick, job);
    const struct ticker *tk = CONTAINER_OF(t, struct ticker, tick);

    t->err = store->ops->schedules->look(store, &t->look, &t->arena, &t->error);
    if (t->err != ERR_OK)
        return;
    int64_t began = steady_of(tk); /* a slow look is no reason to decide fewer of them */
    t->more = t->look.more;
    t->next_at = t->look.next_at;
    for (size_t i = 0; i < t->look.count; i++) {
        if (i > 0 && steady_of(tk) - began > EFFORT_MS) {
            t->more = true;
            break;
        }
        decide_row(t, &t->look.rows[i]);
    }
    if (t->count > 0)
        t->err = store->ops->schedules->write(store, t->changes, t->count, &t->fence, &t->error);
}

/* ---- on the loop ---- */

static void tell(const struct told *t)
{
    if (t->is_news)
        log_line(LOG_WARN,
                 "event=schedule_gap schedule=%s missed=%" PRIu64 " skipped=%" PRIu64
                 " failed=%" PRIu64,
                 t->name, t->missed, t->skipped, t->failed);
}

static void take_done(struct ticker *tk)
{
    struct tick *t = &tk->tick;
    bool submitted = false;

    tk->stats.wait_count = t->look.wait_count; /* as it was before these changes */
    for (size_t i = 0; i < t->count; i++) {
        if (!t->changes[i].done) { /* an operator has changed it meanwhile */
            t->more = true;
            continue;
        }
        tk->stats.wait_count += t->changes[i].row.waits;
        tk->stats.wait_count -= t->look.rows[i].waits && tk->stats.wait_count > 0;
        submitted |= t->changes[i].submission_count > 0;
        tk->stats.fired += t->changes[i].submission_count;
        tk->stats.missed += t->told[i].missed;
        tk->stats.skipped += t->told[i].skipped;
        tk->stats.failed += t->told[i].failed;
        tell(&t->told[i]);
    }
    if (t->done.late_ms)
        tk->stats.late_ms = t->done.late_ms;
    if (submitted)
        tk->config.submitted(tk->config.arg);
    for (size_t i = 0; i < t->undo_count && !tk->draining; i++)
        if (t->changes[t->undos[i].change].done) /* else the schedule may want it no more */
            tk->config.undo(tk->config.arg, t->undos[i].run);
}

static void tick_end(struct ticker *tk)
{
    struct tick *t = &tk->tick;

    arena_fini(&t->arena);
    t->arena = (struct arena){0};
    for (size_t i = 0; i < t->count; i++)
        buf_fini(&t->docs[i]);
    t->count = 0;
    tk->busy = false;
}

/* Perhaps some of those that wait for a run were found, and left out. */
static bool may_have_left_waits(const struct tick *t)
{
    bool any = false;

    for (size_t i = 0; t->look.waiting && t->more && i < t->look.count && !any; i++)
        any = t->look.rows[i].waits && !t->look.rows[i].run_is_open;
    return any;
}

static void tick_done(struct store_job *j)
{
    struct tick *t = CONTAINER_OF(j, struct tick, job);
    struct ticker *tk = CONTAINER_OF(t, struct ticker, tick);
    int64_t now = now_of(tk);

    if (t->err == ERR_OK) {
        take_done(tk);
        tk->due_at = t->more ? now : t->next_at;
    } else {
        log_line(LOG_DEBUG, "event=schedules_wait reason=\"%s\"", t->error.text);
        tk->due_at = now + LOOK_MS;
    }
    if (t->err == ERR_OK && may_have_left_waits(t))
        tk->waiting_at = 0;
    else if (t->look.waiting && t->err != ERR_OK)
        tk->waiting_at = min_i64(tk->waiting_at, steady_of(tk) + LOOK_MS);
    tick_end(tk);
}

static void tick_begin(struct ticker *tk, const struct fence *fence)
{
    struct tick *t = &tk->tick;
    int64_t steady = steady_of(tk);
    bool waiting = tk->ended || steady >= tk->waiting_at;

    ASSERT(!tk->busy);
    ASSERT(fence->lease.len < sizeof t->lease);
    memcpy(t->lease, fence->lease.ptr, fence->lease.len);
    t->fence = (struct fence){{t->lease, fence->lease.len}, fence->epoch};
    t->look = (struct schedule_look){.now = now_of(tk),
                                     .limit = tk->config.batch_max,
                                     .waiting = waiting};
    t->count = t->undo_count = 0;
    t->done = (struct ticker_stats){0};
    t->error = (struct error){0};
    t->job = (struct store_job){.run = tick_run, .done = tick_done};
    if (waiting)
        tk->waiting_at =
            steady + max_i64(LOOK_MS, (int64_t)tk->stats.wait_count * MS_PER_S / WAITS_PER_S);
    tk->busy = true;
    tk->hinted = tk->ended = false;
    tk->config.store->submit(tk->config.store, &t->job);
}

static bool is_due(const struct ticker *tk, int64_t now)
{
    return tk->hinted || tk->ended || (tk->due_at && now >= tk->due_at)
           || (tk->stats.wait_count > 0 && steady_of(tk) >= tk->waiting_at);
}

int64_t ticker_turn(struct ticker *tk)
{
    struct fence fence;
    int64_t now = now_of(tk);

    if (tk->busy || tk->draining)
        return 0;
    if (!tk->config.leads(tk->config.arg, &fence)) {
        tk->led = false;
        return now + LOOK_MS;
    }
    tk->hinted |= !tk->led;
    tk->led = true;
    if (is_due(tk, now)) {
        tick_begin(tk, &fence);
        return 0;
    }
    if (tk->config.shared && (!tk->due_at || tk->due_at > now + OTHERS_MS))
        tk->due_at = now + OTHERS_MS;
    if (tk->stats.wait_count > 0) /* what waits for a run is not due by time */
        return tk->due_at ? min_i64(tk->due_at, now + LOOK_MS) : now + LOOK_MS;
    return tk->due_at;
}

void ticker_changed(struct ticker *tk)
{
    tk->hinted = true;
}

/* Only runs that the server named have an @. */
void ticker_task_ended(struct ticker *tk, struct slice task)
{
    if (tk->stats.wait_count > 0 && memchr(task.ptr, '@', task.len))
        tk->ended = true;
}

void ticker_drain(struct ticker *tk)
{
    tk->draining = true;
}

int64_t ticker_due_at(const struct ticker *tk)
{
    return tk->due_at;
}

bool ticker_is_busy(const struct ticker *tk)
{
    return tk->busy;
}

void ticker_stats(const struct ticker *tk, struct ticker_stats *ret)
{
    *ret = tk->stats;
}

struct ticker *ticker_new(const struct ticker_config *c)
{
    struct ticker *tk = calloc(1, sizeof *tk);

    ASSERT(tk);
    ASSERT(c->batch_max <= BATCH_MAX);
    tk->config = *c;
    if (tk->config.batch_max == 0)
        tk->config.batch_max = BATCH_MAX;
    return tk;
}

void ticker_free(struct ticker *tk)
{
    if (!tk)
        return;
    ASSERT(!tk->busy);
    free(tk);
}
