/* Tests of steps that wait: when the wait begins and is over, what moves its end (pauses,
 * outages), and what an operator may do with it. definition/wait_test.c tests how waits are
 * declared. */

#include "core/core_test_kit.h"
#include "core/reason.h"

static struct kit k;

static const struct kit_case of_waits[] = {
    {"a wait begins, and is over at its time", "a~",
     "begin a, due-now a = refused, wait 5s, due-now a = refused, due a", "processed a:completed"},
    {"it begins once", "a~", "begin a, begin a = refused", "pending a:waiting"},
    {"it begins after what is before it", "a b~<a",
     "claim, begin b = refused, start a, begin b = refused, ok a, begin b, due b",
     "processed a:completed b:completed"},
    {"it has no attempts", "a~", "claim, start a = refused", "processing a:waiting"},
    {"a call does not begin like it", "a", "claim, begin a = refused, due-now a = refused",
     "processing a:waiting"},
    {"its successors start when it is over", "a~ b<a",
     "claim, begin a, start b = refused, due a, start b, ok b",
     "processed a:completed b:completed"},
    {"its condition is false", "a~ b<a", "claim, cond a, start b",
     "processing a:skipped b:running"},
    {"once it has begun, its condition does not count", "a~", "begin a, cond a = refused",
     "pending a:waiting"},
    {"its moment cannot be evaluated", "a b@<a", "claim, start a, ok a, bad b",
     "compensating a:completed b:failed"},
    {"and the task continues", "a@? b<a", "claim, bad a, start b", "processing a:failed b:running"},
    {"once it has begun, nothing can fail", "a@", "begin a, bad a = refused", "pending a:waiting"},
    {"a failure beside it stops the task in error at once", "a# b~",
     "claim, start a, begin b, fail a", "error a:failed b:waiting"},
    {"and turns it back at once", "a b~", "claim, start a, begin b, fail a",
     "compensated a:failed b:waiting"},
    {"nothing is over while the task is being undone", "a b~",
     "claim, start a, ok a, begin b, undo, wait 1m, due-now b = refused, start a, ok a",
     "compensated a:undone b:waiting"},
    {"nor while it is in error", "a# b~",
     "claim, start a, begin b, fail a, wait 1m, due-now b = refused, begin b = refused",
     "error a:failed b:waiting"},
    {"nor while it is paused", "a~", "begin a, pause, wait 1m, due-now a = refused",
     "pending a:waiting"},
    {"nor once the task's complete-by has passed", "by=15s a~ b~<a",
     "begin a, due a, begin b, wait 1m, due-now b = refused, deadline",
     "compensated a:completed b:waiting"},
    {"it is skipped", "a~ b<a", "claim, begin a, skip a, due-now a = refused, start b",
     "processing a:skipped b:running"},
    {"its output is supplied", "a~ b<a", "claim, begin a, supply a, start b",
     "processing a:completed b:running"},
    {"it has nothing to retry", "a~", "begin a, retry a = refused, retry = refused",
     "pending a:waiting"},
    {"unless it failed", "a@#", "claim, bad a, retry a, begin a, due a", "processed a:completed"},
    {"it has no input to correct", "a~",
     "correct a = refused, begin a, correct a = refused, correct", "pending a:waiting"},
    {"it has no doubt to resolve", "a~", "begin a, resolve a = refused", "pending a:waiting"},
    {"it starts anew", "a~ b<a", "claim, begin a, due a, from a, due-now a = refused, begin a",
     "processing a:waiting b:waiting"},
};

static void waits(void **state)
{
    (void)state;
    kit_run(of_waits, COUNT_OF(of_waits));
}

static void check_left(const char *graph, const char *script, int64_t left)
{
    kit_make(&k, script, graph);
    kit_play(&k, script);
    CHECK(k.steps[0].wait_until - k.now == left, "%s: %s: %lld ms are left, not %lld", graph,
          script, (long long)(k.steps[0].wait_until - k.now), (long long)left);
}

/* The length is GRAPH_LONG_MS, 6 s; the moment is 12 s from the beginning. */
static void what_moves_the_end(void **state)
{
    (void)state;
    check_left("a~", "begin a", 6000);
    check_left("a~", "wait 3s, begin a, wait 2s", 4000);
    check_left("a~", "begin a, wait 2s, pause, wait 1m, resume", 4000);
    check_left("a~ b#", "claim, start b, begin a, wait 2s, fail b, wait 1m, retry", 4000);
    check_left("a~ b#", "claim, start b, begin a, wait 2s, fail b, wait 1m, skip b", 4000);
    check_left("a~ b#", "claim, start b, begin a, wait 7s, fail b, wait 1m, retry", -61000);
    check_left("a@", "begin a", 12000);
    check_left("a@", "wait 3s, begin a, wait 2s", 7000);
    check_left("a@", "begin a, wait 2s, pause, wait 5s, resume", 5000);
    check_left("a@ b#", "claim, start b, begin a, wait 2s, fail b, wait 5s, retry", 5000);
}

static void a_moment_that_has_passed_is_over_at_once(void **state)
{
    (void)state;
    kit_make(&k, "past", "a@ b<a");
    kit_play(&k, "claim, wait 1m, begin a, due-now a, start b");
    kit_expect(&k, "processing a:completed b:running");
    CHECK(k.steps[0].begun_at == k.now && slice_is(k.steps[0].output.json, "null"), "its record");
}

static void a_wait_is_ready_for_what_comes_next(void **state)
{
    struct ready ready[GRAPH_STEPS];
    (void)state;

    kit_make(&k, "ready", "a~ b<a");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1 && ready[0].step == 0 && ready[0].at == 0,
          "it is to begin");
    kit_play(&k, "begin a");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1 && ready[0].at == k.now + GRAPH_LONG_MS,
          "it is over then");
    CHECK(task_wake_at(&k.t) == 0, "nobody has to look after it");
}

static void the_end_of_an_outage_ends_no_wait(void **state)
{
    const struct event hasten = {.kind = EVENT_HASTEN, .step = 0};
    (void)state;

    kit_make(&k, "an outage", "a~");
    kit_play(&k, "begin a");
    CHECK(kit_event(&k, &hasten) == ANSWER_REFUSED, "it did not fail in an outage");
}

static void an_operator_is_told_what_a_wait_has_not(void **state)
{
    uint16_t at = 9;
    (void)state;

    kit_make(&k, "obstacles", "a~");
    kit_play(&k, "begin a");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_RETRY, 0, k.now, &at) == OBSTACLE_KIND, "tries");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_CORRECT, 0, k.now, &at) == OBSTACLE_KIND, "input");
    CHECK(operator_may(&k.g.w, &k.t, EVENT_SKIP, 0, k.now), "skip");
    CHECK(operator_may(&k.g.w, &k.t, EVENT_RETRY_FROM, 0, k.now), "start anew");
    kit_make(&k, "obstacles", "a b~");
    kit_play(&k, "claim, start a, ok a, begin b, undo");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_RETRY, 1, k.now, &at) == OBSTACLE_TASK_UNDONE,
          "while it is undone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits),
        cmocka_unit_test(what_moves_the_end),
        cmocka_unit_test(a_moment_that_has_passed_is_over_at_once),
        cmocka_unit_test(a_wait_is_ready_for_what_comes_next),
        cmocka_unit_test(the_end_of_an_outage_ends_no_wait),
        cmocka_unit_test(an_operator_is_told_what_a_wait_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
