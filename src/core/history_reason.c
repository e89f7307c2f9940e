/* Checks what reason.c says of a state by asking decide() what would happen: see history_reason.h.
 * Part of the tests. */
#include "core/history_reason.h"

#include "core/attempts.h"
#include "core/history_check.h"
#include "core/reason.h"

static bool connected; /* whether agents are connected, with free places */

static void look_at_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){.connected = connected, .free = connected};
}

/* As if no heartbeat had ever been received. */
static void look_at_attempt(void *arg, int step, const struct attempt *a, struct attempt_view *ret)
{
    const struct node *n = arg;
    const struct world_attempt *w = &n->world.steps[step].attempts[a->direction][a->number - 1];

    *ret = (struct attempt_view){.silent_by =
                                     world_silent_at(&n->world, (uint16_t)step, a->direction, w)};
}

/* ---- trying events ---- */

static struct node image; /* the copy on which an event is tried */

static enum answer happens_at(const struct node *n, const struct event *ev, int64_t now)
{
    struct effects fx = {0};

    node_copy(&image, n);
    image.now = now;
    return decide(&history.graph.w, &image.t, ev, now, &fx);
}

/* Whether the step could run from that time on if a scheduler claims the task. */
static bool starts_at(const struct node *n, uint16_t i, int64_t now)
{
    const struct event claim = {.kind = EVENT_CLAIM, .step = -1, .instance = SLICE("n/1")};
    struct event ev = history_event_at(EVENT_START, i, &n->steps[i]);
    struct effects fx = {0};

    if (step_needs_room(&n->steps[i]) || world_is_early(&n->world, now))
        return false;
    if (happens_at(n, &claim, now) == ANSWER_REFUSED)
        return false;
    const struct attempt a = task_next_attempt(&history.graph.w, &image.t, i, now);
    ev.direction = a.direction;
    ev.attempt = a.number;
    return decide(&history.graph.w, &image.t, &ev, now, &fx) == ANSWER_ACCEPTED;
}

static bool times_out_at(const struct node *n, uint16_t i, int64_t now)
{
    const struct attempt *a = step_open_attempt(&n->steps[i]);
    struct event ev = history_event_at(EVENT_TIMEOUT, i, &n->steps[i]);

    ev.direction = a->direction;
    ev.attempt = a->number;
    return happens_at(n, &ev, now) == ANSWER_ACCEPTED;
}

static bool is_silent_at(const struct node *n, uint16_t i, int64_t now)
{
    const struct attempt *a = step_open_attempt(&n->steps[i]);
    struct event ev = history_event_at(EVENT_SILENCE, i, &n->steps[i]);

    ev.direction = a->direction;
    ev.attempt = a->number;
    return happens_at(n, &ev, now) == ANSWER_ACCEPTED;
}

static bool falls_due_at(const struct node *n, int64_t now)
{
    const struct event ev = history_event_at(EVENT_DEADLINE, -1, &n->steps[0]);

    return happens_at(n, &ev, now) == ANSWER_ACCEPTED;
}

/* ---- checks of reasons ---- */

#define SO(cond, r) \
    CHECK(cond, "%s: %s, step %d", history_story(), reason_word((r)->kind), (r)->step)

static const struct reason *reason_of(const struct reasons *all, enum reason_kind kind, int step)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].kind == kind && all->list[i].step == step)
            return &all->list[i];
    return NULL;
}

/* `image` is the state that resulted. */
static void check_next(const struct node *n, const struct reason *r)
{
    bool back = image.t.direction == DIRECTION_UNDO;

    switch (r->next) {
    case NEXT_NONE:
        return;
    case NEXT_TRY:
        SO(r->step >= 0 && image.steps[r->step].state != STEP_FAILED, r);
        SO(image.t.state != TASK_ERROR, r);
        return;
    case NEXT_UNDO:
        SO(back || image.t.stop == STOP_UNDO, r);
        return;
    case NEXT_ERROR: /* at once, or when everything that runs has ended */
        SO(back == (n->t.direction == DIRECTION_UNDO), r);
        SO(image.t.state == TASK_ERROR || image.t.stop != STOP_NONE
               || (back && image.steps[r->step].state == STEP_FAILED),
           r);
        return;
    case NEXT_ON: /* in on_undo another failed step may keep the task from ending */
        SO(back ? step_next_direction(&history.graph.w, &n->t, (uint16_t)r->step)
                      == DIRECTION_FORWARD
                : image.t.stop == n->t.stop && image.t.state != TASK_ERROR,
           r);
        return;
    }
    UNREACHABLE();
}

