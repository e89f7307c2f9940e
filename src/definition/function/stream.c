/* Functions that evaluate their arguments themselves, any number of times: select, map, first,
 * limit, range, and any and all with a condition (list.h). Values go to a sink one by one; a
 * function that has enough unwinds the evaluation to itself. */

#include "definition/function/parts.h"

/* State of the sinks of these functions. */
struct visit {
    struct sink sink;
    const struct json *member;
    const struct json *last;
    struct builder builder;
    bool wanted;
    bool is_found;
    struct sink *out;
};

STREAM_FUNCTION(empty)
{
    (void)m;
    (void)call;
    (void)in;
    (void)out;
    return FLOW_ON;
}

/* Passes the input on if its type is in the set. */
static enum flow of_types(struct machine *m, const struct json *in, struct sink *out, unsigned set)
{
    return (set & 1U << in->type) != 0 ? out->fn(m, out, in) : FLOW_ON;
}

enum {
    IS_NULL = 1 << JSON_NULL,
    IS_BOOLEAN = 1 << JSON_FALSE | 1 << JSON_TRUE,
    IS_NUMBER = 1 << JSON_NUMBER,
    IS_STRING = 1 << JSON_STRING,
    IS_ARRAY = 1 << JSON_ARRAY,
    IS_OBJECT = 1 << JSON_OBJECT,
};

#define SELECTS(name, set)                \
    STREAM_FUNCTION(name)                 \
    {                                     \
        (void)call;                       \
        return of_types(m, in, out, set); \
    }
SELECTS(nulls, IS_NULL)
SELECTS(booleans, IS_BOOLEAN)
SELECTS(numbers, IS_NUMBER)
SELECTS(strings, IS_STRING)
SELECTS(arrays, IS_ARRAY)
SELECTS(objects, IS_OBJECT)
SELECTS(iterables, IS_ARRAY | IS_OBJECT)
SELECTS(scalars, IS_NULL | IS_BOOLEAN | IS_NUMBER | IS_STRING)
SELECTS(values, IS_BOOLEAN | IS_NUMBER | IS_STRING | IS_ARRAY | IS_OBJECT)

static enum flow select_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct visit *t = CONTAINER_OF(self, struct visit, sink);

    return json_truth(v) ? t->out->fn(m, t->out, t->member) : FLOW_ON;
}

STREAM_FUNCTION(select)
{
    struct visit t = {.sink = {select_then}, .member = in, .out = out};

    return node_eval(m, call->list, in, &t.sink);
}

static enum flow collect_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct visit *t = CONTAINER_OF(self, struct visit, sink);

    (void)m;
    return builder_add(&t->builder, v) ? FLOW_ON : FLOW_FAIL;
}

/* Evaluates the argument on each member; values go to the sink of t. */
static enum flow each(struct machine *m, const struct node *arg, const struct json *in,
                      struct visit *t)
{
    if (!function_check_iterable(m, in))
        return FLOW_FAIL;
    for (const struct json *j = in->child; j; j = j->next) {
        enum flow flow = node_eval(m, arg, j, &t->sink);
        if (flow != FLOW_ON)
            return flow;
    }
    return FLOW_ON;
}

STREAM_FUNCTION(map)
{
    struct visit t = {.sink = {collect_then}, .builder = builder_begin(m, JSON_ARRAY)};
    enum flow flow = t.builder.container ? each(m, call->list, in, &t) : FLOW_FAIL;

    return flow == FLOW_ON ? out->fn(m, out, t.builder.container) : flow;
}

STREAM_FUNCTION(with_entries)
{
    struct visit t = {.sink = {collect_then}, .builder = builder_begin(m, JSON_ARRAY)};
    const struct json *entries = t.builder.container ? function_to_entries(m, in, NULL) : NULL;

    if (!entries)
        return FLOW_FAIL;
    enum flow flow = each(m, call->list, entries, &t);
    if (flow != FLOW_ON)
        return flow;
    const struct json *object = function_from_entries(m, t.builder.container, NULL);
    return object ? out->fn(m, out, object) : FLOW_FAIL;
}

