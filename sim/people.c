/* Submitters and operators: what they ask of nodes, repeated until it is answered, at bad times
 * too (people.h). voters.c has persons who vote, operations.c operations on many tasks, sql.c
 * submissions by SQL. */

#include <stdio.h>

#include "base/when.h"
#include "sim/people.h"

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/notices.h"
#include "sim/receivers.h"
#include "sim/rests.h"
#include "sim/sql.h"
#include "sim/subject.h"
#include "sim/voters.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { ASK_PATIENCE_MS = 8000, FOREVER = 1000000, EARLY_PAUSES = 0xea10, SENDING = 0x5e9d };

/* A wish of a person, repeated until it is answered. */
struct wish {
    struct link link; /* in the list of those asked at the node */
    struct subject *task;
    enum ask_kind kind;
    bool other;   /* a submission with an id that another one uses */
    bool settled; /* it was answered, or given up */
    uint32_t tries, patience;
    int step;     /* for operators; -1: the whole task */
    bool from;    /* a retry from that step on */
    bool if_open; /* as by an operation on tasks in work */
    int at;       /* the name of the node to ask; ANY_NODE */
    struct slice output, input;
    uint32_t signal; /* its number, which is its key */
    uint32_t vote;   /* its number */
    bool is_admin;   /* may decide in place of people */
    bool rash;       /* resolves without a look */
};

/* One ask for it, at the node. */
struct asking {
    struct ask ask;
    struct link link;
    struct wish *wish;
    const struct node *node;
    uint64_t revision; /* of the row when it was asked */
    bool gone;
};

static struct subject list[SUBJECTS_ALL];
static struct link askings;
static struct prng sending; /* of signals; keeps other runs unaffected */
static uint32_t submitting; /* submissions that are not settled */

static void settle(struct wish *w)
{
    if (!w->settled && w->kind == ASK_SUBMIT)
        submitting--;
    w->settled = true;
}

bool people_are_content(void)
{
    return submitting == 0;
}

bool people_are_silent(void)
{
    return list_empty(&askings);
}

static void wish_tried(void *arg, uint64_t n);

static void try_again(struct wish *w, int64_t delay)
{
    if (!w->settled)
        later(delay, wish_tried, w, w->tries);
}

static void no_answer(void *arg, uint64_t tries)
{
    struct wish *w = arg;

    if (w->settled || tries != w->tries)
        return;
    if (w->tries >= w->patience) {
        trace("nobody waits for %s any more", w->task->id);
        settle(w);
        return;
    }
    try_again(w, world.calm ? 100 : spread(1, 10000));
}

static struct signal signal_of(const struct wish *w)
{
    const struct sent_signal *s = &w->task->signals[w->signal];
    struct slice data = s->ok ? SLICE("{\"ok\":true}") : SLICE("{\"ok\":false}");

    return (struct signal){.key = text_of("k%u", w->signal),
                           .name = text_of("%c", s->name),
                           .data = {.json = data},
                           .content = data};
}

/* Those that its submission carries: more of them if it is repeated. */
static void carry(const struct wish *w, struct ask *a)
{
    const struct subject *t = w->task;

    a->signal_count = t->carried + (w->tries > 1 ? t->carried_later : 0);
    a->signals = arena_alloc(&world.arena, (a->signal_count + 1) * sizeof *a->signals);
    for (uint32_t i = 0; i < a->signal_count; i++)
        a->signals[i] = (struct carried_signal){
            .signal = signal_of(&(struct wish){.task = w->task, .signal = i})};
}

static bool is_vote(const struct wish *w)
{
    return w->kind == ASK_APPROVE || w->kind == ASK_REJECT;
}

static struct ask ask_of(const struct wish *w, const struct node *n)
{
    const struct subject *t = w->task;
    struct ask a = {.kind = w->kind, .id = slice_of(t->id)};

