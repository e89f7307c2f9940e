/* Compares the core with the observer's model of a task, step by step: world_check() of
 * history_world.h. Part of the tests. */
#include "core/history_world.h"

#include "core/attempts.h"

static enum step_state state_of(const struct world_step *s)
{
    static const enum step_state forward[] = {STEP_WAITING, STEP_RUNNING, STEP_COMPLETED,
                                              STEP_FAILED, STEP_SKIPPED};
    static const enum step_state back[] = {STEP_UNDOING, STEP_UNDOING, STEP_UNDONE, STEP_FAILED};

    return s->back ? back[s->phase] : forward[s->phase];
}

static void check_attempt(const struct world_step *s, const struct attempt *k,
                          const char *(*about)(void))
{
    static const enum effect effects[] = {EFFECT_UNKNOWN, EFFECT_NONE,    EFFECT_UNKNOWN,
                                          EFFECT_NONE,    EFFECT_UNKNOWN, EFFECT_HAPPENED};

    CHECK(k->number >= 1 && k->number <= s->count[k->direction], "%s: numbers", about());
    const struct world_attempt *a = &s->attempts[k->direction][k->number - 1];
    CHECK(k->complete_by == a->complete_by, "%s: complete-by", about());
    CHECK(k->effect == effects[a->end], "%s: the effect of %u", about(), k->number);
    CHECK((k->outcome == OUTCOME_OPEN) == (a->end == CALL_OPEN), "%s: open", about());
    CHECK((k->outcome == OUTCOME_LATE) == a->late, "%s: late", about());
    CHECK(k->elsewhere == a->away, "%s: elsewhere", about());
}

/* One key denotes one request. A compensation belongs to the last request. */
static void check_key(const struct world_step *s, const struct attempt *a, const struct attempt *b,
                      const char *(*about)(void))
{
    if (!a || a->direction == DIRECTION_UNDO)
        return;
    uint32_t one = s->attempts[0][a->number - 1].request;
    bool same = b->direction == DIRECTION_UNDO
                    ? b->generation == a->generation || one != s->request
                    : (b->generation == a->generation && b->round == a->round)
                          == (s->attempts[0][b->number - 1].request == one);
    CHECK(same, "%s: one key for two requests, or two for one", about());
}

/* All attempts are kept in order; or the first and last ones, and a count of the others. */
static void check_attempts(const struct world_step *s, const struct step *c,
                           const char *(*about)(void))
{
    const struct attempt *before = NULL;

    CHECK(c->attempt_count + c->dropped_count == s->count[0] + s->count[1], "%s: a count", about());
    for (uint16_t i = 0; i < c->attempt_count; i++) {
        const struct attempt *k = &c->attempts[i];
        CHECK(i == 0 || k->direction > k[-1].direction
                  || (k->direction == k[-1].direction && k->number > k[-1].number),
              "%s: order", about());
        check_attempt(s, k, about);
        check_key(s, before, k, about);
        before = k;
    }
    CHECK(c->dropped_count == 0 || c->attempt_count >= ATTEMPTS_KEPT - 1, "%s: dropped", about());
    for (uint16_t i = 0; i < c->attempt_count && i < ATTEMPTS_HEAD; i++) {
        const struct attempt *k = &c->attempts[i];
        uint32_t at = k->number + (k->direction == DIRECTION_UNDO ? s->count[0] : 0);
        CHECK(at == i + 1u, "%s: the first ones stay", about());
    }
}

/* The order in which merged attempts took effect may be unknown. Then doubt is kept, not lost. */
static void check_doubt(const struct world_step *s, const struct step *c,
                        const char *(*about)(void))
{
    if (c->dropped_count == 0) {
        CHECK(step_in_doubt(c) == world_doubt(s), "%s: doubt", about());
        CHECK(step_has_effect(c) == world_effect(s), "%s: effect", about());
        CHECK(step_doubt_until(c) == world_doubt_until(s), "%s: doubt until", about());
        return;
    }
    CHECK((step_in_doubt(c) || step_has_effect(c)) == (world_doubt(s) || world_effect(s)),
          "%s: merged: doubt or effect", about());
    CHECK(!world_effect(s) || step_has_effect(c), "%s: merged: effect", about());
    CHECK(step_doubt_until(c) >= world_doubt_until(s), "%s: merged: doubt until", about());
}

void world_check(const struct world *w, const struct task *t, int64_t now,
                 const char *(*about)(void))
{
    world_check_signals(w, t, about);
    world_check_votes(w, t, about);
    CHECK(t->paused_at == w->paused_at, "%s: paused", about());
    CHECK((t->closed_at != 0) == w->closed, "%s: closed", about());
    CHECK((w->back ? t->undo_complete_by : t->complete_by) == w->deadline[w->back],
          "%s: the task's complete-by", about());
    CHECK(t->not_before == w->not_before, "%s: not_before", about());
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        const struct step *c = &t->steps[i];
        CHECK(c->supplied == s->supplied, "%s: step %u: supplied", about(), i);
        CHECK(c->resolved == s->resolved, "%s: step %u: resolved", about(), i);
        CHECK(c->state == state_of(s), "%s: step %u is %s, not %s", about(), i,
              step_state_text(c->state), step_state_text(state_of(s)));
        CHECK((c->direction == DIRECTION_UNDO) == s->back, "%s: step %u: direction", about(), i);
        CHECK(c->attempt == s->count[s->back], "%s: step %u: attempt", about(), i);
        CHECK(c->failure_count == s->failures, "%s: step %u: failures", about(), i);
        CHECK(c->spared_count == s->spared, "%s: step %u: spared", about(), i);
        CHECK(c->wait_until == s->wait_until || s->phase != PHASE_IDLE
                  || (c->wait_until <= now && s->wait_until <= now),
              "%s: step %u: wait", about(), i);
        CHECK(c->begun_at == s->begun_at, "%s: step %u: begun", about(), i);
        CHECK(c->round == s->round && c->round_at == s->round_at
                  && c->repeat_until == s->repeat_until,
              "%s: step %u: round", about(), i);
        CHECK(step_is_answered(c) == (s->answered && s->phase == PHASE_IDLE),
              "%s: step %u: answered", about(), i);
        CHECK(c->complete_by == s->signal_by || s->phase != PHASE_IDLE || s->back
                  || (c->complete_by <= now && s->signal_by <= now && c->complete_by != 0),
              "%s: step %u: complete-by", about(), i);
        CHECK((c->resume.ptr != NULL) == s->resume, "%s: step %u: resume", about(), i);
        CHECK(c->child.number == s->kid.number && c->child.state == s->said,
              "%s: step %u: its child is %s, not %s", about(), i, child_state_text(c->child.state),
              child_state_text(s->said));
        check_doubt(s, c, about);
        check_attempts(s, c, about);
    }
}
