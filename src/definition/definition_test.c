/* Definitions in JSON: the compiled workflow, each mistake with its place, any bytes, and the
 * examples of docs/definitions.md. YAML: definition_yaml_test.c; evaluation: evaluate_test.c. */
#include "base/test.h"

#include <stdlib.h>

#include "base/prng.h"
#include "core/workflow.h"
#include "definition/definition_test_kit.h"
#include "definition/template/template.h"
#include "json/escape.h"

static void the_order_example_becomes_its_graph(void **state)
{
    struct definition *d = defined(order_text);
    const struct workflow *w = &d->workflow;
    (void)state;

    CHECK(slice_is(w->name, "order") && w->complete_by_ms == 7200000 && w->undo_complete_by_ms == 0,
          "head");
    CHECK(w->on_failure == ON_FAILURE_UNDO && w->step_count == 3 && definition_of(w) == d, "head");
    const struct workflow_step *reserve = &w->steps[0];
    const struct workflow_step *charge = &w->steps[1];
    const struct workflow_step *ship = &w->steps[2];
    CHECK(slice_is(reserve->name, "reserve") && slice_is(reserve->call.agent, "inventory")
              && slice_is(reserve->call.action, "reserve") && reserve->call.complete_by_ms == 30000,
          "reserve");
    const struct retry_rule *r = &reserve->call.retry;
    CHECK(r->attempts == 5 && r->wait_ms == 200 && r->factor_milli == 2000
              && r->max_wait_ms == 10000 && r->defer_ms == 900000 && r->defers == 2 && r->jitter,
          "retry as it is written");
    CHECK(reserve->undo_kind == UNDO_CALL && slice_is(reserve->undo.agent, "inventory")
              && slice_is(reserve->undo.action, "release") && reserve->undo.complete_by_ms == 30000,
          "undo, by the agent of the step");
    r = &charge->call.retry;
    CHECK(r->attempts == 5 && r->wait_ms == 1000 && r->factor_milli == 2000
              && r->max_wait_ms == 60000 && r->defers == 0 && r->jitter,
          "retry by default");
    r = &charge->undo.retry;
    CHECK(r->attempts == 5 && r->wait_ms == 1000 && charge->call.complete_by_ms == 30000,
          "defaults");
    CHECK(ship->undo_kind == UNDO_PIVOT, "pivot");
    CHECK(reserve->before_count == 0 && reserve->after_count == 2 && reserve->after[0] == 1
              && reserve->after[1] == 2,
          "edges of reserve");
    CHECK(charge->before_count == 1 && charge->before[0] == 0 && charge->after_count == 1,
          "of charge");
    CHECK(ship->before_count == 2 && ship->before[0] == 0 && ship->before[1] == 1, "edges of ship");
    CHECK(w->order[0] == 0 && w->order[1] == 1 && w->order[2] == 2, "order");
    CHECK(slice_is(d->text, order_text) && d->text.ptr != order_text, "its own copy of the text");
    definition_free(d);
    definition_free(NULL);
}

static void steps_follow_the_one_before_unless_they_say_otherwise(void **state)
{
    static const struct {
        const char *shape, *order;
    } shapes[] = {
        {"a", "a"},
        {"a b c", "abc"},
        {"a b< c<a,b", "abc"},
        {"a<c b<a c<", "cab"},
        {"d<c c<b b<a a<", "abcd"},
        {"a b<a c<a d<b,c", "abcd"},
        {"a<b b<", "ba"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct definition *d = graph_of(shapes[i].shape);
        char order[32] = "";
        for (uint16_t k = 0; k < d->workflow.step_count; k++)
            order[k] = d->workflow.steps[d->workflow.order[k]].name.ptr[0];
        CHECK(strcmp(order, shapes[i].order) == 0, "%s gives %s", shapes[i].shape, order);
        definition_free(d);
    }
}

/* Definitions whose last step has these additional fields. */
#define TWO(more) \
    "{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", "") ",\n" STEP("b", more) "]}"
#define BARE(fields) "{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n{" fields "}]}"
#define UNDO(more) \
    BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\n\"undo\":{\"action\":\"z\"" more "}")
