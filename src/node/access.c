/*
 * Tokens in memory, and what they may do: looks a token up by its hash, reads roles, and decides
 * what a grant covers. Touches no store: access_load is given what was read (token_list.c).
 */

#include "node/access.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <strings.h>

#include "base/map.h"
#include "node/quota.h"
#include "store/codec/codec.h"
#include "json/json.h"

#define PREFIX "intact_"

enum { RANDOM_SIZE = 32, PREFIX_SIZE = sizeof PREFIX - 1 };

_Static_assert((RANDOM_SIZE * 8 + 5) / 6 == ACCESS_SECRET_SIZE, "base64url");
_Static_assert(PREFIX_SIZE + ACCESS_SECRET_SIZE == ACCESS_TOKEN_SIZE,
               "a token is a secret that says so");

struct access {
    struct arena arena;     /* of the list and all that is in it */
    struct bearer *bearers; /* by name */
    size_t count;
    struct map by_hash;
    EVP_MD *sha256; /* looked up once: that costs more than hashing a token */
    EVP_MD_CTX *ctx;
    char *file;   /* NULL: open, ... */
    bool honours; /* ... but a known token counts */
};

static const struct bearer somebody = {.name = {"open", 4},
                                       .roles_json = {"[\"admin\"]", 9},
                                       .roles = ROLE_ADMIN,
                                       .inner = true};

const struct bearer access_helper = {.name = {"helper", 6},
                                     .roles_json = {"[\"agent:*\"]", 11},
                                     .roles = ROLE_AGENT,
                                     .inner = true};

const struct bearer access_amqp = {.name = {"amqp", 4},
                                   .roles_json = {"[\"agent:*\",\"submit\"]", 20},
                                   .roles = ROLE_AGENT | ROLE_SUBMIT,
                                   .inner = true};

/* ---- roles ---- */

enum { ROLES_OPERATE = ROLE_SUBMIT | ROLE_READ | ROLE_DEFINE | ROLE_REPAIR };

static const struct {
    const char *text;
    unsigned roles;
} roles[] = {{"submit", ROLE_SUBMIT},    {"read", ROLE_READ},
             {"define", ROLE_DEFINE},    {"repair", ROLE_REPAIR | ROLE_READ},
             {"operate", ROLES_OPERATE}, {"approve", ROLE_APPROVE},
             {"link", ROLE_LINK},        {"admin", ROLE_ADMIN}};

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

bool access_is_group(struct slice s)
{
    return s.ptr && is_agent_name(s) && s.len <= ACCESS_NAME_MAX;
}

bool access_is_person(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!is_agent_name((struct slice){&c, 1}) && c != '@' && c != '+')
            return false;
    }
    return s.len >= 1 && s.len <= ACCESS_NAME_MAX;
}

/* The name of a workflow, of the same characters, or how several names begin, and "*". */
static bool is_pattern(struct slice s)
{
    bool open = s.len > 0 && s.ptr[s.len - 1] == '*';

    return is_agent_name((struct slice){s.ptr, s.len - open});
}

/* The part after "agent:" and the like; NONE if it begins otherwise. */
static struct slice behind(struct slice text, const char *prefix)
{
    size_t skip = strlen(prefix);

    if (!text.ptr || text.len <= skip || memcmp(text.ptr, prefix, skip) != 0)
        return SLICE_NONE;
    return (struct slice){text.ptr + skip, text.len - skip};
}

static bool parse_scope(struct slice text, const char *prefix, unsigned all, unsigned some,
                        unsigned *ret, struct slice *ret_name)
{
    struct slice name = behind(text, prefix);

    if (!slice_is(name, "*") && !(name.ptr && is_pattern(name)))
        return false;
    *ret = slice_is(name, "*") ? all : some;
    *ret_name = name;
    return true;
}

/* "WORKFLOW/NAME", either of which may be how several names begin, and "*". */
static bool split_signal(struct slice text, struct slice *ret_workflow, struct slice *ret_name)
{
    const char *slash = text.ptr ? memchr(text.ptr, '/', text.len) : NULL;

    if (!slash)
        return false;
    *ret_workflow = (struct slice){text.ptr, (size_t)(slash - text.ptr)};
    *ret_name = (struct slice){slash + 1, text.len - ret_workflow->len - 1};
    return true;
}

