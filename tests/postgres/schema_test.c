/*
 * The schema in a database: created by many nodes at once, by nodes that die meanwhile, with
 * minimal rights; and the warnings about a database that may lose acknowledged data.
 */

#include "base/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/prng.h"
#include "cluster.h"
#include "store/postgres/body.h"
#include "store/postgres/postgres.h"
#include "store/postgres_migrations.h"

enum { NODES = 10, ROUNDS = 5, KILLS = 40 };

static struct error e;

static enum err open_as(const char *user, const char *schema, struct store **ret)
{
    char conninfo[160];
    const struct postgres_options o = {.conninfo = conninfo, .schema = schema, .node = "n1"};

    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=%s dbname=postgres", cluster_dir(),
                   user);
    e = (struct error){0};
    *ret = NULL;
    return postgres_store_open(&o, ret, &e);
}

static void opens_as(const char *user, const char *schema)
{
    struct store *s;

    CHECK(open_as(user, schema, &s) == ERR_OK, "%s: %s", user, e.text);
    s->ops->close(s);
}

/* The first value of the answer; to be freed. */
static char *ask(const char *sql)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(r);

    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
          PQerrorMessage(conn));
    char *value = strdup(PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(conn);
    return value;
}

static void sql(const char *text)
{
    free(ask(text));
}

static void is(const char *query, const char *expected)
{
    char *value = ask(query);

    CHECK(strcmp(value, expected) == 0, "%s: %s, expected %s", query, value, expected);
    free(value);
}

static void version_is(const char *schema, int version)
{
    char query[100];
    char expected[16];

    (void)snprintf(query, sizeof query,
                   "SELECT convert_from(value, 'UTF8') FROM %s.meta WHERE name = 'version'",
                   schema);
    (void)snprintf(expected, sizeof expected, "%d", version);
    is(query, expected);
}

/* ---- many at once ---- */

static pid_t start_node(const char *user, const char *schema, int number)
{
    pid_t pid = cluster_fork();
    char conninfo[160];
    char node[16];

    if (pid)
        return pid;
    (void)snprintf(node, sizeof node, "n%d", number);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=%s dbname=postgres", cluster_dir(),
                   user);
    const struct postgres_options o = {.conninfo = conninfo, .schema = schema, .node = node};
    struct store *s = NULL;
    enum err err = postgres_store_open(&o, &s, &e);
    CHECK(err == ERR_OK, "node %d: %s", number, e.text);
    uint64_t boot = s->ops->boot(s);
    s->ops->close(s);
    _exit(boot == 1 ? 0 : 3);
}

static void ten_nodes_make_one_schema(void **state)
{
    (void)state;
    (void)cluster_conninfo();
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[NODES];
        sql("DROP SCHEMA IF EXISTS intact_many CASCADE");
        for (int i = 0; i < NODES; i++)
            pids[i] = start_node("intact", "intact_many", i);
        for (int i = 0; i < NODES; i++) {
            int status = -1;
            CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "node %d: %d", i, status);
        }
        is("SELECT count(*) FROM intact_many.node", "10");
        version_is("intact_many", pg_schema_version);
    }
}

/* Killed at any moment, each leaves something that the next one can start from. */
static void nodes_killed_while_they_make_it_leave_nothing_half_done(void **state)
{
    struct prng random = {7};

    (void)state;
    (void)cluster_conninfo();
    for (int i = 0; i < KILLS; i++) {
        if (i % 4 == 0)
            sql("DROP SCHEMA IF EXISTS intact_killed CASCADE");
        pid_t pid = start_node("intact", "intact_killed", i);
        (void)usleep(prng_below(&random, 60000));
        (void)kill(pid, SIGKILL);
        CHECK(waitpid(pid, NULL, 0) == pid, "it is gone");
        if (i % 4 == 3)
            opens_as("intact", "intact_killed");
    }
}

