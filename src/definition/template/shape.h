#ifndef DEFINITION_TEMPLATE_SHAPE_H
#define DEFINITION_TEMPLATE_SHAPE_H

/*
 * The members that a value has, as far as known before it exists. This finds paths that can never
 * have a value when a definition is stored: `.task.idd` would always be null.
 */

#include "definition/expression/node.h"

struct reader;
struct references;
struct path;
struct shape;

/* A name that its value cannot have. */
struct odd_name {
    struct slice name;
    size_t at;              /* offset of the name's node in the expression */
    const struct shape *of; /* shape of the value */
    struct odd_name *next;
};

/* The odd names of an expression evaluated on a value of that shape, latest first. `root` NULL:
 * nothing is checked. */
struct odd_name *shape_odd_names(const struct expression *x, const struct shape *root,
                                 struct arena *a);

/* The same for an expression evaluated on a task's scope. `refs` are its references: most
 * expressions need no check. */
struct odd_name *shape_odd_in_scope(const struct expression *x, const struct references *refs,
                                    struct arena *a);

/* Whether the input of a task may have a value at that path of at least one name. `scope` NULL: not
 * checked. */
bool shape_of_input_has(const struct shape *scope, const struct slice *path, size_t count);

/* Whether some step of the scope has for_each. NULL: not known, which is no. */
bool shape_has_items(const struct shape *scope);

/* Reports a warning at that offset. */
void shape_warn(struct reader *r, const struct path *path, size_t offset,
                const struct odd_name *odd);

/* The scope of a task that the expressions being read can refer to. Made once for each value of
 * `visible`. NULL if there are no warnings to report. */
const struct shape *shape_of_scope(struct reader *r);

/* What the input of a schedule can refer to: a moment. */
const struct shape *shape_of_moment(void);

/* The input of `output` of a request: the response of a service. */
const struct shape *shape_of_answer(void);

#endif
