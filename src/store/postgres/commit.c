/*
 * A batch in PostgreSQL: the only place that writes tasks, apart from claims (claim.c). It is a
 * transaction of a few statements, sent at once: the fence, all new rows, all changes of rows, the
 * claims. Should one of the changes be refused for what is in it, the whole is tried again change
 * by change, which is slow and rare.
 */
#include "store/postgres/family.h"
#include "store/postgres/item.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/codec/envelope.h"
#include "store/row.h"

enum { CLAIM_STATEMENTS_MAX = 4, ROLLBACKS_MAX = 6, CONTENDED_MS = 60000 };

/* What goes with the changes: payloads, audits, messages and waits. */
struct extras {
    struct array p_ord, p_number, p_json;
    struct array a_ord;
    struct audit_arrays {
        AUDIT_COLUMNS(MEMBER, )
    } audits;
    struct array m_ord, m_name, m_target, m_body, m_at;
    struct array w_ord, w_agent, w_rank, w_dropped;
    struct array n_ord, n_seq;
};

static void audit_add(struct audit_arrays *k, const struct audit *row)
{
    AUDIT_COLUMNS(ADD, )
}

static void audits_bind(struct audit_arrays *k, struct query *q)
{
    AUDIT_COLUMNS(BIND_ARRAY, )
}

static void extras_add(struct extras *x, const struct change *c, int64_t ord)
{
    CLEANUP(buf_fini) struct buf body = {0};

    for (size_t i = 0; i < c->row.payload_count; i++) {
        array_number(&x->p_ord, ord);
        array_number(&x->p_number, c->row.payloads[i].number);
        array_text(&x->p_json, c->row.payloads[i].json);
    }
    for (size_t i = 0; i < c->audit_count; i++) {
        array_number(&x->a_ord, ord);
        audit_add(&x->audits, &c->audits[i]);
    }
    for (size_t i = 0; i < c->message_count; i++) {
        const struct message *m = &c->messages[i];
        array_number(&x->m_ord, ord);
        array_text(&x->m_name, m->name);
        array_text(&x->m_target, m->target);
        buf_clear(&body);
        envelope_write(&body, m);
        array_text(&x->m_body, buf_view(&body));
        array_number(&x->m_at, m->created_at);
    }
}

static void waits_add(struct extras *x, const struct change *c, int64_t ord)
{
    if (c->drops_waits)
        array_number(&x->w_dropped, ord);
    for (size_t i = 0; i < c->row.wait_count; i++) {
        array_number(&x->w_ord, ord);
        array_text(&x->w_agent, c->row.waits[i].agent);
        array_number(&x->w_rank, c->row.waits[i].rank);
    }
}

static void notices_add(struct extras *x, const struct change *c, int64_t ord)
{
    for (size_t i = 0; i < c->notice_count; i++) {
        array_number(&x->n_ord, ord);
        array_number(&x->n_seq, c->notices[i]);
    }
}

static bool waits_any(const struct extras *x)
{
    return x->w_ord.count > 0 || x->w_dropped.count > 0;
}

static void waits_bind(struct extras *x, struct query *q)
{
    param_array(q, &x->w_ord, ARRAY_NUMBERS);
    param_array(q, &x->w_agent, ARRAY_TEXTS);
    param_array(q, &x->w_rank, ARRAY_NUMBERS);
}

static bool extras_any(const struct extras *x)
{
    return x->p_ord.count > 0 || x->a_ord.count > 0 || x->m_ord.count > 0;
}

static void extras_bind(struct extras *x, struct query *q)
{
    param_array(q, &x->p_ord, ARRAY_NUMBERS);
    param_array(q, &x->p_number, ARRAY_NUMBERS);
    param_array(q, &x->p_json, ARRAY_TEXTS);
    param_array(q, &x->a_ord, ARRAY_NUMBERS);
    audits_bind(&x->audits, q);
    param_array(q, &x->m_ord, ARRAY_NUMBERS);
    param_array(q, &x->m_name, ARRAY_TEXTS);
    param_array(q, &x->m_target, ARRAY_TEXTS);
    param_array(q, &x->m_body, ARRAY_TEXTS);
    param_array(q, &x->m_at, ARRAY_NUMBERS);
}

