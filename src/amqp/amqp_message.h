#ifndef AMQP_AMQP_MESSAGE_H
#define AMQP_AMQP_MESSAGE_H

/* Messages: text with a few properties. A peer may send an AMQP value instead of bytes; it is
 * converted to JSON. */

#include "base/arena.h"
#include "base/err.h"

struct amqp_property {
    struct amqp_property *next;
    struct slice name, value;
};

/* NONE: absent. */
struct amqp_message {
    struct slice id, correlation_id, to, reply_to, subject, group_id, content_type;
    struct slice body;
    struct amqp_property *properties; /* texts, numbers and booleans, as texts */
    int64_t expires_at, ttl_ms;       /* 0: never */
};

/* ERR_PARSE: unreadable; *e says why. The result is in `a`. */
enum err amqp_message_decode(struct arena *a, struct slice text, struct amqp_message *ret,
                             struct error *e) MUST_USE;
struct slice amqp_message_property(const struct amqp_message *m, const char *name);

/* Durable; from malloc. */
char *amqp_message_encode(const struct amqp_message *m, size_t *ret_size);

#endif
