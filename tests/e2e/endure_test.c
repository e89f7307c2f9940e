/*
 * Long steps with libintact: heartbeats, resume details for the next attempt, results from other
 * processes, tries within an attempt; and a node that fails meanwhile.
 */

#include <intact/agent.h>
#include <intact/client.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

enum { TOKENS_MAX = 8 };

static struct node nodes[2];
static struct node *const a = &nodes[0];
static struct node *const b = &nodes[1];

static atomic_uint begun, stopped;
static atomic_bool gate;
static struct {
    pthread_mutex_t lock;
    char *all[TOKENS_MAX];
    size_t count;
} tokens = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- handlers ---- */

/* Says how far it is, and fails; the next attempt goes on there. */
static void copy_pages(struct intact_request *r, void *arg)
{
    (void)arg;
    CHECK(intact_request_heartbeat_ms(r) == 60000, "%" PRId64, intact_request_heartbeat_ms(r));
    if (intact_request_resume(r)) {
        intact_answer(r, intact_request_resume(r));
        return;
    }
    CHECK(intact_request_try(r) == 1, "a try");
    CHECK(intact_request_try(r) == 2, "another one");
    CHECK(intact_heartbeat_resume(r, "{\"page\": 2}", "copying", "{\"from\": 2}"), "it is JSON");
    while (!atomic_load(&gate))
        sleep_ms(1);
    intact_answer_error(r, "torn", "the page is torn", INTACT_RETRYABLE | INTACT_EFFECT_NONE);
}

/* Silent at first. */
static void be_silent(struct intact_request *r, void *arg)
{
    (void)arg;
    if (intact_request_attempt(r) == 1) {
        CHECK(!intact_request_sleep(r, 600000), "it is told to stop");
        atomic_fetch_add(&stopped, 1);
        intact_answer(r, "\"too late\"");
        return;
    }
    intact_answer(r, "\"in time\"");
}

/* Longer than its time for a heartbeat, which others send for it. */
static void sleep_on(struct intact_request *r, void *arg)
{
    (void)arg;
    if (intact_request_sleep(r, 2 * intact_request_heartbeat_ms(r)))
        intact_answer(r, "\"slept\"");
    else
        intact_answer_nothing(r);
}

static void ask_somebody(struct intact_request *r, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&tokens.lock);
    CHECK(tokens.count < TOKENS_MAX, "too many");
    tokens.all[tokens.count++] = strdup(intact_request_token(r));
    pthread_mutex_unlock(&tokens.lock);
    intact_answer_elsewhere(r);
}

static void beat_on(struct intact_request *r, void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&gate)) {
        CHECK(!intact_request_should_stop(r), "somebody hears its heartbeats");
        CHECK(intact_heartbeat(r, "1", NULL), "it is JSON");
        sleep_ms(20);
    }
    intact_answer(r, "\"beaten\"");
}

static const struct {
    const char *action;
    intact_handler *run;
} handlers[] = {{"copy", copy_pages},
                {"silent", be_silent},
                {"sleep", sleep_on},
                {"ask", ask_somebody},
                {"beat", beat_on}};

/* ---- the agent ---- */

struct run {
    struct intact_agent *agent;
    pthread_t thread;
    enum intact_agent_result result;
};

static void *run_agent(void *arg)
{
    struct run *r = arg;

    r->result = intact_agent_run(r->agent);
    return NULL;
}

static void start(struct run *r, const struct node *n, bool are_automatic)
{
    char url[120];

    atomic_store(&gate, false);
    atomic_store(&begun, 0);
    atomic_store(&stopped, 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d,http://127.0.0.1:%d", n->port,
                   b->pid ? b->port : n->port);
    r->agent = intact_agent_new("endure");
    for (size_t i = 0; i < COUNT_OF(handlers); i++)
        intact_agent_on(r->agent, handlers[i].action, INTACT_FORWARD, handlers[i].run, NULL);
    intact_agent_set_server(r->agent, url);
    intact_agent_set_token(r->agent, n->token);
    intact_agent_set_instance(r->agent, "endure-1");
    intact_agent_set_heartbeats(r->agent, are_automatic);
    CHECK(pthread_create(&r->thread, NULL, run_agent, r) == 0, "a thread");
}

