/* Tests of operation.c: which operations are accepted, that an operation survives its row, and
 * how refusals of the same kind are counted together. */

#include "operations/operation.h"

#include "base/test.h"

static enum err read_text(struct arena *a, const char *text, struct operation *ret, struct error *e)
{
    struct json *j = NULL;

    enum err err = json_parse(a, slice_of(text), &j, NULL);
    CHECK(err == ERR_OK, "%s", text);
    return operation_read(a, j, ret, e);
}

static void check_refused(const char *text, const char *why)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    struct error e = {0};

    CHECK(read_text(&a, text, &op, &e) == ERR_INVALID, "%s", text);
    CHECK(strstr(e.text, why), "%s: %s", text, e.text);
}

#define FILTER "\"filter\":{\"state\":\"error\"},\"reason\":\"a test\""

static void verbs_take_the_arguments_that_they_need(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    struct error e = {0};
    (void)state;

    enum err err =
        read_text(&a, "{\"verb\":\"retry\"," FILTER ",\"arguments\":{\"step\":\"s\"},\"limit\":10}",
                  &op, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(op.kind == ASK_RETRY && slice_is(op.step, "s") && op.limit == 10, "retry");
    err = read_text(&a,
                    "{\"verb\":\"supply\"," FILTER
                    ",\"arguments\":{\"step\":\"s\",\"output\":{\"n\":1}}}",
                    &op, &e);
    CHECK(err == ERR_OK && slice_is(op.output, "{\"n\":1}"), "%s", e.text);
    check_refused("{\"verb\":\"skip\"," FILTER "}", "skip needs arguments.step");
    check_refused("{\"verb\":\"pause\"," FILTER ",\"arguments\":{\"step\":\"s\"}}",
                  "pause takes no arguments.step");
    check_refused("{\"verb\":\"retry\"," FILTER ",\"arguments\":{\"step\":\"s\",\"from\":\"t\"}}",
                  "either step");
    check_refused("{\"verb\":\"submit\"," FILTER "}", "verb");
    check_refused("{\"verb\":\"retry\",\"filter\":{},\"reason\":\"r\"}", "empty");
}

static void arguments_have_a_limit(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op;
    struct error e = {0};
    (void)state;

    for (int more = 0; more < 2; more++) {
        buf_clear(&b);
        buf_str(&b, "{\"verb\":\"supply\"," FILTER ",\"arguments\":");
        size_t begin = b.len;
        buf_str(&b, "{\"step\":\"s\",\"output\":\"");
        while (b.len - begin < (size_t)OPERATION_ARGUMENTS_MAX - 2 + (size_t)more)
            buf_byte(&b, 'x');
        buf_str(&b, "\"}}");
        enum err err = read_text(&a, b.ptr, &op, &e);
        CHECK(err == (more ? ERR_INVALID : ERR_OK), "%d: %s", more, e.text);
    }
    CHECK(strstr(e.text, "at most 69632 bytes, found 69633"), "%s", e.text);
}

static enum err read_signal(struct arena *a, const char *arguments, struct operation *ret,
                            struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"verb\":\"signal\"," FILTER ",\"arguments\":%s}", arguments);
    return read_text(a, (const char *)arena_copy(a, buf_view(&b)).ptr, ret, e);
}

