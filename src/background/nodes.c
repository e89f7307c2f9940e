#include "node/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "definition/grammar.h"
#include "store/row.h"
#include "json/json.h"

/*
 * The nodes that share the store, as they know of each other: GET /v1/nodes, and where to go with
 * what this one does not do. A list that was read is good for a second, and all who ask while one
 * is being read get that one: however many ask, the store is asked once a second.
 *
 * A node says in the store what it is when it listens, and when it begins to end.
 */

enum {
    FRESH_MS = 1000,
    PUT_AGAIN_MS = 500,
    URL_SIZE = 300,
    AGENTS_MAX = 1000,      /* that a node says it has */
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
    struct link waiting; /* of struct asker */
    bool reading, putting, to_put, listens;
    int64_t put_at;     /* steady: not before */
    struct buf agents;  /* that are connected, as `own` says it */
    uint64_t agents_of; /* tells other ones apart */
    int64_t agents_at;  /* steady: when that was found */
};

/* A request that waits for the list. */
struct asker {
    struct exchange x;
    struct link link;
    bool refused; /* it came to a node that is no scheduler: where is one? */
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

/* ---- what is said of us ---- */

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
}

struct nodes *nodes_new(struct server *sv)
{
    struct nodes *n = calloc(1, sizeof *n);

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
    return n;
}

