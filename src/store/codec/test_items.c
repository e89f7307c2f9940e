/*
 * Random steps with for_each, for the tests of the codec and of the stores: lists, sums, and items
 * in slots, in states that task_valid() takes. test_kit.c draws the rest of a task.
 */

#include "store/codec/test_kit.h"

#include <stdio.h>

#include "core/items.h"

enum { STEPS = 3, CONCURRENCY = 3, SLOTS = 2 * CONCURRENCY + 1, MANY = 100, STATES_TRIED = 20 };

#define NAMED(text)              \
    {                            \
        (text), sizeof(text) - 1 \
    }
#define AN_EACH(text, at, undo)                 \
    {                                           \
        .name = NAMED(text), .kind = KIND_EACH, \
        .each = {.max_items = MANY,             \
                 .concurrency = CONCURRENCY,    \
                 .slots_at = (at),              \
                 .slot_count = SLOTS},          \
        .undo_kind = (undo)                     \
    }
#define SLOT_OF(number, text, step_kind, undo)                                     \
    {                                                                              \
        .name = NAMED(text), .kind = (step_kind),                                  \
        .each = {.max_items = MANY, .concurrency = CONCURRENCY, .step = (number)}, \
        .undo_kind = (undo)                                                        \
    }
#define PACK_SLOT   SLOT_OF(0, "pack", KIND_CALL, UNDO_CALL)
#define PARCEL_SLOT SLOT_OF(2, "parcel", KIND_TASK, UNDO_CHILD)

static const struct workflow_step steps_items[STEPS + 2 * SLOTS] = {
    AN_EACH("pack", STEPS, UNDO_CALL),
    {.name = {"charge", 6}, .undo_kind = UNDO_CALL},
    AN_EACH("parcel", STEPS + SLOTS, UNDO_CHILD),
    PACK_SLOT,
    PACK_SLOT,
    PACK_SLOT,
    PACK_SLOT,
    PACK_SLOT,
    PACK_SLOT,
    PACK_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
    PARCEL_SLOT,
};

const struct workflow kit_workflow_items = {.name = {"items", 5},
                                            .version = 3,
                                            .steps = steps_items,
                                            .step_count = STEPS,
                                            .slot_count = 2 * SLOTS,
                                            .child_step_count = 1};

/* ---- drawing ---- */

static void random_list(struct prng *p, struct arena *a, struct item_list *ret)
{
    *ret = (struct item_list){.count = prng_below(p, MANY + 1)};
    ret->part_count = (uint16_t)((ret->count + ITEMS_OF_PART - 1) / ITEMS_OF_PART);
    ret->parts = arena_alloc(a, ret->part_count * sizeof *ret->parts);
    for (uint16_t i = 0; i < ret->part_count; i++)
        while (!ret->parts[i].json.ptr)
            ret->parts[i] = random_value(p, a);
}

/* One that ended, and is counted. */
static void rests(struct items *in, enum step_state state)
{
    in->completed += state == STEP_COMPLETED;
    in->failed += state == STEP_FAILED;
    in->skipped += state == STEP_SKIPPED;
    in->undone += state == STEP_UNDONE;
}

static bool is_of_rest(enum step_state state)
{
    return state == STEP_COMPLETED || state == STEP_FAILED || state == STEP_SKIPPED
           || state == STEP_UNDONE;
}

static void random_slot(const struct workflow *w, struct task *t, uint16_t unit, struct prng *p,
                        struct arena *a)
{
    struct items *in = t->steps[unit_step(w, unit)].items;
    enum slot_state slot = (enum slot_state)prng_below(p, SLOT_RESTING + 1);
    struct step *s = &t->steps[unit];

    *s = (struct step){0};
    if (slot == SLOT_FREE || in->begun == in->list.count)
        return;
    do
        *s = valid_step(p, a, &w->steps[unit], t->direction);
    while (slot == SLOT_RESTING && !is_of_rest(s->state));
    s->slot = slot;
    s->item = in->begun++;
    if (slot == SLOT_RESTING)
        rests(in, s->state);
}

static void random_sums(struct prng *p, struct items *in)
{
    static const enum step_state states[] = {STEP_COMPLETED, STEP_FAILED, STEP_SKIPPED,
                                             STEP_UNDONE};

    while (in->begun < in->list.count && prng_chance(p, 95)) {
        rests(in, prng_chance(p, 60) ? STEP_COMPLETED : states[prng_below(p, 4)]);
        in->begun++;
    }
    in->effects = prng_below(p, in->completed + 1);
    in->doubts = prng_below(p, in->failed + 1);
    in->to_undo = prng_chance(p, 50) ? 0 : prng_below(p, in->effects + in->doubts + 1);
    in->contradicted = prng_below(p, in->effects + 1);
    in->child_base = prng_below(p, 3);
    in->undo_below = prng_below(p, in->list.count + 1);
}

static void random_begun(const struct workflow *w, struct task *t, uint16_t i, struct prng *p,
                         struct arena *a)
{
    const struct each_spec *each = &w->steps[i].each;

    random_list(p, a, &t->steps[i].items->list);
    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        random_slot(w, t, u, p, a);
    random_sums(p, t->steps[i].items);
    t->steps[i].begun_at = 1 + (int64_t)prng_below(p, 1000000);
}

static void random_state(struct step *s, struct prng *p)
{
    s->state = (enum step_state)prng_below(p, STEP_UNDONE + 1);
    s->direction =
        s->state == STEP_UNDOING || s->state == STEP_UNDONE ? DIRECTION_UNDO : DIRECTION_FORWARD;
    s->error = (struct fault_note){0};
    if (s->state == STEP_FAILED)
        s->error = (struct fault_note){SLICE("declined"), SLICE("no")};
    s->supplied = s->state == STEP_COMPLETED && prng_chance(p, 30);
    s->output = (struct value){0};
    if (s->supplied)
        s->output.json = SLICE("[1]");
    else if (s->state == STEP_COMPLETED || s->direction == DIRECTION_UNDO)
        s->output = (struct value){SLICE(""), ITEMS_OUTPUT};
}

static bool is_valid(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct each_spec *each = &w->steps[i].each;
    bool valid = task_step_valid(w, t, i);

    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        valid = valid && task_step_valid(w, t, u);
    return valid;
}

void random_each(const struct workflow *w, struct task *t, uint16_t i, struct prng *p,
                 struct arena *a)
{
    const struct each_spec *each = &w->steps[i].each;
    bool begun = prng_chance(p, 80);
    struct step *s = &t->steps[i];

    do {
        *s = (struct step){.items = arena_alloc(a, sizeof *s->items),
                           .generation = prng_below(p, 3)};
        for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
            t->steps[u] = (struct step){0};
        if (begun)
            random_begun(w, t, i, p, a);
        items_tally(w, t, i);
        /* only a few states fit what is in the slots */
        for (int n = 0; begun && (n == 0 || (n < STATES_TRIED && !is_valid(w, t, i))); n++)
            random_state(s, p);
    } while (!is_valid(w, t, i));
}

/* ---- after a change ---- */

void slots_settle(const struct workflow *w, struct task *t)
{
    items_stored(w, t);
    slots_tally(w, t);
}

void slots_tally(const struct workflow *w, struct task *t)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH)
            items_tally(w, t, i);
}
