/* Values built by expressions: construction of strings, arrays and objects, comparison, sorting,
 * and writing JSON. See value.h. Each operation pays before it works. */
#include "definition/expression/value.h"

#include <stdio.h>

#include "definition/expression/number.h"
#include "json/text.h"

const struct json value_null = {.type = JSON_NULL, .raw = {"null", 4}};
const struct json value_true = {.type = JSON_TRUE, .raw = {"true", 4}};
const struct json value_false = {.type = JSON_FALSE, .raw = {"false", 5}};

struct json *value_new(struct machine *m, enum json_type type)
{
    if (!machine_claim(m, sizeof(struct json)))
        return NULL;
    struct json *j = arena_alloc(m->arena, sizeof *j);
    j->type = type;
    return j;
}

char *value_bytes(struct machine *m, size_t len)
{
    if (!machine_claim(m, len + 1))
        return NULL;
    char *ptr = arena_bytes(m->arena, len + 1);
    ptr[len] = 0;
    return ptr;
}

const struct json *value_text(struct machine *m, struct slice text)
{
    struct json *j = value_new(m, JSON_STRING);

    if (j)
        j->text = text;
    return j;
}

const struct json *value_text_copy(struct machine *m, struct slice text)
{
    return value_concat(m, text, SLICE(""));
}

const struct json *value_concat(struct machine *m, struct slice a, struct slice b)
{
    char *ptr = value_bytes(m, a.len + b.len);

    if (!ptr)
        return NULL;
    memcpy(ptr, a.ptr, a.len);
    memcpy(ptr + a.len, b.ptr, b.len);
    return value_text(m, (struct slice){ptr, a.len + b.len});
}

struct builder builder_begin(struct machine *m, enum json_type type)
{
    struct json *container = value_new(m, type);

    ASSERT(type == JSON_ARRAY || type == JSON_OBJECT);
    return (struct builder){m, container, container ? &container->child : NULL};
}

/* Appends a copy of the member. NULL: failed, now or before. */
static struct json *append(struct builder *b, const struct json *member)
{
    struct json *j = b->container ? value_new(b->machine, member->type) : NULL;

    if (!j) {
        b->container = NULL;
        return NULL;
    }
    *j = *member;
    j->next = NULL;
    j->key = SLICE_NONE;
    *b->end = j;
    b->end = &j->next;
    b->container->count++;
    return j;
}

bool builder_add(struct builder *b, const struct json *member)
{
    return append(b, member) != NULL;
}

bool builder_set_new(struct builder *b, struct slice key, const struct json *member)
{
    struct json *j = append(b, member);

    if (j)
        j->key = key;
    return j != NULL;
}

/* Parts charged for comparing a key: long keys may differ only at their ends. */
static size_t compare_parts(struct slice key)
{
    return 1 + key.len / 64;
}

bool builder_set(struct builder *b, struct slice key, const struct json *member)
{
    size_t each = compare_parts(key);

    if (!b->container || !machine_pay(b->machine, 2 + b->container->count * each)) {
        b->container = NULL;
        return false;
    }
    for (struct json *j = b->container->child; j; j = j->next)
        if (slice_eq(j->key, key)) {
            struct json *next = j->next; /* it keeps its place and name */
            struct slice name = j->key;
            *j = *member;
            j->next = next;
            j->key = name;
            return true;
        }
    return builder_set_new(b, key, member);
}

/* The first few comparisons are included in the step of the lookup. */
enum { LOOKUP_FREE = 8 };

const struct json *value_get(struct machine *m, const struct json *object, struct slice key)
{
    uint32_t compared = 0;

    ASSERT(object->type == JSON_OBJECT);
    if (key.len >= 64 && !machine_pay(m, LOOKUP_FREE * (key.len / 64)))
        return NULL;
    for (const struct json *j = object->child; j; j = j->next) {
        if (++compared > LOOKUP_FREE && !machine_pay(m, compare_parts(key)))
            return NULL;
        if (slice_eq(j->key, key))
            return j;
    }
    return &value_null;
}

