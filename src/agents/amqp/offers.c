/* Submission queues: a message becomes a task, or a signal to one, and is settled when that is
 * durable. A message that can be neither is recorded as refused, or rejected. */

#include <stdio.h>
#include <stdlib.h>

#include "agents/amqp/bridge.h"
#include "base/log.h"
#include "libintact/client.h"
#include "json/text.h"

enum {
    CORRELATION_MAX = 256, /* bytes: the limit of a tag */
    REFUSED_INPUT_MAX = 256 << 10,
};

static void start(struct offer *o);

/* ---- one by one ---- */

/* NULL, or the first in line, if it waits for its task to exist. */
static struct offer *held_before(const struct offer *o)
{
    struct offer *first = map_get(&o->bridge->last_of, buf_view(&o->task));

    while (first && first->before)
        first = first->before;
    return first && first->is_held ? first : NULL;
}

static void line_up(struct offer *o)
{
    struct bridge *b = o->bridge;
    struct offer *held = o->task.len > 0 ? held_before(o) : NULL;

    if (o->task.len == 0)
        return;
    if (held && o->path.len == 0) { /* that may be what they wait for */
        o->behind = held;
        held->before = o;
        return;
    }
    o->before = map_get(&b->last_of, buf_view(&o->task));
    if (o->before)
        o->before->behind = o;
    map_put(&b->last_of, buf_view(&o->task), o);
    if (held)
        arrival_set_apart(o->arrival);
}

/* Its submission may be behind it in the queue, so it must not keep the broker from delivering. */
static void hold(struct offer *first)
{
    first->is_held = true;
    for (struct offer *o = first; o; o = o->behind)
        arrival_set_apart(o->arrival);
}

static void leave_line(struct offer *o)
{
    struct bridge *b = o->bridge;

    if (o->behind)
        o->behind->before = o->before;
    if (o->before)
        o->before->behind = o->behind;
    if (o->task.len == 0 || o->behind)
        return;
    if (o->before)
        map_put(&b->last_of, buf_view(&o->before->task), o->before);
    else
        (void)map_remove(&b->last_of, buf_view(&o->task));
}

static void offer_end(struct offer *o, enum settling how, const char *why)
{
    if (o->behind && o->behind->is_held)
        o->behind->retry_at = 0; /* its task may exist by now */
    arrival_settle(o->arrival, how, why);
    leave_line(o);
    link_remove(&o->link);
    buf_fini(&o->task);
    buf_fini(&o->path);
    buf_fini(&o->key);
    buf_fini(&o->body);
    buf_fini(&o->submission);
    free(o);
}

/* ---- reading the message ---- */

static struct slice first_of(struct slice a, struct slice b)
{
    return a.ptr && a.len > 0 ? a : b;
}

static struct slice cloudevents_id(const struct amqp_message *m)
{
    return first_of(amqp_message_property(m, "cloudEvents:id"),
                    amqp_message_property(m, "cloudEvents_id"));
}

/* The trace of the message, or of the CloudEvent in it. */
static struct slice trace_of(const struct amqp_message *m, const struct json *event)
{
    struct slice binary = first_of(amqp_message_property(m, "cloudEvents:traceparent"),
                                   amqp_message_property(m, "cloudEvents_traceparent"));

    return first_of(amqp_message_property(m, "traceparent"),
                    first_of(binary, json_get_text(event, "traceparent")));
}

/* Returned in status messages: the correlation id or, following the standard, the message id,
 * unless it is the task's. */
static struct slice correlation_of(const struct amqp_message *m, struct slice task)
{
    struct slice c = first_of(m->correlation_id, m->id);

    if (!m->reply_to.ptr || !c.ptr || slice_eq(c, task) || c.len > CORRELATION_MAX)
        return SLICE_NONE;
    return c;
}

/* NULL: there are none yet. */
static void write_tags(struct buf *b, const struct json *tags, struct slice correlation)
{
    json_key(b, "tags");
    json_open(b, '{');
    for (const struct json *t = tags ? tags->child : NULL; t; t = t->next) {
        json_key_slice(b, t->key);
        json_raw(b, t->raw);
    }
    if (!json_get(tags, "correlation_id")) {
        json_member_text(b, "correlation_id", correlation);
    }
    json_close(b, '}');
}

static void write_missing(struct buf *b, const struct json *j, const char *key, struct slice value)
{
    if (json_get(j, key) || !value.ptr)
        return;
    json_member_text(b, key, value);
}

/* The body of POST /v1/tasks: the message's content, completed from its properties. */
static void write_submission(struct offer *o, const struct json *j, const struct amqp_message *m,
                             struct slice event_id, struct slice trace)
{
    struct buf *b = &o->body;
    struct slice own = json_get_text(j, "id");
    struct slice id = first_of(amqp_message_property(m, "id"), first_of(m->id, event_id));
    struct slice correlation = correlation_of(m, first_of(own, id));
    const struct json *tags = json_get(j, "tags");
    bool adds_tag =
        correlation.ptr && (!tags || tags->type == JSON_OBJECT || tags->type == JSON_NULL);
    CLEANUP(buf_fini) struct buf reply_to = {0};

