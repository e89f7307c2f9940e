/* Heartbeats as they arrive: which are accepted, and what they show of their instance. What is kept
 * of them is in tasks/pulses.c. */

#include "scheduler/internal.h"

/* True if every task in work is in memory. A task that is not has then ended, runs no attempt here,
 * or its attempt was given up by the supervisor. */
static bool knows_all(const struct scheduler *s)
{
    return !s->config.shared && !s->taking_over && !s->checking_owned;
}

/* False if the task's state in memory may still change without a new event. */
static bool is_settled(const struct live *l)
{
    return !l->in_flight && !link_is_in(&l->dirty_link) && !link_is_in(&l->load_link);
}

static enum beat_status take_beat(struct scheduler *s, const struct heartbeats *call,
                                  struct heartbeat *b)
{
    if (!token_check(s->key, b->token, call->agent_name, &b->of))
        return BEAT_UNKNOWN;
    struct live *l = live_find(&s->tasks, b->of.task);
    if (!l)
        return knows_all(s) ? BEAT_LATE : BEAT_UNKNOWN;
    if (!l->loaded)
        return BEAT_UNKNOWN;
    if (!live_find_attempt_of(l, &b->of)) /* it may be an item at rest */
        return b->of.item.any && is_settled(l) ? BEAT_LATE : BEAT_UNKNOWN;
    const struct attempt *a = step_open_attempt(&l->task.steps[b->of.step]);
    struct live_step *ls = &l->steps[b->of.step];
    if (!a || a->direction != b->of.direction || a->number != b->of.attempt)
        return is_settled(l) ? BEAT_LATE : BEAT_UNKNOWN;
    if (a->elsewhere) /* its instance no longer works on it */
        return is_settled(l) ? BEAT_LATE : BEAT_UNKNOWN;
    if (!slice_eq(a->instance, call->instance_name) || (ls->pending && !ls->delivered))
        return BEAT_UNKNOWN;
    ASSERT(ls->instance);
    if (pulses_is_progress(l, b))
        instance_moved(ls->instance, scheduler_now(s));
    pulses_keep(l, b, scheduler_now(s));
    silence_broken(&s->tasks, ls);
    return BEAT_ACCEPTED;
}

static void note_stillness(struct instance *i, int64_t now)
{
    if (i->open > 0 && now - i->health.moved_at >= HEALTH_STILL_MS) /* true of few instances */
        health_beat(&i->health, others_moved_at(i), now);
}

static struct instance *note_life(struct scheduler *s, const struct heartbeats *call)
{
    struct agent *a = map_get(&s->tasks.dispatch.agents, call->agent_name);
    struct instance *i = a ? map_get(&a->instances, call->instance_name) : NULL;

    if (i) /* an unknown instance never called or was forgotten: heartbeats alone do not register it
            */
        i->heartbeat_at = scheduler_now(s);
    return i;
}

void scheduler_heartbeats(struct scheduler *s, struct heartbeats *call)
{
    for (size_t i = 0; i < call->count; i++) {
        call->list[i].status = take_beat(s, call, &call->list[i]);
        s->tasks.counts.beats[call->list[i].status]++;
    }
    struct instance *in = note_life(s, call);
    if (in)
        note_stillness(in, scheduler_now(s));
    if (in)
        call->stop_count = work_stops(s, in, call->arena, &call->stop);
}