static bool parse_signal(struct slice text, unsigned *ret, struct slice *ret_name)
{
    struct slice both = behind(text, "signal:");
    struct slice workflow = SLICE_NONE;
    struct slice name = SLICE_NONE;

    if (!split_signal(both, &workflow, &name) || !(slice_is(workflow, "*") || is_pattern(workflow))
        || !(slice_is(name, "*") || is_pattern(name)))
        return false;
    *ret = ROLE_SIGNAL;
    *ret_name = both;
    return true;
}

bool role_parse(struct slice text, unsigned *ret, struct slice *ret_name)
{
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (slice_is(text, roles[i].text)) {
            *ret = roles[i].roles;
            *ret_name = SLICE_NONE;
            return true;
        }
    struct slice agent = behind(text, "agent:");
    if (slice_is(agent, "*") || (agent.ptr && is_agent_name(agent))) {
        *ret = ROLE_AGENT;
        *ret_name = agent;
        return true;
    }
    return parse_scope(text, "submit:", ROLE_SUBMIT, ROLE_SUBMIT_TO, ret, ret_name)
           || parse_scope(text, "read:", ROLE_READ, ROLE_READ_SOME, ret, ret_name)
           || parse_signal(text, ret, ret_name);
}

void role_write(struct buf *b, unsigned may, struct slice agent)
{
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (may & roles[i].roles & ~(unsigned)ROLE_ADMIN)
            buf_fmt(b, "%s, ", roles[i].text);
    if (may & ROLE_AGENT)
        buf_fmt(b, "agent:%.*s, ", SLICE_ARG(agent));
    if (may & ROLE_SIGNAL)
        buf_str(b, "signal:WORKFLOW/NAME, ");
    if (b->len >= 2)
        b->len -= 2;
    buf_str(b, b->len > 0 ? " or admin" : "admin");
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

void access_honour(struct access *a)
{
    ASSERT(access_is_open(a));
    a->honours = true;
}

const char *access_file(const struct access *a)
{
    return a->file;
}

static void add_role(struct bearer *b, struct slice text)
{
    struct slice name = SLICE_NONE;
    unsigned role = 0;

    if (!role_parse(text, &role, &name))
        return; /* of a newer version, or tampered with: it gives no right */
    if (role != ROLE_AGENT || slice_is(name, "*"))
        b->roles |= role;
    else
        b->agents[b->agent_count++] = name;
    if (role == ROLE_SUBMIT_TO)
        b->submits[b->submit_count++] = name;
    if (role == ROLE_READ_SOME)
        b->reads[b->read_count++] = name;
    if (role == ROLE_SIGNAL)
        b->signals[b->signal_count++] = name;
}

/* Those of a newer version, or tampered with, give no right. */
static void add_groups(struct access *a, struct bearer *b, struct slice groups)
{
    struct json *list = NULL;

    b->groups_json = SLICE("[]");
    if (!groups.ptr)
        return;
    struct slice text = arena_copy(&a->arena, groups);
    if (json_parse(&a->arena, text, &list, NULL) != ERR_OK || list->type != JSON_ARRAY)
        return;
    b->groups_json = text;
    b->groups = arena_alloc(&a->arena, (list->count + 1) * sizeof *b->groups);
    for (const struct json *j = list->child; j; j = j->next)
        if (j->type == JSON_STRING)
            b->groups[b->group_count++] = j->text;
}

/* By its text, and by the one that a rotation replaced. */
static void map_bearer(struct access *a, struct bearer *b)
{
    if (b->previous_until != 0)
        map_put(&a->by_hash, (struct slice){(const char *)b->previous_hash, TOKEN_HASH_SIZE}, b);
    map_put(&a->by_hash, (struct slice){(const char *)b->hash, TOKEN_HASH_SIZE}, b);
}

static void add_bearer(struct access *a, const struct token_row *row)
{
    struct bearer *b = &a->bearers[a->count++];
    struct slice wrong = SLICE_NONE;
    struct json *list = NULL;

    *b = (struct bearer){.name = arena_copy(&a->arena, row->name),
                         .roles_json = arena_copy(&a->arena, row->roles),
                         .created_at = row->created_at,
                         .expires_at = row->expires_at};
    memcpy(b->hash, row->hash, sizeof b->hash);
    memcpy(b->previous_hash, row->previous_hash, sizeof b->previous_hash);
    b->previous_until = row->previous_until;
    b->person = row->person.ptr ? arena_copy(&a->arena, row->person) : b->name;
    add_groups(a, b, row->groups);
    if (row->limits.ptr
        && json_parse(&a->arena, arena_copy(&a->arena, row->limits), &list, NULL) == ERR_OK
        && !quota_limits_read(list, &b->limits, &wrong))
        b->limits = (struct quota_limits){0}; /* of a newer version: the defaults */
    if (json_parse(&a->arena, b->roles_json, &list, NULL) != ERR_OK || list->type != JSON_ARRAY) {
        b->roles_json = SLICE("[]");
        list = NULL;
    }
    size_t most = (list ? list->count : 0) + 1;
    b->agents = arena_alloc(&a->arena, 4 * most * sizeof *b->agents);
    b->submits = b->agents + most;
    b->reads = b->submits + most;
    b->signals = b->reads + most;
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        add_role(b, j->type == JSON_STRING ? j->text : SLICE_NONE);
    map_bearer(a, b);
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
    for (size_t i = 0; i < a->count; i++)
        map_bearer(a, &a->bearers[i]);
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

static bool decides_as(const struct bearer *b, struct slice person, int64_t now)
{
    return slice_eq(b->person, person) && (b->expires_at == 0 || b->expires_at > now)
           && access_may(b, ROLE_APPROVE, SLICE_NONE);
}

const struct slice *access_groups_of(const struct access *ac, struct slice person, int64_t now,
                                     struct arena *a, size_t *ret_count)
{
    struct slice *groups = NULL;
    size_t most = 0;
    bool any = false;

    *ret_count = 0;
    for (size_t i = 0; i < ac->count; i++)
        if (decides_as(&ac->bearers[i], person, now)) {
            most += ac->bearers[i].group_count;
            any = true;
        }
    if (!any || (access_is_open(ac) && !ac->honours))
        return NULL;
    groups = arena_alloc(a, (most + 1) * sizeof *groups);
    for (size_t i = 0; i < ac->count; i++)
        for (size_t k = 0;
             decides_as(&ac->bearers[i], person, now) && k < ac->bearers[i].group_count; k++)
            groups[(*ret_count)++] = arena_copy(a, ac->bearers[i].groups[k]);
    return groups;
}

enum err secret_make(char ret[ACCESS_SECRET_SIZE + 1], struct error *e)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_SIZE + 1] = {0};

    if (RAND_bytes(bytes, RANDOM_SIZE) != 1)
        return error_set(e, ERR_IO, "no random numbers are available for a token");
    for (size_t i = 0; i < ACCESS_SECRET_SIZE; i++) {
        size_t bit = i * 6;
        unsigned two = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        ret[i] = digits[two >> (10 - bit % 8) & 63];
    }
    ret[ACCESS_SECRET_SIZE] = 0;
    OPENSSL_cleanse(bytes, sizeof bytes);
    return ERR_OK;
}

