/* Checks every event of a history against the invariants of the design and against the observer in
 * history_world.c: see history_check.h. Part of the tests. */
#include "core/history_check.h"

static bool is_active(const struct task *t)
{
    return t->state != TASK_PROCESSED && t->state != TASK_COMPENSATED && t->state != TASK_ERROR;
}

static bool anything_open(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (world_open(&w->steps[i]))
            return true;
    return false;
}

/* ---- the history so far, printed when a check fails ---- */

struct history history;

static size_t write_item(char *to, size_t size, const struct history_item *d)
{
    static const char *const kinds[] = {
        [EVENT_START] = "start",
        [EVENT_NOT_SENT] = "notsent",
        [EVENT_SEND_AGAIN] = "resend",
        [EVENT_RESULT] = "result",
        [EVENT_TIMEOUT] = "timeout",
        [EVENT_DEADLINE] = "deadline",
        [EVENT_EXTEND] = "extend",
        [EVENT_CONDITION] = "cond",
        [EVENT_BAD_INPUT] = "bad",
        [EVENT_CLAIM] = "claim",
        [EVENT_RELEASE] = "release",
        [EVENT_RETRY] = "retry",
        [EVENT_SKIP] = "skip",
        [EVENT_UNDO] = "undo",
        [EVENT_ELSEWHERE] = "away",
        [EVENT_SILENCE] = "silence",
        [EVENT_HASTEN] = "hasten",
        [EVENT_PAUSE] = "pause",
        [EVENT_RESUME] = "resume",
        [EVENT_CORRECT] = "correct",
        [EVENT_SUPPLY] = "supply",
        [EVENT_RETRY_FROM] = "from",
        [EVENT_CLOSE] = "close",
        [EVENT_REOPEN] = "reopen",
        [EVENT_RESOLVE] = "resolve",
        [EVENT_OVERRUN] = "overrun",
        [EVENT_BEGIN] = "begin",
        [EVENT_DUE] = "due",
        [EVENT_UNTIL] = "no",
        [EVENT_SIGNAL] = "signal",
        [EVENT_TAKE] = "take",
        [EVENT_DROP] = "drop",
        [EVENT_VOTE] = "vote",
        [EVENT_DECIDED] = "decided",
        [EVENT_CHILD] = "child",
        [EVENT_PARENT] = "told",
        [EVENT_PARENT_PAUSE] = "told-pause",
        [EVENT_PARENT_RESUME] = "told-resume",
    };
    _Static_assert(COUNT_OF(kinds) == EVENT_KINDS, "every kind has a name");
    const struct event *ev = &d->ev;
    const char *kind = kinds[ev->kind];

    if (d->wait != 0)
        return (size_t)snprintf(to, size, " wait %dms,", (int)d->wait);
    if (d->note)
        return (size_t)snprintf(to, size, " [the child of %c %s]", 'a' + ev->step, d->note);
    if (ev->kind == EVENT_CHILD)
        return (size_t)snprintf(to, size, " %s %c f%u,", child_state_text(ev->child),
                                'a' + ev->step, ev->attempt);
    if (ev->kind == EVENT_PARENT)
        return (size_t)snprintf(to, size, " told-%s,", child_wish_text(ev->wish));
    if (ev->kind == EVENT_UNTIL && ev->holds)
        kind = "yes";
    else if (ev->kind == EVENT_RESULT && !ev->failed)
        kind = "ok";
    else if (ev->kind == EVENT_RESULT && ev->retryable)
        kind = ev->effect == EFFECT_NONE ? "again" : "lost";
    else if (ev->kind == EVENT_RESULT)
        kind = ev->effect == EFFECT_NONE ? "fail" : "doubt";
    if (d->name || d->key)
        return (size_t)snprintf(to, size, " %s %c %c,", kind, d->name ? d->name : 'a' + ev->step,
                                d->key ? d->key : ' ');
    if (ev->step < 0)
        return (size_t)snprintf(to, size, " %s,", kind);
    return (size_t)snprintf(to, size, " %s%s %c %c%u,", kind, ev->spared ? "*" : "", 'a' + ev->step,
                            ev->direction == DIRECTION_UNDO ? 'u' : 'f', ev->attempt);
}

const char *history_story(void)
{
    static char text[40 * HISTORY_MAX];
    size_t at = (size_t)snprintf(text, sizeof text, "%s:", history.about);

    for (int i = 0; i < history.depth; i++)
        at += write_item(text + at, sizeof text - at, &history.path[i]);
    return text;
}

