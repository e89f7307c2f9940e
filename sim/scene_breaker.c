/* Scenes of services that become unavailable, and of the breaker's reaction. The table of scenes
 * at the end says which conditions and acts follow each other (scene.h); check_breaker.c has the
 * rules. */

#include "base/when.h"
#include "sim/outage.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

static void set_and_submit(void)
{
    outage_settings(0, SLICE("{\"breaker\":{\"calls\":3,\"failures\":60,\"wait\":\"1s\","
                             "\"max_wait\":\"2s\",\"trials\":2}}"));
    submit_all();
}

static bool opened(void)
{
    return met(COVER_BREAKER_OPEN);
}

static bool trials_failed(void)
{
    return met(COVER_SPARED) && met(COVER_BREAKER_HALF_OPEN);
}

static void hand_opens(void)
{
    outage_by_hand(0, true);
}

static void hand_closes(void)
{
    outage_by_hand(0, false);
}

static bool held_by_hand(void)
{
    return met(COVER_BREAKER_BY_HAND);
}

static void submits_into_it(void)
{
    submit_all();
}

static bool a_trial_is_at_work(void)
{
    return met(COVER_BREAKER_HALF_OPEN) && agents_at_work() > 0;
}

static void store_stands_still(void)
{
    weather.store_stalls = 1000;
}

static void store_goes_on(void)
{
    weather.store_stalls = 0;
    hand_closes();
}

/* Retries are ten minutes apart: nothing waited that long, and at most one try was used up. */
static void all_went_out_at_once(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct seen *s = &subjects.list[i].seen;
        scene_must(s->failure_count <= 1, "an outage uses up one try at most");
        scene_must(s->ended_at - s->submitted_at < 5 * MS_PER_MIN,
                   "when it is over, nobody waits for the time of a try");
    }
    scene_must(met(COVER_BREAKER_CLOSED), "the breaker closes");
}

/* The checkers make sure that no request was sent sooner. */
static void wishes_were_kept(void)
{
    bool waited = false;

    for (uint32_t i = 0; i < subjects.count; i++)
        waited |= subjects.list[i].seen.ended_at - subjects.list[i].seen.submitted_at > 45000;
    scene_must(waited, "somebody had such a wish");
    for (uint32_t i = 0; i < subjects.count; i++)
        scene_must(subjects.list[i].seen.ended_at - subjects.list[i].seen.submitted_at
                       < 5 * MS_PER_MIN,
                   "when it is over, nobody waits for the time of a try");
    scene_must(met(COVER_BREAKER_CLOSED), "the breaker closes");
}

static void nothing_began_early(void)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        scene_must(subjects.list[i].seen.failure_count == 0, "nothing failed");
    scene_must(met(COVER_BREAKER_CLOSED), "the breaker closes");
}

const struct scene scenes_of_breakers[] = {
    {
        .name = "outage",
        .sentence = "a service is away for a while, and all goes out when it is back",
        .tasks = 8,
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 60000,
                            .retry = {.attempts = 2, .wait_ms = 600000, .max_wait_ms = 600000}}}},
        .parts = {{.meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}}},
        .beats = {{.what = "its breaker is set", .then = set_and_submit},
                  {.what = "the breaker opens", .until = opened},
                  {.what = "trials fail, and are spared", .until = trials_failed}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "F*C", STANDS}},
        .expect = all_went_out_at_once,
    },
    {
        .name = "outage_written_late",
        .sentence = "a trial fails, and before that is stored the breaker is closed by hand, and"
                    " opened again",
        .tasks = 8,
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 60000,
                            .retry = {.attempts = 9, .wait_ms = 600, .max_wait_ms = 60000}}}},
        .parts = {{.meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}}},
        .beats = {{.what = "its breaker is set", .then = set_and_submit},
                  {.what = "the breaker opens", .until = opened},
                  {.what = "a trial is at work",
                   .until = a_trial_is_at_work,
                   .then = store_stands_still},
                  {.what = "it failed", .after_ms = 200, .then = hand_closes},
                  {.what = "it is closed", .after_ms = 100, .then = hand_opens},
                  {.what = "that was stored", .after_ms = 60000, .then = store_goes_on}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
    },
    {
        .name = "outage_of_two_nodes",
        .sentence = "the same, noticed by each of two nodes",
        .nodes = 2,
        .tasks = 16,
        .unasked = true,
        .scattered = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 60000,
                            .retry = {.attempts = 2, .wait_ms = 600000, .max_wait_ms = 600000}}}},
        .parts = {{.meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}}},
        .beats = {{.what = "its breaker is set", .then = set_and_submit},
                  {.what = "the breaker opens", .until = opened},
                  {.what = "trials fail, and are spared", .until = trials_failed}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "F*C", STANDS}},
        .expect = all_went_out_at_once,
    },
    {
        .name = "outage_with_wishes",
        .sentence = "of two actions of a service one says when it is to be asked again: that is"
                    " kept to when the outage is over, and all else goes out at once",
        .tasks = 6,
        .unasked = true,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 60000,
                            .retry = {.attempts = 2, .wait_ms = 600000, .max_wait_ms = 600000}},
                           {.complete_by_ms = 60000,
                            .retry = {.attempts = 2, .wait_ms = 600000, .max_wait_ms = 600000}}}},
        .parts = {{.step = 0, .meanwhile = true, .act = {SAYS_AGAIN, .takes = 20, .wishes = 45000}},
                  {.step = 1, .meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}}},
        .beats = {{.what = "its breaker is set", .then = set_and_submit},
                  {.what = "the breaker opens", .until = opened},
                  {.what = "trials fail, and are spared", .until = trials_failed}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "F*C", STANDS}, {STEP_COMPLETED, "F*C", STANDS}},
        .expect = wishes_were_kept,
    },
    {
        .name = "by_hand",
        .sentence = "a breaker is opened by hand, and closed a minute later",
        .tasks = 4,
        .unasked = true,
        .flow = {.step_count = 1, .steps = {{.complete_by_ms = 60000}}},
        .beats = {{.what = "a while passes", .after_ms = 3000, .then = hand_opens},
                  {.what = "it is open", .until = held_by_hand, .then = submits_into_it},
                  {.what = "a minute passes", .after_ms = 60000, .then = hand_closes}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_began_early,
    },
    {.name = NULL},
};
