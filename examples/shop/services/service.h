#ifndef SHOP_SERVICES_SERVICE_H
#define SHOP_SERVICES_SERVICE_H

/*
 * What the services in C have in common: a database of their own, which is an SQLite file, and
 * beside it a file MODE by which the console makes mischief.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens the database, and makes it if it is not there. Whoever uses it holds the lock. NULL: it
 * cannot be opened, and standard error says why. */
sqlite3 *service_open(const char *path, const char *schema);
void service_lock(void);
void service_unlock(void);

/* A parameter of a statement: ":order" and its value. A list of them ends with {NULL, NULL}. */
struct service_value {
    const char *name, *text;
};

/* Runs one statement. SQLITE_ROW: it had a row, and `ret` is the text of its first column (empty if
 * that is NULL); `ret` may be NULL. SQLITE_DONE: it had none. Else it has failed. */
int service_sql(sqlite3 *db, const char *sql, const struct service_value *values, char *ret,
                size_t size);

enum service_mode {
    SERVICE_OK,
    SERVICE_FAILING, /* the call is to fail */
    SERVICE_UNHEARD, /* nobody waits for the answer any more */
};

/* Called before each call is served: does what the file MODE says. "slow" takes two seconds,
 * "failing" fails, and "hanging" waits until MODE says something else, or is_heard says no. */
enum service_mode service_wait(bool (*is_heard)(void *arg), void *arg);

/* A line to standard error. */
__attribute__((format(printf, 1, 2))) void service_log(const char *format, ...);

#endif
