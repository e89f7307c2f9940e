/* Scenes of steps and pivots in doubt, and of the undo meanwhile. The table of scenes at the end
 * says which conditions and acts follow each other (scene.h). */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/world.h"

static bool has_outcome(uint32_t step, enum direction d, uint32_t number, enum outcome o)
{
    const struct seen_attempt *a = the_attempt(step, d, number);

    return a && a->outcome == o;
}

/* ---- refused_after_timeout ---- */

static bool first_timed_out(void)
{
    return has_outcome(0, DIRECTION_FORWARD, 1, OUTCOME_TIMED_OUT);
}

static bool second_refused_in_doubt(void)
{
    return has_outcome(0, DIRECTION_FORWARD, 2, OUTCOME_FAILED) && seen_in_doubt(the_step(0));
}

static void only_past_the_margin(void)
{
    const struct seen_attempt *first = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *undo = the_attempt(0, DIRECTION_UNDO, 1);

    scene_must(undo->started_at >= first->complete_by + MS_PER_S,
               "what is in doubt is undone after its complete-by and a margin");
}

/* ---- pivots ---- */

static bool pivot_in_doubt_beside_failure(void)
{
    return the_task()->seen.stop == STOP_UNDO && seen_in_doubt(the_step(1))
           && the_step(2)->state == STEP_FAILED;
}