/* Unwinds to the function itself, which recognizes itself by machine.stop. */
static enum flow enough(struct machine *m, struct visit *t)
{
    m->stop = t;
    return FLOW_STOP;
}

static enum flow first_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct visit *t = CONTAINER_OF(self, struct visit, sink);

    t->last = v;
    return t->wanted ? enough(m, t) : FLOW_ON;
}

/* first(f) stops at the first value. last(f) evaluates all. */
static enum flow one_of(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out, bool is_first)
{
    struct visit t = {.sink = {first_then}, .wanted = is_first};
    enum flow flow = node_eval(m, call->list, in, &t.sink);

    if (flow == FLOW_FAIL || (flow == FLOW_STOP && m->stop != &t))
        return flow;
    if (t.last)
        return out->fn(m, out, t.last);
    return is_first ? FLOW_ON : out->fn(m, out, &value_null);
}

STREAM_FUNCTION(first_of)
{
    return one_of(m, call, in, out, true);
}

STREAM_FUNCTION(last_of)
{
    return one_of(m, call, in, out, false);
}

/* Replaces each member by the first value of the argument; a member without one is removed. */
static bool set_first(struct machine *m, struct builder *b, const struct json *member,
                      const struct json *value)
{
    if (!value)
        return true;
    if (!machine_spend(m, 1))
        return false;
    return member->key.ptr ? builder_set_new(b, member->key, value) : builder_add(b, value);
}

STREAM_FUNCTION(map_values)
{
    if (!function_check_iterable(m, in))
        return FLOW_FAIL;
    struct builder b = builder_begin(m, in->type);
    for (const struct json *j = in->child; j; j = j->next) {
        struct visit t = {.sink = {first_then}, .wanted = true};
        enum flow flow = node_eval(m, call->list, j, &t.sink);
        if (flow == FLOW_FAIL || (flow == FLOW_STOP && m->stop != &t))
            return flow;
        if (!set_first(m, &b, j, t.last))
            return FLOW_FAIL;
    }
    return b.container ? out->fn(m, out, b.container) : FLOW_FAIL;
}

STREAM_FUNCTION(isempty)
{
    struct visit t = {.sink = {first_then}, .wanted = true};
    enum flow flow = node_eval(m, call->list, in, &t.sink);

    if (flow == FLOW_FAIL || (flow == FLOW_STOP && m->stop != &t))
        return flow;
    return out->fn(m, out, value_bool(!t.last));
}

/* ---- limit ---- */

struct counter {
    struct sink sink;
    const struct node *call;
    const struct json *in;
    double left;
    const struct json *last;
    struct sink *out;
};

/* The last value is passed on only after the generating expression was unwound. */
static enum flow limit_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct counter *t = CONTAINER_OF(self, struct counter, sink);

    if (!machine_pay(m, 1))
        return FLOW_FAIL;
    if (--t->left > 0)
        return t->out->fn(m, t->out, v);
    t->last = v;
    m->stop = t;
    return FLOW_STOP;
}

static enum flow limit_count_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct counter t = *CONTAINER_OF(self, struct counter, sink);
    const struct node *what = t.call->list->next;
    struct number n;

    if (v->type != JSON_NUMBER) {
        (void)machine_fail(m, "limit: %s is not a number", value_summary(m, v).text);
        return FLOW_FAIL;
    }
    if (!number_of(m, v, &n))
        return FLOW_FAIL;
    if (n.d < 0) /* as in jq */
        return node_eval(m, what, t.in, t.out);
    if (n.d == 0)
        return FLOW_ON;
    t.sink.fn = limit_then;
    t.left = n.d;
    enum flow flow = node_eval(m, what, t.in, &t.sink);
    if (flow != FLOW_STOP || m->stop != &t)
        return flow;
    return t.out->fn(m, t.out, t.last);
}

