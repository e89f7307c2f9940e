/* Tests of definitions with a lock (reader/lock.c): what is read, which mistakes are reported,
 * and the evaluation of the lock's key. scheduler/lock_test.c tests what locks do to tasks. */

#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define LOCK(lock) TOP(",\n\"lock\":" lock)

static void a_lock_is_read(void **state)
{
    struct definition *d = defined(LOCK(
        "{\"key\":\"${ .input.customer }\",\"max\":3,\"if_taken\":\"refuse\",\"shared\":\"c\"}"));
    (void)state;

    CHECK(slice_is(d->workflow.lock.name, "c") && d->workflow.lock.max == 3, "shared");
    CHECK(d->workflow.lock.if_taken == IF_TAKEN_REFUSE && d->lock_key, "refuse");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_LOCK, "its words are new");
    definition_free(d);
    d = defined(LOCK("{\"key\":\"all\"}"));
    CHECK(slice_is(d->workflow.lock.name, "w") && d->workflow.lock.max == 1
              && d->workflow.lock.if_taken == IF_TAKEN_WAIT,
          "one at a time, who comes later waits");
    definition_free(d);
    d = defined(LOCK("{\"key\":\"all\",\"if_taken\":\"replace\"}"));
    CHECK(d->workflow.lock.if_taken == IF_TAKEN_REPLACE, "replace");
    definition_free(d);
    d = defined(TOP(""));
    CHECK(!d->workflow.lock.name.ptr && !d->lock_key, "none");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {LOCK("7"), 2, 8, "lock", "7", "an object"},
    {LOCK("{}"), 2, 8, "lock.key", "nothing", "a key \"key\""},
    {LOCK("{\"key\":7}"), 2, 15, "lock.key", "7", "a text with an ${ expression }"},
    {LOCK("{\"key\":\"${ .input.a | nope }\"}"), 2, 30, "lock.key", "unknown function", "an expression"},
    {LOCK("{\"key\":\"${ .steps.a.output }\"}"), 2, 15, "lock.key", "\"${ .steps.a.output }\"", "an expression of .input alone"},
    {LOCK("{\"key\":\"${ .task.id }\"}"), 2, 15, "lock.key", "\"${ .task.id }\"", "an expression of .input alone"},
    {LOCK("{\"key\":\"k\",\"max\":0}"), 2, 25, "lock.max", "0", "a whole number from 1 to 10000"},
    {LOCK("{\"key\":\"k\",\"max\":\"2\"}"), 2, 25, "lock.max", "\"2\"", "a whole number"},
    {LOCK("{\"key\":\"k\",\"if_taken\":\"skip\"}"), 2, 30, "lock.if_taken", "\"skip\"", "wait, refuse or replace"},
    {LOCK("{\"key\":\"k\",\"shared\":\"a b\"}"), 2, 28, "lock.shared", "\"a b\"", ""},
    {LOCK("{\"key\":\"k\",\"name\":\"a\"}"), 2, 19, "lock.name", "key \"name\"", ""},
    {TOP(",\n\"concurrency\":{\"key\":\"k\"}"), 2, 1, "concurrency", "key \"concurrency\"", "concurrency is for steps with for_each; for tasks with the same key write lock"},
    {ONE(",\n\"concurrency\":1"), 3, 15, "steps[0].concurrency", "1", "for_each beside it"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

/* Not to a step, which has no lock. */
static void a_hint_is_given_to_the_workflow_alone(void **state)
{
    struct definition *d = NULL;
    static struct mistakes m;
    (void)state;

    CHECK(definition_parse(SLICE(ONE(",\"concurrency\":1")), DEFINITION_JSON, &d, &m, NULL)
              == ERR_INVALID,
          "reserved");
    CHECK(m.count == 1 && !strstr(m.list[0].expected, "lock"), "%s", m.list[0].expected);
}

/* Whatever other words there are: older nodes are asked for the newest of them. */
static void its_words_are_the_newest(void **state)
{
    static const char *const texts[] = {
        LOCK("{\"key\":\"all\"}"),
        LOCK("{\"key\":\"all\"},\"on_signal\":{\"c\":\"undo\"}"),
        LOCK("{\"key\":\"all\"},\"undo_until\":\"1d\""),
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct definition *d = defined(texts[i]);
        CHECK(grammar_of(&d->workflow) == GRAMMAR_LOCK, "%s: %s", texts[i],
              grammar_words(grammar_of(&d->workflow)));
        definition_free(d);
    }
    struct definition *d = defined(TOP(",\"on_signal\":{\"c\":\"undo\"}"));
    CHECK(grammar_of(&d->workflow) == GRAMMAR_SIGNAL, "without a lock");
    definition_free(d);
}

struct key_case {
    const char *key, *input;
    const char *lock; /* or how the failure goes on */
    bool fails;
};

static void check_key(const struct key_case *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct error e = {0};
    struct slice lock = SLICE_NONE;

    buf_fmt(&text, LOCK("{\"key\":\"%s\"}"), c->key);
    struct definition *d = defined(text.ptr);
    struct world w = {0};
    struct scope s = scope_of(d, c->input, &w);
    enum err err = definition_lock(&s, &a, &lock, &e);
    CHECK((err == ERR_INVALID) == c->fails && (c->fails || err == ERR_OK), "%s: %s", text.ptr,
          e.text);
    CHECK(c->fails ? strstr(e.text, c->lock) && begins(e.text, "lock.key of workflow \"w\": ")
                   : slice_is(lock, c->lock),
          "%s: %s%.*s", text.ptr, e.text, SLICE_ARG(lock));
    definition_free(d);
}

static void the_key_is_evaluated(void **state)
{
    static char longest[LOCK_KEY_MAX + 20];
    static char too_long[LOCK_KEY_MAX + 20];
    static char expected[LOCK_KEY_MAX + 20];
    static const struct key_case cases[] = {
        {"${ .input.c }", "{\"c\":\"anna\"}", "w/anna", false},
        {"${ .input.c }", "{\"c\":42}", "w/42", false},
        {"${ .input.c }", "{\"c\":false}", "w/false", false},
        {"eu-${ .input.c }", "{\"c\":7}", "w/eu-7", false},
        {"a/b", "{}", "w/a/b", false},
        {"${ .input.c }", "{}", "found null, expected a text of 1 to 256 bytes", true},
        {"${ .input.c }", "{\"c\":\"\"}", "found \"\", expected", true},
        {"${ .input.c }", "{\"c\":[1]}", "found [1], expected", true},
        {"${ .input.c }", "{\"c\":\"a\\nb\"}", "without control characters", true},
        {"${ .input.c }", longest, expected, false},
        {"${ .input.c }", too_long, "expected a text of 1 to 256 bytes", true},
        {"${ .input.c | tonumber }", "{\"c\":\"x\"}", "", true},
    };
    char k[LOCK_KEY_MAX + 2];
    (void)state;

    memset(k, 'k', sizeof k - 1);
    k[LOCK_KEY_MAX + 1] = '\0';
    (void)snprintf(too_long, sizeof too_long, "{\"c\":\"%s\"}", k);
    k[LOCK_KEY_MAX] = '\0';
    (void)snprintf(longest, sizeof longest, "{\"c\":\"%s\"}", k);
    (void)snprintf(expected, sizeof expected, "w/%s", k);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_key(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_read),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(a_hint_is_given_to_the_workflow_alone),
        cmocka_unit_test(its_words_are_the_newest),
        cmocka_unit_test(the_key_is_evaluated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
