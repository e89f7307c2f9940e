#ifndef DEFINITION_FUNCTION_H
#define DEFINITION_FUNCTION_H

/* The functions of expressions: one table for the parser, which checks names and counts, and for
 * the evaluator. */

#include "definition/machine.h"

enum { FUNCTION_ARGS_MAX = 2 };

struct function {
    const char *name;
    uint32_t arg_count;
    /* Of values: one result from the input and one value of each argument; NULL: failed. */
    const struct json *(*of_values)(struct machine *m, const struct json *in,
                                    const struct json *const *args);
    /* Of expressions: arguments are evaluated by the function itself, as often as it likes. */
    enum flow (*of_expressions)(struct machine *m, const struct node *call, const struct json *in,
                                struct sink *out);
};

/* NULL if there is none of that name; *ret_known: there is, with another number of arguments. */
const struct function *function_find(struct slice name, uint32_t arg_count, bool *ret_known);

#endif
