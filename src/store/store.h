#ifndef STORE_STORE_H
#define STORE_STORE_H

/*
 * The state store: durable home of tasks and workflows. This is the whole interface, and all that
 * a body (sqlite/, postgres/, memory/) implements. It is synchronous; in the server it is called on
 * the store thread alone, but for `reading`, in the simulation by the one thread that there is.
 *
 * Fencing: every change of a task names the revision on which it was decided, and raises it by
 * one. A change whose revision is not that of the row does nothing and ends ERR_CONFLICT. Leases
 * are for liveness only.
 *
 * A batch is one transaction. Each of its changes has an outcome of its own:
 *   ERR_OK        it is durable;
 *   ERR_CONFLICT  the row has another revision, or (insert) the id exists, or (update) is gone;
 *   ERR_TAKEN     it was to take a lock (lock_move) that has no room; `lock_holder` has it
 *   ERR_INVALID, ERR_TOO_BIG  this change alone cannot be stored; the others are not concerned;
 *   ERR_FULL, ERR_IO, ERR_BUSY, ...  nothing of the batch was stored, of that we are certain;
 *   ERR_UNKNOWN   the commit itself failed: it may or may not be durable. Drop what is in memory
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
#include "store/rows/access.h"
#include "store/rows/alert.h"
#include "store/rows/audit.h"
#include "store/rows/backup.h"
#include "store/rows/census.h"
#include "store/rows/item.h"
#include "store/rows/message.h"
#include "store/rows/node.h"
#include "store/rows/notice.h"
#include "store/rows/operation.h"
#include "store/rows/overrun.h"
#include "store/rows/retire.h"
#include "store/rows/schedule.h"
#include "store/rows/session.h"
#include "store/rows/stopped.h"
#include "store/rows/submission.h"
#include "store/rows/task.h"
#include "store/rows/workflow.h"

struct store;

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
    bool release;     /* REQUEST */
    bool drops_waits; /* UPDATE, REQUEST: the row that it changes waits for several; those waits are
                         deleted. Then, and in an INSERT, row.waits are inserted */
    bool drops_overruns; /* UPDATE: what was counted of it in `overrun` is deleted */
    bool wake_moved; /* UPDATE: row.wake_at differs from what the row holds; if false the column (an
                        index) is left alone */
    /* INSERT, UPDATE; REQUEST: LOCK_QUIT alone, with `release`. A row that begins to wait for its
     * lock, or waits on, needs nothing here. */
    enum lock_move lock_move;
    struct slice lock_holder; /* out, of ERR_TAKEN: the task that has held it for longest */
    struct task_row row;
    const struct audit *audits; /* of what people did to it in this change, in that order */
    size_t audit_count;
    /* Its record is shown as soon as it is durable. Then `operations` are the entries of the audit
     * of its task as of this transaction, newest first, TASK_OPERATIONS_MAX at most; only valid
     * with the outcome ERR_OK. */
    bool shows_operations;
    struct audit_page operations;   /* out */
    const struct message *messages; /* that report it, in their order; their `task` is the row's */
    size_t message_count;
    int64_t first_message; /* out: `seq` of the first of them; the others follow. 0: not reported by
                            * this store */
    /* INSERT: seq of the row of table submission that becomes this task; it is deleted with it. If
     * it does not wait there any more, nothing is done: ERR_BUSY. 0: none. */
    int64_t submission;
    /* UPDATE: seqs of the notices on which it was decided; they are deleted with it. If one of them
     * is not to be decided any more, nothing is done: ERR_CONFLICT. */
    const int64_t *notices;
    size_t notice_count;
    /* INSERT, UPDATE: what the task tells others of its family, and its new children. Both are
     * inserted with it, if it is done; `seq` of these rows is ignored, and `at` of notices where
     * the store has a clock. A child whose `key` was inserted before is skipped. */
    const struct notice_row *tells;
    size_t tell_count;
    const struct submission_row *children;
    size_t child_count;
    enum err outcome; /* set by commit */
};

/* A task with what people did to it, as `records` reads it. */
struct task_record {
    struct slice id;
    struct arena *arena; /* in: of all that is read of it */
    struct task_row row;
    struct audit_page operations; /* newest first, TASK_OPERATIONS_MAX at most */
    struct reservation gone;      /* as in struct reading */
    bool left;                    /* there was no room for it: nothing was read of it */
    enum err err;
    struct error error;
};

struct batch {
    struct change *changes;
    size_t change_count;
    struct claim *claims; /* done after the changes, in the same transaction */
    size_t claim_count;
    const struct fence *fence; /* may be NULL */
};

