#ifndef DEFINITION_EXPRESSION_LEXER_H
#define DEFINITION_EXPRESSION_LEXER_H

/* The tokens of an expression. The parser reads the contents of strings, which may contain
 * expressions. */

#include "base/base.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,  /* also keywords */
    TOKEN_FIELD, /* .name; text is the name */
    TOKEN_NUMBER,
    TOKEN_QUOTE, /* the opening " */
    TOKEN_SIGN,  /* one or two characters, see text */
    TOKEN_BAD,   /* an invalid token; `why` explains */
};

struct token {
    enum token_kind kind;
    struct slice text;
    size_t at, end; /* offsets */
    const char *why;
};

/* The token at `at`, or after white space there. */
struct token token_read(struct slice text, size_t at);

#endif
