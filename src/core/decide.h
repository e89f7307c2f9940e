#ifndef CORE_DECIDE_H
#define CORE_DECIDE_H

/*
 * decide(state, event, now) -> state, effects. Pure: the same arguments give the same answer for
 * the owner of a task, the supervisor, the simulator and tests.
 *
 * An event may come too late, twice, or from a sender with an outdated view. That is normal,
 * changes nothing, and the answer says so. Events may therefore be evaluated again on a fresher
 * state; the scheduler does that after a conflict.
 *
 * The caller stores the state before it acts on the effects.
 */

#include "core/task.h"
#include "core/votes.h"

/* A step in doubt is not compensated until this long after its attempt's complete-by: clocks
 * differ, and answers take time. */
#define CLOCK_MARGIN_MS INT64_C(1000)

enum event_kind {
    EVENT_START,      /* a place is free on `instance`; `input` was evaluated (unless it was
                       * before) */
    EVENT_NOT_SENT,   /* the attempt never left the node */
    EVENT_SEND_AGAIN, /* its instance has lost it and gets it once more */
    EVENT_RESULT,     /* an agent's answer: `output`, or `error` with its attributes */
    EVENT_ELSEWHERE,  /* its instance is done with it; the result comes from elsewhere */
    EVENT_TIMEOUT,   /* the attempt's complete-by passed (a request of the supervisor), or that of a
                      * step that waits for a signal, for people or for a child */
    EVENT_SILENCE,   /* no heartbeat for too long. Sent by the task's owner, the only one that
                      * knows; refused if the attempt is elsewhere, or younger than the step's
                      * `heartbeat` */
    EVENT_DEADLINE,  /* the task's complete-by passed, in its present direction; TIMEOUT and
                      * DEADLINE are refused before that moment */
    EVENT_EXTEND,    /* time was lost: the task's complete-by in its direction moves to `until` */
    EVENT_CONDITION, /* the step's `if` was evaluated to false */
    EVENT_BAD_INPUT, /* an expression of the step failed: `error` has the details */
    EVENT_BEGIN,     /* a wait begins: it ends at `until`, or after its length; or the waiting for a
                      * signal begins; or people are asked `input`, or a child starts with it; or
                      * the items of `list` begin */
    EVENT_DUE,       /* a wait has ended; refused before that moment */
    EVENT_UNTIL,     /* the `until` of a repeated step was evaluated on the answer of its round, to
                      * `holds` */
    EVENT_SIGNAL,    /* `signal` arrives (key, name, data, content). Needs room for one more */
    EVENT_TAKE,      /* the step takes `signal` (key) and completes with `output` */
    EVENT_DROP,      /* operator: `signal` (name, and key if it is one only) is dropped */
    EVENT_VOTE,      /* a person votes by `ballot`. Needs room for one more vote */
    EVENT_DECIDED,   /* enough agreed, and the step completes with `output`; or one rejected it */
    EVENT_BRING,     /* a free slot gets an item that was at rest, `row`, to be undone */
    EVENT_CHILD,  /* the step's child of number `attempt` tells `child`, with its `output` if it is
                   * processed, with its `error` if it is compensated or stopped in error */
    EVENT_PARENT, /* the parent of the task tells it `wish`; `error` says why */
    EVENT_PARENT_PAUSE,  /* the parent was paused at `until`: the task is paused from that moment */
    EVENT_PARENT_RESUME, /* the parent goes on */
    EVENT_CLAIM,         /* a scheduler claims the task: `instance` is its node/boot */
    EVENT_RELEASE,       /* its owner releases it */
    EVENT_RETRY,         /* operator: retry the step (or all that failed) now */
    EVENT_SKIP,          /* operator: go on without the step, with `output` if given */
    EVENT_UNDO,    /* operator: undo the task; `error` may say why. A processed task requires a
                    * reason, no pivot that prevents undo, and an undo_until that has not
                    * passed */
    EVENT_HASTEN,  /* the outage in which this attempt failed has ended: its retry need not wait
                    * any longer */
    EVENT_PAUSE,   /* operator: nothing of the task starts, its clocks are stopped */
    EVENT_RESUME,  /* operator: the task continues with the time that it had left */
    EVENT_CORRECT, /* operator: another `input`, for the step or (-1) for the task */
    EVENT_SUPPLY,  /* operator: the step took effect, with that `output` */
    EVENT_RESOLVE, /* operator: no attempt of the step so far took effect. Refused before the last
                    * complete-by of those in doubt plus the clock margin, and if an attempt began
                    * after the operator looked */
    EVENT_RETRY_FROM, /* operator: the step and all that comes after it start anew */
    EVENT_CLOSE,      /* operator: it stopped in error and stays so; `error` says why */
    EVENT_REOPEN,     /* operator: the closed task needs attention after all */
    EVENT_OVERRUN,    /* nodes ended because its evaluations took too long: the task stops in error,
                       * whatever its workflow says; refused while it is paused */
};

