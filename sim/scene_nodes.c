/* Scenes of nodes that are down, suspended, replaced, deposed or gone for good, and of lost time.
 * The table of scenes at the end says which conditions and acts follow each other (scene.h);
 * check_nodes.c and check_time.c have the rules. */

#include "base/when.h"
#include "sim/scene.h"
#include "sim/weather.h"
#include "sim/world.h"

static uint32_t other;   /* a node without the fault */
static struct node *old; /* the replaced process */
static int64_t slow_since;

static bool first_begun(void)
{
    return begun(0, DIRECTION_FORWARD, 1) && the_owner();
}

static bool both_begun(void)
{
    return first_begun() && begun(1, DIRECTION_FORWARD, 1);
}

static bool nobody_gave_up(void)
{
    return is_open(0, DIRECTION_FORWARD, 1);
}

static void nothing_failed(void)
{
    const struct seen *s = &the_task()->seen;

    scene_must(s->failure_count == 0, "nothing counts as a failure");
    scene_must(!s->deadline_passed, "no deadline passed");
}

/* ---- one node ---- */

/* Nodes come back after a random time, except for the last process of a name. */
static void goes_away(struct node *n)
{
    n->last = true;
    node_crash(n, "for the scene");
}

static void only_node_goes_away(void)
{
    goes_away(&nodes.list[0]);
}

static bool only_node_is_away(void)
{
    return !nodes.list[0].used;
}

static void only_node_comes_back(void)
{
    nodes.list[0].last = false;
    nodes_boot();
}

static bool all_fell_due(void)
{
    return met(COVER_LONG_OUTAGE);
}

static void only_node_falls_asleep(void)
{
    node_suspend(&nodes.list[0], 10 * MS_PER_MIN);
}

static bool asleep_past_the_deadline(void)
{
    return is_open(0, DIRECTION_FORWARD, 1)
           && store_now() > the_attempt(0, DIRECTION_FORWARD, 1)->complete_by + MS_PER_MIN;
}

static bool only_node_is_awake(void)
{
    return node_is_awake(&nodes.list[0]);
}

static void comes_back_ahead(void)
{
    world.ahead += between(2 * MS_PER_MIN, MS_PER_H);
    trace("the clock jumps, to %" PRId64 " ms ahead", world.ahead);
    only_node_comes_back();
}

static void comes_back_behind(void)
{
    world.ahead -= between(2 * MS_PER_MIN, MS_PER_H);
    world.set_back = true;
    trace("the clock jumps, to %" PRId64 " ms ahead", world.ahead);
    only_node_comes_back();
}

/* Too short to count as lost time by itself. */
static void standby_is_ahead(void)
{
    int64_t ahead_ms = between(2 * MS_PER_MIN, MS_PER_H);

    store_fails_over(between(100, 1000), ahead_ms);
}

static void standby_is_behind(void)
{
    int64_t behind_ms = between(5 * MS_PER_S, MS_PER_MIN);

    store_fails_over(between(100, 1000), -behind_ms);
}

static void standby_takes_its_time(void)
{
    store_fails_over(MS_PER_MIN, 0);
}

static bool standby_is_there(void)
{
    return store_back_at() != 0 && !store_is_away();
}

static bool before_it_began(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return a->outcome == OUTCOME_COMPLETED && a->ended_at < a->started_at;
}

static void store_is_cut_off(void)
{
    disk_cut(&nodes.list[0].disk, 2 * MS_PER_MIN);
}

static bool store_is_back_too_late(void)
{
    const struct seen_attempt *a = the_attempt(0, DIRECTION_FORWARD, 1);

    return nodes.list[0].disk.cut_until <= world.now && is_open(0, DIRECTION_FORWARD, 1)
           && a->complete_by < store_now();
}

static void store_slows_down(void)
{
    weather.store_ms = (uint32_t)between(4000, 9000);
    slow_since = world.now;
    submit_all();
}

