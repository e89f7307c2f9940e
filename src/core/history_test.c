/* Explores every history of some small workflows: from a new task on, every possible event in
 * each state, until no new state is found. After each event the core is compared with the
 * observer (history_world.h) and checked against the invariants of docs/design.md
 * (history_check.h). From each state, the task must end if only its agents succeed from now on.
 * Events that could repeat without end (late results, releases, the operator's verbs) happen as
 * often as the budget of a case says. */

#include "core/history_check.h"
#include "core/history_reason.h"

#include <stdlib.h>

static struct seen seen;

/* ---- every event that can happen in a state ---- */

struct trial {
    const struct node *was;
    struct node *is;
    bool hastens; /* this case has outages */
};

static bool has_outages;
static bool has_verbs; /* this case has more of the operator's verbs */
static bool has_signals;

static void explore(const struct node *n);

static void trial(struct trial *x, const struct event *ev)
{
    if (history_event(x->was, x->is, ev)) {
        explore(x->is);
        node_copy(x->is, x->was);
    }
    history.depth--;
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

    if (a->end == CALL_SILENT && x->was->left.late == 0)
        return;
    ev.kind = EVENT_RESULT;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        if (kinds[k].retryable && a->end != CALL_OPEN)
            continue;
        ev.failed = kinds[k].failed;
        ev.retryable = kinds[k].retryable;
        ev.effect = kinds[k].effect;
        ev.output.json = ev.failed ? SLICE_NONE : SLICE("1");
        trial(x, &ev);
        ev.spared = ev.failed && a->end == CALL_OPEN && x->was->left.spared > 0;
        if (ev.spared) /* an error that is not retryable is not spared, even if marked so */
            trial(x, &ev);
        ev.spared = false;
    }
}

static void try_attempts(struct trial *x, uint16_t i)
{
    const struct world_step *s = &x->was->world.steps[i];
    struct event ev = history_event_at(EVENT_RESULT, i, &x->was->steps[i]);

    for (int d = 0; d < 2; d++)
        for (uint32_t n = 1; n <= s->count[d]; n++) {
            ev.direction = (enum direction)d;
            ev.attempt = n;
            try_results(x, i, ev);
            ev.kind = EVENT_TIMEOUT;
            trial(x, &ev);
            ev.spared = x->was->left.spared > 0;
            if (ev.spared)
                trial(x, &ev);
            ev.spared = false;
            ev.kind = EVENT_HASTEN;
            if (x->hastens)
                trial(x, &ev);
            ev.kind = EVENT_NOT_SENT;
            if (x->was->left.not_sent > 0)
                trial(x, &ev);
            ev.kind = EVENT_SEND_AGAIN;
            if (x->was->left.again > 0)
                trial(x, &ev);
            ev.kind = EVENT_ELSEWHERE;
            if (x->was->left.away > 0)
                trial(x, &ev);
            ev.kind = EVENT_SILENCE;
            ev.resume = SLICE("1");
            trial(x, &ev);
            ev.resume = SLICE_NONE;
        }
}

static void try_start(struct trial *x, uint16_t i)
{
    const struct world_step *s = &x->was->world.steps[i];
    struct event ev = history_event_at(EVENT_START, i, &x->was->steps[i]);

    CHECK(s->count[0] + s->count[1] < WORLD_ATTEMPTS, "%s: no room", history_story());
    if (world_is_early(&x->was->world, x->was->now)) /* a scheduler does not start it */
        return;
    for (int d = 0; d < 2; d++)
        for (uint32_t n = 0; n < 3; n++) { /* its number must be the next one */
            ev.direction = (enum direction)d;
            ev.attempt = s->count[d] + n;
            trial(x, &ev);
        }
}

static void try_wait(struct trial *x, uint16_t i)
{
    struct event ev = history_event_at(EVENT_BEGIN, i, &x->was->steps[i]);

    if (world_is_early(&x->was->world, x->was->now))
        return;
    ev.until = GRAPH_MOMENT;
    ev.input.json = SLICE("1");
    trial(x, &ev);
    ev.kind = EVENT_DUE;
    trial(x, &ev);
}

