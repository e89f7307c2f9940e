/* A node's way to the state store, with failures, and with the checkers at every commit. See
 * disk.h. */

#include "sim/disk.h"

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/node.h"
#include "sim/notices.h"
#include "sim/operations.h"
#include "sim/overruns.h"
#include "sim/sql.h"
#include "sim/weather.h"
#include "sim/world.h"
#include "store/memory/memory.h"

struct store *inner;

struct disk *disk_of(struct store *s)
{
    return CONTAINER_OF(s, struct disk, store);
}

void disk_troubled(struct disk *d, int64_t until)
{
    d->trouble_at = max_i64(d->trouble_at, until);
}

/* ---- time ---- */

/* The store's answer has the time of some moment between the request and now. */
void disk_measure(struct disk *d)
{
    struct node *n = d->node;
    int64_t took = nodes.round_trip_max ? between(0, nodes.round_trip_max) : 0;
    int64_t since = took ? between(0, took) : 0;

    d->measure = false;
    if (!nodes.shared)
        return;
    int64_t off =
        store_time_sample(n->time, node_steady(n) - took, node_steady(n), store_now() - since);
    if (off > 1000 || off < -1000)
        trace("%s finds the store's clock %" PRId64 " ms off", n->me, off);
}

/* ---- a store that fails ---- */

bool disk_is_cut(const struct disk *d)
{
    return d->dead || d->cut_until > world.now || store_is_away();
}

static void claims_empty(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->claims[i].rows = NULL;
        b->claims[i].row_count = 0;
        b->claims[i].more = false;
        b->claims[i].next_rank = 0;
    }
}

static enum err fails(struct disk *d, struct batch *b, enum err err, struct error *e)
{
    disk_troubled(d, world.now);
    claims_empty(b);
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].outcome = err;
    return error_set(e, err, "simulated: %s", err_text(err));
}

static void show_audit(struct subject *t, enum task_state old, struct arena *a)
{
    const struct audit_query q = {.task = slice_of(t->id), .limit = 1000};
    struct audit_page all;
    struct error e = {0};

    enum err err = inner->ops->audit_list(inner, &q, a, &all, &e);
    ASSERT(err == ERR_OK);
    ASSERT(!all.more);
    check_audit(t, &all, old, t->seen.state);
}

/* Reads what became durable and passes it to the checkers. */
static void show(struct disk *d, struct slice id, uint64_t changes, bool told)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row;
    struct error e = {0};

    enum err err = inner->ops->get(inner, id, &a, &row, &e);
    ASSERT(err == ERR_OK);
    struct subject *t = subject_find(id);
    enum task_state old = t->seen.revision ? t->seen.state : TASK_PENDING;
    check_row(d->node, &row, changes, told);
    operations_seen(t);
    /* a cancel by an operation also affects its rank */
    if (t->verbs || t->cancel || t->signals_sent > 0 || t->votes_sent > 0)
        show_audit(t, old, &a);
}

static bool is_claimed(const struct batch *b, struct slice id)
{
    for (size_t i = 0; i < b->claim_count; i++)
        for (size_t k = 0; k < b->claims[i].row_count; k++)
            if (slice_eq(b->claims[i].rows[k].id, id))
                return true;
    return false;
}

static bool is_changed(const struct batch *b, struct slice id)
{
    for (size_t i = 0; i < b->change_count; i++)
        if (b->changes[i].outcome == ERR_OK && slice_eq(b->changes[i].row.id, id))
            return true;
    return false;
}

/* After a commit of unknown outcome the node does not know what it has taken over. */
static void note_taken_over(const struct node *n, const struct claim *c, bool told)
{
    bool is_other = c->kind == CLAIM_NODE || c->kind == CLAIM_BOOT;

    for (size_t i = 0; told && is_other && nodes.shared && i < c->row_count; i++)
        overruns_taken_over(n, c->rows[i].id);
}

