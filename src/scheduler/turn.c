/* One turn of the scheduler, from top to bottom: what is due, commands, starts, a batch to the
 * store, answers. And what follows when the batch is back (job_done). Each part is in a file of its
 * own; the order of the parts is here, and it matters. */

#include "scheduler/job.h"

enum { LOAD_MAX = 512, OWNED_MAX = 256 };

/* ---- what is due by itself ---- */

static void wake_naps(struct scheduler *s, int64_t now)
{
    for (struct heap_node *n = NULL; (n = heap_min(&s->tasks.naps)) && n->key <= now;) {
        struct live *l = CONTAINER_OF(n, struct live, nap);
        int64_t stale = shared_stale_at(s, l);
        if (stale != 0 && stale <= now)
            live_reload(&s->tasks, l);
        else
            start_refresh(s, l);
    }
}

static void take_due(struct scheduler *s, int64_t now)
{
    breakers_tick(&s->tasks, now);
    wake_naps(s, now);
    silence_check(&s->tasks, now);
}

/* ---- commands, and what earlier turns left undecided ---- */

/* Tasks take turns: one that is not done moves behind the others. */
static void decide_more(struct scheduler *s)
{
    struct link waiting;

    list_init(&waiting);
    list_take_all(&waiting, &s->tasks.undecided);
    while (!list_empty(&waiting) && effort_may(&s->tasks.effort, EFFORT_CONDITIONS)) {
        struct link *first = list_pop(&waiting);
        ASSERT(first); /* it is not empty */
        struct live *l = CONTAINER_OF(first, struct live, undecided);
        if (l->in_flight || link_is_in(&l->load_link))
            continue; /* its load or commit continues with it */
        if (!l->loaded) {
            commands_process(s, l); /* a submission whose lock is still to be found */
            continue;
        }
        if (live_is_ours(&s->tasks, l) && !list_empty(&l->inbox))
            commands_process(s, l); /* the first may wait for this */
        else if (live_is_ours(&s->tasks, l))
            start_continue(s, l);
        else if (l->fresh)
            submit_continue(s, l);
    }
    list_take_all(&waiting, &s->tasks.undecided);
    list_take_all(&s->tasks.undecided, &waiting);
}

static void process_inboxes(struct scheduler *s)
{
    LIST_FOREACH (link, after, &s->tasks.inboxes) {
        commands_process(s, CONTAINER_OF(link, struct live, inbox_link));
    }
}

/* ---- starts ---- */

/* Limits hold nothing back any more once every open attempt of this node is counted. */
static void note_all_counted(struct scheduler *s)
{
    if (s->uncounted && !s->taking_over && !s->reclaiming && !s->checking_owned && !s->job
        && list_empty(&s->tasks.loads) && list_empty(&s->tasks.awaiting_definition))
        s->uncounted = false;
}

static void start_steps(struct scheduler *s, int64_t now)
{
    release_sweep(s, now);
    limits_expire(&s->tasks, now);
    note_all_counted(s);
    dispatch_wake(&s->tasks.dispatch, now);
    start_match(s);
    call_expire(&s->tasks,
                now); /* after the starts: a call that does not wait takes what is there */
}

/* ---- the batch is back ---- */

/* The error of a job that matters: that of the commit, or else of any other part. */
static enum err error_of(struct job *j)
{
    const enum err parts[] = {j->err,      j->owned_err,  j->agents_err, j->overruns_err,
                              j->poll_err, j->survey_err, j->lease_err};

    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i] != ERR_OK)
            return parts[i];
    for (size_t i = 0; i < j->save_count; i++)
        if (err_is_transient(j->save_errs[i]))
            return j->save_errs[i];
    for (size_t i = 0; i < j->load_count; i++)
        if (j->loads[i].err != ERR_OK && err_is_transient(j->loads[i].err)) {
            j->error = j->loads[i].error;
            return j->loads[i].err;
        }
    for (size_t i = 0; i < j->item_count; i++)
        if (j->items[i].err != ERR_OK && err_is_transient(j->items[i].err)) {
            j->error = j->items[i].error;
            return j->items[i].err;
        }
    return ERR_OK;
}

/* What the job found about this node, other nodes and agents. */
static void land_surroundings(struct scheduler *s, struct job *j)
{
    if (j->seizes && j->lease_err == ERR_OK)
        shared_leased(s, j->lease_try.now, &j->lease);
    if (j->surveys && j->survey_err == ERR_OK)
        shared_surveyed(s, &j->survey);
    if (j->surveys && j->survey_err != ERR_OK)
        s->survey_at = 0; /* with the next job */
    for (size_t i = 0; i < j->save_count; i++)
        breakers_saved(&s->tasks, &j->saves[i], j->save_errs[i]);
    if (j->reads_overruns)
        s->overruns_stale = j->overruns_err != ERR_OK;
    if (j->reads_overruns && j->overruns_err == ERR_OK)
        overruns_set(&s->tasks.overruns, j->overruns, j->overrun_count);
    if (j->reads_agents && j->agents_err == ERR_OK)
        breakers_read(&s->tasks, j->agents, j->agent_count, j->agents_generation);
}

