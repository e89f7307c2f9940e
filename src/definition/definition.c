/* Compiles a workflow definition: reads its fields (reader/definition_reader.h), checks them
 * against each other, and fills a struct workflow. Reports all mistakes, not only the first. The
 * files of reader/ read parts of it; scope.c evaluates the result. */
#include "definition/definition.h"

#include <stdlib.h>

#include "base/when.h"
#include "definition/reader/approve_step.h"
#include "definition/reader/each.h"
#include "definition/reader/http_step.h"
#include "definition/reader/lock.h"
#include "definition/reader/repeat.h"
#include "definition/reader/signal_step.h"
#include "definition/reader/task_step.h"
#include "definition/reader/wait_step.h"
#include "definition/template/template.h"

enum { COMPLETE_BY_DEFAULT_MS = 30000, HEARTBEAT_MIN_MS = 100 };

/* A step while it is read. Values that depend on other fields are set at the end. */
struct draft {
    struct workflow_step step;
    struct step_templates templates;
    const struct json *after, *undo, *pivot, *on_failure, *retry, *undo_retry;

    const struct json *complete_by, *undo_complete_by, *heartbeat, *undo_heartbeat;
    const struct json *input, *http, *undo_input, *undo_http;
    struct wait_draft wait;
    struct repeat_draft repeat;
    struct each_draft each;
    struct signal_draft signal; /* also the limits of `approve` */
    struct approve_draft approve;
    struct task_draft task;
    bool is_pivot;
};

static bool is_of_on_undo(const struct reader *r)
{
    return reads_on_undo(r, reading_of(r)->step);
}

static void read_step_retry(struct reader *r, const struct json *j, const struct path *path,
                            void *target)
{
    struct draft *d = target;

    d->retry = j;
    read_retry(r, j, path, &d->step.call.retry);
}

static void read_step_complete_by(struct reader *r, const struct json *j, const struct path *path,
                                  void *target)
{
    struct draft *d = target;

    d->complete_by = j;
    read_length(r, j, path, &d->step.call.complete_by_ms);
}

static void read_undo_step_complete_by(struct reader *r, const struct json *j,
                                       const struct path *path, void *target)
{
    struct draft *d = target;

    d->undo_complete_by = j;
    read_length(r, j, path, &d->step.undo.complete_by_ms);
}

static void read_step_heartbeat(struct reader *r, const struct json *j, const struct path *path,
                                void *target)
{
    struct draft *d = target;

    d->heartbeat = j;
    read_length(r, j, path, &d->step.call.heartbeat_ms);
}

static void read_undo_heartbeat(struct reader *r, const struct json *j, const struct path *path,
                                void *target)
{
    struct draft *d = target;

    d->undo_heartbeat = j;
    read_length(r, j, path, &d->step.undo.heartbeat_ms);
}

static void read_step_on_failure(struct reader *r, const struct json *j, const struct path *path,
                                 void *target)
{
    struct draft *d = target;

    d->on_failure = j;
    if (is_of_on_undo(r) && j->type == JSON_STRING && slice_is(j->text, "undo"))
        mistake_in(r, path, j, "hold or continue: the task is already being undone");
    else
        read_on_failure(r, j, path, &d->step.on_failure);
}

static void read_pivot(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct draft *d = target;

    d->pivot = j;
    read_bool(r, j, path, &d->is_pivot);
}

static void read_undo_retry(struct reader *r, const struct json *j, const struct path *path,
                            void *target)
{
    struct draft *d = target;

    d->undo_retry = j;
    read_retry(r, j, path, &d->step.undo.retry);
}

static void read_step_input(struct reader *r, const struct json *j, const struct path *path,
                            void *target)
{
    struct draft *d = target;

    d->input = j;
    read_template(r, j, path, &d->templates.input);
}

static void read_http(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;

    d->http = j;
    read_http_step(r, j, path, &d->templates.input);
}

/* When an undo runs, each step of the task has ended or will never run, so its expressions may
 * refer to any step. With for_each, it is the undo of one item. */
