/*
 * Makes the connection, again and again. At first each host gets one second, so that a silent host
 * does not keep us from the next; if all were slow, then a share of the time that is left. Pauses
 * between failures double and are partly random, so that many nodes do not come back at once.
 * primary.c then checks what answers.
 */
#include "store/postgres/body.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 2000, FIRST_ROUND_MS = 1000, OPTIONS_MAX = 64 };

void connection_drop(struct postgres_store *s)
{
    if (s->conn)
        pg_turn(s);
    PQfinish(s->conn);
    s->conn = NULL;
}

/* A warning during a commit may mean that it is durable here and not on the standby. */
static void heed(void *arg, const PGresult *r)
{
    struct postgres_store *s = arg;
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    struct slice text = pg_message_line(PQresultErrorMessage(r));

    if (severity && strcmp(severity, "WARNING") == 0) {
        s->warned = true;
        pg_turn(s);
        CLEANUP(buf_fini) struct buf words = {0};
        log_word(&words, text);
        log_line(LOG_WARN, "event=database_warns text=%s", words.ptr);
    }
}

/* ---- one host ---- */

struct words {
    const char *names[OPTIONS_MAX], *values[OPTIONS_MAX];
    size_t count;
};

static void word(struct words *w, const char *name, const char *value)
{
    ASSERT(w->count + 1 < OPTIONS_MAX);
    w->names[w->count] = name;
    w->values[w->count++] = value;
}

/* Our value of an option that was not given, or (`always`) whatever was given. */
static const char *ours(const struct postgres_store *s, const char *name, const char *given)
{
    const struct pg_host *h = &s->hosts[s->host_at];
    /* clang-format off */
    static const struct {
        const char *name, *value;
        bool always;
    } table[] = {
        {"application_name",     "intact",     false},
        {"client_encoding",      "UTF8",       true},
        {"keepalives_idle",      "5",          false},
        {"keepalives_interval",  "5",          false},
        {"tcp_user_timeout",     "10000",      false},
    };
    /* clang-format on */
    if (strcmp(name, "host") == 0)
        return h->host;
    if (strcmp(name, "hostaddr") == 0)
        return h->address;
    if (strcmp(name, "port") == 0)
        return h->port;
    if (strcmp(name, "target_session_attrs") == 0)
        return "any"; /* pg_primary_check asks */
    if (s->of && !given && strcmp(name, "application_name") == 0)
        return "intact reads";
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(name, table[i].name) == 0 && (table[i].always || !given))
            return table[i].value;
    return given;
}

static bool wait_for(PGconn *c, PostgresPollingStatusType state, int64_t until)
{
    return pg_wait_socket(c, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until);
}

/* False: refused; with *ret_late, there was no answer in time. */
static bool connect_within(PGconn *c, int64_t until, bool *ret_late)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED || fault())
            return false;
        if (!wait_for(c, state, until)) {
            *ret_late = true;
            return false;
        }
        state = PQconnectPoll(c);
    }
    return true;
}

/* The one that is tried. */
static void name_host(const struct postgres_store *s, struct buf *why)
{
    const struct pg_host *h = &s->hosts[s->host_at];
    const char *name = h->host ? h->host : h->address;

    buf_fmt(why, "%s%s%s", name ? name : "the default host", h->port ? " port " : "",
            h->port ? h->port : "");
}

static void tell_refused(const struct postgres_store *s, bool late, struct buf *why)
{
    struct slice text = pg_message_line(s->conn ? PQerrorMessage(s->conn) : "there is no memory");

    if (why->len > 0)
        buf_str(why, "; ");
    if (late || text.len == 0) {
        name_host(s, why);
        buf_str(why, " does not answer");
    } else {
        buf_slice(why, text);
    }
}

/* Connects to the host that is next. NULL: there is no memory; a failed connection has the reason,
 * or *ret_late. */
