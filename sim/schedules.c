/* Schedules: people who change them, and the tickers of the nodes. See schedules.h. */

#include "sim/schedules.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/when.h"
#include "schedule/row.h"
#include "schedule/ticker.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/sql.h"
#include "sim/voters.h"
#include "sim/world.h"

enum {
    ONE_RUN_OF = 7,
    TEXTS_MAX = 8,    /* of a plan that are drawn */
    TRIES_MAX = 10,   /* of a change that others overtake */
    FULL = 100,       /* of all places for tasks, so many are kept for what is decided at once */
    CALM_MS = 150000, /* of the second act, so long they go on */
    BACKFILL_MOMENTS = 12,
};

/* A change on its way through a node. */
struct call_job {
    struct store_job job;
    struct node *node;
    uint64_t boot;
    uint32_t plan;
    struct plan_call call;
    enum err err;
    struct error error;
};

static struct {
    bool on, full;
    struct prng own; /* keeps other runs unaffected */
    struct flow *flows;
    uint32_t flow_count, count, runs;
    int64_t first_act_ms, mean_ms;
    struct plan_text texts[PLANS_MAX][TEXTS_MAX];
    uint32_t text_count[PLANS_MAX];
    uint32_t batch_max;
    bool slow;                 /* deciding takes time */
    int64_t effort[NODES_MAX]; /* so far */
    uint64_t job[NODES_MAX];   /* the run of that node's disk in which its ticker decides */
    uint32_t calls[NODES_MAX]; /* at the store of that node */
} plans;

static bool draw(uint32_t of_1000)
{
    return prng_below(&plans.own, 1000) < of_1000;
}

static uint32_t draw_below(uint32_t bound)
{
    return prng_below(&plans.own, bound);
}

bool schedules_are_on(void)
{
    return plans.on;
}

/* ---- texts ---- */

static const char *const overlaps[] = {
    [PLAN_SKIP] = "skip", [PLAN_ALLOW] = "allow", [PLAN_WAIT] = "wait", [PLAN_UNDO] = "undo"};

static void write_times(struct buf *b, const struct plan_text *t)
{
    CLEANUP(buf_fini) struct buf time = {0};

    if (t->every_ms && t->as_cron)
        buf_fmt(b, "cron: \"*/%d * * * *\"\n", (int)(t->every_ms / MS_PER_MIN));
    else if (t->every_ms)
        buf_fmt(b, "every: %ds\n", (int)(t->every_ms / MS_PER_S));
    for (uint32_t i = 0; i < t->at_count; i++) {
        buf_clear(&time);
        time_write(&time, t->at[i]);
        buf_fmt(b, "%s\"%.*s\"%s", i == 0 ? "at: [" : ", ", SLICE_ARG(buf_view(&time)),
                i + 1 == t->at_count ? "]\n" : "");
    }
}

static struct slice write_text(uint32_t plan, const struct plan_text *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool flag = draw(500); /* not among the arguments: compilers differ in their order */
    uint32_t n = draw_below(100);

    buf_fmt(&b, "intact: 1\nschedule: p%u\nworkflow: %s\n", plan, t->flow->name);
    write_times(&b, t);
    buf_fmt(&b, "overlap: %s\ncatch_up: %ds\n", overlaps[t->overlap],
            (int)(t->catch_up_ms / MS_PER_S));
    if (t->missed_all)
        buf_str(&b, "missed: all\n");
    if (t->spread_ms)
        buf_fmt(&b, "spread: %ds\n", (int)(t->spread_ms / MS_PER_S));
    buf_fmt(&b, "priority: %d\n", t->priority);
    buf_fmt(&b,
            "input:\n  n: %u\n  flag: %s\n  text: x\n  time: ${ .time }\n"
            "  previous: ${ .previous }\n",
            n, flag ? "true" : "false");
    if (t->fails)
        buf_fmt(&b,
                "  odd: \"${ if ((.time[15:16] | tonumber) * 6 + (.time[17:18] | tonumber)) %% %u"
                " == 0 then (.time | tonumber) else 1 end }\"\n",
                t->fails);
    return arena_copy(&world.arena, buf_view(&b));
}

