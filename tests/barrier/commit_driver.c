/*
 * The C barrier for PostgreSQL, driven by commit_test.py: reads "forward KEY", "undo KEY", or "late
 * KEY" (forward, and its deadline passes when the effect is taken), takes the effect (a row in the
 * table `world`) in a transaction, and prints its answer to the server, if it has one. A lost
 * connection is reopened. Usage: commit_driver CONNINFO
 */

#include "base/test.h"

#include <intact/barrier_pq.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "libintact/request.h"

static void effect(struct intact_barrier *b, PGconn *conn, const char *key, bool undo)
{
    const char *values[] = {key, undo ? "-1" : "1"};
    PGresult *r = PQexecParams(conn, "INSERT INTO world VALUES ($1, $2::integer)", 2, NULL, values,
                               NULL, NULL, 0);

    if (intact_barrier_pq_ok(b, conn, r))
        (void)intact_barrier_pq_done(b, conn, undo ? "\"undone\"" : "\"done\"");
    PQclear(r);
}

static void serve(PGconn *conn, const char *key, bool undo, bool late)
{
    char undo_key[80];

    (void)snprintf(undo_key, sizeof undo_key, "%s/undo", key);
    struct intact_request r = {.task = "t",
                               .step = "s",
                               .action = "a",
                               .direction = undo ? INTACT_UNDO : INTACT_FORWARD,
                               .idempotency_key = undo ? undo_key : key,
                               .forward_key = undo ? key : NULL,
                               .token = SLICE("k"),
                               .deadline = INT64_MAX};
    struct intact_barrier *b = intact_barrier_of(&r);

    if (PQstatus(conn) != CONNECTION_OK)
        PQreset(conn);
    PQclear(PQexec(conn, "BEGIN"));
    if (intact_barrier_pq(b, conn) == INTACT_BARRIER_DO)
        effect(b, conn, key, undo);
    if (late)
        r.deadline = 1;
    (void)intact_barrier_pq_end(b, conn);
    intact_barrier_answer(b);
    struct slice answer = r.result.len ? buf_view(&r.result) : SLICE("{\"output\":\"late\"}");
    (void)printf("%.*s\n", SLICE_ARG(answer));
    (void)fflush(stdout);
    intact_barrier_free(b);
    buf_fini(&r.result);
}

int main(int argc, char **argv)
{
    char line[200];

    CHECK(argc == 2, "usage: commit_driver CONNINFO");
    PGconn *conn = PQconnectdb(argv[1]);
    CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    while (fgets(line, sizeof line, stdin)) {
        char *key = strchr(line, ' ');
        CHECK(key, "forward KEY, undo KEY or late KEY");
        *key++ = '\0';
        key[strcspn(key, "\n")] = '\0';
        serve(conn, key, strcmp(line, "undo") == 0, strcmp(line, "late") == 0);
    }
    PQfinish(conn);
    return 0;
}
