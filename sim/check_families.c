/* Families: what tasks tell each other goes with the change that it follows from, each child is
 * started once, and all that a task started is gone when it is undone. A model of its own: it knows
 * rows, submissions and notices as JSON. See family.h; check.h lists all checkers. */

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/world.h"
#include "json/json.h"

enum { WORDS_MAX = 2000, LATE_MS = 60000 };

/* What one task told another, in one commit. */
struct word {
    const struct subject *from;
    struct subject *to;
    bool of_child; /* else of a parent */
    bool of_pause;
    uint32_t unit, number; /* unit: see items.h */
    enum child_state state;
    enum child_wish wish;
    int64_t paused_at;
    bool matched;
};

/* What a task has told its family, with its last change that was checked. */
struct to_family {
    enum child_state told;
    uint32_t told_ever; /* bits */
    int64_t paused_at;
    struct seen_child steps[FLOW_STEPS_MAX];
    bool changed;
};

static struct {
    struct word words[WORDS_MAX];
    uint32_t count;
    const struct subject *started[WORDS_MAX];
    uint32_t started_count;
} batch;

static void must(const struct subject *t, bool ok, const char *rule, const char *what)
{
    if (ok)
        return;
    describe(t);
    if (t->parent)
        describe(t->parent);
    broken(rule, "%s: %s", t->id, what);
}

void check_families_begin(void)
{
    batch.count = batch.started_count = 0;
}

static struct to_family *told_by(struct subject *t)
{
    if (!t->to_family) {
        t->to_family = arena_alloc(&world.arena, sizeof *t->to_family);
        *t->to_family = (struct to_family){.told = CHILD_RUNNING};
    }
    return t->to_family;
}

static const char *word_text(const struct word *w)
{
    if (w->of_child)
        return text_of("%s/%s: child %u is %s", w->to->id, unit_name(w->unit), w->number,
                       child_state_text(w->state))
            .ptr;
    if (w->of_pause)
        return text_of("%s: paused at %" PRId64, w->to->id, w->paused_at).ptr;
    return text_of("%s: %s", w->to->id, child_wish_text(w->wish)).ptr;
}

/* ---- what a child is, as far as its parent has to know ---- */

static bool pivot_took_effect(const struct subject *t, const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++) {
        enum child_state c = s->steps[i].child.state;
        if (t->flow->steps[i].undo == UNDO_PIVOT
            && (s->steps[i].state == STEP_COMPLETED || s->steps[i].effects > 0 || c == CHILD_STANDS
                || c == CHILD_PROCESSED || s->steps[i].children_standing > 0))
            return true;
    }
    return false;
}

static enum child_state stands(const struct subject *t)
{
    const struct seen *s = &t->seen;
    bool back = s->direction == DIRECTION_UNDO;
    bool asked = s->asked == WISH_STOP || s->asked == WISH_UNDO;

    if (s->state == TASK_COMPENSATED)
        return CHILD_COMPENSATED;
    if (s->state == TASK_PROCESSED)
        return s->asked == WISH_UNDO ? CHILD_STUCK : CHILD_PROCESSED;
    if (s->state == TASK_ERROR)
        return back || asked ? CHILD_STUCK : CHILD_ERROR;
    if (back)
        return CHILD_TURNED;
    return s->asked == WISH_STOP && pivot_took_effect(t, s) ? CHILD_STANDS : CHILD_RUNNING;
}

static struct subject *child_of(const struct subject *t, uint32_t unit, uint32_t number)
{
    for (uint32_t i = subjects.count; i-- > 0 && subjects.list[i].parent;) {
        struct subject *c = &subjects.list[i];
        if (c->parent == t && c->parent_unit == unit && c->parent_number == number)
            return c;
    }
    return NULL;
}

const struct subject *child_latest(const struct subject *t, uint32_t unit)
{
    return child_of(t, unit, seen_unit(t, unit)->child.number);
}

