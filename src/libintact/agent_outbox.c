/* The queue from handlers, and from threads that answer kept requests, to the thread that drives
 * an agent (agent_outbox.h). Its lock guards the queue and the stops of requests; its eventfd wakes
 * the driving thread. agent.c takes the entries. */

#include "libintact/agent_outbox.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct outbox *outbox_new(void)
{
    struct outbox *o = calloc(1, sizeof(*o));
    pthread_condattr_t attributes;

    if (!o)
        abort();
    o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    o->uses = 1;
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&o->told, &attributes);
    pthread_condattr_destroy(&attributes);
    list_init(&o->done);
    heartbeats_init(&o->beats);
    return o;
}

void outbox_wake(struct outbox *o)
{
    const uint64_t one = 1;

    (void)!write(o->fd, &one, sizeof(one)); /* can only fail if it is readable already */
}

void outbox_unuse(struct outbox *o)
{
    pthread_mutex_lock(&o->lock);
    ASSERT(o->uses > 0);
    bool last = --o->uses == 0;
    pthread_mutex_unlock(&o->lock);
    if (!last)
        return;
    heartbeats_fini(&o->beats);
    if (o->fd >= 0)
        close(o->fd);
    pthread_cond_destroy(&o->told);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

void outbox_put(struct outbox *o, struct intact_request *r)
{
    pthread_mutex_lock(&o->lock);
    bool closed = o->closed;
    if (!closed) {
        bool first = list_empty(&o->done);
        list_push(&o->done, &r->link);
        if (first) /* before unlocking: afterwards the outbox may be freed */
            outbox_wake(o);
    }
    pthread_mutex_unlock(&o->lock);
    if (!closed)
        return;
    request_free(r);
    outbox_unuse(o);
}

void outbox_take(struct outbox *o, struct link *ret)
{
    pthread_mutex_lock(&o->lock);
    LIST_FOREACH (l, after, &o->done) {
        link_remove(l);
        list_push(ret, l);
    }
    pthread_mutex_unlock(&o->lock);
}

size_t outbox_close(struct outbox *o, struct map *requests)
{
    struct intact_request *r;
    size_t left = 0;

    heartbeats_close(&o->beats);
    pthread_mutex_lock(&o->lock);
    o->closed = true;
    LIST_FOREACH (l, after, &o->done) {
        CONTAINER_OF(l, struct intact_request, link)->in_work = false;
        link_remove(l);
    }
    for (size_t i = 0; (r = map_next(requests, &i));) {
        if (r->in_work && request_is_kept(r)) {
            left++;
            o->uses++;
        } else {
            request_free(r);
        }
    }
    pthread_mutex_unlock(&o->lock);
    map_fini(requests);
    return left;
}