enum { EVENT_KINDS = EVENT_OVERRUN + 1 };

struct event {
    enum event_kind kind;
    int step;                 /* index of the step, or of the slot of an item; -1 for the whole
                               * task */
    enum direction direction; /* of the attempt. With the next two: START, NOT_SENT, SEND_AGAIN,
                               * RESULT, ELSEWHERE, TIMEOUT, SILENCE, HASTEN */
    uint32_t attempt;         /* its number; for START, the number that it would get. RESOLVE: the
                               * latest attempt that the operator saw; 0: not given */
    struct slice instance;
    struct value input, output;
    bool holds;  /* UNTIL: the answer satisfies the step */
    bool failed; /* RESULT: it is an error */
    struct fault_note error;
    bool retryable;
    enum effect effect; /* RESULT with an error: NONE or UNKNOWN; if it was sent again: UNKNOWN */
    int64_t retry_after_ms;
    uint32_t tries;      /* RESULT: see struct attempt */
    struct slice resume; /* RESULT with an error, ELSEWHERE, TIMEOUT, SILENCE: see struct step. NONE
                          * keeps the present details */
    bool spared; /* RESULT with a retryable error, TIMEOUT, SILENCE: the service behind the agent is
                  * known to be unavailable, so this is no failure of the step */
    int64_t until; /* EXTEND; BEGIN, if the wait has no length; RESOLVE: the operator's view is from
                    * then, attempts that began later are unknown to the operator; TIMEOUT of a
                    * step that waits for a signal: when it was overdue (for the caller, who offers
                    * it what arrived before). 0: not given */
    const struct item_list *list; /* BEGIN of a step with for_each */
    const struct step *row; /* BRING: the item, with its number. The slot gets its attempts, as
                             * they lie in memory */
    const struct signal *signal;
    const struct ballot *ballot;
    enum child_state child; /* CHILD */
    enum child_wish wish;   /* PARENT */
};

/* A vote that arrives. */
struct ballot {
    struct slice person, comment;
    const struct slice *groups; /* to which the person belongs */
    size_t group_count;
    uint32_t asking; /* which question the person answers: struct step's generation and 1; 0: the
                      * present one, whichever that is */
    int64_t submitted_at; /* of the task that is meant, since an id may be given again; 0: any */
    bool agrees;
};

enum answer {
    ANSWER_ACCEPTED, /* the state has changed */
    ANSWER_REPEATED, /* it was accepted before; nothing changed */
    ANSWER_LATE,     /* a result of an attempt that had been given up: stored with it now, or was
                      * before */
    ANSWER_UNKNOWN,  /* there is no such step or attempt */
    ANSWER_REFUSED,  /* not in this state; nothing changed */
};

/* What the caller must do once the state is durable. */
struct effects {
    bool stop_running; /* tell the agents of all open forward attempts to stop */
    bool ended;        /* the task reached processed or compensated: evaluate its output first */
    bool alert;        /* an operator is needed; task.error says why */
    bool changed;      /* the state differs from before (also true if a late result was stored) */
    bool any_step; /* any step may differ; otherwise only the event's step, with its items, may */
};

/* Applies `event` to *t, or refuses it and leaves *t unchanged. Effects are added to *fx. Before
 * EVENT_START the step must have room for one more attempt (step_needs_room). */
enum answer decide(const struct workflow *w, struct task *t, const struct event *event, int64_t now,
                   struct effects *fx) MUST_USE;

/* Whether the task's array of signals has to grow before the next EVENT_SIGNAL; see also
 * step_needs_room() in attempts.h. */
bool task_needs_signal_room(const struct task *t);

/* The same for its votes before the next EVENT_VOTE. */
bool task_needs_vote_room(const struct task *t);

/* A step, or the item of a slot, that is to be started next, in its task's direction. A free slot
 * gets the next item: items_next(). */
