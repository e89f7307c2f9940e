#include "definition/reference.h"

#include "definition/function.h"

struct collector {
    struct arena *arena;
    struct references *refs;
};

static void everything(struct references *r)
{
    r->input = r->task = r->steps = true;
}

static void add_step(struct collector *c, const struct node *n)
{
    struct reference *r = arena_alloc(c->arena, sizeof *r);

    r->step = n->name;
    r->at = n->at;
    r->next = c->refs->list;
    c->refs->list = r;
}

static bool is_root_field(const struct node *n)
{
    return n->kind == NODE_FIELD && n->a->kind == NODE_IDENTITY;
}

/* A field: .input, .task, .steps, .steps.NAME, or deeper. False: of something else. */
static bool collect_field(struct collector *c, const struct node *n)
{
    if (is_root_field(n)) {
        c->refs->input |= slice_is(n->name, "input");
        c->refs->task |= slice_is(n->name, "task");
        c->refs->steps |= slice_is(n->name, "steps");
        return true;
    }
    if (n->kind == NODE_FIELD && is_root_field(n->a) && slice_is(n->a->name, "steps")) {
        add_step(c, n);
        return true;
    }
    return false;
}

/* `n` is evaluated on the root. */
static void collect(struct collector *c, const struct node *n)
{
    if (!n || collect_field(c, n))
        return;
    switch (n->kind) {
    case NODE_IDENTITY:
        everything(c->refs);
        return;
    case NODE_LITERAL:
        return;
    case NODE_CALL:
        /* Functions look at their input; arguments of some are evaluated on members of it. */
        everything(c->refs);
        return;
    case NODE_PIPE:
        collect(c, n->a); /* what is behind it is evaluated on what this gives */
        return;
    case NODE_STRING:
    case NODE_FIELD:
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_ITERATE:
    case NODE_TRY:
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
        collect(c, n->a);
        collect(c, n->b);
        collect(c, n->c);
        for (const struct node *one = n->list; one; one = one->next)
            collect(c, one);
        return;
    }
    UNREACHABLE();
}

void references_collect(const struct expression *x, struct arena *a, struct references *r)
{
    struct collector c = {a, r};

    collect(&c, x->root);
}
