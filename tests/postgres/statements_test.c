/*
 * The number of statements that a node sends, according to the database's log: hardly any without
 * work, and as many for a batch of 1000 changes as for a single one.
 */

#include <stdlib.h>

#include <libpq-fe.h>

#include "cluster.h"
#include "e2e/kit.h"
#include "store/postgres/postgres.h"

/* Settling: a database whose fsync is off is told of as an alert, which is written, and that it was
 * told. What is looked at each ten or fifteen seconds counts as often as it comes: so it is
 * listened for longer than that. */
enum { IDLE_MS = 20000, SETTLE_MS = 9000 };

static struct node node;

/* Lines of the database's log with that text, from `from` on, which is moved to its end. They are
 * shown if INTACT_SHOW_STATEMENTS is set. */
static unsigned log_lines(const char *text, long *from)
{
    char path[200];
    char line[4000];
    unsigned count = 0;
    FILE *f = NULL;

    (void)snprintf(path, sizeof path, "%s", cluster_conninfo() + strlen("host="));
    path[strcspn(path, " ")] = 0;
    (void)snprintf(path + strlen(path), 5, "/log");
    f = fopen(path, "r");
    CHECK(f, "%s", path);
    CHECK(fseek(f, *from, SEEK_SET) == 0, "seek");
    while (fgets(line, sizeof line, f))
        if (strstr(line, text) && !strstr(line, ": BEGIN") && !strstr(line, ": COMMIT")) {
            count++;
            if (getenv("INTACT_SHOW_STATEMENTS"))
                print_message("%.200s\n", line);
        }
    *from = ftell(f);
    (void)fclose(f);
    return count;
}

/* With what the database is asked to write down of this node. */
static void conninfo(char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s options='-c log_statement=all'", cluster_conninfo());
}

/* All rows but leases and those of nodes, which say who is connected, by where they lie and who
 * wrote or locked them: any change of one is seen, and at once. To be freed. */
static char *all_rows(void)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r = PQexec(
        conn,
        "SELECT string_agg(tablename || query_to_xml('SELECT ctid::text, xmin::text, "
        "xmax::text FROM quiet.' || tablename, true, false, '')::text, '' ORDER BY tablename) "
        "FROM pg_tables WHERE schemaname = 'quiet' AND tablename NOT IN ('lease', 'node')");

    CHECK(PQntuples(r) == 1, "%s", PQerrorMessage(conn));
    char *rows = strdup(PQgetvalue(r, 0, 0));
    CHECK(rows && strstr(rows, "xmin"), "no rows: %s", rows);
    PQclear(r);
    PQfinish(conn);
    return rows;
}

static int start(void **state)
{
    char store[300];

    conninfo(store, sizeof store);
    *state = node_open(&node, FLAGS("--store", store, "--schema", "quiet", "--node", "n1"));
    define(
        &node, "slow",
        "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\", "
        "\"complete_by\": \"1h\"}]");
    return 0;
}

/* Statements a second while `during` is done. */
static double statements_a_second(void (*during)(int64_t until))
{
    long at = 0;

    sleep_ms(SETTLE_MS); /* what belongs to a start or to what was done before */
    (void)log_lines("", &at);
    int64_t from = steady_ms();
    during(from + IDLE_MS);
    unsigned count = log_lines("LOG:  execute", &at);
    double a_second = count * 1000.0 / (double)(steady_ms() - from);
    print_message("%u statements, %.2f a second\n", count, a_second);
    return a_second;
}

static void nothing(int64_t until)
{
    while (steady_ms() < until)
        sleep_ms(100);
}

/* Ten calls for work that there is none of, again and again. */
static void parked(int64_t until)
{
    while (steady_ms() < until) {
        int fds[10];
        for (size_t i = 0; i < COUNT_OF(fds); i++)
            fds[i] = ask(&node, "POST", "/v1/agents/idle/work", "application/json",
                         SLICE("{\"instance\": \"i\", \"max\": 1, \"wait\": \"2s\"}"));
        for (size_t i = 0; i < COUNT_OF(fds); i++) {
            REPLY r = {0};
            hear(fds[i], &r);
            EXPECT(&r, 200);
        }
    }
}

static char *token;

