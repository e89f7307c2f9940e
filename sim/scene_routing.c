/* Scenes of ill instances among others, and of limits. The table of scenes at the end says which
 * conditions and acts follow each other (scene.h); check_health.c and check_limits.c have the
 * rules. */

#include "base/when.h"
#include "sim/check.h"
#include "sim/outage.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

/* ---- attempts by instance ---- */

static uint32_t ends_by(const char *instance, enum outcome outcome)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct seen_step *s = &subjects.list[i].seen.steps[0];
        for (uint32_t k = 0; subjects.list[i].seen.revision && k < s->attempt_count; k++)
            count +=
                s->attempts[k].outcome == outcome && strcmp(s->attempts[k].instance, instance) == 0;
    }
    return count;
}

static uint32_t failures(void)
{
    return ends_by("a0-1.0", OUTCOME_FAILED) + ends_by("a0-1.0", OUTCOME_TIMED_OUT);
}

/* The breaker would also react to that many failures. */
static void submits_without_breaker(void)
{
    outage_settings(0, SLICE("{\"breaker\":{\"enabled\":false}}"));
    submit_all();
}

static uint32_t failed_before;

static bool surely_ill(void)
{
    failed_before = failures();
    return met(COVER_ILL);
}

static bool tried(void)
{
    return met(COVER_ILL_TRIAL);
}

/* Its failures before its illness was known, and the trials. */
static void got_little_and_came_back(void)
{
    scene_must(met(COVER_ILL_BACK), "a trial brings it back");
    scene_must(failures() <= failed_before + 12, "it gets little while it is ill");
    scene_must(ends_by("a0-1.0", OUTCOME_COMPLETED) >= 10, "it gets its part when it is well");
}

static void got_little(void)
{
    scene_must(failures() <= 60, "it gets little as long as it is ill");
    for (uint32_t i = 0; i < subjects.count; i++)
        scene_must(subjects.list[i].seen.ended_at - subjects.list[i].seen.submitted_at
                       < 10 * MS_PER_MIN,
                   "and holds up nobody");
}

static void submits_with_breaker(void)
{
    outage_settings(0, SLICE("{\"breaker\":{\"calls\":5,\"failures\":50}}"));
    submit_all();
}

static bool breaker_opened(void)
{
    return met(COVER_BREAKER_OPEN);
}

/* ---- the last one ---- */

static int64_t left_at;

static void the_good_one_leaves(void)
{
    agents_leave(1);
    failed_before = failures();
    left_at = world.now;
}

static bool is_asked_all_the_same(void)
{
    return failures() >= failed_before + 12;
}

static void was_not_shut_out(void)
{
    scene_must(met(COVER_ILL_LAST) || failures() >= failed_before + 12, "the last one gets all");
    scene_must(the_task()->seen.ended_at > 0 && left_at > 0, "and all ends");
}

/* ---- limits ---- */

static bool lifted;

static void sets_two_at_a_time(void)
{
    lifted = false;
    limits[0][0].concurrency = 5;
    limits[0][1].concurrency = 2;
    outage_settings(0, SLICE("{\"limits\":{\"concurrency\":5,\"actions\":{\"act0\":"
                             "{\"concurrency\":2}}},\"breaker\":{\"enabled\":false}}"));
}

static void sets_one_at_a_time(void)
{
    limits[0][1].concurrency = 1;
    outage_settings(0, SLICE("{\"limits\":{\"actions\":{\"act0\":{\"concurrency\":1}}}}"));
}

static void sets_a_rate(void)
{
    limits[0][0] = (struct limit){.rate_count = 2, .rate_ms = 1000};
    outage_settings(0, SLICE("{\"limits\":{\"rate\":\"2/s\"}}"));
}

static bool two_at_most(void)
{
    return lifted || agents_at_work() <= 2;
}

/* A node with full memory takes nothing over, and does not wait for that. */
static bool two_at_most_or_no_room(void)
{
    return two_at_most() || nodes_are_narrow();
}

static bool two_at_work(void)
{
    return agents_at_work() == 2;
}

