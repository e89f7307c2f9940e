/* Calls between workers and nodes, with loss, delay and duplication (agents.h): parked calls,
 * answers, hang-ups, and who called which node when. agents.c acts on what arrives; check_wire.c
 * checks what nodes send. */

#include <stdio.h>

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { PATIENCE_MS = 5000, CALL_SLACK_MS = 4000 };

/* A call as its worker made it. */
struct call {
    struct worker *worker;
    char name[24]; /* of the worker at that time */
    uint64_t life; /* likewise */
    uint32_t to;   /* the name of the node */
    uint64_t number;
    int64_t sent_at, wait_ms;
    uint32_t max;
    bool over;        /* the worker has an answer, or gave up */
    bool instead;     /* replaces the parked one */
    bool called_home; /* a replacing call was sent */
    bool says_holding;
    struct slice *holding;
    size_t holding_count;
    struct gig **results;
    size_t result_count;
};

/* A call at the node; the same call may arrive twice. */
struct visit {
    struct link link; /* in the list of open ones */
    struct call *call;
    struct work *work;
    struct node *node;
    uint64_t boot;
    int64_t arrived_at;
    bool calm; /* it arrived in the second act */
};

struct reply {
    struct call *call;
    bool failed;
    struct errand *errands;
    size_t errand_count;
    enum result_status *statuses;
    struct slice *stop;
    size_t stop_count;
};

static struct link visits;
static uint64_t call_count;
static struct heard {
    uint64_t boot;
    int64_t came_at, left_at;     /* the latest; left: it was answered, or is gone */
} heard[NODES_MAX][SERVICES_MAX]; /* by the slot of the node */

void wire_begin(void)
{
    list_init(&visits);
    call_count = 0;
    memset(heard, 0, sizeof heard);
}

/* ---- the worker's side ---- */

static void call_over(struct call *c)
{
    if (c->over)
        return;
    c->over = true;
    for (size_t i = 0; i < c->result_count; i++)
        if (c->results[i]->in == c)
            c->results[i]->in = NULL;
    if (c->life != c->worker->life)
        return;
    if (c->worker->poll[c->to] == c)
        c->worker->poll[c->to] = NULL;
    if (c->worker->handing[c->to] == c)
        c->worker->handing[c->to] = NULL;
}

/* It broke, or got no answer. */
static void call_fails(void *arg, uint64_t n)
{
    struct call *c = arg;
    (void)n;

    if (c->over)
        return;
    trace("call %" PRIu64 " of %s fails", c->number, c->name);
    for (size_t i = 0; i < c->result_count; i++)
        if (chance(world.calm ? 1000 : 500))
            c->results[i]->home = below(nodes.names); /* any node accepts any result */
    call_over(c);
    worker_wakes_up(c->worker, world.calm ? between(100, 2000) : spread(1, 2000));
}

void wire_hang_up(struct worker *w)
{
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        if (w->poll[i])
            w->poll[i]->over = true;
        if (w->handing[i])
            w->handing[i]->over = true;
        w->poll[i] = w->handing[i] = NULL;
    }
}

static void reply_arrives(void *arg, uint64_t n)
{
    const struct reply *r = arg;
    struct call *c = r->call;
    struct worker *w = c->worker;
    (void)n;

    if (c->over || c->life != w->life) {
        trace("answer to call %" PRIu64 " finds nobody", c->number);
        return;
    }
    call_over(c);
    if (r->errand_count > 0 && chance(weather.deaf)) {
        worker_dies(w, "before it reads its requests");
        return;
    }
    for (size_t i = 0; i < c->result_count && !r->failed; i++)
        gig_done_with(c->results[i]);
    for (size_t i = 0; i < r->stop_count; i++)
        worker_stops(w, r->stop[i]);
    for (size_t i = 0; i < r->errand_count; i++)
        worker_gets(w, &r->errands[i], c->to);
    if (w->up && c->life == w->life)
        worker_wakes_up(w, r->failed ? spread(50, 1000) : between(0, 5));
}

/* ---- the node's side ---- */

static void leaves(const struct visit *v)
{
    struct heard *h = &heard[v->node->slot][v->call->worker->service];

    if (h->boot == v->boot)
        h->left_at = world.now;
}

