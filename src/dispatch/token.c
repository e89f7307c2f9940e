/* Writes, parses and verifies tokens of attempts (format: token.h). Touches only its key, which
 * serves one thread at a time. */

#include "dispatch/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

enum { MAC_BYTES = 16, MAC_CHARS = 22, TAG_CHARS = 8 };

/* The context is kept with its key: setting up HMAC costs more than computing it. */
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

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The MAC of both texts with a '~' between them. */
static void mac_of(struct token_key *k, struct slice first, struct slice second,
                   char ret[MAC_CHARS])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t len = 0;

    int ok = EVP_MAC_init(k->ctx, NULL, 0, NULL)
             && EVP_MAC_update(k->ctx, (const unsigned char *)first.ptr, first.len)
             && EVP_MAC_update(k->ctx, (const unsigned char *)"~", 1)
             && EVP_MAC_update(k->ctx, (const unsigned char *)second.ptr, second.len)
             && EVP_MAC_final(k->ctx, mac, &len, sizeof mac);
    ASSERT(ok);
    ASSERT(len >= MAC_BYTES);
    mac[MAC_BYTES] = mac[MAC_BYTES + 1] = 0;
    for (int i = 0; i < MAC_CHARS; i++) { /* base64url, without padding */
        int bit = i * 6;
        uint32_t two = ((uint32_t)mac[bit / 8] << 8) | mac[bit / 8 + 1];
        ret[i] = alphabet[(two >> (10 - bit % 8)) & 63];
    }
}

