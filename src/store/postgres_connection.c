#include "store/postgres_body.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "base/fault.h"
#include "base/log.h"

/*
 * One connection, used by one thread. Waiting has an end: a database that says nothing for so long
 * is given up with its connection, since nothing else would tell a stalled network from a slow
 * answer.
 */

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 2000 };

static int64_t steady_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void connection_drop(struct postgres_store *s)
{
    PQfinish(s->conn);
    s->conn = NULL;
}

/* What libpq says is for people and ends with newlines, often several. */
static struct slice message_line(const char *text)
{
    size_t len = strcspn(text, "\n");

    return (struct slice){text, len};
}

/* A warning during a commit may say that it is durable here and not on the standby. */
static void heed(void *arg, const PGresult *r)
{
    struct postgres_store *s = arg;
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    struct slice text = message_line(PQresultErrorMessage(r));

    if (severity && strcmp(severity, "WARNING") == 0) {
        s->warned = true;
        log_line(LOG_WARN, "event=database_warns text=\"%.*s\"", SLICE_ARG(text));
    }
}

static enum err lost(struct postgres_store *s, struct error *e, const char *what)
{
    struct slice why = message_line(s->conn ? PQerrorMessage(s->conn) : "");

    error_set(e, ERR_IO, "cannot %s: the connection to the database was lost%s%.*s", what,
              why.len ? ": " : "", SLICE_ARG(why));
    connection_drop(s);
    return ERR_IO;
}

/* All was sent, and no answer came: what was asked for may yet be done. */
static enum err unanswered(struct postgres_store *s, struct error *e, const char *what)
{
    pg_hosts_set_aside(&s->hosts, s->conn);
    s->conn = NULL;
    return error_set(e, ERR_IO,
                     "cannot %s: the database does not answer; if it waits for a synchronous "
                     "standby, see what became of that",
                     what);
}

/* ---- connecting ---- */

static bool wait_socket(PGconn *c, short events, int64_t until)
{
    struct pollfd p = {.fd = PQsocket(c), .events = events};
    int64_t left = until - steady_ms();

    return p.fd >= 0 && left > 0 && poll(&p, 1, (int)left) > 0;
}

static bool connect_within(PGconn *c, int64_t until)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED || fault())
            return false;
        if (!wait_socket(c, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until))
            return false;
        state = PQconnectPoll(c);
    }
    return true;
}

