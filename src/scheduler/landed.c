/* Applies a batch's outcome to the tasks in memory: durable changes, conflicts, failures, claimed
 * and read rows. flush.c calls it; live.c loads the rows. */

#include "scheduler/internal.h"

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
    LIST_FOREACH (link, after, &l->astir) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, astir);
        if (!ls->pending)
            continue;
        ls->pending = false;
        call_settle(s, ls->work, 1);
    }
}

/* Everything about the step is durable and reported. */
static bool rests(const struct live_step *ls)
{
    return !ls->queue_of && !ls->instance && !ls->elsewhere && ls->trial == 0;
}

static void let_those_rest_that_do(struct live *l)
{
    LIST_FOREACH (link, after, &l->astir)
        if (rests(CONTAINER_OF(link, struct live_step, astir)))
            link_remove(link);
}

/* After a commit or a read: handles the commands that gathered meanwhile, or the next steps. */
static void go_on(struct scheduler *s, struct live *l)
{
    if (l->reload)
        live_reload(s, l);
    else if (!list_empty(&l->inbox))
        inbox_process(s, l);
    else if (live_is_ours(s, l))
        start_go_on(s, l);
    else
        live_drop(s, l);
}

static void go_on_from_row(struct scheduler *s, struct live *l)
{
    s->just_read = l;
    go_on(s, l);
    s->just_read = NULL;
}

static void tell_end(struct scheduler *s, struct live *l, struct effects fx)
{
    enum task_state state = l->task.state;

    if (fx.alert)
        s->outside.alert(s->outside.arg, &l->task);
    if (fx.ended || (fx.alert && state == TASK_ERROR)) {
        s->stats.ended++;
        s->outside.task_ended(s->outside.arg, &l->task);
    }
}

/* A revision that was already reported, or is not new, is not reported again. */
static void tell_change(struct scheduler *s, struct live *l)
{
    if (l->task.revision <= l->told)
        return;
    l->told = l->task.revision;
    if (s->outside.task_changed)
        s->outside.task_changed(s->outside.arg, &l->definition->workflow, &l->task);
}

/* The instance that had the latest attempt in that direction that reached it. */
static struct instance *who_had_it(const struct agent *a, const struct step *st, enum direction d)
{
    for (uint16_t i = st->attempt_count; i > 0; i--) {
        const struct attempt *at = &st->attempts[i - 1];
        if (at->direction == d
            && (at->elsewhere || at->outcome == OUTCOME_COMPLETED || at->outcome == OUTCOME_FAILED
                || at->outcome == OUTCOME_TIMED_OUT))
            return map_get(&a->instances, at->instance);
    }
    return NULL;
}

/* For its instance a handed-over attempt counts once, as a good end. */
static void count_handed_over(struct scheduler *s, struct live *l, uint16_t step)
{
    struct handed_over *h = &l->steps[step].handed_over;
    struct agent *a = agent_of_attempts(s, l, step, h->direction);
    struct instance *in = map_get(&a->instances, h->instance);

    if (in) {
        health_ended(&in->health, &a->ends, true, scheduler_now(s));
        instance_moved(in, scheduler_now(s));
    }
    breakers_handed_over(s, a, h);
    *h = (struct handed_over){0};
}

/* What an attempt's end says about its agent and instance. */
static void count_end_of(struct scheduler *s, struct live *l, uint16_t step)
{
    const struct attempt_end *end = &l->steps[step].end;
    struct agent *a = agent_of_attempts(s, l, step, end->direction);
    struct instance *in = who_had_it(a, &l->task.steps[step], end->direction);

    if (in)
        health_ended(&in->health, &a->ends, !end->bad, scheduler_now(s));
    if (in && !end->bad)
        instance_moved(in, scheduler_now(s));
    breakers_count(s, a, l, step);
}

/* Counts for the agents that had the attempts. */
static void count_step_ends(struct scheduler *s, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];

    if (ls->handed_over.instance.ptr)
        count_handed_over(s, l, step);
    for (int d = DIRECTION_FORWARD; d <= DIRECTION_UNDO; d++) {
        if (ls->completed[d] + ls->failed[d] == 0)
            continue;
        struct agent *a = agent_of_attempts(s, l, step, (enum direction)d);
        a->completed += ls->completed[d];
        a->failed += ls->failed[d];
        ls->completed[d] = ls->failed[d] = 0;
    }
    if (ls->end.any)
        count_end_of(s, l, step);
    if (ls->trial != 0 && !step_is_open(&l->task.steps[step]))
        breakers_trial_over(l, step);
}

