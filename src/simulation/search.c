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
    RUNS_PER_TWO_NODES = 20,
    SAMPLES = 40,      /* of an estimate */
    SAMPLED_MAX = 500, /* places: where there are more, half are taken to follow each */
};

/* A run of the search: with these faults, which are copied. */
static void prepare(const struct search *s, const struct test_case *test, const struct fault *list,
                    size_t count, struct crew_job *ret)
{
    const struct simulation *v = s->simulation;

    ASSERT(count <= JOB_FAULTS_MAX);
    for (size_t i = 0; i < count; i++)
        ret->list[i] = list[i];
    ret->faults = (struct fault_list){ret->list, count};
    ret->config = (struct run_config){.suite = v->suite,
                                      .test = test,
                                      .rules = v->rules,
                                      .faults = &ret->faults};
}

static void take_in(const struct search *s, const struct crew_job *j)
{
    coverage_add(&s->simulation->coverage, &j->coverage);
    simulation_take(s->simulation, &j->run);
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

/* The same as a list, whose names are the run's. */
struct fault_array {
    struct fault *list;
    size_t count;
};

static void keep_one(void *arg, const struct fault *f)
{
    struct fault_array *a = arg;

    a->list[a->count++] = *f;
}

static void faults_fini(struct fault_array *a)
{
    free(a->list);
}

static struct fault_array faults_of(const struct run *r)
{
    struct fault_array a = {0};

    a.list = calloc(count_faults(r) + 1, sizeof *a.list);
    ASSERT(a.list);
    each_fault(r, keep_one, &a);
    return a;
}

/* ---- all of them ---- */

/* The runs that have one fault more than another one. */
struct level {
    const struct search *search;
    const struct test_case *test;
    const struct fault *before; /* the faults of that one */
    size_t count;
    struct fault_array more;
    size_t number; /* of `more`: the next run */
};

static bool explore_next(void *arg, struct crew_job *ret)
{
    struct level *l = arg;

    if (l->number == l->more.count)
        return false;
    prepare(l->search, l->test, l->before, l->count, ret);
    ret->list[ret->faults.count++] = l->more.list[l->number++];
    ret->config.points = ret->faults.count < l->search->depth;
    return true;
}

static bool explore(void *arg, struct crew_job *j)
{
    const struct level *l = arg;

    take_in(l->search, j);
    if (!j->config.points || is_over(l->search))
        return !is_over(l->search);
    CLEANUP(faults_fini) struct fault_array more = faults_of(&j->run);
    struct level below = {l->search, l->test, j->list, j->faults.count, more, 0};
    crew_play(l->search->crew, &(struct flow){&below, explore_next, explore});
    return !is_over(l->search);
}

/* The run without faults, once. */
static bool explore_first(void *arg, struct crew_job *ret)
{
    struct level *l = arg;

    if (l->number++ > 0)
        return false;
    prepare(l->search, l->test, NULL, 0, ret);
    ret->config.points = l->search->depth > 0;
    return true;
}

void search_all(const struct search *s)
{
    ASSERT(s->depth <= JOB_FAULTS_MAX);
    s->simulation->depth = s->depth;
    for (size_t i = 0; i < s->simulation->test_count && !is_over(s); i++) {
        struct level l = {.search = s, .test = s->simulation->tests[i]};
        crew_play(s->crew, &(struct flow){&l, explore_first, explore});
    }
}

/* ---- how many there are ---- */

/* Plays some of the faults that follow. */
struct sampling {
    const struct search *search;
    const struct test_case *test;
    uint64_t number, of, played, found;
};

static void sample_one(void *arg, const struct fault *f)
{
    struct sampling *s = arg;
    uint64_t step = s->of / SAMPLES + 1;
    struct crew_job j = {0};

    if (s->number++ % step != 0)
        return;
    prepare(s->search, s->test, f, 1, &j);
    j.config.points = true;
    run_play(&j.run, &j.config);
    s->played++;
    s->found += count_faults(&j.run);
    run_close(&j.run);
}

static uint64_t estimate_test(const struct search *s, const struct test_case *test)
{
    struct sampling sampling = {.search = s, .test = test};
    const struct simulation *v = s->simulation;
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
    const struct search *search;
    size_t test;
    uint64_t began, most; /* `most` runs of this test, of which the first one was `began` */
    struct fault_array all;
    size_t number; /* of `all`: the next one to be looked at */
    bool pairs;
};

static const struct test_case *test_of(const struct singles *s)
{
    return s->search->simulation->tests[s->test];
}

/* `most` of all are played, evenly: other ones by each test of the file. */
static bool is_chosen(const struct singles *s, uint64_t number)
{
    uint64_t of = s->all.count;
    uint64_t n = (number + s->test) % of;

    return of <= s->most || n * s->most / of != (n + 1) * s->most / of;
}

static bool is_while_undone(const struct simulation *v, const struct fault *f)
{
    const struct workflow *w = &v->suite->definition->workflow;
    int step = f->name.ptr ? workflow_step_index(w, f->name) : -1;

    return f->is_undo || (step >= 0 && w->steps[step].on_undo);
}

/* The pairs that begin with one fault. */
struct pairs {
    const struct singles *singles;
    struct fault first;
    struct fault_array more;
    size_t number;
};

static bool pair_next(void *arg, struct crew_job *ret)
{
    struct pairs *p = arg;
    const struct singles *s = p->singles;

    while (p->number < p->more.count) {
        const struct fault *f = &p->more.list[p->number++];
        bool passes = fault_spec(f->kind)->class == CLASS_TRANSIENT && !f->lasts;
        if (!passes || !is_while_undone(s->search->simulation, f))
            continue;
        prepare(s->search, test_of(s), &p->first, 1, ret);
        ret->list[ret->faults.count++] = *f;
        return true;
    }
    return false;
}

static bool has_room(const struct singles *s)
{
    return !is_over(s->search) && s->search->simulation->runs - s->began < s->most;
}

static bool pair_take(void *arg, struct crew_job *j)
{
    const struct pairs *p = arg;

    take_in(p->singles->search, j);
    return has_room(p->singles);
}

/* An answer turns the task back: what goes wrong then? */
static bool turns(const struct fault *f)
{
    return fault_spec(f->kind)->class == CLASS_ANSWER && !f->is_undo;
}

static bool single_next(void *arg, struct crew_job *ret)
{
    struct singles *s = arg;

    while (s->number < s->all.count && !is_chosen(s, s->number))
        s->number++;
    if (s->number >= s->all.count)
        return false;
    const struct fault *f = &s->all.list[s->number++];
    prepare(s->search, test_of(s), f, 1, ret);
    ret->config.points = s->pairs && turns(f);
    return true;
}

static bool single_take(void *arg, struct crew_job *j)
{
    const struct singles *s = arg;

    take_in(s->search, j);
    if (!j->config.points || !has_room(s))
        return !is_over(s->search);
    CLEANUP(faults_fini) struct fault_array more = faults_of(&j->run);
    struct pairs pairs = {s, j->list[0], more, 0};
    crew_play(s->search->crew, &(struct flow){&pairs, pair_next, pair_take});
    return !is_over(s->search);
}

/* Half of all runs are for single faults and pairs. Tests that need less leave more to others. */
static uint64_t room_of(const struct search *s, size_t test, uint64_t points)
{
    const struct simulation *v = s->simulation;
    uint64_t share = v->test_count - test;
    uint64_t runs = (s->runs > 0 ? s->runs : RUNS_USUAL) / 2;
    uint64_t left = runs > v->runs ? (runs - v->runs) / share : 0;
    uint64_t visits = v->visits < VISITS_USUAL / 2 ? VISITS_USUAL / 2 - v->visits : 0;

    if (s->runs > 0)
        return left;
    uint64_t by_visits = visits / share / (points + 1);
    return left < by_visits ? left : by_visits;
}

/* Returns how many places a run without faults has. */
static uint64_t play_singles(const struct search *s, size_t test)
{
    struct simulation *v = s->simulation;
    struct singles singles = {.search = s, .test = test, .began = v->runs};
    struct crew_job first = {0};

    prepare(s, v->tests[test], NULL, 0, &first);
    first.config.points = true;
    first.config.coverage = &v->coverage;
    run_play(&first.run, &first.config);
    uint64_t points = first.run.point_count;
    singles.most = room_of(s, test, points);
    simulation_take(v, &first.run);
    singles.all = faults_of(&first.run);
    singles.pairs = singles.all.count <= singles.most;
    if (!is_over(s))
        crew_play(s->crew, &(struct flow){&singles, single_next, single_take});
    faults_fini(&singles.all);
    run_close(&first.run);
    return points;
}

/* ---- drawn ones ---- */

/* Every so many runs have two nodes, which take longer. One is struck at a transaction: about every
 * second place is one. */
static void draw_nodes(struct draw *d, uint64_t points)
{
    static const enum fault_kind kinds[] = {FAULT_NODE_KILLED_BEFORE, FAULT_NODE_KILLED_AFTER,
                                            FAULT_NODE_HANGS};
    const struct fault_point p = {.place = PLACE_COMMIT,
                                  .number = 1 + prng_below(&d->prng, (uint32_t)(points / 2 + 2))};

    if (prng_below(&d->prng, RUNS_PER_TWO_NODES) != 0)
        return;
    d->of_nodes = fault_make(kinds[prng_below(&d->prng, COUNT_OF(kinds))], &p);
    d->of_nodes.ms = 500 + prng_below(&d->prng, 60000);
}

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
    draw_nodes(&d, points);
    return d;
}

