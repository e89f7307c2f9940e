/* The observer's model of a task: see history_world.h. Written without code of the core, so that
 * the two can be compared. Part of the tests. */
#include "core/history_world.h"

void world_make(struct world *w, const struct graph *g)
{
    memset(w, 0, sizeof *w);
    w->graph = g;
    w->step_count = g->w.step_count;
    w->deadline[0] = graph_complete_by(g);
    w->not_before = graph_not_before(g);
}

static bool of_on_undo(const struct world *w, uint16_t i)
{
    return w->graph->steps[i].on_undo;
}

bool world_goes_back(const struct world *w, uint16_t i)
{
    return w->back && !of_on_undo(w, i);
}

bool world_is_early(const struct world *w, int64_t now)
{
    return !w->back && now < w->not_before;
}

/* The task's own time: while it is paused, the time at which the pause began. */
static int64_t clock_of(const struct world *w, int64_t now)
{
    return w->paused_at ? w->paused_at : now;
}

static bool waits_for_moment(const struct world *w, uint16_t i)
{
    return w->graph->steps[i].kind == KIND_WAIT && w->graph->steps[i].wait_ms == 0;
}

/* So does the time for the rounds of a step. */
static void rounds_move(struct world *w, int64_t was, int64_t now)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].repeat_until > was)
            w->steps[i].repeat_until = now + (w->steps[i].repeat_until - was);
}

/* All times that it waits for move by the length of the pause, but not a moment. */
void world_unpaused(struct world *w, int64_t now)
{
    int64_t *deadline = &w->deadline[w->back];
    int64_t was = w->paused_at;

    if (was == 0)
        return;
    w->paused_at = 0;
    if (*deadline != 0 && !w->due[w->back])
        *deadline = *deadline > was ? now + (*deadline - was) : now + 10000;
    if (w->not_before > was)
        w->not_before = now + (w->not_before - was);
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].wait_until > was && !waits_for_moment(w, i))
            w->steps[i].wait_until = now + (w->steps[i].wait_until - was);
    rounds_move(w, was, now);
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].signal_by > was)
            w->steps[i].signal_by = now + (w->steps[i].signal_by - was);
}

void world_error_over(struct world *w, int64_t now)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        struct world_step *s = &w->steps[i];
        if (s->begun_at != 0 && s->phase == PHASE_IDLE && !waits_for_moment(w, i)
            && s->wait_until > w->erred_at)
            s->wait_until = now + (s->wait_until - w->erred_at);
        if (s->signal_by > w->erred_at)
            s->signal_by = now + (s->signal_by - w->erred_at);
    }
    rounds_move(w, w->erred_at, now);
}

void world_turned(struct world *w, int64_t now)
{
    int64_t ms = w->graph->w.undo_complete_by_ms;

    w->back = true;
    w->deadline[1] = ms ? clock_of(w, now) + ms : 0;
}

void world_resumed(struct world *w, int64_t now)
{
    w->resumed = true;
    w->wish = STOP_NONE; /* the next failure decides again */
    w->due[w->back] |= w->deadline[w->back] <= now;
}

static const struct workflow_step *spec_of(const struct world *w, uint16_t i)
{
    return &w->graph->steps[i];
}

bool world_effect(const struct world_step *s)
{
    if (s->supplied || s->said == CHILD_PROCESSED)
        return true;
    for (uint32_t n = 0; n < s->count[0]; n++)
        if (s->attempts[0][n].end == CALL_DONE)
            return true;
    return false;
}

bool world_doubt(const struct world_step *s)
{
    bool doubt = false;

    if (s->supplied)
        return false;
    for (uint32_t n = 0; n < s->count[0]; n++) {
        enum call_end f = s->attempts[0][n].end;
        if (f == CALL_SILENT || f == CALL_UNKNOWN)
            doubt |= n >= s->resolved;
        else if (f == CALL_DONE)
            doubt = false;
    }
    return doubt;
}

bool world_resolve_contradicted(const struct world_step *s)
{
    for (uint32_t n = 0; n < s->resolved; n++)
        if (s->attempts[0][n].end == CALL_DONE && s->attempts[0][n].late)
            return true;
    return false;
}

