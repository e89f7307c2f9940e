/* Large JSON bodies: parsed on a thread, before their request is served. A body of 4 MiB takes up
 * to a third of a second. The handlers know nothing of it: body_json gives them the tree. */

#include <stdlib.h>

#include "api/body.h"
#include "api/compiling.h"
#include "node/exchange.h"
#include "node/node.h"
#include "node/offload.h"
#include "node/part.h"
#include "node/strict.h"

static void on_thread(struct offload_job *j)
{
    struct large_body *b = CONTAINER_OF(j, struct large_body, job);

    body_parse(&b->tree, buf_view(&b->text), b->depth, b->left, &b->parsed);
}

/* Trees of hundreds of megabytes take long to be freed, too. */
static void free_on_thread(uv_work_t *work)
{
    struct large_body *b = CONTAINER_OF(work, struct large_body, job.work);

    arena_fini(&b->tree);
    buf_fini(&b->text);
}

static void freed(uv_work_t *work, int status)
{
    struct large_body *b = CONTAINER_OF(work, struct large_body, job.work);

    ASSERT(status == 0);
    b->x.server->load.exchanges--;
    buf_fini(&b->parsed.story);
    free(b);
}

static void large_free(struct large_body *b)
{
    int rc = uv_queue_work(&b->x.server->loop, &b->job.work, free_on_thread, freed);

    ASSERT(rc == 0);
}

/* The request's memory ends with the request again, and the tree when its handler is through. */
void body_is_used(struct server *sv, struct http_request *r)
{
    struct large_body *b = r->large;
    (void)sv;

    if (!b)
        return;
    r->large = NULL;
    http_return_body(r, b->text);
    b->text = (struct buf){0};
    large_free(b);
}

static void parsed(struct offload_job *j)
{
    struct large_body *b = CONTAINER_OF(j, struct large_body, job);
    struct http_request *r = b->x.http;

    if (!r) {
        large_free(b);
        return;
    }
    exchange_untie(&b->x);
    r->large = b;
    b->again(b->x.server, r);
}

static void large_gone(struct exchange *x)
{
    struct large_body *b = CONTAINER_OF(x, struct large_body, x);

    if (offload_drop(&b->job))
        large_free(b);
}

/* ---- while a body comes ---- */

static void place_let_go(void *kept)
{
    offload_place_leave(kept);
}

bool body_may_come(struct http_request *r, struct offload *o, struct slice line,
                   enum offload_rank rank)
{
    size_t bytes = http_body_expected(r);
    struct offload_place *p;

    if (bytes <= BODY_SMALL)
        return true;
    p = arena_alloc(&r->arena, sizeof *p);
    if (!offload_place_take(o, line, rank, bytes, p)) {
        http_problem(r, 503, "busy", "too many large bodies wait to be read; try again");
        return false;
    }
    r->kept = p;
    r->let_go = place_let_go;
    return true;
}

void body_came(struct http_request *r)
{
    if (r->let_go)
        r->let_go(r->kept);
    r->let_go = NULL;
}

/* ---- when it has come ---- */

static bool has_room(struct server *sv, struct http_request *r, struct slice line)
{
    if (offload_has_room(sv->bodies, line, OFFLOAD_SOON, r->body.len))
        return true;
    http_problem(r, 503, "busy", "too many large bodies wait to be read; try again");
    return false;
}

bool body_may_be_read(struct server *sv, struct http_request *r)
{
    return r->body.len <= BODY_SMALL || has_room(sv, r, sv->caller);
}

bool body_is_parsed_first(struct server *sv, struct http_request *r, struct slice line,
                          unsigned depth, void (*again)(struct server *sv, struct http_request *r))
{
    if (r->large || r->body.len <= BODY_SMALL || !content_type_is(r, "application/json"))
        return false;
    if (!has_room(sv, r, line))
        return true;
    struct large_body *b = calloc(1, sizeof *b);
    ASSERT(b);
    b->depth = depth;
    b->left = trees_left(sv);
    b->again = again;
    b->text = http_take_body(r);
    exchange_begin(&b->x, sv, r);
    b->x.gone = large_gone;
    sv->load.exchanges++;
    b->job = (struct offload_job){.run = on_thread, .done = parsed, .bytes = b->text.len};
    offload_add(sv->bodies, line, OFFLOAD_SOON, &b->job);
    return true;
}

/* ---- the part ---- */

static enum err bodies_open(struct server *sv, struct error *e)
{
    (void)e;
    sv->definitions = offload_new(&sv->loop, DEFINITIONS_MAX, DEFINITIONS_BYTES);
    sv->bodies = offload_new(&sv->loop, BODIES_MAX, trees_max(sv));
    return ERR_OK;
}

static void bodies_free(struct server *sv)
{
    offload_free(sv->definitions);
    offload_free(sv->bodies);
}

const struct part bodies_part = {
    .name = "bodies",
    .open = bodies_open,
    .free = bodies_free,
};