STREAM_FUNCTION(limit)
{
    struct counter t = {{limit_count_then}, call, in, 0, NULL, out};

    return node_eval(m, call->list, in, &t.sink);
}

/* ---- range ---- */

static enum flow range_of_ints(struct machine *m, int64_t from, int64_t to, int64_t by,
                               struct sink *out)
{
    bool over = by == 0;

    while (!over && (by > 0 ? from < to : from > to)) {
        const struct json *j = machine_spend(m, 1) ? number_int(m, from) : NULL;
        enum flow flow = j ? out->fn(m, out, j) : FLOW_FAIL;
        if (flow != FLOW_ON)
            return flow;
        over = __builtin_add_overflow(from, by, &from);
    }
    return FLOW_ON;
}

static enum flow range_of_doubles(struct machine *m, double from, double to, double by,
                                  struct sink *out)
{
    while ((by > 0 && from < to) || (by < 0 && from > to)) {
        const struct json *j = machine_spend(m, 1) ? number_double(m, from) : NULL;
        enum flow flow = j ? out->fn(m, out, j) : FLOW_FAIL;
        if (flow != FLOW_ON)
            return flow;
        from += by;
    }
    return FLOW_ON;
}

/* range(to), range(from; to), range(from; to; by) */
GENERATE_FUNCTION(range)
{
    struct number n[3] = {{true, 0, 0}, {true, 0, 0}, {true, 1, 1}};
    struct number *first = count == 1 ? &n[1] : n;
    bool are_ints = true;

    (void)in;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i]->type != JSON_NUMBER)
            return machine_fail(m, "range bounds must be numeric, not %s",
                                value_summary(m, args[i]).text);
        if (!number_of(m, args[i], &first[i]))
            return FLOW_FAIL;
        are_ints &= first[i].is_int;
    }
    if (are_ints)
        return range_of_ints(m, n[0].i, n[1].i, n[2].i, out);
    return range_of_doubles(m, n[0].d, n[1].d, n[2].d, out);
}

/* ---- any, all ---- */

static enum flow find_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct visit *t = CONTAINER_OF(self, struct visit, sink);

    t->is_found = json_truth(v) == t->wanted;
    return t->is_found ? enough(m, t) : FLOW_ON;
}

static enum flow find(struct machine *m, const struct node *call, const struct json *in,
                      struct sink *out, bool wanted)
{
    struct visit t = {.sink = {find_then}, .wanted = wanted};
    enum flow flow = each(m, call->list, in, &t);

    if (flow == FLOW_FAIL || (flow == FLOW_STOP && m->stop != &t))
        return flow;
    return out->fn(m, out, value_bool(t.is_found == wanted));
}

STREAM_FUNCTION(any_of)
{
    return find(m, call, in, out, true);
}

STREAM_FUNCTION(all_of)
{
    return find(m, call, in, out, false);
}

/* any(values; condition): evaluates the condition on each value. */
struct asked {
    struct sink sink;
    const struct node *condition;
    struct sink *out;
};

static enum flow ask_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct asked *t = CONTAINER_OF(self, struct asked, sink);

    return node_eval(m, t->condition, v, t->out);
}

static enum flow find_in(struct machine *m, const struct node *call, const struct json *in,
                         struct sink *out, bool wanted)
{
    struct visit t = {.sink = {find_then}, .wanted = wanted};
    struct asked asked = {{ask_then}, call->list->next, &t.sink};
    enum flow flow = node_eval(m, call->list, in, &asked.sink);

    if (flow == FLOW_FAIL || (flow == FLOW_STOP && m->stop != &t))
        return flow;
    return out->fn(m, out, value_bool(t.is_found == wanted));
}

STREAM_FUNCTION(any_in)
{
    return find_in(m, call, in, out, true);
}

STREAM_FUNCTION(all_in)
{
    return find_in(m, call, in, out, false);
}
