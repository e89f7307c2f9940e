/* Evaluates inputs, conditions and outputs: builds the values that the expressions refer to, and no
 * others. Reading recorded values is paid from the same budget. */
#include <stdio.h>

#include "base/when.h"
#include "definition/definition.h"
#include "definition/expression/recorded.h"
#include "definition/list.h"
#include "definition/template/template.h"

struct builder {
    const struct scope *scope;
    int step; /* whose expression it is, or which slot's; -1: of the workflow */
    struct arena *arena;
    struct machine machine; /* pays for reading */
    struct error *error;
    bool has_failed;
};

enum { COPIED_PER_STEP = 64 /* bytes */, MOMENT_MAX = 100 };

static const struct wanted all_of_it = {.whole = true};

static struct json *object_new(struct builder *b)
{
    struct json *j = arena_alloc(b->arena, sizeof *j);

    j->type = JSON_OBJECT;
    return j;
}

/* Prepends. */
static void add(struct json *object, struct slice key, struct json *member)
{
    member->key = key;
    member->next = object->child;
    object->child = member;
    object->count++;
}

/* A recorded value: it can be read unless the store is damaged. */
static struct json *value_of(struct builder *b, struct slice text, const struct wanted *w,
                             const char *what)
{
    bool is_corrupt = false;

    if (b->has_failed)
        return object_new(b);
    struct json *j = recorded_read(&b->machine, text.ptr ? text : SLICE("null"), w, &is_corrupt);
    if (j)
        return j;
    b->has_failed = true;
    if (is_corrupt)
        (void)error_set(b->error, ERR_CORRUPT, "%s is not JSON", what);
    else
        (void)error_set(b->error, ERR_INVALID, "reading %s: %s", what, b->machine.what);
    return object_new(b);
}

/* An array of outputs that nobody reads into memory: struct scope. */
static bool is_too_big(struct slice output)
{
    return output.ptr && output.len == 0;
}

static struct json *output_of(struct builder *b, struct slice output, const struct wanted *w)
{
    if (!is_too_big(output) || b->has_failed)
        return value_of(b, output, w, "the output of a step");
    b->has_failed = true;
    (void)error_set(b->error, ERR_TOO_BIG, "the outputs of the items of a step are too long");
    return object_new(b);
}

/* NONE becomes null. */
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

static struct json *number_new(struct builder *b, uint32_t n)
{
    char text[12];
    struct json *j = arena_alloc(b->arena, sizeof *j);

    (void)snprintf(text, sizeof text, "%" PRIu32, n);
    j->type = JSON_NUMBER;
    j->text = arena_copy(b->arena, slice_of(text));
    return j;
}

/* ---- items ---- */

/* Their failures so far. */
static struct json *failed_of(struct builder *b, uint16_t i)
{
    const struct scope *s = b->scope;
    const struct items *in = s->unit ? s->unit(s->arg, i)->items : NULL;

    return number_new(b, in ? in->failed + in->tally.failed : 0);
}

static struct json *errors_of(struct builder *b, uint16_t i)
{
    const struct scope *s = b->scope;

    return value_of(b, s->item_errors ? s->item_errors(s->arg, i) : SLICE_NONE, &all_of_it,
                    "the errors of items");
}

/* The item in the slot, or the one that gets it next. */
static uint32_t item_number(const struct scope *s, int slot)
{
    const struct step *item = s->unit(s->arg, slot);
    const struct step *step = s->unit(s->arg, unit_step(&s->definition->workflow, (uint16_t)slot));

    return item->slot == SLOT_FREE ? step->items->begun : item->item;
}

/* Its text, in the part of the list that has it. NONE: the part is damaged, or cannot be paid. */
static struct slice item_text(struct builder *b)
{
    const struct scope *s = b->scope;
    uint16_t at = unit_step(&s->definition->workflow, (uint16_t)b->step);
    const struct step *step = s->unit(s->arg, at);
    struct item_mark *mark = s->item_mark ? s->item_mark(s->arg, at) : NULL;
    uint32_t n = item_number(s, b->step);
    uint32_t i = 0;
    struct slice name;
    struct slice value = SLICE_NONE;

