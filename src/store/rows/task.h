#ifndef STORE_ROWS_TASK_H
#define STORE_ROWS_TASK_H

/* Tasks as the store holds them, and what is asked of them. */

#include "base/err.h"
#include "core/task.h"
#include "store/rows/item.h"
#include "store/rows/lock.h"
#include "store/rows/retire.h"

/* A row of the payload table: a value too long for the task's document, or a group of its steps.
 * Inserted once and never changed. Those of the values of an item go when it comes to rest. */
struct payload {
    uint32_t number; /* from 1 within the task */
    struct slice json;
};

/* What a task waits for that waits for no agent: a time, or (steps that wait, and nothing else) the
 * moment of a `wait`. Those are claimed apart: very many may fall due at once. No agent has such a
 * name. */
#define WAITING_TIME SLICE("time")
#define WAITING_WAIT SLICE("@wait")

/* The same of a task that waits for signals or people alone. No claim looks for it: the node that
 * takes the signal or vote goes on with the task, and the supervisor releases it when a complete-by
 * passes. */
#define WAITING_SIGNAL SLICE("@signal")

/* Before the name and key of the lock in whose queue a task waits: "@lock/NAME/KEY". */
#define WAITING_LOCK "@lock/"

/* A row of the table `wait`: a task that waits for several is claimed by whichever comes first. */
struct task_wait {
    struct slice agent; /* or WAITING_TIME */
    int64_t rank;       /* as in struct task_row */
};

/* A row of the task table. Times are ms UTC, 0 is stored as NULL. */
struct task_row {
    int64_t seq; /* order of insertion; given by the store. 0 in a change of an existing row if it
                  * is not known; a store may find the row faster by it */
    struct slice id, workflow;
    int64_t version;
    uint64_t revision; /* 1 at insertion */
    enum task_state state;
    enum direction direction;
    int priority;
    struct slice locked_by; /* "node/boot"; NONE: unlocked */
    int64_t complete_by, wake_at, not_before;
    /* The agent that has no place for it, or one of the WAITING_ words; NONE while it is locked. A
     * task that waits for several has all their names here, each behind a comma (",bank,time"), and
     * `waits`. */
    struct slice waiting_for;
    int64_t rank;         /* order of claims, least first; for times the moment it is due */
    struct slice request; /* of the supervisor, JSON; NONE */
    uint32_t failure_count;
    int64_t submitted_at, started_at, ended_at;
    int64_t paused_at, closed_at; /* see struct task */
    struct slice lock;            /* "NAME/KEY"; NONE: it needs none */
    int64_t lock_max;             /* how many may hold it together with this task */
    uint32_t lock_mode;           /* enum lock_mode. Claims alone change it */
    int64_t lock_since;           /* when it took it; 0: it does not hold it */
    struct slice asked; /* groups of persons who are asked by steps of it: ",cfo,finance,"; NONE:
                         * nobody is */
    struct slice parent, root;        /* ids, of a child; NONE: it is none */
    struct slice reply_to, tags, doc; /* tags: JSON object or NONE */
    /* To insert with it; read by get and claims: all of them, by their numbers. With `groups_only`
     * only the groups of steps are read (codec/codec.h), which the document cannot be understood
     * without. */
    const struct payload *payloads;
    size_t payload_count;
    bool groups_only;
    const uint32_t *dropped_payloads; /* numbers of those to delete with it; never read */
    size_t dropped_payload_count;
    const struct task_wait *waits; /* to insert with it; never read */
    size_t wait_count;
    const struct item_row *items; /* to insert or replace with it, those of a list next to each
                                   * other; never read */
    size_t item_count;
};