static void check_open(const struct node *n, const struct reason *r)
{
    uint16_t i = (uint16_t)r->step;

    SO(step_open_attempt(&n->steps[i]), r);
    if (r->kind == REASON_OVERDUE) {
        SO(r->until == 0 && times_out_at(n, i, n->now), r);
    } else if (r->complete_by) {
        int64_t at =
            max_i64(world_silent_at(&n->world, i, n->steps[i].direction,
                                    &n->world.steps[i]
                                         .attempts[n->steps[i].direction][n->steps[i].attempt - 1]),
                    n->now + 1);
        SO(r->until == at && times_out_at(n, i, r->complete_by), r);
        SO(!times_out_at(n, i, r->until), r);
        SO(is_silent_at(n, i, r->until), r);
    } else {
        SO(r->until > n->now && !times_out_at(n, i, r->until - 1), r);
        SO(times_out_at(n, i, r->until), r);
    }
    check_next(n, r);
}

static void check_sleeping(const struct node *n, const struct reason *r)
{
    uint16_t i = (uint16_t)r->step;

    SO(r->until > n->now && !starts_at(n, i, r->until - 1), r);
    SO(starts_at(n, i, r->until) != r->capped, r);
}

static bool wait_goes_on_at(const struct node *n, const struct reason *r, int64_t now)
{
    struct event ev = history_event_at(EVENT_DUE, r->step, &n->steps[r->step]);

    if (!step_has_begun(&n->steps[r->step]))
        ev.kind = EVENT_BEGIN;
    ev.until = GRAPH_MOMENT;
    ev.input.json = SLICE("1");
    return !world_is_early(&n->world, now) && happens_at(n, &ev, now) == ANSWER_ACCEPTED;
}

static void check_wait(const struct node *n, const struct reason *r)
{
    SO(r->until == 0 || (r->until > n->now && !wait_goes_on_at(n, r, r->until - 1)), r);
    SO(wait_goes_on_at(n, r, r->until ? r->until : n->now) != r->capped, r);
}

/* The last answer is judged at once, and the next round begins at its time. */
static void check_round(const struct node *n, const struct reason *r)
{
    struct event ev = history_event_at(EVENT_UNTIL, r->step, &n->steps[r->step]);

    SO(r->count == n->world.steps[r->step].round, r);
    if (r->until != 0)
        check_sleeping(n, r);
    else
        SO(happens_at(n, &ev, n->now) == ANSWER_ACCEPTED, r);
}

/* A signal that comes is taken, or a vote counts, and what follows if none does. */
static void check_signal(const struct node *n, const struct reason *r)
{
    struct event ev = history_event_at(EVENT_TIMEOUT, r->step, &n->steps[r->step]);
    bool over = r->until != 0 && happens_at(n, &ev, r->until) == ANSWER_ACCEPTED;

    if (!step_has_begun(&n->steps[r->step])) {
        SO(r->until == 0 && wait_goes_on_at(n, r, n->now), r);
        return;
    }
    SO(world_awaits(&n->world, (uint16_t)r->step, n->now), r);
    SO(r->until == 0 || over != r->capped, r);
    if (!r->capped && r->until != 0)
        check_next(n, r);
    SO(r->until == 0 || happens_at(n, &ev, r->until - 1) != ANSWER_ACCEPTED, r);
}

/* The child's end, or what it told last, is what the step waits for; and its complete-by counts. */
static void check_child(const struct node *n, const struct reason *r)
{
    const struct world_step *s = &n->world.steps[r->step];
    struct event late = history_event_at(EVENT_TIMEOUT, r->step, &n->steps[r->step]);
    bool waits = s->said != CHILD_NONE && s->said != CHILD_COMPENSATED;

    SO(world_kid_stopped(s) == (r->kind == REASON_CHILD_STOPPED), r);
    SO(waits || (s->begun_at == 0 && wait_goes_on_at(n, r, n->now)), r);
    SO(r->count == s->kid.number, r);
    SO(r->until == 0 || happens_at(n, &late, r->until - 1) != ANSWER_ACCEPTED, r);
    SO(r->until == 0 || happens_at(n, &late, r->until) == ANSWER_ACCEPTED
           || falls_due_at(n, r->until),
       r);
}

