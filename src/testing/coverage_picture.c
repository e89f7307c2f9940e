/* Draws what the tests of a suite have reached of its definitions (coverage.h): each workflow as a
 * graph, with marks, by picture/picture.h. */

#include "definition/definition.h"
#include "picture/picture.h"
#include "testing/coverage.h"

/* `has_begun`: it was reached, even if nothing that is asked for was. */
static enum picture_mark mark_of(size_t reached, size_t all, bool has_begun)
{
    if (reached == all)
        return PICTURE_REACHED;
    return reached == 0 && !has_begun ? PICTURE_MISSED : PICTURE_PARTLY;
}

/* The undo has a mark of its own, and is no part of its step's. */
static void mark_step(const struct definition *d, uint16_t i, unsigned seen, struct arena *a,
                      struct picture_step *ret)
{
    struct covered_part parts[COVERED_PARTS_MAX];
    CLEANUP(buf_fini) struct buf lines = {0};
    CLEANUP(buf_fini) struct buf about = {0};
    size_t count = coverage_parts(d, i, seen, parts);
    size_t reached = 0;
    size_t all = 0;

    for (size_t k = 0; k < count; k++) {
        buf_fmt(&about, "%s%s: %s", about.len > 0 ? "\n" : "",
                parts[k].is_seen ? "reached" : "missed", parts[k].what);
        if (parts[k].is_undo) {
            ret->undo_mark = mark_of(parts[k].is_seen, 1, false);
            continue;
        }
        all++;
        reached += parts[k].is_seen;
        if (!parts[k].is_seen)
            buf_fmt(&lines, "%smissed: %s", lines.len > 0 ? "\n" : "", parts[k].what);
    }
    ret->mark = mark_of(reached, all, seen & COVERED_BEGUN);
    ret->lines = lines.len > 0 ? arena_copy(a, buf_view(&lines)) : SLICE_NONE;
    ret->about = arena_copy(a, buf_view(&about));
}

static void draw_workflow(const struct covered_workflow *w, struct slice file, struct picture *p)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf note = {0};
    const struct workflow *flow = &w->definition->workflow;
    struct picture_step *steps = arena_alloc(&a, (flow->step_count + 1U) * sizeof *steps);

    for (uint16_t i = 0; i < flow->step_count; i++)
        mark_step(w->definition, i, w->steps[i], &a, &steps[i]);
    buf_slice(&note, file);
    if (flow->complete_by_ms > 0)
        buf_str(&note, w->deadline_passed ? "; complete_by of the task passes"
                                          : "; missed: complete_by of the task passes");
    const struct picture_graph graph = {.workflow = flow, .steps = steps, .note = buf_view(&note)};
    picture_add(p, &graph);
}

void coverage_draw(const struct coverage *c, struct slice file, struct picture *p)
{
    for (size_t i = 0; i < c->count; i++)
        draw_workflow(&c->list[i], file, p);
}
