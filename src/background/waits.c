/*
 * Those who wait for the end of a task. They are woken up when this node ends it, or when another
 * node is seen to have done so (task_poll.c).
 */

#include "background/waits.h"

#include <stdlib.h>

#include "background/room.h"
#include "background/task_poll.h"
#include "base/list.h"
#include "base/map.h"
#include "node/node.h"
#include "node/part.h"

struct waits {
    struct map lists; /* of struct wait_list, by id */
};

struct wait_list {
    struct server *server;
    struct task_poll poll; /* its id's text lies behind */
    struct link waiters;
    size_t shows; /* of them, want the record */
};

/* Another node ended it, or it was deleted. */
static void changed(struct task_poll *s, const struct glance *g)
{
    struct wait_list *list = CONTAINER_OF(s, struct wait_list, poll);

    if (g->revision == 0 || task_state_is_end(g->state) || g->state == TASK_ERROR)
        waiters_of(list->server, s->id, NULL);
}

static struct wait_list *wait_list_new(struct server *sv, struct slice id)
{
    struct waits *waits = sv->background->waits;
    struct wait_list *list = calloc(1, sizeof *list + id.len + 1);

    ASSERT(list);
    char *text = (char *)(list + 1);
    memcpy(text, id.ptr, id.len);
    list->server = sv;
    list->poll.id = (struct slice){text, id.len};
    list->poll.changed = changed;
    list_init(&list->waiters);
    map_put(&waits->lists, list->poll.id, list);
    task_poll_begin(sv, &list->poll);
    return list;
}

static struct wait_list *take_out(struct server *sv, struct slice id)
{
    struct wait_list *list = map_remove(&sv->background->waits->lists, id);

    if (list)
        task_poll_end(sv, &list->poll);
    return list;
}

void waiter_join(struct server *sv, struct slice id, struct waiter *w)
{
    struct wait_list *list = map_get(&sv->background->waits->lists, id);

    ASSERT(!w->in);
    if (!list)
        list = wait_list_new(sv, id);
    w->in = list;
    list->shows += w->shows;
    list_push(&list->waiters, &w->link);
}

void waiter_leave(struct server *sv, struct waiter *w)
{
    const struct waits *waits = sv->background->waits;
    struct wait_list *list = w->in;

    if (!list)
        return;
    link_remove(&w->link);
    w->in = NULL;
    list->shows -= w->shows;
    if (!list_empty(&list->waiters) || map_get(&waits->lists, list->poll.id) != list)
        return; /* others are there, or it is just being told */
    (void)take_out(sv, list->poll.id);
    free(list);
}

bool waiters_show(const struct server *sv, struct slice id)
{
    const struct wait_list *list = map_get(&sv->background->waits->lists, id);

    return list && list->shows > 0;
}

/* Whoever is told may make others leave, or join again: that makes a new list. */
void waiters_of(struct server *sv, struct slice id, const struct task_end *end)
{
    struct wait_list *list = take_out(sv, id);

    if (!list)
        return;
    for (struct link *l = NULL; (l = list_first(&list->waiters));) {
        struct waiter *w = CONTAINER_OF(l, struct waiter, link);
        link_remove(l);
        w->in = NULL;
        w->ended(w, end);
    }
    free(list);
}

static void waits_drain(struct server *sv)
{
    const struct waits *waits = sv->background->waits;
    const struct wait_list *list = NULL;

    for (size_t i = 0; (list = map_next(&waits->lists, &i)); i = 0)
        waiters_of(sv, list->poll.id, NULL);
}

static enum err waits_open(struct server *sv, struct error *e)
{
    struct waits *waits = calloc(1, sizeof *waits);
    (void)e;

    ASSERT(waits);
    sv->background->task_poller = task_poller_new(&sv->loop, sv->store, sv->scheduler,
                                                  sv->config.store->shared, &sv->load.exchanges);
    sv->background->waits = waits;
    return ERR_OK;
}

static void waits_close(struct server *sv)
{
    task_poller_close(sv->background->task_poller);
}

static void waits_free(struct server *sv)
{
    ASSERT(sv->background->waits->lists.len == 0);
    map_fini(&sv->background->waits->lists);
    free(sv->background->waits);
    task_poller_free(sv->background->task_poller);
}

const struct part waits_part = {
    .name = "waits",
    .open = waits_open,
    .drain = waits_drain,
    .close = waits_close,
    .free = waits_free,
};
