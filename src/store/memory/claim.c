/* Claims of the body in memory, and the locks that changes and claims take. Kept simple: each claim
 * looks at all tasks. */
#include <stdlib.h>

#include "store/codec/codec.h"
#include "store/memory/body.h"
#include "store/memory/page.h"
#include "store/memory/task.h"
#include "store/row.h"

static void *grow(void *ptr, size_t count, size_t size)
{
    void *more = reallocarray(ptr, count, size);

    ASSERT(more);
    return more;
}

void memory_task_set(struct mem_task *t, const struct task_row *row)
{
    struct arena fresh = {0};
    struct task_row copy =
        row_copy(&fresh, row); /* before the old one goes: it may be its source */

    arena_fini(&t->row_arena);
    t->row_arena = fresh;
    t->row = copy;
    t->row.id = t->id;
}

static bool is_claimable(const struct task_row *row)
{
    return row->state == TASK_PENDING && !row->locked_by.ptr;
}

static bool in_range(const struct claim *c, int64_t rank)
{
    return (c->rank_from == 0 || rank >= c->rank_from)
           && (c->rank_before == 0 || rank < c->rank_before);
}

/* By the waits: the least rank of those that the claim is about. */
static bool waits_among(const struct claim *c, const struct mem_task *t, int64_t *ret_rank)
{
    bool found = false;

    for (size_t i = 0; i < t->wait_count && row_waits_for_several(&t->row); i++) {
        const struct task_wait *w = &t->waits[i];
        if (!slice_eq(w->agent, c->agent) || !in_range(c, w->rank))
            continue;
        *ret_rank = found ? min_i64(*ret_rank, w->rank) : w->rank;
        found = true;
    }
    return found;
}

/* *ret_rank is its place among those that the claim is about. */
bool memory_claim_wants(const struct memory_store *s, const struct claim *c,
                        const struct mem_task *t, int64_t *ret_rank)
{
    const struct task_row *row = &t->row;
    struct slice node;

    *ret_rank = row->rank;
    if (c->among)
        return is_claimable(row) && waits_among(c, t, ret_rank);
    switch (c->kind) {
    case CLAIM_AGENT:
        return is_claimable(row) && slice_eq(row->waiting_for, c->agent) && in_range(c, row->rank);
    case CLAIM_TIME:
        return is_claimable(row) && slice_eq(row->waiting_for, c->agent);
    case CLAIM_LOCK:
        break;
    case CLAIM_NODE:
        return row->locked_by.ptr && !slice_eq(row->locked_by, c->locked_by)
               && !mem_owner_lives(&s->nodes, row->locked_by, c->now);
    case CLAIM_BOOT:
        node = owner_node(c->locked_by);
        return row->locked_by.len > node.len && memcmp(row->locked_by.ptr, node.ptr, node.len) == 0
               && owner_boot(row->locked_by) < owner_boot(c->locked_by);
    }
    UNREACHABLE();
}

/* A task that a claim is about, and its place among them. */
struct found {
    struct mem_task *task;
    int64_t rank;
};

static int rank_order(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->task->row.seq > y->task->row.seq) - (x->task->row.seq < y->task->row.seq);
}

static int owner_order(const void *a, const void *b)
{
    const struct task_row *x = &((const struct found *)a)->task->row;
    const struct task_row *y = &((const struct found *)b)->task->row;
    int order = slice_order(x->locked_by, y->locked_by);

    return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static bool is_one_of(const uint32_t *list, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == number)
            return true;
    return false;
}

struct task_row memory_row_out(const struct mem_task *t, struct arena *a, enum with with)
{
    struct task_row row = row_copy(a, &t->row);
    uint32_t *groups = NULL;

    if (with == WITH_NOTHING || t->payload_count == 0)
        return row;
    size_t group_count = with == WITH_GROUPS ? doc_groups(row.doc, a, &groups) : 0;
    row.groups_only = group_count > 0;
    if (with == WITH_GROUPS && group_count == 0)
        return row;
    struct payload *list = arena_alloc(a, t->payload_count * sizeof *list);
    for (size_t i = 0; i < t->payload_count; i++)
        if (with == WITH_PAYLOADS || is_one_of(groups, group_count, t->payloads[i].number))
            list[row.payload_count++] =
                (struct payload){t->payloads[i].number, arena_copy(a, t->payloads[i].json)};
    row.payloads = list;
    return row;
}