/* ---- one outage after another ---- */

enum { NAPS = 8, SHORT_MS = 5000, EVERY_MS = 9000, LONG_MS = 15500 };

static uint32_t naps;
static int64_t nap_at;

static void first_nap(void)
{
    naps = 0;
    nap_at = world.now;
}

/* Gaps of some seconds become usual, though the node is up for as long in between. */
static bool it_slept_again_and_again(void)
{
    if (world.now < nap_at)
        return false;
    if (naps == NAPS)
        return true;
    naps++;
    nap_at = world.now + EVERY_MS;
    node_suspend(&nodes.list[0], SHORT_MS);
    return false;
}

static void node_sleeps_for_longer(void)
{
    node_suspend(&nodes.list[0], LONG_MS);
}

/* ---- a store that is always slow ---- */

/* And soon. Which one differs, because calls for work are cut off while the store is busy with what
 * they should get. */
static bool it_turned_back(void)
{
    scene_must(world.now - slow_since < 10 * MS_PER_MIN, "what is overdue is so soon");
    return the_task()->seen.direction == DIRECTION_UNDO;
}

static bool one_was_given_up(void)
{
    scene_must(world.now - slow_since < 10 * MS_PER_MIN, "what is overdue is so soon");
    for (uint32_t i = 0; i < the_step(0)->attempt_count; i++)
        if (the_step(0)->attempts[i].outcome == OUTCOME_TIMED_OUT)
            return true;
    return false;
}

/* ---- results elsewhere ---- */

static void result_goes_elsewhere(void)
{
    other = 1 - the_owner()->name;
    agents_turn_to(other);
}

static void result_goes_to_the_next(void)
{
    agents_turn_to((the_owner()->name + 1) % nodes.names);
}

static bool other_owns_it(void)
{
    return the_owner() && the_owner()->name == other;
}

static bool second_begun(void)
{
    return begun(1, DIRECTION_FORWARD, 1) && the_owner();
}

static void undo_is_asked_elsewhere(void)
{
    other = 1 - the_owner()->name;
    people_want(the_task(), ASK_UNDO, -1, (int)other);
}

static bool other_told_the_agent_to_stop(void)
{
    return other_owns_it() && met(COVER_STOPPED) && is_open(1, DIRECTION_FORWARD, 1);
}

static bool second_begun_there(void)
{
    return begun(1, DIRECTION_FORWARD, 1) && other_owns_it();
}

static bool result_lost_the_race(void)
{
    return met(COVER_CONFLICT_RESULT);
}

/* ---- take-over ---- */

static void owner_is_started_again(void)
{
    old = the_owner();
    node_usurp(old);
}

static bool taken_over_from_the_living(void)
{
    return node_is_up(old) && is_open(0, DIRECTION_FORWARD, 1) && the_owner() && the_owner() != old;
}

static bool old_process_noticed(void)
{
    return met(COVER_REPLACED);
}

static void owner_goes_for_good(void)
{
    other = 1 - the_owner()->name;
    goes_away(the_owner());
}

static bool agents_wait_at_both(void)
{
    return wire_parked(node_named(0)) >= SERVICES_MAX && wire_parked(node_named(1)) >= SERVICES_MAX;
}

static void first_node_is_asked(void)
{
    people_want(the_task(), ASK_SUBMIT, -1, 0);
}

static bool both_are_at_work(void)
{
    return begun(0, DIRECTION_FORWARD, 1) && begun(1, DIRECTION_FORWARD, 1);
}

static void first_node_is_asked_for_another(void)
{
    people_want(&subjects.list[1], ASK_SUBMIT, -1, 0);
}

static bool other_is_stored(void)
{
    return subjects.list[1].seen.revision > 0 && subjects.list[1].seen.state == TASK_PENDING;
}

static void first_node_goes_away(void)
{
    goes_away(node_named(0));
}