static void draw_times(struct plan_text *t)
{
    static const int64_t all[] = {10, 15, 20, 30, 60, 120, 300};
    size_t least = 0;

    while (least + 1 < COUNT_OF(all) && all[least] * MS_PER_S < plans.first_act_ms / 24)
        least++;
    t->every_ms = 0;
    t->at_count = 0;
    if (draw(800)) {
        size_t more = COUNT_OF(all) - least;
        t->every_ms = all[least + draw_below((uint32_t)(more > 3 ? 3 : more))] * MS_PER_S;
        t->as_cron = t->every_ms % MS_PER_MIN == 0 && draw(500);
        return;
    }
    int64_t at = store_now() - store_now() % MS_PER_S;
    t->at_count = 1 + draw_below(PLAN_MOMENTS_MAX);
    for (uint32_t i = 0; i < t->at_count; i++) {
        at += MS_PER_S * (1 + draw_below((uint32_t)(plans.first_act_ms / MS_PER_S / 8)));
        t->at[i] = at;
    }
}

static void draw_rest(struct plan_text *t)
{
    t->overlap = (enum plan_overlap)draw_below(4);
    t->missed_all = draw(500);
    t->catch_up_ms = MS_PER_MIN;
    if (draw(600)) /* not so long that too many tasks are made at once */
        t->catch_up_ms += draw_below((uint32_t)max_i64(t->every_ms, MS_PER_MIN) * 15);
    t->catch_up_ms -= t->catch_up_ms % MS_PER_S;
    t->spread_ms = draw(300) ? MS_PER_S * (1 + draw_below(40)) : 0;
    t->fails = draw(300) ? 2 + draw_below(3) : 0;
    t->priority = (int)draw_below(10);
}

/* Another version: of other times, or of others rules for the same ones. NULL: there were enough.*/
static const struct plan_text *draw_text(uint32_t plan)
{
    uint32_t count = plans.text_count[plan];

    if (count == TEXTS_MAX)
        return &plans.texts[plan][draw_below(TEXTS_MAX)];
    struct plan_text *t = &plans.texts[plan][count];
    *t = (struct plan_text){0};
    if (count > 0)
        *t = t[-1];
    if (count == 0 || draw(400))
        draw_times(t);
    int64_t spread = t->spread_ms;
    draw_rest(t);
    if (count > 0 && draw(500)) /* the times are the same only with that */
        t->spread_ms = spread;
    t->flow = &plans.flows[draw_below(plans.flow_count)];
    if (!t->flow->stored) { /* it would be refused */
        for (uint32_t i = 0; i < plans.flow_count; i++)
            if (plans.flows[i].stored)
                t->flow = &plans.flows[i];
    }
    if (!t->flow->stored)
        return NULL;
    t->text = write_text(plan, t);
    plans.text_count[plan]++;
    return t;
}

/* ---- changes, as the API makes them ---- */

struct change_try {
    struct store *store; /* NULL: the store itself, without faults */
    uint32_t plan;
    const struct plan_call *call;
    struct arena arena;
    struct buf doc;
    struct schedule_change next;
    struct submission_row submission;
    struct audit audit;
    bool writes;
};

static struct schedule *parse(struct slice text)
{
    static struct mistakes mistakes;
    struct schedule *s = NULL;

    mistakes.count = 0;
    if (schedule_parse(text, SOURCE_YAML, &s, &mistakes, NULL) != ERR_OK)
        broken("schedules are accepted", "%s, expected %s: %.*s", mistakes.list[0].found,
               mistakes.list[0].expected, SLICE_ARG(text));
    return s;
}

/* The text must live until it is written. */
static void set_next(struct change_try *t, const struct schedule *s,
                     const struct schedule_state *st)
{
    schedule_encode(s, st, t->call->now, &t->doc, &t->next.row);
    t->next.row.workflow = arena_copy(&t->arena, s->workflow);
    t->next.row.text = arena_copy(&t->arena, s->text);
    t->writes = true;
}

static void put_text(struct change_try *t, const struct schedule_row *row)
{
    struct schedule_state *st = arena_alloc(&t->arena, sizeof *st);
    struct schedule *s = parse(t->call->text->text);
    struct slice person = flows_approve() ? text_of("%c", VOTER_SUBMITS) : SLICE_NONE;
    struct schedule *old = NULL;
    struct error e = {0};

    *st = (struct schedule_state){.last = t->call->now};
    t->next = (struct schedule_change){.new_version = true};
    if (row) {
        t->next.row = *row;
        enum err err = schedule_decode(row, &t->arena, &old, st, &e);
        ASSERT(err == ERR_OK);
        plan_replace(old, s, st, t->call->now);
        schedule_free(old);
    }
    if (!row || !slice_eq(row->text, s->text)) {
        t->next.row.name = text_of("p%u", t->plan);
        t->next.row.version++;
        t->next.row.author = SLICE("operator");
        t->next.row.person = schedule_person_text(t->next.row.version, person, &t->arena);
        t->next.row.stored_at = t->call->now;
        set_next(t, s, st);
    }
    schedule_free(s);
}

