#ifndef STORE_STORE_H
#define STORE_STORE_H

/*
 * The state store: durable home of tasks and workflows. This is the whole interface, and all that
 * a body (sqlite.c, memory.c) implements. It is synchronous; in the server it is called on the
 * store thread alone, in the simulation by the one thread that there is.
 *
 * Fencing: every change of a task names the revision on which it was decided, and raises it by
 * one. A change whose revision is not that of the row does nothing and ends ERR_CONFLICT. Leases
 * are for liveness only.
 *
 * A batch is one transaction. Each of its changes has an outcome of its own:
 *   ERR_OK        it is durable;
 *   ERR_CONFLICT  the row has another revision, or (insert) the id exists, or (update) is gone;
 *   ERR_INVALID, ERR_TOO_BIG  this change alone cannot be stored; the others are not concerned;
 *   ERR_FULL, ERR_IO, ERR_BUSY, ...  nothing of the batch was stored, of that we are certain;
 *   ERR_UNKNOWN   the commit itself failed: it may or may not be durable. Drop what memory says
 *                 and read the rows again.
 * After a failure the store stays usable: the next call tries again, and succeeds once disk or
 * permission are back.
 *
 * Memory: rows handed in are borrowed for the call; rows handed out lie in the caller's arena.
 */

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/task.h"

struct store;

/* A row of the payload table: a value too long for the task's document. Insert-only. */
struct payload {
    uint32_t number; /* from 1 within the task */
    struct slice json;
};

/* A row of the task table. Times are ms UTC, 0 is stored as NULL. */
struct task_row {
    int64_t seq; /* order of insertion; given by the store */
    struct slice id, workflow;
    int64_t version;
    uint64_t revision; /* 1 at insertion */
    enum task_state state;
    enum direction direction;
    int priority;
    struct slice locked_by; /* "node/boot"; NONE: unlocked */
    int64_t complete_by, wake_at, not_before;
    struct slice waiting_for; /* agent without a place for it, or "time"; NONE while it is locked */
    int64_t rank;             /* order of claims, least first; for "time" the moment it is due */
    struct slice request;     /* of the supervisor, JSON; NONE */
    uint32_t failure_count;
    int64_t submitted_at, started_at, ended_at;
    int64_t paused_at, closed_at;     /* see struct task */
    struct slice reply_to, tags, doc; /* tags: JSON object or NONE */
    const struct payload *payloads;   /* to insert with it; read by get and claims: all of them */
    size_t payload_count;
};

/* What somebody did by hand, to be kept for ever: a row of the audit table. It is written in the
 * same transaction as the change that it tells of, or not at all. */
struct audit {
    int64_t at;
    struct slice actor, verb;        /* the token's name; "retry", "token.create", ... */
    struct slice task, step, reason; /* NONE: does not apply, or was not said */
    struct slice detail; /* JSON: what was replaced, and by what, in short; NONE: nothing was. It is
                          * kept of changes of tasks only */
};

/* What somebody is to be told of a task: a row of the outbox. It is written in the same transaction
 * as the change that it tells of, or not at all, and is there until it was delivered. Most go at
 * once. What cannot is set aside, into a table of its own, where it is found by its target. */
struct message {
    int64_t seq;       /* rises, for each task in the order of what happened; given by the store */
    struct slice task; /* its id */
    struct slice name; /* which one of the task's: "12/processed" */
    struct slice target; /* as in reply_to */
    struct slice body;   /* the CloudEvent, JSON */
    int64_t created_at;
    /* Of one set aside: */
    bool aside, dead;   /* dead: nobody tries any more, until somebody says so */
    uint32_t tries;     /* that failed */
    int64_t retry_at;   /* 0: at once */
    int64_t since;      /* from when on it counts how long it is tried: created_at, or revived */
    struct slice story; /* of the last try; NONE: there was none */
};

enum change_kind {
    CHANGE_INSERT,  /* a new task: row.revision is 1. Conflict if the id exists, or is reserved at
                       row.submitted_at */
    CHANGE_UPDATE,  /* every mutable column of `row`; expected revision is row.revision - 1 */
    CHANGE_REQUEST, /* the supervisor's: sets request and raises the revision; with `release` also
                       state pending, locked_by NULL, waiting_for and rank from `row`; moves wake_at
                       to row.wake_at. Expected revision is row.revision - 1 */
};

