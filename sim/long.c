/* Long steps: attempts with a limit on silence and the heartbeats that they need, and attempts
 * that end elsewhere, by their token (long.h). Draws from a random source of its own. agents.c
 * has ordinary attempts; scene_long.c has scenes. */

#include "sim/long.h"

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { BUSY_RECORD_MS = 5, POST_PATIENCE_MS = 3000, POSTS_MAX = 6, SOMEBODY = 1 << 20 };

static struct prng prng;
static bool on, scripted;
static uint64_t somebodies;

void long_begin(void)
{
    prng = (struct prng){.state = hash_stable(&world.seed, sizeof world.seed) ^ 0x10e6};
    on = prng_below(&prng, 2) == 0;
    scripted = false;
    somebodies = 0;
}

void long_begin_scene(void)
{
    long_begin();
    scripted = true;
}

static bool sometimes(uint32_t per_mille)
{
    return !scripted && prng_below(&prng, 1000) < per_mille;
}

static int64_t some_ms(int64_t most)
{
    return 1 + prng_below(&prng, (uint32_t)max_i64(most, 1));
}

static int64_t draw_silence(int64_t complete_by_ms)
{
    if (complete_by_ms < 102 || sometimes(600))
        return 0;
    return 100 + some_ms(min_i64(complete_by_ms - 102, sometimes(500) ? 500 : 20000)) - 1;
}

void long_draw(struct flow_step *s)
{
    if (!on)
        return;
    s->heartbeat_ms = draw_silence(s->complete_by_ms);
    s->undo_heartbeat_ms = draw_silence(s->undo_complete_by_ms);
}

/* ---- required heartbeats ---- */

/* A heartbeat in transit. */
struct long_beat {
    struct gig *gig;
    uint32_t to;
    int64_t sent_at;
    struct slice instance, resume;
};

static void is_acknowledged(void *arg, uint64_t status)
{
    const struct long_beat *b = arg;
    struct gig *g = b->gig;

    if (status == BEAT_ACCEPTED)
        g->heard_at = max_i64(g->heard_at, b->sent_at);
    else if (g->beats_to == b->to) /* another node has the task by now */
        g->beats_to = (b->to + 1) % nodes.names;
}

static void note_beat(const struct node *n, const struct gig *g, struct slice resume)
{
    struct beaten *b = &g->task->beaten[g->step][g->direction][n->slot];
    bool left = b->attempt == g->attempt && b->boot == n->boot && b->left;

    *b = (struct beaten){g->attempt, n->boot, node_now(n), left || resume.ptr};
    covered(COVER_LONG_BEAT);
    if (resume.ptr)
        covered(COVER_RESUME_TOLD);
}

static void beat_arrives(void *arg, uint64_t ignored)
{
    struct long_beat *b = arg;
    struct arena a = {0};
    struct node *n = node_named(b->to);
    (void)ignored;

    if (!n || !node_is_up(n) || !node_is_awake(n) || !node_hears(n) || !node_schedules(n)) {
        if (!n || !node_is_up(n))
            later(some_ms(20), is_acknowledged, b, BEAT_UNKNOWN); /* the connection is refused */
        return;
    }
    struct heartbeat beat = {.token = b->gig->token, .resume = b->resume};
    struct heartbeats call = {.agent_name = text_of("a%u", b->gig->worker->service),
                              .instance_name = b->instance,
                              .list = &beat,
                              .count = 1,
                              .arena = &a};
    check_before_beat(n);
    scheduler_heartbeats(n->scheduler, &call);
    check_beat(n, &call, &beat);
    if (beat.status == BEAT_ACCEPTED)
        note_beat(n, b->gig, b->resume);
    if (!sometimes(weather.answer_lost))
        later(some_ms(4), is_acknowledged, b, beat.status);
    arena_fini(&a);
    node_turn_soon(n);
}

static void send_beat(struct gig *g)
{
    struct long_beat *b = arena_alloc(&world.arena, sizeof *b);

    *b = (struct long_beat){.gig = g,
                            .to = g->beats_to,
                            .sent_at = world.now,
                            .instance = arena_copy(&world.arena, slice_of(g->worker->name))};
    if (sometimes(400))
        b->resume =
            text_of("{\"of\":\"%s\",\"attempt\":%u}", direction_text(g->direction), g->attempt);
    if (sometimes(weather.call_lost))
        return;
    later(sometimes(weather.call_slow) ? some_ms(4000) : some_ms(3), beat_arrives, b, 0);
}

