/* The members of the values that expressions refer to, as far as known, and paths that can have no
 * value: see shape.h. */
#include "definition/template/shape.h"

#include "definition/function/function.h"
#include "definition/reader/definition_reader.h"
#include "definition/template/reference.h"

enum { SIGNALS_KNOWN_MAX = 100 }; /* names; more are not checked */

enum shape_kind {
    SHAPE_ANY,     /* nothing is known */
    SHAPE_PLAIN,   /* a value without members */
    SHAPE_OBJECT,  /* it has exactly these members */
    SHAPE_FORWARD, /* the same: a task that goes forward */
    SHAPE_STEPS,   /* each member is a step; a name that is not in `names` is none */
};

struct shape_member {
    struct slice name;
    const struct shape *shape;
};

struct shape {
    enum shape_kind kind;
    const char *what; /* PLAIN: "a string"; OBJECT: " of the task" */
    const struct shape_member *members;
    size_t count;
    const struct map *names;
    const bool *is_each; /* STEPS: which of them have for_each */
    bool has_each;       /* STEPS, and the scope: some have */
};

/* ---- values made by the server ---- */

#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

static const struct shape any = {.kind = SHAPE_ANY};
static const struct shape a_string = {.kind = SHAPE_PLAIN, .what = "a string"};
static const struct shape a_number = {.kind = SHAPE_PLAIN, .what = "a number"};
static const struct shape a_boolean = {.kind = SHAPE_PLAIN, .what = "a boolean"};
static const struct shape an_array = {.kind = SHAPE_PLAIN, .what = "an array"};

static const struct shape_member error_members[] = {
    {NAME("code"), &a_string},
    {NAME("message"), &a_string},
};
static const struct shape error = {.kind = SHAPE_OBJECT,
                                   .what = " of an error",
                                   .members = error_members,
                                   .count = 2};

static const struct shape_member step_members[] = {
    {NAME("input"), &any},
    {NAME("output"), &any},
    {NAME("state"), &a_string},
    {NAME("error"), &error},
};
static const struct shape step = {.kind = SHAPE_OBJECT,
                                  .what = " of a step",
                                  .members = step_members,
                                  .count = 4};

/* An input is of its items. */
static const struct shape_member each_members[] = {
    {NAME("output"), &an_array}, {NAME("state"), &a_string},  {NAME("error"), &error},
    {NAME("failed"), &a_number}, {NAME("errors"), &an_array},
};
static const struct shape each = {.kind = SHAPE_OBJECT,
                                  .what = " of a step with for_each",
                                  .members = each_members,
                                  .count = COUNT_OF(each_members)};

static const struct shape_member failure_members[] = {
    {NAME("step"), &a_string},
    {NAME("code"), &a_string},
    {NAME("message"), &a_string},
};
static const struct shape failure = {.kind = SHAPE_OBJECT,
                                     .what = " of the task's error",
                                     .members = failure_members,
                                     .count = 3};

static const struct shape_member task_members[] = {
    {NAME("id"), &a_string},
    {NAME("workflow"), &a_string},
    {NAME("version"), &a_number},
    {NAME("submitted_at"), &a_string},
};

static const struct shape_member answer_members[] = {
    {NAME("status"), &a_number},
    {NAME("headers"), &any},
    {NAME("body"), &any},
};
static const struct shape answer = {.kind = SHAPE_OBJECT,
                                    .what = " of the answer",
                                    .members = answer_members,
                                    .count = 3};

static const struct shape_member moment_members[] = {
    {NAME("time"), &a_string},
    {NAME("local"), &a_string},
    {NAME("previous"), &a_string},
};
static const struct shape moment = {.kind = SHAPE_OBJECT,
                                    .what = "",
                                    .members = moment_members,
                                    .count = 3};

const struct shape *shape_of_moment(void)
{
    return &moment;
}

const struct shape *shape_of_answer(void)
{
    return &answer;
}

/* ---- values declared by the definition ---- */

