/*
 * GET /v1/stats: what an operator wants to see at a glance. Counters are of this node since it
 * started; what is stored is counted by the store, up to COUNT_MAX, so that this costs the same
 * however much there is.
 */

#include <sys/stat.h>

#include "api/agents.h"
#include "api/handlers.h"
#include "api/listing.h"
#include "background/alerts.h"
#include "base/map.h"
#include "dispatch/dispatch.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "store/job.h"
#include "json/json.h"

enum { COUNT_MAX = 10000 };

struct stats_reader {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    int64_t now;
    struct census census;
    struct map stored; /* the agents of the census, by name */
    bool counted;
    enum err err;
    struct error error;
};

static void number(struct buf *b, const char *key, uint64_t v)
{
    json_key(b, key);
    json_number(b, (int64_t)v);
}

static void render_node(struct buf *b, const struct server *sv, int64_t now)
{
    struct supervisor_stats su;

    supervisor_stats(sv->supervisor, &su);
    json_key(b, "now");
    json_time(b, now);
    json_key(b, "node");
    json_string(b, slice_of(sv->config.node));
    number(b, "boot", sv->config.store->ops->boot(sv->config.store));
    json_key(b, "version");
    json_string(b, SLICE(INTACT_VERSION));
    json_key(b, "started_at");
    json_time(b, sv->metrics.started_at);
    json_key(b, "leads");
    json_bool(b, su.leads);
    json_key(b, "trouble");
    char story[sizeof sv->trouble.text];
    json_string(b,
                server_trouble(sv, story, sizeof story) == ERR_OK ? SLICE_NONE : slice_of(story));
}

static uint64_t sum_of(const struct scheduler_stats *st, enum outcome o)
{
    return st->attempts[DIRECTION_FORWARD][o] + st->attempts[DIRECTION_UNDO][o];
}

static void render_counters(struct buf *b, const struct server *sv)
{
    struct scheduler_stats st;
    const struct metrics *m = &sv->metrics;

    scheduler_stats(sv->scheduler, &st);
    json_key(b, "counters");
    json_open(b, '{');
    number(b, "submitted", st.submitted);
    number(b, "processed", m->tasks_ended[TASK_PROCESSED]);
    number(b, "compensated", m->tasks_ended[TASK_COMPENSATED]);
    number(b, "error", m->tasks_ended[TASK_ERROR]);
    number(b, "state_changes", st.changes);
    number(b, "batches", st.batches);
    number(b, "attempts_completed", sum_of(&st, OUTCOME_COMPLETED));
    number(b, "attempts_failed", sum_of(&st, OUTCOME_FAILED));
    number(b, "attempts_timed_out", sum_of(&st, OUTCOME_TIMED_OUT));
    json_close(b, '}');
    size_t alerts = 0;
    for (int c = 0; c < CONDITION_TEST; c++)
        alerts += alerts_open_count(sv, (enum alert_condition)c);
    number(b, "alerts_open", alerts);
    number(b, "tasks_in_memory", st.live);
    number(b, "open_attempts", st.open_attempts);
}

static void render_files(struct buf *b, const struct server *sv)
{
    const struct server_config *c = &sv->config;
    struct stat st;

    json_key(b, "store_files");
    json_open(b, '{');
    for (size_t i = 0; i < c->store_file_count; i++)
        if (stat(c->store_files[i].path, &st) == 0)
            number(b, c->store_files[i].name, (uint64_t)st.st_size);
    json_close(b, '}');
}

static void render_stored(struct buf *b, const struct stats_reader *sr)
{
    static const enum task_state shown[] = {TASK_PENDING, TASK_PROCESSING, TASK_COMPENSATING,
                                            TASK_COMPENSATED, TASK_ERROR};
    const struct census *c = &sr->census;

    json_key(b, "stored");
    if (!sr->counted) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    number(b, "counted_to", COUNT_MAX);
    number(b, "agents_counted_to", c->agents_most);
    for (size_t i = 0; i < COUNT_OF(shown); i++)
        number(b, task_state_text(shown[i]), c->tasks[shown[i]]);
    number(b, "sleeping", c->sleeping);
    number(b, "waiting_for_locks", c->locked);
    number(b, "overdue", c->overdue);
    json_key(b, "overdue_since");
    json_time(b, c->overdue_since);
    json_close(b, '}');
}

/* ---- agents ---- */

