#include "store/codec_kept.h"

struct encoded *encoded_new(const struct workflow *w, struct arena *a)
{
    if (w->step_count <= STEPS_FEW)
        return NULL;
    struct encoded *kept = arena_alloc(a, sizeof *kept + w->step_count * sizeof *kept->steps);
    kept->arena = a;
    kept->count = w->step_count;
    return kept;
}

/* A listing looks for what stands somewhere into documents alone: neither what failed nor what
 * waits for another try ever leaves them. One that a person has start anew has attempts, but none
 * under the key that it has now. */
bool kept_is_worth(const struct step *s)
{
    switch (s->state) {
    case STEP_COMPLETED:
    case STEP_SKIPPED:
    case STEP_UNDONE:
        return true;
    case STEP_WAITING:
        return s->failure_count == 0 && !step_was_tried(s);
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

    if (!k->text.ptr && !k->group)
        return false;
    return memcmp(&k->step, s, sizeof *s) == 0 /* NOLINT: see above */
           && (s->attempt_count == 0
               || memcmp(k->attempts, s->attempts, s->attempt_count * sizeof *s->attempts) == 0);
}

void kept_forget(struct encoded *kept, uint16_t i)
{
    kept->steps[i].text = SLICE_NONE;
    kept->steps[i].group = 0;
}

static void copy_step(struct encoded *kept, struct kept_step *k, const struct step *s)
{
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
    struct kept_step *k = &kept->steps[i];

    copy_step(kept, k, s);
    k->text = arena_copy(kept->arena, text);
    k->group = 0;
}

void kept_set_group(struct encoded *kept, uint16_t i, const struct step *s, uint32_t group)
{
    struct kept_step *k = &kept->steps[i];

    ASSERT(group > 0);
    copy_step(kept, k, s);
    k->text = SLICE_NONE;
    k->group = group;
}

bool kept_has_group(const struct encoded *kept)
{
    for (uint16_t i = 0; i < kept->count; i++)
        if (kept->steps[i].group)
            return true;
    return false;
}

size_t kept_size(const struct encoded *kept)
{
    size_t size = 0;

    for (uint16_t i = 0; i < kept->count; i++)
        if (!kept->steps[i].group)
            size += kept->steps[i].text.len;
    return size;
}
