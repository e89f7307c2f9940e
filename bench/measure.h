#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

/* Helpers of most benches: a clock, and an order of figures for their median. */

#include <time.h>

static inline double now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static inline double now_ms(void)
{
    return now_us() / 1e3;
}

/* For doubles in qsort. */
static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

#endif
