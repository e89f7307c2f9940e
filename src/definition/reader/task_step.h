#ifndef DEFINITION_READER_TASK_STEP_H
#define DEFINITION_READER_TASK_STEP_H

/* Steps that start a child, a task of another workflow: `task` of a step, and the keys beside it.
 */

#include "definition/reader/definition_reader.h"

/* What `task` says. */
struct task_draft {
    const struct json *workflow; /* NULL: it has none, which is a mistake */
    struct slice name;           /* its text; NONE: it is no name, or that of the workflow itself */
    struct template *input;
    const struct json *tags, *complete_by;
    int64_t complete_by_ms;
};

/* Each: target is a struct task_draft. */
void read_task(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_task_complete_by(struct reader *r, const struct json *j, const struct path *path,
                           void *target);

/* Report keys that make no sense beside `task`. */
void refuse_beside_task(struct reader *r, const struct json *j, const struct path *path,
                        void *target);
void refuse_input_beside_task(struct reader *r, const struct json *j, const struct path *path,
                              void *target);

/* How it is undone: the child is, unless the step says otherwise. `undo` and `pivot` are what it
 * says; NULL: nothing. s->undo_kind and s->undo are as `undo` was read. */
void settle_task_undo(struct reader *r, const struct path *path, const struct json *undo,
                      const struct json *pivot, bool is_pivot, struct workflow_step *s);

struct child_spec child_of_task(const struct task_draft *d);

/* Sums up the children of all steps: definition->children. */
void keep_children(struct reader *r);

#endif
