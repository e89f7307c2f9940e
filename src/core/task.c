/* The task: its words and state machines (task.h), questions about steps, and task_valid(), which
 * checks every invariant that a single state can show. */
#include "core/task.h"

#include "core/attempts.h"
#include "core/items.h"
#include "core/undo.h"
#include "core/votes.h"

_Static_assert(sizeof(struct step) <= 256,
               "a step is found by a shift, which all walks over steps do");

static const char *const task_state_texts[] = {
#define X(name, text, to) text,
    TASK_STATES(X)
#undef X
};

static const char *const step_state_texts[] = {
#define X(name, text, to) text,
    STEP_STATES(X)
#undef X
};

static const uint32_t task_edges[] = {
#define TO(name, when)    BIT(TASK_##name)
#define X(name, text, to) to,
    TASK_STATES(X)
#undef X
#undef TO
};

static const uint32_t step_edges[] = {
#define TO(name, when)    BIT(STEP_##name)
#define X(name, text, to) to,
    STEP_STATES(X)
#undef X
#undef TO
};

#define X(name, text) text,
static const char *const outcome_texts[] = {OUTCOMES(X)};
static const char *const effect_texts[] = {EFFECTS(X)};
static const char *const direction_texts[] = {DIRECTIONS(X)};
static const char *const stop_texts[] = {STOPS(X)};
static const char *const signal_state_texts[] = {SIGNAL_STATES(X)};
static const char *const child_state_texts[] = {CHILD_STATES(X)};
static const char *const child_wish_texts[] = {CHILD_WISHES(X)};
#undef X

static bool parse(const char *const *texts, size_t count, struct slice text, size_t *ret)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(text, texts[i])) {
            *ret = i;
            return true;
        }
    return false;
}

/* The two functions of each word list. NOLINTBEGIN(bugprone-macro-parentheses): types and names */
#define WORDS(type, name, texts)                         \
    const char *name##_text(enum type v)                 \
    {                                                    \
        ASSERT((size_t)v < COUNT_OF(texts));             \
        return (texts)[v];                               \
    }                                                    \
    bool name##_parse(struct slice text, enum type *ret) \
    {                                                    \
        size_t i = 0;                                    \
        if (!parse((texts), COUNT_OF(texts), text, &i))  \
            return false;                                \
        *ret = (enum type)i;                             \
        return true;                                     \
    }

WORDS(task_state, task_state, task_state_texts)
WORDS(step_state, step_state, step_state_texts)
WORDS(outcome, outcome, outcome_texts)
WORDS(effect, effect, effect_texts)
WORDS(direction, direction, direction_texts)
WORDS(stop, stop, stop_texts)
WORDS(signal_state, signal_state, signal_state_texts)
WORDS(child_state, child_state, child_state_texts)
WORDS(child_wish, child_wish, child_wish_texts)
/* NOLINTEND(bugprone-macro-parentheses) */

bool task_state_can(enum task_state from, enum task_state to)
{
    return (task_edges[from] & BIT(to)) != 0;
}

bool step_state_can(enum step_state from, enum step_state to)
{
    return (step_edges[from] & BIT(to)) != 0;
}

bool content_is_same(const struct content *a, const struct content *b)
{
    if (a->sha256.ptr && b->sha256.ptr)
        return slice_eq(a->sha256, b->sha256);
    return a->hash == b->hash;
}

struct signal *task_find_signal(const struct task *t, struct slice key)
{
    for (uint16_t i = 0; i < t->signal_count; i++)
        if (slice_eq(t->signals[i].key, key))
            return &t->signals[i];
    return NULL;
}

static bool is_among(const struct slice *names, uint16_t count, struct slice name)
{
    for (uint16_t i = 0; i < count; i++)
        if (slice_eq(names[i], name))
            return true;
    return false;
}

bool step_takes_signal(const struct workflow_step *ws, struct slice name)
{
    return is_among(ws->signal.names, ws->signal.count, name);
}

bool signal_undoes(const struct workflow *w, struct slice name)
{
    return is_among(w->undo_signals, w->undo_signal_count, name);
}

