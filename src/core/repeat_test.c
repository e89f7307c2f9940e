/* Repeated steps: when rounds begin and end, what moves their time, what an operator may do, and
 * how many there are at most. */
#include "core/attempts.h"
#include "core/core_test_kit.h"
#include "core/reason.h"
#include "core/repeat.h"

static struct kit k;

/* A round follows GRAPH_EVERY_MS (4 s) after an answer; one that begins GRAPH_FOR_MS (5 s) after
 * the first one is the last. */
static const struct kit_case of_rounds[] = {
    {"an answer that satisfies it ends the step", "a%", "claim, start a, ok a, yes a",
     "processed a:completed"},
    {"any other begins a round, which is no failure", "a%",
     "claim, start a, ok a, no a, start a = refused, wait 3s, start a = refused, wait 1s, start a, "
     "ok a, yes a",
     "processed a:completed"},
    {"nothing is judged before there is an answer", "a%",
     "yes a = refused, claim, start a, yes a = refused, again a, yes a = refused",
     "compensated a:failed"},
    {"nothing is judged twice", "a%", "claim, start a, ok a, no a, no a = refused, yes a = refused",
     "processing a:waiting"},
    {"an answer is judged before anything starts", "a%", "claim, start a, ok a, start a = refused",
     "processing a:waiting"},
    {"a step that is not repeated is not judged", "a", "claim, start a, yes a = refused",
     "processing a:running"},
    {"a round that began in time is not the last", "a%",
     "claim, start a, wait 9s, ok a, no a, wait 4s, start a, ok a, no a", "compensated a:failed"},
    {"one that began when the time had passed is", "a%#",
     "claim, start a, ok a, no a, wait 4s, start a, ok a, no a, wait 4s, start a, ok a, no a",
     "error a:failed"},
    {"also after its retries", "a2%",
     "claim, start a, ok a, no a, wait 5s, start a, again a, wait 1s, start a, ok a, no a",
     "compensated a:failed"},
    {"the retries are those of a round", "a2%",
     "claim, start a, again a, wait 1s, start a, ok a, no a, wait 4s, start a, again a, wait 1s, "
     "start a, ok a, yes a",
     "processed a:completed"},
    {"a round without tries left fails the step", "a2%",
     "claim, start a, ok a, no a, wait 4s, start a, again a, wait 1s, start a, again a",
     "compensated a:failed"},
    {"what was not sent belongs to its round", "a%",
     "claim, start a, ok a, no a, wait 4s, start a, notsent a, start a, ok a, yes a",
     "processed a:completed"},
    {"successors wait for the last round", "a% b<a",
     "claim, start a, ok a, start b = refused, no a, start b = refused, wait 4s, start a, ok a, "
     "yes a, start b",
     "processing a:completed b:running"},
    {"or go on after it", "a%? b<a",
     "claim, start a, ok a, no a, wait 5s, start a, ok a, no a, start b",
     "processing a:failed b:running"},
    {"an expression that fails ends it", "a%", "claim, start a, ok a, bad a",
     "compensated a:failed"},
    {"its condition counts only before the first round", "a%",
     "claim, start a, ok a, cond a = refused, no a, wait 4s, cond a = refused",
     "processing a:waiting"},
    {"a late answer changes no round", "a2%",
     "claim, start a, timeout a, ok a f1 = late, yes a = refused, wait 1s, start a, ok a, yes a",
     "processed a:completed"},
    {"an answer to an earlier round is known", "a%",
     "claim, start a, ok a, no a, ok a f1 = repeated, wait 4s, start a, ok a f1 = repeated",
     "processing a:running"},
    {"nothing is undone", "a b%<a",
     "claim, start a, ok a, start b, ok b, no b, undo, start a, ok a, start b = refused",
     "compensated a:undone b:waiting"},
    {"not even during a round", "a b%<a",
     "claim, start a, ok a, start b, undo = stop, start a = refused, ok b, yes b = refused, start "
     "a, ok a",
     "compensated a:undone b:waiting"},
    {"nothing is judged in a pause", "a%",
     "claim, start a, pause, ok a, yes a = refused, resume, yes a", "processed a:completed"},
    {"nor in error", "a% b#",
     "claim, start a, start b, ok a, fail b, yes a = refused, retry b, yes a, start b, ok b",
     "processed a:completed b:completed"},
    {"nor once the task's complete-by has passed", "by=5s a%",
     "claim, start a, ok a, wait 5s, yes a = refused, deadline", "compensated a:waiting"},
    {"no round begins then", "by=5s a%",
     "claim, start a, ok a, no a, wait 5s, start a = refused, deadline", "compensated a:waiting"},
    {"the next round is had at once", "a%", "claim, start a, ok a, no a, retry a, start a",
     "processing a:running"},
    {"it is skipped between rounds", "a% b<a", "claim, start a, ok a, no a, skip a, start b",
     "processing a:skipped b:running"},
    {"or before its answer is judged", "a% b<a", "claim, start a, ok a, skip a, yes a = refused",
     "processing a:skipped b:waiting"},
    {"its output is supplied", "a% b<a", "claim, start a, ok a, no a, supply a, start b",
     "processing a:completed b:running"},
    {"an input that is corrected makes another request", "a%",
     "claim, start a, ok a, correct a, yes a = refused, start a, ok a, yes a",
     "processed a:completed"},
    {"after the last round a retry begins another, with all its time", "a%#",
     "claim, start a, ok a, no a, wait 5s, start a, ok a, no a, retry a, yes a = refused, claim, "
     "start a, ok a, no a, wait 4s, start a, ok a, no a, wait 4s, start a, ok a, no a",
     "error a:failed"},
    {"a retry of a round that failed goes on with it", "a%#",
     "claim, start a, ok a, no a, wait 5s, start a, again a, retry a, claim, start a, ok a, no a",
     "error a:failed"},
    {"it starts anew", "a% b<a", "claim, start a, ok a, no a, from a, start a, ok a, yes a",
     "processing a:completed b:waiting"},
    {"steps of on_undo are repeated, too", "undo=25s a b%+",
     "claim, undo, start b, ok b, no b, wait 4s, start b, ok b, yes b",
     "compensated a:waiting b:completed"},
};

