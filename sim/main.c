#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/people.h"
#include "sim/storm.h"
#include "sim/weather.h"
#include "sim/world.h"

/* Everything must have ended by then, after the faults stopped. */
enum { SECOND_ACT_S = 4 * 3600, AFTERWARDS_S = 100, LAST_S = 5 };

struct options {
    uint64_t seed, runs;
    uint32_t tasks; /* 0: drawn */
    bool trace, twice, quiet;
    const char *seeds; /* a file of seeds that once failed */
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
}

static void looks_around(void *arg, uint64_t n)
{
    check_owned();
    if (world.calm)
        check_overdue();
    later(1000, looks_around, arg, n);
}

static uint64_t run(uint64_t seed, const struct options *o)
{
    world_begin(seed, o->trace);
    weather_draw();
    weather_theme();
    int64_t first_act = spread(20 * MS_PER_S, 12 * MS_PER_MIN);
    uint32_t flow_count = 1 + below(FLOWS_MAX);
    bool shared = chance(550);
    store_begin(shared);
    nodes_begin(shared);
    check_nodes_begin();
    flows_draw(flows, flow_count, &nodes.registry);
    people_begin(o->tasks ? o->tasks : 1 + below(chance(100) ? 60 : 15), first_act, flow_count,
                 flows);
    agents_begin(SERVICES_MAX);
    nodes_boot();
    storm_begin();
    later(first_act, becomes_calm, NULL, 0);
    later(0, looks_around, NULL, 0);
    int64_t end = world.now + first_act;
    while (world_step(end))
        ;
    end = world.now + SECOND_ACT_S * MS_PER_S;
    while (!world_is_done() && world_step(end))
        ;
    int64_t after =
        world.now + AFTERWARDS_S * MS_PER_S; /* late effects, waits, results of no use */
    while (world_step(after))
        ;
    while (!world_is_done() && world_step(end)) /* what only arrived now */
        ;
    after = world.now + LAST_S * MS_PER_S;
    while (world_step(after))
        ;
    check_world_end();
    uint64_t digest = world.digest;
    trace("the end");
    nodes_end();
    store_end();
    world_end();
    return digest;
}

static void run_seed(uint64_t seed, const struct options *o)
{
    uint64_t digest = run(seed, o);

    if (o->twice && run(seed, o) != digest) {
        fprintf(stderr, "broken: a seed is one run: seed %" PRIu64 "\n", seed);
        exit(1);
    }
    if (!o->quiet && o->runs == 1)
        printf("seed %" PRIu64 ": passed, digest %016" PRIx64 "\n", seed, digest);
}

/* One a line; what follows a number, or a #, is for people. */
static void run_file(const struct options *o)
{
    char line[200];
    FILE *f = fopen(o->seeds, "r");

    if (!f) {
        perror(o->seeds);
        exit(2);
    }
    while (fgets(line, sizeof line, f))
        if (line[0] >= '0' && line[0] <= '9')
            run_seed(strtoull(line, NULL, 10), o);
    (void)fclose(f); /* it was only read */
}

static struct options options_of(int argc, char **argv)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'},  {"runs", required_argument, NULL, 'r'},
        {"tasks", required_argument, NULL, 'n'}, {"trace", no_argument, NULL, 't'},
        {"twice", no_argument, NULL, '2'},       {"quiet", no_argument, NULL, 'q'},
        {"seeds", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0},
    };
    struct options o = {.seed = 1, .runs = 1};

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
    if (o.seeds)
        run_file(&o);
    for (uint64_t i = 0; i < o.runs; i++)
        run_seed(o.seed + i, &o);
    if (!o.quiet && o.runs > 1) {
        printf("%" PRIu64 " runs passed, from seed %" PRIu64 " on\n", o.runs, o.seed);
        coverage_print();
    }
    return 0;
}
