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
    bool of_child;                    /* only its children hold it up: see below */
};

/*
 * of_child: the error of the task says that children stopped (CODE_CHILD, CODE_PIVOT), and each of
 * these can be helped by itself: it is in error, too, or has gone on, which the task was not told
 * yet. Not so if
 *
 *   - a step failed with such an error, which an agent may give, or a child was undone while the
 *     task was in error: then somebody has to help the task, whatever its children do
 *   - one of the children was closed, or is processed and could not be undone: no alert of the
 * child stands for it
 */

struct stopped_page {
    struct stopped *rows;
    size_t count;
    bool more;
};

#endif
