/*
 * Agents and clients of several nodes: an agent with one address that finds the others, a client
 * with several. Nodes start, end, drain, and are killed; no result is lost.
 */

#include <intact/agent.h>
#include <intact/client.h>
#include <intact/ledger.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { NODES = 3, PLACES = 8 };

static const char *program;
static struct node nodes[NODES];
static struct node *const a = &nodes[0];
static struct node *const b = &nodes[1];
static struct node *const c = &nodes[2];

static const char *const two_steps =
    "\"steps\": [{\"name\": \"x\", \"agent\": \"reach\", \"action\": \"x\", \"complete_by\": "
    "\"10m\", \"undo\": \"none\"}, {\"name\": \"y\", \"agent\": \"reach\", \"action\": \"y\", "
    "\"complete_by\": \"10m\", \"undo\": \"none\"}]";

/* ---- nodes ---- */

static int begin(void **state)
{
    (void)state;
    nodes_init(nodes, NODES);
    node_start(a, FLAGS("--drain", "2m"));
    (void)define(a, "reach", two_steps);
    for (size_t i = 1; i < NODES; i++) {
        node_start(&nodes[i], FLAGS("--drain", "2m"));
        memcpy(nodes[i].token, a->token, sizeof a->token);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        node_fini(&nodes[i]);
    return 0;
}

static void start_again(struct node *n)
{
    node_start(n, FLAGS("--drain", "2m"));
    memcpy(n->token, a->token, sizeof a->token);
}

/* Addresses of all nodes, beginning with the i-th. */
static void urls_from(size_t i, char ret[200])
{
    ret[0] = 0;
    for (size_t k = 0; k < NODES; k++)
        (void)snprintf(ret + strlen(ret), 200 - strlen(ret), "%shttp://127.0.0.1:%d", k ? "," : "",
                       nodes[(i + k) % NODES].port);
}

/* ---- the agent: each effect is a row ---- */

struct agent {
    struct intact_agent *agent;
    struct intact_ledger *ledger;
    pthread_t thread;
    enum intact_agent_result result;
    char dir[64], path[80];
};

static atomic_bool gate = true;
static atomic_uint at_work;

static void take_effect(struct intact_request *r, void *arg)
{
    struct agent *g = arg;
    sqlite3_stmt *st = NULL;

    atomic_fetch_add(&at_work, 1);
    while (!atomic_load(&gate) && !intact_request_should_stop(r))
        sleep_ms(1);
    atomic_fetch_sub(&at_work, 1);
    if (!intact_ledger_begin(g->ledger, r))
        return;
    int rc = sqlite3_prepare_v2(intact_ledger_db(g->ledger), "INSERT INTO done VALUES (?1, ?2)", -1,
                                &st, NULL);
    CHECK(rc == SQLITE_OK, "%s", sqlite3_errstr(rc));
    sqlite3_bind_text(st, 1, intact_request_task(r), -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, intact_request_step(r), -1, SQLITE_STATIC);
    rc = sqlite3_step(st);
    CHECK(rc == SQLITE_DONE, "%s", sqlite3_errstr(rc));
    sqlite3_finalize(st);
    if (intact_ledger_commit(g->ledger, r, "1"))
        intact_answer(r, "1");
}

static void *run_agent(void *arg)
{
    struct agent *g = arg;

    g->result = intact_agent_run(g->agent);
    return NULL;
}

static void agent_start(struct agent *g, const char *urls)
{
    char why[300];

    (void)snprintf(g->dir, sizeof g->dir, "/tmp/intact-reach-XXXXXX");
    CHECK(mkdtemp(g->dir), "a folder");
    (void)snprintf(g->path, sizeof g->path, "%s/ledger.db", g->dir);
    g->ledger = intact_ledger_open(g->path, why, sizeof why);
    CHECK(g->ledger, "%s", why);
    int rc = sqlite3_exec(intact_ledger_db(g->ledger), "CREATE TABLE done(task TEXT, step TEXT)",
                          NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK, "%s", sqlite3_errstr(rc));
    g->agent = intact_agent_new("reach");
    intact_agent_on(g->agent, "x", INTACT_FORWARD, take_effect, g);
    intact_agent_on(g->agent, "y", INTACT_FORWARD, take_effect, g);
    intact_agent_set_server(g->agent, urls);
    intact_agent_set_token(g->agent, a->token);
    intact_agent_set_instance(g->agent, "reach-1");
    intact_agent_set_concurrency(g->agent, PLACES);
    CHECK(pthread_create(&g->thread, NULL, run_agent, g) == 0, "a thread");
}

/* How many effects there are of so many keys. */
static void agent_end(struct agent *g, int *ret_effects, int *ret_keys)
{
    sqlite3_stmt *st = NULL;

    intact_agent_stop_one(g->agent);
    pthread_join(g->thread, NULL);
    CHECK(g->result == INTACT_AGENT_STOPPED, "ended %d", (int)g->result);
    intact_agent_free(g->agent);
    int rc = sqlite3_prepare_v2(intact_ledger_db(g->ledger),
                                "SELECT count(*), count(DISTINCT task || '/' || step) FROM done",
                                -1, &st, NULL);
    CHECK(rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW, "the ledger");
    *ret_effects = sqlite3_column_int(st, 0);
    *ret_keys = sqlite3_column_int(st, 1);
    sqlite3_finalize(st);
    intact_ledger_close(g->ledger);
    char command[100];
    (void)snprintf(command, sizeof command, "rm -r %s", g->dir);
    CHECK(system(command) == 0, "%s", command);
}

static void wait_for_work(unsigned count)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (atomic_load(&at_work) < count) {
        CHECK(steady_ms() < until, "%u at work, not %u", atomic_load(&at_work), count);
        sleep_ms(5);
    }
}

