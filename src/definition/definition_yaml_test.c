/* Tests of definitions in YAML: they compile to the same workflow as the same definition in JSON,
 * and mistakes are reported at their places in the YAML text. json/yaml_test.c tests the YAML
 * reader alone. */

#include "base/test.h"

#include "definition/definition.h"
#include "definition/same.h"
#include "json/text.h"

static struct mistakes mistakes, warnings;

static struct definition *defined(const char *text, enum definition_format format)
{
    struct definition *d = NULL;
    const struct mistake *m = &mistakes.list[0];
    enum err err = definition_parse(slice_of(text), format, &d, &mistakes, &warnings);

    CHECK(err == ERR_OK, "%s: %u:%u %s: %s, expected %s", text, m->line, m->column, m->path,
          m->found, m->expected);
    return d;
}

static const char order_yaml[] = "# An order\n"
                                 "intact: 1\n"
                                 "workflow: order\n"
                                 "complete_by: 2h\n"
                                 "undo_complete_by: \"1d\"\n"
                                 "inputs:\n"
                                 "  sku: {type: string, required: true}\n"
                                 "  quantity: {type: integer, default: 1}\n"
                                 "  total: {type: number}\n"
                                 "  note:\n"
                                 "    type: any\n"
                                 "    default: [1.50, ~, 123456789012345678901234567890]\n"
                                 "steps:\n"
                                 "- name: reserve\n"
                                 "  agent: inventory\n"
                                 "  action: reserve\n"
                                 "  input:\n"
                                 "    sku: ${ .input.sku }\n"
                                 "    quantity: ${ .input.quantity }\n"
                                 "    text: |\n"
                                 "      Dear ${ .input.sku },\n"
                                 "        thank you\n"
                                 "  retry: {attempts: 5, wait: 200ms, factor: 1.5, max_wait: 10s,\n"
                                 "          defer: 15m, defers: 2, jitter: false}\n"
                                 "  undo:\n"
                                 "    action: release\n"
                                 "    input: {id: \"${ .steps.reserve.output.id // null }\"}\n"
                                 "- name: charge\n"
                                 "  agent: payment\n"
                                 "  action: 'charge'\n"
                                 "  if: >-\n"
                                 "    .input.total > 0\n"
                                 "    and .input.sku != \"free\"\n"
                                 "  undo: {action: refund}\n"
                                 "- name: ship\n"
                                 "  after:\n"
                                 "  - reserve\n"
                                 "  - charge\n"
                                 "  agent: shipping\n"
                                 "  action: ship\n"
                                 "  pivot: true\n"
                                 "output:\n"
                                 "  parcel: ${ .steps.ship.output.id }\n";

static const char order_json[] =
    "{\"intact\":1,\"workflow\":\"order\",\"complete_by\":\"2h\",\"undo_complete_by\":\"1d\",\n"
    "\"inputs\":{\"sku\":{\"type\":\"string\",\"required\":true},"
    "\"quantity\":{\"type\":\"integer\",\"default\":1},\"total\":{\"type\":\"number\"},"
    "\"note\":{\"type\":\"any\",\"default\":[1.50,null,123456789012345678901234567890]}},\n"
    "\"steps\":[{\"name\":\"reserve\",\"agent\":\"inventory\",\"action\":\"reserve\",\n"
    "\"input\":{\"sku\":\"${ .input.sku }\",\"quantity\":\"${ .input.quantity }\","
    "\"text\":\"Dear ${ .input.sku },\\n  thank you\\n\"},\n"
    "\"retry\":{\"attempts\":5,\"wait\":\"200ms\",\"factor\":1.5,\"max_wait\":\"10s\","
    "\"defer\":\"15m\",\"defers\":2,\"jitter\":false},\n"
    "\"undo\":{\"action\":\"release\",\"input\":{\"id\":\"${ .steps.reserve.output.id // null "
    "}\"}}},\n"
    "{\"name\":\"charge\",\"agent\":\"payment\",\"action\":\"charge\","
    "\"if\":\".input.total > 0 and .input.sku != "
    "\\\"free\\\"\",\"undo\":{\"action\":\"refund\"}},\n"
    "{\"name\":\"ship\",\"after\":[\"reserve\",\"charge\"],\"agent\":\"shipping\",\"action\":"
    "\"ship\","
    "\"pivot\":true}],\n"
    "\"output\":{\"parcel\":\"${ .steps.ship.output.id }\"}}";

