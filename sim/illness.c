/* Lets instances of agents fall ill and recover, in some runs, from a random source of its own
 * (illness.h). agents.c asks how an instance is; check_health.c checks how nodes treat it. */

#include "sim/illness.h"

#include "base/when.h"
#include "sim/coverage.h"
#include "sim/weather.h"
#include "sim/world.h"

enum illness { WELL, FAILS, HANGS, SLOW, ILLNESSES };

static struct prng prng;
static int64_t well_ms, ill_ms; /* mean times */

static int64_t some_ms(int64_t mean)
{
    return 1 + prng_below(&prng, (uint32_t)(2 * mean));
}

static void turns(void *arg, uint64_t n)
{
    struct worker *w = arg;
    (void)n;

    if (world.calm)
        return;
    w->illness = w->illness ? WELL : 1 + prng_below(&prng, ILLNESSES - 1);
    covered(COVER_SICK);
    trace("%s is %s", w->name,
          w->illness == WELL    ? "well"
          : w->illness == FAILS ? "ill and fails"
          : w->illness == HANGS ? "ill and hangs"
                                : "ill and slow");
    later(some_ms(w->illness ? ill_ms : well_ms), turns, w, 0);
}

void illness_begin(void)
{
    prng = (struct prng){.state = hash_stable(&world.seed, sizeof world.seed) ^ 0x111};
    if (prng_below(&prng, 3) > 0)
        return;
    well_ms = some_ms(MS_PER_MIN);
    ill_ms = some_ms(2 * MS_PER_MIN);
    struct worker *w = NULL;
    for (uint32_t i = 0; (w = agents_worker(i)); i++)
        if (prng_below(&prng, 2) == 0)
            later(some_ms(well_ms), turns, w, 0);
    if (prng_below(&prng, 2) > 0)
        return;
    /* no other faults of agents, so that ill instances stand out */
    weather.refuses = weather.fails_none = weather.fails_unknown = weather.refuses_unknown = 0;
    weather.silent = weather.hangs = weather.slow = weather.dies = weather.rolls_back = 0;
}

void illness_calm(void)
{
    struct worker *w = NULL;

    for (uint32_t i = 0; (w = agents_worker(i)); i++)
        w->illness = WELL;
}

bool illness_follow(struct gig *g)
{
    int64_t left = g->deadline - world.now;
    struct act act = {.says = SAYS_AGAIN, .takes = some_ms(20)};

    if (g->worker->illness == WELL || world.calm)
        return false;
    if (g->worker->illness == HANGS)
        act.says = SAYS_NOTHING;
    if (g->worker->illness == SLOW && left > 10)
        act = (struct act){.says = SAYS_DONE, .takes = left - left / 10 - 1};
    gig_acts(g, &act);
    return true;
}