    ASSERT(n < step->items->list.count);
    struct slice part = step->items->list.parts[n / ITEMS_OF_PART].json;
    struct recorded_walk w = {.machine = &b->machine, .rest = part};
    if (mark && mark->part == part.ptr && mark->next <= n % ITEMS_OF_PART) {
        i = mark->next;
        w.rest = mark->rest;
        w.has_begun = true;
    }
    for (; i <= n % ITEMS_OF_PART; i++)
        if (!recorded_next(&w, &name, &value))
            return SLICE("");
    if (mark)
        *mark = (struct item_mark){part.ptr, i, w.rest};
    return value;
}

static struct json *item_of(struct builder *b, const struct needs *n)
{
    return value_of(b, item_text(b), &n->of_item, "the item");
}

/* ---- steps ---- */

static void add_step(struct builder *b, struct json *steps, const struct needed_step *n)
{
    const struct scope *s = b->scope;
    struct json *step = object_new(b);
    uint16_t i = n->step;
    uint8_t members = n->members;
    bool each = s->definition->workflow.steps[i].kind == KIND_EACH;

    if (each && members & MEMBER_ERRORS)
        add(step, SLICE("errors"), errors_of(b, i));
    if (each && members & MEMBER_FAILED)
        add(step, SLICE("failed"), failed_of(b, i));
    if (members & MEMBER_ERROR)
        add(step, SLICE("error"), error_of(b, i));
    if (members & MEMBER_STATE)
        add(step, SLICE("state"), state_of(b, i));
    if (members & MEMBER_OUTPUT)
        add(step, SLICE("output"), output_of(b, s->step_output(s->arg, i), &n->output));
    if (members & MEMBER_INPUT)
        add(step, SLICE("input"),
            value_of(b, s->step_input(s->arg, i), &n->input, "the input of a step"));
    add(steps, s->definition->workflow.steps[i].name, step);
}

static struct slice task_of(struct builder *b)
{
    const struct scope *s = b->scope;

    return s->task ? s->task(s->arg, b->arena) : SLICE("{}");
}

static struct json *signals_of(struct builder *b)
{
    const struct definition *d = b->scope->definition;
    struct json *all = object_new(b);

    for (size_t i = d->signal_count; i-- > 0;)
        add(all, d->signals[i],
            text_new(b, b->scope->signal_url
                            ? b->scope->signal_url(b->scope->arg, d->signals[i], b->arena)
                            : SLICE_NONE));
    return all;
}

static struct json *task_read(struct builder *b, const struct needs *n)
{
    struct json *task = value_of(b, task_of(b), &all_of_it, "the task");

    if (n->signals && b->scope->definition->signal_count > 0)
        add(task, SLICE("signals"), signals_of(b));
    return task;
}

static struct json *round_of(struct builder *b)
{
    const struct scope *s = b->scope;

    return number_new(b, s->step_round ? s->step_round(s->arg, b->step) : 1);
}

static struct json *read_root(struct builder *b, const struct needs *n)
{
    struct json *root = object_new(b);
    struct json *steps = object_new(b);

    for (uint16_t i = b->scope->definition->workflow.step_count; n->all_steps && i-- > 0;) {
        const struct needed_step all = {i, MEMBERS_ALL, all_of_it, all_of_it};
        add_step(b, steps, &all);
    }
    for (uint16_t i = 0; !n->all_steps && i < n->count; i++)
        add_step(b, steps, &n->steps[i]);
    if (n->index)
        add(root, SLICE("index"), number_new(b, item_number(b->scope, b->step)));
    if (n->item)
        add(root, SLICE("item"), item_of(b, n));
    if (n->round)
        add(root, SLICE("round"), round_of(b));
    if (n->output)
        add(root, SLICE("output"),
            value_of(b, b->scope->step_output(b->scope->arg, b->step), &n->of_output,
                     "the output of the step"));
    if (n->task)
        add(root, SLICE("task"), task_read(b, n));
    add(root, SLICE("steps"), steps);
    if (n->input)
        add(root, SLICE("input"),
            value_of(b, b->scope->input, &n->of_input, "the input of the task"));
    return root;
}

