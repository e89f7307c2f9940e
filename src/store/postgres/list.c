/*
 * Listings, as in sqlite/list.c: the rows that may match come from an index, newest first, and the
 * database checks the rest of the query row by row. A first scan asks for a few rows; each next
 * scan asks for more until the page is full or the budget is used.
 */
#include "store/postgres/body.h"

#include <stdlib.h>

#include "base/clock.h"

enum {
    SCAN_MAX = 20000,
    SCAN_FIRST = 4,
    BUDGET_MS = 2000,
    STATES = TASK_ERROR + 1,
};

struct listing {
    struct postgres_store *store;
    const struct list_query *query;
    struct arena *arena;
    int64_t below;
    size_t budget; /* rows, for one scan */
    int64_t *seqs; /* found so far */
    size_t count;
    size_t scanned;
    int64_t until; /* steady: after that only what was begun is brought to its end */
    int64_t floor; /* all above it, itself included, were looked at; 0: all there are */
};

static void bind_states(struct query *q, const struct list_query *lq, int only)
{
    struct array states = {0};

    for (int i = 0; i < STATES; i++)
        if (only < 0 ? (lq->states & 1U << i) != 0 : i == only)
            array_text(&states, slice_of(task_state_text((enum task_state)i)));
    param_array(q, &states, ARRAY_TEXTS);
}

static void bind_tags(struct query *q, const struct list_query *lq)
{
    struct array keys = {0};
    struct array values = {0};

    for (size_t i = 0; i < lq->tag_count; i++) {
        array_text(&keys, lq->tags[i].key);
        array_text(&values, lq->tags[i].value);
    }
    param_array(q, &keys, ARRAY_TEXTS);
    param_array(q, &values, ARRAY_TEXTS);
}

static void bind_within(struct query *q, const struct list_query *lq)
{
    struct array names = {0};

    for (size_t i = 0; i < lq->within_count; i++)
        array_text(&names, lq->within[i]);
    param_array(q, &names, ARRAY_TEXTS);
}

static void bind_rest(struct query *q, const struct list_query *lq)
{
    struct array workflows = {0};
    struct array versions = {0};
    struct array steps = {0};
    struct array ids = {0};

    param_number(q, lq->version);
    param_time(q, lq->ended_after);
    param_time(q, lq->ended_before);
    param_text(q, lq->error);
    param_text(q, lq->agent);
    for (size_t i = 0; i < lq->place_count; i++) {
        array_text(&workflows, lq->places[i].workflow);
        array_number(&versions, lq->places[i].version);
        array_text(&steps, lq->places[i].step);
    }
    param_array(q, &workflows, ARRAY_TEXTS);
    param_array(q, &versions, ARRAY_NUMBERS);
    param_array(q, &steps, ARRAY_TEXTS);
    for (size_t i = 0; i < lq->id_count; i++)
        array_text(&ids, lq->ids[i]);
    param_array(q, &ids, ARRAY_TEXTS);
}

struct scan {
    enum pg_sql which;
    int state; /* the only one; -1: those of the query */
    int64_t below;
    size_t rows, want; /* to look at; to find at most */
};

static PGresult *scan_run(const struct listing *l, const struct scan *c, struct arena *a,
                          struct error *e)
{
    const struct list_query *lq = l->query;
    struct query q;

    query_of(&q, l->store, c->which, a);
    param_number(&q, c->below);
    param_number(&q, (int64_t)c->rows);
    bind_states(&q, lq, c->state);
    param_text(&q, lq->workflow);
    param_time(&q, lq->submitted_after);
    param_time(&q, lq->submitted_before);
    bind_tags(&q, lq);
    param_number(&q, (int64_t)c->want);
    bind_rest(&q, lq);
    param_number(&q, lq->paused);
    param_number(&q, lq->closed);
    bind_within(&q, lq);
    param_number(&q, lq->children);
    param_text(&q, lq->parent);
    param_text(&q, lq->root);
    param_text(&q, lq->id_prefix);
    return pg_read_long(l->store, &q, e, "list tasks");
}

static bool is_before_all(const struct list_query *lq, int64_t submitted_at)
{
    return lq->submitted_after != 0 && submitted_at < lq->submitted_after - SUBMITTED_SLACK_MS;
}

/* One step of a scan. False: there is no more to be had from it. */
static bool scan_take(struct listing *l, struct scan *c, const PGresult *r, int64_t *ret_floor)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int64_t *seqs = NULL;
    size_t looked = (size_t)result_number(r, 0, 1);
    size_t found = result_numbers(r, 0, 3, &a, &seqs);

    for (size_t i = 0; i < found; i++)
        l->seqs[l->count++] = seqs[i];
    c->want -= found;
    l->scanned += looked;
    *ret_floor = c->want == 0 ? seqs[found - 1] : 0; /* there may be more that fit below it */
    if (c->want == 0 || looked < c->rows || is_before_all(l->query, result_number(r, 0, 2)))
        return false;
    *ret_floor = c->below = result_number(r, 0, 0);
    return true;
}

static enum err scan_all(struct listing *l, enum pg_sql which, int state, struct error *e)
{
    struct scan c = {which, state, l->below, (l->query->limit + 1) * SCAN_FIRST,
                     l->query->limit + 1};
    size_t left = l->budget;
    int64_t floor = 0;
    bool more = true;

    while (more && left > 0 && (floor == 0 || clock_steady_ms() < l->until)) {
        CLEANUP(arena_fini) struct arena a = {0};
        c.rows = c.rows < left ? c.rows : left;
        CLEANUP(result_end) PGresult *r = scan_run(l, &c, &a, e);
        if (!r)
            return e->code;
        left -= c.rows;
        more = scan_take(l, &c, r, &floor);
        c.rows *= 8;
    }
    l->floor = floor > l->floor ? floor : l->floor;
    return ERR_OK;
}