struct ready {
    uint16_t step; /* or slot */
    int64_t at;    /* not before; a time in the past (or 0) means that it needs a place now */
};

/*
 * All steps that are to be started next, and all items, at most as many as there are units. They
 * include forward steps whose `if` was not evaluated yet: the caller evaluates it and sends
 * EVENT_CONDITION. They include waits: one that has not begun is to begin (EVENT_BEGIN), one that
 * has is over at that time (EVENT_DUE). They include repeated steps whose last answer is still to
 * be judged (step_is_answered, EVENT_UNTIL). A step that has begun to wait for a signal is not
 * included, nor one that has begun to wait for people, unless they have decided (EVENT_DECIDED),
 * nor one that waits for its child, forward or back. Steps of a task whose deadline has passed are
 * not included: they wait for EVENT_DEADLINE.
 */
size_t task_ready(const struct workflow *w, const struct task *t, int64_t now, struct ready *ret);

/* Whether the step waits for a signal now: EVENT_TAKE would be accepted for one of its names. */
bool step_awaits_signal(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Whether it waits for people now, whether or not they have decided. */
bool step_awaits_votes(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Whether any step waits for a signal or for people. */
bool task_awaits_signal(const struct workflow *w, const struct task *t, int64_t now);

/* Whether one of these groups is asked by the step, which began to ask at `begun_at`. */
bool step_asks(const struct workflow_step *ws, int64_t begun_at, const struct slice *groups,
               size_t count, int64_t now);

/* The direction in which the step runs next. Steps of on_undo go forward while the task is
 * undone. */
static inline enum direction step_next_direction(const struct workflow *w, const struct task *t,
                                                 uint16_t i)
{
    return w->steps[i].on_undo ? DIRECTION_FORWARD : t->direction;
}

/* Whether what comes next of the step is a request to an agent: a call, or the undo of a step that
 * started a child, if that is not the undo of the child. */
static inline bool step_calls(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];

    return ws->kind == KIND_CALL
           || (ws->kind != KIND_EACH && ws->undo_kind == UNDO_CALL
               && step_next_direction(w, t, i) == DIRECTION_UNDO);
}

/* When a processed task can no longer be undone; 0: it can be as long as it is kept. */
static inline int64_t task_undo_until(const struct workflow *w, const struct task *t)
{
    return w->undo_until_ms ? t->ended_at + w->undo_until_ms : 0;
}

/* Whether the step has something to compensate. A compensation that began must be completed. */
bool step_needs_undo(const struct workflow_step *ws, const struct step *s);

/* The attempt that EVENT_START would create now. */
struct attempt task_next_attempt(const struct workflow *w, const struct task *t, int step,
                                 int64_t now);

/* The earliest time at which the task must be checked for being overdue: the complete-by of an
 * attempt, of a step that waits for a signal, or of the task. 0: there is none. */
int64_t task_wake_at(const struct task *t);

/* Lost time (the server was down, suspended, or without a store) does not count against agents.
 * Deadlines of what began before `until` and that fell into [from, until + grace) move to until +
 * grace. The row of a task has its own deadline, which moves there only for the times below. */
struct lost_time {
    int64_t from, until, grace_ms;         /* until == 0: no time was lost */
    int64_t from_of_tasks, until_of_tasks; /* for which a task is extended; 0: as above */
};

/* complete_by, unless it fell into lost time. */
int64_t deadline_at(int64_t complete_by, const struct lost_time *lost);

/* When the step's current attempt, its waiting for a signal, or the task itself, is overdue. 0:
 * never in the present state. */
int64_t step_overdue_at(const struct step *s, const struct lost_time *lost);
int64_t signal_overdue_at(const struct task *t, uint16_t i, const struct lost_time *lost);
int64_t task_overdue_at(const struct workflow *w, const struct task *t,
                        const struct lost_time *lost);

/* To when the task's own complete-by is to move in its row, so that more can start until then.
 * Never later than it is overdue. */
int64_t task_extended_to(const struct workflow *w, const struct task *t,
                         const struct lost_time *lost);

/* Whether the step's current attempt, or the task itself, is overdue. */
bool step_is_overdue(const struct step *s, int64_t now, const struct lost_time *lost);
bool task_is_overdue(const struct workflow *w, const struct task *t, int64_t now,
                     const struct lost_time *lost);

#endif
