/* Plays the runs of a simulation (search.h). Sets of faults are found by replay: a run with some
 * faults tells the places that come after the last of them, and each place and kind of fault is one
 * more run. */

#include "simulation/search.h"

#include <stdlib.h>

enum {
    RUNS_USUAL = 5000,
    RUNS_LEAST = 50,
    VISITS_USUAL = 250000, /* of places, in all runs: a large workflow gets fewer runs */
    FAULTS_DRAWN_MAX = 8,
    SAMPLES = 40,      /* of an estimate */
    SAMPLED_MAX = 500, /* places: where there are more, half are taken to follow each */
    DEPTH_MAX = 10,
};

/* A list of faults that grows by one. */
struct plan {
    const struct search *search;
    const struct test_case *test;
    struct fault list[DEPTH_MAX];
    size_t count;
};

static void play(const struct plan *p, bool points, struct run *ret)
{
    struct simulation *v = p->search->simulation;
    struct fault_list faults = {(struct fault *)(uintptr_t)p->list, p->count};
    const struct run_config c = {.suite = v->suite,
                                 .test = p->test,
                                 .rules = v->rules,
                                 .coverage = &v->coverage,
                                 .faults = &faults,
                                 .points = points};

    run_play(ret, &c);
    simulation_take(v, ret);
}

static bool is_over(const struct search *s)
{
    return s->simulation->broken.ptr;
}

/* ---- what can go wrong after a run ---- */

typedef void fault_fn(void *arg, const struct fault *f);

/* All faults at the places that follow the last one that struck. */
static void each_fault(const struct run *r, fault_fn *take, void *arg)
{
    for (size_t i = r->after_last; i < r->point_count; i++) {
        const struct fault_point *p = &r->points[i].point;
        for (int k = FAULT_NONE + 1; k < FAULT_KINDS; k++) {
            const struct fault_spec *spec = fault_spec((enum fault_kind)k);
            if (!fault_fits(spec, p))
                continue;
            struct fault f = fault_make((enum fault_kind)k, p);
            take(arg, &f);
            f.lasts = true;
            if (spec->may_last)
                take(arg, &f);
        }
    }
}

static void count_one(void *arg, const struct fault *f)
{
    (void)f;
    ++*(uint64_t *)arg;
}

static uint64_t count_faults(const struct run *r)
{
    uint64_t count = 0;

    each_fault(r, count_one, &count);
    return count;
}

/* ---- all of them ---- */

static void explore(struct plan *p);

static void explore_with(void *arg, const struct fault *f)
{
    struct plan *p = arg;

    if (is_over(p->search))
        return;
    p->list[p->count++] = *f;
    explore(p);
    p->count--;
}

static void explore(struct plan *p)
{
    bool goes_on = p->count < p->search->depth;
    struct run r;

    play(p, goes_on, &r);
    if (goes_on)
        each_fault(&r, explore_with, p);
    run_close(&r);
}

void search_all(const struct search *s)
{
    ASSERT(s->depth <= DEPTH_MAX);
    s->simulation->depth = s->depth;
    for (size_t i = 0; i < s->simulation->test_count; i++) {
        struct plan p = {.search = s, .test = s->simulation->tests[i]};
        explore(&p);
    }
}

/* ---- how many there are ---- */

/* Plays some of the faults that follow. */
struct sampling {
    struct plan *plan;
    uint64_t number, of, played, found;
};

static void sample_one(void *arg, const struct fault *f)
{
    struct sampling *s = arg;
    struct plan *p = s->plan;
    struct simulation *v = p->search->simulation;
    uint64_t step = s->of / SAMPLES + 1;
    struct run r;

    if (s->number++ % step != 0)
        return;
    p->list[0] = *f;
    struct fault_list one = {p->list, 1};
    const struct run_config c = {
        .suite = v->suite, .test = p->test, .rules = v->rules, .faults = &one, .points = true};
    run_play(&r, &c);
    s->played++;
    s->found += count_faults(&r);
    run_close(&r);
}

static uint64_t estimate_test(const struct search *s, const struct test_case *test)
{
    struct plan p = {.search = s, .test = test};
    struct sampling sampling = {.plan = &p};
    struct simulation *v = s->simulation;
    const struct fault_list none = {0};
    const struct run_config c = {
        .suite = v->suite, .test = test, .rules = v->rules, .faults = &none, .points = true};
    struct run r;

    run_play(&r, &c);
    sampling.of = count_faults(&r);
    bool is_large = r.point_count > SAMPLED_MAX;
    if (s->depth > 1 && !is_large)
        each_fault(&r, sample_one, &sampling);
    run_close(&r);
    double each = sampling.played > 0 ? (double)sampling.found / (double)sampling.played
                                      : (double)sampling.of / 2;
    double level = s->depth > 0 ? (double)sampling.of : 0;
    double all = 1 + level;
    for (unsigned d = 2; d <= s->depth; d++) {
        level *= each * 2 / d;
        all += level;
    }
    return all < 1e18 ? (uint64_t)all : UINT64_MAX / 2;
}

