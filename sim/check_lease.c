/*
 * What a node believes about its leases, compared with what it was granted. A lease runs from the
 * time at which the store grants it, which the node learns later. So a node must count from the
 * time of its request: its belief ends no later than its clock's time at the grant plus the lease's
 * length. Both are on one clock, so there is no tolerance.
 */

#include <string.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

/* Operations start nothing in the last second of their lease. */
enum { OPERATIONS_MARGIN_MS = 1000 };

enum lease_kind { LEASE_OF_NODE, LEASE_OF_SUPERVISOR, LEASE_OF_OPERATIONS, LEASE_KINDS };

static const char *const kinds[] = {
    [LEASE_OF_NODE] = NODE_LEASE,
    [LEASE_OF_SUPERVISOR] = SUPERVISOR_LEASE,
    [LEASE_OF_OPERATIONS] = OPERATION_LEASE,
};

/* By node slot. */
static struct belief {
    uint64_t boot;
    int64_t most;     /* on the node's clock: the latest allowed end; 0: none */
    uint64_t lost_in; /* the run of its disk that reports another holder; 0: none */
} beliefs[NODES_MAX][LEASE_KINDS];

/* A node counts its own lease in the store's time, others on its steady clock. */
static int64_t clock_of(const struct node *n, enum lease_kind k)
{
    return k == LEASE_OF_NODE ? node_now(n) : node_steady(n);
}

static enum lease_kind kind_of(struct slice name)
{
    enum lease_kind k = LEASE_OF_NODE;

    while (k + 1 < LEASE_KINDS
           && (name.len < strlen(kinds[k]) || memcmp(name.ptr, kinds[k], strlen(kinds[k])) != 0))
        k++;
    return k;
}

static struct belief *belief_of(const struct node *n, enum lease_kind k)
{
    struct belief *b = &beliefs[n->slot][k];

    if (b->boot != n->boot)
        *b = (struct belief){.boot = n->boot};
    return b;
}

void check_leases_begin(void)
{
    memset(beliefs, 0, sizeof beliefs);
}

void check_given(const struct node *n, const struct lease_try *want, const struct lease *got)
{
    enum lease_kind k = kind_of(want->name);
    struct belief *b = belief_of(n, k);

    if (!slice_is(got->holder, n->me))
        return;
    b->lost_in = 0;
    b->most = clock_of(n, k) + got->until - want->now;
}

void check_lease_told(const struct node *n, struct slice name, const struct lease *got)
{
    if (!slice_is(got->holder, n->me))
        belief_of(n, kind_of(name))->lost_in = n->disk.runs;
}

void check_survey_told(const struct node *n, const struct survey *v)
{
    check_lease_told(n, v->lease, &v->own);
    if (v->leads)
        check_lease_told(n, SLICE(SUPERVISOR_LEASE), &v->lead);
}

static void check_one(const struct node *n, enum lease_kind k, int64_t until)
{
    struct belief *b = belief_of(n, k);

    if (b->lost_in && b->lost_in <= n->disk.dones)
        b->most = 0;
    if (until == 0)
        return;
    if (until > b->most && until > clock_of(n, k))
        broken("a lease is counted from when it was asked for",
               "%s of %s: it believes in it for %" PRId64 " ms more, and may for %" PRId64,
               kinds[k], n->me, until - clock_of(n, k), b->most - clock_of(n, k));
    if (until > clock_of(n, k) && until < b->most)
        covered(COVER_LEASE_SHORTER);
}

void check_beliefs(const struct node *n)
{
    struct scheduler_stats st;
    struct fence fence;
    int64_t until = 0;

    if (!nodes.shared || n->dead || !n->up)
        return;
    scheduler_stats(n->scheduler, &st);
    check_one(n, LEASE_OF_NODE, st.lease_until);
    if (supervisor_leads(n->supervisor, &fence, &until))
        check_one(n, LEASE_OF_SUPERVISOR, until);
    struct runner_stats operations = {0};
    if (n->runner)
        runner_stats(n->runner, &operations);
    if (operations.lead_until)
        check_one(n, LEASE_OF_OPERATIONS, operations.lead_until + OPERATIONS_MARGIN_MS);
}

void check_not_after(const struct node *n, const struct ask *a)
{
    int64_t left = a->not_after - node_now(n);
    const struct belief *b = belief_of(n, LEASE_OF_OPERATIONS);

    if (nodes.shared && left + OPERATIONS_MARGIN_MS > b->most - node_steady(n))
        broken("an operation asks for nothing beyond its lease",
               "%s asks %.*s for %" PRId64 " ms, and has it for %" PRId64, n->me, SLICE_ARG(a->id),
               left, b->most - node_steady(n));
}
