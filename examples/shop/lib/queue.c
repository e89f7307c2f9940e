/* The callers' side of a connection to the broker (queue.h): opening, receiving with a handler,
 * sending, closing. Waits for the thread of broker.c, which does the work, under one lock. */

#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker.h"
#include "message.h"

static void *must(void *memory)
{
    if (!memory)
        abort(); /* a process that is started again is better than one that goes on without */
    return memory;
}

/* amqp://[USER:PASSWORD@]HOST[:PORT], taken apart in place. */
static bool take_apart(struct queue *q)
{
    char *rest = q->url + strlen("amqp://"), *at, *colon;

    if (strncmp(q->url, "amqp://", strlen("amqp://")) != 0)
        return false;
    rest[strcspn(rest, "/")] = '\0';
    at = strrchr(rest, '@');
    if (at) {
        *at = '\0';
        colon = strchr(rest, ':');
        if (!colon)
            return false;
        *colon = '\0';
        q->user = rest;
        q->password = colon + 1;
        rest = at + 1;
    }
    colon = strrchr(rest, ':');
    if (colon)
        *colon = '\0';
    q->host = rest;
    q->port = colon ? colon + 1 : "5672";
    return *q->host && *q->port;
}

static void queue_free(struct queue *q)
{
    free(q->url);
    free(q->name);
    free(q->receives);
    free(q);
}

struct queue *queue_open(const char *url, const char *name)
{
    struct queue *q = must(calloc(1, sizeof(*q)));
    pthread_condattr_t monotonic;

    q->url = must(strdup(url));
    q->name = must(strdup(name));
    if (!take_apart(q)) {
        queue_free(q);
        return NULL;
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->ended, &monotonic);
    q->proactor = must(pn_proactor());
    if (pthread_create(&q->thread, NULL, broker_run, q) != 0)
        abort();
    return q;
}

/* Under the lock: there is something to do. */
static void wake(struct queue *q)
{
    if (q->connection)
        pn_connection_wake(q->connection);
}

void queue_receive(struct queue *q, const char *queue, int credit, queue_fn *fn, void *arg)
{
    pthread_mutex_lock(&q->lock);
    q->receives = must(strdup(queue));
    q->credit = credit;
    q->fn = fn;
    q->arg = arg;
    wake(q);
    pthread_mutex_unlock(&q->lock);
}

static struct timespec after(int ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

enum queue_sent queue_send(struct queue *q, const struct queue_message *m, int timeout_ms)
{
    struct sending s = {.queue = m->queue, .bytes = message_encode(m), .end = QUEUE_AWAY};
    struct sending **at = &q->sendings;
    struct timespec end = after(timeout_ms);
    int rc = 0;

    pthread_mutex_lock(&q->lock);
    while (*at)
        at = &(*at)->next;
    *at = &s;
    wake(q);
    while (!s.is_over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&q->ended, &q->lock, &end);
    for (at = &q->sendings; *at != &s; at = &(*at)->next)
        ;
    *at = s.next;
    pthread_mutex_unlock(&q->lock);
    free(s.bytes.start);
    return s.end;
}

void queue_close(struct queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->is_closing = true;
    pthread_mutex_unlock(&q->lock);
    pn_proactor_interrupt(q->proactor);
    pthread_join(q->thread, NULL);
    pn_proactor_free(q->proactor);
    pthread_cond_destroy(&q->ended);
    pthread_mutex_destroy(&q->lock);
    queue_free(q);
}
