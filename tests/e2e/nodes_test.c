/* Several nodes on one database: the distribution of work, and what happens when a node fails.
 * node-starts_test.c tests their start. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "postgres/cluster.h"

enum { NODES = 2, LOCKED = 12 };

#define FAST FLAGS("--drain", "2m")

static const char *intact; /* the program */
static struct node nodes[NODES];
static struct node *const a = &nodes[0];
static struct node *const b = &nodes[1];

/* Two steps, each with an agent of its own, and no hurry. */
static const char *const two_steps =
    "\"steps\": [{\"name\": \"x\", \"agent\": \"one\", \"action\": \"x\", \"complete_by\": "
    "\"10m\", "
    "\"undo\": \"none\"}, {\"name\": \"y\", \"agent\": \"two\", \"action\": \"y\", "
    "\"complete_by\": \"10m\", \"undo\": \"none\"}]";

static void open_nodes(const char *const *flags)
{
    nodes_init(nodes, NODES);
    node_start(a, flags);
    (void)define(a, "pair", two_steps);
    (void)define(a, "fair",
                 "\"steps\": [{\"name\": \"x\", \"agent\": \"fair\", \"action\": \"x\", "
                 "\"complete_by\": \"10m\", \"undo\": \"none\"}]");
    (void)define(a, "short",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"x\", \"agent\": \"short\", "
                 "\"action\": \"x\", \"complete_by\": \"1s\", \"retry\": {\"attempts\": 1}, "
                 "\"undo\": \"none\"}]");
    (void)define(a, "loud",
                 "\"steps\": [{\"name\": \"x\", \"agent\": \"loud\", \"action\": \"x\", "
                 "\"complete_by\": \"10m\", \"heartbeat\": \"500ms\", \"undo\": \"none\"}]");
    for (size_t i = 1; i < NODES; i++) { /* after the definition: each has read it */
        node_start(&nodes[i], flags);
        memcpy(nodes[i].token, a->token, sizeof a->token);
    }
}

static int begin(void **state)
{
    (void)state;
    open_nodes(FAST);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        node_fini(&nodes[i]);
    return 0;
}

/* ---- what a node says of the others ---- */

/* nodes.N of that name; -1 */
static int place_of(const struct reply *r, const char *name)
{
    char path[40];

    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "nodes.%d", i);
        if (!at(r, path))
            return -1;
        (void)snprintf(path, sizeof path, "nodes.%d.node", i);
        if (strcmp(text_at(r, path), name) == 0)
            return i;
    }
}

static bool node_is(const struct node *asked, const char *name, const char *field, const char *json)
{
    char path[60];
    REPLY r = {0};

    get(asked, &r, "/v1/nodes");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "self", asked->name);
    int place = place_of(&r, name);
    (void)snprintf(path, sizeof path, "nodes.%d.%s", place, field);
    return place >= 0 && raw_is(&r, path, json);
}

static void wait_for_node(const struct node *asked, const char *name, const char *field,
                          const char *json)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (!node_is(asked, name, field, json)) {
        CHECK(steady_ms() < until, "%s: %s of %s does not become %s", asked->name, field, name,
              json);
        sleep_ms(20);
    }
}

/* The one of both whose supervisor leads. */
static struct node *leader(void)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        for (size_t i = 0; i < NODES; i++)
            if (nodes[i].pid && node_is(&nodes[i], nodes[i].name, "leads", "true"))
                return &nodes[i];
        CHECK(steady_ms() < until, "nobody leads");
        sleep_ms(20);
    }
}

static struct node *other_than(const struct node *n)
{
    return n == a ? b : a;
}

