#ifndef NODE_VIRTUAL_TIME_H
#define NODE_VIRTUAL_TIME_H

/*
 * The time of a server whose time is virtual (`intact serve --virtual-time`). It stands still, and
 * jumps to the next moment at which something is due: server/virtual_clock.c decides when.
 *
 *     auto     whenever nothing is under way and a task waits for a time
 *     waits    the same, but only while a client waits for the end of a task
 *     manual   never by itself
 *
 * In each of them a client may advance it (struct advance).
 */

#include <stdatomic.h>

#include "base/buf.h"
#include "base/list.h"

struct server;

enum virtual_mode { VIRTUAL_AUTO, VIRTUAL_WAITS, VIRTUAL_MANUAL };

struct virtual_time {
    atomic_int_fast64_t now_ms;    /* UTC. Any thread */
    atomic_int_fast64_t jumped_ms; /* the sum of all jumps. Any thread */
    /* All else: the loop's thread. */
    enum virtual_mode mode;
    struct link advances;     /* of struct advance, in the order in which they came */
    int64_t header_ms;        /* the time in the headers of answers; 0: none yet */
    void (*woken)(void *arg); /* an advance was added, or taken out. Set by who decides */
    void *arg;
};

enum advance_end {
    ADVANCE_DONE,   /* it is `to`, and nothing more happens by itself at this time */
    ADVANCE_HELD,   /* what is under way did not end within patience_ms of real time */
    ADVANCE_ENDING, /* the server ends */
};

/* The wish to move the clock to `to`, by all that is due on the way. to 0: only to know what holds
 * the clock, once all that the server has to do by itself is done. */
struct advance {
    struct link link;
    int64_t to;
    int64_t patience_ms;
    bool regardless; /* what holds the clock at the beginning is not waited for */
    void (*ended)(struct advance *a, enum advance_end how);
    /* out */
    int64_t next_at;      /* when something is due next; 0: nothing is */
    struct buf held;      /* what holds the clock: objects in JSON, separated by commas */
    struct buf held_text; /* the same for a person: the first of them */
    size_t held_count;
    /* of who decides */
    struct buf excused; /* lines: what is not waited for */
    bool is_begun;
    int64_t still_since; /* steady: since then it is held by the same; 0: it is not */
};

const char *virtual_mode_text(enum virtual_mode mode);
bool virtual_mode_find(const char *text, enum virtual_mode *ret); /* false: there is none */

/* The loop. `a` must live until `ended` was called, or it was taken back. */
void virtual_advance(struct virtual_time *vt, struct advance *a);
void virtual_take_back(struct virtual_time *vt, struct advance *a);
void advance_fini(struct advance *a);

/* The time in the header lines of all answers (`always` of the server) becomes that of the clock.
 */
void virtual_headers(struct server *sv);

#endif
