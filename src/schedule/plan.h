#ifndef SCHEDULE_PLAN_H
#define SCHEDULE_PLAN_H

/*
 * Which moments of a schedule get a task now: those that are due since the last one, those that
 * were missed, the one that waits, and those of a backlog. Pure: time is passed in, and nothing
 * here touches a store. The state is what the schedule's row holds (encoded as JSON in its column
 * `doc`, except for what the store searches).
 *
 * Unless moments may overlap, at most one run is open. A moment that finds it open is skipped, or
 * waits; one moment waits at most. A backlog is a range of moments that run one by one, whenever
 * nothing else runs: an operator asked for them, or they were missed and all are to be caught up.
 * A moment that finds a run of the backlog open waits for it in any case.
 */

#include "schedule/schedule.h"

enum {
    PLAN_FIRES_MAX = 100,  /* tasks of one schedule at once; more follow at once */
    PLAN_LOOK_MAX = 10000, /* moments that are considered at once */
    BACKLOG_RANGES_MAX = 8,
    GAPS_KEPT = 20,
    BACKFILL_MAX = 10000, /* moments of one backfill */
};

/* clang-format off */
#define GAP_KINDS(X)          \
    X(MISSED,  "missed")      /* nobody looked in time */                     \
    X(SKIPPED, "skipped")     /* the run of an earlier moment was open */     \
    X(FAILED,  "failed")      /* its input could not be evaluated */
/* clang-format on */
enum gap_kind {
#define X(name, text) GAP_##name,
    GAP_KINDS(X)
#undef X
};
const char *gap_kind_text(enum gap_kind k);

/* Moments in sequence that got no task, for one reason. */
struct gap {
    enum gap_kind kind;
    int64_t first, last, noted_at;
    uint64_t count;
    struct slice why; /* the open run, or the failure; NONE: missed */
};

/* Moments that are still to run. */
struct backlog_range {
    int64_t after, last;
};

struct schedule_state {
    int64_t last;     /* the last moment that was decided */
    int64_t fired;    /* the last moment that got a task; 0: none */
    int64_t waiting;  /* a moment that waits until the run has ended; 0: none */
    struct slice run; /* the open run; NONE: none */
    bool run_is_of_backlog;
    int64_t paused_at; /* 0: it is not paused */
    struct backlog_range backlog[BACKLOG_RANGES_MAX];
    size_t backlog_count;
    struct gap gaps[GAPS_KEPT]; /* the latest last */
    size_t gap_count;
    int64_t gap_at; /* when the latest was noted; 0: never */
    uint64_t fired_count, missed_count, skipped_count, failed_count;
};

struct fire {
    int64_t moment, previous; /* previous: the one that got a task before; 0: none */
    struct slice input;       /* JSON, or NONE */
};

struct plan {
    struct fire fires[PLAN_FIRES_MAX];
    size_t fire_count;
    bool undo; /* the open run is to be undone */
    bool more; /* there is more to decide at once */
};

/* Decides on all moments that are due at `now`, and changes the state as if each of *ret got its
 * task; one whose input cannot be evaluated is on record instead, and nothing waits for it.
 * `run_is_open`: whether the state's run is. Texts are allocated in `a`. */
void plan_decide(const struct schedule *s, struct schedule_state *st, bool run_is_open, int64_t now,
                 struct arena *a, struct plan *ret);

/* When to decide again; 0: not by time. Whether to decide when the run ends. */
int64_t plan_wakes_at(const struct schedule *s, const struct schedule_state *st, int64_t now);
bool plan_waits(const struct schedule_state *st);

/* Stops it, and has it go on; false: it is so already. Moments of a pause are not caught up. */
bool plan_pause(struct schedule_state *st, int64_t now);
bool plan_resume(struct schedule_state *st, int64_t now);

/* Another version takes its place. Moments that are due keep their task, unless the new version has
 * other moments. */
void plan_replace(const struct schedule *old, const struct schedule *new, struct schedule_state *st,
                  int64_t now);

/* Adds a backlog of the moments from `from` to `to`; *ret_count: how many these are. ERR_INVALID:
 * none, or too many; ERR_CONFLICT: too many backlogs. */
enum err plan_backfill(const struct schedule *s, struct schedule_state *st, int64_t from,
                       int64_t to, uint64_t *ret_count, struct error *e) MUST_USE;

/* The id of a run: "nightly@2027-01-01T01:30:00Z", in `a`. */
struct slice run_id(struct slice schedule, int64_t moment, struct arena *a);

/* The part of the state that the store does not look into. */
void schedule_state_write(const struct schedule_state *st, struct buf *b);
enum err schedule_state_read(struct slice doc, struct arena *a, struct schedule_state *ret,
                             struct error *e) MUST_USE;
void gaps_write(const struct schedule_state *st, struct buf *b); /* a JSON array */

#endif
