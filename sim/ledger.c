/* The durable record of effects by idempotency key, as libintact's ledger and barrier keep it:
 * repeated requests, tombstones, and keys that a person has barred (ledger.h). Every commit of an
 * effect is checked by check_world.c. */

#include "sim/ledger.h"

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/world.h"

bool ledger_bar(struct subject *t, uint32_t step, uint32_t number)
{
    struct ledger *l = ledger_of(t, step);

    if (l->happened_at != 0 || l->open)
        return false;
    if (number > l->barred)
        l->barred = number;
    return true;
}

static enum ledger_verdict verdict_of(const struct ledger *l, enum direction d, uint32_t number)
{
    if (d == DIRECTION_FORWARD) {
        if (l->tombstone || l->undone_at)
            return LEDGER_UNDONE;
        if (!l->happened_at && number <= l->barred) {
            covered(COVER_BARRED);
            return LEDGER_UNDONE;
        }
        return l->happened_at ? LEDGER_REPEAT : LEDGER_DO;
    }
    if (l->undone_at)
        return LEDGER_REPEAT;
    return l->happened_at ? LEDGER_DO : LEDGER_NOTHING;
}

bool ledger_open(struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 const void *who, enum ledger_verdict *ret)
{
    struct ledger *l = ledger_of(t, step);

    if (l->open && l->open != who)
        return false;
    l->open = who;
    *ret = verdict_of(l, d, number);
    return true;
}

void ledger_close(struct subject *t, uint32_t step, const void *who)
{
    struct ledger *l = ledger_of(t, step);

    if (l->open == who)
        l->open = NULL;
}

static void commit_forward(struct subject *t, uint32_t step, enum ledger_verdict verdict)
{
    struct ledger *l = ledger_of(t, step);

    if (verdict == LEDGER_UNDONE && (l->tombstone || l->undone_at)) {
        covered(COVER_TOMBSTONE);
        trace("%s/%s refused by its tombstone", t->id, unit_name(step));
    }
    if (verdict != LEDGER_DO)
        return;
    check_effect(t, step);
    l->effects++;
    l->happened_at = world.now;
    l->number = below(100);
    trace("%s/%s takes effect", t->id, unit_name(step));
}

static void commit_undo(struct subject *t, uint32_t step, enum ledger_verdict verdict)
{
    struct ledger *l = ledger_of(t, step);

    if (verdict == LEDGER_REPEAT || l->tombstone)
        return;
    check_undo_effect(t, step);
    if (verdict == LEDGER_DO) {
        l->undos++;
        l->undone_at = world.now;
    } else {
        l->tombstone = true;
    }
    trace("%s/%s undone%s", t->id, unit_name(step), l->tombstone ? ", leaving a tombstone" : "");
}

void ledger_commit(struct subject *t, uint32_t step, enum direction d, enum ledger_verdict verdict)
{
    if (d == DIRECTION_UNDO)
        commit_undo(t, step, verdict);
    else
        commit_forward(t, step, verdict);
}