struct change {
    enum change_kind kind;
    bool release;    /* REQUEST */
    bool wake_moved; /* UPDATE: row.wake_at differs from what the row holds; if false the column (an
                        index) is left alone */
    struct task_row row;
    const struct audit *audits; /* of what people did to it in this change, in that order */
    size_t audit_count;
    const struct message *messages; /* that tell of it, in their order; their `task` is the row's */
    size_t message_count;
    /* INSERT: seq of the row of table submission that becomes this task; it is deleted with it. If
     * it does not wait there any more, nothing is done: ERR_BUSY. 0: none. */
    int64_t submission;
    enum err outcome; /* set by commit */
};

enum claim_kind {
    CLAIM_AGENT, /* pending, unlocked, waiting_for == agent; least rank first */
    CLAIM_TIME,  /* pending, unlocked, waiting_for == "time", rank <= now; least rank first */
    CLAIM_BOOT,  /* locked by an older boot of this node: "node/" + a number below ours. Taken over
                   as they are, running steps included */
    CLAIM_NODE,  /* locked by an owner that no longer holds its node's lease (NODE_LEASE), or whose
                   lease has run out (by the store's clock; by `now` where it has none). Taken over
                   in the same way. None where the store is not shared */
};

/* Takes up to `limit` tasks for `locked_by`: state processing (compensating where direction is
 * undo), started_at set if it was not, waiting_for NULL, revision raised. CLAIM_BOOT and CLAIM_NODE
 * keep the state. */
struct claim {
    enum claim_kind kind;
    struct slice agent;
    struct slice locked_by; /* "node/boot" of the claimer */
    int64_t now;
    int64_t rank_from, rank_before; /* CLAIM_AGENT: only of these ranks; before 0: to the last */
    size_t limit;
    struct task_row *rows; /* out: the rows as they are after the claim */
    size_t row_count;      /* out */
    bool more;             /* out: there were more than `limit` */
    int64_t next_rank;     /* out, CLAIM_TIME: when the next one is due; 0: there is none */
};

/* The leader's proof. A batch with a fence whose epoch is no longer that of the lease ends
 * ERR_CONFLICT as a whole. */
struct fence {
    struct slice lease;
    uint64_t epoch;
};

struct batch {
    struct change *changes;
    size_t change_count;
    struct claim *claims; /* done after the changes, in the same transaction */
    size_t claim_count;
    const struct fence *fence; /* may be NULL */
};

struct row_page {
    struct task_row *rows;
    size_t count;
    bool more;
    int64_t next_seq; /* of a listing with more: before_seq of the next page */
    size_t scanned;   /* of a listing: rows that were looked at for it */
};

struct tag {
    struct slice key, value;
};

/* Of something that a task may be or not. */
enum list_wish { LIST_EITHER, LIST_ONLY, LIST_WITHOUT };

/* A step by its name: of one version of one workflow, or (workflow NONE) of any. */
struct list_place {
    struct slice workflow;
    int64_t version;
    struct slice step;
};

/*
 * What a listing shows: the tasks for which all of it holds, newest first. In which state a task is
 * may change between pages, its place does not: no page repeats or misses one.
 *
 * A task stands at a step that is running or undoing, has failed, or waits for another try.
 */
struct list_query {
    uint32_t states;       /* of (1 << enum task_state); 0: any */
    struct slice workflow; /* NONE: any */
    int64_t version;       /* 0: any */
    struct slice error;    /* code of the task's error; NONE: any, or no error */
    /* It stands at one of these steps, or waits for a place at that agent. None, and NONE: wherever
     * it stands. */
    const struct list_place *places;
    size_t place_count;
    struct slice agent;
    int64_t ended_after, ended_before; /* at or after, before; 0: any, or not ended */
    const struct slice *ids;           /* one of these, all different; NULL: any */
    size_t id_count;
    const struct tag *tags;
    size_t tag_count;
    int64_t submitted_after, submitted_before; /* at or after, before; 0: any */
    enum list_wish paused, closed;
    int64_t before_seq; /* seq below this one; 0: from the newest */
    size_t limit;
    size_t scan_max;   /* rows that are looked at, at most, about; 0: a default. A page may so have
                          less than `limit` rows, none even, with more to come */
    int64_t budget_us; /* how long that may take, about; 0: a default. The same goes for it */
};

/* Something that is done to many tasks, one after the other: a row of the operation table. */
struct operation_row {
    int64_t seq; /* order of insertion; given by the store */
    struct slice id;
    uint64_t revision; /* 1 at insertion */
    bool open;         /* "running" or "stopped"; false: nothing is left to be done */
    struct slice state, verb, actor, reason;
    int64_t started_at, ended_at;
    struct slice doc; /* JSON, into which the store does not look */
};

