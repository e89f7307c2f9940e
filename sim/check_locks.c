/* Locks: never more tasks of a key at work than its maximum, and nobody waits while there is room.
 * A model of its own: the key follows from the submission, and who is at work from the rows of the
 * steps; what the store counts is not looked at. */

#include "sim/check.h"

#include <stdio.h>

#include "sim/coverage.h"
#include "sim/world.h"

/* An interval of the supervisor, one of the survey, and the time for a claim and its commit. */
enum { SETTLES_MS = 4000 };

/* Some rows of a batch are known: those that give locks back may come behind those that take them.
 */
static bool moved;
static const struct subject *takers[SUBJECTS_ALL]; /* of this batch */
static uint32_t taker_count;

static void must(const struct subject *t, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s: lock since %" PRId64 ", waits for \"%s\"", t->id, t->seen.lock_since,
           t->seen.waiting_for);
}

/* The key is a remainder of the number in the input that was submitted. */
static uint32_t key_of(const struct subject *t)
{
    unsigned n = 0;
    int count = sscanf(t->input.ptr, "{\"n\":%u", &n); /* NOLINT(cert-err34-c): drawn in people.c */

    ASSERT(count == 1);
    return n % t->flow->lock_keys;
}

static bool same_lock(const struct subject *a, const struct subject *b)
{
    return a->flow->lock_keys > 0 && b->flow->lock_keys > 0
           && (a->flow == b->flow || (a->flow->lock_shared && b->flow->lock_shared))
           && key_of(a) == key_of(b);
}

static bool has_begun(const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++) {
        const struct seen_step *st = &s->steps[i];
        if (st->attempt_count > 0 || st->dropped_count > 0 || st->begun_at != 0)
            return true;
    }
    return false;
}

/* Between its first step and its end. */
static bool is_at_work(const struct seen *s)
{
    bool ended = s->state == TASK_PROCESSED || s->state == TASK_COMPENSATED;

    return s->revision != 0 && has_begun(s) && !ended && s->closed_at == 0;
}

/* Counts only tasks whose workflows allow no more: a task that takes a lock goes by the limit of
 * its own workflow, so there may be more tasks of those that allow more. */
static uint32_t count_at_work(const struct subject *of)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        count +=
            is_at_work(&t->seen) && same_lock(of, t) && t->flow->lock_max <= of->flow->lock_max;
    }
    return count;
}

static uint32_t count_holders(const struct subject *of)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < subjects.count; i++)
        count += subjects.list[i].seen.lock_since != 0 && same_lock(of, &subjects.list[i]);
    return count;
}

static bool took_now(const struct subject *t)
{
    for (uint32_t i = 0; i < taker_count; i++)
        if (takers[i] == t)
            return true;
    return false;
}

static uint32_t count_before(const struct subject *of)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        count += t->seen.lock_since != 0 && same_lock(of, t) && !took_now(t);
    }
    return count;
}

/* In whatever order the batch had them. */
static uint32_t count_takers(const struct subject *of)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < taker_count; i++)
        count += same_lock(of, takers[i]) && takers[i]->flow->lock_max <= of->flow->lock_max;
    return count;
}

bool lock_was_replaced(const struct seen *s)
{
    return s->cause.code == seen_hash(SLICE("replaced"));
}

/* Whether it has the same workflow and key, and was submitted later. */
static bool is_newer(const struct subject *a, const struct subject *than)
{
    return a != than && a->flow == than->flow && a->seen.revision != 0
           && a->made_at >= than->made_at && same_lock(a, than);
}

static void check_replaced(const struct subject *t, const struct seen *old)
{
    bool newer = false;

    covered(COVER_LOCK_REPLACED);
    for (uint32_t i = 0; i < subjects.count; i++)
        newer |= is_newer(&subjects.list[i], t);
    must(t, t->flow->lock_replaces && newer, "a task is replaced by a newer one");
    must(t, !has_begun(&t->seen) && old->lock_since == 0, "who has begun is not replaced");
}

