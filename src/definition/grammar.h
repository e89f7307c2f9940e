#ifndef DEFINITION_GRAMMAR_H
#define DEFINITION_GRAMMAR_H

/*
 * Words that were added to definitions, in the order in which they came. The version of the grammar
 * (`intact: 1`) stays: a program refuses the words that it does not know. Nodes that share a store
 * tell in their rows which words they know (struct node_row), and a definition is not stored while
 * a living node would not understand it. A new number comes with a new version of the schema, which
 * keeps older programs from starting later.
 */

#include "core/workflow.h"

enum grammar {
    GRAMMAR_FIRST,
    GRAMMAR_ON_UNDO, /* on_undo, undo_until */
    GRAMMAR_NEWEST = GRAMMAR_ON_UNDO,
};

/* The oldest grammar that has all words of the definition. */
enum grammar grammar_of(const struct workflow *w);

/* The words that came with it, for people. */
const char *grammar_words(enum grammar g);

#endif