static bool taken_over_running(void)
{
    return met(COVER_NODE_CLAIM) && other_owns_it() && is_open(0, DIRECTION_FORWARD, 1);
}

/* ---- supervisors ---- */

static struct node *writing_leader(void)
{
    struct supervisor_stats stats;
    struct node *leader = the_leader();

    if (!leader)
        return NULL;
    supervisor_stats(leader->supervisor, &stats);
    return stats.requests > 0 && supervisor_is_busy(leader->supervisor) ? leader : NULL;
}

static bool leader_is_about_to_write(void)
{
    return writing_leader() != NULL;
}

static void leader_falls_asleep(void)
{
    node_suspend(writing_leader(), 40 * MS_PER_S);
}

static bool leader_was_deposed(void)
{
    return met(COVER_LEADER_CHANGE) && met(COVER_DEPOSED);
}

static bool somebody_leads(void)
{
    return the_leader() != NULL;
}

static bool agents_wait_at_the_other(void)
{
    if (!somebody_leads())
        return false;
    other = 1 - the_leader()->name;
    return wire_parked(node_named(other)) >= SERVICES_MAX;
}

static void other_is_asked(void)
{
    people_want(the_task(), ASK_SUBMIT, -1, (int)other);
}

static bool other_than_the_leader_owns_it(void)
{
    return first_begun() && other_owns_it() && the_leader() && the_leader()->name != other;
}

static bool request_was_found(void)
{
    return met(COVER_FOUND_REQUEST);
}

static bool definition_was_read(void)
{
    return met(COVER_LEARNED);
}

static bool begun_and_led(void)
{
    return first_begun() && somebody_leads();
}

static void all_fall_asleep(void)
{
    NODES_FOREACH (n)
        node_suspend(n, 20 * MS_PER_S);
}

static bool all_are_awake(void)
{
    return nodes_are_well() && somebody_leads();
}

static void leader_ends(void)
{
    struct node *n = the_leader();

    other = 1 - n->name;
    n->last = true;
    node_drain(n);
    agents_turn_to(other);
}

static bool other_leads(void)
{
    return the_leader() && the_leader()->name == other;
}

/* Attempts and their task become overdue while no node runs; the agents have their results
 * ready. */
#define DUE_FLOW                                             \
    {                                                        \
        .step_count = 2, .complete_by_ms = 60000, .steps = { \
            {.complete_by_ms = 10000},                       \
            {.service = 1, .complete_by_ms = 10000},         \
        }                                                    \
    }

#define KEEPS_RESULT(i)                                                 \
    {                                                                   \
        .step = (i), .act = { SAYS_DONE, .takes = 3000, .keeps = true } \
    }

#define BOTH_DONE                                                     \
    {                                                                 \
        {STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "C", STANDS}, \
    }