static bool is_over(const struct subject *t)
{
    return t->seen.state == TASK_PROCESSED || t->seen.state == TASK_COMPENSATED;
}

static bool is_active(const struct subject *t)
{
    return t->seen.revision != 0 && !seen_is_end(&t->seen);
}

static bool is_by_hand(const struct subject *t, uint32_t unit)
{
    const struct seen_step *s = seen_unit(t, unit);

    return s->state == STEP_SKIPPED || s->supplied
           || (s->state == STEP_UNDONE && unit_was_skipped(t, unit));
}

static bool undone_by_agent(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_UNDO
            && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return true;
    return false;
}

/* ---- words ---- */

static const struct json *first_line(struct slice body, struct arena *a)
{
    const char *end = memchr(body.ptr, '\n', body.len);
    struct json *j = NULL;

    if (end)
        body.len = (size_t)(end - body.ptr);
    if (json_parse(a, body, &j, NULL) != ERR_OK)
        broken("a word can be read", "%.*s", SLICE_ARG(body));
    return j;
}

static void read_of_child(struct word *w, const struct json *j)
{
    bool ok = child_state_parse(json_get_text(j, "state"), &w->state);

    must(w->to, ok, "a word can be read", "state");
    w->unit = w->from->parent_unit;
    must(w->to, slice_is(json_get_text(j, "step"), unit_name(w->unit)), "a word can be read",
         "step");
    w->number = (uint32_t)json_get_int(j, "number", 0);
    if (w->state == CHILD_RUNNING || w->state == CHILD_STANDS || w->state == CHILD_TURNED)
        w->to->verbs = true; /* it may go on in spite of an error */
}

static void read_of_parent(struct word *w, const struct json *j)
{
    w->of_pause = json_get(j, "paused_at") != NULL;
    w->paused_at = json_get_int(j, "paused_at", 0);
    bool ok = w->of_pause || child_wish_parse(json_get_text(j, "wish"), &w->wish);
    must(w->to, ok, "a word can be read", "wish");
    w->to->verbs = true;
}

void check_word(struct subject *to, const struct notice_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *j = first_line(row->body, &a);
    struct word *w = &batch.words[batch.count++];

    ASSERT(batch.count < WORDS_MAX);
    *w = (struct word){.from = subject_find(row->sender),
                       .to = to,
                       .of_child = slice_is(row->kind, "child")};
    must(to, w->from && (w->of_child ? w->from->parent == to : to->parent == w->from),
         "who tells a task something is of its family", "a stranger");
    if (w->of_child)
        read_of_child(w, j);
    else
        read_of_parent(w, j);
    trace("word: %s", word_text(w));
}

static void expect(const struct word *like)
{
    for (uint32_t i = 0; i < batch.count; i++) {
        struct word *w = &batch.words[i];
        if (w->matched || w->from != like->from || w->to != like->to
            || w->of_child != like->of_child || w->of_pause != like->of_pause
            || w->unit != like->unit || w->number != like->number || w->state != like->state
            || w->wish != like->wish || w->paused_at != like->paused_at)
            continue;
        w->matched = true;
        return;
    }
    must(like->from, false, "what follows from a change is told with it", word_text(like));
}

static void cover_state(enum child_state before, enum child_state now)
{
    if (now == CHILD_ERROR)
        covered(COVER_CHILD_ERROR);
    if (now == CHILD_STUCK)
        covered(COVER_CHILD_STUCK);
    if (now == CHILD_STANDS)
        covered(COVER_CHILD_STANDS);
    if (now == CHILD_TURNED)
        covered(COVER_CHILD_TURNED);
    if (now == CHILD_RUNNING && before == CHILD_ERROR)
        covered(COVER_CHILD_WENT_ON);
}

static void expect_of_child(struct subject *t)
{
    struct to_family *told = t->to_family;
    enum child_state now = stands(t);

    if (now == told->told)
        return;
    cover_state(told->told, now);
    expect(&(struct word){.from = t,
                          .to = t->parent,
                          .of_child = true,
                          .unit = t->parent_unit,
                          .number = t->parent_number,
                          .state = now});
    told->told = now;
    told->told_ever |= BIT(now);
}

