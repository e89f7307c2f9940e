/*
 * Rows of tasks read from a result of PostgreSQL, with their payloads. The columns are those of
 * rows/task.h, in whose order every statement of sql.c names them; commit.c writes them.
 */
#include "store/postgres/columns.h"

/* ---- arrays in binary form ---- */

struct elements {
    const char *at, *end;
    uint32_t left;
};

static uint32_t get_u32(struct elements *e)
{
    uint32_t v = 0;

    ASSERT(e->end - e->at >= 4);
    for (int i = 0; i < 4; i++)
        v = v << 8 | (unsigned char)*e->at++;
    return v;
}

static struct elements elements_of(const PGresult *r, int row, int column)
{
    struct slice bytes = result_text(r, row, column);
    struct elements e = {bytes.ptr, bytes.ptr + bytes.len, 0};

    if (get_u32(&e) == 0) /* dimensions */
        return e;
    (void)get_u32(&e); /* whether there are NULLs, and the type: we know */
    (void)get_u32(&e);
    e.left = get_u32(&e);
    (void)get_u32(&e); /* where indices begin */
    return e;
}

static struct slice element_next(struct elements *e)
{
    uint32_t len = get_u32(e);
    struct slice s = {e->at, len};

    ASSERT((size_t)(e->end - e->at) >= len);
    e->at += len;
    e->left--;
    return s;
}

size_t result_numbers(const PGresult *r, int row, int column, struct arena *a, int64_t **ret)
{
    struct elements e = elements_of(r, row, column);
    size_t count = e.left;

    *ret = count ? arena_alloc(a, count * sizeof **ret) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct slice s = element_next(&e);
        uint64_t v = 0;
        for (size_t k = 0; k < s.len; k++)
            v = v << 8 | (unsigned char)s.ptr[k];
        (*ret)[i] = (int64_t)v;
    }
    return count;
}

void pg_payloads_read(const PGresult *r, int row, int column, struct arena *a,
                      const struct payload **ret, size_t *ret_count)
{
    int64_t *numbers = NULL;
    struct elements jsons = elements_of(r, row, column + 1);
    size_t count = result_numbers(r, row, column, a, &numbers);

    ASSERT(count == jsons.left);
    if (count == 0)
        return;
    struct payload *list = arena_alloc(a, count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct payload){(uint32_t)numbers[i], arena_copy(a, element_next(&jsons))};
    *ret = list;
    *ret_count = count;
}

void pg_row_read(const PGresult *r, int i, struct arena *a, struct task_row *ret)
{
    struct task_row row = {0};
    bool sound = true;
    int col = 0;

#define READ_TASK(name, type, how) READ(name, type)
#define READ_state(field)          sound &= task_state_parse(result_text(r, i, col++), &(field));
#define READ_direction(field)      sound &= direction_parse(result_text(r, i, col++), &(field));
    READ(seq, number)
    READ(id, text)
    TASK_COLUMNS(READ_TASK, )
    if (!sound || row.revision == 0) {
        row.state = TASK_ERROR; /* one bad row must not hold up the others: without a document */
        row.doc = SLICE_NONE;   /* whoever decodes it will find it corrupt, and set it aside */
    }
    *ret = row;
    if (PQnfields(r) > PG_PAYLOAD_NUMBERS)
        pg_payloads_read(r, i, PG_PAYLOAD_NUMBERS, a, &ret->payloads, &ret->payload_count);
}

void pg_rows_read(const PGresult *r, size_t limit, struct arena *a, struct row_page *ret)
{
    size_t count = (size_t)PQntuples(r);

    *ret = (struct row_page){.count = count < limit ? count : limit, .more = count > limit};
    ret->rows = ret->count ? arena_alloc(a, ret->count * sizeof *ret->rows) : NULL;
    for (size_t i = 0; i < ret->count; i++)
        pg_row_read(r, (int)i, a, &ret->rows[i]);
}
