/*
 * The PostgreSQL store against the ceiling of the database: one bare UPDATE ... FROM unnest(...)
 * per batch, with prepared parameters, autocommit, on a table with the same columns and indexes.
 * The two take turns; the result is the ratio of each pair of turns. Usage: bench-postgres CONNINFO
 */

#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "store/postgres/body.h"
#include "store/postgres/postgres.h"

enum { ROWS = 20000, TURNS = 9, TURN_US = 700000, DOC = 900 };

static char ids[ROWS][16];
static uint64_t revisions[2][ROWS]; /* of the store's table, of the bare one */
static char doc[DOC];
static size_t next_row[2];

static void die(const char *text)
{
    (void)fprintf(stderr, "bench-postgres: %s\n", text);
    exit(1);
}

static struct task_row row_of(size_t i, uint64_t revision)
{
    return (struct task_row){.id = slice_of(ids[i]),
                             .workflow = slice_of("bench"),
                             .version = 1,
                             .revision = revision,
                             .state = TASK_PROCESSING,
                             .priority = 5,
                             .locked_by = slice_of("n1/1"),
                             .complete_by = INT64_C(4000000000000),
                             .wake_at = INT64_C(4000000000000),
                             .rank = 1,
                             .submitted_at = 1,
                             .started_at = 1,
                             .doc = {doc, sizeof doc}};
}

/* ---- the store ---- */

static double store_batch(struct store *s, size_t size, enum change_kind kind)
{
    struct change *changes = calloc(size, sizeof *changes);
    struct arena a = {0};
    struct error e = {0};
    struct batch b = {.changes = changes, .change_count = size};

    for (size_t i = 0; i < size; i++) {
        size_t at = next_row[0]++ % ROWS;
        changes[i].kind = kind;
        changes[i].row = row_of(at, ++revisions[0][at]);
    }
    double from = now_us();
    if (s->ops->commit(s, &b, &a, &e) != ERR_OK)
        die(e.text);
    double us = now_us() - from;
    for (size_t i = 0; i < size; i++)
        if (changes[i].outcome != ERR_OK)
            die("a change was refused");
    arena_fini(&a);
    free(changes);
    return us;
}

/* ---- the bare statement ---- */

static const char bare_sql[] =
    "UPDATE bench.task AS t SET revision = u.revision, state = u.state, locked_by = u.locked_by, "
    "complete_by = u.complete_by, failure_count = u.failure_count, doc = u.doc "
    "FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::int8[], "
    "$7::text[]) AS u(id, revision, state, locked_by, complete_by, failure_count, doc) "
    "WHERE t.id = u.id AND t.revision = u.revision - 1";

static double bare_batch(PGconn *c, size_t size)
{
    struct array id = {0}, revision = {0}, state = {0}, locked_by = {0}, complete_by = {0},
                 failures = {0}, docs = {0};
    struct arena a = {0};
    struct query q = {.sql = bare_sql, .arena = &a};
    char expected[16];

    for (size_t i = 0; i < size; i++) {
        size_t at = next_row[1]++ % ROWS;
        struct task_row row = row_of(at, ++revisions[1][at]);
        array_text(&id, row.id);
        array_number(&revision, (int64_t)row.revision);
        array_text(&state, slice_of("processing"));
        array_text(&locked_by, row.locked_by);
        array_number(&complete_by, row.complete_by);
        array_number(&failures, 0);
        array_text(&docs, row.doc);
    }
    param_array(&q, &id, ARRAY_TEXTS);
    param_array(&q, &revision, ARRAY_NUMBERS);
    param_array(&q, &state, ARRAY_TEXTS);
    param_array(&q, &locked_by, ARRAY_TEXTS);
    param_array(&q, &complete_by, ARRAY_NUMBERS);
    param_array(&q, &failures, ARRAY_NUMBERS);
    param_array(&q, &docs, ARRAY_TEXTS);
    double from = now_us();
    PGresult *r = PQexecParams(c, q.sql, q.count, q.types, q.values, q.lengths, q.formats, 1);
    double us = now_us() - from;
    (void)snprintf(expected, sizeof expected, "%zu", size);
    if (PQresultStatus(r) != PGRES_COMMAND_OK || strcmp(PQcmdTuples(r), expected) != 0)
        die(PQerrorMessage(c));
    PQclear(r);
    arena_fini(&a);
    return us;
}

