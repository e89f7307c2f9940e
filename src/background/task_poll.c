/*
 * Watches tasks that other nodes may change. A task somebody is interested in is looked up in the
 * store, all that are due with one statement, and the less often the longer it stays the same.
 * Touches the store and, to leave out tasks of this node, the scheduler.
 */

#include "background/task_poll.h"

#include <stdlib.h>

#include "background/room.h"
#include "node/node.h"
#include "store/job.h"

enum {
    PAUSE_MIN_MS = 50, /* between two lookups of one task, and between two reads */
    PAUSE_MAX_MS = 1000,
    HERE_MS = 5000,
    LOOK_MAX = 2048, /* tasks in one statement */
};

struct task_poller {
    uv_loop_t *loop;
    struct store_queue *store;
    const struct scheduler *scheduler;
    bool shared, timer_open, reading;
    size_t *busy;
    uv_timer_t timer;
    struct heap due;
    int64_t look_at; /* steady: not before */
    /* The reading: */
    struct store_job job;
    struct arena arena;
    struct task_poll *polls[LOOK_MAX]; /* NULL: it has ended meanwhile */
    struct slice ids[LOOK_MAX];
    struct glance glances[LOOK_MAX];
    size_t count;
    enum err err;
    struct error error;
};

/* ---- when ---- */

/* Tasks with the same interval are looked up together. */
static void put_off(struct task_poller *p, struct task_poll *s)
{
    int64_t now = server_steady(NULL);

    heap_push(&p->due, &s->due, (now / s->pause_ms + 1) * s->pause_ms);
}

static void timer_fired(uv_timer_t *t);

static void arm(struct task_poller *p)
{
    const struct heap_node *first = heap_min(&p->due);

    if (!p->timer_open || p->reading)
        return;
    if (!first) {
        (void)uv_timer_stop(&p->timer);
        return;
    }
    int64_t left = max_i64(first->key, p->look_at) - server_steady(NULL);
    uv_update_time(p->loop);
    (void)uv_timer_start(&p->timer, timer_fired, (uint64_t)max_i64(1, left), 0);
}

/* ---- looking ---- */

static void look_run(struct store_job *j, struct store *s)
{
    struct task_poller *p = CONTAINER_OF(j, struct task_poller, job);

    p->err = s->ops->glance(s, p->ids, p->count, &p->arena, p->glances, &p->error);
}

static void seen(struct task_poller *p, struct task_poll *s, const struct glance *g)
{
    bool is_news = !s->seen || s->revision != g->revision;

    s->pause_ms = is_news && s->seen ? PAUSE_MIN_MS : min_i64(s->pause_ms * 2, PAUSE_MAX_MS);
    s->revision = g->revision;
    s->seen = true;
    put_off(p, s);
    if (is_news)
        s->changed(s, g);
}

static void look_done(struct store_job *j)
{
    struct task_poller *p = CONTAINER_OF(j, struct task_poller, job);

    (*p->busy)--;
    for (size_t i = 0; i < p->count; i++) {
        struct task_poll *s = p->polls[i];
        if (!s)
            continue; /* a caller of `changed` ended it */
        s->slot = 0;
        if (p->err == ERR_OK) {
            seen(p, s, &p->glances[i]);
            continue;
        }
        s->pause_ms = PAUSE_MAX_MS; /* failures of the store are reported elsewhere */
        put_off(p, s);
    }
    arena_fini(&p->arena);
    p->arena = (struct arena){0};
    p->reading = false;
    arm(p);
}

/* The scheduler hears of it. */
static bool is_here(const struct task_poller *p, struct task_poll *s, int64_t now)
{
    if (!scheduler_has(p->scheduler, s->id)) {
        s->here_until = 0;
        return false;
    }
    if (s->here_until == 0)
        s->here_until = now + HERE_MS;
    if (now < s->here_until)
        return true;
    s->here_until = 0;
    return false;
}

/* Those that are due. */
static void choose(struct task_poller *p, int64_t now)
{
    struct heap_node *n = NULL;

    p->count = 0;
    while ((n = heap_min(&p->due)) && n->key <= now && p->count < LOOK_MAX) {
        struct task_poll *s = CONTAINER_OF(n, struct task_poll, due);
        heap_remove(&p->due, n);
        if (is_here(p, s, now)) {
            s->pause_ms = min_i64(s->pause_ms * 2, PAUSE_MAX_MS);
            put_off(p, s);
            continue;
        }
        p->polls[p->count] = s;
        p->ids[p->count] = arena_copy(&p->arena, s->id);
        s->slot = ++p->count;
    }
}

static void timer_fired(uv_timer_t *t)
{
    struct task_poller *p = t->data;
    int64_t now = server_steady(NULL);

    ASSERT(!p->reading);
    choose(p, now);
    if (p->count > 0) {
        p->look_at = now + PAUSE_MIN_MS;
        p->reading = true;
        (*p->busy)++;
        p->job = (struct store_job){.run = look_run, .done = look_done};
        p->store->submit(p->store, &p->job);
    }
    arm(p);
}

/* ---- polls ---- */

void task_poll_begin(struct server *sv, struct task_poll *s)
{
    struct task_poller *p = sv->background->task_poller;

    ASSERT(s->due.pos == 0 && s->slot == 0);
    if (!p->shared)
        return;
    s->pause_ms = PAUSE_MIN_MS;
    s->seen = false;
    s->here_until = 0;
    put_off(p, s);
    arm(p);
}

void task_poll_end(struct server *sv, struct task_poll *s)
{
    struct task_poller *p = sv->background->task_poller;

    heap_remove(&p->due, &s->due);
    if (s->slot > 0)
        p->polls[s->slot - 1] = NULL;
    s->slot = 0;
    if (p->due.len == 0)
        arm(p);
}

/* ---- life ---- */

struct task_poller *task_poller_new(uv_loop_t *loop, struct store_queue *store,
                                    const struct scheduler *scheduler, bool shared, size_t *busy)
{
    struct task_poller *p = calloc(1, sizeof *p);

    ASSERT(p);
    p->loop = loop;
    p->store = store;
    p->scheduler = scheduler;
    p->shared = shared;
    p->busy = busy;
    int rc = uv_timer_init(loop, &p->timer);
    ASSERT(rc == 0);
    p->timer.data = p;
    p->timer_open = true;
    return p;
}

void task_poller_close(struct task_poller *p)
{
    p->timer_open = false;
    uv_close((uv_handle_t *)&p->timer, NULL);
}

void task_poller_free(struct task_poller *p)
{
    ASSERT(!p->reading);
    ASSERT(p->due.len == 0);
    heap_fini(&p->due);
    free(p);
}
