/* Reads the clocks of the machine (clock.h): this is the only file of the program that does so.
 * The core and other pure rooms get the time as an argument; the simulator has a clock of its own
 * (sim/world.c). */

#include "base/clock.h"

#include "base/base.h"

static struct timespec now(clockid_t id)
{
    struct timespec t = {0};

    if (clock_gettime(id, &t) != 0)
        return (struct timespec){0};
    return t;
}

int64_t clock_read_ms(clockid_t id)
{
    struct timespec t = now(id);

    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
    return clock_read_ms(CLOCK_REALTIME);
}

int64_t clock_steady_ms(void)
{
    return clock_read_ms(CLOCK_MONOTONIC);
}

int64_t clock_steady_us(void)
{
    struct timespec t = now(CLOCK_MONOTONIC);

    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_boot_ms(void)
{
    return clock_read_ms(CLOCK_BOOTTIME);
}

struct timespec clock_in_ms(clockid_t id, int64_t ms)
{
    struct timespec t = now(id);

    ASSERT(ms >= 0);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

uint64_t clock_seed(void)
{
    struct timespec t = now(CLOCK_REALTIME);

    return (uint64_t)t.tv_nsec;
}
