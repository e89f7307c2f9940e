#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

/*
 * The supervisor: looks, every interval, for tasks of which something is past its complete-by and
 * nobody has said so, and writes a request into their rows: retry, undo, hold. It decides by the
 * same rules as everybody (core/), carries nothing out, and knows nothing of what steps do.
 *
 * A scan reads an index range: it costs as much as there is overdue, not as much as there is
 * stored.
 *
 * One supervisor leads at a time, by a lease whose epoch fences its writes.
 *
 * Time that we lost is not the agents' fault. After a start, and after a gap of more than three
 * intervals between scans (the machine slept, the store was away), or a step of the store's time of
 * more than one (another server is the primary now), what fell due in the gap gets `grace_ms` more.
 * At a start the gap reaches back for ever: whatever fell due while we ran has been acted on, so
 * what is overdue now fell due while we did not.
 *
 * Where scans lie so far apart again and again, as where the store is slow for good, an attempt is
 * put off by the gap into which its complete-by fell, and by those that begin in its grace time;
 * not by those after (gaps.h). A task's own complete-by moves in its row, and so may fall into the
 * next gap: it moves five times and no more, until scans have come in time for `grace_ms`. A gap of
 * more than four times the usual one of that time moves it all the same. So what is overdue is so
 * in the end.
 *
 * A supervisor that does not lead looks as often as one that does, so that it knows by itself what
 * time was lost when it comes to lead. A leader that ends gives up its lease.
 */

#include "definition/registry.h"
#include "store/job.h"

struct supervisor;

struct supervisor_config {
    struct slice holder; /* who we are, for the lease */
    int64_t interval_ms; /* default 1 s */
    int64_t grace_ms;    /* default 10 s */
    int64_t lease_ms;    /* default 3 s */
};

struct supervisor_outside {
    void *arg;
    int64_t (*now)(void *arg);    /* the store's time, ms UTC */
    int64_t (*steady)(void *arg); /* ms that never jump but go on in suspend; for gaps */
    /* A request is durable in that task's row (or its wake_at was moved); `released`: the task is
     * unlocked. */
    void (*requested)(void *arg, struct slice id, bool released);
    /* What other nodes may have stored, as of this scan. NULL: nobody is to be told. */
    void (*generations)(void *arg, const struct generations *g);
    /* A scan did not succeed (told each time), for the log. */
    void (*failed)(void *arg, const struct error *e);
};

struct supervisor *supervisor_new(const struct supervisor_config *c, struct store_queue *store,
                                  struct registry *workflows,
                                  const struct supervisor_outside *outside);
void supervisor_free(struct supervisor *sv); /* no job of it may be with the store */

/* Starts a scan if one is due. Returns when to call again, on the store's clock. */
int64_t supervisor_turn(struct supervisor *sv);
bool supervisor_is_busy(const struct supervisor *sv);

/* From now on nothing is begun. */
void supervisor_stop(struct supervisor *sv);

/* Where nodes share the store: should somebody take the lease to lead for it? That is asked when
 * the lease is about to be asked for: it counts from this moment on. And what was seen when that
 * was done. It is a scan if one is due, or soon will be: then nothing more is asked of
 * the store unless something is overdue. */
bool supervisor_wants_lead(struct supervisor *sv);
void supervisor_surveyed(struct supervisor *sv, const struct survey *v);

struct supervisor_stats {
    uint64_t scans, overdue, requests, conflicts;
    uint64_t unreadable; /* rows, each time that one was met */
    bool leads;
};
void supervisor_stats(const struct supervisor *sv, struct supervisor_stats *ret);

/* Does it lead, as far as it knows? Then *ret is the proof, and *ret_until (by the steady clock)
 * until about when nobody else can. Not by the store's time: after a failover that may be far
 * behind what this node goes by. */
bool supervisor_leads(const struct supervisor *sv, struct fence *ret, int64_t *ret_until);

/* The time that was lost last; nothing that fell into it is overdue before its grace is over. */
struct lost_time supervisor_lost_time(const struct supervisor *sv);

#endif
