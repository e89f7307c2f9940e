#ifndef DEFINITION_EXPRESSION_OPERATOR_H
#define DEFINITION_EXPRESSION_OPERATOR_H

/* The operators + - * / % and the comparisons on two values of any type, and slices. */

#include "definition/expression/value.h"

const struct json *operator_apply(struct machine *m, enum operator op, const struct json *a,
                                  const struct json *b);

/* of[from:to]; a null leaves that end open. */
const struct json *operator_slice(struct machine *m, const struct json *of, const struct json *from,
                                  const struct json *to);

/* text / separator: the pieces; with an empty separator the characters. */
const struct json *operator_split(struct machine *m, struct slice text, struct slice separator);

/* Adds all members of b to a, replacing those of the same name. `deep`: objects in both are
 * merged. */
const struct json *operator_merge(struct machine *m, const struct json *a, const struct json *b,
                                  bool deep);

/* The positions in the array `in` at which the first `count` of `part` occur consecutively. */
const struct json *operator_indices(struct machine *m, const struct json *in,
                                    const struct json *part, uint32_t count);

/* The length in bytes of the first `characters` characters. */
size_t text_prefix(struct slice text, size_t characters);
size_t text_length(struct slice text);

#endif
