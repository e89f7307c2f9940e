/*
 * The thread on which the store is used: a queue of jobs in order, background jobs between them,
 * and maintenance while there is nothing else to do. What was done is handed back to the event
 * loop.
 */

#include "node/store_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/priority.h"
#include "node/wake.h"
#include "store/job.h"

enum { QUIET_MS = 200 /* without work, before it counts as idle */ };

struct store_thread {
    struct store_queue queue; /* what others see of it */
    struct store_thread_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* of the next five */
    pthread_cond_t wake;
    struct link urgent, todo, finished, background;
    bool stop;
    int64_t background_us; /* what the last one took */
    int64_t others_us;     /* and what the others did since */
    atomic_int_fast64_t busy_since_ms;
    struct wake wake_loop;
};

static void take_all(struct link *from, struct link *to)
{
    for (struct link *l = NULL; (l = list_first(from));) {
        link_remove(l);
        list_push(to, l);
    }
}

/* ---- on the loop ---- */

static void hand_back(struct wake *w)
{
    struct store_thread *t = CONTAINER_OF(w, struct store_thread, wake_loop);
    struct link finished;

    list_init(&finished);
    (void)pthread_mutex_lock(&t->lock);
    take_all(&t->finished, &finished);
    (void)pthread_mutex_unlock(&t->lock);
    for (struct link *l = NULL; (l = list_first(&finished));) {
        struct store_job *j = CONTAINER_OF(l, struct store_job, link);
        link_remove(l);
        j->done(j);
    }
}

static void submit(struct store_queue *q, struct store_job *j)
{
    struct store_thread *t = CONTAINER_OF(q, struct store_thread, queue);

    (void)pthread_mutex_lock(&t->lock);
    list_push(j->urgent ? &t->urgent : &t->todo, &j->link);
    (void)pthread_cond_signal(&t->wake);
    (void)pthread_mutex_unlock(&t->lock);
}

void store_thread_background(struct store_thread *t, struct store_job *j, unsigned patience)
{
    (void)pthread_mutex_lock(&t->lock);
    j->patience = patience;
    list_push(&t->background, &j->link);
    (void)pthread_cond_signal(&t->wake);
    (void)pthread_mutex_unlock(&t->lock);
}

/* ---- on its own thread ---- */

static void busy_begin(struct store_thread *t, uint64_t now_ns)
{
    atomic_store(&t->busy_since_ms, (int_fast64_t)(now_ns / 1000000));
}

static void busy_end(struct store_thread *t)
{
    atomic_store(&t->busy_since_ms, 0);
}

/* A disk can hang here as well as in any job, and then nothing is served. */
static bool maintain(struct store_thread *t, bool idle)
{
    busy_begin(t, uv_hrtime());
    bool again = t->config.maintain(t->config.store, idle);
    busy_end(t);
    return again;
}

/* Waits for work; maintains the store when there is none for a while. Lock held. */
static void wait_for_work(struct store_thread *t)
{
    bool again = t->config.maintain != NULL;

    while (list_empty(&t->urgent) && list_empty(&t->todo) && list_empty(&t->background)
           && !t->stop) {
        if (!again) {
            (void)pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        struct timespec ts = clock_in_ms(CLOCK_MONOTONIC, QUIET_MS);
        if (pthread_cond_timedwait(&t->wake, &t->lock, &ts) == 0)
            continue;
        (void)pthread_mutex_unlock(&t->lock);
        again = maintain(t, true);
        (void)pthread_mutex_lock(&t->lock);
    }
}

static void run(struct store_thread *t, struct store_job *j)
{
    uint64_t from = uv_hrtime();

    busy_begin(t, from);
    j->run(j, t->config.store);
    busy_end(t);
    j->took_us = (int64_t)((uv_hrtime() - from) / 1000);
}

static void run_and_return(struct store_thread *t, struct store_job *j)
{
    run(t, j);
    (void)pthread_mutex_lock(&t->lock);
    list_push(&t->finished, &j->link);
    (void)pthread_mutex_unlock(&t->lock);
    wake_send(&t->wake_loop);
}

/* What is urgent comes first, even if it was handed over after the others were taken. */
static struct store_job *next(struct store_thread *t, struct link *todo)
{
    (void)pthread_mutex_lock(&t->lock);
    struct link *l = list_first(&t->urgent);
    if (!l)
        l = list_first(todo);
    if (l)
        link_remove(l);
    (void)pthread_mutex_unlock(&t->lock);
    return l ? CONTAINER_OF(l, struct store_job, link) : NULL;
}

/* The part of something long that is due now. Lock held. */
static struct store_job *take_background(struct store_thread *t, bool idle)
{
    struct link *first = list_first(&t->background);
    struct store_job *j = first ? CONTAINER_OF(first, struct store_job, link) : NULL;

    if (!j || (!idle && !t->stop && t->others_us < t->background_us * (int64_t)j->patience))
        return NULL;
    link_remove(first);
    return j;
}

static void run_background(struct store_thread *t, struct store_job *j)
{
    uint64_t from = uv_hrtime();

    run_and_return(t, j);
    t->background_us = (int64_t)((uv_hrtime() - from) / 1000);
    t->others_us = 0;
}

static void *body(void *arg)
{
    struct store_thread *t = arg;
    struct link todo;

    thread_is_prompt();
    list_init(&todo);
    (void)pthread_mutex_lock(&t->lock);
    for (;;) {
        wait_for_work(t);
        bool idle = list_empty(&t->urgent) && list_empty(&t->todo);
        if (idle && list_empty(&t->background))
            break; /* told to stop, and done */
        take_all(&t->todo, &todo);
        struct store_job *background = take_background(t, idle);
        (void)pthread_mutex_unlock(&t->lock);
        uint64_t from = uv_hrtime();
        for (struct store_job *j = NULL; (j = next(t, &todo));)
            run_and_return(t, j);
        t->others_us += (int64_t)((uv_hrtime() - from) / 1000);
        if (background)
            run_background(t, background);
        if (t->config.maintain)
            (void)maintain(t, false);
        (void)pthread_mutex_lock(&t->lock);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- life ---- */

static void forget(struct store_thread *t)
{
    (void)pthread_cond_destroy(&t->wake);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

static void closed(uv_handle_t *h)
{
    forget(h->data);
}

int store_thread_start(uv_loop_t *loop, const struct store_thread_config *c,
                       struct store_thread **ret)
{
    struct store_thread *t = calloc(1, sizeof *t);
    pthread_condattr_t attr;

    ASSERT(t);
    t->queue.submit = submit;
    t->config = *c;
    list_init(&t->urgent);
    list_init(&t->todo);
    list_init(&t->finished);
    list_init(&t->background);
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    int rc = wake_open(&t->wake_loop, loop, hand_back);
    if (rc != 0) {
        forget(t);
        return rc;
    }
    t->wake_loop.poll.data = t;
    rc = pthread_create(&t->thread, NULL, body, t);
    if (rc != 0) {
        wake_close(&t->wake_loop, closed);
        return uv_translate_sys_error(rc);
    }
    *ret = t;
    return 0;
}

struct store_queue *store_thread_queue(struct store_thread *t)
{
    return &t->queue;
}

int64_t store_thread_busy_since_ms(struct store_thread *t)
{
    return atomic_load(&t->busy_since_ms);
}

void store_thread_stop(struct store_thread *t)
{
    (void)pthread_mutex_lock(&t->lock);
    t->stop = true;
    (void)pthread_cond_signal(&t->wake);
    (void)pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    wake_close(&t->wake_loop, closed);
}
