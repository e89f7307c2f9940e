/*
 * Submissions in PostgreSQL: what applications insert, which becomes tasks or is refused. listen.c
 * receives their notifications. The columns are those of rows/submission.h.
 */
#include "store/postgres/family.h"

#include "store/row.h"

#define READ_any(field) READ_text(field)

static void submission_read(const PGresult *r, int i, struct arena *a, struct submission_row *ret)
{
    struct submission_row row = {0};
    int col = 0;

    READ(seq, number)
    READ(source, text)
    SUBMISSION_COLUMNS(READ, )
    *ret = row;
}

/* At most `limit`; whether there are more. */
static struct submission_page rows_of(const PGresult *r, size_t limit, struct arena *a)
{
    size_t count = (size_t)PQntuples(r);
    struct submission_page page = {.count = count > limit ? limit : count, .more = count > limit};

    page.rows = arena_alloc(a, (page.count + 1) * sizeof *page.rows);
    for (size_t i = 0; i < page.count; i++)
        submission_read(r, (int)i, a, &page.rows[i]);
    return page;
}

static void take_rows(const PGresult *r, struct submission_take *t, struct arena *a)
{
    struct submission_page page = rows_of(r, t->limit, a);
    size_t bytes = 0;

    t->rows = page.rows;
    t->count = 0;
    while (t->count < page.count && submission_fits(t, &page.rows[t->count], &bytes))
        t->count++;
    t->more = page.more || t->count < page.count;
}

enum err pg_submissions_take(struct store *base, struct submission_take *t, struct arena *a,
                             struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    query_of(&q[0], s, PG_SUBMISSION_TAKE, &own);
    param_number(&q[0], (int64_t)t->limit + 1);
    param_number(&q[0], t->parts);
    param_number(&q[0], t->part);
    param_number(&q[0], t->patience_ms);
    param_number(&q[0], (int64_t)t->bytes_max);
    query_of(&q[1], s, PG_SUBMISSION_COUNT, &own);
    param_number(&q[1], SUBMISSIONS_COUNTED);
    struct pg_end o = pg_run(s, q, COUNT_OF(q), r, e, "read submissions");
    if (o.err == ERR_OK) {
        take_rows(r[0], t, a);
        t->refused = (uint64_t)result_number(r[1], 0, 0);
    }
    results_clear(r, COUNT_OF(r));
    return o.err;
}

enum err pg_submissions_settle(struct store *base, const struct submission_verdict *list,
                               size_t count, struct error *e)
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
    query_of(&q, s, PG_SUBMISSION_SETTLE, &a);
    param_array(&q, &seqs, ARRAY_NUMBERS);
    param_array(&q, &times, ARRAY_NUMBERS);
    param_array(&q, &reasons, ARRAY_TEXTS);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "settle submissions");
    PQclear(r);
    return pg_end_err(&o, e);
}

enum err pg_submissions_put(struct store *base, const struct submission_row *rows, size_t count,
                            struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct submission_arrays arrays = {0};
    struct query q;
    PGresult *r = NULL;

    for (size_t i = 0; i < count; i++)
        if (!submission_is_storable(&rows[i]))
            return error_set(e, ERR_INVALID, "a submission has to be UTF-8 without NULs");
    for (size_t i = 0; i < count; i++)
        submission_add(&arrays, &rows[i]);
    query_of(&q, s, PG_SUBMISSION_PUT, &a);
    submissions_bind(&arrays, &q);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "store submissions");
    PQclear(r);
    return pg_end_err(&o, e);
}

enum err pg_submissions_list(struct store *base, const struct submission_query *query,
                             struct arena *a, struct submission_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s,
             !query->refused ? PG_SUBMISSION_WAITING
             : query->brief  ? PG_SUBMISSION_REFUSED_BRIEF
                             : PG_SUBMISSION_REFUSED,
             &own);
    param_number(&q, query->before_seq ? query->before_seq : INT64_MAX);
    param_number(&q, (int64_t)query->limit + 1);
    param_text(&q, query->source);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list submissions");
    if (!r)
        return e->code;
    *ret = rows_of(r, query->limit, a);
    return ERR_OK;
}

enum err pg_submissions_verb(struct store *base, struct submission_verb *v, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *r = NULL;

    query_of(&q, s, v->drop ? PG_SUBMISSION_DROP : PG_SUBMISSION_RETRY, &a);
    param_number(&q, v->seq);
    param_text(&q, v->source);
    param_number(&q, v->up_to_seq ? v->up_to_seq : INT64_MAX);
    param_number(&q, SUBMISSION_VERB_MAX);
    pg_bind_audit(&q, v->audit);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "change submissions");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK) {
        v->count = (uint64_t)result_number(r, 0, 0);
        v->more = v->count == SUBMISSION_VERB_MAX;
    }
    PQclear(r);
    if (err == ERR_OK && v->seq && v->count == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no refused submission %" PRId64, v->seq);
    return err;
}

enum err pg_workflow_describe(struct store *base, const struct workflow_inputs *list, size_t count,
                              struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array names = {0};
    struct array versions = {0};
    struct array inputs = {0};
    struct query q;
    PGresult *r = NULL;

    for (size_t i = 0; i < count; i++) {
        array_text(&names, list[i].name);
        array_number(&versions, list[i].version);
        array_text(&inputs, list[i].inputs);
    }
    query_of(&q, s, PG_WORKFLOW_DESCRIBE, &a);
    param_array(&q, &names, ARRAY_TEXTS);
    param_array(&q, &versions, ARRAY_NUMBERS);
    param_array(&q, &inputs, ARRAY_TEXTS);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "describe workflows");
    PQclear(r);
    return pg_end_err(&o, e);
}