static void sees_as_undo(struct reader *r, bool undo)
{
    reading_of(r)->visible = undo ? VISIBLE_UNDO : VISIBLE_BEFORE;
    if (reading_of(r)->items != ITEM_NONE)
        reading_of(r)->items = undo ? ITEM_UNDONE : ITEM_SEEN;
}

static void read_undo_input(struct reader *r, const struct json *j, const struct path *path,
                            void *target)
{
    struct draft *d = target;

    d->undo_input = j;
    sees_as_undo(r, true);
    read_template(r, j, path, &d->templates.undo_input);
    sees_as_undo(r, false);
}

static void read_undo_http(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct draft *d = target;

    d->undo_http = j;
    sees_as_undo(r, true);
    read_http_step(r, j, path, &d->templates.undo_input);
    sees_as_undo(r, false);
}

/* A step with `http` needs no `action`, and the request becomes its input. */
static void settle_call(struct reader *r, const struct json *j, const struct path *path,
                        const struct json *input, const struct json *http, struct slice *action)
{
    struct path at_action = {path, SLICE("action"), 0};
    struct path at_http = {path, SLICE("http"), 0};

    if (http && input)
        mistake_in(r, &at_http, http, "either input or http");
    if (json_get(j, "action"))
        return;
    if (http)
        *action = SLICE(HTTP_ACTION);
    else
        mistake_at(r, &at_action, j->at, "nothing", "a key \"action\"");
}

static void read_undo(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("action", read_action, offsetof(struct draft, step.undo.action)),
        FIELD("agent", read_name, offsetof(struct draft, step.undo.agent)),
        FIELD("input", read_undo_input, 0),
        FIELD("http", read_undo_http, 0),
        FIELD("complete_by", read_undo_step_complete_by, 0),
        FIELD("heartbeat", read_undo_heartbeat, 0),
        FIELD("retry", read_undo_retry, 0),
    };
    struct draft *d = target;

    d->undo = j;
    d->step.undo_kind = UNDO_NONE;
    if (j->type == JSON_STRING && slice_is(j->text, "none"))
        return;
    if (is_of_on_undo(r)) {
        mistake_in(r, path, j, "none: a step of on_undo is not undone");
        return;
    }
    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "none, or an object with an action");
        return;
    }
    d->step.undo_kind = UNDO_CALL;
    read_object(r, j, path, fields, COUNT_OF(fields), d);
    settle_call(r, j, path, d->undo_input, d->undo_http, &d->step.undo.action);
}

static const struct field step_fields[] = {
    REQUIRED("name", read_name, offsetof(struct draft, step.name)),
    REQUIRED("agent", read_name, offsetof(struct draft, step.call.agent)),
    FIELD("action", read_action, offsetof(struct draft, step.call.action)),
    FIELD("input", read_step_input, 0),
    FIELD("http", read_http, 0),
    FIELD("if", read_step_condition, offsetof(struct draft, templates.condition)),
    FIELD("after", read_node, offsetof(struct draft, after)),
    FIELD("complete_by", read_step_complete_by, 0),
    FIELD("heartbeat", read_step_heartbeat, 0),
    FIELD("retry", read_step_retry, 0),
    FIELD("repeat", read_repeat, offsetof(struct draft, repeat)),
    FIELD("for_each", read_for_each, offsetof(struct draft, each)),
    FIELD("max_items", read_max_items, offsetof(struct draft, each)),
    FIELD("concurrency", read_concurrency, offsetof(struct draft, each)),
    FIELD("on_item_failure", read_on_item_failure, offsetof(struct draft, each)),
    FIELD("on_failure", read_step_on_failure, 0),
    FIELD("undo", read_undo, 0),
    FIELD("pivot", read_pivot, 0),
};

