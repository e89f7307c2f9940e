/* Plays one run of a simulation (run.h): decides at each place whether a fault strikes, and looks
 * at the rules. */

#include "simulation/run.h"

#include <stdlib.h>

#include "base/when.h"
#include "simulation/explain.h"

/* ---- what strikes ---- */

static void keep_point(struct run *r, const struct fault_point *p, enum fault_kind struck)
{
    if (!r->config.points)
        return;
    if (r->point_count == r->point_cap) {
        r->point_cap = r->point_cap ? r->point_cap * 2 : 64;
        r->points = reallocarray(r->points, r->point_cap, sizeof *r->points);
        ASSERT(r->points);
    }
    r->points[r->point_count] = (struct run_point){*p, struck};
    r->points[r->point_count++].point.name = arena_copy(&r->trial.arena, p->name);
}

/* Whether a pivot of the task itself has completed: what has no way back. */
static bool is_past_pivot(const struct run *r)
{
    const struct seen_task *seen = map_get(&r->trial.tasks, TRIAL_ID);

    for (uint16_t i = 0; seen && i < seen->workflow->step_count; i++)
        if (seen->workflow->steps[i].undo_kind == UNDO_PIVOT
            && seen->units[i].state == STEP_COMPLETED)
            return true;
    return false;
}

static void keep_struck(struct run *r, const struct fault *f)
{
    if (r->struck.count == 0)
        r->after_pivot = is_past_pivot(r);
    if (r->struck.count == r->struck_cap) {
        r->struck_cap = r->struck_cap ? r->struck_cap * 2 : 8;
        r->struck.list = reallocarray(r->struck.list, r->struck_cap, sizeof *r->struck.list);
        ASSERT(r->struck.list);
    }
    r->struck.list[r->struck.count] = *f;
    r->struck.list[r->struck.count++].name = arena_copy(&r->trial.arena, f->name);
    r->after_last = r->point_count;
}

/* What struck gives the same run again, and with as many nodes, even if no node was struck. */
static void keep_nodes(struct run *r)
{
    const struct draw *d = r->config.draw;
    const struct fault_list *l = r->config.faults;
    size_t after_last = r->after_last;

    if (r->source.nodes < 2 || faults_are_of_nodes(&r->struck))
        return;
    if (d)
        keep_struck(r, &d->of_nodes);
    for (size_t i = 0; l && i < l->count; i++)
        if (fault_is_of_nodes(l->list[i].kind))
            keep_struck(r, &l->list[i]);
    r->after_last = after_last;
}

/* Longer and shorter than what a workflow was made for. */
static int64_t draw_length(struct draw *d, enum fault_kind k, int64_t usual_ms)
{
    static const int64_t downs[] = {60000, 600000, 3600000, 18000000, 172800000};

    if (k == FAULT_DOWN)
        return downs[prng_below(&d->prng, COUNT_OF(downs))];
    if (usual_ms <= 0 || prng_chance(&d->prng, 40))
        return usual_ms;
    uint32_t twentieths = usual_ms > MS_PER_D ? 40 : 200;
    int64_t length = usual_ms * (1 + prng_below(&d->prng, twentieths)) / 20;
    return max_i64(length, 1);
}

static bool draw(struct run *r, const struct fault_point *p, struct fault *ret)
{
    struct draw *d = r->config.draw;
    enum fault_kind fitting[FAULT_KINDS];
    uint32_t count = 0;
    bool is_stop = p->place == PLACE_STOP;
    uint32_t chance = is_stop || p->place >= PLACE_SIGNAL ? 400000 : d->per_million;

    if (r->struck.count >= d->max || prng_below(&d->prng, 1000000) >= chance)
        return false;
    for (int k = FAULT_NONE + 1; k < FAULT_KINDS; k++)
        if ((d->kinds & (1U << k) || is_stop) && !fault_is_of_nodes((enum fault_kind)k)
            && fault_fits(fault_spec((enum fault_kind)k), p))
            fitting[count++] = (enum fault_kind)k;
    if (count == 0)
        return false;
    *ret = fault_make(fitting[prng_below(&d->prng, count)], p);
    ret->lasts = fault_spec(ret->kind)->may_last && prng_chance(&d->prng, 20);
    ret->ms = draw_length(d, ret->kind, ret->ms);
    return true;
}

/* One that was drawn before, and lasts, or one that is drawn now. */
static bool strikes(void *arg, const struct fault_point *p, struct fault *ret)
{
    struct run *r = arg;
    const struct fault_list *known = r->config.faults ? r->config.faults : &r->struck;
    const struct fault_list planned = {r->config.draw ? &r->config.draw->of_nodes : NULL,
                                       r->source.nodes > 1 && r->config.draw};
    const struct fault *f = fault_at(&planned, p);
    f = f ? f : fault_at(known, p);
    bool fits = f && fault_fits(fault_spec(f->kind), p);

    r->visits++;
    if (fits && f->number < p->number) {
        *ret = *f;
        return true;
    }
    if (fits)
        *ret = *f;
    else if (r->config.draw)
        fits = draw(r, p, ret);
    keep_point(r, p, fits ? ret->kind : FAULT_NONE);
    if (fits)
        keep_struck(r, ret);
    return fits;
}

/* ---- watching ---- */

