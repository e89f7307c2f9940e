/* What agents and clients send to an engine's nodes, until they have an answer: it is sent again to
 * a node that comes back, or to another one. engine.c is what they call. */

#include <stdlib.h>

#include "virtual/engine_node.h"

struct engine_node *engine_usable(struct engine *g)
{
    struct engine_node *found = NULL;

    for (unsigned i = 0; i < g->node_count; i++) {
        struct engine_node *n = &g->nodes[i];
        if (n->scheduler && !n->is_dying && (!found || (found->is_hung && !n->is_hung)))
            found = n;
    }
    return found;
}

/* ---- results ---- */

static unsigned bit(const struct engine_node *n)
{
    return 1U << n->number;
}

void sent_free(struct sent *s)
{
    link_remove(&s->link);
    arena_fini(&s->arena);
    free(s);
}

static void sent_deliver(struct sent *s, struct engine_node *n)
{
    s->at |= bit(n);
    engine_node_send(n, s->agent, &s->result, s);
    if (n->is_hung)
        agenda_add(&n->engine->agenda, n->engine->now + ENGINE_TIMEOUT_MS, sent_timed_out, n,
                   n->life);
}

/* Another node may have it as well. */
void sent_answered(struct engine_node *n, struct sent *s)
{
    s->at &= ~bit(n);
    s->is_known = true;
    if (s->at == 0)
        sent_free(s);
}

static struct engine_node *home_of(struct engine *g, struct slice token)
{
    struct engine_node *n = map_get(&g->homes, token);

    return n && n->scheduler && !n->is_dying ? n : engine_usable(g);
}

static struct sent *keep(struct engine *g, struct slice agent, const struct work_result *r)
{
    struct sent *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->agent = arena_copy(&s->arena, agent);
    result_copy(&s->arena, r, &s->result);
    list_push(&g->sent, &s->link);
    return s;
}

void engine_result(struct engine *g, struct slice agent, const struct work_result *r)
{
    struct engine_node *n = home_of(g, r->token);
    struct sent *s = g->config.commits ? keep(g, agent, r) : NULL;

    if (n && s)
        sent_deliver(s, n);
    else if (n)
        engine_node_send(n, agent, r, NULL);
}

void engine_heartbeat(struct engine *g, struct slice agent, struct slice token)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct heartbeat beat = {.token = token};
    struct heartbeats call = {.agent_name = agent,
                              .instance_name = SLICE("test"),
                              .list = &beat,
                              .count = 1,
                              .arena = &a};
    struct engine_node *n = home_of(g, token);

    if (n && n->is_hung)
        n = engine_usable(g);
    if (!n || n->is_hung)
        return;
    n->is_woken = true;
    scheduler_heartbeats(n->scheduler, &call);
}

/* ---- asks ---- */

/* Whether a client asked it. One that was answered is done with. */
bool asked_forget(struct engine *g, const struct ask *a, bool stays)
{
    LIST_FOREACH (l, after, &g->asked) {
        struct asked *known = CONTAINER_OF(l, struct asked, link);
        if (known->ask != a)
            continue;
        if (!stays) {
            link_remove(&known->link);
            free(known);
        }
        return true;
    }
    return false;
}

static void ask_again(struct asked *known, struct engine_node *n)
{
    known->at = n;
    *known->ask = known->as_made;
    n->is_woken = true;
    scheduler_ask(n->scheduler, known->ask);
}

void engine_ask(struct engine *g, struct ask *a)
{
    struct engine_node *n = engine_usable(g);

    if (g->config.commits) {
        struct asked *known = calloc(1, sizeof *known);
        ASSERT(known);
        *known = (struct asked){.ask = a, .as_made = *a, .at = n};
        list_push(&g->asked, &known->link);
    }
    if (!n)
        return;
    n->is_woken = true;
    scheduler_ask(n->scheduler, a);
}

/* ---- nodes that go and come ---- */

void sent_lost(struct engine_node *n)
{
    struct engine_node *other = engine_usable(n->engine);

    LIST_FOREACH (l, after, &n->engine->asked) {
        struct asked *known = CONTAINER_OF(l, struct asked, link);
        if (known->at != n)
            continue;
        known->at = NULL;
        if (other)
            ask_again(known, other);
    }
    LIST_FOREACH (l, after, &n->engine->sent) {
        struct sent *s = CONTAINER_OF(l, struct sent, link);
        if (!(s->at & bit(n)))
            continue;
        s->at &= ~bit(n);
        if (s->is_known && s->at == 0)
            sent_free(s);
        else if (s->at == 0 && other)
            sent_deliver(s, other);
    }
}

void sent_again(struct engine_node *n)
{
    LIST_FOREACH (l, after, &n->engine->asked) {
        struct asked *known = CONTAINER_OF(l, struct asked, link);
        if (!known->at)
            ask_again(known, n);
    }
    LIST_FOREACH (l, after, &n->engine->sent) {
        struct sent *s = CONTAINER_OF(l, struct sent, link);
        if (s->at == 0)
            sent_deliver(s, n);
    }
}

/* Agents have no answer from it, and try another one. It still reads what they sent. */
void sent_timed_out(void *arg, uint64_t life)
{
    struct engine_node *n = arg;
    struct engine_node *other = engine_usable(n->engine);

    if (n->life != life || !n->is_hung || !other || other->is_hung)
        return;
    LIST_FOREACH (l, after, &n->engine->sent) {
        struct sent *s = CONTAINER_OF(l, struct sent, link);
        if (s->at == bit(n))
            sent_deliver(s, other);
    }
}
