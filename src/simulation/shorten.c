/* Shortens and tells the stories of a simulation (shorten.h), by playing them again with one fault
 * less. */

#include "simulation/shorten.h"

#include "simulation/classify.h"

/* Whether a run still tells what the story is told for. */
typedef bool same_fn(const void *what, const struct run *r);

static void play(struct simulation *v, const struct test_case *test, const struct fault_list *l,
                 bool tells, struct run *ret)
{
    const struct run_config c = {
        .suite = v->suite, .test = test, .rules = v->rules, .faults = l, .tells = tells};

    run_play(ret, &c);
}

static bool is_same(struct simulation *v, const struct test_case *test,
                    const struct fault_list *faults, same_fn *same, const void *what)
{
    struct run r;

    play(v, test, faults, false, &r);
    bool yes = same(what, &r);
    run_close(&r);
    return yes;
}

static void leave_out(const struct fault_list *from, size_t i, struct fault_list *ret)
{
    ret->count = 0;
    for (size_t k = 0; k < from->count; k++)
        if (k != i)
            ret->list[ret->count++] = from->list[k];
}

/* Until no single fault can be left out. */
static void shorten(struct simulation *v, struct story *s, same_fn *same, const void *what)
{
    struct fault_list shorter = {0};

    shorter.list = arena_alloc(&v->arena, (s->faults.count + 1) * sizeof *shorter.list);
    for (size_t i = 0; i < s->faults.count;) {
        leave_out(&s->faults, i, &shorter);
        if (!is_same(v, s->test, &shorter, same, what)) {
            i++;
            continue;
        }
        struct fault_list longer = s->faults;
        s->faults = shorter;
        shorter = longer;
        i = 0;
    }
    s->is_shortest = true;
}

/* ---- telling ---- */

static void tell(struct simulation *v, struct story *s, struct slice *ret_summary,
                 struct slice *ret_moves)
{
    struct run r;

    play(v, s->test, &s->faults, true, &r);
    const struct timeline *t = &r.trial.timeline;
    s->took_ms = r.took_ms;
    s->lines = arena_alloc(&v->arena, (t->count + 1) * sizeof *s->lines);
    for (size_t i = 0; i < t->count; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        timeline_moment(t, t->list[i].at, &b);
        buf_fmt(&b, "  %.*s", SLICE_ARG(t->list[i].text));
        s->lines[s->line_count++] = arena_copy(&v->arena, buf_view(&b));
    }
    if (ret_summary) {
        *ret_summary = arena_copy(&v->arena, r.summary);
        *ret_moves = arena_copy(&v->arena, r.moves);
    }
    run_close(&r);
}

/* ---- each of them ---- */

static bool is_same_end(const void *what, const struct run *r)
{
    const struct reached_end *e = what;

    return run_end_equal(&e->end, &r->end);
}

void shorten_end(struct simulation *v, struct reached_end *e)
{
    bool explains = !e->end.is_end || e->end.state == TASK_ERROR;

    shorten(v, &e->story, is_same_end, e);
    tell(v, &e->story, explains ? &e->summary : NULL, explains ? &e->moves : NULL);
}

static bool is_same_finding(const void *what, const struct run *r)
{
    const struct finding *f = what;
    struct classified said[CLASSIFIED_MAX];

    size_t count = classify(r, said);
    for (size_t i = 0; i < count; i++)
        if (said[i].kind == f->kind && said[i].rule == f->rule
            && slice_eq(said[i].subject, f->subject))
            return true;
    return false;
}

void shorten_finding(struct simulation *v, struct finding *f)
{
    shorten(v, &f->story, is_same_finding, f);
    tell(v, &f->story, NULL, NULL);
}

static bool is_as_long(const void *what, const struct run *r)
{
    const struct simulation *v = what;

    return r->end.is_end && r->took_ms >= v->longest_ms;
}

void shorten_longest(struct simulation *v)
{
    shorten(v, &v->longest, is_as_long, v);
    tell(v, &v->longest, NULL, NULL);
}

bool shorten_is_first_enough(struct simulation *v, const struct run *r)
{
    const struct fault_list first = {r->struck.list, 1};
    struct run alone;

    play(v, r->config.test, &first, false, &alone);
    bool yes = alone.end.is_end && alone.end.state == TASK_ERROR;
    run_close(&alone);
    return yes;
}
