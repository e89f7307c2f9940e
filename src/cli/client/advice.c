/* Advice after a refused call: what the user can do about it, found in the answer or by one more
 * call to the server (advice.h). client.c appends it to the message; it never changes the exit
 * status. */

#include "cli/client/advice.h"

#include <string.h>

#include "cli/client/client.h"
#include "config/config_reader.h"
#include "json/json.h"

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

/* The first command of a reason's `moves`, which are a sentence and lines of commands; NONE. */
static struct slice command_in(struct slice moves)
{
    const char *from = moves.len ? memchr(moves.ptr, '\n', moves.len) : NULL;
    struct slice rest =
        from ? (struct slice){from, (size_t)(moves.ptr + moves.len - from)} : SLICE_NONE;

    while (rest.len > 0 && (*rest.ptr == '\n' || *rest.ptr == ' '))
        rest = (struct slice){rest.ptr + 1, rest.len - 1};
    const char *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
    if (end)
        rest.len = (size_t)(end - rest.ptr);
    return rest;
}

/* By what the server says of the task now; nothing, if it does not. */
static void add_what_can_be_done(struct intact_client *c, const struct invocation *in,
                                 struct buf *b)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct json *answer = NULL;

    if (!in || in->word_count == 0 || in->verb->arguments[0].kind != WORD_TASK)
        return;
    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_str(&path, "/why");
    if (intact_client_call(c, "GET", path.ptr, NULL, NULL, 0) != INTACT_OK
        || json_parse(&a, (struct slice){intact_client_body(c), intact_client_body_size(c)},
                      &answer, NULL)
               != ERR_OK)
        return;
    const struct json *reasons = json_get(answer, "reasons");
    const struct json *first = reasons ? reasons->child : NULL;
    struct slice kind = json_get_text(first, "kind");
    struct slice command = command_in(json_get_text(first, "moves"));
    if (slice_is(kind, "compensated"))
        buf_str(b, "; it was undone: to run it again, submit it under another id");
    else if (slice_is(kind, "processed") && command.len == 0)
        buf_str(b, "; it has ended, and nothing more can be done with it");
    else if (slice_is(kind, "closed") && strstr(b->ptr, "intact reopen"))
        return; /* it was said */
    else if (slice_is(kind, "processed") || slice_is(kind, "closed"))
        buf_fmt(b, "; what can be done: %.*s", SLICE_ARG(command));
    else
        buf_fmt(b, "; intact why %s explains what the task waits for", in->words[0]);
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
        add_what_can_be_done(c, in, b);
    else if (intact_client_http_status(c) == 429 || intact_client_http_status(c) == 503)
        add_retry(c, b);
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (slice_is(type, plain[i].type))
            buf_str(b, plain[i].text);
}
