/* Evaluates the syntax tree of an expression (node.h) on a JSON value. machine.h explains sinks,
 * flows and the budget. Functions are in ../function/, arithmetic in number.c and operator.c. */
#include "definition/expression/machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "definition/expression/number.h"
#include "definition/expression/operator.h"
#include "definition/expression/value.h"
#include "definition/function/function.h"

struct machine machine_begin(struct arena *a, const struct budget *budget)
{
    struct machine m = {.arena = a,
                        .bytes_left = EXPRESSION_BYTES_MAX,
                        .parts_left = (size_t)EXPRESSION_STEPS_MAX * PARTS_PER_STEP,
                        .is_short_of_steps = budget->steps < EXPRESSION_STEPS_MAX,
                        .is_short_of_bytes = budget->bytes < EXPRESSION_BYTES_MAX,
                        .is_one = budget->is_one};

    if (m.is_short_of_steps)
        m.parts_left = (size_t)budget->steps * PARTS_PER_STEP;
    if (m.is_short_of_bytes)
        m.bytes_left = budget->bytes;
    return m;
}

void machine_end(const struct machine *m, struct budget *budget)
{
    size_t steps = m->is_short_of_steps ? budget->steps : EXPRESSION_STEPS_MAX;
    size_t bytes = m->is_short_of_bytes ? budget->bytes : EXPRESSION_BYTES_MAX;

    budget->steps -= (uint32_t)(steps - m->parts_left / PARTS_PER_STEP);
    budget->bytes -= bytes - m->bytes_left;
}

static PRINTF(2, 0) void say(struct machine *m, const char *fmt, va_list ap)
{
    text_format(m->what, sizeof m->what, fmt, ap);
    m->has_at = false;
}

enum flow machine_fail(struct machine *m, const char *fmt, ...)
{
    va_list ap;

    if (m->is_fatal || m->is_caught) /* the first message is the cause */
        return FLOW_FAIL;
    va_start(ap, fmt);
    say(m, fmt, ap);
    va_end(ap);
    return FLOW_FAIL;
}

enum flow machine_fail_for_good(struct machine *m, const char *fmt, ...)
{
    va_list ap;

    if (m->is_fatal)
        return FLOW_FAIL;
    va_start(ap, fmt);
    say(m, fmt, ap);
    va_end(ap);
    m->is_fatal = true;
    return FLOW_FAIL;
}

bool machine_is_spent(struct machine *m)
{
    if (m->is_short_of_steps && !m->is_one)
        (void)machine_fail_for_good(m, "all expressions here together take more than %d steps",
                                    TEMPLATE_STEPS_MAX);
    else
        (void)machine_fail_for_good(m, "the expression takes more than %d steps",
                                    EXPRESSION_STEPS_MAX);
    return false;
}

bool machine_claim(struct machine *m, size_t bytes)
{
    if (m->is_fatal)
        return false;
    if (bytes <= m->bytes_left) {
        m->bytes_left -= bytes;
        return true;
    }
    if (m->is_short_of_bytes && !m->is_one)
        (void)machine_fail_for_good(m, "all expressions here together make more than %d bytes",
                                    TEMPLATE_BYTES_MAX);
    else
        (void)machine_fail_for_good(m, "the expression makes more than %d bytes",
                                    EXPRESSION_BYTES_MAX);
    return false;
}

/* Records the place of the innermost failure. */
static enum flow failed_at(struct machine *m, const struct node *n)
{
    if (!m->has_at) {
        m->at = n->at;
        m->has_at = true;
    }
    return FLOW_FAIL;
}

/* ---- one value from one or two others ---- */

static const struct json *get_member(struct machine *m, const struct json *of, struct slice name)
{
    if (of->type == JSON_OBJECT)
        return value_get(m, of, name);
    if (of->type == JSON_NULL)
        return &value_null;
    (void)machine_fail(m, "cannot index %s with \"%.*s\"", value_kind(of),
                       SLICE_ARG(slice_cut(name, 60)));
    return NULL;
}

static const struct json *get_element(struct machine *m, const struct json *of,
                                      const struct json *index)
{
    struct number n;

    if (!number_of(m, index, &n))
        return NULL;
    bool is_whole = n.is_int || (floor(n.d) == n.d && fabs(n.d) < 1e15); /* 1.0 is 1 */
    int64_t i = n.is_int || !is_whole ? n.i : (int64_t)n.d;
    i += i < 0 ? (int64_t)of->count : 0;
    if (!is_whole || i < 0 || i >= (int64_t)of->count || !machine_pay(m, (size_t)i))
        return m->is_fatal ? NULL : &value_null;
    const struct json *j = of->child;
    while (i-- > 0)
        j = j->next;
    return j;
}

