#include "scheduler/internal.h"

#include <stdlib.h>

/*
 * Heartbeats. They are kept in memory beside the task and nowhere else: a heartbeat decides
 * nothing, stores nothing and moves no complete-by. So heartbeats may be lost, late or duplicated
 * without harm, and a restarted node has none until the next one arrives. A step may still limit
 * how long an attempt may be silent: see silence.c.
 */

/* The latest heartbeat of an open attempt. */
struct kept_beat {
    struct link link; /* in the list of its live task */
    uint16_t step;
    enum direction direction;
    uint32_t attempt;
    struct pulse pulse; /* points behind this struct */
};

static struct kept_beat *kept_of(const struct live *l, uint16_t step)
{
    LIST_FOREACH (link, after, &l->beats) {
        struct kept_beat *k = CONTAINER_OF(link, struct kept_beat, link);
        if (k->step == step)
            return k;
    }
    return NULL;
}

static void kept_free(struct kept_beat *k)
{
    link_remove(&k->link);
    free(k);
}

void beats_forget(struct live *l, uint16_t step)
{
    struct kept_beat *k = kept_of(l, step);

    if (k)
        kept_free(k);
}

void beats_forget_all(struct live *l)
{
    for (struct link *first = NULL; (first = list_first(&l->beats));)
        kept_free(CONTAINER_OF(first, struct kept_beat, link));
}

struct slice beats_resume(const struct live *l, uint16_t step, enum direction d, uint32_t attempt)
{
    const struct kept_beat *k = kept_of(l, step);

    return k && k->direction == d && k->attempt == attempt ? k->pulse.resume : SLICE_NONE;
}

static struct slice bytes_put(char **at, struct slice s)
{
    char *to = *at;

    if (!s.ptr)
        return SLICE_NONE;
    memcpy(to, s.ptr, s.len);
    *at += s.len;
    return (struct slice){to, s.len};
}

/* Does the heartbeat report progress that the previous one did not? */
static bool is_progress(const struct live *l, const struct heartbeat *b)
{
    const struct kept_beat *k = kept_of(l, b->of.step);

    return !k || k->direction != b->of.direction || k->attempt != b->of.attempt
           || !slice_eq(k->pulse.progress, b->progress);
}

static void keep(struct live *l, const struct heartbeat *b, int64_t now)
{
    struct slice resume =
        b->resume.ptr ? b->resume : beats_resume(l, b->of.step, b->of.direction, b->of.attempt);
    struct kept_beat *k = malloc(sizeof *k + b->progress.len + b->message.len + resume.len);

    ASSERT(k);
    char *at = (char *)(k + 1);
    *k = (struct kept_beat){.step = b->of.step,
                            .direction = b->of.direction,
                            .attempt = b->of.attempt,
                            .pulse.at = now};
    k->pulse.progress = bytes_put(&at, b->progress);
    k->pulse.message = bytes_put(&at, b->message);
    k->pulse.resume = bytes_put(&at, resume);
    beats_forget(l, b->of.step);
    list_push(&l->beats, &k->link);
}

/* True if every task in work is in memory. A task that is not has then ended, runs no attempt here,
 * or its attempt was given up by the supervisor. */
static bool knows_all(const struct scheduler *s)
{
    return !s->config.shared && !s->taking_over && !s->looking;
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
    struct live *l = live_find(s, b->of.task);
    if (!l)
        return knows_all(s) ? BEAT_LATE : BEAT_UNKNOWN;
    if (!l->loaded || b->of.step >= l->task.step_count)
        return BEAT_UNKNOWN;
    const struct attempt *a = step_open_attempt(&l->task.steps[b->of.step]);
    struct live_step *ls = &l->steps[b->of.step];
    if (!a || a->direction != b->of.direction || a->number != b->of.attempt)
        return is_settled(l) ? BEAT_LATE : BEAT_UNKNOWN;
    if (a->elsewhere) /* its instance no longer works on it */
        return is_settled(l) ? BEAT_LATE : BEAT_UNKNOWN;
    if (!slice_eq(a->instance, call->instance_name) || (ls->pending && !ls->delivered))
        return BEAT_UNKNOWN;
    if (is_progress(l, b))
        instance_moved(ls->instance, scheduler_now(s));
    keep(l, b, scheduler_now(s));
    silence_broken(s, ls);
    return BEAT_ACCEPTED;
}

static void note_stillness(struct instance *i, int64_t now)
{
    if (i->open > 0 && now - i->health.moved_at >= HEALTH_STILL_MS) /* true of few instances */
        health_beat(&i->health, others_moved_at(i), now);
}

static struct instance *note_life(struct scheduler *s, const struct heartbeats *call)
{
    struct agent *a = map_get(&s->dispatch.agents, call->agent_name);
    struct instance *i = a ? map_get(&a->instances, call->instance_name) : NULL;

    if (i) /* an unknown instance never called or was forgotten: heartbeats alone do not register it
            */
        i->heartbeat_at = scheduler_now(s);
    return i;
}

void scheduler_beats(struct scheduler *s, struct heartbeats *call)
{
    for (size_t i = 0; i < call->count; i++) {
        call->list[i].status = take_beat(s, call, &call->list[i]);
        s->stats.beats[call->list[i].status]++;
    }
    struct instance *in = note_life(s, call);
    if (in)
        note_stillness(in, scheduler_now(s));
    if (in)
        call->stop_count = call_stops(s, in, call->arena, &call->stop);
}

const struct pulse *scheduler_pulse(const struct scheduler *s, struct slice task, uint16_t step,
                                    enum direction direction, uint32_t attempt)
{
    const struct live *l = map_get(&s->lives, task);
    const struct kept_beat *k = l ? kept_of(l, step) : NULL;

    return k && k->direction == direction && k->attempt == attempt ? &k->pulse : NULL;
}

void scheduler_pulses(const struct scheduler *s, struct slice task, struct arena *a,
                      struct pulses *ret)
{
    const struct live *l = map_get(&s->lives, task);
    size_t count = 0;

    *ret = (struct pulses){0};
    for (const struct link *i = l ? l->beats.next : NULL; i && i != &l->beats; i = i->next)
        count++;
    if (count == 0)
        return;
    ret->list = arena_alloc(a, count * sizeof *ret->list);
    LIST_FOREACH (i, after, &l->beats) {
        const struct kept_beat *k = CONTAINER_OF(i, struct kept_beat, link);
        ret->list[ret->count++] = (struct pulse_of){
            k->step,
            k->direction,
            k->attempt,
            {k->pulse.at, arena_copy(a, k->pulse.progress), arena_copy(a, k->pulse.message),
             arena_copy(a, k->pulse.resume)},
        };
    }
}

const char *beat_status_text(enum beat_status st)
{
    static const char *const texts[] = {
#define X(name, text) text,
        BEAT_STATUSES(X)
#undef X
    };
    return texts[st];
}
