/* Scenes of what an undo is sent as its cause: the first failure, whatever happened in between.
 * The table of scenes at the end says which conditions and acts follow each other (scene.h);
 * check_cause.c has the rules. */

#include "sim/scene.h"
#include "sim/world.h"

static bool waits_for_its_undo(void)
{
    const struct seen *s = &the_task()->seen;

    return s->direction == DIRECTION_UNDO && the_step(0)->state == STEP_COMPLETED;
}

static void all_nodes_crash(void)
{
    for (uint32_t i = 0; i < nodes.names; i++)
        if (nodes.list[i].up)
            node_crash(&nodes.list[i], "for the scene");
}

static void who_undoes_comes(void)
{
    agents_come(1);
}

static void owner_crashes(void)
{
    struct node *n = the_owner();

    if (n)
        node_crash(n, "for the scene");
}

static bool undo_begun(void)
{
    return begun(0, DIRECTION_UNDO, 1);
}

static bool in_error(void)
{
    return the_task()->seen.state == TASK_ERROR;
}

static void wants_retry(void)
{
    people_want(the_task(), ASK_RETRY, -1, ANY_NODE);
}

static void wants_undo(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

static bool first_is_done(void)
{
    return the_step(0)->state == STEP_COMPLETED;
}

static void told(int step)
{
    scene_must(the_task()->told_why[0] == step + 2, "the first undo is told the first failure");
}

static void told_of_the_second(void)
{
    told(1);
}

static void told_of_the_third(void)
{
    told(2);
}

static void told_of_none(void)
{
    told(-1);
}

/* In sequence; another service undoes them. */
#define UNDOABLE(before_it)                                                                  \
    {                                                                                        \
        .before = (before_it), .undo = UNDO_CALL, .undo_service = 1, .complete_by_ms = 5000, \
        .undo_complete_by_ms = 5000, .undo_retry = {                                         \
            .attempts = 3                                                                    \
        }                                                                                    \
    }

const struct scene scenes_of_causes[] = {
    {
        .name = "why_and_crash",
        .sentence = "all nodes are killed between a failure and the undo that is told of it",
        .nodes = 2,
        .absent = BIT(1),
        .flow = {.step_count = 2, .steps = {UNDOABLE(0), {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "it goes back", .until = waits_for_its_undo, .then = all_nodes_crash},
                  {.what = "who undoes is there", .after_ms = 2000, .then = who_undoes_comes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
        .expect = told_of_the_second,
    },
    {
        .name = "why_and_taken_over",
        .sentence = "the owner is killed while an undo is at work, whose next try is the same",
        .nodes = 2,
        .flow = {.step_count = 2, .steps = {UNDOABLE(0), {.before = BIT(0), .undo = UNDO_NONE}}},
        .parts = {{.step = 1, .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 0,
                   .attempt = 1,
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_AGAIN, .takes = 1500}}},
        .beats = {{.what = "the undo is at work", .until = undo_begun, .then = owner_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/F?T?C", UNDONE}, {STEP_FAILED, "F", NOTHING}},
        .expect = told_of_the_second,
    },
    {
        .name = "why_after_a_failed_undo",
        .sentence = "an undo fails for good and is tried again by a person: the next one is told"
                    " the first failure all the same",
        .flow = {.step_count = 3,
                 .steps = {UNDOABLE(0), UNDOABLE(BIT(0)), {.before = BIT(1), .undo = UNDO_NONE}}},
        .parts = {{.step = 2, .act = {SAYS_REFUSED, .takes = 50}},
                  {.step = 1,
                   .attempt = 1,
                   .direction = DIRECTION_UNDO,
                   .act = {SAYS_REFUSED, .takes = 50}}},
        .beats = {{.what = "an undo failed", .until = in_error, .then = wants_retry}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE},
                  {STEP_UNDONE, "C/FC", UNDONE},
                  {STEP_FAILED, "F", NOTHING}},
        .expect = told_of_the_third,
    },
    {
        .name = "why_a_person_wants_it",
        .sentence = "a person undoes a task, and its nodes are killed before the undo begins",
        .nodes = 2,
        .absent = BIT(1) | BIT(2),
        .flow = {.step_count = 2,
                 .steps = {UNDOABLE(0), {.before = BIT(0), .undo = UNDO_NONE, .service = 2}}},
        .beats = {{.what = "the first step is done", .until = first_is_done, .then = wants_undo},
                  {.what = "it goes back", .until = waits_for_its_undo, .then = all_nodes_crash},
                  {.what = "who undoes is there", .after_ms = 2000, .then = who_undoes_comes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_WAITING, "", NOTHING}},
        .expect = told_of_none,
    },
    {.name = NULL},
};