static const struct json *get_index(struct machine *m, const struct json *of,
                                    const struct json *index)
{
    if (index->type == JSON_STRING)
        return get_member(m, of, index->text);
    if (index->type == JSON_NUMBER && of->type == JSON_ARRAY)
        return get_element(m, of, index);
    if (index->type == JSON_NUMBER && of->type == JSON_NULL)
        return &value_null;
    if (index->type == JSON_ARRAY && of->type == JSON_ARRAY)
        return operator_indices(m, of, index->child, index->count);
    (void)machine_fail(m, "cannot index %s with %s", value_kind(of), value_kind(index));
    return NULL;
}

/* The value of a simple node, without sinks. See node.is_simple. */
static const struct json *simple_eval(struct machine *m, const struct node *n,
                                      const struct json *in)
{
    const struct json *j = NULL;

    if (!machine_spend(m, 1))
        return NULL;
    switch (n->kind) {
    case NODE_IDENTITY:
        return in;
    case NODE_LITERAL:
        return n->value;
    case NODE_FIELD:
        j = simple_eval(m, n->a, in);
        if (!j)
            return NULL;
        j = get_member(m, j, n->name);
        if (!j)
            (void)failed_at(m, n);
        return j;
    case NODE_STRING:
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_ITERATE:
    case NODE_TRY:
    case NODE_PIPE:
    case NODE_COMMA:
    case NODE_ALTERNATIVE:
    case NODE_AND:
    case NODE_OR:
    case NODE_BINARY:
    case NODE_NEGATE:
    case NODE_ARRAY:
    case NODE_OBJECT:
    case NODE_MEMBER:
    case NODE_IF:
    case NODE_CALL:
        break;
    }
    UNREACHABLE();
}

/* Passes a value to the sink; NULL is a failure of node n. */
static enum flow pass(struct machine *m, const struct node *n, const struct json *value,
                      struct sink *out)
{
    if (!value)
        return failed_at(m, n);
    return out->fn(m, out, value);
}

/* A failure between the two calls is caught if n has a question mark. catch_begin returns what
 * catch_end needs. */
static bool catch_begin(struct machine *m, const struct node *n)
{
    bool outer = m->is_caught;

    m->is_caught |= n->is_optional;
    return outer;
}

static const struct json *catch_end(struct machine *m, bool outer, const struct json *value)
{
    m->is_caught = outer;
    return value;
}

/* Passes the value of a path to the sink. With a question mark, its own failure yields no value. */
static enum flow pass_path(struct machine *m, const struct node *n, const struct json *value,
                           struct sink *out)
{
    if (!value && n->is_optional && !m->is_fatal)
        return FLOW_ON;
    return pass(m, n, value, out);
}

/* ---- sinks ---- */

/* State shared by most sinks. */
struct then {
    struct sink sink;
    const struct node *node;
    const struct json *in;    /* input of the node */
    const struct json *first; /* value of the operand evaluated first */
    const struct json *second;
    struct sink *out;
};

#define THEN(self) CONTAINER_OF(self, struct then, sink)

/* ---- paths ---- */

static enum flow field_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    bool outer = catch_begin(m, t->node);
    const struct json *member = get_member(m, v, t->node->name);

    return pass_path(m, t->node, catch_end(m, outer, member), t->out);
}

static enum flow index_of_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    bool outer = catch_begin(m, t->node);
    const struct json *member = get_index(m, v, t->first);

    return pass_path(m, t->node, catch_end(m, outer, member), t->out);
}

static enum flow index_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);
    struct then of = {{index_of_then}, t->node, t->in, v, NULL, t->out};

    return node_eval(m, t->node->a, t->in, &of.sink);
}

static enum flow iterate_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    if (v->type != JSON_ARRAY && v->type != JSON_OBJECT) {
        if (!t->node->is_optional && !m->is_caught)
            (void)machine_fail(m, "cannot iterate over %s", value_summary(m, v).text);
        return pass_path(m, t->node, NULL, t->out);
    }
    for (const struct json *j = v->child; j; j = j->next) {
        if (!machine_spend(m, 1))
            return failed_at(m, t->node);
        enum flow flow = t->out->fn(m, t->out, j);
        if (flow != FLOW_ON)
            return flow;
    }
    return FLOW_ON;
}