static PGconn *dial(const struct postgres_store *s, int64_t until, bool *ret_late)
{
    struct words w = {0};

    for (const PQconninfoOption *o = s->options; o->keyword; o++) {
        const char *value = ours(s, o->keyword, o->val);
        if (value)
            word(&w, o->keyword, value);
    }
    word(&w, NULL, NULL);
    PGconn *c = PQconnectStartParams(w.names, w.values, 0);
    if (c && PQstatus(c) != CONNECTION_BAD)
        (void)connect_within(c, until, ret_late); /* its status has the result */
    return c;
}

PGconn *connection_beside(const struct postgres_store *s, int64_t until)
{
    bool late = false;
    PGconn *c = dial(s, until, &late);

    if (c && PQstatus(c) == CONNECTION_OK)
        return c;
    PQfinish(c);
    return NULL;
}

static bool connect_to(struct postgres_store *s, int64_t until, struct buf *why)
{
    bool late = false;

    s->conn = dial(s, until, &late);
    if (s->conn && PQstatus(s->conn) == CONNECTION_OK && PQsetnonblocking(s->conn, 1) == 0
        && PQenterPipelineMode(s->conn)) {
        (void)PQsetNoticeReceiver(s->conn, heed, s);
        pg_prepared_begin(s);
        return true;
    }
    tell_refused(s, late, why);
    connection_drop(s);
    return false;
}

/* ---- one that can be relied on ---- */

/*
 * A primary that came back after a crash, or whose wait for the standby was cancelled, shows
 * commits that exist only there: should it die now, they are lost. A commit of our own proves them:
 * when it is acknowledged, so is all that was before it. One that is never acknowledged reveals an
 * outdated primary, whose standby was promoted.
 */
bool connection_prove(struct postgres_store *s, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(result_end) PGresult *r = NULL;
    struct query q;

    if (s->boot == 0) /* the first thing that is done is a commit */
        return true;
    query_of(&q, s, PG_PROVE, &a);
    param_text(&q, slice_of(s->node));
    param_number(&q, (int64_t)s->boot);
    s->warned = false;
    int64_t sent_at = clock_boot_ms();
    struct pg_end o = pg_round_trip(s, &q, 1, &r, e, "use the database");
    /* It may be another server's clock from now on. */
    if (o.err == ERR_OK && PQntuples(r) == 1 && !s->of)
        pg_time_heard(s, sent_at, result_number(r, 0, 0));
    if (o.err == ERR_OK && s->warned)
        o.err = error_set(e, ERR_IO, "cannot use the database: it warned at a commit");
    s->unproven = o.err != ERR_OK;
    if (s->unproven)
        connection_drop(s);
    return !s->unproven;
}

static void also(const struct postgres_store *s, struct buf *why, const char *text)
{
    if (why->len > 0)
        buf_str(why, "; ");
    name_host(s, why);
    buf_fmt(why, ": %s", text);
}

static bool connect_host(struct postgres_store *s, int64_t until, struct buf *why)
{
    struct error e = {0};
    int64_t of_the_call = s->until;

    if (!pg_abandoned_has_room(s)) {
        CLEANUP(buf_fini) struct buf text = {0};
        buf_fmt(&text,
                "it takes connections, and acknowledges nothing; if it waits for a synchronous "
                "standby, see what became of that%s",
                pg_pooler_hint(s));
        also(s, why, text.ptr);
        return false;
    }
    if (!connect_to(s, until, why))
        return false;
    s->until = until;
    bool good =
        pg_primary_check(s, &e) && (s->of || pg_durable_check(s, &e)) && connection_prove(s, &e);
    s->until = of_the_call;
    s->pooler_is_silent &= !good;
    if (!good)
        also(s, why, e.text);
    return good;
}

/* ---- all of them ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From the one that was reached last. */
static bool connect_round(struct postgres_store *s, int64_t most_ms, struct buf *why)
{
    for (size_t i = 0; i < s->host_count; i++) {
        int64_t now = clock_steady_ms();
        int64_t share = (s->until - now) / (int64_t)(s->host_count - i);
        if (connect_host(s, now + least(share, most_ms), why))
            return true;
        s->host_at = (s->host_at + 1) % s->host_count;
    }
    return false;
}