void check_locks(const struct subject *t, const struct seen *old)
{
    const struct seen *new = &t->seen;
    bool queues = strncmp(new->waiting_for, "@lock/", 6) == 0;

    if (t->flow->lock_keys == 0) {
        must(t, new->lock_since == 0 && !queues, "who needs no lock has none");
        return;
    }
    must(t, !queues || new->lock_since == 0, "who holds a lock does not wait for it");
    must(t, !queues || new->paused_at == 0, "who is paused does not wait for a lock");
    must(t, !queues || !t->flow->lock_refuses, "who does not wait is in no queue");
    must(t, !is_at_work(new) || new->lock_since != 0, "who is at work holds its lock");
    if (queues)
        covered(COVER_LOCK_QUEUE);
    if (lock_was_replaced(new) && !lock_was_replaced(old))
        check_replaced(t, old);
    if (new->lock_since != 0 && old->lock_since == 0)
        takers[taker_count++] = t;
    if (new->state == TASK_ERROR &&new->lock_since != 0)
        covered(COVER_LOCK_IN_ERROR);
    if (new->lock_since != 0 && old->lock_since == 0)
        covered(t->flow->lock_shared ? COVER_LOCK_SHARED : COVER_LOCK_TAKEN);
    moved |= (new->lock_since != 0 && old->lock_since == 0) || is_at_work(new) != is_at_work(old);
}

void check_locks_batch(void)
{
    for (uint32_t i = 0; moved && i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        if (t->seen.lock_since != 0 && took_now(t))
            must(t, count_before(t) + count_takers(t) <= t->flow->lock_max,
                 "no lock has more holders than it lets");
        if (t->flow->lock_keys > 0 && is_at_work(&t->seen))
            must(t, count_at_work(t) <= t->flow->lock_max, "no more tasks of a key are at work");
    }
    moved = false;
    taker_count = 0;
}

/* Has nothing happened to the tasks of this lock for a while? */
static bool is_settled(const struct subject *of)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].changed_at + SETTLES_MS > world.now
            && same_lock(of, &subjects.list[i]))
            return false;
    return true;
}

static bool waits(const struct subject *t)
{
    return t->flow->lock_keys > 0 && t->seen.revision != 0 && t->seen.state == TASK_PENDING
           && t->seen.lock_since == 0 && t->seen.paused_at == 0;
}

/* Does one that is before it, or may be, find no room? Then nobody passes it. */
static bool is_held_up(const struct subject *t)
{
    uint32_t holders = count_holders(t);

    if (holders >= t->flow->lock_max)
        return true;
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *o = &subjects.list[i];
        bool before = o->made_at <= t->made_at || o->priority != t->priority;
        if (o != t && waits(o) && before && same_lock(t, o) && holders >= o->flow->lock_max
            && strncmp(o->seen.waiting_for, "@lock/", 6) == 0) {
            covered(COVER_LOCK_BLOCKED);
            return true;
        }
    }
    return false;
}

/* Two of those of which the newest stays. What an operator supplied may keep one from being undone.
 */
static bool waits_beside(const struct subject *t, const struct subject *newer)
{
    return t->flow->lock_replaces && is_newer(newer, t) && waits(newer) && !t->verbs
           && t->seen.direction == DIRECTION_FORWARD && newer->seen.direction == DIRECTION_FORWARD
           && t->made_at < newer->made_at && !newer->seen.requested
           && newer->seen.not_before + SETTLES_MS <= store_now();
}

void check_locks_idle(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        bool served = false;
        if (!waits(t) || t->seen.requested || t->seen.not_before + SETTLES_MS > store_now()
            || !is_settled(t))
            continue;
        NODES_FOREACH (n)
            served |= node_schedules(n) && node_knows(n, t->flow);
        covered(COVER_LOCK_LOOKED);
        must(t, !served || is_held_up(t), "nobody waits for a lock while there is room");
        for (uint32_t k = 0; served && k < subjects.count; k++)
            must(t, !waits_beside(t, &subjects.list[k]), "of those that wait the newest stays");
    }
}

bool lock_holds_up(const struct subject *t)
{
    uint32_t stopped = 0;
    uint32_t max = t->flow->lock_max;

    if (!waits(t))
        return false;
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *o = &subjects.list[i];
        if (!same_lock(t, o))
            continue;
        stopped += o->seen.state == TASK_ERROR && o->seen.lock_since != 0;
        if (waits(o) && o->flow->lock_max < max)
            max = o->flow->lock_max; /* it may be before this one */
    }
    return stopped >= max;
}
