/* Operators' verbs: from an ask to an event for core/, and refusals in words. Decides nothing:
 * commands.c applies the event. */

#include "scheduler/internal.h"

#include <stdio.h>

#include "base/when.h"
#include "core/items.h"
#include "core/reason.h"

/* The name of each verb, and the error code that it leaves on the task. */
static const struct verb {
    const char *text, *code;
    enum event_kind event;
} verbs[] = {
    [ASK_SUBMIT] = {"submit", NULL, EVENT_CLAIM},
    [ASK_RETRY] = {"retry", "retried_by_operator", EVENT_RETRY},
    [ASK_SKIP] = {"skip", "skipped_by_operator", EVENT_SKIP},
    [ASK_UNDO] = {"undo", "undone_by_operator", EVENT_UNDO},
    [ASK_CANCEL] = {"cancel", "cancelled", EVENT_UNDO},
    [ASK_PAUSE] = {"pause", "paused_by_operator", EVENT_PAUSE},
    [ASK_RESUME] = {"resume", "resumed_by_operator", EVENT_RESUME},
    [ASK_CORRECT] = {"correct", "corrected_by_operator", EVENT_CORRECT},
    [ASK_SUPPLY] = {"supply", "supplied_by_operator", EVENT_SUPPLY},
    [ASK_RESOLVE] = {"resolve", "resolved_by_operator", EVENT_RESOLVE},
    [ASK_CLOSE] = {"close", "closed_by_operator", EVENT_CLOSE},
    [ASK_REOPEN] = {"reopen", "reopened_by_operator", EVENT_REOPEN},
    [ASK_SIGNAL] = {"signal", NULL, EVENT_SIGNAL},
    [ASK_DROP] = {"signal.drop", NULL, EVENT_DROP},
    [ASK_APPROVE] = {"approve", NULL, EVENT_VOTE},
    [ASK_REJECT] = {"reject", NULL, EVENT_VOTE},
    [ASK_CHILD] = {"child", NULL, EVENT_CHILD},
    [ASK_PARENT] = {"parent", NULL, EVENT_PARENT},
    [ASK_END] = {"end", NULL, EVENT_RESULT},
};

const char *ask_kind_text(enum ask_kind kind)
{
    ASSERT(kind < COUNT_OF(verbs));
    return verbs[kind].text;
}

/* ---- before and after, for the audit ---- */

enum {
    DETAIL_MAX = 512,   /* bytes up to which a value is recorded whole */
    DETAIL_BEGINS = 200 /* bytes recorded of a longer value */
};

static void put_value(struct buf *b, const char *key, struct slice json)
{
    json_key(b, key);
    if (!json.ptr) {
        json_null(b);
        return;
    }
    if (json.len <= DETAIL_MAX) {
        json_raw(b, json);
        return;
    }
    size_t len = DETAIL_BEGINS;
    while (len > 0 && ((unsigned char)json.ptr[len] & 0xc0) == 0x80)
        len--; /* not in the middle of a character */
    json_open(b, '{');
    json_key(b, "bytes");
    json_number(b, (int64_t)json.len);
    json_key(b, "begins");
    json_string(b, (struct slice){json.ptr, len});
    json_close(b, '}');
}

static struct slice detail_of(struct live *l, struct slice before, struct slice after)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    put_value(&b, "before", before);
    put_value(&b, "after", after);
    json_close(&b, '}');
    return arena_copy(&l->arena, buf_view(&b));
}

/* Also records the attempt up to which it holds. */
static struct slice detail_of_resolved(struct live *l, const struct step *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"before\":\"unknown\",\"after\":\"none\",\"attempt\":%" PRIu32 "}", s->attempt);
    return arena_copy(&l->arena, buf_view(&b));
}

/* The outputs of a list are in the rows of its items: NONE. */
static struct slice output_here(const struct step *s)
{
    return s->output.json.len > 0 ? s->output.json : SLICE_NONE;
}

