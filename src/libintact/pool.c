/* Threads that run an agent's handlers (pool.h): the driving thread adds requests, and completed
 * ones go to the outbox. Signals are blocked in these threads, so that they reach the threads of
 * the program. agent.c opens and closes it. */

#include "libintact/pool.h"

#include <signal.h>
#include <stdlib.h>

#include "libintact/agent_outbox.h"

static struct intact_request *next_request(struct pool *p) /* locked; NULL: the pool closes */
{
    while (list_empty(&p->queue) && !p->closing) {
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
    }
    struct link *first = list_first(&p->queue);
    if (!first)
        return NULL;
    link_remove(first);
    return CONTAINER_OF(first, struct intact_request, link);
}

static void *work(void *arg)
{
    struct pool *p = arg;
    struct intact_request *r;

    pthread_mutex_lock(&p->lock);
    for (r = next_request(p); r; r = next_request(p)) {
        pthread_mutex_unlock(&p->lock);
        struct outbox *o = r->outbox;
        if (request_run(r))
            outbox_put(o, r);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are for the program's own threads: SIGTERM must reach the one that waits for it. */
static bool start_threads(struct pool *p, size_t count)
{
    sigset_t all, before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail: the arguments are valid */
    while (p->thread_count < count
           && pthread_create(&p->threads[p->thread_count], NULL, work, p) == 0)
        p->thread_count++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p->thread_count == count;
}

bool pool_open(struct pool *p, size_t thread_count)
{
    *p = (struct pool){.is_open = true};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    list_init(&p->queue);
    p->threads = calloc(thread_count + 1, sizeof(*p->threads));
    if (p->threads && start_threads(p, thread_count))
        return true;
    pool_close(p);
    return false;
}

void pool_close(struct pool *p)
{
    if (!p->is_open)
        return;
    p->is_open = false;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    LIST_FOREACH (l, after, &p->queue) {
        link_remove(l);
    }
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    free(p->threads);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
}

void pool_add(struct pool *p, struct link *requests)
{
    size_t count = 0;

    pthread_mutex_lock(&p->lock);
    LIST_FOREACH (l, after, requests) {
        link_remove(l);
        list_push(&p->queue, l);
        count++;
    }
    /* Wakes no more threads than there is work; running threads find further work themselves. */
    for (size_t woken = 0; woken < count && woken < p->idle; woken++)
        pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}
