#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

/*
 * The scheduler: claims tasks, runs their workflows, records every change of state before anything
 * of it is acted on, and asks agents to work.
 *
 * It lives on one thread and never blocks: commands come in (work calls, submissions, the
 * operator's verbs), are gathered, decided by core/, and committed as one batch while the next one
 * gathers. Answers and requests leave when their batch is durable, and not before.
 *
 *     arrivals --> inbox of the task --> decide --> batch --> store --> answers, requests
 *                       ^                                      |
 *                       +---- conflict: reload, again ---------+
 *
 * Every command is a function of the fresh row. On a conflict the row is read again and the command
 * evaluated anew; it is never dropped. If the store fails, the caller is told to try again.
 *
 * A task is in memory only while it is in work: attempts are open, a place for it is near, or its
 * next try is less than NAP_MS away. All others live in the store alone, and are claimed when it is
 * time.
 */

#include "core/reason.h"
#include "definition/registry.h"
#include "dispatch/dispatch.h"
#include "dispatch/token.h"
#include "store/job.h"

/* What sleeps longer than this is released to the store. */
#define NAP_MS INT64_C(2000)

/* One level of priority counts as much as this much waiting, so that nothing starves. */
#define AGING_MS INT64_C(60000)

struct scheduler;

/* The time of the store, ms UTC; it never goes backwards. */
struct clock {
    int64_t (*now)(void *arg);
    void *arg;
};

enum ask_kind {
    ASK_SUBMIT,
    ASK_RETRY,
    ASK_SKIP,
    ASK_UNDO,
    ASK_CANCEL, /* the submitter's undo: not of a task that a person must see to, or that ended
                   whole; of one that is undone already it is no mistake */
    ASK_PAUSE,  /* nothing of it starts, and its clocks stand still */
    ASK_RESUME,
    ASK_CORRECT, /* another input: of `step`, or of the task */
    ASK_SUPPLY,  /* `step` counts as completed, with `output` */
    ASK_RESOLVE, /* none of the attempts of `step` so far took effect */
    ASK_CLOSE,   /* of one that stopped in error: it is to stay so */
    ASK_REOPEN,
    ASK_END, /* by the token of an attempt, its result: from whoever has it */
};

const char *ask_kind_text(enum ask_kind kind); /* "retry": as the audit and the log have it */

enum { ASK_NAME_TOLD = 80 }; /* bytes of a name that somebody made up, in a story */

/* A client's command on one task. The maker owns it again once it was answered. */
struct ask {
    enum ask_kind kind;
    void *user;
    struct slice id; /* with all other slices: lives until the answer */
    /* ASK_SUBMIT */
    const struct definition *definition;
    bool only_if_exists; /* its content is wrong for a new task: ERR_INVALID, unless it is there */
    struct slice input, reply_to, tags; /* input: also ASK_CORRECT */
    struct slice trace;                 /* a W3C traceparent, or NONE: no part of the content */
    int priority;
    int64_t not_before;
    bool paused;            /* from its submission on, until somebody resumes it */
    struct content content; /* sha256: of a submission it has to be there */
    /* Who asks: the task of an ASK_SUBMIT becomes theirs. NONE: nobody's. Also ASK_CANCEL. */
    struct slice owner;
    bool own_only;      /* a task of somebody else is left alone: ERR_CONFLICT (ASK_SUBMIT),
                           ERR_NOT_FOUND (ASK_CANCEL) */
    int64_t submission; /* seq of the row that it comes from: deleted with the task's insertion */
    /* the operator's: */
    struct slice step; /* NONE: the whole task */
    bool from;         /* ASK_RETRY: `step` and all that comes after it start anew */
    uint32_t attempt;  /* ASK_RESOLVE: the latest of `step` that was looked at; 0: it is not said */
    int64_t looked_at; /* ASK_RESOLVE: no attempt that began after it was; 0: it is not said */
    struct slice output, reason;
    struct slice actor; /* who asks; goes into the audit with what is done. NONE: nobody is named */
    struct slice address; /* from where; the same */
    bool bulk;         /* the operator's: one of many. However old its task is, it waits for places
                          as if it were submitted now, with one level of priority less */
    bool if_open;      /* the same: nothing is done to a task that has ended meanwhile */
    int64_t not_after; /* of the operator's: by the store's time; what was not decided by then is
                          not  done (ERR_BUSY). 0: whenever */
    bool expired;      /* that has come about */
    bool not_own;      /* out: the task is somebody else's; see own_only */
    struct slice not_own_of; /* ... and of this workflow; for `answered` alone */
    bool overran;            /* out: ASK_SUBMIT: deciding its conditions took far too long, twice */
    struct work_result *result; /* ASK_END: with the token; outcome ERR_OK: its status tells */
    /* The answer: ERR_OK; ERR_CONFLICT: other content, or not in this state; ERR_NOT_FOUND: no such
     * task; ERR_INVALID: it has no such step; or the store's trouble. */
    enum err outcome;
    bool existed; /* ASK_SUBMIT: the same task was there before; the operator's: it is so already,
                     and nothing was done */
    bool deleted; /* ASK_SUBMIT: it existed, ended, and was deleted; its id is still reserved */
    enum task_state state; /* ... how it ended ... */
    int64_t ended_at;      /* ... and when */
    enum obstacle refusal; /* ERR_CONFLICT, the operator's: what stands in the way */
    int64_t version;       /* ASK_SUBMIT: of its workflow */
    char story[200];
};

