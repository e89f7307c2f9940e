/* Steps that wait, through the scheduler and the store: they need no agent, cost nothing while they
 * wait, and are claimed apart from other work when they are over. */
#include "base/when.h"
#include "scheduler/scheduler_test_kit.h"
#include "store/codec/codec.h"

#define CALL(name, more) \
    "{\"name\":\"" name "\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"" more "}"
#define WAIT(name, wait) "{\"name\":\"" name "\",\"wait\":" wait "}"

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

    CHECK(row.state == state, "%s", task_state_text(row.state));
    CHECK(slice_eq(row.waiting_for, waiting_for ? slice_of(waiting_for) : SLICE_NONE),
          "waits for %.*s", SLICE_ARG(row.waiting_for));
}

static void a_wait_alone_is_no_burden(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT("a", "\"1h\"") "," WAIT("b", "\"2h\"") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, "@wait");
    CHECK(stage_stats(&s).live == 0, "it is not in memory");
    stage_pass(&s, MS_PER_H - 2 * MS_PER_MIN);
    check_row(c, TASK_PENDING, "@wait");
    stage_pass(&s, 2 * MS_PER_MIN);
    check_row(c, TASK_PENDING, "@wait"); /* for the second one now */
    stage_pass(&s, 2 * MS_PER_H);
    check_row(c, TASK_PROCESSED, NULL);
    CHECK(s.ended == 1, "its end was reported");
    stage_end(&s);
}

static void what_comes_after_a_wait_gets_its_agent(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT("a", "\"1h\"") "," CALL("b", "") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    stage_pass(&s, MS_PER_H);
    check_row(c, TASK_PENDING, "ag");
    CHECK(row_of(c, &a).rank >= row_of(c, &a).submitted_at + MS_PER_H - 5 * MS_PER_MIN,
          "it is no older than its wait");
    stage_take_requests(&s, "ag", 1);
    CHECK(slice_is(s.idempotency_key, "t-0/b"), "the request");
    stage_end(&s);
}

static void a_wait_beside_a_call_waits_for_both(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[" CALL("a", "") ",{\"name\":\"b\",\"wait\":\"1h\",\"after\":[]}]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, ",ag,time");
    stage_take_requests(&s, "ag", 1);
    CHECK(slice_is(s.idempotency_key, "t-0/a"), "the call does not wait for the wait");
    stage_end(&s);
}

static void a_moment_is_taken_from_the_task(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf input = {0};
    (void)state;

    stage_begin(&s);
    int64_t at = s.now;
    stage_define(&s, "w",
                 "\"steps\":[" WAIT("a", "{\"until\":\"${ .input.at }\",\"plus\":\"1h\"}") "]");
    buf_str(&input, "{\"at\":\"");
    time_write(&input, at);
    buf_str(&input, "\"}");
    const struct client *c = stage_submit(&s, "w", buf_view(&input));
    stage_until_answered(&s, c);
    CHECK(row_of(c, &a).rank == at + MS_PER_H, "its rank is the moment");
    stage_pass(&s, MS_PER_H);
    check_row(c, TASK_PROCESSED, NULL);
    const struct client *past = stage_submit(&s, "w", SLICE("{\"at\":\"1971-01-01T00:00:00Z\"}"));
    stage_until_answered(&s, past);
    check_row(past, TASK_PROCESSED, NULL);
    const struct client *bad = stage_submit(&s, "w", SLICE("{\"at\":\"tomorrow\"}"));
    stage_until_answered(&s, bad);
    check_row(bad, TASK_COMPENSATED, NULL);
    stage_end(&s);
}

static void a_condition_comes_before_a_wait(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[{\"name\":\"a\",\"wait\":\"1h\",\"if\":\".input.long\"}]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PROCESSED, NULL);
    const struct client *l = stage_submit(&s, "w", SLICE("{\"long\":true}"));
    stage_until_answered(&s, l);
    check_row(l, TASK_PENDING, "@wait");
    stage_end(&s);
}

static void many_waits_do_not_stand_before_a_call(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT("a", "\"1h\"") "]");
    stage_define(&s, "v", "\"steps\":[" CALL("a", "") "]");
    for (int i = 0; i < 30; i++)
        stage_until_answered(&s, stage_submit(&s, "w", SLICE("{}")));
    stage_until_answered(&s, stage_submit(&s, "v", SLICE("{}")));
    s.now += MS_PER_H;
    stage_take_requests(&s, "ag", 1);
    stage_pass(&s, 1000);
    CHECK(s.ended == 30, "%zu ended", s.ended);
    stage_end(&s);
}

static void a_paused_wait_goes_on_later(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" WAIT("a", "\"1h\"") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_PAUSE, .id = c->ask.id}));
    stage_pass(&s, 5 * MS_PER_H);
    check_row(c, TASK_PENDING, NULL);
    stage_until_answered(&s, stage_ask(&s, &(struct ask){.kind = ASK_RESUME, .id = c->ask.id}));
    check_row(c, TASK_PENDING, "@wait");
    stage_pass(&s, MS_PER_H - 2 * MS_PER_MIN);
    check_row(c, TASK_PENDING, "@wait");
    stage_pass(&s, 2 * MS_PER_MIN);
    check_row(c, TASK_PROCESSED, NULL);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_alone_is_no_burden),
        cmocka_unit_test(what_comes_after_a_wait_gets_its_agent),
        cmocka_unit_test(a_wait_beside_a_call_waits_for_both),
        cmocka_unit_test(a_moment_is_taken_from_the_task),
        cmocka_unit_test(a_condition_comes_before_a_wait),
        cmocka_unit_test(many_waits_do_not_stand_before_a_call),
        cmocka_unit_test(a_paused_wait_goes_on_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
