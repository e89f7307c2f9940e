#ifndef CORE_HISTORY_WORLD_H
#define CORE_HISTORY_WORLD_H

/*
 * The world as an independent observer sees it: which attempts were made, what their agents
 * returned, and therefore which effects may exist. It shares no code with the core. history_test.c
 * compares the two after every event and checks each move of the core against the invariants.
 */

#include "core/core_test_kit.h"
#include "core/history_kid.h"

/* Limits: steps of a workflow, and attempts of a step in both directions together. history_fuzz.c
 * sets larger ones. */
#ifndef WORLD_STEPS
    #define WORLD_STEPS    4
    #define WORLD_ATTEMPTS 12
#endif

enum { WORLD_SIGNALS = 12, WORLD_VOTES = 12 };

enum call_end {
    CALL_OPEN,     /* sent, not answered yet */
    CALL_NOT_SENT, /* never left */
    CALL_SILENT,   /* given up without an answer: may have taken effect, may still run */
    CALL_NOTHING,  /* returned an error without effect */
    CALL_UNKNOWN,  /* returned an error with unknown effect */
    CALL_DONE,     /* answered: it took effect */
};

enum phase {
    PHASE_IDLE,
    PHASE_OPEN,
    PHASE_DONE,    /* completed, or undone */
    PHASE_GAVE_UP, /* failed for good */
    PHASE_SKIPPED, /* going forward only */
};

struct world_attempt {
    enum call_end end;
    bool late;  /* answered after it was given up */
    bool again; /* its instance was sent the request again */
    bool away;  /* ended by its instance; the result comes from elsewhere */
    int64_t began;
    int64_t complete_by;
    uint32_t request; /* which of the step's forward requests */
};

struct world_step {
    struct world_attempt attempts[2][WORLD_ATTEMPTS]; /* by direction */
    uint32_t count[2];
    enum phase phase;
    bool back; /* its compensation began */
    uint32_t failures;
    uint32_t spared;      /* failures in that direction that did not count */
    int64_t begun_at;     /* of a wait; 0: it has not begun */
    int64_t wait_until;   /* of a wait that has begun: when it is over */
    uint32_t round;       /* of a repeated step; 0: none has begun */
    int64_t round_at;     /* when this round began; 0: it has not */
    int64_t repeat_until; /* a round that begins then is the last; 0: not known yet */
    int64_t signal_by;    /* of a step that began to wait for a signal or people: until when; 0: no
                           * limit */
    uint32_t asking;      /* of an approval: the number of its latest question */
    bool answered;        /* its round has an answer that was not judged */
    bool resume;          /* an attempt in this direction left resume details */
    bool supplied;        /* an operator said that it took effect */
    uint32_t resolved;    /* an operator said that this many attempts had no effect */
    uint32_t request;     /* incremented whenever the next request may differ */
    struct world_kid kid;
    enum child_state said; /* what is known of its child */
    bool by_hand;          /* an operator undid it */
};

struct world_signal {
    char name;
    bool dropped;
    int taken_by; /* a step; WORLD_KEPT, or WORLD_UNDID: it had the task undone */
};

struct world_vote {
    char person;
    bool agrees;
    uint16_t step;
};

enum { WORLD_KEPT = -1, WORLD_UNDID = -2 };

struct world {
    const struct graph *graph;
    uint16_t step_count;
    bool back;
    bool resumed;        /* the operator continued a stopped task */
    bool asked;          /* the operator asked for undo */
    bool due[2];         /* the deadline of that direction was handled, or does not count */
    int64_t deadline[2]; /* by direction; 0: none */
    int64_t not_before;  /* 0: it may begin at once */
    enum stop wish;      /* of the first failure since it was continued */
    int64_t paused_at;   /* 0: not paused */
    int64_t erred_at;    /* when it last stopped in error; 0: never */
    bool closed;
    enum child_wish told; /* by its parent; STOP and UNDO stay */
    uint16_t signal_count;
    struct world_signal signals[WORLD_SIGNALS]; /* in the order of their arrival */
    uint16_t vote_count;
    struct world_vote votes[WORLD_VOTES]; /* on what is asked now */
    struct world_step steps[WORLD_STEPS]; /* last: only those that are there are copied */
};

void world_make(struct world *w, const struct graph *g);

/* Ends a pause, if there is one. */
void world_unpaused(struct world *w, int64_t now);

/* Whether the step is to be undone, now or if the task were undone. Never true for steps of
 * on_undo. */
bool world_goes_back(const struct world *w, uint16_t i);

/* Whether it is too early for the task to begin. The core leaves this to its caller. */
bool world_is_early(const struct world *w, int64_t now);

/* The observer's view of a step. */
bool world_effect(const struct world_step *s);
bool world_resolve_contradicted(
    const struct world_step *s); /* a resolved one took effect after all */
