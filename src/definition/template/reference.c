/* Finds the values that an expression refers to, from its syntax tree alone: see reference.h. A
 * path that depends on data refers to everything. */
#include "definition/template/reference.h"

#include "definition/function/function.h"
#include "definition/template/shape.h"

struct collector {
    struct arena *arena;
    struct references *refs;
    unsigned guards;   /* the number of enclosing //, ? and if, which handle null */
    bool is_given;     /* the value of a path is passed on unchanged */
    bool is_unchecked; /* in a call: an unknown step there was always accepted */
    bool has_task;     /* it refers to all of .task */
};

/* ---- needed parts of a value ---- */

static void want_all(struct wanted *w)
{
    w->whole = true;
    w->child = NULL;
    w->count = 0;
}

static struct wanted *child_of(struct wanted *w, struct arena *a, struct slice name)
{
    for (struct wanted *one = w->child; one; one = one->next)
        if (slice_eq(one->name, name))
            return one;
    if (w->count == WANTED_CHILDREN_MAX)
        return NULL;
    struct wanted *more = arena_alloc(a, sizeof *more);
    more->name = name;
    more->next = w->child;
    w->child = more;
    w->count++;
    return more;
}

void wanted_add(struct wanted *w, struct arena *a, const struct slice *path, size_t count,
                bool is_given)
{
    for (size_t i = 0; i < count && !w->whole; i++) {
        struct wanted *below = i < WANTED_DEPTH_MAX ? child_of(w, a, path[i]) : NULL;
        if (!below) {
            want_all(w);
            return;
        }
        w = below;
    }
    w->is_given |= is_given;
    if (!is_given)
        want_all(w);
}

void wanted_join(struct wanted *w, struct arena *a, const struct wanted *more)
{
    w->is_given |= more->is_given;
    if (!w->whole && !w->child) { /* the first paths: moved instead of copied */
        w->whole = more->whole;
        w->child = more->child;
        w->count = more->count;
        return;
    }
    if (more->whole)
        want_all(w);
    for (const struct wanted *one = more->child; one && !w->whole; one = one->next) {
        struct wanted *below = child_of(w, a, one->name);
        if (below)
            wanted_join(below, a, one);
        else
            want_all(w);
    }
}

/* ---- references ---- */

static void everything(struct collector *c)
{
    struct references *r = c->refs;

    c->has_task = true;
    r->input = r->task = r->steps = true;
    r->output = r->of_output != NULL;
    r->round = r->sees_round;
    r->item = r->index = r->of_item != NULL;
    if (r->of_item)
        want_all(r->of_item);
    if (r->of_input)
        want_all(r->of_input);
    if (r->of_output)
        want_all(r->of_output);
}

/* "steps", a name, a member, and one more to notice longer paths. */
enum { PATH_MAX_NAMES = WANTED_DEPTH_MAX + 4 };

/* The names of a path from the root, and their nodes. */
struct path_names {
    struct slice names[PATH_MAX_NAMES];
    const struct node *nodes[PATH_MAX_NAMES];
    size_t count; /* may exceed the capacity */
};

/* False: it does not start at the root, or not with a name. */
static bool path_of(const struct node *n, struct path_names *ret)
{
    const struct node *root = n;
    size_t count = 0;

    for (; root->kind == NODE_FIELD; root = root->a)
        count++;
    ret->count = count;
    for (size_t i = count; i-- > 0; n = n->a)
        if (i < PATH_MAX_NAMES) {
            ret->names[i] = n->name;
            ret->nodes[i] = n;
        }
    return count > 0 && root->kind == NODE_IDENTITY;
}

static uint8_t member_of_step(struct slice name)
{
    return slice_is(name, "input")    ? MEMBER_INPUT
           : slice_is(name, "output") ? MEMBER_OUTPUT
           : slice_is(name, "state")  ? MEMBER_STATE
           : slice_is(name, "error")  ? MEMBER_ERROR
           : slice_is(name, "failed") ? MEMBER_FAILED
           : slice_is(name, "errors") ? MEMBER_ERRORS
                                      : 0;
}