struct tally step_votes(const struct task *t, int step)
{
    struct tally tally = {0};

    for (uint16_t i = 0; i < t->vote_count; i++) {
        if (t->votes[i].step != step)
            continue;
        tally.agreed += t->votes[i].agrees;
        if (!t->votes[i].agrees)
            tally.rejection = &t->votes[i];
    }
    return tally;
}

const struct vote *task_find_vote(const struct task *t, int step, struct slice person)
{
    for (uint16_t i = 0; i < t->vote_count; i++)
        if (t->votes[i].step == step && slice_eq(t->votes[i].person, person))
            return &t->votes[i];
    return NULL;
}

bool step_is_voted(const struct workflow *w, const struct task *t, uint16_t step)
{
    struct tally tally = step_votes(t, step);

    return tally.rejection || tally.agreed >= w->steps[step].approve.people;
}

bool task_may_ask(const struct task *t)
{
    return !task_state_is_end(t->state) && t->closed_at == 0 && t->direction == DIRECTION_FORWARD
           && t->stop != STOP_UNDO;
}

bool step_is_asking(const struct workflow *w, const struct task *t, uint16_t step)
{
    return w->steps[step].kind == KIND_APPROVE && step_has_begun(&t->steps[step]) && task_may_ask(t)
           && !step_is_voted(w, t, step);
}

bool task_state_is_end(enum task_state s)
{
    return s == TASK_PROCESSED || s == TASK_COMPENSATED;
}

static struct attempt *last_if_open(const struct step *s)
{
    if (s->attempt_count == 0)
        return NULL;
    struct attempt *last = &s->attempts[s->attempt_count - 1];
    return last->outcome == OUTCOME_OPEN ? last : NULL;
}

/* Fast path: called often for each step of a long task, and the state alone usually decides. */
struct attempt *step_open_attempt(const struct step *s)
{
    return s->state == STEP_RUNNING || s->state == STEP_UNDOING ? last_if_open(s) : NULL;
}

bool step_is_open(const struct step *s)
{
    if (s->items)
        return s->items->tally.open > 0;
    return step_open_attempt(s) != NULL;
}

struct attempt *step_find_attempt(const struct step *s, enum direction d, uint32_t number)
{
    for (uint16_t i = s->attempt_count; i-- > 0;)
        if (s->attempts[i].number == number && s->attempts[i].direction == d)
            return &s->attempts[i];
    return NULL;
}

/* The attempt number is unknown in documents written before `resolve` existed. */
static bool dropped_in_doubt(const struct step *s)
{
    return s->dropped_effect == EFFECT_UNKNOWN
           && (s->resolved == 0 || s->dropped_attempt > s->resolved);
}

bool step_in_doubt(const struct step *s)
{
    if (s->supplied)
        return false; /* an operator said so */
    if (s->items)
        return s->items->doubts + s->items->tally.doubts > 0;
    for (uint16_t i = s->attempt_count; i-- > 0;) {
        const struct attempt *a = &s->attempts[i];
        if (i < ATTEMPTS_HEAD && dropped_in_doubt(s))
            return true; /* the merged attempts came after these */
        if (i < ATTEMPTS_HEAD && s->round != 0 && s->dropped_effect == EFFECT_HAPPENED)
            return false; /* the last of these of which anything is known */
        if (a->direction == DIRECTION_UNDO || a->outcome == OUTCOME_OPEN)
            continue;
        if (a->effect == EFFECT_HAPPENED)
            return false; /* the same idempotency key: it settles the earlier ones */
        if (a->effect == EFFECT_UNKNOWN && a->number > s->resolved)
            return true;
    }
    return dropped_in_doubt(s);
}

bool step_is_resolved(const struct step *s)
{
    return s->resolved != 0 && s->resolved == s->attempt && s->direction == DIRECTION_FORWARD
           && !step_in_doubt(s) && !step_has_effect(s);
}

