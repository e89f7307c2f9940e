#ifndef DEFINITION_READER_WAIT_STEP_H
#define DEFINITION_READER_WAIT_STEP_H

/* Steps that wait for a length of time or for a moment: `wait` of a definition. */

#include "definition/reader/definition_reader.h"

/* What `wait` says. */
struct wait_draft {
    const struct json *json; /* NULL: the step has none */
    int64_t ms;              /* its length; 0: it has a moment */
    struct template *until;
    int64_t plus_ms;
};

/* target: struct wait_draft. */
void read_wait(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Reports a key that makes no sense beside `wait`. */
void refuse_beside_wait(struct reader *r, const struct json *j, const struct path *path,
                        void *target);

/* Reports waits by length that one after the other take longer than the task may. The order of the
 * steps is known. */
void check_wait_lengths(struct reader *r, const struct workflow_step *steps, const uint16_t *order,
                        uint16_t count, int64_t complete_by_ms);

#endif
