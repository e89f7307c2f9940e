#ifndef STORE_POSTGRES_POSTGRES_H
#define STORE_POSTGRES_POSTGRES_H

/*
 * The state store in a PostgreSQL database, shared by any number of nodes: the tables of
 * schema/postgres/NNNN.sql in a schema of their own, which migrates forward at start; nodes that
 * start at the same time wait for each other there.
 *
 * One connection, made again when it is lost. A batch is one transaction and one round trip: all of
 * its statements are sent at once (pipeline mode), each for all changes of its kind (unnest).
 * Through a pooler no statement is prepared by name and nothing is set for a session, so it works
 * where connections are handed out by the transaction.
 *
 * With several hosts, the first that accepts writes is used, beginning with the one used last; a
 * standby never is.
 *
 * Texts have to be UTF-8 without NULs; a change with others ends ERR_INVALID.
 */

#include "store/store.h"

struct postgres_options {
    const char *conninfo; /* "postgres://..." or "host=... dbname=...": as libpq takes it */
    const char *schema;   /* [a-z_][a-z0-9_]*; NULL: "intact" */
    const char *node;     /* whose start it counts; no slash in it */
    int64_t wait_ms;      /* that a call waits for the database at most, in sum; 0: 10 s */
};

/* ERR_INVALID for what cannot be understood. No message quotes a password. */
enum err postgres_store_open(const struct postgres_options *o, struct store **ret,
                             struct error *e) MUST_USE;

/* Makes or migrates the schema and nothing else, so with a role that nodes need not have. `node` is
 * not used. */
enum err postgres_store_migrate(const struct postgres_options *o, struct error *e) MUST_USE;

/* Whether it has a password in it, which then is to be seen by whoever sees the text. */
bool postgres_conninfo_has_password(const char *conninfo);

#endif
