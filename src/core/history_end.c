/* Checks that a task ends from any state, if its agents only succeed from then on, or are silent
 * once: history_check_end() of history_check.h. Part of the tests. */
#include "core/history_check.h"

static bool is_active(const struct task *t)
{
    return t->state != TASK_PROCESSED && t->state != TASK_COMPENSATED && t->state != TASK_ERROR;
}

/* What children are told by the event is on its way to them. */
static bool happens(struct node *n, struct event ev)
{
    struct effects fx = {0};
    struct child before[WORLD_STEPS];

    for (uint16_t i = 0; i < n->t.step_count; i++)
        before[i] = n->steps[i].child;
    if (decide(&history.graph.w, &n->t, &ev, n->now, &fx) != ANSWER_ACCEPTED)
        return false;
    for (uint16_t i = 0; i < n->t.step_count; i++)
        kid_is_told(&n->world.steps[i].kid, &before[i], &n->steps[i].child);
    return true;
}

struct event history_event_at(enum event_kind kind, int step, const struct step *s)
{
    return (struct event){.kind = kind,
                          .step = step,
                          .direction = s->direction,
                          .attempt = s->attempt,
                          .instance = SLICE("n/1"),
                          .error = {SLICE("code"), SLICE("words")}};
}

/* What it waits for comes, if it is not there already. */
static bool signal_goes_on(struct node *n, uint16_t i)
{
    struct event ev = history_event_at(EVENT_TAKE, i, &n->steps[i]);
    const struct signal_spec *spec = &history.graph.steps[i].signal;

    ev.output.json = SLICE("1");
    for (uint16_t k = 0; k < n->t.signal_count; k++) {
        ev.signal = history_signal(0, k, false);
        if (happens(n, ev))
            return true;
    }
    ev.kind = EVENT_SIGNAL;
    ev.step = -1;
    ev.signal = history_signal(spec->names[0].ptr[0], n->t.signal_count, false);
    return happens(n, ev);
}

/* One more person agrees, or what was voted is decided. */
static bool vote_goes_on(struct node *n, uint16_t i)
{
    struct event ev = history_event_at(EVENT_DECIDED, i, &n->steps[i]);

    ev.output.json = SLICE("1");
    if (happens(n, ev))
        return true;
    ev.kind = EVENT_VOTE;
    ev.ballot = history_ballot(task_find_vote(&n->t, i, SLICE("A")) ? 'B' : 'A', true, 0);
    return happens(n, ev);
}

static bool wait_goes_on(struct node *n, uint16_t i)
{
    struct event ev = history_event_at(EVENT_BEGIN, i, &n->steps[i]);

    ev.until = GRAPH_MOMENT;
    ev.input.json = SLICE("1");
    if (step_has_begun(&n->steps[i]))
        ev.kind = EVENT_DUE;
    return happens(n, ev);
}

/* ---- children ---- */

/* The child of the step is like that from now on, and tells it. */
static void kid_becomes(struct node *n, uint16_t i, const struct world_kid *next)
{
    enum child_state before = kid_tells(&n->world.steps[i].kid);
    struct event ev = history_event_at(EVENT_CHILD, i, &n->steps[i]);

    n->world.steps[i].kid = *next;
    ev.attempt = next->number;
    ev.child = kid_tells(next);
    ev.output.json = ev.child == CHILD_PROCESSED ? SLICE("1") : SLICE_NONE;
    if (ev.child != before)
        (void)happens(n, ev);
}

/* It hears what it was told, or gets on. */
static bool kid_goes_on(struct node *n, uint16_t i)
{
    const struct world_kid k = n->world.steps[i].kid;
    bool pivot = history.graph.steps[i].undo_kind == UNDO_PIVOT;
    struct world_kid next[KID_MOVES];
    size_t count = kid_hears(&k, pivot, next);

    if (count > 0) {
        kid_becomes(n, i, &next[count - 1]);
        return true;
    }
    if (k.phase != KID_RUNS)
        return false;
    next[0] = k;
    next[0].phase = k.back ? KID_UNDONE : KID_DONE;
    next[0].stands |= pivot && !k.back;
    kid_becomes(n, i, &next[0]);
    return true;
}

/* Operators bring each child that stopped in error to go on; one that was processed and cannot be
 * undone is left. */
static void repair_kids(struct node *n)
{
    for (uint16_t i = 0; i < n->t.step_count; i++) {
        if (history.graph.steps[i].kind != KIND_TASK)
            continue;
        while (n->world.steps[i].kid.coming_count > 0)
            (void)kid_goes_on(n, i);
        struct world_kid next = n->world.steps[i].kid;
        if (kid_repair(&next))
            kid_becomes(n, i, &next);
        else if (next.phase == KID_DONE && n->steps[i].state == STEP_UNDOING
                 && n->steps[i].child.state == CHILD_STUCK)
            CHECK(happens(n, history_event_at(EVENT_SKIP, i, &n->steps[i])), "%s: skip",
                  history_story());
    }
}

static bool is_satisfied(struct node *n, uint16_t i)
{
    struct event ev = history_event_at(EVENT_UNTIL, i, &n->steps[i]);

    ev.holds = true;
    return happens(n, ev);
}

static struct event parents_word(enum child_wish wish)
{
    return (struct event){.kind = EVENT_PARENT, .step = -1, .wish = wish};
}

/* One event of a world in which everything succeeds from now on; or, with `silence`, in which
 * running attempts are never answered and only new ones succeed. */