static void expect_started(const struct subject *t, const struct subject *c)
{
    for (uint32_t i = 0; i < batch.started_count; i++)
        if (batch.started[i] && batch.started[i] == c) {
            batch.started[i] = NULL;
            return;
        }
    must(t, false, "a child is started by the change that counts it", "none is");
}

static void cover_wish(uint32_t unit, enum child_wish wish)
{
    if (wish == WISH_STOP)
        covered(COVER_CHILD_STOPPED);
    if (wish == WISH_UNDO)
        covered(unit_is_item(unit) ? COVER_ITEM_CHILD_UNDONE : COVER_CHILD_UNDONE);
    if (wish == WISH_CLOSE)
        covered(unit_is_item(unit) ? COVER_ITEM_CHILD_LEFT : COVER_CHILD_CLOSED);
}

static bool stopped(enum child_state s)
{
    return s == CHILD_ERROR || s == CHILD_STUCK;
}

/* `listens`: it is a step, or an item at work. */
static void expect_of_parent(struct subject *t, uint32_t unit, const struct seen_child *was,
                             bool listens)
{
    const struct seen_step *s = seen_unit(t, unit);
    const struct seen_child *is = &s->child;
    bool runs =
        listens
        && (seen_child_is_open(s) || (is->state == CHILD_PROCESSED && is->wish == WISH_UNDO));
    bool is_new = is->number != was->number;
    int64_t paused_at = is_new ? 0 : t->to_family->paused_at;

    if (is->number == 0)
        return;
    struct subject *c = child_of(t, unit, is->number);
    if (is_new)
        expect_started(t, c);
    must(t, c != NULL, "a child is started by the change that counts it", "none is");
    struct word w = {.from = t, .to = c, .wish = is->wish};
    if (is->state != CHILD_NONE && is->wish != (is_new ? WISH_NONE : was->wish)) {
        cover_wish(unit, is->wish);
        expect(&w);
    }
    w = (struct word){.from = t, .to = c, .of_pause = true, .paused_at = t->seen.paused_at};
    if (stopped(was->state) && !stopped(is->state)) /* what is in error is not paused */
        paused_at = 0;
    if (runs && t->seen.paused_at != paused_at) {
        covered(COVER_CHILD_PAUSED);
        expect(&w);
    }
}

/* ---- children ---- */

static bool is_gone_for_good(const struct subject *c)
{
    return c->seen.revision == 0 ? c->refusal != REFUSED_BY_NOBODY : is_over(c);
}

/* A child of the same step, or of an item of this number, in any list. */
static bool is_earlier(const struct subject *c, const struct subject *t)
{
    return c != t && c->parent_unit % UNITS_OF_LIST == t->parent_unit % UNITS_OF_LIST;
}

static void check_earlier(const struct subject *t, const struct flow_step *f,
                          const struct subject *c)
{
    must(t, c->parent_number < t->parent_number, "children are numbered", "not upwards");
    must(t, is_gone_for_good(c), "a step has one child at a time", "another is open");
    must(t, f->undo == UNDO_NONE || c->seen.state != TASK_PROCESSED,
         "a step has one child at a time", "another is processed");
}

void check_child_started(struct subject *t, const struct submission_row *row)
{
    const struct subject *p = t->parent;
    const struct flow_step *f = &p->flow->steps[t->parent_step];

    ASSERT(batch.started_count < WORDS_MAX);
    batch.started[batch.started_count++] = t;
    must(t, slice_is(row->workflow, t->flow->name), "a child is of the workflow of its step",
         "another");
    must(t, t->root == (p->root ? p->root : p), "a child knows the root of its family", "another");
    must(t, seen_unit(p, t->parent_unit)->child.number == t->parent_number, "children are numbered",
         "another number");
    must(t, seen_unit(p, t->parent_unit)->complete_by == 0 || t->cap != 0,
         "a child has no more time than its step", "it has");
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].parent == p && is_earlier(&subjects.list[i], t))
            check_earlier(t, f, &subjects.list[i]);
    if (!unit_is_item(t->parent_unit) && t->parent_number > 1)
        must(t, child_of(p, t->parent_unit, t->parent_number - 1), "children are numbered",
             "one is missing");
}

