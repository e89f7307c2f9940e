/* The four kinds of answer to a request: an output, an error, "elsewhere" and none. See
 * <intact/agent.h>. */

#include "libintact/agent_outbox.h"
#include "libintact/request.h"

enum { RESUME_MAX = 2048 };

/* An output that is not one JSON value would invalidate the call with all its other results; one
 * that is nested deeper is refused by the server. */
static bool is_json(struct slice text, uint32_t depth)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *ignored;

    return json_parse_within(&a, text, depth, &ignored, NULL) == ERR_OK;
}

struct trouble {
    const char *code, *message;
    unsigned flags;
    int64_t after_ms;
    struct slice resume; /* JSON, or NONE */
};

static void write_tries(struct intact_request *r)
{
    unsigned tries = atomic_load(&r->tries);

    if (tries == 0)
        return;
    json_member_number(&r->result, "tries", tries);
}

static void write_error(struct intact_request *r, const struct trouble *t)
{
    struct buf *b = &r->result;

    buf_clear(b);
    b->overflow = false;
    json_open(b, '{');
    json_member_text(b, "token", r->token);
    json_key(b, "error");
    json_open(b, '{');
    json_member_text(b, "code", slice_of(t->code ? t->code : "error"));
    json_member_text(b, "message", slice_of(t->message ? t->message : ""));
    json_member_bool(b, "retryable", t->flags & INTACT_RETRYABLE);
    if (t->flags & (INTACT_EFFECT_NONE | INTACT_EFFECT_UNKNOWN)) {
        json_member_text(b, "effect",
                         slice_of(t->flags & INTACT_EFFECT_UNKNOWN ? "unknown" : "none"));
    }
    if (t->after_ms > 0) {
        json_key(b, "retry_after");
        buf_fmt(b, "\"%" PRId64 "ms\"", t->after_ms);
    }
    if (t->resume.ptr) {
        json_member_raw(b, "resume", t->resume);
    }
    json_close(b, '}');
    write_tries(r);
    json_close(b, '}');
}

static void write_sound_error(struct intact_request *r, const struct trouble *t)
{
    write_error(r, t);
    if (r->result.overflow || !is_json(buf_view(&r->result), JSON_DEPTH_IN_CALL + 2))
        write_error(r, &(struct trouble){.code = "error",
                                         .message = "the handler's error is not valid text",
                                         .flags = t->flags,
                                         .after_ms = t->after_ms});
}

/* A retryable error includes the resume details of the latest heartbeat, if any. */
static void write_trouble(struct intact_request *r, struct trouble *t, const char *resume)
{
    CLEANUP(buf_fini) struct buf left = {0};

    if (resume && strlen(resume) <= RESUME_MAX && is_json(slice_of(resume), JSON_DEPTH_IN_CALL))
        t->resume = slice_of(resume);
    else if ((t->flags & INTACT_RETRYABLE) && heartbeat_resume(r, &left))
        t->resume = buf_view(&left);
    write_sound_error(r, t);
}

static void write_output(struct intact_request *r, struct slice output)
{
    struct buf *b = &r->result;
    struct trouble t = {.flags = INTACT_EFFECT_UNKNOWN}; /* it may have taken effect */

    if (output.len > RESULT_MAX / 2) {
        t.code = "output_too_long";
        t.message = "the handler's output is longer than 512 KiB";
        write_error(r, &t);
        return;
    }
    if (!is_json(output, JSON_DEPTH_IN_CALL)) {
        t.code = "output_not_json";
        t.message = "the handler's output is not valid JSON, or is nested deeper than 44 levels";
        write_error(r, &t);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "token", r->token);
    json_member_raw(b, "output", output);
    write_tries(r);
    json_close(b, '}');
}

void request_replace(struct intact_request *r)
{
    const struct trouble t = {.code = "unacceptable",
                              .message = "the server refused the original result",
                              .flags = INTACT_EFFECT_UNKNOWN}; /* it may have taken effect */

    write_error(r, &t);
}

static bool claim(struct intact_request *r)
{
    return !(atomic_fetch_or(&r->state, REQUEST_CLAIMED) & REQUEST_CLAIMED);
}

/* The attempt has ended, and the server has handled the missing answer by now. */
void request_drop_if_late(struct intact_request *r)
{
    if (request_is_over(r))
        buf_fini(&r->result);
}

/* The answer is final. If the handler has returned, only the answer was missing, and `r` goes
 * on. */
static void settle(struct intact_request *r)
{
    if (!(atomic_fetch_or(&r->state, REQUEST_ANSWERED) & REQUEST_RETURNED))
        return;
    request_drop_if_late(r);
    outbox_put(r->outbox, r);
}

void intact_answer(struct intact_request *r, const char *output_json)
{
    if (!claim(r))
        return;
    write_output(r, slice_of(output_json ? output_json : "null"));
    settle(r);
}

void request_answer_members(struct intact_request *r, const struct json *object)
{
    struct buf *b = &r->result;

    if (!claim(r))
        return;
    json_open(b, '{');
    json_member_text(b, "token", r->token);
    for (const struct json *j = object->child; j; j = j->next)
        if (!slice_is(j->key, "token")) {
            json_key_slice(b, j->key);
            json_raw(b, j->raw);
        }
    json_close(b, '}');
    if (b->overflow || b->len > RESULT_MAX) /* cut, it would invalidate the call with all others */
        write_error(r, &(struct trouble){.code = "output_too_long",
                                         .message = "the agent's result is too long as JSON",
                                         .flags =
                                             INTACT_EFFECT_UNKNOWN}); /* it may have taken effect */
    settle(r);
}

void request_on_released(struct intact_request *r, request_released_fn *fn, void *arg)
{
    r->on_released = fn;
    r->released_arg = arg;
}

void intact_answer_error(struct intact_request *r, const char *code, const char *message,
                         unsigned flags)
{
    if (!claim(r))
        return;
    write_trouble(r, &(struct trouble){.code = code, .message = message, .flags = flags}, NULL);
    settle(r);
}

void intact_answer_retry(struct intact_request *r, const char *code, const char *message,
                         unsigned flags, int64_t after_ms)
{
    if (!claim(r))
        return;
    write_trouble(r,
                  &(struct trouble){.code = code,
                                    .message = message,
                                    .flags = flags | INTACT_RETRYABLE,
                                    .after_ms = after_ms},
                  NULL);
    settle(r);
}

void intact_answer_error_resume(struct intact_request *r, const char *code, const char *message,
                                unsigned flags, int64_t after_ms, const char *resume_json)
{
    if (!claim(r))
        return;
    write_trouble(
        r,
        &(struct trouble){.code = code, .message = message, .flags = flags, .after_ms = after_ms},
        resume_json);
    settle(r);
}

void intact_answer_elsewhere(struct intact_request *r)
{
    struct buf *b = &r->result;

    if (!claim(r))
        return;
    json_open(b, '{');
    json_member_text(b, "token", r->token);
    json_member_bool(b, "elsewhere", true);
    write_tries(r);
    json_close(b, '}');
    settle(r);
}

void intact_answer_nothing(struct intact_request *r)
{
    if (claim(r))
        settle(r);
}