    buf_slice(&o->task, first_of(own, id));
    json_open(b, '{');
    for (const struct json *k = j->child; k; k = k->next)
        if (!adds_tag || !slice_is(k->key, "tags")) {
            json_key_slice(b, k->key);
            json_raw(b, k->raw);
        }
    write_missing(b, j, "workflow",
                  first_of(amqp_message_property(m, "workflow"), o->queue->workflow));
    write_missing(b, j, "id", id);
    write_missing(b, j, "traceparent", trace);
    if (m->reply_to.ptr) {
        buf_fmt(&reply_to, "amqp:%.*s", SLICE_ARG(amqp_queue_of(o->queue->broker, m->reply_to)));
        write_missing(b, j, "reply_to", buf_view(&reply_to));
    }
    if (adds_tag) /* other tags are refused by the server */
        write_tags(b, tags && tags->type == JSON_OBJECT ? tags : NULL, correlation);
    json_close(b, '}');
}

/* NULL, or why it cannot be a task. */
static const char *read_offer(struct offer *o, struct arena *a, struct error *e)
{
    struct amqp_message m;
    struct json *j = NULL;
    struct json_fault fault;

    if (o->arrival->is_too_large)
        return "the message is larger than 4 MiB";
    if (amqp_message_decode(a, buf_view(&o->arrival->text), &m, e) != ERR_OK)
        return e->text;
    if (json_parse_within(a, m.body, JSON_DEPTH_OUTSIDE, &j, &fault) != ERR_OK) {
        (void)error_set(e, ERR_PARSE, "the body is not JSON: line %u, column %u: %s", fault.line,
                        fault.column, fault.what);
        return e->text;
    }
    const struct json *said = j;
    struct slice event_id = cloudevents_id(&m);
    if (json_get(j, "specversion") && json_get(j, "data")) { /* a structured CloudEvent */
        event_id = json_get_text(j, "id");
        said = json_get(j, "data");
    }
    if (signal_is_meant(said, &m))
        return signal_read(o, said, &m, event_id);
    if (said->type != JSON_OBJECT)
        return "the body is no object: expected a submission, or a "
               "CloudEvent whose data is one";
    if (!json_get(said, "id") && !first_of(m.id, event_id).ptr
        && !amqp_message_property(&m, "id").ptr)
        return "nothing says an id, so that a message that comes twice would be two tasks: set id "
               "in the body, or message-id";
    write_submission(o, said, &m, event_id, trace_of(&m, said == j ? NULL : j));
    return NULL;
}

/* ---- refusals ---- */

static void write_refusal(struct offer *o)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct amqp_message m = {0};
    struct error e = {0};
    struct buf *b = &o->body;
    CLEANUP(buf_fini) struct buf source = {0};

    buf_clear(b);
    o->is_kept = false;
    bool is_known = !o->arrival->is_too_large
                    && amqp_message_decode(&a, buf_view(&o->arrival->text), &m, &e) == ERR_OK;
    buf_fmt(&source, "amqp:%.*s", SLICE_ARG(o->queue->queue));
    json_open(b, '{');
    json_member_text(b, "source", buf_view(&source));
    json_member_text(b, "reason", slice_of(o->reason));
    if (is_known && m.id.ptr) {
        json_member_text(b, "id", m.id);
        json_member_text(b, "message_id", m.id);
    }
    if (o->submission.len > 0 && !o->is_bare && o->path.len == 0) {
        json_member_raw(b, "submission", buf_view(&o->submission));
        o->is_kept = true;
    } else if (is_known && !o->is_bare && text_utf8_end(m.body) == m.body.len
               && m.body.len <= REFUSED_INPUT_MAX) {
        json_key(b, "message"); /* as a text, because it can be anything */
        json_string(b, m.body);
        o->is_kept = true;
    }
    json_close(b, '}');
}

static void log_refusal(enum log_level level, const char *what, const struct offer *o,
                        const char *why)
{
    CLEANUP(buf_fini) struct buf reason = {0};

    log_word(&reason, slice_of(why)); /* it may quote the sender */
    log_line(level, "%s queue=%.*s reason=%s", what, SLICE_ARG(o->queue->queue), reason.ptr);
}

static void refuse(struct offer *o, const char *why)
{
    struct slice reason = slice_cut(slice_of(why), sizeof o->reason - 1);

    (void)snprintf(o->reason, sizeof o->reason, "%.*s", SLICE_ARG(reason));
    log_refusal(LOG_WARN, "event=amqp_submission_refused", o, o->reason);
    if (o->queue->poison == AMQP_REJECT) {
        offer_end(o, SETTLE_REJECT, o->reason);
        return;
    }
    o->is_refusal = true;
    o->submission = o->body; /* if there was one */
    o->body = (struct buf){0};
    write_refusal(o);
    start(o);
}

/* ---- calls ---- */

