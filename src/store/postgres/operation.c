/*
 * Operations in PostgreSQL: written with their audit entries, and listed. The columns are those of
 * rows/operation.h.
 */
#include "store/postgres/columns.h"

static void bind_row(struct query *q, const struct operation_row *row)
{
    OPERATION_COLUMNS(BIND, )
    BIND(id, text)
}

static bool is_storable(const struct operation_row *row)
{
    return text_is_storable(row->actor) && text_is_storable(row->reason)
           && text_is_storable(row->doc);
}

enum err pg_operation_put(struct store *base, const struct operation_row *row,
                          const struct audit *audit, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    PGresult *r = NULL;
    struct query q;

    if (!is_storable(row))
        return error_set(e, ERR_INVALID, "an operation has to be UTF-8 without NULs");
    query_of(&q, s, row->revision == 1 ? PG_OPERATION_PUT : PG_OPERATION_UPDATE, &a);
    bind_row(&q, row);
    pg_bind_audit(&q, audit);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "store an operation");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r, 0, 0) == 0)
        err =
            error_set(e, ERR_CONFLICT, "operation %.*s was changed meanwhile", SLICE_ARG(row->id));
    results_clear(&r, 1);
    return err;
}

static void read_row(const PGresult *r, int i, struct arena *a, struct operation_row *ret)
{
    struct operation_row row = {0};
    int col = 0;

    READ(seq, number)
    OPERATION_COLUMNS(READ, )
    READ(id, text)
    *ret = row;
}

enum err pg_operation_list(struct store *base, const struct operation_query *oq, struct arena *a,
                           struct operation_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s,
             oq->id.ptr ? PG_OPERATION_GET
             : oq->open ? PG_OPERATION_OPEN
                        : PG_OPERATION_LIST,
             &own);
    param_number(&q, oq->before_seq ? oq->before_seq : INT64_MAX);
    param_number(&q, (int64_t)oq->limit + 1);
    if (oq->id.ptr) {
        param_text(&q, oq->id);
        param_flag(&q, oq->open);
    }
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list operations");
    if (!r)
        return e->code;
    size_t count = (size_t)PQntuples(r);
    *ret = (struct operation_page){.more = count > oq->limit,
                                   .count = count < oq->limit ? count : oq->limit};
    ret->rows = arena_alloc(a, (ret->count + 1) * sizeof *ret->rows);
    for (size_t i = 0; i < ret->count; i++)
        read_row(r, (int)i, a, &ret->rows[i]);
    return ERR_OK;
}
