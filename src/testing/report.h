#ifndef TESTING_REPORT_H
#define TESTING_REPORT_H

/* What became of tests: for people, as TAP (https://testanything.org), and as JUnit's XML, which
 * CI servers read. */

#include "testing/trial.h"

/* The failure of a test: what was expected where, and what happened. */
void report_failure(struct buf *b, const struct trial *t);
void report_timeline(struct buf *b, const struct trial *t); /* what happened alone */

void report_tap_begin(struct buf *b);
void report_tap(struct buf *b, const struct trial *t, size_t number);
void report_tap_broken(struct buf *b, const char *file, size_t number); /* it has mistakes */
void report_tap_end(struct buf *b, size_t count);

/* JUnit: a document of suites, each of test cases. */
struct junit {
    struct buf done, suite; /* those before, and the test cases of the present one */
    size_t tests, failures; /* of the present one */
    size_t all_tests, all_failures, errors; /* errors: files that have mistakes */
};

void junit_fini(struct junit *j);
void junit_case(struct junit *j, const struct trial *t);
void junit_suite(struct junit *j, const char *file); /* ends the present suite */
void junit_broken(struct junit *j, const char *file);
void junit_write(const struct junit *j, struct buf *b);

#endif
