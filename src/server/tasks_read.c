#include "server/internal.h"

#include <stdlib.h>

#include "base/when.h"
#include "store/codec.h"
#include "json/json.h"

/* ---- GET /v1/tasks/{id}, with ?wait= ---- */

/* Those who wait for the end of one task. */
struct wait_list {
    struct arena arena; /* of the id */
    struct slice id;
    struct link readers;
};

struct reader {
    struct exchange x;
    struct store_job job;
    struct arena arena;
    struct slice id;
    struct link link; /* in its wait_list */
    struct wait_list *waits_in;
    int64_t wait_until; /* 0: answers with whatever there is */
    int status;
    uv_timer_t timer; /* the end of the wait */
    bool timer_open, reading;
    struct task_row row;
    enum err err;
    struct error error;
};

static void reader_free(struct reader *rd)
{
    struct arena a = rd->arena; /* it lies in it */

    arena_fini(&a);
}

static void timer_closed(uv_handle_t *h)
{
    struct reader *rd = h->data;

    rd->timer_open = false;
    if (!rd->reading)
        reader_free(rd);
}

static void wait_list_free(struct wait_list *list)
{
    arena_fini(&list->arena);
    free(list);
}

static void stop_waiting(struct reader *rd)
{
    struct wait_list *list = rd->waits_in;

    link_remove(&rd->link);
    rd->waits_in = NULL;
    if (!list || !list_empty(&list->readers))
        return;
    (void)map_remove(&rd->x.server->waits, list->id);
    wait_list_free(list);
}

static void reader_end(struct reader *rd)
{
    stop_waiting(rd);
    rd->x.server->exchange_count--;
    if (rd->timer_open)
        uv_close((uv_handle_t *)&rd->timer, timer_closed);
    else
        reader_free(rd);
}

static void answer_task(struct reader *rd)
{
    struct server *sv = rd->x.server;
    struct http_request *r = rd->x.http;
    const struct definition *d = NULL;
    struct task t;
    CLEANUP(buf_fini) struct buf b = {0};

    exchange_untie(&rd->x);
    if (rd->err == ERR_NOT_FOUND) {
        http_problem(r, 404, "no-such-task", "there is no task %.*s", SLICE_ARG(rd->id));
        return;
    }
    if (rd->err != ERR_OK) {
        answer_trouble(r, rd->err, rd->error.text);
        return;
    }
    d = registry_find(&sv->workflows, rd->row.workflow, rd->row.version);
    if (!d || task_decode(&d->workflow, &rd->row, &rd->arena, &t, &rd->error) != ERR_OK) {
        http_problem(r, 500, "task-unreadable", "task %.*s cannot be read: %s", SLICE_ARG(rd->id),
                     d ? rd->error.text : "its workflow is not in the store");
        return;
    }
    render_task(&b, &d->workflow, &t, &rd->row);
    answer_json(r, rd->status, &b, NULL);
}

static void read_run(struct store_job *j, struct store *store)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);

    rd->err = store->ops->get(store, rd->id, &rd->arena, &rd->row, &rd->error);
}

static void begin_reading(struct reader *rd);

static void wait_over(uv_timer_t *t)
{
    struct reader *rd = t->data;

    rd->wait_until = 0;
    stop_waiting(rd);
    if (!rd->reading)
        begin_reading(rd);
}

static void begin_waiting(struct reader *rd)
{
    struct server *sv = rd->x.server;
    struct wait_list *list = map_get(&sv->waits, rd->id);

    if (!list) {
        list = calloc(1, sizeof *list);
        ASSERT(list);
        list->id = arena_copy(&list->arena, rd->id);
        list_init(&list->readers);
        map_put(&sv->waits, list->id, list);
    }
    rd->waits_in = list;
    list_push(&list->readers, &rd->link);
    if (rd->timer_open)
        return;
    int rc = uv_timer_init(&sv->loop, &rd->timer);
    ASSERT(rc == 0);
    rd->timer.data = rd;
    rd->timer_open = true;
    int64_t left = max_i64(1, rd->wait_until - server_now(sv));
    (void)uv_timer_start(&rd->timer, wait_over, (uint64_t)left,
                         0); /* cannot fail: it has a callback */
}

static void read_done(struct store_job *j)
{
    struct reader *rd = CONTAINER_OF(j, struct reader, job);
    enum task_state st = rd->row.state;
    bool ended = rd->err != ERR_OK || task_state_is_end(st) || st == TASK_ERROR;

    rd->reading = false;
    if (!rd->x.http) {
        reader_end(rd);
    } else if (!ended && !rd->x.server->draining && rd->wait_until > server_now(rd->x.server)) {
        begin_waiting(rd);
    } else {
        answer_task(rd);
        reader_end(rd);
    }
}

static void begin_reading(struct reader *rd)
{
    ASSERT(!rd->reading);
    rd->reading = true;
    rd->job = (struct store_job){.run = read_run, .done = read_done};
    rd->x.server->store->submit(rd->x.server->store, &rd->job);
}

static void reader_gone(struct exchange *x)
{
    struct reader *rd = CONTAINER_OF(x, struct reader, x);

    if (!rd->reading)
        reader_end(rd);
}