int64_t world_doubt_until(const struct world_step *s)
{
    bool doubt = world_doubt(s);
    int64_t until = 0;

    for (uint32_t n = 0; n < s->count[0]; n++) {
        const struct world_attempt *a = &s->attempts[0][n];
        bool counts = a->end == CALL_SILENT || (a->end == CALL_UNKNOWN && doubt)
                      || (a->again && a->end != CALL_OPEN);
        if (counts && a->complete_by > until)
            until = a->complete_by;
    }
    return until;
}

bool world_open(const struct world_step *s)
{
    for (int d = 0; d < 2; d++)
        for (uint32_t n = 0; n < s->count[d]; n++)
            if (s->attempts[d][n].end == CALL_OPEN)
                return true;
    return false;
}

bool world_ended(const struct world *w, uint16_t i)
{
    const struct world_step *s = &w->steps[i];

    if (s->back)
        return false;
    return s->phase == PHASE_DONE || s->phase == PHASE_SKIPPED
           || (s->phase == PHASE_GAVE_UP && spec_of(w, i)->on_failure == ON_FAILURE_CONTINUE);
}

bool world_pivot_clear(const struct world_step *s)
{
    bool turned = s->said == CHILD_TURNED || !world_kid_open(s);

    return !world_open(s) && !world_effect(s) && !world_doubt(s) && turned;
}

/* ---- order ---- */

static bool to_undo(const struct world *w, uint16_t i)
{
    const struct world_step *s = &w->steps[i];

    if (s->back && s->phase == PHASE_DONE)
        return false;
    if (spec_of(w, i)->kind == KIND_TASK && (world_kid_open(s) || s->back))
        return true; /* it has to end, whatever its undo is */
    if (spec_of(w, i)->undo_kind == UNDO_CHILD)
        return s->said == CHILD_PROCESSED;
    if (spec_of(w, i)->undo_kind != UNDO_CALL)
        return false;
    return s->back || world_effect(s) || world_doubt(s);
}

bool world_after_is_undone(const struct world *w, uint16_t i)
{
    const struct workflow_step *spec = spec_of(w, i);

    for (uint16_t n = 0; n < spec->after_count; n++) {
        uint16_t q = spec->after[n];
        if (world_open(&w->steps[q]) || to_undo(w, q) || !world_after_is_undone(w, q))
            return false;
    }
    return true;
}

static bool before_ended(const struct world *w, uint16_t i)
{
    const struct workflow_step *spec = spec_of(w, i);

    for (uint16_t n = 0; n < spec->before_count; n++)
        if (!world_ended(w, spec->before[n]) || !before_ended(w, spec->before[n]))
            return false; /* indirect ones too: a direct one may have been skipped ahead of time */
    return true;
}

static bool all_undone(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (!of_on_undo(w, i) && (world_open(&w->steps[i]) || to_undo(w, i)))
            return false;
    return true;
}

bool world_startable(const struct world *w, uint16_t i, int64_t now)
{
    const struct world_step *s = &w->steps[i];
    int64_t doubt = world_doubt_until(s);

    if (w->paused_at != 0)
        return false;
    if (of_on_undo(w, i) && (!w->back || !all_undone(w)))
        return false;
    if (!world_goes_back(w, i))
        return s->phase == PHASE_IDLE && before_ended(w, i) && now >= s->wait_until;
    if (spec_of(w, i)->kind == KIND_TASK
        && (spec_of(w, i)->undo_kind != UNDO_CALL || world_kid_open(s)))
        return false; /* the child is told */
    if (!to_undo(w, i) || world_open(s) || (s->back && s->phase != PHASE_IDLE))
        return false;
    return world_after_is_undone(w, i) && (doubt == 0 || now >= doubt + 1000)
           && (!s->back || now >= s->wait_until);
}

bool world_has_time(const struct world *w, int64_t now)
{
    return w->deadline[0] == 0 || w->due[0] || now < w->deadline[0];
}

