/* Where several nodes share the store: the lease of this node, and what it finds of others when it
 * renews it. Reads and claims themselves are parts of a batch: claim.c, requests.c. */

#include "scheduler/internal.h"

#include "base/log.h"
#include "store/row.h"

/*
 * For nodes that share a store. Each node holds a lease under its name, so that the others know
 * that it lives. When it renews the lease, each second, it also finds what other nodes wrote,
 * because no notification exists: tasks that wait for its agents or for a time that has come, tasks
 * of a node whose lease has expired, and requests of another node's supervisor. One statement
 * surveys all of that; the tasks are then claimed or read.
 */

enum {
    SURVEY_MS = 1000, /* a dead node is taken over after its lease and at most this */
    AGENTS_MAX = 256, /* in one survey; the others are assumed to have tasks */
};

bool shared_may_claim(const struct scheduler *s)
{
    return !s->config.idle && (!s->config.shared || s->lease_until > scheduler_now(s));
}

static struct slice lease_name(const struct scheduler *s, struct arena *a)
{
    CLEANUP(buf_fini) struct buf name = {0};

    buf_str(&name, NODE_LEASE);
    buf_slice(&name, s->config.node);
    return arena_copy(a, buf_view(&name));
}

static bool has_lease(const struct scheduler *s)
{
    return s->config.shared && !s->replaced && !s->left;
}

bool shared_seize(struct scheduler *s, struct arena *a, struct lease_try *ret)
{
    if (!has_lease(s) || !s->seizing)
        return false;
    *ret = (struct lease_try){.name = lease_name(s, a),
                              .holder = s->me,
                              .now = scheduler_now(s),
                              .length_ms = s->config.lease_ms,
                              .seize = true};
    return true;
}

/* A newer process with this node's name has taken over the node and its tasks. */
static void replaced_by(struct scheduler *s, struct slice holder)
{
    log_line(LOG_ERROR, "event=node_replaced node=%.*s by=%.*s", SLICE_ARG(s->me),
             SLICE_ARG(holder));
    s->replaced = true;
    s->lease_until = 0;
    scheduler_drain(s);
}

/* The lease counts from the time it was requested, on our own clock: the store counts from later,
 * on its own. */
void shared_leased(struct scheduler *s, int64_t asked_at, const struct lease *l)
{
    ASSERT(s->config.shared);
    ASSERT(asked_at > 0);
    if (slice_eq(l->holder, s->me)) {
        s->lease_until = asked_at + s->config.lease_ms;
        s->seizing = false;
    } else if (owner_boot(l->holder) > s->config.boot) {
        replaced_by(s, l->holder);
    } else {
        s->lease_until = 0; /* it may have been seized just before this answer */
        s->seizing = true;  /* from an older boot */
    }
}

/* ---- leaving ---- */

static void leave_run(struct store_job *j, struct store *store)
{
    struct scheduler *s = CONTAINER_OF(j, struct scheduler, leave_job);
    struct lease ignored = {0};
    struct error e = {0};

    /* If this fails, the lease expires. */
    (void)store->ops->lease(store, &s->leave_try, &s->leave_arena, &ignored, &e);
}

static void leave_done(struct store_job *j)
{
    struct scheduler *s = CONTAINER_OF(j, struct scheduler, leave_job);

    arena_fini(&s->leave_arena);
    s->leaving = false;
}

/* A job of its own, after the current one, which may renew the lease. */
void shared_leave(struct scheduler *s)
{
    bool may_have_it = has_lease(s); /* or a survey at the store takes it */
    int64_t now = scheduler_now(s);

    s->left = true;
    if (!may_have_it)
        return;
    s->lease_until = 0;
    s->leaving = true;
    s->leave_try = (struct lease_try){.name = lease_name(s, &s->leave_arena),
                                      .holder = s->me,
                                      .now = now}; /* length 0: expires at once */
    s->leave_job = (struct store_job){.run = leave_run, .done = leave_done};
    s->store->submit(s->store, &s->leave_job);
}

/* ---- surveys ---- */

