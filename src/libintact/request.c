#include "libintact/request.h"

#include <stdlib.h>

#include "libintact/outbox.h"
#include "libintact/wire.h"

/* No attempt lasts longer; a server that says so is broken. */
#define LEFT_MAX_MS INT64_C(864000000000) /* 10 000 days */

struct delivery *delivery_new(void)
{
    struct delivery *d = calloc(1, sizeof(*d));

    if (!d)
        abort();
    atomic_init(&d->uses, 1);
    return d;
}

void delivery_unuse(struct delivery *d)
{
    unsigned before = atomic_fetch_sub(&d->uses, 1);

    ASSERT(before > 0);
    if (before > 1)
        return;
    buf_fini(&d->text);
    arena_fini(&d->arena);
    free(d);
}

/* Decoded strings have a NUL behind them already. */
static const char *text_or_null(const struct json *j, const char *key)
{
    return json_get_text(j, key).ptr;
}

static const char *raw_or_null(struct delivery *d, const struct json *j, const char *key)
{
    return arena_copy(&d->arena, json_get_raw(j, key)).ptr;
}

struct intact_request *request_read(struct delivery *d, const struct json *j, int64_t base)
{
    struct slice direction = json_get_text(j, "direction");
    int64_t left = -1;
    struct intact_request *r = arena_alloc(&d->arena, sizeof(*r));

    *r = (struct intact_request){
        .delivery = d,
        .token = json_get_text(j, "token"),
        .task = text_or_null(j, "task"),
        .step = text_or_null(j, "step"),
        .action = text_or_null(j, "action"),
        .idempotency_key = text_or_null(j, "idempotency_key"),
        .input = raw_or_null(d, j, "input"),
        .direction = slice_is(direction, "undo") ? INTACT_UNDO : INTACT_FORWARD,
        .attempt = (unsigned)json_get_int(j, "attempt", 1),
        .traceparent = text_or_null(j, "traceparent"),
        .result = {.max = RESULT_MAX},
    };
    list_init(&r->beat_link);
    if (!r->token.len || !r->task || !r->step || !r->action || !r->idempotency_key || !direction.ptr
        || !json_int(json_get(j, "time_left_ms"), &left))
        return NULL;
    if (!r->input)
        r->input = "null";
    if (r->direction == INTACT_UNDO) {
        r->forward = raw_or_null(d, j, "forward");
        r->forward_key = text_or_null(json_get(j, "forward"), "idempotency_key");
        if (!r->forward || !r->forward_key)
            return NULL;
    }
    r->deadline = base + min_i64(max_i64(left, 0), LEFT_MAX_MS);
    atomic_fetch_add(&d->uses, 1);
    return r;
}

void request_free(struct intact_request *r)
{
    buf_fini(&r->result);
    buf_fini(&r->beat);
    delivery_unuse(r->delivery);
}

const char *intact_request_task(const struct intact_request *r)
{
    return r->task;
}

const char *intact_request_step(const struct intact_request *r)
{
    return r->step;
}

const char *intact_request_action(const struct intact_request *r)
{
    return r->action;
}

enum intact_direction intact_request_direction(const struct intact_request *r)
{
    return r->direction;
}

unsigned intact_request_attempt(const struct intact_request *r)
{
    return r->attempt;
}

const char *intact_request_idempotency_key(const struct intact_request *r)
{
    return r->idempotency_key;
}

const char *intact_request_input(const struct intact_request *r)
{
    return r->input;
}

const char *intact_request_forward(const struct intact_request *r)
{
    return r->forward;
}

const char *intact_request_forward_key(const struct intact_request *r)
{
    return r->forward_key;
}

const char *intact_request_traceparent(const struct intact_request *r)
{
    return r->traceparent;
}

int64_t intact_request_time_left_ms(const struct intact_request *r)
{
    return max_i64(r->deadline - wire_now_ms(), 0);
}

bool intact_request_should_stop(const struct intact_request *r)
{
    return atomic_load_explicit(&r->stopped, memory_order_relaxed)
           || intact_request_time_left_ms(r) == 0;
}

/* An output must be one JSON value, or it would spoil the call for all other results in it. */
static bool is_json(struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *ignored;

    return json_parse(&a, text, &ignored, NULL) == ERR_OK;
}

void intact_request_keep(struct intact_request *r)
{
    atomic_fetch_or(&r->state, REQUEST_KEPT);
}

void intact_request_on_stop(struct intact_request *r, intact_stopper *stop, void *arg)
{
    struct outbox *o = r->outbox;

    pthread_mutex_lock(&o->lock);
    o->watched += (r->on_stop == NULL) && stop;
    o->watched -= r->on_stop && !stop;
    r->on_stop = stop;
    r->stop_arg = arg;
    pthread_mutex_unlock(&o->lock);
    outbox_wake(o); /* for the deadline */
}