/* Tasks as arrays, one for each column: statements unnest them. */
struct columns {
    struct array ord, kind, id;
    TASK_COLUMNS(MEMBER, )
};

#define ADD_TASK(name, type, how)        ADD(name, type)
#define ADD_state(array, v)              array_text(array, slice_of(task_state_text(v)))
#define ADD_direction(array, v)          array_text(array, slice_of(direction_text(v)))
#define BIND_ARRAY_TASK(name, type, how) BIND_ARRAY(name, type)
#define KIND_state                       ARRAY_TEXTS
#define KIND_direction                   ARRAY_TEXTS

static void columns_add(struct columns *k, const struct change *c, int64_t ord)
{
    const struct task_row *row = &c->row;

    array_number(&k->ord, ord);
    array_text(&k->id, row->id);
    TASK_CHANGING_COLUMNS(ADD_TASK, )
}

static void fixed_columns_add(struct columns *k, const struct task_row *row)
{
    TASK_FIXED_COLUMNS(ADD_TASK, )
}

static void columns_bind(struct columns *k, struct query *q)
{
    TASK_CHANGING_COLUMNS(BIND_ARRAY_TASK, )
}

static void fixed_columns_bind(struct columns *k, struct query *q)
{
    TASK_FIXED_COLUMNS(BIND_ARRAY_TASK, )
}

static const char *kind_text(const struct change *c)
{
    if (c->kind == CHANGE_REQUEST)
        return c->release ? "r" : "q";
    return c->wake_moved ? "w" : "u";
}

/* What the batch is made of: those of its changes that are still to be done. */
struct plan {
    struct postgres_store *store;
    struct batch *batch;
    struct arena *arena;
    const bool *wanted; /* of each change */
    struct query *queries;
    size_t query_count;
    PGresult **results;
    size_t insert_at, check_at, update_at, lock_check_at, claims_at; /* SIZE_MAX: there is none */
    size_t operations_at;                                            /* the same */
    bool locks_first;
};

static struct query *plan_query(struct plan *p, enum pg_sql which)
{
    struct query *q = &p->queries[p->query_count++];

    query_of(q, p->store, which, p->arena);
    return q;
}

static enum pg_sql update_of(const struct plan *p, const struct extras *x)
{
    bool extra = extras_any(x);

    if (waits_any(x))
        return p->locks_first ? PG_UPDATE_LOCKED_WAITS : PG_UPDATE_WAITS;
    if (p->locks_first)
        return extra ? PG_UPDATE_LOCKED_EXTRA : PG_UPDATE_LOCKED;
    return extra ? PG_UPDATE_EXTRA : PG_UPDATE;
}

static enum pg_sql update_on_notices(const struct plan *p, const struct family_arrays *f,
                                     const struct item_arrays *items)
{
    if (f->b_ord.count > 0)
        return p->locks_first ? PG_UPDATE_LOCKED_CHILDREN : PG_UPDATE_CHILDREN;
    if (f->t_ord.count > 0)
        return p->locks_first ? PG_UPDATE_LOCKED_TELLS : PG_UPDATE_TELLS;
    if (items_any(items))
        return p->locks_first ? PG_UPDATE_LOCKED_ITEMS : PG_UPDATE_ITEMS;
    return p->locks_first ? PG_UPDATE_LOCKED_NOTICES : PG_UPDATE_NOTICES;
}

static bool family_any(const struct family_arrays *f)
{
    return f->t_ord.count > 0 || f->b_ord.count > 0;
}

/* In the order in which the statement names them. */
static void update_bind(struct query *q, struct columns *k, struct extras *x,
                        struct family_arrays *f, struct item_arrays *items)
{
    bool family = family_any(f);
    bool children = f->b_ord.count > 0; /* binding ends the arrays */
    bool rests = items_any(items) || family;
    bool notices = x->n_ord.count > 0 || rests;
    bool waits = waits_any(x) || notices;
    bool extra = extras_any(x) || waits;