void nodes_free(struct nodes *n)
{
    if (!n)
        return;
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
void nodes_surveyed(struct nodes *n)
{
    const struct dispatch *d = scheduler_dispatch(n->server->scheduler);
    int64_t now = server_now(n->server);
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

void nodes_listening(struct nodes *n)
{
    set_url(n);
    list_agents(n, scheduler_dispatch(n->server->scheduler), server_now(n->server));
    n->listens = true;
    n->to_put = n->server->config.store->shared;
}

void nodes_drain(struct nodes *n)
{
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

/* Whatever is wrong, the scheduler meets it too, and tells of it. */
static void put_done(struct store_job *j)
{
    struct putter *p = CONTAINER_OF(j, struct putter, job);
    struct nodes *n = p->nodes;

    n->putting = false;
    n->to_put |= p->err != ERR_OK && !p->row.draining;
    n->put_at = server_steady(NULL) + PUT_AGAIN_MS;
    n->server->exchange_count--;
    buf_fini(&p->agents);
    free(p);
}

void nodes_turn(struct nodes *n)
{
    if (!n->to_put || n->putting || server_steady(NULL) < n->put_at)
        return;
    struct putter *p = calloc(1, sizeof *p);
    ASSERT(p);
    *p = (struct putter){.job = {.run = put_run, .done = put_done}, .nodes = n, .row = n->own};
    buf_slice(&p->agents, n->own.agents);
    p->row.agents = buf_view(&p->agents);
    n->to_put = false;
    n->putting = true;
    n->server->exchange_count++;
    n->server->store->submit(n->server->store, &p->job);
}

/* ---- answers ---- */

static void render_roles(struct buf *b, unsigned roles)
{
    json_open(b, '[');
    if (roles & NODE_SCHEDULER)
        json_string(b, SLICE("scheduler"));
    if (roles & NODE_SUPERVISOR)
        json_string(b, SLICE("supervisor"));
    json_close(b, ']');
}

/* As in a semantic version, what tells builds apart follows a plus. */
static void render_version(struct buf *b, struct slice version)
{
    const char *plus = version.len > 0 ? memchr(version.ptr, '+', version.len) : NULL;
    size_t len = plus ? (size_t)(plus - version.ptr) : version.len;

    json_key(b, "version");
    json_string(b, (struct slice){version.ptr, len});
    json_key(b, "build");
    json_string(b, plus ? (struct slice){plus + 1, version.len - len - 1} : SLICE_NONE);
}

static void render_node(struct buf *b, const struct node_row *row)
{
    json_open(b, '{');
    json_key(b, "node");
    json_string(b, row->name);
    json_key(b, "boot");
    json_number(b, (int64_t)row->boot);
    render_version(b, row->version);
    json_key(b, "url");
    json_string(b, row->url);
    json_key(b, "roles");
    render_roles(b, row->roles);
    json_key(b, "started_at");
    json_time(b, row->started_at);
    json_key(b, "lease_until");
    json_time(b, row->lease_until);
    json_key(b, "alive");
    json_bool(b, row->alive);
    json_key(b, "leads");
    json_bool(b, row->leads);
    json_key(b, "draining");
    json_bool(b, row->draining);
    json_close(b, '}');
}

static void answer_list(struct http_request *r, const struct nodes *n, const struct node_row *rows,
                        size_t count)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "self");
    json_string(&b, n->own.name);
    json_key(&b, "installation");
    json_string(&b, slice_of(installation_id(n->server)));
    json_key(&b, "nodes");
    json_open(&b, '[');
    for (size_t i = 0; i < count; i++)
        render_node(&b, &rows[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* Who we are we know better than the store, and before it does. */
static void answer_rows(struct http_request *r, const struct nodes *n)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct node_row *rows = arena_alloc(&a, (n->count + 1) * sizeof *rows);
    struct node_row own = n->own;
    size_t count = 0;

    for (size_t i = 0; i < n->count; i++) {
        const struct node_row *row = &n->rows[i];
        int order = slice_order(row->name, own.name);
        if (order > 0 && own.name.ptr)
            rows[count++] = own;
        if (order >= 0)
            own.name = SLICE_NONE; /* it is there */
        rows[count] = *row;
        if (order == 0 && row->boot == n->own.boot) {
            rows[count] = n->own;
            rows[count].lease_until = row->lease_until;
            rows[count].leads = row->leads;
        }
        count++;
    }
    if (own.name.ptr)
        rows[count++] = own;
    answer_list(r, n, rows, count);
}

static void answer_not_a_scheduler(struct http_request *r, const struct nodes *n)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < n->count; i++) {
        const struct node_row *row = &n->rows[i];
        if (!row->alive || row->draining || !(row->roles & NODE_SCHEDULER))
            continue;
        buf_fmt(&b, "%s%.*s", b.len ? ", " : "", SLICE_ARG(row->name));
        if (row->url.ptr)
            buf_fmt(&b, " (%.*s)", SLICE_ARG(row->url));
    }
    http_problem(r, 503, "not-a-scheduler",
                 "the node \"%.*s\" only supervises (--roles); schedulers that are alive: %s",
                 SLICE_ARG(n->own.name), b.len ? b.ptr : "none");
}

static void answer_asker(struct asker *k, struct nodes *n, const struct reader *rd)
{
    struct http_request *r = k->x.http;

    link_remove(&k->link);
    n->server->reads_open--;
    if (r) {
        exchange_untie(&k->x);
        if (rd->err != ERR_OK && !k->refused)
            answer_trouble(r, rd->err, rd->error.text);
        else if (k->refused)
            answer_not_a_scheduler(r, n);
        else
            answer_rows(r, n);
    }
    free(k);
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
    struct nodes *n = rd->server->nodes;

    n->reading = false;
    n->server->exchange_count--;
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
        answer_asker(CONTAINER_OF(link, struct asker, link), n, rd);
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
    sv->exchange_count++;
    readings_add(sv->readings, SLICE(" nodes"), READING_ONE, &rd->job); /* of nobody's token */
}

static void wait_for_list(struct nodes *n, struct http_request *r, bool refused)
{
    struct server *sv = n->server;

    if (!reads_have_room(sv, r))
        return;
    struct asker *k = calloc(1, sizeof *k);
    ASSERT(k);
    k->refused = refused;
    sv->reads_open++;
    exchange_begin(&k->x, sv, r);
    list_push(&n->waiting, &k->link);
    begin_read(n);
}

static bool is_fresh(const struct nodes *n)
{
    return n->read_at != 0 && server_steady(NULL) - n->read_at < FRESH_MS;
}

/* A store of one node's own is held by a lock: it lives, and leads. */
static void answer_alone(struct http_request *r, const struct nodes *n)
{
    struct node_row row = n->own;

    row.leads = true;
    answer_list(r, n, &row, 1);
}

void nodes_get(struct server *sv, struct http_request *r)
{
    struct nodes *n = sv->nodes;

    if (!sv->config.store->shared)
        answer_alone(r, n);
    else if (is_fresh(n))
        answer_rows(r, n);
    else
        wait_for_list(n, r, false);
}

void nodes_refuse(struct server *sv, struct http_request *r)
{
    if (is_fresh(sv->nodes))
        answer_not_a_scheduler(r, sv->nodes);
    else
        wait_for_list(sv->nodes, r, true);
}
