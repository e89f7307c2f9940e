/* Evaluates a task's expressions: conditions, inputs, output. Changes nothing but the task's
 * values; decisions.c decides by the results, tasks/effort.c limits them. */

#include "scheduler/internal.h"

#include "definition/family.h"

/* The output of a step as far as it is known: its own, or that of a late result, which an undo may
 * need. */
struct slice step_known_output(const struct step *s)
{
    if (s->output.json.ptr)
        return s->output.json;
    for (uint16_t i = s->attempt_count; i-- > 0;)
        if (s->attempts[i].direction == DIRECTION_FORWARD && s->attempts[i].outcome == OUTCOME_LATE
            && s->attempts[i].output.json.ptr)
            return s->attempts[i].output.json;
    return SLICE_NONE;
}

/* What expressions see. */
struct view {
    struct scheduler *scheduler;
    struct live *live;
};

static struct slice scope_step_input(void *arg, int step)
{
    const struct view *v = arg;

    return v->live->task.steps[step].input.json;
}

static struct slice scope_step_output(void *arg, int step)
{
    const struct view *v = arg;

    return step_known_output(&v->live->task.steps[step]);
}

static enum step_state scope_step_state(void *arg, int step)
{
    const struct view *v = arg;

    return v->live->task.steps[step].state;
}

static struct fault_note scope_step_error(void *arg, int step)
{
    const struct view *v = arg;

    return step_forward_error(&v->live->task.steps[step]);
}

static void put_text(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    if (text.ptr)
        json_string(b, text);
    else
        json_null(b);
}

/* Only expressions that are evaluated after everything forward has stopped see the first failure:
 * before that, whether a parallel step has failed is a matter of timing. */
static void put_first_failure(struct buf *b, const struct live *l)
{
    const struct workflow *w = &l->definition->workflow;
    const struct cause c = task_first_failure(w, &l->task);

    if (l->task.direction == DIRECTION_FORWARD && l->task.state != TASK_PROCESSED)
        return;
    json_key(b, "error");
    if (!c.error.code.ptr) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    put_text(b, "step", c.step >= 0 ? w->steps[c.step].name : SLICE_NONE);
    put_text(b, "code", c.error.code);
    put_text(b, "message", c.error.message);
    json_close(b, '}');
}

static const struct step *scope_unit(void *arg, int step)
{
    const struct view *v = arg;

    return &v->live->task.steps[step];
}

static struct slice scope_item_errors(void *arg, int step)
{
    const struct view *v = arg;

    return v->live->items[step].errors;
}

static struct item_mark *scope_item_mark(void *arg, int step)
{
    const struct view *v = arg;

    return &v->live->items[step].mark;
}

static uint32_t scope_step_round(void *arg, int step)
{
    const struct view *v = arg;

    return max_u32(v->live->task.steps[step].round, 1);
}

/* The URL of whoever calls back. NONE: it is not known how this node is reached. */
static struct slice scope_signal_url(void *arg, struct slice name, struct arena *a)
{
    CLEANUP(buf_fini) struct buf url = {0};
    const struct view *v = arg;
    const struct scheduler *s = v->scheduler;

    if (!s->url.ptr)
        return SLICE_NONE;
    buf_slice(&url, s->url);
    buf_str(&url, "/v1/signals/");
    signal_token_write(s->key, v->live->task.id, name, &url); /* it needs no escapes */
    return arena_copy(a, buf_view(&url));
}

static struct slice scope_task(void *arg, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct view *v = arg;
    const struct live *l = v->live;

    json_open(&b, '{');
    json_key(&b, "id");
    json_string(&b, l->task.id);
    json_key(&b, "workflow");
    json_string(&b, l->definition->workflow.name);
    json_key(&b, "version");
    json_number(&b, l->definition->workflow.version);
    json_key(&b, "submitted_at");
    json_time(&b, l->task.submitted_at);
    put_first_failure(&b, l);
    json_close(&b, '}');
    return arena_copy(a, buf_view(&b));
}

static struct scope scope_of(struct view *v)
{
    return (struct scope){
        .definition = v->live->definition,
        .input = v->live->task.input.json,
        .task = scope_task,
        .signal_url = scope_signal_url,
        .step_input = scope_step_input,
        .step_output = scope_step_output,
        .step_state = scope_step_state,
        .step_error = scope_step_error,
        .unit = scope_unit,
        .item_errors = scope_item_errors,
        .item_mark = scope_item_mark,
        .step_round = scope_step_round,
        .arg = v,
        .spent = effort_begin(&v->scheduler->tasks.effort),
    };
}

/* Evaluations of one task in a row are reported as one: together they block the event loop. */
static void evaluates(struct scheduler *s, const struct live *l)
{
    if (s->evaluating == l)
        return;
    ASSERT(!s->evaluating);
    s->evaluating = l;
    if (s->outside.evaluates)
        s->outside.evaluates(s->outside.arg, l->id, true);
}

void inputs_evaluated(struct scheduler *s)
{
    const struct live *l = s->evaluating;

    s->evaluating = NULL;
    if (l && s->outside.evaluates)
        s->outside.evaluates(s->outside.arg, l->id, false);
}

