/* Tasks whose evaluations took far too long: how often each did. See overruns.h; what follows from
 * it is decided in scheduler/decisions.c. */

#include "tasks/overruns.h"

#include <stdlib.h>

enum { TIMES_MAX = 2 };

struct overran {
    int64_t times;
    char id[];
};

void overruns_free(struct overruns *o)
{
    struct overran *each = NULL;

    for (size_t i = 0; (each = map_next(&o->map, &i));)
        free(each);
    map_fini(&o->map);
}

void overruns_set(struct overruns *o, const struct overrun *list, size_t count)
{
    overruns_free(o);
    for (size_t i = 0; i < count; i++) {
        struct slice id = list[i].task;
        struct overran *each = calloc(1, sizeof *each + id.len + 1);
        ASSERT(each);
        each->times = list[i].times;
        memcpy(each->id, id.ptr, id.len);
        map_put(&o->map, (struct slice){each->id, id.len}, each);
    }
}

bool overruns_any(const struct overruns *o)
{
    return o->map.len > 0;
}

static const struct overran *find(const struct overruns *o, struct slice id)
{
    return o->map.len > 0 ? map_get(&o->map, id) : NULL;
}

bool overruns_has(const struct overruns *o, struct slice id)
{
    return find(o, id) != NULL;
}

bool overruns_too_often(const struct overruns *o, struct slice id)
{
    const struct overran *each = find(o, id);

    return each && each->times >= TIMES_MAX;
}

void overruns_forget(struct overruns *o, struct slice id)
{
    free(map_remove(&o->map, id));
}
