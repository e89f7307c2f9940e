#ifndef BASE_MAP_H
#define BASE_MAP_H

/*
 * A map from byte strings to pointers: open addressing, linear probing, at most three quarters
 * full. Keys are borrowed: they must live, unchanged, as long as their entry (usually they are part
 * of the value). Values are never NULL.
 *
 * The hash is SipHash-1-3 under a key of the process, so that no outsider can choose keys that
 * collide. Until map_key_draw() the key is fixed: the order of iteration is then a function of the
 * sequence of insertions and removals, the same in each run. Tests and the simulator rely on that.
 * Afterwards the order differs in each process: nothing reported, stored or compared between
 * processes may depend on it (map_sorted() does not).
 */

#include "base/base.h"

struct map_entry {
    struct slice key;
    uint64_t hash;
    void *value;
};

struct map {
    struct map_entry *entries;
    size_t len, cap;
};

/* Call once at the start of a program, before its first map and while it has one thread. */
void map_key_draw(void);
bool map_key_is_drawn(void);

/* FNV-1a with a final mix: the same in every process and version. Collisions are easy to construct,
 * so use it for values that must agree between processes (lines of actions, ids of traces and
 * alerts), never for identity or for a table with keys chosen by others. */
uint64_t hash_stable(const void *ptr, size_t len);

void map_fini(struct map *m);                               /* frees the table, not the values */
void *map_get(const struct map *m, struct slice key);       /* NULL if there is none */
void map_put(struct map *m, struct slice key, void *value); /* replaces key and value */
void *map_remove(struct map *m, struct slice key);          /* the removed value, or NULL */

/* for (size_t i = 0; (value = map_next(m, &i));) ... the body must not change the map. */
void *map_next(const struct map *m, size_t *i);

/* All values in the order of their keys, then NULL; to be freed by the caller. */
void **map_sorted(const struct map *m);

#endif
