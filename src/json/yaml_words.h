#ifndef JSON_YAML_WORDS_H
#define JSON_YAML_WORDS_H

/* The meaning of plain YAML scalars, and libyaml's messages in words that say what to do. */

#include "base/base.h"

enum yaml_kind {
    YAML_STRING,
    YAML_NULL,
    YAML_TRUE,
    YAML_FALSE,
    YAML_NUMBER,     /* JSON would write it the same */
    YAML_ODD_NUMBER, /* a number in YAML, but not in JSON */
};

enum yaml_kind yaml_scalar_kind(struct slice text);

struct yaml_words {
    size_t at;
    char found[100];
    char expected[160];
};

/* `problem` and `context` are libyaml's, with their offsets in `text`. */
void yaml_explain(struct slice text, const char *problem, const char *context, size_t problem_at,
                  size_t context_at, struct yaml_words *ret);

#endif
