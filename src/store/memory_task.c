#include "store/memory_task.h"

#include "base/buf.h"
#include "json/json.h"

#include <stdlib.h>

#include "store/row.h"

void mem_task_free(struct mem_task *t)
{
    arena_fini(&t->life);
    arena_fini(&t->row_arena);
    free(t->payloads);
    free(t);
}

size_t mem_tasks_retire(struct mem_task **tasks, size_t count, struct map *by_id, struct retire *r)
{
    size_t looked = 0;
    size_t kept = 0;
    bool done = false;

    r->count = 0;
    r->more = false;
    for (size_t i = 0; i < count; i++) {
        struct mem_task *t = tasks[i];
        const struct task_row *row = &t->row;
        tasks[kept++] = t;
        if (row->seq <= r->after_seq || done)
            continue;
        bool past = retire_is_past(r, row->submitted_at);
        r->after_seq = row->seq;
        r->more = ++looked == r->scan_max && !past;
        done = past || r->more;
        if (!retire_wants(r, row->state, row->ended_at, row->locked_by.ptr != NULL))
            continue;
        r->count++;
        if (r->dry)
            continue;
        (void)map_remove(by_id, t->id);
        mem_task_free(t);
        kept--;
    }
    return kept;
}

bool mem_tags_hold(const struct list_query *q, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *tags = NULL;

    if (q->tag_count == 0)
        return true;
    if (!row->tags.ptr || json_parse(&a, row->tags, &tags, NULL) != ERR_OK)
        return false;
    for (size_t i = 0; i < q->tag_count; i++) {
        CLEANUP(buf_fini) struct buf key = {0};
        buf_slice(&key, q->tags[i].key);
        const struct json *tag = json_get(tags, key.ptr);
        if (!tag || !slice_eq(tag->text, q->tags[i].value))
            return false;
    }
    return true;
}

static bool is_named(const struct list_query *q, struct slice id)
{
    for (size_t i = 0; i < q->id_count; i++)
        if (slice_eq(q->ids[i], id))
            return true;
    return !q->ids;
}

bool mem_list_wants(const struct list_query *q, const struct task_row *row)
{
    return list_wants(q, row) && is_named(q, row->id) && mem_tags_hold(q, row)
           && (!list_wants_doc(q) || list_doc_wanted(q, row));
}
