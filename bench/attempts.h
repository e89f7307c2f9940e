#ifndef BENCH_ATTEMPTS_H
#define BENCH_ATTEMPTS_H

#include "base/base.h"

/* Does everything that limits, health and breaker do for one attempt, from its want of a place to
 * its end, `rounds` times, without the scheduler. 1000 attempts begin in each ms. */
void attempts_run(bool limited, long rounds);

#endif
