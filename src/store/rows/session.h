#ifndef STORE_ROWS_SESSION_H
#define STORE_ROWS_SESSION_H

/*
 * Sessions of the console: a browser that has signed in with a token has a secret of its own. And
 * codes, each of which becomes a session once.
 *
 * A session names the text of its token, by its hash: it ends with that text.
 */

#include "store/rows/access.h"

enum { SESSIONS_OF_TOKEN = 20 }; /* and as many codes: the oldest one ends when one more begins */

struct session_row {
    struct slice id;                     /* names it without revealing anything */
    unsigned char hash[TOKEN_HASH_SIZE]; /* SHA-256 of the secret, or of the code */
    bool is_code;
    struct slice token;                        /* the name of its token ... */
    unsigned char token_hash[TOKEN_HASH_SIZE]; /* ... and the hash of the token's text */
    int64_t created_at, expires_at;
    struct slice address; /* from where it was begun, as in the audit */
};

/* The columns of the table `session`. What X, S and the types are: rows/task.h. */
/* clang-format off */
#define SESSION_COLUMNS(X, S)      \
    X(id,         text)     S      \
    X(hash,       hash)     S      \
    X(is_code,    flag)     S      \
    X(token,      text)     S      \
    X(token_hash, hash)     S      \
    X(created_at, number)   S      \
    X(expires_at, number)   S      \
    X(address,    text)
/* clang-format on */

#endif
