/* Watches the tasks of a test: tells what changed, and remembers the last state of the task
 * itself. */

#include <stdlib.h>

#include "base/when.h"
#include "definition/definition.h"
#include "testing/step_path.h"
#include "testing/strikes.h"

static struct seen_task *seen_of(struct trial *t, const struct workflow *w, const struct task *task)
{
    struct seen_task *s = map_get(&t->tasks, task->id);

    if (s)
        return s;
    s = arena_alloc(&t->arena, sizeof *s);
    s->id = arena_copy(&t->arena, task->id);
    s->workflow = w;
    s->state = TASK_PENDING;
    s->count = task_unit_count(task);
    s->units = arena_alloc(&t->arena, (s->count + 1U) * sizeof *s->units);
    map_put(&t->tasks, s->id, s);
    return s;
}

/* ---- steps ---- */

static void name_unit(const struct workflow *w, const struct task *task, uint16_t unit,
                      struct buf *ret)
{
    CLEANUP(buf_fini) struct buf step = {0};

    buf_slice(&step, w->steps[unit_step(w, unit)].name);
    if (unit_is_slot(w, unit))
        buf_fmt(&step, ".%u", task->steps[unit].item);
    step_path_write(ret, TRIAL_ID, task->id, buf_view(&step));
}

static void write_names(struct buf *b, const struct slice *names, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        buf_fmt(b, "%s%.*s", i > 0 ? " or " : "", SLICE_ARG(names[i]));
}

/* "waits for signal paid until 2d" */
static void write_wait(const struct trial *t, const struct workflow_step *ws, const struct step *s,
                       struct buf *b)
{
    int64_t until = s->wait_until ? s->wait_until : s->complete_by;

    if (ws->kind == KIND_SIGNAL) {
        buf_str(b, "waits for signal ");
        write_names(b, ws->signal.names, ws->signal.count);
    } else if (ws->kind == KIND_APPROVE) {
        buf_str(b, "waits for approval by ");
        write_names(b, ws->approve.by, ws->approve.by_count);
    } else {
        buf_str(b, ws->kind == KIND_TASK ? "waits for its child" : "waits");
    }
    if (until == 0)
        return;
    buf_str(b, " until ");
    timeline_moment(&t->timeline, engine_moment(t->engine, until), b);
}

static void tell_begun(struct trial *t, const struct workflow_step *ws, const struct step *s,
                       const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (ws->kind == KIND_CALL || ws->kind == KIND_EACH)
        return;
    write_wait(t, ws, s, &b);
    timeline_add(&t->timeline, trial_now(t), "%s %s", name, b.ptr);
}

static void tell_state(struct trial *t, const struct workflow_step *ws, const struct step *s,
                       const char *name)
{
    int64_t now = trial_now(t);
    struct fault_note error = s->error;

    if (s->state == STEP_SKIPPED)
        timeline_add(&t->timeline, now, "%s is skipped", name);
    else if (s->state == STEP_FAILED)
        timeline_add(&t->timeline, now, "%s%s fails for good: %.*s: %.*s",
                     s->direction == DIRECTION_UNDO ? "undo of " : "", name, SLICE_ARG(error.code),
                     SLICE_ARG(error.message));
    else if (s->state == STEP_COMPLETED && ws->kind == KIND_EACH)
        timeline_add(&t->timeline, now, "%s completes", name);
    else if (s->state == STEP_COMPLETED && ws->kind != KIND_CALL)
        timeline_add(&t->timeline, now, "%s completes: %.*s", name,
                     SLICE_ARG(timeline_short(&t->arena, s->output.json)));
}

/* Answers of agents are told when they are sent: here is what ended without one. */
static void tell_attempt(struct trial *t, const struct step *s, const char *name)
{
    const struct attempt *a = s->attempt_count > 0 ? &s->attempts[s->attempt_count - 1] : NULL;

    if (a && a->outcome == OUTCOME_TIMED_OUT)
        timeline_add(&t->timeline, trial_now(t), "%s%s: attempt %u had no answer in time",
                     a->direction == DIRECTION_UNDO ? "undo of " : "", name, a->number);
}

static void tell_retry(struct trial *t, const struct step *s, const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    int64_t at = engine_moment(t->engine, s->wait_until);

    if (s->attempt == 0 || at <= trial_now(t))
        return;
    timeline_moment(&t->timeline, at, &b);
    timeline_add(&t->timeline, trial_now(t),
                 step_is_between_rounds(s) ? "%s has its next round at %s"
                                           : "%s is tried again at %s",
                 name, b.ptr);
}

static void see_unit(struct trial *t, const struct workflow *w, const struct task *task,
                     struct seen_task *seen, uint16_t unit)
{
    const struct workflow_step *ws = &w->steps[unit];
    const struct step *s = &task->steps[unit];
    struct seen_unit *u = &seen->units[unit];
    CLEANUP(buf_fini) struct buf name = {0};
    bool is_open = step_is_open(s);

