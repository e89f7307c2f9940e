/* Tests of the undo of tasks: the order of compensations, pivots, steps in doubt, the undo's own
 * deadline, and which failure is reported. on_undo_test.c has the steps that run at its end. */

#include "core/core_test_kit.h"

static void what_took_effect_is_undone_in_reverse(void **state)
{
    static const struct kit_case cases[] = {
        {"the last first", "a b<a c<b",
         "claim, start a, ok a, start b, ok b, start c, fail c, start a = refused, start b, "
         "start a = refused, ok b, start a, ok a",
         "compensated a:undone b:undone c:failed"},
        {"the order is the graph's, not that of the indexes", "b a<b c<a",
         "claim, start b, ok b, start a, ok a, start c, fail c, start b = refused, start a, ok a, "
         "start b, ok b",
         "compensated a:undone b:undone c:failed"},
        {"independent branches at the same time", "a b c<ab",
         "claim, start a, ok a, start b, ok b, start c, fail c, start a, start b, ok a, ok b",
         "compensated a:undone b:undone c:failed"},
        {"a diamond closes as it opened", "a b<a c<a d<bc e<d",
         "claim, start a, ok a, start b, ok b, start c, ok c, start d, ok d, start e, fail e, "
         "start b = refused, start d, ok d, start b, start c, ok c, start a = refused, ok b, "
         "start a, ok a",
         "compensated a:undone b:undone c:undone d:undone e:failed"},
        {"what never started is left alone", "a b<a", "claim, start a, ok a, undo, start a, ok a",
         "compensated a:undone b:waiting"},
        {"nothing took effect: compensated at once", "a b", "claim, start a, fail a",
         "compensated a:failed b:waiting"},
        {"undo: none is not undone", "a- b<a", "claim, start a, ok a, start b, fail b",
         "compensated a:completed b:failed"},
        {"and does not stand between its neighbours", "a b-<a c<b",
         "claim, start a, ok a, start b, ok b, start c, fail c, start b = refused, start a, ok a",
         "compensated a:undone b:completed c:failed"},
        {"its neighbours keep their order", "a b-<a c<b d<c",
         "claim, start a, ok a, start b, ok b, start c, ok c, start d, fail d, start a = refused, "
         "start c, ok c, start a, ok a",
         "compensated a:undone b:completed c:undone d:failed"},
        {"a skipped step has nothing to undo", "a b<a", "claim, cond a, start b, fail b",
         "compensated a:skipped b:failed"},
        {"one that failed without effect and was to continue neither", "a? b<a",
         "claim, start a, fail a, start b, fail b", "compensated a:failed b:failed"},
        {"one in doubt that was to continue does", "a? b<a",
         "claim, start a, doubt a, start b, fail b, wait 11s, start a, ok a",
         "compensated a:undone b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void what_runs_is_told_to_stop_and_waited_for(void **state)
{
    static const struct kit_case cases[] = {
        {"agents are told to stop", "a b", "claim, start a, start b, fail a = stop",
         "compensating a:failed b:running"},
        {"nothing that came before it is undone meanwhile", "a b<a c<a",
         "claim, start a, ok a, start b, start c, fail b = stop, start a = refused",
         "compensating a:completed b:failed c:running"},
        {"a branch of its own is", "a b c",
         "claim, start a, ok a, start b, start c, fail b = stop, "
         "start a, ok a",
         "compensating a:undone b:failed c:running"},
        {"its result still counts: it is undone too", "a b<a c<a",
         "claim, start a, ok a, start b, start c, fail b = stop, ok c, start a = refused, start c, "
         "ok c, start a, ok a",
         "compensated a:undone b:failed c:undone"},
        {"its error ends it, whatever tries were left", "a b<a c9<a",
         "claim, start a, ok a, start b, start c, fail b = stop, again c, wait 1h, "
         "start c = refused, start a, ok a",
         "compensated a:undone b:failed c:waiting"},
        {"a permanent error without effect ends all", "a b",
         "claim, start a, start b, "
         "fail a = stop, fail b",
         "compensated a:failed b:failed"},
        {"an attempt that never left needs no undo", "a b",
         "claim, start a, start b, fail a = stop, notsent b", "compensated a:failed b:waiting"},
        {"its own failure does not turn anything again", "a b#",
         "claim, start a, start b, fail a = stop, fail b", "compensated a:failed b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void what_is_in_doubt_is_undone_after_its_time(void **state)
{
    static const struct kit_case cases[] = {
        {"not before its complete-by and a margin", "a",
         "claim, start a, timeout a, "
         "start a = refused, wait 999ms, start a = refused, wait 1ms, start a, ok a",
         "compensated a:undone"},
        {"an answer of unknown effect waits as long", "a",
         "claim, start a, doubt a, wait 10s, start a = refused, wait 1s, start a, ok a",
         "compensated a:undone"},
        {"what came before it waits for it", "a b<a",
         "claim, start a, ok a, start b, timeout b, start a = refused, wait 1s, start a = refused, "
         "start b, ok b, start a, ok a",
         "compensated a:undone b:undone"},
        {"the latest of its attempts counts", "a2",
         "claim, start a, timeout a, wait 1s, start a, doubt a, wait 10s, start a = refused, "
         "wait 1s, start a",
         "compensating a:undoing"},
        {"a completed step with an unanswered attempt is left alone as long", "a2 b<a",
         "claim, start a, lost a, wait 1s, start a, ok a, start b, fail b, start a",
         "compensating a:undoing b:failed"},
        {"as it may still be at work; one that answered is at rest", "a2 b<a",
         "claim, start a, timeout a, wait 900ms, start a = refused, wait 100ms, start a, ok a, "
         "start b, fail b, start a",
         "compensating a:undoing b:failed"},
        {"a later error without effect does not settle it", "a2",
         "claim, start a, timeout a, wait 1s, start a, fail a, start a, ok a",
         "compensated a:undone"},
        {"an attempt that never left does not settle it", "a2",
         "claim, start a, timeout a, wait 1s, start a, notsent a, undo, start a, ok a",
         "compensated a:undone"},
        {"a late answer without effect does", "a", "claim, start a, timeout a, fail a f1 = late",
         "compensated a:failed"},
        {"a late answer without effect does: what came before goes on", "a b<a",
         "claim, start a, ok a, start b, timeout b, start a = refused, fail b f1 = late, start a, "
         "ok a",
         "compensated a:undone b:failed"},
        {"before the undo as well", "a2", "claim, start a, timeout a, fail a f1 = late, undo",
         "compensated a:waiting"},
        {"a late effect is undone", "a", "claim, start a, timeout a, ok a f1 = late, start a, ok a",
         "compensated a:undone"},
        {"a late answer of unknown effect settles nothing", "a",
         "claim, start a, timeout a, doubt a f1 = late, start a = refused, wait 1s, start a, ok a",
         "compensated a:undone"},
        {"undo: none is not waited for", "a-", "claim, start a, timeout a", "compensated a:failed"},
        {"a compensation that began is brought to its end, doubt or not", "a2",
         "claim, start a, doubt a, wait 11s, start a, timeout a, fail a f1 = repeated, wait 1s, "
         "start a, ok a",
         "compensated a:undone"},
        {"even if it turns out that there was no effect", "a3",
         "claim, start a, timeout a, undo, wait 1s, start a, again a, fail a f1 = late, "
         "wait 1s, start a, ok a",
         "compensated a:undone"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_compensation_has_tries_of_its_own(void **state)
{
    static const struct kit_case cases[] = {
        {"an error is retried", "a2 b#<a",
         "claim, start a, ok a, undo, start a, again a, "
         "start a = refused, wait 1s, start a, ok a",
         "compensated a:undone b:waiting"},
        {"so is a timeout", "a2 b<a",
         "claim, start a, ok a, undo, start a, timeout a, wait 1s, "
         "start a, ok a",
         "compensated a:undone b:waiting"},
        {"so is a request that never left, at once", "a b<a",
         "claim, start a, ok a, undo, start a, notsent a, start a, ok a",
         "compensated a:undone b:waiting"},
        {"failures going forward do not count", "a2 b<a",
         "claim, start a, again a, wait 1s, start a, ok a, undo, start a, again a, wait 1s, "
         "start a u2, ok a",
         "compensated a:undone b:waiting"},
        {"deferred tries too", "defers=1 a b<a",
         "claim, start a, ok a, undo, start a, again a, wait 60s, start a, ok a",
         "compensated a:undone b:waiting"},
        {"without a try left the task stops in error", "a b<a",
         "claim, start a, ok a, undo, start a, again a", "error a:failed b:waiting"},
        {"a permanent error does so at once", "a9 b<a",
         "claim, start a, ok a, undo, start a, fail a", "error a:failed b:waiting"},
        {"continue is no way out", "a b?<a c<b",
         "claim, start a, ok a, start b, ok b, undo, start b, "
         "fail b",
         "error a:completed b:failed c:waiting"},
        {"other branches are still undone", "a b c<ab",
         "claim, start a, ok a, start b, ok b, undo, start a, fail a, start b",
         "compensating a:failed b:undoing c:waiting"},
        {"then it stops", "a b c<ab",
         "claim, start a, ok a, start b, ok b, undo, start a, start b, fail a, ok b",
         "error a:failed b:undone c:waiting"},
        {"an undo input that cannot be evaluated is a permanent error", "a9 b<a",
         "claim, start a, ok a, undo, bad a", "error a:failed b:waiting"},
        {"of a step in doubt", "a9", "claim, start a, lost a, undo, wait 11s, bad a",
         "error a:failed"},
        {"of a step that failed in doubt", "a", "claim, start a, doubt a, wait 11s, bad a",
         "error a:failed"},
        {"of a step that was skipped in doubt", "a2 b<a",
         "claim, start a, lost a, skip a, undo, wait 11s, bad a", "error a:failed b:waiting"},
        {"one that is skipped in doubt is undone", "a2 b<a",
         "claim, start a, lost a, skip a, start b, fail b, wait 11s, start a, ok a",
         "compensated a:undone b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void the_undo_has_a_deadline_of_its_own(void **state)
{
    static const struct kit_case cases[] = {
        {"when it passes, the task stops in error", "undo=60s a b<a",
         "claim, start a, ok a, undo, deadline", "error a:completed b:waiting"},
        {"not before its time", "by=5s undo=60s a b<a",
         "claim, start a, ok a, undo, wait 59s, early = refused, deadline",
         "error a:completed b:waiting"},
        {"what runs is heard first", "undo=60s a b<a",
         "claim, start a, ok a, undo, wait 50s, start a, deadline, ok a",
         "compensated a:undone b:waiting"},
        {"but nothing else starts", "undo=60s a b<a c<b",
         "claim, start a, ok a, start b, ok b, undo, wait 50s, start b, deadline, "
         "start a = refused, ok b",
         "error a:completed b:undone c:waiting"},
        {"that of the way forward counts no more", "by=20s a b<a",
         "claim, start a, ok a, undo, wait 1h, deadline = refused, start a, ok a",
         "compensated a:undone b:waiting"},
        {"both are acted on", "by=20s undo=20s a b<a",
         "claim, start a, ok a, deadline, deadline = accepted", "error a:completed b:waiting"},
        {"whoever owns it", "by=20s undo=20s a b<a",
         "claim, start a, ok a, release, deadline, claim, release, deadline",
         "error a:completed b:waiting"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void a_pivot_stands_in_the_way(void **state)
{
    static const struct kit_case cases[] = {
        {"once it completed there is no way back: error", "a! b<a",
         "claim, start a, ok a, start b, fail b", "error a:completed b:failed"},
        {"wherever it is", "a b!<a c<b", "claim, start a, ok a, start b, ok b, start c, fail c",
         "error a:completed b:completed c:failed"},
        {"a branch beside it is tried to its end first", "a! b2",
         "claim, start a, ok a, start b, again b, wait 1s, start b, again b",
         "error a:completed b:failed"},
        {"before it started undo is free", "a b!<a", "claim, start a, ok a, undo, start a, ok a",
         "compensated a:undone b:waiting"},
        {"its own failure without effect is undone", "a b!<a",
         "claim, start a, ok a, start b, fail b, start a, ok a", "compensated a:undone b:failed"},
        {"while it runs the undo is held", "a! b c",
         "claim, start b, ok b, start c, start a, fail c, "
         "start b = refused",
         "processing/undo a:running b:completed c:failed"},
        {"held: it completed, so the task stops in error", "a! b c",
         "claim, start b, ok b, start c, start a, fail c, ok a",
         "error a:completed b:completed c:failed"},
        {"held: what else runs is heard before that", "a! b c",
         "claim, start b, start c, start a, fail c, ok a, ok b",
         "error a:completed b:completed c:failed"},
        {"held: it had no effect, so undo goes on", "a! b c",
         "claim, start b, ok b, start c, start a, fail c, fail a, start b, ok b",
         "compensated a:failed b:undone c:failed"},
        {"held: it never left, so undo goes on", "a! b c",
         "claim, start b, ok b, start c, start a, fail c, notsent a, start b, ok b",
         "compensated a:waiting b:undone c:failed"},
        {"held: it is in doubt without a try left, so error", "a! b c",
         "claim, start b, ok b, start c, start a, fail c, timeout a",
         "error a:failed b:completed c:failed"},
        {"held: in doubt with a try left, that one decides", "a2! b",
         "claim, start b, start a, timeout a, fail b, start a = refused, wait 1s, start a",
         "processing/undo a:running b:failed"},
        {"held: completed", "a2! b",
         "claim, start b, start a, timeout a, fail b, wait 1s, start a, ok a",
         "error a:completed b:failed"},
        {"held: another error without effect leaves the doubt", "a2! b",
         "claim, start b, start a, timeout a, fail b, wait 1s, start a, fail a",
         "error a:failed b:failed"},
        {"held: a late answer without effect resolves it", "a2! b",
         "claim, start b, start a, timeout a, fail b, fail a f1 = late",
         "compensated a:waiting b:failed"},
        {"held: also if nobody owns the task", "a2! b c",
         "claim, start c, ok c, start b, start a, timeout a, fail b, release, fail a f1 = late, "
         "claim, start c, ok c",
         "compensated a:waiting b:failed c:undone"},
        {"held: a late effect leaves it to the next try", "a2! b",
         "claim, start b, start a, timeout a, fail b, ok a f1 = late, wait 1s, start a, ok a",
         "error a:completed b:failed"},
        {"held: a late answer resolves even one without a try left, while another step runs",
         "a! b", "claim, start a, start b, timeout a, fail a f1 = late stop, ok b, start b, ok b",
         "compensated a:failed b:undone"},
        {"a pivot that waits without doubt holds nothing", "a2! b",
         "claim, start b, start a, again a, fail b", "compensated a:waiting b:failed"},
        {"an operator's undo waits for it as well", "a! b<a", "claim, start a, undo",
         "processing/undo a:running b:waiting"},
        {"completed, the task goes forward, and somebody is told", "a! b<a",
         "claim, start a, undo, ok a = alert, start b, ok b", "processed a:completed b:completed"},
        {"unless that was all of it", "a!", "claim, start a, undo, ok a", "processed a:completed"},
        {"a deadline waits for it as well", "by=5s a! b<a", "claim, start a, deadline, fail a",
         "compensated a:failed b:waiting"},
        {"completed after the deadline, it goes forward, and somebody is told", "by=5s a2! b<a",
         "claim, start a, timeout a, deadline, wait 1s, start a, ok a = alert, start b, ok b",
         "processed a:completed b:completed"},
        {"a deadline after it alerts, once, and the task goes on", "by=15s a! b<a",
         "claim, start a, ok a, start b, deadline = alert, deadline = refused, ok b",
         "processed a:completed b:completed"},
        {"held: another pivot does not start meanwhile", "a! b2! c",
         "claim, start b, again b, start c, start a, fail c, wait 1s, start b = refused",
         "processing/undo a:running b:waiting c:failed"},
        {"a second pivot changes nothing", "a! b! c",
         "claim, start c, start a, start b, fail c, ok a, timeout b",
         "error a:completed b:failed c:failed"},
        {"two pivots: one in doubt holds the task", "a! b2! c",
         "claim, start c, start a, start b, fail c, timeout a, timeout b, wait 1s, start b = "
         "refused",
         "error a:failed b:waiting c:failed"},
        {"a pivot may fail where it is to continue", "a?! b<a",
         "claim, start a, fail a, start b, ok b", "processed a:failed b:completed"},
        {"but in doubt it prevents a later undo", "a?! b<a",
         "claim, start a, doubt a, start b, fail b", "error a:failed b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static struct kit k;

static void an_undo_records_its_input_once(void **state)
{
    (void)state;
    kit_make(&k, "undo input", "a2 b<a");
    kit_play(&k, "claim, start a, ok a, undo, start a, again a, wait 1s");
    CHECK(slice_is(k.steps[0].undo_input.json, "{\"in\":1}"), "recorded");
    struct event ev = {.kind = EVENT_START,
                       .direction = DIRECTION_UNDO,
                       .attempt = 2,
                       .input = {.json = SLICE("other")}};
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "started");
    CHECK(slice_is(k.steps[0].undo_input.json, "{\"in\":1}"), "the first one stays");
    CHECK(k.attempts[0][2].complete_by == k.now + GRAPH_UNDO_MS, "its own complete-by");
    CHECK(k.steps[0].direction == DIRECTION_UNDO && k.steps[0].attempt == 2, "counted anew");
    CHECK(slice_is(k.steps[0].output.json, "{\"id\":1}"), "the output stays");
    CHECK(slice_is(k.t.error.code, "operator"), "why");
}

static void a_stuck_undo_tells_why(void **state)
{
    (void)state;
    kit_make(&k, "reason", "a b<a");
    kit_play(&k, "claim, start a, ok a, undo, start a, fail a");
    CHECK(slice_is(k.t.error.code, "broken"), "the compensation's own error");
    kit_make(&k, "reason", "undo=60s a b<a");
    kit_play(&k, "claim, start a, ok a, undo, deadline");
    CHECK(slice_is(k.t.error.code, "deadline"), "the deadline");
}

static void expect_cause(const char *code, int step)
{
    const struct cause c = task_first_failure(&k.g.w, &k.t);

    CHECK(slice_eq(c.error.code, slice_of(code)), "%s: %.*s", k.about, SLICE_ARG(c.error.code));
    CHECK(!code || c.step == step, "%s: of step %d", k.about, c.step);
}

/* Whatever fails later, and whatever the task's error becomes. */
static void the_first_failure_stays(void **state)
{
    (void)state;
    kit_make(&k, "a second failure", "a b<a c<a");
    kit_play(&k, "claim, start a, ok a, start b, start c, fail b = stop");
    expect_cause("broken", 1);
    kit_play(&k, "doubt c, wait 11s, start c, fail c");
    kit_expect(&k, "error a:completed b:failed c:failed");
    expect_cause("broken", 1);
    kit_play(&k, "retry");
    CHECK(!k.t.error.code.ptr, "the undo's failure is mended");
    expect_cause("broken", 1);
    kit_play(&k, "claim, start c, ok c, start a, ok a");
    kit_expect(&k, "compensated a:undone b:failed c:undone");
    expect_cause("broken", 1);
    CHECK(slice_is(k.t.error.code, "broken"), "why it is compensated");

    kit_make(&k, "a deadline", "by=15s a b<a");
    kit_play(&k, "claim, start a, ok a, deadline, start a, fail a");
    expect_cause("deadline", -1);
    kit_make(&k, "an operator", "a b<a");
    kit_play(&k, "claim, start a, ok a, undo, start a, fail a");
    expect_cause("operator", -1);
    kit_make(&k, "an operator's undo of a failed task", "a b#<a");
    kit_play(&k, "claim, start a, ok a, start b, fail b, undo");
    expect_cause("broken", 1);
    kit_make(&k, "an input that cannot be evaluated", "a b<a");
    kit_play(&k, "claim, start a, ok a, bad b");
    expect_cause("expression", 1);
}

static void what_is_mended_is_no_failure(void **state)
{
    (void)state;
    kit_make(&k, "retried", "a b#<a c<b");
    kit_play(&k, "claim, start a, ok a, start b, fail b");
    expect_cause("broken", 1);
    kit_play(&k, "retry b");
    expect_cause(NULL, 0);
    kit_play(&k, "claim, start b, ok b, start c, fail c");
    expect_cause("broken", 2);
    kit_make(&k, "retried, but for one", "a# b#");
    kit_play(&k, "claim, start a, start b, fail a, fail b");
    expect_cause("broken", 0);
    kit_play(&k, "retry a, claim, start a, ok a");
    kit_expect(&k, "error a:completed b:failed");
    expect_cause("broken", 1);
    kit_make(&k, "a pivot that took effect", "a! b");
    kit_play(&k, "claim, start a, start b, undo, ok a = alert");
    expect_cause(NULL, 0);
    kit_play(&k, "ok b");
    kit_expect(&k, "processed a:completed b:completed");
    expect_cause(NULL, 0);
}

/* The first failure in the order of the graph, not in that of time. */
static void a_processed_task_tells_what_was_let_pass(void **state)
{
    (void)state;
    kit_make(&k, "two of them", "a b?<a c?<a d<bc");
    kit_play(&k, "claim, start a, ok a, start b, start c, doubt c, fail b");
    expect_cause(NULL, 0);
    kit_play(&k, "start d, ok d");
    kit_expect(&k, "processed a:completed b:failed c:failed d:completed");
    expect_cause("broken", 1);
    kit_make(&k, "one, and then one that counts", "a? b<a c<b");
    kit_play(&k, "claim, start a, fail a, start b, ok b, start c, timeout c");
    expect_cause("timeout", 2);
}

/* A failure of its compensation does not hide why the step failed. */
static void a_step_keeps_why_it_failed(void **state)
{
    (void)state;
    kit_make(&k, "undone", "a b<a");
    kit_play(&k, "claim, start a, ok a, start b, timeout b");
    CHECK(slice_is(step_forward_error(&k.steps[1]).code, "timeout"), "failed");
    CHECK(!step_forward_error(&k.steps[0]).code.ptr, "completed");
    kit_play(&k, "wait 11s, start b, fail b");
    CHECK(slice_is(k.steps[1].error.code, "broken"), "the undo's");
    CHECK(slice_is(step_forward_error(&k.steps[1]).code, "timeout"), "its undo failed");
    kit_play(&k, "retry, claim, start b, ok b, start a, fail a");
    CHECK(slice_is(step_forward_error(&k.steps[1]).code, "timeout"), "undone");
    CHECK(!step_forward_error(&k.steps[0]).code.ptr, "completed, and its undo failed");
    kit_make(&k, "supplied", "a# b");
    kit_play(&k, "claim, start a, fail a, supply a, claim, start b, fail b, start a");
    CHECK(!step_forward_error(&k.steps[0]).code.ptr, "somebody says that it completed");
}

/* Whether some direct or indirect successor of i needs undo or runs, found by recursion. */
static bool blocked_by_walking(const struct kit *from, uint16_t i)
{
    for (uint16_t n = 0; n < from->g.steps[i].after_count; n++) {
        uint16_t q = from->g.after[i][n];
        if (step_is_open(&from->steps[q]) || step_needs_undo(&from->g.steps[q], &from->steps[q])
            || blocked_by_walking(from, q))
            return true;
    }
    return false;
}

static void undo_order_agrees_with_walking_the_graph(void **state)
{
    static const char *const graphs[] = {"a b<a c<b d<c", "a b<a c<a d<bc", "a- b<a c!<b d<c",
                                         "d c<d b<c a<b", "a b c<a d<bc"};
    (void)state;
    for (size_t g = 0; g < COUNT_OF(graphs); g++)
        for (unsigned done = 0; done < 16; done++) {
            struct undo_order order;
            kit_make(&k, graphs[g], graphs[g]);
            for (uint16_t i = 0; i < 4; i++)
                if (done & BIT(i)) {
                    k.steps[i].attempt_count = 1;
                    k.attempts[i][0] = (struct attempt){.number = 1,
                                                        .outcome = OUTCOME_COMPLETED,
                                                        .effect = EFFECT_HAPPENED};
                }
            undo_order_make(&k.g.w, &k.t, &order);
            for (uint16_t i = 0; i < 4; i++)
                CHECK(order.blocked[i] == blocked_by_walking(&k, i), "%s %u %u", graphs[g], done,
                      i);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_took_effect_is_undone_in_reverse),
        cmocka_unit_test(what_runs_is_told_to_stop_and_waited_for),
        cmocka_unit_test(what_is_in_doubt_is_undone_after_its_time),
        cmocka_unit_test(a_compensation_has_tries_of_its_own),
        cmocka_unit_test(the_undo_has_a_deadline_of_its_own),
        cmocka_unit_test(a_pivot_stands_in_the_way),
        cmocka_unit_test(an_undo_records_its_input_once),
        cmocka_unit_test(a_stuck_undo_tells_why),
        cmocka_unit_test(the_first_failure_stays),
        cmocka_unit_test(what_is_mended_is_no_failure),
        cmocka_unit_test(a_processed_task_tells_what_was_let_pass),
        cmocka_unit_test(a_step_keeps_why_it_failed),
        cmocka_unit_test(undo_order_agrees_with_walking_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
