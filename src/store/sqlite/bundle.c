/*
 * Messages that were not set aside: a row of table outbox holds what one transaction sends to one
 * target. SQLite writes whole pages, and the cost of inserts and deletes is by rows, so many
 * messages go into one row; a large row lies on pages that need not be written again to be freed.
 *
 * A row is deleted when all of its messages are settled; until then outbox_settled has the numbers
 * of the settled ones. Such a number always has its row, otherwise a number that is given again
 * would be lost.
 */
#include "store/sqlite/body.h"

#include <stdlib.h>

#include "base/pen.h"
#include "store/codec/envelope.h"
#include "json/json.h"

enum {
    BUNDLE_COUNT = 128,
    BUNDLE_BYTES = 48 << 10, /* about */
    COUNT_MAX = 1 << 16,     /* no row ever had more */
};

/* ---- with changes ---- */

/* One in the making. */
struct bundle {
    struct buf text;
    const struct message *first;
    size_t count;
};

static int last_seq(struct db *d, int64_t *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OUTBOX_LAST, &q);
    if (rc != SQLITE_OK)
        return rc;
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    *ret = sqlite3_column_int64(q, 0);
    return SQLITE_OK;
}

static int bundle_insert(struct sqlite_store *s, struct bundle *b)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    if (b->count == 0)
        return SQLITE_OK;
    buf_byte(&b->text, ']');
    int rc = db_query(&s->writer, SQL_OUTBOX_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, s->message_seq - (int64_t)b->count + 1);
    bind_number(q, 2, (int64_t)b->count);
    bind_text(q, 3, b->first->target);
    bind_text(q, 4, b->first->source);
    bind_number(q, 5, b->first->created_at);
    bind_text(q, 6, buf_view(&b->text));
    rc = query_run(q);
    buf_clear(&b->text);
    b->count = 0;
    return rc;
}

static bool bundle_takes(const struct bundle *b, const struct message *m)
{
    return b->count < BUNDLE_COUNT && b->text.len < BUNDLE_BYTES
           && slice_eq(b->first->target, m->target) && slice_eq(b->first->source, m->source);
}

/* Ids and names need no escape. */
static void bundle_add(struct bundle *b, struct slice task, const struct message *m)
{
    struct buf *t = &b->text;

    if (b->count++ == 0)
        b->first = m;
    char *at = pen_begin(t, 40 + task.len + m->name.len);
    *at++ = t->len ? ',' : '[';
    at = PEN(at, "{\"task\":\"");
    at = pen_slice(at, task);
    at = PEN(at, "\",\"name\":\"");
    at = pen_slice(at, m->name);
    at = PEN(at, "\",\"at\":");
    pen_end(t, at);
    buf_i64(t, m->created_at);
    if (m->data.ptr) {
        buf_str(t, ",\"sequence\":");
        buf_i64(t, (int64_t)m->sequence);
    }
    struct slice json = m->data.ptr ? m->data : m->body;
    at = pen_begin(t, 10 + json.len);
    at = m->data.ptr ? PEN(at, ",\"data\":") : PEN(at, ",\"body\":");
    at = pen_slice(at, json);
    at = PEN(at, "}");
    pen_end(t, at);
}

static int change_add(struct sqlite_store *s, struct bundle *b, struct change *c)
{
    int rc = SQLITE_OK;

    c->first_message = s->message_seq + 1;
    for (size_t i = 0; rc == SQLITE_OK && i < c->message_count; i++) {
        if (b->count > 0 && !bundle_takes(b, &c->messages[i]))
            rc = bundle_insert(s, b);
        bundle_add(b, c->row.id, &c->messages[i]);
        s->message_seq++;
    }
    return rc;
}

static int target_order(const void *a, const void *b)
{
    const struct change *x = *(struct change *const *)a;
    const struct change *y = *(struct change *const *)b;
    int order = slice_order(x->messages[0].target, y->messages[0].target);

    return order ? order : (x > y) - (x < y);
}

