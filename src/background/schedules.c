/*
 * Decides the moments of schedules that are due, as this node does while it leads: see schedules.h.
 * tick_run is on the store's thread, all else on the event loop. What a moment means is decided by
 * schedule/plan.h.
 */

#include "background/schedules.h"

#include <stdlib.h>

#include "background/room.h"
#include "background/submission_inbox.h"
#include "base/log.h"
#include "base/when.h"
#include "node/node.h"
#include "schedule/row.h"
#include "store/job.h"

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

/* A run that is to be undone because the next moment is due. */
struct undo {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct ask ask;
    struct schedules *schedules;
    char id[RUN_ID_SIZE];
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
    char undos[UNDOS_MAX][RUN_ID_SIZE];
    size_t undo_count;
    struct schedules_stats done;
    bool more;       /* there is more to do at once */
    int64_t next_at; /* when something is due next; 0: nothing is */
    struct arena arena;
    struct buf docs[2 * BATCH_MAX];
    enum err err;
    struct error error;
};

struct schedules {
    struct server *server;
    struct tick tick;
    bool busy, hinted, ended, led;
    int64_t due_at;     /* by the server's clock: of the next look; 0: none is due by time */
    int64_t waiting_at; /* steady: not before then those are looked at that wait for a run */
    size_t undos;       /* that are asked for */
    struct schedules_stats stats;
};

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
    memcpy(t->undos[t->undo_count], run.ptr, run.len);
    t->undos[t->undo_count++][run.len] = 0;
}

/* The submissions of a plan; what cannot be evaluated is on record instead. */
static void submit_all(struct tick *t, const struct schedule *s, struct schedule_state *st,
                       const struct plan *plan, struct schedule_change *c)
{
    struct submission_row *rows = arena_alloc(&t->arena, (plan->fire_count + 1) * sizeof *rows);
    struct error e = {0};

    for (size_t i = 0; i < plan->fire_count; i++) {
        const struct fire *f = &plan->fires[i];
        struct slice id = run_id(s->name, f->moment, &t->arena);
        struct submission_row *row = &rows[c->submission_count];
        if (run_submission(s, schedule_person(&c->row), id, f, t->look.now, &t->arena, row, &e)
            != ERR_OK) {
            plan_failed(s, st, f, slice_of(e.text), t->look.now, &t->arena);
            continue;
        }
        c->submission_count++;
        t->done.late_ms = t->look.now - schedule_due_at(s, f->moment);
    }
    c->submissions = rows;
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
    submit_all(t, s, st, plan, c);
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
    int64_t began = server_steady(NULL);

    t->err = store->ops->schedules->look(store, &t->look, &t->arena, &t->error);
    if (t->err != ERR_OK)
        return;
    t->more = t->look.more;
    t->next_at = t->look.next_at;
    for (size_t i = 0; i < t->look.count; i++) {
        if (i > 0 && server_steady(NULL) - began > EFFORT_MS) {
            t->more = true;
            break;
        }
        decide_row(t, &t->look.rows[i]);
    }
    if (t->count > 0)
        t->err = store->ops->schedules->write(store, t->changes, t->count, &t->fence, &t->error);
}

/* ---- on the loop ---- */

static void undo_answered(struct ask *a)
{
    struct undo *u = a->user;

    u->schedules->undos--;
    log_line(LOG_INFO, "event=schedule_undo task=%s outcome=%s", u->id,
             a->outcome == ERR_OK ? "accepted" : "refused");
    free(u);
}

/* If it is refused, the moment waits. */
static void ask_undo(struct schedules *s, const char *run)
{
    struct undo *u = calloc(1, sizeof *u);

    ASSERT(u);
    u->answered = undo_answered;
    u->schedules = s;
    memcpy(u->id, run, strlen(run) + 1);
    u->ask = (struct ask){.kind = ASK_CANCEL,
                          .user = u,
                          .id = slice_of(u->id),
                          .actor = SLICE(SCHEDULE_SOURCE),
                          .reason = SLICE("the next moment of the schedule is due"),
                          .if_open = true};
    s->undos++;
    server_ask(s->server, &u->ask);
}

static void tell(const struct told *t)
{
    if (t->is_news)
        log_line(LOG_WARN,
                 "event=schedule_gap schedule=%s missed=%" PRIu64 " skipped=%" PRIu64
                 " failed=%" PRIu64,
                 t->name, t->missed, t->skipped, t->failed);
}

static void take_done(struct schedules *s)
{
    struct tick *t = &s->tick;
    bool submitted = false;

    s->stats.wait_count = t->look.wait_count; /* as it was before these changes */
    for (size_t i = 0; i < t->count; i++) {
        if (!t->changes[i].done) { /* an operator has changed it meanwhile */
            t->more = true;
            continue;
        }
        s->stats.wait_count += t->changes[i].row.waits;
        s->stats.wait_count -= t->look.rows[i].waits && s->stats.wait_count > 0;
        submitted |= t->changes[i].submission_count > 0;
        s->stats.fired += t->changes[i].submission_count;
        s->stats.missed += t->told[i].missed;
        s->stats.skipped += t->told[i].skipped;
        s->stats.failed += t->told[i].failed;
        tell(&t->told[i]);
    }
    if (t->done.late_ms)
        s->stats.late_ms = t->done.late_ms;
    if (submitted)
        inbox_wake(s->server);
    for (size_t i = 0; i < t->undo_count && !s->server->draining; i++)
        ask_undo(s, t->undos[i]);
}

