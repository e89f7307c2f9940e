/* Tasks in memory: stubs, loading, reloading, dropping, and deciding events on them (live_decide).
 * landed.c brings the rows; start.c goes on from there. */

#include "tasks/live.h"

#include <stdlib.h>

#include "store/row_request.h"
#include "tasks/breakers.h"
#include "tasks/calls.h"
#include "tasks/family.h"
#include "tasks/limits.h"
#include "tasks/pulses.h"
#include "tasks/queue.h"
#include "tasks/silence.h"
#include "tasks/task_inbox.h"

bool live_any_open(const struct live *l)
{
    LIST_FOREACH (link, after, &l->active)
        if (step_is_open(&l->task.steps[CONTAINER_OF(link, struct live_step, active)->step]))
            return true;
    return false;
}

/* No instance has it from now on. */
static void detach_instance(struct tasks *ts, struct live_step *ls)
{
    struct work *w = ls->pending ? ls->work : NULL;

    silence_end(ts, ls);
    if (ls->stop)
        ls->instance->stops--;
    limits_close(ls);
    link_remove(&ls->assigned);
    if (ls->work) {
        ASSERT(ls->work->assigned_count > 0);
        ls->work->assigned_count--;
        ls->work = NULL;
    }
    ls->instance = NULL;
    ls->pending = ls->delivered = ls->stop = ls->stop_sent = false;
    ls->seen = 0; /* calls are counted per instance, and the next attempt may go to another one */
    if (w)
        call_settle(ts, w, 1); /* the call will not carry it */
}

void live_detach_step(struct tasks *ts, struct live_step *ls)
{
    queue_leave(ts, ls);
    ls->elsewhere = false;
    detach_instance(ts, ls);
}

void live_goes_elsewhere(struct tasks *ts, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];
    const struct attempt *a = step_open_attempt(&l->task.steps[step]);

    ASSERT(a);
    ls->handed_over = (struct handed_over){.instance = a->instance,
                                           .direction = a->direction,
                                           .began_at = a->started_at};
    breakers_end_trial(l, step);
    ts->counts.open_attempts -= link_is_in(&ls->sent);
    detach_instance(ts, ls);
    ls->elsewhere = true;
}

void live_unload(struct tasks *ts, struct live *l)
{
    if (!l->loaded)
        return;
    LIST_FOREACH (link, after, &l->active) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        ts->counts.open_attempts -= link_is_in(&ls->sent);
        breakers_end_trial(l, ls->step);
        if (ls->counted)
            health_lost(&ls->instance->health);
        live_detach_step(ts, ls);
    }
    list_init(&l->active);
    heap_remove(&ts->naps, &l->nap);
    link_remove(&l->dirty_link);
    link_remove(&l->undecided);
    link_remove(&l->item_link);
    arena_fini(&l->arena);
    l->task = (struct task){0};
    l->steps = NULL;
    l->items = NULL;
    l->awaits_items = false;
    l->items_at = 0;
    l->encoded = NULL;
    l->reply = (struct reply){0};
    l->messages = (struct told){0};
    l->family = (struct family_told){0};
    l->definition = NULL;
    l->fx = (struct effects){0};
    l->bulk_at = l->bulk_stored;
    memset(l->ended, 0, sizeof l->ended);
    l->loaded = l->fresh = l->erred = false;
}

void live_reload(struct tasks *ts, struct live *l)
{
    ASSERT(!l->in_flight);
    inbox_rewind(l);
    limits_keep(l);
    live_unload(ts, l);
    l->reload = false;
    link_remove(&l->load_link);
    list_push(&ts->loads, &l->load_link);
}

void live_drop(struct tasks *ts, struct live *l)
{
    ASSERT(list_empty(&l->inbox));
    ASSERT(list_empty(&l->applied));
    ASSERT(!l->in_flight);
    live_unload(ts, l);
    link_remove(&l->load_link);
    link_remove(&l->inbox_link);
    link_remove(&l->undecided); /* a submission may wait there before there is a task */
    pulses_forget_all(l);
    limits_forget(l);
    (void)map_remove(&ts->lives, l->id);
    ts->counts.live--;
    free(l);
}

void live_dirty(struct tasks *ts, struct live *l)
{
    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    if (!link_is_in(&l->dirty_link))
        list_push(&ts->dirty, &l->dirty_link);
}

