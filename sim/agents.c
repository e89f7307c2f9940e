/* The workers of the simulated agents: how each acts on a request, effect by effect, dies, hangs,
 * or misbehaves, as the weather says (agents.h). wire.c has the calls between workers and nodes,
 * ledger.c the durable effects, long.c long steps. */

#include "sim/agents.h"

#include <stdio.h>

#include "base/when.h"
#include "dispatch/token.h"
#include "sim/beats.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/illness.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/long.h"
#include "sim/outage.h"
#include "sim/rests.h"
#include "sim/weather.h"
#include "sim/world.h"

static struct worker workers[WORKERS_MAX];
static uint32_t worker_count;
static void (*script)(struct gig *g); /* of the scene; NULL: none */

/* ---- the course of a gig ---- */

static void gig_forget(struct gig *g)
{
    g->dead = true;
    ledger_close(g->task, g->step, g); /* rolled back if it was open */
    link_remove(&g->link);
}

void gig_done_with(struct gig *g)
{
    if (!g->dead)
        gig_forget(g);
}

static struct slice output_of(const struct gig *g)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct ledger *l = ledger_of(g->task, g->step);

    buf_fmt(&b, "{\"id\":\"%s-%u\",\"n\":%u", g->task->id, g->step, l->number);
    int more = flow_is_long(g->task->flow) ? 400 : 0; /* several of them together are too long */
    if (l->number % 17 == 3)
        more = 2100; /* too long for the task's document */
    if (more > 0) {
        buf_str(&b, ",\"long\":\"");
        for (int i = 0; i < more; i++)
            buf_byte(&b, 'x');
        buf_byte(&b, '"');
    }
    buf_byte(&b, '}');
    return arena_copy(&world.arena, buf_view(&b));
}

static void says_error(struct gig *g, const char *code, bool retryable, enum effect effect)
{
    g->failed = true;
    g->code = code;
    g->retryable = retryable;
    g->effect = g->again ? EFFECT_UNKNOWN : effect; /* its record says that it was begun before */
    if (retryable && chance(weather.names_retry_after))
        g->retry_after_ms = spread(1, 8000);
}

static uint64_t process_of(const struct worker *w)
{
    return w->life << 8 | (uint64_t)(w - workers);
}

static void gig_finish(void *arg, uint64_t n)
{
    struct gig *g = arg;
    (void)n;

    if (g->dead || g->finished)
        return;
    g->finish_due = g->at_it && !g->failed;
    if (g->finish_due)
        return; /* once it has committed */
    if (!g->failed) {
        g->output = output_of(g);
        check_undo_said(g->task, g->step, g->direction);
    }
    g->finished = true;
    const struct said said = {.by = process_of(g->worker),
                              .step = g->step,
                              .number = g->attempt,
                              .direction = g->direction,
                              .failed = g->failed,
                              .retryable = g->retryable,
                              .effect = g->effect,
                              .wish_ms = g->retry_after_ms};
    said_note(g->task, &said);
    trace("%s says %s/%s %s %u: %s", g->worker->name, g->task->id, unit_name(g->step),
          direction_text(g->direction), g->attempt, g->failed ? g->code : "done");
    worker_wakes_up(g->worker, between(0, 3));
}

static void gig_commits(void *arg, uint64_t n)
{
    struct gig *g = arg;

    if (g->dead)
        return;
    g->at_it = false;
    if (chance(weather.rolls_back)) {
        covered(COVER_ROLLED_BACK);
        trace("%s rolls back %s/%s %s", g->worker->name, g->task->id, unit_name(g->step),
              direction_text(g->direction));
        if (!g->finished && !g->failed)
            says_error(g, "rolled back", true, EFFECT_NONE);
    } else {
        ledger_commit(g->task, g->step, g->direction, g->verdict);
        if (g->direction == DIRECTION_FORWARD && g->verdict == LEDGER_UNDONE) {
            g->failed = true;
            g->retryable = false;
            g->effect = EFFECT_NONE;
            g->code = "undone_before";
        }
    }
    ledger_close(g->task, g->step, g);
    if (g->finish_due)
        gig_finish(g, n);
}

