/*
 * POST /v1/signals {workflow, tags, name, data?, id?, cursor?}: one signal to every open task of a
 * workflow with these tags, at most 1 000 in one request. Tasks are found by readings, page after
 * page; then the signal is sent to each under the same key (`id`, or Idempotency-Key), as to a
 * single task. So a request that is repeated with its key reaches no task twice.
 *
 *     finding --> sending (a window of them with the scheduler) --> answered with counts
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "api/signals.h"
#include "base/log.h"
#include "base/names.h"
#include "node/access.h"
#include "node/content.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/pressure.h"
#include "node/strict.h"
#include "operations/filter.h"
#include "json/json.h"

enum {
    TASKS_MAX = 1000,
    PAGE = 250,
    WINDOW = 64, /* with the scheduler: each has a task in memory */
    TROUBLES_MAX = 8,
};

/* One task, and what became of the signal. It lies in the arena of its broadcast. */
struct sending {
    void (*answered)(struct ask *a); /* first: found through ask.user */
    struct broadcast *all;
    struct ask ask;
};

struct broadcast {
    struct exchange x;
    struct store_job job;
    struct arena arena, rows;
    struct list_query query;
    struct row_page page;
    enum err err; /* of a reading, or of a signal that may not have been stored */
    struct error error;
    struct slice caller, actor, address;
    struct signal signal;
    struct slice ids[TASKS_MAX];
    size_t count, next, open, sent; /* tasks; handed in, unanswered, reached */
    struct {
        const char *type;
        size_t count;
    } refused[TROUBLES_MAX];
    size_t refused_count;
    bool more;
    int64_t cursor;
};

/* ---- the answer ---- */

static void answer(struct http_request *r, const struct broadcast *b)
{
    CLEANUP(buf_fini) struct buf out = {0};

    json_open(&out, '{');
    json_member_text(&out, "name", b->signal.name);
    json_member_text(&out, "id", b->signal.key);
    json_key(&out, "tasks");
    json_number(&out, (int64_t)b->count);
    json_key(&out, "sent");
    json_number(&out, (int64_t)b->sent);
    json_key(&out, "refused");
    json_open(&out, '{');
    for (size_t i = 0; i < b->refused_count; i++) {
        json_key(&out, b->refused[i].type);
        json_number(&out, (int64_t)b->refused[i].count);
    }
    json_close(&out, '}');
    page_next(&out, b->more, b->cursor);
    json_close(&out, '}');
    answer_json(r, 200, &out, NULL);
}

static void broadcast_end(struct broadcast *b)
{
    struct server *sv = b->x.server;
    struct http_request *r = b->x.http;
    struct arena a = b->arena; /* it lies in it */

    ASSERT(b->open == 0);
    exchange_untie(&b->x);
    log_line(LOG_WARN, "event=signal_to_many name=%.*s tasks=%zu sent=%zu by=%.*s",
             SLICE_ARG(b->signal.name), b->count, b->sent, SLICE_ARG(b->actor));
    if (r && http_is_alive(r)) {
        if (b->err == ERR_OK)
            answer(r, b);
        else
            answer_trouble(r, b->err, b->error.text);
    }
    sv->load.exchanges--;
    arena_fini(&b->rows);
    arena_fini(&a);
}

/* ---- sending ---- */

static void count_refused(struct broadcast *b, const char *type)
{
    size_t i = 0;

    while (i < b->refused_count && strcmp(b->refused[i].type, type) != 0)
        i++;
    ASSERT(i < TROUBLES_MAX);
    b->refused[i].type = type;
    b->refused[i].count++;
    if (i == b->refused_count)
        b->refused_count++;
}

static void send_more(struct broadcast *b);

