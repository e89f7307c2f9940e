#ifndef BACKGROUND_AMQP_H
#define BACKGROUND_AMQP_H

/*
 * The channel of status messages to queues. The child process `intact agent amqp` speaks AMQP: it
 * receives a message as one packet, and returns the outcome in another. Messages without an outcome
 * when it ends are sent again.
 */

#include "amqp/amqp_config.h"
#include "background/helper.h"
#include "outbox/channel.h"

struct amqp_channel;

/* `c` outlives it. Never NULL. Given to its child's helper_config as `listener`, before the server
 * runs; closed after it. */
struct amqp_channel *amqp_channel_new(const struct amqp_config *c);
const struct helper_listener *amqp_channel_listener(const struct amqp_channel *a);
struct channel *amqp_channel_channel(struct amqp_channel *a);
void amqp_channel_free(struct amqp_channel *a); /* NULL is fine */

#endif