static const struct shape *shape_of_rule(const struct input_rule *rule)
{
    switch (rule->type) {
    case JSON_STRING:
        return &a_string;
    case JSON_NUMBER:
        return &a_number;
    case JSON_TRUE:
    case JSON_FALSE:
        return &a_boolean;
    case JSON_ARRAY:
        return &an_array;
    case JSON_NULL: /* any value */
    case JSON_OBJECT:
        return &any;
    }
    UNREACHABLE();
}

static const struct shape *shape_of_input(const struct definition *d, struct arena *a)
{
    if (!d->has_inputs)
        return &any;
    struct shape_member *members = arena_alloc(a, (d->input_count + 1) * sizeof *members);
    for (size_t i = 0; i < d->input_count; i++)
        members[i] = (struct shape_member){d->inputs[i].name, shape_of_rule(&d->inputs[i])};
    struct shape *input = arena_alloc(a, sizeof *input);
    *input = (struct shape){.kind = SHAPE_OBJECT,
                            .what = " of the task's inputs",
                            .members = members,
                            .count = d->input_count};
    return input;
}

static const struct shape *shape_of_steps(const struct reading *reading, struct arena *a)
{
    struct shape *all = arena_alloc(a, sizeof *all);

    *all = (struct shape){.kind = SHAPE_STEPS,
                          .names = &reading->names,
                          .is_each = reading->is_each,
                          .has_each = reading->has_each};
    return reading->steps ? all : &any; /* the steps have mistakes, reported before */
}

struct signal_members {
    struct shape_member *list;
    size_t count;
};

static void add_signal(struct signal_members *all, struct slice name)
{
    for (size_t i = 0; i < all->count; i++)
        if (slice_eq(all->list[i].name, name))
            return;
    if (all->count < SIGNALS_KNOWN_MAX)
        all->list[all->count++] = (struct shape_member){name, &a_string};
}

/* Names with mistakes are reported elsewhere. */
static void add_signals_of_step(struct signal_members *all, const struct json *j)
{
    const struct json *name = json_get(json_get(j, "signal"), "name");

    if (name && name->type == JSON_STRING)
        add_signal(all, name->text);
    for (const struct json *m = name && name->type == JSON_ARRAY ? name->child : NULL; m;
         m = m->next)
        if (m->type == JSON_STRING)
            add_signal(all, m->text);
}

/* NULL: the workflow has none. */
static const struct shape *shape_of_signals(const struct reading *g, struct arena *a)
{
    struct signal_members all = {arena_alloc(a, SIGNALS_KNOWN_MAX * sizeof *all.list), 0};
    const struct json *undo =
        g->on_signal && g->on_signal->type == JSON_OBJECT ? g->on_signal->child : NULL;

    for (; undo; undo = undo->next)
        add_signal(&all, undo->key);
    for (const struct json *m = g->steps ? g->steps->child : NULL; m; m = m->next)
        add_signals_of_step(&all, m);
    if (all.count == 0)
        return NULL;
    if (all.count == SIGNALS_KNOWN_MAX)
        return &any;
    struct shape *signals = arena_alloc(a, sizeof *signals);
    *signals = (struct shape){.kind = SHAPE_OBJECT,
                              .what = " of the workflow's signals",
                              .members = all.list,
                              .count = all.count};
    return signals;
}

/* A task that goes forward has no error; otherwise nothing would be evaluated. */
static const struct shape *shape_of_task(const struct reading *g, bool forward, struct arena *a)
{
    struct shape_member *members = arena_alloc(a, (COUNT_OF(task_members) + 2) * sizeof *members);
    const struct shape *signals = shape_of_signals(g, a);
    struct shape *task = arena_alloc(a, sizeof *task);
    size_t count = COUNT_OF(task_members);

    memcpy(members, task_members, sizeof task_members);
    if (signals)
        members[count++] = (struct shape_member){SLICE("signals"), signals};
    if (!forward)
        members[count++] = (struct shape_member){SLICE("error"), &failure};
    *task = (struct shape){.kind = forward ? SHAPE_FORWARD : SHAPE_OBJECT,
                           .what = " of the task",
                           .members = members,
                           .count = count};
    return task;
}

