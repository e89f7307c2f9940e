/* Explores every history of small workflows that have a step with for_each whose items start
 * children: every event, move of a child and word to it, in each state, as often as the budget of a
 * case says. Each state is checked against an observer (history_item_kids.h); from each the task
 * must come to an end if an operator helps, whether children succeed from now on, or fail. */
#include "core/history_item_kids.h"

#include "core/history_cases.h"
#include "core/history_seen.h"
#include "core/items.h"
#include "core/reason.h"

static struct seen seen;
static struct brood nodes[140]; /* by depth */
static int depth;
static unsigned long events;
static struct history_cases search;
static bool is_slow; /* what comes to rest is stored at any later time */

static bool is_pivot(void)
{
    return tale_graph.steps[tale_step].undo_kind == UNDO_PIVOT;
}

/* ---- the end that must be possible, whether children succeed or fail from now on ---- */

static bool act(struct brood *n, enum event_kind kind, int unit)
{
    struct event ev = tale_event_at(&n->tale, kind, unit);

    ev.output.json = SLICE("1");
    return brood_event(n, &ev);
}

/* It hears what it was told, or gets on. */
static bool kid_goes_on(struct brood *n, uint32_t item, bool fails)
{
    const struct world_kid k = n->kids[item];
    struct world_kid next[KID_MOVES];
    size_t count = kid_hears(&k, is_pivot(), next);

    if (count > 0)
        return brood_kid_becomes(n, item, &next[count - 1]);
    if (k.phase != KID_RUNS)
        return false;
    next[0] = k;
    next[0].back |= fails && !k.stands;
    next[0].phase = next[0].back ? KID_UNDONE : KID_DONE;
    next[0].stands |= is_pivot() && next[0].phase == KID_DONE;
    return brood_kid_becomes(n, item, &next[0]);
}

static bool kids_go_on(struct brood *n, bool fails)
{
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        if (kid_goes_on(n, i, fails))
            return true;
    return false;
}

/* Operators help each child that stopped in error. */
static bool kids_are_helped(struct brood *n)
{
    bool any = false;

    for (uint32_t i = 0; i < TALE_ITEMS; i++) {
        struct world_kid next = n->kids[i];
        any |= kid_repair(&next) && brood_kid_becomes(n, i, &next);
    }
    return any;
}

/* A stopped task: first children are helped, then all is tried again, then what failed is skipped,
 * and at last the step. */
static bool operator_helps(struct brood *n, int turn)
{
    bool any = n->tale.t.closed_at != 0 && act(n, EVENT_REOPEN, -1);

    if (any || kids_go_on(n, false) || kids_are_helped(n))
        return true;
    if (turn < 3 && act(n, EVENT_RETRY, -1))
        return true;
    for (int u = task_unit_count(&n->tale.t); u-- > 0;)
        if (n->tale.t.state == TASK_ERROR
            && (n->tale.steps[u].state == STEP_FAILED
                || n->tale.steps[u].child.state == CHILD_STUCK))
            any |= act(n, EVENT_SKIP, u);
    return any || n->tale.t.state != TASK_ERROR || act(n, EVENT_RETRY, -1);
}

static bool start_what_is_ready(struct brood *n)
{
    struct ready ready[TALE_UNITS];
    static const struct item_list list = {.count = 1};
    size_t count = task_ready(&tale_graph.w, &n->tale.t, n->tale.now, ready);

    if (count == 0)
        return false;
    n->tale.now = max_i64(n->tale.now, ready[0].at);
    bool calls = step_calls(&tale_graph.w, &n->tale.t, ready[0].step);
    struct event ev = tale_event_at(&n->tale, calls ? EVENT_START : EVENT_BEGIN, ready[0].step);
    ev.input.json = SLICE("1");
    if (ready[0].step == tale_step)
        ev.list = &list;
    CHECK(brood_event(n, &ev), "unit %d was ready: %s", ready[0].step, tale_story());
    return true;
}

static bool bring_what_is_wanted(struct brood *n)
{
    struct event ev = {.kind = EVENT_BRING,
                       .step = tale_free_slot(&n->tale),
                       .row = tale_row_to_bring(&n->tale)};

    if (!n->tale.steps[tale_step].items
        || items_to_bring(&tale_graph.w, &n->tale.t, tale_step) == 0)
        return false;
    CHECK(ev.step >= 0 && ev.row, "nothing to bring: %s", tale_story());
    CHECK(brood_event(n, &ev), "not brought: %s", tale_story());
    return true;
}