void history_print(void)
{
    fprintf(stderr, "%s\n", history_story());
}

static void path_push(struct history_item d)
{
    CHECK(history.depth < (int)COUNT_OF(history.path), "%s too deep", history_story());
    history.path[history.depth++] = d;
}

void history_wait(int64_t ms)
{
    path_push((struct history_item){.wait = ms});
}

void history_note(const char *what, int step)
{
    path_push((struct history_item){.note = what, .ev.step = step});
}

/* ---- checks after every event ---- */

static bool task_path_exists(enum task_state from, enum task_state to)
{
    if (from == to || task_state_can(from, to))
        return true;
    for (enum task_state by = TASK_PENDING; by <= TASK_ERROR; by++)
        if (task_state_can(from, by) && task_state_can(by, to))
            return true;
    return false;
}

static void check_edges(const struct node *was, const struct node *is, const struct event *ev)
{
    CHECK(task_path_exists(was->t.state, is->t.state), "%s", history_story());
    history.task_edge_seen[was->t.state][is->t.state] = true;
    for (uint16_t i = 0; i < is->t.step_count; i++) {
        enum step_state from = was->steps[i].state;
        enum step_state to = is->steps[i].state;
        CHECK(from == to || step_state_can(from, to), "%s", history_story());
        bool told = to == STEP_UNDOING && is->steps[i].child.wish == WISH_UNDO;
        CHECK(from == to || ev->step == i || ev->kind == EVENT_RETRY || ev->kind == EVENT_RETRY_FROM
                  || told,
              "%s step %u", history_story(), i);
        history.step_edge_seen[from][to] = true;
    }
}

/* Invariant 4, and the other conditions under which a step may start. */
static void check_start(const struct node *was, const struct event *ev)
{
    const struct world *w = &was->world;

    CHECK(world_startable(w, (uint16_t)ev->step, was->now), "%s: out of order", history_story());
    bool pivot = history.graph.steps[ev->step].undo_kind == UNDO_PIVOT;
    bool resolves = pivot && !world_pivot_clear(&w->steps[ev->step]);
    CHECK(was->t.stop == STOP_NONE || (was->t.stop == STOP_UNDO && resolves),
          "%s: started, although the task is to stop", history_story());
    if (w->back || w->resumed)
        return;
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].phase == PHASE_GAVE_UP && !world_ended(w, i))
            CHECK(resolves, "%s: step %u has failed", history_story(), i);
}

static bool pivots_clear(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (history.graph.steps[i].undo_kind == UNDO_PIVOT && !world_pivot_clear(&w->steps[i]))
            return false;
    return true;
}

static bool any_stands_failed(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].phase == PHASE_GAVE_UP && !w->steps[i].back && !world_ended(w, i))
            return true;
    return false;
}

/* Invariant 5, and the other properties of an end. */
static void check_end(const struct node *is)
{
    const struct world *w = &is->world;

    CHECK(!anything_open(w), "%s: something still runs", history_story());
    CHECK(is->t.ended_at > 0 && !is->t.locked_by.ptr && is->t.stop == STOP_NONE, "%s",
          history_story());
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        bool effect = !world_resolve_contradicted(s) && (world_effect(s) || world_doubt(s));
        bool undone = s->back && s->phase == PHASE_DONE;
        if (history.graph.steps[i].on_undo == (is->t.state == TASK_COMPENSATED))
            CHECK(world_ended(w, i), "%s: step %u did not end", history_story(), i);
        else if (is->t.state == TASK_PROCESSED)
            CHECK(s->phase == PHASE_IDLE || s->phase == PHASE_SKIPPED || s->supplied,
                  "%s: step %u of on_undo", history_story(), i);
        else if (history.graph.steps[i].undo_kind == UNDO_CHILD) /* what was supplied stays */
            CHECK(undone || (s->said != CHILD_PROCESSED && !s->back), "%s: step %u was not undone",
                  history_story(), i);
        else if (history.graph.steps[i].undo_kind == UNDO_CALL)
            CHECK(undone || (!effect && !s->back), "%s: step %u was not undone", history_story(),
                  i);
        else if (history.graph.steps[i].undo_kind == UNDO_PIVOT)
            CHECK(!effect, "%s: step %u is a pivot", history_story(), i);
    }
    CHECK(is->t.direction == (is->t.state == TASK_PROCESSED ? DIRECTION_FORWARD : DIRECTION_UNDO),
          "%s", history_story());
}

