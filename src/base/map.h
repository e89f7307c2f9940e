#ifndef BASE_MAP_H
#define BASE_MAP_H

/*
 * A map from byte strings to pointers: open addressing, linear probing, at most
 * three quarters full. Keys are borrowed: they must live, unchanged, as long as
 * their entry (usually they lie in the value). Values are never NULL.
 *
 * Places are given by SipHash-1-3 under a key of the process, so that nobody outside can choose
 * keys that meet in one place. Until map_key_draw() the key is a fixed one: the order of iteration
 * then is a function of what was put and removed, in its order, and the same in each run, which
 * tests and the simulator build on. After it the order is another one in each process: nothing that
 * is told, stored or compared between processes may depend on it (map_sorted() does not).
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

/* Once, at the start of a program, before its first map, and while it has one thread. */
void map_key_draw(void);
bool map_key_is_drawn(void);

/* FNV-1a with a final mix: the same in every process and version. Texts that have the same hash are
 * found in seconds, so it is for what has to agree (lines of actions, ids of traces and alerts),
 * and never for identity, nor for a table whose keys others choose. */
uint64_t hash_stable(const void *ptr, size_t len);

void map_fini(struct map *m);                               /* frees the table, not the values */
void *map_get(const struct map *m, struct slice key);       /* NULL if there is none */
void map_put(struct map *m, struct slice key, void *value); /* replaces key and value */
void *map_remove(struct map *m, struct slice key);          /* the value that was there, or NULL */

/* for (size_t i = 0; (value = map_next(m, &i));) ... the body must not change the map. */
void *map_next(const struct map *m, size_t *i);

/* All values by their keys, and NULL behind the last one; to be freed by the caller. */
void **map_sorted(const struct map *m);

#endif
