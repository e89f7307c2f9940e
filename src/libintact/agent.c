/* The agent's main loop and its public functions: start, turns, stop, end (see agent.h). Requests
 * are in request.c, servers in nodes.c and peer.c, answers in request_answer.c. */
#include "libintact/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "libintact/meet.h"
#include "libintact/places.h"
#include "libintact/pulse.h"
#include "libintact/wire.h"

enum { LOOK_MS = 1000 };

/* All agents of the process, so that one that is never freed is not reported as a leak. */
static struct {
    pthread_mutex_t lock;
    struct link agents;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .agents = {&process.agents, &process.agents}};

void intact_agent_stop_one(struct intact_agent *a)
{
    int before = errno;

    atomic_store(&a->stop_wanted, true);
    outbox_wake(a->outbox);
    errno = before;
}

void agent_enlist(struct intact_agent *a)
{
    pthread_mutex_lock(&process.lock);
    list_push(&process.agents, &a->of_process);
    pthread_mutex_unlock(&process.lock);
}

void agent_delist(struct intact_agent *a)
{
    pthread_mutex_lock(&process.lock);
    link_remove(&a->of_process);
    pthread_mutex_unlock(&process.lock);
}

void agent_log(const struct intact_agent *a, enum log_level level, const char *fmt, ...)
{
    char line[600];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (a->options.log)
        a->options.log(a->options.log_arg, (enum intact_log_level)level, line);
    else
        log_line(level, "agent=%s instance=%s %s", a->options.name, a->options.instance, line);
}

void agent_find_handler(const struct intact_agent *a, struct intact_request *r)
{
    for (size_t i = 0; i < a->options.handler_count; i++) {
        const struct agent_handler *h = &a->options.handlers[i];
        if ((h->direction == r->direction || h->direction == INTACT_ANY)
            && (strcmp(h->action, r->action) == 0 || (!r->run && strcmp(h->action, "*") == 0))) {
            r->run = h->run;
            r->arg = h->arg;
        }
    }
}

void agent_release(struct intact_agent *a, struct intact_request *r, struct slice status)
{
    void *was = map_remove(&a->held, r->token);

    ASSERT(was == r);
    request_released_fn *on_released = r->on_released;
    void *arg = r->released_arg;
    request_free(r);
    if (on_released)
        on_released(arg, status);
}

/* One at a time: a request that completes at once frees its place for the next. */
static void feed_inline(struct intact_request *r)
{
    struct peer *p = r->peer;

    if (request_run(r))
        peer_done(p, r, clock_boot_ms());
}

void agent_feed(struct intact_agent *a)
{
    struct link fed;

    list_init(&fed);
    while (a->running < a->options.concurrency && !list_empty(&a->backlog)) {
        struct link *first = list_first(&a->backlog);
        link_remove(first);
        a->running++;
        CONTAINER_OF(first, struct intact_request, link)->begun = true;
        if (a->options.inline_handlers)
            feed_inline(CONTAINER_OF(first, struct intact_request, link));
        else
            list_push(&fed, first);
    }
    if (!list_empty(&fed))
        pool_add(&a->pool, &fed);
}

void agent_take(struct intact_agent *a, struct link *requests)
{
    LIST_FOREACH (l, after, requests) {
        link_remove(l);
        list_push(&a->backlog, l);
    }
    agent_feed(a);
}

static void collect(struct intact_agent *a)
{
    int64_t now = clock_boot_ms();
    struct link done;

    list_init(&done);
    outbox_take(a->outbox, &done);
    LIST_FOREACH (l, after, &done) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, link);
        link_remove(l);
        peer_done(r->peer, r, now);
    }
    agent_feed(a);
}

/* ---- telling handlers that a request should stop ---- */

static size_t watched(struct intact_agent *a)
{
    pthread_mutex_lock(&a->outbox->lock);
    size_t count = a->outbox->watched;
    pthread_mutex_unlock(&a->outbox->lock);
    return count;
}