bool world_wait_begins(const struct world *w, uint16_t i, int64_t now)
{
    return spec_of(w, i)->kind != KIND_CALL && w->steps[i].begun_at == 0 && !w->back
           && world_startable(w, i, now) && world_has_time(w, now);
}

bool world_wait_is_over(const struct world *w, uint16_t i, int64_t now)
{
    return spec_of(w, i)->kind == KIND_WAIT && w->steps[i].begun_at != 0
           && world_startable(w, i, now) && world_has_time(w, now);
}

bool world_may_judge(const struct world *w, uint16_t i, int64_t now)
{
    return w->steps[i].answered && world_startable(w, i, now)
           && (w->deadline[w->back] == 0 || w->due[w->back] || now < w->deadline[w->back]);
}

bool world_goes_round(const struct world_step *s)
{
    return s->round_at < s->repeat_until;
}

bool world_resolvable(const struct world *w, uint16_t i, int64_t now)
{
    const struct world_step *s = &w->steps[i];

    if (world_open(s) || s->back || !world_doubt(s))
        return false;
    if (world_effect(s) && spec_of(w, i)->undo_kind != UNDO_NONE)
        return false;
    return now >= world_doubt_until(s) + 1000;
}

/* ---- events ---- */

static const struct world_attempt *attempt_of(const struct world *w, const struct event *ev)
{
    const struct world_step *s = &w->steps[ev->step];

    return ev->attempt >= 1 && ev->attempt <= s->count[ev->direction]
               ? &s->attempts[ev->direction][ev->attempt - 1]
               : NULL;
}

int64_t world_silent_at(const struct world *w, uint16_t i, enum direction d,
                        const struct world_attempt *a)
{
    const struct workflow_step *spec = spec_of(w, i);
    int64_t ms = d == DIRECTION_UNDO ? spec->undo.heartbeat_ms : spec->call.heartbeat_ms;

    return a->end != CALL_OPEN || a->away || ms == 0 ? 0 : a->began + ms;
}

static bool is_silent(const struct world *w, const struct event *ev, const struct world_attempt *a,
                      int64_t now)
{
    int64_t at = world_silent_at(w, (uint16_t)ev->step, ev->direction, a);

    return at != 0 && now >= at;
}

/* Whether it is the step's latest attempt, and its retry waits. */
static bool waits_after(const struct world *w, const struct event *ev, int64_t now)
{
    const struct world_step *s = &w->steps[ev->step];
    bool back = world_goes_back(w, (uint16_t)ev->step);

    return ev->attempt >= 1 && s->phase == PHASE_IDLE && s->back == back
           && (s->round == 0 || s->round_at != 0) /* no outage delays the next round */
           && ev->direction == (back ? DIRECTION_UNDO : DIRECTION_FORWARD)
           && ev->attempt == s->count[back] && s->wait_until > clock_of(w, now);
}

enum answer world_answer(const struct world *w, const struct event *ev, int64_t now)
{
    const struct world_attempt *a = attempt_of(w, ev);

    if (ev->kind == EVENT_HASTEN)
        return waits_after(w, ev, now) ? ANSWER_ACCEPTED : ANSWER_REFUSED;

    if (ev->kind == EVENT_TIMEOUT)
        return a && a->end == CALL_OPEN && now >= a->complete_by ? ANSWER_ACCEPTED : ANSWER_REFUSED;
    if (ev->kind == EVENT_SILENCE)
        return a && is_silent(w, ev, a, now) ? ANSWER_ACCEPTED : ANSWER_REFUSED;
    if (ev->kind == EVENT_NOT_SENT)
        return a && a->end == CALL_OPEN && !a->again && !a->away ? ANSWER_ACCEPTED : ANSWER_REFUSED;
    if (ev->kind == EVENT_SEND_AGAIN)
        return a && a->end == CALL_OPEN && !a->away && now < a->complete_by ? ANSWER_ACCEPTED
                                                                            : ANSWER_REFUSED;
    if (!a)
        return ANSWER_UNKNOWN;
    if (a->end == CALL_OPEN)
        return ev->kind == EVENT_ELSEWHERE && a->away ? ANSWER_REPEATED : ANSWER_ACCEPTED;
    if (a->end == CALL_NOT_SENT)
        return ANSWER_REFUSED;
    return a->end == CALL_SILENT || a->late ? ANSWER_LATE : ANSWER_REPEATED;
}