static void show_batch(struct disk *d, struct batch *b, bool told)
{
    check_claims(d->node, b);
    for (size_t i = 0; i < b->change_count; i++) {
        const struct change *c = &b->changes[i];
        if (c->outcome == ERR_OK)
            show(d, c->row.id, 1 + is_claimed(b, c->row.id), told && c->kind != CHANGE_REQUEST);
        else if (c->outcome == ERR_CONFLICT)
            check_conflict(&c->row);
    }
    families_meet();
    sql_changed();
    sql_signals_changed();
    check_families_batch();
    for (size_t i = 0; i < b->change_count; i++)
        if (b->changes[i].outcome == ERR_OK)
            sql_became(&b->changes[i]);
    check_requests(d->node, b);
    check_starts(d->node, b);
    check_limits();
    for (size_t i = 0; i < b->claim_count; i++) {
        check_claim(&b->claims[i]);
        note_taken_over(d->node, &b->claims[i], told);
        for (size_t k = 0; k < b->claims[i].row_count; k++)
            if (!is_changed(b, b->claims[i].rows[k].id))
                show(d, b->claims[i].rows[k].id, 1, told);
    }
    check_locks_batch();
}

/* One change of the batch cannot be stored; it is put last, and the others are committed without
 * it. */
static enum err commit_without_one(struct disk *d, struct batch *b, struct arena *a,
                                   struct error *e)
{
    struct change *last = &b->changes[b->change_count - 1];

    disk_troubled(d, world.now);
    b->change_count--;
    enum err err = family_commit(b, a, e);
    if (err == ERR_OK)
        show_batch(d, b, true);
    b->change_count++;
    last->outcome = err == ERR_OK ? ERR_TOO_BIG : err;
    struct subject *t = subject_find(last->row.id);
    memset(t->unsent, 0, sizeof t->unsent); /* what should be sent about it is lost, correctly */
    return err;
}

/* A batch takes no more once it is long enough. (The supervisor's requests write no documents.) */
static void check_length(const struct disk *d, const struct batch *b)
{
    size_t size = 0;

    for (size_t i = 0; d->node->batch_bytes && i < b->change_count; i++) {
        const struct task_row *row = &b->changes[i].row;
        if (size >= d->node->batch_bytes)
            broken("a batch has a length", "%s: %zu bytes, and more", d->node->me, size);
        if (b->changes[i].kind != CHANGE_REQUEST)
            size += row->doc.len;
        for (size_t k = 0; k < row->payload_count; k++)
            size += row->payloads[k].json.len;
    }
}

static enum err commit(struct store *s, struct batch *b, struct arena *a, struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) && !d->farewell)
        return fails(d, b, ERR_IO, e);
    if (!inner->shared)
        b->fence = NULL; /* no other node can be the leader */
    for (size_t i = 0; i < b->claim_count; i++)
        if (b->claims[i].kind == CLAIM_NODE)
            b->claims[i].now = store_now(); /* leases are judged by the store's clock */
    trace("%s commits: %zu changes, %zu claims", d->node->me, b->change_count, b->claim_count);
    check_length(d, b);
    if (chance(weather.store_fails)) {
        trace("commit fails");
        return fails(d, b, chance(300) ? ERR_FULL : chance(500) ? ERR_BUSY : ERR_IO, e);
    }
    bool unknown = chance(weather.store_unknown) || d->farewell;
    d->farewell = false;
    if (d->measure)
        disk_measure(d);
    if (unknown && chance(500)) {
        covered(COVER_UNKNOWN_LOST);
        trace("commit is lost, outcome unknown");
        return fails(d, b, ERR_UNKNOWN, e);
    }
    if (!unknown && b->change_count > 0 && chance(weather.store_refuses)
        && !family_begins_with(&b->changes[b->change_count - 1]))
        return commit_without_one(d, b, a, e);
    enum err err = family_commit(b, a, e);
    if (err == ERR_CONFLICT && b->fence)
        covered(COVER_DEPOSED);
    if (err != ERR_OK)
        return err;
    show_batch(d, b, !unknown);
    if (!unknown)
        return ERR_OK;
    covered(COVER_UNKNOWN_STORED);
    trace("commit is stored, outcome unknown");
    return fails(d, b, ERR_UNKNOWN, e);
}

