/* Checks that nothing is given up before its time, and that nothing overdue stays, with the grace
 * that lost time requires. check_row.c calls it; check_clocks.c checks the alarm and the clocks
 * of a row. check.h lists all checkers. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/world.h"

/* A scan each second, time for the store, and time to carry the request out. */
enum { INTERVAL_MS = 1000, SLACK_MS = 4000, REMINDER_MS = 10000, LEASE_MS = 3000 };

/* What a task has left if its time was over when it was paused, and nobody had acted on that. */
enum { PAUSE_GRACE_MS = 10000 };

int64_t latest_now(void)
{
    return store_now() + nodes.skew_max;
}

/* Until when something that began at `from`, in the world at `began_at`, with that deadline must be
 * left alone because of lost time. */
static int64_t grace_until(int64_t from, int64_t began_at, int64_t deadline)
{
    int64_t until = deadline;

    for (uint32_t i = 0; i < nodes.lost_count; i++) {
        const struct lost_period *p = &nodes.lost[i];
        if (began_at < p->ended_at && from + 2 * nodes.skew_max < p->until
            && p->from + 2 * nodes.skew_max <= deadline && deadline < p->until + GRACE_MS)
            until = max_i64(until, p->until + GRACE_MS);
    }
    return until;
}

void check_timeout(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    if (t->unsent[step][a->direction] == a->number && t->unsent_by == t->writer && a->resent == 0) {
        describe(t);
        broken("what was not sent cannot time out", "%s/s%u", t->id, step);
    }
    int64_t until = grace_until(a->started_at, t->began_at[step], a->complete_by);
    covered(COVER_TIMED_OUT);
    if (until > a->complete_by)
        covered(COVER_GRACE);
    if (world.set_back && t->requested_before) /* decided on the clock's earlier time */
        until = a->complete_by;
    if (a->ended_at >= (until > a->complete_by ? until - 2 * nodes.skew_max : until))
        return;
    describe(t);
    broken("no attempt is given up before its complete-by, or grace",
           "%s %s attempt %u: %" PRId64 " ms too early", t->id, direction_text(a->direction),
           a->number, until - a->ended_at);
}

/* No attempt may be ended for silence if it was heard, or in time without contact. */
void check_silence(const struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    enum { NOTICED_MS = 3000, JUMP_MS = 3000 };
    const struct flow_step *f = &t->flow->steps[step];
    bool undo = a->direction == DIRECTION_UNDO;
    int64_t ms = undo ? f->undo_heartbeat_ms : f->heartbeat_ms;
    const struct node *n = t->writer;
    const struct beaten *b = &t->beaten[step][a->direction][n->slot];
    bool slept = n->sleeps_until - n->asleep_at > NOTICED_MS + 1000;
    int64_t away = max_i64(n->up_at, slept ? n->sleeps_until : 0);
    int64_t jump = nodes.shared || world.set_back || world.ahead ? JUMP_MS : 0;
    bool left = t->sent[step][a->direction] == a->number;
    int64_t began = max_i64(t->began_at[step], left ? t->sent_at[step][a->direction] : 0);
    int64_t ended = a->ended_at - (node_now(n) - world.now); /* it may be stored much later */
    bool beaten = b->attempt == a->number && b->boot == n->boot;
    int64_t heard = max_i64(began, beaten ? b->when - (node_now(n) - world.now) : 0);
    /* detected before the node was suspended, decided after */
    bool before = slept && away == n->sleeps_until && heard + ms < n->asleep_at;
    const char *wrong = NULL;

    covered(COVER_SILENT);
    if (ms == 0 || a->ended_at < a->started_at + ms)
        wrong = "it was not silent for so long";
    else if (a->elsewhere)
        wrong = "it is elsewhere";
    else if (beaten && b->when <= a->ended_at && b->when + ms > a->ended_at)
        wrong = "it was heard";
    else if (!before && began < away && ended >= away
             && ended < away + max_i64(ms, GRACE_MS) - jump)
        wrong = "nobody could be heard";
    else if (t->unsent[step][a->direction] == a->number && t->unsent_by == n && a->resent == 0)
        wrong = "it was not sent";
    if (!wrong)
        return;
    describe(t);
    broken("no attempt ends by its silence before its time", "%s/s%u %s %u: %s", t->id, step,
           direction_text(a->direction), a->number, wrong);
}

/* The longest time that a task can have after its pause: what it had left. One change may hold
 * several pauses, and that time may be over when the second one begins. */
static int64_t left_after_pause(const struct subject *t, int64_t left)
{
    if (!check_paused_again(t))
        return left;
    covered(COVER_PAUSED_AGAIN);
    return max_i64(left, PAUSE_GRACE_MS);
}

