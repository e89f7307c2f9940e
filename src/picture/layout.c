/* Places a graph in layers (layout.h). A vertex is a node, or the bend of an edge in a layer that
 * it crosses. */

#include "picture/layout.h"

#include <stdlib.h>

enum {
    BENDS_MAX = 20000, /* of all edges; with more, those over several layers go straight */
    SWEEPS = 6,
    GAP_X = 24,
    GAP_Y = 34,
    BEND_WIDTH = 8,
};

struct vertex {
    int width;
    uint32_t layer;
    uint32_t up_count, down_count; /* neighbours in the layer above, and in that below */
    uint32_t *up, *down;
    double key; /* by which its layer is sorted */
    double x, left, right;
    uint32_t rank; /* its place in the layer */
};

struct placing {
    struct layout *layout;
    struct arena *arena;
    struct vertex *list; /* the nodes first */
    uint32_t count;
    uint32_t **layers; /* the vertices of each, from left to right */
    uint32_t *layer_sizes;
};

/* ---- layers and edges ---- */

static void find_layers(struct layout *l)
{
    for (uint16_t i = 0; i < l->node_count; i++) {
        struct layout_node *n = &l->nodes[i];
        n->layer = 0;
        for (uint16_t k = 0; k < n->before_count; k++) {
            ASSERT(n->before[k] < i);
            uint32_t above = l->nodes[n->before[k]].layer;
            n->layer = max_u32(n->layer, above + 1);
        }
        l->layer_count = max_u32(l->layer_count, n->layer + 1);
    }
}

