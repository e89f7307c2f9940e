#ifndef SIM_SUBJECT_H
#define SIM_SUBJECT_H

/*
 * A simulated task, and all that the world knows about it: who wanted what, the real effects of
 * agents (the ledger), what they reported, and its last durable row. Nodes never see any of it.
 */

#include "core/reason.h"
#include "sim/seen.h"

enum {
    SUBJECTS_MAX = 400,  /* that are submitted, ... */
    SUBJECTS_ALL = 2000, /* ... and with their descendants */
    TOLD_MAX = 8,
    ASK_KINDS = 20, /* at least the size of enum ask_kind */
    KEYS_MAX = 32   /* of a step */
};

struct node;
struct item_lives;

/* What somebody sent, or is about to. Its key is its number. */
struct sent_signal {
    char name;
    bool ok;
    bool both; /* by SQL, too */
};

/* What a person said, or is about to. */
struct sent_vote {
    uint32_t step, asking; /* the question that was read; 0: whichever it is */
    char person;
    char token; /* one of two that the person has */
    bool agrees;
};

/* The real effects under a step's two idempotency keys. */
struct ledger {
    int64_t happened_at, undone_at; /* 0: never */
    bool tombstone;                 /* an undo came first: later requests are refused */
    const void *open;               /* the holder of an open transaction; NULL: none */
    uint32_t effects, undos;        /* number of commits */
    bool undo_said;                 /* an undo was reported as done */
    uint32_t number;                /* in the recorded output */
    uint32_t barred;   /* somebody makes sure that attempts up to this one have no more effect */
    uint32_t begun[2]; /* the latest begun attempt, by direction */
};

/* An agent's result for one attempt, once decided. */
struct said {
    struct said *next;
    uint64_t by; /* the process */
    uint32_t step, number;
    enum direction direction;
    bool failed, retryable;
    enum effect effect;
    int64_t wish_ms; /* the requested delay; 0: none */
};

/* What a later round of a repeated step requested. */
struct keyed_round {
    struct keyed_round *next;
    uint32_t step, generation, round;
    uint64_t input; /* hash */
};

/* The latest accepted heartbeat of an attempt with a limit on silence. */
struct beaten {
    uint32_t attempt;
    uint64_t boot; /* of the accepting node */
    int64_t when;  /* on its clock */
    bool left;     /* it left details for the next attempt */
};

/* The latest revision that a process reported. */
struct told_to {
    uint64_t boot, revision;
    int64_t at; /* in world time */
};

