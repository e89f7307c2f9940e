#include "json/json.h"

#include <stdarg.h>
#include <stdlib.h>

#include "json/text.h"
#include "json/token.h"

struct level {
    struct json *parent;
    struct json **end; /* where the next member is hung */
};

struct parser {
    struct arena *arena;
    struct json_tokens tokens;
    uint32_t depth;
    uint32_t depth_max;
    struct level levels[JSON_DEPTH_MAX];
    struct json *root;
    struct slice key;
    uint32_t key_at;
    bool keeps_twice;
    bool has_fault;
    struct json_fault fault;
};

static PRINTF(3, 4) bool refuse(struct parser *p, size_t offset, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_format(p->fault.what, sizeof p->fault.what, fmt, ap);
    va_end(ap);
    p->fault.offset = offset;
    p->has_fault = true;
    return false;
}

/* A token that may not stand where it does, if it is one at all. */
static bool refuse_token(struct parser *p, enum json_token token, const char *why)
{
    const struct json_tokens *t = &p->tokens;

    if (token == JSON_TOKEN_END)
        return refuse(p, t->text.len, "the text ends too early");
    if (token == JSON_TOKEN_BAD)
        return refuse(p, t->bad_at, "%s", t->why);
    return refuse(p, t->start, "%s", why);
}

/* Makes the node of the value that the last token is, or begins, and hangs it into the tree. */
static struct json *hang(struct parser *p, enum json_type type)
{
    const struct json_tokens *t = &p->tokens;
    struct json *j = arena_alloc(p->arena, sizeof *j);

    j->type = type;
    j->raw = (struct slice){t->text.ptr + t->start, t->end - t->start};
    j->at = (uint32_t)t->start;
    if (p->depth == 0) {
        ASSERT(!p->root);
        p->root = j;
        return j;
    }
    struct level *l = &p->levels[p->depth - 1];
    if (l->parent->type == JSON_OBJECT) {
        j->key = p->key;
        j->key_at = p->key_at;
    }
    l->parent->count++;
    *l->end = j;
    l->end = &j->next;
    return j;
}

/* ---- strings ---- */

/* What the string is that the last token is; in the arena and with a NUL behind it, unless it may
 * stay where it stands. */
static bool decode(struct parser *p, bool may_stay, struct slice *ret)
{
    const struct json_tokens *t = &p->tokens;
    struct slice inside = {t->text.ptr + t->start + 1, t->end - t->start - 2};
    const char *why = NULL;
    size_t bad = text_utf8_end(inside);

    if (bad < inside.len)
        return refuse(p, t->start + 1 + bad, "bytes that are not UTF-8");
    if (!t->has_escapes) {
        *ret = may_stay ? inside : arena_copy(p->arena, inside);
        return true;
    }
    bad = text_escapes_end(inside, &why);
    if (bad < inside.len)
        return refuse(p, t->start + 1 + bad, "%s", why);
    char *to = arena_bytes(p->arena, inside.len + 1);
    *ret = (struct slice){to, text_unescape(inside, to)};
    to[ret->len] = 0;
    return true;
}

static bool take_string(struct parser *p)
{
    struct slice text;

    if (!decode(p, false, &text))
        return false;
    hang(p, JSON_STRING)->text = text;
    return true;
}

static bool take_key(struct parser *p)
{
    p->key_at = (uint32_t)p->tokens.start;
    return decode(p, true, &p->key);
}

/* ---- objects and arrays ---- */

static bool open_container(struct parser *p, enum json_type type)
{
    if (p->depth == p->depth_max)
        return refuse(p, p->tokens.start, "nested deeper than %u levels", p->depth_max);
    struct json *j = hang(p, type);
    p->levels[p->depth++] = (struct level){j, &j->child};
    return true;
}

static const struct json *find_twice_few(const struct json *object)
{
    for (const struct json *j = object->child; j; j = j->next)
        for (const struct json *k = object->child; k != j; k = k->next)
            if (slice_eq(k->key, j->key))
                return j;
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a;
    const struct json *y = *(const struct json *const *)b;

    if (x->key.len != y->key.len)
        return x->key.len < y->key.len ? -1 : 1;
    int order = memcmp(x->key.ptr, y->key.ptr, x->key.len);
    if (order != 0)
        return order;
    return x->key_at < y->key_at ? -1 : x->key_at > y->key_at;
}

/* Sorted rather than hashed: nobody can choose keys that make sorting slow. */
static const struct json *find_twice_many(const struct json *object)
{
    const struct json **members = calloc(object->count, sizeof(void *));
    const struct json *found = NULL;
    size_t n = 0;

    ASSERT(members);
    for (const struct json *j = object->child; j; j = j->next)
        members[n++] = j;
    ASSERT(n == object->count);
    qsort(members, n, sizeof(void *), by_key);
    for (size_t i = 1; i < n; i++)
        if (slice_eq(members[i - 1]->key, members[i]->key)
            && (!found || members[i]->key_at < found->key_at))
            found = members[i];
    free(members);
    return found;
}

const struct json *json_twice(const struct json *object)
{
    return object->count <= 12 ? find_twice_few(object) : find_twice_many(object);
}