static struct slice no_value(void *arg, int step)
{
    (void)arg;
    (void)step;
    return SLICE("{\"id\":\"r-1\"}");
}

/* Evaluates all expressions and defaults on a fixed input. */
static void evaluate(const struct definition *d, struct arena *a, struct buf *ret)
{
    struct scope s = {.definition = d, .step_input = no_value, .step_output = no_value};
    struct slice out = SLICE_NONE;
    struct error e = {0};
    bool yes = false;

    enum err err = definition_check_input(d, SLICE("{\"sku\":\"A-1\"}"), a, &s.input, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    buf_slice(ret, s.input);
    for (int i = 0; i < d->workflow.step_count; i++) {
        CHECK(definition_step_input(&s, i, a, &out, &e) == ERR_OK, "%s", e.text);
        buf_slice(ret, out);
        CHECK(definition_undo_input(&s, i, a, &out, &e) == ERR_OK, "%s", e.text);
        buf_slice(ret, out);
        CHECK(definition_condition(&s, i, a, &yes, &e) == ERR_OK, "%s", e.text);
        buf_str(ret, yes ? "yes" : "no");
    }
    CHECK(definition_output(&s, a, &out, &e) == ERR_OK, "%s", e.text);
    buf_slice(ret, out);
}

static void yaml_and_json_compile_to_the_same_workflow(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf x = {0};
    CLEANUP(buf_fini) struct buf y = {0};
    (void)state;

    struct definition *yaml = defined(order_yaml, DEFINITION_GUESS);
    CHECK(warnings.count == 0, "%s", warnings.list[0].found);
    struct definition *json = defined(order_json, DEFINITION_GUESS);
    CHECK(yaml->is_yaml && !json->is_yaml, "formats");
    CHECK(slice_is(yaml->text, order_yaml) && slice_is(json->text, order_json), "texts as given");
    CHECK(same_definition(yaml, json), "%.*s", SLICE_ARG(yaml->json));
    evaluate(yaml, &a, &x);
    evaluate(json, &a, &y);
    CHECK(strcmp(x.ptr, y.ptr) == 0, "%s\n%s", x.ptr, y.ptr);
    struct definition *back = NULL;
    CHECK(definition_parse(yaml->json, DEFINITION_JSON, &back, &mistakes, NULL) == ERR_OK, "json");
    CHECK(same_definition(back, yaml), "and back");
    definition_free(back);
    definition_free(yaml);
    definition_free(json);
}

static void a_text_is_what_it_begins_like_unless_it_is_named(void **state)
{
    static const char flow[] = "{intact: 1, workflow: w, steps: [{name: a, agent: x, action: y, "
                               "undo: none}]}";
    static const char json[] =
        " {\"intact\": 1, \"workflow\": \"w\", \"steps\": [{\"name\": \"a\", "
        "\"agent\": \"x\", \"action\": \"y\", \"undo\": \"none\"}]}";
    struct definition *d = NULL;
    (void)state;

    CHECK(definition_parse(slice_of(flow), DEFINITION_GUESS, &d, &mistakes, NULL) == ERR_PARSE,
          "begins like JSON");
    CHECK(strcmp(mistakes.list[0].expected, "a key in double quotes") == 0
              || mistakes.list[0].column == 2,
          "%s", mistakes.list[0].expected);
    d = defined(flow, DEFINITION_YAML);
    CHECK(d->is_yaml, "flow YAML");
    definition_free(d);
    d = defined(json, DEFINITION_YAML);
    CHECK(!d->is_yaml, "what is JSON is JSON, however it was called");
    definition_free(d);
    CHECK(definition_parse(SLICE("intact: 1\n"), DEFINITION_JSON, &d, &mistakes, NULL) == ERR_PARSE,
          "not JSON");
    d = defined("\xef\xbb\xbfintact: 1\nworkflow: w\nsteps: [{name: a, agent: x, action: y, undo: "
                "none}]\n",
                DEFINITION_GUESS);
    CHECK(memcmp(d->text.ptr, "\xef\xbb\xbf", 3) == 0, "as it was given");
    definition_free(d);

    CLEANUP(arena_fini) struct arena a = {0};
    CHECK(slice_is(definition_name(SLICE("workflow: abc\nstep: 1\n"), DEFINITION_GUESS, &a), "abc"),
          "name");
    CHECK(slice_is(definition_name(SLICE("{\"workflow\":\"abc\"}"), DEFINITION_GUESS, &a), "abc"),
          "name");
    CHECK(!definition_name(SLICE("workflow: [abc\n"), DEFINITION_GUESS, &a).ptr, "no tree");
    CHECK(!definition_name(SLICE("workflow: 1\n"), DEFINITION_GUESS, &a).ptr, "no text");
}

/* ---- mistakes and warnings ---- */

struct reported {
    const char *yaml;
    const char *messages[4]; /* "LINE:COLUMN PATH: FOUND|EXPECTED"; each message begins with one */
};

#define HEAD       "intact: 1\nworkflow: w\n"
#define STEP(name) "- {name: " name ", agent: x, action: y, undo: none}\n"
#define OPEN(name) "- name: " name "\n  agent: x\n  action: y\n"

static void check_reported(const struct reported *c, const struct mistakes *m)
{
    size_t count = 0;

    while (count < COUNT_OF(c->messages) && c->messages[count])
        count++;
    for (size_t i = 0; i < count && i < m->count; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        const struct mistake *k = &m->list[i];
        buf_fmt(&b, "%u:%u %s: %s|%s", k->line, k->column, k->path, k->found, k->expected);
        CHECK(strncmp(b.ptr, c->messages[i], strlen(c->messages[i])) == 0, "%s%s", c->yaml, b.ptr);
    }
    CHECK(m->count == count, "%s%zu reported, %zu expected; %u:%u %s %s", c->yaml, m->count, count,
          m->list[count].line, m->list[count].column, m->list[count].found,
          m->list[count].expected);
}

static void mistakes_in_yaml_have_their_places(void **state)
{
    static const struct reported cases[] = {
        {HEAD "stepps: 1\nsteps:\n" STEP("a"),
         {"3:1 stepps: key \"stepps\"|did you mean \"steps\"?"}},
        {HEAD "steps:\n" STEP("a") "intact: 1\n",
         {"5:1 intact: key \"intact\" a second time|each key once; it is already in line 1"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input:\n    k: {b: 1, c: 2, b: 3}\n    k: 4\n",
         {"9:21 steps[0].input.k.b: key \"b\" a second time",
          "10:5 steps[0].input.k: key \"k\" a second time"}},
        {HEAD "steps:\n" STEP("no") OPEN("b") "  undo: none\n  pivot: yes\n",
         {"9:10 steps[1].pivot: \"yes\"|true or false"}},
        {HEAD "steps:\n" OPEN("1") "  undo: none\n",
         {"4:9 steps[0].name: 1|a name: 1 to 64 of a-z, 0-9, _ and -; as a text, in quotes"}},
        {HEAD "steps:\n" OPEN("a"),
         {"4:3 steps[0].undo: nothing|undo: {action: ...}, undo: none, or pivot: true"}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n", {"7:8 steps[0].undo: null|none, or an object"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  needs: [a]\n",
         {"9:3 steps[1].needs: key \"needs\"|\"needs\" is unknown, use after"}},
        {HEAD "steps:\n" STEP("a")
             OPEN("b") "  undo: none\n  for_each: x\n  max_items: 3\n  schedule: x\n",
         {"9:13 steps[1].for_each: \"x\"|a list, or an expression that gives one",
          "11:3 steps[1].schedule: key \"schedule\"|\"schedule\" is reserved"}},
        {HEAD "schedule: x\nconcurrency: 1\nsteps:\n" STEP("a"),
         {"3:1 schedule: key \"schedule\"|\"schedule\" is reserved",
          "4:1 concurrency: key \"concurrency\"|concurrency is for steps with for_each"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  after: [b]\n" OPEN(
             "b") "  undo: none\n  after:\n    - a\n    - c\n",
         {"8:10 steps[0].after: a after b after a|steps without a cycle",
          "15:7 steps[1].after[1]: \"c\"|the name of a step"}},
        {HEAD "complete_by: 30m\nsteps:\n" OPEN(
             "a") "  undo: none\n  retry:\n    defer: 15m\n    defers: 2\n",
         {"10:5 steps[0].retry: tries that wait for at least 1807s|less than the task's "
          "complete_by"}},
        {HEAD "complete_by: 5 s\nsteps:\n" STEP("a"),
         {"3:14 complete_by: \"5 s\"|a duration such as"}},
        {HEAD "complete_by: 30\nsteps:\n" STEP("a"), {"3:14 complete_by: 30|a duration such as"}},
        /* expressions, in every style */
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: .input.a > foo\n",
         {"8:18 steps[0].if: unknown function \"foo\"|an expression"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: '\"it''s\" == foo'\n",
         {"8:19 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: \"\\\"\\u00e9\\\" == foo\"\n",
         {"8:22 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: >\n    .input.a\n    and\n      foo\n",
         {"11:7 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: |\n    .input.a\n    and foo\n",
         {"10:9 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: .input.a\n    and\n\n    foo\n",
         {"11:5 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: \".input.a and \\\n       foo\"\n",
         {"9:8 steps[0].if: unknown function \"foo\""}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: true\n",
         {"8:7 steps[0].if: true|an expression in a string"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: .a >\n",
         {"8:11 steps[0].if: the end of the expression"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input:\n    t: |\n      \xc3\xa4 ${ .input.a "
                                   "}\n      and ${ $b }\n",
         {"11:14 steps[0].input: \"$\": variables"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input: x ${ .steps.b.output }\n",
         {"8:21 steps[0].input: step \"b\"|the name of a step"}},
        {HEAD "output: >\n  x\n  ${ .steps.aa.output }\nsteps:\n" STEP("ab"),
         {"5:12 output: step \"aa\"|"}},
        /* several at once, of YAML and of the definition */
        {HEAD "steps:\n- &s\n  name: a\n  agnet: x\n  action: !t y\n  undo: none\n",
         {"4:3 : an anchor (&)", "4:3 steps[0].agent: nothing|a key \"agent\"",
          "6:3 steps[0].agnet: key \"agnet\"|did you mean \"agent\"?", "7:11 : a tag (!)"}},
        {"- a\n", {"1:1 : an array|an object"}},
        {"", {"1:1 : nothing|keys and values"}},
        {"---\n", {"2:1 : null|an object"}},
        {"x\n", {"1:1 : \"x\"|an object"}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct definition *d = NULL;
        enum err err =
            definition_parse(slice_of(cases[i].yaml), DEFINITION_YAML, &d, &mistakes, &warnings);
        CHECK(err != ERR_OK, "%s", cases[i].yaml);
        check_reported(&cases[i], &mistakes);
    }
}

static void what_is_hardly_meant_is_warned_of(void **state)
{
    static const struct reported cases[] = {
        {HEAD "steps:\n" STEP("a"), {NULL}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.output.id }\n",
         {"9:21 steps[0].undo.input: output of step \"a\"|// and what holds without it"}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.output }\n",
         {"9:21 steps[0].undo.input: output of step \"a\"|"}},
        {HEAD
         "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.output | .id }\n",
         {"9:21 steps[0].undo.input: output of step \"a\"|"}},
        {HEAD "steps:\n" OPEN(
             "a") "  undo:\n    action: z\n    input: ${ .steps.a.output.id // null }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.output.id? }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.output?.id }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ if .steps.a.output then "
                                   ".steps.a.output.id else 1 end }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN(
             "a") "  undo:\n    action: z\n    input: ${ .input.x // .steps.a.output.id }\n",
         {"9:33 steps[0].undo.input: output of step \"a\"|"}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .steps.a.input.id }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n" OPEN(
             "b") "  undo:\n    action: z\n    input: ${ .steps.a.output.id }\n",
         {NULL}},
        {HEAD "steps:\n" OPEN(
             "a") "  undo:\n    action: z\n    input: ${ .steps.b.output.id }\n" STEP("b"),
         {"9:21 steps[0].undo.input: output of step \"b\"|"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: 1 > 0\n",
         {"8:7 steps[0].if: \"1 > 0\"|a condition that depends on something"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: .inputs.a\n",
         {"8:7 steps[0].if: .inputs, which is always null|did you mean .input?"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  if: .steps.a.stat == \"x\"\n",
         {"9:15 steps[1].if: .stat, which is always null|did you mean .state?"}},
        {HEAD "steps:\n" STEP("a") "output: {x: '${ .step.a }'}\n",
         {"5:17 output: .step, which is always null|did you mean .steps?"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  if: .steps.a.result\n",
         {"9:15 steps[1].if: .result, which is always null|.input, .output, .state or .error of a "
          "step"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  if: .steps.a.state == \"skipped\"\n",
         {NULL}},
        {HEAD "steps:\n" STEP("a") OPEN(
             "b") "  undo: none\n  input: ${ .steps.a.error.code } ${ .steps.a.error.reason }\n",
         {"9:52 steps[1].input: .reason, which is always null|.code or .message of an error"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  if: .steps.a.state.x\n",
         {"9:21 steps[1].if: .x, which is never there|nothing behind a string"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input: ${ .task.idd }\n",
         {"8:18 steps[0].input: .idd, which is always null|did you mean .id?"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input: ${ .task | {id, key} }\n",
         {"8:26 steps[0].input: .key, which is always null|.id, .workflow, .version or "
          ".submitted_at of the task"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input: ${ .task.error.code }\n",
         {"8:18 steps[0].input: .error, which is always null|.task.error in the input of an undo"}},
        {HEAD "steps:\n" OPEN("a") "  undo:\n    action: z\n    input: ${ .task.error.code } "
                                   "${ .task.error.reason }\noutput: ${ .task.error.step }\n",
         {"9:48 steps[0].undo.input: .reason, which is always null|.step, .code or .message of the "
          "task's error"}},
        {HEAD "inputs:\n  sku: {type: string}\n  lines: {type: array}\n  what: {type: object}\n"
              "steps:\n" OPEN("a") "  undo: none\n  if: .input.lines[0].sku == .input.what.x\n"
                                   "  input: ${ .input.skv }\n",
         {"13:19 steps[0].input: .skv, which is always null|did you mean .sku?"}},
        {HEAD "inputs:\n  sku: {type: string}\n  total: {type: number}\nsteps:\n" OPEN(
             "a") "  undo: none\n  input: ${ .input | [.amount?, .sku.x, .sku.y?] }\n",
         {"11:23 steps[0].input: .amount, which is always null|.sku or .total of the task's inputs",
          "11:37 steps[0].input: .x, which is never there|nothing behind a string"}},
        {HEAD "steps:\n" STEP("a")
             OPEN("b") "  undo: none\n  input: ${ .steps | {a, c}, .b.stat }\n",
         {"9:26 steps[1].input: .c, which is always null|the name of a step",
          "9:32 steps[1].input: .stat, which is always null|did you mean .state?"}},
        {HEAD "inputs: {}\nsteps:\n" OPEN("a") "  undo: none\n  input: ${ .input.sku }\n",
         {"9:19 steps[0].input: .sku, which is always null|no name of the task's inputs"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  input: ${ .input.sku.x.y }\n", {NULL}},
        {HEAD
         "steps:\n" OPEN("a") "  undo: none\n  input: ${ [.task | select(.id == \"a\") | .ix], "
                              "(.input | map(.task.x)), has(.task.vers) }\n",
         {"8:43 steps[0].input: .ix, which is always null|.id, .workflow",
          "8:83 steps[0].input: .vers, which is always null|.id, .workflow"}},
        {HEAD "steps:\n" OPEN("a") "  undo: none\n  if: has(.task.idd)\n",
         {"8:16 steps[0].if: .idd, which is always null|did you mean .id?"}},
        {HEAD "steps:\n" STEP("a") OPEN("b") "  undo: none\n  if: .steps.a.error.code.x\n",
         {"9:26 steps[1].if: .x, which is never there|nothing behind a string"}},
        {HEAD "inputs:\n  sku: {type: string}\nsteps:\n" OPEN(
             "a") "  undo: none\n  input: ${ [.input.sku, .input.sku.x] }\n",
         {"10:36 steps[0].input: .x, which is never there|nothing behind a string"}},
        {HEAD "complete_by: 1m\nsteps:\n" OPEN("a") "  undo: none\n  complete_by: 2m\n",
         {"9:16 steps[0].complete_by: \"2m\"|no longer than the task's complete_by"}},
        {HEAD "complete_by: 1m\nsteps:\n" OPEN("a") "  undo: none\n  complete_by: 1m\n", {NULL}},
        {HEAD
         "undo_complete_by: 1m\nsteps:\n" OPEN("a") "  undo:\n    action: z\n    complete_by: 2m\n",
         {"10:18 steps[0].undo.complete_by: \"2m\"|no longer than the undo_complete_by"}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct definition *d = defined(cases[i].yaml, DEFINITION_YAML);
        check_reported(&cases[i], &warnings);
        struct definition *json = NULL;
        size_t count = warnings.count;
        CHECK(definition_parse(d->json, DEFINITION_JSON, &json, &mistakes, &warnings) == ERR_OK,
              "as JSON");
        CHECK(warnings.count == count, "%s: %zu warnings as JSON", cases[i].yaml, warnings.count);
        definition_free(json);
        definition_free(d);
    }
}

static void keys_that_stand_twice_are_no_burden(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;
    (void)state;

    buf_str(&b, "{\"intact\":1,\"intact\":1");
    for (int i = 0; i < 200000; i++)
        buf_fmt(&b, ",\"k%d\":1", i % 100000);
    buf_str(&b, "}");
    CHECK(definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, NULL) == ERR_INVALID,
          "many keys");
    CHECK(mistakes.count == MISTAKES_MAX, "%zu", mistakes.count);
}

static void what_is_quoted_of_a_text_is_text(void **state)
{
    static const struct {
        const char *json, *found;
    } cases[] = {
        {"\":\":\"\x85\\", "the text ends too early"},
        {"{\"a\" \x85}", "a byte that is not text"},
        {"{\"a\" x\x85}", "\"x\"..."},
        {"{\"a\" x\x1b[2J}", "\"x\"..."},
        {"{\"a\" x\xc3\xa4}", "\"x\xc3\xa4}\""},
    };
    struct definition *d = NULL;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CHECK(definition_parse(slice_of(cases[i].json), DEFINITION_JSON, &d, &mistakes, NULL)
                  == ERR_PARSE,
              "%s", cases[i].json);
        const char *found = mistakes.list[0].found;
        CHECK(text_utf8_end(slice_of(found)) == strlen(found), "%s", cases[i].json);
        CHECK(i == 0 || strcmp(found, cases[i].found) == 0, "%s: %s", cases[i].json, found);
    }
}

/* This takes a moment. It would take minutes if the place of each expression were counted from the
 * start of the text. */
static void a_long_string_with_many_expressions_is_no_burden(void **state)
{
    static const char *const looks[] = {"${.steps.a.output}", "${.steps.z.output}", "${.stepz}"};
    (void)state;

    for (size_t i = 0; i < 2 * COUNT_OF(looks); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        struct definition *d = NULL;
        buf_str(&b, HEAD "steps:\n" STEP("a") OPEN("b") "  undo:\n    action: z\n");
        buf_str(&b, i % 2 ? "  input: \"" : "    input: \"");
        for (int k = 0; k < 60000; k++)
            buf_str(&b, looks[i / 2]);
        buf_str(&b, "\"\n");
        enum err err = definition_parse(buf_view(&b), DEFINITION_YAML, &d, &mistakes, &warnings);
        CHECK((err == ERR_OK) == (i / 2 != 1), "%s", looks[i / 2]);
        definition_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_and_json_compile_to_the_same_workflow),
        cmocka_unit_test(a_text_is_what_it_begins_like_unless_it_is_named),
        cmocka_unit_test(mistakes_in_yaml_have_their_places),
        cmocka_unit_test(what_is_hardly_meant_is_warned_of),
        cmocka_unit_test(what_is_quoted_of_a_text_is_text),
        cmocka_unit_test(keys_that_stand_twice_are_no_burden),
        cmocka_unit_test(a_long_string_with_many_expressions_is_no_burden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
