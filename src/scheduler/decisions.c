/* Decides what needs no agent: the `if` of steps whose turn it is, when steps that wait begin and
 * are over, whether an answer ends a repeated step, and which step takes which signal. Within the
 * turn's share of evaluations. Also stops tasks whose evaluations ended a server. inputs.c
 * evaluates; start.c goes on. */

#include "scheduler/internal.h"

/* An operator who lets the task go on resets the count, and that must be durable first. */
static bool is_let_go(const struct live *l)
{
    return l->erred && l->task.state != TASK_ERROR;
}

bool overrun_hold(struct scheduler *s, struct live *l)
{
    const struct event overrun = {.kind = EVENT_OVERRUN, .step = -1};

    if (!l->loaded || !overruns_too_often(&s->tasks.overruns, l->id))
        return false;
    if (!l->erred)
        (void)live_decide(&s->tasks, l,
                          &overrun); /* refused once it has ended, stops or is paused */
    return is_let_go(l);
}

bool overrun_is_over(const struct scheduler *s, const struct live *l)
{
    return overruns_has(&s->tasks.overruns, l->id)
           && (task_state_is_end(l->task.state) || l->task.closed_at != 0 || is_let_go(l));
}

void decision_bad_input(struct scheduler *s, struct live *l, uint16_t step, const char *code,
                        const struct error *e)
{
    const struct event bad = {
        .kind = EVENT_BAD_INPUT,
        .step = step,
        .error = {slice_of(code), arena_copy(&l->arena, slice_of(e->text))},
    };
    enum answer answer = live_decide(&s->tasks, l, &bad);

    ASSERT(answer == ANSWER_ACCEPTED);
}

/* Is its `if` still to be evaluated? */
static bool condition_is_open(const struct scheduler *s, const struct live *l,
                              const struct ready *r)
{
    const struct workflow *w = &l->definition->workflow;
    const struct step *st = &l->task.steps[r->step];

    return !unit_is_slot(w, r->step) && l->definition->steps[r->step].condition
           && r->at <= scheduler_now(s)
           && step_next_direction(w, &l->task, r->step) == DIRECTION_FORWARD
           && !l->steps[r->step].holds && !step_was_tried(st) && !step_has_begun(st);
}

bool decision_is_open(const struct scheduler *s, const struct live *l, const struct ready *r)
{
    ASSERT(r->step < task_unit_count(&l->task));
    return (!step_calls(&l->definition->workflow, &l->task, r->step) && r->at <= scheduler_now(s))
           || step_is_answered(&l->task.steps[r->step]) || condition_is_open(s, l, r);
}

/* What became of a ready step. */
enum decision_outcome {
    DECISION_NONE,   /* it is as it was: its `if` holds, and it needs an agent */
    DECISION_MADE,   /* it was skipped, begins or is over: that may make other steps ready */
    DECISION_FAILED, /* the task goes another way */
    DECISION_LEFT,   /* left for the next turn */
};

static enum decision_outcome decide_step(struct scheduler *s, struct live *l,
                                         const struct event *ev)
{
    enum answer answer = live_decide(&s->tasks, l, ev);

    ASSERT(answer == ANSWER_ACCEPTED);
    return DECISION_MADE;
}

/* If it fails, the task may stop or turn back: then what was ready is not any more. */
static enum decision_outcome decide_step_that_may_fail(struct scheduler *s, struct live *l,
                                                       const struct event *ev)
{
    (void)decide_step(s, l, ev);
    return l->task.steps[ev->step].state == STEP_FAILED ? DECISION_FAILED : DECISION_MADE;
}

static enum decision_outcome condition_of(struct scheduler *s, struct live *l, uint16_t step)
{
    const struct event skip = {.kind = EVENT_CONDITION, .step = step};
    struct error e = {0};

    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return DECISION_LEFT;
    if (input_condition(s, l, step, &l->steps[step].holds, &e) != ERR_OK) {
        l->steps[step].holds = false;
        decision_bad_input(s, l, step, evaluation_code(&e), &e);
        return DECISION_FAILED;
    }
    return l->steps[step].holds ? DECISION_NONE : decide_step(s, l, &skip);
}