bool step_resolve_is_contradicted(const struct step *s)
{
    if (s->items)
        return s->items->contradicted + s->items->tally.contradicted > 0;
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        const struct attempt *a = &s->attempts[i];
        if (a->direction == DIRECTION_FORWARD && a->number <= s->resolved
            && a->outcome == OUTCOME_LATE && a->effect == EFFECT_HAPPENED)
            return true;
    }
    return s->resolved > 0 && s->dropped_effect == EFFECT_HAPPENED; /* perhaps of a merged one */
}

bool step_is_answered(const struct step *s)
{
    if (s->round == 0 || s->state != STEP_WAITING || s->attempt_count == 0)
        return false;
    const struct attempt *last = &s->attempts[s->attempt_count - 1];
    return last->outcome == OUTCOME_COMPLETED && last->round == s->round
           && last->generation == s->generation;
}

bool step_was_tried(const struct step *s)
{
    const struct attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;

    return last && last->direction == DIRECTION_FORWARD && last->generation == s->generation;
}

bool step_has_effect(const struct step *s)
{
    if (s->supplied)
        return true;
    if (s->items)
        return s->items->effects + s->items->tally.effects > 0;
    for (uint16_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_FORWARD
            && s->attempts[i].effect == EFFECT_HAPPENED)
            return true;
    return s->dropped_effect == EFFECT_HAPPENED || s->child.state == CHILD_PROCESSED;
}

/* An answered attempt is at rest once a later one completed. An unanswered one may run until its
 * complete-by in any case. */
int64_t step_doubt_until(const struct step *s)
{
    bool in_doubt = step_in_doubt(s);
    int64_t until = s->dropped_until;

    for (uint16_t i = 0; i < s->attempt_count; i++) {
        const struct attempt *a = &s->attempts[i];
        bool unknown = a->effect == EFFECT_UNKNOWN;
        if (a->direction == DIRECTION_UNDO || a->outcome == OUTCOME_OPEN)
            continue;
        /* If the request was sent again, another process may still run it despite the answer. */
        if (a->resent > 0 || (unknown && (in_doubt || a->outcome == OUTCOME_TIMED_OUT)))
            until = max_i64(until, a->complete_by);
    }
    return until;
}

/* Whether the effect fits the outcome. */
static bool effect_valid(const struct attempt *a)
{
    switch (a->outcome) {
    case OUTCOME_OPEN:
    case OUTCOME_TIMED_OUT:
        return a->effect == EFFECT_UNKNOWN;
    case OUTCOME_COMPLETED:
        return a->effect == EFFECT_HAPPENED;
    case OUTCOME_FAILED:
        return a->effect != EFFECT_HAPPENED;
    case OUTCOME_NOT_SENT:
        return a->effect == EFFECT_NONE && !a->elsewhere;
    case OUTCOME_LATE:
        return true;
    }
    UNREACHABLE();
}

static bool attempts_valid(const struct step *s)
{
    uint32_t number = 0;
    uint32_t generation = 0;
    enum direction d = DIRECTION_FORWARD;

    if (s->attempt_count > s->attempt_cap || s->attempt_count > ATTEMPTS_KEPT)
        return false;
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        const struct attempt *a = &s->attempts[i];
        bool open = a->outcome == OUTCOME_OPEN;
        if (a->direction < d || (a->direction == d && a->number <= number))
            return false;
        if (open != (a->ended_at == 0) || (open && i + 1 != s->attempt_count))
            return false;
        if (a->complete_by <= 0 || a->started_at <= 0 || !effect_valid(a))
            return false;
        if (a->generation < generation || a->generation > s->generation)
            return false; /* a key is never used again */
        if ((open || a->direction == DIRECTION_UNDO) && a->generation != s->generation)
            return false;
        d = a->direction;
        number = a->number;
        generation = a->generation;
    }
    if (d > s->direction)
        return false; /* its compensation has attempts but never began */
    if (s->direction == DIRECTION_FORWARD && s->resolved > s->attempt)
        return false; /* future attempts cannot be resolved */
    return s->attempt == (d == s->direction ? number : 0);
}

static bool has_no_rounds(const struct step *s)
{
    return s->round == 0 && s->round_at == 0 && s->repeat_until == 0 && !s->corrected;
}

