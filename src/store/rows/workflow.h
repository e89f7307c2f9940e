#ifndef STORE_ROWS_WORKFLOW_H
#define STORE_ROWS_WORKFLOW_H

/* Workflows: definitions as they were stored. */

#include "base/base.h"

struct workflow_row {
    struct slice name;
    int64_t version;
    struct slice text; /* the definition as it was stored */
    int64_t created_at;
    bool described; /* out, of workflow_list: its inputs are known to the store */
};

/* The columns of the table `workflow`, but its inputs. What X, S and the types are: rows/task.h. */
/* clang-format off */
#define WORKFLOW_COLUMNS(X, S) \
    X(name,       text)   S    \
    X(version,    number) S    \
    X(text,       text)   S    \
    X(created_at, number)
/* clang-format on */

/* The inputs of a version of a workflow, for those who submit in SQL: JSON, an array of
 * {"name", "type", "required"} by the words of definitions, or null where it names none. */
struct workflow_inputs {
    struct slice name;
    int64_t version;
    struct slice inputs;
};

#endif
