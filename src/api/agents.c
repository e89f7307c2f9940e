/*
 * Settings and breakers of agents: GET, PUT and DELETE /v1/agents/{agent} for settings, and POST
 * /v1/agents/{agent}/breaker by hand. A change is stored first; then it applies at this node at
 * once, and at the others within a second or so.
 */

#include "api/agents.h"

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "base/log.h"
#include "base/map.h"
#include "base/names.h"
#include "config/config_reader.h"
#include "definition/registry.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { REASON_MAX = BREAKER_REASON_SIZE - 1 };

struct change_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct agent_change change;
    struct audit audit;
    enum err err;
    struct error error;
};

/* ---- the answer ---- */

static const struct agent *agent_of(const struct server *sv, struct slice name)
{
    return map_get(&scheduler_dispatch(sv->scheduler)->agents, name);
}

void agent_get(struct server *sv, struct http_request *r)
{
    struct slice name = http_segment(r, 2);

    if (!is_name(name) || !agent_of(sv, name)) {
        http_problem(r, 404, "no-such-agent",
                     "agent \"%.*s\" has not called this node and has no settings",
                     SLICE_ARG(name));
        return;
    }
    agent_answer(sv, r, name);
}

/* ---- the change ---- */

static void put_run(struct store_job *j, struct store *store)
{
    struct change_call *s = CONTAINER_OF(j, struct change_call, job);

    s->err = store->ops->agent_put(store, &s->change, &s->audit, &s->error);
}

/* The other part is as it is known here. */
static void learn(struct server *sv, const struct agent_change *c)
{
    const struct agent *a = agent_of(sv, c->name);
    struct agent_row row = {.name = c->name};

    row.settings = c->part == AGENT_SETTINGS ? c->text : a ? a->settings_text : SLICE_NONE;
    row.breaker = c->part == AGENT_BREAKER ? c->text : a ? a->breaker_text : SLICE_NONE;
    scheduler_agent_stored(sv->scheduler, &row);
}

static void put_done(struct store_job *j)
{
    struct change_call *s = CONTAINER_OF(j, struct change_call, job);
    struct server *sv = s->x.server;
    struct http_request *r = s->x.http;
    struct arena a = s->arena;

    if (s->err == ERR_OK) {
        log_line(LOG_WARN, "event=%.*s agent=%.*s by=%.*s", SLICE_ARG(s->audit.verb),
                 SLICE_ARG(s->change.name), SLICE_ARG(s->audit.actor));
        learn(sv, &s->change);
    }
    if (r) {
        exchange_untie(&s->x);
        if (s->err == ERR_OK)
            agent_answer(sv, r, s->change.name);
        else
            answer_trouble(r, s->err, s->error.text);
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

/* `verb` and `reason` are for the audit. */
static void put_begin(struct server *sv, struct http_request *r, const struct agent_change *c,
                      const char *verb, struct slice reason)
{
    CLEANUP(buf_fini) struct buf why = {0};
    struct arena a = {0};
    struct change_call *s = arena_alloc(&a, sizeof *s);

    buf_slice(&why, c->name);
    if (reason.ptr)
        buf_fmt(&why, ": %.*s", SLICE_ARG(reason));
    *s = (struct change_call){.arena = a};
    s->change = (struct agent_change){.name = arena_copy(&s->arena, c->name),
                                      .part = c->part,
                                      .text = arena_copy(&s->arena, c->text)};
    s->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&s->arena, sv->caller),
                              .address = caller_address(sv, r, &s->arena),
                              .verb = slice_of(verb),
                              .reason = arena_copy(&s->arena, buf_view(&why))};
    s->job = (struct store_job){.run = put_run, .done = put_done};
    exchange_begin(&s->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &s->job);
}

static bool name_ok(struct http_request *r)
{
    if (is_name(http_segment(r, 2)))
        return true;
    http_problem(r, 422, "bad-agent",
                 "the name of an agent is 1 to 128 of A-Z, a-z, 0-9, '.', '_', ':' and '-'");
    return false;
}

/* Settings are never forgotten: there are as many as agents that call. Those of one that has some
 * may always be changed. */
static bool settings_have_room(struct server *sv, struct http_request *r, struct slice name)
{
    const struct dispatch *d = scheduler_dispatch(sv->scheduler);
    const struct agent *known = agent_of(sv, name);
    const struct agent *a = NULL;
    size_t count = 0;

    if (known && known->settings_text.ptr)
        return true;
    for (size_t i = 0; (a = map_next(&d->agents, &i));)
        count += a->settings_text.ptr != NULL;
    if (count < sv->limits.agents_max)
        return true;
    http_problem(r, 503, "busy",
                 "%zu agents have settings, expected at most as many: reset those that are not "
                 "needed, or raise --limit agents",
                 count);
    return false;
}

