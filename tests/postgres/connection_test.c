/*
 * The store's connection to its database, and its errors and promises without one: connection
 * strings, hosts, a network that is cut or silent, locks of other sessions.
 */

#include "base/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "cluster.h"
#include "proxy.h"
#include "store/postgres/body.h"
#include "store/postgres/postgres.h"

#define PASSWORD "s3cret-Pw"

static struct arena arena;
static struct error e;

static enum err open_at(const char *conninfo, int64_t wait_ms, struct store **ret)
{
    const struct postgres_options o = {.conninfo = conninfo,
                                       .schema = "intact_conn",
                                       .node = "n1",
                                       .wait_ms = wait_ms};

    e = (struct error){0};
    *ret = NULL;
    return postgres_store_open(&o, ret, &e);
}

static struct store *opened(const char *conninfo, int64_t wait_ms)
{
    struct store *s;

    CHECK(open_at(conninfo, wait_ms, &s) == ERR_OK, "%s: %s", conninfo, e.text);
    return s;
}

static void sql(const char *text)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(r);

    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", text,
          PQerrorMessage(conn));
    PQclear(r);
    PQfinish(conn);
}

/* ---- a task, its revisions ---- */

static const struct task_row a_task = {
    .id = {"x", 1}, .workflow = {"w", 1}, .version = 1, .revision = 1, .doc = {"{}", 2}};

static void insert(struct store *s)
{
    struct change c = {.kind = CHANGE_INSERT, .row = a_task};
    struct batch b = {.changes = &c, .change_count = 1};

    sql("DELETE FROM intact_conn.task");
    CHECK(s->ops->commit(s, &b, &arena, &e) == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
}

static enum err change(struct store *s, uint64_t to, enum err *ret_outcome)
{
    struct change c = {.kind = CHANGE_UPDATE, .row = a_task};
    struct batch b = {.changes = &c, .change_count = 1};

    c.row.revision = to;
    enum err err = s->ops->commit(s, &b, &arena, &e);
    *ret_outcome = c.outcome;
    return err;
}

/* As it is, however many tries it takes to reach the database. */
static uint64_t revision(struct store *s)
{
    struct task_row row;
    enum err err;

    while ((err = s->ops->get(s, SLICE("x"), &arena, &row, &e)) != ERR_OK) {
        CHECK(err_is_transient(err), "%s", e.text);
        (void)usleep(1000);
    }
    return row.revision;
}

static void becomes(struct store *s, uint64_t wanted)
{
    while (revision(s) != wanted)
        (void)usleep(1000); /* the test's own timeout ends it */
}

/* ---- what was given ---- */

static void bad_strings_get_a_message_without_the_password(void **state)
{
    static const char *const bad[] = {
        "postgres://u:" PASSWORD "@@host/db",
        "postgres://u:" PASSWORD "@b@host/db",
        "postgres://u:" PASSWORD "/x@host/db",
        "postgres://u:" PASSWORD "?x@host/db",
        "postgres://u:" PASSWORD "#x@host/db",
        "postgres://u:%zz" PASSWORD "@host/db",
        "postgres://u:" PASSWORD "@host:port/db",
        "postgres://u:" PASSWORD "@host/db?nonsense=1",
        "postgres://u:" PASSWORD "@host/db?sslmode",
        "postgres://u:" PASSWORD "@[::1/db",
        "postgres://u:" PASSWORD "@a,b/db?port=1,2,3",
        "postgres://u:" PASSWORD "@a,b/db?target_session_attrs=standby",
        "postgres://u:" PASSWORD "@a,b/db?target_session_attrs=prefer-standby",
        "password=x " PASSWORD,
        "password=x " PASSWORD "=y",
        "password='" PASSWORD,
        "host=h port=" PASSWORD,
        "nonsense",
        "nonsense=" PASSWORD,
        "service=there-is-none password=" PASSWORD,
        "password=" PASSWORD " target_session_attrs=read-only",
    };
    struct store *s;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK(open_at(bad[i], 2000, &s) == ERR_INVALID, "%s: %s", bad[i], e.text);
        CHECK(!strstr(e.text, PASSWORD) && !strchr(e.text, '\n'), "%s", e.text);
        CHECK(strlen(e.text) > 20, "%s", e.text);
    }
}