/* ---- people ---- */

static void put_vote(struct buf *b, const struct vote *v)
{
    json_open(b, '{');
    json_member_text(b, "by", v->person);
    json_member_time(b, "at", v->at);
    json_key(b, "comment");
    if (v->comment.ptr)
        json_string(b, v->comment);
    else
        json_null(b);
    json_close(b, '}');
}

static void put_votes(struct buf *b, const struct task *t, uint16_t step)
{
    json_key(b, "votes");
    json_open(b, '[');
    for (uint16_t i = 0; i < t->vote_count; i++)
        if (t->votes[i].step == step)
            put_vote(b, &t->votes[i]);
    json_close(b, ']');
}

static struct slice output_of_votes(struct live *l, uint16_t step)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_bool(&b, "approved", true);
    put_votes(&b, &l->task, step);
    json_close(&b, '}');
    return arena_copy(&l->arena, buf_view(&b));
}

/* People are asked, or have decided. */
static enum decision_outcome approval_of(struct scheduler *s, struct live *l, uint16_t step)
{
    struct event ev = {.kind = EVENT_DECIDED, .step = step};
    struct error e = {0};

    if (step_has_begun(&l->task.steps[step])) {
        ev.output.json = output_of_votes(l, step);
        return decide_step_that_may_fail(s, l, &ev);
    }
    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return DECISION_LEFT;
    ev.kind = EVENT_BEGIN;
    if (input_question(s, l, step, &ev.input.json, &e) != ERR_OK) {
        decision_bad_input(s, l, step, evaluation_code(&e), &e);
        return DECISION_FAILED;
    }
    return decide_step(s, l, &ev);
}

/* A child starts. Its input is checked now, by the version of its workflow that the family has, so
 * that one which is refused fails the step. */
static enum decision_outcome child_of(struct scheduler *s, struct live *l, uint16_t step)
{
    struct event ev = {.kind = EVENT_BEGIN, .step = step};
    struct error e = {0};

    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return DECISION_LEFT;
    if (!input_of_step(s, l, step, &ev.input, &e)
        || !input_of_child_ok(s, l, step, &ev.input, &e)) {
        decision_bad_input(s, l, step, evaluation_code(&e), &e);
        return DECISION_FAILED;
    }
    return decide_step(s, l, &ev);
}

/* The list is fixed now. Its items are requests to an agent. */
static enum decision_outcome list_of(struct scheduler *s, struct live *l, uint16_t step)
{
    struct event ev = {.kind = EVENT_BEGIN, .step = step};
    struct item_list list = {0};
    const char *code = "expression";
    struct error e = {0};

    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return DECISION_LEFT;
    if (input_list(s, l, step, &list, &code, &e) != ERR_OK) {
        decision_bad_input(s, l, step, code, &e);
        return DECISION_FAILED;
    }
    ev.list = &list;
    return decide_step(s, l, &ev);
}

/* The wait begins or ends. A step that waits for a signal only begins. */
static enum decision_outcome wait_of(struct scheduler *s, struct live *l, uint16_t step)
{
    struct event ev = {.kind = EVENT_BEGIN, .step = step};
    struct error e = {0};

    if (l->definition->workflow.steps[step].kind == KIND_APPROVE)
        return approval_of(s, l, step);
    if (l->definition->workflow.steps[step].kind == KIND_TASK)
        return child_of(s, l, step);
    if (l->definition->workflow.steps[step].kind == KIND_EACH)
        return list_of(s, l, step);
    if (step_has_begun(&l->task.steps[step])) {
        ev.kind = EVENT_DUE;
        return decide_step(s, l, &ev);
    }
    if (l->definition->steps[step].wait_until) {
        if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
            return DECISION_LEFT;
        if (input_wait_until(s, l, step, &ev.until, &e) != ERR_OK) {
            decision_bad_input(s, l, step, evaluation_code(&e), &e);
            return DECISION_FAILED;
        }
    }
    return decide_step(s, l, &ev);
}

