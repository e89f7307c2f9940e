/*
 * The outbox in PostgreSQL: messages are read, settled, set aside and listed. Messages that were
 * not set aside are in a table of their own. The columns are those of rows/message.h.
 */
#include "store/postgres/columns.h"

#include "store/row.h"

static const char *state_text(bool dead)
{
    return dead ? "dead" : "waiting";
}

/* ---- reading ---- */

static void message_read(const PGresult *r, int i, struct arena *a, struct message *ret)
{
    struct message row = {0};
    struct slice state = SLICE_NONE;
    int col = 0;

#define READ_standing(field) state = result_text(r, i, col++);
    READ(seq, number)
    MESSAGE_COLUMNS(READ, )
    MESSAGE_ASIDE_COLUMNS(READ, )
    row.aside = state.ptr != NULL;
    row.dead = slice_is(state, "dead");
    *ret = row;
}

static void page_read(const PGresult *r, size_t limit, size_t bytes_max, struct arena *a,
                      struct message_page *ret)
{
    size_t rows = (size_t)PQntuples(r);
    size_t bytes = 0;

    *ret = (struct message_page){.messages = arena_alloc(a, (rows + 1) * sizeof(struct message))};
    while (ret->count < rows && ret->count < limit && (ret->count == 0 || bytes < bytes_max)) {
        message_read(r, (int)ret->count, a, &ret->messages[ret->count]);
        bytes += ret->messages[ret->count++].body.len;
    }
    ret->more = ret->count < rows;
}

enum err pg_outbox_read(struct store *base, struct outbox_read *r, struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct message_page page;
    struct array known = {0};
    struct query q;

    query_of(&q, s, r->target.ptr ? PG_OUTBOX_READ_TARGET : PG_OUTBOX_READ, &own);
    param_number(&q, r->after_seq);
    param_number(&q, (int64_t)r->limit + 1);
    if (r->target.ptr) {
        param_text(&q, r->target);
    } else {
        for (size_t i = 0; i < r->known_count; i++)
            array_number(&known, r->known[i]);
        param_array(&q, &known, ARRAY_NUMBERS);
    }
    param_text(&q, r->fence ? r->fence->lease : SLICE_NONE);
    param_number(&q, r->fence ? (int64_t)r->fence->epoch : 0);
    CLEANUP(result_end) PGresult *result = pg_read(s, &q, e, "read messages");
    if (!result)
        return e->code;
    page_read(result, r->limit, r->bytes_max, a, &page);
    r->messages = page.messages;
    r->count = page.count;
    r->more = page.more;
    return ERR_OK;
}

enum err pg_outbox_targets(struct store *base, const struct target_query *want, struct arena *a,
                           struct outbox_target **ret, size_t *ret_count, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_OUTBOX_TARGETS, &own);
    param_text(&q, slice_of(state_text(want->dead)));
    param_text(&q, want->after.ptr ? want->after : SLICE(""));
    param_number(&q, (int64_t)want->limit);
    param_number(&q, (int64_t)want->most);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read the targets of messages");
    if (!r)
        return e->code;
    *ret_count = (size_t)PQntuples(r);
    *ret = arena_alloc(a, (*ret_count + 1) * sizeof **ret);
    for (int i = 0; i < (int)*ret_count; i++)
        (*ret)[i] = (struct outbox_target){.target = arena_copy(a, result_text(r, i, 0)),
                                           .oldest_at = result_number(r, i, 1),
                                           .story = arena_copy(a, result_text(r, i, 2)),
                                           .count = (uint64_t)result_number(r, i, 3)};
    return ERR_OK;
}

static enum err list_fresh(struct postgres_store *s, const struct outbox_query *want,
                           struct arena *a, struct message_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query q;

    query_of(&q, s, PG_OUTBOX_LIST_FRESH, &own);
    param_number(&q, want->after_seq);
    param_number(&q, (int64_t)want->limit + 1);
    param_text(&q, want->target);
    param_text(&q, want->task);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list messages");
    if (!r)
        return e->code;
    page_read(r, want->limit, SIZE_MAX, a, ret);
    return ERR_OK;
}

