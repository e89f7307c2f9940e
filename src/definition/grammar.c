/* Which version of the grammar a definition needs: see grammar.h. */

#include "definition/grammar.h"

enum grammar grammar_of(const struct workflow *w)
{
    enum grammar g = w->undo_until_ms != 0 ? GRAMMAR_ON_UNDO : GRAMMAR_FIRST;

    if (w->undo_signal_count > 0)
        return GRAMMAR_SIGNAL;
    if (w->lock.name.ptr)
        return GRAMMAR_LOCK;
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (w->steps[i].kind == KIND_SIGNAL)
            return GRAMMAR_SIGNAL;
        if (step_is_repeated(&w->steps[i]))
            g = GRAMMAR_REPEAT;
        else if (w->steps[i].kind == KIND_WAIT && g < GRAMMAR_WAIT)
            g = GRAMMAR_WAIT;
        else if (w->steps[i].on_undo && g < GRAMMAR_ON_UNDO)
            g = GRAMMAR_ON_UNDO;
    }
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
    }
    UNREACHABLE();
}
