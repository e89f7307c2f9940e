/*
 * Nodes in PostgreSQL: what each reports of itself, and the list of them with their leases. The
 * columns are those of rows/node.h. Leases are taken in time.c.
 */
#include "store/postgres/columns.h"

static void bind_row(struct query *q, const struct node_row *row)
{
#define BIND_boot(v)       param_number(q, (int64_t)row->boot);
#define BIND_scheduler(v)  param_flag(q, row->roles &NODE_SCHEDULER);
#define BIND_supervisor(v) param_flag(q, row->roles &NODE_SUPERVISOR);
    NODE_COLUMNS(BIND, )
    BIND(name, text)
}

enum err pg_node_put(struct store *base, const struct node_row *row, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    PGresult *r = NULL;
    struct query q;

    query_of(&q, s, PG_NODE_PUT, &a);
    bind_row(&q, row);
    struct pg_end o = pg_run(s, &q, 1, &r, e, "say that this node is there");
    PQclear(r);
    return o.err;
}

static void node_read(const PGresult *r, int i, int64_t now, struct arena *a, struct node_row *ret)
{
    struct node_row row = {0};
    int col = 0;

#define READ_boot(field)       READ_number(row.boot)
#define READ_scheduler(field)  row.roles |= result_flag(r, i, col++) ? NODE_SCHEDULER : 0U;
#define READ_supervisor(field) row.roles |= result_flag(r, i, col++) ? NODE_SUPERVISOR : 0U;
    READ(name, text)
    NODE_COLUMNS(READ, )
    READ(lease_until, time)
    READ(leads, flag)
    row.alive = row.lease_until > now;
    *ret = row;
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
