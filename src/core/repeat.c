/* The rounds of a repeated step: the gap before each, and how many fit into the time that the
 * definition allows (repeat.h). Pure. decide.c begins and ends rounds; definition/reader/repeat.c
 * bounds their number. */

#include "core/repeat.h"

/* The gap after the one of that length. Stops multiplying at the cap, so that it never overflows.
 */
static int64_t next_gap(const struct repeat_rule *r, int64_t gap)
{
    int64_t next = 0;

    if (r->factor_milli == 1000 || gap >= r->max_every_ms)
        return gap;
    if (__builtin_mul_overflow(gap, (int64_t)r->factor_milli, &next))
        next = INT64_MAX;
    return min_i64(next / 1000, r->max_every_ms);
}

int64_t repeat_gap(const struct repeat_rule *r, uint32_t round)
{
    int64_t gap = r->every_ms;

    ASSERT(round >= 1);
    for (uint32_t i = 1; i < round; i++) {
        int64_t next = next_gap(r, gap);
        if (next == gap)
            break;
        gap = next;
    }
    return gap;
}

/* The first round that begins when `for` has passed is the last one. */
uint32_t repeat_rounds(const struct repeat_rule *r)
{
    int64_t at = 0;
    int64_t gap = r->every_ms;
    uint32_t rounds = 1;

    if (gap <= 0)
        return ROUNDS_MAX + 1;
    while (at < r->for_ms && rounds <= ROUNDS_MAX) {
        at = gap < r->for_ms - at ? at + gap : r->for_ms;
        gap = next_gap(r, gap);
        rounds++;
    }
    return rounds;
}
