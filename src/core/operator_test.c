/* Tests of the operator's verbs retry, skip and undo, in every state of a task or a step: what
 * they change, and when they are refused. verbs_test.c has the other verbs. */

#include "core/core_test_kit.h"

static void the_operator_retries(void **state)
{
    static const struct kit_case cases[] = {
        {"what is pending has nothing to retry", "a", "retry = refused, retry a = refused",
         "pending a:waiting"},
        {"nor what runs", "a", "claim, start a, retry = refused, retry a = refused",
         "processing a:running"},
        {"a step that waits for its next try gets it now", "a2 b",
         "claim, start a, again a, retry a, start a, ok a", "processing a:completed b:waiting"},
        {"so does every one, if none is named", "a2 b2",
         "claim, start a, start b, again a, again b, retry, start a, start b",
         "processing a:running b:running"},
        {"even if nobody owns the task", "a2",
         "claim, start a, again a, release, retry, claim, start a", "processing a:running"},
        {"one that waits no more needs none", "a2",
         "claim, start a, again a, wait 1s, retry a = refused", "processing a:waiting"},
        {"a task in error goes on where it stopped", "a# b<a", "claim, start a, fail a, retry",
         "processing a:waiting b:waiting"},
        {"and ends well", "a# b<a",
         "claim, start a, fail a, retry, start a f2, ok a, start b, ok b",
         "processed a:completed b:completed"},
        {"with all of its tries", "a2# b<a",
         "claim, start a, again a, wait 1s, start a, again a, retry, "
         "start a, again a, wait 1s, start a f4, ok a",
         "processing a:completed b:waiting"},
        {"and may fail again", "a#", "claim, start a, fail a, retry, start a, fail a",
         "error a:failed"},
        {"a step alone", "a# b<a", "claim, start a, fail a, retry b = refused, retry a, start a",
         "processing a:running b:waiting"},
        {"a step that may fail is not retried", "a? b#<a",
         "claim, start a, fail a, start b, fail b, retry a = refused, retry, start a = refused, "
         "start b",
         "processing a:failed b:running"},
        {"one of two: it runs, then the task stops again", "a# b#",
         "claim, start a, start b, fail a, fail b, retry a, start a, ok a",
         "error a:completed b:failed"},
        {"one of two: what follows it runs as well", "a# b# c<a",
         "claim, start a, start b, fail a, fail b, retry a, start a, ok a, start c, ok c",
         "error a:completed b:failed c:completed"},
        {"one of two, then the other", "a# b#",
         "claim, start a, start b, fail a, fail b, retry a, start a, ok a, retry, start b, ok b",
         "processed a:completed b:completed"},
        {"one that only waits, while another failed", "a# b2",
         "claim, start a, start b, again b, fail a, retry b, start b, ok b",
         "error a:failed b:completed"},
        {"going back, the compensation is retried", "a b<a",
         "claim, start a, ok a, undo, start a, fail a, retry, start a u2, ok a",
         "compensated a:undone b:waiting"},
        {"never what failed going forward", "a b<a",
         "claim, start a, ok a, start b, fail b, start a, fail a, retry b = refused, retry a",
         "compensating a:undoing b:failed"},
        {"one of two compensations: then it stops again", "a b c<ab",
         "claim, start a, ok a, start b, ok b, undo, start a, start b, fail a, fail b, retry a, "
         "start a, ok a",
         "error a:undone b:failed c:waiting"},
        {"one that waits for its next try gets it now", "a2 b<a",
         "claim, start a, ok a, undo, start a, again a, retry a, start a",
         "compensating a:undoing b:waiting"},
        {"one in doubt still waits for its time", "a",
         "claim, start a, timeout a, retry = refused, start a = refused, wait 1s, start a",
         "compensating a:undoing"},
        {"a held deadline", "by=20s hold a b<a",
         "claim, start a, ok a, deadline, retry b = refused, "
         "retry, start b, deadline = refused, ok b",
         "processed a:completed b:completed"},
        {"long after the task's complete-by: it has had its effect", "by=20s a# b<a",
         "claim, start a, fail a, wait 1h, retry, deadline = refused, start a, ok a, start b, ok b",
         "processed a:completed b:completed"},
        {"within it, it still counts", "by=20s a# b<a",
         "claim, start a, fail a, wait 5s, retry, start a, ok a, deadline",
         "compensating a:completed b:waiting"},
        {"after the undo's complete-by", "undo=20s a b<a",
         "claim, start a, ok a, undo, deadline, retry, deadline = refused, start a, ok a",
         "compensated a:undone b:waiting"},
        {"after a stuck compensation there is all the time it takes", "undo=20s a b<a",
         "claim, start a, ok a, undo, start a, fail a, retry, wait 1h, deadline = refused, start "
         "a, ok a",
         "compensated a:undone b:waiting"},
        {"a task that ended: nothing", "a",
         "claim, start a, fail a, retry = refused, retry a = refused", "compensated a:failed"},
        {"a step that is not there", "a", "claim, retry f = unknown", "processing a:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_skips(void **state)
{
    static const struct kit_case cases[] = {
        {"a step that waits, before the task was claimed", "a b<a", "skip a, claim, start b",
         "processing a:skipped b:running"},
        {"all that is left", "a b<a", "skip a, skip b", "processed a:skipped b:skipped"},
        {"out of order too", "a b<a", "claim, skip b, start a, ok a",
         "processed a:completed b:skipped"},
        {"ahead of time, and nobody gets past those before it", "a b<a c<b",
         "claim, start a, skip b, start c = refused, ok a, start c",
         "processing a:completed b:skipped c:running"},
        {"not one that runs", "a", "claim, start a, skip a = refused", "processing a:running"},
        {"not one that completed", "a b<a", "claim, start a, ok a, skip a = refused",
         "processing a:completed b:waiting"},
        {"one that waits for its next try", "a2 b<a",
         "claim, start a, again a, skip a, start b, ok b", "processed a:skipped b:completed"},
        {"it waits no more", "a2 b<a", "claim, start a, again a, skip a, retry = refused",
         "processing a:skipped b:waiting"},
        {"one that failed: the task goes on", "a# b<a",
         "claim, start a, fail a, skip a, start b, ok b", "processed a:skipped b:completed"},
        {"the last one that failed: the task is processed", "a b#<a",
         "claim, start a, ok a, start b, fail b, skip b", "processed a:completed b:skipped"},
        {"one of two that failed: the other is still failed", "a# b#",
         "claim, start a, start b, fail a, fail b, skip a", "error a:skipped b:failed"},
        {"one of two that failed, then the other", "a# b#",
         "claim, start a, start b, fail a, fail b, skip a, skip b",
         "processed a:skipped b:skipped"},
        {"one that waits while another failed", "a# b", "claim, start a, fail a, skip b",
         "error a:failed b:skipped"},
        {"one that failed and was to continue", "a? b<a", "claim, start a, fail a, skip a",
         "processing a:skipped b:waiting"},
        {"not twice", "a b<a", "claim, skip a, skip a = refused", "processing a:skipped b:waiting"},
        {"not while an undo waits for a pivot", "a! b<a c",
         "claim, start a, undo, skip c = refused", "processing/undo a:running b:waiting c:waiting"},
        {"a pivot in doubt: the task goes forward", "a!# b<a",
         "claim, start a, doubt a, skip a, undo = refused, start b, ok b",
         "processed a:skipped b:completed"},
        {"a pivot in doubt that stopped an undo", "a! b c<ab",
         "claim, start a, start b, fail b, timeout a, skip a, skip b, start c, ok c",
         "processed a:skipped b:skipped c:completed"},
        {"long after the task's complete-by", "by=20s a# b<a",
         "claim, start a, fail a, wait 1h, skip a, deadline = refused, start b, ok b",
         "processed a:skipped b:completed"},
        {"a compensation", "a b<a", "claim, start a, ok a, undo, skip a",
         "compensated a:undone b:waiting"},
        {"a compensation that is stuck", "a b<a",
         "claim, start a, ok a, undo, start a, fail a, skip a", "compensated a:undone b:waiting"},
        {"one of two that are stuck", "a b c<ab",
         "claim, start a, ok a, start b, ok b, undo, start a, start b, fail a, fail b, skip a",
         "error a:undone b:failed c:waiting"},
        {"a stuck one that precedes others: they go on", "a b<a c<b",
         "claim, start a, ok a, start b, ok b, undo, start b, fail b, skip b, start a, ok a",
         "compensated a:undone b:undone c:waiting"},
        {"a compensation that waits for its next try", "a2 b2 c<ab",
         "claim, start a, ok a, start b, ok b, undo, start a, again a, skip a, retry a = refused, "
         "skip b",
         "compensated a:undone b:undone c:waiting"},
        {"not one that runs going back", "a b<a",
         "claim, start a, ok a, undo, start a, skip a = refused",
         "compensating a:undoing b:waiting"},
        {"not one that has nothing to undo", "a b<a",
         "claim, start a, ok a, undo, skip b = refused", "compensating a:completed b:waiting"},
        {"one in doubt, without waiting", "a b<a",
         "claim, start a, ok a, start b, timeout b, skip b, "
         "start a, ok a",
         "compensated a:undone b:undone"},
        {"one in doubt that waits", "a3", "claim, start a, lost a, undo, skip a",
         "compensated a:undone"},
        {"one skipped in doubt", "a3 b<a", "claim, start a, lost a, skip a, undo, skip a",
         "compensated a:undone b:waiting"},
        {"in a task that nobody owns", "a b<a", "claim, start a, ok a, undo, release, skip a",
         "compensated a:undone b:waiting"},
        {"after the undo's complete-by, what is left goes on", "undo=20s a b<a c<b",
         "claim, start a, ok a, start b, ok b, undo, deadline, skip b, deadline = refused, start "
         "a, ok a",
         "compensated a:undone b:undone c:waiting"},
        {"a stuck one after the undo's complete-by", "undo=20s a b<a c<b",
         "claim, start a, ok a, start b, ok b, undo, start b, fail b, wait 1h, skip b, "
         "deadline = refused, start a, ok a",
         "compensated a:undone b:undone c:waiting"},
        {"a stuck one of which it turned out that it had no effect", "a",
         "claim, start a, timeout a, wait 1s, start a, fail a, fail a f1 = late, skip a",
         "compensated a:undone"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_undoes(void **state)
{
    static const struct kit_case cases[] = {
        {"a task that never began", "a", "undo", "compensated a:waiting"},
        {"one in work", "a b<a", "claim, start a, ok a, undo, start a, ok a",
         "compensated a:undone b:waiting"},
        {"one that nobody owns", "a b<a",
         "claim, start a, ok a, release, undo, claim, start a, ok a",
         "compensated a:undone b:waiting"},
        {"one whose step runs", "a b<a", "claim, start a, undo = stop",
         "compensating a:running b:waiting"},
        {"twice is once", "a b<a", "claim, start a, ok a, undo, undo = repeated",
         "compensating a:completed b:waiting"},
        {"twice is once while it waits for a pivot", "a! b<a",
         "claim, start a, undo, undo = repeated", "processing/undo a:running b:waiting"},
        {"one that is being held", "a# b c",
         "claim, start c, ok c, start a, start b, fail a, undo = stop, "
         "ok b, start b, start c, ok b, ok c",
         "compensated a:failed b:undone c:undone"},
        {"one in error", "a b#<a", "claim, start a, ok a, start b, fail b, undo, start a, ok a",
         "compensated a:undone b:failed"},
        {"one in error without effect", "a#", "claim, start a, fail a, undo",
         "compensated a:failed"},
        {"one in error in doubt", "a#", "claim, start a, doubt a, undo, wait 11s, start a, ok a",
         "compensated a:undone"},
        {"one in error that was undone before: it is", "a b<a",
         "claim, start a, ok a, undo, start a, fail a, undo = repeated",
         "error a:failed b:waiting"},
        {"not after a pivot", "a! b<a", "claim, start a, ok a, undo = refused",
         "processing a:completed b:waiting"},
        {"not after a pivot, in error", "a! b<a",
         "claim, start a, ok a, start b, fail b, undo = refused", "error a:completed b:failed"},
        {"not with a pivot in doubt for good", "a!#", "claim, start a, doubt a, undo = refused",
         "error a:failed"},
        {"nor in error, with one that another try could resolve", "a2!# b#",
         "claim, start a, start b, lost a, fail b, undo = refused, retry, undo",
         "processing/undo a:waiting b:waiting"},
        {"once it is known that the pivot had no effect", "a!# b",
         "claim, start a, timeout a, undo = refused, fail a f1 = late, undo",
         "compensated a:failed b:waiting"},
        {"not after the end", "a", "claim, start a, fail a, undo = refused",
         "compensated a:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static struct kit k;

static void a_skipped_step_gets_the_output_it_was_given(void **state)
{
    struct event ev = {.kind = EVENT_SKIP, .output = {.json = SLICE("{\"by\":\"hand\"}")}};
    (void)state;
    kit_make(&k, "skip", "a2 b<a");
    kit_play(&k, "claim, start a, lost a");
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "skipped");
    CHECK(slice_is(k.steps[0].output.json, "{\"by\":\"hand\"}"), "its output");
    CHECK(step_in_doubt(&k.steps[0]), "what is in doubt stays in doubt");
}

static void resuming_clears_what_stopped_it(void **state)
{
    (void)state;
    kit_make(&k, "resume", "a# b#");
    kit_play(&k, "claim, start a, start b, fail a, doubt b");
    CHECK(slice_is(k.t.error.code, "broken") && k.t.ended_at == k.now, "stopped");
    CHECK(!k.t.locked_by.ptr, "nobody owns it");
    kit_play(&k, "wait 5s, retry a");
    CHECK(!k.t.error.code.ptr && k.t.ended_at == 0, "goes on");
    kit_play(&k, "claim, start a, ok a");
    kit_expect(&k, "error a:completed b:failed");
    CHECK(slice_is(k.t.error.code, "broken"), "the error of the step that is still failed");
    kit_play(&k, "undo");
    kit_expect(&k, "compensating a:completed b:failed");
    CHECK(k.t.ended_at == 0, "it goes on, going back");
}

static void an_undo_without_a_reason_gets_one(void **state)
{
    struct event ev = {.kind = EVENT_UNDO, .step = -1};
    (void)state;
    kit_make(&k, "reason", "a?! b");
    kit_play(&k, "claim, start a");
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "asked");
    kit_play(&k, "timeout a");
    kit_expect(&k, "error a:failed b:waiting");
    CHECK(slice_is(k.t.error.code, "undo"), "the reason");
}

static void a_task_stopped_again_says_what_stopped_it_now(void **state)
{
    (void)state;
    kit_make(&k, "reason", "by=15s a! b<a");
    kit_play(&k, "claim, start a, ok a, deadline = alert, start b");
    CHECK(slice_is(k.t.error.code, "deadline"), "the alert's reason");
    kit_play(&k, "fail b");
    CHECK(slice_is(k.t.error.code, "broken"), "the stop's reason");
    kit_make(&k, "reason", "by=15s a! b<a");
    kit_play(&k, "claim, start a, ok a, deadline = alert, start b, ok b");
    CHECK(!k.t.error.code.ptr, "a processed task has none");
    kit_make(&k, "reason", "by=15s a! b# c");
    kit_play(&k, "claim, start a, ok a, wait 10s, start b, start c, fail b, deadline = alert");
    CHECK(slice_is(k.t.error.code, "broken"), "what stops it, not what came later");
    kit_make(&k, "reason", "b c a<bc");
    kit_play(&k, "claim, start b, ok b, start c, ok c, start a, doubt a, wait 11s, skip a, "
                 "start b, start c, bad b = refused, fail b, again c, retry b, start b, ok b");
    kit_expect(&k, "error a:undone b:undone c:failed");
    CHECK(slice_is(k.t.error.code, "broken"), "the one that is still stuck");
    kit_make(&k, "reason", "b c a<bc");
    kit_play(&k, "claim, start b, ok b, start c, ok c, bad a, start b, start c, fail b, again c, "
                 "retry b, start b, ok b");
    kit_expect(&k, "error a:failed b:undone c:failed");
    CHECK(slice_is(k.t.error.code, "broken"), "not what failed going forward");
}

/* An attempt of `a` fails while its agent's service is known to be unavailable. */
static void fails_in_an_outage(void)
{
    kit_play(&k, "wait 1s, start a");
    const struct event ev = {.kind = EVENT_RESULT,
                             .attempt = k.t.steps[0].attempt,
                             .failed = true,
                             .retryable = true,
                             .spared = true,
                             .error = {SLICE("away"), SLICE("no answer")}};
    assert_int_equal(kit_event(&k, &ev), ANSWER_ACCEPTED);
}

static void new_tries_are_spared_anew(void **state)
{
    (void)state;

    kit_make(&k, "spared", "a2#");
    kit_play(&k, "claim");
    for (int i = 0; i < SPARED_MAX; i++)
        fails_in_an_outage();
    assert_int_equal(k.t.steps[0].failure_count, 0);
    fails_in_an_outage();
    fails_in_an_outage();
    kit_expect(&k, "error a:failed");
    kit_play(&k, "retry");
    fails_in_an_outage();
    assert_int_equal(k.t.steps[0].failure_count, 0);
    kit_expect(&k, "processing a:waiting");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operator_retries),
        cmocka_unit_test(the_operator_skips),
        cmocka_unit_test(the_operator_undoes),
        cmocka_unit_test(a_skipped_step_gets_the_output_it_was_given),
        cmocka_unit_test(resuming_clears_what_stopped_it),
        cmocka_unit_test(an_undo_without_a_reason_gets_one),
        cmocka_unit_test(new_tries_are_spared_anew),
        cmocka_unit_test(a_task_stopped_again_says_what_stopped_it_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
