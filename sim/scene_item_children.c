/* Scenes of steps with for_each whose items start children: children that stop in error, or end
 * while their root turns back, lists that fail in part, and what goes wrong elsewhere. The table of
 * scenes at the end says which conditions and acts follow each other (scene.h).
 *
 * durable-workflow#347: of children that run in parallel all fail, and the undo of their parent
 * never runs. durable-workflow#493: children end at one moment, and their parent is never resumed.
 * saga-lara-flow#22: a child that has completed takes no part in the undo of its parent; nor do the
 * handlers of a call activity in Camunda, which invokes one handler for all items of a list, once
 * all have completed. saga-lara-flow#48: behind a child whose failure was tolerated, what was done
 * later is left out of the undo. saga-lara-flow#77: the wish that children stop is lost with the
 * process that had it. Step Functions' Map: one item that fails aborts the others, and what they
 * did stays. Here everything that took effect is undone, each child once, the last one first. */

#include "base/when.h"
#include "sim/items.h"
#include "sim/scene.h"
#include "sim/world.h"

enum { FOUR = 4 };

/* The latest child of an item of that step of the task; NULL: none was started. */
static const struct subject *child_of_item(uint32_t step, uint32_t item)
{
    for (uint32_t i = subjects.count; i-- > 1;)
        if (subjects.list[i].parent == the_task()
            && subjects.list[i].parent_unit == UNIT_OF(step, item))
            return &subjects.list[i];
    return NULL;
}

static bool child_is(uint32_t item, enum task_state state)
{
    const struct subject *c = child_of_item(1, item);

    return c && c->seen.revision != 0 && c->seen.state == state;
}

static bool child_has_begun(uint32_t item)
{
    const struct subject *c = child_of_item(1, item);

    return c && c->ledger[1].begun[DIRECTION_FORWARD] > 0;
}

static enum child_state known_of(uint32_t item)
{
    return seen_unit(the_task(), UNIT_OF(1, item))->child.state;
}

static uint32_t count_children(enum task_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FOUR; i++)
        count += child_is(i, state);
    return count;
}

/* ---- conditions and acts ---- */

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

static void skips_the_first(void)
{
    people_want(the_task(), ASK_SKIP, UNIT_OF(1, 0), ANY_NODE);
}

static void retries_the_first_child(void)
{
    people_want((struct subject *)(uintptr_t)child_of_item(1, 0), ASK_RETRY, -1, ANY_NODE);
}

static void retries_it_and_skips(void)
{
    retries_the_first_child();
    skips_the_first();
}

static void retries_the_step(void)
{
    people_want(the_task(), ASK_RETRY, 1, ANY_NODE);
}

static bool first_has_begun(void)
{
    return child_has_begun(0);
}

static bool second_has_begun(void)
{
    return child_has_begun(1);
}

static bool third_has_begun(void)
{
    return child_has_begun(2);
}

static bool first_is_processed(void)
{
    return child_is(0, TASK_PROCESSED);
}

static bool first_is_in_error(void)
{
    return child_is(0, TASK_ERROR);
}

static bool first_is_closed(void)
{
    const struct subject *c = child_of_item(1, 0);

    return c && c->seen.closed_at != 0;
}

static bool all_are_processed(void)
{
    return count_children(TASK_PROCESSED) == FOUR;
}

static bool root_is_in_error(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static bool root_waits_for_the_first_alone(void)
{
    return root_is_in_error() && known_of(0) == CHILD_ERROR
           && count_children(TASK_PROCESSED) == FOUR - 1;
}

static bool step_failed(void)
{
    return the_step(1)->state == STEP_FAILED && root_is_in_error();
}

static bool last_step_begun(void)
{
    return begun(2, DIRECTION_FORWARD, 1);
}

/* What is at work, or stopped in error: the second of two places is free for the others. */
static bool no_more_than_two(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FOUR; i++) {
        const struct subject *c = child_of_item(1, i);
        count +=
            c && (c->seen.revision == 0 || c->seen.state == TASK_ERROR || !seen_is_end(&c->seen));
    }
    return count <= 2;
}

