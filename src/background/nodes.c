/*
 * The nodes that share the store, as they know of each other. A list that was read is good for a
 * second, and a reading serves all who wait for it: the store is asked once a second at most.
 *
 * A node says in the store what it is when it listens, and when it begins to end.
 */

#include "background/nodes.h"

#include <stdio.h>
#include <stdlib.h>

#include "background/room.h"
#include "base/list.h"
#include "base/map.h"
#include "definition/grammar.h"
#include "dispatch/dispatch.h"
#include "node/installation.h"
#include "node/node.h"
#include "node/part.h"
#include "node/readings.h"
#include "store/job.h"
#include "json/json.h"

enum {
    FRESH_MS = 1000,
    PUT_AGAIN_MS = 500,
    URL_SIZE = 300,
    AGENTS_MAX = 1000,      /* that a node lists in its row */
    AGENTS_AGAIN_MS = 5000, /* what comes and goes costs a statement so often */
};

struct nodes {
    struct server *server;
    struct node_row own;
    char url[URL_SIZE];
    struct arena arena; /* of the list: */
    struct node_row *rows;
    size_t count;
    int64_t read_at;     /* steady; 0: there is none yet */
    struct link waiting; /* of struct nodes_wait */
    bool reading, putting, to_put, listens;
    int64_t put_at;     /* steady: not before */
    struct buf agents;  /* that are connected, for `own` */
    uint64_t agents_of; /* a hash, by which a change is found */
    int64_t agents_at;  /* steady: when that was found */
};

struct reader {
    struct store_job job;
    struct server *server;
    struct arena arena;
    int64_t now;
    struct node_row *rows;
    size_t count;
    enum err err;
    struct error error;
};

/* ---- this node's row ---- */

static bool is_any_address(const char *listen)
{
    return strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
}

/* Behind a proxy, or at all addresses of this machine, we do not know how we are reached. */
static void set_url(struct nodes *n)
{
    const struct server_config *c = &n->server->config;
    int host = (int)(strrchr(c->listen, ':') - c->listen);

    if (c->advertise)
        (void)snprintf(n->url, sizeof n->url, "%s", c->advertise);
    else if (!c->behind_proxy && !is_any_address(c->listen))
        (void)snprintf(n->url, sizeof n->url, "%s://%.*s:%d", c->tls_cert ? "https" : "http", host,
                       c->listen, http_port(n->server->http));
    n->own.url = *n->url ? slice_of(n->url) : SLICE_NONE;
    scheduler_is_reached_at(n->server->scheduler,
                            c->public_url ? slice_of(c->public_url) : n->own.url);
}

static enum err nodes_open(struct server *sv, struct error *e)
{
    struct nodes *n = calloc(1, sizeof *n);
    (void)e;

    ASSERT(n);
    n->server = sv;
    list_init(&n->waiting);
    n->own = (struct node_row){.name = slice_of(sv->config.node),
                               .boot = sv->config.store->ops->boot(sv->config.store),
                               .roles = sv->config.roles,
                               .version = slice_of(server_version(sv)),
                               .grammar = GRAMMAR_NEWEST,
                               .started_at = server_now(sv), /* as others see it */
                               .alive = true};
    sv->background->nodes = n;
    return ERR_OK;
}

static void nodes_free(struct server *sv)
{
    struct nodes *n = sv->background->nodes;

    ASSERT(list_empty(&n->waiting));
    arena_fini(&n->arena);
    buf_fini(&n->agents);
    free(n);
}

/* In whatever order the agents are met. */
static uint64_t hash_of_agents(const struct dispatch *d, int64_t now)
{
    const struct agent *a = NULL;
    uint64_t hash = 0;

    for (size_t i = 0; (a = map_next(&d->agents, &i));)
        if (dispatch_is_connected(a, now))
            hash += hash_stable(a->name.ptr, a->name.len);
    return hash;
}

static void list_agents(struct nodes *n, const struct dispatch *d, int64_t now)
{
    const struct agent *a = NULL;
    size_t count = 0;

    buf_clear(&n->agents);
    json_open(&n->agents, '[');
    for (size_t i = 0; count < AGENTS_MAX && (a = map_next(&d->agents, &i));)
        if (dispatch_is_connected(a, now)) {
            json_string(&n->agents, a->name);
            count++;
        }
    json_close(&n->agents, ']');
    n->own.agents = buf_view(&n->agents);
}

/* The others ask for it when they are asked why a task waits: it is written down when it changes,
 * so it costs nothing while agents come and go seldom. */
