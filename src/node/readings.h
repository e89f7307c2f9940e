#ifndef NODE_READINGS_H
#define NODE_READINGS_H

/*
 * The reading thread: lists, records and counts that clients ask for. It has a connection to the
 * store of its own, so changes and the node's own reads never wait for it.
 *
 * Each token has two lines: one for reads of a single object, one for reads of many. Lines take
 * turns, one read each. So a token that reads much delays others by one of its reads at most, and
 * its own short reads by one long one.
 */

#include <uv.h>

#include "store/job.h"

struct readings;

/*
 * Results are returned in parts: `done` is called for no more than fits into a slice of a round
 * (fair.h), and its time is charged to its account. While an account rests, its results wait. The
 * thread continues to read while waiting results hold at most READINGS_HELD_MAX.
 */
enum { READINGS_HELD_MAX = 32 << 20 };

enum reading_kind { READING_ONE, READING_MANY };

struct readings_config {
    struct store *store; /* its `reading` is used; where it has none, all goes to `instead` */
    struct store_queue *instead; /* who is asked while that is not usable; from any thread */
    size_t line_max;             /* of those that look at many; of the others more */
    /* Until when an account rests, 0: it does not; and that `done` took time. May be NULL. */
    uint64_t (*rests_until)(void *arg, void *account, uint64_t now_ns);
    void (*worked)(void *arg, void *account, uint64_t now_ns, uint64_t took_ns);
    void *arg;
};

struct readings_stats {
    size_t waiting;   /* in all lines */
    size_t held;      /* bytes that were read, and not handed back */
    uint64_t refused; /* since the start */
};

/* 0, or why the thread cannot be started, as libuv's (negative) code: then the loop must run once
 * more, to close a handle. */
int readings_start(uv_loop_t *loop, const struct readings_config *c, struct readings **ret);

/* Has the line of that token (NONE: there are none) room? Asked before one is handed in for the
 * first time; false is counted as refused. */
bool readings_have_room(struct readings *rs, struct slice token, enum reading_kind kind);

/* `run` is called on the thread, with what reads; `done` later on the loop. */
void readings_add(struct readings *rs, struct slice token, enum reading_kind kind,
                  struct store_job *j);

/* The result is not needed any more: if the read has not begun, `run` is not called, and `done` is
 * called soon. */
void readings_drop(struct readings *rs, struct store_job *j);

void readings_stats(struct readings *rs, struct readings_stats *ret);

/* None is out. Ends the thread, and closes the way to the store. The memory is freed when libuv has
 * let go of the handle. */
void readings_stop(struct readings *rs);

#endif
