#ifndef DEFINITION_READER_SIGNAL_STEP_H
#define DEFINITION_READER_SIGNAL_STEP_H

/* Steps that wait for a signal (`signal` and `default` of a step), and signals that have a task
 * undone (`on_signal` of a definition). */

#include "definition/reader/definition_reader.h"

enum { SIGNAL_NAMES_MAX = 20 }; /* of one step, and of on_signal */

/* A list of names. */
struct signal_names {
    struct slice list[SIGNAL_NAMES_MAX];
    uint16_t count;
};

/* What `signal` says, and the keys beside it. */
struct signal_draft {
    struct signal_names names;
    struct expression *match; /* NULL: any signal of these names */
    const struct json *complete_by, *otherwise;
    int64_t complete_by_ms;
};

/* Each: target is a struct signal_draft. */
void read_signal(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_signal_complete_by(struct reader *r, const struct json *j, const struct path *path,
                             void *target);
void read_signal_default(struct reader *r, const struct json *j, const struct path *path,
                         void *target);

/* Reports a key that makes no sense beside `signal`. */
void refuse_beside_signal(struct reader *r, const struct json *j, const struct path *path,
                          void *target);

/* Checks what depends on other keys, and gives the step what was read. */
void settle_signal(struct reader *r, const struct json *j, const struct path *path,
                   const struct signal_draft *d, struct signal_spec *ret);

/* target: struct signal_names. */
void read_on_signal(struct reader *r, const struct json *j, const struct path *path, void *target);

/* A name is for a step, or for the whole task. The steps are read. */
void check_on_signal(struct reader *r, const struct workflow_step *steps, uint16_t count,
                     const struct json *on_signal, const struct signal_names *names);

/* As the workflow keeps it. */
const struct slice *signal_names_keep(struct reader *r, const struct signal_names *n);

#endif
