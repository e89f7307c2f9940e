#ifndef NODE_PART_H
#define NODE_PART_H

/*
 * A part of a node: what the node does besides serving requests, or what requests share. Each part
 * defines one `struct part` beside its code; server/parts.c lists them in the order in which they
 * are opened and take their turns. A function that a part does not need is NULL.
 */

#include "base/err.h"

struct server;

struct part {
    const char *name;
    /* Makes it, and hangs it on the node. */
    enum err (*open)(struct server *sv, struct error *e);
    /* Does what is due. Returns when it wants the next turn, by the node's clock; 0: when something
     * happens. */
    int64_t (*turn)(struct server *sv);
    /* After all turns: is there more that it can do at once? */
    bool (*goes_on)(const struct server *sv);
    /* The node begins to end: nothing new is begun. */
    void (*drain)(struct server *sv);
    /* After that: may the node end? */
    bool (*is_drained)(const struct server *sv);
    /* The node ends: clients and child processes are let go. */
    void (*hang_up)(struct server *sv);
    /* After that: has the store jobs of it? */
    bool (*is_busy)(const struct server *sv);
    /* Its handles are closed; the loop still runs until they are. */
    void (*close)(struct server *sv);
    /* The loop has ended: so does its memory. */
    void (*free)(struct server *sv);
};

#endif