static bool goes_well(struct node *n, bool silence)
{
    const struct lost_time none = {0};
    struct ready ready[WORLD_STEPS];

    if (happens(n, history_event_at(EVENT_RESUME, -1, &n->steps[0])))
        return true;
    if (happens(n, history_event_at(EVENT_PARENT_RESUME, -1, &n->steps[0])))
        return true;
    if (happens(n, history_event_at(EVENT_CLAIM, -1, &n->steps[0])))
        return true;
    for (int i = 0; i < n->t.step_count; i++) {
        if (step_is_open(&n->steps[i]) && !silence)
            return happens(n, history_event_at(EVENT_RESULT, i, &n->steps[i]));
        int64_t at = signal_overdue_at(&n->t, (uint16_t)i, &none);
        if (at != 0 && at <= n->now && happens(n, history_event_at(EVENT_TIMEOUT, i, &n->steps[i])))
            return true; /* else the task itself is overdue */
        if (step_is_overdue(&n->steps[i], n->now, &none))
            return happens(n, history_event_at(EVENT_TIMEOUT, i, &n->steps[i]));
    }
    if (task_is_overdue(&history.graph.w, &n->t, n->now, &none))
        return happens(n, history_event_at(EVENT_DEADLINE, -1, &n->steps[0]));
    for (uint16_t i = 0; i < n->t.step_count; i++)
        if (history.graph.steps[i].kind == KIND_TASK && kid_goes_on(n, i))
            return true;
    for (uint16_t i = 0; i < n->t.step_count; i++)
        if (!silence && step_awaits_signal(&history.graph.w, &n->t, i, n->now))
            return signal_goes_on(n, i);
        else if (step_awaits_votes(&history.graph.w, &n->t, i, n->now)
                 && (!silence || step_is_voted(&history.graph.w, &n->t, i)))
            return vote_goes_on(n, i);
    size_t count = silence ? 0 : task_ready(&history.graph.w, &n->t, n->now, ready);
    for (size_t k = 0; k < count; k++) {
        if (ready[k].at > n->now)
            continue;
        if (!step_calls(&history.graph.w, &n->t, ready[k].step))
            return wait_goes_on(n, ready[k].step);
        if (step_is_answered(&n->steps[ready[k].step]))
            return is_satisfied(n, ready[k].step);
        struct attempt a = task_next_attempt(&history.graph.w, &n->t, ready[k].step, n->now);
        struct event ev = history_event_at(EVENT_START, ready[k].step, &n->steps[ready[k].step]);
        ev.direction = a.direction;
        ev.attempt = a.number;
        return happens(n, ev);
    }
    return false;
}

/* Moves the clock to the next time at which something can happen. Before the end there is always
 * one. */
static void let_time_pass(struct node *n)
{
    struct ready ready[WORLD_STEPS];
    int64_t next = 0;
    size_t count = task_ready(&history.graph.w, &n->t, n->now, ready);

    for (size_t k = 0; k < count; k++)
        history_later(&next, ready[k].at, n->now);
    history_later(&next, task_wake_at(&n->t), n->now);
    CHECK(next != 0, "%s: nothing can ever happen again", history_story());
    n->now = next;
}

static void run_to_end(struct node *n, bool silence)
{
    int left = 400;

    while (is_active(&n->t)) {
        bool open = false;
        for (int i = 0; i < n->t.step_count; i++)
            open |= step_is_open(&n->steps[i]);
        if (!goes_well(n, silence && open))
            let_time_pass(n);
        silence &= open;
        CHECK(left-- > 0, "%s: does not end", history_story());
    }
}

/* The same for a task with children, which operators may have to bring to an end several times:
 * each time something else stops it. */
static void bring_to_end(struct node *n)
{
    for (int left = 6; n->t.state == TASK_ERROR; left--) {
        CHECK(left > 0, "%s: cannot be brought to an end", history_story());
        (void)happens(n, history_event_at(EVENT_REOPEN, -1, &n->steps[0]));
        (void)happens(n, parents_word(WISH_NONE));
        repair_kids(n);
        if (n->t.state == TASK_ERROR)
            CHECK(happens(n, history_event_at(EVENT_RETRY, -1, &n->steps[0])), "%s: retry",
                  history_story());
        run_to_end(n, false);
    }
    CHECK(task_state_is_end(n->t.state), "%s: has no end", history_story());
}

void history_check_end(const struct node *from)
{
    static struct node n;

    for (int silence = 0; silence < 2; silence++) {
        node_copy(&n, from);
        run_to_end(&n, silence != 0);
        if (history.graph.w.child_step_count > 0 || history.graph.is_child) {
            bring_to_end(&n);
            continue;
        }
        if (n.t.state != TASK_ERROR)
            continue;
        CHECK(happens(&n, history_event_at(EVENT_REOPEN, -1, &n.steps[0])) == n.world.closed,
              "%s: reopen", history_story());
        CHECK(happens(&n, history_event_at(EVENT_RETRY, -1, &n.steps[0])), "%s: retry",
              history_story());
        run_to_end(&n, false);
        if ((slice_is(n.t.error.code, "deadline") || slice_is(n.t.error.code, "no_signal")
             || slice_is(n.t.error.code, "not_approved") || slice_is(n.t.error.code, "rejected"))
            && happens(&n, history_event_at(EVENT_RETRY, -1, &n.steps[0])))
            run_to_end(&n, false); /* a wait that went on may have outlasted the complete-by */
        CHECK(task_state_is_end(n.t.state), "%s: cannot be brought to an end", history_story());
    }
}
