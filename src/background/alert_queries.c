/*
 * Queries of the store for alerts besides tasks in error: agents that are not connected, messages
 * that are not delivered, refused submissions, failed operations; people who are asked follow
 * (alert_asked.c). Only the leader queries, seldom, as background jobs. Nothing is remembered, so a
 * restart or another leader finds it again.
 */

#include <stdio.h>

#include "alerts/alerts.h"
#include "alerts/watch.h"
#include "background/alerting.h"
#include "background/retention.h"
#include "base/map.h"
#include "dispatch/dispatch.h"
#include "node/node.h"
#include "node/store_thread.h"
#include "operations/operation.h"
#include "schedule/plan.h"

enum {
    LOOK_MS = 15000,        /* so often ... */
    LOOK_SHARED_MS = 60000, /* ... and in a database that others use, too, so often */
    SOON_MS = 1000,         /* a node that does not lead checks so often whether it does */
    AGENT_TASKS = 200,      /* counted, up to about so many */
    TARGETS = 50,
    MESSAGES = 1000, /* counted of each target */
    REFUSED = 200,   /* so many of the newest are read */
    SOURCES = 8,
    OPERATIONS = 50,
    SCHEDULES = 50,
    BUSY_ROWS = 10, /* of tasks that are at a step of an agent */
    BUSY_SCAN = 2000,
};

/* A failed operation is reported for so long after its end. */
#define OPERATION_MS INT64_C(3600000)
/* A moment that got no task, for so long after that was noted. */
#define GAP_MS INT64_C(3600000)

/* ---- what was found ---- */

static struct found_condition *found_add(struct alerting *al, enum alert_condition c,
                                         const char *label, struct slice value)
{
    ASSERT(label);
    ASSERT(al->fresh_count <= COUNT_OF(al->fresh));
    if (al->fresh_count == COUNT_OF(al->fresh))
        return NULL;
    struct found_condition *w = &al->fresh[al->fresh_count++];
    *w = (struct found_condition){.condition = c, .label = label};
    (void)snprintf(w->value, sizeof w->value, "%.*s", SLICE_ARG(slice_cut(value, 128)));
    return w;
}

static struct found_condition *found_of(struct alerting *al, enum alert_condition c,
                                        const char *label, struct slice value)
{
    for (size_t i = 0; i < al->fresh_count; i++)
        if (al->fresh[i].condition == c && slice_is(slice_cut(value, 128), al->fresh[i].value))
            return &al->fresh[i];
    return found_add(al, c, label, value);
}

static void earliest(struct found_condition *w, int64_t at)
{
    if (w->at == 0 || at < w->at)
        w->at = at;
}

static void story(struct found_condition *w, struct slice text)
{
    (void)snprintf(w->story, sizeof w->story, "%.*s", SLICE_ARG(slice_cut(text, 150)));
}

/* ---- messages ---- */

/* Those that are dead, and targets whose oldest message has waited for long. */
static enum err query_messages(struct alerting *al, struct store *store, bool dead)
{
    int64_t late = al->census_now - alerts_for_ms(&al->settings->config, CONDITION_OUTBOX_TROUBLE);
    struct outbox_target *list = NULL;
    size_t count = 0;
    struct error e = {0};
    struct target_query q = {.dead = dead, .limit = TARGETS, .most = MESSAGES};

    enum err err = store->ops->outbox->targets(store, &q, &al->census_arena, &list, &count, &e);
    for (size_t i = 0; err == ERR_OK && i < count; i++) {
        const struct outbox_target *t = &list[i];
        if (!dead && t->oldest_at > late)
            continue;
        struct found_condition *w = found_of(al, CONDITION_OUTBOX_TROUBLE, "target", t->target);
        if (!w)
            break;
        w->count += t->count;
        earliest(w, t->oldest_at);
        if (t->story.ptr && t->story.len > 0)
            story(w, t->story);
    }
    return err;
}

/* ---- submissions ---- */

/* The reason is that of the newest of a source. */
static enum err write_why(struct alerting *al, struct store *store, struct slice source,
                          struct found_condition *w)
{
    const struct submission_query q = {.refused = true, .source = source, .limit = 1};
    struct submission_page page = {0};
    struct error e = {0};

    enum err err = store->ops->submissions->list(store, &q, &al->census_arena, &page, &e);
    if (err != ERR_OK || page.count == 0)
        return err;
    w->at = page.rows[0].refused_at;
    story(w, page.rows[0].reason);
    (void)snprintf(w->example, sizeof w->example, "%.*s",
                   SLICE_ARG(slice_cut(page.rows[0].id, 128)));
    return ERR_OK;
}