static const struct field wait_fields[] = {
    REQUIRED("name", read_name, offsetof(struct draft, step.name)),
    REQUIRED("wait", read_wait, offsetof(struct draft, wait)),
    FIELD("if", read_condition, offsetof(struct draft, templates.condition)),
    FIELD("after", read_node, offsetof(struct draft, after)),
    FIELD("on_failure", read_step_on_failure, 0),
    FIELD("agent", refuse_beside_wait, 0),
    FIELD("action", refuse_beside_wait, 0),
    FIELD("input", refuse_beside_wait, 0),
    FIELD("http", refuse_beside_wait, 0),
    FIELD("complete_by", refuse_beside_wait, 0),
    FIELD("heartbeat", refuse_beside_wait, 0),
    FIELD("retry", refuse_beside_wait, 0),
    FIELD("repeat", refuse_beside_wait, 0),
    FIELD("undo", refuse_beside_wait, 0),
    FIELD("pivot", refuse_beside_wait, 0),
};

static const struct field signal_fields[] = {
    REQUIRED("name", read_name, offsetof(struct draft, step.name)),
    REQUIRED("signal", read_signal, offsetof(struct draft, signal)),
    FIELD("complete_by", read_signal_complete_by, offsetof(struct draft, signal)),
    FIELD("default", read_signal_default, offsetof(struct draft, signal)),
    FIELD("if", read_condition, offsetof(struct draft, templates.condition)),
    FIELD("after", read_node, offsetof(struct draft, after)),
    FIELD("on_failure", read_step_on_failure, 0),
    FIELD("agent", refuse_beside_signal, 0),
    FIELD("action", refuse_beside_signal, 0),
    FIELD("input", refuse_beside_signal, 0),
    FIELD("http", refuse_beside_signal, 0),
    FIELD("wait", refuse_beside_signal, 0),
    FIELD("repeat", refuse_beside_signal, 0),
    FIELD("heartbeat", refuse_beside_signal, 0),
    FIELD("retry", refuse_beside_signal, 0),
    FIELD("undo", refuse_beside_signal, 0),
    FIELD("pivot", refuse_beside_signal, 0),
};

static const struct field approve_fields[] = {
    REQUIRED("name", read_name, offsetof(struct draft, step.name)),
    REQUIRED("approve", read_approve, offsetof(struct draft, approve)),
    FIELD("complete_by", read_signal_complete_by, offsetof(struct draft, signal)),
    FIELD("default", read_signal_default, offsetof(struct draft, signal)),
    FIELD("if", read_condition, offsetof(struct draft, templates.condition)),
    FIELD("after", read_node, offsetof(struct draft, after)),
    FIELD("on_failure", read_step_on_failure, 0),
    FIELD("agent", refuse_beside_approve, 0),
    FIELD("action", refuse_beside_approve, 0),
    FIELD("input", refuse_beside_approve, 0),
    FIELD("http", refuse_beside_approve, 0),
    FIELD("signal", refuse_beside_approve, 0),
    FIELD("wait", refuse_beside_approve, 0),
    FIELD("repeat", refuse_beside_approve, 0),
    FIELD("heartbeat", refuse_beside_approve, 0),
    FIELD("retry", refuse_beside_approve, 0),
    FIELD("undo", refuse_beside_approve, 0),
    FIELD("pivot", refuse_beside_approve, 0),
};

static const struct field task_fields[] = {
    REQUIRED("name", read_name, offsetof(struct draft, step.name)),
    REQUIRED("task", read_task, offsetof(struct draft, task)),
    FIELD("complete_by", read_task_complete_by, offsetof(struct draft, task)),
    FIELD("if", read_condition, offsetof(struct draft, templates.condition)),
    FIELD("after", read_node, offsetof(struct draft, after)),
    FIELD("on_failure", read_step_on_failure, 0),
    FIELD("undo", read_undo, 0),
    FIELD("pivot", read_pivot, 0),
    FIELD("for_each", read_for_each, offsetof(struct draft, each)),
    FIELD("max_items", read_max_items, offsetof(struct draft, each)),
    FIELD("concurrency", read_concurrency, offsetof(struct draft, each)),
    FIELD("on_item_failure", read_on_item_failure, offsetof(struct draft, each)),
    FIELD("input", refuse_input_beside_task, 0),
    FIELD("agent", refuse_beside_task, 0),
    FIELD("action", refuse_beside_task, 0),
    FIELD("http", refuse_beside_task, 0),
    FIELD("wait", refuse_beside_task, 0),
    FIELD("signal", refuse_beside_task, 0),
    FIELD("approve", refuse_beside_task, 0),
    FIELD("repeat", refuse_beside_task, 0),
    FIELD("heartbeat", refuse_beside_task, 0),
    FIELD("retry", refuse_beside_task, 0),
    FIELD("default", refuse_beside_task, 0),
};

