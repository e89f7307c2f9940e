/* Interprets a service's answer for a step: whether its status means success, failure or a poll,
 * whether an effect can be excluded, and which output it gives (http_answer.h). Pure:
 * net/received_answer.c parses the bytes, http_job.c acts on the meaning. */

#include "agents/http/http_answer.h"

#include <stdio.h>
#include <strings.h>

#include "definition/expression/value.h"
#include "json/text.h"

static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && strchr(" \t\r\n", s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* ---- the status ---- */

enum answer_kind answer_kind(const struct http_answer *a, const struct statuses *first,
                             const struct statuses *then)
{
    static const enum answer_kind kinds[STATUS_LISTS] = {
        [STATUS_COMPLETED] = ANSWER_COMPLETED,
        [STATUS_PERMANENT] = ANSWER_PERMANENT,
        [STATUS_RETRYABLE] = ANSWER_RETRYABLE,
        [STATUS_ELSEWHERE] = ANSWER_ELSEWHERE,
    };
    const struct statuses *both[] = {first, then};

    for (size_t b = 0; b < COUNT_OF(both); b++)
        for (size_t i = 0; i < STATUS_LISTS; i++)
            if (statuses_has(&both[b][i], a->status))
                return kinds[i];
    if (a->status == 425 || (a->status == 202 && answer_header(a, "location").ptr))
        return ANSWER_WORKING;
    if (a->status >= 200 && a->status < 300)
        return ANSWER_COMPLETED;
    if (a->status >= 300 && a->status < 400)
        return ANSWER_REDIRECT;
    return a->status == 409 || a->status == 422 ? ANSWER_PERMANENT : ANSWER_RETRYABLE;
}

bool answer_denies_effect(long status)
{
    return status >= 400 && status < 500 && status != 408;
}

/* ---- the body ---- */

/* "text/html; charset=utf-8" -> utf-8; NONE without a charset. */
static struct slice charset_of(struct slice type)
{
    static const char key[] = "charset=";

    for (size_t i = 0; i + 8 <= type.len; i++) {
        if (strncasecmp(type.ptr + i, key, 8) != 0)
            continue;
        struct slice value = {type.ptr + i + 8, type.len - i - 8};
        const char *end = memchr(value.ptr, ';', value.len);
        if (end)
            value.len = (size_t)(end - value.ptr);
        value = trimmed(value);
        if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
            value = (struct slice){value.ptr + 1, value.len - 2};
        return value;
    }
    return SLICE_NONE;
}

static bool is_like(struct slice s, const char *text)
{
    return s.ptr && s.len == strlen(text) && strncasecmp(s.ptr, text, s.len) == 0;
}

static struct slice from_latin1(struct slice body, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < body.len; i++) {
        unsigned char c = (unsigned char)body.ptr[i];
        if (c >= 0x80)
            buf_byte(&b, (char)(0xc0 | c >> 6));
        buf_byte(&b, (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c));
    }
    return arena_copy(a, buf_view(&b));
}

static struct slice media_of(struct slice type)
{
    const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    return trimmed((struct slice){type.ptr, end ? (size_t)(end - type.ptr) : type.len});
}

static bool is_json_media(struct slice media)
{
    return is_like(media, "application/json") || is_like(media, "text/json")
           || (media.len > 5 && strncasecmp(media.ptr + media.len - 5, "+json", 5) == 0);
}

static enum err text_in(const struct http_answer *a, struct slice type, struct arena *arena,
                        struct slice *ret, struct error *e)
{
    struct slice charset = charset_of(type);
    struct slice body = a->body;

    if (body.len >= 3 && memcmp(body.ptr, "\xef\xbb\xbf", 3) == 0)
        body = (struct slice){body.ptr + 3, body.len - 3};
    if (is_like(charset, "iso-8859-1") || is_like(charset, "latin1"))
        body = from_latin1(body, arena);
    size_t end = text_utf8_end(body);
    if (end != body.len) /* valid UTF-8 is accepted, whatever charset is declared */
        return error_set(e, ERR_INVALID, "the body is not text in UTF-8 from its byte %zu on%s%.*s",
                         end + 1, charset.ptr ? ", but " : "", SLICE_ARG(slice_cut(charset, 40)));
    if (body.len > 0 && memchr(body.ptr, 0, body.len))
        return error_set(e, ERR_INVALID, "the body has a NUL in it");
    *ret = body;
    return ERR_OK;
}

