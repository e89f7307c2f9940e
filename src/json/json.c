/* Parses a JSON text into a tree in an arena, driven by the callbacks of YAJL, and refuses what
 * YAJL tolerates: bad UTF-8, duplicate keys, lone surrogates and others (json.h). json_read.c
 * reads values from the tree, json_write.c writes JSON, yaml_read.c makes the same trees from
 * YAML. */

#include "json/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "json/sorted.h"
#include "json/text.h"

struct level {
    struct json *parent;
    struct json **end; /* where the next member is linked */
};

struct parser {
    struct arena *arena;
    struct slice text;
    yajl_handle yajl;
    bool is_finishing; /* YAJL was told that the text ends */
    size_t at;         /* after the last token that YAJL reported */
    uint32_t depth;
    uint32_t depth_max;
    struct level levels[JSON_DEPTH_MAX];
    struct json *root;
    struct slice key;
    uint32_t key_at;
    size_t total_max; /* of the arena; 0: unlimited */
    bool keeps_twice;
    bool is_too_big;
    bool has_fault;
    struct json_fault fault;
};

static PRINTF(3, 4) int refuse(struct parser *p, size_t offset, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_format(p->fault.what, sizeof p->fault.what, fmt, ap);
    va_end(ap);
    p->fault.offset = offset;
    p->has_fault = true;
    return 0;
}

/* The end of the token that YAJL reports now. YAJL reports a number at the end of the text only
 * when finishing; its byte count then means something else. */
static size_t token_end(const struct parser *p)
{
    return p->is_finishing ? p->text.len : yajl_get_bytes_consumed(p->yajl);
}

static bool is_between(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':';
}

/* Between two reported tokens there is only white space, commas and colons. */
static size_t token_start(const struct parser *p)
{
    size_t at = p->at;

    while (is_between(p->text.ptr[at]))
        at++;
    return at;
}

/* Checked after each value, so one value beyond the limit is allocated. */
static int still_fits(struct parser *p)
{
    if (p->total_max == 0 || p->arena->total <= p->total_max)
        return 1;
    p->is_too_big = true;
    return refuse(p, p->at, "more values than there is memory for");
}

