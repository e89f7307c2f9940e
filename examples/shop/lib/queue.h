#ifndef SHOP_LIB_QUEUE_H
#define SHOP_LIB_QUEUE_H

/*
 * A connection to the broker, by AMQP 1.0. It is made when it is opened, and made again whenever it
 * broke, by a thread of its own; how that goes is told on stderr.
 *
 * A message is lent (peek-lock): it leaves the queue once its handler is done with it, and comes
 * again if the handler, the process, the connection or the broker dies before that. So it may come
 * twice, and a message that is sent may be there twice: its id tells.
 *
 *     struct queue *q = queue_open("amqp://shop:secret@127.0.0.1:5672", "web");
 *     struct queue_message m = {.queue = "shop.orders", .id = "o-1", .body = text, .size = size};
 *     if (queue_send(q, &m, 5000) != QUEUE_ACCEPTED)
 *         ... 503: try again, under the same id
 *     queue_close(q);
 */

#include <stddef.h>

struct queue;

struct queue_message {
    const char *queue;   /* its name; RabbitMQ makes a durable one if it is not there */
    const char *id;      /* message-id; NULL: it came without one, or with one that is no text */
    const char *subject; /* for people; may be NULL */
    const char *body;    /* bytes, and a NUL behind them in what comes */
    size_t size;
};

enum queue_sent {
    QUEUE_ACCEPTED, /* the broker has it on disk: it is not lost any more */
    QUEUE_REFUSED,  /* the broker does not take it: it is larger than it may be, for instance */
    QUEUE_AWAY,     /* not in time: nobody knows whether the broker has it */
};

enum queue_verdict {
    QUEUE_DONE,  /* what is to come of it is durable: it leaves the queue */
    QUEUE_AGAIN, /* not now: it goes back to the queue, and nothing comes for a second */
};

/* In the queue's thread, one message at a time. While it works nothing else of this connection goes
 * on, and queue_send() to it would wait for itself: who receives and sends opens two. */
typedef enum queue_verdict queue_fn(void *arg, const struct queue_message *m);

/* `url`: amqp://[USER:PASSWORD@]HOST[:PORT]; NULL comes back if it is not. `name` is what the
 * broker knows us as. Does not wait for the broker. */
struct queue *queue_open(const char *url, const char *name);

/* Once for a connection: from now on what is in the queue comes to `fn`; the broker lends us
 * `credit` messages at a time. */
void queue_receive(struct queue *q, const char *queue, int credit, queue_fn *fn, void *arg);

/* Returns when the broker has accepted it, durably. Any thread may send. */
enum queue_sent queue_send(struct queue *q, const struct queue_message *m, int timeout_ms);

/* What was lent goes back to its queue. No handler runs any more. NULL is fine. */
void queue_close(struct queue *q);

#endif
