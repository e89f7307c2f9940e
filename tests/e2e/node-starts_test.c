/* Nodes start on one database: the first one creates the admin's token, and a start that is
 * impossible reports why. nodes_test.c tests the nodes after their start. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"
#include "postgres/cluster.h"

enum { NODES = 2 };

#define FAST FLAGS("--drain", "2m")

static struct node nodes[NODES];
static struct node *const a = &nodes[0];
static struct node *const b = &nodes[1];

/* ---- the admin's token ---- */

static bool has_token_file(const struct node *n)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/admin-token", n->data);
    return access(path, R_OK) == 0;
}

static void nodes_that_start_at_once_make_one_token(void **state)
{
    enum { ROUNDS = 12 };
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < ROUNDS; i++) {
        nodes_init(nodes, NODES);
        node_begin(a, FAST);
        node_begin(b, FAST);
        for (size_t k = 0; k < NODES; k++)
            WAIT_FOR(node_log_has(&nodes[k], "event=started"), "it runs");
        int files = has_token_file(a) + has_token_file(b);
        CHECK(files == 1, "%d files", files);
        struct node *has = has_token_file(a) ? a : b;
        struct node *other = has == a ? b : a;
        WAIT_FOR(node_log_has(has, "event=admin_token_made")
                     && node_log_has(other, "event=admin_token_elsewhere"),
                 "both say so");
        node_read_token(has);
        memcpy(other->token, has->token, sizeof has->token);
        for (size_t k = 0; k < NODES; k++) {
            get(&nodes[k], &r, "/v1/tokens");
            EXPECT(&r, 200);
            CHECK(at(&r, "tokens")->count == 1, "%.*s", SLICE_ARG(r.body));
        }
        node_stop(a);
        node_stop(b);
        node_fini(a);
        node_fini(b);
    }
}

/* Killed at any moment of its start: there is a token in its folder then, or after the next one. */
static void a_token_is_never_lost_with_a_start_that_was_cut_off(void **state)
{
    enum { ROUNDS = 12 };
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < ROUNDS; i++) {
        nodes_init(nodes, 1);
        node_begin(a, FAST);
        sleep_ms(40 * i);
        node_kill(a);
        node_start(a, FAST);
        CHECK(has_token_file(a), "round %d", i);
        get(a, &r, "/v1/tokens");
        EXPECT(&r, 200);
        CHECK(at(&r, "tokens")->count == 1, "%.*s", SLICE_ARG(r.body));
        node_stop(a);
        node_fini(a);
    }
}

/* ---- starts that cannot be ---- */

#define UNREACHED "host=/nonexistent user=u password=sesame-1 dbname=d"

static void expect_refused(int status, const char *const *flags, const char *text)
{
    CLEANUP(buf_fini) struct buf said = {0};
    int got = serve_briefly(flags, &said);

    CHECK(got == status, "%d: %s", got, said.ptr);
    CHECK(strstr(said.ptr, text), "expected \"%s\": %s", text, said.ptr);
    CHECK(!strstr(said.ptr, "sesame-1"), "a password: %s", said.ptr);
}

static void a_start_that_cannot_be_says_why(void **state)
{
    const char *conninfo = cluster_conninfo();
    struct node n = {0};
    (void)state;

    nodes_init(&n, 1);
    expect_refused(1, FLAGS("--data", n.data, "--store", UNREACHED),
                   "cannot connect to the database");
    expect_refused(1,
                   FLAGS("--data", n.data, "--store",
                         "postgres://u:sesame-1@127.0.0.1:1/d?connect_timeout=2"),
                   "cannot connect to the database");
    expect_refused(2, FLAGS("--data", n.data, "--store", conninfo, "--schema", "Big"),
                   "the schema is \"Big\"");
    expect_refused(2, FLAGS("--data", n.data, "--store", conninfo, "--node", "a/b"), "--node");
    expect_refused(2, FLAGS("--data", n.data, "--store", conninfo, "--roles", "both"), "--roles");
    expect_refused(2, FLAGS("--data", n.data, "--store", conninfo, "--roles", ""), "--roles");
    expect_refused(2, FLAGS("--data", n.data, "--roles", "supervisor"), "--store beside it");
    expect_refused(2, FLAGS("--data", n.data, "--advertise", "node-1:7420"), "--advertise");
    expect_refused(2, FLAGS("--data", n.data, "--advertise", "http://node-1:7420/x"),
                   "--advertise");
    expect_refused(2, FLAGS("--data", n.data, "--advertise", "http://:7420"), "--advertise");
    expect_refused(2, FLAGS("--data", n.data, "--advertise", "https://h:99999"), "--advertise");
    node_fini(&n);
}

static void a_newer_schema_or_missing_rights_are_told(void **state)
{
    char conninfo[200];
    (void)state;

    nodes_init(nodes, 1);
    node_start(a, FAST);
    node_stop(a);
    free(sql(a, "CREATE ROLE stranger LOGIN"));
    (void)snprintf(conninfo, sizeof conninfo, "%s user=stranger password=sesame-1",
                   cluster_conninfo());
    expect_refused(1, FLAGS("--data", a->data, "--store", conninfo, "--schema", a->schema),
                   "permission denied");
    free(sql(a, "UPDATE meta SET value = '999' WHERE name = 'version'"));
    expect_refused(1,
                   FLAGS("--data", a->data, "--store", cluster_conninfo(), "--schema", a->schema),
                   "written by a newer intact");
    node_fini(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_start_at_once_make_one_token),
        cmocka_unit_test(a_token_is_never_lost_with_a_start_that_was_cut_off),
        cmocka_unit_test(a_start_that_cannot_be_says_why),
        cmocka_unit_test(a_newer_schema_or_missing_rights_are_told),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests_name("starts of nodes", tests, NULL, NULL);
}
