#ifndef STORE_ROWS_OVERRUN_H
#define STORE_ROWS_OVERRUN_H

/* Evaluations of expressions that took far too long. */

#include "base/arena.h"

/* A row of the table `overrun`: a task, stored or about to be, whose evaluations ended a server or
 * are about to. */
struct overrun {
    struct slice task;
    int64_t times;
    int64_t at; /* the last time, ms UTC */
};

/* One more of a task, or one that came to its end after all. */
struct overrun_count {
    struct slice task;
    int by;     /* 1; or -1: what has come to nothing is deleted */
    int64_t at; /* ms UTC */
};

enum { OVERRUNS_MAX = 1000 /* that are read: the latest */ };

/* A row without a task that could go on is of use for so long, since a submission may be repeated:
 * those that are older are deleted when one is counted. */
#define OVERRUN_KEPT_MS INT64_C(604800000)

#endif
