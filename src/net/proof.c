/* Proves that a server knows a token without revealing the token: challenge, key and proof
 * (proof.h has the protocol). The server's side is in background/admin_token.c and api/caller.c,
 * the client's in cli/client/token_file.c. */

#include "net/proof.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>

static const char digits[] = "0123456789abcdef";
static const char purpose[] = "intact token proof\n";

static void write_hex(const unsigned char *bytes, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * len] = 0;
}

bool proof_challenge(char ret[CHALLENGE_SIZE + 1])
{
    unsigned char bytes[CHALLENGE_SIZE / 2];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    write_hex(bytes, sizeof bytes, ret);
    return true;
}

bool proof_challenge_is_sound(struct slice challenge)
{
    for (size_t i = 0; i < challenge.len; i++)
        if (!challenge.ptr[i] || !strchr(digits, challenge.ptr[i]))
            return false;
    return challenge.len == CHALLENGE_SIZE;
}

void proof_key(struct slice token, unsigned char ret[PROOF_KEY_SIZE])
{
    unsigned len = 0;
    int ok = EVP_Digest(token.ptr, token.len, ret, &len, EVP_sha256(), NULL);

    ASSERT(ok == 1);
    ASSERT(len == PROOF_KEY_SIZE);
}

void proof_make(const unsigned char key[PROOF_KEY_SIZE], struct slice challenge, int port,
                char ret[PROOF_SIZE + 1])
{
    char said[sizeof purpose + CHALLENGE_SIZE + 16];
    unsigned char mac[PROOF_SIZE / 2];
    size_t len = 0;

    ASSERT(challenge.len == CHALLENGE_SIZE);
    int said_len = snprintf(said, sizeof said, "%s%.*s\n%d", purpose, SLICE_ARG(challenge), port);
    const unsigned char *done =
        EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, PROOF_KEY_SIZE,
                  (const unsigned char *)said, (size_t)said_len, mac, sizeof mac, &len);
    ASSERT(done && len == sizeof mac);
    write_hex(mac, len, ret);
}