static void count_ends(struct scheduler *s, struct live *l)
{
    for (size_t d = 0; d < COUNT_OF(l->ended); d++)
        for (size_t o = 0; o < ATTEMPT_ENDS; o++)
            s->stats.attempts[d][o] += l->ended[d][o];
    memset(l->ended, 0, sizeof l->ended);
    LIST_FOREACH (link, after, &l->astir)
        count_step_ends(s, l, CONTAINER_OF(link, struct live_step, astir)->step);
}

static void landed_ok(struct scheduler *s, struct live *l, const struct change *c)
{
    struct effects fx = l->fx;

    l->task.revision = c->row.revision;
    l->row_wake_at = c->row.wake_at;
    l->row_seq = c->row.seq;
    l->has_waits = c->row.wait_count > 0;
    l->fresh = false;
    l->erred = l->task.state == TASK_ERROR;
    if (c->drops_overruns)
        overruns_forget(s, l->id);
    l->bulk_stored = l->bulk_at;
    l->fx = (struct effects){0};
    told_of(&l->task, &l->reply, &l->arena, &l->messages);
    tell_change(s, l);
    count_ends(s, l);
    inbox_applied_done(s, l);
    starts_are_durable(s, l);
    let_those_rest_that_do(l);
    if (fx.stop_running)
        call_tell_stop(s, l);
    tell_end(s, l, fx);
    if (l->asked_for)
        call_poke_all(s, l);
    go_on(s, l);
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
    inbox_fail(s, l, commands, err, story);
    while (!list_empty(&events)) {
        struct link *last = events.prev;
        link_remove(last);
        list_push_front(&l->inbox, last);
    }
}

/* The store did not take the change. Its callers are told; the row must be read again. */
static void landed_badly(struct scheduler *s, struct live *l, enum err err)
{
    bool gone = l->fresh && err != ERR_UNKNOWN; /* it was never created */

    l->unsure = err == ERR_UNKNOWN;

    fail_callers(s, l, &l->applied, err, err_text(err));
    if (gone && list_empty(&l->inbox))
        live_drop(s, l);
    else
        live_reload(s, l);
}

void landed_change(struct scheduler *s, struct live *l, const struct change *c)
{
    if (c->outcome == ERR_OK) {
        landed_ok(s, l, c);
    } else if (c->outcome == ERR_CONFLICT) {
        s->stats.conflicts++;
        live_reload(s, l);
    } else {
        landed_badly(s, l, c->outcome);
    }
}

/* Limits the log lines: while nodes are upgraded, there may be thousands of tasks that a newer node
 * wrote. */
static void set_aside(struct scheduler *s, struct live *l, const char *story)
{
    uint64_t left_out = 0;

    s->stats.unreadable++;
    if (log_burst_has_room(&s->unreadable, scheduler_now(s), &left_out))
        log_line(LOG_ERROR, "event=task_unreadable task=%.*s reason=\"%s\" left_out=%" PRIu64,
                 SLICE_ARG(l->id), story, left_out);
    inbox_fail(s, l, &l->inbox, ERR_CORRUPT, story);
    live_drop(s, l);
}

static void landed_row(struct scheduler *s, const struct task_row *row)
{
    struct live *l = live_find(s, row->id);
    struct error e = {0};

    if (l && (l->loaded || l->in_flight)) { /* the claimed row is newer */
        l->found = true;
        if (l->in_flight)
            l->reload = true;
        else
            live_reload(s, l);
        return;
    }
    if (!l)
        l = live_stub(s, row->id);
    link_remove(&l->load_link);
    if (live_puzzles(s, l, row)) {
        l->found = true;
        return;
    }
    if (!live_load(s, l, row, &e)) {
        set_aside(s, l, e.text);
        return;
    }
    tell_change(s, l); /* the claim changed it */
    go_on_from_row(s, l);
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

void landed_claim(struct scheduler *s, const struct claim *c)
{
    s->stats.claims += c->row_count;
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
        *(c->among ? &s->among_next_at : &s->time_next_at) =
            c->more ? scheduler_now(s) : c->next_rank;
        break;
    case CLAIM_AGENT:
        if (!c->more) /* what is submitted or released from now on sets it again */
            nothing_is_left(dispatch_agent(&s->dispatch, c->agent), c);
        break;
    }
}

