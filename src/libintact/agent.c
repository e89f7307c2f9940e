#include "libintact/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { CONCURRENCY_MAX = 1000, PEERS_MAX = 64, LOOK_MS = 1000 };

/* What stops all agents of the process. The descriptor stays open once it was made: a signal
 * handler may hold its number. */
static struct {
    pthread_mutex_t lock;
    unsigned running; /* agents; under the lock */
    atomic_bool wanted;
    atomic_int fd; /* eventfd, or -1 */
} stop = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

void intact_agent_stop(void)
{
    const uint64_t one = 1;
    int before = errno; /* a signal handler leaves it as it was */
    atomic_store(&stop.wanted, true);
    int fd = atomic_load(&stop.fd);

    if (fd >= 0)
        (void)!write(fd, &one, sizeof(one)); /* can only fail if it is readable already */
    errno = before;
}

static bool stop_enter(void)
{
    pthread_mutex_lock(&stop.lock);
    if (atomic_load(&stop.fd) < 0)
        atomic_store(&stop.fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    bool ok = atomic_load(&stop.fd) >= 0;
    if (ok)
        stop.running++;
    pthread_mutex_unlock(&stop.lock);
    return ok;
}

static void stop_leave(void)
{
    uint64_t ignored;

    pthread_mutex_lock(&stop.lock);
    ASSERT(stop.running > 0);
    if (--stop.running == 0) {
        atomic_store(&stop.wanted, false);
        (void)!read(atomic_load(&stop.fd), &ignored, sizeof(ignored)); /* empty is fine */
    }
    pthread_mutex_unlock(&stop.lock);
}

void agent_log(const struct agent *a, enum log_level level, const char *fmt, ...)
{
    char line[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (a->options.log)
        a->options.log(a->options.log_arg, (enum intact_log_level)level, line);
    else
        log_line(level, "agent=%s instance=%s %s", a->options.agent, a->instance, line);
}

const struct intact_handler *agent_handler(const struct agent *a, const char *action,
                                           enum intact_direction direction)
{
    for (size_t i = 0; i < a->options.handler_count; i++) {
        const struct intact_handler *h = &a->options.handlers[i];
        if ((h->direction == direction || h->direction == INTACT_ANY)
            && strcmp(h->action, action) == 0)
            return h;
    }
    return NULL;
}

void agent_release(struct agent *a, struct intact_request *r)
{
    void *was = map_remove(&a->held, r->token);

    ASSERT(was == r);
    request_free(r);
}

void agent_take(struct agent *a, struct link *requests)
{
    if (!a->options.inline_handlers) {
        pool_add(&a->pool, requests);
        return;
    }
    LIST_FOREACH (l, after, requests) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, link);
        link_remove(l);
        request_run(r);
        peer_done(r->peer, r, wire_now_ms());
    }
}

static void collect(struct agent *a)
{
    int64_t now = wire_now_ms();
    struct link done;

    list_init(&done);
    pool_take_done(&a->pool, &done);
    LIST_FOREACH (l, after, &done) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, link);
        link_remove(l);
        peer_done(r->peer, r, now);
    }
}

/* Any server takes any result: what one that is gone cannot take, another one can. */
static void share_results(struct agent *a)
{
    struct peer *healthy = NULL;

    for (size_t i = 0; i < a->peer_count && !healthy; i++)
        if (a->peers[i].failures == 0)
            healthy = &a->peers[i];
    for (size_t i = 0; healthy && i < a->peer_count; i++) {
        struct peer *p = &a->peers[i];
        if (p->failures == 0)
            continue;
        LIST_FOREACH (l, after, &p->ready) {
            link_remove(l);
            list_push(&healthy->ready, l);
        }
    }
}

static bool take_answers(struct agent *a)
{
    bool any = false;
    int left = 0;

    for (CURLMsg *m = curl_multi_info_read(a->multi, &left); m;
         m = curl_multi_info_read(a->multi, &left)) {
        char *private = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m dies when its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private); /* set by call_init */
        struct call *c = (struct call *)(void *)private;
        peer_answered(c->peer, c, code);
        any = true;
    }
    return any;
}

/* True: everything has come to its end, or cannot be waited for any longer. */
static bool is_over(struct agent *a, int64_t now)
{
    bool idle = true;
    size_t working = 0;

    if (!a->stopping && atomic_load(&stop.wanted)) {
        a->stopping = true;
        agent_log(a, LOG_INFO, "event=stopping holding=%zu", a->held.len);
        for (size_t i = 0; i < a->peer_count; i++)
            peer_stop(&a->peers[i]);
    }
    if (!a->stopping)
        return false;
    for (size_t i = 0; i < a->peer_count; i++) {
        idle = peer_is_idle(&a->peers[i]) && idle;
        working += a->peers[i].working;
    }
    if (working > 0 || a->stop_by == 0)
        a->stop_by = now + a->options.stop_wait_ms;
    return idle || now >= a->stop_by;
}

static void wait_for_something(struct agent *a)
{
    struct curl_waitfd fds[2] = {{.fd = a->pool.fd, .events = CURL_WAIT_POLLIN},
                                 {.fd = atomic_load(&stop.fd), .events = CURL_WAIT_POLLIN}};
    int64_t now = wire_now_ms();
    int64_t wake = now + LOOK_MS;
    int ignored;

    for (size_t i = 0; i < a->peer_count; i++)
        wake = min_i64(wake, peer_wake_at(&a->peers[i], now));
    /* Once stopping, the descriptor stays readable and tells nothing new. */
    (void)curl_multi_poll(a->multi, fds, a->stopping ? 1 : 2, (int)max_i64(0, wake - now),
                          &ignored);
}

