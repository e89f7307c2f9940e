/*
 * Lines of jobs by token, of which one at a time is on a thread of libuv's pool. See offload.h for
 * who has room and whose turn it is.
 */

#include "node/offload.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/priority.h"

enum { SHARE_OF_TOKEN = 4, SHARE_OF_LATER = 2 };

/* The jobs of one token and rank. */
struct line {
    struct link link; /* among those of its rank that have jobs */
    struct link jobs;
    struct total {
        size_t count, bytes;
    } has, expected;
    enum offload_rank rank;
    size_t name_len;
    char name[]; /* with the rank before it: of the map */
};

struct offload {
    uv_loop_t *loop;
    struct total max;
    struct total has[OFFLOAD_RANKS]; /* with the one that is at work */
    struct link lines[OFFLOAD_RANKS];
    struct map by_name;
    struct offload_job *running;
    enum offload_rank running_rank;
    uint64_t run, refused;
};

/* ---- lines ---- */

enum { KEY_SIZE = 160 };

static struct slice key_of(struct slice token, enum offload_rank rank, char key[KEY_SIZE])
{
    size_t len = token.len < KEY_SIZE - 1 ? token.len : KEY_SIZE - 1;

    key[0] = rank == OFFLOAD_SOON ? 's' : 'l';
    if (len > 0)
        memcpy(key + 1, token.ptr, len);
    return (struct slice){key, len + 1};
}

static struct line *line_of(struct offload *o, struct slice key, enum offload_rank rank)
{
    struct line *l = map_get(&o->by_name, key);

    if (l)
        return l;
    l = calloc(1, sizeof *l + key.len);
    ASSERT(l);
    l->rank = rank;
    l->name_len = key.len;
    memcpy(l->name, key.ptr, key.len);
    list_init(&l->jobs);
    map_put(&o->by_name, (struct slice){l->name, l->name_len}, l);
    return l;
}

static void line_end(struct offload *o, struct line *l)
{
    if (l->has.count + l->expected.count > 0)
        return;
    (void)map_remove(&o->by_name, (struct slice){l->name, l->name_len});
    free(l);
}

static void add(struct total *t, size_t bytes)
{
    t->count++;
    t->bytes += bytes;
}

static void take(struct total *t, size_t bytes)
{
    ASSERT(t->count > 0 && t->bytes >= bytes);
    t->count--;
    t->bytes -= bytes;
}

static void line_lose(struct offload *o, struct line *l, struct offload_job *j)
{
    link_remove(&j->link);
    j->line = NULL;
    take(&l->has, j->bytes);
    if (l->has.count == 0)
        link_remove(&l->link);
    line_end(o, l);
}

/* The first job of the line whose turn it is, which then comes last. NULL: nothing waits. */
static struct offload_job *next(struct offload *o, enum offload_rank *ret_rank)
{
    struct link *first = NULL;

    for (int r = 0; !first && r < OFFLOAD_RANKS; r++)
        first = list_first(&o->lines[r]);
    if (!first)
        return NULL;
    struct line *l = CONTAINER_OF(first, struct line, link);
    struct offload_job *j = CONTAINER_OF(list_first(&l->jobs), struct offload_job, link);
    *ret_rank = l->rank;
    link_remove(first);
    list_push(&o->lines[l->rank], first);
    line_lose(o, l, j);
    return j;
}

/* ---- jobs ---- */

static void begin_next(struct offload *o);

static void on_thread(uv_work_t *work)
{
    struct offload_job *j = CONTAINER_OF(work, struct offload_job, work);

    thread_is_beside();
    j->run(j);
}

/* The next one begins first: the thread is not to wait for the loop. */
static void thread_done(uv_work_t *work, int status)
{
    struct offload_job *j = CONTAINER_OF(work, struct offload_job, work);
    struct offload *o = j->offload;

    ASSERT(status == 0); /* nobody cancels it */
    ASSERT(o->running == j);
    o->running = NULL;
    take(&o->has[o->running_rank], j->bytes);
    begin_next(o);
    j->done(j);
}

