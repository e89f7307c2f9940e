#ifndef STORE_STORE_H
#define STORE_STORE_H

/*
 * The state store: durable home of tasks and workflows. This is the whole interface, and all that
 * a body (sqlite.c, memory.c) implements. It is synchronous; in the server it is called on the
 * store thread alone, but for `reading`, in the simulation by the one thread that there is.
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
#include "store/rows/access.h"
#include "store/rows/alert.h"
#include "store/rows/audit.h"
#include "store/rows/backup.h"
#include "store/rows/census.h"
#include "store/rows/message.h"
#include "store/rows/node.h"
#include "store/rows/operation.h"
#include "store/rows/overrun.h"
#include "store/rows/retire.h"
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
    struct task_row row;
    const struct audit *audits; /* of what people did to it in this change, in that order */
    size_t audit_count;
    const struct message *messages; /* that tell of it, in their order; their `task` is the row's */
    size_t message_count;
    int64_t first_message; /* out: `seq` of the first of them; the others follow. 0: the store does
                              not say */
    /* INSERT: seq of the row of table submission that becomes this task; it is deleted with it. If
     * it does not wait there any more, nothing is done: ERR_BUSY. 0: none. */
    int64_t submission;
    enum err outcome; /* set by commit */
};

struct batch {
    struct change *changes;
    size_t change_count;
    struct claim *claims; /* done after the changes, in the same transaction */
    size_t claim_count;
    const struct fence *fence; /* may be NULL */
};

struct store_ops {
    void (*close)(struct store *s);

    /* A second way to the store, for one other thread, which only reads: it sees all that was
     * committed before a call began, and neither waits for the store's own thread nor keeps that
     * waiting. Of what is in this table it has close, is_usable, get, reserved, list, census,
     * owners, audit_list, submissions_list, outbox_targets, outbox_list, alert_list, operation_list
     * and node_list (the last one where the store has it). It is closed before the store, and made
     * when nobody else is at work on that. NULL: there is none. */
    struct store *(*reading)(struct store *s);
    /* Of such a one. The calls between these two read one moment, in one transaction. If one of
     * them fails, the next one may read a later moment. They cannot be nested. NULL: each call
     * reads a moment of its own. */
    void (*snapshot)(struct store *s);
    void (*snapshot_end)(struct store *s);
    /* Of such a one. False: only the store itself can do something about it now, so it is the one
     * to be asked. */
    bool (*is_usable)(struct store *s);

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

    /* Rows with wake_at <= now, earliest first, from (after_wake_at, after_seq) on, exclusive, with
     * their groups of steps. */
    enum err (*overdue)(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e);

    /* Pages of a listing; docs are read, payloads are not (groups of steps: if it asks for them).
     */
    enum err (*list)(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e);

    /* Counts. NULL in a body that cannot do so without reading all that is stored. */
    enum err (*census)(struct store *s, int64_t now, size_t most, struct arena *a,
                       struct census *ret, struct error *e);
    /* The next part of a count by owner. NULL where there is no census. */
    enum err (*owners)(struct store *s, struct owners_part *p, struct arena *a, struct error *e);

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
    /* Stores a token in the place of the one of its name, if that has this hash. ERR_NOT_FOUND:
     * there is none with both. */
    enum err (*token_change)(struct store *s, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e);
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

    /* Counts an evaluation that takes too long, durably, whether or not its task is there yet;
     * OVERRUN_KEPT_MS says what else goes then. */
    enum err (*overrun_count)(struct store *s, const struct overrun_count *c, struct error *e);
    /* Of all tasks, the latest first, at most OVERRUNS_MAX: mostly none. */
    enum err (*overrun_list)(struct store *s, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e);

    /* Messages. Reading is by the number of what is asked for, however much is stored. */
    enum err (*outbox_read)(struct store *s, struct outbox_read *r, struct arena *a,
                            struct error *e);
    /* All of it in one transaction, which ends ERR_CONFLICT if the fence (may be NULL) says so.
     * What was done before is done again without harm. The list is in the order of seq. */
    enum err (*outbox_settle)(struct store *s, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e);
    enum err (*outbox_targets)(struct store *s, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e);
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

    /* The UUID of this installation, made with the store and the same for all of its nodes. A
     * backup and what is restored from it have the same one. */
    const char *(*installation)(struct store *s);

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

    /* How often it had the disk make sure of what was written, in this process. From any thread.
     * NULL: somebody else does that. */
    uint64_t (*syncs)(struct store *s);

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
    /* Another program has kept it from writing since then: steady, ms; 0: it does not. */
    atomic_int_fast64_t held_since;
};

#endif
