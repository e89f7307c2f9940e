/* Plays scenes: the beats of each, the scripts of agents, the expected result, and functions by
 * which scenes find the task, a step or its owner (scene.h). The scene_*.c files have the
 * scenes. */

#include "sim/scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "core/attempts.h"
#include "sim/beats.h"
#include "sim/bell.h"
#include "sim/check.h"
#include "sim/family.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/long.h"
#include "sim/notices.h"
#include "sim/operations.h"
#include "sim/outage.h"
#include "sim/sql.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { STORY_MS = 60 * MS_PER_MIN, ENDED_MS = 4 * MS_PER_H, AFTERWARDS_MS = 100 * MS_PER_S };

/* The current scene. */
static const struct scene *scene;
static struct flow flow, child;
static uint32_t beat;
static int64_t beat_at;  /* when the last beat happened */
static uint64_t *counts; /* the coverage of this run */

/* ---- for beats and expectations ---- */

void store_workflow(void)
{
    flow_store(&flow);
}

struct subject *the_task(void)
{
    return &subjects.list[0];
}

const struct seen_step *the_step(uint32_t step)
{
    return &the_task()->seen.steps[step];
}

const struct seen_attempt *the_attempt(uint32_t step, enum direction d, uint32_t number)
{
    return seen_find(the_step(step), d, number);
}

struct node *the_owner(void)
{
    NODES_FOREACH (n)
        if (node_owns(n, the_task()->seen.owner))
            return n;
    return NULL;
}

struct node *the_leader(void)
{
    struct supervisor_stats stats;

    NODES_FOREACH (n) {
        if (!node_is_awake(n))
            continue;
        supervisor_stats(n->supervisor, &stats);
        if (stats.leads)
            return n;
    }
    return NULL;
}

bool is_open(uint32_t step, enum direction d, uint32_t number)
{
    const struct seen_attempt *a = the_attempt(step, d, number);

    return a && a->outcome == OUTCOME_OPEN;
}

bool begun(uint32_t step, enum direction d, uint32_t number)
{
    return the_task()->ledger[step].begun[d] >= number;
}

uint32_t count_tasks(bool (*is)(const struct seen *s))
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < subjects.count; i++)
        count += subjects.list[i].seen.revision != 0 && is(&subjects.list[i].seen);
    return count;
}

bool met(enum cover c)
{
    return counts[c] > 0;
}

void submit_all(void)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        people_want(&subjects.list[i], ASK_SUBMIT, -1, ANY_NODE);
}

void scene_must(bool ok, const char *what)
{
    if (ok)
        return;
    describe(the_task());
    broken(scene->name, "%s", what);
}

/* ---- the play ---- */

static bool play_is_over(void)
{
    return beat == BEATS_MAX || !scene->beats[beat].what;
}

static void follows_script(struct gig *g)
{
    struct act act = {.says = SAYS_DONE, .takes = between(1, 30)};

    for (uint32_t i = 0; i < PARTS_MAX && scene->parts[i].act.says; i++) {
        const struct part *p = &scene->parts[i];
        if ((p->step != g->step && p->step != step_of_unit(g->step)) || p->direction != g->direction
            || (p->attempt != 0 && p->attempt != g->attempt)
            || (p->worker != 0 && g->worker != agents_worker(p->worker - 1))
            || (p->task != 0 && g->task != &subjects.list[p->task - 1]) || (p->act.dies && g->again)
            || (p->meanwhile && play_is_over()))
            continue;
        act = p->act;
        if (act.takes > 0)
            act.takes += between(0, min_i64(act.takes / 20, MS_PER_S));
        break;
    }
    if (scene->scattered)
        g->home = g->step % nodes.names;
    gig_acts(g, &act);
}

static void wakes_the_beat(void *arg, uint64_t n)
{
    (void)arg;
    (void)n; /* only the time matters: beats are checked after every occurrence */
}

