/* Explores every history of small workflows that have a step with for_each: from a new task on,
 * every event in each state, as often as the budget of a case says. Each state is checked against
 * an observer (history_items.h); what is to be started is compared with what the core accepts, and
 * what operators may do with what it lets them. From each state the task must come to an end if an
 * operator helps, whether its agents succeed from now on, or fail. */
#include "core/history_items.h"

#include "core/history_cases.h"
#include "core/history_seen.h"
#include "core/items.h"
#include "core/reason.h"

static struct seen seen;
static struct tale nodes[100]; /* by depth */
static int depth;
static unsigned long events;
static struct history_cases search;
static bool is_slow; /* what comes to rest is stored at any later time */

/* ---- the end that must be possible, whether agents succeed or fail from now on ---- */

static bool act(struct tale *n, enum event_kind kind, int unit)
{
    struct event ev = tale_event_at(n, kind, unit);

    ev.output.json = SLICE("1");
    ev.until = 0;
    return tale_event(n, &ev);
}

/* A stopped task: first all is tried again, then what failed is skipped, and at last the step. */
static bool operator_helps(struct tale *n, int turn)
{
    bool any = false;

    if (turn < 3)
        return act(n, EVENT_RETRY, -1);
    for (int u = task_unit_count(&n->t); u-- > 0;)
        if (n->steps[u].state == STEP_FAILED && n->t.state == TASK_ERROR)
            any |= act(n, EVENT_SKIP, u);
    return any || (n->t.state != TASK_ERROR ? true : act(n, EVENT_RETRY, -1));
}

static bool start_what_is_ready(struct tale *n)
{
    struct ready ready[TALE_UNITS];
    size_t count = task_ready(&tale_graph.w, &n->t, n->now, ready);

    if (count == 0)
        return false;
    n->now = max_i64(n->now, ready[0].at);
    struct event ev = tale_event_at(n, EVENT_START, ready[0].step);
    if (ready[0].step == tale_step) {
        static struct item_list list = {.count = 1};
        ev.kind = EVENT_BEGIN;
        ev.list = &list;
    }
    CHECK(tale_event(n, &ev), "unit %d was ready: %s", ready[0].step, tale_story());
    return true;
}

static bool bring_what_is_wanted(struct tale *n)
{
    struct event ev = {.kind = EVENT_BRING, .step = tale_free_slot(n), .row = tale_row_to_bring(n)};

    if (!n->steps[tale_step].items || items_to_bring(&tale_graph.w, &n->t, tale_step) == 0)
        return false;
    CHECK(ev.step >= 0 && ev.row, "nothing to bring: %s", tale_story());
    CHECK(tale_event(n, &ev), "not brought: %s", tale_story());
    return true;
}

static bool answer_what_is_open(struct tale *n, bool fails)
{
    for (uint16_t u = 0; u < task_unit_count(&n->t); u++) {
        const struct attempt *a = step_open_attempt(&n->steps[u]);
        if (!a)
            continue;
        struct event ev = tale_event_at(n, EVENT_RESULT, u);
        ev.output.json = fails ? SLICE_NONE : SLICE("1");
        ev.failed = fails;
        ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
        CHECK(tale_event(n, &ev), "a result is refused: %s", tale_story());
        return true;
    }
    return false;
}

static bool step_on(struct tale *n, int *turn, bool fails)
{
    if (tale_store(n))
        return true;
    if (n->t.state == TASK_ERROR)
        return operator_helps(n, (*turn)++);
    if (n->t.paused_at != 0)
        return act(n, EVENT_RESUME, -1);
    if (!n->t.locked_by.ptr)
        return act(n, EVENT_CLAIM, -1);
    return answer_what_is_open(n, fails) || bring_what_is_wanted(n) || start_what_is_ready(n);
}

static void check_ends(const struct tale *n, bool fails)
{
    static struct tale to;
    int turn = 0;

    tale_copy(&to, n);
    for (int i = 0; i < 200 && !task_state_is_end(to.t.state); i++)
        CHECK(step_on(&to, &turn, fails), "nothing goes on, in %s: %s", task_state_text(to.t.state),
              tale_story());
    CHECK(task_state_is_end(to.t.state), "it does not end: %s", tale_story());
    tale_check(&to);
}

/* ---- what operators may do ---- */

