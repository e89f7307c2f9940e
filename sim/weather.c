/* Draws the faults of a run and their frequency from the seed, and ends them for the second act
 * (weather.h). The files that cause faults read them from there: wire.c, disk.c, storm.c,
 * agents.c and others. */

#include "sim/weather.h"

#include "base/when.h"
#include "sim/world.h"

struct weather weather;

/* Nothing, a little, or much. */
static uint32_t some(uint32_t most)
{
    switch (below(4)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return 1 + below(most / 10 + 1);
    }
    return 1 + below(most);
}

static int64_t mean_time(int64_t least, int64_t most)
{
    return chance(450) ? 0 : spread(least, most);
}

/* One statement per draw, because the order of initializers is unspecified. */
void weather_draw(void)
{
    weather = (struct weather){0};
    weather.call_lost = some(150);
    weather.call_doubled = some(150);
    weather.call_slow = some(200);
    weather.answer_lost = some(200);
    weather.answer_slow = some(200);
    weather.gone_noticed = below(1001);
    weather.refuses = some(250);
    weather.fails_none = some(400);
    weather.fails_unknown = some(300);
    weather.refuses_unknown = some(200);
    weather.silent = some(200);
    weather.hangs = some(150);
    weather.slow = some(300);
    weather.dies = some(100);
    weather.records = chance(500);
    weather.undo_refuses = some(200);
    weather.names_retry_after = some(500);
    weather.ignores_stop = some(800);
    weather.deaf = some(100);
    weather.store_fails = some(100);
    weather.store_unknown = some(100);
    weather.store_stalls = some(30);
    weather.store_refuses = some(20);
    weather.read_fails = some(100);
    weather.store_ms = 1 + below(chance(200) ? 400 : 10);
    weather.crash_ms = mean_time(3000, 10 * MS_PER_MIN);
    weather.suspend_ms = mean_time(10000, 10 * MS_PER_MIN);
    weather.drain_ms = mean_time(10000, 10 * MS_PER_MIN);
    weather.crash_inside = some(60);
    weather.outage_max_ms = spread(100, 10 * MS_PER_MIN);
    weather.blackout_ms = chance(700) ? 0 : spread(20000, 5 * MS_PER_MIN);
    weather.usurp_ms = mean_time(20000, 10 * MS_PER_MIN);
    weather.cut_ms = mean_time(10000, 10 * MS_PER_MIN);
    weather.deaf_ms = mean_time(10000, 10 * MS_PER_MIN);
    weather.clock_jumps = some(800);
    weather.clock_jump_max_ms = spread(1000, MS_PER_H);
    weather.operator_ms = mean_time(500, 2 * MS_PER_MIN);
    weather.operator_answers = below(3) * 450;
    weather.wild_clocks = chance(50);
    weather.deposes = some(100);
    weather.roles = chance(250);
    weather.failover_ms = chance(600) ? 0 : spread(20000, 5 * MS_PER_MIN);
    weather.standby_clock = some(1000);
    weather.limits = chance(500) ? 0 : (uint32_t)between(100, 700);
    weather.limits_ms = chance(700) ? 0 : spread(5000, 5 * MS_PER_MIN);
    weather.breakers = chance(700);
    weather.service_ms = mean_time(10000, 5 * MS_PER_MIN);
    weather.hand_ms = chance(700) ? 0 : spread(10000, 5 * MS_PER_MIN);
    weather.transactions = some(1000);
    weather.rolls_back = some(200);
}

/* Some faults hide others: a node that crashes often finds again what it had lost. These runs have
 * much of one kind of fault. */
void weather_theme(void)
{
    switch (below(16)) {
    case 0: /* a bad disk under a node that stays up */
    case 1:
        weather.crash_ms = weather.drain_ms = weather.suspend_ms = 0;
        weather.crash_inside = 0;
        weather.store_unknown = (uint32_t)between(50, 300);
        weather.store_fails = (uint32_t)between(50, 200);
        weather.deaf = (uint32_t)between(0, 300);
        weather.gone_noticed = 1000;
        break;
    case 2: /* pivots in doubt */
    case 3:
    case 6:
        weather.pivots = true;
        weather.hangs = (uint32_t)between(200, 600);
        weather.refuses = (uint32_t)between(100, 300);
        weather.silent = weather.dies = weather.slow = 0;
        weather.operator_ms = 0;
        break;
    case 4: /* expressions that fail while other things happen */
    case 5:
        weather.bad_expressions = true;
        weather.refuses = (uint32_t)between(100, 400);
        weather.store_ms = (uint32_t)between(50, 400);
        break;
    case 7: /* a machine that is often suspended, with unreliable reads */
        weather.alone = true;
        weather.crash_ms = between(10000, 30000);
        weather.suspend_ms = between(2000, 6000);
        weather.outage_max_ms = between(5000, 20000);
        weather.read_fails = (uint32_t)between(400, 700);
        break;
    case 9: /* busy operators, and agents that leave much in doubt */
        weather.operator_ms = between(300, 3000);
        weather.operator_answers = 900;
        weather.fails_unknown = (uint32_t)between(100, 400);
        weather.crash_ms = weather.drain_ms = weather.suspend_ms = 0;
        break;
    case 10: /* leaders whose lease has expired when they write */
        weather.wild_clocks = true;
        weather.crash_ms = weather.drain_ms = weather.cut_ms = 0;
        weather.store_ms = (uint32_t)between(300, 2000);
        weather.silent = (uint32_t)between(200, 600);
        break;
    case 14: /* services that are unavailable again and again */
    case 15:
        weather.breakers = true;
        weather.service_ms = between(5000, 60000);
        weather.crash_ms = weather.drain_ms = weather.suspend_ms = 0;
        weather.refuses = weather.hangs = weather.silent = 0;
        break;
    case 8: /* only lost answers, many of them */
        weather.answer_lost = (uint32_t)between(200, 600);
        weather.silent = weather.dies = weather.deaf = 0;
        weather.crash_ms = weather.suspend_ms = weather.drain_ms = 0;
        weather.crash_inside = 0;
        break;
    }
}

void weather_calm(void)
{
    weather = (struct weather){.gone_noticed = 1000, .store_ms = 5, .records = weather.records};
}
