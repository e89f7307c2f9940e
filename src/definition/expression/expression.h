#ifndef DEFINITION_EXPRESSION_EXPRESSION_H
#define DEFINITION_EXPRESSION_EXPRESSION_H

/*
 * Expressions: a documented subset of jq's syntax, compiled once and evaluated on a JSON tree.
 * Syntax outside the subset is an error, with its column, when the definition is stored; never when
 * a task runs.
 *
 * Evaluation is bounded: EXPRESSION_STEPS_MAX steps and EXPRESSION_BYTES_MAX bytes of memory. All
 * expressions of one template share TEMPLATE_STEPS_MAX and TEMPLATE_BYTES_MAX. Integers are exact
 * in 64 bits. Larger numbers are passed on unchanged; arithmetic on them is an error.
 *
 * A template is a JSON value in whose strings ${ ... } is replaced. A string that consists of one
 * expression takes the type of its value. Inside ${ } quotes and braces nest as in the expression's
 * syntax; "$${" is a literal "${".
 */

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

enum {
    EXPRESSION_STEPS_MAX = 100000,
    TEMPLATE_STEPS_MAX = 2 * EXPRESSION_STEPS_MAX,
    EXPRESSION_BYTES_MAX = 4 << 20,
    TEMPLATE_BYTES_MAX = 2 * EXPRESSION_BYTES_MAX,
    EXPRESSION_DEPTH_MAX =
        48, /* of results: less than JSON_DEPTH_MAX, because they are stored inside other values */
};

struct expression;
struct template;

/* *ret is allocated in `a`. ERR_INVALID: *ret_column (from 1, in bytes of `text`) and *e say where
 * and why. */
enum err expression_compile(struct slice text, struct arena *a, struct expression **ret,
                            size_t *ret_column, struct error *e) MUST_USE;

/* An expression that yields no value or several is ERR_INVALID. */
enum err expression_eval(const struct expression *x, const struct json *root, struct arena *a,
                         const struct json **ret, struct error *e) MUST_USE;

/* null and false are false, any other value is true. */
bool json_truth(const struct json *j);

/* ERR_INVALID: *ret_offset in value->raw and *e describe the first mistake. */
enum err template_compile(const struct json *value, struct arena *a, struct template **ret,
                          size_t *ret_offset, struct error *e) MUST_USE;
/* *ret is JSON, allocated in `a` or owned by the template. ERR_INVALID: *e says where in the value,
 * which expression failed at which of its columns, and why. */
enum err template_eval(const struct template *t, const struct json *root, struct arena *a,
                       struct slice *ret, struct error *e) MUST_USE;

#endif
