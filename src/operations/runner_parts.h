#ifndef OPERATIONS_RUNNER_PARTS_H
#define OPERATIONS_RUNNER_PARTS_H

/* Shared by the files of the runner: runner.c has the turns and the lease, page.c the store's part
 * of an operation. */

#include "operations/runner.h"
#include "store/job.h"

enum { RUNNER_SLOTS = 4, AUDITS_READ = 50 };

struct slot;

/* One task of the current page. */
struct page_task {
    struct slot *slot;
    struct ask ask;
    enum page_task_state {
        TASK_TO_CHECK, /* may have been asked before: the audit knows */
        TASK_TO_ASK,
        TASK_ASKED,
        TASK_COUNTED
    } state;
    bool doubt; /* it may have been changed without our knowledge */
};

/* The next thing to do. */
enum phase { PHASE_CHECK, PHASE_ASK, PHASE_PAGE };

/* An operation in progress. */
struct slot {
    struct runner *runner;
    const struct runner_outside *outside; /* its `steady` is callable on any thread */
    bool used;
    struct store_job job;
    bool at_work; /* the job is at the store */
    bool over;    /* not ours any more: dropped when nothing is out */
    enum phase phase;
    int64_t not_before; /* steady */
    int64_t page_at;    /* steady: when the page was begun, or a task was asked without room */
    struct arena arena; /* of the operation */
    struct arena page;  /* of the current page */
    struct operation op;
    struct page_task tasks[OPERATION_PAGE_MAX];
    size_t open; /* asks in flight */
    /* for the job: */
    int64_t until;      /* steady: end of the lease when the job was submitted */
    struct arena fresh; /* of the next page */
    struct operation next;
    bool did[OPERATION_PAGE_MAX], fits[OPERATION_PAGE_MAX];
    enum err err;
    struct error error;
    bool reload; /* out: another node changed it */
};

/* page.c, on the store's thread */
void page_check_run(struct store_job *j, struct store *s);
void page_next_run(struct store_job *j, struct store *s);

#endif
