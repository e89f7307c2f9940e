#include "core/decide.h"

#include "core/retry.h"
#include "core/undo.h"

/* What one call of decide() works on. */
struct deed {
    const struct workflow *w;
    struct task *t;
    const struct event *ev;
    int64_t now;
    struct effects *fx;
};

/* The only places that write a state. */
static void task_move(struct task *t, enum task_state next)
{
    ASSERT(task_state_can(t->state, next));
    t->state = next;
}

static void step_move(struct step *s, enum step_state next)
{
    ASSERT(step_state_can(s->state, next));
    s->state = next;
}

static void note(struct fault_note *n, const char *code, const char *message)
{
    *n = (struct fault_note){slice_of(code), slice_of(message)};
}

/* ---- where the task as a whole stands ---- */

static bool anything_open(const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_is_open(&t->steps[i]))
            return true;
    return false;
}

static bool all_ended(const struct deed *d)
{
    for (uint16_t i = 0; i < d->t->step_count; i++)
        if (!step_has_ended(&d->w->steps[i], &d->t->steps[i]))
            return false;
    return true;
}

/* A step whose failure stops the task: the one that its `on_failure` does not let pass. */
static bool stands_failed(const struct workflow_step *ws, const struct step *s)
{
    return s->state == STEP_FAILED && !step_has_ended(ws, s);
}

static bool any_stands_failed(const struct deed *d)
{
    for (uint16_t i = 0; i < d->t->step_count; i++)
        if (stands_failed(&d->w->steps[i], &d->t->steps[i]))
            return true;
    return false;
}

static bool is_pivot(const struct deed *d, uint16_t i)
{
    return d->w->steps[i].undo_kind == UNDO_PIVOT;
}

static bool any_pivot_completed(const struct deed *d)
{
    for (uint16_t i = 0; i < d->t->step_count; i++)
        if (is_pivot(d, i) && d->t->steps[i].state == STEP_COMPLETED)
            return true;
    return false;
}

enum pivots { PIVOTS_CLEAR, PIVOTS_UNRESOLVED, PIVOTS_COMPLETED, PIVOTS_STAND };

/* Do pivots allow that the task turns back? UNRESOLVED: not yet known, an attempt is running or another
 * one will tell. STAND: one is in doubt, and nothing of ours will ever resolve it. */
static enum pivots pivots_look(const struct deed *d)
{
    enum pivots found = PIVOTS_CLEAR;

    if (any_pivot_completed(d))
        return PIVOTS_COMPLETED;
    for (uint16_t i = 0; i < d->t->step_count; i++) {
        const struct step *s = &d->t->steps[i];
        if (!is_pivot(d, i) || !(step_is_open(s) || pivot_stands(s)))
            continue;
        if (step_is_open(s) || s->state == STEP_WAITING)
            found = found == PIVOTS_STAND ? found : PIVOTS_UNRESOLVED;
        else
            found = PIVOTS_STAND;
    }
    return found;
}

static void end_in(struct deed *d, enum task_state end)
{
    struct task *t = d->t;

    task_move(t, end);
    t->ended_at = d->now;
    t->locked_by = SLICE_NONE;
    t->stop = STOP_NONE;
    d->fx->ended |= task_state_is_end(end);
    d->fx->alert |= end == TASK_ERROR;
}

static void settle_undo(struct deed *d)
{
    struct task *t = d->t;
    struct undo_order order;
    bool left = false;
    bool possible = false;

    if (anything_open(t))
        return;
    undo_order_make(d->w, t, &order);
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_needs_undo(&d->w->steps[i], &t->steps[i])) {
            left = true;
            possible |= !order.blocked[i] && !step_undo_is_stuck(&t->steps[i]);
        }
    if (!left)
        end_in(d, TASK_COMPENSATED);
    else if (!possible || t->stop == STOP_HOLD)
        end_in(d, TASK_ERROR);
}

static void turn_back(struct deed *d)
{
    struct task *t = d->t;

    ASSERT(t->direction == DIRECTION_FORWARD);
    t->direction = DIRECTION_UNDO;
    t->stop = STOP_NONE;
    t->deadline_passed = false;
    t->undo_complete_by = d->w->undo_complete_by_ms ? d->now + d->w->undo_complete_by_ms : 0;
    task_move(t, TASK_COMPENSATING);
    d->fx->stop_running |= anything_open(t);
    settle_undo(d);
}

