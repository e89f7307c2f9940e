/* The nodes of the search of history_item_kids_test.c, and the observer that judges them
 * (history_item_kids.h): which children are started, what they are told and why, and what is left
 * of them when the task ends. */
#include "core/history_item_kids.h"

#include "core/items.h"
#include "core/summary.h"

/* ---- nodes ---- */

void brood_make(struct brood *n, const char *graph, struct tale_left left, uint8_t moves)
{
    memset(n, 0, sizeof *n);
    tale_make(&n->tale, graph, left);
    graph_family(&tale_graph, &n->tale.t);
    items_tally(&tale_graph.w, &n->tale.t, tale_step);
    n->moves = moves;
}

void brood_copy(struct brood *to, const struct brood *from)
{
    memcpy(to->kids, from->kids, sizeof to->kids);
    to->moves = from->moves;
    tale_copy(&to->tale, &from->tale);
}

static void put(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    *h ^= *h >> 29;
}

static void put_child(uint64_t *h, const struct step *s, int64_t now)
{
    put(h, (uint64_t)s->child.number | (uint64_t)s->child.state << 16
               | (uint64_t)s->child.wish << 24
               | (uint64_t)slice_is(s->error.code, CODE_CHILD) << 32);
    put(h, s->complete_by ? (uint64_t)max_i64(s->complete_by - now, -1) : UINT64_MAX);
}

static void put_kid(uint64_t *h, const struct world_kid *k)
{
    put(h, (uint64_t)k->number | (uint64_t)k->phase << 16 | (uint64_t)k->back << 24
               | (uint64_t)k->stands << 25 | (uint64_t)k->doubt << 26 | (uint64_t)k->closed << 27
               | (uint64_t)k->heard << 32 | (uint64_t)k->sent << 40
               | (uint64_t)k->coming_count << 48);
    for (uint8_t i = 0; i < k->coming_count; i++)
        put(h, k->coming[i]);
}

uint64_t brood_key(const struct brood *n)
{
    const struct tale *at = &n->tale;
    uint64_t h = tale_key(at);

    put(&h, (uint64_t)(at->t.closed_at != 0) | (uint64_t)n->moves << 8
                | (uint64_t)slice_is(at->t.error.code, CODE_CHILD) << 16);
    for (uint16_t u = 0; u < task_unit_count(&at->t); u++)
        put_child(&h, &at->steps[u], at->now);
    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        put_kid(&h, &n->kids[i]);
        if (at->rows[i].is_there)
            put_child(&h, &at->rows[i].item, at->now);
    }
    return h;
}

/* ---- items ---- */

static const struct step *find_item(const struct brood *n, uint32_t item)
{
    int unit = items_slot(&tale_graph.w, &n->tale.t, tale_step, item);

    if (unit >= 0)
        return &n->tale.steps[unit];
    return n->tale.rows[item].is_there ? &n->tale.rows[item].item : NULL;
}

struct child brood_child(const struct brood *n, uint32_t item)
{
    const struct step *s = find_item(n, item);

    return s ? s->child : (struct child){0};
}

static enum undo_kind undo_of_items(void)
{
    return tale_graph.steps[tale_step].undo_kind;
}

static bool is_open(enum child_state s)
{
    return s != CHILD_NONE && s != CHILD_PROCESSED && s != CHILD_COMPENSATED;
}

/* More failed for good than may, and no pivot took effect. */
static bool is_failing(const struct brood *n)
{
    const struct each_spec *each = &tale_graph.steps[tale_step].each;
    uint32_t count = n->tale.items.list.count;
    uint32_t failed = 0;

    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        const struct step *s = find_item(n, i);
        failed += s && s->state == STEP_FAILED && s->direction == DIRECTION_FORWARD;
        if (undo_of_items() == UNDO_PIVOT && s
            && (s->state == STEP_COMPLETED || s->child.state == CHILD_PROCESSED))
            return false;
    }
    return failed > (each->goes_on ? count : count * each->tolerate / 10000);
}

/* ---- what children are told ---- */

static void check_new(const struct brood *was, const struct event *ev, uint32_t item,
                      uint32_t number)
{
    const struct world_kid *k = &was->kids[item];

    CHECK(ev->kind == EVENT_BEGIN && ev->step >= was->tale.t.step_count, "a child is started: %s",
          tale_story());
    CHECK(k->phase == KID_NONE || k->phase == KID_UNDONE
              || (k->phase == KID_DONE && undo_of_items() == UNDO_NONE),
          "item %u has a second child: %s", item, tale_story());
    /* The number is part of the child's id: with one from before, it would be that child. */
    CHECK(number > k->number, "child %u of item %u has been there: %s", number, item, tale_story());
}

static void check_stop(const struct brood *n, const struct event *ev, uint32_t item)
{
    const struct tale *at = &n->tale;
    bool pivot = undo_of_items() == UNDO_PIVOT;

    CHECK(is_open(brood_child(n, item).state), "the child of %u has ended: %s", item, tale_story());
    CHECK(at->t.direction == DIRECTION_UNDO || ev->kind == EVENT_TIMEOUT
              || (pivot && at->t.stop == STOP_UNDO)
              || (is_failing(n) && tale_graph.steps[tale_step].on_failure == ON_FAILURE_UNDO),
          "why is the child of %u to stop? %s", item, tale_story());
}