static void tick_end(struct schedules *s)
{
    struct tick *t = &s->tick;

    arena_fini(&t->arena);
    t->arena = (struct arena){0};
    for (size_t i = 0; i < t->count; i++)
        buf_fini(&t->docs[i]);
    t->count = 0;
    s->busy = false;
    ASSERT(s->server->load.exchanges > 0);
    s->server->load.exchanges--;
}

static void tick_done(struct store_job *j)
{
    struct tick *t = CONTAINER_OF(j, struct tick, job);
    struct schedules *s = CONTAINER_OF(t, struct schedules, tick);
    int64_t now = server_now(s->server);

    if (t->err == ERR_OK) {
        take_done(s);
        s->due_at = t->more ? now : t->next_at;
    } else {
        log_line(LOG_DEBUG, "event=schedules_wait reason=\"%s\"", t->error.text);
        s->due_at = now + LOOK_MS;
    }
    tick_end(s);
}

static void tick_begin(struct schedules *s, const struct fence *fence)
{
    struct server *sv = s->server;
    struct tick *t = &s->tick;
    int64_t steady = server_steady(NULL);
    bool waiting = s->ended || steady >= s->waiting_at;

    ASSERT(!s->busy);
    ASSERT(fence->lease.len < sizeof t->lease);
    memcpy(t->lease, fence->lease.ptr, fence->lease.len);
    t->fence = (struct fence){{t->lease, fence->lease.len}, fence->epoch};
    t->look = (struct schedule_look){.now = server_now(sv), .limit = BATCH_MAX, .waiting = waiting};
    t->count = t->undo_count = 0;
    t->done = (struct schedules_stats){0};
    t->error = (struct error){0};
    t->job = (struct store_job){.run = tick_run, .done = tick_done};
    if (waiting)
        s->waiting_at =
            steady + max_i64(LOOK_MS, (int64_t)s->stats.wait_count * MS_PER_S / WAITS_PER_S);
    s->busy = true;
    s->hinted = s->ended = false;
    sv->load.exchanges++;
    sv->store->submit(sv->store, &t->job);
}

static bool leads(const struct server *sv, struct fence *ret)
{
    int64_t until = 0;

    return supervisor_leads(sv->supervisor, ret, &until)
           && (!sv->config.store->shared || server_steady(NULL) < until);
}

static bool is_due(const struct schedules *s, int64_t now)
{
    return s->hinted || s->ended || (s->due_at && now >= s->due_at)
           || (s->stats.wait_count > 0 && server_steady(NULL) >= s->waiting_at);
}

static int64_t schedules_turn(struct server *sv)
{
    struct schedules *s = sv->background->schedules;
    struct fence fence;
    int64_t now = server_now(sv);

    if (s->busy || sv->draining)
        return 0;
    if (!leads(sv, &fence)) {
        s->led = false;
        return now + LOOK_MS;
    }
    s->hinted |= !s->led;
    s->led = true;
    if (is_due(s, now)) {
        tick_begin(s, &fence);
        return 0;
    }
    if (sv->config.store->shared && (!s->due_at || s->due_at > now + OTHERS_MS))
        s->due_at = now + OTHERS_MS;
    if (s->stats.wait_count > 0) /* what waits for a run is not due by time */
        return s->due_at ? min_i64(s->due_at, now + LOOK_MS) : now + LOOK_MS;
    return s->due_at;
}

void schedules_changed(struct server *sv)
{
    sv->background->schedules->hinted = true;
}

/* Only runs that the server named have an @. */
void schedules_task_ended(struct server *sv, struct slice task)
{
    struct schedules *s = sv->background->schedules;

    if (s->stats.wait_count > 0 && memchr(task.ptr, '@', task.len))
        s->ended = true;
}

void schedules_stats(const struct server *sv, struct schedules_stats *ret)
{
    *ret = sv->background->schedules->stats;
}

static enum err schedules_open(struct server *sv, struct error *e)
{
    struct schedules *s = calloc(1, sizeof *s);
    (void)e;

    ASSERT(s);
    s->server = sv;
    sv->background->schedules = s;
    return ERR_OK;
}

static bool schedules_are_drained(const struct server *sv)
{
    return !sv->background->schedules->busy && sv->background->schedules->undos == 0;
}

static bool schedules_are_busy(const struct server *sv)
{
    return sv->background->schedules->busy;
}

static void schedules_free(struct server *sv)
{
    ASSERT(!sv->background->schedules->busy);
    free(sv->background->schedules);
}

const struct part schedules_part = {
    .name = "schedules",
    .open = schedules_open,
    .turn = schedules_turn,
    .is_drained = schedules_are_drained,
    .is_busy = schedules_are_busy,
    .free = schedules_free,
};
