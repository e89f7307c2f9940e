/* Implements flow.h: a scheduler, a dispatch and a courier in one thread, over a queue whose jobs
 * run between turns, with a client and agents as functions of this file. bench/instructions/task.c
 * uses it. */

#include "instructions/flow.h"

#include <stdio.h>
#include <stdlib.h>

#include "catalog/catalog.h"
#include "instructions/workload.h"
#include "outbox/courier.h"
#include "scheduler/scheduler.h"

enum { PLACES = 256, AT_ONCE_MAX = 256, CALLS_MAX = 64, TURNS_MAX = 1000000 };

struct client {
    struct ask ask;
    char id[32];
    bool busy;
};

struct flow {
    struct flow_config config;
    struct store_queue queue;
    struct store_job *jobs[4];
    size_t job_count;
    struct registry registry;
    struct token_key *key;
    struct scheduler *scheduler;
    struct courier *courier;
    struct channel channel;
    struct link posts; /* of struct post */
    struct fence fence;
    const struct definition *definition;
    int64_t now;
    struct work *calls[CALLS_MAX]; /* answered ones: the next calls follow them */
    size_t call_count;
    struct client clients[AT_ONCE_MAX];
    long submitted, ended, told, accepted;
    struct arena arena;
};

struct post {
    struct link link;
    struct delivery **list;
    size_t count;
    delivery_done_fn *done;
    void *arg;
};

/* ---- the store ---- */

static void submit_job(struct store_queue *q, struct store_job *j)
{
    struct flow *f = CONTAINER_OF(q, struct flow, queue);

    must_be(f->job_count < COUNT_OF(f->jobs), "few jobs are with the store at a time");
    f->jobs[f->job_count++] = j;
}

static bool run_jobs(struct flow *f)
{
    if (f->job_count == 0)
        return false;
    struct store_job *j = f->jobs[0];
    memmove(f->jobs, f->jobs + 1, --f->job_count * sizeof(struct store_job *));
    j->run(j, f->config.store);
    j->done(j);
    if (f->config.maintain)
        (void)f->config.maintain(f->config.store, false);
    return true;
}

/* ---- agents ---- */

static int64_t clock_now(void *arg)
{
    return ((struct flow *)arg)->now;
}

static struct work *call_of(struct slice agent)
{
    struct work *w = work_new();

    w->agent_name = arena_copy(&w->arena, agent);
    w->instance_name = SLICE("instance-1");
    w->max = PLACES;
    w->wait_ms = 1000000000;
    w->says_holding = true;
    return w;
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct flow *f = arg;
    struct work *next = call_of(w->agent_name);

    must_be(!w->failed, "the store takes all");
    for (size_t i = 0; i < w->result_count; i++)
        must_be(w->results[i].status == RESULT_ACCEPTED, "each result is accepted");
    next->results = arena_alloc(&next->arena, (w->request_count + 1) * sizeof *next->results);
    for (size_t i = 0; i < w->request_count; i++) {
        const struct work_request *r = &w->requests[i];
        struct work_result *done = &next->results[next->result_count++];
        done->token = arena_copy(&next->arena, r->token);
        done->failed = slice_is(r->action, "fail");
        done->error = (struct fault_note){SLICE("declined"), SLICE("not today")};
        if (!done->failed)
            done->output = slice_of(payload_out);
    }
    must_be(f->call_count < CALLS_MAX, "few agents");
    f->calls[f->call_count++] = next;
    return true;
}

static bool hand_in(struct flow *f)
{
    size_t count = f->call_count;
    struct work *calls[CALLS_MAX];

    memcpy(calls, f->calls, count * sizeof *calls);
    f->call_count = 0;
    for (size_t i = 0; i < count; i++)
        scheduler_work(f->scheduler, calls[i]);
    return count > 0;
}

static void call_for(struct flow *f, struct slice agent, struct map *known)
{
    if (map_get(known, agent))
        return;
    map_put(known, agent, f);
    f->calls[f->call_count++] = call_of(agent);
}

static void call_for_all(struct flow *f)
{
    const struct workflow *w = &f->definition->workflow;
    struct map known = {0};

    for (uint16_t i = 0; i < w->step_count; i++) {
        call_for(f, w->steps[i].call.agent, &known);
        if (w->steps[i].undo_kind == UNDO_CALL)
            call_for(f, w->steps[i].undo.agent, &known);
    }
    map_fini(&known);
}

/* ---- the client ---- */

static void on_ask_answer(void *arg, struct ask *a)
{
    struct flow *f = arg;

    must_be(a->outcome == ERR_OK && !a->existed, "each submission is accepted");
    f->accepted++;
    ((struct client *)a->user)->busy = false;
}

static void on_task_ended(void *arg, const struct task_end *end)
{
    struct flow *f = arg;

    must_be(end->task->state != TASK_ERROR, "no task stops in error");
    f->ended++;
}

static bool submit(struct flow *f, long until, long at_once)
{
    bool any = false;

    for (long i = 0; i < at_once && f->submitted < until && f->submitted - f->ended < at_once;
         i++) {
        struct client *c = &f->clients[i];
        if (c->busy)
            continue;
        (void)snprintf(c->id, sizeof c->id, "order-%09ld", f->submitted++);
        c->busy = true;
        c->ask = (struct ask){.kind = ASK_SUBMIT,
                              .user = c,
                              .id = slice_of(c->id),
                              .definition = f->definition,
                              .input = f->config.input.ptr ? f->config.input : slice_of(payload_in),
                              .reply_to = slice_of(f->config.reply_to),
                              .priority = 5,
                              .content = {0x1234567890abcdef,
                                          SLICE("e3B0xEKY_BwUmvv0yJlvuSQnrkHkZJuTTKSVmRt4Urh")}};
        scheduler_ask(f->scheduler, &c->ask);
        any = true;
    }
    return any;
}

