/* Records what tests reach of definitions, by looking at each revision of their tasks, and writes
 * the table of what they missed (coverage.h). */

#include "testing/coverage.h"

#include <stdlib.h>

#include "definition/definition.h"

/* ---- seeing ---- */

static void add(void *arg, const struct definition *d)
{
    struct coverage *c = arg;
    struct covered_workflow *w = &c->list[c->count++];

    w->definition = d;
    w->steps = arena_alloc(&c->arena, (d->workflow.step_count + 1U) * sizeof *w->steps);
}

static void count(void *arg, const struct definition *d)
{
    (void)d;
    ++*(size_t *)arg;
}

static int by_name(const void *a, const void *b)
{
    const struct covered_workflow *x = a;
    const struct covered_workflow *y = b;

    return slice_order(x->definition->workflow.name, y->definition->workflow.name);
}

/* The tested workflow is the first one, the others follow by name: a registry has no order. */
static void sort(struct coverage *c, const struct definition *first)
{
    for (size_t i = 1; i < c->count; i++)
        if (c->list[i].definition == first) {
            struct covered_workflow w = c->list[0];
            c->list[0] = c->list[i];
            c->list[i] = w;
        }
    if (c->count > 2)
        qsort(&c->list[1], c->count - 1, sizeof *c->list, by_name);
}

void coverage_open(struct coverage *c, const struct suite *s)
{
    size_t number = 0;

    *c = (struct coverage){0};
    registry_each(&s->workflows, count, &number);
    c->list = arena_alloc(&c->arena, (number + 1) * sizeof *c->list);
    registry_each(&s->workflows, add, c);
    sort(c, s->definition);
}

void coverage_close(struct coverage *c)
{
    arena_fini(&c->arena);
}

void coverage_add(struct coverage *c, const struct coverage *seen)
{
    ASSERT(c->count == seen->count);
    for (size_t i = 0; i < c->count; i++) {
        struct covered_workflow *to = &c->list[i];
        const struct covered_workflow *from = &seen->list[i];
        ASSERT(to->definition == from->definition);
        to->deadline_passed |= from->deadline_passed;
        for (uint16_t k = 0; k < to->definition->workflow.step_count; k++)
            to->steps[k] |= from->steps[k];
    }
}

static bool is_overdue(const struct step *s)
{
    if (slice_is(s->error.code, "no_signal") || slice_is(s->error.code, "not_approved"))
        return true;
    for (uint16_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].outcome == OUTCOME_TIMED_OUT || s->attempts[i].outcome == OUTCOME_LATE)
            return true;
    return false;
}

static bool is_exhausted(const struct workflow_step *ws, const struct step *s)
{
    const struct retry_rule *r = &ws->call.retry;

    return s->state == STEP_FAILED && s->direction == DIRECTION_FORWARD
           && s->failure_count >= r->attempts + r->defers && r->attempts + r->defers > 1;
}

