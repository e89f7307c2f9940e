#include "server/internal.h"

#include <strings.h>

#include "base/when.h"
#include "json/json.h"

bool content_type_is(const struct http_request *r, const char *type)
{
    struct slice s = http_header(r, "content-type");
    size_t len = strlen(type);

    return s.ptr && s.len >= len && strncasecmp(s.ptr, type, len) == 0
           && (s.len == len || s.ptr[len] == ';' || s.ptr[len] == ' ');
}

struct json *body_json(struct http_request *r)
{
    const struct server *sv = http_handler_arg(r);
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (!content_type_is(r, "application/json")) {
        http_problem(r, 415, "content-type", "send the body as application/json");
        return NULL;
    }
    if (json_parse_within(&r->arena, r->body, (unsigned)sv->limits.json_depth, &j, &fault)
        != ERR_OK) {
        http_problem(r, 400, "not-json", "the body is not JSON: line %u, column %u: %s", fault.line,
                     fault.column, fault.what);
        return NULL;
    }
    if (j->type != JSON_OBJECT) {
        http_problem(r, 422, "not-an-object", "the body is %s, expected an object",
                     json_type_text(j->type));
        return NULL;
    }
    return j;
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

bool is_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr("._:-", c))))
            return false;
    }
    return s.ptr && s.len >= 1 && s.len <= 128;
}
