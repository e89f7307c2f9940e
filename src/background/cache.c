/*
 * The caches of what other nodes store, too: definitions and tokens. Whenever a lease is renewed,
 * about once a second, the store returns how often each was changed (struct generations), and what
 * has changed is read again. A request that depends on what another node has just answered has the
 * store read first (registry_read); one read serves all that wait.
 */

#include "background/cache.h"

#include <stdlib.h>

#include "background/messages.h"
#include "background/token_list.h"
#include "definition/definition.h"
#include "definition/registry.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/offload.h"

void cache_check_generations(void *arg, const struct generations *g)
{
    struct server *sv = arg;

    if (!sv->catalog || sv->ended)
        return;
    messages_check_generation(sv, g->outbox);
    catalog_changed(sv->catalog, g->workflows);
    token_list_check_generation(sv, g->tokens);
}

/* ---- requests that are about all definitions ---- */

/* Waits for what others stored. */
struct held {
    struct exchange x;
    struct registry_wait definitions;
    void (*serve)(struct server *sv, struct http_request *r);
};

static void definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct held *h = CONTAINER_OF(w, struct held, definitions);
    struct server *sv = h->x.server;
    struct http_request *r = h->x.http;

    ASSERT(sv->load.exchanges > 0);
    sv->load.exchanges--;
    sv->load.reads_open--;
    exchange_untie(&h->x);
    if (r && err == ERR_OK)
        h->serve(sv, r);
    else if (r)
        answer_trouble(r, err, story);
    free(h);
}

void cache_serve(struct server *sv, struct http_request *r,
                 void (*serve)(struct server *sv, struct http_request *r))
{
    struct held *h = NULL;

    if (!sv->catalog) {
        serve(sv, r);
        return;
    }
    if (!reads_have_room(sv, r))
        return;
    h = calloc(1, sizeof *h);
    ASSERT(h);
    h->serve = serve;
    h->definitions.done = definitions_read;
    exchange_begin(&h->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    bool waits = registry_read(&sv->workflows, &h->definitions);
    ASSERT(waits);
}

bool cache_must_wait(struct server *sv, const struct task_row *row, struct registry_wait *w)
{
    return !registry_find(&sv->workflows, row->workflow, row->version)
           && registry_read(&sv->workflows, w);
}

void cache_describe(struct server *sv)
{
    struct store *st = sv->config.store;
    struct workflow_row *rows = NULL;
    size_t count = 0;
    size_t found = 0;
    struct arena a = {0};
    struct error e = {0};

    enum err err = st->ops->workflow_list(st, &a, &rows, &count, &e);
    struct workflow_inputs *list = arena_alloc(&a, (count + 1) * sizeof *list);
    for (size_t i = 0; err == ERR_OK && i < count; i++) {
        CLEANUP(buf_fini) struct buf inputs = {0};
        const struct definition *d =
            rows[i].described ? NULL : registry_find(&sv->workflows, rows[i].name, rows[i].version);
        if (!d)
            continue;
        definition_write_inputs(d, &inputs);
        list[found++] = (struct workflow_inputs){rows[i].name, rows[i].version,
                                                 arena_copy(&a, buf_view(&inputs))};
    }
    if (found > 0)
        err = st->ops->submissions->describe(st, list, found, &e);
    if (err != ERR_OK)
        log_line(LOG_WARN, "event=workflows_not_described reason=\"%s\"", e.text);
    arena_fini(&a);
}

/* ---- compiling what was read ---- */

struct compiling_of_others {
    struct offload_job job;
    void (*run)(void *of);
    void (*done)(void *of);
    void *of;
};

static void on_thread(struct offload_job *j)
{
    const struct compiling_of_others *c = CONTAINER_OF(j, struct compiling_of_others, job);

    c->run(c->of);
}

static void thread_done(struct offload_job *j)
{
    struct compiling_of_others *c = CONTAINER_OF(j, struct compiling_of_others, job);

    c->done(c->of);
    free(c);
}

void cache_compile(void *arg, void (*run)(void *of), void (*done)(void *of), void *of)
{
    struct server *sv = arg;
    struct compiling_of_others *c = calloc(1, sizeof *c);

    ASSERT(c);
    *c = (struct compiling_of_others){{.run = on_thread, .done = thread_done}, run, done, of};
    offload_add(sv->definitions, SLICE(" nodes"), OFFLOAD_SOON, &c->job);
}
