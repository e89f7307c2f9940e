#ifndef WEBHOOK_SIGN_H
#define WEBHOOK_SIGN_H

/*
 * Signatures as the Standard Webhooks specification has them: of id, time and body, by a secret
 * that the receiver knows ("whsec_...", HMAC-SHA256, "v1"), or by a private key ("whsk_...",
 * Ed25519, "v1a") whose public one the receiver knows. One thread at a time.
 */

#include "base/buf.h"
#include "config/secret.h"

enum { SIGN_KEYS_MAX = 8 };

struct sign_keys;

/* Reads all of those places; each may have several secrets, with blanks or line ends between. NULL:
 * some cannot be used, and a line for each is in *ret_faults, which names places and no secrets. */
struct sign_keys *sign_keys_load(const struct secret_place *places, size_t count,
                                 struct buf *ret_faults);
void sign_keys_free(struct sign_keys *k); /* NULL is fine; they are wiped */

/* Of a text that is "ID.TIME.BODY": "v1,... v1,... v1a,...", one for each key, in their order.
 * False: the library of cryptography fails. */
bool sign_text(struct sign_keys *k, struct slice text, struct buf *ret) MUST_USE;

/* What receivers are to be given: the public half of each private key, "whpk_...", a line each. */
void sign_public(const struct sign_keys *k, struct buf *ret);

#endif
