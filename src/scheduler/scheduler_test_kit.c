/* The stage of the scheduler's tests: one or two nodes on a memory store, in one thread and
 * virtual time (scheduler_test_kit.h). Jobs of the store run when a test says so, which shows
 * what happens between them. */

#include "scheduler/scheduler_test_kit.h"

#include <stdio.h>

#include "store/memory/memory.h"

enum {
    TURN_MAX = 50000,  /* steps per turn ... */
    ONE_MAX = 200000,  /* ... per evaluation */
    COPY_MAX = 70000,  /* ... per copy of its result */
    TURNS_MAX = 20000, /* more than any test needs */
    SLEEP_MAX_MS = 60000,
};

static void submit_job(struct store_queue *q, struct store_job *j)
{
    struct stage *s = CONTAINER_OF(q, struct stage, queue);

    ASSERT(!s->job);
    s->job = j;
}

static int64_t clock_now(void *arg)
{
    return ((struct stage *)arg)->now;
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct stage *s = arg;

    s->call_answered = true;
    if (w->result_count > 0)
        s->status = w->results[0].status;
    s->undecided = w->result_count > 0 && w->results[0].undecided;
    if (s->client_gone)
        return false;
    if (s->requests == 0 && w->request_count > 0)
        s->token = arena_copy(&s->arena, w->requests[0].token);
    s->token_count = w->request_count;
    s->tokens = arena_alloc(&s->arena, (w->request_count + 1) * sizeof *s->tokens);
    for (size_t i = 0; i < w->request_count; i++) {
        s->tokens[i] = arena_copy(&s->arena, w->requests[i].token);
        s->idempotency_key = arena_copy(&s->arena, w->requests[i].idempotency_key);
        s->input = arena_copy(&s->arena, w->requests[i].input);
        s->attempt = w->requests[i].attempt;
    }
    s->requests += w->request_count;
    return true;
}

static void on_ask_answer(void *arg, struct ask *a)
{
    struct client *c = a->user;
    (void)arg;

    CHECK(a->outcome == c->expected, "%s: %s", err_text(a->outcome), a->story);
    c->answered = true;
}

static void on_task_ended(void *arg, const struct task_end *end)
{
    struct stage *s = arg;

    s->ended++;
    s->ended_in = end->task->state;
}

static void on_alert(void *arg, const struct task *t)
{
    (void)arg;
    (void)t;
}

static void on_store_trouble(void *arg, const struct error *e)
{
    ((struct stage *)arg)->troubles += e ? 1 : -1;
}

static void start(struct stage *s, const struct scheduler_config *config)
{
    const struct clock clock = {clock_now, s};
    const struct outside outside = {.arg = s,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .alert = on_alert,
                                    .store_trouble = on_store_trouble};

    s->queue.submit = submit_job;
    s->key = token_key_new(s->store->ops->secret(s->store));
    s->scheduler = scheduler_new(config, &s->queue, &s->registry, s->key, &clock, &outside);
}

void stage_begin(struct stage *s)
{
    *s = (struct stage){.now = INT64_C(1800000000000), .store = memory_store_new()};
    start(s, &(struct scheduler_config){.node = SLICE("n1"), .boot = 1});
}

void stage_begin_shared(struct stage *s)
{
    *s = (struct stage){.now = INT64_C(1800000000000), .store = memory_store_new()};
    start(s, &(struct scheduler_config){.node = SLICE("n1"), .boot = 1, .shared = true});
}

void stage_join(struct stage *s, const struct stage *other)
{
    *s = (struct stage){.now = other->now, .store = other->store};
    start(s, &(struct scheduler_config){.node = SLICE("n2"), .boot = 1, .shared = true});
}

static void stop(struct stage *s)
{
    scheduler_free(s->scheduler);
    token_key_free(s->key);
}

void stage_leave(struct stage *s)
{
    ASSERT(!s->job);
    stop(s);
    registry_fini(&s->registry);
    arena_fini(&s->arena);
}