enum err access_make(char ret[ACCESS_TOKEN_SIZE + 1], struct error *e)
{
    memcpy(ret, PREFIX, PREFIX_SIZE);
    return secret_make(ret + PREFIX_SIZE, e);
}

static void hash_text(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE])
{
    unsigned len = 0;
    int ok = EVP_DigestInit_ex2(a->ctx, a->sha256, NULL)
             && EVP_DigestUpdate(a->ctx, text.ptr, text.len)
             && EVP_DigestFinal_ex(a->ctx, ret, &len);

    ASSERT(ok == 1);
    ASSERT(len == TOKEN_HASH_SIZE);
}

bool secret_hash(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE])
{
    if (text.len != ACCESS_SECRET_SIZE)
        return false;
    hash_text(a, text, ret);
    return true;
}

bool access_hash(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE])
{
    if (text.len != ACCESS_TOKEN_SIZE || memcmp(text.ptr, PREFIX, PREFIX_SIZE) != 0)
        return false;
    hash_text(a, text, ret);
    return true;
}

/* ---- requests ---- */

/* The part after "Bearer"; NONE if it is something else. */
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

const struct bearer *access_by_hash(struct access *a, const unsigned char hash[TOKEN_HASH_SIZE],
                                    int64_t now, const char **ret_why)
{
    const struct bearer *b =
        map_get(&a->by_hash, (struct slice){(const char *)hash, TOKEN_HASH_SIZE});

    if (!b)
        *ret_why = "the token is unknown: it was deleted, or belongs to another server";
    if (!b)
        return NULL;
    bool replaced = memcmp(hash, b->hash, TOKEN_HASH_SIZE) != 0;
    if (replaced && b->previous_until <= now)
        *ret_why = "the token was rotated: a new text has replaced this one";
    else if (b->expires_at != 0 && b->expires_at <= now)
        *ret_why = "the token has expired";
    else
        return b;
    return NULL;
}