    if (w->kind == ASK_SUBMIT) {
        a.definition = registry_find(&n->registry, slice_of(t->flow->name), 1);
        a.input = t->input;
        a.reply_to = receivers_reply_to(t);
        a.priority = t->priority;
        a.not_before = t->not_before;
        a.content = subject_content(t, w->other, w->tries & 1);
        a.family = family_fixed(n, a.definition, &world.arena);
        carry(w, &a);
        a.submitter = flows_approve() ? text_of("%c", VOTER_SUBMITS) : SLICE_NONE;
        if (subject_trace(t))
            a.trace =
                text_of("00-%016" PRIx64 "00000000000000aa-00000000000000bb-01", subject_trace(t));
        return a;
    }
    /* Without a reason if processed tasks stay so: see draw_way_back. */
    if (w->kind != ASK_UNDO || flows_go_back() || w->task->flow->fixed)
        a.reason = SLICE("somebody wanted it");
    a.actor = SLICE("operator");
    if (w->kind == ASK_SIGNAL)
        a.signal = signal_of(w);
    if (is_vote(w)) {
        a.ballot = voters_ballot(&t->votes[w->vote]);
        char token[VOTER_TOKEN_SIZE];
        voters_token(&t->votes[w->vote], token);
        a.actor = text_of("%s", token);
    }
    a.is_admin = w->is_admin;
    a.output = w->output;
    a.input = w->input;
    a.from = w->from;
    a.if_open = w->if_open;
    if (w->step >= 0)
        a.step = slice_of(text_of("%s", unit_name((uint32_t)w->step)).ptr);
    if (w->kind == ASK_RESOLVE) /* another attempt may begin and be in doubt */
        a.attempt = seen_unit(w->task, (uint32_t)w->step)->attempt;
    if (w->kind == ASK_RESOLVE && a.attempt == 0) /* there is no attempt yet */
        a.not_after = store_now() + CLOCK_MARGIN_MS / 2;
    return a;
}

static const char *const verbs[] = {
    [ASK_SUBMIT] = "submit", [ASK_RETRY] = "retry",     [ASK_SKIP] = "skip",
    [ASK_UNDO] = "undo",     [ASK_CANCEL] = "cancel",   [ASK_PAUSE] = "pause",
    [ASK_RESUME] = "resume", [ASK_CORRECT] = "correct", [ASK_SUPPLY] = "supply",
    [ASK_CLOSE] = "close",   [ASK_REOPEN] = "reopen",   [ASK_RESOLVE] = "resolve",
    [ASK_SIGNAL] = "signal", [ASK_APPROVE] = "approve", [ASK_REJECT] = "reject",
};

/* A person who says that a step took no effect has checked the service, and makes sure that it
 * stays so. During an attempt the person waits; a later attempt is not meant: see ask_of. */
static bool looks(const struct wish *w)
{
    const struct seen_step *s = seen_unit(w->task, (uint32_t)w->step);

    if (seen_open(s))
        return false;
    if (!seen_in_doubt(s) || s->direction == DIRECTION_UNDO)
        return true; /* it will be refused anyway */
    if (w->rash || rests_resolve_rashly(w->task, (uint32_t)w->step)) {
        rests_are_resolved_rashly(w->task, (uint32_t)w->step);
        return true;
    }
    if (ledger_bar(w->task, (uint32_t)w->step, s->attempt))
        return true;
    covered(COVER_RESOLVED_WRONGLY);
    return false;
}