static void beats(int64_t until)
{
    for (int i = 0; steady_ms() < until; i++) {
        REPLY r = {0};
        post(&node, &r, "/v1/agents/ag/heartbeats",
             "{\"instance\": \"i\", \"beats\": [{\"token\": \"%s\", \"progress\": %d}]}", token, i);
        EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
        sleep_ms(20);
    }
}

static void an_idle_node_says_next_to_nothing(void **state)
{
    (void)state;
    double a_second = statements_a_second(nothing);
    CHECK(a_second < 2.0, "%.2f statements a second", a_second);
    a_second = statements_a_second(parked);
    CHECK(a_second < 2.0, "%.2f statements a second with calls parked", a_second);
}

static void heartbeats_write_nothing(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "slow", "x");
    fetch(&node, &r, "ag", "i");
    token = token_in(&r, 0);
    char *before = all_rows();
    double a_second = statements_a_second(beats);
    CHECK(a_second < 2.0, "%.2f statements a second with heartbeats", a_second);
    char *after = all_rows();
    CHECK(strcmp(after, before) == 0, "rows were written; before:\n%s\nafter:\n%s", before, after);
    free(before);
    free(after);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
}

/* A database is no file; its own means back it up. */
static void a_backup_is_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/backup", "{}");
    expect_problem(&r, 409, "no-file-to-back-up");
    CHECK(memmem(r.body.ptr, r.body.len, "pg_dump", 7), "%.*s", SLICE_ARG(r.body));
}

/* ---- a batch ---- */

static struct task_row a_row(struct arena *a, const char *name, int i)
{
    char id[40];

    (void)snprintf(id, sizeof id, "%s-%d", name, i);
    return (struct task_row){.id = arena_copy(a, slice_of(id)),
                             .workflow = SLICE("order"),
                             .version = 1,
                             .revision = 1,
                             .waiting_for = SLICE("a"),
                             .tags = SLICE("{\"k\":\"v\"}"),
                             .submitted_at = 1,
                             .doc = SLICE("{\"steps\":[]}")};
}

/* The rows of both, and whether an id that is inserted was reserved meanwhile. */
enum { BATCH_STATEMENTS = 2 + 1 };

/* Inserts so many, and changes them; the statements of both. */
static unsigned statements_of_batch(struct store *s, const char *name, size_t count)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct change *c = arena_alloc(&a, count * sizeof *c);
    struct error e = {0};
    unsigned statements = 0;
    long at = 0;

    for (size_t i = 0; i < count; i++)
        c[i] = (struct change){.kind = CHANGE_INSERT, .row = a_row(&a, name, (int)i)};
    for (int round = 0; round < 2; round++) {
        struct batch b = {.changes = c, .change_count = count};
        (void)log_lines("", &at);
        CHECK(s->ops->commit(s, &b, &a, &e) == ERR_OK, "%s", e.text);
        statements += log_lines("LOG:  execute", &at);
        for (size_t i = 0; i < count; i++) {
            CHECK(c[i].outcome == ERR_OK, "change %zu", i);
            c[i].kind = CHANGE_UPDATE;
            c[i].row.revision++;
        }
    }
    return statements;
}

static void a_batch_is_as_many_statements_however_large(void **state)
{
    char text[300];
    struct store *s = NULL;
    struct error e = {0};
    (void)state;

    node_stop(&node); /* what it asks each second would be counted, should a batch take long */
    conninfo(text, sizeof text);
    const struct postgres_options o = {.conninfo = text, .schema = "batches", .node = "n1"};
    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    (void)statements_of_batch(s, "first", 1); /* makes the settings of the session */
    unsigned one = statements_of_batch(s, "one", 1);
    unsigned many = statements_of_batch(s, "many", 1000);
    CHECK(one <= BATCH_STATEMENTS && many == one,
          "%u statements, and %u for a thousand times as much", one, many);
    s->ops->close(s);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_node_says_next_to_nothing),
        cmocka_unit_test(heartbeats_write_nothing),
        cmocka_unit_test(a_backup_is_refused),
        cmocka_unit_test(a_batch_is_as_many_statements_however_large),
    };
    return cmocka_run_group_tests_name("statements", tests, start, node_end);
}
