/* Reads `http` of a step or an undo, checks it, and turns it into the input of the HTTP agent
 * (http_step.h). Method, path and header names are fixed here, so that values of a task cannot
 * change where a request goes. agents/http/form.c reads the evaluated input at the other end. */

#include "definition/reader/http_step.h"

#include <strings.h>

#include "definition/template/reference.h"
#include "definition/template/template.h"

/* The parts of `http` while it is read. */
struct http_draft {
    struct template *path, *query, *headers, *body;
    struct slice method, output; /* JSON texts, or NONE */
    struct status_list {
        struct slice json; /* NONE: not given */
        const struct json *value;
    } completed, permanent, retryable, elsewhere;
    bool has_path;
};

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text.len == strlen(words[i]) && strncasecmp(text.ptr, words[i], text.len) == 0)
            return true;
    return false;
}

static void read_method(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    static const char *const methods[] = {"GET",   "HEAD",   "POST",   "PUT",
                                          "PATCH", "DELETE", "OPTIONS"};
    struct http_draft *d = target;

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (j->type == JSON_STRING && slice_is(j->text, methods[i])) {
            d->method = j->raw;
            return;
        }
    mistake_in(r, path, j, "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
}

/* Values must not change where the request goes, so path and values stay separate: ["/charges/",
 * 17]. The sender escapes every second entry. */
static void read_url_path(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct http_draft *d = target;

    d->has_path = true;
    if (j->type != JSON_STRING || j->text.len == 0 || j->text.ptr[0] != '/') {
        mistake_in(r, path, j, "a text that begins with /");
        return;
    }
    size_t before = r->mistakes->count;
    read_template_parts(r, j, path, &d->path);
    if (r->mistakes->count == before && !template_path_is_plain(d->path))
        mistake_in(r, path, j,
                   "a path without spaces, ?, # and control characters: what follows ? "
                   "belongs into query");
}

static void read_query(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct http_draft *d = target;

    if (j->type != JSON_OBJECT)
        mistake_in(r, path, j, "an object: names and their values");
    else
        read_template(r, j, path, &d->query);
}

static bool is_header_name(struct slice name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && (c == 0 || !strchr(others, c)))
            return false;
    }
    return name.len > 0 && name.len <= 128;
}

static bool is_broken_line(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' && text.ptr[i] != '\t')
            return true;
    return false;
}

static void check_header(struct reader *r, const struct json *m, const struct path *path)
{
    /* Headers that the agent sets itself, and those that frame a message. */
    static const char *const taken[] = {"Host",
                                        "Content-Length",
                                        "Transfer-Encoding",
                                        "Connection",
                                        "Keep-Alive",
                                        "Upgrade",
                                        "TE",
                                        "Trailer",
                                        "Expect",
                                        "Idempotency-Key",
                                        "Traceparent"};
    static const char *const secret[] = {"Authorization", "Proxy-Authorization", "Cookie",
                                         "X-Api-Key"};
    struct path at = {path, m->key, 0};
    bool is_ours = m->key.len >= 7 && strncasecmp(m->key.ptr, "Intact-", 7) == 0;

    if (!is_header_name(m->key))
        mistake_at(r, &at, m->key_at, "a name that no header has", "letters, digits and -");
    else if (is_ours || is_one_of(m->key, taken, COUNT_OF(taken)))
        mistake_at(r, &at, m->key_at, "a header that the agent sets", "any other header");
    else if (is_one_of(m->key, secret, COUNT_OF(secret)))
        warn_at(r, &at, m->key_at, m->key,
                "it in the agent's configuration: everybody who may read a definition or a task "
                "can read this value");
    if (m->type != JSON_STRING && m->type != JSON_NUMBER && m->type != JSON_TRUE
        && m->type != JSON_FALSE && m->type != JSON_NULL)
        mistake_in(r, &at, m, "a text");
    else if (m->type == JSON_STRING && is_broken_line(m->text))
        mistake_in(r, &at, m, "a text of one line");
}

static void read_headers(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct http_draft *d = target;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object: names and their values");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next)
        check_header(r, m, path);
    read_template(r, j, path, &d->headers);
}

static void read_body(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct http_draft *d = target;

    read_template(r, j, path, &d->body);
}