static void sending_answered(struct ask *a)
{
    struct sending *s = a->user;
    struct broadcast *b = s->all;

    b->open--;
    if (a->outcome == ERR_OK) {
        b->sent++;
    } else if (a->outcome == ERR_CONFLICT || a->outcome == ERR_NOT_FOUND) {
        count_refused(b, signal_refusal_type(a));
    } else if (!err_is_transient(a->outcome)) {
        count_refused(b, trouble_type(a->outcome)); /* a task that cannot be read stops no other */
    } else {
        b->err = a->outcome;
        (void)snprintf(b->error.text, sizeof b->error.text,
                       "at least %zu of %zu tasks were reached: send it again with the id "
                       "%.*s: %s",
                       b->sent, b->count, SLICE_ARG(b->signal.key), a->story);
    }
    send_more(b);
}

static void send_one(struct broadcast *b, struct slice id)
{
    struct sending *s = arena_alloc(&b->arena, sizeof *s);

    s->answered = sending_answered;
    s->all = b;
    s->ask = (struct ask){.kind = ASK_SIGNAL,
                          .user = s,
                          .id = id,
                          .signal = b->signal,
                          .actor = b->actor,
                          .address = b->address};
    b->open++;
    server_ask(b->x.server, &s->ask);
}

/* Whoever has gone away does not see how far it got: what is left is not sent. */
static void send_more(struct broadcast *b)
{
    bool stops = b->err != ERR_OK || !b->x.http || b->x.server->draining;

    while (!stops && b->next < b->count && b->open < WINDOW)
        send_one(b, b->ids[b->next++]);
    if (b->open > 0)
        return;
    if (b->err == ERR_OK && b->next < b->count)
        b->err = error_set(&b->error, ERR_BUSY, "the server ends: send it again");
    broadcast_end(b);
}

/* ---- finding ---- */

static void page_run(struct store_job *j, struct store *store)
{
    struct broadcast *b = CONTAINER_OF(j, struct broadcast, job);

    b->err = store->ops->list(store, &b->query, &b->rows, &b->page, &b->error);
    j->bytes = b->rows.total;
}

static void page_done(struct store_job *j);

static void page_begin(struct broadcast *b)
{
    arena_fini(&b->rows);
    b->page = (struct row_page){0};
    b->query.limit = TASKS_MAX - b->count < PAGE ? TASKS_MAX - b->count : PAGE;
    b->query.before_seq = b->cursor;
    b->job = (struct store_job){.run = page_run, .done = page_done};
    b->x.reading = &b->job;
    readings_add(b->x.server->readings, b->caller, READING_MANY, &b->job);
}

static void page_done(struct store_job *j)
{
    struct broadcast *b = CONTAINER_OF(j, struct broadcast, job);

    b->x.reading = NULL;
    for (size_t i = 0; b->err == ERR_OK && i < b->page.count; i++)
        b->ids[b->count++] = arena_copy(&b->arena, b->page.rows[i].id);
    b->more = b->page.more;
    b->cursor = b->page.next_seq;
    if (b->err == ERR_OK && b->more && b->count < TASKS_MAX && b->x.http
        && !b->x.server->draining) {
        page_begin(b);
        return;
    }
    b->x.server->load.reads_open--;
    send_more(b);
}

/* ---- the request ---- */

static bool tags_of(struct http_request *r, const struct json *j, struct broadcast *b)
{
    struct tag *tags = NULL;
    bool ok = j && j->type == JSON_OBJECT && j->count > 0 && j->count <= TAGS_MAX;

    if (ok)
        tags = arena_alloc(&b->arena, j->count * sizeof *tags);
    for (const struct json *m = ok ? j->child : NULL; m; m = m->next) {
        ok = ok && is_tag_key(m->key) && m->type == JSON_STRING && m->text.len <= TAG_VALUE_MAX;
        if (ok)
            tags[b->query.tag_count++] =
                (struct tag){arena_copy(&b->arena, m->key), arena_copy(&b->arena, m->text)};
    }
    b->query.tags = tags;
    if (!ok)
        http_problem(r, 422, "bad-tags",
                     "tags: expected 1 to %d of them, {\"KEY\": \"VALUE\"}: a signal to all tasks "
                     "of a workflow is not possible",
                     TAGS_MAX);
    return ok;
}

