#ifndef SCHEDULE_TICKER_H
#define SCHEDULE_TICKER_H

/*
 * Decides the moments of schedules that are due, on the node that leads. In one transaction, fenced
 * by its lease, a moment is decided and its submission inserted, which the intake makes a task of.
 * So a moment is one task, whoever leads, and however often a leader dies.
 *
 * While nothing is due, nothing is read, but for a look each second at schedules that wait for the
 * end of a run, and a rarer one at a store that others use, too.
 *
 * It runs on the event loop, turn by turn. What a moment means is decided by plan.h.
 */

#include "base/err.h"
#include "store/job.h"

struct ticker;

struct ticker_config {
    struct store_queue *store;
    bool shared;      /* other nodes may store and change schedules, too */
    size_t batch_max; /* schedules in one transaction; 0: as many as possible */
    void *arg;
    int64_t (*now)(void *arg);    /* the store's time */
    int64_t (*steady)(void *arg); /* ms, without jumps; any thread */
    /* Does this node lead? Then *ret is the proof. */
    bool (*leads)(void *arg, struct fence *ret);
    /* There are new submissions. */
    void (*submitted)(void *arg);
    /* That run is to be undone, as the next moment is due; asked for again if nothing follows. */
    void (*undo)(void *arg, const char *run);
};

struct ticker *ticker_new(const struct ticker_config *c);
void ticker_free(struct ticker *tk); /* no job is at the store */

/* Does what is due. Returns when it wants the next turn, by the store's time; 0: when something
 * happens. */
int64_t ticker_turn(struct ticker *tk);

void ticker_changed(struct ticker *tk); /* a schedule was stored, or changed, here */
void ticker_task_ended(struct ticker *tk, struct slice task);
void ticker_drain(struct ticker *tk); /* nothing is begun from now on */
/* The next moment of a schedule; 0: none is known. */
int64_t ticker_due_at(const struct ticker *tk);
bool ticker_is_busy(const struct ticker *tk);

struct ticker_stats {
    uint64_t fired, missed, skipped, failed; /* moments, since the start of this node */
    uint64_t wait_count;                     /* schedules that wait for a run, at the last look */
    int64_t late_ms;                         /* of the latest moment that was fired in time */
};
void ticker_stats(const struct ticker *tk, struct ticker_stats *ret);

#endif
