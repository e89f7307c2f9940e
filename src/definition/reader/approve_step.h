#ifndef DEFINITION_READER_APPROVE_STEP_H
#define DEFINITION_READER_APPROVE_STEP_H

/* Steps in which people decide: `approve` of a step. `complete_by` and `default` are read as those
 * of a signal. */

#include "definition/reader/signal_step.h"

/* Names of groups. */
struct groups {
    struct slice list[APPROVE_GROUPS_MAX];
    uint16_t count;
};

/* What `approve` says. */
struct approve_draft {
    struct groups by, to;
    uint16_t people; /* 0: not given */
    bool not_submitter;
    struct template *question;
    const struct json *remind, *after;
    int64_t remind_ms, escalate_ms;
};

/* target: struct approve_draft. */
void read_approve(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Reports a key that makes no sense beside `approve`. */
void refuse_beside_approve(struct reader *r, const struct json *j, const struct path *path,
                           void *target);

/* Checks what depends on other keys, and gives the step what was read. */
void settle_approve(struct reader *r, const struct json *j, const struct path *path,
                    const struct approve_draft *d, const struct signal_draft *limits,
                    struct approve_spec *ret);

/* Reports a step that needs more people than a task has votes for: it could not be decided. `j` is
 * the step's JSON. */
void count_people(struct reader *r, const struct path *path, const struct json *j,
                  const struct approve_spec *spec);

#endif
