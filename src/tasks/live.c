/* Tasks in memory: stubs, loading, reloading, dropping, and deciding events on them (live_decide).
 * landed.c brings the rows; start.c goes on from there. */

#include "scheduler/internal.h"

#include <stdlib.h>

struct live *live_find(struct scheduler *s, struct slice id)
{
    return map_get(&s->lives, id);
}

struct live *live_stub(struct scheduler *s, struct slice id)
{
    struct live *l = calloc(1, sizeof *l + id.len + 1);

    ASSERT(l);
    memcpy(l->id_text, id.ptr, id.len);
    l->id = (struct slice){l->id_text, id.len};
    list_init(&l->inbox);
    list_init(&l->applied);
    list_init(&l->astir);
    list_init(&l->beats);
    list_init(&l->counted);
    map_put(&s->lives, l->id, l);
    s->stats.live++;
    return l;
}

void live_read(struct scheduler *s, struct slice id)
{
    list_push(&s->loads, &live_stub(s, id)->load_link);
}

bool live_is_ours(const struct scheduler *s, const struct live *l)
{
    return slice_eq(l->task.locked_by, s->me);
}

bool live_any_open(const struct live *l)
{
    LIST_FOREACH (link, after, &l->astir)
        if (step_is_open(&l->task.steps[CONTAINER_OF(link, struct live_step, astir)->step]))
            return true;
    return false;
}

void live_stir(struct live_step *ls)
{
    if (!link_is_in(&ls->astir))
        list_push(&ls->live->astir, &ls->astir);
}

/* No instance has it from now on. */
static void detach_instance(struct scheduler *s, struct live_step *ls)
{
    struct work *w = ls->pending ? ls->work : NULL;

    silence_end(s, ls);
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
    ls->pending = ls->delivered = ls->stop = ls->stop_told = false;
    ls->seen = 0; /* calls are counted per instance, and the next attempt may go to another one */
    if (w)
        call_settle(s, w, 1); /* the call will not carry it */
}

void live_detach_step(struct scheduler *s, struct live_step *ls)
{
    start_leave_queue(s, ls);
    ls->elsewhere = false;
    detach_instance(s, ls);
}

void live_goes_elsewhere(struct scheduler *s, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];
    const struct attempt *a = step_open_attempt(&l->task.steps[step]);

    ASSERT(a);
    ls->handed_over = (struct handed_over){.instance = a->instance,
                                           .direction = a->direction,
                                           .began_at = a->started_at};
    breakers_trial_over(l, step);
    s->stats.open_attempts -= link_is_in(&ls->sent);
    detach_instance(s, ls);
    ls->elsewhere = true;
}

void live_unload(struct scheduler *s, struct live *l)
{
    if (!l->loaded)
        return;
    LIST_FOREACH (link, after, &l->astir) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, astir);
        s->stats.open_attempts -= link_is_in(&ls->sent);
        breakers_trial_over(l, ls->step);
        if (ls->counted)
            health_lost(&ls->instance->health);
        live_detach_step(s, ls);
    }
    list_init(&l->astir);
    heap_remove(&s->naps, &l->nap);
    link_remove(&l->dirty_link);
    link_remove(&l->undecided);
    arena_fini(&l->arena);
    l->task = (struct task){0};
    l->steps = NULL;
    l->encoded = NULL;
    l->reply = (struct reply){0};
    l->messages = (struct told){0};
    l->definition = NULL;
    l->fx = (struct effects){0};
    l->bulk_at = l->bulk_stored;
    memset(l->ended, 0, sizeof l->ended);
    l->loaded = l->fresh = l->erred = false;
}

/* Commands that were applied to an outdated state are decided again, before later ones. */
static void rewind_commands(struct live *l)
{
    while (!list_empty(&l->applied)) {
        struct link *last = l->applied.prev;
        link_remove(last);
        list_push_front(&l->inbox, last);
    }
}

void live_reload(struct scheduler *s, struct live *l)
{
    ASSERT(!l->in_flight);
    rewind_commands(l);
    limits_keep(l);
    live_unload(s, l);
    l->reload = false;
    link_remove(&l->load_link);
    list_push(&s->loads, &l->load_link);
}

void live_drop(struct scheduler *s, struct live *l)
{
    ASSERT(list_empty(&l->inbox));
    ASSERT(list_empty(&l->applied));
    ASSERT(!l->in_flight);
    live_unload(s, l);
    link_remove(&l->load_link);
    link_remove(&l->inbox_link);
    beats_forget_all(l);
    limits_forget(l);
    (void)map_remove(&s->lives, l->id);
    s->stats.live--;
    free(l);
}

void live_dirty(struct scheduler *s, struct live *l)
{
    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    if (!link_is_in(&l->dirty_link))
        list_push(&s->dirty, &l->dirty_link);
}

/* May the event change what conditions see? They see steps that have ended, and the task. */
static bool may_be_seen(const struct event *e, enum answer answer)
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
    case EVENT_CLAIM:
    case EVENT_RELEASE:
    case EVENT_HASTEN:
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
        break;
    }
    return true;
}

