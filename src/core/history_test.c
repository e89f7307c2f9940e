#include "core/history_node.h"

#include <stdlib.h>

/*
 * Every history of some small workflows: from a new task on, every event that could happen in each
 * state, until no new state is found. After each event the core is compared with the world
 * (history_world.h) and held against the invariants of the design; from each state reached, the
 * task must find an end if only its agents succeed from now on.
 *
 * What may happen without end (late results, requests that were not sent, releases, the operator's
 * commands) happens as often as the budget of a case says.
 */

static struct graph graph;
static struct seen seen;

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

/* ---- the story so far, told when a check fails ---- */

static const char *what;
static struct deed {
    struct event ev;
    int64_t wait; /* or this time passed */
} path[100];
static int depth;

static size_t tell_deed(char *to, size_t size, const struct deed *d)
{
    static const char *const kinds[] = {"start",    "notsent", "result", "timeout",
                                        "deadline", "cond",    "bad",    "claim",
                                        "release",  "retry",   "skip",   "undo"};
    const struct event *ev = &d->ev;
    const char *kind = kinds[ev->kind];

    if (d->wait != 0)
        return (size_t)snprintf(to, size, " wait %dms,", (int)d->wait);
    if (ev->kind == EVENT_RESULT && !ev->failed)
        kind = "ok";
    else if (ev->kind == EVENT_RESULT && ev->retryable)
        kind = ev->effect == EFFECT_NONE ? "again" : "lost";
    else if (ev->kind == EVENT_RESULT)
        kind = ev->effect == EFFECT_NONE ? "fail" : "doubt";
    if (ev->step < 0)
        return (size_t)snprintf(to, size, " %s,", kind);
    return (size_t)snprintf(to, size, " %s %c %c%u,", kind, 'a' + ev->step,
                            ev->direction == DIRECTION_UNDO ? 'u' : 'f', ev->attempt);
}

/* In the language of kit_play(). */
static const char *story(void)
{
    static char text[4000];
    size_t at = (size_t)snprintf(text, sizeof text, "%s:", what);

    for (int i = 0; i < depth; i++)
        at += tell_deed(text + at, sizeof text - at, &path[i]);
    return text;
}

static void tell(void)
{
    fprintf(stderr, "%s\n", story());
}

static void path_push(struct deed d)
{
    CHECK(depth < (int)COUNT_OF(path), "%s too deep", story());
    path[depth++] = d;
}

/* ---- what must hold of every event ---- */

static bool task_edge_seen[6][6];
static bool step_edge_seen[7][7];

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
    CHECK(task_path_exists(was->t.state, is->t.state), "%s", story());
    task_edge_seen[was->t.state][is->t.state] = true;
    for (uint16_t i = 0; i < is->t.step_count; i++) {
        enum step_state from = was->steps[i].state;
        enum step_state to = is->steps[i].state;
        CHECK(from == to || step_state_can(from, to), "%s", story());
        CHECK(from == to || ev->step == i || ev->kind == EVENT_RETRY, "%s step %u", story(), i);
        step_edge_seen[from][to] = true;
    }
}

/* Invariant 4, and when a step may start besides. */
static void check_start(const struct node *was, const struct event *ev)
{
    const struct world *w = &was->world;

    CHECK(world_startable(w, (uint16_t)ev->step, was->now), "%s: out of order", story());
    bool pivot = graph.steps[ev->step].undo_kind == UNDO_PIVOT;
    bool resolves = pivot && !world_pivot_clear(&w->steps[ev->step]);
    CHECK(was->t.stop == STOP_NONE || (was->t.stop == STOP_UNDO && resolves),
          "%s: started, although the task is to stop", story());
    if (w->back || w->resumed)
        return;
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].phase == PHASE_GAVE_UP && !world_ended(w, i))
            CHECK(resolves, "%s: step %u stands failed", story(), i);
}