static void run_now(struct change_try *t, const struct schedule *s, const struct schedule_state *st)
{
    struct slice input;
    struct error e = {0};

    if (schedule_input(s, t->call->now - t->call->now % MS_PER_S, st->fired, &t->arena, &input, &e)
        != ERR_OK)
        return;
    t->submission =
        run_submission(s, schedule_person(&t->next.row), t->call->run, input, t->call->now);
    t->submission.workflow = arena_copy(&t->arena, t->submission.workflow);
    t->next.submissions = &t->submission;
    t->next.submission_count = 1;
    t->writes = true;
}

static void change_state(struct change_try *t, const struct schedule_row *row)
{
    struct schedule_state *st = arena_alloc(&t->arena, sizeof *st);
    struct schedule *s = NULL;
    struct error e = {0};
    uint64_t count = 0;

    t->next = (struct schedule_change){.row = *row};
    enum err err = schedule_decode(row, &t->arena, &s, st, &e);
    ASSERT(err == ERR_OK);
    if (t->call->verb == PLAN_VERB_PAUSE)
        t->writes = plan_pause(st, t->call->now);
    else if (t->call->verb == PLAN_VERB_RESUME)
        t->writes = plan_resume(st, t->call->now);
    else if (t->call->verb == PLAN_VERB_RUN)
        run_now(t, s, st);
    else
        t->writes = plan_backfill(s, st, t->call->from, t->call->to, &count, &e) == ERR_OK;
    if (t->writes)
        set_next(t, s, st);
    schedule_free(s);
}

static enum err try_change(struct change_try *t, struct error *e)
{
    const struct schedule_query q = {.name = text_of("p%u", t->plan), .limit = 1};
    struct schedule_page page = {0};

    t->writes = false;
    buf_clear(&t->doc);
    struct store *from = t->store ? t->store : inner;
    enum err err = from->ops->schedules->list(from, &q, &t->arena, &page, e);
    if (err != ERR_OK)
        return err;
    if (page.count == 0 && t->call->verb != PLAN_VERB_PUT)
        return ERR_NOT_FOUND;
    if (t->call->verb == PLAN_VERB_PUT)
        put_text(t, page.count ? &page.rows[0] : NULL);
    else
        change_state(t, &page.rows[0]);
    if (!t->writes)
        return ERR_OK;
    t->next.audit = &t->audit;
    err = t->store ? t->store->ops->schedules->write(t->store, &t->next, 1, NULL, e)
                   : schedules_write(NULL, &t->next, 1, NULL, e);
    if (err == ERR_OK && !t->next.done)
        return ERR_CONFLICT;
    return err;
}

/* The call that a node's job makes now. */
static const struct plan_call *calling;

static enum err change(struct store *st, uint32_t plan, const struct plan_call *call,
                       struct error *e)
{
    struct change_try t = {.store = st,
                           .plan = plan,
                           .call = call,
                           .audit = {.at = call->now,
                                     .actor = SLICE("operator"),
                                     .verb = SLICE("schedule"),
                                     .reason = SLICE("somebody wanted it")}};
    enum err err = ERR_CONFLICT;

    if (call->verb == PLAN_VERB_DELETE) {
        struct slice name = text_of("p%u", plan);
        return st ? st->ops->schedules->remove(st, name, &t.audit, e)
                  : schedules_remove(name, &t.audit, e);
    }
    calling = call;
    for (int i = 0; i < TRIES_MAX && err == ERR_CONFLICT; i++)
        err = try_change(&t, e);
    calling = NULL;
    buf_fini(&t.doc);
    arena_fini(&t.arena);
    return err;
}

static void call_run(struct store_job *j, struct store *st)
{
    struct call_job *c = CONTAINER_OF(j, struct call_job, job);

    c->err = change(st, c->plan, &c->call, &c->error);
}

