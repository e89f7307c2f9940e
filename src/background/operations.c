/*
 * Operations on many tasks, as this node executes them: gives the runner (operations/runner.h) its
 * share of the scheduler and of the store. The API of operations is api/operations.c.
 */

#include "background/operations.h"

#include <stdlib.h>

#include "background/room.h"
#include "base/log.h"
#include "node/node.h"
#include "node/part.h"
#include "node/store_thread.h"
#include "operations/runner.h"
#include "store/job.h"
#include "json/json.h"

enum {
    /* Asks of operations, and their tasks that wait for a place. Each batch of the store that
     * others wait for has a part of these, so others notice its length. */
    IN_FLIGHT = 32,
    IN_FLIGHT_ALONE = 256, /* while there are no others ... */
    ALONE_MS = 1000,       /* ... for so long */
    ASKS_LEAVE = 8192,     /* of all changes that may wait, so many are for others */
    BACKGROUND_PATIENCE = 4,
};

struct operations {
    struct server *server;
    uv_timer_t timer;
    struct store_queue background;
    struct runner *runner;
    size_t in_flight;
    size_t window; /* asks that may be in flight: grows while agents take what they lead to */
};

static void background_submit(struct store_queue *q, struct store_job *j)
{
    struct operations *o = CONTAINER_OF(q, struct operations, background);

    store_thread_background(o->server->thread, j, BACKGROUND_PATIENCE);
}

static int64_t store_now(void *arg)
{
    const struct operations *o = arg;

    return server_now(o->server);
}

static int64_t steady_now(void *arg)
{
    (void)arg;
    return server_steady(NULL);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Which agents the tasks will go to is not known before they are asked. So they are few at first,
 * and again whenever an agent has got its fill. */
static size_t room(void *arg)
{
    struct operations *o = arg;
    struct scheduler_stats st;

    scheduler_stats(o->server->scheduler, &st);
    bool alone = server_now(o->server) - st.others_at > ALONE_MS;
    size_t most = alone ? IN_FLIGHT_ALONE : IN_FLIGHT;
    size_t left = scheduler_bulk_room(o->server->scheduler, most);
    if (left == 0)
        o->window = 1;
    left = min_size(left, o->window);
    if (o->server->load.asks_open > ASKS_LEAVE || o->server->draining || o->in_flight >= left)
        return 0;
    return left - o->in_flight;
}

static void ask_out(void *arg, struct ask *a)
{
    struct operations *o = arg;

    o->in_flight++;
    server_ask(o->server, a);
}

static void operation_reported(void *arg, const struct operation *op)
{
    CLEANUP(buf_fini) struct buf reason = {0};
    (void)arg;

    if (op->state != OPERATION_DONE)
        return;
    json_string(&reason, op->reason);
    log_line(LOG_WARN,
             "event=operation_done operation=%.*s verb=%s matched=%" PRIu64 " done=%" PRIu64
             " refused=%" PRIu64 " failed=%" PRIu64 " gone=%" PRIu64 " reason=%s by=%.*s",
             SLICE_ARG(op->id), ask_kind_text(op->kind), op->matched, op->done,
             operation_refused_count(op), op->failed, op->gone, reason.ptr, SLICE_ARG(op->actor));
}

static void fired(uv_timer_t *t)
{
    (void)t; /* a turn follows each round of the loop */
}

static int64_t operations_turn(struct server *sv)
{
    struct operations *o = sv->background->operations;
    int64_t delay = o->runner ? runner_turn(o->runner) : -1;

    if (uv_is_closing((uv_handle_t *)&o->timer))
        return 0;
    if (delay < 0)
        (void)uv_timer_stop(&o->timer);
    else
        (void)uv_timer_start(&o->timer, fired, (uint64_t)delay, 0); /* it has a callback */
    return 0;
}

bool operations_answered(struct server *sv, struct ask *a)
{
    struct operations *o = sv->background->operations;

    if (!o->runner || !runner_owns(o->runner, a))
        return false;
    ASSERT(o->in_flight > 0);
    if (--o->in_flight == 0)
        o->window = min_size(2 * o->window, IN_FLIGHT_ALONE);
    runner_answered(o->runner, a);
    if (!uv_is_closing((uv_handle_t *)&o->timer)) /* it arrived during the scheduler's turn */
        (void)uv_timer_start(&o->timer, fired, 0, 0);
    return true;
}

void operations_changed(struct server *sv)
{
    const struct operations *o = sv->background->operations;

    if (o->runner)
        runner_refresh(o->runner);
}

static void operations_drain(struct server *sv)
{
    struct operations *o = sv->background->operations;

    if (o->runner)
        runner_stop(o->runner);
}

static bool operations_are_drained(const struct server *sv)
{
    const struct operations *o = sv->background->operations;

    return !o->runner || !runner_is_busy(o->runner);
}

static bool operations_are_busy(const struct server *sv)
{
    const struct operations *o = sv->background->operations;

    return o->runner && runner_has_jobs(o->runner);
}

void operations_stats(const struct server *sv, struct runner_stats *ret)
{
    const struct operations *o = sv->background->operations;

    *ret = (struct runner_stats){0};
    if (o->runner)
        runner_stats(o->runner, ret);
}

static enum err operations_open(struct server *sv, struct error *e)
{
    struct operations *o = calloc(1, sizeof *o);
    const struct runner_config c = {.holder = slice_of(sv->holder),
                                    .shared = sv->config.store->shared};
    const struct runner_outside outside = {.arg = o,
                                           .now = store_now,
                                           .steady = steady_now,
                                           .room = room,
                                           .ask = ask_out,
                                           .progressed = operation_reported};
    (void)e;

    ASSERT(o);
    o->server = sv;
    o->window = 1;
    o->background.submit = background_submit;
    if (sv->config.roles & NODE_SCHEDULER)
        o->runner = runner_new(&c, sv->store, &o->background, &sv->workflows, &outside);
    int rc = uv_timer_init(&sv->loop, &o->timer);
    ASSERT(rc == 0);
    sv->background->operations = o;
    return ERR_OK;
}

static void operations_close(struct server *sv)
{
    struct operations *o = sv->background->operations;

    uv_close((uv_handle_t *)&o->timer, NULL);
}

static void operations_free(struct server *sv)
{
    struct operations *o = sv->background->operations;

    runner_free(o->runner);
    free(o);
}

const struct part operations_part = {
    .name = "operations",
    .open = operations_open,
    .turn = operations_turn,
    .drain = operations_drain,
    .is_drained = operations_are_drained,
    .is_busy = operations_are_busy,
    .close = operations_close,
    .free = operations_free,
};