static void what_cannot_be_reached_is_named_without_the_password(void **state)
{
    static const struct {
        const char *conninfo, *named;
    } table[] = {
        {"postgres://u:" PASSWORD "@%2Ftmp%2Fthere-is-none/db", "/tmp/there-is-none"},
        {"host=/tmp/no-a,/tmp/no-b user=u password=" PASSWORD, "/tmp/no-a"},
        {"host=/tmp/no-a,/tmp/no-b user=u password=" PASSWORD, "/tmp/no-b"},
        {"host=/tmp/no-a user=u sslmode=nonsense password=" PASSWORD, "sslmode"},
        {"host=h.invalid user=u password=" PASSWORD, "h.invalid"},
    };
    struct store *s;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        enum err err = open_at(table[i].conninfo, 2000, &s);
        CHECK(err == ERR_IO, "%s: %s", table[i].conninfo, e.text);
        CHECK(strstr(e.text, table[i].named), "%s", e.text);
        CHECK(!strstr(e.text, PASSWORD) && !strchr(e.text, '\n'), "%s", e.text);
    }
    CHECK(postgres_conninfo_has_password("postgres://u:x@h/db"), "it has one");
    CHECK(postgres_conninfo_has_password("host=h password=x"), "it has one");
    CHECK(!postgres_conninfo_has_password("postgres://u@h/db"), "it has none");
    CHECK(!postgres_conninfo_has_password("nonsense"), "nor has this");
}

static void write_file(const char *path, const char *text, const char *how)
{
    FILE *f = fopen(path, how);

    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, 0600) == 0, "%s", path);
}

static const char *file(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", cluster_dir(), name);
    return path;
}

/* Before the line that trusts everybody. */
static void ask_for_passwords(void)
{
    static char old[16384], text[sizeof old + 100];
    FILE *f = fopen(file("data/pg_hba.conf"), "r");

    CHECK(f && fread(old, 1, sizeof old - 1, f) > 0 && fclose(f) == 0, "pg_hba.conf");
    (void)snprintf(text, sizeof text, "local all guest scram-sha-256\n%s", old);
    f = fopen(file("data/pg_hba.conf"), "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "pg_hba.conf");
    sql("CREATE ROLE guest LOGIN PASSWORD '" PASSWORD "'");
    sql("GRANT CREATE ON DATABASE postgres TO guest");
    sql("SELECT pg_reload_conf()");
}

static void opens(const char *conninfo)
{
    const struct postgres_options o = {.conninfo = conninfo,
                                       .schema = "intact_guest",
                                       .node = "n1"};
    struct store *s = NULL;
    enum err err = postgres_store_open(&o, &s, &e);

    CHECK(err == ERR_OK, "%s: %s", conninfo, e.text);
    s->ops->close(s);
}

static void passwords_come_from_wherever_libpq_finds_them(void **state)
{
    char conninfo[128];
    char text[400];
    struct store *s;

    (void)state;
    ask_for_passwords();
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=guest dbname=postgres", cluster_dir());
    CHECK(open_at(conninfo, 0, &s) == ERR_IO && strstr(e.text, "no password"), "%s", e.text);
    (void)snprintf(text, sizeof text, "%s password=wr0ng-Pw", conninfo);
    CHECK(open_at(text, 0, &s) == ERR_IO && strstr(e.text, "password authentication failed")
              && !strstr(e.text, "wr0ng-Pw"),
          "%s", e.text);

    (void)setenv("PGPASSWORD", PASSWORD, 1);
    opens(conninfo);
    (void)unsetenv("PGPASSWORD");

    write_file(file("passfile"), "*:*:*:guest:" PASSWORD "\n", "w");
    (void)snprintf(text, sizeof text, "%s passfile=%s", conninfo, file("passfile"));
    opens(text);

    (void)snprintf(text, sizeof text,
                   "[here]\nhost=/tmp/there-is-none,%s\nuser=guest\n"
                   "dbname=postgres\npassword=" PASSWORD "\n",
                   cluster_dir());
    write_file(file("services"), text, "w");
    (void)setenv("PGSERVICEFILE", file("services"), 1);
    opens("service=here");
    opens("postgres:///?service=here");
    (void)unsetenv("PGSERVICEFILE");
}

/* ---- hosts ---- */

static void of_several_hosts_the_one_that_takes_writes_is_used(void **state)
{
    char conninfo[400];
    struct store *s;

    (void)state;
    proxy_set(PROXY_SILENT);
    const char *proxy = strchr(proxy_conninfo(), '=') + 1;
    int len = (int)strcspn(proxy, " ");
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=/tmp/there-is-none,%.*s,%s port=5432 user=intact dbname=postgres", len,
                   proxy, cluster_dir());
    s = opened(conninfo, 6000); /* the second one says nothing */
    insert(s);
    s->ops->close(s);
    (void)snprintf(conninfo, sizeof conninfo, "postgres://intact@%%2Fnone:5432,%%2Fnil:5432/db");
    CHECK(open_at(conninfo, 2000, &s) == ERR_IO && strstr(e.text, "/none")
              && strstr(e.text, "/nil"),
          "%s", e.text);
    proxy_set(PROXY_PASS);
}

