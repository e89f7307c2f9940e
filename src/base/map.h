#ifndef BASE_MAP_H
#define BASE_MAP_H

/*
 * A map from byte strings to pointers: open addressing, linear probing, at most
 * three quarters full. Keys are borrowed: they must live, unchanged, as long as
 * their entry (usually they lie in the value). Values are never NULL.
 * Iteration order depends on the keys and on nothing else.
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

uint64_t hash_bytes(const void *ptr, size_t len); /* FNV-1a with a final mix; not for secrets */

void map_fini(struct map *m);                               /* frees the table, not the values */
void *map_get(const struct map *m, struct slice key);       /* NULL if there is none */
void map_put(struct map *m, struct slice key, void *value); /* replaces key and value */
void *map_remove(struct map *m, struct slice key);          /* the value that was there, or NULL */

/* for (size_t i = 0; (value = map_next(m, &i));) ... the body must not change the map. */
void *map_next(const struct map *m, size_t *i);

/* All values by their keys, and NULL behind the last one; to be freed by the caller. */
void **map_sorted(const struct map *m);

#endif