static void end(struct run *r)
{
    intact_agent_stop_one(r->agent);
    pthread_join(r->thread, NULL);
    CHECK(r->result == INTACT_AGENT_STOPPED, "ended %d", (int)r->result);
    intact_agent_free(r->agent);
}

static void submit_one(const struct node *n, const char *action, const char *rest)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"endure\", \"action\": \"%s\", \"undo\": "
            "\"none\", %s}]",
            action, rest);
    (void)define(n, action, text.ptr);
    submit(n, action, action);
}

static int open_one(void **state)
{
    *state = node_open(a, FLAGS("--scan-every", "100ms", "--grace", "200ms"));
    return 0;
}

/* ---- tests ---- */

static void an_attempt_goes_on_where_the_last_one_was(void **state)
{
    struct run run;
    REPLY r = {0};
    (void)state;

    start(&run, a, false);
    submit_one(a, "copy",
               "\"complete_by\": \"10m\", \"heartbeat\": \"60s\", \"retry\": {\"attempts\": 3, "
               "\"wait\": \"1ms\"}");
    do {
        sleep_ms(20);
        task_of(a, &r, "copy");
    } while (!raw_is(&r, "steps.0.attempts.0.progress", "{\"page\": 2}"));
    EXPECT_TEXT(&r, "steps.0.attempts.0.message", "copying");
    EXPECT_RAW(&r, "steps.0.resume", "{\"from\": 2}");
    atomic_store(&gate, true);
    wait_for_state(a, "copy", "processed");
    task_of(a, &r, "copy");
    EXPECT_RAW(&r, "steps.0.output", "{\"from\": 2}");
    EXPECT_INT(&r, "steps.0.attempts.0.tries", 2);
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "torn");
    CHECK(at(&r, "steps.0.attempts")->count == 2, "%.*s", SLICE_ARG(r.body));
    end(&run);
}

static void one_that_is_silent_is_given_up_by_both_sides(void **state)
{
    struct run run;
    REPLY r = {0};
    (void)state;

    start(&run, a, false);
    submit_one(a, "silent",
               "\"heartbeat\": \"500ms\", \"retry\": {\"attempts\": 1000, \"wait\": \"1ms\", "
               "\"max_wait\": \"1ms\"}, \"complete_by\": \"10m\"");
    wait_for_state(a, "silent", "processed");
    task_of(a, &r, "silent");
    EXPECT_TEXT(&r, "steps.0.output", "in time");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "heartbeat");
    /* Once, as a rule. Not at all, if it was not even begun; again, if the server, whose time for
     * it ends a little later, was asked for work meanwhile by an agent that does not hold it any
     * more. */
    printf("told to stop %u times\n", atomic_load(&stopped));
    end(&run);
}

static void the_library_beats_for_one_that_waits(void **state)
{
    struct run run;
    REPLY r = {0};
    (void)state;

    start(&run, a, true);
    /* On a machine that stands still a heartbeat may be missed, and then another try is made. */
    submit_one(a, "sleep",
               "\"heartbeat\": \"1500ms\", \"retry\": {\"attempts\": 1000, \"wait\": \"1ms\", "
               "\"max_wait\": \"1ms\"}, \"complete_by\": \"10m\"");
    wait_for_state(a, "sleep", "processed");
    task_of(a, &r, "sleep");
    EXPECT_TEXT(&r, "steps.0.output", "slept");
    end(&run);
}

static char *token_of(size_t i)
{
    char *token = NULL;

    while (!token) {
        sleep_ms(5);
        pthread_mutex_lock(&tokens.lock);
        token = i < tokens.count ? tokens.all[i] : NULL;
        pthread_mutex_unlock(&tokens.lock);
    }
    return token;
}

static void wait_elsewhere(const char *id)
{
    REPLY r = {0};

    do {
        sleep_ms(20);
        task_of(a, &r, id);
    } while (!raw_is(&r, "steps.0.attempts.0.elsewhere", "true"));
}