static void nodes_know_each_other(void **state)
{
    char url[50];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < NODES; i++)
        for (size_t k = 0; k < NODES; k++) {
            wait_for_node(&nodes[i], nodes[k].name, "alive", "true");
            (void)snprintf(url, sizeof url, "\"http://127.0.0.1:%d\"", nodes[k].port);
            wait_for_node(&nodes[i], nodes[k].name, "url", url);
        }
    get(b, &r, "/v1/nodes");
    CHECK(at(&r, "nodes")->count == NODES && place_of(&r, "a") == 0, "%.*s", SLICE_ARG(r.body));
    EXPECT_INT(&r, "nodes.0.boot", 1);
    EXPECT_TEXT(&r, "nodes.0.roles.0", "scheduler");
    EXPECT_TEXT(&r, "nodes.0.roles.1", "supervisor");
    EXPECT_RAW(&r, "nodes.0.draining", "false");
    CHECK(time_at(&r, "nodes.0.started_at") > 0 && time_at(&r, "nodes.0.lease_until") > 0, "%.*s",
          SLICE_ARG(r.body));
    const struct node *leads = leader();
    wait_for_node(other_than(leads), leads->name, "leads", "true");
    wait_for_node(other_than(leads), other_than(leads)->name, "leads", "false");
}

/* "intact 0.1.0+48f1708a0b1c" of the program itself, as node a has it of itself. */
static void builds_are_told_apart(void **state)
{
    char command[300];
    char said[80] = "";
    char told[200];
    REPLY r = {0};
    (void)state;

    (void)snprintf(command, sizeof command, "%s --version", intact);
    FILE *f = popen(command, "re");
    CHECK(f && fgets(said, sizeof said, f) && pclose(f) == 0, "%s", command);
    get(a, &r, "/v1/nodes");
    bool has_build = *text_at(&r, "nodes.0.build");
    (void)snprintf(told, sizeof told, "intact %s%s%s\n", text_at(&r, "nodes.0.version"),
                   has_build ? "+" : "", text_at(&r, "nodes.0.build"));
    CHECK(strcmp(said, told) == 0, "%s%s", said, told);
    wait_for_node(b, "a", "alive", "true");
    free(sql(a, "UPDATE node SET version = '0.1.0+0123456789ab-dirty' WHERE name = 'a'"));
    wait_for_node(b, "a", "build", "\"0123456789ab-dirty\"");
    wait_for_node(b, "a", "version", "\"0.1.0\"");
    free(sql(a, "UPDATE node SET version = '0.0.9' WHERE name = 'a'"));
    wait_for_node(b, "a", "build", "null"); /* one that does not say it yet */
    wait_for_node(b, "a", "version", "\"0.0.9\"");
}

/* ---- one does what another began ---- */

static void any_node_takes_what_is_for_any_of_them(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "anywhere");
    fetch(b, &r, "one", "i");
    char *token = token_in(&r, 0);
    hand_in(a, "one", "i", token, "\"output\": 1", "accepted");
    hand_in(b, "one", "i", token, "\"output\": 1", "repeated");
    free(token);
    fetch(a, &r, "two", "i");
    token = token_in(&r, 0);
    hand_in(b, "two", "i", token, "\"output\": 2", "accepted");
    free(token);
    wait_for_state(a, "anywhere", "processed");
    wait_for_state(b, "anywhere", "processed");
}

static void end_by_token(const struct node *n, const char *token, const char *status)
{
    const struct node stranger = as(n, "");
    char path[300];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/attempts/%s", token);
    post(&stranger, &r, path, "{\"output\": 1}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", status);
}

static void any_node_takes_what_comes_from_elsewhere(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "elsewhere");
    fetch(b, &r, "one", "i");
    char *token = token_in(&r, 0);
    hand_in(a, "one", "i", token, "\"elsewhere\": true", "accepted");
    hand_in(b, "one", "i", token, "\"elsewhere\": true", "repeated");
    end_by_token(b, token, "accepted");
    end_by_token(a, token, "repeated");
    free(token);
    fetch(a, &r, "two", "i"); /* nobody said that this one is elsewhere */
    token = token_in(&r, 0);
    end_by_token(b, token, "accepted");
    free(token);
    wait_for_state(a, "elsewhere", "processed");
}

