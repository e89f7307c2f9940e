/* Tests of `http` in steps and undos (http_step.c): the input that it becomes, mistakes and their
 * places, and that secrets are refused in definitions. */

#include "base/test.h"

#include "definition/definition.h"
#include "definition/reader/http_step.h"

static struct mistakes mistakes, warnings;

static struct slice outputs(void *arg, int step)
{
    (void)arg;
    return step == 0 ? SLICE("\"ch/17 \\u00e4\"") : SLICE_NONE;
}

/* A definition whose second step has that `http` and `undo`. */
static struct definition *with(const char *http, const char *undo)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;

    buf_fmt(&b,
            "{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n"
            "{\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"},\n"
            "{\"name\":\"b\",\"agent\":\"pay\",\n\"http\":{%s},\n\"undo\":%s}]}",
            http, undo);
    enum err err = definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, &warnings);
    return err == ERR_OK ? d : NULL;
}

static struct slice task(void *arg, struct arena *a)
{
    (void)arg;
    return arena_copy(a, SLICE("{\"id\":\"t\"}"));
}

static void input_is(const struct definition *d, bool undo, const char *expected)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct scope s = {.definition = d,
                      .input = SLICE("{\"id\":\"7/../8\",\"n\":2}"),
                      .task = task,
                      .step_input = outputs,
                      .step_output = outputs};
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    enum err err = undo ? definition_undo_input(&s, 1, &a, &ret, &e)
                        : definition_step_input(&s, 1, &a, &ret, &e);

    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, expected), "%.*s, expected %s", SLICE_ARG(ret), expected);
}

