#ifndef STORE_MEMORY_LOCK_H
#define STORE_MEMORY_LOCK_H

/* Locks of tasks, in memory. */

#include "base/arena.h"
#include "store/store.h"

struct mem_holder {
    int64_t task, since; /* task: its seq */
};

struct mem_lock {
    struct arena arena;
    struct slice lock;
    struct mem_holder *holders; /* in the order in which they took it */
    size_t held;
    uint64_t look; /* not 0: a task may wait for it while there is room; the least comes first */
};

struct mem_locks {
    struct mem_lock **list; /* by name */
    size_t count;
    uint64_t looks; /* the last `look` that was given */
};

void mem_locks_fini(struct mem_locks *m);
/* NULL: no task holds it or waits for it. */
struct mem_lock *mem_lock_find(const struct mem_locks *m, struct slice lock);
struct mem_lock *mem_lock_get(struct mem_locks *m, struct slice lock); /* made if it is not there */
void mem_lock_hold(struct mem_locks *m, struct slice lock, int64_t task, int64_t since);
/* Does nothing if the task does not hold it. */
void mem_lock_leave(struct mem_locks *m, struct slice lock, int64_t task);
void mem_lock_look(struct mem_locks *m, struct mem_lock *l);  /* it is to be looked at ... */
void mem_lock_later(struct mem_locks *m, struct mem_lock *l); /* ... behind the others */
/* The next one to be looked at, of those up to `until`; NULL: there is none. */
struct mem_lock *mem_lock_next(const struct mem_locks *m, uint64_t until);
/* It was looked at. Deletes the lock if no task holds it. */
void mem_lock_seen(struct mem_locks *m, struct mem_lock *l);

#endif
