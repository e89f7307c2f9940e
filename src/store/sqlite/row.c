#include "store/sqlite/body.h"

#include "store/codec/codec.h"

/* `whole`: with the columns that never change after insertion, which no UPDATE names. */
void row_bind(sqlite3_stmt *q, const struct task_row *row, bool whole)
{
    bind_text(q, COL_ID, row->id);
    if (whole) {
        bind_text(q, COL_WORKFLOW, row->workflow);
        bind_number(q, COL_VERSION, row->version);
        bind_time(q, COL_SUBMITTED_AT, row->submitted_at);
        bind_text(q, COL_REPLY_TO, row->reply_to);
        bind_text(q, COL_TAGS, row->tags);
    }
    bind_number(q, COL_REVISION, (int64_t)row->revision);
    bind_text(q, COL_STATE, slice_of(task_state_text(row->state)));
    bind_text(q, COL_DIRECTION, slice_of(direction_text(row->direction)));
    bind_number(q, COL_PRIORITY, row->priority);
    bind_text(q, COL_LOCKED_BY, row->locked_by);
    bind_time(q, COL_COMPLETE_BY, row->complete_by);
    bind_time(q, COL_WAKE_AT, row->wake_at);
    bind_time(q, COL_NOT_BEFORE, row->not_before);
    bind_text(q, COL_WAITING_FOR, row->waiting_for);
    bind_number(q, COL_RANK, row->rank);
    bind_text(q, COL_REQUEST, row->request);
    bind_number(q, COL_FAILURE_COUNT, row->failure_count);
    bind_time(q, COL_STARTED_AT, row->started_at);
    bind_time(q, COL_ENDED_AT, row->ended_at);
    bind_text(q, COL_DOC, row->doc);
    bind_time(q, COL_PAUSED_AT, row->paused_at);
    bind_time(q, COL_CLOSED_AT, row->closed_at);
    if (!whole)
        bind_time(q, COL_FOUND_BY, row->seq);
}

static struct slice text_of(sqlite3_stmt *q, struct arena *a, int col)
{
    return arena_copy(a, query_text(q, col));
}

int row_read(sqlite3_stmt *q, struct arena *a, struct task_row *ret)
{
    struct task_row row = {
        .seq = sqlite3_column_int64(q, COL_SEQ),
        .id = text_of(q, a, COL_ID),
        .workflow = text_of(q, a, COL_WORKFLOW),
        .version = sqlite3_column_int64(q, COL_VERSION),
        .submitted_at = sqlite3_column_int64(q, COL_SUBMITTED_AT),
        .reply_to = text_of(q, a, COL_REPLY_TO),
        .tags = text_of(q, a, COL_TAGS),
        .revision = (uint64_t)sqlite3_column_int64(q, COL_REVISION),
        .priority = sqlite3_column_int(q, COL_PRIORITY),
        .locked_by = text_of(q, a, COL_LOCKED_BY),
        .complete_by = sqlite3_column_int64(q, COL_COMPLETE_BY),
        .wake_at = sqlite3_column_int64(q, COL_WAKE_AT),
        .not_before = sqlite3_column_int64(q, COL_NOT_BEFORE),
        .waiting_for = text_of(q, a, COL_WAITING_FOR),
        .rank = sqlite3_column_int64(q, COL_RANK),
        .request = text_of(q, a, COL_REQUEST),
        .failure_count = (uint32_t)sqlite3_column_int64(q, COL_FAILURE_COUNT),
        .started_at = sqlite3_column_int64(q, COL_STARTED_AT),
        .ended_at = sqlite3_column_int64(q, COL_ENDED_AT),
        .doc = text_of(q, a, COL_DOC),
        .paused_at = sqlite3_column_int64(q, COL_PAUSED_AT),
        .closed_at = sqlite3_column_int64(q, COL_CLOSED_AT),
    };

    if (!task_state_parse(query_text(q, COL_STATE), &row.state)
        || !direction_parse(query_text(q, COL_DIRECTION), &row.direction) || row.revision == 0) {
        row.state = TASK_ERROR; /* one bad row must not hold up the others: without a document */
        row.doc = SLICE_NONE;   /* whoever decodes it will find it corrupt, and set it aside */
    }
    *ret = row;
    return SQLITE_OK;
}

int row_read_payloads(struct db *d, struct arena *a, struct task_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct payload *list = NULL;
    size_t count = 0;
    size_t cap = 0;

    int rc = db_query(d, SQL_PAYLOADS, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, row->seq);
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (count == cap) {
            cap = cap ? cap * 2 : 4;
            struct payload *more = arena_alloc(a, cap * sizeof *more);
            if (count)
                memcpy(more, list, count * sizeof *more);
            list = more;
        }
        list[count].number = (uint32_t)sqlite3_column_int64(q, 0);
        list[count++].json = text_of(q, a, 1);
    }
    row->payloads = list;
    row->payload_count = count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int payload_read(struct db *d, struct arena *a, int64_t seq, uint32_t number,
                        struct slice *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_PAYLOAD, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    bind_number(q, 2, number);
    rc = query_step(q);
    *ret = rc == SQLITE_ROW ? text_of(q, a, 0) : SLICE_NONE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int row_read_groups(struct db *d, struct arena *a, struct task_row *row)
{
    uint32_t *groups = NULL;
    size_t count = doc_groups(row->doc, a, &groups);

    if (count == 0)
        return SQLITE_OK;
    struct payload *list = arena_alloc(a, count * sizeof *list);
    row->payloads = list;
    row->groups_only = true;
    for (size_t i = 0; i < count; i++) {
        struct slice json;
        int rc = payload_read(d, a, row->seq, groups[i], &json);
        if (rc != SQLITE_OK)
            return rc;
        if (json.ptr)
            list[row->payload_count++] = (struct payload){groups[i], json};
    }
    return SQLITE_OK;
}

struct task_row *rows_add(struct rows *r, struct arena *a)
{
    if (r->count == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 8;
        struct task_row *more = arena_alloc(a, r->cap * sizeof *more);
        if (r->count)
            memcpy(more, r->rows, r->count * sizeof *more);
        r->rows = more;
    }
    return &r->rows[r->count++];
}

int rows_read(sqlite3_stmt *q, struct arena *a, size_t limit, struct row_page *ret)
{
    struct rows list = {0};
    bool more = false;
    int rc;

    while ((rc = query_step(q)) == SQLITE_ROW) {
        more = list.count == limit;
        if (more)
            break;
        rc = row_read(q, a, rows_add(&list, a));
        if (rc != SQLITE_OK)
            return rc;
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        return rc;
    *ret = (struct row_page){.rows = list.rows, .count = list.count, .more = more};
    return SQLITE_OK;
}
