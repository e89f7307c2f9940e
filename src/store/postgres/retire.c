/*
 * Finds ended tasks that may be deleted, and deletes them. One statement reads some rows by seq,
 * of which row.c in store/ chooses by the rules; one locks those that are not locked, and
 * deletes them with all that is theirs.
 */
#include "store/postgres/body.h"

#include "store/row.h"

/* ---- looking ---- */

static bool may_go(const struct retire_look *r, const struct retire_seen *t, size_t *ret_rule)
{
    *ret_rule = r->orphans ? SIZE_MAX : retire_rule_of(r, t);
    return r->orphans ? retire_orphan_goes(t) : *ret_rule != SIZE_MAX;
}

static void look_at(struct retire_look *r, const PGresult *result, int row, struct arena *a)
{
    struct retire_seen t = {.seq = result_number(result, row, 0),
                            .workflow = result_text(result, row, 3),
                            .ended_at = result_number(result, row, 5),
                            .closed_at = result_number(result, row, 8),
                            .child = result_flag(result, row, 11),
                            .locked = result_flag(result, row, 6),
                            .untold = result_flag(result, row, 9),
                            .fresh_at = result_number(result, row, 10)};
    struct slice root = r->orphans ? arena_copy(a, result_text(result, row, 12)) : SLICE_NONE;
    size_t rule = SIZE_MAX;

    r->after_seq = t.seq;
    r->after_root = root;
    if (!task_state_parse(result_text(result, row, 4), &t.state) || !may_go(r, &t, &rule))
        return;
    r->found[r->found_count++] =
        (struct retired){.seq = t.seq,
                         .revision = (uint64_t)result_number(result, row, 1),
                         .id = arena_copy(a, result_text(result, row, 2)),
                         .workflow = arena_copy(a, t.workflow),
                         .state = t.state,
                         .rule = rule,
                         .root = root,
                         .archive = r->orphans && result_number(result, row, 13) != 0};
}

static enum pg_sql look_by(const struct retire_look *r)
{
    if (r->orphans)
        return PG_RETIRE_LOOK_ORPHANS;
    return r->workflow.ptr ? PG_RETIRE_LOOK_WORKFLOW : PG_RETIRE_LOOK;
}

enum err pg_retire_look(struct store *base, struct retire_look *r, struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query q;
    bool past = false;

    query_of(&q, postgres_store_of(base), look_by(r), &own);
    param_number(&q, r->after_seq);
    param_number(&q, (int64_t)r->scan_max);
    if (r->orphans || r->workflow.ptr)
        param_text(&q, r->orphans ? r->after_root : r->workflow);
    CLEANUP(result_end)
    PGresult *result = pg_read(postgres_store_of(base), &q, e, "look for what is to be deleted");
    if (!result)
        return e->code;
    int count = PQntuples(result);
    r->found = arena_alloc(a, ((size_t)count + 1) * sizeof *r->found);
    r->found_count = 0;
    for (int i = 0; i < count && !past; i++) {
        look_at(r, result, i, a);
        past = !r->orphans && retire_is_past(r, r->after_seq, result_number(result, i, 7));
    }
    r->more = (size_t)count == r->scan_max && !past;
    return ERR_OK;
}

/* ---- deleting ---- */

static void bind(struct query *q, const struct retire *r)
{
    struct array seqs = {0};
    struct array revisions = {0};

    for (size_t i = 0; i < r->task_count; i++) {
        array_number(&seqs, r->tasks[i].seq);
        array_number(&revisions, (int64_t)r->tasks[i].revision);
    }
    param_array(q, &seqs, ARRAY_NUMBERS);
    param_array(q, &revisions, ARRAY_NUMBERS);
    param_number(q, RESERVED_FOR_CHILDREN);
    param_time(q, r->reserve_until);
    param_number(q, r->archived);
    pg_bind_audit(q, r->audit);
}

static bool is_gone(const PGresult *result, int64_t seq)
{
    int from = 0;
    int to = PQntuples(result);

    while (from < to) {
        int mid = from + (to - from) / 2;
        int64_t at = result_number(result, mid, 0);
        if (at == seq)
            return true;
        if (at < seq)
            from = mid + 1;
        else
            to = mid;
    }
    return false;
}

enum err pg_retire(struct store *base, struct retire *r, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query q;
    PGresult *result = NULL;

    query_of(&q, postgres_store_of(base), PG_RETIRE, &own);
    bind(&q, r);
    struct pg_end o = pg_transact(postgres_store_of(base), &q, 1, &result, e, "delete tasks");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK) {
        for (size_t i = 0; i < r->task_count; i++)
            r->gone[i] = is_gone(result, r->tasks[i].seq);
        r->dealt_with = r->task_count;
    }
    PQclear(result);
    return err;
}

/* ---- ids that are kept ---- */

enum err pg_reserved(struct store *base, struct slice id, struct arena *a, struct reservation *ret,
                     struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct reservation work = {0};
    struct query q;

    if (!text_is_storable(id))
        return error_set(e, ERR_NOT_FOUND, "there was no such task");
    query_of(&q, postgres_store_of(base), PG_RESERVED, &own);
    param_text(&q, id);
    CLEANUP(result_end)
    PGresult *r = pg_read(postgres_store_of(base), &q, e, "read what is known of a deleted task");
    if (!r)
        return e->code;
    if (PQntuples(r) == 0 || !task_state_parse(result_text(r, 0, 3), &work.state))
        return error_set(e, ERR_NOT_FOUND, "there was no task %.*s", SLICE_ARG(id));
    work.content =
        (struct content){content_parse(result_text(r, 0, 0)), arena_copy(a, result_text(r, 0, 6))};
    work.workflow = arena_copy(a, result_text(r, 0, 1));
    work.version = result_number(r, 0, 2);
    work.ended_at = result_number(r, 0, 4);
    work.until = result_number(r, 0, 5);
    work.owner = arena_copy(a, result_text(r, 0, 7));
    *ret = work;
    return ERR_OK;
}

enum err pg_reserved_sweep(struct store *base, int64_t now, size_t limit, size_t *ret_count,
                           struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query q[2];
    PGresult *r[2] = {0};

    query_of(&q[0], postgres_store_of(base), PG_ORPHANED_END, &own);
    param_number(&q[0], (int64_t)limit);
    query_of(&q[1], postgres_store_of(base), PG_RESERVED_SWEEP, &own);
    param_number(&q[1], now);
    param_number(&q[1], (int64_t)limit);
    struct pg_end o =
        pg_transact(postgres_store_of(base), q, COUNT_OF(q), r, e, "forget ids of deleted tasks");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK)
        *ret_count = (size_t)max_i64(PQntuples(r[0]), PQntuples(r[1]));
    results_clear(r, COUNT_OF(r));
    return err;
}