/* A value at the address of the task's own input is that input: it is neither kept nor stored
 * twice. */
static struct value kept_value(struct live *l, struct slice json)
{
    if (slice_same(json, l->task.input.json))
        return l->task.input;
    return (struct value){.json = arena_copy(&l->arena, json)};
}

bool input_of_step(struct scheduler *s, struct live *l, uint16_t step, struct value *ret,
                   struct error *e)
{
    bool undo = step_next_direction(&l->definition->workflow, &l->task, step) == DIRECTION_UNDO;
    const struct value *known = undo ? &l->task.steps[step].undo_input : &l->task.steps[step].input;
    struct arena a = {0};
    struct slice json = SLICE_NONE;

    ASSERT(step < task_unit_count(&l->task));
    if (known->json.ptr) { /* evaluated once, and recorded */
        *ret = *known;
        return true;
    }
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = undo ? definition_undo_input(&scope, step, &a, &json, e)
                        : definition_step_input(&scope, step, &a, &json, e);
    inputs_evaluated(s);
    *ret = kept_value(l, json);
    arena_fini(&a);
    return err == ERR_OK;
}

bool input_of_child_ok(struct scheduler *s, struct live *l, uint16_t step,
                       const struct value *input, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice workflow = l->definition->workflow.steps[step].child.workflow;
    const struct definition *d =
        registry_find(s->tasks.workflows, workflow, family_version(l->task.family, workflow));
    struct slice checked = SLICE_NONE;

    return !d || definition_check_input(d, input->json, &a, &checked, e) == ERR_OK;
}

enum err input_condition(struct scheduler *s, struct live *l, uint16_t step, bool *ret,
                         struct error *e)
{
    struct arena a = {0};

    ASSERT(step < l->task.step_count);
    *ret = true;
    if (!l->definition->steps[step].condition)
        return ERR_OK;
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_condition(&scope, step, &a, ret, e);
    arena_fini(&a);
    return err;
}

enum err input_wait_until(struct scheduler *s, struct live *l, uint16_t step, int64_t *ret_at,
                          struct error *e)
{
    struct arena a = {0};

    ASSERT(step < l->task.step_count);
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_wait_until(&scope, step, &a, ret_at, e);
    arena_fini(&a);
    return err;
}

enum err input_list(struct scheduler *s, struct live *l, uint16_t step, struct item_list *ret,
                    const char **ret_code, struct error *e)
{
    ASSERT(step < l->task.step_count);
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    return definition_items(&scope, step, &l->arena, ret, ret_code, e);
}

enum err input_until(struct scheduler *s, struct live *l, uint16_t step, bool *ret, struct error *e)
{
    struct arena a = {0};

    ASSERT(step < task_unit_count(&l->task));
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_until(&scope, step, &a, ret, e);
    arena_fini(&a);
    return err;
}

enum err input_question(struct scheduler *s, struct live *l, uint16_t step, struct slice *ret,
                        struct error *e)
{
    struct arena a = {0};
    struct slice json = SLICE_NONE;

    ASSERT(step < l->task.step_count);
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_question(&scope, step, &a, &json, e);
    if (err == ERR_OK)
        *ret = arena_copy(&l->arena, json);
    arena_fini(&a);
    return err;
}

bool input_match(struct scheduler *s, struct live *l, uint16_t step, const struct signal *sig)
{
    struct arena a = {0};

    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    bool is = definition_match(&scope, step, sig->name, sig->data.json, &a);
    arena_fini(&a);
    return is;
}

enum err input_lock(struct scheduler *s, struct live *l, struct slice *ret, struct error *e)
{
    struct arena a = {0};
    struct slice lock = SLICE_NONE;

    ASSERT(l->fresh);
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_lock(&scope, &a, &lock, e);
    inputs_evaluated(s);
    *ret = arena_copy(&l->arena, lock);
    arena_fini(&a);
    return err;
}

/* False: *ret_why says why there is no output. */
static bool output_of(struct scheduler *s, struct live *l, struct arena *a, struct slice *ret,
                      struct fault_note *ret_why)
{
    struct error e = {0};

    if (overruns_too_often(&s->tasks.overruns, l->id)) {
        *ret_why = (struct fault_note){
            SLICE("overrun"),
            SLICE("evaluating its expressions took too much processor time, twice")};
        return false;
    }
    struct view view = {s, l};
    struct scope scope = scope_of(&view);
    evaluates(s, l);
    enum err err = definition_output(&scope, a, ret, &e);
    inputs_evaluated(s);
    if (err != ERR_OK)
        *ret_why = (struct fault_note){slice_of(evaluation_code(&e)),
                                       arena_copy(&l->arena, slice_of(e.text))};
    return err == ERR_OK;
}

/* A processed task stays processed even if its output cannot be evaluated: every step took effect.
 * The error is on record. */
void input_output(struct scheduler *s, struct live *l)
{
    struct arena a = {0};
    struct slice json = SLICE_NONE;

    ASSERT(l->task.state == TASK_PROCESSED);
    if (!l->definition->output)
        return;
    if (output_of(s, l, &a, &json, &l->task.error))
        l->task.output.json = arena_copy(&l->arena, json);
    arena_fini(&a);
}
