#include "definition/function.h"

#include <math.h>

#include "definition/number.h"
#include "definition/operator.h"
#include "definition/value.h"

typedef const struct json *const *args_t; /* only to keep the lines below short */

static const struct json *refuse(struct machine *m, const struct json *in, const char *what)
{
    (void)machine_fail(m, "%s %s", value_story(in).text, what);
    return NULL;
}

static bool is_container(const struct json *j)
{
    return j->type == JSON_ARRAY || j->type == JSON_OBJECT;
}

static bool check_iterable(struct machine *m, const struct json *in)
{
    if (!is_container(in))
        (void)machine_fail(m, "cannot iterate over %s", value_story(in).text);
    return is_container(in) && machine_spend(m, in->count);
}

/* ---- of one value ---- */

static const struct json *length(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    switch (in->type) {
    case JSON_NULL:
        return number_int(m, 0);
    case JSON_NUMBER:
        return in->text.ptr[0] == '-' ? number_negate(m, in) : in;
    case JSON_STRING:
        return machine_spend(m, in->text.len / 64) ? number_int(m, (int64_t)text_length(in->text))
                                                   : NULL;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return number_int(m, in->count);
    case JSON_FALSE:
    case JSON_TRUE:
        return refuse(m, in, "has no length");
    }
    UNREACHABLE();
}

static const struct json *not_(struct machine *m, const struct json *in, args_t args)
{
    (void)m;
    (void)args;
    return value_bool(!json_truth(in));
}

static const struct json *keys(struct machine *m, const struct json *in, args_t args)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    const struct json **members;

    (void)args;
    if (!is_container(in))
        return refuse(m, in, "has no keys");
    members = value_members(m, in, in->type == JSON_OBJECT);
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

static const struct json *type(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return value_text(m, slice_of(value_kind(in)));
}

static const struct json *tostring(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return value_to_text(m, in);
}

/* A JSON number; white space around it is allowed, as in jq. */
static const struct json *tonumber(struct machine *m, const struct json *in, args_t args)
{
    struct json *j = NULL;

    (void)args;
    if (in->type == JSON_NUMBER)
        return in;
    if (in->type != JSON_STRING)
        return refuse(m, in, "cannot be parsed as a number");
    if (!machine_claim(m, 1024) || !machine_spend(m, 1 + in->text.len / 64))
        return NULL;
    if (in->text.len > 1000 || json_parse(m->arena, in->text, &j, NULL) != ERR_OK
        || j->type != JSON_NUMBER)
        return refuse(m, in, "cannot be parsed as a number");
    return j;
}

static const struct json *rounded(struct machine *m, const struct json *in, double (*fn)(double))
{
    struct number n;

    if (in->type != JSON_NUMBER)
        return refuse(m, in, "is not a number");
    if (!number_of(m, in, &n))
        return NULL;
    if (n.is_int)
        return in;
    double d = fn(n.d);
    return fabs(d) < 9e15 ? number_int(m, (int64_t)d) : number_double(m, d);
}

static const struct json *floor_(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return rounded(m, in, floor);
}

static const struct json *ceil_(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return rounded(m, in, ceil);
}

static const struct json *round_(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return rounded(m, in, round);
}

/* `shift` is added to the letters from `from` on. */
static const struct json *with_case(struct machine *m, const struct json *in, char from, int shift)
{
    if (in->type != JSON_STRING)
        return refuse(m, in, "is not a string");
    char *ptr = machine_spend(m, in->text.len / 64) ? value_bytes(m, in->text.len) : NULL;
    if (!ptr)
        return NULL;
    for (size_t i = 0; i < in->text.len; i++) {
        int c = (unsigned char)in->text.ptr[i];
        bool is_letter = c >= from && c <= from + 25;
        ptr[i] = (char)(is_letter ? c + shift : c);
    }
    return value_text(m, (struct slice){ptr, in->text.len});
}

static const struct json *ascii_downcase(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return with_case(m, in, 'A', 'a' - 'A');
}

static const struct json *ascii_upcase(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return with_case(m, in, 'a', 'A' - 'a');
}

/* ---- of the members of one value ---- */

/* Texts are joined at once: one by one they would be copied again and again. */
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

static bool are_all(const struct json *in, enum json_type type)
{
    for (const struct json *j = in->child; j; j = j->next)
        if (j->type != type)
            return false;
    return in->count > 0;
}

