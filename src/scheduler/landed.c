/* Applies a batch's outcome to the tasks in memory: durable changes, conflicts, failures, claimed
 * and read rows. turn.c calls it; tasks/live.c loads the rows. */

#include "core/items.h"
#include "scheduler/job.h"

#include <stdio.h>

#include "base/log.h"

enum { TROUBLE_PAUSE_MS = 250 };

/* Handles the outcome of a whole job. After any error, the next job waits a little. Only a commit
 * ends the trouble: a full disk can still be read. */
void landed_trouble(struct scheduler *s, enum err err, bool committed, const struct error *e)
{
    if (err != ERR_OK)
        s->retry_at = scheduler_now(s) + TROUBLE_PAUSE_MS;
    if (err != ERR_OK && !s->troubled) {
        s->troubled = true;
        s->outside.store_trouble(s->outside.arg, e);
    } else if (err == ERR_OK && committed && s->troubled) {
        s->troubled = false;
        s->outside.store_trouble(s->outside.arg, NULL);
    }
}

static void starts_are_durable(struct scheduler *s, struct live *l)
{
    LIST_FOREACH (link, after, &l->active) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        if (!ls->pending)
            continue;
        ls->pending = false;
        call_settle(&s->tasks, ls->work, 1);
    }
}

/* After a commit or a read: handles the commands that gathered meanwhile, or the next steps. */
static void continue_task(struct scheduler *s, struct live *l)
{
    if (l->reload)
        live_reload(&s->tasks, l);
    else if (!list_empty(&l->inbox))
        commands_process(s, l);
    else if (live_is_ours(&s->tasks, l))
        start_continue(s, l);
    else
        live_drop(&s->tasks, l);
}

static void continue_from_row(struct scheduler *s, struct live *l)
{
    s->just_read = l;
    continue_task(s, l);
    s->just_read = NULL;
}

/* `c`: the change that was committed; NULL: the task was read. */
static void report_end(struct scheduler *s, struct live *l, struct effects fx,
                       const struct change *c)
{
    bool shown = c && c->shows_operations;
    const struct task_end end = {.workflow = &l->definition->workflow,
                                 .task = &l->task,
                                 .row = shown ? &c->row : NULL,
                                 .operations = shown ? &c->operations : NULL};

    if (fx.alert)
        s->outside.alert(s->outside.arg, &l->task);
    if (effects_end(fx, l->task.state)) {
        s->tasks.counts.ended++;
        s->outside.task_ended(s->outside.arg, &end);
    }
}

/* A revision that was already reported, or is not new, is not reported again. */
static void report_change(struct scheduler *s, struct live *l)
{
    if (l->task.revision <= l->reported)
        return;
    l->reported = l->task.revision;
    if (s->outside.task_changed)
        s->outside.task_changed(s->outside.arg, &l->definition->workflow, &l->task);
}

static void landed_ok(struct scheduler *s, struct live *l, const struct change *c)
{
    struct effects fx = l->fx;

    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    ASSERT(c->row.revision > l->task.revision);
    l->task.revision = c->row.revision;
    l->row_wake_at = c->row.wake_at;
    l->row_seq = c->row.seq;
    l->has_waits = c->row.wait_count > 0;
    l->row_lock_since = c->row.lock_since;
    l->row_queues = row_queues(&c->row);
    l->fresh = false;
    l->erred = l->task.state == TASK_ERROR;
    if (c->drops_overruns)
        overruns_forget(&s->tasks.overruns, l->id);
    l->bulk_stored = l->bulk_at;
    l->fx = (struct effects){0};
    told_of(&l->task, &l->reply, &l->arena, &l->messages);
    report_change(s, l);
    counts_durable(&s->tasks, l);
    if (l->task.slot_count > 0)
        items_stored(&l->definition->workflow, &l->task);
    if (family_has(l))
        family_told_of(l);
    commands_durable(s, l);
    starts_are_durable(s, l);
    live_remove_resting(l);
    if (fx.stop_running)
        call_stop_forward(&s->tasks, l);
    report_end(s, l, fx, c);
    if (l->resend_wanted)
        call_wake_all(&s->tasks, l);
    continue_task(s, l);
}

/* Callers get the error and try again. An internal event stays in the inbox, because nobody would
 * send it again. */