/* Those behind it in the list are gone, or at it. What was told before is told again when a closed
 * task is reopened. */
static void check_undo(const struct brood *n, const struct event *ev, uint32_t item)
{
    CHECK(n->tale.t.direction == DIRECTION_UNDO && undo_of_items() == UNDO_CHILD
              && (n->kids[item].phase == KID_DONE || ev->kind == EVENT_REOPEN),
          "why is the child of %u undone? %s", item, tale_story());
    for (uint32_t i = item + 1; i < TALE_ITEMS && ev->kind != EVENT_REOPEN; i++) {
        const struct step *s = find_item(n, i);
        bool at_it = (s && (s->slot == SLOT_BACK || s->child.state == CHILD_STUCK))
                     || n->tale.seen[i].by_hand;
        CHECK(at_it || n->kids[i].phase == KID_NONE || n->kids[i].phase == KID_UNDONE,
              "%u before %u: %s", item, i, tale_story());
    }
}

static void tell_kid(struct brood *n, const struct brood *was, const struct event *ev,
                     uint32_t item)
{
    struct child before = brood_child(was, item);
    struct child is = brood_child(n, item);
    struct world_kid *k = &n->kids[item];
    enum child_wish sent = k->sent;

    if (is.number != before.number && is.state != CHILD_NONE) {
        check_new(was, ev, item, is.number);
        sent = WISH_NONE;
    }
    if (is.state == CHILD_NONE)
        return;
    kid_is_told(k, &before, &is);
    if (k->sent == sent)
        return;
    if (is.wish == WISH_STOP)
        check_stop(n, ev, item);
    if (is.wish == WISH_UNDO)
        check_undo(n, ev, item);
    if (is.wish == WISH_CLOSE)
        CHECK(n->tale.t.closed_at != 0 || n->tale.seen[item].by_hand,
              "why is the child of %u closed? %s", item, tale_story());
}

/* ---- events ---- */

static void note_of_item(struct brood *n, const struct event *ev, bool was_back)
{
    struct tale_item *s = &n->tale.seen[n->tale.steps[ev->step].item];

    s->begun |= ev->kind == EVENT_BEGIN || ev->kind == EVENT_BAD_INPUT;
    s->by_hand |= ev->kind == EVENT_SKIP || ev->kind == EVENT_SUPPLY;
    if (was_back && ev->kind == EVENT_RESULT && !ev->failed)
        s->undone++;
}

static void note(struct brood *n, const struct event *ev, bool was_back)
{
    struct tale *at = &n->tale;

    if (ev->step >= at->t.step_count) {
        note_of_item(n, ev, was_back);
        return;
    }
    if (ev->step != tale_step)
        return;
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        at->seen[i].by_hand |= ev->kind == EVENT_SKIP || ev->kind == EVENT_SUPPLY;
    if (ev->kind == EVENT_BEGIN || at->steps[tale_step].begun_at == 0) {
        memset(at->rows, 0, sizeof at->rows);
        memset(at->seen, 0, sizeof at->seen);
        tale_copy(at, at);
    }
}

static void check_refused(const struct tale *n, const struct tale *was)
{
    CHECK(memcmp(&n->t, &was->t, sizeof n->t) == 0
              && memcmp(&n->items, &was->items, sizeof n->items) == 0
              && memcmp(n->attempts, was->attempts, sizeof n->attempts) == 0,
          "a refused event changes something: %s", tale_story());
    for (uint16_t u = 0; u < task_unit_count(&n->t); u++)
        CHECK(memcmp(&n->steps[u].child, &was->steps[u].child, sizeof n->steps[u].child) == 0
                  && n->steps[u].state == was->steps[u].state,
              "a refused event changes unit %u: %s", u, tale_story());
}

/* The copy of the tale refers to itself: only the other is compared. */
bool brood_event(struct brood *n, const struct event *ev)
{
    static struct brood was;
    struct tale *at = &n->tale;
    struct task before = at->t;
    struct effects fx = {0};
    bool was_back = at->t.direction == DIRECTION_UNDO;

    brood_copy(&was, n);
    enum answer answer = decide(&tale_graph.w, &at->t, ev, at->now, &fx);
    CHECK(fx.changed == (answer == ANSWER_ACCEPTED) || answer == ANSWER_LATE, "%s", tale_story());
    if (!fx.changed) {
        was.tale.t.steps = before.steps;
        check_refused(at, &was.tale);
        return false;
    }
    if (ev->kind == EVENT_BRING) {
        memcpy(at->attempts[ev->step], ev->row->attempts, sizeof at->attempts[0]);
        at->steps[ev->step].attempts = at->attempts[ev->step];
    }
    CHECK(task_valid(&tale_graph.w, &at->t), "%s", tale_story());
    note(n, ev, was_back);
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        tell_kid(n, &was, ev, i);
    return true;
}