    if (notices) {
        param_array(q, &x->n_ord, ARRAY_NUMBERS);
        param_array(q, &x->n_seq, ARRAY_NUMBERS);
    }
    param_array(q, &k->ord, ARRAY_NUMBERS);
    param_array(q, &k->kind, ARRAY_TEXTS);
    param_array(q, &k->id, ARRAY_TEXTS);
    columns_bind(k, q);
    if (extra)
        extras_bind(x, q);
    if (waits) {
        waits_bind(x, q);
        param_array(q, &x->w_dropped, ARRAY_NUMBERS);
    }
    if (rests)
        items_bind(items, q);
    if (family)
        tells_bind(f, q);
    if (children)
        children_bind(f, q);
}

static void plan_updates(struct plan *p)
{
    struct columns k = {0};
    struct extras x = {0};
    struct family_arrays f = {0};
    struct item_arrays items = {0};

    for (size_t i = 0; i < p->batch->change_count; i++) {
        const struct change *c = &p->batch->changes[i];
        if (!p->wanted[i] || c->kind == CHANGE_INSERT)
            continue;
        columns_add(&k, c, (int64_t)i);
        array_text(&k.kind, slice_of(kind_text(c)));
        extras_add(&x, c, (int64_t)i);
        waits_add(&x, c, (int64_t)i);
        notices_add(&x, c, (int64_t)i);
        family_add(&f, c, (int64_t)i);
        items_add(&items, c, (int64_t)i);
    }
    p->update_at = k.ord.count ? p->query_count : SIZE_MAX;
    if (!k.ord.count)
        return;
    bool notices = x.n_ord.count > 0 || family_any(&f) || items_any(&items);
    update_bind(plan_query(p, notices ? update_on_notices(p, &f, &items) : update_of(p, &x)), &k,
                &x, &f, &items);
}

/* Against a task of that id that is deleted while it is inserted. */
static void plan_insert_check(struct plan *p)
{
    struct array ids = {0};
    struct array ats = {0};

    for (size_t i = 0; i < p->batch->change_count; i++) {
        const struct change *c = &p->batch->changes[i];
        if (!p->wanted[i] || c->kind != CHANGE_INSERT)
            continue;
        array_text(&ids, c->row.id);
        array_number(&ats, c->row.submitted_at);
    }
    struct query *q = plan_query(p, PG_INSERT_CHECK);
    param_array(q, &ids, ARRAY_TEXTS);
    param_array(q, &ats, ARRAY_NUMBERS);
    p->check_at = p->query_count - 1;
}

static void plan_inserts(struct plan *p)
{
    struct columns k = {0};
    struct extras x = {0};
    struct array ords = {0};
    struct array submissions = {0};
    struct array ids = {0};
    struct family_arrays f = {0};
    struct item_arrays items = {0};

    for (size_t i = 0; i < p->batch->change_count; i++) {
        const struct change *c = &p->batch->changes[i];
        if (!p->wanted[i] || c->kind != CHANGE_INSERT)
            continue;
        if (c->submission) {
            array_number(&ords, (int64_t)i);
            array_number(&submissions, c->submission);
            array_text(&ids, c->row.id);
        }
        columns_add(&k, c, (int64_t)i);
        fixed_columns_add(&k, &c->row);
        extras_add(&x, c, (int64_t)i);
        waits_add(&x, c, (int64_t)i);
        family_add(&f, c, (int64_t)i);
        items_add(&items, c, (int64_t)i);
    }
    p->insert_at = k.ord.count ? p->query_count : SIZE_MAX;
    if (!k.ord.count)
        return;
    bool family = family_any(&f) || items_any(&items);
    bool submitted = ords.count > 0 || family;
    bool waits = waits_any(&x);
    bool extra = extras_any(&x) || submitted || waits;
    struct query *q = plan_query(p, family      ? PG_INSERT_FAMILY
                                    : submitted ? PG_INSERT_SUBMITTED
                                    : waits     ? PG_INSERT_WAITS
                                    : extra     ? PG_INSERT_EXTRA
                                                : PG_INSERT);
    if (submitted) {
        param_array(q, &ords, ARRAY_NUMBERS);
        param_array(q, &submissions, ARRAY_NUMBERS);
        param_array(q, &ids, ARRAY_TEXTS);
    }
    param_array(q, &k.ord, ARRAY_NUMBERS);
    param_array(q, &k.id, ARRAY_TEXTS);
    fixed_columns_bind(&k, q);
    columns_bind(&k, q);
    if (extra)
        extras_bind(&x, q);
    if (submitted || waits)
        waits_bind(&x, q);
    if (family) {
        items_bind(&items, q);
        tells_bind(&f, q);
        children_bind(&f, q);
    }
    plan_insert_check(p);
}

