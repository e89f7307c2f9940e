/*
 * Counts of tasks for metrics, and by owner for quotas. Each count is of a range of an index and
 * has an upper bound.
 */
#include "store/postgres/body.h"

#include "store/row.h"

static void read_states(const PGresult *r, struct census *ret)
{
    static const enum task_state order[] = {TASK_PENDING, TASK_PROCESSING, TASK_COMPENSATING,
                                            TASK_COMPENSATED, TASK_ERROR};
    int overdue = COUNT_OF(order);

    for (int i = 0; i < overdue; i++)
        ret->tasks[order[i]] = (uint64_t)result_number(r, 0, i);
    ret->overdue = (uint64_t)result_number(r, 0, overdue);
    ret->overdue_since = result_number(r, 0, overdue + 1);
    ret->locked = (uint64_t)result_number(r, 0, overdue + 2);
}

static size_t read_agents(const PGresult *r, struct arena *a, struct census_agent **ret)
{
    size_t count = (size_t)PQntuples(r);

    *ret = arena_alloc(a, (count + 1) * sizeof **ret);
    for (size_t i = 0; i < count; i++)
        (*ret)[i] = (struct census_agent){
            .agent = arena_copy(a, result_text(r, (int)i, 0)),
            .first_submitted_at = result_number(r, (int)i, 1),
            .tasks = (uint64_t)result_number(r, (int)i, 2),
        };
    return count;
}

/* Those that something waits for alone, and among several. */
static void read_all_agents(const PGresult *alone, const PGresult *among, size_t most,
                            struct arena *a, struct census *ret)
{
    struct census_agent *more = NULL;

    ret->agent_count = read_agents(alone, a, &ret->agents);
    ret->agents_most = ret->agent_count ? (size_t)result_number(alone, 0, 3) : most;
    size_t count = read_agents(among, a, &more);
    census_add(ret, more, count, a);
    census_take_sleeping(ret);
}

enum err pg_census(struct store *base, int64_t now, size_t most, struct arena *a,
                   struct census *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[4] = {{.sql = s->read_settings}}; /* the database gives up before we do */
    PGresult *r[4] = {0};

    *ret = (struct census){0};
    query_of(&q[1], s, PG_CENSUS, &own);
    param_number(&q[1], (int64_t)most);
    param_number(&q[1], now);
    query_of(&q[2], s, PG_CENSUS_AGENTS, &own);
    param_number(&q[2], (int64_t)most);
    param_number(&q[2], CENSUS_AGENTS);
    query_of(&q[3], s, PG_CENSUS_AMONG, &own);
    param_number(&q[3], (int64_t)most);
    param_number(&q[3], CENSUS_AGENTS);
    struct pg_end o = pg_run(s, q, COUNT_OF(q), r, e, "count what is stored");
    if (o.err == ERR_OK) {
        read_states(r[1], ret);
        read_all_agents(r[2], r[3], most, a, ret);
    }
    results_clear(r, COUNT_OF(r));
    return o.err;
}

static void read_owners(const PGresult *r, struct arena *a, struct owners_part *p)
{
    int rows = PQntuples(r);

    for (int i = 0; i < rows; i++)
        owners_add(p, arena_copy(a, result_text(r, i, 1)));
    owners_move(p, (size_t)rows, rows > 0 ? result_number(r, rows - 1, 0) : 0);
}

enum err pg_owners(struct store *base, struct owners_part *p, struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q[2] = {{.sql = s->read_settings}}; /* the database gives up before we do */
    PGresult *r[2] = {0};

    owners_begin(p, a);
    query_of(&q[1], s, PG_OWNERS, &own);
    param_text(&q[1], slice_of(task_state_text(p->state)));
    param_number(&q[1], p->after_seq);
    param_number(&q[1], (int64_t)p->most);
    struct pg_end o = pg_run(s, q, COUNT_OF(q), r, e, "count whose tasks are stored");
    if (o.err == ERR_OK)
        read_owners(r[1], a, p);
    results_clear(r, COUNT_OF(r));
    return o.err;
}
