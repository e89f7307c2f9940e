/* Checks steps with for_each, as the document and the rows of their items show them: how many are
 * at work, what is written, what becomes of each item, and in which order they are undone (L2, L3).
 * check_row.c and check_world.c call it; items.c has what the world knows. check.h lists all
 * checkers. */

#include <stdio.h>

#include "dispatch/token.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/world.h"
#include "json/json.h"

enum { ROWS_MAX = 20001, STEP_BYTES_MAX = 1500, CLOCK_MS = 1000 };

/* One step before and after a change. */
struct change_of_items {
    struct subject *t;
    const struct flow_step *f;
    uint32_t step;
    const struct seen *old, *new;
    const struct seen_items *was, *is;
};

static void must(const struct change_of_items *c, uint32_t unit, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(c->t);
    broken(rule, "%s/%s: %u of %u begun, %u at work, step %s", c->t->id, unit_name(unit),
           c->is->begun, c->is->count, c->is->work_count, step_state_text(c->is->state));
}

static void must_be(const struct subject *t, uint32_t unit, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s/%s", t->id, unit_name(unit));
}

/* Going forward, or undone. */
static bool keeps_its_place(const struct seen_step *s, bool back)
{
    return back ? s->state != STEP_UNDONE : s->state == STEP_WAITING || s->state == STEP_RUNNING;
}

/* A child that is not known to have ended turns back in any case. */
static bool needs_undo(const struct flow_step *f, const struct seen_step *s)
{
    bool took_effect = f->undo == UNDO_CALL && (seen_happened(s) || seen_in_doubt(s));

    if (s->state == STEP_UNDONE)
        return false;
    if (f->is_child)
        took_effect |= seen_child_is_open(s) || s->direction == DIRECTION_UNDO
                       || (f->undo == UNDO_CHILD && s->child.state == CHILD_PROCESSED);
    return took_effect || (f->undo == UNDO_CALL && s->direction == DIRECTION_UNDO);
}

/* ---- one item ---- */

static void check_truth(const struct change_of_items *c, uint32_t unit,
                        const struct seen_attempt *a)
{
    const struct ledger *l = &life_of(c->t, unit)->ledger;

    if (a->effect == EFFECT_HAPPENED)
        must(c, unit, said_find(c->t, unit, a->direction, a->number, false), "an agent said so");
    if (a->outcome == OUTCOME_FAILED)
        must(c, unit,
             said_effect(c->t, unit, a->direction, a->number, a->effect)
                 || (a->resent > 0 && a->effect == EFFECT_UNKNOWN
                     && said_effect(c->t, unit, a->direction, a->number, EFFECT_NONE)),
             "an agent said so");
    if (a->effect != EFFECT_HAPPENED)
        return;
    if (a->direction == DIRECTION_FORWARD)
        must(c, unit, l->happened_at != 0, "what is said to have happened has happened");
    else
        must(c, unit, l->undone_at != 0 || l->tombstone, "what is said to be undone is undone");
}

/* An attempt that existed before. */
static void check_kept(const struct change_of_items *c, uint32_t unit,
                       const struct seen_step *after, const struct seen_attempt *was,
                       const struct seen_attempt *is)
{
    must(c, unit, was->started_at == is->started_at && was->complete_by == is->complete_by,
         "an attempt keeps its times");
    if (was->outcome == is->outcome)
        return;
    bool may = was->outcome == OUTCOME_OPEN
               || (was->outcome == OUTCOME_TIMED_OUT && is->outcome == OUTCOME_LATE);
    must(c, unit, may, "what became of an attempt stays so");
    check_truth(c, unit, is);
    if (is->outcome == OUTCOME_LATE)
        covered(COVER_ITEM_LATE);
    if (was->outcome != OUTCOME_OPEN)
        return;
    check_health_end(c->t, unit, is);
    if (is->outcome == OUTCOME_TIMED_OUT)
        must(c, unit, is->ended_at >= is->complete_by - 2 * nodes.skew_max,
             "no attempt is given up before its complete-by");
    if (is->outcome == OUTCOME_FAILED && said_only_permanent(c->t, unit, is->direction, is->number))
        must(c, unit,
             after->state == STEP_FAILED || c->t->verbs || after->direction != is->direction,
             "a permanent error is not tried again");
    check_spared(c->t, unit, after, is, false);
}

