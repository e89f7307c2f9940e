/* Checks what nodes send: requests to agents with their keys and inputs, stops, and answers to
 * results, submitters and operators. wire.c and others call it. check.h lists all checkers. */

#include "dispatch/token.h"
#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/weather.h"
#include "sim/world.h"

enum {
    QUIET_MS = 3000,
    AGAIN_MS = 4000,
    LANDING_MS = 5 /* from a transaction to its result */
};

static void must(const struct subject *t, bool ok, const char *rule, const char *what)
{
    if (ok)
        return;
    if (t)
        describe(t);
    broken(rule, "%s: %s", t ? t->id : "?", what);
}

/* ---- requests ---- */

static bool is_key(struct slice key, const struct subject *t, uint32_t step, uint32_t generation,
                   uint32_t round, bool undo)
{
    const char *end = undo ? "/undo" : round > 1 ? text_of("@%u", round).ptr : "";

    return slice_eq(key, generation == 1
                             ? text_of("sim:%s/s%u%s", t->id, step, end)
                             : text_of("sim:%s/s%u~%u%s", t->id, step, generation, end));
}

static uint64_t *keyed_round(struct subject *t, uint32_t step, const struct seen_attempt *a)
{
    struct keyed_round *k = t->keyed_rounds;

    while (k && (k->step != step || k->generation != a->generation || k->round != a->round))
        k = k->next;
    if (k)
        return &k->input;
    k = arena_alloc(&world.arena, sizeof *k);
    *k = (struct keyed_round){t->keyed_rounds, step, a->generation, a->round, 0};
    t->keyed_rounds = k;
    return &k->input;
}

/* One key always stands for one request, the one on record. */
static void check_key(const struct node *n, struct subject *t, uint32_t step,
                      const struct seen_attempt *a, const struct work_request *r)
{
    bool undo = r->direction == DIRECTION_UNDO;
    uint64_t input = seen_hash(r->input);

    must(t, is_key(r->idempotency_key, t, step, a->generation, a->round, undo), "keys are stable",
         "key");
    if (undo) {
        check_undo_input(t, step, r->input);
        return;
    }
    must(t, a->generation <= KEYS_MAX, "a step has not so many keys", "key");
    uint64_t *known = a->round > 1 ? keyed_round(t, step, a) : &t->keyed[step][a->generation - 1];
    must(t, *known == 0 || *known == input, "a key stands for one request", "input");
    *known = input;
    if (a->generation > 1)
        covered(COVER_ANOTHER_KEY);
    const struct seen_step *s = &t->seen.steps[step];
    if (t->writer == n && a->generation == s->generation && seen_open(s) == a && s->input != 0)
        must(t, s->input == input, "an agent sees the input on record", "input");
}

static void check_forward_part(const struct subject *t, uint32_t step, const struct work_request *r)
{
    const struct seen_step *s = &t->seen.steps[step];
    uint32_t last = 0;
    bool late = false;
    bool told = false; /* a late result may be known before it is durable */

    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_FORWARD) {
            last = s->attempts[i].number;
            late |=
                s->attempts[i].outcome == OUTCOME_LATE && s->attempts[i].effect == EFFECT_HAPPENED;
            told |= said_find(t, step, DIRECTION_FORWARD, last, false)
                    || said_effect(t, step, DIRECTION_FORWARD, last, EFFECT_NONE);
        }
    must(t, is_key(r->forward_key, t, step, s->generation, 0, false), "an undo says what it undoes",
         "key");
    must(t, r->forward_attempts == last, "an undo says what it undoes", "attempts");
    must(t, r->forward_in_doubt == seen_in_doubt(s) || (!r->forward_in_doubt && told),
         "an undo says what it undoes", "in doubt");
    must(t,
         (r->forward_output.ptr != NULL) == (s->has_output || late)
             || (r->forward_output.ptr && told),
         "an undo says what it undoes", "output");
    must(t, r->forward_input.ptr != NULL || s->supplied, "an undo says what it undoes", "input");
}