static void check_verb(const struct tale *n, enum event_kind verb, int unit)
{
    static struct tale to;
    struct event ev = tale_event_at(n, verb, unit);
    struct effects fx = {0};

    ev.output.json = SLICE("1");
    ev.input.json = SLICE("2");
    ev.error.message = SLICE("why");
    bool may = operator_may(&tale_graph.w, &n->t, verb, unit, n->now);
    tale_copy(&to, n);
    enum answer answer = decide(&tale_graph.w, &to.t, &ev, n->now, &fx);
    CHECK(may == (answer == ANSWER_ACCEPTED) || (may && answer == ANSWER_REPEATED)
              || (!may && answer == ANSWER_REPEATED),
          "verb %d of unit %d: may %d, %s: %s", (int)verb, unit, may, kit_answer_text(answer),
          tale_story());
}

/* The same for an item at rest, of which the row is brought for it. */
static void check_verbs_at_rest(const struct tale *n, uint32_t item, const enum event_kind *verbs,
                                size_t count)
{
    static struct tale held;

    if (!n->rows[item].is_there)
        return;
    tale_copy(&held, n);
    int slot = tale_hold(&held, item);
    for (size_t k = 0; slot >= 0 && k < count; k++)
        check_verb(&held, verbs[k], slot);
}

static void check_verbs(const struct tale *n)
{
    static const enum event_kind of_units[] = {EVENT_SKIP,       EVENT_SUPPLY, EVENT_RESOLVE,
                                               EVENT_RETRY_FROM, EVENT_RETRY,  EVENT_CORRECT};
    static const enum event_kind of_task[] = {EVENT_RETRY, EVENT_CORRECT, EVENT_UNDO,
                                              EVENT_PAUSE, EVENT_RESUME,  EVENT_CLOSE};

    for (int u = 0; u < task_unit_count(&n->t); u++)
        for (size_t k = 0; k < COUNT_OF(of_units); k++)
            check_verb(n, of_units[k], u);
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        check_verbs_at_rest(n, i, of_units, COUNT_OF(of_units));
    for (size_t k = 0; k < COUNT_OF(of_task); k++)
        check_verb(n, of_task[k], -1);
}

/* ---- why ---- */

static void see_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){.connected = true, .free = true};
}

/* There is always a reason, a step with items that run has its own, and a task that stopped names
 * what stopped it. */
static void check_reasons(const struct tale *n)
{
    static struct reasons reasons;
    const struct facts facts = {.now = n->now, .owner = OWNER_US, .live = true, .agent = see_agent};
    bool in_error = n->t.state == TASK_ERROR;
    uint32_t of_items = 0;

    reasons_find(&tale_graph.w, &n->t, &facts, &reasons);
    CHECK(reasons.count > 0, "no reason: %s", tale_story());
    for (size_t i = 0; i < reasons.count; i++) {
        const struct reason *r = &reasons.list[i];
        CHECK(r->step < task_unit_count(&n->t), "%s", tale_story());
        CHECK(r->kind != REASON_STOPPED, "stopped for no reason: %s", tale_story());
        CHECK(r->kind != REASON_ITEMS || r->step == tale_step, "%s", tale_story());
        of_items += r->kind == REASON_ITEMS;
        CHECK(!in_error || r->step < n->t.step_count || n->steps[r->step].state == STEP_FAILED,
              "unit %d did not fail: %s", r->step, tale_story());
    }
    CHECK(of_items <= 1, "twice: %s", tale_story());
    CHECK(of_items == 1 || n->items.tally.open == 0, "items run for no reason: %s", tale_story());
}

/* ---- what is to be started ---- */