static void gave_up(struct world *w, uint16_t i)
{
    struct world_step *s = &w->steps[i];
    enum on_failure f = spec_of(w, i)->on_failure;

    s->phase = PHASE_GAVE_UP;
    if (!w->back && w->wish == STOP_NONE && f != ON_FAILURE_CONTINUE)
        w->wish = f == ON_FAILURE_HOLD ? STOP_HOLD : STOP_UNDO;
}

void world_failed(struct world *w, uint16_t i)
{
    w->steps[i].failures++;
    gave_up(w, i);
}

void world_goes_undo(struct world_step *s)
{
    s->back = true;
    s->failures = s->spared = 0;
    s->wait_until = 0;
    s->resume = false;
}

static void failed(struct world *w, uint16_t i, bool retryable, bool spared, int64_t now)
{
    struct world_step *s = &w->steps[i];
    const struct call_spec *call = s->back ? &spec_of(w, i)->undo : &spec_of(w, i)->call;

    s->phase = PHASE_IDLE;
    if (retryable && spared && call->retry.attempts + call->retry.defers > 1
        && s->spared < SPARED_MAX) {
        s->spared++;
        s->wait_until = 0;
        return;
    }
    s->failures++;
    if (!retryable || s->failures >= call->retry.attempts + call->retry.defers)
        gave_up(w, i);
    else
        s->wait_until = clock_of(w, now)
                        + (s->failures < call->retry.attempts ? GRAPH_WAIT_MS : GRAPH_DEFER_MS);
}

static void answered(struct world *w, const struct event *ev, int64_t now)
{
    struct world_step *s = &w->steps[ev->step];
    struct world_attempt *a = &s->attempts[ev->direction][ev->attempt - 1];
    bool open = a->end == CALL_OPEN;

    a->late = !open;
    if (ev->failed)
        a->end = ev->effect == EFFECT_NONE && !a->again ? CALL_NOTHING : CALL_UNKNOWN;
    else
        a->end = CALL_DONE;
    if (open && ev->failed)
        failed(w, (uint16_t)ev->step, ev->retryable, ev->spared, now);
    else if (open && spec_of(w, (uint16_t)ev->step)->repeat.for_ms)
        s->phase = PHASE_IDLE;
    else if (open)
        s->phase = PHASE_DONE;
    s->answered = s->answered || (open && s->phase == PHASE_IDLE && !ev->failed);
    s->resume &= !(open && !ev->failed);
}

static void started(struct world *w, const struct event *ev, int64_t now)
{
    struct world_step *s = &w->steps[ev->step];
    const struct workflow_step *spec = spec_of(w, (uint16_t)ev->step);
    bool back = world_goes_back(w, (uint16_t)ev->step);

    if (back && !s->back) {
        s->back = true;
        s->failures = s->spared = 0;
        s->resume = false;
    }
    int64_t at = now + (back ? spec->undo : spec->call).complete_by_ms;
    int64_t cap = w->due[w->back] ? 0 : w->deadline[w->back];
    s->phase = PHASE_OPEN;
    s->wait_until = 0;
    if (spec->repeat.for_ms && !s->repeat_until)
        s->repeat_until = now + GRAPH_FOR_MS;
    if (spec->repeat.for_ms && !s->round_at)
        s->round_at = now;
    if (spec->repeat.for_ms && !s->round)
        s->round = 1;
    s->attempts[back][s->count[back]++] =
        (struct world_attempt){.complete_by = cap != 0 && cap < at ? cap : at,
                               .began = now,
                               .request = s->request};
}

/* A step whose last request was answered is given all the time again. That answer counts no more.
 */
static void another_time(struct world_step *s)
{
    const struct world_attempt *last = &s->attempts[0][s->count[0] ? s->count[0] - 1 : 0];

    if (s->round == 0 || last->end != CALL_DONE || last->late)
        return;
    if (s->round_at != 0) {
        s->round++;
        s->request++;
    }
    s->round_at = s->repeat_until = 0;
    s->answered = false;
}