/* Did this very attempt leave it with a heartbeat, before it was lost and sent again? */
static bool is_its_own(const struct node *n, const struct subject *t, uint32_t step,
                       const struct work_request *r)
{
    const struct beaten *b = &t->beaten[step][r->direction][n->slot];

    return r->resume.ptr && b->left && b->attempt == r->attempt && b->boot == n->boot
           && slice_eq(r->resume, text_of("{\"of\":\"%s\",\"attempt\":%u}",
                                          direction_text(r->direction), r->attempt));
}

/* The limit on silence, and the resume details for this attempt. */
static void check_long_part(const struct node *n, const struct subject *t, uint32_t step,
                            const struct work_request *r)
{
    const struct flow_step *f = &t->flow->steps[step];
    const struct seen_step *s = &t->seen.steps[step];
    bool undo = r->direction == DIRECTION_UNDO;

    must(t, r->heartbeat_ms == (undo ? f->undo_heartbeat_ms : f->heartbeat_ms),
         "a request tells how long it may be silent", "heartbeat");
    if (t->writer != n || disk_has_unheard(&n->disk))
        return;
    must(t, !seen_find(s, r->direction, r->attempt)->elsewhere,
         "what is elsewhere is not asked of anybody", "request");
    if (is_its_own(n, t, step, r)) {
        covered(COVER_RESUMED_FROM);
        return;
    }
    must(t, (r->resume.ptr != NULL) == (s->resume > 0), "a request has what was left for it",
         r->resume.ptr ? "nothing was" : "nothing");
    if (s->resume == 0)
        return;
    covered(COVER_RESUMED_FROM);
    must(t,
         slice_eq(r->resume, text_of("{\"of\":\"%s\",\"attempt\":%u}", direction_text(r->direction),
                                     s->resume)),
         "a request has what was left for it", "another");
    must(t, s->resume < r->attempt, "what is left is of an attempt before", "number");
}

static bool is_of_item(struct slice token, struct token *ret)
{
    bool ok = token_parse(token, ret);

    ASSERT(ok);
    return ret->item.any;
}

static void check_request(const struct node *n, const struct work *w, const struct work_request *r)
{
    struct subject *t = subject_find(r->task);
    uint32_t step = flow_step_number(r->step);
    const struct seen_attempt *a = seen_find(&t->seen.steps[step], r->direction, r->attempt);
    bool undo = r->direction == DIRECTION_UNDO;

    must(t, a, "no request leaves before it is durable", "attempt is not in the store");
    must(t, a->outcome == OUTCOME_OPEN || disk_has_unheard(&n->disk) || t->writer != n,
         "no request leaves for what is over", outcome_text(a->outcome));
    must(t, slice_is(w->instance_name, a->instance), "a request goes to the instance on record",
         a->instance);
    must(t,
         slice_is(w->agent_name, text_of("a%u", undo ? t->flow->steps[step].undo_service
                                                     : t->flow->steps[step].service)
                                     .ptr),
         "a request goes to its agent", "agent");
    must(t, r->complete_by == a->complete_by, "a request tells its complete-by", "complete-by");
    check_key(n, t, step, a, r);
    must(t, r->input.ptr != NULL, "a request has an input", "input");
    must(t, t->seen.trace == 0 || t->seen.trace == seen_trace(r->traceparent),
         "agents are asked within the trace of the task", "traceparent");
    if (t->seen.trace)
        covered(COVER_TRACE);
    must(t, r->complete_by > node_now(n), "nothing is asked after its complete-by", "expired");
    if (!undo)
        check_outputs_told(t, step, r->input);
    if (undo && t->writer == n)
        check_forward_part(t, step, r);
    check_long_part(n, t, step, r);
    /* Another node, with a clock ahead, may have given it up and begun the next attempt. */
    must(t, r->attempt >= t->sent[step][undo] || (nodes.skew_max > 0 && t->writer != n),
         "attempts leave in order", "number");
    if (w->failed)
        return; /* it is not sent */
    if (r->attempt == t->sent[step][undo]) {
        must(t, a->resent > 0, "what is sent again is on record as such", "request");
        covered(COVER_SENT_AGAIN);
        t->sent_twice[step][undo] = r->attempt;
    }
    t->sent[step][undo] = r->attempt;
    t->missed[step] = 0;
    t->sent_at[step][undo] = world.now;
}

