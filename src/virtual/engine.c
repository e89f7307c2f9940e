/* One node in memory and in virtual time (engine.h): opens scheduler, supervisor, intake and the
 * reader of notices (engine_family.c) over a store in memory, and gives them turns. A store job
 * runs as soon as the turn that submitted it is over. sim/node.c is the same among faults. */

#include "virtual/engine.h"

#include <stdlib.h>

#include "store/memory/memory.h"
#include "supervisor/supervisor.h"
#include "virtual/engine_family.h"

enum {
    INTERVAL_MS = 1000, /* of the supervisor */
    GRACE_MS = 60000,   /* a node that starts gives everything more time: it started before */
    ROUNDS_MAX = 20000, /* turns at one moment */

};

/* How long a call is parked: longer than any test. */
#define WAIT_MS INT64_C(3000000000000)

/* An agent with one instance, whose call is always parked. */
struct served {
    struct engine *engine;
    struct slice name;
    struct link link;
};

struct engine {
    struct engine_config config;
    struct agenda agenda;
    struct arena arena;
    int64_t now;
    struct store *store;
    struct store_queue queue;
    struct link jobs;
    struct token_key *key;
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct intake *intake;
    struct notices *notices;
    struct link served;
    int64_t scan_at; /* the last one, or the one that was left out last */
    int64_t due_at;  /* by the parts' own account, INT64_MAX: never */
    bool is_woken;   /* something arrived since the last turn */
    bool is_stuck;
};

/* ---- the store's queue ---- */

static void submit_job(struct store_queue *q, struct store_job *j)
{
    struct engine *g = CONTAINER_OF(q, struct engine, queue);

    list_push(&g->jobs, &j->link);
}

static bool run_jobs(struct engine *g)
{
    bool any = false;

    for (struct link *l = NULL; (l = list_pop(&g->jobs)); any = true) {
        struct store_job *j = CONTAINER_OF(l, struct store_job, link);
        j->run(j, g->store);
        j->done(j);
    }
    return any;
}

/* ---- what the parts report ---- */

static int64_t clock_now(void *arg)
{
    return ((const struct engine *)arg)->now;
}

static void park(void *arg, uint64_t n)
{
    struct served *s = arg;
    struct work *w = work_new();
    (void)n;

    w->agent_name = arena_copy(&w->arena, s->name);
    w->instance_name = SLICE("test");
    w->max = WORK_MAX;
    w->wait_ms = WAIT_MS;
    w->user = s;
    s->engine->is_woken = true;
    scheduler_work(s->engine->scheduler, w);
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct engine *g = arg;
    struct served *s = w->user;

    ASSERT(!w->failed); /* the store in memory takes everything */
    for (size_t i = 0; i < w->result_count; i++)
        g->config.result(g->config.arg, w->results[i].token, w->results[i].status);
    for (size_t i = 0; i < w->stop_count; i++)
        g->config.stop(g->config.arg, w->stop[i]);
    for (size_t i = 0; i < w->request_count; i++)
        g->config.request(g->config.arg, s->name, &w->requests[i]);
    if (w->max > 0)
        agenda_add(&g->agenda, g->now, park, s, 0);
    return true;
}

static void on_ask_answer(void *arg, struct ask *a)
{
    struct engine *g = arg;
    struct asker *asker = a->user;

    g->is_woken = true;
    asker->answered(a);
}

static void on_task_ended(void *arg, const struct task *t)
{
    (void)arg;
    (void)t;
}

static void on_task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    const struct engine *g = arg;

    g->config.changed(g->config.arg, w, t);
}

static void on_family_told(void *arg)
{
    struct engine *g = arg;

    g->is_woken = true;
    intake_wake(g->intake);
    notices_wake(g->notices);
}

static void on_alert(void *arg, const struct task *t)
{
    (void)arg;
    (void)t;
}

static void on_store_trouble(void *arg, const struct error *e)
{
    (void)arg;
    (void)e;
    UNREACHABLE(); /* the store in memory has none */
}

static void on_requested(void *arg, struct slice id, bool released)
{
    struct engine *g = arg;

    g->is_woken = true;
    scheduler_requested(g->scheduler, id, released);
}

static void on_scan_failed(void *arg, const struct error *e)
{
    (void)arg;
    (void)e;
    UNREACHABLE();
}

/* ---- opening and closing ---- */

static void open_scheduler(struct engine *g)
{
    const struct scheduler_config config = {.node = SLICE("test"), .boot = 1};
    const struct clock clock = {clock_now, g};
    const struct outside outside = {.arg = g,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .task_changed = on_task_changed,
                                    .family_told = on_family_told,
                                    .alert = on_alert,
                                    .store_trouble = on_store_trouble};

    g->key = token_key_new(g->store->ops->secret(g->store));
    g->scheduler = scheduler_new(&config, &g->queue, g->config.workflows, g->key, &clock, &outside);
}

static void open_supervisor(struct engine *g)
{
    const struct supervisor_config config = {.holder = SLICE("test/1"), .interval_ms = INTERVAL_MS};
    const struct supervisor_outside outside = {.arg = g,
                                               .now = clock_now,
                                               .steady = clock_now,
                                               .requested = on_requested,
                                               .failed = on_scan_failed};

    g->supervisor = supervisor_new(&config, &g->queue, g->config.workflows, &outside);
}

