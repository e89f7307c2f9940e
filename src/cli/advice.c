#include "cli/advice.h"

#include <string.h>

#include "config/reader.h"
#include "json/json.h"

static const char *task_of(const struct invocation *in)
{
    bool has = in && in->word_count > 0 && in->verb->arguments[0].kind == WORD_TASK;

    return has ? in->words[0] : "TASK";
}

/* Between the first quotes of a sentence; NONE if there are none. */
static struct slice quoted_in(struct slice text)
{
    const char *from = text.len ? memchr(text.ptr, '"', text.len) : NULL;
    size_t left = from ? text.len - (size_t)(from + 1 - text.ptr) : 0;
    const char *to = left ? memchr(from + 1, '"', left) : NULL;

    return to ? (struct slice){from + 1, (size_t)(to - from - 1)} : SLICE_NONE;
}

static void add_workflow(struct intact_client *c, struct slice detail, struct buf *b)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice name = arena_copy(&a, quoted_in(detail));
    struct json *answer = NULL;

    if (name.len == 0 || memmem(detail.ptr, detail.len, "version", 7)) {
        buf_str(b, "; intact workflow list shows all workflows");
        return;
    }
    if (intact_client_call(c, "GET", "/v1/workflows", NULL, NULL, 0) != INTACT_OK
        || json_parse(&a, (struct slice){intact_client_body(c), intact_client_body_size(c)},
                      &answer, NULL)
               != ERR_OK)
        return;
    const struct json *list = json_get(answer, "workflows");
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        if (name_is_near(name, json_get_text(j, "name"))) {
            buf_fmt(b, "; did you mean \"%.*s\"?", SLICE_ARG(json_get_text(j, "name")));
            return;
        }
    buf_str(b, list && list->child ? "; intact workflow list shows all workflows"
                                   : "; none is stored yet: intact workflow put FILE");
}

static void add_retry(const struct intact_client *c, struct buf *b)
{
    const char *after = intact_client_header(c, "Retry-After");

    if (after && after[strspn(after, "0123456789")] == 0 && *after)
        buf_fmt(b, " (retry in %ss)", after);
}

void advice_add(struct intact_client *c, const struct invocation *in, struct buf *b)
{
    static const struct {
        const char *type, *text;
    } plain[] = {
        {"forbidden", "; an admin can create such a token: intact token create NAME --role ROLE"},
        {"foreign", "; use one of its names, or start it with --host NAME"},
        {"no-such-task", "; intact list shows the newest tasks"},
        {"no-such-agent", "; intact agent list shows all agents"},
        {"no-such-token", "; intact token list shows all tokens"},
        {"token-exists", "; use another name, or delete that token first: intact token delete"},
        {"task-exists", "; use another --id if it is another task"},
        {"task-overran", "; with other input, use another --id"},
        {"last-admin", "; intact token create NAME --role admin first"},
        {"too-big", "; serve --limit body=SIZE sets the server's limit"},
        {"full", "; free space on its disk: it then continues by itself"},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf copy = {0};
    struct json *problem = NULL;

    buf_add(&copy, intact_client_body(c), intact_client_body_size(c));
    if (json_parse(&a, buf_view(&copy), &problem, NULL) != ERR_OK)
        return;
    struct slice type = json_get_text(problem, "type");
    static const char prefix[] = "urn:intact:problem:";
    size_t skip = type.len > strlen(prefix) ? strlen(prefix) : 0;
    type = (struct slice){type.ptr + skip, type.len - skip};
    if (slice_is(type, "no-such-workflow"))
        add_workflow(c, json_get_text(problem, "detail"), b);
    else if (slice_is(type, "conflict"))
        buf_fmt(b, "; intact why %s explains what the task waits for", task_of(in));
    else if (intact_client_http_status(c) == 429 || intact_client_http_status(c) == 503)
        add_retry(c, b);
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (slice_is(type, plain[i].type))
            buf_str(b, plain[i].text);
}
