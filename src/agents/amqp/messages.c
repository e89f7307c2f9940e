/* Status messages of the AMQP bridge: takes CloudEvents from the server's channel, sends them to
 * their queues, and reports to the server what became of each. On the thread of amqp_agent.c.
 * bridge.h shows the whole bridge. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "agents/amqp/bridge.h"
#include "base/log.h"

struct delivery {
    struct bridge *bridge;
    uint64_t number; /* the server's number for it */
};

/* "a17": accepted; "r17 why": not now; "w17 why": unavailable; "x17 why": never. The server reads
 * without blocking. */
static void report(const struct bridge *b, char kind, uint64_t number, const char *why)
{
    char packet[300];
    int len = snprintf(packet, sizeof packet, "%c%" PRIu64 " %s", kind, number, why ? why : "");
    size_t size = len < (int)sizeof packet ? (size_t)len : sizeof packet - 1;

    (void)send(b->inside.channel, packet, size, MSG_NOSIGNAL); /* closing is detected elsewhere */
}

static void on_sent(void *arg, enum sent end, const char *why)
{
    struct delivery *t = arg;
    static const char kinds[] = {[SENT_ACCEPTED] = 'a',
                                 [SENT_REJECTED] = 'x',
                                 [SENT_NOT_NOW] = 'r',
                                 [SENT_NO_WAY] = 'w',
                                 [SENT_LOST] = 'w'};

    report(t->bridge, kinds[end], t->number, end == SENT_ACCEPTED ? NULL : why);
    free(t);
}

/* The correlation id of the submission's message or, following the standard for a message whose id
 * is the task's, the task id. */
static struct slice correlation_of(struct arena *a, struct slice body, struct slice subject)
{
    struct json *event = NULL;

    if (json_parse(a, body, &event, NULL) != ERR_OK)
        return subject;
    struct slice said = json_get_text(json_get(json_get(event, "data"), "tags"), "correlation_id");
    return said.ptr ? said : subject;
}

static void send_message(struct bridge *b, const struct json *head, struct slice body,
                         uint64_t number)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf to = {0};
    struct slice queue = json_get_text(head, "queue");
    struct slice subject = json_get_text(head, "subject");
    struct broker *broker = bridge_broker(b, b->config->messages_broker);
    struct delivery *t = NULL;
    size_t size = 0;

    if (!broker_is_open(broker) || b->is_stopping) {
        report(b, 'w', number, "there is no connection to the broker");
        return;
    }
    amqp_address(b->config->messages_broker, queue, &to);
    const struct amqp_message m = {.id = json_get_text(head, "id"),
                                   .correlation_id = correlation_of(&a, body, subject),
                                   .to = buf_view(&to),
                                   .subject = json_get_text(head, "type"),
                                   .group_id = subject,
                                   .content_type =
                                       SLICE("application/cloudevents+json; charset=utf-8"),
                                   .body = body};
    char *bytes = amqp_message_encode(&m, &size);
    t = calloc(1, sizeof *t);
    ASSERT(t);
    *t = (struct delivery){b, number};
    broker_send(broker, queue, bytes, size, on_sent, t);
}

void messages_turn(struct bridge *b)
{
    bool can_tell = b->config->messages_broker && b->inside.channel >= 0
                    && broker_is_open(bridge_broker(b, b->config->messages_broker));

    if (can_tell && !b->could_tell)
        (void)send(b->inside.channel, "c", 1, MSG_NOSIGNAL); /* closing is detected elsewhere */
    b->could_tell = can_tell;
}

void messages_take(struct bridge *b, struct slice packet)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const char *end = memchr(packet.ptr, '\n', packet.len);
    struct json *head = NULL;

    if (!end || !b->config->messages_broker)
        return;
    struct slice line = {packet.ptr + 1, (size_t)(end - packet.ptr) - 1};
    if (json_parse(&a, line, &head, NULL) != ERR_OK)
        return; /* the server sends no such packet */
    size_t at = (size_t)(end - packet.ptr) + 1;
    send_message(b, head, (struct slice){packet.ptr + at, packet.len - at},
                 (uint64_t)json_get_int(head, "n", 0));
}
