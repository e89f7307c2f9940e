#ifndef CORE_DECIDE_H
#define CORE_DECIDE_H

/*
 * What happens to a task: decide(state, event, now) -> state, effects. Pure: the same arguments
 * give the same answer, for the owner of a task, the supervisor, the simulator and a test.
 *
 * An event may come too late, twice, or from somebody who has the wrong idea; that is normal,
 * changes nothing, and the answer says so. Events are therefore safe to evaluate again on a
 * fresher state, which is what the scheduler does after a conflict.
 *
 * The caller stores the state, and only then acts on the effects.
 */

#include "core/task.h"

/* After an attempt's complete-by, a step in doubt is left alone for this long before it is
 * compensated: clocks differ, answers travel. */
#define CLOCK_MARGIN_MS INT64_C(1000)

enum event_kind {
    EVENT_START,      /* a place is free on `instance`; `input` was evaluated (if not before) */
    EVENT_NOT_SENT,   /* the attempt never left the node */
    EVENT_SEND_AGAIN, /* its instance has lost it, and is to get it once more */
    EVENT_RESULT,     /* an agent's answer: `output`, or `error` with its attributes */
    EVENT_ELSEWHERE,  /* its instance is done with it; the result comes from somewhere else */
    EVENT_TIMEOUT,    /* the attempt's complete-by passed (a request of the supervisor) */
    EVENT_SILENCE,    /* no heartbeat came for too long: its owner says so, who alone knows; refused
                       * of one that is elsewhere, or younger than the step's `heartbeat` */
    EVENT_DEADLINE,   /* the task's complete-by passed, in whichever direction it goes;
                       * both are refused before that moment */
    EVENT_EXTEND,    /* time was lost: the task's complete-by, in its direction, moves to `until` */
    EVENT_CONDITION, /* the step's `if` was evaluated, to false */
    EVENT_BAD_INPUT, /* an expression of the step failed: `error` says which and why */
    EVENT_CLAIM,     /* a scheduler takes the task: `instance` is its node/boot */
    EVENT_RELEASE,   /* its owner lets go of it */
    EVENT_RETRY,     /* the operator: try the step (or all that failed) again, now */
    EVENT_SKIP,      /* the operator: go on without the step, with `output` if given */
    EVENT_UNDO,      /* the operator: undo the task; `error` may say why. One that is processed is
                      * undone if it does, no pivot stands, and its undo_until has not passed */
    EVENT_HASTEN,    /* the outage is over in which this attempt failed: what waits for another
                      * try since then waits no longer */
    EVENT_PAUSE,     /* the operator: nothing of it starts, its clocks stand still */
    EVENT_RESUME,    /* the operator: it goes on, and has the time that it had */
    EVENT_CORRECT,   /* the operator: another `input`, for the step or (-1) for the task */
    EVENT_SUPPLY,    /* the operator: the step took effect, with that `output` */
    EVENT_RESOLVE,   /* the operator: none of the step's attempts so far took effect; refused
                      * before the last complete-by of those in doubt, and the clock margin, and if
                      * an attempt began since somebody looked */
    EVENT_RETRY_FROM, /* the operator: the step and all that comes after it start anew */
    EVENT_CLOSE,      /* the operator: it stopped in error, and is to stay so; `error` says why */
    EVENT_REOPEN,     /* the operator: no, somebody has to see to it */
    EVENT_OVERRUN,    /* nodes had to end because its evaluations took too long: it stops in error,
                       * whatever its workflow says; refused while it is paused */
};

enum { EVENT_KINDS = EVENT_OVERRUN + 1 };

struct event {
    enum event_kind kind;
    int step;                 /* index; -1 for the whole task */
    enum direction direction; /* of the attempt; with the next two: START, NOT_SENT, SEND_AGAIN,
                                 RESULT, ELSEWHERE, TIMEOUT, SILENCE, HASTEN */
    uint32_t attempt;         /* its number; START names the one it would be. RESOLVE: the latest
                                 that was looked at; 0: it was not said */
    struct slice instance;
    struct value input, output;
    bool failed; /* RESULT: it is an error */
    struct fault_note error;
    bool retryable;
    enum effect effect; /* RESULT with an error: NONE or UNKNOWN; if it was sent again: UNKNOWN */
    int64_t retry_after_ms;
    uint32_t tries;      /* RESULT: see struct attempt */
    struct slice resume; /* RESULT with an error, ELSEWHERE, TIMEOUT, SILENCE: see struct step.
                          * NONE: what is there stays */
    bool spared; /* RESULT with an error that is retryable, TIMEOUT, SILENCE: the service behind the
                    agent is known to be away, so this is no failure of the step */
    int64_t until; /* EXTEND; RESOLVE: of an attempt that began after it, nothing was known to whom
                      asks. 0: it was not said */
};