static enum err connect_once(struct postgres_store *s, int64_t until, struct error *e)
{
    const struct pg_host *h = &s->hosts.hosts[s->hosts.at];
    const char *const names[] = {"dbname",
                                 "application_name",
                                 "client_encoding",
                                 "keepalives",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "tcp_user_timeout",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {s->conninfo, "intact", "UTF8",      "1",     "5", "5",
                                  "10000",     h->host,  h->hostaddr, h->port, NULL};

    s->conn = PQconnectStartParams(names, values, 1);
    if (s->conn && connect_within(s->conn, until) && PQsetnonblocking(s->conn, 1) == 0
        && PQenterPipelineMode(s->conn)) {
        (void)PQsetNoticeReceiver(s->conn, heed, s);
        return ERR_OK;
    }
    struct slice why = message_line(s->conn ? PQerrorMessage(s->conn) : "there is no memory");
    error_set(e, ERR_IO, "cannot connect to the database: %.*s",
              SLICE_ARG(why.len ? why : SLICE("it does not answer")));
    connection_drop(s);
    return ERR_IO;
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
    struct slice line = message_line(text ? text : PQresultErrorMessage(r));

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

static bool send(PGconn *c, const struct query *queries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct query *q = &queries[i];
        if (!PQsendQueryParams(c, q->sql, q->count, q->types, q->values, q->lengths, q->formats, 1))
            return false;
    }
    return PQpipelineSync(c);
}

/* Until the next result is there: reads while it writes, for the server does the same. */
static bool await(PGconn *c, int64_t until)
{
    for (;;) {
        int unsent = PQflush(c);
        if (unsent < 0 || fault())
            return false;
        if (!unsent && !PQisBusy(c))
            return true;
        if (!wait_socket(c, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until)
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
    if (!await(s->conn, until))
        return false;
    *ret = PQgetResult(s->conn);
    if (!*ret)
        return false;
    return await(s->conn, until) && !PQgetResult(s->conn);
}

static bool take_sync(struct postgres_store *s, int64_t until)
{
    if (!await(s->conn, until))
        return false;
    PGresult *r = PQgetResult(s->conn);
    bool ok = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
    PQclear(r);
    return ok;
}

static bool take_results(struct postgres_store *s, size_t count, PGresult **results, int64_t until,
                         struct pg_end *o, struct error *e, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (!take_result(s, until, &results[i]))
            return false;
        if (o->err == ERR_OK && !is_good(results[i]))
            refused(o, i, results[i], e, what);
    }
    return take_sync(s, until);
}

static struct pg_end round_trip_until(struct postgres_store *s, const struct query *queries,
                                      size_t count, PGresult **results, int64_t until,
                                      struct error *e, const char *what)
{
    struct pg_end o = {.failed_at = count};

    for (size_t i = 0; i < count; i++)
        results[i] = NULL;
    bool sent = !fault() && send(s->conn, queries, count);
    if (!sent || !take_results(s, count, results, until, &o, e, what)) {
        if (o.err != ERR_OK) /* the server said why before it hung up */
            connection_drop(s);
        else if (sent && PQstatus(s->conn) == CONNECTION_OK)
            o.err = unanswered(s, e, what);
        else
            o.err = lost(s, e, what);
    }
    if (is_last_word(&o))
        connection_drop(s);
    return o;
}

static struct pg_end round_trip(struct postgres_store *s, const struct query *queries, size_t count,
                                PGresult **results, struct error *e, const char *what)
{
    return round_trip_until(s, queries, count, results, steady_ms() + s->wait_ms, e, what);
}

/* ---- a connection that can be relied on ---- */

/*
 * A primary that came back after a crash, or whose wait for the standby was cancelled, shows
 * commits that nobody but it has: should it die now, they are gone. A commit of our own tells:
 * when it is acknowledged, so is all that was before it. And one that never is tells a primary of
 * yesterday, whose standby was promoted.
 */
static enum err prove(struct postgres_store *s, int64_t until, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct query q;
    PGresult *r = NULL;

    if (s->boot == 0) /* the first thing that is done is a commit */
        return ERR_OK;
    query_of(&q, s, PG_PROVE, &a);
    param_text(&q, slice_of(s->node));
    s->warned = false;
    struct pg_end o = round_trip_until(s, &q, 1, &r, until, e, "use the database");
    PQclear(r);
    if (o.err == ERR_OK && s->warned)
        o.err = error_set(e, ERR_IO, "cannot use the database: it warned at a commit");
    s->unproven = o.err != ERR_OK;
    if (s->unproven)
        connection_drop(s);
    return o.err;
}

/* `ret_took`: it took a connection, now or before. */
static enum err connect_host(struct postgres_store *s, int64_t until, bool *ret_took,
                             struct error *e)
{
    *ret_took = !pg_hosts_may_connect(&s->hosts);
    if (*ret_took)
        return error_set(e, ERR_IO,
                         "the database takes connections, and acknowledges nothing; if it waits "
                         "for a synchronous standby, see what became of that");
    enum err err = connect_once(s, until, e);
    *ret_took = err == ERR_OK;
    return err == ERR_OK ? prove(s, until, e) : err;
}

/* Each of the hosts in its share of the time, the one that was good last first. What is told is
 * what became of the one that took a connection, if there was one. */
static enum err connect_any(struct postgres_store *s, struct error *e)
{
    int64_t share = s->wait_ms / (int64_t)s->hosts.count;
    struct error told = {0};
    bool took = false;

    for (size_t i = 0; i < s->hosts.count; i++) {
        enum err err = connect_host(s, steady_ms() + share, &took, e);
        if (err == ERR_OK)
            return ERR_OK;
        if (took)
            told = *e;
        pg_hosts_next(&s->hosts);
    }
    if (told.code != ERR_OK)
        *e = told;
    return e->code;
}

enum err connection_ready(struct postgres_store *s, struct error *e)
{
    int64_t now = steady_ms();

    pg_hosts_tidy(&s->hosts);
    if (s->conn && PQstatus(s->conn) == CONNECTION_OK)
        return s->unproven ? prove(s, now + s->wait_ms, e) : ERR_OK;
    connection_drop(s);
    if (now < s->connect_at)
        return error_set(e, ERR_IO, "the database was not reached; the next try follows soon");
    enum err err = connect_any(s, e);
    if (err == ERR_OK) {
        s->backoff_ms = 0;
        return ERR_OK;
    }
    /* The first failure may be a connection that just had to be made again: try at once. */
    s->connect_at = steady_ms() + s->backoff_ms;
    s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_FIRST_MS;
    s->backoff_ms = s->backoff_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : s->backoff_ms;
    return err;
}

/* The last of its results, as of PQexec; NULL: no answer came, and the connection is given up. */
static PGresult *last_result(struct postgres_store *s, int64_t until)
{
    PGresult *last = NULL;

    for (;;) {
        while (PQisBusy(s->conn))
            if (!wait_socket(s->conn, POLLIN, until) || !PQconsumeInput(s->conn)) {
                PQclear(last);
                return NULL;
            }
        PGresult *r = PQgetResult(s->conn);
        if (!r)
            return last;
        PQclear(last);
        last = r;
    }
}

PGresult *pg_script(struct postgres_store *s, const char *sql, int64_t wait_ms)
{
    if (!s->conn)
        return NULL;
    int64_t until = steady_ms() + wait_ms;
    PGresult *r = PQsendQuery(s->conn, sql) ? last_result(s, until) : NULL;
    if (!r)
        connection_drop(s);
    return r;
}

static void roll_back(struct postgres_store *s)
{
    struct error ignored;
    struct query q = {.sql = s->sql[PG_ROLLBACK]};
    PGresult *r = NULL;

    if (s->conn && PQtransactionStatus(s->conn) != PQTRANS_IDLE) {
        (void)round_trip(s, &q, 1, &r, &ignored, "roll back"); /* else it was dropped */
        PQclear(r);
    }
}

struct pg_end pg_run(struct postgres_store *s, const struct query *queries, size_t count,
                     PGresult **results, struct error *e, const char *what)
{
    struct pg_end o = {.err = connection_ready(s, e), .failed_at = count};

    for (size_t i = 0; i < count; i++)
        results[i] = NULL;
    if (o.err != ERR_OK)
        return o;
    o = round_trip(s, queries, count, results, e, what);
    if (o.err != ERR_OK)
        roll_back(s);
    return o;
}

PGresult *pg_read(struct postgres_store *s, const struct query *q, struct error *e,
                  const char *what)
{
    PGresult *r = NULL;
    struct pg_end o = pg_run(s, q, 1, &r, e, what);

    if (o.err == ERR_OK)
        return r;
    PQclear(r);
    return NULL;
}

/* Nobody knows what became of it if all was sent and the answer to COMMIT did not come, or was the
 * server's farewell, or came with a warning about the standby. */
static bool commit_is_unknown(const struct postgres_store *s, const struct pg_end *o, size_t commit)
{
    if (o->err == ERR_OK)
        return s->warned;
    return o->failed_at >= commit && (o->sqlstate[0] == 0 || is_last_word(o));
}

struct pg_end pg_transact(struct postgres_store *s, const struct query *queries, size_t count,
                          PGresult **results, struct error *e, const char *what)
{
    struct query *all = calloc(count + 2, sizeof *all);
    PGresult **got = calloc(count + 2, sizeof(PGresult *));

    ASSERT(all && got);
    all[0].sql = s->sql[PG_BEGIN];
    memcpy(all + 1, queries, count * sizeof *all);
    all[count + 1].sql = s->sql[PG_COMMIT];
    struct pg_end o = {.err = connection_ready(s, e), .failed_at = count};
    if (o.err == ERR_OK) {
        s->warned = false;
        o = round_trip(s, all, count + 2, got, e, what);
        o.unknown = commit_is_unknown(s, &o, count + 1);
        s->unproven |= s->warned;
        if (o.err == ERR_OK && o.unknown)
            o.err = error_set(e, ERR_UNKNOWN, "cannot %s: the database warned at the commit", what);
        if (o.err != ERR_OK)
            roll_back(s);
        o.failed_at -= o.failed_at > 0; /* as the caller counts; that of COMMIT is `count` */
    }
    PQclear(got[0]);
    PQclear(got[count + 1]);
    for (size_t i = 0; i < count; i++)
        results[i] = got[i + 1];
    free(all);
    free(got);
    return o;
}