/* What the list has can be started, and nothing else, but for the number of free slots. */
static void check_ready(const struct tale *n)
{
    static struct tale to;
    struct ready ready[TALE_UNITS];
    bool listed[TALE_UNITS] = {false};
    size_t count = task_ready(&tale_graph.w, &n->t, n->now, ready);
    uint32_t free = 0;

    CHECK(count <= task_unit_count(&n->t), "too many: %s", tale_story());
    for (size_t i = 0; i < count; i++) {
        CHECK(!listed[ready[i].step], "twice: %s", tale_story());
        listed[ready[i].step] = ready[i].at <= n->now;
        free +=
            unit_is_slot(&tale_graph.w, ready[i].step) && n->steps[ready[i].step].slot == SLOT_FREE;
    }
    CHECK(n->t.direction == DIRECTION_UNDO || n->t.stop != STOP_NONE || n->t.paused_at != 0
              || n->t.state == TASK_ERROR || task_state_is_end(n->t.state)
              || free == items_that_may_begin(&tale_graph.steps[tale_step], &n->steps[tale_step]),
          "%u free: %s", free, tale_story());
    for (uint16_t u = 0; u < task_unit_count(&n->t) && n->t.locked_by.ptr; u++) {
        struct effects fx = {0};
        struct event ev = tale_event_at(n, EVENT_START, u);
        bool is_free = unit_is_slot(&tale_graph.w, u) && n->steps[u].slot == SLOT_FREE;
        tale_copy(&to, n);
        bool starts =
            decide(&tale_graph.w, &to.t, &ev, n->now, &fx) == ANSWER_ACCEPTED || u == tale_step;
        CHECK(u == tale_step || starts == listed[u] || (is_free && starts && free > 0),
              "unit %d starts %d, listed %d: %s", u, starts, listed[u], tale_story());
    }
}

/* No event reaches a slot that has no item, but those that give it one. */
static void check_empty_slots(const struct tale *n)
{
    static struct tale to;
    int slot = tale_free_slot(n);

    for (int k = 0; k < EVENT_KINDS && slot >= 0; k++) {
        struct effects fx = {0};
        const struct event ev = tale_event_at(n, (enum event_kind)k, slot);
        if (k == EVENT_START || k == EVENT_BAD_INPUT || k == EVENT_BRING)
            continue;
        tale_copy(&to, n);
        CHECK(decide(&tale_graph.w, &to.t, &ev, n->now, &fx) == ANSWER_UNKNOWN, "event %d: %s", k,
              tale_story());
    }
}

/* ---- every event that can happen in a state ---- */

static void explore(const struct tale *n);

struct trial {
    const struct tale *was;
    struct tale *is;
};

static void go_on(struct trial *x)
{
    if (!is_slow)
        (void)tale_store(x->is);
    explore(x->is);
}

static bool trial(struct trial *x, const struct event *ev, const char *what)
{
    tale_note(what, ev->step);
    events++;
    bool changed = tale_event(x->is, ev);
    if (changed)
        go_on(x);
    tale_copy(x->is, x->was);
    tale_forget();
    return changed;
}

static void with_fault(struct trial *x, const struct event *ev, const char *what)
{
    if (x->was->left.faults == 0)
        return;
    x->is->left.faults--;
    (void)trial(x, ev, what);
}

static void try_results(struct trial *x, uint16_t u)
{
    struct event ev = tale_event_at(x->was, EVENT_RESULT, u);

    ev.output.json = SLICE("1");
    (void)trial(x, &ev, "ok");
    ev.output.json = SLICE_NONE;
    ev.failed = true;
    ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
    for (int k = 0; k < 4; k++) {
        static const char *const names[] = {"fail", "again", "doubt", "lost"};
        ev.retryable = k % 2;
        ev.effect = k / 2 ? EFFECT_UNKNOWN : EFFECT_NONE;
        with_fault(x, &ev, names[k]);
    }
    ev = tale_event_at(x->was, EVENT_NOT_SENT, u);
    with_fault(x, &ev, "notsent");
    ev.kind = EVENT_TIMEOUT;
    x->is->now = max_i64(x->is->now, step_open_attempt(&x->was->steps[u])->complete_by);
    with_fault(x, &ev, "timeout");
    x->is->now = x->was->now;
}

static void try_late(struct trial *x, uint16_t u)
{
    const struct step *s = &x->was->steps[u];
    struct event ev = tale_event_at(x->was, EVENT_RESULT, u);

    for (uint16_t i = 0; i < s->attempt_count && x->was->left.late > 0; i++) {
        if (s->attempts[i].outcome != OUTCOME_TIMED_OUT
            || s->attempts[i].direction == DIRECTION_UNDO)
            continue;
        ev.direction = DIRECTION_FORWARD;
        ev.attempt = s->attempts[i].number;
        for (int failed = 0; failed < 2; failed++) {
            ev.failed = failed != 0;
            ev.error =
                failed ? (struct fault_note){SLICE("no"), SLICE("no")} : (struct fault_note){0};
            ev.output.json = failed ? SLICE_NONE : SLICE("1");
            x->is->left.late--;
            (void)trial(x, &ev, failed ? "late-no" : "late-ok");
        }
    }
}

