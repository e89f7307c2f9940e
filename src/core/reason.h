#ifndef CORE_REASON_H
#define CORE_REASON_H

/*
 * Why a task is where it is: for every state, what it waits for, since when, until when, and what
 * comes next. Pure: facts in, reasons out. The texts are made by why/why.h.
 *
 * The table lists all kinds, the most important first; reasons are returned in its order.
 * docs/why.md has a line and an example of each. A test compares the two.
 */

#include "core/undo.h"

/* clang-format off */
/*    name, word, when */
#define REASONS(X)                                                                                \
    X(PROCESSED, "processed", "the task has ended, and was not undone")                           \
    X(COMPENSATED, "compensated", "the task has ended: it was undone")                            \
    X(CLOSED, "closed", "the task stopped in error, and an operator closed it")                   \
    X(PIVOT_UNCLEAR, "pivot-unclear", "a pivot is in doubt and has no attempts left")             \
    X(UNDO_FAILED, "undo-failed", "a compensation failed for good")                               \
    X(FAILED, "failed", "a step failed for good, and the task stopped in error")                  \
    X(CHILD_STOPPED, "child-stopped", "the child of a step stopped in error")                     \
    X(DEADLINE, "deadline", "the task stopped in error because its complete-by passed")           \
    X(STOPPED, "stopped", "the task stopped in error for another reason")                         \
    X(PAUSED, "paused", "the task is paused: no step starts, and its clocks are stopped")         \
    X(STORE, "store-trouble", "the state store does not accept writes")                           \
    X(DRAINING, "draining", "the server is shutting down and starts no steps")                    \
    X(OWNER_GONE, "owner-gone", "the lease of the node that owns the task has expired")           \
    X(TAKING_OVER, "taking-over", "the server was restarted and is about to claim the task again")\
    X(ELSEWHERE, "other-node", "another node owns the task")                                      \
    X(FULL, "server-full", "the server holds its maximum number of tasks")                        \
    X(DEADLINE_DUE, "deadline-due", "the task's complete-by has passed; the supervisor acts next")\
    X(OVERDUE, "overdue", "an attempt is overdue; the supervisor ends it next")                   \
    X(HOLDING, "holding", "the task stops in error when no attempt of it is running")             \
    X(PIVOT_HOLDS, "pivot-holds", "the task must be undone, but a pivot may have taken effect")   \
    X(NO_AGENT, "no-agent", "a step is ready, but no instance of its agent is connected")         \
    X(BREAKER, "breaker-open", "a step is ready, but the breaker of its agent is open")           \
    X(TRIALS, "breaker-trials", "a step is ready, but the breaker of its agent is half-open")     \
    X(LIMIT, "limit", "a step is ready, but a limit of its agent or action is reached")           \
    X(HEALTH, "health", "a step is ready, but only ill instances have free places")               \
    X(AGENT_AWAY, "agent-elsewhere", "a step is ready, but only other nodes have its agent")      \
    X(IN_DOUBT, "in-doubt", "a compensation waits until no attempt of the step can be running")   \
    X(DEFERRED, "deferred", "a step failed and is in an extended wait before its next attempt")   \
    X(BETWEEN, "between-tries", "a step failed and waits for its next attempt")                   \
    X(NOT_BEFORE, "not-before", "the task has a start time that has not come yet")                \
    X(LOCK, "lock", "the task waits for its lock, which others hold")                             \
    X(WAIT, "wait", "a step waits for a length of time, or for a moment")                         \
    X(ROUND, "round", "a repeated step waits for its next round")                                 \
    X(SIGNAL, "signal", "a step waits for a signal")                                              \
    X(APPROVAL, "approval", "a step waits for people to decide")                                  \
    X(CHILD, "child", "a step waits for its child, which is a task of its own")                   \
    X(NO_PLACE, "no-place", "a step is ready, but all places of its agent are taken")             \
    X(QUEUED, "queued", "a step is ready, but others come before it in its agent's queue")        \
    X(GRACE, "grace", "a complete-by passed while the server was down, and was extended")         \
    X(STOPPING, "stopping", "the task is being undone, and a forward attempt is still running")   \
    X(UNDOING, "undo-running", "a compensation is running")                                       \
    X(ITEMS, "items", "a step works through the items of a list")                                 \
    X(RUNNING, "running", "a step is running")                                                    \
    X(STARTING, "starting", "a step is ready, and its agent has a free place")                    \
    X(UNDO_AFTER, "undo-after", "a compensation waits for those of later steps")                  \
    X(AFTER, "after", "a step waits for others that have not ended")                              \
    X(LATE, "late", "the task's complete-by has passed, and the task continues")                  \
    X(COMPLETE_BY, "complete-by", "the task as a whole has a complete-by")                        \
    X(MORE, "more", "further reasons of less importance are left out")
/* clang-format on */

enum reason_kind {
#define X(name, word, when) REASON_##name,
    REASONS(X)
#undef X
        REASON_KINDS
};