static bool pivots_clear(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (graph.steps[i].undo_kind == UNDO_PIVOT && !world_pivot_clear(&w->steps[i]))
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

/* Invariant 5, and what an end means otherwise. */
static void check_end(const struct node *is)
{
    const struct world *w = &is->world;

    CHECK(!anything_open(w), "%s: something still runs", story());
    CHECK(is->t.ended_at > 0 && !is->t.locked_by.ptr && is->t.stop == STOP_NONE, "%s", story());
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        bool effect = world_effect(s) || world_doubt(s);
        bool undone = s->back && s->phase == PHASE_DONE;
        if (is->t.state == TASK_PROCESSED)
            CHECK(world_ended(w, i), "%s: step %u did not end", story(), i);
        else if (graph.steps[i].undo_kind == UNDO_CALL)
            CHECK(undone || (!effect && !s->back), "%s: step %u was not undone", story(), i);
        else if (graph.steps[i].undo_kind == UNDO_PIVOT)
            CHECK(!effect, "%s: step %u is a pivot", story(), i);
    }
    CHECK(is->t.direction == (is->t.state == TASK_PROCESSED ? DIRECTION_FORWARD : DIRECTION_UNDO),
          "%s", story());
}

static void check_stop_in_error(const struct node *is)
{
    const struct world *w = &is->world;

    CHECK(!anything_open(w), "%s: something still runs", story());
    CHECK(is->t.error.code.ptr && is->t.ended_at > 0 && !is->t.locked_by.ptr, "%s", story());
    if (w->back || w->resumed)
        return;
    bool due = w->due[0] && graph.w.on_failure == ON_FAILURE_HOLD;
    CHECK(due || w->wish == STOP_HOLD || !pivots_clear(w), "%s: nothing stops it", story());
}

