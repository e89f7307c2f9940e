#ifndef STORE_MEMORY_NODE_H
#define STORE_MEMORY_NODE_H

/* What nodes said of themselves, in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_node {
    struct arena arena;
    struct node_row row;
};

struct mem_nodes {
    struct mem_node *nodes; /* by name */
    size_t count;
};

void mem_nodes_fini(struct mem_nodes *m);

void mem_node_put(struct mem_nodes *m, const struct node_row *row);
void mem_node_list(const struct mem_nodes *m, struct arena *a, struct node_row **ret,
                   size_t *ret_count);

/* What is told by its own lease and the supervisor's (either may be NULL). */
void mem_node_judge(struct node_row *row, const struct lease *own, const struct lease *leads,
                    int64_t now);

#endif
