/*
 * Reads records of tasks, gathered by token (records.h). Each gathering exists while it has
 * something to read; its reads take their turn among those of other tokens (node/readings.h), or
 * are jobs of the store's thread.
 */

#include "api/records.h"

#include <stdlib.h>

#include "api/room.h"
#include "base/map.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/task_read.h"
#include "store/job.h"

enum {
    TOGETHER_MAX = 64,        /* records in one read */
    TOGETHER_BYTES = 1 << 20, /* and what they may have together, unless it is one alone */
};

/* The gatherings of all tokens. */
struct records {
    struct map gatherings; /* by the name of the token */
};

struct gathering {
    struct server *server;
    struct link waiting;
    struct record_read *reads[TOGETHER_MAX]; /* under way */
    size_t count;
    struct task_record list[TOGETHER_MAX];
    struct store_job job;
    bool is_first;    /* it is nobody's: it waits for no other token's reads */
    struct slice key; /* its text lies behind: '=' and the token's name, or "-" */
};

static void read_begin(struct gathering *g);

static void read_run(struct store_job *j, struct store *store)
{
    struct gathering *g = CONTAINER_OF(j, struct gathering, job);

    task_records_read(store, g->list, g->count, TOGETHER_BYTES);
    for (size_t i = 0; i < g->count; i++) {
        struct record_read *r = g->reads[i];
        *r->record = g->list[i];
        if (!r->record->left)
            r->read(r);
        j->bytes += r->record->arena->total;
    }
}

/* Those that were left come first in the next read. */
static void put_back(struct gathering *g)
{
    for (size_t i = g->count; i-- > 0;)
        if (g->reads[i]->record->left)
            list_push_front(&g->waiting, &g->reads[i]->link);
}

static void gathering_free(struct gathering *g)
{
    (void)map_remove(&g->server->api->records->gatherings, g->key);
    free(g);
}

/* A request whose read is done may begin another one. */
static void read_done(struct store_job *j)
{
    struct gathering *g = CONTAINER_OF(j, struct gathering, job);

    put_back(g);
    for (size_t i = 0; i < g->count; i++)
        if (!g->list[i].left)
            g->reads[i]->done(g->reads[i]);
    g->server->load.exchanges--;
    if (list_empty(&g->waiting))
        gathering_free(g);
    else
        read_begin(g);
}

static void read_begin(struct gathering *g)
{
    struct server *sv = g->server;
    struct link *first = NULL;

    g->count = 0;
    while (g->count < TOGETHER_MAX && (first = list_pop(&g->waiting))) {
        struct record_read *r = CONTAINER_OF(first, struct record_read, link);
        g->list[g->count] = (struct task_record){.id = r->record->id, .arena = r->record->arena};
        g->reads[g->count++] = r;
    }
    ASSERT(g->count > 0);
    g->job =
        (struct store_job){.run = read_run, .done = read_done, .account = g->reads[0]->account};
    sv->load.exchanges++;
    if (g->is_first)
        sv->store->submit(sv->store, &g->job);
    else
        readings_add(sv->readings, (struct slice){g->key.ptr + 1, g->key.len - 1}, READING_ONE,
                     &g->job);
}

static struct gathering *gathering_new(struct server *sv, struct slice key)
{
    struct gathering *g = calloc(1, sizeof *g + key.len);

    ASSERT(g);
    g->server = sv;
    memcpy(g + 1, key.ptr, key.len);
    g->key = (struct slice){(char *)(g + 1), key.len};
    list_init(&g->waiting);
    map_put(&sv->api->records->gatherings, g->key, g);
    return g;
}

void record_read_begin(struct server *sv, struct slice token, bool is_first, struct record_read *r)
{
    CLEANUP(buf_fini) struct buf key = {0};

    buf_byte(&key, is_first ? '-' : '=');
    if (!is_first)
        buf_slice(&key, token);
    struct gathering *g = map_get(&sv->api->records->gatherings, buf_view(&key));
    bool begins = !g;
    if (begins) {
        g = gathering_new(sv, buf_view(&key));
        g->is_first = is_first;
    }
    list_push(&g->waiting, &r->link);
    if (begins)
        read_begin(g);
}

static enum err records_open(struct server *sv, struct error *e)
{
    struct records *rs = calloc(1, sizeof *rs);
    (void)e;

    ASSERT(rs);
    sv->api->records = rs;
    return ERR_OK;
}

static void records_free(struct server *sv)
{
    ASSERT(sv->api->records->gatherings.len == 0);
    map_fini(&sv->api->records->gatherings);
    free(sv->api->records);
}

const struct part records_part = {
    .name = "records",
    .open = records_open,
    .free = records_free,
};
