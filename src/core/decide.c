/* decide(): what each event does to a task, its steps and attempts. Pure: see decide.h. The
 * operator's verbs are in verbs.c, the consequences for the whole task in settle.c. */
#include "core/decision.h"

#include "core/attempts.h"
#include "core/items.h"
#include "core/ready.h"
#include "core/repeat.h"
#include "core/retry.h"
#include "core/summary.h"
#include "core/undo.h"

/* ---- attempts ---- */

/* The first attempt of a round begins it; that of the first round begins the time for all rounds.
 */
static void begin_round(const struct decision *d, struct step *s)
{
    if (s->round == 0)
        s->round = 1;
    if (s->round_at == 0)
        s->round_at = d->now;
    if (s->repeat_until == 0)
        s->repeat_until = d->now + d->w->steps[d->ev->step].repeat.for_ms;
}

static enum answer on_start(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt a = task_next_attempt(d->w, d->t, d->ev->step, d->now);

    if (!step_calls(d->w, d->t, (uint16_t)d->ev->step) || task_lacks_lock(d->t)
        || !step_is_ready(d->w, d->t, (uint16_t)d->ev->step, d->now)
        || d->ev->direction != a.direction || d->ev->attempt != a.number || a.complete_by <= d->now)
        return ANSWER_REFUSED;
    ASSERT(!step_needs_room(s));
    if (unit_is_slot(d->w, d->ev->step) && s->slot == SLOT_FREE)
        item_begins(d, s);
    a.instance = d->ev->instance;
    if (a.direction == DIRECTION_UNDO) {
        begin_undo(s);
        if (!s->undo_input.json.ptr)
            s->undo_input = d->ev->input;
        if (s->state != STEP_UNDOING)
            step_move(s, STEP_UNDOING);
    } else {
        if (!s->input.json.ptr)
            s->input = d->ev->input;
        step_move(s, STEP_RUNNING);
        if (step_is_repeated(&d->w->steps[d->ev->step]))
            begin_round(d, s);
    }
    if (s->attempt_count == ATTEMPTS_KEPT)
        drop_attempt(s);
    s->attempt = a.number;
    s->wait_until = 0;
    s->attempts[s->attempt_count++] = a;
    return ANSWER_ACCEPTED;
}

/* ---- outcomes of attempts ---- */

static struct attempt *current(const struct decision *d, struct step *s)
{
    struct attempt *a = step_open_attempt(s);

    return a && a->direction == d->ev->direction && a->number == d->ev->attempt ? a : NULL;
}

static void attempt_end(struct decision *d, struct attempt *a, enum outcome outcome,
                        enum effect effect)
{
    ASSERT(a->outcome == OUTCOME_OPEN);
    a->outcome = outcome;
    a->effect = effect;
    a->ended_at = d->now;
}

static enum answer on_not_sent(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a || a->resent > 0 || a->elsewhere) /* another process may have sent it */
        return ANSWER_REFUSED;
    attempt_end(d, a, OUTCOME_NOT_SENT, EFFECT_NONE);
    if (s->direction == DIRECTION_FORWARD)
        step_move(s, STEP_WAITING);
    return ANSWER_ACCEPTED;
}

static enum answer on_send_again(struct decision *d)
{
    struct attempt *a = current(d, &d->t->steps[d->ev->step]);

    if (!a || a->elsewhere || d->now >= a->complete_by)
        return ANSWER_REFUSED;
    a->resent++;
    return ANSWER_ACCEPTED;
}

/* The effect of an attempt that returned an error. If the request was sent more than once, the
 * error covers one delivery only: another may still take effect. */
static enum effect effect_of_error(const struct decision *d, const struct attempt *a)
{
    ASSERT(d->ev->effect != EFFECT_HAPPENED);
    return a->resent > 0 ? EFFECT_UNKNOWN : d->ev->effect;
}

/* Resume details for the next attempt. An attempt without new ones keeps the previous ones. */
static void keep_resume(const struct decision *d, struct step *s)
{
    if (d->ev->resume.ptr)
        s->resume = d->ev->resume;
}

static void give_up(struct decision *d, struct step *s, struct attempt *a)
{
    attempt_end(d, a, OUTCOME_TIMED_OUT, EFFECT_UNKNOWN);
    s->error = a->error;
    keep_resume(d, s);
    step_fails(d, s, (struct failure){.retryable = true});
}

