/*
 * Schedules in PostgreSQL: changed with their submissions and audit entries, and found when they
 * are due. The columns are those of rows/schedule.h.
 */
#include "store/postgres/family.h"

#include "store/row.h"

#define READ_any(field)   READ_text(field)
#define ADD_any(array, v) array_text(array, v)
/* A text can be made a flag, which a number of eight bytes cannot. */
#define ADD_flag(array, v) array_text(array, (v) ? SLICE("t") : SLICE("f"))
#define KIND_any           ARRAY_TEXTS
#define KIND_flag          ARRAY_TEXTS
#define IS_STORABLE_any(v) IS_STORABLE_text(v)

/* Changes as arrays, one for each column; b_ord: of which one each submission is. */
struct schedule_arrays {
    struct array ord, seq, version_ord, b_ord;
    SCHEDULE_COLUMNS(MEMBER, )
};

static bool row_is_storable(const struct schedule_row *row)
{
    return text_is_storable(row->name) SCHEDULE_COLUMNS(IS_STORABLE, );
}

static bool is_storable(const struct schedule_change *c)
{
    for (size_t i = 0; i < c->submission_count; i++)
        if (!submission_is_storable(&c->submissions[i]))
            return false;
    return row_is_storable(&c->row);
}

static void schedule_add(struct schedule_arrays *k, size_t ord, const struct schedule_change *c)
{
    const struct schedule_row *row = &c->row;

    array_number(&k->ord, (int64_t)ord);
    ADD(seq, number)
    SCHEDULE_COLUMNS(ADD, )
    if (c->new_version)
        array_number(&k->version_ord, (int64_t)ord);
}

/* A change of its own, perhaps the insertion. */
static void put_query(struct query *q, struct postgres_store *s, const struct schedule_change *c,
                      struct arena *a)
{
    const struct schedule_row *row = &c->row;

    query_of(q, s, PG_SCHEDULE_PUT, a);
    SCHEDULE_COLUMNS(BIND, )
    BIND(name, text)
    pg_bind_audit(q, c->audit);
}

static void update_query(struct query *q, struct postgres_store *s, struct schedule_change *list,
                         size_t count, struct arena *a)
{
    struct schedule_arrays *k = arena_alloc(a, sizeof *k);
    struct submission_arrays *b = arena_alloc(a, sizeof *b);
    const struct audit *audit = NULL;

    for (size_t i = 0; i < count; i++) {
        schedule_add(k, i, &list[i]);
        for (size_t n = 0; n < list[i].submission_count; n++) {
            array_number(&k->b_ord, (int64_t)i);
            submission_add(b, &list[i].submissions[n]);
        }
        audit = list[i].audit ? list[i].audit : audit;
    }
    ASSERT(!audit || count == 1); /* what a person does is a change of its own */
    query_of(q, s, PG_SCHEDULE_UPDATE, a);
    param_array(q, &k->ord, ARRAY_NUMBERS);
    BIND_ARRAY(seq, number)
    SCHEDULE_COLUMNS(BIND_ARRAY, )
    param_array(q, &k->version_ord, ARRAY_NUMBERS);
    param_array(q, &k->b_ord, ARRAY_NUMBERS);
    submissions_bind(b, q);
    pg_bind_audit(q, audit);
}

static void take_done(struct schedule_change *list, const PGresult *r)
{
    for (int i = 0; i < PQntuples(r); i++)
        list[result_number(r, i, 0)].done = true;
}

enum err pg_schedule_write(struct store *base, struct schedule_change *list, size_t count,
                           const struct fence *fence, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query *q = arena_alloc(&a, 2 * sizeof *q);
    PGresult *r[2] = {0};
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        list[i].done = false;
        if (!is_storable(&list[i]))
            return error_set(e, ERR_INVALID, "a schedule has to be UTF-8 without NULs");
    }
    if (fence) {
        query_of(&q[n], s, PG_FENCE, &a);
        param_text(&q[n], fence->lease);
        param_number(&q[n++], (int64_t)fence->epoch);
    }
    if (count == 1 && list[0].row.revision == 1)
        put_query(&q[n++], s, &list[0], &a);
    else
        update_query(&q[n++], s, list, count, &a);
    struct pg_end o = pg_transact(s, q, n, r, e, "store schedules");
    enum err err = pg_end_err(&o, e);
    if (fence && err != ERR_OK && o.failed_at == 0 && strcmp(o.sqlstate, "22012") == 0)
        err = error_set(e, ERR_CONFLICT, "lease %.*s has another epoch", SLICE_ARG(fence->lease));
    if (err == ERR_OK)
        take_done(list, r[n - 1]);
    results_clear(r, n);
    return err;
}

