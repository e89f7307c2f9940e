/* Tests of intact-reconcile (reconcile.c): runs the program on a small world that is in order, on
 * the same world tampered with, and on what it cannot read. */

#include "base/test.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program, *server_schema;
static char folder[40];

enum { SERVER, STOCK, PAYMENT, SHIPPING, FILES };
static const char *const names[FILES] = {"intact.db", "stock.db", "payment.db", "shipping.db"};

#define TASK(id, state, amount, steps)                                                        \
    "INSERT INTO task(id, workflow, version, revision, state, direction, priority, rank,"     \
    " failure_count, doc) VALUES ('" id "', 'order', 1, 9, '" state "', 'forward', 5, 0, 0, " \
    "'{\"input\":{\"sku\":\"widget\",\"quantity\":2,\"amount\":" amount "},\"steps\":[" steps \
    "]}');"
#define STEP(name, state) "{\"name\":\"" name "\",\"state\":\"" state "\"}"
#define STEPS(a, b, c)    STEP("reserve", a) "," STEP("charge", b) "," STEP("ship", c)

static const char effect_table[] =
    "CREATE TABLE effect(idempotency_key TEXT PRIMARY KEY, task, step, action, direction, outcome,"
    " output, at);";

#define EFFECT(key, task, step, action, direction, outcome)                                   \
    "INSERT INTO effect VALUES ('" key "', '" task "', '" step "', '" action "', '" direction \
    "', '" outcome "', NULL, 0);"
#define FORWARD(task, step, action) EFFECT(task "/" step, task, step, action, "forward", "done")
#define UNDO(task, step, action)    EFFECT(task "/" step "/undo", task, step, action, "undo", "done")
#define BARRED(task, step)                                     \
    EFFECT(task "/" step, task, step, "", "forward", "barred") \
    EFFECT(task "/" step "/undo", task, step, "x", "undo", "nothing")

/* p1 is processed, p2 too but its charge was skipped; c1 was undone after all three steps, c2
 * before anything happened, c3 with its charge refused; e1 stopped in error after its reservation.
 */
static const char *const contents[FILES] = {
    [SERVER] = TASK("p1", "processed", "50", STEPS("completed", "completed", "completed"))
        TASK("p2", "processed", "0", STEPS("completed", "skipped", "completed"))
            TASK("c1", "compensated", "70", STEPS("undone", "undone", "undone"))
                TASK("c2", "compensated", "80", STEPS("undone", "waiting", "waiting"))
                    TASK("c3", "compensated", "90", STEPS("undone", "failed", "waiting"))
                        TASK("e1", "error", "10", STEPS("completed", "failed", "waiting")),
    [STOCK] =
        "CREATE TABLE stock(sku, initial, on_hand);"
        "INSERT INTO stock VALUES ('widget', 100, 94), ('gadget', 5, 5);"
        "CREATE TABLE reservation(idempotency_key, task, sku, quantity, released);"
        "INSERT INTO reservation VALUES ('p1/reserve', 'p1', 'widget', 2, 0),"
        " ('p2/reserve', 'p2', 'widget', 2, 0), ('c1/reserve', 'c1', 'widget', 2, 1),"
        " ('c3/reserve', 'c3', 'widget', 2, 1), ('e1/reserve', 'e1', 'widget', 2, 0);" FORWARD(
            "p1", "reserve", "reserve") FORWARD("p2", "reserve", "reserve")
            FORWARD("c1", "reserve", "reserve") UNDO("c1", "reserve", "release")
                FORWARD("c3", "reserve", "reserve") UNDO("c3", "reserve", "release")
                    FORWARD("e1", "reserve", "reserve") BARRED("c2", "reserve"),
    [PAYMENT] =
        "CREATE TABLE entry(idempotency_key, task, card, amount);"
        "INSERT INTO entry VALUES ('p1/charge', 'p1', 'x', 50), ('c1/charge', 'c1', 'x', 70),"
        " ('c1/charge/undo', 'c1', 'x', -70);" FORWARD("p1", "charge", "charge")
            FORWARD("c1", "charge", "charge") UNDO("c1", "charge", "refund"),
    [SHIPPING] =
        "CREATE TABLE parcel(idempotency_key, task, address, cancelled);"
        "INSERT INTO parcel VALUES ('p1/ship', 'p1', 'x', 0), ('p2/ship', 'p2', 'x', 0),"
        " ('c1/ship', 'c1', 'x', 1);" FORWARD("p1", "ship", "ship") FORWARD("p2", "ship", "ship")
            FORWARD("c1", "ship", "ship") UNDO("c1", "ship", "cancel"),
};

