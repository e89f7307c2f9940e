/*
 * Listings. The rows that may match come from an index, newest first: that of a tag, of the states,
 * of a workflow, or the table itself; the rest of the query is checked row by row. The number of
 * rows is limited because the writer waits meanwhile: then a page ends early and returns where the
 * next one begins. row.c in store/ decides whether a row matches.
 */
#include "store/sqlite/body.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/row.h"

enum {
    SCAN_MAX = 20000,
    BUDGET_US = 200000, /* as long as a reader may hold up the writer's checkpoints */
    LOOK_EVERY = 32,    /* rows: at the clock */
};

/* The rows found so far, of one page and one more. */
struct found {
    const struct list_query *query;
    int64_t *seqs;
    size_t count;
    int64_t floor;    /* all above it, itself included, were looked at; 0: all there are */
    size_t budget;    /* rows, for one scan */
    int64_t until_us; /* steady; of all of them */
    size_t scanned;
};

static int has_tags(struct db *d, const struct found *f, size_t from, int64_t seq, bool *ret)
{
    const struct list_query *lq = f->query;

    *ret = true;
    for (size_t i = from; i < lq->tag_count && *ret; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        int rc = db_query(d, SQL_HAS_TAG, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_text(q, 1, lq->tags[i].key);
        bind_text(q, 2, lq->tags[i].value);
        bind_number(q, 3, seq);
        rc = query_step(q);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return rc;
        *ret = rc == SQLITE_ROW;
    }
    return SQLITE_OK;
}

/* Older than what is asked for, and so are all that follow. */
static bool is_before_all(const struct list_query *lq, int64_t submitted_at)
{
    return lq->submitted_after != 0 && submitted_at < lq->submitted_after - SUBMITTED_SLACK_MS;
}

/* Only what is asked for is read: a list may look at 20 000 rows. */
static void see_family(const struct list_query *lq, sqlite3_stmt *q, struct task_row *ret)
{
    if (lq->parent.ptr || lq->root.ptr) {
        ret->parent = query_text(q, 11);
        ret->root = query_text(q, 12);
    } else if (lq->children != LIST_EITHER && sqlite3_column_int(q, 10)) {
        ret->parent = SLICE("");
    }
}

static bool wants(const struct list_query *lq, sqlite3_stmt *q)
{
    struct task_row row = {
        .workflow = query_text(q, 2),
        .submitted_at = sqlite3_column_int64(q, 3),
        .version = sqlite3_column_int64(q, 4),
    };

    if (lq->ended_after != 0 || lq->ended_before != 0)
        row.ended_at = sqlite3_column_int64(q, 5);
    if (lq->paused != LIST_EITHER)
        row.paused_at = sqlite3_column_int64(q, 8);
    if (lq->closed != LIST_EITHER)
        row.closed_at = sqlite3_column_int64(q, 9);
    see_family(lq, q, &row);
    if (lq->id_prefix.ptr)
        row.id = query_text(q, 13);
    if (!task_state_parse(query_text(q, 1), &row.state))
        row.state = TASK_ERROR; /* of a row that cannot be read, as everywhere */
    if (!list_wants(lq, &row))
        return false;
    if (!list_wants_doc(lq))
        return true;
    row.waiting_for = query_text(q, 6);
    row.doc = query_text(q, 7);
    return list_doc_wanted(lq, &row);
}

static bool is_over(const struct found *f, size_t looked)
{
    return looked >= f->budget || (looked % LOOK_EVERY == 0 && clock_steady_us() >= f->until_us);
}

/* Reads on until there are enough, or enough was looked at. `tag_from`: the first tag that the
 * index has not seen to. */
static int scan(struct db *d, sqlite3_stmt *q, size_t tag_from, struct found *f)
{
    size_t looked = 0;
    size_t matched = 0;
    int64_t floor = 0;
    int rc = SQLITE_OK;

    while ((rc = query_step(q)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(q, 0);
        bool fits = false;
        if (is_before_all(f->query, sqlite3_column_int64(q, 3)))
            break;
        if (wants(f->query, q)) {
            int failed = has_tags(d, f, tag_from, seq, &fits);
            if (failed != SQLITE_OK)
                return failed;
        }
        if (fits)
            f->seqs[f->count++] = seq;
        matched += fits;
        if (matched > f->query->limit || is_over(f, ++looked)) {
            floor = seq;
            break;
        }
    }
    f->floor = floor > f->floor ? floor : f->floor;
    f->scanned += looked;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int scan_by(struct db *d, enum sql which, int64_t below, struct slice by, struct found *f)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    bool family = f->query->parent.ptr || f->query->root.ptr;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, below);
    bind_number(q, 4, list_wants_doc(f->query));
    bind_number(q, 5, f->query->children != LIST_EITHER && !family);
    bind_number(q, 6, family);
    bind_number(q, 7, f->query->id_prefix.ptr != NULL);
    if (by.ptr)
        bind_text(q, 2, by);
    if (which == SQL_SCAN_TAG)
        bind_text(q, 3, f->query->tags[0].value);
    return scan(d, q, which == SQL_SCAN_TAG ? 1 : 0, f);
}

static size_t scan_max(const struct list_query *lq)
{
    return lq->scan_max ? lq->scan_max : SCAN_MAX;
}

/* Do so few ids begin like that, that the index of ids finds them fastest? If many do, they are
 * soon met among the newest tasks. */
static int has_few(struct db *d, const struct list_query *lq, bool *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    *ret = false;
    if (!lq->id_prefix.ptr)
        return SQLITE_OK;
    int rc = db_query(d, SQL_COUNT_PREFIX, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, lq->id_prefix);
    bind_number(q, 2, (int64_t)scan_max(lq) + 1);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    *ret = (size_t)sqlite3_column_int64(q, 0) <= scan_max(lq);
    return SQLITE_OK;
}

enum { STATES = TASK_ERROR + 1 };

/* Neither by ids nor by what few tasks have. */
static int find_by_state(struct db *d, int64_t below, struct found *f)
{
    const struct list_query *lq = f->query;
    bool few = lq->states != 0 && !(lq->states & 1U << TASK_PROCESSED); /* they have an index */
    int rc = SQLITE_OK;

    if (!few)
        return lq->workflow.ptr ? scan_by(d, SQL_SCAN_WORKFLOW, below, lq->workflow, f)
                                : scan_by(d, SQL_SCAN, below, SLICE_NONE, f);
    for (unsigned i = 0; i < STATES && rc == SQLITE_OK; i++)
        if (lq->states & 1U << i)
            rc =
                scan_by(d, SQL_SCAN_STATE, below, slice_of(task_state_text((enum task_state)i)), f);
    return rc;
}

static int find(struct db *d, int64_t below, struct found *f)
{
    const struct list_query *lq = f->query;
    bool few = false;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < lq->id_count && rc == SQLITE_OK; i++)
        rc = scan_by(d, SQL_SCAN_ID, below, lq->ids[i], f);
    if (lq->ids)
        return rc;
    if (lq->asked)
        return scan_by(d, SQL_SCAN_ASKED, below, SLICE_NONE, f);
    if (lq->parent.ptr)
        return scan_by(d, SQL_SCAN_PARENT, below, lq->parent, f);
    if (lq->root.ptr)
        return scan_by(d, SQL_SCAN_ROOT, below, lq->root, f);
    rc = has_few(d, lq, &few);
    if (rc != SQLITE_OK)
        return rc;
    if (few)
        return scan_by(d, SQL_SCAN_PREFIX, below, lq->id_prefix, f);
    if (lq->tag_count > 0)
        return scan_by(d, SQL_SCAN_TAG, below, lq->tags[0].key, f);
    return find_by_state(d, below, f);
}

