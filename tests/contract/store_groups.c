/* The contract of every store for steps in the payload table: the rows that are read with them,
 * listings, and how plain SQL shows them. store/codec/groups_test.c tests the documents. */

#include "shell.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/buf.h"
#include "postgres/cluster.h"

/* Steps 0 and 2 lie in group 2, step 1 in the document, and its output is payload 1. Group 3 is of
 * no more account. */
#define WAITING(name) "{\"name\":\"" name "\",\"state\":\"waiting\"}"
static const char doc[] = "{\"grouped\":true,\"steps\":[2,{\"name\":\"b\",\"state\":\"completed\","
                          "\"output_payload\":1,\"resolved\":3},2],\"payloads\":3}";
#define GROUP                                                                            \
    "{\"0\":{\"name\":\"a\",\"state\":\"completed\",\"attempt\":1,\"output_payload\":1," \
    "\"attempts\":[{\"attempt\":1,\"outcome\":\"completed\",\"effect\":\"happened\","    \
    "\"instance\":\"i-1\",\"started_at\":1,\"ended_at\":2,\"complete_by\":3}]},"         \
    "\"1\":" WAITING("b") ",\"2\":" WAITING("c") "}"
#define OLD_GROUP "{\"0\":" WAITING("a") "}"
static const struct payload payloads[] = {
    {1, {"\"long\"", 6}},
    {2, {GROUP, sizeof GROUP - 1}},
    {3, {OLD_GROUP, sizeof OLD_GROUP - 1}},
};

static struct task_row grouped_row(const char *id)
{
    struct task_row row = a_row(id);

    row.wake_at = 5;
    row.doc = slice_of(doc);
    row.payloads = payloads;
    row.payload_count = COUNT_OF(payloads);
    return row;
}

static void check_page(const struct row_page *page, size_t of_first, const char *what)
{
    CHECK(page->count == 2, "%s: both", what);
    for (size_t i = 0; i < 2; i++) {
        const struct task_row *row = &page->rows[i];
        bool grouped = slice_is(row->id, "grouped");
        CHECK(row->payload_count == (grouped ? of_first : 0), "%s: %.*s has %zu", what,
              SLICE_ARG(row->id), row->payload_count);
        CHECK(row->groups_only == (row->payload_count > 0), "%s: and says so", what);
        if (row->payload_count > 0)
            CHECK(row->payloads[0].number == 2 && slice_eq(row->payloads[0].json, payloads[1].json),
                  "%s: the one that counts", what);
    }
}

static void rows_to_be_decoded_come_with_their_groups(void **state)
{
    struct world *w = *state;
    struct task_row plain = a_row("plain");
    struct list_query q = {.limit = 9};
    struct row_page page;

    plain.wake_at = 5;
    plain.payloads = payloads;
    plain.payload_count = 1;
    must(insert_row(w, grouped_row("grouped")), "grouped");
    must(insert_row(w, plain), "plain");
    must(w->s->ops->overdue(w->s, 9, 0, 0, 9, &w->a, &page, &w->e), "overdue");
    check_page(&page, 1, "overdue");
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    check_page(&page, 0, "a listing to be shown");
    q.groups = true;
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    check_page(&page, 1, "a listing to be decoded");
    CHECK(fetch(w, "grouped").payload_count == 3, "who reads one task gets all");
    CHECK(!fetch(w, "grouped").groups_only, "and is told so");
}

/* One bad row does not hold up the others. */
static void groups_that_are_not_there_are_left_out(void **state)
{
    static const char *const docs[] = {
        "{\"grouped\":true,\"steps\":[2,7,1048575,1048576,0,-1,1.5,\"2\"]}",
        "{\"grouped\":true,\"steps\":[7]}",
        "{\"grouped\":true,\"steps\":[2,",
        "{\"grouped\":true,\"steps\":2}",
        "{\"grouped\":true,",
    };
    struct world *w = *state;
    const struct list_query q = {.limit = 9, .groups = true};
    struct row_page page;

    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        struct task_row row = grouped_row("x");
        char id[8];
        (void)snprintf(id, sizeof id, "x-%zu", i);
        row.id = slice_of(id);
        row.doc = slice_of(docs[i]);
        must(insert_row(w, row), docs[i]);
    }
    must(w->s->ops->overdue(w->s, 9, 0, 0, 9, &w->a, &page, &w->e), "overdue");
    CHECK(page.count == COUNT_OF(docs), "all of them: %zu", page.count);
    for (size_t i = 0; i < page.count; i++)
        CHECK(page.rows[i].payload_count == (i == 0), "%s", docs[i]);
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    CHECK(page.count == COUNT_OF(docs) && page.rows[page.count - 1].payload_count == 1, "listed");
}