/* As version 1 of it made the schema, and a node of it left it. */
static void make_version_1(void)
{
    CLEANUP(buf_fini) struct buf tables = {0};

    pg_sql_expand(&tables, postgres_migrations[0], "intact_older.");
    sql("CREATE SCHEMA intact_older AUTHORIZATION intact");
    buf_str(&tables,
            "; CREATE TABLE intact_older.meta (name TEXT COLLATE \"C\" PRIMARY KEY, "
            "value BYTEA NOT NULL); INSERT INTO intact_older.meta VALUES ('version', '1')");
    CLEANUP(buf_fini) struct buf whole = {0};
    buf_fmt(&whole, "SET ROLE intact; %s", tables.ptr);
    sql(whole.ptr);
    sql("INSERT INTO intact_older.generation (name, number) VALUES ('token', 7) "
        "ON CONFLICT (name) DO UPDATE SET number = 7");
    sql("INSERT INTO intact_older.task (id, workflow, version, revision, state, direction, "
        "priority, rank, failure_count, doc) VALUES ('old', 'w', 1, 1, 'processing', 'forward', 5, "
        "1, 0, '{\"steps\":[{\"name\":\"a\",\"state\":\"completed\"},"
        "{\"name\":\"b\",\"state\":\"waiting\"}]}')");
}

/* With nodes that start at once. */
static void ten_nodes_bring_one_schema_forward(void **state)
{
    pid_t pids[NODES];

    (void)state;
    (void)cluster_conninfo();
    make_version_1();
    for (int i = 0; i < NODES; i++)
        pids[i] = start_node("intact", "intact_older", i + 100);
    for (int i = 0; i < NODES; i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0, "node %d: %d", i, status);
    }
    version_is("intact_older", pg_schema_version);
    is("SELECT count(*) FROM intact_older.agent", "0");
    is("SELECT number FROM intact_older.generation WHERE name = 'token'", "7");
    is("SELECT boot FROM intact_older.node WHERE name = 'n100'", "1");
    is("SELECT string_agg(name || ' ' || state, ', ' ORDER BY position) "
       "FROM intact_older.task_step",
       "a completed, b waiting");
    is("SELECT count(*) FROM intact_older.task_view WHERE parent IS NULL AND root IS NULL", "1");
}

/* And it is the same as a new one. */
static void a_schema_brought_forward_is_as_a_new_one(void **state)
{
    (void)state;
    opens_as("intact", "intact_fresh");
    is("SELECT count(*) FROM ((SELECT table_name, column_name, data_type, column_default IS NULL "
       "FROM information_schema.columns WHERE table_schema = 'intact_fresh') EXCEPT "
       "(SELECT table_name, column_name, data_type, column_default IS NULL "
       "FROM information_schema.columns WHERE table_schema = 'intact_older')) AS missing",
       "0");
    is("SELECT count(*) FROM ((SELECT indexname, replace(indexdef, 'intact_fresh', '') "
       "FROM pg_indexes WHERE schemaname = 'intact_fresh') EXCEPT "
       "(SELECT indexname, replace(indexdef, 'intact_older', '') "
       "FROM pg_indexes WHERE schemaname = 'intact_older')) AS missing",
       "0");
}

/* Also in a schema that was brought forward: all changes wait for a batch that has such a value. */
static void large_values_are_compressed_by_the_quick_method(void **state)
{
    (void)state;
    is("SELECT string_agg(a.attrelid::regclass || '.' || a.attname, ' ' ORDER BY c.relname) "
       "FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'r' "
       "JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'intact_older' "
       "WHERE a.attcompression = 'l'",
       "intact_older.payload.json intact_older.submission.input intact_older.task.doc");
}

