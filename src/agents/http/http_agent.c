/* The HTTP agent's process: signals, confinement, secrets, and the event loop over all services
 * (service.c). A program of its own, or a server's child (inside.h). */

#include "agents/http/http_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agents/http/inside.h"
#include "agents/http/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "confine/caller.h"
#include "confine/hidden.h"
#include "libintact/agent.h"
#include "libintact/wire.h"
#include "net/holes.h"
#include "net/watchdog.h"

enum { EVENTS_MAX = 64 };

struct source {
    int fd;
    struct service *service; /* NULL: the signals, or the channel */
};

struct http_agent {
    const struct http_config *config;
    struct secrets *secrets;
    struct service *services;
    struct source *sources; /* two per service */
    int64_t *wake_at;       /* per service */
    bool *is_ready;
    size_t count;
    int fd; /* epoll */
    struct inside inside;
    struct caller caller; /* for a child: its remaining permissions */
    bool is_stopping;
};

static struct {
    int fd; /* eventfd: a signal has arrived */
    volatile sig_atomic_t stops, hangups;
} signals = {.fd = -1};

static void on_signal(int number)
{
    const uint64_t one = 1;
    int before = errno;

    if (number == SIGHUP) {
        signals.hangups = 1;
    } else {
        if (signals.stops)
            _exit(128 + number); /* the server gives up attempts without a result */
        signals.stops = 1;
        intact_agent_stop();
    }
    (void)!write(signals.fd, &one, sizeof one); /* only fails if it is readable already */
    errno = before;
}

static bool take_signals(bool is_inside)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal};

    signals.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigemptyset(&act.sa_mask);
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct sigaction mine = act;
        if (is_inside && numbers[i] != SIGHUP)
            mine.sa_handler = SIG_IGN; /* the server decides when to stop */
        (void)sigaction(numbers[i], &mine, NULL);
    }
    return signals.fd >= 0 && watchdog_start();
}

static void take_files(void)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* too few descriptors show later */
    }
}

/* ---- secrets ---- */

static void log_faults(struct buf *faults, bool at_start)
{
    for (char *line = faults->len ? strtok(faults->ptr, "\n") : NULL; line;
         line = strtok(NULL, "\n"))
        if (at_start)
            log_line(LOG_ERROR, "event=secret_missing reason=\"%s\"", line);
        else
            log_line(LOG_ERROR, "event=secret_refused reason=\"%s\"", line);
}

static void reload(struct http_agent *h)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    struct secrets *fresh = secrets_load(h->config, &faults);

    if (!fresh) {
        log_faults(&faults, false);
        return;
    }
    secrets_replace(&h->secrets, fresh);
    log_line(LOG_INFO, "event=secrets_loaded");
}

/* ---- setting up ---- */

/* A child has the server's user, which owns all the server's files, and reads answers of services
 * it does not trust. A separate agent can be confined by its operator. */
static void confine(struct http_agent *h)
{
    if (h->inside.channel < 0)
        return;
    caller_begin(&h->caller);
    for (const struct secret *s = h->config->secrets; s; s = s->next)
        caller_reads(&h->caller, s->place.file);
    for (const struct service_config *c = h->config->services; c; c = c->next) {
        caller_reads(&h->caller, c->net.ca);
        caller_reads(&h->caller, c->net.cert);
        caller_reads(&h->caller, c->net.key);
    }
    caller_enter(&h->caller);
}

static bool watch(struct http_agent *h, struct source *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};

    return s->fd >= 0 && epoll_ctl(h->fd, EPOLL_CTL_ADD, s->fd, &e) == 0;
}

static void log_agent(void *arg, enum intact_log_level level, const char *line)
{
    log_line((enum log_level)level, "agent=%s %s", (const char *)arg, line);
}

static struct intact_agent *agent_of(const struct http_agent *h, const struct service_config *s,
                                     const struct http_agent_options *o)
{
    struct intact_agent *a = intact_agent_new(s->name.ptr);

    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read */
    intact_agent_set_log(a, log_agent, (void *)(uintptr_t)s->name.ptr);
    if (o->instance)
        intact_agent_set_instance(a, o->instance);
    if (h->inside.channel >= 0) {
        agent_set_door(a, h->inside.door);
        return a;
    }
    if (o->server)
        intact_agent_set_server(a, o->server);
    if (o->token)
        intact_agent_set_token(a, o->token);
    if (o->ca)
        intact_agent_set_ca(a, o->ca);
    return a;
}

static bool open_services(struct http_agent *h, const struct http_agent_options *o)
{
    for (const struct service_config *c = h->config->services; c; c = c->next) {
        struct service *s = &h->services[h->count];
        struct source *of = &h->sources[2 * h->count];
        bool ok = service_open(s, c, &h->secrets, agent_of(h, c, o));
        h->count++;
        of[0] = (struct source){ok ? intact_agent_fd(s->agent) : -1, s};
        of[1] = (struct source){s->reactor.fd, s};
        if (!ok || !watch(h, &of[0]) || !watch(h, &of[1]))
            return false;
    }
    return true;
}