/* ---- what is expected ---- */

/* One child for each item, of which each step took effect once, and was undone once. */
static void all_went_back(void)
{
    int64_t last = 0;

    scene_must(subjects.count == 1 + FOUR, "each item has one child");
    for (uint32_t i = FOUR; i-- > 0;) {
        const struct subject *c = child_of_item(1, i);
        scene_must(child_is(i, TASK_COMPENSATED), "each child is undone");
        if (!c)
            return;
        scene_must(c->ledger[1].effects == 1 && c->ledger[1].undos == 1, "each effect once");
        scene_must(c->ledger[1].undone_at >= last || the_task()->flow->steps[1].concurrency > 1,
                   "later items first");
        last = c->ledger[0].undone_at;
    }
}

static bool is_gone(const struct subject *c)
{
    for (uint32_t i = 0; i < c->flow->step_count; i++)
        if (c->ledger[i].effects != c->ledger[i].undos)
            return false;
    return true;
}

static void nothing_is_left(void)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        scene_must(is_gone(&subjects.list[i]), "what took effect is undone, and nothing else");
}

/* Their agent takes a little more or less time, so the last ones may be told to stop before. */
static void several_failed(void)
{
    uint32_t count = 0;

    nothing_is_left();
    for (uint32_t i = 0; i < FOUR; i++) {
        const struct subject *c = child_of_item(1, i);
        count += c && c->seen.steps[1].state == STEP_FAILED;
    }
    scene_must(count >= 2, "several fail");
}

static void nothing_is_left_of_few(void)
{
    nothing_is_left();
    scene_must(!child_of_item(1, FOUR - 1), "no child was started after the failure");
}

static void stopped_at_once(void)
{
    nothing_is_left_of_few();
    scene_must(met(COVER_ITEM_CHILD_STOPPED), "the others were told to stop");
}

static void first_kept_its_place(void)
{
    scene_must(met(COVER_ITEM_CHILD_BLOCKS), "others waited for its place");
    scene_must(count_children(TASK_PROCESSED) == FOUR, "all are done");
}

static void one_child_each(void)
{
    scene_must(subjects.count == 1 + FOUR, "each item has one child");
    scene_must(count_children(TASK_PROCESSED) == FOUR, "all are done");
}

static void all_but_the_second_are_done(void)
{
    scene_must(count_children(TASK_PROCESSED) == FOUR - 1, "the others are done");
    scene_must(child_is(1, TASK_COMPENSATED), "one is undone");
}

static void second_has_two(void)
{
    const struct subject *second = child_of_item(1, 1);

    scene_must(subjects.count == 2 + FOUR, "one item has another child");
    scene_must(count_children(TASK_PROCESSED) == FOUR, "all are done at last");
    scene_must(second && second->parent_number == 2, "and is the second one");
}

/* clang-format off */
#define LIST(places)                                                                             \
    .is_each = true, .is_child = true, .items_fixed = FOUR, .items_max = FOUR,                   \
    .concurrency = (places)
/* clang-format on */

/* A step, a list of children, and another step. */
#define ROOT(places, ...)                                                      \
    {                                                                          \
        .step_count = 3, .steps = {                                            \
            {.undo = UNDO_CALL, .undo_retry = {.attempts = 3}},                \
            {LIST(places), .undo = UNDO_CHILD, .before = BIT(0), __VA_ARGS__}, \
            {.undo = UNDO_CALL,                                                \
             .undo_retry = {.attempts = 5},                                    \
             .before = BIT(1),                                                 \
             .complete_by_ms = 10 * MS_PER_S},                                 \
        }                                                                      \
    }

/* Two steps: the failure of the first has it undone. */
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

/* The child of the item with that number, if one place is free at a time: tasks are counted. */
#define OF_CHILD(number) .task = 2 + (number)

