#ifndef TESTING_COVERAGE_H
#define TESTING_COVERAGE_H

/* What the tests of a suite have reached of its definitions. */

#include "testing/suite.h"

/* What a step can be seen to do. */
enum covered {
    COVERED_RUN = 1 << 0,       /* it completed */
    COVERED_IF_FALSE = 1 << 1,  /* it was skipped by its condition */
    COVERED_UNDONE = 1 << 2,    /* its undo completed */
    COVERED_EXHAUSTED = 1 << 3, /* its attempts were used up */
    COVERED_OVERDUE = 1 << 4,   /* its complete-by passed */
    COVERED_DEFAULT = 1 << 5,   /* its `default` was its output */
    COVERED_BEGUN = 1 << 6,     /* it began, whatever became of it */
};

struct coverage {
    struct covered_workflow {
        const struct definition *definition;
        unsigned *steps;      /* of each step: enum covered */
        bool deadline_passed; /* that of a task */
    } * list;
    size_t count;
    struct arena arena;
};

void coverage_open(struct coverage *c, const struct suite *s);
void coverage_close(struct coverage *c);

/* Adds what another coverage of the same suite has seen. */
void coverage_add(struct coverage *c, const struct coverage *seen);

/* Takes in a revision of a task. */
void coverage_see(struct coverage *c, const struct workflow *w, const struct task *t);

/* One thing that can be reached of a step, in words: "completes", "undo". */
struct covered_part {
    const char *what;
    bool is_undo, is_seen;
};

enum { COVERED_PARTS_MAX = 7 };

/* What can be reached of a step; returns the number. `seen`: enum covered. */
size_t coverage_parts(const struct definition *d, uint16_t step, unsigned seen,
                      struct covered_part ret[COVERED_PARTS_MAX]);

/* A table of what could be reached, with what was. Returns the number of things missed. */
size_t coverage_write(const struct coverage *c, struct buf *b);

/* coverage_picture.c: the same as pictures of the workflows. `file`: of the tests. */
struct picture;
void coverage_draw(const struct coverage *c, struct slice file, struct picture *p);

#endif
