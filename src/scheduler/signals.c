/* Signals that arrive, and those that are dropped: from an ask to an event for core/, and refusals
 * in words. Decides nothing: commands.c applies the event. Which step takes a signal: decisions.c.
 */

#include "scheduler/internal.h"

#include <stdio.h>

/* For the audit. */
static void describe(struct live *l, struct command *c)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "name", c->ask->signal.name);
    json_member_text_if(&b, "id", c->ask->signal.key);
    json_close(&b, '}');
    c->detail = arena_copy(&l->arena, buf_view(&b));
}

static void grow_signals(struct live *l)
{
    struct task *t = &l->task;

    if (!task_needs_signal_room(t))
        return;
    uint16_t cap = t->signal_cap ? (uint16_t)min_i64(2 * (int64_t)t->signal_cap, SIGNALS_MAX) : 2;
    struct signal *more = arena_alloc(&l->arena, cap * sizeof *more);
    if (t->signal_count > 0)
        memcpy(more, t->signals, t->signal_count * sizeof *more);
    t->signals = more;
    t->signal_cap = cap;
}

/* One that will not be kept must not cost the task's memory each time. Returns whether it is new,
 * with *ret as the task keeps it. */
static bool make_room(struct live *l, const struct signal *from, struct signal *ret)
{
    *ret = *from;
    if (task_find_signal(&l->task, from->key)
        || signal_obstacle(&l->definition->workflow, &l->task, from) != OBSTACLE_NONE)
        return false;
    ret->key = arena_copy(&l->arena, from->key);
    ret->name = arena_copy(&l->arena, from->name);
    ret->data.json = arena_copy(&l->arena, from->data.json);
    ret->content = arena_copy(&l->arena, from->content);
    grow_signals(l);
    return true;
}

void signal_event(struct live *l, struct command *c, struct event *ret)
{
    struct ask *a = c->ask;
    bool arrives = a->kind == ASK_SIGNAL;

    ASSERT(l->loaded);
    ASSERT(a->signal.name.ptr);
    a->story[0] = 0; /* of an earlier evaluation */
    a->refusal = OBSTACLE_NONE;
    a->decided = a->signal;
    if (!arrives || make_room(l, &a->signal, &a->decided))
        describe(l, c);
    *ret = (struct event){.kind = arrives ? EVENT_SIGNAL : EVENT_DROP,
                          .step = -1,
                          .signal = &a->decided};
}

/* Whether it concerns what the task does now, and is not only kept for later. */
static bool is_awaited(struct scheduler *s, const struct live *l, struct slice name)
{
    const struct workflow *w = &l->definition->workflow;

    if (signal_undoes(w, name))
        return l->task.paused_at == 0;
    for (uint16_t i = 0; i < l->task.step_count; i++)
        if (step_takes_signal(&w->steps[i], name)
            && step_awaits_signal(w, &l->task, i, scheduler_now(s)))
            return true;
    return false;
}

bool signal_is_awaited(struct scheduler *s, const struct live *l, const struct command *c)
{
    return c->ask->kind == ASK_SIGNAL && is_awaited(s, l, c->ask->signal.name);
}

bool signals_carried(struct scheduler *s, struct live *l, struct command *c)
{
    bool any = false;

    ASSERT(l->loaded);
    for (size_t i = 0; i < c->ask->signal_count; i++) {
        struct carried_signal *one = &c->ask->signals[i];
        struct signal kept;
        (void)make_room(l, &one->signal, &kept);
        one->refusal = signal_obstacle(&l->definition->workflow, &l->task, &one->signal);
        const struct event e = {.kind = EVENT_SIGNAL, .step = -1, .signal = &kept};
        enum answer answer = live_decide(&s->tasks, l, &e);
        one->fate = answer == ANSWER_ACCEPTED   ? CARRIED_ACCEPTED
                    : answer == ANSWER_REPEATED ? CARRIED_REPEATED
                                                : CARRIED_REFUSED;
        any |= one->fate == CARRIED_ACCEPTED && is_awaited(s, l, kept.name);
    }
    return any;
}

void signals_not_carried(struct command *c, enum obstacle why)
{
    for (size_t i = 0; i < c->ask->signal_count; i++) {
        c->ask->signals[i].fate = CARRIED_REFUSED;
        c->ask->signals[i].refusal = why;
    }
}

static void explain(const struct live *l, struct ask *a)
{
    const struct task *t = &l->task;
    const struct slice name = slice_cut(a->signal.name, ASK_NAME_TOLD);

    switch ((int)a->refusal) {
    case OBSTACLE_SIGNAL_UNWANTED:
        (void)snprintf(a->story, sizeof a->story,
                       "no step of task %.*s that is still to come waits for a signal \"%.*s\"",
                       SLICE_ARG(l->id), SLICE_ARG(name));
        return;
    case OBSTACLE_SIGNAL_FULL:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s keeps %d signals \"%.*s\", which is the most: drop some, or send "
                       "it again later",
                       SLICE_ARG(l->id), SIGNALS_KEPT_MAX, SLICE_ARG(name));
        return;
    case OBSTACLE_SIGNAL_MANY:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s was sent %u signals: it accepts %d, with values of %d MiB, and "
                       "would exceed that",
                       SLICE_ARG(l->id), t->signal_count, SIGNALS_MAX, SIGNALS_BYTES_MAX >> 20);
        return;
    case OBSTACLE_SIGNAL_OTHER:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s was sent another signal with this Idempotency-Key",
                       SLICE_ARG(l->id));
        return;
    case OBSTACLE_PIVOT:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s cannot be undone any more: a pivot took effect, or may have",
                       SLICE_ARG(l->id));
        return;
    default:
        (void)snprintf(a->story, sizeof a->story, "not possible while task %.*s is %s%s",
                       SLICE_ARG(l->id), task_state_text(t->state), operator_direction_text(t));
        return;
    }
}

void signal_explain(const struct live *l, struct command *c)
{
    struct ask *a = c->ask;
    const struct signal *known = task_find_signal(&l->task, a->signal.key);

    a->signal_at = known ? known->at : 0;
    if (c->answer != ANSWER_REFUSED)
        return;
    if (a->kind == ASK_DROP && !task_state_is_end(l->task.state)) {
        a->refusal = OBSTACLE_STATE;
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s keeps no such signal that no step has taken", SLICE_ARG(l->id));
        return;
    }
    a->refusal = a->kind == ASK_DROP
                     ? OBSTACLE_STATE
                     : signal_obstacle(&l->definition->workflow, &l->task, &a->signal);
    explain(l, a);
}