const struct scene scenes_of_nodes[] = {
    {
        .name = "ten_minutes_down",
        .sentence = "the node is down for ten minutes: what fell due is nobody else's fault",
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = only_node_goes_away},
                  {.what = "ten minutes went by",
                   .until = only_node_is_away,
                   .after_ms = 10 * MS_PER_MIN,
                   .then = only_node_comes_back},
                  {.what = "everything had fallen due", .until = all_fell_due}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "deadline_while_down",
        .sentence = "the complete-by of a task passes while the node is down: within grace its next"
                    " step may start",
        .flow = {.step_count = 2,
                 .complete_by_ms = 60000,
                 .steps = {{.complete_by_ms = 10000}, {.before = BIT(0)}}},
        .parts = {KEEPS_RESULT(0)},
        .beats = {{.what = "an agent is at work",
                   .until = first_begun,
                   .then = only_node_goes_away},
                  {.what = "ten minutes went by",
                   .until = only_node_is_away,
                   .after_ms = 10 * MS_PER_MIN,
                   .then = only_node_comes_back}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "suspended",
        .sentence =
            "the machine of the node is suspended for ten minutes: an answer soon after that is"
            " in time",
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 10000}, {.before = BIT(0), .complete_by_ms = 60000}}},
        .parts = {{.act = {SAYS_DONE, .takes = 10 * MS_PER_MIN + 4000, .keeps = true}}},
        .beats = {{.what = "an agent is at work",
                   .until = first_begun,
                   .then = only_node_falls_asleep},
                  {.what = "it fell due meanwhile", .until = asleep_past_the_deadline},
                  {.what = "the node woke up", .until = only_node_is_awake},
                  {.what = "it does not give up", .until = nobody_gave_up, .after_ms = 2000}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "N*C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "clock_ahead",
        .sentence = "the clock is set ahead while the node restarts",
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = only_node_goes_away},
                  {.what = "the node is down",
                   .until = only_node_is_away,
                   .after_ms = 500,
                   .then = comes_back_ahead},
                  {.what = "everything had fallen due", .until = all_fell_due}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "clock_back",
        .sentence = "the clock is set back while the node restarts",
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = only_node_goes_away},
                  {.what = "the node is down",
                   .until = only_node_is_away,
                   .after_ms = 500,
                   .then = comes_back_behind},
                  {.what = "the attempt ended before it began", .until = before_it_began}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "store_away",
        .sentence = "the node cannot reach its store for two minutes",
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = store_is_cut_off},
                  {.what = "the store is back, and attempts fell due",
                   .until = store_is_back_too_late}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "standby_ahead",
        .sentence =
            "a standby takes over whose clock is ahead: what fell due in the step has grace",
        .nodes = 2,
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = standby_is_ahead},
                  {.what = "everything has fallen due", .until = standby_is_there}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "standby_behind",
        .sentence = "a standby takes over whose clock is behind: nodes wait for it without a stop",
        .nodes = 2,
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work", .until = both_begun, .then = standby_is_behind},
                  {.what = "it is there", .until = standby_is_there}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "standby_late",
        .sentence = "a standby takes over after a minute: what fell due meanwhile has grace",
        .nodes = 2,
        .flow = DUE_FLOW,
        .parts = {KEEPS_RESULT(0), KEEPS_RESULT(1)},
        .beats = {{.what = "agents are at work",
                   .until = both_begun,
                   .then = standby_takes_its_time},
                  {.what = "everything has fallen due", .until = standby_is_there}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "outage_among_outages",
        .sentence = "a node stands still again and again, then for longer, and an attempt falls due"
                    " in that: it has grace as after any outage",
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 8000, .retry = {.attempts = 2, .wait_ms = 500}}}},
        .parts = {{.act = {SAYS_DONE, .takes = 17000, .keeps = true}}},
        .beats = {{.what = "the node is up", .after_ms = 11000, .then = first_nap},
                  {.what = "it stood still again and again",
                   .until = it_slept_again_and_again,
                   .then = submit_all},
                  {.what = "an agent is at work",
                   .until = first_begun,
                   .then = node_sleeps_for_longer}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "slow_store",
        .sentence = "the store takes seconds for everything, for good: that is no outage, and"
                    " what is overdue is so in the end",
        .unasked = true,
        .flow = {.step_count = 1,
                 .steps = {{.complete_by_ms = 20000, .retry = {.attempts = 9, .wait_ms = 500}}}},
        .parts = {{.meanwhile = true, .act = {SAYS_NOTHING, .takes = 100}}},
        .beats = {{.what = "the store is slow", .then = store_slows_down},
                  {.what = "an attempt was given up", .until = one_was_given_up}},
        .end = TASK_PROCESSED,
    },
    {
        .name = "slow_store_task",
        .sentence = "the same, and a task's own deadline is not moved for ever",
        .unasked = true,
        .flow = {.step_count = 1,
                 .complete_by_ms = 40000,
                 .steps = {{.complete_by_ms = 600000, .retry = {.attempts = 60, .wait_ms = 500}}}},
        .parts = {{.act = {SAYS_AGAIN, .takes = 100}}},
        .beats = {{.what = "the store is slow", .then = store_slows_down},
                  {.what = "the deadline passed", .until = it_turned_back}},
        .end = TASK_COMPENSATED,
    },
    {
        .name = "result_elsewhere",
        .sentence = "a result comes to a node that does not own the task, twice",
        .nodes = 2,
        .flow = {.step_count = 3,
                 .steps = {{.complete_by_ms = 5000},
                           {.before = BIT(0), .complete_by_ms = 5000},
                           {.before = BIT(1)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 1000}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 1000}}},
        .beats = {{.what = "an agent is at work",
                   .until = first_begun,
                   .then = result_goes_elsewhere},
                  {.what = "the other node owns the task",
                   .until = second_begun_there,
                   .then = result_goes_elsewhere},
                  {.what = "and the first one again", .until = other_owns_it}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "definition_elsewhere",
        .sentence =
            "a workflow is stored by another node and used at once: nodes that have not heard"
            " of it read it",
        .nodes = 3,
        .unknown = true,
        .unasked = true,
        .flow = {.step_count = 3,
                 .steps = {{.complete_by_ms = 5000},
                           {.before = BIT(0), .complete_by_ms = 5000},
                           {.before = BIT(1)}}},
        .beats = {{.what = "nodes are at work", .until = somebody_leads, .then = store_workflow},
                  {.what = "it is used", .then = submit_all},
                  {.what = "an agent is at work",
                   .until = first_begun,
                   .then = result_goes_to_the_next},
                  {.what = "it was read", .until = definition_was_read}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "N*C", STANDS},
                  {STEP_COMPLETED, "N*C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "verb_elsewhere",
        .sentence = "an operator wants a task undone at a node that does not own it, while an agent"
                    " is at work: the agent is told to stop, and what it left in doubt is undone",
        .nodes = 2,
        .flow = {.step_count = 2, .steps = {{0}, {.before = BIT(0), .complete_by_ms = 60000}}},
        .parts = {{.step = 1, .act = {SAYS_NOTHING, .takes = 100}}},
        .beats = {{.what = "an agent is at work",
                   .until = second_begun,
                   .then = undo_is_asked_elsewhere},
                  {.what = "it was told to stop", .until = other_told_the_agent_to_stop}},
        .end = TASK_COMPENSATED,
        .fates = {{STEP_UNDONE, "C/C", UNDONE}, {STEP_UNDONE, "T/C", BARRED}},
    },
    {
        .name = "race_for_revision",
        .sentence = "results of one task come to two nodes at once: one of them loses the race for"
                    " the revision, and is decided again",
        .nodes = 2,
        .tasks = 8,
        .places = 20,
        .scattered = true,
        .flow = {.step_count = 6, .steps = {{0}, {0}, {0}, {0}, {0}, {0}}},
        .parts = {{.act = {SAYS_DONE, .takes = 100}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 100}},
                  {.step = 2, .act = {SAYS_DONE, .takes = 100}},
                  {.step = 3, .act = {SAYS_DONE, .takes = 100}},
                  {.step = 4, .act = {SAYS_DONE, .takes = 100}},
                  {.step = 5, .act = {SAYS_DONE, .takes = 100}}},
        .beats = {{.what = "a result lost the race", .until = result_lost_the_race}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS},
                  {STEP_COMPLETED, "C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "usurped",
        .sentence =
            "a node is started again while its old process lives, whose tasks are taken over",
        .nodes = 2,
        .flow = {.step_count = 2, .steps = {{.complete_by_ms = 60000}, {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 12000}}},
        .beats = {{.what = "an agent is at work",
                   .until = first_begun,
                   .then = owner_is_started_again},
                  {.what = "it was taken over from a living process",
                   .until = taken_over_from_the_living},
                  {.what = "the old process noticed", .until = old_process_noticed}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "C", STANDS}, {STEP_COMPLETED, "N*C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "node_gone",
        .sentence = "a node never comes back: another one takes over what it owned",
        .nodes = 2,
        .flow = {.step_count = 2, .steps = {{.complete_by_ms = 60000}, {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 25000}}},
        .beats = {{.what = "an agent is at work",
                   .until = first_begun,
                   .then = owner_goes_for_good},
                  {.what = "it was taken over while it ran", .until = taken_over_running}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {
        .name = "waits_for_two_elsewhere",
        .sentence = "a node with a full memory stores a task that waits for two agents, and never"
                    " comes back: another node, whose agents had nothing to do, claims it",
        .nodes = 2,
        .tasks = 2,
        .narrow = true,
        .unasked = true,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 60000}, {.service = 1, .complete_by_ms = 60000}}},
        .parts = {{.act = {SAYS_DONE, .takes = 25000}}},
        .beats = {{.what = "agents wait at both nodes",
                   .until = agents_wait_at_both,
                   .after_ms = 2000,
                   .then = first_node_is_asked},
                  {.what = "it has a task at work",
                   .until = both_are_at_work,
                   .then = first_node_is_asked_for_another},
                  {.what = "it has no memory for another one, which is stored",
                   .until = other_is_stored,
                   .then = first_node_goes_away}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "N*C", STANDS}, {STEP_COMPLETED, "N*C", STANDS}},
        .expect = nothing_failed,
    },
    {
        .name = "leader_deposed",
        .sentence = "a supervisor loses its leadership in mid-scan: what it wrote down is refused",
        .nodes = 2,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 500, .retry = {.attempts = 2}}, {.before = BIT(0)}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 100}}},
        .beats = {{.what = "the leader is about to write a request",
                   .until = leader_is_about_to_write,
                   .then = leader_falls_asleep},
                  {.what = "it was deposed", .until = leader_was_deposed}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}, {STEP_COMPLETED, "N*C", STANDS}},
    },
    {
        .name = "request_found",
        .sentence = "a node finds the request that another node's supervisor wrote for its task",
        .nodes = 2,
        .unasked = true,
        .flow = {.step_count = 2,
                 .steps = {{.complete_by_ms = 500, .retry = {.attempts = 2}},
                           {.service = 1, .complete_by_ms = 30000}}},
        .parts = {{.attempt = 1, .act = {SAYS_NOTHING, .takes = 100}},
                  {.step = 1, .act = {SAYS_DONE, .takes = 10000}}},
        .beats = {{.what = "somebody leads, and agents wait at the other node",
                   .until = agents_wait_at_the_other,
                   .after_ms = 500,
                   .then = other_is_asked},
                  {.what = "the other node owns the task", .until = other_than_the_leader_owns_it},
                  {.what = "it found a request", .until = request_was_found}},
        .end = TASK_PROCESSED,
        .fates = {{STEP_COMPLETED, "TC", STANDS}, {STEP_COMPLETED, "C", STANDS}},
    },
    {
        .name = "lost_time_handed_on",
        .sentence =
            "all nodes sleep, and the leader ends before grace is over: the next leader knows of"
            " the lost time, and gives grace too",
        .nodes = 2,
        .flow = {.step_count = 2, .steps = {{.complete_by_ms = 5000}, {.before = BIT(0)}}},
        .parts = {{.act = {SAYS_DONE, .takes = 26500, .keeps = true}}},
        .beats = {{.what = "an agent is at work", .until = begun_and_led, .then = all_fall_asleep},
                  {.what = "the nodes woke up",
                   .until = all_are_awake,
                   .after_ms = 22 * MS_PER_S,
                   .then = leader_ends},
                  {.what = "the other one leads within grace", .until = other_leads},
                  {.what = "it does not give up", .until = nobody_gave_up, .after_ms = 2000}},
        .end = TASK_PROCESSED,
        .fates = BOTH_DONE,
        .expect = nothing_failed,
    },
    {.name = NULL},
};
