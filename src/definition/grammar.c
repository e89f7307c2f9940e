/* Finds which version of the grammar a compiled definition needs, by the words that it uses
 * (grammar.h). A node that knows only an older version could not run it, so api/workflows.c and
 * api/schedules_change.c check before storing. */

#include "definition/grammar.h"

static enum grammar newer(enum grammar a, enum grammar b)
{
    return a > b ? a : b;
}

static enum grammar grammar_of_step(const struct workflow_step *s)
{
    enum grammar g = s->on_undo ? GRAMMAR_ON_UNDO : GRAMMAR_FIRST;

    if (s->kind == KIND_WAIT)
        g = newer(g, GRAMMAR_WAIT);
    if (step_is_repeated(s))
        g = newer(g, GRAMMAR_REPEAT);
    if (s->kind == KIND_SIGNAL)
        g = newer(g, GRAMMAR_SIGNAL);
    if (s->child.workflow.ptr)
        g = newer(g, GRAMMAR_TASK);
    if (s->kind == KIND_EACH)
        g = newer(g, GRAMMAR_EACH);
    return s->kind == KIND_APPROVE ? newer(g, GRAMMAR_APPROVE) : g;
}

enum grammar grammar_of(const struct workflow *w)
{
    enum grammar g = w->undo_until_ms != 0 ? GRAMMAR_ON_UNDO : GRAMMAR_FIRST;

    if (w->undo_signal_count > 0)
        g = newer(g, GRAMMAR_SIGNAL);
    if (w->lock.name.ptr)
        g = newer(g, GRAMMAR_LOCK);
    for (uint16_t i = 0; i < w->step_count; i++)
        g = newer(g, grammar_of_step(&w->steps[i]));
    return g;
}

const char *grammar_words(enum grammar g)
{
    switch (g) {
    case GRAMMAR_FIRST:
        break;
    case GRAMMAR_ON_UNDO:
        return "on_undo and undo_until";
    case GRAMMAR_WAIT:
        return "wait";
    case GRAMMAR_REPEAT:
        return "repeat";
    case GRAMMAR_SCHEDULE:
        return "schedules";
    case GRAMMAR_SIGNAL:
        return "signal and on_signal";
    case GRAMMAR_LOCK:
        return "lock";
    case GRAMMAR_APPROVE:
        return "approve";
    case GRAMMAR_TASK:
        return "task";
    case GRAMMAR_EACH:
        return "for_each";
    }
    UNREACHABLE();
}
