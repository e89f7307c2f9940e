/* Ends the server when an evaluation of expressions holds the loop for far too long, after it was
 * counted in the store. */

#include "node/overrun.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "store/job.h"

enum { LOOK_MS = 500, STORE_MS = 5000 /* that the end waits for the store */ };

/* What is known of a task whose evaluations took too long: from its count on, until that is taken
 * back, or was never stored. */
struct counted {
    struct link link; /* in watch.counted */
    struct arena arena;
    struct slice task;
    bool away;    /* a change of its count is with the store */
    bool here;    /* it is stored, as far as we know */
    bool owes;    /* it has ended, and the count is to be taken back */
    enum err err; /* of the latest change that is not away */
};

/* A change of a count on its way. The store's thread writes it, and the loop gives it back, which
 * may be much later: an evaluation may hold it. */
struct report {
    struct store_job job;
    struct overrun_watch *watch;
    struct counted *of;
    struct overrun_count count;
    struct arena arena; /* of the id */
    struct error error;
};

struct overrun_watch {
    struct overrun_config config;
    pthread_t thread;
    clockid_t loop_clock; /* the processor time of the loop's thread */
    int64_t end_ms;
    /* What is being evaluated; NULL: nothing. The watching thread takes it away while it reads it,
     * and the loop does not go on before it is back. */
    _Atomic(const struct slice *) under_way;
    atomic_uint_fast64_t number; /* of the task that is evaluated, each time that another one is */
    struct slice task;           /* the loop's; under_way points here */
    const char *last;            /* the loop's: where the id of the task lies; NULL: of no task */
    struct slice endless;        /* with INTACT_FAULTS: this task's evaluations do not end ... */
    struct slice slow;           /* ... or, of this one, not ... */
    int64_t slow_ms;             /* ... before so much processor time was spent */
    pthread_mutex_t lock;        /* of the next three, and of all that is counted */
    pthread_cond_t wake;
    bool stop;
    struct link counted;
    /* The watching thread's: */
    uint64_t seen;       /* the number that was under way at the last check; 0: none was */
    int64_t since_ms;    /* of the loop's processor time: when it was first seen */
    struct counted *now; /* it was counted */
};

static const struct slice looked_at = {NULL, 0}; /* in under_way, while the watching thread reads */

/* ---- on the loop ---- */

#ifdef INTACT_FAULTS
static struct slice task_of_fault(const char *name)
{
    const char *id = getenv(name);

    return id ? slice_of(id) : SLICE_NONE;
}

static void arm(struct overrun_watch *w)
{
    const char *ms = getenv("INTACT_FAULT_ENDLESS_MS");
    const char *slow = getenv("INTACT_FAULT_SLOW_MS");

    w->endless = task_of_fault("INTACT_FAULT_ENDLESS");
    w->slow = task_of_fault("INTACT_FAULT_SLOW");
    w->slow_ms = slow ? strtol(slow, NULL, 10) : 0;
    w->end_ms = ms ? strtol(ms, NULL, 10) : OVERRUN_END_MS;
}

static void may_never_end(const struct overrun_watch *w, struct slice task)
{
    int64_t from = clock_read_ms(w->loop_clock);

    while (w->endless.ptr && slice_eq(task, w->endless))
        ;
    while (w->slow.ptr && slice_eq(task, w->slow)
           && clock_read_ms(w->loop_clock) - from < w->slow_ms)
        ;
}
#else
static void arm(struct overrun_watch *w)
{
    w->end_ms = OVERRUN_END_MS;
}

static void may_never_end(const struct overrun_watch *w, struct slice task)
{
    (void)w;
    (void)task;
}
#endif

static void ends(struct overrun_watch *w)
{
    const struct slice *mine = &w->task;

    while (!atomic_compare_exchange_weak(&w->under_way, &mine, NULL))
        mine = &w->task;
}

static void count_on(struct overrun_watch *w)
{
    atomic_store_explicit(&w->number, atomic_load_explicit(&w->number, memory_order_relaxed) + 1,
                          memory_order_release);
}

void overrun_evaluates(struct overrun_watch *w, struct slice task, bool begins)
{
    if (!begins) {
        ends(w);
        return;
    }
    /* All of one task in a row is one evaluation, until the turn is over. */
    if (w->last != task.ptr)
        count_on(w);
    w->last = task.ptr;
    w->task = task;
    atomic_store_explicit(&w->under_way, &w->task, memory_order_release);
    may_never_end(w, task);
}

void overrun_turn_over(struct overrun_watch *w)
{
    if (!w->last)
        return;
    w->last = NULL;
    count_on(w);
}

/* ---- the store ---- */

/* Lock held. */
static void forget(struct counted *c)
{
    link_remove(&c->link);
    arena_fini(&c->arena);
    free(c);
}

/* What is unknown may be stored: then it is taken back, once. */
static void count_run(struct store_job *j, struct store *s)
{
    struct report *t = CONTAINER_OF(j, struct report, job);
    struct overrun_watch *w = t->watch;

    enum err err = s->ops->overrun_count(s, &t->count, &t->error);
    (void)pthread_mutex_lock(&w->lock);
    t->of->away = false;
    t->of->err = err;
    if (t->count.by > 0)
        t->of->here = err == ERR_OK || err == ERR_UNKNOWN;
    else if (err == ERR_OK || err == ERR_UNKNOWN)
        forget(t->of);
    (void)pthread_cond_broadcast(&w->wake);
    (void)pthread_mutex_unlock(&w->lock);
}

