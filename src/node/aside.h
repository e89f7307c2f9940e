#ifndef NODE_ASIDE_H
#define NODE_ASIDE_H

/*
 * Work that takes too long for the event loop and needs nothing of it: parsing large bodies,
 * compiling definitions. It is done on a thread of libuv's pool, one job at a time, so that it
 * takes the memory of one job only.
 *
 * Each token has a line of jobs, and lines take turns, one job each. So a token that sends much
 * delays others by one of its jobs at most. A token may have a quarter of all places and bytes, so
 * no token can fill them alone. Jobs that may wait (ASIDE_LATER) begin when there is no other job,
 * and get half of all places and bytes.
 *
 * Event loop only, except for `run`.
 */

#include <uv.h>

#include "base/base.h"
#include "base/list.h"

struct aside;

/* Up to so many bytes the loop parses a JSON text itself: that takes a few milliseconds. */
enum { BODY_SMALL = 64 << 10 };

enum aside_rank { ASIDE_SOON, ASIDE_LATER, ASIDE_RANKS };

/* Embed it in what the job works on; nothing else touches that in between. Zeroed at first. */
struct aside_job {
    void (*run)(struct aside_job *j);  /* on a thread */
    void (*done)(struct aside_job *j); /* later, on the loop */
    size_t bytes;                      /* that it holds meanwhile */
    /* Ours: */
    struct link link;
    struct aside *aside;
    void *line; /* NULL: it has begun */
    uv_work_t work;
};

struct aside_stats {
    size_t waiting, bytes; /* with the one that is at work */
    uint64_t run, refused; /* since the start */
};

struct aside *aside_new(uv_loop_t *loop, size_t count_max, size_t bytes_max);
void aside_free(struct aside *as); /* nothing is open any more */

/* Is there room for a job of this token (or NONE)? False is counted as refused. */
bool aside_has_room(struct aside *as, struct slice token, enum aside_rank rank, size_t bytes);
/* Whether there is room or not. */
void aside_add(struct aside *as, struct slice token, enum aside_rank rank, struct aside_job *j);
/* True: it had not begun, and neither `run` nor `done` is called. */
bool aside_drop(struct aside_job *j);

void aside_stats(const struct aside *as, struct aside_stats *ret);

#endif
