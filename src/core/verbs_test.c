/* Tests of the operator's verbs pause, resume, close, reopen, correct, supply and resolve, and of
 * starting steps anew: what they change, and when they are refused. operator_test.c has retry,
 * skip and undo. */

#include "core/attempts.h"
#include "core/core_test_kit.h"

static void the_operator_pauses(void **state)
{
    static const struct kit_case cases[] = {
        {"nothing starts", "a b", "claim, pause, start a = refused",
         "processing a:waiting b:waiting"},
        {"what runs may end", "a b<a", "claim, start a, pause, ok a, start b = refused",
         "processing a:completed b:waiting"},
        {"or fail, with nothing after it", "a2",
         "claim, start a, pause, again a, wait 1h, "
         "start a = refused, resume, wait 1s, start a",
         "processing a:running"},
        {"twice", "a", "pause, pause = repeated, resume, resume = repeated", "pending a:waiting"},
        {"not what has stopped", "a#", "claim, start a, fail a, pause = refused, resume = refused",
         "error a:failed"},
        {"nor what is over", "a", "claim, start a, ok a, pause = refused, resume = refused",
         "processed a:completed"},
        {"its complete-by waits", "by=20s a b<a",
         "claim, start a, ok a, pause, wait 1h, early = refused, resume, early = refused, start b, "
         "ok b",
         "processed a:completed b:completed"},
        {"on its way back too", "a b<a",
         "claim, start a, ok a, undo, pause, start a = refused, "
         "resume, start a, ok a",
         "compensated a:undone b:waiting"},
        {"undo lets it go on, backwards", "a b<a",
         "claim, start a, ok a, pause, undo, start a, ok a", "compensated a:undone b:waiting"},
        {"undo of what goes back already lets it go on", "a b<a",
         "claim, start a, ok a, undo, pause, undo, undo = repeated, start a",
         "compensating a:undoing b:waiting"},
        {"a pivot that runs is waited for, then it goes back or on", "a!",
         "claim, start a, pause, ok a", "processed a:completed"},
        {"its end in error ends the pause", "a#", "claim, start a, pause, fail a, pause = refused",
         "error a:failed"},
        {"skip and supply leave it paused", "a b c<ab",
         "claim, pause, skip a, supply b, start c = refused, resume, start c",
         "processing a:skipped b:completed c:running"},
        {"a late result is late as ever", "a2", "claim, start a, timeout a, pause, ok a f1 = late",
         "processing a:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_closes(void **state)
{
    static const struct kit_case cases[] = {
        {"only what has stopped in error", "a", "close = refused, reopen = refused",
         "pending a:waiting"},
        {"nothing more can be done to it", "a# b",
         "claim, start a, fail a, close, close = repeated, retry = refused, skip a = refused, "
         "undo = refused, correct a = refused, supply a = refused, from a = refused, "
         "pause = refused",
         "error a:failed b:waiting"},
        {"until it is reopened", "a#",
         "claim, start a, fail a, close, reopen, reopen = repeated, retry, claim, start a, ok a",
         "processed a:completed"},
        {"what is over is not closed", "a",
         "claim, start a, ok a, close = refused, reopen = refused", "processed a:completed"},
        {"a late result is on record all the same", "a! b#",
         "claim, start a, start b, timeout a, fail b, close, fail a f1 = late",
         "error a:failed b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_corrects(void **state)
{
    static const struct kit_case cases[] = {
        {"what waits", "a", "correct a, correct a = repeated", "pending a:waiting"},
        {"the whole task", "a", "correct, correct = repeated", "pending a:waiting"},
        {"not what runs", "a", "claim, start a, correct a = refused", "processing a:running"},
        {"nor what is in doubt", "a2#", "claim, start a, lost a, correct a = refused",
         "processing a:waiting"},
        {"nor what completed", "a b<a", "claim, start a, ok a, correct a = refused",
         "processing a:completed b:waiting"},
        {"nor what was skipped", "a b", "claim, skip a, correct a = refused",
         "processing a:skipped b:waiting"},
        {"nor what goes back", "a b<a",
         "claim, start a, ok a, undo, correct = refused, "
         "correct b = refused",
         "compensating a:completed b:waiting"},
        {"what failed, and is tried again", "a#",
         "claim, start a, fail a, correct a, retry, claim, "
         "start a, ok a",
         "processed a:completed"},
        {"a step that is not there", "a", "correct f = unknown", "pending a:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_supplies(void **state)
{
    static const struct kit_case cases[] = {
        {"what waits", "a b<a", "supply a, claim, start b", "processing a:completed b:running"},
        {"all of it", "a", "supply a", "processed a:completed"},
        {"what is in doubt, and it is undone later", "a# b<a",
         "claim, start a, doubt a, supply a, claim, undo, start a, ok a",
         "compensated a:undone b:waiting"},
        {"what never ran is undone too: somebody did it", "a b<a",
         "supply a, claim, undo, start a, ok a", "compensated a:undone b:waiting"},
        {"a late result changes nothing more", "a2 b<a",
         "claim, start a, timeout a, supply a, ok a f1 = late", "processing a:completed b:waiting"},
        {"not what runs", "a", "claim, start a, supply a = refused", "processing a:running"},
        {"nor what completed", "a b", "claim, start a, ok a, supply a = refused",
         "processing a:completed b:waiting"},
        {"nor on the way back", "a b<a", "claim, start a, ok a, undo, supply b = refused",
         "compensating a:completed b:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_resolves(void **state)
{
    static const struct kit_case cases[] = {
        {"a pivot in doubt that was refused at last: the task can be undone", "a b2!<a",
         "claim, start a, ok a, start b, lost b, wait 1s, start b, fail b, wait 11s, "
         "undo = refused, resolve b, undo, claim, start a, ok a",
         "compensated a:undone b:failed"},
        {"or corrected, and tried again", "a!",
         "claim, start a, doubt a, wait 11s, "
         "correct a = refused, resolve a, correct a, retry, claim, start a, ok a",
         "processed a:completed"},
        {"what has nothing to undo is not compensated", "a# b<a",
         "claim, start a, doubt a, wait 11s, resolve a, undo", "compensated a:failed b:waiting"},
        {"also when it was skipped in doubt", "a# b<a",
         "claim, start a, doubt a, skip a, wait 11s, resolve a, undo",
         "compensated a:skipped b:waiting"},
        {"a pivot that holds the undo lets it go on", "a b2!<a",
         "claim, start a, ok a, start b, timeout b, undo, wait 1s, resolve b",
         "compensating a:completed b:waiting"},
        {"on the way back, if nothing was begun", "a2",
         "claim, start a, timeout a, wait 1s, undo, resolve a", "compensated a:waiting"},
        {"not once its compensation began", "a2",
         "claim, start a, timeout a, wait 1s, undo, start a, resolve a = refused, again a, "
         "resolve a = refused",
         "compensating a:undoing"},
        {"nor when that is done", "a2 b<a",
         "claim, start a, timeout a, wait 1s, undo, pause, skip a, resolve a = refused",
         "compensated a:undone b:waiting"},
        {"not what is at work", "a2",
         "claim, start a, lost a, wait 11s, start a, resolve a = refused", "processing a:running"},
        {"not before its complete-by and the margin", "a#",
         "claim, start a, doubt a, wait 10s, resolve a = refused, wait 1s, resolve a",
         "error a:failed"},
        {"not what failed without effect", "a#",
         "claim, start a, fail a, wait 11s, resolve a = refused", "error a:failed"},
        {"nor what completed", "a2 b<a",
         "claim, start a, timeout a, wait 1s, start a, ok a, wait 11s, resolve a = refused",
         "processing a:completed b:waiting"},
        {"nor what never ran", "a", "claim, resolve a = refused", "processing a:waiting"},
        {"nor what is known to have happened", "a3#",
         "claim, start a, timeout a, wait 1s, start a, ok a f1 = late, timeout a, wait 1s, "
         "resolve a = refused",
         "processing a:waiting"},
        {"twice is once", "a#",
         "claim, start a, doubt a, wait 11s, resolve a, resolve a = repeated", "error a:failed"},
        {"a new try that is lost is in doubt again", "a2!",
         "claim, start a, timeout a, wait 1s, resolve a, start a, doubt a, undo = refused, "
         "wait 11s, resolve a, undo",
         "compensated a:failed"},
        {"not by the word of who looked at another attempt", "a3#",
         "claim, start a, timeout a, wait 1s, start a, timeout a, wait 1s, resolve a f1 = refused, "
         "resolve a f3 = refused, resolve a f2, resolve a f1 = refused",
         "processing a:waiting"},
        {"not what was closed", "a#",
         "claim, start a, doubt a, wait 11s, close, resolve a = refused", "error a:failed"},
        {"a step that is not there", "a", "resolve f = unknown", "pending a:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

/* Then the effect is a fact and counts as far as possible. */
static void what_was_resolved_is_answered_after_all(void **state)
{
    static const struct kit_case cases[] = {
        {"it is undone with the task", "a2",
         "claim, start a, timeout a, wait 1s, resolve a, ok a f1 = late, undo, wait 11s, start a, "
         "ok a",
         "compensated a:undone"},
        {"also if the task has turned back", "a b2<a",
         "claim, start a, ok a, start b, timeout b, wait 1s, resolve b, undo, ok b f1 = late, "
         "start a = refused, start b, ok b, start a, ok a",
         "compensated a:undone b:undone"},
        {"a pivot prevents it", "a2!#",
         "claim, start a, timeout a, wait 1s, resolve a, ok a f1 = late, "
         "undo, start a, fail a, undo = refused",
         "error a:failed"},
        {"a pivot past which the task is being undone: somebody has to see to it", "a b2!<a",
         "claim, start a, ok a, start b, timeout b, wait 1s, resolve b, undo, "
         "ok b f1 = late alert, start a, ok a",
         "compensated a:undone b:waiting"},
        {"so has he if the task is undone", "a2",
         "claim, start a, timeout a, wait 1s, resolve a, undo, ok a f1 = late alert",
         "compensated a:waiting"},
        {"or its key is another by now", "a2",
         "claim, start a, timeout a, wait 1s, resolve a, correct a, ok a f1 = late alert",
         "processing a:waiting"},
        {"nobody, if there was none", "a2",
         "claim, start a, timeout a, wait 1s, resolve a, undo, fail a f1 = late",
         "compensated a:waiting"},
        {"nor of what has nothing to undo", "a2-",
         "claim, start a, timeout a, wait 1s, resolve a, undo, ok a f1 = late",
         "compensated a:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_operator_starts_anew(void **state)
{
    static const struct kit_case cases[] = {
        {"what has begun only", "a b<a", "claim, from a = refused",
         "processing a:waiting b:waiting"},
        {"a step that failed, and what was skipped after it", "a# b<a",
         "claim, start a, fail a, skip b, from a", "processing a:waiting b:waiting"},
        {"what completed with nothing to undo", "a- b#<a",
         "claim, start a, ok a, start b, fail b, from a, claim, start a, ok a, start b, ok b",
         "processed a:completed b:completed"},
        {"not what completed and has an undo", "a b#<a",
         "claim, start a, ok a, start b, fail b, from a = refused, from b",
         "processing a:completed b:waiting"},
        {"not what was supplied and has an undo", "a b#<a",
         "supply a, claim, start b, fail b, from a = refused", "error a:completed b:failed"},
        {"not a pivot that completed", "a! b#<a",
         "claim, start a, ok a, start b, fail b, from a = refused", "error a:completed b:failed"},
        {"not while one of them runs", "a- b<a", "claim, start a, ok a, start b, from a = refused",
         "processing a:completed b:running"},
        {"nor is in doubt", "a- b2#<a", "claim, start a, ok a, start b, lost b, from a = refused",
         "processing a:completed b:waiting"},
        {"another branch goes on", "a- b- c<a",
         "claim, start a, ok a, start b, from a, ok b, start a",
         "processing a:running b:completed c:waiting"},
        {"not on the way back", "a- b c<ab",
         "claim, start a, ok a, start b, ok b, undo, from a = refused",
         "compensating a:completed b:completed c:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static struct kit k;

static void clocks_move_by_the_length_of_a_pause(void **state)
{
    (void)state;

    kit_make(&k, "clocks", "by=60s a2 b");
    kit_play(&k, "claim, start a, again a");
    int64_t wait_until = k.steps[0].wait_until;
    int64_t complete_by = k.t.complete_by;
    kit_play(&k, "pause, wait 1h, resume");
    assert_int_equal(k.steps[0].wait_until, wait_until + 3600000);
    assert_int_equal(k.t.complete_by, complete_by + 3600000);
    assert_int_equal(k.t.paused_at, 0);
}

/* By the rest of the wait when the pause begins; a time that has passed stays. */
static void a_pause_moves_a_not_before_that_is_ahead(void **state)
{
    static const struct {
        const char *what, *script;
        int64_t moved_ms;
    } cases[] = {
        {"all of it ahead", "pause, wait 10s, resume", 10000},
        {"the pause is over before that", "wait 3s, pause, wait 1s, resume", 1000},
        {"it comes during the pause", "wait 29s, pause, wait 1h, resume", 3600000},
        {"it has come", "wait 31s, pause, wait 1h, resume", 0},
        {"in that moment", "wait 30s, pause, wait 1h, resume", 0},
        {"at work", "claim, pause, wait 10s, resume", 10000},
        {"twice", "pause, wait 2s, resume, wait 1s, pause, wait 3s, resume", 5000},
        {"not by asking again", "pause, wait 2s, pause = repeated, wait 2s, resume", 4000},
        {"an undo ends the pause", "pause, wait 7s, undo", 7000},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kit_make(&k, cases[i].what, "from=30s by=60s a b");
        int64_t from = k.t.not_before;
        int64_t by = k.t.complete_by;
        kit_play(&k, cases[i].script);
        CHECK(k.t.not_before == from + cases[i].moved_ms, "%s: not_before", cases[i].what);
        CHECK(k.t.direction == DIRECTION_UNDO || cases[i].moved_ms == 0
                  || k.t.complete_by == by + cases[i].moved_ms,
              "%s: its complete-by moves with it", cases[i].what);
    }
}

/* What a service has asked for passes while the task goes on: whole, if it did so in a pause. */
static void a_wait_that_begins_in_a_pause_follows_it(void **state)
{
    (void)state;
    for (int spared = 0; spared < 2; spared++) {
        const struct event fails = {.kind = EVENT_RESULT,
                                    .attempt = 1,
                                    .failed = true,
                                    .retryable = true,
                                    .spared = spared,
                                    .retry_after_ms = 7000,
                                    .error = {SLICE("away"), SLICE("later")}};
        kit_make(&k, spared ? "in an outage" : "a failure", "a3");
        kit_play(&k, "claim, start a, wait 1s, pause, wait 10s");
        assert_int_equal(kit_event(&k, &fails), ANSWER_ACCEPTED);
        assert_int_equal(k.t.steps[0].failure_count, !spared);
        kit_play(&k, "wait 20s, resume");
        CHECK(k.steps[0].wait_until == k.now + 7000, "%s: %" PRId64 " ms are left",
              spared ? "in an outage" : "a failure", k.steps[0].wait_until - k.now);
    }
}

static void an_attempt_keeps_its_complete_by(void **state)
{
    (void)state;

    kit_make(&k, "attempt", "a2");
    kit_play(&k, "claim, start a");
    int64_t complete_by = k.attempts[0][0].complete_by;
    kit_play(&k, "pause, wait 5s, resume");
    assert_int_equal(k.attempts[0][0].complete_by, complete_by);
    kit_play(&k, "pause, timeout a");
    assert_int_equal(k.attempts[0][0].outcome, OUTCOME_TIMED_OUT);
}

static void one_key_stands_for_one_request(void **state)
{
    (void)state;

    kit_make(&k, "keys", "a# b<a");
    kit_play(&k, "correct a");
    assert_int_equal(k.steps[0].generation, 0); /* the first one was never used */
    kit_play(&k, "claim, start a, fail a, correct a = repeated, retry, claim, start a, fail a");
    assert_int_equal(k.attempts[0][1].generation, 0);
    kit_play(&k, "from a, claim, start a, fail a");
    assert_int_equal(k.attempts[0][2].generation, 1);
    kit_play(&k, "skip b, from a");
    assert_int_equal(k.steps[0].generation, 2);
    assert_int_equal(k.steps[1].generation, 1); /* it shows that the step had begun */
    assert_null(k.steps[0].input.json.ptr);
    assert_int_equal(k.steps[0].failure_count, 0);
}

static void try_often(const char *script, int times)
{
    for (int i = 0; i < times; i++)
        kit_play(&k, script);
}

/* The earlier record stays, also of merged attempts. */
static void resolving_rewrites_nothing(void **state)
{
    (void)state;

    kit_make(&k, "resolve", "a#");
    kit_play(&k, "claim");
    try_often("start a, doubt a, wait 11s, retry", ATTEMPTS_KEPT + 1);
    kit_play(&k, "resolve a");
    assert_false(step_in_doubt(&k.steps[0]));
    assert_int_equal(k.steps[0].resolved, ATTEMPTS_KEPT + 1);
    assert_int_equal(k.attempts[0][0].effect, EFFECT_UNKNOWN);
    assert_int_equal(k.steps[0].dropped_effect, EFFECT_UNKNOWN);
    try_often("start a, fail a, wait 11s, retry", ATTEMPTS_KEPT);
    assert_false(step_in_doubt(&k.steps[0])); /* all resolved ones but the first are merged */
    kit_play(&k, "start a, doubt a, wait 11s, retry");
    try_often("start a, fail a, wait 11s, retry", ATTEMPTS_KEPT);
    assert_true(step_in_doubt(&k.steps[0])); /* the new one is merged too */
    kit_play(&k, "resolve a, undo");
    kit_expect(&k, "compensated a:waiting");
}

/* A resolve also covers merged attempts, and so do their later results. */
static void one_that_was_merged_is_answered_after_all(void **state)
{
    (void)state;

    kit_make(&k, "merged", "a#");
    kit_play(&k, "claim");
    try_often("start a, doubt a, wait 11s, retry", ATTEMPTS_KEPT + 2);
    kit_play(&k,
             "ok a f6 = unknown, resolve a, ok a f6 = late, ok a f7 = late, ok a f99 = unknown");
    assert_true(step_has_effect(&k.steps[0]));
    kit_play(&k, "undo, start a, ok a");
    kit_expect(&k, "compensated a:undone");

    kit_make(&k, "merged, too late", "a#");
    kit_play(&k, "claim");
    try_often("start a, doubt a, wait 11s, retry", ATTEMPTS_KEPT + 1);
    kit_play(&k, "resolve a, undo, ok a f6 = late alert, ok a f6 = late");
    kit_expect(&k, "compensated a:waiting");

    kit_make(&k, "merged, another key", "a#");
    kit_play(&k, "claim");
    try_often("start a, doubt a, wait 11s, retry", ATTEMPTS_KEPT + 1);
    kit_play(&k, "resolve a, correct a, ok a f6 = late alert, ok a f6 = late");
    kit_play(&k, "start a, fail a, wait 11s, undo");
    kit_expect(&k, "compensating a:failed");
}

/* An operation on many tasks has not seen attempts that begin meanwhile. */
static void what_began_since_somebody_looked_is_not_resolved(void **state)
{
    (void)state;

    kit_make(&k, "since", "a#");
    kit_play(&k, "claim, start a, doubt a, wait 11s");
    struct event ev = {.kind = EVENT_RESOLVE, .step = 0, .until = k.now};
    kit_play(&k, "wait 1s, retry, start a, doubt a, wait 11s");
    assert_int_equal(kit_event(&k, &ev), ANSWER_REFUSED);
    ev.until = k.attempts[0][1].started_at;
    assert_int_equal(kit_event(&k, &ev), ANSWER_ACCEPTED);
}

static void closing_says_when_and_why(void **state)
{
    (void)state;

    kit_make(&k, "close", "a#");
    kit_play(&k, "claim, start a, fail a, wait 5s, close");
    assert_int_equal(k.t.closed_at, k.now);
    assert_true(slice_is(k.t.closed_reason, "settled by telephone"));
    kit_play(&k, "reopen");
    assert_int_equal(k.t.closed_at, 0);
    assert_null(k.t.closed_reason.ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operator_pauses),
        cmocka_unit_test(the_operator_closes),
        cmocka_unit_test(the_operator_corrects),
        cmocka_unit_test(the_operator_supplies),
        cmocka_unit_test(the_operator_resolves),
        cmocka_unit_test(what_was_resolved_is_answered_after_all),
        cmocka_unit_test(the_operator_starts_anew),
        cmocka_unit_test(clocks_move_by_the_length_of_a_pause),
        cmocka_unit_test(a_pause_moves_a_not_before_that_is_ahead),
        cmocka_unit_test(a_wait_that_begins_in_a_pause_follows_it),
        cmocka_unit_test(an_attempt_keeps_its_complete_by),
        cmocka_unit_test(one_key_stands_for_one_request),
        cmocka_unit_test(resolving_rewrites_nothing),
        cmocka_unit_test(one_that_was_merged_is_answered_after_all),
        cmocka_unit_test(what_began_since_somebody_looked_is_not_resolved),
        cmocka_unit_test(closing_says_when_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
