/*
 * The operations of the capabilities `submissions` and `notices`, which may fail by an injected
 * fault. submission.c and notice.c have the data.
 */
#include "store/memory/body.h"

#include "store/memory/task.h"

enum err memory_workflow_describe(struct store *base, const struct workflow_inputs *list,
                                  size_t count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        mem_workflow_describe(&memory_store_of(base)->workflows, &list[i]);
    return ERR_OK;
}

enum err memory_submissions_take(struct store *base, struct submission_take *t, struct arena *a,
                                 struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_submissions_take(&memory_store_of(base)->submissions, t, a);
    t->notices = mem_notices_any(&memory_store_of(base)->notices);
    t->signals_refused = mem_notices_refused(&memory_store_of(base)->notices);
    return ERR_OK;
}

enum err memory_submissions_settle(struct store *base, const struct submission_verdict *list,
                                   size_t count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        mem_submission_settle(&memory_store_of(base)->submissions, &list[i]);
    return mem_committed(e);
}

enum err memory_submissions_put(struct store *base, const struct submission_row *rows, size_t count,
                                struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        mem_submission_add(&memory_store_of(base)->submissions, &rows[i]);
    return mem_committed(e);
}

enum err memory_submissions_list(struct store *base, const struct submission_query *q,
                                 struct arena *a, struct submission_page *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_submissions_list(&memory_store_of(base)->submissions, q, a, ret);
    return ERR_OK;
}

enum err memory_submissions_verb(struct store *base, struct submission_verb *v, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_submissions_verb(&s->submissions, v);
    if (v->seq && v->count == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no refused submission %" PRId64, v->seq);
    if (v->count > 0)
        mem_audit_add(&s->access, v->audit);
    return mem_committed(e);
}

/* What is read of a notice's task beside it. */
static void look_at_task(void *arg, struct notice_row *row)
{
    struct memory_store *s = arg;
    const struct mem_task *t = map_get(&s->by_id, row->task);

    row->has_task = t != NULL;
    row->owner = t ? t->row.locked_by : SLICE_NONE;
    row->is_submitted = !t && mem_submission_of(&s->submissions, row->task);
}

enum err memory_notices_read(struct store *base, struct notice_read *n, struct arena *a,
                             struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_notices_read(&s->notices, false, n, a, look_at_task, s);
    return ERR_OK;
}

enum err memory_notices_refused(struct store *base, struct notice_read *n, struct arena *a,
                                struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_notices_read(&memory_store_of(base)->notices, true, n, a, NULL, NULL);
    return ERR_OK;
}

enum err memory_notices_told(struct store *base, const struct slice *ids, size_t count,
                             int64_t *ret_at, struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        ret_at[i] = mem_notices_told(&memory_store_of(base)->notices, ids[i]);
    return ERR_OK;
}

enum err memory_notices_settle(struct store *base, const struct notice_verdict *list, size_t count,
                               struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        mem_notice_settle(&memory_store_of(base)->notices, &list[i]);
    return mem_committed(e);
}

enum err memory_notices_put(struct store *base, const struct notice_row *rows, size_t count,
                            struct error *e)
{
    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++)
        mem_notice_add(&memory_store_of(base)->notices, &rows[i]);
    return mem_committed(e);
}
