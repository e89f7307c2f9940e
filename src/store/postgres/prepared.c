/*
 * What lives as long as a connection: prepared statements, and settings of the session. Both need a
 * session of our own: a pooler may give each transaction another one. A statement is prepared when
 * it is used for the second time, under its name in statements.h, by the round trip that uses it.
 *
 * Plans are generic, made once: those for the parameters at hand would cost more than the
 * statements themselves, and a batch of one has other parameters than a batch of a thousand.
 * Statements are written so that the planner has one way only, which plans_test.c checks in both
 * modes.
 */
#include "store/postgres/body.h"

#include "base/log.h"

enum state {
    NEW,
    FIRST, /* used by the round trip that is being made, and never before */
    USED,
    PREPARING, /* sent, and the result has not come */
    PREPARED,
};

static const char *const names[] = {
#define X(name) #name,
    PG_STATEMENTS(X)
#undef X
};

void pg_prepared_begin(struct postgres_store *s)
{
    memset(s->prepared.states, NEW, sizeof s->prepared.states);
    s->prepared.was_tried = s->prepared.is_settled = false;
}

static bool may_prepare(const struct postgres_store *s, const struct query *q)
{
    return q->statement > 0 && s->prepared.is_settled && !s->prepared.never;
}

static uint32_t hash_of(const struct query *q)
{
    uint32_t hash = (uint32_t)q->count;

    for (int i = 0; i < q->count; i++)
        hash = hash * 31 + q->types[i];
    return hash;
}

static bool send_plain(PGconn *c, const struct query *q)
{
    return PQsendQueryParams(c, q->sql, q->count, q->types, q->values, q->lengths, q->formats, 1);
}

bool pg_prepared_send(struct postgres_store *s, const struct query *q)
{
    if (!may_prepare(s, q))
        return send_plain(s->conn, q);
    unsigned n = q->statement - 1;
    if (s->prepared.states[n] <= FIRST) {
        s->prepared.states[n] = FIRST;
        return send_plain(s->conn, q);
    }
    if (s->prepared.states[n] == USED) {
        s->prepared.types[n] = hash_of(q);
        s->prepared.states[n] = PREPARING;
        if (!PQsendPrepare(s->conn, names[n], q->sql, q->count, q->types))
            return false;
    }
    ASSERT(s->prepared.types[n] == hash_of(q)); /* values come in binary form */
    return PQsendQueryPrepared(s->conn, names[n], q->count, q->values, q->lengths, q->formats, 1);
}

/* The first one of several uses in one round trip prepares it. */
bool pg_prepared_is_due(const struct postgres_store *s, const struct query *q)
{
    return q->statement > 0 && s->prepared.states[q->statement - 1] == PREPARING;
}

void pg_prepared_done(struct postgres_store *s, const struct query *q, bool good)
{
    s->prepared.states[q->statement - 1] = good ? PREPARED : USED;
}

/* A round trip has ended. If it prepared what it had used before, it would not be known which of
 * its results is that of the preparation. */
void pg_prepared_trip_ended(struct postgres_store *s)
{
    for (size_t i = 0; i < COUNT_OF(s->prepared.states); i++)
        if (s->prepared.states[i] == FIRST)
            s->prepared.states[i] = USED;
}

bool pg_prepared_is_lost(struct postgres_store *s, const struct pg_end *o)
{
    bool unknown = strcmp(o->sqlstate, "26000") == 0 || strcmp(o->sqlstate, "42P05") == 0;
    bool changed = strcmp(o->sqlstate, "0A000") == 0; /* "must not change result type" */

    if (o->err == ERR_OK || !s->prepared.is_settled || !(unknown || changed))
        return false;
    s->prepared.is_lost = true;
    if (unknown && !s->prepared.never) {
        s->prepared.never = true;
        log_line(LOG_WARN, "event=statements_not_prepared reason=\"something between this node and "
                           "the database loses prepared statements\"");
    }
    return true;
}

/* ---- settings ---- */

/* A role's setting may change under a session; what it was at first is what is asked for. */
static const char settle[] =
    "SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false), "
    "set_config('plan_cache_mode', CASE current_setting('plan_cache_mode') WHEN 'auto' "
    "THEN 'force_generic_plan' ELSE current_setting('plan_cache_mode') END, false), "
    "set_config('synchronous_commit', current_setting('synchronous_commit'), false)";

static void make_settings(struct postgres_store *s, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(result_end) PGresult *r = NULL;
    struct query q = {.sql = settle, .arena = &a};
    int64_t statement_ms = s->of ? s->wait_ms / 2 : s->wait_ms * 4 / 5;
    char lock[24];
    char statement[24];

    (void)snprintf(lock, sizeof lock, "%" PRId64, s->wait_ms / 2 + 1);
    (void)snprintf(statement, sizeof statement, "%" PRId64, statement_ms + 1);
    param_text(&q, slice_of(lock));
    param_text(&q, slice_of(statement));
    struct pg_end o = pg_round_trip(s, &q, 1, &r, e, "make settings");
    s->prepared.is_settled = o.err == ERR_OK;
}

/* What a server refuses, each transaction asks for, as through a pooler. Before the start is
 * counted there are migrations, which may take longer. */
enum err pg_session_settle(struct postgres_store *s, struct error *e)
{
    if (s->is_pooled || s->prepared.never || s->prepared.was_tried || s->boot == 0)
        return ERR_OK;
    s->prepared.was_tried = true;
    make_settings(s, e);
    return s->conn ? ERR_OK : ERR_IO;
}