static int text_compare(struct machine *m, struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;

    if (!machine_pay(m, text_parts(len)))
        return 0;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

typedef int order_fn(struct machine *m, const struct json *a, const struct json *b);

static int key_order(struct machine *m, const struct json *a, const struct json *b)
{
    return machine_pay(m, 1) ? text_compare(m, a->key, b->key) : 0;
}

/* A merge sort: stable, and without bad cases. */
static void merge_sort(struct machine *m, const struct json **v, const struct json **spare,
                       size_t n, order_fn *order)
{
    size_t half = n / 2;
    size_t i = 0;
    size_t k = half;

    if (n < 2 || m->is_fatal)
        return;
    merge_sort(m, v, spare, half, order);
    merge_sort(m, v + half, spare, n - half, order);
    for (size_t at = 0; at < n; at++) {
        bool left = k == n || (i < half && order(m, v[i], v[k]) <= 0);
        spare[at] = left ? v[i++] : v[k++];
    }
    memcpy(v, spare, n * sizeof(void *));
}

static bool sort(struct machine *m, const struct json **values, size_t count, order_fn *order)
{
    size_t size = count * sizeof(struct json *);

    if (count < 2)
        return true;
    if (!machine_claim(m, size))
        return false;
    merge_sort(m, values, arena_alloc(m->arena, size), count, order);
    return !m->is_fatal;
}

bool value_sort(struct machine *m, const struct json **values, size_t count)
{
    return sort(m, values, count, value_compare);
}

const struct json **value_members(struct machine *m, const struct json *container, bool by_key)
{
    size_t size = (container->count + 1) * sizeof(struct json *);
    size_t n = 0;

    if (!machine_claim(m, size) || !machine_spend(m, container->count))
        return NULL;
    const struct json **members = arena_alloc(m->arena, size);
    for (const struct json *j = container->child; j; j = j->next)
        members[n++] = j;
    ASSERT(n == container->count);
    if (by_key && !sort(m, members, n, key_order))
        return NULL;
    return members;
}

static int array_compare(struct machine *m, const struct json *a, const struct json *b)
{
    const struct json *x = a->child;
    const struct json *y = b->child;

    for (; x && y; x = x->next, y = y->next) {
        int order = value_compare(m, x, y);
        if (order != 0 || m->is_fatal)
            return order;
    }
    return (x != NULL) - (y != NULL);
}

/* Compares the sorted keys as arrays, then the values key by key. */
static int object_compare(struct machine *m, const struct json *a, const struct json *b)
{
    const struct json **x = value_members(m, a, true);
    const struct json **y = x ? value_members(m, b, true) : NULL;
    size_t len = a->count < b->count ? a->count : b->count;

    if (!y)
        return 0;
    for (size_t i = 0; i < len; i++) {
        int order = text_compare(m, x[i]->key, y[i]->key);
        if (order != 0 || m->is_fatal)
            return order;
    }
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = 0; i < len; i++) {
        int order = value_compare(m, x[i], y[i]);
        if (order != 0 || m->is_fatal)
            return order;
    }
    return 0;
}

int value_compare(struct machine *m, const struct json *a, const struct json *b)
{
    if (!machine_pay(m, a->type == b->type ? PARTS_PER_STEP : 1))
        return 0;
    if (a->type != b->type) /* the enum has jq's order */
        return a->type < b->type ? -1 : 1;
    switch (a->type) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        return 0;
    case JSON_NUMBER:
        return number_compare(m, a, b);
    case JSON_STRING:
        return text_compare(m, a->text, b->text);
    case JSON_ARRAY:
        return array_compare(m, a, b);
    case JSON_OBJECT:
        return object_compare(m, a, b);
    }
    UNREACHABLE();
}

/* Parts charged for writing a value, the name of a member and an escape, in addition to the
 * texts. */
