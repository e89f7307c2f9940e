#include "server/waits.h"

#include <stdlib.h>

struct wait_list {
    struct link waiters;
    struct slice id; /* its text lies behind */
};

static struct wait_list *wait_list_new(struct slice id)
{
    struct wait_list *list = calloc(1, sizeof *list + id.len + 1);

    ASSERT(list);
    char *text = (char *)(list + 1);
    memcpy(text, id.ptr, id.len);
    list->id = (struct slice){text, id.len};
    list_init(&list->waiters);
    return list;
}

void waiter_join(struct map *waits, struct slice id, struct waiter *w)
{
    struct wait_list *list = map_get(waits, id);

    ASSERT(!w->in);
    if (!list) {
        list = wait_list_new(id);
        map_put(waits, list->id, list);
    }
    w->in = list;
    list_push(&list->waiters, &w->link);
}

void waiter_leave(struct map *waits, struct waiter *w)
{
    struct wait_list *list = w->in;

    if (!list)
        return;
    link_remove(&w->link);
    w->in = NULL;
    if (!list_empty(&list->waiters) || map_get(waits, list->id) != list)
        return; /* others are there, or it is just being told */
    (void)map_remove(waits, list->id);
    free(list);
}

/* Whoever is told may make others leave, or join again: that makes a new list. */
void waiters_of(struct map *waits, struct slice id)
{
    struct wait_list *list = map_remove(waits, id);

    if (!list)
        return;
    for (struct link *l = NULL; (l = list_first(&list->waiters));) {
        struct waiter *w = CONTAINER_OF(l, struct waiter, link);
        link_remove(l);
        w->in = NULL;
        w->told(w);
    }
    free(list);
}

void waiters_all(struct map *waits)
{
    const struct wait_list *list = NULL;

    for (size_t i = 0; (list = map_next(waits, &i)); i = 0)
        waiters_of(waits, list->id);
}