static enum err query_submissions(struct alerting *al, struct store *store)
{
    const struct submission_query q = {.refused = true, .brief = true, .limit = REFUSED};
    struct submission_page page = {0};
    struct error e = {0};
    size_t sources = 0;

    enum err err = store->ops->submissions->list(store, &q, &al->census_arena, &page, &e);
    for (size_t i = 0; err == ERR_OK && i < page.count; i++) {
        struct slice source = page.rows[i].source;
        size_t before = al->fresh_count;
        if (sources == SOURCES)
            break;
        struct found_condition *w = found_of(al, CONDITION_SUBMISSION_REFUSED, "source", source);
        if (!w)
            break;
        w->count++;
        if (al->fresh_count > before) {
            sources++;
            err = write_why(al, store, source, w);
        }
    }
    return err;
}

/* ---- operations ---- */

/* What was refused is an answer; what failed could not be read or stored. */
static void take_operation(struct alerting *al, const struct operation_row *row)
{
    struct operation op;
    struct error e = {0};

    if (!row->open && row->ended_at < al->census_now - OPERATION_MS)
        return;
    if (operation_decode(&al->census_arena, row, &op, &e) != ERR_OK || op.failed == 0)
        return;
    struct found_condition *w = found_add(al, CONDITION_OPERATION_FAILED, "operation", op.id);
    if (!w)
        return;
    w->count = op.failed;
    w->at = op.started_at;
    (void)snprintf(w->story, sizeof w->story,
                   "%s: of %" PRIu64 " tasks %" PRIu64 " could not be read or stored",
                   ask_kind_text(op.kind), op.matched, op.failed);
}

static enum err query_operations(struct alerting *al, struct store *store)
{
    const struct operation_query q = {.limit = OPERATIONS};
    struct operation_page page = {0};
    struct error e = {0};

    enum err err = store->ops->operations->list(store, &q, &al->census_arena, &page, &e);
    for (size_t i = 0; err == ERR_OK && i < page.count; i++)
        take_operation(al, &page.rows[i]);
    return err;
}

/* ---- schedules ---- */

static void take_gaps(struct alerting *al, const struct schedule_row *row)
{
    struct schedule_state *st = arena_alloc(&al->census_arena, sizeof *st);
    struct error e = {0};

    if (schedule_state_read(row->doc, &al->census_arena, st, &e) != ERR_OK || st->gap_count == 0)
        return;
    const struct gap *g = &st->gaps[st->gap_count - 1];
    struct found_condition *w = found_add(al, CONDITION_SCHEDULE_GAP, "schedule", row->name);
    if (!w)
        return;
    w->count = g->count;
    w->at = g->first; /* it stays the same while the gap grows */
    (void)snprintf(w->example, sizeof w->example, "%.*s",
                   SLICE_ARG(slice_cut(g->kind == GAP_SKIPPED ? g->why : SLICE_NONE, 128)));
    (void)snprintf(w->story, sizeof w->story, "%s%s%.*s", gap_kind_text(g->kind),
                   g->why.ptr ? ": " : "", SLICE_ARG(slice_cut(g->why, 140)));
}

static enum err query_schedules(struct alerting *al, struct store *store)
{
    const struct schedule_query q = {.gaps_since = max_i64(al->census_now - GAP_MS, 1),
                                     .limit = SCHEDULES};
    struct schedule_page page = {0};
    struct error e = {0};

    enum err err = store->ops->schedules->list(store, &q, &al->census_arena, &page, &e);
    for (size_t i = 0; err == ERR_OK && i < page.count; i++)
        take_gaps(al, &page.rows[i]);
    return err;
}

/* ---- agents that are not there ---- */

/* Which steps are theirs, of those that were waited for at the last look. */
static void name_places(struct alerting *al)
{
    for (size_t i = 0; i < al->waiting_count; i++) {
        struct absent *w = &al->waitings[i];
        struct task_filter f = {.agent = slice_of(w->agent)};
        filter_places(&f, &al->server->workflows, &al->census_arena);
        w->busy = false;
        w->places = f.query.places;
        w->place_count = f.query.place_count;
    }
}

/* An agent that calls another node, and is only slow, has a task of that node. */
static enum err query_work(struct alerting *al, struct store *store, struct absent *w)
{
    struct list_query q = {.states = 1U << TASK_PROCESSING | 1U << TASK_COMPENSATING,
                           .places = w->places,
                           .place_count = w->place_count,
                           .limit = BUSY_ROWS,
                           .scan_max = BUSY_SCAN};
    struct row_page page = {0};
    struct error e = {0};

    enum err err = store->ops->list(store, &q, &al->census_arena, &page, &e);
    for (size_t i = 0; err == ERR_OK && i < page.count; i++)
        w->busy |= page.rows[i].locked_by.ptr != NULL;
    return err;
}

