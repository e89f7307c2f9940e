#ifndef PICTURE_LAYOUT_H
#define PICTURE_LAYOUT_H

/*
 * Places the nodes of a graph without circles in layers: each node is below all of its
 * predecessors, edges that others imply are left out, and those over several layers go between the
 * nodes of these. The method is that of Sugiyama: layers by the longest path, order by barycentres,
 * then positions near the neighbours. All memory is in the arena. Deterministic.
 */

#include "base/arena.h"

struct layout_node {
    const uint16_t *before; /* its predecessors: numbers of nodes */
    uint16_t before_count;
    int width, height;
    /* What layout_find() finds: */
    uint32_t layer;
    int x; /* of its middle */
};

struct layout_edge {
    uint16_t from, to;
    uint32_t bend_count; /* one in each layer between them, or none: it goes straight */
    int *bends;          /* x of each */
};

struct layout_layer {
    int y, height; /* its top, and that of its highest node */
};

struct layout {
    struct layout_node *nodes; /* in an order in which each comes after its predecessors */
    uint16_t node_count;
    /* What layout_find() finds: */
    struct layout_edge *edges;
    size_t edge_count;
    size_t left_out; /* edges beyond LAYOUT_EDGES_MAX */
    struct layout_layer *layers;
    uint32_t layer_count;
    int width, height;
};

enum { LAYOUT_EDGES_MAX = 20000 };

/* The caller fills in the nodes. */
void layout_find(struct layout *l, struct arena *a);

#endif
