/*
 * Renders tasks and entries of the audit as JSON, for answers, events and archives. Any thread: it
 * reads only what it is given. docs/openapi.yaml describes the members.
 */

#include "node/task_json.h"

#include "core/items.h"
#include "node/node.h"
#include "tasks/family.h"
#include "json/json.h"

static void member_error(struct buf *b, const struct fault_note *n)
{
    json_key(b, "error");
    if (!n->code.ptr) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "code", n->code);
    json_member_text(b, "message", n->message);
    json_close(b, '}');
}

/* The first failure; `error` may be a later one. */
static void member_cause(struct buf *b, const struct workflow *w, const struct cause *c)
{
    json_key(b, "cause");
    if (!c->error.code.ptr) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "step", c->step >= 0 ? w->steps[c->step].name : SLICE_NONE);
    json_member_text(b, "code", c->error.code);
    json_member_text(b, "message", c->error.message);
    json_close(b, '}');
}

/* Only of an open attempt, and only what came to this node since it has the task. */
static void render_pulse(struct buf *b, const struct pulse *p)
{
    json_member_time(b, "heartbeat_at", p ? p->at : 0);
    json_member_raw(b, "progress", p ? p->progress : SLICE_NONE);
    json_member_text(b, "message", p ? p->message : SLICE_NONE);
}

/* The first key is TASK/STEP and needs no member; the second one is TASK/STEP~2. */
static void render_generation(struct buf *b, uint32_t generation)
{
    if (generation > 0)
        json_member_number(b, "key_generation", (int64_t)generation + 1);
}

static void render_attempt(struct buf *b, const struct attempt *a, const struct pulse *p)
{
    json_open(b, '{');
    json_member_number(b, "attempt", a->number);
    json_member_text(b, "direction", slice_of(direction_text(a->direction)));
    json_member_text(b, "instance", a->instance);
    json_member_time(b, "started_at", a->started_at);
    json_member_time(b, "ended_at", a->ended_at);
    json_member_time(b, "complete_by", a->complete_by);
    json_member_text(b, "outcome", slice_of(outcome_text(a->outcome)));
    json_member_text(b, "effect", slice_of(effect_text(a->effect)));
    if (a->resent > 0)
        json_member_number(b, "resent", a->resent);
    if (a->tries > 0)
        json_member_number(b, "tries", a->tries);
    if (a->spared) {
        json_member_bool(b, "spared", true);
    }
    render_generation(b, a->generation);
    if (a->round > 0)
        json_member_number(b, "round", a->round);
    if (a->elsewhere) {
        json_member_bool(b, "elsewhere", true);
    }
    if (a->output.json.ptr)
        json_member_raw(b, "output", a->output.json);
    if (a->error.code.ptr)
        member_error(b, &a->error);
    if (a->outcome == OUTCOME_OPEN)
        render_pulse(b, p);
    json_close(b, '}');
}

void render_audit_open(struct buf *b, const struct audit *a)
{
    json_open(b, '{');
    json_member_time(b, "at", a->at);
    json_member_text(b, "actor", a->actor);
    json_member_text(b, "verb", a->verb);
    json_member_text(b, "task", a->task);
    json_member_text(b, "step", a->step);
    json_member_text(b, "reason", a->reason);
    json_member_raw(b, "detail", a->detail);
}

void render_audit(struct buf *b, const struct audit *a)
{
    render_audit_open(b, a);
    json_close(b, '}');
}

/* What a task's record is made of. */
struct record {
    const struct pulses *pulses;
    const struct workflow *workflow;
    const struct task *task;
};

static const struct pulse *pulse_of(const struct record *r, uint16_t step, const struct attempt *a)
{
    for (size_t i = 0; a->outcome == OUTCOME_OPEN && i < r->pulses->count; i++) {
        const struct pulse_of *p = &r->pulses->list[i];
        if (p->step == unit_step(r->workflow, step)
            && p->item.any == unit_is_slot(r->workflow, step)
            && p->item.number == r->task->steps[step].item && p->direction == a->direction
            && p->attempt == a->number)
            return &p->pulse;
    }
    return NULL;
}