/* Changes with messages, target by target; those of one task and target in their order. */
static struct change **telling_changes(struct batch *b, struct arena *a, size_t *ret_count)
{
    struct change **list = arena_alloc(a, (b->change_count + 1) * sizeof(struct change *));
    size_t count = 0;
    bool mixed = false;

    for (size_t i = 0; i < b->change_count; i++) {
        struct change *c = &b->changes[i];
        if (c->message_count == 0 || c->outcome != ERR_OK)
            continue;
        list[count++] = c;
        mixed |= !slice_eq(c->messages[0].target, list[0]->messages[0].target);
    }
    if (mixed)
        qsort(list, count, sizeof(struct change *), target_order);
    *ret_count = count;
    return list;
}

/* Numbers rise for as long as this process has the store: no other process assigns any. The last
 * one is found at its start, when a reader may have seen it: later it may be gone. */
int messages_begin(struct sqlite_store *s)
{
    return last_seq(&s->writer, &s->message_seq);
}

int messages_insert(struct sqlite_store *s, struct batch *b, struct arena *a)
{
    struct bundle bundle = {0};
    size_t count = 0;
    int rc = SQLITE_OK;

    struct change **list = telling_changes(b, a, &count);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = change_add(s, &bundle, list[i]);
    if (rc == SQLITE_OK)
        rc = bundle_insert(s, &bundle);
    buf_fini(&bundle.text);
    return rc;
}

/* ---- reading ---- */

/* The numbers of a row whose messages are settled, rising. */
static int settled_read(struct db *d, int64_t from, int64_t count, struct arena *a, int64_t **ret,
                        size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int64_t *list = NULL;
    int rc = db_query(d, SQL_OUTBOX_SETTLED, &q);

    if (rc != SQLITE_OK)
        return rc;
    *ret_count = 0;
    if (count < 0 || count > COUNT_MAX)
        return SQLITE_CORRUPT;
    bind_number(q, 1, from);
    bind_number(q, 2, from + count - 1);
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (!list)
            list = arena_alloc(a, (size_t)count * sizeof *list);
        if (*ret_count == (size_t)count)
            return SQLITE_CORRUPT;
        list[(*ret_count)++] = sqlite3_column_int64(q, 0);
    }
    *ret = list;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* `m` has what is the same for the whole row. */
static void element_read(const struct json *j, struct message *m, struct arena *a)
{
    CLEANUP(buf_fini) struct buf body = {0};
    struct slice whole = json_get_raw(j, "body");

    m->task = arena_copy(a, json_get_text(j, "task"));
    m->name = arena_copy(a, json_get_text(j, "name"));
    m->created_at = m->since = json_get_int(j, "at", 0);
    if (whole.ptr) {
        m->body = arena_copy(a, whole);
        return;
    }
    m->sequence = (uint64_t)json_get_int(j, "sequence", 0);
    envelope_begin(&body, m);
    json_raw(&body, json_get_raw(j, "data"));
    buf_byte(&body, '}');
    m->body = arena_copy(a, buf_view(&body));
}

struct reading_bundles {
    const struct bundle_query *want;
    struct message_page *page;
    struct arena *arena;
    size_t bytes;
};

static bool is_full(const struct reading_bundles *r)
{
    return r->page->count == r->want->limit
           || (r->page->count > 0 && r->bytes >= r->want->bytes_max);
}

static bool wants(const struct bundle_query *want, const struct json *j, int64_t seq)
{
    return seq > want->after_seq
           && (!want->task.ptr || slice_eq(want->task, json_get_text(j, "task")));
}