/* Every step of an agent must declare how it is undone. */
static void settle_undo(struct reader *r, const struct json *j, const struct path *path,
                        struct draft *d)
{
    struct path at_pivot = {path, SLICE("pivot"), 0};
    struct path at_undo = {path, SLICE("undo"), 0};

    if (is_of_on_undo(r)) {
        if (d->pivot)
            mistake_in(r, &at_pivot, d->pivot, "undo: none: a step of on_undo cannot be a pivot");
        else if (!d->undo)
            mistake_at(r, &at_undo, j->at, "nothing", "undo: none");
        return;
    }
    if (!d->undo && !d->is_pivot && !(d->pivot && d->pivot->type != JSON_FALSE))
        mistake_at(r, &at_undo, j->at, "nothing",
                   "undo: {action: ...}, undo: none, or pivot: true");
    if (d->undo && d->is_pivot)
        mistake_in(r, &at_pivot, d->pivot,
                   "no pivot: a step with an undo (also none) cannot be one");
    if (d->is_pivot)
        d->step.undo_kind = UNDO_PIVOT;
    if (d->step.undo_kind == UNDO_CALL && !d->step.undo.agent.ptr)
        d->step.undo.agent = d->step.call.agent;
}

static void settle_repeat(struct reader *r, const struct path *path, struct draft *d)
{
    bool is_none = d->step.undo_kind == UNDO_NONE && !d->is_pivot;

    if (!d->repeat.json)
        return;
    check_repeat_undo(r, path, d->repeat.json, d->undo, is_none);
    d->step.repeat = d->repeat.rule;
    d->step.repeat.input_varies = d->templates.input && template_needs(d->templates.input)->round;
    d->templates.until = d->repeat.until;
}

static void read_call_step(struct reader *r, const struct json *j, const struct path *path,
                           struct draft *d)
{
    d->step.call.complete_by_ms = d->step.undo.complete_by_ms = COMPLETE_BY_DEFAULT_MS;
    d->step.call.retry = d->step.undo.retry = retry_default;
    reading_of(r)->rounds = json_get(j, "repeat") ? ROUNDS_NUMBER : ROUNDS_NONE;
    reading_of(r)->items = json_get(j, "for_each") ? ITEM_SEEN : ITEM_NONE;
    read_object(r, j, path, step_fields, COUNT_OF(step_fields), d);
    reading_of(r)->rounds = ROUNDS_NONE;
    reading_of(r)->items = ITEM_NONE;
    if (j->type != JSON_OBJECT)
        return;
    settle_call(r, j, path, d->input, d->http, &d->step.call.action);
    settle_undo(r, j, path, d);
    settle_repeat(r, path, d);
    settle_each(r, j, path, &d->each, &d->step);
    d->templates.items = d->each.items;
}

static void read_wait_step(struct reader *r, const struct json *j, const struct path *path,
                           struct draft *d)
{
    struct path at_wait = {path, SLICE("wait"), 0};

    if (is_of_on_undo(r))
        mistake_in(r, &at_wait, json_get(j, "wait"),
                   "an agent: on_undo has no other kinds of steps");
    read_object(r, j, path, wait_fields, COUNT_OF(wait_fields), d);
    d->step.kind = KIND_WAIT;
    d->step.wait_ms = d->wait.ms;
    d->templates.wait_until = d->wait.until;
    d->templates.wait_plus_ms = d->wait.plus_ms;
}

static void read_signal_step(struct reader *r, const struct json *j, const struct path *path,
                             struct draft *d)
{
    struct path at_signal = {path, SLICE("signal"), 0};

    if (is_of_on_undo(r))
        mistake_in(r, &at_signal, json_get(j, "signal"),
                   "an agent: on_undo has no other kinds of steps");
    read_object(r, j, path, signal_fields, COUNT_OF(signal_fields), d);
    d->step.kind = KIND_SIGNAL;
    d->complete_by = d->signal.complete_by;
    settle_signal(r, j, path, &d->signal, &d->step.signal);
    d->templates.match = d->signal.match;
}

