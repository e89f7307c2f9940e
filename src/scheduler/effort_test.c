/* What one turn evaluates is bounded, however much tasks ask for; each condition is decided once;
 * and no kind of evaluation starves. */
#include "base/test.h"

#include <stdio.h>

#include "scheduler/scheduler.h"
#include "store/memory/memory.h"

enum {
    ASKS_MAX = 40,
    TURN_MAX = 50000,  /* steps per turn ... */
    ONE_MAX = 200000,  /* ... per evaluation */
    COPY_MAX = 70000,  /* ... per copy of its result */
    TURNS_MAX = 20000, /* more than any test needs */
    SLEEP_MAX_MS = 60000,
};

struct client {
    struct ask ask;
    char id[32];
    bool answered;
};

/* A scheduler on a memory store, single-threaded. */
struct stage {
    struct store *store;
    struct store_queue queue;
    struct store_job *job;
    struct registry registry;
    struct token_key *key;
    struct scheduler *scheduler;
    struct client clients[ASKS_MAX];
    size_t client_count;
    size_t requests; /* sent to agents */
    bool call_answered;
    size_t ended;
    struct arena arena;
    struct slice token; /* of the first request */
    int64_t now;
    bool asleep; /* until an event arrives */
    uint64_t turns;
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

    if (s->requests == 0 && w->request_count > 0)
        s->token = arena_copy(&s->arena, w->requests[0].token);
    s->requests += w->request_count;
    s->call_answered = true;
    return true;
}

static void on_ask_answer(void *arg, struct ask *a)
{
    (void)arg;
    CHECK(a->outcome == ERR_OK, "%s", a->story);
    ((struct client *)a->user)->answered = true;
}

static void on_task_ended(void *arg, const struct task *t)
{
    (void)t;
    ((struct stage *)arg)->ended++;
}

static void stage_begin(struct stage *s)
{
    const struct clock clock = {clock_now, s};
    const struct outside outside = {.arg = s,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended};

    *s = (struct stage){.now = INT64_C(1800000000000)};
    s->queue.submit = submit_job;
    s->store = memory_store_new();
    const struct scheduler_config config = {.node = SLICE("n1"), .boot = 1};
    s->key = token_key_new(s->store->ops->secret(s->store));
    s->scheduler = scheduler_new(&config, &s->queue, &s->registry, s->key, &clock, &outside);
}

static struct scheduler_stats stats_of(const struct stage *s)
{
    struct scheduler_stats stats;

    scheduler_stats(s->scheduler, &stats);
    return stats;
}

/* Runs one turn and its store job; checks that the turn stays within its limit. */
static void turn(struct stage *s)
{
    CHECK(!s->asleep, "nothing is due, but something is awaited");
    int64_t next = scheduler_turn(s->scheduler);
    CHECK(stats_of(s).turn_steps <= TURN_MAX + ONE_MAX + COPY_MAX, "%llu steps in a turn",
          (unsigned long long)stats_of(s).turn_steps);
    struct store_job *j = s->job;
    s->job = NULL;
    if (j) {
        j->run(j, s->store);
        j->done(j);
    }
    s->asleep = !j && (next == 0 || next > s->now + SLEEP_MAX_MS);
    s->now = j ? s->now + 1 : max_i64(s->now + 1, next);
    CHECK(++s->turns < TURNS_MAX, "it comes to an end");
}

static void stage_end(struct stage *s)
{
    while (scheduler_is_busy(s->scheduler))
        turn(s);
    scheduler_free(s->scheduler);
    token_key_free(s->key);
    registry_fini(&s->registry);
    s->store->ops->close(s->store);
    arena_fini(&s->arena);
}

static void define(struct stage *s, const char *name, const char *rest)
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

static struct client *ask(struct stage *s, const struct ask *a)
{
    struct client *c = &s->clients[s->client_count++];

    ASSERT(s->client_count <= ASKS_MAX);
    c->ask = *a;
    c->ask.user = c;
    s->asleep = false;
    scheduler_ask(s->scheduler, &c->ask);
    return c;
}

static struct client *submit(struct stage *s, const char *workflow, struct slice input)
{
    struct client *c = &s->clients[s->client_count];