/* A pause stops its clocks; afterwards the task has the time that was left. */
static void check_clocks(const struct subject *t, const struct seen *old, const struct seen *new)
{
    bool undo = new->direction == DIRECTION_UNDO;
    int64_t was = undo ? old->undo_complete_by : old->complete_by;
    int64_t is = undo ? new->undo_complete_by : new->complete_by;
    const char *wrong = NULL;

    if (old->paused_at == 0)
        return;
    if (new->paused_at == old->paused_at &&new->deadline_passed
        && !old->deadline_passed &&new->direction == old->direction)
        wrong = "its complete-by passed while it was paused";
    if (new->paused_at == 0 && !seen_is_end(new) && new->direction == old->direction
        && !old->deadline_passed && !new->deadline_passed && was > old->paused_at) {
        covered(COVER_PAUSE_OVER);
        int64_t left = left_after_pause(t, was - old->paused_at);
        if (is < was || is > max_i64(was, latest_now() + left))
            wrong = "it has another time than it had";
    }
    if (!wrong)
        return;
    describe(t);
    broken("pauses do not count", "%s: %s: %" PRId64 " then %" PRId64, t->id, wrong, was, is);
}

void check_deadline(const struct subject *t, const struct seen *old, const struct seen *new)
{
    bool undo = new->direction == DIRECTION_UNDO;
    int64_t at = undo ? new->undo_complete_by : new->complete_by;

    if (undo && new->complete_by != 0 && new->complete_by <= store_now() && new->wake_at != 0)
        covered(COVER_DEADLINE_IN_UNDO);
    check_clocks(t, old, new);
    if (old->deadline_passed || !new->deadline_passed)
        return;
    covered(undo ? COVER_UNDO_DEADLINE : COVER_DEADLINE);
    if (!undo) /* the undo began no later than now, so its grace time is up to the node */
        at = t->verbs || world.set_back
                 ? at
                 : grace_until(max_i64(new->submitted_at, new->not_before), t->made_at, at);
    if (at != 0 ? latest_now() >= at - nodes.skew_max : t->verbs) /* an operator's retry lifts it */
        return;
    describe(t);
    broken("no task is given up before its complete-by, or grace", "%s: %" PRId64 " ms too early",
           t->id, at - store_now());
}

static bool all_due(const struct seen *s, bool *ret_any)
{
    for (uint32_t i = 0; i < s->step_count; i++) {
        const struct seen_attempt *a = seen_open(&s->steps[i]);
        *ret_any |= a != NULL;
        if (a && a->complete_by > store_now())
            return false;
    }
    return true;
}

/* The alerts that the node still had to report died with it. */
void check_boot(const struct node *n)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        struct subject *t = &subjects.list[i];
        bool any = false;
        if (t->alert_by == n) {
            if (t->alert_due)
                covered(COVER_ALERT_LOST);
            t->alert_due = 0;
        }
        if (t->unsent_by == n)
            memset(t->unsent, 0, sizeof t->unsent);
        if (t->tell_by == n) /* another name may reach the same boot number */
            t->tell_by = NULL;
        if (t->seen.revision && all_due(&t->seen, &any) && any)
            covered(COVER_LONG_OUTAGE);
    }
}

static void late(const struct subject *t, const char *what, int64_t due)
{
    int64_t quiet = max_i64(world.calm_at, nodes_quiet_since());
    if (world.set_back) /* the row's alarm is set back only when the row is written again */
        due = max_i64(due, max_i64(t->seen.wake_at, t->changed_at + world.ahead));
    /* Time to lead and to own its tasks; a lease may be from a clock that was ahead. */
    int64_t elected = nodes.shared ? 2 * LEASE_MS + 2 * nodes.skew_max : 0;
    int64_t since = max_i64(due - world.ahead, quiet + elected + GRACE_MS + REMINDER_MS);

    if (world.now <= since + INTERVAL_MS + SLACK_MS)
        return;
    describe(t);
    broken("what is overdue is acted on", "%s: %s since %" PRId64 " ms", t->id, what,
           world.now - since);
}

static void late_items(const struct subject *t, uint32_t step)
{
    const struct seen_items *in = t->items[step];

    for (uint32_t i = 0; in && i < in->work_count; i++)
        if (seen_open(&in->work[i].step))
            late(t, "an attempt of an item", seen_open(&in->work[i].step)->complete_by);
}

void check_overdue(void)
{
    if (!nodes_are_well())
        return;
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        const struct seen *s = &t->seen;
        if (s->revision == 0 || seen_is_end(s))
            continue;
        for (uint32_t k = 0; k < s->step_count; k++)
            late_items(t, k);
        for (uint32_t k = 0; k < s->step_count; k++)
            if (seen_open(&s->steps[k]))
                late(t, "an attempt", seen_open(&s->steps[k])->complete_by);
        int64_t at = s->direction == DIRECTION_UNDO ? s->undo_complete_by : s->complete_by;
        if (at != 0 && !s->deadline_passed && s->paused_at == 0
            && (s->locked || !nodes_are_narrow()))
            late(t, "the task", at);
    }
}