static void who_has_the_token_says_what_came_of_it(void **state)
{
    static const char *const ids[] = {"yes", "no", "retired"};
    char url[60];
    struct run run;
    REPLY r = {0};
    (void)state;

    (void)define(a, "ask",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"s\", \"agent\": \"endure\", "
                 "\"action\": \"ask\", \"undo\": \"none\", \"complete_by\": \"7d\"}]");
    start(&run, a, false); /* one place: each of them has left it */
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        submit(a, "ask", ids[i]);
        (void)token_of(i);
        wait_elsewhere(ids[i]);
    }
    end(&run); /* they outlive their agent */

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", a->port);
    struct intact_client *c = intact_client_new(url, ""); /* it needs no token but theirs */
    CHECK(intact_attempt_complete(c, token_of(0), "{\"approved\": true}") == INTACT_OK, "%s",
          intact_client_error(c));
    CHECK(strstr(intact_client_body(c), "\"accepted\""), "%s", intact_client_body(c));
    CHECK(intact_attempt_complete(c, token_of(0), "{\"approved\": true}") == INTACT_OK, "%s",
          intact_client_error(c));
    CHECK(strstr(intact_client_body(c), "\"repeated\""), "%s", intact_client_body(c));
    CHECK(intact_attempt_fail(c, token_of(1), "{\"code\": \"refused\", \"retryable\": false}")
              == INTACT_OK,
          "%s", intact_client_error(c));
    CHECK(intact_attempt_complete(c, "yes~0~f1~nonsense", NULL) == INTACT_REFUSED, "a forgery");
    CHECK(intact_client_http_status(c) == 404, "%d", intact_client_http_status(c));
    CHECK(intact_attempt_complete(c, token_of(2), "[") == INTACT_REFUSED, "that is not JSON");
    CHECK(intact_attempt_complete(c, token_of(2), NULL) == INTACT_OK, "%s", intact_client_error(c));
    intact_client_free(c);

    wait_for_state(a, "yes", "processed");
    wait_for_state(a, "retired", "processed");
    wait_for_state(a, "no", "error");
    task_of(a, &r, "yes");
    EXPECT_RAW(&r, "steps.0.output", "{\"approved\": true}");
    task_of(a, &r, "no");
    EXPECT_TEXT(&r, "steps.0.error.code", "refused");
    for (size_t i = 0; i < tokens.count; i++)
        free(tokens.all[i]);
}

/* ---- two nodes ---- */

static int open_two(void **state)
{
    (void)state;
    nodes_init(nodes, 2);
    nodes_start(nodes, 2, FLAGS("--grace", "200ms"));
    return 0;
}

static int end_two(void **state)
{
    (void)state;
    node_fini(a);
    node_fini(b);
    return 0;
}

/* Its heartbeats find the node that has the task now, and its result does. */
static void heartbeats_follow_a_task_to_another_node(void **state)
{
    struct run run;
    REPLY r = {0};
    (void)state;

    start(&run, a, false);
    submit_one(a, "beat", "\"heartbeat\": \"2m\", \"complete_by\": \"20m\"");
    while (atomic_load(&begun) == 0)
        sleep_ms(5);
    const struct node *asked = b;
    do { /* only the node that has the task knows */
        sleep_ms(20);
        asked = asked == a ? b : a;
        task_of(asked, &r, "beat");
    } while (time_at(&r, "steps.0.attempts.0.heartbeat_at") <= 0);
    bool is_at_b = asked == b;
    node_kill(is_at_b ? b : a);
    const struct node *left = is_at_b ? a : b;
    do { /* shown by the node that has the task, from what it has heard itself */
        sleep_ms(20);
        task_of(left, &r, "beat");
    } while (time_at(&r, "steps.0.attempts.0.heartbeat_at") <= 0);
    CHECK(at(&r, "steps.0.attempts")->count == 1, "it is the same attempt");
    atomic_store(&gate, true);
    wait_for_state(left, "beat", "processed");
    end(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest one[] = {
        cmocka_unit_test(an_attempt_goes_on_where_the_last_one_was),
        cmocka_unit_test(one_that_is_silent_is_given_up_by_both_sides),
        cmocka_unit_test(the_library_beats_for_one_that_waits),
        cmocka_unit_test(who_has_the_token_says_what_came_of_it),
    };
    const struct CMUnitTest two[] = {
        cmocka_unit_test(heartbeats_follow_a_task_to_another_node),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(one, open_one, node_end)
           + cmocka_run_group_tests(two, open_two, end_two);
}
