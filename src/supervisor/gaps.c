/*
 * Which lost times still count. A deadline that falls into a gap, or into the grace time after it,
 * is postponed to the end of a grace time; another gap may postpone it again if it begins before
 * that. A gap that begins later does not, so each deadline is postponed for a bounded time, however
 * many gaps there are: a store that is always slow causes nothing but gaps.
 */
#include "supervisor/gaps.h"

#include <string.h>

#include "base/base.h"

/* Gaps that end within this part of a grace time are joined, so that few are kept. */
enum { JOINED_PART = 8 };

void gaps_add(struct gaps *g, int64_t from, int64_t until, int64_t grace_ms)
{
    struct gap *last = g->count > 0 ? &g->list[g->count - 1] : NULL;
    size_t over = 0;

    if (last && (last->from == from || until - last->since < grace_ms / JOINED_PART)) {
        last->until = until;
        return;
    }
    while (over < g->count && g->list[over].until + grace_ms <= from)
        over++;
    if (over == 0 && g->count == GAPS_MAX)
        over = 1;
    g->count -= over;
    memmove(g->list, g->list + over, g->count * sizeof *g->list);
    g->list[g->count++] = (struct gap){from, until, until};
}

void gaps_longer(struct gaps *g, int64_t until)
{
    ASSERT(g->count > 0);
    struct gap *last = &g->list[g->count - 1];
    if (until > last->until)
        last->until = until;
}

int64_t gaps_from(const struct gaps *g)
{
    ASSERT(g->count > 0);
    return g->list[0].from;
}
