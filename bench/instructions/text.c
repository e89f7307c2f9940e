/* Workloads of tools/instructions for texts: compiling and evaluating definitions and
 * expressions, and reading, decoding and encoding the documents of tasks. sample.h has the
 * definitions. */

#include "instructions/flow.h"
#include "instructions/workload.h"
#include "sample.h"
#include "store/codec/codec.h"
#include "store/memory/memory.h"

/* ---- definitions ---- */

static struct definition *read_definition(struct slice text)
{
    static struct mistakes mistakes, warnings;
    struct definition *d = NULL;
    enum err err = definition_parse(text, DEFINITION_GUESS, &d, &mistakes, &warnings);

    must_be(err == ERR_OK, mistakes.list[0].found);
    return d;
}

static void definition(const struct workload *w, long rounds)
{
    CLEANUP(buf_fini) struct buf yaml = {0};

    sample_definition(&yaml, (int)w->arg);
    struct definition *d = read_definition(buf_view(&yaml));
    struct slice text = strcmp(w->text, "json") == 0 ? d->json : buf_view(&yaml);
    definition_free(read_definition(text));
    count_begin();
    for (long i = 0; i < rounds; i++)
        definition_free(read_definition(text));
    count_end(w, NULL, rounds);
    definition_free(d);
}

/* ---- expressions ---- */

static void compile_all(struct arena *a, struct expression **ret)
{
    for (size_t i = 0; i < SAMPLE_EXPRESSIONS; i++) {
        struct error e = {0};
        size_t column = 0;
        must(expression_compile(slice_of(sample_expressions[i]), a, &ret[i], &column, &e), &e);
    }
}

static void compile(const struct workload *w, long rounds)
{
    struct expression *x[SAMPLE_EXPRESSIONS];

    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        compile_all(&a, x);
    }
    count_end(w, NULL, rounds);
}

static void evaluate(const struct workload *w, long rounds)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct expression *x[SAMPLE_EXPRESSIONS];
    struct json *root = NULL;
    struct error e = {0};

    must_be(json_parse(&own, slice_of(sample_root), &root, NULL) == ERR_OK, "the sample is JSON");
    compile_all(&own, x);
    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        for (size_t k = 0; k < SAMPLE_EXPRESSIONS; k++)
            must(expression_eval(x[k], root, &a, &j, &e), &e);
    }
    count_end(w, NULL, rounds);
}

/* ---- documents ---- */

/* The row of an ended task: the longest that it had. */
static struct flow *task_that_ended(long steps, struct arena *a, struct task_row *ret)
{
    CLEANUP(buf_fini) struct buf text = {0};

    sample_workflow(&text, steps, SHAPE_SEQUENCE);
    const struct flow_config c = {.store = memory_store_new(), .definition = buf_view(&text)};
    struct flow *f = flow_new(&c);
    flow_run(f, 1, 1);
    flow_row(f, a, ret);
    return f;
}

static void document_read(const struct workload *w, long rounds)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct task_row row;
    struct flow *f = task_that_ended(w->arg, &own, &row);

    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *j = NULL;
        must_be(json_parse(&a, row.doc, &j, NULL) == ERR_OK, "a document is JSON");
    }
    count_end(w, NULL, rounds);
    flow_free(f);
}

static void document_decode(const struct workload *w, long rounds)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct task_row row;
    struct flow *f = task_that_ended(w->arg, &own, &row);

    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct task t;
        struct error e = {0};
        must(task_decode(&flow_definition(f)->workflow, &row, &a, &t, &e), &e);
    }
    count_end(w, NULL, rounds);
    flow_free(f);
}

static void document_encode(const struct workload *w, long rounds)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct task_row row;
    struct task t;
    struct error e = {0};
    struct flow *f = task_that_ended(w->arg, &own, &row);
    const struct workflow *wf = &flow_definition(f)->workflow;

    must(task_decode(wf, &row, &own, &t, &e), &e);
    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        struct task_row again;
        task_encode(wf, &t, &a, &doc, &again);
    }
    count_end(w, NULL, rounds);
    flow_free(f);
}

const struct workload workloads_text[] = {
    {"definition-yaml", "a definition of 20 steps, read and checked", 20, definition, NULL, 20,
     "yaml"},
    {"definition-json", "the same in JSON", 20, definition, NULL, 20, "json"},
    {"expressions-compile", "6 expressions compiled", 300, compile, NULL, 0, NULL},
    {"expressions-evaluate", "6 expressions evaluated", 300, evaluate, NULL, 0, NULL},
    {"document-read", "the document of 3 steps as a tree", 300, document_read, NULL, 3, NULL},
    {"document-decode-3", "a row of 3 steps as a task", 300, document_decode, NULL, 3, NULL},
    {"document-decode-40", "a row of 40 steps as a task", 30, document_decode, NULL, 40, NULL},
    {"document-encode-3", "a task of 3 steps as a row", 300, document_encode, NULL, 3, NULL},
    {"document-encode-40", "a task of 40 steps as a row", 30, document_encode, NULL, 40, NULL},
    {0},
};