/* What became of a heartbeat: the words of the protocol. */
#define BEAT_STATUSES(X)                                       \
    X(ACCEPTED, "accepted") /* it is of the current attempt */ \
    X(LATE, "late")         /* that attempt is over */         \
    X(UNKNOWN, "unknown")   /* not ours, or of another instance, or this node cannot tell now */

enum beat_status {
#define X(name, text) BEAT_##name,
    BEAT_STATUSES(X)
#undef X
        BEAT_STATUS_COUNT
};
const char *beat_status_text(enum beat_status st);

enum {
    HEARTBEATS_MAX = 1024,
    BEAT_PROGRESS_MAX = 2048,
    BEAT_MESSAGE_MAX = 256,
    RESUME_MAX = 2048 /* bytes of JSON */
};

/* A sign of life from an attempt at work. It changes nothing but how long the step's `heartbeat`
 * lets it be silent from now on: see beats.c, silence.c. */
struct heartbeat {
    struct slice token;
    struct slice progress;   /* JSON, or NONE */
    struct slice message;    /* text, or NONE */
    struct slice resume;     /* JSON for the next attempt, or NONE: what was told before stays */
    enum beat_status status; /* out */
    struct token of;         /* out, if it was accepted; points into `token` */
};

/* The heartbeats of one instance. All of it, the answer too, is in memory of its maker. */
struct heartbeats {
    struct slice agent_name, instance_name;
    struct heartbeat *list;
    size_t count;
    struct arena *arena; /* for the answer: */
    struct slice *stop;  /* tokens of attempts to be stopped */
    size_t stop_count;
};

/* What the latest heartbeat of an attempt said. */
struct pulse {
    int64_t at;
    struct slice progress, message; /* or NONE */
    struct slice resume;            /* of this beat or one before it, or NONE */
};

/* The world, told only of what is durable. */
struct outside {
    void *arg;
    /* Sends the answer. False: the client had gone before a byte was written. `w` is freed after
     * it. */
    bool (*work_answer)(void *arg, struct work *w);
    void (*ask_answer)(void *arg, struct ask *a);
    /* The task reached processed, compensated or error. */
    void (*task_ended)(void *arg, struct slice id, enum task_state state);
    /* A revision of the task has become durable. Told once for each, in their order, unless one
     * follows the other before it was heard of. NULL: nobody is to be told. */
    void (*task_changed)(void *arg, const struct workflow *w, const struct task *t);
    /* The store has taken a batch: so many changes, and the time that took (0: not measured). NULL:
     * nobody is to be told. */
    void (*committed)(void *arg, size_t changes, int64_t took_us);
    /* These messages have become durable with it, in this order. `seq` is 0 where the store does
     * not say, or cannot say whether they are there. NULL: nobody is to be told. */
    void (*messages)(void *arg, const struct message *list, size_t count);
    /* Does this node's supervisor want to lead? NULL: it has none. */
    bool (*wants_lead)(void *arg);
    /* What was seen when it last looked around: some of it is the supervisor's. NULL, as the next
     * one: nobody is to be told. */
    void (*surveyed)(void *arg, const struct survey *v);
    /* What other nodes may have stored, as of the latest renewal of this node's lease. */
    void (*generations)(void *arg, const struct generations *g);
    /* An evaluation of the task's expressions begins, or of several in a row; or has come to its
     * end. NULL, as the next one: nobody is to be told. */
    void (*evaluates)(void *arg, struct slice task, bool begins);
    /* The loop goes on to others: what is evaluated from now on is another turn's. */
    void (*turn_over)(void *arg);
    /* A person is needed. */
    void (*alert)(void *arg, const struct task *t);
    /* The store failed (error is set) or works again (NULL). Told once for each change. */
    void (*store_trouble)(void *arg, const struct error *error);
};

struct scheduler_config {
    struct slice node; /* "n1" */
    uint64_t boot;
    bool shared;      /* other nodes may work on the same store */
    bool idle;        /* it says that this node lives (by its lease), and does nothing else */
    int64_t lease_ms; /* where it is shared: without a sign of life for so long, the others take
                         over what this node owns; default 3 s. Renewed after a third of it */
    int64_t grace_ms; /* after time in which nobody could be heard, no attempt ends by its silence
                         before this is over; default 10 s */
    size_t live_max;  /* tasks in memory beyond which nothing is claimed; default 50 000 */
    size_t batch_max; /* changes in one transaction; default 2 048 */
    uint64_t turn_steps;     /* of expressions, that one turn may evaluate; default 50 000 */
    size_t batch_bytes;      /* of documents and payloads, beyond which it gets no more; 16 MiB */
    struct slice key_prefix; /* before idempotency keys; may be NONE */
    struct slice source;     /* of messages: "/intact/..." */
    const struct overrun *overruns; /* what the store has of them, for the call */
    size_t overrun_count;
};

