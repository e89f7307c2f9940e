/*
 * Tasks whose evaluations took far too long. A server that cannot stop such an evaluation counts it
 * in the store and exits. A task whose evaluation never ends would end one server after the other,
 * so after the second time it stops in error and is not evaluated again.
 *
 * The store has a row for each of these tasks; usually there are none. They are read at the start.
 * Where the store is shared, they are also read with tasks that are taken over from another node
 * and, while there are any, with each survey: a new submission has no row of its own to read.
 */
#include "scheduler/internal.h"

#include <stdlib.h>

enum { TIMES_MAX = 2 };

struct overran {
    int64_t times;
    char id[];
};

static void forget_all(struct scheduler *s)
{
    struct overran *o = NULL;

    for (size_t i = 0; (o = map_next(&s->overruns, &i));)
        free(o);
    map_fini(&s->overruns);
}

void overruns_read(struct scheduler *s, const struct overrun *list, size_t count)
{
    forget_all(s);
    for (size_t i = 0; i < count; i++) {
        struct slice id = list[i].task;
        struct overran *o = calloc(1, sizeof *o + id.len + 1);
        ASSERT(o);
        o->times = list[i].times;
        memcpy(o->id, id.ptr, id.len);
        map_put(&s->overruns, (struct slice){o->id, id.len}, o);
    }
}

void overruns_free(struct scheduler *s)
{
    forget_all(s);
}

static const struct overran *find(const struct scheduler *s, struct slice id)
{
    return s->overruns.len > 0 ? map_get(&s->overruns, id) : NULL;
}

bool overruns_too_often(const struct scheduler *s, struct slice id)
{
    const struct overran *o = find(s, id);

    return o && o->times >= TIMES_MAX;
}

/* An operator who lets the task go on resets the count, and that must be durable first. */
static bool is_let_go(const struct live *l)
{
    return l->erred && l->task.state != TASK_ERROR;
}

bool overruns_hold(struct scheduler *s, struct live *l)
{
    const struct event overrun = {.kind = EVENT_OVERRUN, .step = -1};

    if (!l->loaded || !overruns_too_often(s, l->id))
        return false;
    if (!l->erred)
        (void)live_decide(s, l, &overrun); /* refused once it has ended, stops or is paused */
    return is_let_go(l);
}

bool overruns_are_over(const struct scheduler *s, const struct live *l)
{
    return find(s, l->id)
           && (task_state_is_end(l->task.state) || l->task.closed_at != 0 || is_let_go(l));
}

void overruns_forget(struct scheduler *s, struct slice id)
{
    free(map_remove(&s->overruns, id));
}