bool brood_kid_becomes(struct brood *n, uint32_t item, const struct world_kid *next)
{
    struct tale *at = &n->tale;
    enum child_state before = kid_tells(&n->kids[item]);
    struct event ev = {.kind = EVENT_CHILD,
                       .step = items_slot(&tale_graph.w, &at->t, tale_step, item),
                       .attempt = next->number,
                       .child = kid_tells(next)};
    bool is_held = ev.step < 0 && ev.child != before;

    if (is_held)
        ev.step = tale_hold(at, item);
    if (ev.child != before && ev.step < 0)
        return false;
    n->kids[item] = *next;
    if (ev.child == before)
        return true;
    ev.output.json = ev.child == CHILD_PROCESSED ? SLICE("1") : SLICE_NONE;
    if (ev.child == CHILD_COMPENSATED)
        ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
    if (!brood_event(n, &ev) && is_held) {
        item_let_go(&tale_graph.w, &at->t, (uint16_t)ev.step);
        at->steps[ev.step].attempts = at->attempts[ev.step];
        at->steps[ev.step].attempt_cap = TALE_ATTEMPTS;
    }
    return true;
}

/* ---- checks ---- */

/* The sums of what is in slots are those found anew. */
static void check_tally(const struct brood *n)
{
    static struct brood to;

    brood_copy(&to, n);
    items_tally(&tale_graph.w, &to.tale.t, tale_step);
    CHECK(memcmp(&to.tale.items.tally, &n->tale.items.tally, sizeof to.tale.items.tally) == 0,
          "the sums are old: %s", tale_story());
}

/* What is known of a child is true, but that one that is told to stop may be in error still. */
static void check_known(const struct brood *n, uint32_t item)
{
    struct child c = brood_child(n, item);
    enum child_state tells = kid_tells(&n->kids[item]);

    if (c.state == CHILD_NONE || c.number != n->kids[item].number)
        return;
    CHECK(c.state == tells || (tells == CHILD_ERROR && c.wish == WISH_STOP),
          "the child of %u is %s, known as %s: %s", item, child_state_text(tells),
          child_state_text(c.state), tale_story());
}

static void check_places(const struct brood *n)
{
    const struct tale *at = &n->tale;
    bool stops = is_failing(n) && tale_graph.steps[tale_step].on_failure == ON_FAILURE_UNDO
                 && at->t.direction == DIRECTION_FORWARD && at->t.state != TASK_ERROR
                 && at->steps[tale_step].state == STEP_WAITING;
    uint32_t open = 0;

    for (uint16_t u = at->t.step_count; u < task_unit_count(&at->t); u++) {
        const struct step *s = &at->steps[u];
        if ((s->slot != SLOT_TAKEN && s->slot != SLOT_BACK) || !is_open(s->child.state))
            continue;
        open += s->state == STEP_WAITING || s->state == STEP_UNDOING;
        CHECK(!stops || s->child.wish != WISH_NONE, "the child of %u was not told to stop: %s",
              s->item, tale_story());
        CHECK(at->steps[tale_step].state != STEP_FAILED
                  || at->steps[tale_step].direction == DIRECTION_UNDO || s->slot == SLOT_BACK,
              "the step failed while the child of %u was open: %s", s->item, tale_story());
    }
    CHECK(open <= tale_graph.steps[tale_step].each.concurrency, "%u are at work: %s", open,
          tale_story());
}

/* L2 and L4 */
static void check_end_of(const struct brood *n, uint32_t item)
{
    const struct world_kid *k = &n->kids[item];
    const struct tale_item *seen = &n->tale.seen[item];
    const struct step *s = find_item(n, item);
    bool gone = k->phase == KID_NONE || k->phase == KID_UNDONE;

    if (seen->by_hand)
        return;
    CHECK(gone || k->phase == KID_DONE, "the child of %u is open: %s", item, tale_story());
    if (n->tale.t.state == TASK_COMPENSATED)
        CHECK(gone || undo_of_items() == UNDO_NONE
                  || (undo_of_items() == UNDO_CALL && seen->undone == 1),
              "the child of %u was not undone: %s", item, tale_story());
    else if (s && s->state == STEP_COMPLETED)
        CHECK(k->phase == KID_DONE, "item %u completed without its child: %s", item, tale_story());
}

void brood_check(const struct brood *n)
{
    const struct tale *at = &n->tale;
    bool stopped = false;

    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        check_known(n, i);
        stopped |= brood_child(n, i).state == CHILD_ERROR || brood_child(n, i).state == CHILD_STUCK;
        if (task_state_is_end(at->t.state))
            check_end_of(n, i);
    }
    check_places(n);
    check_tally(n);
    CHECK(at->t.state != TASK_ERROR || stopped || at->t.closed_at != 0
              || !slice_is(at->t.error.code, CODE_CHILD),
          "in error for a child that is not: %s", tale_story());
}
