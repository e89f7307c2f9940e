#ifndef NODE_PRESSURE_H
#define NODE_PRESSURE_H

/* Bounds on what waits for the store and on the memory of requests, and whose time the loop and the
 * reading thread spend. */

#include "node/exchange.h"
#include "node/readings.h"

struct ask;
struct changes;

/* What is open, counted so that it is bounded. All of it is zero at the end. */
struct load {
    size_t asks_open, asks_bytes; /* changes that were not answered, and what their requests hold */
    size_t reads_open;            /* with the store */
    size_t lines_open;            /* of batches, with the scheduler */
    size_t lines_waiting;         /* of batches, for the ends of their tasks */
    size_t readers_open;          /* requests that wait to see something */
    size_t untagged_open;         /* results whose tokens only their tasks can verify */
    size_t exchanges;             /* those that the store works on, and `awaiting` */
    size_t awaiting;              /* readers of a task that wait for its end */
};

bool asks_have_room(struct server *sv, struct http_request *r, size_t bytes); /* false: answered */
size_t asks_left(const struct server *sv);         /* that may still be opened */
bool asks_may_grow(const struct server *sv);       /* by one more line */
void server_ask(struct server *sv, struct ask *a); /* hands it to the scheduler, and counts it */

/* What the tree of one text from outside may take. It is memory as the text is, and more of it. */
size_t trees_max(const struct server *sv);
size_t trees_left(const struct server *sv); /* the same, as far as there is room just now */

bool reads_have_room(struct server *sv, struct http_request *r); /* false: answered */
/* The same for a reading that waits in the line of its token, which is begun by reading_begin. */
bool reading_has_room(struct server *sv, struct http_request *r, enum reading_kind kind);
void reading_begin(struct exchange *x, enum reading_kind kind, struct store_job *j);

bool answer_has_room(struct server *sv, struct http_request *r, size_t bytes); /* false: answered */

struct changes *pressure_changes(struct server *sv); /* for server.changes */

/* What the loop does for the account of a token (struct quota; NULL: nobody's); arg is the server.
 */
void account_worked(void *arg, void *account, uint64_t now_ns, uint64_t took_ns);
uint64_t account_rests_until(void *arg, void *account, uint64_t now_ns); /* 0: it does not */

#endif
