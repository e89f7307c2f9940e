#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "net/holes.h"
#include "server/helper.h"
#include "server/inbox.h"
#include "server/internal.h"
#include "server/notify.h"
#include "server/overrun.h"
#include "server/retention.h"
#include "webhook/webhook.h"
#include "json/json.h"

enum {
    DRAIN_MS = 5000,
    SHUT_MS = 20,
    ERRORS_MAX = 100,
    CLOCK_LOOK_MS = 1000,
    CLOCK_JUMP_MS = 5000,
    REPLACED_MS = 1000,         /* what is left to a process that is not its node any more */
    STORE_LAST_MS = 11000,      /* for a store elsewhere to take what it was handed, at the end */
    STORE_SLOW_MS = 5000,       /* a job that takes longer counts as trouble */
    CLOCK_BEHIND_MS = 1000,     /* is worth telling */
    CLOCK_BELIEVE_MS = 86400000 /* of a past that lies so far ahead nothing is believed */
};

/* ---- time ---- */

static int64_t clock_ms(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts); /* cannot fail for these clocks */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t server_steady(void *arg)
{
    (void)arg;
    return clock_ms(CLOCK_BOOTTIME);
}

const char *server_version(const struct server *sv)
{
    return sv->config.version ? sv->config.version : INTACT_VERSION;
}

/* The store's time; where it has none, wall time as it was at the start, carried on by the clock
 * that never jumps: nothing expires because somebody set the clock. */
int64_t server_now(void *arg)
{
    const struct server *sv = arg;

    struct store *st = sv->config.store;

    if (st->ops->now)
        return st->ops->now(st);
    return server_steady(NULL) + sv->wall_minus_steady_ms;
}

int64_t server_now_at_least(struct server *sv)
{
    return min_i64(server_now(sv), clock_ms(CLOCK_REALTIME));
}

/* Where our time begins. If the wall clock was set back since the server last ran, it goes on from
 * where it stood then: what is stored would otherwise not be due for just as long. Further ahead
 * than a day it must have been wrong then, and not now. */
static int64_t time_at_start(const struct server *sv)
{
    struct store *st = sv->config.store;
    int64_t wall = clock_ms(CLOCK_REALTIME);
    int64_t used_until = st->ops->used_until(st);
    int64_t behind = used_until - wall;
    bool believed = behind <= CLOCK_BELIEVE_MS;

    if (behind >= CLOCK_BEHIND_MS)
        log_line(LOG_WARN, "event=clock_behind ms=%" PRId64 " going_by=%s", behind,
                 believed ? "store" : "clock");
    return believed ? max_i64(wall, used_until) : wall;
}

/* The wall clock is looked at only to tell of it: whoever reads the log beside others, or expects
 * times of now in the API, should know. A clock that drifts is told of when it has come so far. */
static void notice_clock_jump(struct server *sv)
{
    int64_t steady = server_steady(NULL);

    if (steady < sv->clock_look_at)
        return;
    sv->clock_look_at = steady + CLOCK_LOOK_MS;
    int64_t off = clock_ms(CLOCK_REALTIME) - steady - sv->wall_minus_steady_ms;
    int64_t jump = off - sv->wall_off_told_ms;
    if (jump >= -CLOCK_JUMP_MS && jump <= CLOCK_JUMP_MS)
        return;
    sv->wall_off_told_ms = off;
    log_line(LOG_WARN, "event=clock_jump ms=%" PRId64 " off_ms=%" PRId64, jump, off);
}

/* ---- exchanges ---- */

void exchange_begin(struct exchange *x, struct server *sv, struct http_request *r)
{
    x->server = sv;
    x->http = r;
    r->user = x;
}

void exchange_untie(struct exchange *x)
{
    if (x->http)
        x->http->user = NULL;
    x->http = NULL;
}