static void check_deadline(const struct node *n, const struct reason *r)
{
    if (r->kind == REASON_DEADLINE_DUE) {
        SO(falls_due_at(n, n->now), r);
    } else {
        SO(r->until > n->now && !falls_due_at(n, r->until - 1), r);
        SO(falls_due_at(n, r->until), r);
    }
    check_next(n, r);
}

/* When all running attempts succeed, the task has stopped. */
static void check_holding(const struct node *n, const struct reason *r)
{
    static struct node done;
    struct effects fx = {0};

    node_copy(&done, n);
    for (uint16_t i = 0; i < n->t.step_count; i++) {
        const struct attempt *a = step_open_attempt(&done.steps[i]);
        struct event ev = history_event_at(EVENT_RESULT, i, &done.steps[i]);
        if (!a)
            continue;
        ev.direction = a->direction;
        ev.attempt = a->number;
        ev.output.json = SLICE("1");
        SO(decide(&history.graph.w, &done.t, &ev, done.now, &fx) == ANSWER_ACCEPTED, r);
    }
    SO(done.t.state == TASK_ERROR
           || (n->t.direction == DIRECTION_UNDO && done.t.state == TASK_COMPENSATED),
       r);
}

static void check_stopped(const struct node *n, const struct reason *r)
{
    const struct event retry = history_event_at(EVENT_RETRY, r->step, &n->steps[0]);

    SO(n->t.state == TASK_ERROR && r->until == 0, r);
    SO(n->world.closed || r->step < 0 || r->kind == REASON_PIVOT_UNCLEAR
           || happens_at(n, &retry, n->now) == ANSWER_ACCEPTED,
       r);
}

static void check_reason(const struct node *n, const struct reasons *all, const struct reason *r)
{
    uint16_t others[1];

    SO(r->since >= 0 && r->since <= n->now, r);
    switch (r->kind) {
    case REASON_PROCESSED:
    case REASON_COMPENSATED:
        SO(task_state_is_end(n->t.state) && all->count == 1, r);
        return;
    case REASON_CLOSED:
        SO(n->world.closed && r->since == n->t.closed_at, r);
        return;
    case REASON_PAUSED:
        SO(n->world.paused_at != 0 && r->since == n->world.paused_at && r->until == 0, r);
        return;
    case REASON_UNDO_FAILED:
        SO(step_undo_is_stuck(&n->steps[r->step]), r);
        if (n->t.state != TASK_ERROR)
            return;
        check_stopped(n, r);
        return;
    case REASON_FAILED:
        if (n->t.state != TASK_ERROR) { /* other steps of on_undo continue meanwhile */
            SO(n->t.direction == DIRECTION_UNDO && history.graph.steps[r->step].on_undo, r);
            return;
        }
        check_stopped(n, r);
        return;
    case REASON_PIVOT_UNCLEAR:
    case REASON_DEADLINE:
    case REASON_STOPPED:
        check_stopped(n, r);
        return;
    case REASON_ITEMS:
        SO(false, r); /* see history_items_test.c */
        return;
    case REASON_OVERDUE:
    case REASON_STOPPING:
    case REASON_UNDOING:
    case REASON_RUNNING:
        check_open(n, r);
        return;
    case REASON_IN_DOUBT:
    case REASON_DEFERRED:
    case REASON_BETWEEN:
        check_sleeping(n, r);
        return;
    case REASON_WAIT:
        check_wait(n, r);
        return;
    case REASON_ROUND:
        check_round(n, r);
        return;
    case REASON_SIGNAL:
    case REASON_APPROVAL:
        check_signal(n, r);
        return;
    case REASON_CHILD:
    case REASON_CHILD_STOPPED:
        check_child(n, r);
        return;
    case REASON_DEADLINE_DUE:
    case REASON_COMPLETE_BY:
        check_deadline(n, r);
        return;
    case REASON_HOLDING:
        check_holding(n, r);
        return;
    case REASON_PIVOT_HOLDS:
        SO(n->t.direction == DIRECTION_FORWARD && n->t.stop == STOP_UNDO, r);
        return;
    case REASON_STARTING:
        return; /* checked by check_steps */
    case REASON_UNDO_AFTER:
    case REASON_AFTER:
        SO(reason_waits_for(&history.graph.w, &n->t, all, (uint16_t)r->step, others, 1) > 0, r);
        return;
    case REASON_NOT_BEFORE:
        SO(n->world.not_before > n->now && r->until == n->world.not_before, r);
        SO(n->world.paused_at == 0 && n->t.direction == DIRECTION_FORWARD, r);
        return;
    case REASON_LATE:
        SO(!falls_due_at(n, n->now), r);
        return;
    case REASON_STORE:
    case REASON_DRAINING:
    case REASON_OWNER_GONE:
    case REASON_TAKING_OVER:
    case REASON_ELSEWHERE:
    case REASON_FULL:
    case REASON_NO_AGENT:
    case REASON_AGENT_AWAY:
    case REASON_BREAKER:
    case REASON_TRIALS:
    case REASON_LIMIT:
    case REASON_HEALTH:
    case REASON_NO_PLACE:
    case REASON_QUEUED:
    case REASON_GRACE:
    case REASON_LOCK:
    case REASON_MORE:
    case REASON_KINDS:
        break;
    }
    CHECK(false, "%s: %s, of which nothing can be known", history_story(), reason_word(r->kind));
}