static void call_done(struct store_job *j)
{
    struct call_job *c = CONTAINER_OF(j, struct call_job, job);
    struct node *n = c->node;

    ASSERT(plans.calls[n->slot] > 0);
    plans.calls[n->slot]--;
    if (n->dead || n->boot != c->boot)
        return;
    trace("%s answers about schedule p%u: %s", n->me, c->plan, err_text(c->err));
    if (n->ticker) /* it may be stored whatever the outcome */
        ticker_changed(n->ticker);
    check_schedules_hint(n);
    node_turn_later(n);
}

/* ---- people ---- */

static const char *const verbs[] = {
    [PLAN_VERB_PUT] = "put", [PLAN_VERB_PAUSE] = "pause",       [PLAN_VERB_RESUME] = "resume",
    [PLAN_VERB_RUN] = "run", [PLAN_VERB_BACKFILL] = "backfill", [PLAN_VERB_DELETE] = "delete"};

/* The rest of what somebody wants. False: nothing. */
static bool spell_out(uint32_t plan, int64_t now, struct plan_call *c)
{
    c->now = now;
    if (c->verb == PLAN_VERB_PUT) {
        c->text = draw_text(plan);
        return c->text != NULL;
    }
    if (c->verb == PLAN_VERB_RUN)
        c->run = text_of("p%u@run-%u", plan, ++plans.runs);
    if (c->verb != PLAN_VERB_BACKFILL)
        return true;
    const struct plan_text *t = plan_text(plan);
    int64_t length = BACKFILL_MOMENTS * (t && t->every_ms ? t->every_ms : MS_PER_MIN);
    c->to = now - draw_below((uint32_t)length);
    c->from = c->to - draw_below((uint32_t)length);
    return plan_queued(plan) < BACKFILL_MOMENTS;
}

static struct node *any_that_hears(void)
{
    struct node *n = &nodes.list[draw_below(NODES_MAX)];

    return n->used && node_is_awake(n) && n->deaf_until <= world.now && !n->draining ? n : NULL;
}

/* False: nobody takes it now. */
static bool asks(uint32_t plan, enum plan_verb verb)
{
    struct node *n = any_that_hears();
    struct plan_call call = {.verb = verb};

    if (!n || !spell_out(plan, node_now(n), &call))
        return false;
    struct call_job *c = arena_alloc(&world.arena, sizeof *c);
    *c = (struct call_job){.job = {.run = call_run, .done = call_done},
                           .node = n,
                           .boot = n->boot,
                           .plan = plan,
                           .call = call};
    trace("asked of %s: %s schedule p%u", n->me, verbs[verb], plan);
    if (verb == PLAN_VERB_PUT)
        trace("%.*s", SLICE_ARG(call.text->text));
    plans.calls[n->slot]++;
    n->disk.queue.submit(&n->disk.queue, &c->job);
    return true;
}

static enum plan_verb any_verb(uint32_t plan)
{
    static const enum plan_verb all[] = {PLAN_VERB_PUT,      PLAN_VERB_PUT,     PLAN_VERB_PAUSE,
                                         PLAN_VERB_RESUME,   PLAN_VERB_RUN,     PLAN_VERB_RUN,
                                         PLAN_VERB_BACKFILL, PLAN_VERB_BACKFILL};

    if (!plan_exists(plan))
        return PLAN_VERB_PUT;
    if (plan_is_paused(plan) && draw(500))
        return PLAN_VERB_RESUME;
    return draw(50) ? PLAN_VERB_DELETE : all[draw_below(COUNT_OF(all))];
}

void schedules_come_between(const struct node *n)
{
    uint32_t plan = draw_below(plans.count);
    struct plan_call call = {.verb = any_verb(plan)};
    struct error e = {0};

    plans.job[n->slot] = n->disk.runs;
    if (!nodes.shared || plans.full || world.calm || !draw(60)
        || !spell_out(plan, store_now(), &call))
        return;
    covered(COVER_SCHEDULE_BETWEEN);
    trace("meanwhile: %s schedule p%u", verbs[call.verb], plan);
    (void)change(NULL, plan, &call, &e);
}

static void meddles(void *arg, uint64_t n)
{
    (void)n;
    if (world.calm || plans.full)
        return;
    uint32_t plan = draw_below(plans.count);
    (void)asks(plan, any_verb(plan));
    later(1 + draw_below(2 * (uint32_t)plans.mean_ms), meddles, arg, 0);
}