static void check_begin(const struct subject *t, uint32_t unit, const struct seen_step *s,
                        const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(unit)];
    int64_t by = f->child_ms ? s->begun_at + f->child_ms : 0;

    must(t, s->begun_at <= latest_now() && s->begun_at >= new->not_before, "a child is started now",
         "begun_at");
    for (uint32_t p = 0; p < new->step_count; p++)
        if (f->past & BIT(p) && new->direction == DIRECTION_FORWARD)
            must(t, seen_passed(&t->flow->steps[p], &new->steps[p]),
                 "a child is started when all before it has ended", "before");
    must(t, s->complete_by == by || s->child.wish == WISH_STOP || (t->verbs && s->complete_by > by),
         "a child has the time of its step", "complete_by");
}

/* Its child says so, in words that it told, and truly. */
static void check_end(const struct subject *t, uint32_t unit, const struct seen_step *s,
                      enum task_state end, const char *rule)
{
    const struct subject *c = child_of(t, unit, s->child.number);
    bool never = end == TASK_COMPENSATED && c && c->refusal != REFUSED_BY_NOBODY;

    must(t, c != NULL, rule, "it has no child");
    must(t, never || (c->seen.revision != 0 && c->seen.state == end), rule, c->id);
}

static void check_stop(const struct subject *t, uint32_t unit, const struct seen_step *was,
                       const struct seen_step *is, const struct seen *old, const struct seen *new)
{
    /* An undo that an operator asks for, and an overrun that then holds the task, may be one
     * commit. */
    bool asked = new->stop == STOP_HOLD && t->wanted[ASK_UNDO] > 0
                 && new->cause.code == seen_hash(SLICE("overrun"));
    bool back = new->direction == DIRECTION_UNDO || new->stop == STOP_UNDO || old->stop == STOP_UNDO
                || asked;
    int64_t by = was->complete_by ? was->complete_by : is->complete_by;
    /* What it was stopped for may have been settled by its end, in the same commit. */
    bool ended = is->child.state == CHILD_PROCESSED && was->child.state != CHILD_PROCESSED;

    if (back || ended || (unit_is_item(unit) && items_stop_children(t, step_of_unit(unit))))
        return;
    covered(COVER_CHILD_LATE);
    must(t, by != 0 || t->flow->steps[step_of_unit(unit)].child_ms,
         "no child is stopped without a reason", "none");
    must(t, by == 0 || by <= latest_now(), "no child is stopped before its time", "it is");
}

static void check_wish(const struct subject *t, uint32_t unit, const struct seen_step *was,
                       const struct seen_step *s, const struct seen *old, const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(unit)];
    const struct subject *c = child_of(t, unit, s->child.number);

    if (s->child.wish == was->child.wish)
        return;
    if (s->child.wish == WISH_STOP)
        check_stop(t, unit, was, s, old, new);
    if (s->child.wish != WISH_UNDO)
        return;
    if (was->child.wish == WISH_CLOSE && was->child.state == CHILD_STUCK)
        return; /* its undo was asked for before it was closed, and is still to be done */
    must(t, s->child.state == CHILD_PROCESSED && f->undo == UNDO_CHILD,
         "only what is processed is told to be undone", "it is not");
    must(t, c && c->seen.state == TASK_PROCESSED, "only what is processed is told to be undone",
         "it is not so");
    must(t, new->direction == DIRECTION_UNDO, "nothing is undone going forward", "a child");
    for (uint32_t q = 0; q < t->flow->step_count; q++)
        if (f->future & BIT(q))
            must(t,
                 !seen_open(&new->steps[q]) && !seen_needs_undo(&t->flow->steps[q], &new->steps[q]),
                 "a child is undone after what came after it", "it is not");
}

