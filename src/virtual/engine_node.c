/* The nodes of an engine (engine_node.h): opens scheduler, supervisor, intake and the reader of
 * notices (engine_family.c) over the store in memory, gives them turns, and lets them die, hang and
 * come back. A store job runs as soon as the turn that submitted it is over. sim/node.c is the same
 * among more faults. */

#include "virtual/engine_node.h"

#include <stdio.h>

#include "base/fault.h"
#include "store/memory/memory.h"

enum {
    INTERVAL_MS = ENGINE_INTERVAL_MS,
    BELIEVED_MS = 24 * 3600 * 1000, /* time of the store, if the clock is behind it */
};

/* How long a call is parked: longer than any test. */
#define WAIT_MS INT64_C(3000000000000)

/* ---- the store's queue ---- */

static void submit_job(struct store_queue *q, struct store_job *j)
{
    struct engine_node *n = CONTAINER_OF(q, struct engine_node, queue);

    list_push(&n->jobs, &j->link);
}

/* If it hangs during a job, that is completed when it wakes up. */
static bool run_jobs(struct engine_node *n)
{
    bool any = false;

    for (struct link *l = NULL; !n->is_hung && (l = list_pop(&n->jobs)); any = true) {
        struct store_job *j = CONTAINER_OF(l, struct store_job, link);
        n->engine->acting = n;
        j->run(j, n->engine->store);
        if (n->is_hung)
            n->held = j;
        else
            j->done(j);
    }
    return any;
}

void result_copy(struct arena *a, const struct work_result *r, struct work_result *ret)
{
    *ret = *r;
    ret->token = arena_copy(a, r->token);
    ret->output = arena_copy(a, r->output);
    ret->error.code = arena_copy(a, r->error.code);
    ret->error.message = arena_copy(a, r->error.message);
}

/* ---- what the parts report ---- */

static int64_t clock_now(void *arg)
{
    const struct engine_node *n = arg;

    return engine_clock(n->engine);
}

void engine_node_park(void *arg, uint64_t life)
{
    struct served *s = arg;
    if (life != s->node->life)
        return;
    struct work *w = work_new();
    w->agent_name = arena_copy(&w->arena, s->name);
    w->instance_name = SLICE("test");
    w->max = WORK_MAX;
    w->wait_ms = WAIT_MS;
    w->user = s;
    s->node->is_woken = true;
    scheduler_work(s->node->scheduler, w);
}

static void report_results(const struct engine_node *n, const struct work *w)
{
    const struct engine_config *c = &n->engine->config;
    const struct sent *s = w->max == 0 ? w->user : NULL;

    for (size_t i = 0; i < w->result_count && !(s && s->is_known); i++)
        c->result(c->arg, w->results[i].token, w->results[i].status);
}

static void remember_home(struct engine_node *n, struct slice token)
{
    struct engine *g = n->engine;

    if (engine_is_several(g))
        map_put(&g->homes, arena_copy(&g->arena, token), n);
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct engine_node *n = arg;
    struct engine *g = n->engine;
    struct served *s = w->user;

    if (n->is_dying)
        return false;
    ASSERT(!w->failed); /* the store in memory takes everything */
    report_results(n, w);
    if (w->max == 0 && w->user)
        sent_answered(n, w->user);
    for (size_t i = 0; i < w->stop_count; i++)
        g->config.stop(g->config.arg, w->stop[i]);
    for (size_t i = 0; i < w->request_count; i++) {
        remember_home(n, w->requests[i].token);
        g->config.request(g->config.arg, s->name, &w->requests[i]);
    }
    if (w->max > 0)
        agenda_add(&g->agenda, g->now, engine_node_park, s, n->life);
    return true;
}

static void on_ask_answer(void *arg, struct ask *a)
{
    struct engine_node *n = arg;
    struct asker *asker = a->user;

    if (n->is_dying && asked_forget(n->engine, a, true))
        return; /* a client asks again; what the node asks itself has to end */
    if (n->is_closing)
        return;
    (void)asked_forget(n->engine, a, false);
    n->is_woken = true;
    asker->answered(a);
}

static void on_task_ended(void *arg, const struct task_end *end)
{
    (void)arg;
    (void)end;
}

bool engine_node_reports(struct engine *g, const struct task *t)
{
    uint64_t *newest = engine_is_several(g) ? map_get(&g->reported, t->id) : NULL;

    if (!engine_is_several(g))
        return true;
    if (!newest) {
        newest = arena_alloc(&g->arena, sizeof *newest);
        *newest = 0;
        map_put(&g->reported, arena_copy(&g->arena, t->id), newest);
    }
    if (t->revision < *newest)
        return false;
    *newest = t->revision;
    return true;
}

