/* Checks leases, claims, requests of the supervisor, and fairness between nodes that share a
 * store, at each commit (disk.c). check_lease.c checks what a node believes of its leases.
 * check.h lists all checkers. */

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/outage.h"
#include "sim/weather.h"
#include "sim/world.h"

/* A lease, plus the time to learn of it: the store may stall for 20 s. */
enum { UNHEARD_MS = 32000, SETTLED_MS = 3000 };

/* Granted leases; recorded here independently of the store. */
struct given {
    char name[24], holder[24];
    int64_t until;
    int64_t asked_at; /* on its holder's clock, last time */
    int64_t since;    /* with this holder, in world time */
};

static struct {
    struct given list[2 + NAMES_MAX];
    uint32_t count;
    uint64_t epoch;  /* of the latest requests, */
    char writer[24]; /* and their writer */
} leases;

void check_nodes_begin(void)
{
    leases.count = 0;
    leases.epoch = 0;
    leases.writer[0] = 0;
}

static struct given *given_of(struct slice name)
{
    for (uint32_t i = 0; i < leases.count; i++)
        if (slice_is(name, leases.list[i].name))
            return &leases.list[i];
    return NULL;
}

static bool is_running(const struct given *g, int64_t now)
{
    return g->until > now && g->until <= now + LEASE_MAX_MS;
}

/* A lease may be granted if nobody or this holder had it, if it expired, or to a newer boot. */
void check_lease(const struct node *n, const struct lease_try *want, const struct lease *got)
{
    struct given *g = given_of(want->name);

    if (!slice_is(got->holder, n->me)) {
        if (!g || !slice_is(got->holder, g->holder))
            broken("a lease has one holder", "%.*s: %.*s", SLICE_ARG(want->name),
                   SLICE_ARG(got->holder));
        return;
    }
    if (!g) {
        ASSERT(leases.count < COUNT_OF(leases.list));
        g = &leases.list[leases.count++];
        *g = (struct given){0};
        (void)snprintf(g->name, sizeof g->name, "%.*s", SLICE_ARG(want->name));
    }
    if (strcmp(g->holder, n->me) != 0)
        g->since = world.now;
    if (g->holder[0] && strcmp(g->holder, n->me) != 0) {
        if (is_running(g, want->now) && !want->seize)
            broken("a lease is not taken from who holds it", "%s of %s by %s", g->name, g->holder,
                   n->me);
        if (slice_is(want->name, "supervisor"))
            covered(COVER_LEADER_CHANGE);
        if (g->until <= g->asked_at)
            covered(COVER_HANDED_ON);
        trace("%s: %s has it, after %s", g->name, n->me, g->holder);
    }
    (void)snprintf(g->holder, sizeof g->holder, "%s", n->me);
    g->until = got->until;
    g->asked_at = want->now;
}

void check_left(const struct node *n)
{
    const struct given *g = given_of(SLICE("supervisor"));

    if (n->disk.trouble_at >= n->drains_since)
        return;
    if (g && strcmp(g->holder, n->me) == 0 && g->until > g->asked_at)
        broken("a leader that drains gives up its lease", "%s", n->me);
    char name[24];
    (void)snprintf(name, sizeof name, "node/n%u", n->name + 1);
    g = given_of(slice_of(name));
    if (g && strcmp(g->holder, n->me) == 0 && g->until > g->asked_at)
        broken("a node that ends gives up its lease", "%s", n->me);
}

/* An epoch has one leader, and writes of different epochs do not interleave. */
void check_fence(const struct node *n, const struct fence *f)
{
    bool same = strcmp(leases.writer, n->me) == 0;

    if (f->epoch < leases.epoch || (f->epoch == leases.epoch && !same))
        broken("no two leaders write under one epoch",
               "%s writes under %" PRIu64 ", and %s did under %" PRIu64, n->me, f->epoch,
               leases.writer, leases.epoch);
    leases.epoch = f->epoch;
    (void)snprintf(leases.writer, sizeof leases.writer, "%s", n->me);
}

