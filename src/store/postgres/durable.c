/*
 * Checks whether the database keeps what it acknowledges, with every new connection. The log
 * reports a finding once for as long as it lasts. What the role may not see, or the server does not
 * know, is not reported.
 */
#include "store/postgres/body.h"

#include "base/log.h"

enum column {
    SYNC_COMMIT,
    FSYNC,
    FULL_PAGES,
    STANDBY_NAMES,
    STANDBYS, /* connections for replication that may be of a standby */
    UNLOGGED, /* tables of ours */
};

enum finding {
    NO_FSYNC = 1,
    NO_FULL_PAGES = 2,
    NOT_SYNCHRONOUS = 4,
    REMOTE_WRITE = 8,
    ASYNC_STANDBY = 16,
    UNLOGGED_TABLES = 32,
};

/* Unprivileged roles see that there is a replica, but not which one: it counts nevertheless. */
static const char look[] =
    "SELECT current_setting('synchronous_commit'), current_setting('fsync'), "
    "current_setting('full_page_writes'), current_setting('synchronous_standby_names'), "
    "(SELECT count(*) FROM pg_stat_replication WHERE state IS NULL OR state = 'streaming'), "
    "(SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class AS c "
    "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' "
    "AND c.relpersistence = 'u')";

static bool is(const PGresult *r, enum column column, const char *text)
{
    return slice_is(result_text(r, 0, (int)column), text);
}

static unsigned findings_of(const PGresult *r)
{
    bool has_names = result_text(r, 0, STANDBY_NAMES).len > 0;
    unsigned found = 0;

    if (is(r, FSYNC, "off"))
        found |= NO_FSYNC;
    if (is(r, FULL_PAGES, "off"))
        found |= NO_FULL_PAGES;
    if (is(r, SYNC_COMMIT, "off") || (is(r, SYNC_COMMIT, "local") && has_names))
        found |= NOT_SYNCHRONOUS;
    if (is(r, SYNC_COMMIT, "remote_write") && has_names)
        found |= REMOTE_WRITE;
    if (!has_names && result_number(r, 0, STANDBYS) > 0)
        found |= ASYNC_STANDBY;
    if (result_text(r, 0, UNLOGGED).len > 0)
        found |= UNLOGGED_TABLES;
    return found;
}

static void tell(const PGresult *r, unsigned news)
{
    /* clang-format off */
    static const struct {
        enum finding finding;
        enum column column;
        const char *setting;
        const char *text;
    } table[] = {
        {NO_FSYNC, FSYNC, "fsync", "a crash of its machine loses or breaks everything; set it on"},
        {NO_FULL_PAGES, FULL_PAGES, "full_page_writes",
            "a crash of its machine may break pages; set it on"},
        {NOT_SYNCHRONOUS, SYNC_COMMIT, "synchronous_commit",
            "of this role or database; intact asks for on in its own transactions, others are lost "
            "in a crash; set it on"},
        {REMOTE_WRITE, SYNC_COMMIT, "synchronous_commit",
            "what is acknowledged is lost if the primary and the standby's machine fail at once; "
            "set it on"},
        {ASYNC_STANDBY, STANDBYS, "replication_connections",
            "no standby is synchronous: a failover loses what was acknowledged last; set "
            "synchronous_standby_names"},
        {UNLOGGED_TABLES, UNLOGGED, "unlogged_tables",
            "a crash of the database empties them; ALTER TABLE ... SET LOGGED"},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        char number[24];
        if (!(news & (unsigned)table[i].finding))
            continue;
        (void)snprintf(number, sizeof number, "%" PRId64, result_number(r, 0, STANDBYS));
        struct slice value = table[i].column == STANDBYS ? slice_of(number)
                                                         : result_text(r, 0, (int)table[i].column);
        log_line(LOG_WARN, "event=database_not_durable setting=%s value=\"%.*s\" text=\"%s\"",
                 table[i].setting, SLICE_ARG(value), table[i].text);
    }
}

bool pg_durable_check(struct postgres_store *s, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(result_end) PGresult *r = NULL;
    struct query q = {.sql = look, .arena = &a};

    param_text(&q, slice_of(s->schema));
    struct pg_end o = pg_round_trip(s, &q, 1, &r, e, "look at its settings");
    if (o.err == ERR_OK && PQntuples(r) == 1) {
        unsigned found = findings_of(r);
        pg_settings_durable(s, result_text(r, 0, SYNC_COMMIT));
        tell(r, found & ~s->told);
        s->told = found;
        atomic_store(&s->base.at_risk, found != 0);
    }
    return s->conn != NULL; /* a server that knows no such settings is none the worse */
}
