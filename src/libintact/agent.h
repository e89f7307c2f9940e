#ifndef LIBINTACT_AGENT_H
#define LIBINTACT_AGENT_H

/*
 * An agent. The thread that drives it owns all of this; shared are only the pool, the outbox and
 * `stop_wanted`.
 *
 *     server --answer--> peer --requests--> agent_take --> pool (or inline)
 *     server <--call---- peer <--results--- collect <--- outbox <---+
 */

#include "base/log.h"
#include "base/map.h"
#include "base/prng.h"
#include "libintact/agent_outbox.h"
#include "libintact/heartbeat.h"
#include "libintact/installation.h"
#include "libintact/nodes.h"
#include "libintact/peer.h"
#include "libintact/pool.h"
#include "libintact/stop.h"
#include "libintact/wire.h"
#include "net/reactor.h"

struct agent_handler {
    char *action;
    enum intact_direction direction;
    intact_handler *run;
    void *arg;
};

struct agent_options {
    char *name, *instance;
    char *server, *token, *ca, *installation; /* NULL: the default */
    struct agent_handler *handlers;
    size_t handler_count;
    unsigned concurrency;
    bool inline_handlers;
    bool discovery;
    bool automatic_beats;
    struct retry_rule retry;
    int64_t wait_ms, stop_wait_ms;
    int door; /* replaces the server's address, see door.h; 0: none */
    intact_logger *log;
    void *log_arg;
    char mistake[200]; /* the first invalid setting; "": none */
};

enum agent_phase { AGENT_NEW, AGENT_RUNS, AGENT_OVER };

struct intact_agent {
    struct link of_process; /* in the list of all agents */
    struct agent_options options;
    enum agent_phase phase;
    enum intact_agent_result outcome;
    struct reactor reactor;
    struct curl_slist *headers;
    struct installation installation;
    bool is_mixed;      /* its servers belong to two installations: it ends */
    int64_t meet_until; /* until then no call for work before every server has named its
                         * installation; 0: done */
    struct pool pool;
    struct outbox *outbox;
    struct map held;     /* token -> request: in work, or its result not acknowledged yet */
    struct link backlog; /* requests running without a place yet, see places.h */
    size_t running;      /* requests with a place */
    size_t pulsing;      /* requests running whose steps require heartbeats */
    int64_t share_at;    /* when to share out places without an event */
    int64_t neglect_at;  /* no neglected node is asked before */
    struct peer **peers;
    size_t peer_count;
    struct nodes nodes;
    struct prng prng;
    atomic_bool stop_wanted; /* for this agent only */
    struct stop_seat stop_seat;
    bool driven;        /* by a call that has not returned */
    bool holds_sigpipe; /* while it is driven: libssl writes to sockets without MSG_NOSIGNAL */
    struct wire_held sigpipe;
    bool stopping;
    int64_t seen_at; /* when deadlines were last checked */
    int64_t stop_by; /* when it gives up delivering */
};

/* Takes over requests from a peer; each counts in its peer's `working` until it is done. */
void agent_take(struct intact_agent *a, struct link *requests);
void agent_feed(struct intact_agent *a); /* starts requests from the backlog while there are
                                          * places */

/* Sets run and arg. */
void agent_find_handler(const struct intact_agent *a, struct intact_request *r);

void agent_unwatch(struct intact_agent *a, struct intact_request *r); /* its stop needs no report
                                                                       * any more */
/* The request is finished. `status`: the server's answer to its result; NONE: none. */
void agent_release(struct intact_agent *a, struct intact_request *r, struct slice status);
void agent_log(const struct intact_agent *a, enum log_level level, const char *fmt, ...)
    PRINTF(3, 4);

/* Reaches the server only through that door (door.h). Before the agent starts. */
void agent_set_door(struct intact_agent *a, int door);

void agent_enlist(struct intact_agent *a); /* adds it to the list of the process */
void agent_delist(struct intact_agent *a);
void agent_break_off(struct intact_agent *a); /* aborts it; harmless if it does not run */

#endif
