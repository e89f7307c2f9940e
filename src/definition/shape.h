#ifndef DEFINITION_SHAPE_H
#define DEFINITION_SHAPE_H

/*
 * What is known of a value before there is one: which members it has. By it a path that can never
 * be there is found when a definition is stored: `.task.idd` would be null, always.
 */

#include "definition/node.h"

struct reader;
struct references;
struct path;
struct shape;

/* A name that the value in front of it does not have. */
struct odd_name {
    struct slice name;
    size_t at;              /* of the name's node in the text of the expression */
    const struct shape *of; /* of the value */
    struct odd_name *next;
};

/* Those of an expression that is evaluated on a value of that shape; the first one is the newest.
 * `root` NULL: nobody asks. */
struct odd_name *shape_odd_names(const struct expression *x, const struct shape *root,
                                 struct arena *a);

/* The same of one that is evaluated on the scope of a task, and refers to `refs`: they say of most
 * that there is nothing to look for. */
struct odd_name *shape_odd_in_scope(const struct expression *x, const struct references *refs,
                                    struct arena *a);

/* May the input of a task have what lies at that path, of one name or more? `scope` NULL: nobody
 * asks. */
bool shape_of_input_has(const struct shape *scope, const struct slice *path, size_t count);

/* A warning at that place of the text. */
void shape_warn(struct reader *r, const struct path *path, size_t offset,
                const struct odd_name *odd);

/* What the expressions see that are read now: the scope of a task. Made once for each sight; NULL
 * if nobody wants warnings. */
const struct shape *shape_of_scope(struct reader *r);

/* What `output` of a request sees: the answer of a service. */
const struct shape *shape_of_answer(void);

#endif
