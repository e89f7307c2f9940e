/*
 * The warehouse: an agent made with libintact. It sets the goods of a line of an order aside
 * (reserve, release), packs them (pack, unpack), and books out those of the order when its parcels
 * have left (book_out).
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

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

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
    " id INTEGER PRIMARY KEY,"
    " order_id TEXT NOT NULL, line INTEGER NOT NULL, sku TEXT NOT NULL REFERENCES item,"
    " quantity INTEGER NOT NULL,"
    " state TEXT NOT NULL DEFAULT 'reserved'"
    " CHECK (state IN ('reserved', 'packed', 'released', 'sold')));"
    "CREATE UNIQUE INDEX IF NOT EXISTS reservation_line ON reservation(order_id, line)"
    " WHERE state <> 'released';"
    "INSERT OR IGNORE INTO item(sku, delivered, on_shelf) VALUES"
    " ('kettle', 25, 25), ('teapot', 25, 25), ('cup', 25, 25), ('lamp', 25, 25), ('chair', 3, 3),"
    " ('clock', 25, 25);";

struct refusal {
    const char *code, *sql; /* it has a row that says why, or none */
};

struct action {
    const char *name;
    enum intact_direction direction;
    struct refusal refusals[2];
    const char *sql[2]; /* what the last one returns is the output */
};

/* :order is the task, and :input what shop.yaml and parcel.yaml have as its input. Goods are booked
 * out that were not packed, too: an operator may have skipped their parcel. */
static struct action actions[] = {
    {"reserve",
     INTACT_FORWARD,
     {{"bad_line",
       "SELECT 'a line has its number, the sku of what we have, and a quantity of 1 to 1000000'"
       " WHERE json_type(:input, '$.line') IS NOT 'integer'"
       " OR json_type(:input, '$.quantity') IS NOT 'integer'"
       " OR :input ->> '$.quantity' NOT BETWEEN 1 AND 1000000"
       " OR NOT EXISTS (SELECT * FROM item WHERE sku = :input ->> '$.sku')"},
      {"out_of_stock",
       "SELECT format('Line %d, %s: %d ordered, %d left in stock.', :input ->> '$.line', sku,"
       " :input ->> '$.quantity', on_shelf)"
       " FROM item WHERE sku = :input ->> '$.sku' AND on_shelf < :input ->> '$.quantity'"}},
     {"UPDATE item SET on_shelf = on_shelf - (:input ->> '$.quantity'),"
      " reserved = reserved + (:input ->> '$.quantity') WHERE sku = :input ->> '$.sku'",
      "INSERT INTO reservation(order_id, line, sku, quantity)"
      " VALUES (:order, :input ->> '$.line', :input ->> '$.sku', :input ->> '$.quantity')"
      " RETURNING json_object('reservation', id)"}},
    {"release",
     INTACT_UNDO,
     {{0}},
     {"UPDATE item SET on_shelf = on_shelf + quantity, reserved = reserved - quantity"
      " FROM reservation AS r WHERE order_id = :order AND line = :input ->> '$.line'"
      " AND state = 'reserved' AND r.sku = item.sku",
      "UPDATE reservation SET state = 'released' WHERE order_id = :order"
      " AND line = :input ->> '$.line' AND state = 'reserved'"}},
    {"pack",
     INTACT_FORWARD,
     {{"not_reserved",
       "SELECT 'there is no such reservation' WHERE NOT EXISTS (SELECT * FROM reservation"
       " WHERE id = :input ->> '$.reservation' AND state = 'reserved')"}},
     {"UPDATE reservation SET state = 'packed' WHERE id = :input ->> '$.reservation'"}},
    {"unpack",
     INTACT_UNDO,
     {{0}},
     {"UPDATE reservation SET state = 'reserved' WHERE id = :input ->> '$.reservation'"
      " AND state = 'packed'"}},
    {"book_out",
     INTACT_FORWARD,
     {{0}},
     {"UPDATE item SET sold = sold + quantity, reserved = reserved - quantity"
      " FROM (SELECT sku, sum(quantity) AS quantity FROM reservation"
      "       WHERE order_id = :order AND state IN ('reserved', 'packed') GROUP BY sku) AS r"
      " WHERE r.sku = item.sku",
      "UPDATE reservation SET state = 'sold' WHERE order_id = :order"
      " AND state IN ('reserved', 'packed')"}},
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

/* The code of a refusal, and its reason in `why`; NULL: it is not refused. */
static const char *refuse(const struct action *a, const struct service_value *values, char *why,
                          size_t size)
{
    for (size_t i = 0; i < COUNT_OF(a->refusals) && a->refusals[i].code; i++)
        if (service_sql(db, a->refusals[i].sql, values, why, size) == SQLITE_ROW)
            return a->refusals[i].code;
    return NULL;
}

static void take_effect(const struct action *a, const struct service_value *values,
                        struct intact_barrier *b)
{
    char output[64] = "null";

    for (size_t i = 0; i < COUNT_OF(a->sql) && a->sql[i]; i++)
        if (!intact_barrier_sqlite_ok(b, db,
                                      service_sql(db, a->sql[i], values, output, sizeof output)))
            return;
    (void)intact_barrier_sqlite_done(b, db, output);
}

static void serve(const struct action *a, struct intact_request *r)
{
    const struct service_value values[] = {{":order", intact_request_task(r)},
                                           {":input", intact_request_input(r)},
                                           {NULL, NULL}};
    struct intact_barrier *b = intact_barrier_of(r);
    const char *refused = NULL;
    char why[200] = "";

    service_lock();
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL); /* if it fails, the barrier notices */
    if (intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO) {
        refused = refuse(a, values, why, sizeof why);
        if (!refused)
            take_effect(a, values, b);
    }
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
    for (size_t i = 0; i < COUNT_OF(actions); i++)
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