static void check_turn(const struct node *was, const struct node *is, const struct effects *fx)
{
    const struct world *w = &is->world;

    CHECK(pivots_clear(w), "%s: a pivot stands in the way", story());
    CHECK(w->asked || w->due[0] || w->wish == STOP_UNDO, "%s: nobody wants it undone", story());
    CHECK(fx->stop_running == anything_open(w), "%s: stop", story());
    CHECK(was->t.direction == DIRECTION_FORWARD, "%s", story());
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void check_wake(const struct node *is)
{
    const struct world *w = &is->world;
    int64_t at = w->due[w->back] ? 0 : w->deadline[w->back];

    for (uint16_t i = 0; i < w->step_count; i++)
        for (int d = 0; d < 2; d++)
            for (uint32_t n = 0; n < w->steps[i].count[d]; n++)
                if (w->steps[i].attempts[d][n].fate == FATE_OPEN)
                    at = earlier(at, w->steps[i].attempts[d][n].complete_by);
    CHECK(task_wake_at(&is->t) == (is_active(&is->t) ? at : 0), "%s: wake", story());
}

/* An agent's answer that no longer counts changes no step, and the task only by ending a doubt. */
static void check_late(const struct node *was, const struct node *is)
{
    for (uint16_t i = 0; i < is->t.step_count; i++) {
        const struct step *a = &was->steps[i];
        const struct step *b = &is->steps[i];
        CHECK(a->state == b->state && a->attempt == b->attempt && a->direction == b->direction
                  && a->failure_count == b->failure_count && a->wait_until == b->wait_until
                  && slice_eq(a->output.json, b->output.json)
                  && slice_eq(a->error.code, b->error.code),
              "%s: step %u changed", story(), i);
    }
    if (was->t.state != is->t.state)
        CHECK(is_active(&was->t)
                  && (is->t.direction == DIRECTION_UNDO || is->t.state == TASK_ERROR),
              "%s: a late result moved the task", story());
}

static void check_change(const struct node *was, const struct node *is, const struct event *ev,
                         const struct effects *fx)
{
    bool ended = task_state_is_end(is->t.state);
    bool erred = is->t.state == TASK_ERROR && was->t.state != TASK_ERROR;

    check_edges(was, is, ev);
    CHECK(!task_state_is_end(was->t.state) || was->t.state == is->t.state, "%s", story());
    CHECK(was->t.direction == is->t.direction || was->t.direction == DIRECTION_FORWARD, "%s",
          story());
    if (was->t.direction != is->t.direction)
        check_turn(was, is, fx);
    if (ended)
        check_end(is);
    CHECK(fx->ended == (ended && !task_state_is_end(was->t.state)), "%s: ended", story());
    if (erred)
        check_stop_in_error(is);
    CHECK(!erred || fx->alert, "%s: nobody is told", story());
    CHECK(!fx->alert || is->t.error.code.ptr, "%s: an alert without a reason", story());
    if (!is->world.back && is_active(&is->t) && !is->world.resumed && any_stands_failed(&is->world))
        CHECK(is->t.stop != STOP_NONE, "%s: a failure was overlooked", story());
    check_wake(is);
}

/* ---- one event ---- */

static void spend(uint8_t *left, bool so)
{
    if (so)
        (*left)--;
}

static void remember(struct node *is, const struct node *was, const struct event *ev,
                     enum answer answer)
{
    struct world *w = &is->world;

    world_event(w, ev, was->t.state, is->now);
    enum event_kind kind = ev->kind;
    spend(&is->left.late, answer == ANSWER_LATE);
    spend(&is->left.not_sent, kind == EVENT_NOT_SENT);
    spend(&is->left.releases, kind == EVENT_RELEASE);
    spend(&is->left.bad, kind == EVENT_BAD_INPUT || kind == EVENT_CONDITION);
    spend(&is->left.acts, kind == EVENT_RETRY || kind == EVENT_SKIP || kind == EVENT_UNDO);
    if (was->t.direction != is->t.direction)
        world_turned(w, is->now);
    else if (was->t.state == TASK_ERROR && is->t.state != TASK_ERROR)
        world_resumed(w, is->now);
}

static void check_answer(const struct node *was, const struct event *ev, enum answer answer)
{
    const struct task *t = &was->t;
    bool foreseen =
        ev->kind == EVENT_RESULT || ev->kind == EVENT_TIMEOUT || ev->kind == EVENT_NOT_SENT;

    if (foreseen)
        CHECK(answer == world_answer(&was->world, ev, was->now), "%s: was %s", story(),
              kit_answer_text(answer));
    if (ev->kind == EVENT_CLAIM)
        CHECK((answer == ANSWER_ACCEPTED) == (is_active(t) && !t->locked_by.ptr), "%s", story());
    if (ev->kind == EVENT_RELEASE)
        CHECK((answer == ANSWER_ACCEPTED) == (t->locked_by.ptr && !anything_open(&was->world)),
              "%s", story());
    if (ev->kind == EVENT_DEADLINE) {
        int64_t at = was->world.deadline[was->world.back];
        bool due = at != 0 && at <= was->now && !was->world.due[was->world.back];
        CHECK((answer == ANSWER_ACCEPTED) == (due && is_active(t)), "%s: was %s", story(),
              kit_answer_text(answer));
    }
    if (answer != ANSWER_ACCEPTED)
        return;
    if (ev->kind == EVENT_START || ev->kind == EVENT_CONDITION || ev->kind == EVENT_BAD_INPUT)
        check_start(was, ev);
    if (ev->kind == EVENT_SKIP)
        CHECK(!world_open(&was->world.steps[ev->step]), "%s: it runs", story());
    CHECK(ev->kind == EVENT_RESULT || !task_state_is_end(t->state), "%s: after the end", story());
}

/* A step that is next by order and time, in a task that wants it, can be started. */
static bool must_start(const struct node *was, const struct event *ev)
{
    const struct world *w = &was->world;
    int64_t at = w->due[w->back] ? 0 : w->deadline[w->back];
    bool owned = was->t.state == TASK_PROCESSING || was->t.state == TASK_COMPENSATING;

    return owned && was->t.stop == STOP_NONE && world_startable(w, (uint16_t)ev->step, was->now)
           && (at == 0 || was->now < at) && (ev->direction == DIRECTION_UNDO) == w->back
           && ev->attempt == w->steps[ev->step].count[w->back] + 1;
}

static unsigned long events;

/* Makes the event happen in *is, a fresh copy of *was. Has anything changed? */
static bool try_event(const struct node *was, struct node *is, const struct event *ev)
{
    static struct node image; /* of *is before */
    struct effects fx = {0};

    events++;
    path_push((struct deed){.ev = *ev});
    memcpy(&image, is, sizeof image);
    enum answer answer = decide(&graph.w, &is->t, ev, is->now, &fx);
    check_answer(was, ev, answer);
    if (ev->kind == EVENT_START)
        CHECK(answer == ANSWER_ACCEPTED || !must_start(was, ev), "%s: cannot be started", story());
    if (!fx.changed) {
        CHECK(answer != ANSWER_ACCEPTED, "%s: accepted, but not changed", story());
        CHECK(memcmp(&image, is, sizeof image) == 0, "%s: refused, but changed", story());
        CHECK(!fx.alert && !fx.ended && !fx.stop_running, "%s: refused with effects", story());
        return false;
    }
    CHECK(answer == ANSWER_ACCEPTED || answer == ANSWER_LATE, "%s: changed", story());
    CHECK(memcmp(&image, is, sizeof image) != 0, "%s: accepted, but the same", story());
    CHECK(task_valid(&graph.w, &is->t), "%s: not valid", story());
    remember(is, was, ev, answer);
    world_check(&is->world, &is->t, is->now, story);
    check_change(was, is, ev, &fx);
    if (answer == ANSWER_LATE)
        check_late(was, is);
    return true;
}

/* ---- what time it can be next ---- */

static void later_only(int64_t *next, int64_t at, int64_t now)
{
    if (at > now && (*next == 0 || at < *next))
        *next = at;
}

static int64_t next_time(const struct node *n)
{
    const struct world *w = &n->world;
    int64_t next = 0;

    if (!is_active(&n->t))
        return 0;
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        later_only(&next, s->wait_until, n->now);
        if (w->back && world_doubt_until(s))
            later_only(&next, world_doubt_until(s) + CLOCK_MARGIN_MS, n->now);
        for (int d = 0; d < 2; d++)
            for (uint32_t k = 0; k < s->count[d]; k++)
                if (s->attempts[d][k].fate == FATE_OPEN)
                    later_only(&next, s->attempts[d][k].complete_by, n->now);
    }
    if (!w->due[w->back])
        later_only(&next, w->deadline[w->back], n->now);
    return next;
}