struct operation_query {
    struct slice id;    /* NONE: any */
    bool open;          /* only those that are */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct operation_page {
    struct operation_row *rows;
    size_t count;
    bool more;
};

/* Before a node's name: the lease that it holds as "node/boot" while it lives. */
#define NODE_LEASE "node/"
/* What the supervisor that leads holds, as "node/boot". */
#define SUPERVISOR_LEASE "supervisor"

/* Held, as "node/boot", by the node that works on operations. */
#define OPERATION_LEASE "operations"

/* What a node does besides answering questions. */
enum node_role {
    NODE_SCHEDULER = 1,
    NODE_SUPERVISOR = 2,
    NODE_ROLES = NODE_SCHEDULER | NODE_SUPERVISOR,
};

/* A node as the others know it: what it wrote at its start and when it began to end, and (out, of
 * node_list) what its leases tell. */
struct node_row {
    struct slice name;
    uint64_t boot;
    struct slice url; /* how clients reach it; NONE: it did not say */
    unsigned roles;   /* enum node_role */
    struct slice version;
    int64_t started_at;  /* 0: it has not written anything yet */
    bool draining;       /* it ends */
    int64_t lease_until; /* out: of NODE_LEASE; 0: it never had one */
    bool alive;          /* out: that lease has not run out */
    bool leads;          /* out: its supervisor has the lease to lead, which has not run out */
};

/* Nodes whose lease ran out longer ago than this are left out of lists. */
#define NODE_FORGOTTEN_MS INT64_C(86400000)

/* How much there is of what is not over: for who looks after it. Counting ends at `most`, so that
 * it costs the same however much is stored. */
struct census_agent {
    struct slice agent;
    uint64_t tasks;             /* unlocked, for when it has a place; at most `agents_most` */
    int64_t first_submitted_at; /* of the one that is claimed next */
};

struct census {
    uint64_t tasks[TASK_ERROR + 1]; /* at most `most` of each state; those processed: 0 */
    uint64_t sleeping;              /* of those pending: until a time; at most `agents_most` */
    uint64_t overdue;               /* rows with wake_at <= now; at most `most` */
    int64_t overdue_since;          /* the least of these; 0: there is none */
    struct census_agent *agents;    /* the first CENSUS_AGENTS by name */
    size_t agents_most;             /* what `most` is for each of them: they share it */
    size_t agent_count;
};

enum { CENSUS_AGENTS = 200 };

/* No lease is longer. One that ends later than so far ahead was written by a clock that is right no
 * more, and counts as run out. */
#define LEASE_MAX_MS INT64_C(60000)

/* An attempt to take or renew a lease. Whether it has run out, and until when it then lasts, is by
 * the store's own clock where there is one: a node that is wrong about the time can neither steal
 * nor keep it. */
struct lease_try {
    struct slice name, holder;
    int64_t now;       /* for a body without a clock (no `now`) */
    int64_t length_ms; /* from now on, at most LEASE_MAX_MS; 0: the holder gives it up */
    bool seize;        /* whoever has it: an older boot of the same node, say */
};

/* What nodes keep in memory although any of them may change it. Each change raises the number of
 * its kind, in its transaction, and they become visible in the order of the numbers: who knows all
 * up to a number, and reads no higher one, knows all. All 0 where the store is not shared. */
struct generations {
    uint64_t workflows, tokens, agents;
    uint64_t outbox; /* what people did to messages */
};

struct lease {
    struct slice holder;            /* who has it */
    uint64_t epoch;                 /* raised whenever the holder changes */
    int64_t until;                  /* by the clock that judges it */
    struct generations generations; /* about when it was taken */
};

/* What a node that shares the store does every second, at the price of one statement: it renews its
 * leases, and learns whether others left something for it to do. */
struct survey {
    struct slice lease, owner;  /* NODE_LEASE with the node's name; "node/boot", which holds it */
    bool leads;                 /* that of the supervisor is taken or renewed, too */
    int64_t now;                /* for a body without a clock, as in struct lease_try */
    int64_t length_ms;          /* of both leases */
    const struct slice *agents; /* for whom there is room here ... */
    size_t agent_count;

