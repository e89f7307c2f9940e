#ifndef DEFINITION_REFERENCE_H
#define DEFINITION_REFERENCE_H

/*
 * What an expression looks at, found when it is compiled: so that no more than that is read when it
 * is evaluated, and that names of steps which do not exist are mistakes. Where it cannot be told
 * (`.steps[.input.x]`) the answer is "everything".
 */

#include "definition/node.h"

struct reference {
    struct slice step;
    size_t at;         /* of the name's node in the text of the expression */
    bool needs_output; /* its output, and nothing is said for the case that there is none */
    struct reference *next;
};

/* A name that nothing has there: what it gives is null, always. */
struct odd_name {
    struct slice name;
    size_t at;
    bool is_of_step; /* .steps.a.NAME; otherwise .NAME */
    struct odd_name *next;
};

struct references {
    bool input, task; /* of the task */
    bool steps;       /* all of them */
    struct reference *list;
    struct odd_name *odd;
};

/* Adds to *r what x refers to. The first ones of r->list are the newest. */
void references_collect(const struct expression *x, struct arena *a, struct references *r);

/* Is it .steps.NAME.output and nothing else? */
bool reference_is_output(const struct expression *x);

#endif