static const struct json *add(struct machine *m, const struct json *in, args_t args)
{
    const struct json *sum = &value_null;

    (void)args;
    if (!check_iterable(m, in))
        return NULL;
    if (are_all(in, JSON_STRING))
        return add_texts(m, in);
    if (are_all(in, JSON_ARRAY))
        return add_arrays(m, in);
    for (const struct json *j = in->child; j && sum; j = j->next)
        sum = operator_apply(m, OP_ADD, sum, j);
    return sum;
}

static const struct json *extreme(struct machine *m, const struct json *in, bool is_max)
{
    const struct json *best = in->child ? in->child : &value_null;

    if (in->type != JSON_ARRAY)
        return refuse(m, in, "is not an array");
    for (const struct json *j = in->child; j; j = j->next) {
        int order = value_compare(m, j, best);
        if (m->is_fatal)
            return NULL;
        if (is_max ? order >= 0 : order < 0) /* of equal ones jq takes the last and the first */
            best = j;
    }
    return best;
}

static const struct json *min(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return extreme(m, in, false);
}

static const struct json *max(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return extreme(m, in, true);
}

static const struct json *sorted(struct machine *m, const struct json *in, bool once)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    if (in->type != JSON_ARRAY)
        return refuse(m, in, "cannot be sorted, as it is not an array");
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

static const struct json *sort(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return sorted(m, in, false);
}

static const struct json *unique(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return sorted(m, in, true);
}

static const struct json *reverse(struct machine *m, const struct json *in, args_t args)
{
    struct builder b = builder_begin(m, JSON_ARRAY);

    (void)args;
    if (in->type != JSON_ARRAY && in->type != JSON_NULL)
        return refuse(m, in, "is not an array");
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
        return refuse(m, in, "is not an array");
    if (!machine_spend(m, is_last ? in->count / 8 : 0))
        return NULL;
    while (is_last && j && j->next)
        j = j->next;
    return j ? j : &value_null;
}

static const struct json *first(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return member_at(m, in, false);
}

static const struct json *last(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return member_at(m, in, true);
}

static const struct json *any_or_all(struct machine *m, const struct json *in, bool wanted)
{
    if (!check_iterable(m, in))
        return NULL;
    for (const struct json *j = in->child; j; j = j->next)
        if (json_truth(j) == wanted)
            return value_bool(wanted);
    return value_bool(!wanted);
}

static const struct json *any(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return any_or_all(m, in, true);
}

static const struct json *all(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return any_or_all(m, in, false);
}

static const struct json *to_entries(struct machine *m, const struct json *in, args_t args)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    int64_t i = 0;

    (void)args;
    if (!is_container(in))
        return refuse(m, in, "has no keys");
    for (const struct json *j = in->child; j; j = j->next, i++) {
        struct builder entry = builder_begin(m, JSON_OBJECT);
        const struct json *key = in->type == JSON_OBJECT ? value_text(m, j->key) : number_int(m, i);
        if (!machine_spend(m, 1) || !key || !builder_set_new(&entry, SLICE("key"), key)
            || !builder_set_new(&entry, SLICE("value"), j) || !builder_add(&b, entry.container))
            return NULL;
    }
    return b.container;
}

static const struct json *entry_key(const struct json *entry)
{
    static const char *const names[] = {"key", "k", "name", "Name", "K", "Key"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json *j = json_get(entry, names[i]);
        if (j && json_truth(j))
            return j;
    }
    return &value_null;
}

static const struct json *entry_value(const struct json *entry)
{
    static const char *const names[] = {"value", "v", "Value"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json *j = json_get(entry, names[i]);
        if (j)
            return j;
    }
    return &value_null;
}

static const struct json *from_entries(struct machine *m, const struct json *in, args_t args)
{
    struct builder b = builder_begin(m, JSON_OBJECT);

    (void)args;
    if (!check_iterable(m, in))
        return NULL;
    for (const struct json *j = in->child; j; j = j->next) {
        if (j->type != JSON_OBJECT)
            return refuse(m, j, "is not an entry with key and value");
        const struct json *key = entry_key(j);
        if (key->type != JSON_STRING)
            return refuse(m, key, "cannot be used as object key");
        if (!builder_set(&b, key->text, entry_value(j)))
            return NULL;
    }
    return b.container;
}

/* ---- with arguments that are values ---- */

