#ifndef INTACT_BARRIER_PQ_H
#define INTACT_BARRIER_PQ_H

/*
 * The barrier of <intact/barrier.h> on a connection to PostgreSQL. It is in its own library,
 * libintact-pq (pkg-config intact-pq), so that only programs that use it need libpq.
 *
 *     static void charge(struct intact_request *r, void *arg)
 *     {
 *         PGconn *conn = arg;
 *         struct intact_barrier *b = intact_barrier_of(r);
 *
 *         PQclear(PQexec(conn, "BEGIN"));
 *         if (intact_barrier_pq(b, conn) == INTACT_BARRIER_DO) {
 *             ... the effect: SQL on conn ...
 *             intact_barrier_pq_done(b, conn, "{\"receipt\": 17}");
 *         }
 *         intact_barrier_pq_end(b, conn); // commits, or rolls back
 *         intact_barrier_answer(b);
 *         intact_barrier_free(b);
 *     }
 *
 * The table and the database functions are those of share/intact/barrier/postgresql.sql;
 * intact_barrier_pq_setup creates them too. The connection is the caller's, blocking or not,
 * through a pooler or not, at any isolation level. While another transaction has the same request,
 * intact_barrier_pq waits for it to end, within the connection's lock_timeout and
 * statement_timeout. Then
 *
 *     read committed                  the verdict follows from what the other one committed
 *     repeatable read, serializable   AGAIN if the other one committed: this transaction cannot
 *                                     see that. A new transaction gets the verdict
 *
 * A lost connection gives AGAIN: PQreset it, or open another. If it is lost during the commit, the
 * outcome is unknown until the request is asked about again.
 *
 * Each call blocks until the server has answered. Thread-safety: as of the connection.
 */

#include <intact/barrier.h>

struct pg_conn;   /* PGconn */
struct pg_result; /* PGresult */

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the table and functions, or updates the functions. Requires the right to create them in
 * the first schema of the search path; concurrent calls are safe. Not in a transaction. False: it
 * failed, and `why` has the reason (up to why_size bytes). */
INTACT_API bool intact_barrier_pq_setup(struct pg_conn *conn, char *why, size_t why_size);

/* Decides about the request. A transaction must be open. */
INTACT_API enum intact_verdict intact_barrier_pq(struct intact_barrier *b, struct pg_conn *conn);

/* Whether a statement of the effect succeeded; if not, its error makes the verdict AGAIN or FAILED.
 * `res` stays the caller's; NULL is a failure. */
INTACT_API bool intact_barrier_pq_ok(struct intact_barrier *b, struct pg_conn *conn,
                                     const struct pg_result *res);

/* After DO and the effect: records the output for repeats (JSON; NULL: null). True: it is recorded,
 * and valid once the transaction is committed. False: the verdict says why not. Optional for a
 * request without an output: repeats are answered with null. */
INTACT_API bool intact_barrier_pq_done(struct intact_barrier *b, struct pg_conn *conn,
                                       const char *output_json);

/* Ends the transaction: commits if the verdict is DO (and the request has time left), REPEAT,
 * UNDONE or NOTHING and no statement failed; otherwise rolls back. True: committed. False: not
 * committed, and the verdict says why. A caller that sends COMMIT itself must check the command
 * tag: if a statement failed, PostgreSQL reports success with the tag ROLLBACK. */
INTACT_API bool intact_barrier_pq_end(struct intact_barrier *b, struct pg_conn *conn);

/* Deletes at most `max` records older than that. Returns how many; 0: no more; -1: failed, see
 * PQerrorMessage(conn). A request that comes after its record was deleted takes effect again:
 * docs/barrier.md says how long to keep records. */
INTACT_API int64_t intact_barrier_pq_clean(struct pg_conn *conn, int64_t age_ms, int max);

#ifdef __cplusplus
}
#endif

#endif
