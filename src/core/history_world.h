#ifndef CORE_HISTORY_WORLD_H
#define CORE_HISTORY_WORLD_H

/*
 * The world as an independent observer sees it: which attempts were made, what their agents said,
 * and hence what may have happened out there. It shares no code with the core; history_test.c
 * compares the two after every event, and holds the core's every move against the invariants.
 */

#include "core/core_test_kit.h"

/* Steps, and attempts of a step in both directions together; history_fuzz.c has more. */
#ifndef WORLD_STEPS
    #define WORLD_STEPS    4
    #define WORLD_ATTEMPTS 12
#endif

enum fate {
    FATE_OPEN,     /* sent, not answered yet */
    FATE_NOT_SENT, /* never left */
    FATE_SILENT,   /* given up without an answer: may have happened, may be at work still */
    FATE_NOTHING,  /* answered: an error without effect */
    FATE_UNKNOWN,  /* answered: an error with unknown effect */
    FATE_DONE,     /* answered: it took effect */
};

enum phase {
    PHASE_IDLE,
    PHASE_OPEN,
    PHASE_DONE,    /* completed, or undone */
    PHASE_GAVE_UP, /* failed for good */
    PHASE_SKIPPED, /* going forward only */
};

struct world_attempt {
    enum fate fate;
    bool late;  /* answered after it had been given up */
    bool again; /* its instance was asked once more */
    bool away;  /* its instance is done with it */
    int64_t began;
    int64_t complete_by;
    uint32_t request; /* which one, of those that the step had going forward */
};

struct world_step {
    struct world_attempt attempts[2][WORLD_ATTEMPTS]; /* by direction */
    uint32_t count[2];
    enum phase phase;
    bool back; /* its compensation began */
    uint32_t failures;
    uint32_t spared; /* failures that did not count, in that direction */
    int64_t wait_until;
    bool resume;       /* an attempt in this direction left something for the next one */
    bool supplied;     /* a person says that it took effect */
    uint32_t resolved; /* of so many of its attempts a person says that they did not */
    uint32_t request;  /* raised whenever its next request may be another one */
};

struct world {
    const struct graph *graph;
    uint16_t step_count;
    bool back;
    bool resumed;        /* the operator made a stopped task go on */
    bool asked;          /* the operator asked for undo */
    bool due[2];         /* the deadline of that direction was acted on, or does not count */
    int64_t deadline[2]; /* by direction; 0: none */
    int64_t not_before;  /* 0: it may begin at once */
    enum stop wish;      /* of the first failure since it went on */
    int64_t paused_at;   /* 0: it is not paused */
    bool closed;
    struct world_step steps[WORLD_STEPS]; /* last: only those that are there are copied */
};

void world_make(struct world *w, const struct graph *g);

/* It is paused no more, if it was. */
void world_unpaused(struct world *w, int64_t now);

/* Is the step to be undone now, or would be? Those of on_undo never are. */
bool world_goes_back(const struct world *w, uint16_t i);

/* Is it too early for the task to begin? The core leaves that to whoever starts steps. */
bool world_is_early(const struct world *w, int64_t now);

/* What the world knows of a step. */
bool world_effect(const struct world_step *s);
bool world_gainsaid(
    const struct world_step *s); /* one that was resolved took effect all the same */
bool world_doubt(const struct world_step *s);
int64_t world_doubt_until(const struct world_step *s);
bool world_ended(const struct world *w, uint16_t i); /* its successors may start */
bool world_open(const struct world_step *s);
bool world_pivot_clear(const struct world_step *s); /* this pivot allows undo */

/* May a person say that none of its attempts took effect? */
bool world_resolvable(const struct world *w, uint16_t i, int64_t now);

/* May the step be started, going by order and time alone? */
bool world_startable(const struct world *w, uint16_t i, int64_t now);

/* When the attempt, if it is open, may be given up for its silence; 0: never. */
int64_t world_silent_at(const struct world *w, uint16_t i, enum direction d,
                        const struct world_attempt *a);

/* The answer that a result, a timeout, SILENCE, ELSEWHERE, NOT_SENT, SEND_AGAIN or HASTEN must get.
 */
enum answer world_answer(const struct world *w, const struct event *ev, int64_t now);

/* The event was accepted (or came late) in a task that was in `state` before. */
void world_event(struct world *w, const struct event *ev, enum task_state state, int64_t now);

/* The task turned back; it went on after it had stopped in error. */
void world_turned(struct world *w, int64_t now);
void world_resumed(struct world *w, int64_t now);

/* Does the core see each step as the world does? */
void world_check(const struct world *w, const struct task *t, int64_t now,
                 const char *(*about)(void));

#endif
