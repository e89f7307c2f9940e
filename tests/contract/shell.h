#ifndef TESTS_SHELL_H
#define TESTS_SHELL_H

/* The file of a SQLite store, used with a plain SQL shell. */

#include <sqlite3.h>

#include "store_world.h"

const char *path_of(struct world *w, const char *name); /* of a file in its folder */
void stop_store(struct world *w);
void start_store(struct world *w);

sqlite3 *shell_open(const char *path);
void shell_exec(const char *path, const char *sql);
/* Fails the test unless `sql` returns the rows `want`, one per line, columns separated by '|'. */
void shell_says(const char *path, const char *sql, const char *want);

#endif