/* The seq from which on all were submitted too late: found by bisection, times rise with it. */
static int seq_at(struct db *d, int64_t time, int64_t *ret)
{
    int64_t low = 0;
    int64_t high = INT64_MAX;
    int rc = SQLITE_OK;

    while (low < high) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        int64_t middle = low + (high - low) / 2;
        rc = db_query(d, SQL_SEQ_BELOW, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_number(q, 1, middle + 1);
        rc = query_step(q);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return rc;
        if (rc == SQLITE_ROW && sqlite3_column_int64(q, 1) >= time)
            high = sqlite3_column_int64(q, 0);
        else
            low = middle + 1;
    }
    *ret = low;
    return SQLITE_OK;
}

static int descending(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x < *y) - (*x > *y);
}

/* Rows above the floor. */
static int fill(struct db *d, struct found *f, struct arena *a, struct row_page *ret)
{
    size_t limit = f->query->limit;
    struct rows rows = {0};
    size_t sure = 0;

    qsort(f->seqs, f->count, sizeof *f->seqs, descending);
    while (sure < f->count && f->seqs[sure] >= f->floor)
        sure++;
    for (size_t i = 0; i < sure && i < limit; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        int rc = db_query(d, SQL_ROW, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_number(q, 1, f->seqs[i]);
        rc = query_step(q);
        if (rc != SQLITE_ROW)
            return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc; /* nothing is deleted meanwhile */
        struct task_row *row = rows_add(&rows, a);
        rc = row_read(q, a, row);
        if (rc == SQLITE_OK && f->query->groups)
            rc = row_read_groups(d, a, row);
        if (rc != SQLITE_OK)
            return rc;
    }
    *ret = (struct row_page){.rows = rows.rows, .count = rows.count, .scanned = f->scanned};
    ret->more = sure > limit || f->floor > 0;
    if (sure > limit)
        ret->next_seq = limit ? f->seqs[limit - 1] : f->seqs[0] + 1;
    else if (f->floor > 0)
        ret->next_seq = f->floor;
    return SQLITE_OK;
}

static size_t count_states(uint32_t states)
{
    return states ? (size_t)__builtin_popcount(states) : 1;
}

static int list(struct db *d, const struct list_query *lq, struct arena *a, struct row_page *ret)
{
    size_t scans = count_states(lq->states);
    size_t most = lq->ids ? lq->id_count + 1 : scans * (lq->limit + 1);
    struct found f = {
        .query = lq,
        .seqs = arena_alloc(a, most * sizeof(int64_t)),
        .budget = lq->ids ? SIZE_MAX : scan_max(lq) / scans,
        .until_us =
            lq->ids ? INT64_MAX : clock_steady_us() + (lq->budget_us ? lq->budget_us : BUDGET_US),
    };
    int64_t below = lq->before_seq ? lq->before_seq : INT64_MAX;
    int rc = SQLITE_OK;

    if (lq->submitted_before != 0) {
        int64_t late = 0;
        rc = seq_at(d, lq->submitted_before + SUBMITTED_SLACK_MS, &late);
        below = late < below ? late : below;
    }
    if (rc == SQLITE_OK)
        rc = find(d, below, &f);
    return rc == SQLITE_OK ? fill(d, &f, a, ret) : rc;
}

enum err sqlite_list(struct store *base, const struct list_query *lq, struct arena *a,
                     struct row_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, lq, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "list tasks");
}
