#ifndef NODE_CHANGES_H
#define NODE_CHANGES_H

/*
 * Changes by operators that concern no task: definitions, tokens, agents, alerts. Each change is a
 * transaction of its own, and submissions and results wait behind those that the store thread has.
 * So it gets one at a time: between two changes it commits those of tasks.
 *
 * Each token has a line of changes, and lines take turns, one change each. So a token that changes
 * much delays others by one of its changes at most. A long change is followed by a rest while
 * several tokens call (fair.h), so that two thirds of the time are left to tasks.
 *
 * The callers bound how many wait (asks_have_room). Event loop only.
 */

#include <uv.h>

#include "store/job.h"

struct changes;

struct changes_config {
    struct store_queue *store;
    /* Is this the only account whose token calls? NULL: there is no account. */
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