const struct scene scenes_of_item_children[] = {
    {
        .name = "children_fail_at_once",
        .sentence = "all children of a list fail at one moment: the task is undone"
                    " (durable-workflow#347)",
        .places = 20,
        .roomy = true,
        .flow = ROOT(FOUR, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {.step = 1, .direction = DIRECTION_FORWARD, .act = {SAYS_REFUSED, .takes = 500}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .child_fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .expect = several_failed,
    },
    {
        .name = "children_end_at_once",
        .sentence = "all children of a list end at one moment, at several nodes: their parent goes"
                    " on (durable-workflow#493)",
        .nodes = 3,
        .places = 20,
        .scattered = true,
        .flow = ROOT(FOUR, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 500}}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
        .expect = one_child_each,
    },
    {
        .name = "completed_children_go_back",
        .sentence = "a step behind a list of children fails: each child is undone once, the last"
                    " one first (saga-lara-flow#22, Camunda's call activities)",
        .flow = ROOT(1, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .step = 2, .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .expect = all_went_back,
    },
    {
        .name = "undone_behind_a_tolerated_child",
        .sentence = "a child fails, which is tolerated, and a later step fails: all that was done"
                    " before and after the child is undone (saga-lara-flow#48)",
        .flow = ROOT(1, .items_go_on = true),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{OF_CHILD(1), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {.task = 1, .step = 2, .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left,
    },
    {
        .name = "stop_survives_a_crash",
        .sentence = "a task is undone while its children run, and its node dies: each of them"
                    " stops (saga-lara-flow#77)",
        .places = 20,
        .flow = ROOT(FOUR, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 3000}}},
        .beats = {{.what = "a child is at work",
                   .until = second_has_begun,
                   .then = wants_undo_and_crashes},
                  {.what = "a moment has passed", .after_ms = 300, .then = node_crashes}},
        .end = TASK_COMPENSATED,
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left,
    },
    {
        .name = "child_fails_others_stop",
        .sentence = "a child fails while others run: these stop at once and are undone, and no"
                    " other is started (Step Functions' Map leaves what they did)",
        .places = 20,
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {OF_CHILD(0), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 500}},
                  {.step = 1, .direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 4000}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = stopped_at_once,
    },
    {
        .name = "child_in_error_others_stop",
        .sentence = "a child is in error when that of another item fails: it is told to stop, and"
                    " is undone, and so is the task",
        .places = 20,
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {OF_CHILD(0), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {OF_CHILD(1), .step = 0, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 3000}}},
        .beats = {{.what = "the first child is in error", .until = first_is_in_error}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = stopped_at_once,
    },
    {
        .name = "child_in_error_step_holds",
        .sentence = "a child is in error when that of another item fails, and the step only holds:"
                    " it waits for the child; once that is helped the step fails, and a retry"
                    " starts another child for the item that failed",
        .places = 20,
        .flow = ROOT(2, .on_failure = ON_FAILURE_HOLD),
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{.task = 1, .act = {SAYS_DONE, .takes = 20}},
                  {OF_CHILD(0), .step = 1, .attempt = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {OF_CHILD(1), .step = 0, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 2000}}},
        .beats = {{.what = "the first child is in error", .until = first_is_in_error},
                  {.what = "the task is in error",
                   .until = root_is_in_error,
                   .then = retries_the_first_child},
                  {.what = "the step failed", .until = step_failed, .then = retries_the_step}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .children_differ = true,
        .expect = second_has_two,
    },
    {
        .name = "child_in_error_keeps_its_place",
        .sentence = "a child of two at a time is in error and keeps its place: the others run one"
                    " by one, the task stops, and goes on when the child is helped",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{OF_CHILD(0), .step = 1, .attempt = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 600}}},
        .always = {.what = "at most two are at work", .until = no_more_than_two},
        .beats = {{.what = "only one is not done",
                   .until = root_waits_for_the_first_alone,
                   .then = retries_the_first_child}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .child_end = TASK_PROCESSED,
        .expect = first_kept_its_place,
    },
    {
        .name = "child_ends_as_root_turns",
        .sentence = "a task is undone when a child of an item has ended, before it hears of that",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{OF_CHILD(0), .step = 1, .act = {SAYS_DONE, .takes = 50}},
                  {.task = 1, .step = 0, .act = {SAYS_DONE, .takes = 50}},
                  {.step = 1, .direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "a child has ended", .until = first_is_processed, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left,
    },
    {
        .name = "last_child_ends_as_root_turns",
        .sentence = "the same when all children have ended, and the node dies before their parent"
                    " hears of the last one",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "all have ended",
                   .until = all_are_processed,
                   .then = wants_undo_and_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/L?T?L?T?C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = all_went_back,
    },
    {
        .name = "crash_as_children_end",
        .sentence = "the node dies when a child has ended, and its parent has not heard of that;"
                    " each item has one child all the same",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .beats = {{.what = "a child has ended", .until = first_is_processed, .then = node_crashes},
                  {.what = "another one is at work",
                   .until = third_has_begun,
                   .then = node_crashes},
                  {.what = "all have ended", .until = all_are_processed, .then = node_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "L?T?L?T?C", STANDS}},
        .child_end = TASK_PROCESSED,
        .expect = one_child_each,
    },
    {
        .name = "children_go_on",
        .sentence = "the child of an item fails, and the others are done all the same",
        .flow = ROOT(2, .items_go_on = true),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{OF_CHILD(1), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .children_differ = true,
        .expect = all_but_the_second_are_done,
    },
    {
        .name = "children_tolerated",
        .sentence = "as many children fail as are tolerated: the step completes",
        .flow = ROOT(1, .tolerated = 2500),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{OF_CHILD(1), .step = 0, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "", NOTHING},
                  {STEP_COMPLETED, "C", STANDS}},
        .children_differ = true,
        .expect = all_but_the_second_are_done,
    },
    {
        .name = "one_child_too_many",
        .sentence = "one child more fails than is tolerated: what the others did is undone, and no"
                    " other is started",
        .flow = ROOT(1, .tolerated = 2500),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{OF_CHILD(0), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {OF_CHILD(2), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left_of_few,
    },
    {
        .name = "skipped_item_is_undone",
        .sentence = "an item whose child is in error is skipped, which closes the child; when the"
                    " task is undone later, the child is reopened and undone",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{OF_CHILD(0), .step = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 3000}}},
        .beats = {{.what = "the task waits for the child",
                   .until = root_waits_for_the_first_alone,
                   .then = skips_the_first},
                  {.what = "the next step is at work", .until = last_step_begun},
                  {.what = "the child is closed", .until = first_is_closed, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "", NOTHING}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left,
    },
    {
        .name = "skipped_item_goes_on",
        .sentence = "an item whose child is in error is skipped when somebody has just helped the"
                    " child, which goes on, and ends; when the task is undone later, the child is"
                    " undone",
        .flow = ROOT(2, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_HOLD),
        .parts = {{OF_CHILD(0), .step = 1, .attempt = 1, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_REFUSED, .takes = 50}},
                  {OF_CHILD(0), .step = 1, .attempt = 2, .direction = DIRECTION_FORWARD,
                   .act = {SAYS_DONE, .takes = 800}},
                  {.task = 1, .step = 2, .act = {SAYS_DONE, .takes = 3000}}},
        .beats = {{.what = "the task waits for the child",
                   .until = root_waits_for_the_first_alone,
                   .then = retries_it_and_skips},
                  {.what = "all children have ended", .until = all_are_processed},
                  {.what = "the next step is at work",
                   .after_ms = 1000,
                   .until = last_step_begun,
                   .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left,
    },
    {
        .name = "undone_as_first_begins",
        .sentence = "a task is undone when the first of its children is at work",
        .flow = ROOT(1, .items_go_on = false),
        .child = CHILD_WITH(ON_FAILURE_UNDO),
        .parts = {{.step = 1, .direction = DIRECTION_FORWARD, .act = {SAYS_DONE, .takes = 800}}},
        .beats = {{.what = "the first is at work", .until = first_has_begun, .then = wants_undo}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
        .child_end = TASK_COMPENSATED,
        .expect = nothing_is_left_of_few,
    },
    {.name = NULL},
};