/* Its transaction begins, and waits for another one about the same step. */
static void gig_effect(void *arg, uint64_t n)
{
    struct gig *g = arg;

    if (g->dead)
        return;
    g->at_it = true;
    if (!ledger_open(g->task, g->step, g->direction, g->attempt, g, &g->verdict)) {
        covered(COVER_TRANSACTION_WAITS);
        later(between(1, 20), gig_effect, g, n);
    } else if (weather.transactions && chance(weather.transactions)) {
        later(spread(1, 4000), gig_commits, g, n);
    } else {
        gig_commits(g, n);
    }
}

static void gig_deadline(void *arg, uint64_t n)
{
    struct gig *g = arg;
    (void)n;

    if (g->dead || g->hangs)
        return;
    if (g->finished && chance(500))
        return; /* continues to report its result */
    gig_forget(g);
    worker_wakes_up(g->worker, 0);
}

static void effect_in(struct gig *g, int64_t delay)
{
    later(delay, gig_effect, g, 0);
}

static void dies_with_it(void *arg, uint64_t n)
{
    struct gig *g = arg;
    (void)n;

    if (!g->dead)
        worker_dies(g->worker, "at work");
}

/* After its deadline the effect, a result, or both may still come. */
static void hangs(struct gig *g, int64_t left, int64_t over)
{
    g->hangs = true;
    covered(COVER_HANG);
    if (chance(weather.pivots ? 300 : 700))
        effect_in(g, left + over);
    else
        says_error(g, "came to nothing", true, EFFECT_NONE);
    later(left + over + 1, gig_finish, g, 0);
}

static void behave(struct gig *g)
{
    int64_t left = g->deadline - world.now;
    int64_t takes = world.calm ? between(0, min_i64(left - 1, 40)) : spread(1, 4000);
    uint32_t refusals = g->direction == DIRECTION_UNDO ? weather.undo_refuses : weather.refuses;

    if (outage_of(g->worker->service)) {
        if (chance(700)) { /* others are silent until the deadline */
            says_error(g, "away", true, chance(800) ? EFFECT_NONE : EFFECT_UNKNOWN);
            later(min_i64(takes, 1 + below(50)), gig_finish, g, 0);
        }
        return;
    }
    if (illness_follow(g))
        return;
    if (chance(weather.slow))
        takes = spread(1, 2 * left);
    if (chance(weather.hangs)) {
        hangs(g, left, spread(1, MS_PER_MIN));
        return;
    }
    int64_t late = rests_are_late(g);
    if (late > 0) {
        hangs(g, left, late);
        return;
    }
    if (chance(weather.silent)) {
        if (chance(500))
            effect_in(g, between(0, left - 1));
        return;
    }
    if (chance(weather.dies))
        later(between(0, takes), dies_with_it, g, 0);
    if (chance(refusals)) {
        says_error(g, "refused", false, EFFECT_NONE);
    } else if (chance(weather.fails_none)) {
        says_error(g, "try again", true, EFFECT_NONE);
    } else if (chance(weather.fails_unknown) || chance(weather.refuses_unknown)) {
        says_error(g, "who knows", chance(600), EFFECT_UNKNOWN);
        if (chance(500) && takes < left)
            effect_in(g, between(0, takes));
    } else if (takes < left) {
        effect_in(g, between(0, takes));
    }
    later(takes, gig_finish, g, 0);
}

/* An attempt that this process answered before gets the same answer. */
static bool repeats(struct gig *g)
{
    const struct said *s = said_find(g->task, g->step, g->direction, g->attempt, true);

    if (!s || s->by != process_of(g->worker))
        return false;
    g->failed = true;
    g->code = "as said before";
    g->retryable = s->retryable;
    g->effect = s->effect;
    later(between(0, 5), gig_finish, g, 0);
    return true;
}

/* ---- workers ---- */

static bool holds(const struct worker *w, struct slice token)
{
    for (const struct link *l = w->gigs.next; l != &w->gigs; l = l->next) {
        const struct gig *g = (const struct gig *)(const void *)l; /* its link comes first */
        if (slice_eq(g->token, token))
            return true;
    }
    return false;
}

