/*
 * Answers of ?wait= where two nodes share a database: what another node ended is the record as it
 * was stored; so it is for a node that stood still meanwhile, lost its task, or finds it deleted.
 */

#include <signal.h>
#include <stdlib.h>

#include "kit.h"

static struct node nodes[2];
static struct node *const a = &nodes[0], *const b = &nodes[1];

static int start(void **state)
{
    nodes_init(nodes, 2);
    nodes_start(nodes, 2, FLAGS("--log", "warn", "--scan-every", "100ms"));
    (void)define(a, "one",
                 "\"steps\": [{\"name\": \"s\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": "
                 "\"none\", \"complete_by\": \"1h\"}]");
    *state = nodes;
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        node_stop(&nodes[i]);
        node_fini(&nodes[i]);
    }
    return 0;
}

static int wait_at(const struct node *n, const char *id)
{
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s?wait=5m", id);
    return ask(n, "GET", path, NULL, SLICE_NONE);
}

static int submit_and_wait(const struct node *n, const char *id)
{
    CLEANUP(buf_fini) struct buf body = {0};
    REPLY r = {0};

    buf_fmt(&body, "{\"workflow\": \"one\", \"id\": \"%s\", \"input\": [1.0]}", id);
    int fd = ask(n, "POST", "/v1/tasks?wait=5m", "application/json", buf_view(&body));
    WAIT_FOR((reply_fini(&r), get(n, &r, "/v1/tasks/%s", id), r.status == 200), "it is there");
    return fd;
}

/* At all nodes. */
static void hears_the_record(int fd, const char *id, int status)
{
    REPLY got = {0};

    hear(fd, &got);
    EXPECT(&got, status);
    EXPECT_TEXT(&got, "state", "processed");
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        REPLY r = {0};
        get(&nodes[i], &r, "/v1/tasks/%s", id);
        CHECK(slice_eq(r.body, got.body), "the answer was\n%.*s\nand the record at %s is\n%.*s",
              SLICE_ARG(got.body), nodes[i].name, SLICE_ARG(r.body));
    }
}

static void an_end_at_another_node_is_told_as_it_was_stored(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct node *works = i % 2 ? a : b;
        const struct node *waits = i % 2 ? b : a;
        char id[20];
        (void)snprintf(id, sizeof id, "apart-%d", i);
        int posted = submit_and_wait(waits, id);
        int got = wait_at(waits, id);
        int here = wait_at(works, id);
        let_read(waits);
        serve_step(works, "ag", "i", "{ \"x\" : 1e2 }");
        hears_the_record(posted, id, 201);
        hears_the_record(got, id, 200);
        hears_the_record(here, id, 200);
    }
}

static void let_lease_end(const struct node *stays, const struct node *stopped)
{
    CLEANUP(buf_fini) struct buf query = {0};

    buf_fmt(&query, "SELECT count(*) FROM task WHERE locked_by LIKE '%s/%%'", stopped->name);
    WAIT_FOR(sql_int(stays, query.ptr) == 0, "its tasks are taken over");
}

/* It stands still with the task in memory, the result on its way to it, and somebody who waits for
 * it there. Another node ends the task differently. */
static void a_node_that_lost_its_task_tells_what_became_of_it(void **state)
{
    REPLY r = {0};
    (void)state;

    int posted = submit_and_wait(a, "lost");
    fetch(a, &r, "ag", "i");
    char *token = token_in(&r, 0);
    node_signal(a, SIGSTOP);
    CLEANUP(buf_fini) struct buf late = {0};
    buf_fmt(&late,
            "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": 1}]}",
            token);
    int sent = ask(a, "POST", "/v1/agents/ag/work", "application/json", buf_view(&late));
    let_lease_end(b, a);
    hand_in(b, "ag", "i", token, "\"output\": 2", "accepted");
    wait_for_state(b, "lost", "processed");
    node_signal(a, SIGCONT);
    hears_the_record(posted, "lost", 201);
    reply_fini(&r);
    hear(sent, &r);
    task_of(b, &r, "lost");
    EXPECT_INT(&r, "steps.0.output", 2);
    free(token);
}

static void who_waits_for_a_task_that_is_deleted_is_told(void **state)
{
    REPLY r = {0};
    (void)state;

    int posted = submit_and_wait(a, "deleted");
    int got = wait_at(a, "deleted");
    let_read(a);
    node_signal(a, SIGSTOP);
    serve_step(b, "ag", "i", "1");
    wait_for_state(b, "deleted", "processed");
    char *id = sql(b, "UPDATE task SET ended_at = ended_at - 120000 WHERE id = 'deleted' "
                      "RETURNING id");
    CHECK(strcmp(id, "deleted") == 0, "%s", id);
    free(id);
    post(b, &r, "/v1/retire", "{\"older_than\": \"1m\"}");
    EXPECT_INT(&r, "tasks", 1);
    node_signal(a, SIGCONT);
    reply_fini(&r);
    hear(posted, &r);
    expect_problem(&r, 410, "task-deleted");
    EXPECT_TEXT(&r, "state", "processed");
    reply_fini(&r);
    hear(got, &r);
    expect_problem(&r, 410, "task-deleted");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_at_another_node_is_told_as_it_was_stored),
        cmocka_unit_test(a_node_that_lost_its_task_tells_what_became_of_it),
        cmocka_unit_test(who_waits_for_a_task_that_is_deleted_is_told),
    };
    return cmocka_run_group_tests_name("ends at other nodes", tests, start, end);
}
