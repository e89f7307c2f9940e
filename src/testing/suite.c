/* Reads a test file (suite.h): its frame, and the frame of each test. What actions do is read by
 * suite_agents.c, what happens from outside by suite_acts.c, what is expected by suite_expect.c.
 * suite_check.c compares it with the definitions. */

#include "testing/suite.h"

#include <stdlib.h>

#include "base/when.h"
#include "definition/reader/definition_reader.h"
#include "definition/template/template.h"
#include "testing/suite_reader.h"

enum { NAME_MAX_BYTES = 200, FILE_MAX = 1000, ALSO_MAX = 100, PERSON_MAX = 128 };

/* 2026-01-01T09:00:00Z, unless a test says otherwise. */
#define START_AT INT64_C(1767258000000)

/* ---- expressions ---- */

struct watcher {
    struct reader *reader;
    const struct path *path;
};

static void report_fault(void *arg, const struct json *string, size_t at, const char *what)
{
    const struct watcher *w = arg;

    mistake_of_expression(w->reader, w->path, reader_string_offset(w->reader, string, at), what);
}

static void ignore_reference(void *arg, const struct json *string, size_t at,
                             const struct reference *ref)
{
    (void)arg;
    (void)string;
    (void)at;
    (void)ref;
}

static void ignore_odd(void *arg, const struct json *string, size_t at, const struct odd_name *odd)
{
    (void)arg;
    (void)string;
    (void)at;
    (void)odd;
}

void read_tree(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct watcher watcher = {r, path};
    struct wanted of_input = {0};
    struct template_watch w = {
        &watcher, report_fault, ignore_reference, ignore_odd, {.of_input = &of_input}};

    *(struct template **)target = template_read(j, r->arena, &w);
}

void read_test_expression(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct watcher w = {r, path};
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;

    if (j->type != JSON_STRING)
        mistake_in(r, path, j, "an expression in a string");
    else if (expression_compile(j->text, r->arena, &x, &column, &e) != ERR_OK)
        report_fault(&w, j, column - 1, e.text);
    else
        *(struct expression **)target = x;
}

/* ---- the frame of a test ---- */

static void read_object_node(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    if (j->type != JSON_OBJECT)
        mistake_in(r, path, j, "an object: the members of the world and their values");
    else
        *(const struct json **)target = j;
}

static void read_world(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct test_case *t = target;

    read_object_node(r, j, path, &t->world_json);
    if (t->world_json)
        t->world = t->world_json->raw;
}

static void read_raw(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    (void)r;
    (void)path;
    *(struct slice *)target = j->raw;
}

static void read_start(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    int64_t at = 0;

    if (j->type == JSON_STRING && time_parse(j->text, &at) && at > MS_PER_D)
        *(int64_t *)target = at;
    else
        mistake_in(r, path, j, "a time with Z or an offset: 2027-01-31T10:00:00Z");
}

static void read_person(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0 || j->text.len > PERSON_MAX)
        mistake_in(r, path, j, "the name of a person");
    else
        *(struct slice *)target = j->text;
}

static const struct field test_fields[] = {
    {FIELD_PLACE("name", FIELD_TEXT, 0, struct test_case, name), .most = NAME_MAX_BYTES,
     .is_required = true},
    FIELD("input", read_raw, offsetof(struct test_case, input)),
    FIELD("world", read_world, 0),
    FIELD("at", read_start, offsetof(struct test_case, start_at)),
    FIELD("submitter", read_person, offsetof(struct test_case, submitter)),
    FIELD("agents", read_agents, offsetof(struct test_case, agents)),
    FIELD("operator", read_operator, 0),
    FIELD("signals", read_signals, 0),
    FIELD("approvals", read_approvals, 0),
    FIELD("faults", read_faults, 0),
    REQUIRED("expect", read_expect, 0),
};

/* Reports name and place of a test that has the name of an earlier one. */
static void check_name(struct reader *r, const struct json *j, const struct path *path,
                       const struct suite *s, const struct test_case *t)
{
    const struct json *name = json_get(j, "name");
    struct path at = {path, SLICE("name"), 0};

    for (size_t i = 0; t->name && i < s->test_count; i++)
        if (s->tests[i].name && strcmp(s->tests[i].name, t->name) == 0) {
            mistake_in(r, &at, name, "a name that no other test of the file has");
            return;
        }
}

