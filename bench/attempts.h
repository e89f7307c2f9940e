#ifndef BENCH_ATTEMPTS_H
#define BENCH_ATTEMPTS_H

#include "base/base.h"

/* All that is asked for one attempt of limits, health and breaker, from its want of a place to its
 * end, `rounds` times; without the scheduler around it. A thousand begin in each ms. */
void attempts_run(bool limited, long rounds);

#endif