static const struct json *text_node(struct slice text, struct arena *arena)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = arena_alloc(arena, sizeof *j);

    json_string(&b, text);
    *j = (struct json){.type = JSON_STRING,
                       .raw = arena_copy(arena, buf_view(&b)),
                       .text = arena_copy(arena, text)};
    return j;
}

static const struct json *null_node(struct arena *arena)
{
    struct json *j = arena_alloc(arena, sizeof *j);

    *j = (struct json){.type = JSON_NULL, .raw = SLICE("null")};
    return j;
}

enum err answer_body(const struct http_answer *a, struct arena *arena, const struct json **ret,
                     struct error *e)
{
    struct slice type = answer_header(a, "content-type");
    struct slice media = media_of(type);
    struct json_fault fault = {0};
    struct slice text = SLICE_NONE;
    struct json *j = NULL;

    if (a->body.len == 0) {
        *ret = null_node(arena);
        return ERR_OK;
    }
    enum err err = text_in(a, type, arena, &text, e);
    if (err != ERR_OK)
        return err;
    if (is_json_media(media) || !type.ptr)
        err = json_parse_within(arena, text, JSON_DEPTH_OUTSIDE, &j, &fault);
    if (err != ERR_OK && type.ptr)
        return error_set(e, ERR_INVALID, "the body is not JSON: line %u, column %u: %s", fault.line,
                         fault.column, fault.what);
    *ret = err == ERR_OK && j ? j : text_node(text, arena);
    return ERR_OK;
}

/* ---- the output ---- */

static struct json *member(struct arena *a, struct json *object, struct json ***end,
                           struct slice key, enum json_type type)
{
    struct json *j = arena_alloc(a, sizeof *j);

    *j = (struct json){.type = type, .key = key};
    **end = j;
    *end = &j->next;
    object->count++;
    return j;
}

static const struct json *tree_of(const struct http_answer *a, const struct json *body,
                                  struct arena *arena)
{
    struct json *root = arena_alloc(arena, sizeof *root);
    struct json **end = &root->child;
    char number[16];

    root->type = JSON_OBJECT;
    struct json *status = member(arena, root, &end, SLICE("status"), JSON_NUMBER);
    (void)snprintf(number, sizeof number, "%ld", a->status);
    status->text = status->raw = arena_copy(arena, slice_of(number));
    struct json *headers = member(arena, root, &end, SLICE("headers"), JSON_OBJECT);
    struct json **last = &headers->child;
    for (const struct header *h = a->headers; h; h = h->next) {
        struct json *one = member(arena, headers, &last, h->name, JSON_STRING);
        one->text = arena_copy(arena, h->value);
    }
    struct json *copy = member(arena, root, &end, SLICE("body"), body->type);
    *copy = *body;
    copy->key = SLICE("body");
    copy->next = NULL;
    return root;
}

enum err answer_output(const struct http_answer *a, const struct expression *x, struct arena *arena,
                       struct slice *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *body = NULL;
    const struct json *value = NULL;

    enum err err = answer_body(a, arena, &body, e);
    if (err != ERR_OK)
        return err;
    ASSERT(body);
    if (!x) {
        *ret = arena_copy(arena, body->raw);
        return ERR_OK;
    }
    err = expression_eval(x, tree_of(a, body, arena), arena, &value, e);
    if (err != ERR_OK) {
        (void)error_wrap(e, "the step's output cannot be made of it"); /* it is an error already */
        return err;
    }
    if (!value_write(&b, value))
        return error_set(e, ERR_INVALID, "the step's output is nested too deeply");
    *ret = arena_copy(arena, buf_view(&b));
    return ERR_OK;
}