static const struct json *has(struct machine *m, const struct json *in, args_t args)
{
    const struct json *key = args[0];
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

static const struct json *error_of(struct machine *m, const struct json *in, args_t args)
{
    const struct json *text = value_to_text(m, args[0]);

    (void)in;
    if (text)
        (void)machine_fail(m, "%.*s", SLICE_ARG(slice_cut(text->text, 190)));
    return NULL;
}

static const struct json *error_in(struct machine *m, const struct json *in, args_t args)
{
    (void)args;
    return error_of(m, in, &in);
}

static const struct json *split(struct machine *m, const struct json *in, args_t args)
{
    if (in->type == JSON_STRING && args[0]->type == JSON_STRING)
        return operator_split(m, in->text, args[0]->text);
    (void)machine_fail(m, "split input and separator must be strings");
    return NULL;
}

/* What a member of an array becomes in a joined text; NULL: failed. */
static const struct json *join_piece(struct machine *m, const struct json *j)
{
    if (j->type == JSON_NULL)
        return value_text(m, SLICE(""));
    if (is_container(j))
        return refuse(m, j, "cannot be joined to a string");
    return value_to_text(m, j);
}

static const struct json *join(struct machine *m, const struct json *in, args_t args)
{
    CLEANUP(buf_fini) struct buf b = {.max = EXPRESSION_BYTES_MAX + 1};

    if (!check_iterable(m, in))
        return NULL;
    if (in->count > 0 && args[0]->type != JSON_STRING && args[0]->type != JSON_NULL)
        return refuse(m, args[0], "cannot join strings");
    for (const struct json *j = in->child; j; j = j->next) {
        const struct json *piece = join_piece(m, j);
        if (!piece || !machine_spend(m, (piece->text.len + args[0]->text.len) / 64))
            return NULL;
        if (j != in->child)
            buf_slice(&b, args[0]->text);
        buf_slice(&b, piece->text);
    }
    if (b.overflow && !machine_claim(m, (size_t)EXPRESSION_BYTES_MAX + 1))
        return NULL;
    return value_text_copy(m, buf_view(&b));
}

static const struct json *ends(struct machine *m, const struct json *in, const struct json *part,
                               bool at_end)
{
    if (in->type != JSON_STRING || part->type != JSON_STRING) {
        (void)machine_fail(m, "%s() requires string inputs", at_end ? "endswith" : "startswith");
        return NULL;
    }
    if (!machine_spend(m, part->text.len / 64))
        return NULL;
    size_t len = part->text.len;
    const char *at = at_end ? in->text.ptr + in->text.len - len : in->text.ptr;
    return value_bool(len <= in->text.len && memcmp(at, part->text.ptr, len) == 0);
}

static const struct json *startswith(struct machine *m, const struct json *in, args_t args)
{
    return ends(m, in, args[0], false);
}

static const struct json *endswith(struct machine *m, const struct json *in, args_t args)
{
    return ends(m, in, args[0], true);
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
    if (a->type != b->type || !machine_spend(m, 1 + a->text.len / 64))
        return false;
    if (is_container(a))
        return contains_all(m, a, b);
    if (a->type == JSON_STRING)
        return memmem(a->text.ptr, a->text.len, b->text.ptr, b->text.len) != NULL;
    return value_compare(m, a, b) == 0;
}

static const struct json *contains(struct machine *m, const struct json *in, args_t args)
{
    if (in->type != args[0]->type) {
        (void)machine_fail(m, "%s and %s cannot have their containment checked",
                           value_story(in).text, value_story(args[0]).text);
        return NULL;
    }
    bool found = contains_value(m, in, args[0]);
    return m->is_fatal ? NULL : value_bool(found);
}

/* ---- with arguments that are evaluated as often as the function likes ---- */

/* What the sinks of these functions need. */
struct visit {
    struct sink sink;
    const struct json *member;
    const struct json *last;
    struct builder builder;
    bool wanted;
    bool is_found;
    struct sink *out;
};

static enum flow empty(struct machine *m, const struct node *call, const struct json *in,
                       struct sink *out)
{
    (void)m;
    (void)call;
    (void)in;
    (void)out;
    return FLOW_ON;
}

static enum flow values(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out)
{
    (void)call;
    return in->type == JSON_NULL ? FLOW_ON : out->fn(m, out, in);
}

static enum flow select_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct visit *t = CONTAINER_OF(self, struct visit, sink);

    return json_truth(v) ? t->out->fn(m, t->out, t->member) : FLOW_ON;
}

