/* Implements heap.h: a binary heap of intrusive nodes in an array of pointers. Each node stores
 * its own position, which every move here keeps up to date, so that heap_remove finds it without
 * a search. */

#include "base/heap.h"

#include <stdlib.h>

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void place(struct heap *h, size_t i, struct heap_node *n)
{
    h->nodes[i] = n;
    n->pos = i + 1;
}

static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
    for (; i > 0 && before(n, h->nodes[(i - 1) / 2]); i = (i - 1) / 2)
        place(h, i, h->nodes[(i - 1) / 2]);
    place(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
    size_t child = 2 * i + 1;

    while (child < h->len) {
        if (child + 1 < h->len && before(h->nodes[child + 1], h->nodes[child]))
            child++;
        if (!before(h->nodes[child], n))
            break;
        place(h, i, h->nodes[child]);
        i = child;
        child = 2 * i + 1;
    }
    place(h, i, n);
}

void heap_fini(struct heap *h)
{
    free(h->nodes);
    *h = (struct heap){0};
}

void heap_push(struct heap *h, struct heap_node *n, int64_t key)
{
    ASSERT(n->pos == 0);
    if (h->len == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 64;
        h->nodes = realloc(h->nodes, h->cap * sizeof(struct heap_node *));
        if (!h->nodes)
            out_of_memory(h->cap * sizeof(struct heap_node *));
    }
    n->key = key;
    n->seq = h->seq++;
    sift_up(h, h->len++, n);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (n->pos == 0)
        return;
    size_t i = n->pos - 1;
    ASSERT(i < h->len);
    ASSERT(h->nodes[i] == n);
    struct heap_node *last = h->nodes[--h->len];
    n->pos = 0;
    if (last == n)
        return;
    if (i > 0 && before(last, h->nodes[(i - 1) / 2]))
        sift_up(h, i, last);
    else
        sift_down(h, i, last);
}