/* These kinds exclude all others: the task has ended, and nothing will happen to it. */
static inline bool reason_is_end(enum reason_kind k)
{
    return k == REASON_PROCESSED || k == REASON_COMPENSATED;
}

/* What follows if an attempt, or a task, gets no answer. */
enum reason_next {
    NEXT_NONE,
    NEXT_TRY,   /* a retry */
    NEXT_UNDO,  /* the task is undone */
    NEXT_ERROR, /* it stops in error */
    NEXT_ON,    /* it goes on, with or without the step */
};

struct reason {
    enum reason_kind kind;
    int step;                 /* -1: the whole task. A slot: the item in it, or the next one */
    enum direction direction; /* in which the step runs, or would run */
    struct slice agent;       /* the agent concerned, or NONE */
    int64_t since;            /* 0: not recorded */
    int64_t until;            /* nothing happens earlier unless somebody acts; 0: there is no such
                               * time */
    enum reason_next next;    /* what follows if nothing else happens */
    bool capped;              /* the task's complete-by comes before `until` */
    int64_t complete_by;      /* of an attempt that silence may end earlier; 0: it is `until` */
    uint32_t count;           /* HOLDING: running attempts; ROUND: the round; APPROVAL: persons who
                               * agreed; CHILD: its number, 0: about to start; ITEMS: of those that
                               * have ended; MORE: reasons */
};

/* What is known of an agent. Provided by the holder of its queue. */
struct agent_view {
    bool connected;
    bool free;           /* an instance waits for work */
    uint32_t places;     /* of all instances together */
    uint32_t taken;      /* attempts in those places */
    uint64_t ahead;      /* steps before this one in the queue ... */
    bool ahead_at_least; /* ... or more: some wait in the store */
    int64_t seen_at;     /* last contact; 0: none since this server started */
    struct slice seen;   /* the instance of the last contact, or NONE */
    struct slice nodes;  /* other nodes that it is connected to, if not to this one: "n2
                          * (http://...), n3"; or NONE */
    struct slice url;    /* the URL of one of them, or NONE */
    struct slice alike;  /* a connected agent with a similar name, or NONE */
    struct slice who;    /* "i-1 (3), i-2 (1)": who occupies the places */
    enum {
        HELD_BY_NOTHING,
        HELD_BY_BREAKER,
        HELD_BY_TRIALS,
        HELD_BY_LIMIT, /* held_why: the limit */
        HELD_BY_HEALTH
    } held;
    int64_t held_since, held_until; /* until 0: until an operator closes it */
    struct slice held_why;          /* or NONE */
};

/* What an attempt's instance has reported. */
struct attempt_view {
    int64_t heartbeat_at; /* 0: none */
    struct slice progress, message;
    int64_t silent_by; /* it ends then unless a heartbeat comes; 0: silence is allowed */
    int64_t seen_at;   /* last call or report of the instance; 0: none since this server started */
};

enum owner { OWNER_NONE, OWNER_US, OWNER_BEFORE_US, OWNER_OTHER };

/* What an operator or submitter did to the task. */
struct intervention {
    int64_t at;
    int step; /* -1: the whole task */
};

/* All that is known besides the task itself. Zero means "no" or "unknown". */
struct facts {
    int64_t now;
    enum owner owner;
    struct slice owner_name;      /* as the row has it */
    int64_t owner_lease_until;    /* of OWNER_OTHER; 0: unknown */
    struct slice owner_url;       /* URL of OWNER_OTHER; NONE: unknown */
    struct slice here;            /* name of this node if several share the store, else NONE */
    struct slice others, unknown; /* "n2 (http://...), n3": the other live nodes whose agents are
                                   * known, and those whose agents are not. NONE */
    bool live;                    /* it is in this server's memory */
    bool draining, full;
    bool store_failed; /* it is unavailable */
    int64_t store_failed_since;
    struct slice trouble;
    int64_t scan_ms; /* interval of the supervisor's scans */
    struct lost_time lost;
    struct slice lock_holder; /* the task that has held its lock for longest; NONE: none does, or
                               * the asker may not know */
    int64_t lock_held_since;  /* 0: nobody holds it */
    uint64_t lock_others;     /* how many hold it besides */
    const struct intervention *acts;
    size_t act_count;
    void (*agent)(void *arg, int step, struct slice name, struct agent_view *ret);
    void (*attempt)(void *arg, int step, const struct attempt *a, struct attempt_view *ret);
    void *arg;
};

/* A step with for_each has one, and one more if an item needs something. */
enum { REASONS_MAX = 2 * STEPS_MAX + 16 };

/* Large: must not be on the stack. */
struct reasons {
    size_t count;
    struct reason list[REASONS_MAX]; /* the most important first */
    struct ready ready[STEPS_MAX + SLOTS_MAX];
    struct undo_order order;
};

const char *reason_word(enum reason_kind k); /* "no-agent" */
const char *reason_when(enum reason_kind k); /* the table's text */

/* All reasons, in order. There is at least one in every state. */
void reasons_find(const struct workflow *w, const struct task *t, const struct facts *f,
                  struct reasons *ret);