const struct shape *shape_of_scope(struct reader *r)
{
    struct reading *reading = reading_of(r);
    const struct shape **known =
        &reading->scopes[reading->visible][reading->rounds][reading->items];
    size_t count = 3;

    if (*known || !r->warnings)
        return *known;
    bool match = reading->visible == VISIBLE_MATCH;
    struct shape_member *members = arena_alloc(r->arena, 9 * sizeof *members);
    members[0] =
        (struct shape_member){SLICE("input"), shape_of_input(reading->definition, r->arena)};
    members[1] = (struct shape_member){SLICE("steps"), shape_of_steps(reading, r->arena)};
    members[2] =
        (struct shape_member){SLICE("task"),
                              shape_of_task(reading, match || reading->visible == VISIBLE_BEFORE,
                                            r->arena)};
    if (reading->rounds != ROUNDS_NONE)
        members[count++] = (struct shape_member){SLICE("round"), &a_number};
    if (reading->rounds == ROUNDS_ANSWER || reading->items == ITEM_UNDONE)
        members[count++] = (struct shape_member){SLICE("output"), &any};
    if (reading->items == ITEM_SEEN || reading->items == ITEM_UNDONE) {
        members[count++] = (struct shape_member){SLICE("item"), &any};
        members[count++] = (struct shape_member){SLICE("index"), &a_number};
    }
    if (match) {
        members[count++] = (struct shape_member){SLICE("data"), &any};
        members[count++] = (struct shape_member){SLICE("name"), &a_string};
    }
    struct shape *root = arena_alloc(r->arena, sizeof *root);
    *root = (struct shape){.kind = SHAPE_OBJECT,
                           .what = "",
                           .members = members,
                           .count = count,
                           .has_each = reading->has_each};
    *known = root;
    return root;
}

/* ---- paths ---- */

struct search {
    struct arena *arena;
    struct odd_name *odd;
};

static void add_odd(struct search *s, const struct node *n, const struct shape *of)
{
    struct odd_name *o = arena_alloc(s->arena, sizeof *o);

    *o = (struct odd_name){n->name, n->at, of, s->odd};
    s->odd = o;
}

static const struct shape *shape_of_node(struct search *s, const struct node *n,
                                         const struct shape *base);

/* The shape of the value of `n`, evaluated on a value of shape `base`. */
static inline const struct shape *shape_at(struct search *s, const struct node *n,
                                           const struct shape *base)
{
    if (n->kind == NODE_IDENTITY || base->kind == SHAPE_ANY)
        return base;
    return n->kind == NODE_LITERAL ? &any : shape_of_node(s, n, base);
}

static const struct shape *shape_of_field(struct search *s, const struct node *n,
                                          const struct shape *base)
{
    const struct shape *of = shape_at(s, n->a, base);

    if (of->kind == SHAPE_ANY)
        return of;
    if (of->kind == SHAPE_STEPS) {
        /* An unknown step in .steps.NAME is reported as a mistake by reader/expressions.c. */
        const uint16_t *index = map_get(of->names, n->name);
        if (n->a->kind == NODE_IDENTITY && !index)
            add_odd(s, n, of);
        return index && of->is_each[*index] ? &each : &step;
    }
    for (size_t i = 0; i < of->count; i++)
        if (slice_eq(of->members[i].name, n->name))
            return of->members[i].shape;
    if (of->kind != SHAPE_PLAIN || !n->is_optional)
        add_odd(s, n, of);
    return &any;
}

/* Most functions evaluate their arguments on their input; of the others, all but these do so on its
 * members. */
static bool is_given_the_same(const struct function *f)
{
    static const char *const streams[] = {"select", "isempty", "first", "last", "limit"};

    if (f->of_values || f->generate)
        return true;
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        if (slice_is(f->name, streams[i]))
            return true;
    return false;
}