void exchange_done(void *arg, struct http_request *r, bool sent)
{
    struct exchange *x = r->user;
    struct server *sv = arg;
    (void)sent;

    metrics_request_done(&sv->metrics, r);
    door_left(sv, r);
    quota_leave(r->account);

    if (!x)
        return; /* answered */
    exchange_untie(x);
    if (x->reading)
        readings_drop(sv->readings, x->reading);
    if (x->gone)
        x->gone(x);
}

/* ---- turns ---- */

static void take_turn(struct server *sv);
static void notice_scan(struct server *sv);

static void turn_is_due(void *arg)
{
    struct server *sv = arg;

    fair_turn(sv->fair);
    take_turn(sv);
}

static void notice_replaced(struct server *sv);

static void take_turn(struct server *sv)
{
    if (sv->ended)
        return;
    notice_clock_jump(sv);
    notice_replaced(sv);
    notice_scan(sv);
    many_go_on(sv);
    nodes_turn(sv->nodes);
    int64_t look = inbox_turn(sv->inbox);
    operations_turn(sv->operations);
    int64_t at = scheduler_turn(sv->scheduler);
    int64_t scan = supervisor_turn(sv->supervisor);
    events_turn(sv->events);
    int64_t send = telling_turn(sv);

    if (send != 0 && (at == 0 || send < at))
        at = send;
    if (scan != 0 && (at == 0 || scan < at))
        at = scan;
    if (look != 0 && (at == 0 || look < at))
        at = look;
    if (many_may_go_on(sv))
        at = server_now(sv);
    turns_next(&sv->turns, at, server_now(sv));
}

enum err server_trouble(const struct server *sv, char *ret_story, size_t story_size)
{
    int64_t since = store_thread_busy_since_ms(sv->thread);
    int64_t busy = since ? (int64_t)(uv_hrtime() / 1000000) - since : 0;

    if (sv->trouble_err != ERR_OK) {
        (void)snprintf(ret_story, story_size, "%s", sv->trouble);
        return sv->trouble_err;
    }
    if (busy < STORE_SLOW_MS)
        return ERR_OK;
    (void)snprintf(ret_story, story_size, "the store has not answered for %" PRId64 " s",
                   busy / 1000);
    return ERR_BUSY;
}

/* ---- what scheduler and supervisor tell ---- */

static void task_ended(void *arg, const struct task *t)
{
    struct server *sv = arg;

    sv->metrics.tasks_ended[t->state]++;
    quotas_task(sv->quotas, t->owner, false);
    waiters_of(&sv->waits, t->id);
}

static void task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    struct server *sv = arg;

    events_changed(sv->events, w, t);
}

static void evaluates(void *arg, struct slice task, bool begins)
{
    const struct server *sv = arg;

    overrun_evaluates(sv->overrun, task, begins);
}

static void turn_over(void *arg)
{
    overrun_turn_over(((const struct server *)arg)->overrun);
}

static void committed(void *arg, size_t changes, int64_t took_us)
{
    struct server *sv = arg;

    metrics_committed(&sv->metrics, changes, took_us);
}

static void messages(void *arg, const struct message *list, size_t count)
{
    telling_stored(arg, list, count);
}

static void alert(void *arg, const struct task *t)
{
    CLEANUP(buf_fini) struct buf code = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    struct server *sv = arg;

    alerts_hint(sv);
    log_word(&code, t->error.code); /* an agent's words: quoted, nothing can be forged */
    json_string(&reason, t->error.message);
    log_line(LOG_ERROR, "event=operator_needed task=%.*s state=%s code=%s reason=%s",
             SLICE_ARG(t->id), task_state_text(t->state), code.ptr, reason.ptr);
}

