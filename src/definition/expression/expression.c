/* Compiles and evaluates a single expression (expression.h): a wrapper around parser.c and
 * evaluator.c that requires exactly one value. */
#include "definition/expression/expression.h"

#include "definition/expression/machine.h"
#include "definition/expression/node.h"
#include "definition/expression/value.h"

enum err expression_compile(struct slice text, struct arena *a, struct expression **ret,
                            size_t *ret_column, struct error *e)
{
    size_t end = 0;

    return node_parse(text, false, a, ret, &end, ret_column, e);
}

bool json_truth(const struct json *j)
{
    return j->type != JSON_NULL && j->type != JSON_FALSE;
}

/* A sink that accepts exactly one value. */
struct taker {
    struct sink sink;
    const struct json *value;
    bool is_several;
};

static enum flow take(struct machine *m, struct sink *self, const struct json *v)
{
    struct taker *t = CONTAINER_OF(self, struct taker, sink);

    if (t->value) {
        t->is_several = true;
        m->stop = t;
        return FLOW_STOP;
    }
    t->value = v;
    return FLOW_ON;
}

/* The same value with its JSON text, which computed values do not have. */
static enum err with_raw(struct machine *m, const struct json *j, const struct json **ret,
                         struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {.max = EXPRESSION_BYTES_MAX};
    bool is_written = value_write_paid(m, &b, j);

    if (m->is_fatal)
        return error_set(e, ERR_INVALID, "%s", m->what);
    if (!is_written)
        return error_set(e, b.overflow ? ERR_TOO_BIG : ERR_INVALID, "the result is %s",
                         b.overflow ? "too big" : "nested too deeply");
    struct json *copy = arena_alloc(m->arena, sizeof *copy);
    *copy = *j;
    copy->raw = arena_copy(m->arena, buf_view(&b));
    *ret = copy;
    return ERR_OK;
}

static enum err one_value(const struct machine *m, const struct taker *t, enum flow flow,
                          struct error *e)
{
    if (flow == FLOW_FAIL)
        return error_set(e, ERR_INVALID, "column %zu: %s", m->at + 1, m->what);
    if (t->is_several)
        return error_set(e, ERR_INVALID, "yields several values; [...] makes an array of them");
    if (!t->value)
        return error_set(e, ERR_INVALID, "yields no value; // null would be one");
    return ERR_OK;
}

enum err machine_run(const struct expression *x, const struct json *root, struct arena *a,
                     struct budget *budget, const struct json **ret, struct error *e)
{
    struct machine m = machine_begin(a, budget);
    struct taker t = {{take}, NULL, false};
    enum flow flow = node_eval(&m, x->root, root, &t.sink);
    enum err err = one_value(&m, &t, flow, e);

    if (err == ERR_OK && !t.value->raw.ptr)
        err = with_raw(&m, t.value, ret, e);
    else if (err == ERR_OK)
        *ret = t.value;
    machine_end(&m, budget);
    return err;
}

enum err expression_eval(const struct expression *x, const struct json *root, struct arena *a,
                         const struct json **ret, struct error *e)
{
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};

    return machine_run(x, root, a, &budget, ret, e);
}
