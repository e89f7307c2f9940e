/* The changes of a batch: what a commit writes of each task that is dirty. Marks these tasks as in
 * flight; what follows from the outcome is in landed.c. */

#include "scheduler/job.h"

/* A lower bound is enough: wake_at moves only when it must be earlier, or when the task ends or is
 * released. A task at work has no deadline between two attempts, but will have one. */
static void set_wake_at(const struct live *l, struct change *c)
{
    int64_t wake_at = task_wake_at(&l->task);
    bool at_work = c->row.locked_by.ptr && !task_state_is_end(l->task.state);

    if (l->fresh) {
        c->row.wake_at = wake_at;
        return;
    }
    bool keep = l->row_wake_at != 0 && (wake_at ? l->row_wake_at <= wake_at : at_work);
    c->row.wake_at = keep ? l->row_wake_at : wake_at;
    c->wake_moved = c->row.wake_at != l->row_wake_at;
}

/* Calls with a part in this batch are answered with it; later arrivals go to the next batch. */
static void close_calls(struct live *l)
{
    LIST_FOREACH (link, after, &l->active) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        if (ls->work && ls->pending)
            dispatch_close(ls->work);
    }
    LIST_FOREACH (link, after, &l->applied) {
        struct command *c = CONTAINER_OF(link, struct command, link);
        if (c->kind == COMMAND_RESULT)
            dispatch_close(c->work);
    }
}

static void release_if_idle(struct scheduler *s, struct live *l)
{
    const struct event release = {.kind = EVENT_RELEASE, .step = -1};

    if (!release_is_due(s, l))
        return;
    enum answer answer =
        decide(&l->definition->workflow, &l->task, &release, scheduler_now(s), &l->fx);
    ASSERT(answer == ANSWER_ACCEPTED);
}

/* Operator changes since the last commit are stored with their effects: both are durable, or
 * neither is. After a conflict both are decided and recorded again. */
static void fill_audits(struct scheduler *s, struct job *j, const struct live *l, struct change *c)
{
    struct audit *audits = NULL;
    size_t count = 0;

    LIST_FOREACH (link, after, &l->applied)
        count += CONTAINER_OF(link, struct command, link)->kind == COMMAND_ASK;
    if (count == 0)
        return;
    audits = arena_alloc(&j->arena, count * sizeof *audits);
    c->audits = audits;
    LIST_FOREACH (link, after, &l->applied) {
        const struct command *cmd = CONTAINER_OF(link, struct command, link);
        const struct ask *a = cmd->ask;
        if (cmd->kind != COMMAND_ASK || a->kind == ASK_SUBMIT || !a->actor.ptr
            || cmd->answer != ANSWER_ACCEPTED)
            continue;
        ASSERT(c->audit_count < count);
        audits[c->audit_count++] = (struct audit){.at = scheduler_now(s),
                                                  .actor = a->actor,
                                                  .verb = slice_of(ask_kind_text(a->kind)),
                                                  .task = l->id,
                                                  .step = a->step,
                                                  .reason = a->reason,
                                                  .detail = arena_copy(&j->arena, cmd->detail),
                                                  .address = a->address};
    }
}

/* The notices on which it was decided go with it. Others are settled by whoever read them. */
static void fill_notices(struct job *j, const struct live *l, struct change *c)
{
    int64_t *notices = NULL;

    LIST_FOREACH (link, after, &l->applied) {
        const struct command *cmd = CONTAINER_OF(link, struct command, link);
        if (cmd->kind != COMMAND_ASK || !cmd->ask->notice || cmd->answer != ANSWER_ACCEPTED)
            continue;
        if (!notices)
            notices = arena_alloc(&j->arena, NOTICES_OF_CHANGE_MAX * sizeof *notices);
        ASSERT(c->notice_count < NOTICES_OF_CHANGE_MAX);
        notices[c->notice_count++] = cmd->ask->notice;
    }
    c->notices = notices;
}

/* The messages are stored with the change: both are durable, or neither is. */
static void fill_messages(struct scheduler *s, struct job *j, const struct live *l,
                          struct change *c)
{
    const struct telling now = {
        .workflow = &l->definition->workflow,
        .task = &l->task,
        .revision = c->row.revision,
        .reply = &l->reply,
        .source = s->config.source,
        .alert = l->fx.alert,
        .now = scheduler_now(s),
    };

    ASSERT(l->reply.to.ptr);
    ASSERT(c->row.revision > 0);
    c->messages =
        messages_of(&l->messages, &now, scheduler_scratch(s), &j->arena, &c->message_count);
}

/* What has become of its lock since its row was written. */
static enum lock_move lock_move_of(const struct live *l, const struct task_row *row)
{
    int64_t before = l->fresh ? 0 : l->row_lock_since;

    if ((before == 0) != (row->lock_since == 0))
        return before == 0 ? LOCK_TAKE : LOCK_DROP;
    return !l->fresh && l->row_queues && !row_queues(row) ? LOCK_QUIT : LOCK_STAYS;
}

