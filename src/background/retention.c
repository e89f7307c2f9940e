/*
 * Retention (serve --keep, and its section in the configuration): deletes ended tasks by rule, and
 * releases the ids of deleted tasks in time. Only the leader does it, pass after pass, in small
 * parts with pauses between, so that neither this node nor others on the same database wait for it.
 * What a part does is in retire.c; its size is in retention.h.
 */

#include "background/retention.h"

#include <stdlib.h>

#include "archive/archive.h"
#include "background/retire.h"
#include "background/room.h"
#include "base/log.h"
#include "base/when.h"
#include "definition/registry.h"
#include "node/node.h"
#include "node/part.h"
#include "node/store_thread.h"
#include "store/job.h"

enum {
    LOOK_MS = 1000,     /* whether we lead, and whether a pass is due */
    PAUSE_TIMES = 4,    /* a pause is so many times as long as the part before it ... */
    PAUSE_MIN_MS = 5,   /* ... and at least this */
    PASSES_A_KEEP = 10, /* so what is to go is late by a tenth at most ... */
    PASS_EVERY_H = 1,   /* ... and by no more than this ... */
    PASS_LAST_MIN = 1,  /* ... where the newest are counted */
    PASS_EVERY_MIN_S = 5,
    SWEEP_ROWS = 500,
};

struct retention_job {
    struct server *server;
    uv_timer_t timer;
    struct retirer retirer;
    struct store_job sweep;
    bool sweep_more;
    int64_t sweep_now;
    enum err sweep_err;
    struct error sweep_error;
    bool at_work, passing, sweeping;
    struct arena names_arena; /* of the pass: the workflows that are examined one by one */
    struct slice *names;
    size_t name_count, name;
    int64_t pass_at; /* the next one */
    uint64_t began_ns;
    enum err trouble; /* ERR_OK: none */
    int64_t trouble_since;
    char story[400];
};

static const struct retention *retention_of(const struct retention_job *k)
{
    return k->server->config.retention;
}

static void fired(uv_timer_t *t);

static void again_in(struct retention_job *k, int64_t ms)
{
    if (!uv_is_closing((uv_handle_t *)&k->timer))
        (void)uv_timer_start(&k->timer, fired, (uint64_t)ms, 0); /* it has a callback */
}

static int64_t pass_every_ms(const struct retention_job *k)
{
    int64_t ms = PASS_EVERY_H * MS_PER_H;

    for (size_t i = 0; i < retention_of(k)->rule_count; i++) {
        const struct retention_rule *rule = &retention_of(k)->rules[i];
        if (rule->keep_last > 0)
            ms = min_i64(ms, PASS_LAST_MIN * MS_PER_MIN);
        ms = min_i64(ms, rule->keep_ms / PASSES_A_KEEP);
    }
    return max_i64(ms, PASS_EVERY_MIN_S * MS_PER_S);
}

static bool leads(const struct server *sv)
{
    struct supervisor_stats st;

    supervisor_stats(sv->supervisor, &st);
    return st.leads && !sv->draining;
}

/* ---- trouble: logged when it begins and when it ends ---- */

static void trouble_begins(struct retention_job *k, enum err err, const char *story)
{
    if (k->trouble == ERR_OK) {
        k->trouble_since = server_now(k->server);
        log_line(LOG_ERROR,
                 "event=deleting_failed reason=\"%s; nothing is deleted until this succeeds\"",
                 story);
    }
    k->trouble = err;
    (void)snprintf(k->story, sizeof k->story, "%s", story);
}

static void trouble_ends(struct retention_job *k)
{
    if (k->trouble != ERR_OK)
        log_line(LOG_INFO, "event=deleting_works_again");
    k->trouble = ERR_OK;
}

bool retention_trouble(const struct server *sv, struct slice *ret_story, int64_t *ret_since)
{
    const struct retention_job *k = sv->background->retention;

    if (!k || k->trouble == ERR_OK)
        return false;
    if (ret_story)
        *ret_story = slice_of(k->story);
    if (ret_since)
        *ret_since = k->trouble_since;
    return true;
}

/* ---- a pass ---- */

static void pass_end(struct retention_job *k)
{
    const struct retirer *r = &k->retirer;

    k->passing = k->sweeping = false;
    k->pass_at = server_now_elapsing(k->server) + pass_every_ms(k);
    k->server->metrics.tasks_deleted += r->tasks;
    k->server->metrics.tasks_archived += r->archived;
    if (r->tasks > 0)
        log_line(LOG_INFO,
                 "event=tasks_deleted tasks=%" PRIu64 " by=server archived=%" PRIu64 " ms=%" PRIu64,
                 r->tasks, r->archived, (uv_hrtime() - k->began_ns) / 1000000);
    retirer_end(&k->retirer);
    arena_fini(&k->names_arena);
    again_in(k, LOOK_MS);
}

static void sweep_run(struct store_job *j, struct store *store)
{
    struct retention_job *k = CONTAINER_OF(j, struct retention_job, sweep);

    struct shrink room = {.budget_us = RETIRE_BUDGET_US};
    size_t swept = 0;

    k->sweep_err =
        store->ops->retention->sweep(store, k->sweep_now, SWEEP_ROWS, &swept, &k->sweep_error);
    k->sweep_more = swept == SWEEP_ROWS;
    if (k->sweep_err != ERR_OK || k->sweep_more || !store->ops->shrink)
        return;
    k->sweep_err = store->ops->shrink(store, &room, &k->sweep_error);
    k->sweep_more = room.more;
}