static void read_test(struct reader *r, const struct json *j, const struct path *path,
                      struct suite *s)
{
    struct test_case t = {.at = j->at,
                          .json = j,
                          .submitter = SLICE("tester"),
                          .start_at = START_AT};

    read_object(r, j, path, test_fields, COUNT_OF(test_fields), &t);
    check_name(r, j, path, s, &t);
    s->tests[s->test_count++] = t;
}

static void read_tests(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct suite *s = target;
    size_t i = 0;

    if (j->type != JSON_ARRAY || j->count == 0 || j->count > SUITE_TESTS_MAX) {
        mistake_in(r, path, j, "an array of 1 to %d tests", SUITE_TESTS_MAX);
        return;
    }
    s->tests = arena_alloc(r->arena, j->count * sizeof *s->tests);
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        read_test(r, one, &at, s);
    }
}

/* ---- the frame of the file ---- */

static void read_file_name(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct suite *s = target;

    if (j->type != JSON_STRING || j->text.len == 0 || j->text.len > FILE_MAX) {
        mistake_in(r, path, j, "the file of a workflow definition, as order.yaml");
        return;
    }
    s->workflow = (struct suite_source){j->text.ptr, j->at};
}

static void read_also(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct suite *s = target;
    size_t i = 0;

    if (j->type != JSON_ARRAY || j->count > ALSO_MAX) {
        mistake_in(r, path, j, "an array of files of definitions: those of the children");
        return;
    }
    s->also = arena_alloc(r->arena, (j->count + 1) * sizeof *s->also);
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        if (one->type != JSON_STRING || one->text.len == 0 || one->text.len > FILE_MAX)
            mistake_in(r, &at, one, "the file of a workflow definition");
        else
            s->also[s->also_count++] = (struct suite_source){one->text.ptr, one->at};
    }
}

static const struct field fields[] = {
    REQUIRED("workflow", read_file_name, 0),
    FIELD("also", read_also, 0),
    FIELD("world", read_object_node, offsetof(struct suite, world_json)),
    FIELD("agents", read_agents, offsetof(struct suite, agents)),
    FIELD("always", read_rules, offsetof(struct suite, always)),
    FIELD("at_end", read_rules, offsetof(struct suite, at_end)),
    REQUIRED("tests", read_tests, 0),
};

enum err suite_parse(struct slice text, enum source_format format, const char *file,
                     struct suite **ret, struct mistakes *m)
{
    struct suite *s = calloc(1, sizeof *s);
    struct path at_root = {0};
    struct json *root = NULL;

    ASSERT(s);
    m->count = 0;
    struct reader r = {.arena = &s->arena, .mistakes = m, .subject = s};
    struct slice kept = arena_copy(&s->arena, text.ptr ? text : SLICE(""));
    enum err err = read_source(&r, kept, format, &root);
    s->text = r.text.ptr ? r.text : kept;
    s->is_yaml = r.is_yaml;
    s->root = root;
    s->file = arena_copy(&s->arena, slice_of(file)).ptr;
    if (err == ERR_OK) {
        read_object(&r, root, &at_root, fields, COUNT_OF(fields), s);
        s->world = s->world_json ? s->world_json->raw : SLICE("{}");
    }
    if (err == ERR_OK && m->count > 0)
        err = ERR_INVALID;
    if (err != ERR_OK) {
        mistakes_sort(m);
        suite_free(s);
        return err;
    }
    *ret = s;
    return ERR_OK;
}

void suite_free(struct suite *s)
{
    if (!s)
        return;
    registry_fini(&s->workflows);
    arena_fini(&s->arena);
    free(s);
}

void suite_place(const struct suite *s, uint32_t at, uint32_t *ret_line, uint32_t *ret_column)
{
    json_position(s->text, at, ret_line, ret_column);
}

const struct play *plays_find(const struct plays *p, struct slice key)
{
    for (size_t i = 0; i < p->count; i++)
        if (slice_eq(p->list[i].key, key))
            return &p->list[i];
    return NULL;
}
