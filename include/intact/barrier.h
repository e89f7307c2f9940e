#ifndef INTACT_BARRIER_H
#define INTACT_BARRIER_H

/*
 * The barrier makes a handler idempotent whose effect is in a database of its own. One call in the
 * transaction of the effect decides what to do about a request, and keeps out all others with the
 * same request until that transaction ends. It works on any connection of yours. The ledger of
 * <intact/ledger.h> is the equivalent for agents without a database.
 *
 *     static void charge(struct intact_request *r, void *arg)
 *     {
 *         sqlite3 *db = arg;
 *         struct intact_barrier *b = intact_barrier_of(r);
 *
 *         sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
 *         if (intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO) {
 *             int rc = sqlite3_exec(db, ... the effect ..., NULL, NULL, NULL);
 *             if (intact_barrier_sqlite_ok(b, db, rc))
 *                 intact_barrier_sqlite_done(b, db, "{\"receipt\": 17}");
 *         }
 *         intact_barrier_sqlite_end(b, db); // commits, or rolls back
 *         intact_barrier_answer(b);
 *         intact_barrier_free(b);
 *     }
 *
 * The verdict, by what is recorded under the key of the forward request:
 *
 *     request   on record   verdict    what to do
 *     forward   nothing     DO         take effect, record the output, commit, answer it
 *     forward   done        REPEAT     answer the recorded output
 *     forward   undone      UNDONE     answer the permanent error "undone", effect none
 *     forward   barred      UNDONE     the same
 *     undo      done        DO         undo it, record the output, commit, answer it
 *     undo      undone      REPEAT     answer the recorded output
 *     undo      nothing     NOTHING    commit ("barred" is on record now), answer null
 *     undo      barred      NOTHING    the same
 *
 * The record is the table intact_barrier in that database; share/intact/barrier/sqlite.sql creates
 * it, and so does intact_barrier_sqlite_setup. Programs in other languages use the same table and
 * rules: see docs/barrier.md.
 *
 * SQLite. Any journal mode works. Begin with BEGIN IMMEDIATE and set a busy timeout, so that a
 * second request waits for the first. With BEGIN or SAVEPOINT, a transaction that read before
 * another connection wrote can no longer write: the verdict is AGAIN. A commit must be on disk
 * before the answer is sent: synchronous = FULL (the default of most builds), in WAL mode too. The
 * effect must be in the same file, "main": a transaction over several attached files is not always
 * atomic after a power failure.
 *
 * Savepoints work. A rollback to a savepoint older than the verdict also removes the record, and
 * the verdict is void: ask again.
 *
 * Several requests may share a transaction, each with its own barrier. End it with one of them: if
 * that returns true, answer all, otherwise none has taken effect.
 *
 * PostgreSQL: <intact/barrier_pq.h>. Other databases: run the statements of share/intact/barrier,
 * and pass the result to intact_barrier_set.
 *
 * Thread-safety: a barrier is used by one thread at a time, as is a connection between begin and
 * end. All strings are copied.
 */

#include <intact/agent.h>

struct sqlite3;