/* The agent has a call parked there. */
static void wait_for_call(const struct node *n)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};

    do {
        get(n, &r, "/v1/agents");
        CHECK(steady_ms() < until, "%s: %.*s", n->name, SLICE_ARG(r.body));
        sleep_ms(5);
    } while (!memmem(r.body.ptr, r.body.len, "\"parked_calls\":1", 16));
}

/* ---- the client ---- */

static void submit_all(struct intact_client *cl, const char *prefix, int from, int to)
{
    char task[200];

    for (int i = from; i < to; i++) {
        int64_t until = steady_ms() + PATIENCE_MS;
        (void)snprintf(task, sizeof task,
                       "{\"workflow\": \"reach\", \"id\": \"%s-%d\", \"input\": 1}", prefix, i);
        for (;;) {
            enum intact_status s = intact_client_submit(cl, task, 0);
            if (s == INTACT_OK)
                break;
            CHECK(s == INTACT_UNREACHABLE || s == INTACT_BUSY, "%s", intact_client_error(cl));
            CHECK(steady_ms() < until, "%s", intact_client_error(cl));
            sleep_ms(20);
        }
    }
}

static void wait_all(struct intact_client *cl, const char *prefix, int count)
{
    char id[40];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        enum intact_status s = intact_client_wait(cl, id, PATIENCE_MS);
        CHECK(s == INTACT_OK, "%s: %s %s", id, intact_client_error(cl), intact_client_body(cl));
        CHECK(strstr(intact_client_body(cl), "\"state\":\"processed\""), "%s",
              intact_client_body(cl));
    }
}

struct submitter {
    pthread_t thread;
    int count;
    atomic_int done;
};

static void *submit_always(void *arg)
{
    struct submitter *s = arg;
    char urls[200];

    urls_from(1, urls);
    struct intact_client *cl = intact_client_new(urls, a->token);
    CHECK(cl, "a client");
    for (int i = 0; i < s->count; i++) {
        submit_all(cl, "storm", i, i + 1);
        atomic_fetch_add(&s->done, 1);
    }
    intact_client_free(cl);
    return NULL;
}