    if (unit_is_slot(w, unit) && s->slot == SLOT_FREE) {
        *u = (struct seen_unit){0};
        return;
    }
    if (u->item != s->item)
        *u = (struct seen_unit){.item = s->item};
    name_unit(w, task, unit, &name);
    if (u->was_open && !is_open)
        tell_attempt(t, s, name.ptr);
    if (!u->has_begun && step_has_begun(s))
        tell_begun(t, ws, s, name.ptr);
    if (u->state != s->state)
        tell_state(t, ws, s, name.ptr);
    else if (u->was_open && !is_open && s->state == STEP_UNDOING)
        tell_retry(t, s, name.ptr);
    if (u->state == STEP_RUNNING && s->state == STEP_WAITING)
        tell_retry(t, s, name.ptr);
    *u = (struct seen_unit){.state = s->state,
                            .item = s->item,
                            .was_open = is_open,
                            .has_begun = step_has_begun(s)};
}

/* ---- the task itself ---- */

static void keep_steps(struct trial *t, const struct workflow *w, const struct task *task)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    for (uint16_t i = 0; i < task->step_count; i++) {
        json_key_slice(&b, w->steps[i].name);
        json_string(&b, slice_of(step_state_text(task->steps[i].state)));
    }
    json_close(&b, '}');
    t->steps = arena_copy(&t->arena, buf_view(&b));
}

static bool is_at_end(enum task_state s)
{
    return task_state_is_end(s) || s == TASK_ERROR;
}

/* The first step that failed; NONE: none did. */
static struct slice failed_step(struct trial *t, const struct workflow *w, const struct task *task,
                                bool *ret_undo)
{
    for (uint16_t i = 0; i < task->step_count; i++) {
        if (task->steps[i].state != STEP_FAILED)
            continue;
        *ret_undo = task->steps[i].direction == DIRECTION_UNDO;
        return arena_copy(&t->arena, w->steps[i].name);
    }
    return SLICE_NONE;
}

static void stops(struct trial *t, const struct workflow *w, const struct task *task)
{
    bool is_undo = false;
    struct slice failed = failed_step(t, w, task, &is_undo);

    strikes_help(t, failed, is_undo);
}

/* Errors and output matter at an end only. */
static void keep_root(struct trial *t, const struct workflow *w, const struct task *task)
{
    struct fault_note error = task->cause.error.code.ptr ? task->cause.error : task->error;
    bool begins_error = task->state == TASK_ERROR && t->state != TASK_ERROR;

    if (is_at_end(task->state) && t->state != task->state)
        t->ended_at = trial_now(t);
    t->state = task->state;
    if (begins_error && t->faults)
        stops(t, w, task);
    if (!is_at_end(task->state)) {
        t->ended_at = 0; /* it goes on: an operator helped it, or undoes it */
        return;
    }
    t->error_code = arena_copy(&t->arena, error.code);
    t->error_message = arena_copy(&t->arena, error.message);
    t->output = arena_copy(&t->arena, task->output.json);
    keep_steps(t, w, task);
}

/* What a task waits for that nobody may ever send. */
static void keep_waits(struct trial *t, const struct workflow *w, const struct task *task)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (task->paused_at != 0)
        buf_str(&b, "it is paused");
    for (uint16_t i = 0; i < task->step_count && task->paused_at == 0; i++) {
        if (!step_has_begun(&task->steps[i]) || w->steps[i].kind == KIND_TASK
            || w->steps[i].kind == KIND_EACH)
            continue;
        buf_str(&b, b.len > 0 ? ", " : "");
        name_unit(w, task, i, &b);
        buf_byte(&b, ' ');
        write_wait(t, &w->steps[i], &task->steps[i], &b);
    }
    t->waits = b.len > 0 ? arena_copy(&t->arena, buf_view(&b)) : SLICE_NONE;
}

static void tell_task(struct trial *t, const struct seen_task *seen, const struct task *task)
{
    CLEANUP(buf_fini) struct buf name = {0};
    bool matters = task->state == TASK_COMPENSATING || is_at_end(task->state);

    if (seen->state == task->state || !matters)
        return;
    step_path_write(&name, TRIAL_ID, task->id, SLICE("task"));
    struct fault_note e = task->cause.error.code.ptr ? task->cause.error : task->error;
    if (task->state == TASK_PROCESSED)
        timeline_add(&t->timeline, trial_now(t), "%s processed", name.ptr);
    else
        timeline_add(&t->timeline, trial_now(t), "%s %s: %.*s: %.*s", name.ptr,
                     task_state_text(task->state), SLICE_ARG(e.code), SLICE_ARG(e.message));
}

void observer_changed(void *arg, const struct workflow *w, const struct task *task)
{
    struct trial *t = arg;
    struct seen_task *seen = seen_of(t, w, task);

    for (uint16_t i = task->step_count; i < seen->count; i++) /* items before their step */
        see_unit(t, w, task, seen, i);
    for (uint16_t i = 0; i < task->step_count; i++)
        see_unit(t, w, task, seen, i);
    tell_task(t, seen, task);
    if (task->state != TASK_PENDING) /* released for a while: it goes on as it did */
        seen->state = task->state;
    if (t->coverage)
        coverage_see(t->coverage, w, task);
    keep_waits(t, w, task);
    if (!slice_eq(task->id, TRIAL_ID))
        return;
    keep_root(t, w, task);
    trial_changed(t, w, task);
}
