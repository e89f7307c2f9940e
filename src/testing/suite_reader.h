#ifndef TESTING_SUITE_READER_H
#define TESTING_SUITE_READER_H

/* What the files that read a test file share (suite.h). */

#include "config/config_reader.h"
#include "testing/suite.h"

/* Readers of values; after a mistake *target is unchanged. */
void read_tree(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_test_expression(struct reader *r, const struct json *j, const struct path *path,
                          void *target);

/* suite_agents.c: target: struct plays */
void read_agents(struct reader *r, const struct json *j, const struct path *path, void *target);

/* suite_acts.c: target: struct test_case */
void read_operator(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_signals(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_approvals(struct reader *r, const struct json *j, const struct path *path, void *target);

/* suite_expect.c: target: struct test_case */
void read_expect(struct reader *r, const struct json *j, const struct path *path, void *target);

/* suite_faults.c; targets: struct test_case, struct suite_rules */
void read_faults(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_rules(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
