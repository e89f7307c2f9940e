/*
 * The channel of status messages to queues: passes them to the child process that speaks AMQP, and
 * its replies back to the courier. Messages whose fate is unknown when the child ends are sent
 * again.
 */

#include "background/amqp.h"

#include <stdio.h>
#include <stdlib.h>

#include "background/helper.h"
#include "base/buf.h"
#include "base/list.h"
#include "net/received_answer.h"
#include "outbox/channel.h"
#include "json/json.h"

enum {
    BATCH_MAX = 64, /* deliveries of one target at a time */
    AWAY_MS = 1000, /* a child that is not there is asked again after that */
};

/* Deliveries of one target, until all of them have ended. */
struct batch {
    struct link link;
    struct delivery **list;
    delivery_done_fn *done;
    void *arg;
    uint64_t first;           /* the numbers of its deliveries follow each other */
    size_t count, sent, open; /* sent: passed to the child; open: not ended */
    bool is_ended[BATCH_MAX];
};

struct amqp_channel {
    struct channel channel; /* first: it is one */
    const struct amqp_config *config;
    struct helper_listener listener;
    struct helper *helper; /* NULL: the server does not run yet, or no more */
    struct link batches;
    uint64_t numbers;
    bool is_closed;
    bool was_away; /* as a message came, since the broker was last there */
};

static struct amqp_channel *of(struct channel *c)
{
    return CONTAINER_OF(c, struct amqp_channel, channel);
}

static bool takes(struct channel *c, struct slice target, struct error *e)
{
    const struct amqp_config *config = of(c)->config;
    struct slice queue = amqp_target_queue(target);
    CLEANUP(buf_fini) struct buf list = {0};

    if (queue.ptr && amqp_config_allows(config, queue))
        return true;
    for (const struct queue_pattern *p = config->allow; p; p = p->next)
        buf_fmt(&list, "%samqp:%s", list.len ? ", " : "", p->text);
    (void)error_set(e, ERR_INVALID, "queues for messages are %s (amqp.messages.allow)",
                    list.len ? list.ptr : "none");
    return false;
}

static size_t batch_max(struct channel *c, struct slice target)
{
    (void)c;
    (void)target;
    return BATCH_MAX;
}

/* ---- ends ---- */

/* `story` may quote the broker: any bytes, cut anywhere. It becomes JSON. */
static void end_one(struct batch *b, size_t i, enum delivery_end end, struct slice story)
{
    struct delivery *d = b->list[i];
    CLEANUP(buf_fini) struct buf words = {0};

    if (b->is_ended[i])
        return;
    b->is_ended[i] = true;
    b->open--;
    d->end = end;
    d->retry_after_ms = 0;
    answer_quote(&words, story, sizeof d->story - 1);
    (void)snprintf(d->story, sizeof d->story, "%.*s",
                   SLICE_ARG(slice_cut(buf_view(&words), sizeof d->story - 1)));
}

/* Messages of a subject keep their order: those after one that failed are sent again, after it. The
 * receiver may have them by then, and recognises them by their ids. */
static void hold_order(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < i; k++)
            if (b->list[k]->end != DELIVERED && b->list[i]->end == DELIVERED
                && slice_eq(b->list[k]->subject, b->list[i]->subject))
                b->list[i]->end = b->list[k]->end == DELIVERY_AWAY ? DELIVERY_AWAY : DELIVERY_RETRY;
}

static void conclude(struct amqp_channel *a, struct batch *b)
{
    if (b->open > 0)
        return;
    link_remove(&b->link);
    hold_order(b);
    if (!a->is_closed)
        b->done(b->arg, b->list, b->count);
    free(b->list);
    free(b);
}

/* ---- packets ---- */

static bool write_packet(struct buf *b, const struct delivery *d, uint64_t number)
{
    buf_byte(b, 'm');
    json_open(b, '{');
    json_key(b, "n");
    json_number(b, (int64_t)number);
    json_key(b, "queue");
    json_string(b, amqp_target_queue(d->target));
    json_key(b, "id");
    json_string(b, d->id);
    json_key(b, "type");
    json_string(b, d->type);
    json_key(b, "subject");
    json_string(b, d->subject);
    json_close(b, '}');
    buf_byte(b, '\n');
    delivery_write(d, b);
    return b->len <= HELPER_PACKET_MAX / 2;
}

/* False: the child has no room. */
static bool send_next(struct amqp_channel *a, struct batch *b)
{
    CLEANUP(buf_fini) struct buf packet = {0};
    size_t i = b->sent;

    if (b->is_ended[i]) {
        b->sent++;
        return true;
    }
    if (!amqp_target_queue(b->list[i]->target).ptr
        || !write_packet(&packet, b->list[i], b->first + i)) {
        end_one(b, i, DELIVERY_REFUSED, SLICE("it is too large for a queue"));
        b->sent++;
        return true;
    }
    if (!helper_send(a->helper, buf_view(&packet)))
        return false;
    b->sent++;
    return true;
}