/* One that only reads would never do, however it was asked for. */
static void a_database_that_only_reads_is_refused(void **state)
{
    static const char *const given[] = {"", " target_session_attrs=any",
                                        " target_session_attrs=read-write",
                                        " target_session_attrs=primary"};
    char conninfo[300];
    struct store *s;

    (void)state;
    sql("CREATE ROLE reader LOGIN");
    sql("ALTER ROLE reader SET default_transaction_read_only = on");
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        (void)snprintf(conninfo, sizeof conninfo, "host=%s user=reader dbname=postgres%s",
                       cluster_dir(), given[i]);
        CHECK(open_at(conninfo, 0, &s) == ERR_IO && strstr(e.text, "it takes no writes"), "%s",
              e.text);
    }
}

/* ---- a network that lets us down ---- */

static void what_is_not_answered_ends_and_may_be_done_later(void **state)
{
    enum err outcome;
    struct store *s = opened(proxy_conninfo(), 400);

    (void)state;
    insert(s);
    proxy_set(PROXY_HOLD_REQUESTS);
    enum err err = change(s, 2, &outcome);
    CHECK(err == ERR_UNKNOWN && outcome == ERR_UNKNOWN, "%s: %s", err_text(err), e.text);
    CHECK(strstr(e.text, "did not answer within 400 ms"), "%s", e.text);
    proxy_set(PROXY_PASS); /* it arrives, late, from somebody who is gone */
    becomes(s, 2);
    err = change(s, 2, &outcome);
    CHECK(err == ERR_OK && outcome == ERR_CONFLICT, "the fence holds: %s", e.text);
    s->ops->close(s);
}

static void what_was_done_and_not_heard_of_is_unknown(void **state)
{
    enum err outcome;
    struct store *s = opened(proxy_conninfo(), 3000);

    (void)state;
    insert(s);
    proxy_set(PROXY_HOLD_ANSWERS);
    enum err err = change(s, 2, &outcome);
    CHECK(err == ERR_UNKNOWN && outcome == ERR_UNKNOWN, "%s: %s", err_text(err), e.text);
    struct store *direct = opened(cluster_conninfo(), 0);
    becomes(direct, 2);
    direct->ops->close(direct);
    proxy_set(PROXY_PASS);
    becomes(s, 2);
    s->ops->close(s);
}

/* Nothing is sent while nobody is there: then it is certain that nothing was stored. */
static void without_a_database_calls_end_and_it_is_certain(void **state)
{
    static const enum proxy_mode modes[] = {PROXY_REFUSE, PROXY_SILENT};
    struct store *s = opened(proxy_conninfo(), 400);
    enum err outcome;

    (void)state;
    insert(s);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        uint64_t before = revision(s);
        struct task_row row;
        proxy_set(PROXY_HOLD_REQUESTS);
        CHECK(s->ops->get(s, SLICE("x"), &arena, &row, &e) == ERR_IO, "it is cut off");
        proxy_set(modes[i]);
        for (int k = 0; k < 20; k++) {
            enum err err = change(s, before + 1, &outcome);
            CHECK(err == ERR_IO && outcome == ERR_IO, "%s: %s", err_text(err), e.text);
            (void)usleep(10000);
        }
        proxy_set(PROXY_PASS);
        CHECK(revision(s) == before, "nothing was stored");
        CHECK(revision(s) == before && change(s, before + 1, &outcome) == ERR_OK, "%s", e.text);
    }
    s->ops->close(s);
}

