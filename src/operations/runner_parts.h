#ifndef OPERATIONS_RUNNER_PARTS_H
#define OPERATIONS_RUNNER_PARTS_H

/* What the files of the runner share: runner.c has the turns and the lease, page.c what is done
 * with the store for one operation. */

#include "operations/runner.h"
#include "store/job.h"

enum { RUNNER_SLOTS = 4, AUDITS_READ = 50 };

struct slot;

/* One task of the page at hand. */
struct page_task {
    struct slot *slot;
    struct ask ask;
    enum page_task_state {
        TASK_TO_CHECK, /* may have been asked before: the audit knows */
        TASK_TO_ASK,
        TASK_ASKED,
        TASK_COUNTED
    } state;
    bool doubt; /* it may have been done without our knowing of it */
};

/* What has to be done next. */
enum phase { PHASE_CHECK, PHASE_ASK, PHASE_PAGE };

/* An operation at work. */
struct slot {
    struct runner *runner;
    bool used;
    struct store_job job;
    bool at_work; /* the job is with the store */
    bool over;    /* it is not ours any more: dropped as soon as nothing is out */
    enum phase phase;
    int64_t not_before; /* steady */
    int64_t
        page_at; /* steady: when the page was begun, or the latest one beyond the room was asked */
    struct arena arena; /* of the operation */
    struct arena page;  /* of the page at hand */
    struct operation op;
    struct page_task tasks[OPERATION_PAGE_MAX];
    size_t open; /* asks out */
    /* of the job: */
    int64_t until;      /* steady: the lease as it was when the job was given away */
    struct arena fresh; /* of the next page */
    struct operation next;
    bool did[OPERATION_PAGE_MAX], fits[OPERATION_PAGE_MAX];
    enum err err;
    struct error error;
    bool reload; /* out: somebody else has changed it otherwise than we know */
};

/* Has the lease run out while the job waited for the store? Another node may have asked the page
 * meanwhile. On any thread. */
bool slot_is_late(const struct slot *s);

/* page.c, on the store's thread */
void page_check_run(struct store_job *j, struct store *s);
void page_next_run(struct store_job *j, struct store *s);

#endif
