#ifndef NODE_METRICS_H
#define NODE_METRICS_H

/*
 * What a node counts of itself, and how Prometheus gets to see it. docs/metrics.md lists it all; a
 * test holds the two together.
 *
 * Observing is an addition or two on the loop's thread: no locks, no memory. Names and labels are
 * bounded: routes are those of the table, agents the first AGENTS_NAMED by name.
 */

#include "http/http.h"
#include "scheduler/scheduler.h"

enum {
    ROUTES_MAX = 112, /* of the table; what matches none of them is counted as the last ... */
    ROUTE_PAGES = ROUTES_MAX - 2, /* ... and the console's pages before it */
    STATUS_CLASSES = 6,           /* 0: the client had gone before it was answered; 1xx to 5xx */
    BOUNDS_MAX = 14,
};

struct histogram {
    uint64_t counts[BOUNDS_MAX + 1]; /* the last one: above all bounds */
    uint64_t sum;                    /* in the unit of the bounds */
};

struct metrics {
    uint64_t requests[ROUTES_MAX][STATUS_CLASSES];
    struct histogram durations[ROUTES_MAX]; /* us */
    struct histogram commits;               /* us */
    struct histogram batches;               /* changes */
    uint64_t tasks_existed, tasks_refused;  /* submissions that made no task */
    uint64_t tasks_ended[TASK_ERROR + 1];
    uint64_t troubles;
    uint64_t tasks_deleted, tasks_archived;
    uint64_t events_sent, gaps;
    int64_t started_at; /* ms since 1970 */
    /* Writes the labels of a route, by its number: method="GET",route="/v1/tasks" */
    void (*route_label)(struct buf *b, unsigned route);
};

/* Upper bounds of the buckets: microseconds; changes. */
extern const uint64_t metrics_duration_bounds[BOUNDS_MAX], metrics_batch_bounds[BOUNDS_MAX];

void metrics_begin(struct metrics *m, int64_t now_ms, void (*label)(struct buf *b, unsigned route));
void metrics_request_begins(struct http_request *r); /* when it is handed over ... */
void metrics_request_done(struct metrics *m, const struct http_request *r); /* ... and let go */
void metrics_committed(struct metrics *m, size_t changes, int64_t took_us);

#endif
