/* A node's way to the state store: items. See disk.h. Counts the rows that differ from what the
 * node has in memory at that moment. */

#include "core/items.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/node.h"
#include "tasks/tasks.h"

/* A row of an item in a slot is older than the item. One that is undone is newer than a task that
 * goes forward: another node has that. */
static void count_rows(const struct node *n, const struct item_read *r)
{
    const struct live *l = live_find(scheduler_tasks(n->scheduler), r->task);
    int step = l && l->loaded ? workflow_step_index(&l->definition->workflow, r->step) : -1;

    for (size_t i = 0; step >= 0 && i < r->count; i++) {
        const struct item_row *row = &r->rows[i];
        if (r->order == ITEMS_TO_UNDO
            && items_slot(&l->definition->workflow, &l->task, (uint16_t)step, row->number) >= 0)
            covered(COVER_ITEM_ROW_OLDER);
        if (r->order == ITEMS_UP && row->state == STEP_UNDONE
            && l->task.direction == DIRECTION_FORWARD)
            covered(COVER_ITEM_ROW_NEWER);
    }
}

static uint32_t spoilt_below, spoilt_reads;

void disk_spoil_rows(uint32_t below)
{
    spoilt_below = below;
    spoilt_reads = 0;
}

uint32_t disk_spoilt_reads(void)
{
    return spoilt_reads;
}

static void spoil_rows(const struct item_read *r)
{
    bool any = false;

    for (size_t i = 0; r->order == ITEMS_TO_UNDO && i < r->count; i++) {
        if (r->rows[i].number >= spoilt_below)
            continue;
        r->rows[i].doc = SLICE("{}");
        any = true;
    }
    spoilt_reads += any;
}

static enum err items_read(struct store *s, struct item_read *r, struct arena *a, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    enum err err = inner->ops->items->read(inner, r, a, e);
    if (err == ERR_OK) {
        count_rows(disk_of(s)->node, r);
        spoil_rows(r);
    }
    return err;
}

static enum err items_outputs(struct store *s, struct item_outputs *o, struct arena *a,
                              struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO : inner->ops->items->outputs(inner, o, a, e);
}

const struct store_item_ops disk_item_ops = {
    .read = items_read,
    .outputs = items_outputs,
};