/* Also of an item. */
static uint32_t unit_asked(const struct errand *e)
{
    struct token k;
    bool ok = token_parse(e->token, &k);

    ASSERT(ok);
    return k.item.any ? unit_of(k.step, k.item.generation, k.item.number)
                      : flow_step_number(e->step);
}

void worker_gets(struct worker *w, const struct errand *e, uint32_t from)
{
    if (holds(w, e->token)) {
        trace("%s has it already: %.*s", w->name, SLICE_ARG(e->task));
        return;
    }
    if (e->deadline <= world.now) {
        covered(COVER_ANSWER_TOO_LATE);
        trace("%s has no time left for %.*s", w->name, SLICE_ARG(e->task));
        return;
    }
    struct gig *g = arena_alloc(&world.arena, sizeof *g);
    *g = (struct gig){.worker = w,
                      .token = arena_copy(&world.arena, e->token),
                      .task = subject_find(e->task),
                      .step = unit_asked(e),
                      .attempt = e->attempt,
                      .direction = e->direction,
                      .home = from,
                      .deadline = e->deadline,
                      .heartbeat_ms = e->heartbeat_ms,
                      .effect = EFFECT_NONE};
    uint32_t *begun = &ledger_of(g->task, g->step)->begun[g->direction];
    g->again = *begun == g->attempt && weather.records;
    *begun = g->attempt;
    list_push(&w->gigs, &g->link);
    later(g->deadline - world.now, gig_deadline, g, 0);
    if (g->heartbeat_ms == 0)
        beats_follow(g);
    if (repeats(g))
        return;
    if (script)
        script(g);
    if (!long_follow(g) && !script)
        behave(g);
}

void worker_stops(struct worker *w, struct slice token)
{
    LIST_FOREACH (l, after, &w->gigs) {
        struct gig *g = CONTAINER_OF(l, struct gig, link);
        if (!slice_eq(g->token, token) || g->finished || chance(weather.ignores_stop))
            continue;
        covered(COVER_STOPPED);
        gig_forget(g);
    }
}

static void wakes(void *arg, uint64_t life)
{
    struct worker *w = arg;
    bool unsaid[NAMES_MAX] = {0};

    if (life != w->life || !w->up)
        return;
    LIST_FOREACH (l, after, &w->gigs) {
        const struct gig *g = CONTAINER_OF(l, struct gig, link);
        unsaid[g->home] |= g->finished && !g->in;
    }
    for (uint32_t to = 0; to < nodes.names && w->up && life == w->life; to++)
        if (!w->poll[to])
            wire_send(w, to, true);
        else if (!w->handing[to]
                 && ((unsaid[to] && (script || chance(800))) || wire_asks_too_much(w, to)))
            wire_send(w, to, false);
}

void worker_wakes_up(struct worker *w, int64_t delay_ms)
{
    later(delay_ms, wakes, w, w->life);
}

static void name(struct worker *w, uint32_t number)
{
    (void)snprintf(w->name, sizeof w->name, "a%u-%u.%u", w->service, number % 100, w->names % 1000);
}

static void rises(void *arg, uint64_t life)
{
    struct worker *w = arg;

    if (life != w->life || w->up)
        return;
    if (chance(300)) {
        w->names++;
        name(w, (uint32_t)(w - workers));
    }
    trace("%s is up", w->name);
    w->up = true;
    worker_wakes_up(w, 0);
}

void worker_dies(struct worker *w, const char *when)
{
    if (!w->up || world.calm)
        return;
    trace("%s dies %s", w->name, when);
    w->up = false;
    w->life++;
    for (struct link *first = NULL; (first = list_first(&w->gigs));) {
        struct gig *g = CONTAINER_OF(first, struct gig, link);
        if (chance(200))
            link_remove(&g->link); /* its request elsewhere may still be carried out */
        else
            gig_forget(g);
        g->finished = true; /* but nobody will report it */
    }
    wire_hang_up(w);
    later(spread(5, 60000), rises, w, w->life);
}