    struct lease own, lead; /* out: as `lease` tells them; `lead` only if it was tried */
    bool *waiting;          /* out: ... of each: are there tasks to be claimed? */
    bool requested;         /* out: some task of ours has a request */
    bool orphans;           /* out: there are tasks for CLAIM_NODE */
    bool messages;          /* out: there are some in the outbox that were not set aside */
    bool submissions;       /* out: some wait, of anybody's part */
    int64_t due_at;         /* out: when the first task that sleeps is due; 0: none does */
    int64_t wake_at;        /* out: the least of all tasks; 0: there is none */
    /* out: nodes with the role NODE_SCHEDULER whose leases run, with this one; and how many of
     * them come before this one by name */
    uint32_t schedulers, schedulers_before;
};

/* What became of a task, in short. */
struct glance {
    uint64_t revision; /* 0: there is no such task */
    enum task_state state;
};

struct workflow_row {
    struct slice name;
    int64_t version;
    struct slice text; /* the definition as it was stored */
    int64_t created_at;
    bool described; /* out, of workflow_list: its inputs are known to the store */
};

/* The inputs of a version of a workflow, for those who submit in SQL: JSON, an array of
 * {"name", "type", "required"} by the words of definitions, or null where it names none. */
struct workflow_inputs {
    struct slice name;
    int64_t version;
    struct slice inputs;
};

/*
 * What an application put in by SQL (view `submit`), or what a queue brought and was refused: a row
 * of table submission. It waits to become a task, with which it is deleted, or was refused and then
 * stays until somebody drops it. Nothing of it was checked: each value is a text as it came, NONE
 * if it was left out.
 */
struct submission_row {
    int64_t seq;         /* given by the store, never twice */
    struct slice source; /* "sql", "amqp:QUEUE" */
    struct slice id, workflow, version, priority, not_before, reply_to, tags, input;
    int64_t submitted_at;
    int64_t refused_at; /* 0: it waits */
    struct slice reason;
    struct slice
        key; /* only put in: of one source each is kept once. NONE: nobody knows it again */
};

/* The oldest of those that wait. Nodes that share a store divide them by seq, so that no two work
 * on the same one; those of a node that does not do its part are everybody's after a while. */
struct submission_take {
    int64_t now;          /* for a body without a clock */
    uint32_t parts, part; /* seq % parts == part ... */
    int64_t patience_ms;  /* ... or submitted longer ago than that. parts <= 1: all */
    size_t limit;
    size_t bytes_max;            /* of all that they hold; one is taken whatever it holds. 0: any */
    struct submission_row *rows; /* out */
    size_t count;                /* out */
    bool more;                   /* out: there are more than these */
    uint64_t refused;            /* out: how many were refused, at most SUBMISSIONS_COUNTED */
};

enum { SUBMISSIONS_COUNTED = 10000 };

/* What became of one that waited without a new task. */
struct submission_verdict {
    int64_t seq;
    int64_t refused_at; /* 0: its task was there already; the row is deleted */
    struct slice reason;
};

struct submission_query {
    bool refused;        /* false: those that wait */
    struct slice source; /* NONE: any */
    int64_t before_seq;  /* newest first, seq below this one; 0: from the newest */
    size_t limit;
    bool brief; /* of refused ones only seq and source may be read: for who counts them */
};

struct submission_page {
    struct submission_row *rows;
    size_t count;
    bool more;
};

/* The operator's: refused ones are tried again, or dropped. */
struct submission_verb {
    bool drop;
    int64_t seq;               /* 0: all of them, SUBMISSION_VERB_MAX at a time, oldest first */
    struct slice source;       /* NONE: any */
    int64_t up_to_seq;         /* none that came later; 0: any */
    const struct audit *audit; /* written if anything is done; may be NULL */
    uint64_t count;            /* out */
    bool more;                 /* out: there are more */
};

enum { SUBMISSION_VERB_MAX = 1000 };

/* A token that lets its bearer in. Its text is known to the bearer alone. */
enum { TOKEN_HASH_SIZE = 32 };

struct token_row {
    struct slice name;
    unsigned char hash[TOKEN_HASH_SIZE]; /* SHA-256 of the text */
    struct slice roles;             /* a JSON array of texts; the store does not look into it */
    bool admin;                     /* whether "admin" is one of them */
    int64_t created_at, expires_at; /* expires_at 0: never */
};

/* What was said of an agent: JSON, into which the store does not look. NONE: nothing. */
struct agent_row {
    struct slice name;
    struct slice settings; /* dispatch/settings.h */
    struct slice breaker;  /* how it stands: scheduler/breakers.c */
};

enum agent_part { AGENT_SETTINGS, AGENT_BREAKER };

struct agent_change {
    struct slice name;
    enum agent_part part; /* the other one is left alone */
    struct slice text;    /* what it is from now on; NONE: nothing is said any more */
    bool fenced;          /* ERR_CONFLICT unless it is `was` until now */
    struct slice was;
};

struct audit_query {
    struct slice task;  /* NONE: any */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct audit_page {
    struct audit *entries;
    int64_t *seqs; /* of the entries */
    size_t count;
    bool more;
};

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
    size_t rule; /* which of the rules lets it go */
};

/* A task that stopped in error and waits for a person. */
struct stopped {
    int64_t seq, ended_at;
    struct slice id, workflow;
    struct slice step, code, message; /* of what stopped it; NONE: not known */
    bool undo;                        /* on its way back: a compensation failed */
};

struct stopped_page {
    struct stopped *rows;
    size_t count;
    bool more;
};

/* What a person is told of: alerts/alerts.h. */
struct alert_row {
    int64_t seq; /* given by the store; newer ones have higher ones */
    struct slice id;
    struct slice key; /* of its group. Of those that are live each has a group of its own */
    struct slice doc; /* JSON, into which the store does not look */
    int64_t opened_at, resolved_at;
    int64_t acknowledged_at; /* with the next two: changed by alert_acknowledge */
    struct slice acknowledged_by, acknowledged_why;
    bool live; /* something may come of it yet */
    bool lift; /* in: it is not acknowledged any more */
};

/* So many alerts are kept that are over. */
enum { ALERTS_KEPT = 10000 };

struct alert_query {
    bool live;          /* those only */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct alert_page {
    struct alert_row *rows;
    size_t count;
    bool more;
};

/* A part of looking for what may go. Tasks are looked at in the order of their submission, so
 * that it takes no index of its own; it ends at those that were submitted too late to have ended by
 * then. The newest task of all may be left alone whatever it is, and what is still to be told of a
 * task keeps it. */
struct retire_look {
    const struct retire_rule *rules;
    size_t rule_count;
    struct slice workflow; /* only tasks of this one are looked at; NONE: all */
    size_t scan_max;       /* tasks that are looked at, at most */
    int64_t after_seq;     /* in: 0 at first; out: where the next part goes on */
    struct retired *found; /* out */
    size_t found_count;    /* out */
    bool more;             /* out: there may be more behind after_seq */
};

/* A part of deleting what was found. */
struct retire {
    const struct retired *tasks;
    size_t task_count;
    int64_t budget_us;         /* how long it may take, about, before it leaves the rest; 0: no
                                  matter. One task is dealt with at least */
    int64_t reserve_until;     /* their ids are not given to others until then; 0: at once */
    const struct audit *audit; /* written with it if anything is deleted; may be NULL */
    bool *gone;                /* out, of each, in memory of the caller: it was deleted */
    size_t dealt_with; /* out: of the first so many it is told; the others are as they were */
};

/* An id that is kept: that of a task which was deleted. */
struct reservation {
    struct slice workflow;
    int64_t version;
    enum task_state state;
    int64_t ended_at;
    int64_t until;    /* from then on the id is free */
    uint64_t content; /* of its submission; 0: that is not known */
};

#define RETIRE_STATES (1U << TASK_PROCESSED | 1U << TASK_COMPENSATED | 1U << TASK_ERROR)
#define RETIRE_CLOSED (1U << 31)

/* A part of making the file shorter. */
struct shrink {
    int64_t budget_us; /* how long it may take, about */
    uint64_t pages;    /* out: so many were given back, about */
    bool more;         /* out: there are others */
};

/* A part of making a backup. */
struct backup_step {
    int64_t budget_us;   /* how long it may take, about */
    int64_t left, whole; /* out: bytes to be copied yet, and of the whole, as things are now */
    int64_t copied;      /* out: bytes that this step copied; what is written meanwhile adds to
                            `left`, and an undone transaction may even have it begin anew */
    int fd;              /* out: -1: call again. Otherwise it is whole */
};

/* A page of messages that wait, the oldest first. */
struct outbox_read {
    struct slice
        target;        /* NONE: those that were not set aside; otherwise those that were, for it */
    int64_t after_seq; /* the highest that was read. Older ones that are not set aside are looked
                          for as well, where rows do not become visible in their order ... */
    const int64_t *known; /* ... but for these, which the caller has already; rising */
    size_t known_count;
    const struct fence *fence; /* may be NULL. Of a lease with another epoch: nothing is read */
    size_t limit, bytes_max;   /* a page ends behind the message with which it becomes as large */
    struct message *messages;  /* out */
    size_t count;
    bool more;
};

enum settle_kind {
    SETTLE_DELETE, /* it was delivered */
    SETTLE_ASIDE,  /* not now */
    SETTLE_DEAD,   /* never */
};

/* What became of a message. Of one that is not there (any more) nothing is written. */
struct settlement {
    int64_t seq;
    bool aside; /* where it is */
    enum settle_kind kind;
    uint32_t tries;
    int64_t retry_at;
    struct slice story; /* NONE: what is there stays */
};

/* Messages that are set aside for one target. */
struct outbox_target {
    struct slice target;
    uint64_t count;     /* at most `most` */
    int64_t oldest_at;  /* when the first of them came to be */
    struct slice story; /* of its last try, or NONE */
};

/* A listing, the oldest first. */
struct outbox_query {
    bool waiting, dead;        /* which of them; not both */
    struct slice target, task; /* NONE: any; not both */
    int64_t after_seq;
    size_t limit;
};

struct message_page {
    struct message *messages;
    size_t count;
    bool more;
};

/* What a person does to messages that are set aside: those of a target, of a task, one, or all. */
struct outbox_verb {
    bool drop; /* deletes those that are dead; otherwise all of them are tried, at once */
    struct slice target, task, name; /* NONE: any; name: of the task's */
    int64_t now;
    size_t limit;              /* of one call */
    int64_t after_seq;         /* in: 0 at first; out: where the next part goes on */
    const struct audit *audit; /* written if anything was done; may be NULL */
    uint64_t count;            /* out */
    bool more;                 /* out */
};

struct outbox_census {
    uint64_t waiting, dead; /* at most `most` each; waiting: set aside or not */
    int64_t oldest_at;      /* of those that wait; 0: none does */
};

/* Of one task, as by `get`. */
struct reading {
    struct slice id;
    struct task_row row;
    enum err err;
    struct reservation
        gone; /* of ERR_NOT_FOUND: `until` is not 0 if there was one. For the caller */
    struct error error;
};

struct store_ops {
    void (*close)(struct store *s);