enum { VALUE_PARTS = 4, KEY_PARTS = 3, ESCAPE_PARTS = 2 };

/* The output of values, and the machine that pays; NULL: free. */
struct value_writer {
    struct machine *machine;
    struct buf *buf;
};

/* A string must be scanned to know what writing it costs. */
bool value_pay_text(struct machine *m, struct slice text)
{
    return machine_pay(m, text_parts(text.len))
           && machine_pay(m, ESCAPE_PARTS * text_escapes(text));
}

static bool pay_text(const struct value_writer *w, struct slice text)
{
    return !w->machine || value_pay_text(w->machine, text);
}

static bool pay_key(const struct value_writer *w, struct slice key)
{
    return !w->machine || (machine_pay(w->machine, KEY_PARTS) && value_pay_text(w->machine, key));
}

static bool write_at(const struct value_writer *w, const struct json *j, uint32_t depth);

static bool write_members(const struct value_writer *w, const struct json *j, uint32_t depth)
{
    bool is_object = j->type == JSON_OBJECT;

    json_open(w->buf, is_object ? '{' : '[');
    for (const struct json *m = j->child; m; m = m->next) {
        if (is_object && !pay_key(w, m->key))
            return false;
        if (is_object)
            json_key_slice(w->buf, m->key);
        if (!write_at(w, m, depth + 1))
            return false;
    }
    json_close(w->buf, is_object ? '}' : ']');
    return true;
}

static bool write_at(const struct value_writer *w, const struct json *j, uint32_t depth)
{
    bool is_container = value_is_container(j);

    if (depth + is_container > EXPRESSION_DEPTH_MAX || w->buf->overflow)
        return false;
    if (w->machine && !machine_pay(w->machine, VALUE_PARTS))
        return false;
    switch (j->type) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        json_raw(w->buf, j->raw);
        return true;
    case JSON_NUMBER:
        if (w->machine && !machine_pay(w->machine, text_parts(j->text.len)))
            return false;
        json_raw(w->buf, j->text);
        return true;
    case JSON_STRING:
        if (!pay_text(w, j->text))
            return false;
        json_string(w->buf, j->text);
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return write_members(w, j, depth);
    }
    UNREACHABLE();
}

bool value_write(struct buf *b, const struct json *j)
{
    return write_at(&(struct value_writer){NULL, b}, j, 0) && !b->overflow;
}

bool value_write_paid(struct machine *m, struct buf *b, const struct json *j)
{
    return write_at(&(struct value_writer){m, b}, j, 0) && !b->overflow;
}

const struct json *value_to_json(struct machine *m, const struct json *j)
{
    CLEANUP(buf_fini) struct buf b = {.max = m->bytes_left + 1};

    if (!value_write_paid(m, &b, j)) {
        (void)machine_fail(m, "the text of %s is too long or nested too deeply",
                           json_type_text(j->type));
        return NULL;
    }
    return value_text_copy(m, buf_view(&b));
}

const struct json *value_to_text(struct machine *m, const struct json *j)
{
    if (j->type == JSON_STRING)
        return j;
    if (j->type == JSON_NUMBER)
        return value_text_copy(m, j->text);
    return value_to_json(m, j);
}

const char *value_kind(const struct json *j)
{
    static const char *const kinds[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "boolean", [JSON_TRUE] = "boolean",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };

    ASSERT((size_t)j->type < COUNT_OF(kinds));
    return kinds[j->type];
}

struct value_summary value_summary(const struct machine *m, const struct json *j)
{
    CLEANUP(buf_fini) struct buf b = {.max = 40};
    struct value_summary s;

    if (m->is_fatal || m->is_caught)
        return (struct value_summary){""};
    if (j->type == JSON_NULL)
        return (struct value_summary){"null"};
    bool is_whole = value_write(&b, j);
    (void)snprintf(s.text, sizeof s.text, "%s (%.*s%s)", value_kind(j), SLICE_ARG(buf_view(&b)),
                   is_whole ? "" : "...");
    return s;
}