/* .steps.NAME, .steps.NAME.output, .steps.NAME.output.a */
static void add_step(struct collector *c, const struct path_names *p)
{
    struct reference *r = arena_alloc(c->arena, sizeof *r);
    size_t count = p->count < PATH_MAX_NAMES ? p->count : PATH_MAX_NAMES;
    bool has_case = c->guards > 0;

    for (size_t i = 2; i < count; i++)
        has_case |= p->nodes[i]->is_optional;
    r->step = p->names[1];
    r->at = p->nodes[1]->at;
    r->is_unchecked = c->is_unchecked;
    r->members = count == 2 ? MEMBERS_ALL : member_of_step(p->names[2]);
    r->needs_output = count > 2 && r->members == MEMBER_OUTPUT && !has_case;
    bool is_ours = !(r->members & (MEMBER_INPUT | MEMBER_OUTPUT)); /* state, error, or no member */
    c->refs->may_be_odd |= is_ours && count > (r->members ? 3 : 2);
    c->refs->may_be_odd |=
        count > 2
        && ((r->members & (MEMBER_FAILED | MEMBER_ERRORS)) != 0 || shape_has_items(c->refs->scope));
    if (count == 2)
        want_all(&r->seen);
    else
        wanted_add(&r->seen, c->arena, p->names + 3, count - 3, c->is_given);
    r->next = c->refs->list;
    c->refs->list = r;
}

/* A reference to no step, for whoever reports it. */
static struct reference *add_other(struct collector *c, const struct node *n)
{
    struct reference *r = arena_alloc(c->arena, sizeof *r);

    r->at = n->at;
    r->next = c->refs->list;
    c->refs->list = r;
    return r;
}

static bool is_guarded(const struct collector *c, const struct path_names *p, size_t count)
{
    bool is = c->guards > 0;

    for (size_t i = 1; i < count; i++)
        is |= p->nodes[i]->is_optional;
    return is;
}

/* .item, .index. False: the path is neither, or there is no item. */
static bool collect_item(struct collector *c, const struct path_names *p, size_t count)
{
    bool item = slice_is(p->names[0], "item");

    if (!item && !slice_is(p->names[0], "index"))
        return false;
    if (!c->refs->of_item) {
        add_other(c, p->nodes[0])->is_item = true;
        return false;
    }
    c->refs->item |= item;
    c->refs->index |= !item;
    if (item)
        wanted_add(c->refs->of_item, c->arena, p->names + 1, count - 1, c->is_given);
    else
        c->refs->may_be_odd |= count > 1;
    return true;
}

/* Collects a path from the root. False: it is none. */
static bool collect_path(struct collector *c, const struct node *n)
{
    struct path_names p;

    if (!path_of(n, &p))
        return false;
    size_t count = p.count < PATH_MAX_NAMES ? p.count : PATH_MAX_NAMES;
    bool is_known = collect_item(c, &p, count) || slice_is(p.names[0], "steps");
    if (slice_is(p.names[0], "task")) {
        is_known = c->refs->task = true;
        c->refs->may_be_odd |= count > 1;
        c->has_task |= count == 1;
        c->refs->signals |= count > 1 && slice_is(p.names[1], "signals");
    }
    if (slice_is(p.names[0], "output") && c->refs->of_output) {
        is_known = c->refs->output = true;
        if (c->refs->may_fail && !c->is_unchecked && !is_guarded(c, &p, count))
            add_other(c, p.nodes[0])->is_output = true;
        wanted_add(c->refs->of_output, c->arena, p.names + 1, count - 1, c->is_given);
    }
    if (slice_is(p.names[0], "round") && c->refs->sees_round) {
        is_known = c->refs->round = true;
        c->refs->may_be_odd |= count > 1;
    }
    if (slice_is(p.names[0], "input")) {
        is_known = c->refs->input = true;
        c->refs->may_be_odd |=
            count > 1 && !shape_of_input_has(c->refs->scope, p.names + 1, count - 1);
        if (c->refs->of_input)
            wanted_add(c->refs->of_input, c->arena, p.names + 1, count - 1, c->is_given);
    }
    if (slice_is(p.names[0], "steps") && count == 1)
        c->refs->steps = true;
    else if (slice_is(p.names[0], "steps"))
        add_step(c, &p);
    c->refs->may_be_odd |= !is_known;
    return true;
}

static void collect(struct collector *c, const struct node *n);

