/*
 * The life of a node: it starts (core.c, then all parts: parts.c), takes turns on the event loop,
 * drains after SIGTERM, and ends. What it does in its turns is the affair of its parts.
 */

#include "server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/api.h"
#include "api/events.h"
#include "api/routes.h"
#include "background/background.h"
#include "base/priority.h"
#include "node/fair.h"
#include "node/installation.h"
#include "node/node.h"
#include "node/notify.h"
#include "node/turns.h"
#include "server/core.h"
#include "server/parts.h"
#include "server/run.h"
#include "server/virtual_clock.h"

enum {
    DRAIN_MS = 5000,
    DRAIN_STEP_MS = 20,
    REPLACED_MS = 1000,   /* what is left to a process that is not its node any more */
    STORE_LAST_MS = 11000 /* for a store elsewhere to take what it was handed, at the end */
};

/* ---- turns ---- */

static void check_replaced(struct run *run);

static void take_turn(struct run *run)
{
    struct server *sv = &run->sv;

    if (sv->ended)
        return;
    clock_check(sv);
    check_replaced(run);
    store_scan_check(sv);
    int64_t at = parts_turn(sv);
    if (run->clock)
        at = virtual_clock_turn(run->clock, at);
    turns_next(&run->turns, at, server_now(sv));
}

static void turn_is_due(void *arg)
{
    struct run *run = arg;

    fair_turn(run->sv.fair);
    take_turn(run);
}

/* ---- the end ---- */

/* The store has not done what was handed to it: it hangs, or is unavailable. Other nodes take over
 * when the leases expire. All that was acknowledged is durable. */
static void store_is_silent(uv_timer_t *t)
{
    const struct run *run = t->data;

    log_line(LOG_WARN, "event=ended_without_store reason=\"the store has not answered\"");
    _exit(run->replaced ? 1 : 0);
}

/* If a disk hangs, its operator knows more than this process: a second signal does not wait. */
static void end_now(struct run *run)
{
    struct server *sv = &run->sv;

    sv->ended = true;
    supervisor_stop(sv->supervisor);
    scheduler_leave(sv->scheduler);
    (void)uv_timer_stop(&run->drain_timer);
    if (sv->config.store->shared)
        (void)uv_timer_start(&run->drain_timer, store_is_silent, STORE_LAST_MS, 0);
    uv_stop(&sv->loop);
}

static void drain_step(uv_timer_t *t)
{
    struct run *run = t->data;
    const struct server *sv = &run->sv;

    run->drain_left_ms -= DRAIN_STEP_MS;
    if ((sv->load.exchanges == 0 && parts_are_drained(sv)) || run->drain_left_ms <= 0)
        end_now(run);
}

static void begin_drain(struct run *run)
{
    run->sv.draining = true;
    notify("STOPPING=1");
    parts_drain(&run->sv);
    (void)uv_timer_start(&run->drain_timer, drain_step, DRAIN_STEP_MS, DRAIN_STEP_MS);
}

/* The scheduler has logged it, and drains. */
static void check_replaced(struct run *run)
{
    struct scheduler_stats st;

    scheduler_stats(run->sv.scheduler, &st);
    if (!st.replaced || run->replaced)
        return;
    run->replaced = true;
    run->drain_left_ms = min_i64(run->drain_left_ms, REPLACED_MS);
    if (!run->sv.draining)
        begin_drain(run);
}

static void on_signal(uv_signal_t *s, int signum)
{
    struct run *run = s->data;

    if (run->sv.draining) {
        log_line(LOG_WARN, "event=ended_at_once signal=%d", signum);
        _exit(128 + signum); /* all that was acknowledged is durable */
    }
    log_line(LOG_INFO, "event=draining signal=%d", signum);
    begin_drain(run);
    take_turn(run);
}