/* Either may be NULL: nothing in work knows of it, or nothing that is stored waits for it. */
static void render_figures(struct buf *b, struct slice name, struct agent *a,
                           const struct census_agent *stored, int64_t now)
{
    const struct instance *in = NULL;
    uint64_t open = 0;

    for (size_t i = 0; a && (in = map_next(&a->instances, &i));)
        open += in->open;
    const char *held = a        ? agent_held_by(a, stored || a->stored, now)
                       : stored ? "no-instance"
                                : NULL;
    json_open(b, '{');
    json_key(b, "agent");
    json_string(b, name);
    json_key(b, "connected");
    json_bool(b, a && dispatch_is_connected(a, now));
    number(b, "instances", a ? a->instances.len : 0);
    number(b, "places", a ? dispatch_places(a, now) : 0);
    number(b, "open_attempts", open);
    number(b, "waiting_steps", a ? a->waiting : 0);
    number(b, "waiting_tasks", stored ? stored->tasks : 0);
    json_key(b, "held_by");
    json_string(b, held ? slice_of(held) : SLICE_NONE);
    json_key(b, "first_submitted_at");
    json_time(b, stored ? stored->first_submitted_at : 0);
    number(b, "completed", a ? a->completed : 0);
    number(b, "failed", a ? a->failed : 0);
    json_close(b, '}');
}

static const struct dispatch *dispatch_of(const struct listing *l)
{
    return scheduler_dispatch(l->x.server->scheduler);
}

/* Those that this node knows, then those that only the store does. */
static bool snapshot_agents(struct listing *l, struct http_request *r)
{
    struct stats_reader *sr = l->state;
    const struct map *known = &dispatch_of(l)->agents;
    struct listed_names n;
    (void)r;

    listing_snapshot(l, &n, known, NULL, NULL);
    l->names.list =
        arena_alloc(&l->arena, (n.count + sr->census.agent_count + 1) * sizeof *l->names.list);
    for (size_t i = 0; i < n.count; i++)
        l->names.list[l->names.count++] = n.list[i];
    for (size_t i = 0; i < sr->census.agent_count; i++) {
        struct census_agent *c = &sr->census.agents[i];
        map_put(&sr->stored, c->agent, c);
        if (!map_get(known, c->agent))
            l->names.list[l->names.count++] = c->agent;
    }
    return true;
}

static void render_head(struct listing *l)
{
    const struct stats_reader *sr = l->state;
    const struct server *sv = l->x.server;

    render_node(&l->out, sv, sr->now);
    render_counters(&l->out, sv);
    render_files(&l->out, sv);
    render_stored(&l->out, sr);
}

static bool render_agent(struct listing *l, struct slice name)
{
    const struct stats_reader *sr = l->state;
    struct agent *a = map_get(&dispatch_of(l)->agents, name);
    const struct census_agent *stored = map_get(&sr->stored, name);

    if (a || stored)
        render_figures(&l->out, name, a, stored, sr->now);
    return true;
}

static void reader_free(void *state)
{
    struct stats_reader *sr = state;
    struct arena a = sr->arena;

    sr->x.server->load.reads_open--;
    map_fini(&sr->stored);
    arena_fini(&a);
}

static void answer_stats(struct http_request *r, struct server *sv, struct stats_reader *sr)
{
    static const struct listing_kind kind = {.key = "agents",
                                             .head = render_head,
                                             .names = snapshot_agents,
                                             .render = render_agent,
                                             .end = reader_free};

    listing_begin(sv, r, &kind, SLICE_NONE, sr);
}

/* ---- reading ---- */

static void stats_run(struct store_job *j, struct store *store)
{
    struct stats_reader *sr = CONTAINER_OF(j, struct stats_reader, job);

    sr->counted = store->ops->counts != NULL;
    if (sr->counted)
        sr->err = store->ops->counts->census(store, sr->now, COUNT_MAX, &sr->arena, &sr->census,
                                             &sr->error);
}

static void stats_done(struct store_job *j)
{
    struct stats_reader *sr = CONTAINER_OF(j, struct stats_reader, job);
    struct http_request *r = sr->x.http;
    struct server *sv = sr->x.server;

    sv->load.exchanges--;
    if (r)
        exchange_untie(&sr->x);
    if (r && sr->err == ERR_OK) {
        answer_stats(r, sv, sr);
        return;
    }
    if (r)
        answer_trouble(r, sr->err, sr->error.text);
    reader_free(sr);
}

void stats_get(struct server *sv, struct http_request *r)
{
    struct arena a = {0};

    if (!reading_has_room(sv, r, READING_MANY))
        return;
    struct stats_reader *sr = arena_alloc(&a, sizeof *sr);
    *sr = (struct stats_reader){.arena = a, .now = server_now(sv)};
    exchange_begin(&sr->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    sr->job = (struct store_job){.run = stats_run, .done = stats_done};
    reading_begin(&sr->x, READING_MANY, &sr->job);
}