/*
 * The capabilities. Each is a table of its own, to which struct store_ops points.
 */

/* Messages to submitters. The cost of a read depends on the number of messages that are asked for,
 * not on the number that are stored. */
struct store_outbox_ops {
    enum err (*read)(struct store *s, struct outbox_read *r, struct arena *a, struct error *e);
    /* One transaction, which ends with ERR_CONFLICT if the fence (may be NULL) says so. A repeated
     * call does no harm. The list is in the order of seq. */
    enum err (*settle)(struct store *s, const struct settlement *list, size_t count,
                       const struct fence *fence, struct error *e);
    enum err (*targets)(struct store *s, const struct target_query *q, struct arena *a,
                        struct outbox_target **ret, size_t *ret_count, struct error *e);
    enum err (*list)(struct store *s, const struct outbox_query *q, struct arena *a,
                     struct message_page *ret, struct error *e);
    enum err (*apply)(struct store *s, struct outbox_verb *v, struct error *e);
    enum err (*census)(struct store *s, size_t most, struct outbox_census *ret, struct error *e);
};

/* Submissions by SQL, and what the database knows of workflows to check them. */
struct store_submission_ops {
    /* Waiting submissions, oldest first; see struct submission_take. */
    enum err (*take)(struct store *s, struct submission_take *t, struct arena *a, struct error *e);
    /* One transaction. A submission that no longer waits is left alone. */
    enum err (*settle)(struct store *s, const struct submission_verdict *list, size_t count,
                       struct error *e);
    /* Inserts rows in one transaction; their seq is ignored. A row whose key exists is skipped.
     * ERR_INVALID: one of them cannot be stored. */
    enum err (*put)(struct store *s, const struct submission_row *rows, size_t count,
                    struct error *e);
    enum err (*list)(struct store *s, const struct submission_query *q, struct arena *a,
                     struct submission_page *ret, struct error *e);
    /* Retries or drops refused submissions. ERR_NOT_FOUND: there is no such refused submission. */
    enum err (*apply)(struct store *s, struct submission_verb *v, struct error *e);
    /* Stores the inputs of these definitions, unless they are stored already. */
    enum err (*describe)(struct store *s, const struct workflow_inputs *list, size_t count,
                         struct error *e);
};

/* What tasks are told from outside their own changes. */
struct store_notice_ops {
    enum err (*read)(struct store *s, struct notice_read *n, struct arena *a, struct error *e);
    /* The refused ones, by seq. */
    enum err (*refused)(struct store *s, struct notice_read *n, struct arena *a, struct error *e);
    /* For each task: when the first of its notices that are to be decided was inserted; 0: there
     * is none. */
    enum err (*told)(struct store *s, const struct slice *ids, size_t count, int64_t *ret_at,
                     struct error *e);
    /* One transaction. A notice that is not to be decided any more is left alone. */
    enum err (*settle)(struct store *s, const struct notice_verdict *list, size_t count,
                       struct error *e);
    /* Inserts rows in one transaction; their seq is ignored. */
    enum err (*put)(struct store *s, const struct notice_row *rows, size_t count, struct error *e);
};

/* Alerts, and the stopped tasks for which they are opened. */
struct store_alert_ops {
    /* Tasks in error that were not closed, in the order of (ended_at, seq), after that place. */
    enum err (*stopped)(struct store *s, int64_t after_ended_at, int64_t after_seq, size_t limit,
                        struct arena *a, struct stopped_page *ret, struct error *e);
    /* Inserts or replaces an alert by its id; an acknowledgement stays, unless the row lifts it.
     * ERR_CONFLICT: another alert of its group is live. */
    enum err (*put)(struct store *s, const struct alert_row *row, struct error *e);
    enum err (*list)(struct store *s, const struct alert_query *q, struct arena *a,
                     struct alert_page *ret, struct error *e);
    /* By audit->actor, for audit->reason, at audit->at; the audit is written if the alert was not
     * acknowledged before. ERR_NOT_FOUND; ERR_CONFLICT: it is resolved. */
    enum err (*acknowledge)(struct store *s, struct slice id, const struct audit *audit,
                            struct error *e);
};

/* Operations: verbs applied to many tasks. */
struct store_operation_ops {
    /* Inserts an operation (revision 1; ERR_CONFLICT if the id exists), or replaces all of it but
     * seq if the stored revision is one less (ERR_CONFLICT otherwise). `audit` may be NULL. */
    enum err (*put)(struct store *s, const struct operation_row *row, const struct audit *audit,
                    struct error *e);
    enum err (*list)(struct store *s, const struct operation_query *q, struct arena *a,
                     struct operation_page *ret, struct error *e);
};