static void plan_overruns(struct plan *p)
{
    struct array ids = {0};
    struct array revisions = {0};

    for (size_t i = 0; i < p->batch->change_count; i++) {
        const struct change *c = &p->batch->changes[i];
        if (!p->wanted[i] || !c->drops_overruns)
            continue;
        array_text(&ids, c->row.id);
        array_number(&revisions, (int64_t)c->row.revision);
    }
    if (!ids.count)
        return;
    struct query *q = plan_query(p, PG_OVERRUN_DELETE);
    param_array(q, &ids, ARRAY_TEXTS);
    param_array(q, &revisions, ARRAY_NUMBERS);
}

/* Behind all that waits for rows of tasks. */
static void plan_locks(struct plan *p)
{
    bool checks = false;

    p->query_count += pg_lock_queries(p->store, p->batch, p->wanted, p->arena,
                                      &p->queries[p->query_count], &checks);
    p->lock_check_at = checks ? p->query_count - 1 : SIZE_MAX;
}

static void plan_fence(struct plan *p)
{
    const struct fence *f = p->batch->fence;

    if (!f)
        return;
    struct query *q = plan_query(p, PG_FENCE);
    param_text(q, f->lease);
    param_number(q, (int64_t)f->epoch);
}

/* What people did to the tasks whose records are shown, as of this transaction. */
static void plan_operations(struct plan *p)
{
    struct array numbers = {0};
    struct array ids = {0};

    for (size_t i = 0; i < p->batch->change_count; i++) {
        const struct change *c = &p->batch->changes[i];
        if (!p->wanted[i] || !c->shows_operations)
            continue;
        array_number(&numbers, (int64_t)i);
        array_text(&ids, c->row.id);
    }
    if (!ids.count)
        return;
    p->operations_at = p->query_count;
    pg_operations_query(&p->queries[p->query_count++], p->store, &numbers, &ids, p->arena);
}

static void take_operations(const struct plan *p)
{
    int at = 0;

    for (size_t i = 0; i < p->batch->change_count; i++) {
        struct change *c = &p->batch->changes[i];
        if (p->wanted[i] && c->shows_operations)
            pg_operations_take(p->results[p->operations_at], &at, (int64_t)i, p->arena,
                               &c->operations);
    }
}

static void plan_claims(struct plan *p)
{
    p->claims_at = p->query_count;
    for (size_t i = 0; i < p->batch->claim_count; i++)
        p->query_count +=
            pg_claim_queries(p->store, &p->batch->claims[i], p->arena, &p->queries[p->query_count]);
}

/* ---- outcomes ---- */

/* The changes that a statement names in its result were done; but one without a seq has no
 * submission any more. */
static void take_done(struct batch *b, const PGresult *r)
{
    for (int i = 0; i < PQntuples(r); i++) {
        struct change *c = &b->changes[result_number(r, i, 0)];
        c->outcome = ERR_OK;
        if (c->kind == CHANGE_INSERT)
            c->row.seq = result_number(r, i, 1);
        if (c->kind == CHANGE_INSERT && c->row.seq == 0)
            c->outcome = ERR_BUSY;
    }
}

static void take_outcomes(struct plan *p)
{
    size_t at = p->claims_at;

    for (size_t i = 0; i < p->batch->change_count; i++)
        if (p->wanted[i])
            p->batch->changes[i].outcome = ERR_CONFLICT;
    if (p->update_at != SIZE_MAX)
        take_done(p->batch, p->results[p->update_at]);
    if (p->insert_at != SIZE_MAX)
        take_done(p->batch, p->results[p->insert_at]);
    if (p->operations_at != SIZE_MAX)
        take_operations(p);
    for (size_t i = 0; i < p->batch->claim_count; i++) {
        struct claim *c = &p->batch->claims[i];
        pg_claim_read(c, &p->results[at], p->arena);
        at += pg_claim_statements(c);
    }
}

static size_t plan_size(const struct batch *b)
{
    return 10 + b->claim_count * CLAIM_STATEMENTS_MAX;
}

