#ifndef TESTING_UPDATE_H
#define TESTING_UPDATE_H

/* Fills in what stands as "?" in a test file: what was found instead. */

#include "testing/trial.h"

struct update {
    struct replacement {
        uint32_t at;
        struct slice text;
    } * list; /* in the order of the text, once all tests have run */
    size_t count, cap;
    struct arena arena;
};

void update_fini(struct update *u);

/* Whether anything of the test stands as "?". */
bool update_is_asked(const struct test_case *c);

/* Takes what was found in a test that has ended, without problems. */
void update_take(struct update *u, const struct trial *t);

/* The text with all of it; returns how many values were filled in. */
size_t update_write(struct update *u, const struct suite *s, struct buf *b);

#endif