    /* ERR_OK if the transaction was committed (look at each outcome); otherwise the outcome of
     * all of its changes, and *e tells the story. Claims then have no rows. */
    enum err (*commit)(struct store *s, struct batch *b, struct arena *a, struct error *e);

    /* Writes next to nothing, durably: does the store take changes (again)? */
    enum err (*probe)(struct store *s, struct error *e);

    /* ERR_NOT_FOUND if there is none. Payloads are read with it. */
    enum err (*get)(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e);

    /* The same for several in one round trip. If it fails, nothing was read. NULL where there are
     * no round trips to be saved. */
    enum err (*get_many)(struct store *s, struct reading *r, size_t count, struct arena *a,
                         struct error *e);

    /* At `count` tasks at once, for ret[count]: what others do to tasks that are not ours is found
     * out by looking. */
    enum err (*glance)(struct store *s, const struct slice *ids, size_t count, struct arena *a,
                       struct glance *ret, struct error *e);

    /* Rows with wake_at <= now, earliest first, from (after_wake_at, after_seq) on, exclusive. */
    enum err (*overdue)(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e);

    /* Pages of a listing; docs are read, payloads are not. */
    enum err (*list)(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e);

    /* Counts. NULL in a body that cannot do so without reading all that is stored. */
    enum err (*census)(struct store *s, int64_t now, size_t most, struct arena *a,
                       struct census *ret, struct error *e);