static enum err query_agents(struct alerting *al, struct store *store)
{
    struct error e = {0};
    enum err err = ERR_OK;

    if (!store->ops->counts)
        return ERR_OK;
    for (size_t i = 0; store->shared && err == ERR_OK && i < al->waiting_count; i++)
        if (al->waitings[i].place_count > 0)
            err = query_work(al, store, &al->waitings[i]);
    if (err == ERR_OK)
        err = store->ops->counts->census(store, al->census_now, AGENT_TASKS, &al->census_arena,
                                         &al->census, &e);
    return err;
}

/* It comes next as it did at the last look, and no other node has had work done by that agent. */
static bool is_stuck(const struct alerting *al, const struct census_agent *c)
{
    for (size_t i = 0; i < al->waiting_count; i++)
        if (slice_is(c->agent, al->waitings[i].agent))
            return al->waitings[i].first_submitted_at == c->first_submitted_at
                   && !al->waitings[i].busy;
    return false;
}

static bool is_connected(const struct server *sv, struct slice agent)
{
    struct agent *a = map_get(&scheduler_dispatch(sv->scheduler)->agents, agent);

    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it stays as it is */
    return a && dispatch_is_connected(a, server_now((void *)(uintptr_t)sv));
}

static struct absent absent_of(const struct census_agent *c)
{
    struct absent w = {.tasks = c->tasks, .first_submitted_at = c->first_submitted_at};

    (void)snprintf(w.agent, sizeof w.agent, "%.*s", SLICE_ARG(slice_cut(c->agent, 128)));
    return w;
}

static void take_census(struct alerting *al)
{
    struct absent *next =
        arena_alloc(&al->census_arena, (al->census.agent_count + 1) * sizeof *next);
    size_t count = 0;

    ASSERT(al->census.agent_count <= COUNT_OF(al->waitings));
    al->absent_count = 0;
    for (size_t i = 0; i < al->census.agent_count; i++) {
        const struct census_agent *c = &al->census.agents[i];
        if (c->tasks == 0 || is_connected(al->server, c->agent))
            continue;
        next[count++] = absent_of(c);
        if (is_stuck(al, c))
            al->absents[al->absent_count++] = next[count - 1];
    }
    memcpy(al->waitings, next, count * sizeof *next);
    al->waiting_count = count;
}

/* ---- a look ---- */

static void query_run(struct store_job *j, struct store *store)
{
    struct alerting *al = CONTAINER_OF(j, struct alerting, census_job);
    enum err err = ERR_OK; /* whatever is wrong, the supervisor meets it too */

    ASSERT(al->census_now > 0);
    al->census = (struct census){0};
    al->fresh_count = 0;
    err = query_agents(al, store);
    if (err == ERR_OK)
        err = query_messages(al, store, false);
    if (err == ERR_OK)
        err = query_messages(al, store, true);
    if (err == ERR_OK)
        err = query_submissions(al, store);
    if (err == ERR_OK)
        err = query_operations(al, store);
    if (err == ERR_OK)
        err = query_schedules(al, store);
    al->census_err = err;
}

static void query_done(struct store_job *j)
{
    struct alerting *al = CONTAINER_OF(j, struct alerting, census_job);

    ASSERT(al->counting);
    if (al->census_err == ERR_OK) {
        take_census(al);
        memcpy(al->found, al->fresh, al->fresh_count * sizeof *al->fresh);
        al->found_count = al->fresh_count;
        al->asked_before = al->asked_pages = 0;
        alerts_query_asked(al);
    } else {
        alerts_query_over(al);
    }
}

void alerts_query_over(struct alerting *al)
{
    ASSERT(al->counting);
    ASSERT(al->server->load.exchanges > 0);
    al->counting = false;
    al->server->load.exchanges--;
    arena_fini(&al->census_arena);
    al->census_arena = (struct arena){0};
}

void alerts_query_store(struct alerting *al)
{
    struct server *sv = al->server;
    int64_t now = server_steady(NULL);

    if (al->counting || now < al->census_at || sv->draining)
        return;
    al->census_at = now + SOON_MS;
    if (!watch_leads(al->watch)) {
        al->absent_count = al->waiting_count = al->found_count = al->questions.count = 0;
        return;
    }
    al->census_at = now + (sv->config.store->shared ? LOOK_SHARED_MS : LOOK_MS);
    al->counting = true;
    al->census_now = server_now(sv);
    name_places(al);
    al->census_job = (struct store_job){.run = query_run, .done = query_done};
    sv->load.exchanges++;
    store_thread_background(sv->thread, &al->census_job, RETIRE_PATIENCE);
}
