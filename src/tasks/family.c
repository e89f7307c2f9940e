/* Keeps what a task has told the others of its family (family.h). live.c and scheduler/landed.c
 * call it when the state of the task is durable. */

#include "tasks/family.h"

void family_told_of(struct live *l)
{
    const struct workflow *w = &l->definition->workflow;
    const struct task *t = &l->task;
    struct family_told *told = &l->family;

    if (!family_has(l))
        return;
    told->state = t->parent.ptr ? child_told(w, t) : CHILD_NONE;
    told->paused_at = t->paused_at;
    if (w->child_step_count == 0)
        return;
    if (!told->children)
        told->children = arena_alloc(&l->arena, task_unit_count(t) * sizeof *told->children);
    for (uint16_t i = 0; i < task_unit_count(t); i++)
        told->children[i] = t->steps[i].child;
}

void family_told_item(struct live *l, uint16_t unit, struct child child)
{
    if (l->family.children)
        l->family.children[unit] = child;
}

bool family_awaits(const struct live *l)
{
    const struct workflow *w = &l->definition->workflow;

    for (uint16_t i = 0; w->child_step_count > 0 && i < task_unit_count(&l->task); i++)
        if (step_awaits_child(&w->steps[i], &l->task.steps[i]))
            return true;
    return false;
}