static bool has_bit(const uint64_t *set, uint16_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

static void add_edge(struct layout *l, uint16_t from, uint16_t to)
{
    if (l->edge_count == LAYOUT_EDGES_MAX)
        l->left_out++;
    else
        l->edges[l->edge_count++] = (struct layout_edge){.from = from, .to = to};
}

/* An edge is implied if there is another way from its begin to its end. */
static void find_edges(struct layout *l, struct arena *a)
{
    size_t words = l->node_count / 64 + 1U;
    size_t most = 1;

    for (uint16_t i = 0; i < l->node_count; i++)
        most += l->nodes[i].before_count;
    most = most < LAYOUT_EDGES_MAX ? most : LAYOUT_EDGES_MAX;
    l->edges = arena_alloc(a, most * sizeof *l->edges);
    uint64_t *all = calloc(l->node_count + 1U, words * sizeof *all); /* the ancestors of each */
    ASSERT(all);
    for (uint16_t i = 0; i < l->node_count; i++) {
        const struct layout_node *n = &l->nodes[i];
        uint64_t *own = all + i * words;
        for (uint16_t k = 0; k < n->before_count; k++)
            for (size_t w = 0; w < words; w++)
                own[w] |= all[n->before[k] * words + w];
        for (uint16_t k = 0; k < n->before_count; k++)
            if (!has_bit(own, n->before[k]))
                add_edge(l, n->before[k], i);
        for (uint16_t k = 0; k < n->before_count; k++)
            own[n->before[k] / 64] |= UINT64_C(1) << (n->before[k] % 64);
    }
    free(all);
}

/* ---- vertices ---- */

static uint32_t span(const struct layout *l, const struct layout_edge *e)
{
    return l->nodes[e->to].layer - l->nodes[e->from].layer;
}

static uint32_t count_bends(const struct layout *l)
{
    uint64_t all = 0;

    for (size_t i = 0; i < l->edge_count; i++)
        all += span(l, &l->edges[i]) - 1;
    return all > BENDS_MAX ? 0 : (uint32_t)all;
}

static void join(struct placing *p, uint32_t above, uint32_t below)
{
    struct vertex *a = &p->list[above];
    struct vertex *b = &p->list[below];

    if (a->down)
        a->down[a->down_count] = below;
    if (b->up)
        b->up[b->up_count] = above;
    a->down_count++;
    b->up_count++;
}

/* The first time counts the neighbours, the second time writes them down. */
static void join_all(struct placing *p, bool has_bends)
{
    const struct layout *l = p->layout;
    uint32_t next = l->node_count;

    for (size_t i = 0; i < l->edge_count; i++) {
        const struct layout_edge *e = &l->edges[i];
        uint32_t above = e->from;
        if (span(l, e) > 1 && !has_bends)
            continue;
        for (uint32_t k = 1; k < span(l, e); k++) {
            p->list[next].layer = l->nodes[e->from].layer + k;
            p->list[next].width = BEND_WIDTH;
            join(p, above, next);
            above = next++;
        }
        join(p, above, e->to);
    }
    ASSERT(next == p->count);
}

static void make_vertices(struct placing *p)
{
    const struct layout *l = p->layout;
    uint32_t bends = count_bends(l);

    p->count = l->node_count + bends;
    p->list = arena_alloc(p->arena, (p->count + 1U) * sizeof *p->list);
    for (uint16_t i = 0; i < l->node_count; i++)
        p->list[i] = (struct vertex){.width = l->nodes[i].width, .layer = l->nodes[i].layer};
    join_all(p, bends > 0);
    for (uint32_t i = 0; i < p->count; i++) {
        struct vertex *v = &p->list[i];
        v->up = arena_alloc(p->arena, (v->up_count + 1U) * sizeof *v->up);
        v->down = arena_alloc(p->arena, (v->down_count + 1U) * sizeof *v->down);
        v->up_count = v->down_count = 0;
    }
    join_all(p, bends > 0);
}

static void fill_layers(struct placing *p)
{
    uint32_t layers = p->layout->layer_count;

    p->layers = arena_alloc(p->arena, (layers + 1U) * sizeof(uint32_t *));
    p->layer_sizes = arena_alloc(p->arena, (layers + 1U) * sizeof *p->layer_sizes);
    for (uint32_t i = 0; i < p->count; i++)
        p->layer_sizes[p->list[i].layer]++;
    for (uint32_t k = 0; k < layers; k++) {
        p->layers[k] = arena_alloc(p->arena, (p->layer_sizes[k] + 1U) * sizeof **p->layers);
        p->layer_sizes[k] = 0;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        struct vertex *v = &p->list[i];
        v->rank = p->layer_sizes[v->layer]++;
        p->layers[v->layer][v->rank] = i;
    }
}

/* ---- the order in each layer ---- */

static double mean_rank(const struct placing *p, const uint32_t *list, uint32_t count,
                        double otherwise)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += p->list[list[i]].rank;
    return count > 0 ? sum / count : otherwise;
}

static int by_key(const void *a, const void *b, void *arg)
{
    const struct vertex *list = arg;
    const struct vertex *x = &list[*(const uint32_t *)a];
    const struct vertex *y = &list[*(const uint32_t *)b];

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void sort_layer(struct placing *p, uint32_t layer, bool is_down)
{
    uint32_t *ids = p->layers[layer];

    for (uint32_t i = 0; i < p->layer_sizes[layer]; i++) {
        struct vertex *v = &p->list[ids[i]];
        v->key = is_down ? mean_rank(p, v->up, v->up_count, v->rank)
                         : mean_rank(p, v->down, v->down_count, v->rank);
    }
    qsort_r(ids, p->layer_sizes[layer], sizeof *ids, by_key, p->list);
    for (uint32_t i = 0; i < p->layer_sizes[layer]; i++)
        p->list[ids[i]].rank = i;
}

/* ---- positions ---- */

static double mean_x(const struct placing *p, const uint32_t *list, uint32_t count,
                     double otherwise)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += p->list[list[i]].x;
    return count > 0 ? sum / count : otherwise;
}

static double distance(const struct vertex *a, const struct vertex *b)
{
    return (a->width + b->width) / 2.0 + GAP_X;
}

/* As near to the neighbours as the others of the layer let it: the middle of what is packed to the
 * right, and of what is packed to the left, keeps all distances. */
