/*
 * A minimal receiver of webhooks: it accepts everything and counts events and requests. Prints its
 * port; at the end of its input prints the counts as a JSON object.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"

enum { CONNECTIONS_MAX = 4096, READ_SIZE = 1 << 18 };

static struct buf in[CONNECTIONS_MAX]; /* by descriptor */
static uint64_t events, requests, bytes;

static void count(struct slice body)
{
    static const char word[] = "\"specversion\"";
    const char *end = body.ptr + body.len;

    for (const char *at = body.ptr; (at = memmem(at, (size_t)(end - at), word, sizeof word - 1));
         at += sizeof word - 1)
        events++;
    requests++;
    bytes += body.len;
}

static size_t length_of(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? strtoul(at + 17, NULL, 10) : 0;
}

static bool serve(int fd)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    struct buf *b = &in[fd];
    ssize_t n = recv(fd, buf_room(b, READ_SIZE), READ_SIZE - 1, 0);

    if (n <= 0)
        return false;
    b->len += (size_t)n;
    b->ptr[b->len] = 0;
    for (;;) {
        const char *end = strstr(b->ptr, "\r\n\r\n");
        size_t head = end ? (size_t)(end - b->ptr) + 4 : 0;
        size_t body = end ? length_of(b->ptr) : 0;
        if (!end || b->len < head + body)
            return true;
        count((struct slice){b->ptr + head, body});
        memmove(b->ptr, b->ptr + head + body, b->len - head - body);
        b->len -= head + body;
        b->ptr[b->len] = 0;
        if (send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
            return false;
    }
}

static int listen_somewhere(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, size) != 0 || listen(fd, 1000) != 0
        || getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        perror("bench-receiver");
        exit(1);
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void watch(int ep, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    if (fd >= CONNECTIONS_MAX || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) != 0)
        close(fd);
}

static void report(void)
{
    struct rusage used = {0};

    (void)getrusage(RUSAGE_SELF, &used); /* on failure the figures stay 0 */
    printf("{\"events\": %llu, \"requests\": %llu, \"bytes\": %llu, \"cpu_ms\": %lld}\n",
           (unsigned long long)events, (unsigned long long)requests, (unsigned long long)bytes,
           (long long)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000
               + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
}

int main(void)
{
    struct epoll_event found[64];
    int port = 0;
    int listener = listen_somewhere(&port);
    int ep = epoll_create1(EPOLL_CLOEXEC);
    char line[64];

    printf("%d\n", port);
    (void)fflush(stdout);
    watch(ep, listener);
    watch(ep, STDIN_FILENO);
    for (;;) {
        int n = epoll_wait(ep, found, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = found[i].data.fd;
            if (fd == listener) {
                watch(ep, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
            } else if (fd == STDIN_FILENO) {
                if (read(fd, line, sizeof line) > 0)
                    continue;
                report();
                return 0;
            } else if (!serve(fd)) {
                buf_fini(&in[fd]);
                close(fd);
            }
        }
    }
}