/* NULL: failed, see *e. */
static const struct json *root_of(const struct scope *s, int step, const struct needs *n,
                                  struct arena *a, struct budget *budget, struct error *e)
{
    struct builder b = {s, step, a, machine_begin(a, budget), e, false};
    const struct json *root = read_root(&b, n);

    machine_end(&b.machine, budget);
    return b.has_failed ? NULL : root;
}

/* Reports the cost to the caller; copying the result is paid for as well. */
static void report_spent(const struct scope *s, uint32_t steps, size_t len)
{
    if (s->spent)
        *s->spent += steps + len / COPIED_PER_STEP;
}

static enum err evaluate(const struct scope *s, int step, struct template *t, struct arena *a,
                         struct slice *ret, struct template_place *ret_place, struct error *e)
{
    struct budget budget = {TEMPLATE_BYTES_MAX, TEMPLATE_STEPS_MAX, false};
    const struct needs *n = template_needs(t);

    if (template_is_output(t)) { /* fast path for the most frequent template: the output is not
                                    parsed and written again */
        struct slice output = s->step_output(s->arg, n->steps[0].step);
        if (is_too_big(output) || output.len > TEMPLATE_BYTES_MAX)
            return error_set(e, ERR_TOO_BIG,
                             "the outputs of the items of step \"%.*s\" are too long",
                             SLICE_ARG(s->definition->workflow.steps[n->steps[0].step].name));
        *ret = output.ptr ? output : SLICE("null");
        report_spent(s, 1, ret->len);
        return ERR_OK;
    }
    const struct json *root = root_of(s, step, n, a, &budget, e);
    *ret_place = (struct template_place){""};
    *ret = SLICE_NONE;
    enum err err = root ? template_run(t, root, a, &budget, ret, ret_place, e) : e->code;
    report_spent(s, TEMPLATE_STEPS_MAX - budget.steps, ret->len);
    return err;
}

/* An item is called pack.3. */
static struct slice unit_name(const struct scope *s, int step, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct workflow *w = &s->definition->workflow;

    ASSERT(step >= 0);
    ASSERT(step < w->step_count + w->slot_count);
    if (!unit_is_slot(w, step))
        return w->steps[step].name;
    buf_fmt(&b, "%.*s.%" PRIu32, SLICE_ARG(w->steps[step].name), item_number(s, step));
    return arena_copy(a, buf_view(&b));
}

/* "steps[2]", "on_undo[0]" */
static const char *place_of_step(const struct scope *s, int step, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct workflow *w = &s->definition->workflow;
    int at = 0;

    step = unit_step(w, (uint16_t)step);
    for (int i = 0; i < step; i++)
        at += w->steps[i].on_undo == w->steps[step].on_undo;
    buf_fmt(&b, "%s[%d]", w->steps[step].on_undo ? "on_undo" : "steps", at);
    return arena_copy(a, buf_view(&b)).ptr;
}

enum err definition_step_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e)
{
    struct template *t = s->definition->steps[step].input;
    struct template_place place;

    if (!t) {
        *ret = s->input.ptr ? s->input : SLICE("null");
        report_spent(s, 1, 0);
        return ERR_OK;
    }
    if (evaluate(s, step, t, a, ret, &place, e) != ERR_OK)
        return error_wrap(e, "%s.%s%s of step \"%.*s\"", place_of_step(s, step, a),
                          s->definition->workflow.steps[step].kind == KIND_TASK ? "task.input"
                                                                                : "input",
                          place.path, SLICE_ARG(unit_name(s, step, a)));
    return ERR_OK;
}