struct engine *engine_new(const struct engine_config *c)
{
    struct engine *g = calloc(1, sizeof *g);

    ASSERT(g);
    g->config = *c;
    g->now = c->now - GRACE_MS;
    g->store = memory_store_new();
    g->queue.submit = submit_job;
    list_init(&g->jobs);
    list_init(&g->served);
    open_scheduler(g);
    open_supervisor(g);
    g->intake = family_intake(g, &g->queue, c->workflows);
    g->notices = family_notices(g, &g->queue);
    g->is_woken = true;
    g->scan_at = g->now - INTERVAL_MS;
    while (engine_step(g, c->now))
        ;
    return g;
}

void engine_free(struct engine *g)
{
    if (!g)
        return;
    ASSERT(list_empty(&g->jobs));
    intake_free(g->intake);
    notices_free(g->notices);
    scheduler_free(g->scheduler);
    supervisor_free(g->supervisor);
    token_key_free(g->key);
    g->store->ops->close(g->store);
    agenda_fini(&g->agenda);
    arena_fini(&g->arena);
    free(g);
}

struct registry *engine_workflows(const struct engine *g)
{
    return g->config.workflows;
}

int64_t engine_now(const struct engine *g)
{
    return g->now;
}

struct agenda *engine_agenda(struct engine *g)
{
    return &g->agenda;
}

bool engine_is_stuck(const struct engine *g)
{
    return g->is_stuck;
}

/* ---- what arrives ---- */

void engine_serve(struct engine *g, struct slice agent)
{
    LIST_FOREACH (l, after, &g->served)
        if (slice_eq(CONTAINER_OF(l, struct served, link)->name, agent))
            return;
    struct served *s = arena_alloc(&g->arena, sizeof *s);
    s->engine = g;
    s->name = arena_copy(&g->arena, agent);
    list_push(&g->served, &s->link);
    park(s, 0);
}

void engine_result(struct engine *g, struct slice agent, const struct work_result *r)
{
    struct work *w = work_new();

    w->agent_name = arena_copy(&w->arena, agent);
    w->instance_name = SLICE("test");
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->result_count = 1;
    *w->results = *r;
    w->results->token = arena_copy(&w->arena, r->token);
    w->results->output = arena_copy(&w->arena, r->output);
    w->results->error.code = arena_copy(&w->arena, r->error.code);
    w->results->error.message = arena_copy(&w->arena, r->error.message);
    g->is_woken = true;
    scheduler_work(g->scheduler, w);
}

void engine_heartbeat(struct engine *g, struct slice agent, struct slice token)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct heartbeat beat = {.token = token};
    struct heartbeats call = {.agent_name = agent,
                              .instance_name = SLICE("test"),
                              .list = &beat,
                              .count = 1,
                              .arena = &a};

    g->is_woken = true;
    scheduler_heartbeats(g->scheduler, &call);
}

void engine_ask(struct engine *g, struct ask *a)
{
    g->is_woken = true;
    scheduler_ask(g->scheduler, a);
}

/* ---- time ---- */

/* 0: nothing is due by itself. */
static int64_t sooner(int64_t a, int64_t b)
{
    return b > 0 && b < a ? b : a;
}

/* The first scan that finds an overdue row; INT64_MAX: there is none to come. */
static int64_t next_scan(struct engine *g, int64_t before)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct row_page page = {0};
    struct error e = {0};

    if (before <= g->scan_at)
        return INT64_MAX;
    enum err err = g->store->ops->overdue(g->store, before, 0, 0, 1, &a, &page, &e);
    ASSERT(err == ERR_OK);
    if (page.count == 0)
        return INT64_MAX;
    int64_t late = max_i64(page.rows[0].wake_at - g->scan_at, 1);
    return g->scan_at + (late + INTERVAL_MS - 1) / INTERVAL_MS * INTERVAL_MS;
}

/* Scans before this one would have found nothing. */
static void scan(struct engine *g)
{
    if (g->now - g->scan_at > INTERVAL_MS)
        supervisor_left_out(g->supervisor);
    g->scan_at = g->now;
    (void)supervisor_turn(g->supervisor);
}

/* Turns until nothing is due at this moment. */
static void settle(struct engine *g)
{
    for (int rounds = 0;; rounds++) {
        g->is_woken = false;
        g->due_at = sooner(INT64_MAX, scheduler_turn(g->scheduler));
        g->due_at = sooner(g->due_at, intake_turn(g->intake));
        g->due_at = sooner(g->due_at, notices_turn(g->notices));
        bool any = run_jobs(g);
        if (!any && !g->is_woken && g->due_at > g->now)
            return;
        if (rounds == ROUNDS_MAX) {
            g->is_stuck = true;
            return;
        }
    }
}

bool engine_step(struct engine *g, int64_t until)
{
    struct occurrence o;

    if (g->is_stuck)
        return false;
    if (g->is_woken) {
        settle(g);
        return true;
    }
    int64_t next = min_i64(agenda_next_at(&g->agenda), g->due_at);
    int64_t scan_at = next_scan(g, min_i64(next, until));
    next = min_i64(next, scan_at);
    if (next > until) {
        g->now = until == INT64_MAX ? g->now : until;
        return false;
    }
    g->now = max_i64(g->now, next);
    if (scan_at <= g->now)
        scan(g);
    while (agenda_take(&g->agenda, g->now, &o))
        o.happen(o.arg, o.n);
    settle(g);
    return true;
}
