/* Tests of filter.c: what the filters of operations select as queries of the store, and the
 * errors of those that are refused. tests/contract/store_operation.c runs such queries on the
 * stores. */

#include "operations/filter.h"

#include "base/test.h"

static enum err filter_of(struct arena *a, const char *text, struct task_filter *ret,
                          struct error *e)
{
    struct json *j = NULL;

    enum err err = json_parse(a, slice_of(text), &j, NULL);
    CHECK(err == ERR_OK, "%s", text);
    return filter_read(a, j, ret, e);
}

static void check_refused(const char *text, const char *why)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_filter f;
    struct error e = {0};

    CHECK(filter_of(&a, text, &f, &e) == ERR_INVALID, "%s", text);
    CHECK(strstr(e.text, why), "%s: %s", text, e.text);
}

static void a_filter_is_a_query(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_filter f;
    struct error e = {0};
    (void)state;

    enum err err = filter_of(&a,
                             "{\"state\":[\"error\",\"pending\"],\"workflow\":\"w\",\"version\":3,"
                             "\"step\":\"s\",\"tag\":{\"k\":\"v\"},\"closed\":false,"
                             "\"submitted_after\":\"2026-01-31T10:00:00Z\",\"ids\":[\"a\",\"b\","
                             "\"a\"],\"id_prefix\":\"a-\"}",
                             &f, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(f.query.states == (1U << TASK_ERROR | 1U << TASK_PENDING), "states");
    CHECK(slice_is(f.query.workflow, "w") && f.query.version == 3, "workflow");
    CHECK(slice_is(f.step, "s") && f.query.closed == LIST_WITHOUT, "step, closed");
    CHECK(f.query.tag_count == 1 && slice_is(f.query.tags[0].value, "v"), "tags");
    CHECK(f.query.submitted_after == INT64_C(1769853600000), "time");
    CHECK(f.query.id_count == 2, "each id once");
    CHECK(slice_is(f.query.id_prefix, "a-"), "the beginning of ids");
    CHECK(f.has_conditions && !f.all, "it has conditions");
}

static void ended_tasks_are_selected_only_if_named(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_filter f;
    struct error e = {0};
    (void)state;

    CHECK(filter_of(&a, "{\"workflow\":\"w\"}", &f, &e) == ERR_OK, "%s", e.text);
    CHECK(!(f.query.states & 1U << TASK_PROCESSED), "not by itself");
    CHECK(f.query.states & 1U << TASK_ERROR, "tasks in error are open");
    CHECK(filter_of(&a, "{\"all\":true}", &f, &e) == ERR_OK && f.all && !f.has_conditions, "%s",
          e.text);
    CHECK(filter_of(&a, "{\"state\":\"processed\"}", &f, &e) == ERR_OK, "%s", e.text);
    CHECK(f.query.states == 1U << TASK_PROCESSED, "as named");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;

    check_refused("{}", "empty");
    check_refused("[]", "filter is required");
    check_refused("{\"all\":true,\"workflow\":\"w\"}", "all and other");
    check_refused("{\"all\":false}", "filter.all");
    check_refused("{\"state\":\"dead\"}", "filter.state");
    check_refused("{\"state\":[]}", "filter.state");
    check_refused("{\"version\":0}", "filter.version");
    check_refused("{\"id_prefix\":\"\"}", "filter.id_prefix");
    check_refused("{\"id_prefix\":\"a*\"}", "filter.id_prefix");
    check_refused("{\"step\":\"\"}", "filter.step");
    check_refused("{\"tag\":{\"k\":1}}", "filter.tag");
    check_refused("{\"ended_before\":\"yesterday\"}", "filter.ended_before");
    check_refused("{\"ids\":[]}", "filter.ids");
    check_refused("{\"owner\":\"me\"}", "no member \"owner\"");
}

static struct definition *define(struct registry *r, const char *name, const char *agent)
{
    static struct mistakes mistakes; /* too large for the stack */
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;

    buf_fmt(&b,
            "{\"intact\":1,\"workflow\":\"%s\",\"steps\":[{\"name\":\"a\",\"agent\":\"%s\","
            "\"action\":\"x\",\"undo\":{\"action\":\"y\",\"agent\":\"undoer\"}},{\"name\":\"b\","
            "\"agent\":\"other\",\"action\":\"x\",\"undo\":\"none\"}]}",
            name, agent);
    enum err err = definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].found);
    registry_add(r, d, 1);
    return d;
}

static size_t places_of(const struct registry *r, const char *text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_filter f;
    struct error e = {0};

    CHECK(filter_of(&a, text, &f, &e) == ERR_OK, "%s", e.text);
    filter_places(&f, r, &a);
    return f.query.place_count;
}

static void an_agent_is_where_its_steps_and_undos_are(void **state)
{
    struct registry r = {0};
    (void)state;

    (void)define(&r, "v", "ag");
    (void)define(&r, "w", "ag");
    CHECK(places_of(&r, "{\"agent\":\"ag\"}") == 2, "one step in each workflow");
    CHECK(places_of(&r, "{\"agent\":\"undoer\"}") == 2, "its undo");
    CHECK(places_of(&r, "{\"agent\":\"ag\",\"step\":\"b\"}") == 1, "none: a place without tasks");
    CHECK(places_of(&r, "{\"step\":\"b\"}") == 1, "a step of any workflow");
    CHECK(places_of(&r, "{\"workflow\":\"v\"}") == 0, "anywhere");
    registry_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_is_a_query),
        cmocka_unit_test(ended_tasks_are_selected_only_if_named),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(an_agent_is_where_its_steps_and_undos_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
