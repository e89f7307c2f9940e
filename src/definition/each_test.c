/* Definitions with steps that do the same for each item of a list: what is read, mistakes, the list
 * that is evaluated, and what the expressions of an item see. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps)  "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define CALL(undo, more) "{\"name\":\"pack\",\"agent\":\"x\",\"action\":\"y\"," undo "" more "}"
#define UNDO             "\"undo\":\"none\""
#define LIST             ",\"for_each\":\"${ .input.lines }\""
#define MOST             ",\"max_items\":200"
#define EACH(more)       OF("", CALL(UNDO, LIST MOST more))
#define LINE(key)        OF("", CALL(UNDO, LIST MOST ",\n" key))

/* ---- what is read ---- */

static void the_rule_is_read(void **state)
{
    struct definition *d =
        defined(OF("", STEP("a", "") "," CALL("\"undo\":{\"action\":\"z\"}", LIST MOST
                                              ",\"concurrency\":3,\"on_item_failure\":"
                                              "\"continue\",\"on_failure\":\"hold\",\"if\":"
                                              "\".input.x\"") "," STEP("b", "")));
    const struct workflow *w = &d->workflow;
    const struct workflow_step *s = &w->steps[1];
    (void)state;

    CHECK(s->kind == KIND_EACH && w->steps[0].kind == KIND_CALL && w->steps[2].kind == KIND_CALL,
          "kinds");
    CHECK(s->each.max_items == 200 && s->each.concurrency == 3 && s->each.goes_on
              && s->each.tolerate == 0,
          "the rule");
    CHECK(s->each.slots_at == 3 && s->each.slot_count == 7 && s->each.step == 1
              && w->slot_count == 7 && w->step_count == 3,
          "its slots");
    CHECK(slice_is(s->call.agent, "x") && s->undo_kind == UNDO_CALL && slice_is(s->undo.action, "z")
              && s->on_failure == ON_FAILURE_HOLD && s->before_count == 1 && s->after_count == 1,
          "as for other steps");
    CHECK(w->steps[0].each.concurrency == 0, "others have none");
    CHECK(d->steps[1].items && d->steps[1].condition && !d->steps[0].items, "its list");
    CHECK(d->has_decisions && !d->has_waits, "what the scheduler knows");
    CHECK(grammar_of(w) == GRAMMAR_EACH && strcmp(grammar_words(GRAMMAR_EACH), "for_each") == 0,
          "its word is new");
    definition_free(d);
}

static void slots_are_copies(void **state)
{
    struct definition *d =
        defined(OF("", CALL("\"undo\":{\"action\":\"z\",\"input\":\"${ .output // 0 }\"}", LIST MOST
                            ",\"concurrency\":1,\"input\":\"${ .item "
                            "}\",\"if\":\".input.x\"") ","
                                                       "{\"name\":\"ready\",\"agent\":"
                                                       "\"v\",\"action\":\"y\"," UNDO LIST MOST
                                                       ",\"concurrency\":2,\"repeat\":{"
                                                       "\"until\":\".output.ok\","
                                                       "\"every\":\"5s\",\"for\":"
                                                       "\"2h\"}}"));
    const struct workflow *w = &d->workflow;
    (void)state;

    CHECK(w->slot_count == 8 && w->steps[1].each.slots_at == 5, "of both");
    for (int u = w->step_count; u < w->step_count + w->slot_count; u++) {
        int step = u < 5 ? 0 : 1;
        const struct workflow_step *slot = &w->steps[u];
        CHECK(unit_is_slot(w, u) && unit_step(w, (uint16_t)u) == step, "unit %d", u);
        CHECK(slot->kind == KIND_CALL && slot->each.slot_count == 0
                  && slot->each.concurrency == step + 1 && slice_eq(slot->name, w->steps[step].name)
                  && slice_eq(slot->call.agent, w->steps[step].call.agent),
              "unit %d", u);
        CHECK(!d->steps[u].condition && !d->steps[u].items, "what is of the step");
        CHECK(!d->steps[step].input && !d->steps[step].undo_input && !d->steps[step].until
                  && (d->steps[u].input != NULL) == (step == 0)
                  && (d->steps[u].undo_input != NULL) == (step == 0)
                  && (d->steps[u].until != NULL) == (step == 1),
              "what is of an item");
    }
    CHECK(!step_is_repeated(&w->steps[1]) && step_is_repeated(&w->steps[5]), "rounds are of items");
    definition_free(d);
}

static void it_has_defaults(void **state)
{
    struct definition *d = defined(EACH(""));
    const struct each_spec *e = &d->workflow.steps[0].each;
    (void)state;

    CHECK(e->concurrency == 10 && !e->goes_on && e->tolerate == 0, "the rule");
    definition_free(d);
    d = defined(EACH(",\"on_item_failure\":\"stop\""));
    CHECK(!d->workflow.steps[0].each.goes_on, "the same in words");
    definition_free(d);
}

