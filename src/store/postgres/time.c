/*
 * Leases and surveys, and the one clock by which they go, that of the database. It is read with
 * every lease, which costs no statement, and on each new connection; in between the node's steady
 * clock counts on (store_time.c). After a failover it is another machine's clock, which may differ.
 */
#include "store/postgres/body.h"

#include "base/clock.h"
#include "base/log.h"

enum { JUMP_MS = 5000 }; /* is worth logging */

static bool is_far(int64_t ms)
{
    return ms < -JUMP_MS || ms > JUMP_MS;
}

void pg_time_heard(struct postgres_store *s, int64_t sent_at, int64_t theirs)
{
    bool first = !s->time.known; /* only this thread makes it known */
    int64_t off = store_time_sample(&s->time, sent_at, clock_boot_ms(), theirs);
    int64_t wall = clock_wall_ms() - store_time_now(&s->time);

    if (first && is_far(wall))
        log_line(LOG_WARN, "event=clock_differs ms=%" PRId64 " from=database", wall);
    if (is_far(off))
        log_line(LOG_WARN, "event=database_clock_jump ms=%" PRId64, off);
}

int64_t pg_now(struct store *base)
{
    return store_time_now(&postgres_store_of(base)->time);
}

/* holder, epoch, until, the database's clock, and the generations of definitions,
 * tokens and agents. */
static struct lease lease_read(const PGresult *r, int row, struct arena *a)
{
    return (struct lease){arena_copy(a, result_text(r, row, 0)),
                          (uint64_t)result_number(r, row, 1),
                          result_number(r, row, 2),
                          {(uint64_t)result_number(r, row, 4), (uint64_t)result_number(r, row, 5),
                           (uint64_t)result_number(r, row, 6), (uint64_t)result_number(r, row, 7)}};
}

enum err pg_lease(struct store *base, const struct lease_try *want, struct arena *a,
                  struct lease *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *r = NULL;
    enum err err = connection_ready(s, e);

    ASSERT(want->length_ms >= 0 && want->length_ms <= LEASE_MAX_MS);
    if (err != ERR_OK)
        return err;
    query_of(&q, s, PG_LEASE, &own);
    param_text(&q, want->name);
    param_text(&q, want->holder);
    param_number(&q, want->length_ms);
    param_flag(&q, want->seize);
    int64_t sent_at = clock_boot_ms();
    struct pg_end o = pg_run(s, &q, 1, &r, e, "take a lease");
    if (o.err == ERR_OK) {
        pg_time_heard(s, sent_at, result_number(r, 0, 3));
        *ret = lease_read(r, 0, a);
    }
    PQclear(r);
    return o.err;
}

static void survey_read(const PGresult *r, struct survey *v, struct arena *a)
{
    int64_t *found = NULL;
    size_t count = result_numbers(r, 0, 12, a, &found);

    v->own = lease_read(r, 0, a); /* by name: "node/..." comes before "supervisor" */
    if (v->leads)
        v->lead = lease_read(r, 1, a);
    v->requested = result_flag(r, 0, 8);
    v->orphans = result_flag(r, 0, 9);
    v->due_at = result_number(r, 0, 10);
    v->wake_at = result_number(r, 0, 11);
    v->schedulers = (uint32_t)result_number(r, 0, 13) + 1;
    v->schedulers_before = (uint32_t)result_number(r, 0, 14);
    v->messages = result_flag(r, 0, 15);
    v->submissions = result_flag(r, 0, 16);
    v->waiting = arena_alloc(a, (v->agent_count + 1) * sizeof *v->waiting);
    for (size_t i = 0; i < count; i++)
        v->waiting[found[i] - 1] = true;
    v->among = arena_alloc(a, (v->agent_count + 1) * sizeof *v->among);
    count = result_numbers(r, 0, 17, a, &found);
    for (size_t i = 0; i < count; i++)
        v->among[found[i] - 1] = true;
    v->among_due_at = result_number(r, 0, 18);
    v->overruns = result_flag(r, 0, 19);
    v->wait_due_at = result_number(r, 0, 20);
    v->locks = result_flag(r, 0, 21);
    v->notices = result_flag(r, 0, 22);
    v->signals_refused = (uint64_t)result_number(r, 0, 23);
}

enum err pg_survey(struct store *base, struct survey *v, struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct array names = {0};
    struct array agents = {0};
    PGresult *r = NULL;
    struct query q;
    enum err err = connection_ready(s, e);

    ASSERT(v->length_ms >= 0 && v->length_ms <= LEASE_MAX_MS);
    if (err != ERR_OK)
        return err;
    array_text(&names, v->lease);
    if (v->leads)
        array_text(&names, SLICE(SUPERVISOR_LEASE));
    for (size_t i = 0; i < v->agent_count; i++)
        array_text(&agents, v->agents[i]);
    query_of(&q, s, PG_SURVEY, &own);
    param_array(&q, &names, ARRAY_TEXTS);
    param_text(&q, v->owner);
    param_number(&q, v->length_ms);
    param_array(&q, &agents, ARRAY_TEXTS);
    int64_t sent_at = clock_boot_ms();
    struct pg_end o = pg_run(s, &q, 1, &r, e, "renew leases and look around");
    if (o.err == ERR_OK && PQntuples(r) != 1 + v->leads)
        o.err = error_set(e, ERR_BUSY, "cannot renew leases: another node took one just now");
    if (o.err == ERR_OK) {
        pg_time_heard(s, sent_at, result_number(r, 0, 3));
        survey_read(r, v, a);
    }
    PQclear(r);
    return o.err;
}
