/*
 * The throughput of the HTTP agent: requests per second to a trivial service on loopback, with the
 * CPU time and memory they cost. This program also plays the server and always has work, so only
 * the agent is measured. Usage: bench-http-agent INTACT PLACES SECONDS
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

enum { CONNECTIONS_MAX = 4096, READ_SIZE = 65536 };

static atomic_ullong served, accepted, number;
static atomic_bool is_over;

struct listener {
    int fd, port;
    /* Adds the answer to one request. */
    void (*answer)(struct slice head, struct slice body, struct buf *out);
    struct buf in[CONNECTIONS_MAX]; /* by descriptor */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- a minimal HTTP server ---- */

static size_t length_of(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? strtoul(at + 17, NULL, 10) : 0;
}

static void send_all(int fd, const struct buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->ptr + at, b->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

static bool serve(struct listener *l, int fd)
{
    CLEANUP(buf_fini) struct buf out = {0};
    struct buf *in = &l->in[fd];
    ssize_t n = recv(fd, buf_room(in, READ_SIZE), READ_SIZE, 0);

    if (n <= 0)
        return false;
    in->len += (size_t)n;
    in->ptr[in->len] = 0;
    for (;;) {
        const char *end = strstr(in->ptr, "\r\n\r\n");
        size_t head = end ? (size_t)(end - in->ptr) + 4 : 0;
        size_t body = end ? length_of(in->ptr) : 0;
        if (!end || in->len < head + body)
            break;
        l->answer((struct slice){in->ptr, head}, (struct slice){in->ptr + head, body}, &out);
        memmove(in->ptr, in->ptr + head + body, in->len - head - body);
        in->len -= head + body;
        in->ptr[in->len] = 0;
    }
    send_all(fd, &out);
    return true;
}

static void *run_listener(void *arg)
{
    struct listener *l = arg;
    struct epoll_event events[256];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = l->fd};

    (void)epoll_ctl(ep, EPOLL_CTL_ADD, l->fd, &e);
    while (!atomic_load(&is_over)) {
        int n = epoll_wait(ep, events, 256, 100);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == l->fd) {
                fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
                if (fd >= CONNECTIONS_MAX)
                    close(fd);
                e.data.fd = fd;
                if (fd >= 0 && fd < CONNECTIONS_MAX)
                    (void)epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
            } else if (!serve(l, fd)) {
                buf_fini(&l->in[fd]);
                close(fd);
            }
        }
    }
    return NULL;
}

static void begin(struct listener *l)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;

    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || bind(l->fd, (const struct sockaddr *)&at, size) != 0
        || listen(l->fd, 1000) != 0 || getsockname(l->fd, (struct sockaddr *)&at, &size) != 0
        || pthread_create(&thread, NULL, run_listener, l) != 0) {
        perror("listen");
        exit(1);
    }
    l->port = ntohs(at.sin_port);
}

static void add_answer(struct buf *out, struct slice body)
{
    buf_fmt(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
            body.len);
    buf_slice(out, body);
}

/* ---- the service ---- */

static void answer_service(struct slice head, struct slice body, struct buf *out)
{
    (void)head;
    (void)body;
    atomic_fetch_add(&served, 1);
    add_answer(out, SLICE("{\"receipt\": 17}"));
}

/* ---- the server ---- */

static void add_outcomes(struct slice body, struct buf *b)
{
    static const char key[] = "{\"token\":\"";
    const char *from = body.ptr;
    bool is_first = true;

    for (;;) {
        size_t left = body.len - (size_t)(from - body.ptr);
        const char *at = memmem(from, left, key, sizeof key - 1);
        if (!at)
            return;
        at += sizeof key - 1;
        size_t len = strcspn(at, "\"");
        buf_fmt(b, "%s{\"token\":\"%.*s\",\"status\":\"accepted\"}", is_first ? "" : ",", (int)len,
                at);
        is_first = false;
        from = at + len;
        if (strncmp(from, "\",\"output\"", 10) == 0)
            atomic_fetch_add(&accepted, 1);
    }
}

