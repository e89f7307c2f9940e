/*
 * Definitions of workflows in PostgreSQL, with the generation by which other nodes find new ones.
 * The columns are those of rows/workflow.h.
 */
#include "store/postgres/columns.h"

static void bind_audit(struct query *q, const struct audit *a)
{
    static const struct audit none = {0};

    a = a ? a : &none;
    param_number(q, a->at);
    param_text(q, a->actor); /* NULL: nothing is written */
    param_text(q, a->verb);
    param_text(q, a->task);
    param_text(q, a->step);
    param_text(q, a->address);
}

enum err pg_workflow_put(struct store *base, struct slice name, struct slice text, int64_t now,
                         const struct audit *audit, int64_t *ret_version, bool *ret_new,
                         struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    if (!text_is_storable(name) || !text_is_storable(text))
        return error_set(e, ERR_INVALID, "a definition has to be UTF-8 without NULs");
    query_of(&q[0], s, PG_WORKFLOW_LOCK, &a);
    query_of(&q[1], s, PG_WORKFLOW_PUT, &a);
    param_text(&q[1], name);
    param_text(&q[1], text);
    param_number(&q[1], now);
    bind_audit(&q[1], audit);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "store a workflow");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK) {
        *ret_version = result_number(r[1], 0, 0);
        *ret_new = result_flag(r[1], 0, 1);
    }
    results_clear(r, COUNT_OF(r));
    return err;
}

/* Its columns begin with the one of that number. */
static void workflow_read(const PGresult *r, int i, int col, struct arena *a,
                          struct workflow_row *ret)
{
    struct workflow_row row = {0};

    WORKFLOW_COLUMNS(READ, )
    *ret = row;
}

enum err pg_workflow_get(struct store *base, struct slice name, int64_t version, struct arena *a,
                         struct workflow_row *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_WORKFLOW_GET, &own);
    param_text(&q, text_is_storable(name) ? name : SLICE_NONE);
    param_number(&q, version);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read a workflow");
    if (!r)
        return e->code;
    if (PQntuples(r) == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no workflow %.*s%s", SLICE_ARG(name),
                         version ? " of that version" : "");
    workflow_read(r, 0, 0, a, ret);
    return ERR_OK;
}

enum err pg_workflow_list(struct store *base, struct arena *a, struct workflow_row **ret,
                          size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_WORKFLOW_LIST, &own);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list workflows");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (size_t i = 0; i < *ret_count; i++) {
        workflow_read(r, (int)i, 0, a, &(*ret)[i]);
        (*ret)[i].described = result_flag(r, (int)i, 4);
    }
    return ERR_OK;
}

enum err pg_workflow_since(struct store *base, uint64_t after, struct arena *a,
                           struct workflow_row **ret, size_t *ret_count, uint64_t *ret_generation,
                           struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_WORKFLOW_SINCE, &own);
    param_number(&q, (int64_t)after);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read new workflows");
    if (!r)
        return e->code;
    /* One row without a definition, if there is no new one; no row at all, if none was ever
     * stored. */
    size_t count = (size_t)PQntuples(r);
    *ret_generation = count ? (uint64_t)result_number(r, 0, 0) : 0;
    *ret_count = count && result_text(r, 0, 1).ptr ? count : 0;
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (size_t i = 0; i < *ret_count; i++)
        workflow_read(r, (int)i, 1, a, &(*ret)[i]);
    return ERR_OK;
}
