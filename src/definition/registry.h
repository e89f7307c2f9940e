#ifndef DEFINITION_REGISTRY_H
#define DEFINITION_REGISTRY_H

/* All stored definitions, compiled, by name and version. Used by the event loop's thread only,
 * except for registry_find_shared. Definitions stay until the registry is freed, because tasks
 * point to them. A zeroed registry is empty. */

#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "definition/definition.h"

/* A caller that waits until the definitions stored by others are read. */
struct registry_wait {
    struct link link;
    /* ERR_OK: the registry has all definitions stored before the wait began. Otherwise they could
     * not be read (`story` says why), and the registry is unchanged. */
    void (*done)(struct registry_wait *w, enum err err, const char *story);
};

/* Reads newly stored definitions: see catalog/catalog.h. */
struct registry_reader {
    void (*read)(struct registry_reader *r, struct registry_wait *w);
};

struct registry {
    struct map names;
    size_t size;          /* bytes of all definitions, see definition_size */
    pthread_mutex_t lock; /* held while `names` changes, and by other threads while they search */
    struct registry_reader *reader; /* NULL: nothing else stores definitions */
};

void registry_fini(struct registry *r);

/* Takes ownership of the definition and assigns the version. Adding a version twice is harmless. */
void registry_add(struct registry *r, struct definition *d, int64_t version);

/* Version 0: the newest. NULL: not found. */
const struct definition *registry_find(const struct registry *r, struct slice name,
                                       int64_t version);

/* The newest, as family.h asks for it: `registry` is a struct registry. */
const struct definition *registry_newest(void *registry, struct slice name);

/* The newest versions of all workflows that start children, allocated in `a`; returns their number.
 */
size_t registry_parents(const struct registry *r, struct arena *a, const struct definition ***ret);

/* As registry_find, for any other thread. The result stays valid and unchanged until the registry
 * is freed. */
const struct definition *registry_find_shared(struct registry *r, struct slice name,
                                              int64_t version);

/* All names, allocated in `a`; returns their number. */
size_t registry_names(const struct registry *r, struct arena *a, struct slice **ret);

/* Calls `look` for all versions of all workflows, in no particular order. */
void registry_each(const struct registry *r, void (*look)(void *arg, const struct definition *d),
                   void *arg);

/* Requests a read of the definitions stored so far. w->done is called later, never from within.
 * False: the registry is complete, there is nothing to wait for. link_remove(&w->link) cancels the
 * wait. */
bool registry_read(struct registry *r, struct registry_wait *w) MUST_USE;

#endif
