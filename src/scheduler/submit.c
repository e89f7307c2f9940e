/* Submissions: makes a new task, or compares with the existing one. Called by commands.c; change.c
 * stores the task. */

#include "core/items.h"
#include "scheduler/internal.h"

#include <stdio.h>

/* A child ends no later than its parent's step has time. */
static int64_t complete_by_of(const struct ask *a, int64_t now)
{
    const struct workflow *w = &a->definition->workflow;
    int64_t own = w->complete_by_ms ? max_i64(now, a->not_before) + w->complete_by_ms : 0;

    return own && a->complete_by_cap ? min_i64(own, a->complete_by_cap)
                                     : max_i64(own, a->complete_by_cap);
}

/* The items of steps with for_each: none so far. */
static void make_items(struct live *l, const struct workflow *w)
{
    l->items = arena_alloc(&l->arena, w->step_count * sizeof *l->items);
    for (uint16_t i = 0; i < w->step_count; i++)
        if (w->steps[i].kind == KIND_EACH) {
            l->task.steps[i].items = arena_alloc(&l->arena, sizeof(struct items));
            items_tally(w, &l->task, i);
        }
}

static void begin(struct scheduler *s, struct live *l, const struct ask *a)
{
    const struct workflow *w = &a->definition->workflow;
    int64_t now = scheduler_now(s);
    struct task *t = &l->task;

    ASSERT(!l->loaded);
    ASSERT(!l->in_flight);
    ASSERT(w->step_count > 0);
    ASSERT(w->version > 0);
    l->loaded = l->fresh = true;
    l->submission = a->submission;
    l->definition = a->definition;
    l->encoded = encoded_new(w, &l->arena);
    *t = (struct task){
        .id = l->id,
        .state = TASK_PENDING,
        .priority = a->priority,
        .not_before = a->not_before,
        .submitted_at = now,
        .paused_at = a->paused ? now : 0,
        .content = {a->content.hash, arena_copy(&l->arena, a->content.sha256)},
        .input.json = arena_copy(&l->arena, a->input),
        .reply_to = arena_copy(&l->arena, a->reply_to),
        .tags = arena_copy(&l->arena, a->tags),
        .trace = arena_copy(&l->arena, a->trace),
        .owner = arena_copy(&l->arena, a->owner),
        .submitter =
            slice_eq(a->submitter, a->owner) ? SLICE_NONE : arena_copy(&l->arena, a->submitter),
        .complete_by = complete_by_of(a, now),
        .parent = arena_copy(&l->arena, a->parent),
        .root = arena_copy(&l->arena, a->root),
        .parent_step = arena_copy(&l->arena, a->parent_step),
        .parent_number = a->parent_number,
        .family = w->child_step_count > 0 ? arena_copy(&l->arena, a->family) : SLICE_NONE,
        .step_count = w->step_count,
        .slot_count = w->slot_count,
    };
    t->steps = arena_alloc(&l->arena, task_unit_count(t) * sizeof *t->steps);
    if (w->slot_count > 0)
        make_items(l, w);
    l->steps = arena_alloc(&l->arena, task_unit_count(t) * sizeof *l->steps);
    for (uint16_t i = 0; i < task_unit_count(t); i++) {
        l->steps[i].live = l;
        l->steps[i].step = i;
        list_init(&l->steps[i].sent);
        list_init(&l->steps[i].assigned);
    }
    reply_read(t->reply_to, &l->arena, &l->reply);
    l->family.state = t->parent.ptr ? CHILD_RUNNING : CHILD_NONE; /* as its parent knows it */
}