static void forget_conditions(struct live *l)
{
    for (uint16_t i = 0; l->definition->has_conditions && i < l->task.step_count; i++)
        l->steps[i].holds = false;
}

enum answer live_decide(struct scheduler *s, struct live *l, const struct event *e)
{
    enum answer answer = decide(&l->definition->workflow, &l->task, e, scheduler_now(s), &l->fx);

    if (l->fx.any_step || e->step >= 0)
        encoded_look_at(l->encoded, l->fx.any_step ? -1 : e->step);
    if (may_be_seen(e, answer))
        forget_conditions(l);
    if (l->fx.changed)
        live_dirty(s, l);
    return answer;
}

/* After a restart it is unknown whether an open attempt reached its instance. It counts as
 * delivered until the instance reports what it holds. */
static void adopt_open_attempt(struct scheduler *s, struct live *l, uint16_t i)
{
    const struct attempt *a = step_open_attempt(&l->task.steps[i]);
    struct live_step *ls = &l->steps[i];

    if (!a)
        return;
    live_stir(ls);
    ls->elsewhere = a->elsewhere;
    if (a->elsewhere)
        return; /* its instance is done with it */
    const struct workflow_step *ws = &l->definition->workflow.steps[i];
    const struct call_spec *spec = a->direction == DIRECTION_UNDO ? &ws->undo : &ws->call;
    struct agent *agent = dispatch_agent(&s->dispatch, spec->agent);
    limits_open(s, ls, dispatch_lane(agent, spec->action), dispatch_instance(agent, a->instance));
    ls->delivered = true;
    if (a->direction != step_goes(&l->definition->workflow, &l->task, i))
        call_stop(ls);
    silence_begin_anew(s, ls);
    ls->tries = agent;
    ls->trial =
        breaker_adopt(&agent->breaker, &agent->settings.breaker, a->started_at, scheduler_now(s));
    if (ls->instance->called)
        call_poke(s, ls->instance);
}

static void post_requests(struct scheduler *s, struct live *l, struct slice request)
{
    struct arena a = {0};
    struct json *j = NULL;

    if (!request.ptr || json_parse(&a, request, &j, NULL) != ERR_OK || j->type != JSON_ARRAY) {
        arena_fini(&a);
        return;
    }
    for (const struct json *r = j->child; r; r = r->next) {
        struct event e = {.kind = EVENT_DEADLINE, .step = -1};
        struct slice step = json_get_text(r, "step");
        if (slice_is(json_get_text(r, "do"), "extend")) {
            e.kind = EVENT_EXTEND;
            e.until = json_get_int(r, "until", 0);
        }
        if (step.ptr) {
            e.kind = EVENT_TIMEOUT;
            e.step = workflow_step_index(&l->definition->workflow, step);
            e.attempt = (uint32_t)json_get_int(r, "attempt", 0);
            if (!direction_parse(json_get_text(r, "direction"), &e.direction) || e.step < 0)
                continue;
        }
        inbox_post_event(s, l->id, &e);
    }
    arena_fini(&a);
}

/* A caller that arrives during a read may miss its definition, so it takes a second read to be
 * sure. */
enum { PUZZLED_MAX = 2 };

bool live_puzzles(struct scheduler *s, struct live *l, const struct task_row *row)
{
    ASSERT(!l->loaded);
    if (l->puzzled == PUZZLED_MAX || registry_find(s->workflows, row->workflow, row->version))
        return false;
    if (!link_is_in(&s->definitions.link) && list_empty(&s->puzzled)
        && !registry_read(s->workflows, &s->definitions))
        return false;
    list_push(&s->puzzled, &l->load_link);
    return true;
}

void live_definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct scheduler *s = CONTAINER_OF(w, struct scheduler, definitions);
    (void)story; /* a failure of the store shows when the rows are read */

    for (struct link *first = NULL; (first = list_first(&s->puzzled));) {
        link_remove(first);
        CONTAINER_OF(first, struct live, load_link)->puzzled += err == ERR_OK;
        list_push(&s->loads, first);
    }
}

bool live_load(struct scheduler *s, struct live *l, const struct task_row *row, struct error *e)
{
    ASSERT(!l->loaded);
    l->definition = registry_find(s->workflows, row->workflow, row->version);
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
    l->erred = l->task.state == TASK_ERROR;
    l->row_wake_at = row->wake_at;
    l->row_seq = row->seq;
    l->has_waits = row_waits_for_several(row);
    l->asked_for = false; /* its instances are poked below */
    l->steps = arena_alloc(&l->arena, l->task.step_count * sizeof *l->steps);
    for (uint16_t i = 0; i < l->task.step_count; i++) {
        struct live_step *ls = &l->steps[i];
        list_init(&ls->sent);
        list_init(&ls->assigned);
        ls->live = l;
        ls->step = i;
        adopt_open_attempt(s, l, i);
    }
    limits_kept(s, l);
    post_requests(s, l, row->request);
    return true;
}
