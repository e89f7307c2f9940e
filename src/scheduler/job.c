/* A job at the store: commits a batch and reads what is needed. It runs on the store's thread,
 * where it touches only the job, and what never changes of its scheduler (config, me). */

#include "scheduler/job.h"

enum { POLL_MAX = 256 };

/* For an id that is not found: did it belong to a deleted task? */
static void find_deleted(struct store *store, struct job *j, struct reading *r)
{
    struct error e = {0};

    r->gone.until = 0;
    if (r->err != ERR_NOT_FOUND)
        return;
    enum err err = store->ops->retention->reserved(store, r->id, &j->arena, &r->gone, &e);
    if (err == ERR_OK || err == ERR_NOT_FOUND)
        return;
    r->err = err;
    r->error = e;
}

/* Reads the rows one by one if that is cheap, or to find which of them cannot be read. */
static void load_all(struct store *store, struct job *j)
{
    bool many = store->ops->get_many && j->load_count > 1;
    struct error e = {0};
    enum err err = many ? store->ops->get_many(store, j->loads, j->load_count, &j->arena, &e)
                        : ERR_NOT_FOUND; /* nothing was read yet */

    for (size_t i = 0; err != ERR_OK && i < j->load_count; i++) {
        struct reading *r = &j->loads[i];
        r->err = err;
        r->error = e;
        if (!err_is_transient(err))
            r->err = store->ops->get(store, r->id, &j->arena, &r->row, &r->error);
    }
    for (size_t i = 0; i < j->load_count; i++)
        find_deleted(store, j, &j->loads[i]);
}

static void decode_rows(struct job *j, struct item_reading *r)
{
    r->steps = arena_alloc(&r->decoded, (r->rows.count + 1) * sizeof *r->steps);
    while (r->step_count < r->rows.count
           && item_decode_with(r->workflow, r->step, &r->rows.rows[r->step_count], &j->arena,
                               &r->decoded, &r->steps[r->step_count], &r->error)
                  == ERR_OK)
        r->step_count++;
}

static void read_items(struct store *store, struct job *j)
{
    for (size_t i = 0; i < j->item_count; i++) {
        struct item_reading *r = &j->items[i];
        r->err = r->outputs ? store->ops->items->outputs(store, &r->all, &j->arena, &r->error)
                            : store->ops->items->read(store, &r->rows, &j->arena, &r->error);
        if (r->err == ERR_OK && r->workflow)
            decode_rows(j, r);
    }
}

/* Each is a transaction of its own: the state of breakers is independent of the tasks. */
static void save_all(struct store *store, struct job *j)
{
    struct error e = {0};

    for (size_t i = 0; i < j->save_count; i++) {
        j->save_errs[i] = store->ops->agent_put(store, &j->saves[i], NULL, &e);
        if (err_is_transient(j->save_errs[i]))
            j->error = e;
    }
}

/* Was a task taken over from a node that its expressions may have killed? */
bool job_takes_over(const struct job *j)
{
    for (size_t i = 0; j->s->config.shared && i < j->batch.claim_count; i++) {
        const struct claim *c = &j->batch.claims[i];
        if ((c->kind == CLAIM_NODE || c->kind == CLAIM_BOOT) && c->row_count > 0)
            return true;
    }
    return false;
}

static void read_overruns(struct store *store, struct job *j)
{
    bool surveyed = j->surveys && j->survey_err == ERR_OK;

    j->reads_overruns |= j->err == ERR_OK && job_takes_over(j);
    j->reads_overruns |= surveyed && (j->survey.overruns || j->has_overruns);
    if (j->reads_overruns)
        j->overruns_err =
            store->ops->overrun_list(store, &j->arena, &j->overruns, &j->overrun_count, &j->error);
}

void job_run(struct store_job *sj, struct store *store)
{
    struct job *j = CONTAINER_OF(sj, struct job, store_job);

    ASSERT(j->batch.change_count == 0 || j->lives);
    ASSERT(j->load_count == 0 || j->loads);
    if (j->surveys)
        j->survey_err = store->ops->nodes->survey(store, &j->survey, &j->arena, &j->error);
    if (j->seizes)
        j->lease_err = store->ops->lease(store, &j->lease_try, &j->arena, &j->lease, &j->error);
    if (j->batch.change_count + j->batch.claim_count > 0)
        j->err = store->ops->commit(store, &j->batch, &j->arena, &j->error);
    else if (j->probe)
        j->err = store->ops->probe(store, &j->error);
    read_overruns(store, j);
    load_all(store, j);
    read_items(store, j);
    save_all(store, j);
    if (j->reads_agents)
        j->agents_err = store->ops->agent_since(store, j->agents_after, &j->arena, &j->agents,
                                                &j->agent_count, &j->agents_generation, &j->error);
    if (j->reads_owned)
        j->owned_err = store->ops->list(store, &j->owned, &j->arena, &j->owned_page, &j->error);
    if (j->polls)
        j->poll_err = store->ops->requested(store, j->s->me, j->poll_after_seq, POLL_MAX, &j->arena,
                                            &j->polled, &j->error);
}

void job_free(struct job *j)
{
    struct arena a = j->arena; /* the job lies in its own arena */

    for (size_t i = 0; i < j->item_count; i++)
        arena_fini(&j->items[i].decoded);
    arena_fini(&a);
}

struct job *job_new(struct scheduler *s)
{
    struct job *j = s->spare_job;
    struct arena a = {0};

    s->spare_job = NULL;
    if (j)
        return j;
    j = arena_alloc(&a, sizeof *j);
    j->arena = a;
    j->used = a.used;
    j->total = a.total;
    j->s = s;
    return j;
}

/* Most turns gather nothing: then the job serves the next one, if it is as it was made. */
void job_drop(struct scheduler *s, struct job *j)
{
    ASSERT(!s->spare_job);
    if (j->arena.total == j->total && j->arena.used == j->used)
        s->spare_job = j;
    else
        job_free(j);
}
