/* Submissions by SQL of the store in memory: waiting, taken by a node, become a task, or refused.
 * Injects no faults: the operations of the interface, in inbox.c, do that and then call these
 * functions. */

#include "store/memory/submission.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "store/row.h"

void mem_submissions_fini(struct mem_submissions *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_submissions){0};
}

static bool is_there(const struct mem_submissions *m, const struct submission_row *row)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].row.key, row->key) && slice_eq(m->list[i].row.source, row->source))
            return true;
    return false;
}

void mem_submission_add(struct mem_submissions *m, const struct submission_row *row)
{
    if (row->key.ptr && is_there(m, row))
        return;
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 16;
        m->list = reallocarray(m->list, m->cap, sizeof *m->list);
        ASSERT(m->list);
    }
    struct mem_submission *one = &m->list[m->count++];
    *one = (struct mem_submission){0};
    one->row = submission_copy(&one->arena, row);
    one->row.seq = ++m->last_seq;
}

static void remove_at(struct mem_submissions *m, size_t i)
{
    arena_fini(&m->list[i].arena);
    memmove(&m->list[i], &m->list[i + 1], (m->count - i - 1) * sizeof *m->list);
    m->count--;
}

/* One that waits; m->count: there is none. */
static size_t find_waiting(const struct mem_submissions *m, int64_t seq)
{
    size_t i = 0;

    while (i < m->count && (m->list[i].row.seq != seq || m->list[i].row.refused_at))
        i++;
    return i;
}

bool mem_submission_become(struct mem_submissions *m, int64_t seq)
{
    size_t i = find_waiting(m, seq);

    if (i == m->count)
        return false;
    remove_at(m, i);
    return true;
}

void mem_submission_settle(struct mem_submissions *m, const struct submission_verdict *v)
{
    size_t i = find_waiting(m, v->seq);

    if (i == m->count)
        return;
    if (v->refused_at == 0) {
        remove_at(m, i);
        return;
    }
    m->list[i].row.refused_at = v->refused_at;
    m->list[i].row.reason = arena_copy(&m->list[i].arena, v->reason);
}

static bool is_due(const struct submission_take *t, const struct submission_row *row)
{
    return t->parts <= 1 || (uint64_t)row->seq % t->parts == t->part
           || row->submitted_at <= t->now - t->patience_ms;
}

void mem_submissions_take(const struct mem_submissions *m, struct submission_take *t,
                          struct arena *a)
{
    t->rows = arena_alloc(a, mem_page_room(t->limit, m->count) * sizeof *t->rows);
    t->count = 0;
    t->more = false;
    t->refused = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct submission_row *row = &m->list[i].row;
        if (row->refused_at)
            t->refused += t->refused < SUBMISSIONS_COUNTED;
        else if (!is_due(t, row))
            continue;
        else if (t->more || t->count == t->limit || !submission_fits(t, row, &bytes))
            t->more = true;
        else
            t->rows[t->count++] = submission_copy(a, row);
    }
}

static bool is_of(const struct submission_row *row, struct slice source)
{
    return !source.ptr || slice_eq(row->source, source);
}

void mem_submissions_list(const struct mem_submissions *m, const struct submission_query *q,
                          struct arena *a, struct submission_page *ret)
{
    *ret = (struct submission_page){
        .rows = arena_alloc(a, mem_page_room(q->limit, m->count) * sizeof *ret->rows)};
    for (size_t i = m->count; i-- > 0 && !ret->more;) {
        const struct submission_row *row = &m->list[i].row;
        if ((row->refused_at != 0) != q->refused || !is_of(row, q->source)
            || (q->before_seq && row->seq >= q->before_seq))
            continue;
        ret->more = ret->count == q->limit;
        if (!ret->more)
            ret->rows[ret->count++] = submission_copy(a, row);
    }
}

static bool is_meant(const struct submission_verb *v, const struct submission_row *row)
{
    return row->refused_at && (!v->seq || row->seq == v->seq) && is_of(row, v->source)
           && (!v->up_to_seq || row->seq <= v->up_to_seq);
}

void mem_submissions_verb(struct mem_submissions *m, struct submission_verb *v)
{
    v->count = 0;
    v->more = false;
    for (size_t i = 0; i < m->count && !v->more;) {
        struct submission_row *row = &m->list[i].row;
        if (!is_meant(v, row)) {
            i++;
            continue;
        }
        v->more = v->count == SUBMISSION_VERB_MAX;
        if (v->more)
            break;
        v->count++;
        if (v->drop) {
            remove_at(m, i);
        } else {
            row->refused_at = 0;
            row->reason = SLICE_NONE;
            i++;
        }
    }
}

bool mem_submission_waits(const struct mem_submissions *m, struct slice source, struct slice key)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct submission_row *row = &m->list[i].row;
        if (slice_eq(row->key, key) && slice_eq(row->source, source))
            return row->refused_at == 0;
    }
    return false;
}

bool mem_submission_of(const struct mem_submissions *m, struct slice id)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->list[i].row.refused_at && slice_eq(m->list[i].row.id, id))
            return true;
    return false;
}

bool mem_submissions_wait(const struct mem_submissions *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->list[i].row.refused_at)
            return true;
    return false;
}
