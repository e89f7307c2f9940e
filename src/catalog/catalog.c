/* Reads definitions that other nodes stored and adds them to the registry. Only read_run runs on
 * the store's thread, and compilation beside the loop, if the server offers that. Design:
 * catalog.h. */

#include "catalog/catalog.h"

#include <stdlib.h>

#include "base/log.h"

struct catalog {
    struct registry_reader reader;
    struct registry *registry;
    struct store_queue *store;
    struct store_job job;
    catalog_offload_fn *offload; /* may be NULL */
    void *offload_arg;
    bool reading;              /* or compiling what was read */
    uint64_t known;            /* the registry has everything up to this generation */
    struct link asking, asked; /* of struct registry_wait: for the next read, for this one */
    /* The current read: */
    struct arena arena;
    struct workflow_row *rows;
    size_t row_count, compiled; /* rows; how many of them were compiled */
    struct definition **definitions;
    int64_t *versions;
    size_t count; /* of definitions */
    uint64_t after, generation;
    enum err err;
    struct error error;
};

/* ---- compiling ---- */

/* NULL: a newer version wrote it, or it was tampered with; that is logged. */
static struct definition *compile(const struct workflow_row *row)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct definition *d = NULL;

    ASSERT(m);
    if (definition_parse(row->text, DEFINITION_YAML, &d, m, NULL) != ERR_OK)
        log_line(LOG_ERROR, "event=workflow_unreadable workflow=%.*s version=%" PRId64,
                 SLICE_ARG(row->name), row->version);
    free(m);
    return d;
}

enum err catalog_load(struct registry *r, struct store *s, uint64_t *ret_generation,
                      struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct workflow_row *rows = NULL;
    size_t count = 0;
    enum err err = ERR_OK;

    *ret_generation = 0;
    if (s->ops->nodes)
        err = s->ops->nodes->workflow_since(s, 0, &a, &rows, &count, ret_generation, e);
    else
        err = s->ops->workflow_list(s, &a, &rows, &count, e);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct definition *d = compile(&rows[i]);
        if (d)
            registry_add(r, d, rows[i].version);
    }
    return err;
}

/* ---- reading ---- */

static void compile_next(struct catalog *c)
{
    const struct workflow_row *row = &c->rows[c->compiled++];
    struct definition *d = compile(row);

    if (!d)
        return;
    c->definitions[c->count] = d;
    c->versions[c->count++] = row->version;
}

static void read_run(struct store_job *j, struct store *s)
{
    struct catalog *c = CONTAINER_OF(j, struct catalog, job);
    size_t count = 0;

    c->err = s->ops->nodes->workflow_since(s, c->after, &c->arena, &c->rows, &count, &c->generation,
                                           &c->error);
    c->row_count = c->err == ERR_OK ? count : 0;
    if (c->row_count == 0)
        return;
    c->definitions = arena_alloc(&c->arena, count * sizeof(struct definition *));
    c->versions = arena_alloc(&c->arena, count * sizeof *c->versions);
    while (!c->offload && c->compiled < c->row_count)
        compile_next(c);
}

static void begin(struct catalog *c);

/* A callback may ask again: that is for the next read. */
static void tell(struct catalog *c, enum err err, const char *story)
{
    struct link asked;

    list_init(&asked);
    for (struct link *w = NULL; (w = list_first(&c->asked));) {
        link_remove(w);
        list_push(&asked, w);
    }
    for (struct link *w = NULL; (w = list_first(&asked));) {
        struct registry_wait *wait = CONTAINER_OF(w, struct registry_wait, link);
        link_remove(w);
        wait->done(wait, err, story);
    }
}

static void enter(struct catalog *c)
{
    struct error error = c->error;

    for (size_t i = 0; i < c->count; i++)
        registry_add(c->registry, c->definitions[i], c->versions[i]);
    if (c->err == ERR_OK)
        c->known = c->generation;
    c->count = c->row_count = c->compiled = 0;
    c->reading = false;
    arena_fini(&c->arena);
    c->arena = (struct arena){0};
    tell(c, c->err, error.text);
    if (!c->reading && !list_empty(&c->asking))
        begin(c);
}

static void run_offloaded(void *of)
{
    compile_next(of);
}

static void one_is_compiled(void *of);

/* One at a time, because compilation is shared with others. */
static void go_on_compiling(struct catalog *c)
{
    if (c->compiled < c->row_count)
        c->offload(c->offload_arg, run_offloaded, one_is_compiled, c);
    else
        enter(c);
}

static void one_is_compiled(void *of)
{
    go_on_compiling(of);
}

static void read_done(struct store_job *j)
{
    go_on_compiling(CONTAINER_OF(j, struct catalog, job));
}

static void begin(struct catalog *c)
{
    ASSERT(!c->reading);
    ASSERT(list_empty(&c->asked));
    for (struct link *w = NULL; (w = list_first(&c->asking));) {
        link_remove(w);
        list_push(&c->asked, w);
    }
    c->reading = true;
    c->after = c->known;
    c->error = (struct error){0};
    c->job = (struct store_job){.run = read_run, .done = read_done};
    c->store->submit(c->store, &c->job);
}

static void ask(struct registry_reader *reader, struct registry_wait *w)
{
    struct catalog *c = CONTAINER_OF(reader, struct catalog, reader);

    ASSERT(!link_is_in(&w->link));
    list_push(&c->asking, &w->link);
    if (!c->reading)
        begin(c);
}

void catalog_changed(struct catalog *c, uint64_t generation)
{
    if (generation != c->known && !c->reading)
        begin(c); /* if it fails, the next notification tries again */
}

void catalog_is_at(struct catalog *c, uint64_t generation)
{
    c->known = generation;
}

bool catalog_is_busy(const struct catalog *c)
{
    return c->reading;
}

/* ---- construction ---- */

struct catalog *catalog_new(struct registry *r, struct store_queue *store)
{
    struct catalog *c = calloc(1, sizeof *c);

    ASSERT(c);
    ASSERT(!r->reader);
    c->reader.read = ask;
    c->registry = r;
    c->store = store;
    list_init(&c->asking);
    list_init(&c->asked);
    r->reader = &c->reader;
    return c;
}

void catalog_offload(struct catalog *c, catalog_offload_fn *offload, void *arg)
{
    c->offload = offload;
    c->offload_arg = arg;
}

static void forget(struct link *list)
{
    for (struct link *w = NULL; (w = list_first(list));)
        link_remove(w);
}

void catalog_free(struct catalog *c)
{
    if (!c)
        return;
    ASSERT(!c->reading);
    forget(&c->asking);
    forget(&c->asked);
    c->registry->reader = NULL;
    free(c);
}
