/*
 * Reads one task with its operations, or what is kept of a deleted one, from the store. Any thread
 * that may use a store. Used by GET, events, the archive and "why".
 */

#include "node/task_read.h"

#include "node/access.h"
#include "node/node.h"

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

/* Where a store has no round trips to save. */
static enum err read_one(struct store *store, struct task_record *r)
{
    const struct audit_query operations = {.task = r->id, .limit = TASK_OPERATIONS_MAX};
    bool is_snapshot = store->ops->snapshot != NULL;

    if (is_snapshot)
        store->ops->snapshot(store);
    enum err err = store->ops->get(store, r->id, r->arena, &r->row, &r->error);
    if (err == ERR_OK)
        err = store->ops->audit_list(store, &operations, r->arena, &r->operations, &r->error);
    else if (err == ERR_NOT_FOUND)
        err = read_gone(store, r->id, r->arena, &r->gone, &r->error);
    if (is_snapshot)
        store->ops->snapshot_end(store);
    return err;
}

static void read_one_by_one(struct store *store, struct task_record *list, size_t count,
                            size_t bytes_max)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        list[i].left = bytes >= bytes_max;
        if (list[i].left)
            continue;
        bytes -= list[i].arena->total;
        list[i].err = read_one(store, &list[i]);
        bytes += list[i].arena->total;
    }
}

static void read_at_once(struct store *store, struct task_record *list, size_t count,
                         size_t bytes_max)
{
    struct error e = {0};
    enum err err = store->ops->records(store, list, count, bytes_max, &e);

    for (size_t i = 0; i < count; i++) {
        struct task_record *r = &list[i];
        if (err != ERR_OK) {
            r->err = err;
            r->error = e;
        } else if (!r->left && r->err == ERR_NOT_FOUND) {
            r->err = read_gone(store, r->id, r->arena, &r->gone, &r->error);
        }
    }
}

void task_records_read(struct store *store, struct task_record *list, size_t count,
                       size_t bytes_max)
{
    for (size_t i = 0; i < count; i++)
        list[i].gone = (struct reservation){0};
    (store->ops->records ? read_at_once : read_one_by_one)(store, list, count, bytes_max);
}

enum err task_read(struct store *store, struct slice id, struct arena *a, struct task_row *ret,
                   struct audit_page *ret_operations, struct reservation *ret_gone, struct error *e)
{
    struct task_record r = {.id = id, .arena = a};

    task_records_read(store, &r, 1, SIZE_MAX / 2);
    *ret = r.row;
    *ret_operations = r.operations;
    *ret_gone = r.gone;
    if (r.err != ERR_OK)
        *e = r.error;
    return r.err;
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
