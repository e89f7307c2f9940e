#include "dispatch/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

enum { MAC_BYTES = 16, MAC_CHARS = 22 };

/* The context is kept with its key: setting up HMAC anew costs more than computing it. */
struct token_key {
    EVP_MAC *mac;
    EVP_MAC_CTX *ctx;
};

struct token_key *token_key_new(const unsigned char secret[SECRET_SIZE])
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                 OSSL_PARAM_construct_end()};
    struct token_key *k = calloc(1, sizeof *k);

    ASSERT(k);
    k->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    ASSERT(k->mac);
    k->ctx = EVP_MAC_CTX_new(k->mac);
    ASSERT(k->ctx);
    int ok = EVP_MAC_init(k->ctx, secret, SECRET_SIZE, params);
    ASSERT(ok == 1);
    return k;
}

void token_key_free(struct token_key *k)
{
    if (!k)
        return;
    EVP_MAC_CTX_free(k->ctx);
    EVP_MAC_free(k->mac);
    free(k);
}

static void mac_of(struct token_key *k, struct slice fields, struct slice agent,
                   char ret[MAC_CHARS])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t len = 0;

    int ok = EVP_MAC_init(k->ctx, NULL, 0, NULL)
             && EVP_MAC_update(k->ctx, (const unsigned char *)fields.ptr, fields.len)
             && EVP_MAC_update(k->ctx, (const unsigned char *)"~", 1)
             && EVP_MAC_update(k->ctx, (const unsigned char *)agent.ptr, agent.len)
             && EVP_MAC_final(k->ctx, mac, &len, sizeof mac);
    ASSERT(ok);
    ASSERT(len >= MAC_BYTES);
    mac[MAC_BYTES] = mac[MAC_BYTES + 1] = 0;
    for (int i = 0; i < MAC_CHARS; i++) { /* base64url, without padding */
        int bit = i * 6;
        uint32_t two = ((uint32_t)mac[bit / 8] << 8) | mac[bit / 8 + 1];
        ret[i] = digits[(two >> (10 - bit % 8)) & 63];
    }
}

void token_write(struct token_key *k, const struct token *t, struct slice agent, struct buf *b)
{
    size_t from = b->len;
    char mac[MAC_CHARS];

    buf_slice(b, t->task);
    buf_byte(b, '~');
    buf_i64(b, t->step);
    buf_str(b, t->direction == DIRECTION_UNDO ? "~u" : "~f");
    buf_i64(b, t->attempt);
    mac_of(k, (struct slice){b->ptr + from, b->len - from}, agent, mac);
    buf_byte(b, '~');
    buf_add(b, mac, sizeof mac);
}

/* The digits before `at`, which moves in front of them. */
static bool number_before(struct slice text, size_t *at, uint32_t max, uint32_t *ret)
{
    uint64_t v = 0;
    uint64_t place = 1;
    size_t digits = 0;

    for (; *at > 0 && text.ptr[*at - 1] >= '0' && text.ptr[*at - 1] <= '9'; (*at)--) {
        if (++digits > 10)
            return false;
        v += place * (uint64_t)(text.ptr[*at - 1] - '0');
        place *= 10;
    }
    *ret = (uint32_t)v;
    return digits > 0 && v <= max;
}

static bool char_before(struct slice text, size_t *at, char c)
{
    if (*at == 0 || text.ptr[*at - 1] != c)
        return false;
    (*at)--;
    return true;
}

/* Read from its end: an id has no '~' in it, but nobody has to rely on that. */
bool token_parse(struct slice text, struct token *ret)
{
    uint32_t attempt = 0;
    uint32_t step = 0;

    if (!text.ptr || text.len > TOKEN_MAX || text.len < MAC_CHARS)
        return false;
    size_t at = text.len - MAC_CHARS;
    if (!char_before(text, &at, '~') || !number_before(text, &at, UINT32_MAX, &attempt))
        return false;
    bool undo = char_before(text, &at, 'u');
    if ((!undo && !char_before(text, &at, 'f')) || !char_before(text, &at, '~')
        || !number_before(text, &at, STEPS_MAX - 1, &step) || !char_before(text, &at, '~')
        || at == 0)
        return false;
    *ret = (struct token){{text.ptr, at},
                          (uint16_t)step,
                          undo ? DIRECTION_UNDO : DIRECTION_FORWARD,
                          attempt};
    return true;
}

bool token_check(struct token_key *k, struct slice text, struct slice agent, struct token *ret)
{
    char mac[MAC_CHARS];

    if (!token_parse(text, ret))
        return false;
    mac_of(k, (struct slice){text.ptr, text.len - MAC_CHARS - 1}, agent, mac);
    return CRYPTO_memcmp(mac, text.ptr + text.len - MAC_CHARS, MAC_CHARS) == 0;
}

bool token_same(struct slice a, struct slice b)
{
    return a.len == b.len && CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}