/*
 * The columns of the table `task`, from which both SQL bodies make column lists, parameters,
 * arrays, binding and reading. seq and id come first and are named by hand. A new column is a line
 * at the end of this table, a field above, and a migration of each schema.
 *
 * X(name, type, how). The name is that of the column and of the field. The type is one of
 *   text       a slice; NONE is NULL
 *   number     an integer, of whatever size the field has
 *   time       ms UTC; 0 is NULL
 *   state, direction    an enum, stored as a text
 * and how it changes:
 *   FIXED      never
 *   REVISION   with every change
 *   PLAIN      by an update
 *   INDEXED    by an update, and an index covers it: an UPDATE names it only if it moves
 *   RELEASED   as INDEXED, and by a request that releases the task
 *   REQUESTED  by an update and by a request
 *   WAKE       by an update or a request that moves it
 *
 * S stands between two columns: ", " in a list of SQL, nothing between statements of C.
 */
/* clang-format off */
#define TASK_FIXED_COLUMNS(X, S)             \
    X(workflow,      text,      FIXED)     S \
    X(version,       number,    FIXED)     S \
    X(submitted_at,  time,      FIXED)     S \
    X(reply_to,      text,      FIXED)     S \
    X(tags,          text,      FIXED)     S \
    X(lock,          text,      FIXED)     S \
    X(lock_max,      number,    FIXED)     S \
    X(lock_mode,     number,    FIXED)     S \
    X(parent,        text,      FIXED)     S \
    X(root,          text,      FIXED)
#define TASK_CHANGING_COLUMNS(X, S)          \
    X(revision,      number,    REVISION)  S \
    X(state,         state,     RELEASED)  S \
    X(direction,     direction, PLAIN)     S \
    X(priority,      number,    PLAIN)     S \
    X(locked_by,     text,      RELEASED)  S \
    X(complete_by,   time,      PLAIN)     S \
    X(wake_at,       time,      WAKE)      S \
    X(not_before,    time,      PLAIN)     S \
    X(waiting_for,   text,      RELEASED)  S \
    X(rank,          number,    RELEASED)  S \
    X(request,       text,      REQUESTED) S \
    X(failure_count, number,    PLAIN)     S \
    X(started_at,    time,      PLAIN)     S \
    X(ended_at,      time,      INDEXED)   S \
    X(doc,           text,      PLAIN)     S \
    X(paused_at,     time,      PLAIN)     S \
    X(closed_at,     time,      INDEXED)   S \
    X(lock_since,    time,      PLAIN)     S \
    X(asked,         text,      INDEXED)
/* clang-format on */
#define TASK_COLUMNS(X, S) TASK_FIXED_COLUMNS(X, S) S TASK_CHANGING_COLUMNS(X, S)

/* The position of each column in a result. */
enum task_column {
    task_column_seq,
    task_column_id,
#define X(name, type, how) task_column_##name,
    TASK_COLUMNS(X, )
#undef X
        TASK_COLUMN_COUNT
};

/* The names in `waiting_for` are cut off behind this many bytes: an index has to hold them. */
enum { WAITING_FOR_MAX = 1000 };

/* Does the row, as it is stored, have waits? */
bool row_waits_for_several(const struct task_row *row);
/* Is the group asked by a step of it, or will it be? */
bool row_asks(const struct task_row *row, struct slice group);
/* Is the agent (or "time") the one, or one of those, that it waits for? */
bool row_waits_for(const struct task_row *row, struct slice agent);

/* Does it wait in the queue of its lock? */
bool row_queues(const struct task_row *row);

enum claim_kind {
    CLAIM_AGENT, /* pending, unlocked, waiting_for == agent; least rank first */
    CLAIM_TIME,  /* the same, and rank <= now; agent: WAITING_TIME or WAITING_WAIT */
    CLAIM_LOCK, /* tasks that wait for locks with room, by rank. They take the locks. And tasks that
                   are replaced, whether there is room or not: they take none, and their lock_mode
                   becomes LOCK_REPLACED. Only locks are checked that were given back, or that a
                   task began to wait for */
    CLAIM_BOOT, /* locked by an older boot of this node: "node/" + a number below ours. Taken over
                  as they are, running steps included */
    CLAIM_NODE, /* locked by an owner that no longer holds its node's lease (NODE_LEASE), or whose
                  lease has run out (by the store's clock; by `now` where it has none). Taken over
                  in the same way. None where the store is not shared */
};

/* Takes up to `limit` tasks for `locked_by`: state processing (compensating where direction is
 * undo), started_at set if it was not, waiting_for NULL, revision raised. CLAIM_BOOT and CLAIM_NODE
 * keep the state. */