/* What is kept beside the task is newer than what is in it. */
static void render_resume(struct buf *b, const struct record *r, uint16_t step,
                          const struct attempt *open)
{
    const struct pulse *p = open ? pulse_of(r, step, open) : NULL;
    struct slice resume = p && p->resume.ptr ? p->resume : r->task->steps[step].resume;

    if (resume.ptr)
        json_member_raw(b, "resume", resume);
}

static void member_names(struct buf *b, const char *key, const struct signal_spec *s)
{
    json_key(b, key);
    json_open(b, '[');
    for (uint16_t i = 0; i < s->count; i++)
        json_string(b, s->names[i]);
    json_close(b, ']');
}

static void member_groups(struct buf *b, const char *key, const struct slice *names, uint16_t count)
{
    json_key(b, key);
    json_open(b, '[');
    for (uint16_t i = 0; i < count; i++)
        json_string(b, names[i]);
    json_close(b, ']');
}

static void member_votes(struct buf *b, const struct task *t, uint16_t step)
{
    json_key(b, "votes");
    json_open(b, '[');
    for (uint16_t i = 0; i < t->vote_count; i++) {
        const struct vote *v = &t->votes[i];
        if (v->step != step)
            continue;
        json_open(b, '{');
        json_member_text(b, "by", v->person);
        json_member_bool(b, "agrees", v->agrees);
        json_member_text(b, "comment", v->comment);
        json_member_time(b, "at", v->at);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void render_approval(struct buf *b, const struct workflow *w, const struct task *t, uint16_t step)
{
    const struct approve_spec *spec = &w->steps[step].approve;
    const struct step *s = &t->steps[step];
    bool escalates = spec->escalate_ms != 0 && s->begun_at != 0;

    json_member_raw(b, "question", s->input.json);
    json_member_number(b, "asking", (int64_t)s->generation + 1);
    member_groups(b, "by", spec->by, spec->by_count);
    json_member_number(b, "people", spec->people);
    json_member_number(b, "agreed", step_votes(t, step).agreed);
    member_votes(b, t, step);
    json_member_time(b, "asked_at", s->begun_at);
    json_member_time(b, "complete_by", step_has_begun(s) ? s->complete_by : 0);
    json_member_time(b, "escalates_at", escalates ? s->begun_at + spec->escalate_ms : 0);
    member_groups(b, "escalates_to", spec->to, spec->to_count);
}

static struct slice kind_text(enum step_kind kind)
{
    return kind == KIND_WAIT     ? SLICE("wait")
           : kind == KIND_SIGNAL ? SLICE("signal")
           : kind == KIND_TASK   ? SLICE("task")
           : kind == KIND_EACH   ? SLICE("for_each")
                                 : SLICE("approve");
}

static struct slice name_of(const struct record *r, uint16_t unit, struct arena *a)
{
    struct slice name = r->workflow->steps[unit].name;

    return unit_is_slot(r->workflow, unit) ? item_name(name, r->task->steps[unit].item, a) : name;
}

/* The present child of the step; null: none was started. */
static void member_child(struct buf *b, const struct record *r, uint16_t step)
{
    const struct workflow_step *ws = &r->workflow->steps[step];
    const struct child *c = &r->task->steps[step].child;
    CLEANUP(arena_fini) struct arena a = {0};

    json_member_text(b, "workflow", ws->child.workflow);
    json_key(b, "child");
    if (c->state == CHILD_NONE) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    json_member_text(b, "id", child_id(r->task->id, name_of(r, step, &a), c->number, &a));
    json_member_text(b, "state", slice_of(child_state_text(c->state)));
    json_member_text(b, "asked",
                     c->wish == WISH_NONE ? SLICE_NONE : slice_of(child_wish_text(c->wish)));
    json_close(b, '}');
}

static void render_unit(struct buf *b, const struct record *r, uint16_t step);

/* How many of its items are where; those at work, one by one. The others come in pages. */
static void member_items(struct buf *b, const struct record *r, uint16_t step)
{
    const struct each_spec *each = &r->workflow->steps[step].each;
    const struct items *in = r->task->steps[step].items;

    json_key(b, "items");
    json_open(b, '{');
    json_member_number(b, "count", in->list.count);
    json_member_number(b, "begun", in->begun);
    json_member_number(b, "completed", in->completed);
    json_member_number(b, "failed", in->failed + in->tally.failed);
    json_member_number(b, "skipped", in->skipped);
    json_member_number(b, "undone", in->undone);
    json_member_number(b, "in_doubt", in->doubts + in->tally.doubts);
    json_member_number(b, "to_undo", in->to_undo + in->tally.to_undo);
    json_key(b, "at_work");
    json_open(b, '[');
    for (uint16_t u = each->slots_at; u < each->slots_at + each->slot_count; u++)
        if (r->task->steps[u].slot == SLOT_TAKEN || r->task->steps[u].slot == SLOT_BACK)
            render_unit(b, r, u);
    json_close(b, ']');
    json_close(b, '}');
}

/* An array of outputs is put together by who reads the items. */
static struct slice known_output(const struct step *s)
{
    return s->output.payload == ITEMS_OUTPUT ? SLICE_NONE : s->output.json;
}

static void member_name(struct buf *b, const struct record *r, uint16_t unit)
{
    CLEANUP(arena_fini) struct arena a = {0};

    json_member_text(b, "name", name_of(r, unit, &a));
    if (unit_is_slot(r->workflow, unit))
        json_member_number(b, "item", r->task->steps[unit].item);
}

static void render_unit(struct buf *b, const struct record *r, uint16_t step)
{
    const struct workflow_step *ws = &r->workflow->steps[step];
    const struct step *s = &r->task->steps[step];
    const struct attempt *open = step_open_attempt(s);

    json_open(b, '{');
    member_name(b, r, step);
    json_member_text(b, "state", slice_of(step_state_text(s->state)));
    json_member_text(b, "agent", ws->call.agent);
    json_member_text(b, "action", ws->call.action);
    if (ws->kind != KIND_CALL) {
        json_member_text(b, "kind", kind_text(ws->kind));
        json_member_time(b, "begun_at", s->begun_at);
    }
    if (step_is_repeated(ws)) {
        json_member_number(b, "round", s->round);
        json_member_time(b, "repeat_until", s->repeat_until);
    }
    if (ws->kind == KIND_SIGNAL)
        member_names(b, "signals", &ws->signal);
    if (ws->kind == KIND_TASK)
        member_child(b, r, step);
    if (s->items)
        member_items(b, r, step);
    if (ws->kind == KIND_APPROVE) {
        json_key(b, "approval");
        json_open(b, '{');
        render_approval(b, r->workflow, r->task, step);
        json_close(b, '}');
    }
    if (ws->on_undo) {
        json_member_bool(b, "on_undo", true);
    }
    json_member_number(b, "failure_count", s->failure_count);
    json_member_bool(b, "in_doubt", step_in_doubt(s));
    json_member_time(b, "complete_by",
                     open                ? open->complete_by
                     : step_has_begun(s) ? s->complete_by
                                         : 0);
    json_member_time(b, "wait_until",
                     ws->kind == KIND_SIGNAL || ws->kind == KIND_APPROVE ? 0 : s->wait_until);
    json_member_raw(b, "input", s->input.json);
    json_member_raw(b, "output", known_output(s));
    member_error(b, &s->error);
    render_resume(b, r, step, open);
    render_generation(b, s->generation);
    if (s->supplied) {
        json_member_bool(b, "supplied", true);
    }
    if (s->resolved)
        json_member_number(b, "resolved", s->resolved);
    json_key(b, "attempts");
    json_open(b, '[');
    for (uint16_t i = 0; i < s->attempt_count; i++)
        render_attempt(b, &s->attempts[i], pulse_of(r, step, &s->attempts[i]));
    json_close(b, ']');
    json_close(b, '}');
}

/* A row looks like the item in a slot of a task that has nothing else. */
static void render_row(struct buf *b, const struct record *r, uint16_t step, const struct step *row)
{
    const struct each_spec *each = &r->workflow->steps[step].each;
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = {.id = r->task->id, .step_count = r->task->step_count};

    t.steps = arena_alloc(&a, (each->slots_at + 1U) * sizeof *t.steps);
    t.steps[each->slots_at] = *row;
    const struct record of = {&(struct pulses){0}, r->workflow, &t};
    render_unit(b, &of, each->slots_at);
}

/* One item of the page: from its slot, from its row, or as one that has not begun. */
static void render_item(struct buf *b, const struct record *r, const struct item_page *page,
                        uint32_t item, const struct step *row)
{
    int unit = items_slot(r->workflow, r->task, page->step, item);
    const struct step to_come = {.state = STEP_WAITING, .item = item};
    const struct step *s = unit >= 0 ? &r->task->steps[unit] : row ? row : &to_come;

    if (page->of_state && s->state != page->state)
        return;
    if (unit >= 0)
        render_unit(b, r, (uint16_t)unit);
    else
        render_row(b, r, page->step, s);
}

void render_items(struct buf *b, const struct pulses *pulses, const struct workflow *w,
                  const struct task *t, const struct item_page *page)
{
    const struct record r = {pulses, w, t};
    uint32_t count = t->steps[page->step].items->list.count;
    uint32_t end = page->from < count ? page->from + min_u32(page->limit, count - page->from) : 0;
    size_t at = 0;

    json_open(b, '{');
    json_member_text(b, "step", w->steps[page->step].name);
    json_member_number(b, "count", count);
    json_key(b, "items");
    json_open(b, '[');
    for (uint32_t n = page->from; n < end; n++) {
        while (at < page->row_count && page->rows[at].item < n)
            at++;
        bool rests = at < page->row_count && page->rows[at].item == n;
        render_item(b, &r, page, n, rests ? &page->rows[at] : NULL);
    }
    json_close(b, ']');
    json_key(b, "next");
    if (end > 0 && end < count)
        buf_fmt(b, "\"%" PRIu32 "\"", end);
    else
        json_null(b);
    json_close(b, '}');
}

/* The names, and commas between them. */
static struct slice waiting_for(const struct task_row *row)
{
    struct slice names = row->waiting_for;

    return row_waits_for_several(row) ? (struct slice){names.ptr + 1, names.len - 1} : names;
}

static void render_columns(struct buf *b, const struct task_row *row)
{
    json_member_text(b, "id", row->id);
    json_member_text(b, "workflow", row->workflow);
    json_member_number(b, "version", row->version);
    json_member_text(b, "state", slice_of(task_state_text(row->state)));
    json_member_text(b, "direction", slice_of(direction_text(row->direction)));
    json_member_number(b, "priority", row->priority);
    json_member_number(b, "failure_count", row->failure_count);
    json_member_text(b, "locked_by", row->locked_by);
    json_member_time(b, "complete_by", row->complete_by);
    json_member_time(b, "not_before", row->not_before);
    json_member_text(b, "waiting_for", waiting_for(row));
    json_member_text(b, "lock", row->lock);
    json_member_time(b, "lock_since", row->lock_since);
    json_member_time(b, "submitted_at", row->submitted_at);
    json_member_time(b, "started_at", row->started_at);
    json_member_time(b, "ended_at", row->ended_at);
    json_member_time(b, "paused_at", row->paused_at);
    json_member_time(b, "closed_at", row->closed_at);
    json_member_raw(b, "tags", row->tags);
    if (row->parent.ptr) {
        json_member_text(b, "parent", row->parent);
        json_member_text(b, "root", row->root);
    }
}

void render_summary(struct buf *b, const struct task_row *row, const struct summary_faults *f)
{
    json_open(b, '{');
    render_columns(b, row);
    json_member_raw(b, "error", f->error);
    json_member_raw(b, "cause", f->cause);
    json_close(b, '}');
}

enum signals {
    SIGNALS_NAMED, /* those that are kept, without their values */
    SIGNALS_SHOWN, /* the same, with them */
    SIGNALS_ALL,   /* all that arrived */
};

static void list_signals(struct buf *b, const struct workflow *w, const struct task *t,
                         enum signals which)
{
    json_open(b, '[');
    for (uint16_t i = 0; i < t->signal_count; i++) {
        const struct signal *s = &t->signals[i];
        if (s->state != SIGNAL_KEPT && which != SIGNALS_ALL)
            continue;
        json_open(b, '{');
        json_member_text(b, "id", s->key);
        json_member_text(b, "name", s->name);
        json_member_time(b, "at", s->at);
        if (which == SIGNALS_ALL) {
            json_member_text(b, "state", slice_of(signal_state_text(s->state)));
            json_member_text(b, "step", s->step < 0 ? SLICE_NONE : w->steps[s->step].name);
        }
        if (which != SIGNALS_NAMED)
            json_member_raw(b, "data", s->data.json);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void render_signals(struct buf *b, const struct task *t)
{
    json_open(b, '{');
    json_key(b, "signals");
    list_signals(b, NULL, t, SIGNALS_SHOWN);
    json_close(b, '}');
}

void render_one_line(struct buf *b, size_t from)
{
    for (const char *c = "\n\r"; *c; c++)
        for (char *at = b->ptr + from; (at = memchr(at, *c, (size_t)(b->ptr + b->len - at)));)
            *at = ' ';
}

static void render_record(struct buf *b, const struct record *r, const struct task_row *row,
                          const struct audit_page *operations, enum signals which)
{
    const struct task *t = r->task;
    const struct workflow *w = r->workflow;

    json_open(b, '{');
    render_columns(b, row);
    json_member_raw(b, "input", t->input.json);
    json_member_raw(b, "output", t->output.json);
    member_error(b, &t->error);
    member_cause(b, w, &t->cause);
    json_member_text(b, "closed_reason", t->closed_reason);
    json_member_text(b, "traceparent", t->trace);
    json_member_text(b, "owner", t->owner);
    if (t->parent.ptr)
        json_member_text(b, "parent_step", t->parent_step);
    json_member_raw_if(b, "family", t->family);
    json_key(b, "steps");
    json_open(b, '[');
    for (uint16_t i = 0; i < t->step_count; i++)
        render_unit(b, r, i);
    json_close(b, ']');
    if (t->signal_count > 0) {
        json_key(b, "signals");
        list_signals(b, w, t, which);
    }
    json_key(b, "operations");
    json_open(b, '[');
    for (size_t i = operations->count; i-- > 0;) /* it has the newest first */
        render_audit(b, &operations->entries[i]);
    json_close(b, ']');
    json_close(b, '}');
}

void render_task(struct buf *b, const struct pulses *pulses, const struct workflow *w,
                 const struct task *t, const struct task_row *row,
                 const struct audit_page *operations)
{
    const struct record r = {pulses, w, t};

    render_record(b, &r, row, operations, SIGNALS_NAMED);
}

void render_archived(struct buf *b, const struct workflow *w, const struct task *t,
                     const struct task_row *row, const struct audit_page *operations)
{
    const struct pulses none = {0};
    const struct record r = {&none, w, t};
    size_t from = b->len;

    render_record(b, &r, row, operations, SIGNALS_ALL);
    render_one_line(b, from);
}

void render_archived_items(struct buf *b, const struct workflow *w, const struct task *t,
                           const struct archived_items *page)
{
    const struct record r = {&(struct pulses){0}, w, t};
    size_t from = b->len;

    buf_byte(b, '{'); /* not json_open: what stands before it is another line */
    json_member_text(b, "items_of", t->id); /* first: readers find it without parsing the line */
    json_member_number(b, "part", page->part);
    json_member_text(b, "step", w->steps[page->step].name);
    render_generation(b, page->generation);
    json_key(b, "items");
    json_open(b, '[');
    for (size_t i = 0; i < page->row_count; i++)
        render_row(b, &r, page->step, &page->rows[i]);
    json_close(b, ']');
    json_close(b, '}');
    render_one_line(b, from);
}
