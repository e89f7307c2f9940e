#ifndef STORE_MEMORY_SUBMISSION_H
#define STORE_MEMORY_SUBMISSION_H

/* Submissions of the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_submission {
    struct arena arena;
    struct submission_row row;
};

struct mem_submissions {
    struct mem_submission *list; /* by seq */
    size_t count, cap;
    int64_t last_seq;
};

void mem_submissions_fini(struct mem_submissions *m);
void mem_submission_add(struct mem_submissions *m, const struct submission_row *row);
/* Its task is there: it goes. False: it does not wait (any more). */
bool mem_submission_become(struct mem_submissions *m, int64_t seq);
void mem_submission_settle(struct mem_submissions *m, const struct submission_verdict *v);
void mem_submissions_take(const struct mem_submissions *m, struct submission_take *t,
                          struct arena *a);
void mem_submissions_list(const struct mem_submissions *m, const struct submission_query *q,
                          struct arena *a, struct submission_page *ret);
void mem_submissions_verb(struct mem_submissions *m, struct submission_verb *v);
/* Whether that one waits. */
bool mem_submission_waits(const struct mem_submissions *m, struct slice source, struct slice key);
/* Whether one of that id waits. */
bool mem_submission_of(const struct mem_submissions *m, struct slice id);
bool mem_submissions_wait(const struct mem_submissions *m);

#endif