static void read_approve_step(struct reader *r, const struct json *j, const struct path *path,
                              struct draft *d)
{
    struct path at_approve = {path, SLICE("approve"), 0};

    if (is_of_on_undo(r))
        mistake_in(r, &at_approve, json_get(j, "approve"),
                   "an agent: on_undo has no other kinds of steps");
    read_object(r, j, path, approve_fields, COUNT_OF(approve_fields), d);
    d->step.kind = KIND_APPROVE;
    d->complete_by = d->signal.complete_by;
    settle_approve(r, j, path, &d->approve, &d->signal, &d->step.approve);
    d->templates.question = d->approve.question;
}

static void read_task_step(struct reader *r, const struct json *j, const struct path *path,
                           struct draft *d)
{
    struct path at_task = {path, SLICE("task"), 0};

    if (is_of_on_undo(r)) {
        mistake_in(r, &at_task, json_get(j, "task"),
                   "an agent: on_undo has no other kinds of steps");
        return;
    }
    d->step.undo.complete_by_ms = COMPLETE_BY_DEFAULT_MS;
    d->step.undo.retry = retry_default;
    reading_of(r)->items = json_get(j, "for_each") ? ITEM_SEEN : ITEM_NONE;
    read_object(r, j, path, task_fields, COUNT_OF(task_fields), d);
    reading_of(r)->items = ITEM_NONE;
    d->step.kind = KIND_TASK;
    d->complete_by = d->task.complete_by;
    d->step.child = child_of_task(&d->task);
    d->templates.input = d->task.input;
    d->templates.child_at = d->task.workflow ? d->task.workflow->at : 0;
    settle_task_undo(r, path, d->undo, d->pivot, d->is_pivot, &d->step);
    settle_each(r, j, path, &d->each, &d->step);
    d->templates.items = d->each.items;
}

static void read_step(struct reader *r, const struct json *j, const struct path *path,
                      struct draft *d)
{
    *d = (struct draft){0};
    d->step.undo_kind = UNDO_NONE;
    d->step.on_undo = is_of_on_undo(r);
    if (json_get(j, "task"))
        read_task_step(r, j, path, d);
    else if (json_get(j, "approve"))
        read_approve_step(r, j, path, d);
    else if (json_get(j, "signal"))
        read_signal_step(r, j, path, d);
    else if (json_get(j, "wait"))
        read_wait_step(r, j, path, d);
    else
        read_call_step(r, j, path, d);
    if (j->type != JSON_OBJECT)
        return;
    struct slice name = json_get_text(j, "name");
    if (name.ptr && reader_step_index(r, name) != reading_of(r)->step) {
        struct path at = {path, SLICE("name"), 0};
        mistake_in(r, &at, json_get(j, "name"), "a name that no other step has");
    }
}

/* An attempt may have more time than its whole task: allowed, because the earlier deadline
 * applies. */
static void check_deadline(struct reader *r, const struct json *j, const struct path *up,
                           int64_t ms, int64_t limit_ms, const char *limit)
{
    struct path at = {up, SLICE("complete_by"), 0};

    if (j && limit_ms > 0 && ms > limit_ms)
        warn_at(r, &at, j->at, j->raw, "no longer than the %s: it ends the attempt before", limit);
}

/* A heartbeat interval as long as the attempt has no effect: the complete-by passes first. */
static void check_heartbeat(struct reader *r, const struct json *j, const struct path *up,
                            const struct call_spec *spec)
{
    struct path at = {up, SLICE("heartbeat"), 0};
    CLEANUP(buf_fini) struct buf limit = {0};

    if (!j || spec->heartbeat_ms == 0) /* an invalid duration was reported before */
        return;
    duration_write(&limit, spec->complete_by_ms);
    if (spec->heartbeat_ms < HEARTBEAT_MIN_MS)
        mistake_in(r, &at, j, "a duration of 100ms or more");
    else if (spec->heartbeat_ms >= spec->complete_by_ms)
        mistake_in(r, &at, j, "a duration shorter than the attempt's complete_by, %s", limit.ptr);
}

