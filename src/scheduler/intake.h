#ifndef SCHEDULER_INTAKE_H
#define SCHEDULER_INTAKE_H

/*
 * Brings submissions out of table `submission`, where applications put them in by SQL, to the
 * scheduler, and settles what became of them.
 *
 * A batch at a time: taken from the store, each made an ask by whoever knows how to read one, asked
 * of the scheduler as any other. A new task deletes its row in its own transaction; what was there
 * already, or is refused, is settled in one transaction at the end of the batch. What the store did
 * not take stays where it is and comes again. So a crash anywhere loses nothing, and nothing
 * becomes two tasks: the id of a submission is given when it is put in.
 */

#include "scheduler/scheduler.h"

/* One of a batch. */
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
    bool shared;      /* other nodes take some of them */
    size_t batch_max; /* default 1000; and of some MiB in all */
    int64_t look_ms;  /* without being told of any; 0: never */
    void *arg;
    /* How many asks may be made now. */
    size_t (*room)(void *arg);
    /* Makes it->ask, or says it->problem; or sets it->away, and does so later. */
    void (*read)(void *arg, struct intake_item *it);
    /* Hands it->ask to the scheduler; intake_answered follows, perhaps at once. */
    void (*ask)(void *arg, struct intake_item *it);
    /* Told when it is durable: what became of a batch. */
    void (*settled)(void *arg, struct intake_item *const *refused, size_t count);
    /* Before each look: what tells of more is empty from now on. NULL: nothing tells. */
    void (*looks)(void *arg);
    /* It came to rest; NULL: nobody wants to know. */
    void (*failed)(void *arg, const struct error *e);
};

struct intake_stats {
    uint64_t accepted, existed, refused; /* since the start */
    uint64_t refused_now; /* that are kept, at most SUBMISSIONS_COUNTED, as last seen */
    size_t open;          /* at work on */
};

struct intake *intake_new(const struct intake_config *c);
void intake_free(struct intake *in); /* no job of it is with the store, no ask open */

/* Some may have come. */
void intake_stir(struct intake *in);
/* What a survey saw: whether some wait, and among how many nodes they are divided. */
void intake_surveyed(struct intake *in, const struct survey *v);
/* One that was away has its ask, or its problem. */
void intake_read(struct intake_item *it);
/* What became of it->ask; `story` (or NONE) if it failed. */
void intake_answered(struct intake_item *it, struct slice story);
/* Does what is due; when it wants to be called again, or 0. */
int64_t intake_turn(struct intake *in);
void intake_drain(struct intake *in); /* takes no more */
bool intake_is_busy(const struct intake *in);
void intake_stats(const struct intake *in, struct intake_stats *ret);

#endif
