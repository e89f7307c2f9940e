#ifndef DEFINITION_EFFORT_H
#define DEFINITION_EFFORT_H

/*
 * How much an evaluation works for what it pays, for tests. Nothing here measures time, and nothing
 * relies on what the evaluator says of itself: the library `counted` of meson.build is the
 * evaluator once more, compiled so that every basic block counts itself, and the functions of
 * libraries that it calls are counted by what they go through. A basic block is some five
 * instructions.
 */

#include "definition/machine.h"

/* What one evaluation paid for, and what it did. */
struct effort {
    size_t blocks;
    size_t paid; /* steps, and bytes by EFFORT_BYTES */
    enum err err;
    struct error e;
};

enum {
    EFFORT_BYTES = 64, /* of memory pay as much as a step */
    EFFORT_FREE = 100, /* so much is not paid for: to begin, and to say in the end what is wrong */
};

/* Texts, arrays, objects and numbers of a size at which one that works without paying shows:
 * see effort.c. */
const struct json *effort_document(struct arena *a);

/* The same, smaller, as a text: what is read of it is paid for, too. */
struct slice effort_recorded(struct arena *a);

/* Evaluates `text` on the document. False: it is no expression. */
bool effort_take(const char *text, const struct json *document, struct effort *ret);
/* The same with the recorded text for `.input`, from its reading on. */
bool effort_take_recorded(const char *text, struct slice recorded, struct effort *ret);

/* Basic blocks for each step paid. */
size_t effort_rate(const struct effort *f);

#endif