static void try_until(struct trial *x, uint16_t i)
{
    struct event ev = history_event_at(EVENT_UNTIL, i, &x->was->steps[i]);

    for (int holds = 0; holds < 2; holds++) {
        ev.holds = holds != 0;
        trial(x, &ev);
    }
}

static void try_take(struct trial *x, uint16_t i)
{
    struct event ev = history_event_at(EVENT_TAKE, i, &x->was->steps[i]);

    ev.output.json = SLICE("1");
    for (uint16_t k = 0; k <= x->was->t.signal_count; k++) { /* one that did not arrive, too */
        ev.signal = history_signal(0, k, false);
        trial(x, &ev);
    }
    ev = history_event_at(EVENT_TIMEOUT, i, &x->was->steps[i]);
    trial(x, &ev);
}

/* Every person says everything, on every question that was asked. */
static void try_votes(struct trial *x, uint16_t i)
{
    struct event ev = history_event_at(EVENT_DECIDED, i, &x->was->steps[i]);
    uint32_t asking = x->was->world.steps[i].asking;

    ev.output.json = SLICE("1");
    trial(x, &ev);
    ev.kind = EVENT_VOTE;
    for (const char *person = "ABHSX"; *person; person++)
        for (uint32_t k = 0; k < 6; k++) {
            uint32_t number = k / 2 == 0 ? 0 : k / 2 == 1 ? asking : asking - (asking > 0);
            ev.ballot = history_ballot(*person, k % 2, number);
            if (x->was->left.signals > 0 || task_find_vote(&x->was->t, i, ev.ballot->person))
                trial(x, &ev);
        }
}

static void try_signals(struct trial *x)
{
    struct event ev = history_event_at(EVENT_SIGNAL, -1, &x->was->steps[0]);

    for (const char *name = "srux"; *name; name++) {
        ev.kind = EVENT_SIGNAL;
        for (int k = x->was->t.signal_count; k >= 0; k--) {
            ev.signal = history_signal(*name, k, false);
            if (k < x->was->t.signal_count || x->was->left.signals > 0)
                trial(x, &ev);
            ev.signal = history_signal(*name, k, true);
            if (k < x->was->t.signal_count)
                trial(x, &ev);
        }
        ev.kind = EVENT_DROP;
        ev.signal = history_signal(*name, -1, false);
        if (x->was->left.signals > 0)
            trial(x, &ev);
    }
}

/* ---- families ---- */

static struct event child_event(const struct node *n, uint16_t i, enum child_state tells)
{
    struct event ev = history_event_at(EVENT_CHILD, i, &n->steps[i]);

    ev.child = tells;
    ev.attempt = n->world.steps[i].kid.number;
    ev.output.json = tells == CHILD_PROCESSED ? SLICE("1") : SLICE_NONE;
    return ev;
}

/* The child is like that from now on, and tells it if it is news. */
static void try_kid(struct trial *x, uint16_t i, const struct world_kid *next, bool moves)
{
    enum child_state before = kid_tells(&x->was->world.steps[i].kid);
    enum child_state tells = kid_tells(next);
    const struct event ev = child_event(x->was, i, tells);
    struct node *is = x->is;

    is->world.steps[i].kid = *next;
    if (moves)
        is->kids--;
    if (tells != before)
        (void)history_event(x->was, is, &ev);
    else
        history_note(moves ? "moves" : "hears", i);
    explore(is);
    node_copy(is, x->was);
    history.depth--;
}

/* What was told before, or by a child from before. What no child tells is refused, or does no harm.
 */
static void try_old_words(struct trial *x, uint16_t i)
{
    struct event ev = child_event(x->was, i, x->was->world.steps[i].said);

    trial(x, &ev);
    for (enum child_state s = CHILD_RUNNING; s <= CHILD_COMPENSATED; s++) {
        struct effects fx = {0};
        ev = child_event(x->was, i, s);
        CHECK(decide(&history.graph.w, &x->is->t, &ev, x->was->now, &fx) != ANSWER_UNKNOWN, "%s",
              history_story());
        node_copy(x->is, x->was);
        ev.attempt--;
        trial(x, &ev);
    }
}