void stage_restart(struct stage *s)
{
    ASSERT(!s->job);
    stop(s);
    s->asleep = false;
    start(s, &(struct scheduler_config){.node = SLICE("n1"), .boot = 2});
}

struct scheduler_stats stage_stats(const struct stage *s)
{
    struct scheduler_stats stats;

    scheduler_stats(s->scheduler, &stats);
    return stats;
}

bool stage_turn_without_store(struct stage *s)
{
    CHECK(!s->asleep, "nothing is due, but something is awaited");
    int64_t next = scheduler_turn(s->scheduler);
    CHECK(stage_stats(s).turn_steps <= TURN_MAX + ONE_MAX + COPY_MAX, "%llu steps in a turn",
          (unsigned long long)stage_stats(s).turn_steps);
    s->asleep = !s->job && (next == 0 || next > s->now + SLEEP_MAX_MS);
    s->now = s->job || s->asleep ? s->now + 1 : max_i64(s->now + 1, next);
    CHECK(++s->turns < TURNS_MAX, "it comes to an end");
    return s->job != NULL;
}

void stage_store(struct stage *s)
{
    struct store_job *j = s->job;

    s->job = NULL;
    j->run(j, s->store);
    j->done(j);
}

void stage_turn(struct stage *s)
{
    if (stage_turn_without_store(s))
        stage_store(s);
}

void stage_pass(struct stage *s, int64_t ms)
{
    s->asleep = false;
    s->now += ms;
    while (!s->asleep)
        stage_turn(s);
}

void stage_end(struct stage *s)
{
    while (scheduler_is_busy(s->scheduler))
        stage_turn(s);
    stage_leave(s);
    s->store->ops->close(s->store);
}

void stage_define(struct stage *s, const char *name, const char *rest)
{
    static struct mistakes mistakes; /* too large for the stack */
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;
    struct error e = {0};
    int64_t version = 0;
    bool is_new = false;

    buf_fmt(&b, "{\"intact\":1,\"workflow\":\"%s\",%s}", name, rest);
    enum err err = definition_parse(buf_view(&b), DEFINITION_GUESS, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].found);
    err = s->store->ops->workflow_put(s->store, d->workflow.name, buf_view(&b), s->now, NULL,
                                      &version, &is_new, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    registry_add(&s->registry, d, version);
}

struct client *stage_ask(struct stage *s, const struct ask *a)
{
    struct client *c = &s->clients[s->client_count++];

    ASSERT(s->client_count <= ASKS_MAX);
    c->ask = *a;
    c->ask.user = c;
    s->asleep = false;
    scheduler_ask(s->scheduler, &c->ask);
    return c;
}

struct client *stage_submit(struct stage *s, const char *workflow, struct slice input)
{
    struct client *c = &s->clients[s->client_count];

    (void)snprintf(c->id, sizeof c->id, "t-%zu", s->client_count);
    const struct ask a = {.kind = ASK_SUBMIT,
                          .id = slice_of(c->id),
                          .definition = registry_find(&s->registry, slice_of(workflow), 0),
                          .input = input,
                          .priority = 5};
    return stage_ask(s, &a);
}

void stage_until_answered(struct stage *s, const struct client *c)
{
    while (!c->answered)
        stage_turn(s);
}

struct work *stage_call_of(const char *agent, uint32_t places)
{
    struct work *w = work_new();

    w->agent_name = slice_of(agent);
    w->instance_name = SLICE("i");
    w->max = places;
    w->wait_ms = 1000000000;
    return w;
}

void stage_call(struct stage *s, struct work *w)
{
    s->call_answered = s->asleep = false;
    scheduler_work(s->scheduler, w);
    while (!s->call_answered)
        stage_turn(s);
}

void stage_take_requests(struct stage *s, const char *agent, size_t count)
{
    while (s->requests < count)
        stage_call(s, stage_call_of(agent, (uint32_t)count));
}