static void check_new_attempt(const struct change_of_items *c, uint32_t unit,
                              const struct seen_step *before, const struct seen_step *after,
                              const struct seen_attempt *a)
{
    bool same = before->direction == a->direction;
    bool undo = a->direction == DIRECTION_UNDO;

    must(c, unit, a->outcome == OUTCOME_OPEN, "an attempt begins open");
    must(c, unit, a->number == (same ? before->attempt + 1 : 1), "attempts are numbered");
    must(c, unit, c->new->wake_at != 0 && c->new->wake_at <= a->complete_by,
         "the row's alarm is no later than what it is for");
    must(c, unit, (undo ? c->new : c->old)->direction == a->direction,
         "an item is tried in the direction of its task");
    must(c, unit,
         c->old->stop == STOP_NONE || c->new->stop != c->old->stop || c->f->undo == UNDO_PIVOT
             || c->t->verbs,
         "nothing starts in a task that stops");
    must(c, unit,
         after->wait_until <= latest_now() || a->number == 1 || c->t->verbs
             || after->spared_count > 0,
         "no try begins before its wait is over");
    if (undo)
        must(c, unit, seen_happened(after) || seen_in_doubt(after) || before->attempt > 0,
             "what did not happen is not undone");
    if (undo)
        must(c, unit,
             seen_doubt_until(after) == 0 || a->started_at >= seen_doubt_until(after) + MARGIN_MS,
             "what is in doubt is undone only after its complete-by and a margin");
    uint32_t past = undo ? 0 : seen_past(c->t->flow, c->new, c->step);
    for (uint32_t p = 0; p < c->new->step_count; p++)
        if (past & BIT(p))
            must(c, unit, seen_passed(&c->t->flow->steps[p], &c->new->steps[p]),
                 "a step starts after its predecessors ended");
    check_health_start(c->t, unit, a);
    check_breaker_start(c->t, unit, a);
}

static bool has_undone(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_UNDO
            && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return true;
    return false;
}

static bool is_contradicted(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++) {
        const struct seen_attempt *a = &s->attempts[i];
        if (a->direction == DIRECTION_FORWARD && a->number <= s->resolved
            && a->outcome == OUTCOME_LATE && a->effect == EFFECT_HAPPENED)
            return true;
    }
    return s->resolved > 0 && s->dropped_effect == EFFECT_HAPPENED;
}

/* A result says that an item took effect that an operator had resolved. Once all others are undone,
 * an alert is all that follows. */
static void note_contradicted(const struct change_of_items *c, struct item_life *l,
                              const struct seen_step *s)
{
    enum step_state list = c->old->steps[c->step].state;

    if (!l->rash && s->attempt > s->resolved)
        return; /* a later attempt took effect under the same key */
    must(c, l->unit, l->rash, "an operator looked at what he resolves");
    covered(COVER_ITEM_CONTRADICTED);
    l->contradicted_in = c->new->revision;
    l->too_late = list == STEP_UNDONE || c->old->state == TASK_COMPENSATED;
}

static void check_item(const struct change_of_items *c, uint32_t unit,
                       const struct seen_step *before, const struct seen_step *after)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < after->attempt_count; i++) {
        const struct seen_attempt *a = &after->attempts[i];
        const struct seen_attempt *was = seen_find(before, a->direction, a->number);
        open += a->outcome == OUTCOME_OPEN;
        if (was)
            check_kept(c, unit, after, was, a);
        else
            check_new_attempt(c, unit, before, after, a);
    }
    for (uint32_t i = 0; i < before->attempt_count; i++)
        must(c, unit,
             seen_find(after, before->attempts[i].direction, before->attempts[i].number)
                 || after->dropped_count > before->dropped_count,
             "attempts are not forgotten");
    must(c, unit, open <= 1, "an item has at most one open attempt");
    must(c, unit, (after->state == STEP_RUNNING) <= open, "a running item has an attempt");
    must(c, unit, after->state != STEP_WAITING || open == 0, "a waiting item has no open attempt");
    must(c, unit, after->generation >= before->generation, "no key comes back");
    must(c, unit, before->direction == DIRECTION_FORWARD || after->direction == DIRECTION_UNDO,
         "an item turns back once");
    must(c, unit, before->state != STEP_UNDONE || after->state == STEP_UNDONE,
         "what is undone stays so");
    if (after->resolved != before->resolved) {
        must(c, unit, c->t->wanted[ASK_RESOLVE] > 0, "an operator resolved it");
        must(c, unit, ledger_of(c->t, unit)->happened_at == 0 || life_of(c->t, unit)->rash,
             "what took effect is not resolved");
    }
    if (is_contradicted(after) && !is_contradicted(before))
        note_contradicted(c, life_of(c->t, unit), after);
    if (after->state == STEP_UNDONE && before->state != STEP_UNDONE)
        must(c, unit,
             unit_was_skipped(c->t, unit) || has_undone(after)
                 || after->child.state == CHILD_COMPENSATED,
             "an item is undone by its agent, with its child, or by hand");
    if (after->state == STEP_SKIPPED)
        must(c, unit, unit_was_skipped(c->t, unit) || c->t->wanted[ASK_SUPPLY] > 0,
             "an item is skipped, or the output of its list supplied, for a reason");
    if (c->f->is_child)
        check_child_unit(c->t, unit, before, after, c->old, c->new);
}

