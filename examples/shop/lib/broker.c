/* The thread that talks to the broker, by Proton: connects again whenever the connection broke,
 * sends one message at a time, and receives one when a handler is free. queue.c is the side of
 * the callers; broker.h has what the two share. */

#include "broker.h"

#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/link.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

enum { IDLE_MS = 30000, PAUSE_MS = 1000, AGAIN_MS = 250, AGAIN_DOUBLINGS = 4, FAREWELL_MS = 2000 };

/* ---- The connection ---- */

static void connect_broker(struct queue *q)
{
    char address[PN_MAX_ADDR];
    pn_connection_t *c = pn_connection();
    pn_transport_t *t = pn_transport();

    pn_connection_set_container(c, q->name);
    pn_connection_set_hostname(c, q->host);
    if (q->user) {
        pn_connection_set_user(c, q->user);
        pn_connection_set_password(c, q->password);
    }
    pn_sasl_allowed_mechs(pn_sasl(t), q->user ? "PLAIN" : "ANONYMOUS");
    pn_sasl_set_allow_insecure_mechs(pn_sasl(t), true); /* the broker is on this machine */
    pn_transport_set_idle_timeout(t, IDLE_MS);
    pn_proactor_addr(address, sizeof(address), q->host, q->port);
    pn_connection_open(c);
    pn_session_open(pn_session(c));
    pn_proactor_connect2(q->proactor, c, t, address); /* which owns both from now on */
    pthread_mutex_lock(&q->lock);
    q->connection = c;
    pthread_mutex_unlock(&q->lock);
}

static void opened(struct queue *q)
{
    fprintf(stderr, "queue: %s is connected to %s:%s\n", q->name, q->host, q->port);
    q->is_open = true;
}

/* Whatever goes wrong ends the connection. What had no answer is sent again by the next one. */
static void lost(struct queue *q, pn_condition_t *why)
{
    const char *words = pn_condition_get_description(why);

    if (q->is_open || q->failures == 0)
        fprintf(stderr, "queue: %s has no broker: %s\n", q->name, words ? words : "it has gone");
    pthread_mutex_lock(&q->lock);
    q->connection = NULL;
    for (struct sending *s = q->sendings; s; s = s->next)
        s->tag = 0;
    pthread_mutex_unlock(&q->lock);
    q->is_sending = false;
    q->receiver = NULL;
    q->is_open = q->is_paused = false;
    pn_proactor_set_timeout(q->proactor, (pn_millis_t)AGAIN_MS << q->failures);
    if (q->failures < AGAIN_DOUBLINGS)
        q->failures++;
}

/* What was under way has come to its end. Who sent it may have gone meanwhile. */
static void end_sending(struct queue *q, enum queue_sent end)
{
    pthread_mutex_lock(&q->lock);
    for (struct sending *s = q->sendings; s; s = s->next) {
        if (s->tag != q->last_tag || s->is_over)
            continue;
        s->is_over = true;
        s->end = end;
    }
    pthread_cond_broadcast(&q->ended);
    pthread_mutex_unlock(&q->lock);
    q->is_sending = false;
}

/* The standard's word for it, and that of RabbitMQ 3, which ends the session. */
static bool is_too_large(pn_condition_t *why)
{
    const char *name = pn_condition_get_name(why);

    return name
           && (strcmp(name, "amqp:link:message-size-exceeded") == 0
               || strcmp(name, "amqp:precondition-failed") == 0);
}

static void refused(struct queue *q, pn_connection_t *c, pn_condition_t *why)
{
    if (q->is_sending && is_too_large(why))
        end_sending(q, QUEUE_REFUSED);
    if (pn_condition_is_set(why))
        fprintf(stderr, "queue: the broker refuses %s: %s\n", q->name,
                pn_condition_get_description(why));
    q->is_open = false;
    pn_connection_close(c);
}

/* A queue that the broker makes for us is to outlive it. */
static pn_link_t *attached(pn_link_t *link, pn_terminus_t *far, const char *queue)
{
    char address[300];

    snprintf(address, sizeof(address), "/queue/%s", queue);
    pn_terminus_set_address(far, address);
    pn_terminus_set_durability(far, PN_DELIVERIES);
    pn_terminus_set_expiry_policy(far, PN_EXPIRE_NEVER);
    pn_link_set_snd_settle_mode(link, PN_SND_UNSETTLED);
    pn_link_open(link);
    return link;
}

/* ---- Sending ---- */

static pn_link_t *sender_of(pn_connection_t *c, const char *queue)
{
    for (pn_link_t *l = pn_link_head(c, 0); l; l = pn_link_next(l, 0))
        if (pn_link_is_sender(l) && strcmp(pn_link_name(l), queue) == 0)
            return l;
    pn_link_t *l = pn_sender(pn_session_head(c, 0), queue);
    return attached(l, pn_link_target(l), queue);
}

/* One at a time: if the broker ends the session for what it was sent, it is known which one that
 * was, and the others do not suffer. */
static void send_next(struct queue *q, pn_connection_t *c)
{
    pthread_mutex_lock(&q->lock);
    for (struct sending *s = q->sendings; s && !q->is_sending; s = s->next) {
        pn_link_t *l = s->tag == 0 && !s->is_over ? sender_of(c, s->queue) : NULL;
        if (!l || pn_link_credit(l) <= 0)
            continue;
        s->tag = ++q->last_tag;
        pn_delivery(l, pn_dtag((const char *)&s->tag, sizeof(s->tag)));
        pn_link_send(l, s->bytes.start, s->bytes.size);
        pn_link_advance(l);
        q->is_sending = true;
    }
    pthread_mutex_unlock(&q->lock);
}

