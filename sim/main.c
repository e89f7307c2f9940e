/* The simulator's program: runs one seed, many seeds, a file of seeds, or scenes, and keeps seeds
 * that failed. options_of has the usage. many.c runs seeds in processes, scene.c plays scenes,
 * world.c is the loop of a run. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "sim/agents.h"
#include "sim/beats.h"
#include "sim/bell.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/illness.h"
#include "sim/long.h"
#include "sim/many.h"
#include "sim/node.h"
#include "sim/notices.h"
#include "sim/operations.h"
#include "sim/outage.h"
#include "sim/overruns.h"
#include "sim/people.h"
#include "sim/receivers.h"
#include "sim/rests.h"
#include "sim/retire.h"
#include "sim/scene.h"
#include "sim/schedules.h"
#include "sim/sql.h"
#include "sim/storm.h"
#include "sim/weather.h"
#include "sim/world.h"

/* Everything must have ended by then, after the faults stopped. */
enum { SECOND_ACT_S = 4 * 3600, AFTERWARDS_MS = 100 * MS_PER_S };

struct options {
    uint64_t seed, runs;
    uint32_t tasks; /* 0: drawn */
    uint32_t jobs;  /* processes */
    bool trace, twice, quiet, digests, keep_going;
    const char *seeds;    /* a file of seeds that once failed */
    const char *failures; /* a file to which failing seeds are added */
    const char *scene;
    bool scenes;
};

static struct flow flows[FLOWS_MAX];

static void becomes_calm(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    trace("the faults stop");
    world.calm = true;
    world.calm_at = world.now;
    weather_calm();
    nodes_calm();
    agents_calm();
    outage_calm();
    receivers_calm();
    illness_calm();
    operations_calm();
}

static uint64_t run(uint64_t seed, const struct options *o, bool heartbeats)
{
    world_begin(seed, o->trace);
    weather_draw();
    weather_theme();
    int64_t first_act = spread(20 * MS_PER_S, 12 * MS_PER_MIN);
    uint32_t flow_count = 1 + below(FLOWS_MAX);
    if (flows_family() && flow_count == 1)
        flow_count++;
    bool shared = chance(550) && !weather.alone;
    store_begin(shared);
    nodes_begin(shared);
    check_nodes_begin();
    check_leases_begin();
    check_breakers_begin();
    bell_begin();
    long_begin();
    check_limits_begin();
    check_health_begin();
    flows_draw(flows, flow_count, &nodes.registry);
    schedules_begin(flows, flow_count, first_act);
    sql_begin();
    sql_signals_begin(true, flows_family());
    families_begin(flows_family());
    people_begin(o->tasks ? o->tasks : 1 + below(chance(100) ? 60 : 15), first_act, flow_count,
                 flows);
    rests_begin();
    receivers_begin();
    beats_begin(heartbeats);
    agents_begin(SERVICES_MAX);
    illness_begin();
    outage_begin();
    overruns_begin();
    operations_begin(first_act);
    nodes_boot();
    storm_begin();
    retire_begin();
    later(first_act, becomes_calm, NULL, 0);
    check_regularly();
    int64_t end = world.now + first_act;
    while (world_step(end))
        ;
    end = world.now + SECOND_ACT_S * MS_PER_S;
    world_runs_out(end, AFTERWARDS_MS);
    check_world_end();
    check_bell();
    check_nothing_lost();
    overruns_check_end();
    uint64_t digest = world.digest;
    trace("the end");
    nodes_end();
    store_end();
    world_end();
    return digest;
}

static void run_seed(uint64_t seed, const struct options *o)
{
    uint64_t digest = run(seed, o, true);

    if (o->twice && run(seed, o, true) != digest)
        broken("a seed is one run", "%016" PRIx64 " at first", digest);
    if (o->twice && run(seed, o, false) != digest)
        broken("heartbeats change nothing", "%016" PRIx64 " with them", digest);
    if (o->digests)
        printf("%" PRIu64 " %016" PRIx64 "\n", seed, digest);
    else if (!o->quiet && o->runs == 1)
        printf("seed %" PRIu64 ": passed, digest %016" PRIx64 "\n", seed, digest);
}

