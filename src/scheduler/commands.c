/* Takes the commands of a task from its inbox, makes events of them, and has them decided
 * (live_decide of tasks/live.c). Each is answered only once its decision is durable, or if it
 * changed nothing. operate.c has the verbs of operators, signals.c and votes.c theirs; turn.c
 * calls commands_process. */

#include "scheduler/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Will the task keep anything of this result? A repeated result must not cost memory each time. */
static bool will_be_kept(const struct live *l, const struct event *e)
{
    if (e->step < 0 || e->step >= task_unit_count(&l->task))
        return false;
    const struct attempt *a = step_find_attempt(&l->task.steps[e->step], e->direction, e->attempt);
    return a && (a->outcome == OUTCOME_OPEN || a->outcome == OUTCOME_TIMED_OUT);
}

/* The resume details from the heartbeats of the event's attempt. */
static struct slice resume_of(const struct live *l, const struct event *e)
{
    bool there = e->step >= 0 && e->step < task_unit_count(&l->task);

    return there ? pulses_resume(l, (uint16_t)e->step, e->direction, e->attempt) : SLICE_NONE;
}

/* What the task keeps of a result is copied from the call's memory to the task's. */
static struct event result_event(struct live *l, const struct command *c)
{
    struct event e = c->event;

    e.step = live_unit(l, e.step, &c->item);
    if (e.kind == EVENT_ELSEWHERE) {
        e.resume = arena_copy(&l->arena, resume_of(l, &e));
        return e;
    }
    if (!will_be_kept(l, &e)) {
        e.failed = c->result->failed;
        e.error.code = SLICE("repeated");
        return e;
    }
    ASSERT(c->result);
    e.output.json = arena_copy(&l->arena, c->result->output);
    e.failed = c->result->failed;
    e.error.code = arena_copy(&l->arena, c->result->error.code);
    e.error.message = arena_copy(&l->arena, c->result->error.message);
    e.retryable = c->result->retryable;
    e.effect = c->result->effect;
    e.retry_after_ms = c->result->retry_after_ms;
    e.tries = c->result->tries;
    if (e.failed)
        e.resume =
            arena_copy(&l->arena, c->result->resume.ptr ? c->result->resume : resume_of(l, &e));
    return e;
}

/* The event of an internal command. An attempt that is given up leaves the resume details of its
 * heartbeats. */
static struct event unasked_event(struct live *l, const struct command *c)
{
    struct event e = c->event;

    if (e.step >= 0 && e.step < l->task.step_count)
        e.step = live_unit(l, e.step, &c->item);
    if (e.kind == EVENT_TIMEOUT || e.kind == EVENT_SILENCE)
        e.resume = arena_copy(&l->arena, resume_of(l, &e));
    return e;
}

/* Did a heartbeat arrive, or was the task read again, after the silence was detected? */
static bool is_overtaken(const struct scheduler *s, const struct live *l, const struct event *e)
{
    ASSERT(e->step < task_unit_count(&l->task));
    return e->kind == EVENT_SILENCE && e->step >= 0
           && !silence_is_too_long(&s->tasks, &l->steps[e->step]);
}

/* Any holder of the token may end the attempt. The token was made for the agent of its step. */
static bool ending_event(struct scheduler *s, struct live *l, struct command *c, struct event *ret)
{
    struct token t;

    if (!token_parse(c->ask->result->token, &t) || t.step >= l->task.step_count)
        return false;
    bool of_list = l->definition->workflow.steps[t.step].kind == KIND_EACH;
    if (of_list != t.item.any)
        return false;
    const struct workflow_step *ws = &l->definition->workflow.steps[t.step];
    if (!token_check(s->key, c->ask->result->token,
                     t.direction == DIRECTION_UNDO ? ws->undo.agent : ws->call.agent, &t))
        return false;
    ASSERT(t.step < l->task.step_count);
    c->result = c->ask->result;
    c->item = t.item;
    c->event = (struct event){.kind = EVENT_RESULT,
                              .step = t.step,
                              .direction = t.direction,
                              .attempt = t.attempt};
    *ret = result_event(l, c);
    return true;
}