static void rounds(void **state)
{
    (void)state;
    kit_run(of_rounds, COUNT_OF(of_rounds));
}

/* ---- keys ---- */

static void check_next(const char *script, uint32_t attempt, uint32_t generation, uint32_t round)
{
    kit_make(&k, script, "a2%#");
    kit_play(&k, script);
    struct attempt a = task_next_attempt(&k.g.w, &k.t, 0, k.now);
    CHECK(a.number == attempt && a.generation == generation && a.round == round,
          "%s: attempt %u, generation %u, round %u", script, a.number, a.generation, a.round);
}

static void every_request_has_its_key(void **state)
{
    (void)state;
    check_next("claim", 1, 0, 1);
    check_next("claim, start a, again a", 2, 0, 1);
    check_next("claim, start a, ok a, no a", 2, 0, 2);
    check_next("claim, start a, ok a, no a, wait 4s, start a, lost a", 3, 0, 2);
    check_next("claim, start a, ok a, no a, correct a", 2, 1, 2);
    check_next("claim, start a, ok a, correct a", 2, 1, 1);
    check_next("claim, start a, ok a, no a, from a", 2, 1, 1);
    check_next("claim, start a, ok a, no a, correct a, from a", 2, 1, 1);
    check_next("claim, start a, ok a, no a, wait 5s, start a, ok a, no a, retry a", 3, 0, 3);
    check_next("claim, start a, ok a, bad a, retry a", 2, 0, 2);
    check_next("claim, start a, ok a, no a, wait 4s, bad a, retry a", 2, 0, 2);
    check_next("claim, start a, ok a, bad a, correct a, retry a", 2, 1, 2);
}

/* ---- the record ---- */

