#ifndef DEFINITION_NUMBER_H
#define DEFINITION_NUMBER_H

/*
 * Numbers of expressions: exact 64-bit integers where the text is one, doubles otherwise. Nothing
 * is rounded unseen on the way in: a text that is neither such an integer nor told apart by a
 * double (too large, more than 17 digits) fails, and so does an integer beyond 2^53 that would have
 * to become a double to meet a fraction. Comparison is of the decimals, whatever their size.
 */

#include "definition/value.h"

struct number {
    bool is_int;
    int64_t i;
    double d; /* set in both cases */
};

/* Fails for what is neither exactly an integer nor a double. */
bool number_of(struct machine *m, const struct json *j, struct number *ret) MUST_USE;
const struct json *number_int(struct machine *m, int64_t v);
bool builder_add_int(struct builder *b, size_t v);             /* to an array */
const struct json *number_double(struct machine *m, double v); /* fails if it is not finite */
const struct json *number_apply(struct machine *m, enum operator op, const struct json *a,
                                const struct json *b);
const struct json *number_negate(struct machine *m, const struct json *a);

/* Exact; only of an exponent with more than 15 digits it fails, for good (machine.is_fatal). */
int number_compare(struct machine *m, const struct json *a, const struct json *b);

#endif