static void try_child(struct trial *x, uint16_t i)
{
    const struct world_kid *k = &x->was->world.steps[i].kid;
    bool pivot = history.graph.steps[i].undo_kind == UNDO_PIVOT;
    struct world_kid next[KID_MOVES];
    size_t count = kid_hears(k, pivot, next);

    for (size_t m = 0; m < count; m++)
        try_kid(x, i, &next[m], false);
    count = x->was->kids > 0 ? kid_moves(k, pivot, next) : 0;
    for (size_t m = 0; m < count; m++)
        try_kid(x, i, &next[m], true);
    try_old_words(x, i);
    const struct event late = history_event_at(EVENT_TIMEOUT, i, &x->was->steps[i]);
    trial(x, &late);
}

/* A parent tells anything at any time, as its words come late; but that it is to be undone only to
 * one that is processed. */
static void try_parent(struct trial *x)
{
    struct event ev = {.kind = EVENT_PARENT, .step = -1};

    for (enum child_wish w = WISH_NONE; w <= WISH_CLOSE; w++) {
        ev.wish = w;
        trial(x, &ev);
    }
    ev.kind = EVENT_PARENT_PAUSE;
    ev.until = x->was->now - 3000;
    trial(x, &ev);
    ev.kind = EVENT_PARENT_RESUME;
    trial(x, &ev);
}

