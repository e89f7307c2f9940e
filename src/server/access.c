#include "server/access.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <strings.h>

#include "json/json.h"

#define PREFIX "intact_"

enum { RANDOM_SIZE = 32, PREFIX_SIZE = sizeof PREFIX - 1 };

_Static_assert(PREFIX_SIZE + (RANDOM_SIZE * 8 + 5) / 6 == ACCESS_TOKEN_SIZE, "base64url");

struct access {
    struct arena arena;     /* of the list and all that is in it */
    struct bearer *bearers; /* by name */
    size_t count;
    struct map by_hash;
    EVP_MD *sha256; /* looked up once: that costs more than hashing a token */
    EVP_MD_CTX *ctx;
    char *file; /* NULL: open */
};

static const struct bearer somebody = {.name = {"open", 4},
                                       .roles_json = {"[\"admin\"]", 9},
                                       .roles = ROLE_ADMIN};

const struct bearer access_helper = {.name = {"helper", 6},
                                     .roles_json = {"[\"agent:*\"]", 11},
                                     .roles = ROLE_AGENT};

const struct bearer access_amqp = {.name = {"amqp", 4},
                                   .roles_json = {"[\"agent:*\",\"submit\"]", 20},
                                   .roles = ROLE_AGENT | ROLE_SUBMIT};

/* ---- roles ---- */

static const struct {
    const char *text;
    unsigned role;
} roles[] = {{"submit", ROLE_SUBMIT},
             {"read", ROLE_READ},
             {"operate", ROLE_OPERATE},
             {"admin", ROLE_ADMIN}};

static bool is_agent_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr("._:-", c))))
            return false;
    }
    return s.len >= 1 && s.len <= 128;
}

bool role_parse(struct slice text, unsigned *ret, struct slice *ret_agent)
{
    static const char prefix[] = "agent:";
    const size_t skip = sizeof prefix - 1;

    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (slice_is(text, roles[i].text)) {
            *ret = roles[i].role;
            *ret_agent = SLICE_NONE;
            return true;
        }
    if (!text.ptr || text.len <= skip || memcmp(text.ptr, prefix, skip) != 0)
        return false;
    struct slice agent = {text.ptr + skip, text.len - skip};
    if (!slice_is(agent, "*") && !is_agent_name(agent))
        return false;
    *ret = ROLE_AGENT;
    *ret_agent = agent;
    return true;
}

void role_write(struct buf *b, unsigned may, struct slice agent)
{
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (may & roles[i].role)
            buf_fmt(b, "%s, ", roles[i].text);
    if (may & ROLE_AGENT)
        buf_fmt(b, "agent:%.*s, ", SLICE_ARG(agent));
    if (b->len >= 2)
        b->len -= 2;
    buf_str(b, may & ROLE_ADMIN ? "" : " or admin");
}

/* ---- tokens ---- */

struct access *access_new(const char *file)
{
    struct access *a = calloc(1, sizeof *a);

    ASSERT(a);
    a->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ASSERT(a->sha256);
    a->ctx = EVP_MD_CTX_new();
    ASSERT(a->ctx);
    a->file = file ? strdup(file) : NULL;
    ASSERT(a->file || !file);
    return a;
}

void access_free(struct access *a)
{
    if (!a)
        return;
    map_fini(&a->by_hash);
    arena_fini(&a->arena);
    EVP_MD_CTX_free(a->ctx);
    EVP_MD_free(a->sha256);
    free(a->file);
    free(a);
}

bool access_is_open(const struct access *a)
{
    return !a->file;
}

const char *access_file(const struct access *a)
{
    return a->file;
}

static void add_role(struct bearer *b, struct slice text)
{
    struct slice agent = SLICE_NONE;
    unsigned role = 0;

    if (!role_parse(text, &role, &agent))
        return; /* of a newer version, or tampered with: it gives no right */
    if (role != ROLE_AGENT || slice_is(agent, "*"))
        b->roles |= role;
    else
        b->agents[b->agent_count++] = agent;
}

static void add_bearer(struct access *a, const struct token_row *row)
{
    struct bearer *b = &a->bearers[a->count++];
    struct json *list = NULL;

    *b = (struct bearer){.name = arena_copy(&a->arena, row->name),
                         .roles_json = arena_copy(&a->arena, row->roles),
                         .created_at = row->created_at,
                         .expires_at = row->expires_at};
    memcpy(b->hash, row->hash, sizeof b->hash);
    if (json_parse(&a->arena, b->roles_json, &list, NULL) != ERR_OK || list->type != JSON_ARRAY) {
        b->roles_json = SLICE("[]");
        list = NULL;
    }
    b->agents = arena_alloc(&a->arena, ((list ? list->count : 0) + 1) * sizeof *b->agents);
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        add_role(b, j->type == JSON_STRING ? j->text : SLICE_NONE);
    map_put(&a->by_hash, (struct slice){(const char *)b->hash, sizeof b->hash}, b);
}

