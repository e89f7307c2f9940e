/* Construction, and the public functions that are not part of a turn. The turn: turn.c. Design:
 * scheduler.h; shared state: internal.h. */

#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#include "scheduler/internal.h"

enum {
    LIVE_MAX = 50000,
    BATCH_MAX = 2048,
    ROWS_MAX = 256, /* more than are at work */
    BATCH_BYTES = 16 << 20,
    LEASE_MS = 3000,
};

static struct scheduler_config config_with_defaults(const struct scheduler_config *c)
{
    struct scheduler_config all = *c;

    all.live_max = c->live_max ? c->live_max : LIVE_MAX;
    all.batch_max = c->batch_max ? c->batch_max : BATCH_MAX;
    all.rows_max = c->rows_max ? c->rows_max : ROWS_MAX;
    all.batch_bytes = c->batch_bytes ? c->batch_bytes : BATCH_BYTES;
    all.lease_ms = c->lease_ms ? c->lease_ms : LEASE_MS;
    all.overruns = NULL; /* taken */
    return all;
}

struct scheduler *scheduler_new(const struct scheduler_config *c, struct store_queue *store,
                                struct registry *workflows, struct token_key *key,
                                const struct clock *clock, const struct outside *outside)
{
    struct scheduler *s = calloc(1, sizeof *s);

    ASSERT(s);
    ASSERT(c->node.len > 0);
    ASSERT(c->lease_ms >= 0);
    ASSERT(store && workflows && key);
    s->config = config_with_defaults(c);
    s->store = store;
    s->key = key;
    s->outside = *outside;
    (void)snprintf(s->me_text, sizeof s->me_text, "%.*s/%" PRIu64, SLICE_ARG(c->node), c->boot);
    ASSERT(strlen(s->me_text) < sizeof s->me_text - 1);
    s->me = slice_of(s->me_text);
    const struct tasks_config tasks = {.me = s->me,
                                       .alone = !c->shared,
                                       .live_max = s->config.live_max,
                                       .grace_ms = c->grace_ms,
                                       .turn_steps = c->turn_steps};
    tasks_init(&s->tasks, &tasks, workflows, clock);
    list_init(&s->answers);
    list_init(&s->unreported);
    overruns_set(&s->tasks.overruns, c->overruns, c->overrun_count);
    s->taking_over = s->uncounted = true;
    s->locks = true; /* unknown: looked at once */
    for (size_t i = 0; i < DUES; i++)
        s->due_at[i] = 1; /* unknown: claim at once */
    return s;
}

void scheduler_is_reached_at(struct scheduler *s, struct slice url)
{
    s->url = url;
}

static void drop_all_lives(struct scheduler *s)
{
    for (;;) {
        size_t i = 0;
        struct live *l = map_next(&s->tasks.lives, &i);
        if (!l)
            return;
        commands_fail(s, l, &l->applied, ERR_BUSY, "the server ends");
        commands_fail(s, l, &l->inbox, ERR_BUSY, "the server ends");
        l->in_flight = false;
        live_drop(&s->tasks, l);
    }
}

static void drop_all_calls(struct scheduler *s)
{
    for (struct heap_node *n = NULL; (n = heap_min(&s->tasks.waits));) {
        struct work *w = CONTAINER_OF(n, struct work, timer);
        heap_remove(&s->tasks.waits, n);
        w->gone = true;
        call_close(&s->tasks, w);
    }
    work_answer_ready(s);
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    ASSERT(!scheduler_is_busy(s));
    commands_answer(s);
    drop_all_lives(s);
    drop_all_calls(s);
    messages_drop(s);
    link_remove(&s->tasks.definitions.link);
    limits_forget_lost(&s->tasks);
    tasks_fini(&s->tasks);
    buf_fini(&s->scratch);
    free(s);
}

void scheduler_ask(struct scheduler *s, struct ask *a)
{
    struct command *c = calloc(1, sizeof *c);

    ASSERT(c);
    ASSERT(a->id.len > 0);
    c->kind = COMMAND_ASK;
    c->ask = a;
    c->owned = true;
    inbox_post(&s->tasks, a->id, c);
}

