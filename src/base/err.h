#ifndef BASE_ERR_H
#define BASE_ERR_H

/*
 * Every way an operation can fail, and what each failure means.
 *
 * A failed step is not an error: it is a result, stored in the state of the step. An error is what
 * prevents *this program* from doing what it was asked to do.
 */

#include <stdarg.h>

#include "base/base.h"

/* clang-format off */
/*      name       text                                           retry  http */
#define ERR_MAP(X)                                                              \
    X(OK,          "success",                                     false, 200)   \
    X(PARSE,       "cannot be parsed",                            false, 400)   \
    X(INVALID,     "is not valid",                                false, 422)   \
    X(NOT_FOUND,   "not found",                                   false, 404)   \
    X(CONFLICT,    "was changed by someone else, or exists",      false, 409)   \
    X(TAKEN,       "its lock is taken",                           false, 409)   \
    X(TOO_BIG,     "exceeds its limit",                           false, 413)   \
    X(CORRUPT,     "stored record breaks an invariant",           false, 500)   \
    X(NOT_A_STORE, "file is not a state store of ours",           false, 500)   \
    X(NEWER,       "state store was written by a newer version",  false, 500)   \
    X(COPIED,      "state store is a copy of another one",        false, 500)   \
    X(LOCKED,      "state store is in use by another server",     false, 503)   \
    X(FULL,        "disk is full",                                true,  503)   \
    X(IO,          "store or network failed",                     true,  503)   \
    X(UNKNOWN,     "outcome of the commit is unknown",            true,  503)   \
    X(BUSY,        "too much to do at the moment",                true,  503)
/* clang-format on */

enum err {
#define X(name, text, retry, http) ERR_##name,
    ERR_MAP(X)
#undef X
};

/* The message of one failure: the innermost fault is written first, and each caller that knows more
 * prepends its own words. */
struct error {
    enum err code;
    char text[400];
};

const char *err_text(enum err code);
bool err_is_transient(enum err code);
int err_http_status(enum err code);

/* Formats into an array of `size` bytes. A longer text is cut, never inside a character, because
 * messages are stored and sent as JSON. */
void text_format(char *to, size_t size, const char *fmt, va_list ap) PRINTF(3, 0);

/* Writes the message and returns `code`. Longer texts are cut. */
enum err error_set(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);

/* Prepends words to the message; returns its code, which must not be ERR_OK. */
enum err error_wrap(struct error *e, const char *fmt, ...) PRINTF(2, 3);

#endif
