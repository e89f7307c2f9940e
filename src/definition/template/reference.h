#ifndef DEFINITION_TEMPLATE_REFERENCE_H
#define DEFINITION_TEMPLATE_REFERENCE_H

/*
 * The values that an expression refers to, found when it is compiled. An evaluation then reads no
 * more than needed, and references to steps that do not exist are mistakes. If a reference depends
 * on data (`.steps[.input.x]`), everything is needed.
 */

#include "definition/expression/node.h"

struct shape;

struct reference {
    struct slice step;
    size_t at;          /* offset of the name's node in the expression */
    bool needs_output;  /* of the output, without a case for null */
    bool is_unchecked;  /* it may name any step, even one that does not exist */
    bool is_item;       /* it is no step, but .item or .index where there is none */
    bool is_output;     /* likewise the output of the item itself, without a case for null */
    uint8_t members;    /* enum step_member */
    struct wanted seen; /* the needed parts of its input or output, whichever `members` names */
    struct reference *next;
};

struct references {
    bool input, task;          /* of the task */
    bool signals;              /* .task.signals: it is named, and not only part of .task */
    bool output, round;        /* of the step itself, if the expression sees them */
    bool item, index;          /* likewise */
    bool steps;                /* all steps */
    bool any_unchecked;        /* some are in a call, which earlier versions took as a reference to
                                  everything */
    bool may_be_odd;           /* shape.h must check: some paths may not exist in `scope` */
    const struct shape *scope; /* NULL: paths are not checked */
    struct wanted *of_input;   /* NULL: not needed */
    struct wanted *of_output;  /* the same of its own output; NULL: it does not see that */
    struct wanted *of_item;    /* the same of the item; NULL: it does not see that, nor its index */
    bool sees_round;
    bool may_fail; /* of_output is that of an item that is undone: it may be unknown */
    struct reference *list;
};

/* Adds the references of x to *r; the latest is first in r->list. `is_given`: its value is passed
 * on unchanged. */
void references_collect(const struct expression *x, bool is_given, struct arena *a,
                        struct references *r);

/* Whether it is a path from the root by names alone. */
bool reference_is_path(const struct expression *x);

/* Whether it is exactly .steps.NAME.output. */
bool reference_is_output(const struct expression *x);

#endif
