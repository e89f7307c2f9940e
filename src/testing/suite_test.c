/* Tests of test files as texts: what is refused, at which line and column, alone (suite_parse) and
 * beside a definition (suite_bind). tests/e2e/workflow_tests_test.py runs the command. */

#include <stdlib.h>

#include "base/test.h"
#include "definition/definition.h"
#include "testing/suite.h"

#define ORDER                                                                             \
    "intact: 1\nworkflow: order\non_signal: {cancelled: undo}\nsteps:\n"                  \
    "  - {name: reserve, agent: stock, action: take, undo: {action: put-back}}\n"         \
    "  - {name: look, agent: shop, http: {path: /look}, undo: {http: {path: /forget}}}\n" \
    "  - {name: allow, approve: {by: boss, question: Well?}}\n"                           \
    "  - {name: parts, for_each: [1], max_items: 2, task: {workflow: part}}\n"            \
    "  - {name: tell, agent: mail, action: send, undo: none}\n"
#define PART \
    "intact: 1\nworkflow: part\nsteps:\n  - {name: cut, agent: saw, action: cut, undo: none}\n"

#define HEAD  "workflow: order.yaml\nworld: {stock: 5, list: []}\n"
#define TESTS "tests:\n- name: t\n"
#define OK    "  expect: {state: processed}\n"

static struct mistakes mistakes;

static struct suite *parse(const char *text)
{
    struct suite *s = NULL;

    if (suite_parse(slice_of(text), SOURCE_GUESS, "t.test.yaml", &s, &mistakes) != ERR_OK)
        return NULL;
    return s;
}

static struct definition *definition(const char *text)
{
    struct definition *d = NULL;

    enum err err = definition_parse(slice_of(text), DEFINITION_GUESS, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s: %s", mistakes.list[0].found, mistakes.list[0].expected);
    return d;
}

static struct suite *bound(const char *text, enum err *ret)
{
    struct suite *s = parse(text);

