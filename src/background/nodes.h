#ifndef BACKGROUND_NODES_H
#define BACKGROUND_NODES_H

/* The nodes that share the store: this node's row there, and a list of all of them that is at most
 * a second old. */

#include "base/list.h"
#include "node/part.h"
#include "store/store.h"

struct server;
void nodes_listening(struct server *sv); /* the address is known now: the row is stored */
void nodes_surveyed(struct server *sv);  /* each second: agents may have connected or gone */

const struct node_row *nodes_own(const struct server *sv);
bool nodes_are_fresh(const struct server *sv);
/* The list as of its last reading; valid until the next one. */
const struct node_row *nodes_list(const struct server *sv, size_t *ret_count);

/* Someone who waits for the list to be read. */
struct nodes_wait {
    struct link link;
    void (*done)(struct nodes_wait *w, enum err err, const char *story);
};

void nodes_read(struct server *sv, struct nodes_wait *w); /* a reading serves all who wait */

extern const struct part nodes_part;

#endif
