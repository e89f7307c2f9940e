/*
 * Equality of values. White space, the order of members, escapes and the notation of a number do
 * not matter. json_canonical() writes the same bytes for equal values and different ones for
 * others; json_hash() is a 64-bit hash of the value, not collision-resistant.
 */

#include "json/json.h"

#include <stdlib.h>

#include "base/map.h"
#include "json/sorted.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ (h >> 32);
}

/* A number is its digits without leading and trailing zeros, and the power of ten of the last one:
 * so 1, 1.0 and 10e-1 are equal, and 9007199254740993 differs from 9007199254740992. */
struct decimal {
    uint64_t digits;  /* hash of the digits up to the last one that is not 0 */
    uint64_t zeros;   /* trailing zeros so far */
    int64_t exponent; /* of the last digit seen */
    bool any;
};

static void decimal_digit(struct decimal *d, char digit, bool is_fraction)
{
    d->exponent -= is_fraction;
    if (digit == '0') {
        d->zeros += d->any;
        return;
    }
    for (; d->zeros > 0; d->zeros--)
        d->digits = mix(d->digits, '0');
    d->digits = mix(d->digits, (unsigned char)digit);
    d->any = true;
}

static int64_t exponent_of(const char *p, const char *end)
{
    int64_t v = 0;
    bool negative = *p == '-';

    for (p += *p == '-' || *p == '+'; p < end; p++)
        v = min_i64(v * 10 + (*p - '0'), INT64_C(1) << 50);
    return negative ? -v : v;
}

static uint64_t number_hash(struct slice text)
{
    struct decimal d = {.digits = 1};
    const char *end = text.ptr + text.len;
    bool is_fraction = false;

    for (const char *p = text.ptr; p < end; p++) {
        if (*p == 'e' || *p == 'E') {
            d.exponent += exponent_of(p + 1, end);
            break;
        }
        if (*p == '.')
            is_fraction = true;
        else if (*p != '-')
            decimal_digit(&d, *p, is_fraction);
    }
    if (!d.any)
        return 1;
    return mix(mix(d.digits, (uint64_t)(d.exponent + (int64_t)d.zeros)), text.ptr[0] == '-');
}

uint64_t json_hash(const struct json *j)
{
    uint64_t h = mix(0, (uint64_t)j->type);

    switch (j->type) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        return h;
    case JSON_NUMBER:
        return mix(h, number_hash(j->text));
    case JSON_STRING:
        return mix(h, hash_stable(j->text.ptr, j->text.len));
    case JSON_ARRAY:
        for (const struct json *m = j->child; m; m = m->next)
            h = mix(h, json_hash(m));
        return mix(h, j->count);
    case JSON_OBJECT: {
        uint64_t sum = 0; /* independent of the order */
        for (const struct json *m = j->child; m; m = m->next)
            sum += mix(hash_stable(m->key.ptr, m->key.len), json_hash(m));
        return mix(mix(h, sum), j->count);
    }
    }
    UNREACHABLE();
}

/* ---- canonical ---- */

/* Digests of these bytes are stored with tasks: the encoding of a value must never change.
 *
 *   null, false, true   n f t
 *   0                   0
 *   other numbers       + or -, exponent of the last digit that is not 0, twice it, or for one
 *                       below 0 twice its amount less 1; how many digits; the digits
 *   string              s, length, bytes
 *   array               a, count, values
 *   object              o, count, members by their names (bytes): length, name, value
 *
 * Lengths, counts and exponents are in groups of 7 bits, the lowest first, all but the last with
 * the highest bit set. */

enum { CHUNK = 4096, FEW = 16 };

struct canon {
    struct buf *b;
    json_sink *take;
    void *arg;
};

static void put_count(struct buf *b, uint64_t v)
{
    unsigned char text[10];
    size_t len = 0;

    for (; v >= 0x80; v >>= 7)
        text[len++] = (unsigned char)(v | 0x80);
    text[len++] = (unsigned char)v;
    buf_add(b, text, len);
}