#define RETRY(more) ONE(",\n\"retry\":{" more "}")

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {"[]", 1, 1, "", "an array", "an object"},
    {"{\"intact\":1,\"workflow\":\"w\"}", 1, 1, "steps", "nothing", "a key \"steps\""},
    {"{\"workflow\":\"w\",\"steps\":[" STEP("a", "") "]}", 1, 1, "intact", "nothing", "a key \"intact\""},
    {"{\"intact\":1,\"steps\":[" STEP("a", "") "]}", 1, 1, "workflow", "nothing", "a key \"workflow\""},
    {"{\"intact\":2,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "]}", 1, 11, "intact", "2", "1, the version"},
    {"{\"intact\":\"1\",\"workflow\":\"w\",\"steps\":[" STEP("a", "") "]}", 1, 11, "intact", "\"1\"", "1, the version"},
    {"{\"intact\":1,\"workflow\":\"W w\",\"steps\":[" STEP("a", "") "]}", 1, 24, "workflow", "\"W w\"", "a name"},
    {TOP(",\n \"complete_by\":30"), 2, 16, "complete_by", "30", "a duration"},
    {TOP(",\n \"complete_by\":\"5 s\""), 2, 16, "complete_by", "\"5 s\"", "a duration such as 200ms, 30s, 15m, 2h or 7d"},
    {TOP(",\n \"complete_by\":\"0s\""), 2, 16, "complete_by", "\"0s\"", "a duration longer than 0"},
    {TOP(",\n \"undo_complete_by\":[]"), 2, 21, "undo_complete_by", "an array", "a duration"},
    {TOP(",\n \"on_failure\":\"stop\""), 2, 15, "on_failure", "\"stop\"", "undo, hold or continue"},
    {TOP(",\n \"complete_bi\":\"1s\""), 2, 2, "complete_bi", "key \"complete_bi\"", "did you mean \"complete_by\"?"},
    {TOP(",\n \"unknown\":{}"), 2, 2, "unknown", "key \"unknown\"", "one of intact, workflow, complete_by"},
    {TOP(",\n \"concurrency\":1"), 2, 2, "concurrency", "key \"concurrency\"", "concurrency is for steps with for_each"},
    {TOP(",\n \"schedule\":1"), 2, 2, "schedule", "key \"schedule\"", "\"schedule\" is reserved"},
    {TOP(",\n \"inputs\":[]"), 2, 11, "inputs", "an array", "an object"},
    {TOP(",\n \"inputs\":{\"a\":1}"), 2, 16, "inputs.a", "1", "an object"},
    {TOP(",\n \"inputs\":{\"a\":{}}"), 2, 16, "inputs.a.type", "nothing", "a key \"type\""},
    {TOP(",\n \"inputs\":{\"a\":{\"type\":\"text\"}}"), 2, 24, "inputs.a.type", "\"text\"", "string, integer"},
    {TOP(",\n \"inputs\":{\"a\":{\"type\":\"any\",\"required\":1}}"), 2, 41, "inputs.a.required", "1", "true or false"},
    {TOP(",\n \"inputs\":{\"a\":{\"type\":\"integer\",\"default\":1.5}}"), 2, 44, "inputs.a.default", "1.5", "an integer"},
    {TOP(",\n \"inputs\":{\"a\":{\"type\":\"any\",\"default\":1,\"required\":true}}"), 2, 40, "inputs.a.default", "1", "no default"},
    {TOP(",\n \"inputs\":{\"a\":{\"type\":\"any\",\"defualt\":1}}"), 2, 30, "inputs.a.defualt", "key \"defualt\"", "did you mean \"default\"?"},
    {TOP(",\n \"output\":\"${ .input. }\""), 2, 23, "output", "\"}\"", "a name, a string or \"[\""},
    {TOP(",\n \"output\":\"${ .steps.b.output }\""), 2, 21, "output", "step \"b\"", "the name of a step"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":{}}", 1, 36, "steps", "an object", "an array of steps"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[]}", 1, 36, "steps", "an array", "at least one step"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[7]}", 1, 37, "steps[0]", "7", "an object"},
    {BARE("\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\""), 2, 1, "steps[0].name", "nothing", "a key \"name\""},
    {BARE("\"name\":\"a\",\"action\":\"y\",\"undo\":\"none\""), 2, 1, "steps[0].agent", "nothing", "a key \"agent\""},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"undo\":\"none\""), 2, 1, "steps[0].action", "nothing", "a key \"action\""},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\""), 2, 1, "steps[0].undo", "nothing", "undo: {action: ...}, undo: none, or pivot: true"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"pivot\":false"), 2, 1, "steps[0].undo", "nothing", "undo: {"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"pivot\":1"), 2, 46, "steps[0].pivot", "1", "true or false"},
    {ONE(",\n\"pivot\":true"), 3, 9, "steps[0].pivot", "true", "no pivot"},
    {BARE("\"name\":\"a b\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\""), 2, 9, "steps[0].name", "\"a b\"", "a name: 1 to 64 of a-z, 0-9, _ and -"},
    {BARE("\"name\":\"\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\""), 2, 9, "steps[0].name", "\"\"", "a name"},
    {BARE("\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\""),
     2, 9, "steps[0].name", "\"aaaa", "a name"},
    {BARE("\"name\":\"a\",\"agent\":\"X\",\"action\":\"y\",\"undo\":\"none\""), 2, 21, "steps[0].agent", "\"X\"", "a name"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y z\",\"undo\":\"none\""), 2, 34, "steps[0].action", "\"y z\"", "an action"},
    {ONE(",\n\"agnet\":1"), 3, 1, "steps[0].agnet", "key \"agnet\"", "did you mean \"agent\"?"},
    {ONE(",\n\"retries\":1"), 3, 1, "steps[0].retries", "key \"retries\"", "one of name, agent, action, input, http, if, after"},
    {ONE(",\n\"needs\":[]"), 3, 1, "steps[0].needs", "key \"needs\"", "\"needs\" is unknown, use after"},
    {ONE(",\n\"heartbeat\":\"30s\""), 3, 13, "steps[0].heartbeat", "\"30s\"", "a duration shorter than the attempt's complete_by, 30s"},
    {ONE(",\n\"heartbeat\":\"99ms\""), 3, 13, "steps[0].heartbeat", "\"99ms\"", "a duration of 100ms or more"},
    {ONE(",\n\"heartbeat\":\"0s\""), 3, 13, "steps[0].heartbeat", "\"0s\"", "a duration longer than 0"},
    {ONE(",\n\"heartbeat\":10"), 3, 13, "steps[0].heartbeat", "10", "a duration"},
    {ONE(",\n\"heartbeat\":\"11s\",\"complete_by\":\"10s\""), 3, 13, "steps[0].heartbeat", "\"11s\"", "a duration shorter than the attempt's complete_by, 10s"},
    {ONE(",\n\"complete_by\":\"1 hour\""), 3, 15, "steps[0].complete_by", "\"1 hour\"", "a duration"},
    {ONE(",\n\"on_failure\":true"), 3, 14, "steps[0].on_failure", "true", "undo, hold or continue"},
    {ONE(",\n\"if\":true"), 3, 6, "steps[0].if", "true", "an expression in a string"},
    {ONE(",\n\"if\":\".input.a >\""), 3, 17, "steps[0].if", "the end of the expression", "an expression"},
    {ONE(",\n\"if\":\"\\\"\\u00e9\\\" == foo\""), 3, 21, "steps[0].if", "unknown function \"foo\"", "an expression"},
    {ONE(",\n\"input\":{\"k\":[1,\"x ${ .a + } y\"]}"), 3, 28, "steps[0].input", "\"}\"", "an expression"},
    {ONE(",\n\"if\":\".a[\\\", expected \\\" \""), 3, 26, "steps[0].if", "the end of the expression", "\"]\" or \":\""},
    {ONE(",\n\"if\":\"if .a then 1 end\""), 3, 20, "steps[0].if", "\"end\"", "elif or else"},
    {ONE(",\n\"input\":\"\\n\\u00e9\\ud83d\\ude00${ $x }\""), 3, 33, "steps[0].input", "\"$\": variables", "an expression"},
    {ONE(",\n\"input\":\"${ .a\""), 3, 15, "steps[0].input", "the end of the expression", "an operator or \"}\""},
    {ONE(",\n\"input\":\"${ .steps.b.output.id }\""), 3, 19, "steps[0].input", "step \"b\"", "the name of a step"},
    {ONE(",\n\"input\":\"${ .steps.a.output.id }\""), 3, 19, "steps[0].input", "step \"a\"", "a step that ends before"},
    {ONE(",\n\"if\":\".steps.a.output\""), 3, 13, "steps[0].if", "step \"a\"", "a step that ends before"},
    {TWO(",\"after\":[],\n\"input\":\"${ .steps.a.output.id }\""), 4, 19, "steps[1].input", "step \"a\"", "a step that ends before"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("charge", "") ",\n" STEP("b", ",\"input\":\"${ .steps[\\\"chagre\\\"].output.id }\"") "]}",
     2, 70, "steps[1].input", "step \"chagre\"", "did you mean \"charge\"?"},
    {TWO(",\n\"after\":\"a\""), 4, 9, "steps[1].after", "\"a\"", "an array of names"},
    {TWO(",\n\"after\":[1]"), 4, 10, "steps[1].after[0]", "1", "the name of a step"},
    {TWO(",\n\"after\":[\"a\",\"xyz\"]"), 4, 14, "steps[1].after[1]", "\"xyz\"", "the name of a step"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("charge", "") ",\n" STEP("b", ",\"after\":[\"charg\"]") "]}",
     2, 61, "steps[1].after[0]", "\"charg\"", "did you mean \"charge\"?"},
    {TWO(",\n\"after\":[\"b\"]"), 4, 10, "steps[1].after[0]", "\"b\"", "another step"},
    {TWO(",\n\"after\":[\"a\",\"a\"]"), 4, 14, "steps[1].after[1]", "\"a\"", "each name once"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") ",\n" STEP("a", "") "]}", 2, 9, "steps[1].name", "\"a\"", "a name that no other step has"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", ",\"after\":[\"b\"]") "," STEP("b", "") "]}", 2, 60, "steps[0].after", "a after b after a", "steps without a cycle"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("x", "") ",\n" STEP("a", ",\"after\":[\"x\",\"c\"]") ",\n" STEP("b", ",\"after\":[\"a\"]") "," STEP("c", ",\"after\":[\"b\"]") "," STEP("d", ",\"after\":[\"c\"]") "]}",
     2, 60, "steps[1].after", "a after c after b after a", "steps without a cycle"},
    {RETRY("\"attempts\":0"), 3, 21, "steps[0].retry.attempts", "0", "a whole number from 1 to 1000"},
    {RETRY("\"attempts\":1.5"), 3, 21, "steps[0].retry.attempts", "1.5", "a whole number"},
    {RETRY("\"attempts\":1001"), 3, 21, "steps[0].retry.attempts", "1001", "a whole number"},
    {RETRY("\"wait\":\"x\""), 3, 17, "steps[0].retry.wait", "\"x\"", "a duration"},
    {RETRY("\"factor\":0.5"), 3, 19, "steps[0].retry.factor", "0.5", "a number from 1 to 100"},
    {RETRY("\"factor\":\"2\""), 3, 19, "steps[0].retry.factor", "\"2\"", "a number from 1 to 100"},
    {RETRY("\"factor\":1e99"), 3, 19, "steps[0].retry.factor", "1e99", "a number from 1 to 100"},
    {RETRY("\"wait\":\"10s\",\"max_wait\":\"5s\""), 3, 34, "steps[0].retry.max_wait", "\"5s\"", "at least as long as wait"},
    {RETRY("\"jitter\":\"on\""), 3, 19, "steps[0].retry.jitter", "\"on\"", "true or false"},
    {RETRY("\"defer\":\"15m\""), 3, 9, "steps[0].retry.defers", "nothing", "defers: how often"},
    {RETRY("\"defers\":2"), 3, 9, "steps[0].retry.defer", "nothing", "defer: how long"},
    {RETRY("\"defers\":-1"), 3, 19, "steps[0].retry.defers", "-1", "a whole number from 0 to 1000"},
    {RETRY("\"atempts\":1"), 3, 10, "steps[0].retry.atempts", "key \"atempts\"", "did you mean \"attempts\"?"},
    {ONE(",\n\"retry\":5"), 3, 9, "steps[0].retry", "5", "an object"},
    {"{\"intact\":1,\"workflow\":\"w\",\"complete_by\":\"30m\",\"steps\":[\n" STEP("a", ",\n\"retry\":{\"defer\":\"15m\",\"defers\":2}") "]}",
     3, 9, "steps[0].retry", "tries that wait for at least 1807s", "less than the task's complete_by"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":true"), 2, 45, "steps[0].undo", "true", "none, or an object with an action"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"nothing\""), 2, 45, "steps[0].undo", "\"nothing\"", "none, or"},
    {BARE("\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":{}"), 2, 45, "steps[0].undo.action", "nothing", "a key \"action\""},
    {UNDO(",\"heartbeat\":\"1m\""), 3, 34, "steps[0].undo.heartbeat", "\"1m\"", "a duration shorter than the attempt's complete_by, 30s"},
    {UNDO(",\"on_failure\":\"hold\""), 3, 22, "steps[0].undo.on_failure", "key \"on_failure\"", "one of action, agent, input, http, complete_by, heartbeat, retry"},
    {UNDO(",\"agent\":7"), 3, 30, "steps[0].undo.agent", "7", "a name"},
    {UNDO(",\"input\":\"${ foo }\""), 3, 34, "steps[0].undo.input", "unknown function \"foo\"", "an expression"},
    {UNDO(",\"retry\":{\"attempts\":0}"), 3, 42, "steps[0].undo.retry.attempts", "0", "a whole number"},
    {"{\"intact\":1,\"workflow\":\"w\",\"undo_complete_by\":\"1m\",\"steps\":[\n{\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\n"
     "\"undo\":{\"action\":\"z\",\"retry\":{\"defer\":\"1m\",\"defers\":1}}}]}",
     3, 30, "steps[0].undo.retry", "tries that wait for at least 67s", "less than the undo_complete_by"},
    {"{\"intact\":1,", 1, 13, "", "the text ends too early", "JSON"},
    {"{\"intact\":1,\n\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\n\"intact\":1}", 3, 1, "intact", "key \"intact\" a second time", "each key once; it is already in line 1"},
    {ONE(",\n\"input\":{\"k\":[{\"a\":1,\"b\":2,\n\"a\":3}]}"), 4, 1, "steps[0].input.k[0].a", "key \"a\" a second time", "each key once; it is already in line 3"},
    {"{\"intact\" 1}", 1, 11, "", "\"1}\"", "\":\" between key and value"},
    {"{\"intact\":1 \"workflow\":2}", 1, 13, "", "\"\"workflow\":2}\"", "\",\" or \"}\""},
    {"{\"intact\":1,\n}", 2, 1, "", "\"}\"", "a key in double quotes"},
    {"{\"intact\":[1 2]}", 1, 14, "", "\"2]}\"", "\",\" or \"]\""},
    {"{\"intact\":}", 1, 11, "", "\"}\"", "a value"},
    {"{\"intact\":yes}", 1, 11, "", "\"yes}\"", "a value"},
    {"{\"intact\":trye}", 1, 11, "", "\"trye}\"", "true, false, null, or text"},
    {"{\"intact\":1} x", 1, 14, "", "\"x\"", "the end of the text"},
    {"{\"intact\":1} 2", 1, 14, "", "\"2\"", "the end of the text"},
    {"{\"intact\":1.}", 1, 11, "", "a number without all", "a number such as"},
    {"{\"intact\":\"a\nb\"}", 1, 13, "", "a line break", "an escape such as \\n"},
    {"{\"intact\":\"\\q\"}", 1, 13, "", "a backslash that escapes nothing", "\\\""},
    {"{\"intact\":\"\\u12\"}", 1, 16, "", "\\u without four", "\\u and"},
    {"{ // here\n\"intact\":1}", 1, 3, "", "a comment", "JSON, which has none"},
    {"{\"intact\":\"\\u0000\"}", 1, 12, "", "\\u0000 is not allowed", "JSON"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static void all_mistakes_are_reported_at_once_in_the_order_of_the_text(void **state)
{
    static struct mistakes m;
    static const char text[] = "{\"intact\":3,\n"
                               "\"workflow\":\"W\",\n"
                               "\"steps\":[{\"nmae\":\"a\",\n"
                               "\"agent\":1,\n"
                               "\"action\":\"y\",\"after\":[\"q\"],\n"
                               "\"input\":[\"${ 1 + }\",\"${ foo }\"]}],\n"
                               "\"output\":\"${ bar }\",\n"
                               "\"complete_by\":5}";
    static const uint32_t lines[] = {1, 2, 3, 3, 3, 4, 5, 6, 6, 7, 8};
    struct definition *d = NULL;
    (void)state;
    CHECK(definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, NULL) == ERR_INVALID,
          "mistakes");
    CHECK(m.count == COUNT_OF(lines), "%zu mistakes", m.count);
    for (size_t i = 0; i < m.count; i++)
        CHECK(m.list[i].line == lines[i], "mistake %zu at %u:%u %s: %s", i, m.list[i].line,
              m.list[i].column, m.list[i].path, m.list[i].found);
}

static void many_steps(struct buf *b, int count, const char *more)
{
    buf_str(b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[");
    for (int i = 0; i < count; i++)
        buf_fmt(b, "%s{\"name\":\"s%d\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"%s}",
                i ? "," : "", i, more);
    buf_str(b, "]}");
}

static void there_is_room_for_so_many_steps_and_mistakes_and_no_more(void **state)
{
    static struct mistakes m;
    (void)state;
    for (int count = STEPS_MAX - 1; count <= STEPS_MAX + 1; count++) {
        CLEANUP(buf_fini) struct buf b = {0};
        struct definition *d = NULL;
        many_steps(&b, count, "");
        enum err err = definition_parse(buf_view(&b), DEFINITION_JSON, &d, &m, NULL);
        CHECK((err == ERR_OK) == (count <= STEPS_MAX), "%d steps", count);
        CHECK(err == ERR_OK || strcmp(m.list[0].found, "too many steps") == 0, "%s",
              m.list[0].found);
        definition_free(d);
    }
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;
    many_steps(&b, 150, ",\"foo\":1");
    CHECK(definition_parse(buf_view(&b), DEFINITION_JSON, &d, &m, NULL) == ERR_INVALID
              && m.count == MISTAKES_MAX,
          "%zu", m.count);
}

static void rules_depend_on_where_they_stand(void **state)
{
    struct definition *d = defined(
        "{\"intact\":1,\"workflow\":\"w\",\"on_failure\":\"hold\",\"steps\":["
        "{\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":{\"action\":\"z\","
        "\"agent\":\"q\",\"complete_by\":\"5s\",\"retry\":{\"wait\":\"2m\"}},"
        "\"on_failure\":\"continue\",\"retry\":{\"factor\":1.5,\"jitter\":false}}," STEP("b",
                                                                                         "") "]}");
    const struct workflow_step *a = &d->workflow.steps[0];
    (void)state;
    CHECK(d->workflow.on_failure == ON_FAILURE_HOLD && a->on_failure == ON_FAILURE_CONTINUE,
          "its own");
    CHECK(d->workflow.steps[1].on_failure == ON_FAILURE_HOLD, "the workflow's");
    CHECK(slice_is(a->undo.agent, "q") && a->undo.complete_by_ms == 5000, "undo");
    CHECK(a->undo.retry.wait_ms == 120000 && a->undo.retry.max_wait_ms == 120000,
          "max_wait grows with wait");
    CHECK(a->call.retry.factor_milli == 1500 && !a->call.retry.jitter, "retry");
    definition_free(d);
}

/* ---- any bytes ---- */

static void try_definition(const char *ptr, size_t len)
{
    static struct mistakes m;
    char *copy = malloc(len ? len : 1); /* exact size: the sanitizer finds reads beyond the end */
    struct definition *d = NULL;

    assert_non_null(copy);
    memcpy(copy, ptr, len);
    enum err err = definition_parse((struct slice){copy, len}, DEFINITION_JSON, &d, &m, NULL);
    free(copy);
    CHECK((err == ERR_OK) == (d != NULL), "%s", err_text(err));
    CHECK((err == ERR_OK) == (m.count == 0), "%zu mistakes", m.count);
    for (size_t i = 0; i < m.count; i++)
        CHECK(m.list[i].line >= 1 && m.list[i].column >= 1 && m.list[i].found[0]
                  && m.list[i].expected[0],
              "a mistake says all");
    if (d) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct world w = {0};
        struct scope s = scope_of(d, "{\"total\":1,\"sku\":\"x\"}", &w);
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        if (d->workflow.step_count <= 3 && definition_step_input(&s, 0, &a, &ret, &e) == ERR_OK)
            CHECK(ret.len > 0, "a value");
        definition_free(d);
    }
}

static void no_definition_breaks_the_reader(void **state)
{
    static const char *const bits[] = {"\"",     "{",       "}",     "[",        "]",
                                       ",",      ":",       "1",     "null",     "true",
                                       "${ ",    " }",      "\"a\"", "\"none\"", "\"after\":",
                                       "\"1s\"", "\\u0000", "\xff"};
    char text[2000];
    size_t len = strlen(order_text);
    struct prng p = {9};
    (void)state;
    CHECK(len < sizeof text, "there is room");
    for (size_t i = 0; i < len; i += 3)
        try_definition(order_text, i);
    for (int i = 0; i < 6000; i++) {
        memcpy(text, order_text, len);
        for (uint32_t n = 1 + prng_below(&p, 3); n > 0; n--) {
            const char *bit = bits[prng_below(&p, COUNT_OF(bits))];
            size_t at = prng_below(&p, (uint32_t)(len - strlen(bit)));
            if (prng_chance(&p, 50))
                text[at] = (char)prng_below(&p, 256);
            else
                memcpy(text + at, bit, strlen(bit));
        }
        try_definition(text, len);
    }
    for (int i = 0; i < 3000; i++) { /* values of the wrong type in valid places */
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *j = NULL;
        CHECK(json_parse(&a, slice_of(order_text), &j, NULL) == ERR_OK, "the example");
        const struct json *v = json_get(j, "steps")->child;
        while (prng_chance(&p, 70) && (v->child || v->next))
            v = v->child && (!v->next || prng_chance(&p, 60)) ? v->child : v->next;
        buf_add(&b, order_text, (size_t)(v->raw.ptr - order_text));
        buf_str(&b, prng_chance(&p, 50)   ? "[\"reserve\",1]"
                    : prng_chance(&p, 50) ? "{\"a\":7}"
                                          : "-1");
        buf_str(&b, v->raw.ptr + v->raw.len);
        try_definition(b.ptr, b.len);
    }
}

static void a_place_in_a_decoded_string_is_found_in_its_text(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    static const size_t offsets[] = {1, 2, 4, 10, 10, 16, 16, 16, 28, 28, 28, 28, 29};
    (void)state;
    CHECK(json_parse(&a, SLICE("\"a\\n\\u00e9\\u20ac\\ud83d\\ude00b\""), &j, NULL) == ERR_OK,
          "string");
    CHECK(j->text.len == 12, "%zu", j->text.len);
    for (size_t i = 0; i <= j->text.len; i++)
        CHECK(string_raw_offset(j, i) == offsets[i], "%zu is at %zu", i, string_raw_offset(j, i));
}

/* ---- the manual ---- */

static const char *manual; /* the path of definition_example.md */

static void the_example_of_the_manual_has_no_mistakes(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    FILE *f = fopen(manual, "r");
    char line[1024];
    bool inside = false;
    size_t examples = 0;
    (void)state;
    CHECK(f, "%s", manual);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "```", 3) == 0) {
            if (inside && begins(b.ptr ? b.ptr : "", "{\n  \"intact\"")) {
                definition_free(defined(b.ptr));
                examples++;
            }
            inside = strncmp(line, "```json", 7) == 0;
            buf_clear(&b);
        } else if (inside) {
            buf_str(&b, line);
        }
    }
    (void)fclose(f);
    CHECK(examples >= 1, "%zu examples", examples);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_example_becomes_its_graph),
        cmocka_unit_test(steps_follow_the_one_before_unless_they_say_otherwise),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(all_mistakes_are_reported_at_once_in_the_order_of_the_text),
        cmocka_unit_test(there_is_room_for_so_many_steps_and_mistakes_and_no_more),
        cmocka_unit_test(rules_depend_on_where_they_stand),
        cmocka_unit_test(no_definition_breaks_the_reader),
        cmocka_unit_test(a_place_in_a_decoded_string_is_found_in_its_text),
        cmocka_unit_test(the_example_of_the_manual_has_no_mistakes),
    };

    manual = argc > 1 ? argv[1] : "src/definition/definition_example.md";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