void agents_begin(uint32_t services)
{
    worker_count = 0;
    script = NULL;
    for (uint32_t s = 0; s < services; s++)
        for (uint32_t n = 1 + below(WORKERS_MAX / SERVICES_MAX); n > 0; n--) {
            struct worker *w = &workers[worker_count++];
            *w = (struct worker){.service = s, .up = true};
            w->concurrency = 1 + below(chance(200) ? 20 : 3);
            w->says_holding = chance(900);
            w->calls_home = true;
            name(w, worker_count);
            list_init(&w->gigs);
            worker_wakes_up(w, spread(1, chance(200) ? 60000 : 500));
        }
    wire_begin();
}

void agents_calm(void)
{
    for (uint32_t i = 0; i < worker_count; i++)
        if (!workers[i].up)
            rises(&workers[i], workers[i].life);
}

/* ---- for scenes ---- */

static void acts_past_deadline(struct gig *g, const struct act *a, int64_t left)
{
    g->hangs = true;
    covered(COVER_HANG);
    if (a->effect || a->says == SAYS_DONE)
        effect_in(g, left + a->takes);
    later(left + a->takes, gig_finish, g, 0);
}

void gig_acts(struct gig *g, const struct act *a)
{
    bool unknown = a->says == SAYS_WHO_KNOWS;

    g->mute = a->mute;
    if (a->says == SAYS_ELSEWHERE) {
        long_goes_elsewhere(g, a->takes, a->comes);
        return;
    }
    if (a->says != SAYS_DONE && a->says != SAYS_NOTHING)
        says_error(g,
                   a->says == SAYS_REFUSED ? "refused"
                   : unknown               ? "who knows"
                                           : "try again",
                   a->says != SAYS_REFUSED, unknown ? EFFECT_UNKNOWN : EFFECT_NONE);
    if (a->wishes)
        g->retry_after_ms = a->wishes;
    if (a->past) {
        acts_past_deadline(g, a, g->deadline - world.now);
        return;
    }
    g->hangs = a->keeps;
    if (a->effect || a->says == SAYS_DONE)
        effect_in(g, between(0, a->takes));
    if (a->dies)
        later(a->takes, dies_with_it, g, 0);
    else if (a->says != SAYS_NOTHING)
        later(a->takes, gig_finish, g, 0);
}

void agents_begin_scene(uint32_t places, uint32_t absent, void (*asked)(struct gig *g))
{
    worker_count = 0;
    script = asked;
    for (uint32_t s = 0; s < SERVICES_MAX; s++) {
        struct worker *w = &workers[worker_count++];
        *w = (struct worker){.service = s, .concurrency = places, .says_holding = true};
        name(w, worker_count);
        list_init(&w->gigs);
        w->up = !(absent & BIT(s));
        if (w->up)
            worker_wakes_up(w, between(0, 50));
    }
    wire_begin();
}

void agents_serve_one(void)
{
    for (uint32_t i = 0; i < worker_count; i++) {
        workers[i].service = 0;
        name(&workers[i], i + 1);
    }
}

void agents_leave(uint32_t service)
{
    struct worker *w = &workers[service];

    w->up = false;
    w->life++;
    for (struct link *first = NULL; (first = list_first(&w->gigs));)
        gig_forget(CONTAINER_OF(first, struct gig, link));
    wire_hang_up(w);
}

struct worker *agents_worker(uint32_t number)
{
    return number < worker_count ? &workers[number] : NULL;
}

uint32_t agents_at_work(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < worker_count; i++)
        LIST_FOREACH (l, after, &workers[i].gigs) {
            count += !CONTAINER_OF(l, struct gig, link)->finished;
        }
    return count;
}

void agents_come(uint32_t service)
{
    rises(&workers[service], workers[service].life);
}

void agents_die(uint32_t service)
{
    worker_dies(&workers[service], "for the scene");
}

void agents_turn_to(uint32_t to)
{
    for (uint32_t i = 0; i < worker_count; i++)
        LIST_FOREACH (l, after, &workers[i].gigs) {
            struct gig *g = CONTAINER_OF(l, struct gig, link);
            g->home = to;
        }
}
