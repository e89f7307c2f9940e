/* The nodes of the search of history_items_test.c, and the observer that judges them
 * (history_items.h). */
#include "core/history_items.h"

#include "core/items.h"

struct graph tale_graph;
uint16_t tale_step;

/* ---- the story ---- */

static struct {
    char what[100][24];
    int len;
} story;

void tale_note(const char *what, int unit)
{
    CHECK(story.len < (int)COUNT_OF(story.what), "too long");
    (void)snprintf(story.what[story.len++], sizeof story.what[0], "%s %d", what, unit);
}

void tale_forget(void)
{
    CHECK(story.len > 0, "no story");
    story.len--;
}

const char *tale_story(void)
{
    static char text[3000];
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < story.len; i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? ", " : "", story.what[i]);
    return text;
}

/* ---- nodes ---- */

void tale_make(struct tale *n, const char *graph, struct tale_left left)
{
    memset(n, 0, sizeof *n);
    graph_make(&tale_graph, graph);
    CHECK(tale_graph.w.step_count + tale_graph.w.slot_count <= TALE_UNITS, "%s", graph);
    n->now = KIT_BEGIN;
    n->left = left;
    n->t = (struct task){
        .id = SLICE("t"),
        .priority = 5,
        .submitted_at = n->now,
        .complete_by = graph_complete_by(&tale_graph),
        .input = {.json = SLICE("{}")},
        .steps = n->steps,
        .step_count = tale_graph.w.step_count,
        .slot_count = tale_graph.w.slot_count,
    };
    for (uint16_t i = 0; i < task_unit_count(&n->t); i++) {
        n->steps[i].attempts = n->attempts[i];
        n->steps[i].attempt_cap = TALE_ATTEMPTS;
        if (tale_graph.steps[i].kind == KIND_EACH) {
            n->steps[i].items = &n->items;
            tale_step = i;
        }
    }
}

void tale_copy(struct tale *to, const struct tale *from)
{
    memcpy(to, from, sizeof *to);
    to->t.steps = to->steps;
    for (uint16_t i = 0; i < task_unit_count(&to->t); i++)
        to->steps[i].attempts = to->attempts[i];
    to->steps[tale_step].items = &to->items;
    for (uint16_t i = 0; i < TALE_ITEMS; i++)
        to->rows[i].item.attempts = to->rows[i].attempts;
}

static void put(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    *h ^= *h >> 29;
}

/* All times that passed by more than the margin are equivalent. */
static void put_time(uint64_t *h, int64_t at, int64_t now)
{
    int64_t left = at - now;

    put(h,
        at == 0 ? UINT64_MAX : (uint64_t)(left < -CLOCK_MARGIN_MS ? -CLOCK_MARGIN_MS - 1 : left));
}

static void put_step(uint64_t *h, const struct step *s, int64_t now)
{
    put(h, (uint64_t)s->state | (uint64_t)s->direction << 8 | (uint64_t)s->slot << 16
               | (uint64_t)s->supplied << 24 | (uint64_t)(s->error.code.ptr != NULL) << 25
               | (uint64_t)(s->input.json.ptr != NULL) << 26 | (uint64_t)(s->begun_at != 0) << 27
               | (uint64_t)s->item << 32);
    put(h, (uint64_t)s->attempt << 32 | s->resolved);
    put(h, (uint64_t)s->failure_count << 32 | s->generation);
    put_time(h, s->wait_until, now);
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        const struct attempt *a = &s->attempts[i];
        put(h, (uint64_t)a->number | (uint64_t)a->direction << 32 | (uint64_t)a->outcome << 40
                   | (uint64_t)a->effect << 48 | (uint64_t)a->generation << 56);
        put_time(h, a->complete_by, now);
    }
}

