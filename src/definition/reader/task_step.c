/* Reads `task` of a step: the workflow of its child, the child's input and tags, and how the step
 * is undone. Whether there is such a workflow is checked when a task is submitted (family.c). */
#include "definition/reader/task_step.h"

#include <stdio.h>

#include "base/map.h"
#include "base/names.h"

static bool has_expression(const struct json *j)
{
    return j->type == JSON_STRING && memmem(j->text.ptr, j->text.len, "${", 2);
}

static void read_workflow(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    const struct workflow *own = &reading_of(r)->definition->workflow;
    struct task_draft *d = target;

    d->workflow = j;
    if (has_expression(j)) {
        mistake_in(r, path, j,
                   "the name of a workflow, without expressions: which workflows a task can start "
                   "is known when it is submitted");
        return;
    }
    read_name(r, j, path, &d->name);
    if (d->name.ptr && slice_eq(d->name, own->name))
        mistake_in(r, path, j,
                   "another workflow: one that starts itself would never come to an end");
}

static void read_child_input(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    struct task_draft *d = target;

    read_template(r, j, path, &d->input);
}

static void read_tag(struct reader *r, const struct json *j, const struct path *path)
{
    char found[100];

    (void)snprintf(found, sizeof found, "key \"%.*s\"", SLICE_ARG(slice_cut(j->key, 80)));
    if (!is_tag_key(j->key))
        mistake_at(r, path, j->key_at, found, "1 to 64 of A-Z, a-z, 0-9, and . _ -");
    else if (j->type != JSON_STRING || j->text.len > TAG_VALUE_MAX)
        mistake_in(r, path, j, "a text of at most %d bytes", TAG_VALUE_MAX);
    else if (has_expression(j))
        mistake_in(r, path, j, "a text without expressions");
}

/* The same as of a submission. */
static void read_tags(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct task_draft *d = target;

    if (j->type != JSON_OBJECT || j->count > TAGS_MAX) {
        mistake_in(r, path, j, "an object of at most %d texts: {kind: parcel}", TAGS_MAX);
        return;
    }
    d->tags = j;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        read_tag(r, m, &at);
    }
}

void read_task(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("workflow", read_workflow, 0),
        FIELD("input", read_child_input, 0),
        FIELD("tags", read_tags, 0),
    };

    if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), target);
    else
        mistake_in(r, path, j, "an object with workflow: {workflow: ship-one}");
}

void read_task_complete_by(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct task_draft *d = target;

    d->complete_by = j;
    read_length(r, j, path, &d->complete_by_ms);
}

void refuse_beside_task(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    (void)target;
    mistake_in(r, path, j,
               "no such key: a step with task has name, task, complete_by, if, after, on_failure, "
               "undo, pivot");
}

void refuse_input_beside_task(struct reader *r, const struct json *j, const struct path *path,
                              void *target)
{
    (void)target;
    mistake_in(r, path, j,
               "no such key: the child's input is in task: {workflow: ..., input: ...}");
}

void settle_task_undo(struct reader *r, const struct path *path, const struct json *undo,
                      const struct json *pivot, bool is_pivot, struct workflow_step *s)
{
    struct path at_pivot = {path, SLICE("pivot"), 0};
    struct path at_undo = {path, SLICE("undo"), 0};
    struct path at_agent = {&at_undo, SLICE("agent"), 0};

    if (undo && is_pivot)
        mistake_in(r, &at_pivot, pivot, "no pivot: a step with an undo (also none) cannot be one");
    if (is_pivot)
        s->undo_kind = UNDO_PIVOT;
    else if (!undo)
        s->undo_kind = UNDO_CHILD;
    if (s->undo_kind == UNDO_CALL && !json_get(undo, "agent"))
        mistake_at(r, &at_agent, undo->at, "nothing",
                   "a key \"agent\": a step with task has none itself");
}

struct child_spec child_of_task(const struct task_draft *d)
{
    return (struct child_spec){
        .workflow = d->name,
        .tags = d->tags ? d->tags->raw : SLICE_NONE,
        .complete_by_ms = d->complete_by_ms,
    };
}

static void add_children(struct definition *d, struct map *seen, const struct workflow_step *s)
{
    struct child_use *use = map_get(seen, s->child.workflow);

    if (!use) {
        use = &d->children[d->child_count++];
        *use = (struct child_use){.workflow = s->child.workflow};
        map_put(seen, use->workflow, use);
    }
    use->count += s->kind == KIND_EACH ? s->each.max_items : 1;
    if (s->undo_kind != UNDO_PIVOT && !use->unpivoted.ptr)
        use->unpivoted = s->name;
}

void keep_children(struct reader *r)
{
    struct definition *d = reading_of(r)->definition;
    const struct workflow *w = &d->workflow;
    struct map seen = {0};
    size_t most = 0;

    for (uint16_t i = 0; i < w->step_count; i++)
        most += w->steps[i].child.workflow.ptr != NULL;
    if (most == 0)
        return;
    d->children = arena_alloc(r->arena, most * sizeof *d->children);
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].child.workflow.ptr)
            add_children(d, &seen, &w->steps[i]);
    map_fini(&seen);
}
