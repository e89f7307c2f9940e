/*
 * The texts of resting steps that the scheduler keeps between two writes of a document, and the
 * groups into which they go. encode.c uses it.
 */
#include "store/codec/groups.h"

#include <stddef.h>
#include <stdlib.h>

#include "store/codec/codec.h"
#include "json/json.h"

static uint16_t *steps_of_slots(const struct workflow *w, struct arena *a)
{
    uint16_t *ret = arena_alloc(a, w->slot_count * sizeof *ret);

    for (uint16_t i = 0; i < w->slot_count; i++)
        ret[i] = unit_step(w, (uint16_t)(w->step_count + i));
    return ret;
}

struct encoded *encoded_new(const struct workflow *w, struct arena *a)
{
    if (w->step_count <= STEPS_FEW)
        return NULL;
    struct encoded *kept = arena_alloc(a, sizeof *kept + w->step_count * sizeof *kept->steps);
    kept->arena = a;
    kept->count = w->step_count;
    kept->slot_count = w->slot_count;
    kept->of_slots = steps_of_slots(w, a);
    kept->texts = arena_alloc(a, w->step_count * sizeof *kept->texts);
    encoded_look_at(kept, -1);
    return kept;
}

void encoded_look_at(struct encoded *kept, int step)
{
    if (!kept)
        return;
    if (step >= kept->count + kept->slot_count)
        return; /* an event may name one that there is not */
    if (step >= kept->count)
        step = kept->of_slots[step - kept->count];
    if (step >= 0) {
        kept->texts[step].changed = true;
        return;
    }
    for (uint16_t i = 0; i < kept->count; i++)
        kept->texts[i].changed = true;
}

static bool any_at_work(const struct items *in)
{
    return in->begun != in->completed + in->failed + in->skipped + in->undone;
}

/* Listings by step search documents only, so failed steps, and those that wait for a retry or a
 * time, always stay in them. A step that an operator starts anew has attempts, but none under its
 * present key. An item at work changes without its step. */
bool kept_is_worth(const struct step *s)
{
    if (s->items && any_at_work(s->items))
        return false;
    switch (s->state) {
    case STEP_COMPLETED:
    case STEP_SKIPPED:
    case STEP_UNDONE:
        return true;
    case STEP_WAITING:
        return s->failure_count == 0 && s->begun_at == 0 && s->round == 0 && !step_was_tried(s);
    case STEP_RUNNING:
    case STEP_FAILED:
    case STEP_UNDOING:
        return false;
    }
    UNREACHABLE();
}

/* The outputs of items are no part of a text: whoever reads them has them in memory. */
static const struct step *without_outputs(const struct step *s, struct step *copy)
{
    memcpy(copy, s, sizeof *s); /* with its padding */
    if (s->output.payload == ITEMS_OUTPUT)
        copy->output.json = SLICE("");
    return copy;
}

/* What is in its slots is none of a step that rests. */
static bool items_are_as(const struct items *x, const struct items *y)
{
    return memcmp(x, y, offsetof(struct items, tally)) == 0; /* NOLINT: see below */
}

/* All of it is compared, whatever may be added to a step. That texts lie where they lay says that
 * they are the same: none is changed in its place. Padding may differ, and then it is written anew.
 */
bool kept_is_as(const struct encoded *kept, uint16_t i, const struct step *s)
{
    const struct kept_step *k = &kept->steps[i];
    struct step as_written;

    if (!kept->texts[i].text.ptr && !kept->texts[i].group)
        return false;
    if (s->items)
        s = without_outputs(s, &as_written);
    return memcmp(&k->step, s, sizeof *s) == 0 /* NOLINT: see above */
           && (!s->items || items_are_as(&k->items, s->items))
           && (s->attempt_count == 0
               || memcmp(k->attempts, s->attempts, s->attempt_count * sizeof *s->attempts) == 0);
}

void kept_forget(struct encoded *kept, uint16_t i)
{
    kept->texts[i].text = SLICE_NONE;
    kept->texts[i].group = 0;
}

static void copy_step(struct encoded *kept, uint16_t i, const struct step *s)
{
    struct kept_step *k = &kept->steps[i];

    if (s->attempt_count > k->attempt_cap) {
        k->attempt_cap = s->attempt_count;
        k->attempts = arena_alloc(kept->arena, s->attempt_count * sizeof *k->attempts);
    }
    (void)without_outputs(s, &k->step);
    if (s->items)
        memcpy(&k->items, s->items, sizeof *s->items);
    if (s->attempt_count > 0)
        memcpy(k->attempts, s->attempts, s->attempt_count * sizeof *k->attempts);
}

void kept_set(struct encoded *kept, uint16_t i, const struct step *s, struct slice text)
{
    copy_step(kept, i, s);
    kept->texts[i].text = arena_copy(kept->arena, text);
    kept->texts[i].group = 0;
}

void kept_set_group(struct encoded *kept, uint16_t i, const struct step *s, uint32_t group)
{
    ASSERT(group > 0);
    copy_step(kept, i, s);
    kept->texts[i].text = SLICE_NONE;
    kept->texts[i].group = group;
}

void kept_set_input(struct encoded *kept, const struct value *input)
{
    if (kept->input.ptr && !slice_same(kept->input, input->json))
        for (uint16_t i = 0; i < kept->count; i++) {
            kept->regroup |= kept->texts[i].group != 0;
            kept_forget(kept, i);
            kept->texts[i].changed = true;
        }
    kept->input = input->payload ? SLICE_NONE : input->json; /* a number is never another's */
}

bool kept_has_group(const struct encoded *kept)
{
    for (uint16_t i = 0; i < kept->count; i++)
        if (kept->texts[i].group)
            return true;
    return false;
}

size_t kept_size(const struct encoded *kept)
{
    size_t size = 0;

    for (uint16_t i = 0; i < kept->count; i++)
        if (!kept->texts[i].group)
            size += kept->texts[i].text.len;
    return size;
}

/* ---- the groups that a document names ---- */

bool doc_is_grouped(struct slice doc)
{
    static const char head[] = "{\"grouped\":true,";

    return doc.len >= sizeof head - 1 && memcmp(doc.ptr, head, sizeof head - 1) == 0;
}

static int number_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static bool has_number(const uint32_t *list, size_t count, uint32_t number)
{
    while (count-- > 0)
        if (list[count] == number)
            return true;
    return false;
}

size_t doc_groups(struct slice doc, struct arena *a, uint32_t **ret)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct json *j = NULL;
    size_t count = 0;

    *ret = NULL;
    if (!doc_is_grouped(doc) || json_parse(&own, doc, &j, NULL) != ERR_OK)
        return 0;
    const struct json *steps = json_get(j, "steps");
    if (!steps || steps->type != JSON_ARRAY)
        return 0;
    *ret = arena_alloc(a, (steps->count + 1) * sizeof **ret);
    for (const struct json *s = steps->child; s; s = s->next) {
        int64_t number = 0;
        if (json_int(s, &number) && number > 0 && number <= PAYLOAD_NUMBER_MAX
            && !has_number(*ret, count, (uint32_t)number))
            (*ret)[count++] = (uint32_t)number;
    }
    qsort(*ret, count, sizeof **ret, number_order);
    return count;
}