uint64_t tale_key(const struct tale *n)
{
    const struct task *t = &n->t;
    const struct items *in = &n->items;
    uint64_t h = 1;

    put(&h, (uint64_t)t->state | (uint64_t)t->direction << 8 | (uint64_t)t->stop << 16
                | (uint64_t)(t->locked_by.ptr != NULL) << 24 | (uint64_t)(t->paused_at != 0) << 25
                | (uint64_t)(t->cause.error.code.ptr != NULL) << 26
                | (uint64_t)t->deadline_passed << 27);
    put_time(&h, t->complete_by, n->now);
    put_time(&h, t->paused_at, n->now);
    put(&h, (uint64_t)n->left.faults | (uint64_t)n->left.late << 8 | (uint64_t)n->left.acts << 16);
    put(&h, (uint64_t)in->begun | (uint64_t)in->undo_below << 32 | (uint64_t)in->list.count << 48);
    for (uint16_t i = 0; i < task_unit_count(t); i++)
        put_step(&h, &n->steps[i], n->now);
    for (uint16_t i = 0; i < TALE_ITEMS; i++) {
        put(&h, n->rows[i].is_there);
        if (n->rows[i].is_there)
            put_step(&h, &n->rows[i].item, n->now);
        const struct tale_item *s = &n->seen[i];
        put(&h, (uint64_t)s->resolved << 1 | s->excused);
        put(&h, (uint64_t)s->begun | (uint64_t)s->failed << 1 | (uint64_t)s->done << 2
                    | (uint64_t)s->by_hand << 3 | (uint64_t)s->back << 4 | (uint64_t)s->undone << 8
                    | (uint64_t)s->running << 16 | (uint64_t)s->unknown << 32);
    }
    return h;
}

/* ---- the store ---- */

bool tale_has_unstored(const struct tale *n)
{
    for (uint16_t u = n->t.step_count; u < task_unit_count(&n->t); u++)
        if (n->steps[u].slot == SLOT_RESTING)
            return true;
    return false;
}

bool tale_store(struct tale *n)
{
    if (!tale_has_unstored(n))
        return false;
    for (uint16_t u = n->t.step_count; u < task_unit_count(&n->t); u++) {
        if (n->steps[u].slot != SLOT_RESTING)
            continue;
        struct tale_row *row = &n->rows[n->steps[u].item];
        row->is_there = true;
        row->item = n->steps[u];
        row->item.slot = SLOT_FREE;
        memcpy(row->attempts, n->attempts[u], sizeof row->attempts);
        row->item.attempts = row->attempts;
    }
    items_stored(&tale_graph.w, &n->t);
    CHECK(task_valid(&tale_graph.w, &n->t), "%s", tale_story());
    return true;
}

int tale_hold(struct tale *n, uint32_t item)
{
    int slot = tale_free_slot(n);

    if (slot < 0 || !n->rows[item].is_there
        || items_slot(&tale_graph.w, &n->t, tale_step, item) >= 0)
        return -1;
    item_hold(&tale_graph.w, &n->t, (uint16_t)slot, &n->rows[item].item);
    memcpy(n->attempts[slot], n->rows[item].attempts, sizeof n->attempts[0]);
    n->steps[slot].attempts = n->attempts[slot];
    return slot;
}

const struct step *tale_row_to_bring(const struct tale *n)
{
    for (int i = TALE_ITEMS; i-- > 0;)
        if (n->rows[i].is_there && (uint32_t)i < n->items.undo_below
            && items_slot(&tale_graph.w, &n->t, tale_step, (uint32_t)i) < 0
            && step_needs_undo(&tale_graph.steps[tale_graph.w.step_count], &n->rows[i].item))
            return &n->rows[i].item;
    return NULL;
}

int tale_free_slot(const struct tale *n)
{
    for (uint16_t u = n->t.step_count; u < task_unit_count(&n->t); u++)
        if (n->steps[u].slot == SLOT_FREE)
            return u;
    return -1;
}

/* ---- the observer ---- */

static bool has_effect(const struct tale_item *s)
{
    return s->done || s->unknown != 0;
}

/* An item is to be undone next: later ones were, or are at it. */
static void check_order(const struct tale *n, uint32_t item)
{
    for (uint32_t k = item + 1; k < TALE_ITEMS; k++) {
        bool at_it = false;
        for (uint16_t u = n->t.step_count; u < task_unit_count(&n->t); u++)
            at_it |= n->steps[u].slot == SLOT_BACK && n->steps[u].item == k;
        CHECK(!has_effect(&n->seen[k]) || n->seen[k].undone > 0 || at_it, "%u before %u: %s", item,
              k, tale_story());
    }
}

/* They are undone before. */
static void check_steps_behind(const struct tale *n)
{
    const struct workflow_step *ws = &tale_graph.steps[tale_step];

    for (uint16_t k = 0; k < ws->after_count; k++) {
        const struct step *s = &n->steps[ws->after[k]];
        CHECK(s->state == STEP_UNDONE || !(step_has_effect(s) || step_in_doubt(s)),
              "step %u is not undone: %s", ws->after[k], tale_story());
    }
}