    /* Looks for what may be deleted. */
    enum err (*retire_look)(struct store *s, struct retire_look *r, struct arena *a,
                            struct error *e);
    /* Deletes tasks that are over with their payloads and tags, and reserves their ids, in a
     * transaction of its own. One that somebody has locked or changed since it was found is left
     * alone, and nobody waits for it. After a failure nothing of this part was deleted
     * (ERR_UNKNOWN: or all of it). */
    enum err (*retire)(struct store *s, struct retire *r, struct error *e);

    /* Of an id for which `get` found nothing. ERR_NOT_FOUND: there never was such a task, or that
     * is forgotten. It may be over by the time that it tells. */
    enum err (*reserved)(struct store *s, struct slice id, struct arena *a, struct reservation *ret,
                         struct error *e);
    /* Forgets at most `limit` of those that are over at `now`; *ret_count: so many. */
    enum err (*reserved_sweep)(struct store *s, int64_t now, size_t limit, size_t *ret_count,
                               struct error *e);

    /* Gives room back that deleted tasks left, in small parts: some stays for what is stored next.
     * NULL: the body does so by itself, or keeps nothing on a disk. */
    enum err (*shrink)(struct store *s, struct shrink *k, struct error *e);

    /* Stores a definition under the next version of its name. If the newest version has the very
     * same text, nothing is stored: *ret_new is false and *ret_version its number. `audit` (may be
     * NULL) is written if something was stored; its reason is made here: "order, version 3". */
    enum err (*workflow_put)(struct store *s, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e);
    enum err (*workflow_get)(struct store *s, struct slice name, int64_t version, struct arena *a,
                             struct workflow_row *ret, struct error *e); /* version 0: the newest */
    enum err (*workflow_list)(struct store *s, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count,
                              struct error *e); /* all versions, by name, version */
    /* Those that were stored after that generation (0: all), of one name in the order of their
     * versions, and the generation up to which that is all. NULL where the store is not shared:
     * nobody else stores any. */
    enum err (*workflow_since)(struct store *s, uint64_t after, struct arena *a,
                               struct workflow_row **ret, size_t *ret_count,
                               uint64_t *ret_generation, struct error *e);

