/* Functions of one value: length, conversions, rounding, keys and entries, has and contains.
 * list.h has the table of all functions, parts.h the declarations and types that the files of
 * this folder share. */

#include "definition/function/parts.h"

#include <math.h>

/* ---- of one value ---- */

VALUE_FUNCTION(length)
{
    (void)args;
    switch (in->type) {
    case JSON_NULL:
        return number_int(m, 0);
    case JSON_NUMBER:
        return in->text.ptr[0] == '-' ? number_negate(m, in) : in;
    case JSON_STRING:
        return machine_pay(m, in->text.len / 32) ? number_int(m, (int64_t)text_length(in->text))
                                                 : NULL;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return number_int(m, in->count);
    case JSON_FALSE:
    case JSON_TRUE:
        return function_refuse(m, in, "has no length");
    }
    UNREACHABLE();
}

VALUE_FUNCTION(not_)
{
    (void)m;
    (void)args;
    return value_bool(!json_truth(in));
}

static const struct json *keys_of(struct machine *m, const struct json *in, bool is_sorted)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    const struct json **members;

    if (!value_is_container(in))
        return function_refuse(m, in, "has no keys");
    members = value_members(m, in, is_sorted && in->type == JSON_OBJECT);
    if (!members)
        return NULL;
    for (uint32_t i = 0; i < in->count; i++) {
        const struct json *key =
            in->type == JSON_OBJECT ? value_text(m, members[i]->key) : number_int(m, i);
        if (!key || !builder_add(&b, key))
            return NULL;
    }
    return b.container;
}

VALUE_FUNCTION(keys)
{
    (void)args;
    return keys_of(m, in, true);
}

VALUE_FUNCTION(keys_unsorted)
{
    (void)args;
    return keys_of(m, in, false);
}

VALUE_FUNCTION(type)
{
    (void)args;
    return value_text(m, slice_of(value_kind(in)));
}

VALUE_FUNCTION(tostring)
{
    (void)args;
    return value_to_text(m, in);
}

VALUE_FUNCTION(tojson)
{
    (void)args;
    return value_to_json(m, in);
}

/* The most values that the JSON text can hold. */
static size_t values_max(struct slice text)
{
    size_t count = 2;

    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ',' || text.ptr[i] == '[' || text.ptr[i] == '{';
    return count;
}

/* Parts of steps charged for starting the parser and for its error message. */
enum { PARSER_STEPS = 16 };

bool value_pay_tree(struct machine *m, struct slice text, size_t *ret_values)
{
    if (!machine_spend(m, PARSER_STEPS + text.len / 16))
        return false;
    *ret_values = values_max(text);
    return machine_pay(m, 4 * *ret_values);
}

/* Charges a node for each value, and a second copy of the strings. */
static bool claim_tree(struct machine *m, struct slice text, size_t values)
{
    return machine_claim(m, values * (sizeof(struct json) + 32) + 2 * text.len);
}

VALUE_FUNCTION(fromjson)
{
    struct json *j = NULL;
    struct json_fault fault = {0};
    size_t values = 0;

    (void)args;
    if (in->type != JSON_STRING)
        return function_refuse(m, in, "cannot be parsed as JSON");
    if (!value_pay_tree(m, in->text, &values) || !claim_tree(m, in->text, values))
        return NULL;
    if (json_parse_within(m->arena, in->text, EXPRESSION_DEPTH_MAX, &j, &fault) == ERR_OK)
        return j;
    (void)machine_fail(m, "%s cannot be parsed as JSON: %s", value_summary(m, in).text, fault.what);
    return NULL;
}

/* Accepts a JSON number, with white space around it as in jq. */
VALUE_FUNCTION(tonumber)
{
    struct json *j = NULL;

    (void)args;
    if (in->type == JSON_NUMBER)
        return in;
    if (in->type != JSON_STRING)
        return function_refuse(m, in, "cannot be parsed as a number");
    if (in->text.len > 1000)
        return function_refuse(m, in, "cannot be parsed as a number");
    if (!machine_claim(m, 1024) || !machine_spend(m, 1 + in->text.len / 16))
        return NULL;
    if (json_parse(m->arena, in->text, &j, NULL) != ERR_OK || j->type != JSON_NUMBER)
        return function_refuse(m, in, "cannot be parsed as a number");
    return j;
}

static const struct json *rounded(struct machine *m, const struct json *in, double (*fn)(double))
{
    struct number n;

    if (in->type != JSON_NUMBER)
        return function_refuse(m, in, "is not a number");
    if (!number_of(m, in, &n))
        return NULL;
    if (n.is_int)
        return in;
    double d = fn(n.d);
    return fabs(d) < 9e15 ? number_int(m, (int64_t)d) : number_double(m, d);
}

VALUE_FUNCTION(floor_)
{
    (void)args;
    return rounded(m, in, floor);
}

VALUE_FUNCTION(ceil_)
{
    (void)args;
    return rounded(m, in, ceil);
}

VALUE_FUNCTION(round_)
{
    (void)args;
    return rounded(m, in, round);
}

