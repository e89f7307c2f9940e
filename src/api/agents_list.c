/*
 * GET /v1/agents and /v1/agents/{agent}: what this node knows of the agents that call it, and of
 * those that steps wait for. What holds the steps back that wait for an agent is one word for each.
 */

#include "api/agents.h"
#include "api/handlers.h"
#include "api/listing.h"
#include "base/list.h"
#include "base/map.h"
#include "base/when.h"
#include "dispatch/dispatch.h"
#include "node/node.h"
#include "json/json.h"

static const char *held_text(const struct agent *a, const struct lane *l, int64_t now)
{
    const struct breaker *b = &a->breaker;

    if (b->state != BREAKER_CLOSED && breaker_room(b, &a->settings.breaker) == 0)
        return "breaker";
    if (!dispatch_is_connected(a, now))
        return "no-instance";
    if (lane_held_by(l, now) != HELD_BY_NO_LIMIT)
        return "limit";
    if (list_empty(&a->calls))
        return "no-place";
    return agent_has_call(a, now) ? NULL : "health";
}

/* What waits in the store alone: nothing of it is worth having in memory. */
static const char *store_held_text(const struct agent *a, int64_t now)
{
    if (breaker_room(&a->breaker, &a->settings.breaker) == 0)
        return "breaker";
    if (!dispatch_is_connected(a, now))
        return "no-instance";
    return limiter_is_shut(&a->limiter) ? "limit" : NULL;
}

/* The limit or state that holds back the next step; steps held by a limit of their own are reported
 * last. */
const char *agent_held_by(const struct agent *a, bool stored, int64_t now)
{
    const char *held = NULL;
    const struct lane *l = NULL;

    for (size_t i = 0; (l = map_next(&a->lanes, &i));) {
        const char *why = l->queue.len > 0 ? held_text(a, l, now) : NULL;
        if (!why)
            continue;
        held = why;
        if (!slice_is(slice_of(why), "limit"))
            break;
    }
    return held || a->waiting > 0 || !stored ? held : store_held_text(a, now);
}

static void render_rate(struct buf *b, const struct limit *l)
{
    const char *unit = l->rate_ms == MS_PER_S ? "s" : l->rate_ms == MS_PER_MIN ? "m" : "h";
    CLEANUP(buf_fini) struct buf text = {0};

    json_key(b, "rate");
    if (l->rate_count == 0) {
        json_null(b);
        return;
    }
    buf_fmt(&text, "%u/%s", l->rate_count, unit);
    json_string(b, buf_view(&text));
}

/* One limit: as it was set, and what of it is in use at this node. */
static void render_limit(struct buf *b, const struct limit *whole, const struct limiter *l)
{
    json_key(b, "concurrency");
    if (whole->concurrency)
        json_number(b, whole->concurrency);
    else
        json_null(b);
    render_rate(b, whole);
    json_key(b, "part");
    if (l->by_concurrency)
        json_number(b, l->most);
    else
        json_null(b);
    json_key(b, "open_attempts");
    json_number(b, l->open);
}

static void render_limits(struct buf *b, const struct agent *a)
{
    json_key(b, "limits");
    json_open(b, '{');
    render_limit(b, &a->limit, &a->limiter);
    json_key(b, "actions");
    json_open(b, '{');
    for (size_t i = 0; i < a->settings.action_count; i++) {
        const struct lane *l = map_get(&a->lanes, a->settings.actions[i].action);
        if (!l || !l->limited)
            continue;
        json_key_slice(b, l->action);
        json_open(b, '{');
        render_limit(b, &l->limit, &l->limiter);
        json_key(b, "waiting_steps");
        json_number(b, (int64_t)l->queue.len);
        json_close(b, '}');
    }
    json_close(b, '}');
    json_close(b, '}');
}

static void render_instance(struct buf *b, const struct instance *in, int64_t now)
{
    struct ends ends = in->health.ends;

    ends_roll(&ends, now);
    json_open(b, '{');
    json_key(b, "instance");
    json_string(b, in->name);
    json_key(b, "places");
    json_number(b, in->places);
    json_key(b, "places_given");
    json_number(b, instance_places(in, now));
    json_key(b, "open_attempts");
    json_number(b, in->open);
    json_key(b, "seen_at");
    json_time(b, in->seen_at);
    json_key(b, "heartbeat_at");
    json_time(b, in->heartbeat_at);
    json_key(b, "health");
    json_string(b, slice_of(health_state_text(in->health.state)));
    json_key(b, "failures");
    json_number(b, ends_bad_percent(&ends));
    json_key(b, "trial_at");
    json_time(b, in->health.state == HEALTH_ILL ? in->health.trial_at : 0);
    json_close(b, '}');
}

