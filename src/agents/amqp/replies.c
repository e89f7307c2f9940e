/* The reply queues of the AMQP bridge: posts the results and heartbeats that agents put there to
 * the server, and settles a message when the server has it. A reply without a request of ours
 * goes by its attempt's token. requests.c sends the requests; bridge.h shows the whole bridge. */

#include <stdlib.h>

#include "agents/amqp/bridge.h"
#include "base/log.h"
#include "libintact/request.h"

enum {
    ELSEWHERE_TRIES = 20,
    CREDIT = 1000,
    EARLY_MAX = 200, /* the others of the credit are for replies that anybody waits for */
};

static void start(struct stray *s);

/* ---- replies to unknown requests ---- */

static void stray_end(struct stray *s, enum settling how, const char *why)
{
    arrival_settle(s->arrival, how, why);
    link_remove(&s->link);
    buf_fini(&s->path);
    buf_fini(&s->body);
    free(s);
}

static void again(struct stray *s)
{
    if (s->bridge->is_stopping) /* the next process gets it again */
        stray_end(s, SETTLE_RELEASE, NULL);
    else
        s->retry_at = bridge_again_at(s->bridge, s->tries++);
}

static void on_answer(const struct intact_reply *r, void *arg)
{
    struct stray *s = arg;

    s->call = NULL;
    bridge_answered(s->bridge, r);
    if (intact_reply_status(r) == INTACT_OK) {
        stray_end(s, SETTLE_ACCEPT, NULL);
    } else if (bridge_is_refused(r)) {
        CLEANUP(buf_fini) struct buf reason = {0};
        log_word(&reason, slice_of(intact_reply_error(r)));
        log_line(LOG_WARN, "event=amqp_reply_rejected reason=%s", reason.ptr);
        stray_end(s, SETTLE_REJECT, intact_reply_error(r));
    } else {
        again(s);
    }
}

static void start(struct stray *s)
{
    s->call = intact_client_start(s->bridge->client, "POST", s->path.ptr, "application/json",
                                  s->body.ptr, s->body.len, 0, on_answer, s);
    if (!s->call)
        again(s);
}

/* Whether it has only the characters of tokens; others are not sent. */
static bool token_is_sound(struct slice token)
{
    for (size_t i = 0; i < token.len; i++) {
        char c = token.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c && strchr("._-~:", c))))
            return false;
    }
    return token.len > 0 && token.len <= 512;
}

/* Without the token, which is in the path. */
static void write_body(struct buf *b, const struct json *j)
{
    json_open(b, '{');
    for (const struct json *k = j->child; k; k = k->next)
        if (!slice_is(k->key, "token")) {
            json_key_slice(b, k->key);
            json_raw(b, k->raw);
        }
    json_close(b, '}');
}

static struct json *body_of(struct arena *a, const struct arrival *r, struct amqp_message *m)
{
    struct error e = {0};
    struct json *j = NULL;

    if (r->is_too_large || amqp_message_decode(a, buf_view(&r->text), m, &e) != ERR_OK
        || json_parse_within(a, m->body, JSON_DEPTH_OUTSIDE, &j, NULL) != ERR_OK
        || j->type != JSON_OBJECT)
        return NULL;
    return j;
}

void replies_stray(struct bridge *b, struct arrival *a, struct slice token)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct amqp_message m;
    const struct json *j = body_of(&arena, a, &m);

    if (!j || !token_is_sound(token)) {
        log_line(LOG_WARN,
                 "event=amqp_reply_rejected reason=\"it is not a result of a known request\"");
        arrival_settle(a, SETTLE_REJECT, "it is not a result of a known request");
        return;
    }
    struct stray *s = calloc(1, sizeof *s);
    ASSERT(s);
    s->bridge = b;
    s->arrival = a;
    buf_fmt(&s->path, "/v1/attempts/%.*s", SLICE_ARG(token));
    write_body(&s->body, j);
    list_push(&b->strays, &s->link);
    start(s);
}

/* ---- replies ---- */

static struct slice token_of(const struct bridge *b, const struct amqp_message *m,
                             const struct json *j)
{
    struct slice said = json_get_text(j, "token");
    const struct job *named =
        m->correlation_id.ptr ? map_get(&b->by_name, m->correlation_id) : NULL;

    if (said.ptr)
        return said;
    return named ? named->token : m->correlation_id;
}

static bool is_result(const struct json *j)
{
    return json_get(j, "output") || json_get(j, "error") || json_get_bool(j, "elsewhere", false);
}