/* Clients may see the pooler's reason: it contains no names or addresses. */
static const char *in_short(const struct postgres_store *s, struct slice why)
{
    if (memmem(why.ptr, why.len, "max_client_conn", strlen("max_client_conn")))
        return ": its pooler takes no more connections (max_client_conn)";
    return s->pooler_is_silent ? ": " PG_NO_ROOM : "; why stands in this node's log";
}

/* The caller that opens the store gets the hosts that were tried. Later failures are reported to
 * clients without them; the log has them, once while they stay the same. */
static void tell_unreachable(struct postgres_store *s, struct slice why, struct error *e)
{
    CLEANUP(buf_fini) struct buf words = {0};
    struct error before = s->unreachable;

    error_set(&s->unreachable, ERR_IO, "%.*s", SLICE_ARG(why));
    if (s->boot == 0) {
        error_set(e, ERR_IO, "cannot connect to the database: %.*s", SLICE_ARG(why));
        return;
    }
    log_word(&words, slice_of(s->unreachable.text));
    if (strcmp(before.text, s->unreachable.text) != 0)
        log_line(LOG_WARN, "event=database_unreachable reason=%s%s", words.ptr,
                 s->of ? " for=reading" : "");
    error_set(e, ERR_IO, "cannot connect to the database%s", in_short(s, why));
}

static bool connect_any(struct postgres_store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf why = {0};
    size_t before = s->host_at;
    bool one = s->host_count == 1;
    int64_t began = clock_steady_ms();
    bool connected = connect_round(s, one ? INT64_MAX : FIRST_ROUND_MS, &why);

    /* A second round is for those that were slow and not for those that refused. */
    if (!connected && !one && clock_steady_ms() - began >= FIRST_ROUND_MS) {
        buf_clear(&why);
        connected = connect_round(s, INT64_MAX, &why);
    }
    if (!connected) {
        tell_unreachable(s, buf_view(&why), e);
        return false;
    }
    s->unreachable.text[0] = 0;
    atomic_store(&s->turned_to, (unsigned)s->host_at);
    pg_turn(s);
    if (s->host_at != before && !s->of)
        log_line(LOG_INFO, "event=database_host host=%s port=%s", PQhost(s->conn), PQport(s->conn));
    return true;
}

static void pause_after_failure(struct postgres_store *s)
{
    /* The first failure may be a connection that just had to be made again: try at once. */
    int64_t half = s->backoff_ms / 2;

    s->connect_at = clock_steady_ms() + half + (half ? prng_below(&s->random, (uint32_t)half) : 0);
    s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_FIRST_MS;
    s->backoff_ms = least(s->backoff_ms, BACKOFF_MAX_MS);
}

enum err connection_ready(struct postgres_store *s, struct error *e)
{
    int64_t now = clock_steady_ms();

    s->until = s->call_until ? s->call_until : now + s->wait_ms;
    pg_abandoned_tidy(s);
    if (s->of)
        pg_follow(s);
    if (s->conn && PQstatus(s->conn) == CONNECTION_OK)
        return !s->unproven || connection_prove(s, e) ? pg_session_settle(s, e) : ERR_IO;
    connection_drop(s);
    if (now < s->connect_at) { /* the next try follows soon; till then it is the same trouble */
        *e = s->refused;
        return ERR_IO;
    }
    if (!connect_any(s, e)) {
        s->refused = *e;
        pause_after_failure(s);
        return ERR_IO;
    }
    s->backoff_ms = 0;
    return pg_session_settle(s, e);
}

struct postgres_store *pg_call_begin(struct postgres_store *s)
{
    s->call_until = clock_steady_ms() + s->wait_ms;
    return s;
}

void pg_call_end(struct postgres_store **s)
{
    (*s)->call_until = 0;
}
