#ifndef DEFINITION_SAME_H
#define DEFINITION_SAME_H

/* Compares two definitions, for tests. */

#include "definition/definition.h"

static inline bool same_call(const struct call_spec *a, const struct call_spec *b)
{
    const struct retry_rule *x = &a->retry;
    const struct retry_rule *y = &b->retry;

    return slice_eq(a->agent, b->agent) && slice_eq(a->action, b->action)
           && a->complete_by_ms == b->complete_by_ms && a->heartbeat_ms == b->heartbeat_ms
           && x->attempts == y->attempts && x->factor_milli == y->factor_milli
           && x->wait_ms == y->wait_ms && x->max_wait_ms == y->max_wait_ms && x->jitter == y->jitter
           && x->defer_ms == y->defer_ms && x->defers == y->defers;
}

static inline bool same_repeat(const struct repeat_rule *a, const struct repeat_rule *b)
{
    return a->for_ms == b->for_ms && a->every_ms == b->every_ms
           && a->max_every_ms == b->max_every_ms && a->factor_milli == b->factor_milli
           && a->input_varies == b->input_varies;
}

static inline bool same_indexes(const uint16_t *a, uint16_t a_count, const uint16_t *b,
                                uint16_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static inline bool same_names(const struct slice *a, uint16_t a_count, const struct slice *b,
                              uint16_t b_count)
{
    for (uint16_t i = 0; i < a_count && a_count == b_count; i++)
        if (!slice_eq(a[i], b[i]))
            return false;
    return a_count == b_count;
}

static inline bool same_signal(const struct signal_spec *a, const struct signal_spec *b)
{
    return same_names(a->names, a->count, b->names, b->count)
           && a->complete_by_ms == b->complete_by_ms && slice_eq(a->otherwise, b->otherwise);
}

static inline bool same_approve(const struct approve_spec *a, const struct approve_spec *b)
{
    return same_names(a->by, a->by_count, b->by, b->by_count)
           && same_names(a->to, a->to_count, b->to, b->to_count) && a->people == b->people
           && a->not_submitter == b->not_submitter && a->remind_ms == b->remind_ms
           && a->escalate_ms == b->escalate_ms && a->complete_by_ms == b->complete_by_ms
           && slice_eq(a->otherwise, b->otherwise);
}

static inline bool same_child(const struct child_spec *a, const struct child_spec *b)
{
    return slice_eq(a->workflow, b->workflow) && slice_eq(a->tags, b->tags)
           && a->complete_by_ms == b->complete_by_ms;
}

static inline bool same_each(const struct each_spec *a, const struct each_spec *b)
{
    return a->max_items == b->max_items && a->concurrency == b->concurrency
           && a->goes_on == b->goes_on && a->tolerate == b->tolerate && a->slots_at == b->slots_at
           && a->slot_count == b->slot_count && a->step == b->step;
}

static inline bool same_step(const struct workflow_step *a, const struct workflow_step *b)
{
    return slice_eq(a->name, b->name) && a->kind == b->kind && a->wait_ms == b->wait_ms
           && same_repeat(&a->repeat, &b->repeat) && same_signal(&a->signal, &b->signal)
           && same_approve(&a->approve, &b->approve) && same_child(&a->child, &b->child)
           && same_each(&a->each, &b->each) && same_call(&a->call, &b->call)
           && a->on_failure == b->on_failure && a->undo_kind == b->undo_kind
           && a->on_undo == b->on_undo
           && (a->undo_kind != UNDO_CALL || same_call(&a->undo, &b->undo))
           && same_indexes(a->before, a->before_count, b->before, b->before_count)
           && same_indexes(a->after, a->after_count, b->after, b->after_count);
}

static inline bool same_workflow(const struct workflow *a, const struct workflow *b)
{
    if (!slice_eq(a->name, b->name) || a->complete_by_ms != b->complete_by_ms
        || a->undo_complete_by_ms != b->undo_complete_by_ms || a->undo_until_ms != b->undo_until_ms
        || !same_names(a->undo_signals, a->undo_signal_count, b->undo_signals, b->undo_signal_count)
        || a->on_failure != b->on_failure || !slice_eq(a->lock.name, b->lock.name)
        || a->lock.max != b->lock.max || a->lock.if_taken != b->lock.if_taken
        || a->child_step_count != b->child_step_count || a->step_count != b->step_count
        || a->slot_count != b->slot_count
        || memcmp(a->order, b->order, a->step_count * sizeof *a->order) != 0)
        return false;
    for (int i = 0; i < a->step_count + a->slot_count; i++)
        if (!same_step(&a->steps[i], &b->steps[i]))
            return false;
    return true;
}

static inline void same_gather(void *arg, struct slice piece)
{
    buf_slice(arg, piece);
}

static inline bool same_json(const struct json *a, const struct json *b)
{
    CLEANUP(buf_fini) struct buf piece = {0};
    CLEANUP(buf_fini) struct buf x = {0};
    CLEANUP(buf_fini) struct buf y = {0};

    json_canonical(a, &piece, same_gather, &x);
    json_canonical(b, &piece, same_gather, &y);
    return slice_eq(buf_view(&x), buf_view(&y));
}

/* Templates and input rules are derived from the tree alone, so they are not compared. */
static inline bool same_definition(const struct definition *a, const struct definition *b)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *x = NULL;
    struct json *y = NULL;
    enum err err = json_parse(&arena, a->json, &x, NULL);

    ASSERT(err == ERR_OK);
    err = json_parse(&arena, b->json, &y, NULL);
    ASSERT(err == ERR_OK);
    return same_workflow(&a->workflow, &b->workflow) && a->has_inputs == b->has_inputs
           && a->input_count == b->input_count && same_json(x, y);
}

#endif