static void what_is_elsewhere_takes_nothing_of_a_limit(void **state)
{
    REPLY r = {0};
    (void)state;

    put(a, &r, "/v1/agents/fair", "{\"limits\": {\"concurrency\": 1}}"); /* of the first */
    submit(a, "fair", "far-1");
    fetch(a, &r, "fair", "i");
    char *token = token_in(&r, 0);
    hand_in(b, "fair", "i", token, "\"elsewhere\": true", "accepted");
    free(token);
    post(a, &r, "/v1/agents/fair/work", "{\"instance\": \"i\", \"max\": 1, \"holding\": []}");
    submit(a, "fair", "far-2");
    if (!at(&r, "requests.0"))
        fetch(a, &r, "fair", "i");
    EXPECT_TEXT(&r, "requests.0.task", "far-2");
}

/* A database takes no texts that are not UTF-8. Anybody can send such a token: it is one that there
 * is not, as any other. */
static void a_token_that_is_no_text_troubles_nobody(void **state)
{
    static const char *const ids[] = {"%ff", "a%c3", "%ed%a0%80", "'%22;--"};
    const struct node stranger = as(a, "");
    char path[100];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        (void)snprintf(path, sizeof path, "/v1/attempts/%s~0~f1~%022d", ids[i], 0);
        post(&stranger, &r, path, "{\"output\": 1}");
        expect_problem(&r, 404, "unknown-attempt");
    }
    CHECK(!node_log_has(a, "event=store_trouble"), "the store is in trouble");
}

/* Each has an agent, and neither gets it all: what waits for it is claimed as there is room. */
static void both_work_when_both_have_agents(void **state)
{
    enum { TASKS = 60 };
    size_t done[NODES] = {0};
    REPLY r = {0};
    char id[20];
    (void)state;

    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(id, sizeof id, "fair-%d", i);
        submit(a, "fair", id);
    }
    while (done[0] + done[1] < TASKS) /* in turns: as fast as each other */
        for (size_t i = 0; i < NODES; i++) {
            post(&nodes[i], &r, "/v1/agents/fair/work",
                 "{\"instance\": \"f%zu\", \"max\": 1, \"wait\": \"1s\"}", i);
            EXPECT(&r, 200);
            if (!at(&r, "requests.0"))
                continue;
            char *token = token_in(&r, 0);
            hand_in(&nodes[i], "fair", i ? "f1" : "f0", token, "\"output\": 1", "accepted");
            free(token);
            done[i]++;
        }
    CHECK(done[0] > TASKS / 6 && done[1] > TASKS / 6, "%zu and %zu", done[0], done[1]);
}

/* ---- a node that dies ---- */

static void what_a_killed_node_had_goes_on_at_the_other(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "survives-1");
    submit(a, "pair", "survives-2");
    fetch(a, &r, "one", "i");
    char *out = token_in(&r, 0); /* of an attempt that runs while its node dies */
    char *task = strdup(text_at(&r, "requests.0.task"));
    CHECK(task, "no memory");
    int64_t killed_at = steady_ms();
    node_kill(a);
    hand_in(b, "one", "i", out, "\"output\": 1", "accepted");
    fetch(b, &r, "two", "i");
    EXPECT_TEXT(&r, "requests.0.task", task);
    fprintf(stderr, "the task whose result came goes on after %" PRId64 " ms\n",
            steady_ms() - killed_at);
    char *second = token_in(&r, 0);
    hand_in(b, "two", "i", second, "\"output\": 2", "accepted");
    fetch(b, &r, "one", "j"); /* the one that nobody touched */
    fprintf(stderr, "what the killed node held goes on after %" PRId64 " ms\n",
            steady_ms() - killed_at);
    char *third = token_in(&r, 0);
    hand_in(b, "one", "j", third, "\"output\": 1", "accepted");
    serve_step(b, "two", "j", "2");
    wait_for_state(b, "survives-1", "processed");
    wait_for_state(b, "survives-2", "processed");
    wait_for_node(b, "a", "alive", "false");
    task_of(b, &r, task);
    EXPECT_INT(&r, "failure_count", 0);
    node_start(a, FAST);
    wait_for_node(b, "a", "alive", "true");
    wait_for_node(a, "a", "boot", "2");
    free(out);
    free(task);
    free(second);
    free(third);
}