    /* Makes known what inputs these definitions have, where that is not known yet. */
    enum err (*workflow_describe)(struct store *s, const struct workflow_inputs *list, size_t count,
                                  struct error *e);

    /* Submissions that wait, oldest first; see struct submission_take. */
    enum err (*submissions_take)(struct store *s, struct submission_take *t, struct arena *a,
                                 struct error *e);
    /* All of them in one transaction; one that is not there, or waits no longer, is left alone. */
    enum err (*submissions_settle)(struct store *s, const struct submission_verdict *list,
                                   size_t count, struct error *e);
    /* Adds rows, in one transaction; their seq is ignored. One whose key is there is left as it is.
     * ERR_INVALID: one of them cannot be stored. */
    enum err (*submissions_put)(struct store *s, const struct submission_row *rows, size_t count,
                                struct error *e);
    enum err (*submissions_list)(struct store *s, const struct submission_query *q, struct arena *a,
                                 struct submission_page *ret, struct error *e);
    /* ERR_NOT_FOUND if that one is not there, or was not refused. */
    enum err (*submissions_verb)(struct store *s, struct submission_verb *v, struct error *e);

    /* A descriptor that becomes readable when somebody else may have put in a submission; it is
     * read empty by whoever waits for it, and stays the store's. It is only a hint, which may be
     * missed: who waits looks by himself as well, seldom. -1: there is none. NULL: nobody else can.
     */
    int (*watch)(struct store *s);

    /* As they are now. NULL where the store is not shared. */
    enum err (*generations)(struct store *s, struct generations *ret, struct error *e);

    /* Stores a token. ERR_CONFLICT if the name is taken (unless `replace`), or the hash. */
    enum err (*token_put)(struct store *s, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e);
    /* Deletes one. ERR_NOT_FOUND; ERR_CONFLICT if no other admin's token would be good at `now`. */
    enum err (*token_delete)(struct store *s, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e);
    enum err (*token_list)(struct store *s, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e); /* all of them, by name */
    enum err (*audit_list)(struct store *s, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e);

    /* Writes one part of what is said of an agent; `audit` may be NULL. */
    enum err (*agent_put)(struct store *s, const struct agent_change *c, const struct audit *audit,
                          struct error *e);
    /* Those of which something was changed after that generation (0: all), by name, and the
     * generation up to which that is all. Where the store is not shared: all, always. */
    enum err (*agent_since)(struct store *s, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e);

    /* Messages. Reading is by the number of what is asked for, however much is stored. */
    enum err (*outbox_read)(struct store *s, struct outbox_read *r, struct arena *a,
                            struct error *e);
    /* All of it in one transaction, which ends ERR_CONFLICT if the fence (may be NULL) says so.
     * What was done before is done again without harm. The list is in the order of seq. */
    enum err (*outbox_settle)(struct store *s, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e);
    /* Of whom there are some set aside that wait, or that are dead: by name, after that one. */
    enum err (*outbox_targets)(struct store *s, bool dead, struct slice after, size_t limit,
                               size_t most, struct arena *a, struct outbox_target **ret,
                               size_t *ret_count, struct error *e);
    enum err (*outbox_list)(struct store *s, const struct outbox_query *q, struct arena *a,
                            struct message_page *ret, struct error *e);
    enum err (*outbox_do)(struct store *s, struct outbox_verb *v, struct error *e);
    enum err (*outbox_census)(struct store *s, size_t most, struct outbox_census *ret,
                              struct error *e);

    /* Tasks in error that were not closed, in the order of (ended_at, seq), from there on,
     * exclusive. */
    enum err (*stopped)(struct store *s, int64_t after_ended_at, int64_t after_seq, size_t limit,
                        struct arena *a, struct stopped_page *ret, struct error *e);

