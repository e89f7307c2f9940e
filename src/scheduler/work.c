/* Work calls: their results as commands, and the response. Sends nothing that is not durable. What
 * is assigned to a call is in tasks/calls.c. */

#include "core/key.h"
#include "dispatch/trace.h"
#include "scheduler/internal.h"

static bool has_token_of(const struct live_step *ls, enum direction d, uint32_t attempt)
{
    return ls->token.ptr && ls->token_attempt == attempt && ls->token_direction == d
           && ls->token_item == ls->live->task.steps[ls->step].item;
}

/* ---- arrival ---- */

static struct live_step *step_of_token(struct scheduler *s, struct slice text)
{
    struct token t;

    if (!token_parse(text, &t))
        return NULL;
    struct live *l = live_find(&s->tasks, t.task);
    if (!l || !l->loaded || !live_find_attempt_of(l, &t))
        return NULL;
    const struct attempt *a = step_open_attempt(&l->task.steps[t.step]);
    return a && a->direction == t.direction && a->number == t.attempt ? &l->steps[t.step] : NULL;
}

static void mark_seen(struct scheduler *s, struct work *w, struct slice token)
{
    struct live_step *ls = step_of_token(s, token);

    if (ls)
        ls->seen = w->instance->call_seq;
}

/* A request that arrives after its complete-by is useless. */
static bool has_time_left(const struct scheduler *s, const struct live_step *ls)
{
    const struct attempt *a = step_open_attempt(&ls->live->task.steps[ls->step]);

    ASSERT(a);
    return a->complete_by > scheduler_now(s);
}

/* Should the instance have this attempt, though it does not report it? */
static bool is_lost(const struct scheduler *s, const struct live_step *ls)
{
    return ls->delivered && !ls->work && ls->seen != ls->instance->call_seq && has_time_left(s, ls);
}

/* The repeat is stored before it is sent, like every request: it changes what an error may say
 * about the effect, and a commit detects that another node owns the task by now. */
static void send_again(struct scheduler *s, struct work *w, struct live_step *ls)
{
    const struct attempt *a = step_open_attempt(&ls->live->task.steps[ls->step]);
    const struct event e = {.kind = EVENT_SEND_AGAIN,
                            .step = ls->step,
                            .direction = a->direction,
                            .attempt = a->number};

    ASSERT(!ls->live->in_flight);
    ASSERT(a->number > 0);
    if (live_decide(&s->tasks, ls->live, &e) != ANSWER_ACCEPTED)
        return; /* its complete-by has just passed */
    call_assign(w, ls);
    ls->pending = true;
    w->unsettled++;
}

/* An attempt that was sent to an instance, and that the instance neither holds nor reports: the
 * response was lost, or the instance was restarted. It is sent again under the same token. */
static void send_lost_again(struct scheduler *s, struct work *w)
{
    if (!w->says_holding || w->max == 0)
        return;
    w->instance->called = true;
    w->instance->call_seq++;
    for (size_t i = 0; i < w->holding_count; i++)
        mark_seen(s, w, w->holding[i]);
    for (size_t i = 0; i < w->result_count; i++)
        mark_seen(s, w, w->results[i].token);
    LIST_FOREACH (link, after, &w->instance->sent) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, sent);
        if (!is_lost(s, ls) || w->assigned_count == w->max)
            continue;
        if (ls->live->in_flight)
            ls->live->resend_wanted = true; /* nothing can be decided now */
        else
            send_again(s, w, ls);
    }
}

/* Is it the exact token that was sent, and to this agent? */
static bool is_as_sent(struct scheduler *s, struct slice text, const struct token *t,
                       struct slice agent)
{
    const struct live *l = live_find(&s->tasks, t->task);
    struct token of = *t;

    if (!l || !l->loaded || !live_find_attempt_of(l, &of))
        return false;
    const struct live_step *ls = &l->steps[of.step];
    const struct workflow_step *ws = &l->definition->workflow.steps[of.step];
    return has_token_of(ls, t->direction, t->attempt) && token_same(ls->token, text)
           && slice_eq(t->direction == DIRECTION_UNDO ? ws->undo.agent : ws->call.agent, agent);
}

static bool is_good(struct scheduler *s, struct slice text, struct slice agent, struct token *ret)
{
    return (token_parse(text, ret) && is_as_sent(s, text, ret, agent))
           || token_check(s->key, text, agent, ret);
}

static void post_results(struct scheduler *s, struct work *w)
{
    for (size_t i = 0; i < w->result_count; i++) {
        struct work_result *r = &w->results[i];
        struct token t;
        r->status = RESULT_UNKNOWN;
        if (!is_good(s, r->token, w->agent_name, &t))
            continue;
        struct command *c = arena_alloc(&w->arena, sizeof *c);
        *c = (struct command){.kind = COMMAND_RESULT, .work = w, .result = r};
        c->item = t.item;
        c->event = (struct event){.kind = r->elsewhere ? EVENT_ELSEWHERE : EVENT_RESULT,
                                  .step = t.step,
                                  .direction = t.direction,
                                  .attempt = t.attempt};
        w->unsettled++;
        inbox_post(&s->tasks, t.task, c);
    }
}