#ifdef __cplusplus
extern "C" {
#endif

struct intact_barrier; /* for one request, in one transaction */

enum intact_verdict {
    INTACT_BARRIER_DO,      /* take effect now, or undo it now */
    INTACT_BARRIER_REPEAT,  /* it was done before: the output is recorded */
    INTACT_BARRIER_UNDONE,  /* forward only: it was undone or barred, and must not take effect */
    INTACT_BARRIER_NOTHING, /* undo only: there is nothing to undo, and never will be */
    INTACT_BARRIER_LATE,    /* the deadline passed before the commit: not committed */
    INTACT_BARRIER_AGAIN,   /* another transaction interfered, or the database failed: nothing is
                             * decided. Roll back; a new transaction may succeed */
    INTACT_BARRIER_FAILED,  /* the program or the database is not in order: roll back */
};

/* ---- A barrier ---- */

/* For a request of an agent, which must outlive the barrier. Never NULL. */
INTACT_API struct intact_barrier *intact_barrier_of(struct intact_request *r);

/* For a request from another source. `forward_key` is the idempotency key of the forward request,
 * also for an undo. Never NULL. */
INTACT_API struct intact_barrier *intact_barrier_new(const char *forward_key,
                                                     enum intact_direction direction);

/* Frees it. NULL is allowed. An open transaction stays open. */
INTACT_API void intact_barrier_free(struct intact_barrier *b);

/* The latest verdict; FAILED before the first. */
INTACT_API enum intact_verdict intact_barrier_verdict(const struct intact_barrier *b);

/* JSON, never NULL, valid until the next call on the barrier. REPEAT: the recorded output. DO of an
 * undo: the forward output on record (the request's own `forward` says null if its answer was
 * lost). Once an output was recorded: that one. Otherwise "null". */
INTACT_API const char *intact_barrier_output(const struct intact_barrier *b);

/* LATE, AGAIN, FAILED: the reason, for people. Otherwise "". */
INTACT_API const char *intact_barrier_why(const struct intact_barrier *b);

/* Answers the request of the barrier by the verdict: the output (DO, REPEAT), null (NOTHING), the
 * permanent error "undone" (UNDONE), no answer (LATE), a retryable error "barrier" (AGAIN, FAILED;
 * effect none, unless the outcome of a commit is unknown). Call it after the transaction has ended.
 * Not for a barrier from intact_barrier_new. */
INTACT_API void intact_barrier_answer(struct intact_barrier *b);

/* ---- On a SQLite connection ---- */

/* Creates the table if it does not exist. Not inside a transaction that may be rolled back. False:
 * it failed, and `why` has the reason (up to why_size bytes). */
INTACT_API bool intact_barrier_sqlite_setup(struct sqlite3 *db, char *why, size_t why_size);

/* Decides about the request. A transaction must be open on `db`. */
INTACT_API enum intact_verdict intact_barrier_sqlite(struct intact_barrier *b, struct sqlite3 *db);

/* Whether a statement of the effect succeeded, by its result code (SQLITE_OK, SQLITE_DONE and
 * SQLITE_ROW are success). If not, the verdict becomes AGAIN or FAILED, so that nothing is
 * committed. Call it for each statement: SQLite continues after one that failed, and would commit
 * the record with the rest of the effect. */
INTACT_API bool intact_barrier_sqlite_ok(struct intact_barrier *b, struct sqlite3 *db, int rc);

/* After DO and the effect: records the output for repeats (JSON; NULL: null). True: it is recorded,
 * and valid once the transaction is committed. False: the verdict says why not. Optional for a
 * request without an output: repeats are answered with null. */
INTACT_API bool intact_barrier_sqlite_done(struct intact_barrier *b, struct sqlite3 *db,
                                           const char *output_json);

/* Ends the transaction: commits if the verdict is DO (and the request has time left), REPEAT,
 * UNDONE or NOTHING; otherwise rolls back. True: committed. False: rolled back, and the verdict
 * says why. A caller that commits itself must handle the deadline and commit errors. */
INTACT_API bool intact_barrier_sqlite_end(struct intact_barrier *b, struct sqlite3 *db);

/* Deletes at most `max` records older than that, in its own transaction if none is open. Returns
 * how many; 0: no more; -1: failed, see sqlite3_errmsg(db). A request that comes after its record
 * was deleted takes effect again: docs/barrier.md says how long to keep records. */
INTACT_API int64_t intact_barrier_sqlite_clean(struct sqlite3 *db, int64_t age_ms, int64_t max);

/* ---- For other databases ---- */

/* The key of the record. */
INTACT_API const char *intact_barrier_key(const struct intact_barrier *b);
INTACT_API enum intact_direction intact_barrier_direction(const struct intact_barrier *b);
/* The deadline of the request has passed: an effect must not be committed any more. */
INTACT_API bool intact_barrier_is_late(const struct intact_barrier *b);

/* Sets the result from the database. `output` is JSON (NULL: null); `why` is for LATE, AGAIN and
 * FAILED, and may be NULL. */
INTACT_API void intact_barrier_set(struct intact_barrier *b, enum intact_verdict verdict,
                                   const char *output, const char *why);

/* A commit failed with unknown outcome: AGAIN, answered with an unknown effect. */
INTACT_API void intact_barrier_set_unsure(struct intact_barrier *b, const char *why);

#ifdef __cplusplus
}
#endif

#endif
