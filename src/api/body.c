/*
 * Reads the parts of a request: its JSON body, within the memory that is left, and parameters that
 * several routes have. Answers the request itself if something is wrong.
 */

#include "api/body.h"

#include "base/when.h"
#include "node/node.h"
#include "node/strict.h"
#include "json/json.h"

enum { ENTRY_AT = 2 /* levels around an entry: the call, and its list */ };

/* Trees of `[0,0,...` are forty times as large as their texts. */
static void answer_too_big(struct http_request *r, bool is_busy)
{
    if (is_busy)
        http_problem(r, 503, "busy",
                     "there is not enough memory at present for the values of this body");
    else
        http_problem(
            r, 413, "too-big",
            "the values of the body need more memory than this server has (--limit memory)");
}

void body_parse(struct arena *tree, struct slice text, unsigned depth, size_t left,
                struct parsed_body *ret)
{
    struct json_fault fault = {0};

    ret->json = NULL;
    ret->err = json_parse_bounded(tree, text, depth, left, &ret->json, &fault);
    if (ret->err != ERR_OK && ret->err != ERR_TOO_BIG)
        refusal_write(&ret->story, text, &fault, 1);
}

static struct json *answer_parsed(struct http_request *r, const struct parsed_body *p, size_t left)
{
    if (p->err == ERR_TOO_BIG)
        answer_too_big(r, left < trees_max(http_handler_arg(r)));
    else if (p->err != ERR_OK)
        http_problem(r, 400, "not-json", "the body is not JSON: %s", p->story.ptr);
    else if (p->json->type != JSON_OBJECT)
        http_problem(r, 422, "not-an-object", "the body is %s, expected an object",
                     json_type_text(p->json->type));
    else
        return p->json;
    return NULL;
}

unsigned body_depth(const struct server *sv, bool is_list)
{
    return is_list ? JSON_DEPTH_MAX : (unsigned)sv->limits.json_depth;
}

uint32_t body_entry_depth(const struct server *sv)
{
    uint32_t depth = (uint32_t)sv->limits.json_depth;

    return depth > ENTRY_AT ? depth - ENTRY_AT : 0;
}

static struct json *parsed(struct http_request *r, struct arena *tree, bool is_list)
{
    const struct server *sv = http_handler_arg(r);
    struct parsed_body p = {0};

    if (!content_type_is(r, "application/json")) {
        answer_content_type(r, "application/json");
        return NULL;
    }
    if (!content_encoding_ok(r))
        return NULL;
    if (r->large)
        return answer_parsed(r, &r->large->parsed, r->large->left);
    size_t left = trees_left(sv);
    body_parse(tree, r->body, body_depth(sv, is_list), left, &p);
    struct json *j = answer_parsed(r, &p, left);
    buf_fini(&p.story);
    return j;
}

struct json *body_json(struct http_request *r, struct arena *tree)
{
    return parsed(r, tree, false);
}

struct json *body_json_of_list(struct http_request *r, struct arena *tree)
{
    return parsed(r, tree, true);
}

bool wait_of(struct http_request *r, int64_t *ret_ms)
{
    struct slice wait = http_query(r, "wait");

    *ret_ms = 0;
    if (!wait.ptr)
        return true;
    if (!duration_parse(wait, ret_ms)) {
        http_problem(r, 422, "bad-wait", "wait is \"%.*s\", expected a duration such as 30s",
                     SLICE_ARG(wait));
        return false;
    }
    *ret_ms = min_i64(*ret_ms, 5 * MS_PER_MIN);
    return true;
}

bool states_of(struct http_request *r, struct slice text, uint32_t *ret)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;

    *ret = 0;
    while (at <= end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct slice word = {at, (size_t)((comma ? comma : end) - at)};
        enum task_state state;
        if (!task_state_parse(word, &state)) {
            http_problem(r, 422, "bad-state",
                         "state is \"%.*s\", expected pending, processing, processed, "
                         "compensating, compensated or error, or several, separated by commas",
                         SLICE_ARG(word));
            return false;
        }
        *ret |= 1U << state;
        at += word.len + 1;
    }
    return true;
}

bool count_of(struct slice text, int64_t max, int64_t *ret)
{
    int64_t v = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || v > INT64_MAX / 10 - 10)
            return false;
        v = v * 10 + (text.ptr[i] - '0');
    }
    *ret = v;
    return text.len > 0 && v > 0 && v <= max;
}
