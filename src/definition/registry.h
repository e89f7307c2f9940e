#ifndef DEFINITION_REGISTRY_H
#define DEFINITION_REGISTRY_H

/* All stored definitions, compiled, by name and version. On the loop's thread only, but for
 * registry_find_aside; definitions once added stay until the registry is freed, since tasks point
 * to them. A zeroed one is empty. */

#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "definition/definition.h"

/* Somebody who has to know what others stored. */
struct registry_wait {
    struct link link;
    /* ERR_OK: the registry has all that was stored when the wait began. Otherwise it could not be
     * read (`story` tells why), and has what it had. */
    void (*told)(struct registry_wait *w, enum err err, const char *story);
};

/* Whoever can read on: see catalog/catalog.h. */
struct registry_reader {
    void (*read)(struct registry_reader *r, struct registry_wait *w);
};

struct registry {
    struct map names;
    pthread_mutex_t lock;           /* held while `names` change, and by threads that look */
    struct registry_reader *reader; /* NULL: nobody else stores any, what is here is all */
};

void registry_fini(struct registry *r);

/* Takes the definition, whose workflow gets that version. Adding a version twice is harmless. */
void registry_add(struct registry *r, struct definition *d, int64_t version);

/* Version 0: the newest. NULL: there is none. */
const struct definition *registry_find(const struct registry *r, struct slice name,
                                       int64_t version);

/* The same, for any thread but the registry's own. What is found stays as it is, and there, until
 * the registry ends. */
const struct definition *registry_find_aside(struct registry *r, struct slice name,
                                             int64_t version);

/* The names of all, in `a`; returns how many. */
size_t registry_names(const struct registry *r, struct arena *a, struct slice **ret);

/* Shows all versions of all workflows, in an order of no meaning. */
void registry_each(const struct registry *r, void (*look)(void *arg, const struct definition *d),
                   void *arg);

/* Has what is stored by now read; w->told is called later, never from within. False: what is here
 * is all that there is, nothing is to be waited for. A wait is given up by link_remove(&w->link).
 */
bool registry_read(struct registry *r, struct registry_wait *w) MUST_USE;

#endif