static void forward_ended(struct tale_item *s, const struct event *ev, bool late)
{
    uint16_t bit = (uint16_t)(1u << ev->attempt);

    if (ev->kind == EVENT_RESULT && !ev->failed) {
        s->done = true;
        s->unknown = 0;
        s->failed = late && s->failed;
    } else if (ev->kind == EVENT_TIMEOUT
               || (ev->kind == EVENT_RESULT && ev->effect != EFFECT_NONE)) {
        s->unknown |= s->done ? 0 : bit;
    } else {
        s->unknown &= (uint16_t)~bit;
    }
}

/* Neither would the step be undone now. */
static bool is_too_late_to_undo(const struct tale *n)
{
    return n->t.direction == DIRECTION_UNDO
           && (n->steps[tale_step].state == STEP_UNDONE || n->t.state == TASK_COMPENSATED);
}

static void item_event(struct tale *n, const struct event *ev, uint32_t item, bool late,
                       bool was_back)
{
    struct tale_item *s = &n->seen[item];
    bool back = ev->direction == DIRECTION_UNDO;

    if (ev->kind == EVENT_BRING) {
        check_order(n, item);
        check_steps_behind(n);
    }
    if (ev->kind == EVENT_START || ev->kind == EVENT_BAD_INPUT)
        s->begun = true;
    s->back |= ev->kind == EVENT_BAD_INPUT && was_back;
    if (ev->kind == EVENT_START) {
        CHECK(!back || has_effect(s) || s->back, "undone without need: %s", tale_story());
        CHECK(!back || s->undone == 0, "undone twice: %s", tale_story());
        s->back |= back;
        s->running++;
    }
    if (ev->kind == EVENT_RESULT || ev->kind == EVENT_TIMEOUT || ev->kind == EVENT_NOT_SENT) {
        s->running = late && s->running;
        s->excused |= late && !back && !ev->failed && s->resolved && is_too_late_to_undo(n);
        if (!back)
            forward_ended(s, ev, late);
        else if (ev->kind == EVENT_RESULT && !ev->failed)
            s->undone++;
    }
    s->back |= ev->kind == EVENT_SKIP && was_back;
    if (ev->kind == EVENT_SKIP && was_back)
        s->undone++;
    s->by_hand |= ev->kind == EVENT_SKIP || ev->kind == EVENT_SUPPLY;
    s->done |= ev->kind == EVENT_SUPPLY;
    s->resolved |= ev->kind == EVENT_RESOLVE;
    if (ev->kind == EVENT_RESOLVE)
        s->unknown = 0;
}

static void tell_observer(struct tale *n, const struct event *ev, uint32_t item, bool late,
                          bool was_back)
{
    if (unit_is_slot(&tale_graph.w, ev->step))
        item_event(n, ev, item, late, was_back);
    else if (ev->kind == EVENT_BEGIN
             || (ev->kind == EVENT_RETRY_FROM && n->steps[tale_step].begun_at == 0)) {
        memset(n->rows, 0, sizeof n->rows);
        memset(n->seen, 0, sizeof n->seen);
        tale_copy(n, n);
    }
}

/* ---- events ---- */

struct event tale_event_at(const struct tale *n, enum event_kind kind, int unit)
{
    struct event ev = {.kind = kind, .step = unit, .instance = SLICE("n/1")};

    if (unit < 0)
        return ev;
    ev.direction = n->steps[unit].direction;
    ev.attempt = n->steps[unit].attempt;
    if (kind == EVENT_START) {
        struct attempt a = task_next_attempt(&tale_graph.w, &n->t, unit, n->now);
        ev.direction = a.direction;
        ev.attempt = a.number;
        ev.input.json = SLICE("1");
    }
    if (kind == EVENT_BAD_INPUT)
        ev.error = (struct fault_note){SLICE("expression"), SLICE("no such field")};
    return ev;
}

static bool begins_something(enum event_kind k)
{
    return k == EVENT_BEGIN || k == EVENT_START || k == EVENT_BAD_INPUT || k == EVENT_BRING;
}

static void check_refused(const struct tale *n, const struct tale *was)
{
    CHECK(memcmp(&n->t, &was->t, sizeof n->t) == 0
              && memcmp(n->steps, was->steps, sizeof n->steps) == 0
              && memcmp(&n->items, &was->items, sizeof n->items) == 0
              && memcmp(n->attempts, was->attempts, sizeof n->attempts) == 0,
          "a refused event changes something: %s", tale_story());
}

