/* Checks breakers, as a node's metrics show them after each of its turns, against the rows that
 * it writes: a node whose breaker is open starts nothing; what failed meanwhile was spared, and
 * nothing else. check.h lists all checkers. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/world.h"

enum { OUTAGES = 64 }; /* operators may open and close it often while the store is stuck */

struct told {
    uint64_t boot;
    enum breaker_state state;
    int64_t since;     /* as reported: another node may have changed the state earlier */
    int64_t told_at;   /* on the node's clock */
    int64_t opened_at; /* when it last left the closed state */
    int64_t let_at;    /* or allowed trials */
    struct {
        int64_t from, until; /* 0: not over */
    } outages[OUTAGES];      /* the latest ones */
    uint32_t outage_count;   /* in total */
};

static struct told told[NODES_MAX][SERVICES_MAX];

void check_breakers_begin(void)
{
    memset(told, 0, sizeof told);
}

static void news(const struct node *n, struct told *x, const struct breaker *b, uint32_t service)
{
    int64_t now = node_now(n);

    trace("%s says: the breaker of a%u is %s: %s", n->me, service, breaker_state_text(b->state),
          b->reason);
    if (x->state == BREAKER_CLOSED) {
        x->opened_at = now;
        x->outages[x->outage_count % OUTAGES].from = now;
        x->outages[x->outage_count++ % OUTAGES].until = 0;
    }
    if (b->state == BREAKER_CLOSED && x->outage_count > 0)
        x->outages[(x->outage_count - 1) % OUTAGES].until = now;
    if (b->state != BREAKER_OPEN)
        x->let_at = now;
    covered(b->by_hand                      ? COVER_BREAKER_BY_HAND
            : b->state == BREAKER_OPEN      ? COVER_BREAKER_OPEN
            : b->state == BREAKER_HALF_OPEN ? COVER_BREAKER_HALF_OPEN
                                            : COVER_BREAKER_CLOSED);
    x->state = b->state;
    x->since = b->since;
    x->told_at = now;
}

void check_breakers(const struct node *n)
{
    const struct agent *a = NULL;

    for (size_t i = 0; (a = map_next(&scheduler_dispatch(n->scheduler)->agents, &i));) {
        uint32_t service = (uint32_t)(a->name.ptr[1] - '0');
        ASSERT(service < SERVICES_MAX);
        struct told *x = &told[n->slot][service];
        if (x->boot != n->boot)
            *x = (struct told){.boot = n->boot};
        if (x->state != a->breaker.state || x->since != a->breaker.since)
            news(n, x, &a->breaker, service);
    }
}

static uint32_t service_of(const struct subject *t, uint32_t step, enum direction d)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(step)];

    return d == DIRECTION_UNDO ? f->undo_service : f->service;
}

static const struct told *told_by_writer(const struct subject *t, uint32_t step, enum direction d)
{
    const struct told *x = &told[t->writer->slot][service_of(t, step, d)];

    return x->boot == t->writer->boot ? x : NULL;
}

static void must(const struct subject *t, uint32_t step, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s/%s", t->id, unit_name(step));
}

void check_breaker_start(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    const struct told *x = told_by_writer(t, step, a->direction);

    if (!x)
        return;
    must(t, step, x->state != BREAKER_OPEN || a->started_at <= x->told_at,
         "while a breaker is open, nothing starts");
    if (x->state == BREAKER_HALF_OPEN && a->started_at > x->since)
        covered(COVER_BREAKER_TRIAL);
}

bool check_hastened(const struct subject *t, uint32_t step, const struct seen_attempt *a,
                    const struct seen_step *before)
{
    const struct told *x = told_by_writer(t, step, a->direction);
    const struct seen_attempt *last = seen_find(before, a->direction, a->number - 1);
    int64_t failed_at = 0;

    if (last && last->outcome == OUTCOME_FAILED
        && said_least_wish(t, step, a->direction, last->number) > 0)
        return false; /* it waits as its service requested, even after an outage */
    for (uint32_t i = 0; i < before->attempt_count; i++) /* earlier ones may be on another clock */
        if (before->attempts[i].direction == a->direction)
            failed_at = max_i64(failed_at, before->attempts[i].ended_at);
    /* Another node may have recorded the failure, on another clock. */
    if (!x || x->let_at == 0 || x->let_at + 2 * nodes.skew_max < failed_at)
        return false;
    covered(COVER_HASTENED);
    return true;
}

/* The failure may be recorded long after, when the breaker was closed and opened again. */
static bool was_outage(const struct told *x, int64_t at)
{
    for (uint32_t i = 0; x && i < OUTAGES && i < x->outage_count; i++)
        if (x->outages[i].from <= at && (x->outages[i].until == 0 || x->outages[i].until >= at))
            return true;
    return false;
}

void check_spared(const struct subject *t, uint32_t step, const struct seen_step *after,
                  const struct seen_attempt *a, bool tries_again)
{
    const struct told *x = told_by_writer(t, step, a->direction);

    if (a->spared) {
        covered(COVER_SPARED);
        must(t, step, after->spared_count <= SPARED_MAX, "not everything is spared for ever");
        must(t, step, was_outage(x, a->ended_at), "only what fails in an outage is spared");
        return;
    }
    if (x && tries_again && after->spared_count < SPARED_MAX)
        must(t, step, x->state == BREAKER_CLOSED || x->opened_at >= a->ended_at,
             "what fails in an outage is spared");
}
