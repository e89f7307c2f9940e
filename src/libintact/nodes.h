#ifndef LIBINTACT_NODES_H
#define LIBINTACT_NODES_H

/*
 * Which servers an agent works for. It is given some addresses, the seeds, and asks them for the
 * list of nodes (GET /v1/nodes): at its start, every few seconds, and when one is lost. It works
 * for the nodes that are alive and claim tasks:
 *
 *  - A seed stands for the node as which it answers: whoever gave it knows the way, and the
 *    address under which a node goes among others may mean something else here.
 *  - Every other node is called by the address that it goes by, once it has answered there as the
 *    one that it is listed as. So no node is called twice, and one with a wrong address not at all.
 *  - A seed that has answered as several nodes is a gate, behind which somebody shares out calls.
 *    It is used only as long as no node can be called by an address of its own.
 *  - A seed that does not say who it is (an older server, or somebody in front of it who lets
 *    through what he knows) is used as it is.
 *
 * Lists are believed that come from seeds, or from nodes that were found through them. Our token
 * goes to every address of a list; not to one without TLS if the list came by TLS.
 *
 * A list that does not come, or cannot be read, changes nothing.
 */

#include "libintact/peer.h"
#include "json/json.h"

enum { SEEDS_MAX = 64, NODES_MAX = 320 /* peers, seeds among them */ };

struct node {
    char name[NODE_NAME_SIZE];
    char *url;     /* as in peer.server; NULL: none */
    char mark[80]; /* which start of it: another one has another */
    bool works;    /* it can be worked for */
};

struct nodes {
    struct node *list; /* the latest */
    size_t count;
    int64_t refresh_at, refreshed_at;
    size_t turn; /* whom to ask next */
};

/* Peers for the seeds. False: an address, or libcurl, cannot be used. */
bool nodes_open(struct intact_agent *a) MUST_USE;
void nodes_close(struct intact_agent *a); /* no call of a peer is busy */

void nodes_tick(struct intact_agent *a, int64_t now);
int64_t nodes_wake_at(const struct intact_agent *a);

/* Whoever was asked has answered; NULL: with something else than a list. */
void nodes_answered(struct peer *p, const struct json *answer);
/* Another installation has answered there: nothing but the same question goes there, later. */
void nodes_left(struct peer *p);
/* A call failed. `unreachable`: without any answer. */
void nodes_lost(struct peer *p, bool unreachable);

struct peer *nodes_any_healthy(struct intact_agent *a); /* that takes results; NULL: none */
bool nodes_any_other(const struct peer *p);             /* is there another one? */

#endif