bool disk_read_fails(struct disk *d, struct error *e)
{
    bool cut = disk_is_cut(d);

    if (!cut && !chance(weather.read_fails)) {
        if (d->measure)
            disk_measure(d);
        return false;
    }
    disk_troubled(d, world.now);
    (void)error_set(e, ERR_IO, "simulated: cannot be read");
    return true;
}

static enum err probe(struct store *s, struct error *e)
{
    const struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails))
        return error_set(e, ERR_IO, "simulated: cannot be written");
    return inner->ops->probe(inner, e);
}

static enum err get(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO : inner->ops->get(inner, id, a, ret, e);
}

/* One round trip for all. */
static enum err get_many(struct store *s, struct reading *r, size_t count, struct arena *a,
                         struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    for (size_t i = 0; i < count; i++)
        r[i].err = inner->ops->get(inner, r[i].id, a, &r[i].row, &r[i].error);
    return ERR_OK;
}

static enum err reserved(struct store *s, struct slice id, struct arena *a, struct reservation *ret,
                         struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO
                                          : inner->ops->retention->reserved(inner, id, a, ret, e);
}

static enum err overdue(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->overdue(inner, now, after_wake_at, after_seq, limit, a, ret, e);
}

static enum err list(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO : inner->ops->list(inner, q, a, ret, e);
}

static enum err requested(struct store *s, struct slice locked_by, int64_t after_seq, size_t limit,
                          struct arena *a, struct row_page *ret, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    enum err err = inner->ops->requested(inner, locked_by, after_seq, limit, a, ret, e);
    if (err == ERR_OK && ret->count > 0)
        covered(COVER_FOUND_REQUEST);
    return err;
}

/* As soon as the node leads, another one takes over. */
static void depose(const struct node *n, const struct lease_try *want)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct node *other = node_any();
    struct lease_try seizes = *want;
    struct lease got;
    struct error e = {0};

    if (!other || other == n || !node_is_up(other) || want->length_ms == 0)
        return;
    seizes.holder = slice_of(other->me);
    seizes.seize = true;
    enum err err = inner->ops->lease(inner, &seizes, &a, &got, &e);
    ASSERT(err == ERR_OK);
    trace("%s loses its leadership to %s", n->me, other->me);
    seizes.now = got.until; /* it does not know */
    check_lease(other, &seizes, &got);
    disk_troubled(&other->disk, world.now); /* it has not received that yet */
}

static enum err give(struct store *s, const struct lease_try *want, struct arena *a,
                     struct lease *ret, struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_read_fails(d, e))
        return ERR_IO;
    if (!inner->shared) { /* like stores with one node */
        *ret = (struct lease){.holder = arena_copy(a, want->holder),
                              .epoch = d->node->boot,
                              .until = want->now + want->length_ms};
        return ERR_OK;
    }
    struct lease_try judged = *want; /* by the store's clock */
    judged.now = store_now();
    enum err err = inner->ops->lease(inner, &judged, a, ret, e);
    if (err != ERR_OK)
        return err;
    check_lease(d->node, &judged, ret);
    check_given(d->node, &judged, ret);
    disk_measure(d);
    if (slice_is(want->name, "supervisor") && slice_is(ret->holder, d->node->me)
        && chance(weather.deposes))
        depose(d->node, &judged);
    return ERR_OK;
}

static enum err lease(struct store *s, const struct lease_try *want, struct arena *a,
                      struct lease *ret, struct error *e)
{
    enum err err = give(s, want, a, ret, e);

