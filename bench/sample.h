#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include "base/buf.h"

/* A definition in YAML with `steps` steps that use every field of a step. */
void sample_definition(struct buf *b, int steps);

enum sample_shape {
    SHAPE_SEQUENCE, /* one step after the other */
    SHAPE_WIDE,     /* all at once */
    SHAPE_UNDONE,   /* a sequence whose last step has the action "fail": all others are undone */
};

/* A JSON definition of the workflow "bench" with `steps` steps for the agents a, b and c. */
void sample_workflow(struct buf *b, long steps, enum sample_shape shape);

/* The same with a step for each of .input.lines, so many at a time. UNDONE: a step after it fails,
 * and all items are undone. */
void sample_items(struct buf *b, long concurrency, enum sample_shape shape);

enum { SAMPLE_EXPRESSIONS = 6 };
extern const char *const sample_expressions[SAMPLE_EXPRESSIONS];
extern const char sample_root[]; /* the JSON that the expressions read */

#endif
