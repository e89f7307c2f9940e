/* The request queues of the AMQP bridge: as an agent of libintact it fetches requests, puts each
 * on its queue, and sends it again if it got lost. replies.c reads the results; bridge.h shows
 * the whole bridge. */

#include <openssl/evp.h>
#include <stdlib.h>

#include "agents/amqp/bridge.h"
#include "base/clock.h"
#include "base/log.h"
#include "libintact/agent.h"

enum { LOOK_MS = 500, NOT_NOW_MS = 1000, NAME_BYTES = 8 };

static struct slice own_copy(const char *text)
{
    char *own = strdup(text);

    ASSERT(own);
    return slice_of(own);
}

static void job_free(struct job *j)
{
    free((void *)(uintptr_t)j->token.ptr); /* NOLINT(performance-no-int-to-ptr): it is our own */
    free((void *)(uintptr_t)j->name.ptr);  /* NOLINT(performance-no-int-to-ptr): the same */
    free(j);
}

/* ---- the message ---- */

/* In the form of a call for work. */
static void write_request(struct buf *b, const struct intact_request *r, int64_t left_ms)
{
    bool is_undo = intact_request_direction(r) == INTACT_UNDO;

    json_open(b, '{');
    json_member_text(b, "token", slice_of(intact_request_token(r)));
    json_member_text(b, "task", slice_of(intact_request_task(r)));
    json_member_text(b, "step", slice_of(intact_request_step(r)));
    json_member_text(b, "action", slice_of(intact_request_action(r)));
    json_member_text(b, "direction", slice_of(is_undo ? "undo" : "forward"));
    json_member_number(b, "attempt", intact_request_attempt(r));
    json_member_text(b, "idempotency_key", slice_of(intact_request_idempotency_key(r)));
    json_member_raw_if(b, "input", slice_of(intact_request_input(r)));
    json_member_raw_if(b, "forward", slice_of(intact_request_forward(r)));
    json_member_raw_if(b, "resume", slice_of(intact_request_resume(r)));
    json_member_time(b, "complete_by", clock_wall_ms() + left_ms);
    json_member_number(b, "time_left_ms", left_ms);
    if (intact_request_heartbeat_ms(r) > 0) {
        json_member_number(b, "heartbeat_ms", intact_request_heartbeat_ms(r));
    }
    if (intact_request_traceparent(r))
        json_member_text(b, "traceparent", slice_of(intact_request_traceparent(r)));
    json_close(b, '}');
}

static void on_sent(void *arg, enum sent end, const char *why)
{
    struct job *j = arg;

    j->is_sending = false;
    if (!j->request) {
        job_free(j); /* it has ended meanwhile */
        return;
    }
    if (end == SENT_LOST)
        j->send_at = clock_boot_ms(); /* perhaps a duplicate: the agent recognizes it by its key */
    else if (end == SENT_NOT_NOW || end == SENT_NO_WAY)
        j->send_at = clock_boot_ms() + NOT_NOW_MS;
    else if (end == SENT_REJECTED && !j->reply)
        intact_answer_error(j->request, "amqp_rejected", why,
                            INTACT_RETRYABLE | INTACT_EFFECT_NONE);
}

void job_send(struct job *j)
{
    CLEANUP(buf_fini) struct buf body = {0};
    const struct intact_request *r = j->request;
    const struct requests *of = j->requests;
    int64_t left = intact_request_time_left_ms(r);
    CLEANUP(buf_fini) struct buf to = {0};
    size_t size = 0;

    write_request(&body, r, left);
    amqp_address(of->config->broker, of->config->queue, &to);
    struct amqp_property direction = {NULL, SLICE("direction"),
                                      slice_of(intact_request_direction(r) == INTACT_UNDO
                                                   ? "undo"
                                                   : "forward")};
    struct amqp_property task = {&direction, SLICE("task"), slice_of(intact_request_task(r))};
    const struct amqp_message m = {.id = j->name,
                                   .correlation_id = j->token,
                                   .to = buf_view(&to),
                                   .reply_to = buf_view(&of->reply_to),
                                   .subject = slice_of(intact_request_action(r)),
                                   .group_id = task.value,
                                   .content_type = SLICE("application/json"),
                                   .body = buf_view(&body),
                                   .properties = &task,
                                   .expires_at = clock_wall_ms() + left,
                                   .ttl_ms = max_i64(left, 1)};
    char *bytes = amqp_message_encode(&m, &size);
    j->is_sending = true;
    j->send_at = 0;
    broker_send(of->broker, of->config->queue, bytes, size, on_sent, j);
}

/* ---- requests ---- */

/* The agent is done with it. The server's answer to its result is durable. */
static void on_released(void *arg, struct slice status)
{
    struct job *j = arg;
    struct bridge *b = j->requests->bridge;

    (void)map_remove(&b->by_token, j->token);
    if (map_get(&b->by_name, j->name) == j)
        (void)map_remove(&b->by_name, j->name);
    link_remove(&j->link);
    j->request = NULL;
    if (j->reply && status.ptr)
        arrival_settle(j->reply, SETTLE_ACCEPT, NULL);
    else if (j->reply)
        replies_stray(b, j->reply, j->token);
    j->reply = NULL;
    if (!j->is_sending)
        job_free(j);
}

/* A reply may be for it, so its last part follows from the token: keys can be guessed. */
static void write_name(const struct intact_request *r, struct buf *b)
{
    const char *token = intact_request_token(r);
    unsigned char sum[EVP_MAX_MD_SIZE];

    int ok = EVP_Digest(token, strlen(token), sum, NULL, EVP_sha256(), NULL);
    ASSERT(ok == 1);
    buf_fmt(b, "%s#%u#", intact_request_idempotency_key(r), intact_request_attempt(r));
    for (size_t i = 0; i < NAME_BYTES; i++)
        buf_fmt(b, "%02x", sum[i]);
}