void nodes_surveyed(struct server *sv)
{
    struct nodes *n = sv->background->nodes;
    const struct dispatch *d = scheduler_dispatch(sv->scheduler);
    int64_t now = server_now(sv);
    int64_t steady = server_steady(NULL);

    if (!n->listens || steady - n->agents_at < AGENTS_AGAIN_MS)
        return;
    uint64_t hash = hash_of_agents(d, now);
    if (hash == n->agents_of)
        return;
    n->agents_of = hash;
    n->agents_at = steady;
    list_agents(n, d, now);
    n->to_put = true;
}

void nodes_listening(struct server *sv)
{
    struct nodes *n = sv->background->nodes;

    set_url(n);
    list_agents(n, scheduler_dispatch(sv->scheduler), server_now(sv));
    n->listens = true;
    n->to_put = sv->config.store->shared;
}

static void nodes_drain(struct server *sv)
{
    struct nodes *n = sv->background->nodes;

    n->own.draining = true;
    n->to_put = n->server->config.store->shared;
    n->put_at = 0;
}

struct putter {
    struct store_job job;
    struct nodes *nodes;
    struct node_row row;
    struct buf agents; /* of the row: those of the node may change meanwhile */
    enum err err;
};

static void put_run(struct store_job *j, struct store *store)
{
    struct putter *p = CONTAINER_OF(j, struct putter, job);
    struct error e = {0};

    p->err = store->ops->nodes->put(store, &p->row, &e);
}

/* The scheduler meets the same error, and reports it. */
static void put_done(struct store_job *j)
{
    struct putter *p = CONTAINER_OF(j, struct putter, job);
    struct nodes *n = p->nodes;

    n->putting = false;
    n->to_put |= p->err != ERR_OK && !p->row.draining;
    n->put_at = server_steady(NULL) + PUT_AGAIN_MS;
    ASSERT(n->server->load.exchanges > 0);
    n->server->load.exchanges--;
    buf_fini(&p->agents);
    free(p);
}

static int64_t nodes_turn(struct server *sv)
{
    struct nodes *n = sv->background->nodes;

    if (!n->to_put || n->putting || server_steady(NULL) < n->put_at)
        return 0;
    struct putter *p = calloc(1, sizeof *p);
    ASSERT(p);
    *p = (struct putter){.job = {.run = put_run, .done = put_done}, .nodes = n, .row = n->own};
    buf_slice(&p->agents, n->own.agents);
    p->row.agents = buf_view(&p->agents);
    n->to_put = false;
    n->putting = true;
    n->server->load.exchanges++;
    n->server->store->submit(n->server->store, &p->job);
    return 0;
}

/* ---- reading ---- */

static void read_run(struct store_job *j, struct store *store)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    rd->err =
        store->ops->nodes->list(store, rd->now, &rd->arena, &rd->rows, &rd->count, &rd->error);
}

static void read_done(struct store_job *j)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);
    struct nodes *n = rd->server->background->nodes;

    n->reading = false;
    ASSERT(n->server->load.exchanges > 0);
    n->server->load.exchanges--;
    if (rd->err == ERR_OK) {
        arena_fini(&n->arena);
        n->arena = rd->arena;
        n->rows = rd->rows;
        n->count = rd->count;
        n->read_at = server_steady(NULL);
    } else {
        arena_fini(&rd->arena);
    }
    LIST_FOREACH (link, after, &n->waiting) {
        struct nodes_wait *w = CONTAINER_OF(link, struct nodes_wait, link);
        link_remove(link);
        w->done(w, rd->err, rd->error.text);
    }
    free(rd);
}

static void begin_read(struct nodes *n)
{
    struct server *sv = n->server;

    if (n->reading)
        return;
    struct reader *rd = calloc(1, sizeof *rd);
    ASSERT(rd);
    rd->server = sv;
    rd->now = server_now(sv);
    rd->job = (struct store_job){.run = read_run, .done = read_done};
    n->reading = true;
    sv->load.exchanges++;
    readings_add(sv->readings, SLICE(" nodes"), READING_ONE, &rd->job); /* in a line of no token */
}

bool nodes_are_fresh(const struct server *sv)
{
    const struct nodes *n = sv->background->nodes;

    return n->read_at != 0 && server_steady(NULL) - n->read_at < FRESH_MS;
}

void nodes_read(struct server *sv, struct nodes_wait *w)
{
    struct nodes *n = sv->background->nodes;

    list_push(&n->waiting, &w->link);
    begin_read(n);
}

const struct node_row *nodes_own(const struct server *sv)
{
    return &sv->background->nodes->own;
}

const struct node_row *nodes_list(const struct server *sv, size_t *ret_count)
{
    const struct nodes *n = sv->background->nodes;

    *ret_count = n->count;
    return n->rows;
}

const struct part nodes_part = {
    .name = "nodes",
    .open = nodes_open,
    .turn = nodes_turn,
    .drain = nodes_drain,
    .free = nodes_free,
};