bool access_hash_of(struct access *a, struct slice authorization,
                    unsigned char ret[TOKEN_HASH_SIZE])
{
    return access_hash(a, token_in(authorization), ret);
}

const struct bearer *access_who(struct access *a, struct slice authorization, int64_t now,
                                const char **ret_why)
{
    unsigned char hash[TOKEN_HASH_SIZE];

    if (access_is_open(a) && !a->honours)
        return &somebody;
    struct slice token = token_in(authorization);
    if (a->honours) {
        bool is_token = token.ptr && access_hash(a, token, hash);
        const struct bearer *b = is_token ? access_by_hash(a, hash, now, ret_why) : NULL;
        return b ? b : &somebody;
    }
    if (!token.ptr) {
        *ret_why = authorization.ptr ? "Authorization is not \"Bearer TOKEN\""
                                     : "send a token: \"Authorization: Bearer TOKEN\"";
        return NULL;
    }
    if (!access_hash(a, token, hash)) {
        *ret_why = "the text that was sent is not a token";
        return NULL;
    }
    return access_by_hash(a, hash, now, ret_why);
}

bool access_knows(struct access *a, struct slice text)
{
    unsigned char hash[TOKEN_HASH_SIZE];

    return access_hash(a, text, hash)
           && map_get(&a->by_hash, (struct slice){(const char *)hash, sizeof hash});
}

bool access_may_be_new(struct access *a, struct slice authorization)
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

bool bearer_signals(const struct bearer *b, struct slice workflow, struct slice name)
{
    if (b && b->roles & (ROLE_REPAIR | ROLE_ADMIN))
        return true;
    for (size_t i = 0; b && i < b->signal_count; i++) {
        struct slice in = SLICE_NONE;
        struct slice named = SLICE_NONE;
        if (split_signal(b->signals[i], &in, &named) && name_is_like(workflow, in)
            && name_is_like(name, named))
            return true;
    }
    return false;
}

/* ---- tasks ---- */

static const struct slice *names_copy(const struct slice *names, size_t count, struct arena *a)
{
    struct slice *copy = count ? arena_alloc(a, count * sizeof *copy) : NULL;

    for (size_t i = 0; i < count; i++)
        copy[i] = arena_copy(a, names[i]);
    return copy;
}

const struct grant *grant_new(const struct bearer *b, struct arena *a)
{
    if (!b || b->inner)
        return NULL;
    struct grant *g = arena_alloc(a, sizeof *g);
    *g = (struct grant){
        .owner = arena_copy(a, b->name),
        .submits_all = b->roles & (ROLE_SUBMIT | ROLE_ADMIN),
        .reads_all = b->roles & (ROLE_READ | ROLE_ADMIN),
        .repairs = b->roles & (ROLE_REPAIR | ROLE_ADMIN),
        .defines = b->roles & ROLE_DEFINE,
        .submits = names_copy(b->submits, b->submit_count, a),
        .reads = names_copy(b->reads, b->read_count, a),
        .submit_count = b->submit_count,
        .read_count = b->read_count,
    };
    g->person = slice_same(b->person, b->name) ? g->owner : arena_copy(a, b->person);
    return g;
}

const struct grant *grant_copy(const struct grant *g, struct arena *a)
{
    if (!g)
        return NULL;
    struct grant *copy = arena_alloc(a, sizeof *copy);
    *copy = *g;
    copy->owner = arena_copy(a, g->owner);
    copy->person = slice_same(g->person, g->owner) ? copy->owner : arena_copy(a, g->person);
    copy->submits = names_copy(g->submits, g->submit_count, a);
    copy->reads = names_copy(g->reads, g->read_count, a);
    return copy;
}

bool grant_submits(const struct grant *g, struct slice workflow)
{
    return !g || g->submits_all || name_is_within(workflow, g->submits, g->submit_count);
}

bool grant_reads(const struct grant *g, struct slice workflow)
{
    return !g || g->reads_all || name_is_within(workflow, g->reads, g->read_count);
}

bool grant_reads_definition(const struct grant *g, struct slice workflow)
{
    return !g || g->defines || grant_submits(g, workflow) || grant_reads(g, workflow);
}

bool grant_sees(const struct grant *g, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};

    if (grant_reads(g, row->workflow))
        return true;
    struct slice owner = doc_owner(row->doc, &a);
    return owner.ptr && slice_eq(owner, g->owner);
}
