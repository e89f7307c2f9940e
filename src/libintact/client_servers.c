/* A client of several servers: which one it calls, what may be repeated at the next one, and the
 * ids that submissions get so that a repetition is the same task. client.c and client_start.c are
 * the callers. */

#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "libintact/client.h"
#include "json/json.h"

enum { FOREIGN = 421 /* status of a server that belongs to another installation */ };

bool client_open_servers(struct intact_client *c, const char *urls)
{
    char *rest = NULL;

    c->servers = strdup(urls);
    c->all = calloc(strlen(urls) / 2 + 2, sizeof(*c->all));
    if (!c->servers || !c->all)
        return false;
    for (char *one = strtok_r(c->servers, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        size_t len = strlen(one);
        while (len > 0 && one[len - 1] == '/')
            one[--len] = 0;
        c->all[c->server_count++] = one;
    }
    if (c->server_count == 0)
        c->all[c->server_count++] = ""; /* the first call reports the error */
    c->server = c->all[0];
    return true;
}

void client_close_servers(struct intact_client *c)
{
    free(c->servers);
    free(c->all);
}

static bool is_path(const char *path, const char *expected)
{
    size_t len = strlen(expected);

    return strncmp(path, expected, len) == 0 && (path[len] == 0 || path[len] == '?');
}

bool client_may_repeat(const char *method, const char *path)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0
           || (strcmp(method, "POST") == 0
               && (is_path(path, "/v1/tasks") || is_path(path, "/v1/validate")
                   || strncmp(path, "/v1/attempts/", 13) == 0));
}

/* No byte of it was sent. */
static bool was_not_sent(CURLcode code)
{
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY
           || code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR;
}

/* The node does not do this kind of work, or not any more, so it has not begun. */
static bool was_not_begun(const struct intact_reply *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *problem = NULL;

    if (json_parse(&a, buf_view(&r->body), &problem, NULL) != ERR_OK)
        return false;
    struct slice type = json_get_text(problem, "type");
    return slice_is(type, "urn:intact:problem:not-a-scheduler")
           || slice_is(type, "urn:intact:problem:draining");
}

bool client_moves_on(struct intact_client *c, size_t index, const struct intact_reply *r,
                     CURLcode code, bool may_repeat)
{
    bool is_foreign = code == CURLE_OK && r->status == FOREIGN;
    bool failed = code != CURLE_OK || r->status == 503 || is_foreign;
    bool is_safe =
        may_repeat || is_foreign || (code == CURLE_OK ? was_not_begun(r) : was_not_sent(code));

    /* The answer was too long, or the receiver refused it; another server's would be, too. */
    if (c->server_count < 2 || !failed || !is_safe || code == CURLE_WRITE_ERROR)
        return false;
    if (c->server_index == index) { /* otherwise another call has moved on already */
        c->server_index = (index + 1) % c->server_count;
        c->server = c->all[c->server_index];
        client_forget_found(c);
    }
    return true;
}

/* ---- ids ---- */

/* UUIDv7: time, so that ids of one time are adjacent, plus random bits. */
static void write_id(struct buf *b)
{
    unsigned char u[16];
    uint64_t ms = (uint64_t)clock_wall_ms();

    for (size_t got = 0; got < sizeof(u);) {
        ssize_t n = getrandom(u + got, sizeof(u) - got, 0);
        got += n > 0 ? (size_t)n : 0; /* continues after an interruption */
    }
    for (int i = 0; i < 6; i++)
        u[i] = (unsigned char)(ms >> (40 - 8 * i));
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x70);
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(u); i++)
        buf_fmt(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

/* A body that is not an object is left for the server to refuse. */
static bool give_id(struct slice body, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *task = NULL;

    bool lacks_id = json_parse(&a, body, &task, NULL) == ERR_OK && task->type == JSON_OBJECT
                    && !json_get(task, "id");
    if (!lacks_id) {
        buf_slice(ret, body);
        return false;
    }
    size_t brace = (size_t)((const char *)memchr(body.ptr, '{', body.len) - body.ptr) + 1;
    buf_add(ret, body.ptr, brace);
    buf_str(ret, "\"id\":\"");
    write_id(ret);
    buf_str(ret, task->child ? "\"," : "\"");
    buf_add(ret, body.ptr + brace, body.len - brace);
    return true;
}

static bool give_each(struct slice body, struct buf *ret)
{
    bool any = false;

    while (body.len > 0) {
        const char *end = memchr(body.ptr, '\n', body.len);
        size_t len = end ? (size_t)(end - body.ptr) : body.len;
        any = give_id((struct slice){body.ptr, len}, ret) || any;
        if (end)
            buf_byte(ret, '\n');
        len += end != NULL;
        body = (struct slice){body.ptr + len, body.len - len};
    }
    return any;
}

/* As servers match it: parameters may follow. */
static bool is_many(const char *type)
{
    static const char many[] = "application/x-ndjson";
    size_t blanks = type ? strspn(type, " \t") : 0;
    size_t len = sizeof(many) - 1;

    return type && strncasecmp(type + blanks, many, len) == 0 && strchr("; \t", type[blanks + len]);
}

bool client_give_ids(const struct intact_client *c, const struct question *q, struct buf *ret)
{
    struct slice body = {q->body, q->body ? q->size : 0};

    if (c->server_count < 2 || strcmp(q->method, "POST") != 0 || !is_path(q->path, "/v1/tasks")
        || body.len == 0)
        return false;
    bool is_one = !is_many(q->type);
    bool any = is_one ? give_id(body, ret) : give_each(body, ret);
    if (!any)
        buf_clear(ret);
    return any;
}