static void on_request(struct intact_request *r, void *arg)
{
    struct requests *of = arg;
    struct job *j = calloc(1, sizeof *j);
    CLEANUP(buf_fini) struct buf name = {0};

    ASSERT(j);
    intact_request_keep(r);
    request_on_released(r, on_released, j);
    write_name(r, &name);
    *j = (struct job){.requests = of,
                      .request = r,
                      .token = own_copy(intact_request_token(r)),
                      .name = own_copy(name.ptr)};
    list_push(&of->jobs, &j->link);
    map_put(&of->bridge->by_token, j->token, j);
    if (!map_get(&of->bridge->by_name, j->name))
        map_put(&of->bridge->by_name, j->name, j);
    job_send(j);
}

/* ---- agents ---- */

static void log_agent(void *arg, enum intact_log_level level, const char *line)
{
    const struct requests *q = arg;

    log_line((enum log_level)level, "agent=%.*s %s", SLICE_ARG(q->config->agent), line);
}

static struct intact_agent *agent_of(struct requests *q)
{
    const struct bridge *b = q->bridge;
    const struct amqp_agent_options *o = b->options;
    struct intact_agent *a = intact_agent_new(q->config->agent.ptr);

    intact_agent_set_log(a, log_agent, q);
    intact_agent_set_instance(a, o->instance);
    intact_agent_set_inline(a, true);
    intact_agent_set_concurrency(a, q->config->places);
    intact_agent_on(a, "*", INTACT_ANY, on_request, q);
    if (b->inside.channel >= 0) {
        agent_set_door(a, b->inside.door);
        return a;
    }
    if (o->server)
        intact_agent_set_server(a, o->server);
    if (o->token)
        intact_agent_set_token(a, o->token);
    if (o->ca)
        intact_agent_set_ca(a, o->ca);
    return a;
}

static void reply_queue_of(const struct bridge *b, struct buf *ret)
{
    const struct slice pattern = b->config->replies;
    const char *hole = memmem(pattern.ptr, pattern.len, "{node}", 6);

    if (!hole) {
        buf_slice(ret, pattern);
        return;
    }
    buf_add(ret, pattern.ptr, (size_t)(hole - pattern.ptr));
    buf_str(ret, b->options->node);
    buf_add(ret, hole + 6, pattern.len - (size_t)(hole - pattern.ptr) - 6);
}

bool requests_open(struct bridge *b)
{
    for (const struct agent_queue_config *c = b->config->agents; c; c = c->next) {
        CLEANUP(buf_fini) struct buf queue = {0};
        struct requests *q = calloc(1, sizeof *q);
        ASSERT(q);
        q->bridge = b;
        q->config = c;
        q->broker = bridge_broker(b, c->broker);
        list_init(&q->jobs);
        list_push(&b->agents, &q->link);
        reply_queue_of(b, &queue);
        amqp_address(c->broker, buf_view(&queue), &q->reply_to);
        q->agent = agent_of(q);
        if (intact_agent_fd(q->agent) < 0)
            return false;
    }
    return true;
}

void requests_close(struct bridge *b)
{
    LIST_FOREACH (at, after, &b->agents) {
        struct requests *q = CONTAINER_OF(at, struct requests, link);
        LIST_FOREACH (k, next, &q->jobs) {
            struct job *j = CONTAINER_OF(k, struct job, link);
            intact_answer_nothing(j->request); /* harmless if it is answered */
        }
        intact_agent_free(q->agent);
        LIST_FOREACH (k, next, &q->jobs) {
            struct job *j = CONTAINER_OF(k, struct job, link);
            if (j->reply)
                arrival_settle(j->reply, SETTLE_RELEASE, NULL);
            link_remove(k);
            job_free(j);
        }
        buf_fini(&q->reply_to);
        link_remove(at);
        free(q);
    }
}

/* ---- turns ---- */

static void look(struct requests *q, int64_t now)
{
    LIST_FOREACH (at, after, &q->jobs) {
        struct job *j = CONTAINER_OF(at, struct job, link);
        if (j->reply)
            continue;
        if (intact_request_time_left_ms(j->request) == 0)
            intact_answer_nothing(j->request); /* the server gives it up now, too */
        else if (j->send_at > 0 && j->send_at <= now)
            job_send(j);
    }
}

void requests_turn(struct bridge *b, int64_t now)
{
    LIST_FOREACH (at, after, &b->agents) {
        struct requests *q = CONTAINER_OF(at, struct requests, link);
        if (q->is_over)
            continue;
        if (now >= q->wake_at) {
            look(q, now);
            q->wake_at = now + LOOK_MS;
        }
        q->is_over = !intact_agent_drive(q->agent);
    }
}

int64_t requests_wake_at(struct bridge *b)
{
    int64_t at = INT64_MAX;
    int64_t now = clock_boot_ms();

    LIST_FOREACH (k, after, &b->agents) {
        const struct requests *q = CONTAINER_OF(k, struct requests, link);
        if (q->is_over)
            continue;
        if (!list_empty(&q->jobs))
            at = min_i64(at, q->wake_at);
        at = min_i64(at, now + intact_agent_timeout_ms(q->agent));
    }
    return at;
}

bool requests_are_over(struct bridge *b)
{
    LIST_FOREACH (k, after, &b->agents) {
        if (!CONTAINER_OF(k, struct requests, link)->is_over)
            return false;
    }
    return true;
}