enum err definition_undo_input(const struct scope *s, int step, struct arena *a, struct slice *ret,
                               struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct template *t = s->definition->steps[step].undo_input;
    struct template_place place;

    if (t) {
        if (evaluate(s, step, t, a, ret, &place, e) != ERR_OK)
            return error_wrap(e, "%s.undo.input%s of step \"%.*s\"", place_of_step(s, step, a),
                              place.path, SLICE_ARG(unit_name(s, step, a)));
        return ERR_OK;
    }
    json_open(&b, '{');
    json_member_raw(&b, "input", s->step_input(s->arg, step));
    json_member_raw(&b, "output", s->step_output(s->arg, step));
    json_close(&b, '}');
    *ret = arena_copy(a, buf_view(&b));
    report_spent(s, 1, 2 * ret->len);
    return ERR_OK;
}

/* Says which expression of the step failed. `what` is its key. */
static enum err wrap(const struct scope *s, int step, const struct expression *x, const char *what,
                     struct arena *a, struct error *e)
{
    return error_wrap(e, "%s.%s of step \"%.*s\": %.*s%s", place_of_step(s, step, a), what,
                      SLICE_ARG(unit_name(s, step, a)), SLICE_ARG(slice_cut(x->text, 80)),
                      x->text.len > 80 ? "..." : "");
}

static enum err run(const struct scope *s, int step, const struct expression *x, struct arena *a,
                    const struct json **ret, struct error *e)
{
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
    const struct json *root = root_of(s, step, &x->needs, a, &budget, e);
    enum err err = root ? machine_run(x, root, a, &budget, ret, e) : e->code;

    report_spent(s, EXPRESSION_STEPS_MAX - budget.steps, 0);
    return err;
}

enum err definition_condition(const struct scope *s, int step, struct arena *a, bool *ret,
                              struct error *e)
{
    const struct expression *x = s->definition->steps[step].condition;
    const struct json *j = NULL;

    *ret = true;
    if (!x)
        return ERR_OK;
    if (run(s, step, x, a, &j, e) != ERR_OK)
        return wrap(s, step, x, "if", a, e);
    *ret = json_truth(j);
    return ERR_OK;
}

enum err definition_items(const struct scope *s, int step, struct arena *a, struct item_list *ret,
                          const char **ret_code, struct error *e)
{
    struct template_place place = {""};
    struct slice json = SLICE_NONE;
    uint32_t spent = 0;

    ASSERT(s->definition->steps[step].items);
    *ret_code = "expression";
    enum err err = evaluate(s, step, s->definition->steps[step].items, a, &json, &place, e);
    if (err == ERR_OK) {
        *ret_code = "list";
        err =
            list_read(json, s->definition->workflow.steps[step].each.max_items, a, ret, &spent, e);
        report_spent(s, spent, json.len);
    }
    if (err != ERR_OK)
        return error_wrap(e, "%s.for_each%s of step \"%.*s\"", place_of_step(s, step, a),
                          place.path, SLICE_ARG(unit_name(s, step, a)));
    return ERR_OK;
}

enum err definition_until(const struct scope *s, int step, struct arena *a, bool *ret,
                          struct error *e)
{
    const struct expression *x = s->definition->steps[step].until;
    const struct json *j = NULL;

    ASSERT(x);
    enum err err = run(s, step, x, a, &j, e);
    if (err == ERR_OK && j->type != JSON_TRUE && j->type != JSON_FALSE)
        err = error_set(e, ERR_INVALID, "it gave %s, expected true or false",
                        json_type_text(j->type));
    if (err != ERR_OK)
        return wrap(s, step, x, "repeat.until", a, e);
    *ret = j->type == JSON_TRUE;
    return ERR_OK;
}