static void settle_hold(struct deed *d)
{
    if (!anything_open(d->t))
        end_in(d, TASK_ERROR);
}

static void settle_forward(struct deed *d)
{
    struct task *t = d->t;

    switch (t->stop) {
    case STOP_NONE:
        if (all_ended(d))
            end_in(d, TASK_PROCESSED);
        return;
    case STOP_HOLD:
        settle_hold(d);
        return;
    case STOP_UNDO:
        break;
    }
    switch (pivots_look(d)) {
    case PIVOTS_UNRESOLVED:
        return;
    case PIVOTS_CLEAR:
        turn_back(d);
        return;
    case PIVOTS_STAND:
        t->stop = STOP_HOLD;
        settle_hold(d);
        return;
    case PIVOTS_COMPLETED: /* undo is refused, the task goes forward, or stops in error */
        t->stop = any_stands_failed(d) ? STOP_HOLD : STOP_NONE;
        settle_forward(d);
        return;
    }
    UNREACHABLE();
}

/* After every event: has the task reached an end, or a turn? */
static void settle(struct deed *d)
{
    if (task_state_is_end(d->t->state) || d->t->state == TASK_ERROR)
        return;
    if (d->t->direction == DIRECTION_FORWARD)
        settle_forward(d);
    else
        settle_undo(d);
}

/* ---- failures ---- */

static uint64_t seed_of(const struct task *t, int step, enum direction dir)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < t->id.len; i++)
        h = (h ^ (unsigned char)t->id.ptr[i]) * UINT64_C(0x100000001b3);
    return h ^ ((uint64_t)step << 32) ^ ((uint64_t)dir << 60);
}

static void stop_for_failure(struct deed *d, enum on_failure on_failure)
{
    if (d->t->direction == DIRECTION_UNDO || d->t->stop != STOP_NONE)
        return;
    switch (on_failure) {
    case ON_FAILURE_UNDO:
        d->t->stop = STOP_UNDO;
        return;
    case ON_FAILURE_HOLD:
        d->t->stop = STOP_HOLD;
        return;
    case ON_FAILURE_CONTINUE:
        return;
    }
    UNREACHABLE();
}

static void fail_for_good(struct deed *d, struct step *s)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];

    step_move(s, STEP_FAILED);
    if (s->direction == DIRECTION_UNDO || ws->on_failure != ON_FAILURE_CONTINUE)
        if (!d->t->error.code.ptr || s->direction == DIRECTION_UNDO)
            d->t->error = s->error;
    stop_for_failure(d, ws->on_failure);
}

/* One more failure of a step: another try, or the end of its tries. */
static void step_fails(struct deed *d, struct step *s, struct failure f)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    const struct call_spec *spec = s->direction == DIRECTION_UNDO ? &ws->undo : &ws->call;
    int64_t at = 0;

    s->failure_count++;
    d->t->failure_count++;
    f.count = s->failure_count;
    f.seed = seed_of(d->t, d->ev->step, s->direction);
    if (!retry_next(&spec->retry, &f, d->now, &at)) {
        fail_for_good(d, s);
        return;
    }
    s->wait_until = at;
    if (s->direction == DIRECTION_FORWARD)
        step_move(s, STEP_WAITING);
}

/* ---- attempts ---- */

bool step_needs_room(const struct step *s)
{
    return s->attempt_count == s->attempt_cap && s->attempt_cap < ATTEMPTS_KEPT;
}

/* Merges one attempt in the middle into the sum of those dropped; late results that took effect
 * stay as long as anything else can go. */
static void drop_attempt(struct step *s)
{
    uint16_t at = ATTEMPTS_HEAD;

    for (uint16_t i = ATTEMPTS_HEAD; i < s->attempt_count; i++)
        if (s->attempts[i].effect != EFFECT_HAPPENED) {
            at = i;
            break;
        }
    const struct attempt *a = &s->attempts[at];
    if (a->direction == DIRECTION_FORWARD) {
        s->dropped_effect = a->effect > s->dropped_effect ? a->effect : s->dropped_effect;
        if (a->effect == EFFECT_UNKNOWN)
            s->dropped_until = max_i64(s->dropped_until, a->complete_by);
    }
    s->dropped_count++;
    s->attempt_count--;
    memmove(&s->attempts[at], &s->attempts[at + 1],
            (size_t)(s->attempt_count - at) * sizeof *s->attempts);
}