static enum flow slice_of_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    bool outer = catch_begin(m, t->node);
    const struct json *slice = operator_slice(m, v, t->first, t->second);

    return pass_path(m, t->node, catch_end(m, outer, slice), t->out);
}

static enum flow slice_to_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);
    struct then of = {{slice_of_then}, t->node, t->in, t->first, v, t->out};

    return node_eval(m, t->node->a, t->in, &of.sink);
}

/* `from` varies slowest, then `to`, then the value that is sliced. */
static enum flow slice_from_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);
    struct then to = {{slice_to_then}, t->node, t->in, v, NULL, t->out};

    if (!t->node->c)
        return slice_to_then(m, &to.sink, &value_null);
    return node_eval(m, t->node->c, t->in, &to.sink);
}

static enum flow path_eval(struct machine *m, const struct node *n, const struct json *in,
                           struct sink *out)
{
    struct then t = {{field_then}, n, in, NULL, NULL, out};

    if (n->kind == NODE_FIELD)
        return node_eval(m, n->a, in, &t.sink);
    if (n->kind == NODE_ITERATE) {
        t.sink.fn = iterate_then;
        return node_eval(m, n->a, in, &t.sink);
    }
    if (n->kind == NODE_INDEX) {
        t.sink.fn = index_then;
        return node_eval(m, n->b, in, &t.sink);
    }
    ASSERT(n->kind == NODE_SLICE);
    t.sink.fn = slice_from_then;
    return n->b ? node_eval(m, n->b, in, &t.sink) : slice_from_then(m, &t.sink, &value_null);
}

/* ---- pipes and choices ---- */

static enum flow pipe_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    return node_eval(m, t->node->b, v, t->out);
}

/* A failure inside the sink must not be caught by this node. */
struct trial {
    struct sink sink;
    struct sink *out;
    bool failed_behind;
    bool is_caught_behind;
};

static enum flow try_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct trial *t = CONTAINER_OF(self, struct trial, sink);

    if (!machine_pay(m, 1))
        return FLOW_FAIL;
    m->is_caught = t->is_caught_behind;
    enum flow flow = t->out->fn(m, t->out, v);
    m->is_caught = true;
    t->failed_behind |= flow == FLOW_FAIL;
    return flow;
}

static enum flow try_eval(struct machine *m, const struct node *n, const struct json *in,
                          struct sink *out)
{
    struct trial t = {{try_then}, out, false, m->is_caught};

    m->is_caught = true;
    enum flow flow = node_eval(m, n->a, in, &t.sink);
    m->is_caught = t.is_caught_behind;
    if (flow == FLOW_FAIL && !t.failed_behind && !m->is_fatal)
        return FLOW_ON;
    return flow;
}

struct alternative {
    struct sink sink;
    struct sink *out;
    bool any;
};

static enum flow alternative_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct alternative *t = CONTAINER_OF(self, struct alternative, sink);

    if (!machine_pay(m, 1))
        return FLOW_FAIL;
    if (!json_truth(v))
        return FLOW_ON;
    t->any = true;
    return t->out->fn(m, t->out, v);
}

static enum flow alternative_eval(struct machine *m, const struct node *n, const struct json *in,
                                  struct sink *out)
{
    struct alternative t = {{alternative_then}, out, false};
    enum flow flow = node_eval(m, n->a, in, &t.sink);

    if (flow != FLOW_ON || t.any)
        return flow;
    return node_eval(m, n->b, in, out);
}

static enum flow truth_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    return t->out->fn(m, t->out, value_bool(json_truth(v)));
}

static enum flow and_or_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);
    struct then second = {{truth_then}, t->node, t->in, NULL, NULL, t->out};

    if (json_truth(v) == (t->node->kind == NODE_OR))
        return t->out->fn(m, t->out, value_bool(t->node->kind == NODE_OR));
    return node_eval(m, t->node->b, t->in, &second.sink);
}

static enum flow if_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    return node_eval(m, json_truth(v) ? t->node->b : t->node->c, t->in, t->out);
}

/* ---- operators: the right side is evaluated first, and varies slowest ---- */

static enum flow left_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    return pass(m, t->node, operator_apply(m, t->node->op, v, t->first), t->out);
}

static enum flow right_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);
    struct then left = {{left_then}, t->node, t->in, v, NULL, t->out};

    return node_eval(m, t->node->a, t->in, &left.sink);
}

static enum flow negate_then(struct machine *m, struct sink *self, const struct json *v)
{
    const struct then *t = THEN(self);

    if (v->type == JSON_NUMBER)
        return pass(m, t->node, number_negate(m, v), t->out);
    (void)machine_fail(m, "%s cannot be negated", value_summary(m, v).text);
    return failed_at(m, t->node);
}