/* By whoever has all rights, and in a schema that was brought forward, too. */
static void the_audit_is_only_added_to(void **state)
{
    static const char *const tries[] = {
        "DELETE FROM audit",
        "UPDATE audit SET actor = 'bob'",
        "TRUNCATE task, audit",
        ("INSERT INTO audit (seq, at, actor, verb) SELECT seq, at, 'bob', verb FROM audit "
         "ON CONFLICT (seq) DO UPDATE SET actor = excluded.actor"),
    };
    static const char *const schemas[] = {"intact_older", "intact_audit"};
    char query[200];

    (void)state;
    opens_as("intact", "intact_audit");
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        PGconn *conn = PQconnectdb(cluster_conninfo());
        (void)snprintf(query, sizeof query,
                       "SET search_path = %s; "
                       "INSERT INTO audit (at, actor, verb) VALUES (1, 'ann', 'retry')",
                       schemas[i]);
        PGresult *r = PQexec(conn, query);
        CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
        PQclear(r);
        for (size_t k = 0; k < COUNT_OF(tries); k++) {
            r = PQexec(conn, tries[k]);
            CHECK(PQresultStatus(r) == PGRES_FATAL_ERROR
                      && strstr(PQerrorMessage(conn), "the audit is only added to"),
                  "%s: %s", tries[k], PQerrorMessage(conn));
            PQclear(r);
        }
        PQfinish(conn);
        (void)snprintf(query, sizeof query, "SELECT count(*) FROM %s.audit WHERE actor = 'ann'",
                       schemas[i]);
        is(query, "1");
    }
}

static struct reservation reserved_x(struct store *s, struct arena *a)
{
    struct reservation kept = {0};

    CHECK(s->ops->retention->reserved(s, SLICE("x"), a, &kept, &e) == ERR_OK, "%s", e.text);
    return kept;
}

static struct content reserved_content(struct store *s, struct arena *a)
{
    return reserved_x(s, a).content;
}

/* While nodes are replaced one after the other, some write what they knew before: the hash alone,
 * also over what a newer one wrote. */
static void ids_reserved_by_an_older_node_are_known_by_the_hash(void **state)
{
    static const char digest[] = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    CLEANUP(arena_fini) struct arena a = {0};
    struct store *s;
    (void)state;

    CHECK(open_as("intact", "intact_rolling", &s) == ERR_OK, "%s", e.text);
    sql("INSERT INTO intact_rolling.reserved (id, content, workflow, version, state, ended_at, "
        "until) VALUES ('x', '00000000000000ab', 'o', 1, 'processed', 5, 9000)");
    struct content c = reserved_content(s, &a);
    CHECK(c.hash == 0xab && !c.sha256.ptr, "the hash alone");
    sql("UPDATE intact_rolling.reserved SET sha256 = "
        "content || '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'");
    c = reserved_content(s, &a);
    CHECK(c.hash == 0xab && slice_is(c.sha256, digest), "%.*s", SLICE_ARG(c.sha256));
    CHECK(!reserved_x(s, &a).owner.ptr, "nobody's");
    sql("UPDATE intact_rolling.reserved SET owner = content || 'shop'");
    CHECK(slice_is(reserved_x(s, &a).owner, "shop"), "its owner's");
    sql("UPDATE intact_rolling.reserved SET content = '00000000000000cd'");
    c = reserved_content(s, &a);
    CHECK(c.hash == 0xcd && !c.sha256.ptr, "it is of another task, of the same id");
    CHECK(!reserved_x(s, &a).owner.ptr, "so is the owner");
    s->ops->close(s);
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    struct store *s;

    (void)state;
    opens_as("intact", "intact_newer");
    char text[100];
    (void)snprintf(text, sizeof text,
                   "UPDATE intact_newer.meta SET value = '%d' WHERE name = 'version'",
                   pg_schema_version + 1);
    sql(text);
    (void)snprintf(text, sizeof text, "this one knows %d", pg_schema_version);
    CHECK(open_as("intact", "intact_newer", &s) == ERR_NEWER, "%s", e.text);
    CHECK(strstr(e.text, "\"intact_newer\"") && strstr(e.text, text), "%s", e.text);
    version_is("intact_newer", pg_schema_version + 1);
    is("SELECT boot FROM intact_newer.node", "1");
}

