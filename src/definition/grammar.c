/* Which version of the grammar a definition needs: see grammar.h. */

#include "definition/grammar.h"

enum grammar grammar_of(const struct workflow *w)
{
    bool is_new = w->undo_until_ms != 0;

    for (uint16_t i = 0; i < w->step_count; i++)
        is_new |= w->steps[i].on_undo;
    return is_new ? GRAMMAR_ON_UNDO : GRAMMAR_FIRST;
}

const char *grammar_words(enum grammar g)
{
    switch (g) {
    case GRAMMAR_FIRST:
        break;
    case GRAMMAR_ON_UNDO:
        return "on_undo and undo_until";
    }
    UNREACHABLE();
}
