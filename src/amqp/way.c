/* The link to or from one queue, in a session of its own: sending, receiving, flow control. See
 * way.h. */
#include "amqp/way.h"

#include <proton/condition.h>
#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/terminus.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

enum {
    AGAIN_FIRST_MS = 500,
    AGAIN_MOST_MS = 30000,
    OUTGOING_MAX = 1 << 20, /* bytes that Proton buffers for a sender */
    INCOMING_MAX = 1 << 20, /* bytes that a broker may have in flight to a receiver */
    HELD_MAX = 4 << 20,     /* bytes of unsettled messages; beyond it none are read */
    CAREFUL = 1000,         /* messages to send one at a time after one was too large */
};

struct way *way_new(struct broker *b, struct slice queue, bool is_receiver)
{
    struct way *l = calloc(1, sizeof *l);

    ASSERT(l);
    char *name = malloc(queue.len + 1);
    ASSERT(name);
    memcpy(name, queue.ptr, queue.len);
    name[queue.len] = 0;
    l->broker = b;
    l->queue.ptr = name;
    l->queue.len = queue.len;
    l->is_receiver = is_receiver;
    l->partial.max = AMQP_MESSAGE_MAX;
    list_init(&l->waiting);
    list_init(&l->under_way);
    list_init(&l->arrivals);
    return l;
}

static void sending_free(struct sending *s)
{
    free(s->bytes);
    free(s);
}

void way_free(struct way *l)
{
    ASSERT(list_empty(&l->waiting));
    ASSERT(list_empty(&l->under_way));
    LIST_FOREACH (at, after, &l->arrivals) {
        struct arrival *a = CONTAINER_OF(at, struct arrival, link);
        a->delivery = NULL;
        a->receiver = NULL;
        link_remove(at);
    }
    link_remove(&l->link);
    buf_fini(&l->partial);
    free((void *)(uintptr_t)l->queue.ptr); /* NOLINT(performance-no-int-to-ptr): it is our own */
    free(l);
}

void way_attach(struct way *l, pn_connection_t *c, const struct broker_config *config)
{
    CLEANUP(buf_fini) struct buf address = {0};
    pn_session_t *session = pn_session(c);

    pn_session_set_incoming_capacity(session, INCOMING_MAX);
    pn_session_open(session);
    amqp_address(config, l->queue, &address);
    char name[AMQP_QUEUE_NAME_MAX + 40];
    (void)snprintf(name, sizeof name, "%s-%.*s-%" PRIu32, l->is_receiver ? "from" : "to",
                   SLICE_ARG(l->queue), ++l->attached);
    l->pn = l->is_receiver ? pn_receiver(session, name) : pn_sender(session, name);
    pn_terminus_t *far = l->is_receiver ? pn_link_source(l->pn) : pn_link_target(l->pn);
    pn_terminus_t *near = l->is_receiver ? pn_link_target(l->pn) : pn_link_source(l->pn);
    (void)pn_terminus_set_address(far, address.ptr);
    /* Brokers that create missing queues then create a durable one. */
    (void)pn_terminus_set_durability(far, PN_DELIVERIES);
    (void)pn_terminus_set_expiry_policy(far, PN_EXPIRE_NEVER);
    (void)pn_terminus_set_address(near, "intact");
    pn_link_set_snd_settle_mode(l->pn, PN_SND_UNSETTLED);
    pn_link_set_rcv_settle_mode(l->pn, PN_RCV_FIRST);
    pn_link_set_context(l->pn, l);
    pn_session_set_context(session, l);
    pn_link_open(l->pn);
    l->attached_at = clock_boot_ms();
    if (l->is_receiver)
        pn_link_flow(l->pn, (int)l->credit);
    l->is_open = false;
}

/* Unsettled messages of a lost connection are dropped here; the broker delivers them again. */
static void arrivals_forget(struct way *l)
{
    l->held = 0;
    l->apart = 0;
    LIST_FOREACH (at, after, &l->arrivals) {
        CONTAINER_OF(at, struct arrival, link)->delivery = NULL;
        link_remove(at);
    }
    buf_clear(&l->partial);
    l->partial.overflow = false;
    l->is_too_large = false;
}

void way_detach(struct way *l)
{
    if (!l->pn)
        return;
    pn_session_t *session = pn_link_session(l->pn);
    pn_link_set_context(l->pn, NULL);
    pn_session_set_context(session, NULL);
    pn_link_close(l->pn);
    pn_session_close(session);
    pn_session_free(session); /* after the close was sent */
    way_lost(l);
}

void way_lost(struct way *l)
{
    l->pn = NULL;
    l->is_open = false;
    arrivals_forget(l);
}