static void node_dies(void)
{
    node_crash(&nodes.list[0], "for the scene");
}

static void limit_is_lifted(void)
{
    lifted = true;
    limits[0][0].concurrency = limits[0][1].concurrency = 1000; /* lines stay lines for a while */
    check_limits_changed();
    outage_settings(0, SLICE("{}"));
    outage_is_heard(&nodes.list[0]);
}

static struct node *node_of(const struct subject *t)
{
    NODES_FOREACH (n)
        if (node_owns(n, t->seen.owner))
            return n;
    return NULL;
}

static bool is_at_work(const struct subject *t)
{
    return t->seen.revision && t->ledger[0].begun[DIRECTION_FORWARD] > 0
           && t->seen.steps[0].state == STEP_RUNNING;
}

static struct subject *paused;

/* The node that writes a task owns it from then on; its attempt continues. */
static void first_node_gets_what_the_second_has_begun(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct node *n = is_at_work(&subjects.list[i]) ? node_of(&subjects.list[i]) : NULL;
        if (n && n->name == 1)
            paused = &subjects.list[i];
    }
    people_want(paused, ASK_PAUSE, -1, 0);
}

static bool it_was_paused(void)
{
    return paused->seen.paused_at != 0;
}

/* Its knowledge of the task is outdated: it must read the row. */
static void second_node_is_asked_to_go_on(void)
{
    people_want(paused, ASK_RESUME, -1, 1);
}

static bool each_has_one_at_work(void)
{
    uint32_t counts[NAMES_MAX] = {0};

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct node *n = is_at_work(&subjects.list[i]) ? node_of(&subjects.list[i]) : NULL;
        if (n)
            counts[n->name]++;
    }
    return counts[0] == 1 && counts[1] == 1;
}

static void second_node_is_gone_for_good(void)
{
    nodes.list[1].last = true;
    node_crash(&nodes.list[1], "for the scene");
}

static bool more_than_two(void)
{
    return agents_at_work() > 2;
}

static bool is_processed(const struct seen *s)
{
    return s->state == TASK_PROCESSED;
}

static bool some_are_done(void)
{
    return count_tasks(is_processed) >= 3;
}

/* ---- limits, while the store takes only some changes ---- */

enum { DEATHS = 10, EVERY_MS = 700 };

static uint32_t deaths;
static int64_t death_at;

static void store_is_moody(void)
{
    weather.store_refuses = 400;
    deaths = 0;
    death_at = world.now;
    submit_all();
}

/* And slow, so agents die while their requests are being stored, which shows only later. */
static void store_is_moody_and_slow(void)
{
    weather.store_ms = 300;
    weather.gone_noticed = 0;
    weather.store_fails = 400;
    store_is_moody();
    weather.store_refuses = 0;
}

/* Requests in transit to it reach nobody. */
static bool the_agent_died_again_and_again(void)
{
    if (deaths == DEATHS)
        return true;
    if (!agents_worker(0)->up || disk_is_idle(&nodes.list[0].disk) || world.now < death_at)
        return false;
    deaths++;
    death_at = world.now + EVERY_MS;
    agents_die(0);
    return false;
}

static void store_is_well(void)
{
    weather.store_refuses = weather.store_fails = 0;
    weather.store_ms = 10;
}

static bool silent_once(void)
{
    return met(COVER_SILENT);
}

static void took_its_time(void)
{
    int64_t first = INT64_MAX;
    int64_t last = 0;

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct seen_attempt *a = &subjects.list[i].seen.steps[0].attempts[0];
        first = min_i64(first, a->started_at);
        last = max_i64(last, a->started_at);
    }
    scene_must(last - first >= (subjects.count - 2) * 500, "no more begin than the rate lets");
    scene_must(last - first <= subjects.count * 500 + 20000, "and no fewer");
}

#define ONE_STEP(ms, tries)                                                        \
    {                                                                              \
        .step_count = 1, .steps = {                                                \
            {.complete_by_ms = (ms),                                               \
             .retry = {.attempts = (tries), .wait_ms = 1000, .max_wait_ms = 2000}} \
        }                                                                          \
    }

