#ifndef NET_PROOF_H
#define NET_PROOF_H

/*
 * How a server shows that it knows a token before it is sent one. The client says a challenge that
 * nobody can foresee; the server, which keeps only the SHA-256 of tokens, answers with
 *
 *     HMAC-SHA256(key: SHA-256 of the token, "intact token proof\n" + challenge + "\n" + port)
 *
 * (RFC 2104). A process that merely listens in the server's place cannot make it. Nor can it ask
 * the server and pass the answer on: the port is the server's own, and not the one that the client
 * dialled. The proof tells nothing of the token: that is 256 random bits.
 */

#include "base/base.h"

#define PROOF_CHALLENGE_HEADER "Intact-Challenge"
#define PROOF_HEADER           "Intact-Token-Proof"

enum { PROOF_KEY_SIZE = 32, PROOF_SIZE = 64, CHALLENGE_SIZE = 64 };

/* CHALLENGE_SIZE hexadecimal digits of random bits. False: there are no random numbers. */
bool proof_challenge(char ret[CHALLENGE_SIZE + 1]) MUST_USE;

/* Is it a challenge as proof_challenge makes them? */
bool proof_challenge_is_sound(struct slice challenge);

/* The key of a token; the proof in hexadecimal digits, with a NUL. */
void proof_key(struct slice token, unsigned char ret[PROOF_KEY_SIZE]);
void proof_make(const unsigned char key[PROOF_KEY_SIZE], struct slice challenge, int port,
                char ret[PROOF_SIZE + 1]);

#endif
