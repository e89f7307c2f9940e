/*
 * POST /v1/submissions/refused {source, reason, id?, message_id?, submission? | message?}: a queue
 * delivered something that cannot be a task. The reader of the queue stores it here before it
 * acknowledges the message. A submission is stored by its members, so that it can be retried; any
 * other message is kept as input.
 */

#include <openssl/evp.h>

#include "api/body.h"
#include "api/handlers.h"
#include "base/log.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { SOURCE_MAX = 256, REASON_MAX = 1000 };

struct put_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct submission_row row;
    enum err err;
    struct error error;
};

static void put_run(struct store_job *j, struct store *store)
{
    struct put_call *c = CONTAINER_OF(j, struct put_call, job);

    c->err = store->ops->submissions->put(store, &c->row, 1, &c->error);
}

static void put_done(struct store_job *j)
{
    struct put_call *c = CONTAINER_OF(j, struct put_call, job);
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = c->arena;
    CLEANUP(buf_fini) struct buf b = {0};

    if (c->err == ERR_OK) {
        CLEANUP(buf_fini) struct buf source = {0};
        log_word(&source, c->row.source);
        log_line(LOG_WARN, "event=submission_refused source=%s", source.ptr);
    }
    if (r) {
        exchange_untie(&c->x);
        if (c->err == ERR_INVALID) {
            http_problem(r, 422, "bad-submission", "%s", c->error.text);
        } else if (c->err != ERR_OK) {
            answer_trouble(r, c->err, c->error.text);
        } else {
            buf_str(&b, "{\"submissions\":1,\"more\":false}");
            answer_json(r, 201, &b, NULL);
        }
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

/* A text as it is; of what is none, its JSON. */
static struct slice column(struct arena *a, const struct json *submission, const char *key)
{
    const struct json *j = json_get(submission, key);

    if (!j || j->type == JSON_NULL)
        return SLICE_NONE;
    return arena_copy(a, j->type == JSON_STRING ? j->text : j->raw);
}

static void take_apart(struct arena *a, const struct json *s, struct submission_row *row)
{
    row->id = column(a, s, "id");
    row->workflow = column(a, s, "workflow");
    row->version = column(a, s, "version");
    row->priority = column(a, s, "priority");
    row->not_before = column(a, s, "not_before");
    row->reply_to = column(a, s, "reply_to");
    row->tags = arena_copy(a, json_get_raw(s, "tags"));
    row->input = arena_copy(a, json_get_raw(s, "input"));
}

/* A queue delivers a message again if its reader was killed before it acknowledged it. The message
 * is recognised by its id and its content, since not all ids are unique. */
static void set_key(const struct json *j, struct put_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf hex = {0};
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const struct json *submission = json_get(j, "submission");

    if (!json_get_text(j, "message_id").ptr)
        return;
    buf_slice(&b, json_get_text(j, "message_id"));
    buf_byte(&b, '\n');
    buf_slice(&b, submission ? submission->raw : json_get_text(j, "message"));
    int ok = EVP_Digest(b.ptr, b.len, sum, &len, EVP_sha256(), NULL);
    ASSERT(ok == 1); /* memory alone could fail */
    for (unsigned i = 0; i < len; i++)
        buf_fmt(&hex, "%02x", sum[i]);
    c->row.key = arena_copy(&c->arena, buf_view(&hex));
}

static bool refuse(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-submission", "%s", what);
    return false;
}

static bool put_ok(struct http_request *r, const struct json *j)
{
    struct slice source = json_get_text(j, "source");
    struct slice reason = json_get_text(j, "reason");
    const struct json *submission = json_get(j, "submission");
    const struct json *message = json_get(j, "message");

    if (!members_ok(r, j, NAMES("source", "reason", "id", "message_id", "submission", "message"),
                    "a refused submission"))
        return false;
    if (source.len <= 5 || source.len > SOURCE_MAX || memcmp(source.ptr, "amqp:", 5) != 0)
        return refuse(r, "source must name the queue of the submission, such as \"amqp:orders\"");
    if (reason.len == 0 || reason.len > REASON_MAX)
        return refuse(r, "reason must be a text of at most 1000 bytes");
    if (submission && submission->type != JSON_OBJECT)
        return refuse(r, "submission must be an object");
    if (message && (message->type != JSON_STRING || submission))
        return refuse(r, "message must be a string, and excludes submission");
    return true;
}

void submissions_put_refused(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct arena a = {0};

    if (!j || !put_ok(r, j) || !quota_submits(sv->quotas, r->account, r, 1)
        || !asks_have_room(sv, r, 0))
        return;
    struct put_call *c = arena_alloc(&a, sizeof *c);
    *c = (struct put_call){.arena = a};
    c->row = (struct submission_row){
        .source = arena_copy(&c->arena, json_get_text(j, "source")),
        .reason = arena_copy(&c->arena, json_get_text(j, "reason")),
        .submitted_at = server_now(sv),
        .refused_at = server_now(sv),
    };
    if (json_get(j, "submission"))
        take_apart(&c->arena, json_get(j, "submission"), &c->row);
    else
        c->row.input = arena_copy(&c->arena, json_get_text(j, "message"));
    if (!c->row.id.ptr)
        c->row.id = arena_copy(&c->arena, json_get_text(j, "id"));
    set_key(j, c);
    c->job = (struct store_job){.run = put_run, .done = put_done};
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &c->job);
}