static void rounds_of(uint32_t count, struct value last)
{
    struct event ok = {.kind = EVENT_RESULT, .output = last};
    const struct event no = {.kind = EVENT_UNTIL};

    kit_make(&k, "many rounds", "a%");
    k.g.steps[0].repeat.every_ms = 1;
    k.g.steps[0].repeat.max_every_ms = 1;
    kit_play(&k, "claim");
    for (uint32_t i = 1; i <= count; i++) {
        kit_play(&k, "start a");
        ok.attempt = i;
        CHECK(kit_event(&k, &ok) == ANSWER_ACCEPTED && kit_event(&k, &no) == ANSWER_ACCEPTED,
              "round %u", i);
        k.now++;
    }
}

static void the_record_keeps_the_number_and_the_last_answer(void **state)
{
    static char text[ROUND_ANSWER_MAX + 1];
    struct value last = {.json = {text, ROUND_ANSWER_MAX}};
    (void)state;

    memset(text, '1', sizeof text);
    rounds_of(100, last);
    CHECK(k.steps[0].round == 101 && k.steps[0].attempt_count == ATTEMPTS_KEPT
              && k.steps[0].dropped_count == 100 - ATTEMPTS_KEPT && k.steps[0].failure_count == 0,
          "the first and the last ones are kept");
    CHECK(k.steps[0].attempts[ATTEMPTS_KEPT - 1].number == 100, "the last one");
    CHECK(k.steps[0].attempts[ATTEMPTS_HEAD].number == 100 - ATTEMPTS_TAIL + 1, "the oldest go");
    CHECK(slice_eq(k.steps[0].output.json, last.json), "the answer");
    last.json.len++;
    rounds_of(1, last);
    CHECK(!k.steps[0].output.json.ptr, "a long answer is not kept between rounds");
}

static void the_last_answer_is_the_output(void **state)
{
    (void)state;
    kit_make(&k, "not yet", "a%#");
    kit_play(&k, "claim, start a, ok a, no a, wait 5s, start a, ok a, no a");
    kit_expect(&k, "error a:failed");
    CHECK(slice_is(k.steps[0].error.code, "not_yet") && slice_is(k.t.error.code, "not_yet"),
          "code");
    CHECK(slice_is(k.steps[0].output.json, "{\"id\":1}"), "output");
    CHECK(k.t.failure_count == 1, "rounds are no failures");
}

/* The input of the kit's step varies with the round. */
static void a_corrected_input_holds_for_all_rounds(void **state)
{
    (void)state;
    kit_make(&k, "input", "a%");
    kit_play(&k, "claim, start a, ok a, no a");
    CHECK(!k.steps[0].input.json.ptr, "it is evaluated in each round");
    kit_play(&k, "correct a, start a = refused, wait 4s, start a, ok a, no a");
    CHECK(slice_is(k.steps[0].input.json, "{\"in\":2}"), "it stays");
    kit_play(&k, "from a");
    CHECK(!k.steps[0].input.json.ptr && !k.steps[0].corrected, "not for a step that starts anew");
    k.g.steps[0].repeat.input_varies = false;
    kit_play(&k, "start a, ok a, no a");
    CHECK(slice_is(k.steps[0].input.json, "{\"in\":1}"), "one that does not vary stays, too");
}

/* In doubt is what the present round may have done; the rounds before it were answered. */
static void doubt_is_that_of_a_round(void **state)
{
    const struct value one = {.json = SLICE("1")};
    (void)state;

    rounds_of(60, one);
    CHECK(!step_in_doubt(&k.steps[0]), "all were answered");
    k.g.steps[0].call.retry = (struct retry_rule){.attempts = 40, .factor_milli = 1000};
    kit_play(&k, "start a, lost a");
    CHECK(step_in_doubt(&k.steps[0]), "an answer was lost");
    for (int i = 0; i < ATTEMPTS_TAIL + 2; i++)
        kit_play(&k, "start a, again a");
    CHECK(step_in_doubt(&k.steps[0]), "and still is, when its attempt is no longer kept");
    kit_play(&k, "start a, ok a, no a");
    CHECK(!step_in_doubt(&k.steps[0]), "the answer settles it");
}

/* ---- time ---- */

