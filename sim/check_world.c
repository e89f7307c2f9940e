/* Checks effects in the world, and what the end of a task, or of the run, means: what took effect
 * and was not undone, and that everything has ended. ledger.c and check_row.c call it. check.h
 * lists all checkers. */

#include <stdio.h>

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/notices.h"
#include "sim/operations.h"
#include "sim/people.h"
#include "sim/receivers.h"
#include "sim/schedules.h"
#include "sim/sql.h"
#include "sim/world.h"

enum { SETTLED_MS = 60000 };

static void must(const struct subject *t, uint32_t step, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s/%s", t->id, unit_name(step));
}

/* ---- effects ---- */

/* A step of on_undo must find everything undone. */
static void check_told_of_undo(const struct subject *t, uint32_t step)
{
    must(t, step, t->seen.direction == DIRECTION_UNDO, "nothing is told of an undo before it");
    for (uint32_t p = 0; p < t->flow->step_count; p++)
        if (t->flow->steps[p].undo == UNDO_CALL)
            must(t, p, !step_stands(t, p) || seen_undone_by_hand(&t->seen.steps[p]),
                 "what is told to be undone is undone");
}

/* An operator said that it did not take effect, without a look, so all before it may be undone. */
static bool is_denied(struct subject *t, uint32_t unit)
{
    return unit_is_item(unit) && life_of(t, unit)->rash;
}

/* Before a forward effect: its step is on record, its predecessors are done and not undone. */
void check_effect(struct subject *t, uint32_t unit)
{
    uint32_t step = step_of_unit(unit);
    const struct flow_step *f = &t->flow->steps[step];

    must(t, unit, seen_asked(seen_unit(t, unit)), "nothing happens that is not on record");
    must(t, unit, ledger_of(t, unit)->effects == 0, "an effect takes place once");
    must(t, unit, !ledger_of(t, unit)->undo_said, "nothing takes effect after its undo");
    if (f->on_undo)
        check_told_of_undo(t, step);
    if (f->undo == UNDO_NONE || seen_undone_by_hand(seen_unit(t, unit)) || is_denied(t, unit))
        return; /* nothing depends on it any more */
    uint32_t past = seen_past(t->flow, &t->seen, step);
    for (uint32_t p = 0; p < t->flow->step_count; p++) {
        if (!(past & BIT(p)))
            continue;
        const struct seen_step *s = &t->seen.steps[p];
        if (t->seen.direction == DIRECTION_FORWARD)
            must(t, p, seen_passed(&t->flow->steps[p], s), "effects follow the graph");
        must(t, p, t->ledger[p].undone_at == 0 || seen_undone_by_hand(s),
             "nothing happens on ground that is gone");
        if (s->state == STEP_COMPLETED && !s->supplied && !t->flow->steps[p].is_wait)
            must(t, p, t->ledger[p].happened_at != 0, "what is completed has happened");
    }
}

void check_undo_effect(struct subject *t, uint32_t unit)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(unit)];

    must(t, unit, t->seen.direction == DIRECTION_UNDO, "nothing is undone going forward");
    must(t, unit, ledger_of(t, unit)->undos == 0, "an effect is undone once");
    if (unit_is_item(unit))
        check_item_undo_effect(t, unit);
    for (uint32_t q = 0; q < t->flow->step_count; q++) {
        const struct flow_step *g = &t->flow->steps[q];
        bool stands = step_stands(t, q);
        if (f->future & BIT(q) && g->is_child)
            must(t, q, check_children_gone(t, q), "a child is undone before what it relied on");
        if (f->future & BIT(q) && g->undo == UNDO_CALL)
            must(t, q, !stands || seen_undone_by_hand(&t->seen.steps[q]),
                 "effects are undone in reverse order");
        if (g->undo == UNDO_PIVOT)
            must(t, q, !stands, "nothing is undone behind a pivot");
    }
}

/* From then on the effect counts as undone, whatever the agent's record says. */
void check_undo_said(struct subject *t, uint32_t step, enum direction d)
{
    struct ledger *l = ledger_of(t, step);

    if (d != DIRECTION_UNDO)
        return;
    must(t, step, l->effects == l->undos, "an undo that is done leaves nothing behind");
    l->undo_said = true;
}

/* ---- turns and ends ---- */

static void check_pivot_item(const struct item_life *l, void *arg)
{
    check_pivot_child(arg, l->unit);
}

void check_turn_back(const struct subject *t, const struct seen *new)
{
    must(t, 0,
         t->verbs || t->cancel || new->complete_by != 0 || new->failure_count > 0
             || lock_was_replaced(new),
         "a task turns back for a reason");
    for (uint32_t i = 0; i < new->step_count; i++) {
        const struct seen_step *s = &new->steps[i];
        if (seen_open(s))
            covered(COVER_BRANCH_RUNNING);
        if (t->flow->steps[i].undo != UNDO_PIVOT)
            continue;
        if (flow_has_one_child(&t->flow->steps[i]))
            check_pivot_child(t, i);
        else if (t->flow->steps[i].is_child)
            lives_walk(t, i, check_pivot_item, (void *)(uintptr_t)t);
        must(t, i, !seen_open(s) && !seen_happened(s) && !seen_in_doubt(s),
             "a task does not turn back while a pivot stands, or may");
        must(t, i, !step_ever_happened(t, i), "a task does not turn back behind its pivot");
    }
}

