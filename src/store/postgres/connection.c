/*
 * Runs statements on one connection, for one thread: transactions in one round trip, and errors.
 * Each wait has an end, after which the connection is given up (abandoned.c), because nothing else
 * distinguishes a stalled network from a slow answer. The database's own timeouts are shorter, so
 * that it is mostly certain what was done.
 */
#include "store/postgres/body.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"

enum {
    SILENCE_MS = 2000,   /* of a pooler, before it is asked once more */
    DURABLE_SETTING = 2, /* of write_settings: after the two time limits */
};

/* Messages of libpq are for people and end with newlines, often several. */
struct slice pg_message_line(const char *text)
{
    return (struct slice){text, strcspn(text, "\n")};
}

static enum err lost(struct postgres_store *s, struct error *e, const char *what)
{
    struct slice why = pg_message_line(s->conn ? PQerrorMessage(s->conn) : "");

    error_set(e, ERR_IO, "cannot %s: the connection to the database was lost%s%.*s", what,
              why.len ? ": " : "", SLICE_ARG(why));
    connection_drop(s);
    return ERR_IO;
}

/* All was sent, and no answer came: what was asked for may yet be done. */
static void abandon(struct postgres_store *s)
{
    pg_abandoned_put(s, s->conn);
    s->conn = NULL;
    pg_turn(s);
}

static enum err unanswered(struct postgres_store *s, struct error *e, const char *what)
{
    abandon(s);
    return error_set(e, ERR_IO,
                     "cannot %s: the database did not answer within %" PRId64 " ms; if it waits "
                     "for a synchronous standby, see what became of that%s",
                     what, s->wait_ms, pg_pooler_hint(s));
}

bool pg_wait_socket(PGconn *c, short events, int64_t until)
{
    struct pollfd p = {.fd = PQsocket(c), .events = events};
    int ready = 0;

    do {
        int64_t left = until - clock_steady_ms();
        if (p.fd < 0 || left <= 0)
            return false;
        ready = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
    } while (ready < 0 && errno == EINTR); /* a signal has no meaning for the database */
    return ready > 0;
}

/* ---- what an error means ---- */

static enum err state_err(const char *state)
{
    static const struct {
        const char *prefix;
        enum err err;
    } table[] = {
        {"53100", ERR_FULL}, {"53200", ERR_BUSY},     {"40", ERR_BUSY},       {"55P03", ERR_BUSY},
        {"57014", ERR_BUSY}, {"23505", ERR_CONFLICT}, {"22", ERR_INVALID},    {"23", ERR_INVALID},
        {"54", ERR_TOO_BIG}, {"XX001", ERR_CORRUPT},  {"XX002", ERR_CORRUPT},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strncmp(state, table[i].prefix, strlen(table[i].prefix)) == 0)
            return table[i].err;
    return ERR_IO;
}

bool pg_end_concerns_change(const struct pg_end *o)
{
    return strncmp(o->sqlstate, "22", 2) == 0 || strncmp(o->sqlstate, "23", 2) == 0
           || strncmp(o->sqlstate, "54", 2) == 0;
}

enum err pg_end_err(const struct pg_end *o, struct error *e)
{
    if (o->err != ERR_OK && o->unknown)
        e->code = ERR_UNKNOWN;
    return o->err != ERR_OK && o->unknown ? ERR_UNKNOWN : o->err;
}

static void refused(struct pg_end *o, size_t at, const PGresult *r, struct error *e,
                    const char *what)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    struct slice line = pg_message_line(text ? text : PQresultErrorMessage(r));

    (void)snprintf(o->sqlstate, sizeof o->sqlstate, "%s", state ? state : "");
    o->failed_at = at;
    o->err = error_set(e, state_err(o->sqlstate), "cannot %s: the database says: %.*s (%s)", what,
                       SLICE_ARG(line), state ? state : "no code");
}

/* A server that goes down, was promoted away or refuses writes: another connection may do better.
 */
static bool is_last_word(const struct pg_end *o)
{
    return strncmp(o->sqlstate, "57P", 3) == 0 || strncmp(o->sqlstate, "08", 2) == 0
           || strcmp(o->sqlstate, "25006") == 0;
}

/* ---- a round trip ---- */

void results_clear(PGresult **results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PQclear(results[i]);
        results[i] = NULL;
    }
}

void result_end(PGresult **r)
{
    PQclear(*r);
}

static bool send(struct postgres_store *s, const struct query *queries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!pg_prepared_send(s, &queries[i]))
            return false;
    return PQpipelineSync(s->conn);
}