bool tale_event(struct tale *n, const struct event *ev)
{
    static struct tale was;
    struct effects fx = {0};
    uint32_t row_item = ev->kind == EVENT_BRING ? ev->row->item : 0;

    memcpy(&was, n, sizeof was);
    enum answer answer = decide(&tale_graph.w, &n->t, ev, n->now, &fx);
    CHECK(fx.changed == (answer == ANSWER_ACCEPTED) || answer == ANSWER_LATE, "%s", tale_story());
    if (!fx.changed) {
        check_refused(n, &was);
        return false;
    }
    if (ev->kind == EVENT_BRING) {
        memcpy(n->attempts[ev->step], ev->row->attempts, sizeof n->attempts[0]);
        n->steps[ev->step].attempts = n->attempts[ev->step];
    }
    CHECK(task_valid(&tale_graph.w, &n->t), "%s", tale_story());
    CHECK(!begins_something(ev->kind) || (was.t.paused_at == 0 && was.t.state != TASK_ERROR),
          "something begins: %s", tale_story());
    if (ev->step >= 0)
        tell_observer(n, ev, ev->kind == EVENT_BRING ? row_item : n->steps[ev->step].item,
                      answer == ANSWER_LATE, was.t.direction == DIRECTION_UNDO);
    return true;
}

/* ---- checks ---- */

/* The item in its slot or its row; NULL: it has not begun. */
static const struct step *find_item(const struct tale *n, uint32_t item)
{
    const struct step *found = n->rows[item].is_there ? &n->rows[item].item : NULL;
    int count = 0;

    for (uint16_t u = n->t.step_count; u < task_unit_count(&n->t); u++)
        if (n->steps[u].slot != SLOT_FREE && n->steps[u].item == item) {
            found = &n->steps[u];
            count++;
        }
    CHECK(count <= 1, "item %u twice: %s", item, tale_story());
    return found;
}

static void check_item(const struct tale *n, uint32_t item)
{
    const struct step *s = find_item(n, item);
    const struct tale_item *seen = &n->seen[item];

    CHECK((s != NULL) == seen->begun, "item %u has begun: %s", item, tale_story());
    if (!s)
        return;
    CHECK(step_is_open(s) == (seen->running > 0), "item %u runs: %s", item, tale_story());
    CHECK(step_has_effect(s) == seen->done, "effect of %u: %s", item, tale_story());
    CHECK(seen->done || step_in_doubt(s) == (seen->unknown != 0), "doubt of %u: %s", item,
          tale_story());
}

/* L2 */
static void check_compensated(const struct tale *n)
{
    bool undoes = tale_graph.steps[tale_step].undo_kind == UNDO_CALL;

    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        const struct tale_item *s = &n->seen[i];
        CHECK(s->excused || s->undone == (undoes && (has_effect(s) || s->back) ? 1 : 0),
              "item %u was undone %u times: %s", i, s->undone, tale_story());
    }
}

/* How many may fail. */
static uint32_t allowed(const struct tale *n)
{
    const struct each_spec *each = &tale_graph.steps[tale_step].each;

    return each->goes_on ? n->items.list.count : n->items.list.count * each->tolerate / 10000;
}

static void check_processed(const struct tale *n)
{
    uint32_t failed = 0;

    if (n->steps[tale_step].state != STEP_COMPLETED || n->steps[tale_step].supplied)
        return;
    for (uint32_t i = 0; i < n->items.list.count; i++) {
        const struct step *s = find_item(n, i);
        CHECK(s, "item %u is missing: %s", i, tale_story());
        failed += s->state == STEP_FAILED;
        CHECK(s->state == STEP_FAILED || n->seen[i].done || n->seen[i].by_hand, "item %u: %s", i,
              tale_story());
    }
    CHECK(failed <= allowed(n), "%u failed: %s", failed, tale_story());
}

static void check_places(const struct tale *n)
{
    uint32_t running = 0;

    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        running += n->seen[i].running;
    CHECK(running <= tale_graph.steps[tale_step].each.concurrency, "%u run: %s", running,
          tale_story());
}

void tale_check(const struct tale *n)
{
    CHECK(task_valid(&tale_graph.w, &n->t), "%s", tale_story());
    check_places(n);
    if (n->steps[tale_step].begun_at != 0)
        for (uint32_t i = 0; i < TALE_ITEMS; i++)
            check_item(n, i);
    if (n->t.state == TASK_COMPENSATED)
        check_compensated(n);
    if (n->t.state == TASK_PROCESSED)
        check_processed(n);
}