/* A listing goes by documents: what stands somewhere is in them. */
static void listings_look_beyond_what_is_grouped(void **state)
{
    const struct list_place places[] = {{.step = SLICE("b")}};
    const struct list_query at_b = {.limit = 9, .places = places, .place_count = 1};
    struct world *w = *state;
    struct task_row row = grouped_row("x");
    struct row_page page;

    must(insert_row(w, row), "insert");
    must(w->s->ops->list(w->s, &at_b, &w->a, &page, &w->e), "list");
    CHECK(page.count == 0, "it has ended there");
    row.revision = 2;
    row.payload_count = 0;
    row.doc = SLICE("{\"grouped\":true,\"steps\":[2,{\"name\":\"b\",\"state\":\"running\"},2]}");
    must(update_row(w, row), "update");
    must(w->s->ops->list(w->s, &at_b, &w->a, &page, &w->e), "list");
    CHECK(page.count == 1, "it stands there");
    row.revision = 3;
    row.doc = SLICE("{\"grouped\":true,\"steps\":[2,{\"name\":\"b\",\"state\":\"waiting\"},2]}");
    must(update_row(w, row), "update");
    must(w->s->ops->list(w->s, &at_b, &w->a, &page, &w->e), "list");
    CHECK(page.count == 0, "it has not begun there");
    row.revision = 4;
    row.doc = SLICE("{\"grouped\":true,\"steps\":[2,{\"name\":\"b\",\"state\":\"waiting\","
                    "\"begun_at\":5,\"wait_until\":9},2]}");
    must(update_row(w, row), "update");
    must(w->s->ops->list(w->s, &at_b, &w->a, &page, &w->e), "list");
    CHECK(page.count == 1, "it waits there");
    row.revision = 5;
    row.doc = SLICE("{\"grouped\":true,\"steps\":[2,{\"name\":\"b\",\"state\":\"waiting\","
                    "\"wait_until\":9,\"round\":2},2]}");
    must(update_row(w, row), "update");
    must(w->s->ops->list(w->s, &at_b, &w->a, &page, &w->e), "list");
    CHECK(page.count == 1, "it is between two rounds there");
}

/* By what they say of a task in error. */
static void a_stopped_task_tells_of_its_step(void **state)
{
    struct world *w = *state;
    struct task_row row = grouped_row("x");
    struct stopped_page page;

    row.state = TASK_ERROR;
    row.waiting_for = SLICE_NONE;
    row.ended_at = 7;
    row.doc = SLICE("{\"error\":{\"code\":\"declined\",\"message\":\"no\"},\"grouped\":true,"
                    "\"steps\":[2,{\"name\":\"b\",\"state\":\"failed\",\"error\":{\"code\":"
                    "\"declined\",\"message\":\"no\"}},2]}");
    must(insert_row(w, row), "insert");
    must(w->s->ops->alerts->stopped(w->s, 0, 0, 9, &w->a, &page, &w->e), "stopped");
    CHECK(page.count == 1 && slice_is(page.rows[0].step, "b"), "its step");
}

static const char steps_sql[] =
    "SELECT name, position, state, attempt, output FROM task_step ORDER BY task, position";
static const char attempts_sql[] =
    "SELECT step, attempt, outcome, effect, instance FROM task_attempt";

static void postgres_says(struct world *w, const char *sql, const char *want)
{
    CLEANUP(buf_fini) struct buf said = {0};
    char path[100];
    PGconn *conn = PQconnectdb(cluster_conninfo());

    (void)snprintf(path, sizeof path, "SET search_path = %s", w->dir);
    PQclear(PQexec(conn, path));
    PGresult *r = PQexec(conn, sql);
    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    for (int i = 0; i < PQntuples(r); i++)
        for (int k = 0; k < PQnfields(r); k++)
            buf_fmt(&said, "%s%s", PQgetisnull(r, i, k) ? "NULL" : PQgetvalue(r, i, k),
                    k + 1 < PQnfields(r) ? "|" : "\n");
    CHECK(slice_is(buf_view(&said), want), "%.*s", (int)said.len, said.ptr);
    PQclear(r);
    PQfinish(conn);
}

static void says(struct world *w, const char *sql, const char *want)
{
    if (w->sqlite)
        shell_says(path_of(w, "intact.db"), sql, want);
    else
        postgres_says(w, sql, want);
}

static void plain_sql_sees_steps_wherever_they_lie(void **state)
{
    struct world *w = *state;

    must(insert_row(w, grouped_row("x")), "insert");
    says(w, steps_sql, "a|0|completed|1|\"long\"\nb|1|completed|0|\"long\"\nc|2|waiting|0|NULL\n");
    says(w, attempts_sql, "a|1|completed|happened|i-1\n");
    says(w, "SELECT count(*) FROM step_document", "3\n");
    says(w, "SELECT name, resolved FROM task_step ORDER BY position", "a|0\nb|3\nc|0\n");
    must(insert_row(w, a_row("y")), "one that has no steps at all");
    says(w, "SELECT count(*) FROM task_step", "3\n");
}

static void plain_sql_sees_an_input_that_is_the_tasks(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("z");

    row.doc = SLICE("{\"input\":7,\"steps\":[{\"name\":\"a\",\"input_payload\":0},"
                    "{\"name\":\"b\",\"input\":8},{\"name\":\"c\"}]}");
    must(insert_row(w, row), "insert");
    says(w, "SELECT name, coalesce(input, '\"none\"') FROM task_step ORDER BY position",
         "a|7\nb|8\nc|\"none\"\n");
}

