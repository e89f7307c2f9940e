#ifndef DISPATCH_BREAKER_H
#define DISPATCH_BREAKER_H

/*
 * The circuit breaker of an agent, which stands for the service behind it.
 *
 *               enough of what ended failed, or was slow
 *     CLOSED  ------------------------------------------->  OPEN  <----------+
 *        ^                                                   |               |
 *        |                                                   | its wait ends | a trial failed
 *        |   as many trials succeeded as run at a time       v               |
 *        +------------------------------------------------ HALF_OPEN --------+
 *
 *     by hand: open until somebody says closed, whatever ends meanwhile.
 *
 * Closed, everything starts. Open, nothing does. Half-open, `trials` attempts at a time may start;
 * only what they come to counts: what began before is an answer to an older question. Trials that
 * take longer than the longest wait hold no place any more: or what hangs, or simply takes hours,
 * would keep everything else waiting for as long.
 *
 * What ended is counted in buckets of a tenth of the window. One call costs the same however much
 * has ended: the sums are kept, and of the buckets those are emptied that time has passed.
 *
 * Pure: the time is given, and nothing here allocates, logs or is shared. `now` may stand still; it
 * never goes backwards.
 */

#include "base/base.h"
#include "dispatch/settings.h"

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

/* What an attempt came to. */
enum breaker_end { END_GOOD, END_SLOW, END_BAD };

enum { BREAKER_BUCKETS = 10, BREAKER_REASON_SIZE = 160 };

struct breaker_bucket {
    uint32_t ends, bad, slow;
};

struct breaker {
    enum breaker_state state;
    bool by_hand;          /* OPEN: nothing but a hand closes it */
    int64_t since;         /* when it came into that state; 0: it was never in another one */
    int64_t until;         /* OPEN: when trials may begin; 0: by hand, until somebody says so */
    uint32_t times;        /* opened in a row, without closing: the wait doubles with each */
    uint32_t epoch;        /* raised with every change of state: whose trial is it? */
    uint32_t trials, good; /* HALF_OPEN: at work; succeeded */
    int64_t patient_until; /* HALF_OPEN: for those at work; then others may start */
    char reason[BREAKER_REASON_SIZE]; /* why it is so; "": nobody said */
    struct breaker_bucket buckets[BREAKER_BUCKETS], sum;
    int64_t bucket_at; /* the number of the newest bucket: time divided by its length */
    int64_t bucket_ms; /* the length they were counted with; 0: none was */
};

/* How many may start now: UINT32_MAX while it is closed. */
uint32_t breaker_room(const struct breaker *b, const struct breaker_rule *r);

/* An attempt starts, for which there is room: its epoch if it is a trial, otherwise 0. */
uint32_t breaker_start(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* An attempt was started elsewhere, or before a restart, at `started_at`: it is a trial, if it
 * began in this state. The same answer. */
uint32_t breaker_adopt(struct breaker *b, const struct breaker_rule *r, int64_t started_at,
                       int64_t now);

/* A trial of that epoch (0: it was none) is over, whatever came of it: its place is free. */
void breaker_trial_over(struct breaker *b, uint32_t epoch);

/* An attempt that began at `started_at` ended so. True: that changed the state. `seed` makes the
 * waits of those that open at the same time differ. */
bool breaker_ended(struct breaker *b, const struct breaker_rule *r, enum breaker_end end,
                   int64_t started_at, int64_t now, uint64_t seed);

/* Time has passed. True: it is half-open now. */
bool breaker_tick(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* The next moment at which breaker_tick would do something; 0: none. */
int64_t breaker_next(const struct breaker *b, const struct breaker_rule *r);

/* Another rule is in force: a breaker that is off closes, unless it was opened by hand, and none
 * waits longer than its longest wait. True: that changed the state. */
bool breaker_ruled(struct breaker *b, const struct breaker_rule *r, int64_t now);

/* By hand. `reason` may be NONE. */
void breaker_open_by_hand(struct breaker *b, struct slice reason, int64_t now);
void breaker_close_by_hand(struct breaker *b, struct slice reason, int64_t now);

/* What is known of it elsewhere, or was before a restart: as it was written. */
struct breaker_record {
    enum breaker_state state; /* CLOSED or OPEN */
    bool by_hand;
    int64_t since, until;
    uint32_t times;
    struct slice reason;
};
struct breaker_record breaker_record(const struct breaker *b); /* half-open counts as open */
/* True: that changed the state. It waits no longer than the rule says, whatever was written: the
 * clock may have been set back since. */
bool breaker_follow(struct breaker *b, const struct breaker_rule *r,
                    const struct breaker_record *rec, int64_t now);

/* As JSON: {"state":"open","by_hand":false,"since":MS,"until":MS,"times":2,"reason":"..."} */
void breaker_record_write(struct buf *b, const struct breaker_record *rec);
/* ERR_INVALID: it is none. The reason points into the arena. */
enum err breaker_record_read(struct slice text, struct arena *a,
                             struct breaker_record *ret) MUST_USE;

/* For people: {"state", "since", "until", "reason", "by_hand"}, times as RFC 3339. */
void breaker_render(struct buf *b, const struct breaker *br);

#endif