/* Stored by a person who waits until it is. */
static void stores(void *arg, uint64_t plan)
{
    if (plan_exists((uint32_t)plan) || world.calm || plans.full)
        return;
    (void)asks((uint32_t)plan, PLAN_VERB_PUT);
    later(2000 + draw_below(6000), stores, arg, plan);
}

/* When there is no room for more tasks, and some time after the faults have stopped, they end. */
static void looks_after(void *arg, uint64_t n)
{
    plans.full |=
        subjects.count + FULL > SUBJECTS_MAX || (world.calm && world.now > world.calm_at + CALM_MS);
    check_schedules_idle();
    for (uint32_t i = 0; i < plans.count && plans.full; i++)
        if (plan_exists(i) && !plan_is_paused(i))
            (void)asks(i, draw(300) ? PLAN_VERB_DELETE : PLAN_VERB_PAUSE);
    later(1000, looks_after, arg, n);
}

bool schedules_are_over(void)
{
    for (uint32_t i = 0; i < plans.count; i++)
        if (plan_exists(i) && !plan_is_paused(i))
            return false;
    return !plans.on || world.now > world.calm_at + CALM_MS;
}

static void begin(struct flow *flows, uint32_t flow_count)
{
    plans.own = (struct prng){.state = world.seed ^ UINT64_C(0x7363686564756c65)};
    plans.flows = flows;
    plans.flow_count = flow_count;
    check_schedules_begin();
}

void schedules_begin(struct flow *flows, uint32_t flow_count, int64_t first_act_ms)
{
    memset(&plans, 0, sizeof plans);
    /* With this number, no seed that was kept earlier is among them. */
    plans.on = (hash_stable(&world.seed, sizeof world.seed) ^ 0x4f71fe) % ONE_RUN_OF == 0;
    if (!plans.on)
        return;
    begin(flows, flow_count);
    plans.first_act_ms = first_act_ms;
    plans.mean_ms = 1000 + draw_below((uint32_t)first_act_ms / 4);
    plans.count = 1 + draw_below(PLANS_MAX);
    plans.batch_max = draw(300) ? 1 : 0;
    plans.slow = draw(600);
    for (uint32_t i = 0; i < plans.count; i++)
        later(draw_below((uint32_t)first_act_ms / 6), stores, NULL, i);
    later(draw_below(2 * (uint32_t)plans.mean_ms), meddles, NULL, 0);
    later(1000, looks_after, NULL, 0);
}

/* ---- nodes ---- */

/* What an ask for an undo is known by. */
static char undoing;

struct undo_ask {
    struct ask ask;
    uint64_t revision; /* of the run's row when it was asked */
};

static int64_t now_of(void *arg)
{
    return node_now(arg);
}

/* Some machines take so long to decide that not all schedules are decided at once. */
static int64_t steady_of(void *arg)
{
    const struct node *n = arg;
    bool decides = plans.job[n->slot] == n->disk.runs && n->disk.dones < n->disk.runs;

    if (plans.slow && decides)
        plans.effort[n->slot] += 25;
    return node_steady(n) + plans.effort[n->slot];
}

static bool leads(void *arg, struct fence *ret)
{
    const struct node *n = arg;
    int64_t until = 0;

    return !n->dead && supervisor_leads(n->supervisor, ret, &until)
           && (!nodes.shared || node_steady(n) < until);
}

static void submitted(void *arg)
{
    struct node *n = arg;

    if (n->dead)
        return;
    if (n->intake)
        intake_wake(n->intake);
    node_turn_later(n);
}

static void undo(void *arg, const char *run)
{
    struct node *n = arg;
    struct subject *t = subject_find(slice_of(run));

    if (n->dead)
        return;
    check_schedule_undo(n, slice_of(run));
    struct undo_ask *u = arena_alloc(&world.arena, sizeof *u);
    *u = (struct undo_ask){.ask = {.kind = ASK_CANCEL,
                                   .user = &undoing,
                                   .id = slice_of(t->id),
                                   .actor = SLICE(SCHEDULE_SOURCE),
                                   .reason = SLICE("the next moment of the schedule is due"),
                                   .if_open = true},
                           .revision = t->seen.revision};
    t->wanted[ASK_CANCEL]++;
    t->cancel = true;
    check_verb_asked(t);
    trace("%s has %s undone for the next moment", n->me, t->id);
    covered(COVER_SCHEDULE_UNDO);
    scheduler_ask(n->scheduler, &u->ask);
    node_turn_later(n);
}

