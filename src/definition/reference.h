#ifndef DEFINITION_REFERENCE_H
#define DEFINITION_REFERENCE_H

/*
 * What an expression looks at, found when it is compiled: so that no more than that is read when it
 * is evaluated, and that names of steps which do not exist are mistakes. Where it cannot be told
 * (`.steps[.input.x]`) the answer is "everything".
 */

#include "definition/node.h"

struct shape;

struct reference {
    struct slice step;
    size_t at;          /* of the name's node in the text of the expression */
    bool needs_output;  /* its output, and nothing is said for the case that there is none */
    bool is_unchecked;  /* it may name any step, and one that is not there */
    uint8_t members;    /* enum step_member */
    struct wanted seen; /* of its input or output: whichever of them `members` has */
    struct reference *next;
};

struct references {
    bool input, task;   /* of the task */
    bool steps;         /* all of them */
    bool any_unchecked; /* some stand in a call, which was once taken for looking at everything */
    bool may_be_odd;    /* shape.h has to look: some may name what `scope` does not have */
    const struct shape *scope; /* NULL: nobody asks for that */
    struct wanted *of_input;   /* NULL: nobody wants to know */
    struct reference *list;
};

/* Adds to *r what x refers to. The first ones of r->list are the newest. `is_given`: its value is
 * passed on, and nothing else is made of it. */
void references_collect(const struct expression *x, bool is_given, struct arena *a,
                        struct references *r);

/* Is it a path from the root by names alone? */
bool reference_is_path(const struct expression *x);

/* Is it .steps.NAME.output and nothing else? */
bool reference_is_output(const struct expression *x);

#endif
