/* The cost of breaker, limits and health for a request: everything they do for one attempt, from
 * its want of a place to its end, without the scheduler. Usage: bench-routing */

#include <stdio.h>
#include <time.h>

#include "attempts.h"

enum { ROUNDS = 2000000 };

static int64_t steady_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double run(bool limited)
{
    int64_t begin = steady_ns();

    attempts_run(limited, ROUNDS);
    return (double)(steady_ns() - begin) / ROUNDS;
}

int main(void)
{
    (void)run(true);
    printf(
        "routing: %.0f ns a request without limits and breaker, %.0f ns with limits of agent and "
        "action and the breaker\n",
        run(false), run(true));
    return 0;
}