/* A decided event makes this node the owner: any node accepts any result. */
static void take_ownership(struct scheduler *s, struct live *l)
{
    const struct event claim = {.kind = EVENT_CLAIM, .step = -1, .instance = s->me};
    enum task_state st = l->task.state;

    if (st == TASK_PENDING && l->task.paused_at != 0)
        return; /* a paused task has nothing to continue with */
    if (st == TASK_PENDING || st == TASK_PROCESSING || st == TASK_COMPENSATING)
        if (!live_is_ours(&s->tasks, l))
            (void)live_decide(&s->tasks, l, &claim); /* cannot be refused in these states */
}

/* A late result may also turn a task that waits in the store. */
static bool is_in_work_unowned(const struct live *l)
{
    return (l->task.state == TASK_PROCESSING || l->task.state == TASK_COMPENSATING)
           && !l->task.locked_by.ptr;
}

/* Is the answer to a cancel determined by the state alone? */
static bool cancel_is_settled(const struct live *l, enum answer *ret)
{
    *ret = l->task.state == TASK_COMPENSATED ? ANSWER_REPEATED : ANSWER_REFUSED;
    return task_state_is_end(l->task.state) || l->task.state == TASK_ERROR;
}

static bool is_of_signal(const struct command *c)
{
    return c->kind == COMMAND_ASK && (c->ask->kind == ASK_SIGNAL || c->ask->kind == ASK_DROP);
}

static bool is_of_vote(const struct command *c)
{
    return c->kind == COMMAND_ASK && (c->ask->kind == ASK_APPROVE || c->ask->kind == ASK_REJECT);
}

static bool is_of_family(const struct command *c)
{
    return c->kind == COMMAND_ASK && (c->ask->kind == ASK_CHILD || c->ask->kind == ASK_PARENT);
}

/* Its time is over, unless a signal that came in time is what it waits for. They are offered within
 * the turn's share of evaluations, as always; true: some are left, and the command waits for that.
 * Then the task is undecided, or its change is to be durable first. */
static bool is_to_be_offered_more(struct scheduler *s, struct live *l, const struct command *c)
{
    const struct event *e = &c->event;

    if (c->kind != COMMAND_EVENT || e->kind != EVENT_TIMEOUT || e->step < 0
        || e->step >= l->task.step_count
        || l->definition->workflow.steps[e->step].kind != KIND_SIGNAL)
        return false;
    struct live_step *ls = &l->steps[e->step];
    if (e->until > ls->signals_until) {
        ls->signals_until = e->until;
        ls->signals_seen = 0; /* some may have been late without the grace time */
    }
    if (!decisions_offers_left(s, l, (uint16_t)e->step))
        return false;
    take_ownership(s, l);
    start_refresh(s, l);
    return decisions_offers_left(s, l, (uint16_t)e->step);
}

/* False: there is nothing to decide. */
static bool event_of(struct scheduler *s, struct live *l, struct command *c, struct event *ret)
{
    switch (c->kind) {
    case COMMAND_RESULT:
        *ret = result_event(l, c);
        return true;
    case COMMAND_ASK:
        if (is_of_signal(c)) {
            signal_event(l, c, ret);
            return true;
        }
        if (is_of_vote(c)) {
            vote_event(s, l, c, ret);
            return true;
        }
        if (is_of_family(c)) {
            *ret = family_event(l, c);
            return true;
        }
        return c->ask->kind == ASK_END ? ending_event(s, l, c, ret) : operator_event(l, c, ret);
    case COMMAND_EVENT:
        *ret = unasked_event(l, c);
        return !is_overtaken(s, l, ret);
    }
    UNREACHABLE();
}

/* Has the ask's time passed? Its requester may no longer be the one in charge. */
static bool is_expired(const struct scheduler *s, const struct command *c)
{
    return c->kind == COMMAND_ASK && c->ask->not_after && scheduler_now(s) > c->ask->not_after;
}

static bool is_owner(const struct live *l, const struct ask *a)
{
    return l->task.owner.ptr && slice_eq(l->task.owner, a->owner);
}

/* A token that is limited to its own tasks may not act on a task without an owner either. */
static bool is_not_own(const struct live *l, const struct command *c)
{
    return c->kind == COMMAND_ASK && c->ask->own_only && !is_owner(l, c->ask);
}

/* With its signals: a new task begins with them, one that exists gets them if they may be sent to
 * it one by one. Who may read a task may repeat its submission, but not signal to it. */