/* Until the next result is there: reads while it writes, for the server does the same. */
bool pg_await(PGconn *c, int64_t until)
{
    for (;;) {
        int unsent = PQflush(c);
        if (unsent < 0 || fault())
            return false;
        if (!unsent && !PQisBusy(c))
            return true;
        if (!pg_wait_socket(c, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until)
            || !PQconsumeInput(c))
            return false;
        if (unsent && !PQisBusy(c))
            return true;
    }
}

static bool is_good(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* The result of one statement and the NULL behind it. False: the connection was lost. */
static bool take_result(struct postgres_store *s, int64_t until, PGresult **ret)
{
    if (!pg_await(s->conn, until))
        return false;
    *ret = PQgetResult(s->conn);
    if (!*ret)
        return false;
    return pg_await(s->conn, until) && !PQgetResult(s->conn);
}

static bool take_sync(struct postgres_store *s, int64_t until)
{
    if (!pg_await(s->conn, until))
        return false;
    PGresult *r = PQgetResult(s->conn);
    bool ok = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
    PQclear(r);
    return ok;
}

/* A failure is that of the statement. */
static bool take_preparation(struct postgres_store *s, const struct query *q, size_t at,
                             struct pg_end *o, struct error *e, const char *what)
{
    CLEANUP(result_end) PGresult *r = NULL;

    if (!take_result(s, s->until, &r))
        return false;
    pg_prepared_done(s, q, is_good(r));
    if (o->err == ERR_OK && !is_good(r))
        refused(o, at, r, e, what);
    return true;
}

static bool take_results(struct postgres_store *s, const struct query *queries, size_t count,
                         PGresult **results, struct pg_end *o, struct error *e, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (pg_prepared_is_due(s, &queries[i]) && !take_preparation(s, &queries[i], i, o, e, what))
            return false;
        if (!take_result(s, s->until, &results[i]))
            return false;
        if (o->err == ERR_OK && !is_good(results[i]))
            refused(o, i, results[i], e, what);
    }
    return take_sync(s, s->until);
}

/* It has been silent for a while, and does not lead to the primary any more. */
static bool is_silent_pooler(const struct postgres_store *s)
{
    if (!s->is_pooled)
        return false;
    int64_t until = clock_steady_ms() + SILENCE_MS;
    return until < s->until && !pg_await(s->conn, until) && PQstatus(s->conn) == CONNECTION_OK
           && clock_steady_ms() >= until && !pg_primary_is_reached(s);
}

struct pg_end pg_round_trip(struct postgres_store *s, const struct query *queries, size_t count,
                            PGresult **results, struct error *e, const char *what)
{
    struct pg_end o = {.failed_at = count};

    for (size_t i = 0; i < count; i++)
        results[i] = NULL;
    bool sent = !fault() && send(s, queries, count);
    if (sent && is_silent_pooler(s)) {
        abandon(s);
        s->pooler_is_silent = true;
        o.err = error_set(e, ERR_IO, "cannot %s: " PG_NO_ROOM, what);
        return o;
    }
    if (!sent || !take_results(s, queries, count, results, &o, e, what)) {
        if (o.err != ERR_OK) /* the server reported why before it closed the connection */
            connection_drop(s);
        else if (sent && PQstatus(s->conn) == CONNECTION_OK && clock_steady_ms() >= s->until)
            o.err = unanswered(s, e, what);
        else
            o.err = lost(s, e, what);
    }
    pg_prepared_trip_ended(s);
    if (is_last_word(&o) || pg_prepared_is_lost(s, &o))
        connection_drop(s);
    return o;
}

static void roll_back(struct postgres_store *s)
{
    struct error ignored;
    struct query q = {.sql = s->sql[PG_ROLLBACK]};
    PGresult *r = NULL;

    if (s->conn && PQtransactionStatus(s->conn) != PQTRANS_IDLE) {
        (void)pg_round_trip(s, &q, 1, &r, &ignored, "roll back"); /* else it was dropped */
        PQclear(r);
    }
}

/* One more statement finds out which server answered. */
static struct pg_end pooled_round_trip(struct postgres_store *s, const struct query *queries,
                                       size_t count, PGresult **results, PGresult **ret_who,
                                       struct error *e, const char *what)
{
    struct query *all = calloc(count + 1, sizeof *all);
    PGresult **got = calloc(count + 1, sizeof(PGresult *));

