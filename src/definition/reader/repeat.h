#ifndef DEFINITION_READER_REPEAT_H
#define DEFINITION_READER_REPEAT_H

/* Steps that are repeated in rounds: `repeat` of a definition. */

#include "definition/reader/definition_reader.h"

/* What `repeat` says. */
struct repeat_draft {
    const struct json *json; /* NULL: the step has none */
    struct repeat_rule rule;
    struct expression *until;
    const struct json *max_every;
};

/* target: struct repeat_draft. */
void read_repeat(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Reports `repeat` of a step that may have something to undo. `undo`: what it says of that, or
 * NULL. */
void check_repeat_undo(struct reader *r, const struct path *step, const struct json *repeat,
                       const struct json *undo, bool is_none);

#endif
