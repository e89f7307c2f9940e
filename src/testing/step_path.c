/* Reads and writes the names of steps, of items and of steps of children in tests (step_path.h).
 * Pure. */

#include "testing/step_path.h"

static size_t span_to(struct slice s, const char *stops)
{
    size_t i = 0;

    while (i < s.len && !strchr(stops, s.ptr[i]))
        i++;
    return i;
}

struct slice step_path_first(struct slice name)
{
    name.len = span_to(name, "./");
    return name;
}

static bool exists(const struct suite *s, const struct definition *d, struct slice name)
{
    size_t end = span_to(name, "/");
    struct slice step = step_path_first(name);
    int index = workflow_step_index(&d->workflow, step);

    if (index < 0)
        return false;
    const struct workflow_step *ws = &d->workflow.steps[index];
    if (step.len < end && ws->kind != KIND_EACH)
        return false; /* it has no items */
    if (end == name.len)
        return true;
    struct slice workflow = ws->child.workflow;
    const struct definition *child =
        workflow.ptr ? registry_find(&s->workflows, workflow, 0) : NULL;
    struct slice rest = {name.ptr + end + 1, name.len - end - 1};
    return child && exists(s, child, rest);
}

bool step_path_exists(const struct suite *s, struct slice name)
{
    return exists(s, s->definition, name);
}

bool step_path_stays(const struct suite *s, struct slice name)
{
    const struct definition *d = s->definition;

    while (d) {
        size_t end = span_to(name, "/");
        int index = workflow_step_index(&d->workflow, step_path_first(name));
        if (index < 0)
            return false;
        const struct workflow_step *ws = &d->workflow.steps[index];
        if (ws->undo_kind == UNDO_NONE)
            return true;
        if (end == name.len || !ws->child.workflow.ptr)
            return false;
        d = registry_find(&s->workflows, ws->child.workflow, 0);
        name = (struct slice){name.ptr + end + 1, name.len - end - 1};
    }
    return false;
}

void step_path_write(struct buf *b, struct slice root, struct slice id, struct slice step)
{
    bool is_child = id.len > root.len + 1 && id.ptr[root.len] == '@';

    for (size_t i = root.len + 1; is_child && i < id.len;) {
        struct slice rest = {id.ptr + i, id.len - i};
        size_t part = span_to(rest, "@");
        buf_add(b, rest.ptr, span_to((struct slice){rest.ptr, part}, ":"));
        buf_byte(b, '/');
        i += part + 1;
    }
    buf_slice(b, step);
}