void agent_unwatch(struct intact_agent *a, struct intact_request *r)
{
    pthread_mutex_lock(&a->outbox->lock);
    if (r->on_stop)
        a->outbox->watched--;
    r->on_stop = NULL;
    pthread_mutex_unlock(&a->outbox->lock);
}

/* The stop function to call now, removed so that it is called once; NULL: none. */
static intact_stopper *stopper_of(struct intact_agent *a, struct intact_request *r, void **ret_arg)
{
    intact_stopper *found = NULL;

    if (!r->in_work || !request_is_kept(r) || !intact_request_should_stop(r))
        return NULL;
    pthread_mutex_lock(&a->outbox->lock);
    if (r->on_stop && !(atomic_load(&r->state) & REQUEST_CLAIMED)) {
        found = r->on_stop;
        *ret_arg = r->stop_arg;
        r->on_stop = NULL;
        a->outbox->watched--;
    }
    pthread_mutex_unlock(&a->outbox->lock);
    return found;
}

static void tell_stops(struct intact_agent *a)
{
    struct intact_request *r;
    void *arg = NULL;

    if (watched(a) == 0)
        return;
    for (size_t i = 0; (r = map_next(&a->held, &i));) {
        intact_stopper *stop = stopper_of(a, r, &arg);
        if (stop)
            stop(r, arg); /* its answer is collected later: `held` does not change */
    }
}

/* A deadline that passed since the last turn is due now. */
static int64_t next_stop_at(struct intact_agent *a)
{
    struct intact_request *r;
    int64_t at = INT64_MAX;

    if (!a->stopping && watched(a) == 0)
        return at;
    for (size_t i = 0; (r = map_next(&a->held, &i));)
        if (r->in_work && request_stop_at(r) > a->seen_at)
            at = min_i64(at, request_stop_at(r));
    return at;
}

/* ---- one turn ---- */

/* Any server accepts any result: results of an unreachable server go to another. */
static void share_results(struct intact_agent *a)
{
    struct peer *healthy = nodes_any_healthy(a);

    for (size_t i = 0; healthy && i < a->peer_count; i++) {
        struct peer *p = a->peers[i];
        if (p->answered && p->failures == 0)
            continue;
        LIST_FOREACH (l, after, &p->ready) {
            link_remove(l);
            list_push(&healthy->ready, l);
        }
    }
}

static bool take_answers(struct intact_agent *a)
{
    bool any = false;
    int left = 0;

    for (CURLMsg *m = curl_multi_info_read(a->reactor.multi, &left); m;
         m = curl_multi_info_read(a->reactor.multi, &left)) {
        char *private = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m is invalid once its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE,
                                &private); /* set by call_make_handle */
        struct call *c = (struct call *)(void *)private;
        peer_answered(c->peer, c, code);
        any = true;
    }
    return any;
}

static bool is_told_to_stop(const struct intact_agent *a)
{
    return stop_is_wanted() || atomic_load(&a->stop_wanted);
}

static void notice_stop(struct intact_agent *a)
{
    if (a->stopping || !is_told_to_stop(a))
        return;
    a->stopping = true;
    /* It stays readable and has no further use. */
    reactor_unwatch(&a->reactor, a->stop_seat.fd);
    agent_log(a, LOG_INFO, "event=stopping holding=%zu", a->held.len);
    for (size_t i = 0; i < a->peer_count; i++)
        peer_stop(a->peers[i]);
}

/* Whether a handler, or the answer to a kept request, is still worth waiting for. */
static bool is_waited_for(const struct intact_request *r)
{
    return r->in_work && (!request_is_kept(r) || !request_is_over(r));
}

/* True: everything has ended, or cannot be waited for any longer. */
static bool is_over(struct intact_agent *a, int64_t now)
{
    struct intact_request *r;
    bool idle = true;
    bool working = false;

    if (!a->stopping)
        return false;
    for (size_t i = 0; i < a->peer_count; i++)
        idle = peer_is_idle(a->peers[i]) && idle;
    for (size_t i = 0; (r = map_next(&a->held, &i));)
        working = working || is_waited_for(r);
    if (working || a->stop_by == 0)
        a->stop_by = now + a->options.stop_wait_ms;
    return (idle && !working) || now >= a->stop_by;
}

