/* Items of steps with for_each: which begin, rest and come back (items.h), and what their ends mean
 * for their step. Part of decide(): see decision.h. A step that starts with BEGIN gets the list;
 * its items are units in its slots, and what happens to them is in decide.c, failure.c and verbs.c
 * as for any step. */
#include "core/items.h"

#include "core/decision.h"
#include "core/ready.h"
#include "core/summary.h"
#include "core/undo.h"

/* ---- sums ---- */

/* The slots of one step. */
#define SLOTS_FOREACH(u, ws) \
    for (uint16_t u = (ws)->each.slots_at; u < (ws)->each.slots_at + (ws)->each.slot_count; u++)

/* Some of them, next to each other. */
struct units {
    uint16_t from, end;
};

static bool is_in_use(const struct step *s)
{
    return s->slot == SLOT_TAKEN || s->slot == SLOT_BACK;
}

/* Going forward: it has begun and not ended. */
static bool item_is_at_work(const struct step *s)
{
    return s->state == STEP_WAITING || s->state == STEP_RUNNING;
}

/* What an operator has resolved took effect, and nobody has undone it yet. */
static bool is_contradicted(const struct step *s)
{
    return s->resolved > 0 && s->state != STEP_UNDONE && step_resolve_is_contradicted(s);
}

/* What the unit counts for: by its slot alone. */
static struct item_tally counts_of(const struct workflow_step *slot, const struct step *s)
{
    bool back = s->slot == SLOT_BACK;
    struct item_tally n = {
        .free = s->slot == SLOT_FREE,
        .ahead = (s->slot == SLOT_TAKEN && !step_undo_is_stuck(s))
                 || (s->slot == SLOT_RESTING && step_needs_undo(slot, s)),
    };

    if (!is_in_use(s))
        return n;
    n.used = 1;
    n.open = step_is_open(s);
    n.at_work = back ? s->state != STEP_UNDONE : item_is_at_work(s);
    n.children = child_is_open(&s->child);
    n.running = child_runs(&s->child);
    n.unturned = child_is_open(&s->child) && s->child.state != CHILD_TURNED;
    n.standing = s->child.state == CHILD_STANDS;
    n.failed = !back && s->state == STEP_FAILED;
    n.effects = step_has_effect(s);
    n.doubts = step_in_doubt(s);
    n.contradicted = is_contradicted(s);
    n.telling = step_is_open(s) || (s->state == STEP_WAITING && step_in_doubt(s))
                || (child_is_open(&s->child) && s->child.state != CHILD_STUCK);
    n.to_undo = step_needs_undo(slot, s);
    n.stuck = step_undo_is_stuck(s);
    return n;
}

enum { TALLY_NUMBERS = sizeof(struct item_tally) / sizeof(uint32_t) };

static void tally_add(struct item_tally *sum, const struct item_tally *n)
{
    for (size_t i = 0; i < TALLY_NUMBERS; i++)
        ((uint32_t *)sum)[i] += ((const uint32_t *)n)[i];
}

static void tally_remove(struct item_tally *sum, const struct item_tally *n)
{
    for (size_t i = 0; i < TALLY_NUMBERS; i++)
        ((uint32_t *)sum)[i] -= ((const uint32_t *)n)[i];
}

static struct item_tally tally_of(const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct workflow_step *ws = &w->steps[step];
    struct item_tally sum = {0};

    SLOTS_FOREACH (u, ws) {
        const struct item_tally n = counts_of(&w->steps[u], &t->steps[u]);
        tally_add(&sum, &n);
    }
    return sum;
}

void items_tally(const struct workflow *w, const struct task *t, uint16_t step)
{
    ASSERT(w->steps[step].kind == KIND_EACH);
    t->steps[step].items->tally = tally_of(w, t, step);
}

struct item_tally item_counts(const struct decision *d, uint16_t unit)
{
    return counts_of(&d->w->steps[unit], &d->t->steps[unit]);
}

