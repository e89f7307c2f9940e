/* Functions of arrays and objects: add, any and all over members, flatten, reverse and others.
 * list.h has the table of all functions, parts.h the declarations and types that the files of
 * this folder share. */

#include "definition/function/parts.h"

/* ---- members of one value ---- */

/* Joins all strings at once: joining one by one would copy them repeatedly, in quadratic time. */
static const struct json *add_texts(struct machine *m, const struct json *in)
{
    size_t len = 0;
    size_t at = 0;

    for (const struct json *j = in->child; j; j = j->next)
        len += j->text.len;
    char *ptr = value_bytes(m, len);
    if (!ptr)
        return NULL;
    for (const struct json *j = in->child; j; at += j->text.len, j = j->next)
        memcpy(ptr + at, j->text.ptr, j->text.len);
    return value_text(m, (struct slice){ptr, len});
}

static const struct json *add_arrays(struct machine *m, const struct json *in)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    for (const struct json *array = in->child; array; array = array->next)
        for (const struct json *j = array->child; j; j = j->next)
            if (!machine_spend(m, 1) || !builder_add(&b, j))
                return NULL;
    return b.container;
}

/* Merges all objects into one: merging one by one would copy them repeatedly. */
static const struct json *add_objects(struct machine *m, const struct json *in)
{
    struct builder b = builder_begin(m, JSON_OBJECT);

    for (const struct json *object = in->child; object; object = object->next)
        for (const struct json *j = object->child; j; j = j->next)
            if (!machine_spend(m, 1) || !builder_set(&b, j->key, j))
                return NULL;
    return b.container;
}

static bool are_all(const struct json *in, enum json_type type)
{
    for (const struct json *j = in->child; j; j = j->next)
        if (j->type != type)
            return false;
    return in->count > 0;
}

VALUE_FUNCTION(add)
{
    const struct json *sum = &value_null;

    (void)args;
    if (!function_check_iterable(m, in))
        return NULL;
    if (are_all(in, JSON_STRING))
        return add_texts(m, in);
    if (are_all(in, JSON_ARRAY))
        return add_arrays(m, in);
    if (are_all(in, JSON_OBJECT))
        return add_objects(m, in);
    for (const struct json *j = in->child; j && sum; j = j->next)
        sum = operator_apply(m, OP_ADD, sum, j);
    return sum;
}

VALUE_FUNCTION(reverse)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    (void)args;
    if (in->type != JSON_ARRAY && in->type != JSON_NULL)
        return function_refuse(m, in, "is not an array");
    const struct json **members = value_members(m, in, false);
    if (!members)
        return NULL;
    for (uint32_t i = in->count; i-- > 0;)
        if (!builder_add(&b, members[i]))
            return NULL;
    return b.container;
}

static const struct json *member_at(struct machine *m, const struct json *in, bool is_last)
{
    const struct json *j = in->child;

    if (in->type != JSON_ARRAY && in->type != JSON_NULL)
        return function_refuse(m, in, "is not an array");
    if (!machine_pay(m, is_last ? 2 * (size_t)in->count : 0)) /* they are far apart in memory */
        return NULL;
    while (is_last && j && j->next)
        j = j->next;
    return j ? j : &value_null;
}

VALUE_FUNCTION(first)
{
    (void)args;
    return member_at(m, in, false);
}

VALUE_FUNCTION(last)
{
    (void)args;
    return member_at(m, in, true);
}

static const struct json *any_or_all(struct machine *m, const struct json *in, bool wanted)
{
    if (!function_check_iterable(m, in))
        return NULL;
    for (const struct json *j = in->child; j; j = j->next)
        if (json_truth(j) == wanted)
            return value_bool(wanted);
    return value_bool(!wanted);
}

VALUE_FUNCTION(any)
{
    (void)args;
    return any_or_all(m, in, true);
}

VALUE_FUNCTION(all)
{
    (void)args;
    return any_or_all(m, in, false);
}

static bool flatten_into(struct machine *m, struct builder *b, const struct json *in, double levels)
{
    for (const struct json *j = in->child; j; j = j->next) {
        bool is_kept = j->type != JSON_ARRAY || levels <= 0;
        if (!machine_spend(m, 1))
            return false;
        if (is_kept ? !builder_add(b, j) : !flatten_into(m, b, j, levels - 1))
            return false;
    }
    return true;
}

static const struct json *flattened(struct machine *m, const struct json *in, double levels)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    if (!function_check_iterable(m, in) || !b.container || !flatten_into(m, &b, in, levels))
        return NULL;
    return b.container;
}

VALUE_FUNCTION(flatten)
{
    (void)args;
    return flattened(m, in, 1e9);
}

VALUE_FUNCTION(flatten_to)
{
    struct number levels;

    if (args[0]->type != JSON_NUMBER)
        return function_refuse(m, args[0], "is no number of levels");
    if (!number_of(m, args[0], &levels))
        return NULL;
    if (levels.d < 0 || !levels.is_int)
        return function_refuse(m, args[0], "is no number of levels");
    return flattened(m, in, levels.d);
}