static void put_bytes(struct buf *b, struct slice s)
{
    put_count(b, s.len);
    buf_slice(b, s);
}

/* The digits from the first to the last one that is not 0. */
struct digits {
    const char *first, *last; /* NULL: all are 0 */
    uint64_t count;
    int64_t exponent; /* of the last one */
};

static struct digits digits_of(struct slice text)
{
    struct digits d = {0};
    const char *end = text.ptr + text.len;
    uint64_t zeros = 0;
    bool is_fraction = false;

    for (const char *p = text.ptr; p < end; p++) {
        if (*p == 'e' || *p == 'E') {
            d.exponent += exponent_of(p + 1, end);
            break;
        }
        if (*p == '.')
            is_fraction = true;
        if (*p < '0' || *p > '9')
            continue;
        d.exponent -= is_fraction;
        if (*p == '0') {
            zeros++;
            continue;
        }
        d.count += (d.first ? zeros : 0) + 1;
        d.first = d.first ? d.first : p;
        d.last = p;
        zeros = 0;
    }
    d.exponent += (int64_t)zeros;
    return d;
}

static void put_number(struct buf *b, struct slice text)
{
    const struct digits d = digits_of(text);

    if (!d.first) {
        buf_byte(b, '0');
        return;
    }
    buf_byte(b, text.ptr[0] == '-' ? '-' : '+');
    put_count(b, d.exponent < 0 ? (uint64_t)-d.exponent * 2 - 1 : (uint64_t)d.exponent * 2);
    put_count(b, d.count);
    for (const char *p = d.first; p <= d.last; p++)
        if (*p != '.')
            buf_byte(b, *p);
}

/* For few members: insertion sort cannot become slow. */
static void sort_few(const struct json *object, struct json_named *list)
{
    size_t n = 0;

    for (const struct json *m = object->child; m; m = m->next) {
        size_t at = n++;
        for (; at > 0 && slice_order(list[at - 1].member->key, m->key) > 0; at--)
            list[at] = list[at - 1];
        list[at].member = m;
    }
}

static void put_canonical(struct canon *c, const struct json *j);

static void put_object(struct canon *c, const struct json *j)
{
    struct json_named few[FEW];
    struct json_named *list = j->count > FEW ? json_sorted(j) : few;

    if (list == few)
        sort_few(j, few);
    for (size_t i = 0; i < j->count; i++) {
        put_bytes(c->b, list[i].member->key);
        put_canonical(c, list[i].member);
    }
    if (list != few)
        free(list);
}

static void put_canonical(struct canon *c, const struct json *j)
{
    static const char marks[] = {
        [JSON_NULL] = 'n',   [JSON_FALSE] = 'f', [JSON_TRUE] = 't',   [JSON_NUMBER] = 0,
        [JSON_STRING] = 's', [JSON_ARRAY] = 'a', [JSON_OBJECT] = 'o',
    };

    if (c->b->len >= CHUNK) {
        c->take(c->arg, buf_view(c->b));
        buf_clear(c->b);
    }
    if (marks[j->type])
        buf_byte(c->b, marks[j->type]);
    if (j->type == JSON_NUMBER)
        put_number(c->b, j->text);
    else if (j->type == JSON_STRING)
        put_bytes(c->b, j->text);
    else if (j->type == JSON_ARRAY || j->type == JSON_OBJECT)
        put_count(c->b, j->count);
    if (j->type == JSON_OBJECT)
        put_object(c, j);
    else if (j->type == JSON_ARRAY)
        for (const struct json *m = j->child; m; m = m->next)
            put_canonical(c, m);
}

void json_canonical(const struct json *j, struct buf *b, json_sink *take, void *arg)
{
    struct canon c = {.b = b, .take = take, .arg = arg};

    buf_clear(b);
    put_canonical(&c, j);
    take(arg, buf_view(b));
}
