#ifndef INTACT_BARRIER_PQ_H
#define INTACT_BARRIER_PQ_H

/*
 * The barrier of <intact/barrier.h> on a connection to PostgreSQL. It is in a library of its own,
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
 * The table and the functions in the database are those of share/intact/barrier/postgresql.sql;
 * intact_barrier_pq_setup makes them too. The connection is the caller's, blocking or not, through
 * a pooler or not, and may be of any isolation level. While another transaction is about the same
 * request, intact_barrier_pq waits for it to end, within the connection's own lock_timeout and
 * statement_timeout. Then
 *
 *     read committed                  the verdict follows from what the other one committed
 *     repeatable read, serializable   AGAIN if the other one committed: the transaction cannot see
 *                                     it. Once more, from BEGIN, has the verdict
 *
 * A connection that is lost gives AGAIN: PQreset it, or open another one. If it is lost in the
 * midst of the commit nobody knows whether that took place; whoever asks again is told.
 *
 * Each call blocks until the server has answered. Thread-safety: as of the connection.
 */

#include <intact/barrier.h>

struct pg_conn;   /* PGconn */
struct pg_result; /* PGresult */

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the table and the functions, or brings the functions up to date. Needs the right to create
 * them in the first schema of the search path; several may do it at once. Not in a transaction.
 * False: it cannot, and `why` says so (up to why_size bytes). */
INTACT_API bool intact_barrier_pq_setup(struct pg_conn *conn, char *why, size_t why_size);

/* What to do about the request. A transaction has to be open. */
INTACT_API enum intact_verdict intact_barrier_pq(struct intact_barrier *b, struct pg_conn *conn);

/* Whether a statement of the effect has succeeded; if not, the verdict is AGAIN or FAILED from now
 * on, by its error. `res` stays the caller's; NULL is a failure. */
INTACT_API bool intact_barrier_pq_ok(struct intact_barrier *b, struct pg_conn *conn,
                                     const struct pg_result *res);

/* After DO and the effect: records what repeats will be answered (JSON; NULL: null). True: it is
 * recorded, and counts when the transaction is committed. False: the verdict says why not. A
 * request without an output may go without this call: repeats are answered null. */
INTACT_API bool intact_barrier_pq_done(struct intact_barrier *b, struct pg_conn *conn,
                                       const char *output_json);

/* Ends the transaction: commits if the verdict is DO, REPEAT, UNDONE or NOTHING, the request has
 * time left if it is DO, and all went well; else rolls back. True: it was committed. False: it was
 * not, and the verdict says why. A COMMIT of one's own has to be looked at twice: in a transaction
 * in which a statement failed PostgreSQL answers it with success, and the tag ROLLBACK. */
INTACT_API bool intact_barrier_pq_end(struct intact_barrier *b, struct pg_conn *conn);

/* Deletes at most `max` records that are older than that. How many, 0: there are no more; -1: it
 * could not, PQerrorMessage(conn) says why. A request that comes after its record is gone takes
 * effect again: docs/barrier.md says how long to keep them. */
INTACT_API int64_t intact_barrier_pq_clean(struct pg_conn *conn, int64_t age_ms, int max);

#ifdef __cplusplus
}
#endif

#endif