void check_unsent(const struct node *n, const struct work *w)
{
    for (size_t i = 0; i < w->request_count && !w->failed; i++) {
        const struct work_request *r = &w->requests[i];
        struct subject *t = subject_find(r->task);
        uint32_t step = flow_step_number(r->step);
        struct token k;
        if (is_of_item(r->token, &k))
            continue;
        t->kept_back[step][r->direction] = r->attempt;
        if (t->sent_twice[step][r->direction] == r->attempt || t->started[step] != t->seen.revision
            || t->writer != n || n->disk.trouble_at >= t->changed_at
            || world.now - t->changed_at > LANDING_MS)
            continue; /* the node may not know whether it was sent */
        if (t->unsent_by != n)
            memset(t->unsent, 0, sizeof t->unsent);
        t->unsent[step][r->direction] = r->attempt;
        t->unsent_by = n;
    }
}

/* ---- what the instance reports to hold ---- */

static bool names(struct slice token, const struct subject *t, uint32_t step,
                  const struct seen_attempt *a)
{
    struct token k;

    return token_parse(token, &k) && !k.item.any && slice_is(k.task, t->id) && k.step == step
           && k.direction == a->direction && k.attempt == a->number;
}

static bool said_to_have(const struct work *w, const struct subject *t, uint32_t step,
                         const struct seen_attempt *a)
{
    for (size_t i = 0; i < w->holding_count; i++)
        if (names(w->holding[i], t, step, a))
            return true;
    for (size_t i = 0; i < w->result_count; i++)
        if (names(w->results[i].token, t, step, a))
            return true;
    return false;
}

static bool is_requested(const struct work *w, const struct subject *t, uint32_t step,
                         const struct seen_attempt *a)
{
    for (size_t i = 0; i < w->request_count; i++)
        if (names(w->requests[i].token, t, step, a))
            return true;
    return false;
}

/* An open attempt of this instance: the instance has it, or gets it (again). */
static void check_held(const struct node *n, const struct work *w, struct subject *t, uint32_t step,
                       const struct seen_attempt *a)
{
    bool has = said_to_have(w, t, step, a);
    bool sent = is_requested(w, t, step, a);
    int64_t quiet = max_i64(t->changed_at, nodes_quiet_since());
    int64_t arrived_at = w->arrived_at - (node_now(n) - world.now);

    if (!node_owns(n, t->seen.owner))
        return; /* the node's knowledge may be outdated */
    must(t, !has || !sent, "what an instance holds is not sent again", "twice");
    if (a->elsewhere)
        return; /* see check_long_part */
    if (has || sent || t->sent_at[step][a->direction] >= arrived_at
        || t->unsent[step][a->direction] == a->number
        || said_find(t, step, a->direction, a->number, false) /* it may be in transit */
        || said_find(t, step, a->direction, a->number, true) || quiet + QUIET_MS >= arrived_at
        || a->complete_by <= latest_now() || w->request_count == w->max
        || weather.store_ms > 10 /* the task may be at the store */)
        return;
    t->missed[step]++; /* the task may be at the store: then the instance is called home */
    must(t, t->missed[step] < 5, "what an instance has lost is sent again", "lost");
}

static void check_holding(const struct node *n, const struct work *w)
{
    if (!w->says_holding || w->max == 0 || n->narrow || wire_calls_of(n, w->instance_name) > 1)
        return; /* another call may carry it */
    for (uint32_t i = 0; i < subjects.count; i++)
        for (uint32_t k = 0; k < subjects.list[i].seen.step_count; k++) {
            struct subject *t = &subjects.list[i];
            const struct seen_attempt *a = seen_open(&t->seen.steps[k]);
            if (a && slice_is(w->instance_name, a->instance))
                check_held(n, w, t, k, a);
        }
}