static bool is_there(const struct visit *v)
{
    return link_is_in(&v->link) && v->boot == v->node->boot && node_is_up(v->node);
}

static void gone_noticed(void *arg, uint64_t n)
{
    struct visit *v = arg;

    if (node_sleeps(v->node, gone_noticed, arg, n))
        return;
    if (!is_there(v))
        return;
    trace("call %" PRIu64 " is gone", v->call->number);
    link_remove(&v->link);
    leaves(v);
    scheduler_work_gone(v->node->scheduler, v->work);
    node_turn_soon(v->node);
}

/* Was it answered in time? Checked if nothing interfered. */
static void look_at_visit(void *arg, uint64_t n)
{
    struct visit *v = arg;

    if (node_sleeps(v->node, look_at_visit, arg, n))
        return;
    if (!is_there(v))
        return;
    if (v->call->over && chance(weather.gone_noticed)) {
        gone_noticed(v, 0);
        return;
    }
    const struct disk *d = &v->node->disk;
    bool disturbed = max_i64(d->trouble_at, d->cut_until) + 1000 >= v->arrived_at
                     || v->node->sleeps_until >= v->arrived_at || weather.store_ms > SLOW_MS
                     || world.calm != v->calm;
    if (!disturbed)
        broken("no call is left unanswered past its wait", "call %" PRIu64 " of %s",
               v->call->number, v->call->worker->name);
}

static void fill_result(struct work *w, const struct gig *g, struct work_result *r)
{
    *r = (struct work_result){.token = arena_copy(&w->arena, g->token),
                              .failed = g->failed,
                              .retryable = g->retryable,
                              .effect = g->effect,
                              .retry_after_ms = g->retry_after_ms};
    r->elsewhere = g->elsewhere;
    if (g->elsewhere)
        return;
    if (g->failed && g->attempt % 2 == 0) /* every second one leaves details */
        r->resume =
            text_of("{\"of\":\"%s\",\"attempt\":%u}", direction_text(g->direction), g->attempt);
    if (g->failed)
        r->error = (struct fault_note){slice_of(g->code), SLICE("said the agent")};
    else
        r->output = g->output;
}

static struct work *work_of(const struct call *c)
{
    struct work *w = work_new();

    w->agent_name = arena_copy(&w->arena, text_of("a%u", c->worker->service));
    w->instance_name = arena_copy(&w->arena, slice_of(c->name));
    w->max = c->max;
    w->wait_ms = c->wait_ms;
    w->instead = c->instead;
    w->says_holding = c->says_holding;
    w->holding = c->holding;
    w->holding_count = c->holding_count;
    w->result_count = c->result_count;
    if (c->result_count > 0)
        w->results = arena_alloc(&w->arena, c->result_count * sizeof *w->results);
    for (size_t i = 0; i < c->result_count; i++)
        fill_result(w, c->results[i], &w->results[i]);
    return w;
}

/* Two processes may listen under one name for a while. */
static struct node *listener(uint32_t name)
{
    struct node *newest = node_named(name);

    NODES_FOREACH (n)
        if (n->name == name && n != newest && node_hears(n) && chance(500))
            return n;
    return newest;
}

static void arrives_at(struct call *c, struct node *n)
{
    struct visit *v = arena_alloc(&world.arena, sizeof *v);

    *v = (struct visit){
        .call = c, .node = n, .boot = n->boot, .arrived_at = world.now, .calm = world.calm};
    v->work = work_of(c);
    v->work->user = v;
    list_push(&visits, &v->link);
    heard[n->slot][c->worker->service] = (struct heard){n->boot, world.now, world.now};
    later(c->wait_ms + CALL_SLACK_MS, look_at_visit, v, 0);
    trace("call %" PRIu64 " of %s at %s: max %u, holding %zu, results %zu", c->number, c->name,
          n->me, c->max, c->holding_count, c->result_count);
    scheduler_work(n->scheduler, v->work);
    node_turn_soon(n);
}

