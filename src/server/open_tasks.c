#include "server/internal.h"

#include <stdlib.h>

/*
 * Counts the open tasks of each token, for its quota (quota.h): all stored tasks that go on are
 * read in parts, on the thread for readings. Between two parts there is a rest in proportion to
 * what the part took, so that a count takes but a small share of that thread, however much is
 * stored. It takes a larger one while a token is near its limit.
 */

enum {
    PART = 1000, /* rows */
    TICK_MS = 1000,
    AGAIN_MS = 60000, /* from one count to the next, if nobody wants to know */
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
    struct open_tasks *ot = CONTAINER_OF(j, struct open_tasks, job);
    struct error e = {0};
    uint64_t began_ns = uv_hrtime();

    ot->err = store->ops->owners(store, &ot->part, &ot->arena, &e);
    ot->took_ns = uv_hrtime() - began_ns;
}

static uint64_t later(const struct open_tasks *ot, uint64_t rest_ns)
{
    return uv_hrtime() + rest_ns * (quotas_near(ot->server->quotas) ? REST_NEAR : REST);
}

static void tick(uv_timer_t *t);

static void arm(struct open_tasks *ot, uint64_t ms)
{
    struct server *sv = ot->server;

    if (uv_is_closing((uv_handle_t *)&ot->timer))
        return;
    uv_update_time(&sv->loop);
    (void)uv_timer_start(&ot->timer, tick, ms, 0);
}

static void part_is_read(struct open_tasks *ot)
{
    struct server *sv = ot->server;

    for (size_t i = 0; i < ot->part.count; i++)
        quotas_counted(sv->quotas, ot->part.owners[i]);
    ot->all_ns += ot->took_ns;
    ot->counting = !ot->part.over;
    ot->next_ns = later(ot, ot->counting ? ot->took_ns : ot->all_ns);
    if (ot->part.over)
        quotas_count_end(sv->quotas);
}

static void read_done(struct store_job *j)
{
    struct open_tasks *ot = CONTAINER_OF(j, struct open_tasks, job);
    struct server *sv = ot->server;

    sv->exchange_count--;
    ot->reading = false;
    if (ot->err == ERR_OK)
        part_is_read(ot);
    else
        ot->counting = false; /* whatever is wrong, others meet it too */
    arena_fini(&ot->arena);
    ot->arena = (struct arena){0};
    uint64_t now_ns = uv_hrtime();
    uint64_t rest_ms = ot->next_ns > now_ns ? (ot->next_ns - now_ns) / 1000000 + 1 : 1;
    arm(ot, ot->counting ? rest_ms : TICK_MS);
}

static void read_part(struct open_tasks *ot)
{
    struct server *sv = ot->server;

    ot->reading = true;
    ot->job = (struct store_job){.run = read_run, .done = read_done};
    sv->exchange_count++;
    readings_add(sv->readings, SLICE_NONE, READING_MANY, &ot->job);
}

static void begin(struct open_tasks *ot)
{
    quotas_count_begin(ot->server->quotas);
    ot->part = (struct owners_part){.state = TASK_PENDING, .most = PART};
    ot->all_ns = 0;
    read_part(ot);
}

/* After a count there is a rest, too. */
static bool is_due(const struct open_tasks *ot)
{
    uint64_t now_ns = uv_hrtime();

    if (ot->next_ns == 0)
        return true; /* the first one */
    return now_ns >= ot->next_ns
           && (quotas_want_count(ot->server->quotas)
               || now_ns >= ot->next_ns + AGAIN_MS * UINT64_C(1000000));
}

static void tick(uv_timer_t *t)
{
    struct open_tasks *ot = t->data;

    if (ot->reading || ot->server->draining)
        return;
    if (ot->counting)
        read_part(ot);
    else if (is_due(ot))
        begin(ot);
    else
        arm(ot, TICK_MS);
}

/* Without tokens, tasks belong to nobody. */
struct open_tasks *open_tasks_new(struct server *sv)
{
    struct open_tasks *ot = calloc(1, sizeof *ot);

    ASSERT(ot);
    ot->server = sv;
    int rc = uv_timer_init(&sv->loop, &ot->timer);
    ASSERT(rc == 0);
    ot->timer.data = ot;
    if (sv->config.store->ops->owners && !access_is_open(sv->access))
        arm(ot, 0);
    return ot;
}

void open_tasks_close(struct open_tasks *ot)
{
    ASSERT(!ot->reading);
    uv_close((uv_handle_t *)&ot->timer, NULL);
}

void open_tasks_free(struct open_tasks *ot)
{
    free(ot);
}
