/*
 * Sorts the members of an object. A body of 4 MiB may have 300 000 in any order, and sorting blocks
 * the event loop. So they are radix-sorted by 8 bytes of their names at a time; only names that are
 * still equal then are compared.
 */

#include "json/sorted.h"

#include <stdlib.h>

enum { COMPARED = 256, LEVELS = 8, DIGITS = 8 };

static int by_name(const void *a, const void *b)
{
    const struct json *x = ((const struct json_named *)a)->member;
    const struct json *y = ((const struct json_named *)b)->member;
    int order = slice_order(x->key, y->key);

    return order ? order : (x->key_at > y->key_at) - (x->key_at < y->key_at);
}

/* The length of the prefix that all names share. */
static size_t common(const struct json_named *list, size_t n)
{
    struct slice first = list[0].member->key;
    size_t len = first.len;

    for (size_t i = 1; i < n; i++) {
        struct slice key = list[i].member->key;
        size_t same = 0;
        len = key.len < len ? key.len : len;
        while (same < len && key.ptr[same] == first.ptr[same])
            same++;
        len = same;
    }
    return len;
}

static uint64_t head_of(struct slice key, size_t from)
{
    uint64_t head = 0;

    for (size_t i = 0; i < sizeof head && from + i < key.len; i++)
        head |= (uint64_t)(unsigned char)key.ptr[from + i] << (56 - 8 * i);
    return head;
}

/* Stable. */
static void sort_heads(struct json_named *list, struct json_named *spare, size_t n)
{
    uint32_t counts[DIGITS][256] = {{0}};
    struct json_named *from = list;
    struct json_named *to = spare;

    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++)
            counts[d][list[i].head >> 8 * d & 255]++;
    for (int d = 0; d < DIGITS; d++) {
        uint32_t at = 0;
        if (counts[d][list[0].head >> 8 * d & 255] == n)
            continue; /* all are equal there */
        for (int k = 0; k < 256; k++) {
            uint32_t count = counts[d][k];
            counts[d][k] = at;
            at += count;
        }
        for (size_t i = 0; i < n; i++)
            to[counts[d][from[i].head >> 8 * d & 255]++] = from[i];
        struct json_named *other = from;
        from = to;
        to = other;
    }
    if (from != list)
        memcpy(list, from, n * sizeof *list);
}

static void sort(struct json_named *list, struct json_named *spare, size_t n, int levels)
{
    if (n <= COMPARED || levels == 0) {
        qsort(list, n, sizeof *list, by_name);
        return;
    }
    size_t from = common(list, n);
    for (size_t i = 0; i < n; i++)
        list[i].head = head_of(list[i].member->key, from);
    sort_heads(list, spare, n);
    for (size_t i = 0, k = 1; i < n; i = k++) {
        while (k < n && list[k].head == list[i].head)
            k++;
        if (k - i > 1)
            sort(list + i, spare, k - i, levels - 1);
    }
}

struct json_named *json_sorted(const struct json *object)
{
    size_t room = object->count > COMPARED ? 2 : 1;
    struct json_named *list = calloc(object->count * room + 1, sizeof *list);
    size_t n = 0;

    if (!list)
        out_of_memory(object->count * room * sizeof *list);
    for (const struct json *m = object->child; m; m = m->next)
        list[n++].member = m;
    ASSERT(n == object->count);
    sort(list, list + n, n, LEVELS);
    return list;
}