static void submit(struct scheduler *s, struct live *l, struct command *c)
{
    submit_apply(s, l, c);
    bool exists = c->answer == ANSWER_REPEATED && l->loaded;
    c->ask->signals_not_own = exists && c->ask->signals_own_only && !is_owner(l, c->ask);
    if (c->ask->signal_count > 0 && exists && !c->ask->signals_not_own) {
        (void)overrun_hold(s, l);
        if (signals_carried(s, l, c) || is_in_work_unowned(l))
            take_ownership(s, l);
        live_detach_ended(&s->tasks, l);
    } else if (c->answer == ANSWER_ACCEPTED) {
        (void)signals_carried(s, l, c);
        submit_continue(s, l);
    } else {
        signals_not_carried(c, OBSTACLE_STATE);
    }
}

/* The task has no room for the notice before it, which is read again: it must not overtake that. */
static bool stays_behind(struct live *l, struct command *c)
{
    struct ask *a = c->ask;

    if (!is_of_signal(c) || !a->behind)
        return false;
    if (a->behind != l->notice_stays && a->notice != l->notice_stays) /* after a reload */
        return false;
    l->notice_stays = a->notice;
    a->refusal = OBSTACLE_SIGNAL_FULL;
    c->answer = ANSWER_REFUSED;
    return true;
}

static void explain_signal(struct live *l, struct command *c)
{
    signal_explain(l, c);
    if (c->ask->notice)
        l->notice_stays = c->answer == ANSWER_REFUSED && c->ask->refusal == OBSTACLE_SIGNAL_FULL
                              ? c->ask->notice
                              : 0;
}

/* Whether the task goes on, so that this node becomes its owner. */
static bool goes_on_with(struct scheduler *s, const struct live *l, const struct command *c,
                         const struct event *e)
{
    if (c->answer != ANSWER_ACCEPTED)
        return false;
    if (is_of_signal(c))
        return signal_is_awaited(s, l, c);
    return !is_of_vote(c) || vote_decides(s, l, e);
}

/* A result for an item of a former list of its step, of which nothing is to be undone: otherwise
 * the step would not have started anew. The token is genuine, so there was such an attempt. */
static bool is_of_former_list(const struct live *l, const struct command *c, const struct event *e)
{
    if (!c->result || !c->item.any || e->step >= 0 || c->event.step >= l->task.step_count)
        return false;
    const struct step *s = &l->task.steps[c->event.step];
    return s->items && c->item.generation < s->generation;
}

/* An item at rest that nothing happened to is where it was. */
static enum answer decide_command(struct scheduler *s, struct live *l, const struct event *e)
{
    bool changed = l->fx.changed;

    l->fx.changed = false;
    enum answer answer = live_decide(&s->tasks, l, e);
    s->rest.changed = l->fx.changed;
    l->fx.changed |= changed;
    return answer;
}

static void apply(struct scheduler *s, struct live *l, struct command *c)
{
    if (c->kind == COMMAND_ASK && c->ask->kind == ASK_SUBMIT) {
        submit(s, l, c);
        return;
    }
    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    if (is_expired(s, c)) {
        c->ask->expired = true;
        c->answer = ANSWER_REFUSED;
        return;
    }
    if (is_not_own(l, c)) {
        c->ask->not_own = true;
        c->answer = ANSWER_REFUSED;
        return;
    }
    if (c->kind == COMMAND_ASK && c->ask->kind == ASK_CANCEL && cancel_is_settled(l, &c->answer)) {
        operator_explain_cancel(s, l, c);
        return;
    }
    if (c->kind == COMMAND_ASK && c->ask->if_open && task_state_is_end(l->task.state)) {
        c->ask->refusal = OBSTACLE_STATE;
        c->answer = ANSWER_REFUSED;
        return;
    }
    if (stays_behind(l, c))
        return;
    struct event e;
    (void)overrun_hold(s, l);
    c->answer = ANSWER_UNKNOWN;
    if (!event_of(s, l, c, &e))
        return;
    e.spared = breakers_spare(&s->tasks, l, &e);
    if (e.kind == EVENT_HASTEN && l->task.locked_by.ptr && !live_is_ours(&s->tasks, l)) {
        c->answer = ANSWER_REFUSED; /* its owner has it in memory, so it does not wait for long */
        return;
    }
    bool is_bulk_work =
        c->kind == COMMAND_ASK && c->ask->bulk && (!is_of_signal(c) || signal_is_awaited(s, l, c));
    c->answer = decide_command(s, l, &e);
    if (c->answer == ANSWER_UNKNOWN && is_of_former_list(l, c, &e))
        c->answer = ANSWER_LATE;
    if (is_of_signal(c))
        explain_signal(l, c);
    else if (is_of_vote(c))
        vote_explain(s, l, c, &e);
    else if (c->kind == COMMAND_ASK && c->ask->kind != ASK_END && !is_of_family(c))
        operator_explain(s, l, c, &e);
    if (c->answer == ANSWER_ACCEPTED && is_bulk_work)
        l->bulk_at = scheduler_now(s);
    if (c->answer == ANSWER_ACCEPTED && e.kind == EVENT_ELSEWHERE)
        live_goes_elsewhere(&s->tasks, l, (uint16_t)e.step);
    ASSERT(c->answer != ANSWER_ACCEPTED || e.step < task_unit_count(&l->task));
    if (c->answer == ANSWER_ACCEPTED && e.kind == EVENT_RESULT) {
        l->steps[e.step].retryable = e.retryable;
        l->steps[e.step].wished = e.retry_after_ms > 0;
    }
    if (goes_on_with(s, l, c, &e) || is_in_work_unowned(l))
        take_ownership(s, l);
    if (c->kind == COMMAND_RESULT && e.step >= 0 && e.step < task_unit_count(&l->task))
        live_detach_one(&s->tasks, l, (uint16_t)e.step); /* there may be a hundred others */
    else
        live_detach_ended(&s->tasks, l);
}