static void cut_anywhere_a_batch_is_whole_or_not_there(void **state)
{
    unsigned unknown = 0;
    unsigned done = 0;

    (void)state;
    proxy_set(PROXY_PASS);
    for (uint64_t bytes = 60; bytes < 20000; bytes += bytes / 9) {
        enum err outcome = ERR_OK;
        struct store *s = opened(cluster_conninfo(), 0);
        insert(s);
        s->ops->close(s);
        proxy_cut_after(bytes);
        enum err err = open_at(proxy_conninfo(), 0, &s);
        if (err == ERR_OK)
            err = change(s, 2, &outcome);
        proxy_cut_after(0);
        CHECK(err == ERR_OK || err_is_transient(err), "%s", e.text);
        unknown += err == ERR_UNKNOWN;
        done += err == ERR_OK;
        if (!s) /* it did not get so far */
            s = opened(proxy_conninfo(), 0);
        uint64_t now = revision(s);
        CHECK(err == ERR_UNKNOWN || now == (err == ERR_OK ? 2 : 1), "revision %" PRIu64 ": %s", now,
              err_text(err));
        CHECK(revision(s) == 2 || change(s, 2, &outcome) == ERR_OK, "it goes on: %s", e.text);
        s->ops->close(s);
    }
    CHECK(unknown > 0 && done > 0, "%u unknown, %u done", unknown, done);
}

/* ---- a database that is busy with others ---- */

static void a_lock_of_somebody_else_is_not_waited_for_for_ever(void **state)
{
    enum err outcome;
    struct store *s = opened(cluster_conninfo(), 2000);
    struct list_query q = {.limit = 10};
    struct row_page page;
    struct census census;

    (void)state;
    insert(s);
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PQclear(PQexec(conn, "BEGIN; SELECT * FROM intact_conn.task FOR UPDATE"));
    enum err err = change(s, 2, &outcome);
    CHECK(err == ERR_BUSY && outcome == ERR_BUSY, "%s: %s", err_text(err), e.text);
    CHECK(strstr(e.text, "canceling statement due to lock timeout"), "%s", e.text);
    PQclear(PQexec(conn, "ROLLBACK"));
    CHECK(revision(s) == 1, "of that we are certain");
    PQclear(PQexec(conn, "BEGIN; LOCK TABLE intact_conn.task IN ACCESS EXCLUSIVE MODE"));
    err = s->ops->list(s, &q, &arena, &page, &e);
    CHECK(err == ERR_BUSY, "%s: %s", err_text(err), e.text);
    err = s->ops->counts->census(s, 1000, 10, &arena, &census, &e);
    CHECK(err == ERR_BUSY, "%s: %s", err_text(err), e.text);
    PQclear(PQexec(conn, "ROLLBACK"));
    CHECK(s->ops->list(s, &q, &arena, &page, &e) == ERR_OK && page.count == 1, "%s", e.text);
    CHECK(change(s, 2, &outcome) == ERR_OK, "%s", e.text);
    PQfinish(conn);
    s->ops->close(s);
}

/* From now on each change of a task fails so at its commit, after so long. */
static void commits_fail(const char *code, double after_s)
{
    char text[400];

    (void)snprintf(text, sizeof text,
                   "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                   "PERFORM pg_sleep(%f); RAISE 'planted' USING ERRCODE = '%s'; END $$",
                   after_s, code);
    sql(text);
    sql("DROP TRIGGER IF EXISTS fail ON intact_conn.task");
    sql("CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON intact_conn.task DEFERRABLE INITIALLY "
        "DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()");
}

