/* Scenes of steps of on_undo, and of processed tasks that an operator undoes. The table of scenes
 * at the end says which conditions and acts follow each other (scene.h). */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/world.h"

static void node_crashes(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static void wants_undo(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

static void wants_undo_of_work(void)
{
    people_want_undo_of_work(the_task());
}

static void wants_retry(void)
{
    people_want(the_task(), ASK_RETRY, -1, ANY_NODE);
}

static bool told_begun(void)
{
    return begun(2, DIRECTION_FORWARD, 1);
}

static bool told_again(void)
{
    return begun(2, DIRECTION_FORWARD, 2);
}

static bool compensation_begun(void)
{
    return begun(0, DIRECTION_UNDO, 1);
}

static bool told_late_while_the_undo_waits(void)
{
    const struct seen_attempt *first = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *undo = the_attempt(0, DIRECTION_UNDO, 1);

    return first && first->outcome == OUTCOME_LATE && undo && undo->outcome == OUTCOME_FAILED
           && !the_attempt(0, DIRECTION_UNDO, 2);
}

static bool stopped(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static bool processed(void)
{
    return the_task()->seen.state == TASK_PROCESSED;
}

static bool undo_was_refused(void)
{
    return the_task()->refused[ASK_UNDO] > 0;
}

static void nothing_was_undone(void)
{
    scene_must(the_task()->seen.direction == DIRECTION_FORWARD, "it stays as it is");
}

static void told_after_all_else(void)
{
    const struct seen_attempt *undo = the_attempt(0, DIRECTION_UNDO, 1);
    const struct seen_attempt *tell = the_attempt(2, DIRECTION_FORWARD, 1);

    scene_must(undo->ended_at <= tell->started_at, "the last compensation ended before");
}

static void one_way_back(void)
{
    scene_must(the_task()->audited[ASK_UNDO] == 1, "it was undone once");
    scene_must(the_task()->seen.ended_at > the_task()->seen.submitted_at, "it ended anew");
}

const struct scene scenes_of_undo[] = {
    {
        .name = "told_of_undo",
        .sentence = "a task goes back; its node crashes while one is told of it, who is told by"
                    " nobody else, and once",
        .flow = {.step_count = 4,
                 .steps = {{.undo = UNDO_CALL},
                           {.before = BIT(0)},
                           {.on_undo = true, .undo = UNDO_NONE, .on_failure = ON_FAILURE_HOLD},
                           {.on_undo = true,
                            .undo = UNDO_NONE,
                            .on_failure = ON_FAILURE_HOLD,
                            .before = BIT(2)}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 2, .act = {SAYS_DONE, .takes = 400}}},
        .beats = {{.what = "somebody is told", .until = told_begun, .then = node_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE},
                  {STEP_FAILED, "F", NOTHING},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
        .expect = told_after_all_else,
    },
    {
        .name = "not_told_while_in_doubt",
        .sentence = "what is in doubt is compensated first, when nobody can be at work on it; the"
                    " compensation is lost with its node and made again before anybody is told",
        .flow =
            {.step_count = 3,
             .steps = {{.undo = UNDO_CALL, .complete_by_ms = 500, .undo_retry = {.attempts = 3}},
                       {.undo = UNDO_NONE, .before = BIT(0)},
                       {.on_undo = true, .undo = UNDO_NONE, .on_failure = ON_FAILURE_HOLD}}},
        .parts = {{.direction = DIRECTION_UNDO, .act = {SAYS_DONE, .takes = 300}},
                  {.act = {SAYS_NOTHING, .takes = 300, .effect = true}}},
        .beats = {{.what = "it is being compensated",
                   .until = compensation_begun,
                   .then = node_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "T/T*C", UNDONE},
                  {STEP_WAITING, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
    },
    {
        .name = "told_by_hand",
        .sentence = "nobody can be told: the task stops in error, until an operator retries",
        .flow = {.step_count = 3,
                 .steps = {{.undo = UNDO_CALL},
                           {.before = BIT(0)},
                           {.on_undo = true,
                            .undo = UNDO_NONE,
                            .on_failure = ON_FAILURE_HOLD,
                            .complete_by_ms = MS_PER_MIN}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 2, .attempt = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it stopped in error", .until = stopped, .then = node_crashes},
                  {.what = "somebody saw to it", .after_ms = 1000, .then = wants_retry},
                  {.what = "somebody is told after all", .until = told_again}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE},
                  {STEP_FAILED, "F", NOTHING},
                  {STEP_COMPLETED, "FC", STANDS}},
    },
    {
        .name = "undo_asked_again",
        .sentence = "an undo fails, and before it is tried again a late result brings the output"
                    " that it names: it is asked with what it was asked with at first",
        .flow = {.step_count = 2,
                 .steps = {{.undo = UNDO_CALL,
                            .complete_by_ms = 500,
                            .undo_retry = {.attempts = 3, .wait_ms = 20000, .max_wait_ms = 20000}},
                           {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 3000, .past = true}},
                  {.direction = DIRECTION_UNDO, .attempt = 1, .act = {SAYS_AGAIN, .takes = 50}}},
        .beats = {{.what = "a late result is kept while the undo waits",
                   .until = told_late_while_the_undo_waits}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "L/FC", UNDONE}, {STEP_WAITING, "", NOTHING}},
    },
    {
        .name = "undo_of_processed",
        .sentence = "a processed task is undone by an operator; its node crashes in the middle, and"
                    " it ends once more, all undone and told of",
        .flow = {.step_count = 3,
                 .undo_until_ms = 10 * MS_PER_MIN,
                 .steps = {{.undo = UNDO_CALL, .undo_retry = {.attempts = 3}},
                           {.undo = UNDO_CALL, .before = BIT(0)},
                           {.on_undo = true, .undo = UNDO_NONE, .on_failure = ON_FAILURE_HOLD}}},
        .beats = {{.what = "it is processed", .until = processed, .then = node_crashes},
                  {.what = "it was wrong", .after_ms = MS_PER_MIN, .then = wants_undo},
                  {.what = "it is being compensated",
                   .until = compensation_begun,
                   .then = node_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/T*C", UNDONE},
                  {STEP_UNDONE, "C/C", UNDONE},
                  {STEP_COMPLETED, "C", STANDS}},
        .expect = one_way_back,
    },
    {
        .name = "undo_of_work_that_ended",
        .sentence = "who wants the tasks in work undone does not mean one that was processed"
                    " meanwhile",
        .flow = {.step_count = 1, .steps = {{.undo = UNDO_CALL}}},
        .beats = {{.what = "it is processed", .until = processed, .then = wants_undo_of_work},
                  {.what = "it was refused", .until = undo_was_refused}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_was_undone,
    },
    {
        .name = "undo_too_late",
        .sentence = "a processed task stays so once its undo_until has passed",
        .flow = {.step_count = 1, .undo_until_ms = MS_PER_MIN, .steps = {{.undo = UNDO_CALL}}},
        .beats = {{.what = "it is processed", .until = processed},
                  {.what = "its time has passed", .after_ms = MS_PER_MIN, .then = wants_undo},
                  {.what = "it was refused", .until = undo_was_refused}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_was_undone,
    },
    {
        .name = "undo_behind_a_pivot",
        .sentence = "a processed task stays so if its pivot took effect, or may have",
        .flow = {.step_count = 2,
                 .steps = {{.undo = UNDO_CALL},
                           {.undo = UNDO_PIVOT,
                            .before = BIT(0),
                            .complete_by_ms = 500,
                            .on_failure = ON_FAILURE_CONTINUE}}},
        .parts = {{.step = 1, .act = {SAYS_NOTHING, .takes = 300, .effect = true}}},
        .beats = {{.what = "it is processed", .until = processed, .then = wants_undo},
                  {.what = "it was refused", .until = undo_was_refused}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_FAILED, "T", STANDS}},
        .expect = nothing_was_undone,
    },
    {.name = NULL},
};
