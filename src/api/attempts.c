/*
 * POST /v1/attempts/{token} {output | error, tries?}: the result of an attempt, from whoever has
 * its token: a webhook, a person. The token is all the right that it takes.
 *
 * It is verified before the body is read. A token without a tag, of an earlier version, can be
 * verified only when its task was read: few such requests are let in at a time, with small bodies.
 */

#include "api/body.h"
#include "api/handlers.h"
#include "api/work.h"
#include "background/unknown_tokens.h"
#include "dispatch/token.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "json/json.h"

enum { UNTAGGED_MAX = 16 };

struct ending {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct exchange x;
    struct arena arena;
    struct ask ask;
    struct work_result result;
    struct slice fault; /* what was left out of it, or NONE */
    size_t bytes;
    bool is_untagged;
};

static void answer_status(struct http_request *r, const struct ending *en)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "status");
    json_string(&b, slice_of(result_status_text(en->result.status)));
    if (en->fault.ptr) {
        json_key(&b, "problem");
        json_string(&b, en->fault);
    }
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* The answer is the same for an attempt that does not exist and for one of another token. */
static void answer_unknown(struct http_request *r)
{
    http_problem(
        r, 404, "unknown-attempt",
        "no attempt has this token: the token was not issued here, or its task was deleted");
}

static void ended(struct ask *a)
{
    struct ending *en = a->user;
    struct http_request *r = en->x.http;
    struct arena arena = en->arena; /* it lies in it */

    en->x.server->load.asks_bytes -= en->bytes;
    en->x.server->load.untagged_open -= en->is_untagged;
    exchange_untie(&en->x);
    if (r && http_is_alive(r)) {
        if (a->outcome == ERR_NOT_FOUND
            || (a->outcome == ERR_OK && en->result.status == RESULT_UNKNOWN))
            answer_unknown(r);
        else if (a->outcome != ERR_OK)
            answer_trouble(r, a->outcome, a->story);
        else
            answer_status(r, en);
    }
    arena_fini(&arena);
}

static bool body_ok(struct http_request *r, const struct json *j)
{
    const struct json *error = json_get(j, "error");
    const struct json *output = json_get(j, "output");
    bool failed = error && error->type != JSON_NULL;
    bool both = failed && output && output->type != JSON_NULL;

    if (!members_ok(r, j, NAMES("output", "error", "tries"), "the result of an attempt"))
        return false;
    if (both || (!failed && !output)) {
        http_problem(r, 422, "bad-result", "the body has %s, expected either an output or an error",
                     both ? "both" : "neither");
        return false;
    }
    return true;
}

static void answer_too_long(struct http_request *r)
{
    http_problem(r, 413, "too-big",
                 "a result for a token of an earlier version may have at most %d bytes, and says "
                 "how many",
                 UNKNOWN_TOKEN_BODY_MAX);
}

bool attempt_head(struct server *sv, struct http_request *r)
{
    struct token token;

    switch (token_judge(sv->key, http_segment(r, 2), &token)) {
    case TOKEN_FORGED:
        answer_unknown(r);
        return false;
    case TOKEN_OURS:
        return true;
    case TOKEN_UNTAGGED:
        if (http_limit_body(r, UNKNOWN_TOKEN_BODY_MAX, false))
            return true;
        answer_too_long(r);
        return false;
    }
    UNREACHABLE();
}

/* The same for one whose body came with its head. */
static bool token_ok(struct server *sv, struct http_request *r, struct slice text,
                     struct token *ret, bool *ret_is_untagged)
{
    enum token_worth worth = token_judge(sv->key, text, ret);

    *ret_is_untagged = worth == TOKEN_UNTAGGED;
    if (worth == TOKEN_FORGED)
        answer_unknown(r);
    else if (*ret_is_untagged && r->body.len > UNKNOWN_TOKEN_BODY_MAX)
        answer_too_long(r);
    else if (*ret_is_untagged && sv->load.untagged_open >= UNTAGGED_MAX)
        http_problem(r, 503, "overloaded", "too many token lookups are waiting; try again");
    else
        return true;
    return false;
}

void attempt_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct slice text = http_segment(r, 2);
    struct arena a = {0};
    struct token token;
    bool is_untagged = false;

    if (!token_ok(sv, r, text, &token, &is_untagged))
        return;
    struct json *j = body_json(r, &tree);
    if (!j || !body_ok(r, j))
        return;
    if (!asks_have_room(sv, r, r->body.len))
        return;
    struct ending *en = arena_alloc(&a, sizeof *en);
    en->arena = a;
    if (!result_read(&en->arena, j, &en->result, &en->fault)) {
        http_problem(r, 422, "bad-result", "%.*s", SLICE_ARG(en->fault));
        a = en->arena;
        arena_fini(&a);
        return;
    }
    en->answered = ended;
    en->result.token = arena_copy(&en->arena, text);
    en->ask = (struct ask){.kind = ASK_END,
                           .user = en,
                           .id = arena_copy(&en->arena, token.task),
                           .result = &en->result};
    en->bytes = r->body.len;
    en->is_untagged = is_untagged;
    sv->load.asks_bytes += en->bytes;
    sv->load.untagged_open += is_untagged;
    exchange_begin(&en->x, sv, r);
    server_ask(sv, &en->ask);
}
