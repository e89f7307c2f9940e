/* Plays runs on several threads (crew.h). Each flow has a few more runs in work than there are
 * threads. Whoever waits for a run that nobody has begun plays it. */

#include "simulation/crew.h"

#include <pthread.h>
#include <stdlib.h>

enum { AHEAD = 4 /* runs in work for each thread */ };

struct crew {
    pthread_mutex_t mutex; /* of all below, and of the states of jobs */
    pthread_cond_t added, played;
    struct link waiting; /* struct crew_job */
    bool ends;
    unsigned threads;
    pthread_t *helpers; /* threads - 1 */
};

static void lock(struct crew *c)
{
    int failed = pthread_mutex_lock(&c->mutex);
    ASSERT(failed == 0);
}

static void unlock(struct crew *c)
{
    int failed = pthread_mutex_unlock(&c->mutex);
    ASSERT(failed == 0);
}

/* The mutex is held, and released while it plays. */
static void play(struct crew *c, struct crew_job *j)
{
    link_remove(&j->link);
    j->state = JOB_BEGUN;
    unlock(c);
    coverage_open(&j->coverage, j->config.suite);
    j->config.coverage = &j->coverage;
    run_play(&j->run, &j->config);
    lock(c);
    j->state = JOB_PLAYED;
    (void)pthread_cond_broadcast(&c->played); /* cannot fail */
}

static void *helper(void *arg)
{
    struct crew *c = arg;

    lock(c);
    while (!c->ends) {
        struct link *first = list_first(&c->waiting);
        if (first)
            play(c, CONTAINER_OF(first, struct crew_job, link));
        else
            (void)pthread_cond_wait(&c->added, &c->mutex); /* cannot fail */
    }
    unlock(c);
    return NULL;
}

/* Fewer threads than were asked for find the same. */
struct crew *crew_new(unsigned threads)
{
    struct crew *c = calloc(1, sizeof *c);

    ASSERT(c && threads > 0);
    list_init(&c->waiting);
    c->helpers = calloc(threads, sizeof *c->helpers);
    ASSERT(c->helpers);
    int failed = pthread_mutex_init(&c->mutex, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&c->added, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&c->played, NULL);
    ASSERT(failed == 0);
    for (c->threads = 1; c->threads < threads; c->threads++)
        if (pthread_create(&c->helpers[c->threads - 1], NULL, helper, c) != 0)
            break;
    return c;
}

void crew_free(struct crew *c)
{
    if (!c)
        return;
    lock(c);
    ASSERT(list_empty(&c->waiting));
    c->ends = true;
    (void)pthread_cond_broadcast(&c->added); /* cannot fail */
    unlock(c);
    for (unsigned i = 0; i + 1 < c->threads; i++)
        (void)pthread_join(c->helpers[i], NULL); /* it is there */
    (void)pthread_cond_destroy(&c->played);      /* nobody waits */
    (void)pthread_cond_destroy(&c->added);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c->helpers);
    free(c);
}

/* ---- flows ---- */

static struct crew_job *begin_job(struct crew *c, const struct flow *f)
{
    struct crew_job *j = calloc(1, sizeof *j);

    ASSERT(j);
    if (!f->next(f->arg, j)) {
        free(j);
        return NULL;
    }
    lock(c);
    list_push(&c->waiting, &j->link);
    (void)pthread_cond_signal(&c->added); /* cannot fail */
    unlock(c);
    return j;
}

static void wait_for(struct crew *c, struct crew_job *j)
{
    lock(c);
    if (j->state == JOB_WAITS)
        play(c, j);
    while (j->state != JOB_PLAYED)
        (void)pthread_cond_wait(&c->played, &c->mutex); /* cannot fail */
    unlock(c);
}

static void end_job(struct crew_job *j)
{
    run_close(&j->run);
    coverage_close(&j->coverage);
    free(j);
}

static void forget(struct crew *c, struct crew_job *j)
{
    lock(c);
    bool waits = j->state == JOB_WAITS;
    if (waits)
        link_remove(&j->link);
    unlock(c);
    if (waits) {
        free(j);
        return;
    }
    wait_for(c, j);
    end_job(j);
}

void crew_play(struct crew *c, const struct flow *f)
{
    const size_t most = c->threads > 1 ? (size_t)c->threads * AHEAD : 1;
    struct crew_job **jobs = calloc(most, sizeof *jobs); /* a ring */
    size_t first = 0;
    size_t count = 0;
    bool goes_on = true;
    struct crew_job *j = NULL;

    ASSERT(jobs);
    for (;;) {
        while (goes_on && count < most && (j = begin_job(c, f)))
            jobs[(first + count++) % most] = j;
        if (count == 0)
            break;
        j = jobs[first];
        first = (first + 1) % most;
        count--;
        if (!goes_on) {
            forget(c, j);
            continue;
        }
        wait_for(c, j);
        goes_on = f->take(f->arg, j);
        end_job(j);
    }
    free(jobs);
}
