/*
 * POST /v1/tasks with one submission: reads it (node/submission.c), hands it to the scheduler, and
 * answers. Batches are in tasks_many.c.
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/room.h"
#include "api/tasks.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/strict.h"
#include "node/submission.h"
#include "json/json.h"

/* ---- one task ---- */

/* The request of a single submission; it lies in the submission's arena. */
struct single {
    struct exchange x;
    struct submission s;
    struct registry_wait definitions;
    struct slice body;
    struct buf large;    /* in which it lies, if it is */
    struct slice caller; /* NONE: it is not large */
    int64_t wait_ms;
    size_t bytes;
};

/* All that is kept of it. */
static void answer_deleted(struct http_request *r, const struct submission *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "id");
    json_string(&b, s->ask.id);
    json_key(&b, "workflow");
    json_string(&b, s->ask.definition->workflow.name);
    json_key(&b, "version");
    json_number(&b, s->ask.version);
    json_key(&b, "deleted");
    json_bool(&b, true);
    json_key(&b, "state");
    json_string(&b, slice_of(task_state_text(s->ask.state)));
    json_key(&b, "ended_at");
    json_time(&b, s->ask.ended_at);
    submission_signals(&b, "signals", s);
    json_close(&b, '}');
    answer_json(r, s->status, &b, NULL);
}

static void single_answer(struct single *one)
{
    const struct submission *s = &one->s;
    struct http_request *r = one->x.http;
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf location = {0};

    exchange_untie(&one->x);
    if (s->status == 403)
        caller_log_forbidden(one->x.server, r, s->grant->owner,
                             "it may not submit to this workflow");
    if (s->problem_type) {
        http_problem(r, s->status, s->problem_type, "%s", s->problem);
        return;
    }
    if (s->ask.deleted) {
        answer_deleted(r, s);
        return;
    }
    if (one->wait_ms > 0 && door_may_read(one->x.server, r)) {
        /* Its own, or one whose content it knows. `signals` of a record are those that it keeps. */
        submission_signals(&b, "carried_signals", s);
        if (s->ask.is_open)
            task_answer_end(one->x.server, r, s->ask.id, one->wait_ms, s->status, buf_view(&b));
        else
            task_get_when_ended(one->x.server, r, s->ask.id, NULL, one->wait_ms, s->status,
                                buf_view(&b));
        return;
    }
    json_open(&b, '{');
    json_key(&b, "id");
    json_string(&b, s->ask.id);
    json_key(&b, "workflow");
    json_string(&b, s->ask.definition->workflow.name);
    json_key(&b, "version");
    json_number(&b, s->ask.version);
    submission_signals(&b, "signals", s);
    json_close(&b, '}');
    buf_fmt(&location, "Location: /v1/tasks/%.*s\r\n", SLICE_ARG(s->ask.id));
    answer_json(r, s->status, &b, location.ptr);
}

static void single_end(struct single *one)
{
    struct arena a = one->s.arena; /* it lies in it */

    if (one->x.http && one->large.len > 0)
        one->x.http->body = SLICE(""); /* it goes, however long the request stays */
    if (one->x.http && http_is_alive(one->x.http))
        single_answer(one);
    exchange_untie(&one->x); /* its client is about to be gone */
    one->x.server->load.asks_bytes -= one->bytes;
    buf_fini(&one->large);
    arena_fini(&a);
}

static void single_answered(struct submission *s)
{
    single_end(CONTAINER_OF(s, struct single, s));
}

static void single_is_read(struct submission *s, bool ok)
{
    struct single *one = CONTAINER_OF(s, struct single, s);

    if (ok)
        server_ask(one->x.server, &s->ask);
    else
        single_end(one);
}

static void single_read(struct single *one)
{
    struct server *sv = one->x.server;

    if (one->large.len > 0)
        submission_read_offloaded(sv, &one->s, one->body, one->caller, single_is_read);
    else
        single_is_read(&one->s, submission_read(sv, &one->s, one->body));
}

static void single_may_be_read(struct registry_wait *w, enum err err, const char *story)
{
    struct single *one = CONTAINER_OF(w, struct single, definitions);

    one->x.server->load.exchanges--;
    one->x.server->load.asks_open--;
    if (err == ERR_OK) {
        single_read(one);
        return;
    }
    submission_fails(&one->s, err_http_status(err), trouble_type(err), "%s; try again", story);
    single_end(one);
}

/* It may outlive the client. */
static void single_take_body(struct single *one, struct http_request *r)
{
    if (r->body.len > BODY_SMALL) {
        one->large = http_take_body(r);
        one->body = buf_view(&one->large);
        one->caller = arena_copy(&one->s.arena, one->x.server->caller);
    } else {
        one->body = arena_copy(&one->s.arena, r->body);
    }
}

/* What another node has answered of a definition is so here, too: what is stored by now is known
 * before the submission is read. */
static void single_post(struct server *sv, struct http_request *r, int64_t wait_ms)
{
    struct arena a = {0};
    struct single *one = arena_alloc(&a, sizeof *one);

    one->s.arena = a;
    one->s.answered = single_answered;
    one->s.line = 1;
    one->wait_ms = wait_ms;
    one->bytes = r->body.len;
    sv->load.asks_bytes += one->bytes;
    exchange_begin(&one->x, sv, r);
    single_take_body(one, r);
    one->s.trace = submission_trace(r, &one->s.arena);
    one->s.grant = grant_new(sv->api->bearer, &one->s.arena);
    one->definitions.done = single_may_be_read;
    if (!registry_read(&sv->workflows, &one->definitions)) {
        single_read(one);
        return;
    }
    sv->load.exchanges++;
    sv->load.asks_open++;
}

void tasks_post(struct server *sv, struct http_request *r)
{
    bool many = content_type_is(r, "application/x-ndjson");
    int64_t wait_ms = 0;

    if (!many && !content_type_is(r, "application/json")) {
        answer_content_type(r, "application/json, or application/x-ndjson for many tasks");
        return;
    }
    if (!content_encoding_ok(r) || !parameters_ok(r, NAMES("wait")) || !wait_of(r, &wait_ms)
        || !asks_have_room(sv, r, r->body.len))
        return;
    if (many)
        batch_post(sv, r, wait_ms);
    else if (quota_submits(sv->quotas, r->account, r, 1) && body_may_be_read(sv, r))
        single_post(sv, r, wait_ms);
}
