/*
 * Rows of tasks in SQLite: bound to a statement, and read from a result, with their payloads. The
 * columns are those of rows/task.h, the statements those of sql.c.
 */
#include "store/sqlite/columns.h"

#include "store/codec/codec.h"

void row_params(struct db *d, enum sql which)
{
    unsigned char *at = d->task_params[which - SQL_INSERT];
    sqlite3_stmt *q = d->stmts[which];

#define FIND(name, type, how) \
    at[task_column_##name] = (unsigned char)sqlite3_bind_parameter_index(q, ":" #name);
    FIND(seq, time, )
    FIND(id, text, )
    TASK_COLUMNS(FIND, )
}

static void bind_state(sqlite3_stmt *q, int i, enum task_state state)
{
    bind_text(q, i, slice_of(task_state_text(state)));
}

static void bind_direction(sqlite3_stmt *q, int i, enum direction direction)
{
    bind_text(q, i, slice_of(direction_text(direction)));
}

void row_bind(struct db *d, enum sql which, const struct task_row *row)
{
    const unsigned char *at = d->task_params[which - SQL_INSERT];
    sqlite3_stmt *q = d->stmts[which];
    int col = 0;

#define BIND_TASK(name, type, how) \
    col = at[task_column_##name];  \
    if (col != 0)                  \
    BIND(name, type)
#define BIND_state(v)     bind_state(q, col, v);
#define BIND_direction(v) bind_direction(q, col, v);
    BIND_TASK(seq, time, )
    BIND_TASK(id, text, )
    TASK_COLUMNS(BIND_TASK, )
}

/* Most tasks have neither a lock nor a family: then the other columns of these are not read. */
static bool is_missing(enum task_column column, const struct task_row *row)
{
    if (column == task_column_root)
        return !row->parent.ptr;
    if (column == task_column_lock_max || column == task_column_lock_mode
        || column == task_column_lock_since)
        return !row->lock.ptr;
    return false;
}

int row_read(sqlite3_stmt *q, struct arena *a, struct task_row *ret)
{
    struct task_row row = {0};
    bool sound = true;
    int col = 0;

#define READ_TASK(name, type, how)            \
    if (is_missing(task_column_##name, &row)) \
        col++;                                \
    else {                                    \
        READ(name, type)                      \
    }
#define READ_state(field)     sound &= task_state_parse(query_text(q, col++), &(field));
#define READ_direction(field) sound &= direction_parse(query_text(q, col++), &(field));
    READ(seq, number)
    READ(id, text)
    TASK_COLUMNS(READ_TASK, )
    if (!sound || row.revision == 0) {
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
        list[count++].json = arena_copy(a, query_text(q, 1));
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
    *ret = rc == SQLITE_ROW ? arena_copy(a, query_text(q, 0)) : SLICE_NONE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int payloads_read(struct db *d, struct arena *a, int64_t seq, const uint32_t *numbers, size_t count,
                  struct payload **ret, size_t *ret_count)
{
    struct payload *list = arena_alloc(a, count * sizeof *list);

    *ret = list;
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct slice json;
        int rc = payload_read(d, a, seq, numbers[i], &json);
        if (rc != SQLITE_OK)
            return rc;
        if (json.ptr)
            list[(*ret_count)++] = (struct payload){numbers[i], json};
    }
    return SQLITE_OK;
}

int row_read_groups(struct db *d, struct arena *a, struct task_row *row)
{
    uint32_t *groups = NULL;
    struct payload *list = NULL;
    size_t count = doc_groups(row->doc, a, &groups);

    if (count == 0)
        return SQLITE_OK;
    int rc = payloads_read(d, a, row->seq, groups, count, &list, &row->payload_count);
    row->payloads = list;
    row->groups_only = true;
    return rc;
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
