#ifndef DEFINITION_EXPRESSION_EFFORT_H
#define DEFINITION_EXPRESSION_EFFORT_H

/*
 * Measures how much work an evaluation does for each step of its budget, for tests. It measures no
 * time, and does not rely on the evaluator's own accounting: the library `counted` of meson.build
 * is the evaluator compiled with instrumentation, so that every basic block counts itself. Calls
 * into libraries are counted by the bytes that they process. A basic block is about five
 * instructions.
 */

#include "definition/expression/machine.h"

/* The cost of one evaluation: as charged and as counted. */
struct effort {
    size_t blocks;
    size_t paid; /* steps, plus bytes divided by EFFORT_BYTES */
    enum err err;
    struct error e;
};

enum {
    EFFORT_BYTES = 64, /* this many bytes of memory count as one step */
    EFFORT_FREE = 100, /* this much is not charged: start-up, and the error message at the end */
};

/* A document with strings, arrays, objects and numbers large enough to expose operations that are
 * not charged: see effort.c. */
const struct json *effort_document(struct arena *a);

/* The same, smaller and as text: reading it is charged as well. */
struct slice effort_recorded(struct arena *a);

/* Evaluates `text` on the document. False: it is no valid expression. */
bool effort_take(const char *text, const struct json *document, struct effort *ret);
/* The same, with `.input` read from the recorded text first. */
bool effort_take_recorded(const char *text, struct slice recorded, struct effort *ret);

/* Basic blocks per charged step. */
size_t effort_rate(const struct effort *f);

#endif
