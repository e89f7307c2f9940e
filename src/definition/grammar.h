#ifndef DEFINITION_GRAMMAR_H
#define DEFINITION_GRAMMAR_H

/*
 * Versions of the grammar of definitions, in order: each added words. The version in a definition
 * (`intact: 1`) does not change: a program refuses words that it does not know. Nodes that share a
 * store publish the grammar that they know in their rows (struct node_row), and a definition is not
 * stored while a live node would not understand it. A new number comes with a new schema version,
 * which prevents older programs from starting later.
 */

#include "core/workflow.h"

enum grammar {
    GRAMMAR_FIRST,
    GRAMMAR_ON_UNDO,  /* on_undo, undo_until */
    GRAMMAR_WAIT,     /* wait */
    GRAMMAR_REPEAT,   /* repeat */
    GRAMMAR_SCHEDULE, /* no word of definitions: schedules, whose tasks have other ids */
    GRAMMAR_SIGNAL,   /* signal, default, on_signal */
    GRAMMAR_LOCK,     /* lock */
    GRAMMAR_APPROVE,  /* approve */
    GRAMMAR_TASK,     /* task */
    GRAMMAR_EACH,     /* for_each */
    GRAMMAR_NEWEST = GRAMMAR_EACH,
};

/* The oldest grammar that has all words of the definition. */
enum grammar grammar_of(const struct workflow *w);

/* The words that it added, for messages. */
const char *grammar_words(enum grammar g);

#endif