/* ---- messages ---- */

static void on_messages(void *arg, const struct message *list, size_t count)
{
    struct flow *f = arg;

    courier_stored(f->courier, list, count);
}

static bool leads(void *arg, struct fence *ret)
{
    *ret = ((struct flow *)arg)->fence;
    return true;
}

static struct channel *channel_of(void *arg, struct slice target, struct error *e)
{
    (void)target;
    (void)e;
    return &((struct flow *)arg)->channel;
}

static bool takes(struct channel *c, struct slice target, struct error *e)
{
    (void)c;
    (void)target;
    (void)e;
    return true;
}

static size_t batch_max(struct channel *c, struct slice target)
{
    (void)c;
    (void)target;
    return 100;
}

static void send(struct channel *c, struct delivery **list, size_t count, delivery_done_fn *done,
                 void *arg)
{
    struct flow *f = CONTAINER_OF(c, struct flow, channel);
    struct post *p = calloc(1, sizeof *p + count * sizeof *list);

    must_be(p, "there is memory");
    *p = (struct post){.list = (struct delivery **)(void *)(p + 1),
                       .count = count,
                       .done = done,
                       .arg = arg};
    memcpy(p->list, list, count * sizeof *list);
    list_push(&f->posts, &p->link);
}

static void close_channel(struct channel *c)
{
    (void)c;
}

static bool deliver(struct flow *f)
{
    struct link *first = list_first(&f->posts);

    if (!first)
        return false;
    link_remove(first);
    struct post *p = CONTAINER_OF(first, struct post, link);
    for (size_t i = 0; i < p->count; i++)
        p->list[i]->end = DELIVERED;
    f->told += (long)p->count;
    p->done(p->arg, p->list, p->count);
    free(p);
    return true;
}

static void lead(struct flow *f)
{
    const struct lease_try want = {.name = SLICE(SUPERVISOR_LEASE),
                                   .holder = SLICE("n1/1"),
                                   .now = f->now,
                                   .length_ms = LEASE_MAX_MS};
    struct lease l;
    struct error e = {0};

    must(f->config.store->ops->lease(f->config.store, &want, &f->arena, &l, &e), &e);
    f->fence = (struct fence){SLICE(SUPERVISOR_LEASE), l.epoch};
}

static void open_courier(struct flow *f)
{
    static const struct channel_ops ops = {takes, batch_max, send, close_channel};
    const struct courier_outside outside = {.arg = f,
                                            .now = clock_now,
                                            .leads = leads,
                                            .channel = channel_of};
    const struct courier_config c = {.seed = 7};

    f->channel.ops = &ops;
    lead(f);
    f->courier = courier_new(&c, &f->queue, &outside);
}

/* ---- all of it ---- */

static bool is_told(const struct flow *f)
{
    struct courier_stats st;

    courier_stats(f->courier, &st);
    return st.items == 0;
}

void flow_run(struct flow *f, long tasks, long at_once)
{
    long until = f->submitted + tasks;

    must_be(at_once <= AT_ONCE_MAX, "so many at once");
    for (long turns = 0; f->ended < until || f->accepted < until || !is_told(f); turns++) {
        must_be(turns < TURNS_MAX, "all end");
        bool any = submit(f, until, at_once);
        any |= hand_in(f);
        (void)scheduler_turn(f->scheduler);
        (void)courier_turn(f->courier);
        any |= run_jobs(f);
        any |= deliver(f);
        f->now += any ? 1 : 10;
    }
}

static void define(struct flow *f, struct slice text)
{
    static struct mistakes mistakes; /* too large for the stack */
    struct store *st = f->config.store;
    struct definition *d = NULL;
    struct error e = {0};
    int64_t version = 0;
    bool is_new = false;

    if (definition_parse(text, DEFINITION_GUESS, &d, &mistakes, NULL) != ERR_OK)
        must_be(false, mistakes.list[0].found);
    must(st->ops->workflow_put(st, d->workflow.name, text, f->now, NULL, &version, &is_new, &e),
         &e);
    registry_add(&f->registry, d, version);
    f->definition = d;
}

struct flow *flow_new(const struct flow_config *c)
{
    struct flow *f = calloc(1, sizeof *f);
    const struct scheduler_config sc = {.node = SLICE("n1"),
                                        .boot = c->store->ops->boot(c->store),
                                        .source = SLICE("/intact/instructions")};
    const struct clock clock = {clock_now, f};
    const struct outside outside = {.arg = f,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .messages = on_messages};

    must_be(f, "there is memory");
    f->config = *c;
    f->queue.submit = submit_job;
    f->now = INT64_C(1800000000000);
    list_init(&f->posts);
    f->key = token_key_new(c->store->ops->secret(c->store));
    define(f, c->definition);
    open_courier(f);
    f->scheduler = scheduler_new(&sc, &f->queue, &f->registry, f->key, &clock, &outside);
    call_for_all(f);
    return f;
}

void flow_free(struct flow *f)
{
    while (run_jobs(f))
        ;
    scheduler_free(f->scheduler);
    courier_free(f->courier);
    for (size_t i = 0; i < f->call_count; i++)
        work_free(f->calls[i]);
    token_key_free(f->key);
    registry_fini(&f->registry);
    f->config.store->ops->close(f->config.store);
    arena_fini(&f->arena);
    free(f);
}

const struct definition *flow_definition(const struct flow *f)
{
    return f->definition;
}

void flow_row(struct flow *f, struct arena *a, struct task_row *ret)
{
    struct store *st = f->config.store;
    struct error e = {0};

    must(st->ops->get(st, SLICE("order-000000000"), a, ret, &e), &e);
}

long flow_told(const struct flow *f)
{
    return f->told;
}