    ASSERT(all && got);
    memcpy(all, queries, count * sizeof *all);
    all[count] = *pg_primary_query();
    struct pg_end o = pg_round_trip(s, all, count + 1, got, e, what);
    o.failed_at = o.failed_at < count ? o.failed_at : count;
    memcpy(results, got, count * sizeof(PGresult *));
    *ret_who = got[count];
    free(all);
    free(got);
    return o;
}

static struct pg_end run_once(struct postgres_store *s, const struct query *queries, size_t count,
                              PGresult **results, struct error *e, const char *what)
{
    CLEANUP(result_end) PGresult *who = NULL;
    s->prepared.is_lost = false;
    struct pg_end o = {.err = connection_ready(s, e), .failed_at = count};

    for (size_t i = 0; i < count; i++)
        results[i] = NULL;
    if (o.err != ERR_OK)
        return o;
    s->warned = false;
    o = s->is_pooled ? pooled_round_trip(s, queries, count, results, &who, e, what)
                     : pg_round_trip(s, queries, count, results, e, what);
    s->unproven |= s->warned;
    if (o.err == ERR_OK && s->warned) /* such as a lease that only the primary has */
        o.err = error_set(e, ERR_UNKNOWN, "cannot %s: the database warned", what);
    if (o.err == ERR_OK && who && !pg_primary_answered(s, who, e, what))
        o.err = ERR_IO;
    if (o.err != ERR_OK)
        roll_back(s);
    return o;
}

/* A prepared statement was not there any more, so nothing was done. */
static bool is_to_be_repeated(const struct postgres_store *s, PGresult **results, size_t count)
{
    bool is_lost = s->prepared.is_lost;

    if (is_lost)
        results_clear(results, count);
    return is_lost;
}

struct pg_end pg_run(struct postgres_store *s, const struct query *queries, size_t count,
                     PGresult **results, struct error *e, const char *what)
{
    struct pg_end o = run_once(s, queries, count, results, e, what);

    return is_to_be_repeated(s, results, count) ? run_once(s, queries, count, results, e, what) : o;
}

PGresult *pg_read(struct postgres_store *s, const struct query *q, struct error *e,
                  const char *what)
{
    PGresult *r = NULL;
    if (s->of)
        return pg_read_long(s, q, e, what);
    struct pg_end o = pg_run(s, q, 1, &r, e, what);

    if (o.err == ERR_OK)
        return r;
    PQclear(r);
    return NULL;
}

PGresult *pg_read_long(struct postgres_store *s, const struct query *q, struct error *e,
                       const char *what)
{
    const struct query all[] = {{.sql = s->read_settings}, *q};
    PGresult *r[COUNT_OF(all)] = {0};
    size_t first = s->prepared.is_settled ? 1 : 0;
    struct pg_end o = pg_run(s, all + first, COUNT_OF(all) - first, r + first, e, what);

    PQclear(r[0]);
    if (o.err == ERR_OK)
        return r[1];
    PQclear(r[1]);
    return NULL;
}

/* The outcome is unknown if all was sent and the answer to COMMIT did not come, or ended the
 * connection whatever its reason (a server that fails to write its log has perhaps written it), or
 * reports that the server itself does not know, or came with a warning about the standby. */
static bool commit_is_unknown(const struct postgres_store *s, const struct pg_end *o, size_t commit)
{
    if (o->err == ERR_OK)
        return s->warned;
    return o->failed_at >= commit
           && (!s->conn || o->sqlstate[0] == 0 || strcmp(o->sqlstate, "40003") == 0);
}

enum settings { SETTINGS_NONE, SETTINGS_ALL };

/* From `*ret_from` on. What the session has is not made for each transaction. */
static size_t settings_of(const struct postgres_store *s, enum settings which, size_t *ret_from)
{
    bool is_settled = s->prepared.is_settled;

    *ret_from = is_settled ? DURABLE_SETTING : 0;
    return which == SETTINGS_NONE ? 0 : !is_settled ? s->settings_count : s->prepared.sets_durable;
}

/* Settings come before what is to be done. */
static struct pg_end transact(struct postgres_store *s, enum settings which,
                              const struct query *queries, size_t count, PGresult **results,
                              struct error *e, const char *what)
{
    size_t from = 0;
    size_t settings = settings_of(s, which, &from);
    size_t first = 1 + settings;
    size_t commit = first + count;
    struct query *all = calloc(commit + 1, sizeof *all);
    PGresult **got = calloc(commit + 1, sizeof(PGresult *));

