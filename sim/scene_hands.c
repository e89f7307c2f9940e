/* Scenes of operators' verbs: pause, correct, supply a missing output, resolve what did not
 * happen, restart. The table of scenes at the end says which conditions and acts follow each
 * other (scene.h); people.c draws such verbs at random. */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/world.h"

static bool first_begun(void)
{
    return begun(0, DIRECTION_FORWARD, 1);
}

static bool in_error(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static void wants_pause(void)
{
    people_want(the_task(), ASK_PAUSE, -1, ANY_NODE);
}

static void wants_resume(void)
{
    people_want(the_task(), ASK_RESUME, -1, ANY_NODE);
}

static void wants_retry(void)
{
    people_want(the_task(), ASK_RETRY, -1, ANY_NODE);
}

/* ---- pauses ---- */

static bool paused_and_at_rest(void)
{
    const struct seen *s = &the_task()->seen;

    return s->paused_at != 0 && s->state == TASK_PENDING && the_step(0)->state == STEP_COMPLETED;
}

static void node_crashes(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static bool nothing_more_has_begun(void)
{
    return !the_attempt(1, DIRECTION_FORWARD, 1);
}

static void it_had_the_time_that_it_had(void)
{
    const struct seen *s = &the_task()->seen;

    scene_must(!s->deadline_passed && s->ended_at > s->submitted_at + 5 * MS_PER_MIN,
               "it was paused for longer than it may take");
}

static bool waits_for_its_next_try(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return a && a->outcome == OUTCOME_FAILED && the_task()->seen.paused_at == 0;
}

static bool is_paused(void)
{
    return the_task()->seen.paused_at != 0;
}

static void the_wait_was_as_long(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *b = the_attempt(0, DIRECTION_FORWARD, 2);

    scene_must(b->started_at - a->ended_at > 2 * MS_PER_MIN, "a wait stands still in a pause");
}

/* Another request is in flight, so those that follow come into one change. */
static void corrects_the_second_in_a_stall(void)
{
    disk_stall(&nodes.list[0].disk, 7500);
    people_want(the_task(), ASK_CORRECT, 1, ANY_NODE);
}

static bool is_not_paused(void)
{
    return the_task()->seen.paused_at == 0;
}

/* At once: later the supervisor gives grace for the time without the store. */
static void it_has_time_again(void)
{
    const struct seen *s = &the_task()->seen;

    scene_must(met(COVER_PAUSED_AGAIN), "two pauses end in one change");
    scene_must(!s->deadline_passed && s->complete_by > s->submitted_at + 10 * MS_PER_S,
               "a pause that finds no time left leaves some");
}

/* ---- other requests ---- */

static void corrects_the_first(void)
{
    people_want(the_task(), ASK_CORRECT, 0, ANY_NODE);
}

static bool corrected(void)
{
    return the_step(0)->generation == 2;
}

static bool second_asked(void)
{
    return begun(0, DIRECTION_FORWARD, 2);
}

static void it_has_another_key(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *b = the_attempt(0, DIRECTION_FORWARD, 2);

    scene_must(a->generation == 1 && b->generation == 2, "one key, one request");
    scene_must(the_step(0)->input
                   == seen_hash(SLICE("{\"n\":1,\"flag\":true,\"text\":\"corrected\"}")),
               "what was said is what was asked");
}

static void supplies_the_first(void)
{
    people_want(the_task(), ASK_SUPPLY, 0, ANY_NODE);
}

static bool supplied(void)
{
    return the_step(0)->supplied;
}

/* ---- resolved doubts ---- */

static void resolves_the_second(void)
{
    people_want(the_task(), ASK_RESOLVE, 1, ANY_NODE);
}

static void resolves_the_first(void)
{
    people_want(the_task(), ASK_RESOLVE, 0, ANY_NODE);
}

static void wants_undo(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

static bool pivot_resolved(void)
{
    return the_step(1)->resolved == 2 && met(COVER_RESOLVED_PIVOT);
}

static bool first_resolved(void)
{
    return the_step(0)->resolved == 1;
}

static void crashes_and_wants_undo(void)
{
    node_crashes();
    wants_undo();
}

static bool pivot_in_doubt_in_error(void)
{
    return in_error() && seen_in_doubt(the_step(1));
}

static bool in_doubt_again(void)
{
    return in_error() && the_step(0)->resolved == 1 && seen_in_doubt(the_step(0));
}

static bool undo_was_refused(void)
{
    return the_task()->refused[ASK_UNDO] > 0;
}

static void resolves_the_pivot_again(void)
{
    scene_must(!the_step(0)->supplied, "nobody said that it happened");
    people_want(the_task(), ASK_RESOLVE, 0, ANY_NODE);
}

static bool both_resolved(void)
{
    return the_step(0)->resolved == 2;
}

static void starts_anew(void)
{
    people_want_from(the_task(), 0);
}

static bool second_of_both(void)
{
    return begun(1, DIRECTION_FORWARD, 2);
}

static void both_have_another_key(void)
{
    scene_must(the_attempt(0, DIRECTION_FORWARD, 2)->generation == 2
                   && the_attempt(1, DIRECTION_FORWARD, 2)->generation == 2,
               "what starts anew has another key");
}

const struct scene scenes_of_hands[] = {
    {
        .name = "pause",
        .sentence = "a task is paused while it is at work: that ends, and nothing more begins, at"
                    " whichever start of the node, and for longer than the task may take",
        .flow = {.step_count = 2,
                 .complete_by_ms = 2 * MS_PER_MIN,
                 .steps = {{.complete_by_ms = MS_PER_MIN}, {.before = BIT(0)}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 3000}}},
        .beats = {{.what = "its first step is at work", .until = first_begun, .then = wants_pause},
                  {.what = "nothing of it runs", .until = paused_and_at_rest, .then = node_crashes},
                  {.what = "nothing more has begun",
                   .after_ms = 10 * MS_PER_MIN,
                   .until = nothing_more_has_begun,
                   .then = wants_resume}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
        .expect = it_had_the_time_that_it_had,
    },
    {
        .name = "pause_between_tries",
        .sentence = "a task is paused while it waits for its next try: the wait goes on after it",
        .flow = {.step_count = 1,
                 .steps = {{.retry = {.attempts = 1, .defers = 1, .defer_ms = MS_PER_MIN}}}},
        .parts = {{.attempt = 1, .act = {SAYS_AGAIN, .takes = 50}}},
        .beats = {{.what = "it waits", .until = waits_for_its_next_try, .then = wants_pause},
                  {.what = "it is paused", .until = is_paused},
                  {.what = "it goes on", .after_ms = 2 * MS_PER_MIN, .then = wants_resume}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "FC", STANDS}},
        .expect = the_wait_was_as_long,
    },
    {
        .name = "pauses_in_one_change",
        .sentence = "the store stands still while a pause ends, the time that the task had left"
                    " passes, and another pause begins and ends: it has some time again",
        .flow = {.step_count = 2,
                 .complete_by_ms = 3 * MS_PER_S,
                 .steps = {{.complete_by_ms = MS_PER_MIN},
                           {.before = BIT(0), .retry = {.attempts = 3}}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 200}}},
        .beats = {{.what = "its first step is at work", .until = first_begun, .then = wants_pause},
                  {.what = "it is paused",
                   .until = is_paused,
                   .then = corrects_the_second_in_a_stall},
                  {.what = "the pause ends", .after_ms = 500, .then = wants_resume},
                  {.what = "it is paused again", .after_ms = 5000, .then = wants_pause},
                  {.what = "that pause ends", .after_ms = 100, .then = wants_resume},
                  {.what = "it goes on", .until = is_not_paused, .then = it_has_time_again}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "N?C", STANDS}},
    },
    {
        .name = "corrected_input",
        .sentence = "a step that was refused gets another input: it is asked under another key",
        .flow = {.step_count = 1, .steps = {{.on_failure = ON_FAILURE_HOLD}}},
        .parts = {{.attempt = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error", .until = in_error, .then = corrects_the_first},
                  {.what = "it was corrected", .until = corrected, .then = wants_retry},
                  {.what = "it is asked again", .until = second_asked}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "FC", STANDS}},
        .expect = it_has_another_key,
    },
    {
        .name = "supplied_output",
        .sentence = "what a step in doubt did is found out: it counts as completed, and is undone"
                    " with the task",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 500, .on_failure = ON_FAILURE_HOLD},
                           {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_NOTHING, .takes = 300, .effect = true}},
                  {.step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error", .until = in_error, .then = supplies_the_first},
                  {.what = "it counts as completed", .until = supplied}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "T/C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "resolved_pivot",
        .sentence = "the first request of a pivot is lost, and the second refused: who looked says"
                    " that it took no effect, the node crashes, and the task is undone",
        .flow = {.step_count = 2,
                 .steps = {{.undo = UNDO_CALL},
                           {.undo = UNDO_PIVOT,
                            .before = BIT(0),
                            .complete_by_ms = 500,
                            .retry = {.attempts = 2}}}},
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_NOTHING, .takes = 300}},
                  {.step = 1, .attempt = 2, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats =
            {{.what = "it stopped in error", .until = pivot_in_doubt_in_error},
             {.what = "nothing more can come of it", .after_ms = 2000, .then = resolves_the_second},
             {.what = "it is resolved", .until = pivot_resolved, .then = crashes_and_wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "TF", NOTHING}},
    },
    {
        .name = "resolved_and_corrected",
        .sentence = "a step in doubt is resolved: it is not in doubt any more, gets another input"
                    " and is asked under another key",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 500, .on_failure = ON_FAILURE_HOLD}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 300}}},
        .beats = {{.what = "it stopped in error", .until = in_error},
                  {.what = "nothing more can come of it",
                   .after_ms = 2000,
                   .then = resolves_the_first},
                  {.what = "it is resolved", .until = first_resolved, .then = corrects_the_first},
                  {.what = "it was corrected", .until = corrected, .then = wants_retry},
                  {.what = "it is asked again", .until = second_asked}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}},
        .expect = it_has_another_key,
    },
    {
        .name = "in_doubt_again",
        .sentence = "a pivot that was resolved is lost once more: it is in doubt again, until it is"
                    " resolved again",
        .flow =
            {.step_count = 1,
             .steps = {{.undo = UNDO_PIVOT, .complete_by_ms = 500, .on_failure = ON_FAILURE_HOLD}}},
        .parts = {{.act = {SAYS_NOTHING, .takes = 300}}},
        .beats = {{.what = "it stopped in error", .until = in_error},
                  {.what = "nothing more can come of it",
                   .after_ms = 2000,
                   .then = resolves_the_first},
                  {.what = "it is resolved", .until = first_resolved, .then = wants_retry},
                  {.what = "it is in doubt again", .until = in_doubt_again, .then = wants_undo},
                  {.what = "it cannot be undone", .until = undo_was_refused},
                  {.what = "nothing more can come of that",
                   .after_ms = 2000,
                   .then = resolves_the_pivot_again},
                  {.what = "it is resolved again", .until = both_resolved, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_FAILED, "TT", NOTHING}},
    },
    {
        .name = "anew_from_a_step",
        .sentence = "a task starts anew from its first step on, which has nothing to undo: both are"
                    " asked under other keys",
        .flow = {.step_count = 2,
                 .steps = {{.undo = UNDO_NONE}, {.before = BIT(0), .on_failure = ON_FAILURE_HOLD}}},
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error", .until = in_error, .then = starts_anew},
                  {.what = "both are asked again", .until = second_of_both}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "CC", STANDS}, {STEP_COMPLETED, "FC", STANDS}},
        .expect = both_have_another_key,
    },
    {.name = NULL},
};