    CHECK(s, "%s: line %" PRIu32 ": %s, expected %s", text, mistakes.list[0].line,
          mistakes.list[0].found, mistakes.list[0].expected);
    struct definition *list[] = {definition(ORDER), definition(PART)};
    *ret = suite_bind(s, list, COUNT_OF(list), &mistakes);
    return s;
}

/* There is one mistake, at that place, whose text has these words. */
static void expect_mistake(const char *text, uint32_t line, uint32_t column, const char *words)
{
    const struct mistake *m = &mistakes.list[0];

    CHECK(mistakes.count == 1, "%s: %zu mistakes, %s and %s", text, mistakes.count,
          mistakes.list[0].expected, mistakes.list[1].expected);
    CHECK(m->line == line && m->column == column, "%s: at %" PRIu32 ":%" PRIu32 ", %s: %s", text,
          m->line, m->column, m->found, m->expected);
    CHECK(strstr(m->expected, words), "%s: %s", text, m->expected);
}

static void refuses(const char *text, uint32_t line, uint32_t column, const char *words)
{
    const struct suite *s = parse(text);

    CHECK(!s, "%s: accepted", text);
    expect_mistake(text, line, column, words);
}

static void does_not_fit(const char *text, uint32_t line, uint32_t column, const char *words)
{
    enum err err = ERR_OK;
    struct suite *s = bound(text, &err);

    CHECK(err == ERR_INVALID, "%s: accepted", text);
    expect_mistake(text, line, column, words);
    suite_free(s);
}

static void fits(const char *text)
{
    enum err err = ERR_OK;
    struct suite *s = bound(text, &err);

    CHECK(err == ERR_OK, "%s: %s: %s", text, mistakes.list[0].found, mistakes.list[0].expected);
    suite_free(s);
}

static void the_frame_is_checked(void **state)
{
    (void)state;
    refuses(TESTS OK, 1, 1, "a key \"workflow\"");
    refuses("workflow: order.yaml\n", 1, 1, "a key \"tests\"");
    refuses(HEAD "tests: []\n", 3, 8, "1 to 1000 tests");
    refuses(HEAD "tset: 1\n" TESTS OK, 3, 1, "one of workflow, also");
    refuses(HEAD "also: x\n" TESTS OK, 3, 7, "an array of files");
    refuses("workflow: order.yaml\nworld: 5\n" TESTS OK, 2, 8, "an object");
    refuses(HEAD "tests:\n- expect: {state: error}\n", 4, 3, "a key \"name\"");
    refuses(HEAD TESTS, 4, 3, "a key \"expect\"");
    refuses(HEAD TESTS OK "- name: t\n" OK, 6, 9, "no other test");
    refuses(HEAD TESTS "  at: today\n" OK, 5, 7, "a time with Z");
}

static void answers_are_checked(void **state)
{
    (void)state;
#define ANSWER(text) HEAD "agents:\n  stock.take: " text "\n" TESTS OK
    refuses(ANSWER("5"), 4, 15, "an object");
    refuses(ANSWER("[]"), 4, 15, "1 to 1000 answers");
    refuses(ANSWER("{outptu: 1}"), 4, 16, "did you mean \"output\"?");
    refuses(ANSWER("{output: \"${ .a. }\"}"), 4, 32, "");
    refuses(ANSWER("{silent: never}"), 4, 24, "\"after effect\"");
    refuses(ANSWER("{output: 1, refuse: x}"), 4, 35, "one of output, refuse");
    refuses(ANSWER("{refuse: {message: x}}"), 4, 24, "a key \"code\"");
    refuses(ANSWER("{fail: {code: x, effect: maybe}}"), 4, 40, "none or unknown");
    refuses(ANSWER("{fail: {code: x, took_effect: true}}"), 4, 45, "effect: unknown");
    refuses(ANSWER("{takes: 5}"), 4, 23, "a duration");
    refuses(ANSWER("{times: 0}"), 4, 23, "1");
    refuses(ANSWER("{if: true}"), 4, 20, "an expression");
    refuses(ANSWER("{effect: {}}"), 4, 24, "members of the world");
    refuses(ANSWER("{effect: {stock: .world.stock -}}"), 4, 46, "an expression");
#undef ANSWER
}

static void what_happens_from_outside_is_checked(void **state)
{
    (void)state;
    refuses(HEAD TESTS "  operator: {retry: look}\n" OK, 5, 13, "an array");
    refuses(HEAD TESTS "  operator: [{retry: look}]\n" OK, 5, 14, "a key \"after\"");
    refuses(HEAD TESTS "  operator: [{after: 1h}]\n" OK, 5, 14, "a verb and a step");
    refuses(HEAD TESTS "  operator: [{after: 1h, skip: true}]\n" OK, 5, 32, "name of a step");
    refuses(HEAD TESTS "  operator: [{after: 1h, supply: look}]\n" OK, 5, 14, "\"output\"");
    refuses(HEAD TESTS "  operator: [{after: 1h, undo: true, skip: look}]\n" OK, 5, 38, "one of");
    refuses(HEAD TESTS "  signals: [{after: 1h}]\n" OK, 5, 13, "its name");
    refuses(HEAD TESTS "  signals: [{after: 1h, a: 1, b: 2}]\n" OK, 5, 31, "one signal");
    refuses(HEAD TESTS "  approvals: [{after: 1h, step: allow}]\n" OK, 5, 15, "either approve");
    refuses(HEAD TESTS "  approvals: [{after: 1h, step: allow, reject: bob}]\n" OK, 5, 15,
            "a comment");
}

static void expectations_are_checked(void **state)
{
    (void)state;
    refuses(HEAD TESTS "  expect: {}\n", 5, 11, "something");
    refuses(HEAD TESTS "  expect: {state: running}\n", 5, 19, "processed, compensated or error");
    refuses(HEAD TESTS "  expect: {world: 5}\n", 5, 19, ".before");
    refuses(HEAD TESTS "  expect: {order: look}\n", 5, 19, "an array");
    refuses(HEAD TESTS "  expect: {order: [5]}\n", 5, 20, "undo STEP");
    refuses(HEAD TESTS "  expect: {within: 0s}\n", 5, 20, "longer than 0");
    refuses(HEAD TESTS "  expect: {error: 5}\n", 5, 19, "the code of an error");
    refuses(HEAD TESTS "  expect: {steps: {look: done}}\n", 5, 26, "completed");
}

static void names_are_those_of_the_definition(void **state)
{
    (void)state;
#define AGENTS(text) HEAD "agents: {" text "}\n" TESTS OK
    fits(AGENTS("stock.take: {}, stock.put-back: {}, shop.look: {}, shop.look.undo: {}, mail: {}, "
                "saw.cut: {}"));
    does_not_fit(AGENTS("stock.tak: {}"), 3, 10, "did you mean \"stock.take\"?");
    does_not_fit(AGENTS("bank.pay: {}"), 3, 10, "AGENT.ACTION");
    does_not_fit(AGENTS("shop.http: {}"), 3, 10, "AGENT.STEP");
    does_not_fit(HEAD TESTS "  operator: [{after: 1h, retry: lok}]\n" OK, 5, 14, "\"look\"?");
    does_not_fit(HEAD TESTS "  signals: [{after: 1h, paid: 1}]\n" OK, 5, 13, "waits for");
    does_not_fit(HEAD TESTS "  approvals: [{after: 1h, step: look, approve: x}]\n" OK, 5, 15,
                 "a step with approve");
    fits(HEAD TESTS "  expect: {order: [reserve, \"undo look\", [parts.0/cut, parts.1/cut]]}\n");
    does_not_fit(HEAD TESTS "  expect: {order: [undo relook]}\n", 5, 20, "name of a step");
    does_not_fit(HEAD TESTS "  expect: {order: [look.1]}\n", 5, 20, "name of a step");
    does_not_fit(HEAD TESTS "  expect: {order: [parts.0/cat]}\n", 5, 20, "name of a step");
    does_not_fit(HEAD TESTS "  expect: {steps: {lost: failed}}\n", 5, 20, "name of a step");
    does_not_fit(HEAD TESTS "  expect: {world: {stok: 5}}\n", 5, 20, "a member of `world`");
}

static void effects_say_how_they_are_undone(void **state)
{
    (void)state;
    fits(AGENTS("stock.take: {effect: {stock: .world.stock - 1}}"));
    does_not_fit(AGENTS("stock.take: {effect: {stok: 1}}"), 3, 32, "a member of `world`");
    does_not_fit(AGENTS("stock.take: {effect: {list: .world.list}}"), 3, 32, "`undone`");
    does_not_fit(AGENTS("stock.take: {effect: {stock: true}}"), 3, 32, "`undone`");
    fits(AGENTS("stock.take: {effect: {list: .world.list}, undone: {list: .world.list}}"));
    fits(AGENTS("mail.send: {effect: {list: .world.list}}")); /* it is never undone */
    does_not_fit(AGENTS("stock: {effect: {list: .world.list}}"), 3, 27, "`undone`");
    does_not_fit(AGENTS("stock.take: {undone: {lost: 1}, effect: {stock: 1}}"), 3, 32,
                 "a member of `world`");
    does_not_fit(AGENTS("stock.take: {undone: {stock: 1}}"), 3, 32, "`effect` beside it");
    fits(AGENTS("stock.take: [{undone: {stock: 1}}, {effect: {stock: 2}}]"));
#undef AGENTS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_frame_is_checked),
        cmocka_unit_test(answers_are_checked),
        cmocka_unit_test(what_happens_from_outside_is_checked),
        cmocka_unit_test(expectations_are_checked),
        cmocka_unit_test(names_are_those_of_the_definition),
        cmocka_unit_test(effects_say_how_they_are_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
