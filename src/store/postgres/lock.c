/*
 * Locks of tasks in PostgreSQL: what changes and claims of a batch do to them, and the list of who
 * holds them. commit.c and claim.c put these statements into the batch; lock_sql.h has them, and
 * the order that keeps batches from waiting for each other.
 */
#include "store/postgres/body.h"

#include "store/row.h"

static const char *move_of(const struct change *c)
{
    if (c->kind != CHANGE_REQUEST && row_queues(&c->row))
        return "look";
    switch (c->lock_move) {
    case LOCK_STAYS:
        return NULL;
    case LOCK_TAKE:
        return "take";
    case LOCK_DROP:
        return "drop";
    case LOCK_QUIT:
        return "look";
    }
    UNREACHABLE();
}

/* Whether any of the batch takes, gives back or waits for a lock. Most batches: none. */
static bool moves_any(const struct batch *b, const bool *wanted)
{
    for (size_t i = 0; i < b->change_count; i++)
        if (wanted[i] && b->changes[i].row.lock.ptr && move_of(&b->changes[i]))
            return true;
    return false;
}

size_t pg_lock_queries(struct postgres_store *s, const struct batch *b, const bool *wanted,
                       struct arena *a, struct query *ret, bool *ret_checks)
{
    struct array ids = {0};
    struct array keys = {0};
    struct array locks = {0};
    struct array moves = {0};
    struct array takers = {0};

    *ret_checks = false;
    if (!moves_any(b, wanted))
        return 0;
    for (size_t i = 0; i < b->change_count; i++) {
        const struct change *c = &b->changes[i];
        const char *move = wanted[i] && c->row.lock.ptr ? move_of(c) : NULL;
        if (!move)
            continue;
        array_text(&ids, c->row.id);
        array_text(&keys, c->row.lock);
        array_text(&locks, c->row.lock);
        array_text(&moves, slice_of(move));
        if (c->lock_move == LOCK_TAKE)
            array_text(&takers, c->row.id);
    }
    *ret_checks = takers.count > 0;
    query_of(&ret[0], s, PG_LOCK_KEYS, a);
    param_array(&ret[0], &keys, ARRAY_TEXTS);
    query_of(&ret[1], s, PG_LOCK_MOVE, a);
    param_array(&ret[1], &ids, ARRAY_TEXTS);
    param_array(&ret[1], &locks, ARRAY_TEXTS);
    param_array(&ret[1], &moves, ARRAY_TEXTS);
    if (!*ret_checks)
        return 2;
    query_of(&ret[2], s, PG_LOCK_CHECK, a);
    param_array(&ret[2], &takers, ARRAY_TEXTS);
    return 3;
}

/* ---- whether there is room ---- */

static bool takes(const struct batch *b, const bool *wanted, size_t i)
{
    return wanted[i] && b->changes[i].lock_move == LOCK_TAKE;
}

/* Takings of the same lock in the same batch. */
static int64_t granted_before(const struct batch *b, const bool *wanted, const bool *granted,
                              size_t i, struct slice *holder)
{
    int64_t count = 0;

    for (size_t k = 0; k < i; k++)
        if (takes(b, wanted, k) && granted[k]
            && slice_eq(b->changes[k].row.lock, b->changes[i].row.lock)) {
            *holder = holder->ptr ? *holder : b->changes[k].row.id;
            count++;
        }
    return count;
}

static void judge(struct batch *b, bool *wanted, const PGresult *r, struct arena *a)
{
    bool *granted = arena_alloc(a, b->change_count + 1);
    int row = 0;

    for (size_t i = 0; i < b->change_count; i++) {
        struct change *c = &b->changes[i];
        if (!takes(b, wanted, i))
            continue;
        bool conflicts = result_flag(r, row, 0);
        struct slice holder = arena_copy(a, result_text(r, row, 2));
        int64_t held = result_number(r, row, 1) + granted_before(b, wanted, granted, i, &holder);
        row++;
        granted[i] = !conflicts && held < c->row.lock_max;
        if (granted[i] || conflicts)
            continue;
        c->outcome = ERR_TAKEN;
        c->lock_holder = holder.ptr ? holder : SLICE("?");
        wanted[i] = false;
    }
}