/* What it knows of a child was told, and so is true of it then. */
static void check_known(const struct subject *t, uint32_t unit, const struct seen_step *before,
                        const struct seen_step *after)
{
    const struct seen_child *was = &before->child;
    const struct seen_child *is = &after->child;

    if (is->state == CHILD_NONE || (is->number == was->number && is->state == was->state)
        || is->state == CHILD_RUNNING)
        return;
    if (is->state == CHILD_PROCESSED && is->wish != WISH_UNDO)
        check_end(t, unit, after, TASK_PROCESSED, "what is known of a child is true");
    if (is->state == CHILD_COMPENSATED)
        check_end(t, unit, after, TASK_COMPENSATED, "what is known of a child is true");
    const struct subject *c = child_of(t, unit, is->number);
    must(t,
         c
             && ((c->to_family && c->to_family->told_ever & BIT(is->state))
                 || c->refusal != REFUSED_BY_NOBODY),
         "what is known of a child was told", child_state_text(is->state));
}

void check_child_unit(const struct subject *t, uint32_t unit, const struct seen_step *a,
                      const struct seen_step *b, const struct seen *old, const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[step_of_unit(unit)];
    bool is_first = unit_is_item(unit) && a->child.number == 0; /* of this list */

    for (uint32_t k = 0; k < b->attempt_count; k++)
        must(t, b->attempts[k].direction == DIRECTION_UNDO && f->undo == UNDO_CALL,
             "what starts a child has no attempts", "one");
    must(t,
         b->child.number == a->child.number || b->child.number == a->child.number + 1 || is_first,
         "children are numbered", "more than one");
    if (b->child.number != a->child.number && b->child.state != CHILD_NONE)
        check_begin(t, unit, b, new);
    if (b->state == STEP_COMPLETED && a->state != STEP_COMPLETED && !b->supplied)
        must(t, b->child.state == CHILD_PROCESSED, "a step completes with its child",
             "it does not");
    if (b->state == STEP_FAILED && a->state == STEP_WAITING && b->direction == DIRECTION_FORWARD)
        must(t, b->child.state == CHILD_COMPENSATED || f->may_break, "a step fails with its child",
             "it does not");
    if (b->state == STEP_UNDONE && f->undo == UNDO_CHILD && !unit_was_skipped(t, unit))
        must(t, b->child.state == CHILD_COMPENSATED, "a step is undone with its child",
             "it is not");
    check_wish(t, unit, a, b, old, new);
    if (old->revision != 0)
        check_known(t, unit, a, b);
}

/* ---- each change ---- */

/* It goes back after its end only if its parent asked it to. */
static void check_asked_back(const struct subject *t, const struct seen *old)
{
    const struct subject *p = t->parent;
    const struct seen_child *c = &seen_unit(p, t->parent_unit)->child;

    if (old->revision == 0 || old->state != TASK_PROCESSED || t->seen.direction != DIRECTION_UNDO)
        return;
    must(t, c->number == t->parent_number && c->wish == WISH_UNDO,
         "what is processed goes back only if its parent asks", "it did not");
}

void check_family_row(struct subject *t, const struct seen *old)
{
    if (!is_of_family(t))
        return;
    told_by(t)->changed = true;
    if (t->parent)
        check_asked_back(t, old);
}

static void expect_of_item(const struct item_life *l, void *arg)
{
    struct subject *t = arg;
    struct item_life *mine = life_of(t, l->unit);

    expect_of_parent(t, l->unit, &l->told, l->at_work);
    mine->told = l->seen.child;
}

static void check_told_of(struct subject *t)
{
    struct to_family *told = t->to_family;

    if (!told || !told->changed)
        return;
    told->changed = false;
    if (t->parent)
        expect_of_child(t);
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (flow_has_one_child(&t->flow->steps[i])) {
            expect_of_parent(t, i, &told->steps[i], true);
            told->steps[i] = t->seen.steps[i].child;
        } else if (t->flow->steps[i].is_child) {
            lives_walk(t, i, expect_of_item, t);
        }
    told->paused_at = t->seen.paused_at;
}