/* The step's own deadline, capped by the task's unless that has been dealt with. */
static int64_t attempt_deadline(const struct workflow *w, const struct task *t, int step,
                                int64_t now)
{
    bool undo = t->direction == DIRECTION_UNDO;
    const struct call_spec *spec = undo ? &w->steps[step].undo : &w->steps[step].call;
    int64_t cap = undo ? t->undo_complete_by : t->complete_by;
    int64_t at = now + spec->complete_by_ms;

    return cap != 0 && !t->deadline_passed ? min_i64(at, cap) : at;
}

struct attempt task_next_attempt(const struct workflow *w, const struct task *t, int step,
                                 int64_t now)
{
    const struct step *s = &t->steps[step];

    return (struct attempt){
        .number = s->direction == t->direction ? s->attempt + 1 : 1,
        .direction = t->direction,
        .outcome = OUTCOME_OPEN,
        .effect = EFFECT_UNKNOWN,
        .started_at = now,
        .complete_by = attempt_deadline(w, t, step, now),
    };
}

static bool predecessors_ended(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];

    for (uint16_t k = 0; k < ws->before_count; k++)
        if (!step_has_ended(&w->steps[ws->before[k]], &t->steps[ws->before[k]]))
            return false;
    return true;
}

/* While undo is wanted only a pivot in doubt goes on: another try is how it gets resolved. */
static bool forward_is_ready(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (s->state != STEP_WAITING || !predecessors_ended(w, t, i))
        return false;
    return t->stop == STOP_NONE
           || (t->stop == STOP_UNDO && w->steps[i].undo_kind == UNDO_PIVOT && pivot_stands(s));
}

static bool undo_is_ready(const struct workflow *w, const struct task *t, uint16_t i,
                          const struct undo_order *order)
{
    const struct step *s = &t->steps[i];

    return step_needs_undo(&w->steps[i], s) && !order->blocked[i] && !step_is_open(s)
           && !step_undo_is_stuck(s) && t->stop == STOP_NONE;
}

static int64_t ready_at(const struct task *t, const struct step *s)
{
    int64_t at = s->direction == t->direction ? s->wait_until : 0;

    if (t->direction == DIRECTION_UNDO) {
        int64_t doubt = step_doubt_until(s);
        at = max_i64(at, doubt ? doubt + CLOCK_MARGIN_MS : 0);
    }
    return at;
}

size_t task_ready(const struct workflow *w, const struct task *t, int64_t now, struct ready *ret)
{
    struct undo_order order;
    bool undo = t->direction == DIRECTION_UNDO;
    size_t count = 0;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return 0;
    if (undo)
        undo_order_make(w, t, &order);
    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t i = w->order[k];
        if (undo ? !undo_is_ready(w, t, i, &order) : !forward_is_ready(w, t, i))
            continue;
        if (attempt_deadline(w, t, i, now) <= now)
            continue;
        ret[count++] = (struct ready){i, ready_at(t, &t->steps[i])};
    }
    return count;
}

static bool step_is_ready_now(const struct deed *d)
{
    struct undo_order order;
    uint16_t i = (uint16_t)d->ev->step;

    if (d->t->state != TASK_PROCESSING && d->t->state != TASK_COMPENSATING)
        return false;
    if (d->t->direction == DIRECTION_UNDO) {
        undo_order_make(d->w, d->t, &order);
        if (!undo_is_ready(d->w, d->t, i, &order))
            return false;
    } else if (!forward_is_ready(d->w, d->t, i)) {
        return false;
    }
    return ready_at(d->t, &d->t->steps[i]) <= d->now;
}

/* The step's compensation begins: it counts its attempts and failures anew. */
static void begin_undo(struct step *s)
{
    if (s->direction == DIRECTION_UNDO)
        return;
    s->direction = DIRECTION_UNDO;
    s->attempt = 0;
    s->failure_count = 0;
    s->wait_until = 0;
}

