#ifndef CLI_VERBS_EVAL_TEXT_H
#define CLI_VERBS_EVAL_TEXT_H

/*
 * Evaluates what somebody typed for `intact eval`: an expression, or a value with ${ } in its
 * strings, as a definition has it. Pure.
 */

#include "base/arena.h"
#include "json/json.h"

/* Its value, or why there is none. */
struct eval_result {
    bool is_ok;
    struct slice value;   /* JSON */
    struct slice message; /* of a mistake or a failure */
    bool has_place;
    size_t offset; /* of the mistake in the text */
};

/* A text with "${" is a value of a definition: YAML if it begins with a bracket or a quote or has
 * several lines, otherwise one string. Any other text is an expression. `root` is what `.` stands
 * for. What *ret points to is in `a`. */
void eval_text(struct slice text, const struct json *root, struct arena *a,
               struct eval_result *ret);

#endif
