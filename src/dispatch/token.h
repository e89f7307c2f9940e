#ifndef DISPATCH_TOKEN_H
#define DISPATCH_TOKEN_H

/*
 * The name of an attempt towards its agent: the task, step, direction and number, a tag of the
 * agent's name, and a MAC (HMAC-SHA-256, cut to 128 bits) over all of these under the store's
 * secret:
 *
 *     o-17~1~f2~Zk3mPq0x.Q0gq...22 characters
 *
 * So a token can be verified by itself, before the task is read. The tag is not secret and no
 * protection: whoever has a token may end its attempt. It tells the token of another agent from one
 * of this agent.
 *
 * Earlier versions wrote no tag. The MAC of such a token covers the agent's name, which only its
 * task tells: o-17~1~f2~Q0gq... They stay good until their attempts end.
 *
 * A token survives restarts, since the secret does; it is never stored, and never logged.
 */

#include "base/buf.h"
#include "core/task.h"

enum { TOKEN_MAX = 128 + 32 + 24 + 9, SECRET_SIZE = 32 };

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

/* What can be said of a token by its text alone. */
enum token_worth {
    TOKEN_FORGED, /* nobody made it under this secret */
    TOKEN_OURS,
    TOKEN_UNTAGGED /* of an earlier version, perhaps: its task has to be read to verify it */
};
enum token_worth token_judge(struct token_key *k, struct slice text, struct token *ret) MUST_USE;

/* Parses, and checks that it was made for that agent. Takes the same time for every wrong MAC. */
bool token_check(struct token_key *k, struct slice text, struct slice agent,
                 struct token *ret) MUST_USE;

/* Are they the same text? Takes the same time wherever two of one length differ. */
bool token_same(struct slice a, struct slice b);

#endif
