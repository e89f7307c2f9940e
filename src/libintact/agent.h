#ifndef LIBINTACT_AGENT_H
#define LIBINTACT_AGENT_H

/*
 * A running agent. One thread (that of intact_agent_run, the comms thread) owns all of this; only
 * the pool is shared with the workers.
 *
 *     server --answer--> peer --requests--> agent_take --> pool (or inline)
 *     server <--call---- peer <--results--- agent_collect <---+
 */

#include "base/log.h"
#include "base/map.h"
#include "base/prng.h"
#include "libintact/heartbeat.h"
#include "libintact/peer.h"
#include "libintact/pool.h"

struct agent {
    struct intact_agent_options options; /* with the defaults filled in */
    char instance[160];
    CURLM *multi;
    struct curl_slist *headers;
    struct pool pool;
    struct heartbeats heartbeats;
    struct map held; /* token -> request: in work, or its result not yet acknowledged */
    struct peer *peers;
    size_t peer_count;
    struct prng prng;
    bool stopping;
    int64_t stop_by; /* when it stops trying to deliver */
};

/* Requests that a peer was handed; each is counted in its peer's `working` until it is done. */
void agent_take(struct agent *a, struct link *requests);

/* The handler that is meant; NULL: there is none. */
const struct intact_handler *agent_handler(const struct agent *a, const char *action,
                                           enum intact_direction direction);

void agent_release(struct agent *a, struct intact_request *r); /* nobody wants it any more */
void agent_log(const struct agent *a, enum log_level level, const char *fmt, ...) PRINTF(3, 4);

#endif