/* ---- turns ---- */

/* CPU time of a process according to the kernel: meaningful even on a busy machine. */
static double cpu_us(int pid)
{
    char path[64];
    double ns = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%lf", &ns) != 1)
        die(path);
    (void)fclose(f);
    return ns / 1e3;
}

static double rate(double us, size_t count)
{
    return (double)count / us * 1e6;
}

static void measure(struct store *s, PGconn *c, size_t size)
{
    double store_rates[TURNS], bare_rates[TURNS], ratios[TURNS];
    int pids[2] = {PQbackendPID(postgres_store_of(s)->conn), PQbackendPID(c)};
    double cpu[2] = {-cpu_us(pids[0]), -cpu_us(pids[1])};
    size_t total[2] = {0, 0};

    for (int turn = 0; turn < TURNS; turn++) {
        double us[2] = {0, 0};
        size_t count[2] = {0, 0};
        for (; us[1] < TURN_US; count[1] += size)
            us[1] += bare_batch(c, size);
        for (; us[0] < TURN_US; count[0] += size)
            us[0] += store_batch(s, size, CHANGE_UPDATE);
        total[0] += count[0];
        total[1] += count[1];
        store_rates[turn] = rate(us[0], count[0]);
        bare_rates[turn] = rate(us[1], count[1]);
        ratios[turn] = store_rates[turn] / bare_rates[turn];
    }
    qsort(store_rates, TURNS, sizeof(double), by_value);
    qsort(bare_rates, TURNS, sizeof(double), by_value);
    qsort(ratios, TURNS, sizeof(double), by_value);
    printf("postgres: batches of %zu: store %.0f changes a second, bare UPDATE %.0f: ratio %.2f "
           "(%.2f to %.2f in %d pairs of turns)\n",
           size, store_rates[TURNS / 2], bare_rates[TURNS / 2], ratios[TURNS / 2], ratios[0],
           ratios[TURNS - 1], TURNS);
    for (int i = 0; i < 2; i++)
        cpu[i] = (cpu[i] + cpu_us(pids[i])) / (double)total[i];
    printf(
        "postgres: batches of %zu: the database's CPU: %.1f us a change, bare UPDATE %.1f: ratio "
        "%.2f\n",
        size, cpu[0], cpu[1], cpu[0] / cpu[1]);
    (void)fflush(stdout);
}

static void run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);

    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        die(PQerrorMessage(c));
    PQclear(r);
}

static void prepare(struct store *s, PGconn *c)
{
    for (size_t i = 0; i < ROWS; i++)
        (void)snprintf(ids[i], sizeof ids[i], "t-%06zu", i);
    memset(doc, 'x', sizeof doc);
    doc[0] = doc[sizeof doc - 1] = '"';
    for (size_t done = 0; done < ROWS; done += 1000)
        (void)store_batch(s, 1000, CHANGE_INSERT);
    memcpy(revisions[1], revisions[0], sizeof revisions[0]);
    run(c, "CREATE SCHEMA bench");
    run(c, "CREATE TABLE bench.task (LIKE intact.task INCLUDING ALL) WITH (fillfactor = 40)");
    run(c, "INSERT INTO bench.task SELECT * FROM intact.task");
    run(c, "VACUUM ANALYZE");
}

int main(int argc, char **argv)
{
    const struct postgres_options o = {.conninfo = argc > 1 ? argv[1] : "", .node = "n1"};
    static const size_t sizes[] = {1, 64, 256, 1024};
    struct store *s = NULL;
    struct error e = {0};

    if (argc != 2) {
        (void)fprintf(stderr, "usage: bench-postgres CONNINFO\n");
        return 2;
    }
    if (postgres_store_open(&o, &s, &e) != ERR_OK)
        die(e.text);
    PGconn *c = PQconnectdb(o.conninfo);
    if (PQstatus(c) != CONNECTION_OK)
        die(PQerrorMessage(c));
    prepare(s, c);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        measure(s, c, sizes[i]);
    PQfinish(c);
    s->ops->close(s);
    return 0;
}
