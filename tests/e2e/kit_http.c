/* Implements the requests and answers of kit.h: plain HTTP over blocking sockets, and paths into
 * JSON. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/when.h"
#include "kit.h"

void reply_fini(struct reply *r)
{
    arena_fini(&r->arena);
    free(r->raw);
    *r = (struct reply){0};
}

int dial(const struct node *n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)n->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0, "%s", strerror(errno));
    CHECK(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "port %d: %s", n->port,
          strerror(errno));
    record_dialled(fd);
    return fd;
}

void say(int fd, struct slice bytes)
{
    record_said(fd, bytes);
    while (bytes.len > 0) {
        ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes = (struct slice){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
}

/* The value of a header field, as text up to the line's end. */
static struct slice field(struct slice head, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i + len + 2 < head.len; i++) {
        if (head.ptr[i] != '\n' || strncasecmp(head.ptr + i + 1, name, len) != 0
            || head.ptr[i + 1 + len] != ':')
            continue;
        const char *from = head.ptr + i + len + 2;
        const char *end = memchr(from, '\r', head.len - (size_t)(from - head.ptr));
        return (struct slice){from, end ? (size_t)(end - from) : 0};
    }
    return SLICE_NONE;
}

/* How long the whole answer is, once its head is there; 0: not known yet. */
static size_t whole_len(const struct buf *b, bool no_body)
{
    const char *end = b->len > 0 ? strstr(b->ptr, "\r\n\r\n") : NULL;

    if (!end)
        return 0;
    size_t head = (size_t)(end - b->ptr) + 4;
    struct slice len = field((struct slice){b->ptr, head}, "content-length");
    return head + (len.ptr && !no_body ? strtoull(len.ptr, NULL, 10) : 0);
}

/* Less after an answer did not come: the program has failed by then, and would be stopped before
 * its end if each of its tests waited so long in vain. */
static int patience_ms = PATIENCE_MS;

static void hear_any(int fd, struct reply *ret, bool no_body)
{
    enum { SPENT_MS = 10000 };
    struct buf b = {0};
    size_t whole = 0;
    int64_t until = steady_ms() + patience_ms;

    reply_fini(ret);
    while ((whole = whole_len(&b, no_body)) == 0 || b.len < whole) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int left = (int)max_i64(0, until - steady_ms());
        bool has_come = poll(&p, 1, left) == 1;
        int waited_ms = patience_ms;
        if (!has_come)
            patience_ms = SPENT_MS;
        CHECK(has_come, "no answer within %d ms", waited_ms);
        ssize_t len = recv(fd, buf_room(&b, 65536), 65536, 0);
        if (len <= 0)
            break;
        b.len += (size_t)len;
        b.ptr[b.len] = 0;
    }
    record_heard(fd, buf_view(&b));
    (void)close(fd);
    ret->raw = b.ptr;
    if (whole == 0 || b.len < whole)
        return;
    size_t head = (size_t)(strstr(b.ptr, "\r\n\r\n") - b.ptr) + 4;
    ret->head = (struct slice){b.ptr, head};
    ret->body = (struct slice){b.ptr + head, b.len - head};
    ret->status = atoi(b.ptr + strlen("HTTP/1.1 "));
    if (json_parse(&ret->arena, ret->body, &ret->json, NULL) != ERR_OK)
        ret->json = NULL;
}

void hear(int fd, struct reply *ret)
{
    hear_any(fd, ret, false);
}

struct slice authorization(const struct node *n)
{
    static char line[100];

    if (!n->token[0])
        return SLICE("");
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", n->token);
    return slice_of(line);
}

int ask(const struct node *n, const char *method, const char *path, const char *type,
        struct slice body)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = dial(n);

    buf_fmt(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n", method, path,
            n->port);
    buf_slice(&b, authorization(n));
    if (type)
        buf_fmt(&b, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, body.len);
    buf_str(&b, "\r\n");
    if (type)
        buf_slice(&b, body);
    say(fd, buf_view(&b));
    return fd;
}

void send_as(const struct node *n, struct reply *ret, const char *method, const char *path,
             const char *type, struct slice body)
{
    hear_any(ask(n, method, path, type, body), ret, strcmp(method, "HEAD") == 0);
}

PRINTF(1, 0) static char *format(const char *fmt, va_list ap)
{
    char *text = NULL;

    int len = vasprintf(&text, fmt, ap);
    CHECK(len >= 0, "no memory");
    return text;
}

void get(const struct node *n, struct reply *ret, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *path = format(fmt, ap);
    va_end(ap);
    send_as(n, ret, "GET", path, NULL, SLICE_NONE);
    free(path);
}

void post(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *body = format(fmt, ap);
    va_end(ap);
    send_as(n, ret, "POST", path, "application/json", slice_of(body));
    free(body);
}

