/* Implements sse.h: a client of server-sent events over a blocking socket, which reads only when
 * a function asks for it, so that tests can be slow readers. */

#include "sse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void ask_for(const struct node *n, struct sse *s, const char *path, const char *last)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n", path, n->port);
    buf_slice(&b, authorization(n));
    if (last)
        buf_fmt(&b, "Last-Event-ID: %s\r\n", last);
    buf_str(&b, "\r\n");
    say(s->fd, buf_view(&b));
}

void sse_open(const struct node *n, struct sse *s, const char *path, const char *last)
{
    sse_fini(s);
    s->fd = dial(n);
    ask_for(n, s, path, last);
}

void sse_open_slow(const struct node *n, struct sse *s, const char *path)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)n->port)};
    int size = 4096;

    sse_fini(s);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(s->fd >= 0, "%s", strerror(errno));
    int rc = setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    CHECK(rc == 0, "%s", strerror(errno));
    rc = connect(s->fd, (const struct sockaddr *)&to, sizeof to);
    CHECK(rc == 0, "%s", strerror(errno));
    record_dialled(s->fd);
    ask_for(n, s, path, NULL);
}

/* False: nothing came within that time. */
static bool take_more(struct sse *s, int ms)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};

    if (s->ended || poll(&p, 1, ms) != 1)
        return s->ended;
    ssize_t len = recv(s->fd, buf_room(&s->in, 65536), 65536, 0);
    if (len <= 0) {
        s->ended = true;
        return true;
    }
    s->in.len += (size_t)len;
    s->in.ptr[s->in.len] = 0;
    return true;
}

void sse_head(struct sse *s)
{
    const char *end = NULL;

    while (!(end = s->in.ptr ? strstr(s->in.ptr, "\r\n\r\n") : NULL)) {
        bool more = take_more(s, PATIENCE_MS);
        CHECK(more && !s->ended, "no head");
    }
    s->status = atoi(s->in.ptr + strlen("HTTP/1.1 "));
    s->at = (size_t)(end - s->in.ptr) + 4;
}

void sse_fini(struct sse *s)
{
    if (s->fd > 0) {
        record_heard(s->fd, buf_view(&s->in)); /* unless it was, before some of it was forgotten */
        (void)close(s->fd);
    }
    buf_fini(&s->in);
    *s = (struct sse){0};
}

void sse_event_fini(struct sse_event *e)
{
    reply_fini(&e->data);
    *e = (struct sse_event){0};
}

static void read_line(struct sse *s, struct sse_event *e, struct slice line)
{
    if (line.len > 7 && memcmp(line.ptr, "event: ", 7) == 0) {
        (void)snprintf(e->name, sizeof e->name, "%.*s", (int)line.len - 7, line.ptr + 7);
    } else if (line.len > 4 && memcmp(line.ptr, "id: ", 4) == 0) {
        (void)snprintf(e->id, sizeof e->id, "%.*s", (int)line.len - 4, line.ptr + 4);
        (void)snprintf(s->id, sizeof s->id, "%s", e->id);
    } else if (line.len > 6 && memcmp(line.ptr, "data: ", 6) == 0) {
        e->data.raw = strndup(line.ptr + 6, line.len - 6);
        e->data.body = slice_of(e->data.raw);
    } else {
        CHECK(line.ptr[0] == ':' || memcmp(line.ptr, "retry: ", 7) == 0, "what is this: %.*s",
              SLICE_ARG(line));
        s->comments += line.ptr[0] == ':';
    }
}

/* One block of lines, up to an empty one. */
static void read_block(struct sse *s, struct sse_event *ret, size_t end)
{
    sse_event_fini(ret);
    while (s->at < end) {
        const char *from = s->in.ptr + s->at;
        size_t len = strcspn(from, "\n");
        if (len > 0)
            read_line(s, ret, (struct slice){from, len});
        s->at += len + 1;
    }
    if (!*ret->name && *ret->id)
        (void)snprintf(s->lone, sizeof s->lone, "%s", ret->id);
    if (ret->data.raw)
        CHECK(json_parse(&ret->data.arena, ret->data.body, &ret->data.json, NULL) == ERR_OK,
              "not JSON: %.*s", SLICE_ARG(ret->data.body));
}

/* Where the block ends that begins here; 0: it is not all there. */
static size_t block_end(const struct sse *s)
{
    const char *end = s->in.len > s->at ? strstr(s->in.ptr + s->at, "\n\n") : NULL;

    return end ? (size_t)(end - s->in.ptr) + 2 : 0;
}

static void forget_read(struct sse *s)
{
    if (s->at < 1 << 20)
        return;
    record_heard(s->fd, buf_view(&s->in));
    memmove(s->in.ptr, s->in.ptr + s->at, s->in.len - s->at + 1);
    s->in.len -= s->at;
    s->at = 0;
}

bool sse_next(struct sse *s, struct sse_event *ret)
{
    s->lone[0] = 0;
    if (!s->status)
        sse_head(s);
    for (;;) {
        size_t end = block_end(s);
        if (end > 0) {
            read_block(s, ret, end);
            forget_read(s);
            if (*ret->name)
                return true;
            continue;
        }
        if (s->ended)
            return false;
        CHECK(take_more(s, PATIENCE_MS), "no event within %d ms", PATIENCE_MS);
    }
}

bool sse_waits(struct sse *s, int ms)
{
    int64_t until = steady_ms() + ms;

    if (!s->status)
        sse_head(s);
    for (;;) {
        const char *event = s->in.len > s->at ? strstr(s->in.ptr + s->at, "event: ") : NULL;
        if (event || s->ended)
            return false;
        if (!take_more(s, (int)max_i64(0, until - steady_ms())))
            return true;
    }
}

void sse_comment(struct sse *s)
{
    while (s->in.len == s->at || !strstr(s->in.ptr + s->at, ":\n\n")) {
        bool more = take_more(s, PATIENCE_MS);
        CHECK(more && !s->ended, "no comment");
    }
}