static size_t scan_max(const struct list_query *lq)
{
    return lq->scan_max ? lq->scan_max : SCAN_MAX;
}

/* Do so few ids begin like that, that the index of ids finds them fastest? If many do, they are
 * soon met among the newest tasks. */
static enum err has_few(const struct listing *l, bool *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct query q;

    *ret = false;
    if (!l->query->id_prefix.ptr)
        return ERR_OK;
    query_of(&q, l->store, PG_COUNT_PREFIX, &a);
    param_text(&q, l->query->id_prefix);
    param_number(&q, (int64_t)scan_max(l->query) + 1);
    CLEANUP(result_end) PGresult *r = pg_read(l->store, &q, e, "list tasks");
    if (!r)
        return e->code;
    size_t count = (size_t)result_number(r, 0, 0);
    *ret = count <= SCAN_MAX && count <= scan_max(l->query);
    return ERR_OK;
}

/* Neither by ids nor by what few tasks have. */
static enum err find_by_state(struct listing *l, struct error *e)
{
    const struct list_query *lq = l->query;
    bool few = lq->states != 0 && !(lq->states & 1U << TASK_PROCESSED); /* they have an index */
    enum err err = ERR_OK;

    if (!few)
        return scan_all(l, lq->workflow.ptr ? PG_SCAN_WORKFLOW : PG_SCAN, -1, e);
    for (int i = 0; i < STATES && err == ERR_OK; i++)
        if (lq->states & 1U << i)
            err = scan_all(l, PG_SCAN_STATE, i, e);
    return err;
}

static enum err find(struct listing *l, struct error *e)
{
    const struct list_query *lq = l->query;
    bool few = false;

    if (lq->ids)
        return scan_all(l, PG_SCAN_ID, -1, e);
    if (lq->asked)
        return scan_all(l, PG_SCAN_ASKED, -1, e);
    if (lq->parent.ptr)
        return scan_all(l, PG_SCAN_PARENT, -1, e);
    if (lq->root.ptr)
        return scan_all(l, PG_SCAN_ROOT, -1, e);
    if (has_few(l, &few, e) != ERR_OK)
        return e->code;
    if (few)
        return scan_all(l, PG_SCAN_PREFIX, -1, e);
    if (lq->tag_count > 0)
        return scan_all(l, PG_SCAN_TAG, -1, e);
    return find_by_state(l, e);
}

/* The seq from which on all were submitted too late: found by bisection, times rise with it. */
static enum err seq_at(struct listing *l, int64_t time, int64_t *ret, struct error *e)
{
    int64_t low = 0;
    int64_t high = INT64_MAX;

    while (low < high) {
        CLEANUP(arena_fini) struct arena a = {0};
        int64_t middle = low + (high - low) / 2;
        struct query q;
        query_of(&q, l->store, PG_SEQ_BELOW, &a);
        param_number(&q, middle == INT64_MAX ? middle : middle + 1);
        CLEANUP(result_end) PGresult *r = pg_read(l->store, &q, e, "list tasks");
        if (!r)
            return e->code;
        if (PQntuples(r) == 1 && result_number(r, 0, 1) >= time)
            high = result_number(r, 0, 0);
        else
            low = middle + 1;
    }
    *ret = low;
    return ERR_OK;
}

static int descending(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x < *y) - (*x > *y);
}

/* Rows above the floor. */
static enum err fill(struct listing *l, struct row_page *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    size_t limit = l->query->limit;
    size_t sure = 0;
    struct array seqs = {0};
    struct query q;

    qsort(l->seqs, l->count, sizeof *l->seqs, descending);
    while (sure < l->count && l->seqs[sure] >= l->floor)
        sure++;
    for (size_t i = 0; i < sure && i < limit; i++)
        array_number(&seqs, l->seqs[i]);
    query_of(&q, l->store, PG_ROWS, &own);
    param_array(&q, &seqs, ARRAY_NUMBERS);
    CLEANUP(result_end) PGresult *r = pg_read(l->store, &q, e, "list tasks");
    if (!r)
        return e->code;
    pg_rows_read(r, limit, l->arena, ret);
    ret->scanned = l->scanned;
    ret->more = sure > limit || l->floor > 0;
    if (sure > limit)
        ret->next_seq = limit ? l->seqs[limit - 1] : l->seqs[0] + 1;
    else if (l->floor > 0)
        ret->next_seq = l->floor;
    return l->query->groups ? pg_groups_read(l->store, ret, l->arena, e) : ERR_OK;
}

enum err pg_list(struct store *base, const struct list_query *lq, struct arena *a,
                 struct row_page *ret, struct error *e)
{
    size_t scans = lq->states ? (size_t)__builtin_popcount(lq->states) : 1;
    CLEANUP(pg_call_end) struct postgres_store *call = pg_call_begin(postgres_store_of(base));
    struct listing l = {
        .store = call,
        .query = lq,
        .arena = a,
        .below = lq->before_seq ? lq->before_seq : INT64_MAX,
        .until = clock_steady_ms() + (lq->budget_us ? lq->budget_us / 1000 : BUDGET_MS),
        .budget = (scan_max(lq) + scans - 1) / scans, /* one at least */
        .seqs = arena_alloc(a, scans * (lq->limit + 1) * sizeof(int64_t)),
    };
    enum err err = ERR_OK;

    if (lq->submitted_before != 0) {
        int64_t late = 0;
        err = seq_at(&l, lq->submitted_before + SUBMITTED_SLACK_MS, &late, e);
        l.below = late < l.below ? late : l.below;
    }
    if (err == ERR_OK)
        err = find(&l, e);
    return err == ERR_OK ? fill(&l, ret, e) : err;
}