void landed_claims_unknown(struct scheduler *s)
{
    s->looking = s->uncounted = true;
    s->look_state = TASK_PROCESSING;
    s->look_before_seq = 0;
}

/* The row is ours: is it in memory, and current? */
static void look_at(struct scheduler *s, const struct task_row *row)
{
    struct live *l = live_find(s, row->id);

    if (!l) {
        l = live_stub(s, row->id);
        l->found = true;
        list_push(&s->loads, &l->load_link);
    } else if (l->in_flight)
        l->reload = true;
    else if (l->loaded && l->task.revision != row->revision)
        live_reload(s, l);
}

/* Handles a page of rows in work, newest first: owned rows that are not in memory are loaded. */
void landed_look(struct scheduler *s, const struct row_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct task_row *row = &page->rows[i];
        if (slice_eq(row->locked_by, s->me))
            look_at(s, row);
    }
    s->look_before_seq = page->next_seq;
    if (page->more)
        return;
    s->looking = s->look_state == TASK_PROCESSING;
    s->look_state = TASK_COMPENSATING;
    s->look_before_seq = 0;
}

/* The task does not exist, so only a submission can go on. Commands that arrived during the read
 * may be for a task that another node inserted meanwhile: they cause a second read. */
static void not_there(struct scheduler *s, struct live *l)
{
    struct link others;
    bool look_again = false;

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
    inbox_fail(s, l, &others, ERR_NOT_FOUND, "there is no such task");
    if (look_again)
        list_push(&s->loads, &l->load_link);
    inbox_process(s, l); /* drops it if nothing is left */
}

/* A commit of unknown outcome may have ended the task without a report. */
static void tell_what_was_unsure(struct scheduler *s, struct live *l)
{
    const struct effects fx = {
        .ended = task_state_is_end(l->task.state),
        .alert = l->task.state == TASK_ERROR,
    };

    if (l->unsure || l->found || l->told != 0)
        tell_change(s, l);
    l->told = l->task.revision; /* a task that was only read has no news */
    if (l->unsure)
        tell_end(s, l, fx);
    l->unsure = l->found = false;
}

/* Both in memory of the stub: its arena is emptied with whatever it reads. */
static void keep_owner(struct live *l, struct slice owner)
{
    struct slice kept = slice_cut(owner, sizeof l->gone.owner_text);

    l->gone.owner = SLICE_NONE;
    if (!owner.ptr)
        return;
    memcpy(l->gone.owner_text, kept.ptr, kept.len);
    l->gone.owner = (struct slice){l->gone.owner_text, kept.len};
}

static void keep_content(struct live *l, const struct content *c)
{
    l->gone.content = (struct content){.hash = c->hash};
    if (c->sha256.len != sizeof l->gone.sha256)
        return;
    memcpy(l->gone.sha256, c->sha256.ptr, sizeof l->gone.sha256);
    l->gone.content.sha256 = (struct slice){l->gone.sha256, sizeof l->gone.sha256};
}

void landed_load(struct scheduler *s, struct live *l, const struct reading *r)
{
    struct error e = {0};
    enum err err = r->err;
    const struct task_row *row = &r->row;
    const char *story = r->error.text;

    l->in_flight = false;
    l->reload = false;
    if (err == ERR_NOT_FOUND) {
        keep_content(l, &r->gone.content);
        keep_owner(l, r->gone.owner);
        l->gone.version = r->gone.version;
        l->gone.ended_at = r->gone.ended_at;
        l->gone.until = r->gone.until;
        l->gone.state = r->gone.state;
        not_there(s, l);
    } else if (err == ERR_CORRUPT) {
        set_aside(s, l, story);
    } else if (err != ERR_OK) {
        fail_callers(s, l, &l->inbox, err, story);
        list_push(&s->loads, &l->load_link); /* again: it may be ours */
    } else if (live_puzzles(s, l, row)) {
        return; /* read again when its definition is known */
    } else if (!live_load(s, l, row, &e)) {
        set_aside(s, l, e.text);
    } else {
        tell_what_was_unsure(s, l);
        go_on_from_row(s, l);
    }
}