static void check_stop_in_error(const struct node *is)
{
    const struct world *w = &is->world;

    CHECK(!anything_open(w), "%s: something still runs", history_story());
    CHECK(is->t.error.code.ptr && is->t.ended_at > 0 && !is->t.locked_by.ptr, "%s",
          history_story());
    if (w->back || w->resumed)
        return;
    bool due = w->due[0] && history.graph.w.on_failure == ON_FAILURE_HOLD;
    CHECK(due || w->wish == STOP_HOLD || !pivots_clear(w) || world_kid_holds(w),
          "%s: nothing stops it", history_story());
}

static void check_turn(const struct node *was, const struct node *is, const struct effects *fx)
{
    const struct world *w = &is->world;

    CHECK(pivots_clear(w), "%s: a pivot prevents undo", history_story());
    CHECK(w->asked || w->due[0] || w->wish == STOP_UNDO, "%s: nobody wants it undone",
          history_story());
    CHECK(fx->stop_running == anything_open(w), "%s: stop", history_story());
    CHECK(was->t.direction == DIRECTION_FORWARD, "%s", history_story());
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void check_wake(const struct node *is)
{
    const struct world *w = &is->world;
    int64_t at = w->due[w->back] || w->paused_at ? 0 : w->deadline[w->back];

    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].phase == PHASE_IDLE && !w->back && !w->paused_at && is->t.stop == STOP_NONE)
            at = earlier(at, w->steps[i].signal_by);

    for (uint16_t i = 0; i < w->step_count; i++)
        for (int d = 0; d < 2; d++)
            for (uint32_t n = 0; n < w->steps[i].count[d]; n++)
                if (w->steps[i].attempts[d][n].end == CALL_OPEN)
                    at = earlier(at, w->steps[i].attempts[d][n].complete_by);
    CHECK(task_wake_at(&is->t) == (is_active(&is->t) ? at : 0), "%s: wake", history_story());
}

/* A result that no longer counts changes no step, and the task only by ending a doubt. */
static void check_late(const struct node *was, const struct node *is)
{
    bool moved = was->t.paused_at != 0 && is->t.paused_at == 0; /* the end ends the pause */

    for (uint16_t i = 0; i < is->t.step_count; i++) {
        const struct step *a = &was->steps[i];
        const struct step *b = &is->steps[i];
        CHECK(a->state == b->state && a->attempt == b->attempt && a->direction == b->direction
                  && a->failure_count == b->failure_count
                  && (moved || a->wait_until == b->wait_until)
                  && slice_eq(a->output.json, b->output.json)
                  && slice_eq(a->error.code, b->error.code),
              "%s: step %u changed", history_story(), i);
    }
    if (was->t.state != is->t.state)
        CHECK(is_active(&was->t)
                  && (is->t.direction == DIRECTION_UNDO || is->t.state == TASK_ERROR),
              "%s: a late result moved the task", history_story());
}

/* The step that a new cause must name, derived from the event alone. */
static int expected_cause(const struct event *ev)
{
    return ev->kind == EVENT_UNDO || ev->kind == EVENT_DEADLINE || ev->kind == EVENT_OVERRUN
                   || ev->kind == EVENT_SIGNAL || ev->kind == EVENT_PARENT
               ? -1
               : ev->step;
}

/* No signal waits to have a task undone that could be. */
static void check_undo_signals(const struct node *is)
{
    const struct world *w = &is->world;

    for (uint16_t i = 0; i < w->signal_count; i++) {
        CHECK(!world_asks_for_undo(w, i) || !is_active(&is->t) || is->t.stop != STOP_NONE
                  || w->paused_at != 0 || w->back,
              "%s: signal %u is overlooked", history_story(), i);
        CHECK(!world_asks_for_undo(w, i) || is->t.state != TASK_PROCESSED || !pivots_clear(w),
              "%s: signal %u is lost", history_story(), i);
    }
}

/* It is that of a child which stopped in error, when nothing else could go on. */
static bool is_of_kid(const struct node *is, const struct cause *c)
{
    return c->step >= 0 && slice_is(c->error.code, "child")
           && world_kid_stopped(&is->world.steps[c->step]);
}

