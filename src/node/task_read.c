/*
 * Reads one task with its operations, or what is kept of a deleted one, from the store. Any thread
 * that may use a store. Used by GET, events, the archive and "why".
 */

#include "node/task_read.h"

#include "node/access.h"
#include "node/node.h"

enum { OPERATIONS_MAX = 100 }; /* of what people did to a task, so many of the latest are shown */

/* Whether an id that does not exist is that of a deleted task. */
static enum err read_gone(struct store *store, struct slice id, struct arena *a,
                          struct reservation *ret, struct error *e)
{
    struct error ignored = {0}; /* that there is none is not reported */
    enum err err = store->ops->retention->reserved(store, id, a, ret, &ignored);

    if (err == ERR_OK || err == ERR_NOT_FOUND)
        return ERR_NOT_FOUND;
    *e = ignored;
    return err;
}

enum err task_read(struct store *store, struct slice id, struct arena *a, struct task_row *ret,
                   struct audit_page *ret_operations, struct reservation *ret_gone, struct error *e)
{
    const struct audit_query operations = {.task = id, .limit = OPERATIONS_MAX};
    bool is_snapshot = store->ops->snapshot != NULL;

    *ret_gone = (struct reservation){0};
    if (is_snapshot)
        store->ops->snapshot(store);
    enum err err = store->ops->get(store, id, a, ret, e);
    if (err == ERR_OK)
        err = store->ops->audit_list(store, &operations, a, ret_operations, e);
    else if (err == ERR_NOT_FOUND)
        err = read_gone(store, id, a, ret_gone, e);
    if (is_snapshot)
        store->ops->snapshot_end(store);
    return err;
}

void task_hide(const struct grant *grant, const struct task_row *row, enum err *err,
               struct reservation *gone)
{
    bool seen = *err == ERR_OK || *err == ERR_CORRUPT ? grant_sees(grant, row)
                : *err == ERR_NOT_FOUND ? gone->until != 0 && grant_reads(grant, gone->workflow)
                                        : true;
    if (seen)
        return;
    *err = ERR_NOT_FOUND;
    *gone = (struct reservation){0};
}