/* FNV-1a, reduced to 48 bits: the same in every version, because tokens outlive versions. */
static void tag_of(struct slice agent, char ret[TAG_CHARS])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < agent.len; i++)
        h = (h ^ (unsigned char)agent.ptr[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 48;
    for (int i = 0; i < TAG_CHARS; i++, h >>= 6)
        ret[i] = alphabet[h & 63];
}

/* `tagged` ends with '~' and the tag. A MAC without a tag ends with an agent's name, which contains
 * no '~'. */
static void tagged_mac(struct token_key *k, struct slice tagged, char ret[MAC_CHARS])
{
    mac_of(k, tagged, SLICE(""), ret);
}

void token_write(struct token_key *k, const struct token *t, struct slice agent, struct buf *b)
{
    size_t from = b->len;
    char mac[MAC_CHARS];
    char tag[TAG_CHARS];

    buf_slice(b, t->task);
    buf_byte(b, '~');
    buf_i64(b, t->step);
    if (t->item.any) {
        buf_byte(b, '.');
        buf_i64(b, t->item.number);
    }
    if (t->item.any && t->item.generation > 0) {
        buf_byte(b, '.');
        buf_i64(b, t->item.generation);
    }
    buf_str(b, t->direction == DIRECTION_UNDO ? "~u" : "~f");
    buf_i64(b, t->attempt);
    buf_byte(b, '~');
    tag_of(agent, tag);
    buf_add(b, tag, sizeof tag);
    tagged_mac(k, (struct slice){b->ptr + from, b->len - from}, mac);
    buf_byte(b, '.');
    buf_add(b, mac, sizeof mac);
}

/* Parses the digits before `at`, and moves `at` in front of them. */
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

/* Parses what stands before `at` and the last number of a place: "1." or "1.3.". */
static bool item_before(struct slice text, size_t *at, uint32_t last, uint32_t *ret_step,
                        struct item_ref *ret)
{
    uint32_t second = 0;

    if (!number_before(text, at, UINT32_MAX, &second))
        return false;
    *ret_step = second;
    *ret = (struct item_ref){.any = true, .number = last};
    if (!char_before(text, at, '.'))
        return true;
    ret->number = second;
    ret->generation = last;
    return number_before(text, at, UINT32_MAX, ret_step);
}

/* Parses "1", "1.3" or "1.3.2" before `at`: the step, its item and the generation of its list. */
static bool place_before(struct slice text, size_t *at, uint32_t *ret_step, struct item_ref *ret)
{
    *ret = (struct item_ref){0};
    if (!number_before(text, at, UINT32_MAX, ret_step))
        return false;
    if (char_before(text, at, '.') && !item_before(text, at, *ret_step, ret_step, ret))
        return false;
    return *ret_step < STEPS_MAX && ret->number < ITEMS_MAX;
}

/* The position of the '.' before the MAC of a tagged token; 0: it has no tag. */
static size_t dot_of(struct slice text)
{
    size_t at = text.len - MAC_CHARS - 1;

    return text.len > MAC_CHARS + TAG_CHARS + 2 && text.ptr[at] == '.' ? at : 0;
}

/* Parses from the end, so that ids may contain any character. */
bool token_parse(struct slice text, struct token *ret)
{
    uint32_t attempt = 0;
    uint32_t step = 0;
    struct item_ref item;

    if (!text.ptr || text.len > TOKEN_MAX || text.len < MAC_CHARS + 1)
        return false;
    size_t dot = dot_of(text);
    size_t at = dot > 0 ? dot - TAG_CHARS : text.len - MAC_CHARS;
    if (!char_before(text, &at, '~') || !number_before(text, &at, UINT32_MAX, &attempt))
        return false;
    bool undo = char_before(text, &at, 'u');
    if ((!undo && !char_before(text, &at, 'f')) || !char_before(text, &at, '~')
        || !place_before(text, &at, &step, &item) || !char_before(text, &at, '~') || at == 0)
        return false;
    *ret = (struct token){
        {text.ptr, at}, (uint16_t)step, undo ? DIRECTION_UNDO : DIRECTION_FORWARD, attempt, item};
    return true;
}

static bool mac_fits(const char mac[MAC_CHARS], struct slice text)
{
    return CRYPTO_memcmp(mac, text.ptr + text.len - MAC_CHARS, MAC_CHARS) == 0;
}

enum token_worth token_judge(struct token_key *k, struct slice text, struct token *ret)
{
    char mac[MAC_CHARS];

    if (!token_parse(text, ret))
        return TOKEN_FORGED;
    size_t dot = dot_of(text);
    if (dot == 0)
        return TOKEN_UNTAGGED;
    tagged_mac(k, (struct slice){text.ptr, dot}, mac);
    return mac_fits(mac, text) ? TOKEN_OURS : TOKEN_FORGED;
}

bool token_check(struct token_key *k, struct slice text, struct slice agent, struct token *ret)
{
    char mac[MAC_CHARS];
    char tag[TAG_CHARS];

    switch (token_judge(k, text, ret)) {
    case TOKEN_FORGED:
        return false;
    case TOKEN_OURS:
        tag_of(agent, tag);
        return memcmp(tag, text.ptr + dot_of(text) - TAG_CHARS, TAG_CHARS) == 0;
    case TOKEN_UNTAGGED:
        mac_of(k, (struct slice){text.ptr, text.len - MAC_CHARS - 1}, agent, mac);
        return mac_fits(mac, text);
    }
    UNREACHABLE();
}

/* What its MAC covers ends with '!'; with those of attempts it is '~', or the name of an agent. */
static void signal_mac(struct token_key *k, struct slice text, char ret[MAC_CHARS])
{
    mac_of(k, text, SLICE("!"), ret);
}

void signal_token_write(struct token_key *k, struct slice task, struct slice name, struct buf *b)
{
    size_t from = b->len;
    char mac[MAC_CHARS];

    ASSERT(task.len > 0 && name.len > 0);
    buf_slice(b, task);
    buf_byte(b, '~');
    buf_slice(b, name);
    signal_mac(k, (struct slice){b->ptr + from, b->len - from}, mac);
    buf_byte(b, '.');
    buf_add(b, mac, sizeof mac);
}

bool signal_token_check(struct token_key *k, struct slice text, struct signal_token *ret)
{
    char mac[MAC_CHARS];

    if (!text.ptr || text.len > SIGNAL_TOKEN_MAX || text.len < MAC_CHARS + 4)
        return false;
    size_t dot = text.len - MAC_CHARS - 1;
    size_t at = dot;
    while (at > 0 && text.ptr[at - 1] != '~')
        at--;
    if (text.ptr[dot] != '.' || at < 2 || at == dot)
        return false;
    signal_mac(k, (struct slice){text.ptr, dot}, mac);
    *ret = (struct signal_token){{text.ptr, at - 1}, {text.ptr + at, dot - at}};
    return mac_fits(mac, text);
}

bool token_same(struct slice a, struct slice b)
{
    return a.len == b.len && CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* ---- links with which people decide ---- */

/* Without what would fill up the last four letters. */
static void base64url_write(struct buf *b, struct slice s)
{
    for (size_t bit = 0; bit < s.len * 8; bit += 6) {
        size_t at = bit / 8;
        unsigned next = at + 1 < s.len ? (unsigned char)s.ptr[at + 1] : 0;
        unsigned two = (unsigned)(unsigned char)s.ptr[at] << 8 | next;
        buf_byte(b, alphabet[two >> (10 - bit % 8) & 63]);
    }
}

static bool base64url_read(struct slice s, struct buf *b)
{
    uint32_t bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < s.len; i++) {
        const char *at = s.ptr[i] ? strchr(alphabet, s.ptr[i]) : NULL;
        if (!at)
            return false;
        bits = bits << 6 | (uint32_t)(at - alphabet);
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        buf_byte(b, (char)(bits >> count & 255));
    }
    return true;
}

/* What its MAC covers ends with '?'; with those of attempts it is '~', or the name of an agent. */
static void link_mac(struct token_key *k, struct slice text, char ret[MAC_CHARS])
{
    mac_of(k, text, SLICE("?"), ret);
}

void approval_link_write(struct token_key *k, const struct approval_link *l, struct buf *b)
{
    CLEANUP(buf_fini) struct buf fields = {0};
    size_t from = b->len;
    char mac[MAC_CHARS];

    ASSERT(l->task.len > 0 && l->step.len > 0 && l->person.len > 0);
    buf_fmt(&fields, "%" PRIu32 "~%" PRId64 "~%" PRId64 "~%.*s~%.*s~%.*s", l->asking,
            l->submitted_at, l->expires_at, SLICE_ARG(l->person), SLICE_ARG(l->step),
            SLICE_ARG(l->task));
    base64url_write(b, buf_view(&fields));
    link_mac(k, (struct slice){b->ptr + from, b->len - from}, mac);
    buf_add(b, mac, sizeof mac);
    ASSERT(b->len - from <= APPROVAL_LINK_MAX);
}

/* The field before the next '~', which is cut off. NONE: there is no other one. */
static struct slice field_cut(struct slice *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, '~', rest->len) : NULL;

    if (!end)
        return SLICE_NONE;
    struct slice field = {rest->ptr, (size_t)(end - rest->ptr)};
    *rest = (struct slice){end + 1, rest->len - field.len - 1};
    return field;
}

