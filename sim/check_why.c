/* Checks that reasons for waiting come true: a "not before T" at the next change of the row, and
 * an end is final. The node that made the change is asked, with what it knows then. check_row.c
 * calls it. check.h lists all checkers. */

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"
#include "store/codec/codec.h"
#include "why/why.h"

static void must_be(bool so, const struct subject *t, const char *rule, const char *word)
{
    if (so)
        return;
    describe(t);
    broken(rule, "%s: %s", t->id, word);
}

static void see_nobody(void *arg, int step, struct slice name, struct agent_view *ret)
{
    (void)arg;
    (void)step;
    (void)name;
    *ret = (struct agent_view){0};
}

/* ---- agents that are not connected ---- */

enum {
    TAKEN_IN_MS = 1000,    /* a call that has come is known to the node by then */
    REMEMBERED_MS = 10000, /* a node that was called before that says nothing of it */
};

/* As over HTTP: what this node knows, and of an agent that does not call it which others it calls.
 */
struct view {
    const struct node *node;
    struct facts own;
};

static void see_everywhere(void *arg, int step, struct slice name, struct agent_view *ret)
{
    const struct view *v = arg;

    v->own.agent(v->own.arg, step, name, ret);
    NODES_FOREACH (n) {
        if (ret->connected || n == v->node || !node_is_up(n) || !n->scheduler)
            continue;
        const struct agent *a = map_get(&scheduler_dispatch(n->scheduler)->agents, name);
        if (a && dispatch_is_connected(a, node_now(n)))
            ret->nodes = text_of("n%u", n->name + 1);
    }
}

static void see_attempt(void *arg, int step, const struct attempt *a, struct attempt_view *ret)
{
    const struct view *v = arg;

    v->own.attempt(v->own.arg, step, a, ret);
}

static bool is_parked(const struct node *n, uint32_t service)
{
    int64_t since = wire_idle_since(n, service);

    return node_is_awake(n) && node_hears(n) && since != 0 && since + TAKEN_IN_MS <= world.now;
}

static bool was_called(const struct node *n, uint32_t service)
{
    int64_t at = wire_seen_at(n, service);

    return at != 0 && at + REMEMBERED_MS >= world.now;
}

/* What the world knows of calls says the same. */
static void check_absence(const struct node *n, struct subject *t, const struct reason *r)
{
    const struct flow_step *f = &t->flow->steps[r->step];
    bool undo = t->seen.direction == DIRECTION_UNDO && !f->on_undo;
    uint32_t service = undo ? f->undo_service : f->service;
    bool called = false;
    bool parked = false;

    NODES_FOREACH (m) {
        if (m == n || !node_is_up(m) || !m->scheduler)
            continue;
        called |= was_called(m, service);
        parked |= is_parked(m, service);
    }
    must_be(!is_parked(n, service), t, "an agent that calls a node is not said to be away",
            reason_word(r->kind));
    /* Where a clock is set back, a node may remember for longer who called it. */
    must_be(called || r->kind == REASON_NO_AGENT || world.set_back, t,
            "an agent is elsewhere if it calls another node", reason_word(r->kind));
    must_be(!parked || r->kind == REASON_AGENT_AWAY, t,
            "no agent is said to be missing that calls another node", reason_word(r->kind));
    t->absent[r->step] = (struct absence){world.now, node_now(n)};
    if (r->kind == REASON_AGENT_AWAY)
        covered(COVER_AGENT_AWAY);
}

/* A node starts nothing for an agent before that has called it. */
static void check_absent(const struct node *n, const struct subject *t, uint32_t step,
                         const struct seen_attempt *begun)
{
    const struct absence *a = &t->absent[step];
    const struct flow_step *f = &t->flow->steps[step];

    if (a->at == 0 || n->slot != t->absent_slot || n->boot != t->absent_boot
        || begun->started_at <= a->now)
        return;
    uint32_t service = begun->direction == DIRECTION_UNDO ? f->undo_service : f->service;
    must_be(wire_called_at(n, service) >= a->at, t, "an agent that is away is given nothing",
            "an attempt begins");
}

/* An answer that comes late may end a doubt. */
static uint32_t late_answers(const struct seen_step *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->attempt_count; i++)
        n += s->attempts[i].outcome == OUTCOME_LATE;
    return n;
}

/* Was what was told before true of this change? An operator may hurry a step, and a task that turns
 * back waits for other things. */
