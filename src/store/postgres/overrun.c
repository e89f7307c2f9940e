/* The table `overrun`: how often the evaluations of a task took far too long. It is empty but for
 * tasks that something is wrong with. */
#include "store/postgres/body.h"

enum err pg_overrun_count(struct store *base, const struct overrun_count *c, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    if (!text_is_storable(c->task))
        return error_set(e, ERR_INVALID, "the id of a task has to be UTF-8 without NULs");
    query_of(&q[0], s, c->by > 0 ? PG_OVERRUN_RAISE : PG_OVERRUN_LOWER, &a);
    param_text(&q[0], c->task);
    if (c->by > 0)
        param_number(&q[0], c->at);
    query_of(&q[1], s, c->by > 0 ? PG_OVERRUN_SWEEP : PG_OVERRUN_CLEAN, &a);
    if (c->by > 0)
        param_number(&q[1], c->at - OVERRUN_KEPT_MS);
    struct pg_end o =
        pg_transact(s, q, COUNT_OF(q), r, e, "count an evaluation that took too long");
    results_clear(r, COUNT_OF(r));
    return pg_end_err(&o, e);
}

enum err pg_overrun_list(struct store *base, struct arena *a, struct overrun **ret,
                         size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_OVERRUN_LIST, &own);
    param_number(&q, OVERRUNS_MAX);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read whose evaluations took too long");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (int i = 0; i < (int)*ret_count; i++)
        (*ret)[i] = (struct overrun){arena_copy(a, result_text(r, i, 0)), result_number(r, i, 1),
                                     result_number(r, i, 2)};
    return ERR_OK;
}
