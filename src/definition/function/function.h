#ifndef DEFINITION_FUNCTION_FUNCTION_H
#define DEFINITION_FUNCTION_FUNCTION_H

/* The functions of expressions: looked up by the parser, which checks names and numbers of
 * arguments, and called by the evaluator. list.h lists them. */

#include "definition/expression/machine.h"

enum { FUNCTION_ARGS_MAX = 3 };

struct function {
    struct slice name;
    uint32_t arg_count;
    /* Exactly one is set, see list.h. of_values returns NULL after a failure. */
    const struct json *(*of_values)(struct machine *m, const struct json *in,
                                    const struct json *const *args);
    enum flow (*generate)(struct machine *m, const struct json *in, const struct json *const *args,
                          uint32_t count, struct sink *out);
    enum flow (*of_expressions)(struct machine *m, const struct node *call, const struct json *in,
                                struct sink *out);
};

/* NULL: there is no such function. *ret_known: the name exists with another number of arguments. */
const struct function *function_find(struct slice name, uint32_t arg_count, bool *ret_known);

/* A hint for a function of jq that is not supported. NULL: there is none. */
const char *function_why_outside(struct slice name);

#endif
