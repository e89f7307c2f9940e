/* Runs operations in turns on the event loop: the lease, the asks of a page, their answers. page.c
 * has the store's part; see runner.h. */

#include "operations/runner_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/when.h"

enum {
    LEASE_MS = 10000,
    LEASE_MARGIN_MS = 1000, /* nothing is begun so long before it expires */
    REFRESH_MS = 3000,
    AGAIN_MS = 1000,    /* after a failure of the store */
    ROOM_MS = 20,       /* while others need the room ... */
    ROOM_MAX_MS = 1000, /* ... but one task is asked after this time */
    LISTED_MAX = 64,
};

struct runner {
    struct runner_config config;
    struct runner_outside outside;
    struct store_queue *queue, *background;
    const struct registry *workflows;
    struct slot slots[RUNNER_SLOTS];
    struct runner_stats stats;
    bool stopped, left;
    /* the refresh: reads open operations and takes the lease */
    struct store_job refresh;
    bool refreshing;
    struct arena found; /* of what was read */
    struct operation_page page;
    struct lease lease;
    bool leads; /* result of a refresh: we hold the lease */
    int64_t refresh_now;
    enum err refresh_err;
    struct error refresh_error;
    int64_t refresh_at;    /* steady; INT64_MAX: not scheduled */
    int64_t refresh_began; /* steady */
    int64_t lead_until;    /* steady */
};

static int64_t steady(const struct runner *r)
{
    return r->outside.steady(r->outside.arg);
}

static bool may_begin(const struct runner *r)
{
    return !r->stopped && steady(r) < r->lead_until;
}

static void refresh_soon(struct runner *r, int64_t at)
{
    if (at < r->refresh_at)
        r->refresh_at = at;
}

/* ---- a slot ---- */

static void slot_clear(struct slot *s)
{
    ASSERT(!s->at_work);
    ASSERT(s->open == 0);
    arena_fini(&s->arena);
    arena_fini(&s->page);
    arena_fini(&s->fresh);
    *s = (struct slot){.runner = s->runner, .outside = s->outside};
}

/* The operation is read again, with the changes of others. */
static void slot_leave(struct slot *s)
{
    struct runner *r = s->runner;

    slot_clear(s);
    refresh_soon(r, steady(r));
}

static void tasks_are(struct slot *s, enum page_task_state state)
{
    for (size_t i = 0; i < s->op.page_count; i++) {
        s->tasks[i].state = state;
        s->tasks[i].doubt = state == TASK_TO_CHECK;
    }
}

/* Copies the operation to the slot's arena: this frees what earlier pages of a long operation left
 * there. */
static void op_take(struct slot *s, const struct operation *op)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct arena fresh = {0};
    struct operation_row row;
    struct error e = {0};

    operation_encode(op, &doc, &row);
    enum err err = operation_decode(&fresh, &row, &s->op, &e);
    ASSERT(err == ERR_OK); /* it was just encoded */
    arena_fini(&s->arena);
    arena_fini(&s->page);
    s->arena = fresh;
}

static void load(struct runner *r, const struct operation *op)
{
    struct slot *s = NULL;

    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        if (r->slots[i].used && slice_eq(r->slots[i].op.id, op->id))
            return;
    for (size_t i = 0; i < RUNNER_SLOTS && !s; i++)
        if (!r->slots[i].used)
            s = &r->slots[i];
    if (!s)
        return; /* it waits for another operation to end */
    ASSERT(!s->at_work && s->open == 0);
    s->used = true;
    op_take(s, op);
    s->phase = s->op.page_count > 0 ? PHASE_CHECK : PHASE_PAGE;
    s->page_at = steady(r);
    tasks_are(s, TASK_TO_CHECK);
}

/* ---- outcomes of tasks ---- */

static void count(struct slot *s, size_t i, uint64_t *which, uint64_t *stat)
{
    ASSERT(i < s->op.page_count);
    ASSERT(s->tasks[i].state != TASK_COUNTED);
    (*which)++;
    (*stat)++;
    s->tasks[i].state = TASK_COUNTED;
}

/* Makes "not possible while task o-17 is processed" the same for all tasks. */
static struct slice story_of(const struct ask *a, struct arena *arena)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf name = {0};

    if (a->outcome == ERR_TAKEN)
        return SLICE("its lock is held by another task");
    operation_obstacle(&b, a->refusal, NULL);
    if ((a->outcome == ERR_CONFLICT || a->refusal == OBSTACLE_ADMIN) && b.len > 0)
        return arena_copy(arena, buf_view(&b));
    buf_fmt(&name, "task %.*s ", SLICE_ARG(a->id));
    const char *at = strstr(a->story, name.ptr);
    if (!at)
        return arena_copy(arena, slice_of(a->story));
    buf_add(&b, a->story, (size_t)(at - a->story));
    buf_str(&b, "the task ");
    buf_str(&b, at + name.len);
    return arena_copy(arena, buf_view(&b));
}