static void begin_next(struct offload *o)
{
    if (o->running)
        return;
    struct offload_job *j = next(o, &o->running_rank);
    if (!j)
        return;
    o->running = j;
    o->run++;
    int rc = uv_queue_work(o->loop, &j->work, on_thread, thread_done);
    ASSERT(rc == 0); /* it has what to do */
}

static bool fits(const struct total *has, size_t bytes, const struct total *max, size_t share)
{
    return has->count < (max->count + share - 1) / share
           && has->bytes + bytes <= max->bytes / share;
}

static bool line_fits(const struct offload *o, const struct line *l, size_t bytes)
{
    if (!l)
        return true;
    struct total of_token = {l->has.count + l->expected.count, l->has.bytes + l->expected.bytes};
    return fits(&of_token, bytes, &o->max, SHARE_OF_TOKEN);
}

bool offload_has_room(struct offload *o, struct slice token, enum offload_rank rank, size_t bytes)
{
    char name[KEY_SIZE];
    const struct line *l = map_get(&o->by_name, key_of(token, rank, name));
    struct total all = o->has[OFFLOAD_SOON];

    all.count += o->has[OFFLOAD_LATER].count;
    all.bytes += o->has[OFFLOAD_LATER].bytes;
    /* One always fits where nothing of its token waits, however large. */
    bool room = (all.count == 0 || fits(&all, bytes, &o->max, 1))
                && (rank == OFFLOAD_SOON || o->has[rank].count == 0
                    || fits(&o->has[rank], bytes, &o->max, SHARE_OF_LATER))
                && line_fits(o, l, bytes);
    o->refused += !room;
    return room;
}

bool offload_place_take(struct offload *o, struct slice token, enum offload_rank rank, size_t bytes,
                        struct offload_place *ret)
{
    char name[KEY_SIZE];
    struct slice key = key_of(token, rank, name);

    if (!line_fits(o, map_get(&o->by_name, key), bytes)) {
        o->refused++;
        return false;
    }
    struct line *l = line_of(o, key, rank);
    add(&l->expected, bytes);
    *ret = (struct offload_place){o, l, bytes};
    return true;
}

void offload_place_leave(struct offload_place *p)
{
    struct line *l = p->line;

    if (!l)
        return;
    take(&l->expected, p->bytes);
    line_end(p->offload, l);
    *p = (struct offload_place){0};
}

void offload_add(struct offload *o, struct slice token, enum offload_rank rank,
                 struct offload_job *j)
{
    char name[KEY_SIZE];
    struct line *l = line_of(o, key_of(token, rank, name), rank);

    j->offload = o;
    j->line = l;
    add(&l->has, j->bytes);
    add(&o->has[rank], j->bytes);
    if (!link_is_in(&l->link))
        list_push(&o->lines[rank], &l->link);
    list_push(&l->jobs, &j->link);
    begin_next(o);
}

bool offload_drop(struct offload_job *j)
{
    struct line *l = j->line;
    struct offload *o = j->offload;

    if (!l)
        return false;
    take(&o->has[l->rank], j->bytes);
    line_lose(o, l, j);
    return true;
}

/* ---- life ---- */

void offload_stats(const struct offload *o, struct offload_stats *ret)
{
    *ret = (struct offload_stats){.run = o->run, .refused = o->refused};
    for (int r = 0; r < OFFLOAD_RANKS; r++) {
        ret->waiting += o->has[r].count;
        ret->bytes += o->has[r].bytes;
    }
}

struct offload *offload_new(uv_loop_t *loop, size_t count_max, size_t bytes_max)
{
    struct offload *o = calloc(1, sizeof *o);

    ASSERT(o);
    o->loop = loop;
    o->max = (struct total){count_max, bytes_max};
    for (int r = 0; r < OFFLOAD_RANKS; r++)
        list_init(&o->lines[r]);
    return o;
}

void offload_free(struct offload *o)
{
    if (!o)
        return;
    ASSERT(!o->running && list_empty(&o->lines[0]) && list_empty(&o->lines[1]));
    map_fini(&o->by_name);
    free(o);
}
