/* Schedules and their versions of the store in memory. Injects no faults: the operations of the
 * interface, in told.c, do that and then call these functions. */

#include "store/memory/schedule.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "store/row.h"

static void versions_remove(struct mem_schedules *m, struct slice name)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->version_count; i++)
        if (slice_eq(m->versions[i].row.name, name))
            arena_fini(&m->versions[i].arena);
        else
            m->versions[kept++] = m->versions[i];
    m->version_count = kept;
}

void mem_schedules_fini(struct mem_schedules *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    for (size_t i = 0; i < m->version_count; i++)
        arena_fini(&m->versions[i].arena);
    free(m->list);
    free(m->versions);
    *m = (struct mem_schedules){0};
}

static struct mem_schedule *find(const struct mem_schedules *m, struct slice name)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].row.name, name))
            return &m->list[i];
    return NULL;
}

static struct mem_schedule *insert(struct mem_schedules *m, struct slice name)
{
    size_t at = 0;

    m->list = reallocarray(m->list, m->count + 1, sizeof *m->list);
    ASSERT(m->list);
    while (at < m->count && slice_order(m->list[at].row.name, name) < 0)
        at++;
    memmove(&m->list[at + 1], &m->list[at], (m->count - at) * sizeof *m->list);
    m->count++;
    m->list[at] = (struct mem_schedule){.row.seq = ++m->last_seq};
    return &m->list[at];
}

static void version_add(struct mem_schedules *m, const struct schedule_row *row)
{
    m->versions = reallocarray(m->versions, m->version_count + 1, sizeof *m->versions);
    ASSERT(m->versions);
    struct mem_schedule_version *v = &m->versions[m->version_count++];
    const struct schedule_version_row of = schedule_version_of(row);
    *v = (struct mem_schedule_version){0};
    v->row = schedule_version_copy(&v->arena, &of);
}

bool mem_schedule_write(struct mem_schedules *m, const struct schedule_change *c)
{
    struct mem_schedule *one = find(m, c->row.name);
    bool is_new = c->row.revision == 1;
    struct mem_schedule fresh = {0};

    if (is_new ? one != NULL
               : !one || one->row.seq != c->row.seq || one->row.revision != c->row.revision - 1)
        return false;
    if (is_new)
        one = insert(m, c->row.name);
    fresh.row = schedule_copy(&fresh.arena, &c->row);
    fresh.row.seq = one->row.seq;
    arena_fini(&one->arena);
    *one = fresh;
    if (c->new_version)
        version_add(m, &fresh.row);
    return true;
}

bool mem_schedule_remove(struct mem_schedules *m, struct slice name)
{
    struct mem_schedule *one = find(m, name);

    if (!one)
        return false;
    versions_remove(m, name);
    arena_fini(&one->arena);
    m->count--;
    memmove(one, one + 1, (size_t)(&m->list[m->count] - one) * sizeof *one);
    return true;
}

static struct schedule_row copy_of(const struct schedule_row *row, mem_run_is_open *is_open,
                                   void *arg, struct arena *a)
{
    struct schedule_row copy = schedule_copy(a, row);

    copy.run_is_open = row->run.ptr && is_open(arg, row->run);
    return copy;
}

/* The least that is due and comes after that place; NULL: none. */
static const struct schedule_row *due_after(const struct mem_schedules *m, int64_t now,
                                            const struct schedule_row *after)
{
    const struct schedule_row *found = NULL;

    for (size_t i = 0; i < m->count; i++) {
        const struct schedule_row *row = &m->list[i].row;
        bool is_after = !after || row->next_at > after->next_at
                        || (row->next_at == after->next_at && row->seq > after->seq);
        bool is_before = !found || row->next_at < found->next_at
                         || (row->next_at == found->next_at && row->seq < found->seq);
        if (row->next_at && row->next_at <= now && is_after && is_before)
            found = row;
    }
    return found;
}

void mem_schedules_look(const struct mem_schedules *m, struct schedule_look *l,
                        mem_run_is_open *is_open, void *arg, struct arena *a)
{
    const struct schedule_row *row = NULL;

    l->rows = arena_alloc(a, 2 * mem_page_room(l->limit, m->count) * sizeof *l->rows);
    l->count = 0;
    l->more = false;
    l->next_at = 0;
    l->wait_count = 0;
    while ((row = due_after(m, l->now, row)) && !l->more) {
        l->more = l->count == l->limit;
        if (!l->more)
            l->rows[l->count++] = copy_of(row, is_open, arg, a);
    }
    size_t end = l->count + l->limit;
    for (size_t i = 0; i < m->count; i++) {
        row = &m->list[i].row;
        l->wait_count += row->waits;
        if (row->next_at > l->now && (!l->next_at || row->next_at < l->next_at))
            l->next_at = row->next_at;
        if (!l->waiting || !row->waits || (row->next_at && row->next_at <= l->now)
            || is_open(arg, row->run))
            continue;
        l->more |= l->count == end;
        if (l->count < end)
            l->rows[l->count++] = copy_of(row, is_open, arg, a);
    }
}

static bool wants(const struct schedule_query *q, const struct schedule_row *row)
{
    if (q->name.ptr)
        return slice_eq(q->name, row->name);
    return (!q->after_name.ptr || slice_order(row->name, q->after_name) > 0)
           && (!q->gaps_since || row->gap_at >= q->gaps_since);
}

void mem_schedules_list(const struct mem_schedules *m, const struct schedule_query *q,
                        mem_run_is_open *is_open, void *arg, struct arena *a,
                        struct schedule_page *ret)
{
    *ret = (struct schedule_page){
        .rows = arena_alloc(a, mem_page_room(q->limit, m->count) * sizeof *ret->rows)};
    for (size_t i = 0; i < m->count && !ret->more; i++) {
        if (!wants(q, &m->list[i].row))
            continue;
        ret->more = ret->count == q->limit;
        if (!ret->more)
            ret->rows[ret->count++] = copy_of(&m->list[i].row, is_open, arg, a);
    }
}

bool mem_schedule_version(const struct mem_schedules *m, struct slice name, int64_t version,
                          struct arena *a, struct schedule_version_row *ret)
{
    for (size_t i = 0; i < m->version_count; i++)
        if (slice_eq(m->versions[i].row.name, name) && m->versions[i].row.version == version) {
            *ret = schedule_version_copy(a, &m->versions[i].row);
            return true;
        }
    return false;
}
