/*
 * Deletes tasks in memory and keeps the reservations of their ids. No faults are injected here;
 * memory.c has the operations.
 */
#include "store/memory/retire.h"

#include <stdlib.h>

#include "store/codec/codec.h"
#include "store/row.h"

struct mem_kept {
    struct arena arena;
    struct slice id;
    struct reservation what;
};

static void kept_free(struct mem_kept *k)
{
    arena_fini(&k->arena);
    free(k);
}

void mem_reserved_fini(struct mem_reserved *m)
{
    for (size_t i = 0; i < m->count; i++)
        kept_free(m->kept[i]);
    free(m->kept);
}

/* ---- looking ---- */

void mem_retire_look(struct mem_task *const *tasks, size_t count, const struct mem_outbox *outbox,
                     struct retire_look *r, struct arena *a)
{
    int64_t fresh_at = mem_outbox_fresh_at(outbox);
    size_t looked = 0;

    r->found = arena_alloc(a, (r->scan_max + 1) * sizeof *r->found);
    r->found_count = 0;
    r->more = false;
    for (size_t i = 0; i < count && !r->more; i++) {
        const struct task_row *row = &tasks[i]->row;
        const struct retire_seen t = {.seq = row->seq,
                                      .workflow = row->workflow,
                                      .state = row->state,
                                      .ended_at = row->ended_at,
                                      .closed_at = row->closed_at,
                                      .locked = row->locked_by.ptr != NULL || row->lock_since != 0,
                                      .untold =
                                          row->ended_at != 0 && mem_outbox_waits(outbox, row->id),
                                      .fresh_at = fresh_at};
        if (row->seq <= r->after_seq || (r->workflow.ptr && !slice_eq(r->workflow, row->workflow)))
            continue;
        r->after_seq = row->seq;
        size_t rule = retire_rule_of(r, &t);
        if (rule != SIZE_MAX)
            r->found[r->found_count++] = (struct retired){.seq = row->seq,
                                                          .revision = row->revision,
                                                          .id = arena_copy(a, row->id),
                                                          .workflow = arena_copy(a, row->workflow),
                                                          .state = row->state,
                                                          .rule = rule};
        if (retire_is_past(r, row->seq, row->submitted_at))
            return;
        r->more = ++looked == r->scan_max;
    }
}

/* ---- deleting ---- */

static struct mem_kept *find(const struct mem_reserved *m, struct slice id)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->kept[i]->id, id))
            return m->kept[i];
    return NULL;
}

static struct mem_kept *kept_of(struct mem_reserved *m, struct slice id)
{
    struct mem_kept *k = find(m, id);

    if (k)
        return k;
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 64;
        m->kept = reallocarray(m->kept, m->cap, sizeof(struct mem_kept *));
        ASSERT(m->kept);
    }
    k = calloc(1, sizeof *k);
    ASSERT(k);
    k->id = arena_copy(&k->arena, id);
    m->kept[m->count++] = k;
    return k;
}

static void reserve(struct mem_reserved *m, const struct task_row *row, int64_t until)
{
    struct mem_kept *k = until ? kept_of(m, row->id) : NULL;

    if (k)
        k->what = (struct reservation){.workflow = arena_copy(&k->arena, row->workflow),
                                       .version = row->version,
                                       .state = row->state,
                                       .ended_at = row->ended_at,
                                       .until = until,
                                       .content = doc_content(row->doc, &k->arena),
                                       .owner = doc_owner(row->doc, &k->arena)};
}

static bool is_still(const struct mem_task *t, const struct retired *was)
{
    return t && t->row.seq == was->seq && t->row.revision == was->revision && !t->row.locked_by.ptr;
}

size_t mem_retire(struct mem_task **tasks, size_t count, struct map *by_id,
                  struct mem_reserved *reserved, struct retire *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->task_count; i++) {
        struct mem_task *t = map_get(by_id, r->tasks[i].id);
        r->gone[i] = is_still(t, &r->tasks[i]);
        if (!r->gone[i])
            continue;
        reserve(reserved, &t->row, r->reserve_until);
        (void)map_remove(by_id, t->id);
        t->row.revision = 0; /* the mark of one that goes */
    }
    for (size_t i = 0; i < count; i++)
        if (tasks[i]->row.revision == 0)
            mem_task_free(tasks[i]);
        else
            tasks[kept++] = tasks[i];
    return kept;
}

/* ---- ids that are kept ---- */

bool mem_is_reserved(const struct mem_reserved *m, struct slice id, int64_t now)
{
    const struct mem_kept *k = find(m, id);

    return k && k->what.until > now;
}

bool mem_reserved_get(const struct mem_reserved *m, struct slice id, struct arena *a,
                      struct reservation *ret)
{
    const struct mem_kept *k = find(m, id);

    if (!k)
        return false;
    *ret = k->what;
    ret->workflow = arena_copy(a, k->what.workflow);
    ret->content.sha256 = arena_copy(a, k->what.content.sha256);
    ret->owner = arena_copy(a, k->what.owner);
    return true;
}

size_t mem_reserved_sweep(struct mem_reserved *m, int64_t now, size_t limit)
{
    size_t left = 0;
    size_t gone = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (m->kept[i]->what.until <= now && gone < limit) {
            kept_free(m->kept[i]);
            gone++;
        } else {
            m->kept[left++] = m->kept[i];
        }
    }
    m->count = left;
    return gone;
}
