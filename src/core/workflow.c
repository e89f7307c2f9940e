/* Checks a compiled workflow: the graph and its order, the rules of each step, and which kinds of
 * steps may have what (workflow.h). definition.c asserts it after it has reported the mistakes of
 * people, so a workflow that fails here is a bug of the compiler. */

#include "core/workflow.h"

#include "core/repeat.h"

static bool rule_valid(const struct retry_rule *r)
{
    return r->attempts >= 1 && r->factor_milli >= 1000 && r->wait_ms >= 0 && r->max_wait_ms >= 0
           && r->defer_ms >= 0;
}

static bool repeat_valid(const struct workflow_step *s)
{
    const struct repeat_rule *r = &s->repeat;

    return !step_is_repeated(s)
           || (s->undo_kind == UNDO_NONE && r->for_ms > 0 && r->factor_milli >= 1000
               && repeat_rounds(r) <= ROUNDS_MAX);
}

static bool call_valid(const struct call_spec *c)
{
    return c->agent.len > 0 && c->action.len > 0 && c->complete_by_ms > 0 && c->heartbeat_ms >= 0
           && c->heartbeat_ms < c->complete_by_ms && rule_valid(&c->retry);
}

static bool contains(const uint16_t *list, uint16_t count, uint16_t step)
{
    for (uint16_t i = 0; i < count; i++)
        if (list[i] == step)
            return true;
    return false;
}

static bool edges_valid(const struct workflow *w, uint16_t i)
{
    const struct workflow_step *s = &w->steps[i];

    for (uint16_t k = 0; k < s->before_count; k++) {
        if (s->before[k] >= w->step_count)
            return false;
        const struct workflow_step *b = &w->steps[s->before[k]];
        if (!contains(b->after, b->after_count, i) || b->on_undo != s->on_undo)
            return false;
    }
    for (uint16_t k = 0; k < s->after_count; k++) {
        if (s->after[k] >= w->step_count)
            return false;
        const struct workflow_step *a = &w->steps[s->after[k]];
        if (!contains(a->before, a->before_count, i))
            return false;
    }
    return true;
}

/* `order` names each step once, after all of its predecessors. */
static bool order_valid(const struct workflow *w)
{
    bool seen[STEPS_MAX] = {0};

    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t i = w->order[k];
        if (i >= w->step_count || seen[i])
            return false;
        for (uint16_t b = 0; b < w->steps[i].before_count; b++)
            if (!seen[w->steps[i].before[b]])
                return false;
        seen[i] = true;
    }
    return true;
}

/* Only an end of the waiting needs another output. */
static bool signal_valid(const struct signal_spec *s)
{
    return s->count > 0 && s->complete_by_ms >= 0 && (!s->otherwise.ptr || s->complete_by_ms > 0);
}

static bool approve_valid(const struct approve_spec *s)
{
    return s->by_count > 0 && s->by_count <= APPROVE_GROUPS_MAX && s->to_count <= APPROVE_GROUPS_MAX
           && s->people > 0 && s->people <= APPROVE_PEOPLE_MAX && s->remind_ms >= 0
           && s->escalate_ms >= 0 && (s->escalate_ms > 0) == (s->to_count > 0)
           && s->complete_by_ms >= 0 && (!s->otherwise.ptr || s->complete_by_ms > 0);
}

/* It has no agent, but perhaps an undo. */
static bool child_valid(const struct workflow_step *s)
{
    return !s->call.agent.ptr && !s->on_undo && !step_is_repeated(s) && s->wait_ms == 0
           && s->child.workflow.len > 0 && s->child.complete_by_ms >= 0;
}

static bool each_limits_valid(const struct each_spec *e)
{
    return e->max_items > 0 && e->max_items <= ITEMS_MAX && e->concurrency > 0
           && e->concurrency <= ITEMS_AT_WORK_MAX && e->tolerate <= 10000
           && (!e->goes_on || e->tolerate == 0);
}

/* Its call says what is done for each item, but it has no rounds: these are of items. */
static bool each_valid(const struct workflow_step *s)
{
    return (s->child.workflow.ptr ? child_valid(s) : call_valid(&s->call))
           && each_limits_valid(&s->each) && !s->on_undo && !step_is_repeated(s) && s->wait_ms == 0;
}

