/* Checks when an attempt may begin: the order of the graph, stops, deadlines and waits, forward,
 * in the undo, and in on_undo. check_row.c calls it for each new attempt. check.h lists all
 * checkers. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

/* An attempt that begins with this change. */
struct begin {
    const struct subject *t;
    const struct flow_step *f;
    uint32_t i;
    const struct seen *old, *new;
    const struct seen_attempt *a;
};

static void must(const struct begin *b, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(b->t);
    broken(rule, "%s/s%u, %s attempt %u", b->t->id, b->i, direction_text(b->a->direction),
           b->a->number);
}

/* A doubt may arise, be acted on, and end in one change. */
static bool was_in_doubt(const struct begin *b)
{
    const struct seen_step *s = &b->old->steps[b->i];

    return seen_in_doubt(s) || seen_open(s);
}

static void check_forward(const struct begin *b)
{
    const struct seen_step *s = &b->new->steps[b->i];
    const struct flow *flow = b->t->flow;

    must(b, b->old->direction == DIRECTION_FORWARD, "nothing starts forward on the way back");
    must(b, b->t->not_before <= b->a->started_at, "nothing starts before not_before");
    must(b, b->new->not_before <= b->a->started_at, "nothing starts before not_before, as moved");
    uint32_t past = seen_past(flow, b->new, b->i);
    for (uint32_t p = 0; p < flow->step_count; p++)
        if (past & BIT(p))
            must(b,
                 seen_passed(&flow->steps[p], &b->new->steps[p])
                     || seen_undone_by_hand(&b->new->steps[p]), /* at once, by an operator */
                 "a step starts after its predecessors ended");
    if (b->old->stop != STOP_NONE && b->new->stop == b->old->stop && !b->t->verbs)
        must(b,
             b->f->undo == UNDO_PIVOT && (seen_in_doubt(s) || seen_happened(s) || was_in_doubt(b)),
             "a task that stops starts nothing but a pivot in doubt");
}

/* After all compensations, in the order of its own graph. */
static void check_on_undo(const struct begin *b)
{
    const struct flow *flow = b->t->flow;

    covered(COVER_ON_UNDO);
    must(b, b->new->direction == DIRECTION_UNDO, "what runs on undo runs on the way back");
    for (uint32_t p = 0; p < flow->step_count; p++)
        if (flow->steps[p].on_undo ? (b->f->past & BIT(p)) != 0 : true)
            must(b,
                 flow->steps[p].on_undo
                     ? seen_passed(&flow->steps[p], &b->new->steps[p])
                     : !seen_open(&b->new->steps[p])
                           && !seen_needs_undo(&flow->steps[p], &b->new->steps[p]),
                 "what runs on undo comes after the last compensation, and in its order");
    must(b, b->old->stop == STOP_NONE || b->new->stop != b->old->stop || b->t->verbs,
         "a task that stops starts nothing");
}

static void check_backward(const struct begin *b)
{
    const struct seen_step *s = &b->new->steps[b->i];
    const struct flow *flow = b->t->flow;
    int64_t doubt = seen_doubt_until(s);

    must(b, b->new->direction == DIRECTION_UNDO, "nothing is undone going forward");
    must(b, b->f->undo == UNDO_CALL, "only what has an undo is undone");
    must(b,
         b->old->steps[b->i].direction == DIRECTION_UNDO || seen_happened(s) || seen_in_doubt(s)
             || was_in_doubt(b),
         "only what may have happened is undone");
    for (uint32_t q = 0; q < flow->step_count; q++)
        if (b->f->future & BIT(q))
            must(b,
                 !seen_runs(&b->new->steps[q])
                     && !seen_needs_undo(&flow->steps[q], &b->new->steps[q]),
                 "a compensation starts after those of its successors ended");
    must(b, doubt == 0 || b->a->started_at >= doubt + MARGIN_MS,
         "what is in doubt is undone only after its complete-by and a margin");
    if (!s->has_output)
        covered(COVER_UNDO_NO_OUTPUT);
    if (seen_in_doubt(s))
        covered(COVER_UNDO_IN_DOUBT);
}

/* The step's own deadline, capped by the task's unless that has passed already. */
static int64_t complete_by_of(const struct begin *b)
{
    bool undo = b->a->direction == DIRECTION_UNDO;
    int64_t at = b->a->started_at + (undo ? b->f->undo_complete_by_ms : b->f->complete_by_ms);
    bool back = undo || b->f->on_undo;
    int64_t cap = back ? b->new->undo_complete_by : b->new->complete_by;

    return cap != 0 && cap < at ? cap : at;
}

/* Whatever happened since, even the end of an outage: only an operator overrules it. */
static void check_wish(const struct begin *b)
{
    const struct seen_attempt *last =
        seen_find(&b->new->steps[b->i], b->a->direction, b->a->number - 1);
    int64_t ms = last ? said_least_wish(b->t, b->i, b->a->direction, last->number) : 0;

    must(b,
         ms == 0 || last->outcome != OUTCOME_FAILED || b->t->verbs
             || b->a->started_at >= last->ended_at + ms,
         "nothing is tried again before its service wants it to be");
}

void check_start(const struct subject *t, uint32_t step, const struct seen *old,
                 const struct seen *new, const struct seen_attempt *a)
{
    const struct begin b = {t, &t->flow->steps[step], step, old, new, a};
    const struct seen_step *before = &old->steps[step];
    int64_t full =
        a->started_at
        + (a->direction == DIRECTION_UNDO ? b.f->undo_complete_by_ms : b.f->complete_by_ms);

    must(&b, new->locked, "an owner starts it");
    must(&b, old->paused_at == 0 || new->paused_at != old->paused_at,
         "a paused task starts nothing");
    must(&b, old->closed_at == 0 || t->verbs, "a closed task starts nothing");
    must(&b, a->generation == new->steps[step].generation, "an attempt has the present key");
    must(&b, a->started_at <= latest_now(), "an attempt starts now");
    must(&b, a->complete_by > a->started_at, "there is time left for an attempt");
    bool moved =
        (t->wanted[ASK_RESUME] > 0 || t->parent)
        && (new->complete_by != old->complete_by
            || (old->undo_complete_by != 0 && new->undo_complete_by != old->undo_complete_by));
    must(&b,
         a->complete_by == complete_by_of(&b)
             || (moved && a->complete_by < complete_by_of(&b)) /* moved by a later pause */
             || ((new->deadline_passed || old->deadline_passed || t->verbs)
                 && a->complete_by == full),
         "an attempt has its complete-by");
    if (before->direction == a->direction && !t->verbs)
        must(&b, a->started_at >= before->wait_until || check_hastened(t, step, a, before),
             "a try waits as long as it should");
    check_wish(&b);
    check_breaker_start(t, step, a);
    check_limit_start(t, step, a);
    check_health_start(t, step, a);
    if (b.f->on_undo)
        check_on_undo(&b);
    else if (a->direction == DIRECTION_FORWARD)
        check_forward(&b);
    else
        check_backward(&b);
}
