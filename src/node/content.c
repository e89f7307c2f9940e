/*
 * The identity of a submission's content: the SHA-256 of its canonical bytes, and the 64-bit hash
 * of earlier versions. Nodes of an earlier version that share the database compare only the hash;
 * so does this one with what they stored.
 */

#include "node/content.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "json/json.h"

enum { SHA256_SIZE = 32 };

struct contents {
    EVP_MD *sha256; /* looked up once: that costs more than hashing a submission */
    EVP_MD_CTX *ctx;
    struct buf piece;
};

struct contents *contents_new(void)
{
    struct contents *c = calloc(1, sizeof *c);

    ASSERT(c);
    c->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ASSERT(c->sha256);
    c->ctx = EVP_MD_CTX_new();
    ASSERT(c->ctx);
    return c;
}

void contents_free(struct contents *c)
{
    if (!c)
        return;
    EVP_MD_CTX_free(c->ctx);
    EVP_MD_free(c->sha256);
    buf_fini(&c->piece);
    free(c);
}

static void take(void *arg, struct slice piece)
{
    int ok = EVP_DigestUpdate(arg, piece.ptr, piece.len);

    ASSERT(ok == 1);
}

/* In base64url, without what would fill up the last four letters. */
static struct slice text_of(const unsigned char sum[SHA256_SIZE + 1], struct arena *a)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *text = arena_alloc(a, CONTENT_SHA256_LEN + 1);
    char *at = text;

    for (int i = 0; i < SHA256_SIZE; i += 3) { /* behind the sum is a zero */
        unsigned three = (unsigned)sum[i] << 16 | (unsigned)sum[i + 1] << 8 | sum[i + 2];
        *at++ = letters[three >> 18];
        *at++ = letters[three >> 12 & 63];
        *at++ = letters[three >> 6 & 63];
        *at++ = letters[three & 63];
    }
    return (struct slice){text, CONTENT_SHA256_LEN};
}

static void take_out(struct json *j, const char *name)
{
    for (struct json **m = &j->child; *m; m = &(*m)->next)
        if (slice_is((*m)->key, name)) {
            *m = (*m)->next;
            j->count--;
            return;
        }
}

struct slice content_of_value(struct contents *c, const struct json *j, struct arena *a)
{
    unsigned char sum[EVP_MAX_MD_SIZE] = {0};
    unsigned len = 0;

    int ok = EVP_DigestInit_ex2(c->ctx, c->sha256, NULL);
    ASSERT(ok == 1);
    json_canonical(j, &c->piece, take, c->ctx);
    ok = EVP_DigestFinal_ex(c->ctx, sum, &len);
    ASSERT(ok == 1 && len == SHA256_SIZE);
    return text_of(sum, a);
}

struct content content_of(struct contents *c, struct json *j, struct arena *a)
{
    take_out(j, "traceparent");
    take_out(j, "signals");
    return (struct content){json_hash(j), content_of_value(c, j, a)};
}