/* Has the instance a stop that was decided after its last call was answered? */
static bool has_unsent_stop(const struct instance *i)
{
    if (i->stops == 0)
        return false;
    LIST_FOREACH (link, after, &i->sent) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, sent);
        if (ls->stop && !ls->stop_sent)
            return true;
    }
    return false;
}

/* The instance has fewer places than its parked calls said, or none. The calls are closed with what
 * is already assigned to them. */
static void recall_others(struct scheduler *s, const struct work *w)
{
    LIST_FOREACH (link, after, &w->instance->agent->calls) {
        struct work *parked = CONTAINER_OF(link, struct work, turn);
        if (parked != w && parked->instance == w->instance)
            call_close(&s->tasks, parked);
    }
}

void scheduler_work(struct scheduler *s, struct work *w)
{
    int64_t now = scheduler_now(s);

    dispatch_park(&s->tasks.dispatch, w, now);
    if (w->instead)
        recall_others(s, w);
    if (w->max > 0)
        heap_push(&s->tasks.waits, &w->timer, now + w->wait_ms);
    post_results(s, w);
    send_lost_again(s, w);
    if ((w->result_count > 0 || w->assigned_count > 0 || w->max == 0) && w->unsettled == 0)
        call_close(&s->tasks, w);
    if (!w->closed && has_unsent_stop(w->instance))
        call_close(&s->tasks, w);
    if (!w->closed && w->assigned_count >= w->max)
        link_remove(&w->turn); /* no place is left */
}

void scheduler_work_gone(struct scheduler *s, struct work *w)
{
    w->gone = true;
    w->user = NULL;
    dispatch_leave(w, scheduler_now(s));
    call_close(&s->tasks, w);
}

/* ---- the response ---- */

static struct slice traceparent_of(struct arena *a, const struct task *t, uint16_t step,
                                   const struct attempt *at)
{
    uint64_t span = hash_stable(t->id.ptr, t->id.len) ^ ((uint64_t)at->number << 20)
                    ^ ((uint64_t)at->direction << 60);

    span ^= (uint64_t)t->steps[step].item << 32;
    return trace_of_request(a, t->trace, t->id, hash_stable(&span, sizeof span) ^ step);
}

static struct slice key_of(const struct scheduler *s, struct arena *a, const struct live_step *ls,
                           enum direction d)
{
    const struct workflow *w = &ls->live->definition->workflow;
    const struct step *st = &ls->live->task.steps[ls->step];
    const struct item_ref item = live_item(ls->live, ls->step);
    const struct idempotency_key k = {
        .prefix = s->config.key_prefix,
        .task = ls->live->id,
        .step = w->steps[ls->step].name,
        .generation = item.any ? item.generation : st->generation,
        .of_item = item.any,
        .item = item.number,
        .item_generation = item.any ? st->generation : 0,
        .round = st->round,
        .direction = d,
    };
    size_t len = idempotency_key_len(&k);
    char *text = arena_alloc(a, len + 1);

    idempotency_key_write(&k, text);
    return (struct slice){text, len};
}

/* The token is kept, so that a result with it soon after needs no second MAC computation. */
static struct slice token_of(struct scheduler *s, struct live_step *ls, const struct attempt *at)
{
    const struct token t = {ls->live->id, unit_step(&ls->live->definition->workflow, ls->step),
                            at->direction, at->number, live_item(ls->live, ls->step)};
    struct buf *b = scheduler_scratch(s);

    ASSERT(ls->instance);
    if (!has_token_of(ls, at->direction, at->number)) {
        token_write(s->key, &t, ls->instance->agent->name, b);
        ls->token = arena_copy(&ls->live->arena, buf_view(b));
        ls->token_direction = at->direction;
        ls->token_attempt = at->number;
        ls->token_item = t.item.number;
    }
    return ls->token;
}

static uint32_t forward_attempts(const struct step *st)
{
    uint32_t last = 0;

    for (uint16_t i = 0; i < st->attempt_count; i++)
        if (st->attempts[i].direction == DIRECTION_FORWARD)
            last = st->attempts[i].number;
    return last;
}

static void fill_request(struct scheduler *s, struct work *w, struct live_step *ls,
                         struct work_request *r)
{
    const struct step *st = &ls->live->task.steps[ls->step];
    const struct attempt *at = step_open_attempt(st);
    const struct workflow_step *ws = &ls->live->definition->workflow.steps[ls->step];
    bool undo = at->direction == DIRECTION_UNDO;
    struct slice left = pulses_resume(ls->live, ls->step, at->direction, at->number);

