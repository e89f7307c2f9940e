#ifndef INTACT_LEDGER_H
#define INTACT_LEDGER_H

/*
 * The durable record that makes a handler idempotent: a SQLite file (WAL, synchronous=FULL) in
 * which a request and its effect are written by one transaction.
 *
 *     static void charge(struct intact_request *r, void *ledger)
 *     {
 *         if (!intact_ledger_begin(ledger, r))
 *             return; // a repeat, or one that must not happen any more: it has been answered
 *         ... write the effect: SQL on intact_ledger_db(ledger) ...
 *         if (intact_ledger_commit(ledger, r, "{\"receipt\": 17}"))
 *             intact_answer(r, "{\"receipt\": 17}");
 *     }
 *
 * intact_ledger_begin acts by what is recorded under the request's idempotency key:
 *
 *     forward, never seen          true: take effect now
 *     forward, done                answered with the recorded output
 *     forward, done and undone     answered with the permanent error "undone", effect none
 *     forward, barred by an undo   answered with the permanent error "undone", effect none
 *     undo, its forward was done   true: undo it now
 *     undo, done                   answered with the recorded output
 *     undo, forward never seen     leaves a tombstone that bars the forward for ever, and answers
 *                                  null: there is nothing to undo
 *
 * The record is a table beside the effects, open to queries:
 *
 *     effect(idempotency_key, task, step, action, direction, outcome, output, at)
 *         direction   forward | undo
 *         outcome     done     the effect (or its undo) happened
 *                     barred   a forward that an undo overtook: it never happened and never will
 *                     nothing  an undo that found nothing to undo
 *         at          milliseconds since 1970, this machine's clock
 *
 * If the file cannot grow (full disk, RLIMIT_FSIZE), requests fail with a retryable error. From
 * begin to commit the calling thread blocks SIGXFSZ, which would end the process.
 *
 * Effects outside of this file (another service) cannot be part of its transaction. Pass the
 * idempotency key to that service, and commit after it has answered.
 *
 * Thread-safety: all handlers of all threads may share a ledger. From a begin that returned true
 * until the commit or rollback, the calling thread holds its lock, and others wait in their begin:
 * handlers of one ledger take effect one by one, each with one fdatasync. So finish slow work (a
 * call to another service) before begin, or use several ledgers, split by what is never in one
 * transaction: for example by customer, but always the same one for a task. For a kept request, the
 * thread that answers it calls begin and commit, one right after the other.
 */

#include <intact/agent.h>

struct sqlite3;

#ifdef __cplusplus
extern "C" {
#endif

struct intact_ledger;

/* Opens or creates it. NULL on failure, with the reason in `why` (up to why_size bytes). */
INTACT_API struct intact_ledger *intact_ledger_open(const char *path, char *why, size_t why_size);
INTACT_API void intact_ledger_close(struct intact_ledger *l); /* NULL is allowed */

/* The connection, for the effects between begin and commit. Do not end the transaction on it. */
INTACT_API struct sqlite3 *intact_ledger_db(struct intact_ledger *l);

/* True: a transaction is open for the caller's effect; end it with commit or rollback. False: the
 * request has been answered (a ledger that fails answers with a retryable error). */
INTACT_API bool intact_ledger_begin(struct intact_ledger *l, struct intact_request *r);

/* Records the request as done, with the output for its repeats (JSON; NULL: null), and commits.
 * True: it is durable; answer the request. False: the transaction was rolled back, and the request
 * has been answered (a disk failure: a retryable error, with unknown effect only if the disk failed
 * during the commit) or its deadline has passed and no answer is due. */
INTACT_API bool intact_ledger_commit(struct intact_ledger *l, struct intact_request *r,
                                     const char *output_json);

/* No effect happened. The caller must answer the request. */
INTACT_API void intact_ledger_rollback(struct intact_ledger *l);

#ifdef __cplusplus
}
#endif

#endif
