/* Notices in PostgreSQL: those that are to be decided, and what becomes of them. The columns are
 * those of rows/notice.h. A change deletes its own: commit.c. */
#include "store/postgres/columns.h"

#include "store/row.h"

static void notice_read(const PGresult *r, int i, struct arena *a, struct notice_row *ret)
{
    struct notice_row row = {0};
    int col = 0;

    READ(seq, number)
    NOTICE_COLUMNS(READ, )
    READ(owner, text)
    READ(has_task, flag)
    READ(is_submitted, flag)
    READ(is_of_other, flag)
    *ret = row;
}

static enum err read_by(struct postgres_store *s, struct query *q, struct notice_read *n,
                        struct arena *a, struct error *e)
{
    CLEANUP(result_end) PGresult *r = pg_read(s, q, e, "read notices");
    size_t bytes = 0;

    if (!r)
        return e->code;
    size_t count = (size_t)PQntuples(r);
    n->more = false;
    n->count = 0;
    n->rows = arena_alloc(a, (count + 1) * sizeof *n->rows);
    for (size_t i = 0; i < count && !n->more; i++) {
        notice_read(r, (int)i, a, &n->rows[i]);
        n->more = i == n->limit || !notice_fits(n, &n->rows[i], &bytes);
        n->count += !n->more;
    }
    return ERR_OK;
}

enum err pg_notices_read(struct store *base, struct notice_read *n, struct arena *a,
                         struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_NOTICE_READ, &own);
    param_number(&q, n->after_seq);
    param_number(&q, (int64_t)n->limit + 1);
    param_number(&q, (int64_t)n->bytes_max);
    param_number(&q, n->parts);
    param_number(&q, n->part);
    param_text(&q, n->me);
    param_number(&q, n->patience_ms);
    param_number(&q, NOTICE_OWNER_PATIENCES);
    return read_by(s, &q, n, a, e);
}

enum err pg_notices_refused(struct store *base, struct notice_read *n, struct arena *a,
                            struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_NOTICE_REFUSED, &own);
    param_number(&q, n->after_seq);
    param_number(&q, (int64_t)n->limit + 1);
    return read_by(s, &q, n, a, e);
}

enum err pg_notices_told(struct store *base, const struct slice *ids, size_t count, int64_t *ret_at,
                         struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array list = {0};
    struct query q;

    for (size_t i = 0; i < count; i++)
        array_text(&list, ids[i]);
    query_of(&q, s, PG_NOTICE_TOLD, &a);
    param_array(&q, &list, ARRAY_TEXTS);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read notices");
    if (!r)
        return e->code;
    for (size_t i = 0; i < count; i++)
        ret_at[i] = result_number(r, (int)i, 0);
    return ERR_OK;
}

enum err pg_notices_settle(struct store *base, const struct notice_verdict *list, size_t count,
                           struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array seqs = {0};
    struct array times = {0};
    struct array reasons = {0};
    struct query q;
    PGresult *r = NULL;

    for (size_t i = 0; i < count; i++) {
        array_number(&seqs, list[i].seq);
        array_time(&times, list[i].refused_at);
        array_text(&reasons,
                   text_is_storable(list[i].reason) ? list[i].reason : SLICE("it is not UTF-8"));
    }
    query_of(&q, s, PG_NOTICE_SETTLE, &a);
    param_array(&q, &seqs, ARRAY_NUMBERS);
    param_array(&q, &times, ARRAY_NUMBERS);
    param_array(&q, &reasons, ARRAY_TEXTS);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "settle notices");
    PQclear(r);
    return pg_end_err(&o, e);
}

struct notice_arrays {
    NOTICE_COLUMNS(MEMBER, )
};

static void notice_add(struct notice_arrays *k, const struct notice_row *row)
{
    NOTICE_COLUMNS(ADD, )
}

static void notices_bind(struct notice_arrays *k, struct query *q)
{
    NOTICE_COLUMNS(BIND_ARRAY, )
}

static bool is_storable(const struct notice_row *row)
{
    return true NOTICE_COLUMNS(IS_STORABLE, );
}

enum err pg_notices_put(struct store *base, const struct notice_row *rows, size_t count,
                        struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct notice_arrays arrays = {0};
    struct query q;
    PGresult *r = NULL;

    for (size_t i = 0; i < count; i++)
        if (!is_storable(&rows[i]))
            return error_set(e, ERR_INVALID, "a notice has to be UTF-8 without NULs");
    for (size_t i = 0; i < count; i++)
        notice_add(&arrays, &rows[i]);
    query_of(&q, s, PG_NOTICE_PUT, &a);
    notices_bind(&arrays, &q);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "store notices");
    PQclear(r);
    return pg_end_err(&o, e);
}