static void fail_callers(struct scheduler *s, struct live *l, struct link *commands, enum err err,
                         const char *story)
{
    struct link events;

    list_init(&events);
    LIST_FOREACH (link, after, commands) {
        const struct command *c = CONTAINER_OF(link, struct command, link);
        if (c->kind != COMMAND_EVENT || !err_is_transient(err))
            continue;
        link_remove(link);
        list_push(&events, link);
    }
    commands_fail(s, l, commands, err, story);
    while (!list_empty(&events)) {
        struct link *last = events.prev;
        link_remove(last);
        list_push_front(&l->inbox, last);
    }
}

static bool is_notice(const struct command *c)
{
    return c->kind == COMMAND_ASK && c->ask->notice;
}

/* Another node may have decided on the notices of this change: whoever read them reads again. Later
 * ones wait for them. */
static void drop_notices(struct scheduler *s, struct live *l)
{
    struct link *const lists[] = {&l->applied, &l->inbox};
    struct link dropped;

    list_init(&dropped);
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        LIST_FOREACH (link, after, lists[i]) {
            if (!is_notice(CONTAINER_OF(link, struct command, link)))
                continue;
            link_remove(link);
            list_push(&dropped, link);
        }
    commands_fail(s, l, &dropped, ERR_BUSY, "the task was changed meanwhile");
}

/* Whether the change was made of notices alone: then what is wrong with it is wrong with them. */
static bool is_of_notices(const struct live *l)
{
    LIST_FOREACH (link, after, &l->applied) {
        if (!is_notice(CONTAINER_OF(link, struct command, link)))
            return false;
    }
    return true;
}

/* The store did not take the change. Its callers get the error; the row must be read again. */
static void landed_badly(struct scheduler *s, struct live *l, enum err err, const char *story)
{
    ASSERT(err != ERR_OK);
    bool gone = l->fresh && err != ERR_UNKNOWN; /* it was never created */

    l->outcome_unknown = err == ERR_UNKNOWN;
    if (err_is_transient(err) || !is_of_notices(l))
        drop_notices(s, l);
    fail_callers(s, l, &l->applied, err, story);
    if (gone && list_empty(&l->inbox))
        live_drop(&s->tasks, l);
    else
        live_reload(&s->tasks, l);
}

/* A new task that does not wait is refused, or an operator's verb that would need the lock. Only
 * who may read any task is told which one holds it. */
static void landed_taken(struct scheduler *s, struct live *l, const struct change *c)
{
    struct slice lock = slice_cut(c->row.lock, 80);
    struct link readers;
    char story[200];

    list_init(&readers);
    LIST_FOREACH (link, after, &l->applied) {
        const struct command *cmd = CONTAINER_OF(link, struct command, link);
        if (cmd->kind != COMMAND_ASK || !cmd->ask->reads_all)
            continue;
        link_remove(link);
        list_push(&readers, link);
    }
    (void)snprintf(story, sizeof story, "lock %.*s is held by task %.*s", SLICE_ARG(lock),
                   SLICE_ARG(slice_cut(c->lock_holder, 80)));
    commands_fail(s, l, &readers, ERR_TAKEN, story);
    (void)snprintf(story, sizeof story, "lock %.*s is held by another task", SLICE_ARG(lock));
    landed_badly(s, l, ERR_TAKEN, story);
}

void landed_change(struct scheduler *s, struct live *l, const struct change *c)
{
    if (c->outcome == ERR_OK) {
        landed_ok(s, l, c);
    } else if (c->outcome == ERR_CONFLICT) {
        s->tasks.counts.conflicts++;
        drop_notices(s, l);
        live_reload(&s->tasks, l);
    } else if (c->outcome == ERR_TAKEN) {
        landed_taken(s, l, c);
    } else {
        landed_badly(s, l, c->outcome, err_text(c->outcome));
    }
}

/* Limits the log lines: while nodes are upgraded, there may be thousands of tasks that a newer node
 * wrote. */
static void drop_unreadable(struct scheduler *s, struct live *l, const char *story)
{
    uint64_t left_out = 0;

    s->tasks.counts.unreadable++;
    if (log_burst_has_room(&s->unreadable, scheduler_now(s), &left_out))
        log_line(LOG_ERROR, "event=task_unreadable task=%.*s reason=\"%s\" left_out=%" PRIu64,
                 SLICE_ARG(l->id), story, left_out);
    commands_fail(s, l, &l->inbox, ERR_CORRUPT, story);
    live_drop(&s->tasks, l);
}