/* A cause exists exactly while the task stops or is undone, and it does not change. */
static void check_cause(const struct node *was, const struct node *is, const struct event *ev)
{
    const struct cause *a = &was->t.cause;
    const struct cause *b = &is->t.cause;
    bool back = is->t.direction == DIRECTION_UNDO;
    bool stopped = back || is->t.stop != STOP_NONE || is->t.state == TASK_ERROR;

    /* An operator, or a child, had it continue, but something else stopped it again at once. */
    bool anew =
        !back && was->t.state == TASK_ERROR
        && (ev->kind == EVENT_RETRY || ev->kind == EVENT_RETRY_FROM || ev->kind == EVENT_CHILD
            || ev->kind == EVENT_SKIP || ev->kind == EVENT_SUPPLY);
    /* It was told to stop while it was in error, and could not. */
    if (slice_is(b->error.code, "parent") && is->world.told == WISH_STOP)
        return;

    if (slice_is(b->error.code, "signal") && !slice_is(a->error.code, "signal")) {
        /* one that asked in vain is an error of the task already */
        bool known = slice_is(was->t.error.code, "signal");
        CHECK(b->step == -1 && (known || world_signal_acted(&was->world, &is->world)),
              "%s: no signal", history_story());
        return;
    }

    CHECK(stopped == (b->error.code.ptr != NULL), "%s: why?", history_story());
    bool of_kid = (ev->kind == EVENT_CHILD && is_of_kid(was, a))
                  || (is_of_kid(is, b) && !pivots_clear(&is->world)); /* undo is out of question */
    if (anew || of_kid)
        return;
    if (a->error.code.ptr && b->error.code.ptr
        && (back || was->t.stop != STOP_NONE || was->t.state == TASK_ERROR))
        CHECK(a->step == b->step && slice_eq(a->error.code, b->error.code),
              "%s: another first failure", history_story());
    else if (!a->error.code.ptr && b->error.code.ptr && !is->world.resumed && !is_of_kid(is, b))
        CHECK(b->step == expected_cause(ev), "%s: the failure of step %d", history_story(),
              b->step);
    CHECK(is->t.state != TASK_COMPENSATED || is->t.error.code.ptr, "%s: no error", history_story());
}

static void check_change(const struct node *was, const struct node *is, const struct event *ev,
                         const struct effects *fx)
{
    bool ended = task_state_is_end(is->t.state);
    bool erred = is->t.state == TASK_ERROR && was->t.state != TASK_ERROR;

    check_edges(was, is, ev);
    check_cause(was, is, ev);
    check_undo_signals(is);
    bool turned = was->t.direction != is->t.direction;
    CHECK(!task_state_is_end(was->t.state) || was->t.state == is->t.state
              || (turned && was->t.state == TASK_PROCESSED
                  && (ev->kind == EVENT_UNDO || ev->kind == EVENT_PARENT)),
          "%s", history_story());
    CHECK(was->t.direction == is->t.direction || was->t.direction == DIRECTION_FORWARD, "%s",
          history_story());
    if (turned)
        check_turn(was, is, fx);
    if (ended)
        check_end(is);
    CHECK(fx->ended == (ended && (turned || !task_state_is_end(was->t.state))), "%s: ended",
          history_story());
    if (erred)
        check_stop_in_error(is);
    CHECK(!erred || fx->alert, "%s: nobody is told", history_story());
    CHECK(!fx->alert || is->t.error.code.ptr, "%s: an alert without a reason", history_story());
    if (!is->world.back && is_active(&is->t) && !is->world.resumed && any_stands_failed(&is->world))
        CHECK(is->t.stop != STOP_NONE, "%s: a failure was overlooked", history_story());
    CHECK(is_active(&is->t) || is->t.paused_at == 0, "%s: paused, and not at work",
          history_story());
    check_wake(is);
    history_check_told(was, is, ev);
}

/* ---- one event ---- */

/* What the core took as a reason to undo the task was one: it was kept, and the task goes back, is
 * about to, or cannot any more, which somebody is told. */
static void remember_undo_signals(struct node *is, const struct effects *fx)
{
    struct world *w = &is->world;

    for (uint16_t i = 0; i < w->signal_count && i < is->t.signal_count; i++) {
        if (is->signals[i].state != SIGNAL_TAKEN || !world_asks_for_undo(w, i))
            continue;
        w->signals[i].taken_by = WORLD_UNDID;
        w->asked = true;
        CHECK(is->t.direction == DIRECTION_UNDO || is->t.stop == STOP_UNDO
                  || is->t.state == TASK_ERROR || (fx->alert && !pivots_clear(w)),
              "%s: signal %u has no effect", history_story(), i);
    }
}

static void spend(uint8_t *left, bool so)
{
    if (so)
        (*left)--;
}

static void remember(struct node *is, const struct node *was, const struct event *ev,
                     enum answer answer, const struct effects *fx)
{
    struct world *w = &is->world;

