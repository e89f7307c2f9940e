/* One node in memory and in virtual time (engine.h): opens scheduler, supervisor, intake and the
 * reader of notices (engine_family.c) over a store in memory, and gives them turns. A store job
 * runs as soon as the turn that submitted it is over. sim/node.c is the same among faults. */

#include "virtual/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "store/codec/codec.h"
#include "store/memory/memory.h"
#include "supervisor/supervisor.h"
#include "virtual/engine_family.h"

enum {
    INTERVAL_MS = 1000, /* of the supervisor */
    GRACE_MS = 60000,   /* a node that starts gives everything more time: it started before */
    ROUNDS_MAX = 20000, /* turns at one moment */
    BELIEVED_MS = 24 * 3600 * 1000, /* time of the store, if the clock is behind it */
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
    int64_t ahead;   /* of the node's clock, by which the parts go */
    int64_t scan_at; /* the last one, or the one that was left out last: by its clock */
    int64_t due_at;  /* by the parts' own account and its clock, INT64_MAX: never */
    bool is_woken;   /* something arrived since the last turn */
    bool is_stuck;
    bool is_closing;
    /* The life of the node, if it can die: */
    struct store_ops ops; /* of the store, with a commit that asks what becomes of it */
    const struct store_ops *inner;
    char me[32];     /* "test/1": its name and its start */
    uint64_t life;   /* what was planned for an earlier one is void */
    bool is_dying;   /* from now on nothing of it counts */
    int64_t died_at; /* by its clock */
    struct engine_outage outage;
    struct link asked; /* struct asked: what clients have not had an answer to */
    struct link sent;  /* struct sent: results that no agent knows to be received */
};

/* An ask, as it was made. */
struct asked {
    struct link link;
    struct ask *ask, as_made;
};

/* A result, in memory of its own. */
struct sent {
    struct link link;
    struct arena arena;
    struct slice agent;
    struct work_result result;
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

static void copy_result(struct arena *a, const struct work_result *r, struct work_result *ret)
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
    return engine_clock(arg);
}

static void park(void *arg, uint64_t n)
{
    struct served *s = arg;
    if (n != s->engine->life)
        return;
    struct work *w = work_new();
    w->agent_name = arena_copy(&w->arena, s->name);
    w->instance_name = SLICE("test");
    w->max = WORK_MAX;
    w->wait_ms = WAIT_MS;
    w->user = s;
    s->engine->is_woken = true;
    scheduler_work(s->engine->scheduler, w);
}

static void forget_sent(struct sent *s)
{
    link_remove(&s->link);
    arena_fini(&s->arena);
    free(s);
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct engine *g = arg;
    struct served *s = w->user;

    if (g->is_dying)
        return false;
    ASSERT(!w->failed); /* the store in memory takes everything */
    if (w->max == 0 && w->user)
        forget_sent(w->user);
    for (size_t i = 0; i < w->result_count; i++)
        g->config.result(g->config.arg, w->results[i].token, w->results[i].status);
    for (size_t i = 0; i < w->stop_count; i++)
        g->config.stop(g->config.arg, w->stop[i]);
    for (size_t i = 0; i < w->request_count; i++)
        g->config.request(g->config.arg, s->name, &w->requests[i]);
    if (w->max > 0)
        agenda_add(&g->agenda, g->now, park, s, g->life);
    return true;
}

/* Whether a client asked it. One that was answered is done with. */
static bool forget_asked(struct engine *g, const struct ask *a, bool stays)
{
    LIST_FOREACH (l, after, &g->asked) {
        struct asked *known = CONTAINER_OF(l, struct asked, link);
        if (known->ask != a)
            continue;
        if (!stays) {
            link_remove(&known->link);
            free(known);
        }
        return true;
    }
    return false;
}

static void on_ask_answer(void *arg, struct ask *a)
{
    struct engine *g = arg;
    struct asker *asker = a->user;

    if (g->is_dying && forget_asked(g, a, true))
        return; /* a client asks again; what the node asks itself has to end */
    if (g->is_closing)
        return;
    (void)forget_asked(g, a, false);
    g->is_woken = true;
    asker->answered(a);
}

static void on_task_ended(void *arg, const struct task_end *end)
{
    (void)arg;
    (void)end;
}

static void on_task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    const struct engine *g = arg;

    if (!g->is_dying)
        g->config.changed(g->config.arg, w, t);
}

static void on_family_told(void *arg)
{
    struct engine *g = arg;

    if (g->is_dying)
        return;
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
    const struct engine *g = arg;
    (void)e;
    ASSERT(g->is_dying); /* the store in memory has none */
}

static void on_requested(void *arg, struct slice id, bool released)
{
    struct engine *g = arg;

    if (g->is_dying)
        return;
    g->is_woken = true;
    scheduler_requested(g->scheduler, id, released);
}

