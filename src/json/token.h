#ifndef JSON_TOKEN_H
#define JSON_TOKEN_H

/*
 * The tokens of a JSON text, one after another (RFC 8259). Whether they may stand where they stand
 * is the parser's to say; strings are told as they stand in the text, and what their bytes and
 * escapes mean is looked at by text.h.
 */

#include "base/base.h"

enum json_token {
    JSON_TOKEN_END, /* the text ends here */
    JSON_TOKEN_BAD, /* no token begins so */
    JSON_TOKEN_OBJECT,
    JSON_TOKEN_OBJECT_END,
    JSON_TOKEN_ARRAY,
    JSON_TOKEN_ARRAY_END,
    JSON_TOKEN_COLON,
    JSON_TOKEN_COMMA,
    JSON_TOKEN_STRING,
    JSON_TOKEN_NUMBER,
    JSON_TOKEN_NULL,
    JSON_TOKEN_FALSE,
    JSON_TOKEN_TRUE,
};

struct json_tokens {
    struct slice text;
    size_t start, end; /* of the last token */
    bool has_escapes;  /* a string */
    const char *why;   /* BAD: what is wrong ... */
    size_t bad_at;     /* ... and where */
};

enum json_token json_token_next(struct json_tokens *t);

#endif