static void row_at(const PGresult *r, int i, struct arena *a, struct schedule_row *ret)
{
    struct schedule_row row = {0};
    int col = 0;

    READ(seq, number)
    READ(name, text)
    SCHEDULE_COLUMNS(READ, )
    READ(run_is_open, flag)
    *ret = row;
}

/* At most `limit` behind those that are there; whether there are more. */
static void rows_at(const PGresult *r, struct arena *a, size_t limit, struct schedule_row *rows,
                    size_t *count, bool *ret_more)
{
    size_t found = (size_t)PQntuples(r);

    for (size_t i = 0; i < found && i < limit; i++)
        row_at(r, (int)i, a, &rows[(*count)++]);
    *ret_more |= found > limit;
}

static void look_query(struct query *q, struct postgres_store *s, enum pg_sql which,
                       const struct schedule_look *l, struct arena *a)
{
    query_of(q, s, which, a);
    param_number(q, l->now);
    param_number(q, (int64_t)l->limit + 1);
}

enum err pg_schedule_look(struct store *base, struct schedule_look *l, struct arena *a,
                          struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query *q = arena_alloc(&own, 3 * sizeof *q);
    PGresult *r[3] = {0};
    size_t n = 0;

    look_query(&q[n++], s, PG_SCHEDULE_DUE, l, &own);
    query_of(&q[n], s, PG_SCHEDULE_NEXT, &own);
    param_number(&q[n], l->now);
    param_number(&q[n++], SCHEDULES_COUNTED);
    if (l->waiting)
        look_query(&q[n++], s, PG_SCHEDULE_WAITS, l, &own);
    struct pg_end o = pg_run(s, q, n, r, e, "read schedules");
    if (o.err == ERR_OK) {
        l->rows = arena_alloc(a, (2 * l->limit + 1) * sizeof *l->rows);
        l->count = 0;
        l->more = false;
        rows_at(r[0], a, l->limit, l->rows, &l->count, &l->more);
        l->next_at = result_number(r[1], 0, 0);
        l->wait_count = (uint64_t)result_number(r[1], 0, 1);
        if (l->waiting)
            rows_at(r[2], a, l->limit, l->rows, &l->count, &l->more);
    }
    results_clear(r, n);
    return o.err;
}

enum err pg_schedule_list(struct store *base, const struct schedule_query *want, struct arena *a,
                          struct schedule_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    enum pg_sql which = want->name.ptr     ? PG_SCHEDULE_GET
                        : want->gaps_since ? PG_SCHEDULE_GAPS
                                           : PG_SCHEDULE_LIST;

    query_of(&q, s, which, &own);
    param_text(&q, want->name.ptr         ? want->name
                   : want->after_name.ptr ? want->after_name
                                          : SLICE(""));
    param_number(&q, (int64_t)want->limit + 1);
    if (which == PG_SCHEDULE_GAPS)
        param_number(&q, want->gaps_since);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list schedules");
    if (!r)
        return e->code;
    *ret = (struct schedule_page){.rows = arena_alloc(a, (want->limit + 1) * sizeof *ret->rows)};
    rows_at(r, a, want->limit, ret->rows, &ret->count, &ret->more);
    return ERR_OK;
}

enum err pg_schedule_version(struct store *base, struct slice name, int64_t version,
                             struct arena *a, struct schedule_version_row *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct schedule_version_row row = {0};
    struct query q;
    int i = 0;
    int col = 0;

    query_of(&q, s, PG_SCHEDULE_VERSION_GET, &own);
    param_text(&q, name);
    param_number(&q, version);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read a schedule");
    if (!r)
        return e->code;
    if (PQntuples(r) == 0)
        return error_set(e, ERR_NOT_FOUND, "schedule %.*s has no version %" PRId64, SLICE_ARG(name),
                         version);
    SCHEDULE_VERSION_COLUMNS(READ, )
    *ret = row;
    return ERR_OK;
}

enum err pg_schedule_remove(struct store *base, struct slice name, const struct audit *audit,
                            struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    PGresult *r = NULL;
    struct query q;

    query_of(&q, s, PG_SCHEDULE_DELETE, &a);
    param_text(&q, name);
    pg_bind_audit(&q, audit);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "delete a schedule");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r, 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "there is no schedule %.*s", SLICE_ARG(name));
    results_clear(&r, 1);
    return err;
}