/* `output` is evaluated by the agent, with the response as its only input. */
static void read_answer(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct http_draft *d = target;
    struct references refs = {0};
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;

    if (j->type != JSON_STRING) {
        mistake_in(r, path, j, "an expression in a string, on .status, .headers and .body");
        return;
    }
    if (expression_compile(j->text, r->arena, &x, &column, &e) != ERR_OK) {
        mistake_of_expression(r, path, reader_string_offset(r, j, column - 1), e.text);
        return;
    }
    references_collect(x, false, r->arena, &refs);
    bool is_whole = refs.any_unchecked /* it uses ".", or a call taken for that before */
                    || (refs.input && refs.task && refs.steps);
    if (!is_whole && (refs.input || refs.task || refs.steps || refs.list))
        mistake_in(r, path, j, ".status, .headers and .body: it sees the answer, not the task");
    else
        d->output = j->raw;
    const struct odd_name *odd =
        d->output.ptr ? shape_odd_names(x, shape_of_answer(), r->arena) : NULL;
    for (; odd; odd = odd->next)
        shape_warn(r, path, reader_string_offset(r, j, odd->at), odd);
}

static void read_statuses(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct status_list *list = target;

    if (j->type != JSON_ARRAY) {
        mistake_in(r, path, j, "an array of statuses such as [404, 410]");
        return;
    }
    struct path at = {path, SLICE_NONE, 0};
    for (const struct json *m = j->child; m; m = m->next, at.index++)
        if (m->type != JSON_NUMBER || m->raw.len != 3 || m->raw.ptr[0] < '2' || m->raw.ptr[0] > '5'
            || memchr(m->raw.ptr, '.', 3) || memchr(m->raw.ptr, 'e', 3))
            mistake_in(r, &at, m, "a status from 200 to 599");
    list->json = j->raw;
    list->value = j;
}

static bool has_status(const struct status_list *list, const struct json *status)
{
    for (const struct json *m = list->value ? list->value->child : NULL; m; m = m->next)
        if (m != status && slice_eq(m->raw, status->raw))
            return true;
    return false;
}

/* A status in two lists is ambiguous. */
static void check_statuses(struct reader *r, const struct path *path, const struct http_draft *d)
{
    const struct status_list *lists[] = {&d->completed, &d->permanent, &d->retryable,
                                         &d->elsewhere};
    static const char *const names[] = {"completed", "permanent", "retryable", "elsewhere"};

    for (size_t i = 1; i < COUNT_OF(lists); i++) {
        struct path of_list = {path, slice_of(names[i]), 0};
        struct path at = {&of_list, SLICE_NONE, 0};
        if (!lists[i]->value)
            continue;
        for (const struct json *m = lists[i]->value->child; m; m = m->next, at.index++)
            for (size_t k = 0; k < i; k++)
                if (has_status(lists[k], m))
                    mistake_in(r, &at, m, "no status that is also in %s", names[k]);
    }
}

static void add(struct template *object, struct reader *r, const char *key, struct template *member)
{
    if (member)
        template_add(object, r->arena, slice_of(key), member);
}

static void add_raw(struct template *object, struct reader *r, const char *key, struct slice json)
{
    if (json.ptr)
        template_add(object, r->arena, slice_of(key), template_new_raw(r->arena, json));
}

static struct template *input_of(struct reader *r, const struct http_draft *d)
{
    struct template *t = template_new_object(r->arena);

    add_raw(t, r, "method", d->method);
    add(t, r, "path", d->path);
    add(t, r, "query", d->query);
    add(t, r, "headers", d->headers);
    add(t, r, "body", d->body);
    add_raw(t, r, "output", d->output);
    add_raw(t, r, "completed", d->completed.json);
    add_raw(t, r, "permanent", d->permanent.json);
    add_raw(t, r, "retryable", d->retryable.json);
    add_raw(t, r, "elsewhere", d->elsewhere.json);
    return t;
}

void read_http_step(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("method", read_method, 0),
        REQUIRED("path", read_url_path, 0),
        FIELD("query", read_query, 0),
        FIELD("headers", read_headers, 0),
        FIELD("body", read_body, 0),
        FIELD("output", read_answer, 0),
        FIELD("completed", read_statuses, offsetof(struct http_draft, completed)),
        FIELD("permanent", read_statuses, offsetof(struct http_draft, permanent)),
        FIELD("retryable", read_statuses, offsetof(struct http_draft, retryable)),
        FIELD("elsewhere", read_statuses, offsetof(struct http_draft, elsewhere)),
    };
    struct http_draft d = {0};

    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    if (j->type != JSON_OBJECT)
        return;
    check_statuses(r, path, &d);
    *(struct template **)target = input_of(r, &d);
}
