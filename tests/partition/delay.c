/*
 * partition-delay: a slow and unreliable link in front of one TCP service. Forwards the bytes of
 * each direction in order, according to a plan, which is read again when its file changes. The same
 * seed and the same pieces give the same delays and cuts.
 *
 *     partition-delay --listen ADDR:PORT --to ADDR:PORT --plan FILE [--seed N]
 */

/* The plan has one line for each deviation from a perfect link:
 *
 *     delay MIN MAX   each piece waits a random number of milliseconds from this range
 *     rate BYTES      at most so many per second, per direction and connection
 *     cut N           N of 10000 pieces are cut in the middle, and their connection is reset
 *     stall 1         nothing is forwarded in either direction while this line is there
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/prng.h"

enum {
    PAIRS_MAX = 500,
    PIECE_MAX = 8192,
    QUEUE_MAX = 262144, /* of one way: then the sender has to wait */
    LOOK_MS = 50,       /* how often the plan is looked at */
};

struct plan {
    unsigned delay_min_ms, delay_max_ms, rate, cut;
    unsigned stall;
};

struct piece {
    struct link link;
    int64_t due_us;
    size_t len, sent;
    bool cut; /* what lies behind it is lost with the connection */
    char bytes[];
};

struct way {
    int from, to;
    struct link pieces;
    size_t queued;
    int64_t last_due_us;
    bool ended, told; /* the sender has; and the receiver knows */
};

struct pair {
    struct link link;
    struct way ways[2]; /* from the client, from the service */
    bool connecting, dead;
};

static struct {
    struct link pairs;
    unsigned count;
    int listener;
    struct sockaddr_in to;
    const char *path;
    struct timespec plan_at;
    struct plan plan;
    struct prng prng;
} d;

static int64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the plan ---- */

static void plan_line(struct plan *p, const char *line)
{
    unsigned a = 0;
    unsigned b = 0;

    if (sscanf(line, "delay %u %u", &a, &b) == 2 && a <= b && b <= 60000) {
        p->delay_min_ms = a;
        p->delay_max_ms = b;
    } else if (sscanf(line, "rate %u", &a) == 1) {
        p->rate = a;
    } else if (sscanf(line, "cut %u", &a) == 1 && a <= 10000) {
        p->cut = a;
    } else if (sscanf(line, "stall %u", &a) == 1) {
        p->stall = a;
    } else if (line[strspn(line, " \n")]) {
        fprintf(stderr, "partition-delay: %s: not understood: %s", d.path, line);
    }
}

/* It is replaced as a whole (mv), so it is never read half written. */
static void plan_read(void)
{
    struct stat st;
    struct plan fresh = {0};
    char line[80];

    if (stat(d.path, &st) != 0
        || (st.st_mtim.tv_sec == d.plan_at.tv_sec && st.st_mtim.tv_nsec == d.plan_at.tv_nsec))
        return;
    FILE *f = fopen(d.path, "re");
    if (!f)
        return; /* it is being replaced: looked at again soon */
    while (fgets(line, sizeof line, f))
        plan_line(&fresh, line);
    (void)fclose(f); /* it was only read */
    d.plan_at = st.st_mtim;
    d.plan = fresh;
}

/* ---- one way ---- */

static void piece_drop(struct way *w, struct piece *p)
{
    link_remove(&p->link);
    w->queued -= p->len;
    free(p);
}

static struct piece *piece_first(const struct way *w)
{
    struct link *l = list_first((struct link *)(uintptr_t)&w->pieces);

    return l ? CONTAINER_OF(l, struct piece, link) : NULL;
}

