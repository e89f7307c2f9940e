/*
 * What people decide about orders that wait. A customer pays, or cancels: a signal to the order's
 * task. Staff approve or reject: Intact counts the vote of the person whose key their page sends,
 * and the shop itself could not vote. Each morning Intact's schedule has the shop write reminders.
 */

#include "shop.h"

#include <intact/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEARER  "Bearer "
#define AT_ONCE "50" /* questions on the staff's page */

/* What Intact says no with, as its problem document. */
static const char *problem_of(const struct intact_client *c, const char *member, json_t **ret)
{
    *ret = json_loads(intact_client_body(c), 0, NULL);
    const char *text = json_string_value(json_object_get(*ret, member));
    return text ? text : "";
}

static enum MHD_Result answer_away(struct request *r, const struct intact_client *c)
{
    fprintf(stderr, "shop-web: Intact: %s\n", c ? intact_client_error(c) : "no memory");
    return answer_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                        "The shop cannot reach Intact at the moment. Please try again: it counts "
                        "once, however often you press.");
}

/* ---- Customers ---- */

static const struct {
    const char *verb, *signal, *too_late;
} said[] = {
    {"pay", "pay", "This order does not wait for a payment any more."},
    {"cancel", "cancelled", "This order cannot be cancelled any more."},
};

/* A client with an order's id may pay or cancel it. The key makes pressing twice one signal. */
static enum MHD_Result tell_task(struct request *r, const char *id, size_t which)
{
    struct intact_client *c = intact_client_new(NULL, NULL);
    enum intact_status status =
        c ? intact_client_signal(c, id, said[which].signal, NULL, said[which].verb)
          : INTACT_UNREACHABLE;
    int http = c ? intact_client_http_status(c) : 0;
    enum MHD_Result result;

    if (status == INTACT_OK)
        result = answer_json(r, MHD_HTTP_OK, json_pack("{s:s}", "order", id));
    else if (http == MHD_HTTP_NOT_FOUND)
        result = answer_error(r, MHD_HTTP_CONFLICT, NULL,
                              "This order has not been picked up yet. Please try again in a "
                              "moment.");
    else if (http == MHD_HTTP_CONFLICT || http == MHD_HTTP_UNPROCESSABLE_CONTENT)
        result = answer_error(r, MHD_HTTP_CONFLICT, NULL, said[which].too_late);
    else
        result = answer_away(r, c);
    intact_client_free(c);
    return result;
}

enum MHD_Result order_verb(struct request *r, const char *id, const char *verb)
{
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        if (strcmp(verb, said[i].verb) == 0)
            return request_is_ours(r) ? tell_task(r, id, i)
                                      : answer_error(r, MHD_HTTP_FORBIDDEN, NULL,
                                                     "This is for the shop's own pages.");
    return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is nothing here.");
}

/* ---- Staff ---- */

static const char *key_of(const struct request *r)
{
    const char *given = request_header(r, "Authorization");
    return given && strncmp(given, BEARER, strlen(BEARER)) == 0 ? given + strlen(BEARER) : "";
}

/* Everything but INTACT_OK. */
static enum MHD_Result answer_no(struct request *r, const struct intact_client *c)
{
    json_t *problem = NULL;
    int status = c ? intact_client_http_status(c) : 0;
    enum MHD_Result result;

    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        result = answer_error(r, (unsigned)status, "key",
                              "This key is not one of a person who approves orders.");
    else if (status == MHD_HTTP_NOT_FOUND)
        result = answer_error(r, MHD_HTTP_CONFLICT, NULL,
                              "This order does not wait for your decision any more.");
    else if (status == MHD_HTTP_CONFLICT || status == MHD_HTTP_UNPROCESSABLE_CONTENT)
        result = answer_error(r, (unsigned)status, NULL, problem_of(c, "detail", &problem));
    else
        result = answer_away(r, c);
    json_decref(problem);
    return result;
}

static json_t *reminders(struct shop *shop)
{
    struct db_rows *rows = NULL;
    json_t *list = json_array();
    const char *sql = "SELECT at, sum(CASE waits_for WHEN 'approve' THEN 1 ELSE 0 END),"
                      " sum(CASE waits_for WHEN 'signal' THEN 1 ELSE 0 END)"
                      " FROM shop_reminder GROUP BY run, at ORDER BY at DESC LIMIT 5";
    if (shop_query(shop, &rows, sql, 0, NULL) == DB_OK)
        for (int i = 0; i < db_count(rows); i++)
            json_array_append_new(list,
                                  json_pack("{s:s, s:I, s:I}", "at", db_text(rows, i, 0),
                                            "approval", (json_int_t)atoll(db_text(rows, i, 1)),
                                            "payment", (json_int_t)atoll(db_text(rows, i, 2))));
    db_free(rows);
    return list;
}

/* Each question with the order that it is about. */
static json_t *questions(struct shop *shop, const json_t *asked)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(asked); i++) {
        json_t *one = json_array_get(asked, i);
        const char *task = json_string_value(json_object_get(one, "task"));
        json_t *order = task ? order_json(shop, task) : NULL;
        json_object_del(order, "news");
        json_array_append_new(list, json_pack("{s:s, s:O, s:O, s:O, s:O, s:o}", "order", task,
                                              "step", json_object_get(one, "step"), "question",
                                              json_object_get(one, "question"), "asking",
                                              json_object_get(one, "asking"), "asked_at",
                                              json_object_get(one, "asked_at"), "about",
                                              order ? order : json_null()));
    }
    return list;
}