    ASSERT(all && got);
    all[0].sql = s->sql[PG_BEGIN];
    for (size_t i = 0; i < settings; i++)
        all[1 + i].sql = s->write_settings[from + i];
    memcpy(all + first, queries, count * sizeof *all);
    all[commit].sql = s->sql[PG_COMMIT];
    s->warned = false;
    struct pg_end o = pg_round_trip(s, all, commit + 1, got, e, what);
    o.unknown = commit_is_unknown(s, &o, commit);
    s->unproven |= s->warned;
    if (o.err == ERR_OK && o.unknown)
        o.err = error_set(e, ERR_UNKNOWN, "cannot %s: the database warned at the commit", what);
    if (o.err != ERR_OK)
        roll_back(s);
    /* As the caller counts: none in particular where it is none of theirs. */
    o.failed_at = o.failed_at < first || o.failed_at > commit ? count : o.failed_at - first;
    memcpy(results, got + first, count * sizeof(PGresult *));
    results_clear(got, first);
    PQclear(got[commit]);
    free(all);
    free(got);
    return o;
}

static struct pg_end transact_once(struct postgres_store *s, enum settings which,
                                   const struct query *queries, size_t count, PGresult **results,
                                   struct error *e, const char *what)
{
    for (size_t i = 0; i < count; i++)
        results[i] = NULL;
    s->prepared.is_lost = false;
    struct pg_end o = {.err = connection_ready(s, e), .failed_at = count};
    return o.err == ERR_OK ? transact(s, which, queries, count, results, e, what) : o;
}

static struct pg_end transact_again(struct postgres_store *s, enum settings which,
                                    const struct query *queries, size_t count, PGresult **results,
                                    struct error *e, const char *what)
{
    struct pg_end o = transact_once(s, which, queries, count, results, e, what);

    return is_to_be_repeated(s, results, count)
               ? transact_once(s, which, queries, count, results, e, what)
               : o;
}

struct pg_end pg_transact(struct postgres_store *s, const struct query *queries, size_t count,
                          PGresult **results, struct error *e, const char *what)
{
    return transact_again(s, SETTINGS_ALL, queries, count, results, e, what);
}

struct pg_end pg_transact_brief(struct postgres_store *s, const struct query *queries, size_t count,
                                PGresult **results, struct error *e, const char *what)
{
    return transact_again(s, SETTINGS_NONE, queries, count, results, e, what);
}

/* ---- scripts ---- */

PGresult *pg_script(struct postgres_store *s, const char *sql, int64_t wait_ms)
{
    int64_t until = clock_steady_ms() + wait_ms;
    PGresult *last = NULL;

    if (fault() || !PQsendQuery(s->conn, sql))
        return NULL;
    while (pg_await(s->conn, until)) {
        PGresult *r = PQgetResult(s->conn);
        if (!r)
            return last;
        PQclear(last);
        last = r;
    }
    /* The server, or a pooler, may have reported why it closed the connection. */
    if ((!last || is_good(last)) && PQstatus(s->conn) == CONNECTION_BAD) {
        PQclear(last);
        last = PQgetResult(s->conn);
    }
    connection_drop(s);
    if (last && !is_good(last))
        return last;
    PQclear(last);
    return NULL;
}

bool pg_scripts_begin(struct postgres_store *s)
{
    return PQexitPipelineMode(s->conn);
}

bool pg_scripts_end(struct postgres_store *s)
{
    return s->conn && PQenterPipelineMode(s->conn);
}

/* ---- settings ---- */

/* For one transaction each. Locks are given up first, then statements, then we give up. */
void pg_settings_make(struct postgres_store *s)
{
    (void)snprintf(s->write_settings[0], sizeof s->write_settings[0],
                   "SET LOCAL lock_timeout = %" PRId64, s->wait_ms / 2 + 1);
    (void)snprintf(s->write_settings[1], sizeof s->write_settings[1],
                   "SET LOCAL statement_timeout = %" PRId64, s->wait_ms * 4 / 5 + 1);
    s->settings_count = 2;
    (void)snprintf(s->read_settings, sizeof s->read_settings,
                   "SELECT set_config('statement_timeout', '%" PRId64 "', true)",
                   s->wait_ms / 2 + 1);
}

/* A role's setting may change under a connection; what it was at first is what we go on asking for,
 * or more than that. */
void pg_settings_durable(struct postgres_store *s, struct slice level)
{
    bool weak = slice_is(level, "off") || slice_is(level, "local");

    s->prepared.sets_durable = weak;
    (void)snprintf(s->write_settings[DURABLE_SETTING], sizeof s->write_settings[DURABLE_SETTING],
                   "SET LOCAL synchronous_commit = %.*s", SLICE_ARG(weak ? SLICE("on") : level));
    s->settings_count = 3;
}
