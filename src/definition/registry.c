/* The registry of compiled definitions: see registry.h. A map from names to versions; only
 * registry_find_shared may be called from other threads. */
#include "definition/registry.h"

#include <stdlib.h>

/* All versions of one workflow, in ascending order. */
struct versions {
    struct definition **list;
    size_t count, cap;
};

void registry_fini(struct registry *r)
{
    struct versions *v = NULL;

    for (size_t i = 0; (v = map_next(&r->names, &i));) {
        for (size_t k = 0; k < v->count; k++)
            definition_free(v->list[k]);
        free(v->list);
        free(v);
    }
    map_fini(&r->names);
}

/* Where the version is in the list, or would be. */
static size_t place_of(const struct versions *v, int64_t version)
{
    size_t low = 0;
    size_t high = v->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->list[middle]->workflow.version < version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct definition *find(const struct versions *v, int64_t version)
{
    size_t at = place_of(v, version);

    return at < v->count && v->list[at]->workflow.version == version ? v->list[at] : NULL;
}

/* False: that version is present. */
static bool add(struct registry *r, struct definition *d, int64_t version)
{
    struct versions *v = map_get(&r->names, d->workflow.name);

    if (!v) {
        v = calloc(1, sizeof *v);
        ASSERT(v);
        map_put(&r->names, d->workflow.name, v); /* the key is borrowed from the first version */
    }
    size_t at = place_of(v, version);
    if (at < v->count && v->list[at]->workflow.version == version)
        return false;
    if (v->count == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 4;
        v->list = realloc(v->list, v->cap * sizeof(struct definition *));
        ASSERT(v->list);
    }
    d->workflow.version = version;
    memmove(v->list + at + 1, v->list + at, (v->count - at) * sizeof(struct definition *));
    v->list[at] = d;
    v->count++;
    r->size += definition_size(d);
    return true;
}

void registry_add(struct registry *r, struct definition *d, int64_t version)
{
    ASSERT(version > 0);
    (void)pthread_mutex_lock(&r->lock);
    bool taken = add(r, d, version);
    (void)pthread_mutex_unlock(&r->lock);
    if (!taken)
        definition_free(d);
}

const struct definition *registry_find(const struct registry *r, struct slice name, int64_t version)
{
    const struct versions *v = name.ptr ? map_get(&r->names, name) : NULL;

    if (!v)
        return NULL;
    return version == 0 ? v->list[v->count - 1] : find(v, version);
}

const struct definition *registry_newest(void *registry, struct slice name)
{
    return registry_find(registry, name, 0);
}

size_t registry_parents(const struct registry *r, struct arena *a, const struct definition ***ret)
{
    const struct definition **list = arena_alloc(a, (r->names.len + 1) * sizeof(void *));
    const struct versions *v = NULL;
    size_t count = 0;

    for (size_t i = 0; (v = map_next(&r->names, &i));)
        if (v->list[v->count - 1]->workflow.child_step_count > 0)
            list[count++] = v->list[v->count - 1];
    *ret = list;
    return count;
}

const struct definition *registry_find_shared(struct registry *r, struct slice name,
                                              int64_t version)
{
    (void)pthread_mutex_lock(&r->lock);
    const struct definition *d = registry_find(r, name, version);
    (void)pthread_mutex_unlock(&r->lock);
    return d;
}

bool registry_read(struct registry *r, struct registry_wait *w)
{
    if (r->reader)
        r->reader->read(r->reader, w);
    return r->reader != NULL;
}

size_t registry_names(const struct registry *r, struct arena *a, struct slice **ret)
{
    struct slice *names = arena_alloc(a, (r->names.len + 1) * sizeof *names);
    const struct versions *v = NULL;
    size_t count = 0;

    for (size_t i = 0; (v = map_next(&r->names, &i));)
        names[count++] = arena_copy(a, v->list[0]->workflow.name);
    *ret = names;
    return count;
}

void registry_each(const struct registry *r, void (*look)(void *arg, const struct definition *d),
                   void *arg)
{
    const struct versions *v = NULL;

    for (size_t i = 0; (v = map_next(&r->names, &i));)
        for (size_t k = 0; k < v->count; k++)
            look(arg, v->list[k]);
}