/* May the event change what conditions see? They see steps that have ended, and the task. */
static bool conditions_may_see(const struct event *e, enum answer answer)
{
    switch (e->kind) {
    case EVENT_START:
    case EVENT_NOT_SENT:
    case EVENT_SEND_AGAIN:
    case EVENT_ELSEWHERE:
    case EVENT_TIMEOUT:
    case EVENT_SILENCE:
    case EVENT_EXTEND:
    case EVENT_CONDITION:
    case EVENT_BAD_INPUT:
    case EVENT_BEGIN:
    case EVENT_DUE:
    case EVENT_UNTIL:
    case EVENT_SIGNAL:
    case EVENT_TAKE:
    case EVENT_DROP:
    case EVENT_VOTE:
    case EVENT_DECIDED:
    case EVENT_CLAIM:
    case EVENT_RELEASE:
    case EVENT_HASTEN:
    case EVENT_BRING:
        return false;
    case EVENT_RESULT:
        return answer != ANSWER_ACCEPTED; /* of a step that ended without this result */
    case EVENT_DEADLINE:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_UNDO:
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_CORRECT:
    case EVENT_SUPPLY:
    case EVENT_RESOLVE:
    case EVENT_RETRY_FROM:
    case EVENT_CLOSE:
    case EVENT_REOPEN:
    case EVENT_OVERRUN:
    case EVENT_CHILD:
    case EVENT_PARENT:
    case EVENT_PARENT_PAUSE:
    case EVENT_PARENT_RESUME:
        break;
    }
    return true;
}

static void forget_conditions(struct live *l)
{
    for (uint16_t i = 0; l->definition->has_decisions && i < l->task.step_count; i++) {
        l->steps[i].holds = false;
        l->steps[i].signals_seen = 0;
    }
}

/* The step with which the unit is written. */
static int written_with(const struct live *l, int unit)
{
    bool there = unit >= 0 && unit < task_unit_count(&l->task);

    return there ? unit_step(&l->definition->workflow, (uint16_t)unit) : unit;
}

enum answer live_decide(struct tasks *ts, struct live *l, const struct event *e)
{
    enum answer answer = decide(&l->definition->workflow, &l->task, e, tasks_now(ts), &l->fx);

    if (l->fx.any_step || e->step >= 0)
        encoded_look_at(l->encoded, l->fx.any_step ? -1 : written_with(l, e->step));
    if (conditions_may_see(e, answer))
        forget_conditions(l);
    if (l->fx.changed)
        live_dirty(ts, l);
    return answer;
}

/* After a restart it is unknown whether an open attempt reached its instance. It counts as
 * delivered until the instance reports what it holds. */
static void adopt_open_attempt(struct tasks *ts, struct live *l, uint16_t i)
{
    const struct attempt *a = step_open_attempt(&l->task.steps[i]);
    struct live_step *ls = &l->steps[i];

    if (!a)
        return;
    live_activate(ls);
    ls->elsewhere = a->elsewhere;
    if (a->elsewhere)
        return; /* its instance is done with it */
    const struct workflow_step *ws = &l->definition->workflow.steps[i];
    const struct call_spec *spec = a->direction == DIRECTION_UNDO ? &ws->undo : &ws->call;
    struct agent *agent = dispatch_agent(&ts->dispatch, spec->agent);
    limits_open(ts, ls, dispatch_lane(agent, spec->action), dispatch_instance(agent, a->instance));
    ls->delivered = true;
    if (a->direction != step_next_direction(&l->definition->workflow, &l->task, i))
        call_stop(ls);
    silence_begin_anew(ts, ls);
    ls->tries = agent;
    ls->trial =
        breaker_adopt(&agent->breaker, &agent->settings.breaker, a->started_at, tasks_now(ts));
    if (ls->instance->called)
        call_wake(ts, ls->instance);
}

/* False: it names a step that the workflow does not have, or an item that is not at work. */
static bool event_of_request(const struct live *l, const struct request_item *i, struct event *ret)
{
    const struct item_ref item = {i->of_item, i->generation, i->item};

    *ret = (struct event){.kind = EVENT_DEADLINE, .step = -1};
    switch (i->kind) {
    case REQUEST_DEADLINE:
        return true;
    case REQUEST_EXTEND:
        ret->kind = EVENT_EXTEND;
        ret->until = i->until;
        return true;
    case REQUEST_ATTEMPT:
        ret->kind = EVENT_TIMEOUT;
        ret->step = live_unit(l, workflow_step_index(&l->definition->workflow, i->step), &item);
        ret->direction = i->direction;
        ret->attempt = i->attempt;
        ret->until = i->until;
        return ret->step >= 0;
    }
    UNREACHABLE();
}

