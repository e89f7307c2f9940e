/* Scenes of agents that are busy, absent, late, or not started yet. Each function is a condition
 * or an act of one beat; the table of scenes at the end says which follow each other (scene.h). */

#include <stdio.h>

#include "base/when.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

static void nothing_failed(void)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        scene_must(subjects.list[i].seen.failure_count == 0, "nothing counts as a failure");
}

/* ---- queues ---- */

static bool has_not_begun(const struct seen *s)
{
    return s->steps[0].attempt == 0;
}

static bool long_queue(void)
{
    return count_tasks(has_not_begun) >= 8;
}

static bool still_a_queue(void)
{
    return count_tasks(has_not_begun) >= 4;
}

static bool is_pending(const struct seen *s)
{
    return s->state == TASK_PENDING;
}

static bool many_wait_outside(void)
{
    return nodes_are_narrow() && count_tasks(is_pending) >= 3;
}

static bool nobody_waits_outside(void)
{
    return count_tasks(is_pending) == 0 && count_tasks(has_not_begun) == 0;
}

static bool agents_wait(void)
{
    return wire_parked(&nodes.list[0]) >= SERVICES_MAX;
}

static bool is_owned(const struct seen *s)
{
    return s->locked;
}

/* The limit of its first claim; it claims no more before these have ended. */
static bool few_are_owned(void)
{
    return count_tasks(is_owned) <= 8;
}

/* ---- messages ---- */

static void answers_slow_down(void)
{
    weather.answer_slow = 1000;
    submit_all();
}

static bool request_came_too_late(void)
{
    return met(COVER_ANSWER_TOO_LATE);
}

static void answers_are_quick(void)
{
    weather.answer_slow = 0;
}

static bool first_begun(void)
{
    return begun(0, DIRECTION_FORWARD, 1);
}

static void answers_get_lost(void)
{
    weather.answer_lost = 1000;
}

static bool result_repeated(void)
{
    return met(COVER_REPEATED);
}

static void answers_arrive(void)
{
    weather.answer_lost = 0;
}

/* ---- agents that go and come ---- */

static uint32_t first_agent_calls(void)
{
    return wire_calls_of(&nodes.list[0], SLICE("a0-1.0"));
}

static bool first_agent_is_between_calls(void)
{
    return first_agent_calls() == 0;
}

static bool first_agent_has_just_called(void)
{
    return first_agent_calls() > 0;
}

static void dies_and_is_asked(void)
{
    agents_die(0);
    submit_all();
}

static bool gone_before_work(void)
{
    return met(COVER_GONE_BEFORE_WORK);
}

static bool silent_after_effect(void)
{
    return the_task()->ledger[0].happened_at != 0 && is_open(0, DIRECTION_FORWARD, 1);
}

static void first_agent_dies(void)
{
    agents_die(0);
}

static bool waits_for_both(void)
{
    return slice_is(SLICE(",a0,a1"), the_task()->seen.waiting_for);
}

static bool second_is_done(void)
{
    return the_step(1)->state == STEP_COMPLETED && the_step(0)->state == STEP_WAITING;
}

static void second_agent_comes(void)
{
    agents_come(1);
}

/* While the compensation of the other branch waits for an absent agent. */
static bool second_is_undone(void)
{
    return the_step(1)->state == STEP_UNDONE && the_step(0)->state != STEP_UNDONE;
}

static bool last_begun(void)
{
    return begun(2, DIRECTION_FORWARD, 1);
}

static void node_crashes(void)
{
    node_crash(node_any(), "for the scene");
}

static void first_agent_leaves(void)
{
    agents_leave(0);
}

static bool waits_for_time_too(void)
{
    return slice_is(SLICE(",a0,time"), the_task()->seen.waiting_for);
}

static void first_agent_comes(void)
{
    agents_come(0);
}

/* An agent that comes back under its name gets its attempt again. */
static void only_strangers_try_again(void)
{
    const struct seen_step *s = the_step(0);
    const struct seen_attempt *last = &s->attempts[s->attempt_count - 1];

    for (uint32_t i = 0; i < s->attempt_count; i++)
        scene_must(s->attempts[i].outcome != OUTCOME_TIMED_OUT
                       || strcmp(s->attempts[i].instance, last->instance) != 0,
                   "an agent that comes back is given again what it had");
}

/* ---- sister_reset ---- */

static bool sister_keeps_its_owner(void)
{
    return the_task()->seen.locked || !is_open(1, DIRECTION_FORWARD, 1);
}

static bool reset_while_sister_runs(void)
{
    return begun(0, DIRECTION_FORWARD, 2) && is_open(1, DIRECTION_FORWARD, 1)
           && the_task()->seen.state == TASK_PROCESSING;
}

