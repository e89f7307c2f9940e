/* A set of the keys of nodes: a hash table that grows (history_seen.h). Two nodes of one key are
 * taken for one, which is so improbable that a search does not miss anything by it. */
#include "core/history_seen.h"

#include <stdlib.h>

#include "base/test.h"

static bool seen_insert(struct seen *seen, uint64_t key)
{
    size_t i = key & (seen->cap - 1);

    while (seen->keys[i] != 0) {
        if (seen->keys[i] == key)
            return false;
        i = (i + 1) & (seen->cap - 1);
    }
    seen->keys[i] = key;
    seen->len++;
    return true;
}

static void seen_add_room(struct seen *seen)
{
    struct seen old = *seen;

    if (old.len * 2 < old.cap)
        return;
    seen->cap = old.cap ? old.cap * 2 : 1024;
    seen->len = 0;
    seen->keys = calloc(seen->cap, sizeof *seen->keys);
    CHECK(seen->keys, "memory");
    for (size_t i = 0; i < old.cap; i++)
        if (old.keys[i] != 0)
            (void)seen_insert(seen, old.keys[i]);
    free(old.keys);
}

bool seen_add(struct seen *seen, uint64_t key)
{
    seen_add_room(seen);
    return seen_insert(seen, key | 1);
}

void seen_fini(struct seen *seen)
{
    free(seen->keys);
    *seen = (struct seen){0};
}