static void refused(struct slot *s, size_t i, const struct ask *a)
{
    struct slice why =
        a->outcome == ERR_OK ? SLICE("the task is already in that state") : story_of(a, &s->arena);

    operation_refused(&s->op, why, &s->arena);
    s->runner->stats.refused++;
    s->tasks[i].state = TASK_COUNTED;
}

static void check_again(struct slot *s, size_t i, bool doubt)
{
    s->tasks[i].state = TASK_TO_CHECK;
    s->tasks[i].doubt = doubt;
    s->phase = PHASE_CHECK;
    if (doubt)
        s->not_before = steady(s->runner) + AGAIN_MS;
}

/* A task may be refused because this operation has already changed it: the audit knows. */
static void settle_refused(struct slot *s, size_t i, const struct ask *a)
{
    if (s->tasks[i].doubt)
        check_again(s, i, false);
    else
        refused(s, i, a);
}

static void settle(struct slot *s, size_t i, const struct ask *a)
{
    struct runner_stats *st = &s->runner->stats;

    /* A signal that exists was sent by this operation: its key is the operation's id. */
    if (a->outcome == ERR_OK && a->existed && a->kind != ASK_SIGNAL)
        settle_refused(s, i, a); /* nothing was done */
    else if (a->outcome == ERR_OK)
        count(s, i, &s->op.done, &st->done);
    else if (a->outcome == ERR_NOT_FOUND)
        count(s, i, &s->op.gone, &st->gone);
    else if (a->outcome == ERR_CONFLICT || a->outcome == ERR_TAKEN || a->outcome == ERR_INVALID)
        settle_refused(s, i, a);
    else if (!err_is_transient(a->outcome))
        count(s, i, &s->op.failed, &st->failed);
    else
        check_again(s, i, true); /* it is unknown what was stored */
}

bool runner_owns(const struct runner *r, const struct ask *a)
{
    return (const char *)a >= (const char *)r->slots
           && (const char *)a < (const char *)(r->slots + RUNNER_SLOTS);
}

void runner_answered(struct runner *r, struct ask *a)
{
    struct page_task *t = CONTAINER_OF(a, struct page_task, ask);
    struct slot *s = t->slot;

    ASSERT(runner_owns(r, a));
    ASSERT(t->state == TASK_ASKED);
    ASSERT(s->open > 0);
    s->open--;
    settle(s, (size_t)(t - s->tasks), a);
}

static void ask_one(struct slot *s, size_t i)
{
    struct runner *r = s->runner;
    struct page_task *t = &s->tasks[i];

    ASSERT(t->state == TASK_TO_ASK);
    ASSERT(s->open < OPERATION_PAGE_MAX);
    t->state = TASK_ASKED;
    t->slot = s;
    t->ask = (struct ask){.kind = s->op.kind,
                          .user = t,
                          .id = s->op.page[i],
                          .step = s->op.step,
                          .from = s->op.from,
                          .looked_at = s->op.started_at,
                          .input = s->op.input,
                          .output = s->op.output,
                          .signal = s->op.signal,
                          .is_admin = s->op.by_admin,
                          .bulk = true,
                          .if_open = !(s->op.filter.query.states & 1U << TASK_PROCESSED),
                          .not_after = r->outside.now(r->outside.arg) + r->lead_until - steady(r),
                          .reason = operation_audit_reason(&s->op, &s->page),
                          .actor = s->op.actor};
    s->open++;
    r->stats.asked++;
    r->outside.ask(r->outside.arg, &t->ask);
}

/* False: nothing is left to ask. */
static bool ask_some(struct slot *s)
{
    struct runner *r = s->runner;
    size_t room = r->outside.room(r->outside.arg);
    size_t left = 0;

    if (room == 0 && steady(r) - s->page_at >= ROOM_MAX_MS && s->open == 0) {
        room = 1;
        s->page_at = steady(r); /* the next one is as far away */
    }
    for (size_t i = 0; i < s->op.page_count; i++) {
        if (s->tasks[i].state != TASK_TO_ASK)
            continue;
        if (room > 0) {
            room--;
            ask_one(s, i);
        } else {
            left++;
        }
    }
    if (left > 0 && s->open == 0) /* otherwise an answer comes, and then there is room */
        s->not_before = steady(r) + ROOM_MS;
    return left > 0;
}

/* ---- jobs ---- */

