/*
 * Compiles the definition in a request's body: on the event loop if it is small, else on a thread,
 * since a large one takes up to a second. Nothing of the node is touched there.
 */

#include "api/compiling.h"

#include <stdlib.h>

#include "definition/definition.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/node.h"
#include "node/offload.h"
#include "node/strict.h"

enum { FREED_HERE_MAX = 1 << 20 };

/* One that is not needed any more. */
struct freeing {
    uv_work_t work;
    struct server *server;
    struct definition *definition;
};

static void free_on_thread(uv_work_t *work)
{
    definition_free(CONTAINER_OF(work, struct freeing, work)->definition);
}

static void freed(uv_work_t *work, int status)
{
    struct freeing *f = CONTAINER_OF(work, struct freeing, work);

    ASSERT(status == 0);
    f->server->load.exchanges--;
    free(f);
}

void definition_free_offloaded(struct server *sv, struct definition *d)
{
    if (!d || definition_size(d) < FREED_HERE_MAX) {
        definition_free(d);
        return;
    }
    struct freeing *f = calloc(1, sizeof *f);
    ASSERT(f);
    f->server = sv;
    f->definition = d;
    sv->load.exchanges++;
    int rc = uv_queue_work(&sv->loop, &f->work, free_on_thread, freed);
    ASSERT(rc == 0);
}

struct compiling {
    struct exchange x;
    struct offload_job job;
    char *text; /* the request may end before the thread has done with it */
    size_t len;
    enum definition_format format;
    struct compiled result;
    char caller[ACCESS_NAME_MAX];
    compiled_fn *then;
};

static void run(struct compiled *c, struct slice text, enum definition_format format)
{
    c->mistakes = calloc(1, sizeof *c->mistakes);
    ASSERT(c->mistakes);
    c->warnings = calloc(1, sizeof *c->warnings);
    ASSERT(c->warnings);
    c->err = definition_parse(text, format, &c->definition, c->mistakes, c->warnings);
}

static void compiled_fini(struct server *sv, struct compiled *c)
{
    definition_free_offloaded(sv, c->definition);
    free(c->mistakes);
    free(c->warnings);
}

/* Passes the result on. */
static void hand_over(struct server *sv, struct http_request *r, struct compiled *c,
                      compiled_fn *then)
{
    size_t size = c->definition ? definition_size(c->definition) : 0;

    if (size > DEFINITION_READ_MAX)
        http_problem(r, 413, "too-big",
                     "a definition may take %d bytes of memory when it was read, this one takes "
                     "%zu: its inputs have too many values or expressions",
                     DEFINITION_READ_MAX, size);
    else
        then(sv, r, c);
}

static void compiling_free(struct compiling *c)
{
    c->x.server->load.exchanges--;
    compiled_fini(c->x.server, &c->result);
    free(c->text);
    free(c);
}

static void on_thread(struct offload_job *j)
{
    struct compiling *c = CONTAINER_OF(j, struct compiling, job);

    run(&c->result, (struct slice){c->text, c->len}, c->format);
}

static void thread_done(struct offload_job *j)
{
    struct compiling *c = CONTAINER_OF(j, struct compiling, job);
    struct http_request *r = c->x.http;

    if (r) {
        exchange_untie(&c->x);
        hand_over(c->x.server, r, &c->result, c->then);
    }
    compiling_free(c);
}

/* Its client has: whatever has not begun is not done any more. */
static void compiling_gone(struct exchange *x)
{
    struct compiling *c = CONTAINER_OF(x, struct compiling, x);

    if (offload_drop(&c->job))
        compiling_free(c);
}

static void compile_later(struct server *sv, struct http_request *r, enum offload_rank rank,
                          enum definition_format format, compiled_fn *then)
{
    if (!offload_has_room(sv->definitions, sv->caller, rank, r->body.len)) {
        http_problem(r, 503, "busy", "too many definitions wait to be read; try again");
        return;
    }
    struct compiling *c = calloc(1, sizeof *c);
    ASSERT(c);
    c->text = malloc(r->body.len);
    ASSERT(c->text);
    c->len = r->body.len;
    memcpy(c->text, r->body.ptr, c->len);
    c->format = format;
    c->then = then;
    ASSERT(sv->caller.len <= sizeof c->caller);
    if (sv->caller.ptr) {
        memcpy(c->caller, sv->caller.ptr, sv->caller.len);
        c->result.caller = (struct slice){c->caller, sv->caller.len};
    }
    exchange_begin(&c->x, sv, r);
    c->x.gone = compiling_gone;
    sv->load.exchanges++;
    c->job = (struct offload_job){.run = on_thread, .done = thread_done, .bytes = c->len};
    offload_add(sv->definitions, sv->caller, rank, &c->job);
}

bool definition_format_of(const struct http_request *r, enum definition_format *ret)
{
    static const char *const yaml[] = {"application/yaml", "text/yaml", "application/x-yaml"};

    *ret = DEFINITION_YAML;
    for (size_t i = 0; i < COUNT_OF(yaml); i++)
        if (content_type_is(r, yaml[i]))
            return true;
    *ret = DEFINITION_JSON;
    return content_type_is(r, "application/json");
}

void definition_compile(struct server *sv, struct http_request *r, enum offload_rank rank,
                        compiled_fn *then)
{
    enum definition_format format;

    if (!definition_format_of(r, &format)) {
        answer_content_type(r, "application/json or application/yaml");
        return;
    }
    if (!content_encoding_ok(r))
        return;
    if (r->body.len > DEFINITION_MAX) {
        http_problem(r, 413, "too-big", "a definition may have at most %d bytes, this has %zu",
                     DEFINITION_MAX, r->body.len);
        return;
    }
    if (r->body.len > DEFINITION_SMALL) {
        compile_later(sv, r, rank, format, then);
        return;
    }
    struct compiled c = {.caller = sv->caller};
    run(&c, r->body, format);
    hand_over(sv, r, &c, then);
    compiled_fini(sv, &c);
}
