/*
 * What all parts stand on: tokens and definitions in memory, the threads of the store, scheduler
 * and supervisor. Makes them in the order in which they need each other, and ends them in reverse.
 * What scheduler and supervisor report goes through outside.c.
 */

#include "server/core.h"

#include "api/routes.h"
#include "background/admin_token.h"
#include "background/cache.h"
#include "background/token_list.h"
#include "definition/registry.h"
#include "dispatch/token.h"
#include "node/access.h"
#include "node/changes.h"
#include "node/content.h"
#include "node/fair.h"
#include "node/node.h"
#include "node/overrun.h"
#include "node/overview.h"
#include "node/part.h"
#include "node/quota.h"
#include "node/readings.h"
#include "node/sessions.h"
#include "node/store_thread.h"
#include "server/outside.h"
#include "server/run.h"

enum { ERRORS_MAX = 100 };

/* ---- what is read before the threads start ---- */

/* A process may have died before it logged that a task needs an operator. Each start logs how many
 * tasks do. */
static void log_tasks_in_error(const struct server *sv)
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

static enum err load_tokens(struct server *sv, struct error *e)
{
    enum err err = token_list_load(sv, e);

    if (err == ERR_OK && !access_is_open(sv->access))
        err = admin_token_ensure(sv, e);
    return err;
}

enum err core_load(struct run *run, struct error *e)
{
    struct server *sv = &run->sv;

    sv->access = access_new(sv->config.token_file);
    if (sv->config.virtual_time)
        access_honour(sv->access);
    sv->sessions = sessions_new();
    sv->overview = overview_new(server_turn_now(sv));
    sv->contents = contents_new();
    sv->quotas = quotas_new();
    enum err err = catalog_load(&sv->workflows, sv->config.store, &run->known, e);
    if (err == ERR_OK)
        err = load_tokens(sv, e);
    if (err == ERR_OK)
        err = overruns_load(sv->config.store, &run->overruns, e);
    log_tasks_in_error(sv);
    if (err == ERR_OK)
        cache_describe(sv);
    return err;
}

void core_unload(struct run *run)
{
    struct server *sv = &run->sv;

    overruns_fini(&run->overruns);
    token_key_free(sv->key);
    access_free(sv->access);
    sessions_free(sv->sessions);
    overview_free(sv->overview);
    contents_free(sv->contents);
    quotas_free(sv->quotas);
    registry_fini(&sv->workflows);
    buf_fini(&sv->channels.taken);
    fair_free(sv->fair);
    changes_free(sv->changes);
    overrun_free(run->overrun);
}

/* ---- threads ---- */

static int start_readings(struct server *sv)
{
    const struct readings_config c = {.store = sv->config.store,
                                      .instead = sv->store,
                                      .line_max = sv->limits.line_max,
                                      .rests_until = account_rests_until,
                                      .worked = account_worked,
                                      .arg = sv};

    return readings_start(&sv->loop, &c, &sv->readings);
}

static int start_overrun(struct run *run)
{
    struct server *sv = &run->sv;
    const struct overrun_config c = {.store = sv->store, .now = server_now, .arg = sv};

    return overrun_start(&c, &run->overrun);
}

static int start_threads(struct run *run)
{
    struct server *sv = &run->sv;
    const struct store_thread_config tc = {sv->config.store, sv->config.maintain};
    int rc = store_thread_start(&sv->loop, &tc, &sv->thread);

    if (rc != 0)
        return rc;
    sv->store = store_thread_queue(sv->thread);
    rc = start_readings(sv);
    if (rc == 0) {
        rc = start_overrun(run);
        if (rc != 0)
            readings_stop(sv->readings);
    }
    if (rc != 0)
        store_thread_stop(sv->thread);
    return rc;
}