static void describe(struct live *l, struct command *c, const struct event *e)
{
    const struct task *t = &l->task;
    bool known = e->step >= 0 && e->step < task_unit_count(t);

    c->detail = SLICE_NONE;
    if (e->kind == EVENT_RETRY_FROM)
        c->detail = SLICE("{\"from\":true}");
    if (e->kind == EVENT_CORRECT && e->step < 0)
        c->detail = detail_of(l, t->input.json, e->input.json);
    if (e->kind == EVENT_CORRECT && known)
        c->detail = detail_of(l, t->steps[e->step].input.json, e->input.json);
    if (e->kind == EVENT_RESOLVE && known)
        c->detail = detail_of_resolved(l, &t->steps[e->step]);
    bool gives = e->kind == EVENT_SUPPLY || (e->kind == EVENT_SKIP && e->output.json.ptr);
    if (gives && known)
        c->detail = detail_of(l, output_here(&t->steps[e->step]), e->output.json);
}

/* ---- from the ask to the event ---- */

/* Checks the input as at submission, with the task's own version of the workflow. */
static bool task_input(struct live *l, struct ask *a, struct value *ret)
{
    struct arena tree = {0};
    struct error e = {0};
    struct slice checked = SLICE_NONE;
    enum err err = definition_check_input(l->definition, a->input, &tree, &checked, &e);

    if (err == ERR_OK)
        ret->json = arena_copy(&l->arena, checked);
    else
        (void)snprintf(a->story, sizeof a->story, "%.199s", e.text);
    arena_fini(&tree);
    return err == ERR_OK;
}

/* An operator would change what people allowed, or decide in their place. A correction that would
 * be refused anyway, or changes nothing, gets that answer. */
static bool needs_admin(const struct live *l, const struct event *e)
{
    const struct workflow *w = &l->definition->workflow;
    const struct task *t = &l->task;

    if (e->step >= task_unit_count(t))
        return false;
    int step = e->step < 0 ? e->step : unit_step(w, (uint16_t)e->step);
    if (!operator_needs_admin(w, t, e->kind, step))
        return false;
    if (e->kind != EVENT_CORRECT)
        return true;
    const struct value *input = e->step < 0 ? &t->input : &t->steps[e->step].input;
    return operator_may(w, t, EVENT_CORRECT, e->step, 0) && !slice_eq(input->json, e->input.json);
}

static bool admin_is_missing(struct ask *a, const struct event *e)
{
    if (a->is_admin)
        return false;
    a->refusal = OBSTACLE_ADMIN;
    if (e->kind == EVENT_CORRECT && e->step < 0)
        (void)snprintf(a->story, sizeof a->story,
                       "people have decided on this input: another one requires the role admin, or "
                       "retry --from their step first, so that they are asked anew");
    else
        (void)snprintf(a->story, sizeof a->story, "step \"%.*s\" %s requires the role admin",
                       SLICE_ARG(slice_cut(a->step, ASK_NAME_TOLD)),
                       e->kind == EVENT_CORRECT
                           ? "needs the approval of people: an input that they are not asked about"
                           : "asks people: deciding in their place");
    return true;
}

/* The output says who decided. */
static bool override_event(struct live *l, struct ask *a, struct event *e)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *given = NULL;

    if (a->output.ptr
        && (json_parse(&tree, arena_copy(&tree, a->output), &given, NULL) != ERR_OK
            || given->type != JSON_OBJECT)) {
        (void)snprintf(a->story, sizeof a->story,
                       "step \"%.*s\" asks people: its output must be an object",
                       SLICE_ARG(slice_cut(a->step, ASK_NAME_TOLD)));
        return false;
    }
    json_open(&b, '{');
    json_member_bool(&b, "overridden", true);
    if (!given && e->kind == EVENT_SUPPLY)
        json_member_bool(&b, "approved", true);
    for (const struct json *m = given ? given->child : NULL; m; m = m->next)
        if (!slice_is(m->key, "overridden")) {
            json_key_slice(&b, m->key);
            json_raw(&b, m->raw);
        }
    json_close(&b, '}');
    e->output.json = arena_copy(&l->arena, buf_view(&b));
    return true;
}

