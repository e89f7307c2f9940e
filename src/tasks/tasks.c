/* The table of tasks in memory, its construction, and the time of a turn. See tasks.h; live.c has
 * what happens to one task. */

#include "tasks/tasks.h"

#include <stdio.h>

#include "core/items.h"

#include <stdlib.h>

enum { LIVE_MAX = 50000, GRACE_MS = 10000 };

void tasks_init(struct tasks *ts, const struct tasks_config *c, struct registry *workflows,
                const struct clock *clock)
{
    *ts = (struct tasks){
        .me = c->me,
        .workflows = workflows,
        .clock = *clock,
        .live_max = c->live_max ? c->live_max : LIVE_MAX,
        .grace_ms = c->grace_ms ? c->grace_ms : GRACE_MS,
        .agents_stale = true,
    };
    list_init(&ts->dirty);
    list_init(&ts->loads);
    list_init(&ts->inboxes);
    list_init(&ts->undecided);
    list_init(&ts->item_reads);
    list_init(&ts->awaiting_definition);
    list_init(&ts->answerable);
    list_init(&ts->shut);
    list_init(&ts->unsaved);
    list_init(&ts->lost);
    effort_init(&ts->effort, c->turn_steps);
    /* where limits are shared, the number of nodes is not known yet */
    dispatch_init(&ts->dispatch, (struct share){.nodes = c->alone}, tasks_now(ts));
}

void tasks_fini(struct tasks *ts)
{
    ASSERT(ts->lives.len == 0);
    ASSERT(list_empty(&ts->answerable));
    ASSERT(list_empty(&ts->lost));
    heap_fini(&ts->waits);
    heap_fini(&ts->naps);
    heap_fini(&ts->silences);
    map_fini(&ts->lives);
    overruns_free(&ts->overruns);
    dispatch_fini(&ts->dispatch);
}

void tasks_freeze_now(struct tasks *ts)
{
    ts->frozen_now = ts->clock.now(ts->clock.arg);
}

void tasks_release_now(struct tasks *ts)
{
    ts->frozen_now = 0;
}

struct slice item_name(struct slice step, uint32_t item, struct arena *a)
{
    char *text = arena_bytes(a, step.len + 12);
    int len = snprintf(text, step.len + 12, "%.*s.%" PRIu32, SLICE_ARG(step), item);

    ASSERT(len > 0);
    return (struct slice){text, (size_t)len};
}

struct slice live_unit_name(const struct live *l, uint16_t unit, struct arena *a)
{
    const struct item_ref item = live_item(l, unit);
    struct slice step = l->definition->workflow.steps[unit].name;

    return item.any ? item_name(step, item.number, a) : step;
}

int live_slot(const struct live *l, int step, const struct item_ref *item)
{
    const struct workflow *w = &l->definition->workflow;

    if (w->steps[step].kind != KIND_EACH || item->generation != l->task.steps[step].generation)
        return -1;
    return items_slot(w, &l->task, (uint16_t)step, item->number);
}

bool item_name_split(struct slice name, struct slice *ret_step, uint32_t *ret_item)
{
    size_t at = name.len;
    uint64_t number = 0;
    uint64_t place = 1;

    for (; at > 0 && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9'; at--, place *= 10) {
        number += place * (uint64_t)(name.ptr[at - 1] - '0');
        if (number >= ITEMS_MAX)
            return false;
    }
    if (at < 2 || at == name.len || name.ptr[at - 1] != '.')
        return false;
    *ret_step = (struct slice){name.ptr, at - 1};
    *ret_item = (uint32_t)number;
    return true;
}

bool live_item_named(const struct live *l, struct slice name, struct item_ref *ret, int *ret_step)
{
    const struct workflow *w = &l->definition->workflow;
    struct slice of;

    *ret = (struct item_ref){.any = true};
    if (workflow_step_index(w, name) >= 0 || !item_name_split(name, &of, &ret->number))
        return false;
    *ret_step = workflow_step_index(w, of);
    if (*ret_step < 0)
        return false;
    ret->generation = l->task.steps[*ret_step].generation;
    return true;
}

int live_unit_named(const struct live *l, struct slice name)
{
    int step = workflow_step_index(&l->definition->workflow, name);
    struct item_ref item;

    return step < 0 && live_item_named(l, name, &item, &step) ? live_unit(l, step, &item) : step;
}

struct live *live_find(const struct tasks *ts, struct slice id)
{
    return map_get(&ts->lives, id);
}

struct live *live_stub(struct tasks *ts, struct slice id)
{
    struct live *l = calloc(1, sizeof *l + id.len + 1);

    ASSERT(l);
    memcpy(l->id_text, id.ptr, id.len);
    l->id = (struct slice){l->id_text, id.len};
    list_init(&l->inbox);
    list_init(&l->applied);
    list_init(&l->active);
    list_init(&l->pulses);
    list_init(&l->counted);
    map_put(&ts->lives, l->id, l);
    ts->counts.live++;
    return l;
}

void live_read(struct tasks *ts, struct slice id)
{
    list_push(&ts->loads, &live_stub(ts, id)->load_link);
}

bool live_is_ours(const struct tasks *ts, const struct live *l)
{
    return slice_eq(l->task.locked_by, ts->me);
}
