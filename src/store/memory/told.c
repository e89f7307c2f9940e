/*
 * The operations of the capabilities outbox, alerts, operations and schedules, which may fail by an
 * injected fault. outbox.c, alert.c, operation.c and schedule.c have the data.
 */
#include "store/memory/body.h"

/* Operations on messages, alerts, operations on many tasks, and schedules. */

enum err memory_outbox_read(struct store *base, struct outbox_read *r, struct arena *a,
                            struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    const struct lease *l = r->fence ? mem_lease_find(&s->nodes, r->fence->lease) : NULL;

    if (fault())
        return mem_fails(e);
    r->count = 0;
    r->more = false;
    if (!r->fence || (l && l->epoch == r->fence->epoch))
        mem_outbox_read(&s->outbox, r, a);
    return ERR_OK;
}

enum err memory_outbox_settle(struct store *base, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    const struct batch b = {.fence = fence};

    enum err err = memory_batch_refused(s, &b, e);
    if (err != ERR_OK)
        return err;
    mem_outbox_settle(&s->outbox, list, count);
    return mem_committed(e);
}

enum err memory_outbox_targets(struct store *base, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_outbox_targets(&memory_store_of(base)->outbox, q, a, ret, ret_count);
    return ERR_OK;
}

enum err memory_outbox_list(struct store *base, const struct outbox_query *q, struct arena *a,
                            struct message_page *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_outbox_list(&memory_store_of(base)->outbox, q, a, ret);
    return ERR_OK;
}

enum err memory_outbox_do(struct store *base, struct outbox_verb *v, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_outbox_do(&s->outbox, v);
    if (v->count > 0)
        mem_audit_add(&s->access, v->audit);
    return mem_committed(e);
}

enum err memory_outbox_census(struct store *base, size_t most, struct outbox_census *ret,
                              struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_outbox_census(&memory_store_of(base)->outbox, most, ret);
    return ERR_OK;
}

enum err memory_operation_put(struct store *base, const struct operation_row *row,
                              const struct audit *audit, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (!mem_operation_fits(&s->operations, row))
        return error_set(e, ERR_CONFLICT, "operation %.*s was changed meanwhile",
                         SLICE_ARG(row->id));
    mem_operation_put(&s->operations, row);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_operation_list(struct store *base, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_operation_list(&memory_store_of(base)->operations, q, a, ret);
    return ERR_OK;
}

/* Whether it waits to become a task, or is one that has not ended. */
static bool run_is_open(void *arg, struct slice run)
{
    const struct memory_store *s = arg;
    const struct mem_task *t = map_get(&s->by_id, run);

    if (mem_submission_waits(&s->submissions, SLICE(SCHEDULE_SOURCE), run))
        return true;
    return t && t->row.state != TASK_PROCESSED && t->row.state != TASK_COMPENSATED
           && t->row.closed_at == 0;
}

enum err memory_schedule_write(struct store *base, struct schedule_change *list, size_t count,
                               const struct fence *fence, struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    const struct batch b = {.fence = fence};

    enum err err = memory_batch_refused(s, &b, e);
    if (err != ERR_OK)
        return err;
    for (size_t i = 0; i < count; i++) {
        struct schedule_change *c = &list[i];
        c->done = mem_schedule_write(&s->schedules, c);
        for (size_t n = 0; c->done && n < c->submission_count; n++)
            mem_submission_add(&s->submissions, &c->submissions[n]);
        if (c->done)
            mem_audit_add(&s->access, c->audit);
    }
    return mem_committed(e);
}

enum err memory_schedule_look(struct store *base, struct schedule_look *l, struct arena *a,
                              struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_schedules_look(&s->schedules, l, run_is_open, s, a);
    return ERR_OK;
}

enum err memory_schedule_list(struct store *base, const struct schedule_query *q, struct arena *a,
                              struct schedule_page *ret, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_schedules_list(&s->schedules, q, run_is_open, s, a, ret);
    return ERR_OK;
}

enum err memory_schedule_version(struct store *base, struct slice name, int64_t version,
                                 struct arena *a, struct schedule_version_row *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    if (!mem_schedule_version(&memory_store_of(base)->schedules, name, version, a, ret))
        return error_set(e, ERR_NOT_FOUND, "schedule %.*s has no version %" PRId64, SLICE_ARG(name),
                         version);
    return ERR_OK;
}

enum err memory_schedule_remove(struct store *base, struct slice name, const struct audit *audit,
                                struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (!mem_schedule_remove(&s->schedules, name))
        return error_set(e, ERR_NOT_FOUND, "there is no schedule %.*s", SLICE_ARG(name));
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_alert_put(struct store *base, const struct alert_row *row, struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    const struct lease *l = row->fence ? mem_lease_find(&s->nodes, row->fence->lease) : NULL;

    if (fault())
        return mem_fails(e);
    if (row->fence && (!l || l->epoch != row->fence->epoch))
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(row->fence->lease));
    if (!mem_alert_fits(&s->alerts, row))
        return error_set(e, ERR_CONFLICT, "another alert of that group is live");
    mem_alert_put(&s->alerts, row);
    return mem_committed(e);
}

enum err memory_alert_list(struct store *base, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_alert_list(&memory_store_of(base)->alerts, q, a, ret);
    return ERR_OK;
}

enum err memory_alert_acknowledge(struct store *base, struct slice id, const struct audit *audit,
                                  struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    bool news = false;

    if (fault())
        return mem_fails(e);
    enum err err = mem_alert_acknowledge(&s->alerts, id, audit, &news);
    if (err != ERR_OK)
        return error_set(e, err, "%.*s: %s", SLICE_ARG(id),
                         err == ERR_NOT_FOUND ? "there is no such alert" : "it is resolved");
    if (!news)
        return ERR_OK;
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}