/* ---- outcomes ---- */

/* For results that only say that the real one comes from elsewhere. */
static bool check_elsewhere(const struct subject *t, const struct work_result *r,
                            const struct seen_attempt *a)
{
    if (!r->elsewhere)
        return false;
    if (r->status == RESULT_ACCEPTED)
        covered(COVER_ELSEWHERE);
    if (r->status == RESULT_ACCEPTED
        || (r->status == RESULT_REPEATED && a->outcome == OUTCOME_OPEN))
        must(t, a->elsewhere, "what is accepted is durable", "elsewhere");
    if (r->status == RESULT_LATE)
        must(t, a->outcome == OUTCOME_TIMED_OUT || a->outcome == OUTCOME_LATE,
             "only what is over is late", outcome_text(a->outcome));
    if (r->status == RESULT_UNKNOWN)
        must(t, a->outcome == OUTCOME_NOT_SENT, "what was sent is known", outcome_text(a->outcome));
    return true;
}

void check_result(const struct work_result *r)
{
    struct token k;
    if (is_of_item(r->token, &k)) {
        check_item_result(r, &k);
        return;
    }
    const struct subject *t = subject_find(k.task);
    const struct seen_step *s = &t->seen.steps[k.step];
    const struct seen_attempt *a = seen_find(s, k.direction, k.attempt);

    if (t->deleted && r->status == RESULT_UNKNOWN)
        return; /* the task is deleted */
    if (!a) {
        must(t, s->dropped_count > 0 || r->status == RESULT_UNKNOWN,
             "a result is answered by what is durable", "no such attempt");
        return;
    }
    if (check_elsewhere(t, r, a))
        return;
    switch (r->status) {
    case RESULT_ACCEPTED:
        must(t, a->outcome == (r->failed ? OUTCOME_FAILED : OUTCOME_COMPLETED),
             "what is accepted is durable", outcome_text(a->outcome));
        return;
    case RESULT_REPEATED:
        covered(COVER_REPEATED);
        must(t, a->outcome == OUTCOME_FAILED || a->outcome == OUTCOME_COMPLETED,
             "what is repeated was accepted", outcome_text(a->outcome));
        return;
    case RESULT_LATE:
        must(t, a->outcome == OUTCOME_LATE, "what is late is kept", outcome_text(a->outcome));
        return;
    case RESULT_UNKNOWN:
        must(t, a->outcome == OUTCOME_NOT_SENT, "what was sent is known", outcome_text(a->outcome));
        return;
    }
    UNREACHABLE();
}

void check_answer(const struct node *n, const struct work *w, uint32_t max)
{
    if (w->request_count > max)
        broken("no agent gets more than it has places for", "%zu for %u", w->request_count, max);
    for (size_t i = 0; i < w->request_count; i++) {
        struct token of;
        if (is_of_item(w->requests[i].token, &of))
            check_item_request(n, w, &w->requests[i], &of);
        else
            check_request(n, w, &w->requests[i]);
        for (size_t k = 0; k < i; k++)
            if (slice_eq(w->requests[i].token, w->requests[k].token))
                broken("no request is doubled", "%.*s", SLICE_ARG(w->requests[i].task));
    }
    if (w->failed)
        return; /* it contains nothing else */
    check_holding(n, w);
    for (size_t i = 0; i < w->result_count; i++)
        check_result(&w->results[i]);
}

/* ---- submitters and operators ---- */

