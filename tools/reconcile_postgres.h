#ifndef TOOLS_RECONCILE_POSTGRES_H
#define TOOLS_RECONCILE_POSTGRES_H

/* The server's side of intact-reconcile where that is a PostgreSQL database. */

#include <sqlite3.h>
#include <stdbool.h>

/* A connection string of libpq, and no path of a file. */
bool is_conninfo(const char *text);

/* Copies tasks and steps into the tables task(id, state, input) and step(task, name, state,
 * in_doubt) of `db`. False: it has said why not. */
bool read_postgres(sqlite3 *db, const char *conninfo, const char *schema);

#endif
