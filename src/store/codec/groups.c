/*
 * The texts of resting steps that the scheduler keeps between two writes of a document, and the
 * groups into which they go. encode.c uses it.
 */
#include "store/codec/groups.h"

struct encoded *encoded_new(const struct workflow *w, struct arena *a)
{
    if (w->step_count <= STEPS_FEW)
        return NULL;
    struct encoded *kept = arena_alloc(a, sizeof *kept + w->step_count * sizeof *kept->steps);
    kept->arena = a;
    kept->count = w->step_count;
    kept->texts = arena_alloc(a, w->step_count * sizeof *kept->texts);
    encoded_look_at(kept, -1);
    return kept;
}

void encoded_look_at(struct encoded *kept, int step)
{
    if (!kept)
        return;
    if (step >= kept->count)
        return; /* an event may name one that there is not */
    if (step >= 0) {
        kept->texts[step].changed = true;
        return;
    }
    for (uint16_t i = 0; i < kept->count; i++)
        kept->texts[i].changed = true;
}

/* Listings by step search documents only, so failed steps, and those that wait for a retry or a
 * time, always stay in them. A step that an operator starts anew has attempts, but none under its
 * present key. */
bool kept_is_worth(const struct step *s)
{
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

/* All of it is compared, whatever may be added to a step. That texts lie where they lay says that
 * they are the same: none is changed in its place. Padding may differ, and then it is written anew.
 */
bool kept_is_as(const struct encoded *kept, uint16_t i, const struct step *s)
{
    const struct kept_step *k = &kept->steps[i];

    if (!kept->texts[i].text.ptr && !kept->texts[i].group)
        return false;
    return memcmp(&k->step, s, sizeof *s) == 0 /* NOLINT: see above */
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
    memcpy(&k->step, s, sizeof *s); /* with its padding */
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