void access_load(struct access *a, const struct token_row *rows, size_t count)
{
    map_fini(&a->by_hash);
    arena_fini(&a->arena);
    a->by_hash = (struct map){0};
    a->arena = (struct arena){0};
    a->count = 0;
    a->bearers = arena_alloc(&a->arena, (count + 1) * sizeof *a->bearers);
    for (size_t i = 0; i < count; i++)
        add_bearer(a, &rows[i]);
}

static void map_again(struct access *a)
{
    map_fini(&a->by_hash);
    a->by_hash = (struct map){0};
    for (size_t i = 0; i < a->count; i++) {
        struct bearer *b = &a->bearers[i];
        map_put(&a->by_hash, (struct slice){(const char *)b->hash, sizeof b->hash}, b);
    }
}

void access_add(struct access *a, const struct token_row *row)
{
    struct bearer *more = arena_alloc(&a->arena, (a->count + 1) * sizeof *more);

    access_remove(a, row->name);
    if (a->count > 0)
        memcpy(more, a->bearers, a->count * sizeof *more);
    a->bearers = more;
    add_bearer(a, row);
    map_again(a);
}

void access_remove(struct access *a, struct slice name)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->count; i++)
        if (!slice_eq(a->bearers[i].name, name))
            a->bearers[kept++] = a->bearers[i];
    a->count = kept;
    map_again(a);
}

const struct bearer *access_list(const struct access *a, size_t *ret_count)
{
    *ret_count = a->count;
    return a->bearers;
}

enum err access_make(char ret[ACCESS_TOKEN_SIZE + 1], struct error *e)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_SIZE + 1] = {0};

    if (RAND_bytes(bytes, RANDOM_SIZE) != 1)
        return error_set(e, ERR_IO, "there are no random numbers for a token");
    memcpy(ret, PREFIX, PREFIX_SIZE);
    for (size_t i = 0; i < ACCESS_TOKEN_SIZE - PREFIX_SIZE; i++) {
        size_t bit = i * 6;
        unsigned two = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        ret[PREFIX_SIZE + i] = digits[two >> (10 - bit % 8) & 63];
    }
    ret[ACCESS_TOKEN_SIZE] = 0;
    OPENSSL_cleanse(bytes, sizeof bytes);
    return ERR_OK;
}

bool access_hash(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE])
{
    unsigned len = 0;

    if (text.len != ACCESS_TOKEN_SIZE || memcmp(text.ptr, PREFIX, PREFIX_SIZE) != 0)
        return false;
    int ok = EVP_DigestInit_ex2(a->ctx, a->sha256, NULL)
             && EVP_DigestUpdate(a->ctx, text.ptr, text.len)
             && EVP_DigestFinal_ex(a->ctx, ret, &len);
    ASSERT(ok == 1);
    ASSERT(len == TOKEN_HASH_SIZE);
    return true;
}

/* ---- requests ---- */

/* What stands behind "Bearer"; NONE if it is something else. */
static struct slice token_in(struct slice authorization)
{
    static const char scheme[] = "bearer ";
    const size_t skip = sizeof scheme - 1;

    if (!authorization.ptr || authorization.len <= skip
        || strncasecmp(authorization.ptr, scheme, skip) != 0)
        return SLICE_NONE;
    struct slice token = {authorization.ptr + skip, authorization.len - skip};
    while (token.len > 0 && *token.ptr == ' ')
        token = (struct slice){token.ptr + 1, token.len - 1};
    return token;
}

const struct bearer *access_who(struct access *a, struct slice authorization, int64_t now,
                                const char **ret_why)
{
    unsigned char hash[TOKEN_HASH_SIZE];

    if (access_is_open(a))
        return &somebody;
    struct slice token = token_in(authorization);
    if (!token.ptr) {
        *ret_why = authorization.ptr ? "Authorization is not \"Bearer TOKEN\""
                                     : "send a token: \"Authorization: Bearer TOKEN\"";
        return NULL;
    }
    if (!access_hash(a, token, hash)) {
        *ret_why = "what was sent does not look like a token";
        return NULL;
    }
    const struct bearer *b = map_get(&a->by_hash, (struct slice){(const char *)hash, sizeof hash});
    if (!b)
        *ret_why = "the token is not known here: it was deleted, or is of another server";
    if (!b || b->expires_at == 0 || b->expires_at > now)
        return b;
    *ret_why = "the token has expired";
    return NULL;
}

bool access_is_news(struct access *a, struct slice authorization)
{
    unsigned char hash[TOKEN_HASH_SIZE];

    return !access_is_open(a) && access_hash(a, token_in(authorization), hash)
           && !map_get(&a->by_hash, (struct slice){(const char *)hash, sizeof hash});
}

bool access_may(const struct bearer *b, unsigned may, struct slice agent)
{
    if (may & (ROLE_ANYBODY | ROLE_BEARER) || b->roles & (may | ROLE_ADMIN))
        return true;
    for (size_t i = 0; may & ROLE_AGENT && i < b->agent_count; i++)
        if (slice_eq(b->agents[i], agent))
            return true;
    return false;
}
