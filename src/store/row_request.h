#ifndef STORE_ROW_REQUEST_H
#define STORE_ROW_REQUEST_H

/*
 * What a supervisor requests of the owner of a task: the column `request` of its row. The
 * supervisor writes it, the owner carries it out when it reads the row.
 *
 *     [{"step":"charge","direction":"forward","attempt":2,"do":"retry"},
 *      {"step":"paid","direction":"forward","do":"undo","until":1800000000000},
 *      {"step":"pack","item":3,"direction":"forward","attempt":1,"do":"retry"},
 *      {"do":"deadline"}, {"do":"extend","until":1800000000000}]
 */

#include "base/arena.h"
#include "base/buf.h"
#include "core/task.h"

struct request_item {
    enum request_kind {
        REQUEST_ATTEMPT,  /* an attempt is overdue, or a step that waits for a signal: end it */
        REQUEST_DEADLINE, /* the task is overdue: stop it */
        REQUEST_EXTEND    /* the task's complete-by fell into lost time: move it */
    } kind;
    /* ATTEMPT: */
    struct slice step;
    bool of_item; /* of the step's list, which has a generation */
    uint32_t item, generation;
    enum direction direction;
    uint32_t attempt;     /* 0: it waits for a signal */
    struct slice outlook; /* what will follow by the rules, only for readers of the row */
    /* EXTEND; ATTEMPT if it waits for a signal: when that was overdue, after a grace time perhaps.
     * A signal that arrived later is late. */
    int64_t until;
};

struct request {
    struct request_item *list;
    size_t count;
};

void row_request_write(struct buf *b, const struct request *r);

/* *ret lies in `a` and points into it. An item that this program does not know is left out, and so
 * is anything that is no request: the text may be of a newer version. */
void row_request_read(struct slice text, struct arena *a, struct request *ret);

#endif
