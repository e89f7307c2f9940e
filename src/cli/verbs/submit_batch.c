/* Sends one batch of the lines of submit_file.c, repeats what must be repeated, and records each
 * line's outcome (submit_batch.h). Every line has an id, so a repetition is the same task. On the
 * thread of a sender. */

#include "cli/verbs/submit_batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cli/terminal/term.h"
#include "json/json.h"

enum {
    PAUSE_MIN_MS = 50,
    PAUSE_MAX_MS = 5000,
    SLICE_MS = 50,            /* how soon a pause notices an interrupt */
    WAIT_PART_MS = 30 * 1000, /* of a wait, per call */
};

struct sending {
    struct batch *b;
    struct intact_client *c;
    const struct line_rules *rules;
    int64_t ends_at;    /* of the wait for ends */
    int64_t trouble_at; /* when the server stopped answering well; 0: it does */
    bool was_answered;
};

void batch_clear(struct batch *b)
{
    buf_clear(&b->text);
    buf_clear(&b->body);
    arena_fini(&b->arena);
    b->count = 0;
    b->made_ids = false;
    b->end = CLI_OK;
    b->error[0] = 0;
}

void batch_fini(struct batch *b)
{
    buf_fini(&b->text);
    buf_fini(&b->body);
    arena_fini(&b->arena);
}

bool batch_is_full(const struct batch *b, size_t more)
{
    return b->count == BATCH_LINES || (b->count > 0 && b->text.len + more > BATCH_SIZE);
}

void batch_add(struct batch *b, struct slice line, size_t number)
{
    ASSERT(b->count < BATCH_LINES);
    b->lines[b->count++] = (struct bulk_line){.number = number, .at = b->text.len};
    buf_slice(&b->text, line);
    b->lines[b->count].at = b->text.len;
}

struct slice batch_line(const struct batch *b, size_t i)
{
    return (struct slice){b->text.ptr + b->lines[i].at, b->lines[i + 1].at - b->lines[i].at};
}

/* ---- the request for a line ---- */

static void add_made_id(struct batch *b, size_t i, const struct line_rules *rules)
{
    buf_fmt(&b->body, "\"id\":\"%s-%zu\"", rules->run_id, b->lines[i].number);
    b->made_ids = true;
}

static void refuse(struct batch *b, size_t i, int status, const char *reason)
{
    b->lines[i].outcome =
        (struct line_outcome){.status = status, .reason = arena_copy(&b->arena, slice_of(reason))};
}

/* Makes a submission from a line that is an input. */
static void prepare_input(struct batch *b, size_t i, const struct json *input,
                          const struct line_rules *rules)
{
    const struct json *id = rules->id_from ? json_get(input, rules->id_from) : NULL;
    char why[200];

    if (rules->id_from && (!id || (id->type != JSON_STRING && id->type != JSON_NUMBER))) {
        (void)snprintf(why, sizeof why, "it has no member \"%.80s\" that can be its id",
                       rules->id_from);
        refuse(b, i, 422, why);
        return;
    }
    buf_byte(&b->body, '{');
    buf_slice(&b->body, rules->head);
    buf_byte(&b->body, ',');
    if (id) {
        buf_str(&b->body, "\"id\":");
        json_string(&b->body, id->text);
    } else {
        add_made_id(b, i, rules);
    }
    buf_str(&b->body, ",\"input\":");
    buf_slice(&b->body, batch_line(b, i));
    buf_str(&b->body, "}\n");
}

/* A line that is a submission: adds an id if it is missing. The server validates the rest. */
static void prepare_submission(struct batch *b, size_t i, const struct json *j,
                               const struct line_rules *rules)
{
    struct slice line = batch_line(b, i);

    if (j->type == JSON_OBJECT && !json_get(j, "id")) {
        size_t brace = (size_t)(j->raw.ptr - line.ptr) + 1;
        buf_byte(&b->body, '{');
        add_made_id(b, i, rules);
        buf_str(&b->body, j->count > 0 ? "," : "");
        line = (struct slice){line.ptr + brace, line.len - brace};
    }
    buf_slice(&b->body, line);
    buf_byte(&b->body, '\n');
}

