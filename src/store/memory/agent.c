/*
 * Settings and breakers of agents in memory. No faults are injected here; stored.c has the
 * operations.
 */
#include "store/memory/agent.h"

#include <stdlib.h>

#include "store/row.h"

void mem_agents_fini(struct mem_agents *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->agents[i].arena);
    free(m->agents);
    *m = (struct mem_agents){0};
}

/* Its place, or that where it would be. */
static size_t place_of(const struct mem_agents *m, struct slice name)
{
    size_t i = 0;

    while (i < m->count && slice_order(m->agents[i].row.name, name) < 0)
        i++;
    return i;
}

static bool is_at(const struct mem_agents *m, size_t i, struct slice name)
{
    return i < m->count && slice_eq(m->agents[i].row.name, name);
}

bool mem_agent_fits(const struct mem_agents *m, const struct agent_change *c)
{
    size_t i = place_of(m, c->name);

    if (!c->fenced || !is_at(m, i, c->name))
        return true;
    const struct agent_row *row = &m->agents[i].row;
    return slice_eq(c->part == AGENT_BREAKER ? row->breaker : row->settings, c->was);
}

void mem_agent_put(struct mem_agents *m, const struct agent_change *c)
{
    size_t i = place_of(m, c->name);
    struct mem_agent fresh = {.generation = ++m->generation};
    struct agent_row row = {.name = c->name};

    if (!is_at(m, i, c->name)) {
        m->agents = reallocarray(m->agents, m->count + 1, sizeof *m->agents);
        ASSERT(m->agents);
        memmove(&m->agents[i + 1], &m->agents[i], (m->count++ - i) * sizeof *m->agents);
        m->agents[i] = (struct mem_agent){0};
    } else {
        row = m->agents[i].row;
    }
    fresh.row.name = arena_copy(&fresh.arena, row.name);
    fresh.row.settings =
        arena_copy(&fresh.arena, c->part == AGENT_SETTINGS ? c->text : row.settings);
    fresh.row.breaker = arena_copy(&fresh.arena, c->part == AGENT_BREAKER ? c->text : row.breaker);
    arena_fini(&m->agents[i].arena);
    m->agents[i] = fresh;
}

void mem_agent_since(const struct mem_agents *m, uint64_t after, struct arena *a,
                     struct agent_row **ret, size_t *ret_count)
{
    *ret_count = 0;
    *ret = arena_alloc(a, (m->count + 1) * sizeof **ret);
    for (size_t i = 0; i < m->count; i++) {
        const struct agent_row *row = &m->agents[i].row;
        if (m->agents[i].generation > after)
            (*ret)[(*ret_count)++] =
                (struct agent_row){arena_copy(a, row->name), arena_copy(a, row->settings),
                                   arena_copy(a, row->breaker)};
    }
}
