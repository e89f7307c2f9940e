/*
 * The state store in memory: tasks, batches, claims and leases, and its table of operations. It
 * defines what the contract suite expects of the SQL bodies, so it is kept simple. Faults are
 * injected in the operations: here, in inbox.c, stored.c and told.c. The other files of this folder
 * hold the data.
 */
#include "store/memory/memory.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fault.h"
#include "store/codec/codec.h"
#include "store/memory/body.h"
#include "store/memory/task.h"
#include "store/row.h"
#include "json/json.h"

static void *grow(void *ptr, size_t count, size_t size)
{
    void *more = reallocarray(ptr, count, size);

    ASSERT(more);
    return more;
}

/* --- changes --- */

static void items_put(struct mem_task *t, const struct task_row *row)
{
    for (size_t i = 0; i < row->item_count; i++)
        mem_item_put(&t->items, &row->items[i]);
}

static enum err task_insert(struct memory_store *s, struct change *c, struct arena *a)
{
    if (map_get(&s->by_id, c->row.id)
        || mem_is_reserved(&s->reserved, c->row.id, c->row.submitted_at))
        return ERR_CONFLICT;
    if (!mem_payloads_are_new(NULL, &c->row))
        return ERR_INVALID;
    if (!memory_lock_has_room(s, c, a, &c->lock_holder))
        return ERR_TAKEN;
    if (c->submission && !mem_submission_become(&s->submissions, c->submission))
        return ERR_BUSY;
    if (s->task_count == s->task_cap) {
        s->task_cap = s->task_cap ? s->task_cap * 2 : 64;
        s->tasks = grow(s->tasks, s->task_cap, sizeof(struct mem_task *));
    }
    struct mem_task *t = calloc(1, sizeof *t);
    ASSERT(t);
    s->tasks[s->task_count++] = t;
    c->row.seq = ++s->last_seq;
    t->id = arena_copy(&t->life, c->row.id);
    map_put(&s->by_id, t->id, t);
    memory_task_set(t, &c->row);
    mem_payloads_add(t, &c->row);
    mem_payloads_drop(t, &c->row);
    items_put(t, &c->row);
    mem_waits_set(t, &c->row, false);
    memory_lock_change(s, c, t->row.seq);
    return ERR_OK;
}

static void task_update(struct mem_task *t, const struct change *c)
{
    struct task_row row = c->row;

    row.seq = t->row.seq;
#define KEEP(name, type, how) row.name = t->row.name;
    TASK_FIXED_COLUMNS(KEEP, )
    if (!c->wake_moved)
        row.wake_at = t->row.wake_at;
    memory_task_set(t, &row);
}

static void task_request(struct mem_task *t, const struct change *c)
{
    struct task_row row = t->row;

    row.revision = c->row.revision;
    row.request = c->row.request;
    row.wake_at = c->row.wake_at;
    if (c->release) {
        row.state = TASK_PENDING;
        row.locked_by = SLICE_NONE;
        row.waiting_for = c->row.waiting_for;
        row.rank = c->row.rank;
    }
    memory_task_set(t, &row);
}

static enum err change_task(struct memory_store *s, struct change *c, struct arena *a)
{
    enum err err = row_check(c);
    if (err != ERR_OK)
        return err;
    if (c->kind == CHANGE_INSERT)
        return task_insert(s, c, a);

    struct mem_task *t = map_get(&s->by_id, c->row.id);
    if (!t || t->row.revision != c->row.revision - 1)
        return ERR_CONFLICT;
    if (!mem_notices_wait(&s->notices, c->notices, c->notice_count))
        return ERR_CONFLICT;
    if (!mem_payloads_are_new(t, &c->row))
        return ERR_INVALID;
    if (!memory_lock_has_room(s, c, a, &c->lock_holder))
        return ERR_TAKEN;
    for (size_t i = 0; i < c->notice_count; i++)
        mem_notice_settle(&s->notices, &(struct notice_verdict){.seq = c->notices[i]});
    if (c->kind == CHANGE_UPDATE)
        task_update(t, c);
    else
        task_request(t, c);
    mem_payloads_add(t, &c->row);
    mem_payloads_drop(t, &c->row);
    items_put(t, &c->row);
    if (c->kind == CHANGE_UPDATE || c->release)
        mem_waits_set(t, &c->row, c->drops_waits);
    memory_lock_change(s, c, t->row.seq);
    return ERR_OK;
}