/* Only the leader may store requests. */
void check_requests(const struct node *n, const struct batch *b)
{
    const struct given *g = given_of(SLICE("supervisor"));

    if (!nodes.shared)
        return;
    if (b->fence)
        check_fence(n, b->fence);
    for (size_t i = 0; i < b->change_count; i++)
        if (b->changes[i].kind == CHANGE_REQUEST && b->changes[i].outcome == ERR_OK
            && (!g || strcmp(g->holder, n->me) != 0))
            broken("only the leading supervisor writes requests", "%s, and %s leads", n->me,
                   g ? g->holder : "nobody");
}

/* Does the owner hold its node's lease, as far as can be told? */
static bool owner_lives(const char *owner)
{
    char name[24];

    (void)snprintf(name, sizeof name, "node/%.*s", (int)strcspn(owner, "/"), owner);
    const struct given *g = given_of(slice_of(name));
    return g && strcmp(g->holder, owner) == 0 && is_running(g, store_now());
}

static bool any_open(const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++)
        if (seen_open(&s->steps[i]))
            return true;
    return false;
}

/* Does it wait for this agent and others? */
static bool is_among(struct slice agent, const char *waiting_for)
{
    const char *at = waiting_for;

    while ((at = strchr(at, ','))) {
        at++;
        if (agent.len == strcspn(at, ",") && memcmp(agent.ptr, at, agent.len) == 0)
            return true;
    }
    return false;
}

static bool waits_for_the_same(const struct claim *c, const struct seen *s)
{
    return s->state == TASK_PENDING && !s->locked
           && (c->among ? is_among(c->agent, s->waiting_for) : slice_is(c->agent, s->waiting_for));
}

/* One level of priority is worth a minute. */
static int64_t rank_of(const struct subject *t)
{
    return max_i64(t->seen.submitted_at, t->seen.not_before) - t->priority * INT64_C(60000);
}

/* The rank at most: a step that failed in an outage ranks as if it had arrived then, a task that
 * has waited as if it had been submitted when its wait was over; a bulk
 * operation ranks its tasks as of its time, with one level of priority less. */
static int64_t rank_behind(const struct subject *t)
{
    int64_t rank = rank_of(t);

    for (uint32_t i = 0; i < t->seen.step_count; i++) {
        const struct seen_step *s = &t->seen.steps[i];
        int64_t at = s->spared_at;
        if (t->items[i] && t->items[i]->has_begun)
            return INT64_MAX; /* its items rank by when their places were free */
        if (s->begun_at && s->state == STEP_COMPLETED)
            at = max_i64(at, max_i64(s->begun_at, s->wait_until));
        if (at)
            rank = max_i64(rank, at - t->priority * INT64_C(60000));
    }
    if (t->bulk_at)
        rank = max_i64(rank, t->bulk_at - (t->priority - 1) * INT64_C(60000));
    return rank;
}

/* By priority, then age, a level being worth a minute: earlier tasks are not left behind. */
static void check_fairness(const struct claim *c)
{
    int64_t last = INT64_MIN;

    if (c->kind != CLAIM_AGENT || outage_limits()) /* separate lines then */
        return;
    for (size_t i = 0; i < c->row_count; i++)
        last = max_i64(last, rank_of(subject_find(c->rows[i].id)));
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        bool taken = false;
        for (size_t k = 0; k < c->row_count; k++)
            taken |= slice_is(c->rows[k].id, t->id);
        if (taken || !waits_for_the_same(c, &t->seen) || rank_behind(t) >= last)
            continue;
        describe(t);
        broken("who comes first is claimed first", "%s", t->id);
    }
}

/* A quarter of what a claim takes. */
enum { WAITS_MAX = 128 };

static void check_robbed(const struct node *n, const struct claim *c)
{
    for (size_t i = 0; i < c->row_count && c->kind == CLAIM_NODE; i++) {
        const struct subject *t = subject_find(c->rows[i].id);
        if (owner_lives(t->seen.owner))
            broken("the living are not robbed", "%s takes %s from %s", n->me, t->id, t->seen.owner);
    }
}