static void land_changes(struct scheduler *s, struct job *j)
{
    for (size_t i = 0; i < j->batch.change_count; i++) {
        ASSERT(j->lives[i]->in_flight);
        j->lives[i]->in_flight = false;
        if (j->err != ERR_OK)
            j->batch.changes[i].outcome = j->err;
        landed_change(s, j->lives[i], &j->batch.changes[i]);
    }
}

/* Rows that were claimed or read. A task that killed another node may be among the claimed ones:
 * they are loaded once the overruns are known. */
static void land_rows(struct scheduler *s, struct job *j)
{
    bool known = j->err == ERR_OK && (j->overruns_err == ERR_OK || !job_takes_over(j));

    for (size_t i = 0; i < j->batch.claim_count && known; i++)
        landed_claim(s, &j->batch.claims[i]);
    if (j->reads_owned && j->owned_err == ERR_OK)
        landed_owned(s, &j->owned_page);
    if (j->polls && j->poll_err == ERR_OK)
        requests_polled(s, &j->polled);
    if (j->batch.claim_count > 0 && (j->err == ERR_UNKNOWN || (j->err == ERR_OK && !known)))
        landed_claims_unknown(s);
    for (size_t i = 0; i < j->load_count; i++)
        landed_load(s, j->loaded[i], &j->loads[i]);
    for (size_t i = 0; i < j->item_count; i++)
        landed_items(s, &j->items[i]);
}

/* Whoever reads notices and submissions looks at once: also after a commit of unknown outcome. */
static void report_family(struct scheduler *s, const struct job *j)
{
    if (s->family_told && s->outside.family_told && (j->err == ERR_OK || j->err == ERR_UNKNOWN))
        s->outside.family_told(s->outside.arg);
    s->family_told = false;
}

static void job_done(struct store_job *sj)
{
    struct job *j = CONTAINER_OF(sj, struct job, store_job);
    struct scheduler *s = j->s;
    size_t written = j->batch.change_count + j->batch.claim_count;

    ASSERT(s->job == j);
    tasks_freeze_now(&s->tasks);
    s->job = NULL;
    s->job_took_ms = scheduler_now(s) - j->asked_at;
    enum err err = error_of(j);
    land_surroundings(s, j);
    if (j->err == ERR_OK && s->outside.committed && written > 0)
        s->outside.committed(s->outside.arg, j->batch.change_count, sj->took_us);
    landed_trouble(s, err, written > 0 || j->probe, &j->error);
    land_changes(s, j);
    land_rows(s, j);
    report_family(s, j);
    tasks_release_now(&s->tasks);
    messages_keep(s, j); /* or frees the job */
}

/* ---- the batch ---- */

static void gather_loads(struct scheduler *s, struct job *j)
{
    size_t max = list_count(&s->tasks.loads, LOAD_MAX);

    if (max == 0)
        return;
    j->loads = arena_alloc(&j->arena, max * sizeof *j->loads);
    j->loaded = arena_alloc(&j->arena, max * sizeof(struct live *));
    while (j->load_count < max && !list_empty(&s->tasks.loads)) {
        struct live *l = CONTAINER_OF(list_first(&s->tasks.loads), struct live, load_link);
        ASSERT(!l->loaded);
        ASSERT(!l->in_flight);
        link_remove(&l->load_link);
        l->in_flight = true; /* nothing may be decided until it is read */
        LIST_FOREACH (link, after, &l->inbox)
            CONTAINER_OF(link, struct command, link)->overtook = false;
        j->loaded[j->load_count] = l;
        j->loads[j->load_count++] = (struct reading){.id = l->id};
    }
}

static void gather_owned(struct scheduler *s, struct job *j)
{
    j->reads_owned = s->checking_owned;
    j->owned = (struct list_query){.states = 1U << s->owned_state,
                                   .before_seq = s->owned_before_seq,
                                   .limit = OWNED_MAX};
}

