/*
 * Counts the open tasks of each token, for its quota (quota.h). The reading thread reads all stored
 * open tasks in parts. After each part it pauses in proportion to the time that the part took, so
 * that a count takes a small share of that thread, whatever is stored. The share is larger while a
 * token is near its limit.
 */

#include "background/open_tasks.h"

#include <stdlib.h>

#include "background/room.h"
#include "node/access.h"
#include "node/node.h"
#include "node/part.h"
#include "node/quota.h"
#include "node/readings.h"
#include "store/job.h"

enum {
    PART = 1000, /* rows */
    TICK_MS = 1000,
    AGAIN_MS = 60000, /* from one count to the next, if it is not asked for */
    REST = 40,        /* times what the part took */
    REST_NEAR = 2
};

struct open_tasks {
    struct server *server;
    uv_timer_t timer;
    struct store_job job;
    struct arena arena;
    struct owners_part part;
    uint64_t took_ns, all_ns; /* a part of the count, and all of them */
    uint64_t next_ns;         /* steady: no part is read before */
    bool counting;            /* some parts were read, and there are more */
    bool reading;
    enum err err;
};

static void read_run(struct store_job *j, struct store *store)
{
    struct open_tasks *count = CONTAINER_OF(j, struct open_tasks, job);
    struct error e = {0};
    uint64_t began_ns = uv_hrtime();

    count->err = store->ops->counts->owners(store, &count->part, &count->arena, &e);
    count->took_ns = uv_hrtime() - began_ns;
}

static uint64_t later(const struct open_tasks *count, uint64_t rest_ns)
{
    return uv_hrtime() + rest_ns * (quotas_near(count->server->quotas) ? REST_NEAR : REST);
}

static void tick(uv_timer_t *t);

static void arm(struct open_tasks *count, uint64_t ms)
{
    struct server *sv = count->server;

    if (uv_is_closing((uv_handle_t *)&count->timer))
        return;
    uv_update_time(&sv->loop);
    (void)uv_timer_start(&count->timer, tick, ms, 0);
}

static void part_is_read(struct open_tasks *count)
{
    struct server *sv = count->server;

    for (size_t i = 0; i < count->part.count; i++)
        quotas_counted(sv->quotas, count->part.owners[i]);
    count->all_ns += count->took_ns;
    count->counting = !count->part.over;
    count->next_ns = later(count, count->counting ? count->took_ns : count->all_ns);
    if (count->part.over)
        quotas_count_end(sv->quotas);
}

static void read_done(struct store_job *j)
{
    struct open_tasks *count = CONTAINER_OF(j, struct open_tasks, job);
    struct server *sv = count->server;

    ASSERT(sv->load.exchanges > 0);
    sv->load.exchanges--;
    count->reading = false;
    if (count->err == ERR_OK)
        part_is_read(count);
    else
        count->counting = false; /* whatever is wrong, others meet it too */
    arena_fini(&count->arena);
    count->arena = (struct arena){0};
    uint64_t now_ns = uv_hrtime();
    uint64_t rest_ms = count->next_ns > now_ns ? (count->next_ns - now_ns) / 1000000 + 1 : 1;
    arm(count, count->counting ? rest_ms : TICK_MS);
}

static void read_part(struct open_tasks *count)
{
    struct server *sv = count->server;

    count->reading = true;
    count->job = (struct store_job){.run = read_run, .done = read_done};
    sv->load.exchanges++;
    readings_add(sv->readings, SLICE_NONE, READING_MANY, &count->job);
}

static void begin(struct open_tasks *count)
{
    quotas_count_begin(count->server->quotas);
    count->part = (struct owners_part){.state = TASK_PENDING, .most = PART};
    count->all_ns = 0;
    read_part(count);
}

/* After a count there is a rest, too. */
static bool is_due(const struct open_tasks *count)
{
    uint64_t now_ns = uv_hrtime();

    if (count->next_ns == 0)
        return true; /* the first one */
    return now_ns >= count->next_ns
           && (quotas_want_count(count->server->quotas)
               || now_ns >= count->next_ns + AGAIN_MS * UINT64_C(1000000));
}

static void tick(uv_timer_t *t)
{
    struct open_tasks *count = t->data;

    if (count->reading || count->server->draining)
        return;
    if (count->counting)
        read_part(count);
    else if (is_due(count))
        begin(count);
    else
        arm(count, TICK_MS);
}

/* Without tokens, tasks have no owner. */
static enum err open_tasks_open(struct server *sv, struct error *e)
{
    struct open_tasks *count = calloc(1, sizeof *count);
    (void)e;

    ASSERT(count);
    count->server = sv;
    int rc = uv_timer_init(&sv->loop, &count->timer);
    ASSERT(rc == 0);
    count->timer.data = count;
    if (sv->config.store->ops->counts && !access_is_open(sv->access))
        arm(count, 0);
    sv->background->open_tasks = count;
    return ERR_OK;
}

static void open_tasks_close(struct server *sv)
{
    struct open_tasks *count = sv->background->open_tasks;

    ASSERT(!count->reading);
    uv_close((uv_handle_t *)&count->timer, NULL);
}

static void open_tasks_free(struct server *sv)
{
    struct open_tasks *count = sv->background->open_tasks;

    free(count);
}

const struct part open_tasks_part = {
    .name = "open tasks",
    .open = open_tasks_open,
    .close = open_tasks_close,
    .free = open_tasks_free,
};
