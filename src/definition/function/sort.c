/* Functions that order members: sort, group, unique, min and max, and their variants with a key
 * (list.h). A key is an array of all values of the argument. array.c has the functions that keep
 * the order of members. */

#include "definition/function/parts.h"

/* A member with its key. */
struct keyed {
    struct json key;
    const struct json *member;
};

_Static_assert(offsetof(struct keyed, key) == 0, "a pointer to one is a pointer to the other");

static const struct json *member_of(const struct json *key)
{
    return ((const struct keyed *)key)->member; /* the key is the first field */
}

/* ---- by the members themselves ---- */

static bool check_array(struct machine *m, const struct json *in)
{
    if (in->type != JSON_ARRAY)
        (void)function_refuse(m, in, "cannot be sorted, as it is not an array");
    return in->type == JSON_ARRAY;
}

/* The first or last in order of `count` > 0 values; NULL: failed. Among equal ones jq takes the
 * last maximum and the first minimum. */
static const struct json *extreme_of(struct machine *m, const struct json **values, uint32_t count,
                                     bool is_max)
{
    const struct json *best = values[0];

    for (uint32_t i = 1; i < count; i++) {
        int order = value_compare(m, values[i], best);
        if (m->is_fatal)
            return NULL;
        if (is_max ? order >= 0 : order < 0)
            best = values[i];
    }
    return best;
}

static const struct json *extreme(struct machine *m, const struct json *in, bool is_max)
{
    if (in->type != JSON_ARRAY)
        return function_refuse(m, in, "is not an array");
    if (in->count == 0)
        return &value_null;
    const struct json **members = value_members(m, in, false);
    return members ? extreme_of(m, members, in->count, is_max) : NULL;
}

VALUE_FUNCTION(min)
{
    (void)args;
    return extreme(m, in, false);
}

VALUE_FUNCTION(max)
{
    (void)args;
    return extreme(m, in, true);
}

static const struct json *sorted(struct machine *m, const struct json *in, bool once)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    if (!check_array(m, in))
        return NULL;
    const struct json **members = value_members(m, in, false);
    if (!members || !value_sort(m, members, in->count))
        return NULL;
    for (uint32_t i = 0; i < in->count; i++) {
        bool again = once && i > 0 && value_compare(m, members[i - 1], members[i]) == 0;
        if (!again && !builder_add(&b, members[i]))
            return NULL;
    }
    return m->is_fatal ? NULL : b.container;
}

VALUE_FUNCTION(sort)
{
    (void)args;
    return sorted(m, in, false);
}

VALUE_FUNCTION(unique)
{
    (void)args;
    return sorted(m, in, true);
}

/* ---- by keys ---- */

struct key_sink {
    struct sink sink;
    struct builder builder;
};

static enum flow key_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct key_sink *t = CONTAINER_OF(self, struct key_sink, sink);

    (void)m;
    return builder_add(&t->builder, v) ? FLOW_ON : FLOW_FAIL;
}

/* The key: an array of all values of the argument. */
static enum flow key_of(struct machine *m, const struct node *arg, const struct json *member,
                        const struct json **ret)
{
    struct key_sink t = {{key_then}, builder_begin(m, JSON_ARRAY)};

    if (!t.builder.container || !machine_claim(m, sizeof(struct keyed)))
        return FLOW_FAIL;
    enum flow flow = node_eval(m, arg, member, &t.sink);
    if (flow != FLOW_ON)
        return flow;
    struct keyed *k = arena_alloc(m->arena, sizeof *k);
    k->key = *t.builder.container;
    k->member = member;
    *ret = &k->key;
    return FLOW_ON;
}

typedef const struct json *finish_fn(struct machine *m, const struct json **keys, uint32_t count);

/* Sorts the members by key and passes the result of `finish` to the sink. */
static enum flow by_key(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out, finish_fn *finish)
{
    if (!check_array(m, in))
        return FLOW_FAIL;
    const struct json **keys = value_members(m, in, false);
    if (!keys)
        return FLOW_FAIL;
    for (uint32_t i = 0; i < in->count; i++) {
        enum flow flow = key_of(m, call->list, keys[i], &keys[i]);
        if (flow != FLOW_ON)
            return flow;
    }
    const struct json *value = finish(m, keys, in->count);
    return value && !m->is_fatal ? out->fn(m, out, value) : FLOW_FAIL;
}

static const struct json *finish_sort(struct machine *m, const struct json **keys, uint32_t count)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    if (!value_sort(m, keys, count))
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!builder_add(&b, member_of(keys[i])))
            return NULL;
    return b.container;
}

STREAM_FUNCTION(sort_by)
{
    return by_key(m, call, in, out, finish_sort);
}

/* The number of members from `at` on with the same key. */
static uint32_t run_length(struct machine *m, const struct json **keys, uint32_t at, uint32_t count)
{
    uint32_t end = at + 1;

    while (end < count && value_compare(m, keys[at], keys[end]) == 0 && !m->is_fatal)
        end++;
    return end - at;
}

static const struct json *grouped(struct machine *m, const struct json **keys, uint32_t count,
                                  bool only_first)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    uint32_t run = 0;

    if (!value_sort(m, keys, count))
        return NULL;
    for (uint32_t i = 0; i < count; i += run) {
        struct builder group = builder_begin(m, JSON_ARRAY);
        run = run_length(m, keys, i, count);
        for (uint32_t k = i; k < i + run && !only_first; k++)
            if (!builder_add(&group, member_of(keys[k])))
                return NULL;
        if (!group.container || !builder_add(&b, only_first ? member_of(keys[i]) : group.container))
            return NULL;
    }
    return b.container;
}

static const struct json *finish_group(struct machine *m, const struct json **keys, uint32_t count)
{
    return grouped(m, keys, count, false);
}

static const struct json *finish_unique(struct machine *m, const struct json **keys, uint32_t count)
{
    return grouped(m, keys, count, true);
}

STREAM_FUNCTION(group_by)
{
    return by_key(m, call, in, out, finish_group);
}

STREAM_FUNCTION(unique_by)
{
    return by_key(m, call, in, out, finish_unique);
}

static const struct json *extreme_by(struct machine *m, const struct json **keys, uint32_t count,
                                     bool is_max)
{
    const struct json *key = count ? extreme_of(m, keys, count, is_max) : NULL;

    if (count == 0)
        return &value_null;
    return key ? member_of(key) : NULL;
}

static const struct json *finish_min(struct machine *m, const struct json **keys, uint32_t count)
{
    return extreme_by(m, keys, count, false);
}

static const struct json *finish_max(struct machine *m, const struct json **keys, uint32_t count)
{
    return extreme_by(m, keys, count, true);
}

STREAM_FUNCTION(min_by)
{
    return by_key(m, call, in, out, finish_min);
}

STREAM_FUNCTION(max_by)
{
    return by_key(m, call, in, out, finish_max);
}
