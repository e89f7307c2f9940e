/* Arithmetic, comparison and slices of values of any type: see operator.h. Numbers are handled
 * by number.c. */
#include "definition/expression/operator.h"

#include <math.h>

#include "definition/expression/number.h"

/* The number of characters that begin in eight bytes. */
static size_t characters_of_eight(const char *ptr)
{
    const uint64_t low = UINT64_C(0x0101010101010101);
    uint64_t v;

    memcpy(&v, ptr, sizeof v);
    uint64_t inside = (v >> 7) & ~(v >> 6) & low; /* 10xxxxxx */
    return 8 - (size_t)((inside * low) >> 56);
}

size_t text_length(struct slice text)
{
    size_t n = 0;
    size_t i = 0;

    for (; i + 8 <= text.len; i += 8)
        n += characters_of_eight(text.ptr + i);
    for (; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

size_t text_prefix(struct slice text, size_t characters)
{
    size_t i = 0;

    for (; i + 8 <= text.len; i += 8) {
        size_t n = characters_of_eight(text.ptr + i);
        if (n > characters)
            break;
        characters -= n;
    }
    for (; i < text.len; i++) {
        if (((unsigned char)text.ptr[i] & 0xc0) == 0x80)
            continue;
        if (characters-- == 0)
            return i;
    }
    return text.len;
}

static const struct json *refuse(struct machine *m, const char *what, const struct json *a,
                                 const struct json *b)
{
    (void)machine_fail(m, "%s and %s cannot be %s", value_summary(m, a).text,
                       value_summary(m, b).text, what);
    return NULL;
}

static bool add_all(struct builder *b, const struct json *members)
{
    for (const struct json *j = members; j; j = j->next)
        if (!machine_spend(b->machine, 1) || !builder_add(b, j))
            return false;
    return true;
}

static const struct json *array_concat(struct machine *m, const struct json *a,
                                       const struct json *b)
{
    struct builder r = builder_begin(m, JSON_ARRAY);

    if (!r.container || !add_all(&r, a->child) || !add_all(&r, b->child))
        return NULL;
    return r.container;
}

/* The value that replaces `old` in a deep merge. */
static const struct json *merged(struct machine *m, const struct json *old, const struct json *new,
                                 bool deep)
{
    if (deep && old && old->type == JSON_OBJECT && new->type == JSON_OBJECT)
        return operator_merge(m, old, new, true);
    return new;
}

const struct json *operator_merge(struct machine *m, const struct json *a, const struct json *b,
                                  bool deep)
{
    struct builder r = builder_begin(m, JSON_OBJECT);

    for (const struct json *j = a->child; j; j = j->next)
        if (!machine_spend(m, 1) || !builder_set_new(&r, j->key, j))
            return NULL;
    for (const struct json *j = b->child; j; j = j->next) {
        if (!r.container || !machine_spend(m, 1))
            return NULL;
        const struct json *old = deep ? value_get(m, r.container, j->key) : NULL;
        const struct json *v = merged(m, old, j, deep);
        if (!v || !builder_set(&r, j->key, v))
            return NULL;
    }
    return r.container;
}

static const struct json *add(struct machine *m, const struct json *a, const struct json *b)
{
    if (a->type == JSON_NULL)
        return b;
    if (b->type == JSON_NULL)
        return a;
    if (a->type != b->type)
        return refuse(m, "added", a, b);
    if (a->type == JSON_NUMBER)
        return number_apply(m, OP_ADD, a, b);
    if (a->type == JSON_STRING)
        return value_concat(m, a->text, b->text);
    if (a->type == JSON_ARRAY)
        return array_concat(m, a, b);
    if (a->type == JSON_OBJECT)
        return operator_merge(m, a, b, false);
    return refuse(m, "added", a, b);
}

static bool is_among(struct machine *m, const struct json *value, const struct json *array)
{
    for (const struct json *j = array->child; j && !m->is_fatal; j = j->next)
        if (value_compare(m, value, j) == 0)
            return true;
    return false;
}

static const struct json *subtract(struct machine *m, const struct json *a, const struct json *b)
{
    if (a->type == JSON_NUMBER && b->type == JSON_NUMBER)
        return number_apply(m, OP_SUBTRACT, a, b);
    if (a->type != JSON_ARRAY || b->type != JSON_ARRAY)
        return refuse(m, "subtracted", a, b);
    struct builder r = builder_begin(m, JSON_ARRAY);
    for (const struct json *j = a->child; j; j = j->next)
        if (!machine_spend(m, b->count + 1) || (!is_among(m, j, b) && !builder_add(&r, j)))
            return NULL;
    return m->is_fatal ? NULL : r.container;
}

static const struct json *repeat(struct machine *m, struct slice text, const struct json *times)
{
    struct number n;

    if (!number_of(m, times, &n))
        return NULL;
    if (n.d <= 0)
        return &value_null;
    size_t count = n.d > 1e9 ? (size_t)1e9 : n.d < 1 ? 1 : (size_t)n.d;
    if (text.len > 0 && count > EXPRESSION_BYTES_MAX / text.len)
        count = EXPRESSION_BYTES_MAX / text.len + 1; /* value_bytes will refuse it */
    if (text.len == 0)
        return value_text(m, SLICE(""));
    char *ptr = value_bytes(m, count * text.len);
    if (!ptr)
        return NULL;
    size_t len = count * text.len;
    memcpy(ptr, text.ptr, text.len);
    for (size_t done = text.len; done < len; done *= 2) /* doubles what is there */
        memcpy(ptr + done, ptr, done < len - done ? done : len - done);
    return value_text(m, (struct slice){ptr, len});
}

static const struct json *multiply(struct machine *m, const struct json *a, const struct json *b)
{
    if (a->type == JSON_NUMBER && b->type == JSON_NUMBER)
        return number_apply(m, OP_MULTIPLY, a, b);
    if (a->type == JSON_STRING && b->type == JSON_NUMBER)
        return repeat(m, a->text, b);
    if (a->type == JSON_NUMBER && b->type == JSON_STRING)
        return repeat(m, b->text, a);
    if (a->type == JSON_OBJECT && b->type == JSON_OBJECT)
        return operator_merge(m, a, b, true);
    return refuse(m, "multiplied", a, b);
}

/* The end of the piece at the start of the text, and the beginning of the next one. False: no
 * separator follows. */
static bool separator_find(struct slice text, struct slice separator, size_t *ret_end,
                           size_t *ret_next)
{
    if (separator.len == 0) { /* after every character except the last */
        *ret_end = *ret_next = text_prefix(text, 1);
        return *ret_end < text.len;
    }
    const char *at = memmem(text.ptr, text.len, separator.ptr, separator.len);
    if (!at)
        return false;
    *ret_end = (size_t)(at - text.ptr);
    *ret_next = *ret_end + separator.len;
    return true;
}

const struct json *operator_split(struct machine *m, struct slice text, struct slice separator)
{
    struct builder r = builder_begin(m, JSON_ARRAY);
    bool more = text.len > 0;

    if (!machine_pay(m, search_parts(text, separator.len)))
        return NULL;
    while (more) {
        size_t end = text.len;
        size_t next = text.len;
        if (!machine_pay(m, PARTS_PER_STEP + text_parts(separator.len)))
            return NULL;
        more = separator_find(text, separator, &end, &next);
        const struct json *piece = value_text_copy(m, (struct slice){text.ptr, end});
        if (!piece || !builder_add(&r, piece))
            return NULL;
        text = (struct slice){text.ptr + next, text.len - next};
    }
    return r.container;
}

static const struct json *divide(struct machine *m, const struct json *a, const struct json *b)
{
    if (a->type == JSON_NUMBER && b->type == JSON_NUMBER)
        return number_apply(m, OP_DIVIDE, a, b);
    if (a->type == JSON_STRING && b->type == JSON_STRING)
        return operator_split(m, a->text, b->text);
    return refuse(m, "divided", a, b);
}

static const struct json *modulo(struct machine *m, const struct json *a, const struct json *b)
{
    if (a->type == JSON_NUMBER && b->type == JSON_NUMBER)
        return number_apply(m, OP_MODULO, a, b);
    return refuse(m, "divided", a, b);
}

static const struct json *compare(struct machine *m, enum operator op, const struct json *a,
                                  const struct json *b)
{
    int order = value_compare(m, a, b);

    if (m->is_fatal)
        return NULL;
    if (op == OP_EQUAL || op == OP_UNEQUAL)
        return value_bool((order == 0) == (op == OP_EQUAL));
    if (op == OP_LESS || op == OP_GREATER_EQUAL)
        return value_bool((order < 0) == (op == OP_LESS));
    return value_bool((order > 0) == (op == OP_GREATER));
}

const struct json *operator_apply(struct machine *m, enum operator op, const struct json *a,
                                  const struct json *b)
{
    switch (op) {
    case OP_ADD:
        return add(m, a, b);
    case OP_SUBTRACT:
        return subtract(m, a, b);
    case OP_MULTIPLY:
        return multiply(m, a, b);
    case OP_DIVIDE:
        return divide(m, a, b);
    case OP_MODULO:
        return modulo(m, a, b);
    case OP_EQUAL:
    case OP_UNEQUAL:
    case OP_LESS:
    case OP_LESS_EQUAL:
    case OP_GREATER:
    case OP_GREATER_EQUAL:
        return compare(m, op, a, b);
    }
    UNREACHABLE();
}

/* Fractions are rounded outwards. Negative positions count from the end. */
static bool slice_position(struct machine *m, const struct json *j, size_t len, bool is_end,
                           size_t *ret)
{
    struct number n;

    if (j->type == JSON_NULL) {
        *ret = is_end ? len : 0;
        return true;
    }
    if (j->type != JSON_NUMBER) {
        (void)machine_fail(m, "start and end of a slice must be numbers");
        return false;
    }
    if (!number_of(m, j, &n))
        return false;
    double d = n.d < 0 ? n.d + (double)len : n.d;
    d = is_end ? ceil(d) : floor(d);
    *ret = d < 0 ? 0 : d > (double)len ? len : (size_t)d;
    return true;
}

static const struct json *array_slice(struct machine *m, const struct json *of, size_t from,
                                      size_t to)
{
    struct builder r = builder_begin(m, JSON_ARRAY);
    size_t i = 0;

    if (!r.container || !machine_spend(m, to))
        return NULL;
    for (const struct json *j = of->child; j && i < to; j = j->next, i++)
        if (i >= from && !builder_add(&r, j))
            return NULL;
    return r.container;
}

const struct json *operator_slice(struct machine *m, const struct json *of, const struct json *from,
                                  const struct json *to)
{
    size_t start = 0;
    size_t end = 0;

    if (of->type == JSON_NULL)
        return &value_null;
    if (of->type != JSON_ARRAY && of->type != JSON_STRING) {
        (void)machine_fail(m, "cannot take a slice of %s", value_kind(of));
        return NULL;
    }
    if (!machine_pay(m, text_parts(of->text.len)))
        return NULL;
    size_t len = of->type == JSON_ARRAY ? of->count : text_length(of->text);
    if (!slice_position(m, from, len, false, &start) || !slice_position(m, to, len, true, &end))
        return NULL;
    if (end < start)
        end = start;
    if (of->type == JSON_ARRAY)
        return array_slice(m, of, start, end);
    size_t skipped = text_prefix(of->text, start);
    struct slice rest = {of->text.ptr + skipped, of->text.len - skipped};
    return value_text_copy(m, (struct slice){rest.ptr, text_prefix(rest, end - start)});
}

/* Whether the members from `at` on begin with the first `count` of `part`. */
static bool is_run(struct machine *m, const struct json *at, const struct json *part,
                   uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, at = at->next, part = part->next)
        if (!at || value_compare(m, at, part) != 0 || m->is_fatal)
            return false;
    return true;
}

const struct json *operator_indices(struct machine *m, const struct json *in,
                                    const struct json *part, uint32_t count)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    size_t i = 0;

    for (const struct json *j = in->child; j && count > 0; j = j->next, i++) {
        if (!machine_spend(m, 1))
            return NULL;
        if (is_run(m, j, part, count) && !builder_add_int(&b, i))
            return NULL;
    }
    return b.container;
}