bool operator_event(struct live *l, struct command *c, struct event *ret)
{
    struct ask *a = c->ask;
    struct event e = {.kind = verbs[a->kind].event, .step = -1};

    ASSERT(a->kind < COUNT_OF(verbs));
    ASSERT(a->kind != ASK_SUBMIT);
    ASSERT(a->kind != ASK_SIGNAL && a->kind != ASK_DROP);
    ASSERT(a->kind != ASK_APPROVE && a->kind != ASK_REJECT);
    ASSERT(l->loaded);
    a->story[0] = 0; /* of an earlier evaluation */
    a->refusal = OBSTACLE_NONE;
    if (a->kind == ASK_RETRY && a->from)
        e.kind = EVENT_RETRY_FROM;
    if (a->step.ptr) {
        e.step = live_unit_named(l, a->step);
        if (e.step < 0)
            e.step = task_unit_count(&l->task); /* there is no such step */
    }
    if (a->kind == ASK_CORRECT && e.step < 0 && !task_input(l, a, &e.input))
        return false;
    if (a->kind == ASK_CORRECT && e.step >= 0)
        e.input.json = arena_copy(&l->arena, a->input);
    e.output.json = arena_copy(&l->arena, a->output);
    bool as_admin = needs_admin(l, &e);
    if (as_admin && admin_is_missing(a, &e))
        return false;
    if (as_admin && e.kind != EVENT_CORRECT && !override_event(l, a, &e))
        return false;
    e.attempt = a->attempt;
    e.until = a->looked_at;
    e.error.code = slice_of(verbs[a->kind].code);
    e.error.message = arena_copy(&l->arena, a->reason);
    describe(l, c, &e);
    *ret = e;
    return true;
}

/* ---- obstacles in words ---- */

static void explain_state(struct ask *a, const struct task *t)
{
    (void)snprintf(a->story, sizeof a->story, "not possible while task %.*s is %s%s%s",
                   SLICE_ARG(t->id), task_state_text(t->state), operator_direction_text(t),
                   t->paused_at != 0 ? ", paused" : "");
}

static void explain_step(struct ask *a, const char *what, struct slice step)
{
    (void)snprintf(a->story, sizeof a->story, "step \"%.*s\" %s", SLICE_ARG(step), what);
}

static void explain_pivot(struct ask *a, const struct task *t, uint16_t at, struct slice step)
{
    if (t->state == TASK_PROCESSED)
        explain_step(a,
                     "is a pivot that took effect or may have: the processed task cannot be undone",
                     step);
    else if (step_in_doubt(&t->steps[at]) && !step_is_open(&t->steps[at]))
        explain_step(
            a,
            "is a pivot that may have taken effect: find out whether it did, then supply its "
            "output or resolve the step",
            step);
    else
        explain_step(a, "is a pivot that took effect or may have: the task cannot be undone", step);
}

static void explain_until(struct ask *a, const struct live *l)
{
    CLEANUP(buf_fini) struct buf until = {0};

    time_write(&until, task_undo_until(&l->definition->workflow, &l->task));
    (void)snprintf(
        a->story, sizeof a->story,
        "task %.*s is processed and could be undone only until %.*s (undo_until of its workflow)",
        SLICE_ARG(l->id), SLICE_ARG(buf_view(&until)));
}

static void explain_early(struct ask *a, const struct step *s, struct slice step)
{
    CLEANUP(buf_fini) struct buf until = {0};

    time_write(&until, operator_may_resolve_at(s));
    (void)snprintf(a->story, sizeof a->story,
                   "an attempt of step \"%.*s\" may still take effect until %.*s: send the request "
                   "again after that",
                   SLICE_ARG(slice_cut(step, ASK_NAME_TOLD)), SLICE_ARG(buf_view(&until)));
}

static void explain_newer(struct ask *a, const struct step *s, struct slice step)
{
    (void)snprintf(a->story, sizeof a->story,
                   "the latest attempt of step \"%.*s\" is number %" PRIu32
                   ": inspect that attempt, then send the request again",
                   SLICE_ARG(slice_cut(step, ASK_NAME_TOLD)), s->attempt);
}

/* Names the steps from `from` on that took effect. */
static void explain_effects(struct ask *a, const struct live *l, int from)
{
    CLEANUP(buf_fini) struct buf names = {0};
    const struct workflow *w = &l->definition->workflow;
    uint16_t list[STEPS_MAX];
    size_t count = operator_effects(w, &l->task, (uint16_t)from, list);

    for (size_t i = 0; i < count && names.len < 80; i++)
        buf_fmt(&names, "%s\"%.*s\"", i ? ", " : "", SLICE_ARG(w->steps[list[i]].name));
    if (names.len >= 80)
        buf_str(&names, " ...");
    (void)snprintf(a->story, sizeof a->story,
                   "effects can only be reverted by undo; these steps took effect: %s", names.ptr);
}