/* What else the store is asked for. True: anything, with the changes, claims and loads so far. */
static bool gather_rest(struct scheduler *s, struct job *j)
{
    gather_owned(s, j);
    j->seizes = shared_seize(s, &j->arena, &j->lease_try);
    j->polls = s->polling;
    j->poll_after_seq = s->poll_after_seq;
    j->probe = s->troubled;
    j->save_count = breakers_to_save(&s->tasks, &j->arena, j->saves, SAVES_MAX);
    j->reads_agents = s->tasks.agents_stale;
    j->agents_after = s->tasks.agents_generation;
    j->reads_overruns = s->overruns_stale;
    j->has_overruns = overruns_any(&s->tasks.overruns);
    bool any = j->seizes || j->polls || j->reads_owned || j->probe || j->reads_agents
               || j->reads_overruns || j->save_count
               || j->batch.change_count + j->batch.claim_count + j->load_count + j->item_count > 0;
    j->surveys = shared_survey(s, &j->arena, any, &j->survey);
    return any || j->surveys;
}

/* Gives the store a batch, if there is something for it, and it has none. */
static void flush(struct scheduler *s)
{
    if (s->job || scheduler_now(s) < s->retry_at)
        return;
    struct job *j = job_new(s);
    change_gather(s, j);
    claim_gather(s, j);
    gather_loads(s, j);
    items_gather(s, j);
    if (!gather_rest(s, j)) {
        job_drop(s, j);
        return;
    }
    s->tasks.counts.batches++;
    s->tasks.counts.changes += j->batch.change_count;
    j->asked_at = scheduler_now(s);
    j->store_job =
        (struct store_job){.run = job_run, .done = job_done, .urgent = j->seizes || j->surveys};
    ASSERT(!s->job);
    s->job = j;
    s->store->submit(s->store, &j->store_job);
}

/* ---- answers ---- */

static void send_answers(struct scheduler *s)
{
    commands_answer(s);
    work_answer_ready(s);
    messages_report(s);
}

/* ---- the turn ---- */

/* When the store's backlog is to be claimed; 0: none is known. */
static int64_t next_claim(const struct scheduler *s)
{
    int64_t at = 0;

    if (s->locks)
        return scheduler_now(s);
    for (size_t i = 0; i < DUES; i++)
        at = earlier(at, s->due_at[i]);
    return at;
}

/* When something is due for tasks in memory and agents; 0: nothing is. */
static int64_t next_in_memory(const struct scheduler *s)
{
    const struct heap_node *nap = heap_min(&s->tasks.naps);
    int64_t at = earlier(nap ? nap->key : 0, silence_next(&s->tasks));

    at = earlier(at, earlier(dispatch_wakes_at(&s->tasks.dispatch), limits_next(&s->tasks)));
    return earlier(at, breakers_next(&s->tasks));
}

int64_t scheduler_due_at(const struct scheduler *s)
{
    return earlier(next_in_memory(s), s->locks ? 0 : next_claim(s));
}

void scheduler_calls_move(struct scheduler *s, int64_t by_ms)
{
    struct heap *h = &s->tasks.waits;

    for (size_t i = 0; i < h->len; i++) /* their order stays */
        h->nodes[i]->key += by_ms;
}

static int64_t next_turn(const struct scheduler *s)
{
    const struct heap_node *wait = heap_min(&s->tasks.waits);
    int64_t at = earlier(wait ? wait->key : 0, next_in_memory(s));

    if (s->tasks.counts.waiting > 0)
        at = earlier(at, s->sweep_at);
    if (!list_empty(&s->answers) || !list_empty(&s->tasks.undecided) || s->starts_left)
        return scheduler_now(s);
    if (s->job)
        return at;                      /* its completion is a turn */
    if (s->retry_at > scheduler_now(s)) /* no store access before */
        return earlier(at, s->retry_at);
    at = earlier(at, shared_next(s));
    if (!s->draining && s->tasks.counts.live < s->config.live_max && shared_may_claim(s))
        at = earlier(at, next_claim(s));
    bool more = !list_empty(&s->tasks.dirty) || !list_empty(&s->tasks.loads)
                || !list_empty(&s->tasks.item_reads) || !list_empty(&s->tasks.inboxes)
                || !list_empty(&s->tasks.unsaved) || s->tasks.agents_stale || s->overruns_stale
                || s->checking_owned || s->troubled;
    return more ? scheduler_now(s) : at;
}

int64_t scheduler_turn(struct scheduler *s)
{
    tasks_freeze_now(&s->tasks);
    int64_t now = scheduler_now(s);

    take_due(s, now);
    decide_more(s);
    process_inboxes(s);
    start_steps(s, now);
    flush(s);
    send_answers(s);
    process_inboxes(s); /* attempts that were not sent are decided now, and committed next */
    tasks_release_now(&s->tasks);
    s->starts_left = effort_left_out(&s->tasks.effort, EFFORT_INPUTS);
    effort_end_turn(&s->tasks.effort);
    if (s->outside.turn_over)
        s->outside.turn_over(s->outside.arg);
    return next_turn(s);
}