static void store_trouble(void *arg, const struct error *e)
{
    struct server *sv = arg;

    /* the supervisor and the scheduler may both have met it */
    bool told = e && sv->trouble_err == e->code
                && strncmp(sv->trouble, e->text, sizeof sv->trouble - 1) == 0;

    sv->scans_fail = false;
    if (told)
        return;
    sv->metrics.troubles += e && sv->trouble_err == ERR_OK;
    if (sv->trouble_err == ERR_OK)
        sv->trouble_since = server_now(sv);
    sv->trouble_err = e ? e->code : ERR_OK;
    (void)snprintf(sv->trouble, sizeof sv->trouble, "%s", e ? e->text : "");
    if (e)
        log_line(LOG_ERROR, "event=store_trouble reason=\"%s\"", e->text);
    else
        log_line(LOG_INFO, "event=store_works_again");
}

static void requested(void *arg, struct slice id, bool released)
{
    struct server *sv = arg;

    scheduler_requested(sv->scheduler, id, released);
    events_touched(sv->events, id);
}

static bool wants_lead(void *arg)
{
    const struct server *sv = arg;

    return supervisor_wants_lead(sv->supervisor);
}

static void surveyed(void *arg, const struct survey *v)
{
    struct server *sv = arg;

    supervisor_surveyed(sv->supervisor, v);
    if (v->messages)
        telling_told(sv);
    inbox_surveyed(sv->inbox, v);
    nodes_surveyed(sv->nodes);
}

static uint64_t scans(const struct server *sv)
{
    struct supervisor_stats st;

    supervisor_stats(sv->supervisor, &st);
    return st.scans;
}

/* Where nothing is to be written, nobody but the supervisor notices that the store is in trouble.
 */
static void scan_failed(void *arg, const struct error *e)
{
    struct server *sv = arg;

    if (sv->trouble_err != ERR_OK)
        return;
    if (e->code == ERR_CONFLICT) { /* another supervisor leads */
        log_line(LOG_WARN, "event=scan_failed reason=\"%s\"", e->text);
        return;
    }
    store_trouble(sv, e);
    sv->scans_fail = true;
    sv->scans_until = scans(sv);
}

static void notice_scan(struct server *sv)
{
    if (sv->scans_fail && scans(sv) > sv->scans_until)
        store_trouble(sv, NULL);
}

/* ---- the end ---- */

/* What was handed to the store has not come back: it hangs, or is away, and others will take over
 * when our leases have run out. All that was acknowledged is durable. */
static void store_is_silent(uv_timer_t *t)
{
    const struct server *sv = t->data;

    log_line(LOG_WARN, "event=ended_without_store reason=\"the store has not answered\"");
    _exit(sv->replaced ? 1 : 0);
}

/* Of a disk that hangs, who waits knows more than we do: a second signal does not wait. */
static void end_now(struct server *sv)
{
    sv->ended = true;
    supervisor_stop(sv->supervisor);
    operations_drain(sv->operations);
    scheduler_leave(sv->scheduler);
    (void)uv_timer_stop(&sv->drain_timer);
    if (sv->config.store->shared)
        (void)uv_timer_start(&sv->drain_timer, store_is_silent, STORE_LAST_MS, 0);
    uv_stop(&sv->loop);
}

/* For results of attempts that are out, a node waits that is not another process yet. */
static bool may_end(const struct server *sv)
{
    struct scheduler_stats st;

    scheduler_stats(sv->scheduler, &st);
    return (st.open_attempts == 0 || sv->replaced) && scheduler_is_drained(sv->scheduler)
           && sv->exchange_count == 0 && list_empty(&sv->hungry) && !inbox_is_busy(sv->inbox)
           && !supervisor_is_busy(sv->supervisor) && telling_is_drained(sv)
           && !operations_are_busy(sv->operations);
}

static void drain_step(uv_timer_t *t)
{
    struct server *sv = t->data;

    sv->config.drain_ms -= SHUT_MS;
    if (may_end(sv) || sv->config.drain_ms <= 0)
        end_now(sv);
}