static bool close_container(struct parser *p)
{
    ASSERT(p->depth > 0);
    struct json *j = p->levels[--p->depth].parent;
    const struct json *twice = NULL;

    j->raw.len = (size_t)(p->tokens.text.ptr + p->tokens.end - j->raw.ptr);
    if (j->type == JSON_OBJECT && !p->keeps_twice)
        twice = json_twice(j);
    if (twice)
        return refuse(p, twice->key_at, "key \"%.*s\" stands here twice",
                      SLICE_ARG(slice_cut(twice->key, 80)));
    return true;
}

/* ---- the grammar ---- */

/* The value that begins with this token. */
static bool take_value(struct parser *p, enum json_token token)
{
    switch (token) {
    case JSON_TOKEN_STRING:
        return take_string(p);
    case JSON_TOKEN_NUMBER: {
        struct json *j = hang(p, JSON_NUMBER);
        j->text = j->raw;
        return true;
    }
    case JSON_TOKEN_NULL:
        (void)hang(p, JSON_NULL);
        return true;
    case JSON_TOKEN_FALSE:
        (void)hang(p, JSON_FALSE);
        return true;
    case JSON_TOKEN_TRUE:
        (void)hang(p, JSON_TRUE);
        return true;
    case JSON_TOKEN_OBJECT:
        return open_container(p, JSON_OBJECT);
    case JSON_TOKEN_ARRAY:
        return open_container(p, JSON_ARRAY);
    case JSON_TOKEN_END:
    case JSON_TOKEN_BAD:
    case JSON_TOKEN_OBJECT_END:
    case JSON_TOKEN_ARRAY_END:
    case JSON_TOKEN_COLON:
    case JSON_TOKEN_COMMA:
        return refuse_token(p, token, "unallowed token at this point in JSON text");
    }
    UNREACHABLE();
}

static bool take_member(struct parser *p, enum json_token token)
{
    if (token != JSON_TOKEN_STRING)
        return refuse_token(p, token, "invalid object key (must be a string)");
    if (!take_key(p))
        return false;
    token = json_token_next(&p->tokens);
    if (token != JSON_TOKEN_COLON)
        return refuse_token(p, token, "object key and value must be separated by a colon (':')");
    return take_value(p, json_token_next(&p->tokens));
}

/* Goes on within the innermost container: with its next member, or its end. */
static bool go_on(struct parser *p)
{
    const struct json *parent = p->levels[p->depth - 1].parent;
    bool is_object = parent->type == JSON_OBJECT;
    enum json_token token = json_token_next(&p->tokens);

    if (token == (is_object ? JSON_TOKEN_OBJECT_END : JSON_TOKEN_ARRAY_END))
        return close_container(p);
    if (parent->count > 0 && token != JSON_TOKEN_COMMA)
        return refuse_token(p, token,
                            is_object ? "after key and value, inside map, I expect ',' or '}'"
                                      : "after array element, I expect ',' or ']'");
    if (parent->count > 0)
        token = json_token_next(&p->tokens);
    return is_object ? take_member(p, token) : take_value(p, token);
}

static bool run(struct parser *p)
{
    if (!take_value(p, json_token_next(&p->tokens)))
        return false;
    while (p->depth > 0)
        if (!go_on(p))
            return false;
    if (json_token_next(&p->tokens) != JSON_TOKEN_END || p->tokens.start != p->tokens.text.len)
        return refuse(p, p->tokens.start, "trailing garbage");
    return true;
}

static enum err parse(struct parser *p, struct json **ret, struct json_fault *fault)
{
    ASSERT(p->depth_max <= JSON_DEPTH_MAX);
    if (!p->tokens.text.ptr)
        p->tokens.text = SLICE("");
    if (p->tokens.text.len >= UINT32_MAX)
        (void)refuse(p, 0, "longer than 4 GiB");
    else
        (void)run(p);
    if (p->has_fault) {
        json_position(p->tokens.text, p->fault.offset, &p->fault.line, &p->fault.column);
        if (fault)
            *fault = p->fault;
        return ERR_PARSE;
    }
    *ret = p->root;
    return ERR_OK;
}

enum err json_parse(struct arena *a, struct slice text, struct json **ret, struct json_fault *fault)
{
    return json_parse_within(a, text, JSON_DEPTH_MAX, ret, fault);
}

enum err json_parse_within(struct arena *a, struct slice text, uint32_t depth_max,
                           struct json **ret, struct json_fault *fault)
{
    struct parser p = {.arena = a, .tokens = {.text = text}, .depth_max = depth_max};

    return parse(&p, ret, fault);
}

enum err json_parse_twice(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                          struct json_fault *fault)
{
    struct parser p = {.arena = a,
                       .tokens = {.text = text},
                       .depth_max = depth_max,
                       .keeps_twice = true};

    return parse(&p, ret, fault);
}

void json_position(struct slice text, size_t offset, uint32_t *ret_line, uint32_t *ret_column)
{
    uint32_t line = 1;
    size_t start = 0;

    ASSERT(offset <= text.len);
    for (size_t i = 0; i < offset; i++)
        if (text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    *ret_line = line;
    *ret_column = (uint32_t)(offset - start + 1);
}