static void arrives(void *arg, uint64_t tries)
{
    struct wish *w = arg;
    struct node *n = w->at == ANY_NODE ? node_any() : node_named((uint32_t)w->at);

    if (n && node_sleeps(n, arrives, arg, tries))
        return;
    if (w->kind == ASK_SUBMIT && !family_is_stored(w->task->flow)) {
        later(between(1, 30), arrives, w, tries); /* submissions wait until it is stored */
        return;
    }
    if (!n || !node_hears(n) || (w->kind == ASK_SUBMIT && !family_is_known(n, w->task->flow))) {
        later(between(1, 20), no_answer, w, tries);
        return;
    }
    if (w->kind == ASK_RESOLVE && !looks(w)) {
        settle(w);
        return;
    }
    struct asking *q = arena_alloc(&world.arena, sizeof *q);
    *q = (struct asking){.ask = ask_of(w, n),
                         .wish = w,
                         .node = n,
                         .revision = w->task->seen.revision};
    q->ask.user = q;
    list_push(&askings, &q->link);
    if (w->kind == ASK_SKIP && w->step >= 0)
        unit_is_skipped(w->task, (uint32_t)w->step);
    if (w->is_admin && w->kind != ASK_CORRECT && w->step >= 0 && w->step < FLOW_STEPS_MAX)
        w->task->overrode[w->step] = true;
    if (w->kind != ASK_SUBMIT && w->kind != ASK_CANCEL && w->kind != ASK_SIGNAL && !is_vote(w))
        w->task->verbs = true;
    w->task->cancel |=
        w->kind == ASK_CANCEL || (w->kind == ASK_SIGNAL && w->task->signals[w->signal].name == 'u');
    for (size_t i = 0; w->kind == ASK_SUBMIT && i < q->ask.signal_count; i++)
        w->task->cancel |= w->task->signals[i].name == 'u';
    w->task->wanted[w->kind]++;
    check_verb_asked(w->task);
    trace("asked of %s: %s %s step %d", n->me, verbs[w->kind], w->task->id, w->step);
    scheduler_ask(n->scheduler, &q->ask);
    node_turn_soon(n);
}

static void wish_tried(void *arg, uint64_t tries)
{
    struct wish *w = arg;

    if (w->settled || tries != w->tries)
        return;
    bool endless =
        w->kind == ASK_PAUSE || (w->kind == ASK_UNDO && flows_go_back() && !w->task->flow->fixed);
    if (world.calm && endless) {
        settle(w); /* otherwise it would never end */
        return;
    }
    w->tries++;
    if (w->tries > 1 && w->kind == ASK_SUBMIT)
        covered(COVER_SUBMITTED_AGAIN);
    if (w->tries > 1 && w->kind == ASK_SIGNAL)
        covered(COVER_SIGNAL_AGAIN);
    if (w->tries > 1 && is_vote(w))
        covered(COVER_VOTE_AGAIN);
    if (!chance(weather.call_lost)) {
        later(between(0, 5), arrives, w, w->tries);
        if (chance(weather.call_doubled))
            later(spread(1, 5000), arrives, w, w->tries);
    }
    later(ASK_PATIENCE_MS, no_answer, w, w->tries);
}

void people_answered(const struct node *n, struct ask *a)
{
    struct asking *q = a->user;
    struct wish *w = q->wish;

    link_remove(&q->link);
    trace("answered: %s: %s", w->task->id, err_text(a->outcome));
    check_asked(w->task, a, q->revision, w->other);
    check_verb_told(w->task, a);
    if (w->kind == ASK_SIGNAL && a->outcome == ERR_OK)
        check_signal_told(w->task, w->signal);
    if (w->kind == ASK_SIGNAL && a->outcome == ERR_CONFLICT)
        covered(COVER_SIGNAL_REFUSED);
    if (w->kind == ASK_SUBMIT && a->outcome == ERR_OK)
        check_carried(w->task, a);
    if (is_vote(w))
        check_vote_told(w->task, &w->task->votes[w->vote], a);
    if (w->settled)
        return;
    if (chance(weather.answer_lost) || !node_hears(n)) {
        trace("the answer for %s is lost", w->task->id);
        return; /* no_answer repeats it */
    }
    if (w->kind == ASK_SUBMIT && a->outcome == ERR_OK)
        w->task->accepted = true;
    if (err_is_transient(a->outcome) || a->outcome == ERR_TOO_BIG)
        later(spread(1, 2000), no_answer, w, w->tries);
    else
        settle(w);
}