struct claim {
    enum claim_kind kind;
    struct slice agent;
    bool among; /* CLAIM_AGENT, CLAIM_TIME: of the tasks that wait for several, by their waits;
                   otherwise of those that wait for this alone */
    struct slice locked_by; /* "node/boot" of the claimer */
    int64_t now;
    int64_t rank_from, rank_before; /* CLAIM_AGENT: only of these ranks; before 0: to the last */
    size_t limit;
    struct task_row *rows; /* out: the rows as they are after the claim */
    size_t row_count;      /* out */
    bool more;             /* out: there were more than `limit`. CLAIM_LOCK: perhaps, or another
                            * transaction is changing one of them */
    int64_t next_rank;     /* out, CLAIM_TIME: when the next one is due; 0: there is none */
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

/* Filter for a property of a task. */
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
 * The current steps of a task are those that are running or undoing, have failed, or wait for
 * another try or a time.
 */
struct list_query {
    uint32_t states;       /* of (1 << enum task_state); 0: any */
    struct slice workflow; /* NONE: any */
    /* Tasks of one of these workflows; "shop-*": of all whose names begin so. NULL: any */
    const struct slice *within;
    size_t within_count;
    int64_t version;    /* 0: any */
    struct slice error; /* code of the task's error; NONE: any, or no error */
    /* One of its current steps is among these, or it waits for a place at that agent. None, and
     * NONE: any task. */
    const struct list_place *places;
    size_t place_count;
    struct slice agent;
    int64_t ended_after, ended_before; /* at or after, before; 0: any, or not ended */
    const struct slice *ids;           /* one of these, all different; NULL: any */
    size_t id_count;
    struct slice id_prefix; /* what their ids begin with; NONE: anything */
    const struct tag *tags;
    size_t tag_count;
    int64_t submitted_after, submitted_before; /* at or after, before; 0: any */
    enum list_wish paused, closed;
    enum list_wish children;   /* ONLY: children; WITHOUT: no children */
    struct slice parent, root; /* only the children of this task, only the family of this root
                                * without the root; NONE: any */
    bool asked;         /* only tasks of which somebody is asked; not together with ids or tags */
    bool groups;        /* rows come with their groups of steps, to be decoded */
    int64_t before_seq; /* seq below this one; 0: from the newest */
    size_t limit;
    size_t scan_max;   /* rows that are looked at, at most, about; 0: a default. A page may so have
                          less than `limit` rows, none even, with more to come */
    int64_t budget_us; /* how long that may take, about; 0: a default. The same goes for it */
};

/* Is that the name, or, with "*" at its end, what the name begins with? */
bool name_is_like(struct slice name, struct slice pattern);
bool name_is_within(struct slice name, const struct slice *patterns, size_t count);

/* What became of a task, in short. */
struct glance {
    uint64_t revision; /* 0: there is no such task */
    enum task_state state;
};

/* One task, as `get` reads it. */
struct reading {
    struct slice id;
    struct task_row row;
    enum err err;
    struct reservation
        gone; /* of ERR_NOT_FOUND: `until` is not 0 if there was one. For the caller */
    struct error error;
};

/* Times of submission rise with seq, but for the clocks of nodes that disagree: by less than this.
 */
#define SUBMITTED_SLACK_MS INT64_C(60000)

enum {
    PAYLOAD_INLINE_MAX = 2048, /* longer values go to the payload table */
    SIGNAL_INLINE_MAX = 256,   /* ... longer ones of signals */
    PAYLOAD_INPUT = 0, /* no number of one: the input of a step is the task's, which is not long */
    PAYLOAD_FIRST = 1, /* if the task's input was long at first, it is this one; never an item's own
                        * value, since the list of items comes before them */
    PAYLOAD_NUMBER_MAX = (1 << 20) - 1, /* within one task; beyond it a change is ERR_INVALID */
    ROW_SIZE_MAX = 64 << 20,            /* of a change with its payloads; beyond it ERR_TOO_BIG */
};

#endif