/* A node that hung may report what is long past. */
static void on_task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    const struct engine_node *n = arg;
    struct engine *g = n->engine;

    if (!n->is_dying && engine_node_reports(g, t))
        g->config.changed(g->config.arg, w, t);
}

static void on_family_told(void *arg)
{
    struct engine_node *n = arg;

    if (n->is_dying)
        return;
    n->is_woken = true;
    intake_wake(n->intake);
    notices_wake(n->notices);
}

static void on_alert(void *arg, const struct task *t)
{
    (void)arg;
    (void)t;
}

static void on_store_trouble(void *arg, const struct error *e)
{
    const struct engine_node *n = arg;
    (void)e;
    ASSERT(n->is_dying); /* the store in memory has none */
}

static void on_requested(void *arg, struct slice id, bool released)
{
    struct engine_node *n = arg;

    if (n->is_dying)
        return;
    n->is_woken = true;
    scheduler_requested(n->scheduler, id, released);
}

static void on_scan_failed(void *arg, const struct error *e)
{
    const struct engine_node *n = arg;
    (void)e;
    ASSERT(n->is_dying);
}

static bool on_wants_lead(void *arg)
{
    const struct engine_node *n = arg;

    return supervisor_wants_lead(n->supervisor);
}

static void on_surveyed(void *arg, const struct survey *v)
{
    const struct engine_node *n = arg;

    supervisor_surveyed(n->supervisor, v);
    if (n->is_dying)
        return;
    intake_surveyed(n->intake, v);
    notices_surveyed(n->notices, v);
}

/* ---- its parts ---- */

static void open_scheduler(struct engine_node *n)
{
    struct engine *g = n->engine;
    const struct scheduler_config config = {.node = slice_of(n->name),
                                            .boot = n->boot,
                                            .shared = engine_is_several(g)};
    const struct clock clock = {clock_now, n};
    const struct outside outside = {.arg = n,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .task_changed = on_task_changed,
                                    .family_told = on_family_told,
                                    .wants_lead = on_wants_lead,
                                    .surveyed = on_surveyed,
                                    .alert = on_alert,
                                    .store_trouble = on_store_trouble};

    n->scheduler = scheduler_new(&config, &n->queue, g->config.workflows, g->key, &clock, &outside);
}

static void open_supervisor(struct engine_node *n)
{
    const struct supervisor_config config = {.holder = slice_of(n->me), .interval_ms = INTERVAL_MS};
    const struct supervisor_outside outside = {.arg = n,
                                               .now = clock_now,
                                               .steady = clock_now,
                                               .requested = on_requested,
                                               .failed = on_scan_failed};

    n->supervisor = supervisor_new(&config, &n->queue, n->engine->config.workflows, &outside);
}

/* The scheduler answers what is left, and nobody is to hear of it. */
void engine_node_close(struct engine_node *n)
{
    n->is_closing = true;
    if (n->is_hung) { /* a process that ends completes nothing */
        n->is_dying = true;
        n->is_hung = false;
        fault_plan = (struct fault_plan){.fire = UINT32_MAX};
        n->held->done(n->held);
        (void)run_jobs(n);
        fault_plan = (struct fault_plan){0};
    }
    ASSERT(list_empty(&n->jobs));
    scheduler_free(n->scheduler);
    n->is_closing = false;
    supervisor_free(n->supervisor);
    intake_free(n->intake);
    notices_free(n->notices);
    n->scheduler = NULL;
}

void engine_node_open(struct engine_node *n)
{
    struct engine *g = n->engine;

    n->queue.submit = submit_job;
    n->boot = engine_is_several(g) ? n->boot + 1 : g->store->ops->boot(g->store);
    (void)snprintf(n->me, sizeof n->me, "%s/%" PRIu64, n->name, n->boot);
    open_scheduler(n);
    open_supervisor(n);
    n->intake = family_intake(n);
    n->notices = family_notices(n);
    n->is_woken = true;
    g->scan_at = engine_clock(g) - INTERVAL_MS;
    g->active_at = g->now;
}

void engine_node_send(struct engine_node *n, struct slice agent, const struct work_result *r,
                      void *user)
{
    struct work *w = work_new();

    w->agent_name = arena_copy(&w->arena, agent);
    w->instance_name = SLICE("test");
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->result_count = 1;
    w->user = user;
    result_copy(&w->arena, r, w->results);
    n->is_woken = true;
    scheduler_work(n->scheduler, w);
}

/* ---- a node that dies, or hangs ---- */

static void tell(const struct engine_node *n, enum engine_life what)
{
    const struct engine_config *c = &n->engine->config;

    if (c->lives)
        c->lives(c->arg, what, slice_of(n->name));
}

/* As a server does: a clock that was set back by up to a day is not believed. Several nodes go by
 * the clock of their database. */
