#ifndef STORE_MEMORY_AGENT_H
#define STORE_MEMORY_AGENT_H

/* Settings and breakers of agents in the state store in memory. No faults are injected here. */

#include "store/store.h"

struct mem_agent {
    struct arena arena;
    struct agent_row row;
    uint64_t generation; /* of its latest change */
};

struct mem_agents {
    struct mem_agent *agents; /* by name */
    size_t count;
    uint64_t generation; /* raised with each change */
};

void mem_agents_fini(struct mem_agents *m);
/* False: it is fenced, and the text has changed. */
bool mem_agent_fits(const struct mem_agents *m, const struct agent_change *c);
void mem_agent_put(struct mem_agents *m, const struct agent_change *c);
void mem_agent_since(const struct mem_agents *m, uint64_t after, struct arena *a,
                     struct agent_row **ret, size_t *ret_count);

#endif
