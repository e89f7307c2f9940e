/* Schedules of two nodes on one database: leaders are killed while moments are due, and each moment
 * has exactly one task. */

#include "kit.h"

#include <stdio.h>
#include <string.h>

#include "base/when.h"

enum { NODES = 2, KILLS = 5 };

static struct node nodes[NODES];

static int start(void **state)
{
    (void)state;
    nodes_init(nodes, NODES);
    nodes_start(nodes, NODES, FLAGS(NULL));
    (void)define(&nodes[0], "quick",
                 "\"steps\": [{\"name\": \"x\", \"agent\": \"nobody\", \"action\": \"x\", "
                 "\"if\": \".input.never == true\", \"undo\": \"none\"}]");
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        node_fini(&nodes[i]);
    return 0;
}

static void schedule_at(const struct node *n, const char *name, const char *rest)
{
    CLEANUP(buf_fini) struct buf text = {0};
    char path[60];
    REPLY r = {0};

    buf_fmt(&text, "intact: 1\nschedule: %s\nworkflow: quick\nevery: 1s\n%s", name, rest);
    (void)snprintf(path, sizeof path, "/v1/schedules/%s", name);
    send_as(n, &r, "PUT", path, "application/yaml", buf_view(&text));
    EXPECT(&r, 201);
}

static void schedule(const char *name, const char *rest)
{
    schedule_at(&nodes[1], name, rest);
}

static void pause_schedule(const struct node *n, const char *name)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/schedules/%s/pause", name);
    post(n, &r, path, "{\"reason\": \"the end\"}");
    EXPECT(&r, 200);
}

/* As that node knows it; 0: it does not answer with it. */
static int64_t fired(const struct node *n, const char *name)
{
    REPLY r = {0};

    get(n, &r, "/v1/schedules/%s", name);
    return r.status == 200 ? int_at(&r, "counts.fired") : 0;
}

/* Which node leads; -1: none is known to. */
static int leader(const struct node *n)
{
    REPLY r = {0};
    char path[40];

    get(n, &r, "/v1/nodes");
    for (int i = 0; i < NODES; i++) {
        (void)snprintf(path, sizeof path, "nodes.%d.leads", i);
        if (raw_is(&r, path, "true")) {
            (void)snprintf(path, sizeof path, "nodes.%d.node", i);
            for (int k = 0; k < NODES; k++)
                if (strcmp(text_at(&r, path), nodes[k].name) == 0)
                    return k;
        }
    }
    return -1;
}

/* All moments up to the last one that fired have their task, and no task has another moment. */
static void check_all(const struct node *n, const char *name)
{
    CLEANUP(buf_fini) struct buf query = {0};
    REPLY r = {0};

    get(n, &r, "/v1/schedules/%s", name);
    EXPECT_INT(&r, "counts.missed", 0);
    EXPECT_INT(&r, "counts.failed", 0);
    int64_t count = int_at(&r, "counts.fired");
    int64_t last = time_at(&r, "fired_at");
    for (int64_t i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf time = {0};
        REPLY t = {0};
        time_write(&time, last - i * MS_PER_S);
        WAIT_FOR((reply_fini(&t), get(n, &t, "/v1/tasks/%s@%.19sZ", name, time.ptr),
                  t.status == 200),
                 time.ptr);
    }
    buf_fmt(&query,
            "SELECT count(*) FROM task WHERE id LIKE '%s@%%' OR "
            "(SELECT count(*) FROM submission WHERE id LIKE '%s@%%') > 0",
            name, name);
    CHECK(sql_int(n, query.ptr) == count, "%s: %d tasks, %d moments", name,
          (int)sql_int(n, query.ptr), (int)count);
}

static void each_moment_is_one_task_whoever_dies(void **state)
{
    (void)state;

    schedule("all", "overlap: allow\nmissed: all\n");
    schedule("one", "overlap: skip\nmissed: latest\n");
    for (int i = 0; i < KILLS; i++) {
        const struct node *n = &nodes[i % NODES];
        int64_t before = fired(n, "all");
        WAIT_FOR(fired(n, "all") > before, "it fires");
        int k = -1;
        WAIT_FOR((k = leader(n)) >= 0, "one leads");
        node_kill(&nodes[k]);
        before = fired(&nodes[!k], "all");
        WAIT_FOR(fired(&nodes[!k], "all") > before, "the other one goes on");
        node_start(&nodes[k], FLAGS(NULL));
        memcpy(nodes[k].token, nodes[!k].token, sizeof nodes[k].token);
    }
    pause_schedule(&nodes[0], "all");
    check_all(&nodes[0], "all");
    CHECK(fired(&nodes[0], "one") >= KILLS, "%d", (int)fired(&nodes[0], "one"));
}

/* Nothing is due, so the leader looks at the schedules only because another node may have changed
 * them. */
static void the_leader_learns_what_another_node_stored(void **state)
{
    int k = -1;
    (void)state;

    pause_schedule(&nodes[0], "one");
    WAIT_FOR((k = leader(&nodes[0])) >= 0, "one leads");
    schedule_at(&nodes[!k], "elsewhere", "overlap: allow\nmissed: all\n");
    WAIT_FOR(fired(&nodes[!k], "elsewhere") > 0, "the leader has found it");
    pause_schedule(&nodes[!k], "elsewhere");
    check_all(&nodes[k], "elsewhere");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_is_one_task_whoever_dies),
        cmocka_unit_test(the_leader_learns_what_another_node_stored),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests_name("schedule nodes", tests, start, end);
}
