#ifndef BACKGROUND_AMQP_H
#define BACKGROUND_AMQP_H

/*
 * The channel of status messages to queues. What speaks AMQP is the child `intact agent amqp`: a
 * message goes to it as one packet, and it says in another what became of it. What it had when it
 * ended is to be sent again.
 */

#include "amqp/amqp_config.h"
#include "background/helper.h"
#include "outbox/channel.h"

struct amqp_channel;

/* `c` outlives it. Never NULL. Given to its child's helper_config as `ears`, before the server
 * runs; closed after it. */
struct amqp_channel *amqp_channel_new(const struct amqp_config *c);
const struct helper_ears *amqp_channel_ears(const struct amqp_channel *a);
struct channel *amqp_channel_channel(struct amqp_channel *a);
void amqp_channel_free(struct amqp_channel *a); /* NULL is fine */

#endif
