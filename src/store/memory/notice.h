#ifndef STORE_MEMORY_NOTICE_H
#define STORE_MEMORY_NOTICE_H

/* Notices of the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_notice {
    struct arena arena;
    struct notice_row row;
};

struct mem_notices {
    struct mem_notice *list; /* by seq */
    size_t count, cap;
    int64_t last_seq;
};

void mem_notices_fini(struct mem_notices *m);
void mem_notice_add(struct mem_notices *m, const struct notice_row *row);
/* Are all of them to be decided? */
bool mem_notices_wait(const struct mem_notices *m, const int64_t *seqs, size_t count);
bool mem_notices_any(const struct mem_notices *m); /* that is to be decided */
size_t mem_notices_refused(const struct mem_notices *m);
int64_t mem_notices_told(const struct mem_notices *m, struct slice task);
void mem_notice_settle(struct mem_notices *m, const struct notice_verdict *v);
/* Those to be decided, or those refused. `look` fills in what is read beside them;
 * NULL: nothing. */
void mem_notices_read(const struct mem_notices *m, bool refused, struct notice_read *n,
                      struct arena *a, void (*look)(void *arg, struct notice_row *row), void *arg);

#endif
