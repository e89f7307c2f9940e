/* Products and orders over HTTP: checks an order by the shop's own prices, puts it on the queue
 * shop.orders, and shows how orders get on. Writes no order itself: the submission process does.
 * people.c has what people decide. */

#include "shop.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINES_MAX    20 /* of an order, each for another product */
#define QUANTITY_MAX 99
#define LIST_MAX     50 /* orders of one list */
#define PAY_WITHIN_S (31L * 24 * 3600)

static enum MHD_Result answer_away(struct request *r)
{
    return answer_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                        "The shop cannot reach its database at the moment. Please try again.");
}

/* ---- Products ---- */

static json_t *products(struct shop *shop)
{
    struct db_rows *rows = NULL;
    const char *sql = "SELECT sku, name, about, price, picture FROM shop_product ORDER BY name";
    if (shop_query(shop, &rows, sql, 0, NULL) != DB_OK)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < db_count(rows); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:I, s:s}", "sku", db_text(rows, i, 0),
                                        "name", db_text(rows, i, 1), "about", db_text(rows, i, 2),
                                        "price", (json_int_t)atoll(db_text(rows, i, 3)), "picture",
                                        db_text(rows, i, 4)));
    db_free(rows);
    return list;
}

enum MHD_Result products_get(struct request *r)
{
    json_t *list = products(r->shop);
    return list ? answer_json(r, MHD_HTTP_OK, json_pack("{s:o}", "products", list))
                : answer_away(r);
}

/* ---- An order comes in ---- */

struct wrong {
    const char *field;
    const char *text;
};

struct order {
    char id[32];
    char card[20];
    const char *address;
    char customer[104]; /* without blanks at its ends */
    const char *pay;    /* now, later, or a day */
    json_t *lines;
    json_int_t amount;
    enum queue_sent sent;
};

static bool no(struct wrong *ret, const char *field, const char *text)
{
    *ret = (struct wrong){field, text};
    return false;
}

static json_int_t price_of(const json_t *list, const char *sku)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *product = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(product, "sku")), sku) == 0)
            return json_integer_value(json_object_get(product, "price"));
    }
    return -1;
}

/* What is paid is our own prices, whatever the page has shown. */
static bool take_lines(struct order *o, json_t *lines, const json_t *list, struct wrong *ret)
{
    size_t count = json_array_size(lines);
    if (count == 0 || count > LINES_MAX)
        return no(ret, "lines", "An order can have 1 to 20 different products.");
    o->lines = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_t *line = json_array_get(lines, i);
        const char *sku = json_string_value(json_object_get(line, "sku"));
        json_int_t quantity = json_integer_value(json_object_get(line, "quantity"));
        json_int_t price = sku ? price_of(list, sku) : -1;
        if (price < 0)
            return no(ret, "lines", "One of the products is no longer available.");
        if (quantity < 1 || quantity > QUANTITY_MAX)
            return no(ret, "lines", "You can order 1 to 99 of each product.");
        for (size_t j = 0; j < i; j++)
            if (strcmp(json_string_value(json_object_get(json_array_get(o->lines, j), "sku")), sku)
                == 0)
                return no(ret, "lines", "The order lists the same product twice.");
        o->amount += price * quantity;
        json_array_append_new(o->lines, json_pack("{s:s, s:I}", "sku", sku, "quantity", quantity));
    }
    return true;
}

/* A shop that is none for trying out would get a token from its payment provider here, and never
 * see a card's number. */
static bool take_card(struct order *o, const json_t *card, struct wrong *ret)
{
    size_t digits = 0;
    for (const char *c = json_string_value(card); c && *c; c++) {
        if (*c == ' ' || *c == '-')
            continue;
        if (!isdigit((unsigned char)*c) || digits >= sizeof(o->card) - 1)
            return no(ret, "card", "A card number has 12 to 19 digits and nothing else.");
        o->card[digits++] = *c;
    }
    return digits >= 12 || no(ret, "card", "A card number has 12 to 19 digits.");
}