static void a_role_without_rights_is_told_what_to_do(void **state)
{
    struct store *s;

    (void)state;
    sql("CREATE ROLE nobody_here LOGIN");
    CHECK(open_as("nobody_here", "intact_mine", &s) == ERR_IO, "it may not");
    CHECK(strstr(e.text, "\"intact_mine\"") && strstr(e.text, "start a node once with a role"),
          "%s", e.text);
    opens_as("intact", "intact_theirs");
    CHECK(open_as("nobody_here", "intact_theirs", &s) == ERR_IO, "nor this");
    CHECK(strstr(e.text, "permission denied"), "%s", e.text);
}

/* ---- who may submit and not read ---- */

/* What the role is told; to be freed. */
static char *refusal(PGconn *conn, const char *code, const char *text)
{
    PGresult *r = PQexec(conn, text);
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

    CHECK(state && strcmp(state, code) == 0, "%s: %s", text, PQresultErrorMessage(r));
    char *verbose = PQresultVerboseErrorMessage(r, PQERRORS_VERBOSE, PQSHOW_CONTEXT_ALWAYS);
    CHECK(verbose && !strstr(verbose, "4929") && !strstr(verbose, "another one"), "%s", verbose);
    char *told = strdup(PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
    PQfreemem(verbose);
    PQclear(r);
    return told;
}

/* How many of these guesses at what task "a" holds are taken: of a wrong one, a right one, one
 * under another workflow, and one that no conversion takes. */
static int guesses_taken(PGconn *conn)
{
    static const char *const guesses[] = {
        "INSERT INTO intact_mute.submit (workflow, id, input, on_error) VALUES "
        "('order', 'a', '{\"card\":\"x\",\"total\":7}', 'raise')",
        "SELECT intact_mute.submit(workflow => 'order', id => 'a', input => "
        "'{\"card\":\"4929\"}', on_error => 'raise')",
        "SELECT intact_mute.submit(workflow => 'order', id => 'b', input => '{\"card\":\"x\"}', "
        "on_error => 'raise')",
        "SELECT intact_mute.submit(workflow => 'order', id => 'odd', input => "
        "'{\"card\":\"x\"}', on_error => 'raise')",
    };
    int taken = 0;

    for (size_t i = 0; i < COUNT_OF(guesses); i++) {
        PGresult *r = PQexec(conn, guesses[i]);
        ExecStatusType status = PQresultStatus(r);
        taken += status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
        PQclear(r);
    }
    return taken;
}

static void a_role_that_only_submits_learns_nothing_of_other_tasks(void **state)
{
    char conninfo[160];

    (void)state;
    opens_as("intact", "intact_mute");
    sql("INSERT INTO intact_mute.workflow (name, version, text, created_at, inputs, generation) "
        "VALUES "
        "('order', 1, 'x', 1, '[{\"name\":\"card\",\"type\":\"string\",\"required\":false},"
        "{\"name\":\"total\",\"type\":\"number\",\"required\":false}]', 1), "
        "('another one', 1, 'x', 1, 'null', 2)");
    sql("INSERT INTO intact_mute.task (id, workflow, version, revision, state, direction, "
        "priority, rank, failure_count, doc) SELECT n.id, n.workflow, 1, 1, 'processing', "
        "'forward', 5, 1, 0, '{\"input\":' || n.input || ',\"steps\":[]}' FROM (VALUES "
        "('a', 'order', '{\"card\":\"4929\",\"total\":7}'), "
        "('b', 'another one', '{\"card\":\"4929\"}'), "
        "('odd', 'order', '{\"card\":\"4929\\u0000\"}')) AS n(id, workflow, input)");
    sql("CREATE ROLE mute LOGIN; GRANT USAGE ON SCHEMA intact_mute TO mute; "
        "GRANT INSERT ON intact_mute.submit TO mute; "
        "GRANT EXECUTE ON FUNCTION intact_mute.submit TO mute");
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=mute dbname=postgres", cluster_dir());
    PGconn *conn = PQconnectdb(conninfo);
    /* Whether a guess is right, it is not told: the server judges. */
    CHECK(guesses_taken(conn) == 4, "by a role that may not read");
    sql("DELETE FROM intact_mute.submission WHERE id <> 'odd'");
    is("SELECT count(*) FROM intact_mute.submission WHERE id = 'odd'", "1"); /* the server's */
    free(refusal(conn, "42501", "SELECT doc FROM intact_mute.task"));
    free(refusal(conn, "42501", "SELECT input FROM intact_mute.submission"));

    /* A role that may read gets the reason at once. */
    sql("GRANT SELECT ON intact_mute.task TO mute");
    CHECK(guesses_taken(conn) == 2, "by one that may");
    char *told = refusal(conn, "23505",
                         "INSERT INTO intact_mute.submit (workflow, id, input, on_error) VALUES "
                         "('order', 'a', '{\"card\":\"x\",\"total\":7}', 'raise')");
    CHECK(strstr(told, "submit: id \"a\" is that of another task"), "%s", told);
    free(told);
    PQfinish(conn);
}

/* All that a role may do in a schema: "submit INSERT" and the like. Functions of triggers cannot
 * be called. */
static char *rights_of(const char *role, const char *schema)
{
    char query[2000];

    (void)snprintf(
        query, sizeof query,
        "SELECT coalesce(string_agg(r.text, ', ' ORDER BY r.text), '') FROM ("
        "SELECT c.relname || ' ' || p.name AS text FROM pg_class AS c, "
        "unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p(name) "
        "WHERE c.relnamespace = '%s'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p') "
        "AND has_table_privilege('%s', c.oid, p.name) UNION ALL "
        "SELECT c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attacl IS NOT NULL WHERE c.relnamespace = '%s'::regnamespace "
        "UNION ALL SELECT c.relname || ' sequence' FROM pg_class AS c "
        "WHERE c.relnamespace = '%s'::regnamespace AND "
        "CASE c.relkind WHEN 'S' THEN has_sequence_privilege('%s', c.oid, 'USAGE, SELECT, UPDATE') "
        "END UNION ALL "
        "SELECT p.proname || '()' FROM pg_proc AS p WHERE p.pronamespace = '%s'::regnamespace "
        "AND p.prorettype <> 'trigger'::regtype AND has_function_privilege('%s', p.oid, 'EXECUTE') "
        "UNION ALL SELECT 'CREATE' WHERE has_schema_privilege('%s', '%s', 'CREATE')) AS r",
        schema, role, schema, schema, role, schema, role, role, schema);
    return ask(query);
}

/* Whatever is added to the schema is for nobody but its owner. */
static void a_role_that_only_submits_may_do_nothing_else(void **state)
{
    static const char *const attempts[] = {
        "SELECT * FROM intact_narrow.submit",
        "UPDATE intact_narrow.submit SET workflow = 'x'",
        "DELETE FROM intact_narrow.submit",
        "INSERT INTO intact_narrow.submission (id, workflow, submitted_at) VALUES ('a', 'b', 1)",
        "INSERT INTO intact_narrow.signal (task, name) VALUES ('a', 'b')",
        "SELECT intact_narrow.submission_add('w', 1, 'a', '{}', 5, NULL, NULL, NULL, 'record')",
        "SELECT text FROM intact_narrow.workflow",
        "SELECT hash FROM intact_narrow.token",
        "UPDATE intact_narrow.token SET roles = '[\"admin\"]'",
        "DELETE FROM intact_narrow.audit",
        "CREATE TABLE intact_narrow.mine (n int)",
    };
    char conninfo[160];
    (void)state;

    opens_as("intact", "intact_narrow");
    sql("CREATE ROLE narrow LOGIN; GRANT USAGE ON SCHEMA intact_narrow TO narrow");
    char *rights = rights_of("narrow", "intact_narrow");
    CHECK(strcmp(rights, "") == 0, "nothing was granted: %s", rights);
    free(rights);
    sql("GRANT INSERT ON intact_narrow.submit TO narrow; "
        "GRANT EXECUTE ON FUNCTION intact_narrow.submit TO narrow");
    rights = rights_of("narrow", "intact_narrow");
    CHECK(strcmp(rights, "submit INSERT, submit()") == 0, "%s", rights);
    free(rights);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=narrow dbname=postgres", cluster_dir());
    PGconn *conn = PQconnectdb(conninfo);
    for (size_t i = 0; i < COUNT_OF(attempts); i++)
        free(refusal(conn, "42501", attempts[i]));
    PGresult *r = PQexec(conn, "INSERT INTO intact_narrow.submit (workflow) VALUES ('any')");
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQresultErrorMessage(r));
    PQclear(r);
    PQfinish(conn);
}