/* ---- every task finds an end ---- */

static bool happens(struct node *n, struct event ev)
{
    struct effects fx = {0};

    return decide(&graph.w, &n->t, &ev, n->now, &fx) == ANSWER_ACCEPTED;
}

static struct event event_at(enum event_kind kind, int step, const struct step *s)
{
    return (struct event){.kind = kind,
                          .step = step,
                          .direction = s->direction,
                          .attempt = s->attempt,
                          .instance = SLICE("n/1"),
                          .error = {SLICE("code"), SLICE("words")}};
}

/* One event of a world in which all goes well from now on; or in which what runs is never heard of
 * again (`silence`), and only what starts anew succeeds. */
static bool goes_well(struct node *n, bool silence)
{
    const struct lost_time none = {0};
    struct ready ready[WORLD_STEPS];

    if (happens(n, event_at(EVENT_CLAIM, -1, &n->steps[0])))
        return true;
    for (int i = 0; i < n->t.step_count; i++) {
        if (step_is_open(&n->steps[i]) && !silence)
            return happens(n, event_at(EVENT_RESULT, i, &n->steps[i]));
        if (step_is_overdue(&n->steps[i], n->now, &none))
            return happens(n, event_at(EVENT_TIMEOUT, i, &n->steps[i]));
    }
    if (task_is_overdue(&n->t, n->now, &none))
        return happens(n, event_at(EVENT_DEADLINE, -1, &n->steps[0]));
    size_t count = silence ? 0 : task_ready(&graph.w, &n->t, n->now, ready);
    for (size_t k = 0; k < count; k++) {
        if (ready[k].at > n->now)
            continue;
        struct attempt a = task_next_attempt(&graph.w, &n->t, ready[k].step, n->now);
        struct event ev = event_at(EVENT_START, ready[k].step, &n->steps[ready[k].step]);
        ev.direction = a.direction;
        ev.attempt = a.number;
        return happens(n, ev);
    }
    return false;
}

