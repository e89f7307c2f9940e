#include "json/json.h"

#include "base/map.h"

const char *json_type_text(enum json_type t)
{
    static const char *const texts[] = {
        [JSON_NULL] = "null",        [JSON_FALSE] = "false",     [JSON_TRUE] = "true",
        [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
        [JSON_OBJECT] = "an object",
    };

    ASSERT((size_t)t < COUNT_OF(texts));
    return texts[t];
}

const struct json *json_get(const struct json *j, const char *key)
{
    size_t len = strlen(key);

    if (!j || j->type != JSON_OBJECT)
        return NULL;
    for (const struct json *m = j->child; m; m = m->next)
        if (m->key.len == len && memcmp(m->key.ptr, key, len) == 0)
            return m;
    return NULL;
}

struct slice json_get_text(const struct json *j, const char *key)
{
    const struct json *m = json_get(j, key);

    return m && m->type == JSON_STRING ? m->text : SLICE_NONE;
}

struct slice json_get_raw(const struct json *j, const char *key)
{
    const struct json *m = json_get(j, key);

    return m ? m->raw : SLICE_NONE;
}

bool json_get_bool(const struct json *j, const char *key, bool otherwise)
{
    const struct json *m = json_get(j, key);

    if (!m || (m->type != JSON_TRUE && m->type != JSON_FALSE))
        return otherwise;
    return m->type == JSON_TRUE;
}

bool json_int(const struct json *j, int64_t *ret)
{
    if (!j || j->type != JSON_NUMBER)
        return false;

    bool negative = j->text.ptr[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t v = 0;

    for (size_t i = negative; i < j->text.len; i++) {
        unsigned digit = (unsigned)j->text.ptr[i] - '0';
        if (digit > 9 || v > (limit - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret = (int64_t)(negative ? 0 - v : v);
    return true;
}

int64_t json_get_int(const struct json *j, const char *key, int64_t otherwise)
{
    int64_t v = otherwise;

    return json_int(json_get(j, key), &v) ? v : otherwise;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ (h >> 32);
}

/* A number is its digits without zeros on either side, and the power of ten of the last of them: so
 * 1, 1.0 and 10e-1 are the same, and 9007199254740993 is not 9007199254740992. */
struct decimal {
    uint64_t digits;  /* hash of the digits up to the last one that is not 0 */
    uint64_t zeros;   /* that stand behind it so far */
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
        return mix(h, hash_bytes(j->text.ptr, j->text.len));
    case JSON_ARRAY:
        for (const struct json *m = j->child; m; m = m->next)
            h = mix(h, json_hash(m));
        return mix(h, j->count);
    case JSON_OBJECT: {
        uint64_t sum = 0; /* whatever the order */
        for (const struct json *m = j->child; m; m = m->next)
            sum += mix(hash_bytes(m->key.ptr, m->key.len), json_hash(m));
        return mix(mix(h, sum), j->count);
    }
    }
    UNREACHABLE();
}