void item_changed(struct decision *d, uint16_t unit, const struct item_tally *before)
{
    struct item_tally *sum = &d->t->steps[unit_step(d->w, unit)].items->tally;
    const struct item_tally n = item_counts(d, unit);

    tally_remove(sum, before);
    tally_add(sum, &n);
}

void items_tally_all(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH)
            items_tally(w, t, i);
}

/* Each result and each item that is brought back looks at all slots, so the walk is a short one. */
int items_slot(const struct workflow *w, const struct task *t, uint16_t step, uint32_t item)
{
    const struct each_spec *each = &w->steps[step].each;
    const struct step *end = t->steps + each->slots_at + each->slot_count;

    for (const struct step *s = t->steps + each->slots_at; s < end; s++)
        if (s->item == item && s->slot != SLOT_FREE)
            return (int)(s - t->steps);
    return -1;
}

/* How many may fail without an end of the step. */
static uint32_t tolerated(const struct workflow_step *ws, const struct items *in)
{
    if (ws->each.goes_on)
        return in->list.count;
    return (uint32_t)((uint64_t)in->list.count * ws->each.tolerate / 10000);
}

/* Once an item of a pivot took effect, the others go on. */
static bool is_past_pivot(const struct workflow_step *ws, const struct items *in)
{
    return ws->undo_kind == UNDO_PIVOT && in->effects + in->tally.effects > 0;
}

bool items_are_failing(const struct workflow_step *ws, const struct step *s)
{
    const struct items *in = s->items;

    return in->failed + in->tally.failed > tolerated(ws, in) && !is_past_pivot(ws, in);
}

uint32_t items_places(const struct workflow_step *ws, const struct step *s)
{
    const struct item_tally *n = &s->items->tally;
    uint32_t places = n->at_work < ws->each.concurrency ? ws->each.concurrency - n->at_work : 0;

    return min_u32(places, n->free);
}

int items_next(const struct workflow_step *ws, const struct step *s)
{
    if (!step_has_begun(s) || s->items->begun == s->items->list.count || items_are_failing(ws, s))
        return -1;
    return (int)s->items->begun;
}

uint32_t items_that_may_begin(const struct workflow_step *ws, const struct step *s)
{
    const struct items *in = s->items;

    if (items_next(ws, s) < 0)
        return 0;
    return min_u32(in->list.count - in->begun, items_places(ws, s));
}

/* Adds (or with -1 removes) an item to those at rest. */
static void count_resting(struct items *in, const struct workflow_step *ws, const struct step *s,
                          int n)
{
    uint32_t *const sums[] = {
        [STEP_COMPLETED] = &in->completed,
        [STEP_FAILED] = &in->failed,
        [STEP_SKIPPED] = &in->skipped,
        [STEP_UNDONE] = &in->undone,
    };

    ASSERT(s->state < COUNT_OF(sums) && sums[s->state]);
    *sums[s->state] += (uint32_t)n;
    in->effects += (uint32_t)(step_has_effect(s) ? n : 0);
    in->doubts += (uint32_t)(step_in_doubt(s) ? n : 0);
    in->to_undo += (uint32_t)(step_needs_undo(ws, s) ? n : 0);
    in->contradicted += (uint32_t)(is_contradicted(s) ? n : 0);
}

/* What has begun and waits is not tried (again). */
static void fail_waiting(struct step *s)
{
    if (!s->error.code.ptr)
        note(&s->error, "stopped", "it was not tried again");
    step_move(s, STEP_FAILED);
}

/* It leaves its slot. One that waited for another try has failed. */
static void comes_to_rest(struct decision *d, uint16_t unit)
{
    struct step *s = &d->t->steps[unit];
    struct items *in = d->t->steps[unit_step(d->w, unit)].items;
    const struct item_tally before = item_counts(d, unit);

    ASSERT(is_in_use(s));
    ASSERT(!step_is_open(s));
    if (s->state == STEP_WAITING)
        fail_waiting(s);
    s->wait_until = 0;
    s->slot = SLOT_RESTING;
    count_resting(in, &d->w->steps[unit], s, 1);
    item_changed(d, unit, &before);
}