/* Did its pivot take effect, by the record or in the world? */
bool pivot_holds(const struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (t->flow->steps[i].undo == UNDO_PIVOT
            && (seen_happened(&t->seen.steps[i]) || step_ever_happened(t, i)
                || t->seen.steps[i].child.state == CHILD_STANDS
                || t->seen.steps[i].children_standing > 0))
            return true;
    return false;
}

void check_end_of(const struct subject *t)
{
    must(t, 0, !t->cancelled || t->verbs || t->seen.state == TASK_COMPENSATED || pivot_holds(t),
         "cancelled: the task is undone, but for what its pivot made final");
    check_family_end(t);
    for (uint32_t i = 0; i < t->seen.step_count; i++) {
        const struct flow_step *f = &t->flow->steps[i];
        const struct seen_step *s = &t->seen.steps[i];
        const struct ledger *l = &t->ledger[i];
        if (f->is_each)
            check_items_end(t, i);
        if (f->on_undo && t->seen.state == TASK_PROCESSED) {
            must(t, i, l->happened_at == 0, "processed: nothing was told of an undo");
        } else if (f->on_undo) {
            must(t, i, seen_passed(f, s), "compensated: what runs on undo has ended");
            must(t, i, s->state != STEP_COMPLETED || s->supplied || ledger_stands(l),
                 "compensated: what was told was told");
        } else if (t->seen.state == TASK_PROCESSED) {
            must(t, i, seen_passed(f, s), "processed: every step has ended");
            must(t, i, s->state != STEP_COMPLETED || s->supplied || f->is_wait || ledger_stands(l),
                 "processed: every step took effect");
        } else if (f->undo == UNDO_CALL) {
            must(t, i, !ledger_stands(l) || seen_undone_by_hand(s),
                 "compensated: every effect was undone");
        } else if (f->undo == UNDO_PIVOT) {
            must(t, i, l->happened_at == 0, "compensated: no pivot took effect");
        }
    }
}

/* ---- the final check ---- */

bool world_is_done(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        if (t->seen.revision == 0 ? t->accepted : !(seen_is_end(&t->seen) || lock_holds_up(t)))
            return false;
    }
    return nodes_are_well() && people_are_content() && operations_are_over() && sql_is_content()
           && sql_signals_are_decided() && receivers_are_content() && schedules_are_over();
}

static void looks_around(void *arg, uint64_t n)
{
    check_owned();
    check_idle();
    check_families();
    if (world.calm) {
        people_look();
        check_overdue();
    }
    later(1000, looks_around, arg, n);
}

void check_regularly(void)
{
    check_idle_begin();
    later(0, looks_around, NULL, 0);
}

static bool nothing_changed_for(int64_t ms)
{
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].changed_at + ms > world.now)
            return false;
    return true;
}

void world_runs_out(int64_t end, int64_t after_ms)
{
    do {
        while (!world_is_done() && world_step(end))
            ;
        int64_t after = world.now + after_ms;
        while (world_step(after))
            ;
    } while (!(world_is_done() && people_are_silent() && nothing_changed_for(SETTLED_MS))
             && world.now < end);
}

/* The pace of operations depends on the number of waiting bulk tasks: one too many for ever would
 * stop them. */
void check_bulk(const struct node *n)
{
    const struct dispatch *d = scheduler_dispatch(n->scheduler);
    const struct agent *a = NULL;
    struct scheduler_stats stats;
    size_t sum = 0;

    scheduler_stats(n->scheduler, &stats);
    for (size_t i = 0; (a = map_next(&d->agents, &i));) {
        if (a->bulk > a->waiting)
            broken("who was asked in bulk and waits is one of those who wait", "%s: %.*s", n->me,
                   SLICE_ARG(a->name));
        sum += a->bulk;
    }
    if (sum != stats.bulk_waiting)
        broken("who was asked in bulk and waits is counted", "%s: %zu, and %zu wait", n->me,
               stats.bulk_waiting, sum);
}

static void check_memory(struct node *n)
{
    struct scheduler_stats stats;

    node_turn(n); /* it may have received something without acting on it */
    scheduler_stats(n->scheduler, &stats);
    if (stats.live != 0 || stats.open_attempts != 0 || stats.waiting != 0)
        broken("memory returns to nothing", "%s: %zu tasks, %zu attempts, %zu wants", n->me,
               stats.live, stats.open_attempts, stats.waiting);
    check_bulk(n);
    if (stats.parked != wire_parked(n))
        broken("every parked call is known", "%s: %zu, and there are %u", n->me, stats.parked,
               wire_parked(n));
}

/* Nothing accepted is lost; ends are as true at the end as when they were reached; the nodes'
 * memory is empty. */
