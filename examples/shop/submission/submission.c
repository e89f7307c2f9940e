/*
 * The submission process: takes orders from the queue, and writes each one's row and its task in
 * one transaction. Only when that is durable the message leaves the queue. So an order is there
 * with its task, or not at all, and one that comes twice is one order.
 *
 * What can be no order goes to a queue of its own, with the reason as its subject, and is kept
 * there.
 *
 * SHOP_DB=postgresql://... | PATH/intact.db  SHOP_AMQP=amqp://USER:PASSWORD@HOST:PORT
 * shop-submission
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/db.h"
#include "../lib/queue.h"
#include "order.h"

#define ORDERS  "shop.orders"
#define REFUSED ORDERS ".refused"
/* Where its progress is reported: the shop's own queue. */
#define REPLY_TO "{\"to\": \"amqp:shop.replies\", \"events\": \"all\"}"

enum { CREDIT = 50, REFUSE_WITHIN_MS = 10000 };

struct submission {
    struct db *db;
    struct queue *refused; /* a connection of its own, since one waits while its handler works */
    bool is_ready;
};

/* Whether tables and workflows are there: until then nothing is taken, since it would be refused.
 */
static bool is_ready(struct submission *s)
{
    struct db_rows *rows = NULL;
    const char *sql = "SELECT (SELECT count(DISTINCT name) FROM workflow"
                      " WHERE name IN ('shop_order', 'shop_parcel')),"
                      " (SELECT count(*) FROM shop_order WHERE id = '')";

    if (s->is_ready)
        return true;
    if (db_query(s->db, &rows, sql, 0, NULL) != DB_OK)
        fprintf(stderr, "submission: it waits for the database: %s\n", db_error(s->db));
    else if (strcmp(db_text(rows, 0, 0), "2") != 0)
        fprintf(stderr, "submission: it waits for the workflows shop_order and shop_parcel\n");
    else
        s->is_ready = true;
    db_free(rows);
    return s->is_ready;
}

/* ---- One transaction ---- */

static enum db_result write_order(struct db *db, const struct order *o, bool *ret_is_new)
{
    struct db_rows *rows = NULL;
    enum db_result result =
        db_query(db, &rows,
                 "INSERT INTO shop_order (id, lines, amount, card, address, placed_at, customer,"
                 " pay) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
                 " ON CONFLICT (id) DO NOTHING RETURNING id",
                 DB_ARGS(o->id, o->lines, o->amount, o->card_end, o->address, o->at, o->customer,
                         o->pay));

    *ret_is_new = db_count(rows) == 1;
    db_free(rows);
    return result;
}

static enum db_result write_task(struct db *db, const struct order *o)
{
    return db_query(db, NULL,
                    "INSERT INTO submit (workflow, id, input, reply_to, on_error)"
                    " VALUES ('shop_order', $1, $2, $3, 'raise')",
                    DB_ARGS(o->id, o->input, REPLY_TO));
}

/* A customer who submits twice does it at two times: it is the same order all the same. */
static enum db_result look_at_first(struct db *db, const struct order *o, bool *ret_is_same)
{
    struct db_rows *rows = NULL;
    enum db_result result =
        db_query(db, &rows,
                 "SELECT 1 FROM shop_order WHERE id = $1 AND lines = $2 AND amount = $3"
                 " AND card = $4 AND address = $5 AND customer = $6 AND pay = $7",
                 DB_ARGS(o->id, o->lines, o->amount, o->card_end, o->address, o->customer, o->pay));

    *ret_is_same = db_count(rows) == 1;
    db_free(rows);
    return result;
}

/* An order that was here before has its task since then. */
static enum db_result place(struct db *db, const struct order *o, char why[WHY_SIZE])
{
    bool is_new = false, is_same = true;
    enum db_result result = db_begin(db);

    if (result == DB_OK)
        result = write_order(db, o, &is_new);
    if (result == DB_OK)
        result = is_new ? write_task(db, o) : look_at_first(db, o, &is_same);
    if (result == DB_OK)
        result = db_commit(db);
    if (result != DB_OK) {
        snprintf(why, WHY_SIZE, "%s", db_error(db));
        db_rollback(db);
    } else if (!is_same) {
        snprintf(why, WHY_SIZE, "there is another order %s", o->id);
        return DB_REFUSED;
    } else {
        printf("submission: %s %s\n", o->id, is_new ? "is placed" : "came again");
    }
    return result;
}

/* ---- One message ---- */

/* It may quote what others wrote: one line, and no half of a character. */
static void tidy(char why[WHY_SIZE])
{
    size_t length = strlen(why);

    for (char *c = why; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    while (length == WHY_SIZE - 1 && (unsigned char)why[length - 1] >= 0x80)
        why[--length] = '\0';
}

static enum queue_verdict refuse(struct submission *s, const struct queue_message *m, char *why)
{
    struct queue_message kept = *m;

    tidy(why);
    kept.queue = REFUSED;
    kept.subject = why;
    if (queue_send(s->refused, &kept, REFUSE_WITHIN_MS) != QUEUE_ACCEPTED)
        return QUEUE_AGAIN;
    fprintf(stderr, "submission: a message went to " REFUSED ": %s\n", why);
    return QUEUE_DONE;
}

static enum queue_verdict take(void *arg, const struct queue_message *m)
{
    struct submission *s = arg;
    struct order order;
    char why[WHY_SIZE] = "";
    enum db_result result = DB_REFUSED;

    if (!is_ready(s))
        return QUEUE_AGAIN;
    if (order_read(&order, m, why))
        result = place(s->db, &order, why);
    order_fini(&order);
    if (result == DB_REFUSED)
        return refuse(s, m, why);
    if (result == DB_AWAY)
        fprintf(stderr, "submission: %s comes again: %s\n", m->id, why);
    return result == DB_OK ? QUEUE_DONE : QUEUE_AGAIN;
}

int main(void)
{
    const char *db = getenv("SHOP_DB"), *broker = getenv("SHOP_AMQP");
    struct submission s = {0};
    sigset_t ends;
    int number;

    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* the threads that are begun now, too */
    struct queue *orders = broker && db ? queue_open(broker, "shop-submission") : NULL;
    if (!orders) {
        fprintf(stderr, "usage: SHOP_DB=postgresql://... or PATH/intact.db"
                        " SHOP_AMQP=amqp://USER:PASSWORD@HOST:PORT shop-submission\n");
        return 2;
    }
    s.db = db_open(db);
    s.refused = queue_open(broker, "shop-submission-refused");
    queue_receive(orders, ORDERS, CREDIT, take, &s);
    sigwait(&ends, &number);
    queue_close(orders);
    queue_close(s.refused);
    db_close(s.db);
    return 0;
}
