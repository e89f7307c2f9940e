/*
 * GET /v1/audit: the record of changes made by people, newest first, with the addresses that
 * render_audit leaves out.
 */

#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "http/http.h"
#include "node/json_answer.h"
#include "node/pressure.h"
#include "node/readings.h"
#include "node/strict.h"
#include "node/task_json.h"
#include "json/json.h"

static void text_or_null(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    json_string(b, text);
}

/* The address that the proxy reports follows its own. */
static void render_address(struct buf *b, struct slice address)
{
    const size_t skip = strlen(ADDRESS_FOR);
    const char *at = address.ptr ? memmem(address.ptr, address.len, ADDRESS_FOR, skip) : NULL;
    struct slice from = SLICE_NONE;

    if (at) {
        from = (struct slice){at + skip, (size_t)(address.ptr + address.len - at) - skip};
        address.len = (size_t)(at - address.ptr);
    }
    text_or_null(b, "address", address);
    text_or_null(b, "forwarded_for", from);
}

static void render_entry(struct buf *b, const struct audit *a)
{
    render_audit_open(b, a);
    render_address(b, a->address);
    json_close(b, '}');
}

struct audit_reader {
    struct store_query base;
    struct audit_query query;
    struct audit_page page;
};

static void audit_run(struct store_job *j, struct store *store)
{
    struct audit_reader *ar = CONTAINER_OF(j, struct audit_reader, base.job);
    struct store_query *it = &ar->base;

    it->err = store->ops->audit_list(store, &ar->query, &it->arena, &ar->page, &it->error);
}

static void answer_audit(struct http_request *r, struct store_query *it)
{
    const struct audit_reader *ar = CONTAINER_OF(it, struct audit_reader, base);
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "entries");
    json_open(&b, '[');
    for (size_t i = 0; i < ar->page.count; i++)
        render_entry(&b, &ar->page.entries[i]);
    json_close(&b, ']');
    page_next(&b, ar->page.more, ar->page.more ? ar->page.seqs[ar->page.count - 1] : 0);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

void audit_get(struct server *sv, struct http_request *r)
{
    struct audit_query q = {.task = http_query(r, "task")};

    if (!parameters_ok(r, NAMES("task", "limit", "cursor"))
        || !page_query(r, PAGE_USUAL, PAGE_MAX, &q.limit, &q.before_seq)
        || !reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct audit_reader), answer_audit);
    struct audit_reader *ar = CONTAINER_OF(it, struct audit_reader, base);
    ar->query = q;
    ar->query.task = arena_copy(&it->arena, q.task);
    store_query_start(it, audit_run);
}