/* Schedules. The submissions of a change are inserted in its transaction. */
struct store_schedule_ops {
    /* Changes in one transaction, which ends with ERR_CONFLICT if the fence (may be NULL) says so.
     * Each says whether it was done; of one that was not, nothing is. ERR_INVALID: one of them
     * cannot be stored. */
    enum err (*write)(struct store *s, struct schedule_change *list, size_t count,
                      const struct fence *fence, struct error *e);
    enum err (*look)(struct store *s, struct schedule_look *l, struct arena *a, struct error *e);
    enum err (*list)(struct store *s, const struct schedule_query *q, struct arena *a,
                     struct schedule_page *ret, struct error *e);
    /* ERR_NOT_FOUND if there is none. */
    enum err (*version)(struct store *s, struct slice name, int64_t version, struct arena *a,
                        struct schedule_version_row *ret, struct error *e);
    /* With its versions. ERR_NOT_FOUND if there is none. */
    enum err (*remove)(struct store *s, struct slice name, const struct audit *audit,
                       struct error *e);
};

/* Deletion of ended tasks. Their ids stay reserved for a while. */
struct store_retention_ops {
    /* Finds tasks that may be deleted. */
    enum err (*look)(struct store *s, struct retire_look *r, struct arena *a, struct error *e);
    /* Deletes ended tasks with their payloads and tags and reserves their ids, in one transaction.
     * A task that was locked or changed since it was found is left alone, without waiting for it.
     * After a failure nothing was deleted (ERR_UNKNOWN: nothing or all). */
    enum err (*retire)(struct store *s, struct retire *r, struct error *e);
    /* The reservation of an id for which `get` found nothing; it may have expired. ERR_NOT_FOUND:
     * there was no such task, or its reservation was deleted. */
    enum err (*reserved)(struct store *s, struct slice id, struct arena *a, struct reservation *ret,
                         struct error *e);
    /* Deletes at most `limit` reservations that have expired at `now`, and lets at most as many of
     * roots expire whose last child is gone; *ret_count: how many of that of which there were more.
     */
    enum err (*sweep)(struct store *s, int64_t now, size_t limit, size_t *ret_count,
                      struct error *e);
};

/* Counts of tasks. A body that would have to read all tasks for that has none. */
struct store_count_ops {
    enum err (*census)(struct store *s, int64_t now, size_t most, struct arena *a,
                       struct census *ret, struct error *e);
    /* The next part of a count by owner. */
    enum err (*owners)(struct store *s, struct owners_part *p, struct arena *a, struct error *e);
};

/* What nodes that share a store know of each other. */
struct store_node_ops {
    /* Never seizes a lease: if an older boot of this node holds it, that keeps it. */
    enum err (*survey)(struct store *s, struct survey *v, struct arena *a, struct error *e);

    /* As they are now. */
    enum err (*generations)(struct store *s, struct generations *ret, struct error *e);

    /* Workflows stored after that generation (0: all), those of one name in the order of their
     * versions, and the generation up to which the list is complete. */
    enum err (*workflow_since)(struct store *s, uint64_t after, struct arena *a,
                               struct workflow_row **ret, size_t *ret_count,
                               uint64_t *ret_generation, struct error *e);

    /* Writes what a node reports of itself: name to draining. Does nothing if the row belongs to a
     * later boot. */
    enum err (*put)(struct store *s, const struct node_row *row, struct error *e);

    /* All nodes but forgotten ones (NODE_FORGOTTEN_MS), by name, as of `now`. */
    enum err (*list)(struct store *s, int64_t now, struct arena *a, struct node_row **ret,
                     size_t *ret_count, struct error *e);
};

/*
 * A copy of the whole store. It is made in steps between other calls, and is the store as of the
 * last step. `begin` writes the audit entry (may be NULL), durably. At most one copy is made at a
 * time. After a failure of `begin` or `step` nothing of it is left; ERR_FULL is returned while the
 * store itself still has room. The last step returns a file without a name, open for reading, which
 * the caller closes.
 */
struct store_backup_ops {
    enum err (*begin)(struct store *s, const struct audit *audit, struct error *e);
    enum err (*step)(struct store *s, struct backup_step *b, struct error *e);
    void (*end)(struct store *s); /* gives up the copy; harmless if there is none */
};