static void check_foretold(const struct node *n, const struct subject *t, const struct seen *old,
                           const struct seen *new)
{
    bool undone = old->state == TASK_PROCESSED && new->direction == DIRECTION_UNDO;
    must_be(!t->foretold_end || new->state == old->state || undone, t, "what has ended stays so",
            "it moved");
    for (uint32_t i = 0; i < new->step_count && !t->verbs &&new->direction == t->foretold_way;
         i++) {
        const struct seen_attempt *was = seen_open(&old->steps[i]);
        const struct seen_attempt *is = seen_open(&new->steps[i]);
        bool begun = is && (!was || was->number != is->number || was->direction != is->direction);
        if (begun)
            check_absent(n, t, i, is);
        if (new->steps[i].state == STEP_COMPLETED && old->steps[i].state == STEP_WAITING)
            must_be(t->foretold_over[i] <= latest_now(), t,
                    "no wait is over before the moment that was told", "it is over");
        if (!begun || is->started_at >= t->foretold[i])
            continue;
        if (late_answers(&old->steps[i]) != late_answers(&new->steps[i]))
            continue;
        bool waited =
            t->foretold_kind[i] == REASON_BETWEEN || t->foretold_kind[i] == REASON_DEFERRED;
        if (waited && check_hastened(t, i, is, &old->steps[i]))
            continue; /* it failed in an outage that is over */
        describe(t);
        broken("no try begins before the moment that was told", "%s/s%u, at %" PRId64 ": %s", t->id,
               i, t->foretold[i], reason_word(t->foretold_kind[i]));
    }
}

static void foretell(const struct node *n, struct subject *t, const struct why *y)
{
    for (size_t i = 0; i < y->reasons->count; i++) {
        const struct reason *r = &y->reasons->list[i];
        CLEANUP(buf_fini) struct buf words = {0};
        why_text(&words, y, r);
        must_be(words.len > 1, t, "a reason has words", reason_word(r->kind));
        buf_clear(&words);
        why_moves(&words, y, r);
        must_be(words.len > 1, t, "a reason says what moves it", reason_word(r->kind));
        must_be(!strstr(words.ptr, "/v1/"), t, "a reason names verbs", words.ptr);
        t->foretold_end |= reason_is_end(r->kind);
        if (r->step >= (int)t->flow->step_count)
            continue; /* of an item */
        if (n->scheduler && (r->kind == REASON_NO_AGENT || r->kind == REASON_AGENT_AWAY))
            check_absence(n, t, r);
        if (r->kind == REASON_IN_DOUBT || r->kind == REASON_BETWEEN || r->kind == REASON_DEFERRED
            || r->kind == REASON_ROUND) {
            t->foretold[r->step] = r->until;
            t->foretold_kind[r->step] = r->kind;
        }
        if (r->kind == REASON_WAIT)
            t->foretold_over[r->step] = r->until;
        if (r->kind == REASON_NOT_BEFORE)
            for (uint32_t k = 0; k < t->flow->step_count; k++)
                t->foretold[k] = r->until;
    }
}

void check_why(const struct node *n, struct subject *t, const struct task_row *row,
               const struct seen *old)
{
    static struct reasons reasons; /* too large for the stack */
    const struct workflow *w = &t->flow->definition->workflow;
    struct arena a = {0};
    struct facts facts = {.now = store_now(), .agent = see_nobody};
    struct view view = {.node = n};
    struct error e = {0};
    struct task task;

    check_foretold(n, t, old, &t->seen);
    memset(t->absent, 0, sizeof t->absent);
    t->absent_slot = n->slot;
    t->absent_boot = n->boot;
    memset(t->foretold, 0, sizeof t->foretold);
    memset(t->foretold_over, 0, sizeof t->foretold_over);
    t->foretold_end = false;
    t->foretold_way = row->direction;
    enum err err = task_decode(w, row, &a, &task, &e);
    must_be(err == ERR_OK, t, "what was stored can be read", e.text);
    if (n->scheduler) {
        scheduler_facts(n->scheduler, &task, row, &a, &facts);
        facts.lost = supervisor_lost_time(n->supervisor);
        view.own = facts;
        facts.agent = see_everywhere;
        facts.attempt = see_attempt;
        facts.arg = &view;
    }
    reasons_find(w, &task, &facts, &reasons);
    must_be(reasons.count > 0, t, "there is always a reason", "none");
    foretell(n, t, &(struct why){w, &task, &facts, &reasons});
    arena_fini(&a);
}
