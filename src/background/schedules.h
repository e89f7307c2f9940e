#ifndef BACKGROUND_SCHEDULES_H
#define BACKGROUND_SCHEDULES_H

/*
 * Submits the tasks of schedules, on the node that leads. In one transaction, fenced by its lease,
 * a moment is decided and its submission inserted, which the inbox makes a task of. So a moment is
 * one task, whoever leads, and however often a leader dies.
 *
 * While nothing is due, nothing is read, but for a look each second at a store that others use,
 * too, and at schedules that wait for the end of a run.
 */

#include "base/base.h"
#include "node/part.h"

struct server;

void schedules_changed(struct server *sv); /* one was stored, or changed */
void schedules_task_ended(struct server *sv, struct slice task);

struct schedules_stats {
    uint64_t fired, missed, skipped, failed; /* moments, since the start of this node */
    uint64_t wait_count;                     /* schedules that wait for a run, at the last look */
    int64_t late_ms;                         /* of the latest moment that was fired in time */
};
void schedules_stats(const struct server *sv, struct schedules_stats *ret);

extern const struct part schedules_part;

#endif