static void try_verbs(struct trial *x, uint16_t u)
{
    static const struct {
        enum event_kind kind;
        const char *name;
    } verbs[] = {{EVENT_SKIP, "skip"},       {EVENT_SUPPLY, "supply"},
                 {EVENT_RETRY, "retry"},     {EVENT_RESOLVE, "resolve"},
                 {EVENT_CORRECT, "correct"}, {EVENT_RETRY_FROM, "from"}};

    for (size_t k = 0; k < COUNT_OF(verbs); k++) {
        struct event ev = tale_event_at(x->was, verbs[k].kind, u);
        ev.output.json = SLICE("1");
        ev.input.json = x->was->steps[u].generation ? SLICE("3") : SLICE("2");
        x->is->left.acts--;
        (void)trial(x, &ev, verbs[k].name);
    }
}

/* Late results and verbs reach an item at rest as one in a slot. */
static void try_row(struct trial *x, uint32_t item)
{
    static struct tale held[COUNT_OF(nodes)]; /* a trial goes deeper */
    struct trial of_row = {&held[depth], x->is};

    if (!x->was->rows[item].is_there || (x->was->left.late == 0 && x->was->left.acts == 0))
        return;
    tale_copy(&held[depth], x->was);
    int slot = tale_hold(&held[depth], item);
    if (slot < 0)
        return;
    tale_copy(x->is, &held[depth]);
    try_late(&of_row, (uint16_t)slot);
    if (x->was->left.acts > 0)
        try_verbs(&of_row, (uint16_t)slot);
    tale_copy(x->is, x->was);
}

static void try_unit(struct trial *x, uint16_t u)
{
    struct event ev = tale_event_at(x->was, EVENT_START, u);

    if (x->was->steps[u].attempt_count < TALE_ATTEMPTS)
        (void)trial(x, &ev, "start");
    ev = tale_event_at(x->was, EVENT_BAD_INPUT, u);
    with_fault(x, &ev, "bad");
    if (step_open_attempt(&x->was->steps[u]))
        try_results(x, u);
    try_late(x, u);
    if (x->was->left.acts > 0)
        try_verbs(x, u);
}

static void try_step(struct trial *x, uint32_t count)
{
    const struct item_list list = {.count = count};
    struct event ev = tale_event_at(x->was, EVENT_BEGIN, tale_step);

    ev.list = &list;
    (void)trial(x, &ev, "begin");
    ev = (struct event){.kind = EVENT_BRING, .step = tale_free_slot(x->was)};
    ev.row = tale_row_to_bring(x->was);
    if (ev.row && ev.step >= 0)
        (void)trial(x, &ev, "bring");
}

static void try_task(struct trial *x)
{
    static const struct {
        enum event_kind kind;
        const char *name;
    } verbs[] = {{EVENT_UNDO, "undo"}, {EVENT_RETRY, "retry"}, {EVENT_PAUSE, "pause"}};
    struct event ev = tale_event_at(x->was, EVENT_CLAIM, -1);

    (void)trial(x, &ev, "claim");
    ev.kind = EVENT_RESUME;
    if (x->was->t.paused_at != 0)
        (void)trial(x, &ev, "resume");
    if (x->was->t.complete_by != 0 && !x->was->t.deadline_passed) {
        ev.kind = EVENT_DEADLINE;
        x->is->now = max_i64(x->was->now, x->was->t.complete_by);
        (void)trial(x, &ev, "deadline");
    }
    ev.error.message = SLICE("why");
    for (size_t k = 0; k < COUNT_OF(verbs) && x->was->left.acts > 0; k++) {
        ev.kind = verbs[k].kind;
        x->is->left.acts--;
        (void)trial(x, &ev, verbs[k].name);
    }
}

