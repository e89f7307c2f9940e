#ifndef STORE_ROWS_RETIRE_H
#define STORE_ROWS_RETIRE_H

/* Letting go of tasks that are over, and of the room that they took. */

#include "core/task.h"
#include "store/rows/audit.h"

/* What is let go, and when: the first rule that is for a task's workflow and state counts. */
struct retire_rule {
    struct slice workflow; /* NONE: any */
    uint32_t states;       /* of (1 << enum task_state), out of RETIRE_STATES, and RETIRE_CLOSED:
                              those in error that were closed */
    int64_t ended_before;  /* what ended (or was closed) at this moment, or later, stays */
    int64_t seq_before;    /* so does what was submitted at this place, or later; 0: no matter */
};

/* A task that is over and may go. */
struct retired {
    int64_t seq;
    uint64_t revision; /* as it was seen */
    struct slice id, workflow;
    enum task_state state;
    size_t rule;       /* which of the rules lets it go; SIZE_MAX: none, it is a child */
    struct slice root; /* of a child: whose family it is of */
    bool archive;      /* of a child: its root was archived */
};

/* A part of looking for what may go. Tasks are looked at in the order of their submission, so
 * that it takes no index of its own; it ends at those that were submitted too late to have ended by
 * then. The newest task of all may be left alone whatever it is, and a task with undelivered
 * messages is kept.
 *
 * No rule lets a child go: a family goes together, first its root. Then its children are orphans,
 * which are found apart, by root and seq, once they are over as well. */
struct retire_look {
    const struct retire_rule *rules;
    size_t rule_count;
    struct slice workflow;   /* only tasks of this one are looked at; NONE: all */
    bool orphans;            /* only these are looked at, by no rule, of whatever workflow */
    size_t scan_max;         /* tasks that are looked at, at most */
    int64_t after_seq;       /* in: 0 at first; out: where the next part goes on, ... */
    struct slice after_root; /* ... of orphans, together with this; NONE at first */
    struct retired *found;   /* out */
    size_t found_count;      /* out */
    bool more;               /* out: there may be more behind after_seq */
};

/* A part of deleting what was found. The id of a root is reserved for as long as it has children,
 * beyond all times, and then until `reserve_until`; children reserve no ids, and are left alone
 * while their root is there. */
struct retire {
    const struct retired *tasks;
    size_t task_count;
    bool archived;             /* they were; so their children will be */
    int64_t budget_us;         /* how long it may take, about, before it leaves the rest; 0: no
                                  matter. One task is dealt with at least */
    int64_t reserve_until;     /* their ids are not given to others until then; 0: at once */
    const struct audit *audit; /* written with it if anything is deleted; may be NULL */
    bool *gone;                /* out, of each, in memory of the caller: it was deleted */
    size_t dealt_with;         /* out: how many of the first have a result in `gone`; the others are
                                * unchanged */
};

/* An id that is kept: that of a task which was deleted. */
struct reservation {
    struct slice workflow;
    int64_t version;
    enum task_state state;
    int64_t ended_at;
    int64_t until;          /* from then on the id is free */
    struct content content; /* of its submission; 0 and NONE: that is not known */
    struct slice owner;     /* as in struct task; NONE: it has none, or that is not known */
};

#define RESERVED_FOR_CHILDREN INT64_C(253402300799999) /* `until` while there are any */

#define RETIRE_STATES         (1U << TASK_PROCESSED | 1U << TASK_COMPENSATED | 1U << TASK_ERROR)
#define RETIRE_CLOSED         (1U << 31)

/* A part of making the file shorter. */
struct shrink {
    int64_t budget_us; /* how long it may take, about */
    uint64_t pages;    /* out: so many were given back, about */
    bool more;         /* out: there are others */
};

#endif
