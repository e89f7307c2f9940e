#ifndef TASKS_CLOCK_H
#define TASKS_CLOCK_H

#include <stdint.h>

/* The store's time, in ms UTC; it never goes backwards. */
struct clock {
    int64_t (*now)(void *arg);
    void *arg;
};

#endif