/* What waits for no child has no agent, and nothing to undo. */
static bool kind_valid(const struct workflow_step *s)
{
    bool signal = s->kind == KIND_SIGNAL;
    bool approve = s->kind == KIND_APPROVE;

    if ((!signal && s->signal.count != 0) || (!approve && s->approve.by_count != 0)
        || (s->kind == KIND_EACH) != (s->each.concurrency != 0))
        return false;
    if (s->kind == KIND_TASK)
        return child_valid(s);
    if (s->kind == KIND_EACH)
        return each_valid(s) && (s->child.workflow.ptr || s->undo_kind != UNDO_CHILD);
    if (s->child.workflow.ptr || s->undo_kind == UNDO_CHILD)
        return false;
    if (s->kind == KIND_CALL)
        return call_valid(&s->call) && s->wait_ms == 0 && repeat_valid(s);
    if (s->call.agent.ptr || s->undo_kind != UNDO_NONE || s->on_undo || step_is_repeated(s))
        return false;
    if (signal)
        return signal_valid(&s->signal) && s->wait_ms == 0;
    if (approve)
        return approve_valid(&s->approve) && s->wait_ms == 0;
    return s->kind == KIND_WAIT && s->wait_ms >= 0;
}

/* A step of on_undo has no undo, and its failure cannot start one. */
static bool on_undo_valid(const struct workflow_step *s)
{
    return !s->on_undo || (s->undo_kind == UNDO_NONE && s->on_failure != ON_FAILURE_UNDO);
}

/* What is done for an item is what its step says. */
static bool slot_valid(const struct workflow_step *slot, uint16_t step,
                       const struct workflow_step *s)
{
    bool starts_children = s->child.workflow.ptr != NULL;

    return slot->kind == (starts_children ? KIND_TASK : KIND_CALL) && slot->each.slot_count == 0
           && slot->each.step == step && slot->each.concurrency == s->each.concurrency
           && slice_eq(slot->name, s->name) && slot->undo_kind == s->undo_kind
           && slot->on_failure == s->on_failure && !slot->on_undo
           && (starts_children ? child_valid(slot) : call_valid(&slot->call) && repeat_valid(slot))
           && (slot->undo_kind != UNDO_CALL || call_valid(&slot->undo));
}

/* The slots of all steps follow the steps, in their order, and nothing else does. */
static bool slots_valid(const struct workflow *w)
{
    uint32_t at = w->step_count;

    if (w->slot_count > SLOTS_MAX)
        return false;
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct workflow_step *s = &w->steps[i];
        if (s->kind != KIND_EACH)
            continue;
        if (s->each.slots_at != at || s->each.slot_count != each_slots(s->each.concurrency)
            || s->each.step != i || at + s->each.slot_count > w->step_count + w->slot_count)
            return false;
        for (uint16_t k = 0; k < s->each.slot_count; k++)
            if (!slot_valid(&w->steps[at++], i, s))
                return false;
    }
    return at == w->step_count + (uint32_t)w->slot_count;
}

bool workflow_valid(const struct workflow *w)
{
    size_t child_steps = 0;

    if (w->step_count == 0 || w->step_count > STEPS_MAX || w->name.len == 0 || w->complete_by_ms < 0
        || w->undo_complete_by_ms < 0 || w->undo_until_ms < 0
        || (w->lock.name.ptr != NULL) != (w->lock.max > 0))
        return false;
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct workflow_step *s = &w->steps[i];
        if (s->name.len == 0 || !kind_valid(s) || !edges_valid(w, i))
            return false;
        if ((s->undo_kind == UNDO_CALL && !call_valid(&s->undo)) || !on_undo_valid(s))
            return false;
        child_steps += s->kind == KIND_TASK;
        child_steps += s->kind == KIND_EACH && s->child.workflow.ptr ? s->each.slot_count : 0;
    }
    return child_steps == w->child_step_count && slots_valid(w) && order_valid(w);
}

int workflow_step_index(const struct workflow *w, struct slice name)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (slice_eq(w->steps[i].name, name))
            return i;
    return -1;
}