static bool take_address(struct order *o, const json_t *address, struct wrong *ret)
{
    o->address = json_string_value(address);
    if (!o->address || strspn(o->address, " \t\r\n") == strlen(o->address))
        return no(ret, "address", "Please enter a delivery address.");
    if (strlen(o->address) > 500)
        return no(ret, "address", "This address is too long: 500 bytes at most.");
    for (const char *c = o->address; *c; c++)
        if (iscntrl((unsigned char)*c) && *c != '\n' && *c != '\r' && *c != '\t')
            return no(ret, "address", "This address has characters that cannot be printed.");
    return true;
}

/* Orders of the same customer are done one after the other. A shop with accounts would take the
 * name of the account. */
static bool take_customer(struct order *o, const json_t *customer, struct wrong *ret)
{
    const char *text = json_string_value(customer);
    text = text ? text + strspn(text, " ") : "";
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length == 0)
        return no(ret, "customer", "Please enter your name.");
    if (length > 100)
        return no(ret, "customer", "This name is too long: 100 bytes at most.");
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)text[i]))
            return no(ret, "customer", "This name has characters that cannot be printed.");
    snprintf(o->customer, sizeof(o->customer), "%.*s", (int)length, text);
    return true;
}

static bool take_pay(struct order *o, const json_t *pay, struct wrong *ret)
{
    struct tm day = {0};
    o->pay = json_string_value(pay);
    if (o->pay && (strcmp(o->pay, "now") == 0 || strcmp(o->pay, "later") == 0))
        return true;
    const char *end = o->pay ? strptime(o->pay, "%Y-%m-%dT%H:%M:%SZ", &day) : NULL;
    if (!end || *end || timegm(&day) > time(NULL) + PAY_WITHIN_S)
        return no(ret, "pay", "You can pay now, later, or on a day of the next month.");
    return true;
}

/* The page made the key for this basket. The same key is the same order, so that pressing twice, or
 * trying again when no answer came, never makes two. */
static bool take_key(struct order *o, const json_t *key, struct wrong *ret)
{
    const char *text = json_string_value(key);
    unsigned char hash[EVP_MAX_MD_SIZE];
    if (!text || strlen(text) < 8 || strlen(text) > 100)
        return no(ret, "key", "The order needs a key of 8 to 100 bytes.");
    if (EVP_Digest(text, strlen(text), hash, NULL, EVP_sha256(), NULL) != 1)
        abort();
    int length = snprintf(o->id, sizeof(o->id), "o-");
    for (int i = 0; i < 10; i++)
        length += snprintf(o->id + length, sizeof(o->id) - (size_t)length, "%02x", hash[i]);
    return true;
}

