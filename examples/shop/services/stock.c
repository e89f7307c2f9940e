/*
 * The warehouse: an agent made with libintact. It sets goods aside for an order (reserve), puts
 * them back on the shelf (release), and books them out when the parcel has left (book_out).
 *
 *     shop-stock stock/stock.db                     runs the agent
 *     shop-stock stock/stock.db --restock chair=25  so many are on the shelf from now on
 *
 * Each request is one transaction: the effect, and the barrier's record of it. So it takes effect
 * once, however often it comes and whenever this process is killed, and never after its undo.
 */

#include "service.h"

#include <ctype.h>
#include <intact/barrier.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 8, SHELF_MAX = 1000000 };

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS item("
    " sku TEXT PRIMARY KEY,"
    " delivered INTEGER NOT NULL," /* to us, since ever: all are somewhere */
    " on_shelf INTEGER NOT NULL CHECK (on_shelf >= 0),"
    " reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),"
    " sold INTEGER NOT NULL DEFAULT 0 CHECK (sold >= 0),"
    " CHECK (on_shelf + reserved + sold = delivered));"
    "CREATE TABLE IF NOT EXISTS reservation("
    " order_id TEXT NOT NULL, sku TEXT NOT NULL REFERENCES item, quantity INTEGER NOT NULL,"
    " state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'released', 'sold')),"
    " PRIMARY KEY (order_id, sku));"
    "INSERT OR IGNORE INTO item(sku, delivered, on_shelf) VALUES"
    " ('kettle', 25, 25), ('teapot', 25, 25), ('cup', 25, 25), ('lamp', 25, 25), ('chair', 3, 3),"
    " ('clock', 25, 25);";

/* :input is {"items": [{"sku", "quantity"}]}, and SQLite reads it. */
#define WANTED                                                                    \
    "WITH wanted AS (SELECT :input ->> (fullkey || '.sku') AS sku,"               \
    "                       sum(:input ->> (fullkey || '.quantity')) AS quantity" \
    "                FROM json_each(:input, '$.items') GROUP BY 1) "

static const char find_mistake[] =
    "SELECT 'an order is for one or more of what we have' WHERE json_array_length(:input, "
    "'$.items')"
    " = 0 OR EXISTS (SELECT * FROM json_each(:input, '$.items')"
    "                LEFT JOIN item ON sku = :input ->> (fullkey || '.sku')"
    "                WHERE sku IS NULL"
    "                OR json_type(:input, fullkey || '.quantity') IS NOT 'integer'"
    "                OR :input ->> (fullkey || '.quantity') NOT BETWEEN 1 AND 1000000)";

static const char find_shortage[] =
    WANTED "SELECT CASE on_shelf WHEN 0 THEN format('Sorry, the %s is sold out.', sku)"
           " ELSE format('Sorry, not enough in stock: %s (%d left).', sku, on_shelf) END"
           " FROM wanted JOIN item USING (sku) WHERE quantity > on_shelf ORDER BY sku";

struct action {
    const char *name;
    enum intact_direction direction;
    const char *sql[2];
};

static struct action actions[] = {
    {"reserve",
     INTACT_FORWARD,
     {WANTED "INSERT INTO reservation(order_id, sku, quantity) SELECT :order, sku, quantity"
             " FROM wanted",
      "UPDATE item SET on_shelf = on_shelf - quantity, reserved = reserved + quantity"
      " FROM reservation AS r WHERE r.order_id = :order AND r.sku = item.sku"}},
    {"release",
     INTACT_UNDO,
     {"UPDATE item SET on_shelf = on_shelf + quantity, reserved = reserved - quantity"
      " FROM reservation AS r WHERE order_id = :order AND state = 'reserved' AND r.sku = item.sku",
      "UPDATE reservation SET state = 'released' WHERE order_id = :order AND state = 'reserved'"}},
    {"book_out",
     INTACT_FORWARD,
     {"UPDATE item SET sold = sold + quantity, reserved = reserved - quantity"
      " FROM reservation AS r WHERE order_id = :order AND state = 'reserved' AND r.sku = item.sku",
      "UPDATE reservation SET state = 'sold' WHERE order_id = :order AND state = 'reserved'"}},
};

/* What an enum intact_verdict means, for the log. */
static const char *const verdicts[] = {"done",
                                       "done before, answered again",
                                       "refused, it was undone",
                                       "nothing to undo",
                                       "too late",
                                       "to be tried again",
                                       "failed"};

static sqlite3 *db;

/* In the transaction. False: it is refused, or has failed, as the barrier knows. */
static bool take_effect(const struct action *a, struct intact_request *r, struct intact_barrier *b,
                        const char **ret_code, char *ret_why, size_t why_size)
{
    const struct service_value values[] = {{":order", intact_request_task(r)},
                                           {":input", intact_request_input(r)},
                                           {NULL, NULL}};
    bool takes = strcmp(a->name, "reserve") == 0;

    if (takes && service_sql(db, find_mistake, values, ret_why, why_size) == SQLITE_ROW) {
        *ret_code = "bad_order";
        return false;
    }
    if (takes && service_sql(db, find_shortage, values, ret_why, why_size) == SQLITE_ROW) {
        *ret_code = "out_of_stock";
        return false;
    }
    for (size_t i = 0; i < sizeof a->sql / sizeof a->sql[0]; i++)
        if (!intact_barrier_sqlite_ok(b, db, service_sql(db, a->sql[i], values, NULL, 0)))
            return false;
    return true;
}

static void serve(const struct action *a, struct intact_request *r)
{
    struct intact_barrier *b = intact_barrier_of(r);
    const char *refused = NULL;
    char why[200] = "";

    service_lock();
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL); /* if it fails, the barrier notices */
    if (intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO
        && take_effect(a, r, b, &refused, why, sizeof why))
        (void)intact_barrier_sqlite_done(b, db, NULL);
    if (refused) { /* then nothing stays on record: after a restock the same request may do */
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        intact_answer_error(r, refused, why, INTACT_PERMANENT);
    } else {
        (void)intact_barrier_sqlite_end(b, db);
        intact_barrier_answer(b);
    }
    service_log("stock: %s %s: %s", intact_request_task(r), a->name,
                refused ? why : verdicts[intact_barrier_verdict(b)]);
    service_unlock();
    intact_barrier_free(b);
}