static void submit(struct slot *s, void (*run)(struct store_job *j, struct store *st),
                   void (*done)(struct store_job *j))
{
    ASSERT(!s->at_work);
    ASSERT(s->open == 0);
    s->job = (struct store_job){.run = run, .done = done};
    s->at_work = true;
    s->until = s->runner->lead_until;
    s->err = ERR_OK;
    s->runner->background->submit(s->runner->background, &s->job);
}

static void again_later(struct slot *s)
{
    s->not_before = steady(s->runner) + AGAIN_MS;
}

static void checked(struct store_job *j)
{
    struct slot *s = CONTAINER_OF(j, struct slot, job);
    struct runner_stats *st = &s->runner->stats;

    ASSERT(s->at_work);
    ASSERT(s->phase == PHASE_CHECK);
    s->at_work = false;
    if (s->err != ERR_OK) {
        again_later(s);
        return;
    }
    for (size_t i = 0; i < s->op.page_count; i++) {
        if (s->tasks[i].state != TASK_TO_CHECK)
            continue;
        if (s->did[i])
            count(s, i, &s->op.done, &st->done);
        else if (!s->fits[i])
            count(s, i, &s->op.gone, &st->gone);
        else
            s->tasks[i].state = TASK_TO_ASK;
    }
    s->phase = PHASE_ASK;
    s->page_at = steady(s->runner);
}

/* The next page is stored, so its tasks may be asked. */
static void paged(struct store_job *j)
{
    struct slot *s = CONTAINER_OF(j, struct slot, job);
    struct runner *r = s->runner;

    ASSERT(s->at_work);
    ASSERT(s->phase == PHASE_PAGE);
    s->at_work = false;
    if (s->reload || s->err == ERR_UNKNOWN || s->err == ERR_CONFLICT) {
        s->over = true;
        return;
    }
    if (s->err != ERR_OK) {
        again_later(s);
        return;
    }
    op_take(s, &s->next);
    arena_fini(&s->fresh);
    tasks_are(s, TASK_TO_ASK);
    s->phase = s->op.page_count > 0 ? PHASE_ASK : PHASE_PAGE;
    s->page_at = steady(r);
    s->over = s->op.state != OPERATION_RUNNING;
    if (r->outside.progressed)
        r->outside.progressed(r->outside.arg, &s->op);
}

static void check_begin(struct slot *s)
{
    filter_places(&s->op.filter, s->runner->workflows, &s->page);
    submit(s, page_check_run, checked);
}

static void page_begin(struct slot *s)
{
    arena_fini(&s->fresh);
    filter_places(&s->op.filter, s->runner->workflows, &s->page);
    s->next = s->op;
    s->next.page_count = 0;
    s->next.revision++;
    s->next.ended_at = s->runner->outside.now(s->runner->outside.arg);
    submit(s, page_next_run, paged);
}

/* Rests after a page for as long as it took, and for as long as the rate requires. */
static void rest(struct slot *s)
{
    int64_t took = steady(s->runner) - s->page_at;
    int64_t due = 0;

    if (s->op.rate > 0)
        due = s->page_at + (int64_t)s->op.page_count * MS_PER_S / s->op.rate;
    s->not_before = max_i64(steady(s->runner) + took, due);
}

/* ---- turns ---- */

static bool all_counted(const struct slot *s)
{
    for (size_t i = 0; i < s->op.page_count; i++)
        if (s->tasks[i].state != TASK_COUNTED)
            return false;
    return true;
}

/* Returns in how many ms to call again; -1: when something arrives. */
static int64_t slot_turn(struct slot *s)
{
    struct runner *r = s->runner;

    ASSERT(s->used);
    if (s->at_work || s->open > 0)
        return s->phase == PHASE_ASK && !s->at_work && may_begin(r) && ask_some(s) ? ROOM_MS : -1;
    if (s->over) {
        slot_leave(s);
        return 0;
    }
    if (!may_begin(r))
        return -1;
    if (s->not_before > steady(r))
        return s->not_before - steady(r);
    if (s->phase == PHASE_ASK && all_counted(s)) {
        s->phase = PHASE_PAGE;
        rest(s);
        return max_i64(s->not_before - steady(r), 0);
    }
    if (s->phase == PHASE_CHECK)
        check_begin(s);
    else if (s->phase == PHASE_PAGE)
        page_begin(s);
    else if (ask_some(s))
        return ROOM_MS;
    return -1;
}

static void refresh_run(struct store_job *j, struct store *st)
{
    struct runner *r = CONTAINER_OF(j, struct runner, refresh);
    const struct operation_query q = {.open = true, .limit = LISTED_MAX};
    const struct lease_try want = {.name = SLICE(OPERATION_LEASE),
                                   .holder = r->config.holder,
                                   .now = r->refresh_now,
                                   .length_ms = r->left ? 0 : r->config.lease_ms};

    r->leads = false;
    r->page = (struct operation_page){0};
    r->refresh_err = ERR_OK;
    if (!r->left)
        r->refresh_err = st->ops->operations->list(st, &q, &r->found, &r->page, &r->refresh_error);
    if (r->refresh_err != ERR_OK || (r->page.count == 0 && !r->left))
        return;
    r->refresh_err = st->ops->lease(st, &want, &r->found, &r->lease, &r->refresh_error);
    r->leads = r->refresh_err == ERR_OK && slice_eq(r->lease.holder, r->config.holder);
}

