/*
 * Reads tasks: by id, several at once, overdue ones, those with requests, and the groups of steps
 * that documents name.
 */
#include "store/postgres/body.h"

#include "store/codec/codec.h"

enum { MANY = 64 /* in one round trip */ };

static enum err row_of_task(const PGresult *r, int i, struct slice id, struct arena *a,
                            struct task_row *ret, struct error *e)
{
    struct task_row row;

    pg_row_read(r, i, a, &row);
    if (!row.doc.ptr)
        return error_set(e, ERR_CORRUPT, "task %.*s cannot be read", SLICE_ARG(id));
    *ret = row;
    return ERR_OK;
}

static enum err task_read(const PGresult *r, struct slice id, struct arena *a, struct task_row *ret,
                          struct error *e)
{
    if (PQntuples(r) == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no task %.*s", SLICE_ARG(id));
    return row_of_task(r, 0, id, a, ret, e);
}

enum err pg_get(struct store *base, struct slice id, struct arena *a, struct task_row *ret,
                struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    if (!text_is_storable(id))
        return error_set(e, ERR_NOT_FOUND, "there is no such task");
    query_of(&q, s, PG_GET, &own);
    param_text(&q, id);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read a task");
    return r ? task_read(r, id, a, ret, e) : e->code;
}

static enum err get_some(struct postgres_store *s, struct reading *readings, size_t count,
                         struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query *queries = arena_alloc(&own, MANY * sizeof *queries);
    PGresult *results[MANY];

    for (size_t i = 0; i < count; i++) {
        query_of(&queries[i], s, PG_GET, &own);
        param_text(&queries[i], text_is_storable(readings[i].id) ? readings[i].id : SLICE_NONE);
    }
    struct pg_end o = pg_run(s, queries, count, results, e, "read tasks");
    for (size_t i = 0; i < count; i++) {
        struct reading *r = &readings[i];
        if (o.err == ERR_OK)
            r->err = task_read(results[i], r->id, a, &r->row, &r->error);
        PQclear(results[i]);
    }
    return o.err;
}

enum err pg_get_many(struct store *base, struct reading *readings, size_t count, struct arena *a,
                     struct error *e)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < count && err == ERR_OK; i += MANY)
        err = get_some(postgres_store_of(base), readings + i, count - i < MANY ? count - i : MANY,
                       a, e);
    return err;
}

static void records_take(const PGresult *rows, const PGresult *entries, struct task_record *list,
                         size_t count)
{
    int at = 0;

    for (size_t i = 0; i < count; i++)
        list[i].err = error_set(&list[i].error, ERR_NOT_FOUND, "there is no task %.*s",
                                SLICE_ARG(list[i].id));
    for (int i = 0; i < PQntuples(rows); i++) {
        struct task_record *r = &list[result_number(rows, i, PG_RECORD_NUMBER) - 1];
        r->err = ERR_OK;
        r->left = PQgetisnull(rows, i, 0);
        if (!r->left)
            r->err = row_of_task(rows, i, r->id, r->arena, &r->row, &r->error);
    }
    for (size_t i = 0; i < count; i++)
        pg_operations_take(entries, &at, (int64_t)i, list[i].arena, &list[i].operations);
}

/* A round trip. An entry may be newer than the row, as if they were read one after the other. */
enum err pg_records(struct store *base, struct task_record *list, size_t count, size_t bytes_max,
                    struct error *e)
{
    enum { SETTINGS, ROWS, ENTRIES, COUNT };
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query *q = arena_alloc(&own, COUNT * sizeof *q);
    PGresult *r[COUNT] = {0};
    struct array ids = {0};
    struct array of = {0};
    struct array numbers = {0};
    size_t first = s->of && !s->prepared.is_settled ? SETTINGS : ROWS;