/* The bare system call: _exit() of the thread sanitizer looks for threads that were not joined. */
static void end_at_once(int signum)
{
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): no lock, no return */
    (void)syscall(SYS_exit_group, 128 + signum);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

/* A second signal ends the process at once until the very end: closing a store may wait for its
 * disk. Without the loop that is a plain handler, and no signal may come while neither is set. */
static void close_signals(struct run *run)
{
    sigset_t both;

    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGTERM);
    (void)sigaddset(&both, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &both, NULL);
    close_handle((uv_handle_t *)&run->sigterm);
    close_handle((uv_handle_t *)&run->sigint);
    (void)signal(SIGTERM, end_at_once);
    (void)signal(SIGINT, end_at_once);
    (void)pthread_sigmask(SIG_UNBLOCK, &both, NULL);
}

/* All counters that bound something must be zero when no request is left. */
static void assert_nothing_open(const struct server *sv)
{
    const struct load *l = &sv->load;
    struct events_stats st = {0};

    events_stats(sv, &st);
    ASSERT(l->exchanges == 0 && l->reads_open == 0);
    ASSERT(l->asks_open == 0 && l->asks_bytes == 0 && l->lines_open == 0);
    ASSERT(st.listeners_all == 0 && st.listeners_task == 0);
    ASSERT(l->lines_waiting == 0);
}

/* First the clients are let go, which unties whatever waits for them; then the jobs of the store
 * end; then nothing is left that could ask the scheduler. */
static void take_down(struct run *run)
{
    struct server *sv = &run->sv;

    parts_hang_up(sv, run->opened);
    virtual_clock_close(run->clock);
    while (sv->load.exchanges > 0 || virtual_clock_is_busy(run->clock)
           || parts_are_busy(sv, run->opened))
        (void)uv_run(&sv->loop, UV_RUN_ONCE);
    parts_close(sv, run->opened);
    core_stop(run);
    assert_nothing_open(sv);
    turns_close(&run->turns);
    close_handle((uv_handle_t *)&run->drain_timer);
    close_handle((uv_handle_t *)&run->watchdog);
    if (run->input.data)
        close_handle((uv_handle_t *)&run->input);
    close_signals(run);
    while (uv_run(&sv->loop, UV_RUN_DEFAULT) != 0)
        ;
    int rc = uv_loop_close(&sv->loop);
    ASSERT(rc == 0);
    parts_free(sv, run->opened);
    virtual_clock_free(run->clock);
    core_unload(run);
}

/* ---- standard input ---- */

/* Whoever started this server has gone, or closed the pipe: nobody waits for anything any more. */
static void on_stdin(uv_poll_t *poll, int status, int events)
{
    struct run *run = poll->data;
    char bytes[256];
    (void)events;

    ssize_t got = status < 0 ? 0 : read(STDIN_FILENO, bytes, sizeof bytes);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    log_line(LOG_INFO, "event=stdin_ended");
    (void)uv_poll_stop(poll);
    end_now(run);
}

static enum err watch_stdin(struct run *run, struct error *e)
{
    int rc = uv_poll_init(&run->sv.loop, &run->input, STDIN_FILENO);

    if (rc != 0)
        return error_set(e, ERR_INVALID,
                         "standard input cannot be watched (%s): with --end-with-stdin it has to "
                         "be a pipe",
                         uv_strerror(rc));
    run->input.data = run;
    rc = uv_poll_start(&run->input, UV_READABLE, on_stdin);
    ASSERT(rc == 0);
    return ERR_OK;
}

/* ---- start ---- */

/* A service manager restarts a node whose loop does not turn any more. */
static void watchdog_fired(uv_timer_t *t)
{
    (void)t;
    notify("WATCHDOG=1");
}