enum answer {
    ANSWER_ACCEPTED, /* the state has changed */
    ANSWER_REPEATED, /* this was accepted before; nothing changed */
    ANSWER_LATE,     /* a result of an attempt given up: kept with it, or was kept before */
    ANSWER_UNKNOWN,  /* there is no such step or attempt */
    ANSWER_REFUSED,  /* not in this state; nothing changed */
};

/* What the caller must see to, once the state is durable. */
struct effects {
    bool stop_running; /* tell the agents of all open forward attempts to stop */
    bool ended;        /* the task reached processed or compensated: evaluate its output first */
    bool alert;        /* a person is needed; task.error says why */
    bool changed;      /* the state differs from before (true also for a late result now kept) */
    bool any_step;     /* any of its steps may differ; otherwise that of the event alone may */
};

/* Makes `event` happen to *t, or refuses it and leaves *t alone. Effects are added to *fx.
 * Before EVENT_START the step must have room for one more attempt (step_needs_room). */
enum answer decide(const struct workflow *w, struct task *t, const struct event *event, int64_t now,
                   struct effects *fx) MUST_USE;

/* Does the step's attempt array have to grow before the next EVENT_START? */
bool step_needs_room(const struct step *s);

/* A step that is next to be started, in the direction in which its task goes. */
struct ready {
    uint16_t step;
    int64_t at; /* not before; a time in the past (or 0) means that it wants a place now */
};

/*
 * All steps that are next to be started, at most step_count of them. Steps going forward whose `if`
 * was not evaluated yet are among them: the caller evaluates it and says EVENT_CONDITION. Steps
 * whose deadline (that of the task) has passed are not: they wait for EVENT_DEADLINE.
 */
size_t task_ready(const struct workflow *w, const struct task *t, int64_t now, struct ready *ret);

/* In which direction the step is asked for, as its task goes: those of on_undo go forward while the
 * task goes back. */
static inline enum direction step_goes(const struct workflow *w, const struct task *t, uint16_t i)
{
    return w->steps[i].on_undo ? DIRECTION_FORWARD : t->direction;
}

/* When a processed task can be undone no more; 0: as long as it is kept. */
static inline int64_t task_undo_until(const struct workflow *w, const struct task *t)
{
    return w->undo_until_ms ? t->ended_at + w->undo_until_ms : 0;
}

/* Is there something to compensate in this step? A compensation that began is brought to its end.
 */
bool step_needs_undo(const struct workflow_step *ws, const struct step *s);

/* The attempt that EVENT_START would make now. */
struct attempt task_next_attempt(const struct workflow *w, const struct task *t, int step,
                                 int64_t now);

/* The earliest moment at which somebody must look whether the task is overdue: an attempt's
 * complete-by or the task's own. 0: there is none. */
int64_t task_wake_at(const struct task *t);

/* Time that we lost (down, suspended, without a store) is not the agents' fault: deadlines of what
 * began before `until` and that fell into [from, until + grace) move to until + grace. */
struct lost_time {
    int64_t from, until, grace_ms;         /* until == 0: none was lost */
    int64_t from_of_tasks, until_of_tasks; /* the same for the task's own deadline; 0: no other */
};

/* complete_by, unless it fell into lost time. */
int64_t deadline_at(int64_t complete_by, const struct lost_time *lost);

/* When the step's current attempt, or the task itself, is overdue. 0: never, as it stands. */
int64_t step_overdue_at(const struct step *s, const struct lost_time *lost);
int64_t task_overdue_at(const struct workflow *w, const struct task *t,
                        const struct lost_time *lost);

/* Is the step's current attempt overdue? / Is the task itself? */
bool step_is_overdue(const struct step *s, int64_t now, const struct lost_time *lost);
bool task_is_overdue(const struct workflow *w, const struct task *t, int64_t now,
                     const struct lost_time *lost);

#endif
