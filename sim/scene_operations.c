/* Scenes of operations on many tasks, and of faults of the nodes that run them. The table of
 * scenes at the end says which conditions and acts follow each other (scene.h); operations.c
 * draws operations at random. */

#include "base/when.h"
#include "sim/operations.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { TASKS = 12, RATE = 4 };

static struct node *old; /* the node that ran it first */
static uint64_t counted; /* when it was stopped */

static bool is_in_error(const struct seen *s)
{
    return s->state == TASK_ERROR;
}

static bool all_in_error(void)
{
    return count_tasks(is_in_error) == TASKS;
}

static void all_are_to_be_retried(void)
{
    operation_wanted(ASK_RETRY, 1U << TASK_ERROR, RATE);
}

static bool some_were_done(void)
{
    return the_operation().done > 0;
}

static bool it_is_over(void)
{
    return the_operation().over;
}

static void each_was_done_once(void)
{
    struct operation_told o = the_operation();

    scene_must(o.matched == TASKS && o.done == TASKS, "each is counted as done, once");
    scene_must(o.refused == 0 && o.failed == 0 && o.gone == 0, "nothing else came of any");
}

static struct node *who_works(void)
{
    struct runner_stats st;

    NODES_FOREACH (n) {
        if (!node_is_awake(n) || !n->runner)
            continue;
        runner_stats(n->runner, &st);
        if (st.running > 0)
            return n;
    }
    return NULL;
}

static void who_works_crashes(void)
{
    struct node *n = who_works();

    if (n)
        node_crash(n, "for the scene");
}

/* ---- another node ---- */

static bool some_were_done_by_somebody(void)
{
    return some_were_done() && who_works();
}

static void who_works_goes_away(void)
{
    old = who_works();
    old->last = true;
    node_crash(old, "for the scene");
}

static bool the_other_works(void)
{
    return who_works() && who_works() != old;
}

/* ---- stopped ---- */

static void it_is_stopped(void)
{
    operation_halt(true);
}

static bool it_stands_still(void)
{
    counted = the_operation().done;
    return the_operation().stopped && counted < TASKS;
}

static bool nothing_more_was_done(void)
{
    return the_operation().stopped && the_operation().done == counted;
}

static void it_goes_on(void)
{
    operation_halt(false);
}

/* ---- others change the same tasks ---- */

static void somebody_retries_all(void)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        people_want(&subjects.list[i], ASK_RETRY, -1, ANY_NODE);
}

static void only_its_own_are_counted(void)
{
    struct operation_told o = the_operation();

    scene_must(o.done < TASKS, "what somebody else did is not counted as done");
    scene_must(o.matched == o.done + o.refused + o.gone, "what matched is counted");
}

/* ---- the store refuses the changes ---- */

static void two_come(void)
{
    for (uint32_t i = 0; i < 2; i++)
        people_want(&subjects.list[i], ASK_SUBMIT, -1, ANY_NODE);
}

static bool is_in_work(const struct seen *s)
{
    return s->state == TASK_PROCESSING;
}

static bool is_running(const struct seen *s)
{
    return s->revision > 0 && seen_open(&s->steps[0]);
}

/* One has the only place, the other waits in memory behind it, for two seconds. */
static bool both_are_in_work(void)
{
    return count_tasks(is_in_work) == 2 && count_tasks(is_running) == 1;
}

static void they_are_cancelled_in_vain(void)
{
    weather.store_refuses = 1000; /* the last change of a batch: they are asked one by one */
    operation_wanted(ASK_CANCEL, 1U << TASK_PROCESSING, 1);
}

static void the_others_come(void)
{
    weather.store_refuses = 0;
    for (uint32_t i = 2; i < subjects.count; i++)
        people_want(&subjects.list[i], ASK_SUBMIT, -1, ANY_NODE);
}

static int64_t begin_of(uint32_t task)
{
    return subjects.list[task].seen.steps[0].attempts[0].started_at;
}