void check_families_batch(void)
{
    if (!families_are_on())
        return;
    for (uint32_t i = 0; i < subjects.count; i++)
        check_told_of(&subjects.list[i]);
    for (uint32_t i = 0; i < batch.count; i++)
        must(batch.words[i].from, batch.words[i].matched, "nothing is told that does not follow",
             word_text(&batch.words[i]));
    for (uint32_t i = 0; i < batch.started_count; i++)
        must(batch.started[i] ? batch.started[i] : subjects.list, !batch.started[i],
             "a child is started by the change that counts it", "by another");
    batch.count = batch.started_count = 0;
}

/* ---- ends ---- */

/* Whether what the children of the step did is gone, or is not to be undone with the task. */
static const char *child_left(const struct subject *t, const struct subject *c)
{
    const struct flow_step *f = &t->flow->steps[c->parent_step];
    const struct seen_step *s = seen_unit(t, c->parent_unit);

    if (is_by_hand(t, c->parent_unit))
        return NULL;
    if (!is_gone_for_good(c))
        return "a child is open";
    if (c->seen.revision == 0 || c->seen.state == TASK_COMPENSATED || f->undo == UNDO_NONE)
        return NULL;
    return f->undo == UNDO_CALL && undone_by_agent(s) ? NULL : "a child is processed";
}

bool check_children_gone(const struct subject *t, uint32_t step)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *c = &subjects.list[i];
        if (c->parent == t && c->parent_step == step && child_left(t, c))
            return false;
    }
    return true;
}

/* No pivot of the child took effect, and none will. */
void check_pivot_child(const struct subject *t, uint32_t unit)
{
    const struct seen_step *s = seen_unit(t, unit);
    const struct subject *c = child_of(t, unit, s->child.number);

    bool turned = c && c->to_family && (c->to_family->told_ever & BIT(CHILD_TURNED));

    /* One that turned may have stopped since: both may be heard of in one change. */
    must(t,
         !seen_child_is_open(s) || s->child.state == CHILD_TURNED
             || (s->child.state == CHILD_STUCK && turned),
         "a task does not turn back while the child of its pivot may go forward", "it does");
    if (!c || s->child.state == CHILD_NONE || c->seen.revision == 0)
        return;
    must(c, c->seen.direction == DIRECTION_UNDO,
         "a task does not turn back while the child of its pivot may go forward", "it does");
    for (uint32_t i = 0; i < c->seen.step_count; i++)
        must(c, c->flow->steps[i].undo != UNDO_PIVOT || !step_ever_happened(c, i),
             "a task does not turn back behind the pivot of a child", "it does");
}

static void check_end_with(const struct subject *t, const struct subject *c)
{
    const struct seen_step *s = seen_unit(t, c->parent_unit);

    if (t->seen.state == TASK_COMPENSATED) {
        const char *left = child_left(t, c);
        must(c, !left, "compensated: the family is undone", left ? left : "");
        return;
    }
    must(c, is_by_hand(t, c->parent_unit) || is_gone_for_good(c),
         "processed: every child has ended", "one is open");
    if (s->state == STEP_COMPLETED && !is_by_hand(t, c->parent_unit)
        && c->parent_number == s->child.number)
        must(c, c->seen.state == TASK_PROCESSED, "processed: every child took effect",
             "one did not");
}

void check_family_end(const struct subject *t)
{
    if (!flow_has_children(t->flow))
        return;
    if (!t->parent && t->seen.state == TASK_COMPENSATED)
        covered(COVER_FAMILY_COMPENSATED);
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].parent == t)
            check_end_with(t, &subjects.list[i]);
}

/* ---- in between ---- */