/* Its silence counts at the node that has it now. */
static int64_t open_tasks_at(const struct node *n, const char *name)
{
    char path[40];
    REPLY r = {0};

    get(n, &r, "/v1/tokens");
    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "tokens.%d.name", i);
        if (!at(&r, path))
            return -1;
        if (strcmp(text_at(&r, path), name) != 0)
            continue;
        (void)snprintf(path, sizeof path, "tokens.%d.use.open_tasks", i);
        return int_at(&r, path);
    }
}

/* Each counts what is stored, whoever took it in. */
static void open_tasks_are_bounded_at_all_nodes(void **state)
{
    REPLY r = {0};
    (void)state;

    post(a, &r, "/v1/tokens",
         "{\"name\": \"shop\", \"roles\": [\"submit\"], \"limits\": {\"open_tasks\": 3}}");
    EXPECT(&r, 201);
    const struct node at_a = as(a, text_at(&r, "token"));
    const struct node at_b = as(b, text_at(&r, "token"));
    submit(&at_a, "pair", "open-1");
    submit(&at_a, "pair", "open-2");
    WAIT_FOR(open_tasks_at(b, "shop") == 2, "b counts those of a");
    submit(&at_b, "pair", "open-3");
    post(&at_b, &r, "/v1/tasks", "{\"workflow\": \"pair\"}");
    expect_problem(&r, 429, "over-quota");
    WAIT_FOR(open_tasks_at(a, "shop") == 3, "a counts that of b");
    post(&at_a, &r, "/v1/tasks", "{\"workflow\": \"pair\"}");
    expect_problem(&r, 429, "over-quota");
}

/* The other node has seen nothing of the task: it finds it when its wait is over. */
static void a_wait_outlives_its_node(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(a, "nap", "\"steps\": [{\"name\": \"nap\", \"wait\": \"5s\"}]");
    submit(a, "nap", "nap-1");
    task_of(a, &r, "nap-1");
    EXPECT_TEXT(&r, "waiting_for", "@wait");
    node_kill(a);
    wait_for_state(b, "nap-1", "processed");
    task_of(b, &r, "nap-1");
    CHECK(time_at(&r, "ended_at") >= time_at(&r, "steps.0.wait_until"), "%.*s", SLICE_ARG(r.body));
    node_start(a, FAST);
}

/* The holder's node dies; the other one takes the task over, and its lock with it. */
static void a_lock_outlives_its_node(void **state)
{
    (void)state;

    (void)
        define(a, "locked",
               "\"lock\": {\"key\": \"k\"}, \"steps\": [{\"name\": \"nap\", \"wait\": \"200ms\"}]");
    for (int i = 0; i < LOCKED; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "locked-%d", i);
        submit(a, "locked", id);
    }
    for (int i = 0; i < 4; i++) {
        struct node *n = i % 2 ? b : a;
        sleep_ms(300);
        node_kill(n);
        node_start(n, FAST);
    }
    WAIT_FOR(sql_int(a, "SELECT count(*) FROM task WHERE workflow = 'locked' "
                        "AND state = 'processed'")
                 == LOCKED,
             "all had their turn");
    CHECK(sql_int(a, "SELECT count(*) FROM task_step AS s JOIN task_view AS t ON t.id = s.task "
                     "JOIN task_view AS o ON o.workflow = t.workflow AND o.id <> t.id "
                     "JOIN task_step AS u ON u.task = o.id AND u.name = s.name "
                     "WHERE t.workflow = 'locked' AND u.begun_at >= s.begun_at "
                     "AND u.begun_at < t.ended_at")
              == 0,
          "one after the other");
    CHECK(sql_int(a, "SELECT count(*) FROM lock_holder") == 0, "nobody holds it");
}