static void a_signal_has_a_name_and_a_value(void **state)
{
    static const struct {
        const char *arguments, *says;
    } bad[] = {
        {"{}", "signal needs arguments.name"},
        {"{\"name\":5}", "name of a signal"},
        {"{\"name\":\"a b\"}", "name of a signal"},
        {"{\"name\":\"go\",\"step\":\"s\"}", "signal takes no arguments.step"},
        {"{\"name\":\"go\",\"id\":\"k\"}", "there is no member \"id\""},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf large = {0};
    struct operation op;
    struct error e = {0};
    (void)state;

    enum err err = read_signal(&a, "{\"name\":\"go\"}", &op, &e);
    CHECK(err == ERR_OK && slice_is(op.signal.name, "go"), "%s", e.text);
    CHECK(slice_is(op.signal.data.json, "null"), "without a value");
    err = read_signal(&a, "{\"name\":\"go\",\"data\":{\"n\":1}}", &op, &e);
    CHECK(err == ERR_OK && slice_is(op.signal.data.json, "{\"n\":1}"), "%s", e.text);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(read_signal(&a, bad[i].arguments, &op, &e) == ERR_INVALID
                  && strstr(e.text, bad[i].says),
              "%s: %s", bad[i].arguments, e.text);
    check_refused("{\"verb\":\"skip\"," FILTER ",\"arguments\":{\"step\":\"s\",\"name\":\"go\"}}",
                  "skip takes no arguments.name");
    check_refused("{\"verb\":\"pause\"," FILTER ",\"arguments\":{\"data\":null}}",
                  "pause takes no arguments.data");
    buf_str(&large, "{\"name\":\"go\",\"data\":");
    size_t from = large.len;
    while (large.len < from + SIGNAL_DATA_MAX)
        buf_byte(&large, '1');
    size_t full = large.len;
    buf_str(&large, "}");
    CHECK(read_signal(&a, large.ptr, &op, &e) == ERR_OK, "the largest: %s", e.text);
    large.len = full;
    buf_str(&large, "1}");
    CHECK(read_signal(&a, large.ptr, &op, &e) == ERR_INVALID && strstr(e.text, "at most 65536"),
          "%s", e.text);
}

static void a_signal_survives_its_row(void **state)
{
    static const char content[] = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(arena_fini) struct arena b = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    CLEANUP(buf_fini) struct buf without = {0};
    struct operation op;
    struct operation back;
    struct operation_row row;
    struct error e = {0};
    (void)state;

    enum err err = read_signal(&a, "{\"name\":\"go\",\"data\":[1]}", &op, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    op.id = SLICE("op-1");
    operation_encode(&op, &without, &row);
    CHECK(operation_decode(&b, &row, &back, &e) == ERR_CORRUPT, "tasks need its content");
    op.signal.content = slice_of(content);
    operation_encode(&op, &doc, &row);
    err = operation_decode(&b, &row, &back, &e);
    CHECK(err == ERR_OK && back.kind == ASK_SIGNAL, "%s", e.text);
    CHECK(slice_is(back.signal.key, "op-1"), "its key is the operation's id");
    CHECK(slice_is(back.signal.name, "go") && slice_is(back.signal.data.json, "[1]"), "it is sent");
    CHECK(slice_is(back.signal.content, content), "what tells it from another");
}

static void an_operation_survives_its_row(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(arena_fini) struct arena b = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct operation op;
    struct operation back;
    struct operation_row row;
    struct error e = {0};
    (void)state;

    enum err err = read_text(&a, "{\"verb\":\"close\"," FILTER ",\"rate\":\"5/s\"}", &op, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    op.id = SLICE("op-1");
    op.revision = 3;
    op.by_admin = true;
    op.started_at = INT64_C(1800000000000);
    op.matched = 9;
    op.done = 4;
    op.cursor = 77;
    op.page[0] = SLICE("t-1");
    op.page[1] = SLICE("t-2");
    op.page_count = 2;
    operation_refused(&op, SLICE("it runs"), &a);
    operation_encode(&op, &doc, &row);
    err = operation_decode(&b, &row, &back, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(slice_is(back.id, "op-1") && back.revision == 3 && back.kind == ASK_CLOSE, "columns");
    CHECK(back.matched == 9 && back.done == 4 && back.cursor == 77 && back.rate == 5, "counts");
    CHECK(back.page_count == 2 && slice_is(back.page[1], "t-2"), "its page");
    CHECK(back.refused_count == 1 && slice_is(back.refused[0].reason, "it runs"), "refusals");
    CHECK(back.filter.query.states == 1U << TASK_ERROR, "its filter");
    CHECK(back.by_admin, "what it may do");
}

static void refusals_of_one_kind_count_together(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op = {0};
    char reason[20];
    (void)state;

    operation_refused(&op, SLICE("one"), &a);
    operation_refused(&op, SLICE("one"), &a);
    CHECK(op.refused_count == 1 && op.refused[0].count == 2, "together");
    for (int i = 0; i < 100; i++) {
        (void)snprintf(reason, sizeof reason, "reason %d", i);
        operation_refused(&op, slice_of(reason), &a);
    }
    CHECK(op.refused_count <= OPERATION_REASONS, "the list is bounded");
    CHECK(operation_refused_count(&op) == 102, "none is lost");
}

static void a_page_respects_the_limit(void **state)
{
    struct operation op = {0};
    (void)state;

    CHECK(operation_page_size(&op) == OPERATION_PAGE_MAX, "no limit");
    op.limit = 100;
    op.matched = 90;
    CHECK(operation_page_size(&op) == 10, "what is left");
    op.matched = 100;
    CHECK(operation_page_size(&op) == 0, "nothing");
}

static void the_audit_tells_what_an_operation_did(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct operation op = {.id = SLICE("op-1"), .reason = SLICE("cleaning"), .kind = ASK_CLOSE};
    struct audit done = {.verb = SLICE("close")};
    (void)state;

    done.reason = operation_audit_reason(&op, &a);
    CHECK(operation_did(&op, &done), "%.*s", SLICE_ARG(done.reason));
    op.id = SLICE("op-12");
    CHECK(!operation_did(&op, &done), "another one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_take_the_arguments_that_they_need),
        cmocka_unit_test(arguments_have_a_limit),
        cmocka_unit_test(a_signal_has_a_name_and_a_value),
        cmocka_unit_test(an_operation_survives_its_row),
        cmocka_unit_test(a_signal_survives_its_row),
        cmocka_unit_test(refusals_of_one_kind_count_together),
        cmocka_unit_test(a_page_respects_the_limit),
        cmocka_unit_test(the_audit_tells_what_an_operation_did),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
