/* Tests of decide(): scripts of events and the expected states of a task that goes forward.
 * undo_test.c has the undo, operator_test.c and verbs_test.c the operator's verbs;
 * core_test_kit.h has the notation. */

#include "core/core_test_kit.h"

static void a_task_goes_forward_in_the_order_of_its_graph(void **state)
{
    static const struct kit_case cases[] = {
        {"a new task waits to be claimed", "a", "start a = refused", "pending a:waiting"},
        {"a claimed task is in process", "a", "claim", "processing a:waiting"},
        {"its owner may claim it again", "a", "claim, claim = repeated", "processing a:waiting"},
        {"another scheduler may take it over", "a", "claim, start a, claim other, ok a",
         "processed a:completed"},
        {"a started step is running", "a", "claim, start a", "processing a:running"},
        {"a running step is not started again", "a", "claim, start a, start a = refused",
         "processing a:running"},
        {"one that completed completes the task", "a", "claim, start a, ok a",
         "processed a:completed"},
        {"a sequence starts with its first step", "a b<a", "claim, start b = refused",
         "processing a:waiting b:waiting"},
        {"the second does not start while the first runs", "a b<a",
         "claim, start a, start b = refused", "processing a:running b:waiting"},
        {"the second starts once the first completed", "a b<a", "claim, start a, ok a, start b",
         "processing a:completed b:running"},
        {"the last one ends the task", "a b<a", "claim, start a, ok a, start b, ok b",
         "processed a:completed b:completed"},
        {"the order is the graph's, not that of the indexes", "b a<b",
         "claim, start a = refused, start b, ok b, start a, ok a",
         "processed a:completed b:completed"},
        {"independent steps run at the same time", "a b", "claim, start b, start a",
         "processing a:running b:running"},
        {"and end in any order", "a b", "claim, start b, start a, ok b, ok a",
         "processed a:completed b:completed"},
        {"a join waits for all of its predecessors", "a b c<ab",
         "claim, start a, start b, ok b, start c = refused, ok a, start c",
         "processing a:completed b:completed c:running"},
        {"a diamond opens and closes", "a b<a c<a d<bc",
         "claim, start a, ok a, start c, start b, ok c, start d = refused, ok b, start d, ok d",
         "processed a:completed b:completed c:completed d:completed"},
        {"a step that is not there is unknown", "a", "claim, start f = unknown, ok f = unknown",
         "processing a:waiting"},
        {"so is a step of the task as a whole", "a", "claim, start = unknown, skip = unknown",
         "processing a:waiting"},
        {"nothing follows the end", "a",
         "claim, start a, ok a, claim = refused, release = refused, start a = refused, "
         "skip a = refused, retry = refused, undo-bare = refused, deadline = refused",
         "processed a:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_task_whose_evaluations_overran_stops_in_error(void **state)
{
    static const struct kit_case cases[] = {
        {"at once if nothing of it is at work", "a", "claim, overrun = alert", "error a:waiting"},
        {"also before it was claimed", "a", "overrun = alert", "error a:waiting"},
        {"whatever the workflow says of failures", "a? b<a", "claim, overrun = alert",
         "error a:waiting b:waiting"},
        {"what is at work comes to its end first", "a b",
         "claim, start a, overrun, start b = refused, ok a = alert", "error a:completed b:waiting"},
        {"it is not undone, although it was about to be", "a b! c<ab",
         "claim, start a, ok a, start b, undo, overrun, lost b = alert",
         "error a:completed b:failed c:waiting"},
        {"nor is its undo gone on with", "a b<a",
         "claim, start a, ok a, undo, overrun = alert, start a = refused",
         "error a:completed b:waiting"},
        {"once is enough", "a",
         "claim, start a, overrun, overrun = refused, ok a = alert, "
         "overrun = refused",
         "error a:completed"},
        {"one that is paused evaluates nothing", "a", "claim, pause, overrun = refused",
         "processing a:waiting"},
        {"somebody may have it go on", "a", "claim, overrun = alert, retry, claim, start a, ok a",
         "processed a:completed"},
        {"or have it undone", "a b<a",
         "claim, start a, ok a, overrun = alert, undo, claim, start a, ok a",
         "compensated a:undone b:waiting"},
        {"what has ended has", "a", "claim, start a, ok a, overrun = refused",
         "processed a:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void an_attempt_may_not_be_silent_for_too_long(void **state)
{
    static const struct kit_case cases[] = {
        {"silence ends an attempt", "beat=4s a2", "claim, start a, silence a",
         "processing a:waiting"},
        {"not before it has lasted", "beat=4s a2",
         "claim, start a, wait 3999ms, silence-now a = refused", "processing a:running"},
        {"not where any silence is fine", "a2", "claim, start a, wait 9s, silence-now a = refused",
         "processing a:running"},
        {"not twice", "beat=4s a2", "claim, start a, silence a, silence-now a = refused",
         "processing a:waiting"},
        {"another try follows before its complete-by", "beat=4s a2",
         "claim, start a, silence a, wait 1s, start a, ok a", "processed a:completed"},
        {"what was silent may answer late", "beat=4s a2",
         "claim, start a, silence a, ok a f1 = late, again a f1 = late", "processing a:waiting"},
        {"it is in doubt until its complete-by", "beat=4s a",
         "claim, start a, silence a, wait 5s, start a = refused, wait 2s, start a, ok a",
         "compensated a:undone"},
        {"a compensation may not be silent either", "beat=4s a2 b<a",
         "claim, start a, ok a, start b, fail b, start a, silence a, wait 1s, start a, ok a",
         "compensated a:undone b:failed"},
        {"a pivot that was silent is in doubt", "beat=4s a!", "claim, start a, silence a",
         "error a:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void an_attempt_may_go_elsewhere(void **state)
{
    static const struct kit_case cases[] = {
        {"it goes elsewhere once", "a", "claim, start a, away a, away a = repeated",
         "processing a:running"},
        {"its result ends it", "a", "claim, start a, away a, ok a, away a = repeated",
         "processed a:completed"},
        {"so does its complete-by", "a2",
         "claim, start a, away a, timeout a, away a f1 = late, ok a f1 = late",
         "processing a:waiting"},
        {"its silence does not", "beat=4s a",
         "claim, start a, away a, wait 9s, silence-now a = refused", "processing a:running"},
        {"it is not sent again", "a", "claim, start a, away a, resend a = refused",
         "processing a:running"},
        {"it was sent", "a", "claim, start a, away a, notsent a = refused", "processing a:running"},
        {"what was not sent goes nowhere", "a", "claim, start a, notsent a, away a = refused",
         "processing a:waiting"},
        {"an undo waits for it", "a b",
         "claim, start a, away a, start b, fail b = stop, start a = "
         "refused, ok a, start a, ok a",
         "compensated a:undone b:failed"},
        {"the next try is not elsewhere", "a2",
         "claim, start a, away a, again a, wait 1s, start a, away a", "processing a:running"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_task_is_claimed_and_released(void **state)
{
    static const struct kit_case cases[] = {
        {"what nobody owns cannot be released", "a", "release = refused", "pending a:waiting"},
        {"what is not in work is released", "a", "claim, release", "pending a:waiting"},
        {"what runs is not", "a", "claim, start a, release = refused", "processing a:running"},
        {"released between two steps, it goes on at another's", "a b<a",
         "claim, start a, ok a, release, start b = refused, claim other, start b, ok b",
         "processed a:completed b:completed"},
        {"released while it waits for another try", "a2",
         "claim, start a, again a, release, claim, wait 1s, start a, ok a",
         "processed a:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_result_counts_for_the_current_attempt_alone(void **state)
{
    static const struct kit_case cases[] = {
        {"a result of an attempt that never was is unknown", "a",
         "claim, ok a f1 = unknown, start a, ok a f2 = unknown, ok a u1 = unknown",
         "processing a:running"},
        {"an accepted result may be sent again", "a b<a", "claim, start a, ok a, ok a = repeated",
         "processing a:completed b:waiting"},
        {"even with other words, it is the first that counts", "a b<a",
         "claim, start a, ok a, doubt a = repeated, fail a = repeated",
         "processing a:completed b:waiting"},
        {"so may an error", "a2",
         "claim, start a, again a, again a f1 = repeated, "
         "ok a f1 = repeated, wait 1s, start a, again a f1 = repeated",
         "processing a:running"},
        {"a late result changes no state", "a3",
         "claim, start a, timeout a, ok a f1 = late, ok a f1 = late, fail a f1 = late",
         "processing a:waiting"},
        {"a late result does not touch the attempt that is running", "a3",
         "claim, start a, timeout a, wait 1s, start a, ok a f1 = late", "processing a:running"},
        {"nor does a late error", "a3",
         "claim, start a, timeout a, wait 1s, start a, fail a f1 = late, lost a f1 = late, ok a",
         "processed a:completed"},
        {"late results after the end are kept", "a3",
         "claim, start a, timeout a, wait 1s, start a, ok a, doubt a f1 = late, ok a = repeated",
         "processed a:completed"},
        {"an attempt that never left has no result", "a",
         "claim, start a, notsent a, ok a f1 = refused, doubt a f1 = refused",
         "processing a:waiting"},
        {"only the open attempt can time out", "a3",
         "claim, start a, timeout a, timeout a f1 = refused, wait 1s, start a, "
         "timeout a f1 = refused, notsent a f1 = refused, ok a, timeout a = refused",
         "processed a:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_failed_step_is_tried_again(void **state)
{
    static const struct kit_case cases[] = {
        {"a retryable error lets it wait", "a2", "claim, start a, again a, start a = refused",
         "processing a:waiting"},
        {"until its time has come", "a2", "claim, start a, again a, wait 1s, start a",
         "processing a:running"},
        {"a timeout is a failure like it", "a2",
         "claim, start a, timeout a, start a = refused, wait 1s, start a, ok a",
         "processed a:completed"},
        {"tries come to an end", "a2", "claim, start a, lost a, wait 1s, start a, again a, wait 1s",
         "compensating a:failed"},
        {"after the quick tries come the deferred ones", "defers=1 a",
         "claim, start a, again a, wait 59s, start a = refused, wait 1s, start a, ok a",
         "processed a:completed"},
        {"and they come to an end too", "defers=1 a#",
         "claim, start a, again a, wait 60s, start a, again a", "error a:failed"},
        {"a permanent error is not retried", "a9#", "claim, start a, fail a", "error a:failed"},
        {"not being sent is no failure", "a",
         "claim, start a, notsent a, start a, notsent a, start a, ok a", "processed a:completed"},
        {"a wait of one step does not hold another", "a2 b",
         "claim, start a, again a, start b, ok b", "processing a:waiting b:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void on_failure_says_what_follows_a_failure(void **state)
{
    static const struct kit_case cases[] = {
        {"undo: nothing took effect, so the task is compensated at once", "a b<a",
         "claim, start a, fail a", "compensated a:failed b:waiting"},
        {"hold: the task stops in error", "a# b<a", "claim, start a, fail a",
         "error a:failed b:waiting"},
        {"hold: it stops only when nothing runs any more", "a# b",
         "claim, start a, start b, fail a", "processing/hold a:failed b:running"},
        {"hold: but what runs is heard", "a# b", "claim, start a, start b, fail a, ok b",
         "error a:failed b:completed"},
        {"hold: nothing else starts", "a# b c",
         "claim, start a, start b, fail a, start c = refused",
         "processing/hold a:failed b:running c:waiting"},
        {"hold: what fails then is not tried again", "a# b2",
         "claim, start a, start b, fail a, lost b", "error a:failed b:waiting"},
        {"the first to fail decides: hold", "a# b", "claim, start a, start b, fail a, fail b",
         "error a:failed b:failed"},
        {"the first to fail decides: undo", "a# b",
         "claim, start a, start b, fail b = stop, fail a", "compensated a:failed b:failed"},
        {"continue: the successors start", "a? b<a", "claim, start a, fail a, start b, ok b",
         "processed a:failed b:completed"},
        {"continue: in doubt or not", "a? b<a", "claim, start a, doubt a, start b, ok b",
         "processed a:failed b:completed"},
        {"continue: the last step may fail", "a b?<a", "claim, start a, ok a, start b, fail b",
         "processed a:completed b:failed"},
        {"continue: but only after its tries", "a2? b<a",
         "claim, start a, again a, start b = refused, wait 1s, start a, again a, start b",
         "processing a:failed b:running"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_condition_or_an_input_can_decide_for_a_step(void **state)
{
    static const struct kit_case cases[] = {
        {"a step whose condition is false is skipped", "a b<a", "claim, cond a, start b",
         "processing a:skipped b:running"},
        {"the last one ends the task", "a", "claim, cond a", "processed a:skipped"},
        {"only a step that is next has its condition evaluated", "a b<a",
         "cond b = refused, claim, cond b = refused", "processing a:waiting b:waiting"},
        {"which needs no owner", "a b<a", "cond a, claim, start b",
         "processing a:skipped b:running"},
        {"nor does the end that it brings", "a", "cond a", "processed a:skipped"},
        {"nobody decides for a task that is paused", "a", "pause, cond a = refused",
         "pending a:waiting"},
        {"and only before its first attempt", "a2",
         "claim, start a, cond a = refused, again a, wait 1s, cond a = refused",
         "processing a:waiting"},
        {"an input that cannot be evaluated is a permanent error", "a9 b<a", "claim, bad a",
         "compensated a:failed b:waiting"},
        {"and does what on_failure says: hold", "a9# b<a", "claim, bad a",
         "error a:failed b:waiting"},
        {"continue", "a9? b<a", "claim, bad a, start b, ok b", "processed a:failed b:completed"},
        {"that needs no owner, either", "a9 b<a", "bad a", "compensated a:failed b:waiting"},
        {"and stops what nobody has begun", "a9# b<a", "bad a", "error a:failed b:waiting"},
        {"only of a step that is next", "a b<a", "bad b = refused, claim, bad b = refused",
         "processing a:waiting b:waiting"},
        {"nothing of this happens going back", "a b<a",
         "claim, start a, ok a, undo = accepted, cond a = refused, cond b = refused, "
         "bad b = refused",
         "compensating a:completed b:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_task_has_a_deadline_of_its_own(void **state)
{
    static const struct kit_case cases[] = {
        {"a task without one has none", "a", "claim, deadline = refused", "processing a:waiting"},
        {"it is undone when it passes", "by=60s a b<a", "claim, start a, ok a, deadline",
         "compensating a:completed b:waiting"},
        {"or stops in error, if it says hold", "by=60s hold a b<a",
         "claim, start a, ok a, deadline", "error a:completed b:waiting"},
        {"continue makes no sense for a task: undo", "by=60s continue a b<a",
         "claim, start a, ok a, deadline", "compensating a:completed b:waiting"},
        {"nobody need own it", "by=60s hold a", "deadline", "error a:waiting"},
        {"nobody need own it: undo", "by=60s a", "deadline", "compensated a:waiting"},
        {"not before its time", "by=60s a", "claim, wait 59s, early = refused",
         "processing a:waiting"},
        {"it is acted on once", "by=15s a! b<a",
         "claim, start a, ok a, deadline = alert, deadline = refused",
         "processing a:completed b:waiting"},
        {"what runs is told to stop, and heard", "by=15s a b",
         "claim, start b, ok b, wait 14s, start a, deadline = stop, ok a",
         "compensating a:completed b:completed"},
        {"a hold waits for what runs", "by=15s hold a b",
         "claim, start b, ok b, wait 14s, start a, deadline",
         "processing/hold a:running b:completed"},
        {"and then stops", "by=15s hold a b",
         "claim, start b, ok b, wait 14s, start a, deadline, ok a",
         "error a:completed b:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

/* ---- what is recorded ---- */

static struct kit k; /* too big for a stack frame */

static void the_first_input_is_recorded_and_stays(void **state)
{
    (void)state;
    kit_make(&k, "input", "a2");
    kit_play(&k, "claim, start a");
    CHECK(slice_is(k.steps[0].input.json, "{\"in\":1}"), "recorded");
    kit_play(&k, "again a, wait 1s");
    struct event ev = {.kind = EVENT_START,
                       .attempt = 2,
                       .instance = SLICE("i"),
                       .input = {.json = SLICE("other")}};
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "started");
    CHECK(slice_is(k.steps[0].input.json, "{\"in\":1}"), "the first one stays");
    CHECK(slice_is(k.attempts[0][1].instance, "i"), "the instance is written down");
}

static void an_output_is_kept_and_none_is_null(void **state)
{
    (void)state;
    kit_make(&k, "output", "a b");
    kit_play(&k, "claim, start a, ok a, start b");
    CHECK(slice_is(k.steps[0].output.json, "{\"id\":1}"), "kept");
    struct event ev = {.kind = EVENT_RESULT, .step = 1, .attempt = 1};
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "completed");
    CHECK(slice_is(k.steps[1].output.json, "null"), "null");
    CHECK(k.t.ended_at == k.now && !k.t.locked_by.ptr, "ended, and nobody's");
}

static void a_late_output_is_kept_with_its_attempt(void **state)
{
    (void)state;
    kit_make(&k, "late output", "a3");
    kit_play(&k, "claim, start a, timeout a");
    CHECK(step_in_doubt(&k.steps[0]) && !step_has_effect(&k.steps[0]), "in doubt");
    kit_play(&k, "ok a f1 = late");
    const struct attempt *a = &k.attempts[0][0];
    CHECK(a->outcome == OUTCOME_LATE && a->effect == EFFECT_HAPPENED, "it took effect");
    CHECK(slice_is(a->output.json, "{\"id\":1}") && !k.steps[0].output.json.ptr, "output");
    CHECK(!step_in_doubt(&k.steps[0]) && step_has_effect(&k.steps[0]), "certain");
}

static void who_is_asked_twice_answers_for_one_time(void **state)
{
    (void)state;
    kit_make(&k, "resent", "a2");
    kit_play(&k, "claim, start a, resend a, notsent a = refused, fail a");
    CHECK(k.attempts[0][0].resent == 1, "it is on record");
    CHECK(step_in_doubt(&k.steps[0]), "the other time may have had an effect");
    kit_expect(&k, "compensating a:failed");
    kit_make(&k, "resent, then late", "a2");
    kit_play(&k, "claim, start a, resend a, timeout a, fail a f1 = late");
    CHECK(step_in_doubt(&k.steps[0]), "a late error clears it no more");
    kit_play(&k, "resend a = refused");
    kit_make(&k, "too late to be sent again", "a2");
    kit_play(&k, "claim, start a, wait 10s, resend a = refused, timeout a");
    kit_make(&k, "resent, and done", "a2");
    kit_play(&k, "claim, start a, resend a, ok a");
    CHECK(!step_in_doubt(&k.steps[0]) && step_has_effect(&k.steps[0]), "certain");
    kit_make(&k, "resent, done, and undone", "a b<a");
    kit_play(&k, "claim, start a, resend a, ok a, start b, fail b, start a = refused, wait 11s, "
                 "start a, ok a");
}

static void a_complete_by_can_move_to_a_later_time(void **state)
{
    struct event ev = {.kind = EVENT_EXTEND, .step = -1};
    (void)state;
    kit_make(&k, "extended", "by=20s undo=9s a b<a");
    kit_play(&k, "claim, start a, ok a, wait 20s, start b = refused");
    ev.until = k.t.complete_by;
    CHECK(kit_event(&k, &ev) == ANSWER_REFUSED, "not later");
    ev.until = k.now + 5000;
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "later");
    kit_play(&k, "early = refused, start b");
    CHECK(k.attempts[1][0].complete_by == k.now + 5000, "capped anew");
    kit_play(&k, "fail b");
    ev.until = k.t.undo_complete_by;
    CHECK(kit_event(&k, &ev) == ANSWER_REFUSED, "that of the undo is no earlier");
    ev.until = k.t.undo_complete_by + 1;
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED && k.t.undo_complete_by == ev.until, "undo");
    kit_play(&k, "deadline");
    ev.until += 1000;
    CHECK(kit_event(&k, &ev) == ANSWER_REFUSED, "it was acted on");
    kit_make(&k, "no complete-by", "a");
    kit_play(&k, "claim");
    CHECK(kit_event(&k, &ev) == ANSWER_REFUSED, "there is none");
    kit_play(&k, "start a, ok a");
    CHECK(kit_event(&k, &ev) == ANSWER_REFUSED, "it has ended");
}

static void failures_are_counted_and_told(void **state)
{
    (void)state;
    kit_make(&k, "failures", "a3 b");
    kit_play(&k, "claim, start a, again a, wait 1s, start a, timeout a, start b, again b");
    CHECK(k.steps[0].failure_count == 2 && k.steps[1].failure_count == 1, "each its own");
    CHECK(k.t.failure_count == 3, "the task all of them");
    CHECK(slice_is(k.steps[0].error.code, "timeout"), "the latest one");
    CHECK(slice_is(k.attempts[0][0].error.code, "broken"), "each attempt its own");
    CHECK(slice_is(k.attempts[0][1].error.code, "timeout"), "each attempt its own");
    CHECK(slice_is(k.t.error.code, "broken"), "why the task stopped: b failed");
}

static void a_completed_step_forgets_its_error(void **state)
{
    (void)state;
    kit_make(&k, "error", "a2 b<a");
    kit_play(&k, "claim, start a, again a, wait 1s, start a, ok a");
    CHECK(!k.steps[0].error.code.ptr, "its own");
    CHECK(slice_is(k.attempts[0][0].error.code, "broken"), "the attempt keeps it");
    kit_play(&k, "undo, start a, again a, wait 1s, start a, ok a");
    CHECK(!k.steps[0].error.code.ptr, "going back too");
}

static void the_first_claim_is_the_start_of_a_task(void **state)
{
    (void)state;
    kit_make(&k, "start", "a b<a");
    kit_play(&k, "wait 3s, claim");
    CHECK(k.t.started_at == KIT_BEGIN + 3000, "claimed");
    CHECK(slice_is(k.t.locked_by, "node/1"), "by whom");
    kit_play(&k, "wait 1s, release, wait 1s, claim other");
    CHECK(k.t.started_at == KIT_BEGIN + 3000, "the first one counts");
    CHECK(slice_is(k.t.locked_by, "other"), "by whom");
}

/* How long the step waits after that script. */
static int64_t jittered_wait(const char *id, int step, const char *script)
{
    kit_make(&k, "jitter", "a9 b9");
    for (int i = 0; i < 2; i++) {
        k.g.steps[i].call.retry.jitter = k.g.steps[i].undo.retry.jitter = true;
        k.g.steps[i].call.retry.max_wait_ms = k.g.steps[i].call.retry.wait_ms = 1000000;
        k.g.steps[i].undo.retry = k.g.steps[i].call.retry;
    }
    k.t.id = slice_of(id);
    kit_play(&k, script);
    return k.steps[step].wait_until - k.now;
}

static void jitter_differs_by_task_step_and_direction(void **state)
{
    (void)state;
    int64_t a = jittered_wait("t-1", 0, "claim, start a, again a");
    CHECK(a >= 500000 && a <= 1000000, "%" PRId64, a);
    CHECK(a == jittered_wait("t-1", 0, "claim, start a, again a"), "the same again");
    CHECK(a != jittered_wait("t-2", 0, "claim, start a, again a"), "by task");
    CHECK(a != jittered_wait("t-1", 1, "claim, start b, again b"), "by step");
    CHECK(a != jittered_wait("t-1", 0, "claim, start a, ok a, undo, start a, again a"),
          "by direction");
}

static void an_agent_may_name_its_own_delay(void **state)
{
    struct event ev = {.kind = EVENT_RESULT,
                       .attempt = 1,
                       .failed = true,
                       .error = {SLICE("busy"), SLICE("later")},
                       .retryable = true,
                       .retry_after_ms = 7000};
    (void)state;
    kit_make(&k, "delay", "a2");
    kit_play(&k, "claim, start a");
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "failed");
    CHECK(k.steps[0].wait_until == k.now + 7000, "waits as long as it was told");
}

static void a_start_names_its_attempt(void **state)
{
    (void)state;
    kit_make(&k, "start", "a2");
    kit_play(&k, "claim, start a f2 = refused, start a u1 = refused, start a f1, again a, wait 1s, "
                 "start a f1 = refused, start a f2, ok a");
    kit_expect(&k, "processed a:completed");
}

static void a_step_deadline_is_capped_by_the_task_s(void **state)
{
    (void)state;
    kit_make(&k, "cap", "by=15s undo=12s a b<a c<b");
    kit_play(&k, "claim, start a");
    CHECK(k.attempts[0][0].complete_by == k.now + GRAPH_STEP_MS, "its own");
    kit_play(&k, "wait 6s, ok a, start b");
    CHECK(k.attempts[1][0].complete_by == k.t.complete_by, "capped");
    kit_play(&k, "ok b, wait 9s, start c = refused");
    struct ready ready[GRAPH_STEPS];
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 0, "too late to start");
    kit_play(&k, "deadline, start b");
    CHECK(k.t.undo_complete_by == k.now + 12000, "undo has its own");
    CHECK(k.attempts[1][1].complete_by == k.t.undo_complete_by, "which caps it");
}

static void a_deadline_dealt_with_caps_no_longer(void **state)
{
    (void)state;
    kit_make(&k, "cap", "by=15s a! b<a");
    kit_play(&k, "claim, start a, ok a, deadline = alert, start b");
    CHECK(k.attempts[1][0].complete_by == k.now + GRAPH_STEP_MS, "its own");
    CHECK(slice_is(k.t.error.code, "deadline"), "an alert says why");
}

static void ready_lists_what_is_next_and_when(void **state)
{
    struct ready r[GRAPH_STEPS];
    (void)state;
    kit_make(&k, "ready", "d b<d a2<d c<ab");
    CHECK(task_ready(&k.g.w, &k.t, k.now, r) == 1 && r[0].step == 3, "a pending one too");
    kit_play(&k, "claim, start d");
    CHECK(task_ready(&k.g.w, &k.t, k.now, r) == 0, "running");
    kit_play(&k, "ok d");
    CHECK(task_ready(&k.g.w, &k.t, k.now, r) == 2 && r[0].step == 1 && r[1].step == 0, "order");
    kit_play(&k, "start a, again a");
    CHECK(task_ready(&k.g.w, &k.t, k.now, r) == 2 && r[0].at <= k.now, "b at once");
    CHECK(r[1].step == 0 && r[1].at == k.now + GRAPH_WAIT_MS, "a after its wait");
    kit_play(&k, "wait 1s, start a, ok a, start b, ok b, start c, ok c");
    CHECK(task_ready(&k.g.w, &k.t, k.now, r) == 0, "nothing after the end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_goes_forward_in_the_order_of_its_graph),
        cmocka_unit_test(a_task_whose_evaluations_overran_stops_in_error),
        cmocka_unit_test(an_attempt_may_not_be_silent_for_too_long),
        cmocka_unit_test(an_attempt_may_go_elsewhere),
        cmocka_unit_test(a_task_is_claimed_and_released),
        cmocka_unit_test(a_result_counts_for_the_current_attempt_alone),
        cmocka_unit_test(a_failed_step_is_tried_again),
        cmocka_unit_test(on_failure_says_what_follows_a_failure),
        cmocka_unit_test(a_condition_or_an_input_can_decide_for_a_step),
        cmocka_unit_test(the_task_has_a_deadline_of_its_own),
        cmocka_unit_test(the_first_input_is_recorded_and_stays),
        cmocka_unit_test(an_output_is_kept_and_none_is_null),
        cmocka_unit_test(a_late_output_is_kept_with_its_attempt),
        cmocka_unit_test(who_is_asked_twice_answers_for_one_time),
        cmocka_unit_test(a_complete_by_can_move_to_a_later_time),
        cmocka_unit_test(failures_are_counted_and_told),
        cmocka_unit_test(a_completed_step_forgets_its_error),
        cmocka_unit_test(the_first_claim_is_the_start_of_a_task),
        cmocka_unit_test(jitter_differs_by_task_step_and_direction),
        cmocka_unit_test(an_agent_may_name_its_own_delay),
        cmocka_unit_test(a_start_names_its_attempt),
        cmocka_unit_test(a_step_deadline_is_capped_by_the_task_s),
        cmocka_unit_test(a_deadline_dealt_with_caps_no_longer),
        cmocka_unit_test(ready_lists_what_is_next_and_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
