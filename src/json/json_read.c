/* Reads values from JSON trees: members by name, texts, integers and booleans (json.h). A missing
 * member or one of another type gives the default, not an error; the caller checks types where it
 * matters. json.c makes the trees. */

#include "json/json.h"

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
