#ifndef LIBINTACT_PEER_H
#define LIBINTACT_PEER_H

/*
 * One server that an agent works for, and when to call it.
 *
 * The main call fetches work and may be parked by the server; it says what we hold, and takes along
 * the results that are ready when it leaves. While it is parked, results go by the side call, which
 * asks for nothing. Results that become ready while a call is on its way gather for the next one.
 *
 * Lingering: handlers that return at once have their results ready a moment after their requests
 * came. Then the next main call waits for them, and one round trip does the work of two.
 *
 * Heartbeats go by a call of their own: nothing else waits for them.
 *
 * A peer whose places are all taken calls once a second, to hear which requests to stop.
 */

#include "libintact/call.h"

struct intact_agent;

struct peer {
    struct intact_agent *agent;
    char *url, *beat_url;
    struct call main, side, beat;
    int64_t beat_at;   /* no heartbeats before */
    struct link ready; /* results to hand in */
    size_t share;      /* places of the agent that are for this server */
    size_t working;    /* requests of this server that are not done */

    uint32_t failures; /* of calls, one after another */
    int64_t retry_at;  /* no call before */
    size_t result_max; /* in one call; 1 after a call was refused: one of them may be to blame */
    uint32_t idle_answers; /* in a row: came early and brought nothing */

    int64_t linger_until;
    bool quick;      /* the last batch was done before lingering was over */
    int64_t poll_at; /* when to call although no place is free */
    bool farewell;   /* stopping: a parked call was broken off, say what we hold */
};

/* How long things take; a variable so that tests need not wait. */
extern struct peer_timing {
    int64_t retry_ms, retry_max_ms;     /* connection lost, 5xx, 408, 429 */
    int64_t refused_ms, refused_max_ms; /* other 4xx: nothing changes until a person does */
    int64_t linger_ms;
    int64_t poll_ms;
    int64_t beat_ms; /* from one call with heartbeats to the next, at least */
} peer_timing;

bool peer_init(struct peer *p, struct intact_agent *a, const char *server, size_t len,
               size_t share) MUST_USE;
void peer_fini(struct peer *p);

void peer_tick(struct peer *p, int64_t now); /* starts the calls that are due */
int64_t peer_wake_at(const struct peer *p,
                     int64_t now); /* when to tick although nothing happened */
void peer_answered(struct peer *p, struct call *c, CURLcode code);     /* a call has ended */
void peer_done(struct peer *p, struct intact_request *r, int64_t now); /* it is done */

void peer_stop(struct peer *p);          /* breaks off a parked call */
void peer_abandon(struct peer *p);       /* breaks off all calls; results return to `ready` */
bool peer_is_idle(const struct peer *p); /* no call runs, nothing is to be said */

#endif