/* It may have been undone since. */
static bool has_completed(const struct step *s)
{
    if (s->state == STEP_COMPLETED)
        return true;
    for (uint16_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_FORWARD
            && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return true;
    return false;
}

static bool has_begun(const struct step *s)
{
    return s->attempt > 0 || step_has_begun(s)
           || (s->state != STEP_WAITING && s->state != STEP_SKIPPED);
}

static struct slice default_of(const struct workflow_step *ws)
{
    return ws->kind == KIND_SIGNAL    ? ws->signal.otherwise
           : ws->kind == KIND_APPROVE ? ws->approve.otherwise
                                      : SLICE_NONE;
}

static unsigned see_step(const struct workflow_step *ws, const struct step *s)
{
    struct slice preset = default_of(ws);
    unsigned seen = 0;

    if (has_completed(s))
        seen |= COVERED_RUN;
    if (has_begun(s))
        seen |= COVERED_BEGUN;
    if (s->state == STEP_SKIPPED)
        seen |= COVERED_IF_FALSE;
    if (s->state == STEP_UNDONE)
        seen |= COVERED_UNDONE;
    if (is_exhausted(ws, s))
        seen |= COVERED_EXHAUSTED;
    if (is_overdue(s))
        seen |= COVERED_OVERDUE;
    if (preset.ptr && s->state == STEP_COMPLETED && slice_eq(preset, s->output.json))
        seen |= COVERED_DEFAULT | COVERED_OVERDUE;
    return seen;
}

void coverage_see(struct coverage *c, const struct workflow *w, const struct task *t)
{
    for (size_t i = 0; i < c->count; i++) {
        if (&c->list[i].definition->workflow != w)
            continue;
        c->list[i].deadline_passed |= t->deadline_passed;
        for (uint16_t k = 0; k < task_unit_count(t); k++)
            if (!unit_is_slot(w, k) || t->steps[k].slot != SLOT_FREE)
                c->list[i].steps[unit_step(w, k)] |= see_step(&w->steps[k], &t->steps[k]);
    }
}

/* ---- what can be reached ---- */

static bool may_be_overdue(const struct workflow_step *ws)
{
    return ws->kind == KIND_CALL || ws->kind == KIND_EACH
           || (ws->kind == KIND_SIGNAL && ws->signal.complete_by_ms > 0)
           || (ws->kind == KIND_APPROVE && ws->approve.complete_by_ms > 0);
}

static void add_part(struct covered_part *list, size_t *count, bool can_be, unsigned seen,
                     const char *what)
{
    if (!can_be)
        return;
    ASSERT(*count < COVERED_PARTS_MAX);
    list[(*count)++] = (struct covered_part){.what = what, .is_seen = seen != 0};
}

size_t coverage_parts(const struct definition *d, uint16_t step, unsigned seen,
                      struct covered_part ret[COVERED_PARTS_MAX])
{
    const struct workflow_step *ws = &d->workflow.steps[step];
    bool is_call = ws->kind == KIND_CALL || (ws->kind == KIND_EACH && ws->call.agent.ptr);
    bool has_undo = ws->undo_kind == UNDO_CALL || ws->undo_kind == UNDO_CHILD;
    bool has_condition = d->steps[step].condition;
    size_t count = 0;

    add_part(ret, &count, true, seen & COVERED_RUN, "completes");
    add_part(ret, &count, has_condition, seen & COVERED_BEGUN, "its `if` is true");
    add_part(ret, &count, has_condition, seen & COVERED_IF_FALSE, "its `if` is false");
    add_part(ret, &count, has_undo, seen & COVERED_UNDONE, "undo");
    ret[count - 1].is_undo = has_undo;
    add_part(ret, &count, is_call && ws->call.retry.attempts > 1, seen & COVERED_EXHAUSTED,
             "all attempts fail");
    add_part(ret, &count, may_be_overdue(ws), seen & COVERED_OVERDUE, "complete_by passes");
    add_part(ret, &count, default_of(ws).ptr, seen & COVERED_DEFAULT, "default");
    return count;
}

/* ---- the table ---- */

struct table {
    struct buf *b;
    size_t reached, all;
};

static void cell(struct table *t, bool seen, const char *what, struct buf *missed)
{
    t->all++;
    t->reached += seen;
    if (!seen)
        buf_fmt(missed, "%s%s", missed->len > 0 ? ", " : "", what);
}

static void write_step(struct table *t, const struct definition *d, uint16_t i, unsigned seen)
{
    CLEANUP(buf_fini) struct buf missed = {0};
    struct covered_part parts[COVERED_PARTS_MAX];
    size_t count = coverage_parts(d, i, seen, parts);

    for (size_t k = 0; k < count; k++)
        cell(t, parts[k].is_seen, parts[k].what, &missed);
    buf_fmt(t->b, "  %-20.*s %s%s\n", SLICE_ARG(d->workflow.steps[i].name),
            missed.len > 0 ? "missed: " : "all", missed.len > 0 ? missed.ptr : "");
}

static void write_workflow(struct table *t, const struct covered_workflow *w)
{
    const struct workflow *flow = &w->definition->workflow;
    CLEANUP(buf_fini) struct buf missed = {0};

    buf_fmt(t->b, "coverage of %.*s:\n", SLICE_ARG(flow->name));
    for (uint16_t i = 0; i < flow->step_count; i++)
        write_step(t, w->definition, i, w->steps[i]);
    if (flow->complete_by_ms == 0)
        return;
    cell(t, w->deadline_passed, "complete_by passes", &missed);
    buf_fmt(t->b, "  %-20s %s%s\n", "(the task)", missed.len > 0 ? "missed: " : "all",
            missed.len > 0 ? missed.ptr : "");
}

size_t coverage_write(const struct coverage *c, struct buf *b)
{
    struct table t = {.b = b};

    for (size_t i = 0; i < c->count; i++)
        write_workflow(&t, &c->list[i]);
    buf_fmt(b, "  reached %zu of %zu\n", t.reached, t.all);
    return t.all - t.reached;
}