void people_cut_off(const struct node *n)
{
    LIST_FOREACH (l, after, &askings) {
        const struct asking *q = CONTAINER_OF(l, struct asking, link);
        if (q->node != n)
            continue;
        link_remove(l);
        later(between(0, 50), no_answer, q->wish, q->wish->tries);
    }
}

/* ---- operators ---- */

static bool is_in_doubt(const struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (seen_in_doubt(&t->seen.steps[i]))
            return true;
    return false;
}

/* The first step in doubt; if there is none, any. */
static int doubtful_step(const struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++)
        if (seen_in_doubt(&t->seen.steps[i]))
            return (int)i;
    return (int)below(t->flow->step_count);
}

/* Odd ones are an admin's, where that matters. The checkers see it by the text. */
static void handle_correct(struct wish *w, uint32_t n)
{
    w->is_admin = flows_approve() && n % 2 == 1;
    w->input = text_of("{\"n\":%u,\"flag\":true,\"text\":\"%s\"}", n, w->is_admin ? "z" : "y");
}

/* Arguments of the rarer verbs. */
static void handle(struct wish *w)
{
    uint32_t steps = w->task->flow->step_count;

    if (w->kind == ASK_RESOLVE)
        w->step = doubtful_step(w->task);
    if (w->kind == ASK_SUPPLY || (w->kind == ASK_CORRECT && chance(700)))
        w->step = (int)below(steps);
    if (w->kind == ASK_SUPPLY)
        w->output = SLICE("{\"id\":\"by hand\",\"n\":9}");
    if (w->kind == ASK_CORRECT)
        handle_correct(w, below(100));
    w->from = w->kind == ASK_RETRY && w->step >= 0 && chance(300);
    if ((w->kind == ASK_SKIP || w->kind == ASK_SUPPLY) && flows_approve())
        w->is_admin = chance(500);
}

/* In some runs perhaps an item of the step, or of another one. */
static void mean_item(struct wish *w)
{
    bool may = w->kind == ASK_RETRY || w->kind == ASK_SKIP || w->kind == ASK_SUPPLY
               || w->kind == ASK_CORRECT || w->kind == ASK_RESOLVE;

    if (!may || !flow_has_items(w->task->flow))
        return;
    int anew = w->kind == ASK_RETRY ? items_anew(w->task) : -1;
    if (anew >= 0) {
        w->step = anew;
        w->from = true;
        return;
    }
    int step = items_meant(w->task, w->step, w->kind == ASK_RESOLVE);
    if (step >= UNITS_OF_ITEM)
        w->from = false;
    if (w->kind == ASK_CORRECT && step < 0)
        w->input = items_input(w->input);
    w->step = step;
}

static void wants(struct subject *t, enum ask_kind kind, int64_t delay)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){
        .task = t, .kind = kind, .step = -1, .at = ANY_NODE, .patience = 1 + below(5)};
    if (kind == ASK_SKIP || (kind == ASK_RETRY && chance(500)))
        w->step = (int)below(t->flow->step_count);
    if (kind == ASK_SKIP && chance(500))
        w->output = SLICE("{\"id\":\"by hand\",\"n\":7}");
    handle(w);
    mean_item(w);
    try_again(w, delay);
    if (kind == ASK_PAUSE)
        wants(t, ASK_RESUME, delay + spread(1, 120000));
    if (kind != ASK_RESOLVE)
        return;
    enum ask_kind next = chance(500) ? ASK_UNDO : ASK_RETRY;
    wants(t, next, delay + spread(1, 60000));
}

/* Mostly retries and skips, sometimes any other verb. */
static enum ask_kind any_verb(void)
{
    static const enum ask_kind others[] = {ASK_PAUSE,  ASK_PAUSE,   ASK_RESUME, ASK_CORRECT,
                                           ASK_RETRY,  ASK_CORRECT, ASK_SUPPLY, ASK_CLOSE,
                                           ASK_REOPEN, ASK_RESOLVE, ASK_RESOLVE};