/* ---- forward ---- */

/* The list is known. It is evaluated once for all items. */
void items_begin(struct decision *d, struct step *s)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];

    ASSERT(d->ev->list && d->ev->list->count <= ws->each.max_items);
    *s->items = (struct items){.list = *d->ev->list,
                               .child_base = s->child.number,
                               .undo_below = d->ev->list->count};
    items_tally(d->w, d->t, (uint16_t)d->ev->step);
    if (s->items->list.count == 0) {
        s->output.json = SLICE("[]");
        step_move(s, STEP_COMPLETED);
    }
}

/* The next item takes the slot. Its attempts' memory stays with the slot. */
void item_begins(struct decision *d, struct step *s)
{
    struct items *in = d->t->steps[unit_step(d->w, (uint16_t)d->ev->step)].items;

    ASSERT(s->slot == SLOT_FREE);
    ASSERT(in->begun < in->list.count);
    s->item = in->begun++;
    s->slot = SLOT_TAKEN;
    s->child.number = in->child_base;
}

/* A failure that ends the step, or may, stays at hand for operators if there is room. */
static bool stays_in_slot(const struct workflow_step *ws, const struct items *in)
{
    return in->failed + in->tally.failed > tolerated(ws, in)
           && in->tally.failed <= ws->each.concurrency;
}

static void rest_if_ended(struct decision *d, uint16_t step, uint16_t unit)
{
    const struct step *item = &d->t->steps[unit];
    const struct items *in = d->t->steps[step].items;

    if (item->slot != SLOT_TAKEN)
        return;
    if (item->state == STEP_COMPLETED || item->state == STEP_SKIPPED
        || (item->state == STEP_FAILED && !stays_in_slot(&d->w->steps[step], in)))
        comes_to_rest(d, unit);
}

/* The slots of the step that may be unlike what they were: that of the event, or all. */
static struct units changed_units(const struct decision *d, uint16_t step)
{
    const struct each_spec *each = &d->w->steps[step].each;
    int unit = d->ev->step;

    if (d->others)
        return (struct units){each->slots_at, (uint16_t)(each->slots_at + each->slot_count)};
    if (unit < 0 || !unit_is_slot(d->w, unit) || unit_step(d->w, (uint16_t)unit) != step)
        return (struct units){0, 0};
    return (struct units){(uint16_t)unit, (uint16_t)(unit + 1)};
}

/* How many have failed decides about each of those that did. */
static void rest_those_that_ended(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];
    const struct units changed = changed_units(d, step);

    if (d->t->steps[step].items->tally.failed == 0)
        for (uint16_t u = changed.from; u < changed.end; u++)
            rest_if_ended(d, step, u);
    else
        SLOTS_FOREACH (u, ws)
            rest_if_ended(d, step, u);
}

/* What was tried and waits for its next try is not tried again. */
static void fail_those_that_wait(struct decision *d, const struct workflow_step *ws)
{
    SLOTS_FOREACH (u, ws) {
        struct step *item = &d->t->steps[u];
        if (item->slot == SLOT_TAKEN && item->state == STEP_WAITING)
            fail_waiting(item);
    }
}

/* Nothing of the step goes on, and no operator needs what is in its slots. */
static void rest_all(struct decision *d, const struct workflow_step *ws)
{
    SLOTS_FOREACH (u, ws)
        if (d->t->steps[u].slot == SLOT_TAKEN && !step_is_open(&d->t->steps[u]))
            comes_to_rest(d, u);
}