bool request_is_kept(const struct intact_request *r)
{
    return (atomic_load(&r->state) & REQUEST_RETURNED) != 0;
}

/* ---- answers ---- */

struct trouble {
    const char *code, *message;
    unsigned flags;
    int64_t after_ms;
};

static void write_error(struct intact_request *r, const struct trouble *t)
{
    struct buf *b = &r->result;

    buf_clear(b);
    b->overflow = false;
    json_open(b, '{');
    json_key(b, "token");
    json_string(b, r->token);
    json_key(b, "error");
    json_open(b, '{');
    json_key(b, "code");
    json_string(b, slice_of(t->code ? t->code : "error"));
    json_key(b, "message");
    json_string(b, slice_of(t->message ? t->message : ""));
    json_key(b, "retryable");
    json_bool(b, t->flags & INTACT_RETRYABLE);
    if (t->flags & (INTACT_EFFECT_NONE | INTACT_EFFECT_UNKNOWN)) {
        json_key(b, "effect");
        json_string(b, slice_of(t->flags & INTACT_EFFECT_UNKNOWN ? "unknown" : "none"));
    }
    if (t->after_ms > 0) {
        json_key(b, "retry_after");
        buf_fmt(b, "\"%" PRId64 "ms\"", t->after_ms);
    }
    json_close(b, '}');
    json_close(b, '}');
}

static void write_sound_error(struct intact_request *r, const struct trouble *t)
{
    write_error(r, t);
    if (r->result.overflow || !is_json(buf_view(&r->result)))
        write_error(r, &(struct trouble){.code = "error",
                                         .message = "the handler's words are not valid text",
                                         .flags = t->flags});
}

static void write_output(struct intact_request *r, struct slice output)
{
    struct buf *b = &r->result;
    struct trouble t = {.flags = INTACT_EFFECT_UNKNOWN}; /* it may well have taken effect */

    if (output.len > RESULT_MAX / 2) {
        t.code = "output_too_long";
        t.message = "the handler's output is longer than 512 KiB";
        write_error(r, &t);
        return;
    }
    if (!is_json(output)) {
        t.code = "output_not_json";
        t.message = "the handler's output is not valid JSON";
        write_error(r, &t);
        return;
    }
    json_open(b, '{');
    json_key(b, "token");
    json_string(b, r->token);
    json_key(b, "output");
    json_raw(b, output);
    json_close(b, '}');
}

static bool claim(struct intact_request *r)
{
    return !(atomic_fetch_or(&r->state, REQUEST_CLAIMED) & REQUEST_CLAIMED);
}

/* The attempt is over: whatever came of it, the server has acted on our silence by now. */
static void drop_if_late(struct intact_request *r)
{
    if (intact_request_time_left_ms(r) == 0)
        buf_fini(&r->result);
}

/* The answer stands. If the handler has returned, it was waited for, and `r` goes its way. */
static void settle(struct intact_request *r)
{
    if (!(atomic_fetch_or(&r->state, REQUEST_ANSWERED) & REQUEST_RETURNED))
        return;
    drop_if_late(r);
    outbox_put(r->outbox, r);
}

void intact_answer(struct intact_request *r, const char *output_json)
{
    if (!claim(r))
        return;
    write_output(r, slice_of(output_json ? output_json : "null"));
    settle(r);
}

void intact_answer_error(struct intact_request *r, const char *code, const char *message,
                         unsigned flags)
{
    if (!claim(r))
        return;
    write_sound_error(r, &(struct trouble){code, message, flags, 0});
    settle(r);
}

void intact_answer_retry(struct intact_request *r, const char *code, const char *message,
                         unsigned flags, int64_t after_ms)
{
    if (!claim(r))
        return;
    write_sound_error(r, &(struct trouble){code, message, flags | INTACT_RETRYABLE, after_ms});
    settle(r);
}

void intact_answer_nothing(struct intact_request *r)
{
    if (claim(r))
        settle(r);
}

bool request_run(struct intact_request *r)
{
    if (intact_request_time_left_ms(r) == 0)
        return true;
    if (r->run)
        r->run(r, r->arg);
    else
        intact_answer_error(r, "unknown_action", "this agent has no handler for the action",
                            INTACT_PERMANENT);
    if (!(atomic_load(&r->state) & REQUEST_KEPT))
        intact_answer_error(r, "no_answer", "the handler did not answer", INTACT_RETRYABLE);
    else if (!(atomic_fetch_or(&r->state, REQUEST_RETURNED) & REQUEST_ANSWERED))
        return false;
    drop_if_late(r);
    return true;
}