    bool goes_on = was->t.state == TASK_ERROR && (is->t.state != TASK_ERROR || fx->alert);
    world_event(w, ev, was->t.state, is->now);
    if (ev->kind == EVENT_CHILD)
        world_child(w, ev, was->t.state == TASK_ERROR && !goes_on);
    history_tell(was, is, ev);
    remember_undo_signals(is, fx);
    enum event_kind kind = ev->kind;
    spend(&is->left.late, answer == ANSWER_LATE);
    spend(&is->left.not_sent, kind == EVENT_NOT_SENT);
    spend(&is->left.again, kind == EVENT_SEND_AGAIN || kind == EVENT_EXTEND);
    spend(&is->left.away, kind == EVENT_ELSEWHERE);
    spend(&is->left.releases, kind == EVENT_RELEASE);
    spend(&is->left.bad, kind == EVENT_BAD_INPUT || kind == EVENT_CONDITION);
    spend(&is->left.spared, ev->spared && answer == ANSWER_ACCEPTED && is->left.spared > 0);
    spend(&is->left.acts, kind == EVENT_RETRY || kind == EVENT_SKIP || kind == EVENT_UNDO);
    spend(&is->left.signals, kind == EVENT_SIGNAL || kind == EVENT_DROP || kind == EVENT_VOTE);
    if (kind == EVENT_BEGIN)
        world_asked(w, ev, &is->steps[ev->step]);
    spend(&is->left.verbs, kind >= EVENT_PAUSE && kind != EVENT_RESUME && kind != EVENT_REOPEN);
    spend(&is->told, kind >= EVENT_PARENT && kind <= EVENT_PARENT_RESUME);
    if (was->t.state == TASK_ERROR && is->t.ended_at != was->t.ended_at
        && (was->t.direction == is->t.direction || (kind != EVENT_UNDO && kind != EVENT_PARENT)))
        world_error_over(w, is->now);
    if (is->t.state == TASK_ERROR && is->t.ended_at != was->t.ended_at)
        w->erred_at = is->now;
    if (was->t.direction != is->t.direction)
        world_turned(w, is->now);
    else if (goes_on && kind == EVENT_CHILD)
        w->due[w->back] |= w->deadline[w->back] <= is->now;
    else if (goes_on)
        world_resumed(w, is->now);
    if (!is_active(&is->t))
        world_unpaused(w, is->now);
}

static bool is_of_attempt(enum event_kind kind)
{
    return kind == EVENT_RESULT || kind == EVENT_TIMEOUT || kind == EVENT_NOT_SENT
           || kind == EVENT_SEND_AGAIN || kind == EVENT_SILENCE || kind == EVENT_ELSEWHERE
           || kind == EVENT_HASTEN;
}

static bool is_of_approval(const struct event *ev)
{
    return ev->kind == EVENT_TIMEOUT && history.graph.steps[ev->step].kind == KIND_APPROVE;
}

static bool is_late_child(const struct node *was, const struct event *ev)
{
    return ev->kind == EVENT_TIMEOUT && history.graph.steps[ev->step].kind == KIND_TASK
           && !world_open(&was->world.steps[ev->step]);
}

/* Whether the attempt was made and is kept only as part of a sum. */
static bool is_merged(const struct node *was, const struct event *ev)
{
    if (ev->step < 0 || ev->attempt == 0
        || ev->attempt > was->world.steps[ev->step].count[ev->direction])
        return false;
    const struct step *s = &was->steps[ev->step];
    for (uint16_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == ev->direction && s->attempts[i].number == ev->attempt)
            return false;
    return is_of_attempt(ev->kind);
}

/* The result contradicts an operator's resolve, so it must be recorded. */
static bool contradicts_resolve(const struct node *was, const struct event *ev)
{
    const struct step *s = &was->steps[ev->step];

    return ev->kind == EVENT_RESULT && !ev->failed && ev->direction == DIRECTION_FORWARD
           && ev->attempt <= s->resolved && s->dropped_effect != EFFECT_NONE;
}

static bool any_kid_runs(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (world_kid_open(&w->steps[i]) && !world_kid_stopped(&w->steps[i]))
            return true;
    return false;
}

