#include "sim/ledger.h"

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

bool ledger_forward(struct subject *t, uint32_t step)
{
    struct ledger *l = &t->ledger[step];

    if (l->tombstone || l->undone_at) {
        covered(COVER_TOMBSTONE);
        trace("%s/s%u refused by its tombstone", t->id, step);
        return false;
    }
    if (l->happened_at)
        return true; /* from the record */
    check_effect(t, step);
    l->happened_at = world.now;
    l->number = below(100);
    trace("%s/s%u takes effect", t->id, step);
    return true;
}

void ledger_undo(struct subject *t, uint32_t step)
{
    struct ledger *l = &t->ledger[step];

    if (l->tombstone || l->undone_at)
        return;
    check_undo_effect(t, step);
    if (l->happened_at)
        l->undone_at = world.now;
    else
        l->tombstone = true;
    trace("%s/s%u undone%s", t->id, step, l->tombstone ? ", leaving a tombstone" : "");
}