static void a_silent_attempt_ends_although_its_node_is_gone(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    (void)state;

    submit(a, "loud", "loud-1");
    fetch(a, &r, "loud", "i");
    char *token = token_in(&r, 0);
    node_kill(a);
    do {
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
        task_of(b, &r, "loud-1");
    } while (strcmp(text_at(&r, "steps.0.attempts.0.outcome"), "timed_out") != 0);
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "heartbeat");
    node_start(a, FAST);
    fetch(b, &r, "loud", "i");
    EXPECT_INT(&r, "requests.0.attempt", 2);
    char *second = token_in(&r, 0);
    end_by_token(a, second, "accepted");
    end_by_token(a, token, "late");
    wait_for_state(a, "loud-1", "processed");
    free(token);
    free(second);
}

static void what_nobody_hands_in_is_taken_over_with_its_node(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "silent");
    fetch(a, &r, "one", "i");
    char *token = token_in(&r, 0);
    node_kill(a);
    /* Only the owner sends again what an instance has lost: that it is b shows that b has it. */
    do {
        post(b, &r, "/v1/agents/one/work",
             "{\"instance\": \"i\", \"max\": 1, \"wait\": \"1s\", \"holding\": []}");
        EXPECT(&r, 200);
    } while (!at(&r, "requests.0"));
    EXPECT_TEXT(&r, "requests.0.token", token);
    char *owner = sql(b, "SELECT locked_by FROM task WHERE id = 'silent'");
    CHECK(strcmp(owner, "b/1") == 0, "owned by %s", owner);
    hand_in(b, "one", "i", token, "\"output\": 1", "accepted");
    serve_step(b, "two", "i", "2");
    wait_for_state(b, "silent", "processed");
    free(owner);
    free(token);
}

/* ---- a node that ends ---- */

static void a_drained_node_gives_up_what_it_has_at_once(void **state)
{
    struct node *leads = leader();
    struct node *stays = other_than(leads);
    REPLY r = {0};
    (void)state;

    submit(leads, "pair", "released");
    submit(leads, "pair", "out");
    fetch(leads, &r, "one", "i");
    char *token = token_in(&r, 0);
    char *task = strdup(text_at(&r, "requests.0.task"));
    CHECK(task, "no memory");
    node_signal(leads, SIGTERM);
    wait_for_node(stays, leads->name, "draining", "true");
    wait_for_node(stays, stays->name, "leads", "true"); /* while the other one waits yet */
    CHECK(node_wait(leads, 0) < 0, "it waits for a result");
    fetch(stays, &r, "one", "j"); /* what was not at work was released */
    char *second = token_in(&r, 0);
    CHECK(strcmp(text_at(&r, "requests.0.task"), task) != 0, "%s", task);
    hand_in(leads, "one", "i", token, "\"output\": 1", "accepted");
    int status = node_wait(leads, PATIENCE_MS);
    CHECK(status == 0, "wait status %x", (unsigned)status);
    CHECK(sql_int(stays, "SELECT count(*) FROM lease WHERE name LIKE 'node/%' AND until > "
                         "extract(epoch FROM now()) * 1000")
              == 1,
          "its lease was given up");
    hand_in(stays, "one", "j", second, "\"output\": 1", "accepted");
    serve_step(stays, "two", "i", "2");
    serve_step(stays, "two", "i", "2");
    wait_for_state(stays, "released", "processed");
    wait_for_state(stays, "out", "processed");
    free(token);
    free(task);
    free(second);
}

static void who_was_started_again_elsewhere_ends(void **state)
{
    struct node twin;
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "of-two");
    fetch(a, &r, "one", "i");
    char *token = token_in(&r, 0);
    node_twin(&twin, a);
    node_start(&twin, FAST);
    int status = node_wait(a, PATIENCE_MS);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %x", (unsigned)status);
    CHECK(node_log_has(a, "event=node_replaced node=a/1 by=a/2"), "the log says so");
    CHECK(node_log_has(a, "give each node its own name (--node)"), "and what to do");
    hand_in(&twin, "one", "i", token, "\"output\": 1", "accepted");
    serve_step(&twin, "two", "i", "1");
    wait_for_state(&twin, "of-two", "processed");
    node_stop(&twin);
    node_fini(&twin);
    free(token);
}