    if (err == ERR_OK)
        check_lease_told(disk_of(s)->node, want->name, ret);
    return err;
}

/* The leases as above, which then exist already; then the rest. */
static enum err survey(struct store *s, struct survey *v, struct arena *a, struct error *e)
{
    struct lease_try want = {.name = v->lease,
                             .holder = v->owner,
                             .now = v->now,
                             .length_ms = v->length_ms};
    int64_t asked_at = v->now;
    struct lease ignored;

    enum err err = give(s, &want, a, &ignored, e);
    want.name = SLICE(SUPERVISOR_LEASE);
    if (err == ERR_OK && v->leads)
        err = give(s, &want, a, &ignored, e);
    if (err != ERR_OK)
        return err;
    v->now = store_now();
    err = inner->ops->nodes->survey(inner, v, a, e);
    v->now = asked_at;
    check_survey_told(disk_of(s)->node, v);
    overruns_surveyed(disk_of(s)->node);
    return err;
}

static enum err workflow_since(struct store *s, uint64_t after, struct arena *a,
                               struct workflow_row **ret, size_t *ret_count,
                               uint64_t *ret_generation, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    enum err err =
        inner->ops->nodes->workflow_since(inner, after, a, ret, ret_count, ret_generation, e);
    if (err == ERR_OK && *ret_count > 0)
        covered(COVER_LEARNED);
    return err;
}

