/* Tests of agent_settings.c: the defaults of an agent's settings, settings that are complete, and
 * the exact texts of all errors. */

#include "dispatch/agent_settings.h"

#include "base/test.h"

static const char whole[] =
    "{\"limits\":{\"concurrency\":50,\"rate\":\"100/s\",\"actions\":{\"charge\":{\"concurrency\":5,"
    "\"rate\":\"600/m\"},\"void\":{\"concurrency\":null,\"rate\":\"5000/h\"}}},\"breaker\":{"
    "\"enabled\":false,\"calls\":2,\"failures\":50,\"slow\":\"5s\",\"slow_calls\":30,"
    "\"window\":\"10s\",\"wait\":\"1s\",\"max_wait\":\"2m\",\"trials\":7}}";

static const char by_default[] =
    "{\"limits\":{\"concurrency\":null,\"rate\":null,\"actions\":{}},\"breaker\":{"
    "\"enabled\":true,\"calls\":20,\"failures\":80,\"slow\":null,\"slow_calls\":80,"
    "\"window\":\"30s\",\"wait\":\"5s\",\"max_wait\":\"1m\",\"trials\":3}}";

static void reads_as(const char *text, const char *expected)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct agent_settings st;
    struct error e = {0};

    CHECK(settings_parse(slice_of(text), &a, &st, &e) == ERR_OK, "%s: %s", text, e.text);
    settings_write(&b, &st);
    CHECK(slice_is(buf_view(&b), expected), "%s is\n%s", text, b.ptr);
}

static void what_is_left_out_is_as_by_default(void **state)
{
    (void)state;
    reads_as("{}", by_default);
    reads_as("{\"limits\":{},\"breaker\":{}}", by_default);
    reads_as("{\"limits\":null,\"breaker\":{\"slow\":null,\"calls\":null,\"enabled\":null}}",
             by_default);
    reads_as(by_default, by_default);
}

static void all_of_it_is_kept(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct agent_settings st;
    struct error e = {0};

    (void)state;
    reads_as(whole, whole);
    CHECK(settings_parse(slice_of(whole), &a, &st, &e) == ERR_OK, "%s", e.text);
    CHECK(st.limit.concurrency == 50 && st.limit.rate_count == 100 && st.limit.rate_ms == 1000,
          "the agent's");
    CHECK(st.action_count == 2 && slice_is(st.actions[0].action, "charge"), "by name");
    CHECK(st.actions[1].limit.concurrency == 0 && st.actions[1].limit.rate_ms == 3600000, "void");
    CHECK(st.breaker.off && st.breaker.slow_ms == 5000 && st.breaker.max_wait_ms == 120000, "its");
}

static void a_long_wait_lengthens_the_longest(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct agent_settings st;
    struct error e = {0};

    (void)state;
    CHECK(settings_parse(SLICE("{\"breaker\":{\"wait\":\"5m\"}}"), &a, &st, &e) == ERR_OK, "%s",
          e.text);
    CHECK(st.breaker.wait_ms == 300000 && st.breaker.max_wait_ms == 300000, "both");
}

