/* Runs one test (trial.h): opens the engine, submits the task, lets time pass until nothing more
 * can change, and has the verdict found. */

#include "testing/trial.h"

#include <stdlib.h>

#include "base/when.h"
#include "testing/strikes.h"

enum { STEPS_MAX_OF_TEST = 3000000, PROBLEMS_MAX = 100 };

/* No test looks further ahead. */
#define HORIZON_MS (INT64_C(20) * 366 * MS_PER_D)

void trial_problem(struct trial *t, uint32_t at, const char *fmt, ...)
{
    struct problems *p = &t->problems;
    char text[500];
    va_list ap;

    if (p->count == PROBLEMS_MAX)
        return;
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->list = reallocarray(p->list, p->cap, sizeof *p->list);
        ASSERT(p->list);
    }
    va_start(ap, fmt);
    text_format(text, sizeof text, fmt, ap);
    va_end(ap);
    p->list[p->count++] = (struct problem){at, arena_copy(&t->arena, slice_of(text))};
}

void trial_effect(struct trial *t, const char *prefix, struct slice name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (t->effect_count == t->effect_cap) {
        t->effect_cap = t->effect_cap ? t->effect_cap * 2 : 16;
        t->effects = reallocarray(t->effects, t->effect_cap, sizeof *t->effects);
        ASSERT(t->effects);
    }
    buf_str(&b, prefix);
    buf_slice(&b, name);
    t->effects[t->effect_count++] =
        (struct effect_event){arena_copy(&t->arena, buf_view(&b)), trial_now(t)};
}

static void on_stop(void *arg, struct slice token)
{
    (void)arg;
    (void)token; /* agents that do not heed it are the harder case */
}

void trial_open(struct trial *t, const struct suite *s, const struct test_case *test,
                struct coverage *coverage)
{
    trial_open_among(t, s, test, coverage, NULL);
}

void trial_open_among(struct trial *t, const struct suite *s, const struct test_case *test,
                      struct coverage *coverage, const struct fault_source *faults)
{
    bool may_fail = faults || test->faults.count > 0;
    bool two = faults ? faults->nodes > 1 : faults_are_of_nodes(&test->faults);
    const struct engine_config config = {.workflows = (struct registry *)(uintptr_t)&s->workflows,
                                         .now = test->start_at,
                                         .nodes = two ? 2 : 1,
                                         .arg = t,
                                         .request = player_request,
                                         .stop = on_stop,
                                         .result = player_result,
                                         .changed = observer_changed,
                                         .commits = may_fail ? strikes_commit : NULL,
                                         .lives = strikes_lives};

    *t = (struct trial){
        .suite = s, .test = test, .coverage = coverage, .faults = faults, .has_nodes = two};
    list_init(&t->jobs);
    t->own_faults =
        (struct fault_source){(void *)(uintptr_t)&test->faults, two ? 2 : 1, strikes_from_list};
    if (!faults && may_fail)
        t->faults = &t->own_faults;
    t->timeline.arena = &t->arena;
    t->timeline.from = test->start_at;
    world_open(&t->world, s->world, test->world, &t->arena);
    t->engine = engine_new(&config);
}

void trial_close(struct trial *t)
{
    engine_free(t->engine);
    player_close(t);
    world_close(&t->world);
    timeline_fini(&t->timeline);
    map_fini(&t->tasks);
    map_fini(&t->counters);
    free(t->problems.list);
    free(t->effects);
    arena_fini(&t->arena);
}

/* What a node does that comes back is a part of it. */
static bool is_over(const struct trial *t)
{
    return t->is_refused
           || (t->ended_at != 0 && t->acts_left == 0 && t->plays_left == 0
               && !engine_awaits_node(t->engine));
}

/* Until it is over and what follows from that has happened too. */
static void let_time_pass(struct trial *t)
{
    int64_t until = t->test->start_at + HORIZON_MS;

    for (int steps = 0; steps < STEPS_MAX_OF_TEST; steps++) {
        int64_t limit = is_over(t) ? trial_now(t) : until;
        if (engine_step(t->engine, limit))
            continue;
        if (limit != until || t->is_refused)
            return;
        break;
    }
    t->does_not_end = true;
    if (engine_is_stuck(t->engine))
        trial_problem(t, t->test->at, "time stands still: what happens at one moment has no end");
    else if (t->ended_at != 0 && (t->acts_left > 0 || t->plays_left > 0))
        trial_problem(t, t->test->at, "what is to happen after %d days is not played",
                      (int)(HORIZON_MS / MS_PER_D));
    else if (t->ended_at != 0)
        t->does_not_end = false;
    else if (t->waits.ptr)
        trial_problem(t, t->test->at, "the task does not end: %.*s", SLICE_ARG(t->waits));
    else
        trial_problem(t, t->test->at, "the task does not end: it is %s, and nothing more happens",
                      task_state_text(t->state));
}

void trial_play(struct trial *t)
{
    player_serve_all(t);
    acts_plan(t);
    acts_submit(t);
    let_time_pass(t);
}

void trial_run(struct trial *t)
{
    trial_play(t);
    if (!t->is_refused)
        verdict_find(t);
}
