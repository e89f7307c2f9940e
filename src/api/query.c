/*
 * A request that is answered by one read of the store: memory, the way to the reading thread and
 * back, and the cursor and limit of lists. Used by handlers of lists.
 */

#include "api/query.h"

#include "api/body.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "json/json.h"

struct store_query *store_query_new(struct server *sv, struct http_request *r, size_t size,
                                    void (*answer)(struct http_request *r, struct store_query *it))
{
    struct arena a = {0};
    struct store_query *it = arena_alloc(&a, size);

    memset(it, 0, size);
    it->arena = a;
    it->answer = answer;
    exchange_begin(&it->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    return it;
}

static void inquiry_done(struct store_job *j)
{
    struct store_query *it = CONTAINER_OF(j, struct store_query, job);
    struct http_request *r = it->x.http;
    struct arena a = it->arena; /* it lies in it */

    if (r) {
        exchange_untie(&it->x);
        if (it->err == ERR_OK)
            it->answer(r, it);
        else
            answer_trouble(r, it->err, it->error.text);
    }
    it->x.server->load.exchanges--;
    it->x.server->load.reads_open--;
    arena_fini(&a);
}

static void inquiry_run(struct store_job *j, struct store *store)
{
    struct store_query *it = CONTAINER_OF(j, struct store_query, job);

    it->run(j, store);
    j->bytes = it->arena.total;
}

void store_query_start(struct store_query *it,
                       void (*run)(struct store_job *j, struct store *store))
{
    it->run = run;
    it->job = (struct store_job){.run = inquiry_run, .done = inquiry_done};
    reading_begin(&it->x, READING_MANY, &it->job);
}

bool page_query(struct http_request *r, size_t usual, size_t most, size_t *ret_limit,
                int64_t *ret_cursor)
{
    struct slice limit = http_query(r, "limit");
    struct slice cursor = http_query(r, "cursor");
    int64_t n = (int64_t)usual;

    if (limit.ptr && !count_of(limit, (int64_t)most, &n)) {
        http_problem(r, 422, "bad-limit", "limit is \"%.*s\", expected a number from 1 to %zu",
                     SLICE_ARG(limit), most);
        return false;
    }
    *ret_limit = (size_t)n;
    if (!cursor.ptr || count_of(cursor, INT64_MAX, ret_cursor))
        return true;
    http_problem(r, 422, "bad-cursor", "cursor is \"%.*s\", expected the `next` of an earlier page",
                 SLICE_ARG(cursor));
    return false;
}

void page_next(struct buf *b, bool more, int64_t cursor)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (more)
        buf_i64(&text, cursor);
    json_key(b, "next");
    json_string(b, more ? buf_view(&text) : SLICE_NONE);
}
