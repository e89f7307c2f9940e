/*
 * Sessions of the console in PostgreSQL. Changes raise the generation of the tokens, so that other
 * nodes read both; its row is locked first, so a code is used once, by whichever node. With a code
 * that is not there nothing is written: anybody can send one.
 */
#include "store/postgres/columns.h"

static void bind_session(struct query *q, const struct session_row *row)
{
    SESSION_COLUMNS(BIND, )
}

enum err pg_session_put(struct store *base, const struct session_row *row,
                        const unsigned char *code, const struct audit *audit, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[3];
    PGresult *r[3] = {0};

    query_of(&q[0], s, PG_SESSION_LOCK, &a);
    param_bytes(&q[0], code, code ? TOKEN_HASH_SIZE : 0);
    param_number(&q[0], row->created_at);
    query_of(&q[1], s, PG_SESSION_SWEEP, &a);
    param_number(&q[1], row->created_at);
    param_bytes(&q[1], row->token_hash, TOKEN_HASH_SIZE);
    param_flag(&q[1], row->is_code);
    param_number(&q[1], SESSIONS_OF_TOKEN - 1);
    param_bytes(&q[1], code, code ? TOKEN_HASH_SIZE : 0);
    query_of(&q[2], s, PG_SESSION_PUT, &a);
    param_bytes(&q[2], code, code ? TOKEN_HASH_SIZE : 0);
    param_number(&q[2], row->created_at);
    bind_session(&q[2], row);
    pg_bind_audit(&q[2], audit);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "store a session");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r[2], 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "there is no such code");
    results_clear(r, COUNT_OF(r));
    return err;
}

enum err pg_session_delete(struct store *base, struct slice id, const struct audit *audit,
                           struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    query_of(&q[0], s, PG_TOKEN_LOCK, &a);
    query_of(&q[1], s, PG_SESSION_DELETE, &a);
    param_text(&q[1], id);
    pg_bind_audit(&q[1], audit);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "delete a session");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r[1], 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "there is no session \"%.*s\"", SLICE_ARG(id));
    results_clear(r, COUNT_OF(r));
    return err;
}

enum err pg_session_list(struct store *base, struct arena *a, struct session_row **ret,
                         size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_SESSION_LIST, &own);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list sessions");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (int i = 0; i < (int)*ret_count; i++) {
        struct session_row row = {0};
        int col = 0;
        SESSION_COLUMNS(READ, )
        (*ret)[i] = row;
    }
    return ERR_OK;
}