/* All but the instances. */
static void render_agent(struct buf *b, const struct agent *a, int64_t now)
{
    json_key(b, "agent");
    json_string(b, a->name);
    json_key(b, "connected");
    json_bool(b, dispatch_is_connected(a, now));
    json_key(b, "parked_calls");
    json_number(b, a->parked);
    json_key(b, "waiting_steps");
    json_number(b, (int64_t)a->waiting);
    json_key(b, "held_by");
    bool stored = a->stored || (backlog_any(a->backlog) && a->breaker.state != BREAKER_CLOSED);
    const char *held = agent_held_by(a, stored, now);
    json_string(b, held ? slice_of(held) : SLICE_NONE);
    render_limits(b, a);
    json_key(b, "breaker");
    breaker_render(b, &a->breaker);
}

/* One that has not called, and has no settings any more. */
static void render_unknown(struct buf *b, struct slice name)
{
    const struct breaker closed = {0};

    json_key(b, "agent");
    json_string(b, name);
    json_key(b, "connected");
    json_bool(b, false);
    json_key(b, "breaker");
    breaker_render(b, &closed);
}

/* ---- in slices ---- */

static const struct agent *agent_of(const struct listing *l, struct slice name)
{
    return map_get(&scheduler_dispatch(l->x.server->scheduler)->agents, name);
}

static bool snapshot_agents(struct listing *l, struct http_request *r)
{
    (void)r;
    listing_snapshot(l, &l->names, &scheduler_dispatch(l->x.server->scheduler)->agents, NULL, NULL);
    return true;
}

static void begin_instances(struct listing *l, const struct agent *a)
{
    json_key(&l->out, "instances");
    json_open(&l->out, '[');
    l->inner = (struct listed_names){0};
    if (a)
        listing_snapshot(l, &l->inner, &a->instances, NULL, NULL);
}

/* One instance. True: there are no more, and the agent is complete. */
static bool render_next_instance(struct listing *l, const struct agent *a)
{
    struct listed_names *n = &l->inner;

    if (a && n->at < n->count) {
        const struct instance *in = map_get(&a->instances, n->list[n->at++]);
        if (in)
            render_instance(&l->out, in, server_now(l->x.server));
        if (n->at < n->count)
            return false;
    }
    l->inner = (struct listed_names){0};
    json_close(&l->out, ']');
    json_close(&l->out, '}');
    return true;
}

static bool render_listed(struct listing *l, struct slice name)
{
    const struct agent *a = agent_of(l, name);

    if (l->inner.list)
        return render_next_instance(l, a);
    if (!a)
        return true;
    json_open(&l->out, '{');
    render_agent(&l->out, a, server_now(l->x.server));
    begin_instances(l, a);
    return l->inner.count > 0 ? false : render_next_instance(l, a);
}

static bool render_one(struct listing *l, struct slice name)
{
    const struct agent_settings nothing = settings_default();
    const struct agent *a = agent_of(l, name);

    if (l->inner.list)
        return render_next_instance(l, a);
    json_open(&l->out, '{');
    json_key(&l->out, "settings");
    settings_write(&l->out, a ? &a->settings : &nothing);
    if (a)
        render_agent(&l->out, a, server_now(l->x.server));
    else
        render_unknown(&l->out, name);
    begin_instances(l, a);
    return l->inner.count > 0 ? false : render_next_instance(l, a);
}

void agents_get(struct server *sv, struct http_request *r)
{
    static const struct listing_kind kind = {.key = "agents",
                                             .names = snapshot_agents,
                                             .render = render_listed};

    listing_begin(sv, r, &kind, SLICE_NONE, NULL);
}

void agent_answer(struct server *sv, struct http_request *r, struct slice name)
{
    static const struct listing_kind kind = {.render = render_one};

    listing_begin(sv, r, &kind, name, NULL);
}