static void check_answer(const struct node *was, const struct event *ev, enum answer answer)
{
    const struct task *t = &was->t;

    if (is_merged(was, ev))
        CHECK(answer
                  == (contradicts_resolve(was, ev)                              ? ANSWER_LATE
                      : ev->kind == EVENT_RESULT || ev->kind == EVENT_ELSEWHERE ? ANSWER_UNKNOWN
                                                                                : ANSWER_REFUSED),
              "%s: was %s", history_story(), kit_answer_text(answer));
    else if (ev->kind == EVENT_HASTEN && !is_active(t))
        CHECK(answer == ANSWER_REFUSED, "%s: was %s", history_story(), kit_answer_text(answer));
    else if (ev->kind == EVENT_TIMEOUT && history.graph.steps[ev->step].kind == KIND_SIGNAL)
        CHECK((answer == ANSWER_ACCEPTED)
                  == (world_awaits_no_longer(&was->world, (uint16_t)ev->step, was->now)
                      && is_active(t) && t->stop == STOP_NONE && !was->world.back),
              "%s: was %s", history_story(), kit_answer_text(answer));
    else if (ev->kind == EVENT_VOTE || ev->kind == EVENT_DECIDED || is_of_approval(ev))
        CHECK(answer == world_vote_answer(&was->world, ev, t->state, t->stop, was->now),
              "%s: was %s", history_story(), kit_answer_text(answer));
    else if (ev->kind == EVENT_CHILD)
        CHECK(answer == world_child_answer(&was->world, ev), "%s: was %s", history_story(),
              kit_answer_text(answer));
    else if (ev->kind == EVENT_PARENT || ev->kind == EVENT_PARENT_PAUSE
             || ev->kind == EVENT_PARENT_RESUME)
        CHECK(answer == world_parent_answer(&was->world, ev, t->state), "%s: was %s",
              history_story(), kit_answer_text(answer));
    else if (is_late_child(was, ev))
        CHECK((answer == ANSWER_ACCEPTED)
                  == (was->world.steps[ev->step].signal_by != 0
                      && was->now >= was->world.steps[ev->step].signal_by
                      && world_startable(&was->world, (uint16_t)ev->step, was->now)
                      && world_has_time(&was->world, was->now) && is_active(t)
                      && t->stop == STOP_NONE && !was->world.back),
              "%s: was %s", history_story(), kit_answer_text(answer));
    else if (is_of_attempt(ev->kind))
        CHECK(answer == world_answer(&was->world, ev, was->now), "%s: was %s", history_story(),
              kit_answer_text(answer));
    if (ev->kind == EVENT_RESOLVE && was->steps[ev->step].dropped_count == 0)
        CHECK((answer == ANSWER_ACCEPTED)
                  == (!task_state_is_end(t->state) && !was->world.closed
                      && (ev->attempt == 0 || ev->attempt == was->steps[ev->step].attempt)
                      && world_resolvable(&was->world, (uint16_t)ev->step, was->now)),
              "%s: was %s", history_story(), kit_answer_text(answer));
    if (ev->kind == EVENT_BEGIN || ev->kind == EVENT_DUE) {
        uint16_t i = (uint16_t)ev->step;
        bool may = ev->kind == EVENT_BEGIN ? world_wait_begins(&was->world, i, was->now)
                                           : world_wait_is_over(&was->world, i, was->now);
        CHECK((answer == ANSWER_ACCEPTED) == (may && is_active(t) && t->stop == STOP_NONE),
              "%s: was %s", history_story(), kit_answer_text(answer));
    }
    if (ev->kind == EVENT_UNTIL)
        CHECK((answer == ANSWER_ACCEPTED)
                  == (world_may_judge(&was->world, (uint16_t)ev->step, was->now) && is_active(t)
                      && t->stop == STOP_NONE),
              "%s: was %s", history_story(), kit_answer_text(answer));
    if (ev->kind == EVENT_SIGNAL || ev->kind == EVENT_TAKE || ev->kind == EVENT_DROP) {
        enum answer want = world_signal_answer(&was->world, ev, t->state, was->now);
        bool goes = is_active(t) && t->stop == STOP_NONE && !was->world.back;
        CHECK(answer == (ev->kind == EVENT_TAKE && !goes ? ANSWER_REFUSED : want), "%s: was %s",
              history_story(), kit_answer_text(answer));
    }
    if (ev->kind == EVENT_CLAIM)
        CHECK((answer == ANSWER_ACCEPTED) == (is_active(t) && !t->locked_by.ptr), "%s",
              history_story());
    if (ev->kind == EVENT_RELEASE)
        CHECK((answer == ANSWER_ACCEPTED) == (t->locked_by.ptr && !anything_open(&was->world)),
              "%s", history_story());
    if (ev->kind == EVENT_DEADLINE) {
        int64_t at = was->world.deadline[was->world.back];
        bool due = at != 0 && at <= was->now && !was->world.due[was->world.back]
                   && was->world.paused_at == 0;
        CHECK((answer == ANSWER_ACCEPTED) == (due && is_active(t)), "%s: was %s", history_story(),
              kit_answer_text(answer));
    }
    if (ev->kind == EVENT_OVERRUN) {
        CHECK((answer == ANSWER_ACCEPTED)
                  == (is_active(t) && t->stop != STOP_HOLD && was->world.paused_at == 0),
              "%s: was %s", history_story(), kit_answer_text(answer));
    }
    if (ev->kind == EVENT_EXTEND) {
        int64_t at = was->world.deadline[was->world.back];
        bool counts = at != 0 && at < ev->until && !was->world.due[was->world.back];
        CHECK((answer == ANSWER_ACCEPTED) == (counts && is_active(t)), "%s: was %s",
              history_story(), kit_answer_text(answer));
    }
    if (ev->kind == EVENT_UNDO && t->state == TASK_PROCESSED)
        CHECK((answer == ANSWER_ACCEPTED)
                  == (pivots_clear(&was->world) && !history.graph.is_child
                      && (history.graph.w.undo_until_ms == 0
                          || was->now < t->ended_at + history.graph.w.undo_until_ms)),
              "%s: was %s", history_story(), kit_answer_text(answer));
    if (answer != ANSWER_ACCEPTED)
        return;
    CHECK(!history.graph.is_child
              || (ev->kind != EVENT_PAUSE && ev->kind != EVENT_RESUME && ev->kind != EVENT_CLOSE
                  && ev->kind != EVENT_REOPEN),
          "%s: that is for its root", history_story());
    CHECK(ev->kind != EVENT_CLOSE || !any_kid_runs(&was->world), "%s: a child runs",
          history_story());
    if (ev->kind == EVENT_START || ev->kind == EVENT_CONDITION || ev->kind == EVENT_BAD_INPUT
        || ev->kind == EVENT_BEGIN || ev->kind == EVENT_DUE || ev->kind == EVENT_UNTIL
        || ev->kind == EVENT_TAKE || ev->kind == EVENT_DECIDED)
        check_start(was, ev);
    CHECK(ev->kind != EVENT_START || !was->world.steps[ev->step].answered,
          "%s: its answer was not judged", history_story());
    CHECK(ev->kind != EVENT_START || history.graph.steps[ev->step].kind == KIND_CALL
              || ev->direction == DIRECTION_UNDO,
          "%s: a wait has no attempts", history_story());
    if (ev->kind == EVENT_SKIP)
        CHECK(!world_open(&was->world.steps[ev->step]), "%s: it runs", history_story());
    CHECK(ev->kind == EVENT_RESULT || !task_state_is_end(t->state) || ev->kind == EVENT_CHILD
              || ((ev->kind == EVENT_UNDO || ev->kind == EVENT_PARENT)
                  && t->state == TASK_PROCESSED),
          "%s: after the end", history_story());
}

