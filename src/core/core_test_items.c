/* What the tests of the core need of steps with for_each: their slots, and a store of items at rest
 * that is compared with the sums of the core after each event (core_test_kit.h). */
#include "core/core_test_items.h"

#include <stdlib.h>

#include "core/items.h"

/* ---- graphs ---- */

/* "2}", "2.}" or "2:}". Returns the end. */
const char *kit_become_each(struct workflow_step *s, const char *p)
{
    s->kind = KIND_EACH;
    s->each.max_items = KIT_ITEMS;
    s->each.concurrency = (uint16_t)(*p - '0');
    for (p++; *p && *p != '}'; p++) {
        s->each.goes_on |= *p == '.';
        s->each.tolerate = *p == ':' ? 3400 : s->each.tolerate;
    }
    return p;
}

/* The slots of all steps with for_each. Only items have rounds. */
void kit_graph_slots(struct graph *g)
{
    for (uint16_t i = 0; i < g->w.step_count; i++) {
        struct workflow_step *s = &g->steps[i];
        if (s->kind != KIND_EACH)
            continue;
        s->each.step = i;
        s->each.slots_at = g->w.step_count + g->w.slot_count;
        s->each.slot_count = each_slots(s->each.concurrency);
        for (uint16_t k = 0; k < s->each.slot_count; k++) {
            CHECK(g->w.slot_count < GRAPH_SLOTS, "too many slots");
            struct workflow_step *slot = &g->steps[g->w.step_count + g->w.slot_count++];
            *slot = *s;
            slot->kind = s->child.workflow.ptr ? KIND_TASK : KIND_CALL;
            if (slot->kind == KIND_TASK)
                g->w.child_step_count++;
            slot->each.slot_count = 0;
        }
        s->repeat = (struct repeat_rule){0};
    }
}

/* ---- the store ---- */

static void add_up(struct items *n, const struct kit *k, uint16_t step, const struct step *item)
{
    n->completed += item->state == STEP_COMPLETED;
    n->failed += item->state == STEP_FAILED;
    n->skipped += item->state == STEP_SKIPPED;
    n->undone += item->state == STEP_UNDONE;
    n->effects += step_has_effect(item);
    n->doubts += step_in_doubt(item);
    n->to_undo += step_needs_undo(&k->g.steps[k->g.steps[step].each.slots_at], item);
    n->contradicted += item->state != STEP_UNDONE && step_resolve_is_contradicted(item);
}

static bool is_in_slot(const struct kit *k, uint16_t step, uint32_t item)
{
    const struct each_spec *each = &k->g.steps[step].each;

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (k->steps[u].slot != SLOT_FREE && k->steps[u].item == item)
            return true;
    return false;
}

/* The sums of a step are those of its rows and of what is not stored yet. */
static void check_sums(const struct kit *k, uint16_t step)
{
    const struct each_spec *each = &k->g.steps[step].each;
    const struct items *in = &k->items[step];
    struct items n = {0};

    for (uint32_t i = 0; i < in->begun && i < KIT_ITEMS; i++)
        if (k->rows[step][i].is_there && !is_in_slot(k, step, i))
            add_up(&n, k, step, &k->rows[step][i].item);
    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (k->steps[u].slot == SLOT_RESTING)
            add_up(&n, k, step, &k->steps[u]);
    CHECK(n.completed == in->completed && n.failed == in->failed && n.skipped == in->skipped
              && n.undone == in->undone && n.effects == in->effects && n.doubts == in->doubts
              && n.to_undo == in->to_undo && n.contradicted == in->contradicted,
          "%s: the sums of its items", k->about);
}

/* What a store does in the transaction of a change. */
void kit_store_items(struct kit *k)
{
    for (uint16_t u = k->t.step_count; u < task_unit_count(&k->t); u++) {
        if (k->steps[u].slot != SLOT_RESTING)
            continue;
        struct kit_row *row = &k->rows[unit_step(&k->g.w, u)][k->steps[u].item];
        row->is_there = true;
        row->item = k->steps[u];
        row->item.slot = SLOT_FREE;
        memcpy(row->attempts, k->attempts[u], sizeof row->attempts);
        row->item.attempts = row->attempts;
    }
    items_stored(&k->g.w, &k->t);
    CHECK(task_valid(&k->g.w, &k->t), "%s: valid when it is stored", k->about);
}