/* ---- the items at work ---- */

/* It is being undone: perhaps its child stopped in error on its way back. */
static bool is_at_it(const struct item_life *l)
{
    return l->at_work && (l->back || l->seen.child.state == CHILD_STUCK);
}

/* All that comes after it in the list is undone, or at it. */
static void see_later(const struct item_life *l, void *arg)
{
    const struct change_of_items *c = arg;

    if (list_of_unit(l->unit) != c->is->list || item_of_unit(l->unit) <= c->is->looked_at
        || l->too_late || l->contradicted_in == c->new->revision)
        return;
    must(c, UNIT_OF(c->step, c->is->looked_at), is_at_it(l) || !needs_undo(c->f, &l->seen),
         "later items are undone first");
    must(c, UNIT_OF(c->step, c->is->looked_at), !l->at_work || is_at_it(l),
         "nothing is undone while an item is at work");
}

static void check_brought(struct change_of_items *c, struct seen_items *is,
                          const struct item_life *l)
{
    covered(COVER_ITEM_BACK);
    must(c, l->unit, c->new->direction == DIRECTION_UNDO, "nothing is undone going forward");
    must(c, l->unit, c->f->undo == UNDO_CALL || c->f->is_child, "only what has an undo is undone");
    must(c, l->unit, l->row != 0, "an item that is undone was at rest");
    must(c, l->unit, l->row_to_undo, "what did not happen is not undone");
    is->looked_at = item_of_unit(l->unit);
    lives_walk(c->t, c->step, see_later, c);
    for (uint32_t q = 0; q < c->new->step_count; q++)
        if (c->f->future & BIT(q))
            must(c, l->unit,
                 !seen_runs(&c->new->steps[q])
                     && !seen_needs_undo(&c->t->flow->steps[q], &c->new->steps[q]),
                 "items are undone after all that relied on them");
}

/* First all are gone. A result may be one commit with the restart that left its list. */
static void see_leaving(const struct item_life *l, void *arg)
{
    const struct change_of_items *c = arg;
    struct item_life *mine = life_of(c->t, l->unit);
    bool stays = list_of_unit(l->unit) != c->is->list;

    mine->left_open |= stays && l->at_work && seen_open(&l->seen);
    mine->at_work &= stays;
}

static void check_work(struct change_of_items *c, struct seen_items *is)
{
    uint32_t places = 0;
    uint32_t open = 0;

    for (uint32_t i = 0; i < is->work_count; i++) {
        const struct item_life *l = life_find(c->t, unit_of(c->step, is->list, is->work[i].item));
        is->work[i].is_new = !l || !l->at_work || !l->back;
    }
    lives_walk(c->t, c->step, see_leaving, c);
    for (uint32_t i = 0; i < is->work_count; i++) {
        const struct seen_item *w = &is->work[i];
        uint32_t unit = unit_of(c->step, is->list, w->item);
        struct item_life *l = life_of(c->t, unit);
        must(c, unit, !l->at_work, "an item is at work once");
        must(c, unit, w->item < is->begun, "who is at work has begun");
        must(c, unit, !w->back || l->row != 0, "an item is at work, or at rest");
        must(c, unit, w->back || l->row == 0 || c->t->wanted[ASK_RETRY] > 0,
             "an item at rest is tried again for an operator alone");
        if (!w->back && l->row != 0)
            covered(COVER_ITEM_AGAIN);
        places += keeps_its_place(&w->step, w->back);
        open += seen_open(&w->step) != NULL;
        check_item(c, unit, &l->seen, &w->step);
        l->seen = w->step;
        l->at_work = true;
        l->back = w->back;
    }
    must(c, c->step, places <= c->f->concurrency, "no more items are at work than may be");
    must(c, c->step, open <= c->f->concurrency, "no more items are at work than may be");
    must(c, c->step, open == 0 || !seen_is_end(c->new), "nothing runs after the end");
    if (places == c->f->concurrency && places > 1)
        covered(COVER_ITEMS_FULL);
}

