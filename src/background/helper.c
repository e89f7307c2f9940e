/*
 * Child processes that are agents of this node (serve --http, --amqp): starts them, restarts them,
 * passes them connections and packets, and ends them. What crosses the sockets is described in
 * libintact/door.h and agents/http/inside.h.
 */

#include "background/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "background/room.h"
#include "base/log.h"
#include "node/access.h"
#include "node/node.h"
#include "node/part.h"

enum { WHOSE_AGENTS = 1, WHOSE_AMQP = 2 };

enum {
    CHANNEL = 3, /* the descriptors in the child */
    DOOR = 4,
    AGAIN_FIRST_MS = 500,
    AGAIN_MOST_MS = 30000,
    STEADY_MS = 60000, /* after running for so long, restarts begin with short waits again */
    TAKEN_MAX = 64,    /* connections, or packets, in one turn */
    EAR_PACKET_MAX = 512,
};

struct helper {
    struct server *server;
    struct helper_config config;
    uv_process_t process;
    uv_timer_t again;
    uv_poll_t door;
    uv_poll_t ear; /* on the channel, if there is a listener */
    uv_timer_t wake;
    bool has_door, has_ear, wants_room;
    int door_fd;   /* -1: there is none */
    int fd;        /* of the channel; -1: there is none */
    unsigned open; /* handles that libuv has not let go of */
    bool is_running, is_closing, is_draining;
    int64_t started_at, again_ms;
};

static void start(struct helper *h);

static void on_closed(uv_handle_t *u)
{
    struct helper *h = u->data;

    if (--h->open == 0 && h->is_closing)
        free(h);
}

static void close_channel(struct helper *h)
{
    if (h->has_ear)
        uv_close((uv_handle_t *)&h->ear, on_closed);
    h->has_ear = false;
    if (h->fd >= 0)
        (void)close(h->fd);
    h->fd = -1;
}

static void close_door(struct helper *h)
{
    if (h->has_door)
        uv_close((uv_handle_t *)&h->door, on_closed);
    h->has_door = false;
    if (h->door_fd >= 0)
        (void)close(h->door_fd);
    h->door_fd = -1;
}

/* ---- the channel ---- */

const struct bearer *helper_bearer(unsigned whose)
{
    return whose == WHOSE_AMQP ? &access_amqp : &access_helper;
}

static void on_ear(uv_poll_t *p, int status, int events);

static void listen_to_channel(struct helper *h)
{
    int events = UV_READABLE | (h->wants_room ? UV_WRITABLE : 0);

    if (h->has_ear)
        (void)uv_poll_start(&h->ear, events, on_ear);
}

/* Packets after its end are not waited for: the listener is notified of the end. */
static void on_ear(uv_poll_t *p, int status, int events)
{
    struct helper *h = p->data;
    const struct helper_listener *listener = h->config.listener;
    char packet[EAR_PACKET_MAX];

    if (status >= 0 && (events & UV_WRITABLE) && h->wants_room) {
        h->wants_room = false;
        listen_to_channel(h);
        listener->room(listener->arg);
    }
    for (int i = 0; status >= 0 && i < TAKEN_MAX && h->has_ear; i++) {
        ssize_t n = recv(h->fd, packet, sizeof packet, MSG_DONTWAIT);
        if (n > 0)
            listener->received(listener->arg, (struct slice){packet, (size_t)n});
        else if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        else
            (void)uv_poll_stop(&h->ear); /* its exit reports the end */
        if (n <= 0)
            return;
    }
}