static void set_clock(const struct engine_node *n)
{
    struct engine *g = n->engine;
    int64_t clock = engine_clock(g) + n->outage.clock_ms;

    if (engine_is_several(g))
        return;
    if (n->outage.clock_ms < 0 && clock < n->died_at && n->died_at - clock <= BELIEVED_MS)
        clock = n->died_at;
    g->ahead = clock - g->now;
}

static void start_again(void *arg, uint64_t number)
{
    struct engine_node *n = arg;
    struct engine *g = n->engine;
    (void)number;

    set_clock(n);
    memory_store_boot(g->store);
    engine_node_open(n);
    tell(n, ENGINE_STARTS);
    LIST_FOREACH (l, after, &g->served)
        if (CONTAINER_OF(l, struct served, link)->node == n)
            engine_node_park(CONTAINER_OF(l, struct served, link), n->life);
    sent_again(n);
}

/* What it had in work ends without a trace. */
static void die(struct engine_node *n)
{
    struct engine *g = n->engine;

    engine_node_close(n);
    fault_plan = (struct fault_plan){0};
    n->is_dying = n->is_woken = false;
    n->due_at = n->family_at = INT64_MAX;
    n->life++;
    n->died_at = engine_clock(g);
    sent_lost(n);
    agenda_add(&g->agenda, g->now + n->outage.down_ms, start_again, n, 0);
}

static void wake_up(void *arg, uint64_t life)
{
    struct engine_node *n = arg;
    struct store_job *held = n->held;

    ASSERT(life == n->life);
    n->is_hung = false;
    n->held = NULL;
    n->is_woken = true;
    n->engine->active_at = n->engine->now;
    tell(n, ENGINE_WAKES);
    held->done(held);
}

static void hang(struct engine_node *n)
{
    struct engine *g = n->engine;

    n->is_hung = true;
    agenda_add(&g->agenda, g->now + n->outage.down_ms, wake_up, n, n->life);
    agenda_add(&g->agenda, g->now + ENGINE_TIMEOUT_MS, sent_timed_out, n, n->life);
}

static bool takes_over(const struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++)
        if (b->claims[i].kind == CLAIM_NODE && b->claims[i].row_count > 0)
            return true;
    return false;
}

static void store_is_used(struct engine_node *n, const struct batch *b)
{
    struct engine *g = n->engine;

    for (size_t i = 0; i < b->claim_count; i++)
        if (b->claims[i].row_count > 0)
            g->active_at = g->now;
    if (b->change_count > 0)
        g->active_at = g->now;
    if (engine_is_several(g) && !n->is_dying && takes_over(b))
        tell(n, ENGINE_TAKES_OVER);
}

static enum err asking_commit(struct store *s, struct batch *b, struct arena *a, struct error *e)
{
    struct engine *g = CONTAINER_OF((struct store_ops *)(uintptr_t)s->ops, struct engine, ops);
    struct engine_node *n = g->acting;
    enum engine_fate fate = ENGINE_STORES;

    if (!n->is_dying && b->change_count > 0)
        fate = g->config.commits(g->config.arg, slice_of(n->name), &n->outage);
    if (fate == ENGINE_DIES_AFTER) {
        enum err err = g->inner->commit(s, b, a, e);
        ASSERT(err == ERR_OK);
    }
    if (fate == ENGINE_DIES_BEFORE || fate == ENGINE_DIES_AFTER) {
        n->is_dying = true;
        fault_plan = (struct fault_plan){.fire = UINT32_MAX}; /* it reaches the store no more */
    }
    enum err err = g->inner->commit(s, b, a, e);
    store_is_used(n, b);
    if (fate == ENGINE_HANGS_AFTER)
        hang(n);
    return err;
}

void engine_node_may_die(struct engine *g)
{
    g->inner = g->store->ops;
    g->ops = *g->inner;
    g->ops.commit = asking_commit;
    g->store->ops = &g->ops;
}

/* ---- turns ---- */

/* 0: nothing is due by itself. */
static int64_t sooner(int64_t a, int64_t b)
{
    return b > 0 && b < a ? b : a;
}

bool engine_node_turn(struct engine_node *n)
{
    if (!n->scheduler || n->is_hung)
        return false;
    n->is_woken = false;
    n->due_at = sooner(INT64_MAX, scheduler_turn(n->scheduler));
    n->family_at = sooner(INT64_MAX, intake_turn(n->intake));
    n->family_at = sooner(n->family_at, notices_turn(n->notices));
    n->due_at = min_i64(n->due_at, n->family_at);
    if (engine_is_several(n->engine))
        n->due_at = sooner(n->due_at, supervisor_turn(n->supervisor));
    bool any = run_jobs(n);
    if (n->is_dying) {
        die(n);
        return false;
    }
    if (n->is_hung)
        return false;
    return any || n->is_woken || n->due_at <= engine_clock(n->engine);
}