/* The silent instance may still be working on the attempt, so a step in doubt waits for its
 * complete-by. */
static enum answer on_silence(struct decision *d)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a || a->elsewhere)
        return ANSWER_REFUSED;
    int64_t ms = a->direction == DIRECTION_UNDO ? ws->undo.heartbeat_ms : ws->call.heartbeat_ms;
    if (ms == 0 || d->now < a->started_at + ms)
        return ANSWER_REFUSED;
    note(&a->error, "heartbeat", "no heartbeat arrived in time");
    give_up(d, s, a);
    return ANSWER_ACCEPTED;
}

void step_completes(struct decision *d, struct step *s)
{
    s->error = (struct fault_note){0};
    s->resume = SLICE_NONE; /* no attempt follows */
    if (s->direction == DIRECTION_UNDO) {
        step_move(s, STEP_UNDONE);
        return;
    }
    s->output = d->ev->output; /* EVENT_DUE has none */
    if (!s->output.json.ptr)
        s->output.json = SLICE("null");
    /* Whether it ends a repeated step is found by EVENT_UNTIL. */
    step_move(s, step_is_repeated(&d->w->steps[d->ev->step]) ? STEP_WAITING : STEP_COMPLETED);
}

/* The answer to a result for an attempt that has ended. */
static enum answer answer_to_ended(const struct attempt *a)
{
    if (a->outcome == OUTCOME_NOT_SENT)
        return ANSWER_REFUSED; /* the request was never sent, so no agent can have executed it */
    return a->outcome == OUTCOME_TIMED_OUT || a->outcome == OUTCOME_LATE ? ANSWER_LATE
                                                                         : ANSWER_REPEATED;
}

/* An operator resolved the step as having no effect, and then a result says that it took effect.
 * Normally that counts like any other effect. An operator is needed if the task can no longer undo
 * it, as all other items of the list are undone, or if the step has another key by now. */
static void contradict_resolve(struct decision *d, const struct step *s, uint32_t generation)
{
    enum undo_kind undo = d->w->steps[d->ev->step].undo_kind;
    const struct step *list = &d->t->steps[unit_step(d->w, (uint16_t)d->ev->step)];
    bool ended = d->t->state == TASK_COMPENSATED || (list != s && list->state == STEP_UNDONE);
    bool past = d->t->direction == DIRECTION_UNDO
                && (undo == UNDO_PIVOT || (ended && s->state != STEP_UNDONE));

    if (undo == UNDO_NONE || (!past && generation == s->generation))
        return;
    note(&d->t->error, "resolved", "a step that an operator had resolved took effect");
    d->fx->alert = true;
}

/* A result for an attempt that is no longer current. It is stored with the attempt, as the final
 * word on its effect; no state changes. */
static enum answer keep_late(struct decision *d, const struct step *s, struct attempt *a)
{
    if (a->outcome != OUTCOME_TIMED_OUT)
        return answer_to_ended(a);
    a->outcome = OUTCOME_LATE;
    a->tries = d->ev->tries;
    a->effect = d->ev->failed ? effect_of_error(d, a) : EFFECT_HAPPENED;
    if (d->ev->failed)
        a->error = d->ev->error;
    else
        a->output = d->ev->output;
    if (!d->ev->failed && a->direction == DIRECTION_FORWARD && a->number <= s->resolved)
        contradict_resolve(d, s, a->generation);
    d->fx->changed = true;
    return ANSWER_LATE;
}

/* The same for a merged attempt. If the merged ones are in doubt, they stay so. A result that
 * contradicts a resolve must be recorded. The attempt's key is known if it has not changed
 * since. */
static enum answer keep_merged(struct decision *d, struct step *s)
{
    const struct event *ev = d->ev;

    if (s->dropped_count == 0 || s->dropped_effect == EFFECT_NONE || ev->failed || ev->attempt == 0
        || ev->direction == DIRECTION_UNDO || ev->attempt > s->resolved)
        return ANSWER_UNKNOWN;
    if (s->dropped_effect != EFFECT_HAPPENED) {
        s->dropped_effect = EFFECT_HAPPENED;
        contradict_resolve(d, s, s->attempts[ATTEMPTS_HEAD - 1].generation);
        d->fx->changed = true;
    }
    return ANSWER_LATE;
}

