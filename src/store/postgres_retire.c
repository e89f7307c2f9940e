#include "store/postgres_body.h"

#include "store/row.h"

/* Deleting what ended long ago: one statement looks at some rows by seq, locks those that are to go
 * and that nobody else has locked, and deletes them with all that is theirs. */

static void bind(struct query *q, const struct retire *r)
{
    struct array states = {0};

    for (int i = 0; i <= TASK_ERROR; i++)
        if (r->states & RETIRE_STATES & 1U << i)
            array_text(&states, slice_of(task_state_text((enum task_state)i)));
    param_number(q, r->after_seq);
    param_number(q, (int64_t)r->scan_max);
    param_number(q, r->ended_before);
    param_array(q, &states, ARRAY_TEXTS);
    if (r->dry)
        return;
    const struct audit none = {0};
    const struct audit *a = r->audit ? r->audit : &none;
    param_number(q, a->at);
    param_text(q, a->actor);
    param_text(q, a->verb);
    param_text(q, a->task);
    param_text(q, a->step);
    param_text(q, a->reason);
}

static void take(struct retire *r, const PGresult *result)
{
    size_t looked = (size_t)result_number(result, 0, 1);

    r->count = (uint64_t)result_number(result, 0, 0);
    if (looked > 0)
        r->after_seq = result_number(result, 0, 2);
    r->more = looked == r->scan_max && !retire_is_past(r, result_number(result, 0, 3));
}

enum err pg_retire(struct store *base, struct retire *r, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;
    PGresult *result = NULL;
    enum err err;

    query_of(&q, s, r->dry ? PG_RETIRE_COUNT : PG_RETIRE, &a);
    bind(&q, r);
    if (r->dry) {
        result = pg_read(s, &q, e, "count what is to be deleted");
        err = result ? ERR_OK : e->code;
    } else {
        struct pg_end o = pg_transact(s, &q, 1, &result, e, "delete tasks");
        err = pg_end_err(&o, e);
    }
    if (err == ERR_OK)
        take(r, result);
    PQclear(result);
    return err;
}
