/*
 * The payment service: plain HTTP, on this machine only. It knows nothing of Intact. What any
 * service has to do so that each charge happens once, and none after its refund, is in few lines
 * below: both look for the order's row first and write it in the same transaction. The same key is
 * given the same answer again, and none for anything else. A refund that finds no row leaves one
 * behind, and the charge is refused should it come later.
 */

/*
 *     PAYMENT_KEY=... shop-payment payment/payment.db 8082
 *
 *     POST   /charges         {"order", "card", "amount"} with the header Idempotency-Key
 *     DELETE /charges/ORDER   gives the money back; if nothing was charged, nothing will be
 *
 * An answer that is an error is one line: its code, and what people may read.
 */

#include "service.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 4096, KEY_MIN = 8, CONNECTIONS_MAX = 500, IDLE_S = 30 };

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS account(" /* opened when its card is used first */
    " card TEXT PRIMARY KEY,"
    " credit INTEGER NOT NULL DEFAULT 200000," /* what may be charged to it in all, in cents */
    " charged INTEGER NOT NULL DEFAULT 0 CHECK (charged BETWEEN 0 AND credit));"
    "CREATE TABLE IF NOT EXISTS charge("
    " id INTEGER PRIMARY KEY, order_id TEXT NOT NULL UNIQUE, key TEXT UNIQUE,"
    " card TEXT REFERENCES account, amount INTEGER NOT NULL DEFAULT 0,"
    " state TEXT NOT NULL CHECK (state IN ('charged', 'refunded', 'barred')));";

/* The card without blanks. */
#define CARD "replace(replace(:body ->> '$.card', ' ', ''), '-', '')"

/* Each of these has a row if that is the answer: "STATUS BODY". */
static const char find_mistake[] =
    "SELECT CASE"
    " WHEN NOT json_valid(:body) THEN '400 bad_request: the body is not JSON'"
    " WHEN :key = '' THEN '400 bad_request: the header Idempotency-Key is missing'"
    " WHEN coalesce(json_type(:body, '$.order') <> 'text'"
    "               OR json_type(:body, '$.card') <> 'text'"
    "               OR json_type(:body, '$.amount') <> 'integer'"
    "               OR :body ->> '$.amount' NOT BETWEEN 1 AND 100000000, TRUE)"
    "  THEN '422 bad_request: order and card are texts, amount is a number of cents'"
    " WHEN length(" CARD ") NOT BETWEEN 12 AND 19 OR " CARD " GLOB '*[^0-9]*'"
    "  THEN '422 card_unknown: This is not the number of a card.' END";

static const char find_charge[] =
    "SELECT CASE WHEN key = :key AND (order_id, card, amount)"
    "             <> (:body ->> '$.order', " CARD ", :body ->> '$.amount')"
    "  THEN '422 key_reused: This key stands for another charge.'"
    " WHEN state <> 'charged' THEN '409 cancelled: This order was cancelled.'"
    " WHEN key <> :key THEN '409 charged_before: This order was charged before.'"
    " ELSE '200 ' || json_object('receipt', id) END"
    " FROM charge WHERE order_id = :body ->> '$.order' OR key = :key"
    " ORDER BY order_id <> :body ->> '$.order'"; /* its own first */

static const char find_refusal[] =
    "SELECT CASE"
    " WHEN card LIKE '%0002' THEN '402 card_declined: The bank declined the card.'"
    " WHEN charged + (:body ->> '$.amount') > credit"
    "  THEN format('402 limit_exceeded: Only %d.%02d EUR of the card limit is left.',"
    "              (credit - charged) / 100, (credit - charged) % 100)"
    " END FROM account WHERE card = " CARD;

static const char *const do_charge[] = {
    "UPDATE account SET charged = charged + (:body ->> '$.amount') WHERE card = " CARD,
    "INSERT INTO charge(order_id, key, card, amount, state)"
    " VALUES (:body ->> '$.order', :key, " CARD ", :body ->> '$.amount', 'charged')"
    " RETURNING '201 ' || json_object('receipt', id)",
};

static const char *const do_refund[] = {
    "INSERT INTO charge(order_id, state) VALUES (:order, 'barred') ON CONFLICT DO NOTHING",
    ("UPDATE account SET charged = charged - amount FROM charge"
     " WHERE order_id = :order AND state = 'charged' AND charge.card = account.card"),
    "UPDATE charge SET state = 'refunded' WHERE order_id = :order AND state = 'charged'",
    "SELECT '200 ' || json_object('refunded', amount) FROM charge WHERE order_id = :order",
};

static const char away[] = "503 away: the payment service cannot do anything at the moment";

static sqlite3 *db;
static const char *access_key;
static atomic_bool is_stopping;

struct call {
    char body[BODY_MAX + 1];
    size_t length;
    bool is_too_long;
    char answer[300]; /* "201 {...}" */
};

static bool run(struct call *c, const char *sql, const struct service_value *values)
{
    int rc = service_sql(db, sql, values, c->answer, sizeof c->answer);

    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

/* True: that is the answer, whatever it is. */
static bool finds(struct call *c, const char *sql, const struct service_value *values)
{
    return !run(c, sql, values) || c->answer[0] != '\0';
}

static bool charge(struct call *c, const struct service_value *values)
{
    static const char open_account[] =
        "INSERT INTO account(card) VALUES (" CARD ") ON CONFLICT DO NOTHING";

    if (finds(c, find_mistake, values) || finds(c, find_charge, values)
        || !run(c, open_account, values) || finds(c, find_refusal, values))
        return c->answer[0] != '\0';
    return run(c, do_charge[0], values) && run(c, do_charge[1], values);
}

static bool refund(struct call *c, const struct service_value *values)
{
    for (size_t i = 0; i < sizeof do_refund / sizeof do_refund[0]; i++)
        if (!run(c, do_refund[i], values))
            return false;
    return true;
}

/* Runs it in a transaction: all of it or nothing, and on the disk before it is answered. */
static void serve(struct call *c, bool (*effect)(struct call *, const struct service_value *),
                  const struct service_value *values)
{
    service_lock();
    bool ok = service_sql(db, "BEGIN IMMEDIATE", NULL, NULL, 0) == SQLITE_DONE && effect(c, values)
              && service_sql(db, "COMMIT", NULL, NULL, 0) == SQLITE_DONE;
    if (!ok) {
        service_log("payment: %s", sqlite3_errmsg(db));
        if (!sqlite3_get_autocommit(db))
            (void)service_sql(db, "ROLLBACK", NULL, NULL, 0);
        (void)snprintf(c->answer, sizeof c->answer, "%s", away);
    }
    service_unlock();
}

static bool may_enter(struct MHD_Connection *connection)
{
    static const char bearer[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

    return given && strncmp(given, bearer, sizeof bearer - 1) == 0
           && strlen(given) == sizeof bearer - 1 + strlen(access_key)
           && CRYPTO_memcmp(given + sizeof bearer - 1, access_key, strlen(access_key)) == 0;
}

static bool is_heard(void *arg)
{
    (void)arg;
    return !atomic_load(&is_stopping);
}

static void answer(struct call *c, struct MHD_Connection *connection, const char *method,
                   const char *url)
{
    static const char charges[] = "/charges/";
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key");
    const char *order = url + sizeof charges - 1;
    const struct service_value values[] = {{":body", c->body},
                                           {":key", key ? key : ""},
                                           {":order", order},
                                           {NULL, NULL}};
    bool is_charge = strcmp(method, "POST") == 0 && strcmp(url, "/charges") == 0;
    bool is_refund =
        strcmp(method, "DELETE") == 0 && strncmp(url, charges, sizeof charges - 1) == 0 && *order;

    if (!may_enter(connection))
        (void)snprintf(c->answer, sizeof c->answer, "401 no_access: the key is wrong");
    else if (!is_charge && !is_refund)
        (void)snprintf(c->answer, sizeof c->answer, "404 not_found: there is nothing here");
    else if (c->is_too_long)
        (void)snprintf(c->answer, sizeof c->answer, "413 too_long: the body is too long");
    else if (service_wait(is_heard, NULL) != SERVICE_OK)
        (void)snprintf(c->answer, sizeof c->answer, "%s", away);
    else if (is_charge)
        serve(c, charge, values);
    else
        serve(c, refund, values);
    service_log("payment: %s %s %s: %s", method, url, key ? key : "", c->answer);
}

static enum MHD_Result send_answer(struct call *c, struct MHD_Connection *connection)
{
    char *body = NULL;
    unsigned status = (unsigned)strtoul(c->answer, &body, 10);
    const char *type = status < 300 ? "application/json" : "text/plain; charset=utf-8";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(body + 1), body + 1, MHD_RESPMEM_MUST_COPY);

    MHD_add_response_header(response, "Content-Type", type);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Called once for a request's headers, for each piece of its body, and at its end. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *piece,
                                  size_t *piece_size, void **call)
{
    struct call *c = (struct call *)*call;

    (void)cls;
    (void)version;
    if (!c) {
        *call = calloc(1, sizeof *c);
        return *call ? MHD_YES : MHD_NO;
    }
    if (*piece_size == 0) {
        answer(c, connection, method, url);
        return send_answer(c, connection);
    }
    if (*piece_size > BODY_MAX - c->length) {
        c->is_too_long = true;
    } else {
        memcpy(c->body + c->length, piece, *piece_size);
        c->length += *piece_size;
    }
    *piece_size = 0;
    return MHD_YES;
}

static void on_end(void *cls, struct MHD_Connection *connection, void **call,
                   enum MHD_RequestTerminationCode how)
{
    (void)cls;
    (void)connection;
    (void)how;
    free(*call);
    *call = NULL;
}

/* Until SIGTERM. */
static int run_service(uint16_t port, const sigset_t *ends)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL,
                         NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR, &here,
                         MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_CONNECTION_LIMIT,
                         CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_END);
    int signal = 0;

    if (!daemon) {
        service_log("payment: port %u is taken", port);
        return 1;
    }
    service_log("payment: ready at http://127.0.0.1:%u", port);
    sigwait(ends, &signal);
    atomic_store(&is_stopping, true);
    MHD_stop_daemon(daemon);
    return 0;
}

int main(int argc, char **argv)
{
    long port = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    sigset_t ends;

    access_key = getenv("PAYMENT_KEY");
    if (port < 1 || port > UINT16_MAX || !access_key || strlen(access_key) < KEY_MIN) {
        (void)fprintf(stderr, "usage: PAYMENT_KEY=... shop-payment DATABASE PORT\n"
                              "PAYMENT_KEY is what callers have to say, 8 bytes or more\n");
        return 2;
    }
    sigemptyset(&ends); /* no thread is interrupted by them: main takes them */
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    db = service_open(argv[1], schema);
    if (!db)
        return 1;
    int result = run_service((uint16_t)port, &ends);
    sqlite3_close(db);
    return result;
}