int core_start(struct run *run)
{
    struct server *sv = &run->sv;
    int rc = start_threads(run);

    if (rc != 0) {
        (void)uv_run(&sv->loop, UV_RUN_DEFAULT); /* handles close */
        return rc;
    }
    sv->key = token_key_new(sv->config.store->ops->secret(sv->config.store));
    sv->fair = fair_new(sv, &sv->loop, route_held);
    sv->changes = pressure_changes(sv);
    return 0;
}

void core_stop(struct run *run)
{
    struct server *sv = &run->sv;

    fair_close(sv->fair);
    changes_close(sv->changes);
    overrun_stop(run->overrun);
    readings_stop(sv->readings);
    store_thread_stop(sv->thread);
}

/* ---- scheduler and supervisor ---- */

static void make_scheduler(struct server *sv, const struct overruns *overruns)
{
    const struct server_config *c = &sv->config;
    const struct clock clock = {server_now, sv};
    const struct outside outside = outside_of_scheduler(sv);
    const struct scheduler_config sc = {
        .node = slice_of(c->node),
        .boot = c->store->ops->boot(c->store),
        .shared = c->store->shared,
        .idle = !(c->roles & NODE_SCHEDULER),
        .key_prefix = slice_of(c->key_prefix),
        .source = slice_of(sv->source),
        .grace_ms = c->grace_ms,
        .overruns = overruns->list,
        .overrun_count = overruns->count,
    };

    sv->scheduler = scheduler_new(&sc, sv->store, &sv->workflows, sv->key, &clock, &outside);
}

static void make_supervisor(struct server *sv)
{
    const struct supervisor_outside outside = outside_of_supervisor(sv);
    const struct supervisor_config sc = {
        .holder = slice_of(sv->holder),
        .interval_ms = sv->config.supervisor_interval_ms,
        .grace_ms = sv->config.grace_ms,
    };

    sv->supervisor = supervisor_new(&sc, sv->store, &sv->workflows, &outside);
    if (!(sv->config.roles & NODE_SUPERVISOR))
        supervisor_stop(sv->supervisor);
}

static enum err scheduling_open(struct server *sv, struct error *e)
{
    const struct run *run = run_of(sv);
    (void)e;

    if (sv->config.store->shared) {
        sv->catalog = catalog_new(&sv->workflows, sv->store);
        catalog_is_at(sv->catalog, run->known);
        catalog_offload(sv->catalog, cache_compile, sv);
    }
    make_scheduler(sv, &run->overruns);
    make_supervisor(sv);
    return ERR_OK;
}

static int64_t scheduling_turn(struct server *sv)
{
    int64_t at = scheduler_turn(sv->scheduler);
    int64_t scan = supervisor_turn(sv->supervisor);

    return scan != 0 && (at == 0 || scan < at) ? scan : at;
}

/* Where others can supervise, they need not wait for our end. */
static void scheduling_drain(struct server *sv)
{
    scheduler_drain(sv->scheduler);
    if (sv->config.store->shared)
        supervisor_stop(sv->supervisor);
}

/* A node waits for the results of its open attempts, unless it is another process now. */
static bool scheduling_is_drained(const struct server *sv)
{
    struct scheduler_stats st;

    scheduler_stats(sv->scheduler, &st);
    return (st.open_attempts == 0 || st.replaced) && scheduler_is_drained(sv->scheduler)
           && !supervisor_is_busy(sv->supervisor);
}

static bool scheduling_is_busy(const struct server *sv)
{
    return scheduler_is_busy(sv->scheduler) || supervisor_is_busy(sv->supervisor)
           || (sv->catalog && catalog_is_busy(sv->catalog));
}

/* What was not answered is answered now: the parts that asked are still there. */
static void scheduling_close(struct server *sv)
{
    scheduler_free(sv->scheduler);
    supervisor_free(sv->supervisor);
    catalog_free(sv->catalog);
}

const struct part scheduling_part = {
    .name = "scheduling",
    .open = scheduling_open,
    .turn = scheduling_turn,
    .drain = scheduling_drain,
    .is_drained = scheduling_is_drained,
    .is_busy = scheduling_is_busy,
    .close = scheduling_close,
};