/* The next moment at which something can start, or be resolved. */
static void try_time(struct trial *x)
{
    struct ready ready[TALE_UNITS];
    size_t count = task_ready(&tale_graph.w, &x->was->t, x->was->now, ready);
    int64_t at = 0;

    for (size_t i = 0; i < count; i++)
        if (ready[i].at > x->was->now && (at == 0 || ready[i].at < at))
            at = ready[i].at;
    for (uint16_t u = x->was->t.step_count; u < task_unit_count(&x->was->t); u++) {
        int64_t until = operator_may_resolve_at(&x->was->steps[u]);
        if (x->was->left.acts > 0 && step_in_doubt(&x->was->steps[u]) && until > x->was->now
            && (at == 0 || until < at))
            at = until;
    }
    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        const struct step *s = &x->was->rows[i].item;
        int64_t until = x->was->rows[i].is_there ? operator_may_resolve_at(s) : 0;
        if (x->was->left.acts > 0 && until > x->was->now && step_in_doubt(s)
            && (at == 0 || until < at))
            at = until;
    }
    if (at == 0)
        return;
    tale_note("wait", 0);
    x->is->now = at;
    explore(x->is);
    tale_copy(x->is, x->was);
    tale_forget();
}

static void explore(const struct tale *n)
{
    search.cut_off |= seen.len >= search.states_max;
    if (search.cut_off || !seen_add(&seen, tale_key(n)))
        return;
    tale_check(n);
    check_ready(n);
    check_verbs(n);
    check_reasons(n);
    check_empty_slots(n);
    check_ends(n, false);
    check_ends(n, true);
    CHECK(depth < (int)COUNT_OF(nodes), "too deep: %s", tale_story());
    struct trial x = {n, &nodes[depth++]};
    tale_copy(x.is, n);
    for (uint16_t u = 0; u < task_unit_count(&n->t); u++)
        try_unit(&x, u);
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        try_row(&x, i);
    try_step(&x, TALE_ITEMS);
    try_task(&x);
    try_time(&x);
    if (is_slow && tale_has_unstored(n)) {
        tale_note("store", 0);
        (void)tale_store(x.is);
        explore(x.is);
        tale_forget();
    }
    depth--;
}

/* Budgets: faults, late results, verbs of operators; the second is for a long run
 * (history_cases.h). */
static const struct {
    const char *graph;
    bool is_slow;
    struct tale_left brief, full;
} cases[] = {
    {"a{1}", false, {1, 1, 1}, {2, 1, 2}},     {"a{2}", false, {1, 1, 1}, {2, 1, 1}},
    {"a2{2}", false, {1, 0, 1}, {2, 0, 1}},    {"a#{2}", false, {1, 0, 1}, {2, 1, 2}},
    {"a?{2}", false, {1, 1, 1}, {2, 1, 1}},    {"a{1.}", false, {1, 1, 1}, {2, 1, 2}},
    {"a{2.}", false, {1, 1, 1}, {2, 1, 1}},    {"a{2:}", false, {2, 0, 1}, {2, 1, 1}},
    {"a-#{1}", false, {2, 1, 1}, {2, 1, 2}},   {"a!{1}", false, {2, 0, 1}, {3, 1, 2}},
    {"a!{2}", false, {2, 0, 1}, {2, 1, 1}},    {"a2!{2}", false, {2, 0, 0}, {2, 1, 1}},
    {"a b{1}<a", false, {1, 0, 1}, {2, 1, 1}}, {"a{1} b#<a", false, {1, 0, 1}, {2, 1, 1}},
    {"a{2} b<a", false, {1, 0, 0}, {1, 1, 1}}, {"a{1} b", false, {1, 0, 0}, {1, 1, 1}},
    {"a!{1} b#", false, {1, 0, 0}, {1, 1, 1}}, {"by=5s a{1}", false, {1, 0, 0}, {1, 1, 1}},
    {"a{1}", true, {1, 1, 1}, {2, 1, 1}},      {"a{2}", true, {1, 0, 1}, {1, 1, 1}},
    {"a#{1.}", true, {1, 1, 1}, {2, 1, 2}},    {"a!{1}", true, {1, 1, 1}, {2, 1, 1}},
};

static void every_history_of_items_keeps_the_rules(void **state)
{
    static struct tale first;
    (void)state;

    search = history_cases();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!history_has_case(&search, i))
            continue;
        tale_make(&first, cases[i].graph, search.full ? cases[i].full : cases[i].brief);
        is_slow = cases[i].is_slow;
        search.cut_off = false;
        events = 0;
        explore(&first);
        history_tell(&search, i, cases[i].graph, is_slow, seen.len, events);
        seen_fini(&seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_of_items_keeps_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