static void mistakes_are_told(void **state)
{
    static const struct {
        const char *text, *story;
    } table[] = {
        {"[]", "the settings of an agent is [], expected an object"},
        {"{\"limit\":{}}", "there is no member \"limit\" in the settings of an agent, expected "
                           "limits or breaker"},
        {"{\"breaker\":{\"call\":3}}",
         "there is no member \"call\" in breaker, expected enabled, calls, failures, slow, "
         "slow_calls, window, wait, max_wait or trials"},
        {"{\"breaker\":7}", "breaker is 7, expected an object"},
        {"{\"breaker\":{\"calls\":0}}",
         "breaker.calls is 0, expected a whole number from 1 to 1000000"},
        {"{\"breaker\":{\"failures\":101}}",
         "breaker.failures is 101, expected a whole number from 1 to 100"},
        {"{\"breaker\":{\"failures\":\"80\"}}",
         "breaker.failures is \"80\", expected a whole number from 1 to 100"},
        {"{\"breaker\":{\"trials\":1.5}}",
         "breaker.trials is 1.5, expected a whole number from 1 to 1000"},
        {"{\"breaker\":{\"enabled\":1}}", "breaker.enabled is 1, expected true or false"},
        {"{\"breaker\":{\"slow\":\"5\"}}",
         "breaker.slow is \"5\", expected a duration from 1ms to 1d, such as \"30s\""},
        {"{\"breaker\":{\"window\":\"2d\"}}",
         "breaker.window is \"2d\", expected a duration from 1ms to 1d, such as \"30s\""},
        {"{\"breaker\":{\"wait\":\"9s\",\"max_wait\":\"1s\"}}",
         "breaker.max_wait is shorter than breaker.wait, expected at least it"},
        {"{\"limits\":{\"concurrency\":-1}}",
         "limits.concurrency is -1, expected a whole number from 1 to 1000000"},
        {"{\"limits\":{\"rate\":\"100\"}}",
         "limits.rate is \"100\", expected a count and a unit such as \"100/s\", \"600/m\" or "
         "\"5000/h\""},
        {"{\"limits\":{\"rate\":100}}",
         "limits.rate is 100, expected a count and a unit such as \"100/s\", \"600/m\" or "
         "\"5000/h\""},
        {"{\"limits\":{\"rate\":\"0/s\"}}",
         "limits.rate is \"0/s\", expected a count and a unit such as \"100/s\", \"600/m\" or "
         "\"5000/h\""},
        {"{\"limits\":{\"rate\":\"99999999/s\"}}",
         "limits.rate is \"99999999/s\", expected a count and a unit such as \"100/s\", \"600/m\" "
         "or \"5000/h\""},
        {"{\"limits\":{\"rate\":\"5/d\"}}",
         "limits.rate is \"5/d\", expected a count and a unit such as \"100/s\", \"600/m\" or "
         "\"5000/h\""},
        {"{\"limits\":{\"actions\":[]}}",
         "limits.actions is [], expected an object with a limit for each action"},
        {"{\"limits\":{\"actions\":{\"a\":{\"rate\":\"/s\"}}}}",
         "limits.actions.a.rate is \"/s\", expected a count and a unit such as \"100/s\", "
         "\"600/m\" or \"5000/h\""},
        {"{\"limits\":{\"actions\":{\"a\":{\"x\":1}}}}",
         "there is no member \"x\" in limits.actions.a, expected concurrency or rate"},
        {"{\"limits\":{\"actions\":{\"\":{}}}}",
         "limits.actions has \"\", expected names of actions of 1 to 128 bytes"},
        {"{", "settings of an agent: line 1, column 2: the text ends too early"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct agent_settings st = {.limit = {.concurrency = 77}};
        struct error e = {0};
        CHECK(settings_parse(slice_of(table[i].text), &a, &st, &e) != ERR_OK, "%s", table[i].text);
        CHECK(strcmp(e.text, table[i].story) == 0, "%s:\n%s\n%s", table[i].text, e.text,
              table[i].story);
        CHECK(st.limit.concurrency == 77, "it is left alone");
    }
}

static void too_many_actions_are_refused(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct agent_settings st;
    struct error e = {0};

    (void)state;
    buf_str(&b, "{\"limits\":{\"actions\":{");
    for (int i = 0; i <= SETTINGS_ACTIONS_MAX; i++)
        buf_fmt(&b, "%s\"a%d\":{}", i ? "," : "", i);
    buf_str(&b, "}}}");
    CHECK(settings_parse(buf_view(&b), &a, &st, &e) == ERR_INVALID, "too many");
    CHECK(strstr(e.text, "1001 actions, expected at most 1000"), "%s", e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_as_by_default), cmocka_unit_test(all_of_it_is_kept),
        cmocka_unit_test(a_long_wait_lengthens_the_longest), cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(too_many_actions_are_refused),
    };
    return cmocka_run_group_tests_name("settings of agents", tests, NULL, NULL);
}