/* The rounds of one generation are in order, and its last attempt belongs to the present one unless
 * that has not begun. */
static bool rounds_valid(const struct step *s)
{
    const struct attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;

    if (s->round == 0)
        return s->round_at == 0 && s->repeat_until == 0
               && (!last || last->generation < s->generation);
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        const struct attempt *a = &s->attempts[i];
        if (a->round == 0 || (a->generation == s->generation && a->round > s->round)
            || (i > 0 && a->generation == a[-1].generation && a->round < a[-1].round))
            return false;
    }
    return s->round_at == 0 ? s->round > 1 && !step_is_open(s)
                            : s->repeat_until != 0 && last && last->round == s->round;
}

/* Whether it fits the step's state what is known of its child. One that was skipped or supplied, or
 * whose undo was skipped, may have left its child in any state. */
static bool child_fits(const struct workflow_step *ws, const struct step *s)
{
    const struct child *c = &s->child;
    bool processed = c->state == CHILD_PROCESSED;

    switch (s->state) {
    case STEP_WAITING:
        return s->wait_until == 0 && (s->begun_at != 0) == child_is_open(c);
    case STEP_RUNNING:
        return false;
    case STEP_COMPLETED:
        return processed || s->supplied;
    case STEP_FAILED:
        if (s->direction == DIRECTION_UNDO)
            return ws->undo_kind == UNDO_CALL && step_has_effect(s);
        return c->state == (s->begun_at ? CHILD_COMPENSATED : CHILD_NONE);
    case STEP_UNDOING:
        if (ws->undo_kind == UNDO_CALL)
            return step_has_effect(s) && !child_is_open(c);
        return processed || c->state == CHILD_TURNED || c->state == CHILD_STUCK;
    case STEP_SKIPPED:
    case STEP_UNDONE:
        return true;
    }
    UNREACHABLE();
}

/* Only the undo of a step with a child has attempts. It has begun if it has a child, which needs an
 * input; the input of a step that starts another child stays. */
static bool child_valid(const struct workflow_step *ws, const struct step *s)
{
    const struct child *c = &s->child;
    bool begun = s->begun_at != 0;
    bool undone_by_child = s->direction == DIRECTION_UNDO && ws->undo_kind == UNDO_CHILD;

    if (!has_no_rounds(s) || s->begun_at < 0 || s->complete_by < 0 || s->resolved != 0
        || (s->direction == DIRECTION_FORWARD && (s->attempt_count != 0 || s->dropped_count != 0)))
        return false;
    if (s->attempt_count != 0
        && (ws->undo_kind != UNDO_CALL || s->attempts[0].direction == DIRECTION_FORWARD))
        return false;
    if (begun != (c->state != CHILD_NONE) || (begun && (c->number == 0 || !s->input.json.ptr)))
        return false;
    if (!begun && (c->wish != WISH_NONE || s->complete_by != 0))
        return false;
    if (c->wish == WISH_UNDO && !undone_by_child)
        return false;
    return child_fits(ws, s);
}

/* What waits has no attempts, and ends at some time (a wait) or may (for a signal or people); a
 * call does not begin like that. Only an approval that has begun has an input: its question. */
static bool kind_valid(const struct workflow_step *ws, const struct step *s)
{
    if (ws->kind == KIND_CALL)
        return s->child.number == 0 && s->child.state == CHILD_NONE && s->child.wish == WISH_NONE
               && s->begun_at == 0 && s->complete_by == 0
               && (step_is_repeated(ws) ? rounds_valid(s) : has_no_rounds(s));
    if (ws->kind == KIND_TASK)
        return child_valid(ws, s);
    if ((s->child.number != 0 && ws->kind != KIND_EACH) || s->child.state != CHILD_NONE
        || s->child.wish != WISH_NONE)
        return false;
    if (ws->kind == KIND_EACH)
        return has_no_rounds(s) && s->attempt_count == 0 && s->dropped_count == 0
               && s->begun_at >= 0 && s->complete_by == 0 && s->wait_until == 0 && s->resolved == 0
               && !s->input.json.ptr;
    bool asked = ws->kind == KIND_APPROVE && s->begun_at != 0;
    if (!has_no_rounds(s) || s->attempt_count != 0 || s->dropped_count != 0 || s->begun_at < 0
        || (s->input.json.ptr != NULL) != asked)
        return false;
    if (s->begun_at == 0 && s->complete_by != 0)
        return false;
    if (ws->kind != KIND_WAIT)
        return s->complete_by >= 0 && s->wait_until == 0;
    return s->complete_by == 0 && (step_has_begun(s) ? s->wait_until > 0 : true)
           && (s->state != STEP_WAITING || s->begun_at != 0 || s->wait_until == 0);
}

