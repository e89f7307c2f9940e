/* Implements the tasks and agents of kit.h over the requests of kit_http.c, and SQL on the server's
 * database. */

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "kit.h"
#include "postgres/cluster.h"

int64_t define(const struct node *n, const char *name, const char *rest)
{
    REPLY r = {0};
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/workflows/%s", name);
    put(n, &r, path, "{\"intact\": 1, \"workflow\": \"%s\", %s}", name, rest);
    CHECK(r.status == 201 || r.status == 200, "%d: %.*s", r.status, SLICE_ARG(r.body));
    return int_at(&r, "version");
}

void define_long(const struct node *n, const char *name, int steps, const char *each,
                 const char *rest)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%s\"steps\": [", rest);
    for (int i = 0; i < steps; i++)
        buf_fmt(&b, "%s{\"name\": \"s%d\", \"agent\": \"ag\", \"action\": \"x\", %s}",
                i ? ", " : "", i, each);
    buf_str(&b, "]");
    (void)define(n, name, b.ptr);
}

void submit(const struct node *n, const char *workflow, const char *id)
{
    REPLY r = {0};

    post(n, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\"}", workflow, id);
    EXPECT(&r, 201);
}

void task_of(const struct node *n, struct reply *ret, const char *id)
{
    get(n, ret, "/v1/tasks/%s", id);
    EXPECT(ret, 200);
}

void wait_for_state(const struct node *n, const char *id, const char *state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};

    for (;;) {
        task_of(n, &r, id);
        if (strcmp(text_at(&r, "state"), state) == 0)
            return;
        CHECK(steady_ms() < until, "%s does not become %s: %.*s", id, state, SLICE_ARG(r.body));
        sleep_ms(10);
    }
}

void fetch(const struct node *n, struct reply *ret, const char *agent, const char *instance)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char path[200];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    do {
        post(n, ret, path, "{\"instance\": \"%s\", \"max\": 1, \"wait\": \"10s\"}", instance);
        EXPECT(ret, 200);
        if (at(ret, "requests.0"))
            return;
    } while (steady_ms() < until);
    CHECK(false, "no request for %s", agent);
}

char *token_in(const struct reply *r, int index)
{
    char path[40];

    (void)snprintf(path, sizeof path, "requests.%d.token", index);
    char *token = strdup(text_at(r, path));
    CHECK(token && *token, "no token: %.*s", SLICE_ARG(r->body));
    return token;
}

void hand_in(const struct node *n, const char *agent, const char *instance, const char *token,
             const char *result, const char *expected_status)
{
    REPLY r = {0};
    char path[200];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    post(n, &r, path, "{\"instance\": \"%s\", \"max\": 0, \"results\": [{\"token\": \"%s\", %s}]}",
         instance, token, result);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.status", expected_status);
    EXPECT_TEXT(&r, "outcomes.0.token", token);
}

void serve_step(const struct node *n, const char *agent, const char *instance, const char *output)
{
    REPLY r = {0};
    CLEANUP(buf_fini) struct buf result = {0};

    fetch(n, &r, agent, instance);
    char *token = token_in(&r, 0);
    buf_fmt(&result, "\"output\": %s", output);
    hand_in(n, agent, instance, token, result.ptr, "accepted");
    free(token);
}

void serve_in_time(const struct node *n, const char *agent, const char *instance,
                   const char *output)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char path[200];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    do {
        CHECK(steady_ms() < until, "no attempt of %s ends in its time", agent);
        fetch(n, &r, agent, instance);
        char *token = token_in(&r, 0);
        post(n, &r, path,
             "{\"instance\": \"%s\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": "
             "%s}]}",
             instance, token, output);
        EXPECT(&r, 200);
        free(token);
    } while (strcmp(text_at(&r, "outcomes.0.status"), "late") == 0);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
}

void wait_until_ready(const struct node *n)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};

    for (get(n, &r, "/readyz"); r.status != 200; get(n, &r, "/readyz")) {
        expect_problem(&r, 503, "store");
        CHECK(steady_ms() < until, "it does not recover: %.*s", SLICE_ARG(r.body));
        sleep_ms(20);
    }
}

void wait_for_parked(const struct node *n, int count)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char line[40];
    REPLY r = {0};

    int len = snprintf(line, sizeof line, "\nintact_parked_calls %d\n", count);
    for (get(n, &r, "/metrics"); !memmem(r.body.ptr, r.body.len, line, (size_t)len);
         get(n, &r, "/metrics")) {
        CHECK(steady_ms() < until, "not %d: %.*s", count, SLICE_ARG(r.body));
        sleep_ms(10);
    }
}

void let_read(const struct node *n)
{
    REPLY r = {0};

    get(n, &r, "/healthz");
    EXPECT(&r, 200);
}

static char *sql_on_database(const struct node *n, const char *query)
{
    char path[60];
    PGconn *conn = PQconnectdb(cluster_conninfo());

    (void)snprintf(path, sizeof path, "SET search_path = %s", n->schema);
    PQclear(PQexec(conn, path));
    PGresult *r = PQexec(conn, query);
    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s",
          query, PQerrorMessage(conn));
    char *ret = strdup(PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    CHECK(ret, "no memory");
    PQclear(r);
    PQfinish(conn);
    return ret;
}

char *sql(const struct node *n, const char *query)
{
    if (n->schema[0])
        return sql_on_database(n, query);
    char path[100];
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", n->data);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    rc = sqlite3_prepare_v2(db, query, -1, &q, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", query, sqlite3_errmsg(db));
    rc = sqlite3_step(q);
    CHECK(rc == SQLITE_ROW, "%s: %s", query, sqlite3_errmsg(db));
    const unsigned char *text = sqlite3_column_text(q, 0);
    char *ret = strdup(text ? (const char *)text : "");
    CHECK(ret, "no memory");
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    return ret;
}

int64_t sql_int(const struct node *n, const char *query)
{
    char *text = sql(n, query);
    int64_t v = strtoll(text, NULL, 10);

    free(text);
    return v;
}

void make_token(const struct node *n, const char *name, const char *roles, const char *expires_in,
                char ret[64])
{
    REPLY r = {0};

    post(n, &r, "/v1/tokens", "{\"name\": \"%s\", \"roles\": [%s]%s%s%s}", name, roles,
         expires_in ? ", \"expires_in\": \"" : "", expires_in ? expires_in : "",
         expires_in ? "\"" : "");
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "name", name);
    CHECK(head_has(&r, "Cache-Control: no-store"), "%.*s", SLICE_ARG(r.head));
    (void)snprintf(ret, 64, "%s", text_at(&r, "token"));
    CHECK(strlen(ret) == 50 && strncmp(ret, "intact_", 7) == 0, "token \"%s\"", ret);
}

struct node as(const struct node *server, const char *token)
{
    struct node n = *server;

    (void)snprintf(n.token, sizeof n.token, "%s", token);
    return n;
}

char *signal_url(const struct node *n, const char *id)
{
    REPLY r = {0};

    (void)define(n, "calls",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"calls\", \"action\": \"x\", "
                 "\"undo\": \"none\", \"input\": \"${ .task.signals.go }\"},"
                 "{\"name\": \"b\", \"signal\": {\"name\": \"go\"}}]");
    submit(n, "calls", id);
    fetch(n, &r, "calls", "i");
    char *path = strdup(strstr(text_at(&r, "requests.0.input"), "/v1/"));
    CHECK(path, "memory");
    return path;
}