const struct scene scenes_of_routing[] = {
    {
        .name = "ill",
        .sentence = "one of three instances fails at all it is given, and comes back",
        .tasks = 200,
        .twins = true,
        .unasked = true,
        .flow = ONE_STEP(60000, 40),
        .parts = {{.worker = 1, .meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}},
                  {.worker = 1, .act = {SAYS_DONE, .takes = 500}},
                  {.act = {SAYS_DONE, .takes = 2000}}},
        .beats = {{.what = "tasks come", .then = submits_without_breaker},
                  {.what = "it surely is ill", .until = surely_ill},
                  {.what = "it is tried, and fails", .until = tried}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "F*C", STANDS}},
        .expect = got_little_and_came_back,
    },
    {
        .name = "ill_beside_full",
        .sentence = "the good instance has all its places taken, so it does not call for long",
        .tasks = 40,
        .places = 1,
        .absent = BIT(2),
        .twins = true,
        .unasked = true,
        .flow = ONE_STEP(60000, 250),
        .parts = {{.worker = 1, .act = {SAYS_AGAIN, .takes = 900}},
                  {.act = {SAYS_DONE, .takes = 4000}}},
        .beats = {{.what = "tasks come", .then = submits_without_breaker}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
        .expect = got_little,
    },
    {
        .name = "ill_and_breaker",
        .sentence = "the same, and the breaker opens: its trials go to the good one",
        .tasks = 40,
        .places = 1,
        .absent = BIT(2),
        .twins = true,
        .unasked = true,
        .flow = ONE_STEP(60000, 250),
        .parts = {{.worker = 1, .act = {SAYS_AGAIN, .takes = 900}},
                  {.act = {SAYS_DONE, .takes = 4000}}},
        .beats = {{.what = "tasks come", .then = submits_with_breaker},
                  {.what = "the breaker opens", .until = breaker_opened}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
        .expect = got_little,
    },
    {
        .name = "ill_and_last",
        .sentence = "an instance that is ill gets all when it is the last one",
        .tasks = 120,
        .absent = BIT(2),
        .twins = true,
        .unasked = true,
        .flow = ONE_STEP(5000, 200),
        .parts = {{.worker = 1, .meanwhile = true, .act = {SAYS_AGAIN, .takes = 20}},
                  {.worker = 2, .act = {SAYS_DONE, .takes = 1000}}},
        .beats = {{.what = "tasks come", .then = submits_without_breaker},
                  {.what = "it surely is ill", .until = surely_ill},
                  {.what = "the other one leaves", .then = the_good_one_leaves},
                  {.what = "it gets all", .after_ms = 8000},
                  {.what = "though it goes on failing", .until = is_asked_all_the_same}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
        .expect = was_not_shut_out,
    },
    {
        .name = "limit",
        .sentence = "two at a time, through a crash; then the limit is lifted",
        .tasks = 20,
        .unasked = true,
        .flow = ONE_STEP(60000, 3),
        .parts = {{.meanwhile = true, .act = {SAYS_DONE, .takes = 1500, .keeps = true}},
                  {.act = {SAYS_DONE, .takes = 2500}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "it is known", .after_ms = 5000, .then = submit_all},
                  {.what = "two are at work", .until = two_at_work, .then = node_dies},
                  {.what = "it goes on", .until = some_are_done, .then = limit_is_lifted},
                  {.what = "more are at work", .until = more_than_two}},
        .always = {.what = "no more than two are at work", .until = two_at_most},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*C", STANDS}},
    },
    {
        .name = "limit_of_two_nodes",
        .sentence = "two at a time, of which each of two nodes has its part",
        .nodes = 2,
        .tasks = 16,
        .unasked = true,
        .flow = ONE_STEP(60000, 3),
        .parts = {{.act = {SAYS_DONE, .takes = 500}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "all know of it, and of each other",
                   .after_ms = 20000,
                   .then = submit_all}},
        .always = {.what = "no more than two are at work", .until = two_at_most},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*C", STANDS}},
    },
    {
        .name = "limit_and_reading",
        .sentence = "a node has to read again what it has at work: that keeps its place meanwhile",
        .nodes = 2,
        .tasks = 16,
        .unasked = true,
        .flow = ONE_STEP(60000, 3),
        .parts = {{.act = {SAYS_DONE, .takes = 8000, .keeps = true}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "all know of it, and of each other",
                   .after_ms = 20000,
                   .then = submit_all},
                  {.what = "each has one at work",
                   .until = each_has_one_at_work,
                   .then = first_node_gets_what_the_second_has_begun},
                  {.what = "it is paused there",
                   .until = it_was_paused,
                   .then = second_node_is_asked_to_go_on}},
        .always = {.what = "no more than two are at work", .until = two_at_most},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*C", STANDS}},
    },
    {
        .name = "limit_of_a_dead_node",
        .sentence = "one of two nodes dies: what it had at work counts before the other has all",
        .nodes = 2,
        .tasks = 8,
        .unasked = true,
        .flow = ONE_STEP(300000, 3),
        .parts = {{.meanwhile = true, .act = {SAYS_DONE, .takes = 100000, .keeps = true}},
                  {.act = {SAYS_DONE, .takes = 2500}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "all know of it, and of each other",
                   .after_ms = 20000,
                   .then = submit_all},
                  {.what = "each has one at work",
                   .until = each_has_one_at_work,
                   .then = second_node_is_gone_for_good},
                  {.what = "it goes on", .until = some_are_done}},
        .always = {.what = "no more than two are at work", .until = two_at_most_or_no_room},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*C", STANDS}},
    },
    {
        .name = "limit_and_silence",
        .sentence = "one at a time, and the first is silent for too long: its place is free again",
        .tasks = 6,
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 600000,
                            .heartbeat_ms = 2000,
                            .retry = {.attempts = 2, .wait_ms = 1000, .max_wait_ms = 1000}}}},
        .parts = {{.attempt = 1, .meanwhile = true, .act = {SAYS_NOTHING, .mute = true}},
                  {.act = {SAYS_DONE, .takes = 300}}},
        .beats = {{.what = "a limit is set", .then = sets_one_at_a_time},
                  {.what = "it is known", .after_ms = 5000, .then = submit_all},
                  {.what = "one was silent for too long", .until = silent_once}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "T?C", STANDS}},
    },
    {
        .name = "limit_and_handing_over",
        .sentence = "what goes elsewhere makes room at once, and is stored later than what comes"
                    " after it",
        .tasks = 16,
        .unasked = true,
        .flow = ONE_STEP(60000, 9),
        .parts = {{.act = {SAYS_ELSEWHERE, .takes = 300, .comes = 3000}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "it is known", .after_ms = 25000, .then = store_is_moody},
                  {.what = "a while passes", .after_ms = 8000, .then = store_is_well}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
    },
    {
        .name = "limit_and_nobody",
        .sentence = "what reached nobody makes room at once, and is stored later than what comes"
                    " after it",
        .tasks = 60,
        .unasked = true,
        .flow = ONE_STEP(60000, 99),
        .parts = {{.act = {SAYS_DONE, .takes = 900}}},
        .beats = {{.what = "a limit is set", .then = sets_two_at_a_time},
                  {.what = "it is known", .after_ms = 25000, .then = store_is_moody_and_slow},
                  {.what = "the agent died again and again",
                   .until = the_agent_died_again_and_again,
                   .then = store_is_well}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, NULL, STANDS}},
    },
    {
        .name = "limit_of_rate",
        .sentence = "two begin a second, however many wait",
        .tasks = 30,
        .unasked = true,
        .flow = ONE_STEP(60000, 3),
        .beats = {{.what = "a limit is set", .then = sets_a_rate},
                  {.what = "it is known", .after_ms = 5000, .then = submit_all}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = took_its_time,
    },
    {.name = NULL},
};