bool world_doubt(const struct world_step *s);
int64_t world_doubt_until(const struct world_step *s);
bool world_ended(const struct world *w, uint16_t i); /* its successors may start */
bool world_open(const struct world_step *s);
bool world_pivot_clear(const struct world_step *s); /* this pivot allows undo */

/* Whether an operator may say that none of its attempts took effect. */
bool world_resolvable(const struct world *w, uint16_t i, int64_t now);

/* Whether the step may be started, by order and time alone. */
bool world_startable(const struct world *w, uint16_t i, int64_t now);

/* When the open attempt may be given up because of silence; 0: never. */
int64_t world_silent_at(const struct world *w, uint16_t i, enum direction d,
                        const struct world_attempt *a);

/* The expected answer to BEGIN and DUE of a task that is active and not to stop. */
bool world_wait_begins(const struct world *w, uint16_t i, int64_t now);
bool world_wait_is_over(const struct world *w, uint16_t i, int64_t now);

/* The same for UNTIL, and whether another round follows an answer that does not satisfy it. */
bool world_may_judge(const struct world *w, uint16_t i, int64_t now);
bool world_goes_round(const struct world_step *s);

/* Whether the task's deadline leaves time for what waits. */
bool world_has_time(const struct world *w, int64_t now);

/* Whether the step waits for a signal or people, and its time is over. */
bool world_awaits(const struct world *w, uint16_t i, int64_t now);
bool world_awaits_no_longer(const struct world *w, uint16_t i, int64_t now);

/* The expected answer to SIGNAL, TAKE and DROP of a task in that state that goes forward. */
enum answer world_signal_answer(const struct world *w, const struct event *ev,
                                enum task_state state, int64_t now);

/* Records one of these events; and that the step starts anew. */
void world_signal_event(struct world *w, const struct event *ev);
void world_put_back(struct world *w, uint16_t step);

/* Whether this signal has a task undone, and was neither dropped nor did so yet. */
bool world_asks_for_undo(const struct world *w, uint16_t signal);

/* Whether a signal had the task undone between these. */
bool world_signal_acted(const struct world *was, const struct world *is);

/* The expected answer to VOTE, DECIDED, and the TIMEOUT of an approval, of a task in that state
 * that is to stop as the core says. */
enum answer world_vote_answer(const struct world *w, const struct event *ev, enum task_state state,
                              enum stop stop, int64_t now);

/* Records a vote; that the step is to be asked anew; that the task has another input; and that the
 * step was asked, as the core has it. */
void world_vote(struct world *w, const struct event *ev);
void world_votes_void(struct world *w, uint16_t step);
void world_ask_anew(struct world *w);
void world_asked(struct world *w, const struct event *ev, const struct step *s);

/* The end of its waiting for a signal or people completes the step. */
bool world_waited_well(const struct world *w, const struct event *ev);

/* Enough persons agreed, or one rejects it. */
bool world_voted(const struct world *w, uint16_t i);

/* Part of world_check(). */
void world_check_votes(const struct world *w, const struct task *t, const char *(*about)(void));
void world_check_signals(const struct world *w, const struct task *t, const char *(*about)(void));

/* ---- families (history_family.c) ---- */

/* Whether the end of that child is still to come, and whether it stopped in error, as far as known.
 */
bool world_kid_open(const struct world_step *s);
bool world_kid_stopped(const struct world_step *s);

/* Whether a child that stopped in error may be why the task does. */
bool world_kid_holds(const struct world *w);

/* The expected answer to CHILD, and to PARENT and its pauses, of a task in that state. */
enum answer world_child_answer(const struct world *w, const struct event *ev);
enum answer world_parent_answer(const struct world *w, const struct event *ev,
                                enum task_state state);

/* Records them. `in_error`: the task has stopped in error, and stays so. */
void world_child(struct world *w, const struct event *ev, bool in_error);
void world_parent(struct world *w, const struct event *ev, int64_t now);

/* Records that a step failed for good, or that its compensation began. */
void world_failed(struct world *w, uint16_t i);
void world_goes_undo(struct world_step *s);

/* Whether all direct and indirect successors are at rest and undone. */
bool world_after_is_undone(const struct world *w, uint16_t i);

/* The expected answer to RESULT, TIMEOUT, SILENCE, ELSEWHERE, NOT_SENT, SEND_AGAIN or HASTEN. */
enum answer world_answer(const struct world *w, const struct event *ev, int64_t now);

/* Records an event that was accepted (or late) in a task that was in `state` before. */
void world_event(struct world *w, const struct event *ev, enum task_state state, int64_t now);

/* Records that the task turned to undo, or continued after it had stopped in error. */
void world_turned(struct world *w, int64_t now);
void world_resumed(struct world *w, int64_t now);

/* Records that the task leaves the state error, perhaps only to stop again at once: waits by length
 * go on with the time that they had left. */
void world_error_over(struct world *w, int64_t now);

/* Checks that the core and the observer agree on each step. */
void world_check(const struct world *w, const struct task *t, int64_t now,
                 const char *(*about)(void));

#endif