static bool name_of(struct http_request *r, const struct json *j, const char *member,
                    struct slice *ret)
{
    *ret = json_get_text(j, member);
    if (is_name(*ret))
        return true;
    http_problem(r, 422, "bad-signal", "%s: expected the name of a %s", member,
                 strcmp(member, "name") == 0 ? "signal" : member);
    return false;
}

static bool cursor_of(struct http_request *r, const struct json *j, int64_t *ret)
{
    const struct json *cursor = json_get(j, "cursor");

    if (!cursor || cursor->type == JSON_NULL
        || (cursor->type == JSON_STRING && count_of(cursor->text, INT64_MAX, ret)))
        return true;
    http_problem(r, 422, "bad-cursor", "cursor: expected the `next` of an earlier answer");
    return false;
}

static bool key_of(struct server *sv, struct http_request *r, const struct json *j,
                   struct broadcast *b)
{
    const struct json *id = json_get(j, "id");

    if (!id)
        return signal_key_of(sv, r, &b->arena, &b->signal.key);
    b->signal.key = id->type == JSON_STRING ? arena_copy(&b->arena, id->text) : SLICE_NONE;
    if (b->signal.key.ptr && is_signal_key(b->signal.key))
        return true;
    http_problem(r, 422, "bad-key", "id: expected 1 to %d printable characters without spaces",
                 SIGNAL_KEY_MAX);
    return false;
}

static bool may_send(struct server *sv, struct http_request *r, struct slice workflow,
                     struct slice name)
{
    if (bearer_signals(sv->api->bearer, workflow, name))
        return true;
    caller_log_forbidden(sv, r, sv->caller, "it may not send this signal to many");
    http_problem(
        r, 403, "forbidden",
        "the token \"%.*s\" may not send the signal %.*s to tasks of the workflow %.*s: it "
        "requires the role repair, or signal:%.*s/%.*s",
        SLICE_ARG(sv->caller), SLICE_ARG(name), SLICE_ARG(workflow), SLICE_ARG(workflow),
        SLICE_ARG(name));
    return false;
}

static bool read_request(struct server *sv, struct http_request *r, const struct json *j,
                         struct broadcast *b)
{
    struct slice workflow = SLICE_NONE;
    struct slice name = SLICE_NONE;
    struct slice data = json_get_raw(j, "data");

    if (!members_ok(r, j, NAMES("workflow", "tags", "name", "data", "id", "cursor"),
                    "a signal to many")
        || !name_of(r, j, "workflow", &workflow) || !name_of(r, j, "name", &name)
        || !may_send(sv, r, workflow, name) || !tags_of(r, json_get(j, "tags"), b)
        || !cursor_of(r, j, &b->cursor) || !key_of(sv, r, j, b))
        return false;
    if (data.len > SIGNAL_DATA_MAX) {
        http_problem(r, 413, "too-big", "the signal has %zu bytes, expected at most %d", data.len,
                     SIGNAL_DATA_MAX);
        return false;
    }
    b->query.workflow = arena_copy(&b->arena, workflow);
    b->signal.name = arena_copy(&b->arena, name);
    b->signal.data.json = arena_copy(&b->arena, data.ptr ? data : SLICE("null"));
    b->signal.content = signal_content(sv, json_get(j, "data"), &b->arena);
    return true;
}

void signals_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct task_filter open = {.step = SLICE("")};
    struct arena a = {0};

    if (!j || !reading_has_room(sv, r, READING_MANY) || !asks_have_room(sv, r, 0))
        return;
    struct broadcast *b = arena_alloc(&a, sizeof *b);
    *b = (struct broadcast){.arena = a};
    filter_default_states(&open);
    b->query.states = open.query.states;
    b->query.closed = LIST_WITHOUT;
    if (!read_request(sv, r, j, b)) {
        a = b->arena;
        arena_fini(&a);
        return;
    }
    b->caller = arena_copy(&b->arena, sv->caller);
    b->actor = b->caller;
    b->address = caller_address(sv, r, &b->arena);
    exchange_begin(&b->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    page_begin(b);
}