/* ---- rows ---- */

struct sums {
    uint32_t rows, completed, failed, skipped, undone, effects, doubts, to_undo;
};

/* What the rows say of those that are not at work again. */
static void add_row(struct sums *n, const struct item_life *l)
{
    n->rows++;
    if (l->at_work)
        return;
    n->completed += l->row_state == STEP_COMPLETED;
    n->failed += l->row_state == STEP_FAILED;
    n->skipped += l->row_state == STEP_SKIPPED;
    n->undone += l->row_state == STEP_UNDONE;
    n->effects += l->row_effect;
    n->doubts += l->row_doubt;
    n->to_undo += l->row_to_undo;
}

static uint64_t row_hash(const struct item_row *row)
{
    return seen_hash(row->doc) ^ ((uint64_t)row->state << 2) ^ (uint64_t)row->in_doubt
           ^ ((uint64_t)row->needs_undo << 1);
}

static bool was_at_work(const struct seen_items *was, uint32_t item)
{
    for (uint32_t i = 0; i < was->work_count; i++)
        if (was->work[i].item == item)
            return true;
    return item >= was->begun;
}

/* An answer came after all. */
static bool has_late_news(const struct seen_step *before, const struct seen_step *after)
{
    for (uint32_t i = 0; i < after->attempt_count; i++) {
        const struct seen_attempt *a = &after->attempts[i];
        const struct seen_attempt *was = seen_find(before, a->direction, a->number);
        if (was && was->outcome != a->outcome && a->outcome == OUTCOME_LATE)
            return true;
    }
    return false;
}

/* A late result, or an operator. */
static void check_changed_at_rest(const struct change_of_items *c, uint32_t unit,
                                  const struct seen_step *before, const struct seen_step *after)
{
    bool late = has_late_news(before, after);

    must(c, unit, late || c->t->verbs, "the row of an item at rest stays as it is");
    covered(late ? COVER_ITEM_LATE_AT_REST : COVER_ITEM_VERB_AT_REST);
}

static void check_changed_row(const struct change_of_items *c, const struct task_row *task,
                              const struct item_row *row, struct item_life *l)
{
    struct seen_step s;

    must(c, l->unit, !l->at_work, "a row is written when its item comes to rest");
    seen_read_item(task, row->doc, &s);
    if (!was_at_work(c->was, row->number) && c->was->list == c->is->list)
        check_changed_at_rest(c, l->unit, &l->seen, &s);
    must(c, l->unit, s.state == row->state, "a row says what its document says");
    must(c, l->unit, row->in_doubt == seen_in_doubt(&s), "a row says what its document says");
    must(c, l->unit, row->needs_undo == needs_undo(c->f, &s), "a row says what its document says");
    must(c, l->unit, !seen_open(&s), "what is at rest does not run");
    must(c, l->unit,
         s.state == STEP_COMPLETED || s.state == STEP_FAILED || s.state == STEP_SKIPPED
             || s.state == STEP_UNDONE,
         "what is at rest has ended");
    check_item(c, l->unit, &l->seen, &s);
    l->seen = s;
    l->row = row_hash(row);
    l->row_state = row->state;
    l->row_doubt = row->in_doubt;
    l->row_effect = seen_happened(&s);
    l->row_to_undo = row->needs_undo;
    covered(row->state == STEP_COMPLETED ? COVER_ITEM_DONE
            : row->state == STEP_UNDONE  ? COVER_ITEM_UNDONE
            : row->state == STEP_SKIPPED ? COVER_ITEM_SKIPPED
            : row->in_doubt              ? COVER_ITEM_DOUBT
                                         : COVER_ITEM_FAILED);
}