/* A step that is next by order and time, in a task that may start it, can be started. */
static bool must_start(const struct node *was, const struct event *ev)
{
    const struct world *w = &was->world;
    int64_t at = w->due[w->back] ? 0 : w->deadline[w->back];
    bool owned = was->t.state == TASK_PROCESSING || was->t.state == TASK_COMPENSATING;
    bool back = world_goes_back(w, (uint16_t)ev->step);

    if (was->steps[ev->step].dropped_count > 0 || w->steps[ev->step].answered)
        return false; /* merged attempts may make it wait longer than the observer knows */
    bool calls = history.graph.steps[ev->step].kind == KIND_CALL
                 || (history.graph.steps[ev->step].kind == KIND_TASK && back);
    return owned && calls && was->t.stop == STOP_NONE
           && world_startable(w, (uint16_t)ev->step, was->now) && (at == 0 || was->now < at)
           && (ev->direction == DIRECTION_UNDO) == back
           && ev->attempt == w->steps[ev->step].count[back] + 1;
}

static void check_others(const struct node *is, const struct node *before, const struct event *ev)
{
    for (int i = 0; i < is->t.step_count; i++)
        CHECK(i == ev->step
                  || (memcmp(&is->steps[i], &before->steps[i], sizeof is->steps[i]) == 0
                      && memcmp(is->attempts[i], before->attempts[i], sizeof is->attempts[i]) == 0),
              "%s: a step that is not the event's has changed", history_story());
}