/* Later events belong to another process, or to none. */
static bool is_over(const struct gig *g)
{
    return g->dead || g->worker->life != g->life;
}

static void beats(void *arg, uint64_t left)
{
    struct gig *g = arg;

    if (is_over(g) || (g->finished && g->elsewhere))
        return;
    send_beat(g);
    if (left > 1)
        later(g->beat_every, beats, g, left - 1);
}

/* A worker without acknowledged heartbeats stops, as at its deadline. */
static void was_heard(void *arg, uint64_t n)
{
    struct gig *g = arg;
    (void)n;

    if (is_over(g) || g->finished || g->hangs)
        return;
    if (world.now < g->heard_at + g->heartbeat_ms) {
        later(g->heard_at + g->heartbeat_ms - world.now, was_heard, g, 0);
        return;
    }
    covered(COVER_UNHEARD);
    trace("%s was not heard, and leaves %s/s%u", g->worker->name, g->task->id, g->step);
    gig_done_with(g);
    worker_wakes_up(g->worker, 0);
}

static void begin_beats(struct gig *g)
{
    uint32_t style = scripted || world.calm ? 0 : prng_below(&prng, 10);
    uint64_t count = UINT64_MAX;

    g->heard_at = world.now;
    g->beats_to = g->home;
    g->beat_every = max_i64(1, g->heartbeat_ms / (3 + (style & 1)));
    if (style == 6 || style == 7) /* stops in the middle */
        count = (uint64_t)some_ms(6);
    if (style == 8) /* is too slow */
        g->beat_every = g->heartbeat_ms + some_ms(g->heartbeat_ms);
    if (style == 9 || (scripted && g->mute))
        count = 0;
    if (count > 0)
        later(scripted ? 1 : some_ms(g->beat_every), beats, g, count);
    if (!g->mute)
        later(g->heartbeat_ms, was_heard, g, 0);
}

/* ---- elsewhere ---- */

/* Somebody with a token, who ends its attempt. */
struct somebody {
    struct slice token;
    struct subject *task;
    uint32_t step, attempt, tries;
    enum direction direction;
    int64_t deadline;
    uint64_t number;
    bool forged, settled;
    struct work_result result;
};

struct posting {
    struct ask ask;
    struct somebody *by;
    struct work_result result;
};

static void posts(void *arg, uint64_t tries);

static void nobody_answers(void *arg, uint64_t tries)
{
    struct somebody *s = arg;

    if (!s->settled && s->tries == tries && tries < POSTS_MAX)
        posts(s, tries);
}

static void post_arrives(void *arg, uint64_t tries)
{
    struct somebody *s = arg;
    struct node *n = node_any();

    if (n && node_sleeps(n, post_arrives, arg, tries))
        return;
    if (!n || !node_hears(n) || !node_schedules(n))
        return;
    struct posting *p = arena_alloc(&world.arena, sizeof *p);
    *p = (struct posting){.by = s, .result = s->result};
    p->ask =
        (struct ask){.kind = ASK_END, .user = p, .id = slice_of(s->task->id), .result = &p->result};
    trace("somebody ends %s/%s %u at %s", s->task->id, unit_name(s->step), s->attempt, n->me);
    scheduler_ask(n->scheduler, &p->ask);
    node_turn_soon(n);
}

static void posts(void *arg, uint64_t tries)
{
    struct somebody *s = arg;
    (void)tries;

    s->tries++;
    if (!sometimes(weather.call_lost))
        later(some_ms(4), post_arrives, s, s->tries);
    if (sometimes(weather.call_doubled)) /* sends it twice */
        later(some_ms(3000), post_arrives, s, s->tries);
    later(POST_PATIENCE_MS, nobody_answers, s, s->tries);
}

void long_answered(const struct node *n, struct ask *a)
{
    struct posting *p = a->user;
    struct somebody *s = p->by;

    trace("%s answers somebody: %s: %s", n->me, err_text(a->outcome),
          a->outcome == ERR_OK ? result_status_text(p->result.status) : "");
    if (a->outcome == ERR_NOT_FOUND && !s->task->deleted)
        broken("a task that is there is found", "%s, by its token", s->task->id);
    if (a->outcome != ERR_OK)
        return; /* again */
    s->settled = true;
    if (s->forged) {
        if (p->result.status != RESULT_UNKNOWN)
            broken("a forged token ends nothing", "%s/s%u", s->task->id, s->step);
        covered(COVER_FORGED_END);
        return;
    }
    check_result(&p->result);
    if (p->result.status == RESULT_ACCEPTED)
        covered(COVER_ENDED_ELSEWHERE);
}