const struct scene scenes_of_agents[] = {
    {
        .name = "busy_agent",
        .sentence = "a queue before a busy agent is longer than any deadline: no deadline runs"
                    " in it",
        .tasks = 12,
        .places = 1,
        .flow = {.step_count = 1},
        .parts = {{.act = {SAYS_DONE, .takes = 700}}},
        .beats = {{.what = "a long queue", .until = long_queue},
                  {.what = "a queue after several times the deadline",
                   .until = still_a_queue,
                   .after_ms = 3000}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "full_node",
        .sentence = "a queue fills the memory of a node: the others wait in the store, and all"
                    " come to their end",
        .tasks = 20,
        .places = 4,
        .narrow = true,
        .unasked = true,
        .flow = {.step_count = 2, .steps = {{0}, {.before = BIT(0), .service = 1}}},
        .parts = {{.act = {SAYS_DONE, .takes = 400}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 400}}},
        .beats = {{.what = "agents wait for work", .until = agents_wait, .then = submit_all},
                  {.what = "many wait in the store", .until = many_wait_outside},
                  {.what = "nobody waits any more", .until = nobody_waits_outside}},
        .always = {.what = "what a node owns is bounded", .until = few_are_owned},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "request_too_late",
        .sentence = "a request reaches its agent after its complete-by: the agent lets it lie",
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 50, .retry = {.attempts = 40, .wait_ms = 500}}}},
        .beats = {{.what = "answers are slow", .then = answers_slow_down},
                  {.what = "a request came too late",
                   .until = request_came_too_late,
                   .then = answers_are_quick}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TT*C", STANDS}},
    },
    {
        .name = "gone_before_work",
        .sentence = "an agent is stopped between its poll and its work",
        .unasked = true,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 120000, .retry = {.attempts = 2}},
                           {.before = BIT(0), .complete_by_ms = 120000, .retry = {.attempts = 2}}}},
        .beats = {{.what = "an agent is between two polls",
                   .until = first_agent_is_between_calls,
                   .after_ms = 500},
                  {.what = "it has just asked for work",
                   .until = first_agent_has_just_called,
                   .then = dies_and_is_asked},
                  {.what = "its work finds it gone", .until = gone_before_work}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*T?C", STANDS}, {STEP_COMPLETED, "N*T?C", STANDS}},
        .expect = only_strangers_try_again,
    },
    {
        .name = "died_after_effect",
        .sentence = "an agent dies after its effect and before it said so: the effect is not"
                    " repeated",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 120000, .retry = {.attempts = 2}},
                           {.before = BIT(0), .complete_by_ms = 120000, .retry = {.attempts = 2}}}},
        .parts = {{.act = {SAYS_DONE, .takes = 5000}}},
        .beats = {{.what = "it took effect",
                   .until = silent_after_effect,
                   .then = first_agent_dies}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "T?C", STANDS}, {STEP_COMPLETED, "N*T?C", STANDS}},
        .expect = only_strangers_try_again,
    },
    {
        .name = "sister_reset",
        .sentence = "a branch is reset by the supervisor while its sister runs, which is left"
                    " alone",
        .flow = {.step_count = 3,
                 .steps = {{.complete_by_ms = 500, .retry = {.attempts = 2}},
                           {.service = 1, .complete_by_ms = 20000},
                           {.before = BIT(0) | BIT(1), .service = 2}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 100}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 6000}}},
        .beats = {{.what = "one was reset, the other runs", .until = reset_while_sister_runs}},
        .always = {.what = "what still runs keeps its owner", .until = sister_keeps_its_owner},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
    },
    {
        .name = "two_agents_ready",
        .sentence = "a task waits for two agents at once, and they come one after the other",
        .absent = BIT(0) | BIT(1),
        .flow = {.step_count = 3,
                 .steps = {{0}, {.service = 1}, {.before = BIT(0) | BIT(1), .service = 2}}},
        .beats = {{.what = "it waits for both",
                   .until = waits_for_both,
                   .then = second_agent_comes},
                  {.what = "it is served before the other comes",
                   .until = second_is_done,
                   .then = first_agent_comes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "two_agents_ready_after_a_crash",
        .sentence = "a task waits for two agents, its node is started again, and one of them comes",
        .absent = BIT(0) | BIT(1),
        .flow = {.step_count = 3,
                 .steps = {{0}, {.service = 1}, {.before = BIT(0) | BIT(1), .service = 2}}},
        .beats = {{.what = "it waits for both", .until = waits_for_both, .then = node_crashes},
                  {.what = "one comes", .after_ms = 8000, .then = second_agent_comes},
                  {.what = "it is served before the other comes",
                   .until = second_is_done,
                   .then = first_agent_comes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
    },
    {
        .name = "branch_undone_beside_absent",
        .sentence = "a branch is undone while the agent of the other one's compensation is away",
        .flow = {.step_count = 3,
                 .steps = {{0},
                           {.service = 1, .undo_service = 1},
                           {.before = BIT(0) | BIT(1), .service = 2, .complete_by_ms = 60000}}},
        .parts = {{.step = 2, .act = {SAYS_REFUSED, .takes = 3000}}},
        .beats = {{.what = "the last step is at work",
                   .until = last_begun,
                   .then = first_agent_leaves},
                  {.what = "the other branch is undone",
                   .until = second_is_undone,
                   .then = first_agent_comes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/N*C", UNDONE},
                  {STEP_UNDONE, "C/C", UNDONE},
                  {STEP_FAILED, "F", NOTHING}},
    },
    {
        .name = "retry_beside_absent",
        .sentence = "a step has its next try in time while the agent of another is away",
        .absent = BIT(0),
        .flow = {.step_count = 3,
                 .steps = {{0},
                           {.service = 1, .retry = {.attempts = 2, .wait_ms = 60000}},
                           {.before = BIT(0) | BIT(1), .service = 2}}},
        .parts = {{.step = 1, .attempt = 1, .act = {SAYS_AGAIN, .takes = 10}}},
        .beats = {{.what = "it waits for a moment, too", .until = waits_for_time_too},
                  {.what = "it was tried again",
                   .until = second_is_done,
                   .then = first_agent_comes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "FC", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
    },
    {
        .name = "repeated_result",
        .sentence = "a result is handed in again after its answer was lost",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 60000}, {.before = BIT(0), .complete_by_ms = 60000}}},
        .parts = {{.act = {SAYS_DONE, .takes = 50}}},
        .beats = {{.what = "an agent is at work", .until = first_begun, .then = answers_get_lost},
                  {.what = "its result was repeated",
                   .until = result_repeated,
                   .then = answers_arrive}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {.name = NULL},
};