static void try_step(struct trial *x, uint16_t i)
{
    struct event ev = history_event_at(EVENT_CONDITION, i, &x->was->steps[i]);

    try_start(x, i);
    try_wait(x, i);
    try_until(x, i);
    if (has_signals)
        try_take(x, i);
    if (has_signals && history.graph.steps[i].kind == KIND_APPROVE)
        try_votes(x, i);
    if (history.graph.steps[i].kind == KIND_TASK)
        try_child(x, i);
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

static void try_verbs_of_step(struct trial *x, uint16_t i)
{
    static const enum event_kind verbs[] = {EVENT_CORRECT, EVENT_SUPPLY, EVENT_RESOLVE,
                                            EVENT_RETRY_FROM};
    struct event ev = history_event_at(EVENT_CORRECT, i, &x->was->steps[i]);

    ev.input.json = x->was->steps[i].input.json.ptr ? SLICE("22") : SLICE("2");
    ev.output.json = SLICE("1");
    for (size_t k = 0; k < COUNT_OF(verbs); k++) {
        ev.kind = verbs[k];
        trial(x, &ev);
    }
}

static void try_verbs(struct trial *x)
{
    static const enum event_kind verbs[] = {EVENT_PAUSE, EVENT_CLOSE, EVENT_CORRECT, EVENT_OVERRUN};
    struct event ev = history_event_at(EVENT_RESUME, -1, &x->was->steps[0]);

    trial(x, &ev);
    ev.kind = EVENT_REOPEN;
    if (x->was->left.verbs > 0) /* otherwise it would be closed and reopened for ever */
        trial(x, &ev);
    ev.input.json = SLICE("2");
    for (size_t k = 0; k < COUNT_OF(verbs) && x->was->left.verbs > 0; k++) {
        ev.kind = verbs[k];
        trial(x, &ev);
    }
    for (uint16_t i = 0; i < x->was->t.step_count && x->was->left.verbs > 0; i++)
        try_verbs_of_step(x, i);
}

static void try_task(struct trial *x)
{
    struct event ev = history_event_at(EVENT_CLAIM, -1, &x->was->steps[0]);

    trial(x, &ev);
    ev.kind = EVENT_DEADLINE;
    trial(x, &ev);
    ev.kind = EVENT_EXTEND;
    ev.until = x->was->world.deadline[x->was->world.back] + 5000;
    if (x->was->left.again > 0)
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
    history_check_end(n);
    history_check_reasons(n);
    static struct node nodes[HISTORY_MAX]; /* by depth */
    CHECK(history.depth < (int)COUNT_OF(nodes), "%s: too deep", history_story());
    struct node *next = &nodes[history.depth];
    node_copy(next, n);
    struct trial x = {n, next, has_outages};
    for (uint16_t i = 0; i < n->t.step_count; i++)
        try_step(&x, i);
    try_task(&x);
    if (has_verbs)
        try_verbs(&x);
    if (has_signals)
        try_signals(&x);
    if (n->told > 0)
        try_parent(&x);
    next->now = history_next_time(n);
    if (next->now != 0) {
        history_wait(next->now - n->now);
        explore(next);
        history.depth--;
    }
}

/* Budgets: late results, requests not sent, releases, the operator's acts, bad input or conditions,
 * requests sent again and complete-bys moved, failures in an outage (and its end at any time),
 * attempts that go elsewhere, and the operator's other verbs (pause and close, correct, supply,
 * resolve, start anew; resume is free), and signals that arrive or are dropped. The second budget
 * is for a long run, with HISTORY=full in the environment. */
/* clang-format off */
static const struct history_case {
    const char *graph;
    struct budget brief, full;
} cases[] = {
    {"a",                       {1, 1, 0, 2, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a",                       {1, 1, 0, 1, 0, 1, 0, 0, 0, 0}, {2, 1, 0, 1, 0, 2, 0, 0, 0, 0}},
    {"a2!",                     {1, 1, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 2, 0, 0, 0, 0}},
    {"a! b",                    {0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
    {"a b<a",                   {0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 1, 0, 0, 0, 0}},
    {"a2",                      {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"defers=1 a",              {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0}},
    {"by=15s undo=25s a2",      {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"by=15s undo=25s a2",      {0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 2, 0, 0, 0, 0}},
    {"by=5s a! b<a",            {0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 1, 0, 0, 0, 0}},
    {"by=15s hold a",           {1, 0, 1, 2, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 2, 0, 0, 0, 0, 0, 0}},
    {"a!",                      {1, 1, 0, 2, 1, 0, 0, 0, 0, 0}, {2, 1, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a2!",                     {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {2, 1, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a#",                      {1, 0, 1, 2, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 3, 1, 0, 0, 0, 0, 0}},
    {"a?",                      {1, 1, 1, 2, 1, 0, 0, 0, 0, 0}, {2, 1, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a-",                      {1, 1, 1, 2, 1, 0, 0, 0, 0, 0}, {2, 1, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a b<a",                   {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0, 0, 0, 0}},
    {"a b<a",                   {0, 0, 0, 2, 1, 0, 0, 0, 0, 0}, {0, 0, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a2 b<a",                  {0, 0, 0, 1, 1, 0, 0, 0, 0, 0}, {0, 0, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a b2<a",                  {1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"b a<b",                   {0, 1, 1, 0, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 0, 0, 0, 0, 0}},
    {"a! b<a",                  {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 2, 1, 0, 0, 0, 0, 0}},
    {"a b!<a",                  {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 2, 0, 0, 0, 0, 0, 0}},
    {"a b2!#<a",                {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {2, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a! b",                    {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a! b2",                   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a2! b",                   {1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a! b!",                   {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a?! b<a",                 {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {2, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a# b<a",                  {0, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 1, 0, 0, 0, 0, 0}},
    {"a# b",                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a# b#",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a? b<a",                  {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"a- b<a",                  {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 1, 0, 0, 0, 0, 0}},
    {"by=15s undo=25s a! b<a",  {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"by=5s a2! b<a",           {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"by=15s hold a b",         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a b c<ab",                {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a b!<a c<b",              {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 1, 2, 0, 0, 0, 0, 0, 0}},
    {"a b-<a c<b",              {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 1, 2, 0, 0, 0, 0, 0, 0}},
    {"a b<a c!<a",              {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a b<a c<a d<bc",          {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a",                       {0, 0, 0, 0, 0, 0, 2, 0, 0, 0}, {1, 1, 0, 0, 0, 0, 3, 0, 0, 0}},
    {"a2",                      {0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {1, 0, 0, 1, 0, 1, 2, 0, 0, 0}},
    {"a2!",                     {1, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {1, 1, 0, 1, 0, 0, 2, 0, 0, 0}},
    {"defers=1 a",              {0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 2, 0, 0, 0}},
    {"by=15s undo=25s a2",      {0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 2, 0, 0, 0}},
    {"a2? b<a",                 {0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 1, 0, 0, 0}},
    {"a b2<a",                  {0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0}},
    {"beat=4s a",               {1, 1, 0, 1, 0, 0, 0, 0, 0, 0}, {2, 1, 1, 2, 0, 1, 0, 0, 0, 0}},
    {"beat=4s a2!",             {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 1, 0, 0, 0, 0}},
    {"beat=4s a2 b<a",          {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"beat=4s a! b",            {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"beat=4s by=15s undo=25s a2", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a",                       {1, 1, 0, 1, 0, 1, 0, 1, 0, 0}, {1, 1, 1, 2, 0, 1, 0, 2, 0, 0}},
    {"a2!",                     {1, 0, 0, 0, 0, 1, 0, 1, 0, 0}, {1, 1, 0, 1, 0, 1, 0, 2, 0, 0}},
    {"beat=4s a2",              {1, 0, 0, 0, 0, 0, 0, 1, 0, 0}, {1, 1, 0, 1, 0, 1, 0, 2, 0, 0}},
    {"beat=4s a b<a",           {0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 1, 0, 0}},
    {"beat=4s by=5s a! b<a",    {0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 1, 0, 0}},
    {"a",                       {1, 0, 0, 1, 1, 0, 0, 0, 2, 0}, {1, 1, 1, 2, 1, 0, 0, 0, 3, 0}},
    {"a2",                      {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {1, 1, 1, 1, 0, 1, 1, 0, 2, 0}},
    {"a!",                      {1, 0, 0, 1, 0, 0, 0, 0, 2, 0}, {1, 1, 0, 1, 1, 0, 0, 0, 3, 0}},
    {"a-",                      {1, 0, 0, 0, 1, 0, 0, 0, 3, 0}, {1, 1, 0, 1, 1, 0, 0, 0, 3, 0}},
    {"a?",                      {0, 0, 0, 0, 1, 0, 0, 0, 2, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 3, 0}},
    {"a#",                      {0, 0, 0, 1, 0, 0, 0, 0, 2, 0}, {1, 0, 0, 2, 1, 0, 0, 0, 3, 0}},
    {"a b<a",                   {0, 0, 0, 0, 0, 0, 0, 0, 2, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"a- b-<a",                 {0, 0, 0, 0, 1, 0, 0, 0, 2, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 2, 0}},
    {"a b!<a",                  {0, 0, 0, 0, 0, 0, 0, 0, 2, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"a! b",                    {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"by=15s undo=25s a2",      {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 1, 0, 0, 2, 0}},
    {"by=5s a2! b<a",           {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"defers=1 a",              {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 0, 1, 0, 2, 0}},
    {"beat=4s a",               {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 0, 0, 1, 2, 0}},
    {"by=15s hold a",           {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 2, 0}},
    {"a2!#",                    {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {2, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"a b!<a",                  {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {2, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"a b2!#<a",                {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}},
    {"until=30s a",             {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 3, 1, 0, 0, 0, 0, 0}},
    {"until=3s a?! b<a",        {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 0}},
    {"undo=25s a b-<a",         {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 1, 0}},
    {"a b+",                    {0, 1, 0, 2, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 3, 1, 0, 0, 0, 0, 0}},
    {"a b+",                    {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 3, 0}},
    {"a b2+?",                  {0, 0, 0, 1, 0, 1, 0, 1, 0, 0}, {1, 1, 0, 2, 0, 1, 1, 1, 0, 0}},
    {"by=5s undo=25s a b2+",    {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 1, 0, 0, 0, 0}},
    {"beat=4s a b+",            {1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 1, 1, 1, 0, 0}},
    {"a b+ c?+<b",              {0, 0, 0, 2, 1, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 1, 0, 0, 0, 0, 0}},
    {"a b+ c+",                 {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 2, 1, 0, 0, 0, 0, 0}},
    {"a! b<a c+",               {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 1, 0}},
    {"a- b-<a c+",              {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 2, 0, 0, 0, 0, 1, 0}},
    {"a b/",                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 1, 0, 0, 0, 0}},
    {"b/ a",                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 1, 0, 0, 0, 0}},
    {"by=15s undo=25s a b/",    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}},
    {"from=5s a",               {1, 0, 1, 1, 0, 0, 0, 0, 2, 0}, {1, 1, 1, 2, 0, 0, 0, 0, 3, 0}},
    {"from=5s by=15s undo=25s a2", {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 1, 0, 0, 2, 0}},
    {"from=30s a b<a",          {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {0, 0, 1, 1, 0, 0, 0, 0, 2, 0}},
    {"a~",                      {0, 0, 1, 2, 1, 0, 0, 0, 2, 0}, {0, 0, 1, 3, 2, 1, 0, 0, 3, 0}},
    {"a@",                      {0, 0, 1, 2, 1, 0, 0, 0, 2, 0}, {0, 0, 1, 3, 2, 1, 0, 0, 3, 0}},
    {"a~?",                     {0, 0, 0, 1, 1, 0, 0, 0, 1, 0}, {0, 0, 1, 2, 2, 0, 0, 0, 2, 0}},
    {"a b~<a",                  {1, 0, 0, 1, 1, 0, 0, 0, 1, 0}, {1, 1, 1, 1, 1, 0, 0, 0, 2, 0}},
    {"a~ b<a",                  {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 1, 1, 1, 1, 0, 0, 0, 2, 0}},
    {"a b@",                    {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 0}},
    {"a2! b~",                  {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 0}},
    {"a# b~ c@#",               {0, 0, 0, 1, 1, 0, 0, 0, 0, 0}, {0, 0, 0, 2, 1, 0, 0, 0, 1, 0}},
    {"a~ b@<a",                 {0, 0, 1, 1, 0, 0, 0, 0, 1, 0}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 0}},
    {"by=15s undo=25s a b~<a",  {0, 0, 0, 1, 0, 1, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 1, 0, 0, 1, 0}},
    {"by=25s hold a~",          {0, 0, 0, 1, 0, 1, 0, 0, 1, 0}, {0, 0, 1, 2, 0, 1, 0, 0, 2, 0}},
    {"from=5s a@ b<a",          {0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 0}},
    {"a%",                      {1, 0, 0, 1, 1, 0, 0, 0, 1, 0}, {1, 1, 1, 1, 1, 1, 0, 0, 1, 0}},
    {"a2%",                     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 1, 0, 0, 0}},
    {"a%#",                     {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 1, 0, 0, 0, 0, 1, 0}},
    {"a%? b<a",                 {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 0}},
    {"a b%<a",                  {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 0}},
    {"a% b#",                   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a! b%",                   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0}},
    {"a b%+",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 0}},
    {"by=15s undo=25s a%",      {0, 0, 0, 1, 0, 1, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 1, 0, 0, 1, 0}},
    {"beat=4s a%",              {0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 1, 0, 0, 0, 1, 0, 0}},
    {"a$",                      {0, 0, 1, 2, 1, 0, 0, 0, 2, 2}, {0, 0, 1, 3, 2, 1, 0, 0, 3, 3}},
    {"a&",                      {0, 0, 1, 1, 1, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 3}},
    {"a^",                      {0, 0, 1, 1, 1, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 3}},
    {"a$#",                     {0, 0, 1, 2, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 3, 1, 0, 0, 0, 2, 3}},
    {"a$?",                     {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 3}},
    {"a$ b^",                   {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 3}},
    {"a& b$<a",                 {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 1, 0, 0, 0, 0, 2, 3}},
    {"a b$<a",                  {0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 2}},
    {"a$ b<a",                  {0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 2}},
    {"a# b$",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 2, 0, 0, 0, 0, 1, 2}},
    {"a! b$",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1}},
    {"by=15s undo=25s a$",      {0, 0, 0, 1, 0, 1, 0, 0, 1, 1}, {0, 0, 0, 1, 0, 1, 0, 0, 2, 2}},
    {"by=5s hold a^ b$",        {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 1, 0, 1, 0, 0, 1, 2}},
    {"from=5s a$",              {0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 2}},
    {"undo-on-u a",             {1, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {1, 1, 1, 1, 1, 0, 0, 0, 2, 2}},
    {"undo-on-u a b$<a",        {0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 3}},
    {"undo-on-u a#",            {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {1, 0, 0, 1, 0, 0, 0, 0, 2, 2}},
    {"undo-on-u a2! b#",        {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1}},
    {"undo-on-u a! b<a",        {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 2}},
    {"a*",                      {0, 0, 1, 1, 1, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 4}},
    {"a;",                      {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 3}},
    {"a=",                      {0, 0, 1, 1, 1, 0, 0, 0, 2, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 3, 3}},
    {"a*#",                     {0, 0, 0, 2, 0, 0, 0, 0, 1, 3}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 4}},
    {"a=?",                     {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 2, 1, 0, 0, 0, 2, 2}},
    {"a= b*",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 2}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}},
    {"a= b=<a",                 {0, 0, 0, 1, 0, 0, 0, 0, 1, 2}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 3}},
    {"a b=<a",                  {0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 2}},
    {"a# b*",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 2}, {0, 0, 0, 2, 0, 0, 0, 0, 1, 2}},
    {"a! b=",                   {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1}},
    {"by=15s undo=25s a*",      {0, 0, 0, 1, 0, 1, 0, 0, 0, 2}, {0, 0, 0, 1, 0, 1, 0, 0, 1, 2}},
    {"a$ b=<a",                 {0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 3}},
    {"undo-on-u a=",            {0, 0, 0, 1, 0, 0, 0, 0, 0, 2}, {0, 0, 0, 1, 0, 0, 0, 0, 1, 3}},
};
/* clang-format on */

/* Tasks with a family: moves of children, and what a parent tells, in addition. Words come in
 * order, each once; what children are told they hear at any time. */
/* clang-format off */
static const struct family_case {
    const char *graph;
    struct family_budget { uint8_t late, releases, acts, bad, verbs, kids, told; } brief, full;
} families[] = {
    {"a:",                      {0, 1, 2, 1, 1, 3, 0}, {0, 1, 3, 1, 2, 5, 0}},
    {"a:#",                     {0, 0, 2, 0, 1, 3, 0}, {0, 0, 3, 1, 2, 4, 0}},
    {"a:?",                     {0, 0, 1, 0, 1, 3, 0}, {0, 0, 2, 1, 2, 4, 0}},
    {"a:-",                     {0, 0, 1, 0, 1, 2, 0}, {0, 0, 2, 0, 2, 4, 0}},
    {"a:!",                     {0, 0, 2, 0, 1, 3, 0}, {0, 0, 3, 1, 2, 5, 0}},
    {"a>",                      {0, 0, 1, 1, 1, 2, 0}, {1, 0, 2, 1, 2, 4, 0}},
    {"a|",                      {0, 0, 1, 0, 1, 2, 0}, {0, 0, 2, 0, 2, 4, 0}},
    {"a|!",                     {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 4, 0}},
    {"by=15s undo=25s a:",      {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 4, 0}},
    {"by=15s hold a:!",         {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 4, 0}},
    {"a: b<a",                  {0, 0, 1, 0, 0, 2, 0}, {1, 0, 2, 0, 1, 3, 0}},
    {"a b:<a",                  {0, 0, 1, 0, 0, 2, 0}, {1, 0, 2, 0, 1, 3, 0}},
    {"a: b",                    {0, 0, 1, 0, 0, 2, 0}, {1, 0, 2, 0, 1, 3, 0}},
    {"a: b#",                   {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 3, 0}},
    {"a:! b",                   {0, 0, 1, 0, 0, 2, 0}, {1, 0, 2, 0, 1, 3, 0}},
    {"a:! b!",                  {0, 0, 1, 0, 0, 2, 0}, {1, 0, 1, 0, 1, 3, 0}},
    {"a: b:<a",                 {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 3, 0}},
    {"a: b:",                   {0, 0, 1, 0, 0, 2, 0}, {0, 0, 1, 0, 1, 3, 0}},
    {"a:! b:!",                 {0, 0, 1, 0, 0, 2, 0}, {0, 0, 1, 0, 0, 3, 0}},
    {"a> b:<a",                 {0, 0, 1, 0, 0, 1, 0}, {0, 0, 1, 0, 0, 3, 0}},
    {"a: b+",                   {0, 0, 1, 0, 0, 2, 0}, {0, 0, 2, 0, 1, 3, 0}},
    {"child a",                 {0, 0, 1, 0, 1, 0, 2}, {1, 1, 2, 1, 1, 0, 4}},
    {"child a!",                {0, 0, 1, 0, 0, 0, 3}, {1, 0, 2, 0, 1, 0, 4}},
    {"child a2!#",              {0, 0, 1, 0, 0, 0, 2}, {1, 0, 2, 0, 1, 0, 3}},
    {"child a b<a",             {0, 0, 1, 0, 0, 0, 2}, {1, 0, 1, 0, 0, 0, 3}},
    {"child a! b#<a",           {0, 0, 1, 0, 0, 0, 2}, {1, 0, 1, 0, 0, 0, 3}},
    {"child a!? b<a",           {0, 0, 1, 0, 0, 0, 1}, {1, 0, 1, 0, 0, 0, 3}},
    {"child by=15s undo=25s a", {0, 0, 1, 0, 0, 0, 1}, {0, 0, 1, 0, 1, 0, 3}},
    {"child a:",                {0, 0, 1, 0, 0, 2, 1}, {0, 0, 2, 0, 0, 3, 2}},
    {"child a:!",               {0, 0, 1, 0, 0, 2, 1}, {0, 0, 2, 0, 0, 3, 2}},
};
/* clang-format on */

static void explore_all(const char *about, const struct budget *left, uint8_t kids, uint8_t told)
{
    static struct node first;
    const char *much = getenv("HISTORY");

    history.about = about;
    graph_make(&history.graph, about);
    node_make(&first, &history.graph, *left);
    first.kids = kids;
    first.told = told;
    has_outages = left->spared > 0;
    has_verbs = left->verbs > 0;
    has_signals = left->signals > 0;
    explore(&first);
    if (much)
        fprintf(stderr, "%9zu states, %10lu events: %s\n", seen.len, history.events, about);
    seen_fini(&seen);
    history.events = 0;
}

static bool is_full(void)
{
    const char *much = getenv("HISTORY");

    return much && strcmp(much, "full") == 0;
}

static void every_history_keeps_the_invariants(void **state)
{
    (void)state;
    assert_story = history_print;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        explore_all(cases[i].graph, is_full() ? &cases[i].full : &cases[i].brief, 0, 0);
}

static void every_history_of_families_does(void **state)
{
    (void)state;
    assert_story = history_print;
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        const struct family_budget *b = is_full() ? &families[i].full : &families[i].brief;
        const struct budget left = {.late = b->late,
                                    .releases = b->releases,
                                    .acts = b->acts,
                                    .bad = b->bad,
                                    .verbs = b->verbs};
        explore_all(families[i].graph, &left, b->kids, b->told);
    }
}

/* The tables contain no impossible edge, and nothing was left untested. */
static void every_edge_of_the_tables_was_taken(void **state)
{
    (void)state;
    for (enum task_state from = TASK_PENDING; from <= TASK_ERROR; from++)
        for (enum task_state to = TASK_PENDING; to <= TASK_ERROR; to++)
            CHECK(history.task_edge_seen[from][to] || !task_state_can(from, to), "%s to %s",
                  task_state_text(from), task_state_text(to));
    for (enum step_state from = STEP_WAITING; from <= STEP_UNDONE; from++)
        for (enum step_state to = STEP_WAITING; to <= STEP_UNDONE; to++)
            CHECK(history.step_edge_seen[from][to] || !step_state_can(from, to), "%s to %s",
                  step_state_text(from), step_state_text(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_keeps_the_invariants),
        cmocka_unit_test(every_history_of_families_does),
        cmocka_unit_test(every_edge_of_the_tables_was_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