static void check_sums(const struct change_of_items *c, const struct sums *n)
{
    const struct seen_items *is = c->is;
    uint32_t back = 0;

    for (uint32_t i = 0; i < is->work_count; i++)
        back += life_of(c->t, unit_of(c->step, is->list, is->work[i].item))->row != 0;
    must(c, c->step,
         n->completed == is->completed && n->failed == is->failed && n->skipped == is->skipped
             && n->undone == is->undone,
         "the sums of a list are those of its rows");
    must(c, c->step,
         n->effects == is->effects && n->doubts == is->doubts && n->to_undo == is->to_undo,
         "the sums of a list are those of its rows");
    must(c, c->step, is->completed + is->failed + is->skipped + is->undone + back == n->rows,
         "no row is lost");
    if (!is->left)
        must(c, c->step, n->rows + is->work_count - back == is->begun,
             "what has begun is at work or at rest");
}

static void check_rows(const struct change_of_items *c, const struct task_row *task)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct item_read r = {.task = task->id,
                          .step = text_of("s%u", c->step),
                          .generation = c->is->list,
                          .order = ITEMS_UP,
                          .limit = ROWS_MAX};
    struct sums n = {0};
    uint32_t changed = 0;
    struct error e = {0};

    enum err err = inner->ops->items->read(inner, &r, &a, &e);
    ASSERT(err == ERR_OK);
    for (size_t i = 0; i < r.count; i++) {
        struct item_life *l = life_of(c->t, unit_of(c->step, c->is->list, r.rows[i].number));
        must(c, l->unit, r.rows[i].number < c->is->count, "a row is that of an item of the list");
        if (l->row != row_hash(&r.rows[i])) {
            changed++;
            check_changed_row(c, task, &r.rows[i], l);
        }
        add_row(&n, l);
    }
    must(c, c->step, changed <= 2 * c->f->concurrency + 1, "a change writes few rows of items");
    check_sums(c, &n);
}

/* ---- the step ---- */

static void check_list(const struct change_of_items *c)
{
    const struct seen_items *was = c->was;
    const struct seen_items *is = c->is;
    bool same = was->list == is->list;

    must(c, c->step, is->list >= was->list, "no list comes back");
    must(c, c->step, same || c->t->verbs, "only an operator has a step start anew");
    must(c, c->step, is->count <= c->f->items_max, "no list is longer than it may be");
    must(c, c->step, is->begun <= is->count && is->undo_below <= is->count,
         "there is no item beyond the list");
    if (c->f->items_fixed && is->has_begun)
        must(c, c->step, is->count == c->f->items_fixed, "a list is as its expression says");
    must(c, c->step, is->bytes <= STEP_BYTES_MAX, "a document does not grow with a list");
    if (!same || !was->has_begun)
        return;
    must(c, c->step, is->has_begun, "a list that is recorded stays");
    must(c, c->step, is->count == was->count, "a list that is recorded stays");
    must(c, c->step, is->begun >= was->begun || is->left, "what has begun stays so");
    must(c, c->step, is->begun - was->begun <= 2 * c->f->concurrency || is->left,
         "few items begin in a change");
    must(c, c->step, is->undo_below <= was->undo_below || is->contradicted > was->contradicted,
         "items are undone in reverse order");
    if (is->undo_below > was->undo_below)
        covered(COVER_ITEM_UNDONE_LATER);
}

/* What a step that ends says of its items. */
static void check_step_end(const struct change_of_items *c)
{
    const struct seen_step *before = &c->old->steps[c->step];
    const struct seen_step *after = &c->new->steps[c->step];
    const struct seen_items *is = c->is;

    if (after->state == before->state)
        return;
    if (after->state == STEP_COMPLETED && !after->supplied) {
        must(c, c->step, is->work_count == 0 && is->begun == is->count,
             "a step completes when all its items have ended");
        must(c, c->step, is->failed <= items_tolerated(c->f, is->count),
             "a step completes if no more items failed than may");
        covered(is->failed > 0 ? COVER_ITEMS_TOLERATED : COVER_ITEMS_COMPLETED);
        if (is->count == 0)
            covered(COVER_ITEMS_EMPTY);
    }
    if (after->state == STEP_FAILED && after->direction == DIRECTION_FORWARD)
        covered(is->has_begun ? COVER_ITEMS_FAILED : COVER_ITEMS_NO_LIST);
    if (after->state == STEP_FAILED && is->has_begun && after->direction == DIRECTION_FORWARD) {
        uint32_t open = 0;
        for (uint32_t i = 0; i < is->work_count; i++)
            open += seen_open(&is->work[i].step) || seen_child_is_open(&is->work[i].step);
        must(c, c->step, open == 0, "a step fails when none of its items is at work");
    }
    if (after->state == STEP_UNDONE)
        must(c, c->step, (is->to_undo == 0 && is->work_count == 0) || c->t->skipped[c->step],
             "a step is undone when all its items are");
}

