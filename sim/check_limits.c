/* Checks limits as the service behind an agent sees them: how many attempts are at work, by the
 * rows and the agents' behaviour, whatever node sent them; and how fast they began. Each of
 * several nodes has a share, so this holds only while all know each other and stay. What began
 * before, or under other limits, is not counted. check.h lists all checkers. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/outage.h"
#include "sim/world.h"

enum { STEADY_MS = 20000, BEGUN_MAX = 64, BURST_MS = 100 };

static int64_t steady_since; /* in world time */
static int64_t changed_at;   /* when limits were set */

struct begun {
    int64_t at[BEGUN_MAX]; /* the latest, on the starter's clock */
    uint32_t count;
};

static struct begun begun[SERVICES_MAX][LIMITS_MAX];

void check_limits_begin(void)
{
    steady_since = changed_at = world.now;
    memset(begun, 0, sizeof begun);
}

void check_limits_changed(void)
{
    changed_at = world.now;
    memset(begun, 0, sizeof begun);
}

/* Do all running nodes know each other, and no other node? */
static bool is_steady(void)
{
    uint32_t up = 0;

    if (!nodes.shared)
        return true;
    NODES_FOREACH (n)
        up += node_is_up(n) && node_schedules(n);
    NODES_FOREACH (n) {
        if (n->used && !node_is_up(n))
            return false;
        if (node_is_up(n) && node_schedules(n)
            && (n->draining || scheduler_dispatch(n->scheduler)->share.nodes != up))
            return false;
    }
    return true;
}

static uint32_t service_of(const struct subject *t, uint32_t step, enum direction d)
{
    const struct flow_step *f = &t->flow->steps[step];

    return d == DIRECTION_UNDO ? f->undo_service : f->service;
}

static uint32_t action_of(uint32_t step, enum direction d)
{
    return 1 + step + (d == DIRECTION_UNDO ? (uint32_t)FLOW_STEPS_MAX : 0);
}

/* Its node may have given it up for silence without having stored that. */
static bool may_be_silent(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    const struct flow_step *f = &t->flow->steps[step];
    const struct beaten *b = t->beaten[step][a->direction];
    int64_t ms = a->direction == DIRECTION_UNDO ? f->undo_heartbeat_ms : f->heartbeat_ms;
    int64_t heard_at = a->started_at;

    for (uint32_t i = 0; i < COUNT_OF(t->beaten[step][a->direction]); i++)
        if (b[i].attempt == a->number)
            heard_at = max_i64(heard_at, b[i].when);
    return ms > 0 && latest_now() >= heard_at + ms;
}

/* Its request reached nobody, or its agent handed it over; its node may know that without having
 * stored it. */
static bool has_nobody(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    return a->elsewhere || t->handed_over[step][a->direction] == a->number
           || (t->kept_back[step][a->direction] == a->number
               && t->sent_twice[step][a->direction] != a->number);
}

/* May an agent be working on it? */
static bool is_at_work(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    return t->began_at[step] > max_i64(steady_since, changed_at) + STEADY_MS
           && !has_nobody(t, step, a) && a->complete_by > latest_now() && !may_be_silent(t, step, a)
           && t->sent[step][a->direction] >= a->number
           && !said_find(t, step, a->direction, a->number, true)
           && !said_find(t, step, a->direction, a->number, false);
}

static void count_open(uint32_t counts[SERVICES_MAX][LIMITS_MAX])
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        for (uint32_t k = 0; t->seen.revision && k < t->seen.step_count; k++) {
            const struct seen_attempt *a = seen_open(&t->seen.steps[k]);
            if (!a || !is_at_work(t, k, a))
                continue;
            counts[service_of(t, k, a->direction)][0]++;
            counts[service_of(t, k, a->direction)][action_of(k, a->direction)]++;
        }
    }
}

void check_limits(void)
{
    uint32_t counts[SERVICES_MAX][LIMITS_MAX] = {0};

    if (!is_steady())
        steady_since = world.now;
    if (!outage_limits() || world.now < steady_since + STEADY_MS)
        return;
    count_open(counts);
    for (uint32_t s = 0; s < SERVICES_MAX; s++)
        for (uint32_t i = 0; i < LIMITS_MAX; i++) {
            uint32_t most = limits[s][i].concurrency;
            if (most == 0 || counts[s][i] < most)
                continue;
            if (counts[s][i] > most)
                broken("no more are at work than its limit lets", "a%u, limit %u: %u of %u", s, i,
                       counts[s][i], most);
            covered(nodes.shared ? COVER_LIMIT_NODES : COVER_LIMIT_CONCURRENCY);
        }
}

static void note(struct begun *b, int64_t at)
{
    if (b->count == BEGUN_MAX)
        memmove(b->at, b->at + 1, --b->count * sizeof *b->at);
    uint32_t i = b->count++;
    for (; i > 0 && b->at[i - 1] > at; i--) /* the rows of a batch are unordered */
        b->at[i] = b->at[i - 1];
    b->at[i] = at;
}

static void judge_rate(uint32_t service, uint32_t which, int64_t at)
{
    const struct limit *l = &limits[service][which];
    struct begun *b = &begun[service][which];

    if (l->rate_count == 0)
        return;
    note(b, at);
    int64_t last = b->at[b->count - 1];
    for (uint32_t i = 0; i < b->count; i++) {
        int64_t most = 1 + (last - b->at[i] + BURST_MS) * l->rate_count / l->rate_ms;
        if ((int64_t)b->count - i > most)
            broken("no more begin than its rate lets",
                   "a%u, limit %u, %u in %" PRId64 " ms: %u in %" PRId64 " ms", service, which,
                   l->rate_count, l->rate_ms, b->count - i, last - b->at[i]);
        if ((int64_t)b->count - i == most && i + 1 < b->count)
            covered(COVER_LIMIT_RATE);
    }
}

void check_limit_start(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    uint32_t service = service_of(t, step, a->direction);

    if (nodes.shared || world.set_back || world.now < changed_at + STEADY_MS)
        return; /* shares, different clocks, or limits that are not known yet */
    judge_rate(service, 0, a->started_at);
    judge_rate(service, action_of(step, a->direction), a->started_at);
}