/* ---- what is not durable ---- */

/* What is logged while a store is opened. */
static const char *log_of(const char *user, const char *schema)
{
    static char text[8192];
    char path[] = "/tmp/intact-log-XXXXXX";
    int fd = mkstemp(path);
    int before = dup(2);

    CHECK(fd >= 0 && before >= 0 && dup2(fd, 2) == 2, "a file for the log");
    struct store *s = NULL;
    enum err err = open_as(user, schema, &s);
    (void)dup2(before, 2);
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    text[len > 0 ? len : 0] = 0;
    (void)close(fd);
    (void)close(before);
    (void)unlink(path);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(atomic_load(&s->at_risk) == (strstr(text, "database_not_durable") != NULL),
          "its metric says the same:\n%s", text);
    s->ops->close(s);
    return text;
}

/* A setting of the server takes effect when its processes have heard of it. */
static void set_server(const char *name, const char *value)
{
    char text[200];
    char *now = NULL;

    (void)snprintf(text, sizeof text, "ALTER SYSTEM SET %s = '%s'", name, value);
    sql(text);
    sql("SELECT pg_reload_conf()");
    (void)snprintf(text, sizeof text, "SELECT current_setting('%s')", name);
    while (strcmp(now ? now : "not yet", value) != 0) {
        free(now);
        now = ask(text);
        (void)usleep(1000);
    }
    free(now);
}