static enum answer on_start(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt a = task_next_attempt(d->w, d->t, d->ev->step, d->now);

    if (!step_is_ready_now(d) || d->ev->direction != a.direction || d->ev->attempt != a.number
        || a.complete_by <= d->now)
        return ANSWER_REFUSED;
    ASSERT(!step_needs_room(s));
    a.instance = d->ev->instance;
    if (d->t->direction == DIRECTION_UNDO) {
        begin_undo(s);
        if (!s->undo_input.json.ptr)
            s->undo_input = d->ev->input;
        if (s->state != STEP_UNDOING)
            step_move(s, STEP_UNDOING);
    } else {
        if (!s->input.json.ptr)
            s->input = d->ev->input;
        step_move(s, STEP_RUNNING);
    }
    if (s->attempt_count == ATTEMPTS_KEPT)
        drop_attempt(s);
    s->attempt = a.number;
    s->wait_until = 0;
    s->attempts[s->attempt_count++] = a;
    return ANSWER_ACCEPTED;
}

/* ---- what becomes of attempts ---- */

static struct attempt *current(const struct deed *d, struct step *s)
{
    struct attempt *a = step_open_attempt(s);

    return a && a->direction == d->ev->direction && a->number == d->ev->attempt ? a : NULL;
}

static void attempt_end(struct deed *d, struct attempt *a, enum outcome outcome, enum effect effect)
{
    ASSERT(a->outcome == OUTCOME_OPEN);
    a->outcome = outcome;
    a->effect = effect;
    a->ended_at = d->now;
}

static enum answer on_not_sent(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a)
        return ANSWER_REFUSED;
    attempt_end(d, a, OUTCOME_NOT_SENT, EFFECT_NONE);
    if (s->direction == DIRECTION_FORWARD)
        step_move(s, STEP_WAITING);
    return ANSWER_ACCEPTED;
}

static enum answer on_timeout(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a)
        return ANSWER_REFUSED;
    attempt_end(d, a, OUTCOME_TIMED_OUT, EFFECT_UNKNOWN);
    note(&a->error, "timeout", "no answer by complete-by");
    s->error = a->error;
    step_fails(d, s, (struct failure){.retryable = true});
    return ANSWER_ACCEPTED;
}

static void step_completes(struct deed *d, struct step *s)
{
    s->error = (struct fault_note){0};
    if (s->direction == DIRECTION_UNDO) {
        step_move(s, STEP_UNDONE);
        return;
    }
    s->output = d->ev->output;
    if (!s->output.json.ptr)
        s->output.json = SLICE("null");
    step_move(s, STEP_COMPLETED);
}

/* The answer to an attempt that is no longer the current one: kept with it, as the last word on
 * what it did; it changes no state. */
static enum answer keep_late(struct deed *d, struct attempt *a)
{
    if (a->outcome == OUTCOME_LATE)
        return ANSWER_LATE;
    if (a->outcome == OUTCOME_COMPLETED || a->outcome == OUTCOME_FAILED)
        return ANSWER_REPEATED;
    a->outcome = OUTCOME_LATE;
    a->effect = d->ev->failed ? d->ev->effect : EFFECT_HAPPENED;
    if (d->ev->failed)
        a->error = d->ev->error;
    else
        a->output = d->ev->output;
    d->fx->changed = true;
    return ANSWER_LATE;
}

static enum answer on_result(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a) {
        a = step_find_attempt(s, d->ev->direction, d->ev->attempt);
        return a ? keep_late(d, a) : ANSWER_UNKNOWN;
    }
    if (!d->ev->failed) {
        attempt_end(d, a, OUTCOME_COMPLETED, EFFECT_HAPPENED);
        step_completes(d, s);
        return ANSWER_ACCEPTED;
    }
    ASSERT(d->ev->effect != EFFECT_HAPPENED);
    attempt_end(d, a, OUTCOME_FAILED, d->ev->effect);
    a->error = d->ev->error;
    s->error = d->ev->error;
    step_fails(d, s,
               (struct failure){.retryable = d->ev->retryable,
                                .retry_after_ms = d->ev->retry_after_ms});
    return ANSWER_ACCEPTED;
}

static enum answer on_bad_input(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (!step_is_ready_now(d))
        return ANSWER_REFUSED;
    s->error = d->ev->error;
    if (d->t->direction == DIRECTION_UNDO)
        begin_undo(s);
    s->failure_count++;
    d->t->failure_count++;
    if (s->state != STEP_FAILED) {
        fail_for_good(d, s);
    } else { /* failed forward in doubt; now its compensation is stuck too */
        d->t->error = s->error;
    }
    return ANSWER_ACCEPTED;
}