static void await_beat(void)
{
    const struct beat *b = &scene->beats[beat];

    beat_at = world.now;
    if (beat < BEATS_MAX && b->what && b->after_ms > 0)
        later(b->after_ms, wakes_the_beat, NULL, 0);
}

static void play(void)
{
    if (scene->always.what)
        scene_must(scene->always.until(), scene->always.what);
    while (!play_is_over()) {
        const struct beat *b = &scene->beats[beat];
        if (world.now < beat_at + b->after_ms || (b->until && !b->until()))
            return;
        trace("beat: %s", b->what);
        if (b->then)
            b->then();
        beat++;
        await_beat();
    }
}

/* ---- the result ---- */

static char letter_of(const struct seen_attempt *a)
{
    switch (a->outcome) {
    case OUTCOME_OPEN:
        return 'O';
    case OUTCOME_COMPLETED:
        return 'C';
    case OUTCOME_FAILED:
        return 'F';
    case OUTCOME_TIMED_OUT:
        return 'T';
    case OUTCOME_NOT_SENT:
        return 'N';
    case OUTCOME_LATE:
        return 'L';
    }
    UNREACHABLE();
}

static void spell(const struct seen_step *s, char *ret)
{
    enum direction last = DIRECTION_FORWARD;

    for (uint32_t i = 0; i < s->attempt_count; i++) {
        if (s->attempts[i].direction != last)
            *ret++ = '/';
        last = s->attempts[i].direction;
        *ret++ = letter_of(&s->attempts[i]);
    }
    *ret = 0;
}

static bool is_like(const char *text, const char *pattern)
{
    bool many = pattern[0] && pattern[1] == '*';
    bool maybe = pattern[0] && pattern[1] == '?';

    if (!pattern[0])
        return !text[0];
    if ((many || maybe) && is_like(text, pattern + 2))
        return true;
    if (text[0] != pattern[0])
        return false;
    return is_like(text + 1, many ? pattern : maybe ? pattern + 2 : pattern + 1);
}

static int world_of(const struct ledger *l)
{
    return ledger_stands(l) ? STANDS : l->undone_at ? UNDONE : l->tombstone ? BARRED : NOTHING;
}

static void check_fate(const struct subject *t, uint32_t i)
{
    const struct fate *f = t->parent ? &scene->child_fates[i] : &scene->fates[i];
    const struct seen_step *s = &t->seen.steps[i];
    char text[2 * ATTEMPTS_KEPT];

    if (!f->attempts)
        return;
    spell(s, text);
    if (s->state == f->state && is_like(text, f->attempts)
        && world_of(&t->ledger[i]) == (int)f->world)
        return;
    describe(t);
    broken(scene->name, "%s/s%u is %s by %s (%d), not %s by %s (%d)", t->id, i,
           step_state_text(s->state), text, world_of(&t->ledger[i]), step_state_text(f->state),
           f->attempts, (int)f->world);
}

static void check_fates(void)
{
    if (!play_is_over())
        broken(scene->name, "its case was not met: never \"%s\"", scene->beats[beat].what);
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        enum task_state end = t->parent ? scene->child_end : scene->end;
        if (t->seen.state != end && !(t->parent && scene->children_differ)) {
            describe(t);
            broken(scene->name, "%s is %s", t->id, task_state_text(t->seen.state));
        }
        for (uint32_t k = 0; k < t->flow->step_count; k++)
            check_fate(t, k);
    }
    if (scene->expect)
        scene->expect();
}

/* ---- a run ---- */

static void becomes_calm(void)
{
    trace("the scene is over");
    world.calm = true;
    world.calm_at = world.now;
    weather_calm();
    agents_calm();
}

/* A booting node draws how many tasks fit in its memory: draws that would give it other room than
 * the scene needs are skipped. */