void check_world_end(void)
{
    check_operations_end();
    check_all_received();
    check_sql_end();
    check_sql_signals_end();
    check_families_end();
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        must(t, 0, !t->accepted || t->seen.revision != 0, "nothing accepted is lost");
        must(t, 0, t->seen.revision == 0 || seen_is_end(&t->seen) || lock_holds_up(t),
             "everything ends in bounded time");
        if (t->seen.state == TASK_PROCESSED || t->seen.state == TASK_COMPENSATED)
            check_end_of(t);
    }
    check_items_at_rest();
    check_all_told();
    NODES_FOREACH (n)
        if (node_is_up(n))
            check_memory(n);
}

/* Such a task may be in the store only. */
static bool any_elsewhere(const struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++) {
        const struct seen_attempt *open = seen_open(&t->seen.steps[i]);
        if (items_elsewhere(t, i) || (open && open->elsewhere))
            return true;
    }
    return false;
}

static void check_owned_by(const struct node *n)
{
    enum { QUIET_MS = 2000 };
    struct scheduler_stats stats;
    size_t owned = 0;

    if (!node_is_awake(n) || !disk_is_idle(&n->disk) || nodes_quiet_since() + QUIET_MS > world.now)
        return;
    for (uint32_t i = 0; i < subjects.count; i++)
        owned += node_owns(n, subjects.list[i].seen.owner) && !any_elsewhere(&subjects.list[i]);
    scheduler_stats(n->scheduler, &stats);
    if (stats.live < owned)
        broken("what a node owns it also knows", "%s: %zu tasks of %zu", n->me, stats.live, owned);
}

void check_owned(void)
{
    NODES_FOREACH (n)
        check_owned_by(n);
}

void check_drained(const struct node *n)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        bool open = false;
        for (uint32_t k = 0; k < t->seen.step_count; k++)
            open |= seen_open(&t->seen.steps[k]) || items_open(t, k) > 0;
        must(t, 0, !node_owns(n, t->seen.owner) || open,
             "a drained node holds nothing that does not run");
    }
}

/* ---- the story ---- */

static void describe_attempts(const struct seen_step *s)
{
    for (uint32_t k = 0; k < s->attempt_count; k++) {
        const struct seen_attempt *a = &s->attempts[k];
        fprintf(stderr,
                "    %s %u %s %s by %s from %" PRId64 " to %" PRId64 ", complete by %" PRId64 "\n",
                direction_text(a->direction), a->number, outcome_text(a->outcome),
                effect_text(a->effect), a->instance, a->started_at, a->ended_at, a->complete_by);
    }
}

static void describe_step(const struct subject *t, uint32_t i)
{
    const struct seen_step *s = &t->seen.steps[i];
    const struct flow_step *f = &t->flow->steps[i];
    const struct ledger *l = &t->ledger[i];

    fprintf(stderr,
            "  s%u after %02x %s %s%s, failures %u, wait until %" PRId64
            "; world: happened %" PRId64 ", undone %" PRId64 "%s%s\n",
            i, f->past,
            f->undo == UNDO_CALL    ? "call"
            : f->undo == UNDO_NONE  ? "none"
            : f->undo == UNDO_CHILD ? "child"
                                    : "pivot",
            step_state_text(s->state), s->direction == DIRECTION_UNDO ? " (undo)" : "",
            s->failure_count, s->wait_until, l->happened_at, l->undone_at,
            l->tombstone ? ", tombstone" : "", t->skipped[i] ? ", skip wanted" : "");
    describe_attempts(s);
}

static void describe_items(const struct subject *t, uint32_t i)
{
    const struct seen_items *n = t->items[i];

    if (!n)
        return;
    fprintf(
        stderr,
        "    list %u of %u: begun %u, completed %u, failed %u, skipped %u, undone %u; effects %u, "
        "doubts %u, to undo %u below %u\n",
        n->list, n->count, n->begun, n->completed, n->failed, n->skipped, n->undone, n->effects,
        n->doubts, n->to_undo, n->undo_below);
    for (uint32_t k = 0; k < n->work_count; k++) {
        fprintf(stderr, "   s%u.%u%s %s\n", i, n->work[k].item, n->work[k].back ? " back" : "",
                step_state_text(n->work[k].step.state));
        describe_attempts(&n->work[k].step);
    }
}

void describe(const struct subject *t)
{
    const struct seen *s = &t->seen;

    fprintf(stderr,
            "%s of %s: revision %" PRIu64 ", %s, %s, stop %s, %s%s, now %" PRId64
            ", wake at %" PRId64 ", complete by %" PRId64 " and %" PRId64 "\n",
            t->id, t->flow->name, s->revision, task_state_text(s->state),
            direction_text(s->direction), stop_text(s->stop), s->locked ? s->owner : "not locked",
            s->requested ? ", requested" : "", store_now(), s->wake_at, s->complete_by,
            s->undo_complete_by);
    for (uint32_t i = 0; i < s->step_count; i++) {
        describe_step(t, i);
        describe_items(t, i);
    }
}