/* A failed item is retried if fewer are at work than may be. */
static bool lacks_place(const struct live *l, const struct event *e)
{
    const struct workflow *w = &l->definition->workflow;
    const struct step *s = e->step >= 0 ? &l->task.steps[e->step] : NULL;

    return e->kind == EVENT_RETRY && s && unit_is_slot(w, e->step) && s->state == STEP_FAILED
           && s->direction == DIRECTION_FORWARD && l->task.state == TASK_ERROR
           && item_may_be_repaired(w, &l->task, (uint16_t)e->step);
}

static void explain_obstacle(struct ask *a, const struct live *l, const struct event *e,
                             enum obstacle o, uint16_t at)
{
    CLEANUP(arena_fini) struct arena names = {0};
    const struct task *t = &l->task;
    struct slice step = live_unit_name(l, at, &names);

    switch (o) {
    case OBSTACLE_NEW:
        explain_step(a, "has not started, and no step after it has: there is nothing to restart",
                     step);
        return;
    case OBSTACLE_CLOSED:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s was closed; reopen it first: intact reopen %.*s --reason ...",
                       SLICE_ARG(t->id), SLICE_ARG(t->id));
        return;
    case OBSTACLE_OPEN:
        explain_step(a, "is running; wait until it has ended, or pause the task", step);
        return;
    case OBSTACLE_DOUBT:
        explain_step(
            a,
            "is in doubt: find out whether it took effect, then supply its output or resolve the "
            "step; or retry it unchanged",
            step);
        return;
    case OBSTACLE_EFFECT:
        if (e->kind == EVENT_RETRY_FROM)
            explain_effects(a, l, e->step);
        else
            explain_step(a, "already took effect; only undo can revert it", step);
        return;
    case OBSTACLE_ENDED:
        explain_step(a, "has already ended", step);
        return;
    case OBSTACLE_TASK_UNDONE:
        (void)snprintf(a->story, sizeof a->story, "task %.*s is being undone", SLICE_ARG(t->id));
        return;
    case OBSTACLE_STOPPED:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s has stopped in error: none of its steps is running",
                       SLICE_ARG(t->id));
        return;
    case OBSTACLE_STOPPING:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s is about to stop in error; send the request again after that",
                       SLICE_ARG(t->id));
        return;
    case OBSTACLE_PIVOT:
        explain_pivot(a, t, at, step);
        return;
    case OBSTACLE_KNOWN:
        explain_step(a, "is not in doubt: there is nothing to resolve", step);
        return;
    case OBSTACLE_EARLY:
        explain_early(a, &t->steps[at], step);
        return;
    case OBSTACLE_KIND:
        explain_step(a,
                     e->kind == EVENT_RETRY
                         ? "is a wait, which has no attempts; skip it to end it"
                         : "is a wait, which has no input; correct the input of the task, or skip "
                           "the step",
                     step);
        return;
    case OBSTACLE_UNTIL:
        explain_until(a, l);
        return;
    case OBSTACLE_CHILD:
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s is a child; send the request to the root of its family, task "
                       "%.*s",
                       SLICE_ARG(t->id), SLICE_ARG(t->root));
        return;
    case OBSTACLE_CHILD_RUNS:
        explain_step(a, "waits for its child, which is running", step);
        return;
    case OBSTACLE_CHILD_STOPPED:
        explain_step(a,
                     "waits for its child, which stopped in error: retry or undo the child, or "
                     "skip the step",
                     step);
        return;
    case OBSTACLE_UNDOING:
        explain_step(
            a,
            "is being undone, whether it took effect or not: retry its undo, or skip it after you "
            "have undone it by hand",
            step);
        return;
    case OBSTACLE_NEWER:
        explain_newer(a, &t->steps[at], step);
        return;
    case OBSTACLE_SIGNAL_UNWANTED:
    case OBSTACLE_SIGNAL_FULL:
    case OBSTACLE_SIGNAL_MANY:
    case OBSTACLE_SIGNAL_OTHER:
    case OBSTACLE_VOTE_UNASKED:
    case OBSTACLE_VOTE_ANEW:
    case OBSTACLE_VOTE_GROUP:
    case OBSTACLE_VOTE_SUBMITTER:
    case OBSTACLE_VOTE_OTHER:
    case OBSTACLE_VOTE_FULL:
    case OBSTACLE_ADMIN:
        UNREACHABLE(); /* explained by signals.c, votes.c, admin_is_missing() */
    case OBSTACLE_NONE:
    case OBSTACLE_STATE:
        if (lacks_place(l, e))
            explain_step(a,
                         "has no place: as many items of its list are at work as may be; send the "
                         "request again when one of them has ended",
                         step);
        else
            explain_state(a, t);
        return;
    }
    UNREACHABLE();
}

