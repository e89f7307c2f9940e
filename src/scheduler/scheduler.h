#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

/*
 * The scheduler claims tasks, runs their workflows, records every change of state before it acts on
 * it, and sends requests to agents.
 *
 * It runs on one thread and never blocks. Commands (work calls, submissions, operators' verbs) are
 * gathered, decided by core/, and committed as one batch while the next batch gathers. Answers and
 * requests are sent when their batch is durable, not before.
 *
 *     arrivals --> inbox of the task --> decide --> batch --> store --> answers, requests
 *                       ^                                      |
 *                       +---- conflict: reload, again ---------+
 *
 * Every command is decided on the fresh row. After a conflict the row is read again and the command
 * decided anew; it is never dropped. If the store fails, the caller is asked to try again.
 *
 * A task is in memory only while it is in work: it has open attempts, a place for it is near, or
 * its next attempt is less than NAP_MS away. All other tasks are in the store alone and are claimed
 * in time.
 */

#include "core/reason.h"
#include "definition/registry.h"
#include "dispatch/dispatch.h"
#include "dispatch/token.h"
#include "store/job.h"
#include "tasks/ask.h"
#include "tasks/clock.h"
#include "tasks/counts.h"
#include "tasks/heartbeat.h"

struct scheduler;

/* A task has reached processed, compensated or error. All of it is valid during the call only. */
struct task_end {
    const struct workflow *workflow;
    const struct task *task;
    /* As this node has just committed it, with what people did to it; NULL: nobody waited for it
     * (is_awaited) when the commit began, or this node has only read it. Items at rest are not in
     * `task`, so tasks that have them come without a row. */
    const struct task_row *row;
    const struct audit_page *operations;
};

/* Callbacks to the outside, which report only what is durable. */
struct outside {
    void *arg;
    /* Sends the response. False: the client was gone before a byte was written. `w` is freed
     * afterwards. */
    bool (*work_answer)(void *arg, struct work *w);
    void (*ask_answer)(void *arg, struct ask *a);
    void (*task_ended)(void *arg, const struct task_end *end);
    /* Does anybody wait for the end of this task who is shown its record? NULL: nobody. */
    bool (*is_awaited)(void *arg, struct slice id);
    /* A revision of the task has become durable. Called once for each, in their order; one that is
     * followed by another before it is reported may be left out. May be NULL. */
    void (*task_changed)(void *arg, const struct workflow *w, const struct task *t);
    /* The store has committed a batch with so many changes, in so many microseconds (0: not
     * measured). May be NULL. */
    void (*committed)(void *arg, size_t changes, int64_t took_us);
    /* These messages are durable, in this order. `seq` is 0 where the store does not say, or cannot
     * say whether they exist. May be NULL. */
    void (*messages)(void *arg, const struct message *list, size_t count);
    /* A batch inserted notices, or submissions of children, that are to be read. May be NULL. */
    void (*family_told)(void *arg);
    /* Does this node's supervisor want to lead? NULL: it has none. */
    bool (*wants_lead)(void *arg);
    /* The result of the latest survey, parts of which are for the supervisor. May be NULL, like the
     * next one. */
    void (*surveyed)(void *arg, const struct survey *v);
    /* What other nodes may have stored, as of the latest survey. */
    void (*generations)(void *arg, const struct generations *g);
    /* Evaluation of the task's expressions, perhaps of several in a row, begins or ends. May be
     * NULL, like the next one. */
    void (*evaluates)(void *arg, struct slice task, bool begins);
    /* The turn ends: later evaluations belong to the next one. */
    void (*turn_over)(void *arg);
    /* An operator is needed. */
    void (*alert)(void *arg, const struct task *t);
    /* The store failed (error is set) or works again (NULL). Called once per change. */
    void (*store_trouble)(void *arg, const struct error *error);
};

struct scheduler_config {
    struct slice node; /* "n1" */
    uint64_t boot;
    bool shared;      /* other nodes may use the same store */
    bool idle;        /* only holds this node's lease, and does nothing else */
    int64_t lease_ms; /* where the store is shared: a node whose lease is not renewed for so long is
                         taken over by the others; default 3 s, renewed after a third of it */
    int64_t grace_ms; /* after a time without contact, no attempt ends for silence before this has
                         passed; default 10 s */
    size_t live_max;  /* tasks in memory beyond which nothing is claimed; default 50 000 */
    size_t batch_max; /* changes in one transaction; default 2 048 */
    size_t rows_max;  /* items of one read that are to be undone; default 256 */
    uint64_t turn_steps; /* steps of expressions that one turn may evaluate; default 50 000 */
    size_t batch_bytes;  /* documents and payloads beyond which a batch is closed; default 16 MiB */
    struct slice key_prefix;        /* put before idempotency keys; may be NONE */
    struct slice source;            /* of messages: "/intact/..." */
    const struct overrun *overruns; /* all overruns in the store; valid during the call */
    size_t overrun_count;
};

struct scheduler *scheduler_new(const struct scheduler_config *c, struct store_queue *store,
                                struct registry *workflows, struct token_key *key,
                                const struct clock *clock, const struct outside *outside);

/* The URL by which the outside reaches this node, without a path; it must outlive the scheduler.
 * NONE, as at first: unknown. */
void scheduler_is_reached_at(struct scheduler *s, struct slice url);

/* No job may be at the store. Parked calls are dropped, not answered. */
void scheduler_free(struct scheduler *s);

/* Does everything that is due. Must be called after every arrival and at the returned time (0:
 * nothing is due by itself). */
int64_t scheduler_turn(struct scheduler *s);

