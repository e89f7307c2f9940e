/* The store's part of an operation, on the store's thread: what became of a page that another node
 * may have asked, and the next page with the counts of the previous one. The turns: runner.c. */

#include "operations/runner_parts.h"

/* Has this operation changed the task? */
static enum err read_audit(struct store *st, const struct operation *op, struct slice task,
                           struct arena *a, bool *ret, struct error *e)
{
    struct audit_query q = {.task = task, .limit = AUDITS_READ};
    struct audit_page page = {.more = true};

    *ret = false;
    while (page.more && !*ret) {
        enum err err = st->ops->audit_list(st, &q, a, &page, e);
        if (err != ERR_OK)
            return err;
        for (size_t i = 0; i < page.count && !*ret; i++)
            *ret = operation_did(op, &page.entries[i]);
        if (page.count > 0)
            q.before_seq = page.seqs[page.count - 1];
    }
    return ERR_OK;
}

/* Finds which tasks of the page still match. */
static enum err read_fitting(struct store *st, struct slot *s, struct arena *a)
{
    struct list_query q = s->op.filter.query;
    struct row_page page = {.more = true};

    q.ids = s->op.page;
    q.id_count = s->op.page_count;
    q.limit = OPERATION_PAGE_MAX;
    while (page.more) {
        enum err err = st->ops->list(st, &q, a, &page, &s->error);
        if (err != ERR_OK)
            return err;
        for (size_t i = 0; i < page.count; i++)
            for (size_t k = 0; k < s->op.page_count; k++)
                s->fits[k] |= slice_eq(page.rows[i].id, s->op.page[k]);
        q.before_seq = page.next_seq;
    }
    return ERR_OK;
}

void page_check_run(struct store_job *j, struct store *st)
{
    struct slot *s = CONTAINER_OF(j, struct slot, job);
    CLEANUP(arena_fini) struct arena a = {0};

    memset(s->did, 0, sizeof s->did);
    memset(s->fits, 0, sizeof s->fits);
    s->err = read_fitting(st, s, &a);
    for (size_t i = 0; i < s->op.page_count && s->err == ERR_OK; i++)
        if (s->tasks[i].state == TASK_TO_CHECK)
            s->err = read_audit(st, &s->op, s->op.page[i], &a, &s->did[i], &s->error);
}

/* Reads the next matching tasks into `next`. */
static enum err read_next(struct store *st, struct slot *s)
{
    struct operation *next = &s->next;
    struct list_query q = next->filter.query;
    struct row_page page = {0};

    next->page_count = 0;
    if (next->seen_all)
        return ERR_OK;
    q.limit = operation_page_size(next);
    q.before_seq = next->cursor;
    if (q.limit == 0) {
        next->seen_all = true;
        return ERR_OK;
    }
    enum err err = st->ops->list(st, &q, &s->fresh, &page, &s->error);
    if (err != ERR_OK)
        return err;
    ASSERT(page.count <= OPERATION_PAGE_MAX);
    for (size_t i = 0; i < page.count; i++)
        next->page[next->page_count++] = page.rows[i].id;
    next->matched += page.count;
    next->cursor = page.next_seq;
    next->seen_all = !page.more;
    return ERR_OK;
}

static enum err put(struct store *st, struct slot *s)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct operation_row row;

    operation_encode(&s->next, &doc, &row);
    return st->ops->operations->put(st, &row, NULL, &s->error);
}

/* A person may have stopped or resumed the operation meanwhile, and can change nothing else. If
 * anything else changed, another node works on it. */
static enum err merge(struct store *st, struct slot *s)
{
    const struct operation_query q = {.id = s->op.id, .limit = 1};
    struct operation_page page = {0};
    struct operation there;

    enum err err = st->ops->operations->list(st, &q, &s->fresh, &page, &s->error);
    if (err != ERR_OK)
        return err;
    s->reload = page.count == 0
                || operation_decode(&s->fresh, &page.rows[0], &there, &s->error) != ERR_OK
                || there.state == OPERATION_DONE || there.matched != s->op.matched
                || there.cursor != s->op.cursor || there.page_count != s->op.page_count;
    if (s->reload)
        return ERR_OK;
    s->next.state = there.state;
    s->next.ended_at = there.ended_at;
    s->next.revision = there.revision + 1;
    return ERR_CONFLICT;
}

enum { MERGES_MAX = 5 };

/* Did the lease expire while the job waited for the store? Then another node may have asked the
 * page. */
static bool is_late(const struct slot *s)
{
    return s->outside->steady(s->outside->arg) >= s->until;
}

void page_next_run(struct store_job *j, struct store *st)
{
    struct slot *s = CONTAINER_OF(j, struct slot, job);

    ASSERT(s->next.page_count == 0);
    s->reload = false;
    s->err = read_next(st, s);
    if (s->err != ERR_OK)
        return;
    s->reload = is_late(s); /* as close to the write as possible */
    if (s->reload)
        return;
    if (s->next.page_count == 0 && s->next.seen_all)
        s->next.state = OPERATION_DONE;
    else
        s->next.ended_at = 0;
    s->err = put(st, s);
    for (int i = 0; i < MERGES_MAX && s->err == ERR_CONFLICT; i++) {
        s->err = merge(st, s);
        if (s->err == ERR_CONFLICT)
            s->err = put(st, s);
    }
    if (s->err == ERR_CONFLICT)
        s->reload = true;
}
