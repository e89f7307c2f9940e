/*
 * The claims of a batch: at most two statements each, whose results become rows. commit.c puts them
 * behind the changes of the batch.
 */
#include "store/postgres/body.h"

#include "store/row.h"

static void waiting(struct postgres_store *s, const struct claim *c, struct arena *a,
                    struct query *ret)
{
    bool by_time = c->kind == CLAIM_TIME;
    int64_t first = c->rank_from ? c->rank_from : INT64_MIN;
    int64_t last = c->rank_before ? c->rank_before - 1 : INT64_MAX;

    query_of(&ret[0], s, c->among ? PG_CLAIM_AMONG : PG_CLAIM_WAITING, a);
    param_text(&ret[0], c->locked_by);
    param_number(&ret[0], c->now);
    param_text(&ret[0], c->agent);
    param_number(&ret[0], by_time ? c->now : last);
    param_number(&ret[0], (int64_t)c->limit);
    param_number(&ret[0], first);
    query_of(&ret[1], s, c->among ? PG_CLAIM_AMONG_NEXT : PG_CLAIM_NEXT, a); /* what is left */
    param_text(&ret[1], c->agent);
    param_number(&ret[1], first);
    param_number(&ret[1], last);
}

static void owned(struct postgres_store *s, const struct claim *c, struct arena *a,
                  struct query *ret)
{
    struct slice node = owner_node(c->locked_by);
    char *end = arena_bytes(a, node.len);

    memcpy(end, node.ptr, node.len);
    end[node.len - 1] = '/' + 1; /* behind everything that begins with "node/" */
    query_of(ret, s, PG_CLAIM_BOOT, a);
    param_text(ret, c->locked_by);
    param_text(ret, node);
    param_text(ret, (struct slice){end, node.len});
    param_number(ret, (int64_t)node.len + 1);
    param_number(ret, (int64_t)owner_boot(c->locked_by));
    param_number(ret, (int64_t)c->limit);
}

size_t pg_claim_queries(struct postgres_store *s, const struct claim *c, struct arena *a,
                        struct query *ret)
{
    switch (c->kind) {
    case CLAIM_AGENT:
    case CLAIM_TIME:
        waiting(s, c, a, ret);
        return 2;
    case CLAIM_LOCK:
        return pg_lock_claim(s, c, a, ret);
    case CLAIM_BOOT:
        owned(s, c, a, ret);
        return 1;
    case CLAIM_NODE:
        query_of(ret, s, PG_CLAIM_NODE, a);
        param_text(ret, c->locked_by);
        param_number(ret, (int64_t)c->limit);
        return 1;
    }
    UNREACHABLE();
}

size_t pg_claim_statements(const struct claim *c)
{
    return c->kind == CLAIM_LOCK ? 4 : c->kind == CLAIM_AGENT || c->kind == CLAIM_TIME ? 2 : 1;
}

void pg_claim_read(struct claim *c, PGresult *const *results, struct arena *a)
{
    struct row_page page;

    pg_rows_read(results[c->kind == CLAIM_LOCK], c->limit, a, &page);
    c->rows = page.rows;
    c->row_count = page.count;
    if (c->kind == CLAIM_LOCK) {
        c->more = result_flag(results[3], 0, 0);
        return;
    }
    if (c->kind == CLAIM_BOOT || c->kind == CLAIM_NODE) {
        c->more = page.count && result_number(results[0], 0, PG_CLAIM_FOUND) > (int64_t)c->limit;
        return;
    }
    if (PQntuples(results[1]) == 0)
        return;
    int64_t rank = result_number(results[1], 0, 0);
    c->more = c->kind == CLAIM_AGENT || rank <= c->now;
    c->next_rank = c->kind == CLAIM_TIME ? rank : 0;
}
