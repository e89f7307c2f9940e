#ifndef DEFINITION_LEXER_H
#define DEFINITION_LEXER_H

/* The tokens of an expression. The inside of a string is read by the parser, since it may hold
 * expressions. */

#include "base/base.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,  /* also keywords */
    TOKEN_FIELD, /* .name; text is the name */
    TOKEN_NUMBER,
    TOKEN_QUOTE, /* the opening " */
    TOKEN_SIGN,  /* one or two characters, see text */
    TOKEN_BAD,   /* no token of ours; `why` says more */
};

struct token {
    enum token_kind kind;
    struct slice text;
    size_t at, end; /* offsets */
    const char *why;
};

/* The token at or behind `at`. */
struct token token_read(struct slice text, size_t at);

#endif