static enum err change_apply(struct memory_store *s, struct change *c, struct arena *a)
{
    enum err err = change_task(s, c, a);

    for (size_t i = 0; err == ERR_OK && i < c->audit_count; i++)
        mem_audit_add(&s->access, &c->audits[i]);
    if (err == ERR_OK && c->shows_operations)
        mem_audit_list(&s->access,
                       &(struct audit_query){.task = c->row.id, .limit = TASK_OPERATIONS_MAX}, a,
                       &c->operations);
    if (err == ERR_OK && c->drops_overruns)
        mem_overrun_delete(&s->overruns, c->row.id);
    for (size_t i = 0; err == ERR_OK && i < c->tell_count; i++)
        mem_notice_add(&s->notices, &c->tells[i]);
    for (size_t i = 0; err == ERR_OK && i < c->child_count; i++)
        mem_submission_add(&s->submissions, &c->children[i]);
    c->first_message = s->outbox.last_seq + 1;
    for (size_t i = 0; err == ERR_OK && i < c->message_count; i++)
        mem_outbox_add(&s->outbox, c->row.id, &c->messages[i]);
    return err;
}

/* --- the batch --- */

static void claims_empty(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->claims[i].rows = NULL;
        b->claims[i].row_count = 0;
        b->claims[i].more = false;
        b->claims[i].next_rank = 0;
    }
}

/* Nothing is undone here: whatever is to fail does so before the first change. */
enum err memory_batch_refused(struct memory_store *s, const struct batch *b, struct error *e)
{
    const struct lease *l = b->fence ? mem_lease_find(&s->nodes, b->fence->lease) : NULL;

    for (size_t i = 0; i < 1 + b->change_count + b->claim_count; i++)
        if (fault())
            return mem_fails(e);
    if (b->fence && (!l || l->epoch != b->fence->epoch))
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(b->fence->lease));
    if (fault())
        return error_set(e, ERR_UNKNOWN, "state store in memory: a commit failed");
    return ERR_OK;
}

static enum err memory_commit(struct store *base, struct batch *b, struct arena *a, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    claims_empty(b);
    enum err err = memory_batch_refused(s, b, e);
    if (err == ERR_OK) {
        for (size_t i = 0; i < b->change_count; i++)
            b->changes[i].outcome = change_apply(s, &b->changes[i], a);
        for (size_t i = 0; i < b->claim_count; i++)
            memory_claim(s, &b->claims[i], a);
        if (!fault())
            return ERR_OK;
        err = error_set(e, ERR_UNKNOWN, "state store in memory: a commit's answer was lost");
    }
    claims_empty(b);
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].outcome = err;
    return err;
}

/* --- reading --- */

static enum err memory_get(struct store *base, struct slice id, struct arena *a,
                           struct task_row *ret, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    const struct mem_task *t = map_get(&s->by_id, id);
    if (!t)
        return error_set(e, ERR_NOT_FOUND, "there is no task %.*s", SLICE_ARG(id));
    *ret = memory_row_out(t, a, WITH_PAYLOADS);
    return ERR_OK;
}