static void shares_are_parts_of_10000(void **state)
{
    static const struct {
        const char *text;
        unsigned share;
    } cases[] = {
        {"5%", 500},     {"0.01%", 1}, {"0.5%", 50},     {"12.25%", 1225},
        {"100%", 10000}, {"05%", 500}, {"99.99%", 9999}, {"100.00%", 10000},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        buf_fmt(&text, EACH(",\"on_item_failure\":{\"tolerate\":\"%s\"}"), cases[i].text);
        struct definition *d = defined(text.ptr);
        CHECK(d->workflow.steps[0].each.tolerate == cases[i].share, "%s", cases[i].text);
        definition_free(d);
    }
}

static void bounds_are_accepted(void **state)
{
    (void)state;
    definition_free(defined(OF("", CALL(UNDO, LIST ",\"max_items\":10000,\"concurrency\":100"))));
    definition_free(defined(OF("", CALL(UNDO, LIST ",\"max_items\":1,\"concurrency\":1"))));
    definition_free(defined(OF("", CALL("\"pivot\":true", LIST MOST))));
    definition_free(defined(OF("", CALL(UNDO, ",\"for_each\":[1,\"${ .input.x }\"]" MOST))));
    definition_free(defined(OF("", CALL(UNDO, ",\"for_each\":{\"a\":1}" MOST))));
}

/* ---- mistakes ---- */

