#ifndef API_RECORDS_H
#define API_RECORDS_H

/*
 * Records of tasks for requests, read together: while one read of a token is under way, its further
 * ones gather, and then they are one read. So many waits that end at once cost a few statements.
 * Event loop only, but for `read`.
 */

#include "base/list.h"
#include "node/part.h"
#include "store/store.h"

struct gathering;

struct record_read {
    struct link link;
    struct task_record *record; /* `id` and `arena` are set by the caller */
    void *account;              /* whose time `done` takes; or NULL */
    /* On the thread that reads, after the record was read. */
    void (*read)(struct record_read *r);
    void (*done)(struct record_read *r);
};

extern const struct part records_part;

/* Reads on behalf of the token of that name; `is_first`: before the reads of all tokens, on the
 * store's own thread. */
void record_read_begin(struct server *sv, struct slice token, bool is_first, struct record_read *r);

#endif
