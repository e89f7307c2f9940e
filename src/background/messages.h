#ifndef BACKGROUND_MESSAGES_H
#define BACKGROUND_MESSAGES_H

/* Status messages: the courier of this node, which delivers them while the node leads, and its
 * counts. */

#include "node/part.h"
#include "outbox/courier.h"

struct messages;
struct server;

void messages_are_new(struct server *sv); /* in the store */
void messages_stored(struct server *sv, const struct message *list, size_t count); /* these */
void messages_changed(struct server *sv); /* an operator changed some, on this node */
void messages_check_generation(struct server *sv, uint64_t generation); /* the same, on any node */

int64_t messages_paused_until(const struct server *sv, struct slice target, char *story);
/* Passes each target a receiver of which has not answered yet. */
void messages_each_delivery(const struct server *sv, void (*take)(void *arg, struct slice target),
                            void *arg);
/* For the metrics; the census of the store is as of a little earlier. */
void messages_stats(struct server *sv, struct courier_stats *ret, struct outbox_census *ret_census);

extern const struct part messages_part;

#endif