static enum answer on_condition(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (d->t->direction == DIRECTION_UNDO || s->attempt != 0 || !step_is_ready_now(d))
        return ANSWER_REFUSED;
    step_move(s, STEP_SKIPPED);
    return ANSWER_ACCEPTED;
}

static enum answer on_deadline(struct deed *d)
{
    struct task *t = d->t;
    bool undo = t->direction == DIRECTION_UNDO;
    int64_t at = undo ? t->undo_complete_by : t->complete_by;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || at == 0 || t->deadline_passed)
        return ANSWER_REFUSED;
    t->deadline_passed = true;
    if (!undo && any_pivot_completed(d)) {
        d->fx->alert = true; /* it can only go forward: a person should know, once */
        return ANSWER_ACCEPTED;
    }
    if (!t->error.code.ptr || undo)
        note(&t->error, "deadline",
             undo ? "the undo's complete-by passed" : "the task's complete-by passed");
    if (undo)
        t->stop = STOP_HOLD;
    else
        stop_for_failure(d, d->w->on_failure == ON_FAILURE_HOLD ? ON_FAILURE_HOLD
                                                                : ON_FAILURE_UNDO);
    return ANSWER_ACCEPTED;
}

/* ---- owners ---- */

static enum answer on_claim(struct deed *d)
{
    struct task *t = d->t;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return ANSWER_REFUSED;
    if (slice_eq(t->locked_by, d->ev->instance))
        return ANSWER_REPEATED;
    t->locked_by = d->ev->instance;
    if (t->state == TASK_PENDING)
        task_move(t, t->direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING);
    if (t->started_at == 0)
        t->started_at = d->now;
    return ANSWER_ACCEPTED;
}

static enum answer on_release(struct deed *d)
{
    if (!d->t->locked_by.ptr || anything_open(d->t))
        return ANSWER_REFUSED;
    d->t->locked_by = SLICE_NONE;
    task_move(d->t, TASK_PENDING);
    return ANSWER_ACCEPTED;
}

/* ---- the operator ---- */

static void resume(struct deed *d)
{
    struct task *t = d->t;

    if (t->state != TASK_ERROR)
        return;
    t->ended_at = 0;
    t->stop = STOP_NONE;
    t->error = (struct fault_note){0};
    task_move(t, t->direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING);
}

/* Gives a step new tries: one that failed for good, or one that waits for its next try. */
static bool retry_step(struct deed *d, uint16_t i)
{
    struct step *s = &d->t->steps[i];

    if (s->state == STEP_FAILED && d->t->state == TASK_ERROR
        && s->direction == d->t->direction && !step_has_ended(&d->w->steps[i], s)) {
        step_move(s, s->direction == DIRECTION_UNDO ? STEP_UNDOING : STEP_WAITING);
        s->failure_count = 0;
        s->wait_until = 0;
        return true;
    }
    if (step_is_open(s) || s->direction != d->t->direction || s->wait_until <= d->now)
        return false;
    s->wait_until = 0;
    return true;
}

static enum answer on_retry(struct deed *d)
{
    bool any = d->t->state == TASK_ERROR && d->ev->step < 0; /* a deadline alone stopped it */

    if (task_state_is_end(d->t->state))
        return ANSWER_REFUSED;
    for (uint16_t i = 0; i < d->t->step_count; i++)
        if (d->ev->step < 0 || d->ev->step == i)
            any |= retry_step(d, i);
    if (!any)
        return ANSWER_REFUSED;
    if (d->t->state == TASK_ERROR && d->t->direction == DIRECTION_UNDO)
        d->t->undo_complete_by = 0; /* the operator takes the time it takes */
    resume(d);
    return ANSWER_ACCEPTED;
}

static bool may_skip(const struct deed *d, const struct step *s)
{
    if (task_state_is_end(d->t->state) || step_is_open(s))
        return false;
    if (d->t->direction == DIRECTION_UNDO)
        return step_needs_undo(&d->w->steps[d->ev->step], s);
    return (s->state == STEP_WAITING || s->state == STEP_FAILED)
           && (d->t->stop != STOP_UNDO || d->t->state == TASK_ERROR);
}

static bool any_stuck(const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_undo_is_stuck(&t->steps[i]))
            return true;
    return false;
}