/* An event of an item at rest: its row is brought, as by whoever calls decide(). */
static void hold(struct kit *k, const struct event *ev)
{
    uint16_t unit = (uint16_t)ev->step;

    item_hold(&k->g.w, &k->t, unit, ev->row);
    memcpy(k->attempts[unit], ev->row->attempts, sizeof k->attempts[0]);
    k->steps[unit].attempts = k->attempts[unit];
    k->steps[unit].attempt_cap = ATTEMPTS_KEPT;
    k->held = unit;
}

void kit_let_go(struct kit *k)
{
    if (k->held && !k->fx.changed) {
        item_let_go(&k->g.w, &k->t, k->held);
        memset(k->attempts[k->held], 0, sizeof k->attempts[0]);
        k->steps[k->held].attempts = k->attempts[k->held];
        k->steps[k->held].attempt_cap = ATTEMPTS_KEPT;
    }
    k->held = 0;
}

void kit_after_items(struct kit *k, const struct event *ev)
{
    if (ev->kind == EVENT_BEGIN && k->g.steps[ev->step].kind == KIND_EACH)
        memset(k->rows[ev->step], 0, sizeof k->rows[0]);
    if (ev->kind == EVENT_BRING) { /* the item has room in its slot, not in its row */
        memcpy(k->attempts[ev->step], ev->row->attempts, sizeof k->attempts[0]);
        k->steps[ev->step].attempts = k->attempts[ev->step];
    }
    for (uint16_t i = 0; i < k->t.step_count; i++)
        if (k->g.steps[i].kind == KIND_EACH)
            check_sums(k, i);
    if (!k->is_slow)
        kit_store_items(k);
}

/* ---- scripts ---- */

/* The item that the store would find: the last that is to be undone, below those that were. */
static uint32_t item_to_bring(const struct kit *k, uint16_t step)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < KIT_ITEMS && i < k->items[step].undo_below; i++)
        if (k->rows[step][i].is_there
            && step_needs_undo(&k->g.steps[k->g.steps[step].each.slots_at], &k->rows[step][i].item))
            found = i;
    return found;
}

/* The slot of the item, or the first one that is free. */
static int slot_of(const struct kit *k, uint16_t step, uint32_t item)
{
    const struct each_spec *each = &k->g.steps[step].each;
    int slot = -1;

    for (int u = each->slots_at + each->slot_count; u-- > each->slots_at;)
        if (k->steps[u].slot == SLOT_FREE)
            slot = u;
    for (int u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (k->steps[u].slot != SLOT_FREE && k->steps[u].item == item)
            slot = u;
    CHECK(slot >= 0, "%s: there is no slot for item %u", k->about, item);
    return slot;
}

/* "a.1", or "a" that is to be brought. */
void kit_aim_item(struct kit *k, struct event *ev, const char *which, const char *count)
{
    static struct item_list list;
    uint16_t step = (uint16_t)ev->step;
    uint32_t item = 0;

    if (ev->kind == EVENT_BEGIN && count) {
        list = (struct item_list){.count = (uint32_t)strtoul(count, NULL, 10)};
        ev->list = &list;
    }
    if (which[1] == '.')
        item = (uint32_t)strtoul(which + 2, NULL, 10);
    else if (ev->kind == EVENT_BRING)
        item = item_to_bring(k, step);
    else
        return;
    CHECK(item < KIT_ITEMS, "%s: item %u", k->about, item);
    ev->step = slot_of(k, step, item);
    ev->row = &k->rows[step][item].item;
    if (k->rows[step][item].is_there && k->steps[ev->step].slot == SLOT_FREE
        && ev->kind != EVENT_BRING && ev->kind != EVENT_START)
        hold(k, ev);
}

size_t kit_tell_items(const struct kit *k, uint16_t step, char *got, size_t size)
{
    const struct items *in = &k->items[step];
    size_t at = 0;

    for (uint32_t n = 0; n < in->list.count && n < KIT_ITEMS; n++) {
        const struct step *s =
            is_in_slot(k, step, n) ? &k->steps[slot_of(k, step, n)] : &k->rows[step][n].item;
        bool begun = is_in_slot(k, step, n) || k->rows[step][n].is_there;
        at += (size_t)snprintf(got + at, size - at, "%s%s%s", n > 0 ? " " : "(",
                               s->slot == SLOT_BACK ? "<" : "",
                               begun ? step_state_text(s->state) : "-");
    }
    return in->list.count == 0 ? 0 : at + (size_t)snprintf(got + at, size - at, ")");
}