static void on_scan_failed(void *arg, const struct error *e)
{
    const struct engine *g = arg;
    (void)e;
    ASSERT(g->is_dying);
}

/* ---- its parts ---- */

static void open_scheduler(struct engine *g)
{
    const struct scheduler_config config = {.node = SLICE("test"),
                                            .boot = g->store->ops->boot(g->store)};
    const struct clock clock = {clock_now, g};
    const struct outside outside = {.arg = g,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .task_changed = on_task_changed,
                                    .family_told = on_family_told,
                                    .alert = on_alert,
                                    .store_trouble = on_store_trouble};

    g->scheduler = scheduler_new(&config, &g->queue, g->config.workflows, g->key, &clock, &outside);
}

static void open_supervisor(struct engine *g)
{
    const struct supervisor_config config = {.holder = slice_of(g->me), .interval_ms = INTERVAL_MS};
    const struct supervisor_outside outside = {.arg = g,
                                               .now = clock_now,
                                               .steady = clock_now,
                                               .requested = on_requested,
                                               .failed = on_scan_failed};

    g->supervisor = supervisor_new(&config, &g->queue, g->config.workflows, &outside);
}

/* ---- a node that dies ---- */

static enum err asking_commit(struct store *s, struct batch *b, struct arena *a, struct error *e)
{
    struct engine *g = CONTAINER_OF((struct store_ops *)(uintptr_t)s->ops, struct engine, ops);
    enum engine_fate fate = ENGINE_STORES;

    if (!g->is_dying && b->change_count > 0)
        fate = g->config.commits(g->config.arg, &g->outage);
    if (fate == ENGINE_DIES_AFTER) {
        enum err err = g->inner->commit(s, b, a, e);
        ASSERT(err == ERR_OK);
    }
    if (fate != ENGINE_STORES) {
        g->is_dying = true;
        fault_plan = (struct fault_plan){.fire = UINT32_MAX}; /* it reaches the store no more */
    }
    return g->inner->commit(s, b, a, e);
}

static void may_die(struct engine *g)
{
    if (!g->config.commits)
        return;
    g->inner = g->store->ops;
    g->ops = *g->inner;
    g->ops.commit = asking_commit;
    g->store->ops = &g->ops;
}

/* The scheduler answers what is left, and nobody is to hear of it. */
static void close_parts(struct engine *g)
{
    g->is_closing = true;
    scheduler_free(g->scheduler);
    g->is_closing = false;
    supervisor_free(g->supervisor);
    intake_free(g->intake);
    notices_free(g->notices);
    g->scheduler = NULL;
}

static void open_parts(struct engine *g)
{
    (void)snprintf(g->me, sizeof g->me, "test/%" PRIu64, g->store->ops->boot(g->store));
    open_scheduler(g);
    open_supervisor(g);
    g->intake = family_intake(g, &g->queue, g->config.workflows);
    g->notices = family_notices(g, &g->queue, slice_of(g->me));
    g->is_woken = true;
    g->scan_at = engine_clock(g) - INTERVAL_MS;
}

static void send(struct engine *g, struct slice agent, const struct work_result *r, void *user)
{
    struct work *w = work_new();

    w->agent_name = arena_copy(&w->arena, agent);
    w->instance_name = SLICE("test");
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->result_count = 1;
    w->user = user;
    copy_result(&w->arena, r, w->results);
    g->is_woken = true;
    scheduler_work(g->scheduler, w);
}

/* As a server does: a clock that was set back by up to a day is not believed. */
static void set_clock(struct engine *g)
{
    int64_t clock = engine_clock(g) + g->outage.clock_ms;

    if (g->outage.clock_ms < 0 && clock < g->died_at && g->died_at - clock <= BELIEVED_MS)
        clock = g->died_at;
    g->ahead = clock - g->now;
}

static void start_again(void *arg, uint64_t n)
{
    struct engine *g = arg;
    (void)n;

    set_clock(g);
    memory_store_boot(g->store);
    open_parts(g);
    if (g->config.started)
        g->config.started(g->config.arg);
    LIST_FOREACH (l, after, &g->served)
        park(CONTAINER_OF(l, struct served, link), g->life);
    LIST_FOREACH (l, after, &g->asked) {
        struct asked *known = CONTAINER_OF(l, struct asked, link);
        *known->ask = known->as_made;
        scheduler_ask(g->scheduler, known->ask);
    }
    LIST_FOREACH (l, after, &g->sent) {
        struct sent *s = CONTAINER_OF(l, struct sent, link);
        send(g, s->agent, &s->result, s);
    }
}

/* What it had in work ends without a trace. */
static void die(struct engine *g)
{
    close_parts(g);
    fault_plan = (struct fault_plan){0};
    g->is_dying = g->is_woken = false;
    g->due_at = INT64_MAX;
    g->life++;
    g->died_at = engine_clock(g);
    agenda_add(&g->agenda, g->now + g->outage.down_ms, start_again, g, 0);
}