/* Makes the node of a value and adds it to the tree, with `size` more bytes after the node. */
static struct json *hang(struct parser *p, enum json_type type, size_t start, size_t end,
                         size_t size)
{
    struct json *j = arena_alloc(p->arena, sizeof *j + size);

    ASSERT(start < end);
    j->type = type;
    j->raw = (struct slice){p->text.ptr + start, end - start};
    j->at = (uint32_t)start;
    p->at = end;
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

static int take_word(struct parser *p, enum json_type type, size_t len)
{
    size_t end = token_end(p);

    (void)hang(p, type, end - len, end, 0);
    return still_fits(p);
}

static int take_null(void *arg)
{
    return take_word(arg, JSON_NULL, 4);
}

static int take_boolean(void *arg, int value)
{
    return value ? take_word(arg, JSON_TRUE, 4) : take_word(arg, JSON_FALSE, 5);
}

static int take_number(void *arg, const char *ptr, size_t len)
{
    struct parser *p = arg;
    size_t end = token_end(p);
    struct json *j = hang(p, JSON_NUMBER, end - len, end, 0);

    (void)ptr; /* may be YAJL's copy */
    j->text = j->raw;
    return still_fits(p);
}

/* Checks what YAJL does not; `start` is the position of the opening quote. */
static bool check_string(struct parser *p, size_t start, size_t end, bool has_escapes)
{
    struct slice inside = {p->text.ptr + start + 1, end - start - 2};
    const char *why = NULL;
    size_t bad = text_utf8_end(inside);

    if (bad < inside.len)
        return refuse(p, start + 1 + bad, "bytes that are not UTF-8");
    if (!has_escapes)
        return true;
    bad = text_escapes_end(inside, &why);
    if (bad < inside.len)
        return refuse(p, start + 1 + bad, "%s", why);
    return true;
}

static int take_string(void *arg, const unsigned char *ptr, size_t len)
{
    struct parser *p = arg;
    size_t end = token_end(p);
    size_t start = token_start(p);

    ASSERT(p->text.ptr[start] == '"');
    if (!check_string(p, start, end, end - start - 2 != len))
        return 0;
    struct json *j = hang(p, JSON_STRING, start, end, len + 1);
    char *text = (char *)(j + 1);
    memcpy(text, ptr, len);
    j->text = (struct slice){text, len};
    return still_fits(p);
}

static int take_key(void *arg, const unsigned char *ptr, size_t len)
{
    struct parser *p = arg;
    size_t end = token_end(p);
    size_t start = token_start(p);
    bool has_escapes = end - start - 2 != len;

    ASSERT(p->text.ptr[start] == '"');
    if (!check_string(p, start, end, has_escapes))
        return 0;
    p->key = has_escapes ? arena_copy(p->arena, (struct slice){(const char *)ptr, len})
                         : (struct slice){p->text.ptr + start + 1, len};
    p->key_at = (uint32_t)start;
    p->at = end;
    return 1;
}

static int open_container(struct parser *p, enum json_type type)
{
    size_t end = token_end(p);

    if (p->depth == p->depth_max)
        return refuse(p, end - 1, "nested deeper than %u levels", p->depth_max);
    struct json *j = hang(p, type, end - 1, end, 0);
    p->levels[p->depth++] = (struct level){j, &j->child};
    return still_fits(p);
}

static struct json *close_container(struct parser *p)
{
    ASSERT(p->depth > 0);
    struct json *j = p->levels[--p->depth].parent;

    p->at = token_end(p);
    j->raw.len = (size_t)(p->text.ptr + p->at - j->raw.ptr);
    return j;
}

static int take_array_start(void *arg)
{
    return open_container(arg, JSON_ARRAY);
}

static int take_array_end(void *arg)
{
    (void)close_container(arg);
    return 1;
}

static int take_object_start(void *arg)
{
    return open_container(arg, JSON_OBJECT);
}

static const struct json *find_twice_few(const struct json *object)
{
    for (const struct json *j = object->child; j; j = j->next)
        for (const struct json *k = object->child; k != j; k = k->next)
            if (slice_eq(k->key, j->key))
                return j;
    return NULL;
}

/* Sorts instead of hashing: no choice of keys makes sorting slow. */
static const struct json *find_twice_many(const struct json *object)
{
    struct json_named *list = json_sorted(object);
    const struct json *found = NULL;

    for (size_t i = 1; i < object->count; i++)
        if (slice_eq(list[i - 1].member->key, list[i].member->key)
            && (!found || list[i].member->key_at < found->key_at))
            found = list[i].member;
    free(list);
    return found;
}

const struct json *json_twice(const struct json *object)
{
    return object->count <= 12 ? find_twice_few(object) : find_twice_many(object);
}

static int take_object_end(void *arg)
{
    struct parser *p = arg;
    const struct json *object = close_container(p);
    const struct json *twice = p->keeps_twice ? NULL : json_twice(object);

    if (twice)
        return refuse(p, twice->key_at, "key \"%.*s\" appears twice",
                      SLICE_ARG(slice_cut(twice->key, 80)));
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = take_null,
    .yajl_boolean = take_boolean,
    .yajl_number = take_number,
    .yajl_string = take_string,
    .yajl_start_map = take_object_start,
    .yajl_map_key = take_key,
    .yajl_end_map = take_object_end,
    .yajl_start_array = take_array_start,
    .yajl_end_array = take_array_end,
};

static void *yajl_malloc(void *arg, size_t size)
{
    void *ptr = malloc(size);

    (void)arg;
    ASSERT(ptr);
    return ptr;
}

static void *yajl_realloc(void *arg, void *old, size_t size)
{
    void *ptr = realloc(old, size);

    (void)arg;
    ASSERT(ptr);
    return ptr;
}

static void yajl_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

/* The start of the token that YAJL rejected and that ends at `end`. */
static size_t fault_start(const struct parser *p, size_t end)
{
    size_t at = p->at;

    while (at < p->text.len && is_between(p->text.ptr[at])) {
        bool is_space = p->text.ptr[at] != ',' && p->text.ptr[at] != ':';
        if (!is_space && at + 1 >= end)
            break;
        at++;
    }
    return at;
}

/* YAJL's message without its decoration ("lexical error: ... .
 * "). */
static void explain(struct parser *p)
{
    unsigned char *words = yajl_get_error(p->yajl, 0, NULL, 0);
    const char *colon = strstr((const char *)words, ": ");
    const char *what = colon ? colon + 2 : (const char *)words;
    size_t end = p->is_finishing ? p->text.len : yajl_get_bytes_consumed(p->yajl);
    size_t start = fault_start(p, end);
    bool is_lexical = memcmp(words, "lexical", 7) == 0;

    if (strncmp(what, "premature EOF", 13) == 0)
        (void)refuse(p, p->text.len, "the text ends too early");
    else if (is_lexical && start < p->text.len && p->text.ptr[start] == '"')
        (void)refuse(p, end, "%.*s", (int)strcspn(what, ".\n"), what); /* the exact byte */
    else
        (void)refuse(p, start, "%.*s", (int)strcspn(what, ".\n"), what);
    yajl_free_error(p->yajl, words);
}

/* YAJL accepts vertical tabs and form feeds as white space; JSON allows them nowhere. */
static bool check_feeds(struct parser *p)
{
    static const char feeds[] = "\v\f";

    for (size_t i = 0; i < 2; i++) {
        const char *at = memchr(p->text.ptr, feeds[i], p->text.len);
        if (at)
            return refuse(p, (size_t)(at - p->text.ptr), "invalid char in json text");
    }
    return true;
}

/* YAJL ignores an unterminated string after the value. */
static void check_rest(struct parser *p)
{
    size_t at = p->at;

    while (at < p->text.len && is_between(p->text.ptr[at]))
        at++;
    if (at < p->text.len)
        (void)refuse(p, at, "trailing garbage");
}

static void run(struct parser *p)
{
    yajl_alloc_funcs memory = {yajl_malloc, yajl_realloc, yajl_release, NULL};

    p->yajl = yajl_alloc(&callbacks, &memory, p);
    ASSERT(p->yajl);
    (void)yajl_config(p->yajl, yajl_dont_validate_strings, 1); /* text.c is stricter, and faster */
    yajl_status status = yajl_parse(p->yajl, (const unsigned char *)p->text.ptr, p->text.len);
    if (status == yajl_status_ok) {
        p->is_finishing = true;
        status = yajl_complete_parse(p->yajl);
    }
    if (status != yajl_status_ok && !p->has_fault)
        explain(p);
    if (!p->has_fault)
        check_rest(p);
    ASSERT(p->has_fault || p->root);
    yajl_free(p->yajl);
}

static enum err parse(struct parser *p, struct json **ret, struct json_fault *fault)
{
    ASSERT(p->depth_max <= JSON_DEPTH_MAX);
    if (p->text.len >= UINT32_MAX)
        (void)refuse(p, 0, "longer than 4 GiB");
    else if (check_feeds(p))
        run(p);
    if (p->has_fault) {
        json_position(p->text, p->fault.offset, &p->fault.line, &p->fault.column);
        if (fault)
            *fault = p->fault;
        return p->is_too_big ? ERR_TOO_BIG : ERR_PARSE;
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
    struct parser p = {.arena = a, .text = text.ptr ? text : SLICE(""), .depth_max = depth_max};

    return parse(&p, ret, fault);
}

enum err json_parse_bounded(struct arena *a, struct slice text, uint32_t depth_max, size_t size_max,
                            struct json **ret, struct json_fault *fault)
{
    struct parser p = {.arena = a,
                       .text = text.ptr ? text : SLICE(""),
                       .depth_max = depth_max,
                       .total_max = a->total + size_max};

    return parse(&p, ret, fault);
}

enum err json_parse_twice(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                          struct json_fault *fault)
{
    struct parser p = {.arena = a,
                       .text = text.ptr ? text : SLICE(""),
                       .depth_max = depth_max,
                       .keeps_twice = true};

    return parse(&p, ret, fault);
}

/* Recurses as deep as the parser let the tree become. */
bool json_is_within(const struct json *j, uint32_t depth)
{
    if (j->type != JSON_OBJECT && j->type != JSON_ARRAY)
        return true;
    if (j->raw.len < 2 * (size_t)depth) /* each of them has two brackets */
        return true;
    if (depth == 0)
        return false;
    for (const struct json *k = j->child; k; k = k->next)
        if (!json_is_within(k, depth - 1))
            return false;
    return true;
}

void json_position(struct slice text, size_t offset, uint32_t *ret_line, uint32_t *ret_column)
{
    uint32_t line = 1;
    size_t start = 0;
    const char *at = NULL;

    ASSERT(offset <= text.len);
    while (start < offset && (at = memchr(text.ptr + start, '\n', offset - start))) {
        line++;
        start = (size_t)(at - text.ptr) + 1;
    }
    *ret_line = line;
    *ret_column = (uint32_t)(offset - start + 1);
}