/* A new task would have no lock. But what was accepted once is accepted again, even if a newer
 * version asks for other inputs: whether it is new, its row tells. */
static bool lacks_key(const struct live *l, const struct command *c)
{
    return !l->loaded && c->kind == COMMAND_ASK && c->ask->kind == ASK_SUBMIT && c->ask->bad_key;
}

/* An answer without a change is not fenced: where other nodes may have changed the row, it is valid
 * only if the row was read after the command arrived. */
static bool is_certain(const struct scheduler *s, const struct live *l, const struct command *c)
{
    if (lacks_key(l, c))
        return c->row_read;
    bool is_event = c->kind == COMMAND_EVENT;
    bool silence = is_event && c->event.kind == EVENT_SILENCE; /* no row knows more */
    /* A step that no longer waits need not be hastened, and a read would cost it its turn. If
     * another node owns the task by now, that node hastens it. */
    bool hasten = is_event && c->event.kind == EVENT_HASTEN && live_is_ours(&s->tasks, l);

    return !s->config.shared || !l->loaded || silence || hasten
           || (s->just_read == l && !c->overtook) || c->task_read;
}

/* ---- answers ---- */

static void set_status(struct scheduler *s, struct command *c)
{
    switch (c->answer) {
    case ANSWER_ACCEPTED:
        c->result->status = RESULT_ACCEPTED;
        break;
    case ANSWER_REPEATED:
        c->result->status = RESULT_REPEATED;
        break;
    case ANSWER_LATE:
        c->result->status = RESULT_LATE;
        s->tasks.counts.attempts[c->event.direction][OUTCOME_LATE]++;
        break;
    case ANSWER_UNKNOWN:
    case ANSWER_REFUSED:
        c->result->status = RESULT_UNKNOWN;
        break;
    }
}

static void result_done(struct scheduler *s, struct command *c)
{
    set_status(s, c);
    call_settle(&s->tasks, c->work, 1);
}

static void ending_done(struct scheduler *s, struct command *c)
{
    c->result = c->ask->result;
    set_status(s, c);
    c->ask->outcome = ERR_OK;
}

/* Answers are sent later: sending may be a system call, and the store is idle until it gets the
 * next batch. */
static void ask_done(struct scheduler *s, struct live *l, struct command *c)
{
    ASSERT(!link_is_in(&c->link));
    if (c->ask->kind == ASK_SUBMIT)
        submit_done(s, l, c);
    else if (c->ask->kind == ASK_END)
        ending_done(s, c);
    else
        operator_done(l, c);
    list_push(&s->answers, &c->link);
}

static void command_done(struct scheduler *s, struct live *l, struct command *c)
{
    switch (c->kind) {
    case COMMAND_RESULT:
        result_done(s, c);
        break;
    case COMMAND_ASK:
        ask_done(s, l, c);
        return;
    case COMMAND_EVENT:
        break;
    }
    command_discard(c);
}