/* It stopped in error, its item was left, and it went on when it was not closed yet. */
static bool is_left(const struct subject *t, const struct subject *c)
{
    const struct item_life *l = unit_is_item(c->parent_unit) ? life_find(t, c->parent_unit) : NULL;

    return l && !l->at_work;
}

/* Nothing is on its way between them: each knows what the other told. */
static void check_known_of(const struct subject *t, const struct subject *c)
{
    const struct seen_child *known = &seen_unit(t, c->parent_unit)->child;
    enum child_state is = stands(c);

    if (known->number != c->parent_number || known->state == CHILD_NONE)
        return;
    bool overtaken = is == CHILD_ERROR && known->wish == WISH_STOP;
    must(c, known->state == is || overtaken || c->words_waiting > 0, "what was told is known",
         child_state_text(known->state));
    if (c->words_waiting > 0 || is_over(c))
        return;
    must(c, known->wish != WISH_STOP || c->seen.asked == WISH_STOP || c->seen.asked == WISH_UNDO,
         "who is told to stop knows it", "it does not");
    must(c, known->wish != WISH_UNDO || c->seen.asked == WISH_UNDO,
         "who is told to go back knows it", "it does not");
    must(c,
         known->wish != WISH_NONE || c->seen.closed_at == 0 || t->seen.closed_at != 0
             || is_by_hand(t, c->parent_unit),
         "who is needed after all is not closed", "it is");
    if (is_left(t, c)) /* no pause reaches it */
        return;
    bool paused = t->seen.paused_at != 0 && is_active(t);
    must(c, !is_active(c) || (c->seen.paused_at != 0) == paused,
         paused ? "a family is paused as a whole" : "a family goes on as a whole", "one is not");
}

static void check_error(const struct subject *t)
{
    bool any = false;

    if (t->seen.state != TASK_ERROR || !t->seen.is_of_child || t->seen.closed_at != 0)
        return;
    covered(COVER_FAMILY_ERROR);
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        any |= (t->flow->steps[i].is_child && seen_child_stopped(&t->seen.steps[i]))
               || t->seen.steps[i].state == STEP_FAILED; /* its child was undone: the same code */
    must(t, any, "nobody is in error for a child that is not", "it is");
}

static void check_late_step(const struct subject *t, const struct seen_step *s, int64_t quiet)
{
    if (s->state == STEP_WAITING && s->complete_by != 0)
        must(t, max_i64(s->complete_by - world.ahead, quiet) + LATE_MS > world.now,
             "a child is told to stop when its time is over", "it is not");
}

/* A child that has no time left is told to stop. */
static void check_late(const struct subject *t)
{
    const struct seen *s = &t->seen;
    int64_t quiet = max_i64(world.calm_at, nodes_quiet_since());

    if (!world.calm || !nodes_are_well() || !is_active(t) || s->paused_at != 0
        || s->stop != STOP_NONE || s->direction == DIRECTION_UNDO || world.set_back)
        return;
    for (uint32_t i = 0; i < s->step_count; i++) {
        const struct seen_items *in = t->items[i];
        if (flow_has_one_child(&t->flow->steps[i]))
            check_late_step(t, &s->steps[i], quiet);
        for (uint32_t k = 0; in && t->flow->steps[i].is_child && k < in->work_count; k++)
            check_late_step(t, &in->work[k].step, quiet);
    }
}

void check_families(void)
{
    for (uint32_t i = 0; i < subjects.count && families_are_on(); i++) {
        const struct subject *c = &subjects.list[i];
        if (c->seen.revision != 0 && flow_has_children(c->flow)) {
            check_error(c);
            check_late(c);
        }
        if (c->parent && c->seen.revision != 0 && c->parent->words_waiting == 0)
            check_known_of(c->parent, c);
    }
}

/* Everything has ended, and everybody knows. */
void check_families_end(void)
{
    for (uint32_t i = 0; i < subjects.count && families_are_on(); i++)
        must(&subjects.list[i], subjects.list[i].words_waiting == 0, "every word is decided on",
             "one waits");
    check_families();
}