    /* Inserts or replaces an alert by its id; an acknowledgement stays, unless it is lifted.
     * ERR_CONFLICT: another one of its group is live. */
    enum err (*alert_put)(struct store *s, const struct alert_row *row, struct error *e);
    enum err (*alert_list)(struct store *s, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e);
    /* By audit->actor, for audit->reason, at audit->at; the audit is written if that is news.
     * ERR_NOT_FOUND; ERR_CONFLICT: it is resolved. */
    enum err (*alert_acknowledge)(struct store *s, struct slice id, const struct audit *audit,
                                  struct error *e);

    /* Stores an operation: a new one (revision 1; ERR_CONFLICT if the id exists), or all of one
     * that has the revision before (ERR_CONFLICT otherwise); seq stays. `audit` may be NULL. */
    enum err (*operation_put)(struct store *s, const struct operation_row *row,
                              const struct audit *audit, struct error *e);
    enum err (*operation_list)(struct store *s, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e);

    /* Rows of that owner with a request, oldest task first, from after_seq on, exclusive. Asked by
     * nodes that share a store: somebody else's supervisor may have written it. Where it is not
     * shared there are none. */
    enum err (*requested)(struct store *s, struct slice locked_by, int64_t after_seq, size_t limit,
                          struct arena *a, struct row_page *ret, struct error *e);

    /* Takes or renews a lease if it is free, run out, or the holder's own. *ret is the lease as it
     * stands afterwards, whoever holds it. Where a lock excludes other servers it is
     * always the caller's, and nothing is written. */
    enum err (*lease)(struct store *s, const struct lease_try *want, struct arena *a,
                      struct lease *ret, struct error *e);

    /* No lease is seized: one that an older boot of this node holds stays its. NULL where the store
     * is not shared. */
    enum err (*survey)(struct store *s, struct survey *v, struct arena *a, struct error *e);

    /* Writes what a node says of itself: name to draining. Nothing is done if it is a later boot's
     * by now. NULL, as is node_list, where the store is not shared. */
    enum err (*node_put)(struct store *s, const struct node_row *row, struct error *e);
    /* All nodes but those forgotten (NODE_FORGOTTEN_MS), by name, as things are at `now`. */
    enum err (*node_list)(struct store *s, int64_t now, struct arena *a, struct node_row **ret,
                          size_t *ret_count, struct error *e);

    /* Some 32 secret random bytes, made at creation, the same for all nodes: the key of tokens. */
    const unsigned char *(*secret)(struct store *s);

    /* The number of this start of this node: one more than at the last one. */
    uint64_t (*boot)(struct store *s);

    /* A moment, ms UTC, up to which a server was at work on it before this start; 0: none is known.
     * A lower bound, and close to the truth. */
    int64_t (*used_until)(struct store *s);

    /* What time it is by the store's own clock, ms UTC, as this process knows it: that never goes
     * backwards, may be off by as long as a round trip takes, and is measured anew with every
     * lease. From any thread, at any time, without a call to the outside. NULL: it has no clock,
     * and the node's counts. */
    int64_t (*now)(struct store *s);

    /* A copy of all of it, for a body that keeps it in a file; NULL: this one does not. It is made
     * in steps between other calls, and is the store as it stands at the last step. Begin writes
     * the audit entry (may be NULL), durably. At most one is made at a time; after a failure of
     * begin or a step none is, nothing of it is left, and ERR_FULL is told while the store itself
     * still has room. At its end the caller gets a file without a name, open for reading, to
     * close. */
    enum err (*backup_begin)(struct store *s, const struct audit *audit, struct error *e);
    enum err (*backup_step)(struct store *s, struct backup_step *b, struct error *e);
    void (*backup_end)(struct store *s); /* gives it up; harmless if there is none */
};

/* Every body begins with this. */
struct store {
    const struct store_ops *ops;
    bool shared; /* other nodes may work on it at the same time; false: a lock excludes them */
    /* What it acknowledges may be lost in a crash: the log says by which setting. Any thread. */
    atomic_bool at_risk;
};

/* Times of submission rise with seq, but for the clocks of nodes that disagree: by less than this.
 */
#define SUBMITTED_SLACK_MS INT64_C(60000)

enum {
    PAYLOAD_INLINE_MAX = 2048,          /* longer values go to the payload table */
    PAYLOAD_NUMBER_MAX = (1 << 20) - 1, /* within one task; beyond it a change is ERR_INVALID */
    ROW_SIZE_MAX = 64 << 20,            /* of a change with its payloads; beyond it ERR_TOO_BIG */
};

#endif
