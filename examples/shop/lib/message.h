#ifndef SHOP_LIB_MESSAGE_H
#define SHOP_LIB_MESSAGE_H

/* Messages as bytes of AMQP 1.0: what queue.c sends and receives. */

#include <proton/types.h>

#include "queue.h"

/* Durable. To be freed. */
pn_rwbytes_t message_encode(const struct queue_message *m);

/* Hands it to its handler. What is no message of AMQP 1.0 comes as a body without an id. */
enum queue_verdict message_deliver(const char *queue, pn_rwbytes_t bytes, queue_fn *fn, void *arg);

#endif