bool items_go_on(const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct workflow_step *ws = &w->steps[step];
    const struct item_tally *n = &t->steps[step].items->tally;
    bool any_begins = items_next(ws, &t->steps[step]) >= 0 && n->at_work < ws->each.concurrency;

    if (n->open > 0 || any_begins) /* a slot may still have to be stored first */
        return true;
    SLOTS_FOREACH (u, ws)
        if (t->steps[u].slot == SLOT_TAKEN && !child_has_stopped(&t->steps[u].child)
            && item_may_go_on(w, t, u))
            return true;
    return false;
}

bool item_may_go_on(const struct workflow *w, const struct task *t, uint16_t unit)
{
    const struct workflow_step *ws = &w->steps[unit_step(w, unit)];
    const struct step *step = &t->steps[unit_step(w, unit)];
    const struct step *s = &t->steps[unit];

    if (s->slot == SLOT_FREE)
        return items_next(ws, step) >= 0 && items_places(ws, step) > 0;
    if (s->slot != SLOT_TAKEN || s->state != STEP_WAITING || !step_has_begun(step))
        return false;
    if (child_is_open(&s->child))
        return true;
    /* while the step fails: what an operator retries, and what resolves the doubt of a pivot */
    return !items_are_failing(ws, step) || s->failure_count == 0 || !step->error.code.ptr
           || (ws->undo_kind == UNDO_PIVOT && step_in_doubt(s));
}

static bool any_goes_on(const struct decision *d, const struct workflow_step *ws,
                        const struct step *s)
{
    if (s->items->tally.open > 0 || items_next(ws, s) >= 0)
        return true;
    SLOTS_FOREACH (u, ws)
        if (d->t->steps[u].slot == SLOT_TAKEN && item_may_go_on(d->w, d->t, u))
            return true;
    return false;
}

/* The error of the first one that failed, which an operator may have left while others went on. */
static void find_error(const struct decision *d, const struct workflow_step *ws, struct step *s)
{
    const struct step *first = NULL;

    if (s->error.code.ptr)
        return;
    SLOTS_FOREACH (u, ws) {
        const struct step *item = &d->t->steps[u];
        if (item->slot == SLOT_TAKEN && item->state == STEP_FAILED
            && (!first || item->item < first->item))
            first = item;
    }
    if (first)
        s->error = first->error;
    else
        note(&s->error, "items", "more items failed than may");
}

/* What they do would be undone. */
static void stop_children(struct decision *d, const struct workflow_step *ws)
{
    SLOTS_FOREACH (u, ws)
        if (d->t->steps[u].slot == SLOT_TAKEN && child_is_open(&d->t->steps[u].child))
            child_stop(d, &d->t->steps[u]);
}

static void step_fails_by_items(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];
    struct step *s = &d->t->steps[step];

    fail_those_that_wait(d, ws);
    find_error(d, ws, s);
    step_move(s, STEP_FAILED);
    if (ws->on_failure == ON_FAILURE_CONTINUE)
        rest_all(d, ws);
    items_tally(d->w, d->t, step);
    stop_for_failure(d, ws->on_failure, step, &s->error);
}

static void settle_forward(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];
    struct step *s = &d->t->steps[step];
    const struct items *in = s->items;

    rest_those_that_ended(d, step);
    if (step_has_begun(s) && ws->on_failure == ON_FAILURE_UNDO && items_are_failing(ws, s)) {
        stop_children(d, ws);
        items_tally(d->w, d->t, step);
    }
    if (!step_has_begun(s) || any_goes_on(d, ws, s))
        return;
    if (in->failed + in->tally.failed > tolerated(ws, in)) {
        step_fails_by_items(d, step);
        return;
    }
    ASSERT(in->completed + in->skipped + in->failed == in->list.count);
    s->error = (struct fault_note){0};
    s->output = (struct value){SLICE(""), ITEMS_OUTPUT};
    step_move(s, STEP_COMPLETED);
}

/* ---- back ---- */