struct scheduler *scheduler_new(const struct scheduler_config *c, struct store_queue *store,
                                struct registry *workflows, struct token_key *key,
                                const struct clock *clock, const struct outside *outside);

/* No job of it may be with the store any more. Parked calls are dropped, not answered. */
void scheduler_free(struct scheduler *s);

/* Does everything that is due. To be called after every arrival and at the time it returned (0:
 * nothing is due by itself). */
int64_t scheduler_turn(struct scheduler *s);

/* How many names of agents, and of the instances of one, calls may bring. */
void scheduler_bound_names(struct scheduler *s, size_t instances, size_t agents);
/* Is it known, or is there room for one more? */
enum dispatch_room scheduler_room(const struct scheduler *s, struct slice agent,
                                  struct slice instance);
void scheduler_work(struct scheduler *s, struct work *w);      /* takes w */
void scheduler_work_gone(struct scheduler *s, struct work *w); /* its client has gone */
void scheduler_ask(struct scheduler *s, struct ask *a);

/* Answers at once, without the store. */
void scheduler_beats(struct scheduler *s, struct heartbeats *call);

/* Of an open attempt; NULL: none came since this node has the task. Valid until the loop goes on.
 */
const struct pulse *scheduler_pulse(const struct scheduler *s, struct slice task, uint16_t step,
                                    enum direction direction, uint32_t attempt);

/* What is known of all open attempts of a task: as it was when it was asked for, and for any
 * thread.
 */
struct pulses {
    struct pulse_of {
        uint16_t step;
        enum direction direction;
        uint32_t attempt;
        struct pulse pulse;
    } * list;
    size_t count;
};
void scheduler_pulses(const struct scheduler *s, struct slice task, struct arena *a,
                      struct pulses *ret);

/* When the step's open attempt will have been silent for too long, unless a heartbeat comes; 0: it
 * may be silent, or is not this node's to judge. */
int64_t scheduler_silent_by(const struct scheduler *s, struct slice task, uint16_t step);

/* Is the task in this node's memory, and its own? Then the world is told what becomes of it. */
bool scheduler_has(const struct scheduler *s, struct slice id);

/* The supervisor wrote a request into that task's row, or moved its wake_at; `released`: the task
 * is unlocked and due. */
void scheduler_requested(struct scheduler *s, struct slice id, bool released);

/* What is said of an agent, durably: taken over at once. What others say is read by itself, and all
 * of it before the first attempt starts. */
void scheduler_agent_said(struct scheduler *s, const struct agent_row *row);
/* What agent_row.breaker has to be if somebody opens or closes it by hand now; `reason` may be
 * NONE. */
void scheduler_breaker_by_hand(const struct scheduler *s, struct slice name, bool open,
                               struct slice reason, struct buf *ret);

/* No more claims and starts; parked calls are answered, once; what is not running is released.
 * Results are still taken. Calls that come without any stay parked, so that idle agents do not
 * spin. */
void scheduler_drain(struct scheduler *s);
bool scheduler_is_drained(const struct scheduler *s); /* nothing is left to commit or to release */
/* Drained or not, it gives up the node's lease: what it owns yet, others may take at once. It does
 * nothing from then on but land what is with the store. */
void scheduler_leave(struct scheduler *s);
bool scheduler_is_busy(const struct scheduler *s); /* a job is with the store */

enum { ATTEMPT_ENDS = OUTCOME_LATE + 1 };

struct scheduler_stats {
    size_t live, open_attempts, waiting, parked;
    size_t bulk_waiting; /* of those that wait: of tasks that were asked in bulk */
    int64_t others_at;   /* when a task that was not was last written; 0: never */
    uint64_t changes, batches, conflicts, claims, submitted, ended;
    uint64_t unreadable;     /* rows, each time that one was met */
    uint64_t evaluations;    /* of expressions: conditions, inputs, outputs */
    uint64_t turn_steps;     /* what those of the last turn took */
    uint64_t turns_left_out; /* turns that left evaluations to the next one */
    uint64_t beats[BEAT_STATUS_COUNT];
    uint64_t attempts[2][ATTEMPT_ENDS]; /* that ended here, by direction and outcome */
    bool leased;         /* others know that this node lives; true where the store is not shared */
    int64_t lease_until; /* until then they do, by the store's time; 0: it has no lease */
    bool replaced;       /* a newer boot of this node is at work: it drains for good */
};
void scheduler_stats(const struct scheduler *s, struct scheduler_stats *ret);
const struct dispatch *scheduler_dispatch(const struct scheduler *s);
/* For how many asks in bulk there is room, if no more than `most` of their tasks are to wait for a
 * place. 0 as well while at some agent as many of them wait as it has places: so nobody waits for
 * more than one round of them. */
size_t scheduler_bulk_room(struct scheduler *s, size_t most);

#endif
