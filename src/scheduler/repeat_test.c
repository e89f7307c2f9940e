/* Steps that are repeated, through the scheduler and the store: each round is a request of its own,
 * and between two rounds a task costs nothing. */
#include "base/when.h"
#include "scheduler/scheduler_test_kit.h"
#include "store/codec/codec.h"

#define STEP(until, more)                                                       \
    "{\"name\":\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"," more \
    "\"repeat\":{\"until\":\"" until "\",\"every\":\"1h\",\"for\":\"150m\"}}"
#define LAST "{\"name\":\"b\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"}"

static struct stage s;

static struct task_row row_of(const struct client *c, struct arena *a)
{
    struct task_row row = {0};
    struct error e = {0};
    enum err err = s.store->ops->get(s.store, c->ask.id, a, &row, &e);

    CHECK(err == ERR_OK, "%s", e.text);
    return row;
}

static void check_row(const struct client *c, enum task_state state, const char *waiting_for)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = row_of(c, &a);

    CHECK(row.state == state, "%s: %.*s", task_state_text(row.state), SLICE_ARG(row.doc));
    CHECK(slice_eq(row.waiting_for, waiting_for ? slice_of(waiting_for) : SLICE_NONE),
          "waits for %.*s", SLICE_ARG(row.waiting_for));
}

static bool doc_has(const struct client *c, const char *text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice doc = row_of(c, &a).doc;

    return memmem(doc.ptr, doc.len, text, strlen(text)) != NULL;
}

/* The agent takes the request of that key and answers it. */
static void answer(struct stage *st, const char *key, const char *output)
{
    struct work *w = stage_call_of("ag", 1);

    st->requests = 0;
    stage_take_requests(st, "ag", 1);
    CHECK(slice_is(st->idempotency_key, key), "%.*s, not %s", SLICE_ARG(st->idempotency_key), key);
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[0] = (struct work_result){.token = st->token, .output = slice_of(output)};
    w->result_count = 1;
    w->max = 0;
    stage_call(st, w);
    CHECK(st->status == RESULT_ACCEPTED, "the result is taken");
}

static const struct client *begin(const char *steps)
{
    stage_begin(&s);
    stage_define(&s, "w", steps);
    const struct client *c = stage_submit(&s, "w", SLICE("{\"n\":2}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, "ag");
    return c;
}

static void each_round_is_a_request_of_its_own(void **state)
{
    (void)state;
    const struct client *c = begin("\"steps\":[" STEP(".output.ok", "") "," LAST "]");

    answer(&s, "t-0/a", "{\"ok\":false,\"at\":1}");
    stage_pass(&s, MS_PER_MIN);
    check_row(c, TASK_PENDING, "time");
    CHECK(stage_stats(&s).live == 0, "it is not in memory");
    CHECK(doc_has(c, "\"output\":{\"ok\":false,\"at\":1}"), "the last answer");
    stage_pass(&s, 50 * MS_PER_MIN);
    check_row(c, TASK_PENDING, "time");
    stage_pass(&s, 10 * MS_PER_MIN);
    answer(&s, "t-0/a@2", "{\"ok\":true}");
    answer(&s, "t-0/b", "1");
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"round\":2"), "the number of rounds");
    stage_end(&s);
}

/* 0, 60, 120 and 180 minutes: the last one begins when 150 minutes have passed. */
static void after_its_time_it_is_not_yet(void **state)
{
    (void)state;
    const struct client *c = begin("\"steps\":[" STEP(".output.ok", "") "]");

    answer(&s, "t-0/a", "{\"ok\":false}");
    stage_pass(&s, MS_PER_H);
    answer(&s, "t-0/a@2", "{\"ok\":false}");
    stage_pass(&s, MS_PER_H);
    answer(&s, "t-0/a@3", "{\"ok\":false}");
    stage_pass(&s, MS_PER_H);
    answer(&s, "t-0/a@4", "{\"ok\":false,\"left\":7}");
    check_row(c, TASK_COMPENSATED, NULL);
    CHECK(doc_has(c, "\"code\":\"not_yet\"") && doc_has(c, "\"left\":7"), "code and output");
    stage_end(&s);
}

/* It stops the task, of which another attempt runs: a wait that is over at that moment goes on
 * only with the task. */
