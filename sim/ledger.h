#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

/*
 * The real effects of agents, by idempotency key, with the durable record that libintact keeps in
 * its ledger or behind its barrier: a repeated forward request is answered from the record, an undo
 * that finds nothing leaves a tombstone, and the tombstone refuses a later forward request.
 *
 * A person who finds that nothing took effect makes sure that it stays so: attempts made by then
 * are refused if they arrive later. Later attempts are not.
 *
 * Record and effect are one transaction, which takes time. An open transaction blocks all others
 * for the same step, at any instance, and knows at once what to do; it counts when it commits. It
 * may be rolled back instead, above all if its process dies.
 */

#include "sim/subject.h"

enum ledger_verdict { LEDGER_DO, LEDGER_REPEAT, LEDGER_UNDONE, LEDGER_NOTHING };

/* True if nothing took effect and no transaction is open: then no attempt up to that number
 * will. */
bool ledger_bar(struct subject *t, uint32_t step, uint32_t number) MUST_USE;

/* Opens a transaction of `who` for that attempt. False: another one is open, and must be waited
 * for. */
bool ledger_open(struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 const void *who, enum ledger_verdict *ret) MUST_USE;

/* Commits. */
void ledger_commit(struct subject *t, uint32_t step, enum direction d, enum ledger_verdict verdict);

/* Ends the transaction of `who`, if any; without a commit it is rolled back. */
void ledger_close(struct subject *t, uint32_t step, const void *who);

/* It took effect and is not undone. */
static inline bool ledger_stands(const struct ledger *l)
{
    return l->happened_at != 0 && l->undone_at == 0;
}

#endif
