#ifndef DISPATCH_BREAKER_H
#define DISPATCH_BREAKER_H

/*
 * The circuit breaker of an agent, which represents the service behind it.
 *
 *               enough ended attempts failed, or were slow
 *     CLOSED  ------------------------------------------->  OPEN  <----------+
 *        ^                                                   |               |
 *        |                                                   | its wait ends | a trial failed
 *        |   as many trials succeeded as run at a time       v               |
 *        +------------------------------------------------ HALF_OPEN --------+
 *
 *     by hand: open until it is closed by hand, whatever ends meanwhile.
 *
 * While it is closed, everything starts; while it is open, nothing does. While it is half-open,
 * `trials` attempts at a time may start, and only their results count: older attempts say nothing
 * about the service now. Trials that take longer than the longest wait no longer occupy a place:
 * otherwise attempts that hang, or take hours, would block everything else for that long.
 *
 * Ended attempts are counted in buckets of a tenth of the window. The cost of a call does not
 * depend on how many ended: the sums are kept, and buckets are emptied as time passes.
 *
 * Pure: the caller gives the time; nothing here allocates, logs or is shared. `now` may stay the
 * same but never goes backwards.
 */

#include "base/base.h"
#include "dispatch/agent_settings.h"

/*    name        word, for people and in the store */
#define BREAKER_STATES(X)     \
    X(CLOSED, "closed")       \
    X(HALF_OPEN, "half-open") \
    X(OPEN, "open")

enum breaker_state {
#define X(name, text) BREAKER_##name,
    BREAKER_STATES(X)
#undef X
        BREAKER_STATE_COUNT
};

const char *breaker_state_text(enum breaker_state s);

/* The result of an attempt. */
enum breaker_end { END_GOOD, END_SLOW, END_BAD };

enum { BREAKER_BUCKETS = 10, BREAKER_REASON_SIZE = 160 };

struct breaker_bucket {
    uint32_t ends, bad, slow;
};

struct breaker {
    enum breaker_state state;
    bool by_hand;          /* OPEN: only closed by hand */
    int64_t since;         /* when it entered the state; 0: it was never in another one */
    int64_t until;         /* OPEN: when trials may begin; 0: until closed by hand */
    uint32_t times;        /* openings in a row without closing: the wait doubles with each */
    uint32_t epoch;        /* raised with every change of state; identifies trials */
    uint32_t trials, good; /* HALF_OPEN: at work; succeeded */
    int64_t patient_until; /* HALF_OPEN: others may start then, though these have not ended */
    char reason[BREAKER_REASON_SIZE]; /* why it is in this state; "": not given */
    struct breaker_bucket buckets[BREAKER_BUCKETS], sum;
    int64_t bucket_at; /* number of the newest bucket: time divided by the bucket's length */
    int64_t bucket_ms; /* length of the counted buckets; 0: none counted */
};

/* The number of attempts that may start now: UINT32_MAX while it is closed. */
uint32_t breaker_room(const struct breaker *b, const struct breaker_rule *r);

/* An attempt starts, for which there must be room. Returns its epoch if it is a trial, otherwise
 * 0. */
uint32_t breaker_start(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* An attempt was started by another node, or before a restart, at `started_at`: it is a trial if it
 * began in the current state. Returns as breaker_start. */
uint32_t breaker_adopt(struct breaker *b, const struct breaker_rule *r, int64_t started_at,
                       int64_t now);

/* A trial of that epoch (0: not a trial) is over, whatever its result: its place is free. */
void breaker_trial_over(struct breaker *b, uint32_t epoch);

/* An attempt that began at `started_at` ended. True: that changed the state. `seed` varies the
 * waits of breakers that open at the same time. */
bool breaker_ended(struct breaker *b, const struct breaker_rule *r, enum breaker_end end,
                   int64_t started_at, int64_t now, uint64_t seed);

/* Time has passed. True: it is half-open now. */
bool breaker_tick(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* The next time at which breaker_tick has an effect; 0: none. */
int64_t breaker_next(const struct breaker *b, const struct breaker_rule *r);

/* Another rule is in force: a breaker that is switched off closes, unless it was opened by hand,
 * and none waits longer than the rule's longest wait. True: that changed the state. */
bool breaker_ruled(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* By hand. `reason` may be NONE. */
void breaker_open_by_hand(struct breaker *b, struct slice reason, int64_t now);
void breaker_close_by_hand(struct breaker *b, struct slice reason, int64_t now);

/* A breaker's state as stored, for other nodes and restarts. */
struct breaker_record {
    enum breaker_state state; /* CLOSED or OPEN */
    bool by_hand;
    int64_t since, until;
    uint32_t times;
    struct slice reason;
};
struct breaker_record breaker_record(const struct breaker *b); /* half-open counts as open */
/* Takes over a stored state. True: that changed the state. It waits no longer than the rule allows,
 * whatever was stored: the clock may have been set back since. */
bool breaker_follow(struct breaker *b, const struct breaker_rule *r,
                    const struct breaker_record *rec, int64_t now);

/* As JSON: {"state":"open","by_hand":false,"since":MS,"until":MS,"times":2,"reason":"..."} */
void breaker_record_write(struct buf *b, const struct breaker_record *rec);
/* ERR_INVALID: not a record. The reason points into the arena. */
enum err breaker_record_read(struct slice text, struct arena *a,
                             struct breaker_record *ret) MUST_USE;

/* For people: {"state", "since", "until", "reason", "by_hand"}, times as RFC 3339. */
void breaker_render(struct buf *b, const struct breaker *br);

#endif
