/*
 * Breakers and settings of agents, as a user meets them: a service that fails and returns, an
 * operator who opens the breaker, restarts, and two nodes that follow each other.
 */

#include <stdlib.h>

#include "kit.h"

static struct node node;
static struct node nodes[2];

/* A step that is tried again after an hour, and one that is tried once. */
static const char *const slow_to_retry =
    "\"steps\": [{\"name\": \"charge\", \"agent\": \"bank\", \"action\": \"charge\", \"undo\": "
    "\"none\", \"complete_by\": \"10m\", \"retry\": {\"attempts\": 3, \"wait\": \"1h\", "
    "\"max_wait\": \"1h\"}}]";

#define RULE                                                                                  \
    "{\"breaker\": {\"calls\": 3, \"failures\": 60, \"wait\": \"%s\", \"max_wait\": \"%s\", " \
    "\"trials\": 1}}"

static int begin(void **state)
{
    *state = node_open(&node, FLAGS("--drain", "1s"));
    (void)define(&node, "pay", slow_to_retry);
    return 0;
}

/* ---- helpers ---- */

static void has(const struct reply *r, const char *text)
{
    CHECK(memmem(r->body.ptr, r->body.len, text, strlen(text)), "no \"%s\" in %.*s", text,
          SLICE_ARG(r->body));
}

static void wait_for_breaker(const struct node *n, const char *state)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        get(n, &r, "/v1/agents/bank");
        if (r.status == 200 && strcmp(text_at(&r, "breaker.state"), state) == 0)
            return;
        CHECK(steady_ms() < until, "the breaker does not become %s: %.*s", state,
              SLICE_ARG(r.body));
        sleep_ms(20);
    }
}

/* Which task that was is written to `id`. */
static void fails_as(const struct node *n, char id[32])
{
    REPLY r = {0};

    fetch(n, &r, "bank", "b-1");
    (void)snprintf(id, 32, "%s", text_at(&r, "requests.0.task"));
    char *token = token_in(&r, 0);
    hand_in(n, "bank", "b-1", token,
            "\"error\": {\"code\": \"away\", \"message\": \"no answer\", \"retryable\": true, "
            "\"effect\": \"none\"}",
            "accepted");
    free(token);
}

static void fails_once(const struct node *n)
{
    char id[32];

    fails_as(n, id);
}

static void succeeds_once(const struct node *n)
{
    serve_step(n, "bank", "b-1", "1");
}

/* Nothing is given to an agent that asks for it. */
static void gives_nothing(const struct node *n)
{
    REPLY r = {0};

    post(n, &r, "/v1/agents/bank/work", "{\"instance\": \"b-1\", \"max\": 1, \"wait\": \"300ms\"}");
    EXPECT(&r, 200);
    CHECK(!at(&r, "requests.0"), "something starts: %.*s", SLICE_ARG(r.body));
}

static void by_hand(const struct node *n, const char *state)
{
    REPLY r = {0};

    post(n, &r, "/v1/agents/bank/breaker", "{\"state\": \"%s\", \"reason\": \"it moves\"}", state);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "breaker.state", state);
    EXPECT_TEXT(&r, "breaker.reason", "it moves");
    EXPECT_RAW(&r, "breaker.by_hand", strcmp(state, "open") == 0 ? "true" : "false");
}

static void rule_is(const struct node *n, const char *wait)
{
    REPLY r = {0};

    put(n, &r, "/v1/agents/bank", RULE, wait, wait);
    EXPECT(&r, 200);
    by_hand(n, "closed"); /* nothing of what was before counts */
}

static void task_has(const struct node *n, const char *id, const char *path, const char *json)
{
    REPLY r = {0};

    task_of(n, &r, id);
    EXPECT_RAW(&r, path, json);
}

/* ---- what is set ---- */