static void seek_room(void)
{
    for (;;) {
        struct prng next = world.prng;
        bool is_limited = prng_below(&next, 1000) < 150;
        if (scene->narrow ? is_limited && prng_below(&next, 6) == 0 : !is_limited)
            return;
        (void)prng_next(&world.prng);
    }
}

static void begin_child(void)
{
    flow_fix(&child, "f1", &nodes.registry);
    flow_store(&child);
    for (uint32_t i = 0; i < flow.step_count; i++)
        if (flow.steps[i].is_child) {
            flow.steps[i].is_wait = true;
            flow.steps[i].child = &child;
        }
}

static void begin(uint64_t seed, bool loud)
{
    bool shared = scene->nodes > 1;

    world_begin(seed, loud);
    trace("scene %s", scene->name);
    memset(counts, 0, coverage_size());
    weather = (struct weather){.gone_noticed = 1000, .store_ms = 10};
    store_begin(shared);
    nodes_begin(shared);
    nodes.names = shared ? scene->nodes : 1;
    nodes.round_trip_max = 0;
    nodes.rows_max = scene->rows;
    nodes_clocks_are(shared ? between(0, 200) : 0);
    check_nodes_begin();
    bell_begin();
    check_leases_begin();
    check_breakers_begin();
    check_limits_begin();
    check_health_begin();
    outage_begin();
    operations_begin_scene(scene->operations);
    bool family = scene->child.step_count > 0;
    sql_begin_scene(scene->sql || family);
    sql_signals_begin(false, family);
    families_begin(family);
    long_begin_scene();
    flow = scene->flow;
    child = scene->child;
    if (family)
        begin_child();
    flow_fix(&flow, "f0", &nodes.registry);
    if (!scene->unknown)
        flow_store(&flow);
    people_begin_scene(scene->tasks ? scene->tasks : 1, &flow);
    beats_begin(true);
    agents_begin_scene(scene->places ? scene->places : 4, scene->absent, follows_script);
    if (scene->twins)
        agents_serve_one();
    if (scene->narrow || scene->roomy)
        seek_room();
    nodes_boot();
    check_regularly();
    if (!scene->unasked)
        submit_all();
    beat = 0;
    await_beat();
}

static void run(uint64_t seed, bool loud)
{
    begin(seed, loud);
    int64_t end = world.now + STORY_MS;
    do
        play();
    while ((!play_is_over() || !world_is_done()) && world_step(end));
    becomes_calm();
    world_runs_out(world.now + ENDED_MS, AFTERWARDS_MS);
    check_world_end();
    check_fates();
    nodes_end();
    store_end();
    world_end();
}

/* ---- all scenes ---- */

static const struct scene *const lists[] = {
    scenes_of_doubt,      scenes_of_agents,  scenes_of_nodes,        scenes_of_long,
    scenes_of_breakers,   scenes_of_routing, scenes_of_hands,        scenes_of_sql,
    scenes_of_operations, scenes_of_groups,  scenes_of_causes,       scenes_of_undo,
    scenes_of_families,   scenes_of_items,   scenes_of_item_children};

int scenes_print(void)
{
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const struct scene *s = lists[i]; s->name; s++)
            printf("%-24s %s\n", s->name, s->sentence);
    return 0;
}

int scene_play(const char *name, uint64_t seed, uint64_t runs, bool loud)
{
    bool all = strcmp(name, "all") == 0;
    uint32_t played = 0;

    counts = calloc(1, coverage_size());
    ASSERT(counts);
    coverage_share(counts);
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (scene = lists[i]; scene->name; scene++) {
            if (!all && strcmp(name, scene->name) != 0)
                continue;
            played++;
            for (uint64_t k = 0; k < runs; k++)
                run(seed + k, loud);
        }
    if (played == 0)
        fprintf(stderr, "sim: there is no scene \"%s\"\n", name);
    else
        printf("%u scenes over %" PRIu64 " seeds each passed, from seed %" PRIu64 " on\n", played,
               runs, seed);
    return played > 0 ? 0 : 2;
}
