/* Messages of the store in memory: added with a change of their task, read by target, settled,
 * retried or dropped. Injects no faults: the operations of the interface, in told.c, do that and
 * then call these functions. */

#include "store/memory/outbox.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "store/row.h"

void mem_outbox_fini(struct mem_outbox *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_outbox){0};
}

void mem_outbox_add(struct mem_outbox *m, struct slice task, const struct message *row)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 64;
        m->list = reallocarray(m->list, m->cap, sizeof *m->list);
        ASSERT(m->list);
    }
    struct mem_message *one = &m->list[m->count++];
    *one = (struct mem_message){0};
    one->row = message_copy(&one->arena, row);
    one->row.task = arena_copy(&one->arena, task);
    one->row.seq = ++m->last_seq;
    one->row.aside = one->row.dead = false;
    one->row.since = row->created_at;
}

bool mem_outbox_any(const struct mem_outbox *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->list[i].row.aside)
            return true;
    return false;
}

int64_t mem_outbox_fresh_at(const struct mem_outbox *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->list[i].row.aside)
            return m->list[i].row.created_at;
    return 0;
}

bool mem_outbox_waits(const struct mem_outbox *m, struct slice task)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct message *row = &m->list[i].row;
        if (row->aside && !row->dead && slice_eq(row->task, task))
            return true;
    }
    return false;
}

static bool is_known(const struct outbox_read *r, int64_t seq)
{
    for (size_t i = 0; i < r->known_count; i++)
        if (r->known[i] == seq)
            return true;
    return false;
}

static bool read_wants(const struct outbox_read *r, const struct message *row)
{
    if (!r->target.ptr)
        return !row->aside && (row->seq > r->after_seq || !is_known(r, row->seq));
    return row->aside && !row->dead && row->seq > r->after_seq && slice_eq(row->target, r->target);
}

void mem_outbox_read(const struct mem_outbox *m, struct outbox_read *r, struct arena *a)
{
    size_t bytes = 0;

    r->messages = arena_alloc(a, mem_page_room(r->limit, m->count) * sizeof *r->messages);
    r->count = 0;
    r->more = false;
    for (size_t i = 0; i < m->count; i++) {
        const struct message *row = &m->list[i].row;
        if (!read_wants(r, row))
            continue;
        if (r->count == r->limit || (r->count > 0 && bytes >= r->bytes_max)) {
            r->more = true;
            return;
        }
        bytes += row->body.len;
        r->messages[r->count++] = message_copy(a, row);
    }
}

static struct mem_message *find(struct mem_outbox *m, const struct settlement *s)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].row.seq == s->seq && m->list[i].row.aside == s->aside)
            return &m->list[i];
    return NULL;
}

static void drop(struct mem_outbox *m, struct mem_message *one)
{
    size_t at = (size_t)(one - m->list);

    arena_fini(&one->arena);
    memmove(one, one + 1, (--m->count - at) * sizeof *one);
}

void mem_outbox_settle(struct mem_outbox *m, const struct settlement *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct settlement *s = &list[i];
        struct mem_message *one = find(m, s);
        if (one && s->kind == SETTLE_DELETE) {
            drop(m, one);
        } else if (one) {
            one->row.aside = true;
            one->row.dead = s->kind == SETTLE_DEAD;
            one->row.tries = s->tries;
            one->row.retry_at = s->retry_at;
            if (s->story.ptr)
                one->row.story = arena_copy(&one->arena, s->story);
        }
    }
}

static int target_order(const void *a, const void *b)
{
    return slice_order(((const struct outbox_target *)a)->target,
                       ((const struct outbox_target *)b)->target);
}

static struct outbox_target *target_of(struct outbox_target *list, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_eq(list[i].target, name))
            return &list[i];
    return NULL;
}

void mem_outbox_targets(const struct mem_outbox *m, const struct target_query *q, struct arena *a,
                        struct outbox_target **ret, size_t *ret_count)
{
    struct outbox_target *list = arena_alloc(a, (m->count + 1) * sizeof *list);
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++) {
        const struct message *row = &m->list[i].row;
        if (!row->aside || row->dead != q->dead
            || (q->after.ptr && slice_order(row->target, q->after) <= 0))
            continue;
        struct outbox_target *t = target_of(list, count, row->target);
        if (!t) {
            t = &list[count++];
            *t = (struct outbox_target){.target = arena_copy(a, row->target),
                                        .oldest_at = row->created_at,
                                        .story = arena_copy(a, row->story)};
        }
        t->count += t->count < q->most;
    }
    qsort(list, count, sizeof *list, target_order);
    *ret = list;
    *ret_count = count < q->limit ? count : q->limit;
}

static bool list_has(const struct outbox_query *q, const struct message *row)
{
    return (q->dead ? row->dead : !row->dead) && row->seq > q->after_seq
           && (!q->target.ptr || slice_eq(q->target, row->target))
           && (!q->task.ptr || slice_eq(q->task, row->task));
}

void mem_outbox_list(const struct mem_outbox *m, const struct outbox_query *q, struct arena *a,
                     struct message_page *ret)
{
    *ret = (struct message_page){
        .messages = arena_alloc(a, mem_page_room(q->limit, m->count) * sizeof(struct message))};
    for (size_t i = 0; i < m->count && !ret->more; i++) {
        const struct message *row = &m->list[i].row;
        if (!list_has(q, row))
            continue;
        if (ret->count == q->limit)
            ret->more = true;
        else
            ret->messages[ret->count++] = message_copy(a, row);
    }
}

static bool verb_wants(const struct outbox_verb *v, const struct message *row)
{
    return row->aside && (row->dead || !v->drop) && row->seq > v->after_seq
           && (!v->target.ptr || slice_eq(v->target, row->target))
           && (!v->task.ptr || slice_eq(v->task, row->task))
           && (!v->name.ptr || slice_eq(v->name, row->name));
}

static void revive(struct message *row, int64_t now)
{
    if (row->dead)
        row->since = now;
    row->dead = false;
    row->retry_at = 0;
}

void mem_outbox_do(struct mem_outbox *m, struct outbox_verb *v)
{
    v->count = 0;
    v->more = false;
    for (size_t i = 0; i < m->count;) {
        struct mem_message *one = &m->list[i];
        i++;
        if (!verb_wants(v, &one->row))
            continue;
        if (v->count == v->limit) {
            v->more = true;
            break;
        }
        v->count++;
        v->after_seq = one->row.seq;
        if (v->drop) {
            drop(m, one);
            i--;
        } else {
            revive(&one->row, v->now);
        }
    }
    m->generation += v->count > 0;
}

void mem_outbox_census(const struct mem_outbox *m, size_t most, struct outbox_census *ret)
{
    *ret = (struct outbox_census){0};
    for (size_t i = 0; i < m->count; i++) {
        const struct message *row = &m->list[i].row;
        uint64_t *n = row->dead ? &ret->dead : &ret->waiting;
        *n += *n < most;
        if (!row->dead && (ret->oldest_at == 0 || row->created_at < ret->oldest_at))
            ret->oldest_at = row->created_at;
    }
}