static void call_arrives(void *arg, uint64_t n)
{
    struct call *c = arg;
    struct node *node = listener(c->to);

    if (node && node_sleeps(node, call_arrives, arg, n))
        return;
    if (!node || !node_is_up(node) || !node_schedules(node))
        later(between(1, 50), call_fails, c, 0); /* nothing listens there */
    else if (node_hears(node))
        arrives_at(c, node);
}

static struct reply *reply_of(const struct node *n, struct call *c, const struct work *w)
{
    struct reply *r = arena_alloc(&world.arena, sizeof *r);

    *r = (struct reply){.call = c, .failed = w->failed};
    if (w->failed)
        return r; /* it only says "try again" */
    r->errand_count = w->request_count;
    r->errands = arena_alloc(&world.arena, (w->request_count + 1) * sizeof *r->errands);
    for (size_t i = 0; i < w->request_count; i++) {
        const struct work_request *q = &w->requests[i];
        r->errands[i] = (struct errand){
            .token = arena_copy(&world.arena, q->token),
            .task = arena_copy(&world.arena, q->task),
            .step = arena_copy(&world.arena, q->step),
            .direction = q->direction,
            .attempt = q->attempt,
            .heartbeat_ms = q->heartbeat_ms,
            .deadline = c->sent_at + w->waited_ms + (q->complete_by - node_now(n)),
        };
    }
    r->stop_count = w->stop_count;
    r->stop = arena_alloc(&world.arena, (w->stop_count + 1) * sizeof *r->stop);
    for (size_t i = 0; i < w->stop_count; i++)
        r->stop[i] = arena_copy(&world.arena, w->stop[i]);
    return r;
}

bool agents_answered(struct node *n, struct work *w)
{
    struct visit *v = w->user;
    struct call *c = v->call;

    trace("answer of %s to call %" PRIu64 ": requests %zu, stop %zu%s", n->me, c->number,
          w->request_count, w->stop_count, w->failed ? ", failed" : "");
    check_answer(n, w, c->max);
    link_remove(&v->link);
    leaves(v);
    if (chance(weather.crash_inside))
        node_crash(n, "while it answers");
    if (c->over || c->life != c->worker->life) {
        if (w->request_count > 0)
            covered(COVER_GONE_BEFORE_WORK);
        if (chance(250))
            return true; /* undetected: the bytes are lost */
        check_unsent(n, w);
        return false;
    }
    if (chance(weather.answer_lost) || !node_hears(n)) {
        trace("the answer to call %" PRIu64 " is lost", c->number);
        later(chance(500) ? between(1, 100) : c->wait_ms + PATIENCE_MS, call_fails, c, 0);
        return true;
    }
    int64_t delay = chance(weather.answer_slow) ? spread(50, 20000) : between(0, 3);
    later(delay, reply_arrives, reply_of(n, c, w), 0);
    return true;
}

void agents_cut_off(const struct node *n)
{
    LIST_FOREACH (l, after, &visits) {
        struct visit *v = CONTAINER_OF(l, struct visit, link);
        if (v->node != n)
            continue;
        link_remove(l);
        later(chance(700) ? between(0, 50) : PATIENCE_MS, call_fails, v->call, 0);
    }
}

uint32_t wire_calls_of(const struct node *n, struct slice name)
{
    uint32_t count = 0;

    LIST_FOREACH (l, after, &visits) {
        const struct visit *v = CONTAINER_OF(l, struct visit, link);
        count += v->node == n && slice_is(name, v->call->name);
    }
    return count;
}

int64_t wire_parked_since(const struct node *n, const char *name)
{
    int64_t since = 0;

    LIST_FOREACH (l, after, &visits) {
        const struct visit *v = CONTAINER_OF(l, struct visit, link);
        if (v->node == n && v->call->max > 0 && strcmp(v->call->name, name) == 0)
            since = since ? min_i64(since, v->arrived_at) : v->arrived_at;
    }
    return since;
}

int64_t wire_idle_since(const struct node *n, uint32_t service)
{
    int64_t since = 0;

    LIST_FOREACH (l, after, &visits) {
        const struct visit *v = CONTAINER_OF(l, struct visit, link);
        if (v->node == n && v->call->max > 0 && v->call->worker->service == service)
            since = since ? min_i64(since, v->arrived_at) : v->arrived_at;
    }
    return since;
}