/* Where others can supervise, they need not wait for our end. */
static void begin_drain(struct server *sv)
{
    sv->draining = true;
    notify("STOPPING=1");
    scheduler_drain(sv->scheduler);
    telling_drain(sv);
    inbox_drain(sv->inbox);
    if (sv->config.store->shared)
        supervisor_stop(sv->supervisor);
    waiters_all(&sv->waits);
    events_drain(sv->events);
    nodes_drain(sv->nodes);
    operations_drain(sv->operations);
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->helpers[i])
            helper_drain(sv->helpers[i]);
    backup_drain(sv);
    alerts_drain(sv);
    (void)uv_timer_start(&sv->drain_timer, drain_step, SHUT_MS, SHUT_MS);
}

/* The scheduler has said so in the log, and drains. */
static void notice_replaced(struct server *sv)
{
    struct scheduler_stats st;

    scheduler_stats(sv->scheduler, &st);
    if (!st.replaced || sv->replaced)
        return;
    sv->replaced = true;
    sv->config.drain_ms = min_i64(sv->config.drain_ms, REPLACED_MS);
    if (!sv->draining)
        begin_drain(sv);
}

void server_on_signal(uv_signal_t *s, int signum)
{
    struct server *sv = s->data;

    if (sv->draining) {
        log_line(LOG_WARN, "event=ended_at_once signal=%d", signum);
        _exit(128 + signum); /* all that was acknowledged is durable */
    }
    log_line(LOG_INFO, "event=draining signal=%d", signum);
    begin_drain(sv);
    take_turn(sv);
}

/* ---- start ---- */

/* An alert may have died with the process that was about to log it: who reads the log learns at
 * each start how many tasks wait for a person. */
static void tell_of_errors(struct server *sv)
{
    const struct list_query q = {.states = 1U << TASK_ERROR, .limit = ERRORS_MAX};
    struct store *st = sv->config.store;
    struct row_page page = {0};
    struct arena a = {0};
    struct error e = {0};

    if (st->ops->list(st, &q, &a, &page, &e) == ERR_OK && page.count > 0)
        log_line(LOG_ERROR, "event=operator_needed tasks_in_error=%zu%s newest=%.*s", page.count,
                 page.more ? "+" : "", SLICE_ARG(page.rows[0].id));
    arena_fini(&a);
}

static enum err prepare_access(struct server *sv, struct error *e)
{
    enum err err = tokens_load(sv, e);

    if (err == ERR_OK && !access_is_open(sv->access))
        err = admin_token_ensure(sv, e);
    return err;
}

static void make_parts(struct server *sv, uint64_t known, const struct overruns *overruns)
{
    const struct server_config *c = &sv->config;
    const struct clock clock = {server_now, sv};
    const struct outside outside = {
        .arg = sv,
        .work_answer = work_answered,
        .ask_answer = ask_answered,
        .task_ended = task_ended,
        .task_changed = task_changed,
        .evaluates = evaluates,
        .turn_over = turn_over,
        .committed = committed,
        .messages = messages,
        .wants_lead = wants_lead,
        .surveyed = surveyed,
        .generations = known_heard,
        .alert = alert,
        .store_trouble = store_trouble,
    };
    const struct supervisor_outside sv_outside = {
        .arg = sv,
        .now = server_now,
        .steady = server_steady,
        .requested = requested,
        .generations = known_heard,
        .failed = scan_failed,
    };
    struct scheduler_config sc = {
        .node = slice_of(c->node),
        .boot = c->store->ops->boot(c->store),
        .shared = c->store->shared,
        .idle = !(c->roles & NODE_SCHEDULER),
        .key_prefix = slice_of(c->key_prefix),
        .grace_ms = c->grace_ms,
        .overruns = overruns->list,
        .overrun_count = overruns->count,
    };
    sv->telling = telling_new(sv);
    sc.source = telling_source(sv->telling);
    (void)snprintf(sv->holder, sizeof sv->holder, "%s/%" PRIu64, c->node, sc.boot);
    const struct supervisor_config suc = {
        .holder = slice_of(sv->holder),
        .interval_ms = c->supervisor_interval_ms,
        .grace_ms = c->grace_ms,
    };

    if (c->store->shared) {
        sv->library = library_new(&sv->workflows, sv->store);
        library_knows(sv->library, known);
        library_aside(sv->library, known_compile, sv);
    }
    sv->key = token_key_new(c->store->ops->secret(c->store));
    sv->scheduler = scheduler_new(&sc, sv->store, &sv->workflows, sv->key, &clock, &outside);
    sv->supervisor = supervisor_new(&suc, sv->store, &sv->workflows, &sv_outside);
    sv->elsewhere =
        elsewhere_new(&sv->loop, sv->store, sv->scheduler, c->store->shared, &sv->exchange_count);
    sv->waits.elsewhere = sv->elsewhere;
    sv->strangers = strangers_new(sv);
    sv->fair = fair_new(sv, &sv->loop, route_held);
    asides_new(sv);
    sv->changes = pressure_changes(sv);
    if (!(c->roles & NODE_SUPERVISOR))
        supervisor_stop(sv->supervisor);
}

