/* Signs webhooks by the Standard Webhooks specification, with OpenSSL: HMAC-SHA256 or Ed25519
 * (sign.h). Loads and frees keys, and keeps no other state. post.c makes the text;
 * webhook_secrets.c loads the keys of all targets. */

#include "webhook/sign.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

enum {
    SECRET_MIN = 24, /* bytes; this and the next limit are the specification's */
    SECRET_MOST = 64,
    SEED_SIZE = 32, /* of a private key; its public half may follow */
    HMAC_SIZE = 32,
    ED25519_SIZE = 64,
};

struct sign_key {
    EVP_MAC_CTX *mac; /* v1 */
    EVP_PKEY *pair;   /* v1a; exactly one of the two is set */
};

struct sign_keys {
    EVP_MAC *hmac;
    size_t count;
    struct sign_key list[SIGN_KEYS_MAX];
};

void sign_keys_free(struct sign_keys *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->count; i++) {
        EVP_MAC_CTX_free(k->list[i].mac);
        EVP_PKEY_free(k->list[i].pair);
    }
    EVP_MAC_free(k->hmac);
    free(k);
}

/* ---- base64 ---- */

static void add_base64(struct buf *b, const unsigned char *bytes, size_t len)
{
    unsigned char text[4 * ((ED25519_SIZE + 2) / 3) + 1];

    ASSERT(len <= ED25519_SIZE);
    int size = EVP_EncodeBlock(text, bytes, (int)len);
    buf_add(b, text, (size_t)size);
}

/* The number of bytes; 0: invalid, or too long. */
static size_t read_base64(struct slice text, unsigned char ret[SECRET_MOST])
{
    unsigned char padded[4 * ((SECRET_MOST + 2) / 3) + 1] = "";
    unsigned char bytes[3 * sizeof padded / 4 + 3];
    size_t end = 0;

    while (text.len > 0 && text.ptr[text.len - 1] == '=' && end < 2) {
        text.len--;
        end++;
    }
    if (text.len == 0 || text.len > sizeof padded - 1 || text.len % 4 == 1)
        return 0;
    memcpy(padded, text.ptr, text.len);
    end = (4 - text.len % 4) % 4;
    memset(padded + text.len, '=', end);
    int len = EVP_DecodeBlock(bytes, padded, (int)(text.len + end));
    explicit_bzero(padded, sizeof padded);
    size_t size = len < 0 ? 0 : (size_t)len - end;
    if (size > SECRET_MOST)
        size = 0;
    memcpy(ret, bytes, size);
    explicit_bzero(bytes, sizeof bytes);
    return size;
}

/* ---- reading keys ---- */

static bool make_mac(struct sign_keys *k, const unsigned char *bytes, size_t len,
                     struct sign_key *ret)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    ret->mac = EVP_MAC_CTX_new(k->hmac);
    return ret->mac && EVP_MAC_init(ret->mac, bytes, len, params) == 1;
}

static const char *add_key(struct sign_keys *k, struct slice text)
{
    unsigned char bytes[SECRET_MOST];
    bool is_secret = text.len > 6 && memcmp(text.ptr, "whsec_", 6) == 0;
    bool is_private = text.len > 5 && memcmp(text.ptr, "whsk_", 5) == 0;
    struct sign_key key = {0};
    const char *fault = NULL;

    if (!is_secret && !is_private)
        return "a secret begins with whsec_, a private key with whsk_, and base64 follows";
    if (k->count == SIGN_KEYS_MAX)
        return "there are more than 8 secrets";
    size_t skipped = is_secret ? 6 : 5;
    size_t len = read_base64((struct slice){text.ptr + skipped, text.len - skipped}, bytes);
    if (is_secret && (len < SECRET_MIN || len > SECRET_MOST))
        fault = "a secret is whsec_ and 24 to 64 bytes in base64: whsec_$(openssl rand -base64 32)";
    else if (is_private && len != SEED_SIZE && len != SEED_SIZE + SEED_SIZE)
        fault = "a private key of Ed25519 is whsk_ and 32 bytes in base64, or 64 with the public "
                "one behind them";
    else if (is_secret && !make_mac(k, bytes, len, &key))
        fault = "HMAC cannot be used";
    else if (is_private)
        key.pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, SEED_SIZE);
    if (!fault && is_private && !key.pair)
        fault = "Ed25519 cannot be used";
    explicit_bzero(bytes, sizeof bytes);
    k->list[k->count++] = key; /* freed with the others in any case */
    return fault;
}