#define TOLERATE(what) LINE("\"on_item_failure\":{\"tolerate\":" what "}")
#define SHARE          "a percentage above 0 and at most 100%, with two decimals at most: 5%"

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {OF("", CALL(UNDO, LIST)), 2, 1, "steps[0].max_items", "nothing", "a key \"max_items\""},
    {OF("", CALL(UNDO, LIST ",\n\"max_items\":0")), 3, 13, "steps[0].max_items", "0", "a whole number from 1 to 10000"},
    {OF("", CALL(UNDO, LIST ",\n\"max_items\":10001")), 3, 13, "steps[0].max_items", "10001", "a whole number from 1 to 10000"},
    {OF("", CALL(UNDO, LIST ",\n\"max_items\":\"9\"")), 3, 13, "steps[0].max_items", "\"9\"", "a whole number from 1 to 10000"},
    {LINE("\"concurrency\":0"), 3, 15, "steps[0].concurrency", "0", "a whole number from 1 to 100"},
    {LINE("\"concurrency\":101"), 3, 15, "steps[0].concurrency", "101", "a whole number from 1 to 100"},
    {LINE("\"on_item_failure\":\"undo\""), 3, 19, "steps[0].on_item_failure", "\"undo\"", "stop, continue or {tolerate: 5%}"},
    {LINE("\"on_item_failure\":5"), 3, 19, "steps[0].on_item_failure", "5", "stop, continue or {tolerate: 5%}"},
    {LINE("\"on_item_failure\":{}"), 3, 19, "steps[0].on_item_failure.tolerate", "nothing", "a key \"tolerate\""},
    {LINE("\"on_item_failure\":{\"tolerate\":\"5%\",\"x\":1}"), 3, 36, "steps[0].on_item_failure.x", "key \"x\"", "one of tolerate"},
    {TOLERATE("5"), 3, 31, "steps[0].on_item_failure.tolerate", "5", SHARE},
    {TOLERATE("\"5\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"5\"", SHARE},
    {TOLERATE("\"%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"%\"", SHARE},
    {TOLERATE("\"0%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"0%\"", SHARE},
    {TOLERATE("\"0.00%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"0.00%\"", SHARE},
    {TOLERATE("\"0.125%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"0.125%\"", SHARE},
    {TOLERATE("\"100.01%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"100.01%\"", SHARE},
    {TOLERATE("\"42949672970%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"42949672970%\"", SHARE},
    {TOLERATE("\".5%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\".5%\"", SHARE},
    {TOLERATE("\"5.%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"5.%\"", SHARE},
    {TOLERATE("\"1.2.3%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"1.2.3%\"", SHARE},
    {TOLERATE("\"-5%\""), 3, 31, "steps[0].on_item_failure.tolerate", "\"-5%\"", SHARE},
    {OF("", CALL(UNDO, ",\n\"for_each\":7" MOST)), 3, 12, "steps[0].for_each", "7", "a list, or an expression"},
    {OF("", CALL(UNDO, ",\n\"for_each\":null" MOST)), 3, 12, "steps[0].for_each", "null", "a list, or an expression"},
    {OF("", CALL(UNDO, ",\n\"for_each\":\".input.lines\"" MOST)), 3, 12, "steps[0].for_each", "\".input.lines\"", "a list, or an expression that gives one: ${ .input.lines }"},
    {OF("", CALL(UNDO, ",\n\"for_each\":\"x ${ .input.lines }\"" MOST)), 3, 12, "steps[0].for_each", "\"x ${ .input.lines }\"", "a list, or an expression"},
    {OF("", CALL(UNDO, ",\n\"for_each\":\"${ .input. }\"" MOST)), 3, 24, "steps[0].for_each", "\"}\"", "a name"},
    {OF("", CALL(UNDO, ",\n\"for_each\":\"${ .steps.pack.output }\"" MOST)), 3, 22, "steps[0].for_each", "step \"pack\"", "a step that ends before"},
    {OF("", CALL(UNDO, ",\n\"for_each\":\"${ .item.x }\"" MOST)), 3, 16, "steps[0].for_each", "an item", "nothing of items"},
    {OF("", CALL(UNDO, ",\n\"for_each\":[[\"${ .index }\"]]" MOST)), 3, 18, "steps[0].for_each", "an item", "nothing of items"},
    {LINE("\"if\":\".item.x > 1\""), 3, 7, "steps[0].if", "an item", "nothing of items"},
    {LINE("\"if\":\".input.x > .index\""), 3, 18, "steps[0].if", "an item", "nothing of items"},
    {ONE(",\n\"max_items\":1"), 3, 13, "steps[0].max_items", "1", "for_each beside it"},
    {ONE(",\n\"on_item_failure\":\"stop\""), 3, 19, "steps[0].on_item_failure", "\"stop\"", "for_each beside it"},
    {OF("", CALL("\n\"undo\":{\"action\":\"z\",\"input\":\"${ .steps.pack.output }\"}", LIST MOST)), 3, 40, "steps[0].undo.input", "the outputs of all items", ".output: what is undone"},
    {OF("", "{\"name\":\"b\",\"wait\":\"1s\",\n\"for_each\":[]}"), 3, 1, "steps[0].for_each", "key \"for_each\"", "for_each is for steps with an agent"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"s\"},\n\"max_items\":1}"), 3, 1, "steps[0].max_items", "key \"max_items\"", "max_items is for steps with for_each"},
    {TOP(",\n\"for_each\":[]"), 2, 1, "for_each", "key \"for_each\"", "for_each is for steps with an agent"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[" CALL(UNDO, MOST ",\n\"for_each\":[1]") "]}", 2, 12, "on_undo[0].for_each", "an array", "no for_each: a step of on_undo"},
    {OF("", CALL("\"undo\":{\"action\":\"z\"}", LIST MOST ",\n\"repeat\":{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"2h\"}")), 2, 48, "steps[0].undo", "an object", "undo: none beside repeat"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

/* `count` steps of that concurrency, and one more. */
static void write_steps(struct buf *b, int count, int concurrency, const char *last)
{
    buf_str(b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[");
    for (int i = 0; i < count; i++)
        buf_fmt(b,
                "{\"name\":\"s%d\",\"agent\":\"x\",\"action\":\"y\"," UNDO
                ",\"for_each\":[],\"max_items\":1,\"concurrency\":%d},",
                i, concurrency);
    buf_fmt(b, "\n{\"name\":\"last\",\"agent\":\"x\",\"action\":\"y\"," UNDO "%s}]}", last);
}

static void all_steps_together_have_so_many_slots(void **state)
{
    static const struct mistake_case beyond = {
        NULL, 2, 0, "steps[10].concurrency", "too many items", "1000 of them at work at most"};
    static const char *const last[] = {",\"for_each\":[],\"max_items\":1,\n\"concurrency\":1",
                                       ",\"max_items\":1,\n\"for_each\":[]"};
    CLEANUP(buf_fini) struct buf most = {0};
    (void)state;

    write_steps(&most, 10, 100, "");
    struct definition *d = defined(most.ptr);
    CHECK(d->workflow.slot_count == 2010 && d->workflow.steps[9].each.slots_at == 1820, "%u slots",
          (unsigned)d->workflow.slot_count);
    definition_free(d);
    for (size_t i = 0; i < COUNT_OF(last); i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        struct mistake_case c = beyond;
        write_steps(&text, 10, 100, last[i]);
        c.text = text.ptr;
        c.line = 3;
        c.column = i == 0 ? 15 : 12; /* of the list, if that is all it says */
        expect_mistakes(&c, 1);
    }
    CLEANUP(buf_fini) struct buf far = {0};
    write_steps(&far, 900, 100, ""); /* the sum is larger than it can be counted */
    static struct mistakes m;
    CHECK(definition_parse(buf_view(&far), DEFINITION_JSON, &d, &m, NULL) == ERR_INVALID
              && m.count == 1 && strcmp(m.list[0].path, "steps[10].concurrency") == 0,
          "%zu mistakes", m.count);
}

/* ---- warnings ---- */

static void check_warning(const char *text, const char *path, const char *found,
                          const char *expected)
{
    static struct mistakes m;
    static struct mistakes warnings;
    struct definition *d = NULL;
    const struct mistake *k = &warnings.list[0];

    CHECK(definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, &warnings) == ERR_OK,
          "%s: %s %s", text, m.list[0].found, m.list[0].expected);
    CHECK(warnings.count == (path ? 1 : 0), "%s: %zu warnings, %s: %s, %s", text, warnings.count,
          k->path, k->found, k->expected);
    CHECK(!path
              || (strcmp(k->path, path) == 0 && begins(k->found, found)
                  && begins(k->expected, expected)),
          "%s: %s: %s, %s", text, k->path, k->found, k->expected);
    definition_free(d);
}

#define UNDONE(input) \
    OF("", CALL("\"undo\":{\"action\":\"z\",\"input\":\"${ " input " }\"}", LIST MOST))
#define AFTER(input) OF("", CALL(UNDO, LIST MOST) "," STEP("b", ",\"input\":\"${ " input " }\""))

static void paths_that_can_never_be_there(void **state)
{
    (void)state;
    check_warning(EACH(",\"input\":\"${ [.item.sku, .index] }\""), NULL, NULL, NULL);
    check_warning(EACH(",\"input\":\"${ .index.x }\""), "steps[0].input", ".x, which is never",
                  "nothing behind a number");
    check_warning(EACH(",\"input\":\"${ .itme.x }\""), "steps[0].input", ".itme, which is always",
                  "did you mean .item?");
    check_warning(EACH(",\"input\":\"${ .output }\""), "steps[0].input", ".output, which is always",
                  "");
    check_warning(ONE(",\"input\":\"${ .item }\""), "steps[0].input", ".item, which is always", "");
    check_warning(AFTER(".index"), "steps[1].input", ".index, which is always", "");
    check_warning(UNDONE("[.item, .index, .output.id // 0]"), NULL, NULL, NULL);
    check_warning(UNDONE(".output.id?"), NULL, NULL, NULL);
    check_warning(UNDONE(".output.id"), "steps[0].undo.input", "output of the item", "// and what");
    check_warning(AFTER("[.steps.pack.output[0].id, .steps.pack.failed, .steps.pack.errors[0],"
                        " .steps.pack.state, .steps.pack.error.code]"),
                  NULL, NULL, NULL);
    check_warning(AFTER(".steps.pack.output.id"), "steps[1].input", ".id, which is never",
                  "nothing behind an array");
    check_warning(AFTER(".steps.pack.failed.x"), "steps[1].input", ".x, which is never",
                  "nothing behind a number");
    check_warning(AFTER(".steps.pack.errors.code"), "steps[1].input", ".code, which is never",
                  "nothing behind an array");
    check_warning(AFTER(".steps.pack.input"), "steps[1].input", ".input, which is always",
                  ".output, .state, .error, .failed or .errors of a step with for_each");
    check_warning(OF("", STEP("a", "") "," STEP("b", ",\"input\":\"${ .steps.a.failed }\"")),
                  "steps[1].input", ".failed, which is always",
                  ".input, .output, .state or .error");
    check_warning(EACH(",\"if\":\".input.x\",\"repeat\":{\"until\":\".output == .item and .round > "
                       ".index\",\"every\":\"5s\",\"for\":\"2h\"}"),
                  NULL, NULL, NULL);
    check_warning(EACH(",\"if\":\".round == 1\",\"repeat\":{\"until\":\".output\",\"every\":\"5s\","
                       "\"for\":\"2h\"}"),
                  "steps[0].if", ".round, which is always", "");
}

/* ---- the list ---- */

struct listed {
    struct arena arena;
    struct definition *definition;
    struct item_list list;
    const char *code;
    struct error error;
    enum err err;
    uint64_t spent;
};

static void listed_free(struct listed *l)
{
    arena_fini(&l->arena);
    definition_free(l->definition);
}

static struct listed list_of(const char *for_each, int most, const char *input)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct listed l = {.code = ""};
    struct world w = {.output = {input}};

    buf_fmt(&text,
            OF("", STEP("a", "") ",{\"name\":\"pack\",\"agent\":\"x\",\"action\":\"y\"," UNDO
                                 ",\"for_each\":%s,\"max_items\":%d}"),
            for_each, most);
    l.definition = defined(text.ptr);
    struct scope s = scope_of(l.definition, input, &w);
    s.spent = &l.spent;
    l.err = definition_items(&s, 1, &l.arena, &l.list, &l.code, &l.error);
    return l;
}

static void check_list(const char *for_each, const char *input, unsigned count, const char *first)
{
    CLEANUP(listed_free) struct listed l = list_of(for_each, 50, input);

    CHECK(l.err == ERR_OK, "%s: %s", for_each, l.error.text);
    CHECK(l.list.count == count && l.list.part_count == (count + 31) / 32, "%s of %s: %u items",
          for_each, input, (unsigned)l.list.count);
    CHECK(count == 0 || slice_is(l.list.parts[0].json, first), "%s: %.*s", for_each,
          SLICE_ARG(l.list.parts[0].json));
}

static void a_list_is_taken_apart(void **state)
{
    static const char lines[] = "\"${ .input.lines }\"";
    (void)state;

    check_list(lines, "{\"lines\":[]}", 0, NULL);
    check_list(lines, "{\"lines\":{}}", 0, NULL);
    check_list(lines, "{\"lines\":[1]}", 1, "[1]");
    check_list(lines, "{\"lines\":[ {\"a\" : [1,\"]\\\"\"]} ,null ,\"x,y\", [ ] ]}", 4,
               "[{\"a\" : [1,\"]\\\"\"]},null,\"x,y\",[ ]]");
    check_list(lines, "{\"lines\":{\"b\":1,\"a\\\"}\":[{}]}}", 2,
               "[{\"key\":\"b\",\"value\":1},{\"key\":\"a\\\"}\",\"value\":[{}]}]");
    check_list("[1,\"${ .input.n }\",{\"a\":\"x${ .input.n }\"}]", "{\"n\":2}", 3,
               "[1,2,{\"a\":\"x2\"}]");
    check_list("{\"a\":\"${ .input.n }\"}", "{\"n\":2}", 1, "[{\"key\":\"a\",\"value\":2}]");
    check_list("\"${ [range(3)] | map(. * 2) }\"", "{}", 3, "[0,2,4]");
    check_list("\"${ .steps.a.output }\"", "[ 7 , 8 ]", 2, "[7,8]");
}

static void a_list_is_in_parts(void **state)
{
    static const unsigned counts[] = {31, 32, 33, 64, 65};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        CLEANUP(buf_fini) struct buf x = {0};
        buf_fmt(&x, "\"${ [range(%u)] }\"", counts[i]);
        CLEANUP(listed_free) struct listed l = list_of(x.ptr, 65, "{}");
        CHECK(l.err == ERR_OK && l.list.count == counts[i]
                  && l.list.part_count == (counts[i] + 31) / 32,
              "%u items: %u in %u parts", counts[i], (unsigned)l.list.count, l.list.part_count);
        unsigned n = 0;
        for (uint16_t p = 0; p < l.list.part_count; p++) {
            CLEANUP(buf_fini) struct buf part = {0};
            json_open(&part, '[');
            for (unsigned k = 0; k < ITEMS_OF_PART && n < counts[i]; k++)
                json_number(&part, n++);
            json_close(&part, ']');
            CHECK(slice_eq(l.list.parts[p].json, buf_view(&part)) && l.list.parts[p].payload == 0,
                  "part %u: %.*s", p, SLICE_ARG(l.list.parts[p].json));
        }
    }
}

static void check_no_list(const char *for_each, int most, const char *input, const char *code,
                          const char *what)
{
    CLEANUP(listed_free) struct listed l = list_of(for_each, most, input);

    CHECK(l.err == ERR_INVALID && strcmp(l.code, code) == 0, "%s: %s, %s", for_each,
          err_text(l.err), l.code);
    CHECK(begins(l.error.text, "steps[1].for_each") && strstr(l.error.text, "of step \"pack\": ")
              && strstr(l.error.text, what),
          "%s", l.error.text);
}

static void what_is_no_list_says_so(void **state)
{
    static const char lines[] = "\"${ .input.lines }\"";
    (void)state;

    check_no_list(lines, 9, "{}", "list", "found null, expected a list or an object");
    check_no_list(lines, 9, "{\"lines\":\"a\"}", "list", "found \"a\", expected a list");
    check_no_list(lines, 9, "{\"lines\":17}", "list", "found 17, expected a list");
    check_no_list("\"${ .steps.a.output }\"", 9, "true", "list", "found true, expected a list");
    check_no_list("\"${ .input.lines + 1 }\"", 9, "{\"lines\":[]}", "expression",
                  "${ .input.lines + 1 }");
    check_no_list("[\"${ .input | error }\"]", 9, "{}", "expression", "for_each[0] of step");
    check_no_list(lines, 2, "{\"lines\":[1,2,3]}", "list",
                  "the list has 3 items, and max_items is 2");
    check_no_list(lines, 1, "{\"lines\":{\"a\":1,\"b\":2}}", "list",
                  "the list has 2 items, and max_items is 1");
}

static void as_many_items_as_are_allowed(void **state)
{
    CLEANUP(listed_free) struct listed most = list_of("\"${ [range(10000)] }\"", 10000, "{}");
    CLEANUP(listed_free) struct listed more = list_of("\"${ [range(10001)] }\"", 10000, "{}");
    (void)state;

    CHECK(most.err == ERR_OK && most.list.count == 10000 && most.list.part_count == 313, "%s",
          most.error.text);
    CHECK(more.err == ERR_INVALID
              && strstr(more.error.text, "the list has 10001 items, and max_items is 10000"),
          "%s", more.error.text);
}

/* A list of that many bytes, of which `item` is repeated, after `head`. */
static void write_long(struct buf *b, const char *head, const char *item, size_t len)
{
    buf_str(b, head);
    while (b->len + 2 * strlen(item) + 1 < len)
        buf_fmt(b, "%s%s", b->ptr[b->len - 1] == '[' ? "" : ",", item);
    while (b->len + strlen(head) < len)
        buf_byte(b, ' ');
    for (size_t i = 0; i < strlen(head); i++)
        buf_byte(b, ']');
}

/* Whatever is in it, a list of 4 MiB can be paid for, takes not much more memory than its text, and
 * a longer one is refused unread. */
static void lists_are_long(void **state)
{
    static const char *const items[] = {"1", "\"\"", "[]", "{\"\":\"\\\\\\\"\"}", "\"\\\"\"", " "};
    static const char output[] = "\"${ .steps.a.output }\"";
    (void)state;

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        CLEANUP(buf_fini) struct buf one = {0};
        write_long(&one, "[[", items[i], i + 1 < COUNT_OF(items) ? LIST_SIZE_MAX : 100);
        CLEANUP(listed_free) struct listed l = list_of(output, 1, one.ptr);
        CHECK(l.err == ERR_OK && l.list.count == 1
                  && slice_eq(l.list.parts[0].json, buf_view(&one)),
              "%s: %s", items[i], l.error.text);
        CHECK(l.arena.total < 3 * (size_t)LIST_SIZE_MAX && l.spent > one.len / 64, "%zu bytes",
              l.arena.total);
    }
    CLEANUP(buf_fini) struct buf many = {0};
    write_long(&many, "[", "1", LIST_SIZE_MAX);
    CLEANUP(listed_free) struct listed l = list_of(output, 10000, many.ptr);
    CHECK(l.err == ERR_INVALID && strstr(l.error.text, " items, and max_items is 10000")
              && l.arena.total < LIST_SIZE_MAX,
          "%s", l.error.text);
    CLEANUP(buf_fini) struct buf longer = {0};
    write_long(&longer, "[", "1", LIST_SIZE_MAX + 1);
    CLEANUP(listed_free) struct listed m = list_of(output, 10000, longer.ptr);
    CHECK(m.err == ERR_INVALID && strcmp(m.code, "list") == 0
              && strstr(m.error.text, "the list is 4194305 bytes long, and 4194304 are the most"),
          "%s", m.error.text);
}

/* ---- items ---- */

/* A step that is at work on a list of 70 items, {"n":0} and so on, in two of its slots. */
struct packing {
    struct world world;
    struct item_list list;
    struct items items;
    struct step step, slots[2];
    struct arena arena;
    const char *errors;
};

static const struct step *unit_of(void *arg, int step)
{
    struct packing *p = arg;

    return step == 0 ? &p->step : &p->slots[step - 2];
}

static struct slice own_output(void *arg, int step)
{
    struct packing *p = arg;

    return slice_of(p->world.output[step]);
}

static struct slice own_input(void *arg, int step)
{
    struct packing *p = arg;

    return slice_of(p->world.input[step]);
}

static struct slice first_errors(void *arg, int step)
{
    struct packing *p = arg;

    CHECK(step == 0, "of step %d", step);
    return slice_of(p->errors);
}

static uint32_t second(void *arg, int step)
{
    (void)arg;
    return step == 2 ? 2 : 7;
}

static void packing_init(struct packing *p)
{
    *p = (struct packing){.errors = "[{\"index\":3,\"code\":\"broken\",\"message\":\"m\"}]"};
    p->list.count = 70;
    p->list.part_count = 3;
    p->list.parts = arena_alloc(&p->arena, 3 * sizeof *p->list.parts);
    for (int n = 0, part = 0; part < 3; part++) {
        CLEANUP(buf_fini) struct buf b = {0};
        json_open(&b, '[');
        for (int k = 0; k < ITEMS_OF_PART && n < 70; k++, n++) {
            json_open(&b, '{');
            json_member_number(&b, "n", n);
            json_close(&b, '}');
        }
        json_close(&b, ']');
        p->list.parts[part].json = arena_copy(&p->arena, buf_view(&b));
    }
    p->items = (struct items){.list = p->list, .begun = 33, .failed = 4, .tally = {.failed = 1}};
    p->step.items = &p->items;
    p->slots[0] = (struct step){.slot = SLOT_TAKEN, .item = 31};
}

static void packing_free(struct packing *p)
{
    arena_fini(&p->arena);
}

static struct definition *packs(const char *more)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            OF("", "{\"name\":\"pack\",\"agent\":\"x\",\"action\":\"y\"" LIST MOST
                   ",\"concurrency\":1,%s},{\"name\":\"b\",\"agent\":\"x\",\"action\":\"y\"," UNDO
                   ",\"input\":\"${ [.steps.pack.failed, .steps.pack.errors[0].code, "
                   ".steps.pack.output] }\"}"),
            more);
    return defined(text.ptr);
}

static struct scope scope_of_packing(const struct definition *d, struct packing *p)
{
    struct scope s = scope_of(d, "{\"a\":5}", &p->world);

    s.arg = p;
    s.task = NULL;
    s.unit = unit_of;
    s.step_output = own_output;
    s.step_input = own_input;
    s.step_round = second;
    s.item_errors = first_errors;
    return s;
}

typedef enum err evaluation(const struct scope *s, int step, struct arena *a, struct slice *ret,
                            struct error *e);

static void check_item(const char *more, evaluation *evaluate, int unit, const char *expected)
{
    CLEANUP(packing_free) struct packing p;
    CLEANUP(arena_fini) struct arena a = {0};
    struct error e = {0};
    struct slice json = SLICE_NONE;

    packing_init(&p);
    p.world.output[2] = "{\"id\":\"o-31\"}";
    p.world.input[2] = "{\"n\":31}";
    p.world.output[0] = "[1,null]";
    struct definition *d = packs(more);
    struct scope s = scope_of_packing(d, &p);
    enum err err = evaluate(&s, unit, &a, &json, &e);
    CHECK(err == ERR_OK ? slice_is(json, expected) : strcmp(e.text, expected) == 0, "%s: %s%.*s",
          more, e.text, SLICE_ARG(json));
    definition_free(d);
}

static void an_item_is_in_the_input(void **state)
{
    static const char both[] = UNDO ",\"input\":{\"i\":\"${ .index }\",\"of\":\"${ .item }\"}";
    (void)state;

    check_item(both, definition_step_input, 2, "{\"i\":31,\"of\":{\"n\":31}}");
    check_item(both, definition_step_input, 3, "{\"i\":33,\"of\":{\"n\":33}}"); /* the next */
    check_item(UNDO ",\"input\":\"${ .item.n + .input.a }\"", definition_step_input, 2, "36");
    check_item(UNDO ",\"input\":\"${ keys }\"", definition_step_input, 2,
               "[\"index\",\"input\",\"item\",\"steps\",\"task\"]");
    check_item(UNDO, definition_step_input, 2,
               "{\"a\":5}"); /* that of the task, if none is given */
    check_item(
        UNDO ",\"input\":\"${ .item + 1 }\"", definition_step_input, 2,
        "steps[0].input of step \"pack.31\": ${ .item + 1 }: column 8: object ({\"n\":31}) and "
        "number (1) cannot be added");
    check_item(
        UNDO ",\"input\":\"${ .item + 1 }\"", definition_step_input, 3,
        "steps[0].input of step \"pack.33\": ${ .item + 1 }: column 8: object ({\"n\":33}) and "
        "number (1) cannot be added");
}

static void an_item_is_in_the_undo(void **state)
{
    (void)state;
    check_item("\"undo\":{\"action\":\"z\",\"input\":\"${ [.index, .item.n, .output.id] }\"}",
               definition_undo_input, 2, "[31,31,\"o-31\"]");
    check_item("\"undo\":{\"action\":\"z\",\"input\":\"${ .output }\"}", definition_undo_input, 2,
               "{\"id\":\"o-31\"}");
    check_item("\"undo\":{\"action\":\"z\"}", definition_undo_input, 2,
               "{\"input\":{\"n\":31},\"output\":{\"id\":\"o-31\"}}");
    check_item(
        "\"undo\":{\"http\":{\"method\":\"DELETE\",\"path\":\"/a/${ .output.id // .index }\"}}",
        definition_undo_input, 2, "{\"method\":\"DELETE\",\"path\":[\"/a/\",\"o-31\"]}");
}

static void an_item_is_in_a_request(void **state)
{
    (void)state;
    check_item("\"pivot\":true,\"http\":{\"path\":\"/a/${ .item.n }\",\"body\":\"${ .index }\"}",
               definition_step_input, 2, "{\"path\":[\"/a/\",31],\"body\":31}");
}

static void an_item_is_in_until(void **state)
{
    CLEANUP(packing_free) struct packing p;
    CLEANUP(arena_fini) struct arena a = {0};
    struct definition *d = packs(
        UNDO ",\"repeat\":{\"until\":\".output.n == .item.n and .index == 31 and .round == 2\","
             "\"every\":\"5s\",\"for\":\"2h\"}");
    struct scope s = scope_of_packing(d, &p);
    struct error e = {0};
    bool holds = false;
    (void)state;

    packing_init(&p);
    p.world.output[2] = "{\"n\":31}";
    CHECK(definition_until(&s, 2, &a, &holds, &e) == ERR_OK && holds, "%s", e.text);
    p.world.output[2] = "{\"n\":32}";
    CHECK(definition_until(&s, 2, &a, &holds, &e) == ERR_OK && !holds, "%s", e.text);
    definition_free(d);
}

static void a_damaged_part_is_told(void **state)
{
    static const char *const parts[] = {"[{\"n\":0}", "7", "", "[1,2]", "[1 2]", "[\"a"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CLEANUP(packing_free) struct packing p;
        CLEANUP(arena_fini) struct arena a = {0};
        struct definition *d = packs(UNDO ",\"input\":\"${ .item }\"");
        struct scope s = scope_of_packing(d, &p);
        struct error e = {0};
        struct slice json = SLICE_NONE;
        packing_init(&p);
        p.list.parts[0].json = slice_of(parts[i]);
        CHECK(definition_step_input(&s, 2, &a, &json, &e) == ERR_CORRUPT
                  && strstr(e.text, "the item is not JSON"),
              "%s: %s", parts[i], e.text);
        definition_free(d);
    }
}

/* ---- what others see ---- */

static void others_see_the_sums(void **state)
{
    (void)state;
    check_item(UNDO, definition_step_input, 1, "[5,\"broken\",[1,null]]");
}

static void check_needs(const char *steps, int step, enum direction direction, bool output,
                        bool errors)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" CALL("\"undo\":\"none\"", LIST MOST
                                                                ",\"concurrency\":1") ",%s}",
            steps);
    struct definition *d = defined(text.ptr);
    struct items_needed n = definition_needs_items(d, step, direction, 0);
    CHECK(n.output == output && n.errors == errors, "%s: %d %d", steps, n.output, n.errors);
    definition_free(d);
}

#define B(more) "{\"name\":\"b\",\"agent\":\"x\",\"action\":\"y\"," more "}]"

static void what_has_to_be_fetched_is_known(void **state)
{
    const enum direction on = DIRECTION_FORWARD;
    const enum direction back = DIRECTION_UNDO;
    (void)state;

    check_needs(B(UNDO), 1, on, false, false);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack.output }\""), 1, on, true, false);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack.output }\""), 1, back, false, false);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack.output }\""), 0, on, false, false);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack.errors }\""), 1, on, false, true);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack.failed }\""), 1, on, false, false);
    check_needs(B(UNDO ",\"input\":\"${ .steps.pack }\""), 1, on, true, true);
    check_needs(B(UNDO ",\"input\":\"${ .steps }\""), 1, on, true, true);
    check_needs(B(UNDO ",\"if\":\".steps.pack.output[0]\""), 1, on, true, false);
    check_needs(B("\"undo\":{\"action\":\"z\",\"input\":\"${ .steps.pack.output // 0 }\"}"), 1,
                back, true, false);
    check_needs(B("\"undo\":{\"action\":\"z\",\"input\":\"${ .steps.pack.output // 0 }\"}"), 1, on,
                false, false);
    check_needs(B(UNDO) ",\"output\":\"${ .steps.pack.output }\"", -1, on, true, false);
    check_needs(B(UNDO) ",\"output\":\"${ .steps.b.output }\"", -1, on, false, false);
    check_needs(B(UNDO), -1, on, false, false);
    check_needs("{\"name\":\"b\",\"wait\":{\"until\":\"${ .steps.pack.output[0] }\"}}]", 1, on,
                true, false);
    check_needs("{\"name\":\"b\",\"signal\":{\"name\":\"s\",\"match\":\".data == "
                ".steps.pack.output\"}}]",
                1, on, true, false);
    check_needs("{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"${ .steps.pack.output "
                "}\"}}]",
                1, on, true, false);
    check_needs(B(UNDO
                  ",\"for_each\":\"${ .steps.pack.output }\",\"max_items\":1,\"concurrency\":1"),
                1, on, true, false);
    const char *of_items =
        B(UNDO ",\"for_each\":[],\"max_items\":1,\"concurrency\":1,\"input\":\"${ "
               ".steps.pack.output[.index] }\"");
    check_needs(of_items, 1, on, false, false); /* its items need it, and not the step */
    check_needs(of_items, 5, on, true, false);
    check_needs(B(UNDO ",\"repeat\":{\"until\":\".output == .steps.pack.output\",\"every\":\"5s\","
                       "\"for\":\"1h\"}"),
                1, on, true, false);
}