/* The kind does not matter: those of other kinds are 0. */
static int64_t complete_by_of(const struct workflow_step *s)
{
    return max_i64(max_i64(s->call.complete_by_ms, s->signal.complete_by_ms),
                   max_i64(s->approve.complete_by_ms, s->child.complete_by_ms));
}

/* Checks and defaults that depend on the rest of the definition. */
static void settle_step(struct reader *r, uint16_t i, struct draft *d)
{
    const struct workflow *w = &reading_of(r)->definition->workflow;
    bool on_undo = reads_on_undo(r, i);
    int64_t limit_ms = on_undo ? w->undo_complete_by_ms : w->complete_by_ms;
    const char *limit = on_undo ? "undo_complete_by" : "task's complete_by";
    struct path steps;
    struct path step = reader_step_path(r, i, &steps);
    struct path undo = {&step, SLICE("undo"), 0};
    struct path retry = {d->retry ? &step : &undo, SLICE("retry"), 0};

    if (!d->on_failure)
        d->step.on_failure = on_undo ? ON_FAILURE_HOLD : w->on_failure;
    if (d->retry)
        check_schedule(r, d->retry, &retry, &d->step.call.retry, limit_ms, limit);
    retry.up = &undo;
    if (d->undo_retry)
        check_schedule(r, d->undo_retry, &retry, &d->step.undo.retry, w->undo_complete_by_ms,
                       "undo_complete_by");
    check_deadline(r, d->complete_by, &step, complete_by_of(&d->step), limit_ms, limit);
    check_deadline(r, d->undo_complete_by, &undo, d->step.undo.complete_by_ms,
                   w->undo_complete_by_ms, "undo_complete_by");
    check_heartbeat(r, d->heartbeat, &step, &d->step.call);
    check_heartbeat(r, d->undo_heartbeat, &undo, &d->step.undo);
}

static void keep_steps(struct reader *r, const struct draft *drafts, struct workflow_step *steps)
{
    struct definition *d = reading_of(r)->definition;
    size_t units = (size_t)reading_of(r)->step_count + d->workflow.slot_count;

    d->steps = arena_alloc(r->arena, (units + 1) * sizeof *d->steps);
    for (uint16_t i = 0; i < reading_of(r)->step_count; i++) {
        steps[i] = drafts[i].step;
        d->steps[i] = drafts[i].templates;
        d->has_waits |= steps[i].kind != KIND_CALL && steps[i].kind != KIND_EACH;
        d->has_signals |= steps[i].kind == KIND_SIGNAL || steps[i].kind == KIND_APPROVE;
        d->needs_submitter |= steps[i].approve.not_submitter;
        d->has_pivot |= steps[i].undo_kind == UNDO_PIVOT;
        if (steps[i].kind == KIND_TASK)
            d->workflow.child_step_count++;
        d->has_decisions |= d->steps[i].condition != NULL || steps[i].kind != KIND_CALL
                            || step_is_repeated(&steps[i]);
    }
    d->workflow.steps = steps;
    d->workflow.step_count = reading_of(r)->step_count;
}

static void keep_signal(struct definition *d, struct map *seen, struct slice *list,
                        const struct slice *names, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++) {
        if (map_get(seen, names[i]))
            continue;
        list[d->signal_count++] = names[i];
        map_put(seen, names[i], list);
    }
}

static void keep_signals(struct reader *r)
{
    struct definition *d = reading_of(r)->definition;
    const struct workflow *w = &d->workflow;
    struct map seen = {0};
    size_t most = w->undo_signal_count;

    for (uint16_t i = 0; i < w->step_count; i++)
        most += w->steps[i].signal.count;
    if (most == 0)
        return;
    struct slice *list = arena_alloc(r->arena, most * sizeof *list);
    keep_signal(d, &seen, list, w->undo_signals, w->undo_signal_count);
    for (uint16_t i = 0; i < w->step_count; i++)
        keep_signal(d, &seen, list, w->steps[i].signal.names, w->steps[i].signal.count);
    d->signals = list;
    map_fini(&seen);
}