static const char *add_keys(struct sign_keys *k, struct slice text)
{
    static const char blanks[] = " \t\r\n";
    size_t before = k->count;
    const char *fault = NULL;

    for (size_t at = 0; at < text.len && !fault;) {
        size_t from = at;
        while (at < text.len && (!text.ptr[at] || !strchr(blanks, text.ptr[at])))
            at++;
        if (at > from)
            fault = add_key(k, (struct slice){text.ptr + from, at - from});
        else
            at++;
    }
    return !fault && k->count == before ? "it is empty" : fault;
}

struct sign_keys *sign_keys_load(const struct secret_place *places, size_t count,
                                 struct buf *ret_faults)
{
    struct sign_keys *k = calloc(1, sizeof *k);
    bool ok = true;

    ASSERT(k);
    k->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    for (size_t i = 0; i < count; i++) {
        char *text = NULL;
        size_t len = 0;
        const char *fault = secret_place_load(&places[i], &text, &len);
        if (!fault)
            fault = add_keys(k, (struct slice){text, len});
        secret_wipe(text, len);
        if (!fault)
            continue;
        ok = false;
        secret_place_fault(&places[i], fault, ret_faults);
        buf_byte(ret_faults, '\n');
    }
    if (ok)
        return k;
    sign_keys_free(k);
    return NULL;
}

/* ---- signing ---- */

static bool sign_mac(EVP_MAC_CTX *mac, struct slice text, struct buf *ret)
{
    unsigned char sum[HMAC_SIZE];
    size_t len = 0;

    if (EVP_MAC_init(mac, NULL, 0, NULL) != 1
        || EVP_MAC_update(mac, (const unsigned char *)text.ptr, text.len) != 1
        || EVP_MAC_final(mac, sum, &len, sizeof sum) != 1)
        return false;
    buf_str(ret, "v1,");
    add_base64(ret, sum, len);
    return true;
}

static bool sign_pair(EVP_PKEY *pair, struct slice text, struct buf *ret)
{
    unsigned char sum[ED25519_SIZE];
    size_t len = sizeof sum;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && EVP_DigestSignInit(c, NULL, NULL, NULL, pair) == 1
              && EVP_DigestSign(c, sum, &len, (const unsigned char *)text.ptr, text.len) == 1;

    EVP_MD_CTX_free(c);
    if (!ok)
        return false;
    buf_str(ret, "v1a,");
    add_base64(ret, sum, len);
    return true;
}

bool sign_text(struct sign_keys *k, struct slice text, struct buf *ret)
{
    bool ok = true;

    for (size_t i = 0; i < k->count && ok; i++) {
        if (i > 0)
            buf_byte(ret, ' ');
        ok = k->list[i].mac ? sign_mac(k->list[i].mac, text, ret)
                            : sign_pair(k->list[i].pair, text, ret);
    }
    return ok;
}

void sign_public(const struct sign_keys *k, struct buf *ret)
{
    for (size_t i = 0; i < k->count; i++) {
        unsigned char bytes[SEED_SIZE];
        size_t len = sizeof bytes;
        if (!k->list[i].pair || EVP_PKEY_get_raw_public_key(k->list[i].pair, bytes, &len) != 1)
            continue;
        buf_str(ret, "whpk_");
        add_base64(ret, bytes, len);
        buf_byte(ret, '\n');
    }
}