static void run_one_of_many(uint64_t seed, const void *arg)
{
    run_seed(seed, arg);
}

/* One per line: SEED or SEED/TASKS; the rest is for people. */
static void run_file(const struct options *o)
{
    char line[300];
    FILE *f = fopen(o->seeds, "r");

    if (!f) {
        perror(o->seeds);
        exit(2);
    }
    while (fgets(line, sizeof line, f)) {
        char *rest = line;
        struct options this = *o;
        if (line[0] < '0' || line[0] > '9')
            continue;
        uint64_t seed = strtoull(line, &rest, 10);
        if (*rest == '/')
            this.tasks = (uint32_t)strtoul(rest + 1, NULL, 10);
        run_seed(seed, &this);
    }
    (void)fclose(f); /* it was only read */
}

/* A seed that failed is replayed by every later test run. */
static void keep_seed(uint64_t seed, const char *rule, const void *arg)
{
    const struct options *o = arg;
    FILE *f = o->failures ? fopen(o->failures, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%" PRIu64, seed);
    if (o->tasks)
        fprintf(f, "/%u", o->tasks);
    fprintf(f, "\t%s\n", rule);
    if (fclose(f) == 0)
        fprintf(stderr, "seed %" PRIu64 " is in %s now\n", seed, o->failures);
}

static struct options options_of(int argc, char **argv)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'},     {"runs", required_argument, NULL, 'r'},
        {"tasks", required_argument, NULL, 'n'},    {"trace", no_argument, NULL, 't'},
        {"twice", no_argument, NULL, '2'},          {"quiet", no_argument, NULL, 'q'},
        {"seeds", required_argument, NULL, 'f'},    {"digests", no_argument, NULL, 'd'},
        {"jobs", required_argument, NULL, 'j'},     {"keep-going", no_argument, NULL, 'k'},
        {"failures", required_argument, NULL, 'F'}, {"scene", required_argument, NULL, 'S'},
        {"scenes", no_argument, NULL, 'l'},         {NULL, 0, NULL, 0},
    };
    struct options o = {.seed = 1, .runs = 1, .jobs = 1};

    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 's')
            o.seed = strtoull(optarg, NULL, 10);
        else if (c == 'r')
            o.runs = strtoull(optarg, NULL, 10);
        else if (c == 'n')
            o.tasks = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 't')
            o.trace = true;
        else if (c == '2')
            o.twice = true;
        else if (c == 'q')
            o.quiet = true;
        else if (c == 'f')
            o.seeds = optarg;
        else if (c == 'F')
            o.failures = optarg;
        else if (c == 'S')
            o.scene = optarg;
        else if (c == 'l')
            o.scenes = true;
        else if (c == 'j')
            o.jobs = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'd')
            o.digests = true;
        else if (c == 'k')
            o.keep_going = true;
        else
            exit(2);
    }
    if (o.tasks > SUBJECTS_MAX) {
        fprintf(stderr, "sim: at most %d tasks\n", SUBJECTS_MAX);
        exit(2);
    }
    return o;
}

int main(int argc, char **argv)
{
    const struct options o = options_of(argc, argv);

    log_level_set(LOG_OFF);
    if (o.scenes)
        return scenes_print();
    if (o.scene)
        return scene_play(o.scene, o.seed, o.runs, o.trace);
    if (o.seeds)
        run_file(&o);
    if (o.trace || o.digests) {
        for (uint64_t i = 0; i < o.runs; i++)
            run_seed(o.seed + i, &o);
        return 0;
    }
    const struct many many = {.from = o.seed,
                              .count = o.runs,
                              .jobs = o.jobs,
                              .keep_going = o.keep_going,
                              .run = run_one_of_many,
                              .failed = keep_seed,
                              .arg = &o};
    uint64_t failures = many_run(&many);
    if (!o.quiet && o.runs > 1) {
        printf("%" PRIu64 " runs from seed %" PRIu64 " on, %" PRIu64 " failed\n", o.runs, o.seed,
               failures);
        if (failures == 0)
            coverage_print();
    }
    return failures > 0;
}
