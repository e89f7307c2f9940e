/* Plays one task through the core, without scheduler or agents, and encodes its row after each
 * group of events. floor.c writes the resulting changes to a store. */

#include "floor/life.h"

#include <stdlib.h>

#include "core/attempts.h"
#include "core/decide.h"
#include "store/codec/codec.h"

#define SUBMITTED_AT INT64_C(1700000000000)
#define AGING_MS     INT64_C(60000)

enum { TIMES_MAX = 100000 };

/* One task in progress, and its written state. */
struct play {
    const struct definition *d;
    struct slice payload;
    struct task task;
    struct arena *arena;
    struct encoded *kept; /* as the scheduler caches it */
    size_t event;         /* number of events so far */
    size_t events;        /* of the whole life; 0: being counted */
    size_t wanted;        /* number of changes */
    bool claimed;
    int64_t row_wake_at;
    struct life *life; /* NULL: only count */
};

static struct slice output_of(void *arg, int step)
{
    const struct task *t = arg;

    return t->steps[step].output.json;
}

static struct slice input_of(void *arg, int step)
{
    const struct task *t = arg;

    return t->steps[step].input.json;
}

static struct scope scope_of(struct play *p)
{
    return (struct scope){.definition = p->d,
                          .input = p->task.input.json,
                          .step_input = input_of,
                          .step_output = output_of,
                          .arg = &p->task};
}

static void must(enum err err)
{
    ASSERT(err == ERR_OK); /* the definitions of benches are valid */
}

/* ---- writing ---- */

static struct slice agent_of_first(struct play *p)
{
    static struct ready ready[STEPS_MAX]; /* too large for the stack */
    size_t count = task_ready(&p->d->workflow, &p->task, SUBMITTED_AT, ready);

    ASSERT(count > 0);
    return p->d->workflow.steps[ready[0].step].call.agent;
}

/* As in the scheduler, the column moves only to an earlier time, or at the end. */
static void set_wake_at(struct play *p, struct change *c)
{
    int64_t wake_at = task_wake_at(&p->task);
    bool at_work = p->task.locked_by.ptr && !task_state_is_end(p->task.state);
    bool keep = p->row_wake_at != 0 && (wake_at ? p->row_wake_at <= wake_at : at_work);

    c->row.wake_at = keep ? p->row_wake_at : wake_at;
    c->wake_moved = c->row.wake_at != p->row_wake_at;
    p->row_wake_at = c->row.wake_at;
}

static void write_change(struct play *p)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct scope scope = scope_of(p);

    if (!p->life)
        return;
    struct change *c = &p->life->changes[p->life->count];
    *c = (struct change){.kind = p->life->count == 0 ? CHANGE_INSERT : CHANGE_UPDATE};
    if (p->task.state == TASK_PROCESSED && p->d->output)
        must(definition_output(&scope, p->arena, &p->task.output.json, NULL));
    task_encode_again(&p->d->workflow, &p->task, p->kept, p->arena, &doc, &c->row);
    c->row.doc = arena_copy(p->arena, buf_view(&doc));
    c->row.rank = SUBMITTED_AT - p->task.priority * AGING_MS;
    if (p->task.state == TASK_PENDING)
        c->row.waiting_for = agent_of_first(p);
    set_wake_at(p, c);
    p->life->count++;
}

/* The index of the change that an event belongs to. The submission of a task that is claimed later
 * is a change of its own. */
static size_t change_of(const struct play *p, size_t event)
{
    if (!p->claimed)
        return event * p->wanted / p->events;
    return event == 0 ? 0 : 1 + (event - 1) * (p->wanted - 1) / (p->events - 1);
}

static void claim(struct play *p)
{
    const struct event e = {.kind = EVENT_CLAIM, .step = -1, .instance = SLICE("n1/1")};
    struct effects fx = {0};
    enum answer answer = decide(&p->d->workflow, &p->task, &e, SUBMITTED_AT, &fx);

    ASSERT(answer == ANSWER_ACCEPTED);
}

static void happened(struct play *p)
{
    size_t event = p->event++;

    if (p->events == 0)
        return;
    if (p->event == p->events || change_of(p, event) != change_of(p, event + 1))
        write_change(p);
    if (event == 0 && p->claimed) {
        claim(p);
        if (p->life)
            p->life->claim_at = p->life->count++;
    }
}