/* Submitters choose the names of queues. */
void way_log(enum log_level level, const char *what, const struct way *l, const char *reason)
{
    CLEANUP(buf_fini) struct buf queue = {0};

    log_word(&queue, l->queue);
    log_line(level, "%s queue=%s%s%s", what, queue.ptr, reason ? " reason=" : "",
             reason ? reason : "");
}

void way_failed(struct way *l, pn_condition_t *why, uint64_t chance)
{
    const char *name = why ? pn_condition_get_name(why) : NULL;
    const char *text = why ? pn_condition_get_description(why) : NULL;
    CLEANUP(buf_fini) struct buf words = {0}; /* the broker's message */
    int64_t wait = AGAIN_FIRST_MS;

    (void)snprintf(l->why, sizeof l->why, "queue %.*s: %s%s%s", SLICE_ARG(slice_cut(l->queue, 60)),
                   name ? name : "the broker ended the link", text ? ": " : "", text ? text : "");
    log_word(&words, slice_of(l->why));
    if (l->failures == 0)
        way_log(LOG_WARN, "event=amqp_queue_lost", l, words.ptr);
    for (uint32_t i = 0; i < l->failures && wait < AGAIN_MOST_MS; i++)
        wait *= 2;
    wait = min_i64(wait, AGAIN_MOST_MS);
    l->failures++;
    l->retry_at = clock_boot_ms() + wait / 2 + (int64_t)(chance % (uint64_t)(wait / 2 + 1));
    way_detach(l);
}

/* ---- sending ---- */

void way_take_sendings(struct way *l, struct link *ret)
{
    list_take_all(ret, &l->under_way);
    list_take_all(ret, &l->waiting);
}

/* Recognizes the standard's condition, and that of RabbitMQ 3, which ends the session and uses one
 * name for several errors: only the description tells them apart. */
static bool says_too_large(pn_condition_t *why)
{
    const char *name = why ? pn_condition_get_name(why) : NULL;
    const char *said = why ? pn_condition_get_description(why) : NULL;

    return name
           && (strcmp(name, "amqp:link:message-size-exceeded") == 0
               || (strcmp(name, "amqp:precondition-failed") == 0 && said
                   && strstr(said, "message size")));
}

void way_take_too_large(struct way *l, pn_condition_t *why, struct link *ret)
{
    struct link *first = list_first(&l->under_way);

    if (!first || !says_too_large(why))
        return;
    if (first->next == &l->under_way) {
        link_remove(first);
        list_push(ret, first);
    } else {
        l->careful = CAREFUL;
    }
}

void sendings_end(struct link *list, enum sent end, const char *why)
{
    for (struct link *at = list_first(list); at; at = list_first(list)) {
        struct sending *s = CONTAINER_OF(at, struct sending, link);
        link_remove(at);
        s->done(s->arg, end, why);
        sending_free(s);
    }
}

static void send_one(struct way *l, struct sending *s)
{
    static uint64_t tags;
    uint64_t tag = ++tags;

    ASSERT(s);
    pn_delivery_t *d = pn_delivery(l->pn, pn_dtag((const char *)&tag, sizeof tag));
    pn_delivery_set_context(d, s);
    (void)pn_link_send(l->pn, s->bytes, s->size); /* it accepts everything */
    (void)pn_link_advance(l->pn);
    free(s->bytes);
    s->bytes = NULL;
    link_remove(&s->link);
    list_push(&l->under_way, &s->link);
    if (l->careful > 0)
        l->careful--;
}

static bool may_send(const struct way *l)
{
    return l->pn && l->is_open && !list_empty(&l->waiting) && pn_link_credit(l->pn) > 0
           && pn_session_outgoing_bytes(pn_link_session(l->pn)) < OUTGOING_MAX
           && (l->careful == 0 || list_empty(&l->under_way));
}

/* If the broker announced its maximum, a larger message is not sent. */
static void refuse(struct way *l, struct sending *s)
{
    char why[160];

    (void)snprintf(why, sizeof why, "it is too large for the broker: %zu bytes of %" PRIu64,
                   s->size, pn_link_remote_max_message_size(l->pn));
    link_remove(&s->link);
    s->done(s->arg, SENT_REJECTED, why);
    sending_free(s);
}

void way_pump(struct way *l)
{
    while (may_send(l)) {
        struct sending *s = CONTAINER_OF(list_first(&l->waiting), struct sending, link);
        uint64_t max = pn_link_remote_max_message_size(l->pn);

        ASSERT(s);
        if (max > 0 && s->size > max)
            refuse(l, s);
        else
            send_one(l, s);
    }
}