static void sweep_done(struct store_job *j)
{
    struct retention_job *k = CONTAINER_OF(j, struct retention_job, sweep);

    k->at_work = false;
    ASSERT(k->server->load.exchanges > 0);
    k->server->load.exchanges--;
    if (k->sweep_err != ERR_OK)
        trouble_begins(k, k->sweep_err, k->sweep_error.text);
    if (k->sweep_err != ERR_OK || !k->sweep_more || !leads(k->server))
        pass_end(k);
    else
        again_in(k, max_i64(j->took_us * PAUSE_TIMES / 1000, PAUSE_MIN_MS));
}

static void sweep_begin(struct retention_job *k)
{
    k->at_work = k->sweeping = true;
    k->sweep_now = server_now_at_least(k->server);
    k->server->load.exchanges++;
    k->sweep = (struct store_job){.run = sweep_run, .done = sweep_done};
    store_thread_background(k->server->thread, &k->sweep, RETIRE_PATIENCE);
}

/* The next workflow, or all at once. False: there is none left. */
static bool scan_begin(struct retention_job *k)
{
    const struct retention *rt = retention_of(k);

    if (k->name == k->name_count)
        return false;
    k->retirer.after_seq = 0;
    retirer_begin(&k->retirer, rt->rules, rt->rule_count, k->names[k->name++],
                  server_now_at_least(k->server));
    return true;
}

static void part_done(struct retirer *r)
{
    struct retention_job *k = CONTAINER_OF(r, struct retention_job, retirer);

    k->at_work = false;
    if (r->err != ERR_OK) {
        trouble_begins(k, r->err, r->error.text);
        pass_end(k);
    } else if (!leads(k->server)) {
        pass_end(k);
    } else if (r->more || scan_begin(k)) {
        again_in(k, max_i64(r->took_us * PAUSE_TIMES / 1000, PAUSE_MIN_MS));
    } else {
        trouble_ends(k);
        sweep_begin(k);
    }
}

static void part_begin(struct retention_job *k)
{
    k->at_work = true;
    retirer_part(&k->retirer);
}

/* Rules for certain workflows, and those that keep the newest, examine each workflow by itself: by
 * an index, so that tasks that are kept for long are not read each time. */
static bool is_by_workflow(const struct retention *rt)
{
    for (size_t i = 0; i < rt->rule_count; i++)
        if (rt->rules[i].workflow.ptr || rt->rules[i].keep_last > 0)
            return true;
    return false;
}

static void pass_begin(struct retention_job *k)
{
    static struct slice any[] = {{NULL, 0}};
    const struct retention *rt = retention_of(k);

    k->passing = true;
    k->began_ns = uv_hrtime();
    k->retirer = (struct retirer){.server = k->server, .part_done = part_done};
    k->names = any;
    k->name = 0;
    k->name_count = 1; /* also without rules: children of what an operator deleted */
    if (is_by_workflow(rt))
        k->name_count = registry_names(&k->server->workflows, &k->names_arena, &k->names);
    if (scan_begin(k))
        part_begin(k);
    else
        sweep_begin(k); /* no workflow is known */
}

/* A node that does not lead has no trouble with it. */
static void look_later(struct retention_job *k)
{
    if (!leads(k->server))
        k->trouble = ERR_OK;
    again_in(k, LOOK_MS);
}

static void fired(uv_timer_t *t)
{
    struct retention_job *k = t->data;

    ASSERT(!k->at_work);
    if (k->server->draining)
        return;
    /* The database's clock may have been ahead. */
    k->pass_at = min_i64(k->pass_at, server_now_elapsing(k->server) + pass_every_ms(k));
    if (k->sweeping)
        sweep_begin(k);
    else if (k->passing)
        part_begin(k);
    else if (leads(k->server) && server_now_elapsing(k->server) >= k->pass_at)
        pass_begin(k);
    else
        look_later(k);
}

static enum err retention_open(struct server *sv, struct error *e)
{
    struct retention_job *k = calloc(1, sizeof *k);
    (void)e;

    ASSERT(k);
    k->server = sv;
    if (sv->config.retention->archive.folder)
        sv->background->archive =
            archive_writer_new(&sv->config.retention->archive, sv->config.node);
    int rc = uv_timer_init(&sv->loop, &k->timer);
    ASSERT(rc == 0);
    k->timer.data = k;
    again_in(k, LOOK_MS);
    sv->background->retention = k;
    return ERR_OK;
}

static void retention_close(struct server *sv)
{
    struct retention_job *k = sv->background->retention;

    uv_close((uv_handle_t *)&k->timer, NULL);
}

static void retention_free(struct server *sv)
{
    struct retention_job *k = sv->background->retention;

    if (k->passing)
        retirer_end(&k->retirer);
    arena_fini(&k->names_arena);
    archive_writer_free(sv->background->archive);
    free(k);
}

const struct part retention_part = {
    .name = "retention",
    .open = retention_open,
    .close = retention_close,
    .free = retention_free,
};