static void says(struct somebody *s, const char *code, bool retryable, enum effect effect)
{
    s->result.failed = true;
    s->result.error = (struct fault_note){slice_of(code), SLICE("said somebody")};
    s->result.retryable = retryable;
    s->result.effect = effect;
}

/* Its effect is the service's: it uses the same record, in a short transaction. */
static bool takes_effect(const struct somebody *s, enum ledger_verdict verdict)
{
    ledger_commit(s->task, s->step, s->direction, verdict);
    return s->direction == DIRECTION_UNDO || verdict != LEDGER_UNDONE;
}

static void makes_up_their_mind(void *arg, uint64_t ignored)
{
    struct somebody *s = arg;
    enum ledger_verdict verdict;

    if (world.now >= s->deadline)
        return;
    if (!ledger_open(s->task, s->step, s->direction, s->attempt, s, &verdict)) {
        later(BUSY_RECORD_MS, makes_up_their_mind, s, ignored);
        return;
    }
    uint32_t roll = scripted ? 0 : prng_below(&prng, 20);
    if (roll < 14) {
        if (takes_effect(s, verdict))
            s->result.output = text_of("{\"id\":\"%s-%u\",\"n\":%u}", s->task->id, s->step,
                                       ledger_of(s->task, s->step)->number);
        else
            says(s, "undone_before", false, EFFECT_NONE);
    } else if (roll < 16) {
        says(s, "refused", false, EFFECT_NONE);
    } else if (roll < 18) {
        says(s, "later", true, EFFECT_NONE);
    } else {
        if (roll == 18)
            (void)takes_effect(s, verdict);
        says(s, "who knows", true, EFFECT_UNKNOWN);
    }
    ledger_close(s->task, s->step, s);
    const struct said said = {.by = SOMEBODY + s->number,
                              .step = s->step,
                              .number = s->attempt,
                              .direction = s->direction,
                              .failed = s->result.failed,
                              .retryable = s->result.retryable,
                              .effect = s->result.effect};
    said_note(s->task, &said);
    posts(s, 0);
}

/* With an invented token. */
static void make_up(const struct gig *g)
{
    struct somebody *s = arena_alloc(&world.arena, sizeof *s);
    CLEANUP(buf_fini) struct buf b = {0};

    *s = (struct somebody){.task = g->task, .step = g->step, .forged = true};
    buf_slice(&b, g->token);
    b.ptr[b.len - 2 - prng_below(&prng, 8)] ^= 1;
    s->result.token = arena_copy(&world.arena, buf_view(&b));
    s->result.output = SLICE("1");
    later(some_ms(2000), posts, s, 0);
}

static void hands_over(void *arg, uint64_t n)
{
    struct gig *g = arg;
    (void)n;

    if (g->dead || g->finished)
        return;
    g->finished = g->elsewhere = true;
    if (!unit_is_item(g->step))
        g->task->handed_over[g->step][g->direction] = g->attempt;
    trace("%s is done with %s/%s %u", g->worker->name, g->task->id, unit_name(g->step), g->attempt);
    worker_wakes_up(g->worker, 0);
}

void long_goes_elsewhere(struct gig *g, int64_t takes, int64_t comes)
{
    struct somebody *s = arena_alloc(&world.arena, sizeof *s);

    *s = (struct somebody){.task = g->task,
                           .step = g->step,
                           .attempt = g->attempt,
                           .direction = g->direction,
                           .deadline = g->deadline,
                           .number = ++somebodies};
    s->result.token = g->token;
    later(takes, hands_over, g, 0);
    if (comes > 0)
        later(comes, makes_up_their_mind, s, 0);
}

bool long_follow(struct gig *g)
{
    g->life = g->worker->life;
    if (g->heartbeat_ms > 0)
        begin_beats(g);
    if (!on || scripted)
        return false;
    if (sometimes(10))
        make_up(g);
    if (!sometimes(world.calm ? 20 : 100))
        return false;
    int64_t left = g->deadline - world.now;
    int64_t takes = some_ms(min_i64(left, 2000));
    int64_t comes = sometimes(150) ? 0 : sometimes(300) ? some_ms(takes) : some_ms(left);
    long_goes_elsewhere(g, takes, comes);
    return true;
}