static void on_outcome(pn_delivery_t *d)
{
    struct sending *s = pn_delivery_get_context(d);
    uint64_t state = pn_delivery_remote_state(d);
    char why[200] = "the broker settled it without saying how";
    enum sent end = SENT_NOT_NOW;

    if (!s || (state <= PN_RECEIVED && !pn_delivery_settled(d)))
        return;
    if (state == PN_ACCEPTED) {
        end = SENT_ACCEPTED;
    } else if (state == PN_REJECTED) {
        pn_condition_t *c = pn_disposition_condition(pn_delivery_remote(d));
        const char *text = pn_condition_get_description(c);
        end = SENT_REJECTED;
        (void)snprintf(why, sizeof why, "the broker rejected it%s%s", text ? ": " : "",
                       text ? text : "");
    } else if (state == PN_RELEASED || state == PN_MODIFIED) {
        (void)snprintf(why, sizeof why, "the broker does not take it now");
    }
    pn_delivery_set_context(d, NULL);
    pn_delivery_settle(d);
    link_remove(&s->link);
    s->done(s->arg, end, why);
    sending_free(s);
}

/* ---- receiving ---- */

/* Reads the available part of the incoming message. */
static void take_bytes(struct way *l, pn_delivery_t *d)
{
    char rest[4096];
    size_t pending = pn_delivery_pending(d);

    while (pending > 0) {
        char *room = l->is_too_large ? NULL : buf_room(&l->partial, pending);
        ssize_t n =
            room ? pn_link_recv(l->pn, room, pending) : pn_link_recv(l->pn, rest, sizeof rest);
        if (n <= 0)
            return;
        if (room)
            l->partial.len += (size_t)n;
        l->is_too_large |= room == NULL;
        pending = pn_delivery_pending(d);
    }
}

static void arrive(struct way *l, pn_delivery_t *d)
{
    struct arrival *a = calloc(1, sizeof *a);

    ASSERT(a);
    a->receiver = CONTAINER_OF(l, struct receiver, way);
    a->delivery = d;
    a->is_too_large = l->is_too_large;
    a->text = l->partial;
    l->held += a->text.len;
    list_init(&a->of_user);
    l->partial = (struct buf){.max = AMQP_MESSAGE_MAX};
    l->is_too_large = false;
    list_push(&l->arrivals, &a->link);
    if (l->is_stopped)
        arrival_settle(a, SETTLE_RELEASE, NULL);
    else
        l->fn(l->arg, a);
}

static void break_off(struct way *l, pn_delivery_t *d)
{
    buf_clear(&l->partial);
    l->partial.overflow = false;
    l->is_too_large = false;
    pn_delivery_settle(d);
    pn_link_flow(l->pn, 1);
}

/* True: the message was complete, or was aborted. */
static bool on_message(struct way *l, pn_delivery_t *d)
{
    bool is_aborted = pn_delivery_aborted(d);

    if (!is_aborted)
        take_bytes(l, d);
    if (pn_delivery_partial(d) && !is_aborted)
        return false;
    (void)pn_link_advance(l->pn);
    if (is_aborted)
        break_off(l, d);
    else
        arrive(l, d);
    return true;
}

/* Unread messages keep the broker from sending more, because the session's window is full. */
static void on_messages(struct way *l)
{
    for (pn_delivery_t *d = pn_link_current(l->pn); d && pn_delivery_readable(d);
         d = l->pn ? pn_link_current(l->pn) : NULL)
        if (l->held > HELD_MAX || !on_message(l, d))
            return;
}

void way_read(struct way *l)
{
    if (l->pn && l->is_receiver && l->held <= HELD_MAX)
        on_messages(l);
}

void arrival_set_apart(struct arrival *a)
{
    struct way *l = &a->receiver->way;

    if (!a->delivery || a->is_apart || l->is_stopped || l->apart == AMQP_CREDIT_MAX)
        return;
    a->is_apart = true;
    l->apart++;
    pn_link_flow(l->pn, 1);
}

void arrival_settle(struct arrival *a, enum settling how, const char *why)
{
    static const uint64_t states[] = {PN_ACCEPTED, PN_REJECTED, PN_RELEASED};
    pn_delivery_t *d = a->delivery;
    pn_link_t *link = d ? pn_delivery_link(d) : NULL;

    if (d && how == SETTLE_REJECT && why) {
        pn_condition_t *c = pn_disposition_condition(pn_delivery_local(d));
        (void)pn_condition_set_name(c, "intact:refused");
        (void)pn_condition_set_description(c, why);
    }
    if (d) {
        a->receiver->way.held -= a->text.len;
        pn_delivery_update(d, states[how]);
        pn_delivery_settle(d);
        if (a->is_apart)
            a->receiver->way.apart--;
        else if (!a->receiver->way.is_stopped)
            pn_link_flow(link, 1);
    }
    link_remove(&a->link);
    link_remove(&a->of_user);
    buf_fini(&a->text);
    free(a);
}

void way_on_delivery(struct way *l, pn_delivery_t *d)
{
    if (l->is_receiver)
        on_messages(l);
    else
        on_outcome(d);
}