static bool check_steps(struct reader *r, const struct json *j, const struct path *path)
{
    if (!j)
        return false;
    if (j->type != JSON_ARRAY)
        mistake_in(r, path, j, "an array of steps");
    else if (j->count == 0)
        mistake_in(r, path, j, "at least one step");
    else if (j->count > STEPS_MAX)
        mistake_at(r, path, j->at, "too many steps", "%d of them at most", STEPS_MAX);
    else
        return true;
    return false;
}

/* Checks the number of steps and registers their names. False: there are none, or too many. */
static bool learn_steps(struct reader *r, const struct json *steps, const struct json *on_undo)
{
    struct path at_steps = {NULL, SLICE("steps"), 0};
    struct path at_on_undo = {NULL, SLICE("on_undo"), 0};
    struct reading *g = reading_of(r);

    bool on_undo_ok = !on_undo || check_steps(r, on_undo, &at_on_undo);
    if (!check_steps(r, steps, &at_steps) || !on_undo_ok)
        return false;
    size_t count = steps->count + (on_undo ? on_undo->count : 0);
    if (count > STEPS_MAX) {
        mistake_at(r, &at_on_undo, on_undo->at, "too many steps",
                   "%d of them at most, with those of steps", STEPS_MAX);
        return false;
    }
    g->steps = steps;
    g->on_undo = on_undo;
    g->main_count = (uint16_t)steps->count;
    g->step_count = (uint16_t)count;
    reader_learn_names(r);
    return true;
}

static void read_list(struct reader *r, const struct json *list, struct draft *drafts)
{
    for (const struct json *m = list ? list->child : NULL; m; m = m->next) {
        struct path up;
        struct path at = reader_step_path(r, reading_of(r)->step, &up);
        struct draft *d = &drafts[reading_of(r)->step];
        read_step(r, m, &at, d);
        count_people(r, &at, m, &d->step.approve);
        reading_of(r)->step++;
    }
}

static void read_steps(struct reader *r, const struct json *list, const struct json *on_undo)
{
    if (!learn_steps(r, list, on_undo))
        return;
    struct draft *drafts = calloc(reading_of(r)->step_count, sizeof *drafts);
    const struct json **after = calloc(reading_of(r)->step_count, sizeof(void *));
    ASSERT(drafts && after);
    reading_of(r)->visible = VISIBLE_BEFORE;
    reading_of(r)->step = 0;
    read_list(r, list, drafts);
    reading_of(r)->visible = VISIBLE_ON_UNDO;
    read_list(r, on_undo, drafts);
    reading_of(r)->visible = VISIBLE_ALL;
    for (uint16_t i = 0; i < reading_of(r)->step_count; i++) {
        settle_step(r, i, &drafts[i]);
        after[i] = drafts[i].after;
    }
    size_t units =
        (size_t)reading_of(r)->step_count + reading_of(r)->definition->workflow.slot_count;
    struct workflow_step *kept = arena_alloc(r->arena, units * sizeof *kept);
    keep_steps(r, drafts, kept);
    read_graph(r, kept, after);
    keep_slots(r, kept, reading_of(r)->definition->steps);
    free(drafts);
    free(after);
}

struct top {
    struct definition *definition;
    const struct json *inputs, *lock, *steps, *on_undo, *output, *on_signal;
    struct signal_names undo_signals;
    struct slice name;
    int64_t complete_by_ms, undo_complete_by_ms, undo_until_ms;
    enum on_failure on_failure;
};