static void a_request_becomes_the_input(void **state)
{
    static const struct {
        const char *http, *input;
    } cases[] = {
        {"\"path\":\"/a/b\"", "{\"path\":\"/a/b\"}"},
        {"\"method\":\"GET\",\"path\":\"/\"", "{\"method\":\"GET\",\"path\":\"/\"}"},
        {"\"path\":\"/c/${ .input.id }/l\"", "{\"path\":[\"/c/\",\"7/../8\",\"/l\"]}"},
        {"\"path\":\"/${ .input.n }${ .steps.a.output }\"",
         "{\"path\":[\"/\",2,\"\",\"ch/17 \\u00e4\"]}"},
        {"\"path\":\"/$${x}/${ .task.id }\"", "{\"path\":[\"/${x}/\",\"t\"]}"},
        {"\"path\":\"/$${x}\"", "{\"path\":\"/${x}\"}"},
        {"\"path\":\"/p\",\"query\":{\"q\":\"${ .input.id }\",\"r\":1},\"headers\":{\"X-N\":\"${ "
         ".input.n }\"},\"body\":{\"n\":\"${ .input.n }\"}",
         "{\"path\":\"/p\",\"query\":{\"q\":\"7/../8\",\"r\":1},\"headers\":{\"X-N\":2},\"body\":{"
         "\"n\":2}}"},
        {"\"output\":\".body.id // \\\"${no}\\\"\",\"path\":\"/p\",\"permanent\":[404],"
         "\"completed\":[409],\"retryable\":[422],\"elsewhere\":[202]",
         "{\"path\":\"/p\",\"output\":\".body.id // \\\"${no}\\\"\",\"completed\":[409],"
         "\"permanent\":[404],\"retryable\":[422],\"elsewhere\":[202]}"},
        {"\"path\":\"/p\",\"output\":\".\"", "{\"path\":\"/p\",\"output\":\".\"}"},
        {"\"path\":\"/p\",\"body\":null", "{\"path\":\"/p\",\"body\":null}"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct definition *d = with(cases[i].http, "\"none\"");
        CHECK(d, "%s: %s, expected %s", cases[i].http, mistakes.list[0].found,
              mistakes.list[0].expected);
        CHECK(slice_is(d->workflow.steps[1].call.action, "http"), "an action of its own");
        input_is(d, false, cases[i].input);
        definition_free(d);
    }
}

static void an_undo_is_a_request_as_well(void **state)
{
    struct definition *d =
        with("\"path\":\"/p\"", "{\"http\":{\"method\":\"DELETE\",\"path\":\"/p/${ .steps.a.output "
                                "// .task.id }\"},\"action\":\"take-back\"}");
    (void)state;

    CHECK(d, "%s", mistakes.list[0].expected);
    CHECK(slice_is(d->workflow.steps[1].undo.action, "take-back")
              && slice_is(d->workflow.steps[1].undo.agent, "pay"),
          "its action, and the agent of the step");
    input_is(d, true, "{\"method\":\"DELETE\",\"path\":[\"/p/\",\"ch/17 \\u00e4\"]}");
    definition_free(d);
}

/* clang-format off */
static const struct {
    const char *http, *path, *found, *expected;
} wrong[] = {
    {"", "steps[1].http.path", "nothing", "a key \"path\""},
    {"\"path\":1", "steps[1].http.path", "1", "a text that begins with /"},
    {"\"path\":\"p\"", "steps[1].http.path", "\"p\"", "a text that begins with /"},
    {"\"path\":\"${ .input.id }\"", "steps[1].http.path", "\"${ .input.id }\"", "a text that begins with /"},
    {"\"path\":\"/p?a=1\"", "steps[1].http.path", "\"/p?a=1\"", "a path without"},
    {"\"path\":\"/p\\r\\nX: y\"", "steps[1].http.path", "\"/p", "a path without"},
    {"\"path\":\"/${ .input.id }#x\"", "steps[1].http.path", "\"/${", "a path without"},
    {"\"path\":\"/${ nix }\"", "steps[1].http.path", "unknown function", "an expression"},
    {"\"path\":\"/${ .steps.c.output }\"", "steps[1].http.path", "step \"c\"", "the name of a step"},
    {"\"path\":\"/\",\"method\":\"get\"", "steps[1].http.method", "\"get\"", "GET, HEAD"},
    {"\"path\":\"/\",\"method\":\"TRACE\"", "steps[1].http.method", "\"TRACE\"", "GET, HEAD"},
    {"\"path\":\"/\",\"query\":[]", "steps[1].http.query", "an array", "an object"},
    {"\"path\":\"/\",\"headers\":\"x\"", "steps[1].http.headers", "\"x\"", "an object"},
    {"\"path\":\"/\",\"headers\":{\"a b\":1}", "steps[1].http.headers.a b", "a name that no header has", "letters"},
    {"\"path\":\"/\",\"headers\":{\"\":1}", "steps[1].http.headers", "a name that no header has", "letters"},
    {"\"path\":\"/\",\"headers\":{\"content-length\":1}", "steps[1].http.headers.content-length", "a header that the agent sets", "any"},
    {"\"path\":\"/\",\"headers\":{\"intact-x\":1}", "steps[1].http.headers.intact-x", "a header that the agent sets", "any"},
    {"\"path\":\"/\",\"headers\":{\"A\":[1]}", "steps[1].http.headers.A", "an array", "a text"},
    {"\"path\":\"/\",\"headers\":{\"A\":\"b\\r\\nc: d\"}", "steps[1].http.headers.A", "\"b", "a text of one line"},
    {"\"path\":\"/\",\"output\":1", "steps[1].http.output", "1", "an expression in a string"},
    {"\"path\":\"/\",\"output\":\".body.\"", "steps[1].http.output", "the end of the expression", "a name, a string"},
    {"\"path\":\"/\",\"output\":\".input.id\"", "steps[1].http.output", "\".input.id\"", ".status, .headers and .body"},
    {"\"path\":\"/\",\"output\":\".steps.a.output\"", "steps[1].http.output", "\".steps", ".status, .headers and .body"},
    {"\"path\":\"/\",\"permanent\":404", "steps[1].http.permanent", "404", "an array of statuses"},
    {"\"path\":\"/\",\"permanent\":[99]", "steps[1].http.permanent[0]", "99", "a status"},
    {"\"path\":\"/\",\"permanent\":[404,100]", "steps[1].http.permanent[1]", "100", "a status"},
    {"\"path\":\"/\",\"permanent\":[\"404\"]", "steps[1].http.permanent[0]", "\"404\"", "a status"},
    {"\"path\":\"/\",\"permanent\":[4.4]", "steps[1].http.permanent[0]", "4.4", "a status"},
    {"\"path\":\"/\",\"permanent\":[404],\"completed\":[404]", "steps[1].http.permanent[0]", "404", "no status that is also in completed"},
    {"\"path\":\"/\",\"elsewhere\":[202],\"retryable\":[500,202]", "steps[1].http.elsewhere[0]", "202", "no status that is also in retryable"},
    {"\"path\":\"/\",\"metod\":\"GET\"", "steps[1].http.metod", "key \"metod\"", "did you mean \"method\"?"},
    {"\"path\":\"/\"},\"input\":{", "steps[1].http", "an object", "either input or http"},
    {"\"path\":\"/\"},\"http_\":{", "steps[1].http_", "key \"http_\"", "did you mean \"http\"?"},
};
/* clang-format on */

static void mistakes_have_their_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct definition *d = with(wrong[i].http, "\"none\"");
        const struct mistake *m = &mistakes.list[0];
        CHECK(!d && mistakes.count == 1, "%s: %zu mistakes", wrong[i].http, mistakes.count);
        CHECK(strncmp(m->path, wrong[i].path, strlen(wrong[i].path)) == 0
                  && strncmp(m->found, wrong[i].found, strlen(wrong[i].found)) == 0
                  && strncmp(m->expected, wrong[i].expected, strlen(wrong[i].expected)) == 0,
              "%s: %s: found %s, expected %s", wrong[i].http, m->path, m->found, m->expected);
        CHECK(m->line >= 3, "%s: line %u", wrong[i].http, m->line);
    }
}

static void secrets_do_not_belong_here(void **state)
{
    struct definition *d =
        with("\"path\":\"/\",\"headers\":{\"authorization\":\"Bearer x\"}", "\"none\"");
    (void)state;

    CHECK(d && warnings.count == 1, "a warning");
    CHECK(strstr(warnings.list[0].expected, "configuration"), "%s", warnings.list[0].expected);
    definition_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_becomes_the_input),
        cmocka_unit_test(an_undo_is_a_request_as_well),
        cmocka_unit_test(mistakes_have_their_places),
        cmocka_unit_test(secrets_do_not_belong_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
