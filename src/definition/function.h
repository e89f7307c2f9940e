#ifndef DEFINITION_FUNCTION_H
#define DEFINITION_FUNCTION_H

/* The functions of expressions, for the parser, which checks names and counts, and for the
 * evaluator. function_list.h names them. */

#include "definition/machine.h"

enum { FUNCTION_ARGS_MAX = 3 };

struct function {
    struct slice name;
    uint32_t arg_count;
    /* One of the three, see function_list.h. of_values: NULL after a failure. */
    const struct json *(*of_values)(struct machine *m, const struct json *in,
                                    const struct json *const *args);
    enum flow (*generate)(struct machine *m, const struct json *in, const struct json *const *args,
                          uint32_t count, struct sink *out);
    enum flow (*of_expressions)(struct machine *m, const struct node *call, const struct json *in,
                                struct sink *out);
};

/* NULL if there is none of that name; *ret_known: there is, with another number of arguments. */
const struct function *function_find(struct slice name, uint32_t arg_count, bool *ret_known);

/* Why a function of jq is none of ours, and what does instead; NULL: jq has none of that name, or
 * there is nothing to say. */
const char *function_why_outside(struct slice name);

#endif
