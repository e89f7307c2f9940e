#ifndef NODE_CHANGES_H
#define NODE_CHANGES_H

/*
 * What people change beside tasks: definitions, tokens, agents, what is said of alerts. Each change
 * is a transaction of its own, and submissions and results wait behind those that the store's
 * thread has. So it has one of them at a time: between two changes it commits what tasks have.
 *
 * The changes of one token stand in line, and lines take turns, a change each: so a token that
 * changes much keeps others waiting for one of its changes at most. A long change is followed by a
 * rest while several tokens call (fair.h), so that two thirds of the time are left to tasks.
 *
 * How many wait is bounded by those who hand them in (asks_have_room). Used by the loop's thread
 * alone.
 */

#include <uv.h>

#include "store/job.h"

struct changes;

struct changes_config {
    struct store_queue *store;
    /* Does no token call but that of the account? NULL: none does. */
    bool (*is_alone)(void *arg, void *account);
    void *arg;
};

struct changes *changes_new(uv_loop_t *loop, const struct changes_config *c);
/* `token` NONE: nobody's. `account` is the token's, or NULL. */
void changes_add(struct changes *ch, struct slice token, void *account, struct store_job *j);
size_t changes_waiting(const struct changes *ch); /* with the one that the store has */
void changes_close(struct changes *ch);           /* nothing waits any more */
void changes_free(struct changes *ch); /* the loop has let go of its handle; NULL is fine */

#endif