/* The broker has said what became of it. */
static void sent(struct queue *q, pn_delivery_t *d)
{
    uint64_t state = pn_delivery_remote_state(d);

    pn_delivery_settle(d);
    end_sending(q, state == PN_ACCEPTED   ? QUEUE_ACCEPTED
                   : state == PN_REJECTED ? QUEUE_REFUSED
                                          : QUEUE_AWAY);
}

/* ---- Receiving ---- */

static bool is_done_with(struct queue *q, pn_delivery_t *d)
{
    pn_rwbytes_t bytes = {.size = pn_delivery_pending(d)};

    bytes.start = malloc(bytes.size + 1);
    if (!bytes.start)
        return false;
    bool is_done = pn_link_recv(q->receiver, bytes.start, bytes.size) == PN_ABORTED
                   || message_deliver(q->receives, bytes, q->fn, q->arg) == QUEUE_DONE;
    free(bytes.start);
    return is_done;
}

/* One message, if there is a whole one. The next has a turn of its own, after this one's end was
 * told to the broker. */
static void take(struct queue *q, pn_connection_t *c)
{
    pn_delivery_t *d = q->receiver && !q->is_paused ? pn_link_current(q->receiver) : NULL;

    if (!d || (pn_delivery_partial(d) && !pn_delivery_aborted(d)))
        return;
    if (is_done_with(q, d)) {
        pn_delivery_update(d, PN_ACCEPTED);
    } else {
        pn_delivery_update(d, PN_RELEASED);
        q->is_paused = true;
        pn_proactor_set_timeout(q->proactor, PAUSE_MS);
    }
    pn_delivery_settle(d);
    pn_link_flow(q->receiver, 1);
    pn_connection_wake(c);
}

static void receive_if_wanted(struct queue *q, pn_connection_t *c)
{
    pthread_mutex_lock(&q->lock);
    if (q->receives && !q->receiver) {
        pn_link_t *l = pn_receiver(pn_session_head(c, 0), q->name);
        q->receiver = attached(l, pn_link_source(l), q->receives);
        pn_link_flow(l, q->credit);
    }
    pthread_mutex_unlock(&q->lock);
}

/* ---- The thread ---- */

static bool is_closing(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool is_closing = q->is_closing;
    pthread_mutex_unlock(&q->lock);
    return is_closing;
}

/* Does what can be done now. */
static void turn(struct queue *q, pn_connection_t *c)
{
    if (is_closing(q)) {
        pn_connection_close(c);
    } else if (q->is_open) {
        receive_if_wanted(q, c);
        send_next(q, c);
        take(q, c);
    }
}

/* The pause is over, or the next try is due. */
static void go_on(struct queue *q)
{
    q->is_paused = false;
    if (q->connection)
        pn_connection_wake(q->connection);
    else
        connect_broker(q);
}

/* Returns whether it is over. */
static bool on_proactor(struct queue *q, pn_event_type_t type)
{
    if (type == PN_PROACTOR_TIMEOUT && !is_closing(q))
        go_on(q);
    else if (type == PN_PROACTOR_TIMEOUT || (type == PN_PROACTOR_INTERRUPT && !q->connection))
        return true;
    else if (type == PN_PROACTOR_INTERRUPT) { /* the broker is told, but not waited for for long */
        pn_connection_wake(q->connection);
        pn_proactor_set_timeout(q->proactor, FAREWELL_MS);
    }
    return false;
}

static bool on_event(struct queue *q, pn_event_t *e)
{
    pn_connection_t *c = pn_event_connection(e);

    if (!c)
        return on_proactor(q, pn_event_type(e));
    switch ((int)pn_event_type(e)) {
    case PN_CONNECTION_REMOTE_OPEN:
        opened(q);
        break;
    case PN_CONNECTION_REMOTE_CLOSE:
        refused(q, c, pn_connection_remote_condition(c));
        break;
    case PN_LINK_REMOTE_OPEN:
        q->failures = 0;
        break;
    case PN_SESSION_REMOTE_CLOSE:
        refused(q, c, pn_session_remote_condition(pn_event_session(e)));
        break;
    case PN_LINK_REMOTE_CLOSE:
    case PN_LINK_REMOTE_DETACH:
        refused(q, c, pn_link_remote_condition(pn_event_link(e)));
        break;
    case PN_DELIVERY:
        if (pn_link_is_sender(pn_event_link(e)))
            sent(q, pn_event_delivery(e));
        break;
    case PN_TRANSPORT_CLOSED:
        lost(q, pn_transport_condition(pn_event_transport(e)));
        return is_closing(q);
    default:
        break;
    }
    turn(q, c);
    return false;
}

void *broker_run(void *queue)
{
    struct queue *q = queue;
    bool is_over = false;

    connect_broker(q);
    while (!is_over) {
        pn_event_batch_t *batch = pn_proactor_wait(q->proactor);
        for (pn_event_t *e = pn_event_batch_next(batch); e; e = pn_event_batch_next(batch))
            is_over = on_event(q, e) || is_over;
        pn_proactor_done(q->proactor, batch);
    }
    return NULL;
}
