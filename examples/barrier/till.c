/* An agent that charges and refunds in SQLite, each once, by the barrier in its own transaction.
 * docs/barrier.md runs it. */

#include <intact/barrier.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>

/* Charges or refunds, by its direction. */
static void pay(struct intact_request *r, void *arg)
{
    sqlite3 *db = (sqlite3 *)arg;
    bool undo = intact_request_direction(r) == INTACT_UNDO;
    struct intact_barrier *b = intact_barrier_of(r);

    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO) {
        int rc = sqlite3_exec(db,
                              undo ? "INSERT INTO entry VALUES (-100)"
                                   : "INSERT INTO entry VALUES (100)",
                              NULL, NULL, NULL);
        if (intact_barrier_sqlite_ok(b, db, rc))
            intact_barrier_sqlite_done(b, db, undo ? "null" : "{\"receipt\": 17}");
    }
    intact_barrier_sqlite_end(b, db); /* commits, or rolls back and knows why */
    intact_barrier_answer(b);
    intact_barrier_free(b);
}

static void on_term(int signal)
{
    (void)signal;
    intact_agent_stop();
}

int main(void)
{
    struct intact_agent *a = intact_agent_new("payment");
    char why[200];
    sqlite3 *db = NULL;

    if (sqlite3_open("till.db", &db) != SQLITE_OK
        || !intact_barrier_sqlite_setup(db, why, sizeof why))
        return 1;
    sqlite3_busy_timeout(db, 5000);
    sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS entry(amount INTEGER)", NULL, NULL, NULL);
    signal(SIGTERM, on_term);
    intact_agent_on(a, "charge", INTACT_FORWARD, pay, db);
    intact_agent_on(a, "refund", INTACT_UNDO, pay, db);
    int result = (int)intact_agent_run(a);
    intact_agent_free(a);
    sqlite3_close(db);
    return result;
}
