#include "server/internal.h"

#include "json/json.h"

enum { AUDIT_DEFAULT = 50, AUDIT_MAX = 500 };

static void text_or_null(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    json_string(b, text);
}

void render_audit(struct buf *b, const struct audit *a)
{
    json_open(b, '{');
    json_key(b, "at");
    json_time(b, a->at);
    text_or_null(b, "actor", a->actor);
    text_or_null(b, "verb", a->verb);
    text_or_null(b, "task", a->task);
    text_or_null(b, "step", a->step);
    text_or_null(b, "reason", a->reason);
    json_key(b, "detail");
    json_raw(b, a->detail);
    json_close(b, '}');
}

struct audit_reader {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct audit_query query;
    struct audit_page page;
    enum err err;
    struct error error;
};

static void audit_run(struct store_job *j, struct store *store)
{
    struct audit_reader *ar = CONTAINER_OF(j, struct audit_reader, job);

    ar->err = store->ops->audit_list(store, &ar->query, &ar->arena, &ar->page, &ar->error);
}

static void answer_audit(struct http_request *r, const struct audit_reader *ar)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "entries");
    json_open(&b, '[');
    for (size_t i = 0; i < ar->page.count; i++)
        render_audit(&b, &ar->page.entries[i]);
    json_close(&b, ']');
    json_key(&b, "next");
    if (ar->page.more) {
        CLEANUP(buf_fini) struct buf cursor = {0};
        buf_i64(&cursor, ar->page.seqs[ar->page.count - 1]);
        json_string(&b, buf_view(&cursor));
    } else {
        json_null(&b);
    }
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void audit_done(struct store_job *j)
{
    struct audit_reader *ar = CONTAINER_OF(j, struct audit_reader, job);
    struct http_request *r = ar->x.http;
    struct arena a = ar->arena;

    if (r) {
        exchange_untie(&ar->x);
        if (ar->err == ERR_OK)
            answer_audit(r, ar);
        else
            answer_trouble(r, ar->err, ar->error.text);
    }
    ar->x.server->exchange_count--;
    ar->x.server->reads_open--;
    arena_fini(&a);
}

static bool read_query(struct http_request *r, struct audit_query *q)
{
    struct slice limit = http_query(r, "limit");
    struct slice cursor = http_query(r, "cursor");
    int64_t n = AUDIT_DEFAULT;

    if (!parameters_ok(r, NAMES("task", "limit", "cursor")))
        return false;
    if (limit.ptr && !count_of(limit, AUDIT_MAX, &n)) {
        http_problem(r, 422, "bad-limit", "limit is \"%.*s\", expected a number from 1 to %d",
                     SLICE_ARG(limit), AUDIT_MAX);
        return false;
    }
    if (cursor.ptr && !count_of(cursor, INT64_MAX, &q->before_seq)) {
        http_problem(r, 422, "bad-cursor",
                     "cursor is \"%.*s\", expected the `next` of an earlier page",
                     SLICE_ARG(cursor));
        return false;
    }
    q->task = http_query(r, "task");
    q->limit = (size_t)n;
    return true;
}

void audit_get(struct server *sv, struct http_request *r)
{
    struct audit_query q = {0};
    struct arena a = {0};

    if (!read_query(r, &q) || !reads_have_room(sv, r))
        return;
    struct audit_reader *ar = arena_alloc(&a, sizeof *ar);
    *ar = (struct audit_reader){.arena = a, .query = q};
    ar->query.task = arena_copy(&ar->arena, q.task);
    exchange_begin(&ar->x, sv, r);
    sv->exchange_count++;
    sv->reads_open++;
    ar->job = (struct store_job){.run = audit_run, .done = audit_done};
    sv->store->submit(sv->store, &ar->job);
}