static int wake_order(const void *a, const void *b)
{
    const struct task_row *x = &(*(struct mem_task *const *)a)->row;
    const struct task_row *y = &(*(struct mem_task *const *)b)->row;

    if (x->wake_at != y->wake_at)
        return x->wake_at < y->wake_at ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void page_fill(struct mem_task **found, size_t count, size_t limit, bool groups,
                      struct arena *a, struct row_page *ret)
{
    *ret = (struct row_page){.count = count < limit ? count : limit, .more = count > limit};
    if (ret->count)
        ret->rows = arena_alloc(a, ret->count * sizeof *ret->rows);
    for (size_t i = 0; i < ret->count; i++)
        ret->rows[i] = memory_row_out(found[i], a, groups ? WITH_GROUPS : WITH_NOTHING);
}

static enum err memory_glance(struct store *base, const struct slice *ids, size_t count,
                              struct arena *a, struct glance *ret, struct error *e)
{
    const struct memory_store *s = memory_store_of(base);
    (void)a;

    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < count; i++) {
        const struct mem_task *t = map_get(&s->by_id, ids[i]);
        ret[i] = t ? (struct glance){t->row.revision, t->row.state} : (struct glance){0};
    }
    return ERR_OK;
}

static enum err memory_overdue(struct store *base, int64_t now, int64_t after_wake_at,
                               int64_t after_seq, size_t limit, struct arena *a,
                               struct row_page *ret, struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    size_t count = 0;

    if (fault())
        return mem_fails(e);
    struct mem_task **found = grow(NULL, s->task_count + 1, sizeof(struct mem_task *));
    for (size_t i = 0; i < s->task_count; i++) {
        const struct task_row *row = &s->tasks[i]->row;
        if (row->wake_at == 0 || row->wake_at > now)
            continue;
        if (row->wake_at > after_wake_at || (row->wake_at == after_wake_at && row->seq > after_seq))
            found[count++] = s->tasks[i];
    }
    qsort(found, count, sizeof(struct mem_task *), wake_order);
    page_fill(found, count, limit, true, a, ret);
    free(found);
    return ERR_OK;
}

static enum err memory_list(struct store *base, const struct list_query *q, struct arena *a,
                            struct row_page *ret, struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    size_t count = 0;
    size_t looked = 0;
    size_t i = s->task_count;

    if (fault())
        return mem_fails(e);
    struct mem_task **found = grow(NULL, s->task_count + 1, sizeof(struct mem_task *));
    while (q->before_seq > 0 && i > 0 && s->tasks[i - 1]->row.seq >= q->before_seq)
        i--;
    while (i-- > 0 && count <= q->limit) {
        const struct task_row *row = &s->tasks[i]->row;
        looked++;
        if (mem_list_wants(q, row) && (!q->asked || row->asked.ptr))
            found[count++] = s->tasks[i];
    }
    page_fill(found, count, q->limit, q->groups, a, ret);
    ret->scanned = looked;
    if (ret->more)
        ret->next_seq = found[q->limit ? q->limit - 1 : 0]->row.seq + !q->limit;
    free(found);
    return ERR_OK;
}

static enum err memory_probe(struct store *base, struct error *e)
{
    (void)base;
    return fault() ? mem_fails(e) : ERR_OK;
}

/* --- the node --- */

static struct generations generations_now(const struct memory_store *s)
{
    return (struct generations){.workflows = s->workflows.generation,
                                .tokens = s->access.generation,
                                .agents = s->agents.generation,
                                .outbox = s->outbox.generation};
}

static enum err memory_generations(struct store *base, struct generations *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    *ret = generations_now(memory_store_of(base));
    return ERR_OK;
}

static struct lease lease_try(struct memory_store *s, const struct lease_try *want, struct arena *a)
{
    struct lease l = mem_lease_try(&s->nodes, want);

    l.holder = arena_copy(a, l.holder);
    l.generations = generations_now(s);
    return l;
}

static enum err memory_lease(struct store *base, const struct lease_try *want, struct arena *a,
                             struct lease *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    *ret = lease_try(memory_store_of(base), want, a);
    return ERR_OK;
}