/* Is another round needed? If there is no time for one, it fails. */
static enum decision_outcome answer_of(struct scheduler *s, struct live *l, uint16_t step)
{
    struct event ev = {.kind = EVENT_UNTIL, .step = step};
    struct error e = {0};

    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return DECISION_LEFT;
    if (input_until(s, l, step, &ev.holds, &e) != ERR_OK) {
        decision_bad_input(s, l, step, evaluation_code(&e), &e);
        return DECISION_FAILED;
    }
    return decide_step_that_may_fail(s, l, &ev);
}

static enum decision_outcome decision_of(struct scheduler *s, struct live *l, const struct ready *r)
{
    enum decision_outcome outcome = DECISION_NONE;

    if (step_is_answered(&l->task.steps[r->step]))
        return answer_of(s, l, r->step);
    if (condition_is_open(s, l, r))
        outcome = condition_of(s, l, r->step);
    if (outcome == DECISION_NONE && !step_calls(&l->definition->workflow, &l->task, r->step))
        outcome = wait_of(s, l, r->step);
    return outcome;
}

/* Decides each of the ready steps once: what is decided of one makes others ready, and leaves ready
 * ones as they are. */
static enum decision_outcome decide_ready(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    size_t count = queue_ready(&s->tasks, l, &ready);
    enum decision_outcome all = DECISION_NONE;

    for (size_t i = 0; i < count; i++) {
        if (!decision_is_open(s, l, &ready[i]))
            continue;
        enum decision_outcome one = decision_of(s, l, &ready[i]);
        if (one == DECISION_FAILED || one == DECISION_LEFT)
            return one;
        all = one == DECISION_MADE ? one : all;
    }
    return all;
}

/* ---- signals ---- */

static struct slice output_of_signal(struct live *l, const struct signal *sig)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "name", sig->name);
    json_member_raw(&b, "data", sig->data.json);
    json_close(&b, '}');
    return arena_copy(&l->arena, buf_view(&b));
}

/* Whether it is one that the step waits for, if it matches: by its name, and not late. */
static bool may_be_for(const struct live *l, uint16_t step, const struct signal *sig)
{
    int64_t by = l->task.steps[step].complete_by;

    return sig->state == SIGNAL_KEPT
           && (by == 0 || sig->at <= max_i64(by, l->steps[step].signals_until))
           && step_takes_signal(&l->definition->workflow.steps[step], sig->name);
}

/* LEFT: that is not known yet. */
static enum decision_outcome offer(struct scheduler *s, struct live *l, uint16_t step,
                                   const struct signal *sig)
{
    struct event take = {.kind = EVENT_TAKE, .step = step, .signal = sig};

    if (!may_be_for(l, step, sig))
        return DECISION_NONE;
    if (l->definition->steps[step].match) {
        if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
            return DECISION_LEFT;
        if (!input_match(s, l, step, sig))
            return DECISION_NONE;
    }
    take.output.json = output_of_signal(l, sig);
    return decide_step(s, l, &take);
}

/* Whether the step waits, and something arrived that was not offered to it. */
static bool has_offers(const struct scheduler *s, const struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;

    return w->steps[step].kind == KIND_SIGNAL && l->steps[step].signals_seen < l->task.signal_count
           && step_awaits_signal(w, &l->task, step, scheduler_now(s));
}

/* Steps that wait, and were not offered everything yet. */
struct takers {
    uint16_t list[STEPS_MAX];
    uint16_t count;
};

static void find_takers(const struct scheduler *s, const struct live *l, struct takers *ret)
{
    const struct workflow *w = &l->definition->workflow;

    ret->count = 0;
    for (uint16_t n = 0; n < w->step_count; n++)
        if (has_offers(s, l, w->order[n]))
            ret->list[ret->count++] = w->order[n];
}