/* The clock moves to where something can be done; there is always such a moment before the end. */
static void let_time_pass(struct node *n)
{
    struct ready ready[WORLD_STEPS];
    int64_t next = 0;
    size_t count = task_ready(&graph.w, &n->t, n->now, ready);

    for (size_t k = 0; k < count; k++)
        later_only(&next, ready[k].at, n->now);
    later_only(&next, task_wake_at(&n->t), n->now);
    CHECK(next != 0, "%s: nothing can ever happen again", story());
    n->now = next;
}

static void run_to_end(struct node *n, bool silence)
{
    int left = 100;

    while (is_active(&n->t)) {
        bool open = false;
        for (int i = 0; i < n->t.step_count; i++)
            open |= step_is_open(&n->steps[i]);
        if (!goes_well(n, silence && open))
            let_time_pass(n);
        silence &= open;
        CHECK(left-- > 0, "%s: does not end", story());
    }
}

static void check_end_is_found(const struct node *from)
{
    static struct node n;

    for (int silence = 0; silence < 2; silence++) {
        node_copy(&n, from);
        run_to_end(&n, silence != 0);
        if (n.t.state != TASK_ERROR)
            continue;
        CHECK(happens(&n, event_at(EVENT_RETRY, -1, &n.steps[0])), "%s: retry", story());
        run_to_end(&n, false);
        CHECK(task_state_is_end(n.t.state), "%s: cannot be brought to an end", story());
    }
}

/* ---- every event that can happen in a state ---- */

struct trial {
    const struct node *was;
    struct node *is;
};

static void explore(const struct node *n);

static void trial(struct trial *x, const struct event *ev)
{
    if (try_event(x->was, x->is, ev)) {
        explore(x->is);
        node_copy(x->is, x->was);
    }
    depth--;
}

static void try_results(struct trial *x, uint16_t i, struct event ev)
{
    static const struct {
        bool failed, retryable;
        enum effect effect;
    } kinds[] = {
        {false, false, EFFECT_NONE},  {true, false, EFFECT_NONE}, {true, false, EFFECT_UNKNOWN},
        {true, true, EFFECT_UNKNOWN}, {true, true, EFFECT_NONE},
    };
    const struct world_attempt *a = &x->was->world.steps[i].attempts[ev.direction][ev.attempt - 1];

    if (a->fate == FATE_SILENT && x->was->left.late == 0)
        return;
    ev.kind = EVENT_RESULT;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        if (kinds[k].retryable && a->fate != FATE_OPEN)
            continue;
        ev.failed = kinds[k].failed;
        ev.retryable = kinds[k].retryable;
        ev.effect = kinds[k].effect;
        ev.output.json = ev.failed ? SLICE_NONE : SLICE("1");
        trial(x, &ev);
    }
}

static void try_attempts(struct trial *x, uint16_t i)
{
    const struct world_step *s = &x->was->world.steps[i];
    struct event ev = event_at(EVENT_RESULT, i, &x->was->steps[i]);

    for (int d = 0; d < 2; d++)
        for (uint32_t n = 1; n <= s->count[d]; n++) {
            ev.direction = (enum direction)d;
            ev.attempt = n;
            try_results(x, i, ev);
            ev.kind = EVENT_TIMEOUT;
            trial(x, &ev);
            ev.kind = EVENT_NOT_SENT;
            if (x->was->left.not_sent > 0)
                trial(x, &ev);
        }
}