/* A distributed database may say that it does not know itself. */
static void a_commit_that_fails_is_certain_but_where_the_database_says_otherwise(void **state)
{
    static const struct {
        const char *code;
        enum err err;
    } table[] = {
        {"40003", ERR_UNKNOWN}, {"40001", ERR_BUSY},    {"40P01", ERR_BUSY},    {"53100", ERR_FULL},
        {"57014", ERR_BUSY},    {"57P01", ERR_UNKNOWN}, {"08007", ERR_UNKNOWN}, {"XX000", ERR_IO},
    };
    struct store *s = opened(cluster_conninfo(), 0);
    enum err outcome;

    (void)state;
    insert(s);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        commits_fail(table[i].code, 0);
        enum err err = change(s, 2, &outcome);
        CHECK(err == table[i].err && outcome == err, "%s: %s: %s", table[i].code, err_text(err),
              e.text);
        CHECK(revision(s) == 1, "nothing was done");
    }
    sql("DROP TRIGGER fail ON intact_conn.task");
    CHECK(change(s, 2, &outcome) == ERR_OK && outcome == ERR_OK, "%s", e.text);
    s->ops->close(s);
}

/* Four of these tries would take as long as the call has: the last one would end as "unknown". */
static void what_was_rolled_back_is_tried_again_while_there_is_time(void **state)
{
    struct store *s = opened(cluster_conninfo(), 10000);
    enum err outcome;

    (void)state;
    insert(s);
    commits_fail("40001", 2.5);
    enum err err = change(s, 2, &outcome);
    CHECK(err == ERR_BUSY && outcome == ERR_BUSY, "%s: %s", err_text(err), e.text);
    sql("DROP TRIGGER fail ON intact_conn.task");
    CHECK(change(s, 2, &outcome) == ERR_OK && outcome == ERR_OK, "%s", e.text);
    s->ops->close(s);
}

static void count_it(int number)
{
    static volatile sig_atomic_t count;

    (void)number;
    count = count + 1;
}

static void a_signal_is_no_answer(void **state)
{
    const struct sigaction action = {.sa_handler = count_it}; /* system calls are interrupted */
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction before;
    enum err outcome;

    (void)state;
    struct store *s = opened(cluster_conninfo(), 0);
    insert(s);
    CHECK(sigaction(SIGALRM, &action, &before) == 0, "sigaction");
    (void)setitimer(ITIMER_REAL, &often, NULL);
    for (uint64_t i = 2; i < 200; i++) {
        enum err err = change(s, i, &outcome);
        CHECK(err == ERR_OK && outcome == ERR_OK, "%" PRIu64 ": %s: %s", i, err_text(err), e.text);
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)sigaction(SIGALRM, &before, NULL);
    s->ops->close(s);
}

/* A new connection is relied on after a commit on it, and without a row to write there is none. */
static void who_was_deleted_from_the_list_of_nodes_comes_back(void **state)
{
    struct store *s = opened(cluster_conninfo(), 0);
    uint64_t boot = s->ops->boot(s);
    enum err outcome;
    char text[20];

    (void)state;
    insert(s);
    sql("DELETE FROM intact_conn.node");
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intact'");
    becomes(s, 1);
    CHECK(change(s, 2, &outcome) == ERR_OK && outcome == ERR_OK, "%s", e.text);
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r = PQexec(conn, "SELECT boot FROM intact_conn.node WHERE name = 'n1'");
    (void)snprintf(text, sizeof text, "%" PRIu64, boot);
    CHECK(PQntuples(r) == 1 && strcmp(PQgetvalue(r, 0, 0), text) == 0, "boot %s", text);
    PQclear(r);
    PQfinish(conn);
    s->ops->close(s);
}

/* Where the database is, and who we are there, is nothing for clients. */
static void what_fails_later_does_not_tell_where_the_database_is(void **state)
{
    struct store *s = opened(cluster_conninfo(), 0);
    struct task_row row;
    enum err err;

    (void)state;
    insert(s);
    cluster_kill();
    for (int failed = 0; failed < 10; failed += err != ERR_OK) {
        /* what served us may outlive its parent by a moment */
        err = s->ops->get(s, SLICE("x"), &arena, &row, &e);
        CHECK(err == ERR_OK || err == ERR_IO, "%s", err_text(err));
        CHECK(err == ERR_OK || (!strstr(e.text, cluster_dir()) && !strstr(e.text, "PGSQL")), "%s",
              e.text);
        (void)usleep(10000);
    }
    cluster_start();
    becomes(s, 1);
    s->ops->close(s);
}

