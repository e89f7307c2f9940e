#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

/*
 * What agents really do to the world, by idempotency key, with the durable record that libintact
 * keeps, in its ledger or behind its barrier: a repeated forward request is answered from the
 * record, an undo that finds nothing leaves a tombstone, and the tombstone refuses a forward
 * request that comes later.
 *
 * Somebody who looks, and finds that nothing took effect, sees to it that it stays so: attempts
 * that were made by then are refused, should they come later. Later attempts are not.
 *
 * Record and effect are one transaction, which takes its time. Who opens one holds off all others
 * that are about the same step, at whichever instance, and is told at once what to do; it counts
 * when it is committed. It may be rolled back instead, above all if its process dies.
 */

#include "sim/subject.h"

enum ledger_verdict { LEDGER_DO, LEDGER_REPEAT, LEDGER_UNDONE, LEDGER_NOTHING };

/* Did nothing take effect, and is nobody about to? Then no attempt up to that one will. */
bool ledger_bar(struct subject *t, uint32_t step, uint32_t number) MUST_USE;

/* A transaction of `who`, about the attempt of that number. False: another one is open, to be
 * waited for. */
bool ledger_open(struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 const void *who, enum ledger_verdict *ret) MUST_USE;

/* It counts. */
void ledger_commit(struct subject *t, uint32_t step, enum direction d, enum ledger_verdict verdict);

/* It is over, if there was one of `who`; without a commit it is rolled back. */
void ledger_close(struct subject *t, uint32_t step, const void *who);

/* It took effect, and was not undone. */
static inline bool ledger_stands(const struct ledger *l)
{
    return l->happened_at != 0 && l->undone_at == 0;
}

#endif