static void collect_guarded(struct collector *c, const struct node *n, bool is_guarded)
{
    c->guards += is_guarded;
    collect(c, n);
    c->guards -= is_guarded;
}

/* Collects the nodes below, which are all evaluated on the root. */
static void collect_below(struct collector *c, const struct node *n)
{
    bool all = n->kind == NODE_IF || n->kind == NODE_TRY || n->is_optional;

    collect_guarded(c, n->a, all || n->kind == NODE_ALTERNATIVE);
    collect_guarded(c, n->b, all);
    collect_guarded(c, n->c, all);
    for (const struct node *one = n->list; one; one = one->next)
        collect_guarded(c, one, all);
}

/* The number of leading arguments that are evaluated on the function's input, for functions that do
 * not use their input otherwise. */
static size_t plain_arguments(const struct function *f)
{
    static const struct {
        const char *name;
        uint32_t args, plain;
    } all[] = {
        {"empty", 0, 0}, {"error", 1, 1},   {"first", 1, 1}, {"last", 1, 1},
        {"limit", 2, 2}, {"isempty", 1, 1}, {"range", 1, 1}, {"range", 2, 2},
        {"range", 3, 3}, {"any", 2, 1}, /* the condition is evaluated on the values of the first
                                           argument */
        {"all", 2, 1},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (f->arg_count == all[i].args && slice_is(f->name, all[i].name))
            return all[i].plain;
    return SIZE_MAX;
}

static void collect_call(struct collector *c, const struct node *n)
{
    size_t plain = plain_arguments(n->function);
    bool outer = c->is_unchecked;

    if (plain == SIZE_MAX) {
        /* It uses its input; some functions evaluate arguments on members of it. */
        everything(c);
        return;
    }
    c->is_unchecked = c->refs->any_unchecked = true;
    for (const struct node *one = n->list; one && plain-- > 0; one = one->next)
        collect(c, one);
    c->is_unchecked = outer;
}

/* Collects from `n`, which is evaluated on the root. */
static void collect(struct collector *c, const struct node *n)
{
    if (!n || collect_path(c, n))
        return;
    switch (n->kind) {
    case NODE_IDENTITY:
        everything(c);
        return;
    case NODE_LITERAL:
        return;
    case NODE_CALL:
        c->refs->may_be_odd = true;
        collect_call(c, n);
        return;
    case NODE_PIPE:
        c->refs->may_be_odd = true;
        collect(c, n->a); /* the rest is evaluated on its values */
        return;
    case NODE_FIELD:
    case NODE_TRY:
        c->refs->may_be_odd = true;
        collect_below(c, n);
        return;
    case NODE_STRING:
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_ITERATE:
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
        collect_below(c, n);
        return;
    }
    UNREACHABLE();
}

/* As a member, or as a text that may be the name of one. */
static bool names_signals(const struct node *n)
{
    if (!n)
        return false;
    if (n->kind == NODE_FIELD && slice_is(n->name, "signals"))
        return true;
    if (n->kind == NODE_LITERAL && n->value->type == JSON_STRING
        && slice_is(n->value->text, "signals"))
        return true;
    for (const struct node *one = n->list; one; one = one->next)
        if (names_signals(one))
            return true;
    return names_signals(n->a) || names_signals(n->b) || names_signals(n->c);
}

/* Whoever has the URL of a signal can send it: who passes on all of .task does not mean them. */
void references_collect(const struct expression *x, bool is_given, struct arena *a,
                        struct references *r)
{
    struct collector c = {a, r, 0, is_given && reference_is_path(x), false, false};

    collect(&c, x->root);
    r->signals |= c.has_task && names_signals(x->root);
}

bool reference_is_path(const struct expression *x)
{
    struct path_names p;

    return path_of(x->root, &p) && p.count <= WANTED_DEPTH_MAX;
}

static bool is_root_field(const struct node *n)
{
    return n->kind == NODE_FIELD && n->a->kind == NODE_IDENTITY;
}

/* .steps.NAME */
static bool is_step(const struct node *n)
{
    return n->kind == NODE_FIELD && is_root_field(n->a) && slice_is(n->a->name, "steps");
}

bool reference_is_output(const struct expression *x)
{
    const struct node *n = x->root;

    return n->kind == NODE_FIELD && slice_is(n->name, "output") && is_step(n->a);
}
