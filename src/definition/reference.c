#include "definition/reference.h"

#include "definition/function.h"

struct collector {
    struct arena *arena;
    struct references *refs;
    unsigned guards; /* around this place something is said for null: //, ? or if */
};

static void everything(struct references *r)
{
    r->input = r->task = r->steps = true;
}

static void add_step(struct collector *c, const struct node *n, uint8_t members, bool is_output)
{
    struct reference *r = arena_alloc(c->arena, sizeof *r);

    r->step = n->name;
    r->at = n->at;
    r->members = members;
    r->needs_output = is_output && c->guards == 0;
    r->next = c->refs->list;
    c->refs->list = r;
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

static uint8_t member_of_step(struct slice name)
{
    return slice_is(name, "input")    ? MEMBER_INPUT
           : slice_is(name, "output") ? MEMBER_OUTPUT
           : slice_is(name, "state")  ? MEMBER_STATE
           : slice_is(name, "error")  ? MEMBER_ERROR
                                      : 0;
}

/* A field: .input, .task, .steps, .steps.NAME, .steps.NAME.output. False: of something else. */
static bool collect_field(struct collector *c, const struct node *n)
{
    if (is_root_field(n)) {
        c->refs->input |= slice_is(n->name, "input");
        c->refs->task |= slice_is(n->name, "task");
        c->refs->steps |= slice_is(n->name, "steps");
        return true;
    }
    if (is_step(n)) {
        add_step(c, n, MEMBERS_ALL, false);
        return true;
    }
    if (n->kind == NODE_FIELD && is_step(n->a)) {
        uint8_t member = member_of_step(n->name);
        c->guards += n->is_optional;
        add_step(c, n->a, member, member == MEMBER_OUTPUT);
        c->guards -= n->is_optional;
        return true;
    }
    return false;
}

static void collect(struct collector *c, const struct node *n);

static void collect_guarded(struct collector *c, const struct node *n, bool is_guarded)
{
    c->guards += is_guarded;
    collect(c, n);
    c->guards -= is_guarded;
}

/* All below it are evaluated on the root, too. */
static void collect_below(struct collector *c, const struct node *n)
{
    bool all = n->kind == NODE_IF || n->kind == NODE_TRY || n->is_optional;

    collect_guarded(c, n->a, all || n->kind == NODE_ALTERNATIVE);
    collect_guarded(c, n->b, all);
    collect_guarded(c, n->c, all);
    for (const struct node *one = n->list; one; one = one->next)
        collect_guarded(c, one, all);
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
        collect_below(c, n);
        return;
    }
    UNREACHABLE();
}

void references_collect(const struct expression *x, struct arena *a, struct references *r)
{
    struct collector c = {a, r, 0};

    collect(&c, x->root);
}

bool reference_is_output(const struct expression *x)
{
    const struct node *n = x->root;

    return n->kind == NODE_FIELD && slice_is(n->name, "output") && is_step(n->a);
}