static void landed_row(struct scheduler *s, const struct task_row *row)
{
    struct live *l = live_find(&s->tasks, row->id);
    struct error e = {0};

    s->locks |= row->lock.ptr && row->lock_since == 0; /* others may have been behind it */
    if (l && (l->loaded || l->in_flight)) {            /* the claimed row is newer */
        l->found = true;
        if (l->in_flight)
            l->reload = true;
        else
            live_reload(&s->tasks, l);
        return;
    }
    if (!l)
        l = live_stub(&s->tasks, row->id);
    link_remove(&l->load_link);
    if (live_awaits_definition(&s->tasks, l, row)) {
        l->found = true;
        return;
    }
    if (!live_load(&s->tasks, l, row, &e)) {
        drop_unreadable(s, l, e.text);
        return;
    }
    report_change(s, l); /* the claim changed it */
    continue_from_row(s, l);
}

static void backlog_over(struct backlog *b, const struct claim *c)
{
    *(c->among ? &b->among : &b->alone) = false;
}

static void nothing_is_left(struct agent *a, const struct claim *c)
{
    if (c->rank_from == INT64_MIN)
        backlog_over(&a->backlog, c);
    a->stored = backlog_any(a->backlog);
    for (size_t i = 0; i < a->line_count; i++) {
        struct lane *l = a->lines[i];
        if (c->rank_from == l->line)
            backlog_over(&l->backlog, c);
        else if (c->rank_from == l->line + (INT64_C(1) << LINE_SHIFT))
            backlog_over(&l->more, c);
        a->stored |= backlog_any(l->backlog) || backlog_any(l->more);
    }
}

static enum due due_of(const struct claim *c)
{
    if (c->among)
        return DUE_AMONG;
    return slice_eq(c->agent, WAITING_WAIT) ? DUE_WAIT : DUE_TIME;
}

void landed_claim(struct scheduler *s, const struct claim *c)
{
    s->tasks.counts.claims += c->row_count;
    for (size_t i = 0; i < c->row_count; i++)
        landed_row(s, &c->rows[i]);
    switch (c->kind) {
    case CLAIM_BOOT:
        s->taking_over = c->more;
        break;
    case CLAIM_NODE:
        s->reclaiming = c->more;
        break;
    case CLAIM_TIME:
        s->due_at[due_of(c)] = c->more ? scheduler_now(s) : c->next_rank;
        break;
    case CLAIM_LOCK:
        /* If somebody else just changes what was found, the next survey finds it. */
        s->locks = c->more && (c->row_count > 0 || !s->config.shared);
        break;
    case CLAIM_AGENT:
        if (!c->more) /* what is submitted or released from now on sets it again */
            nothing_is_left(dispatch_agent(&s->tasks.dispatch, c->agent), c);
        break;
    }
}

void landed_claims_unknown(struct scheduler *s)
{
    s->checking_owned = s->uncounted = true;
    s->owned_state = TASK_PROCESSING;
    s->owned_before_seq = 0;
}

/* The row is ours: is it in memory, and current? */
static void check_owned(struct scheduler *s, const struct task_row *row)
{
    struct live *l = live_find(&s->tasks, row->id);

    if (!l) {
        l = live_stub(&s->tasks, row->id);
        l->found = true;
        list_push(&s->tasks.loads, &l->load_link);
    } else if (l->in_flight)
        l->reload = true;
    else if (l->loaded && l->task.revision != row->revision)
        live_reload(&s->tasks, l);
}

/* Handles a page of rows in work, newest first: owned rows that are not in memory are loaded. */
void landed_owned(struct scheduler *s, const struct row_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct task_row *row = &page->rows[i];
        if (slice_eq(row->locked_by, s->me))
            check_owned(s, row);
    }
    ASSERT(s->checking_owned);
    s->owned_before_seq = page->next_seq;
    if (page->more)
        return;
    s->checking_owned = s->owned_state == TASK_PROCESSING;
    s->owned_state = TASK_COMPENSATING;
    s->owned_before_seq = 0;
}

/* The task does not exist, so only a submission can go on. Commands that arrived during the read
 * may be for a task that another node inserted meanwhile: they cause a second read. */