void write_now(char to[32])
{
    time_t now = time(NULL);
    struct tm utc;
    strftime(to, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

static bool hand_in(struct shop *shop, struct order *o)
{
    char at[32];
    write_now(at);
    json_t *order = json_pack("{s:s, s:O, s:I, s:s, s:s, s:s, s:s, s:s}", "order", o->id, "lines",
                              o->lines, "amount", o->amount, "card", o->card, "address", o->address,
                              "at", at, "customer", o->customer, "pay", o->pay);
    char *body = json_dumps(order, JSON_COMPACT);
    struct queue_message m = {.queue = "shop.orders",
                              .id = o->id,
                              .subject = "order",
                              .body = body,
                              .size = body ? strlen(body) : 0};
    o->sent = body ? queue_send(shop->orders, &m, 5000) : QUEUE_AWAY;
    free(body);
    json_decref(order);
    return o->sent == QUEUE_ACCEPTED;
}

/* The same key with something else in it: whoever pressed first, got no answer, and then changed
 * the address, is not to believe that this is where the parcel goes. */
static enum db_result look_for_another(struct shop *shop, const struct order *o, bool *ret_is_there)
{
    struct db_rows *rows = NULL;
    char *lines = json_dumps(o->lines, JSON_COMPACT | JSON_SORT_KEYS);
    const char *sql = "SELECT 1 FROM shop_order WHERE id = $1"
                      " AND (lines <> $2 OR address <> $3 OR card <> $4 OR customer <> $5"
                      " OR pay <> $6)";
    const char *card_end = o->card + strlen(o->card) - 4;
    enum db_result result =
        shop_query(shop, &rows, sql,
                   DB_ARGS(o->id, lines, o->address, card_end, o->customer, o->pay));
    *ret_is_there = db_count(rows) == 1;
    db_free(rows);
    free(lines);
    return result;
}

/* Only our own pages place orders: others' cannot send JSON here without asking first (CORS), and
 * browsers say where a request comes from. */
bool request_is_ours(const struct request *r)
{
    const char *type = request_header(r, "Content-Type");
    const char *origin = request_header(r, "Origin");
    const char *host = request_header(r, "Host");
    const char *name = origin ? strstr(origin, "://") : NULL;
    return type && strncasecmp(type, "application/json", 16) == 0
           && (!origin || (name && host && strcasecmp(name + 3, host) == 0));
}

static enum MHD_Result answer_not_taken(struct request *r, const struct order *o)
{
    if (o->sent == QUEUE_REFUSED)
        return answer_error(r, MHD_HTTP_CONTENT_TOO_LARGE, NULL,
                            "This order is too large for our queue and was not placed. Please "
                            "order less at a time, or give a shorter address.");
    return answer_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                        "Your order could not be placed at the moment. Please try again: however "
                        "often you try, only one order is placed.");
}

static enum MHD_Result order_take(struct request *r, json_t *body, const json_t *list)
{
    struct order o = {0};
    struct wrong wrong = {0};
    bool is_another = false;
    enum MHD_Result result;

    if (!take_key(&o, json_object_get(body, "key"), &wrong)
        || !take_lines(&o, json_object_get(body, "lines"), list, &wrong)
        || !take_customer(&o, json_object_get(body, "customer"), &wrong)
        || !take_address(&o, json_object_get(body, "address"), &wrong)
        || !take_pay(&o, json_object_get(body, "pay"), &wrong)
        || !take_card(&o, json_object_get(body, "card"), &wrong))
        result = answer_error(r, MHD_HTTP_UNPROCESSABLE_CONTENT, wrong.field, wrong.text);
    else if (look_for_another(r->shop, &o, &is_another) != DB_OK)
        result = answer_away(r);
    else if (is_another)
        result = answer_error(
            r, MHD_HTTP_CONFLICT, NULL,
            "This basket was already ordered, with a different name, address, "
            "card or payment, and that order is under way. To place another order, please change "
            "the basket.");
    else if (!hand_in(r->shop, &o))
        result = answer_not_taken(r, &o);
    else
        result = answer_json(r, MHD_HTTP_ACCEPTED, json_pack("{s:s}", "order", o.id));
    json_decref(o.lines);
    return result;
}

enum MHD_Result order_post(struct request *r)
{
    if (!request_is_ours(r))
        return answer_error(r, MHD_HTTP_FORBIDDEN, NULL,
                            "Orders come from the shop's own pages, as application/json.");
    if (r->length > BODY_MAX)
        return answer_error(r, MHD_HTTP_CONTENT_TOO_LARGE, NULL, "An order has 16 KiB at most.");
    json_t *body = json_loadb(r->body, r->length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        return answer_error(r, MHD_HTTP_BAD_REQUEST, NULL, "This is not an order as JSON.");
    }
    json_t *list = products(r->shop);
    enum MHD_Result result = list ? order_take(r, body, list) : answer_away(r);
    json_decref(list);
    json_decref(body);
    return result;
}

/* ---- How orders get on ---- */

bool order_is_id(const char *id)
{
    size_t length = strlen(id);
    return length == 22 && strncmp(id, "o-", 2) == 0
           && strspn(id + 2, "0123456789abcdef") == length - 2;
}

/* What was ordered, once the submission process has written it; and when the shop has last reminded
 * its customer of the payment. */
static void add_row(json_t *order, const struct db_rows *rows)
{
    static const char *const texts[] = {"address", "placed_at", "customer", "pay", "reminded_at"};
    json_object_set_new(order, "lines", json_loads(db_text(rows, 0, 0), 0, NULL));
    json_object_set_new(order, "amount", json_integer(atoll(db_text(rows, 0, 1))));
    for (int i = 0; i < 5; i++)
        json_object_set_new(order, texts[i], json_string(db_text(rows, 0, i + 2)));
}

static bool is_event(const json_t *item, const char *event)
{
    return strcmp(json_string_value(json_object_get(item, "event")), event) == 0;
}

/* A task is pending before its first step, and again while it waits for its parcels. */
static const char *state_of(const json_t *news)
{
    const json_t *last = json_array_get(news, json_array_size(news) - 1);
    const json_t *told = json_object_get(last, "told");
    const char *state = json_string_value(json_object_get(told, "state"));
    const char *direction = json_string_value(json_object_get(told, "direction"));

    if (!last || !state)
        return "handed_in";
    if (is_event(last, "closed"))
        return "closed";
    if (strcmp(state, "pending") != 0)
        return state;
    if (direction && strcmp(direction, "undo") == 0)
        return "compensating";
    for (size_t i = 0; i < json_array_size(news); i++)
        if (is_event(json_array_get(news, i), "started"))
            return "processing";
    return state;
}

/* An order of which nothing is known yet is one that was handed in and still waits in its queue. */
json_t *order_json(struct shop *shop, const char *id)
{
    struct db_rows *rows = NULL;
    const char *sql = "SELECT lines, amount, address, placed_at, customer, pay,"
                      " (SELECT coalesce(max(at), '') FROM shop_reminder WHERE order_id = $1"
                      "  AND waits_for = 'signal') FROM shop_order WHERE id = $1";
    json_t *news = news_of(shop, id, "");
    if (!news || shop_query(shop, &rows, sql, DB_ARGS(id)) != DB_OK) {
        json_decref(news);
        return NULL;
    }
    json_t *order = json_pack("{s:s, s:s, s:o, s:s}", "order", id, "state", state_of(news), "news",
                              news, "waits_for", news_waits_for(news));
    if (db_count(rows) == 1)
        add_row(order, rows);
    db_free(rows);
    return order;
}

enum MHD_Result order_get(struct request *r, const char *id)
{
    json_t *order = order_json(r->shop, id);
    char now[32];
    if (!order)
        return answer_away(r);
    write_now(now); /* so that the page can tell how long an order has been waiting */
    json_object_set_new(order, "now", json_string(now));
    return answer_json(r, MHD_HTTP_OK, order);
}

/* A browser asks for those that it knows: who has an order's id may see it. */
enum MHD_Result orders_get(struct request *r)
{
    const char *ids = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "ids");
    json_t *list = json_array();
    const char *at = ids ? ids : "";
    for (int count = 0; *at && count < LIST_MAX; count++) {
        char id[32];
        size_t length = strcspn(at, ",");
        snprintf(id, sizeof(id), "%.*s", (int)(length < 31 ? length : 31), at);
        at += length + (at[length] == ',');
        json_t *order = order_is_id(id) ? order_json(r->shop, id) : NULL;
        if (!order) {
            json_decref(list);
            return order_is_id(id)
                       ? answer_away(r)
                       : answer_error(r, MHD_HTTP_BAD_REQUEST, "ids",
                                      "ids: the ids of orders, with commas between them");
        }
        json_object_del(order, "news");
        json_array_append_new(list, order);
    }
    return answer_json(r, MHD_HTTP_OK, json_pack("{s:o}", "orders", list));
}
