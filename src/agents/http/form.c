/* Checks the input of a step with `http`, and puts it in terms of HTTP: method, path, query,
 * headers and body, each value escaped so that it stays a value (form.h). Pure; http_job.c sends
 * it. definition/reader/http_step.c made the input from the definition. */

#include "agents/http/form.h"

#include <stdio.h>
#include <strings.h>

#include "net/steps.h"

enum { METHOD_COUNT = 7, HEADERS_MAX = 64, URL_PART_MAX = 16 << 10 };

const char *const status_list_names[STATUS_LISTS] = {"completed", "permanent", "retryable",
                                                     "elsewhere"};

bool statuses_read(const struct json *j, struct statuses *ret)
{
    struct statuses s = {0};
    int64_t v = 0;

    if (j->type != JSON_ARRAY)
        return false;
    for (const struct json *m = j->child; m; m = m->next) {
        if (!json_int(m, &v) || v < 200 || v > 599)
            return false;
        statuses_add(&s, (long)v);
    }
    *ret = s;
    return true;
}

/* ---- parts of a URL ---- */

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || (c && strchr("-._~", c));
}

void form_escape(struct buf *b, struct slice text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (is_unreserved((char)c)) {
            buf_byte(b, (char)c);
            continue;
        }
        buf_byte(b, '%');
        buf_byte(b, digits[c >> 4]);
        buf_byte(b, digits[c & 15]);
    }
}

static bool is_visible(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c == 0x7f || (c && strchr("?#\"\\<>^`{|}", c)))
            return false;
    }
    return true;
}

bool path_is_plain(struct slice path)
{
    return is_visible(path) && !path_has_steps(path);
}

/* Appends a text as it is, with non-ASCII bytes escaped. */
static void add_plain(struct buf *b, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x80)
            buf_byte(b, text.ptr[i]);
        else
            form_escape(b, (struct slice){text.ptr + i, 1});
}

/* ---- values ---- */

