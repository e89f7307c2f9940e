/* Implements proxy.h: a forked process that forwards bytes with poll; mode and cut are in shared
 * memory. */

#include "proxy.h"

#include "base/test.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster.h"

enum { LINKS = 64, LOOK_MS = 5, BLOCK = 4096 };

/* A client and its connection to the database. */
struct link {
    int client, server; /* 0: there is none */
    uint64_t passed, most;
};

/* Shared with the process. */
struct control {
    int mode;
    uint64_t cut_after;
};

static struct {
    char dir[64], conninfo[128];
    struct control *control;
    struct link links[LINKS];
    pid_t owner;
} p;

static int mode(void)
{
    return __atomic_load_n(&p.control->mode, __ATOMIC_SEQ_CST);
}

static int server_dial(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s/.s.PGSQL.5432", cluster_dir());
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    (void)close(fd);
    return 0;
}

static void link_end(struct link *l)
{
    (void)close(l->client);
    (void)close(l->server);
    *l = (struct link){0};
}

static void take(int listener)
{
    struct link *l = p.links;
    int fd = accept(listener, NULL, NULL);

    while (l < p.links + LINKS - 1 && l->client)
        l++;
    *l = (struct link){.client = fd,
                       .most = __atomic_load_n(&p.control->cut_after, __ATOMIC_SEQ_CST)};
    l->server = mode() == PROXY_REFUSE ? 0 : server_dial();
    if (!l->server) {
        (void)close(fd);
        *l = (struct link){0};
    }
}

/* How much it was; 0: it is over. */
static uint64_t pass(int from, int to, uint64_t most)
{
    char bytes[BLOCK];
    ssize_t n = read(from, bytes, most < sizeof bytes ? most : sizeof bytes);

    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n ? (uint64_t)n : 0;
}

static void serve_link(struct link *l, short client, short server)
{
    bool goes_on = true;

    if (client) {
        uint64_t n = pass(l->client, l->server, l->most ? l->most - l->passed : BLOCK);
        l->passed += n;
        goes_on = n > 0 && (!l->most || l->passed < l->most);
    }
    if (goes_on && server)
        goes_on = pass(l->server, l->client, BLOCK) > 0;
    if (!goes_on)
        link_end(l);
}

static void serve(int listener)
{
    for (;;) {
        struct pollfd fds[1 + 2 * LINKS];
        int m = mode();
        fds[0] = (struct pollfd){.fd = m == PROXY_SILENT ? -1 : listener, .events = POLLIN};
        for (size_t i = 0; i < LINKS; i++) {
            bool on = p.links[i].client;
            fds[1 + 2 * i] =
                (struct pollfd){.fd = on && m != PROXY_HOLD_REQUESTS ? p.links[i].client : -1,
                                .events = POLLIN};
            fds[2 + 2 * i] =
                (struct pollfd){.fd = on && m != PROXY_HOLD_ANSWERS ? p.links[i].server : -1,
                                .events = POLLIN};
        }
        if (poll(fds, COUNT_OF(fds), LOOK_MS) <= 0 || mode() != m)
            continue;
        for (size_t i = 0; i < LINKS; i++)
            if (fds[1 + 2 * i].revents || fds[2 + 2 * i].revents)
                serve_link(&p.links[i], fds[1 + 2 * i].revents, fds[2 + 2 * i].revents);
        if (fds[0].revents)
            take(listener);
    }
}

static void stop(void)
{
    char path[80];

    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", p.dir);
    if (p.owner == getpid()) {
        (void)unlink(path);
        (void)rmdir(p.dir);
    }
}

const char *proxy_conninfo(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (p.owner)
        return p.conninfo;
    (void)cluster_conninfo();
    p.owner = getpid();
    (void)snprintf(p.dir, sizeof p.dir, "/tmp/intact-px-XXXXXX");
    CHECK(mkdtemp(p.dir), "a folder for the proxy");
    (void)atexit(stop);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/.s.PGSQL.5432", p.dir);
    (void)snprintf(p.conninfo, sizeof p.conninfo, "host=%s user=intact dbname=postgres", p.dir);
    p.control =
        mmap(NULL, sizeof *p.control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(p.control != MAP_FAILED && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0
              && listen(fd, LINKS) == 0,
          "the proxy listens");
    if (cluster_fork() == 0)
        serve(fd);
    (void)close(fd);
    return p.conninfo;
}

void proxy_set(enum proxy_mode m)
{
    (void)proxy_conninfo();
    __atomic_store_n(&p.control->mode, (int)m, __ATOMIC_SEQ_CST);
    (void)usleep(4 * LOOK_MS * 1000); /* heard of it; nothing fails should it be late */
}

void proxy_cut_after(uint64_t bytes)
{
    (void)proxy_conninfo();
    __atomic_store_n(&p.control->cut_after, bytes, __ATOMIC_SEQ_CST);
}