void check_items(struct subject *t, const struct task_row *row, const struct seen *old,
                 const struct seen *new)
{
    for (uint32_t i = 0; i < new->step_count; i++) {
        if (!t->flow->steps[i].is_each)
            continue;
        static struct seen_items was; /* too large for the stack */
        static struct seen_items is;
        if (!t->items[i]) {
            t->items[i] = arena_alloc(&world.arena, sizeof *t->items[i]);
            memset(t->items[i], 0, sizeof *t->items[i]);
        }
        was = *t->items[i];
        seen_read_items(row, i, &is);
        is.left = (was.left && was.list == is.list)
                  || (t->verbs && (new->steps[i].state == STEP_SKIPPED || new->steps[i].supplied));
        *t->items[i] = is;
        struct change_of_items c = {t, &t->flow->steps[i], i, old, new, &was, &is};
        check_list(&c);
        check_work(&c, &is);
        if (is.has_begun)
            check_rows(&c, row);
        for (uint32_t k = 0; k < is.work_count; k++)
            if (is.work[k].back && is.work[k].is_new)
                check_brought(&c, &is, life_of(t, unit_of(i, is.list, is.work[k].item)));
        check_step_end(&c);
        if (c.f->is_child && is.has_begun)
            check_item_children(t, i);
    }
}

/* ---- the wire ---- */

static bool is_key(struct slice key, const struct subject *t, uint32_t unit,
                   const struct seen_attempt *a)
{
    char list[16] = "";
    char own[16] = "";
    char round[16] = "";

    if (list_of_unit(unit) > 0)
        (void)snprintf(list, sizeof list, "~%u", list_of_unit(unit) + 1);
    if (a->generation > 1)
        (void)snprintf(own, sizeof own, "~%u", a->generation);
    if (a->direction == DIRECTION_FORWARD && a->round > 1)
        (void)snprintf(round, sizeof round, "@%u", a->round);
    return slice_eq(key, text_of("sim:%s/s%u%s.%u%s%s", t->id, step_of_unit(unit), list,
                                 item_of_unit(unit), own,
                                 a->direction == DIRECTION_UNDO ? "/undo" : round));
}

static void check_input(const struct subject *t, uint32_t unit, struct slice input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    must_be(t, unit, json_parse(&a, input, &j, NULL) == ERR_OK, "an input is JSON");
    int64_t index = json_get_int(j, "index", -1);
    int64_t value = json_get_int(json_get(j, "item"), "v", json_get_int(j, "item", -1));
    must_be(t, unit, index < 0 || index == item_of_unit(unit), "an item is asked for as itself");
    must_be(t, unit, value < 0 || value == item_of_unit(unit), "an item has its own value");
}

static void check_request_key(struct subject *t, struct item_life *l, const struct seen_attempt *a,
                              const struct work_request *r)
{
    uint64_t input = seen_hash(r->input);
    uint64_t *known = r->direction == DIRECTION_UNDO               ? &l->undone_as
                      : a->round <= 1 && a->generation <= KEYS_MAX ? &l->keyed[a->generation - 1]
                                                                   : NULL;

    must_be(t, l->unit, is_key(r->idempotency_key, t, l->unit, a), "keys are stable");
    if (!known)
        return;
    must_be(t, l->unit, *known == 0 || *known == input, "a key stands for one request");
    *known = input;
}

