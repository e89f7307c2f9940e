#ifndef DEFINITION_OPERATOR_H
#define DEFINITION_OPERATOR_H

/* What + - * / % and the comparisons do to two values of any type; slices. */

#include "definition/value.h"

const struct json *operator_apply(struct machine *m, enum operator op, const struct json *a,
                                  const struct json *b);

/* of[from:to]; null stands for an open end. */
const struct json *operator_slice(struct machine *m, const struct json *of, const struct json *from,
                                  const struct json *to);

/* text / separator: the pieces; without a separator the characters. */
const struct json *operator_split(struct machine *m, struct slice text, struct slice separator);

/* Everything of b put over a, member by member; `deep` merges objects in it as well. */
const struct json *operator_merge(struct machine *m, const struct json *a, const struct json *b,
                                  bool deep);

/* Where in the array `in` the first `count` of `part` and those behind it stand in a row. */
const struct json *operator_indices(struct machine *m, const struct json *in,
                                    const struct json *part, uint32_t count);

/* Bytes of the first `characters` characters of a text. */
size_t text_prefix(struct slice text, size_t characters);
size_t text_length(struct slice text);

#endif
