#ifndef STORE_MEMORY_TASK_H
#define STORE_MEMORY_TASK_H

/* A task of the state store in memory. No faults are injected in here. */

#include "base/map.h"
#include "store/memory/item.h"
#include "store/store.h"

struct mem_task {
    struct slice id;
    struct arena life;      /* of the id */
    struct arena row_arena; /* of the row as it is now */
    struct task_row row;
    struct payload *payloads;
    size_t payload_count;
    struct arena wait_arena; /* of the waits */
    struct task_wait *waits;
    size_t wait_count;
    struct mem_items items;
};

void mem_task_free(struct mem_task *t);

/* What the payload table's key would refuse: false. */
bool mem_payloads_are_new(const struct mem_task *t, const struct task_row *row);
void mem_payloads_add(struct mem_task *t, const struct task_row *row);
/* Those of a change that was made. */
void mem_payloads_drop(struct mem_task *t, const struct task_row *row);

/* Those of a change that was made; `drops`: what was there goes. */
void mem_waits_set(struct mem_task *t, const struct task_row *row, bool drops);

/* Has the row all the tags that are asked for? */
bool mem_list_wants(const struct list_query *q, const struct task_row *row);
bool mem_tags_hold(const struct list_query *q, const struct task_row *row);

#endif
