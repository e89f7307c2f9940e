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

enum change_kind {
    CHANGE_INSERT,  /* a new task: row.revision is 1. Conflict if the id exists (or is reserved) */
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
};

struct tag {
    struct slice key, value;
};

/* Of something that a task may be or not. */
enum list_wish { LIST_EITHER, LIST_ONLY, LIST_WITHOUT };

/* What a listing shows: the tasks for which all of it holds, newest first. In which state a task is
 * may change between pages, its place does not: no page repeats or misses one. */
struct list_query {
    uint32_t states;       /* of (1 << enum task_state); 0: any */
    struct slice workflow; /* NONE: any */
    const struct tag *tags;
    size_t tag_count;
    int64_t submitted_after, submitted_before; /* at or after, before; 0: any */
    enum list_wish paused, closed;
    int64_t before_seq; /* seq below this one; 0: from the newest */
    size_t limit;
    size_t scan_max; /* rows that are looked at, at most, about; 0: a default. A page may so have
                        less than `limit` rows, none even, with more to come */
};

/* Before a node's name: the lease that it holds as "node/boot" while it lives. */
#define NODE_LEASE "node/"
/* What the supervisor that leads holds, as "node/boot". */
#define SUPERVISOR_LEASE "supervisor"

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
};

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

/* A part of deleting what ended long ago. Tasks are looked at in the order of their submission, so
 * that it takes no index of its own; it ends at those that were submitted too late to have ended by
 * then. The newest task of all may be left alone whatever it is. */
struct retire {
    int64_t ended_before; /* what ended at this moment, or later, stays */
    uint32_t states;      /* of (1 << enum task_state), out of RETIRE_STATES */
    size_t scan_max;      /* tasks that are looked at, at most */
    int64_t budget_us;    /* how long it may take, about, before it leaves the rest; 0: no matter */
    bool dry;             /* counts, and deletes nothing */
    const struct audit *audit; /* written with it if anything is deleted; may be NULL */
    int64_t after_seq;         /* in: 0 at first; out: where the next part goes on */
    uint64_t count;            /* out: tasks that were deleted, or would be */
    bool more;                 /* out: there may be more behind after_seq */
};

#define RETIRE_STATES (1U << TASK_PROCESSED | 1U << TASK_COMPENSATED | 1U << TASK_ERROR)

/* A part of making a backup. */
struct backup_step {
    int64_t budget_us;   /* how long it may take, about */
    int64_t left, whole; /* out: bytes to be copied yet, and of the whole, as things are now */
    int64_t copied;      /* out: bytes that this step copied; what is written meanwhile adds to
                            `left`, and an undone transaction may even have it begin anew */
    int fd;              /* out: -1: call again. Otherwise it is whole */
};

/* Of one task, as by `get`. */
struct reading {
    struct slice id;
    struct task_row row;
    enum err err;
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

    /* Deletes tasks that are over with their payloads and tags, in a transaction of its own. A row
     * that somebody else has locked is left for the next time, and nobody waits for it. After a
     * failure nothing of this part was deleted (ERR_UNKNOWN: or all of it), and *r is as it was. */
    enum err (*retire)(struct store *s, struct retire *r, struct error *e);

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

    /* Tasks in error that were not closed, in the order of (ended_at, seq), from there on, exclusive. */
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