/* Also when the first TLS server is found in the middle of a turn. */
static void hold_sigpipe(struct intact_agent *a)
{
    if (!a->reactor.is_tls || a->holds_sigpipe)
        return;
    wire_hold(&a->sigpipe, SIGPIPE);
    a->holds_sigpipe = true;
}

static void release_sigpipe(struct intact_agent *a)
{
    if (a->holds_sigpipe)
        wire_release(&a->sigpipe);
    a->holds_sigpipe = false;
}

static void turn(struct intact_agent *a)
{
    a->seen_at = clock_boot_ms();
    hold_sigpipe(a);
    reactor_turn(&a->reactor);
    do {
        hold_sigpipe(a);
        notice_stop(a);
        tell_stops(a);
        collect(a);
        pulse_tick(a, clock_boot_ms());
        meet_tick(a, clock_boot_ms());
        nodes_tick(a, clock_boot_ms());
        if (a->peer_count > 1)
            share_results(a);
        places_share(a, clock_boot_ms());
        for (size_t i = 0; i < a->peer_count; i++)
            peer_tick(a->peers[i], clock_boot_ms());
        reactor_due(&a->reactor);
    } while (take_answers(a));
}

/* ---- start and end ---- */

static const char *open_parts(struct intact_agent *a) /* NULL, or what failed */
{
    a->prng.state = clock_seed() ^ ((uint64_t)getpid() << 32);
    if (!reactor_open(&a->reactor) || a->outbox->fd < 0
        || !reactor_watch(&a->reactor, a->outbox->fd)
        || !reactor_watch(&a->reactor, a->stop_seat.fd))
        return "no more descriptors, or libcurl cannot be used";
    a->reactor.wake_fd = a->outbox->fd;
    a->headers = wire_headers(wire_token(a->options.token), "application/json");
    installation_state(&a->installation, a->options.installation);
    if (a->installation.mistake[0])
        return a->installation.mistake;
    if (a->headers && a->installation.id[0])
        a->headers = wire_add_header(a->headers, a->installation.line);
    if (!a->headers || !nodes_open(a))
        return "libcurl or the servers' addresses";
    meet_begin(a, clock_boot_ms());
    if (!pool_open(&a->pool, a->options.inline_handlers ? 0 : a->options.concurrency))
        return "no more threads";
    return NULL;
}

static void leave_behind(struct intact_agent *a)
{
    struct intact_request *r;

    for (size_t i = 0; (r = map_next(&a->held, &i));)
        if (r->in_work && request_is_kept(r))
            agent_log(a, LOG_WARN, "event=request_not_answered task=%s step=%s attempt=%u", r->task,
                      r->step, r->attempt);
}

/* Returns how many answers are lost. */
static size_t close_parts(struct intact_agent *a)
{
    for (size_t i = 0; i < a->peer_count; i++) {
        peer_abandon(a->peers[i]);
        LIST_FOREACH (l, after, &a->peers[i]->ready) {
            link_remove(l);
        }
    }
    LIST_FOREACH (l, after, &a->backlog) {
        link_remove(l);
    }
    pool_close(&a->pool);
    leave_behind(a);
    size_t held = a->held.len;
    size_t left = outbox_close(a->outbox, &a->held);
    nodes_close(a);
    reactor_unwatch(&a->reactor, a->stop_seat.fd);
    reactor_stop(&a->reactor);
    curl_slist_free_all(a->headers);
    a->headers = NULL;
    stop_leave(&a->stop_seat);
    a->phase = AGENT_OVER;
    return held - left;
}

static bool fail(struct intact_agent *a, const char *why)
{
    agent_log(a, LOG_ERROR, "event=start_failed error=\"%s\"", why);
    a->phase = AGENT_OVER;
    a->outcome = INTACT_AGENT_FAILED;
    return false;
}