bool history_event(const struct node *was, struct node *is, const struct event *ev)
{
    static struct node image; /* of *is before the event */
    struct effects fx = {0};

    history.events++;
    path_push((struct history_item){
        .ev = *ev,
        .name = ev->signal && ev->signal->name.ptr ? ev->signal->name.ptr[0] : 0,
        .key = ev->signal && ev->signal->key.ptr ? ev->signal->key.ptr[0]
               : ev->ballot                      ? ev->ballot->person.ptr[0]
                                                 : 0,
    });
    node_image(&image, is);
    enum answer answer = decide(&history.graph.w, &is->t, ev, is->now, &fx);
    check_answer(was, ev, answer);
    if (ev->kind == EVENT_START)
        CHECK(answer == ANSWER_ACCEPTED || !must_start(was, ev), "%s: cannot be started",
              history_story());
    if (!fx.changed) {
        CHECK(answer != ANSWER_ACCEPTED, "%s: accepted, but not changed", history_story());
        CHECK(node_is_as(is, &image), "%s: refused, but changed", history_story());
        CHECK(!fx.alert && !fx.ended && !fx.stop_running, "%s: refused with effects",
              history_story());
        return false;
    }
    CHECK(answer == ANSWER_ACCEPTED || answer == ANSWER_LATE, "%s: changed", history_story());
    CHECK(!node_is_as(is, &image), "%s: accepted, but the same", history_story());
    CHECK(task_valid(&history.graph.w, &is->t), "%s: not valid", history_story());
    if (!fx.any_step)
        check_others(is, &image, ev);
    remember(is, was, ev, answer, &fx);
    world_check(&is->world, &is->t, is->now, history_story);
    check_change(was, is, ev, &fx);
    if (history.changed)
        history.changed(was, is, &fx);
    if (answer == ANSWER_LATE)
        check_late(was, is);
    return true;
}

/* ---- the next relevant time ---- */

void history_later(int64_t *next, int64_t at, int64_t now)
{
    if (at > now && (*next == 0 || at < *next))
        *next = at;
}

int64_t history_next_time(const struct node *n)
{
    const struct world *w = &n->world;
    int64_t next = 0;

    for (uint16_t i = 0; i < w->step_count && n->left.verbs > 0; i++)
        if (!task_state_is_end(n->t.state) && world_doubt(&w->steps[i])) /* it may be resolved */
            history_later(&next, world_doubt_until(&w->steps[i]) + CLOCK_MARGIN_MS, n->now);
    if (n->t.state == TASK_PROCESSED && n->left.acts > 0) /* from then on it cannot be undone */
        history_later(&next, task_undo_until(&history.graph.w, &n->t), n->now);
    for (uint16_t i = 0; i < w->step_count && n->left.acts > 0; i++) /* what is left of it stays */
        if (n->t.state == TASK_ERROR
            && (step_has_begun(&n->steps[i]) || w->steps[i].repeat_until > w->erred_at))
            history_later(&next, w->erred_at + HISTORY_PAUSE_MS, n->now);
    if (!is_active(&n->t))
        return next;
    if (w->paused_at) /* long enough for every wait to have passed if it were not paused */
        history_later(&next, w->paused_at + HISTORY_PAUSE_MS, n->now);
    if (!w->paused_at)
        history_later(&next, w->not_before, n->now);
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        if (!w->paused_at)
            history_later(&next, s->wait_until, n->now);
        if (!w->paused_at && s->phase == PHASE_IDLE) /* from then on a round is the last */
            history_later(&next, s->repeat_until, n->now);
        if (!w->paused_at && !w->back && s->phase == PHASE_IDLE)
            history_later(&next, s->signal_by, n->now);
        if (history.graph.steps[i].approve.escalate_ms && s->begun_at && s->phase == PHASE_IDLE)
            history_later(&next, s->begun_at + GRAPH_ESCALATE_MS, n->now);
        if (w->back && world_doubt_until(s))
            history_later(&next, world_doubt_until(s) + CLOCK_MARGIN_MS, n->now);
        for (int d = 0; d < 2; d++)
            for (uint32_t k = 0; k < s->count[d]; k++)
                if (s->attempts[d][k].end == CALL_OPEN) {
                    history_later(&next, s->attempts[d][k].complete_by, n->now);
                    history_later(&next,
                                  world_silent_at(w, i, (enum direction)d, &s->attempts[d][k]),
                                  n->now);
                }
    }
    if (!w->due[w->back] && !w->paused_at)
        history_later(&next, w->deadline[w->back], n->now);
    return next;
}