static void judged(struct world *w, const struct event *ev, int64_t now)
{
    struct world_step *s = &w->steps[ev->step];

    if (ev->holds) {
        s->phase = PHASE_DONE;
        s->answered = false;
    } else if (world_goes_round(s)) {
        s->round++;
        s->request++;
        s->round_at = 0;
        s->answered = false;
        s->failures = s->spared = 0;
        s->wait_until = clock_of(w, now) + GRAPH_EVERY_MS;
    } else {
        s->failures++;
        gave_up(w, (uint16_t)ev->step);
    }
}

static void retried(struct world *w, const struct event *ev, enum task_state state)
{
    if (state == TASK_ERROR && w->back)
        w->deadline[1] = 0;
    for (uint16_t i = 0; i < w->step_count; i++) {
        struct world_step *s = &w->steps[i];
        if (ev->step >= 0 && ev->step != i)
            continue;
        bool fits = s->back == world_goes_back(w, i);
        if (s->phase == PHASE_GAVE_UP && fits && state == TASK_ERROR && !world_ended(w, i)) {
            s->phase = PHASE_IDLE;
            s->failures = s->spared = 0;
            another_time(s);
            world_votes_void(w, i);
            if (!s->back) {
                s->begun_at = s->signal_by = 0;
                s->said = CHILD_NONE;
            }
        }
        if (fits && (s->begun_at == 0 || s->back))
            s->wait_until = 0;
    }
}

/* Whether the step is a direct or indirect successor of the other. */
static bool is_behind(const struct world *w, uint16_t i, uint16_t other)
{
    const struct workflow_step *spec = spec_of(w, i);

    for (uint16_t n = 0; n < spec->before_count; n++)
        if (spec->before[n] == other || is_behind(w, spec->before[n], other))
            return true;
    return false;
}

static void begun_anew(struct world *w, uint16_t from)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        struct world_step *s = &w->steps[i];
        if (i != from && !is_behind(w, i, from))
            continue;
        s->phase = PHASE_IDLE;
        s->failures = s->spared = 0;
        s->begun_at = s->wait_until = s->signal_by = 0;
        s->round = 0;
        s->round_at = s->repeat_until = 0;
        s->answered = false;
        world_put_back(w, i);
        world_votes_void(w, i);
        s->resume = s->supplied = false;
        s->said = CHILD_NONE;
        s->request++;
    }
}

static void corrected(struct world *w, const struct event *ev)
{
    if (ev->step < 0) {
        world_ask_anew(w);
        return;
    }
    w->steps[ev->step].request++;
    w->steps[ev->step].resume = false;
    w->steps[ev->step].answered = false;
}

static void supplied(struct world_step *s)
{
    s->phase = PHASE_DONE;
    s->answered = false;
    s->supplied = true;
    s->resume = false;
    s->wait_until = 0;
}

static void begun(struct world *w, const struct event *ev, int64_t now)
{
    struct world_step *s = &w->steps[ev->step];

    s->begun_at = now;
    const struct workflow_step *spec = spec_of(w, (uint16_t)ev->step);
    if (spec->kind != KIND_WAIT) {
        int64_t ms =
            spec->signal.complete_by_ms + spec->approve.complete_by_ms + spec->child.complete_by_ms;
        s->signal_by = ms ? now + ms : 0;
        return;
    }
    s->wait_until = waits_for_moment(w, (uint16_t)ev->step) ? ev->until : now + GRAPH_LONG_MS;
}

static void given_up(struct world *w, const struct event *ev, int64_t now)
{
    struct world_step *s = &w->steps[ev->step];

    if (spec_of(w, (uint16_t)ev->step)->kind == KIND_TASK && !world_open(s))
        return; /* its child is told to stop */
    if (spec_of(w, (uint16_t)ev->step)->kind != KIND_CALL && !world_open(s)) {
        if (world_waited_well(w, ev))
            s->phase = PHASE_DONE;
        else
            failed(w, (uint16_t)ev->step, false, false, now);
        return;
    }
    if (ev->kind == EVENT_NOT_SENT) {
        s->attempts[ev->direction][ev->attempt - 1].end = CALL_NOT_SENT;
        s->phase = PHASE_IDLE;
    } else {
        s->attempts[ev->direction][ev->attempt - 1].end = CALL_SILENT;
        s->resume |= ev->resume.ptr != NULL;
        failed(w, (uint16_t)ev->step, true, ev->spared, now);
    }
}

