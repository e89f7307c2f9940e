/* Scenes of families: a child's end and its root's undo in both orders, errors, pivots, time, and
 * nodes that die between what one does and the other hears. The table of scenes at the end says
 * which conditions and acts follow each other (scene.h).
 *
 * durable-workflow#347: children fail in parallel, and the undo of their parent never runs.
 * saga-lara-flow#48: behind a child that failed, and whose failure was tolerated, nothing is
 * undone. saga-lara-flow#22, and Camunda's call activities: a child that completed is not undone
 * with its parent. Here all that a family did is undone; the same with items is in
 * scene_item_children.c. */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/world.h"

static struct subject *the_child(void)
{
    return subjects.count > 1 ? &subjects.list[1] : NULL;
}

static enum task_state state_of_child(void)
{
    return the_child() ? the_child()->seen.state : TASK_PENDING;
}

static void node_crashes(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static void wants_undo(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

static void wants_undo_and_crashes(void)
{
    wants_undo();
    node_crashes();
}

static void wants_skip(void)
{
    people_want(the_task(), ASK_SKIP, 1, ANY_NODE);
}

static void wants_close(void)
{
    people_want(the_task(), ASK_CLOSE, -1, ANY_NODE);
}

static void wants_reopen(void)
{
    people_want(the_task(), ASK_REOPEN, -1, ANY_NODE);
}

static void wants_retry_of_child(void)
{
    people_want(the_child(), ASK_RETRY, -1, ANY_NODE);
}

static void wants_pause(void)
{
    people_want(the_task(), ASK_PAUSE, -1, ANY_NODE);
}

static void wants_resume(void)
{
    people_want(the_task(), ASK_RESUME, -1, ANY_NODE);
}

static bool child_started(void)
{
    return the_child() && the_child()->seen.revision == 0;
}

static bool child_at_work(void)
{
    return the_child() && the_child()->ledger[1].begun[DIRECTION_FORWARD] >= 1;
}

static bool child_processed(void)
{
    return state_of_child() == TASK_PROCESSED;
}

static bool child_known_to_be_processed(void)
{
    return the_step(1)->child.state == CHILD_PROCESSED;
}

static bool both_stopped(void)
{
    return state_of_child() == TASK_ERROR && the_task()->seen.state == TASK_ERROR;
}

static bool child_closed(void)
{
    return the_child() && the_child()->seen.closed_at != 0;
}

static bool child_reopened(void)
{
    return the_child() && the_child()->seen.closed_at == 0;
}

static bool child_paused(void)
{
    return the_child() && the_child()->seen.paused_at != 0;
}

static bool last_step_begun(void)
{
    return begun(2, DIRECTION_FORWARD, 1);
}

static void turned_when_asked(void)
{
    scene_must(met(COVER_CHILD_TURNED), "the child turned back");
    scene_must(the_child() && the_child()->seen.asked == WISH_STOP, "its root asked it to");
}

static void stood_when_asked(void)
{
    scene_must(met(COVER_CHILD_STANDS), "the child said that it cannot go back");
}

static void late_and_stopped(void)
{
    scene_must(met(COVER_CHILD_LATE), "the child was late");
}

static void one_child(void)
{
    scene_must(subjects.count == 2, "it has one child");
}

/* A step, a child, and another step. */
#define ROOT                                                          \
    {                                                                 \
        .step_count = 3, .steps = {                                   \
            {.undo = UNDO_CALL, .undo_retry = {.attempts = 3}},       \
            {.is_child = true, .undo = UNDO_CHILD, .before = BIT(0)}, \
            {.undo = UNDO_CALL,                                       \
             .undo_retry = {.attempts = 5},                           \
             .before = BIT(1),                                        \
             .complete_by_ms = 10 * MS_PER_S},                        \
        }                                                             \
    }

#define CHILD_WITH(failure)                                                                      \
    {                                                                                            \
        .step_count = 2, .steps = {                                                              \
            {.undo = UNDO_CALL, .undo_retry = {.attempts = 3}, .complete_by_ms = 10 * MS_PER_S}, \
            {.undo = UNDO_CALL,                                                                  \
             .undo_retry = {.attempts = 3},                                                      \
             .before = BIT(0),                                                                   \
             .on_failure = (failure),                                                            \
             .complete_by_ms = 10 * MS_PER_S},                                                   \
        }                                                                                        \
    }

const struct scene scenes_of_families[] = {
    {
        .name = "child_goes_back_too",
        .sentence = "a task is undone while its child is at work, and the child is undone first",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_DONE, .takes = 800}}},
        .beats = {{.what = "the child is at work", .until = child_at_work, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "undone_as_child_ends",
        .sentence = "a task is undone when its child has ended, before it hears of that",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "the child has ended", .until = child_processed, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "parallel_children_fail",
        .sentence = "two children fail in parallel, and their parent is undone"
                    " (durable-workflow#347)",
        .flow = {.step_count = 3,
                 .steps = {{.undo = UNDO_CALL},
                           {.is_child = true, .undo = UNDO_CHILD, .before = BIT(0)},
                           {.is_child = true, .undo = UNDO_CHILD, .before = BIT(0)}}},
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {.step = 1, .direction = DIRECTION_FORWARD, .act = {SAYS_REFUSED, .takes = 300}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "undone_behind_a_failed_child",
        .sentence = "a child fails, which its step allows, and a later step fails: what was done"
                    " before the child and after it is undone (saga-lara-flow#48)",
        .flow = {.step_count = 4,
                 .steps = {{.undo = UNDO_CALL},
                           {.is_child = true,
                            .undo = UNDO_CHILD,
                            .on_failure = ON_FAILURE_CONTINUE,
                            .before = BIT(0)},
                           {.undo = UNDO_CALL, .before = BIT(1)},
                           {.undo = UNDO_CALL, .before = BIT(2)}}},
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.task = 1, .step = 3, .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE},
                  {STEP_FAILED, "", NOTHING},
                  {STEP_UNDONE, "C/C", UNDONE},
                  {STEP_FAILED, "F", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "undone_after_child_ends",
        .sentence = "a task is undone once it has heard of the end of its child"
                    " (saga-lara-flow#22, Camunda's call activities)",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "the end of the child is known",
                   .until = child_known_to_be_processed,
                   .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "crash_as_child_ends",
        .sentence = "the node dies when the child has ended, and the task is to be undone",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "the child has ended",
                   .until = child_processed,
                   .then = wants_undo_and_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/L?T?L?T?C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/L?T?L?T?C", UNDONE}, {STEP_UNDONE, "C/L?T?L?T?C", UNDONE}},
    },
    {
        .name = "crash_before_child_begins",
        .sentence = "the node dies after it started a child, and before it has taken it in",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .beats = {{.what = "a child was started", .until = child_started, .then = node_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
        .child_fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
        .expect = one_child,
    },
    {
        .name = "undone_with_child_in_error",
        .sentence = "a child stops in error, and so does its root; both are undone",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "both are in error", .until = both_stopped, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "skipped_child_is_undone",
        .sentence = "the step of a child in error is skipped, which closes the child; when the"
                    " task is undone later, the child is reopened and undone",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 2000}}},
        .beats = {{.what = "both are in error", .until = both_stopped, .then = wants_skip},
                  {.what = "the next step is at work", .until = last_step_begun},
                  {.what = "the child is closed", .until = child_closed, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_SKIPPED, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "closed_and_reopened",
        .sentence = "a task in error for its child is closed and reopened, and the child with it;"
                    " then the child is helped",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{.task = 2, .step = 1, .attempt = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "both are in error", .until = both_stopped, .then = wants_close},
                  {.what = "the child is closed", .until = child_closed, .then = wants_reopen},
                  {.what = "the child is reopened",
                   .until = child_reopened,
                   .then = wants_retry_of_child}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
        .child_fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "FC", STANDS}},
    },
    {
        .name = "child_is_late",
        .sentence = "a child has no time left: it is told to stop, and undone; its step fails",
        .flow =
            {.step_count = 2,
             .steps = {{.undo = UNDO_CALL},
                       {.is_child = true, .child_ms = 600, .undo = UNDO_CHILD, .before = BIT(0)}}},
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_DONE, .takes = 5000}}},
        .beats = {{.what = "the child is at work", .until = child_at_work}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .expect = late_and_stopped,
    },
    {
        .name = "pivot_child_turns_back",
        .sentence = "a step fails while the child of a pivot has not come to its pivot: the child"
                    " is asked, and turns back, and so does the task",
        .flow = {.step_count = 3,
                 .steps = {{.undo = UNDO_CALL},
                           {.is_child = true, .undo = UNDO_PIVOT},
                           {.undo = UNDO_CALL, .before = BIT(0)}}},
        .child = {.step_count = 2,
                  .steps = {{.undo = UNDO_CALL, .complete_by_ms = 10 * MS_PER_S},
                            {.undo = UNDO_PIVOT, .before = BIT(0)}}},
        .parts = {{.task = 2,
                   .step = 0,
                   .direction = DIRECTION_FORWARD,
                   .act = {SAYS_DONE, .takes = 3000}},
                  {.task = 1, .step = 2, .act = {SAYS_REFUSED, .takes = 800}}},
        .beats = {{.what = "a step is about to fail", .until = last_step_begun}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = turned_when_asked,
    },
    {
        .name = "pivot_child_stands",
        .sentence = "a step fails after the pivot of a child took effect: the child is asked, and"
                    " ends; the task stops in error",
        .flow = {.step_count = 3,
                 .steps = {{.undo = UNDO_CALL},
                           {.is_child = true, .undo = UNDO_PIVOT},
                           {.undo = UNDO_CALL, .before = BIT(0), .complete_by_ms = 5 * MS_PER_S}}},
        .child =
            {.step_count = 2,
             .steps = {{.undo = UNDO_PIVOT},
                       {.undo = UNDO_CALL, .before = BIT(0), .complete_by_ms = 20 * MS_PER_S}}},
        .parts = {{.task = 2, .step = 1, .act = {SAYS_DONE, .takes = 8000}},
                  {.task = 1, .step = 2, .act = {SAYS_REFUSED, .takes = 3000}}},
        .beats = {{.what = "the child is behind its pivot", .until = child_at_work}},
        .end = TASK_ERROR,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
        .child_fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
        .expect = stood_when_asked,
    },
    {
        .name = "paused_before_child_begins",
        .sentence = "a task is paused when it has just started a child, which is paused when it"
                    " is there, until the task goes on",
        .flow = ROOT,
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 2, .step = 1, .act = {SAYS_DONE, .takes = 900}},
                  {.task = 2, .step = 0, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "a child was started", .until = child_started, .then = wants_pause},
                  {.what = "the child is paused", .until = child_paused, .then = node_crashes},
                  {.what = "a while has passed", .after_ms = 3000, .then = wants_resume}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
    },
    {.name = NULL},
};
