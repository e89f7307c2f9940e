#ifndef DEFINITION_READER_EACH_H
#define DEFINITION_READER_EACH_H

/* Steps that do the same for each item of a list: `for_each` of a step, and the keys beside it. */

#include "definition/reader/definition_reader.h"

/* What they say. */
struct each_draft {
    const struct json *list; /* `for_each`; NULL: the step has none */
    const struct json *max_items, *concurrency, *on_item_failure;
    struct template *items;
    struct each_spec rule;
};

/* Each: target is a struct each_draft. */
void read_for_each(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_max_items(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_concurrency(struct reader *r, const struct json *j, const struct path *path,
                      void *target);
void read_on_item_failure(struct reader *r, const struct json *j, const struct path *path,
                          void *target);

/* `if` of a step that calls an agent: with for_each it is evaluated once, before there are items.
 * target: struct expression *. */
void read_step_condition(struct reader *r, const struct json *j, const struct path *path,
                         void *target);

/* Makes a step that calls an agent one that does so for each item, if it says so, and reports keys
 * that do not fit together. `step` is the step's JSON. */
void settle_each(struct reader *r, const struct json *step, const struct path *path,
                 const struct each_draft *d, struct workflow_step *s);

/* Appends the slots of all steps to them, and to their templates. There is room for as many as the
 * workflow of the definition counts. */
void keep_slots(struct reader *r, struct workflow_step *steps, struct step_templates *templates);

#endif
