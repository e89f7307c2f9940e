/* Checks that a node reports each change that it made as it became durable, and that heartbeats
 * change nothing. check.h lists all checkers. */

#include "dispatch/token.h"
#include "node/task_json.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/items.h"
#include "sim/world.h"
#include "store/codec/codec.h"

static void must(const struct subject *t, bool ok, const char *rule, const char *what)
{
    if (ok)
        return;
    if (t)
        describe(t);
    broken(rule, "%s: %s", t ? t->id : "?", what);
}

/* ---- ends ---- */

bool check_is_awaited(void *arg, struct slice id)
{
    (void)arg;
    (void)id;
    return true;
}

/* What clients get who wait for it: the same as from the row, unless that has changed again. */
void check_shown(const struct node *n, const struct task_end *end)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf shown = {0};
    CLEANUP(buf_fini) struct buf stored = {0};
    struct subject *t = subject_find(end->task->id);
    const struct audit_query q = {.task = end->task->id, .limit = TASK_OPERATIONS_MAX};
    struct audit_page operations = {0};
    struct pulses pulses = {0};
    struct task_row row = {0};
    struct task task;
    struct error e = {0};

    check_ended(n, end->task->id, end->task->state);
    if (!end->row)
        return;
    if (inner->ops->get(inner, end->task->id, &a, &row, &e) != ERR_OK
        || row.revision != end->row->revision)
        return;
    must(t, task_decode(end->workflow, &row, &a, &task, &e) == ERR_OK, "a row can be read", e.text);
    enum err err = inner->ops->audit_list(inner, &q, &a, &operations, &e);
    ASSERT(err == ERR_OK);
    scheduler_pulses(n->scheduler, end->task->id, &a, &pulses);
    render_task(&shown, &pulses, end->workflow, end->task, end->row, end->operations);
    render_task(&stored, &pulses, end->workflow, &task, &row, &operations);
    if (!slice_eq(buf_view(&shown), buf_view(&stored)))
        remark("shown: %.*s, stored: %.*s", SLICE_ARG(buf_view(&shown)),
               SLICE_ARG(buf_view(&stored)));
    must(t, slice_eq(buf_view(&shown), buf_view(&stored)), "an end is shown as it was stored",
         "its record");
    covered(end->operations->count > 0 ? COVER_SHOWN_AUDIT : COVER_SHOWN);
}

/* ---- changes ---- */

void check_changed(const struct node *n, const struct task *told)
{
    struct subject *t = subject_find(told->id);
    struct told_to *by = &t->told[n->slot];

    if (by->boot != n->boot) /* another process: it does not know its predecessor's reports */
        *by = (struct told_to){.boot = n->boot};
    remark("%s tells: %s r%" PRIu64 " %s", n->me, t->id, told->revision,
           task_state_text(told->state));
    must(t, told->revision <= t->seen.revision, "what is told has become durable", "a change");
    /* After a commit of unknown outcome it may repeat a report: also one that was part of a commit
     * with a claim whose rows could then not be read. */
    must(t,
         told->revision > by->revision
             || (told->revision == by->revision && n->disk.trouble_at >= by->at),
         "what a node tells of a task goes forward", "revision");
    by->revision = told->revision;
    by->at = t->changed_at;
    if (told->revision != t->seen.revision)
        return; /* the row has changed again */
    must(t, told->state == t->seen.state, "what is told is as it was stored", "state");
    must(t, told->direction == t->seen.direction, "what is told is as it was stored", "direction");
    must(t, told->failure_count == t->seen.failure_count, "what is told is as it was stored",
         "failures");
    t->tell_by = NULL;
}

void check_tell(const struct node *n, struct subject *t)
{
    t->tell_by = n;
    t->tell_boot = n->boot;
    t->tell_due = n->disk.runs;
}

/* After a conflict the row is read first, and before that perhaps a definition that another node
 * stored: further runs of the disk. */
void check_change_told(const struct node *n, const struct subject *t, uint64_t done)
{
    /* Six of the scheduler's; the courier reads and settles between any two of them, so three times
     * as many, and two of its own before. */
    enum { RUNS = 20 };

    must(t,
         t->tell_by != n || t->tell_boot != n->boot || t->tell_due + RUNS > done
             || n->disk.trouble_at >= t->changed_at,
         "who changes a task tells of it", "nobody was told");
}

void check_all_told(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        const struct node *n = t->tell_by;
        must(t, !n || !n->used || !n->up || n->boot != t->tell_boot,
             "the last state that is told is the one that is stored", "nobody was told");
    }
}

