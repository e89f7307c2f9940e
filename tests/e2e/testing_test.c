/* <intact/testing.h> with a real server: neither a handler that hangs nor a server that has ended
 * holds a test, and it is said clearly what it was. Usage: testing_test INTACT */

#include "base/test.h"

#include <intact/testing.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum { SHORT_MS = 1000, LONG_MS = 300000 };

static const char *program;
static char folder[] = "/tmp/intact-testing-XXXXXX";
static sem_t begun, go_on;

static void hang(struct intact_request *r, void *arg)
{
    (void)arg;
    (void)sem_post(&begun);
    while (sem_wait(&go_on) != 0)
        ;
    intact_answer(r, NULL);
}

/* A file of the test. The path is valid until the next call. */
static const char *write_file(const char *name, mode_t mode, const char *text)
{
    static char path[200];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
    CHECK(chmod(path, mode) == 0, "%s", path);
    return path;
}

/* The server, behind a program that leaves its process id in a file. */
static struct intact_testing *start(int64_t patience_ms)
{
    struct intact_testing *t = intact_testing_new();
    char script[500];

    (void)snprintf(script, sizeof script, "#!/bin/sh\necho $$ >%s/pid\nexec '%s' \"$@\"\n", folder,
                   program);
    intact_testing_set_program(t, write_file("server", 0755, script));
    intact_testing_set_patience_ms(t, patience_ms);
    CHECK(intact_testing_start(t), "%s", intact_testing_error(t));
    CHECK(intact_testing_define(t, write_file("tick.yaml", 0644,
                                              "intact: 1\n"
                                              "workflow: tick\n"
                                              "complete_by: 1h\n"
                                              "steps: [{name: go, agent: x, action: go, "
                                              "undo: none}]\n")),
          "%s", intact_testing_error(t));
    return t;
}

/* A task whose handler is at work, and hangs. */
static void begin_to_hang(struct intact_testing *t)
{
    struct intact_agent *a = intact_agent_new("x");

    intact_agent_on(a, "go", INTACT_FORWARD, hang, NULL);
    CHECK(intact_testing_agent(t, a), "%s", intact_testing_error(t));
    CHECK(intact_client_submit(intact_testing_client(t), "{\"workflow\": \"tick\", \"id\": \"t\"}",
                               0)
              == INTACT_OK,
          "%s", intact_client_error(intact_testing_client(t)));
    (void)sem_wait(&begun);
}

static void kill_server(void)
{
    char path[200];
    int pid = 0;

    (void)snprintf(path, sizeof path, "%s/pid", folder);
    FILE *f = fopen(path, "re");
    CHECK(f && fscanf(f, "%d", &pid) == 1 && pid > 1, "%s", path);
    (void)fclose(f);
    CHECK(kill(pid, SIGKILL) == 0, "%d", pid);
}

static void says(const struct intact_testing *t, const char *what)
{
    CHECK(strstr(intact_testing_error(t), what), "\"%s\" is not in: %s", what,
          intact_testing_error(t));
}

static void a_handler_that_hangs_does_not_hold_the_test(void **state)
{
    (void)state;
    struct intact_testing *t = start(0);

    begin_to_hang(t);
    intact_testing_set_patience_ms(t, SHORT_MS);
    CHECK(!intact_testing_ended(t, "t"), "it ended");
    says(t, "the task has not ended in time");
    says(t, "\"kind\":\"attempt\"");
    says(t, "\"agent\":\"x\"");
    intact_testing_free(t); /* with the handler still at work */
}

static void *kill_soon(void *arg)
{
    (void)arg;
    (void)usleep(300000);
    kill_server();
    return NULL;
}

static void a_server_that_was_killed_is_told_at_once(void **state)
{
    (void)state;
    struct intact_testing *t = start(LONG_MS);
    pthread_t killer;

    begin_to_hang(t);
    CHECK(pthread_create(&killer, NULL, kill_soon, NULL) == 0, "a thread");
    CHECK(!intact_testing_ended(t, "t"), "it ended");
    says(t, "the server has ended by signal 9");
    (void)pthread_join(killer, NULL);
    CHECK(!intact_testing_advance(t, "1h", true), "it advanced");
    says(t, "the server has ended by signal 9");
    CHECK(!intact_testing_define(t, "/dev/null"), "it is defined");
    says(t, "the server has ended by signal 9");
    intact_testing_free(t);
}

static void a_program_that_says_nothing_is_no_server(void **state)
{
    (void)state;
    struct intact_testing *t = intact_testing_new();

    intact_testing_set_program(t, write_file("mute", 0755, "#!/bin/sh\nexec sleep 1000\n"));
    intact_testing_set_patience_ms(t, SHORT_MS);
    CHECK(!intact_testing_start(t), "it started");
    says(t, "the server did not start: it did not say its port in time");
    intact_testing_free(t);

    t = intact_testing_new();
    intact_testing_set_program(t, write_file("fails", 0755, "#!/bin/sh\nexit 3\n"));
    CHECK(!intact_testing_start(t), "it started");
    says(t, "the server did not start: the server has ended with status 3");
    intact_testing_free(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_that_hangs_does_not_hold_the_test),
        cmocka_unit_test(a_server_that_was_killed_is_told_at_once),
        cmocka_unit_test(a_program_that_says_nothing_is_no_server),
    };

    if (argc != 2 || !mkdtemp(folder))
        return 2;
    program = argv[1];
    (void)sem_init(&begun, 0, 0);
    (void)sem_init(&go_on, 0, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? failed : 1;
}
