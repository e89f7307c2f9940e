#ifndef SIM_SEEN_H
#define SIM_SEEN_H

/*
 * A task's row as a checker sees it: read from columns and document as plain JSON, without any code
 * that is being checked.
 */

#include "core/attempts.h"
#include "sim/flow.h"
#include "store/store.h"

struct seen_attempt {
    uint32_t number, resent;
    enum direction direction;
    enum outcome outcome;
    enum effect effect;
    int64_t started_at, ended_at, complete_by;
    bool spared;
    bool elsewhere, silent; /* silent: it ended for that */
    uint32_t generation;    /* of its key, from 1 */
    uint32_t round;         /* of a repeated step */
    char instance[24];
};

enum { SEEN_VOTERS_MAX = 8 };

/* The child of a step: the number of the latest, what is known of it, and what it was told. */
struct seen_child {
    uint32_t number;
    enum child_state state;
    enum child_wish wish;
};

/* The output of a step in which people decided. */
struct seen_decision {
    bool approved, overridden, has_id; /* has_id: as what an operator supplies */
    char by[SEEN_VOTERS_MAX];          /* persons, in their order */
    uint32_t count;
};

struct seen_step {
    bool grouped; /* it is in the payload table */
    enum step_state state;
    enum direction direction;
    uint32_t failure_count, spared_count;
    int64_t begun_at, wait_until, spared_at;
    uint32_t round; /* of a repeated step; 0: none has begun */
    int64_t round_at, repeat_until;
    bool not_yet;        /* its error says so */
    int64_t complete_by; /* of a step that waits for a signal or for people */
    bool has_output;
    bool supplied;       /* by hand */
    uint32_t resolved;   /* an operator said that no attempt up to this one took effect */
    uint32_t generation; /* of its key */
    uint64_t input;      /* hash of the recorded one; 0: none, or a long one */
    char input_by;       /* see struct seen; 0: it is no text of a person */
    uint32_t resume;     /* the attempt that left details for the next one; 0: none */
    enum direction resume_of;
    struct seen_attempt attempts[ATTEMPTS_KEPT];
    uint32_t attempt_count, attempt; /* kept; number of the latest in its direction */
    uint32_t dropped_count;
    enum effect dropped_effect;
    int64_t dropped_until;
    uint32_t dropped_attempt; /* the latest dropped one with unknown effect */
    struct seen_decision decision;
    struct seen_child child;
    uint32_t effects, doubts,
        to_undo;   /* of a step with for_each: of its items, also those at work */
    uint32_t open; /* so many of its items run */
    /* Those of its items at work whose children have not ended, stopped, or cannot go back. */
    uint32_t children, children_stopped, children_standing;
};

/* An item at work, as the document has it. */
struct seen_item {
    uint32_t item;
    bool back;   /* to be undone */
    bool is_new; /* it was not, before this change */
    struct seen_step step;
};

enum { ITEMS_SEEN_MAX = 32 };

/* The items of a step with for_each. */
struct seen_items {
    uint32_t list; /* its number, from 0 */
    enum step_state state;
    bool has_begun;
    uint32_t count, begun, completed, failed, skipped, undone, effects, doubts, to_undo, undo_below,
        contradicted;
    struct seen_item work[ITEMS_SEEN_MAX];
    uint32_t work_count;
    size_t bytes;       /* of what the document has beside them */
    bool left;          /* an operator has left the step as it is */
    uint32_t looked_at; /* for the checker */
};

enum { SEEN_SIGNALS_MAX = 32, SEEN_VOTES_MAX = 48, SENT_VOTES_MAX = 120 };

/* What a person says to the present question of a step. */
struct seen_vote {
    int step;
    char person; /* see voters.h */
    bool agrees;
    int64_t at;
};

struct seen_signal {
    uint32_t key; /* its number */
    char name;
    bool ok; /* its value */
    enum signal_state state;
    int step; /* that took it; -1: none */
    int64_t at;
};

/* The first failure, with hashes of its texts; 0: none. */
struct seen_cause {
    int step; /* -1: none */
    uint64_t code, message;
};

struct seen {
    uint64_t revision; /* 0: no such row */
    enum task_state state;
    enum direction direction;
    enum stop stop;
    bool locked, deadline_passed, requested;
    char owner[24]; /* "n1/3" */
    char waiting_for[64];
    int64_t paused_at, closed_at, lock_since;
    int64_t complete_by, undo_complete_by, wake_at, not_before, submitted_at, ended_at;
    uint32_t failure_count;
    uint64_t content, sha256; /* 0: none */
    uint64_t trace;           /* seen_trace of its document; 0: none */
    bool has_error;
    bool is_of_child;           /* its error is that a child stopped */
    enum child_wish asked;      /* what its parent told it */
    int64_t version, of_family; /* of its workflow; and the hash of the versions of its family */
    struct seen_cause cause;
    struct seen_step steps[FLOW_STEPS_MAX];
    uint32_t step_count;
    struct seen_signal signals[SEEN_SIGNALS_MAX]; /* in their order */
    uint32_t signal_count;
    struct seen_vote votes[SEEN_VOTES_MAX]; /* likewise */
    uint32_t vote_count;
    int64_t input_n; /* of its input */
    uint64_t input;  /* hash */
    char input_by;   /* whose it is: x as submitted, y of an operator, z of an admin */
};

/* Ends the run if the row cannot be read. */
void seen_read(const struct task_row *row, const struct flow *f, struct seen *ret);

void seen_read_items(const struct task_row *row, uint32_t step, struct seen_items *ret);
void seen_read_item(const struct task_row *row, struct slice doc, struct seen_step *ret);

uint64_t seen_hash(struct slice json); /* 0 for NONE */
/* The first half of the trace id; 0 for NONE. */
uint64_t seen_trace(struct slice traceparent);

const struct seen_attempt *seen_open(const struct seen_step *s); /* NULL: none */
bool seen_runs(const struct seen_step *s);                       /* or some of its items do */
const struct seen_attempt *seen_find(const struct seen_step *s, enum direction d, uint32_t number);

/* The child of the step, or of any of its items. */
bool seen_child_is_open(const struct seen_step *s);
bool seen_child_stopped(const struct seen_step *s);

/* It was undone by an operator, not by its agent, or by its child. */
bool seen_undone_by_hand(const struct seen_step *s);

/* Its round has an answer that is to be judged. */
bool seen_answered(const struct seen_step *s);

bool seen_asked(const struct seen_step *s); /* there is a forward attempt */

/* What the record says about the step's forward attempts (except open ones). */
bool seen_happened(const struct seen_step *s);
bool seen_in_doubt(const struct seen_step *s);
int64_t seen_doubt_until(const struct seen_step *s); /* 0: no effect can come any more */

bool seen_is_end(const struct seen *t); /* processed, compensated or error */

/* Going forward, has the step ended? */
bool seen_passed(const struct flow_step *f, const struct seen_step *s);

/* Bits: the steps that must end before it. An operator who skips a step early also skips what it
 * waited for. */
uint32_t seen_past(const struct flow *f, const struct seen *t, uint32_t step);

/* Does its record say that it must be compensated? */
bool seen_needs_undo(const struct flow_step *f, const struct seen_step *s);

#endif
