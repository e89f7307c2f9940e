/* Draws steps that are repeated, and says what their rounds are expected to be, for the checkers
 * (flow.h). */

#include "sim/flow.h"
#include "sim/world.h"

/* One run in six; not drawn from the run's source. */
bool flows_repeat(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0x54369) % 6 == 0;
}

bool flow_is_satisfied(const struct flow_step *f, uint32_t round, uint32_t number)
{
    return round >= f->rounds || number > FLOW_SATISFIES;
}

int64_t flow_round_gap(const struct flow_step *f, uint32_t round)
{
    int64_t gap = f->every_ms;

    for (uint32_t i = 1; i < round && gap < f->max_every_ms; i++)
        gap *= f->factor;
    return min_i64(gap, f->max_every_ms);
}

static void become_repeated(struct flow_step *s, struct prng *own)
{
    s->is_repeated = true;
    s->undo = UNDO_NONE;
    s->rounds = 1 + prng_below(own, 8);
    s->every_ms = 1 + prng_below(own, prng_chance(own, 50) ? 300 : 5000);
    s->factor = 1 + prng_below(own, 3);
    s->max_every_ms = s->every_ms * (1 + prng_below(own, 6));
    s->for_ms = s->every_ms + prng_below(own, 20000);
    s->for_ms = min_i64(s->for_ms, 1000 * s->every_ms);
    s->says_round = prng_chance(own, 50);
    s->may_break |= prng_chance(own, 10); /* its condition */
    /* fewer at most: the waits between more of them might not fit into the task's time */
    s->retry.attempts = (uint32_t)min_i64(s->retry.attempts, 1 + prng_below(own, 3));
    s->retry.defers = 0;
}

/* Some steps are repeated. */
void flow_draw_repeated(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x7265706561740000) + number)};

    for (uint32_t i = 0; i < f->step_count && flows_repeat(); i++) {
        struct flow_step *s = &f->steps[i];
        if (s->undo != UNDO_PIVOT && !s->is_wait && prng_chance(&own, 70))
            become_repeated(s, &own);
    }
}
