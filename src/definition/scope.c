#include "definition/definition.h"
#include "definition/template.h"

/* Puts together what expressions see, as far as one of them looks, and evaluates it. */

struct builder {
    const struct scope *scope;
    struct arena *arena;
    struct error *error;
    bool has_failed;
};

static struct json *object_new(struct builder *b)
{
    struct json *j = arena_alloc(b->arena, sizeof *j);

    j->type = JSON_OBJECT;
    return j;
}

/* In front of the others. */
static void add(struct json *object, struct slice key, struct json *member)
{
    member->key = key;
    member->next = object->child;
    object->child = member;
    object->count++;
}

/* A value that we recorded ourselves: it parses unless the store is broken. */
static struct json *parse(struct builder *b, struct slice text, const char *what)
{
    struct json *j = NULL;
    struct json_fault fault = {0};

    if (!text.ptr)
        text = SLICE("null");
    if (json_parse(b->arena, text, &j, &fault) == ERR_OK)
        return j;
    b->has_failed = true;
    (void)error_set(b->error, ERR_CORRUPT, "%s: %s", what, fault.what);
    return object_new(b);
}

/* NONE: null. */
static struct json *text_new(struct builder *b, struct slice text)
{
    struct json *j = arena_alloc(b->arena, sizeof *j);

    j->type = text.ptr ? JSON_STRING : JSON_NULL;
    j->text = arena_copy(b->arena, text);
    return j;
}

static struct json *error_new(struct builder *b, struct fault_note error)
{
    if (!error.code.ptr)
        return text_new(b, SLICE_NONE);
    struct json *j = object_new(b);
    add(j, SLICE("message"), text_new(b, error.message));
    add(j, SLICE("code"), text_new(b, error.code));
    return j;
}

static struct json *state_of(struct builder *b, uint16_t i)
{
    const struct scope *s = b->scope;

    return text_new(b, s->step_state ? slice_of(step_state_text(s->step_state(s->arg, i)))
                                     : SLICE_NONE);
}

static struct json *error_of(struct builder *b, uint16_t i)
{
    const struct scope *s = b->scope;

    return error_new(b, s->step_error ? s->step_error(s->arg, i) : (struct fault_note){0});
}

static void add_step(struct builder *b, struct json *steps, uint16_t i, uint8_t members)
{
    const struct scope *s = b->scope;
    struct json *step = object_new(b);

    if (members & MEMBER_ERROR)
        add(step, SLICE("error"), error_of(b, i));
    if (members & MEMBER_STATE)
        add(step, SLICE("state"), state_of(b, i));
    if (members & MEMBER_OUTPUT)
        add(step, SLICE("output"), parse(b, s->step_output(s->arg, i), "output of a step"));
    if (members & MEMBER_INPUT)
        add(step, SLICE("input"), parse(b, s->step_input(s->arg, i), "input of a step"));
    add(steps, s->definition->workflow.steps[i].name, step);
}

static struct slice task_of(struct builder *b)
{
    const struct scope *s = b->scope;

    return s->task ? s->task(s->arg, b->arena) : SLICE("{}");
}

static struct json *root_of(struct builder *b, const struct needs *n)
{
    struct json *root = object_new(b);
    struct json *steps = object_new(b);

    for (uint16_t i = b->scope->definition->workflow.step_count; n->all_steps && i-- > 0;)
        add_step(b, steps, i, MEMBERS_ALL);
    for (uint16_t i = 0; !n->all_steps && i < n->count; i++)
        add_step(b, steps, n->steps[i].step, n->steps[i].members);
    if (n->task)
        add(root, SLICE("task"), parse(b, task_of(b), "task"));
    add(root, SLICE("steps"), steps);
    if (n->input)
        add(root, SLICE("input"), parse(b, b->scope->input, "input of the task"));
    return root;
}

static enum err evaluate(const struct scope *s, struct template *t, struct arena *a,
                         struct slice *ret, struct template_place *ret_place, struct error *e)
{
    struct builder b = {s, a, e, false};
    const struct needs *n = template_needs(t);

    if (template_is_output(t)) { /* the commonest of all: it is not read to be written again */
        struct slice output = s->step_output(s->arg, n->steps[0].step);
        *ret = output.ptr ? output : SLICE("null");
        return ERR_OK;
    }
    struct json *root = root_of(&b, n);
    *ret_place = (struct template_place){""};
    if (b.has_failed)
        return e->code;
    return template_run(t, root, a, ret, ret_place, e);
}

static struct slice step_name(const struct scope *s, int step)
{
    ASSERT(step >= 0);
    ASSERT(step < s->definition->workflow.step_count);
    return s->definition->workflow.steps[step].name;
}

/* "steps[2]", "on_undo[0]" */
static const char *place_of_step(const struct scope *s, int step, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct workflow *w = &s->definition->workflow;
    int at = 0;

    for (int i = 0; i < step; i++)
        at += w->steps[i].on_undo == w->steps[step].on_undo;
    buf_fmt(&b, "%s[%d]", w->steps[step].on_undo ? "on_undo" : "steps", at);
    return arena_copy(a, buf_view(&b)).ptr;
}

enum err definition_step_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e)
{
    struct slice name = step_name(s, step);
    struct template *t = s->definition->steps[step].input;
    struct template_place place;

    if (!t) {
        *ret = s->input.ptr ? s->input : SLICE("null");
        return ERR_OK;
    }
    if (evaluate(s, t, a, ret, &place, e) != ERR_OK)
        return error_wrap(e, "%s.input%s of step \"%.*s\"", place_of_step(s, step, a), place.path,
                          SLICE_ARG(name));
    return ERR_OK;
}

enum err definition_undo_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice name = step_name(s, step);
    struct template *t = s->definition->steps[step].undo_input;
    struct template_place place;

    if (t) {
        if (evaluate(s, t, a, ret, &place, e) != ERR_OK)
            return error_wrap(e, "steps[%d].undo.input%s of step \"%.*s\"", step, place.path,
                              SLICE_ARG(name));
        return ERR_OK;
    }
    json_open(&b, '{');
    json_key(&b, "input");
    json_raw(&b, s->step_input(s->arg, step));
    json_key(&b, "output");
    json_raw(&b, s->step_output(s->arg, step));
    json_close(&b, '}');
    *ret = arena_copy(a, buf_view(&b));
    return ERR_OK;
}

enum err definition_condition(const struct scope *s, int step, struct arena *a, bool *ret,
                              struct error *e)
{
    struct slice name = step_name(s, step);
    const struct expression *x = s->definition->steps[step].condition;
    struct builder b = {s, a, e, false};
    const struct json *j = NULL;

    if (!x) {
        *ret = true;
        return ERR_OK;
    }
    struct json *root = root_of(&b, &x->needs);
    if (b.has_failed || expression_eval(x, root, a, &j, e) != ERR_OK)
        return error_wrap(e, "%s.if of step \"%.*s\": %.*s%s", place_of_step(s, step, a),
                          SLICE_ARG(name), SLICE_ARG(slice_cut(x->text, 80)),
                          x->text.len > 80 ? "..." : "");
    *ret = json_truth(j);
    return ERR_OK;
}

enum err definition_output(const struct scope *s, struct arena *a, struct slice *ret,
                           struct error *e)
{
    struct template_place place;

    if (!s->definition->output) {
        *ret = SLICE_NONE;
        return ERR_OK;
    }
    if (evaluate(s, s->definition->output, a, ret, &place, e) != ERR_OK)
        return error_wrap(e, "output%s of the workflow", place.path);
    return ERR_OK;
}