static void check_submitted(const struct subject *t, const struct ask *a, bool other)
{
    if (a->deleted && a->outcome == ERR_OK)
        covered(COVER_SUBMITTED_DELETED);
    must(t, !a->deleted || t->deleted, "only what is gone is told to be gone", "submission");
    if (a->outcome == ERR_OK && (a->content.sha256.ptr != NULL) != (t->seen.sha256 != 0))
        covered(COVER_SUBMIT_OLD);
    if (a->outcome == ERR_OK) {
        must(t, t->seen.revision != 0, "what is accepted is durable", "submission");
        must(t, subject_says(t, other), "an id has one content", "other content accepted");
    }
    if (a->outcome == ERR_TAKEN) {
        covered(COVER_LOCK_REFUSED);
        must(t, t->flow->lock_refuses, "only who does not wait is refused", "submission");
    }
    if (a->outcome == ERR_CONFLICT) {
        covered(COVER_SUBMIT_CONFLICT);
        if (subject_meets(t))
            covered(COVER_SUBMIT_MEETS);
        must(t, t->seen.revision != 0 && !subject_says(t, other), "an id has one content",
             "conflict without one");
    }
}

/* No report will ever settle this. */
static bool pivot_in_doubt(const struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (t->flow->steps[i].undo == UNDO_PIVOT
            && (seen_in_doubt(&t->seen.steps[i]) || seen_child_is_open(&t->seen.steps[i])))
            return true;
    return false;
}

/* Refused only if nothing can be undone any more, or an operator must handle it. */
static void check_cancel(struct subject *t, const struct ask *a)
{
    const struct seen *s = &t->seen;

    if (a->outcome == ERR_OK) {
        t->cancelled = true;
        covered(COVER_CANCELLED);
    }
    if (a->outcome == ERR_CONFLICT && !t->verbs) {
        covered(COVER_CANCEL_REFUSED);
        must(t,
             s->state == TASK_PROCESSED || s->state == TASK_ERROR || pivot_holds(t)
                 || pivot_in_doubt(t),
             "a cancel is refused only if it comes too late", "refused");
    }
}

static void cover_verb(const struct ask *a)
{
    if (a->kind == ASK_PAUSE)
        covered(COVER_PAUSED);
    if (a->kind == ASK_CORRECT)
        covered(COVER_CORRECTED);
    if (a->kind == ASK_SUPPLY)
        covered(COVER_SUPPLIED);
    if (a->kind == ASK_RESOLVE && a->outcome == ERR_OK)
        covered(COVER_RESOLVED);
    if (a->kind == ASK_RETRY && a->from)
        covered(COVER_FROM);
    if (a->kind == ASK_CLOSE)
        covered(COVER_CLOSED);
}

void check_asked(struct subject *t, const struct ask *a, uint64_t revision, bool other)
{
    const struct seen *s = &t->seen;

    if (a->kind == ASK_SUBMIT) {
        check_submitted(t, a, other);
        return;
    }
    if (a->outcome == ERR_NOT_FOUND)
        must(t, revision == 0 || t->deleted, "a task that is there is found", "operator");
    if (a->kind == ASK_CANCEL)
        check_cancel(t, a);
    if (a->outcome != ERR_OK)
        return;
    bool undoes = a->kind == ASK_UNDO || a->kind == ASK_CANCEL;
    bool undone = undoes && (s->direction == DIRECTION_UNDO || s->stop == STOP_UNDO);
    must(t, s->revision > revision || undone || a->existed, "what is accepted is durable",
         "operator");
    if (a->kind == ASK_UNDO)
        covered(COVER_OPERATOR_UNDO);
    if (!a->existed)
        cover_verb(a);
}

/* ---- reports ---- */

void check_ended(const struct node *n, struct slice id, enum task_state state)
{
    const struct subject *t = subject_find(id);

    trace("%s tells: %s is %s", n->me, t->id, task_state_text(state));
    must(t, t->seen.state == state || t->writer != n, "what is told has become durable", "end");
}

void check_alert(const struct node *n, struct slice id)
{
    struct subject *t = subject_find(id);

    trace("%s alerts: %s", n->me, t->id);
    must(t, t->seen.revision != 0, "what is told has become durable", "alert");
    if (t->alert_by == n)
        t->alert_due = 0;
}

void check_told(const struct node *n, uint64_t done)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        must(t, t->alert_by != n || t->alert_due == 0 || t->alert_due > done,
             "who stops in error alerts a person", "nobody was told");
        check_change_told(n, t, done);
    }
}