static enum err fence_failed(const struct plan *p, const struct pg_end *o, struct error *e)
{
    if (p->batch->fence && o->failed_at == 0 && strcmp(o->sqlstate, "22012") == 0)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(p->batch->fence->lease));
    return ERR_OK;
}

/* An id was that of a task which was deleted under our hands, or a lock was taken meanwhile. */
static bool check_failed(const struct plan *p, const struct pg_end *o)
{
    return o->failed_at != SIZE_MAX && strcmp(o->sqlstate, "22012") == 0
           && (o->failed_at == p->check_at || o->failed_at == p->lock_check_at);
}

/* Inserts come before changes. An insert waits for a concurrent insert or change of the same id; a
 * change waits only for other changes. The other way round, one batch that holds a row and is about
 * to insert, and one that has inserted that and meets the row, would wait for each other, whatever
 * the order of their ids. */
static enum err run_at_once(struct plan *p, struct pg_end *ret, struct error *e)
{
    plan_fence(p);
    plan_inserts(p);
    plan_updates(p);
    plan_overruns(p);
    plan_locks(p);
    plan_operations(p);
    plan_claims(p);
    *ret = (p->batch->change_count ? pg_transact : pg_transact_brief)(p->store, p->queries,
                                                                      p->query_count, p->results, e,
                                                                      "write");
    enum err err = pg_end_err(ret, e);
    if (err == ERR_OK)
        take_outcomes(p);
    else if (fence_failed(p, ret, e) != ERR_OK)
        err = ERR_CONFLICT;
    results_clear(p->results, p->query_count);
    return err;
}

static bool is_storable(const struct change *c)
{
    const struct task_row *row = &c->row;
#define IS_STORABLE_TASK(name, type, how) IS_STORABLE(name, type)
#define IS_STORABLE_state(v)
#define IS_STORABLE_direction(v)
    if (!(text_is_storable(row->id) TASK_COLUMNS(IS_STORABLE_TASK, )))
        return false;
    for (size_t i = 0; i < row->payload_count; i++)
        if (!text_is_storable(row->payloads[i].json))
            return false;
    for (size_t i = 0; i < row->wait_count; i++)
        if (!text_is_storable(row->waits[i].agent))
            return false;
    for (size_t i = 0; i < c->message_count; i++)
        if (!text_is_storable(c->messages[i].target) || !text_is_storable(c->messages[i].body)
            || !text_is_storable(c->messages[i].data) || !text_is_storable(c->messages[i].source))
            return false;
    for (size_t i = 0; i < c->audit_count; i++)
        if (!text_is_storable(c->audits[i].reason) || !text_is_storable(c->audits[i].step)
            || !text_is_storable(c->audits[i].detail) || !text_is_storable(c->audits[i].address))
            return false;
    return family_is_storable(c) && items_are_storable(c);
}

static void check_changes(struct batch *b, bool *wanted)
{
    for (size_t i = 0; i < b->change_count; i++) {
        struct change *c = &b->changes[i];
        c->lock_holder = SLICE_NONE;
        c->outcome = row_check(c);
        if (c->outcome == ERR_OK && !is_storable(c))
            c->outcome = ERR_INVALID;
        wanted[i] = c->outcome == ERR_OK;
    }
}

static void plan_begin(struct plan *p, struct batch *b)
{
    p->batch = b;
    p->query_count = 0;
    p->insert_at = p->check_at = p->update_at = p->lock_check_at = SIZE_MAX;
    p->operations_at = SIZE_MAX;
}

/* The database waits for a lock for half of the time that a call has, and then it is certain that
 * nothing was done: so a try begins while there is more than that left. */
static bool has_time(const struct postgres_store *s)
{
    return clock_steady_ms() < s->call_until - s->wait_ms * 3 / 5;
}

/* Two batches that wait for each other, and whatever else the database rolled back so that the next
 * try may succeed (class 40), are tried again at once: nothing of it was done. Then all rows are
 * locked first, in the order of their ids: of batches that do so no two wait for each other. It is
 * not the rule, because it costs a third more; but where it happened it goes on for a while. */
static enum err run_until_done(struct plan *p, struct batch *b, bool *wanted, struct pg_end *ret,
                               struct error *e)
{
    enum err err = ERR_BUSY;

