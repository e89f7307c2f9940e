/* GET /v1/locks: the tasks that hold a lock, and how many wait for each, page by page. Read on
 * the reading thread (node/readings.h); answered on the event loop. routes.c has the table of
 * routes. */

#include "api/handlers.h"
#include "api/query.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/pressure.h"
#include "node/readings.h"
#include "node/strict.h"
#include "json/json.h"

struct locks_query {
    struct store_query head; /* first */
    struct lock_query query;
    struct lock_page page;
};

static void run(struct store_job *j, struct store *store)
{
    struct locks_query *q = CONTAINER_OF(j, struct locks_query, head.job);

    q->head.err =
        store->ops->locks->list(store, &q->query, &q->head.arena, &q->page, &q->head.error);
}

static void render(struct buf *b, const struct lock_holder *h)
{
    json_open(b, '{');
    json_key(b, "lock");
    json_string(b, h->lock);
    json_key(b, "task");
    json_string(b, h->task);
    json_key(b, "since");
    json_time(b, h->since);
    json_key(b, "waiting");
    json_number(b, (int64_t)h->waiting);
    json_close(b, '}');
}

static void answer(struct http_request *r, struct store_query *it)
{
    const struct locks_query *q = CONTAINER_OF(it, struct locks_query, head);
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "locks");
    json_open(&b, '[');
    for (size_t i = 0; i < q->page.count; i++)
        render(&b, &q->page.holders[i]);
    json_close(&b, ']');
    page_next(&b, q->page.more, q->page.more ? q->page.holders[q->page.count - 1].seq : 0);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

void locks_list(struct server *sv, struct http_request *r)
{
    struct lock_query want = {.lock = http_query(r, "lock")};

    if (!parameters_ok(r, NAMES("lock", "limit", "cursor"))
        || !page_query(r, PAGE_USUAL, PAGE_MAX, &want.limit, &want.after_seq)
        || !reading_has_room(sv, r, READING_MANY))
        return;
    struct locks_query *q =
        CONTAINER_OF(store_query_new(sv, r, sizeof *q, answer), struct locks_query, head);
    q->query = want;
    q->query.lock = arena_copy(&q->head.arena, want.lock);
    store_query_start(&q->head, run);
}