int64_t wire_called_at(const struct node *n, uint32_t service)
{
    const struct heard *h = &heard[n->slot][service];

    return h->boot == n->boot ? h->came_at : 0;
}

int64_t wire_seen_at(const struct node *n, uint32_t service)
{
    const struct heard *h = &heard[n->slot][service];

    if (h->boot != n->boot)
        return 0;
    LIST_FOREACH (l, after, &visits) {
        const struct visit *v = CONTAINER_OF(l, struct visit, link);
        if (v->node == n && v->call->worker->service == service)
            return world.now;
    }
    return h->left_at;
}

uint32_t wire_parked(const struct node *n)
{
    uint32_t count = 0;

    LIST_FOREACH (l, after, &visits) {
        const struct visit *v = CONTAINER_OF(l, struct visit, link);
        count += v->node == n && v->call->max > 0;
    }
    return count;
}

/* ---- sending ---- */

static void give_up(void *arg, uint64_t n)
{
    struct call *c = arg;
    (void)n;

    if (c->over)
        return;
    call_fails(c, 0);
    LIST_FOREACH (l, after, &visits) {
        struct visit *v = CONTAINER_OF(l, struct visit, link);
        if (v->call == c && chance(weather.gone_noticed))
            later(spread(1, 5000), gone_noticed, v, 0);
    }
}

static void collect(struct worker *w, struct call *c)
{
    size_t held = 0;
    uint32_t working = 0;

    LIST_FOREACH (l, after, &w->gigs) {
        held++;
    }
    c->holding = arena_alloc(&world.arena, (held + 1) * sizeof *c->holding);
    c->results = arena_alloc(&world.arena, (held + 1) * sizeof(struct gig *));
    LIST_FOREACH (l, after, &w->gigs) {
        struct gig *g = CONTAINER_OF(l, struct gig, link);
        working += !g->finished;
        if (g->finished && !g->in && g->home == c->to) {
            c->results[c->result_count++] = g;
            g->in = c;
        } else {
            c->holding[c->holding_count++] = g->token;
        }
    }
    c->max = w->concurrency > working ? w->concurrency - working : 0;
}

/* Sends a call, which may be lost, delayed or duplicated. */
static void post(struct call *c)
{
    for (int copies = chance(weather.call_doubled) ? 2 : 1; copies > 0; copies--) {
        int64_t delay = chance(weather.call_slow) ? spread(20, 10000) : between(0, 3);
        if (chance(weather.call_lost))
            trace("call %" PRIu64 " of %s is lost", c->number, c->name);
        else
            later(delay, call_arrives, c, 0);
    }
    later(c->wait_ms + PATIENCE_MS, give_up, c, 0);
}

bool wire_asks_too_much(const struct worker *w, uint32_t to)
{
    uint32_t working = 0;

    LIST_FOREACH (l, after, &w->gigs) {
        working += !CONTAINER_OF(l, struct gig, link)->finished;
    }
    return w->calls_home && working >= w->concurrency && !w->poll[to]->called_home;
}

void wire_send(struct worker *w, uint32_t to, bool for_work)
{
    struct call *c = arena_alloc(&world.arena, sizeof *c);

    *c = (struct call){
        .worker = w, .life = w->life, .to = to, .number = ++call_count, .sent_at = world.now};
    (void)snprintf(c->name, sizeof c->name, "%s", w->name);
    collect(w, c);
    c->says_holding = w->says_holding && for_work;
    if (!for_work)
        c->max = 0;
    c->instead = !for_work && w->calls_home && !w->poll[to]->called_home && c->number % 3 > 0;
    if (c->max == 0 && c->result_count == 0 && !c->instead)
        return;
    if (c->instead) {
        w->poll[to]->called_home = true;
        covered(COVER_CALLED_HOME);
    }
    c->wait_ms = c->max == 0 ? 0 : spread(100, 30000);
    if (c->max == 0)
        w->handing[to] = c;
    else
        w->poll[to] = c;
    if (c->max > 0 && chance(weather.deaf))
        worker_dies(w, "as soon as it has asked for work");
    post(c);
}