static void try_start(struct trial *x, uint16_t i)
{
    const struct world_step *s = &x->was->world.steps[i];
    struct event ev = event_at(EVENT_START, i, &x->was->steps[i]);

    CHECK(s->count[0] + s->count[1] < WORLD_ATTEMPTS, "%s: no room", story());
    for (int d = 0; d < 2; d++)
        for (uint32_t n = 0; n < 3; n++) { /* its number must be the next one */
            ev.direction = (enum direction)d;
            ev.attempt = s->count[d] + n;
            trial(x, &ev);
        }
}

static void try_step(struct trial *x, uint16_t i)
{
    struct event ev = event_at(EVENT_CONDITION, i, &x->was->steps[i]);

    try_start(x, i);
    try_attempts(x, i);
    if (x->was->left.bad > 0) {
        trial(x, &ev);
        ev.kind = EVENT_BAD_INPUT;
        trial(x, &ev);
    }
    if (x->was->left.acts > 0) {
        ev.kind = EVENT_SKIP;
        trial(x, &ev);
        ev.kind = EVENT_RETRY;
        trial(x, &ev);
    }
}

static void try_task(struct trial *x)
{
    struct event ev = event_at(EVENT_CLAIM, -1, &x->was->steps[0]);

    trial(x, &ev);
    ev.kind = EVENT_DEADLINE;
    trial(x, &ev);
    ev.kind = EVENT_RELEASE;
    if (x->was->left.releases > 0)
        trial(x, &ev);
    if (x->was->left.acts == 0)
        return;
    ev.kind = EVENT_RETRY;
    trial(x, &ev);
    ev.kind = EVENT_UNDO;
    trial(x, &ev);
}

static void explore(const struct node *n)
{
    if (!seen_add(&seen, node_key(n)))
        return;
    check_end_is_found(n);
    static struct node nodes[COUNT_OF(path)]; /* by depth */
    CHECK(depth < (int)COUNT_OF(nodes), "%s: too deep", story());
    struct node *next = &nodes[depth];
    node_copy(next, n);
    struct trial x = {n, next};
    for (uint16_t i = 0; i < n->t.step_count; i++)
        try_step(&x, i);
    try_task(&x);
    next->now = next_time(n);
    if (next->now != 0) {
        path_push((struct deed){.wait = next->now - n->now});
        explore(next);
        depth--;
    }
}

/* Budgets: late results, requests not sent, releases, the operator's acts, bad input or conditions.
 * The second is for a long run, with HISTORY=full in the environment. */
