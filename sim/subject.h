#ifndef SIM_SUBJECT_H
#define SIM_SUBJECT_H

/*
 * A task of the simulated world, and all that the world knows of it: who wanted what, what agents
 * really did (the ledger), what they said, and the row as it was last durable. The node never sees
 * any of it.
 */

#include "core/reason.h"
#include "sim/seen.h"

enum {
    SUBJECTS_MAX = 400,
    TOLD_MAX = 8,
    ASK_KINDS = 16, /* at least as many as enum ask_kind has */
    KEYS_MAX = 32   /* of a step */
};

struct node;

/* What really happened under one step's two idempotency keys. */
struct ledger {
    int64_t happened_at, undone_at; /* 0: it did not */
    bool tombstone;                 /* an undo came first: refuses what comes later */
    const void *open;               /* who has a transaction about it; NULL: nobody */
    uint32_t effects, undos;        /* how often either was committed */
    bool undo_said;                 /* an undo was answered: done */
    uint32_t number;                /* in the output that was recorded */
    uint32_t barred;   /* who looked sees to it that attempts up to this one do nothing more */
    uint32_t begun[2]; /* the latest attempt that somebody began to work on, by direction */
};

/* What an agent said of one attempt, when it made up its mind. */
struct said {
    struct said *next;
    uint64_t by; /* the process that said it */
    uint32_t step, number;
    enum direction direction;
    bool failed, retryable;
    enum effect effect;
    int64_t wish_ms; /* the delay of its own that it named; 0: it named none */
};

/* The latest heartbeat that was accepted of an attempt that may not be silent. */
struct beaten {
    uint32_t attempt;
    uint64_t boot; /* of the node that accepted it */
    int64_t when;  /* by its clock */
    bool left;     /* it was told something for whoever goes on with it */
};

/* The latest revision that a process told of. */
struct told_to {
    uint64_t boot, revision;
    int64_t at; /* in the world's time */
};

struct subject {
    char id[16];
    const struct flow *flow;
    struct slice input;
    uint64_t content; /* what its submission says; see subject_content */
    int priority;
    int64_t bulk_at; /* when an operation last did something to it; 0: never */
    int64_t not_before;
    int64_t unpause_at; /* somebody asked first for what may end its pause; 0: nobody has, -1: that
                         * is not known */
    struct to_tell *to_tell; /* what its receiver has to hear (receivers.c); NULL: it has none */
    bool accepted;           /* a submission was answered ERR_OK */
    bool deleted;            /* it was over, and is not in the store any more; its id is reserved */
    bool verbs;              /* an operator wanted something of it */
    bool cancel;             /* its submitter wanted it undone */
    bool cancelled;          /* a submitter's cancel was answered ERR_OK */
    uint32_t wanted[ASK_KINDS], audited[ASK_KINDS], verbs_told[ASK_KINDS],
        refused[ASK_KINDS]; /* verbs of operators */
    size_t audit_count;     /* entries of it in the audit */
    uint64_t keyed[FLOW_STEPS_MAX]
                  [KEYS_MAX];           /* hash of what was asked under each key; 0: nothing */
    uint64_t undone_as[FLOW_STEPS_MAX]; /* hash of what its undo was asked with; 0: it was not */
    int told_why[FLOW_STEPS_MAX]; /* its undo was told: 2 and the step that failed; 1: none of them
                                   * did; 0: nothing */
    /* Bits, by step: of which steps its undo had to know the output when it began, and may have. */
    uint32_t undo_knew[FLOW_STEPS_MAX], undo_may_know[FLOW_STEPS_MAX];
    bool undo_began[FLOW_STEPS_MAX];
    bool skipped[FLOW_STEPS_MAX]; /* an operator wanted that step skipped */
    struct ledger ledger[FLOW_STEPS_MAX];
    struct said *said;
    /* By direction, and by the slots of nodes: one that has lost the task hears of an attempt of
     * before, and that must not hide what its owner was told. */
    struct beaten beaten[FLOW_STEPS_MAX][2][TOLD_MAX];
    struct seen seen;
    uint32_t sent[FLOW_STEPS_MAX][2]; /* the latest attempt that left the node, by direction */
    int64_t sent_at[FLOW_STEPS_MAX][2];
    uint32_t sent_twice[FLOW_STEPS_MAX][2]; /* the latest that left it more than once */
    uint32_t missed[FLOW_STEPS_MAX];    /* answers that did not bring what its instance has lost */
    uint64_t started[FLOW_STEPS_MAX];   /* revision at which its latest attempt began; 0: untold */
    uint32_t unsent[FLOW_STEPS_MAX][2]; /* the latest one that did not, as this boot was told */
    uint32_t kept_back[FLOW_STEPS_MAX][2];     /* the latest one that did not, whoever was told */
    uint32_t handed_over[FLOW_STEPS_MAX][2];   /* the latest that its agent sent elsewhere */
    int64_t made_at, began_at[FLOW_STEPS_MAX]; /* it, its latest attempts; in the world's time */
    int64_t changed_at;                        /* the row's latest change, in the world's time */
    bool requested_before;                     /* there was a request in the row when it was made */
    const struct node *writer;                 /* who made it */
    bool heard;                                /* it will hear that it was stored */
    uint64_t alert_due; /* it stopped in that run of its writer's disk, and nobody was told yet */
    const struct node *alert_by, *unsent_by; /* whose alert_due and unsent these are */
    struct told_to told[TOLD_MAX];           /* by the slots of nodes */
    const struct node
        *tell_by; /* who made the latest change, and has not told of it yet; or NULL */
    uint64_t tell_boot, tell_due;     /* in which run of its disk */
    int64_t foretold[FLOW_STEPS_MAX]; /* it was told that the step does not begin before */
    enum reason_kind foretold_kind[FLOW_STEPS_MAX]; /* because of that */
    enum direction foretold_way;                    /* in that direction of the task */
    struct absence {
        int64_t at;  /* that node told that the agent of the step does not call it; 0: it did not */
        int64_t now; /* by the clock of the node */
    } absent[FLOW_STEPS_MAX];
    uint32_t absent_slot; /* the node: its process */
    uint64_t absent_boot;
    bool foretold_end; /* it was told that it has ended */
};

struct subjects {
    struct subject *list;
    uint32_t count;
};

extern struct subjects subjects;

struct subject *subject_find(struct slice id); /* NULL: not one of ours */

/* The first half of the id of the trace that it is submitted in; 0: in none. */
static inline uint64_t subject_trace(const struct subject *t)
{
    return t->content & 4 ? t->content : 0;
}

/* As it is submitted; `other`: with other content. Other content of some tasks has the same hash,
 * as somebody can see to. Of others those who submit, or the nodes that take it, may be of a
 * version that knew content by its hash alone (`old`). */
struct content subject_content(const struct subject *t, bool other, bool old);
bool subject_meets(const struct subject *t); /* other content of it has the same hash */

/* By what is stored of it. */
bool subject_says(const struct subject *t, bool other);

void said_note(struct subject *t, const struct said *s); /* copied */
/* Did any agent say so of that attempt? */
const struct said *said_find(const struct subject *t, uint32_t step, enum direction d,
                             uint32_t number, bool failed);
bool said_effect(const struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 enum effect effect); /* with an error */
bool said_only_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
bool said_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
bool said_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
/* Whoever answered that attempt named a delay: the shortest that anybody named; otherwise 0. */
int64_t said_least_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number);

#endif
