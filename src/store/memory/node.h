#ifndef STORE_MEMORY_NODE_H
#define STORE_MEMORY_NODE_H

/* Leases and rows of nodes, in memory. No faults are injected here. */

#include "store/store.h"

struct mem_lease {
    struct arena arena;
    struct slice name;
    struct lease lease;
};

struct mem_node {
    struct arena arena;
    struct node_row row;
};

struct mem_nodes {
    struct mem_node *nodes; /* by name */
    size_t count;
    struct mem_lease *leases;
    size_t lease_count;
};

void mem_nodes_fini(struct mem_nodes *m);

/* NULL: no node ever had it. Valid until the next try. */
const struct lease *mem_lease_find(const struct mem_nodes *m, struct slice name);
struct lease mem_lease_try(struct mem_nodes *m, const struct lease_try *want);
/* The owner "n1/3" lives as long as it holds the lease "node/n1". */
bool mem_owner_lives(const struct mem_nodes *m, struct slice owner, int64_t now);

void mem_node_put(struct mem_nodes *m, const struct node_row *row);
void mem_node_list(const struct mem_nodes *m, int64_t now, struct arena *a, struct node_row **ret,
                   size_t *ret_count);

/* Fills in `schedulers` and `schedulers_before`. */
void mem_schedulers(const struct mem_nodes *m, struct survey *v);

#endif