    (void)snprintf(c->id, sizeof c->id, "t-%zu", s->client_count);
    const struct ask a = {.kind = ASK_SUBMIT,
                          .id = slice_of(c->id),
                          .definition = registry_find(&s->registry, slice_of(workflow), 0),
                          .input = input,
                          .priority = 5};
    return ask(s, &a);
}

static void until_answered(struct stage *s, const struct client *c)
{
    while (!c->answered)
        turn(s);
}

static struct work *call_of(const char *agent, uint32_t places)
{
    struct work *w = work_new();

    w->agent_name = slice_of(agent);
    w->instance_name = SLICE("i");
    w->max = places;
    w->wait_ms = 1000000000;
    return w;
}

/* Calls repeatedly until `count` requests have arrived. */
static void take_requests(struct stage *s, const char *agent, size_t count)
{
    while (s->requests < count) {
        struct work *w = call_of(agent, (uint32_t)count);
        s->call_answered = s->asleep = false;
        scheduler_work(s->scheduler, w);
        while (!s->call_answered)
            turn(s);
    }
}

/* {"a":[0,0,...],"n":1} with `zeros` zeros. */
static struct slice heavy(struct arena *a, size_t zeros)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "{\"a\":[0");
    while (zeros-- > 1)
        buf_str(&b, ",0");
    buf_str(&b, "],\"n\":1}");
    return arena_copy(a, buf_view(&b));
}

/* Appends `count` parallel steps with this `if`. */
static void add_steps(struct buf *b, const char *prefix, unsigned count, const char *condition)
{
    for (unsigned i = 0; i < count; i++)
        buf_fmt(b,
                "%s{\"name\":\"%s%u\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                "\"after\":[],\"if\":\"%s\"}",
                b->len > 0 && b->ptr[b->len - 1] == '}' ? "," : "", prefix, i, condition);
}

static void define_conditions(struct stage *s, unsigned count, const char *yes, const char *no)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "\"steps\":[");
    add_steps(&b, "yes", count, yes);
    add_steps(&b, "no", count, no);
    buf_byte(&b, ']');
    define(s, "w", b.ptr);
}

/* ---- conditions ---- */

static void each_condition_is_evaluated_once(void **state)
{
    enum { MANY = 50 };
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, MANY, ".input.n == 1", ".input.n == 0");
    until_answered(&s, submit(&s, "w", SLICE("{\"n\":1}")));
    CHECK(stats_of(&s).evaluations == 2 * MANY, "%llu evaluations",
          (unsigned long long)stats_of(&s).evaluations);
    take_requests(&s, "ag", MANY);
    /* a claim reads the row: conditions that hold are evaluated again, then the inputs */
    CHECK(stats_of(&s).evaluations <= 4 * MANY, "%llu evaluations",
          (unsigned long long)stats_of(&s).evaluations);
    stage_end(&s);
}

static void a_turn_decides_no_more_than_its_share(void **state)
{
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, 8, ".input.a[0] == 0", ".input.a[0] == 1");
    define(&s, "plain",
           "\"steps\":[{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
           "\"if\":\".input.n == 1\"}]");
    struct slice input = heavy(&a, 100000);
    const struct client *first = submit(&s, "w", input);
    const struct client *second = submit(&s, "w", input);
    turn(&s);
    const struct client *third = submit(&s, "plain", SLICE("{\"n\":1}"));
    until_answered(&s, third);
    CHECK(!first->answered && !second->answered, "small ones do not wait for large ones");
    until_answered(&s, first);
    until_answered(&s, second);
    CHECK(stats_of(&s).evaluations == 33, "%llu evaluations",
          (unsigned long long)stats_of(&s).evaluations);
    CHECK(stats_of(&s).turns_left_out > 20, "many turns");
    stage_end(&s);
    arena_fini(&a);
}

/* No agent serves the step, so it waits in memory or in the store, and must see the correction. */
static void what_held_is_asked_anew_when_it_may_have_changed(void **state)
{
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define(&s, "w",
           "\"steps\":[{\"name\":\"t\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
           "\"after\":[]},{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
           "\"after\":[],\"if\":\".input.n == 1\"}]");
    const struct client *c = submit(&s, "w", SLICE("{\"n\":1}"));
    until_answered(&s, c);
    take_requests(&s, "ag", 1); /* one of two steps: the task stays in memory */
    const struct ask correct = {.kind = ASK_CORRECT,
                                .id = c->ask.id,
                                .input = SLICE("{\"n\":0}"),
                                .reason = SLICE("a test")};
    uint64_t before = stats_of(&s).evaluations;
    until_answered(&s, ask(&s, &correct));
    CHECK(stats_of(&s).evaluations > before, "it is evaluated anew");
    stage_end(&s);
}

