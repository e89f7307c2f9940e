#include "store/postgres/body.h"

enum err pg_node_put(struct store *base, const struct node_row *row, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    PGresult *r = NULL;
    struct query q;

    query_of(&q, s, PG_NODE_PUT, &a);
    param_text(&q, row->name);
    param_number(&q, (int64_t)row->boot);
    param_text(&q, row->url);
    param_flag(&q, row->roles & NODE_SCHEDULER);
    param_flag(&q, row->roles & NODE_SUPERVISOR);
    param_text(&q, row->version);
    param_number(&q, row->started_at);
    param_flag(&q, row->draining);
    param_text(&q, row->agents);
    param_number(&q, row->grammar);
    struct pg_end o = pg_run(s, &q, 1, &r, e, "say that this node is there");
    PQclear(r);
    return o.err;
}

static void node_read(const PGresult *r, int row, int64_t now, struct arena *a,
                      struct node_row *ret)
{
    *ret = (struct node_row){
        .name = arena_copy(a, result_text(r, row, 0)),
        .boot = (uint64_t)result_number(r, row, 1),
        .url = arena_copy(a, result_text(r, row, 2)),
        .roles = (result_flag(r, row, 3) ? NODE_SCHEDULER : 0U)
                 | (result_flag(r, row, 4) ? NODE_SUPERVISOR : 0U),
        .version = arena_copy(a, result_text(r, row, 5)),
        .started_at = result_number(r, row, 6),
        .draining = result_flag(r, row, 7),
        .lease_until = result_number(r, row, 8),
        .alive = result_number(r, row, 8) > now,
        .leads = result_flag(r, row, 9),
        .agents = arena_copy(a, result_text(r, row, 10)),
        .grammar = result_number(r, row, 11),
    };
}

enum err pg_node_list(struct store *base, int64_t now, struct arena *a, struct node_row **ret,
                      size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_NODE_LIST, &own);
    param_number(&q, now);
    param_number(&q, now - NODE_FORGOTTEN_MS);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list nodes");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (size_t i = 0; i < *ret_count; i++)
        node_read(r, (int)i, now, a, &(*ret)[i]);
    return ERR_OK;
}