void put(const struct node *n, struct reply *ret, const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *body = format(fmt, ap);
    va_end(ap);
    send_as(n, ret, "PUT", path, "application/json", slice_of(body));
    free(body);
}

/* ---- what was answered ---- */

static const struct json *child_of(const struct json *j, const char *name, size_t len)
{
    char key[64];

    if (!j)
        return NULL;
    CHECK(len < sizeof key, "%s", name);
    memcpy(key, name, len);
    key[len] = 0;
    if (j->type != JSON_ARRAY)
        return json_get(j, key);
    const struct json *c = j->child;
    for (int i = atoi(key); i > 0 && c; i--)
        c = c->next;
    return c;
}

const struct json *at(const struct reply *r, const char *path)
{
    const struct json *j = r->json;

    while (*path && j) {
        size_t len = strcspn(path, ".");
        j = child_of(j, path, len);
        path += len + (path[len] == '.');
    }
    return j;
}

const char *text_at(const struct reply *r, const char *path)
{
    const struct json *j = at(r, path);

    return j && j->type == JSON_STRING ? j->text.ptr : "";
}

int64_t int_at(const struct reply *r, const char *path)
{
    const struct json *j = at(r, path);
    int64_t v = INT64_MIN;

    return j && json_int(j, &v) ? v : INT64_MIN;
}

int64_t time_at(const struct reply *r, const char *path)
{
    const struct json *j = at(r, path);
    int64_t v = 0;

    CHECK(j, "there is no %s: %.*s", path, SLICE_ARG(r->body));
    if (j->type == JSON_NULL)
        return 0;
    CHECK(j->type == JSON_STRING && time_parse(j->text, &v), "%s is no time: %.*s", path,
          SLICE_ARG(j->raw));
    CHECK(j->text.len == strlen("2026-01-31T10:00:00.000Z"), "%s is %s", path, j->text.ptr);
    return v;
}

bool raw_is(const struct reply *r, const char *path, const char *json)
{
    const struct json *j = at(r, path);

    return j && slice_is(j->raw, json);
}

bool head_has(const struct reply *r, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i + len <= r->head.len; i++)
        if (strncasecmp(r->head.ptr + i, text, len) == 0)
            return true;
    return false;
}

void expect_problem(const struct reply *r, int status, const char *type)
{
    char urn[100];

    EXPECT(r, status);
    (void)snprintf(urn, sizeof urn, "urn:intact:problem:%s", type);
    EXPECT_TEXT(r, "type", urn);
    EXPECT_INT(r, "status", status);
    CHECK(*text_at(r, "title"), "no title: %.*s", SLICE_ARG(r->body));
    CHECK(*text_at(r, "detail") || at(r, "errors"), "no detail: %.*s", SLICE_ARG(r->body));
    CHECK(head_has(r, "\r\nContent-Type: application/problem+json\r\n"), "%.*s",
          SLICE_ARG(r->head));
    bool later = status == 503 || (status == 429 && strcmp(type, "too-many-signals") != 0);
    CHECK(later == head_has(r, "\r\nRetry-After: "), "%.*s", SLICE_ARG(r->head));
    CHECK(status != 503 || head_has(r, "\r\nRetry-After: 1\r\n"), "%.*s", SLICE_ARG(r->head));
}

void hear_all(int fd, struct buf *ret)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        CHECK(poll(&p, 1, (int)max_i64(0, until - steady_ms())) == 1, "it is open: %s", ret->ptr);
        ssize_t n = recv(fd, buf_room(ret, 65536), 65536, 0);
        if (n <= 0)
            break;
        ret->len += (size_t)n;
        ret->ptr[ret->len] = 0;
    }
    buf_str(ret, "");
    record_heard(fd, buf_view(ret));
    (void)close(fd);
}

int status_heard(const struct buf *got, unsigned n)
{
    for (const char *at = got->ptr; (at = strstr(at, "HTTP/1.1 ")); at += 9)
        if (at[9] >= '1' && at[9] <= '5' && n-- == 0)
            return atoi(at + 9);
    return 0;
}

int status_as(const struct node *n, const char *method, const char *path)
{
    REPLY r = {0};
    bool has_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;

    send_as(n, &r, method, path, has_body ? "application/json" : NULL, SLICE("{}"));
    CHECK(r.status != 401 || head_has(&r, "\r\nWWW-Authenticate: Bearer realm=\"intact\"\r\n"),
          "%.*s", SLICE_ARG(r.head));
    if (strcmp(method, "HEAD") != 0 && r.status == 401)
        expect_problem(&r, 401, "unauthenticated");
    if (strcmp(method, "HEAD") != 0 && r.status == 403)
        expect_problem(&r, 403, "forbidden");
    return r.status;
}
