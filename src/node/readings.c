/*
 * The reading thread: what people read is read here, and tokens take turns. See readings.h for
 * lines and for how results are handed back.
 */

#include "node/readings.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/priority.h"
#include "node/fair.h"
#include "node/wake.h"

enum { ONES_FOR_MANY = 8 /* so many times more reads of single objects may wait */ };

/* Lines are as many as there are tokens of which something waits. */
struct line {
    struct link link; /* among those that have something */
    struct link jobs;
    size_t count;
    enum reading_kind kind;
    size_t name_len;
    char name[]; /* with the kind before it: of the map */
};

struct readings {
    struct readings_config config;
    struct store *way; /* of the thread's own; NULL: there is none, and no thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of the next five */
    pthread_cond_t wake;
    struct link lines, finished;
    struct map by_name;
    struct readings_stats stats;
    bool stop;
    struct wake wake_loop;
    /* Event loop only: */
    struct link back; /* what was read, in its order, and not handed back yet */
    uv_timer_t timer; /* the end of the first rest */
    unsigned handles; /* that libuv has not let go of */
};

/* ---- lines; lock held ---- */

enum { KEY_SIZE = 160 };

static struct slice key_of(struct slice token, enum reading_kind kind, char key[KEY_SIZE])
{
    size_t len = token.len < KEY_SIZE - 1 ? token.len : KEY_SIZE - 1;

    key[0] = kind == READING_ONE ? '1' : 'n';
    if (len > 0)
        memcpy(key + 1, token.ptr, len);
    return (struct slice){key, len + 1};
}

static struct line *line_make(struct readings *rs, struct slice key, enum reading_kind kind)
{
    struct line *l = calloc(1, sizeof *l + key.len);

    ASSERT(l);
    l->kind = kind;
    l->name_len = key.len;
    memcpy(l->name, key.ptr, key.len);
    list_init(&l->jobs);
    map_put(&rs->by_name, (struct slice){l->name, l->name_len}, l);
    list_push(&rs->lines, &l->link);
    return l;
}

static void line_lose(struct readings *rs, struct line *l, struct store_job *j)
{
    link_remove(&j->link);
    j->line = NULL;
    rs->stats.waiting--;
    if (--l->count > 0)
        return;
    link_remove(&l->link);
    (void)map_remove(&rs->by_name, (struct slice){l->name, l->name_len});
    free(l);
}

/* The first read of the line whose turn it is, which then comes last. */
static struct store_job *next(struct readings *rs)
{
    struct link *first = list_first(&rs->lines);

    if (!first)
        return NULL;
    struct line *l = CONTAINER_OF(first, struct line, link);
    struct link *job = list_first(&l->jobs);
    ASSERT(job); /* a line without jobs is freed (line_lose) */
    struct store_job *j = CONTAINER_OF(job, struct store_job, link);
    link_remove(first);
    list_push(&rs->lines, first);
    line_lose(rs, l, j);
    return j;
}

/* ---- on the loop ---- */

static void rested(uv_timer_t *timer);

static void take_finished(struct readings *rs)
{
    (void)pthread_mutex_lock(&rs->lock);
    for (struct link *l = NULL; (l = list_first(&rs->finished));) {
        link_remove(l);
        list_push(&rs->back, l);
    }
    (void)pthread_mutex_unlock(&rs->lock);
}

static uint64_t rests_until(const struct readings *rs, const struct store_job *j)
{
    if (!rs->config.rests_until || !j->account)
        return 0;
    return rs->config.rests_until(rs->config.arg, j->account, uv_hrtime());
}

static void hand_over(struct readings *rs, struct store_job *j)
{
    void *account = j->account; /* the job may end with `done` */
    size_t bytes = j->bytes;
    uint64_t began_ns = uv_hrtime();

    link_remove(&j->link);
    j->done(j);
    uint64_t now_ns = uv_hrtime();
    if (rs->config.worked && account)
        rs->config.worked(rs->config.arg, account, now_ns, now_ns - began_ns);
    if (bytes == 0)
        return;
    (void)pthread_mutex_lock(&rs->lock);
    ASSERT(rs->stats.held >= bytes);
    rs->stats.held -= bytes;
    (void)pthread_cond_signal(&rs->wake);
    (void)pthread_mutex_unlock(&rs->lock);
}

/* The rest is handed back in the next round, or when the first of them has rested. */
static void go_on_later(struct readings *rs, uint64_t at_ns)
{
    uint64_t now_ns = uv_hrtime();

    if (list_empty(&rs->back))
        return;
    if (at_ns <= now_ns) {
        wake_send(&rs->wake_loop);
        return;
    }
    uv_update_time(rs->timer.loop);
    (void)uv_timer_start(&rs->timer, rested, (at_ns - now_ns) / 1000000 + 1, 0);
}

static void hand_back(struct readings *rs)
{
    uint64_t end_ns = uv_hrtime() + FAIR_SLICE_NS;
    uint64_t first_ns = UINT64_MAX;

    take_finished(rs);
    LIST_FOREACH (l, after, &rs->back) {
        struct store_job *j = CONTAINER_OF(l, struct store_job, link);
        uint64_t until_ns = rests_until(rs, j);
        if (until_ns != 0) {
            first_ns = until_ns < first_ns ? until_ns : first_ns;
            continue;
        }
        hand_over(rs, j);
        if (uv_hrtime() >= end_ns) {
            first_ns = 0;
            break;
        }
    }
    go_on_later(rs, first_ns);
}

