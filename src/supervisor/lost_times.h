#ifndef SUPERVISOR_LOST_TIMES_H
#define SUPERVISOR_LOST_TIMES_H

/*
 * Finds the time in which no result could arrive: this server was down, the machine slept, the
 * store was unavailable or slow. Pure: its input is when scans begin and succeed, on the store's
 * time and on a steady clock, and says what counts as lost (core's struct lost_time).
 *
 * Scans that are too far apart are a gap, and so is a step of the store's time, which nobody had. A
 * store that is always slow is not one outage after the other: see `LOST_MAX` in lost_times.c and
 * gaps.h. Otherwise each scan would move again what the previous one moved, and no task's own
 * deadline would ever pass. Whatever it is, nothing is given up before the grace time after it.
 */

#include "core/decide.h"
#include "supervisor/gaps.h"

struct lost_times {
    struct lost_time lost; /* the result */
    struct gaps gaps;
    int64_t interval_ms;          /* between scans, if all is well */
    int64_t last_at, last_steady; /* the last successful scan; at first, the start */
    bool slow;                    /* the last gap was a usual one */
    int64_t outage_ms;            /* an outage that is not over; 0: none ... */
    int64_t reported_ms;          /* ... and the length that was reported; 0: not reported */
    int64_t lost_after;           /* the scan after which the outage began */
    int64_t late_steady;          /* the last scan that came late ... */
    int64_t late_after;           /* ... and the one before the first late scan */
    unsigned lost_count;          /* in a slow time: how many gaps moved tasks' deadlines ... */
    int64_t slow_ms;              /* ... and about the median of all its gaps */
};

/* At the start. Whatever was due while a server ran has been acted on, so what is overdue now was
 * due while none ran: the first gap reaches back for ever. */
void lost_times_init(struct lost_times *lt, int64_t interval_ms, int64_t grace_ms, int64_t now,
                     int64_t steady);

/* A scan begins. Returns the length of an outage that was found and not reported yet; 0: none. */
int64_t lost_times_scan_begins(struct lost_times *lt, int64_t now, int64_t steady);

/* The store answered the scan: an outage lasted until then, not until it was asked. */
void lost_times_answered(struct lost_times *lt, int64_t now);

/* The scan that began then succeeded. Returns the length of an outage that is over and lasted
 * longer than reported; 0: none. */
int64_t lost_times_scan_succeeds(struct lost_times *lt, int64_t began_at, int64_t began_steady);

#endif
