#ifndef DISPATCH_HEALTH_H
#define DISPATCH_HEALTH_H

/*
 * How well an instance does, compared with the others of its agent.
 *
 *     good  -- clearly worse than the others -->  poor: it gets a part of its places
 *     poor  -- worse still -->                    ill: it gets nothing, but now and then a trial
 *     ill   -- its trial ends well -->            good, with nothing held against it
 *
 * Badly ends: an error that is worth another try, a timeout. A permanent error is the service's
 * answer, and ends well. If all fail, none is worse: then it is the service, and no
 * business of ours. An instance that hangs, and says so (heartbeats, but neither results nor other
 * progress), is poor after HEALTH_STILL_MS and ill after twice that, if others get on.
 *
 * Pure: time comes from the caller, ms, and does not go back.
 */

#include "base/base.h"

#define HEALTH_WINDOW_MS    INT64_C(30000) /* what ended longer ago than twice that is forgotten */
#define HEALTH_TRIAL_MS     INT64_C(5000)  /* until the first trial; doubled with each that fails */
#define HEALTH_TRIAL_MAX_MS INT64_C(60000)
#define HEALTH_STILL_MS     INT64_C(30000)

enum {
    HEALTH_ENDS_MIN = 5,      /* fewer ends than this, its own or the others', tell nothing */
    HEALTH_POOR_PERCENT = 25, /* so much more of its attempts fail than of the others' */
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

/* How attempts ended: in this window, and in the one before. */
struct ends {
    uint64_t good[2], bad[2];
    int64_t window; /* number of this window */
};

void ends_count(struct ends *e, bool good, int64_t now);
void ends_roll(struct ends *e, int64_t now); /* to be called before any of it is read */
uint64_t ends_sum(const struct ends *e);
uint32_t ends_bad_percent(const struct ends *e);

struct health {
    enum health_state state;
    struct ends ends;
    int64_t moved_at; /* a result of it came, or other progress; 0: it never had anything */
    int64_t trial_at; /* ILL: no trial before */
    int64_t wait_ms;  /* ILL: from one trial to the next */
    bool failed;      /* what ended last ended badly */
    bool trial;       /* ILL: one was begun, and has not ended that we know of */
};

/* An attempt of it ended. `all`: of all instances of the agent, with this one. */
void health_ended(struct health *h, struct ends *all, bool good, int64_t now);

/* It made progress, or has something to do after it had nothing. */
void health_moved(struct health *h, int64_t now);

/* It gave a sign of life; when the latest of the others moved. */
void health_beat(struct health *h, int64_t others_moved_at, int64_t now);

/* May it be given an attempt, with `open` at work and room for more? `last`: no instance that could
 * have it instead is better off. */
bool health_may_begin(const struct health *h, uint32_t places, uint32_t open, bool last,
                      int64_t now);

/* How many of its places are used. */
uint32_t health_places(const struct health *h, uint32_t places, bool last);

void health_begun(struct health *h, int64_t now); /* it was given one; if it is ill: a trial */

/* One that it was given will not end, as far as we hear: it was never sent, or is another node's by
 * now. If that was a trial, the next one need not wait for it. */
void health_lost(struct health *h);

#endif