static bool number_cut(struct slice *rest, int64_t max, int64_t *ret)
{
    struct slice digits = field_cut(rest);

    *ret = 0;
    for (size_t i = 0; i < digits.len; i++) {
        int64_t digit = digits.ptr[i] - '0';
        if (digit < 0 || digit > 9 || *ret > (max - digit) / 10)
            return false;
        *ret = *ret * 10 + digit;
    }
    return digits.len > 0;
}

static bool link_read(struct slice fields, struct approval_link *ret)
{
    int64_t asking = 0;

    if (!number_cut(&fields, UINT32_MAX, &asking)
        || !number_cut(&fields, INT64_MAX, &ret->submitted_at)
        || !number_cut(&fields, INT64_MAX, &ret->expires_at))
        return false;
    ret->asking = (uint32_t)asking;
    ret->person = field_cut(&fields);
    ret->step = field_cut(&fields);
    ret->task = fields;
    return ret->person.len > 0 && ret->step.len > 0 && ret->task.len > 0;
}

bool approval_link_check(struct token_key *k, struct slice text, struct arena *a,
                         struct approval_link *ret)
{
    CLEANUP(buf_fini) struct buf fields = {0};
    char mac[MAC_CHARS];

    if (!text.ptr || text.len > APPROVAL_LINK_MAX || text.len <= MAC_CHARS)
        return false;
    const struct slice signed_part = {text.ptr, text.len - MAC_CHARS};
    link_mac(k, signed_part, mac);
    return mac_fits(mac, text) && base64url_read(signed_part, &fields)
           && link_read(arena_copy(a, buf_view(&fields)), ret);
}
