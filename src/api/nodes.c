/*
 * GET /v1/nodes, and the refusal of requests that only a scheduler can serve, which names the nodes
 * that are schedulers. The list comes from background/nodes.c.
 */

#include <stdlib.h>

#include "api/handlers.h"
#include "background/nodes.h"
#include "node/exchange.h"
#include "node/installation.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "json/json.h"

static void render_roles(struct buf *b, unsigned roles)
{
    json_open(b, '[');
    if (roles & NODE_SCHEDULER)
        json_string(b, SLICE("scheduler"));
    if (roles & NODE_SUPERVISOR)
        json_string(b, SLICE("supervisor"));
    json_close(b, ']');
}

/* As in a semantic version, the build follows a plus. */
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

static void answer_list(struct server *sv, struct http_request *r, const struct node_row *rows,
                        size_t count)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "self");
    json_string(&b, nodes_own(sv)->name);
    json_key(&b, "installation");
    json_string(&b, slice_of(installation_id(sv)));
    json_key(&b, "nodes");
    json_open(&b, '[');
    for (size_t i = 0; i < count; i++)
        render_node(&b, &rows[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* This node's own row is newer here than in the store. */
static void answer_rows(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct node_row *self = nodes_own(sv);
    struct node_row own = *self;
    size_t stored = 0;
    const struct node_row *list = nodes_list(sv, &stored);
    struct node_row *rows = arena_alloc(&a, (stored + 1) * sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; i < stored; i++) {
        const struct node_row *row = &list[i];
        int order = slice_order(row->name, own.name);
        if (order > 0 && own.name.ptr)
            rows[count++] = own;
        if (order >= 0)
            own.name = SLICE_NONE; /* it is there */
        rows[count] = *row;
        if (order == 0 && row->boot == self->boot) {
            rows[count] = *self;
            rows[count].lease_until = row->lease_until;
            rows[count].leads = row->leads;
        }
        count++;
    }
    if (own.name.ptr)
        rows[count++] = own;
    answer_list(sv, r, rows, count);
}

static void answer_not_a_scheduler(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t count = 0;
    const struct node_row *list = nodes_list(sv, &count);

    for (size_t i = 0; i < count; i++) {
        const struct node_row *row = &list[i];
        if (!row->alive || row->draining || !(row->roles & NODE_SCHEDULER))
            continue;
        buf_fmt(&b, "%s%.*s", b.len ? ", " : "", SLICE_ARG(row->name));
        if (row->url.ptr)
            buf_fmt(&b, " (%.*s)", SLICE_ARG(row->url));
    }
    http_problem(r, 503, "not-a-scheduler",
                 "the node \"%.*s\" only supervises (--roles); schedulers that are alive: %s",
                 SLICE_ARG(nodes_own(sv)->name), b.len ? b.ptr : "none");
}

/* A request that waits for the list. */
struct list_request {
    struct exchange x;
    struct nodes_wait wait;
    bool refused; /* it came to a node that is no scheduler: where is one? */
};

static void list_is_read(struct nodes_wait *w, enum err err, const char *story)
{
    struct list_request *k = CONTAINER_OF(w, struct list_request, wait);
    struct server *sv = k->x.server;
    struct http_request *r = k->x.http;

    sv->load.reads_open--;
    if (r) {
        exchange_untie(&k->x);
        if (err != ERR_OK && !k->refused)
            answer_trouble(r, err, story);
        else if (k->refused)
            answer_not_a_scheduler(sv, r);
        else
            answer_rows(sv, r);
    }
    free(k);
}

static void wait_for_list(struct server *sv, struct http_request *r, bool refused)
{
    if (!reads_have_room(sv, r))
        return;
    struct list_request *k = calloc(1, sizeof *k);
    ASSERT(k);
    k->refused = refused;
    k->wait.done = list_is_read;
    sv->load.reads_open++;
    exchange_begin(&k->x, sv, r);
    nodes_read(sv, &k->wait);
}

/* The store of a single node is locked by it: it lives, and leads. */
static void answer_alone(struct server *sv, struct http_request *r)
{
    struct node_row row = *nodes_own(sv);

    row.leads = true;
    answer_list(sv, r, &row, 1);
}

void nodes_get(struct server *sv, struct http_request *r)
{
    if (!sv->config.store->shared)
        answer_alone(sv, r);
    else if (nodes_are_fresh(sv))
        answer_rows(sv, r);
    else
        wait_for_list(sv, r, false);
}

void nodes_refuse(struct server *sv, struct http_request *r)
{
    if (nodes_are_fresh(sv))
        answer_not_a_scheduler(sv, r);
    else
        wait_for_list(sv, r, true);
}