static bool answer_what_is_open(struct brood *n, bool fails)
{
    for (uint16_t u = 0; u < task_unit_count(&n->tale.t); u++) {
        if (!step_open_attempt(&n->tale.steps[u]))
            continue;
        struct event ev = tale_event_at(&n->tale, EVENT_RESULT, u);
        ev.output.json = fails ? SLICE_NONE : SLICE("1");
        ev.failed = fails;
        ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
        CHECK(brood_event(n, &ev), "a result is refused: %s", tale_story());
        return true;
    }
    return false;
}

static bool step_on(struct brood *n, int *turn, bool fails)
{
    if (tale_store(&n->tale))
        return true;
    if (n->tale.t.state == TASK_ERROR)
        return operator_helps(n, (*turn)++);
    if (n->tale.t.paused_at != 0)
        return act(n, EVENT_RESUME, -1);
    if (!n->tale.t.locked_by.ptr && act(n, EVENT_CLAIM, -1))
        return true;
    return answer_what_is_open(n, fails) || kids_go_on(n, fails) || bring_what_is_wanted(n)
           || start_what_is_ready(n);
}

static void check_ends(const struct brood *n, bool fails)
{
    static struct brood to;
    int turn = 0;

    brood_copy(&to, n);
    for (int i = 0; i < 200 && !task_state_is_end(to.tale.t.state); i++)
        CHECK(step_on(&to, &turn, fails && turn < 4), "nothing goes on, in %s: %s",
              task_state_text(to.tale.t.state), tale_story());
    CHECK(task_state_is_end(to.tale.t.state), "it does not end: %s", tale_story());
    brood_check(&to);
}

/* ---- what operators may do, and what may be started ---- */

static void check_verb(const struct brood *n, enum event_kind verb, int unit)
{
    static struct brood to;
    struct event ev = tale_event_at(&n->tale, verb, unit);
    struct effects fx = {0};

    ev.output.json = SLICE("1");
    ev.input.json = SLICE("2");
    ev.error.message = SLICE("why");
    bool may = operator_may(&tale_graph.w, &n->tale.t, verb, unit, n->tale.now);
    brood_copy(&to, n);
    enum answer answer = decide(&tale_graph.w, &to.tale.t, &ev, n->tale.now, &fx);
    CHECK(may == (answer == ANSWER_ACCEPTED) || answer == ANSWER_REPEATED,
          "verb %d of unit %d: may %d, %s: %s", (int)verb, unit, may, kit_answer_text(answer),
          tale_story());
}

static void check_verbs(const struct brood *n)
{
    static const enum event_kind of_units[] = {EVENT_SKIP, EVENT_SUPPLY, EVENT_RETRY_FROM,
                                               EVENT_RETRY, EVENT_CORRECT};
    static const enum event_kind of_task[] = {EVENT_RETRY,  EVENT_UNDO,  EVENT_PAUSE,
                                              EVENT_RESUME, EVENT_CLOSE, EVENT_REOPEN};

    for (int u = 0; u < task_unit_count(&n->tale.t); u++)
        for (size_t k = 0; k < COUNT_OF(of_units); k++)
            check_verb(n, of_units[k], u);
    for (size_t k = 0; k < COUNT_OF(of_task); k++)
        check_verb(n, of_task[k], -1);
}

/* What the list has can begin, and nothing else, but for the number of free slots. */
static void check_ready(const struct brood *n)
{
    static struct brood to;
    struct ready ready[TALE_UNITS];
    bool listed[TALE_UNITS] = {false};
    size_t count = task_ready(&tale_graph.w, &n->tale.t, n->tale.now, ready);
    bool any_free = false;

    for (size_t i = 0; i < count; i++) {
        CHECK(!listed[ready[i].step], "twice: %s", tale_story());
        listed[ready[i].step] = ready[i].at <= n->tale.now;
        any_free |= n->tale.steps[ready[i].step].slot == SLOT_FREE
                    && unit_is_slot(&tale_graph.w, ready[i].step);
    }
    for (uint16_t u = n->tale.t.step_count; u < task_unit_count(&n->tale.t); u++) {
        struct effects fx = {0};
        struct event ev = tale_event_at(&n->tale, EVENT_BEGIN, u);
        bool is_free = n->tale.steps[u].slot == SLOT_FREE;
        if (!n->tale.t.locked_by.ptr || step_calls(&tale_graph.w, &n->tale.t, u))
            continue;
        ev.input.json = SLICE("1");
        brood_copy(&to, n);
        bool begins = decide(&tale_graph.w, &to.tale.t, &ev, n->tale.now, &fx) == ANSWER_ACCEPTED;
        CHECK(begins == listed[u] || (is_free && begins && any_free),
              "unit %u begins %d, listed %d: %s", u, begins, listed[u], tale_story());
    }
}

/* ---- every event that can happen in a state ---- */

static void explore(const struct brood *n);

struct trial {
    const struct brood *was;
    struct brood *is;
};