/* That the loop turns is what the service manager wants to know: it restarts one that hangs. */
static void watchdog_fired(uv_timer_t *t)
{
    (void)t;
    notify("WATCHDOG=1");
}

static void start_handles(struct server *sv)
{
    uint64_t watchdog_ms = (uint64_t)notify_watchdog_ms();
    int rc = uv_timer_init(&sv->loop, &sv->drain_timer) | uv_timer_init(&sv->loop, &sv->watchdog)
             | uv_timer_init(&sv->loop, &sv->tokens_timer) | uv_signal_init(&sv->loop, &sv->sigterm)
             | uv_signal_init(&sv->loop, &sv->sigint);

    ASSERT(rc == 0);
    sv->drain_timer.data = sv;
    sv->sigterm.data = sv->sigint.data = sv->tokens_timer.data = sv;
    turns_begin(&sv->turns, &sv->loop, turn_is_due, sv);
    rc = uv_signal_start(&sv->sigterm, server_on_signal, SIGTERM)
         | uv_signal_start(&sv->sigint, server_on_signal, SIGINT);
    if (watchdog_ms > 0)
        rc |= uv_timer_start(&sv->watchdog, watchdog_fired, watchdog_ms, watchdog_ms);
    ASSERT(rc == 0);
}

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

/* What is counted, so that it is bounded, must come to nothing when nobody is left. */
static void assert_nothing_open(const struct server *sv)
{
    struct events_stats st;

    events_stats(sv, &st);
    ASSERT(sv->exchange_count == 0 && sv->reads_open == 0);
    ASSERT(sv->asks_open == 0 && sv->asks_bytes == 0 && sv->lines_open == 0);
    ASSERT(st.listeners_all == 0 && st.listeners_task == 0);
    ASSERT(list_empty(&sv->hungry) && sv->waits.lists.len == 0 && sv->lines_waiting == 0);
}

/* The bare system call: _exit() of the thread sanitizer looks for threads that were not joined yet.
 */
static void end_at_once(int signum)
{
    (void)syscall(SYS_exit_group, 128 + signum);
}

/* A second signal ends it at once to the very end: closing a store may wait for its disk. Without
 * the loop that is a plain handler, and none may come while neither is in place. */
static void close_signals(struct server *sv)
{
    sigset_t both;

    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGTERM);
    (void)sigaddset(&both, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &both, NULL);
    close_handle((uv_handle_t *)&sv->sigterm, NULL);
    close_handle((uv_handle_t *)&sv->sigint, NULL);
    (void)signal(SIGTERM, end_at_once);
    (void)signal(SIGINT, end_at_once);
    (void)pthread_sigmask(SIG_UNBLOCK, &both, NULL);
}

/* First the clients are let go, which unties whatever waits for them; then the jobs that the store
 * has land; then nothing is left that could ask the scheduler. */
