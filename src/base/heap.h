#ifndef BASE_HEAP_H
#define BASE_HEAP_H

/*
 * A binary heap of intrusive nodes, least (key, seq) first. A node knows its position, so removal
 * costs O(log n). Nodes with equal keys leave in insertion order.
 */

#include "base/base.h"

struct heap_node {
    int64_t key;
    uint64_t seq;
    size_t pos; /* 1-based; 0 if it is in no heap */
};

struct heap {
    struct heap_node **nodes;
    size_t len, cap;
    uint64_t seq;
};

void heap_fini(struct heap *h); /* frees the heap, not the nodes */
void heap_push(struct heap *h, struct heap_node *n, int64_t key);
void heap_remove(struct heap *h, struct heap_node *n); /* harmless if it is in no heap */

static inline struct heap_node *heap_min(const struct heap *h) /* NULL if empty */
{
    return h->len ? h->nodes[0] : NULL;
}

#endif
