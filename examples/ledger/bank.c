/* An agent that charges and refunds in SQLite, each once: a ledger records the request in the
 * transaction of its effect. docs/library.md runs it. */

#include <intact/ledger.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>

/* One row, or none if the request may not take effect. */
static void write_entry(struct intact_request *r, struct intact_ledger *ledger, const char *sql)
{
    sqlite3 *db = intact_ledger_db(ledger);
    sqlite3_stmt *st = NULL;

    if (!intact_ledger_begin(ledger, r))
        return; /* a repeat, or an undo of nothing: it has been answered */
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(st, 1, intact_request_task(r), -1, SQLITE_STATIC);
        rc = sqlite3_step(st);
    }
    sqlite3_finalize(st);
    if (rc != SQLITE_DONE) {
        intact_ledger_rollback(ledger);
        intact_answer_error(r, "bank", sqlite3_errstr(rc), INTACT_RETRYABLE | INTACT_EFFECT_NONE);
    } else if (intact_ledger_commit(ledger, r, "\"booked\"")) {
        intact_answer(r, "\"booked\"");
    }
}

static void charge(struct intact_request *r, void *ledger)
{
    write_entry(r, (struct intact_ledger *)ledger, "INSERT INTO entry VALUES (?1, 100)");
}

static void refund(struct intact_request *r, void *ledger)
{
    write_entry(r, (struct intact_ledger *)ledger, "INSERT INTO entry VALUES (?1, -100)");
}

static void on_term(int signal)
{
    (void)signal;
    intact_agent_stop();
}

int main(void)
{
    char why[300];
    struct intact_ledger *ledger = intact_ledger_open("bank.db", why, sizeof why);
    struct intact_agent *a = intact_agent_new("payment");

    if (!ledger) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    sqlite3_exec(intact_ledger_db(ledger),
                 "CREATE TABLE IF NOT EXISTS entry(task TEXT, amount INTEGER)", NULL, NULL, NULL);
    signal(SIGTERM, on_term);
    intact_agent_set_instance(a, "payment-1");
    intact_agent_on(a, "charge", INTACT_FORWARD, charge, ledger);
    intact_agent_on(a, "refund", INTACT_UNDO, refund, ledger);
    int result = (int)intact_agent_run(a);
    intact_agent_free(a);
    intact_ledger_close(ledger);
    return result;
}