static void take_down(struct server *sv)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        helper_close(sv->helpers[i]);
    door_close(sv);
    while (scheduler_is_busy(sv->scheduler) || supervisor_is_busy(sv->supervisor)
           || (sv->library && library_is_busy(sv->library)) || telling_is_busy(sv)
           || alerts_are_busy(sv) || sv->exchange_count > 0 || operations_have_jobs(sv->operations))
        (void)uv_run(&sv->loop, UV_RUN_ONCE);
    events_close(sv->events);
    keeper_close(sv->keeper);
    open_tasks_close(sv->open_tasks);
    alerts_close(sv);
    inbox_close(sv->inbox);
    operations_close(sv->operations);
    elsewhere_close(sv->elsewhere);
    strangers_close(sv->strangers);
    fair_close(sv->fair);
    changes_close(sv->changes);
    scheduler_free(sv->scheduler);
    overrun_stop(sv->overrun);
    supervisor_free(sv->supervisor);
    library_free(sv->library);
    readings_stop(sv->readings);
    store_thread_stop(sv->thread);
    assert_nothing_open(sv);
    if (sv->webhooks)
        sv->webhooks->ops->close(sv->webhooks);
    if (sv->config.amqp)
        sv->config.amqp->ops->close(sv->config.amqp);
    telling_free(sv);
    turns_close(&sv->turns);
    close_handle((uv_handle_t *)&sv->drain_timer, NULL);
    close_handle((uv_handle_t *)&sv->tokens_timer, NULL);
    close_handle((uv_handle_t *)&sv->watchdog, NULL);
    close_signals(sv);
    while (uv_run(&sv->loop, UV_RUN_DEFAULT) != 0)
        ;
    int rc = uv_loop_close(&sv->loop);
    ASSERT(rc == 0);
    events_free(sv->events);
    keeper_free(sv->keeper);
    open_tasks_free(sv->open_tasks);
    alerts_free_all(sv);
    archive_writer_free(sv->archive);
    inbox_free(sv->inbox);
    operations_free(sv->operations);
    nodes_free(sv->nodes);
    token_key_free(sv->key);
    access_free(sv->access);
    contents_free(sv->contents);
    quotas_free(sv->quotas);
    registry_fini(&sv->workflows);
    map_fini(&sv->waits.lists);
    elsewhere_free(sv->elsewhere);
    strangers_free(sv->strangers);
    fair_free(sv->fair);
    changes_free(sv->changes);
    aside_free(sv->definitions);
    aside_free(sv->bodies);
    overrun_free(sv->overrun);
}

/* For want of descriptors, memory or processes of the whole system. */
static enum err cannot_start(struct server *sv, const char *what, int rc, struct error *e)
{
    free(sv);
    return error_set(e, ERR_IO,
                     "cannot start %s: %s; allow the server more descriptors, memory and processes "
                     "(ulimit -a, TasksMax=, MemoryMax=)",
                     what, uv_strerror(rc));
}

static enum err cannot_start_thread(struct server *sv, int rc, struct error *e)
{
    access_free(sv->access);
    contents_free(sv->contents);
    quotas_free(sv->quotas);
    registry_fini(&sv->workflows);
    (void)uv_run(&sv->loop, UV_RUN_DEFAULT); /* handles close */
    int closed = uv_loop_close(&sv->loop);
    ASSERT(closed == 0);
    return cannot_start(sv, "the store's thread", rc, e);
}

static int start_overrun(struct server *sv)
{
    const struct overrun_config c = {.store = sv->store, .now = server_now, .arg = sv};
    int rc = overrun_start(&c, &sv->overrun);

    if (rc == 0)
        return 0;
    readings_stop(sv->readings);
    store_thread_stop(sv->thread);
    return rc;
}

static int start_readings(struct server *sv)
{
    const struct readings_config c = {.store = sv->config.store,
                                      .instead = sv->store,
                                      .line_max = sv->limits.line_max,
                                      .rests_until = account_rests_until,
                                      .worked = account_worked,
                                      .arg = sv};
    int rc = readings_start(&sv->loop, &c, &sv->readings);

    if (rc == 0)
        return 0;
    store_thread_stop(sv->thread);
    return rc;
}