    if (chance(400))
        return others[below(COUNT_OF(others))];
    return chance(450) ? ASK_RETRY : chance(500) ? ASK_SKIP : ASK_UNDO;
}

/* ---- senders of signals ---- */

static void sends_one(struct subject *t, uint32_t number, int64_t delay)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){.task = t,
                       .kind = ASK_SIGNAL,
                       .step = -1,
                       .at = ANY_NODE,
                       .patience = FOREVER,
                       .signal = number};
    try_again(w, delay);
}

/* By SQL, by a node, or both ways: then whichever comes first counts. */
static void sends(struct subject *t, char name, bool ok, int64_t delay)
{
    if (t->signals_sent == SEEN_SIGNALS_MAX)
        return;
    uint32_t number = t->signals_sent++;
    struct sent_signal *s = &t->signals[number];
    *s = (struct sent_signal){.name = name, .ok = ok};
    bool by_sql = sql_signals_sends(t, number, delay);
    s->both = by_sql && prng_chance(&sending, 10);
    if (s->both)
        covered(COVER_SIGNAL_BOTH);
    if (!by_sql || s->both)
        sends_one(t, number, delay + (s->both ? prng_below(&sending, 500) : 0));
}

/* One signal to every task of a workflow. */
static void sends_to_many(void *arg, uint64_t name)
{
    const struct flow *f = arg;

    covered(COVER_SIGNAL_MANY);
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].flow == f)
            sends(&subjects.list[i], (char)name, prng_chance(&sending, 70), 0);
}

static void draw_many(const struct flow *flows, uint32_t count, int64_t first_act_ms)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < flows[i].step_count; k++)
            if (flows[i].steps[k].is_signal && prng_chance(&sending, 15))
                later(prng_below(&sending, (uint32_t)first_act_ms), sends_to_many,
                      (void *)(uintptr_t)&flows[i], (uint64_t)flows[i].steps[k].signal_name);
}

/* What its submission carries: names that some step waits for. */
static void draw_carried(struct subject *t)
{
    const struct flow *f = t->flow;

    for (uint32_t i = 0; i < f->step_count && t->signals_sent < 4; i++) {
        if (!f->steps[i].is_signal || prng_chance(&sending, 60))
            continue;
        t->signals[t->signals_sent++] =
            (struct sent_signal){.name = f->steps[i].signal_name, .ok = prng_chance(&sending, 70)};
    }
    if (f->undo_signal && prng_chance(&sending, 10))
        t->signals[t->signals_sent++] = (struct sent_signal){.name = 'u', .ok = true};
    t->carried_later = prng_below(&sending, t->signals_sent + 1);
    t->carried = t->signals_sent - t->carried_later;
}

/* Early, late, too many, and some that nobody waits for. */
static void sends_all(struct subject *t, int64_t submitted_at, struct prng *own)
{
    for (uint32_t i = 0; i < t->flow->step_count; i++) {
        const struct flow_step *f = &t->flow->steps[i];
        for (uint32_t n = prng_below(own, 4); f->is_signal && n > 0; n--) {
            uint32_t after_ms = prng_below(own, prng_chance(own, 50) ? 120000 : 10000);
            sends(t, f->signal_name, prng_chance(own, 70), submitted_at + after_ms);
        }
    }
    if (t->flow->undo_signal && prng_chance(own, 15))
        sends(t, 'u', true, submitted_at + prng_below(own, 120000));
}

/* In calm times whoever waits without limit gets what it waits for. */
static void sends_what_is_missing(struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++) {
        const struct flow_step *f = &t->flow->steps[i];
        bool waits = f->is_signal && t->seen.steps[i].state == STEP_WAITING
                     && t->seen.steps[i].begun_at != 0 && !seen_is_end(&t->seen)
                     && t->seen.direction == DIRECTION_FORWARD;
        if (waits && t->signals_sent < SEEN_SIGNALS_MAX
            && t->signal_sent_at + 10 * MS_PER_S <= world.now) {
            t->signal_sent_at = world.now;
            sends(t, f->signal_name, true, 0);
            return;
        }
    }
}

