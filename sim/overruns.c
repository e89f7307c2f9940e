/* Evaluations that never end, in some runs: the node is ended by its watchdog, which first counts
 * the task in the store, and later leaves it out (overruns.h). node.c calls it. Derived from the
 * seed without drawing from the run's source. */

/* How often they happen, and how much a turn evaluates. */
#include "sim/overruns.h"

#include "base/map.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/weather.h"
#include "sim/world.h"

enum {
    TIMES_MAX = 2,
    RUNS_ONE_IN = 3,
    TASKS_ONE_IN = 4,
    TURNS_ONE_IN = 3,
    COUNTED = 700, /* per mille; the others leave no trace */
};

static bool any; /* in this run */

/* Derived from the seed, not drawn from the run's source: runs without it are unaffected. */
void overruns_begin(void)
{
    any = hash_stable(&world.seed, sizeof world.seed) % RUNS_ONE_IN == 0;
}

static bool is_endless(struct slice task)
{
    const struct subject *t = any && !world.calm ? subject_find(task) : NULL;

    /* Nothing is stored during the submission: see tests/e2e/overrun_test.c. */
    return t && t->seen.revision > 0
           && (hash_stable(task.ptr, task.len) ^ world.seed) % TASKS_ONE_IN == 0;
}

static int64_t times_of(struct slice task)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct overrun *list = NULL;
    size_t count = 0;
    struct error e = {0};

    enum err err = inner->ops->overrun_list(inner, &a, &list, &count, &e);
    ASSERT(err == ERR_OK);
    for (size_t i = 0; i < count; i++)
        if (slice_eq(list[i].task, task))
            return list[i].times;
    return 0;
}

/* Another node may evaluate it at the same time, or before its next survey; a node that takes it
 * over knows. A node may still run when its next boot does. */
static void check_times(struct slice task)
{
    uint32_t up = 0;

    NODES_FOREACH (n)
        up += node_is_up(n);
    uint32_t others = up > nodes.names ? up - 1 : nodes.names - 1;
    int64_t most = nodes.shared ? TIMES_MAX + others : TIMES_MAX;

    if (times_of(task) >= most)
        broken("a task whose evaluations ended two nodes is not evaluated again", "%.*s",
               SLICE_ARG(task));
}

void overruns_evaluates(void *arg, struct slice task, bool begins)
{
    struct node *n = arg;
    const struct overrun_count c = {.task = task, .by = 1, .at = store_now()};
    struct error e = {0};

    n->deeds += begins;
    if (!begins || n->dead || !is_endless(task))
        return;
    check_times(task);
    bool counted = chance(COUNTED) && !store_is_away() && n->disk.cut_until <= world.now;
    trace("%s evaluates %.*s without end%s", n->me, SLICE_ARG(task), counted ? ", counted" : "");
    if (counted) {
        enum err err = inner->ops->overrun_count(inner, &c, &e);
        ASSERT(err == ERR_OK);
    }
    covered(COVER_OVERRUN);
    n->disk.stuck = true;
    node_crash(n, "for want of an end");
}

uint64_t overruns_turn_steps(const struct node *n)
{
    uint64_t drawn = hash_stable(&world.seed, sizeof world.seed) >> 8;

    return drawn % TURNS_ONE_IN == 0 ? 1 + (drawn + n->name) % 40 : 0;
}

void overruns_left_out(struct node *n)
{
    struct scheduler_stats stats;

    scheduler_stats(n->scheduler, &stats);
    for (; n->turns_left_out < stats.turns_left_out; n->turns_left_out++)
        covered(COVER_LEFT_OUT);
}

void overruns_check_end(void)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct overrun *list = NULL;
    size_t count = 0;
    struct error e = {0};

    enum err err = inner->ops->overrun_list(inner, &a, &list, &count, &e);
    ASSERT(err == ERR_OK);
    /* If the clock was set back, counts after the end may seem to precede it. */
    for (size_t i = 0; i < count && !nodes.shared && !world.set_back; i++) {
        const struct subject *t = subject_find(list[i].task);
        /* A repeated submission decides its conditions before the task is found. */
        if (t && !t->deleted && task_state_is_end(t->seen.state) && list[i].at < t->seen.ended_at)
            broken("what was counted of a task goes with it", "%s", t->id);
    }
}
