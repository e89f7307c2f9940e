/*
 * Settings and breakers of agents in PostgreSQL, with the generation by which other nodes find out
 * what changed. The columns are those of rows/access.h.
 */
#include "store/postgres/columns.h"

enum err pg_agent_put(struct store *base, const struct agent_change *c, const struct audit *audit,
                      struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    if (!text_is_storable(c->name) || !text_is_storable(c->text))
        return error_set(e, ERR_INVALID, "what is said of an agent has to be UTF-8 without NULs");
    query_of(&q[0], s, PG_AGENT_LOCK, &a);
    query_of(&q[1], s, PG_AGENT_PUT, &a);
    param_text(&q[1], c->name);
    param_flag(&q[1], c->part == AGENT_BREAKER);
    param_text(&q[1], c->text);
    param_flag(&q[1], c->fenced);
    param_text(&q[1], c->was);
    pg_bind_audit(&q[1], audit);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "store what is said of an agent");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r[1], 0, 0) == 0)
        err = error_set(e, ERR_CONFLICT, "the agent \"%.*s\" was changed meanwhile",
                        SLICE_ARG(c->name));
    results_clear(r, COUNT_OF(r));
    return err;
}

enum err pg_agent_since(struct store *base, uint64_t after, struct arena *a, struct agent_row **ret,
                        size_t *ret_count, uint64_t *ret_generation, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_AGENT_SINCE, &own);
    param_number(&q, (int64_t)after);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read what is said of agents");
    if (!r)
        return e->code;
    /* One row without an agent, if nothing is new; no row at all, if nothing was ever stored. */
    size_t count = (size_t)PQntuples(r);
    *ret_generation = count ? (uint64_t)result_number(r, 0, 0) : 0;
    *ret_count = count && result_text(r, 0, 1).ptr ? count : 0;
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (int i = 0; i < (int)*ret_count; i++) {
        struct agent_row row = {0};
        int col = 1;
        AGENT_COLUMNS(READ, )
        (*ret)[i] = row;
    }
    return ERR_OK;
}
