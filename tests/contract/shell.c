/* Implements shell.h: SQLite connections of the test's own beside the store's, as somebody with a
 * plain SQL shell has them, and opening and stopping the store below them. */

#include "shell.h"

#include "base/buf.h"

const char *path_of(struct world *w, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", w->dir, name);
    return arena_copy(&w->a, slice_of(path)).ptr;
}

void stop_store(struct world *w)
{
    w->s->ops->close(w->s);
    w->s = NULL;
}

void start_store(struct world *w)
{
    CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_OK, "%s", w->e.text);
}

sqlite3 *shell_open(const char *path)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    return db;
}

void shell_exec(const char *path, const char *sql)
{
    sqlite3 *db = shell_open(path);
    char *why = NULL;

    CHECK(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
    (void)sqlite3_close(db);
}

static int add_columns(void *arg, int count, char **values, char **names)
{
    struct buf *b = arg;

    (void)names;
    for (int i = 0; i < count; i++)
        buf_fmt(b, "%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    buf_byte(b, '\n');
    return 0;
}

void shell_says(const char *path, const char *sql, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    sqlite3 *db = shell_open(path);
    char *why = NULL;

    CHECK(sqlite3_exec(db, sql, add_columns, &b, &why) == SQLITE_OK, "%s: %s", sql, why);
    (void)sqlite3_close(db);
    CHECK(slice_is(buf_view(&b), want), "%s gives\n%s", sql, b.ptr ? b.ptr : "nothing");
}