bool schedules_asked(const struct ask *a)
{
    return a->user == &undoing;
}

void schedules_answered(struct node *n, struct ask *a)
{
    const struct undo_ask *u = CONTAINER_OF(a, struct undo_ask, ask);
    struct subject *t = subject_find(a->id);

    trace("answered to the schedule: %s: %s", t->id, err_text(a->outcome));
    check_asked(t, a, u->revision, false);
    check_verb_told(t, a);
    node_turn_later(n);
}

bool schedules_did(const struct subject *t, const struct audit *a)
{
    return slice_is(a->actor, SCHEDULE_SOURCE) && slice_is(a->verb, "cancel")
           && slice_is(a->reason, "the next moment of the schedule is due")
           && memchr(t->id, '@', strlen(t->id));
}

bool schedules_are_busy(const struct node *n)
{
    return (n->ticker && ticker_is_busy(n->ticker)) || plans.calls[n->slot] > 0;
}

struct ticker *schedules_ticker(struct node *n)
{
    const struct ticker_config c = {.store = &n->disk.queue,
                                    .shared = nodes.shared,
                                    .batch_max = plans.batch_max,
                                    .arg = n,
                                    .now = now_of,
                                    .steady = steady_of,
                                    .leads = leads,
                                    .submitted = submitted,
                                    .undo = undo};

    plans.effort[n->slot] = 0;
    return plans.on ? ticker_new(&c) : NULL;
}

/* ---- the store ---- */

static bool is_by_hand(struct slice id)
{
    return id.len > 6 && memcmp(id.ptr + 3, "run", 3) == 0;
}

/* A run that is new becomes a task like all others. */
static void meet_run(const struct submission_row *row, const struct plan_text *text)
{
    struct subject *t = subject_find(row->id);

    if (!t) {
        t = subject_add(row->id);
        t->content = (prng_next(&plans.own) << 1 | 2) & ~UINT64_C(4); /* without a trace */
        t->by_sql = true;
        t->run_alone = text->overlap != PLAN_ALLOW && !is_by_hand(row->id);
    }
    if (t->seen.revision == 0) { /* the row of an earlier try may have been dropped */
        t->flow = text->flow;
        t->input = arena_copy(&world.arena, row->input);
        t->priority = text->priority;
    }
    sql_has_run(t, row->seq);
}

/* New ones among all that are in the table. */
static void meet_runs(void)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct submission_query q = {.source = SLICE(SCHEDULE_SOURCE), .limit = PLAN_QUEUE_MAX};
    struct submission_page page;
    struct error e = {0};

    enum err err = inner->ops->submissions->list(inner, &q, &a, &page, &e);
    ASSERT(err == ERR_OK);
    for (size_t i = page.count; i-- > 0;) { /* newest first */
        const struct submission_row *row = &page.rows[i];
        if (row->seq > sql_last_seq())
            meet_run(row, plan_text(plan_of(row->id)));
    }
    sql_changed();
}

enum err schedules_write(const struct node *n, struct schedule_change *list, size_t count,
                         const struct fence *fence, struct error *e)
{
    enum err err =
        inner->ops->schedules->write(inner, list, count, inner->shared ? fence : NULL, e);

    trace("%s writes %zu schedules: %s", n ? n->me : "somebody", count, err_text(err));
    if (err != ERR_OK)
        return err;
    if (inner->shared && fence)
        check_fence(n, fence);
    else if (inner->shared && !calling)
        broken("only a leader decides moments", "%s", n->me);
    for (size_t i = 0; i < count; i++)
        if (list[i].done)
            check_schedule_written(n, fence ? NULL : calling, &list[i]);
        else
            covered(COVER_SCHEDULE_CONFLICT);
    meet_runs();
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; list[i].done && k < list[i].submission_count; k++)
            check_schedule_submitted(list[i].submissions[k].id);
    return ERR_OK;
}

enum err schedules_remove(struct slice name, const struct audit *audit, struct error *e)
{
    enum err err = inner->ops->schedules->remove(inner, name, audit, e);

    if (err == ERR_OK)
        check_schedule_removed(plan_of(name));
    return err;
}