/* ---- events ---- */

static void apply(struct play *p, const struct event *e)
{
    struct effects fx = {0};
    enum answer answer = decide(&p->d->workflow, &p->task, e, SUBMITTED_AT, &fx);

    ASSERT(answer == ANSWER_ACCEPTED);
    encoded_look_at(p->kept, fx.any_step ? -1 : e->step);
    happened(p);
}

static void make_room(struct play *p, struct step *s)
{
    struct attempt *more = arena_alloc(p->arena, (s->attempt_count + 2u) * sizeof *more);

    if (s->attempt_count)
        memcpy(more, s->attempts, s->attempt_count * sizeof *more);
    s->attempts = more;
    s->attempt_cap = (uint16_t)(s->attempt_count + 2);
}

static void start(struct play *p, uint16_t step)
{
    struct scope scope = scope_of(p);
    struct step *s = &p->task.steps[step];

    if (step_needs_room(s))
        make_room(p, s);
    struct attempt next = task_next_attempt(&p->d->workflow, &p->task, step, SUBMITTED_AT);
    struct event e = {.kind = EVENT_START,
                      .step = step,
                      .direction = next.direction,
                      .attempt = next.number,
                      .instance = SLICE("a-1")};
    if (next.direction == DIRECTION_FORWARD)
        must(definition_step_input(&scope, step, p->arena, &e.input.json, NULL));
    else
        must(definition_undo_input(&scope, step, p->arena, &e.input.json, NULL));
    apply(p, &e);
}

static void end(struct play *p, uint16_t step)
{
    const struct workflow_step *ws = &p->d->workflow.steps[step];
    const struct step *s = &p->task.steps[step];
    struct event e = {.kind = EVENT_RESULT,
                      .step = step,
                      .direction = s->direction,
                      .attempt = s->attempt,
                      .instance = SLICE("a-1"),
                      .output.json = p->payload};

    if (s->direction == DIRECTION_FORWARD && slice_is(ws->call.action, "refuse")) {
        e.output.json = SLICE_NONE;
        e.failed = true;
        e.effect = EFFECT_NONE;
        e.error = (struct fault_note){SLICE("declined"), SLICE("not now")};
    }
    apply(p, &e);
}

static void play(struct play *p)
{
    const struct workflow *w = &p->d->workflow;
    static struct ready ready[STEPS_MAX];

    p->task = (struct task){.state = TASK_PENDING,
                            .priority = 5,
                            .submitted_at = SUBMITTED_AT,
                            .content = {UINT64_C(0x0123456789abcdef),
                                        SLICE("e3B0xEKY_BwUmvv0yJlvuSQnrkHkZJuTTKSVmRt4Urh")},
                            .id = SLICE("t-000000000"),
                            .input.json = p->payload,
                            .step_count = w->step_count};
    p->task.steps = arena_alloc(p->arena, w->step_count * sizeof *p->task.steps);
    p->kept = encoded_new(w, p->arena);
    if (!p->claimed)
        claim(p);
    happened(p);
    for (int i = 0; i < TIMES_MAX && !task_state_is_end(p->task.state); i++) {
        size_t count = task_ready(w, &p->task, SUBMITTED_AT, ready);
        ASSERT(count > 0);
        for (size_t k = 0; k < count; k++)
            start(p, ready[k].step);
        for (size_t k = 0; k < count; k++)
            end(p, ready[k].step);
    }
    ASSERT(task_state_is_end(p->task.state));
}

size_t life_events(const struct definition *d, struct slice payload)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct play p = {.d = d, .payload = payload, .arena = &a};

    play(&p);
    return p.event;
}

void life_make(struct life *l, const struct definition *d, struct slice payload, size_t changes,
               bool claimed)
{
    struct play p = {.d = d,
                     .payload = payload,
                     .arena = &l->arena,
                     .events = life_events(d, payload),
                     .wanted = changes,
                     .claimed = claimed,
                     .life = l};

    ASSERT(changes >= (claimed ? 2 : 1) && changes <= p.events);
    *l = (struct life){0};
    l->changes = arena_alloc(&l->arena, (changes + 1) * sizeof *l->changes);
    play(&p);
    ASSERT(l->count == changes + claimed);
}

void life_fini(struct life *l)
{
    arena_fini(&l->arena);
}