void waiters_tell(struct server *sv, struct slice id)
{
    struct wait_list *list = map_remove(&sv->waits, id);

    if (!list)
        return;
    for (struct link *l = NULL; (l = list_first(&list->readers));) {
        struct reader *rd = CONTAINER_OF(l, struct reader, link);
        link_remove(l);
        rd->waits_in = NULL;
        begin_reading(rd);
    }
    wait_list_free(list);
}

void waiters_drain(struct server *sv)
{
    const struct wait_list *list = NULL;

    for (size_t i = 0; (list = map_next(&sv->waits, &i)); i = 0)
        waiters_tell(sv, list->id);
}

void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         int64_t wait_ms, int status)
{
    struct arena a = {0};
    struct reader *rd = arena_alloc(&a, sizeof *rd);

    rd->arena = a;
    rd->id = arena_copy(&rd->arena, id);
    rd->status = status;
    rd->wait_until = wait_ms > 0 ? server_now(sv) + wait_ms : 0;
    exchange_begin(&rd->x, sv, r);
    rd->x.gone = reader_gone;
    sv->exchange_count++;
    begin_reading(rd);
}

void task_get(struct server *sv, struct http_request *r)
{
    int64_t wait_ms = 0;
    struct slice id = http_segment(r, 2);

    if (!wait_of(r, &wait_ms))
        return;
    if (!id.ptr)
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
    else if (wait_ms > 0 && !door_may_wait(sv))
        door_refuse_to_wait(sv, r);
    else
        task_get_when_ended(sv, r, id, wait_ms, 200);
}

/* ---- GET /v1/tasks ---- */

enum { LIST_DEFAULT = 50, LIST_MAX = 500 };

struct lister {
    struct exchange x;
    struct store_job job;
    struct arena arena;
    struct list_query query;
    struct row_page page;
    enum err err;
    struct error error;
};

static void list_run(struct store_job *j, struct store *store)
{
    struct lister *ls = CONTAINER_OF(j, struct lister, job);

    ls->err = store->ops->list(store, &ls->query, &ls->arena, &ls->page, &ls->error);
}

static void answer_list(struct http_request *r, const struct lister *ls)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "tasks");
    json_open(&b, '[');
    for (size_t i = 0; i < ls->page.count; i++)
        render_summary(&b, &ls->page.rows[i]);
    json_close(&b, ']');
    json_key(&b, "next");
    if (ls->page.more) {
        CLEANUP(buf_fini) struct buf cursor = {0};
        buf_i64(&cursor, ls->page.rows[ls->page.count - 1].seq);
        json_string(&b, buf_view(&cursor));
    } else {
        json_null(&b);
    }
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void list_done(struct store_job *j)
{
    struct lister *ls = CONTAINER_OF(j, struct lister, job);
    struct http_request *r = ls->x.http;
    struct arena a = ls->arena; /* it lies in it */

    if (r) {
        exchange_untie(&ls->x);
        if (ls->err == ERR_OK)
            answer_list(r, ls);
        else
            answer_trouble(r, ls->err, ls->error.text);
    }
    ls->x.server->exchange_count--;
    arena_fini(&a);
}

/* What is misspelt must not list everything. */
static bool query_is_known(struct http_request *r)
{
    static const char *const known[] = {"state", "workflow", "limit", "cursor"};
    struct slice name, value;

    for (size_t at = 0; http_query_next(r, &at, &name, &value);) {
        bool found = false;
        for (size_t i = 0; i < COUNT_OF(known); i++)
            found |= slice_is(name, known[i]);
        if (!found) {
            http_problem(
                r, 422, "unknown-parameter",
                "there is no parameter \"%.*s\", expected state, workflow, limit or cursor",
                SLICE_ARG(name));
            return false;
        }
    }
    return true;
}

static bool read_query(struct http_request *r, struct list_query *q)
{
    struct slice state = http_query(r, "state");
    struct slice limit = http_query(r, "limit");
    struct slice cursor = http_query(r, "cursor");
    int64_t n = LIST_DEFAULT;

    q->any_state = !state.ptr;
    if (state.ptr && !task_state_parse(state, &q->state)) {
        http_problem(r, 422, "bad-state",
                     "state is \"%.*s\", expected pending, processing, processed, compensating, "
                     "compensated or error",
                     SLICE_ARG(state));
        return false;
    }
    if (limit.ptr && !count_of(limit, LIST_MAX, &n)) {
        http_problem(r, 422, "bad-limit", "limit must be a number from 1 to %d", LIST_MAX);
        return false;
    }
    q->limit = (size_t)n;
    if (cursor.ptr && !count_of(cursor, INT64_MAX, &q->before_seq)) {
        http_problem(r, 422, "bad-cursor", "cursor must be the `next` of an earlier page");
        return false;
    }
    q->workflow = http_query(r, "workflow");
    return true;
}

void tasks_list(struct server *sv, struct http_request *r)
{
    struct arena a = {0};
    struct list_query q = {0};

    if (!query_is_known(r) || !read_query(r, &q))
        return;
    struct lister *ls = arena_alloc(&a, sizeof *ls);
    ls->arena = a;
    ls->query = q;
    ls->query.workflow = arena_copy(&ls->arena, q.workflow);
    exchange_begin(&ls->x, sv, r);
    sv->exchange_count++;
    ls->job = (struct store_job){.run = list_run, .done = list_done};
    sv->store->submit(sv->store, &ls->job);
}