static void settings_are_kept(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/agents/nobody");
    expect_problem(&r, 404, "no-such-agent");
    reply_fini(&r);
    put(&node, &r, "/v1/agents/bank",
        "{\"limits\": {\"concurrency\": 5, \"actions\": {\"charge\": {\"rate\": \"10/m\"}}}}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "settings.limits.concurrency", 5);
    EXPECT_RAW(&r, "settings.limits.rate", "null");
    EXPECT_TEXT(&r, "settings.limits.actions.charge.rate", "10/m");
    EXPECT_INT(&r, "settings.breaker.calls", 20);
    EXPECT_TEXT(&r, "breaker.state", "closed");
    node_stop(&node);
    node_start(&node, FLAGS("--drain", "1s"));
    reply_fini(&r);
    wait_for_breaker(&node, "closed"); /* what is said of it has been read */
    get(&node, &r, "/v1/agents/bank");
    EXPECT_INT(&r, "settings.limits.concurrency", 5);
    reply_fini(&r);
    send_as(&node, &r, "DELETE", "/v1/agents/bank", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "settings.limits.concurrency", "null");
    reply_fini(&r);
    get(&node, &r, "/v1/audit?limit=2");
    EXPECT_TEXT(&r, "entries.0.verb", "agent.reset");
    EXPECT_TEXT(&r, "entries.1.verb", "agent.set");
    EXPECT_TEXT(&r, "entries.1.reason", "bank");
    EXPECT_TEXT(&r, "entries.1.actor", "admin");
}

static void mistakes_are_told(void **state)
{
    static const struct {
        const char *path, *body, *type;
    } table[] = {
        {"/v1/agents/bank", "{\"breaker\": {\"calls\": 0}}", "bad-settings"},
        {"/v1/agents/bank", "{\"limit\": {}}", "bad-settings"},
        {"/v1/agents/bank", "[]", "not-an-object"},
        {"/v1/agents/b%20k", "{}", "bad-agent"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        put(&node, &r, table[i].path, "%s", table[i].body);
        expect_problem(&r, 422, table[i].type);
        reply_fini(&r);
    }
    put(&node, &r, "/v1/agents/bank", "{\"breaker\": {\"failures\": 101}}");
    has(&r, "breaker.failures is 101, expected a whole number from 1 to 100");
    static const struct {
        const char *path, *body, *type;
    } moves[] = {
        {"/v1/agents/bank/breaker", "{}", "bad-state"},
        {"/v1/agents/bank/breaker", "{\"state\": \"half-open\"}", "bad-state"},
        {"/v1/agents/bank/breaker", "{\"state\": \"open\", \"reason\": 7}", "bad-reason"},
        {"/v1/agents/bank/breaker", "{\"state\": \"open\", \"why\": \"x\"}", "unknown-member"},
        {"/v1/agents/bank/breaker", "7", "not-an-object"},
        {"/v1/agents/b%20k/breaker", "{\"state\": \"open\"}", "bad-agent"},
    };
    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        reply_fini(&r);
        post(&node, &r, moves[i].path, "%s", moves[i].body);
        expect_problem(&r, 422, moves[i].type);
    }
    reply_fini(&r);
    send_as(&node, &r, "DELETE", "/v1/agents/b%20k", NULL, SLICE_NONE);
    expect_problem(&r, 422, "bad-agent");
}

static void an_agent_that_nobody_knows_has_no_breaker(void **state)
{
    REPLY r = {0};
    (void)state;

    rule_is(&node, "1h"); /* there is an agent "bank" */
    static const char *const moves[] = {"open", "closed"};
    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        post(&node, &r, "/v1/agents/bnak/breaker", "{\"state\": \"%s\", \"reason\": \"x\"}",
             moves[i]);
        expect_problem(&r, 404, "no-such-agent");
        has(&r, "did you mean \\\"bank\\\"?");
        reply_fini(&r);
    }
    get(&node, &r, "/v1/agents/bnak");
    expect_problem(&r, 404, "no-such-agent");
    reply_fini(&r);
    (void)define(&node, "post",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"courier\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    post(&node, &r, "/v1/agents/courier/breaker", "{\"state\": \"open\", \"reason\": \"x\"}");
    EXPECT(&r, 200); /* a workflow names it, though it never called */
    reply_fini(&r);
    post(&node, &r, "/v1/agents/courier/breaker", "{\"state\": \"closed\"}");
    EXPECT(&r, 200);
}

/* ---- an outage ---- */

static void an_outage_costs_no_tries_and_no_time(void **state)
{
    REPLY r = {0};
    (void)state;

    rule_is(&node, "1h");
    for (char id[] = "out-0"; id[4] < '5'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    wait_for_breaker(&node, "open");
    gives_nothing(&node);
    get(&node, &r, "/v1/tasks/out-4/why");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "reasons.0.kind", "breaker-open");
    has(&r, "3 of 3 attempts failed");
    reply_fini(&r);
    get(&node, &r, "/metrics");
    has(&r, "intact_breaker_state{agent=\"bank\"} 2\n");
    has(&r, "intact_breaker_transitions_total{agent=\"bank\",to=\"open\"} 1\n");

    by_hand(&node, "closed"); /* the service is back, and all goes out: what waits an hour, too */
    for (int i = 0; i < 5; i++)
        succeeds_once(&node);
    for (char id[] = "out-0"; id[4] < '5'; id[4]++)
        wait_for_state(&node, id, "processed");
    task_has(&node, "out-0", "steps.0.attempts.1.outcome", "\"completed\"");
}

static int64_t failures_of(const char *id)
{
    REPLY r = {0};

    task_of(&node, &r, id);
    return int_at(&r, "failure_count");
}

static void trials_close_it_or_do_not(void **state)
{
    int64_t before = 0;
    int64_t after = 0;
    char trial[32];
    REPLY r = {0};
    (void)state;
    rule_is(&node, "200ms");
    for (char id[] = "try-0"; id[4] < '4'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    for (char id[] = "try-0"; id[4] < '4'; id[4]++)
        before += failures_of(id);
    fails_as(&node, trial); /* some time later */
    for (char id[] = "try-0"; id[4] < '4'; id[4]++)
        after += failures_of(id);
    CHECK(before == 3 && after == 3, "%" PRId64 " failures, then %" PRId64, before, after);
    task_of(&node, &r, trial);
    has(&r, "\"spared\":true");
    for (int i = 0; i < 4; i++)
        succeeds_once(&node);
    for (char id[] = "try-0"; id[4] < '4'; id[4]++)
        wait_for_state(&node, id, "processed");
    wait_for_breaker(&node, "closed");
}

/* What is at work when it opens may fail for free, too. */
static void what_is_at_work_is_spared(void **state)
{
    REPLY r = {0};
    (void)state;

    rule_is(&node, "1h");
    submit(&node, "pay", "busy");
    fetch(&node, &r, "bank", "b-1");
    char *token = token_in(&r, 0);
    by_hand(&node, "open");
    hand_in(&node, "bank", "b-1", token,
            "\"error\": {\"code\": \"away\", \"message\": \"x\", \"retryable\": true, \"effect\": "
            "\"none\"}",
            "accepted");
    free(token);
    task_has(&node, "busy", "failure_count", "0");
    task_has(&node, "busy", "steps.0.attempts.0.spared", "true");
    by_hand(&node, "closed");
    succeeds_once(&node);
    wait_for_state(&node, "busy", "processed");
}

/* Given away, to be answered by whoever has the token, which is returned. */
static char *goes_elsewhere(const struct node *n)
{
    REPLY r = {0};

    fetch(n, &r, "bank", "b-1");
    char *token = token_in(&r, 0);
    hand_in(n, "bank", "b-1", token, "\"elsewhere\": true", "accepted");
    return token;
}

static void fails_elsewhere(const struct node *n)
{
    char *token = goes_elsewhere(n);
    REPLY r = {0};
    char path[300];

    (void)snprintf(path, sizeof path, "/v1/attempts/%s", token);
    post(n, &r, path, "{\"error\": {\"code\": \"no\", \"message\": \"not yet\"}}");
    EXPECT_TEXT(&r, "status", "accepted");
    free(token);
}

/* The service has taken it on, so it is there. What others make of it does not count. */
static void what_goes_elsewhere_went_well(void **state)
{
    REPLY r = {0};
    (void)state;

    rule_is(&node, "200ms");
    for (char id[] = "off-0"; id[4] < '3'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_elsewhere(&node);
    get(&node, &r, "/v1/agents/bank");
    EXPECT_TEXT(&r, "breaker.state", "closed");

    by_hand(&node, "closed");
    for (char id[] = "off-3"; id[4] < '6'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    free(goes_elsewhere(&node)); /* a trial, some time later */
    wait_for_breaker(&node, "closed");
    succeeds_once(&node); /* the other two go out */
    succeeds_once(&node);
}

static void comes_from_elsewhere(const struct node *n, char *token)
{
    REPLY r = {0};
    char path[256];

    (void)snprintf(path, sizeof path, "/v1/attempts/%s", token);
    free(token);
    post(n, &r, path, "{\"output\": 1}");
    EXPECT_TEXT(&r, "status", "accepted");
}

/* A trial that goes elsewhere was answered: its result may take days. */
static void what_goes_elsewhere_closes_it(void **state)
{
    char *token = NULL;
    (void)state;

    rule_is(&node, "200ms");
    for (char id[] = "els-0"; id[4] < '4'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    wait_for_breaker(&node, "half-open");
    token = goes_elsewhere(&node);
    wait_for_breaker(&node, "closed");
    for (int i = 0; i < 3; i++)
        succeeds_once(&node);
    comes_from_elsewhere(&node, token);
    for (char id[] = "els-0"; id[4] < '4'; id[4]++)
        wait_for_state(&node, id, "processed");
}

/* What somebody else ends takes as long as it takes. */
static void what_ends_elsewhere_is_not_slow(void **state)
{
    char *tokens[3];
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/agents/bank",
        "{\"breaker\": {\"calls\": 3, \"slow\": \"1ms\", \"slow_calls\": 1}}");
    EXPECT(&r, 200);
    by_hand(&node, "closed");
    for (char id[] = "far-0"; id[4] < '3'; id[4]++)
        submit(&node, "pay", id);
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        tokens[i] = goes_elsewhere(&node);
    sleep_ms(5);
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        comes_from_elsewhere(&node, tokens[i]);
    for (char id[] = "far-0"; id[4] < '3'; id[4]++)
        wait_for_state(&node, id, "processed");
    wait_for_breaker(&node, "closed");
}

/* Trials at which the service hangs keep nobody waiting until they are given up. */
static void trials_that_hang_let_others_try(void **state)
{
    REPLY r = {0};
    (void)state;

    rule_is(&node, "200ms");
    for (char id[] = "hng-0"; id[4] < '4'; id[4]++)
        submit(&node, "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    fetch(&node, &r, "bank", "b-1"); /* and is not answered, for ten minutes if need be */
    char *hangs = token_in(&r, 0);
    reply_fini(&r);
    post(&node, &r, "/v1/agents/bank/work",
         "{\"instance\": \"b-1\", \"max\": 1, \"wait\": \"1m\", \"holding\": [\"%s\"]}", hangs);
    char *token = token_in(&r, 0);
    hand_in(&node, "bank", "b-1", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_breaker(&node, "closed");
    hand_in(&node, "bank", "b-1", hangs, "\"output\": 1", "accepted");
    free(hangs);
    for (int i = 0; i < 2; i++)
        succeeds_once(&node);
    for (char id[] = "hng-0"; id[4] < '4'; id[4]++)
        wait_for_state(&node, id, "processed");
}

/* As many trials as are allowed are at work again when one has ended, while its task goes on. */
static void a_trial_that_has_ended_gives_way(void **state)
{
    REPLY r = {0};
    char *tokens[2];
    (void)state;

    (void)define(&node, "both",
                 "\"steps\": [{\"name\": \"charge\", \"agent\": \"bank\", \"action\": \"charge\", "
                 "\"undo\": \"none\", \"retry\": {\"attempts\": 3, \"wait\": \"1h\", \"max_wait\": "
                 "\"1h\"}}, {\"name\": \"ship\", \"agent\": \"depot\", \"action\": \"ship\", "
                 "\"undo\": \"none\"}]");
    put(&node, &r, "/v1/agents/bank",
        "{\"breaker\": {\"calls\": 3, \"failures\": 60, \"wait\": \"200ms\", \"max_wait\": \"1h\", "
        "\"trials\": 2}}");
    EXPECT(&r, 200);
    by_hand(&node, "closed");
    for (char id[] = "two-0"; id[4] < '3'; id[4]++)
        submit(&node, "both", id);
    for (int i = 0; i < 3; i++)
        fails_once(&node);
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        reply_fini(&r);
        fetch(&node, &r, "bank", i == 0 ? "b-1" : "b-2");
        tokens[i] = token_in(&r, 0);
    }
    int parked = ask(&node, "POST", "/v1/agents/depot/work", "application/json",
                     SLICE("{\"instance\": \"d-1\", \"max\": 1, \"wait\": \"5m\"}"));
    wait_for_parked(&node, 1);
    hand_in(&node, "bank", "b-1", tokens[0], "\"output\": 1", "accepted");
    reply_fini(&r);
    hear(parked, &r); /* its task stays in memory */
    char *ships = token_in(&r, 0);
    succeeds_once(&node); /* the third, while the second trial is at work: it closes */
    wait_for_breaker(&node, "closed");
    hand_in(&node, "bank", "b-2", tokens[1], "\"output\": 1", "accepted");
    hand_in(&node, "depot", "d-1", ships, "\"output\": 1", "accepted");
    for (int i = 0; i < 2; i++)
        serve_step(&node, "depot", "d-1", "1");
    for (char id[] = "two-0"; id[4] < '3'; id[4]++)
        wait_for_state(&node, id, "processed");
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        free(tokens[i]);
    free(ships);
}

static void by_hand_it_stays_through_restarts(void **state)
{
    REPLY r = {0};
    (void)state;

    by_hand(&node, "open");
    submit(&node, "pay", "hand");
    gives_nothing(&node);
    node_kill(&node);
    node_start(&node, FLAGS("--drain", "1s"));
    gives_nothing(&node);
    get(&node, &r, "/v1/agents/bank");
    EXPECT_TEXT(&r, "breaker.state", "open");
    EXPECT_RAW(&r, "breaker.by_hand", "true");
    EXPECT_RAW(&r, "breaker.until", "null");
    reply_fini(&r);
    get(&node, &r, "/v1/agents");
    EXPECT(&r, 200);
    by_hand(&node, "closed");
    succeeds_once(&node);
    wait_for_state(&node, "hand", "processed");
}

/* ---- several nodes ---- */

static int begin_two(void **state)
{
    (void)state;
    nodes_init(nodes, 2);
    node_start(&nodes[0], FLAGS("--drain", "1s"));
    (void)define(&nodes[0], "pay", slow_to_retry);
    node_start(&nodes[1], FLAGS("--drain", "1s"));
    memcpy(nodes[1].token, nodes[0].token, sizeof nodes[0].token);
    return 0;
}

static int end_two(void **state)
{
    (void)state;
    node_fini(&nodes[0]);
    node_fini(&nodes[1]);
    return 0;
}

static void wait_for_rule(const struct node *n, int64_t calls)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        get(n, &r, "/v1/agents/bank");
        if (r.status == 200 && int_at(&r, "settings.breaker.calls") == calls)
            return;
        CHECK(steady_ms() < until, "it does not hear of the settings: %.*s", SLICE_ARG(r.body));
        sleep_ms(20);
    }
}

static void two_nodes_follow_each_other(void **state)
{
    (void)state;
    rule_is(&nodes[0], "1h");
    wait_for_rule(&nodes[1], 3);
    for (char id[] = "two-0"; id[4] < '4'; id[4]++)
        submit(&nodes[0], "pay", id);
    for (int i = 0; i < 3; i++)
        fails_once(&nodes[0]);
    wait_for_breaker(&nodes[0], "open");
    wait_for_breaker(&nodes[1], "open");
    gives_nothing(&nodes[1]);
    by_hand(&nodes[1], "closed");
    wait_for_breaker(&nodes[0], "closed");
    for (int i = 0; i < 4; i++) /* node 0 remembers what failed there */
        succeeds_once(&nodes[0]);
    for (char id[] = "two-0"; id[4] < '4'; id[4]++)
        wait_for_state(&nodes[0], id, "processed");
}

static void held_by_breaker(const struct node *n, const char *path)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        get(n, &r, "%s", path);
        EXPECT(&r, 200);
        for (int i = 0;; i++) {
            char name[48];
            (void)snprintf(name, sizeof name, "agents.%d.agent", i);
            if (!at(&r, name))
                break;
            if (strcmp(text_at(&r, name), "bank") != 0)
                continue;
            (void)snprintf(name, sizeof name, "agents.%d.waiting_steps", i);
            bool none = int_at(&r, name) == 0;
            (void)snprintf(name, sizeof name, "agents.%d.held_by", i);
            EXPECT_TEXT(&r, name, "breaker");
            if (none)
                return;
        }
        CHECK(steady_ms() < until, "they stay in memory: %.*s", SLICE_ARG(r.body));
        sleep_ms(50);
    }
}

/* What is in the way is told of tasks, too, that wait in the store and nowhere else. */
static void what_waits_in_the_store_is_held_as_well(void **state)
{
    (void)state;
    by_hand(&node, "open");
    submit(&node, "pay", "far");
    held_by_breaker(&node, "/v1/agents");
    held_by_breaker(&node, "/v1/stats");
    node_kill(&node);
    node_start(&node, FLAGS("--drain", "1s"));
    gives_nothing(&node);
    held_by_breaker(&node, "/v1/agents");
    held_by_breaker(&node, "/v1/stats");
    by_hand(&node, "closed");
    succeeds_once(&node);
    wait_for_state(&node, "far", "processed");
}

static void a_hand_on_one_node_holds_all(void **state)
{
    (void)state;
    by_hand(&nodes[0], "open");
    wait_for_breaker(&nodes[1], "open");
    node_kill(&nodes[1]);
    node_start(&nodes[1], FLAGS("--drain", "1s"));
    memcpy(nodes[1].token, nodes[0].token, sizeof nodes[0].token);
    submit(&nodes[1], "pay", "held");
    gives_nothing(&nodes[1]);
    by_hand(&nodes[0], "closed");
    succeeds_once(&nodes[1]);
    wait_for_state(&nodes[0], "held", "processed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(settings_are_kept),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(an_agent_that_nobody_knows_has_no_breaker),
        cmocka_unit_test(an_outage_costs_no_tries_and_no_time),
        cmocka_unit_test(trials_close_it_or_do_not),
        cmocka_unit_test(what_is_at_work_is_spared),
        cmocka_unit_test(what_goes_elsewhere_went_well),
        cmocka_unit_test(what_goes_elsewhere_closes_it),
        cmocka_unit_test(what_ends_elsewhere_is_not_slow),
        cmocka_unit_test(trials_that_hang_let_others_try),
        cmocka_unit_test(a_trial_that_has_ended_gives_way),
        cmocka_unit_test(by_hand_it_stays_through_restarts),
        cmocka_unit_test(what_waits_in_the_store_is_held_as_well),
    };
    const struct CMUnitTest together[] = {
        cmocka_unit_test(two_nodes_follow_each_other),
        cmocka_unit_test(a_hand_on_one_node_holds_all),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests_name("breakers", alone, begin, node_end)
           + cmocka_run_group_tests_name("breakers of two nodes", together, begin_two, end_two);
}
