#ifndef DISPATCH_HEALTH_H
#define DISPATCH_HEALTH_H

/*
 * The health of an instance, compared with the other instances of its agent.
 *
 *     good  -- clearly worse than the others -->  poor: it gets a part of its places
 *     poor  -- even worse -->                     ill: it gets only a trial now and then
 *     ill   -- its trial ends well -->            good, with a clean record
 *
 * A bad end is a retryable error or a timeout. A permanent error is the service's answer, and a
 * good end. If all instances fail, none is worse: then the service is the cause. An instance that
 * hangs but sends heartbeats (without results or other progress) is poor after HEALTH_STILL_MS and
 * ill after twice that, if others make progress.
 *
 * Pure: the caller gives the time in ms; it never goes backwards.
 */

#include "base/base.h"

#define HEALTH_WINDOW_MS    INT64_C(30000) /* ends older than twice that are forgotten */
#define HEALTH_TRIAL_MS     INT64_C(5000)  /* until the first trial; doubles with each failure */
#define HEALTH_TRIAL_MAX_MS INT64_C(60000)
#define HEALTH_STILL_MS     INT64_C(30000)

enum {
    HEALTH_ENDS_MIN = 5,      /* fewer ends, its own or the others', are not compared */
    HEALTH_POOR_PERCENT = 25, /* percentage points by which its attempts fail more often */
    HEALTH_ILL_PERCENT = 60,
};

#define HEALTH_STATES(X) X(GOOD, "good") X(POOR, "poor") X(ILL, "ill")

enum health_state {
#define X(name, text) HEALTH_##name,
    HEALTH_STATES(X)
#undef X
        HEALTH_STATE_COUNT
};

const char *health_state_text(enum health_state st);

/* The ends of attempts in this window and the previous one. */
struct ends {
    uint64_t good[2], bad[2];
    int64_t window; /* number of this window */
};

void ends_count(struct ends *e, bool good, int64_t now);
void ends_roll(struct ends *e, int64_t now); /* must be called before any of it is read */
uint64_t ends_sum(const struct ends *e);
uint32_t ends_bad_percent(const struct ends *e);

struct health {
    enum health_state state;
    struct ends ends;
    int64_t moved_at; /* its last result or other progress; 0: it never had work */
    int64_t trial_at; /* ILL: no trial before */
    int64_t wait_ms;  /* ILL: from one trial to the next */
    bool failed;      /* its last end was bad */
    bool trial;       /* ILL: a trial is open, as far as is known */
};

/* An attempt of it ended. `all`: the ends of all instances of the agent, including this one. */
void health_ended(struct health *h, struct ends *all, bool good, int64_t now);

/* It made progress, or has work after having none. */
void health_moved(struct health *h, int64_t now);

/* A heartbeat; others_moved_at: the latest progress of another instance. */
void health_beat(struct health *h, int64_t others_moved_at, int64_t now);

/* May it get an attempt, with `open` at work and a place free? `last`: no healthier instance could
 * have it instead. */
bool health_may_begin(const struct health *h, uint32_t places, uint32_t open, bool last,
                      int64_t now);

/* The number of its places in use. */
uint32_t health_places(const struct health *h, uint32_t places, bool last);

void health_begun(struct health *h, int64_t now); /* it got an attempt; if it is ill: a trial */

/* The end of one of its attempts will not be seen here: it was never sent, or another node has it
 * now. If it was a trial, the next one need not wait for it. */
void health_lost(struct health *h);

#endif
