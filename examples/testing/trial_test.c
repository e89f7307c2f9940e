/*
 * The workflow in trial.yaml with its agents in C: a month takes no time. Usage: trial_test FILE
 *
 * An installed library is all that it needs: cc trial_test.c $(pkg-config --cflags --libs
 * libintact)
 */
#include <intact/testing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int opened;

static void open_account(struct intact_request *r, void *arg)
{
    (void)arg;
    opened++;
    intact_answer(r, "{\"account\": 17}");
}

static void close_account(struct intact_request *r, void *arg)
{
    (void)arg;
    opened--;
    intact_answer(r, NULL);
}

static void remind(struct intact_request *r, void *arg)
{
    (void)arg;
    if (strcmp(intact_request_input(r), "null") == 0)
        intact_answer_error(r, "nobody", "there is no customer", INTACT_EFFECT_NONE);
    else
        intact_answer(r, NULL);
}

static void expect(int is, const char *what, const char *found)
{
    if (is)
        return;
    fprintf(stderr, "%s: %s\n", what, found);
    exit(1);
}

static struct intact_testing *start(const char *definition)
{
    struct intact_testing *t = intact_testing_new();
    struct intact_agent *accounts = intact_agent_new("accounts");
    struct intact_agent *mail = intact_agent_new("mail");

    intact_testing_set_time(t, "2026-01-01T09:00:00Z");
    expect(intact_testing_start(t), "start", intact_testing_error(t));
    expect(intact_testing_define(t, definition), "define", intact_testing_error(t));
    intact_agent_on(accounts, "open", INTACT_FORWARD, open_account, NULL);
    intact_agent_on(accounts, "close", INTACT_UNDO, close_account, NULL);
    intact_agent_on(mail, "remind", INTACT_FORWARD, remind, NULL);
    expect(intact_testing_agent(t, accounts), "agent", intact_testing_error(t));
    expect(intact_testing_agent(t, mail), "agent", intact_testing_error(t));
    return t;
}

static void who_pays_stays(struct intact_testing *t)
{
    struct intact_client *c = intact_testing_client(t);

    expect(intact_client_submit(c, "{\"workflow\": \"trial\", \"id\": \"ann\", \"input\": {}}", 0)
               == INTACT_OK,
           "submit", intact_client_error(c));
    expect(intact_testing_advance(t, "29d", false), "advance", intact_testing_error(t));
    expect(intact_client_call(c, "POST", "/v1/tasks/ann/signals/paid", "application/json", "{}", 2)
               == INTACT_OK,
           "signal", intact_client_error(c));
    const char *task = intact_testing_ended(t, "ann");
    expect(task && strstr(task, "\"state\":\"processed\""), "it ended",
           task ? task : intact_testing_error(t));
    expect(opened == 1, "the account", "is not open");
}

static void who_does_not_pay_is_closed(struct intact_testing *t)
{
    struct intact_client *c = intact_testing_client(t);

    expect(intact_client_submit(c, "{\"workflow\": \"trial\", \"id\": \"bob\", \"input\": {}}", 0)
               == INTACT_OK,
           "submit", intact_client_error(c));
    const char *task = intact_testing_ended(t, "bob");
    expect(task && strstr(task, "\"state\":\"compensated\""), "it ended",
           task ? task : intact_testing_error(t));
    expect(strstr(task, "\"ended_at\":\"2026-03-01T09:00:00.000Z\"") != NULL,
           "a month after 30 January", task);
    expect(opened == 1, "bob's account", "is open");
}

/* Without any server. */
static void a_handler_alone(void)
{
    char *answer = intact_testing_handle(remind, NULL, NULL);

    expect(answer && strstr(answer, "\"code\":\"nobody\""), "nobody is refused",
           answer ? answer : "nothing");
    free(answer);
    answer = intact_testing_handle(remind, NULL,
                                   "{\"action\": \"remind\", \"input\": {\"customer\": \"ann\"}}");
    expect(answer && strcmp(answer, "{\"output\":null}") == 0, "ann is reminded",
           answer ? answer : "nothing");
    free(answer);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    a_handler_alone();
    struct intact_testing *t = start(argv[1]);
    who_pays_stays(t);
    who_does_not_pay_is_closed(t);
    intact_testing_free(t);
    return 0;
}