static void wait_for_submitted(const struct submitter *s, int count)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (atomic_load(&s->done) < count) {
        CHECK(steady_ms() < until, "%d were submitted", atomic_load(&s->done));
        sleep_ms(5);
    }
}

/* ---- tests ---- */

static void one_address_reaches_all_nodes(void **state)
{
    struct agent g = {.result = INTACT_AGENT_FAILED};
    char url[200];
    int effects = 0;
    int keys = 0;
    (void)state;

    urls_from(0, url);
    *strchr(url, ',') = 0;
    agent_start(&g, url);
    for (size_t i = 0; i < NODES; i++)
        wait_for_call(&nodes[i]);
    for (size_t i = 0; i < NODES; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "via-%zu", i);
        submit(&nodes[i], "reach", id);
        wait_for_state(&nodes[i], id, "processed");
    }
    agent_end(&g, &effects, &keys);
    CHECK(effects == 2 * NODES && keys == effects, "%d effects of %d", effects, keys);
}

/* The node from which a request came is killed while it is at work. */
static void a_result_is_handed_in_at_another_node(void **state)
{
    struct agent g = {.result = INTACT_AGENT_FAILED};
    char urls[200];
    int effects = 0;
    int keys = 0;
    REPLY r = {0};
    (void)state;

    urls_from(0, urls);
    *strchr(urls, ',') = 0; /* the one that will be killed */
    agent_start(&g, urls);
    for (size_t i = 0; i < NODES; i++)
        wait_for_call(&nodes[i]);
    atomic_store(&gate, false);
    submit(a, "reach", "orphan");
    wait_for_work(1);
    node_kill(a);
    atomic_store(&gate, true);
    int64_t opened_at = steady_ms();
    do /* the first step is done before anybody knows that the node is gone */
        task_of(b, &r, "orphan");
    while (!raw_is(&r, "steps.0.output", "1"));
    fprintf(stderr, "handed in at another node after %" PRId64 " ms\n", steady_ms() - opened_at);
    wait_for_state(b, "orphan", "processed");
    task_of(b, &r, "orphan");
    EXPECT_INT(&r, "failure_count", 0);
    start_again(a);
    wait_for_call(a); /* it is found again */
    agent_end(&g, &effects, &keys);
    CHECK(effects == 2 && keys == 2, "%d effects of %d", effects, keys);
}

/* It waits for the results of what it has handed out, and ends when it has them. */
static void a_drained_node_gets_its_results(void **state)
{
    struct agent g = {.result = INTACT_AGENT_FAILED};
    char urls[200];
    int effects = 0;
    int keys = 0;
    (void)state;

    urls_from(1, urls);
    agent_start(&g, urls);
    for (size_t i = 0; i < NODES; i++)
        wait_for_call(&nodes[i]);
    atomic_store(&gate, false);
    submit(a, "reach", "drained");
    wait_for_work(1);
    node_signal(a, SIGTERM);
    submit(b, "reach", "other");
    wait_for_work(2); /* the others are worked for meanwhile */
    atomic_store(&gate, true);
    int status = node_wait(a, PATIENCE_MS);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %x", (unsigned)status);
    wait_for_state(b, "drained", "processed");
    wait_for_state(b, "other", "processed");
    start_again(a);
    wait_for_call(a);
    agent_end(&g, &effects, &keys);
    CHECK(effects == 4 && keys == 4, "%d effects of %d", effects, keys);
}