static bool open_all(struct http_agent *h, const struct http_agent_options *o)
{
    static struct source of_signals, of_channel;
    size_t count = h->config->service_count;

    h->services = calloc(count, sizeof *h->services);
    h->sources = calloc(count * 2, sizeof *h->sources);
    h->wake_at = calloc(count, sizeof *h->wake_at);
    h->is_ready = calloc(count, sizeof *h->is_ready);
    ASSERT(h->services && h->sources && h->wake_at && h->is_ready);
    h->fd = epoll_create1(EPOLL_CLOEXEC);
    of_signals = (struct source){signals.fd, NULL};
    of_channel = (struct source){h->inside.channel, NULL};
    return h->fd >= 0 && watch(h, &of_signals) && (h->inside.channel < 0 || watch(h, &of_channel))
           && open_services(h, o);
}

static void close_all(struct http_agent *h)
{
    for (size_t i = 0; i < h->count; i++)
        service_close(&h->services[i]);
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h->services);
    free(h->sources);
    free(h->wake_at);
    free(h->is_ready);
    secrets_free(h->secrets);
    caller_end(&h->caller);
}

/* ---- turns ---- */

static void notice_signals(struct http_agent *h)
{
    uint64_t ignored;

    (void)!read(signals.fd, &ignored, sizeof ignored); /* it may be empty */
    if (signals.hangups)
        caller_look(&h->caller); /* checks for replaced files before they are read again */
    if (!signals.stops && caller_is_outdated(&h->caller, clock_boot_ms())) {
        signals.stops = 1; /* the server starts another child, which may read the new files */
        signals.hangups = 0;
        intact_agent_stop();
    }
    if (signals.hangups) {
        signals.hangups = 0;
        reload(h);
    }
    if (!signals.stops || h->is_stopping)
        return;
    h->is_stopping = true;
    for (size_t i = 0; i < h->count; i++) {
        service_stop(&h->services[i]);
        h->is_ready[i] = true;
    }
}

/* Reads the channel. False: the server is gone. A byte means that it drains. */
static bool read_channel(const struct http_agent *h)
{
    char byte;
    ssize_t n = h->inside.channel >= 0 ? recv(h->inside.channel, &byte, 1, MSG_DONTWAIT) : -1;

    if (n > 0) {
        signals.stops = 1;
        intact_agent_stop();
    }
    return n != 0;
}

/* False: all services have ended. */
static bool turn(struct http_agent *h)
{
    int64_t now = clock_boot_ms();
    bool goes_on = false;

    for (size_t i = 0; i < h->count; i++) {
        if (h->is_ready[i] || h->wake_at[i] <= now) {
            h->is_ready[i] = false;
            service_turn(&h->services[i]);
            h->wake_at[i] = service_wake_at(&h->services[i]);
        }
        goes_on |= !h->services[i].is_over;
    }
    return goes_on;
}

static void wait_for_events(struct http_agent *h)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t at = INT64_MAX;

    for (size_t i = 0; i < h->count; i++)
        at = min_i64(at, h->wake_at[i]);
    int64_t ms = min_i64(max_i64(at - clock_boot_ms(), 0), 60000);
    int n = epoll_wait(h->fd, events, EVENTS_MAX, (int)ms);
    for (int i = 0; i < n; i++) {
        const struct source *s = events[i].data.ptr;
        if (s->service)
            h->is_ready[s->service - h->services] = true;
    }
}

static int outcome_of(const struct http_agent *h)
{
    int worst = 0;

    for (size_t i = 0; i < h->count; i++) {
        int one = (int)intact_agent_outcome(h->services[i].agent);
        worst = one > worst ? one : worst;
    }
    return worst;
}

static unsigned used_of_libcurl(const struct http_config *c)
{
    unsigned used = HOLES_HTTP;

    for (const struct service_config *s = c->services; s; s = s->next)
        if (s->net.proxy && strncmp(s->net.proxy, "socks", 5) == 0)
            used |= HOLES_SOCKS;
    return used;
}

int http_agent_run(const struct http_config *c, const struct http_agent_options *o)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    struct http_agent h = {.config = c, .fd = -1, .inside = inside_find(INSIDE_VARIABLE)};
    bool has_server = true;
    int status = 1;

    h.secrets = secrets_load(c, &faults);
    if (!h.secrets) {
        log_faults(&faults, true);
        return 2;
    }
    take_files();
    process_hide();
    confine(&h);
    if (!take_signals(h.inside.channel >= 0) || !open_all(&h, o)) {
        log_line(LOG_ERROR, "event=start_failed reason=\"no more descriptors, or libcurl cannot be "
                            "used\"");
        close_all(&h);
        return 1;
    }
    holes_warn(used_of_libcurl(c));
    log_line(LOG_INFO, "event=http_agent_started services=%zu inside=%s", h.count,
             h.inside.channel >= 0 ? "yes" : "no");
    while (turn(&h)) {
        wait_for_events(&h);
        has_server = read_channel(&h);
        notice_signals(&h);
        if (!has_server)
            break;
    }
    status = has_server ? outcome_of(&h) : 0;
    close_all(&h);
    return status;
}
