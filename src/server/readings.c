#include "server/readings.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"

enum { ONES_FOR_MANY = 8 /* so many times more readings of one task may stand in line */ };

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
    uv_async_t async;
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

/* Of the line whose turn it is, which then comes last. */
static struct store_job *next(struct readings *rs)
{
    struct link *first = list_first(&rs->lines);

    if (!first)
        return NULL;
    struct line *l = CONTAINER_OF(first, struct line, link);
    struct store_job *j = CONTAINER_OF(list_first(&l->jobs), struct store_job, link);
    link_remove(first);
    list_push(&rs->lines, first);
    line_lose(rs, l, j);
    return j;
}

/* ---- on the loop ---- */

static void hand_back(uv_async_t *async)
{
    struct readings *rs = async->data;
    struct link finished;

    list_init(&finished);
    (void)pthread_mutex_lock(&rs->lock);
    for (struct link *l = NULL; (l = list_first(&rs->finished));) {
        link_remove(l);
        list_push(&finished, l);
    }
    (void)pthread_mutex_unlock(&rs->lock);
    for (struct link *l = NULL; (l = list_first(&finished));) {
        struct store_job *j = CONTAINER_OF(l, struct store_job, link);
        link_remove(l);
        j->done(j);
    }
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
        (void)uv_async_send(&rs->async);
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
    list_push(&rs->finished, &j->link);
    (void)pthread_mutex_unlock(&rs->lock);
    (void)uv_async_send(&rs->async);
}

static void *body(void *arg)
{
    struct readings *rs = arg;

    (void)pthread_mutex_lock(&rs->lock);
    while (!rs->stop) {
        struct store_job *j = next(rs);
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

static void forget(struct readings *rs)
{
    if (rs->way)
        rs->way->ops->close(rs->way);
    map_fini(&rs->by_name);
    (void)pthread_cond_destroy(&rs->wake);
    (void)pthread_mutex_destroy(&rs->lock);
}

int readings_start(uv_loop_t *loop, const struct readings_config *c, struct readings **ret)
{
    struct readings *rs = calloc(1, sizeof *rs);
    struct store *st = c->store;

    ASSERT(rs);
    rs->config = *c;
    list_init(&rs->lines);
    list_init(&rs->finished);
    (void)pthread_mutex_init(&rs->lock, NULL);
    (void)pthread_cond_init(&rs->wake, NULL);
    rs->way = st->ops->reading ? st->ops->reading(st) : NULL;
    int rc = rs->way ? pthread_create(&rs->thread, NULL, body, rs) : 0;
    if (rc != 0) {
        forget(rs);
        free(rs);
        return uv_translate_sys_error(rc);
    }
    rc = uv_async_init(loop, &rs->async, hand_back); /* the thread uses it for jobs only */
    ASSERT(rc == 0);                                 /* the loop has what it needs for it already */
    rs->async.data = rs;
    *ret = rs;
    return 0;
}

static void closed(uv_handle_t *h)
{
    free(h->data);
}

void readings_stop(struct readings *rs)
{
    (void)pthread_mutex_lock(&rs->lock);
    rs->stop = true;
    (void)pthread_cond_signal(&rs->wake);
    (void)pthread_mutex_unlock(&rs->lock);
    if (rs->way)
        (void)pthread_join(rs->thread, NULL);
    ASSERT(rs->stats.waiting == 0 && list_empty(&rs->finished));
    forget(rs);
    uv_close((uv_handle_t *)&rs->async, closed);
}