static void loop(struct agent *a)
{
    int running;

    while (!is_over(a, wire_now_ms())) {
        collect(a);
        if (a->peer_count > 1)
            share_results(a);
        for (size_t i = 0; i < a->peer_count; i++)
            peer_tick(&a->peers[i], wire_now_ms());
        (void)curl_multi_perform(a->multi, &running); /* failures show in each call */
        if (!take_answers(a))
            wait_for_something(a);
    }
}

static bool open_peers(struct agent *a)
{
    const char *server = wire_server(a->options.server);
    size_t count = 1;

    for (const char *s = server; *s; s++)
        count += *s == ',';
    if (count > PEERS_MAX)
        return false;
    a->peers = calloc(count, sizeof(*a->peers));
    if (!a->peers)
        return false;
    bool ok = true;
    for (size_t i = 0; i < count; i++) { /* all of them, so that all can be closed */
        size_t len = strcspn(server, ",");
        size_t share = a->options.concurrency / count + (i < a->options.concurrency % count);
        ok = peer_init(&a->peers[i], a, server, len, share ? share : 1) && ok;
        server += len + 1;
    }
    a->peer_count = count;
    return ok;
}

static bool fill_in(struct agent *a, const struct intact_agent_options *given)
{
    struct intact_agent_options *o = &a->options;
    char host[100] = "";

    *o = *given;
    if (!o->concurrency)
        o->concurrency = 1;
    if (o->wait_ms <= 0)
        o->wait_ms = 30000;
    if (o->stop_wait_ms <= 0)
        o->stop_wait_ms = 10000;
    (void)gethostname(host, sizeof(host) - 1); /* then it is empty */
    if (o->instance)
        snprintf(a->instance, sizeof(a->instance), "%s", o->instance);
    else
        snprintf(a->instance, sizeof(a->instance), "%s-%ld", host, (long)getpid());
    o->instance = a->instance;
    if (!o->agent)
        o->agent = "";
    if (!o->agent[0] || !o->handlers || o->handler_count == 0) {
        agent_log(a, LOG_ERROR, "event=start_failed error=\"an agent needs a name and handlers\"");
        return false;
    }
    if (o->concurrency > CONCURRENCY_MAX) {
        agent_log(a, LOG_ERROR, "event=start_failed error=\"concurrency is above 1000\"");
        return false;
    }
    return true;
}

static bool open_agent(struct agent *a)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t); /* any seed will do */
    a->prng.state = (uint64_t)t.tv_nsec ^ ((uint64_t)getpid() << 32);
    a->multi = wire_init() ? curl_multi_init() : NULL;
    a->headers = wire_headers(wire_token(a->options.token), "application/json");
    bool peers = a->multi && a->headers && open_peers(a);
    if (!peers)
        agent_log(a, LOG_ERROR, "event=start_failed error=\"libcurl or the servers' addresses\"");
    return peers;
}

static void close_agent(struct agent *a)
{
    struct intact_request *r;

    for (size_t i = 0; i < a->peer_count; i++) {
        peer_abandon(&a->peers[i]);
        LIST_FOREACH (l, after, &a->peers[i].ready) {
            link_remove(l);
        }
        peer_fini(&a->peers[i]);
    }
    for (size_t i = 0; (r = map_next(&a->held, &i));)
        request_free(r);
    map_fini(&a->held);
    free(a->peers);
    heartbeats_fini(&a->heartbeats);
    curl_multi_cleanup(a->multi);
    curl_slist_free_all(a->headers);
}

static enum intact_agent_result run_open(struct agent *a)
{
    struct wire_sigpipe sigpipe;

    if (!pool_open(&a->pool, a->options.inline_handlers ? 0 : a->options.concurrency)) {
        agent_log(a, LOG_ERROR, "event=start_failed error=\"no more threads or descriptors\"");
        return INTACT_AGENT_FAILED;
    }
    a->heartbeats.wake_fd = a->pool.fd;
    agent_log(a, LOG_INFO, "event=started concurrency=%u", a->options.concurrency);
    wire_sigpipe_block(&sigpipe);
    loop(a);
    wire_sigpipe_restore(&sigpipe);
    pool_close(&a->pool);
    size_t undelivered = a->held.len;
    agent_log(a, undelivered ? LOG_WARN : LOG_INFO, "event=stopped undelivered=%zu", undelivered);
    return undelivered ? INTACT_AGENT_UNDELIVERED : INTACT_AGENT_STOPPED;
}

enum intact_agent_result intact_agent_run(const struct intact_agent_options *options)
{
    struct agent a = {0};
    enum intact_agent_result result = INTACT_AGENT_FAILED;

    if (!fill_in(&a, options))
        return result;
    if (!stop_enter()) {
        agent_log(&a, LOG_ERROR, "event=start_failed error=\"no more descriptors\"");
        return result;
    }
    heartbeats_init(&a.heartbeats);
    if (open_agent(&a))
        result = run_open(&a);
    close_agent(&a);
    stop_leave();
    return result;
}