static enum answer on_skip(struct deed *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (!may_skip(d, s))
        return ANSWER_REFUSED;
    if (d->t->direction == DIRECTION_UNDO) {
        begin_undo(s);
        step_move(s, STEP_UNDONE);
        if (!any_stuck(d->t))
            resume(d);
        return ANSWER_ACCEPTED;
    }
    step_move(s, STEP_SKIPPED);
    s->output = d->ev->output;
    s->wait_until = 0;
    if (!any_stands_failed(d))
        resume(d);
    return ANSWER_ACCEPTED;
}

static enum answer on_undo(struct deed *d)
{
    struct task *t = d->t;

    if (task_state_is_end(t->state))
        return ANSWER_REFUSED;
    if (t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO)
        return ANSWER_REPEATED;
    enum pivots p = pivots_look(d);
    if (p == PIVOTS_COMPLETED || p == PIVOTS_STAND
        || (p == PIVOTS_UNRESOLVED && t->state == TASK_ERROR))
        return ANSWER_REFUSED;
    if (!t->error.code.ptr)
        t->error = d->ev->error;
    t->stop = STOP_UNDO;
    if (t->state == TASK_ERROR) {
        t->ended_at = 0;
        turn_back(d);
    }
    return ANSWER_ACCEPTED;
}

static enum answer happen(struct deed *d)
{
    switch (d->ev->kind) {
    case EVENT_START:
        return on_start(d);
    case EVENT_NOT_SENT:
        return on_not_sent(d);
    case EVENT_RESULT:
        return on_result(d);
    case EVENT_TIMEOUT:
        return on_timeout(d);
    case EVENT_DEADLINE:
        return on_deadline(d);
    case EVENT_CONDITION:
        return on_condition(d);
    case EVENT_BAD_INPUT:
        return on_bad_input(d);
    case EVENT_CLAIM:
        return on_claim(d);
    case EVENT_RELEASE:
        return on_release(d);
    case EVENT_RETRY:
        return on_retry(d);
    case EVENT_SKIP:
        return on_skip(d);
    case EVENT_UNDO:
        return on_undo(d);
    }
    UNREACHABLE();
}

static bool names_a_step(enum event_kind k)
{
    return k != EVENT_DEADLINE && k != EVENT_CLAIM && k != EVENT_RELEASE && k != EVENT_RETRY
           && k != EVENT_UNDO;
}

enum answer decide(const struct workflow *w, struct task *t, const struct event *event, int64_t now,
                   struct effects *fx)
{
    struct deed d = {w, t, event, now, fx};
    enum direction before = t->direction;

    ASSERT(now > 0);
    ASSERT(t->step_count == w->step_count);
    if (event->step >= w->step_count || (event->step < 0 && names_a_step(event->kind)))
        return ANSWER_UNKNOWN;
    enum answer answer = happen(&d);
    if (answer == ANSWER_ACCEPTED)
        fx->changed = true;
    if (fx->changed)
        settle(&d);
    ASSERT(before == DIRECTION_FORWARD || t->direction == DIRECTION_UNDO); /* invariant 8 */
    ASSERT(task_valid(w, t));
    return answer;
}

/* ---- deadlines ---- */

int64_t task_wake_at(const struct task *t)
{
    int64_t at = 0;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return 0;
    if (!t->deadline_passed)
        at = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct attempt *a = step_open_attempt(&t->steps[i]);
        if (a && (at == 0 || a->complete_by < at))
            at = a->complete_by;
    }
    return at;
}

int64_t deadline_at(int64_t complete_by, const struct lost_time *lost)
{
    int64_t grace_end = lost->until + lost->grace_ms;

    if (lost->until == 0 || complete_by < lost->from || complete_by >= grace_end)
        return complete_by;
    return grace_end;
}

bool step_is_overdue(const struct step *s, int64_t now, const struct lost_time *lost)
{
    const struct attempt *a = step_open_attempt(s);

    if (!a)
        return false;
    if (a->started_at >= lost->until)
        return a->complete_by <= now; /* it began after the time was lost */
    return deadline_at(a->complete_by, lost) <= now;
}

bool task_is_overdue(const struct task *t, int64_t now, const struct lost_time *lost)
{
    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->deadline_passed)
        return false;
    int64_t at = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    return at != 0 && deadline_at(at, lost) <= now;
}
