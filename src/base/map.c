/* Implements map.h: a hash map from byte strings to pointers, by open addressing with SipHash
 * (siphash.h). main.c of cli/ draws the key of the process; hash_stable has a fixed key, for
 * hashes that outlive the process. */

#include "base/map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/siphash.h"

static struct {
    struct siphash_key key;
    bool drawn;
    atomic_bool in_use; /* a table exists: its hashes use the present key */
} process;

void map_key_draw(void)
{
    ssize_t got;

    ASSERT(!process.drawn && !atomic_load(&process.in_use));
    do
        got = getrandom(&process.key, sizeof process.key, 0);
    while (got < 0 && errno == EINTR);
    ASSERT(got == (ssize_t)sizeof process.key);
    process.drawn = true;
}

bool map_key_is_drawn(void)
{
    return process.drawn;
}

static uint64_t hash_of(struct slice key)
{
    return siphash(&process.key, key.ptr, key.len, 1, 3);
}

uint64_t hash_stable(const void *ptr, size_t len)
{
    const unsigned char *p = ptr;
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

static size_t slot_of(const struct map *m, struct slice key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    while (m->entries[i].value && !(m->entries[i].hash == hash && slice_eq(m->entries[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return i;
}

static void grow(struct map *m)
{
    struct map old = *m;

    if (old.cap == 0 && !atomic_load_explicit(&process.in_use, memory_order_relaxed))
        atomic_store(&process.in_use, true);
    m->cap = old.cap ? old.cap * 2 : 16;
    m->entries = calloc(m->cap, sizeof *m->entries);
    if (!m->entries)
        out_of_memory(m->cap * sizeof *m->entries);
    for (size_t i = 0; i < old.cap; i++)
        if (old.entries[i].value)
            m->entries[slot_of(m, old.entries[i].key, old.entries[i].hash)] = old.entries[i];
    free(old.entries);
}

void map_fini(struct map *m)
{
    free(m->entries);
    *m = (struct map){0};
}

void *map_get(const struct map *m, struct slice key)
{
    if (m->len == 0)
        return NULL;
    return m->entries[slot_of(m, key, hash_of(key))].value;
}

void map_put(struct map *m, struct slice key, void *value)
{
    ASSERT(value);
    ASSERT(key.ptr);
    if ((m->len + 1) * 4 > m->cap * 3)
        grow(m);
    uint64_t hash = hash_of(key);
    struct map_entry *e = &m->entries[slot_of(m, key, hash)];
    if (!e->value)
        m->len++;
    *e = (struct map_entry){key, hash, value};
}

/* Deletion without tombstones (Knuth, vol. 3, 6.4, algorithm R): later entries that may be stored
 * in the hole move up. */
void *map_remove(struct map *m, struct slice key)
{
    if (m->len == 0)
        return NULL;
    size_t hole = slot_of(m, key, hash_of(key));
    void *value = m->entries[hole].value;
    if (!value)
        return NULL;
    for (size_t i = (hole + 1) & (m->cap - 1); m->entries[i].value; i = (i + 1) & (m->cap - 1)) {
        size_t home = m->entries[i].hash & (m->cap - 1);
        if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
            m->entries[hole] = m->entries[i];
            hole = i;
        }
    }
    m->entries[hole] = (struct map_entry){0};
    m->len--;
    return value;
}

void *map_next(const struct map *m, size_t *i)
{
    while (*i < m->cap) {
        void *value = m->entries[(*i)++].value;
        if (value)
            return value;
    }
    return NULL;
}

static int by_key(const void *x, const void *y)
{
    return slice_order(((const struct map_entry *)x)->key, ((const struct map_entry *)y)->key);
}

void **map_sorted(const struct map *m)
{
    struct map_entry *entries = calloc(m->len + 1, sizeof *entries);
    void **values = calloc(m->len + 1, sizeof *values);
    size_t n = 0;

    ASSERT(entries && values);
    for (size_t i = 0; i < m->cap; i++)
        if (m->entries[i].value)
            entries[n++] = m->entries[i];
    qsort(entries, n, sizeof *entries, by_key);
    for (size_t i = 0; i < n; i++)
        values[i] = entries[i].value;
    free(entries);
    return values;
}