static void says(const char *setting, const char *value, bool said)
{
    char line[120];
    const char *log = log_of("intact", "intact_durable");

    (void)snprintf(line, sizeof line, "event=database_not_durable setting=%s value=\"%s\"", setting,
                   value);
    const char *found = strstr(log, line);
    CHECK(!found == !said, "%s is %s:\n%s", line, said ? "not said" : "said", log);
    CHECK(!found || !strstr(found + 1, line), "twice:\n%s", log);
}

static void what_is_not_durable_is_said(void **state)
{
    (void)state;
    says("fsync", "off", true); /* as all of the tests' are */
    says("full_page_writes", "off", false);
    set_server("full_page_writes", "off");
    says("full_page_writes", "off", true);
    set_server("full_page_writes", "on");

    says("synchronous_commit", "off", false);
    sql("ALTER ROLE intact SET synchronous_commit = off");
    says("synchronous_commit", "off", true);
    sql("ALTER ROLE intact SET synchronous_commit = local");
    says("synchronous_commit", "local", false); /* without a standby it is as good */
    sql("ALTER ROLE intact RESET synchronous_commit");

    says("unlogged_tables", "audit", false);
    sql("ALTER TABLE intact_durable.audit SET UNLOGGED");
    says("unlogged_tables", "audit", true);
    sql("ALTER TABLE intact_durable.audit SET LOGGED");
    says("unlogged_tables", "audit", false);
}

static void replicates(const char *count)
{
    char *n = NULL;

    while (strcmp(n ? n : "", count) != 0) {
        free(n);
        n = ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
        (void)usleep(1000);
    }
    free(n);
}