    ASSERT(!ls->pending); /* its start is durable: invariant 2 */
    ASSERT(!at->elsewhere);
    *r = (struct work_request){
        .token = token_of(s, ls, at),
        .task = ls->live->id,
        .step = live_unit_name(ls->live, ls->step, &w->arena),
        .action = undo ? ws->undo.action : ws->call.action,
        .direction = at->direction,
        .attempt = at->number,
        .idempotency_key = key_of(s, &w->arena, ls, at->direction),
        .input = undo ? st->undo_input.json : st->input.json,
        .traceparent = traceparent_of(&w->arena, &ls->live->task, ls->step, at),
        .complete_by = at->complete_by,
        .heartbeat_ms = undo ? ws->undo.heartbeat_ms : ws->call.heartbeat_ms,
        /* An attempt that is sent again resumes where the previous process stopped. */
        .resume = left.ptr ? arena_copy(&w->arena, left) : st->resume,
    };
    if (!undo)
        return;
    r->forward_key = key_of(s, &w->arena, ls, DIRECTION_FORWARD);
    r->forward_input = st->input.json;
    r->forward_output = step_known_output(st);
    r->forward_attempts = forward_attempts(st);
    r->forward_in_doubt = step_in_doubt(st);
}

/* Stops are sent with every response until the attempt has ended: an earlier response may be
 * lost. */
size_t work_stops(struct scheduler *s, const struct instance *i, struct arena *a,
                  struct slice **ret)
{
    size_t count = 0;

    if (i->stops == 0)
        return 0;
    *ret = arena_alloc(a, i->stops * sizeof **ret);
    LIST_FOREACH (link, after, &i->sent) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, sent);
        if (!ls->stop)
            continue;
        const struct attempt *at = step_open_attempt(&ls->live->task.steps[ls->step]);
        ASSERT(at);
        ASSERT(count < i->stops);
        (*ret)[count++] = token_of(s, ls, at);
    }
    return count;
}

static void fill_answer(struct scheduler *s, struct work *w)
{
    w->waited_ms = scheduler_now(s) - w->arrived_at;
    w->requests = arena_alloc(&w->arena, (w->assigned_count + 1) * sizeof *w->requests);
    LIST_FOREACH (link, after, &w->assigned) {
        fill_request(s, w, CONTAINER_OF(link, struct live_step, assigned),
                     &w->requests[w->request_count++]);
    }
    w->stop_count = work_stops(s, w->instance, &w->arena, &w->stop);
}

static void not_sent(struct scheduler *s, const struct live_step *ls)
{
    const struct attempt *at = step_open_attempt(&ls->live->task.steps[ls->step]);
    const struct event e = {.kind = EVENT_NOT_SENT,
                            .step = ls->step,
                            .direction = at->direction,
                            .attempt = at->number};

    ASSERT(at);
    ASSERT(!ls->delivered);
    health_lost(&ls->instance->health);
    inbox_post_event(&s->tasks, ls->live->id, &e);
}

/* The store took longer than the attempt's time. The attempt is not sent, so it cannot have an
 * effect. */
static void keep_back_expired(struct scheduler *s, struct work *w)
{
    LIST_FOREACH (link, after, &w->assigned) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, assigned);
        if (has_time_left(s, ls))
            continue;
        call_unassign(w, ls);
        if (!ls->delivered)
            not_sent(s, ls);
    }
}

static void stops_sent(const struct instance *i)
{
    if (i->stops == 0)
        return;
    LIST_FOREACH (link, after, &i->sent) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, sent);
        ls->stop_sent |= ls->stop;
    }
}

static void answer(struct scheduler *s, struct work *w)
{
    ASSERT(w->closed);
    ASSERT(w->unsettled == 0);
    heap_remove(&s->tasks.waits, &w->timer);
    dispatch_unpark(w, scheduler_now(s));
    keep_back_expired(s, w);
    fill_answer(s, w);
    bool sent = !w->gone && s->outside.work_answer(s->outside.arg, w) && !w->failed;
    if (sent)
        stops_sent(w->instance);
    LIST_FOREACH (link, after, &w->assigned) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, assigned);
        call_unassign(w, ls);
        if (sent) {
            ls->delivered = true; /* as far as can be known */
            silence_begin(&s->tasks, ls);
        } else if (!ls->delivered) { /* if it was sent before, the instance may have it */
            not_sent(s, ls);
        }
    }
    ASSERT(w->assigned_count == 0);
    work_free(w);
}

void work_answer_ready(struct scheduler *s)
{
    for (;;) {
        struct link *first = list_first(&s->tasks.answerable);
        if (!first)
            return;
        link_remove(first);
        answer(s, CONTAINER_OF(first, struct work, turn));
    }
}