static void earlier_of(int64_t *at, bool is_there, int64_t other)
{
    if (is_there && (*at == 0 || other < *at))
        *at = other;
}

static void survey_task(struct memory_store *s, struct survey *v, const struct mem_task *t)
{
    const struct task_row *row = &t->row;
    const struct claim orphans = {.kind = CLAIM_NODE, .locked_by = v->owner, .now = v->now};
    struct claim c = {.kind = CLAIM_TIME, .agent = WAITING_WAIT};
    int64_t rank = 0;

    earlier_of(&v->wake_at, row->wake_at != 0, row->wake_at);
    earlier_of(&v->wait_due_at, memory_claim_wants(s, &c, t, &rank), row->rank);
    c.agent = WAITING_TIME;
    earlier_of(&v->due_at, memory_claim_wants(s, &c, t, &rank), row->rank);
    c.among = true;
    bool sleeps = memory_claim_wants(s, &c, t, &rank);
    earlier_of(&v->among_due_at, sleeps, rank);
    v->requested |= row->request.ptr && slice_eq(row->locked_by, v->owner);
    v->orphans |= memory_claim_wants(s, &orphans, t, &rank);
    for (size_t i = 0; i < v->agent_count; i++) {
        c = (struct claim){.kind = CLAIM_AGENT, .agent = v->agents[i]};
        v->waiting[i] |= memory_claim_wants(s, &c, t, &rank);
        c.among = true;
        v->among[i] |= memory_claim_wants(s, &c, t, &rank);
    }
}

static enum err memory_survey(struct store *base, struct survey *v, struct arena *a,
                              struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    struct lease_try want = {.name = v->lease,
                             .holder = v->owner,
                             .now = v->now,
                             .length_ms = v->length_ms};

    if (fault())
        return mem_fails(e);
    v->own = lease_try(s, &want, a);
    want.name = SLICE(SUPERVISOR_LEASE);
    if (v->leads)
        v->lead = lease_try(s, &want, a);
    v->waiting = arena_alloc(a, (v->agent_count + 1) * sizeof *v->waiting);
    v->among = arena_alloc(a, (v->agent_count + 1) * sizeof *v->among);
    mem_schedulers(&s->nodes, v);
    v->requested = v->orphans = false;
    v->messages = mem_outbox_any(&s->outbox);
    v->submissions = mem_submissions_wait(&s->submissions);
    v->notices = mem_notices_any(&s->notices);
    v->signals_refused = mem_notices_refused(&s->notices);
    v->overruns = s->overruns.count > 0;
    v->locks = false;
    for (size_t i = 0; i < s->locks.count; i++)
        v->locks |= s->locks.list[i]->look != 0;
    v->due_at = v->wait_due_at = v->among_due_at = v->wake_at = 0;
    for (size_t i = 0; i < s->task_count; i++)
        survey_task(s, v, s->tasks[i]);
    return ERR_OK;
}

static enum err memory_node_put(struct store *base, const struct node_row *row, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_node_put(&memory_store_of(base)->nodes, row);
    return mem_committed(e);
}

static enum err memory_node_list(struct store *base, int64_t now, struct arena *a,
                                 struct node_row **ret, size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_node_list(&memory_store_of(base)->nodes, now, a, ret, ret_count);
    return ERR_OK;
}

static enum err memory_requested(struct store *base, struct slice locked_by, int64_t after_seq,
                                 size_t limit, struct arena *a, struct row_page *ret,
                                 struct error *e)
{
    struct memory_store *s = memory_store_of(base);
    size_t count = 0;

    if (fault())
        return mem_fails(e);
    struct mem_task **found = grow(NULL, s->task_count + 1, sizeof(struct mem_task *));
    for (size_t i = 0; i < s->task_count && count <= limit; i++) {
        const struct task_row *row = &s->tasks[i]->row;
        if (row->seq > after_seq && row->request.ptr && slice_eq(row->locked_by, locked_by))
            found[count++] = s->tasks[i];
    }
    page_fill(found, count, limit, false, a, ret);
    free(found);
    return ERR_OK;
}