enum MHD_Result approvals_get(struct request *r)
{
    struct intact_client *c = intact_client_new(NULL, key_of(r));
    enum MHD_Result result;

    if (!c || intact_client_approvals(c, "limit=" AT_ONCE) != INTACT_OK) {
        result = answer_no(r, c);
    } else {
        json_t *body = json_loads(intact_client_body(c), 0, NULL);
        result = answer_json(r, MHD_HTTP_OK,
                             json_pack("{s:o, s:o}", "approvals",
                                       questions(r->shop, json_object_get(body, "approvals")),
                                       "reminders", reminders(r->shop)));
        json_decref(body);
    }
    intact_client_free(c);
    return result;
}

/* {"step", "asking", "approve": true or false, "comment"} */
enum MHD_Result approval_post(struct request *r, const char *id)
{
    const char *step = NULL, *comment = NULL;
    int asking = 0, agrees = 0;
    json_t *body = json_loadb(r->body, r->length <= BODY_MAX ? r->length : 0, 0, NULL);
    struct intact_client *c = intact_client_new(NULL, key_of(r));
    enum MHD_Result result;

    if (!request_is_ours(r))
        result = answer_error(r, MHD_HTTP_FORBIDDEN, NULL, "This is for the shop's own pages.");
    else if (json_unpack(body, "{s:s, s:i, s:b, s:s}", "step", &step, "asking", &asking, "approve",
                         &agrees, "comment", &comment)
                 != 0
             || !*step || strspn(step, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(step)
             || asking < 1)
        result = answer_error(r, MHD_HTTP_UNPROCESSABLE_CONTENT, NULL, "This is not a decision.");
    else if (!agrees && strspn(comment, " \t\r\n") == strlen(comment))
        result = answer_error(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "comment",
                              "Please tell the customer why: a rejection needs a comment.");
    else if (!c
             || (agrees ? intact_client_approve(c, id, step, (uint32_t)asking,
                                                *comment ? comment : NULL)
                        : intact_client_reject(c, id, step, (uint32_t)asking, comment))
                    != INTACT_OK)
        result = answer_no(r, c);
    else
        result = answer_json(r, MHD_HTTP_OK, json_pack("{s:s}", "order", id));
    intact_client_free(c);
    json_decref(body);
    return result;
}

/* ---- Reminders ---- */

/* All that waits for people now. The same run comes again if its answer was lost. */
static bool write_reminders(struct shop *shop, const char *run)
{
    char now[32];
    const char *sql =
        "INSERT INTO shop_reminder (run, order_id, waits_for, at)"
        " SELECT CAST($1 AS TEXT), n.order_id, n.waits_for, CAST($2 AS TEXT) FROM shop_news n"
        " WHERE n.waits_for IN ('approve', 'signal')"
        " AND NOT EXISTS (SELECT 1 FROM shop_reminder WHERE run = $1)"
        " AND NOT EXISTS (SELECT 1 FROM shop_news m WHERE m.order_id = n.order_id"
        "                 AND m.sequence > n.sequence"
        "                 AND m.event NOT IN ('intact.task.paused', 'intact.task.resumed'))"
        " ON CONFLICT (run, order_id) DO NOTHING";
    write_now(now);
    return shop_query(shop, NULL, sql, DB_ARGS(run, now)) == DB_OK;
}

static json_t *reminded(struct shop *shop, const char *run)
{
    struct db_rows *rows = NULL;
    json_t *count = NULL;
    const char *sql = "SELECT count(CASE waits_for WHEN 'approve' THEN 1 END),"
                      " count(CASE waits_for WHEN 'signal' THEN 1 END)"
                      " FROM shop_reminder WHERE run = $1";
    if (shop_query(shop, &rows, sql, DB_ARGS(run)) == DB_OK)
        count = json_pack("{s:I, s:I}", "approval", (json_int_t)atoll(db_text(rows, 0, 0)),
                          "payment", (json_int_t)atoll(db_text(rows, 0, 1)));
    db_free(rows);
    return count;
}

static bool remind(struct shop *shop, const char *run, json_t **ret_count)
{
    *ret_count = write_reminders(shop, run) ? reminded(shop, run) : NULL;
    return *ret_count;
}

enum MHD_Result reminders_post(struct request *r)
{
    const char *wanted = getenv("SHOP_KEY");
    json_t *body = json_loadb(r->body, r->length <= BODY_MAX ? r->length : 0, 0, NULL);
    const char *run = json_string_value(json_object_get(body, "run"));
    json_t *count = NULL;
    enum MHD_Result result;

    if (!wanted || !*wanted || strcmp(key_of(r), wanted) != 0)
        result = answer_error(r, MHD_HTTP_UNAUTHORIZED, NULL, "This is for Intact.");
    else if (!run || !*run || strlen(run) > 200)
        result = answer_error(r, MHD_HTTP_UNPROCESSABLE_CONTENT, "run", "Which run is it?");
    else if (!remind(r->shop, run, &count))
        result = answer_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "The database is away.");
    else
        result = answer_json(r, MHD_HTTP_OK, count);
    json_decref(body);
    return result;
}
