/*
 * Counts of tasks for metrics, and by owner for quotas. Each count is of a range of an index and
 * has an upper bound.
 */
#include "store/sqlite/body.h"

#include "store/row.h"

static int count_states(struct db *d, int64_t now, size_t most, struct census *ret)
{
    static const enum task_state order[] = {TASK_PENDING, TASK_PROCESSING, TASK_COMPENSATING,
                                            TASK_COMPENSATED, TASK_ERROR};
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_CENSUS, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, (int64_t)most);
    bind_number(q, 2, now);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    for (size_t i = 0; i < COUNT_OF(order); i++)
        ret->tasks[order[i]] = (uint64_t)sqlite3_column_int64(q, (int)i);
    ret->overdue = (uint64_t)sqlite3_column_int64(q, COUNT_OF(order));
    ret->overdue_since = sqlite3_column_int64(q, COUNT_OF(order) + 1);
    ret->locked = (uint64_t)sqlite3_column_int64(q, COUNT_OF(order) + 2);
    return SQLITE_OK;
}

/* Counts the tasks that wait for it alone, or (SQL_CENSUS_AMONG) for several agents. */
static int count_waiting(struct db *d, enum sql which, struct slice agent, size_t most,
                         uint64_t *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, agent);
    bind_number(q, 2, (int64_t)most);
    rc = query_step(q);
    *ret = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* The next agent, by name, that something waits for. SQLITE_DONE: there is none. */
static int next_agent(struct db *d, enum sql which, struct slice after, struct arena *a,
                      struct census_agent *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, after);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    ret->agent = arena_copy(a, query_text(q, 0));
    ret->first_submitted_at = sqlite3_column_int64(q, 1);
    return SQLITE_OK;
}

static int list_agents(struct db *d, enum sql which, struct arena *a, struct census_agent *ret,
                       size_t *ret_count)
{
    struct slice after = CENSUS_BEFORE_AGENTS;
    int rc = SQLITE_OK;

    *ret_count = 0;
    while (rc == SQLITE_OK && *ret_count < CENSUS_AGENTS) {
        struct census_agent *next = &ret[*ret_count];
        rc = next_agent(d, which, after, a, next);
        after = rc == SQLITE_OK && census_is_lock(next->agent) ? SLICE(CENSUS_BEHIND_LOCKS)
                                                               : next->agent;
        *ret_count += rc == SQLITE_OK;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Those among several, beside those alone. */
static int count_among(struct db *d, struct arena *a, struct census *ret)
{
    struct census_agent *list = arena_alloc(a, CENSUS_AGENTS * sizeof *list);
    size_t count = 0;

    int rc = list_agents(d, SQL_CENSUS_AGENT_AMONG, a, list, &count);
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = count_waiting(d, SQL_CENSUS_AMONG, list[i].agent, ret->agents_most, &list[i].tasks);
    if (rc == SQLITE_OK)
        census_add(ret, list, count, a);
    return rc;
}

/* Here each entry of the index costs a look at its row, so all agents together have `most`. */
static int count_agents(struct db *d, size_t most, struct arena *a, struct census *ret)
{
    ret->agents = arena_alloc(a, CENSUS_AGENTS * sizeof(*ret->agents));
    int rc = list_agents(d, SQL_CENSUS_AGENT, a, ret->agents, &ret->agent_count);

    ret->agents_most =
        ret->agent_count > 0 ? (most + ret->agent_count - 1) / ret->agent_count : most;
    for (size_t i = 0; i < ret->agent_count && rc == SQLITE_OK; i++)
        rc = count_waiting(d, SQL_CENSUS_WAITING, ret->agents[i].agent, ret->agents_most,
                           &ret->agents[i].tasks);
    if (rc == SQLITE_OK)
        rc = count_among(d, a, ret);
    census_take_sleeping(ret);
    return rc;
}

enum err sqlite_census(struct store *base, int64_t now, size_t most, struct arena *a,
                       struct census *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    *ret = (struct census){0};
    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = count_states(&s->reader, now, most, ret);
    if (rc == SQLITE_OK)
        rc = count_agents(&s->reader, most, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "count what is stored");
}

static int read_owners(struct db *d, struct owners_part *p, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int64_t last = p->after_seq;
    size_t rows = 0;

    int rc = db_query(d, SQL_OWNERS, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, slice_of(task_state_text(p->state)));
    bind_number(q, 2, p->after_seq);
    bind_number(q, 3, (int64_t)p->most);
    while ((rc = query_step(q)) == SQLITE_ROW) {
        last = sqlite3_column_int64(q, 0);
        owners_add(p, arena_copy(a, query_text(q, 1)));
        rows++;
    }
    if (rc == SQLITE_DONE)
        owners_move(p, rows, last);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_owners(struct store *base, struct owners_part *p, struct arena *a, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    owners_begin(p, a);
    int rc = read_owners(&s->reader, p, a);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "count whose tasks are stored");
}
