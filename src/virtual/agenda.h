#ifndef VIRTUAL_AGENDA_H
#define VIRTUAL_AGENDA_H

/*
 * What is to happen in virtual time: occurrences in a heap, ordered by time, then by the order in
 * which they were added. No clock is read, so a run is repeatable. The simulator has one, and so
 * has each test of `intact test`. A zeroed agenda is empty.
 */

#include "base/heap.h"

typedef void happen_fn(void *arg, uint64_t n);

struct occurrence {
    struct heap_node node; /* its key is the time */
    happen_fn *happen;
    void *arg;
    uint64_t n;
};

enum { AGENDA_SPARE_MAX = 1024 };

struct agenda {
    struct heap heap;
    struct occurrence *spare[AGENDA_SPARE_MAX]; /* for reuse */
    size_t spare_count;
};

void agenda_fini(struct agenda *g);

/* Calls `happen(arg, n)` at `at`. */
void agenda_add(struct agenda *g, int64_t at, happen_fn *happen, void *arg, uint64_t n);

/* The time of the next occurrence; INT64_MAX: there is none. */
int64_t agenda_next_at(const struct agenda *g);

/* Takes the next occurrence out of the agenda. False: it is after `until`, or there is none. */
bool agenda_take(struct agenda *g, int64_t until, struct occurrence *ret) MUST_USE;

#endif