static const struct {
    int file;
    const char *sql;
    const char *says;
} cases[] = {
    {SERVER, "UPDATE task SET state = 'processing' WHERE id = 'p1'", "task p1 is still processing"},
    {SERVER, "UPDATE task SET state = 'compensated' WHERE id = 'p1'",
     "task p1 step ship: compensated, but not undone"},
    {SERVER, "UPDATE task SET state = 'processed' WHERE id = 'c1'",
     "task c1 step charge: processed, but undone"},
    {SERVER, "DELETE FROM task WHERE id = 'p1'",
     "task p1 step charge: an effect (p1/charge) without a step"},
    {SERVER, "UPDATE task SET doc = replace(doc, 'skipped', 'completed') WHERE id = 'p2'",
     "task p2 step charge: completed, but there is no effect"},
    {SERVER, "UPDATE task SET doc = replace(doc, 'completed', 'skipped') WHERE id = 'p1'",
     "task p1 step ship: skipped, but took effect"},
    {STOCK,
     "INSERT INTO effect SELECT 'again', task, step, action, direction, outcome, output, at"
     " FROM effect WHERE idempotency_key = 'p1/reserve'",
     "task p1 step reserve: forward happened 2 times"},
    {STOCK,
     "INSERT INTO effect SELECT 'again', task, step, action, direction, outcome, output, at"
     " FROM effect WHERE idempotency_key = 'c1/reserve/undo'",
     "task c1 step reserve: undo happened 2 times"},
    {STOCK, "DELETE FROM effect WHERE idempotency_key = 'p1/reserve'",
     "task p1 step reserve: completed, but there is no effect"},
    {STOCK, "DELETE FROM effect WHERE idempotency_key = 'c1/reserve/undo'",
     "task c1 step reserve: compensated, but not undone"},
    {STOCK, "DELETE FROM effect WHERE idempotency_key = 'c1/reserve'",
     "task c1 step reserve: undone, but it had not happened"},
    {STOCK, "UPDATE effect SET outcome = 'done' WHERE idempotency_key = 'c2/reserve'",
     "task c2 step reserve: a tombstone that bars nothing"},
    {STOCK, "UPDATE stock SET on_hand = 95 WHERE sku = 'widget'",
     "sku widget: 95 on hand and 6 reserved of 100"},
    {STOCK, "DELETE FROM reservation WHERE task = 'e1'",
     "task e1: reserve is on record, the reservation is not"},
    {STOCK, "DELETE FROM effect WHERE idempotency_key = 'e1/reserve'",
     "task e1: a reservation of 2 without a record"},
    {STOCK, "UPDATE reservation SET quantity = 3 WHERE task = 'p1'",
     "task p1: reserved 3 where 2 were ordered"},
    {STOCK, "UPDATE reservation SET released = 0 WHERE task = 'c1'",
     "task c1: released is 0, its undo says otherwise"},
    {STOCK, "UPDATE reservation SET released = 1 WHERE task = 'p1'",
     "task p1: released is 1, its undo says otherwise"},
    {PAYMENT, "DELETE FROM entry WHERE idempotency_key = 'c1/charge/undo'",
     "task c1 refund: on record, but no money moved"},
    {PAYMENT, "DELETE FROM effect WHERE idempotency_key = 'p1/charge'",
     "task p1: 50 moved without a record"},
    {PAYMENT, "UPDATE entry SET amount = 51 WHERE task = 'p1'",
     "task p1 is processed and should have cost 50, not 51"},
    {PAYMENT, "UPDATE entry SET amount = -60 WHERE amount = -70",
     "task c1 is compensated and should have cost 0, not 10"},
    {SHIPPING, "DELETE FROM parcel WHERE task = 'p2'",
     "task p2: ship is on record, the parcel is not"},
    {SHIPPING, "INSERT INTO parcel VALUES ('e1/ship', 'e1', 'x', 0)",
     "task e1: a parcel without a record"},
    {SHIPPING, "UPDATE parcel SET cancelled = 1 WHERE task = 'p1'",
     "task p1 is processed: its parcel is cancelled"},
    {SHIPPING, "UPDATE parcel SET cancelled = 0 WHERE task = 'c1'",
     "task c1 is compensated: its parcel is on its way"},
    {SHIPPING,
     "INSERT INTO parcel SELECT idempotency_key, 'c1', address, cancelled FROM parcel"
     " WHERE task = 'p1'",
     "task c1 is compensated: its parcel is on its way"},
};