/* ---- the database is away ---- */

static void it_ends_while_the_database_is_away(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(a, "pair", "patient");
    cluster_kill();
    do /* until it has noticed */
        get(a, &r, "/readyz");
    while (r.status == 200);
    expect_problem(&r, 503, "store");
    for (get(b, &r, "/v1/nodes"); r.status != 503; get(b, &r, "/v1/nodes"))
        sleep_ms(100); /* it knows the list for a second */
    node_signal(a, SIGTERM);
    node_signal(b, SIGINT);
    int status = node_wait(a, PATIENCE_MS);
    CHECK(status == 0, "wait status %x", (unsigned)status);
    node_signal(b, SIGINT);
    status = node_wait(b, PATIENCE_MS);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGINT),
          "wait status %x", (unsigned)status);
    cluster_start();
    node_start(a, FAST);
    serve_step(a, "one", "i", "1");
    serve_step(a, "two", "i", "1");
    wait_for_state(a, "patient", "processed");
}

/* The process of the database that serves the store of the one node that runs. */
static pid_t backend_of(const struct node *n)
{
    pid_t pid =
        (pid_t)sql_int(n,
                       "SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'intact'");

    CHECK(pid > 1, "no process serves %s", n->name);
    return pid;
}

/* It has been asked, and says nothing. */
static void it_ends_while_the_database_is_silent(void **state)
{
    pid_t silent[2];
    (void)state;

    node_stop(b);
    for (int i = 0; i < 2; i++) { /* told once, and told twice */
        silent[i] = backend_of(a);
        CHECK(kill(silent[i], SIGSTOP) == 0, "stop %d", silent[i]);
        sleep_ms(1500); /* so that it asks: it does each second */
        node_signal(a, SIGTERM);
        if (i == 1) {
            sleep_ms(100);
            node_signal(a, SIGTERM);
        }
        int status = node_wait(a, PATIENCE_MS);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (i ? 128 + SIGTERM : 0),
              "round %d: wait status %x", i, (unsigned)status);
        (void)kill(silent[i], SIGCONT);
        node_start(a, FLAGS("--drain", "1s"));
    }
}

static void a_start_that_fails_takes_nothing_from_the_node(void **state)
{
    CLEANUP(buf_fini) struct buf said = {0};
    char listen[40];
    char url[50];
    (void)state;

    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", a->port);
    (void)snprintf(url, sizeof url, "\"http://%s\"", listen);
    int status = serve_briefly(FLAGS("--data", a->data, "--store", cluster_conninfo(), "--schema",
                                     a->schema, "--node", "a", "--listen", listen),
                               &said);
    CHECK(status == 1 && strstr(said.ptr, "address already in use"), "%d: %s", status, said.ptr);
    sleep_ms(1100); /* a list is good for a second */
    CHECK(node_is(b, "a", "url", url) && node_is(b, "a", "alive", "true"), "it is still there");
    CHECK(node_is(b, "a", "boot", "1"), "and is the same");
    CHECK(node_wait(a, 0) < 0, "it runs");
}

/* ---- leading ---- */

/* What an observer sees of the lease to lead: epochs only rise, and each has one holder. */
struct seen {
    int64_t epoch;
    char holder[40];
};

static void look_at_lead(const struct node *n, struct seen *s)
{
    char *row = sql(n, "SELECT epoch || ' ' || holder FROM lease WHERE name = 'supervisor'");
    char *holder = strchr(row, ' ');
    int64_t epoch = strtoll(row, NULL, 10);

    CHECK(holder, "lease: \"%s\"", row);
    CHECK(epoch >= s->epoch, "epoch %" PRId64 " after %" PRId64, epoch, s->epoch);
    CHECK(epoch > s->epoch || strcmp(holder + 1, s->holder) == 0, "epoch %" PRId64 " of %s and %s",
          epoch, s->holder, holder + 1);
    s->epoch = epoch;
    (void)snprintf(s->holder, sizeof s->holder, "%s", holder + 1);
    free(row);
}