    for (size_t i = 0; i < count; i++) {
        struct slice id = text_is_storable(list[i].id) ? list[i].id : SLICE_NONE;
        array_text(&ids, id);
        array_text(&of, id);
        array_number(&numbers, (int64_t)i);
        list[i].left = false;
    }
    q[SETTINGS].sql = s->read_settings;
    query_of(&q[ROWS], s, PG_RECORDS, &own);
    param_array(&q[ROWS], &ids, ARRAY_TEXTS);
    param_number(&q[ROWS], (int64_t)bytes_max);
    pg_operations_query(&q[ENTRIES], s, &numbers, &of, &own);
    struct pg_end o = pg_run(s, q + first, COUNT - first, r + first, e, "read tasks");
    if (o.err == ERR_OK)
        records_take(r[ROWS], r[ENTRIES], list, count);
    results_clear(r, COUNT);
    return o.err;
}

enum err pg_glance(struct store *base, const struct slice *ids, size_t count, struct arena *a,
                   struct glance *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array texts = {0};
    struct query q;
    (void)a;

    for (size_t i = 0; i < count; i++)
        array_text(&texts, text_is_storable(ids[i]) ? ids[i] : SLICE_NONE);
    query_of(&q, s, PG_GLANCE, &own);
    param_array(&q, &texts, ARRAY_TEXTS);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "look at tasks");
    if (!r)
        return e->code;
    if (count > 0)
        memset(ret, 0, count * sizeof *ret);
    for (int row = 0; row < PQntuples(r); row++) {
        struct glance *g = &ret[result_number(r, row, 0) - 1];
        if (task_state_parse(result_text(r, row, 2), &g->state))
            g->revision = (uint64_t)result_number(r, row, 1);
    }
    return ERR_OK;
}

/* The payloads of one row, of which the first is in that row of the result. */
static void groups_take(const PGresult *r, int first, const uint32_t *numbers, size_t count,
                        struct arena *a, struct task_row *row)
{
    struct payload *list = arena_alloc(a, count * sizeof *list);

    row->payloads = list;
    row->groups_only = true;
    for (size_t i = 0; i < count; i++) {
        struct slice json = result_text(r, first + (int)i, 0);
        if (json.ptr)
            list[row->payload_count++] = (struct payload){numbers[i], arena_copy(a, json)};
    }
}

enum err pg_groups_read(struct postgres_store *s, struct row_page *page, struct arena *a,
                        struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    uint32_t **numbers = arena_alloc(&own, (page->count + 1) * sizeof *numbers);
    size_t *counts = arena_alloc(&own, (page->count + 1) * sizeof *counts);
    struct array seqs = {0};
    struct array all = {0};
    struct query q;
    int at = 0;

    for (size_t i = 0; i < page->count; i++) {
        counts[i] = doc_groups(page->rows[i].doc, &own, &numbers[i]);
        for (size_t k = 0; k < counts[i]; k++, at++) {
            array_number(&seqs, page->rows[i].seq);
            array_number(&all, numbers[i][k]);
        }
    }
    if (at == 0)
        return ERR_OK;
    query_of(&q, s, PG_PAYLOADS, &own);
    param_array(&q, &seqs, ARRAY_NUMBERS);
    param_array(&q, &all, ARRAY_NUMBERS);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read groups of steps");
    if (!r)
        return e->code;
    ASSERT(PQntuples(r) == at);
    for (size_t i = page->count; i-- > 0;)
        if (counts[i] > 0)
            groups_take(r, at -= (int)counts[i], numbers[i], counts[i], a, &page->rows[i]);
    return ERR_OK;
}

enum err pg_overdue(struct store *base, int64_t now, int64_t after_wake_at, int64_t after_seq,
                    size_t limit, struct arena *a, struct row_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_OVERDUE, &own);
    param_number(&q, now);
    param_number(&q, after_wake_at);
    param_number(&q, after_seq);
    param_number(&q, (int64_t)limit + 1);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read what is overdue");
    if (!r)
        return e->code;
    pg_rows_read(r, limit, a, ret);
    return pg_groups_read(s, ret, a, e);
}

enum err pg_requested(struct store *base, struct slice locked_by, int64_t after_seq, size_t limit,
                      struct arena *a, struct row_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_REQUESTED, &own);
    param_text(&q, locked_by);
    param_number(&q, after_seq);
    param_number(&q, (int64_t)limit + 1);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read what is requested");
    if (!r)
        return e->code;
    pg_rows_read(r, limit, a, ret);
    return ERR_OK;
}
