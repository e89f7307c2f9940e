/*
 * One task in memory with its payloads and waits, and whether a listing shows it. No faults are
 * injected here; memory.c has the operations.
 */
#include "store/memory/task.h"

#include "base/buf.h"
#include "json/json.h"

#include <stdlib.h>

#include "store/row.h"

static void payload_free(struct payload *p)
{
    free((char *)(uintptr_t)p->json.ptr); /* of payload_copy() */
}

void mem_task_free(struct mem_task *t)
{
    arena_fini(&t->life);
    arena_fini(&t->row_arena);
    for (size_t i = 0; i < t->payload_count; i++)
        payload_free(&t->payloads[i]);
    free(t->payloads);
    mem_items_fini(&t->items);
    arena_fini(&t->wait_arena);
    free(t);
}

void mem_waits_set(struct mem_task *t, const struct task_row *row, bool drops)
{
    size_t count = drops ? row->wait_count : t->wait_count + row->wait_count;
    struct arena fresh = {0};

    if (!drops && row->wait_count == 0)
        return;
    struct task_wait *all = arena_alloc(&fresh, (count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; !drops && i < t->wait_count; i++)
        all[n++] = (struct task_wait){arena_copy(&fresh, t->waits[i].agent), t->waits[i].rank};
    for (size_t i = 0; i < row->wait_count; i++)
        all[n++] = (struct task_wait){arena_copy(&fresh, row->waits[i].agent), row->waits[i].rank};
    arena_fini(&t->wait_arena);
    t->wait_arena = fresh;
    t->waits = all;
    t->wait_count = n;
}

bool mem_payloads_are_new(const struct mem_task *t, const struct task_row *row)
{
    for (size_t i = 0; i < row->payload_count; i++) {
        for (size_t k = 0; t && k < t->payload_count; k++)
            if (t->payloads[k].number == row->payloads[i].number)
                return false;
        for (size_t k = 0; k < i; k++)
            if (row->payloads[k].number == row->payloads[i].number)
                return false;
    }
    return true;
}

static int payload_order(const void *a, const void *b)
{
    uint32_t x = ((const struct payload *)a)->number;
    uint32_t y = ((const struct payload *)b)->number;

    return (x > y) - (x < y);
}

/* Each has memory of its own: a task with a long list drops one after the other. */
static struct payload payload_copy(const struct payload *from)
{
    char *text = malloc(from->json.len + 1);

    ASSERT(text);
    memcpy(text, from->json.ptr, from->json.len);
    text[from->json.len] = 0;
    return (struct payload){from->number, {text, from->json.len}};
}

void mem_payloads_add(struct mem_task *t, const struct task_row *row)
{
    size_t count = t->payload_count + row->payload_count;

    if (row->payload_count == 0)
        return;
    t->payloads = reallocarray(t->payloads, count, sizeof *t->payloads);
    ASSERT(t->payloads);
    for (size_t i = 0; i < row->payload_count; i++)
        t->payloads[t->payload_count++] = payload_copy(&row->payloads[i]);
    qsort(t->payloads, count, sizeof *t->payloads, payload_order);
}

void mem_payloads_drop(struct mem_task *t, const struct task_row *row)
{
    for (size_t i = 0; i < row->dropped_payload_count; i++) {
        size_t at = 0;
        while (at < t->payload_count && t->payloads[at].number != row->dropped_payloads[i])
            at++;
        if (at == t->payload_count)
            continue;
        payload_free(&t->payloads[at]);
        memmove(t->payloads + at, t->payloads + at + 1,
                (t->payload_count - at - 1) * sizeof *t->payloads);
        t->payload_count--;
    }
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
