#include "store/postgres_body.h"

#include <time.h>

#include "base/log.h"

/*
 * Several nodes agree on one clock, that of the database. It is asked whenever a lease is, so that
 * costs no statement; in between each node counts on by itself. After a failover it is that of
 * another machine, which nobody promises to be the same.
 */

enum { JUMP_MS = 5000 }; /* is worth telling */

static int64_t wall_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool is_far(int64_t ms)
{
    return ms < -JUMP_MS || ms > JUMP_MS;
}

void pg_time_heard(struct postgres_store *s, int64_t sent_at, int64_t theirs)
{
    bool first = !s->time.known; /* only this thread makes it known */
    int64_t off = store_time_sample(&s->time, sent_at, store_time_steady(), theirs);
    int64_t wall = wall_ms() - store_time_now(&s->time);

    if (first && is_far(wall))
        log_line(LOG_WARN, "event=clock_differs ms=%" PRId64 " from=database", wall);
    if (is_far(off))
        log_line(LOG_WARN, "event=database_clock_jump ms=%" PRId64, off);
}

int64_t pg_now(struct store *base)
{
    return store_time_now(&postgres_store_of(base)->time);
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
    int64_t sent_at = store_time_steady();
    struct pg_end o = pg_run(s, &q, 1, &r, e, "take a lease");
    if (o.err == ERR_OK) {
        pg_time_heard(s, sent_at, result_number(r, 0, 3));
        *ret = (struct lease){arena_copy(a, result_text(r, 0, 0)),
                              (uint64_t)result_number(r, 0, 1),
                              result_number(r, 0, 2),
                              {(uint64_t)result_number(r, 0, 4), (uint64_t)result_number(r, 0, 5)}};
    }
    PQclear(r);
    return o.err;
}
