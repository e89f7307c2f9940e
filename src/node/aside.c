/*
 * Lines of jobs by token, of which one at a time is on a thread of libuv's pool. See aside.h for
 * who has room and whose turn it is.
 */

#include "node/aside.h"

#include <stdlib.h>

#include "base/beside.h"
#include "base/list.h"
#include "base/map.h"

enum { SHARE_OF_TOKEN = 4, SHARE_OF_LATER = 2 };

/* The jobs of one token and rank. */
struct line {
    struct link link; /* among those of its rank */
    struct link jobs;
    struct total {
        size_t count, bytes;
    } has;
    enum aside_rank rank;
    size_t name_len;
    char name[]; /* with the rank before it: of the map */
};

struct aside {
    uv_loop_t *loop;
    struct total max;
    struct total has[ASIDE_RANKS]; /* with the one that is at work */
    struct link lines[ASIDE_RANKS];
    struct map by_name;
    struct aside_job *running;
    enum aside_rank running_rank;
    uint64_t run, refused;
};

/* ---- lines ---- */

enum { KEY_SIZE = 160 };

static struct slice key_of(struct slice token, enum aside_rank rank, char key[KEY_SIZE])
{
    size_t len = token.len < KEY_SIZE - 1 ? token.len : KEY_SIZE - 1;

    key[0] = rank == ASIDE_SOON ? 's' : 'l';
    if (len > 0)
        memcpy(key + 1, token.ptr, len);
    return (struct slice){key, len + 1};
}

static struct line *line_of(struct aside *as, struct slice key, enum aside_rank rank)
{
    struct line *l = map_get(&as->by_name, key);

    if (l)
        return l;
    l = calloc(1, sizeof *l + key.len);
    ASSERT(l);
    l->rank = rank;
    l->name_len = key.len;
    memcpy(l->name, key.ptr, key.len);
    list_init(&l->jobs);
    map_put(&as->by_name, (struct slice){l->name, l->name_len}, l);
    list_push(&as->lines[rank], &l->link);
    return l;
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

static void line_lose(struct aside *as, struct line *l, struct aside_job *j)
{
    link_remove(&j->link);
    j->line = NULL;
    take(&l->has, j->bytes);
    if (l->has.count > 0)
        return;
    link_remove(&l->link);
    (void)map_remove(&as->by_name, (struct slice){l->name, l->name_len});
    free(l);
}

/* The first job of the line whose turn it is, which then comes last. NULL: nothing waits. */
static struct aside_job *next(struct aside *as, enum aside_rank *ret_rank)
{
    struct link *first = NULL;

    for (int r = 0; !first && r < ASIDE_RANKS; r++)
        first = list_first(&as->lines[r]);
    if (!first)
        return NULL;
    struct line *l = CONTAINER_OF(first, struct line, link);
    struct aside_job *j = CONTAINER_OF(list_first(&l->jobs), struct aside_job, link);
    *ret_rank = l->rank;
    link_remove(first);
    list_push(&as->lines[l->rank], first);
    line_lose(as, l, j);
    return j;
}

/* ---- jobs ---- */

static void begin_next(struct aside *as);

static void on_thread(uv_work_t *work)
{
    struct aside_job *j = CONTAINER_OF(work, struct aside_job, work);

    thread_is_beside();
    j->run(j);
}

/* The next one begins first: the thread is not to wait for the loop. */
static void thread_done(uv_work_t *work, int status)
{
    struct aside_job *j = CONTAINER_OF(work, struct aside_job, work);
    struct aside *as = j->aside;

    ASSERT(status == 0); /* nobody cancels it */
    ASSERT(as->running == j);
    as->running = NULL;
    take(&as->has[as->running_rank], j->bytes);
    begin_next(as);
    j->done(j);
}

static void begin_next(struct aside *as)
{
    if (as->running)
        return;
    struct aside_job *j = next(as, &as->running_rank);
    if (!j)
        return;
    as->running = j;
    as->run++;
    int rc = uv_queue_work(as->loop, &j->work, on_thread, thread_done);
    ASSERT(rc == 0); /* it has what to do */
}

static bool fits(const struct total *has, size_t bytes, const struct total *max, size_t share)
{
    return has->count < (max->count + share - 1) / share
           && has->bytes + bytes <= max->bytes / share;
}

bool aside_has_room(struct aside *as, struct slice token, enum aside_rank rank, size_t bytes)
{
    char name[KEY_SIZE];
    const struct line *l = map_get(&as->by_name, key_of(token, rank, name));
    struct total all = as->has[ASIDE_SOON];

    all.count += as->has[ASIDE_LATER].count;
    all.bytes += as->has[ASIDE_LATER].bytes;
    /* One always fits where nothing of its token waits, however large. */
    bool room = (all.count == 0 || fits(&all, bytes, &as->max, 1))
                && (rank == ASIDE_SOON || as->has[rank].count == 0
                    || fits(&as->has[rank], bytes, &as->max, SHARE_OF_LATER))
                && (!l || fits(&l->has, bytes, &as->max, SHARE_OF_TOKEN));
    as->refused += !room;
    return room;
}

void aside_add(struct aside *as, struct slice token, enum aside_rank rank, struct aside_job *j)
{
    char name[KEY_SIZE];
    struct line *l = line_of(as, key_of(token, rank, name), rank);

    j->aside = as;
    j->line = l;
    add(&l->has, j->bytes);
    add(&as->has[rank], j->bytes);
    list_push(&l->jobs, &j->link);
    begin_next(as);
}

bool aside_drop(struct aside_job *j)
{
    struct line *l = j->line;
    struct aside *as = j->aside;

    if (!l)
        return false;
    take(&as->has[l->rank], j->bytes);
    line_lose(as, l, j);
    return true;
}

/* ---- life ---- */

void aside_stats(const struct aside *as, struct aside_stats *ret)
{
    *ret = (struct aside_stats){.run = as->run, .refused = as->refused};
    for (int r = 0; r < ASIDE_RANKS; r++) {
        ret->waiting += as->has[r].count;
        ret->bytes += as->has[r].bytes;
    }
}

struct aside *aside_new(uv_loop_t *loop, size_t count_max, size_t bytes_max)
{
    struct aside *as = calloc(1, sizeof *as);

    ASSERT(as);
    as->loop = loop;
    as->max = (struct total){count_max, bytes_max};
    for (int r = 0; r < ASIDE_RANKS; r++)
        list_init(&as->lines[r]);
    return as;
}

void aside_free(struct aside *as)
{
    if (!as)
        return;
    ASSERT(!as->running && list_empty(&as->lines[0]) && list_empty(&as->lines[1]));
    map_fini(&as->by_name);
    free(as);
}