/* ---- voters ---- */

void people_vote(struct subject *t, const struct sent_vote *v, int64_t delay)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    ASSERT(t->votes_sent < SENT_VOTES_MAX);
    *w = (struct wish){.task = t,
                       .kind = v->agrees ? ASK_APPROVE : ASK_REJECT,
                       .step = (int)v->step,
                       .at = ANY_NODE,
                       .patience = FOREVER,
                       .vote = t->votes_sent};
    t->votes[t->votes_sent++] = *v;
    try_again(w, delay);
}

/* In calm times no task stays paused. */
void people_look(void)
{
    for (uint32_t i = 0; i < subjects.count && flows_signal(); i++)
        sends_what_is_missing(&subjects.list[i]);
    if (flows_approve())
        voters_look();
    for (uint32_t i = 0; i < subjects.count; i++)
        if (subjects.list[i].seen.paused_at != 0 && !subjects.list[i].parent)
            wants(&subjects.list[i], ASK_RESUME, 0);
}

static void meddles(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    if (world.calm)
        return;
    enum ask_kind kind = any_verb(); /* one draw after the other: arguments have no order */
    wants(&subjects.list[below(subjects.count)], kind, 0);
    later(between(1, 2 * weather.operator_ms), meddles, NULL, 0);
}

void people_alerted(struct slice id)
{
    if (!chance(weather.operator_answers))
        return;
    struct subject *t = subject_find(id);
    enum ask_kind kind = any_verb();
    if (is_in_doubt(t) && chance(400))
        kind = ASK_RESOLVE;
    int repair = items_repair(t);
    if (repair >= 0) {
        kind = (enum ask_kind)repair;
        wants(t, ASK_RETRY, spread(1, 120000));
    }
    wants(t, kind, spread(1, 60000));
}

/* A processed task may still be wrong. */
void people_hear_of_end(struct slice id, enum task_state state)
{
    struct subject *t = subject_find(id);

    if (state != TASK_PROCESSED || world.calm || t->flow->fixed || !flows_go_back())
        return;
    if (chance(600))
        wants(t, ASK_UNDO, spread(1, 120000));
}

/* ---- submitters ---- */

/* Once more, to bring further signals. */
static void repeats(const struct wish *first, int64_t at)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = *first;
    w->tries = 1; /* it is a later one */
    w->patience = FOREVER;
    submitting++;
    try_again(w, at + prng_below(&sending, 60000));
}

static void submits(struct subject *t, int64_t at)
{
    if (!flow_excludes(t->flow) && sql_submits(t, at))
        return;
    if (flows_signal() && prng_chance(&sending, 40))
        draw_carried(t);
    struct wish *w = arena_alloc(&world.arena, sizeof *w);
    *w = (struct wish){.task = t, .kind = ASK_SUBMIT, .step = -1, .at = ANY_NODE};
    w->patience = chance(500) ? 1 + below(3) : FOREVER;
    submitting++;
    try_again(w, at);
    if (chance(40))
        wants(t, ASK_CANCEL, at + spread(1, 60000)); /* a change of mind */
    if (t->carried_later > 0)
        repeats(w, at);
    if (!chance(50))
        return;
    struct wish *rival = arena_alloc(&world.arena, sizeof *rival);
    *rival = *w;
    submitting++;
    rival->other = chance(500);
    try_again(rival, at + spread(1, 20000));
}

static void make(struct subject *t, uint32_t number, const struct flow *f, int64_t at)
{
    uint32_t n = below(100);
    bool flag = chance(500);

    *t = (struct subject){.flow = f};
    t->input = text_of("{\"n\":%u,\"flag\":%s,\"text\":\"x\"}", n, flag ? "true" : "false");
    if (!f->fixed && flow_has_items(f))
        t->input = items_input(t->input);
    t->content = prng_next(&world.prng) << 1 | 2;
    t->priority = (int)below(10);
    t->not_before = chance(100) ? store_now() + at + between(-1000, 60000) : 0;
    (void)snprintf(t->id, sizeof t->id, "t%u", number);
}

