/* intact_testing_handle: one handler, with a request that no server sent (<intact/testing.h>). The
 * request is read and run as an agent does it (request.c), with an outbox of its own. */

#include <intact/testing.h>

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "libintact/agent_outbox.h"
#include "libintact/request.h"

/* What the caller says, or a value that fits. */
static void member(struct buf *b, const struct json *j, const char *name, const char *otherwise)
{
    struct slice raw = json_get_raw(j, name);

    if (!raw.ptr && !otherwise)
        return;
    json_member_raw(b, name, raw.ptr ? raw : slice_of(otherwise));
}

static void write_forward(struct buf *b, const struct json *forward, const char *key)
{
    json_key(b, "forward");
    json_open(b, '{');
    member(b, forward, "idempotency_key", key);
    member(b, forward, "input", "null");
    member(b, forward, "output", "null");
    member(b, forward, "attempts", "1");
    member(b, forward, "in_doubt", "false");
    json_close(b, '}');
}

static void write_request(struct buf *b, const struct json *j)
{
    const struct json *forward = json_get(j, "forward");
    bool is_undo = forward && forward->type == JSON_OBJECT;

    json_open(b, '{');
    member(b, j, "token", "\"test\"");
    member(b, j, "task", "\"test\"");
    member(b, j, "step", "\"test\"");
    member(b, j, "action", "\"test\"");
    member(b, j, "attempt", "1");
    member(b, j, "idempotency_key", is_undo ? "\"test/test/undo\"" : "\"test/test\"");
    member(b, j, "input", "null");
    member(b, j, "resume", NULL);
    member(b, j, "heartbeat_ms", NULL);
    member(b, j, "traceparent", NULL);
    member(b, j, "time_left_ms", "60000");
    json_member_text(b, "direction", is_undo ? SLICE("undo") : SLICE("forward"));
    if (is_undo)
        write_forward(b, forward, "\"test/test\"");
    json_close(b, '}');
}

/* NULL: the texts make no request. */
static struct intact_request *read_request(struct delivery *d, const char *text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *told = NULL;
    struct json *whole = NULL;

    if (json_parse(&a, slice_of(text), &told, NULL) != ERR_OK || told->type != JSON_OBJECT)
        return NULL;
    write_request(&d->text, told);
    if (json_parse(&d->arena, buf_view(&d->text), &whole, NULL) != ERR_OK)
        return NULL;
    return request_read(d, whole, clock_boot_ms());
}

/* A kept request is answered later, by another thread. False: the time is over. */
static bool await_answer(struct intact_request *r)
{
    struct pollfd p = {.fd = r->outbox->fd, .events = POLLIN};
    struct link done;

    list_init(&done);
    while (list_empty(&done) && !request_is_over(r)) {
        (void)poll(&p, 1, 10);
        outbox_take(r->outbox, &done);
    }
    bool answered = !list_empty(&done);
    while (list_pop(&done))
        ;
    return answered;
}

/* As in the call to a server, but for the token. */
static char *answer_of(const struct intact_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    struct buf b = {0};

    if (r->result.len == 0 || json_parse(&a, buf_view(&r->result), &j, NULL) != ERR_OK)
        return NULL;
    json_open(&b, '{');
    for (const struct json *m = j->child; m; m = m->next)
        if (!slice_is(m->key, "token")) {
            json_key_slice(&b, m->key);
            buf_slice(&b, m->raw);
        }
    json_close(&b, '}');
    char *copy = strdup(b.ptr);
    buf_fini(&b);
    return copy;
}

char *intact_testing_handle(intact_handler *run, void *arg, const char *request_json)
{
    struct delivery *d = delivery_new();
    struct intact_request *r = read_request(d, request_json ? request_json : "{}");
    char *answer = NULL;

    if (!r) {
        delivery_unuse(d);
        return NULL;
    }
    struct outbox *o = outbox_new();
    r->outbox = o;
    r->run = run;
    r->arg = arg;
    if (!request_run(r) && !await_answer(r))
        return NULL; /* whoever keeps it may still use it */
    answer = answer_of(r);
    heartbeats_drop(&o->beats, r);
    request_free(r);
    delivery_unuse(d);
    outbox_unuse(o);
    return answer;
}