void check_item_request(const struct node *n, const struct work *w, const struct work_request *r,
                        const struct token *k)
{
    struct subject *t = subject_find(r->task);
    uint32_t unit = unit_of(k->step, k->item.generation, k->item.number);
    struct item_life *l = life_of(t, unit);
    const struct seen_attempt *a = seen_find(&l->seen, r->direction, r->attempt);
    bool undo = r->direction == DIRECTION_UNDO;

    must_be(t, unit, slice_is(r->step, unit_name(UNIT_OF(k->step, k->item.number))),
            "a request names its item");
    must_be(t, unit, a, "no request leaves before it is durable");
    must_be(t, unit, a->outcome == OUTCOME_OPEN || disk_has_unheard(&n->disk) || t->writer != n,
            "no request leaves for what is over");
    must_be(t, unit, slice_is(w->instance_name, a->instance),
            "a request goes to the instance on record");
    must_be(t, unit,
            slice_is(w->agent_name, text_of("a%u", undo ? t->flow->steps[k->step].undo_service
                                                        : t->flow->steps[k->step].service)
                                        .ptr),
            "a request goes to its agent");
    must_be(t, unit, r->complete_by == a->complete_by, "a request tells its complete-by");
    must_be(t, unit, r->complete_by > node_now(n), "nothing is asked after its complete-by");
    must_be(t, unit, r->input.ptr != NULL, "a request has an input");
    must_be(t, unit, t->seen.trace == 0 || t->seen.trace == seen_trace(r->traceparent),
            "agents are asked within the trace of the task");
    check_request_key(t, l, a, r);
    if (!undo)
        check_input(t, unit, r->input);
    must_be(t, unit, r->attempt >= l->sent[undo] || (nodes.skew_max > 0 && t->writer != n),
            "attempts leave in order");
    if (w->failed)
        return;
    if (r->attempt == l->sent[undo]) {
        must_be(t, unit, a->resent > 0, "what is sent again is on record as such");
        covered(COVER_ITEM_SENT_AGAIN);
    }
    l->sent[undo] = r->attempt;
    if (list_of_unit(unit) > 0)
        covered(COVER_ITEMS_ANEW);
    if (a->generation > 1)
        covered(COVER_ITEM_CORRECTED);
}

/* That of a child is an output of its first step, or of a child of that. */
static bool is_output_of(const struct subject *t, uint32_t unit, struct slice id)
{
    if (!t->flow->steps[step_of_unit(unit)].is_child)
        return slice_eq(id, text_of("%s-%u", t->id, unit));
    const struct subject *c = child_latest(t, unit);
    return c && (!id.ptr || (id.len > strlen(c->id) && memcmp(id.ptr, c->id, strlen(c->id)) == 0));
}

/* The output of each item that completed is where its number says. */
static bool are_outputs_of(const struct subject *t, uint32_t step, const struct json *list)
{
    uint32_t i = 0;

    if (list->count != t->items[step]->count)
        return false;
    for (const struct json *j = list->child; j; j = j->next, i++) {
        uint32_t unit = unit_of(step, t->items[step]->list, i);
        const struct item_life *l = life_find(t, unit);
        struct slice id = json_get_text(j, "id");
        if (l && l->seen.state == STEP_COMPLETED && !slice_is(id, "by hand")
            && !is_output_of(t, unit, id))
            return false;
    }
    return true;
}

void check_outputs_told(const struct subject *t, uint32_t step, struct slice input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    bool any = false;

    must_be(t, step, json_parse(&a, input, &j, NULL) == ERR_OK, "an input is JSON");
    const struct json *list = json_get(j, "of");
    if (!list || list->type != JSON_ARRAY)
        return;
    for (uint32_t p = 0; p < step; p++) /* what a child gives may be a list, too */
        any |= t->flow->steps[step].past & BIT(p)
               && (t->flow->steps[p].is_child || (t->items[p] && are_outputs_of(t, p, list)));
    must_be(t, step, any, "a step gets the outputs of all items");
    covered(COVER_ITEMS_OUTPUTS);
}

void check_item_result(const struct work_result *r, const struct token *k)
{
    const struct subject *t = subject_find(k->task);
    uint32_t unit = unit_of(k->step, k->item.generation, k->item.number);
    const struct item_life *l = life_find(t, unit);
    const struct seen_attempt *a = l ? seen_find(&l->seen, k->direction, k->attempt) : NULL;

    if (!a) {
        must_be(t, unit,
                r->status == RESULT_UNKNOWN || t->deleted || (l && l->seen.dropped_count > 0),
                "a result is answered by what is durable");
        return;
    }
    if (r->elsewhere || l->left_open)
        return;
    bool present = list_of_unit(unit) == t->items[k->step]->list;
    if (r->status == RESULT_ACCEPTED)
        must_be(t, unit, a->outcome == (r->failed ? OUTCOME_FAILED : OUTCOME_COMPLETED),
                "what is accepted is durable");
    if (r->status == RESULT_REPEATED)
        must_be(t, unit, a->outcome == OUTCOME_FAILED || a->outcome == OUTCOME_COMPLETED,
                "what is repeated was accepted");
    if (r->status == RESULT_LATE && present)
        must_be(t, unit, a->outcome == OUTCOME_LATE, "what is late is kept");
    must_be(t, unit,
            r->status != RESULT_UNKNOWN || a->outcome == OUTCOME_NOT_SENT || !present || t->deleted,
            "a result of what is on record is not unknown");
    if (r->status == RESULT_LATE)
        must_be(t, unit, a->outcome != OUTCOME_OPEN, "only what is over is late");
}

