/*
 * Alerts in PostgreSQL, and the stopped tasks for which they are opened. The columns are those of
 * rows/alert.h.
 */
#include "store/postgres/columns.h"

enum err pg_stopped(struct store *base, int64_t after_ended_at, int64_t after_seq, size_t limit,
                    struct arena *a, struct stopped_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_STOPPED, &own);
    param_number(&q, after_ended_at);
    param_number(&q, after_seq);
    param_number(&q, (int64_t)limit + 1);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read what stopped in error");
    if (!r)
        return e->code;
    size_t found = (size_t)PQntuples(r);
    *ret = (struct stopped_page){.count = found < limit ? found : limit, .more = found > limit};
    ret->rows = arena_alloc(a, (ret->count + 1) * sizeof *ret->rows);
    for (int i = 0; i < (int)ret->count; i++)
        ret->rows[i] = (struct stopped){
            .seq = result_number(r, i, 0),
            .ended_at = result_number(r, i, 1),
            .id = arena_copy(a, result_text(r, i, 2)),
            .workflow = arena_copy(a, result_text(r, i, 3)),
            .undo = result_flag(r, i, 4),
            .code = arena_copy(a, result_text(r, i, 5)),
            .message = arena_copy(a, result_text(r, i, 6)),
            .step = arena_copy(a, result_text(r, i, 7)),
            .of_child = result_flag(r, i, 8),
        };
    return ERR_OK;
}

static void bind_row(struct query *q, const struct alert_row *row)
{
    ALERT_PUT_COLUMNS(BIND, )
    BIND(lift, flag)
}

enum err pg_alert_put(struct store *base, const struct alert_row *row, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[3];
    PGresult *r[3] = {0};
    size_t count = 0;

    if (!text_is_storable(row->key) || !text_is_storable(row->doc))
        return error_set(e, ERR_INVALID, "what is said of an alert has to be UTF-8 without NULs");
    if (row->fence) {
        query_of(&q[count], s, PG_FENCE, &a);
        param_text(&q[count], row->fence->lease);
        param_number(&q[count++], (int64_t)row->fence->epoch);
    }
    query_of(&q[count], s, PG_ALERT_PUT, &a);
    bind_row(&q[count++], row);
    if (!row->live) {
        query_of(&q[count], s, PG_ALERT_TRIM, &a);
        param_number(&q[count++], ALERTS_KEPT);
    }
    struct pg_end o = pg_transact(s, q, count, r, e, "store an alert");
    results_clear(r, count);
    if (row->fence && o.err != ERR_OK && o.failed_at == 0 && strcmp(o.sqlstate, "22012") == 0)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(row->fence->lease));
    if (o.err == ERR_CONFLICT)
        return error_set(e, ERR_CONFLICT, "another alert of that group is live");
    return pg_end_err(&o, e);
}

static void read_row(const PGresult *r, int i, struct arena *a, struct alert_row *ret)
{
    struct alert_row row = {0};
    int col = 0;

    READ(seq, number)
    ALERT_COLUMNS(READ, )
    *ret = row;
}

enum err pg_alert_list(struct store *base, const struct alert_query *aq, struct arena *a,
                       struct alert_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, aq->live ? PG_ALERT_LIVE : PG_ALERT_LIST, &own);
    param_number(&q, aq->before_seq ? aq->before_seq : INT64_MAX);
    param_number(&q, (int64_t)aq->limit + 1);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list alerts");
    if (!r)
        return e->code;
    size_t found = (size_t)PQntuples(r);
    *ret = (struct alert_page){.count = found < aq->limit ? found : aq->limit,
                               .more = found > aq->limit};
    ret->rows = arena_alloc(a, (ret->count + 1) * sizeof *ret->rows);
    for (int i = 0; i < (int)ret->count; i++)
        read_row(r, i, a, &ret->rows[i]);
    return ERR_OK;
}

enum err pg_alert_acknowledge(struct store *base, struct slice id, const struct audit *audit,
                              struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *r = NULL;

    if (!text_is_storable(id) || !text_is_storable(audit->reason))
        return error_set(e, ERR_INVALID, "a reason has to be UTF-8 without NULs");
    query_of(&q, s, PG_ALERT_ACKNOWLEDGE, &a);
    param_text(&q, id);
    pg_bind_audit(&q, audit);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "acknowledge an alert");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r, 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "%.*s: there is no such alert", SLICE_ARG(id));
    else if (err == ERR_OK && result_number(r, 0, 1) > 0)
        err = error_set(e, ERR_CONFLICT, "%.*s: it is resolved", SLICE_ARG(id));
    PQclear(r);
    return err;
}
