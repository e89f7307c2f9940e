/* Reads the graph of a definition: `after` of each step, which defaults to the step before.
 * Orders the steps topologically, reports cycles and unknown names, and checks that expressions
 * refer only to steps that have ended by then. definition.c is the caller. */

#include <stdio.h>
#include <stdlib.h>

#include "definition/reader/wait_step.h"

/* The edges while they are read. There may be as many as pairs of steps, so each is stored as its
 * two ends only. */
struct graph {
    struct reader *reader;
    struct workflow_step *steps;
    const struct json *const *after;
    uint16_t count;
};

static struct slice name_of(const struct graph *g, uint16_t step)
{
    return json_get_text(reader_step(g->reader, step), "name");
}

static void unknown_step(struct reader *r, const struct path *path, const struct json *j)
{
    struct slice near = reader_step_near(r, j->text);

    if (near.ptr)
        mistake_in(r, path, j, "did you mean \"%.*s\"?", SLICE_ARG(near));
    else
        mistake_in(r, path, j, "the name of a step");
}

/* Reads one element of `after`; -1: a mistake. */
static int read_predecessor(struct graph *g, uint16_t step, const struct json *j,
                            const struct path *path)
{
    int index = j->type == JSON_STRING ? reader_step_index(g->reader, j->text) : -1;

    if (j->type != JSON_STRING) {
        mistake_in(g->reader, path, j, "the name of a step");
        return -1;
    }
    if (index < 0) {
        unknown_step(g->reader, path, j);
        return -1;
    }
    if (index == step) {
        mistake_in(g->reader, path, j, "another step: a step cannot come after itself");
        return -1;
    }
    if (reads_on_undo(g->reader, (uint16_t)index) != reads_on_undo(g->reader, step)) {
        mistake_in(g->reader, path, j,
                   reads_on_undo(g->reader, step)
                       ? "a step of on_undo: these always come after all compensations"
                       : "a step of steps: those of on_undo come after all others");
        return -1;
    }
    return index;
}

static void read_after(struct graph *g, uint16_t step, const struct json *j)
{
    struct workflow_step *s = &g->steps[step];
    struct path steps;
    struct path at_step = reader_step_path(g->reader, step, &steps);
    struct path at_after = {&at_step, SLICE("after"), 0};
    struct path at = {&at_after, SLICE_NONE, 0};
    bool seen[STEPS_MAX] = {false};
    uint16_t *before;

    if (j->type != JSON_ARRAY) {
        mistake_in(g->reader, &at_after, j, "an array of names of steps, [] to start at once");
        return;
    }
    if (j->count >= STEPS_MAX) {
        mistake_in(g->reader, &at_after, j, "less than %d names", STEPS_MAX);
        return;
    }
    before = arena_alloc(g->reader->arena, (j->count + 1) * sizeof *before);
    s->before = before;
    for (const struct json *m = j->child; m; m = m->next, at.index++) {
        int index = read_predecessor(g, step, m, &at);
        if (index >= 0 && seen[index])
            mistake_in(g->reader, &at, m, "each name once");
        else if (index >= 0)
            before[s->before_count++] = (uint16_t)index;
        if (index >= 0)
            seen[index] = true;
    }
}

static void follow_last(struct graph *g, uint16_t step)
{
    uint16_t *before = arena_alloc(g->reader->arena, sizeof *before);

    if (step == 0 || step == reading_of(g->reader)->main_count)
        return;
    *before = (uint16_t)(step - 1);
    g->steps[step].before = before;
    g->steps[step].before_count = 1;
}

static void fill_after(struct graph *g)
{
    uint16_t *fill[STEPS_MAX];

    for (uint16_t i = 0; i < g->count; i++)
        for (uint16_t k = 0; k < g->steps[i].before_count; k++)
            g->steps[g->steps[i].before[k]].after_count++;
    for (uint16_t i = 0; i < g->count; i++) {
        fill[i] = arena_alloc(g->reader->arena, (g->steps[i].after_count + 1u) * sizeof *fill[i]);
        g->steps[i].after = fill[i];
    }
    for (uint16_t i = 0; i < g->count; i++)
        for (uint16_t k = 0; k < g->steps[i].before_count; k++)
            *fill[g->steps[i].before[k]]++ = i;
}

/* Each step that could not be ordered has a predecessor that could not either, so walking from one
 * to the next leads into a cycle. */
static uint16_t blocked_by(const struct graph *g, const uint16_t *missing, uint16_t step)
{
    const struct workflow_step *s = &g->steps[step];

    for (uint16_t k = 0; k < s->before_count; k++)
        if (missing[s->before[k]] > 0)
            return s->before[k];
    UNREACHABLE();
}

