/* Tests of the steps of on_undo, which run last in an undo, and of processed tasks that an
 * operator undoes. definition/on_undo_test.c tests how these steps are declared. */

#include "core/core_test_kit.h"
#include "core/reason.h"

static struct kit k;

static void what_tells_of_an_undo_comes_last(void **state)
{
    static const struct kit_case cases[] = {
        {"after the last compensation", "a b<a c+",
         "claim, start a, ok a, start b, fail b, start c = refused, start a, start c = refused, "
         "ok a, start c, ok c",
         "compensated a:undone b:failed c:completed"},
        {"at once, if there is nothing to compensate", "a b+", "claim, start a, fail a, start b",
         "compensating a:failed b:running"},
        {"not before what still runs has ended", "a b- c+",
         "claim, start a, start b, fail a = stop, start c = refused, ok b, start c, ok c",
         "compensated a:failed b:completed c:completed"},
        {"nor before the time of what is in doubt", "a b+",
         "claim, start a, doubt a, start b = refused, wait 11s, start a, ok a, start b, ok b",
         "compensated a:undone b:completed"},
        {"in the order of their graph", "a b+ c+<b d+",
         "claim, start a, fail a, start c = refused, start b, start d, ok b, start c, ok c, ok d",
         "compensated a:failed b:completed c:completed d:completed"},
        {"never, if all goes well", "a b+", "claim, start b = refused, start a, ok a",
         "processed a:completed b:waiting"},
        {"they go forward, with tries of their own", "a b2+",
         "claim, start a, fail a, start b, again b f1, start b = refused, wait 1s, start b, "
         "ok b f2",
         "compensated a:failed b:completed"},
        {"what is in doubt of them is tried again without delay", "a b2+",
         "claim, start a, fail a, start b, timeout b, wait 1s, start b, ok b",
         "compensated a:failed b:completed"},
        {"one whose condition is false is skipped", "a b+",
         "claim, start a, cond b = refused, fail a, cond b", "compensated a:failed b:skipped"},
        {"they are not told to stop", "a b2+ c+",
         "claim, start a, fail a, start b, start c, fail c, again b, retry b, start b",
         "compensating a:failed b:running c:failed"},
        {"the undo's complete-by is theirs as well", "undo=15s a b+",
         "claim, start a, fail a, start b, deadline, timeout b", "error a:failed b:failed"},
        {"and nothing of them starts after it", "undo=15s a b+ c+<b",
         "claim, start a, fail a, start b, deadline, ok b, retry, start c, ok c",
         "compensated a:failed b:completed c:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void one_that_fails_holds_the_task_or_lets_it_go_on(void **state)
{
    static const struct kit_case cases[] = {
        {"it stops in error", "a b+", "claim, start a, fail a, start b, fail b",
         "error a:failed b:failed"},
        {"when the others have ended", "a b+ c+ d+<c",
         "claim, start a, fail a, start b, fail b, start c, ok c, start d, ok d",
         "error a:failed b:failed c:completed d:completed"},
        {"what comes after it does not begin", "a b+ c+<b",
         "claim, start a, fail a, start b, fail b, start c = refused",
         "error a:failed b:failed c:waiting"},
        {"continue lets what comes after it begin", "a b?+ c+<b",
         "claim, start a, fail a, start b, fail b, start c, ok c",
         "compensated a:failed b:failed c:completed"},
        {"and the task end", "a b?+", "claim, start a, fail a, start b, fail b",
         "compensated a:failed b:failed"},
        {"an input that cannot be evaluated is a failure", "a b+", "claim, start a, fail a, bad b",
         "error a:failed b:failed"},
        {"nor is that one of a task that goes forward", "a b+", "claim, bad b = refused",
         "processing a:waiting b:waiting"},
        {"a compensation that is stuck keeps them back", "a b<a c+",
         "claim, start a, ok a, start b, fail b, start a, fail a, start c = refused, skip a, "
         "start c, ok c",
         "compensated a:undone b:failed c:completed"},
        {"the operator retries it", "a b+",
         "claim, start a, fail a, start b, fail b, retry b, start b, ok b",
         "compensated a:failed b:completed"},
        {"or all of it", "a b+", "claim, start a, fail a, start b, fail b, retry, start b, ok b",
         "compensated a:failed b:completed"},
        {"or skips it", "a b+", "claim, start a, fail a, start b, fail b, skip b",
         "compensated a:failed b:skipped"},
        {"or supplies its output", "a b+ c+<b",
         "claim, start a, fail a, start b, fail b, supply b, start c, ok c",
         "compensated a:failed b:completed c:completed"},
        {"or corrects its input", "a b+",
         "claim, start a, fail a, start b, fail b, correct b, correct a = refused, retry b, "
         "start b, ok b",
         "compensated a:failed b:completed"},
        {"with another stuck, that does not suffice", "a b+ c+",
         "claim, start a, fail a, start b, fail b, start c, fail c, skip b, supply c",
         "compensated a:failed b:skipped c:completed"},
        {"one may be skipped before it is needed", "a b+ c+<b",
         "claim, skip b, start a, fail a, start c, ok c",
         "compensated a:failed b:skipped c:completed"},
        {"nothing starts anew from there", "a b+",
         "claim, start a, fail a, start b, fail b, from b = refused", "error a:failed b:failed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void what_fails_of_them_is_the_error_of_the_task(void **state)
{
    (void)state;
    kit_make(&k, "hold", "a b+");
    kit_play(&k, "claim, start a, ok a, undo");
    kit_make(&k, "hold", "a- b+");
    kit_play(&k, "claim, pause, undo, start b, fail b");
    CHECK(slice_is(k.t.error.code, "broken"), "its own error");
    kit_make(&k, "continue", "a- b?+");
    kit_play(&k, "claim, undo, start b, fail b");
    CHECK(slice_is(k.t.error.code, "operator"), "why it went back");
    CHECK(k.steps[1].direction == DIRECTION_FORWARD, "direction");
    CHECK(k.attempts[1][0].direction == DIRECTION_FORWARD, "direction");
}

static void a_processed_task_is_undone_by_an_operator(void **state)
{
    static const struct kit_case cases[] = {
        {"in the reverse of the order", "a b<a",
         "claim, start a, ok a, start b, ok b, undo, claim, start a = refused, start b, "
         "ok b, start a, ok a",
         "compensated a:undone b:undone"},
        {"what runs on undo is run", "a b+", "claim, start a, ok a, undo, start a, ok a, start b",
         "compensating a:undone b:running"},
        {"it is undone once", "a",
         "claim, start a, ok a, undo, undo = repeated, start a, ok a, "
         "undo = refused",
         "compensated a:undone"},
        {"with nothing to undo it is compensated at once", "a- b-<a",
         "claim, start a, ok a, "
         "start b, ok b, undo",
         "compensated a:completed b:completed"},
        {"only for a reason", "a", "claim, start a, ok a, undo-bare = refused",
         "processed a:completed"},
        {"not with a completed pivot", "a b!<a",
         "claim, start a, ok a, start b, ok b, undo = refused",
         "processed a:completed b:completed"},
        {"nor with one in doubt, of which nobody will tell", "a b!?<a",
         "claim, start a, ok a, start b, doubt b, undo = refused",
         "processed a:completed b:failed"},
        {"with one that did not take effect", "a b!?<a",
         "claim, start a, ok a, start b, fail b, undo", "compensating a:completed b:failed"},
        {"what failed in doubt, and was to continue, is undone", "a? b<a",
         "claim, start a, doubt a, start b, ok b, undo, start b, ok b, start a = refused, wait "
         "11s, "
         "start a, ok a",
         "compensated a:undone b:undone"},
        {"until its undo_until", "until=30s a", "claim, start a, ok a, wait 29999ms, undo",
         "compensating a:completed"},
        {"and no longer", "until=30s a", "claim, start a, ok a, wait 30s, undo = refused",
         "processed a:completed"},
        {"the undo has a deadline of its own", "by=5s undo=15s a",
         "claim, start a, ok a, wait 60s, undo, deadline", "error a:completed"},
        {"every other verb is refused as before", "a",
         "claim, start a, ok a, retry = refused, skip a = refused, pause = refused, "
         "correct = refused, supply a = refused, from a = refused, close = refused",
         "processed a:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

static void what_it_achieved_is_taken_back(void **state)
{
    (void)state;
    kit_make(&k, "taken back", "a");
    kit_play(&k, "claim, start a, ok a");
    k.t.output.json = SLICE("7");
    kit_play(&k, "undo");
    CHECK(!k.t.output.json.ptr && k.t.ended_at == 0, "it has not ended");
    CHECK(slice_is(k.t.error.message, "changed my mind"), "the reason");
    kit_play(&k, "claim, start a, ok a");
    CHECK(k.t.ended_at == k.now && k.fx.ended, "it has ended");
}

static void who_asks_is_told_what_stands_in_the_way(void **state)
{
    uint16_t at = 9;
    (void)state;

    kit_make(&k, "pivot", "a b!<a");
    kit_play(&k, "claim, start a, ok a, start b, ok b");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_UNDO, -1, k.now, &at) == OBSTACLE_PIVOT && at == 1,
          "pivot");
    kit_make(&k, "until", "until=30s a");
    kit_play(&k, "claim, start a, ok a");
    CHECK(operator_may(&k.g.w, &k.t, EVENT_UNDO, -1, k.now + 29999), "in time");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_UNDO, -1, k.now + 30000, &at) == OBSTACLE_UNTIL,
          "too late");
    CHECK(operator_obstacle(&k.g.w, &k.t, EVENT_RETRY, -1, k.now, &at) == OBSTACLE_STATE, "state");
}

/* As another writer might have stored the row. */
static void out_of_its_turn_it_makes_a_task_invalid(void **state)
{
    static const char before[] = "claim, start a, ok a, undo, start a, ok a, start b";
    (void)state;

    kit_make(&k, "a task that goes forward", "a b+");
    kit_play(&k, before);
    k.t.state = TASK_PROCESSING;
    k.t.direction = k.steps[0].direction = DIRECTION_FORWARD;
    k.steps[0].state = STEP_COMPLETED;
    k.steps[0].attempt_count = 1;
    CHECK(!task_valid(&k.g.w, &k.t), "%s", k.about);
    kit_make(&k, "a compensation that is left", "a b+");
    kit_play(&k, before);
    k.steps[0].state = STEP_UNDOING;
    CHECK(!task_valid(&k.g.w, &k.t), "%s", k.about);
    kit_make(&k, "an end without it", "a b+");
    kit_play(&k, "claim, start a, ok a, undo, start a, ok a");
    k.t.state = TASK_COMPENSATED;
    CHECK(!task_valid(&k.g.w, &k.t), "%s", k.about);
    kit_make(&k, "an undo of it", "a b+");
    kit_play(&k, "claim, start a, fail a");
    k.steps[1].direction = DIRECTION_UNDO;
    k.steps[1].state = STEP_UNDONE;
    CHECK(!task_valid(&k.g.w, &k.t), "%s", k.about);
}

/* A resolved step that took effect after all is compensated, even if steps of on_undo ran
 * meanwhile. */
static void an_effect_after_a_resolve_is_still_undone(void **state)
{
    static const struct kit_case cases[] = {
        {"at the same time", "a b+ c+<b",
         "claim, start a, timeout a, wait 2s, resolve a, start b, ok a f1 = late, "
         "start a, ok b, start c = refused, ok a, start c, ok c",
         "compensated a:undone b:completed c:completed"},
    };
    (void)state;
    kit_run(cases, COUNT_OF(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_tells_of_an_undo_comes_last),
        cmocka_unit_test(one_that_fails_holds_the_task_or_lets_it_go_on),
        cmocka_unit_test(what_fails_of_them_is_the_error_of_the_task),
        cmocka_unit_test(a_processed_task_is_undone_by_an_operator),
        cmocka_unit_test(what_it_achieved_is_taken_back),
        cmocka_unit_test(out_of_its_turn_it_makes_a_task_invalid),
        cmocka_unit_test(an_effect_after_a_resolve_is_still_undone),
        cmocka_unit_test(who_asks_is_told_what_stands_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