/* What came in waits its time, and never less than what came before it. */
static void take(struct way *w, const char *bytes, size_t len)
{
    struct piece *p = malloc(sizeof *p + len);
    int64_t range = (int64_t)(d.plan.delay_max_ms - d.plan.delay_min_ms) * 1000;
    int64_t wait = (int64_t)d.plan.delay_min_ms * 1000;
    int64_t now = now_us();

    ASSERT(p);
    *p = (struct piece){.len = len};
    memcpy(p->bytes, bytes, len);
    wait += range > 0 ? (int64_t)(prng_next(&d.prng) % (uint64_t)range) : 0;
    p->cut = d.plan.cut > 0 && prng_below(&d.prng, 10000) < d.plan.cut;
    if (p->cut)
        p->len = prng_below(&d.prng, (uint32_t)len);
    p->due_us = now + wait > w->last_due_us ? now + wait : w->last_due_us;
    if (d.plan.rate > 0)
        p->due_us += (int64_t)len * 1000000 / d.plan.rate;
    w->last_due_us = p->due_us;
    w->queued += p->len;
    list_push(&w->pieces, &p->link);
}

/* False: the connection is gone. */
static bool take_in(struct way *w)
{
    char bytes[PIECE_MAX];
    ssize_t n = recv(w->from, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n > 0)
        take(w, bytes, (size_t)n);
    else if (n == 0)
        w->ended = true;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* NULL: nothing is to be handed on now. */
static struct piece *piece_due(const struct way *w)
{
    struct piece *p = piece_first(w);

    return p && !d.plan.stall && p->due_us <= now_us() ? p : NULL;
}

/* False: the connection is gone, or was cut. */
static bool hand_on(struct way *w)
{
    for (struct piece *p = NULL; (p = piece_due(w));) {
        ssize_t n = 0;
        if (p->sent < p->len)
            n = send(w->to, p->bytes + p->sent, p->len - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->sent += (size_t)n;
        if (p->sent < p->len)
            return true;
        if (p->cut)
            return false;
        piece_drop(w, p);
    }
    if (w->ended && !w->told && !piece_first(w) && !d.plan.stall)
        w->told = shutdown(w->to, SHUT_WR) == 0;
    return true;
}

/* ---- pairs of connections ---- */

/* Both sides hear a reset, which also overtakes what they have not read. */
static void reset(int fd)
{
    const struct linger at_once = {1, 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* else it ends mildly */
    (void)close(fd);
}

static void pair_end(struct pair *p, bool mildly)
{
    for (size_t i = 0; i < 2; i++)
        while (piece_first(&p->ways[i]))
            piece_drop(&p->ways[i], piece_first(&p->ways[i]));
    for (size_t i = 0; i < 2; i++) {
        if (mildly)
            (void)close(p->ways[i].from);
        else
            reset(p->ways[i].from);
    }
    link_remove(&p->link);
    d.count--;
    free(p);
}

static int dial(void)
{
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* we delay by ourselves */
    if (connect(fd, (const struct sockaddr *)&d.to, sizeof d.to) == 0 || errno == EINPROGRESS)
        return fd;
    (void)close(fd);
    return -1;
}

static void welcome(void)
{
    const int one = 1;
    int client = accept4(d.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (client < 0)
        return;
    int service = d.count < PAIRS_MAX ? dial() : -1;
    struct pair *p = service >= 0 ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        reset(client);
        if (service >= 0)
            (void)close(service);
        return;
    }
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    p->ways[0].from = p->ways[1].to = client;
    p->ways[1].from = p->ways[0].to = service;
    p->connecting = true;
    for (size_t i = 0; i < 2; i++)
        list_init(&p->ways[i].pieces);
    list_push(&d.pairs, &p->link);
    d.count++;
}

static bool is_connected(struct pair *p)
{
    int error = 0;
    socklen_t size = sizeof error;

    p->connecting = false;
    return getsockopt(p->ways[1].from, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

static short events_of(const struct pair *p, size_t side)
{
    const struct way *in = &p->ways[side];
    const struct way *out = &p->ways[!side];

    if (p->connecting)
        return side == 1 ? POLLOUT : 0;
    return (short)((!in->ended && in->queued < QUEUE_MAX ? POLLIN : 0)
                   | (piece_due(out) ? POLLOUT : 0));
}

static void pair_serve(struct pair *p, const struct pollfd *fds)
{
    bool ok = true;

    if (p->connecting) {
        if (fds[1].revents)
            ok = is_connected(p);
        p->dead = !ok;
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        if (fds[i].revents && !p->ways[i].ended && p->ways[i].queued < QUEUE_MAX)
            ok = ok && take_in(&p->ways[i]);
        ok = ok && hand_on(&p->ways[i]);
    }
    p->dead = !ok || (p->ways[0].told && p->ways[1].told);
}

/* ---- the loop ---- */

/* Milliseconds until something may be handed on, or the plan is looked at. */
static int time_left(void)
{
    int64_t least = LOOK_MS;

    LIST_FOREACH (l, after, &d.pairs) {
        const struct pair *p = CONTAINER_OF(l, struct pair, link);
        for (size_t i = 0; i < 2 && !d.plan.stall; i++) {
            const struct piece *first = piece_first(&p->ways[i]);
            int64_t left = first ? (first->due_us - now_us() + 999) / 1000 : LOOK_MS;
            least = left < least ? left : least;
        }
    }
    return least > 0 ? (int)least : 0;
}

static void turn(void)
{
    static struct pollfd fds[1 + 2 * PAIRS_MAX];
    nfds_t count = 1;

    plan_read();
    fds[0] = (struct pollfd){.fd = d.listener, .events = POLLIN};
    LIST_FOREACH (l, after, &d.pairs) {
        const struct pair *p = CONTAINER_OF(l, struct pair, link);
        for (size_t i = 0; i < 2; i++) {
            short events = events_of(p, i);
            /* One that nothing is wanted of would tell of its end again and again. */
            fds[count++] = (struct pollfd){.fd = events ? p->ways[i].from : -1, .events = events};
        }
    }
    if (poll(fds, count, time_left()) < 0)
        return;
    count = 1;
    LIST_FOREACH (l, after, &d.pairs) {
        struct pair *p = CONTAINER_OF(l, struct pair, link);
        pair_serve(p, &fds[count]);
        count += 2;
        if (p->dead)
            pair_end(p, p->ways[0].told && p->ways[1].told);
    }
    if (fds[0].revents)
        welcome();
}

/* ---- start ---- */

static bool read_address(const char *text, struct sockaddr_in *ret)
{
    char host[64];
    unsigned port = 0;

    *ret = (struct sockaddr_in){.sin_family = AF_INET};
    if (sscanf(text, "%63[0-9.]:%u", host, &port) != 2 || port < 1 || port > 65535
        || inet_pton(AF_INET, host, &ret->sin_addr) != 1)
        return false;
    ret->sin_port = htons((uint16_t)port);
    return true;
}

static int listen_at(const struct sockaddr_in *at)
{
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0
        && bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 && listen(fd, 64) == 0)
        return fd;
    perror("partition-delay: listen");
    exit(1);
}

static int usage(void)
{
    fputs("usage: partition-delay --listen ADDR:PORT --to ADDR:PORT --plan FILE [--seed N]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {{"listen", required_argument, NULL, 'l'},
                                          {"to", required_argument, NULL, 't'},
                                          {"plan", required_argument, NULL, 'p'},
                                          {"seed", required_argument, NULL, 's'},
                                          {NULL, 0, NULL, 0}};
    struct sockaddr_in at = {0};
    bool ok = true;

    list_init(&d.pairs);
    for (int f = 0; (f = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (f == 'l')
            ok = ok && read_address(optarg, &at);
        else if (f == 't')
            ok = ok && read_address(optarg, &d.to);
        else if (f == 'p')
            d.path = optarg;
        else if (f == 's')
            d.prng.state = strtoull(optarg, NULL, 10);
        else
            ok = false;
    }
    if (!ok || !at.sin_port || !d.to.sin_port || !d.path || optind != argc)
        return usage();
    (void)signal(SIGPIPE, SIG_IGN);
    d.listener = listen_at(&at);
    for (;;)
        turn();
}