/* ---- effects and ends ---- */

struct look {
    const struct subject *t;
    uint32_t unit;
};

static void see_effect_above(const struct item_life *l, void *arg)
{
    const struct look *at = arg;
    const struct flow_step *f = &at->t->flow->steps[step_of_unit(l->unit)];

    if (list_of_unit(l->unit) != list_of_unit(at->unit)
        || item_of_unit(l->unit) <= item_of_unit(at->unit))
        return;
    must_be(at->t, at->unit,
            !ledger_stands(&l->ledger) || (l->at_work && l->back) || seen_undone_by_hand(&l->seen)
                || l->rash,
            "later items are undone first");
    if (f->is_child)
        must_be(at->t, at->unit, is_at_it(l) || !needs_undo(f, &l->seen),
                "later items are undone first");
}

void check_item_undo_effect(const struct subject *t, uint32_t unit)
{
    struct look at = {t, unit};

    lives_walk(t, step_of_unit(unit), see_effect_above, &at);
}

static void see_end(const struct item_life *l, void *arg)
{
    const struct subject *t = ((const struct look *)arg)->t;
    const struct flow_step *f = &t->flow->steps[step_of_unit(l->unit)];
    const struct seen_step *step = &t->seen.steps[step_of_unit(l->unit)];
    bool stands =
        ledger_stands(&l->ledger) && !seen_undone_by_hand(&l->seen) && !life_is_excused(l);

    must_be(t, l->unit, !l->at_work || !seen_open(&l->seen) || l->left_open,
            "nothing runs after the end");
    must_be(t, l->unit, l->ledger.effects <= 1 && l->ledger.undos <= 1, "all is done once");
    if (t->seen.state == TASK_COMPENSATED && f->undo == UNDO_CALL)
        must_be(t, l->unit, !stands, "compensated: every item that took effect was undone");
    if (t->seen.state == TASK_COMPENSATED && f->undo == UNDO_PIVOT)
        must_be(t, l->unit, l->ledger.happened_at == 0, "compensated: no pivot took effect");
    if (t->seen.state == TASK_PROCESSED && step->state == STEP_COMPLETED && !step->supplied
        && !f->is_child)
        must_be(t, l->unit,
                l->seen.state != STEP_COMPLETED || l->seen.supplied || ledger_stands(&l->ledger)
                    || list_of_unit(l->unit) != t->items[step_of_unit(l->unit)]->list,
                "processed: every item took effect");
    if (!l->ledger.tombstone && l->ledger.undos == 0)
        return;
    must_be(t, l->unit, l->seen.direction == DIRECTION_UNDO, "what is undone is on record");
}

void check_items_end(const struct subject *t, uint32_t step)
{
    struct look at = {t, step};

    lives_walk(t, step, see_end, &at);
}

/* No row changes without a change of its task. */
void check_items_at_rest(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        struct subject *t = &subjects.list[i];
        for (uint32_t k = 0; t->lives && !t->deleted && k < t->flow->step_count; k++) {
            CLEANUP(arena_fini) struct arena a = {0};
            if (!t->items[k] || !t->items[k]->has_begun)
                continue;
            struct item_read r = {.task = slice_of(t->id),
                                  .step = text_of("s%u", k),
                                  .generation = t->items[k]->list,
                                  .order = ITEMS_DOWN,
                                  .from = ROWS_MAX,
                                  .limit = ROWS_MAX};
            struct error e = {0};
            enum err err = inner->ops->items->read(inner, &r, &a, &e);
            ASSERT(err == ERR_OK);
            for (size_t n = 0; n < r.count; n++) {
                uint32_t unit = unit_of(k, t->items[k]->list, r.rows[n].number);
                must_be(t, unit, life_of(t, unit)->row == row_hash(&r.rows[n]),
                        "no row changes without a change of its task");
            }
        }
    }
}
