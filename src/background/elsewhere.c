/*
 * Watches tasks that other nodes may change. A task somebody is interested in is looked up in the
 * store, all that are due with one statement, and the less often the longer it stays the same.
 * Touches the store and, to leave out tasks of this node, the scheduler.
 */

#include "background/elsewhere.h"

#include <stdlib.h>

#include "node/node.h"
#include "store/job.h"

enum {
    PAUSE_MIN_MS = 50, /* between two lookups of one task, and between two reads */
    PAUSE_MAX_MS = 1000,
    HERE_MS = 5000,
    LOOK_MAX = 2048, /* tasks in one statement */
};

struct elsewhere {
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
    struct sight *sights[LOOK_MAX]; /* NULL: it has ended meanwhile */
    struct slice ids[LOOK_MAX];
    struct glance glances[LOOK_MAX];
    size_t count;
    enum err err;
    struct error error;
};

/* ---- when ---- */

/* Tasks with the same interval are looked up together. */
static void put_off(struct elsewhere *e, struct sight *s)
{
    int64_t now = server_steady(NULL);

    heap_push(&e->due, &s->due, (now / s->pause_ms + 1) * s->pause_ms);
}

static void timer_fired(uv_timer_t *t);

static void arm(struct elsewhere *e)
{
    const struct heap_node *first = heap_min(&e->due);

    if (!e->timer_open || e->reading)
        return;
    if (!first) {
        (void)uv_timer_stop(&e->timer);
        return;
    }
    int64_t left = max_i64(first->key, e->look_at) - server_steady(NULL);
    uv_update_time(e->loop);
    (void)uv_timer_start(&e->timer, timer_fired, (uint64_t)max_i64(1, left), 0);
}

/* ---- looking ---- */

static void look_run(struct store_job *j, struct store *s)
{
    struct elsewhere *e = CONTAINER_OF(j, struct elsewhere, job);

    e->err = s->ops->glance(s, e->ids, e->count, &e->arena, e->glances, &e->error);
}

static void seen(struct elsewhere *e, struct sight *s, const struct glance *g)
{
    bool is_news = !s->seen || s->revision != g->revision;

    s->pause_ms = is_news && s->seen ? PAUSE_MIN_MS : min_i64(s->pause_ms * 2, PAUSE_MAX_MS);
    s->revision = g->revision;
    s->seen = true;
    put_off(e, s);
    if (is_news)
        s->changed(s, g);
}

static void look_done(struct store_job *j)
{
    struct elsewhere *e = CONTAINER_OF(j, struct elsewhere, job);

    (*e->busy)--;
    for (size_t i = 0; i < e->count; i++) {
        struct sight *s = e->sights[i];
        if (!s)
            continue; /* a caller of `changed` ended it */
        s->slot = 0;
        if (e->err == ERR_OK) {
            seen(e, s, &e->glances[i]);
            continue;
        }
        s->pause_ms = PAUSE_MAX_MS; /* failures of the store are reported elsewhere */
        put_off(e, s);
    }
    arena_fini(&e->arena);
    e->arena = (struct arena){0};
    e->reading = false;
    arm(e);
}

/* The scheduler hears of it. */
static bool is_here(const struct elsewhere *e, struct sight *s, int64_t now)
{
    if (!scheduler_has(e->scheduler, s->id)) {
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
static void choose(struct elsewhere *e, int64_t now)
{
    struct heap_node *n = NULL;

    e->count = 0;
    while ((n = heap_min(&e->due)) && n->key <= now && e->count < LOOK_MAX) {
        struct sight *s = CONTAINER_OF(n, struct sight, due);
        heap_remove(&e->due, n);
        if (is_here(e, s, now)) {
            s->pause_ms = min_i64(s->pause_ms * 2, PAUSE_MAX_MS);
            put_off(e, s);
            continue;
        }
        e->sights[e->count] = s;
        e->ids[e->count] = arena_copy(&e->arena, s->id);
        s->slot = ++e->count;
    }
}

static void timer_fired(uv_timer_t *t)
{
    struct elsewhere *e = t->data;
    int64_t now = server_steady(NULL);

    ASSERT(!e->reading);
    choose(e, now);
    if (e->count > 0) {
        e->look_at = now + PAUSE_MIN_MS;
        e->reading = true;
        (*e->busy)++;
        e->job = (struct store_job){.run = look_run, .done = look_done};
        e->store->submit(e->store, &e->job);
    }
    arm(e);
}

/* ---- sights ---- */

void sight_begin(struct elsewhere *e, struct sight *s)
{
    ASSERT(s->due.pos == 0 && s->slot == 0);
    if (!e->shared)
        return;
    s->pause_ms = PAUSE_MIN_MS;
    s->seen = false;
    s->here_until = 0;
    put_off(e, s);
    arm(e);
}

void sight_end(struct elsewhere *e, struct sight *s)
{
    heap_remove(&e->due, &s->due);
    if (s->slot > 0)
        e->sights[s->slot - 1] = NULL;
    s->slot = 0;
    if (e->due.len == 0)
        arm(e);
}

/* ---- life ---- */

struct elsewhere *elsewhere_new(uv_loop_t *loop, struct store_queue *store,
                                const struct scheduler *scheduler, bool shared, size_t *busy)
{
    struct elsewhere *e = calloc(1, sizeof *e);

    ASSERT(e);
    e->loop = loop;
    e->store = store;
    e->scheduler = scheduler;
    e->shared = shared;
    e->busy = busy;
    int rc = uv_timer_init(loop, &e->timer);
    ASSERT(rc == 0);
    e->timer.data = e;
    e->timer_open = true;
    return e;
}

void elsewhere_close(struct elsewhere *e)
{
    e->timer_open = false;
    uv_close((uv_handle_t *)&e->timer, NULL);
}

void elsewhere_free(struct elsewhere *e)
{
    ASSERT(!e->reading);
    ASSERT(e->due.len == 0);
    heap_fini(&e->due);
    free(e);
}
