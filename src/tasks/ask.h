#ifndef TASKS_ASK_H
#define TASKS_ASK_H

/* A client's command on one task, and its answer: a submission, an operator's verb, a result by
 * token. */

#include "core/reason.h"
#include "definition/definition.h"
#include "dispatch/work.h"
#include "store/codec/family.h"

enum ask_kind {
    ASK_SUBMIT,
    ASK_RETRY,
    ASK_SKIP,
    ASK_UNDO,
    ASK_CANCEL, /* the submitter's undo: refused for a processed task or one in error; a no-op if
                   the task is compensated */
    ASK_PAUSE,  /* nothing of it starts, and its clocks stop */
    ASK_RESUME,
    ASK_CORRECT, /* another input for `step` or for the task */
    ASK_SUPPLY,  /* `step` counts as completed, with `output` */
    ASK_RESOLVE, /* no attempt of `step` so far took effect */
    ASK_CLOSE,   /* a task in error stays there for good */
    ASK_REOPEN,
    ASK_SIGNAL,  /* a signal arrives */
    ASK_DROP,    /* signals that no step took are dropped */
    ASK_APPROVE, /* a person agrees to what `step` asks */
    ASK_REJECT,
    ASK_CHILD,  /* a child of `step` tells `word` */
    ASK_PARENT, /* the parent tells `word` */
    ASK_END,    /* the result of an attempt, from any holder of its token */
};

const char *ask_kind_text(enum ask_kind kind); /* "retry": as in the audit and the log */

enum { ASK_NAME_TOLD = 80 }; /* bytes of a client's name that a story quotes */

/* A signal that a submission carries, and what became of it. */
struct carried_signal {
    struct signal signal; /* key, name, data, content */
    enum { CARRIED_ACCEPTED, CARRIED_REPEATED, CARRIED_REFUSED } fate;
    enum obstacle refusal; /* of a refused one */
};

/* A client's command on one task. Its maker owns it again once it is answered. */
struct ask {
    enum ask_kind kind;
    void *user;
    struct slice id; /* like all slices here, lives until the answer */
    /* ASK_SUBMIT */
    const struct definition *definition;
    bool only_if_exists; /* not valid for a new task: ERR_INVALID unless the task exists */
    struct slice input, reply_to, tags; /* input: also ASK_CORRECT */
    struct slice trace;                 /* a W3C traceparent, or NONE: not part of the content */
    bool by_id; /* the id was made here: a task that exists is the same, whatever its content */
    /* They are delivered to a new task, or to the one that exists; no part of the content. */
    struct carried_signal *signals;
    size_t signal_count;
    bool signals_own_only; /* they are sent to no task that exists and has another owner, or none */
    bool signals_not_own;  /* out: for that reason they were not sent */
    int priority;
    int64_t not_before;
    bool paused;            /* from its submission on, until it is resumed */
    struct content content; /* sha256: required for a submission */
    /* The requester: an ASK_SUBMIT makes it the task's owner. NONE: no owner. Also ASK_CANCEL. */
    struct slice owner;
    struct slice submitter; /* ASK_SUBMIT: the person of that token; NONE: nobody knows */
    bool own_only;  /* leaves tasks of other owners alone: ERR_CONFLICT (ASK_SUBMIT), ERR_NOT_FOUND
                       (ASK_CANCEL) */
    bool reads_all; /* the requester may read any task: an answer may name another one */
    /* ASK_SUBMIT: the versions of its children's workflows (definition/family.h). NONE: none. */
    struct slice family;
    /* ASK_SUBMIT of a child, otherwise NONE and 0: as in struct task, and until when it may take at
     * most; 0: as long as its workflow says. */
    struct slice parent, root, parent_step;
    uint32_t parent_number;
    int64_t complete_by_cap;
    int64_t submission; /* seq of the row that it comes from; deleted by the task's insertion */
    /* operators' verbs: */
    struct slice step; /* NONE: the whole task */
    bool from;         /* ASK_RETRY: restarts `step` and everything after it */
    uint32_t attempt; /* ASK_RESOLVE: the latest attempt of `step` that was checked; 0: not given */
    int64_t looked_at; /* ASK_RESOLVE: no attempt that began later was checked; 0: not given */
    struct slice output, reason;
    /* ASK_SIGNAL: key, name, data, content, and when it was sent, if that is not now; ASK_DROP:
     * name, and key if it is one only. `decided` is the same in the task's memory. */
    struct signal signal, decided;
    struct family_word word; /* ASK_CHILD, ASK_PARENT */
    int64_t notice; /* ASK_SIGNAL, ASK_CHILD, ASK_PARENT: seq of the notice that it is; the change
                       deletes it. 0: none */
    int64_t behind; /* ... and of the one of the same task that was asked before it; 0: none. If
                       that one stays, because the task is full, so does this one */
    struct ballot ballot,
        cast;             /* ASK_APPROVE, ASK_REJECT; `cast` is the same in the task's memory */
    bool by_link;         /* ASK_APPROVE, ASK_REJECT: with a link, and no token; for the audit */
    bool is_admin;        /* ASK_SKIP, ASK_SUPPLY, ASK_CORRECT: see operator_needs_admin() */
    struct slice actor;   /* who asks, for the audit. NONE: not audited */
    struct slice address; /* the client's address, for the audit */
    bool bulk; /* operators: part of a bulk operation. However old the task, it waits for places as
                  if it were submitted now, with one level of priority less */
    bool if_open;            /* operators: leaves a task alone that has ended meanwhile */
    int64_t not_after;       /* operators: the store's time after which it is not decided any more
                                (ERR_BUSY). 0: no limit */
    bool expired;            /* out: not_after had passed */
    bool not_own;            /* out: the task has another owner; see own_only */
    struct slice not_own_of; /* ... and this workflow; only valid in ask_answer */
    bool overran;            /* out: ASK_SUBMIT: its conditions took far too long, twice */
    bool bad_key; /* out: ASK_SUBMIT, with ERR_INVALID: its lock gets no key from its input */
    struct work_result *result; /* ASK_END: has the token; with ERR_OK, its status says more */
    /* The outcome. ERR_OK; ERR_TAKEN: its lock is held by another task; ERR_CONFLICT: other
     * content, or not in this state; ERR_NOT_FOUND: no such task; ERR_INVALID: no such step; or the
     * store's error. */
    enum err outcome;
    bool existed; /* ASK_SUBMIT: the same task existed; operators: the state was already reached,
                     nothing was done */
    bool deleted; /* ASK_SUBMIT: it existed, ended and was deleted; its id is still reserved */
    enum task_state state; /* ... how it ended ... */
    bool is_open; /* ASK_SUBMIT, with ERR_OK: its durable state is neither an end nor error. Nothing
                     that happens to it is reported before this answer */
    int64_t ended_at;        /* ... and when */
    enum obstacle refusal;   /* with ERR_CONFLICT, operators: the obstacle */
    int64_t version;         /* ASK_SUBMIT: of its workflow */
    int64_t signal_at;       /* ASK_SIGNAL: when it arrived */
    int64_t voted_at;        /* ASK_APPROVE, ASK_REJECT: when that person voted, ... */
    uint16_t agreed, people; /* ... how many persons agree, and how many have to */
    char story[200];
};

#endif