struct subject {
    char id[48];
    const struct flow *flow;
    struct slice input;
    uint64_t content; /* of its submission; see subject_content */
    int priority;
    int64_t bulk_at; /* the last change by an operation; 0: never */
    int64_t not_before;
    int64_t unpause_at; /* first ask for something that may end its pause; 0: none, -1: unknown */
    struct to_tell *to_tell; /* what its receiver must receive (receivers.c); NULL: none */
    bool accepted;           /* a submission was answered ERR_OK */
    bool by_sql;             /* an application submits it, perhaps beside others */
    bool run_alone;          /* of a schedule, whose runs must not overlap */
    bool deleted;            /* it ended, and is deleted; its id is reserved */
    bool verbs;              /* an operator wanted something */
    bool cancel;             /* its submitter wanted it undone */
    bool cancelled;          /* a cancel was answered ERR_OK */
    uint32_t wanted[ASK_KINDS], audited[ASK_KINDS], verbs_told[ASK_KINDS], refused[ASK_KINDS],
        repeated[ASK_KINDS];                  /* operators' verbs; repeated: already so */
    size_t audit_count;                       /* its entries in the audit */
    uint64_t keyed[FLOW_STEPS_MAX][KEYS_MAX]; /* hash of the request under each key; 0: none */
    struct keyed_round *keyed_rounds;
    uint64_t undone_as[FLOW_STEPS_MAX]; /* hash of its undo's input; 0: none */
    int told_why[FLOW_STEPS_MAX];       /* what its undo was sent: 2 and the failed step; 1: no step
                                           failed; 0: nothing */
    /* Bits, by step: the steps whose output its undo had to know when it began, and may have
     * known. */
    uint32_t undo_knew[FLOW_STEPS_MAX], undo_may_know[FLOW_STEPS_MAX];
    bool undo_began[FLOW_STEPS_MAX];
    bool skipped[FLOW_STEPS_MAX]; /* an operator wanted it skipped */
    struct ledger ledger[FLOW_STEPS_MAX];
    struct said *said;
    /* By direction and by node slot: a node that lost the task may accept a heartbeat of an old
     * attempt, which must not hide the owner's. */
    struct beaten beaten[FLOW_STEPS_MAX][2][TOLD_MAX];
    struct seen seen;
    uint32_t sent[FLOW_STEPS_MAX][2]; /* the latest sent attempt, by direction */
    int64_t sent_at[FLOW_STEPS_MAX][2];
    uint32_t sent_twice[FLOW_STEPS_MAX][2]; /* the latest that was sent more than once */
    uint32_t missed[FLOW_STEPS_MAX];  /* responses without the attempt that its instance has lost */
    uint64_t started[FLOW_STEPS_MAX]; /* revision at which its latest attempt began; 0: unknown */
    uint32_t unsent[FLOW_STEPS_MAX][2];      /* the latest that was not sent, as this boot knows */
    uint32_t kept_back[FLOW_STEPS_MAX][2];   /* the latest that was not sent, whoever knows */
    uint32_t handed_over[FLOW_STEPS_MAX][2]; /* the latest that its agent handed over */
    int64_t made_at, began_at[FLOW_STEPS_MAX]; /* of the task, of its attempts; in world time */
    int64_t changed_at;                        /* the row's latest change, in world time */
    bool requested_before;                     /* the row had a request before that change */
    bool requested_once;                       /* ... before some change */
    const struct node *writer;                 /* the node that made it */
    bool heard;                                /* it will learn that it was stored */
    uint64_t alert_due; /* it stopped in that run of its writer's disk, not reported yet */
    const struct node *alert_by, *unsent_by; /* the nodes of alert_due and unsent */
    struct told_to told[TOLD_MAX];           /* by node slot */
    const struct node *tell_by;   /* the node that must still report the latest change; or NULL */
    uint64_t tell_boot, tell_due; /* the run of its disk */
    int64_t foretold[FLOW_STEPS_MAX];               /* predicted: the step does not begin before */
    enum reason_kind foretold_kind[FLOW_STEPS_MAX]; /* the reason for that */
    enum direction foretold_way;                    /* in that direction of the task */
    struct absence {
        int64_t at;  /* that node told that the agent of the step does not call it; 0: it did not */
        int64_t now; /* by the clock of the node */
    } absent[FLOW_STEPS_MAX];
    uint32_t absent_slot; /* the node: its process */
    uint64_t absent_boot;
    int64_t foretold_over[FLOW_STEPS_MAX]; /* predicted: the wait is not over before */
    struct sent_signal signals[SEEN_SIGNALS_MAX];
    uint32_t signals_sent;
    uint32_t carried, carried_later; /* the first of them come with each submission of it, and these
                                        many more with one that is repeated */
    int64_t signal_sent_at;          /* the latest for a step that waited in calm times */
    struct sent_vote votes[SENT_VOTES_MAX];
    uint32_t votes_sent;
    int64_t asked_at;              /* in calm times all persons were asked to vote */
    bool overrode[FLOW_STEPS_MAX]; /* an admin wanted to decide in place of people */
    bool foretold_end;             /* it was told that it has ended */
    /* Set for a child (family.h): */
    struct subject *parent, *root;                    /* NULL: it is none */
    uint32_t parent_step, parent_unit, parent_number; /* unit: see items.h */
    int64_t cap; /* its complete-by is no later; 0: without limit */
    enum { REFUSED_BY_NOBODY, REFUSED_BY_READER, REFUSED_BY_STORE } refusal;
    uint32_t words_waiting;   /* what tasks of its family told it, and it did not decide on */
    struct item_lives *lives; /* what the world knows of items (items.h); NULL: nothing */
    struct seen_items *items[FLOW_STEPS_MAX]; /* of steps with for_each, as stored last */
    struct to_family *to_family; /* what it has told (check_families.c); NULL: nothing yet */
};

struct subjects {
    struct subject *list;
    uint32_t count;
};

extern struct subjects subjects;

struct subject *subject_find(struct slice id); /* NULL: not one of ours */
struct subject *subject_add(struct slice id);  /* one that nobody thought of at the beginning */

/* The first half of its submission's trace id, for a child that of its root's; 0: none. */
static inline uint64_t subject_trace(const struct subject *t)
{
    const struct subject *from = t->root ? t->root : t;

    return from->content & 4 ? from->content : 0;
}

/* The content of its submission; `other`: other content. For some tasks the other content has the
 * same hash, as an attacker can arrange. For the others, submitters or nodes may be of a version
 * that compares hashes only (`old`). */
struct content subject_content(const struct subject *t, bool other, bool old);
bool subject_meets(const struct subject *t); /* its other content has the same hash */

/* Compares with the stored content. */
bool subject_says(const struct subject *t, bool other);

void said_note(struct subject *t, const struct said *s); /* copied */
/* Did any agent report that for the attempt? */
const struct said *said_find(const struct subject *t, uint32_t step, enum direction d,
                             uint32_t number, bool failed);
bool said_effect(const struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 enum effect effect); /* with an error */
bool said_only_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
bool said_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
bool said_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number);
/* The shortest delay, if every answer to the attempt named one; otherwise 0. */
int64_t said_least_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number);

#endif