static void prepare_line(struct batch *b, size_t i, const struct line_rules *rules)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;
    char why[240];

    if (json_parse(&a, batch_line(b, i), &j, &fault) != ERR_OK) {
        (void)snprintf(why, sizeof why, "not JSON: column %u: %s", fault.column, fault.what);
        refuse(b, i, 400, why);
    } else if (rules->head.ptr) {
        prepare_input(b, i, j, rules);
    } else {
        prepare_submission(b, i, j, rules);
    }
}

/* A line that is refused here has an empty body and is not sent. */
static void prepare(struct batch *b, const struct line_rules *rules)
{
    buf_clear(&b->body);
    for (size_t i = 0; i < b->count; i++) {
        b->lines[i].body_at = b->body.len;
        b->lines[i].outcome = (struct line_outcome){0};
        prepare_line(b, i, rules);
    }
    b->lines[b->count].body_at = b->body.len;
}

/* ---- the server's answer ---- */

static bool is_sent(const struct batch *b, size_t i)
{
    return b->lines[i + 1].body_at > b->lines[i].body_at;
}

/* Replaces the line number in the call by that in the file. */
static struct slice renumber(struct batch *b, const struct json *answer, size_t number)
{
    CLEANUP(buf_fini) struct buf text = {0};

    json_open(&text, '{');
    json_member_number(&text, "line", (int64_t)number);
    for (const struct json *j = answer->child; j; j = j->next)
        if (!slice_is(j->key, "line")) {
            json_key_slice(&text, j->key);
            json_raw(&text, j->raw);
        }
    json_close(&text, '}');
    return arena_copy(&b->arena, buf_view(&text));
}

/* True: the line must be sent again. Once 201 was received, a repetition does not change that. */
static bool take_outcome(struct sending *s, size_t i, const struct json *answer)
{
    struct line_outcome *o = &s->b->lines[i].outcome;
    const struct json *problem = json_get(answer, "problem");
    int64_t status = json_get_int(answer, "status", 0);
    struct slice state = json_get_text(answer, "state");
    bool ends =
        slice_is(state, "processed") || slice_is(state, "compensated") || slice_is(state, "error");

    if (status < 200 || status > 599 || status == 429 || status == 503)
        return true;
    if (o->status != 201)
        o->status = (int)status;
    struct slice detail = json_get_text(problem, "detail");
    o->reason = arena_copy(&s->b->arena, detail.len ? detail : json_get_text(problem, "title"));
    o->state = arena_copy(&s->b->arena, state);
    o->answer = renumber(s->b, answer, s->b->lines[i].number);
    return status < 300 && s->rules->wait_ms >= 0 && !ends;
}

static size_t sent_count(const struct batch *b, size_t from, size_t to)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += is_sent(b, i);
    return n;
}

static bool fail(struct sending *s, int end, const char *fmt, ...) PRINTF(3, 4);
static bool fail(struct sending *s, int end, const char *fmt, ...)
{
    va_list args;

    s->b->end = end;
    va_start(args, fmt);
    (void)vsnprintf(s->b->error, sizeof s->b->error, fmt, args);
    va_end(args);
    return false;
}

/* *ret_open: how many lines must be sent again. False: not a valid answer. */
static bool take_outcomes(struct sending *s, size_t from, size_t to, size_t *ret_open)
{
    const char *at = intact_client_body(s->c);
    const char *end = at + intact_client_body_size(s->c);
    size_t seen = 0;

    for (size_t i = from; i < to; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *j = NULL;
        if (!is_sent(s->b, i))
            continue;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct slice line = {at, (size_t)((stop ? stop : end) - at)};
        if (line.len == 0)
            return fail(s, CLI_NOT_WELL, "%zu tasks submitted, %zu answered",
                        sent_count(s->b, from, to), seen);
        if (json_parse(&a, line, &j, NULL) != ERR_OK)
            return fail(s, CLI_NOT_WELL, "%s does not answer like an Intact server",
                        intact_client_server(s->c));
        seen++;
        *ret_open += take_outcome(s, i, j);
        at = stop ? stop + 1 : end;
    }
    return true;
}

/* ---- sending ---- */

