/* The thread that stores the messages about orders from the queue shop.replies into shop_news,
 * each once by its id, and wakes the streams of events.c. A message leaves the queue after the
 * commit; what cannot be read is set aside. */

#include "shop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CREDIT 20

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text ? text : "";
}

/* What an order waits for, if this tells that it begins to: lock, wait, signal or approve. Who
 * waits for its lines (for_each) is at work. */
static const char *waits_for(const json_t *data, const char *type)
{
    const char *kind = json_string_value(json_object_get(json_object_get(data, "step"), "kind"));
    if (strcmp(type, "intact.task.waiting") != 0)
        return "";
    if (json_object_get(data, "lock"))
        return "lock";
    return kind && strcmp(kind, "for_each") != 0 ? kind : "";
}

/* The database may be away for a while. Going on with the next message would mix up their order, so
 * we stay with this one. */
static enum db_result store(struct shop *shop, struct db *db, const json_t *event)
{
    char *told = json_dumps(json_object_get(event, "data"), JSON_COMPACT);
    const char *sql = "INSERT INTO shop_news (id, order_id, sequence, event, at, told, waits_for)"
                      " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    enum db_result result = DB_AWAY;
    while (result == DB_AWAY && !shop->stopping) {
        result =
            db_query(db, NULL, sql,
                     DB_ARGS(text_of(event, "id"), text_of(event, "subject"),
                             text_of(event, "sequence"), text_of(event, "type"),
                             text_of(event, "time"), told,
                             waits_for(json_object_get(event, "data"), text_of(event, "type"))));
        if (result != DB_OK)
            fprintf(stderr, "shop-web: news of %s: %s\n", text_of(event, "subject"), db_error(db));
        if (result == DB_AWAY)
            sleep(1);
    }
    free(told);
    return result;
}

/* Kept for a person to look at. Only then it leaves its queue. */
static enum queue_verdict set_aside(struct shop *shop, const struct queue_message *m)
{
    struct queue_message kept = *m;
    kept.queue = "shop.replies.refused";
    kept.subject = "no news of an order";
    fprintf(stderr, "shop-web: message %s is no news of an order: see %s\n", m->id ? m->id : "?",
            kept.queue);
    return queue_send(shop->orders, &kept, 10000) == QUEUE_ACCEPTED ? QUEUE_DONE : QUEUE_AGAIN;
}

/* A message may come twice: it is stored once, by its id. It leaves the queue after the commit. */
static enum queue_verdict take(void *argument, const struct queue_message *m)
{
    struct shop *shop = argument;
    json_t *event = json_loadb(m->body, m->size, JSON_REJECT_DUPLICATES, NULL);
    enum queue_verdict verdict = QUEUE_AGAIN;

    if (!*text_of(event, "id") || !*text_of(event, "subject") || !*text_of(event, "sequence")
        || !json_is_object(json_object_get(event, "data"))) {
        verdict = set_aside(shop, m);
    } else {
        enum db_result result = store(shop, shop->news_db, event);
        if (result == DB_OK) {
            events_wake(text_of(event, "subject"));
            verdict = QUEUE_DONE;
        } else if (result == DB_REFUSED) {
            verdict = set_aside(shop, m);
        }
    }
    json_decref(event);
    return verdict;
}

/* The tables come first: the database may be there later than we are. */
static void *run(void *argument)
{
    struct shop *shop = argument;
    bool ready = false;
    while (!ready && !shop->stopping) {
        ready = db_script(shop->news_db, shop->schema) == DB_OK;
        if (!ready) {
            fprintf(stderr, "shop-web: the shop's tables: %s\n", db_error(shop->news_db));
            sleep(1);
        }
    }
    if (ready)
        queue_receive(shop->replies, "shop.replies", CREDIT, take, shop);
    return NULL;
}

bool news_start(struct shop *shop, pthread_t *ret)
{
    return pthread_create(ret, NULL, run, shop) == 0;
}

static json_t *item_of(const struct db_rows *rows, int row)
{
    const char *event = db_text(rows, row, 1);
    const char *prefix = "intact.task.";
    if (strncmp(event, prefix, strlen(prefix)) == 0)
        event += strlen(prefix);
    return json_pack("{s:s, s:s, s:s, s:o}", "sequence", db_text(rows, row, 0), "event", event,
                     "at", db_text(rows, row, 2), "told",
                     json_loads(db_text(rows, row, 3), 0, NULL));
}

json_t *news_of(struct shop *shop, const char *order, const char *sequence)
{
    struct db_rows *rows = NULL;
    json_t *items = NULL;
    const char *sql = "SELECT sequence, event, at, told FROM shop_news"
                      " WHERE order_id = $1 AND sequence > $2 ORDER BY sequence";
    if (shop_query(shop, &rows, sql, DB_ARGS(order, sequence)) == DB_OK)
        items = json_array();
    for (int row = 0; items && row < db_count(rows); row++)
        json_array_append_new(items, item_of(rows, row));
    db_free(rows);
    return items;
}

const char *news_waits_for(const json_t *news)
{
    for (size_t i = json_array_size(news); i-- > 0;) {
        const json_t *item = json_array_get(news, i);
        const char *event = json_string_value(json_object_get(item, "event"));
        if (strcmp(event, "paused") == 0 || strcmp(event, "resumed") == 0)
            continue;
        char type[64];
        snprintf(type, sizeof(type), "intact.task.%s", event);
        return waits_for(json_object_get(item, "told"), type);
    }
    return "";
}

bool news_is_last(const char *event)
{
    return strcmp(event, "processed") == 0 || strcmp(event, "compensated") == 0
           || strcmp(event, "closed") == 0;
}
