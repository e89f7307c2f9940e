/*
 * Checks whether the primary answers, by asking the server itself: a pooler reports the state that
 * it once learned, and keeps our connection while the server behind it changes. So each read
 * through a pooler includes the server's process id. A process not seen before the last proof may
 * be that of a server that crashed since and has commits that its standby lacks: then another proof
 * is needed. A pooler without a server stays silent, but refuses a new connection.
 */
#include "store/postgres/body.h"

#include "base/clock.h"

enum { PROBE_MS = 2000 };

enum column { IN_RECOVERY, READ_ONLY, PROCESS };

static const struct query ask = {.sql = "SELECT pg_is_in_recovery(), "
                                        "current_setting('transaction_read_only') = 'on', "
                                        "pg_backend_pid()::int8"};

const struct query *pg_primary_query(void)
{
    return &ask;
}

/* True: it takes writes. */
static bool judge(const PGresult *r, struct error *e)
{
    if (result_flag(r, 0, IN_RECOVERY))
        error_set(e, ERR_IO, "it is a standby");
    else if (result_flag(r, 0, READ_ONLY))
        error_set(e, ERR_IO,
                  "it takes no writes: default_transaction_read_only is on for the "
                  "server, the database or the role");
    else
        return true;
    return false;
}

static bool is_proven(const struct postgres_store *s, int64_t process)
{
    for (size_t i = 0; i < COUNT_OF(s->proven); i++)
        if (s->proven[i] == process)
            return true;
    return false;
}

static void add_proven(struct postgres_store *s, int64_t process)
{
    s->proven[s->proven_next++ % COUNT_OF(s->proven)] = process;
}

bool pg_primary_check(struct postgres_store *s, struct error *e)
{
    CLEANUP(result_end) PGresult *r = NULL;
    struct pg_end o = pg_round_trip(s, &ask, 1, &r, e, "ask whether it is the primary");

    s->is_pooled = false;
    memset(s->proven, 0, sizeof s->proven);
    if (o.err != ERR_OK || PQntuples(r) != 1)
        return s->conn != NULL; /* no answer: its answers to writes decide */
    int64_t process = result_number(r, 0, PROCESS);
    s->is_pooled = process != PQbackendPID(s->conn);
    s->was_pooled |= s->is_pooled;
    add_proven(s, process); /* the proof follows */
    if (judge(r, e))
        return true;
    connection_drop(s);
    return false;
}

bool pg_primary_answered(struct postgres_store *s, const PGresult *r, struct error *e,
                         const char *what)
{
    int64_t process = result_number(r, 0, PROCESS);

    if (!judge(r, e)) {
        error_wrap(e, "cannot %s: the server behind the pooler has changed", what);
        connection_drop(s);
        return false;
    }
    if (is_proven(s, process))
        return true;
    s->unproven = true;
    if (!connection_prove(s, e))
        return false;
    add_proven(s, process);
    return true;
}

bool pg_primary_is_reached(const struct postgres_store *s)
{
    CLEANUP(result_end) PGresult *r = NULL;
    struct error ignored;
    int64_t until = clock_steady_ms() + PROBE_MS;
    until = until < s->until ? until : s->until;
    PGconn *c = connection_beside(s, until);

    if (c && PQsendQueryParams(c, ask.sql, 0, NULL, NULL, NULL, NULL, 1) && pg_await(c, until))
        r = PQgetResult(c);
    bool reached = r && PQntuples(r) == 1 && judge(r, &ignored);
    PQfinish(c);
    return reached;
}