/* ---- construction ---- */

struct collection {
    struct sink sink;
    struct builder builder;
};

static enum flow collect_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct collection *t = CONTAINER_OF(self, struct collection, sink);

    (void)m;
    return builder_add(&t->builder, v) ? FLOW_ON : FLOW_FAIL;
}

static enum flow array_eval(struct machine *m, const struct node *n, const struct json *in,
                            struct sink *out)
{
    struct collection t = {{collect_then}, builder_begin(m, JSON_ARRAY)};

    if (!t.builder.container)
        return failed_at(m, n);
    if (n->a) {
        enum flow flow = node_eval(m, n->a, in, &t.sink);
        if (flow != FLOW_ON)
            return flow == FLOW_FAIL ? failed_at(m, n) : flow;
    }
    return out->fn(m, out, t.builder.container);
}

/* The members chosen so far, innermost last. The object is made once every member has a value. */
struct choice {
    struct sink sink;
    const struct node *object;
    const struct node *member;
    const struct json *in;
    const struct choice *before;
    const struct json *key;
    const struct json *value;
    struct sink *out;
};

static enum flow member_eval(struct machine *m, const struct choice *before,
                             const struct node *object, const struct node *member,
                             const struct json *in, struct sink *out);

static bool set_chosen(struct builder *b, const struct choice *c)
{
    const struct choice *all[NODE_COUNT_MAX];
    size_t n = 0;

    for (; c; c = c->before)
        all[n++] = c;
    while (n-- > 0)
        if (!builder_set(b, all[n]->key->text, all[n]->value))
            return false;
    return true;
}

static enum flow object_done(struct machine *m, const struct choice *last, const struct node *n,
                             struct sink *out)
{
    struct builder b = builder_begin(m, JSON_OBJECT);

    if (!b.container || !set_chosen(&b, last))
        return failed_at(m, n);
    return out->fn(m, out, b.container);
}

static enum flow member_value_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct choice c = *CONTAINER_OF(self, struct choice, sink);

    if (c.key->type != JSON_STRING) {
        (void)machine_fail(m, "cannot use %s as object key", value_summary(m, c.key).text);
        return failed_at(m, c.member);
    }
    c.value = v;
    return member_eval(m, &c, c.object, c.member->next, c.in, c.out);
}

static enum flow member_key_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct choice c = *CONTAINER_OF(self, struct choice, sink);

    c.sink.fn = member_value_then; /* the key is checked after the value exists, as in jq */
    c.key = v;
    return node_eval(m, c.member->b, c.in, &c.sink);
}

static enum flow member_eval(struct machine *m, const struct choice *before,
                             const struct node *object, const struct node *member,
                             const struct json *in, struct sink *out)
{
    struct choice c = {{member_key_then}, object, member, in, before, NULL, NULL, out};

    if (!member)
        return object_done(m, before, object, out);
    return node_eval(m, member->a, in, &c.sink);
}

/* "a\(x)b\(y)" is ("a" + x) + "b" + y: y varies slowest, so parts are evaluated from the last to
 * the first. */
struct part {
    struct sink sink;
    const struct node *string;
    const struct node *node;
    const struct json *in;
    const struct part *after; /* the part that follows this one */
    struct slice text;
    struct sink *out;
};

static enum flow part_eval(struct machine *m, const struct part *after, const struct node *string,
                           const struct node *node, const struct json *in, struct sink *out);

static enum flow part_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct part p = *CONTAINER_OF(self, struct part, sink);
    const struct json *text = value_to_text(m, v);

    if (!text)
        return failed_at(m, p.string);
    p.text = text->text;
    return part_eval(m, &p, p.string, p.node->before, p.in, p.out);
}

static enum flow string_done(struct machine *m, const struct part *first, const struct node *n,
                             struct sink *out)
{
    size_t len = 0;
    size_t at = 0;

    if (!machine_pay(m, n->list_count))
        return failed_at(m, n);
    for (const struct part *p = first; p; p = p->after)
        len += p->text.len;
    char *ptr = value_bytes(m, len);
    if (!ptr)
        return failed_at(m, n);
    for (const struct part *p = first; p; p = p->after) {
        memcpy(ptr + at, p->text.ptr, p->text.len);
        at += p->text.len;
    }
    return pass(m, n, value_text(m, (struct slice){ptr, len}), out);
}