uint32_t items_to_bring(const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct workflow_step *ws = &w->steps[step];
    const struct step *s = &t->steps[step];
    struct undo_order order;

    if (t->direction != DIRECTION_UNDO || t->stop != STOP_NONE || t->state == TASK_ERROR
        || task_state_is_end(t->state) || t->paused_at != 0 || !step_needs_undo(ws, s)
        || s->items->to_undo == 0 || s->items->tally.ahead > 0)
        return 0;
    undo_order_make(w, t, &order);
    return order.blocked[step] ? 0 : min_u32(s->items->to_undo, items_places(ws, s));
}

bool items_may_be_undone(const struct workflow_step *ws, const struct step *s)
{
    const struct item_tally *n = &s->items->tally;

    return n->to_undo > n->stuck || (s->items->to_undo > 0 && n->stuck < ws->each.concurrency);
}

static void list_goes_back(struct step *step)
{
    begin_undo(step);
    if (step->state != STEP_UNDOING && step->state != STEP_UNDONE)
        step_move(step, STEP_UNDOING);
}

enum answer item_comes_back(struct decision *d)
{
    uint16_t unit = (uint16_t)d->ev->step;
    uint16_t at = unit_step(d->w, unit);
    const struct step *row = d->ev->row;
    struct step *s = &d->t->steps[unit];
    struct step *step = &d->t->steps[at];

    if (s->slot != SLOT_FREE || row->item >= step->items->undo_below
        || items_slot(d->w, d->t, at, row->item) >= 0 || items_to_bring(d->w, d->t, at) == 0
        || !step_needs_undo(&d->w->steps[unit], row))
        return ANSWER_REFUSED;
    *s = *row;
    s->slot = SLOT_BACK;
    count_resting(step->items, &d->w->steps[unit], s, -1);
    step->items->undo_below = s->item;
    list_goes_back(step);
    return ANSWER_ACCEPTED;
}

/* It is undone; or a late result says that there is nothing to undo. */
static bool is_back_for_nothing(const struct workflow_step *slot, const struct step *s)
{
    return s->slot == SLOT_BACK && !step_needs_undo(slot, s);
}

/* Its forward part has ended; or its child stopped on its way back, and it was undone by hand. */
static bool is_left(const struct step *s)
{
    return s->slot == SLOT_TAKEN && (s->state == STEP_UNDONE || !child_is_open(&s->child));
}

static void settle_back(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];
    const struct units changed = changed_units(d, step);
    struct step *s = &d->t->steps[step];

    for (uint16_t u = changed.from; u < changed.end; u++) {
        const struct step *item = &d->t->steps[u];
        if (!step_is_open(item) && (is_left(item) || is_back_for_nothing(&d->w->steps[u], item)))
            comes_to_rest(d, u);
    }
    /* One that still runs, while an operator undid another by hand, may take effect. */
    if (s->state == STEP_UNDOING && !step_needs_undo(ws, s) && s->items->tally.used == 0)
        step_move(s, STEP_UNDONE);
}

/* ---- both ---- */

void items_settle(struct decision *d)
{
    for (uint16_t i = 0; i < d->t->step_count; i++) {
        if (d->w->steps[i].kind != KIND_EACH || d->t->steps[i].begun_at == 0)
            continue;
        if (d->others)
            items_tally(d->w, d->t, i);
        if (d->t->direction == DIRECTION_UNDO)
            settle_back(d, i);
        else
            settle_forward(d, i);
    }
}

/* What is known of an item at rest changes: by a late result, or an operator. Later items than
 * those that are undone may have to be undone then: a result says that they took effect after all.
 */
void item_recount(struct decision *d, int n)
{
    uint16_t unit = (uint16_t)d->ev->step;
    struct step *s = &d->t->steps[unit];
    struct items *in = d->t->steps[unit_step(d->w, unit)].items;

    if (s->slot != SLOT_RESTING)
        return;
    count_resting(in, &d->w->steps[unit], s, n);
    if (n > 0 && s->item >= in->undo_below && step_needs_undo(&d->w->steps[unit], s))
        in->undo_below = s->item + 1;
}

/* ---- operators ---- */