static void rested(uv_timer_t *timer)
{
    hand_back(timer->data);
}

static void woken(struct wake *w)
{
    hand_back(CONTAINER_OF(w, struct readings, wake_loop));
}

bool readings_have_room(struct readings *rs, struct slice token, enum reading_kind kind)
{
    char name[KEY_SIZE];
    size_t most = rs->config.line_max * (kind == READING_ONE ? ONES_FOR_MANY : 1);

    (void)pthread_mutex_lock(&rs->lock);
    const struct line *l = map_get(&rs->by_name, key_of(token, kind, name));
    bool room = !l || l->count < most;
    rs->stats.refused += !room;
    (void)pthread_mutex_unlock(&rs->lock);
    return room;
}

void readings_add(struct readings *rs, struct slice token, enum reading_kind kind,
                  struct store_job *j)
{
    char name[KEY_SIZE];
    struct slice key = key_of(token, kind, name);

    if (!rs->way) {
        rs->config.instead->submit(rs->config.instead, j);
        return;
    }
    (void)pthread_mutex_lock(&rs->lock);
    struct line *l = map_get(&rs->by_name, key);
    if (!l)
        l = line_make(rs, key, kind);
    j->line = l;
    l->count++;
    list_push(&l->jobs, &j->link);
    rs->stats.waiting++;
    (void)pthread_cond_signal(&rs->wake);
    (void)pthread_mutex_unlock(&rs->lock);
}

void readings_drop(struct readings *rs, struct store_job *j)
{
    (void)pthread_mutex_lock(&rs->lock);
    struct line *l = j->line;
    if (l) {
        line_lose(rs, l, j);
        list_push(&rs->finished, &j->link);
    }
    (void)pthread_mutex_unlock(&rs->lock);
    if (l)
        wake_send(&rs->wake_loop);
}

void readings_stats(struct readings *rs, struct readings_stats *ret)
{
    (void)pthread_mutex_lock(&rs->lock);
    *ret = rs->stats;
    (void)pthread_mutex_unlock(&rs->lock);
}

/* ---- on its own thread ---- */

static void run(struct readings *rs, struct store_job *j)
{
    if (!rs->way->ops->is_usable(rs->way)) {
        rs->config.instead->submit(rs->config.instead, j);
        return;
    }
    j->run(j, rs->way);
    (void)pthread_mutex_lock(&rs->lock);
    rs->stats.held += j->bytes;
    list_push(&rs->finished, &j->link);
    (void)pthread_mutex_unlock(&rs->lock);
    wake_send(&rs->wake_loop);
}

static void *body(void *arg)
{
    struct readings *rs = arg;

    thread_is_beside();
    (void)pthread_mutex_lock(&rs->lock);
    while (!rs->stop) {
        /* The loop takes its time, and memory is not to grow with it. */
        struct store_job *j = rs->stats.held > READINGS_HELD_MAX ? NULL : next(rs);
        if (!j) {
            (void)pthread_cond_wait(&rs->wake, &rs->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&rs->lock);
        run(rs, j);
        (void)pthread_mutex_lock(&rs->lock);
    }
    (void)pthread_mutex_unlock(&rs->lock);
    return NULL;
}

/* ---- life ---- */

/* libuv lets go of a handle, and there may be another one. */
static void closed(uv_handle_t *h)
{
    struct readings *rs = h->data;

    if (--rs->handles == 0)
        free(rs);
}

static void forget(struct readings *rs)
{
    if (rs->way)
        rs->way->ops->close(rs->way);
    map_fini(&rs->by_name);
    (void)pthread_cond_destroy(&rs->wake);
    (void)pthread_mutex_destroy(&rs->lock);
    wake_close(&rs->wake_loop, closed);
    uv_close((uv_handle_t *)&rs->timer, closed);
}

int readings_start(uv_loop_t *loop, const struct readings_config *c, struct readings **ret)
{
    struct readings *rs = calloc(1, sizeof *rs);
    struct store *st = c->store;

    ASSERT(rs);
    int rc = wake_open(&rs->wake_loop, loop, woken);
    if (rc != 0) {
        free(rs);
        return rc;
    }
    rc = uv_timer_init(loop, &rs->timer);
    ASSERT(rc == 0);
    rs->wake_loop.poll.data = rs->timer.data = rs;
    rs->handles = 2;
    rs->config = *c;
    list_init(&rs->lines);
    list_init(&rs->finished);
    list_init(&rs->back);
    (void)pthread_mutex_init(&rs->lock, NULL);
    (void)pthread_cond_init(&rs->wake, NULL);
    rs->way = st->ops->reading ? st->ops->reading(st) : NULL;
    rc = rs->way ? pthread_create(&rs->thread, NULL, body, rs) : 0;
    if (rc != 0) {
        forget(rs);
        return uv_translate_sys_error(rc);
    }
    *ret = rs;
    return 0;
}

void readings_stop(struct readings *rs)
{
    (void)pthread_mutex_lock(&rs->lock);
    rs->stop = true;
    (void)pthread_cond_signal(&rs->wake);
    (void)pthread_mutex_unlock(&rs->lock);
    if (rs->way)
        (void)pthread_join(rs->thread, NULL);
    ASSERT(rs->stats.waiting == 0 && list_empty(&rs->finished) && list_empty(&rs->back));
    forget(rs);
}