static void place_layer(struct placing *p, uint32_t layer, bool is_down)
{
    const uint32_t *ids = p->layers[layer];
    uint32_t count = p->layer_sizes[layer];

    for (uint32_t i = 0; i < count; i++) {
        struct vertex *v = &p->list[ids[i]];
        v->key =
            is_down ? mean_x(p, v->up, v->up_count, v->x) : mean_x(p, v->down, v->down_count, v->x);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct vertex *v = &p->list[ids[i]];
        const struct vertex *last = i > 0 ? &p->list[ids[i - 1]] : NULL;
        double least = last ? last->right + distance(last, v) : v->key;
        v->right = v->key > least ? v->key : least;
    }
    for (uint32_t i = count; i-- > 0;) {
        struct vertex *v = &p->list[ids[i]];
        const struct vertex *next = i + 1 < count ? &p->list[ids[i + 1]] : NULL;
        double most = next ? next->left - distance(v, next) : v->key;
        v->left = v->key < most ? v->key : most;
        v->x = (v->left + v->right) / 2;
    }
}

static void pack_layers(struct placing *p)
{
    for (uint32_t k = 0; k < p->layout->layer_count; k++)
        for (uint32_t i = 1; i < p->layer_sizes[k]; i++) {
            const struct vertex *last = &p->list[p->layers[k][i - 1]];
            struct vertex *v = &p->list[p->layers[k][i]];
            v->x = last->x + distance(last, v);
        }
}

static void sweep(struct placing *p, void (*visit)(struct placing *p, uint32_t layer, bool is_down))
{
    uint32_t layers = p->layout->layer_count;

    for (int i = 0; i < SWEEPS; i++) {
        for (uint32_t k = 1; i % 2 == 0 && k < layers; k++)
            visit(p, k, true);
        for (uint32_t k = layers; i % 2 == 1 && k-- > 1;)
            visit(p, k - 1, false);
    }
}

/* ---- the result ---- */

static void take_nodes(struct placing *p)
{
    struct layout *l = p->layout;
    double left = 0;
    double right = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct vertex *v = &p->list[i];
        left = i == 0 || v->x - v->width / 2.0 < left ? v->x - v->width / 2.0 : left;
        right = i == 0 || v->x + v->width / 2.0 > right ? v->x + v->width / 2.0 : right;
    }
    for (uint32_t i = 0; i < p->count; i++)
        p->list[i].x -= left;
    for (uint16_t i = 0; i < l->node_count; i++)
        l->nodes[i].x = (int)(p->list[i].x + 0.5);
    l->width = (int)(right - left) + 1;
}

static void take_bends(struct placing *p)
{
    struct layout *l = p->layout;
    uint32_t next = l->node_count;

    for (size_t i = 0; i < l->edge_count && p->count > l->node_count; i++) {
        struct layout_edge *e = &l->edges[i];
        e->bend_count = span(l, e) - 1;
        e->bends = arena_alloc(p->arena, (e->bend_count + 1U) * sizeof *e->bends);
        for (uint32_t k = 0; k < e->bend_count; k++)
            e->bends[k] = (int)(p->list[next++].x + 0.5);
    }
}

static void stack_layers(struct layout *l, struct arena *a)
{
    l->layers = arena_alloc(a, (l->layer_count + 1U) * sizeof *l->layers);
    for (uint16_t i = 0; i < l->node_count; i++) {
        struct layout_layer *at = &l->layers[l->nodes[i].layer];
        at->height = l->nodes[i].height > at->height ? l->nodes[i].height : at->height;
    }
    l->height = 0;
    for (uint32_t k = 0; k < l->layer_count; k++) {
        l->layers[k].y = l->height + (k > 0 ? GAP_Y : 0);
        l->height = l->layers[k].y + l->layers[k].height;
    }
}

void layout_find(struct layout *l, struct arena *a)
{
    struct placing p = {.layout = l, .arena = a};

    find_layers(l);
    find_edges(l, a);
    make_vertices(&p);
    fill_layers(&p);
    sweep(&p, sort_layer);
    pack_layers(&p);
    sweep(&p, place_layer);
    take_nodes(&p);
    take_bends(&p);
    stack_layers(l, a);
}