/* A claimer holds its node's lease, or does not know yet that it lost it. */
static void check_claimer(const struct node *n)
{
    char name[24];

    (void)snprintf(name, sizeof name, "node/n%u", n->name + 1);
    const struct given *g = given_of(slice_of(name));
    if (!g
        || (strcmp(g->holder, n->me) != 0 && world.now > g->since + UNHEARD_MS
            && n->sleeps_until + UNHEARD_MS < world.now))
        broken("who claims has a lease", "%s, and %s is %s's", n->me, name,
               g ? g->holder : "nobody");
}

/* ---- order of service ---- */

/* Has this step wanted a place for a while, with nothing to hold it back? */
static bool wants_place(const struct subject *t, uint32_t i, uint32_t service)
{
    const struct seen_step *s = &t->seen.steps[i];
    const struct flow_step *f = &t->flow->steps[i];
    bool calm = t->seen.state == TASK_PROCESSING && t->seen.stop == STOP_NONE && !t->seen.requested
                && !t->verbs && (t->seen.wake_at == 0 || t->seen.wake_at > latest_now())
                && t->changed_at + SETTLED_MS < world.now;

    if (!calm || s->state != STEP_WAITING || f->is_wait || f->may_break || f->on_undo
        || f->service != service || max_i64(s->wait_until, t->not_before) + SETTLED_MS > store_now()
        || (t->seen.complete_by != 0 && t->seen.complete_by <= latest_now()))
        return false;
    for (uint32_t p = 0; p < t->flow->step_count; p++)
        if (f->past & BIT(p) && t->seen.steps[p].state != STEP_COMPLETED)
            return false;
    return true;
}

static bool any_wants_place(const struct subject *t, uint32_t service)
{
    for (uint32_t i = 0; i < t->flow->step_count; i++)
        if (wants_place(t, i, service))
            return true;
    return false;
}

static void check_served(const struct node *n, const struct subject *t, uint32_t service)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *other = &subjects.list[i];
        if (other == t || !node_owns(n, other->seen.owner) || other->writer != n
            || rank_behind(other) >= rank_of(t) || !any_wants_place(other, service))
            continue;
        describe(t);
        describe(other);
        broken("who comes first is served first", "%s before %s, by a%u", t->id, other->id,
               service);
    }
}

/* What began with this batch at an agent ranks before everything that still waits for it here. */
void check_starts(const struct node *n, const struct batch *b)
{
    if (nodes_quiet_since() + SETTLED_MS > world.now || weather.store_ms > SLOW_MS || n->narrow
        || n->short_batches || outage_limits())
        return;
    for (size_t i = 0; i < b->change_count; i++) {
        const struct subject *t = subject_find(b->changes[i].row.id);
        if (b->changes[i].outcome != ERR_OK || t->seen.direction == DIRECTION_UNDO)
            continue;
        for (uint32_t k = 0; k < t->flow->step_count; k++)
            if (seen_open(&t->seen.steps[k]) && t->began_at[k] == world.now) {
                covered(COVER_SERVED);
                check_served(n, t, t->flow->steps[k].service);
            }
    }
}

void check_claims(const struct node *n, const struct batch *b)
{
    if (nodes.shared && b->claim_count > 0 && !n->dead)
        check_claimer(n);
    if (b->claim_count > 0 && !node_schedules(n))
        broken("who does not schedule claims nothing", "%s", n->me);
    for (size_t i = 0; i < b->claim_count; i++) {
        const struct claim *c = &b->claims[i];
        check_robbed(n, c);
        if (slice_is(c->agent, "@wait") && c->limit > WAITS_MAX)
            broken("waits are a quarter of a batch", "%s: %zu", n->me, c->limit);
    }
}

void check_claim(const struct claim *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        const struct subject *t = subject_find(c->rows[i].id);
        if (c->kind == CLAIM_NODE)
            covered(COVER_NODE_CLAIM);
        if (c->among)
            covered(COVER_CLAIM_AMONG);
        if ((c->kind == CLAIM_BOOT || c->kind == CLAIM_NODE) && any_open(&t->seen))
            covered(COVER_TAKE_OVER);
        if (c->kind == CLAIM_AGENT)
            covered(COVER_AGENT_CLAIM);
        if (c->kind == CLAIM_TIME)
            covered(COVER_TIME_CLAIM);
    }
    check_fairness(c);
}
