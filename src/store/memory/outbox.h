#ifndef STORE_MEMORY_OUTBOX_H
#define STORE_MEMORY_OUTBOX_H

/* Messages in the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_message {
    struct arena arena;
    struct message row;
};

struct mem_outbox {
    struct mem_message *list; /* by seq */
    size_t count, cap;
    int64_t last_seq;
    uint64_t generation; /* raised by what people do */
};

void mem_outbox_fini(struct mem_outbox *m);
void mem_outbox_add(struct mem_outbox *m, struct slice task, const struct message *row);
bool mem_outbox_any(const struct mem_outbox *m);         /* that were not set aside */
int64_t mem_outbox_fresh_at(const struct mem_outbox *m); /* the oldest of these; 0: there is none */
/* Is one of that task set aside, and to be delivered? */
bool mem_outbox_waits(const struct mem_outbox *m, struct slice task);
void mem_outbox_read(const struct mem_outbox *m, struct outbox_read *r, struct arena *a);
void mem_outbox_settle(struct mem_outbox *m, const struct settlement *list, size_t count);
void mem_outbox_targets(const struct mem_outbox *m, const struct target_query *q, struct arena *a,
                        struct outbox_target **ret, size_t *ret_count);
void mem_outbox_list(const struct mem_outbox *m, const struct outbox_query *q, struct arena *a,
                     struct message_page *ret);
void mem_outbox_do(struct mem_outbox *m, struct outbox_verb *v);
void mem_outbox_census(const struct mem_outbox *m, size_t most, struct outbox_census *ret);

#endif