static void check_list(struct search *s, const struct node *list, const struct shape *base)
{
    for (const struct node *one = list; one; one = one->next)
        (void)shape_at(s, one, base);
}

static const struct shape *shape_of_call(struct search *s, const struct node *n,
                                         const struct shape *base)
{
    check_list(s, n->list, is_given_the_same(n->function) ? base : &any);
    return slice_is(n->function->name, "select") ? base : &any;
}

static const struct shape *shape_of_node(struct search *s, const struct node *n,
                                         const struct shape *base)
{
    switch (n->kind) {
    case NODE_IDENTITY:
    case NODE_LITERAL:
        UNREACHABLE(); /* handled by shape_at() */
    case NODE_FIELD:
        return shape_of_field(s, n, base);
    case NODE_PIPE:
        return shape_at(s, n->b, shape_at(s, n->a, base));
    case NODE_TRY:
        return shape_at(s, n->a, base);
    case NODE_CALL:
        return shape_of_call(s, n, base);
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
        if (n->a)
            (void)shape_at(s, n->a, base);
        if (n->b)
            (void)shape_at(s, n->b, base);
        if (n->c)
            (void)shape_at(s, n->c, base);
        check_list(s, n->list, base);
        return &any;
    }
    UNREACHABLE();
}

struct odd_name *shape_odd_names(const struct expression *x, const struct shape *root,
                                 struct arena *a)
{
    struct search s = {a, NULL};

    if (root)
        (void)shape_at(&s, x->root, root);
    return s.odd;
}

struct odd_name *shape_odd_in_scope(const struct expression *x, const struct references *refs,
                                    struct arena *a)
{
    return refs->scope && refs->may_be_odd ? shape_odd_names(x, refs->scope, a) : NULL;
}

bool shape_has_items(const struct shape *scope)
{
    return scope && scope->has_each;
}

bool shape_of_input_has(const struct shape *scope, const struct slice *path, size_t count)
{
    const struct shape *input = scope ? scope->members[0].shape : &any;

    if (input->kind == SHAPE_ANY)
        return true;
    for (size_t i = 0; i < input->count; i++)
        if (slice_eq(input->members[i].name, path[0]))
            return count == 1 || input->members[i].shape->kind == SHAPE_ANY;
    return false;
}

/* ---- warnings ---- */

static void list_members(struct buf *b, const struct shape *of)
{
    if (of->count == 0)
        buf_str(b, "no name");
    for (size_t i = 0; i < of->count; i++)
        buf_fmt(b, "%s.%.*s",
                i == 0               ? ""
                : i + 1 == of->count ? " or "
                                     : ", ",
                SLICE_ARG(of->members[i].name));
    buf_str(b, of->what);
}

static void expect(struct buf *b, const struct odd_name *odd)
{
    const struct shape *of = odd->of;

    if (of->kind == SHAPE_PLAIN) {
        buf_fmt(b, "nothing behind %s", of->what);
        return;
    }
    if (of->kind == SHAPE_STEPS) {
        buf_str(b, "the name of a step");
        return;
    }
    if (of->kind == SHAPE_FORWARD && slice_is(odd->name, "error")) {
        buf_str(b, ".task.error in the input of an undo or in output: no step runs after it");
        return;
    }
    for (size_t i = 0; i < of->count; i++)
        if (name_is_near(odd->name, of->members[i].name)) {
            buf_fmt(b, "did you mean .%.*s?", SLICE_ARG(of->members[i].name));
            return;
        }
    list_members(b, of);
}

void shape_warn(struct reader *r, const struct path *path, size_t offset,
                const struct odd_name *odd)
{
    CLEANUP(buf_fini) struct buf found = {0};
    CLEANUP(buf_fini) struct buf expected = {0};

    buf_fmt(&found, ".%.*s, which %s", SLICE_ARG(slice_cut(odd->name, 60)),
            odd->of->kind == SHAPE_PLAIN ? "is never there" : "is always null");
    expect(&expected, odd);
    warn_at(r, path, offset, buf_view(&found), "%s", expected.ptr);
}
