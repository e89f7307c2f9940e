/*
 * serve --keep: deletes what ended longer ago than that. Once in a cluster: whoever leads does it,
 * pass after pass, each in small parts with pauses between, so that neither this node's work nor
 * that of others on the same database waits for it.
 */

#include "server/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"

enum {
    LOOK_MS = 1000,     /* whether we lead, and whether a pass is due */
    PAUSE_TIMES = 4,    /* a pause is so many times as long as the part before it ... */
    PAUSE_MIN_MS = 5,   /* ... and at least this */
    PASSES_A_KEEP = 10, /* so what is to go is late by a tenth at most ... */
    PASS_EVERY_H = 1,   /* ... and by no more than this */
    PASS_EVERY_MIN_S = 5,
};

struct keeper {
    struct server *server;
    uv_timer_t timer;
    struct store_job job;
    struct retire part;
    bool at_work; /* the job is with the store */
    bool passing;
    int64_t pass_at; /* steady; the next one */
    uint64_t tasks;  /* of this pass */
    uint64_t began_ns;
    enum err err;
    struct error error;
};

static void fired(uv_timer_t *t);

static void again_in(struct keeper *k, int64_t ms)
{
    if (!uv_is_closing((uv_handle_t *)&k->timer))
        (void)uv_timer_start(&k->timer, fired, (uint64_t)ms, 0); /* it has a callback */
}

static int64_t pass_every_ms(const struct keeper *k)
{
    int64_t ms = k->server->config.keep_ms / PASSES_A_KEEP;

    return max_i64(min_i64(ms, PASS_EVERY_H * MS_PER_H), PASS_EVERY_MIN_S * MS_PER_S);
}

static bool leads(const struct server *sv)
{
    struct supervisor_stats st;

    supervisor_stats(sv->supervisor, &st);
    return st.leads && !sv->draining;
}

static void pass_end(struct keeper *k)
{
    k->passing = false;
    k->pass_at = server_steady(NULL) + pass_every_ms(k);
    k->server->metrics.tasks_deleted += k->tasks;
    if (k->tasks > 0)
        log_line(LOG_INFO, "event=tasks_deleted tasks=%" PRIu64 " by=server ms=%" PRIu64, k->tasks,
                 (uv_hrtime() - k->began_ns) / 1000000);
    if (k->err != ERR_OK)
        log_line(LOG_ERROR, "event=deleting_failed reason=\"%s\"", k->error.text);
    again_in(k, LOOK_MS);
}

static void part_run(struct store_job *j, struct store *store)
{
    struct keeper *k = CONTAINER_OF(j, struct keeper, job);

    k->err = store->ops->retire(store, &k->part, &k->error);
}

static void part_done(struct store_job *j)
{
    struct keeper *k = CONTAINER_OF(j, struct keeper, job);

    k->at_work = false;
    k->server->exchange_count--;
    if (k->err == ERR_OK)
        k->tasks += k->part.count;
    if (k->err != ERR_OK || !k->part.more || !leads(k->server))
        pass_end(k);
    else
        again_in(k, max_i64(k->job.took_us * PAUSE_TIMES / 1000, PAUSE_MIN_MS));
}

static void part_begin(struct keeper *k)
{
    k->at_work = true;
    k->server->exchange_count++;
    store_thread_background(k->server->thread, &k->job, RETIRE_PATIENCE);
}

static void pass_begin(struct keeper *k)
{
    struct server *sv = k->server;

    k->passing = true;
    k->tasks = 0;
    k->began_ns = uv_hrtime();
    k->part = (struct retire){.ended_before = server_now_at_least(sv) - sv->config.keep_ms,
                              .states = RETIRE_STATES_DEFAULT,
                              .scan_max = RETIRE_ROWS,
                              .budget_us = RETIRE_BUDGET_US};
    part_begin(k);
}

static void fired(uv_timer_t *t)
{
    struct keeper *k = t->data;

    ASSERT(!k->at_work);
    if (k->server->draining)
        return;
    if (k->passing)
        part_begin(k);
    else if (leads(k->server) && server_steady(NULL) >= k->pass_at)
        pass_begin(k);
    else
        again_in(k, LOOK_MS);
}

struct keeper *keeper_new(struct server *sv)
{
    struct keeper *k = calloc(1, sizeof *k);

    ASSERT(k);
    k->server = sv;
    k->job = (struct store_job){.run = part_run, .done = part_done};
    int rc = uv_timer_init(&sv->loop, &k->timer);
    ASSERT(rc == 0);
    k->timer.data = k;
    if (sv->config.keep_ms > 0)
        again_in(k, LOOK_MS);
    return k;
}

void keeper_close(struct keeper *k)
{
    uv_close((uv_handle_t *)&k->timer, NULL);
}

void keeper_free(struct keeper *k)
{
    free(k);
}