static void append(struct run *r, struct slice *to, struct slice name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (to->ptr)
        buf_fmt(&b, "%.*s, ", SLICE_ARG(*to));
    buf_slice(&b, name);
    *to = arena_copy(&r->trial.arena, buf_view(&b));
}

/* Steps that have an effect to be undone, and without which it went on. */
static void find_gap(struct run *r, const struct workflow *w, const struct task *task)
{
    r->gap = SLICE_NONE;
    for (uint16_t i = 0; i < task->step_count && task->state == TASK_PROCESSED; i++)
        if (task->steps[i].state == STEP_FAILED && w->steps[i].undo_kind == UNDO_CALL)
            append(r, &r->gap, w->steps[i].name);
}

static void keep_why(struct run *r, const struct workflow *w, const struct task *task)
{
    CLEANUP(buf_fini) struct buf summary = {0};
    CLEANUP(buf_fini) struct buf moves = {0};

    explain(w, task, engine_clock(r->trial.engine), &summary, &moves);
    r->summary = arena_copy(&r->trial.arena, buf_view(&summary));
    r->moves = arena_copy(&r->trial.arena, buf_view(&moves));
}

static void see_task(struct run *r, const struct workflow *w, const struct task *task)
{
    r->deadline_passed |= task->deadline_passed;
    find_gap(r, w, task);
    for (uint16_t i = 0; i < task->step_count; i++)
        if (r->struck.count > 0 && slice_eq(r->struck.list[0].name, w->steps[i].name)
            && task->steps[i].direction == DIRECTION_FORWARD)
            r->attempts = task->steps[i].attempt;
    if (r->config.tells && (task->state == TASK_ERROR || r->trial.waits.ptr))
        keep_why(r, w, task);
    if (!r->config.rules->any_own)
        return;
    CLEANUP(buf_fini) struct buf b = {0};
    rules_write_task(&b, &r->trial, w, task);
    r->task = arena_copy(&r->trial.arena, buf_view(&b));
}

static void changed(void *arg, const struct workflow *w, const struct task *task)
{
    struct run *r = arg;

    if (task)
        see_task(r, w, task);
    if (r->config.rules->any_always && !r->broken_rule.rule && r->task.ptr)
        r->broken_rule = rules_check(r->config.rules, &r->trial, r->task, false);
}

/* ---- the end ---- */

static void find_end(struct run *r)
{
    const struct trial *t = &r->trial;

    r->end = (struct run_end){.is_end = t->ended_at != 0,
                              .state = t->state,
                              .code = t->error_code,
                              .message = t->error_message,
                              .steps = t->steps.ptr ? t->steps : SLICE("{}")};
    if (!r->end.is_end)
        r->end.waits = t->waits.ptr ? t->waits : SLICE("nothing more happens");
    if (r->end.is_end && t->state == TASK_PROCESSED)
        r->end.code = SLICE_NONE;
    r->deadline_passed |= slice_is(r->end.code, "deadline");
    r->took_ms = r->end.is_end ? t->ended_at - t->test->start_at : 0;
}

static void find_stays(struct run *r)
{
    void **sorted = map_sorted(&r->trial.world.effects);

    for (size_t i = 0; sorted[i]; i++) {
        const struct effect_record *e = sorted[i];
        if (e->took && !e->undone && e->stays)
            append(r, &r->stays, e->step);
    }
    free(sorted);
}

/* Whoever has rules for the end does not need the default one. */
static void find_unclear(struct run *r)
{
    struct world_state *w = &r->trial.world;

    for (size_t i = 0; i < w->count && r->config.rules->has_default; i++) {
        const struct world_member *m = &w->list[i];
        if (!world_without_staying(w, m).ptr && world_unclear(w, m))
            append(r, &r->unclear, m->name);
    }
}

static void find_broken(struct run *r)
{
    const struct trial *t = &r->trial;

    if (t->problems.count == 0)
        return;
    const struct problem *p = &t->problems.list[0];
    if (t->does_not_end && t->problems.count == 1 && !engine_is_stuck(t->engine))
        return; /* an end as any other */
    r->broken = p->text;
    r->broken_at = p->at;
}

void run_play(struct run *r, const struct run_config *c)
{
    *r = (struct run){.config = *c};
    bool two = c->faults ? faults_are_of_nodes(c->faults)
                         : c->draw && c->draw->of_nodes.kind != FAULT_NONE;
    r->source = (struct fault_source){r, two ? 2 : 1, strikes};
    r->watch = (struct trial_watch){r, changed};
    trial_open_among(&r->trial, c->suite, c->test, c->coverage, &r->source);
    r->trial.watch = &r->watch;
    r->trial.timeline.is_off = !c->tells;
    trial_play(&r->trial);
    keep_nodes(r);
    find_end(r);
    find_broken(r);
    if (r->end.is_end && r->end.state == TASK_COMPENSATED) {
        find_stays(r);
        find_unclear(r);
    }
    if (r->end.is_end && !r->broken_rule.rule)
        r->broken_rule = rules_check(c->rules, &r->trial, r->task, true);
}

void run_close(struct run *r)
{
    trial_close(&r->trial);
    free(r->points);
    free(r->struck.list);
}

bool run_end_equal(const struct run_end *a, const struct run_end *b)
{
    return a->is_end == b->is_end && a->state == b->state && slice_eq(a->code, b->code)
           && slice_eq(a->steps, b->steps) && slice_eq(a->waits, b->waits);
}
