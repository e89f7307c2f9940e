/* Shares the free places of an agent among its servers: how many requests each call may bring,
 * and which parked call is ended to ask for fewer (places.h has the rules). On the driving
 * thread; agent.c is the caller. */

#include "libintact/places.h"

#include <stdlib.h>

#include "libintact/agent.h"

static size_t free_places(const struct intact_agent *a)
{
    size_t taken = 0;

    for (size_t i = 0; i < a->peer_count; i++)
        taken += a->peers[i]->working;
    if (a->stopping || taken >= a->options.concurrency)
        return 0;
    return a->options.concurrency - taken;
}

static void look_at(struct intact_agent *a, int64_t at)
{
    a->share_at = min_i64(a->share_at, at);
}

static bool is_parked(const struct peer *p)
{
    return p->main.busy && p->main.max > 0 && p->main.result_count == 0;
}

/* The places asked for at nodes that probably have work. */
static size_t asked_for(struct intact_agent *a, int64_t now)
{
    size_t asked = 0;

    for (size_t i = 0; i < a->peer_count; i++) {
        const struct peer *p = a->peers[i];
        int64_t idle_at = p->main.sent_at + peer_timing.idle_ms;
        if (!p->main.busy || p->main.max == 0 || idle_at <= now)
            continue;
        asked += p->main.max;
        look_at(a, idle_at);
    }
    return asked;
}

static int by_use(const void *left, const void *right)
{
    const struct peer *l = *(struct peer *const *)left;
    const struct peer *r = *(struct peer *const *)right;

    if (l->useful_at != r->useful_at)
        return l->useful_at > r->useful_at ? -1 : 1;
    return l->offered_at < r->offered_at ? -1 : l->offered_at > r->offered_at;
}

/* One at a time and not often, because it rarely helps. */
static void put_neglected_first(struct intact_agent *a, struct peer **idle, size_t count,
                                int64_t now)
{
    size_t found = 0;

    if (now < a->neglect_at)
        return;
    for (size_t i = 1; i < count; i++)
        if (idle[i]->offered_at < idle[found]->offered_at)
            found = i;
    if (found == 0 || now - idle[found]->offered_at < peer_timing.neglect_ms)
        return;
    a->neglect_at = now + peer_timing.neglect_ms;
    struct peer *first = idle[found];
    memmove(idle + 1, idle, found * sizeof(struct peer *));
    idle[0] = first;
}

static void share_out(struct intact_agent *a, struct peer **idle, size_t count, size_t spare,
                      int64_t now)
{
    if (count > 1) {
        qsort(idle, count, sizeof(struct peer *), by_use);
        put_neglected_first(a, idle, count, now);
    }
    for (size_t i = 0; i < count && spare > 0; i++) {
        size_t left = count - i;
        idle[i]->allowed = (spare + left - 1) / left;
        spare -= idle[i]->allowed;
    }
}

static void call_home_what_is_too_much(struct intact_agent *a, size_t free, int64_t now)
{
    for (size_t i = 0; i < a->peer_count; i++) {
        struct peer *p = a->peers[i];
        bool is_enough = free > 0 && p->main.max <= 2 * free;
        bool is_coming = p->main.called_home && now < p->home_by;
        if (!is_parked(p) || is_coming || is_enough) {
            p->excess_since = 0;
            continue;
        }
        if (p->excess_since == 0)
            p->excess_since = now;
        if (now - p->excess_since >= peer_timing.excess_ms)
            p->call_home = p->answered;
        else
            look_at(a, p->excess_since + peer_timing.excess_ms);
    }
}

void places_share(struct intact_agent *a, int64_t now)
{
    struct peer *idle[NODES_MAX];
    size_t count = 0;
    size_t free = free_places(a);

    a->share_at = INT64_MAX;
    size_t asked = asked_for(a, now);
    for (size_t i = 0; i < a->peer_count; i++) {
        struct peer *p = a->peers[i];
        p->allowed = 0;
        if (p->used && !p->main.busy && now >= p->retry_at && count < NODES_MAX)
            idle[count++] = p;
    }
    if (free > asked && count > 0)
        share_out(a, idle, count, free - asked, now);
    if (!a->stopping) /* stopping aborts them */
        call_home_what_is_too_much(a, free, now);
}