/* Runs whose faults are drawn, test after test. */
struct drawing {
    const struct search *search;
    uint64_t number;
    const uint64_t *points; /* of each test */
};

static bool draw_next(void *arg, struct crew_job *ret)
{
    struct drawing *d = arg;
    const struct search *s = d->search;
    uint64_t number = d->number++;
    size_t test = number % s->simulation->test_count;

    prepare(s, s->simulation->tests[test], NULL, 0, ret);
    ret->draw = draw_of(s->seed, test, number, d->points[test]);
    ret->config.faults = NULL;
    ret->config.draw = &ret->draw;
    return true;
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

static bool draw_take(void *arg, struct crew_job *j)
{
    const struct drawing *d = arg;

    take_in(d->search, j);
    return !has_enough(d->search) && !is_over(d->search);
}

void search_sample(const struct search *s)
{
    struct simulation *v = s->simulation;
    uint64_t *points = calloc(v->test_count + 1, sizeof *points);
    struct drawing d = {s, 0, points};

    ASSERT(points);
    v->seed = s->seed;
    for (size_t i = 0; i < v->test_count && !is_over(s); i++)
        points[i] = play_singles(s, i);
    if (v->test_count > 0 && !has_enough(s) && !is_over(s))
        crew_play(s->crew, &(struct flow){&d, draw_next, draw_take});
    free(points);
}
