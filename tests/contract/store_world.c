/* Implements store_world.h: opens every kind of store in a folder of its own, resets it between
 * tests, and offers short forms of its calls. PostgreSQL runs in a cluster of the test
 * (postgres/cluster.h). */

#include "store_world.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "postgres/bouncer.h"
#include "postgres/cluster.h"
#include "store/sqlite/body.h"

static void sqlite_start(struct world *w)
{
    enum err err = sqlite_store_open(w->dir, &w->s, &w->e);

    CHECK(err == ERR_OK, "%s", w->e.text);
}

static void postgres_start(struct world *w)
{
    const struct postgres_options o = {.conninfo = pooled_conninfo(),
                                       .schema = w->dir,
                                       .node = "n1"};
    enum err err = postgres_store_open(&o, &w->s, &w->e);

    CHECK(err == ERR_OK, "%s", w->e.text);
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);

    ASSERT(w);
    fault_plan = (struct fault_plan){0};
    return w;
}

int world_setup_memory(void **state)
{
    struct world *w = world_new();

    w->s = memory_store_new();
    *state = w;
    return 0;
}

/* The file of a store that is new: to bring one to the schema of today takes ten times as long as
 * to copy it, and there is one for each test, and for each place that fails. */
static struct buf fresh;

static void read_fresh(const char *path)
{
    char chunk[4096];
    size_t got;
    FILE *f = fopen(path, "r");

    CHECK(f, "%s", path);
    while ((got = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_add(&fresh, chunk, got);
    CHECK(!ferror(f) && fclose(f) == 0, "%s", path);
}

static void forget_fresh(void)
{
    buf_fini(&fresh);
}

/* A copy that nothing knows to be one: it has a secret, an id and starts of its own. */
static void write_fresh(const char *path)
{
    struct db d = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, fresh.ptr, fresh.len) == (ssize_t)fresh.len && close(fd) == 0, "%s",
          path);
    CHECK(sqlite3_open(path, &d.handle) == SQLITE_OK, "%s", path);
    int rc = sqlite3_exec(d.handle,
                          "BEGIN; DELETE FROM node; DELETE FROM meta WHERE name = 'installation'; "
                          "UPDATE meta SET value = randomblob(32) WHERE name = 'secret'",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = identity_write(&d, path);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(d.handle, "COMMIT", NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", path, sqlite3_errmsg(d.handle));
    CHECK(sqlite3_close(d.handle) == SQLITE_OK, "%s", path);
}

int world_setup_sqlite(void **state)
{
    struct world *w = world_new();
    char path[sizeof w->dir + 16];

    w->sqlite = true;
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/intact-store-XXXXXX");
    CHECK(mkdtemp(w->dir), "a folder for the test");
    (void)snprintf(path, sizeof path, "%s/intact.db", w->dir);
    if (fresh.len > 0)
        write_fresh(path);
    sqlite_start(w);
    if (fresh.len == 0) { /* the first one is new, and is then what the others are copied from */
        w->s->ops->close(w->s);
        read_fresh(path);
        (void)atexit(forget_fresh);
        CHECK(remove(path) == 0, "%s", path);
        write_fresh(path);
        sqlite_start(w);
    }
    *state = w;
    return 0;
}

static long number_of(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);

    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    long number = strtol(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return number;
}

/* What was sent on a connection that was given up may be done after all, for as long as the
 * database has not seen that it is closed. */
static PGconn *connections_at_most(long most)
{
    static PGconn *conn; /* for the whole test */

    if (!conn)
        conn = PQconnectdb(cluster_conninfo());
    while (!is_pooled() /* a pooler keeps them, and there no connection is given up */
           && number_of(conn,
                        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'intact'"
                        " AND pid <> pg_backend_pid()")
                  > most)
        (void)usleep(1000);
    return conn;
}

void world_settle(struct world *w)
{
    if (w->postgres) {
        (void)exists(w, "of the store's own"); /* connected again */
        (void)connections_at_most(1);
    }
}

void postgres_do(struct world *w, const char *sql)
{
    char text[500];
    PGconn *conn = PQconnectdb(cluster_conninfo());

    (void)snprintf(text, sizeof text, "SET search_path = %s; %s", w->dir, sql);
    PGresult *r = PQexec(conn, text);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
    PQclear(r);
    PQfinish(conn);
}

/* Emptying a schema is cheaper than making one, by far; and so is deleting a few rows, compared
 * with TRUNCATE, which makes new files. */
static void empty_schema(const char *schema)
{
    char sql[1000];

    (void)snprintf(sql, sizeof sql,
                   "SET search_path = %s; DELETE FROM task; DELETE FROM wait; DELETE FROM payload; "
                   "DELETE FROM tag; "
                   "DELETE FROM reserved; "
                   "DELETE FROM workflow; DELETE FROM node; DELETE FROM lease; DELETE FROM token; "
                   "DELETE FROM agent; DELETE FROM alert; DELETE FROM outbox; "
                   "ALTER TABLE audit DISABLE TRIGGER USER; DELETE FROM audit; "
                   "ALTER TABLE audit ENABLE TRIGGER USER; "
                   "DELETE FROM outbox_aside; DELETE FROM submission; DELETE FROM operation; "
                   "DELETE FROM overrun; DELETE FROM schedule; DELETE FROM schedule_version; "
                   "DELETE FROM lock_key; DELETE FROM lock_holder; DELETE FROM session; "
                   "DELETE FROM notice; DELETE FROM orphaned; DELETE FROM item; "
                   "DELETE FROM meta WHERE name <> 'version'; "
                   "SELECT setval('task_seq', 1, false) + setval('audit_seq_seq', 1, false) + "
                   "setval('notice_seq_seq', 1, false)",
                   schema);
    (void)number_of(connections_at_most(0), sql);
}

int world_setup_postgres(void **state)
{
    static bool made;
    struct world *w = world_new();

    w->postgres = true;
    (void)snprintf(w->dir, sizeof w->dir, "intact_test");
    if (made)
        empty_schema(w->dir);
    made = true;
    postgres_start(w);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int world_teardown(void **state)
{
    struct world *w = *state;

    fault_plan = (struct fault_plan){0};
    if (w->s)
        w->s->ops->close(w->s);
    if (w->sqlite)
        (void)nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_fini(&w->a);
    free(w);
    return 0;
}

void world_restart(struct world *w)
{
    if (!w->sqlite && !w->postgres) {
        memory_store_boot(w->s);
        return;
    }
    w->s->ops->close(w->s);
    w->s = NULL;
    if (w->sqlite)
        sqlite_start(w);
    else
        postgres_start(w);
}

struct task_row a_row(const char *id)
{
    return (struct task_row){
        .id = slice_of(id),
        .workflow = SLICE("order"),
        .version = 1,
        .revision = 1,
        .state = TASK_PENDING,
        .priority = 5,
        .waiting_for = SLICE("a"),
        .rank = 100,
        .submitted_at = 1000,
        .doc = SLICE("{\"steps\":[]}"),
    };
}

void must(enum err outcome, const char *what)
{
    CHECK(outcome == ERR_OK, "%s: %s", what, err_text(outcome));
}

enum err put_change(struct world *w, struct change c)
{
    struct batch b = {.changes = &c, .change_count = 1};
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);

    CHECK(err == ERR_OK || c.outcome == err, "a failed batch is the outcome of its changes");
    return c.outcome;
}

enum err insert_row(struct world *w, struct task_row row)
{
    return put_change(w, (struct change){.kind = CHANGE_INSERT, .row = row});
}

enum err update_row(struct world *w, struct task_row row)
{
    return put_change(w, (struct change){.kind = CHANGE_UPDATE, .wake_moved = true, .row = row});
}

struct task_row fetch(struct world *w, const char *id)
{
    struct task_row row;
    enum err err = w->s->ops->get(w->s, slice_of(id), &w->a, &row, &w->e);

    CHECK(err == ERR_OK, "%s: %s", id, w->e.text);
    return row;
}

bool exists(struct world *w, const char *id)
{
    struct task_row row;
    enum err err = w->s->ops->get(w->s, slice_of(id), &w->a, &row, &w->e);

    CHECK(err == ERR_OK || err == ERR_NOT_FOUND, "%s: %s", id, w->e.text);
    return err == ERR_OK;
}

struct claim claim_of(struct world *w, enum claim_kind kind, const char *agent, size_t limit,
                      int64_t now)
{
    char owner[40];

    (void)snprintf(owner, sizeof owner, "n1/%" PRIu64, w->s->ops->boot(w->s));
    return (struct claim){
        .kind = kind,
        .agent = slice_of(agent),
        .locked_by = arena_copy(&w->a, slice_of(owner)),
        .limit = limit,
        .now = now,
    };
}

void claim_commit(struct world *w, struct claim *c)
{
    struct batch b = {.claims = c, .claim_count = 1};
    enum err err = w->s->ops->commit(w->s, &b, &w->a, &w->e);

    CHECK(err == ERR_OK, "%s", w->e.text);
}

static void texts_equal(struct slice x, struct slice y, const char *field, const char *what)
{
    CHECK(slice_eq(x, y), "%s: %s is '%.*s' and '%.*s'", what, field, SLICE_ARG(x), SLICE_ARG(y));
}

static void numbers_equal(int64_t x, int64_t y, const char *field, const char *what)
{
    CHECK(x == y, "%s: %s is %" PRId64 " and %" PRId64, what, field, x, y);
}

void rows_equal(const struct task_row *x, const struct task_row *y, const char *what)
{
#define TEXT(f)   texts_equal(x->f, y->f, #f, what)
#define NUMBER(f) numbers_equal((int64_t)x->f, (int64_t)y->f, #f, what)
    TEXT(id);
    TEXT(workflow);
    TEXT(locked_by);
    TEXT(waiting_for);
    TEXT(request);
    TEXT(reply_to);
    TEXT(tags);
    TEXT(doc);
    NUMBER(seq);
    NUMBER(version);
    NUMBER(revision);
    NUMBER(state);
    NUMBER(direction);
    NUMBER(priority);
    NUMBER(complete_by);
    NUMBER(wake_at);
    NUMBER(not_before);
    NUMBER(rank);
    NUMBER(failure_count);
    NUMBER(submitted_at);
    NUMBER(started_at);
    NUMBER(ended_at);
    NUMBER(paused_at);
    NUMBER(closed_at);
    TEXT(asked);
    TEXT(parent);
    TEXT(root);
    NUMBER(payload_count);
    for (size_t i = 0; i < x->payload_count; i++) {
        NUMBER(payloads[i].number);
        TEXT(payloads[i].json);
    }
#undef TEXT
#undef NUMBER
}

void insert_ranked(struct world *w, const char *id, const char *waiting_for, int64_t rank)
{
    struct task_row row = a_row(id);

    row.waiting_for = slice_of(waiting_for);
    row.rank = rank;
    must(insert_row(w, row), id);
}

void claimed(const struct claim *c, const char *const *ids, size_t count, bool more)
{
    CHECK(c->row_count == count, "claimed %zu instead of %zu", c->row_count, count);
    for (size_t i = 0; i < count; i++)
        CHECK(slice_is(c->rows[i].id, ids[i]), "place %zu has %.*s", i, SLICE_ARG(c->rows[i].id));
    CHECK(c->more == more, "more is %d", c->more);
}