/* In an outage of the store it is written later. */
static enum err agent_put(struct store *s, const struct agent_change *c, const struct audit *audit,
                          struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    enum err err = inner->ops->agent_put(inner, c, audit, e);
    trace("%s writes of %.*s: %s: %.*s", d->node->me, SLICE_ARG(c->name), err_text(err),
          SLICE_ARG(c->text));
    if (err == ERR_CONFLICT)
        covered(COVER_BREAKER_CONFLICT);
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

static enum err agent_since(struct store *s, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->agent_since(inner, after, a, ret, ret_count, ret_generation, e);
}

static enum err overrun_list(struct store *s, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e)
{
    const struct node *n = disk_of(s)->node;
    bool fails = disk_read_fails(disk_of(s), e);

    overruns_read(n, !fails);
    return fails ? ERR_IO : inner->ops->overrun_list(inner, a, ret, ret_count, e);
}

static enum err operation_put(struct store *s, const struct operation_row *row,
                              const struct audit *audit, struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    enum err err = inner->ops->operations->put(inner, row, audit, e);
    trace("%s writes operation %.*s: %s: %.*s %.*s", d->node->me, SLICE_ARG(row->id), err_text(err),
          SLICE_ARG(row->state), SLICE_ARG(row->doc));
    if (err == ERR_OK)
        check_operation(row);
    if (err == ERR_CONFLICT)
        covered(COVER_OPERATION_CONFLICT);
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

static enum err operation_list(struct store *s, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO
                                          : inner->ops->operations->list(inner, q, a, ret, e);
}

static enum err audit_list(struct store *s, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO : inner->ops->audit_list(inner, q, a, ret, e);
}

static enum err outbox_read(struct store *s, struct outbox_read *r, struct arena *a,
                            struct error *e)
{
    return disk_read_fails(disk_of(s), e) ? ERR_IO : inner->ops->outbox->read(inner, r, a, e);
}

static enum err outbox_targets(struct store *s, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->outbox->targets(inner, q, a, ret, ret_count, e);
}

static enum err outbox_settle(struct store *s, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e)
{
    struct disk *d = disk_of(s);

    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    enum err err = inner->ops->outbox->settle(inner, list, count, inner->shared ? fence : NULL, e);
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

static enum err stopped(struct store *s, int64_t after_ended_at, int64_t after_seq, size_t limit,
                        struct arena *a, struct stopped_page *ret, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->alerts->stopped(inner, after_ended_at, after_seq, limit, a, ret, e);
}

static enum err alert_list(struct store *s, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e)
{
    if (disk_read_fails(disk_of(s), e))
        return ERR_IO;
    return inner->ops->alerts->list(inner, q, a, ret, e);
}

static enum err alert_put(struct store *s, const struct alert_row *row, struct error *e)
{
    struct disk *d = disk_of(s);

    if (d->dead)
        return error_set(e, ERR_IO, "simulated: it is dead");
    if (disk_is_cut(d) || chance(weather.store_fails)) {
        disk_troubled(d, world.now);
        return error_set(e, ERR_IO, "simulated: cannot be written");
    }
    bool unknown = chance(weather.store_unknown);
    if (unknown && chance(500))
        return error_set(e, ERR_UNKNOWN, "simulated: a commit is lost");
    struct alert_row fenced = *row;
    if (!inner->shared)
        fenced.fence = NULL; /* no other node can be the leader */
    enum err err = inner->ops->alerts->put(inner, &fenced, e);
    trace("%s writes alert %.*s: %s", d->node->me, SLICE_ARG(row->id), err_text(err));
    if (err == ERR_OK && unknown)
        return error_set(e, ERR_UNKNOWN, "simulated: a commit's answer is lost");
    return err;
}

static const struct store_outbox_ops outbox_ops = {
    .read = outbox_read,
    .targets = outbox_targets,
    .settle = outbox_settle,
};

static const struct store_alert_ops alerts_ops = {
    .stopped = stopped,
    .list = alert_list,
    .put = alert_put,
};

static const struct store_operation_ops operations_ops = {
    .put = operation_put,
    .list = operation_list,
};

static const struct store_retention_ops retention_ops = {
    .reserved = reserved,
};

static const struct store_node_ops nodes_ops = {
    .survey = survey,
    .workflow_since = workflow_since,
};

static const struct store_ops ops = {
    .commit = commit,
    .probe = probe,
    .get = get,
    .get_many = get_many,
    .overdue = overdue,
    .list = list,
    .requested = requested,
    .lease = lease,
    .agent_put = agent_put,
    .agent_since = agent_since,
    .overrun_list = overrun_list,
    .audit_list = audit_list,
    .outbox = &outbox_ops,
    .submissions = &disk_submissions_ops,
    .notices = &disk_notices_ops,
    .alerts = &alerts_ops,
    .operations = &operations_ops,
    .schedules = &disk_schedules_ops,
    .retention = &retention_ops,
    .nodes = &nodes_ops,
    .items = &disk_item_ops,
};

/* ---- the queue ---- */

static void run_one(void *arg, uint64_t life);

static void done_one(void *arg, uint64_t life)
{
    struct disk *d = arg;

    if (life != d->life || d->node->dead || node_sleeps(d->node, done_one, arg, life))
        return;
    struct link *first = list_first(&d->ran);
    ASSERT(first);
    link_remove(first);
    struct store_job *j = CONTAINER_OF(first, struct store_job, link);
    j->done(j);
    d->dones++;
    if (!d->node->dead) { /* otherwise it ended on the way, with its reports */
        check_told(d->node, d->dones);
        check_beliefs(d->node);
    }
    d->node->spins = 0;
    if (chance(weather.crash_inside))
        node_crash(d->node, "before it could speak");
    node_turn(d->node);
}

static void schedule_run(struct disk *d)
{
    int64_t delay = between(0, weather.store_ms);

    if (d->scheduled || list_empty(&d->waiting))
        return;
    if (d->stall_ms || chance(weather.store_stalls)) {
        delay = d->stall_ms ? d->stall_ms : spread(500, 20000);
        d->stall_ms = 0;
        trace("the store stalls for %" PRId64 " ms", delay);
        disk_troubled(d, world.now + delay);
    }
    if (weather.store_ms > SLOW_MS) /* and the weather may be calm before it is over */
        disk_troubled(d, world.now + delay);
    d->scheduled = true;
    later(delay, run_one, d, d->life);
}

/* Lease jobs go before everything that waits. */
static struct link *next_job(struct disk *d)
{
    struct link *first = list_first(&d->waiting);

    LIST_FOREACH (l, after, &d->waiting)
        if (CONTAINER_OF(l, struct store_job, link)->urgent) {
            if (l != first)
                covered(COVER_OVERTAKEN);
            return l;
        }
    return first;
}

/* No other job runs while an urgent one waits. */
static void check_urgent(const struct disk *d, const struct store_job *j)
{
    LIST_FOREACH (l, after, &d->waiting)
        if (!j->urgent && CONTAINER_OF(l, struct store_job, link)->urgent)
            broken("what is urgent is never behind", "%s", d->node->me);
}

static void run_one(void *arg, uint64_t life)
{
    struct disk *d = arg;

    if (life != d->life || d->node->dead || node_sleeps(d->node, run_one, arg, life))
        return;
    struct link *first = next_job(d);
    ASSERT(first);
    link_remove(first);
    list_push(&d->ran, first);
    struct store_job *j = CONTAINER_OF(first, struct store_job, link);
    check_urgent(d, j);
    d->runs++;
    j->run(j, &d->store);
    d->scheduled = false;
    d->done_at = max_i64(d->done_at, world.now + between(0, 2));
    later(d->done_at - world.now, done_one, d, life);
    if (chance(weather.crash_inside))
        node_crash(d->node, "before it heard of its commit");
    else
        schedule_run(d);
}

static void submit(struct store_queue *q, struct store_job *j)
{
    struct disk *d = CONTAINER_OF(q, struct disk, queue);

    d->node->deeds++;
    list_init(&j->link);
    list_push(&d->waiting, &j->link);
    if (!d->dead)
        schedule_run(d);
}

/* ---- construction, crash, boot ---- */

void store_begin(bool shared)
{
    failover_begin();
    disk_spoil_rows(0);
    inner = memory_store_new();
    inner->shared = shared;
}

void store_end(void)
{
    inner->ops->close(inner);
}

void disk_begin(struct disk *d, struct node *n)
{
    *d = (struct disk){.node = n};
    d->store = (struct store){.ops = &ops, .shared = inner->shared};
    d->queue.submit = submit;
    list_init(&d->waiting);
    list_init(&d->ran);
}

void disk_crash(struct disk *d)
{
    bool reaches = chance(500) && !d->stuck;

    d->life++;
    while (!list_empty(&d->waiting) || !list_empty(&d->ran)) {
        struct link *first = list_first(&d->ran);
        if (!first) {
            first = d->waiting.next; /* not empty, because of the loop's condition */
            d->dead = !reaches;
            reaches = false;
            struct store_job *w = CONTAINER_OF(first, struct store_job, link);
            w->run(w, &d->store);
        }
        d->dead = true;
        link_remove(first);
        struct store_job *j = CONTAINER_OF(first, struct store_job, link);
        j->done(j);
    }
    d->dead = true;
}

void disk_boot(struct disk *d)
{
    ASSERT(disk_is_idle(d));
    d->dead = d->stuck = false;
    d->scheduled = false;
    d->done_at = 0;
    d->cut_until = 0;
    d->farewell = d->measure = false;
    d->dones = d->runs;
    d->life++;
}

void disk_stall(struct disk *d, int64_t ms)
{
    d->stall_ms = ms;
}

void disk_cut(struct disk *d, int64_t ms)
{
    covered(COVER_CUT);
    d->cut_until = world.now + ms;
    d->measure = true;
}

bool disk_is_idle(const struct disk *d)
{
    return list_empty(&d->waiting) && list_empty(&d->ran);
}

bool disk_has_unheard(const struct disk *d)
{
    return !list_empty(&d->ran);
}
