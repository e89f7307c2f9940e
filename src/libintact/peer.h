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
 * A peer that is given no places calls once a second, to hear which requests to stop, and for the
 * server to know that we are there.
 *
 * Before its first call for work, and whenever it could not be reached, a server is asked who it is
 * (nodes.h). How many places it is given is for places.h.
 */

#include "libintact/call.h"

struct intact_agent;

enum { NODE_NAME_SIZE = 64 };

struct peer {
    struct intact_agent *agent;
    char *server; /* "http://HOST:PORT", without a slash at its end */
    char *url, *beat_url, *nodes_url;
    struct call main, side, beat, ask;
    int64_t beat_sent_at; /* when heartbeats were sent last */
    struct link ready;    /* results to hand in */
    size_t working;       /* requests of this server that are not done */

    /* nodes.h: */
    bool is_seed;    /* one that we were given; never forgotten */
    bool is_listed;  /* the latest list has a node with this address that can be worked for */
    bool is_gate;    /* a seed behind which there are several nodes */
    bool answered;   /* when asked who it is, since it could last be reached */
    bool ask_wanted; /* it is to be asked, as soon as it may be called */
    bool confirmed;  /* not a seed: it has answered as the node that it is listed as */
    bool used;       /* it is given places */
    bool told_of;    /* that it is another than it is listed as */
    char self[NODE_NAME_SIZE];  /* as which node it answered; "": it did not say */
    char other[NODE_NAME_SIZE]; /* a gate: as which node it had answered before */
    char name[NODE_NAME_SIZE];  /* not a seed: as which node it is listed */

    /* meet.h: */
    bool is_met;     /* a call has ended, whichever way */
    bool is_foreign; /* it belongs to another installation */

    /* places.h: */
    size_t allowed;       /* places that it may be asked to fill */
    int64_t offered_at;   /* when it last had a call that asked for work */
    int64_t useful_at;    /* when it last had work */
    int64_t excess_since; /* its call is parked with more places than there are; 0: it is not */
    bool call_home;       /* its parked call is to be answered */
    int64_t home_by; /* it was asked to be; then again: that word may have overtaken the call */

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
    int64_t beat_ms;    /* from one call with heartbeats to the next, at least */
    int64_t hand_in_ms; /* a call with results: then another server gets them, if there is one */
    int64_t refresh_ms; /* from one look at the list of nodes to the next; up to an eighth more */
    int64_t lost_ms;    /* the same, when one was lost */
    int64_t idle_ms;    /* a parked call that was silent for so long is taken for an idle node's */
    int64_t excess_ms;  /* one that asks for too much is called home */
    int64_t home_ms;    /* and again, if it does not come */
    int64_t neglect_ms; /* a node that was not asked for so long has a turn */
} peer_timing;

bool peer_init(struct peer *p, struct intact_agent *a, struct slice server) MUST_USE;
void peer_fini(struct peer *p);

void peer_tick(struct peer *p, int64_t now); /* starts the calls that are due */
int64_t peer_wake_at(const struct peer *p,
                     int64_t now); /* when to tick although nothing happened */
void peer_answered(struct peer *p, struct call *c, CURLcode code);     /* a call has ended */
void peer_done(struct peer *p, struct intact_request *r, int64_t now); /* it is done */

void peer_stop(struct peer *p);    /* breaks off a parked call */
void peer_leave(struct peer *p);   /* no more work from it: what is parked comes home */
void peer_abandon(struct peer *p); /* breaks off all calls; results return to `ready` */
void peer_put_off(struct peer *p); /* it is not what it should be: it is asked again, and later */
bool peer_is_over(const struct peer *p); /* nothing points to it any more */
bool peer_is_idle(const struct peer *p); /* no call runs, nothing is to be said */

#endif