static void go_on(struct trial *x)
{
    if (!is_slow)
        (void)tale_store(&x->is->tale);
    explore(x->is);
    brood_copy(x->is, x->was);
    tale_forget();
}

static void trial(struct trial *x, const struct event *ev, const char *what)
{
    tale_note(what, ev->step);
    events++;
    if (brood_event(x->is, ev)) {
        go_on(x);
        return;
    }
    brood_copy(x->is, x->was);
    tale_forget();
}

static void with_fault(struct trial *x, const struct event *ev, const char *what)
{
    if (x->was->tale.left.faults == 0)
        return;
    x->is->tale.left.faults--;
    trial(x, ev, what);
}

static const char *word_for(const struct world_kid *k)
{
    static const char *const words[] = {
        [CHILD_NONE] = "none",      [CHILD_RUNNING] = "runs",       [CHILD_ERROR] = "error",
        [CHILD_STUCK] = "stuck",    [CHILD_STANDS] = "stands",      [CHILD_TURNED] = "turned",
        [CHILD_PROCESSED] = "done", [CHILD_COMPENSATED] = "undone",
    };

    return words[kid_tells(k)];
}

static void try_kid(struct trial *x, uint32_t item, const struct world_kid *next, bool moves)
{
    tale_note(moves ? word_for(next) : "hears", (int)item);
    events++;
    if (moves && next->phase != KID_DONE) /* any number of them may succeed */
        x->is->moves--;
    if (brood_kid_becomes(x->is, item, next)) {
        go_on(x);
        return;
    }
    brood_copy(x->is, x->was);
    tale_forget();
}

static void try_kids(struct trial *x, uint32_t item)
{
    struct world_kid next[KID_MOVES];
    size_t count = kid_hears(&x->was->kids[item], is_pivot(), next);

    for (size_t m = 0; m < count; m++)
        try_kid(x, item, &next[m], false);
    count = kid_moves(&x->was->kids[item], is_pivot(), next);
    for (size_t m = 0; m < count; m++)
        if (x->was->moves > 0 || next[m].phase == KID_DONE)
            try_kid(x, item, &next[m], true);
}

static void try_call(struct trial *x, uint16_t u)
{
    struct event ev = tale_event_at(&x->was->tale, EVENT_START, u);

    if (x->was->tale.steps[u].attempt_count < TALE_ATTEMPTS)
        trial(x, &ev, "start");
    if (!step_open_attempt(&x->was->tale.steps[u]))
        return;
    ev = tale_event_at(&x->was->tale, EVENT_RESULT, u);
    ev.output.json = SLICE("1");
    trial(x, &ev, "ok");
    ev.output.json = SLICE_NONE;
    ev.failed = true;
    ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
    with_fault(x, &ev, "fail");
}

static void try_verbs(struct trial *x, uint16_t u)
{
    static const struct {
        enum event_kind kind;
        const char *name;
    } verbs[] = {{EVENT_SKIP, "skip"},
                 {EVENT_SUPPLY, "supply"},
                 {EVENT_RETRY, "retry"},
                 {EVENT_CORRECT, "correct"},
                 {EVENT_RETRY_FROM, "from"}};

    for (size_t k = 0; k < COUNT_OF(verbs) && x->was->tale.left.acts > 0; k++) {
        struct event ev = tale_event_at(&x->was->tale, verbs[k].kind, u);
        ev.output.json = SLICE("1");
        ev.input.json = x->was->tale.steps[u].generation ? SLICE("3") : SLICE("2");
        x->is->tale.left.acts--;
        trial(x, &ev, verbs[k].name);
    }
}

static void try_unit(struct trial *x, uint16_t u)
{
    const struct step *s = &x->was->tale.steps[u];
    struct event ev = tale_event_at(&x->was->tale, EVENT_BEGIN, u);

    ev.input.json = SLICE("1");
    if (u >= x->was->tale.t.step_count)
        trial(x, &ev, "begin");
    ev = tale_event_at(&x->was->tale, EVENT_BAD_INPUT, u);
    with_fault(x, &ev, "bad");
    ev = tale_event_at(&x->was->tale, EVENT_TIMEOUT, u);
    x->is->tale.now = max_i64(x->was->tale.now, s->complete_by);
    if (s->complete_by != 0)
        trial(x, &ev, "late");
    x->is->tale.now = x->was->tale.now;
    try_call(x, u);
    try_verbs(x, u);
}

static void try_step(struct trial *x)
{
    const struct item_list list = {.count = TALE_ITEMS};
    struct event ev = tale_event_at(&x->was->tale, EVENT_BEGIN, tale_step);

    ev.list = &list;
    trial(x, &ev, "begin");
    ev = (struct event){.kind = EVENT_BRING, .step = tale_free_slot(&x->was->tale)};
    ev.row = tale_row_to_bring(&x->was->tale);
    if (ev.row && ev.step >= 0)
        trial(x, &ev, "bring");
}