    for (int i = 0; i == 0 || (i < ROLLBACKS_MAX && has_time(p->store)); i++) {
        err = pg_lock_room(p->store, b, wanted, p->arena, e);
        if (err != ERR_OK)
            break;
        plan_begin(p, b);
        p->locks_first = clock_steady_ms() < p->store->contended_until;
        err = run_at_once(p, ret, e);
        if (check_failed(p, ret)) {
            err = error_set(e, ERR_BUSY, "what a batch changes was changed again and again");
            continue; /* what was deleted or taken meanwhile is seen now */
        }
        if (err == ERR_OK || err == ERR_UNKNOWN || strncmp(ret->sqlstate, "40", 2) != 0)
            break;
        p->store->contended_until = clock_steady_ms() + CONTENDED_MS;
    }
    return err;
}

/* ---- one by one ---- */

/* The changes that the database takes when each is tried alone, and undone again. */
static enum err sift(struct postgres_store *s, struct batch *b, bool *wanted, struct arena *a,
                     struct error *e)
{
    struct query *queries = calloc(4, sizeof *queries);
    PGresult *results[4];
    enum err err = ERR_OK;

    ASSERT(queries);
    for (size_t i = 0; err == ERR_OK && i < b->change_count; i++) {
        struct batch one = {.changes = &b->changes[i], .change_count = 1};
        struct plan p = {.store = s,
                         .batch = &one,
                         .arena = a,
                         .wanted = &wanted[i],
                         .queries = queries,
                         .results = results};
        if (!wanted[i])
            continue;
        query_of(&queries[p.query_count++], s, PG_BEGIN, a);
        plan_updates(&p);
        plan_inserts(&p);
        query_of(&queries[p.query_count++], s, PG_ROLLBACK, a);
        struct pg_end o = pg_run(s, queries, p.query_count, results, e, "write");
        results_clear(results, p.query_count);
        if (o.err != ERR_OK && pg_end_concerns_change(&o)) {
            b->changes[i].outcome = o.err == ERR_TOO_BIG ? ERR_TOO_BIG : ERR_INVALID;
            wanted[i] = false;
        } else {
            err = o.err;
        }
    }
    free(queries);
    return err;
}

static enum err batch_commit(struct postgres_store *s, struct batch *b, struct arena *a,
                             struct error *e)
{
    size_t size = plan_size(b);
    bool *wanted = arena_alloc(a, b->change_count + 1);
    struct query *queries = calloc(size, sizeof *queries);
    PGresult **results = calloc(size, sizeof(PGresult *));
    struct plan p = {
        .store = s, .arena = a, .wanted = wanted, .queries = queries, .results = results};
    struct pg_end o = {0};

    ASSERT(queries && results);
    check_changes(b, wanted);
    enum err err = run_until_done(&p, b, wanted, &o, e);
    if (err != ERR_OK && err != ERR_UNKNOWN && pg_end_concerns_change(&o)
        && fence_failed(&p, &o, e) == ERR_OK) {
        err = sift(s, b, wanted, a, e);
        if (err == ERR_OK)
            err = run_until_done(&p, b, wanted, &o, e);
    }
    free(queries);
    free(results);
    return err;
}

static void claims_empty(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->claims[i].rows = NULL;
        b->claims[i].row_count = 0;
        b->claims[i].more = false;
        b->claims[i].next_rank = 0;
    }
}

enum err pg_commit(struct store *base, struct batch *b, struct arena *a, struct error *e)
{
    struct postgres_store *s = postgres_store_of(base);

    CLEANUP(pg_call_end) struct postgres_store *call = pg_call_begin(s);
    claims_empty(b);
    enum err err = batch_commit(call, b, a, e);
    if (err == ERR_OK)
        return ERR_OK;
    claims_empty(b);
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].outcome = err;
    return err;
}

/* As much as a batch of some tasks. */
enum err pg_probe(struct store *base, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *r = NULL;

    query_of(&q, s, PG_PROBE, &a);
    param_bytes(&q, arena_alloc(&a, 65536), 65536);
    struct pg_end o = pg_transact(s, &q, 1, &r, e, "write");
    PQclear(r);
    return pg_end_err(&o, e);
}