bool item_may_be_repaired(const struct workflow *w, const struct task *t, uint16_t unit)
{
    uint16_t at = unit_step(w, unit);
    const struct step *step = &t->steps[at];

    if (t->steps[unit].slot != SLOT_RESTING)
        return true;
    return step_has_begun(step) || step_failure_stops(&w->steps[at], step);
}

/* One that is to be undone has kept its place. One at rest needs none before it is retried. */
bool item_retry(struct decision *d, uint16_t unit)
{
    uint16_t at = unit_step(d->w, unit);
    struct step *s = &d->t->steps[unit];
    bool back = s->direction == DIRECTION_UNDO;

    if (!back && d->t->steps[at].items->tally.at_work >= d->w->steps[at].each.concurrency)
        return false;
    if (!back)
        s->slot = SLOT_TAKEN;
    step_move(s, back ? STEP_UNDOING : STEP_WAITING);
    if (!back && step_is_repeated(&d->w->steps[unit]))
        renew_rounds(s);
    if (!back)
        begin_anew(s);
    s->failure_count = 0;
    s->spared_count = 0;
    s->wait_until = 0;
    items_tally(d->w, d->t, at);
    return true;
}

/* The failed items at hand are tried again, each from the beginning. */
bool items_retry(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];
    struct step *s = &d->t->steps[step];
    bool any = false;

    SLOTS_FOREACH (u, ws)
        if (d->t->steps[u].slot == SLOT_TAKEN && d->t->steps[u].state == STEP_FAILED)
            any |= item_retry(d, u);
    if (!any)
        return false;
    step_move(s, STEP_WAITING);
    s->error = (struct fault_note){0};
    return true;
}

/* An operator did something to a failed item: its step goes on if that item does, or none is left
 * that failed. Or the operator has undone it. */
void item_repaired(struct decision *d)
{
    uint16_t at = unit_step(d->w, (uint16_t)d->ev->step);
    const struct workflow_step *ws = &d->w->steps[at];
    struct step *step = &d->t->steps[at];

    items_tally(d->w, d->t, at);
    if (d->t->direction == DIRECTION_UNDO) {
        list_goes_back(step);
        return;
    }
    if (step->state != STEP_FAILED)
        return;
    if (d->ev->kind != EVENT_RETRY && items_are_failing(ws, step))
        return;
    step_move(step, STEP_WAITING);
    step->error = (struct fault_note){0};
}

/* The step is left: what its items did stays on record. Nobody needs their children, which are in
 * error, any more. */
void items_leave(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];

    SLOTS_FOREACH (u, ws) {
        struct step *s = &d->t->steps[u];
        if (s->slot != SLOT_TAKEN || s->state != STEP_WAITING || !child_is_open(&s->child))
            continue;
        s->child.wish = WISH_CLOSE;
        step_move(s, STEP_SKIPPED);
    }
    rest_all(d, &d->w->steps[step]);
    items_tally(d->w, d->t, step);
}

/* The step starts anew, with another list. */
void items_forget(struct decision *d, uint16_t step)
{
    const struct workflow_step *ws = &d->w->steps[step];

    SLOTS_FOREACH (u, ws)
        slot_free(&d->t->steps[u]);
    *d->t->steps[step].items = (struct items){0};
    items_tally(d->w, d->t, step);
}

/* ---- rows ---- */

/* The memory of attempts stays with the slot. */
void slot_free(struct step *s)
{
    *s = (struct step){.attempts = s->attempts, .attempt_cap = s->attempt_cap};
}

void item_hold(const struct workflow *w, struct task *t, uint16_t unit, const struct step *row)
{
    uint16_t at = unit_step(w, unit);
    struct step *s = &t->steps[unit];

    ASSERT(unit_is_slot(w, unit) && s->slot == SLOT_FREE);
    ASSERT(row->item < t->steps[at].items->begun && items_slot(w, t, at, row->item) < 0);
    *s = *row;
    s->slot = SLOT_RESTING;
    items_tally(w, t, at);
}