static void check_steps(const struct node *n, const struct reasons *all)
{
    for (uint16_t i = 0; i < n->t.step_count; i++) {
        size_t told = 0;
        for (size_t k = 0; k < all->count; k++)
            told += all->list[k].step == i && all->list[k].kind != REASON_HOLDING
                    && all->list[k].kind != REASON_PIVOT_HOLDS;
        CHECK(told <= 1, "%s: step %u has %zu reasons", history_story(), i, told);
        CHECK(starts_at(n, i, n->now) == (reason_of(all, REASON_STARTING, i) != NULL),
              "%s: step %u starts, or does not", history_story(), i);
    }
}

static void check_operator(const struct node *n)
{
    static const struct {
        enum event_kind verb;
        bool of_step;
    } verbs[] = {
        {EVENT_RETRY, false},  {EVENT_SKIP, true},       {EVENT_UNDO, false},
        {EVENT_PAUSE, false},  {EVENT_RESUME, false},    {EVENT_CORRECT, false},
        {EVENT_SUPPLY, true},  {EVENT_RETRY_FROM, true}, {EVENT_CLOSE, false},
        {EVENT_REOPEN, false}, {EVENT_RESOLVE, true},
    };

    for (size_t v = 0; v < COUNT_OF(verbs); v++)
        for (int i = verbs[v].of_step ? 0 : -1; i < n->t.step_count; i++) {
            struct event ev = history_event_at(verbs[v].verb, i, &n->steps[i < 0 ? 0 : i]);
            ev.input.json = SLICE("3"); /* a new input */
            bool taken = happens_at(n, &ev, n->now) == ANSWER_ACCEPTED;
            CHECK(operator_may(&history.graph.w, &n->t, verbs[v].verb, i, n->now) == taken,
                  "%s: verb %zu on step %d", history_story(), v, i);
        }
}

/* Without agents the reasons are the same, except that nothing starts. */
static void check_absence(const struct node *n, struct facts *facts, const struct reasons *all)
{
    static struct reasons alone;

    connected = false;
    reasons_find(&history.graph.w, &n->t, facts, &alone);
    CHECK(alone.count == all->count, "%s", history_story());
    for (size_t k = 0; k < all->count; k++) {
        const struct reason *r = &all->list[k];
        enum reason_kind kind = r->kind == REASON_STARTING ? REASON_NO_AGENT : r->kind;
        CHECK(reason_of(&alone, kind, r->step), "%s: no %s", history_story(), reason_word(kind));
    }
}

void history_check_reasons(const struct node *n)
{
    static struct reasons all;
    struct facts facts = {.now = n->now,
                          .owner = n->t.locked_by.ptr ? OWNER_US : OWNER_NONE,
                          .live = n->t.locked_by.ptr != NULL,
                          .agent = look_at_agent,
                          .attempt = look_at_attempt,
                          .arg = (void *)(uintptr_t)n};

    check_operator(n);
    connected = true;
    reasons_find(&history.graph.w, &n->t, &facts, &all);
    CHECK(all.count > 0, "%s: no reason", history_story());
    for (size_t k = 0; k < all.count; k++) {
        CHECK(k == 0 || all.list[k - 1].kind <= all.list[k].kind, "%s", history_story());
        check_reason(n, &all, &all.list[k]);
    }
    check_steps(n, &all);
    check_absence(n, &facts, &all);
}