void commands_answer(struct scheduler *s)
{
    for (struct link *first = NULL; (first = list_first(&s->answers));) {
        struct command *c = CONTAINER_OF(first, struct command, link);
        link_remove(first);
        s->outside.ask_answer(s->outside.arg, c->ask);
        command_discard(c);
    }
}

void commands_durable(struct scheduler *s, struct live *l)
{
    for (struct link *first = NULL; (first = list_first(&l->applied));) {
        link_remove(first);
        command_done(s, l, CONTAINER_OF(first, struct command, link));
    }
}

void commands_fail(struct scheduler *s, struct live *l, struct link *commands, enum err err,
                   const char *story)
{
    MAYBE(l->loaded);
    ASSERT(err != ERR_OK);
    for (;;) {
        struct link *first = list_first(commands);
        if (!first)
            return;
        struct command *c = CONTAINER_OF(first, struct command, link);
        link_remove(first);
        if (c->kind == COMMAND_RESULT) {
            /* The task does not exist (it was deleted, because the token is valid), or cannot be
             * read. */
            if (err == ERR_NOT_FOUND || err == ERR_CORRUPT)
                c->result->status = RESULT_UNKNOWN;
            else
                c->work->failed = true;
            call_settle(&s->tasks, c->work, 1);
        } else if (c->kind == COMMAND_ASK) {
            c->ask->outcome = err;
            (void)snprintf(c->ask->story, sizeof c->ask->story, "%s", story);
            s->outside.ask_answer(s->outside.arg, c->ask);
        }
        command_discard(c);
    }
}

/* The row of its item cannot be read. Agents send a result without an outcome again, and notices
 * are read again: so neither is lost when the row can be read after all. */
static void leave_undecided(struct scheduler *s, struct command *c)
{
    ASSERT(c->kind != COMMAND_EVENT);
    if (c->kind == COMMAND_RESULT) {
        c->result->undecided = true;
        call_settle(&s->tasks, c->work, 1);
        command_discard(c);
        return;
    }
    c->ask->outcome = c->ask->kind == ASK_END ? ERR_BUSY : ERR_CORRUPT;
    (void)snprintf(c->ask->story, sizeof c->ask->story, "the record of the item cannot be read");
    list_push(&s->answers, &c->link);
}

/* ---- the inbox of a task ---- */

void commands_process(struct scheduler *s, struct live *l)
{
    link_remove(&l->inbox_link);
    for (;;) {
        struct link *first = list_first(&l->inbox);
        if (!first)
            break;
        struct command *c = CONTAINER_OF(first, struct command, link);
        bool submission = c->kind == COMMAND_ASK && c->ask->kind == ASK_SUBMIT;
        if (!l->loaded && !submission)
            return; /* a read is under way */
        if (l->in_flight || link_is_in(&l->load_link))
            return;
        if (!l->loaded && submission && !c->row_read
            && overruns_too_often(&s->tasks.overruns, l->id)) {
            c->row_read = true; /* a new task is refused; a repeated submission gets its answer */
            list_push(&s->tasks.loads, &l->load_link);
            return;
        }
        if (l->loaded ? is_to_be_offered_more(s, l, c) : submit_has_to_wait(s, l, c))
            return;
        if (l->loaded && !rest_reach(s, l, c)) {
            if (l->loaded) /* it may have stopped, and so leaves the queues until it goes on */
                queue_leave_all(&s->tasks, l);
            return;
        }
        link_remove(first);
        if (c->unread) {
            leave_undecided(s, c);
            continue;
        }
        apply(s, l, c);
        rest_done(s, l);
        if (l->loaded && (link_is_in(&l->dirty_link))) {
            list_push(&l->applied, &c->link); /* answered when that is durable */
        } else if (!is_certain(s, l, c)) {
            c->row_read |= lacks_key(l, c);
            list_push_front(&l->inbox, &c->link);
            live_reload(&s->tasks, l);
            return;
        } else {
            command_done(s, l, c);
        }
    }
    if (!l->loaded) {
        if (!link_is_in(&l->load_link))
            live_drop(&s->tasks, l);
        return;
    }
    if (live_is_ours(&s->tasks, l))
        start_continue(s, l);
    else if (link_is_in(&l->dirty_link))
        queue_leave_all(&s->tasks, l); /* it ended, so its steps leave the queues; or it rests */
    else
        live_drop(&s->tasks, l);
}