static int bundle_read(struct reading_bundles *r, struct db *d, sqlite3_stmt *q)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct message m = {.seq = sqlite3_column_int64(q, 0) - 1};
    int64_t *settled = NULL;
    size_t count = 0;
    size_t at = 0;
    struct json *list = NULL;

    int rc = settled_read(d, m.seq + 1, sqlite3_column_int64(q, 1), &own, &settled, &count);
    if (rc != SQLITE_OK)
        return rc;
    if (json_parse(&own, query_text(q, 4), &list, NULL) != ERR_OK)
        return SQLITE_CORRUPT;
    m.target = arena_copy(r->arena, query_text(q, 2));
    m.source = query_text(q, 3); /* ours only for as long */
    for (const struct json *j = list->child; j; j = j->next) {
        m.seq++;
        while (at < count && settled[at] < m.seq)
            at++;
        if ((at < count && settled[at] == m.seq) || !wants(r->want, j, m.seq))
            continue;
        r->page->more = is_full(r);
        if (r->page->more)
            return SQLITE_OK;
        struct message *to = &r->page->messages[r->page->count++];
        *to = m;
        element_read(j, to, r->arena);
        to->source = SLICE_NONE;
        r->bytes += to->body.len;
    }
    return SQLITE_OK;
}

int bundles_read(struct db *d, const struct bundle_query *want, struct arena *a,
                 struct message_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct reading_bundles r = {.want = want, .page = ret, .arena = a};

    *ret = (struct message_page){.messages =
                                     arena_alloc(a, (want->limit + 1) * sizeof *ret->messages)};
    int rc = db_query(d, SQL_OUTBOX_READ, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, want->after_seq);
    bind_text(q, 2, want->target);
    while (!ret->more && (rc = query_step(q)) == SQLITE_ROW) {
        rc = bundle_read(&r, d, q);
        if (rc != SQLITE_OK)
            return rc;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- what became of them ---- */

static int run_range(struct db *d, enum sql which, int64_t from, int64_t to)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, from);
    bind_number(q, 2, to);
    return query_run(q);
}

static int number_of(struct db *d, enum sql which, int64_t from, int64_t to, int64_t ret[2])
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    ret[0] = ret[1] = 0;
    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, from);
    if (which == SQL_OUTBOX_SETTLED_COUNT)
        bind_number(q, 2, to);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    ret[0] = sqlite3_column_int64(q, 0);
    if (which == SQL_OUTBOX_HOLDS)
        ret[1] = sqlite3_column_int64(q, 1);
    return SQLITE_OK;
}

static int settle_numbers(struct db *d, int64_t from, int64_t to)
{
    int rc = SQLITE_OK;

    for (int64_t i = from; rc == SQLITE_OK && i <= to; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        rc = db_query(d, SQL_OUTBOX_SETTLE, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_number(q, 1, i);
        rc = query_run(q);
    }
    return rc;
}

/* Settles those of the row, if there is one, that has `number` and others outside the range.
 * *ret_last is its last number, or `number`. */
static int settle_part(struct db *d, int64_t number, int64_t from, int64_t to, int64_t *ret_last)
{
    int64_t row[2] = {0};
    int64_t settled[2] = {0};

    *ret_last = number;
    int rc = number_of(d, SQL_OUTBOX_HOLDS, number, 0, row);
    int64_t last = row[0] + row[1] - 1;
    if (rc != SQLITE_OK || last < number)
        return rc;
    *ret_last = last;
    rc = settle_numbers(d, max_i64(from, row[0]), min_i64(to, last));
    if (rc == SQLITE_OK)
        rc = number_of(d, SQL_OUTBOX_SETTLED_COUNT, row[0], last, settled);
    if (rc != SQLITE_OK || settled[0] < row[1])
        return rc;
    rc = run_range(d, SQL_OUTBOX_DELETE, row[0], last);
    return rc == SQLITE_OK ? run_range(d, SQL_OUTBOX_SETTLED_DELETE, row[0], last) : rc;
}

int bundles_settle(struct db *d, int64_t from, int64_t to)
{
    int64_t last = 0;

    int rc = run_range(d, SQL_OUTBOX_DELETE, from, to);
    /* Those of rows that are still there come again below. */
    if (rc == SQLITE_OK)
        rc = run_range(d, SQL_OUTBOX_SETTLED_DELETE, from, to);
    if (rc == SQLITE_OK)
        rc = settle_part(d, from, from, to, &last);
    return rc == SQLITE_OK && last < to ? settle_part(d, to, from, to, &last) : rc;
}