static void again(struct offer *o)
{
    if (o->bridge->is_stopping) { /* another receiver gets it */
        offer_end(o, SETTLE_RELEASE, NULL);
        return;
    }
    o->retry_at = bridge_again_at(o->bridge, o->tries++);
}

/* The server refused the record: the content is left out, and then the broker must keep the
 * message. */
static void refusal_refused(struct offer *o, const char *why)
{
    if (!o->is_bare) {
        o->is_bare = true;
        write_refusal(o);
        start(o);
        return;
    }
    log_refusal(LOG_ERROR, "event=amqp_submission_rejected", o, why);
    offer_end(o, SETTLE_REJECT, o->reason);
}

/* False: it is an answer like others. */
static bool is_for_later(struct offer *o, const struct intact_reply *r)
{
    if (o->path.len == 0 || o->is_refusal || intact_reply_http_status(r) != 404) {
        if (o->path.len > 0 && intact_reply_http_status(r) != 0)
            signal_known(o);
        return false;
    }
    switch (signal_unknown(o)) {
    case UNKNOWN_HOLD:
        hold(o);
        break;
    case UNKNOWN_RELEASE:
        offer_end(o, SETTLE_RELEASE, NULL);
        break;
    case UNKNOWN_SET_ASIDE:
        refuse(o, intact_reply_error(r));
        break;
    }
    return true;
}

static void on_answer(const struct intact_reply *r, void *arg)
{
    struct offer *o = arg;

    o->call = NULL;
    bridge_answered(o->bridge, r);
    if (is_for_later(o, r))
        return;
    if (intact_reply_status(r) == INTACT_OK)
        offer_end(o, o->is_refusal && !o->is_kept ? SETTLE_REJECT : SETTLE_ACCEPT, o->reason);
    else if (!bridge_is_refused(r))
        again(o);
    else if (o->is_refusal)
        refusal_refused(o, intact_reply_error(r));
    else
        refuse(o, intact_reply_error(r));
}

static void start(struct offer *o)
{
    bool is_signal = o->path.len > 0 && !o->is_refusal;

    o->is_held = false;
    const char *path = o->is_refusal ? "/v1/submissions/refused"
                       : is_signal   ? o->path.ptr
                                     : "/v1/tasks";

    o->call = intact_client_start(o->bridge->client, "POST", path, "application/json", o->body.ptr,
                                  o->body.len, 0, on_answer, o);
    if (!o->call)
        again(o);
    else if (is_signal)
        client_call_set_key(o->call, o->key.ptr);
}

static void on_arrival(void *arg, struct arrival *a)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    const struct offers *q = arg;
    struct offer *o = calloc(1, sizeof *o);
    struct error e = {0};

    ASSERT(o);
    o->bridge = q->bridge;
    o->queue = q->queue;
    o->arrival = a;
    list_push(&q->bridge->offers, &o->link);
    const char *why = read_offer(o, &arena, &e);
    line_up(o);
    if (why)
        refuse(o, why);
    else if (!o->before)
        start(o);
}

/* ---- turns ---- */

void offers_open(struct bridge *b)
{
    for (const struct submissions_config *c = b->config->submissions; c; c = c->next) {
        struct offers *q = calloc(1, sizeof *q);
        ASSERT(q);
        q->bridge = b;
        q->queue = c;
        q->receiver =
            broker_receive(bridge_broker(b, c->broker), c->queue, c->credit, on_arrival, q);
        list_push(&b->queues, &q->link);
    }
}

void offers_turn(struct bridge *b, int64_t now)
{
    LIST_FOREACH (at, after, &b->offers) {
        struct offer *o = CONTAINER_OF(at, struct offer, link);
        if (!o->arrival->delivery && !o->call)
            offer_end(o, SETTLE_RELEASE, NULL); /* the broker delivers it again */
        else if (!o->call && !o->before && o->retry_at <= now)
            start(o);
    }
}

int64_t offers_wake_at(struct bridge *b)
{
    int64_t at = INT64_MAX;

    LIST_FOREACH (k, after, &b->offers) {
        const struct offer *o = CONTAINER_OF(k, struct offer, link);
        if (!o->call && !o->before)
            at = min_i64(at, o->retry_at);
    }
    return at;
}

void offers_close(struct bridge *b)
{
    LIST_FOREACH (at, after, &b->offers) {
        offer_end(CONTAINER_OF(at, struct offer, link), SETTLE_RELEASE, NULL);
    }
    LIST_FOREACH (at, after, &b->queues) {
        link_remove(at);
        free(CONTAINER_OF(at, struct offers, link));
    }
    map_fini(&b->last_of);
    signals_close(b);
}

void offers_stop(struct bridge *b)
{
    LIST_FOREACH (at, after, &b->queues) {
        receiver_stop(CONTAINER_OF(at, struct offers, link)->receiver);
    }
    LIST_FOREACH (at, after, &b->offers) {
        struct offer *o = CONTAINER_OF(at, struct offer, link);
        if (!o->call)
            offer_end(o, SETTLE_RELEASE, NULL);
    }
}