/* Reads what the expression gave. */
static enum err read_moment(struct slice json, int64_t plus_ms, struct arena *a, int64_t *ret_at,
                            struct error *e)
{
    struct json *j = NULL;
    int64_t last = 0;
    bool is_ok = time_parse(SLICE("9999-12-31T23:59:59.999Z"), &last);

    ASSERT(is_ok);
    /* What is no text, or no time, may be large. */
    enum err err =
        json.len > MOMENT_MAX || json.ptr[0] != '"' ? ERR_INVALID : json_parse(a, json, &j, NULL);
    if (err != ERR_OK || j->type != JSON_STRING || !time_parse(j->text, ret_at))
        return error_set(e, ERR_INVALID,
                         "found %.*s, expected a time from 1970 to 9999 with Z or "
                         "an offset: 2027-01-31T10:00:00Z",
                         SLICE_ARG(slice_cut(json, 80)));
    *ret_at = max_i64(*ret_at + plus_ms, 1);
    if (*ret_at > last)
        return error_set(e, ERR_INVALID, "found %.*s, which with `plus` is after the year 9999",
                         SLICE_ARG(slice_cut(json, 80)));
    return ERR_OK;
}

enum err definition_wait_until(const struct scope *s, int step, struct arena *a, int64_t *ret_at,
                               struct error *e)
{
    const struct step_templates *t = &s->definition->steps[step];
    struct template_place place;
    struct slice json;

    ASSERT(t->wait_until);
    enum err err = evaluate(s, step, t->wait_until, a, &json, &place, e);
    if (err == ERR_OK)
        err = read_moment(json, t->wait_plus_ms, a, ret_at, e);
    if (err != ERR_OK)
        return error_wrap(e, "%s.wait.until of step \"%.*s\"", place_of_step(s, step, a),
                          SLICE_ARG(unit_name(s, step, a)));
    return ERR_OK;
}

enum err definition_question(const struct scope *s, int step, struct arena *a, struct slice *ret,
                             struct error *e)
{
    struct template_place place;
    struct template *t = s->definition->steps[step].question;

    ASSERT(t);
    enum err err = evaluate(s, step, t, a, ret, &place, e);
    if (err == ERR_OK && (ret->ptr[0] != '"' || ret->len > QUESTION_MAX))
        err = error_set(e, ERR_INVALID, "found %.*s, expected a text of at most %d bytes",
                        SLICE_ARG(slice_cut(*ret, 80)), QUESTION_MAX);
    if (err != ERR_OK)
        return error_wrap(e, "%s.approve.question of step \"%.*s\"", place_of_step(s, step, a),
                          SLICE_ARG(unit_name(s, step, a)));
    return ERR_OK;
}

bool definition_match(const struct scope *s, int step, struct slice name, struct slice data,
                      struct arena *a)
{
    const struct expression *x = s->definition->steps[step].match;
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
    struct error e = {0};
    const struct json *j = NULL;

    if (!x)
        return true;
    struct builder b = {s, step, a, machine_begin(a, &budget), &e, false};
    struct json *root = read_root(&b, &x->needs);
    add(root, SLICE("name"), text_new(&b, name));
    add(root, SLICE("data"), value_of(&b, data, &all_of_it, "the value of a signal"));
    machine_end(&b.machine, &budget);
    bool ok = !b.has_failed && machine_run(x, root, a, &budget, &j, &e) == ERR_OK;
    report_spent(s, EXPRESSION_STEPS_MAX - budget.steps, 0);
    return ok && json_truth(j);
}

/* The text of the key: of a number or a boolean it is what JSON writes. */
static enum err read_key(struct slice json, struct arena *a, struct slice *ret, struct error *e)
{
    struct json *j = NULL;
    enum err err = json.len > 6 * LOCK_KEY_MAX + 2 ? ERR_INVALID : json_parse(a, json, &j, NULL);
    bool is_scalar = err == ERR_OK
                     && (j->type == JSON_STRING || j->type == JSON_NUMBER || j->type == JSON_TRUE
                         || j->type == JSON_FALSE);