static void execute(int file, const char *sql)
{
    char path[80];
    char *why = NULL;
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/%s", folder, names[file]);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
    sqlite3_close(db);
}

static void remove_world(void)
{
    for (int i = 0; i < FILES; i++) {
        char path[80];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
}

static void make_world(void)
{
    static char schema[40000];
    FILE *f = fopen(server_schema, "r");

    CHECK(f, "%s", server_schema);
    size_t len = fread(schema, 1, sizeof(schema) - 1, f);
    fclose(f);
    schema[len] = 0;
    remove_world();
    for (int i = 0; i < FILES; i++) {
        execute(i, i == SERVER ? schema : effect_table);
        execute(i, contents[i]);
    }
}

/* Its exit status; what it printed. */
static int reconcile(const char *flag, char ret_text[4000])
{
    char command[700];

    snprintf(command, sizeof(command), "'%s' %s %s/%s %s/%s %s/%s %s/%s 2>&1", program, flag,
             folder, names[0], folder, names[1], folder, names[2], folder, names[3]);
    FILE *f = popen(command, "r");
    CHECK(f, "%s", command);
    size_t len = fread(ret_text, 1, 3999, f);
    ret_text[len] = 0;
    return WEXITSTATUS(pclose(f));
}

static void a_world_in_order_is_green(void **state)
{
    char text[4000];

    (void)state;
    make_world();
    int status = reconcile("", text);
    CHECK(status == 0, "%s", text);
    CHECK(strstr(text, "discrepancies: 0"), "%s", text);
    CHECK(strstr(text, "processed              2         5         0         0"), "%s", text);
    CHECK(strstr(text, "compensated            3         4         4         1"), "%s", text);
    remove_world();
}

static void every_tampering_is_found_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[4000];
        make_world();
        execute(cases[i].file, cases[i].sql);
        int status = reconcile("", text);
        CHECK(status == 1, "%s:\n%s", cases[i].sql, text);
        CHECK(strstr(text, cases[i].says), "%s:\n%s", cases[i].sql, text);
    }
    remove_world();
}

static void open_tasks_may_be_allowed(void **state)
{
    char text[4000];

    (void)state;
    make_world();
    execute(SERVER, "UPDATE task SET state = 'pending' WHERE id = 'e1'");
    CHECK(reconcile("", text) == 1, "%s", text);
    CHECK(reconcile("--allow-open", text) == 0, "%s", text);
    remove_world();
}

static void what_cannot_be_read_is_not_called_right(void **state)
{
    char text[4000];

    (void)state;
    make_world();
    execute(PAYMENT, "DROP TABLE effect");
    CHECK(reconcile("", text) == 2 && strstr(text, "is no ledger"), "%s", text);
    remove_world();
    CHECK(reconcile("", text) == 2 && strstr(text, "unable to open"), "%s", text);
    CHECK(reconcile("--nonsense", text) == 2, "%s", text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_world_in_order_is_green),
        cmocka_unit_test(every_tampering_is_found_and_named),
        cmocka_unit_test(open_tasks_may_be_allowed),
        cmocka_unit_test(what_cannot_be_read_is_not_called_right),
    };

    if (argc != 3)
        return 2;
    program = argv[1];
    server_schema = argv[2];
    snprintf(folder, sizeof(folder), "/tmp/intact-reconcile-%ld", (long)getpid());
    if (mkdir(folder, 0700) != 0)
        return 2;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failures;
}