/* The text of a value in a path, query or header; false: null, an array or an object. */
static bool text_of(const struct json *j, struct slice *ret)
{
    switch (j->type) {
    case JSON_STRING:
    case JSON_NUMBER:
        *ret = j->text;
        return true;
    case JSON_TRUE:
        *ret = SLICE("true");
        return true;
    case JSON_FALSE:
        *ret = SLICE("false");
        return true;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return false;
}

static enum err expect(struct error *e, const char *where, const struct json *j, const char *what)
{
    bool is_container = j->type == JSON_ARRAY || j->type == JSON_OBJECT;
    struct slice found = is_container ? slice_of(json_type_text(j->type)) : slice_cut(j->raw, 60);

    return error_set(e, ERR_INVALID, "%s: found %.*s, expected %s", where, SLICE_ARG(found), what);
}

/* ---- the members ---- */

static enum err read_method(const struct json *j, struct form *f, struct error *e)
{
    static const char *const methods[METHOD_COUNT] = {"POST",   "GET",  "PUT",    "PATCH",
                                                      "DELETE", "HEAD", "OPTIONS"};

    f->method = SLICE("POST");
    if (!j)
        return ERR_OK;
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (j->type == JSON_STRING && slice_is(j->text, methods[i])) {
            f->method = slice_of(methods[i]);
            return ERR_OK;
        }
    return expect(e, "method", j, "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
}

static enum err add_path_value(struct buf *b, const struct json *j, size_t index, struct error *e)
{
    struct slice text = SLICE_NONE;
    char where[40];

    (void)snprintf(where, sizeof where, "path[%zu]", index);
    if (!text_of(j, &text) || text.len == 0)
        return expect(e, where, j, "a text that is not empty, or a number");
    if (path_has_steps(text)) /* some servers decode its slashes before they look for these */
        return expect(e, where, j, "a value that has neither \".\" nor \"..\" as a part");
    form_escape(b, text);
    return ERR_OK;
}

static enum err add_path_text(struct buf *b, const struct json *j, struct error *e)
{
    if (j->type != JSON_STRING || !is_visible(j->text))
        return expect(e, "path", j, "a text without spaces, ? and #");
    add_plain(b, j->text);
    return ERR_OK;
}

static enum err read_path(const struct json *j, struct arena *a, struct form *f, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {.max = URL_PART_MAX};
    enum err err = ERR_OK;
    size_t i = 0;

    if (!j)
        return error_set(e, ERR_INVALID,
                         "path: found nothing, expected a text that begins with /; an input "
                         "without one needs an action in the agent's configuration");
    if (j->type == JSON_STRING)
        err = add_path_text(&b, j, e);
    else if (j->type != JSON_ARRAY)
        return expect(e, "path", j, "a text that begins with /, or an array of texts and values");
    else
        for (const struct json *m = j->child; m && err == ERR_OK; m = m->next, i++)
            err = i % 2 == 0 ? add_path_text(&b, m, e) : add_path_value(&b, m, i, e);
    if (err != ERR_OK)
        return err;
    if (b.overflow || b.len == 0 || b.ptr[0] != '/')
        return error_set(e, ERR_INVALID, "path: %s, expected a text that begins with /",
                         b.overflow ? "longer than 16 KiB" : "begins otherwise");
    if (path_has_steps(buf_view(&b)))
        return error_set(e, ERR_INVALID,
                         "path: has \".\" or \"..\" as a part, expected one that leads nowhere "
                         "else");
    f->path = arena_copy(a, buf_view(&b));
    return ERR_OK;
}

static enum err add_pair(struct buf *b, const struct json *name, const struct json *value,
                         const char *what, struct error *e)
{
    struct slice text = SLICE_NONE;
    char where[120];

    (void)snprintf(where, sizeof where, "%s.%.*s", what, SLICE_ARG(slice_cut(name->key, 80)));
    if (value->type == JSON_NULL)
        return ERR_OK;
    if (!text_of(value, &text))
        return expect(e, where, value, "a text, a number, true, false, null, or an array of them");
    if (b->len > 0)
        buf_byte(b, '&');
    form_escape(b, name->key);
    buf_byte(b, '=');
    form_escape(b, text);
    return ERR_OK;
}

/* {"a": 1, "b": ["x", "y"]} -> a=1&b=x&b=y */
static enum err write_pairs(struct buf *b, const struct json *j, const char *what, struct error *e)
{
    enum err err = ERR_OK;

    if (j->type != JSON_OBJECT)
        return expect(e, what, j, "an object: names and their values");
    for (const struct json *m = j->child; m && err == ERR_OK; m = m->next)
        if (m->type == JSON_ARRAY)
            for (const struct json *v = m->child; v && err == ERR_OK; v = v->next)
                err = add_pair(b, m, v, what, e);
        else
            err = add_pair(b, m, m, what, e);
    return err;
}

static enum err read_query(const struct json *j, struct arena *a, struct form *f, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {.max = URL_PART_MAX};

    f->query = SLICE("");
    if (!j || j->type == JSON_NULL)
        return ERR_OK;
    enum err err = write_pairs(&b, j, "query", e);
    if (err == ERR_OK && b.overflow)
        return error_set(e, ERR_INVALID, "query: longer than 16 KiB");
    f->query = arena_copy(a, buf_view(&b));
    return err;
}

const char *header_name_fault(struct slice name)
{
    static const char *const taken[] = {"host",
                                        "content-length",
                                        "transfer-encoding",
                                        "connection",
                                        "keep-alive",
                                        "upgrade",
                                        "te",
                                        "trailer",
                                        "expect",
                                        "idempotency-key",
                                        "traceparent",
                                        "proxy-connection",
                                        "accept-encoding"};

    if (name.len == 0 || name.len > 128)
        return "a name of 1 to 128 characters";
    for (size_t i = 0; i < name.len; i++)
        if (!is_unreserved(name.ptr[i]) && !(name.ptr[i] && strchr("!#$%&'*+^`|", name.ptr[i])))
            return "a name of letters, digits and -";
    if (name.len >= 7 && strncasecmp(name.ptr, "intact-", 7) == 0)
        return "a header that the agent does not set itself";
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        if (name.len == strlen(taken[i]) && strncasecmp(name.ptr, taken[i], name.len) == 0)
            return "a header that the agent does not set itself";
    return NULL;
}

static enum err read_header(const struct json *m, struct arena *a, struct header **ret,
                            struct error *e)
{
    struct slice text = SLICE_NONE;
    char where[120];
    const char *fault = header_name_fault(m->key);

    (void)snprintf(where, sizeof where, "headers.%.*s", SLICE_ARG(slice_cut(m->key, 80)));
    if (fault)
        return error_set(e, ERR_INVALID, "headers: found the name \"%.*s\", expected %s",
                         SLICE_ARG(slice_cut(m->key, 80)), fault);
    if (!text_of(m, &text))
        return expect(e, where, m, "a text of one line");
    if (!header_value_is_sound(text))
        return error_set(e, ERR_INVALID,
                         "%s: has a line break or another control character, or more than 8 KiB; "
                         "expected a text of one line",
                         where);
    struct header *h = arena_alloc(a, sizeof *h);
    *h = (struct header){NULL, m->key, text};
    *ret = h;
    return ERR_OK;
}

static enum err read_headers(const struct json *j, struct arena *a, struct form *f, struct error *e)
{
    struct header **end = &f->headers;

    if (!j || j->type == JSON_NULL)
        return ERR_OK;
    if (j->type != JSON_OBJECT)
        return expect(e, "headers", j, "an object: names and their values");
    if (j->count > HEADERS_MAX)
        return error_set(e, ERR_INVALID, "headers: more than %d of them", HEADERS_MAX);
    for (const struct json *m = j->child; m; m = m->next) {
        if (m->type == JSON_NULL)
            continue;
        enum err err = read_header(m, a, end, e);
        if (err != ERR_OK)
            return err;
        ASSERT(*end);
        f->has_type |= m->key.len == 12 && strncasecmp(m->key.ptr, "content-type", 12) == 0;
        end = &(*end)->next;
    }
    return ERR_OK;
}

static struct slice type_of(const struct form *f)
{
    for (const struct header *h = f->headers; h; h = h->next)
        if (h->name.len == 12 && strncasecmp(h->name.ptr, "content-type", 12) == 0)
            return h->value;
    return SLICE("application/json");
}

static bool begins(struct slice text, const char *with)
{
    size_t len = strlen(with);

    return text.len >= len && strncasecmp(text.ptr, with, len) == 0;
}

static bool is_json_type(struct slice type)
{
    const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    size_t len = end ? (size_t)(end - type.ptr) : type.len;

    while (len > 0 && type.ptr[len - 1] == ' ')
        len--;
    return begins(type, "application/json")
           || (len > 5 && strncasecmp(type.ptr + len - 5, "+json", 5) == 0);
}

/* JSON as it is; with another content type, an object as a form, and a string as its text. */
static enum err read_body(const struct json *j, struct arena *a, struct form *f, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice type = type_of(f);

    f->body = SLICE_NONE;
    if (!j)
        return ERR_OK;
    f->body = j->raw;
    if (is_json_type(type))
        return ERR_OK;
    if (j->type == JSON_STRING) {
        f->body = j->text;
        return ERR_OK;
    }
    if (!begins(type, "application/x-www-form-urlencoded"))
        return expect(e, "body", j, "a text, since Content-Type is not JSON");
    enum err err = write_pairs(&b, j, "body", e);
    f->body = arena_copy(a, buf_view(&b));
    return err;
}

static enum err read_lists(const struct json *j, struct form *f, struct error *e)
{
    for (size_t i = 0; i < STATUS_LISTS; i++) {
        const struct json *list = json_get(j, status_list_names[i]);
        if (list && !statuses_read(list, &f->lists[i]))
            return expect(e, status_list_names[i], list, "an array of statuses such as [404, 410]");
    }
    return ERR_OK;
}

static enum err check_names(const struct json *j, struct error *e)
{
    static const char *const known[] = {"method",    "path",     "query",     "headers",
                                        "body",      "output",   "completed", "permanent",
                                        "retryable", "elsewhere"};

    for (const struct json *m = j->child; m; m = m->next) {
        bool is_known = false;
        for (size_t i = 0; i < COUNT_OF(known); i++)
            is_known |= slice_is(m->key, known[i]);
        if (!is_known)
            return error_set(
                e, ERR_INVALID,
                "found a member \"%.*s\", expected method, path, query, headers, body, "
                "output and lists of statuses; an input of another kind needs an "
                "action in the agent's configuration",
                SLICE_ARG(slice_cut(m->key, 80)));
    }
    return ERR_OK;
}

enum err form_read(const struct json *j, struct arena *a, struct form *ret, struct error *e)
{
    struct form f = {0};
    const struct json *output = json_get(j, "output");

    if (j->type != JSON_OBJECT)
        return error_set(e, ERR_INVALID,
                         "the input is %s, expected an object with method, path, query, headers "
                         "and body, or an action in the agent's configuration",
                         json_type_text(j->type));
    if (check_names(j, e) != ERR_OK || read_method(json_get(j, "method"), &f, e) != ERR_OK
        || read_path(json_get(j, "path"), a, &f, e) != ERR_OK
        || read_query(json_get(j, "query"), a, &f, e) != ERR_OK
        || read_headers(json_get(j, "headers"), a, &f, e) != ERR_OK
        || read_body(json_get(j, "body"), a, &f, e) != ERR_OK || read_lists(j, &f, e) != ERR_OK)
        return ERR_INVALID;
    if (output && output->type != JSON_STRING)
        return expect(e, "output", output, "an expression in a string");
    f.output = output ? output->text : SLICE_NONE;
    *ret = f;
    return ERR_OK;
}
