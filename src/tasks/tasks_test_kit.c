/* The stage of the tests of the tasks in memory: tasks without a scheduler, a store or agents,
 * and time that stands until a test moves it (tasks_test_kit.h). Used by tasks_test.c and
 * attempts_test.c. */

#include "tasks/tasks_test_kit.h"

#include "tasks/calls.h"
#include "tasks/limits.h"
#include "tasks/live.h"
#include "tasks/task_inbox.h"

#define ME SLICE("n1/1")

static int64_t clock_now(void *arg)
{
    return ((struct floor *)arg)->now;
}

static void define(struct floor *f, const char *steps)
{
    static struct mistakes mistakes; /* too large for the stack */
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = NULL;

    buf_fmt(&b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":%s}", steps);
    enum err err = definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].found);
    registry_add(&f->registry, d, 1);
}

void floor_begin(struct floor *f, const char *steps)
{
    const struct clock clock = {clock_now, f};
    const struct tasks_config config = {.me = ME, .alone = true, .grace_ms = 10000};

    *f = (struct floor){.now = INT64_C(1800000000000)};
    define(f, steps);
    tasks_init(&f->ts, &config, &f->registry, &clock);
}

void floor_end(struct floor *f)
{
    struct live *l = NULL;

    for (size_t i = 0; (l = map_next(&f->ts.lives, &i)); i = 0) {
        floor_discard_posted(l);
        l->in_flight = false;
        live_drop(&f->ts, l);
    }
    limits_forget_lost(&f->ts);
    CHECK(f->ts.counts.open_attempts == 0, "%zu attempts are left", f->ts.counts.open_attempts);
    CHECK(f->ts.counts.waiting == 0, "%zu steps still wait", f->ts.counts.waiting);
    tasks_fini(&f->ts);
    registry_fini(&f->registry);
}

struct live *floor_task(struct floor *f, const char *id, int priority)
{
    const struct definition *d = registry_find(&f->registry, SLICE("w"), 0);
    struct live *l = live_stub(&f->ts, slice_of(id));
    uint16_t count = d->workflow.step_count;

    l->loaded = true;
    l->definition = d;
    l->task = (struct task){.id = l->id,
                            .state = TASK_PENDING,
                            .priority = priority,
                            .submitted_at = f->now,
                            .input.json = SLICE("{}"),
                            .step_count = count,
                            .steps = arena_alloc(&l->arena, count * sizeof(struct step))};
    l->steps = arena_alloc(&l->arena, count * sizeof *l->steps);
    for (uint16_t i = 0; i < count; i++) {
        l->steps[i].live = l;
        l->steps[i].step = i;
        list_init(&l->steps[i].sent);
        list_init(&l->steps[i].assigned);
        l->task.steps[i].attempts = arena_alloc(&l->arena, 8 * sizeof(struct attempt));
        l->task.steps[i].attempt_cap = 8;
    }
    const struct event claim = {.kind = EVENT_CLAIM, .step = -1, .instance = ME};
    CHECK(live_decide(&f->ts, l, &claim) == ANSWER_ACCEPTED, "it is ours");
    return l;
}

struct work *floor_call(struct floor *f, const char *instance, uint32_t places)
{
    struct work *w = work_new();

    w->agent_name = SLICE("ag");
    w->instance_name = slice_of(instance);
    w->max = places;
    w->wait_ms = 20000;
    dispatch_park(&f->ts.dispatch, w, f->now);
    heap_push(&f->ts.waits, &w->timer, f->now + w->wait_ms);
    return w;
}

void floor_answer(struct floor *f, struct work *w)
{
    heap_remove(&f->ts.waits, &w->timer);
    link_remove(&w->turn);
    dispatch_unpark(w, f->now);
    LIST_FOREACH (link, after, &w->assigned)
        call_unassign(w, CONTAINER_OF(link, struct live_step, assigned));
    work_free(w);
}

struct live_step *floor_start(struct floor *f, struct live *l, uint16_t step, const char *instance)
{
    struct agent *a = dispatch_agent(&f->ts.dispatch, SLICE("ag"));
    struct live_step *ls = &l->steps[step];
    const struct attempt next = task_next_attempt(&l->definition->workflow, &l->task, step, f->now);
    const struct event start = {.kind = EVENT_START,
                                .step = step,
                                .direction = next.direction,
                                .attempt = next.number,
                                .instance = slice_of(instance),
                                .input = {.json = SLICE("{}")}};

    CHECK(live_decide(&f->ts, l, &start) == ANSWER_ACCEPTED, "step %u starts", step);
    live_activate(ls);
    limits_open(&f->ts, ls, dispatch_lane(a, SLICE("x")), dispatch_instance(a, slice_of(instance)));
    ls->delivered = true;
    return ls;
}

size_t floor_posted(const struct live *l, enum event_kind *ret_first)
{
    if (list_empty(&l->inbox))
        return 0;
    *ret_first = CONTAINER_OF(l->inbox.next, struct command, link)->event.kind;
    return list_count(&l->inbox, SIZE_MAX);
}

void floor_discard_posted(struct live *l)
{
    for (struct link *first = NULL; (first = list_pop(&l->inbox));)
        command_discard(CONTAINER_OF(first, struct command, link));
    link_remove(&l->inbox_link);
}