void agent_put(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct agent_settings st;
    struct error e = {0};

    if (!name_ok(r))
        return;
    const struct json *j = body_json(r, &tree);
    if (!j)
        return;
    if (settings_read(j, &a, &st, &e) != ERR_OK) {
        http_problem(r, 422, "bad-settings", "%s", e.text);
        return;
    }
    if (!settings_have_room(sv, r, http_segment(r, 2)) || !asks_have_room(sv, r, r->body.len))
        return;
    put_begin(sv, r,
              &(struct agent_change){.name = http_segment(r, 2),
                                     .part = AGENT_SETTINGS,
                                     .text = j->raw},
              "agent.set", SLICE_NONE);
}

void agent_delete(struct server *sv, struct http_request *r)
{
    if (name_ok(r) && asks_have_room(sv, r, 0))
        put_begin(sv, r, &(struct agent_change){.name = http_segment(r, 2), .part = AGENT_SETTINGS},
                  "agent.reset", SLICE_NONE);
}

static bool breaker_body_ok(struct http_request *r, const struct json *j, bool *ret_open)
{
    const struct json *reason = json_get(j, "reason");
    struct slice state = json_get_text(j, "state");

    if (!members_ok(r, j, NAMES("state", "reason"), "a change of a breaker"))
        return false;
    *ret_open = slice_is(state, "open");
    if (!*ret_open && !slice_is(state, "closed")) {
        http_problem(r, 422, "bad-state", "state must be \"open\" or \"closed\"");
        return false;
    }
    if (reason && reason->type != JSON_NULL
        && (reason->type != JSON_STRING || reason->text.len > REASON_MAX)) {
        http_problem(r, 422, "bad-reason", "reason must be a text of at most %d bytes", REASON_MAX);
        return false;
    }
    return true;
}

/* A search for an agent by its name among those that workflows have work for. */
struct search {
    struct slice name;
    bool found;
    struct slice near; /* another one that may be meant; NONE: there is none */
};

static void look_at(struct search *s, struct slice name)
{
    if (slice_eq(name, s->name))
        s->found = true;
    else if (name_is_near(s->name, name))
        s->near = name;
}

static void look_into(void *arg, const struct definition *d)
{
    const struct workflow *w = &d->workflow;

    for (uint16_t i = 0; i < w->step_count; i++) {
        look_at(arg, w->steps[i].call.agent);
        if (w->steps[i].undo_kind == UNDO_CALL)
            look_at(arg, w->steps[i].undo.agent);
    }
}

/* A misspelt name would hold nothing back, and would be listed for good. */
static bool agent_is_there(struct server *sv, struct http_request *r, struct slice name)
{
    struct search s = {.name = name, .found = agent_of(sv, name) != NULL};
    CLEANUP(buf_fini) struct buf hint = {0};
    struct agent *a = NULL;

    if (!s.found)
        registry_each(&sv->workflows, look_into, &s);
    if (s.found)
        return true;
    for (size_t i = 0; (a = map_next(&scheduler_dispatch(sv->scheduler)->agents, &i));)
        look_at(&s, a->name);
    if (s.near.ptr)
        buf_fmt(&hint, "; did you mean \"%.*s\"?", SLICE_ARG(s.near));
    http_problem(r, 404, "no-such-agent",
                 "there is no agent \"%.*s\": it has not called this node, no workflow has a step "
                 "for it, and it has no settings%s",
                 SLICE_ARG(name), hint.ptr ? hint.ptr : "");
    return false;
}

void breaker_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    bool open = false;

    if (!name_ok(r))
        return;
    const struct json *j = body_json(r, &tree);
    if (!j || !breaker_body_ok(r, j, &open) || !asks_have_room(sv, r, r->body.len))
        return;
    struct slice name = http_segment(r, 2);
    struct slice reason = json_get_text(j, "reason");
    if (!agent_is_there(sv, r, name))
        return;
    scheduler_breaker_by_hand(sv->scheduler, name, open, reason, &text);
    put_begin(sv, r,
              &(struct agent_change){.name = name, .part = AGENT_BREAKER, .text = buf_view(&text)},
              open ? "agent.open" : "agent.close", reason);
}
