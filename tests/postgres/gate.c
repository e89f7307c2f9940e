/* Implements gate.h: two nodes on one database whose statements meet in the order that a test
 * chooses, by a policy of the table that waits for an advisory lock. store_between_test.c has the
 * tests. */

#include "gate.h"

#include "base/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "cluster.h"

enum { WAIT_MS = 300000, PAUSE_US = 2000 };

static PGconn *connect_to(const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);

    CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    return conn;
}

static void execute(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);
    ExecStatusType is = PQresultStatus(r);

    CHECK(is == PGRES_COMMAND_OK || is == PGRES_TUPLES_OK, "%s: %s", sql, PQerrorMessage(conn));
    PQclear(r);
}

static long number(PGconn *conn, const char *query)
{
    PGresult *r = PQexec(conn, query);

    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1, "%s: %s", query,
          PQerrorMessage(conn));
    long n = strtol(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return n;
}

static struct store *open_store(const char *conninfo, const char *node)
{
    const struct postgres_options o = {.conninfo = conninfo,
                                       .schema = "between",
                                       .node = node,
                                       .wait_ms = WAIT_MS};
    struct store *s = NULL;
    struct error e = {0};

    CHECK(postgres_store_open(&o, &s, &e) == ERR_OK, "%s", e.text);
    return s;
}

/* The first one is a role of its own: a policy holds for nobody who is a superuser. */
static const char roles[] =
    "DROP SCHEMA IF EXISTS between CASCADE; DROP SCHEMA IF EXISTS gate CASCADE;"
    "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'first') THEN "
    "CREATE ROLE first LOGIN; END IF; END $$;"
    "GRANT CREATE ON DATABASE postgres TO first; CREATE SCHEMA gate; "
    "GRANT USAGE ON SCHEMA gate TO first;"
    "CREATE FUNCTION gate.pass() RETURNS bool LANGUAGE plpgsql VOLATILE AS $$ BEGIN "
    "PERFORM pg_advisory_xact_lock_shared(7); RETURN true; END $$";
static const char policy[] =
    "ALTER TABLE task ENABLE ROW LEVEL SECURITY; ALTER TABLE task FORCE ROW LEVEL SECURITY; "
    "CREATE POLICY gate ON task USING (gate.pass()) WITH CHECK (true)";

int gate_setup(void **state)
{
    struct gate *g = calloc(1, sizeof *g);
    char conninfo[200];

    ASSERT(g);
    g->hand = connect_to(cluster_conninfo());
    g->watch = connect_to(cluster_conninfo());
    execute(g->hand, roles);
    (void)snprintf(conninfo, sizeof conninfo, "%s user=first", cluster_conninfo());
    g->first = open_store(conninfo, "n1");
    execute(g->hand, "SET search_path = between");
    execute(g->hand, policy);
    g->second = open_store(cluster_conninfo(), "n2");
    *state = g;
    return 0;
}

int gate_teardown(void **state)
{
    struct gate *g = *state;

    g->first->ops->close(g->first);
    g->second->ops->close(g->second);
    PQfinish(g->hand);
    PQfinish(g->watch);
    arena_fini(&g->a);
    free(g);
    return 0;
}

void gate_do(struct gate *g, const char *sql)
{
    execute(g->hand, sql);
}

long gate_number(struct gate *g, const char *query)
{
    return number(g->hand, query);
}

void gate_close(struct gate *g)
{
    execute(g->watch, "SELECT pg_advisory_lock(7)");
}

void gate_open(struct gate *g)
{
    execute(g->watch, "SELECT pg_advisory_unlock(7)");
}

static void *run(void *arg)
{
    struct call *c = arg;

    c->err = c->run(c->s, c->arg, &c->a, &c->e);
    __atomic_store_n(&c->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

void call_begin(struct call *c, struct gate *g, struct store *s,
                enum err (*how)(struct store *, void *, struct arena *, struct error *), void *arg)
{
    *c = (struct call){.g = g, .s = s, .run = how, .arg = arg};
    CHECK(pthread_create(&c->thread, NULL, run, c) == 0, "a thread");
}

bool call_waits(struct call *c)
{
    char query[200];

    (void)snprintf(query, sizeof query,
                   "SELECT count(*) FROM pg_stat_activity WHERE usename %s 'first' "
                   "AND application_name = 'intact' AND wait_event_type = 'Lock'",
                   c->s == c->g->first ? "=" : "<>");
    while (!__atomic_load_n(&c->done, __ATOMIC_SEQ_CST)) {
        if (number(c->g->watch, query) > 0)
            return true;
        (void)usleep(PAUSE_US);
    }
    return false;
}

enum err call_end(struct call *c)
{
    CHECK(pthread_join(c->thread, NULL) == 0, "join");
    return c->err;
}
