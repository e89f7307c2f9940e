#ifndef SHOP_LIB_DB_H
#define SHOP_LIB_DB_H

/*
 * The shop's database: PostgreSQL, or the file intact.db of a server with SQLite. The same SQL goes
 * to both: parameters are $1, $2, ... and always texts (NULL is SQL's NULL), and what comes back
 * are rows of texts. With PostgreSQL the schema of Intact is on the search path, so that
 * `INSERT INTO submit` means the same in both.
 *
 *     struct db *db = db_open(getenv("SHOP_DB"));
 *     struct db_rows *rows = NULL;
 *     const char *sql = "SELECT name, price FROM shop_product WHERE sku = $1";
 *     if (db_query(db, &rows, sql, DB_ARGS(sku)) != DB_OK)
 *         fprintf(stderr, "%s\n", db_error(db));
 *     for (int i = 0; i < db_count(rows); i++)
 *         printf("%s %s\n", db_text(rows, i, 0), db_text(rows, i, 1));
 *     db_free(rows);
 *     db_close(db);
 *
 * It connects when it is used, and again after it was away. What was open then is lost: begin anew.
 * One thread at a time uses a struct db.
 */

#include <stdbool.h>

enum db_result {
    DB_OK,
    DB_AWAY, /* cannot be reached, is busy, gave way to somebody else, lacks a table: try again */
    DB_REFUSED, /* does not take what it was given, however often it is asked: a value, a constraint
                 */
};

struct db;
struct db_rows;

/* `url` is postgresql://... or the path of an SQLite file, which has to be there when it is used.
 */
struct db *db_open(const char *url);
void db_close(struct db *db);

/* Why the last call did not do it. */
const char *db_error(const struct db *db);

/* One statement; `ret` may be NULL if no rows come back. Without parameters: 0, NULL. Outside of a
 * transaction a statement whose answer was lost is sent again, so it has to bear that. */
enum db_result db_query(struct db *db, struct db_rows **ret, const char *sql, int count,
                        const char *const *args);
/* clang-format off */
#define DB_ARGS(...) \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__}
/* clang-format on */

/* Several statements without parameters or rows, such as a schema. */
enum db_result db_script(struct db *db, const char *sql);

/* A transaction that writes. Rolling back what is not open does nothing. After a commit that says
 * DB_AWAY nobody knows whether it was done: do it all again, with SQL that can bear it. */
enum db_result db_begin(struct db *db);
enum db_result db_commit(struct db *db);
void db_rollback(struct db *db);

/* No rows (NULL) count 0. A text lives until db_free(); NULL is SQL's NULL. */
int db_count(const struct db_rows *rows);
const char *db_text(const struct db_rows *rows, int row, int column);
void db_free(struct db_rows *rows);

#endif