static void row_is_missing(struct scheduler *s, struct live *l)
{
    struct link others;
    bool look_again = false;

    ASSERT(!l->loaded);
    list_init(&others);
    limits_forget(l); /* the attempts that it counted are not at work */
    LIST_FOREACH (link, after, &l->inbox) {
        const struct command *c = CONTAINER_OF(link, struct command, link);
        if (c->kind == COMMAND_ASK && c->ask->kind == ASK_SUBMIT)
            continue;
        if (s->config.shared && c->overtook) {
            look_again = true;
        } else {
            link_remove(link);
            list_push(&others, link);
        }
    }
    commands_fail(s, l, &others, ERR_NOT_FOUND, "there is no such task");
    if (look_again)
        list_push(&s->tasks.loads, &l->load_link);
    commands_process(s, l); /* drops it if nothing is left */
}

/* A commit of unknown outcome may have ended the task without a report. */
static void tell_what_was_unsure(struct scheduler *s, struct live *l)
{
    const struct effects fx = {
        .ended = task_state_is_end(l->task.state),
        .alert = l->task.state == TASK_ERROR,
    };

    if (l->outcome_unknown || l->found || l->reported != 0)
        report_change(s, l);
    l->reported = l->task.revision; /* a task that was only read has no news */
    if (l->outcome_unknown)
        report_end(s, l, fx, NULL);
    l->outcome_unknown = l->found = false;
}

/* Both in memory of the stub: its arena is emptied with whatever it reads. */
static void keep_owner(struct live *l, struct slice owner)
{
    struct slice kept = slice_cut(owner, sizeof l->deleted.owner_text);

    l->deleted.owner = SLICE_NONE;
    if (!owner.ptr)
        return;
    memcpy(l->deleted.owner_text, kept.ptr, kept.len);
    l->deleted.owner = (struct slice){l->deleted.owner_text, kept.len};
}

static void keep_content(struct live *l, const struct content *c)
{
    l->deleted.content = (struct content){.hash = c->hash};
    if (c->sha256.len != sizeof l->deleted.sha256)
        return;
    memcpy(l->deleted.sha256, c->sha256.ptr, sizeof l->deleted.sha256);
    l->deleted.content.sha256 = (struct slice){l->deleted.sha256, sizeof l->deleted.sha256};
}

void landed_load(struct scheduler *s, struct live *l, const struct reading *r)
{
    struct error e = {0};
    enum err err = r->err;
    const struct task_row *row = &r->row;
    const char *story = r->error.text;

    ASSERT(l->in_flight);
    ASSERT(!l->loaded);
    l->in_flight = false;
    l->reload = false;
    if (err == ERR_NOT_FOUND) {
        keep_content(l, &r->gone.content);
        keep_owner(l, r->gone.owner);
        l->deleted.version = r->gone.version;
        l->deleted.ended_at = r->gone.ended_at;
        l->deleted.until = r->gone.until;
        l->deleted.state = r->gone.state;
        row_is_missing(s, l);
    } else if (err == ERR_CORRUPT) {
        drop_unreadable(s, l, story);
    } else if (err != ERR_OK) {
        fail_callers(s, l, &l->inbox, err, story);
        list_push(&s->tasks.loads, &l->load_link); /* again: it may be ours */
    } else if (live_awaits_definition(&s->tasks, l, row)) {
        return; /* read again when its definition is known */
    } else if (!live_load(&s->tasks, l, row, &e)) {
        drop_unreadable(s, l, e.text);
    } else {
        tell_what_was_unsure(s, l);
        continue_from_row(s, l);
    }
}

/* What could not be read is read again. One that has ended is stored next, with its output. */
void landed_items(struct scheduler *s, struct item_reading *r)
{
    struct live *l = items_landed(s, r);

    if (!l)
        return;
    bool for_command = !r->outputs && r->rows.order == ITEMS_UP;
    if (for_command && r->err != ERR_OK && err_is_transient(r->err))
        fail_callers(s, l, &l->inbox, r->err, r->error.text);
    s->landing = for_command ? r : NULL;
    if (!list_empty(&l->inbox) || !live_is_ours(&s->tasks, l))
        commands_process(s, l); /* or lets it go, if all commands failed */
    else
        start_continue(s, l);
    s->landing = NULL;
}
