/* Scenes of attempts that are silent for too long, and of those whose result comes from
 * elsewhere. The table of scenes at the end says which conditions and acts follow each other
 * (scene.h); long.c draws such attempts at random. */

#include <stdio.h>

#include "base/when.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

static bool first_begun(void)
{
    return begun(0, DIRECTION_FORWARD, 1);
}

static bool first_is_elsewhere(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return a && a->elsewhere;
}

static bool first_was_silent(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return a && a->silent;
}

static void owner_is_suspended(void)
{
    node_suspend(the_owner(), 20000);
}

static void owner_crashes(void)
{
    node_crash(the_owner(), "for the scene");
}

static void node_goes_away(void)
{
    nodes.list[0].last = true;
    node_crash(&nodes.list[0], "for the scene");
}

static bool node_is_away(void)
{
    return !nodes.list[0].used;
}

static void node_comes_back_behind(void)
{
    world.ahead -= between(2 * MS_PER_MIN, MS_PER_H);
    world.set_back = true;
    trace("the clock jumps, to %" PRId64 " ms ahead", world.ahead);
    nodes.list[0].last = false;
    nodes_boot();
}

static void operator_undoes(void)
{
    people_want(the_task(), ASK_UNDO, -1, ANY_NODE);
}

static void it_ended_long_before_its_complete_by(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    scene_must(a->silent && a->ended_at < a->complete_by - MS_PER_MIN, "silence is noticed soon");
}

static void nobody_was_silent(void)
{
    scene_must(the_task()->seen.failure_count == 0, "who is heard, or cannot be, is not silent");
}

static void the_first_ended_while_the_other_was_elsewhere(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    scene_must(a->ended_at < a->complete_by + MS_PER_MIN, "what is overdue is given up");
}

static bool both_are_elsewhere(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *b = the_attempt(1, DIRECTION_FORWARD, 1);

    return a && b && a->elsewhere && b->elsewhere;
}

static void first_is_submitted(void)
{
    people_want(the_task(), ASK_SUBMIT, -1, ANY_NODE);
}

static void the_others_are_submitted(void)
{
    for (uint32_t i = 1; i < subjects.count; i++)
        people_want(&subjects.list[i], ASK_SUBMIT, -1, ANY_NODE);
}

static bool memory_is_full(void)
{
    return nodes_are_narrow() && agents_at_work() > 0;
}

static void it_was_given_up_at_once(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    scene_must(a->ended_at < a->complete_by + 5 * MS_PER_S, "what is overdue needs no place");
}

static void it_took_until_complete_by(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);
    const struct seen_attempt *undo = the_attempt(0, DIRECTION_UNDO, 1);

    scene_must(a->silent && undo->started_at >= a->complete_by + 1000,
               "what is in doubt by its silence is undone after its complete-by");
}