static bool step_valid(const struct step *s)
{
    if (s->state == STEP_WAITING && s->attempt_count == 0) /* fast path: a new step */
        return s->attempt == 0 && s->resolved == 0 && s->direction == DIRECTION_FORWARD;
    const struct attempt *open = last_if_open(s);

    if (!attempts_valid(s) || (open && open->direction != s->direction))
        return false;
    switch (s->state) {
    case STEP_WAITING:
        return !open && s->direction == DIRECTION_FORWARD;
    case STEP_RUNNING:
        return open && s->direction == DIRECTION_FORWARD;
    case STEP_COMPLETED:
        return !open && s->direction == DIRECTION_FORWARD
               && (step_has_effect(s) || s->begun_at != 0) && s->output.json.ptr;
    case STEP_FAILED:
        return !open && s->error.code.ptr;
    case STEP_SKIPPED:
        return !open && s->direction == DIRECTION_FORWARD;
    case STEP_UNDOING:
        return s->direction == DIRECTION_UNDO;
    case STEP_UNDONE:
        return !open && s->direction == DIRECTION_UNDO;
    }
    return false;
}

/* Whether all that the step did is what late results said of it after an operator had resolved it,
 * and the undo had passed it. */
static bool is_all_contradicted(const struct workflow_step *ws, const struct step *s)
{
    const struct items *in = s->items;

    if (!in)
        return step_resolve_is_contradicted(s);
    uint32_t contradicted = in->contradicted + in->tally.contradicted;
    if (ws->undo_kind == UNDO_PIVOT)
        return contradicted > 0 && in->effects + in->tally.effects <= contradicted
               && !step_in_doubt(s);
    return contradicted > 0 && in->to_undo + in->tally.to_undo <= contradicted;
}

/* Whether everything that a step of on_undo waits for is done. */
static bool compensations_valid(const struct workflow *w, const struct task *t)
{
    if (t->direction == DIRECTION_FORWARD)
        return false;
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (!w->steps[i].on_undo && !is_all_contradicted(&w->steps[i], s)
            && (step_is_open(s) || step_needs_undo(&w->steps[i], s)))
            return false;
    }
    return true;
}

/* Invariant 4 for steps going forward, as far as one state can show it. */
static bool predecessors_valid(const struct workflow *w, const struct task *t, uint16_t i)
{
    bool has_child = t->steps[i].state == STEP_WAITING && t->steps[i].child.state != CHILD_NONE;

    if (t->steps[i].state != STEP_RUNNING && t->steps[i].state != STEP_COMPLETED && !has_child)
        return true;
    if (t->steps[i].supplied)
        return true; /* by an operator, perhaps ahead of time */
    if (w->steps[i].on_undo && !compensations_valid(w, t))
        return false;
    if (t->direction == DIRECTION_UNDO && !w->steps[i].on_undo)
        return true; /* its successors are undone before it */
    for (uint16_t k = 0; k < w->steps[i].before_count; k++) {
        uint16_t b = w->steps[i].before[k];
        if (!step_has_ended(&w->steps[b], &t->steps[b]))
            return false;
    }
    return true;
}

/* ---- failures ---- */

struct cause task_first_failure(const struct workflow *w, const struct task *t)
{
    if (t->cause.error.code.ptr || t->state != TASK_PROCESSED)
        return t->cause;
    for (uint16_t k = 0; k < w->step_count; k++)
        if (t->steps[w->order[k]].state == STEP_FAILED)
            return (struct cause){t->steps[w->order[k]].error, w->order[k]};
    return t->cause;
}