/* Sessions of the console, and codes: see rows/session.h. */
struct store_session_ops {
    /* Inserts one. `code`: the hash of the code that becomes it, or NULL; ERR_NOT_FOUND: there is
     * no such code, or it has expired. Deletes what has expired at row->created_at, and the oldest
     * ones of the token beyond SESSIONS_OF_TOKEN. */
    enum err (*put)(struct store *s, const struct session_row *row, const unsigned char *code,
                    const struct audit *audit, struct error *e);
    enum err (*remove)(struct store *s, struct slice id, const struct audit *audit,
                       struct error *e); /* ERR_NOT_FOUND */
    /* All of them, also those that have expired. */
    enum err (*list)(struct store *s, struct arena *a, struct session_row **ret, size_t *ret_count,
                     struct error *e);
};

/* Items at rest: see rows/item.h. They are written by changes of their task. */
struct store_item_ops {
    enum err (*read)(struct store *s, struct item_read *r, struct arena *a, struct error *e);
    enum err (*outputs)(struct store *s, struct item_outputs *o, struct arena *a, struct error *e);
};

/* Locks of tasks: see rows/lock.h. They are taken and given back by changes and claims. */
struct store_lock_ops {
    enum err (*list)(struct store *s, const struct lock_query *q, struct arena *a,
                     struct lock_page *ret, struct error *e);
    enum err (*held)(struct store *s, struct slice lock, struct arena *a, struct lock_held *ret,
                     struct error *e);
};

/* What every body has, and pointers to what it may lack; NULL: it lacks that capability. */
struct store_ops {
    void (*close)(struct store *s);

    /* ERR_OK if the transaction was committed (check each outcome); otherwise the outcome of all of
     * its changes, and *e says why. Claims then have no rows. */
    enum err (*commit)(struct store *s, struct batch *b, struct arena *a, struct error *e);

    /* Writes a little, durably, to find out whether the store takes changes (again). */
    enum err (*probe)(struct store *s, struct error *e);

    /* ERR_NOT_FOUND if there is none. Payloads are read with it. */
    enum err (*get)(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e);

    /* Revision and state of `count` tasks, for ret[count]: how a node learns what others do to
     * tasks that it does not own. */
    enum err (*glance)(struct store *s, const struct slice *ids, size_t count, struct arena *a,
                       struct glance *ret, struct error *e);

    /* Rows with wake_at <= now, earliest first, after (after_wake_at, after_seq), with their groups
     * of steps. */
    enum err (*overdue)(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e);

    /* One page of a listing. Documents are read, payloads are not (groups of steps: on request). */
    enum err (*list)(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e);

    /* Stores a definition under the next version of its name. If the newest version has the same
     * text, nothing is stored: *ret_new is false and *ret_version its number. `audit` (may be NULL)
     * is written if a version was stored; its reason is set here: "order, version 3". */
    enum err (*workflow_put)(struct store *s, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e);
    enum err (*workflow_get)(struct store *s, struct slice name, int64_t version, struct arena *a,
                             struct workflow_row *ret, struct error *e); /* version 0: the newest */
    enum err (*workflow_list)(struct store *s, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count,
                              struct error *e); /* all versions, by name, version */

    /* Stores a token. ERR_CONFLICT if the name is taken (unless `replace`), or the hash. */
    enum err (*token_put)(struct store *s, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e);

    /* Replaces the token of that name if it has the hash `was`. ERR_NOT_FOUND: there is none with
     * both. */
    enum err (*token_change)(struct store *s, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e);

    /* ERR_NOT_FOUND; ERR_CONFLICT if no other admin's token would be valid at `now`. */
    enum err (*token_delete)(struct store *s, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e);
    enum err (*token_list)(struct store *s, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e); /* all of them, by name */
    enum err (*audit_list)(struct store *s, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e);
    /* Writes down what changes nothing in the store. */
    enum err (*audit_put)(struct store *s, const struct audit *audit, struct error *e);

    /* Writes one part of an agent's row; `audit` may be NULL. */
    enum err (*agent_put)(struct store *s, const struct agent_change *c, const struct audit *audit,
                          struct error *e);

    /* Agents that were changed after that generation (0: all), by name, and the generation up to
     * which the list is complete. Where the store is not shared: always all. */
    enum err (*agent_since)(struct store *s, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e);

    /* Counts an evaluation that takes too long, durably, whether or not its task exists yet, and
     * deletes expired counts (OVERRUN_KEPT_MS). */
    enum err (*overrun_count)(struct store *s, const struct overrun_count *c, struct error *e);

    /* The overruns of all tasks, the latest first, at most OVERRUNS_MAX. There are seldom any. */
    enum err (*overrun_list)(struct store *s, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e);