static void check_left(const char *script, int64_t of_wait, int64_t of_rounds_left)
{
    kit_make(&k, script, "a% b#");
    kit_play(&k, script);
    CHECK(k.steps[0].wait_until - k.now == of_wait, "%s: the next round is in %lld", script,
          (long long)(k.steps[0].wait_until - k.now));
    CHECK(k.steps[0].repeat_until - k.now == of_rounds_left, "%s: %lld are left", script,
          (long long)(k.steps[0].repeat_until - k.now));
}

static void what_moves_the_time(void **state)
{
    (void)state;
    check_left("claim, start a, wait 1s, ok a, no a", 4000, 4000);
    check_left("claim, start a, ok a, wait 2s, no a", 4000, 3000);
    check_left("claim, start a, ok a, no a, wait 2s, pause, wait 1m, resume", 2000, 3000);
    check_left("claim, start a, wait 6s, ok a, no a, wait 2s, pause, wait 1m, resume", 2000,
               -63000);
    check_left("claim, start a, start b, ok a, no a, wait 2s, fail b, wait 1m, retry b", -58000,
               3000);
    check_left("claim, start a, start b, ok a, no a, wait 2s, fail b, wait 1m, skip b", -58000,
               3000);
    check_left("claim, start a, start b, wait 6s, ok a, no a, fail b, wait 1m, retry b", -56000,
               -61000);
}

/* ---- gaps and bounds ---- */

#define RULE(every, factor, max, time) \
    ((struct repeat_rule){             \
        .every_ms = (every), .factor_milli = (factor), .max_every_ms = (max), .for_ms = (time)})

static void gaps_grow_up_to_the_longest(void **state)
{
    const struct repeat_rule r = RULE(5000, 2000, 60000, 7200000);
    static const int64_t gaps[] = {5000, 10000, 20000, 40000, 60000, 60000};
    const struct repeat_rule steep = RULE(1, 100000, INT64_MAX, INT64_MAX / 2);
    const struct repeat_rule slow = RULE(1, 1400, INT64_MAX, 1000);
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(gaps); i++)
        CHECK(repeat_gap(&r, i + 1) == gaps[i], "round %u", i + 1);
    CHECK(repeat_gap(&r, ROUNDS_MAX) == 60000, "the longest");
    CHECK(repeat_gap(&steep, ROUNDS_MAX) == INT64_MAX / 1000, "no overflow");
    CHECK(repeat_gap(&slow, ROUNDS_MAX) == 1, "1.4 ms are 1 ms");
}

static void the_number_of_rounds_is_known(void **state)
{
    (void)state;
    CHECK(repeat_rounds(&RULE(5000, 1000, INT64_MAX, 5000)) == 2, "one gap");
    CHECK(repeat_rounds(&RULE(5000, 1000, INT64_MAX, 5001)) == 3, "two gaps");
    CHECK(repeat_rounds(&RULE(5000, 2000, 10000, 35000)) == 5, "5, 10, 10, 10");
    CHECK(repeat_rounds(&RULE(1, 1000, INT64_MAX, 9999)) == ROUNDS_MAX, "all");
    CHECK(repeat_rounds(&RULE(1, 1000, INT64_MAX, 10000)) > ROUNDS_MAX, "more");
    CHECK(repeat_rounds(&RULE(0, 1000, INT64_MAX, 1)) > ROUNDS_MAX, "no gap");
    CHECK(repeat_rounds(&RULE(1, 100000, INT64_MAX, INT64_MAX / 1000)) < 20, "steep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds),
        cmocka_unit_test(every_request_has_its_key),
        cmocka_unit_test(the_record_keeps_the_number_and_the_last_answer),
        cmocka_unit_test(the_last_answer_is_the_output),
        cmocka_unit_test(a_corrected_input_holds_for_all_rounds),
        cmocka_unit_test(doubt_is_that_of_a_round),
        cmocka_unit_test(what_moves_the_time),
        cmocka_unit_test(gaps_grow_up_to_the_longest),
        cmocka_unit_test(the_number_of_rounds_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