static void pause_for(const struct line_rules *rules, int64_t ms)
{
    for (; ms > 0 && !rules->in_haste(); ms -= SLICE_MS) {
        const struct timespec t = {0, SLICE_MS * 1000000L};
        (void)nanosleep(&t, NULL); /* an early wake-up is harmless */
    }
}

/* Waits after a failure. True: try again; false: give up. */
static bool may_try_again(struct sending *s, enum intact_status status, unsigned tries)
{
    const char *after = intact_client_header(s->c, "Retry-After");
    int64_t now = clock_steady_ms();
    int64_t ms = tries < 7 ? (int64_t)PAUSE_MIN_MS << tries : PAUSE_MAX_MS;

    if (status == INTACT_UNREACHABLE && !s->was_answered)
        return false; /* it was never reached */
    if (s->trouble_at == 0)
        s->trouble_at = now;
    if (now - s->trouble_at >= s->rules->patience_ms || s->rules->in_haste())
        return false;
    if (after && strtol(after, NULL, 10) > 0 && ms < 1000)
        ms = 1000 * strtol(after, NULL, 10);
    pause_for(s->rules, ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
    return true;
}

static enum intact_status call(struct sending *s, size_t from, size_t to)
{
    const struct batch *b = s->b;
    int64_t left = s->ends_at - clock_steady_ms();
    char path[60] = "/v1/tasks";

    if (s->rules->wait_ms > 0 && left > 0)
        (void)snprintf(path, sizeof path, "/v1/tasks?wait=%dms",
                       (int)(left < WAIT_PART_MS ? left : WAIT_PART_MS));
    return intact_client_call(s->c, "POST", path, "application/x-ndjson",
                              b->body.ptr + b->lines[from].body_at,
                              b->lines[to].body_at - b->lines[from].body_at);
}

static bool is_over(const struct sending *s)
{
    return clock_steady_ms() >= s->ends_at || s->rules->in_haste();
}

static bool has_busy_line(const struct batch *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (is_sent(b, i) && b->lines[i].outcome.status == 0)
            return true;
    return false;
}

static bool send_halves(struct sending *s, size_t from, size_t to);

static bool refused(struct sending *s, size_t from, size_t to)
{
    if (intact_client_http_status(s->c) != 413)
        return fail(s, CLI_NOT_WELL, "%s", intact_client_error(s->c));
    if (to - from > 1)
        return send_halves(s, from, to);
    refuse(s->b, from, 413, intact_client_error(s->c));
    return true;
}

static bool trouble(struct sending *s, enum intact_status status, unsigned tries)
{
    if (may_try_again(s, status, tries))
        return true;
    return fail(s, CLI_UNREACHED, "%s",
                status == INTACT_OK ? "the server has too much to do" : intact_client_error(s->c));
}

/* Sends a range of lines until all have an outcome. */
static bool send_range(struct sending *s, size_t from, size_t to)
{
    for (unsigned tries = 0; sent_count(s->b, from, to) > 0; tries++) {
        enum intact_status status = call(s, from, to);
        size_t open = 0;
        if (status == INTACT_REFUSED)
            return refused(s, from, to);
        if (status == INTACT_OK && !take_outcomes(s, from, to, &open))
            return false;
        s->was_answered |= status == INTACT_OK;
        if (status != INTACT_OK || has_busy_line(s->b, from, to)) {
            if (!trouble(s, status, tries))
                return false;
            continue;
        }
        if (open == 0 || is_over(s))
            break;
        s->trouble_at = 0; /* only the wait continues */
        tries = 0;
    }
    return true;
}

static bool send_halves(struct sending *s, size_t from, size_t to)
{
    size_t middle = from + (to - from) / 2;

    return send_range(s, from, middle) && send_range(s, middle, to);
}

void batch_send(struct batch *b, struct intact_client *c, const struct line_rules *rules)
{
    struct sending s = {.b = b, .c = c, .rules = rules};

    s.was_answered = b->seq > 0; /* otherwise an unreachable server ends the first batch at once */
    s.ends_at = clock_steady_ms() + (rules->wait_ms > 0 ? rules->wait_ms : 0);
    prepare(b, rules);
    (void)send_range(&s, 0, b->count); /* the result is in `end` */
}
