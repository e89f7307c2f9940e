#ifndef INTACT_BARRIER_H
#define INTACT_BARRIER_H

/*
 * The barrier: what makes a handler idempotent whose effect lies in a database of its own. One call
 * in the transaction of the effect says what to do about a request, and holds everybody else off
 * who is about the same one until that transaction ends. It works on any connection of yours; the
 * ledger of <intact/ledger.h> is the same for agents that have no database yet.
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
 * What it says, by what is on record under the key of the request going forward:
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
 * The record is the table intact_barrier in that database; share/intact/barrier/sqlite.sql makes
 * it, and intact_barrier_sqlite_setup does the same. Programs in other languages use the same table
 * and rules, docs/barrier.md says how.
 *
 * SQLite. Any journal mode will do. Begin with BEGIN IMMEDIATE, and set a busy timeout: then a
 * second request waits for the first. With BEGIN or SAVEPOINT a transaction that has read before
 * somebody else wrote cannot write any more: the verdict is AGAIN. What is committed must be on the
 * disk when the answer goes out: synchronous = FULL (the default of most builds), in WAL mode too.
 * The effect belongs into the same file, "main": a transaction over several attached ones is not
 * always whole after a power failure.
 *
 * Savepoints are fine. Whoever rolls back to one that is older than the verdict has taken the
 * record back with the effect: what was said of it before does not hold, ask anew.
 *
 * Several requests may share a transaction, each with a barrier of its own. End it with one of
 * them: if that is true answer all, else nothing of any has taken place.
 *
 * PostgreSQL: <intact/barrier_pq.h>. Another database: run the statements of
 * share/intact/barrier, and tell the barrier with intact_barrier_set what they said.
 *
 * Thread-safety: a barrier is used by one thread at a time, as is a connection between begin and
 * end. All strings are copied.
 */

#include <intact/agent.h>

struct sqlite3;

#ifdef __cplusplus
extern "C" {
#endif

struct intact_barrier; /* about one request, in one transaction */

enum intact_verdict {
    INTACT_BARRIER_DO,      /* take effect now, or undo it now */
    INTACT_BARRIER_REPEAT,  /* it was done before: the output is on record */
    INTACT_BARRIER_UNDONE,  /* of a forward: it was undone or barred, and must not take effect */
    INTACT_BARRIER_NOTHING, /* of an undo: there is nothing to undo, now and for ever */
    INTACT_BARRIER_LATE,    /* its deadline passed before it could be committed: it was not */
    INTACT_BARRIER_AGAIN,   /* somebody was in the way, or the database is: nothing is decided. Roll
                               back; it may succeed if it is begun again */
    INTACT_BARRIER_FAILED,  /* the program or the database is not as it should be: roll back */
};

/* ---- A barrier ---- */

/* About a request of an agent of ours, which must outlive it. Never NULL. */
INTACT_API struct intact_barrier *intact_barrier_of(struct intact_request *r);

/* About a request that came another way. `forward_key` is the idempotency key of the request going
 * forward, also if it is to be undone. Never NULL. */
INTACT_API struct intact_barrier *intact_barrier_new(const char *forward_key,
                                                     enum intact_direction direction);

/* Frees it. NULL is fine. An open transaction stays open. */
INTACT_API void intact_barrier_free(struct intact_barrier *b);

/* As it was said last; FAILED before anything was asked. */
INTACT_API enum intact_verdict intact_barrier_verdict(const struct intact_barrier *b);

/* JSON, never NULL, until the next call that takes the barrier. REPEAT: the recorded output. DO of
 * an undo: what the forward recorded (the request's own `forward` says null if its answer was
 * lost). Once an output was recorded: that. Else "null". */
INTACT_API const char *intact_barrier_output(const struct intact_barrier *b);

/* LATE, AGAIN, FAILED: why, for people. Else "". */
INTACT_API const char *intact_barrier_why(const struct intact_barrier *b);

/* Answers the request that it was made of, by the verdict: the output (DO, REPEAT), null (NOTHING),
 * the permanent error "undone" (UNDONE), nothing at all (LATE), a retryable error "barrier" (AGAIN,
 * FAILED; effect none, unless a commit failed in a way that leaves it open). Call it after the
 * transaction has ended. Not for a barrier made by intact_barrier_new. */
INTACT_API void intact_barrier_answer(struct intact_barrier *b);

/* ---- On a SQLite connection ---- */

/* Makes the table, if it is not there. Not inside a transaction that may be rolled back. False: it
 * cannot, and `why` says so (up to why_size bytes). */
INTACT_API bool intact_barrier_sqlite_setup(struct sqlite3 *db, char *why, size_t why_size);

/* What to do about the request. A transaction has to be open on `db`. */
INTACT_API enum intact_verdict intact_barrier_sqlite(struct intact_barrier *b, struct sqlite3 *db);

/* Whether a statement of the effect has succeeded, by what SQLite said of it (SQLITE_OK,
 * SQLITE_DONE and SQLITE_ROW are fine); if not, the verdict is AGAIN or FAILED from now on, so that
 * nothing is committed. Say it of each of them: SQLite goes on after a statement that failed, and
 * would commit the record and the rest of the effect. */
INTACT_API bool intact_barrier_sqlite_ok(struct intact_barrier *b, struct sqlite3 *db, int rc);

/* After DO and the effect: records what repeats will be answered (JSON; NULL: null). True: it is
 * recorded, and counts when the transaction is committed. False: the verdict says why not. A
 * request without an output may go without this call: repeats are answered null. */
INTACT_API bool intact_barrier_sqlite_done(struct intact_barrier *b, struct sqlite3 *db,
                                           const char *output_json);

/* Ends the transaction: commits if the verdict is DO, REPEAT, UNDONE or NOTHING, and the request
 * has time left if it is DO; else rolls back. True: it was committed. False: it was rolled back,
 * and the verdict says why. Who commits by himself does without it, and sees to the deadline and
 * the errors of the commit himself. */
INTACT_API bool intact_barrier_sqlite_end(struct intact_barrier *b, struct sqlite3 *db);

/* Deletes at most `max` records that are older than that, in a transaction of its own if none is
 * open. How many, 0: there are no more; -1: it could not, sqlite3_errmsg(db) says why. A request
 * that comes after its record is gone takes effect again: docs/barrier.md says how long to keep
 * them. */
INTACT_API int64_t intact_barrier_sqlite_clean(struct sqlite3 *db, int64_t age_ms, int64_t max);

/* ---- For other databases ---- */

/* The key under which the record is. */
INTACT_API const char *intact_barrier_key(const struct intact_barrier *b);
INTACT_API enum intact_direction intact_barrier_direction(const struct intact_barrier *b);
/* The deadline of its request has passed: do not commit an effect any more. */
INTACT_API bool intact_barrier_is_late(const struct intact_barrier *b);

/* What the database said. `output` is JSON (NULL: null); `why` is for LATE, AGAIN and FAILED, and
 * may be NULL. */
INTACT_API void intact_barrier_set(struct intact_barrier *b, enum intact_verdict verdict,
                                   const char *output, const char *why);

/* A commit failed, and nobody knows whether it took place: AGAIN, answered with an unknown effect.
 */
INTACT_API void intact_barrier_set_unsure(struct intact_barrier *b, const char *why);

#ifdef __cplusplus
}
#endif

#endif