VALUE_FUNCTION(to_entries)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    int64_t i = 0;

    (void)args;
    if (!value_is_container(in))
        return function_refuse(m, in, "has no keys");
    for (const struct json *j = in->child; j; j = j->next, i++) {
        if (!machine_spend(m, 1))
            return NULL;
        struct builder entry = builder_begin(m, JSON_OBJECT);
        const struct json *key = in->type == JSON_OBJECT ? value_text(m, j->key) : number_int(m, i);
        if (!key || !builder_set_new(&entry, SLICE("key"), key)
            || !builder_set_new(&entry, SLICE("value"), j) || !builder_add(&b, entry.container))
            return NULL;
    }
    return b.container;
}

/* The first of the names that the entry has, with a true value if `is_true`. &value_null: there is
 * none. NULL: failed. */
static const struct json *entry_member(struct machine *m, const struct json *entry,
                                       const struct slice *names, size_t count, bool is_true)
{
    for (size_t i = 0; i < count; i++) {
        const struct json *j = value_get(m, entry, names[i]);
        if (!j || (j != &value_null && (!is_true || json_truth(j))))
            return j;
    }
    return &value_null;
}

static const struct json *entry_key(struct machine *m, const struct json *entry)
{
    static const struct slice names[] = {{"key", 3},  {"k", 1}, {"name", 4},
                                         {"Name", 4}, {"K", 1}, {"Key", 3}};

    return entry_member(m, entry, names, COUNT_OF(names), true);
}

static const struct json *entry_value(struct machine *m, const struct json *entry)
{
    static const struct slice names[] = {{"value", 5}, {"v", 1}, {"Value", 5}};

    return entry_member(m, entry, names, COUNT_OF(names), false);
}

VALUE_FUNCTION(from_entries)
{
    struct builder b = builder_begin(m, JSON_OBJECT);

    (void)args;
    if (!function_check_iterable(m, in))
        return NULL;
    for (const struct json *j = in->child; j; j = j->next) {
        if (j->type != JSON_OBJECT)
            return function_refuse(m, j, "is not an entry with key and value");
        const struct json *key = machine_spend(m, 1) ? entry_key(m, j) : NULL;
        if (!key)
            return NULL;
        if (key->type != JSON_STRING)
            return function_refuse(m, key, "cannot be used as object key");
        const struct json *value = entry_value(m, j);
        if (!value || !builder_set(&b, key->text, value))
            return NULL;
    }
    return b.container;
}

/* ---- with arguments that are values ---- */

static const struct json *has_key(struct machine *m, const struct json *in, const struct json *key)
{
    struct number n;

    if (in->type == JSON_NULL)
        return &value_false;
    if (in->type == JSON_OBJECT && key->type == JSON_STRING) {
        const struct json *j = value_get(m, in, key->text);
        return j ? value_bool(j != &value_null) : NULL;
    }
    if (in->type == JSON_ARRAY && key->type == JSON_NUMBER)
        return number_of(m, key, &n) ? value_bool(n.d >= 0 && n.d < (double)in->count) : NULL;
    (void)machine_fail(m, "cannot check whether %s has a %s key", value_kind(in), value_kind(key));
    return NULL;
}

VALUE_FUNCTION(has)
{
    return has_key(m, in, args[0]);
}

VALUE_FUNCTION(in)
{
    return has_key(m, args[0], in);
}

VALUE_FUNCTION(error_of)
{
    const struct json *text = value_to_text(m, args[0]);

    (void)in;
    if (text)
        (void)machine_fail(m, "%.*s", SLICE_ARG(slice_cut(text->text, 190)));
    return NULL;
}

VALUE_FUNCTION(error_in)
{
    (void)args;
    return function_error_of(m, in, &in);
}

static bool contains_value(struct machine *m, const struct json *a, const struct json *b);

static bool contains_any(struct machine *m, const struct json *array, const struct json *b)
{
    for (const struct json *j = array->child; j && !m->is_fatal; j = j->next)
        if (contains_value(m, j, b))
            return true;
    return false;
}

static bool contains_all(struct machine *m, const struct json *a, const struct json *b)
{
    for (const struct json *j = b->child; j && !m->is_fatal; j = j->next) {
        if (a->type == JSON_ARRAY && !contains_any(m, a, j))
            return false;
        if (a->type == JSON_ARRAY)
            continue;
        const struct json *of = value_get(m, a, j->key);
        if (!of || of == &value_null || !contains_value(m, of, j))
            return false;
    }
    return !m->is_fatal;
}

static bool contains_value(struct machine *m, const struct json *a, const struct json *b)
{
    if (!machine_pay(m, a->type == b->type ? PARTS_PER_STEP : 1) || a->type != b->type)
        return false;
    if (value_is_container(a))
        return contains_all(m, a, b);
    if (a->type == JSON_STRING)
        return machine_pay(m, search_parts(a->text, b->text.len) + text_parts(b->text.len))
               && memmem(a->text.ptr, a->text.len, b->text.ptr, b->text.len) != NULL;
    return value_compare(m, a, b) == 0;
}

static const struct json *check_contains(struct machine *m, const struct json *a,
                                         const struct json *b)
{
    if (a->type != b->type) {
        (void)machine_fail(m, "%s and %s cannot have their containment checked",
                           value_summary(m, a).text, value_summary(m, b).text);
        return NULL;
    }
    bool found = contains_value(m, a, b);
    return m->is_fatal ? NULL : value_bool(found);
}

VALUE_FUNCTION(contains)
{
    return check_contains(m, in, args[0]);
}

VALUE_FUNCTION(inside)
{
    return check_contains(m, args[0], in);
}