static bool is_heard(void *arg)
{
    return !intact_request_should_stop((struct intact_request *)arg);
}

static void handle(struct intact_request *r, void *arg)
{
    const struct action *a = (const struct action *)arg;

    switch (service_wait(is_heard, r)) {
    case SERVICE_OK:
        serve(a, r);
        return;
    case SERVICE_FAILING:
        service_log("stock: %s %s: failing", intact_request_task(r), a->name);
        intact_answer_error(r, "failing", "the warehouse cannot do anything at the moment",
                            INTACT_RETRYABLE | INTACT_EFFECT_NONE);
        return;
    case SERVICE_UNHEARD:
    default:
        service_log("stock: %s %s: hanging, no answer", intact_request_task(r), a->name);
        intact_answer_nothing(r);
    }
}

/* "chair=25" */
static int restock(const char *what)
{
    const char *equals = strchr(what, '=');
    char sku[40] = "", known[40] = "", *end = NULL;
    long number = equals ? strtol(equals + 1, &end, 10) : -1;

    if (number < 0 || number > SHELF_MAX || !isdigit((unsigned char)equals[1]) || *end) {
        service_log("stock: --restock takes SKU=NUMBER, such as chair=25");
        return 2;
    }
    (void)snprintf(sku, sizeof sku, "%.*s", (int)(equals - what), what);
    int rc = service_sql(db,
                         "UPDATE item SET delivered = delivered + :number - on_shelf,"
                         " on_shelf = :number WHERE sku = :sku RETURNING sku",
                         (const struct service_value[]){{":sku", sku},
                                                        {":number", equals + 1},
                                                        {NULL, NULL}},
                         known, sizeof known);
    if (rc == SQLITE_ROW)
        return 0;
    service_log("stock: %s: %s", sku,
                rc == SQLITE_DONE ? "there is no such item" : sqlite3_errmsg(db));
    return 1;
}

static void on_term(int signal)
{
    (void)signal;
    intact_agent_stop();
}

static int run(void)
{
    struct intact_agent *a = intact_agent_new("stock");

    intact_agent_set_instance(a, "stock-1"); /* the same after a restart: it gets its work again */
    intact_agent_set_concurrency(a, PLACES);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        intact_agent_on(a, actions[i].name, actions[i].direction, handle, &actions[i]);
    signal(SIGTERM, on_term);
    signal(SIGINT, on_term);
    int result = (int)intact_agent_run(a);
    intact_agent_free(a);
    return result;
}

int main(int argc, char **argv)
{
    bool restocks = argc == 4 && strcmp(argv[2], "--restock") == 0;
    char why[200] = "";

    if (argc != 2 && !restocks) {
        (void)fprintf(stderr, "usage: shop-stock DATABASE [--restock SKU=NUMBER]\n");
        return 2;
    }
    db = service_open(argv[1], schema);
    if (!db)
        return 1;
    if (!intact_barrier_sqlite_setup(db, why, sizeof why)) {
        service_log("stock: %s", why);
        return 1;
    }
    int result = restocks ? restock(argv[3]) : run();
    sqlite3_close(db);
    return result;
}