static void wait_until_it_leads(const struct node *n, struct seen *s)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    size_t len = strlen(n->name);

    do {
        CHECK(steady_ms() < until, "%s does not lead; %s does", n->name, s->holder);
        sleep_ms(20);
        look_at_lead(n, s);
    } while (strncmp(s->holder, n->name, len) != 0 || s->holder[len] != '/');
}

static void another_leads_when_the_leader_is_killed(void **state)
{
    struct node *leads = leader();
    struct seen s = {0};
    (void)state;

    look_at_lead(leads, &s);
    int64_t killed_at = steady_ms();
    node_kill(leads);
    wait_until_it_leads(other_than(leads), &s);
    fprintf(stderr, "another leads after %" PRId64 " ms\n", steady_ms() - killed_at);
    wait_for_node(other_than(leads), other_than(leads)->name, "leads", "true");
    node_start(leads, FAST);
}

/* Stopped with work in its hands, for longer than its leases; others do its work meanwhile. */
static void a_leader_that_wakes_up_does_no_harm(void **state)
{
    struct seen s = {0};
    char id[20];
    REPLY r = {0};
    (void)state;

    for (int round = 0; round < 3; round++) {
        struct node *leads = leader();
        struct node *stays = other_than(leads);
        look_at_lead(leads, &s);
        submit(a, "pair", round == 0 ? "woken-0" : round == 1 ? "woken-1" : "woken-2");
        (void)snprintf(id, sizeof id, "overdue-%d", round);
        submit(a, "short", id);
        fetch(leads, &r, "short", "never-answers");
        fetch(leads, &r, "one", "i");
        char *token = token_in(&r, 0);
        node_signal(leads, SIGSTOP);
        wait_until_it_leads(stays, &s);
        hand_in(stays, "one", "i", token, "\"output\": 1", "accepted");
        wait_for_state(stays, id, "error"); /* the new leader found it overdue */
        node_signal(leads, SIGCONT);
        fetch(stays, &r, "two", "i");
        char *second = token_in(&r, 0);
        hand_in(leads, "two", "i", second, "\"output\": 2", "accepted");
        (void)snprintf(id, sizeof id, "woken-%d", round);
        wait_for_state(leads, id, "processed");
        task_of(leads, &r, id);
        EXPECT_INT(&r, "failure_count", 0);
        CHECK(at(&r, "steps.0.attempts")->count == 1 && at(&r, "steps.1.attempts")->count == 1,
              "%.*s", SLICE_ARG(r.body));
        look_at_lead(stays, &s);
        CHECK(strncmp(s.holder, stays->name, 1) == 0, "who was awake leads on, not %s", s.holder);
        (void)snprintf(id, sizeof id, "overdue-%d", round);
        task_of(stays, &r, id);
        EXPECT_INT(&r, "failure_count", 1);
        free(token);
        free(second);
    }
}

/* ---- roles ---- */