/* ---- heartbeats ---- */

static struct scheduler_stats before;

void check_before_beat(const struct node *n)
{
    scheduler_stats(n->scheduler, &before);
}

/* Nothing is stored, decided or started. */
static void check_untouched(const struct node *n)
{
    struct scheduler_stats after;

    scheduler_stats(n->scheduler, &after);
    if (after.live != before.live || after.open_attempts != before.open_attempts
        || after.waiting != before.waiting || after.parked != before.parked
        || after.changes != before.changes || after.batches != before.batches
        || after.claims != before.claims)
        broken("a heartbeat changes nothing", "%s", n->me);
}

static bool is_forged(const struct heartbeats *call, const struct heartbeat *b)
{
    struct token k;

    return !token_check(nodes.key, b->token, call->agent_name, &k);
}

/* Has the node the results of all changes of the row, and made the last one? */
static bool knows_row(const struct node *n, const struct subject *t)
{
    return t->writer == n && t->heard && !disk_has_unheard(&n->disk) && disk_is_idle(&n->disk);
}

/* Also of an item. */
static const struct seen_step *step_of(const struct subject *t, const struct token *k)
{
    return seen_unit(t,
                     k->item.any ? unit_of(k->step, k->item.generation, k->item.number) : k->step);
}

static void check_beat_status(const struct node *n, const struct heartbeats *call,
                              const struct heartbeat *b)
{
    struct token k;
    bool ok = token_parse(b->token, &k);
    ASSERT(ok);
    const struct subject *t = subject_find(k.task);
    const struct seen_attempt *a =
        k.step < t->seen.step_count ? seen_find(step_of(t, &k), k.direction, k.attempt) : NULL;
    bool open = a && a->outcome == OUTCOME_OPEN && !a->elsewhere;

    switch (b->status) {
    case BEAT_ACCEPTED:
        covered(COVER_BEAT);
        must(t, a, "only what is on record has a heartbeat", "no such attempt");
        must(t, slice_is(call->instance_name, a->instance),
             "only the instance on record has a heartbeat", a->instance);
        must(t, open || !knows_row(n, t), "only the current attempt has a heartbeat",
             outcome_text(a->outcome));
        return;
    case BEAT_LATE:
        covered(COVER_LATE_BEAT);
        /* What the supervisor gave up has ended once anybody claims the task. */
        must(t, !open || t->seen.requested || !knows_row(n, t), "only what is over is late",
             "it is open");
        return;
    case BEAT_UNKNOWN:
        /* It may not have the task, or not yet; but it knows what it has. */
        must(t,
             !open || nodes.shared || !slice_is(call->instance_name, a->instance)
                 || !knows_row(n, t) || nodes_quiet_since() + 5000 > world.now
                 || n->disk.trouble_at + 5000 > world.now || t->changed_at + 1000 > world.now,
             "the heartbeat of the current attempt is known", "unknown");
        return;
    case BEAT_STATUS_COUNT:
        break;
    }
    UNREACHABLE();
}

/* A stop only goes to tasks that turn back, or will. */
static void check_beat_stop(const struct node *n, const struct heartbeats *call, struct slice token)
{
    struct token k;

    if (!token_check(nodes.key, token, call->agent_name, &k))
        broken("what is to be stopped was asked of that agent", "%s", n->me);
    const struct subject *t = subject_find(k.task);
    const struct seen_attempt *a = seen_find(step_of(t, &k), k.direction, k.attempt);
    covered(COVER_BEAT_STOP);
    must(t, a && slice_is(call->instance_name, a->instance),
         "what is to be stopped was asked of that instance", "stop");
    must(t, k.direction == DIRECTION_FORWARD && !t->flow->steps[k.step].on_undo,
         "no compensation is stopped, nor what comes after", "stop");
    must(t, !a->elsewhere || !knows_row(n, t), "what is elsewhere is not told to stop", "stop");
    must(t, t->seen.direction == DIRECTION_UNDO || t->seen.stop == STOP_UNDO,
         "only what is to be undone is stopped", "stop");
}

void check_beat(const struct node *n, const struct heartbeats *call, const struct heartbeat *b)
{
    check_untouched(n);
    if (is_forged(call, b)) {
        if (b->status != BEAT_UNKNOWN)
            broken("a forged heartbeat is unknown", "%.*s", SLICE_ARG(b->token));
        covered(COVER_FORGED_BEAT);
    } else {
        check_beat_status(n, call, b);
    }
    for (size_t i = 0; i < call->stop_count; i++)
        check_beat_stop(n, call, call->stop[i]);
}