/* clang-format off */
static const struct history_case {
    const char *graph;
    struct budget brief, full;
} cases[] = {
    {"a",                       {1, 1, 0, 2, 1}, {1, 1, 1, 2, 1}},
    {"a2",                      {1, 0, 0, 1, 0}, {1, 1, 0, 1, 0}},
    {"defers=1 a",              {1, 0, 0, 1, 0}, {1, 0, 1, 1, 0}},
    {"by=15s undo=25s a2",      {0, 0, 0, 1, 0}, {1, 0, 0, 1, 0}},
    {"by=15s hold a",           {1, 0, 1, 2, 0}, {1, 1, 1, 2, 0}},
    {"a!",                      {1, 1, 0, 2, 1}, {2, 1, 1, 2, 1}},
    {"a2!",                     {1, 0, 0, 1, 0}, {2, 1, 0, 2, 0}},
    {"a#",                      {1, 0, 1, 2, 1}, {1, 1, 1, 3, 1}},
    {"a?",                      {1, 1, 1, 2, 1}, {2, 1, 1, 2, 1}},
    {"a-",                      {1, 1, 1, 2, 1}, {2, 1, 1, 2, 1}},
    {"a b<a",                   {1, 0, 0, 1, 0}, {1, 1, 1, 1, 0}},
    {"a b<a",                   {0, 0, 0, 2, 1}, {0, 0, 1, 2, 1}},
    {"a2 b<a",                  {0, 0, 0, 1, 1}, {0, 0, 1, 2, 1}},
    {"a b2<a",                  {1, 0, 0, 0, 0}, {1, 0, 0, 1, 0}},
    {"b a<b",                   {0, 1, 1, 0, 1}, {1, 1, 1, 1, 1}},
    {"a! b<a",                  {1, 0, 0, 2, 0}, {1, 1, 1, 2, 1}},
    {"a b!<a",                  {1, 0, 0, 2, 0}, {1, 1, 1, 2, 0}},
    {"a b2!#<a",                {1, 0, 0, 1, 0}, {2, 0, 0, 2, 0}},
    {"a! b",                    {1, 0, 0, 1, 0}, {1, 0, 0, 2, 0}},
    {"a! b2",                   {0, 0, 0, 0, 0}, {1, 0, 0, 1, 0}},
    {"a2! b",                   {1, 0, 0, 0, 0}, {1, 0, 0, 1, 0}},
    {"a! b!",                   {1, 0, 0, 1, 0}, {1, 1, 0, 1, 0}},
    {"a?! b<a",                 {1, 0, 0, 2, 0}, {2, 0, 0, 2, 0}},
    {"a# b<a",                  {0, 0, 0, 2, 0}, {1, 0, 0, 2, 1}},
    {"a# b",                    {0, 0, 0, 0, 0}, {0, 0, 0, 2, 0}},
    {"a# b#",                   {0, 0, 0, 1, 0}, {0, 0, 0, 2, 0}},
    {"a? b<a",                  {1, 0, 0, 1, 0}, {1, 0, 0, 2, 0}},
    {"a- b<a",                  {1, 0, 0, 2, 0}, {1, 0, 0, 2, 1}},
    {"by=15s undo=25s a! b<a",  {0, 0, 0, 1, 0}, {1, 0, 0, 2, 0}},
    {"by=5s a2! b<a",           {0, 0, 0, 1, 0}, {1, 0, 0, 2, 0}},
    {"by=15s hold a b",         {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}},
    {"a b c<ab",                {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}},
    {"a b!<a c<b",              {1, 0, 0, 1, 0}, {1, 0, 1, 2, 0}},
    {"a b-<a c<b",              {1, 0, 0, 1, 0}, {1, 0, 1, 2, 0}},
    {"a b<a c!<a",              {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}},
    {"a b<a c<a d<bc",          {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}},
};
/* clang-format on */

static void every_history_keeps_the_invariants(void **state)
{
    const char *much = getenv("HISTORY");
    bool full = much && strcmp(much, "full") == 0;
    (void)state;
    assert_story = tell;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct node first;
        what = cases[i].graph;
        graph_make(&graph, what);
        node_make(&first, &graph, full ? cases[i].full : cases[i].brief);
        explore(&first);
        if (much)
            fprintf(stderr, "%9zu states, %10lu events: %s\n", seen.len, events, what);
        seen_fini(&seen);
        events = 0;
    }
}

/* So that the tables say no more than what can happen, and nothing was left untried. */
static void every_edge_of_the_tables_was_taken(void **state)
{
    (void)state;
    for (enum task_state from = TASK_PENDING; from <= TASK_ERROR; from++)
        for (enum task_state to = TASK_PENDING; to <= TASK_ERROR; to++)
            CHECK(task_edge_seen[from][to] || !task_state_can(from, to), "%s to %s",
                  task_state_text(from), task_state_text(to));
    for (enum step_state from = STEP_WAITING; from <= STEP_UNDONE; from++)
        for (enum step_state to = STEP_WAITING; to <= STEP_UNDONE; to++)
            CHECK(step_edge_seen[from][to] || !step_state_can(from, to), "%s to %s",
                  step_state_text(from), step_state_text(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_keeps_the_invariants),
        cmocka_unit_test(every_edge_of_the_tables_was_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