/* ---- opening and closing ---- */

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
    list_init(&g->asked);
    list_init(&g->sent);
    g->key = token_key_new(g->store->ops->secret(g->store));
    open_parts(g);
    while (engine_step(g, c->now))
        ;
    may_die(g);
    return g;
}

void engine_free(struct engine *g)
{
    if (!g)
        return;
    ASSERT(list_empty(&g->jobs));
    if (g->scheduler)
        close_parts(g);
    for (struct link *l = NULL; (l = list_first(&g->sent));)
        forget_sent(CONTAINER_OF(l, struct sent, link));
    for (struct link *l = NULL; (l = list_pop(&g->asked));)
        free(CONTAINER_OF(l, struct asked, link));
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

int64_t engine_clock(const struct engine *g)
{
    return g->now + g->ahead;
}

int64_t engine_moment(const struct engine *g, int64_t at)
{
    return at - g->ahead;
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
    park(s, g->life);
}

bool engine_is_dying(const struct engine *g)
{
    return g->is_dying;
}

static struct sent *keep_sent(struct engine *g, struct slice agent, const struct work_result *r)
{
    struct sent *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->agent = arena_copy(&s->arena, agent);
    copy_result(&s->arena, r, &s->result);
    list_push(&g->sent, &s->link);
    return s;
}

void engine_result(struct engine *g, struct slice agent, const struct work_result *r)
{
    struct sent *s = g->config.commits ? keep_sent(g, agent, r) : NULL;

    if (g->scheduler)
        send(g, agent, r, s);
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

    if (!g->scheduler)
        return;
    g->is_woken = true;
    scheduler_heartbeats(g->scheduler, &call);
}

void engine_look(struct engine *g, struct slice id)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {0};
    struct task task = {0};
    struct error e = {0};

    if (g->store->ops->get(g->store, id, &a, &row, &e) != ERR_OK)
        return;
    const struct definition *d = registry_find(g->config.workflows, row.workflow, row.version);
    ASSERT(d); /* all are known */
    enum err err = task_decode(&d->workflow, &row, &a, &task, &e);
    ASSERT(err == ERR_OK);
    g->config.changed(g->config.arg, &d->workflow, &task);
}

void engine_ask_inside(struct engine *g, struct ask *a)
{
    g->is_woken = true;
    scheduler_ask(g->scheduler, a);
}

void engine_ask(struct engine *g, struct ask *a)
{
    if (g->config.commits) {
        struct asked *known = calloc(1, sizeof *known);
        ASSERT(known);
        *known = (struct asked){.ask = a, .as_made = *a};
        list_push(&g->asked, &known->link);
    }
    if (g->scheduler)
        engine_ask_inside(g, a);
}

/* ---- time ---- */

/* 0: nothing is due by itself. */
static int64_t sooner(int64_t a, int64_t b)
{
    return b > 0 && b < a ? b : a;
}

/* INT64_MAX stays: never. */
static int64_t moment_of(const struct engine *g, int64_t at)
{
    return at == INT64_MAX ? at : engine_moment(g, at);
}

/* The first scan that finds an overdue row; INT64_MAX: there is none to come. */
static int64_t next_scan(struct engine *g, int64_t until)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct row_page page = {0};
    struct error e = {0};
    int64_t before = until == INT64_MAX ? until : until + g->ahead;

    if (before <= g->scan_at || !g->scheduler)
        return INT64_MAX;
    enum err err = g->store->ops->overdue(g->store, before, 0, 0, 1, &a, &page, &e);
    ASSERT(err == ERR_OK);
    if (page.count == 0)
        return INT64_MAX;
    int64_t late = max_i64(page.rows[0].wake_at - g->scan_at, 1);
    return engine_moment(g, g->scan_at + (late + INTERVAL_MS - 1) / INTERVAL_MS * INTERVAL_MS);
}

/* Scans before this one would have found nothing. */
static void scan(struct engine *g)
{
    if (engine_clock(g) - g->scan_at > INTERVAL_MS)
        supervisor_left_out(g->supervisor);
    g->scan_at = engine_clock(g);
    (void)supervisor_turn(g->supervisor);
}

/* Turns until nothing is due at this moment. */
static void settle(struct engine *g)
{
    for (int rounds = 0;; rounds++) {
        g->is_woken = false;
        if (!g->scheduler)
            return;
        g->due_at = sooner(INT64_MAX, scheduler_turn(g->scheduler));
        g->due_at = sooner(g->due_at, intake_turn(g->intake));
        g->due_at = sooner(g->due_at, notices_turn(g->notices));
        bool any = run_jobs(g);
        if (g->is_dying) {
            die(g);
            return;
        }
        if (!any && !g->is_woken && g->due_at > engine_clock(g))
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
    int64_t next = min_i64(agenda_next_at(&g->agenda), moment_of(g, g->due_at));
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