static void they_began_first(void)
{
    struct operation_told o = the_operation();

    scene_must(o.matched == 2 && o.failed == 2, "nothing came of what was asked");
    for (uint32_t i = 2; i < subjects.count; i++)
        scene_must(begin_of(i) > begin_of(0) && begin_of(i) > begin_of(1),
                   "who was asked in vain keeps his place in line");
}

/* A crash may lose the request of a begun attempt, which is then silent. */
#define FAILED_ONCE                                                                       \
    .tasks = TASKS, .operations = true,                                                   \
    .flow = {.step_count = 1,                                                             \
             .steps = {{.on_failure = ON_FAILURE_HOLD, .retry = {.attempts = 3}}}},       \
    .parts = {{.attempt = 1, .act = {SAYS_REFUSED, .takes = 50}}}, .end = TASK_PROCESSED, \
    .fates = {{STEP_COMPLETED, "FT*C", STANDS}}
#define BEGINS                                                                           \
    {                                                                                    \
        .what = "all are in error", .until = all_in_error, .then = all_are_to_be_retried \
    }
#define ENDS                                                 \
    {                                                        \
        .what = "the operation is over", .until = it_is_over \
    }

const struct scene scenes_of_operations[] = {
    {
        .name = "operation_over_crashes",
        .sentence = "the node crashes twice in the middle of an operation: each task is done and"
                    " counted once",
        FAILED_ONCE,
        .beats = {BEGINS,
                  {.what = "some were done", .until = some_were_done, .then = who_works_crashes},
                  {.what = "it works again", .until = some_were_done_by_somebody},
                  {.what = "a moment later", .after_ms = 15, .then = who_works_crashes},
                  ENDS},
        .expect = each_was_done_once,
    },
    {
        .name = "operation_taken_over",
        .sentence = "the node that works on an operation is gone for good: another one goes on"
                    " where it stood",
        .nodes = 2,
        FAILED_ONCE,
        .beats = {BEGINS,
                  {.what = "some were done",
                   .until = some_were_done_by_somebody,
                   .then = who_works_goes_away},
                  {.what = "the other one goes on", .until = the_other_works},
                  ENDS},
        .expect = each_was_done_once,
    },
    {
        .name = "operation_stopped",
        .sentence = "an operation is stopped in the middle: nothing more is done until it is to go"
                    " on",
        FAILED_ONCE,
        .beats = {BEGINS,
                  {.what = "some were done", .until = some_were_done, .then = it_is_stopped},
                  {.what = "it stands still", .until = it_stands_still, .after_ms = 10 * MS_PER_S},
                  {.what = "nothing more was done",
                   .until = nothing_more_was_done,
                   .after_ms = MS_PER_MIN,
                   .then = it_goes_on},
                  ENDS},
        .expect = each_was_done_once,
    },
    {
        .name = "operation_beside_people",
        .sentence = "somebody retries the tasks of an operation himself: only what the operation"
                    " did is counted as done",
        FAILED_ONCE,
        .beats = {BEGINS,
                  {.what = "some were done", .until = some_were_done, .then = somebody_retries_all},
                  ENDS},
        .expect = only_its_own_are_counted,
    },
    {
        .name = "operation_in_vain",
        .sentence = "the store takes nothing of what an operation asks for: its tasks keep their"
                    " place in line",
        .tasks = TASKS,
        .places = 1,
        .operations = true,
        .unasked = true,
        .flow = {.step_count = 1, .steps = {{.complete_by_ms = MS_PER_MIN}}},
        .parts = {{.act = {SAYS_DONE, .takes = 5 * MS_PER_S}}},
        .beats = {{.what = "tasks come", .then = two_come},
                  {.what = "both are in work",
                   .until = both_are_in_work,
                   .then = they_are_cancelled_in_vain},
                  {.what = "the operation is over", .until = it_is_over, .then = the_others_come}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = they_began_first,
    },
    {.name = NULL},
};