static enum err memory_retire_look(struct store *base, struct retire_look *r, struct arena *a,
                                   struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (r->orphans)
        mem_orphans_look(s->tasks, s->task_count, &s->outbox, &s->reserved, r, a);
    else
        mem_retire_look(s->tasks, s->task_count, &s->outbox, r, a);
    return ERR_OK;
}

static enum err memory_retire(struct store *base, struct retire *r, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    size_t left = mem_retire(s->tasks, s->task_count, &s->by_id, &s->reserved, r);
    if (left < s->task_count)
        mem_audit_add(&s->access, r->audit);
    s->task_count = left;
    enum err err = mem_committed(e);
    r->dealt_with = err == ERR_OK ? r->task_count : r->dealt_with;
    return err;
}

static enum err memory_reserved(struct store *base, struct slice id, struct arena *a,
                                struct reservation *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    bool found = mem_reserved_get(&memory_store_of(base)->reserved, id, a, ret);
    return found ? ERR_OK : error_set(e, ERR_NOT_FOUND, "there was no such task");
}

static enum err memory_stopped(struct store *base, int64_t after_ended_at, int64_t after_seq,
                               size_t limit, struct arena *a, struct stopped_page *ret,
                               struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_stopped(s->tasks, s->task_count, after_ended_at, after_seq, limit, a, ret);
    return ERR_OK;
}

static enum err memory_reserved_sweep(struct store *base, int64_t now, size_t limit,
                                      size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    struct memory_store *s = memory_store_of(base);
    size_t count = mem_reserved_sweep(&s->reserved, s->tasks, s->task_count, now, limit);
    enum err err = mem_committed(e);
    *ret_count = err == ERR_OK ? count : *ret_count;
    return err;
}

static const unsigned char *memory_secret(struct store *base)
{
    return memory_store_of(base)->secret;
}

static const char *memory_installation(struct store *base)
{
    return memory_store_of(base)->installation;
}

static uint64_t memory_boot(struct store *base)
{
    return memory_store_of(base)->boot;
}

static void memory_close(struct store *base)
{
    struct memory_store *s = memory_store_of(base);

    for (size_t i = 0; i < s->task_count; i++)
        mem_task_free(s->tasks[i]);
    mem_workflows_fini(&s->workflows);
    mem_access_fini(&s->access);
    mem_nodes_fini(&s->nodes);
    mem_agents_fini(&s->agents);
    mem_outbox_fini(&s->outbox);
    mem_alerts_fini(&s->alerts);
    mem_reserved_fini(&s->reserved);
    mem_submissions_fini(&s->submissions);
    mem_notices_fini(&s->notices);
    mem_operations_fini(&s->operations);
    mem_schedules_fini(&s->schedules);
    mem_overruns_fini(&s->overruns);
    mem_locks_fini(&s->locks);
    map_fini(&s->by_id);
    free(s->tasks);
    free(s);
}

/* Its nodes live and die on the same clock. */
static int64_t memory_used_until(struct store *base)
{
    (void)base;
    return 0;
}

static const struct store_outbox_ops outbox_ops = {
    .read = memory_outbox_read,
    .settle = memory_outbox_settle,
    .targets = memory_outbox_targets,
    .list = memory_outbox_list,
    .apply = memory_outbox_do,
    .census = memory_outbox_census,
};

static const struct store_submission_ops submissions_ops = {
    .describe = memory_workflow_describe,
    .take = memory_submissions_take,
    .settle = memory_submissions_settle,
    .put = memory_submissions_put,
    .list = memory_submissions_list,
    .apply = memory_submissions_verb,
};