static void count_done(struct store_job *j)
{
    struct report *t = CONTAINER_OF(j, struct report, job);

    arena_fini(&t->arena);
    free(t);
}

/* Lock held. */
static void count(struct overrun_watch *w, struct counted *c, int by)
{
    struct report *t = calloc(1, sizeof *t);

    ASSERT(t);
    ASSERT(!c->away);
    c->away = true;
    t->watch = w;
    t->of = c;
    t->count = (struct overrun_count){.task = arena_copy(&t->arena, c->task),
                                      .by = by,
                                      .at = w->config.now(w->config.arg)};
    t->job = (struct store_job){.run = count_run, .done = count_done, .urgent = true};
    w->config.store->submit(w->config.store, &t->job);
}

/* ---- on its own thread ---- */

/* The task that is evaluated, to be counted. NULL: that has ended. */
static struct counted *name_it(struct overrun_watch *w)
{
    const struct slice *task = &w->task;
    struct counted *c = NULL;

    if (!atomic_compare_exchange_strong(&w->under_way, &task, &looked_at))
        return NULL;
    if (atomic_load(&w->number) == w->seen) {
        c = calloc(1, sizeof *c);
        ASSERT(c);
        c->task = arena_copy(&c->arena, w->task);
    }
    atomic_store(&w->under_way, &w->task);
    return c;
}

/* Lock held. */
static void settle(struct overrun_watch *w)
{
    if (!w->now)
        return;
    log_line(LOG_WARN, "event=evaluation_was_slow task=%.*s", SLICE_ARG(w->now->task));
    w->now->owes = true;
    w->now = NULL;
}

/* Lock held. What was never counted is not taken back; what the store refuses now, it is asked for
 * again. */
static void take_back(struct overrun_watch *w)
{
    LIST_FOREACH (link, after, &w->counted) {
        struct counted *c = CONTAINER_OF(link, struct counted, link);
        if (!c->owes || c->away)
            continue;
        if (c->here)
            count(w, c, -1);
        else
            forget(c);
    }
}

/* Lock held. */
static _Noreturn void end_server(struct overrun_watch *w, int64_t spent_ms)
{
    const struct timespec until = clock_in_ms(CLOCK_MONOTONIC, STORE_MS);
    const struct counted *c = w->now;

    while (c && c->away)
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != 0)
            break;
    const char *how = !c                 ? "no" /* it was never seen to be under way */
                      : c->away          ? "unanswered"
                      : c->err == ERR_OK ? "yes"
                                         : "refused";
    log_line(LOG_ERROR, "event=evaluation_overrun task=%.*s spent_ms=%" PRId64 " counted=%s",
             SLICE_ARG(c ? c->task : SLICE("")), spent_ms, how);
    abort();
}

/* Lock held. */
static void check(struct overrun_watch *w)
{
    bool any = atomic_load_explicit(&w->under_way, memory_order_acquire) != NULL;
    uint64_t number = atomic_load_explicit(&w->number, memory_order_acquire);
    int64_t spent = clock_read_ms(w->loop_clock);

    if (number != w->seen) { /* it has ended, or more of the same task may follow */
        settle(w);
        w->seen = any ? number : 0;
        w->since_ms = spent;
    }
    take_back(w);
    if (w->seen == 0 || !any)
        return;
    spent -= w->since_ms;
    if (spent >= OVERRUN_COUNT_MS && !w->now && (w->now = name_it(w)) != NULL) {
        list_push(&w->counted, &w->now->link);
        count(w, w->now, 1);
    }
    if (spent >= w->end_ms)
        end_server(w, spent);
}

static void *body(void *arg)
{
    struct overrun_watch *w = arg;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until = clock_in_ms(CLOCK_MONOTONIC, LOOK_MS);
        int rc = 0;
        while (!w->stop && rc == 0)
            rc = pthread_cond_timedwait(&w->wake, &w->lock, &until);
        if (!w->stop)
            check(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- life ---- */

enum err overruns_load(struct store *s, struct overruns *ret, struct error *e)
{
    return s->ops->overrun_list(s, &ret->arena, &ret->list, &ret->count, e);
}

void overruns_fini(struct overruns *o)
{
    arena_fini(&o->arena);
}

int overrun_start(const struct overrun_config *c, struct overrun_watch **ret)
{
    struct overrun_watch *w = calloc(1, sizeof *w);
    pthread_condattr_t attr;

    ASSERT(w);
    w->config = *c;
    list_init(&w->counted);
    arm(w);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    int rc = pthread_getcpuclockid(pthread_self(), &w->loop_clock);
    if (rc == 0)
        rc = pthread_create(&w->thread, NULL, body, w);
    if (rc != 0) {
        overrun_free(w);
        return uv_translate_sys_error(rc);
    }
    *ret = w;
    return 0;
}

void overrun_stop(struct overrun_watch *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->wake);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_lock(&w->lock);
    settle(w);
    take_back(w);
    (void)pthread_mutex_unlock(&w->lock);
}

void overrun_free(struct overrun_watch *w)
{
    if (!w)
        return;
    for (struct link *first = NULL; (first = list_first(&w->counted));)
        forget(CONTAINER_OF(first, struct counted, link));
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
