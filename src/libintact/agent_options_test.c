/* Tests of agent_options.c: what is invalid is reported when the agent starts, in one line;
 * settings are copied; an agent runs once. */

#include "base/test.h"

#include <intact/agent.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/fake.h"

static struct {
    char log[2000];
    unsigned errors;
} said;

static void gather_log(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    said.errors += level == INTACT_LOG_ERROR;
    (void)snprintf(said.log, sizeof(said.log), "%s", line);
}

static void answer(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, NULL);
}

static struct intact_agent *sound(const char *name)
{
    struct intact_agent *a = intact_agent_new(name);

    memset(&said, 0, sizeof(said));
    intact_agent_set_log(a, gather_log, NULL);
    intact_agent_on(a, "do", INTACT_FORWARD, answer, NULL);
    return a;
}

static void no_name(struct intact_agent **a)
{
    intact_agent_free(*a);
    *a = sound(NULL);
}

static void empty_name(struct intact_agent **a)
{
    intact_agent_free(*a);
    *a = sound("");
}

static void no_handlers(struct intact_agent **a)
{
    intact_agent_free(*a);
    *a = intact_agent_new("a");
    intact_agent_set_log(*a, gather_log, NULL);
}

static void no_action(struct intact_agent **a)
{
    intact_agent_on(*a, NULL, INTACT_FORWARD, answer, NULL);
}

static void no_function(struct intact_agent **a)
{
    intact_agent_on(*a, "x", INTACT_FORWARD, NULL, NULL);
}

static void no_direction(struct intact_agent **a)
{
    intact_agent_on(*a, "x", (enum intact_direction)17, answer, NULL);
}

static void twice(struct intact_agent **a)
{
    intact_agent_on(*a, "do", INTACT_ANY, answer, NULL);
}

static void no_places(struct intact_agent **a)
{
    intact_agent_set_concurrency(*a, 0);
}

static void too_many_places(struct intact_agent **a)
{
    intact_agent_set_concurrency(*a, 1001);
}

static void no_wait(struct intact_agent **a)
{
    intact_agent_set_wait_ms(*a, 0);
}

static void no_stop_wait(struct intact_agent **a)
{
    intact_agent_set_stop_wait_ms(*a, -1);
}

static void no_instance(struct intact_agent **a)
{
    intact_agent_set_instance(*a, "");
}

static void the_first_of_two(struct intact_agent **a)
{
    no_wait(a);
    no_places(a);
}

static void what_is_wrong_is_said_when_it_starts(void **state)
{
    static const struct {
        void (*spoil)(struct intact_agent **a);
        const char *says;
    } cases[] = {
        {no_name, "an agent needs a name"},
        {empty_name, "an agent needs a name"},
        {no_handlers, "an agent needs handlers"},
        {no_action, "a handler needs an action, a direction and a function"},
        {no_function, "a handler needs an action, a direction and a function"},
        {no_direction, "a handler needs an action, a direction and a function"},
        {twice, "action do has two handlers for one direction"},
        {no_places, "concurrency is 0, expected 1 to 1000"},
        {too_many_places, "concurrency is 1001, expected 1 to 1000"},
        {no_wait, "wait_ms is 0, expected 1 to"},
        {no_stop_wait, "stop_wait_ms is -1, expected 1 to"},
        {no_instance, "an instance's name has 1 to 150 bytes"},
        {the_first_of_two, "wait_ms is 0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct intact_agent *a = sound("a");
        cases[i].spoil(&a);
        CHECK(said.errors == 0, "case %zu spoke too early", i);
        if (i % 2) {
            CHECK(intact_agent_run(a) == INTACT_AGENT_FAILED, "case %zu", i);
        } else {
            CHECK(intact_agent_fd(a) == -1, "case %zu", i);
            CHECK(!intact_agent_drive(a), "case %zu", i);
            CHECK(intact_agent_outcome(a) == INTACT_AGENT_FAILED, "case %zu", i);
        }
        CHECK(said.errors == 1, "case %zu: %u lines", i, said.errors);
        CHECK(strstr(said.log, "event=start_failed error=") && strstr(said.log, cases[i].says),
              "case %zu: %s", i, said.log);
        intact_agent_free(a);
    }
}

static void settings_are_copied(void **state)
{
    char text[] = "same";
    struct intact_agent *a = intact_agent_new(text);

    (void)state;
    memset(&said, 0, sizeof(said));
    intact_agent_set_server(a, text);
    intact_agent_set_token(a, text);
    intact_agent_set_ca(a, text);
    intact_agent_set_instance(a, text);
    intact_agent_on(a, text, INTACT_FORWARD, answer, NULL);
    memset(text, 'x', sizeof(text) - 1);
    intact_agent_set_log(a, gather_log, NULL);
    intact_agent_on(a, "xxxx", INTACT_FORWARD, answer, NULL);
    intact_agent_set_token(a, NULL); /* the default again */
    intact_agent_set_instance(a, NULL);
    intact_agent_stop_one(a);
    CHECK(intact_agent_run(a) == INTACT_AGENT_STOPPED, "%s", said.log);
    intact_agent_free(a);
}

static void an_agent_runs_once(void **state)
{
    struct intact_agent *a = sound("a");
    struct intact_agent *b = sound("b");

    (void)state;
    intact_agent_stop(); /* before it runs: it ends at once */
    CHECK(intact_agent_run(a) == INTACT_AGENT_STOPPED, "%s", said.log);
    intact_agent_set_concurrency(a, 3);
    CHECK(strstr(said.log, "event=setting_ignored setting=concurrency"), "%s", said.log);
    CHECK(intact_agent_run(a) == INTACT_AGENT_STOPPED, "as it ended");
    CHECK(strstr(said.log, "the agent has run already; create a new one"), "%s", said.log);
    CHECK(intact_agent_drive(b), "only what ran, or was next, was stopped");
    intact_agent_free(b);
    intact_agent_free(a);
    intact_agent_free(NULL);
}

static void stopping_one_leaves_the_others_alone(void **state)
{
    struct intact_agent *a = sound("a");
    struct intact_agent *b = sound("b");

    (void)state;
    CHECK(intact_agent_drive(a) && intact_agent_drive(b), "%s", said.log);
    intact_agent_stop_one(a);
    while (intact_agent_drive(a))
        usleep(1000);
    CHECK(intact_agent_drive(b), "it runs on");
    intact_agent_stop();
    while (intact_agent_drive(b))
        usleep(1000);
    CHECK(intact_agent_outcome(b) == INTACT_AGENT_STOPPED, "%s", said.log);
    intact_agent_free(a);
    intact_agent_free(b);
}

/* Like a program that runs one agent until the process ends. */
static void an_agent_may_be_left_to_the_end_of_the_process(void **state)
{
    (void)state;
    intact_agent_set_concurrency(sound("left"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_when_it_starts),
        cmocka_unit_test(settings_are_copied),
        cmocka_unit_test(an_agent_runs_once),
        cmocka_unit_test(stopping_one_leaves_the_others_alone),
        cmocka_unit_test(an_agent_may_be_left_to_the_end_of_the_process),
    };

    (void)setenv("INTACT_SERVER", "http://127.0.0.1:1", 1); /* nothing listens there */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