/* A failure of the compensation overwrites the step's error; the attempts keep theirs. */
struct fault_note step_forward_error(const struct step *s)
{
    if (s->direction == DIRECTION_FORWARD)
        return s->error;
    for (uint16_t i = s->attempt_count; i-- > 0 && !s->supplied;) {
        const struct attempt *a = &s->attempts[i];
        if (a->direction == DIRECTION_FORWARD && a->outcome != OUTCOME_NOT_SENT)
            return a->error;
    }
    return (struct fault_note){0};
}

/* Whether there is a cause only if the task stopped or is being undone, and its step exists. */
static bool cause_valid(const struct task *t)
{
    const struct cause *c = &t->cause;
    bool stopped = t->direction == DIRECTION_UNDO || t->stop != STOP_NONE || t->state == TASK_ERROR;

    return !c->error.code.ptr || (stopped && c->step >= -1 && c->step < t->step_count);
}

/* Each child of its items that has not ended had turned back, and stopped. */
static bool all_children_are_stuck(const struct step *s)
{
    const struct item_tally *n = s->items ? &s->items->tally : NULL;

    return n && n->unturned > 0 && n->unturned == n->children - n->running;
}

/* A pivot that rules out that the task is undone. The child of one may stop in error after it has
 * turned back. */
static bool pivot_stands(const struct workflow_step *ws, const struct step *s)
{
    if (ws->undo_kind != UNDO_PIVOT || s->state == STEP_UNDONE)
        return false;
    if (s->child.state == CHILD_STUCK || all_children_are_stuck(s))
        return s->state == STEP_COMPLETED || (s->items && (step_has_effect(s) || step_in_doubt(s)));
    return pivot_prevents_undo(s) && !is_all_contradicted(ws, s);
}

/* Invariant 5, and the other properties of an end. */
static bool end_valid(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct workflow_step *ws = &w->steps[i];
        const struct step *s = &t->steps[i];
        if (step_is_open(s))
            return false;
        if (ws->on_undo == (t->state == TASK_COMPENSATED) && !step_has_ended(ws, s))
            return false;
        if (t->state == TASK_COMPENSATED
            && ((step_needs_undo(ws, s) && !is_all_contradicted(ws, s)) || pivot_stands(ws, s)))
            return false;
    }
    return true;
}

static bool columns_valid(const struct task *t)
{
    bool owned = t->state == TASK_PROCESSING || t->state == TASK_COMPENSATING;

    if (t->locked_by.ptr && !owned)
        return false;
    if (t->state == TASK_COMPENSATING && t->direction != DIRECTION_UNDO)
        return false;
    if (t->state == TASK_PROCESSING && t->direction != DIRECTION_FORWARD)
        return false;
    if (t->paused_at != 0 && !owned && t->state != TASK_PENDING)
        return false; /* a task that ended or stopped is not paused */
    if (t->closed_at != 0 && t->state != TASK_ERROR)
        return false;
    if (t->closed_reason.ptr && t->closed_at == 0)
        return false;
    /* A task holds its lock until it ends or an operator closes it. */
    if (t->lock_since != 0 && (!t->lock.ptr || task_state_is_end(t->state) || t->closed_at != 0))
        return false;
    if (t->lock_mode != LOCK_WAITS && !t->lock.ptr)
        return false;
    return t->priority >= 0 && t->lock_since >= 0 && t->priority <= 9 && t->submitted_at > 0
           && t->paused_at >= 0 && t->closed_at >= 0;
}

/* A child has all that names its parent; it has no lock, so that families cannot deadlock. It is
 * only told to be undone once it is processed. */