/* What a session does without its node's settings: other limits, or none. Through a pooler each
 * transaction sets them (bouncer_test.c). */
static void all_that_is_done_has_limits(void **state)
{
    sql("ALTER ROLE intact SET default_transaction_isolation = 'repeatable read'");
    struct store *s = opened(cluster_conninfo(), 2000);
    struct list_query q = {.limit = 10};
    struct row_page page;
    enum err outcome;

    (void)state;
    insert(s);
    sql("DROP TABLE IF EXISTS seen");
    sql("CREATE TABLE seen (op text, timeout text, lock text, synchronous text, level "
        "text)");
    sql("CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.seen VALUES (TG_TABLE_NAME, current_setting('statement_timeout'), "
        "current_setting('lock_timeout'), current_setting('synchronous_commit'), "
        "current_setting('transaction_isolation')); RETURN NULL; "
        "END $$");
    sql("CREATE TRIGGER see AFTER UPDATE ON intact_conn.task EXECUTE FUNCTION see()");
    sql("CREATE TRIGGER see AFTER INSERT ON intact_conn.lease EXECUTE FUNCTION see()");
    CHECK(s->ops->list(s, &q, &arena, &page, &e) == ERR_OK, "%s", e.text);
    CHECK(change(s, 2, &outcome) == ERR_OK && outcome == ERR_OK, "%s", e.text);
    const struct lease_try want = {SLICE("l"), SLICE("n1/1"), 1, 2, true};
    struct lease l;
    CHECK(s->ops->lease(s, &want, &arena, &l, &e) == ERR_OK, "%s", e.text);
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r =
        PQexec(conn, "SELECT string_agg(concat_ws(' ', op, timeout, lock, synchronous, level), "
                     "', ' ORDER BY op) FROM seen");
    CHECK(strcmp(PQgetvalue(r, 0, 0), "lease 1601ms 1001ms on repeatable read, "
                                      "task 1601ms 1001ms on read committed")
              == 0,
          "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    PQfinish(conn);
    sql("DROP TRIGGER see ON intact_conn.task");
    sql("DROP TRIGGER see ON intact_conn.lease");
    sql("ALTER ROLE intact RESET default_transaction_isolation");
    s->ops->close(s);
}

/* In the session of that store. */
static void session_runs(struct store *s, const char *text)
{
    PGconn *c = postgres_store_of(s)->conn;

    CHECK(PQexitPipelineMode(c), "%s", PQerrorMessage(c));
    PGresult *r = PQexec(c, text);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(c));
    PQclear(r);
    CHECK(PQenterPipelineMode(c), "%s", PQerrorMessage(c));
}

/* Lines of the database's log that execute a statement by that name. */
static unsigned executed(const char *name)
{
    char path[200];
    char line[4000];
    char want[60];
    unsigned count = 0;

    (void)snprintf(path, sizeof path, "%s/log", cluster_dir());
    (void)snprintf(want, sizeof want, "execute %s:", name);
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    while (fgets(line, sizeof line, f))
        count += strstr(line, want) != NULL;
    (void)fclose(f);
    return count;
}

static struct store *opened_and_logged(void)
{
    char conninfo[300];

    (void)snprintf(conninfo, sizeof conninfo, "%s options='-c log_statement=all'",
                   cluster_conninfo());
    return opened(conninfo, 5000);
}

/* With the second use. */
static void statements_are_prepared_again_on_another_connection(void **state)
{
    struct store *s = opened_and_logged();
    (void)state;

    insert(s);
    (void)revision(s);
    for (int round = 0; round < 3; round++) {
        unsigned before = executed("GET");
        for (int i = 0; i < 4; i++)
            (void)revision(s);
        CHECK(executed("GET") - before == 4, "%u of 4 were prepared", executed("GET") - before);
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'intact'");
        becomes(s, 1);
    }
    s->ops->close(s);
}

static const char *const losses[] = {"DEALLOCATE ALL", "DISCARD ALL"};

