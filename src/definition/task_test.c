/* Tests of definitions with steps that start a child (reader/task_step.c): what is read, which
 * mistakes are reported, and the evaluation of its input and of its undo's. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps)    "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define TASK(inside, more) "{\"name\":\"b\",\"task\":{\"workflow\":\"ship-one\"" inside "}" more "}"

static void all_of_it_is_read(void **state)
{
    struct definition *d = defined(
        OF("",
           STEP("a", "") "," TASK("", "") ","
                                          "{\"name\":\"c\",\"task\":{\"workflow\":\"bill\","
                                          "\"input\":{\"line\":\"${ .input.line }\"},\"tags\":"
                                          "{\"kind\":\"parcel\"}},\"complete_by\":\"2d\",\"if\":"
                                          "\".input.at\",\"after\":[\"a\"],\"on_failure\":"
                                          "\"continue\",\"undo\":\"none\"}"));
    const struct workflow_step *s = d->workflow.steps;
    (void)state;

    CHECK(s[1].kind == KIND_TASK && s[2].kind == KIND_TASK, "kinds");
    CHECK(slice_is(s[1].child.workflow, "ship-one") && slice_is(s[2].child.workflow, "bill"),
          "workflows");
    CHECK(!s[1].child.tags.ptr && s[1].child.complete_by_ms == 0, "defaults");
    CHECK(slice_is(s[2].child.tags, "{\"kind\":\"parcel\"}"), "tags");
    CHECK(s[2].child.complete_by_ms == 2 * MS_PER_D, "a complete-by");
    CHECK(!d->steps[1].input && d->steps[2].input, "input");
    CHECK(s[1].undo_kind == UNDO_CHILD && s[2].undo_kind == UNDO_NONE, "undo");
    CHECK(s[2].on_failure == ON_FAILURE_CONTINUE && s[2].before_count == 1, "as for other steps");
    CHECK(!s[1].call.agent.ptr, "no agent");
    CHECK(d->workflow.child_step_count == 2, "two of them");
    CHECK(d->has_decisions && d->has_waits && !d->has_signals && !d->has_pivot,
          "what the scheduler knows");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_TASK, "its words are new");
    definition_free(d);
}

static void it_is_undone_as_it_says(void **state)
{
    struct definition *d = defined(
        OF("",
           TASK("", ",\"pivot\":true") ",{\"name\":\"c\",\"task\":{\"workflow\":\"bill\"},"
                                       "\"pivot\":false},{\"name\":\"d\",\"task\":{\"workflow\":"
                                       "\"bill\"},\"undo\":{\"agent\":\"x\",\"action\":\"y\"}}"));
    const struct workflow_step *s = d->workflow.steps;
    (void)state;

    CHECK(s[0].undo_kind == UNDO_PIVOT && d->has_pivot, "a pivot");
    CHECK(s[1].undo_kind == UNDO_CHILD, "no pivot");
    CHECK(s[2].undo_kind == UNDO_CALL && slice_is(s[2].undo.agent, "x"), "by an agent");
    CHECK(s[2].undo.complete_by_ms == 30000 && s[2].undo.retry.attempts == 5, "its defaults");
    definition_free(d);
}

static void each_item_may_have_a_child(void **state)
{
    struct definition *d = defined(
        OF("", "{\"name\":\"b\",\"task\":{\"workflow\":\"ship\",\"input\":{\"line\":\"${ .item "
               "}\"}},\"for_each\":\"${ .input.lines }\",\"max_items\":20,\"concurrency\":2,"
               "\"complete_by\":\"2d\"}"));
    const struct workflow *w = &d->workflow;
    const struct workflow_step *slot = &w->steps[w->steps[0].each.slots_at];
    (void)state;

    CHECK(w->steps[0].kind == KIND_EACH && w->steps[0].each.max_items == 20, "a list");
    CHECK(slot->kind == KIND_TASK && slice_is(slot->child.workflow, "ship")
              && slot->child.complete_by_ms == 2 * MS_PER_D && slot->undo_kind == UNDO_CHILD,
          "what is done for an item");
    CHECK(w->child_step_count == w->slot_count && w->slot_count == 5, "children at a time");
    CHECK(d->steps[w->steps[0].each.slots_at].input && !d->steps[0].input, "its input");
    CHECK(d->steps[0].child_at > 0, "where its workflow is named");
    definition_free(d);
}

static void the_word_needs_the_grammar(void **state)
{
    struct definition *d = defined(OF("", TASK("", "") ",{\"name\":\"c\",\"approve\":{\"by\":\"g\","
                                                       "\"question\":\"Pay?\"}}"));
    (void)state;

    CHECK(grammar_of(&d->workflow) == GRAMMAR_TASK, "beside others");
    CHECK(strcmp(grammar_words(GRAMMAR_TASK), "task") == 0, "its words");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {OF("", "{\"name\":\"b\",\"task\":\"ship-one\"}"), 2, 20, "steps[0].task", "\"ship-one\"", "an object with workflow"},
    {OF("", "{\"name\":\"b\",\"task\":{}}"), 2, 20, "steps[0].task.workflow", "nothing", "a key \"workflow\""},
    {OF("", "{\"name\":\"b\",\"task\":{\"workflow\":7}}"), 2, 32, "steps[0].task.workflow", "7", "a name"},
    {OF("", "{\"name\":\"b\",\"task\":{\"workflow\":\"Ship One\"}}"), 2, 32, "steps[0].task.workflow", "\"Ship One\"", "a name"},
    {OF("", "{\"name\":\"b\",\"task\":{\"workflow\":\"${ .input.how }\"}}"), 2, 32, "steps[0].task.workflow", "\"${ .input.how }\"", "the name of a workflow, without expressions"},
    {OF("", "{\"name\":\"b\",\"task\":{\"workflow\":\"w\"}}"), 2, 32, "steps[0].task.workflow", "\"w\"", "another workflow"},
    {OF("", TASK(",\"inputs\":1", "")), 2, 43, "steps[0].task.inputs", "key \"inputs\"", "did you mean \"input\"?"},
    {OF("", TASK(",\"version\":1", "")), 2, 43, "steps[0].task.version", "key \"version\"", "one of workflow, input, tags"},
    {OF("", TASK(",\"input\":\"${ .steps.z.output }\"", "") "," STEP("z", "")), 2, 61, "steps[0].task.input", "step \"z\"", "a step that ends before"},
    {OF("", TASK(",\"tags\":[]", "")), 2, 50, "steps[0].task.tags", "an array", "an object of at most 32 texts"},
    {OF("", TASK(",\"tags\":{\"a\":7}", "")), 2, 55, "steps[0].task.tags.a", "7", "a text of at most 256 bytes"},
    {OF("", TASK(",\"tags\":{\"a b\":\"c\"}", "")), 2, 51, "steps[0].task.tags.a b", "key \"a b\"", "1 to 64 of"},
    {OF("", TASK(",\"tags\":{\"a\":\"${ .input.a }\"}", "")), 2, 55, "steps[0].task.tags.a", "\"${ .input.a }\"", "a text without expressions"},
    {OF("", TASK("", ",\n\"complete_by\":\"0s\"")), 3, 15, "steps[0].complete_by", "\"0s\"", "a duration longer than 0"},
    {OF("", TASK("", ",\n\"agent\":\"x\"")), 3, 9, "steps[0].agent", "\"x\"", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"action\":\"x\"")), 3, 10, "steps[0].action", "\"x\"", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"input\":{}")), 3, 9, "steps[0].input", "an object", "no such key: the child's input is in task"},
    {OF("", TASK("", ",\n\"http\":{\"path\":\"/\"}")), 3, 8, "steps[0].http", "an object", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"retry\":{}")), 3, 9, "steps[0].retry", "an object", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"repeat\":{}")), 3, 10, "steps[0].repeat", "an object", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"heartbeat\":\"1s\"")), 3, 13, "steps[0].heartbeat", "\"1s\"", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"default\":1")), 3, 11, "steps[0].default", "1", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"wait\":\"1s\"")), 3, 8, "steps[0].wait", "\"1s\"", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"signal\":{\"name\":\"s\"}")), 3, 10, "steps[0].signal", "an object", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"approve\":{}")), 3, 11, "steps[0].approve", "an object", "no such key: a step with task has"},
    {OF("", TASK("", ",\n\"max_items\":1")), 3, 13, "steps[0].max_items", "1", "for_each beside it"},
    {OF("", TASK("", ",\n\"pivot\":true,\"undo\":\"none\"")), 3, 9, "steps[0].pivot", "true", "no pivot: a step with an undo"},
    {OF("", TASK("", ",\n\"undo\":true")), 3, 8, "steps[0].undo", "true", "none, or an object with an action"},
    {OF("", TASK("", ",\n\"undo\":{\"action\":\"y\"}")), 3, 8, "steps[0].undo.agent", "nothing", "a key \"agent\": a step with task has none"},
    {OF("", TASK("", ",\n\"undo\":{\"agent\":\"y\"}")), 3, 8, "steps[0].undo.action", "nothing", "a key \"action\""},
    {OF("", "{\"task\":{\"workflow\":\"a\"}}"), 2, 1, "steps[0].name", "nothing", "a key \"name\""},
    {TOP(",\n\"task\":{}"), 2, 1, "task", "key \"task\"", "one of intact"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[\n" TASK("", ",\"undo\":\"none\"") "]}", 2, 20, "on_undo[0].task", "an object", "an agent: on_undo has no other kinds"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static void warn(const char *text, struct mistakes *ret)
{
    static struct mistakes m;
    struct definition *d = NULL;

    CHECK(definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, ret) == ERR_OK, "%s: %s", text,
          m.list[0].expected);
    definition_free(d);
}

#define UNDONE(path) \
    STEP("a", "")    \
    "," TASK("",     \
             ",\"undo\":{\"agent\":\"x\",\"action\":\"y\",\"input\":{\"of\":\"${ " path " }\"}}")

/* Its own output is known whenever it is undone, those of other steps may not be. */
static void odd_things_are_warned_of(void **state)
{
    static struct mistakes w;
    (void)state;

    warn(OF("", UNDONE(".steps.b.output.id")), &w);
    CHECK(w.count == 0, "its own: %s", w.list[0].found);
    warn(OF("", "{\"name\":\"c\",\"after\":[],\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"},"
                "{\"name\":\"b\",\"after\":[],\"task\":{\"workflow\":\"v\"},\"undo\":{\"agent\":"
                "\"x\",\"action\":\"y\",\"input\":\"${ .steps.c.output.id }\"}}"),
         &w);
    CHECK(w.count == 1 && strstr(w.list[0].found, "\"c\""), "another's");
    warn(OF(",\"complete_by\":\"1h\"", TASK("", ",\n\"complete_by\":\"2h\"")), &w);
    CHECK(w.count == 1 && w.list[0].line == 3, "a complete-by that never passes");
    warn(OF("", TASK(",\"input\":\"${ .inputs }\"", "")), &w);
    CHECK(w.count == 1 && strcmp(w.list[0].path, "steps[0].task.input") == 0, "a slip");
    warn(OF("", TASK("", "") ",{\"name\":\"c\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\","
                             "\"if\":\".steps.b.error.code == \\\"no_stock\\\"\",\"input\":"
                             "[\"${ .steps.b.output.id }\",\"${ .steps.b.state }\"]}"),
         &w);
    CHECK(w.count == 0, "what later steps see: %s", w.list[0].found);
}

