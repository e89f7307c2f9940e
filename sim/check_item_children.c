/* The children of items: one that stopped in error keeps the place of its item, and those that run
 * are stopped at once when the failure of others has the task undone. check_items.c calls it for
 * each change of a step; check_families.c has the rules of all children. check.h lists all
 * checkers. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/world.h"

static void must(const struct subject *t, uint32_t unit, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s/%s", t->id, unit_name(unit));
}

bool items_stop_children(const struct subject *t, uint32_t step)
{
    const struct flow_step *f = &t->flow->steps[step];
    const struct seen_items *in = t->items[step];
    uint32_t failed = in->failed;
    uint32_t effects = in->effects;

    for (uint32_t i = 0; i < in->work_count; i++) {
        failed += !in->work[i].back && in->work[i].step.state == STEP_FAILED;
        effects += seen_happened(&in->work[i].step);
    }
    return f->on_failure == ON_FAILURE_UNDO && failed > items_tolerated(f, in->count)
           && !(f->undo == UNDO_PIVOT && effects > 0);
}

/* Going forward. */
static void check_forward(const struct subject *t, uint32_t unit, const struct seen_step *s,
                          bool all_stop)
{
    const struct seen_items *in = t->items[step_of_unit(unit)];

    if (seen_child_stopped(s) && s->state == STEP_WAITING) {
        covered(COVER_ITEM_CHILD_ERROR);
        if (in->begun < in->count && t->seen.direction == DIRECTION_FORWARD)
            covered(COVER_ITEM_CHILD_BLOCKS);
    }
    if (!all_stop || !seen_child_is_open(s))
        return;
    covered(COVER_ITEM_CHILD_STOPPED);
    must(t, unit, s->child.wish != WISH_NONE, "children are stopped when another item has failed");
}

void check_item_children(const struct subject *t, uint32_t step)
{
    const struct seen_items *in = t->items[step];
    bool all_stop = t->seen.direction == DIRECTION_FORWARD && t->seen.state != TASK_ERROR
                    && in->state == STEP_WAITING && items_stop_children(t, step);

    for (uint32_t i = 0; i < in->work_count; i++)
        if (!in->work[i].back)
            check_forward(t, unit_of(step, in->list, in->work[i].item), &in->work[i].step,
                          all_stop);
}
