/*
 * Tokens and the audit in PostgreSQL. A statement that writes another row together with an audit
 * entry takes that entry's columns as its last parameters: pg_bind_audit().
 */
#include "store/postgres/columns.h"

void pg_bind_audit(struct query *q, const struct audit *audit)
{
    static const struct audit none = {0};
    const struct audit *row = audit ? audit : &none; /* without an actor nothing is written */

    AUDIT_BRIEF_COLUMNS(BIND, )
}

static void delete_query(struct query *q, struct postgres_store *s, struct slice name, int64_t now,
                         bool anyway, const struct audit *audit, struct arena *a)
{
    query_of(q, s, PG_TOKEN_DELETE, a);
    param_text(q, name);
    param_flag(q, anyway);
    param_number(q, now);
    pg_bind_audit(q, audit);
}

static void bind_token(struct query *q, const struct token_row *row)
{
    bool rotated = row->previous_until != 0;

#define BIND_previous(v) param_bytes(q, rotated ? (v) : NULL, rotated ? sizeof(v) : 0);
    TOKEN_COLUMNS(BIND, )
    BIND(name, text)
}

enum err pg_token_put(struct store *base, const struct token_row *t, bool replace,
                      const struct audit *audit, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[3];
    PGresult *r[3] = {0};
    size_t count = 0;

    query_of(&q[count++], s, PG_TOKEN_LOCK, &a);
    if (replace)
        delete_query(&q[count++], s, t->name, 0, true, NULL, &a);
    query_of(&q[count], s, PG_TOKEN_PUT, &a);
    bind_token(&q[count], t);
    pg_bind_audit(&q[count++], audit);
    struct pg_end o = pg_transact(s, q, count, r, e, "store a token");
    results_clear(r, count);
    if (o.err == ERR_CONFLICT)
        return error_set(e, ERR_CONFLICT, "there is a token \"%.*s\"", SLICE_ARG(t->name));
    return pg_end_err(&o, e);
}

enum err pg_token_change(struct store *base, const struct token_row *t,
                         const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                         struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2];
    PGresult *r[2] = {0};

    query_of(&q[0], s, PG_TOKEN_LOCK, &a);
    query_of(&q[1], s, PG_TOKEN_CHANGE, &a);
    bind_token(&q[1], t);
    param_bytes(&q[1], was, TOKEN_HASH_SIZE);
    pg_bind_audit(&q[1], audit);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "change a token");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && result_number(r[1], 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "there is no such token \"%.*s\"", SLICE_ARG(t->name));
    results_clear(r, COUNT_OF(r));
    return err;
}

enum err pg_token_delete(struct store *base, struct slice name, int64_t now,
                         const struct audit *audit, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[3];
    PGresult *r[3] = {0};

    query_of(&q[0], s, PG_TOKEN_LOCK, &a);
    query_of(&q[1], s, PG_TOKEN_LAST_ADMIN, &a);
    param_text(&q[1], name);
    param_number(&q[1], now);
    delete_query(&q[2], s, name, now, false, audit, &a);
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "delete a token");
    enum err err = pg_end_err(&o, e);
    if (err == ERR_OK && PQntuples(r[1]) > 0)
        err = error_set(e, ERR_CONFLICT, "\"%.*s\" is the last admin's token", SLICE_ARG(name));
    else if (err == ERR_OK && result_number(r[2], 0, 0) == 0)
        err = error_set(e, ERR_NOT_FOUND, "there is no token \"%.*s\"", SLICE_ARG(name));
    results_clear(r, COUNT_OF(r));
    return err;
}

bool result_hash(const PGresult *r, int i, int col, unsigned char ret[TOKEN_HASH_SIZE])
{
    struct slice hash = result_text(r, i, col);

    if (hash.len != TOKEN_HASH_SIZE)
        return false;
    memcpy(ret, hash.ptr, TOKEN_HASH_SIZE);
    return true;
}

/* A row that was tampered with admits no client: no token has its hash. */
static void token_read(const PGresult *r, int i, struct arena *a, struct token_row *ret)
{
    struct token_row row = {0};
    bool rotated = false;
    int col = 0;

#define READ_previous(field) rotated = result_hash(r, i, col++, field);
    TOKEN_COLUMNS(READ, )
    READ(name, text)
    if (!rotated)
        row.previous_until = 0;
    *ret = row;
}

enum err pg_token_list(struct store *base, struct arena *a, struct token_row **ret,
                       size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_TOKEN_LIST, &own);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list tokens");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (size_t i = 0; i < *ret_count; i++)
        token_read(r, (int)i, a, &(*ret)[i]);
    return ERR_OK;
}

static void entry_read(const PGresult *r, int i, int col, struct arena *a, struct audit_page *p)
{
    struct audit row = {0};

    p->seqs[p->count] = result_number(r, i, col++);
    AUDIT_COLUMNS(READ, )
    p->entries[p->count++] = row;
}

static void page_begin(struct audit_page *p, size_t most, struct arena *a)
{
    *p = (struct audit_page){.entries = arena_alloc(a, (most + 1) * sizeof *p->entries),
                             .seqs = arena_alloc(a, (most + 1) * sizeof *p->seqs)};
}

enum err pg_audit_list(struct store *base, const struct audit_query *aq, struct arena *a,
                       struct audit_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, aq->task.ptr ? PG_AUDIT_TASK : PG_AUDIT_LIST, &own);
    param_number(&q, aq->before_seq ? aq->before_seq : INT64_MAX);
    param_number(&q, (int64_t)aq->limit + 1);
    if (aq->task.ptr)
        param_text(&q, aq->task);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read the audit");
    if (!r)
        return e->code;
    size_t found = (size_t)PQntuples(r);
    size_t count = found < aq->limit ? found : aq->limit;
    page_begin(ret, count, a);
    ret->more = found > aq->limit;
    for (int i = 0; i < (int)count; i++)
        entry_read(r, i, 0, a, ret);
    return ERR_OK;
}

void pg_operations_query(struct query *q, const struct postgres_store *s, struct array *numbers,
                         struct array *ids, struct arena *a)
{
    query_of(q, s, PG_OPERATIONS, a);
    param_array(q, numbers, ARRAY_NUMBERS);
    param_array(q, ids, ARRAY_TEXTS);
    param_number(q, TASK_OPERATIONS_MAX);
}

void pg_operations_take(const PGresult *r, int *at, int64_t number, struct arena *a,
                        struct audit_page *ret)
{
    int end = *at;

    while (end < PQntuples(r) && result_number(r, end, 0) == number)
        end++;
    page_begin(ret, (size_t)(end - *at), a);
    for (; *at < end; (*at)++)
        entry_read(r, *at, 1, a, ret);
}

enum err pg_audit_put(struct store *base, const struct audit *audit, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *r = NULL;

    query_of(&q, s, PG_AUDIT_PUT, &a);
    pg_bind_audit(&q, audit);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "write an entry of the audit");
    results_clear(&r, 1);
    return pg_end_err(&o, e);
}