static void post_requests(struct tasks *ts, struct live *l, struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct request r;
    struct event e;

    if (!text.ptr)
        return;
    row_request_read(text, &a, &r);
    for (size_t i = 0; i < r.count; i++)
        if (event_of_request(l, &r.list[i], &e))
            inbox_post_event(ts, l->id, &e);
}

static void definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct tasks *ts = CONTAINER_OF(w, struct tasks, definitions);
    (void)story; /* a failure of the store shows when the rows are read */

    for (struct link *first = NULL; (first = list_first(&ts->awaiting_definition));) {
        link_remove(first);
        CONTAINER_OF(first, struct live, load_link)->definition_reads += err == ERR_OK;
        list_push(&ts->loads, first);
    }
}

/* A caller that arrives during a read may miss its definition, so it takes a second read to be
 * sure. */
enum { DEFINITION_READS_MAX = 2 };

bool live_awaits_definition(struct tasks *ts, struct live *l, const struct task_row *row)
{
    ASSERT(!l->loaded);
    if (l->definition_reads == DEFINITION_READS_MAX
        || registry_find(ts->workflows, row->workflow, row->version))
        return false;
    ts->definitions.done = definitions_read;
    if (!link_is_in(&ts->definitions.link) && list_empty(&ts->awaiting_definition)
        && !registry_read(ts->workflows, &ts->definitions))
        return false;
    list_push(&ts->awaiting_definition, &l->load_link);
    return true;
}

bool live_load(struct tasks *ts, struct live *l, const struct task_row *row, struct error *e)
{
    ASSERT(!l->loaded);
    l->definition = registry_find(ts->workflows, row->workflow, row->version);
    if (!l->definition) {
        (void)error_set(e, ERR_CORRUPT,
                        "workflow %.*s version %" PRId64
                        " is not known to this program: it is not in the store, or of a newer one",
                        SLICE_ARG(row->workflow), row->version);
        return false;
    }
    l->encoded = encoded_new(&l->definition->workflow, &l->arena);
    if (task_decode_kept(&l->definition->workflow, row, l->encoded, &l->arena, &l->task, e)
        != ERR_OK) {
        l->encoded = NULL;
        arena_fini(&l->arena);
        return false;
    }
    l->loaded = true;
    reply_read(l->task.reply_to, &l->arena, &l->reply);
    told_of(&l->task, &l->reply, &l->arena, &l->messages);
    family_told_of(l);
    l->erred = l->task.state == TASK_ERROR;
    l->row_wake_at = row->wake_at;
    l->row_seq = row->seq;
    l->has_waits = row_waits_for_several(row);
    l->row_lock_since = row->lock_since;
    l->row_queues = row_queues(row);
    l->resend_wanted = false; /* its instances are poked below */
    l->steps = arena_alloc(&l->arena, task_unit_count(&l->task) * sizeof *l->steps);
    for (uint16_t i = 0; i < task_unit_count(&l->task); i++) {
        struct live_step *ls = &l->steps[i];
        list_init(&ls->sent);
        list_init(&ls->assigned);
        ls->live = l;
        ls->step = i;
        adopt_open_attempt(ts, l, i);
    }
    if (l->task.slot_count > 0)
        l->items = arena_alloc(&l->arena, l->task.step_count * sizeof *l->items);
    limits_kept(ts, l);
    post_requests(ts, l, row->request);
    return true;
}

/* Everything about the step is durable and reported. */
static bool rests(const struct live_step *ls)
{
    return !ls->queue_of && !ls->instance && !ls->elsewhere && ls->trial == 0;
}

void live_remove_resting(struct live *l)
{
    LIST_FOREACH (link, after, &l->active)
        if (rests(CONTAINER_OF(link, struct live_step, active)))
            link_remove(link);
}

static void detach_if_ended(struct tasks *ts, struct live *l, struct live_step *ls)
{
    if ((!ls->instance && !ls->elsewhere) || step_is_open(&l->task.steps[ls->step]))
        return;
    ts->counts.open_attempts -= link_is_in(&ls->sent);
    live_detach_step(ts, ls);
    pulses_forget(l, ls->step);
    counts_attempt_ended(l, ls->step);
}

/* Frees the places of attempts that have ended. */
void live_detach_ended(struct tasks *ts, struct live *l)
{
    LIST_FOREACH (link, after, &l->active)
        detach_if_ended(ts, l, CONTAINER_OF(link, struct live_step, active));
}

void live_detach_one(struct tasks *ts, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];

    if (link_is_in(&ls->active))
        detach_if_ended(ts, l, ls);
}