enum err pg_lock_room(struct postgres_store *s, struct batch *b, bool *wanted, struct arena *a,
                      struct error *e)
{
    struct array ids = {0};
    struct array locks = {0};
    struct array ats = {0};
    PGresult *r = NULL;
    struct query q;

    for (size_t i = 0; i < b->change_count; i++) {
        const struct change *c = &b->changes[i];
        if (!takes(b, wanted, i))
            continue;
        array_text(&ids, c->row.id);
        array_text(&locks, c->row.lock);
        array_time(&ats, c->kind == CHANGE_INSERT ? c->row.submitted_at : 0);
    }
    if (!ids.count)
        return ERR_OK;
    query_of(&q, s, PG_LOCK_ROOM, a);
    param_array(&q, &ids, ARRAY_TEXTS);
    param_array(&q, &locks, ARRAY_TEXTS);
    param_array(&q, &ats, ARRAY_NUMBERS);
    struct pg_end o = pg_run(s, &q, 1, &r, e, "read who holds locks");
    if (o.err == ERR_OK)
        judge(b, wanted, r, a);
    PQclear(r);
    return o.err;
}

/* ---- claims ---- */

size_t pg_lock_claim(struct postgres_store *s, const struct claim *c, struct arena *a,
                     struct query *ret)
{
    query_of(&ret[0], s, PG_LOCK_LOOK, a);
    param_number(&ret[0], (int64_t)c->limit);
    query_of(&ret[1], s, PG_LOCK_TAKE, a);
    param_text(&ret[1], c->locked_by);
    param_number(&ret[1], c->now);
    param_number(&ret[1], (int64_t)c->limit);
    query_of(&ret[2], s, PG_LOCK_SEEN, a);
    query_of(&ret[3], s, PG_LOCK_LEFT, a);
    return 4;
}

/* ---- who holds which ---- */

enum err pg_lock_list(struct store *base, const struct lock_query *lq, struct arena *a,
                      struct lock_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    *ret = (struct lock_page){0};
    if (!text_is_storable(lq->lock))
        return ERR_OK; /* no task holds it */
    query_of(&q, s, lq->lock.ptr ? PG_LOCK_LIST : PG_LOCKS_LIST, &own);
    param_number(&q, lq->after_seq);
    param_number(&q, (int64_t)lq->limit + 1);
    param_number(&q, LOCK_WAITING_MOST);
    if (lq->lock.ptr)
        param_text(&q, lq->lock);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list locks");
    if (!r)
        return e->code;
    size_t found = (size_t)PQntuples(r);
    *ret = (struct lock_page){.count = found < lq->limit ? found : lq->limit,
                              .more = found > lq->limit};
    ret->holders = arena_alloc(a, (ret->count + 1) * sizeof *ret->holders);
    for (int i = 0; i < (int)ret->count; i++)
        ret->holders[i] = (struct lock_holder){.lock = arena_copy(a, result_text(r, i, 0)),
                                               .task = arena_copy(a, result_text(r, i, 1)),
                                               .seq = result_number(r, i, 2),
                                               .since = result_number(r, i, 3),
                                               .waiting = (uint64_t)result_number(r, i, 4)};
    return ERR_OK;
}

enum err pg_lock_held(struct store *base, struct slice lock, struct arena *a, struct lock_held *ret,
                      struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    *ret = (struct lock_held){0};
    if (!text_is_storable(lock))
        return ERR_OK; /* no task holds it */
    query_of(&q, s, PG_LOCK_HELD, &own);
    param_text(&q, lock);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read who holds a lock");
    if (!r)
        return e->code;
    if (PQntuples(r) > 0)
        *ret = (struct lock_held){.count = (uint64_t)result_number(r, 0, 0),
                                  .task = arena_copy(a, result_text(r, 0, 1)),
                                  .since = result_number(r, 0, 2)};
    return ERR_OK;
}