/* The agents for which tasks may wait that this node does not know yet. */
static void gather_agents(struct scheduler *s, struct arena *a, struct survey *v)
{
    struct slice *names = arena_alloc(a, AGENTS_MAX * sizeof *names);
    int64_t now = scheduler_now(s);
    struct agent *agent = NULL;

    for (size_t i = 0; (agent = map_next(&s->tasks.dispatch.agents, &i));) {
        if ((agent->backlog.alone && agent->backlog.among) || !dispatch_is_connected(agent, now))
            continue;
        if (v->agent_count < AGENTS_MAX)
            names[v->agent_count++] = arena_copy(a, agent->name);
        else
            agent->backlog = BACKLOG_UNKNOWN;
    }
    v->agents = names;
}

/* Where the store is far away, a survey goes along with a job that would end after the survey is
 * due: waiting for that job could let the lease expire. */
bool shared_survey(struct scheduler *s, struct arena *a, bool along, struct survey *ret)
{
    int64_t now = scheduler_now(s);
    int64_t every = min_i64(SURVEY_MS, s->config.lease_ms / 3);
    int64_t early = along ? min_i64(s->job_took_ms, every) : 0;

    if (!has_lease(s) || s->seizing || now < s->survey_at - early)
        return false;
    s->survey_at = now + every;
    *ret = (struct survey){.lease = lease_name(s, a),
                           .owner = s->me,
                           .now = now,
                           .length_ms = s->config.lease_ms};
    ret->leads = s->outside.wants_lead && s->outside.wants_lead(s->outside.arg);
    if (!s->config.idle)
        gather_agents(s, a, ret);
    return true;
}

/* Which of its lines they wait in is unknown. */
static void tasks_wait(struct agent *a, bool alone, bool among)
{
    a->stored |= alone || among;
    a->backlog.alone |= alone;
    a->backlog.among |= among;
    for (size_t k = 0; k < a->line_count; k++) {
        struct lane *l = a->lines[k];
        l->backlog.alone |= alone;
        l->backlog.among |= among;
        l->more.alone |= alone;
        l->more.among |= among;
    }
}

static void take_survey(struct scheduler *s, const struct survey *v)
{
    ASSERT(!s->config.idle);
    ASSERT(v->agent_count <= AGENTS_MAX);
    s->polling |= v->requested;
    s->reclaiming |= v->orphans;
    s->uncounted |= v->orphans;
    s->locks |= v->locks;
    s->due_at[DUE_TIME] = earlier(s->due_at[DUE_TIME], v->due_at);
    s->due_at[DUE_WAIT] = earlier(s->due_at[DUE_WAIT], v->wait_due_at);
    s->due_at[DUE_AMONG] = earlier(s->due_at[DUE_AMONG], v->among_due_at);
    for (size_t i = 0; i < v->agent_count; i++) {
        struct agent *a = map_get(&s->tasks.dispatch.agents, v->agents[i]);
        if (a)
            tasks_wait(a, v->waiting[i], v->among[i]);
    }
}

void shared_surveyed(struct scheduler *s, const struct survey *v)
{
    shared_leased(s, v->now, &v->own);
    dispatch_share(&s->tasks.dispatch, (struct share){v->schedulers, v->schedulers_before},
                   scheduler_now(s));
    breakers_stored_elsewhere(&s->tasks, v->own.generations.agents);
    if (!s->config.idle)
        take_survey(s, v);
    if (s->outside.surveyed)
        s->outside.surveyed(s->outside.arg, v);
    if (s->outside.generations)
        s->outside.generations(s->outside.arg, &v->own.generations);
}

void scheduler_left_out(struct scheduler *s, int64_t by_ms)
{
    ASSERT(has_lease(s));
    ASSERT(!s->job);
    s->survey_at += by_ms;
    s->lease_until += s->lease_until ? by_ms : 0;
}

int64_t shared_next(const struct scheduler *s)
{
    return !has_lease(s) ? 0 : s->seizing ? scheduler_now(s) : s->survey_at;
}

/* When the task's owner should have handled an overdue item: then the row is read again. */
int64_t shared_stale_at(const struct scheduler *s, const struct live *l)
{
    int64_t wake_at = s->config.shared ? task_wake_at(&l->task) : 0;

    return wake_at ? wake_at + STALE_MS : 0;
}
