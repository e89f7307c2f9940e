#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

/*
 * What agents really do to the world, by idempotency key, with the durable record that libintact
 * keeps: a repeated forward request is answered from the record, an undo that finds nothing leaves
 * a tombstone, and the tombstone refuses a forward request that comes later.
 */

#include "sim/subject.h"

/* The forward effect takes place (or had). False: a tombstone refuses it. */
bool ledger_forward(struct subject *t, uint32_t step);

/* What took effect is undone, or will never take effect. */
void ledger_undo(struct subject *t, uint32_t step);

/* It took effect, and was not undone. */
static inline bool ledger_stands(const struct ledger *l)
{
    return l->happened_at != 0 && l->undone_at == 0;
}

#endif
