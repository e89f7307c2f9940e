/* Notices (signals by SQL) of the store in memory: waiting, refused and settled. Injects no
 * faults: the operations of the interface, in inbox.c, do that and then call these functions. */

#include "store/memory/notice.h"

#include <stdlib.h>

#include "base/map.h"
#include "store/memory/page.h"
#include "store/row.h"

void mem_notices_fini(struct mem_notices *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_notices){0};
}

void mem_notice_add(struct mem_notices *m, const struct notice_row *row)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 16;
        m->list = reallocarray(m->list, m->cap, sizeof *m->list);
        ASSERT(m->list);
    }
    struct mem_notice *one = &m->list[m->count++];
    *one = (struct mem_notice){0};
    one->row = notice_copy(&one->arena, row);
    one->row.seq = ++m->last_seq;
}

/* One that is to be decided; m->count: there is none. */
static size_t find(const struct mem_notices *m, int64_t seq)
{
    size_t i = 0;

    while (i < m->count && (m->list[i].row.seq != seq || m->list[i].row.refused_at))
        i++;
    return i;
}

bool mem_notices_wait(const struct mem_notices *m, const int64_t *seqs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (find(m, seqs[i]) == m->count)
            return false;
    return true;
}

bool mem_notices_any(const struct mem_notices *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->list[i].row.refused_at)
            return true;
    return false;
}

size_t mem_notices_refused(const struct mem_notices *m)
{
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++)
        count += m->list[i].row.refused_at != 0;
    return count;
}

int64_t mem_notices_told(const struct mem_notices *m, struct slice task)
{
    int64_t first = 0;

    for (size_t i = 0; i < m->count; i++) {
        const struct notice_row *row = &m->list[i].row;
        if (!row->refused_at && slice_eq(row->task, task) && (first == 0 || row->at < first))
            first = row->at;
    }
    return first;
}

void mem_notice_settle(struct mem_notices *m, const struct notice_verdict *v)
{
    size_t i = find(m, v->seq);

    if (i == m->count)
        return;
    if (v->refused_at) {
        m->list[i].row.refused_at = v->refused_at;
        m->list[i].row.reason = arena_copy(&m->list[i].arena, v->reason);
        return;
    }
    arena_fini(&m->list[i].arena);
    memmove(&m->list[i], &m->list[i + 1], (m->count - i - 1) * sizeof *m->list);
    m->count--;
}

/* Whether one of that task waits, up to that number. */
static bool is_behind(const struct mem_notices *m, struct slice task, int64_t seq)
{
    for (size_t i = 0; i < m->count && m->list[i].row.seq <= seq; i++)
        if (!m->list[i].row.refused_at && slice_eq(m->list[i].row.task, task))
            return true;
    return false;
}

/* Whether one of that task waits between these numbers that was sent later than at that time. */
static bool is_overtaking(const struct mem_notices *m, const struct notice_row *row, int64_t after,
                          int64_t at)
{
    for (size_t i = 0; i < m->count && m->list[i].row.seq < row->seq; i++) {
        const struct notice_row *other = &m->list[i].row;
        if (!other->refused_at && other->seq > after && other->at > at
            && slice_eq(other->task, row->task))
            return true;
    }
    return false;
}

/* `row` has what is read of its task. */
static bool is_for(const struct mem_notices *m, const struct notice_read *n, struct notice_row *row)
{
    row->is_of_other = false;
    if (n->parts <= 1 || (row->owner.ptr && slice_eq(row->owner, n->me)))
        return true;
    uint32_t home = (uint32_t)(hash_stable(row->task.ptr, row->task.len) % n->parts);
    int64_t distance = (n->part + n->parts - home) % n->parts;
    if (row->owner.ptr)
        distance = (distance + 1) * NOTICE_OWNER_PATIENCES;
    row->is_of_other = distance > 0;
    int64_t since = n->now - distance * n->patience_ms;
    return distance == 0 || (row->at <= since && !is_overtaking(m, row, n->after_seq, since));
}

void mem_notices_read(const struct mem_notices *m, bool refused, struct notice_read *n,
                      struct arena *a, void (*look)(void *arg, struct notice_row *row), void *arg)
{
    size_t bytes = 0;

    n->rows = arena_alloc(a, mem_page_room(n->limit, m->count) * sizeof *n->rows);
    n->count = 0;
    n->more = false;
    for (size_t i = 0; i < m->count && !n->more; i++) {
        const struct notice_row *row = &m->list[i].row;
        if (row->seq <= n->after_seq || (row->refused_at != 0) != refused)
            continue;
        if (!refused && is_behind(m, row->task, n->after_seq))
            continue;
        struct notice_row seen = *row;
        if (look)
            look(arg, &seen);
        if (!refused && !is_for(m, n, &seen))
            continue;
        n->more = n->count == n->limit || !notice_fits(n, row, &bytes);
        if (!n->more)
            n->rows[n->count++] = notice_copy(a, &seen);
    }
}