static bool in_error(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static void skips_the_failed_branch(void)
{
    people_want(the_task(), ASK_SKIP, 2, ANY_NODE);
}

static void wants_undo(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

/* ---- undo ---- */

static bool undone_in_doubt_without_output(void)
{
    return met(COVER_UNDO_NO_OUTPUT) && met(COVER_UNDO_IN_DOUBT) && !the_step(0)->has_output;
}

static bool tombstone_refused(void)
{
    return met(COVER_TOMBSTONE);
}

static bool skipped_in_doubt(void)
{
    return met(COVER_SKIP_IN_DOUBT) && seen_in_doubt(the_step(0));
}

static void skips_the_first(void)
{
    people_want(the_task(), ASK_SKIP, 0, ANY_NODE);
}

static bool undoing_long_past_complete_by(void)
{
    return is_open(0, DIRECTION_UNDO, 1)
           && store_now() > the_task()->seen.complete_by + 2 * MS_PER_S;
}

static void deadline_did_nothing(void)
{
    scene_must(!the_task()->seen.deadline_passed, "going back, the way forward has no deadline");
    scene_must(the_task()->seen.failure_count == 1, "only the refusal counts as a failure");
}

static bool undo_stopped_by_deadline(void)
{
    return in_error() && the_task()->seen.direction == DIRECTION_UNDO && met(COVER_UNDO_DEADLINE);
}

static void retries_all(void)
{
    people_want(the_task(), ASK_RETRY, -1, ANY_NODE);
}

/* ---- late_result ---- */

static bool late_while_the_next_runs(void)
{
    return has_outcome(0, DIRECTION_FORWARD, 1, OUTCOME_LATE) && is_open(0, DIRECTION_FORWARD, 2)
           && the_step(0)->state == STEP_RUNNING;
}

/* ---- answer_after_deadline ---- */

static bool answered_after_deadline(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return a && a->outcome == OUTCOME_COMPLETED && a->ended_at > a->complete_by;
}

/* A step, then a pivot that is soon in doubt, and beside it a step that fails. */
#define PIVOT_FLOW(defer)                                                 \
    {                                                                     \
        .step_count = 3, .steps = {                                       \
            {.undo = UNDO_CALL},                                          \
            {.undo = UNDO_PIVOT,                                          \
             .before = BIT(0),                                            \
             .service = 1,                                                \
             .complete_by_ms = 400,                                       \
             .retry = {.attempts = 1, .defers = 1, .defer_ms = (defer)}}, \
            {.before = BIT(0), .service = 2, .complete_by_ms = 5000},     \
        }                                                                 \
    }

/* It is refused after the pivot has timed out for sure. */
#define REFUSES_LATER                                     \
    {                                                     \
        .step = 2, .act = { SAYS_REFUSED, .takes = 2500 } \
    }

const struct scene scenes_of_doubt[] = {
    {
        .name = "refused_after_timeout",
        .sentence = "the first attempt of a step timed out, the second was refused: it is in doubt,"
                    " and undone",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 500, .retry = {.attempts = 2}}, {.before = BIT(0)}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 300, .effect = true}},
                  {.attempt = 2, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "the first attempt timed out", .until = first_timed_out},
                  {.what = "the second was refused", .until = second_refused_in_doubt}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "TF/C", UNDONE}, {STEP_WAITING, "", NOTHING}},
        .expect = only_past_the_margin,
    },
    {
        .name = "pivot_found_completed",
        .sentence = "a pivot in doubt while another branch failed turns out completed: nothing is"
                    " undone, and the operator brings the task forward",
        .flow = PIVOT_FLOW(3000),
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_NOTHING, .takes = 300, .effect = true}},
                  REFUSES_LATER},
        .beats = {{.what = "the pivot is in doubt, and undo is wanted",
                   .until = pivot_in_doubt_beside_failure},
                  {.what = "the task stopped in error",
                   .until = in_error,
                   .then = skips_the_failed_branch}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "TC", STANDS},
                  {STEP_SKIPPED, "F", NOTHING}},
    },
    {
        .name = "pivot_told_late",
        .sentence = "a late answer says that a pivot in doubt came to nothing: undo goes on",
        .flow = PIVOT_FLOW(15000),
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_AGAIN, .takes = 5000, .past = true}},
                  REFUSES_LATER},
        .beats = {{.what = "the pivot is in doubt, and undo is wanted",
                   .until = pivot_in_doubt_beside_failure}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE},
                  {STEP_WAITING, "L", NOTHING},
                  {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "pivot_in_doubt_for_good",
        .sentence = "a pivot in doubt has no try left: the task stops in error, and nobody may"
                    " undo it",
        .flow = PIVOT_FLOW(3000),
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_NOTHING, .takes = 300}},
                  {.step = 1, .attempt = 2, .act = {SAYS_REFUSED, .takes = 20}},
                  REFUSES_LATER},
        .beats = {{.what = "the pivot is in doubt, and undo is wanted",
                   .until = pivot_in_doubt_beside_failure},
                  {.what = "the task stopped in error", .until = in_error, .then = wants_undo}},
        .end = TASK_ERROR,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_FAILED, "TF", NOTHING},
                  {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "undo_without_output",
        .sentence = "a step that never said anything is undone without an output, before its"
                    " effect could come",
        .flow = {.step_count = 1, .steps = {{.complete_by_ms = 500}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 300}}},
        .beats = {{.what = "it is undone in doubt, without an output",
                   .until = undone_in_doubt_without_output}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "T/C", BARRED}},
    },
    {
        .name = "effect_after_undo",
        .sentence = "an agent that ignores its deadline acts after its step was undone: the"
                    " tombstone refuses it",
        .flow = {.step_count = 1, .steps = {{.complete_by_ms = 500}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 15000, .past = true}}},
        .beats = {{.what = "it is undone in doubt, without an output",
                   .until = undone_in_doubt_without_output},
                  {.what = "the tombstone refused the effect", .until = tombstone_refused}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "L/C", BARRED}},
    },
    {
        .name = "skip_in_doubt",
        .sentence = "a step is skipped by the operator while it is in doubt: a later undo"
                    " compensates it",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 500, .on_failure = ON_FAILURE_HOLD},
                           {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_NOTHING, .takes = 300, .effect = true}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error", .until = in_error, .then = skips_the_first},
                  {.what = "the step was skipped in doubt", .until = skipped_in_doubt}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "T/C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "deadline_in_undo",
        .sentence = "the complete-by of a task passes while it is undone: that changes nothing",
        .flow = {.step_count = 2,
                 .complete_by_ms = 3000,
                 .steps = {{.undo_complete_by_ms = 20000}, {.before = BIT(0)}}},
        .parts = {{.direction = DIRECTION_UNDO, .act = {SAYS_DONE, .takes = 8000}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "undo runs past the complete-by",
                   .until = undoing_long_past_complete_by}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
        .expect = deadline_did_nothing,
    },
    {
        .name = "undo_out_of_time",
        .sentence = "the undo's own complete-by passes: the task stops in error, and the operator"
                    " brings the undo to its end",
        .flow = {.step_count = 2,
                 .undo_complete_by_ms = 2000,
                 .steps = {{.undo_retry = {.attempts = 3}}, {.before = BIT(0)}}},
        .parts = {{.direction = DIRECTION_UNDO, .attempt = 1, .act = {SAYS_NOTHING, .takes = 50}},
                  {.direction = DIRECTION_UNDO, .attempt = 2, .act = {SAYS_NOTHING, .takes = 50}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error on the way back",
                   .until = undo_stopped_by_deadline,
                   .then = retries_all}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/TN*T?C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "late_result",
        .sentence = "the answer to a first attempt comes while the second runs, which then is"
                    " refused: the effect that was told late is undone",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 2000, .retry = {.attempts = 2}}, {.before = BIT(0)}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 2000, .past = true}},
                  {.attempt = 2, .act = {SAYS_REFUSED, .takes = 1800}}},
        .beats = {{.what = "a late answer is kept, and changes no state",
                   .until = late_while_the_next_runs}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "LF/C", UNDONE}, {STEP_WAITING, "", NOTHING}},
    },
    {
        .name = "answer_after_deadline",
        .sentence = "an answer past its complete-by counts as long as nobody gave its attempt up",
        .flow = {.step_count = 2, .steps = {{.complete_by_ms = 150}, {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 500, .keeps = true}}},
        .beats = {{.what = "it counts", .until = answered_after_deadline}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
    },
    {.name = NULL},
};