static void a_node_without_scheduler_only_supervises(void **state)
{
    static const char *const paths[] = {"/v1/agents/one/work", "/v1/agents/one/heartbeats",
                                        "/v1/tasks",           "/v1/tasks/t/retry",
                                        "/v1/tasks/t/skip",    "/v1/tasks/t/undo",
                                        "/v1/tasks/t/cancel",  "/v1/tasks/t/pause",
                                        "/v1/tasks/t/resume",  "/v1/tasks/t/correct",
                                        "/v1/tasks/t/supply",  "/v1/tasks/t/resolve",
                                        "/v1/tasks/t/close",   "/v1/tasks/t/reopen",
                                        "/v1/attempts/t"};
    char where[80];
    REPLY r = {0};
    (void)state;

    node_stop(b);
    node_start(b, FLAGS("--roles", "supervisor", "--advertise", "http://watch.example.org:81"));
    node_stop(a);
    node_start(a, FLAGS("--roles", "scheduler"));
    wait_for_node(a, "b", "leads", "true");
    wait_for_node(a, "b", "roles", "[\"supervisor\"]");
    wait_for_node(a, "b", "url", "\"http://watch.example.org:81\"");
    wait_for_node(b, "a", "roles", "[\"scheduler\"]");
    wait_for_node(b, "a", "alive", "true");
    (void)snprintf(where, sizeof where, "alive: a (http://127.0.0.1:%d)", a->port);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        post(b, &r, paths[i], "{}");
        expect_problem(&r, 503, "not-a-scheduler");
        CHECK(strstr(text_at(&r, "detail"), where), "%s", text_at(&r, "detail"));
    }
    submit(a, "pair", "seen-by-both");
    task_of(b, &r, "seen-by-both");
    static const char *const readings[] = {"/healthz",  "/readyz",   "/metrics",     "/v1/agents",
                                           "/v1/stats", "/v1/tasks", "/v1/workflows"};
    for (size_t i = 0; i < COUNT_OF(readings); i++) {
        get(b, &r, "%s", readings[i]);
        EXPECT(&r, 200);
    }
    CHECK(sql_int(b, "SELECT count(*) FROM task WHERE locked_by LIKE 'b/%'") == 0, "claims none");
    serve_step(a, "one", "i", "1");
    serve_step(a, "two", "i", "1");
    wait_for_state(b, "seen-by-both", "processed");
    node_kill(b);
    wait_for_node(a, "b", "alive", "false");
    wait_for_node(a, "a", "leads", "false");
    look_at_lead(a, &(struct seen){0});
    char *holder = sql(a, "SELECT holder FROM lease WHERE name = 'supervisor'");
    CHECK(strncmp(holder, "b/", 2) == 0, "a node without supervisor never leads: %s", holder);
    free(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_know_each_other, begin, end),
        cmocka_unit_test_setup_teardown(builds_are_told_apart, begin, end),
        cmocka_unit_test_setup_teardown(any_node_takes_what_is_for_any_of_them, begin, end),
        cmocka_unit_test_setup_teardown(any_node_takes_what_comes_from_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(what_is_elsewhere_takes_nothing_of_a_limit, begin, end),
        cmocka_unit_test_setup_teardown(a_token_that_is_no_text_troubles_nobody, begin, end),
        cmocka_unit_test_setup_teardown(open_tasks_are_bounded_at_all_nodes, begin, end),
        cmocka_unit_test_setup_teardown(a_wait_outlives_its_node, begin, end),
        cmocka_unit_test_setup_teardown(a_lock_outlives_its_node, begin, end),
        cmocka_unit_test_setup_teardown(a_silent_attempt_ends_although_its_node_is_gone, begin,
                                        end),
        cmocka_unit_test_setup_teardown(both_work_when_both_have_agents, begin, end),
        cmocka_unit_test_setup_teardown(what_a_killed_node_had_goes_on_at_the_other, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_hands_in_is_taken_over_with_its_node, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_drained_node_gives_up_what_it_has_at_once, begin, end),
        cmocka_unit_test_setup_teardown(who_was_started_again_elsewhere_ends, begin, end),
        cmocka_unit_test_setup_teardown(it_ends_while_the_database_is_away, begin, end),
        cmocka_unit_test_setup_teardown(it_ends_while_the_database_is_silent, begin, end),
        cmocka_unit_test_setup_teardown(a_start_that_fails_takes_nothing_from_the_node, begin, end),
        cmocka_unit_test_setup_teardown(another_leads_when_the_leader_is_killed, begin, end),
        cmocka_unit_test_setup_teardown(a_leader_that_wakes_up_does_no_harm, begin, end),
        cmocka_unit_test_setup_teardown(a_node_without_scheduler_only_supervises, begin, end),
    };

    kit_program(argc, argv);
    intact = argv[1];
    return cmocka_run_group_tests_name("several nodes", tests, NULL, NULL);
}
