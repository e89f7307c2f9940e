#ifndef DISPATCH_TOKEN_H
#define DISPATCH_TOKEN_H

/*
 * Identifies an attempt to its agent: task, step, direction and number, a tag of the agent's name,
 * and a MAC (HMAC-SHA-256, cut to 128 bits) over all of these under the store's secret:
 *
 *     o-17~1~f2~Zk3mPq0x.Q0gq...22 characters
 *
 * and ~1.3~ for item 3 of a step, or ~1.3.2~ if that is the step's list of generation 2. So a token
 * can be verified before its task is read. The tag is not secret and protects nothing: any holder
 * of a token may end its attempt. It only tells tokens of different agents apart.
 *
 * Earlier versions wrote no tag. The MAC of such a token covers the agent's name, which is only
 * known from its task: o-17~1~f2~Q0gq... They stay valid until their attempts end.
 *
 * A token survives restarts, because the secret does; it is never stored and never logged.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "core/task.h"

enum { TOKEN_MAX = 128 + 48 + 24 + 9, SIGNAL_TOKEN_MAX = 128 + 64 + 24, SECRET_SIZE = 32 };

/* Which item of a step with for_each is meant: by its number in a list, and which list of the step
 * that is (the step's generation). */
struct item_ref {
    bool any; /* false: none, but the step */
    uint32_t generation, number;
};

struct token_key;

struct token_key *token_key_new(const unsigned char secret[SECRET_SIZE]);
void token_key_free(struct token_key *k); /* NULL is allowed */

struct token {
    struct slice task; /* points into the text it was parsed from */
    uint16_t step;
    enum direction direction;
    uint32_t attempt;
    struct item_ref item;
};

void token_write(struct token_key *k, const struct token *t, struct slice agent, struct buf *b);

/* Parses the fields only: enough to find an attempt, not to trust the token. */
bool token_parse(struct slice text, struct token *ret) MUST_USE;

/* What a token's text alone says about it. */
enum token_worth {
    TOKEN_FORGED, /* not made under this secret */
    TOKEN_OURS,
    TOKEN_UNTAGGED /* perhaps of an earlier version: its task must be read to verify it */
};
enum token_worth token_judge(struct token_key *k, struct slice text, struct token *ret) MUST_USE;

/* Parses it, and checks that it was made for that agent. The time does not depend on where a MAC is
 * wrong. */
bool token_check(struct token_key *k, struct slice text, struct slice agent,
                 struct token *ret) MUST_USE;

/*
 * The right to send one task signals of one name, and nothing else: for whoever calls back, such as
 * a provider of payments. It is the task, the name and a MAC:
 *
 *     o-17~payment.Q0gq...22 characters
 *
 * No name contains '~' or '.'. It is good for as long as the task is kept.
 */
struct signal_token {
    struct slice task, name; /* point into the text they were parsed from */
};
void signal_token_write(struct token_key *k, struct slice task, struct slice name, struct buf *b);
/* False: not made under this secret. */
bool signal_token_check(struct token_key *k, struct slice text, struct signal_token *ret) MUST_USE;

/* Are the texts equal? The time does not depend on where two texts of one length differ. */
bool token_same(struct slice a, struct slice b);

/*
 * The right of one person to decide on one question, in a browser: the task, the step, the number
 * of the question and the person, in base64url, and a MAC:
 *
 *     MX4wfjE3Njl+...Q0gq...
 *
 * Programs that make links of what looks like one find its end: it has no dots or signs there. An
 * id may be given again, so the time of the submission says which task is meant.
 */
struct approval_link {
    struct slice task, step, person; /* without '~' */
    int64_t submitted_at, expires_at;
    uint32_t asking;
};
enum { APPROVAL_LINK_MAX = 480 }; /* characters */

void approval_link_write(struct token_key *k, const struct approval_link *l, struct buf *b);
/* False: not made under this secret. The names are in `a`. */
bool approval_link_check(struct token_key *k, struct slice text, struct arena *a,
                         struct approval_link *ret) MUST_USE;

#endif