static enum flow select(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out)
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
    if (!check_iterable(m, in))
        return FLOW_FAIL;
    for (const struct json *j = in->child; j; j = j->next) {
        enum flow flow = node_eval(m, arg, j, &t->sink);
        if (flow != FLOW_ON)
            return flow;
    }
    return FLOW_ON;
}

static enum flow map(struct machine *m, const struct node *call, const struct json *in,
                     struct sink *out)
{
    struct visit t = {.sink = {collect_then}, .builder = builder_begin(m, JSON_ARRAY)};
    enum flow flow = t.builder.container ? each(m, call->list, in, &t) : FLOW_FAIL;

    return flow == FLOW_ON ? out->fn(m, out, t.builder.container) : flow;
}

static enum flow with_entries(struct machine *m, const struct node *call, const struct json *in,
                              struct sink *out)
{
    struct visit t = {.sink = {collect_then}, .builder = builder_begin(m, JSON_ARRAY)};
    const struct json *entries = t.builder.container ? to_entries(m, in, NULL) : NULL;

    if (!entries)
        return FLOW_FAIL;
    enum flow flow = each(m, call->list, entries, &t);
    if (flow != FLOW_ON)
        return flow;
    const struct json *object = from_entries(m, t.builder.container, NULL);
    return object ? out->fn(m, out, object) : FLOW_FAIL;
}

/* Unwinds to the function itself, which knows that it was meant by machine.stop. */
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

/* first(f): stops at one. last(f): goes to the end. */
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

static enum flow first_of(struct machine *m, const struct node *call, const struct json *in,
                          struct sink *out)
{
    return one_of(m, call, in, out, true);
}

static enum flow last_of(struct machine *m, const struct node *call, const struct json *in,
                         struct sink *out)
{
    return one_of(m, call, in, out, false);
}

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

static enum flow any_of(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out)
{
    return find(m, call, in, out, true);
}

static enum flow all_of(struct machine *m, const struct node *call, const struct json *in,
                        struct sink *out)
{
    return find(m, call, in, out, false);
}

/* clang-format off */
static const struct function functions[] = {
    {"add",            0, add,            NULL},
    {"all",            0, all,            NULL},
    {"all",            1, NULL,           all_of},
    {"any",            0, any,            NULL},
    {"any",            1, NULL,           any_of},
    {"ascii_downcase", 0, ascii_downcase, NULL},
    {"ascii_upcase",   0, ascii_upcase,   NULL},
    {"ceil",           0, ceil_,          NULL},
    {"contains",       1, contains,       NULL},
    {"empty",          0, NULL,           empty},
    {"endswith",       1, endswith,       NULL},
    {"error",          0, error_in,       NULL},
    {"error",          1, error_of,       NULL},
    {"first",          0, first,          NULL},
    {"first",          1, NULL,           first_of},
    {"floor",          0, floor_,         NULL},
    {"from_entries",   0, from_entries,   NULL},
    {"has",            1, has,            NULL},
    {"join",           1, join,           NULL},
    {"keys",           0, keys,           NULL},
    {"last",           0, last,           NULL},
    {"last",           1, NULL,           last_of},
    {"length",         0, length,         NULL},
    {"map",            1, NULL,           map},
    {"max",            0, max,            NULL},
    {"min",            0, min,            NULL},
    {"not",            0, not_,           NULL},
    {"reverse",        0, reverse,        NULL},
    {"round",          0, round_,         NULL},
    {"select",         1, NULL,           select},
    {"sort",           0, sort,           NULL},
    {"split",          1, split,          NULL},
    {"startswith",     1, startswith,     NULL},
    {"to_entries",     0, to_entries,     NULL},
    {"tonumber",       0, tonumber,       NULL},
    {"tostring",       0, tostring,       NULL},
    {"type",           0, type,           NULL},
    {"unique",         0, unique,         NULL},
    {"values",         0, NULL,           values},
    {"with_entries",   1, NULL,           with_entries},
};
/* clang-format on */

const struct function *function_find(struct slice name, uint32_t arg_count, bool *ret_known)
{
    *ret_known = false;
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (!slice_is(name, functions[i].name))
            continue;
        *ret_known = true;
        if (functions[i].arg_count == arg_count)
            return &functions[i];
    }
    return NULL;
}