static enum err list_aside(struct postgres_store *s, const struct outbox_query *want,
                           struct arena *a, struct message_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct query q;

    query_of(&q, s,
             want->target.ptr ? PG_OUTBOX_LIST_TARGET
             : want->task.ptr ? PG_OUTBOX_LIST_TASK
                              : PG_OUTBOX_LIST,
             &own);
    param_number(&q, want->after_seq);
    param_number(&q, (int64_t)want->limit + 1);
    param_text(&q, slice_of(state_text(want->dead)));
    if (want->target.ptr || want->task.ptr)
        param_text(&q, want->target.ptr ? want->target : want->task);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "list messages");
    if (!r)
        return e->code;
    page_read(r, want->limit, SIZE_MAX, a, ret);
    return ERR_OK;
}

/* One that is set aside between the two readings is listed twice rather than not at all, and then
 * taken once. */
static void without_twins(struct message_page *fresh, const struct message_page *aside)
{
    size_t kept = 0;
    size_t k = 0;

    for (size_t i = 0; i < fresh->count; i++) {
        while (k < aside->count && aside->messages[k].seq < fresh->messages[i].seq)
            k++;
        if (k == aside->count || aside->messages[k].seq != fresh->messages[i].seq)
            fresh->messages[kept++] = fresh->messages[i];
    }
    fresh->count = kept;
}

enum err pg_outbox_list(struct store *base, const struct outbox_query *q, struct arena *a,
                        struct message_page *ret, struct error *e)
{
    struct postgres_store *s = postgres_store_of(base);
    struct message_page fresh = {0};
    struct message_page aside = {0};

    enum err err = q->dead ? ERR_OK : list_fresh(s, q, a, &fresh, e);
    if (err == ERR_OK)
        err = list_aside(s, q, a, &aside, e);
    if (err != ERR_OK)
        return err;
    without_twins(&fresh, &aside);
    messages_merge(&aside, &fresh, q->limit, a, ret);
    return ERR_OK;
}

enum err pg_outbox_census(struct store *base, size_t most, struct outbox_census *ret,
                          struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_OUTBOX_CENSUS, &own);
    param_number(&q, (int64_t)most);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "count messages");
    if (!r)
        return e->code;
    outbox_census_of(result_number(r, 0, 0), result_number(r, 0, 1), result_number(r, 0, 2),
                     result_number(r, 0, 3), result_number(r, 0, 4), most, ret);
    return ERR_OK;
}

/* ---- what became of them ---- */

struct kept {
    struct array seq, state, tries, retry_at, story;
};

static void kept_add(struct kept *k, const struct settlement *t)
{
    array_number(&k->seq, t->seq);
    array_text(&k->state, slice_of(state_text(t->kind == SETTLE_DEAD)));
    array_number(&k->tries, t->tries);
    array_time(&k->retry_at, t->retry_at);
    array_text(&k->story, text_is_storable(t->story) ? t->story : SLICE("?"));
}

static void kept_bind(struct kept *k, struct query *q)
{
    param_array(q, &k->seq, ARRAY_NUMBERS);
    param_array(q, &k->state, ARRAY_TEXTS);
    param_array(q, &k->tries, ARRAY_NUMBERS);
    param_array(q, &k->retry_at, ARRAY_NUMBERS);
    param_array(q, &k->story, ARRAY_TEXTS);
}

static void delete_query(struct query *q, struct postgres_store *s, enum pg_sql which,
                         struct array *seqs, struct arena *a)
{
    query_of(q, s, which, a);
    param_array(q, seqs, ARRAY_NUMBERS);
}

