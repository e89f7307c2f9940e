#ifndef SHOP_WEB_SHOP_H
#define SHOP_WEB_SHOP_H

/*
 * The shop's web server. A browser's order becomes a message on the queue shop.orders, and nothing
 * else: the server has no order until the submission process wrote it. How orders get on it knows
 * from its own queue, shop.replies, alone. What people decide on the way it tells Intact.
 *
 *     browser -- POST -> orders.c -> shop.orders
 *     browser <- GET --- orders.c <- shop_order, shop_news
 *     browser <- SSE --- events.c <- shop_news <- news.c <- shop.replies
 *     browser -- POST -> people.c -> Intact: pay, cancel, approve, reject
 *     Intact --- POST -> people.c -> shop_reminder
 *
 * files.c has the pages, http.c the answers, main.c options, routes and threads.
 */

#include "../lib/db.h"
#include "../lib/queue.h"

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#define BODY_MAX 16384

struct shop {
    const char *pages; /* the folder of the pages */
    char *schema;      /* SQL that makes the shop's tables */
    const char *broker;
    struct queue *orders;  /* for sending */
    struct queue *replies; /* for what comes in */
    struct db *news_db;    /* of news.c's thread */
    struct db *db;         /* of all requests, one at a time */
    pthread_mutex_t db_lock;
    _Atomic bool stopping;
};

/* For requests. What went wrong is told on stderr. */
enum db_result shop_query(struct shop *shop, struct db_rows **ret, const char *sql, int count,
                          const char *const *args);

struct request {
    struct shop *shop;
    struct MHD_Connection *connection;
    const char *path;
    char body[BODY_MAX];
    size_t length; /* more than BODY_MAX: the rest was thrown away */
};

/* ---- http.c: each of these answers the request ---- */

enum MHD_Result answer(struct request *r, unsigned status, struct MHD_Response *response,
                       const char *type);
enum MHD_Result answer_json(struct request *r, unsigned status, json_t *body); /* takes it */
/* `field` is what of the form is wrong, or NULL. */
enum MHD_Result answer_error(struct request *r, unsigned status, const char *field,
                             const char *text);

const char *request_header(const struct request *r, const char *name);
bool request_is_ours(const struct request *r); /* it comes from the shop's own pages */

/* ---- The others ---- */

enum MHD_Result page_get(struct request *r);
char *file_read(const char *path); /* to be freed; NULL: stderr says why not */

enum MHD_Result products_get(struct request *r);
enum MHD_Result order_post(struct request *r);
enum MHD_Result orders_get(struct request *r); /* ?ids=o-1,o-2 */
bool order_is_id(const char *id);
enum MHD_Result order_get(struct request *r, const char *id);
json_t *order_json(struct shop *shop, const char *id); /* NULL: the database is away */
void write_now(char to[32]);                           /* "2026-01-31T10:00:00Z" */

enum MHD_Result order_verb(struct request *r, const char *id, const char *verb);
enum MHD_Result approvals_get(struct request *r);
enum MHD_Result approval_post(struct request *r, const char *id);
enum MHD_Result reminders_post(struct request *r);

enum MHD_Result events_get(struct request *r, const char *id); /* as server-sent events */
void events_wake(const char *order);                           /* there is news of it */
void events_stop(void);                                        /* the server ends */

/* What the shop was told of an order after `sequence`, which may be "": an array of {sequence,
 * event, at, told}. NULL: the database is away. */
json_t *news_of(struct shop *shop, const char *order, const char *sequence);
bool news_is_last(const char *event);
const char *news_waits_for(const json_t *news); /* lock, wait, signal or approve; "": nothing */

/* Makes the tables, then stores what comes in by shop.replies until that queue is closed. */
bool news_start(struct shop *shop, pthread_t *ret);

#endif