static void add_requests(long count, struct buf *b)
{
    for (long i = 0; i < count; i++) {
        unsigned long long n = atomic_fetch_add(&number, 1);
        buf_fmt(
            b,
            "%s{\"token\":\"t%llu\",\"task\":\"o-%llu\",\"step\":\"charge\",\"action\":"
            "\"http\",\"direction\":\"forward\",\"attempt\":1,\"idempotency_key\":"
            "\"o-%llu/charge\",\"input\":{\"method\":\"POST\",\"path\":[\"/accounts/\",\"%llu\","
            "\"/charges\"],\"body\":{\"amount\":20},\"output\":\".body.receipt\"},"
            "\"complete_by\":\"2026-01-31T10:00:30.000Z\",\"time_left_ms\":30000}",
            i ? "," : "", n, n, n, n);
    }
}

static void answer_work(struct slice head, struct slice body, struct buf *out)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *max = body.len ? memmem(body.ptr, body.len, "\"max\":", 6) : NULL;

    if (!memmem(head.ptr, head.len, "/work", 5)) {
        add_answer(out, SLICE("{}"));
        return;
    }
    buf_str(&b, "{\"now\":\"2026-01-31T10:00:00.000Z\",\"waited_ms\":0,\"requests\":[");
    if (!atomic_load(&is_over))
        add_requests(max ? strtol(max + 6, NULL, 10) : 0, &b);
    buf_str(&b, "],\"outcomes\":[");
    add_outcomes(body, &b);
    buf_str(&b, "],\"stop\":[]}");
    add_answer(out, buf_view(&b));
}

/* ---- the agent ---- */

static pid_t start_agent(const char *intact, const char *config, int port)
{
    char url[64];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    pid_t pid = fork();
    if (pid == 0) {
        execl(intact, "intact", "agent", "http", "--config", config, "--server", url, "--log",
              "warn", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static long resident_kib(pid_t pid)
{
    char line[256];
    long kib = 0;

    (void)snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *f = fopen(line, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib;
}

/* In hundredths of a second. */
static long ticks_of(pid_t pid)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f
        && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system)
               != 2)
        user = 0;
    if (f)
        (void)fclose(f);
    return (long)(user + system);
}

static bool measure(pid_t pid, int seconds)
{
    sleep(2); /* until all connections are open and memory is stable */
    long first = resident_kib(pid);
    long before = ticks_of(pid);
    unsigned long long from = atomic_load(&accepted);
    int64_t began = now_ms();
    sleep((unsigned)seconds);
    double took = (double)(now_ms() - began) / 1000;
    double done = (double)(atomic_load(&accepted) - from);
    double cpu = (double)(ticks_of(pid) - before) / 100;
    if (done < 1) {
        fprintf(stderr, "bench-http-agent: the agent did nothing\n");
        return false;
    }
    printf(
        "%.0f requests/s, %.1f us of CPU each, %.0f%% of a core; %.1f MiB, %.1f MiB at the end\n",
        done / took, cpu * 1e6 / done, cpu / took * 100, (double)first / 1024,
        (double)resident_kib(pid) / 1024);
    return true;
}

int main(int argc, char **argv)
{
    static struct listener service = {.answer = answer_service};
    static struct listener server = {.answer = answer_work};
    char config[] = "/tmp/intact-bench-http.XXXXXX";

    if (argc != 4) {
        fprintf(stderr, "usage: bench-http-agent INTACT PLACES SECONDS\n");
        return 2;
    }
    begin(&service);
    begin(&server);
    int fd = mkstemp(config);
    if (fd < 0)
        return 1;
    dprintf(
        fd,
        "{\"intact_http\": 1, \"private\": [\"127.0.0.1\"], \"services\": {\"payment\": {\"url\": "
        "\"http://127.0.0.1:%d\", \"places\": %s, \"connections\": %s}}}",
        service.port, argv[2], argv[2]);
    close(fd);
    pid_t pid = start_agent(argv[1], config, server.port);
    bool ok = measure(pid, atoi(argv[3]));
    atomic_store(&is_over, true);
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)unlink(config);
    printf("%llu requests reached the service, %llu results were handed in\n", atomic_load(&served),
           atomic_load(&accepted));
    return ok ? 0 : 1;
}
