/* The words and edges of the state machines, task_valid(), merged attempts, and the recognition of
 * repeated submissions. */
#include "core/attempts.h"
#include "core/core_test_kit.h"

/* ---- words ---- */

/* Every value has its own word that parses back to it, as written in the design. */
#define WORDS_TEST(name, type, last, ...)                                                       \
    static void name##_words_lead_back(void **state)                                            \
    {                                                                                           \
        static const char *const words[] = {__VA_ARGS__};                                       \
        enum type got;                                                                          \
        (void)state;                                                                            \
        CHECK(COUNT_OF(words) == (size_t)(last) + 1, "as many words as values");                \
        for (size_t i = 0; i < COUNT_OF(words); i++) {                                          \
            CHECK(strcmp(name##_text((enum type)i), words[i]) == 0, "%s", words[i]);            \
            CHECK(name##_parse(slice_of(words[i]), &got) && (size_t)got == i, "%s", words[i]);  \
        }                                                                                       \
        CHECK(!name##_parse(SLICE_NONE, &got) && !name##_parse(SLICE(""), &got), "nothing");    \
        CHECK(!name##_parse(SLICE("Pending"), &got) && !name##_parse(SLICE("no"), &got), "no"); \
        CHECK(!name##_parse((struct slice){words[0], strlen(words[0]) - 1}, &got), "a part");   \
    }

WORDS_TEST(task_state, task_state, TASK_ERROR, "pending", "processing", "processed", "compensating",
           "compensated", "error")
WORDS_TEST(step_state, step_state, STEP_UNDONE, "waiting", "running", "completed", "failed",
           "skipped", "undoing", "undone")
WORDS_TEST(outcome, outcome, OUTCOME_LATE, "open", "completed", "failed", "timed_out", "not_sent",
           "late")
WORDS_TEST(effect, effect, EFFECT_HAPPENED, "none", "unknown", "happened")
WORDS_TEST(direction, direction, DIRECTION_UNDO, "forward", "undo")
WORDS_TEST(stop, stop, STOP_HOLD, "none", "undo", "hold")
WORDS_TEST(child_state, child_state, CHILD_COMPENSATED, "none", "running", "error", "stands",
           "turned", "stuck", "processed", "compensated")
WORDS_TEST(child_wish, child_wish, WISH_CLOSE, "none", "stop", "undo", "close")

/* ---- edges ---- */

static void states_have_the_edges_of_the_design_and_no_others(void **state)
{
    static const char *const task_edges[] = {
        "pending processing",     "pending compensating",    "pending processed",
        "pending compensated",    "pending error",           "processing pending",
        "processing processed",   "processing compensating", "processing error",
        "processed compensating", "compensating pending",    "compensating compensated",
        "compensating error",     "error processing",        "error compensating",
    };
    static const char *const step_edges[] = {
        "waiting running",   "waiting skipped",   "waiting failed",   "waiting undoing",
        "waiting undone",    "running completed", "running waiting",  "running failed",
        "completed undoing", "completed undone",  "completed failed", "failed waiting",
        "failed skipped",    "failed undoing",    "failed undone",    "skipped undoing",
        "skipped undone",    "skipped failed",    "undoing undone",   "undoing failed",
        "waiting completed", "completed waiting", "failed completed", "skipped waiting",
    };
    size_t met = 0;
    (void)state;
    for (enum task_state from = TASK_PENDING; from <= TASK_ERROR; from++)
        for (enum task_state to = TASK_PENDING; to <= TASK_ERROR; to++)
            met += task_state_can(from, to);
    CHECK(met == COUNT_OF(task_edges), "%zu edges of tasks", met);
    met = 0;
    for (enum step_state from = STEP_WAITING; from <= STEP_UNDONE; from++)
        for (enum step_state to = STEP_WAITING; to <= STEP_UNDONE; to++)
            met += step_state_can(from, to);
    CHECK(met == COUNT_OF(step_edges), "%zu edges of steps", met);
    for (size_t i = 0; i < COUNT_OF(task_edges); i++) {
        enum task_state from;
        enum task_state to;
        const char *space = strchr(task_edges[i], ' ');
        CHECK(task_state_parse((struct slice){task_edges[i], (size_t)(space - task_edges[i])},
                               &from)
                  && task_state_parse(slice_of(space + 1), &to) && task_state_can(from, to),
              "%s", task_edges[i]);
    }
    for (size_t i = 0; i < COUNT_OF(step_edges); i++) {
        enum step_state from;
        enum step_state to;
        const char *space = strchr(step_edges[i], ' ');
        CHECK(step_state_parse((struct slice){step_edges[i], (size_t)(space - step_edges[i])},
                               &from)
                  && step_state_parse(slice_of(space + 1), &to) && step_state_can(from, to),
              "%s", step_edges[i]);
    }
}

/* Except for the undo of a processed task by an operator. */
static void processed_and_compensated_are_the_ends(void **state)
{
    (void)state;
    for (enum task_state s = TASK_PENDING; s <= TASK_ERROR; s++) {
        bool leaves = false;
        for (enum task_state to = TASK_PENDING; to <= TASK_ERROR; to++)
            leaves |= task_state_can(s, to) && !(s == TASK_PROCESSED && to == TASK_COMPENSATING);
        CHECK(task_state_is_end(s) == !leaves, "%s", task_state_text(s));
    }
}

/* ---- what is refused as invalid ---- */

static struct kit k;

#define SPOIL(name, change) \
    static void name(void)  \
    {                       \
        change;             \
    }

SPOIL(a_step_too_few, k.t.step_count--)
SPOIL(priority_too_low, k.t.priority = -1)
SPOIL(priority_too_high, k.t.priority = 10)
SPOIL(never_submitted, k.t.submitted_at = 0)
SPOIL(owned_though_pending, k.t.state = TASK_PENDING)
SPOIL(compensating_forward, k.t.state = TASK_COMPENSATING)
SPOIL(processing_back, k.t.direction = DIRECTION_UNDO)
SPOIL(error_without_reason, k.t.state = TASK_ERROR; k.t.locked_by = SLICE_NONE)
SPOIL(processed_while_it_runs, k.t.state = TASK_PROCESSED; k.t.locked_by = SLICE_NONE)
SPOIL(too_many_attempts, k.steps[0].attempt_count = ATTEMPTS_KEPT + 1; k.steps[0].attempt_cap = 99)
SPOIL(more_attempts_than_room, k.steps[0].attempt_cap = 0)
SPOIL(waiting_with_an_open_attempt, k.steps[1].state = STEP_WAITING)
SPOIL(completed_with_an_open_attempt, k.steps[1].state = STEP_COMPLETED)
SPOIL(failed_with_an_open_attempt, k.steps[1].state = STEP_FAILED)
SPOIL(skipped_with_an_open_attempt, k.steps[1].state = STEP_SKIPPED)
SPOIL(undone_with_an_open_attempt, k.steps[1].state = STEP_UNDONE)
SPOIL(undoing_forward, k.steps[0].state = STEP_UNDOING)
SPOIL(undone_forward, k.steps[0].state = STEP_UNDONE)
SPOIL(no_such_state, k.steps[0].state = (enum step_state)99)
SPOIL(running_without_an_open_attempt, k.steps[0].state = STEP_RUNNING)
SPOIL(completed_without_output, k.steps[0].output.json = SLICE_NONE)
SPOIL(completed_without_effect, k.attempts[0][1].outcome = OUTCOME_FAILED;
      k.attempts[0][1].effect = EFFECT_NONE)
SPOIL(failed_without_error, k.steps[0].state = STEP_FAILED; k.steps[0].error.code = SLICE_NONE)
SPOIL(open_attempt_not_the_last, k.attempts[0][0].outcome = OUTCOME_OPEN;
      k.attempts[0][0].effect = EFFECT_UNKNOWN; k.attempts[0][0].ended_at = 0)
SPOIL(open_attempt_ended, k.attempts[1][0].ended_at = 5)
SPOIL(ended_attempt_without_time, k.attempts[0][0].ended_at = 0)
SPOIL(open_attempt_of_known_effect, k.attempts[1][0].effect = EFFECT_NONE)
SPOIL(open_attempt_of_the_other_direction, k.attempts[1][0].direction = DIRECTION_UNDO)
SPOIL(completed_attempt_without_effect, k.attempts[0][1].effect = EFFECT_UNKNOWN)
SPOIL(timed_out_without_doubt, k.attempts[0][0].outcome = OUTCOME_TIMED_OUT;
      k.attempts[0][0].effect = EFFECT_HAPPENED)
SPOIL(failed_with_an_effect, k.attempts[0][0].effect = EFFECT_HAPPENED)
SPOIL(not_sent_with_an_effect, k.attempts[0][0].outcome = OUTCOME_NOT_SENT;
      k.attempts[0][0].effect = EFFECT_UNKNOWN)
SPOIL(attempt_back_of_a_step_forward, k.attempts[0][1].direction = DIRECTION_UNDO)
SPOIL(number_without_attempts, k.steps[2].attempt = 1)
SPOIL(numbers_fall, k.attempts[0][0].number = 2)
SPOIL(number_of_another, k.steps[0].attempt = 7)
SPOIL(directions_fall, k.attempts[0][0].direction = DIRECTION_UNDO)
SPOIL(no_complete_by, k.attempts[0][0].complete_by = 0)
SPOIL(no_start, k.attempts[0][0].started_at = 0)
SPOIL(step_back_in_a_task_forward, k.steps[2].direction = DIRECTION_UNDO;
      k.steps[2].state = STEP_UNDONE)
SPOIL(running_before_its_predecessors_ended, k.steps[0].state = STEP_WAITING)

#define BAD(name)   \
    {               \
        #name, name \
    }

static void each_contradiction_makes_a_task_invalid(void **state)
{
    static const struct {
        const char *what;
        void (*spoil)(void);
    } mistakes[] = {
        BAD(a_step_too_few),
        BAD(priority_too_low),
        BAD(priority_too_high),
        BAD(never_submitted),
        BAD(owned_though_pending),
        BAD(compensating_forward),
        BAD(processing_back),
        BAD(error_without_reason),
        BAD(processed_while_it_runs),
        BAD(too_many_attempts),
        BAD(more_attempts_than_room),
        BAD(waiting_with_an_open_attempt),
        BAD(completed_with_an_open_attempt),
        BAD(failed_with_an_open_attempt),
        BAD(skipped_with_an_open_attempt),
        BAD(undone_with_an_open_attempt),
        BAD(undoing_forward),
        BAD(undone_forward),
        BAD(no_such_state),
        BAD(running_without_an_open_attempt),
        BAD(completed_without_output),
        BAD(completed_without_effect),
        BAD(failed_without_error),
        BAD(open_attempt_not_the_last),
        BAD(open_attempt_ended),
        BAD(ended_attempt_without_time),
        BAD(open_attempt_of_known_effect),
        BAD(open_attempt_of_the_other_direction),
        BAD(completed_attempt_without_effect),
        BAD(timed_out_without_doubt),
        BAD(failed_with_an_effect),
        BAD(not_sent_with_an_effect),
        BAD(attempt_back_of_a_step_forward),
        BAD(number_without_attempts),
        BAD(numbers_fall),
        BAD(number_of_another),
        BAD(directions_fall),
        BAD(no_complete_by),
        BAD(no_start),
        BAD(step_back_in_a_task_forward),
        BAD(running_before_its_predecessors_ended),
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        kit_make(&k, mistakes[i].what, "a2 b<a c<b");
        kit_play(&k, "claim, start a, again a, wait 1s, start a, ok a, start b");
        CHECK(task_valid(&k.g.w, &k.t), "before");
        mistakes[i].spoil();
        CHECK(!task_valid(&k.g.w, &k.t), "%s", mistakes[i].what);
    }
}

static void an_end_that_is_none_makes_a_task_invalid(void **state)
{
    (void)state;
    kit_make(&k, "processed", "a b<a");
    kit_play(&k, "claim, start a, ok a, release");
    k.t.state = TASK_PROCESSED;
    CHECK(!task_valid(&k.g.w, &k.t), "b did not end");
    kit_make(&k, "compensated", "a b<a");
    kit_play(&k, "claim, start a, ok a, undo, release");
    k.t.state = TASK_COMPENSATED;
    CHECK(!task_valid(&k.g.w, &k.t), "a was not undone");
    kit_make(&k, "compensated", "a b!<a");
    kit_play(&k, "claim, start a, ok a, undo, start a, ok a");
    CHECK(task_valid(&k.g.w, &k.t), "so far");
    k.steps[1].attempt_count = 1;
    k.steps[1].attempt = 1;
    k.attempts[1][0] = (struct attempt){.number = 1,
                                        .outcome = OUTCOME_TIMED_OUT,
                                        .effect = EFFECT_UNKNOWN,
                                        .started_at = 1,
                                        .ended_at = 2,
                                        .complete_by = 2};
    CHECK(!task_valid(&k.g.w, &k.t), "a pivot is in doubt");
}

/* Another writer may have stored the row: a task cannot have turned to undo with such a pivot. */
static void no_pivot_runs_or_stands_in_a_task_that_turned_back(void **state)
{
    (void)state;
    kit_make(&k, "pivot", "a b!");
    kit_play(&k, "claim, start a, ok a, start b, fail b");
    kit_expect(&k, "compensating a:completed b:failed");
    struct attempt *b = &k.attempts[1][0];
    CHECK(task_valid(&k.g.w, &k.t), "as it is");
    b->effect = EFFECT_UNKNOWN;
    CHECK(!task_valid(&k.g.w, &k.t), "in doubt");
    b->outcome = OUTCOME_OPEN;
    b->ended_at = 0;
    k.steps[1].state = STEP_RUNNING;
    CHECK(!task_valid(&k.g.w, &k.t), "running");
    kit_make(&k, "the same of a step with an undo", "a b");
    kit_play(&k, "claim, start a, ok a, start b, undo = stop");
    CHECK(task_valid(&k.g.w, &k.t), "it is told to stop, and compensated");
}

/* ---- many attempts ---- */

/* n attempts, each ended as `verb` says. */
static void many(int n, const char *verb)
{
    char script[100];

    for (int i = 0; i < n; i++) {
        (void)snprintf(script, sizeof script, "start a, %s a, retry", verb);
        if (strcmp(verb, "notsent") == 0)
            script[strlen(script) - strlen(", retry")] = 0;
        kit_play(&k, script);
    }
}

static void room_is_asked_for_as_long_as_attempts_are_kept(void **state)
{
    struct step s = {.attempt_count = 0, .attempt_cap = 0};
    (void)state;
    for (uint16_t cap = 0; cap <= ATTEMPTS_KEPT; cap++)
        for (uint16_t count = 0; count <= cap; count++) {
            s.attempt_cap = cap;
            s.attempt_count = count;
            CHECK(step_needs_room(&s) == (count == cap && cap < ATTEMPTS_KEPT), "%u %u", cap,
                  count);
        }
}

static void the_first_and_the_last_attempts_are_kept(void **state)
{
    (void)state;
    kit_make(&k, "many", "a#");
    kit_play(&k, "claim");
    many(60, "again");
    const struct step *s = &k.steps[0];
    CHECK(s->attempt_count == ATTEMPTS_KEPT && s->dropped_count == 35 && s->attempt == 60, "count");
    for (uint32_t i = 0; i < ATTEMPTS_KEPT; i++)
        CHECK(s->attempts[i].number == (i < ATTEMPTS_HEAD ? i + 1 : i + 36), "number %u", i);
    CHECK(!step_in_doubt(s) && !step_has_effect(s), "none had an effect");
    CHECK(step_find_attempt(s, DIRECTION_FORWARD, 6) == NULL, "dropped");
    kit_play(&k, "again a f6 = unknown");
}

static void doubt_outlives_the_attempts_that_were_merged(void **state)
{
    (void)state;
    kit_make(&k, "doubt", "a#");
    kit_play(&k, "claim");
    many(5, "again");
    kit_play(&k, "start a, timeout a, retry");
    int64_t until = k.attempts[0][5].complete_by;
    many(40, "again");
    const struct step *s = &k.steps[0];
    CHECK(s->dropped_effect == EFFECT_UNKNOWN && s->dropped_until == until, "merged");
    CHECK(step_in_doubt(s) && step_doubt_until(s) == until, "in doubt");
    kit_play(&k, "start a, fail a, undo");
    kit_expect(&k, "compensating a:failed");
    kit_play(&k, "wait 2m, start a, ok a");
    kit_expect(&k, "compensated a:undone");
}

/* What was sent twice may run until its complete-by, whatever one of the two answered. */
static void a_dropped_attempt_takes_no_time_from_the_doubt(void **state)
{
    (void)state;
    for (uint32_t resent = 0; resent < 2; resent++)
        for (int effect = EFFECT_NONE; effect <= EFFECT_HAPPENED; effect++) {
            struct attempt a[ATTEMPTS_HEAD + 1] = {0};
            for (uint32_t i = 0; i <= ATTEMPTS_HEAD; i++)
                a[i] = (struct attempt){.number = i + 1, .outcome = OUTCOME_COMPLETED};
            a[ATTEMPTS_HEAD].effect = (enum effect)effect;
            a[ATTEMPTS_HEAD].resent = resent;
            a[ATTEMPTS_HEAD].complete_by = 700;
            struct step s = {.attempts = a, .attempt_count = ATTEMPTS_HEAD + 1, .round = 1};
            int64_t until = step_doubt_until(&s);
            drop_attempt(&s);
            CHECK(s.attempt_count == ATTEMPTS_HEAD && s.dropped_count == 1, "dropped");
            CHECK(step_doubt_until(&s) >= until, "effect %d, sent again %u times", effect, resent);
        }
}

static void a_later_completion_settles_merged_doubt(void **state)
{
    (void)state;
    kit_make(&k, "doubt", "a# b<a");
    kit_play(&k, "claim");
    many(40, "lost");
    CHECK(step_in_doubt(&k.steps[0]), "in doubt");
    kit_play(&k, "start a, ok a");
    CHECK(!step_in_doubt(&k.steps[0]) && step_has_effect(&k.steps[0]), "certain");
    CHECK(step_doubt_until(&k.steps[0]) != 0, "those merged may not have been answered");
}

static void doubt_after_an_early_late_effect_is_doubt(void **state)
{
    (void)state;
    kit_make(&k, "doubt", "a#");
    kit_play(&k, "claim, start a, timeout a, ok a f1 = late, retry");
    many(4, "again");
    kit_play(&k, "start a, timeout a, retry");
    CHECK(step_in_doubt(&k.steps[0]) && step_has_effect(&k.steps[0]), "the sixth is in doubt");
    many(40, "again");
    CHECK(k.steps[0].dropped_effect == EFFECT_UNKNOWN, "merged");
    CHECK(step_in_doubt(&k.steps[0]) && step_has_effect(&k.steps[0]), "and still is");
}

static void late_effects_stay_as_long_as_others_can_go(void **state)
{
    (void)state;
    kit_make(&k, "late", "a#");
    kit_play(&k, "claim");
    many(7, "again");
    kit_play(&k, "start a, timeout a, ok a f8 = late, retry");
    many(40, "again");
    const struct attempt *a = step_find_attempt(&k.steps[0], DIRECTION_FORWARD, 8);
    CHECK(a && a->outcome == OUTCOME_LATE && slice_is(a->output.json, "{\"id\":1}"), "kept");
    CHECK(k.steps[0].dropped_effect == EFFECT_NONE && step_has_effect(&k.steps[0]), "effect");
}

static void an_effect_is_not_forgotten_when_it_must_be_merged(void **state)
{
    char script[60];
    (void)state;
    kit_make(&k, "merge", "a#");
    kit_play(&k, "claim");
    many(5, "again");
    for (int i = 6; i < 40; i++) {
        (void)snprintf(script, sizeof script, "start a, timeout a, ok a f%d = late, retry", i);
        kit_play(&k, script);
    }
    CHECK(k.steps[0].attempt_count == ATTEMPTS_KEPT, "full");
    CHECK(k.steps[0].dropped_effect == EFFECT_HAPPENED && step_has_effect(&k.steps[0]), "merged");
    many(60, "again");
    CHECK(step_has_effect(&k.steps[0]) && !step_in_doubt(&k.steps[0]), "still there");
}

/* A second request may be at work still, although the first was answered; also after a merge. */
static void the_doubt_of_a_second_request_is_merged_too(void **state)
{
    char script[60];
    (void)state;
    kit_make(&k, "resent", "a#");
    kit_play(&k, "claim");
    many(5, "again");
    kit_play(&k, "start a, resend a, timeout a, ok a f6 = late, retry");
    int64_t until = k.attempts[0][5].complete_by;
    for (int i = 7; i < 40; i++) {
        CHECK(step_doubt_until(&k.steps[0]) == until, "before attempt %d", i);
        (void)snprintf(script, sizeof script, "start a, timeout a, ok a f%d = late, retry", i);
        kit_play(&k, script);
    }
    CHECK(step_find_attempt(&k.steps[0], DIRECTION_FORWARD, 6) == NULL, "it was merged");
    CHECK(k.steps[0].dropped_effect == EFFECT_HAPPENED, "with its answer");
    CHECK(k.steps[0].dropped_until == until && step_doubt_until(&k.steps[0]) == until, "and doubt");
}

static void many_attempts_going_back_do_not_touch_the_way_forward(void **state)
{
    (void)state;
    kit_make(&k, "back", "a b<a");
    kit_play(&k, "claim, start a, ok a, undo");
    many(60, "lost");
    const struct step *s = &k.steps[0];
    CHECK(s->attempt_count == ATTEMPTS_KEPT && s->attempt == 60, "merged");
    CHECK(s->dropped_effect == EFFECT_NONE && s->dropped_until == 0, "nothing of it is forward");
    CHECK(step_has_effect(s) && !step_in_doubt(s) && step_doubt_until(s) == 0, "certain");
    CHECK(step_find_attempt(s, DIRECTION_FORWARD, 1) == &s->attempts[0], "the first is kept");
    kit_play(&k, "start a, ok a");
    kit_expect(&k, "compensated a:undone b:waiting");
}

static void requests_that_never_left_are_merged_too(void **state)
{
    (void)state;
    kit_make(&k, "not sent", "a");
    kit_play(&k, "claim");
    many(70, "notsent");
    CHECK(k.steps[0].dropped_count == 45 && k.steps[0].failure_count == 0, "no failure");
    kit_play(&k, "start a f71, ok a");
    kit_expect(&k, "processed a:completed");
}

/* The SHA-256 decides if both have one; otherwise the hash does. */
static void content_is_known_again(void **state)
{
    static const struct content a = {7, {"aaaa", 4}};
    static const struct content b = {7, {"bbbb", 4}}; /* made to have the same hash */
    static const struct content old = {7, {NULL, 0}};
    static const struct content other = {8, {"cccc", 4}};
    (void)state;

    CHECK(content_is_same(&a, &a) && content_is_same(&old, &old), "itself");
    CHECK(!content_is_same(&a, &b) && !content_is_same(&b, &a), "hashes may meet");
    CHECK(content_is_same(&a, &old) && content_is_same(&old, &a), "of a version before");
    CHECK(!content_is_same(&other, &old) && !content_is_same(&old, &other), "nor is it the same");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_state_words_lead_back),
        cmocka_unit_test(step_state_words_lead_back),
        cmocka_unit_test(outcome_words_lead_back),
        cmocka_unit_test(effect_words_lead_back),
        cmocka_unit_test(direction_words_lead_back),
        cmocka_unit_test(stop_words_lead_back),
        cmocka_unit_test(child_state_words_lead_back),
        cmocka_unit_test(child_wish_words_lead_back),
        cmocka_unit_test(states_have_the_edges_of_the_design_and_no_others),
        cmocka_unit_test(processed_and_compensated_are_the_ends),
        cmocka_unit_test(content_is_known_again),
        cmocka_unit_test(each_contradiction_makes_a_task_invalid),
        cmocka_unit_test(an_end_that_is_none_makes_a_task_invalid),
        cmocka_unit_test(no_pivot_runs_or_stands_in_a_task_that_turned_back),
        cmocka_unit_test(room_is_asked_for_as_long_as_attempts_are_kept),
        cmocka_unit_test(the_first_and_the_last_attempts_are_kept),
        cmocka_unit_test(doubt_outlives_the_attempts_that_were_merged),
        cmocka_unit_test(a_dropped_attempt_takes_no_time_from_the_doubt),
        cmocka_unit_test(a_later_completion_settles_merged_doubt),
        cmocka_unit_test(doubt_after_an_early_late_effect_is_doubt),
        cmocka_unit_test(late_effects_stay_as_long_as_others_can_go),
        cmocka_unit_test(an_effect_is_not_forgotten_when_it_must_be_merged),
        cmocka_unit_test(the_doubt_of_a_second_request_is_merged_too),
        cmocka_unit_test(many_attempts_going_back_do_not_touch_the_way_forward),
        cmocka_unit_test(requests_that_never_left_are_merged_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
