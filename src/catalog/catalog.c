/* Reads definitions that other nodes stored and adds them to the registry: see library.h. */

#include "catalog/catalog.h"

#include <stdlib.h>

#include "base/log.h"

struct library {
    struct registry_reader reader;
    struct registry *registry;
    struct store_queue *store;
    struct store_job job;
    library_aside_fn *aside; /* may be NULL */
    void *aside_arg;
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

enum err library_load(struct registry *r, struct store *s, uint64_t *ret_generation,
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

static void compile_next(struct library *l)
{
    const struct workflow_row *row = &l->rows[l->compiled++];
    struct definition *d = compile(row);

    if (!d)
        return;
    l->definitions[l->count] = d;
    l->versions[l->count++] = row->version;
}

static void read_run(struct store_job *j, struct store *s)
{
    struct library *l = CONTAINER_OF(j, struct library, job);
    size_t count = 0;

    l->err = s->ops->nodes->workflow_since(s, l->after, &l->arena, &l->rows, &count, &l->generation,
                                           &l->error);
    l->row_count = l->err == ERR_OK ? count : 0;
    if (l->row_count == 0)
        return;
    l->definitions = arena_alloc(&l->arena, count * sizeof(struct definition *));
    l->versions = arena_alloc(&l->arena, count * sizeof *l->versions);
    while (!l->aside && l->compiled < l->row_count)
        compile_next(l);
}

static void begin(struct library *l);

/* A callback may ask again: that is for the next read. */
static void tell(struct library *l, enum err err, const char *story)
{
    struct link asked;

    list_init(&asked);
    for (struct link *w = NULL; (w = list_first(&l->asked));) {
        link_remove(w);
        list_push(&asked, w);
    }
    for (struct link *w = NULL; (w = list_first(&asked));) {
        struct registry_wait *wait = CONTAINER_OF(w, struct registry_wait, link);
        link_remove(w);
        wait->told(wait, err, story);
    }
}

static void enter(struct library *l)
{
    struct error error = l->error;

    for (size_t i = 0; i < l->count; i++)
        registry_add(l->registry, l->definitions[i], l->versions[i]);
    if (l->err == ERR_OK)
        l->known = l->generation;
    l->count = l->row_count = l->compiled = 0;
    l->reading = false;
    arena_fini(&l->arena);
    l->arena = (struct arena){0};
    tell(l, l->err, error.text);
    if (!l->reading && !list_empty(&l->asking))
        begin(l);
}

static void run_aside(void *of)
{
    compile_next(of);
}

static void one_is_compiled(void *of);

/* One at a time, because compilation is shared with others. */
static void go_on_compiling(struct library *l)
{
    if (l->compiled < l->row_count)
        l->aside(l->aside_arg, run_aside, one_is_compiled, l);
    else
        enter(l);
}

static void one_is_compiled(void *of)
{
    go_on_compiling(of);
}

static void read_done(struct store_job *j)
{
    go_on_compiling(CONTAINER_OF(j, struct library, job));
}

static void begin(struct library *l)
{
    ASSERT(!l->reading);
    ASSERT(list_empty(&l->asked));
    for (struct link *w = NULL; (w = list_first(&l->asking));) {
        link_remove(w);
        list_push(&l->asked, w);
    }
    l->reading = true;
    l->after = l->known;
    l->error = (struct error){0};
    l->job = (struct store_job){.run = read_run, .done = read_done};
    l->store->submit(l->store, &l->job);
}

static void ask(struct registry_reader *reader, struct registry_wait *w)
{
    struct library *l = CONTAINER_OF(reader, struct library, reader);

    ASSERT(!link_is_in(&w->link));
    list_push(&l->asking, &w->link);
    if (!l->reading)
        begin(l);
}

void library_heard(struct library *l, uint64_t generation)
{
    if (generation != l->known && !l->reading)
        begin(l); /* if it fails, the next notification tries again */
}

void library_knows(struct library *l, uint64_t generation)
{
    l->known = generation;
}

bool library_is_busy(const struct library *l)
{
    return l->reading;
}

/* ---- construction ---- */

struct library *library_new(struct registry *r, struct store_queue *store)
{
    struct library *l = calloc(1, sizeof *l);

    ASSERT(l);
    ASSERT(!r->reader);
    l->reader.read = ask;
    l->registry = r;
    l->store = store;
    list_init(&l->asking);
    list_init(&l->asked);
    r->reader = &l->reader;
    return l;
}

void library_aside(struct library *l, library_aside_fn *aside, void *arg)
{
    l->aside = aside;
    l->aside_arg = arg;
}

static void forget(struct link *list)
{
    for (struct link *w = NULL; (w = list_first(list));)
        link_remove(w);
}

void library_free(struct library *l)
{
    if (!l)
        return;
    ASSERT(!l->reading);
    forget(&l->asking);
    forget(&l->asked);
    l->registry->reader = NULL;
    free(l);
}