static void try_task(struct trial *x)
{
    static const struct {
        enum event_kind kind;
        const char *name;
    } verbs[] = {{EVENT_UNDO, "undo"},
                 {EVENT_RETRY, "retry"},
                 {EVENT_PAUSE, "pause"},
                 {EVENT_CLOSE, "close"}};
    struct event ev = tale_event_at(&x->was->tale, EVENT_CLAIM, -1);

    trial(x, &ev, "claim");
    ev.kind = EVENT_RESUME;
    if (x->was->tale.t.paused_at != 0)
        trial(x, &ev, "resume");
    ev.kind = EVENT_REOPEN;
    if (x->was->tale.t.closed_at != 0)
        trial(x, &ev, "reopen");
    if (x->was->tale.t.complete_by != 0 && !x->was->tale.t.deadline_passed) {
        ev.kind = EVENT_DEADLINE;
        x->is->tale.now = max_i64(x->was->tale.now, x->was->tale.t.complete_by);
        trial(x, &ev, "deadline");
    }
    ev.error.message = SLICE("why");
    for (size_t k = 0; k < COUNT_OF(verbs) && x->was->tale.left.acts > 0; k++) {
        ev.kind = verbs[k].kind;
        x->is->tale.left.acts--;
        trial(x, &ev, verbs[k].name);
    }
}

static void explore(const struct brood *n)
{
    search.cut_off |= seen.len >= search.states_max;
    if (search.cut_off || !seen_add(&seen, brood_key(n)))
        return;
    brood_check(n);
    check_ready(n);
    check_verbs(n);
    check_ends(n, false);
    check_ends(n, true);
    CHECK(depth < (int)COUNT_OF(nodes), "too deep: %s", tale_story());
    struct trial x = {n, &nodes[depth++]};
    brood_copy(x.is, n);
    for (uint16_t u = 0; u < task_unit_count(&n->tale.t); u++)
        try_unit(&x, u);
    for (uint32_t i = 0; i < TALE_ITEMS; i++)
        try_kids(&x, i);
    try_step(&x);
    try_task(&x);
    if (is_slow && tale_has_unstored(&n->tale)) {
        tale_note("store", 0);
        (void)tale_store(&x.is->tale);
        go_on(&x);
    }
    depth--;
}

/* Budgets: moves of children, faults of agents and inputs, verbs of operators; the second is for a
 * long run (history_cases.h). */
static const struct {
    const char *graph;
    bool is_slow;
    struct child_budget {
        uint8_t moves, faults, acts;
    } brief, full;
} cases[] = {
    {"a:{1}", false, {2, 0, 1}, {3, 1, 2}},     {"a:{2}", false, {2, 0, 1}, {3, 1, 1}},
    {"a:{3}", false, {1, 0, 0}, {2, 0, 1}},     {"a:#{2}", false, {2, 0, 1}, {3, 1, 1}},
    {"a:?{2}", false, {2, 0, 0}, {3, 1, 1}},    {"a:{1.}", false, {2, 0, 1}, {3, 1, 2}},
    {"a:{2:}", false, {2, 0, 0}, {3, 1, 1}},    {"a:-{2}", false, {2, 0, 0}, {3, 1, 1}},
    {"a:!{1}", false, {2, 0, 1}, {3, 1, 1}},    {"a:!{2}", false, {2, 0, 0}, {3, 0, 1}},
    {"a>{2}", false, {1, 1, 0}, {2, 1, 1}},     {"a|{2}", false, {1, 0, 0}, {2, 0, 1}},
    {"a:{1} b<a", false, {2, 1, 1}, {2, 2, 1}}, {"a b:{2}<a", false, {1, 1, 0}, {2, 1, 1}},
    {"a:{1} b#", false, {1, 1, 1}, {2, 1, 1}},  {"by=5s a:{2}", false, {1, 0, 0}, {2, 0, 1}},
    {"a:{2}", true, {2, 0, 0}, {2, 0, 1}},      {"a:#{1}", true, {2, 0, 1}, {2, 1, 1}},
};

static void every_history_of_children_of_items_keeps_the_rules(void **state)
{
    static struct brood first;
    (void)state;

    search = history_cases();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct child_budget *b = search.full ? &cases[i].full : &cases[i].brief;
        if (!history_has_case(&search, i))
            continue;
        brood_make(&first, cases[i].graph, (struct tale_left){.faults = b->faults, .acts = b->acts},
                   b->moves);
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
        cmocka_unit_test(every_history_of_children_of_items_keeps_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