    *ret = !is_scalar ? SLICE_NONE : j->type == JSON_STRING ? j->text : j->raw;
    bool is_ok = is_scalar && ret->len > 0 && ret->len <= LOCK_KEY_MAX;
    for (size_t i = 0; is_ok && i < ret->len; i++)
        is_ok = (unsigned char)ret->ptr[i] >= ' ';
    if (is_ok)
        return ERR_OK;
    return error_set(e, ERR_INVALID,
                     "found %.*s%s, expected a text of 1 to %d bytes without control characters, "
                     "a number or a boolean",
                     SLICE_ARG(slice_cut(json, 80)), json.len > 80 ? "..." : "", LOCK_KEY_MAX);
}

enum err definition_lock(const struct scope *s, struct arena *a, struct slice *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct lock_rule *rule = &s->definition->workflow.lock;
    struct template_place place;
    struct slice json;
    struct slice key = SLICE_NONE;

    ASSERT(rule->name.ptr);
    enum err err = evaluate(s, -1, s->definition->lock_key, a, &json, &place, e);
    if (err == ERR_OK)
        err = read_key(json, a, &key, e);
    if (err != ERR_OK)
        return error_wrap(e, "lock.key of workflow \"%.*s\"",
                          SLICE_ARG(s->definition->workflow.name));
    buf_slice(&b, rule->name);
    buf_byte(&b, '/');
    buf_slice(&b, key);
    *ret = arena_copy(a, buf_view(&b));
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
    if (evaluate(s, -1, s->definition->output, a, ret, &place, e) != ERR_OK)
        return error_wrap(e, "output%s of the workflow", place.path);
    return ERR_OK;
}

/* ---- what has to be fetched ---- */

static void need_items(struct items_needed *ret, const struct needs *n, uint16_t each)
{
    for (uint16_t i = 0; i < n->count; i++)
        if (n->steps[i].step == each) {
            ret->output |= (n->steps[i].members & MEMBER_OUTPUT) != 0;
            ret->errors |= (n->steps[i].members & MEMBER_ERRORS) != 0;
        }
    ret->output |= n->all_steps;
    ret->errors |= n->all_steps;
}

static void template_needs_items(struct items_needed *ret, struct template *t, uint16_t each)
{
    if (t)
        need_items(ret, template_needs(t), each);
}

static void expression_needs_items(struct items_needed *ret, const struct expression *x,
                                   uint16_t each)
{
    if (x)
        need_items(ret, &x->needs, each);
}

struct items_needed definition_needs_items(const struct definition *d, int step,
                                           enum direction direction, uint16_t each)
{
    struct items_needed n = {0};
    const struct step_templates *t = step < 0 ? NULL : &d->steps[step];

    ASSERT(d->workflow.steps[each].kind == KIND_EACH);
    if (!t) {
        template_needs_items(&n, d->output, each);
    } else if (direction == DIRECTION_UNDO) {
        template_needs_items(&n, t->undo_input, each);
    } else {
        expression_needs_items(&n, t->condition, each);
        template_needs_items(&n, t->items, each);
        template_needs_items(&n, t->wait_until, each);
        template_needs_items(&n, t->question, each);
        expression_needs_items(&n, t->match, each);
        template_needs_items(&n, t->input, each);
        expression_needs_items(&n, t->until, each);
    }
    return n;
}

bool definition_needs_item(const struct definition *d, int slot, enum direction direction)
{
    const struct step_templates *t = &d->steps[slot];

    ASSERT(unit_is_slot(&d->workflow, slot));
    if (direction == DIRECTION_UNDO)
        return t->undo_input && template_needs(t->undo_input)->item;
    return (t->input && template_needs(t->input)->item) || (t->until && t->until->needs.item);
}
