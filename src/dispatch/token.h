#ifndef DISPATCH_TOKEN_H
#define DISPATCH_TOKEN_H

/*
 * The name of an attempt towards its agent: which task, step, direction and number it is, and a MAC
 * (HMAC-SHA-256, cut to 128 bits) over these and the agent under the store's secret:
 *
 *     o-17~1~f2~Q0gq...22 characters
 *
 * A token survives restarts, since the secret does; it is never stored, and never logged.
 */

#include "base/buf.h"
#include "core/task.h"

enum { TOKEN_MAX = 128 + 32 + 24, SECRET_SIZE = 32 };

struct token_key;

struct token_key *token_key_new(const unsigned char secret[SECRET_SIZE]);
void token_key_free(struct token_key *k); /* NULL is fine */

struct token {
    struct slice task; /* points into the text it was parsed from */
    uint16_t step;
    enum direction direction;
    uint32_t attempt;
};

void token_write(struct token_key *k, const struct token *t, struct slice agent, struct buf *b);

/* Only the fields: enough to look an attempt up, not to believe anything. */
bool token_parse(struct slice text, struct token *ret) MUST_USE;

/* Parses, and checks that it was made for that agent. Takes the same time for every wrong MAC. */
bool token_check(struct token_key *k, struct slice text, struct slice agent,
                 struct token *ret) MUST_USE;

/* Are they the same text? Takes the same time wherever two of one length differ. */
bool token_same(struct slice a, struct slice b);

#endif