static enum err open_webhooks(struct server *sv, struct error *e)
{
    const struct webhook_config *c = sv->config.webhooks;

    if (!c || c->count == 0)
        return ERR_OK;
    holes_warn(HOLES_HTTP); /* no proxy is theirs */
    sv->webhooks = webhook_open(&sv->loop, c, e);
    return sv->webhooks ? ERR_OK : e->code;
}

enum err server_run(const struct server_config *c, struct error *e)
{
    struct server *sv = calloc(1, sizeof *sv);

    ASSERT(sv);
    sv->config = *c;
    ASSERT(c->retention);
    list_init(&sv->hungry);
    if (sv->config.limits)
        sv->limits = *sv->config.limits;
    else
        limits_init(&sv->limits);
    sv->config.roles = c->roles ? c->roles : NODE_ROLES;
    sv->config.drain_ms = c->drain_ms ? c->drain_ms : DRAIN_MS;
    sv->wall_minus_steady_ms = time_at_start(sv) - server_steady(NULL);
    sv->wall_off_told_ms =
        min_i64(0, clock_ms(CLOCK_REALTIME) - server_steady(NULL) - sv->wall_minus_steady_ms);
    metrics_begin(&sv->metrics, clock_ms(CLOCK_REALTIME));
    (void)signal(SIGPIPE, SIG_IGN); /* clients that go away are no news */
    int rc = uv_loop_init(&sv->loop);
    if (rc != 0)
        return cannot_start(sv, "the loop", rc, e);
    sv->access = access_new(c->token_file);
    sv->contents = contents_new();
    sv->quotas = quotas_new();
    uint64_t known = 0;
    enum err err = library_load(&sv->workflows, c->store, &known, e);
    if (err == ERR_OK)
        err = prepare_access(sv, e);
    CLEANUP(overruns_fini) struct overruns overruns = {0};
    if (err == ERR_OK)
        err = overruns_load(c->store, &overruns, e);
    tell_of_errors(sv);
    if (err == ERR_OK)
        known_describe(sv);
    const struct store_thread_config tc = {c->store, c->maintain};
    rc = store_thread_start(&sv->loop, &tc, &sv->thread);
    if (rc != 0)
        return cannot_start_thread(sv, rc, e);
    sv->store = store_thread_queue(sv->thread);
    rc = start_readings(sv);
    if (rc != 0)
        return cannot_start_thread(sv, rc, e);
    rc = start_overrun(sv);
    if (rc != 0)
        return cannot_start_thread(sv, rc, e);
    make_parts(sv, known, &overruns);
    sv->events = events_new(sv);
    sv->nodes = nodes_new(sv);
    start_handles(sv);
    if (c->retention->archive.folder)
        sv->archive = archive_writer_new(&c->retention->archive, c->node);
    sv->keeper = keeper_new(sv);
    sv->inbox = inbox_new(sv);
    sv->open_tasks = open_tasks_new(sv);
    if (err == ERR_OK)
        err = open_webhooks(sv, e);
    if (err == ERR_OK)
        err = alerts_open_all(sv, e);
    sv->operations = operations_new(sv);
    if (err == ERR_OK)
        err = door_open(sv, e);
    if (err == ERR_OK) {
        nodes_listening(sv->nodes);
        for (size_t i = 0; i < HELPERS_MAX; i++)
            if (c->helpers[i])
                sv->helpers[i] = helper_open(sv, c->helpers[i]);
        take_turn(sv);
        (void)uv_run(&sv->loop, UV_RUN_DEFAULT);
        log_line(LOG_INFO, "event=ended");
    }
    sv->ended = true;
    if (err == ERR_OK && sv->replaced)
        err = error_set(e, ERR_CONFLICT,
                        "another process was started as node \"%s\" and has replaced this one; if "
                        "it runs on another machine, give each node its own name (--node)",
                        sv->config.node);
    take_down(sv);
    free(sv);
    return err;
}
