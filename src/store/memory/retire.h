#ifndef STORE_MEMORY_RETIRE_H
#define STORE_MEMORY_RETIRE_H

/* How tasks of the state store in memory are deleted, and what is kept of them. No faults are
 * injected in here. */

#include "base/map.h"
#include "store/memory/outbox.h"
#include "store/memory/task.h"

/* The ids of deleted tasks. */
struct mem_reserved {
    struct mem_kept **kept;
    size_t count, cap;
};

void mem_reserved_fini(struct mem_reserved *m);

/* The tasks are in the order of seq. */
void mem_retire_look(struct mem_task *const *tasks, size_t count, const struct mem_outbox *outbox,
                     struct retire_look *r, struct arena *a);
void mem_orphans_look(struct mem_task *const *tasks, size_t count, const struct mem_outbox *outbox,
                      const struct mem_reserved *reserved, struct retire_look *r, struct arena *a);
/* Returns how many are left. */
size_t mem_retire(struct mem_task **tasks, size_t count, struct map *by_id,
                  struct mem_reserved *reserved, struct retire *r);

bool mem_is_reserved(const struct mem_reserved *m, struct slice id, int64_t now);
bool mem_reserved_get(const struct mem_reserved *m, struct slice id, struct arena *a,
                      struct reservation *ret);
size_t mem_reserved_sweep(struct mem_reserved *m, struct mem_task *const *tasks, size_t count,
                          int64_t now, size_t limit);

#endif
