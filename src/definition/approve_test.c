/* Tests of definitions with steps in which people decide (reader/approve_step.c): what is read,
 * which mistakes are reported, how many votes a task has room for, and the evaluation of the
 * question. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps) "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define APPROVE(more) \
    "{\"name\":\"b\",\"approve\":{\"by\":\"finance\",\"question\":\"Pay?\"" more "}}"
#define LIMITED(more, by)                                                        \
    "{\"name\":\"b\",\"approve\":{\"by\":\"finance\",\"question\":\"Pay?\"" more \
    "},\n\"complete_by\":\"" by "\"}"

static void all_of_it_is_read(void **state)
{
    struct definition *d = defined(OF(
        "",
        STEP("a", "") "," APPROVE(
            "") ","
                "{\"name\":\"c\",\"approve\":{\"by\":[\"finance\",\"Board\"],\"question\":"
                "\"Pay ${ .input.amount }?\",\"people\":2,\"not\":\"submitter\",\"remind\":\"1d\","
                "\"escalate\":{\"after\":\"2d\",\"to\":[\"cfo\"]}},\"complete_by\":\"3d\","
                "\"default\":{\"approved\":false},\"if\":\".input.at\",\"after\":[\"a\"],"
                "\"on_failure\":\"continue\"}"));
    const struct workflow_step *s = d->workflow.steps;
    const struct approve_spec *c = &s[2].approve;
    (void)state;

    CHECK(s[1].kind == KIND_APPROVE && s[2].kind == KIND_APPROVE, "kinds");
    CHECK(s[1].approve.by_count == 1 && slice_is(s[1].approve.by[0], "finance"), "a group");
    CHECK(s[1].approve.people == 1 && s[1].approve.complete_by_ms == 0, "defaults");
    CHECK(!s[1].approve.not_submitter && s[1].approve.to_count == 0, "defaults");
    CHECK(c->by_count == 2 && slice_is(c->by[1], "Board"), "groups");
    CHECK(c->people == 2 && c->not_submitter && c->remind_ms == MS_PER_D, "who, and when");
    CHECK(c->escalate_ms == 2 * MS_PER_D && c->to_count == 1 && slice_is(c->to[0], "cfo"), "to");
    CHECK(c->complete_by_ms == 3 * MS_PER_D && slice_is(c->otherwise, "{\"approved\":false}"),
          "limits");
    CHECK(s[2].on_failure == ON_FAILURE_CONTINUE && s[2].before_count == 1, "as for other steps");
    CHECK(s[1].undo_kind == UNDO_NONE, "nothing to undo");
    CHECK(d->has_decisions && d->has_signals && d->needs_submitter, "what the scheduler knows");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_APPROVE, "its words are new");
    definition_free(d);
}

static void each_word_needs_the_grammar(void **state)
{
    struct definition *d = defined(OF(",\"on_signal\":{\"stop\":\"undo\"}",
                                      "{\"name\":\"a\",\"signal\":{\"name\":\"s\"}}," APPROVE(
                                          "") ",{\"name\":\"c\",\"wait\":\"1s\"}"));
    (void)state;

    CHECK(grammar_of(&d->workflow) == GRAMMAR_APPROVE, "beside others");
    CHECK(!d->needs_submitter, "anybody may submit it");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {OF("", "{\"name\":\"b\",\"approve\":7}"), 2, 23, "steps[0].approve", "7", "an object with by and question"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\"}}"), 2, 23, "steps[0].approve.question", "nothing", "a key \"question\""},
    {OF("", "{\"name\":\"b\",\"approve\":{\"question\":\"Pay?\"}}"), 2, 23, "steps[0].approve.by", "nothing", "a key \"by\""},
    {OF("", "{\"name\":\"b\",\"approve\":{\"question\":\"Pay?\",\"by\":[]}}"), 2, 47, "steps[0].approve.by", "an array", "1 to 20 groups"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"question\":\"Pay?\",\"by\":[\"a\",\"a\"]}}"), 2, 52, "steps[0].approve.by[1]", "\"a\"", "each group once"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"question\":\"Pay?\",\"by\":\"the board\"}}"), 2, 47, "steps[0].approve.by", "\"the board\"", "a group: 1 to 64"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":7}}"), 2, 44, "steps[0].approve.question", "7", "a text"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"\"}}"), 2, 44, "steps[0].approve.question", "\"\"", "a text"},
    {OF("", APPROVE(",\"people\":0")), 2, 66, "steps[0].approve.people", "0", "a whole number from 1 to 20"},
    {OF("", APPROVE(",\"people\":21")), 2, 66, "steps[0].approve.people", "21", "a whole number from 1 to 20"},
    {OF("", APPROVE(",\"people\":1.5")), 2, 66, "steps[0].approve.people", "1.5", "a whole number"},
    {OF("", APPROVE(",\"not\":\"owner\"")), 2, 63, "steps[0].approve.not", "\"owner\"", "submitter"},
    {OF("", APPROVE(",\"remind\":\"0s\"")), 2, 66, "steps[0].approve.remind", "\"0s\"", "a duration"},
    {OF("", APPROVE(",\"remind\":\"59s\"")), 2, 66, "steps[0].approve.remind", "\"59s\"", "a duration of at least 1m"},
    {OF("", APPROVE(",\"escalate\":\"2d\"")), 2, 68, "steps[0].approve.escalate", "\"2d\"", "an object with after and to"},
    {OF("", APPROVE(",\"escalate\":{\"after\":\"2d\"}")), 2, 68, "steps[0].approve.escalate.to", "nothing", "a key \"to\""},
    {OF("", APPROVE(",\"escalate\":{\"to\":\"cfo\"}")), 2, 68, "steps[0].approve.escalate.after", "nothing", "a key \"after\""},
    {OF("", APPROVE(",\"poeple\":2")), 2, 57, "steps[0].approve.poeple", "key \"poeple\"", "did you mean \"people\"?"},
    {OF("", LIMITED(",\"remind\":\"2h\"", "1h")), 2, 66, "steps[0].approve.remind", "\"2h\"", "a duration shorter than complete_by"},
    {OF("", LIMITED(",\"escalate\":{\"after\":\"1h\",\"to\":\"c\"}", "1h")), 2, 77, "steps[0].approve.escalate.after", "\"1h\"", "a duration shorter"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"},\"default\":1}"), 2, 1, "steps[0].complete_by", "nothing", "a key \"complete_by\""},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"},\"agent\":\"x\"}"), 2, 60, "steps[0].agent", "\"x\"", "no such key: a step with approve has"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"},\"undo\":\"none\"}"), 2, 59, "steps[0].undo", "\"none\"", "no such key: a step with approve has"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"},\"signal\":{\"name\":\"s\"}}"), 2, 61, "steps[0].signal", "an object", "no such key: a step with approve has"},
    {OF("", "{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"${ .steps.z.output }\"}}," STEP("z", "")), 2, 54, "steps[0].approve.question", "step \"z\"", "a step that ends before"},
    {OF("", "{\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"}}"), 2, 1, "steps[0].name", "nothing", "a key \"name\""},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[\n" APPROVE("") "]}", 2, 23, "on_undo[0].approve", "an object", "an agent: on_undo has no other kinds"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

/* With one person more, the last step could never be decided. */
static void a_task_has_room_for_all_votes(void **state)
{
    static struct mistakes m;
    (void)state;

    for (int last = 20; last <= 21; last++) {
        CLEANUP(buf_fini) struct buf text = {0};
        struct definition *d = NULL;
        buf_str(&text, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[");
        for (int i = 0; i < 50; i++)
            buf_fmt(&text,
                    "{\"name\":\"s%d\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\","
                    "\"people\":%d}},",
                    i, i == 0 ? last - 1 : 20);
        buf_str(&text, "{\"name\":\"last\",\"approve\":{\"by\":\"g\",\"question\":\"Pay?\"}}]}");
        enum err err = definition_parse(buf_view(&text), DEFINITION_JSON, &d, &m, NULL);
        CHECK(err == (last == 20 ? ERR_OK : ERR_INVALID), "%d: %s", last, err_text(err));
        CHECK(err == ERR_OK
                  || (m.count == 1 && strcmp(m.list[0].path, "steps[50].approve.people") == 0
                      && strcmp(m.list[0].found, "too many people") == 0
                      && begins(m.list[0].expected, "1000 of them at most")),
              "%s: found %s", m.list[0].path, m.list[0].found);
        definition_free(d);
    }
}

static enum err ask(const char *question, const char *input, struct arena *a, struct slice *ret,
                    struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct world w = {.output = {"{\"id\":7}"}};

    buf_fmt(&text,
            OF("",
               STEP("a", "") ",{\"name\":\"b\",\"approve\":{\"by\":\"g\",\"question\":\"%s\"}}"),
            question);
    struct definition *d = defined(text.ptr);
    struct scope s = scope_of(d, input, &w);
    enum err err = definition_question(&s, 1, a, ret, e);
    *ret = arena_copy(a, *ret);
    definition_free(d);
    return err;
}

static void a_question_is_evaluated(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf longer = {0};
    struct slice q = SLICE_NONE;
    struct error e = {0};
    (void)state;

    CHECK(ask("Pay ${ .input.amount } to ${ .steps.a.output.id }?", "{\"amount\":80}", &a, &q, &e)
              == ERR_OK,
          "%s", e.text);
    CHECK(slice_is(q, "\"Pay 80 to 7?\""), "%.*s", SLICE_ARG(q));
    CHECK(ask("Pay?", "{}", &a, &q, &e) == ERR_OK && slice_is(q, "\"Pay?\""),
          "without expressions");
    CHECK(ask("${ .input }", "{\"amount\":80}", &a, &q, &e) == ERR_INVALID, "an object");
    CHECK(strstr(e.text, "steps[1].approve.question of step \"b\"") && strstr(e.text, "a text"),
          "%s", e.text);
    buf_byte(&longer, '"');
    for (int i = 0; i < QUESTION_MAX; i++)
        buf_byte(&longer, 'x');
    buf_byte(&longer, '"');
    buf_byte(&longer, 0);
    CHECK(ask("${ .input }", longer.ptr, &a, &q, &e) == ERR_INVALID, "too long");
    CHECK(ask("${ .input | error }", "\"oh\"", &a, &q, &e) == ERR_INVALID, "it fails");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_read),
        cmocka_unit_test(each_word_needs_the_grammar),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(a_task_has_room_for_all_votes),
        cmocka_unit_test(a_question_is_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