bool scheduler_has(const struct scheduler *s, struct slice id)
{
    const struct live *l = map_get(&s->tasks.lives, id);

    return l && l->loaded && live_is_ours(&s->tasks, l);
}

const struct pulse *scheduler_pulse(const struct scheduler *s, struct slice task, uint16_t step,
                                    enum direction direction, uint32_t attempt)
{
    const struct live *l = live_find(&s->tasks, task);

    return l ? pulses_find(l, step, direction, attempt) : NULL;
}

void scheduler_pulses(const struct scheduler *s, struct slice task, struct arena *a,
                      struct pulses *ret)
{
    const struct live *l = live_find(&s->tasks, task);

    *ret = (struct pulses){0};
    if (l)
        pulses_copy_all(l, a, ret);
}

int64_t scheduler_silent_by(const struct scheduler *s, struct slice task, uint16_t step)
{
    const struct live *l = live_find(&s->tasks, task);

    return l && l->loaded && live_is_ours(&s->tasks, l) && step < task_unit_count(&l->task)
               ? l->steps[step].silent_by
               : 0;
}

void scheduler_bound_names(struct scheduler *s, size_t instances, size_t agents)
{
    s->tasks.dispatch.instances_max = instances;
    s->tasks.dispatch.agents_max = agents;
}

enum dispatch_room scheduler_room(const struct scheduler *s, const struct work *w)
{
    return dispatch_room(&s->tasks.dispatch, w);
}

bool scheduler_is_busy(const struct scheduler *s)
{
    return s->job || s->leaving;
}

void scheduler_leave(struct scheduler *s)
{
    shared_leave(s);
}

bool scheduler_is_drained(const struct scheduler *s)
{
    return s->draining && !s->job && list_empty(&s->tasks.dirty) && list_empty(&s->tasks.inboxes)
           && list_empty(&s->tasks.loads) && list_empty(&s->tasks.item_reads)
           && list_empty(&s->tasks.awaiting_definition) && list_empty(&s->tasks.undecided)
           && list_empty(&s->tasks.answerable) && list_empty(&s->answers)
           && list_empty(&s->unreported) && !s->checking_owned;
}

static size_t parked_calls(const struct scheduler *s)
{
    const struct agent *a = NULL;
    size_t parked = 0;

    for (size_t i = 0; (a = map_next(&s->tasks.dispatch.agents, &i));)
        parked += a->parked;
    return parked;
}

void scheduler_stats(const struct scheduler *s, struct scheduler_stats *ret)
{
    const struct task_counts *c = &s->tasks.counts;
    const struct effort *f = &s->tasks.effort;

    *ret = (struct scheduler_stats){
        .live = c->live,
        .open_attempts = c->open_attempts,
        .waiting = c->waiting,
        .parked = parked_calls(s),
        .bulk_waiting = c->bulk_waiting,
        .others_at = c->others_at,
        .changes = c->changes,
        .batches = c->batches,
        .conflicts = c->conflicts,
        .claims = c->claims,
        .submitted = c->submitted,
        .ended = c->ended,
        .unreadable = c->unreadable,
        .evaluations = f->evaluations,
        .turn_steps = f->last_turn,
        .turns_left_out = f->turns_left_out,
        .leased = !s->config.shared || s->lease_until > scheduler_now(s),
        .lease_until = s->lease_until,
        .replaced = s->replaced,
    };
    memcpy(ret->beats, c->beats, sizeof ret->beats);
    memcpy(ret->attempts, c->attempts, sizeof ret->attempts);
}

const struct tasks *scheduler_tasks(const struct scheduler *s)
{
    return &s->tasks;
}

bool scheduler_is_draining(const struct scheduler *s)
{
    return s->draining;
}

size_t scheduler_bulk_room(struct scheduler *s, size_t most)
{
    return queue_bulk_room(&s->tasks, most);
}

void scheduler_agent_stored(struct scheduler *s, const struct agent_row *row)
{
    breakers_stored(&s->tasks, row);
}

void scheduler_breaker_by_hand(const struct scheduler *s, struct slice name, bool open,
                               struct slice reason, struct buf *ret)
{
    breakers_by_hand(&s->tasks, name, open, reason, ret);
}

const struct dispatch *scheduler_dispatch(const struct scheduler *s)
{
    return &s->tasks.dispatch;
}