bool submit_has_to_wait(struct scheduler *s, struct live *l, const struct command *c)
{
    const struct ask *a = c->ask;

    ASSERT(a->kind == ASK_SUBMIT);
    if (l->loaded || !a->definition->lock_key || a->only_if_exists
        || l->deleted.until > scheduler_now(s) || effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return false;
    if (!link_is_in(&l->undecided))
        list_push(&s->tasks.undecided, &l->undecided);
    return true;
}

/* The key is fixed now. Where nobody waits, the lock is taken with the insertion. False: it has no
 * key, and is not accepted. */
static bool fix_lock(struct scheduler *s, struct live *l, struct ask *a)
{
    struct error e = {0};

    if (!l->definition->lock_key)
        return true;
    if (input_lock(s, l, &l->task.lock, &e) == ERR_OK) {
        if (l->definition->workflow.lock.if_taken == IF_TAKEN_REFUSE)
            l->task.lock_since = scheduler_now(s);
        if (l->definition->workflow.lock.if_taken == IF_TAKEN_REPLACE)
            l->task.lock_mode = LOCK_REPLACES;
        return true;
    }
    a->outcome = ERR_INVALID;
    a->bad_key = true;
    (void)snprintf(a->story, sizeof a->story, "%.*s",
                   SLICE_ARG(slice_cut(slice_of(e.text), sizeof a->story - 1)));
    live_unload(&s->tasks, l);
    return false;
}

/* A task without an owner is not another's: a submission of before there were owners, or in SQL,
 * is repeated by whoever has all of its content. */
static bool is_of_another(struct slice owner, const struct ask *a)
{
    return a->own_only && owner.ptr && !slice_eq(owner, a->owner);
}

/* The id is that of a task that was deleted, and is not free yet. */
static void submit_again(struct live *l, struct command *c)
{
    struct ask *a = c->ask;

    ASSERT(!l->loaded);
    ASSERT(l->deleted.until != 0);
    c->answer = ANSWER_REFUSED;
    a->existed = true;
    a->not_own = is_of_another(l->deleted.owner, a);
    if (a->not_own)
        return;
    a->deleted = true;
    a->version = l->deleted.version;
    a->state = l->deleted.state;
    a->ended_at = l->deleted.ended_at;
    if (a->by_id || content_is_same(&l->deleted.content, &a->content))
        c->answer = ANSWER_REPEATED;
}

static bool has_room(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    int64_t now = scheduler_now(s);
    size_t count = queue_ready(&s->tasks, l, &ready);

    if (task_lacks_lock(&l->task))
        return false;
    if (s->draining || s->tasks.counts.live >= s->config.live_max || !shared_may_claim(s))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!step_calls(&l->definition->workflow, &l->task, ready[i].step))
            continue;
        const struct lane *lane = queue_lane(&s->tasks, l, ready[i].step);
        struct backlog backlog = lane->limited ? lane->backlog : lane->agent->backlog;
        if (ready[i].at <= now && !backlog_any(backlog) && lane_room(lane, now) > 0)
            return true;
    }
    return false;
}

/* The task is stored, and the submission answered, once all conditions are decided that need no
 * agent. */
void submit_continue(struct scheduler *s, struct live *l)
{
    ASSERT(l->fresh);
    ASSERT(!l->in_flight);
    decisions_make(s, l);
    if (link_is_in(&l->undecided))
        return;
    /* A task that already turned back still has steps of on_undo, and only a claimed task can be
     * found in that state. If their agents are not connected, the batch releases it. */
    if (l->task.state == TASK_COMPENSATING || has_room(s, l)) {
        const struct event claim = {.kind = EVENT_CLAIM, .step = -1, .instance = s->me};
        enum answer answer = live_decide(&s->tasks, l, &claim);
        ASSERT(answer == ANSWER_ACCEPTED);
    }
}

/* The first submission of an id makes the task; later ones get the same task, or a conflict. */
void submit_apply(struct scheduler *s, struct live *l, struct command *c)
{
    struct ask *a = c->ask;

    ASSERT(a->kind == ASK_SUBMIT);
    ASSERT(a->definition);
    a->existed = l->loaded;
    a->bad_key = false;
    a->outcome = ERR_OK;
    a->version = a->definition->workflow.version;
    if (l->loaded) {
        a->version = l->definition->workflow.version;
        a->not_own = is_of_another(l->task.owner, a);
        bool is_same = a->by_id || content_is_same(&l->task.content, &a->content);
        c->answer = is_same && !a->not_own ? ANSWER_REPEATED : ANSWER_REFUSED;
        return;
    }
    if (l->deleted.until > scheduler_now(s)) {
        submit_again(l, c);
        return;
    }
    if (a->only_if_exists) {
        a->outcome = ERR_INVALID;
        c->answer = ANSWER_UNKNOWN;
        return;
    }
    if (overruns_too_often(&s->tasks.overruns, l->id)) {
        a->overran = true;
        c->answer = ANSWER_REFUSED;
        return;
    }
    begin(s, l, a);
    if (!fix_lock(s, l, a)) {
        c->answer = ANSWER_UNKNOWN;
        return;
    }
    live_dirty(&s->tasks, l);
    c->answer = ANSWER_ACCEPTED;
}

void submit_done(struct scheduler *s, const struct live *l, struct command *c)
{
    struct ask *a = c->ask;

    s->tasks.counts.submitted += c->answer == ANSWER_ACCEPTED;
    a->is_open = l->loaded && !task_state_is_end(l->task.state) && l->task.state != TASK_ERROR;
    if (c->answer == ANSWER_REFUSED) {
        a->outcome = ERR_CONFLICT;
        (void)snprintf(
            a->story, sizeof a->story,
            a->overran
                ? "task %.*s was not accepted: evaluating its conditions took too much processor "
                  "time and ended the server twice; submit other input with another id"
            : a->not_own ? "task %.*s exists, and was submitted with another token"
            : a->deleted ? "task %.*s existed with other content; it was deleted, but its id is "
                           "still reserved"
                         : "task %.*s exists, and was submitted with other content",
            SLICE_ARG(l->id));
    }
}