/* One run in 17; not drawn from the run's source, and no seed kept earlier is among them. Tasks
 * wait for their time and are paused meanwhile. */
static bool waits_are_paused(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ EARLY_PAUSES) % 17 == 0;
}

static void pauses_early(struct subject *t, int64_t submitted_at, struct prng *own)
{
    int64_t wait = 1000 + prng_below(own, 90000);

    if (prng_chance(own, 40))
        return;
    t->not_before = store_now() + submitted_at + wait;
    if (prng_chance(own, 75))
        wants(t, ASK_PAUSE, submitted_at + prng_below(own, (uint32_t)wait));
}

void people_begin(uint32_t tasks, int64_t first_act_ms, uint32_t flow_count,
                  const struct flow *flows)
{
    ASSERT(tasks <= SUBJECTS_MAX);
    struct prng own = {.state = world.seed ^ EARLY_PAUSES};

    sending = (struct prng){.state = world.seed ^ SENDING};
    list_init(&askings);
    submitting = 0;
    lists_begin();
    subjects = (struct subjects){list, tasks};
    for (uint32_t i = 0; i < tasks; i++) {
        int64_t at = between(0, first_act_ms * 7 / 10);
        make(&list[i], i, &flows[below(flow_count)], at);
        if (waits_are_paused())
            pauses_early(&list[i], at, &own);
        submits(&list[i], at);
        if (flows_signal())
            sends_all(&list[i], at, &own);
    }
    if (flows_signal())
        draw_many(flows, flow_count, first_act_ms);
    if (flows_approve())
        voters_begin();
    if (weather.operator_ms)
        later(weather.operator_ms, meddles, NULL, 0);
}

/* ---- for scenes ---- */

void people_begin_scene(uint32_t tasks, const struct flow *f)
{
    ASSERT(tasks <= SUBJECTS_MAX);
    list_init(&askings);
    submitting = 0;
    subjects = (struct subjects){list, tasks};
    for (uint32_t i = 0; i < tasks; i++) {
        make(&list[i], i, f, 0);
        list[i].not_before = 0;
        list[i].priority = 5;
    }
}

static void handle_scene(struct wish *w)
{
    if (w->kind == ASK_SUPPLY)
        w->output = SLICE("{\"id\":\"by hand\",\"n\":9}");
    if (w->kind == ASK_CORRECT)
        w->input = SLICE("{\"n\":1,\"flag\":true,\"text\":\"corrected\"}");
}

void people_want_from(struct subject *t, int step)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){.task = t,
                       .kind = ASK_RETRY,
                       .step = step,
                       .from = true,
                       .at = ANY_NODE,
                       .patience = FOREVER};
    try_again(w, 0);
}

void people_want_undo_of_work(struct subject *t)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){.task = t,
                       .kind = ASK_UNDO,
                       .step = -1,
                       .if_open = true,
                       .at = ANY_NODE,
                       .patience = FOREVER};
    try_again(w, 0);
}

void people_resolve_rashly(struct subject *t, uint32_t unit)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){.task = t,
                       .kind = ASK_RESOLVE,
                       .step = (int)unit,
                       .rash = true,
                       .at = ANY_NODE,
                       .patience = FOREVER};
    try_again(w, 0);
}

void people_want(struct subject *t, enum ask_kind kind, int step, int at)
{
    struct wish *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct wish){.task = t, .kind = kind, .step = step, .at = at, .patience = FOREVER};
    submitting += kind == ASK_SUBMIT;
    handle_scene(w);
    if (kind == ASK_SKIP)
        w->output = SLICE("{\"id\":\"by hand\",\"n\":7}");
    try_again(w, 0);
}
