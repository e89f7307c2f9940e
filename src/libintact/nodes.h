#ifndef LIBINTACT_NODES_H
#define LIBINTACT_NODES_H

/*
 * Which servers an agent works for. It is given some addresses, the seeds, and asks them for the
 * list of nodes (GET /v1/nodes): at its start, every few seconds, and when one is lost. It works
 * for the live nodes that claim tasks:
 *
 *  - A seed represents the node as which it answers: the address that was given is known to work,
 *    while the node's own address may mean something else here.
 *  - Every other node is called by its own address, once it has answered there under the name in
 *    the list. So no node is called twice, and none under a wrong address.
 *  - A seed that has answered as several nodes is a gate, a proxy that distributes calls. It is
 *    used only while no node can be called by its own address.
 *  - A seed that does not say who it is (an older server, or a proxy that filters) is used as it
 *    is.
 *
 * Lists are accepted from seeds, and from nodes found through them. The token is sent to every
 * address in a list, except one without TLS if the list came by TLS.
 *
 * A missing or unreadable list changes nothing.
 */

#include "libintact/peer.h"
#include "json/json.h"

enum { SEEDS_MAX = 64, NODES_MAX = 320 /* peers including seeds */ };

struct node {
    char name[NODE_NAME_SIZE];
    char *url;     /* as in peer.server; NULL: none */
    char mark[80]; /* identifies one run of the node; differs after a restart */
    bool works;    /* it can be worked for */
};

struct nodes {
    struct node *list; /* the latest list */
    size_t count;
    int64_t refresh_at, refreshed_at;
    size_t turn; /* the next one to ask */
};

/* Creates peers for the seeds. False: an address, or libcurl, is unusable. */
bool nodes_open(struct intact_agent *a) MUST_USE;
void nodes_close(struct intact_agent *a); /* requires that no call is busy */

void nodes_tick(struct intact_agent *a, int64_t now);
int64_t nodes_wake_at(const struct intact_agent *a);

/* Handles the answer to a question; NULL: it was not a list. */
void nodes_answered(struct peer *p, const struct json *answer);
/* Another installation answered there: it only gets the same question again, later. */
void nodes_left(struct peer *p);
/* A call failed. `unreachable`: without any answer. */
void nodes_lost(struct peer *p, bool unreachable);

struct peer *nodes_any_healthy(struct intact_agent *a); /* one that accepts results; NULL: none */
bool nodes_any_other(const struct peer *p);             /* whether there is another one */

#endif