static bool family_valid(const struct workflow *w, const struct task *t)
{
    bool is_child = t->parent.ptr != NULL;

    if ((t->root.ptr != NULL) != is_child || (t->parent_step.ptr != NULL) != is_child
        || (t->parent_number != 0) != is_child)
        return false;
    if (is_child && (t->parent.len == 0 || t->root.len == 0 || t->parent_step.len == 0))
        return false;
    if ((!is_child && t->asked != WISH_NONE) || (is_child && t->lock.ptr))
        return false;
    if (t->asked == WISH_UNDO && t->state != TASK_PROCESSED && t->direction != DIRECTION_UNDO)
        return false;
    return w->child_step_count == 0 || t->family.len > 0;
}

/* Each step takes one signal at most, of its own names, and has completed with it. */
static bool signals_valid(const struct workflow *w, const struct task *t)
{
    bool took[STEPS_MAX] = {0};

    for (uint16_t i = 0; i < t->signal_count; i++) {
        const struct signal *s = &t->signals[i];
        bool by_step = s->state == SIGNAL_TAKEN && s->step >= 0;
        if (s->key.len == 0 || s->name.len == 0 || s->content.len == 0 || s->at <= 0 || s->step < -1
            || s->step >= t->step_count || (s->step >= 0) != by_step
            || (s->data.json.ptr != NULL) != (s->state != SIGNAL_DROPPED))
            return false;
        if (!by_step)
            continue;
        const struct step *step = &t->steps[s->step];
        if (took[s->step] || !step_takes_signal(&w->steps[s->step], s->name)
            || step->state != STEP_COMPLETED || step->supplied || step->begun_at == 0)
            return false;
        took[s->step] = true;
    }
    return true;
}

/* A person votes once on each question that was asked, and nobody after the decision. */
static bool votes_valid(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->vote_count; i++) {
        const struct vote *v = &t->votes[i];
        if (v->person.len == 0 || v->at <= 0 || v->step < 0 || v->step >= t->step_count
            || task_find_vote(t, v->step, v->person) != v)
            return false;
        const struct approve_spec *spec = &w->steps[v->step].approve;
        const struct step *s = &t->steps[v->step];
        struct tally tally = step_votes(t, v->step);
        if (w->steps[v->step].kind != KIND_APPROVE || s->begun_at == 0
            || tally.agreed + (tally.rejection != NULL) > spec->people
            || (tally.rejection && s->state == STEP_COMPLETED && !s->supplied)
            || (!v->agrees && v != tally.rejection))
            return false;
    }
    return true;
}

/* Part of the next, for a step with items, or a slot. */
static bool is_valid_with_items(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if ((s->items != NULL) != (w->steps[i].kind == KIND_EACH)
        || (s->items && !items_valid(w, t, i)))
        return false;
    return unit_is_slot(w, i) ? item_slot_valid(w, t, i) : s->slot == SLOT_FREE;
}

bool task_step_valid(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (!step_valid(s) || !kind_valid(&w->steps[i], s) || !predecessors_valid(w, t, i))
        return false;
    if ((w->steps[i].kind == KIND_EACH || s->items || s->slot != SLOT_FREE || unit_is_slot(w, i))
        && !is_valid_with_items(w, t, i))
        return false;
    if (s->direction == DIRECTION_UNDO && step_next_direction(w, t, i) == DIRECTION_FORWARD)
        return false;
    return !(t->direction == DIRECTION_UNDO && w->steps[i].undo_kind == UNDO_PIVOT
             && (step_is_open(s) /* it would have prevented the turn to undo */
                 || pivot_stands(&w->steps[i], s)));
}

bool task_valid(const struct workflow *w, const struct task *t)
{
    if (t->step_count != w->step_count || t->slot_count != w->slot_count || !columns_valid(t)
        || !cause_valid(t) || !family_valid(w, t))
        return false;
    for (uint16_t i = 0; i < task_unit_count(t); i++)
        if (!task_step_valid(w, t, i))
            return false;
    for (uint16_t i = 0; w->slot_count > 0 && i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH && !items_slots_valid(w, t, i))
            return false;
    if (t->signal_count > 0 && !signals_valid(w, t))
        return false;
    if (t->vote_count > 0 && !votes_valid(w, t))
        return false;
    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return t->state == TASK_ERROR ? t->error.code.ptr != NULL : end_valid(w, t);
    return true;
}
