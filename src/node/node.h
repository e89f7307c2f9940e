#ifndef NODE_NODE_H
#define NODE_NODE_H

/*
 * The node: what its parts share. A part includes this header and those of the modules that it
 * uses. Its own state is its own: what background/ and api/ keep, only these folders know
 * (background/room.h, api/room.h).
 *
 * Used by the loop's thread alone, but for what a module says otherwise.
 */

#include <uv.h>

#include "base/log.h"
#include "catalog/catalog.h"
#include "http/http.h"
#include "node/channels.h"
#include "node/clock.h"
#include "node/config.h"
#include "node/limit.h"
#include "node/metrics.h"
#include "node/pressure.h"
#include "node/trouble.h"
#include "scheduler/scheduler.h"
#include "supervisor/supervisor.h"

struct server {
    struct server_config config;
    struct server_limits limits;
    char holder[80];  /* "node/boot": the name under which it holds leases */
    char source[256]; /* of CloudEvents; that of the configuration is shorter */
    uv_loop_t loop;
    bool draining, ended;
    struct node_clock clock;
    struct store_trouble trouble;
    struct load load;
    struct metrics metrics;
    struct overview *overview; /* the last hour */

    /* the store */
    struct store_thread *thread;
    struct store_queue *store;
    struct readings *readings;
    struct changes *changes; /* that people make beside tasks */

    /* tasks */
    struct registry workflows;
    struct catalog *catalog; /* of what other nodes store; NULL: the store is this node's alone */
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct token_key *key;     /* of attempts */
    struct contents *contents; /* tells one submission from another */
    struct channels channels;

    /* clients */
    struct http_server *http;
    char always[192]; /* the header lines of every answer */
    struct access *access;
    struct sessions *sessions;
    struct quotas *quotas; /* http_request.account is that of its token, or NULL */
    struct fair *fair;
    struct offload *definitions, *bodies; /* queues of large ones, for a thread */
    /* The name of the token of the request that is being handled (NONE: it needs none); until its
     * handler returns. */
    struct slice caller;
    /* Other tokens are good now. Set by the assembly, since it concerns open streams. */
    void (*tokens_changed)(struct server *sv);

    struct background *background; /* what only background/ knows */
    struct api *api;               /* what only api/ knows */
};

#endif
