#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

/*
 * The supervisor: at every interval, finds tasks of which something is past its complete-by without
 * a result, and writes a request into their rows: that an attempt ends, the task stops, or has more
 * time (store/row_request.h). The task's owner decides by core/ what follows.
 *
 * A scan reads an index range: its cost depends on how much is overdue, not on how much is stored.
 *
 * One supervisor leads at a time, by a lease whose epoch fences its writes.
 *
 * Time in which this server was unavailable is not the agents' fault. After a start, after a gap of
 * more than three intervals between scans (the machine slept, the store was unavailable), and after
 * a step of the store's time of more than one interval (another server is the primary now), what
 * was due in the gap gets `grace_ms` more. At a start the gap reaches back for ever: whatever was
 * due while a server ran has been acted on, so what is overdue now was due while none ran.
 *
 * If scans are that far apart again and again, because the store is always slow, an attempt is
 * postponed by the gap into which its complete-by falls and by gaps that begin in its grace time,
 * but not by later ones (gaps.h). A task's own complete-by moves in its row, and so may fall into
 * the next gap: only five gaps move it, until scans have come in time for `grace_ms`. A gap of more
 * than four times the usual length moves it anyway. The others put off only when the task is given
 * up, as they do with attempts. So everything overdue is handled in the end.
 *
 * A supervisor that does not lead scans as often as a leader, so that it knows the lost time when
 * it becomes the leader. A leader that ends gives up its lease.
 */

#include "definition/registry.h"
#include "store/job.h"

struct supervisor;

struct supervisor_config {
    struct slice holder; /* the holder of the lease */
    int64_t interval_ms; /* default 1 s */
    int64_t grace_ms;    /* default 10 s */
    int64_t lease_ms;    /* default 3 s */
};

struct supervisor_outside {
    void *arg;
    int64_t (*now)(void *arg);    /* the store's time, ms UTC */
    int64_t (*steady)(void *arg); /* ms, without jumps, counting during suspend; for gaps */
    /* A request is durable in the task's row (or its wake_at was moved); `released`: the task is
     * unlocked. */
    void (*requested)(void *arg, struct slice id, bool released);
    /* What other nodes may have stored, as of this scan. May be NULL. */
    void (*generations)(void *arg, const struct generations *g);
    /* A scan failed (called each time), for the log. */
    void (*failed)(void *arg, const struct error *e);
};

struct supervisor *supervisor_new(const struct supervisor_config *c, struct store_queue *store,
                                  struct registry *workflows,
                                  const struct supervisor_outside *outside);
void supervisor_free(struct supervisor *sv); /* no job may be at the store */

/* Starts a scan if one is due. Returns when to call again, on the store's clock. */
int64_t supervisor_turn(struct supervisor *sv);
bool supervisor_is_busy(const struct supervisor *sv);

/* In virtual time: no row was overdue since the last scan, and this server was well. So the scans
 * up to now, which would have found nothing, count as made, and the next one is due now. No scan
 * may be under way. */
void supervisor_left_out(struct supervisor *sv);

/* The same where the store is shared: surveys of so much time, up to now, count as made. The caller
 * renews the leader's lease. */
void supervisor_surveys_left_out(struct supervisor *sv, int64_t by_ms);

/* Nothing is begun from now on. */
void supervisor_stop(struct supervisor *sv);

/* Where the store is shared, a survey renews the leader's lease. supervisor_wants_lead: should the
 * survey request it? Must be called right before the survey starts, because the lease counts from
 * then. supervisor_surveyed takes the result. It counts as a scan if one is due, or soon will be:
 * then the store is only read if something is overdue. */
bool supervisor_wants_lead(struct supervisor *sv);
void supervisor_surveyed(struct supervisor *sv, const struct survey *v);

struct supervisor_stats {
    uint64_t scans, overdue, requests, conflicts;
    uint64_t unreadable; /* rows, each time one was met */
    bool leads;
};
void supervisor_stats(const struct supervisor *sv, struct supervisor_stats *ret);

/* Does it lead, as far as it knows? Then *ret is the proof, and *ret_until (on the steady clock) is
 * about when another node may lead. The store's time would not do: after a failover it may be far
 * behind this node's. */
bool supervisor_leads(const struct supervisor *sv, struct fence *ret, int64_t *ret_until);

/* The last lost time; nothing that was due in it is overdue before its grace time has passed. */
struct lost_time supervisor_lost_time(const struct supervisor *sv);

#endif