static void what_stops_the_task_stops_what_was_ready(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"a\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\","
                 "\"on_failure\":\"hold\",\"repeat\":{\"until\":\".output.ok\",\"every\":\"1m\","
                 "\"for\":\"1m\"}},"
                 "{\"name\":\"x\",\"agent\":\"other\",\"action\":\"x\",\"undo\":\"none\","
                 "\"after\":[]},{\"name\":\"w\",\"after\":[],"
                 "\"wait\":{\"until\":\"2027-01-15T08:05:00Z\"}}]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    struct ask verb = {.kind = ASK_PAUSE, .id = c->ask.id, .reason = SLICE("a test")};
    struct work *w = stage_call_of("ag", 1);

    stage_take_requests(&s, "other", 1);
    w->agent_name = SLICE("other");
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] = (struct work_result){.token = s.token, .elsewhere = true};
    w->max = 0;
    stage_call(&s, w); /* its result comes from elsewhere, some time */
    w = stage_call_of("ag", 1);
    answer(&s, "t-0/a", "{\"ok\":false}");
    s.now += MS_PER_MIN;
    s.requests = 0;
    stage_take_requests(&s, "ag", 1);
    stage_until_answered(&s, stage_ask(&s, &verb));
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[w->result_count++] =
        (struct work_result){.token = s.token, .output = SLICE("{\"ok\":false}")};
    w->max = 0;
    stage_call(&s, w);
    stage_pass(&s, 5 * MS_PER_MIN); /* the moment of the wait */
    verb.kind = ASK_RESUME;
    stage_until_answered(&s, stage_ask(&s, &verb));
    stage_pass(&s, 1);
    CHECK(doc_has(c, "\"stop\":\"hold\"") && doc_has(c, "\"code\":\"not_yet\""), "it stops");
    CHECK(doc_has(c, "\"name\":\"w\",\"state\":\"waiting\""), "and nothing goes on");
    stage_end(&s);
}

static void the_round_is_in_the_input(void **state)
{
    (void)state;
    const struct client *c =
        begin("\"steps\":[" STEP(".round == .input.n", "\"input\":{\"r\":\"${ .round }\"},") "]");

    answer(&s, "t-0/a", "1");
    stage_pass(&s, MS_PER_H);
    answer(&s, "t-0/a@2", "2");
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(doc_has(c, "\"input\":{\"r\":2}"), "of the last round: %.*s", 2000,
          row_of(c, &s.arena).doc.ptr);
    stage_end(&s);
}

static void a_condition_counts_once(void **state)
{
    (void)state;
    const struct client *c =
        begin("\"steps\":[" STEP(".round == 2", "\"if\":\".input.n == 2\",") "]");

    answer(&s, "t-0/a", "1");
    struct ask other = {.kind = ASK_CORRECT, .id = c->ask.id, .input = SLICE("{\"n\":3}")};
    stage_until_answered(&s, stage_ask(&s, &other));
    stage_pass(&s, MS_PER_H);
    answer(&s, "t-0/a@2", "1");
    check_row(c, TASK_PROCESSED, NULL);
    stage_end(&s);
}

static void what_is_not_true_or_false_fails_the_step(void **state)
{
    (void)state;
    const struct client *c = begin("\"steps\":[" STEP(".output.ok", "") "]");

    answer(&s, "t-0/a", "{}");
    check_row(c, TASK_COMPENSATED, NULL);
    CHECK(doc_has(c, "\"code\":\"expression\"") && doc_has(c, "gave null, expected true or false"),
          "why");
    stage_end(&s);
}

static void a_paused_round_is_judged_later(void **state)
{
    (void)state;
    const struct client *c = begin("\"steps\":[" STEP(".output.ok", "") "]");

    s.requests = 0;
    stage_take_requests(&s, "ag", 1);
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_PAUSE, .id = c->ask.id}));
    struct work *w = stage_call_of("ag", 1);
    w->results = arena_alloc(&w->arena, sizeof *w->results);
    w->results[0] = (struct work_result){.token = s.token, .output = SLICE("{\"ok\":true}")};
    w->result_count = 1;
    w->max = 0;
    stage_call(&s, w);
    stage_pass(&s, MS_PER_H);
    check_row(c, TASK_PENDING, NULL);
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_RESUME, .id = c->ask.id}));
    stage_pass(&s, MS_PER_MIN);
    check_row(c, TASK_PROCESSED, NULL);
    stage_end(&s);
}

static void a_paused_task_has_its_next_round_later(void **state)
{
    (void)state;
    const struct client *c = begin("\"steps\":[" STEP(".output.ok", "") "]");

    answer(&s, "t-0/a", "{\"ok\":false}");
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_PAUSE, .id = c->ask.id}));
    stage_pass(&s, 5 * MS_PER_H);
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_RESUME, .id = c->ask.id}));
    stage_pass(&s, 50 * MS_PER_MIN);
    check_row(c, TASK_PENDING, "time");
    stage_pass(&s, 15 * MS_PER_MIN);
    answer(&s, "t-0/a@2", "{\"ok\":false}"); /* its time has not passed */
    stage_pass(&s, MS_PER_MIN);
    check_row(c, TASK_PENDING, "time");
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_is_a_request_of_its_own),
        cmocka_unit_test(after_its_time_it_is_not_yet),
        cmocka_unit_test(what_stops_the_task_stops_what_was_ready),
        cmocka_unit_test(the_round_is_in_the_input),
        cmocka_unit_test(a_condition_counts_once),
        cmocka_unit_test(what_is_not_true_or_false_fails_the_step),
        cmocka_unit_test(a_paused_round_is_judged_later),
        cmocka_unit_test(a_paused_task_has_its_next_round_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
