#ifndef INTAKE_INTAKE_H
#define INTAKE_INTAKE_H

/*
 * Takes submissions from the table `submission`, where applications insert them by SQL, passes them
 * to the scheduler, and settles their rows.
 *
 * Works in batches: rows are taken from the store, the configured reader makes an ask of each, and
 * the scheduler decides it like any other. A new task deletes its row in its own transaction; rows
 * of existing or refused submissions are settled in one transaction at the end of the batch. What
 * the store did not take stays in the table and is taken again. So a crash loses nothing and
 * duplicates nothing: a submission gets its id when it is inserted.
 */

#include "scheduler/scheduler.h"

/* One submission of a batch. */
struct intake_item {
    struct intake *intake;
    const struct submission_row *row;
    struct arena *arena; /* of the batch: for what is made of it */
    struct ask *ask;     /* of `read`, with its `submission` set here; lives until it is answered */
    struct slice problem; /* why it is refused, in the batch's arena; NONE: it is not */
    bool away;            /* of `read`: that takes longer, and ends with intake_read */
    bool settles;         /* its row has to be dealt with at the end of the batch */
};

struct intake_config {
    struct store_queue *store;
    struct registry *workflows;
    struct clock clock;
    bool shared;      /* other nodes take submissions, too */
    size_t batch_max; /* default 1000; also limited to a few MiB in total */
    int64_t look_ms;  /* longest pause without a notification; 0: no limit */
    void *arg;
    /* The number of asks that may be made now. */
    size_t (*room)(void *arg);
    /* Makes it->ask, or says it->problem; or sets it->away, and does so later. */
    void (*read)(void *arg, struct intake_item *it);
    /* Passes it->ask to the scheduler; intake_answered follows, perhaps at once. */
    void (*ask)(void *arg, struct intake_item *it);
    /* Called when a batch's refusals are durable. */
    void (*settled)(void *arg, struct intake_item *const *refused, size_t count);
    /* Called before each read: earlier notifications are covered by it. NULL: no notifications. */
    void (*looks)(void *arg);
    /* A read found that notices wait (intake/notices.h). NULL: not reported. */
    void (*notices)(void *arg);
    /* A batch failed and is tried again later. NULL: not reported. */
    void (*failed)(void *arg, const struct error *e);
};

struct intake_stats {
    uint64_t accepted, existed, refused; /* since the start */
    uint64_t refused_now; /* refused rows in the table, at most SUBMISSIONS_COUNTED, as last seen */
    uint64_t signals_refused_now; /* the same of signals by SQL */
    size_t open;                  /* in work */
};

struct intake *intake_new(const struct intake_config *c);
void intake_free(struct intake *in); /* no job is at the store, no ask is open */

/* There may be new submissions. */
void intake_wake(struct intake *in);
/* The result of a survey: whether submissions wait, and how many nodes share them. */
void intake_surveyed(struct intake *in, const struct survey *v);
/* One that was away has its ask, or its problem. */
void intake_read(struct intake_item *it);
/* What became of it->ask; `story` (or NONE) if it failed. */
void intake_answered(struct intake_item *it, struct slice story);
/* Does what is due; returns when to call it again, or 0. */
int64_t intake_turn(struct intake *in);
void intake_drain(struct intake *in);          /* takes no more */
bool intake_has_news(const struct intake *in); /* something may wait to be read, or is read */
bool intake_is_busy(const struct intake *in);
void intake_stats(const struct intake *in, struct intake_stats *ret);

#endif