enum err pg_outbox_settle(struct store *base, const struct settlement *list, size_t count,
                          const struct fence *fence, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array *gone = arena_alloc(&a, 2 * sizeof *gone); /* of both tables */
    struct kept *kept = arena_alloc(&a, 2 * sizeof *kept);
    struct query *q = arena_alloc(&a, 5 * sizeof *q);
    PGresult *r[5] = {0};
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (list[i].kind == SETTLE_DELETE)
            array_number(&gone[list[i].aside], list[i].seq);
        else
            kept_add(&kept[list[i].aside], &list[i]);
    if (fence) {
        query_of(&q[n], s, PG_FENCE, &a);
        param_text(&q[n], fence->lease);
        param_number(&q[n++], (int64_t)fence->epoch);
    }
    delete_query(&q[n++], s, PG_OUTBOX_DELETE, &gone[0], &a);
    delete_query(&q[n++], s, PG_OUTBOX_DELETE_ASIDE, &gone[1], &a);
    query_of(&q[n], s, PG_OUTBOX_SET_ASIDE, &a);
    kept_bind(&kept[0], &q[n++]);
    query_of(&q[n], s, PG_OUTBOX_UPDATE, &a);
    kept_bind(&kept[1], &q[n++]);
    struct pg_end o = pg_transact(s, q, n, r, e, "write what became of messages");
    enum err err = pg_end_err(&o, e);
    if (fence && err != ERR_OK && o.failed_at == 0 && strcmp(o.sqlstate, "22012") == 0)
        err = error_set(e, ERR_CONFLICT, "lease %.*s has another epoch", SLICE_ARG(fence->lease));
    results_clear(r, n);
    return err;
}

/* ---- by hand ---- */

static bool verb_wants(const struct outbox_verb *v, const struct message *m)
{
    return (!v->target.ptr || slice_eq(v->target, m->target))
           && (!v->name.ptr || slice_eq(v->name, m->name));
}

static enum err do_read(struct postgres_store *s, const struct outbox_verb *v, struct arena *a,
                        struct message_page *ret, struct error *e)
{
    struct message_page waiting = {0};
    struct message_page dead = {0};
    struct outbox_query want = {
        .target = v->task.ptr ? SLICE_NONE : v->target,
        .task = v->task,
        .after_seq = v->after_seq,
        .limit = v->limit,
    };

    enum err err = v->drop ? ERR_OK : list_aside(s, &want, a, &waiting, e);
    want.dead = true;
    if (err == ERR_OK)
        err = list_aside(s, &want, a, &dead, e);
    messages_merge(&waiting, &dead, v->limit, a, ret);
    return err;
}

/* What it is done to is read first, and may be another state by then: of that nothing is done that
 * was not asked for. */
enum err pg_outbox_do(struct store *base, struct outbox_verb *v, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct message_page page = {0};
    struct array seqs = {0};
    struct query *q = arena_alloc(&a, 2 * sizeof *q);
    PGresult *r[2] = {0};

    enum err err = do_read(s, v, &a, &page, e);
    if (err != ERR_OK)
        return err;
    for (size_t i = 0; i < page.count; i++)
        if (verb_wants(v, &page.messages[i]))
            array_number(&seqs, page.messages[i].seq);
    v->count = 0;
    v->more = page.more;
    bool any = seqs.count > 0;
    query_of(&q[0], s, PG_OUTBOX_LOCK, &a);
    query_of(&q[1], s, v->drop ? PG_OUTBOX_DROP : PG_OUTBOX_REVIVE, &a);
    param_number(&q[1], v->now);
    param_array(&q[1], &seqs, ARRAY_NUMBERS);
    pg_bind_audit(&q[1], v->audit);
    if (any) {
        struct pg_end o = pg_transact(s, q, COUNT_OF(r), r, e, "change messages");
        err = pg_end_err(&o, e);
        v->count = err == ERR_OK ? (uint64_t)result_number(r[1], 0, 0) : 0;
        results_clear(r, COUNT_OF(r));
    }
    if (err == ERR_OK && page.count > 0)
        v->after_seq = page.messages[page.count - 1].seq;
    return err;
}