static void skipped(struct world *w, const struct event *ev)
{
    struct world_step *s = &w->steps[ev->step];
    bool back = world_goes_back(w, (uint16_t)ev->step);

    s->phase = back ? PHASE_DONE : PHASE_SKIPPED;
    s->answered = false;
    if (back && !s->back) {
        s->failures = s->spared = 0;
        s->resume = false;
    }
    s->back = back;
    s->by_hand = back;
    s->wait_until = 0;
}

static void bad_input(struct world *w, const struct event *ev)
{
    struct world_step *s = &w->steps[ev->step];

    if (world_goes_back(w, (uint16_t)ev->step) && !s->back)
        world_goes_undo(s);
    failed(w, (uint16_t)ev->step, false, false, 0);
}

void world_event(struct world *w, const struct event *ev, enum task_state state, int64_t now)
{
    switch (ev->kind) {
    case EVENT_START:
        started(w, ev, now);
        return;
    case EVENT_NOT_SENT:
    case EVENT_TIMEOUT:
    case EVENT_SILENCE:
    case EVENT_DECIDED:
        given_up(w, ev, now);
        return;
    case EVENT_BRING:
        return;
    case EVENT_ELSEWHERE:
        w->steps[ev->step].attempts[ev->direction][ev->attempt - 1].away = true;
        return;
    case EVENT_SEND_AGAIN:
        w->steps[ev->step].attempts[ev->direction][ev->attempt - 1].again = true;
        return;
    case EVENT_RESULT:
        answered(w, ev, now);
        return;
    case EVENT_EXTEND:
        w->deadline[w->back] = ev->until;
        return;
    case EVENT_DEADLINE:
        w->due[w->back] = true;
        return;
    case EVENT_CONDITION:
    case EVENT_SKIP:
        skipped(w, ev);
        return;
    case EVENT_BAD_INPUT:
        bad_input(w, ev);
        return;
    case EVENT_BEGIN:
        begun(w, ev, now);
        return;
    case EVENT_DUE:
        w->steps[ev->step].phase = PHASE_DONE;
        return;
    case EVENT_UNTIL:
        judged(w, ev, now);
        return;
    case EVENT_SIGNAL:
    case EVENT_TAKE:
    case EVENT_DROP:
        world_signal_event(w, ev);
        return;
    case EVENT_VOTE:
        world_vote(w, ev);
        return;
    case EVENT_CHILD: /* by world_child() */
    case EVENT_CLAIM:
    case EVENT_RELEASE:
        return;
    case EVENT_PARENT:
    case EVENT_PARENT_PAUSE:
    case EVENT_PARENT_RESUME:
        world_parent(w, ev, now);
        return;
    case EVENT_OVERRUN:
        w->wish = STOP_HOLD;
        return;
    case EVENT_RETRY:
        retried(w, ev, state);
        return;
    case EVENT_UNDO:
        w->asked = true;
        world_unpaused(w, now);
        return;
    case EVENT_PAUSE:
        w->paused_at = now;
        return;
    case EVENT_RESUME:
        world_unpaused(w, now);
        return;
    case EVENT_CORRECT:
        corrected(w, ev);
        return;
    case EVENT_SUPPLY:
        supplied(&w->steps[ev->step]);
        return;
    case EVENT_RESOLVE:
        w->steps[ev->step].resolved = w->steps[ev->step].count[0];
        return;
    case EVENT_RETRY_FROM:
        begun_anew(w, (uint16_t)ev->step);
        return;
    case EVENT_CLOSE:
    case EVENT_REOPEN:
        w->closed = ev->kind == EVENT_CLOSE;
        return;
    case EVENT_HASTEN:
        w->steps[ev->step].wait_until = 0;
        return;
    }
}
