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
    bool orphans, archive; /* it is a root whose children are still there */
    int64_t until;         /* when they are gone */
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

static struct mem_kept *find(const struct mem_reserved *m, struct slice id)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->kept[i]->id, id))
            return m->kept[i];
    return NULL;
}

/* ---- looking ---- */

static struct retire_seen seen_of(const struct task_row *row, const struct mem_outbox *outbox)
{
    return (struct retire_seen){.seq = row->seq,
                                .workflow = row->workflow,
                                .state = row->state,
                                .ended_at = row->ended_at,
                                .closed_at = row->closed_at,
                                .child = row->root.ptr != NULL,
                                .locked = row->locked_by.ptr != NULL || row->lock_since != 0,
                                .untold = row->ended_at != 0 && mem_outbox_waits(outbox, row->id),
                                .fresh_at = mem_outbox_fresh_at(outbox)};
}

static struct retired *find_it(struct retire_look *r, const struct task_row *row, size_t rule,
                               struct arena *a)
{
    struct retired *found = &r->found[r->found_count++];

    *found = (struct retired){.seq = row->seq,
                              .revision = row->revision,
                              .id = arena_copy(a, row->id),
                              .workflow = arena_copy(a, row->workflow),
                              .state = row->state,
                              .rule = rule};
    return found;
}

void mem_retire_look(struct mem_task *const *tasks, size_t count, const struct mem_outbox *outbox,
                     struct retire_look *r, struct arena *a)
{
    size_t looked = 0;

    r->found = arena_alloc(a, (r->scan_max + 1) * sizeof *r->found);
    r->found_count = 0;
    r->more = false;
    for (size_t i = 0; i < count && !r->more; i++) {
        const struct task_row *row = &tasks[i]->row;
        if (row->seq <= r->after_seq || (r->workflow.ptr && !slice_eq(r->workflow, row->workflow)))
            continue;
        const struct retire_seen t = seen_of(row, outbox);
        r->after_seq = row->seq;
        size_t rule = retire_rule_of(r, &t);
        if (rule != SIZE_MAX)
            (void)find_it(r, row, rule, a);
        if (retire_is_past(r, row->seq, row->submitted_at))
            return;
        r->more = ++looked == r->scan_max;
    }
}

/* By root, and then by seq. */
static int orphan_order(const void *a, const void *b)
{
    const struct task_row *x = &(*(struct mem_task *const *)a)->row;
    const struct task_row *y = &(*(struct mem_task *const *)b)->row;
    int order = slice_order(x->root, y->root);

    return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static bool is_behind(const struct retire_look *r, const struct task_row *row)
{
    int order = r->after_root.ptr ? slice_order(row->root, r->after_root) : 1;

    return order > 0 || (order == 0 && row->seq > r->after_seq);
}

static struct mem_task **orphans_of(struct mem_task *const *tasks, size_t count,
                                    const struct mem_reserved *reserved, struct retire_look *r,
                                    struct arena *a, size_t *ret_count)
{
    struct mem_task **list = arena_alloc(a, (count + 1) * sizeof(struct mem_task *));

    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct task_row *row = &tasks[i]->row;
        const struct mem_kept *k = row->root.ptr ? find(reserved, row->root) : NULL;
        if (k && k->orphans && is_behind(r, row))
            list[(*ret_count)++] = tasks[i];
    }
    qsort(list, *ret_count, sizeof(struct mem_task *), orphan_order);
    return list;
}

void mem_orphans_look(struct mem_task *const *tasks, size_t count, const struct mem_outbox *outbox,
                      const struct mem_reserved *reserved, struct retire_look *r, struct arena *a)
{
    size_t orphans = 0;
    struct mem_task **list = orphans_of(tasks, count, reserved, r, a, &orphans);

    r->found = arena_alloc(a, (r->scan_max + 1) * sizeof *r->found);
    r->found_count = 0;
    r->more = orphans >= r->scan_max;
    for (size_t i = 0; i < orphans && i < r->scan_max; i++) {
        const struct task_row *row = &list[i]->row;
        const struct retire_seen t = seen_of(row, outbox);
        r->after_seq = row->seq;
        r->after_root = arena_copy(a, row->root);
        if (!retire_orphan_goes(&t))
            continue;
        struct retired *found = find_it(r, row, SIZE_MAX, a);
        found->root = r->after_root;
        found->archive = find(reserved, row->root)->archive;
    }
}

/* ---- deleting ---- */

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

/* So many of the tasks have that root. */
static bool has_children(struct mem_task *const *tasks, size_t count, struct slice root)
{
    for (size_t i = 0; i < count; i++)
        if (tasks[i]->row.revision != 0 && tasks[i]->row.root.ptr
            && slice_eq(tasks[i]->row.root, root))
            return true;
    return false;
}

static void reserve(struct mem_reserved *m, const struct task_row *row, const struct retire *r,
                    bool orphans)
{
    struct mem_kept *k = orphans || r->reserve_until ? kept_of(m, row->id) : NULL;

    if (!k)
        return;
    k->orphans = orphans;
    k->archive = r->archived;
    k->until = r->reserve_until;
    k->what = (struct reservation){.workflow = arena_copy(&k->arena, row->workflow),
                                   .version = row->version,
                                   .state = row->state,
                                   .ended_at = row->ended_at,
                                   .until = orphans ? RESERVED_FOR_CHILDREN : r->reserve_until,
                                   .content = doc_content(row->doc, &k->arena),
                                   .owner = doc_owner(row->doc, &k->arena)};
}

static bool is_still(const struct mem_task *t, const struct retired *was, const struct map *by_id)
{
    return t && t->row.seq == was->seq && t->row.revision == was->revision && !t->row.locked_by.ptr
           && !(t->row.root.ptr && map_get(by_id, t->row.root));
}

size_t mem_retire(struct mem_task **tasks, size_t count, struct map *by_id,
                  struct mem_reserved *reserved, struct retire *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->task_count; i++) {
        struct mem_task *t = map_get(by_id, r->tasks[i].id);
        r->gone[i] = is_still(t, &r->tasks[i], by_id);
        if (!r->gone[i])
            continue;
        if (!t->row.root.ptr)
            reserve(reserved, &t->row, r, has_children(tasks, count, t->id));
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

/* Those whose last child is gone expire like others. */
static size_t free_roots(struct mem_reserved *m, struct mem_task *const *tasks, size_t count,
                         size_t limit)
{
    size_t freed = 0;

    for (size_t i = 0; i < m->count && freed < limit; i++) {
        struct mem_kept *k = m->kept[i];
        if (!k->orphans || has_children(tasks, count, k->id))
            continue;
        k->orphans = false;
        k->what.until = k->until;
        freed++;
    }
    return freed;
}

size_t mem_reserved_sweep(struct mem_reserved *m, struct mem_task *const *tasks, size_t count,
                          int64_t now, size_t limit)
{
    size_t freed = free_roots(m, tasks, count, limit);
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
    return gone > freed ? gone : freed;
}