/* Items at rest are not in memory, so the record cannot be shown from there. */
static bool is_shown(const struct scheduler *s, const struct live *l)
{
    return effects_end(l->fx, l->task.state) && l->task.slot_count == 0 && s->outside.is_awaited
           && s->outside.is_awaited(s->outside.arg, l->id);
}

static void fill_change(struct scheduler *s, struct job *j, struct live *l, struct change *c)
{
    struct buf *doc = scheduler_scratch(s);

    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    ASSERT(l->fresh || l->task.revision > 0);
    *c = (struct change){.kind = l->fresh ? CHANGE_INSERT : CHANGE_UPDATE,
                         .submission = l->fresh ? l->submission : 0};
    task_encode_again(&l->definition->workflow, &l->task, l->encoded, &j->arena, doc, &c->row);
    c->row.doc = arena_copy(&j->arena, buf_view(doc));
    c->row.revision = l->fresh ? 1 : l->task.revision + 1;
    c->row.seq = l->fresh ? 0 : l->row_seq;
    c->drops_overruns = overrun_is_over(s, l);
    c->drops_waits = !l->fresh && l->has_waits;
    c->shows_operations = is_shown(s, l);
    c->row.waiting_for = SLICE_NONE;
    c->row.rank = task_rank(&l->task);
    if (l->task.state == TASK_PENDING && !l->task.locked_by.ptr && l->task.paused_at == 0)
        release_wait_fields(s, l, &j->arena, &c->row); /* no claim finds a paused task */
    c->lock_move = lock_move_of(l, &c->row);
    /* Whoever waits for it is found by this batch. */
    s->locks |= c->lock_move == LOCK_DROP || c->lock_move == LOCK_QUIT;
    ASSERT(c->row.doc.len > 0);
    set_wake_at(l, c);
    fill_audits(s, j, l, c);
    fill_notices(j, l, c);
    if (family_has(l))
        family_fill(s, j, l, c);
    if (l->reply.to.ptr)
        fill_messages(s, j, l, c);
}

/* An accepted event without a change needs no commit, but other nodes may have made the answer
 * untrue. */
static void answer_without_commit(struct scheduler *s, struct live *l)
{
    if (s->config.shared && !list_empty(&l->applied))
        live_reload(&s->tasks, l);
    else
        commands_durable(s, l);
}

static size_t size_of(const struct change *c)
{
    size_t size = c->row.doc.len;

    for (size_t i = 0; i < c->row.payload_count; i++)
        size += c->row.payloads[i].json.len;
    for (size_t i = 0; i < c->tell_count; i++)
        size += c->tells[i].body.len;
    for (size_t i = 0; i < c->child_count; i++)
        size += c->children[i].input.len;
    for (size_t i = 0; i < c->row.item_count; i++)
        size += c->row.items[i].doc.len;
    return size;
}

/* True if an expression must be evaluated first and this turn may not. A new task is not stored
 * before its conditions are decided. */
static bool has_to_wait(struct scheduler *s, struct live *l)
{
    if (l->fresh && link_is_in(&l->undecided))
        return true;
    if (!l->fx.ended || l->task.state != TASK_PROCESSED || !l->definition->output)
        return false;
    if ((l->task.slot_count > 0 && items_await_outputs(s, l))
        || !effort_may(&s->tasks.effort, EFFORT_OUTPUTS))
        return true;
    input_output(s, l);
    return false;
}

void change_gather(struct scheduler *s, struct job *j)
{
    /* limits the allocation, which is zeroed: most batches have one or two changes */
    size_t max = list_count(&s->tasks.dirty, s->config.batch_max);
    size_t size = 0;
    struct link later;

    if (max == 0)
        return;
    list_init(&later);
    j->batch.changes = arena_alloc(&j->arena, max * sizeof *j->batch.changes);
    j->lives = arena_alloc(&j->arena, max * sizeof(struct live *));
    struct link *first = NULL;
    while (j->batch.change_count < max && size < s->config.batch_bytes
           && (first = list_pop(&s->tasks.dirty)) != NULL) {
        struct live *l = CONTAINER_OF(first, struct live, dirty_link);
        ASSERT(l->loaded);
        ASSERT(!l->in_flight);
        release_if_idle(s, l);
        if (!l->fx.changed && !l->fresh) {
            answer_without_commit(s, l);
            continue;
        }
        if (has_to_wait(s, l)) {
            list_push(&later, &l->dirty_link);
            continue;
        }
        size_t n = j->batch.change_count++;
        if (l->bulk_at == 0)
            s->tasks.counts.others_at = scheduler_now(s);
        fill_change(s, j, l, &j->batch.changes[n]);
        size += size_of(&j->batch.changes[n]);
        j->lives[n] = l;
        queue_leave_all(&s->tasks, l);
        close_calls(l);
        l->in_flight = true;
    }
    list_take_all(&later, &s->tasks.dirty);
    list_take_all(&s->tasks.dirty, &later);
}
