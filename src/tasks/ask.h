#ifndef TASKS_ASK_H
#define TASKS_ASK_H

/* A client's command on one task, and its answer: a submission, an operator's verb, a result by
 * token. */

#include "core/reason.h"
#include "definition/definition.h"
#include "dispatch/work.h"

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
    ASK_END, /* the result of an attempt, from any holder of its token */
};

const char *ask_kind_text(enum ask_kind kind); /* "retry": as in the audit and the log */

enum { ASK_NAME_TOLD = 80 }; /* bytes of a client's name that a story quotes */

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
    int64_t submission; /* seq of the row that it comes from; deleted by the task's insertion */
    /* operators' verbs: */
    struct slice step; /* NONE: the whole task */
    bool from;         /* ASK_RETRY: restarts `step` and everything after it */
    uint32_t attempt; /* ASK_RESOLVE: the latest attempt of `step` that was checked; 0: not given */
    int64_t looked_at; /* ASK_RESOLVE: no attempt that began later was checked; 0: not given */
    struct slice output, reason;
    /* ASK_SIGNAL: key, name, data, content; ASK_DROP: name, and key if it is one only. `decided` is
     * the same in the task's memory. */
    struct signal signal, decided;
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
    enum task_state state;   /* ... how it ended ... */
    int64_t ended_at;        /* ... and when */
    enum obstacle refusal;   /* with ERR_CONFLICT, operators: the obstacle */
    int64_t version;         /* ASK_SUBMIT: of its workflow */
    int64_t signal_at;       /* ASK_SIGNAL: when it arrived */
    int64_t voted_at;        /* ASK_APPROVE, ASK_REJECT: when that person voted, ... */
    uint16_t agreed, people; /* ... how many persons agree, and how many have to */
    char story[200];
};

#endif
