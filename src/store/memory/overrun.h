#ifndef STORE_MEMORY_OVERRUN_H
#define STORE_MEMORY_OVERRUN_H

/* Evaluations that took far too long, in memory. */

#include "base/arena.h"
#include "store/rows/overrun.h"

struct mem_overrun {
    struct overrun row;
    struct arena arena;
};

struct mem_overruns {
    struct mem_overrun *list; /* in no order */
    size_t count;
};

void mem_overruns_fini(struct mem_overruns *m);
void mem_overrun_count(struct mem_overruns *m, const struct overrun_count *c);
void mem_overrun_delete(struct mem_overruns *m, struct slice task);
/* Deletes what is older, unless `keeps` returns true: its task may continue. */
void mem_overrun_sweep(struct mem_overruns *m, int64_t before,
                       bool (*keeps)(void *arg, struct slice task), void *arg);
/* The latest first. */
void mem_overrun_list(const struct mem_overruns *m, struct arena *a, struct overrun **ret,
                      size_t *ret_count);

#endif
