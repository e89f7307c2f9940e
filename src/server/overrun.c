/* Ends the server when an evaluation of expressions holds the loop for far too long, after it was
 * counted in the store. */
#include "server/overrun.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/log.h"

enum { LOOK_MS = 500, STORE_MS = 5000 /* that the end waits for the store */ };

/* A count on its way. The store's thread writes it, and the loop gives it back. */
struct counting {
    struct store_job job;
    struct overrun_watch *watch;
    struct overrun_count count;
    struct arena arena; /* of the id */
    bool away;          /* it is not back on the loop ... */
    bool done;          /* ... but the store has dealt with it: */
    enum err err;
    struct error error;
};

struct overrun_watch {
    struct overrun_config config;
    pthread_t thread;
    clockid_t loop_clock; /* the processor time of the loop's thread */
    int64_t end_ms;
    /* What is being evaluated; NULL: nothing. Who looks at it takes it away for a moment, and the
     * loop does not go on before it is back. */
    _Atomic(const struct slice *) under_way;
    atomic_uint_fast64_t number; /* of evaluations that began */
    struct slice task;           /* the loop's; under_way points here */
    struct slice endless;        /* with INTACT_FAULTS: this task's evaluations do not end ... */
    int64_t slow_ms;             /* ... before so much processor time was spent */
    pthread_mutex_t lock;        /* of the next two */
    pthread_cond_t wake;
    bool stop;
    struct counting counting;
    /* The watching thread's: */
    uint64_t seen;    /* the evaluation that was under way when it last looked; 0: none was */
    int64_t since_ms; /* of the loop's processor time: when it was first seen */
    bool counted;     /* it was */
    bool owes;        /* it has ended, and the count is to be taken back */
};

static const struct slice looked_at = {NULL, 0}; /* in under_way, while somebody looks */

static int64_t ms_of(clockid_t id)
{
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0)
        return 0; /* the thread is there as long as we are */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- on the loop ---- */

#ifdef INTACT_FAULTS
static void arm(struct overrun_watch *w)
{
    const char *id = getenv("INTACT_FAULT_ENDLESS");
    const char *ms = getenv("INTACT_FAULT_ENDLESS_MS");

    const char *slow = getenv("INTACT_FAULT_SLOW_MS");

    w->slow_ms = slow ? strtol(slow, NULL, 10) : INT64_MAX;
    w->endless = id ? slice_of(id) : SLICE_NONE;
    w->end_ms = ms ? strtol(ms, NULL, 10) : OVERRUN_END_MS;
}

static void may_never_end(const struct overrun_watch *w, struct slice task)
{
    if (!w->endless.ptr || !slice_eq(task, w->endless))
        return;
    int64_t from = ms_of(w->loop_clock);
    while (ms_of(w->loop_clock) - from < w->slow_ms)
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

void overrun_evaluates(struct overrun_watch *w, struct slice task, bool begins)
{
    if (!begins) {
        ends(w);
        return;
    }
    w->task = task;
    atomic_store_explicit(&w->number, atomic_load_explicit(&w->number, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&w->under_way, &w->task, memory_order_release);
    may_never_end(w, task);
}

/* ---- the store ---- */

static void count_run(struct store_job *j, struct store *s)
{
    struct counting *c = CONTAINER_OF(j, struct counting, job);

    enum err err = s->ops->overrun_count(s, &c->count, &c->error);
    (void)pthread_mutex_lock(&c->watch->lock);
    c->err = err;
    c->done = true;
    (void)pthread_cond_signal(&c->watch->wake);
    (void)pthread_mutex_unlock(&c->watch->lock);
}

static void count_done(struct store_job *j)
{
    struct counting *c = CONTAINER_OF(j, struct counting, job);

    (void)pthread_mutex_lock(&c->watch->lock);
    c->away = false;
    (void)pthread_mutex_unlock(&c->watch->lock);
}

/* Lock held. `by` 1: c->count names the task already, as `by` -1 finds it. */
static void count(struct overrun_watch *w, int by)
{
    struct counting *c = &w->counting;

    ASSERT(!c->away);
    c->count.by = by;
    c->count.at = w->config.now(w->config.arg);
    c->away = true;
    c->done = false;
    c->job = (struct store_job){.run = count_run, .done = count_done, .urgent = true};
    w->config.store->submit(w->config.store, &c->job);
}

/* ---- on its own thread ---- */

static struct timespec in_ms(int64_t ms)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    ts.tv_nsec += ms % 1000 * 1000000L;
    ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000L;
    ts.tv_nsec %= 1000000000L;
    return ts;
}

/* Copies the id of what is evaluated. False: that has ended. Lock held. */
static bool name_it(struct overrun_watch *w)
{
    struct counting *c = &w->counting;
    const struct slice *task = &w->task;
    bool same = false;

    if (!atomic_compare_exchange_strong(&w->under_way, &task, &looked_at))
        return false;
    same = atomic_load(&w->number) == w->seen;
    if (same) {
        arena_fini(&c->arena);
        c->count.task = arena_copy(&c->arena, w->task);
    }
    atomic_store(&w->under_way, &w->task);
    return same;
}

static void settle(struct overrun_watch *w)
{
    if (w->counted)
        log_line(LOG_WARN, "event=evaluation_was_slow task=%.*s",
                 SLICE_ARG(w->counting.count.task));
    w->owes |= w->counted;
    w->counted = false;
}

/* Lock held. What was never counted is not taken back. */
static void take_back(struct overrun_watch *w)
{
    if (!w->owes || w->counting.away)
        return;
    w->owes = false;
    if (w->counting.err == ERR_OK || w->counting.err == ERR_UNKNOWN)
        count(w, -1);
}

/* Lock held. */
static _Noreturn void end_server(struct overrun_watch *w, int64_t spent_ms)
{
    const struct timespec until = in_ms(STORE_MS);
    struct counting *c = &w->counting;

    while (w->counted && !c->done)
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != 0)
            break;
    const char *counted = !w->counted        ? "no" /* the store was busy with another one */
                          : !c->done         ? "unanswered"
                          : c->err == ERR_OK ? "yes"
                                             : "refused";
    log_line(LOG_ERROR, "event=evaluation_overrun task=%.*s spent_ms=%" PRId64 " counted=%s",
             SLICE_ARG(c->count.task), spent_ms, counted);
    abort();
}

/* Lock held. */
static void look(struct overrun_watch *w)
{
    bool any = atomic_load_explicit(&w->under_way, memory_order_acquire) != NULL;
    uint64_t number = atomic_load(&w->number);
    int64_t spent = ms_of(w->loop_clock);

    if (!any || number != w->seen) {
        settle(w);
        w->seen = any ? number : 0;
        w->since_ms = spent;
    }
    take_back(w);
    if (w->seen == 0)
        return;
    spent -= w->since_ms;
    if (spent >= OVERRUN_COUNT_MS && !w->counted && !w->counting.away && name_it(w)) {
        w->counted = true;
        count(w, 1);
    }
    if (spent >= w->end_ms)
        end_server(w, spent);
}

static void *body(void *arg)
{
    struct overrun_watch *w = arg;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until = in_ms(LOOK_MS);
        int rc = 0;
        while (!w->stop && rc == 0)
            rc = pthread_cond_timedwait(&w->wake, &w->lock, &until);
        if (!w->stop)
            look(w);
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
    w->counting.watch = w;
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
    settle(w);
    (void)pthread_mutex_lock(&w->lock);
    take_back(w);
    (void)pthread_mutex_unlock(&w->lock);
}

void overrun_free(struct overrun_watch *w)
{
    if (!w)
        return;
    arena_fini(&w->counting.arena);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