static void task_take(struct mem_task *t, const struct claim *c, bool replaced)
{
    struct task_row row = t->row;

    row.revision++;
    row.locked_by = c->locked_by;
    if (row_waits_for_several(&row))
        mem_waits_set(t, &(struct task_row){0}, true);
    row.waiting_for = SLICE_NONE;
    if (replaced)
        row.lock_mode = LOCK_REPLACED;
    else if (c->kind == CLAIM_LOCK)
        row.lock_since = c->now;
    if (c->kind == CLAIM_AGENT || c->kind == CLAIM_TIME || c->kind == CLAIM_LOCK) {
        row.state = row.direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING;
        if (row.started_at == 0 && !(row.lock.ptr && row.lock_since == 0))
            row.started_at = c->now;
    }
    memory_task_set(t, &row);
}

static void claim_run(struct memory_store *s, struct claim *c, struct arena *a)
{
    struct found *found = grow(NULL, s->task_count + 1, sizeof *found);
    size_t count = 0;
    size_t taken = 0;

    for (size_t i = 0; i < s->task_count; i++) {
        ASSERT(row_waits_for_several(&s->tasks[i]->row) == (s->tasks[i]->wait_count > 0));
        found[count].task = s->tasks[i];
        count += memory_claim_wants(s, c, s->tasks[i], &found[count].rank);
    }
    qsort(found, count, sizeof *found,
          c->kind == CLAIM_BOOT || c->kind == CLAIM_NODE ? owner_order : rank_order);

    while (taken < count && taken < c->limit
           && (c->kind != CLAIM_TIME || found[taken].rank <= c->now))
        taken++;
    if (taken < count) {
        c->more = c->kind != CLAIM_TIME || found[taken].rank <= c->now;
        c->next_rank = c->kind == CLAIM_TIME ? found[taken].rank : 0;
    }
    c->rows = taken ? arena_alloc(a, taken * sizeof *c->rows) : NULL;
    c->row_count = taken;
    for (size_t i = 0; i < taken; i++) {
        task_take(found[i].task, c, false);
        c->rows[i] = memory_row_out(found[i].task, a, WITH_PAYLOADS);
    }
    free(found);
}

/* --- locks --- */

static const struct mem_task *task_of(const struct memory_store *s, int64_t seq)
{
    for (size_t i = 0; i < s->task_count; i++)
        if (s->tasks[i]->row.seq == seq)
            return s->tasks[i];
    return NULL;
}

/* A holder of a lock is never deleted. */
static struct slice holder_id(const struct memory_store *s, const struct mem_holder *h)
{
    const struct mem_task *t = task_of(s, h->task);

    ASSERT(t);
    return t->id;
}

bool memory_lock_has_room(const struct memory_store *s, const struct change *c, struct arena *a,
                          struct slice *ret)
{
    const struct mem_lock *l = mem_lock_find(&s->locks, c->row.lock);

    if (c->lock_move != LOCK_TAKE || !l || (int64_t)l->held < c->row.lock_max)
        return true;
    *ret = arena_copy(a, holder_id(s, &l->holders[0]));
    return false;
}

void memory_lock_change(struct memory_store *s, const struct change *c, int64_t seq)
{
    if (c->lock_move == LOCK_QUIT || (c->kind != CHANGE_REQUEST && row_queues(&c->row)))
        mem_lock_look(&s->locks, mem_lock_get(&s->locks, c->row.lock));
    if (c->lock_move == LOCK_TAKE)
        mem_lock_hold(&s->locks, c->row.lock, seq, c->row.lock_since);
    if (c->lock_move == LOCK_DROP)
        mem_lock_leave(&s->locks, c->row.lock, seq);
}

static bool waits_for(const struct task_row *row, struct slice lock)
{
    return is_claimable(row) && row_queues(row) && slice_eq(row->lock, lock);
}

/* The first of the queue; NULL: no task waits. */
static struct mem_task *first_waiting(const struct memory_store *s, struct slice lock)
{
    struct mem_task *first = NULL;

    for (size_t i = 0; i < s->task_count; i++) {
        struct mem_task *t = s->tasks[i];
        if (waits_for(&t->row, lock) && (!first || t->row.rank < first->row.rank))
            first = t;
    }
    return first;
}

static bool replaces(const struct task_row *row, struct slice lock)
{
    return row->lock_mode == LOCK_REPLACES && row->direction == DIRECTION_FORWARD
           && waits_for(row, lock);
}

static bool is_replaced(const struct memory_store *s, const struct task_row *row, struct slice lock)
{
    for (size_t i = 0; i < s->task_count && replaces(row, lock); i++) {
        const struct task_row *o = &s->tasks[i]->row;
        if (replaces(o, lock) && slice_eq(o->workflow, row->workflow) && o->seq > row->seq)
            return true;
    }
    return false;
}