/* Limits the number of agents' names, and of instances' names per agent, that calls may add. */
void scheduler_bound_names(struct scheduler *s, size_t instances, size_t agents);
/* Are the names of the call known, or is there room for them? */
enum dispatch_room scheduler_room(const struct scheduler *s, const struct work *w);
void scheduler_work(struct scheduler *s, struct work *w);      /* takes w */
void scheduler_work_gone(struct scheduler *s, struct work *w); /* its client is gone */
void scheduler_ask(struct scheduler *s, struct ask *a);

/* Answers at once, without the store. */
void scheduler_heartbeats(struct scheduler *s, struct heartbeats *call);

/* The latest heartbeat of an open attempt; NULL: none since this node has the task. Valid until the
 * next turn. */
const struct pulse *scheduler_pulse(const struct scheduler *s, struct slice task, uint16_t step,
                                    enum direction direction, uint32_t attempt);

void scheduler_pulses(const struct scheduler *s, struct slice task, struct arena *a,
                      struct pulses *ret);

/* When the step's open attempt will have been silent for too long, unless a heartbeat comes; 0: it
 * may be silent, or is not this node's to judge. */
int64_t scheduler_silent_by(const struct scheduler *s, struct slice task, uint16_t step);

/* Is the task in this node's memory and owned by it? Then its changes are reported. */
bool scheduler_has(const struct scheduler *s, struct slice id);

/* The supervisor wrote a request to the task's row, or moved its wake_at; `released`: the task is
 * unlocked and due. */
void scheduler_requested(struct scheduler *s, struct slice id, bool released);

/* Durable settings and breaker of an agent: applied at once. What other nodes store is read
 * automatically, and all of it before the first attempt starts. */
void scheduler_agent_stored(struct scheduler *s, const struct agent_row *row);
/* The agent_row.breaker to store if a person opens or closes the breaker now; `reason` may be
 * NONE. */
void scheduler_breaker_by_hand(const struct scheduler *s, struct slice name, bool open,
                               struct slice reason, struct buf *ret);

/* Stops claims and starts, answers parked calls once, and releases tasks that do not run. Results
 * are still accepted. Calls without results stay parked, so that idle agents do not spin. */
void scheduler_drain(struct scheduler *s);
bool scheduler_is_draining(const struct scheduler *s); /* scheduler_drain was called */
bool scheduler_is_drained(const struct scheduler *s);  /* nothing is left to commit or to release */
/* Drained or not, gives up the node's lease, so that other nodes may take over its tasks at once.
 * From then on it only completes the job that is at the store. */
void scheduler_leave(struct scheduler *s);
bool scheduler_is_busy(const struct scheduler *s); /* a job is at the store */

struct scheduler_stats {
    size_t live, open_attempts, waiting, parked;
    size_t bulk_waiting; /* of `waiting`: of tasks in bulk operations */
    int64_t others_at;   /* when a task without a bulk operation was last written; 0: never */
    uint64_t changes, batches, conflicts, claims, submitted, ended;
    uint64_t unreadable;     /* rows, each time one was met */
    uint64_t evaluations;    /* of expressions: conditions, inputs, outputs */
    uint64_t turn_steps;     /* steps of expressions in the last turn */
    uint64_t turns_left_out; /* turns that left evaluations to the next one */
    uint64_t beats[BEAT_STATUS_COUNT];
    uint64_t attempts[2][ATTEMPT_ENDS]; /* ended here, by direction and outcome */
    bool leased;         /* this node's lease is valid; true where the store is not shared */
    int64_t lease_until; /* end of the lease, in the store's time; 0: no lease */
    bool replaced;       /* a newer boot of this node runs: it drains for good */
};
void scheduler_stats(const struct scheduler *s, struct scheduler_stats *ret);
const struct dispatch *scheduler_dispatch(const struct scheduler *s);
/* An attempt that an instance has, or is about to get. */
struct at_work {
    struct slice task, step, agent, instance;
    uint32_t item; /* 0: it is of no item */
    bool undo;
    uint32_t attempt;
};

/* Tells of each of them. / Of each agent that does not ask for work, though a step in memory waits
 * for it. / Would a task in the store that waits for this agent be started if it asked? */
void scheduler_at_work(const struct scheduler *s, void (*tell)(void *arg, const struct at_work *w),
                       void *arg);
void scheduler_missed(const struct scheduler *s, void (*tell)(void *arg, struct slice agent),
                      void *arg);
bool scheduler_is_missed(const struct scheduler *s, struct slice agent);
/* The next moment at which something is due that does not depend on arrivals, other than what is
 * due for rows of the store (wake_at); 0: nothing is. Housekeeping and parked calls are no part of
 * it. */
int64_t scheduler_due_at(const struct scheduler *s);
/* All parked calls are answered later by so much (may be negative), if nothing happens before. */
void scheduler_calls_move(struct scheduler *s, int64_t by_ms);
/* In virtual time, where the store is shared: so much time has passed without any change, and this
 * node's surveys of it count as made. No job may be at the store. The caller renews the lease. */
void scheduler_left_out(struct scheduler *s, int64_t by_ms);
/* The tasks in memory, only to be read. Valid until the next turn. */
struct tasks;
const struct tasks *scheduler_tasks(const struct scheduler *s);
/* The number of bulk asks there is room for, if at most `most` of their tasks may wait for a place.
 * 0 while, at some agent, as many of them wait as it has places: so nothing waits for more than one
 * round of them. */
size_t scheduler_bulk_room(struct scheduler *s, size_t most);

#endif
