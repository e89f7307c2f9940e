/* Scenes of tasks whose steps are so many, and outputs so long, that steps are stored outside the
 * document (store/codec/groups.h). The table of scenes at the end says which conditions and acts
 * follow each other (scene.h). */

#include "sim/scene.h"
#include "sim/world.h"

enum { STEPS = FLOW_STEPS_MAX };

static uint32_t grouped_steps(void)
{
    const struct seen *s = &the_task()->seen;
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->step_count; i++)
        count += s->steps[i].grouped;
    return count;
}

static bool half_are_done(void)
{
    return the_step(STEPS / 2)->state == STEP_RUNNING && grouped_steps() > STEPS / 4;
}

static bool goes_back(void)
{
    return the_step(STEPS / 2)->state == STEP_UNDOING && grouped_steps() > 0;
}

static bool waits_grouped(void)
{
    return the_step(STEPS - 1)->state == STEP_RUNNING && grouped_steps() > STEPS / 2;
}

static void owner_crashes(void)
{
    struct node *n = the_owner();

    if (n)
        node_crash(n, "for the scene");
}

static void first_is_as_it_was(void)
{
    scene_must(the_step(0)->attempt_count == 1, "what had left the document is whole");
}

/* In sequence; all but the last can be undone. */
/* clang-format off */
#define STEP(before_it, how) \
    {.before = (before_it), .undo = (how), .complete_by_ms = 20000, .retry = {.attempts = 3}, \
     .undo_complete_by_ms = 20000, .undo_retry = {.attempts = 3}}
#define AFTER(i) STEP(BIT(i), UNDO_CALL)
#define SEQUENCE \
    {STEP(0, UNDO_CALL), AFTER(0), AFTER(1), AFTER(2), AFTER(3), AFTER(4), AFTER(5), AFTER(6), \
     AFTER(7), AFTER(8), AFTER(9), STEP(BIT(10), UNDO_NONE)}
/* clang-format on */

const struct scene scenes_of_groups[] = {
    {
        .name = "long_and_crash",
        .sentence =
            "of a long task a part has left its document when its node is killed: it goes on",
        .nodes = 2,
        .flow = {.step_count = STEPS, .steps = SEQUENCE},
        .beats = {{.what = "half of it is done", .until = half_are_done, .then = owner_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = first_is_as_it_was,
    },
    {
        .name = "long_and_undone",
        .sentence =
            "steps that had left the document are undone, and their node is killed meanwhile",
        .nodes = 2,
        .flow = {.step_count = STEPS, .steps = SEQUENCE},
        .parts = {{.step = STEPS - 1, .act = {SAYS_REFUSED, .takes = 10}}},
        .beats = {{.what = "half of it is done", .until = half_are_done},
                  {.what = "it goes back", .until = goes_back, .then = owner_crashes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {
        .name = "long_and_overdue",
        .sentence =
            "the supervisor sees that a step is overdue whose predecessors left the document",
        .flow = {.step_count = STEPS, .steps = SEQUENCE},
        .parts = {{.step = STEPS - 1,
                   .attempt = 1,
                   .act = {SAYS_NOTHING, .takes = 100, .keeps = true, .dies = true}}},
        .beats = {{.what = "the last one is at work", .until = waits_grouped}},
        .end = TASK_PROCESSED,
        .fates = {[STEPS - 1] = {STEP_COMPLETED, "TN*C", STANDS}},
        .expect = first_is_as_it_was,
    },
    {.name = NULL},
};
