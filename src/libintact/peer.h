#ifndef LIBINTACT_PEER_H
#define LIBINTACT_PEER_H

/*
 * One server that an agent works for, and when to call it.
 *
 * The main call fetches work and may be parked by the server. It reports the requests held, and
 * carries the results that are ready when it is sent. While it is parked, results go by the side
 * call, which asks for no work. Results that become ready while a call is under way are gathered
 * for the next one.
 *
 * Lingering: handlers that return at once have results shortly after their requests came. Then the
 * next main call waits for them, which saves a round trip.
 *
 * Heartbeats have a call of their own: nothing else waits for them.
 *
 * A peer without places calls once a second, to learn which requests to stop, and to show the
 * server that the agent is alive.
 *
 * Before its first call for work, and after it was unreachable, a server is asked who it is
 * (nodes.h). places.h decides how many places it gets.
 */

#include "libintact/call.h"

struct intact_agent;

enum { NODE_NAME_SIZE = 64 };

struct peer {
    struct intact_agent *agent;
    char *server; /* "http://HOST:PORT", without a trailing slash */
    char *url, *beat_url, *nodes_url;
    struct call main, side, beat, ask;
    int64_t beat_sent_at; /* when heartbeats were last sent */
    struct link ready;    /* results to send */
    size_t working;       /* requests of this server that are not done */

    /* nodes.h: */
    bool is_seed;               /* a configured address; never dropped */
    bool is_listed;             /* the latest list has a usable node with this address */
    bool is_gate;               /* a seed with several nodes behind it */
    bool answered;              /* it said who it is since it was last unreachable */
    bool ask_wanted;            /* it must be asked as soon as a call is possible */
    bool confirmed;             /* not a seed: it has answered as the listed node */
    bool used;                  /* it gets places */
    bool told_of;               /* a wrong answer was logged */
    char self[NODE_NAME_SIZE];  /* the node as which it answered; "": unknown */
    char other[NODE_NAME_SIZE]; /* a gate: the node as which it answered before */
    char name[NODE_NAME_SIZE];  /* not a seed: the listed node */

    /* meet.h: */
    bool is_met;     /* a call has ended, with any result */
    bool is_foreign; /* it belongs to another installation */

    /* places.h: */
    size_t allowed;       /* places that it may be asked to fill */
    int64_t offered_at;   /* the last call that asked it for work */
    int64_t useful_at;    /* when it last had work */
    int64_t excess_since; /* since when its parked call asks for more places than there are; 0: it
                           * does not */
    bool call_home;       /* its parked call must be answered */
    int64_t home_by; /* time of the request to end it; repeated later, because it may overtake the
                      * call */

    uint32_t failures;     /* consecutive failed calls */
    int64_t retry_at;      /* no call before */
    size_t result_max;     /* in one call; 1 after a call was refused, to isolate the bad one */
    uint32_t idle_answers; /* consecutive answers that came early without work */

    int64_t linger_until;
    bool quick;      /* the last batch was done before lingering ended */
    int64_t poll_at; /* when to call without a free place */
    bool farewell;   /* stopping: a parked call was aborted, report what is held */
};

/* Timing; a variable so that tests can be fast. */
extern struct peer_timing {
    int64_t retry_ms, retry_max_ms;     /* connection lost, 5xx, 408, 429 */
    int64_t refused_ms, refused_max_ms; /* other 4xx: nothing changes until a person acts */
    int64_t linger_ms;
    int64_t poll_ms;
    int64_t beat_ms;    /* minimum between calls with heartbeats */
    int64_t hand_in_ms; /* time limit of a call with results; then they go to another server, if
                         * there is one */
    int64_t refresh_ms; /* between requests for the list of nodes; up to an eighth more */
    int64_t lost_ms;    /* the same after a node was lost */
    int64_t idle_ms;    /* a parked call that is silent for so long is considered one of an idle
                         * node */
    int64_t excess_ms;  /* after this a call that asks for too much is ended */
    int64_t home_ms;    /* and again, if it does not end */
    int64_t neglect_ms; /* a node that was not asked for so long gets its turn */
} peer_timing;

bool peer_init(struct peer *p, struct intact_agent *a, struct slice server) MUST_USE;
void peer_fini(struct peer *p);

void peer_tick(struct peer *p, int64_t now);             /* starts the calls that are due */
int64_t peer_wake_at(const struct peer *p, int64_t now); /* when to tick without an event */
void peer_answered(struct peer *p, struct call *c, CURLcode code);     /* a call has ended */
void peer_done(struct peer *p, struct intact_request *r, int64_t now); /* the request is done */

void peer_stop(struct peer *p);          /* aborts a parked call */
void peer_leave(struct peer *p);         /* takes no more work from it: ends a parked call */
void peer_abandon(struct peer *p);       /* aborts all calls; results return to `ready` */
void peer_put_off(struct peer *p);       /* it is not the expected node: asks it again later */
bool peer_is_over(const struct peer *p); /* nothing refers to it any more */
bool peer_is_idle(const struct peer *p); /* no call runs or is due */

#endif