static void take_found(struct runner *r)
{
    r->lead_until = r->refresh_began + r->config.lease_ms - LEASE_MARGIN_MS;
    for (size_t i = r->page.count; i-- > 0;) { /* oldest first */
        CLEANUP(arena_fini) struct arena a = {0};
        struct operation op;
        struct error e = {0};
        if (operation_decode(&a, &r->page.rows[i], &op, &e) == ERR_OK)
            load(r, &op);
    }
}

/* Another node works on them now. */
static void give_up_all(struct runner *r)
{
    r->lead_until = 0;
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        r->slots[i].over |= r->slots[i].used;
}

static bool any_used(const struct runner *r)
{
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        if (r->slots[i].used)
            return true;
    return false;
}

static void refresh_done(struct store_job *j)
{
    struct runner *r = CONTAINER_OF(j, struct runner, refresh);

    ASSERT(r->refreshing);
    r->refreshing = false;
    if (r->leads && !r->stopped)
        take_found(r);
    else if (r->refresh_err == ERR_OK && r->page.count > 0)
        give_up_all(r);
    if (r->refresh_err != ERR_OK)
        refresh_soon(r, steady(r) + AGAIN_MS);
    else if (r->config.shared || any_used(r))
        refresh_soon(r, steady(r) + r->config.refresh_ms);
    arena_fini(&r->found);
}

static void refresh_begin(struct runner *r)
{
    ASSERT(!r->refreshing);
    r->refreshing = true;
    r->refresh_at = INT64_MAX;
    r->refresh_began = steady(r);
    r->refresh_now = r->outside.now(r->outside.arg);
    r->refresh = (struct store_job){.run = refresh_run, .done = refresh_done};
    r->queue->submit(r->queue, &r->refresh);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : min_i64(a, b);
}

/* Gives up the lease, so that other nodes need not wait until it expires. */
static void leave(struct runner *r)
{
    if (r->left || runner_is_busy(r))
        return;
    r->left = true;
    if (r->lead_until > 0)
        refresh_begin(r);
}

int64_t runner_turn(struct runner *r)
{
    int64_t delay = -1;

    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        if (r->slots[i].used)
            delay = sooner(delay, slot_turn(&r->slots[i]));
    if (r->stopped) {
        leave(r);
        return delay;
    }
    if (!r->refreshing && steady(r) >= r->refresh_at)
        refresh_begin(r);
    if (!r->refreshing && r->refresh_at != INT64_MAX)
        delay = sooner(delay, max_i64(r->refresh_at - steady(r), 0));
    return delay;
}

void runner_refresh(struct runner *r)
{
    refresh_soon(r, steady(r));
}

void runner_stop(struct runner *r)
{
    r->stopped = true;
}

bool runner_is_busy(const struct runner *r)
{
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        if (r->slots[i].at_work || r->slots[i].open > 0)
            return true;
    return r->refreshing;
}

bool runner_has_jobs(const struct runner *r)
{
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        if (r->slots[i].at_work)
            return true;
    return r->refreshing;
}

void runner_stats(const struct runner *r, struct runner_stats *ret)
{
    *ret = r->stats;
    ret->running = 0;
    ret->lead_until = r->stopped ? 0 : r->lead_until;
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        ret->running += r->slots[i].used;
}

struct runner *runner_new(const struct runner_config *c, struct store_queue *queue,
                          struct store_queue *background, const struct registry *workflows,
                          const struct runner_outside *outside)
{
    struct runner *r = calloc(1, sizeof *r);

    ASSERT(r);
    r->config = *c;
    r->config.lease_ms = c->lease_ms ? c->lease_ms : LEASE_MS;
    r->config.refresh_ms = c->refresh_ms ? c->refresh_ms : REFRESH_MS;
    r->outside = *outside;
    r->queue = queue;
    r->background = background;
    r->workflows = workflows;
    for (size_t i = 0; i < RUNNER_SLOTS; i++)
        r->slots[i] = (struct slot){.runner = r, .outside = &r->outside};
    return r;
}

void runner_free(struct runner *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < RUNNER_SLOTS; i++) {
        arena_fini(&r->slots[i].arena);
        arena_fini(&r->slots[i].page);
        arena_fini(&r->slots[i].fresh);
    }
    arena_fini(&r->found);
    free(r);
}