static enum answer on_result(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a) {
        a = step_find_attempt(s, d->ev->direction, d->ev->attempt);
        return a ? keep_late(d, s, a) : keep_merged(d, s);
    }
    a->tries = d->ev->tries;
    if (!d->ev->failed) {
        attempt_end(d, a, OUTCOME_COMPLETED, EFFECT_HAPPENED);
        step_completes(d, s);
        return ANSWER_ACCEPTED;
    }
    attempt_end(d, a, OUTCOME_FAILED, effect_of_error(d, a));
    a->error = d->ev->error;
    s->error = d->ev->error;
    keep_resume(d, s);
    step_fails(d, s,
               (struct failure){.retryable = d->ev->retryable,
                                .retry_after_ms = d->ev->retry_after_ms});
    return ANSWER_ACCEPTED;
}

static enum answer on_elsewhere(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (!a) {
        a = step_find_attempt(s, d->ev->direction, d->ev->attempt);
        return a ? answer_to_ended(a) : ANSWER_UNKNOWN;
    }
    if (a->elsewhere)
        return ANSWER_REPEATED;
    a->elsewhere = true;
    keep_resume(d, s);
    return ANSWER_ACCEPTED;
}

static enum answer on_extend(struct decision *d)
{
    struct task *t = d->t;
    int64_t *at = t->direction == DIRECTION_UNDO ? &t->undo_complete_by : &t->complete_by;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->deadline_passed || *at == 0
        || d->ev->until <= *at)
        return ANSWER_REFUSED;
    *at = d->ev->until;
    return ANSWER_ACCEPTED;
}

static enum answer on_bad_input(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    bool undo = step_next_direction(d->w, d->t, (uint16_t)d->ev->step) == DIRECTION_UNDO;

    if (!step_may_be_decided(d->w, d->t, (uint16_t)d->ev->step, d->now)
        || (s->begun_at != 0 && !undo))
        return ANSWER_REFUSED;
    if (unit_is_slot(d->w, d->ev->step) && s->slot == SLOT_FREE)
        item_begins(d, s);
    s->error = d->ev->error;
    if (undo)
        begin_undo(s);
    s->failure_count++;
    d->t->failure_count++;
    if (s->state != STEP_FAILED) {
        fail_for_good(d, s);
    } else { /* it failed forward in doubt; now its compensation failed too */
        d->t->error = s->error;
    }
    return ANSWER_ACCEPTED;
}

/* ---- rounds ---- */

/* Another round begins, without a failure. Only what it needs of the last one is kept. */
static void next_round(const struct decision *d, struct step *s)
{
    const struct repeat_rule *r = &d->w->steps[d->ev->step].repeat;

    s->wait_until = task_clock(d) + repeat_gap(r, s->round);
    s->round++;
    s->round_at = 0;
    s->failure_count = 0;
    s->spared_count = 0;
    s->spared_at = 0;
    if (r->input_varies && !s->corrected)
        s->input = (struct value){0};
    if (s->output.json.len > ROUND_ANSWER_MAX)
        s->output = (struct value){0};
}