static void report_cycle(struct graph *g, const uint16_t *missing, uint16_t step)
{
    CLEANUP(buf_fini) struct buf names = {.max = 90};
    struct path steps;
    uint16_t least;

    for (uint16_t i = 0; i < g->count; i++) /* enough moves to be within the cycle */
        step = blocked_by(g, missing, step);
    least = step;
    for (uint16_t i = blocked_by(g, missing, step); i != step; i = blocked_by(g, missing, i))
        least = i < least ? i : least;
    step = least;
    do {
        buf_fmt(&names, "%.*s after ", SLICE_ARG(name_of(g, step)));
        step = blocked_by(g, missing, step);
    } while (step != least);
    buf_slice(&names, name_of(g, step));
    struct path at_step = reader_step_path(g->reader, least, &steps);
    struct path at = {&at_step, SLICE("after"), 0};
    const struct json *node = json_get(reader_step(g->reader, least), "after");
    node = node ? node : reader_step(g->reader, least);
    mistake_at(g->reader, &at, node->at, names.ptr, "steps without a cycle");
}

/* Orders the steps topologically: those whose predecessors are all ordered come next, in the order
 * in which they were written. */
static bool order_steps(struct graph *g, uint16_t *order)
{
    uint16_t missing[STEPS_MAX];
    uint16_t done = 0;
    bool more = true;

    for (uint16_t i = 0; i < g->count; i++)
        missing[i] = (uint16_t)(g->steps[i].before_count + 1);
    while (more) {
        more = false;
        for (uint16_t i = 0; i < g->count; i++) {
            if (missing[i] != 1)
                continue;
            missing[i] = 0;
            order[done++] = i;
            for (uint16_t k = 0; k < g->steps[i].after_count; k++)
                missing[g->steps[i].after[k]]--;
            more = true;
        }
    }
    for (uint16_t i = 0; i < g->count; i++)
        if (missing[i] > 0) {
            report_cycle(g, missing, i);
            return false;
        }
    return true;
}

/* Marks all direct and indirect predecessors of the step. */
static void mark_before(const struct graph *g, uint16_t step, bool *marks)
{
    uint16_t stack[STEPS_MAX];
    uint16_t depth = 0;

    memset(marks, 0, STEPS_MAX * sizeof *marks);
    stack[depth++] = step;
    while (depth > 0) {
        const struct workflow_step *s = &g->steps[stack[--depth]];
        for (uint16_t k = 0; k < s->before_count; k++) {
            uint16_t before = s->before[k];
            if (!marks[before])
                stack[depth++] = before;
            marks[before] = true;
        }
    }
}

static size_t place_of(const struct reader *r, const struct step_use *l)
{
    return reader_string_offset(r, l->string, l->at);
}

/* A step with a child is undone by a call only if the child was processed. */
static bool knows_own_output(const struct graph *g, const struct step_use *l)
{
    return l->is_undo && l->from == l->to && g->steps[l->to].kind == KIND_TASK;
}

/* During undo, the outcome of the step itself and of steps beside and after it may be unknown. */
static void warn_output(struct graph *g, const struct step_use *l, const struct path *at)
{
    CLEANUP(buf_fini) struct buf found = {0};

    buf_fmt(&found, "output of step \"%.*s\"", SLICE_ARG(name_of(g, l->to)));
    warn_at(g->reader, at, place_of(g->reader, l), buf_view(&found),
            "// and what holds without it: where the outcome is unknown there is no output");
}

/* A step may only refer to its predecessors: whether another step has ended when it starts depends
 * on timing. */
static void check_uses(struct graph *g)
{
    bool marks[STEPS_MAX];
    char found[100];

    for (size_t i = 0; i < reading_of(g->reader)->use_count; i++) {
        const struct step_use *l = &reading_of(g->reader)->uses[i];
        struct path at = {NULL, slice_of(l->path), 0};
        if (i == 0 || reading_of(g->reader)->uses[i - 1].from != l->from)
            mark_before(g, l->from, marks);
        if (marks[l->to] || knows_own_output(g, l))
            continue;
        const struct mistakes *list = l->is_undo ? g->reader->warnings : g->reader->mistakes;
        if (!list || list->count == MISTAKES_MAX)
            continue;
        if (l->is_undo) {
            warn_output(g, l, &at);
            continue;
        }
        (void)snprintf(found, sizeof found, "step \"%.*s\"", SLICE_ARG(name_of(g, l->to)));
        mistake_at(g->reader, &at, place_of(g->reader, l), found,
                   "a step that ends before this one starts");
    }
}

void read_graph(struct reader *r, struct workflow_step *steps, const struct json *const *after)
{
    struct graph g = {r, steps, after, reading_of(r)->step_count};
    uint16_t *order = arena_alloc(r->arena, (reading_of(r)->step_count + 1u) * sizeof *order);

    for (uint16_t i = 0; i < g.count; i++) {
        if (after[i])
            read_after(&g, i, after[i]);
        else
            follow_last(&g, i);
    }
    fill_after(&g);
    if (order_steps(&g, order)) {
        check_uses(&g);
        check_wait_lengths(r, steps, order, g.count,
                           reading_of(r)->definition->workflow.complete_by_ms);
    }
    reading_of(r)->definition->workflow.order = order;
}