static void check_needs_item(const char *more, enum direction direction, bool needed)
{
    struct definition *d = packs(more);

    CHECK(definition_needs_item(d, 2, direction) == needed, "%s", more);
    definition_free(d);
}

static void whether_the_item_is_needed_is_known(void **state)
{
    static const char until[] = UNDO ",\"repeat\":{\"until\":\".output == .item\",\"every\":\"5s\","
                                     "\"for\":\"1h\"}";
    static const char undo[] = "\"undo\":{\"action\":\"z\",\"input\":\"${ .item }\"}";
    (void)state;

    check_needs_item(UNDO, DIRECTION_FORWARD, false);
    check_needs_item(UNDO ",\"input\":\"${ .index }\"", DIRECTION_FORWARD, false);
    check_needs_item(UNDO ",\"input\":\"${ .item }\"", DIRECTION_FORWARD, true);
    check_needs_item(UNDO ",\"input\":\"${ . }\"", DIRECTION_FORWARD, true);
    check_needs_item(until, DIRECTION_FORWARD, true);
    check_needs_item(undo, DIRECTION_FORWARD, false);
    check_needs_item(undo, DIRECTION_UNDO, true);
    check_needs_item("\"undo\":{\"action\":\"z\"}", DIRECTION_UNDO, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_is_read),
        cmocka_unit_test(slots_are_copies),
        cmocka_unit_test(it_has_defaults),
        cmocka_unit_test(shares_are_parts_of_10000),
        cmocka_unit_test(bounds_are_accepted),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(all_steps_together_have_so_many_slots),
        cmocka_unit_test(paths_that_can_never_be_there),
        cmocka_unit_test(a_list_is_taken_apart),
        cmocka_unit_test(a_list_is_in_parts),
        cmocka_unit_test(what_is_no_list_says_so),
        cmocka_unit_test(as_many_items_as_are_allowed),
        cmocka_unit_test(lists_are_long),
        cmocka_unit_test(an_item_is_in_the_input),
        cmocka_unit_test(an_item_is_in_the_undo),
        cmocka_unit_test(an_item_is_in_a_request),
        cmocka_unit_test(an_item_is_in_until),
        cmocka_unit_test(a_damaged_part_is_told),
        cmocka_unit_test(others_see_the_sums),
        cmocka_unit_test(what_has_to_be_fetched_is_known),
        cmocka_unit_test(whether_the_item_is_needed_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