/* Whatever streams is as good as a standby here. */
static void a_standby_that_is_not_synchronous_is_said(void **state)
{
    const char *const args[] = {"pg_receivewal", "-h", cluster_dir(), "-U", "intact", "-D", "wal",
                                "--synchronous", NULL};
    const char *const make[] = {"/bin/mkdir", "wal", NULL};

    (void)state;
    CHECK(waitpid(cluster_run("/bin/mkdir", make), NULL, 0) > 0, "a folder");
    says("replication_connections", "1", false);
    pid_t pid = cluster_run("pg_receivewal", args);
    replicates("1");
    says("replication_connections", "1", true);
    sql("CREATE ROLE little LOGIN");
    sql("GRANT ALL ON SCHEMA intact_durable TO little");
    sql("GRANT ALL ON ALL TABLES IN SCHEMA intact_durable TO little");
    CHECK(strstr(log_of("little", "intact_durable"), "replication_connections"), "nor hidden");
    set_server("synchronous_standby_names", "pg_receivewal");
    says("replication_connections", "1", false);
    says("synchronous_commit", "remote_write", false);
    sql("SET synchronous_commit = local; ALTER ROLE intact SET synchronous_commit = remote_write");
    says("synchronous_commit", "remote_write", true);
    sql("SET synchronous_commit = local; ALTER ROLE intact SET synchronous_commit = local");
    says("synchronous_commit", "local", true);
    sql("SET synchronous_commit = local; ALTER ROLE intact RESET synchronous_commit");
    set_server("synchronous_standby_names", "");
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "pg_receivewal");
    replicates("0");
    says("replication_connections", "1", false);
}

/* Every change asks for it, whatever the role's own setting is; a higher one is kept. */
static void changes_ask_to_be_durable(void **state)
{
    static const struct {
        const char *set, *seen;
    } table[] = {{"off", "on"},
                 {"local", "on"},
                 {"on", "on"},
                 {"remote_write", "remote_write"},
                 {"remote_apply", "remote_apply"}};
    struct task_row row = {
        .id = SLICE("x"), .workflow = SLICE("w"), .version = 1, .revision = 1, .doc = SLICE("{}")};
    struct arena a = {0};

    (void)state;
    opens_as("intact", "intact_durable");
    sql("CREATE TABLE seen (value text)");
    sql("CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
        "public.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$");
    sql("CREATE TRIGGER see AFTER INSERT ON intact_durable.task EXECUTE FUNCTION see()");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        char text[100];
        struct store *s;
        struct change c = {.kind = CHANGE_INSERT, .row = row};
        struct batch b = {.changes = &c, .change_count = 1};
        (void)snprintf(text, sizeof text, "ALTER ROLE intact SET synchronous_commit = %s",
                       table[i].set);
        sql(text);
        sql("TRUNCATE seen, intact_durable.task");
        CHECK(open_as("intact", "intact_durable", &s) == ERR_OK, "%s", e.text);
        CHECK(s->ops->commit(s, &b, &a, &e) == ERR_OK && c.outcome == ERR_OK, "%s", e.text);
        s->ops->close(s);
        is("SELECT value FROM seen", table[i].seen);
    }
    sql("ALTER ROLE intact RESET synchronous_commit");
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_nodes_make_one_schema),
        cmocka_unit_test(nodes_killed_while_they_make_it_leave_nothing_half_done),
        cmocka_unit_test(ten_nodes_bring_one_schema_forward),
        cmocka_unit_test(a_schema_brought_forward_is_as_a_new_one),
        cmocka_unit_test(large_values_are_compressed_by_the_quick_method),
        cmocka_unit_test(the_audit_is_only_added_to),
        cmocka_unit_test(ids_reserved_by_an_older_node_are_known_by_the_hash),
        cmocka_unit_test(a_newer_schema_is_refused_and_left_alone),
        cmocka_unit_test(a_role_without_rights_is_told_what_to_do),
        cmocka_unit_test(a_role_that_only_submits_learns_nothing_of_other_tasks),
        cmocka_unit_test(a_role_that_only_submits_may_do_nothing_else),
        cmocka_unit_test(what_is_not_durable_is_said),
        cmocka_unit_test(a_standby_that_is_not_synchronous_is_said),
        cmocka_unit_test(changes_ask_to_be_durable),
    };
    return cmocka_run_group_tests_name("schema in PostgreSQL", tests, NULL, NULL);
}
