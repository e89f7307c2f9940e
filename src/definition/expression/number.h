#ifndef DEFINITION_EXPRESSION_NUMBER_H
#define DEFINITION_EXPRESSION_NUMBER_H

/*
 * Numbers of expressions: exact 64-bit integers if the text is one, else doubles. No number that is
 * read is rounded silently: a text that is neither such an integer nor distinguished by a double
 * (too large, more than 17 digits) fails. So does an integer beyond 2^53 that would have to become
 * a double to be combined with a fraction. Comparison is exact for numbers of any size.
 */

#include "definition/expression/value.h"

struct number {
    bool is_int;
    int64_t i;
    double d; /* set in both cases */
};

/* Fails for a number that is neither exact as an integer nor as a double. */
bool number_of(struct machine *m, const struct json *j, struct number *ret) MUST_USE;
const struct json *number_int(struct machine *m, int64_t v);
bool builder_add_int(struct builder *b, size_t v);             /* appends to an array */
const struct json *number_double(struct machine *m, double v); /* fails if it is not finite */
const struct json *number_apply(struct machine *m, enum operator op, const struct json *a,
                                const struct json *b);
const struct json *number_negate(struct machine *m, const struct json *a);

/* Exact. Fails only for an exponent with more than 15 digits, and then for good
 * (machine.is_fatal). */
int number_compare(struct machine *m, const struct json *a, const struct json *b);

#endif