static uint64_t count_waiting(const struct memory_store *s, struct slice lock)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->task_count && count < LOCK_WAITING_MOST; i++)
        count += waits_for(&s->tasks[i]->row, lock);
    return count;
}

/* Those that newer ones replace. False: there are more than the limit lets it take. */
static bool claim_replaced(struct memory_store *s, struct claim *c, const struct mem_lock *l,
                           struct arena *a)
{
    for (size_t i = 0; i < s->task_count; i++) {
        struct mem_task *t = s->tasks[i];
        if (!is_replaced(s, &t->row, l->lock))
            continue;
        if (c->row_count == c->limit)
            return false;
        task_take(t, c, true);
        c->rows[c->row_count++] = memory_row_out(t, a, WITH_PAYLOADS);
    }
    return true;
}

/* Takes from one queue as long as there is room, and as the limit lets it. */
static void claim_of_lock(struct memory_store *s, struct claim *c, struct mem_lock *l,
                          struct arena *a)
{
    struct mem_task *t = NULL;

    if (!claim_replaced(s, c, l, a)) {
        mem_lock_later(&s->locks, l);
        return;
    }
    while ((t = first_waiting(s, l->lock)) && (int64_t)l->held < t->row.lock_max) {
        if (c->row_count == c->limit) {
            mem_lock_later(&s->locks, l);
            return;
        }
        mem_lock_hold(&s->locks, l->lock, t->row.seq, c->now);
        task_take(t, c, false);
        c->rows[c->row_count++] = memory_row_out(t, a, WITH_PAYLOADS);
    }
    mem_lock_seen(&s->locks, l);
}

static void claim_locks(struct memory_store *s, struct claim *c, struct arena *a)
{
    const uint64_t until = s->locks.looks;
    struct mem_lock *l = NULL;

    c->rows = arena_alloc(a, mem_page_room(c->limit, s->task_count) * sizeof *c->rows);
    while (c->row_count < c->limit && (l = mem_lock_next(&s->locks, until)))
        claim_of_lock(s, c, l, a);
    c->more = mem_lock_next(&s->locks, UINT64_MAX) != NULL;
}

void memory_claim(struct memory_store *s, struct claim *c, struct arena *a)
{
    if (c->kind == CLAIM_LOCK)
        claim_locks(s, c, a);
    else
        claim_run(s, c, a);
}

static int holder_order(const void *a, const void *b)
{
    const struct lock_holder *x = a;
    const struct lock_holder *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}

enum err memory_lock_list(struct store *base, const struct lock_query *q, struct arena *a,
                          struct lock_page *ret, struct error *e)
{
    const struct memory_store *s = memory_store_of(base);
    size_t count = 0;
    size_t most = 1;

    if (fault())
        return mem_fails(e);
    for (size_t i = 0; i < s->locks.count; i++)
        most += s->locks.list[i]->held;
    struct lock_holder *list = arena_alloc(a, most * sizeof *list);
    for (size_t i = 0; i < s->locks.count; i++) {
        const struct mem_lock *l = s->locks.list[i];
        for (size_t k = 0; k < l->held; k++)
            if (l->holders[k].task > q->after_seq && (!q->lock.ptr || slice_eq(l->lock, q->lock)))
                list[count++] =
                    (struct lock_holder){.lock = arena_copy(a, l->lock),
                                         .task = arena_copy(a, holder_id(s, &l->holders[k])),
                                         .seq = l->holders[k].task,
                                         .since = l->holders[k].since,
                                         .waiting = count_waiting(s, l->lock)};
    }
    qsort(list, count, sizeof *list, holder_order);
    *ret = (struct lock_page){list, count < q->limit ? count : q->limit, count > q->limit};
    return ERR_OK;
}

enum err memory_lock_held(struct store *base, struct slice lock, struct arena *a,
                          struct lock_held *ret, struct error *e)
{
    const struct memory_store *s = memory_store_of(base);
    const struct mem_lock *l = mem_lock_find(&s->locks, lock);

    if (fault())
        return mem_fails(e);
    *ret = (struct lock_held){0};
    for (size_t i = 0; l && i < l->held; i++)
        if (i == 0 || l->holders[i].since < ret->since)
            *ret = (struct lock_held){.task = holder_id(s, &l->holders[i]),
                                      .since = l->holders[i].since};
    ret->task = arena_copy(a, ret->task);
    ret->count = l ? l->held : 0;
    return ERR_OK;
}