uint64_t search_estimate(const struct search *s)
{
    uint64_t all = 0;

    for (size_t i = 0; i < s->simulation->test_count; i++) {
        uint64_t one = estimate_test(s, s->simulation->tests[i]);
        all = one > UINT64_MAX / 4 || all > UINT64_MAX / 4 ? UINT64_MAX / 2 : all + one;
    }
    return all;
}

/* ---- single faults, and pairs that matter ---- */

/* The single faults of a test: those of them that are played, and pairs that begin with them. */
struct singles {
    struct plan plan;
    uint64_t number, of, most;
    bool pairs;
};

/* `most` of `of` runs are played, evenly. */
static bool is_chosen(uint64_t number, uint64_t of, uint64_t most)
{
    return of <= most || number * most / of != (number + 1) * most / of;
}

static bool is_while_undone(const struct simulation *v, const struct fault *f)
{
    const struct workflow *w = &v->suite->definition->workflow;
    int step = f->name.ptr ? workflow_step_index(w, f->name) : -1;

    return f->is_undo || (step >= 0 && w->steps[step].on_undo);
}

static void play_pair(void *arg, const struct fault *f)
{
    struct singles *s = arg;
    struct plan *p = &s->plan;
    bool passes = fault_spec(f->kind)->class == CLASS_TRANSIENT && !f->lasts;
    struct run r;

    if (is_over(p->search) || !passes || !is_while_undone(p->search->simulation, f)
        || p->search->simulation->runs >= s->most)
        return;
    p->list[1] = *f;
    p->count = 2;
    play(p, false, &r);
    run_close(&r);
    p->count = 1;
}

/* An answer turns the task back: what goes wrong then? */
static void play_single(void *arg, const struct fault *f)
{
    struct singles *s = arg;
    struct plan *p = &s->plan;
    bool turns = fault_spec(f->kind)->class == CLASS_ANSWER && !f->is_undo;
    struct run r;

    if (is_over(p->search) || !is_chosen(s->number++, s->of, s->most))
        return;
    p->list[0] = *f;
    p->count = 1;
    play(p, turns, &r);
    if (turns && s->of <= s->most)
        each_fault(&r, play_pair, s);
    run_close(&r);
}

/* Returns how many places a run without faults has. */
static uint64_t play_singles(const struct search *s, const struct test_case *test, uint64_t share)
{
    struct singles singles = {.plan = {.search = s, .test = test}};
    struct run r;

    play(&singles.plan, true, &r);
    uint64_t points = r.point_count;
    uint64_t runs = s->runs > 0 ? s->runs : RUNS_USUAL;
    singles.of = count_faults(&r);
    singles.most = runs / share / 2;
    if (s->runs == 0)
        singles.most = singles.most < VISITS_USUAL / (points + 1) / 2
                           ? singles.most
                           : VISITS_USUAL / (points + 1) / 2;
    each_fault(&r, play_single, &singles);
    run_close(&r);
    return points;
}

/* ---- drawn ones ---- */

static struct draw draw_of(uint64_t seed, uint64_t test, uint64_t number, uint64_t points)
{
    static const uint32_t wanted[] = {1, 1, 1, 2, 2, 2, 3, 3, 5, 8};
    struct draw d = {.max = FAULTS_DRAWN_MAX};

    d.prng.state = seed * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xd1342543de82ef95)
                   + test * UINT64_C(0xaf251af3b0f025b5);
    uint64_t many = wanted[prng_below(&d.prng, COUNT_OF(wanted))];
    d.per_million = (uint32_t)min_i64((int64_t)(many * 700000 / (points + 1)) + 1, 500000);
    for (int k = FAULT_NONE + 1; k < FAULT_KINDS; k++)
        d.kinds |= prng_chance(&d.prng, 60) ? 1U << k : 0;
    return d;
}

static void play_drawn(const struct search *s, size_t test, uint64_t number, uint64_t points)
{
    struct simulation *v = s->simulation;
    struct draw d = draw_of(s->seed, test, number, points);
    const struct run_config c = {.suite = v->suite,
                                 .test = v->tests[test],
                                 .rules = v->rules,
                                 .coverage = &v->coverage,
                                 .draw = &d};
    struct run r;

    run_play(&r, &c);
    simulation_take(v, &r);
    run_close(&r);
}

/* What a number of runs would take differs by orders of magnitude: unless one is given, it is the
 * number of places that is limited. */
static bool has_enough(const struct search *s)
{
    const struct simulation *v = s->simulation;

    if (s->runs > 0)
        return v->runs >= s->runs;
    return v->runs >= RUNS_USUAL || (v->visits >= VISITS_USUAL && v->runs >= RUNS_LEAST);
}

void search_sample(const struct search *s)
{
    struct simulation *v = s->simulation;
    uint64_t *points = calloc(v->test_count + 1, sizeof *points);

    ASSERT(points);
    v->seed = s->seed;
    for (size_t i = 0; i < v->test_count && !is_over(s); i++)
        points[i] = play_singles(s, v->tests[i], v->test_count);
    for (uint64_t n = 0; !has_enough(s) && !is_over(s) && v->test_count > 0; n++)
        play_drawn(s, n % v->test_count, n, points[n % v->test_count]);
    free(points);
}
