/* A request that an agent holds: reading it, running its handler, heartbeats, freeing. See
 * request.h. */
#include "libintact/request.h"

#include <stdlib.h>

#include "base/clock.h"
#include "libintact/agent_outbox.h"
#include "libintact/wire.h"

/* The maximum length of an attempt; a larger value shows a broken server. */
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

/* Decoded strings end with a NUL already. */
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
        .resume = raw_or_null(d, j, "resume"),
        .heartbeat_ms = min_i64(max_i64(json_get_int(j, "heartbeat_ms", 0), 0), LEFT_MAX_MS),
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
    atomic_init(&r->beat_by, base + r->heartbeat_ms);
    r->pulse_at = base + r->heartbeat_ms / PULSES;
    atomic_fetch_add(&d->uses, 1);
    return r;
}

void request_free(struct intact_request *r)
{
    buf_fini(&r->result);
    buf_fini(&r->beat);
    buf_fini(&r->left_resume);
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

const char *intact_request_resume(const struct intact_request *r)
{
    return r->resume;
}

const char *intact_request_token(const struct intact_request *r)
{
    return r->token.ptr;
}

int64_t intact_request_heartbeat_ms(const struct intact_request *r)
{
    return r->heartbeat_ms;
}

/* Final once detected: the handler may have been told to stop, and a later acknowledgement changes
 * nothing. */
static bool is_out_of_touch(const struct intact_request *r, int64_t now)
{
    if (atomic_load(&r->lost))
        return true;
    if (r->heartbeat_ms == 0 || now < atomic_load(&r->beat_by))
        return false;
    atomic_store((atomic_bool *)(uintptr_t)&r->lost, true); /* not visible to the caller */
    return true;
}

int64_t request_stop_at(const struct intact_request *r)
{
    return r->heartbeat_ms > 0 ? min_i64(r->deadline, atomic_load(&r->beat_by)) : r->deadline;
}

bool request_is_over(const struct intact_request *r)
{
    return intact_request_time_left_ms(r) == 0;
}

int64_t intact_request_time_left_ms(const struct intact_request *r)
{
    int64_t now = clock_boot_ms();

    return is_out_of_touch(r, now) ? 0 : max_i64(r->deadline - now, 0);
}

bool intact_request_should_stop(const struct intact_request *r)
{
    return atomic_load_explicit(&r->stopped, memory_order_relaxed) || request_is_over(r);
}

void request_tell_stop(struct intact_request *r)
{
    struct outbox *o = r->outbox;

    if (atomic_exchange(&r->stopped, true))
        return;
    pthread_mutex_lock(&o->lock);
    pthread_cond_broadcast(&o->told);
    pthread_mutex_unlock(&o->lock);
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

bool request_run(struct intact_request *r)
{
    if (request_is_over(r))
        return true;
    if (r->run)
        r->run(r, r->arg);
    else
        intact_answer_error(r, "unknown_action", "this agent has no handler for the action",
                            INTACT_PERMANENT);
    if (!(atomic_load(&r->state) & REQUEST_KEPT))
        intact_answer_error(r, "no_answer", "the handler returned no result", INTACT_RETRYABLE);
    else if (!(atomic_fetch_or(&r->state, REQUEST_RETURNED) & REQUEST_ANSWERED))
        return false;
    request_drop_if_late(r);
    return true;
}