/* Keeps the first `max` at most; the last one kept then counts those left out. */
void reasons_limit(struct reasons *r, size_t max);

/* Why an operator's verb is refused. The caller makes the text. */
enum obstacle {
    OBSTACLE_NONE,
    OBSTACLE_STATE,           /* not in this state */
    OBSTACLE_NEW,             /* nothing that would start anew has begun */
    OBSTACLE_CLOSED,          /* it is closed and must be reopened first */
    OBSTACLE_OPEN,            /* an attempt of the step is running */
    OBSTACLE_DOUBT,           /* it is unknown whether the step took effect */
    OBSTACLE_EFFECT,          /* the step took effect, which would have to be undone */
    OBSTACLE_ENDED,           /* the step has ended */
    OBSTACLE_TASK_UNDONE,     /* the task is being undone, or will be */
    OBSTACLE_STOPPED,         /* it has stopped in error: no pause is needed */
    OBSTACLE_STOPPING,        /* it is about to stop in error: perhaps possible then */
    OBSTACLE_PIVOT,           /* a pivot took effect, or may have */
    OBSTACLE_KNOWN,           /* the step is not in doubt: nothing to resolve */
    OBSTACLE_EARLY,           /* an effect may still come */
    OBSTACLE_UNDOING,         /* its compensation has begun and must be completed */
    OBSTACLE_KIND,            /* the step is a wait or has items: it has no attempts, and no input;
                               * or an item is to start anew without its step */
    OBSTACLE_SIGNAL_UNWANTED, /* no step that may still come waits for a signal of that name */
    OBSTACLE_SIGNAL_FULL,     /* too many signals of that name are kept */
    OBSTACLE_SIGNAL_MANY,     /* the task was sent too many signals, or too many bytes */
    OBSTACLE_SIGNAL_OTHER,    /* its key is that of another signal */
    OBSTACLE_VOTE_UNASKED,    /* the step asks nobody, or not yet */
    OBSTACLE_VOTE_ANEW,       /* the question was asked anew */
    OBSTACLE_VOTE_GROUP,      /* none of the person's groups is asked */
    OBSTACLE_VOTE_SUBMITTER,  /* the person submitted the task */
    OBSTACLE_VOTE_OTHER,      /* the person has said the opposite */
    OBSTACLE_VOTE_FULL,       /* the task has as many votes as it may */
    OBSTACLE_ADMIN,           /* see operator_needs_admin(); set by the caller */
    OBSTACLE_UNTIL,           /* it was processed too long ago: its undo_until has passed */
    OBSTACLE_CHILD,           /* the task is a child: only the root of its family can be told so */
    OBSTACLE_CHILD_RUNS,      /* the child of the step runs */
    OBSTACLE_CHILD_STOPPED,   /* the child of the step stopped in error, and has to be repaired */
    OBSTACLE_NEWER, /* an attempt began that the operator has not seen; set by the caller, never
                     * by operator_obstacle() */
};

/* What follows the word for the task's state: that the task is being undone, or "" if it has ended
 * or goes forward. */
const char *operator_direction_text(const struct task *t);

/* Why a signal that arrives would be refused; NONE: it is kept, or had been before. */
enum obstacle signal_obstacle(const struct workflow *w, const struct task *t,
                              const struct signal *s);

/* Why a vote that arrives would be refused; NONE: it counts, or did before. */
enum obstacle vote_obstacle(const struct workflow *w, const struct task *t, uint16_t step,
                            const struct ballot *b, int64_t now);

/* Whether decide() would accept this operator's verb in the present state. `step` as in struct
 * event. False if the task is in that condition already (paused, being undone). */
bool operator_may(const struct workflow *w, const struct task *t, enum event_kind verb, int step,
                  int64_t now);

/* Why it would not; NONE: it would. If a step is the obstacle, *ret_step is set to it. */
enum obstacle operator_obstacle(const struct workflow *w, const struct task *t,
                                enum event_kind verb, int step, int64_t now, uint16_t *ret_step);

/* Whether it takes an admin: it would decide in place of the people who are asked, or change what
 * they have allowed. `step` as in struct event. */
bool operator_needs_admin(const struct workflow *w, const struct task *t, enum event_kind verb,
                          int step);

/* For a step in doubt: until when an effect may still come, so that it cannot be resolved
 * earlier. */
int64_t operator_may_resolve_at(const struct step *s);

/* Lists the steps, among this one and its successors, that took effect and would have to be undone:
 * at most step_count. Returns how many. */
size_t operator_effects(const struct workflow *w, const struct task *t, uint16_t step,
                        uint16_t *ret);

/* The steps that step i, which is not ready, waits for: forward, its predecessors that have not
 * ended; in undo, its successors that are not settled; for a step of on_undo, all that are not
 * settled. `r` is from the same state. Writes at most `max`; returns how many there are. */
size_t reason_waits_for(const struct workflow *w, const struct task *t, const struct reasons *r,
                        uint16_t i, uint16_t *ret, size_t max);

#endif
