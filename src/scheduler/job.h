#ifndef SCHEDULER_JOB_H
#define SCHEDULER_JOB_H

/* What the scheduler gives to the store, one job at a time, and what comes back. */

#include "scheduler/internal.h"

enum { SAVES_MAX = 16 };

/* A read of what is at rest of a step with for_each. */
struct item_reading {
    struct slice task; /* its id */
    uint16_t step;
    bool outputs; /* all outputs; else: rows to be undone, those that failed, or for a command */
    struct item_read rows;
    struct item_outputs all;
    const struct workflow
        *workflow; /* of rows to be undone, which the thread that reads decodes: */
    struct step *steps;
    size_t step_count;    /* up to the first one that cannot be decoded; *error says why */
    struct arena decoded; /* has them */
    enum err err;
    struct error error;
};

/* One batch at the store: changes and claims in one transaction, then reads. */
struct job {
    struct store_job store_job;
    struct link unreported; /* its messages are durable, but not reported yet */
    struct scheduler *s;
    struct arena arena;
    size_t used, total; /* of the arena, by the job alone */
    int64_t asked_at;
    struct batch batch;
    struct live **lives; /* of the changes */
    struct live **loaded;
    struct reading *loads;
    size_t load_count;
    struct item_reading *items;
    size_t item_count;
    bool seizes, surveys, polls;
    struct survey survey;
    struct lease_try lease_try;
    struct lease lease;
    int64_t poll_after_seq;
    struct row_page polled;
    enum err lease_err, survey_err, poll_err;
    bool reads_owned;
    struct list_query owned;
    struct row_page owned_page;
    enum err owned_err;
    struct agent_change saves[SAVES_MAX]; /* of breakers */
    enum err save_errs[SAVES_MAX];
    size_t save_count;
    bool reads_agents;
    uint64_t agents_after, agents_generation;
    struct agent_row *agents;
    size_t agent_count;
    enum err agents_err;
    bool reads_overruns, has_overruns;
    struct overrun *overruns;
    size_t overrun_count;
    enum err overruns_err;
    bool probe; /* only checks whether the store works again */
    enum err err;
    struct error error;
};

/* Parts of a batch. */
void change_gather(struct scheduler *s, struct job *j);
void claim_gather(struct scheduler *s, struct job *j);

bool job_takes_over(const struct job *j); /* from a node that its expressions may have killed? */
void job_run(struct store_job *sj, struct store *store); /* on the store's thread */
struct job *job_new(struct scheduler *s);
void job_drop(struct scheduler *s, struct job *j); /* nothing was gathered for it */
void job_free(struct job *j);

/* The job is done: keeps it until its messages are reported, or frees it. */
void messages_keep(struct scheduler *s, struct job *j);

#endif