void item_let_go(const struct workflow *w, struct task *t, uint16_t unit)
{
    ASSERT(t->steps[unit].slot == SLOT_RESTING);
    t->steps[unit] = (struct step){0}; /* the memory of the row's attempts may end */
    items_tally(w, t, unit_step(w, unit));
}

int items_free_slot(const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct workflow_step *ws = &w->steps[step];

    SLOTS_FOREACH (u, ws)
        if (t->steps[u].slot == SLOT_FREE)
            return u;
    return -1;
}

static void slot_stored(const struct workflow_step *slot, struct step *s, struct item_tally *sum)
{
    const struct item_tally before = counts_of(slot, s);

    slot_free(s);
    const struct item_tally after = counts_of(slot, s);
    tally_remove(sum, &before);
    tally_add(sum, &after);
}

void items_stored(const struct workflow *w, struct task *t)
{
    for (uint16_t i = 0; w->slot_count > 0 && i < t->step_count; i++) {
        const struct workflow_step *ws = &w->steps[i];
        if (ws->kind != KIND_EACH)
            continue;
        SLOTS_FOREACH (u, ws)
            if (t->steps[u].slot == SLOT_RESTING)
                slot_stored(&w->steps[u], &t->steps[u], &t->steps[i].items->tally);
    }
}

static uint32_t at_rest(const struct items *in)
{
    return in->completed + in->failed + in->skipped + in->undone;
}

bool item_slot_valid(const struct workflow *w, const struct task *t, uint16_t unit)
{
    const struct step *s = &t->steps[unit];
    const struct items *in = t->steps[unit_step(w, unit)].items;

    switch (s->slot) {
    case SLOT_FREE:
        return s->state == STEP_WAITING && s->attempt_count == 0 && !s->input.json.ptr;
    case SLOT_TAKEN:
        return s->item < in->begun
               && (s->direction == DIRECTION_FORWARD || s->state == STEP_UNDONE);
    case SLOT_BACK:
        return s->item < in->begun;
    case SLOT_RESTING:
        return s->item < in->begun && !step_is_open(s) && s->state != STEP_WAITING;
    }
    return false;
}

bool items_slots_valid(const struct workflow *w, const struct task *t, uint16_t step)
{
    uint64_t seen[ITEMS_MAX / 64 + 1] = {0};
    const struct workflow_step *ws = &w->steps[step];
    const struct items *in = t->steps[step].items;
    const struct item_tally counted = tally_of(w, t, step);

    if (t->steps[step].begun_at == 0)
        return true; /* nothing was counted yet */
    SLOTS_FOREACH (u, ws) {
        const struct step *s = &t->steps[u];
        if (s->slot == SLOT_FREE)
            continue;
        uint64_t bit = UINT64_C(1) << s->item % 64;
        if (seen[s->item / 64] & bit)
            return false;
        seen[s->item / 64] |= bit;
    }
    return memcmp(&counted, &in->tally, sizeof counted) == 0;
}

bool items_valid(const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct workflow_step *ws = &w->steps[step];
    const struct step *s = &t->steps[step];
    const struct items *in = s->items;

    if (!in || in->begun > in->list.count || in->list.count > ws->each.max_items
        || in->undo_below > in->list.count)
        return false;
    if (s->begun_at == 0)
        return in->begun == 0 && in->list.count == 0;
    if (at_rest(in) + in->tally.used != in->begun || in->tally.at_work > ws->each.concurrency)
        return false;
    if (s->state == STEP_COMPLETED && !s->supplied)
        return in->completed + in->failed + in->skipped == in->list.count;
    if (s->state == STEP_UNDONE && in->tally.open > 0)
        return false;
    if (s->state == STEP_UNDONE) /* L2: a late result may have told of items afterwards */
        return in->to_undo + in->tally.to_undo <= in->contradicted + in->tally.contradicted;
    return true;
}