/* MADE: one of them took it. */
static enum decision_outcome offer_to(struct scheduler *s, struct live *l, struct takers *to,
                                      uint16_t k)
{
    for (uint16_t n = 0; n < to->count; n++) {
        uint16_t i = to->list[n];
        if (l->steps[i].signals_seen > k)
            continue;
        enum decision_outcome one = offer(s, l, i, &l->task.signals[k]);
        if (one == DECISION_LEFT)
            return one;
        l->steps[i].signals_seen = (uint16_t)(k + 1);
        if (one == DECISION_MADE) {
            to->count--;
            memmove(&to->list[n], &to->list[n + 1], (to->count - n) * sizeof to->list[0]);
            return one;
        }
    }
    return DECISION_NONE;
}

/* Each signal, in the order of arrival, to the first step that it is for. What was offered to a
 * step is not offered again while the task is in memory and nothing changes that the answer depends
 * on. That a step takes one changes nothing for other steps that wait. */
static enum decision_outcome offer_signals(struct scheduler *s, struct live *l)
{
    enum decision_outcome all = DECISION_NONE;
    struct takers to;

    find_takers(s, l, &to);
    for (uint16_t k = 0; k < l->task.signal_count && to.count > 0; k++) {
        if (l->task.signals[k].state != SIGNAL_KEPT)
            continue;
        enum decision_outcome one = offer_to(s, l, &to, k);
        if (one == DECISION_LEFT)
            return one;
        all = one == DECISION_MADE ? one : all;
    }
    for (uint16_t n = 0; n < to.count; n++)
        l->steps[to.list[n]].signals_seen = l->task.signal_count;
    return all;
}

bool decisions_offers_left(const struct scheduler *s, const struct live *l, uint16_t step)
{
    if (!has_offers(s, l, step))
        return false;
    for (uint16_t k = l->steps[step].signals_seen; k < l->task.signal_count; k++)
        if (may_be_for(l, step, &l->task.signals[k]))
            return true;
    return false;
}

bool decisions_any_offers_left(const struct scheduler *s, const struct live *l)
{
    for (uint16_t i = 0; l->task.signal_count > 0 && i < l->task.step_count; i++)
        if (decisions_offers_left(s, l, i))
            return true;
    return false;
}

static enum decision_outcome decide_all(struct scheduler *s, struct live *l)
{
    enum decision_outcome ready = decide_ready(s, l);

    if (ready == DECISION_LEFT || l->task.signal_count == 0)
        return ready;
    enum decision_outcome signals = offer_signals(s, l);
    return signals == DECISION_NONE ? ready : signals;
}

/* A claim found that a newer task waits for its lock instead. That is in its row, so it holds
 * whoever owns the task by now, and after a pause. A pivot that an operator supplied before it
 * began blocks the undo: then it waits for its lock as others do. */
static void decide_replaced(struct scheduler *s, struct live *l)
{
    const struct event undo = {
        .kind = EVENT_UNDO,
        .step = -1,
        .error = {SLICE("replaced"), SLICE("a newer task waits for the same lock")},
    };

    if (l->task.lock_mode == LOCK_REPLACED && l->task.direction == DIRECTION_FORWARD
        && l->task.stop == STOP_NONE && l->task.paused_at == 0 && live_is_ours(&s->tasks, l))
        (void)live_decide(&s->tasks, l, &undo);
}

void decisions_make(struct scheduler *s, struct live *l)
{
    enum decision_outcome last = DECISION_NONE;

    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    link_remove(&l->undecided);
    if (task_lacks_lock(&l->task)) {
        decide_replaced(s, l);
        return;
    }
    if (!l->definition->has_decisions)
        return;
    do
        last = decide_all(s, l);
    while (last == DECISION_MADE || last == DECISION_FAILED);
    inputs_evaluated(s);
    if (last == DECISION_LEFT)
        list_push(&s->tasks.undecided, &l->undecided);
}