const struct scene scenes_of_long[] = {
    {
        .name = "silent_agent",
        .sentence = "an agent that hangs sends no heartbeats: another try, long before complete-by",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN,
                            .heartbeat_ms = 2000,
                            .retry = {.attempts = 2}}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 100, .keeps = true, .mute = true}}},
        .beats = {{.what = "it was silent for too long", .until = first_was_silent}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}},
        .expect = it_ended_long_before_its_complete_by,
    },
    {
        .name = "silent_and_late",
        .sentence = "what was silent takes effect all the same: it is undone after its complete-by",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 20000, .heartbeat_ms = 500, .undo = UNDO_CALL}}},
        .parts = {{.attempt = 1,
                   .act = {SAYS_NOTHING, .takes = 9000, .keeps = true, .effect = true,
                           .mute = true}}},
        .beats = {{.what = "it was silent for too long", .until = first_was_silent}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "T/C", UNDONE}},
        .expect = it_took_until_complete_by,
    },
    {
        .name = "suspended_owner",
        .sentence = "the node that has the task is suspended: nobody was silent",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN, .heartbeat_ms = 1000}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 60000, .keeps = true}}},
        .beats = {{.what = "an agent is at work", .until = first_begun},
                  {.what = "the node hangs", .after_ms = 5000, .then = owner_is_suspended}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nobody_was_silent,
    },
    {
        .name = "silence_after_a_crash",
        .sentence = "after a crash heartbeats go on, and nobody is taken for silent",
        .nodes = 2,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN, .heartbeat_ms = 1000}}},
        .parts = {{.attempt = 1, .act = {SAYS_DONE, .takes = 60000, .keeps = true}}},
        .beats = {{.what = "an agent is at work", .until = first_begun},
                  {.what = "its node is killed", .after_ms = 3000, .then = owner_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nobody_was_silent,
    },
    {
        .name = "silence_and_clock_back",
        .sentence =
            "the clock is set back while the node restarts: who is silent ends all the same",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN,
                            .heartbeat_ms = 1000,
                            .retry = {.attempts = 2}}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 100, .keeps = true, .mute = true}}},
        .beats = {{.what = "an agent is at work", .until = first_begun, .then = node_goes_away},
                  {.what = "the node is down",
                   .until = node_is_away,
                   .after_ms = 100,
                   .then = node_comes_back_behind},
                  {.what = "it was silent for too long", .until = first_was_silent}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}},
        .expect = it_ended_long_before_its_complete_by,
    },
    {
        .name = "ended_elsewhere",
        .sentence = "an attempt goes elsewhere, its node crashes, and its token ends it",
        .nodes = 2,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN, .heartbeat_ms = 1000}}},
        .parts = {{.attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100, .comes = 2 * MS_PER_MIN}}},
        .beats = {{.what = "it is elsewhere", .until = first_is_elsewhere, .then = owner_crashes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nobody_was_silent,
    },
    {
        .name = "never_ended_elsewhere",
        .sentence = "nobody ends what is elsewhere: it times out, and another try succeeds",
        .flow = {.step_count = 1, .steps = {{.complete_by_ms = 30000, .retry = {.attempts = 2}}}},
        .parts = {{.attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}}},
        .beats = {{.what = "it is elsewhere", .until = first_is_elsewhere}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}},
    },
    {
        .name = "one_of_two_elsewhere",
        .sentence =
            "two attempts are elsewhere, and nobody ends either: each times out in its time",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 10000, .retry = {.attempts = 2}},
                           {.complete_by_ms = 10 * MS_PER_MIN, .retry = {.attempts = 2}}}},
        .parts = {{.attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}},
                  {.step = 1, .attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}}},
        .beats = {{.what = "both are elsewhere", .until = both_are_elsewhere}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}, {STEP_COMPLETED, "TC", STANDS}},
        .expect = the_first_ended_while_the_other_was_elsewhere,
    },
    {
        .name = "one_of_two_elsewhere_nodes",
        .sentence = "the same, where nodes share the store and the owner does not lead",
        .nodes = 2,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 10000, .retry = {.attempts = 2}},
                           {.complete_by_ms = 10 * MS_PER_MIN, .retry = {.attempts = 2}}}},
        .parts = {{.attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}},
                  {.step = 1, .attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}}},
        .beats = {{.what = "both are elsewhere", .until = both_are_elsewhere}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}, {STEP_COMPLETED, "TC", STANDS}},
        .expect = the_first_ended_while_the_other_was_elsewhere,
    },
    {
        .name = "overdue_elsewhere_of_a_full_node",
        .sentence = "what is elsewhere falls due while other tasks fill the node's memory for long",
        .tasks = 2,
        .narrow = true,
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN, .retry = {.attempts = 2}}}},
        .parts = {{.task = 1, .attempt = 1, .act = {SAYS_ELSEWHERE, .takes = 100}},
                  {.task = 2, .act = {SAYS_DONE, .takes = 9 * MS_PER_MIN}}},
        .beats = {{.what = "the agents are there", .after_ms = 1000, .then = first_is_submitted},
                  {.what = "it is elsewhere", .until = first_is_elsewhere},
                  {.what = "for a while",
                   .after_ms = 5 * MS_PER_MIN,
                   .then = the_others_are_submitted},
                  {.what = "the memory is full", .until = memory_is_full}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "T?C", STANDS}},
        .expect = it_was_given_up_at_once,
    },
    {
        .name = "undone_while_elsewhere",
        .sentence =
            "a task is undone while its attempt is elsewhere: its token ends it, then it is undone",
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 10 * MS_PER_MIN, .undo = UNDO_CALL}}},
        .parts = {{.attempt = 1,
                   .direction = DIRECTION_FORWARD,
                   .act = {SAYS_ELSEWHERE, .takes = 100, .comes = MS_PER_MIN}}},
        .beats = {{.what = "it is elsewhere",
                   .until = first_is_elsewhere,
                   .then = operator_undoes}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}},
    },
    {.name = NULL},
};