static const struct store_notice_ops notices_ops = {
    .read = memory_notices_read,
    .refused = memory_notices_refused,
    .told = memory_notices_told,
    .settle = memory_notices_settle,
    .put = memory_notices_put,
};

static const struct store_alert_ops alerts_ops = {
    .stopped = memory_stopped,
    .put = memory_alert_put,
    .list = memory_alert_list,
    .acknowledge = memory_alert_acknowledge,
};

static const struct store_schedule_ops schedules_ops = {
    .write = memory_schedule_write,
    .look = memory_schedule_look,
    .list = memory_schedule_list,
    .version = memory_schedule_version,
    .remove = memory_schedule_remove,
};

static const struct store_lock_ops locks_ops = {
    .list = memory_lock_list,
    .held = memory_lock_held,
};

static const struct store_item_ops items_ops = {
    .read = memory_items_read,
    .outputs = memory_items_outputs,
};

static const struct store_operation_ops operations_ops = {
    .put = memory_operation_put,
    .list = memory_operation_list,
};

static const struct store_retention_ops retention_ops = {
    .look = memory_retire_look,
    .retire = memory_retire,
    .reserved = memory_reserved,
    .sweep = memory_reserved_sweep,
};

static const struct store_node_ops nodes_ops = {
    .workflow_since = memory_workflow_since,
    .generations = memory_generations,
    .survey = memory_survey,
    .put = memory_node_put,
    .list = memory_node_list,
};

static const struct store_ops ops = {
    .close = memory_close,
    .commit = memory_commit,
    .probe = memory_probe,
    .get = memory_get,
    .glance = memory_glance,
    .overdue = memory_overdue,
    .list = memory_list,
    .workflow_put = memory_workflow_put,
    .workflow_get = memory_workflow_get,
    .workflow_list = memory_workflow_list,
    .token_put = memory_token_put,
    .token_change = memory_token_change,
    .token_delete = memory_token_delete,
    .token_list = memory_token_list,
    .audit_list = memory_audit_list,
    .audit_put = memory_audit_put,
    .agent_put = memory_agent_put,
    .agent_since = memory_agent_since,
    .overrun_count = memory_overrun_count,
    .overrun_list = memory_overrun_list,
    .requested = memory_requested,
    .lease = memory_lease,
    .secret = memory_secret,
    .installation = memory_installation,
    .boot = memory_boot,
    .used_until = memory_used_until,
    .outbox = &outbox_ops,
    .submissions = &submissions_ops,
    .notices = &notices_ops,
    .alerts = &alerts_ops,
    .locks = &locks_ops,
    .items = &items_ops,
    .operations = &operations_ops,
    .schedules = &schedules_ops,
    .retention = &retention_ops,
    .nodes = &nodes_ops,
};

struct store *memory_store_new(void)
{
    struct memory_store *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->base = (struct store){.ops = &ops, .shared = true};
    s->boot = 1;
    memcpy(s->installation, "00000000-0000-4000-8000-000000000001", sizeof s->installation);
    for (size_t i = 0; i < sizeof s->secret; i++)
        s->secret[i] = (unsigned char)(i * 7 + 1); /* the same in every replay */
    return &s->base;
}

static int64_t memory_now(struct store *base)
{
    return atomic_load(memory_store_of(base)->clock);
}

struct store *memory_store_of_node(const atomic_int_fast64_t *clock, const char *installation,
                                   const unsigned char secret[32])
{
    struct store *base = memory_store_new();
    struct memory_store *s = memory_store_of(base);

    ASSERT(strlen(installation) == sizeof s->installation - 1);
    memcpy(s->installation, installation, sizeof s->installation);
    memcpy(s->secret, secret, sizeof s->secret);
    s->clock = clock;
    s->ops = ops;
    s->ops.now = memory_now;
    base->ops = &s->ops;
    base->shared = false;
    return base;
}

void memory_store_boot(struct store *s)
{
    memory_store_of(s)->boot++;
}