/* Evaluates `node` and the parts before it. */
static enum flow part_eval(struct machine *m, const struct part *after, const struct node *string,
                           const struct node *node, const struct json *in, struct sink *out)
{
    struct part p = {{part_then}, string, node, in, after, SLICE_NONE, out};

    if (!node)
        return string_done(m, after, string, out);
    return node_eval(m, node, in, &p.sink);
}

static enum flow string_eval(struct machine *m, const struct node *n, const struct json *in,
                             struct sink *out)
{
    const struct node *last = n->list;

    while (last->next)
        last = last->next;
    return part_eval(m, NULL, n, last, in, out);
}

/* ---- calls ---- */

struct call {
    struct sink sink;
    const struct node *node;
    const struct json *in;
    const struct json *args[FUNCTION_ARGS_MAX];
    uint32_t count;
    struct sink *out;
};

static enum flow args_eval(struct machine *m, struct call *c);

static enum flow arg_then(struct machine *m, struct sink *self, const struct json *v)
{
    struct call c = *CONTAINER_OF(self, struct call, sink);

    c.args[c.count++] = v;
    return args_eval(m, &c);
}

static enum flow args_eval(struct machine *m, struct call *c)
{
    const struct node *n = c->node;

    if (c->count == n->list_count && n->function->generate) {
        enum flow flow = n->function->generate(m, c->in, c->args, c->count, c->out);
        return flow == FLOW_FAIL ? failed_at(m, n) : flow;
    }
    if (c->count == n->list_count)
        return pass(m, n, n->function->of_values(m, c->in, c->args), c->out);
    const struct node *arg = n->list;
    for (uint32_t i = 0; i < c->count; i++)
        arg = arg->next;
    return node_eval(m, arg, c->in, &c->sink);
}

static enum flow call_eval(struct machine *m, const struct node *n, const struct json *in,
                           struct sink *out)
{
    struct call c = {{arg_then}, n, in, {NULL}, 0, out};

    ASSERT(n->list_count <= FUNCTION_ARGS_MAX);
    if (!n->function->of_expressions)
        return args_eval(m, &c);
    enum flow flow = n->function->of_expressions(m, n, in, out);
    return flow == FLOW_FAIL ? failed_at(m, n) : flow;
}

static enum flow comma_eval(struct machine *m, const struct node *n, const struct json *in,
                            struct sink *out)
{
    for (const struct node *one = n->list; one; one = one->next) {
        enum flow flow = node_eval(m, one, in, out);
        if (flow != FLOW_ON)
            return flow;
    }
    return FLOW_ON;
}

/* Evaluates the first operand of n; `fn` continues with each of its values. */
static enum flow operand_eval(struct machine *m, const struct node *n, const struct node *operand,
                              const struct json *in, struct sink *out,
                              enum flow (*fn)(struct machine *m, struct sink *self,
                                              const struct json *value))
{
    struct then t = {{fn}, n, in, NULL, NULL, out};

    return node_eval(m, operand, in, &t.sink);
}

enum flow node_eval(struct machine *m, const struct node *n, const struct json *in,
                    struct sink *out)
{
    if (n->is_simple) {
        const struct json *j = simple_eval(m, n, in);
        return j ? out->fn(m, out, j) : failed_at(m, n);
    }
    if (!machine_spend(m, 1))
        return failed_at(m, n);
    switch (n->kind) {
    case NODE_FIELD:
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_ITERATE:
        return path_eval(m, n, in, out);
    case NODE_STRING:
        return string_eval(m, n, in, out);
    case NODE_TRY:
        return try_eval(m, n, in, out);
    case NODE_PIPE:
        return operand_eval(m, n, n->a, in, out, pipe_then);
    case NODE_COMMA:
        return comma_eval(m, n, in, out);
    case NODE_ALTERNATIVE:
        return alternative_eval(m, n, in, out);
    case NODE_AND:
    case NODE_OR:
        return operand_eval(m, n, n->a, in, out, and_or_then);
    case NODE_BINARY:
        return operand_eval(m, n, n->b, in, out, right_then);
    case NODE_NEGATE:
        return operand_eval(m, n, n->a, in, out, negate_then);
    case NODE_ARRAY:
        return array_eval(m, n, in, out);
    case NODE_OBJECT:
        return member_eval(m, NULL, n, n->list, in, out);
    case NODE_IF:
        return operand_eval(m, n, n->a, in, out, if_then);
    case NODE_CALL:
        return call_eval(m, n, in, out);
    case NODE_IDENTITY:
    case NODE_LITERAL:
    case NODE_MEMBER:
        break;
    }
    UNREACHABLE();
}