static enum answer on_until(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (!answer_is_ready(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    if (d->ev->holds) {
        step_move(s, STEP_COMPLETED);
    } else if (s->round_at < s->repeat_until) {
        next_round(d, s);
    } else {
        note(&s->error, "not_yet", "the time for its rounds has passed");
        s->failure_count++;
        d->t->failure_count++;
        fail_for_good(d, s);
    }
    return ANSWER_ACCEPTED;
}

static enum answer on_condition(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (step_next_direction(d->w, d->t, (uint16_t)d->ev->step) == DIRECTION_UNDO
        || step_was_tried(s) || s->begun_at != 0 || task_lacks_lock(d->t)
        || unit_is_slot(d->w, d->ev->step)
        || !step_may_be_decided(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    step_move(s, STEP_SKIPPED);
    return ANSWER_ACCEPTED;
}

/* ---- waits ---- */

static void ask_people(const struct decision *d, struct step *s, const struct approve_spec *spec)
{
    ASSERT(d->ev->input.json.ptr);
    s->input = d->ev->input;
    s->complete_by = spec->complete_by_ms ? d->now + spec->complete_by_ms : 0;
}

/* The moment is fixed now: it does not change if the values that it was computed from do. A moment
 * in the past is over at once. */
static enum answer on_begin(struct decision *d)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    struct step *s = &d->t->steps[d->ev->step];

    if (s->begun_at != 0 || task_lacks_lock(d->t)
        || !wait_is_ready(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    if (unit_is_slot(d->w, d->ev->step) && s->slot == SLOT_FREE)
        item_begins(d, s);
    s->begun_at = d->now;
    if (ws->kind == KIND_SIGNAL) {
        s->complete_by = ws->signal.complete_by_ms ? d->now + ws->signal.complete_by_ms : 0;
        signals_came_by(d);
    } else if (ws->kind == KIND_APPROVE) {
        ask_people(d, s, &ws->approve);
    } else if (ws->kind == KIND_TASK) {
        child_begins(d, s);
    } else if (ws->kind == KIND_EACH) {
        items_begin(d, s);
    } else {
        s->wait_until = ws->wait_ms ? d->now + ws->wait_ms : max_i64(d->ev->until, 1);
    }
    return ANSWER_ACCEPTED;
}

static enum answer on_due(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (s->begun_at == 0 || d->w->steps[d->ev->step].kind != KIND_WAIT
        || !wait_is_ready(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    step_completes(d, s);
    return ANSWER_ACCEPTED;
}

/* ---- signals ---- */

static enum answer on_take(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct signal *sig = task_find_signal(d->t, d->ev->signal->key);

    if (!sig || sig->state != SIGNAL_KEPT
        || !step_takes_signal(&d->w->steps[d->ev->step], sig->name)
        || !step_awaits_signal(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    ASSERT(d->ev->output.json.ptr);
    sig->state = SIGNAL_TAKEN;
    sig->step = d->ev->step;
    step_completes(d, s);
    return ANSWER_ACCEPTED;
}

static enum answer on_timeout(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct attempt *a = current(d, s);

    if (d->w->steps[d->ev->step].kind == KIND_SIGNAL)
        return signal_is_late(d);
    if (d->w->steps[d->ev->step].kind == KIND_APPROVE)
        return votes_are_late(d);
    if (d->w->steps[d->ev->step].kind == KIND_TASK && !a)
        return child_is_late(d);
    if (!a || d->now < a->complete_by)
        return ANSWER_REFUSED;
    note(&a->error, "timeout", "no result by complete-by");
    give_up(d, s, a);
    return ANSWER_ACCEPTED;
}

static enum answer on_deadline(struct decision *d)
{
    struct task *t = d->t;
    bool undo = t->direction == DIRECTION_UNDO;
    int64_t at = undo ? t->undo_complete_by : t->complete_by;
    struct fault_note why;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || at == 0 || d->now < at
        || t->deadline_passed || t->paused_at != 0)
        return ANSWER_REFUSED;
    t->deadline_passed = true;
    note(&why, "deadline",
         undo ? "the undo's complete-by passed" : "the task's complete-by passed");
    if (undo) {
        t->error = why;
        t->stop = STOP_HOLD;
    } else if (any_pivot_completed(d->w, d->t)) {
        if (t->stop == STOP_NONE)
            t->error = why;
        d->fx->alert = true; /* it can only go forward: one alert informs the operator */
    } else {
        stop_for_failure(d, d->w->on_failure == ON_FAILURE_HOLD ? ON_FAILURE_HOLD : ON_FAILURE_UNDO,
                         -1, &why);
    }
    return ANSWER_ACCEPTED;
}

/* The next evaluation may end the next node as well. Neither forward nor undo is safe, so an
 * operator has to decide. */
static enum answer on_overrun(struct decision *d)
{
    struct task *t = d->t;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->stop == STOP_HOLD
        || t->paused_at != 0)
        return ANSWER_REFUSED;
    note(&t->error, "overrun", "evaluating its expressions took too much processor time, twice");
    if (!t->cause.error.code.ptr)
        t->cause = (struct cause){t->error, -1};
    t->stop = STOP_HOLD;
    return ANSWER_ACCEPTED;
}

/* ---- claim and release ---- */

static enum answer on_claim(struct decision *d)
{
    struct task *t = d->t;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return ANSWER_REFUSED;
    if (slice_eq(t->locked_by, d->ev->instance))
        return ANSWER_REPEATED;
    t->locked_by = d->ev->instance;
    if (t->state == TASK_PENDING)
        task_move(t, t->direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING);
    if (t->started_at == 0 && !task_lacks_lock(t)) /* nothing begins before it has its lock */
        t->started_at = d->now;
    return ANSWER_ACCEPTED;
}

static enum answer on_release(struct decision *d)
{
    if (!d->t->locked_by.ptr || anything_open(d->t))
        return ANSWER_REFUSED;
    d->t->locked_by = SLICE_NONE;
    task_move(d->t, TASK_PENDING);
    return ANSWER_ACCEPTED;
}

/* ---- the end of an outage ---- */

static enum answer on_hasten(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (task_state_is_end(d->t->state) || d->t->state == TASK_ERROR || step_is_open(s)
        || (s->begun_at != 0 && s->direction == DIRECTION_FORWARD) || step_is_between_rounds(s)
        || s->direction != d->ev->direction
        || step_next_direction(d->w, d->t, (uint16_t)d->ev->step) != d->ev->direction
        || s->attempt != d->ev->attempt || s->wait_until <= task_clock(d))
        return ANSWER_REFUSED;
    s->wait_until = 0;
    return ANSWER_ACCEPTED;
}

static enum answer happen(struct decision *d)
{
    switch (d->ev->kind) {
    case EVENT_START:
        return on_start(d);
    case EVENT_NOT_SENT:
        return on_not_sent(d);
    case EVENT_SEND_AGAIN:
        return on_send_again(d);
    case EVENT_RESULT:
        return on_result(d);
    case EVENT_ELSEWHERE:
        return on_elsewhere(d);
    case EVENT_TIMEOUT:
        return on_timeout(d);
    case EVENT_SILENCE:
        return on_silence(d);
    case EVENT_DEADLINE:
        return on_deadline(d);
    case EVENT_EXTEND:
        return on_extend(d);
    case EVENT_CONDITION:
        return on_condition(d);
    case EVENT_BAD_INPUT:
        return on_bad_input(d);
    case EVENT_BEGIN:
        return on_begin(d);
    case EVENT_DUE:
        return on_due(d);
    case EVENT_UNTIL:
        return on_until(d);
    case EVENT_SIGNAL:
        return signal_arrives(d);
    case EVENT_TAKE:
        return on_take(d);
    case EVENT_DROP:
        return signal_drop(d);
    case EVENT_VOTE:
        return vote_arrives(d);
    case EVENT_DECIDED:
        return votes_decide(d);
    case EVENT_BRING:
        return item_comes_back(d);
    case EVENT_CHILD:
        return child_tells(d);
    case EVENT_PARENT:
    case EVENT_PARENT_PAUSE:
    case EVENT_PARENT_RESUME:
        return parent_tells(d);
    case EVENT_CLAIM:
        return on_claim(d);
    case EVENT_RELEASE:
        return on_release(d);
    case EVENT_HASTEN:
        return on_hasten(d);
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_UNDO:
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_CORRECT:
    case EVENT_SUPPLY:
    case EVENT_RESOLVE:
    case EVENT_RETRY_FROM:
    case EVENT_CLOSE:
    case EVENT_REOPEN:
        return verb_apply(d);
    case EVENT_OVERRUN:
        return on_overrun(d);
    }
    UNREACHABLE();
}

static bool names_a_step(enum event_kind k)
{
    return k != EVENT_DEADLINE && k != EVENT_EXTEND && k != EVENT_CLAIM && k != EVENT_RELEASE
           && k != EVENT_RETRY && k != EVENT_UNDO && k != EVENT_PAUSE && k != EVENT_RESUME
           && k != EVENT_CORRECT && k != EVENT_CLOSE && k != EVENT_REOPEN && k != EVENT_OVERRUN
           && k != EVENT_SIGNAL && k != EVENT_DROP && k != EVENT_PARENT && k != EVENT_PARENT_PAUSE
           && k != EVENT_PARENT_RESUME;
}

/* The operator's verbs may change any step, and so may what a parent tells. */
static bool may_change_any_step(enum event_kind k)
{
    switch (k) {
    case EVENT_START:
    case EVENT_NOT_SENT:
    case EVENT_SEND_AGAIN:
    case EVENT_RESULT:
    case EVENT_ELSEWHERE:
    case EVENT_TIMEOUT:
    case EVENT_SILENCE:
    case EVENT_CONDITION:
    case EVENT_BAD_INPUT:
    case EVENT_BEGIN:
    case EVENT_DUE:
    case EVENT_UNTIL:
    case EVENT_SIGNAL:
    case EVENT_TAKE:
    case EVENT_DROP:
    case EVENT_VOTE:
    case EVENT_DECIDED:
    case EVENT_CLAIM:
    case EVENT_RELEASE:
    case EVENT_HASTEN:
    case EVENT_BRING:
    case EVENT_CHILD:
        return false;
    case EVENT_PARENT:
    case EVENT_PARENT_PAUSE:
    case EVENT_PARENT_RESUME:
    case EVENT_DEADLINE:
    case EVENT_EXTEND:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_UNDO:
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_CORRECT:
    case EVENT_SUPPLY:
    case EVENT_RESOLVE:
    case EVENT_RETRY_FROM:
    case EVENT_CLOSE:
    case EVENT_REOPEN:
    case EVENT_OVERRUN:
        return true;
    }
    UNREACHABLE();
}

/* What may still happen to an item at rest. */
static bool reaches_rest(enum event_kind k)
{
    return k == EVENT_RESULT || k == EVENT_ELSEWHERE || k == EVENT_RETRY || k == EVENT_SKIP
           || k == EVENT_CORRECT || k == EVENT_SUPPLY || k == EVENT_RESOLVE || k == EVENT_CHILD;
}

/* What is in no slot has rows, which the caller looks up (item_hold), or has not begun. */
static bool is_there(const struct decision *d)
{
    const struct step *s = d->ev->step >= 0 ? &d->t->steps[d->ev->step] : NULL;
    bool begins =
        d->ev->kind == EVENT_START || d->ev->kind == EVENT_BAD_INPUT || d->ev->kind == EVENT_BRING;

    if (!s || !unit_is_slot(d->w, d->ev->step))
        return d->ev->kind != EVENT_BRING;
    begins |= d->ev->kind == EVENT_BEGIN && d->w->steps[d->ev->step].kind == KIND_TASK;
    if (s->slot == SLOT_RESTING)
        return reaches_rest(d->ev->kind);
    return s->slot != SLOT_FREE || begins;
}

/* After an event of an item: its step is told what has become of it. */
static void tell_step(struct decision *d, enum answer answer, const struct item_tally *before)
{
    uint16_t unit = (uint16_t)d->ev->step;

    item_recount(d, 1);
    if (answer != ANSWER_ACCEPTED && answer != ANSWER_LATE)
        return;
    if (d->others)
        items_tally(d->w, d->t, unit_step(d->w, unit));
    else
        item_changed(d, unit, before);
}

/* Children of items were perhaps told something, so that those that had stopped go on. */
static void tally_children(const struct workflow *w, struct task *t)
{
    for (uint16_t i = 0; w->slot_count > 0 && w->child_step_count > 0 && i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH && w->steps[w->steps[i].each.slots_at].kind == KIND_TASK)
            items_tally(w, t, i);
}

enum answer decide(const struct workflow *w, struct task *t, const struct event *event, int64_t now,
                   struct effects *fx)
{
    struct decision d = {w, t, event, now, fx, may_change_any_step(event->kind)};
    enum direction before = t->direction;

    ASSERT(now > 0);
    ASSERT(t->step_count == w->step_count);
    if (event->step >= w->step_count + w->slot_count
        || (event->step < 0 && names_a_step(event->kind)) || !is_there(&d))
        return ANSWER_UNKNOWN;
    bool of_item = event->step >= 0 && unit_is_slot(w, event->step);
    struct item_tally counted;
    if (of_item) {
        counted = item_counts(&d, (uint16_t)event->step);
        item_recount(&d, -1);
    }
    enum answer answer = happen(&d);
    if (of_item)
        tell_step(&d, answer, &counted);
    if (answer == ANSWER_ACCEPTED)
        fx->changed = true;
    if (fx->changed) {
        bool may_undo = t->signal_count > 0 && w->undo_signal_count > 0;
        if (may_undo)
            signals_undo(&d);
        if (t->asked == WISH_STOP)
            parent_stops(&d);
        settle(&d);
        if (may_undo)
            signals_cannot_undo(&d);
        tally_children(w, t);
    }
    ASSERT(before == DIRECTION_FORWARD || t->direction == DIRECTION_UNDO); /* invariant 8 */
    d.others |= t->ended_at != 0; /* the end of a pause moves the times of all steps */
    if (d.others && fx->changed && w->slot_count > 0)
        items_tally_all(w, t);
    if (d.others) {
        fx->any_step |= fx->changed;
        ASSERT(task_valid(w, t));
    } else {
        ASSERT(event->step < 0 || task_step_valid(w, t, (uint16_t)event->step));
        ASSERT(!of_item || task_step_valid(w, t, unit_step(w, (uint16_t)event->step)));
    }
    return answer;
}
