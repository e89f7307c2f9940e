/* Tests of what is specific to a pooler between the store and PostgreSQL: modes that are refused,
 * and more nodes than connections. The contract suite and the races also run through it. */

#include "base/test.h"

#include <stdlib.h>

#include <libpq-fe.h>

#include "bouncer.h"
#include "cluster.h"
#include "store/postgres/postgres.h"

static struct arena arena;
static struct error e;

static enum err open_as(const char *node, struct store **ret)
{
    const struct postgres_options o = {.conninfo = bouncer_conninfo(),
                                       .schema = "intact_pool",
                                       .node = node,
                                       .wait_ms = 60000};

    *ret = NULL;
    return postgres_store_open(&o, ret, &e);
}

static void pooling_by_the_statement_is_refused(void **state)
{
    struct store *s;

    (void)state;
    bouncer_start("statement");
    CHECK(open_as("n1", &s) != ERR_OK, "it cannot work");
    CHECK(strstr(e.text, "pool_mode = transaction"), "%s", e.text);
    bouncer_kill();
    bouncer_start("transaction");
}

/* More stores than the pooler has connections, each in its turn. */
static void more_nodes_than_connections(void **state)
{
    enum { NODES = 8, ROUNDS = 20 };
    struct store *s[NODES];

    (void)state;
    for (int i = 0; i < NODES; i++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", i);
        CHECK(open_as(node, &s[i]) == ERR_OK, "%s", e.text);
        CHECK(s[i]->ops->boot(s[i]) == 1, "the first start of each");
    }
    for (int k = 0; k < NODES * ROUNDS; k++) {
        struct task_row row = {.id = SLICE("x"),
                               .workflow = SLICE("w"),
                               .version = 1,
                               .revision = (uint64_t)k + 1,
                               .doc = SLICE("{}")};
        struct change c = {.kind = k ? CHANGE_UPDATE : CHANGE_INSERT, .row = row};
        struct batch b = {.changes = &c, .change_count = 1};
        struct store *one = s[k % NODES];
        struct task_row seen;
        CHECK(one->ops->commit(one, &b, &arena, &e) == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
        one = s[(k + 3) % NODES];
        CHECK(one->ops->get(one, SLICE("x"), &arena, &seen, &e) == ERR_OK, "%s", e.text);
        CHECK(seen.revision == row.revision, "the others see it");
    }
    for (int i = 0; i < NODES; i++)
        s[i]->ops->close(s[i]);
}

/* What one client sets must not be another's: connections are handed on. */
static void nothing_stays_with_a_connection(void **state)
{
    struct list_query q = {.limit = 10};
    struct row_page page;
    struct store *s;

    (void)state;
    CHECK(open_as("n1", &s) == ERR_OK, "%s", e.text);
    CHECK(s->ops->list(s, &q, &arena, &page, &e) == ERR_OK, "%s", e.text);
    s->ops->close(s);
    for (int i = 0; i < 10; i++) {
        PGconn *c = PQconnectdb(bouncer_conninfo());
        PGresult *r = PQexec(c, "SELECT current_setting('statement_timeout') || ' ' || "
                                "current_setting('lock_timeout') || ' ' || "
                                "current_setting('search_path')");
        CHECK(strcmp(PQgetvalue(r, 0, 0), "0 0 \"$user\", public") == 0, "%s", PQgetvalue(r, 0, 0));
        PQclear(r);
        PQfinish(c);
    }
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_by_the_statement_is_refused),
        cmocka_unit_test(more_nodes_than_connections),
        cmocka_unit_test(nothing_stays_with_a_connection),
    };
    return cmocka_run_group_tests_name("PostgreSQL through a pooler", tests, NULL, end);
}
