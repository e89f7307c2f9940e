#ifndef STORE_ROWS_STOPPED_H
#define STORE_ROWS_STOPPED_H

/* Tasks that stopped in error. */

#include "base/base.h"

/* A task that stopped in error and waits for a person. */
struct stopped {
    int64_t seq, ended_at;
    struct slice id, workflow;
    struct slice step, code, message; /* of what stopped it; NONE: not known */
    bool undo;                        /* on its way back: a compensation failed */
};

struct stopped_page {
    struct stopped *rows;
    size_t count;
    bool more;
};

#endif
