/* Notices in PostgreSQL: those that are to be decided, and what becomes of them. The columns are
 * those of rows/notice.h. A change deletes its own: commit.c. */
#include "store/postgres/columns.h"

static void notice_read(const PGresult *r, int i, struct arena *a, struct notice_row *ret)
{
    struct notice_row row = {0};
    int col = 0;

    READ(seq, number)
    NOTICE_COLUMNS(READ, )
    READ(owner, text)
    READ(has_task, flag)
    READ(is_submitted, flag)
    *ret = row;
}

static enum err read_by(struct store *base, enum pg_sql which, struct notice_read *n,
                        struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, which, &own);
    param_number(&q, n->after_seq);
    param_number(&q, (int64_t)n->limit + 1);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read notices");
    if (!r)
        return e->code;
    size_t count = (size_t)PQntuples(r);
    n->more = count > n->limit;
    n->count = n->more ? n->limit : count;
    n->rows = arena_alloc(a, (n->count + 1) * sizeof *n->rows);
    for (size_t i = 0; i < n->count; i++)
        notice_read(r, (int)i, a, &n->rows[i]);
    return ERR_OK;
}

enum err pg_notices_read(struct store *base, struct notice_read *n, struct arena *a,
                         struct error *e)
{
    return read_by(base, PG_NOTICE_READ, n, a, e);
}

enum err pg_notices_refused(struct store *base, struct notice_read *n, struct arena *a,
                            struct error *e)
{
    return read_by(base, PG_NOTICE_REFUSED, n, a, e);
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