/* Killed one by one, drained, all at once; and always something is submitted and done. */
static void whatever_becomes_of_the_nodes_no_result_is_lost(void **state)
{
    enum { TASKS = 300 };
    struct agent g = {.result = INTACT_AGENT_FAILED};
    struct submitter s = {.count = TASKS};
    char urls[200];
    int effects = 0;
    int keys = 0;
    (void)state;

    urls_from(2, urls);
    agent_start(&g, urls);
    CHECK(pthread_create(&s.thread, NULL, submit_always, &s) == 0, "a thread");
    wait_for_submitted(&s, 30);
    node_kill(b);
    wait_for_submitted(&s, 80);
    start_again(b);
    wait_for_submitted(&s, 110);
    node_signal(c, SIGTERM);
    wait_for_submitted(&s, 140);
    int status = node_wait(c, PATIENCE_MS);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %x", (unsigned)status);
    start_again(c);
    wait_for_submitted(&s, 200);
    for (size_t i = 0; i < NODES; i++)
        node_kill(&nodes[i]);
    for (size_t i = 0; i < NODES; i++)
        start_again(&nodes[i]);
    pthread_join(s.thread, NULL);
    urls_from(0, urls);
    struct intact_client *cl = intact_client_new(urls, a->token);
    CHECK(cl, "a client");
    wait_all(cl, "storm", TASKS);
    intact_client_free(cl);
    agent_end(&g, &effects, &keys);
    CHECK(effects == 2 * TASKS && keys == 2 * TASKS, "%d effects of %d", effects, keys);
    CHECK(sql_int(a, "SELECT sum(failure_count) FROM task WHERE id LIKE 'storm-%'") == 0,
          "nothing failed, nothing was too late");
}

/* ---- the command line ---- */

static int run(const char *format, ...) PRINTF(1, 2);
static int run(const char *format, ...)
{
    char arguments[400];
    char command[700];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    (void)snprintf(command, sizeof command, "%s %s", program, arguments);
    return system(command);
}

static void the_command_line_asks_the_next_server(void **state)
{
    char urls[200];
    (void)state;

    urls_from(0, urls);
    CHECK(setenv("INTACT_SERVER", urls, 1) == 0 && setenv("INTACT_TOKEN", a->token, 1) == 0, "env");
    CHECK(setenv("XDG_STATE_HOME", a->home, 1) == 0, "where the command line remembers servers");
    node_kill(a);
    CHECK(run("submit reach --input 1 --id by-hand >/dev/null") == 0, "submit");
    CHECK(run("get by-hand --json | grep -q by-hand") == 0, "get");
    CHECK(run("node list | grep -q b") == 0, "node list");
    (void)snprintf(urls, sizeof urls, "http://127.0.0.1:%d,127.0.0.1:%d", b->port, c->port);
    CHECK(run("list --server %s 2>&1 | grep -q 'the server is \"127.0.0.1:%d\"'", urls, c->port)
              == 0,
          "which one of them is wrong");
    start_again(a);
    serve_step(c, "reach", "by-hand", "1");
    serve_step(b, "reach", "by-hand", "1");
    wait_for_state(c, "by-hand", "processed");
    CHECK(run("get by-hand --wait 1m >/dev/null") == 0, "it is processed");
    CHECK(unsetenv("INTACT_SERVER") == 0 && unsetenv("INTACT_TOKEN") == 0, "env");
}

/* It follows a task at one node, and goes on at the next when that one is gone. */
static void a_stream_goes_on_at_another_node(void **state)
{
    char urls[200];
    char command[500];
    char line[300] = "";
    (void)state;

    urls_from(0, urls);
    submit(a, "reach", "followed");
    (void)snprintf(command, sizeof command, "%s watch followed --json --server %s --token %s",
                   program, urls, a->token);
    FILE *out = popen(command, "r");
    CHECK(out && fgets(line, sizeof line, out), "it shows the task: %s", line);
    node_kill(a);
    serve_step(b, "reach", "by-hand", "1");
    serve_step(b, "reach", "by-hand", "1");
    wait_for_state(b, "followed", "processed");
    while (fgets(line, sizeof line, out))
        continue;
    int status = pclose(out);
    CHECK(status == 0, "status %x, at last %s", (unsigned)status, line);
    start_again(a);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    program = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_reaches_all_nodes),
        cmocka_unit_test(a_result_is_handed_in_at_another_node),
        cmocka_unit_test(a_drained_node_gets_its_results),
        cmocka_unit_test(whatever_becomes_of_the_nodes_no_result_is_lost),
        cmocka_unit_test(the_command_line_asks_the_next_server),
        cmocka_unit_test(a_stream_goes_on_at_another_node),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