static void open_ear(struct helper *h)
{
    const int size = HELPER_PACKET_MAX;

    if (!h->config.listener)
        return;
    (void)setsockopt(h->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* a wish */
    if (uv_poll_init(&h->server->loop, &h->ear, h->fd) != 0)
        return; /* then nothing is received, and packets without a reply are sent again */
    h->ear.data = h;
    h->open++;
    h->has_ear = true;
    listen_to_channel(h);
}

static void on_wake(uv_timer_t *t)
{
    struct helper *h = t->data;

    h->config.listener->room(h->config.listener->arg);
}

void helper_wake(struct helper *h)
{
    ASSERT(h->config.listener);
    if (!h->is_closing)
        (void)uv_timer_start(&h->wake, on_wake, 0, 0);
}

bool helper_is_there(const struct helper *h)
{
    return h->has_ear && h->is_running;
}

bool helper_send(struct helper *h, struct slice packet)
{
    if (!helper_is_there(h))
        return false;
    if (send(h->fd, packet.ptr, packet.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)packet.len)
        return true;
    h->wants_room = true;
    listen_to_channel(h);
    return false;
}

/* ---- its connections ---- */

/* A byte, and with it one end of a connection, if there is one to give. */
static bool hand_out(const struct helper *h, int theirs)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights = {0};
    char byte = 'c';
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (theirs >= 0) {
        m.msg_control = rights.bytes;
        m.msg_controllen = sizeof rights.bytes;
        rights.head.cmsg_level = SOL_SOCKET;
        rights.head.cmsg_type = SCM_RIGHTS;
        rights.head.cmsg_len = CMSG_LEN(sizeof theirs);
        memcpy(CMSG_DATA(&rights.head), &theirs, sizeof theirs);
    }
    return sendmsg(h->door_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* Both ends are made here: of one that the child had made it could keep a duplicate, and have our
 * reading wait for it. */
static void let_in(struct helper *h)
{
    int pair[2] = {-1, -1};
    bool is_made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0;
    bool is_sent = hand_out(h, pair[1]); /* one that does not read has no connection */

    if (is_made)
        (void)close(pair[1]);
    if (is_made && is_sent)
        http_adopt(h->server->http, pair[0], h->config.submits ? WHOSE_AMQP : WHOSE_AGENTS);
    else if (is_made)
        (void)close(pair[0]);
}

static void on_door(uv_poll_t *p, int status, int events)
{
    struct helper *h = p->data;
    char byte;
    (void)events;

    for (int i = 0; i < TAKEN_MAX && h->has_door; i++) {
        ssize_t n = status < 0 ? 0 : recv(h->door_fd, &byte, 1, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            (void)uv_poll_stop(&h->door); /* its exit reports the end */
            return;
        }
        let_in(h);
    }
}

static bool open_door(struct helper *h)
{
    if (uv_poll_init(&h->server->loop, &h->door, h->door_fd) != 0)
        return false;
    h->door.data = h;
    h->open++;
    h->has_door = true;
    return uv_poll_start(&h->door, UV_READABLE, on_door) == 0;
}

/* ---- the child ---- */

static void on_again(uv_timer_t *t)
{
    start(t->data);
}

static void start_later(struct helper *h)
{
    if (h->is_closing || h->is_draining)
        return;
    if (server_steady(NULL) - h->started_at > STEADY_MS)
        h->again_ms = AGAIN_FIRST_MS;
    (void)uv_timer_start(&h->again, on_again, (uint64_t)h->again_ms, 0);
    h->again_ms = min_i64(h->again_ms * 2, AGAIN_MOST_MS);
}

static void on_process_closed(uv_handle_t *u)
{
    struct helper *h = u->data;

    h->is_running = false;
    start_later(h);
    on_closed(u);
}

static void on_exit_of(uv_process_t *p, int64_t status, int signal)
{
    struct helper *h = p->data;
    bool is_wanted = h->is_draining || (status == 0 && signal == 0); /* it begins anew */

    log_line(is_wanted ? LOG_INFO : LOG_ERROR, "event=helper_ended name=%s status=%d signal=%d",
             h->config.argv[2], (int)status, signal);
    close_channel(h);
    close_door(h);
    if (h->config.listener)
        h->config.listener->ended(h->config.listener->arg);
    uv_close((uv_handle_t *)p, on_process_closed);
}

static bool is_named(const char *variable, const char *name)
{
    size_t len = strlen(name);

    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

/* Variables that the C library, OpenSSL, Proton and debuggers use. */
static bool is_for_libraries(const char *variable)
{
    static const char *const names[] = {
        "PATH",         "HOME",          "TZ",           "TZDIR",           "LANG",
        "LANGUAGE",     "SSL_CERT_FILE", "TMPDIR",       "SSL_CERT_DIR",    "RES_OPTIONS",
        "LOCALDOMAIN",  "LD_PRELOAD",    "HOSTALIASES",  "LD_LIBRARY_PATH", "GLIBC_TUNABLES",
        "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",    "INTACT_DUMPABLE"};
    static const char *const beginnings[] = {"LC_", "OPENSSL_", "PN_", "MALLOC_", "GCOV_", "LLVM_"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (is_named(variable, names[i]))
            return true;
    for (size_t i = 0; i < COUNT_OF(beginnings); i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static bool is_kept(const struct helper *h, const char *variable)
{
    for (const char *const *name = h->config.kept; name && *name; name++)
        if (is_named(variable, *name))
            return true;
    return is_for_libraries(variable);
}

/* The password of the database, tokens, and whatever else the server was given stays here. */
static char **environment_of(const struct helper *h, char *own, size_t size)
{
    size_t count = 0;
    size_t kept = 0;

    while (environ[count])
        count++;
    char **list = calloc(count + 2, sizeof *list);
    ASSERT(list);
    for (size_t i = 0; i < count; i++)
        if (is_kept(h, environ[i]))
            list[kept++] = environ[i];
    (void)snprintf(own, size, "%s=%d:%d", h->config.variable, CHANNEL, DOOR);
    list[kept] = own;
    return list;
}

static int spawn(struct helper *h, int channel, int door)
{
    char own[200];
    char **environment = environment_of(h, own, sizeof own);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = channel},
        {.flags = UV_INHERIT_FD, .data.fd = door},
    };
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it stays as it is */
    char **argv = (char **)(uintptr_t)h->config.argv; /* libuv does not write to it */
    const uv_process_options_t o = {.exit_cb = on_exit_of,
                                    .file = "/proc/self/exe",
                                    .args = argv,
                                    .env = environment,
                                    .stdio_count = COUNT_OF(stdio),
                                    .stdio = stdio};

    int rc = uv_spawn(&h->server->loop, &h->process, &o);
    free(environment);
    return rc;
}

/* The pair of which we keep the first end. */
static bool open_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
}

static void start(struct helper *h)
{
    int channel[2] = {-1, -1};
    int door[2] = {-1, -1};
    bool has_tried = false;
    int rc = UV_EMFILE;

    h->started_at = server_steady(NULL);
    if (open_pair(channel) && open_pair(door)) {
        h->fd = channel[0];
        h->door_fd = door[0];
        has_tried = open_door(h);
    }
    if (has_tried) {
        h->process.data = h;
        h->open++;
        h->is_running = true;
        rc = spawn(h, channel[1], door[1]);
    }
    if (channel[1] >= 0)
        (void)close(channel[1]);
    if (door[1] >= 0)
        (void)close(door[1]);
    if (rc == 0) {
        open_ear(h);
        return;
    }
    log_line(LOG_ERROR, "event=helper_not_started name=%s reason=\"%s\"", h->config.argv[2],
             uv_strerror(rc));
    h->fd = channel[0];
    close_channel(h);
    close_door(h);
    if (has_tried)
        uv_close((uv_handle_t *)&h->process, on_process_closed);
    else
        start_later(h);
}

static struct helper *helper_open(struct server *sv, const struct helper_config *c)
{
    struct helper *h = calloc(1, sizeof *h);

    ASSERT(h);
    *h = (struct helper){
        .server = sv, .config = *c, .fd = -1, .door_fd = -1, .again_ms = AGAIN_FIRST_MS};
    int rc = uv_timer_init(&sv->loop, &h->again);
    ASSERT(rc == 0);
    h->again.data = h;
    h->open++;
    rc = uv_timer_init(&sv->loop, &h->wake);
    ASSERT(rc == 0);
    h->wake.data = h;
    h->open++;
    if (c->listener)
        c->listener->opened(c->listener->arg, h);
    start(h);
    return h;
}

static void helper_hangup(struct helper *h)
{
    if (h->is_running)
        (void)uv_process_kill(&h->process, SIGHUP); /* it may have ended just now */
}

static void helper_drain(struct helper *h)
{
    h->is_draining = true;
    (void)uv_timer_stop(&h->again);
    if (h->fd >= 0)
        (void)send(h->fd, "d", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* its end is seen anyway */
}

static void helper_close(struct helper *h)
{
    if (!h)
        return;
    h->is_closing = true;
    if (h->config.listener)
        h->config.listener->opened(h->config.listener->arg, NULL);
    close_channel(h); /* the child takes that for the end */
    close_door(h);
    uv_close((uv_handle_t *)&h->again, on_closed);
    uv_close((uv_handle_t *)&h->wake, on_closed);
    if (h->is_running && !uv_is_closing((uv_handle_t *)&h->process))
        uv_close((uv_handle_t *)&h->process, on_process_closed);
}

/* ---- the part ---- */

static enum err helpers_open(struct server *sv, struct error *e)
{
    (void)e;
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->config.helpers[i])
            sv->background->helpers[i] = helper_open(sv, sv->config.helpers[i]);
    return ERR_OK;
}

static void helpers_drain(struct server *sv)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->background->helpers[i])
            helper_drain(sv->background->helpers[i]);
}

void helpers_read_again(struct server *sv)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->background->helpers[i])
            helper_hangup(sv->background->helpers[i]);
}

static void helpers_hang_up(struct server *sv)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        helper_close(sv->background->helpers[i]);
}

const struct part helpers_part = {
    .name = "helpers",
    .open = helpers_open,
    .drain = helpers_drain,
    .hang_up = helpers_hang_up,
};