/* An item of the list that has not begun is no unknown step. */
static bool has_not_begun(const struct live *l, struct slice name)
{
    struct item_ref item;
    int step = -1;

    return live_item_named(l, name, &item, &step) && l->task.steps[step].items
           && item.number >= l->task.steps[step].items->begun
           && item.number < l->task.steps[step].items->list.count;
}

void operator_explain(struct scheduler *s, const struct live *l, struct command *c,
                      const struct event *e)
{
    struct ask *a = c->ask;
    uint16_t at = 0;

    if (c->answer == ANSWER_UNKNOWN && has_not_begun(l, a->step)) {
        c->answer = ANSWER_REFUSED;
        a->refusal = OBSTACLE_STATE;
        explain_step(a, "has not begun", slice_cut(a->step, ASK_NAME_TOLD));
        return;
    }
    if (c->answer == ANSWER_UNKNOWN)
        (void)snprintf(a->story, sizeof a->story, "task %.*s has no step \"%.*s\"",
                       SLICE_ARG(l->id), SLICE_ARG(slice_cut(a->step, ASK_NAME_TOLD)));
    if (c->answer != ANSWER_REFUSED)
        return;
    a->refusal = operator_obstacle(&l->definition->workflow, &l->task, e->kind, e->step,
                                   scheduler_now(s), &at);
    if (a->refusal == OBSTACLE_NONE)
        a->refusal = e->kind == EVENT_RESOLVE ? OBSTACLE_NEWER : OBSTACLE_STATE;
    explain_obstacle(a, l, e, a->refusal, at);
}

/* A cancel of an operation is counted with others by its reason, which is as short as theirs. */
void operator_explain_cancel(struct scheduler *s, const struct live *l, struct command *c)
{
    const struct event undo = {.kind = EVENT_UNDO, .step = -1};
    const struct task *t = &l->task;
    struct ask *a = c->ask;
    uint16_t at = 0;

    a->story[0] = 0; /* of an earlier evaluation */
    if (c->answer != ANSWER_REFUSED || t->state != TASK_PROCESSED || a->bulk)
        return;
    enum obstacle o =
        operator_obstacle(&l->definition->workflow, t, EVENT_UNDO, -1, scheduler_now(s), &at);
    if (o == OBSTACLE_NONE)
        (void)snprintf(a->story, sizeof a->story,
                       "task %.*s is processed: it is too late to cancel it, but an operator can "
                       "undo it",
                       SLICE_ARG(t->id));
    else
        explain_obstacle(a, l, &undo, o, at);
}

void operator_done(struct live *l, struct command *c)
{
    struct ask *a = c->ask;

    ASSERT(l->loaded);
    a->outcome = ERR_OK;
    a->existed = c->answer == ANSWER_REPEATED;
    if (c->answer == ANSWER_UNKNOWN)
        a->outcome = ERR_INVALID;
    else if (c->answer == ANSWER_REFUSED)
        a->outcome = ERR_CONFLICT;
    if (a->expired) {
        a->outcome = ERR_BUSY;
        (void)snprintf(a->story, sizeof a->story, "the request was not processed in time");
    }
    if (a->not_own) {
        a->not_own_of = l->definition->workflow.name;
        a->outcome = ERR_NOT_FOUND;
        (void)snprintf(a->story, sizeof a->story, "there is no such task");
    }
    if (c->answer == ANSWER_REFUSED && !a->story[0])
        explain_state(a, &l->task); /* refused without a decision */
}