static void send_all(struct amqp_channel *a)
{
    LIST_FOREACH (l, after, &a->batches) {
        struct batch *b = CONTAINER_OF(l, struct batch, link);
        while (b->sent < b->count)
            if (!send_next(a, b))
                return;
    }
}

static void send_list(struct channel *c, struct delivery **list, size_t count,
                      delivery_done_fn *done, void *arg)
{
    struct amqp_channel *a = of(c);
    struct batch *b = calloc(1, sizeof *b);

    ASSERT(count >= 1 && count <= BATCH_MAX);
    ASSERT(b);
    *b = (struct batch){.done = done, .arg = arg, .count = count, .open = count};
    b->list = calloc(count, sizeof *b->list);
    ASSERT(b->list);
    memcpy(b->list, list, count * sizeof *list);
    b->first = a->numbers + 1;
    a->numbers += count;
    list_push(&a->batches, &b->link);
    if (a->helper) /* otherwise it is sent once there is one, or the server ends */
        helper_wake(a->helper);
}

/* ---- the child ---- */

static void on_opened(void *arg, struct helper *h)
{
    struct amqp_channel *a = arg;

    a->helper = h;
    if (h)
        helper_wake(h);
}

static void give_up(struct amqp_channel *a)
{
    a->was_away = true;
    LIST_FOREACH (l, after, &a->batches) {
        struct batch *b = CONTAINER_OF(l, struct batch, link);
        for (size_t i = 0; i < b->count; i++) {
            end_one(b, i, DELIVERY_AWAY, SLICE("the AMQP process is not running"));
            b->list[i]->retry_after_ms = AWAY_MS;
        }
        conclude(a, b);
    }
}

/* There is room, or something new to send. */
static void on_room(void *arg)
{
    struct amqp_channel *a = arg;

    if (!helper_is_there(a->helper)) {
        give_up(a);
        return;
    }
    send_all(a);
    LIST_FOREACH (l, after, &a->batches) {
        conclude(a, CONTAINER_OF(l, struct batch, link));
    }
}

/* The broker is available again: deliveries do not wait for their next retry. */
static void on_back(struct amqp_channel *a)
{
    if (a->was_away && !a->is_closed && a->channel.back)
        a->channel.back(a->channel.back_arg);
    a->was_away = false;
}

/* "a17", "r17 why", "w17 why", "x17 why"; "c": connected. */
static void on_packet(void *arg, struct slice packet)
{
    static const enum delivery_end ends[] = {
        ['a'] = DELIVERED, ['r'] = DELIVERY_RETRY, ['w'] = DELIVERY_AWAY, ['x'] = DELIVERY_REFUSED};
    struct amqp_channel *a = arg;
    uint64_t number = 0;
    size_t at = 1;

    if (slice_is(packet, "c"))
        on_back(a);
    if (packet.len < 2 || !packet.ptr[0] || !strchr("arwx", packet.ptr[0]))
        return;
    for (; at < packet.len && packet.ptr[at] >= '0' && packet.ptr[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(packet.ptr[at] - '0');
    at += at < packet.len;
    a->was_away |= packet.ptr[0] == 'w';
    LIST_FOREACH (l, after, &a->batches) {
        struct batch *b = CONTAINER_OF(l, struct batch, link);
        if (number < b->first || number - b->first >= b->count)
            continue;
        end_one(b, (size_t)(number - b->first), ends[(unsigned char)packet.ptr[0]],
                (struct slice){packet.ptr + at, packet.len - at});
        conclude(a, b);
        return;
    }
}

static void on_ended(void *arg)
{
    give_up(arg);
}

/* ---- life ---- */

static void close_it(struct channel *c)
{
    struct amqp_channel *a = of(c);

    a->is_closed = true;
    LIST_FOREACH (l, after, &a->batches) {
        struct batch *b = CONTAINER_OF(l, struct batch, link);
        link_remove(l);
        free(b->list);
        free(b);
    }
}

struct amqp_channel *amqp_channel_new(const struct amqp_config *c)
{
    static const struct channel_ops ops = {takes, batch_max, send_list, close_it};
    struct amqp_channel *a = calloc(1, sizeof *a);

    ASSERT(a);
    a->channel.ops = &ops;
    a->config = c;
    list_init(&a->batches);
    a->listener = (struct helper_listener){on_opened, on_packet, on_room, on_ended, a};
    return a;
}

const struct helper_listener *amqp_channel_listener(const struct amqp_channel *a)
{
    return &a->listener;
}

struct channel *amqp_channel_channel(struct amqp_channel *a)
{
    return &a->channel;
}

void amqp_channel_free(struct amqp_channel *a)
{
    if (!a)
        return;
    close_it(&a->channel);
    free(a);
}