/* As by a pooler that gives itself out for the server. */
static void statements_that_were_lost_are_made_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        struct store *s = opened(cluster_conninfo(), 5000);
        enum err outcome;
        insert(s);
        for (uint64_t k = 2; k < 9; k++) {
            CHECK(change(s, k, &outcome) == ERR_OK && outcome == ERR_OK, "%s", e.text);
            CHECK(revision(s) == k, "revision %" PRIu64, k);
            if (k == 5)
                session_runs(s, losses[i]);
        }
        s->ops->close(s);
    }
}

/* "cached plan must not change result type": as a migration by a newer node may cause. */
static void a_column_of_another_type_is_no_failure(void **state)
{
    struct store *s = opened(cluster_conninfo(), 5000);
    const struct lease_try want = {SLICE("typed"), SLICE("n1/1"), 1, 2, true};
    struct lease l;
    (void)state;

    for (int i = 0; i < 9; i++) {
        CHECK(s->ops->lease(s, &want, &arena, &l, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_is(l.holder, "n1/1"), "%.*s", SLICE_ARG(l.holder));
        if (i == 4)
            sql("ALTER TABLE intact_conn.lease ALTER COLUMN holder TYPE varchar");
    }
    sql("ALTER TABLE intact_conn.lease ALTER COLUMN holder TYPE text");
    s->ops->close(s);
}

/* The database means it: the statement fails each time, and later ones are made once. */
static void what_fails_again_repeats_nothing_later(void **state)
{
    struct store *s = opened(cluster_conninfo(), 5000);
    const struct lease_try want = {SLICE("odd"), SLICE("n1/1"), 1, 2, true};
    struct lease l;
    (void)state;

    insert(s);
    for (int i = 0; i < 3; i++)
        CHECK(s->ops->lease(s, &want, &arena, &l, &e) == ERR_OK, "%s", e.text);
    sql("CREATE FUNCTION intact_conn.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'not here' USING ERRCODE = '0A000'; END$$");
    sql("CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON intact_conn.lease "
        "FOR EACH ROW EXECUTE FUNCTION intact_conn.refuse()");
    for (uint64_t k = 2; k < 6; k++) {
        enum err outcome;
        CHECK(s->ops->lease(s, &want, &arena, &l, &e) != ERR_OK, "it was refused");
        CHECK(change(s, k, &outcome) == ERR_OK && outcome == ERR_OK, "change %" PRIu64 ": %s, %s",
              k, err_text(outcome), e.text);
    }
    sql("DROP TRIGGER refuse ON intact_conn.lease");
    sql("DROP FUNCTION intact_conn.refuse()");
    s->ops->close(s);
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
        cmocka_unit_test(bad_strings_get_a_message_without_the_password),
        cmocka_unit_test(what_cannot_be_reached_is_named_without_the_password),
        cmocka_unit_test(passwords_come_from_wherever_libpq_finds_them),
        cmocka_unit_test(of_several_hosts_the_one_that_takes_writes_is_used),
        cmocka_unit_test(a_database_that_only_reads_is_refused),
        cmocka_unit_test(what_is_not_answered_ends_and_may_be_done_later),
        cmocka_unit_test(what_was_done_and_not_heard_of_is_unknown),
        cmocka_unit_test(without_a_database_calls_end_and_it_is_certain),
        cmocka_unit_test(cut_anywhere_a_batch_is_whole_or_not_there),
        cmocka_unit_test(a_lock_of_somebody_else_is_not_waited_for_for_ever),
        cmocka_unit_test(a_commit_that_fails_is_certain_but_where_the_database_says_otherwise),
        cmocka_unit_test(what_was_rolled_back_is_tried_again_while_there_is_time),
        cmocka_unit_test(a_signal_is_no_answer),
        cmocka_unit_test(who_was_deleted_from_the_list_of_nodes_comes_back),
        cmocka_unit_test(all_that_is_done_has_limits),
        cmocka_unit_test(statements_are_prepared_again_on_another_connection),
        cmocka_unit_test(statements_that_were_lost_are_made_again),
        cmocka_unit_test(a_column_of_another_type_is_no_failure),
        cmocka_unit_test(what_fails_again_repeats_nothing_later),
        cmocka_unit_test(what_fails_later_does_not_tell_where_the_database_is),
    };
    return cmocka_run_group_tests_name("connection to PostgreSQL", tests, NULL, end);
}
