#ifndef STORE_ROWS_ACCESS_H
#define STORE_ROWS_ACCESS_H

/* Tokens, and settings and breakers of agents. */

#include "base/base.h"

/* A token that lets its bearer in. Its text is known to the bearer alone. */
enum { TOKEN_HASH_SIZE = 32 };

struct token_row {
    struct slice name;
    unsigned char hash[TOKEN_HASH_SIZE]; /* SHA-256 of the text */
    struct slice roles;             /* a JSON array of texts; the store does not look into it */
    bool admin;                     /* whether "admin" is one of them */
    int64_t created_at, expires_at; /* created_at: of its text. expires_at 0: never */
    unsigned char previous_hash[TOKEN_HASH_SIZE]; /* of the text that a rotation replaced ... */
    int64_t previous_until; /* ... which is good until then; 0: there is none */
    struct slice limits;    /* a JSON object, into which the store does not look; NONE: none */
    struct slice person;    /* whose token it is; NONE: a person of the token's name */
    struct slice groups;    /* of that person: a JSON array of texts, as roles; NONE: none */
};

/* The columns of the table `token` before its name. What X, S and the types are: rows/task.h. */
/* clang-format off */
#define TOKEN_COLUMNS(X, S)           \
    X(hash,           hash)     S     \
    X(roles,          text)     S     \
    X(admin,          flag)     S     \
    X(created_at,     number)   S     \
    X(expires_at,     time)     S     \
    X(previous_hash,  previous) S     \
    X(previous_until, time)     S     \
    X(limits,         text)     S     \
    X(person,         text)     S     \
    X(groups,         text)
/* clang-format on */

/* The settings and the breaker of an agent: JSON, which the store does not parse. NONE: none are
 * stored. */
struct agent_row {
    struct slice name;
    struct slice settings; /* dispatch/agent_settings.h */
    struct slice breaker;  /* its state: tasks/breakers.c */
};

/* The columns of the table `agent`. */
/* clang-format off */
#define AGENT_COLUMNS(X, S) \
    X(name,     text) S     \
    X(settings, text) S     \
    X(breaker,  text)
/* clang-format on */

enum agent_part { AGENT_SETTINGS, AGENT_BREAKER };

struct agent_change {
    struct slice name;
    enum agent_part part; /* the other one is left alone */
    struct slice text;    /* the new text; NONE: deletes it */
    bool fenced;          /* ERR_CONFLICT unless it is `was` until now */
    struct slice was;
};

#endif