static enum err evaluate(const char *task, const char *undo, bool of_undo, struct world *w,
                         struct arena *a, struct slice *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text, OF("", STEP("a", "") ",{\"name\":\"b\",\"task\":%s%s}"), task, undo);
    struct definition *d = defined(text.ptr);
    struct scope s = scope_of(d, "{\"line\":7}", w);
    enum err err =
        of_undo ? definition_undo_input(&s, 1, a, ret, e) : definition_step_input(&s, 1, a, ret, e);
    *ret = arena_copy(a, *ret);
    definition_free(d);
    return err;
}

static void inputs_are_evaluated(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct world w = {.input = {NULL, "{\"of\":1}"}, .output = {"{\"id\":7}", "{\"parcel\":9}"}};
    struct slice in = SLICE_NONE;
    struct error e = {0};
    (void)state;

    CHECK(evaluate("{\"workflow\":\"v\"}", "", false, &w, &a, &in, &e) == ERR_OK
              && slice_is(in, "{\"line\":7}"),
          "the task's: %.*s", SLICE_ARG(in));
    CHECK(evaluate("{\"workflow\":\"v\",\"input\":{\"line\":\"${ .input.line }\",\"of\":\"${ "
                   ".steps.a.output.id }\"}}",
                   "", false, &w, &a, &in, &e)
                  == ERR_OK
              && slice_is(in, "{\"line\":7,\"of\":7}"),
          "its own: %.*s", SLICE_ARG(in));
    CHECK(evaluate("{\"workflow\":\"v\",\"input\":{\"line\":\"${ .input | error }\"}}", "", false,
                   &w, &a, &in, &e)
              == ERR_INVALID,
          "it fails");
    CHECK(strstr(e.text, "steps[1].task.input.line of step \"b\""), "%s", e.text);
    CHECK(evaluate("{\"workflow\":\"v\"}", ",\"undo\":{\"agent\":\"x\",\"action\":\"y\"}", true, &w,
                   &a, &in, &e)
                  == ERR_OK
              && slice_is(in, "{\"input\":{\"of\":1},\"output\":{\"parcel\":9}}"),
          "its undo's: %.*s", SLICE_ARG(in));
    CHECK(evaluate("{\"workflow\":\"v\"}",
                   ",\"undo\":{\"agent\":\"x\",\"action\":\"y\",\"input\":\"${ "
                   ".steps.b.output.parcel }\"}",
                   true, &w, &a, &in, &e)
                  == ERR_OK
              && slice_is(in, "9"),
          "its undo's own: %.*s", SLICE_ARG(in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_read),           cmocka_unit_test(it_is_undone_as_it_says),
        cmocka_unit_test(each_item_may_have_a_child),  cmocka_unit_test(the_word_needs_the_grammar),
        cmocka_unit_test(every_mistake_has_its_place), cmocka_unit_test(odd_things_are_warned_of),
        cmocka_unit_test(inputs_are_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
