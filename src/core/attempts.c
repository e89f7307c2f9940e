/* The attempts that a step keeps. A step with many keeps the first and the last; those between are
 * merged into sums. */
#include "core/attempts.h"

bool step_needs_room(const struct step *s)
{
    return s->attempt_count == s->attempt_cap && s->attempt_cap < ATTEMPTS_KEPT;
}

/* The attempt to drop. Late results that took effect are dropped last. In a repeated step those of
 * earlier rounds took effect, and the oldest one is dropped. */
static uint16_t attempt_to_drop(const struct step *s)
{
    for (uint16_t i = ATTEMPTS_HEAD; i < s->attempt_count && s->round == 0; i++)
        if (s->attempts[i].effect != EFFECT_HAPPENED)
            return i;
    return ATTEMPTS_HEAD;
}

/* The greatest effect of a step's attempts. In a repeated step each round settles those before it,
 * so the last known effect counts. */
static enum effect merged_effect(const struct step *s, enum effect more)
{
    if (s->round != 0)
        return more == EFFECT_NONE ? s->dropped_effect : more;
    return more > s->dropped_effect ? more : s->dropped_effect;
}

void drop_attempt(struct step *s)
{
    uint16_t at = attempt_to_drop(s);
    const struct attempt *a = &s->attempts[at];

    if (a->direction == DIRECTION_FORWARD) {
        s->dropped_effect = merged_effect(s, a->effect);
        if (a->effect == EFFECT_UNKNOWN || a->resent > 0)
            s->dropped_until = max_i64(s->dropped_until, a->complete_by);
        if (a->effect == EFFECT_UNKNOWN && a->number > s->dropped_attempt)
            s->dropped_attempt = a->number;
    }
    s->dropped_count++;
    s->attempt_count--;
    memmove(&s->attempts[at], &s->attempts[at + 1],
            (size_t)(s->attempt_count - at) * sizeof *s->attempts);
}