static void read_definition(struct reader *r, const struct json *root)
{
    static const struct field fields[] = {
        REQUIRED("intact", read_version, 0),
        REQUIRED("workflow", read_name, offsetof(struct top, name)),
        FIELD("complete_by", read_length, offsetof(struct top, complete_by_ms)),
        FIELD("undo_complete_by", read_length, offsetof(struct top, undo_complete_by_ms)),
        FIELD("undo_until", read_length, offsetof(struct top, undo_until_ms)),
        FIELD("on_failure", read_on_failure, offsetof(struct top, on_failure)),
        FIELD("inputs", read_node, offsetof(struct top, inputs)),
        FIELD("lock", read_node, offsetof(struct top, lock)),
        REQUIRED("steps", read_node, offsetof(struct top, steps)),
        FIELD("on_undo", read_node, offsetof(struct top, on_undo)),
        FIELD("on_signal", read_node, offsetof(struct top, on_signal)),
        FIELD("output", read_node, offsetof(struct top, output)),
    };
    struct top top = {.on_failure = ON_FAILURE_UNDO};
    struct definition *d = reading_of(r)->definition;
    struct path at_root = {0};
    struct path at_inputs = {NULL, SLICE("inputs"), 0};
    struct path at_lock = {NULL, SLICE("lock"), 0};
    struct path at_on_signal = {NULL, SLICE("on_signal"), 0};
    struct path at_output = {NULL, SLICE("output"), 0};
    const struct json *name = json_get(root, "workflow");

    d->name_at = name ? name->at : 0;
    read_object(r, root, &at_root, fields, COUNT_OF(fields), &top);
    if (top.on_signal)
        read_on_signal(r, top.on_signal, &at_on_signal, &top.undo_signals);
    d->workflow = (struct workflow){
        .name = top.name,
        .complete_by_ms = top.complete_by_ms,
        .undo_complete_by_ms = top.undo_complete_by_ms,
        .undo_until_ms = top.undo_until_ms,
        .on_failure = top.on_failure,
        .undo_signals = signal_names_keep(r, &top.undo_signals),
        .undo_signal_count = top.undo_signals.count,
        .templates = d,
    };
    if (top.inputs)
        read_inputs(r, top.inputs, &at_inputs, d);
    reading_of(r)->on_signal = top.on_signal;
    read_steps(r, top.steps, top.on_undo);
    if (top.lock)
        read_lock(r, top.lock, &at_lock);
    keep_signals(r);
    keep_children(r);
    if (top.on_signal)
        check_on_signal(r, d->workflow.steps, d->workflow.step_count, top.on_signal,
                        &top.undo_signals);
    if (top.output)
        read_template(r, top.output, &at_output, &d->output);
}

static enum err read_all(struct reader *r, enum definition_format format)
{
    struct json *root = NULL;
    struct definition *d = reading_of(r)->definition;
    enum err err = read_source(r, d->text, (enum source_format)format, &root);

    if (err != ERR_OK)
        return err;
    d->is_yaml = r->is_yaml;
    d->json = root->raw;
    d->source = r->text;
    read_definition(r, root);
    free(reading_of(r)->uses);
    map_fini(&reading_of(r)->names);
    return r->mistakes->count > 0 ? ERR_INVALID : ERR_OK;
}

enum err definition_parse(struct slice text, enum definition_format format, struct definition **ret,
                          struct mistakes *m, struct mistakes *warnings)
{
    struct definition *d = calloc(1, sizeof *d);

    ASSERT(d);
    m->count = 0;
    if (warnings)
        warnings->count = 0;
    d->text = arena_copy(&d->arena, text.ptr ? text : SLICE(""));
    struct reading reading = {.definition = d};
    struct reader r = {.arena = &d->arena,
                       .mistakes = m,
                       .warnings = warnings,
                       .reserved = definition_reserved,
                       .reserved_count = definition_reserved_count,
                       .subject = &reading};
    enum err err = read_all(&r, format);
    if (warnings)
        mistakes_sort(warnings);
    if (err != ERR_OK) {
        mistakes_sort(m);
        definition_free(d);
        return err;
    }
    ASSERT(workflow_valid(&d->workflow));
    *ret = d;
    return ERR_OK;
}

struct slice definition_name(struct slice text, enum definition_format format, struct arena *a)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct reader r = {.arena = a, .mistakes = m};
    struct json *root = NULL;

    ASSERT(m);
    enum err err = read_source(&r, text.ptr ? text : SLICE(""), (enum source_format)format, &root);
    free(m);
    return err == ERR_OK ? json_get_text(root, "workflow") : SLICE_NONE;
}

void definition_free(struct definition *d)
{
    if (!d)
        return;
    arena_fini(&d->arena);
    free(d);
}