    /* Rows of that owner with a request, oldest task first, after after_seq. Another node's
     * supervisor may have written it; where the store is not shared there are none. */
    enum err (*requested)(struct store *s, struct slice locked_by, int64_t after_seq, size_t limit,
                          struct arena *a, struct row_page *ret, struct error *e);

    /* Takes or renews a lease if it is free, expired, or the holder's own. *ret is the lease
     * afterwards, whoever holds it. Where a lock excludes other servers it is always the caller's,
     * and nothing is written. */
    enum err (*lease)(struct store *s, const struct lease_try *want, struct arena *a,
                      struct lease *ret, struct error *e);

    /* 32 secret random bytes, made with the store, the same for all nodes: the key of tokens. */
    const unsigned char *(*secret)(struct store *s);

    /* The UUID of the installation, made with the store. Its nodes, backups and restored copies
     * have the same one. */
    const char *(*installation)(struct store *s);

    /* The number of this start of this node: one more than at the last one. */
    uint64_t (*boot)(struct store *s);

    /* Until when, ms UTC, a server used the store before this start; 0: unknown. A lower bound that
     * is close to the truth. */
    int64_t (*used_until)(struct store *s);

    /* ---- capabilities ---- */

    const struct store_outbox_ops *outbox;
    const struct store_submission_ops *submissions;
    const struct store_notice_ops *notices;
    const struct store_alert_ops *alerts;
    const struct store_lock_ops *locks;
    const struct store_item_ops *items;
    const struct store_operation_ops *operations;
    const struct store_schedule_ops *schedules;
    const struct store_retention_ops *retention;
    const struct store_count_ops *counts;     /* not of memory */
    const struct store_session_ops *sessions; /* the same */
    const struct store_node_ops *nodes;       /* where the store is shared */
    const struct store_backup_ops *backup;    /* of SQLite */

    /* ---- each of these alone may be NULL ---- */

    /* `get` of several tasks in one round trip. If it fails, nothing was read. NULL: there are no
     * round trips to save. */
    enum err (*get_many)(struct store *s, struct reading *r, size_t count, struct arena *a,
                         struct error *e);

    /* Records of several tasks in one round trip. Those that do not fit into so many bytes are
     * `left`, but never the first one. If it fails, nothing was read. NULL: there are no round
     * trips to save. */
    enum err (*records)(struct store *s, struct task_record *list, size_t count, size_t bytes_max,
                        struct error *e);

    /* Returns the space of deleted tasks in small parts; some is kept for what is stored next.
     * NULL: the database does so, or nothing is on a disk. */
    enum err (*shrink)(struct store *s, struct shrink *k, struct error *e);

    /* A descriptor that becomes readable when an application may have added a submission. The
     * caller reads it empty; the store closes it. It is only a hint, which may be missed: the
     * caller polls as well, seldom. -1: there is none. NULL: no application can reach the store. */
    int (*watch)(struct store *s);

    /* The time by the store's own clock, ms UTC, as this process knows it: it never goes backwards,
     * may be off by one round trip, and is measured with every lease. From any thread, at any time,
     * without I/O. NULL: the node's clock counts. */
    int64_t (*now)(struct store *s);

    /* How often this process had the disk sync what was written. From any thread. NULL: the
     * database syncs. */
    uint64_t (*syncs)(struct store *s);

    /* A second handle on the store, for one other thread, which only reads. It sees all that was
     * committed before a call began, and neither waits for the store's own thread nor blocks it. It
     * has close, is_usable, get, list, audit_list and records, of the capabilities
     * retention->reserved, submissions->list, outbox->targets and ->list, alerts->list,
     * operations->list, schedules->list and ->version, locks, items, nodes->list, and counts; where
     * the store lacks a capability, so does it. It is made and closed while nothing else uses the
     * store, and closed first. NULL: there is none. */
    struct store *(*reading)(struct store *s);
    /* For such a handle: the calls between these two see one moment, in one transaction. If one of
     * them fails, the next one may see a later moment. They cannot be nested. NULL: each call sees
     * a moment of its own. */
    void (*snapshot)(struct store *s);
    void (*snapshot_end)(struct store *s);

    /* False: this handle cannot recover; only the store itself can. */
    bool (*is_usable)(struct store *s);
};

/* Every body begins with this. */
struct store {
    const struct store_ops *ops;
    bool shared; /* other nodes may work on it at the same time; false: a lock excludes them */
    /* What it acknowledges may be lost in a crash: the log says by which setting. Any thread. */
    atomic_bool at_risk;
    /* Another program has kept it from writing since then: steady, ms; 0: it does not. */
    atomic_int_fast64_t held_since;
};

#endif
