/* A real HTTP server on a real socket whose answers a test function gives, with one thread for
 * each connection (fake.h). For the tests of clients and agents; agent_kit.c models the server's
 * rules for agents on top of it. */

#include "libintact/fake.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test_port.h"

bool fake_wait(struct fake *f)
{
    if (f->closing)
        return false;
    const struct timespec t = clock_in_ms(CLOCK_REALTIME, 50);
    pthread_cond_timedwait(&f->changed, &f->lock, &t);
    return !f->closing;
}

void fake_url(const struct fake *f, char ret[40])
{
    snprintf(ret, 40, "http://127.0.0.1:%d", f->port);
}

/* Reads the whole request into `b`; false: the client disconnected. */
static bool read_request(int fd, struct buf *b, size_t *ret_head, size_t *ret_body)
{
    for (;;) {
        char *end = b->len ? strstr(b->ptr, "\r\n\r\n") : NULL;
        const char *length = end ? strcasestr(b->ptr, "\r\ncontent-length:") : NULL;
        *ret_head = end ? (size_t)(end - b->ptr) + 4 : 0;
        *ret_body = length && length < end ? (size_t)strtoul(length + 17, NULL, 10) : 0;
        if (end && b->len >= *ret_head + *ret_body)
            return true;
        char *room = buf_room(b, 16384);
        ssize_t n = recv(fd, room, 16384, 0);
        if (n <= 0)
            return false;
        b->len += (size_t)n;
        b->ptr[b->len] = 0;
    }
}

/* The value of a header, cut at `size`; "" if there is none. `name` as in "\r\nname: ". */
static void copy_header(const char *head, const char *name, char *ret, size_t size)
{
    const char *value = strcasestr(head, name);
    size_t len = value ? strcspn(value + strlen(name), "\r") : 0;

    snprintf(ret, size, "%.*s", (int)len, value ? value + strlen(name) : "");
}

static bool is_misdirected(struct fake *f, const char *head)
{
    char wanted[40];

    copy_header(head, "\r\nintact-installation: ", wanted, sizeof(wanted));
    bool is_ours = !f->installation[0] || !wanted[0] || strcmp(wanted, f->installation) == 0;
    f->misdirected += !is_ours;
    return !is_ours;
}

static bool send_all(int fd, const struct buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->ptr + at, b->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool serve_one(struct fake *f, int fd)
{
    CLEANUP(buf_fini) struct buf in = {0};
    CLEANUP(buf_fini) struct buf out = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    size_t head_len = 0;
    size_t body_len = 0;
    char line[200];

    if (!read_request(fd, &in, &head_len, &body_len))
        return false;
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(in.ptr, "\r"), in.ptr);
    char *version = strstr(line, " HTTP/");
    if (version)
        *version = 0;
    pthread_mutex_lock(&f->lock);
    copy_header(in.ptr, "\r\nauthorization: ", f->authorization, sizeof(f->authorization));
    int status = f->closing ? 0
                 : is_misdirected(f, in.ptr)
                     ? 421
                     : f->answer(f, line, (struct slice){in.ptr + head_len, body_len}, &body);
    buf_fmt(&out, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s", status, body.len, f->header);
    if (f->installation[0])
        buf_fmt(&out, "Intact-Installation: %s\r\n", f->installation);
    buf_str(&out, "\r\n");
    pthread_mutex_unlock(&f->lock);
    buf_slice(&out, buf_view(&body));
    return status != 0 && send_all(fd, &out);
}

struct connection {
    struct fake *fake;
    size_t index;
};

static void *serve(void *arg)
{
    struct connection *c = arg;
    struct fake *f = c->fake;
    int fd = f->fds[c->index];

    while (serve_one(f, fd))
        continue;
    shutdown(fd, SHUT_RDWR); /* fake_close closes it, so that its number is not reused */
    free(c);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct fake *f = arg;

    for (;;) {
        int fd = accept(f->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&f->lock);
        if (f->closing || f->connection_count == FAKE_CONNECTIONS_MAX) {
            close(fd);
        } else {
            struct connection *c = malloc(sizeof(*c));
            ASSERT(c);
            *c = (struct connection){f, f->connection_count};
            f->fds[c->index] = fd;
            pthread_create(&f->threads[c->index], NULL, serve, c);
            f->connection_count++;
        }
        pthread_mutex_unlock(&f->lock);
    }
}

void fake_open(struct fake *f)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    const int one = 1;

    if (f->port == 0) {
        pthread_mutex_init(&f->lock, NULL);
        pthread_cond_init(&f->changed, NULL);
    }
    if (f->port == 0)
        f->port = test_port();
    f->closing = false;
    f->connection_count = 0;
    a.sin_port = htons((uint16_t)f->port);
    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    int bound = bind(f->listener, (struct sockaddr *)&a, sizeof(a));
    int listening = listen(f->listener, 64);
    ASSERT(bound == 0);
    ASSERT(listening == 0);
    getsockname(f->listener, (struct sockaddr *)&a, &len);
    f->port = ntohs(a.sin_port);
    pthread_create(&f->acceptor, NULL, accept_all, f);
}

void fake_close(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->acceptor, NULL);
    close(f->listener);
    for (size_t i = 0; i < f->connection_count; i++)
        shutdown(f->fds[i], SHUT_RDWR);
    for (size_t i = 0; i < f->connection_count; i++) {
        pthread_join(f->threads[i], NULL);
        close(f->fds[i]);
    }
}
