#ifndef NODE_OFFLOAD_H
#define NODE_OFFLOAD_H

/*
 * Work that takes too long for the event loop and needs nothing of it: parsing large bodies,
 * compiling definitions. It is done on a thread of libuv's pool, one job at a time, so that it
 * takes the memory of one job only.
 *
 * Each token has a line of jobs, and lines take turns, one job each. So a token that sends much
 * delays others by one of its jobs at most. A token may have a quarter of all places and bytes, so
 * no token can fill them alone. Jobs that may wait (OFFLOAD_LATER) begin when there is no other
 * job, and get half of all places and bytes.
 *
 * Event loop only, except for `run`.
 */

#include <uv.h>

#include "base/base.h"
#include "base/list.h"

struct offload;

/* Up to so many bytes the loop parses a JSON text itself: that takes a few milliseconds. */
enum { BODY_SMALL = 64 << 10 };

enum offload_rank { OFFLOAD_SOON, OFFLOAD_LATER, OFFLOAD_RANKS };

/* What a token has of its share for a job that is still being received. Zeroed: nothing. */
struct offload_place {
    struct offload *offload;
    void *line;
    size_t bytes;
};

/* Embed it in what the job works on; nothing else touches that in between. Zeroed at first. */
struct offload_job {
    void (*run)(struct offload_job *j);  /* on a thread */
    void (*done)(struct offload_job *j); /* later, on the loop */
    size_t bytes;                        /* that it holds meanwhile */
    /* Ours: */
    struct link link;
    struct offload *offload;
    void *line; /* NULL: it has begun */
    uv_work_t work;
};

struct offload_stats {
    size_t waiting, bytes; /* with the one that is at work */
    uint64_t run, refused; /* since the start */
};

struct offload *offload_new(uv_loop_t *loop, size_t count_max, size_t bytes_max);
void offload_free(struct offload *o); /* nothing is open any more */

/* Is there room for a job of this token (or NONE)? False is counted as refused. */
bool offload_has_room(struct offload *o, struct slice token, enum offload_rank rank, size_t bytes);
/* Sets that much of the token's share aside. Others' jobs do not count, and do not see it: who
 * announces much and sends nothing keeps out its own jobs only. False is counted as refused. */
bool offload_place_take(struct offload *o, struct slice token, enum offload_rank rank, size_t bytes,
                        struct offload_place *ret);
void offload_place_leave(struct offload_place *p); /* harmless if it is zeroed */

/* Whether there is room or not. */
void offload_add(struct offload *o, struct slice token, enum offload_rank rank,
                 struct offload_job *j);
/* True: it had not begun, and neither `run` nor `done` is called. */
bool offload_drop(struct offload_job *j);

void offload_stats(const struct offload *o, struct offload_stats *ret);

#endif