static bool start_agent(struct intact_agent *a)
{
    if (a->options.mistake[0])
        return fail(a, a->options.mistake);
    if (a->options.handler_count == 0)
        return fail(a, "an agent needs handlers: intact_agent_on");
    if (!stop_enter(&a->stop_seat))
        return fail(a, "no more descriptors");
    const char *why = open_parts(a);
    if (why) {
        (void)close_parts(a); /* nothing was requested yet */
        reactor_close(&a->reactor);
        return fail(a, why);
    }
    a->phase = AGENT_RUNS;
    outbox_wake(a->outbox); /* makes the descriptor readable for the first call */
    agent_log(a, LOG_INFO, "event=started concurrency=%u", a->options.concurrency);
    return true;
}

static bool is_running(struct intact_agent *a)
{
    return a->phase == AGENT_RUNS || (a->phase == AGENT_NEW && start_agent(a));
}

static void end_agent(struct intact_agent *a)
{
    size_t undelivered = close_parts(a);

    a->outcome = undelivered ? INTACT_AGENT_UNDELIVERED : INTACT_AGENT_STOPPED;
    agent_log(a, undelivered ? LOG_WARN : LOG_INFO, "event=stopped undelivered=%zu", undelivered);
}

/* Nothing was requested yet. */
static void end_mixed(struct intact_agent *a)
{
    (void)close_parts(a);
    a->outcome = INTACT_AGENT_FAILED;
    agent_log(
        a, LOG_ERROR,
        "event=stopped error=\"the servers belong to different installations; nothing was done\"");
}

void agent_break_off(struct intact_agent *a)
{
    struct wire_held sigpipe;

    if (a->phase != AGENT_RUNS)
        return;
    wire_hold(&sigpipe, SIGPIPE);
    end_agent(a);
    wire_release(&sigpipe);
}

/* ---- functions for event loops ---- */

int intact_agent_fd(struct intact_agent *a)
{
    (void)is_running(a); /* if the start fails, the descriptor is -1 */
    return a->reactor.fd;
}

int intact_agent_timeout_ms(struct intact_agent *a)
{
    int64_t now = clock_boot_ms();
    int64_t wake = now + LOOK_MS;

    if (a->phase != AGENT_RUNS)
        return a->phase == AGENT_NEW ? 0 : -1;
    if (!a->stopping && is_told_to_stop(a))
        return 0;
    wake = min_i64(wake, a->reactor.timer_at);
    wake = min_i64(wake, next_stop_at(a));
    wake = min_i64(wake, pulse_wake_at(a));
    if (a->stopping)
        wake = min_i64(wake, a->stop_by);
    wake = min_i64(wake, a->share_at);
    wake = min_i64(wake, nodes_wake_at(a));
    wake = min_i64(wake, meet_wake_at(a));
    for (size_t i = 0; i < a->peer_count; i++)
        wake = min_i64(wake, peer_wake_at(a->peers[i], now));
    return (int)max_i64(0, wake - now);
}

bool intact_agent_drive(struct intact_agent *a)
{
    if (a->driven)
        return true;
    if (!is_running(a))
        return false;
    a->driven = true;
    turn(a);
    if (a->is_mixed)
        end_mixed(a);
    else if (is_over(a, clock_boot_ms()))
        end_agent(a);
    release_sigpipe(a);
    a->driven = false;
    return a->phase == AGENT_RUNS;
}

enum intact_agent_result intact_agent_outcome(const struct intact_agent *a)
{
    return a->outcome;
}

enum intact_agent_result intact_agent_run(struct intact_agent *a)
{
    if (a->phase == AGENT_OVER)
        agent_log(a, LOG_ERROR,
                  "event=start_failed error=\"the agent has run already; create a new one\"");
    struct pollfd p = {.fd = intact_agent_fd(a), .events = POLLIN};
    while (intact_agent_drive(a))
        (void)poll(&p, 1, intact_agent_timeout_ms(a)); /* a signal also ends the wait */
    return a->outcome;
}