static void beat(const struct job *j, const struct json *said)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice progress = arena_copy(&a, json_get_raw(said, "progress"));
    struct slice message = json_get_text(said, "message");
    struct slice resume = arena_copy(&a, json_get_raw(said, "resume"));

    (void)intact_heartbeat_resume(j->request, progress.ptr, message.ptr,
                                  resume.ptr); /* too long values are left out */
}

static void answer(struct job *j, struct arrival *a, const struct json *said)
{
    if (j->reply) { /* a duplicate: the first is being sent */
        /* If the connection of the first one broke, this is the same message again: it is kept
         * until the outcome is durable. */
        struct arrival *spare = j->reply->delivery ? a : j->reply;
        j->reply = spare == a ? j->reply : a;
        arrival_settle(spare, SETTLE_ACCEPT, NULL);
        return;
    }
    j->reply = a;
    if (said && is_result(said) && a->text.len <= RESULT_MAX)
        request_answer_members(j->request, said);
    else
        intact_answer_error(j->request, "bad_reply",
                            "the agent's message is no result: a JSON object with output or error "
                            "was expected",
                            INTACT_EFFECT_UNKNOWN);
}

static bool has_room_for_early(const struct bridge *b)
{
    size_t count = 0;

    for (const struct link *l = b->early.next; l != &b->early && count < EARLY_MAX; l = l->next)
        count++;
    return count < EARLY_MAX;
}

/* The request with this answer is still held for us by the server, and comes again. */
static bool waits_for_its_request(struct bridge *b, struct arrival *a, const struct json *said)
{
    if (!json_get_bool(said, "elsewhere", false) || a->tries >= ELSEWHERE_TRIES
        || !has_room_for_early(b))
        return false;
    a->at = bridge_again_at(b, a->tries++);
    list_push(&b->early, &a->of_user);
    return true;
}

static void on_reply(void *arg, struct arrival *a)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct bridge *b = arg;
    struct amqp_message m = {.body = SLICE("")};
    const struct json *said = body_of(&arena, a, &m);
    struct slice token = token_of(b, &m, said);
    struct job *j = token.ptr ? map_get(&b->by_token, token) : NULL;

    if (m.subject.ptr && slice_is(m.subject, "heartbeat") && !(said && is_result(said))) {
        if (j && j->request && said && !j->reply)
            beat(j, said);
        arrival_settle(a, SETTLE_ACCEPT, NULL); /* losing one is harmless */
    } else if (j && j->request) {
        answer(j, a, said);
    } else if (!waits_for_its_request(b, a, said)) {
        replies_stray(b, a, token);
    }
}

/* ---- turns ---- */

void replies_open(struct bridge *b)
{
    for (struct link *k = b->agents.next; k != &b->agents; k = k->next) {
        const struct requests *q = CONTAINER_OF(k, struct requests, link);
        bool is_there = false;
        for (struct link *before = b->agents.next; before != k; before = before->next)
            is_there |= CONTAINER_OF(before, const struct requests, link)->broker == q->broker;
        struct slice queue = amqp_queue_of(q->config->broker, buf_view(&q->reply_to));
        if (!is_there)
            (void)broker_receive(q->broker, queue, CREDIT, on_reply, b);
    }
}

void replies_turn(struct bridge *b, int64_t now)
{
    LIST_FOREACH (at, after, &b->strays) {
        struct stray *s = CONTAINER_OF(at, struct stray, link);
        if (!s->call && !s->arrival->delivery)
            stray_end(s, SETTLE_RELEASE, NULL); /* the broker delivers it again */
        else if (!s->call && s->retry_at <= now)
            start(s);
    }
    LIST_FOREACH (at, after, &b->early) {
        struct arrival *a = CONTAINER_OF(at, struct arrival, of_user);
        if (!a->delivery) {
            arrival_settle(a, SETTLE_RELEASE, NULL);
        } else if (a->at <= now) {
            link_remove(at);
            on_reply(b, a);
        }
    }
}

int64_t replies_wake_at(struct bridge *b)
{
    int64_t at = INT64_MAX;

    LIST_FOREACH (k, after, &b->strays) {
        const struct stray *s = CONTAINER_OF(k, struct stray, link);
        if (!s->call)
            at = min_i64(at, s->retry_at);
    }
    LIST_FOREACH (k, after, &b->early) {
        at = min_i64(at, CONTAINER_OF(k, struct arrival, of_user)->at);
    }
    return at;
}

void replies_close(struct bridge *b)
{
    LIST_FOREACH (at, after, &b->strays) {
        stray_end(CONTAINER_OF(at, struct stray, link), SETTLE_RELEASE, NULL);
    }
    LIST_FOREACH (at, after, &b->early) {
        arrival_settle(CONTAINER_OF(at, struct arrival, of_user), SETTLE_RELEASE, NULL);
    }
}