/* A statement of PostgreSQL sees one moment, but a row that it locks as it is by then. This stops
 * one that is to claim between the two. */
#define STOP                                                                                \
    "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "                    \
    "PERFORM pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7); RETURN NULL; END'; " \
    "CREATE TRIGGER stop BEFORE UPDATE ON task FOR EACH STATEMENT EXECUTE FUNCTION stop()"
#define STOP_NO_MORE "DROP TRIGGER stop ON task; DROP FUNCTION stop"

struct claimer {
    pthread_t thread;
    struct world *w;
    struct claim claim;
    enum err err;
};

static void *claimer_run(void *arg)
{
    struct claimer *c = arg;
    struct batch b = {.claims = &c->claim, .claim_count = 1};

    c->err = c->w->s->ops->commit(c->w->s, &b, &c->w->a, &c->w->e);
    return NULL;
}

static void run_sql(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);

    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s",
          sql, PQerrorMessage(conn));
    PQclear(r);
}

static void wait_for_claimer(PGconn *conn)
{
    bool stands = false;

    while (!stands) {
        PGresult *r = PQexec(conn, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' "
                                   "AND NOT granted");
        stands = PQntuples(r) > 0;
        PQclear(r);
        (void)usleep(1000);
    }
}

/* Changes the task in the middle of the claim, and gives it a group. */
static void claim_meanwhile(struct world *w, struct claimer *c, PGconn *conn)
{
    c->w = w;
    run_sql(conn, "SELECT pg_advisory_lock(7)");
    CHECK(pthread_create(&c->thread, NULL, claimer_run, c) == 0, "a thread");
    wait_for_claimer(conn);
    run_sql(conn, "BEGIN; UPDATE task SET revision = revision + 1, doc = '{\"grouped\":true,"
                  "\"steps\":[1],\"payloads\":1}'; INSERT INTO payload (task, number, json) "
                  "SELECT seq, 1, '{\"0\":{}}' FROM task; COMMIT");
    run_sql(conn, "SELECT pg_advisory_unlock(7)");
    CHECK(pthread_join(c->thread, NULL) == 0, "joined");
    CHECK(c->err == ERR_OK, "%s", w->e.text);
}

static void who_claims_gets_all_that_the_document_names(struct world *w, struct claimer *c)
{
    char path[100];

    postgres_do(w, STOP);
    PGconn *conn = PQconnectdb(cluster_conninfo());
    (void)snprintf(path, sizeof path, "SET search_path = %s", w->dir);
    run_sql(conn, path);
    claim_meanwhile(w, c, conn);
    PQfinish(conn);
    postgres_do(w, STOP_NO_MORE);
    for (size_t i = 0; i < c->claim.row_count; i++)
        CHECK(c->claim.rows[i].payload_count == 1, "its group came with it");
}

static void a_claim_is_of_one_moment(void **state)
{
    struct world *w = *state;
    struct claimer c = {.claim = claim_of(w, CLAIM_AGENT, "a", 5, 1)};

    must(insert_row(w, a_row("x")), "insert");
    who_claims_gets_all_that_the_document_names(w, &c);
    if (c.claim.row_count > 0)
        return;
    CHECK(c.claim.more, "it is still there to be claimed");
    claim_commit(w, &c.claim);
    CHECK(c.claim.row_count == 1 && c.claim.rows[0].payload_count == 1, "with its group");
}

/* Its owner was at work on it, a moment before it was given up. */
static void a_task_is_taken_over_as_of_one_moment(void **state)
{
    struct world *w = *state;
    struct claimer c = {.claim = claim_of(w, CLAIM_NODE, "", 5, 1)};
    struct task_row row = a_row("x");

    row.state = TASK_PROCESSING;
    row.waiting_for = SLICE_NONE;
    row.locked_by = SLICE("n2/1");
    must(insert_row(w, row), "insert");
    who_claims_gets_all_that_the_document_names(w, &c);
    if (c.claim.row_count > 0)
        return;
    claim_commit(w, &c.claim);
    CHECK(c.claim.row_count == 1 && c.claim.rows[0].payload_count == 1, "with its group");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(rows_to_be_decoded_come_with_their_groups),
        ON_ALL(groups_that_are_not_there_are_left_out),
        ON_ALL(listings_look_beyond_what_is_grouped),
        ON_ALL(a_stopped_task_tells_of_its_step),
        ON_SQLITE(plain_sql_sees_steps_wherever_they_lie),
        ON_SQLITE(plain_sql_sees_an_input_that_is_the_tasks),
        ON_POSTGRES(plain_sql_sees_steps_wherever_they_lie),
        ON_POSTGRES(plain_sql_sees_an_input_that_is_the_tasks),
        ON_POSTGRES(a_claim_is_of_one_moment),
        ON_POSTGRES(a_task_is_taken_over_as_of_one_moment),
    };
    return cmocka_run_group_tests_name("store-groups", tests, NULL, NULL);
}