/* No attempt starts for a step whose condition turns out to be false. */
static void what_is_undecided_does_not_start(void **state)
{
    enum { MANY = 8 };
    CLEANUP(buf_fini) struct buf b = {0};
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    buf_str(&b, "\"steps\":[{\"name\":\"first\",\"agent\":\"ag\",\"action\":\"x\","
                "\"undo\":\"none\",\"input\":{}}");
    for (int i = 0; i < MANY; i++)
        buf_fmt(&b,
                ",{\"name\":\"s%d\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                "\"after\":[\"first\"],\"input\":{},\"if\":\".input.a[0] == 1\"}",
                i);
    buf_byte(&b, ']');
    define(&s, "w", b.ptr);
    until_answered(&s, submit(&s, "w", heavy(&a, 100000)));
    take_requests(&s, "ag", 1);
    struct work *w = call_of("ag", MANY);
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] = (struct work_result){.token = s.token, .output = SLICE("1")};
    s.asleep = false;
    scheduler_work(s.scheduler, w);
    scheduler_work(s.scheduler, call_of("ag", MANY));
    while (s.ended == 0)
        turn(&s);
    CHECK(s.requests == 1, "%zu requests", s.requests);
    stage_end(&s);
    arena_fini(&a);
}

/* The steps are claimed and all conditions hold, so there is nothing to store. */
static void what_is_left_is_not_forgotten(void **state)
{
    enum { MANY = 10 };
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, MANY, ".input.a[0] == 0", ".input.a[0] == 0");
    until_answered(&s, submit(&s, "w", heavy(&a, 100000)));
    int64_t from = s.now;
    take_requests(&s, "ag", 2 * MANY);
    CHECK(s.now < from + 1000, "each turn was due at once, by the time that is played");
    stage_end(&s);
    arena_fini(&a);
}

/* ---- inputs and outputs ---- */

static void a_turn_starts_no_more_than_its_share(void **state)
{
    enum { TASKS = 20 };
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define(&s, "w",
           "\"steps\":[{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
           "\"input\":\"${ .input.a | length }\"}]");
    struct slice input = heavy(&a, 100000);
    for (size_t i = 0; i < TASKS; i++)
        until_answered(&s, submit(&s, "w", input));
    take_requests(&s, "ag", TASKS);
    CHECK(stats_of(&s).turns_left_out > TASKS / 2, "many turns");
    stage_end(&s);
    arena_fini(&a);
}

/* One kind of evaluation that uses up the turn does not starve the other kinds. */
static void nobody_waits_for_good(void **state)
{
    struct arena a = {0};
    static struct stage s;
    (void)state;

    stage_begin(&s);
    define_conditions(&s, 200, ".input.a[0] == 0", ".input.a[0] == 1");
    define(&s, "plain",
           "\"output\":\"${ .input.n + 1 }\",\"steps\":[{\"name\":\"s\",\"agent\":\"other\","
           "\"action\":\"x\",\"undo\":\"none\",\"input\":\"${ .input.n }\"}]");
    const struct client *first = submit(&s, "w", heavy(&a, 100000));
    turn(&s);
    until_answered(&s, submit(&s, "plain", SLICE("{\"n\":1}")));
    take_requests(&s, "other", 1);
    CHECK(!first->answered, "the other is at it yet");
    until_answered(&s, first);
    stage_end(&s);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_condition_is_evaluated_once),
        cmocka_unit_test(a_turn_decides_no_more_than_its_share),
        cmocka_unit_test(what_held_is_asked_anew_when_it_may_have_changed),
        cmocka_unit_test(what_is_undecided_does_not_start),
        cmocka_unit_test(what_is_left_is_not_forgotten),
        cmocka_unit_test(a_turn_starts_no_more_than_its_share),
        cmocka_unit_test(nobody_waits_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
