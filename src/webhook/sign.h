#ifndef WEBHOOK_SIGN_H
#define WEBHOOK_SIGN_H

/*
 * Signatures of the Standard Webhooks specification: of id, time and body, by a secret that the
 * receiver knows ("whsec_...", HMAC-SHA256, "v1"), or by a private key ("whsk_...", Ed25519, "v1a")
 * whose public key the receiver knows. post.c makes the text. One thread at a time.
 */

#include "base/buf.h"
#include "config/secret.h"

enum { SIGN_KEYS_MAX = 8 };

struct sign_keys;

/* Reads all places; each may contain several secrets, separated by blanks or line ends. NULL: some
 * are unusable, with a line for each in *ret_faults that names the place but no secret. */
struct sign_keys *sign_keys_load(const struct secret_place *places, size_t count,
                                 struct buf *ret_faults);
void sign_keys_free(struct sign_keys *k); /* NULL is allowed; they are wiped */

/* Signs a text "ID.TIME.BODY": "v1,... v1,... v1a,...", one for each key, in their order. False:
 * the cryptography library failed. */
bool sign_text(struct sign_keys *k, struct slice text, struct buf *ret) MUST_USE;

/* What receivers need: the public half of each private key, "whpk_...", a line each. */
void sign_public(const struct sign_keys *k, struct buf *ret);

#endif
