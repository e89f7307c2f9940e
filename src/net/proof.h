#ifndef NET_PROOF_H
#define NET_PROOF_H

/*
 * How a server shows that it knows a token before the token is sent to it. The client sends an
 * unpredictable challenge. The server, which stores only the SHA-256 of tokens, answers with
 *
 *     HMAC-SHA256(key: SHA-256 of the token, "intact token proof\n" + challenge + "\n" + port)
 *
 * (RFC 2104). A process that merely listens in the server's place cannot compute it. Nor can it
 * relay the challenge to the server: the proof contains the server's own port, not the one that the
 * client dialled. The proof reveals nothing about the token, which is 256 random bits.
 */

#include "base/base.h"

#define PROOF_CHALLENGE_HEADER "Intact-Challenge"
#define PROOF_HEADER           "Intact-Token-Proof"

enum { PROOF_KEY_SIZE = 32, PROOF_SIZE = 64, CHALLENGE_SIZE = 64 };

/* CHALLENGE_SIZE hexadecimal digits of random bits. False: no random numbers available. */
bool proof_challenge(char ret[CHALLENGE_SIZE + 1]) MUST_USE;

/* Whether it has the form of a challenge from proof_challenge. */
bool proof_challenge_is_sound(struct slice challenge);

/* The key of a token; the proof in hexadecimal digits, NUL-terminated. */
void proof_key(struct slice token, unsigned char ret[PROOF_KEY_SIZE]);
void proof_make(const unsigned char key[PROOF_KEY_SIZE], struct slice challenge, int port,
                char ret[PROOF_SIZE + 1]);

#endif