static void start_handles(struct run *run)
{
    uint64_t watchdog_ms = (uint64_t)notify_watchdog_ms();
    uv_loop_t *loop = &run->sv.loop;
    int rc = uv_timer_init(loop, &run->drain_timer) | uv_timer_init(loop, &run->watchdog)
             | uv_signal_init(loop, &run->sigterm) | uv_signal_init(loop, &run->sigint);

    ASSERT(rc == 0);
    run->drain_timer.data = run->sigterm.data = run->sigint.data = run;
    turns_begin(&run->turns, loop, turn_is_due, run);
    rc = uv_signal_start(&run->sigterm, on_signal, SIGTERM)
         | uv_signal_start(&run->sigint, on_signal, SIGINT);
    if (watchdog_ms > 0)
        rc |= uv_timer_start(&run->watchdog, watchdog_fired, watchdog_ms, watchdog_ms);
    ASSERT(rc == 0);
}

/* The system lacks descriptors, memory or processes. */
static enum err cannot_start(const char *what, int rc, struct error *e)
{
    return error_set(e, ERR_IO,
                     "cannot start %s: %s; allow the server more descriptors, memory and processes "
                     "(ulimit -a, TasksMax=, MemoryMax=)",
                     what, uv_strerror(rc));
}

static void tokens_changed(struct server *sv)
{
    events_recheck(sv);
}

static void begin(struct run *run, const struct server_config *c)
{
    struct server *sv = &run->sv;

    ASSERT(c->retention);
    sv->config = *c;
    sv->config.roles = c->roles ? c->roles : NODE_ROLES;
    if (c->limits)
        sv->limits = *c->limits;
    else
        limits_init(&sv->limits);
    run->drain_left_ms = c->drain_ms ? c->drain_ms : DRAIN_MS;
    run->on_signal = on_signal;
    sv->tokens_changed = tokens_changed;
    sv->background = background_new();
    sv->api = api_new();
    (void)snprintf(sv->holder, sizeof sv->holder, "%s/%" PRIu64, c->node,
                   c->store->ops->boot(c->store));
    installation_source(sv);
    clock_start(sv);
    metrics_begin(&sv->metrics, wall_now_ms(), route_label);
    (void)signal(SIGPIPE, SIG_IGN); /* a client that disconnects is no error */
}

static enum err start(struct run *run, struct error *e)
{
    enum err err = core_load(run, e);
    int rc = err == ERR_OK ? core_start(run) : 0;

    if (rc != 0)
        err = cannot_start("the store's thread", rc, e);
    if (err == ERR_OK)
        return ERR_OK;
    rc = uv_loop_close(&run->sv.loop);
    ASSERT(rc == 0);
    core_unload(run);
    return err;
}

static enum err serve(struct run *run, struct error *e)
{
    struct server *sv = &run->sv;

    start_handles(run);
    run->clock = virtual_clock_new(run);
    enum err err = sv->config.end_with_stdin ? watch_stdin(run, e) : ERR_OK;
    if (err == ERR_OK)
        err = parts_open(sv, &run->opened, e);
    if (err == ERR_OK) {
        take_turn(run);
        thread_is_prompt();
        (void)uv_run(&sv->loop, UV_RUN_DEFAULT);
        log_line(LOG_INFO, "event=ended");
    }
    sv->ended = true;
    if (err == ERR_OK && run->replaced)
        err = error_set(e, ERR_CONFLICT,
                        "another process was started as node \"%s\" and has replaced this one; if "
                        "it runs on another machine, give each node its own name (--node)",
                        sv->config.node);
    take_down(run);
    return err;
}

enum err server_run(const struct server_config *c, struct error *e)
{
    struct run *run = calloc(1, sizeof *run);
    enum err err = ERR_OK;

    ASSERT(run);
    begin(run, c);
    int rc = uv_loop_init(&run->sv.loop);
    if (rc != 0)
        err = cannot_start("the loop", rc, e);
    else
        err = start(run, e);
    if (err == ERR_OK)
        err = serve(run, e);
    background_free(run->sv.background);
    api_free(run->sv.api);
    free(run);
    return err;
}
