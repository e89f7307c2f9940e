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

/*
 * Nodes that evaluate a task at the same time may each be ended by it, and so may one that has not
 * read yet what another one counted. So how many are ended depends on the moment; but a node that
 * has read the second count evaluates the task no more, and it reads it at its start, with a survey
 * and with what it takes over.
 */

/* Something that a job of a node's disk found: the node has it when that job is done. */
struct found {
    uint64_t moment; /* of all counts and reads, in their order */
    uint64_t run;    /* of its disk */
};

static struct reader {
    uint64_t known;         /* the moment of the latest counts that it has */
    struct found read;      /* those that it may not have yet */
    struct found must_read; /* it found by a survey that there are some; moment 0: it did not */
} readers[NODES_MAX];       /* by slot */

static struct overran {
    uint64_t twice;    /* the moment of its second count */
    struct found take; /* another one took it over ... */
    uint32_t slot;     /* ... that one, */
    uint64_t boot;     /* of that boot */
} overrans[SUBJECTS_MAX];

static uint64_t moment;

/* Derived from the seed, not drawn from the run's source: runs without it are unaffected. */
void overruns_begin(void)
{
    any = hash_stable(&world.seed, sizeof world.seed) % RUNS_ONE_IN == 0;
    memset(readers, 0, sizeof readers);
    memset(overrans, 0, sizeof overrans);
    moment = 0;
}

/* ---- who knows of it ---- */

void overruns_boot(const struct node *n)
{
    readers[n->slot] = (struct reader){.known = ++moment};
}

static bool has(const struct node *n, const struct found *f)
{
    return f->moment && f->run <= n->disk.dones;
}

void overruns_read(const struct node *n, bool ok)
{
    struct reader *r = &readers[n->slot];

    if (has(n, &r->read))
        r->known = r->read.moment;
    if (ok)
        r->read = (struct found){++moment, n->disk.runs};
    else
        r->must_read.moment = 0; /* it reads again with its next job */
}

void overruns_surveyed(const struct node *n)
{
    readers[n->slot].must_read = (struct found){++moment, n->disk.runs};
}

void overruns_taken_over(const struct node *n, struct slice task)
{
    const struct subject *t = subject_find(task);

    overrans[t - subjects.list] = (struct overran){.twice = overrans[t - subjects.list].twice,
                                                   .take = {++moment, n->disk.runs},
                                                   .slot = n->slot,
                                                   .boot = n->boot};
}

/* NULL: it cannot know of the second count. */
static const char *how_it_knows(const struct node *n, const struct overran *o)
{
    const struct reader *r = &readers[n->slot];

    if (r->known > o->twice || (has(n, &r->read) && r->read.moment > o->twice))
        return "has read of it";
    if (has(n, &r->must_read) && r->must_read.moment > o->twice)
        return "has seen that there are some";
    if (o->slot == n->slot && o->boot == n->boot && has(n, &o->take) && o->take.moment > o->twice)
        return "has taken it over";
    return NULL;
}

/* ---- evaluations ---- */

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

static void check_times(const struct node *n, struct slice task)
{
    const char *how = NULL;

    if (times_of(task) < TIMES_MAX)
        return;
    how = how_it_knows(n, &overrans[subject_find(task) - subjects.list]);
    if (how)
        broken("a task whose evaluations ended two nodes is not evaluated again", "%.*s: %s %s",
               SLICE_ARG(task), n->me, how);
    covered(COVER_OVERRUN_UNHEARD);
}

static void count(const struct overrun_count *c)
{
    struct error e = {0};

    enum err err = inner->ops->overrun_count(inner, c, &e);
    ASSERT(err == ERR_OK);
    if (times_of(c->task) == TIMES_MAX)
        overrans[subject_find(c->task) - subjects.list].twice = ++moment;
}

void overruns_evaluates(void *arg, struct slice task, bool begins)
{
    struct node *n = arg;
    const struct overrun_count c = {.task = task, .by = 1, .at = store_now()};

    n->deeds += begins;
    if (!begins || n->dead || !is_endless(task))
        return;
    check_times(n, task);
    bool counted = chance(COUNTED) && !store_is_away() && n->disk.cut_until <= world.now;
    trace("%s evaluates %.*s without end%s", n->me, SLICE_ARG(task), counted ? ", counted" : "");
    if (counted)
        count(&c);
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
