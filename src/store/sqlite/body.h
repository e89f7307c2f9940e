#ifndef STORE_SQLITE_BODY_H
#define STORE_SQLITE_BODY_H

/*
 * What the files of the SQLite body share. Inside it, functions return SQLite's own result codes
 * (`rc`, extended); the operations of the interface turn them into an enum err with a story,
 * once, in store_failed(), which also decides whether the connections must be opened again.
 *
 *   folder.c   the data folder: made, locked, the file in it looked at
 *   identity.c which file it is, to notice a copy
 *   schema.c   migrations, and what is read once at start
 *   sql.c      every statement
 *   columns.h  what is made of the columns of store/rows
 *   db.c       a connection and its prepared statements
 *   guard.c    who checkpoints
 *   gather.c   how the WAL is written
 *   others.c   applications that have the file open
 *   row.c      rows bound and read
 *   commit.c   a batch
 *   claim.c    its claims
 *   item.c     items at rest
 *   lock.c     locks that tasks hold and wait for
 *   read.c     get, overdue
 *   list.c     listings
 *   reading.c  a second way to the store, for a thread that only reads
 *   census.c   counts
 *   retire.c   deletes what ended long ago
 *   shrink.c   gives room back
 *   workflow.c definitions
 *   access.c   tokens, and the audit
 *   agent.c    settings and breakers of agents
 *   overrun.c  evaluations that took far too long
 *   outbox.c   messages
 *   bundle.c   those that were not set aside, as they are stored
 *   alert.c    alerts
 *   submission.c  submissions by applications
 *   operation.c  what is done to many tasks
 *   schedule.c when tasks are submitted
 *   backup.c   a copy of the whole, while it is in use
 *   offline.c  checks and copies of a store that is not in use
 *   restore.c  a folder made from a backup
 *   sqlite.c   open, close, maintain, the table of operations
 */

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/uuid.h"
#include "store/sqlite/sqlite.h"

/* Files of the folder that are being made. */
#define BACKUP_PART  "backup.part"
#define RESTORE_PART "restore.part"
#define ASIDE_PREFIX "before-restore-" /* of the folders that keep what a restore replaced */

enum {
    IDENTITY_VERSION = 3,        /* from which on the file knows which one it is */
    APPLICATION_ID = 0x496e7463, /* "Intc" */
    SECRET_SIZE = 32,
    CHECKPOINT_FRAMES = 1024,         /* of a page each: it holds up all commits for some 5 ms */
    WAL_SIZE_KEPT = 64 * 1024 * 1024, /* a longer WAL is cut when it starts anew */
    WAL_FRAME_SIZE = 4096 + 24,
    CHECKPOINT_URGENT_FRAMES = 16384, /* from so many on it is waited for ... */
    START_WAIT_MS = 30000,            /* at the start others are waited for so long */
    CHECKPOINT_WAIT_MS = 1000,        /* ... that others let it begin, at most so long */
    QUIET_MS = 200,                   /* without a change, before the WAL is emptied */
    MARK_EVERY_MS = 1000              /* the server's time goes into the lock file */
};

enum sql {
    SQL_BEGIN,
    SQL_BEGIN_READING,
    SQL_COMMIT,
    SQL_MARK,
    SQL_MARK_END,
    SQL_MARK_UNDO,
    SQL_INSERT,
    SQL_UPDATE, /* four variants of one UPDATE; the first two leave state and owner alone */
    SQL_UPDATE_WAKE,
    SQL_UPDATE_MOVE,
    SQL_UPDATE_MOVE_WAKE,
    SQL_TASK_WRITES_END,
    SQL_REQUEST = SQL_TASK_WRITES_END,
    SQL_RELEASE,
    SQL_PAYLOAD_INSERT,
    SQL_PAYLOAD_DELETE,
    SQL_TAG_INSERT,
    SQL_ITEM_PUT,
    SQL_ITEM_UPDATE,
    SQL_ITEMS_UP,
    SQL_ITEMS_DOWN,
    SQL_ITEMS_TO_UNDO,
    SQL_ITEMS_FAILED,
    SQL_ITEMS_OUTPUTS,
    SQL_CLAIM_WAITING,
    SQL_CLAIM_AMONG,
    SQL_WAITS_INSERT,
    SQL_WAITS_DELETE,
    SQL_CLAIM_OWNED,
    SQL_TAKE,
    SQL_GET,
    SQL_GLANCE,
    SQL_PAYLOADS,
    SQL_PAYLOAD,
    SQL_OVERDUE,
    SQL_SCAN, /* what a listing looks at, newest first: by seq, state, workflow, tag */
    SQL_SCAN_STATE,
    SQL_SCAN_WORKFLOW,
    SQL_SCAN_TAG,
    SQL_SCAN_ASKED,
    SQL_SCAN_PARENT,
    SQL_SCAN_ROOT,
    SQL_SCAN_ID,
    SQL_SCAN_PREFIX,
    SQL_COUNT_PREFIX, /* ids that begin so, up to a number */
    SQL_HAS_TAG,
    SQL_SEQ_BELOW,
    SQL_ROW,
    SQL_RETIRE_SCAN,          /* what is looked at to be deleted, oldest first ... */
    SQL_RETIRE_SCAN_WORKFLOW, /* ... of one workflow */
    SQL_RETIRE_SCAN_ORPHANS,
    SQL_RETIRE_STILL, /* it is as it was when it was looked at */
    SQL_RESERVE,
    SQL_RESERVED,
    SQL_RESERVED_SWEEP,
    SQL_ORPHANED, /* the children of a root are left */
    SQL_ORPHANED_FREE,
    SQL_ORPHANED_END,
    SQL_NEWEST,
    SQL_TAGS_DELETE,
    SQL_PAYLOADS_DELETE,
    SQL_ITEMS_DELETE,
    SQL_TASK_DELETE,
    SQL_CENSUS, /* counts, and for each agent in turn what waits for it */
    SQL_CENSUS_AGENT,
    SQL_CENSUS_WAITING,
    SQL_CENSUS_AGENT_AMONG,
    SQL_CENSUS_AMONG,
    SQL_OWNERS,
    SQL_WORKFLOW_NEWEST,
    SQL_WORKFLOW_INSERT,
    SQL_WORKFLOW_GET,
    SQL_WORKFLOW_LIST,
    SQL_TOKEN_INSERT,
    SQL_TOKEN_CHANGE,
    SQL_TOKEN_DELETE,
    SQL_TOKEN_LAST_ADMIN,
    SQL_TOKEN_LIST,
    SQL_SESSION_SWEEP,
    SQL_SESSION_CODE,
    SQL_SESSION_INSERT,
    SQL_SESSION_DELETE,
    SQL_SESSION_LIST,
    SQL_AUDIT_INSERT,
    SQL_AUDIT_LIST,
    SQL_AUDIT_TASK,
    SQL_AGENT_PUT,
    SQL_AGENT_LIST,
    SQL_OVERRUN_RAISE,
    SQL_OVERRUN_LOWER,
    SQL_OVERRUN_SWEEP,
    SQL_OVERRUN_CLEAN,
    SQL_OVERRUN_DELETE,
    SQL_OVERRUN_LIST,
    SQL_OUTBOX_INSERT, /* messages; those set aside are in a table of their own */
    SQL_OUTBOX_LAST,
    SQL_OUTBOX_READ,
    SQL_OUTBOX_READ_TARGET,
    SQL_OUTBOX_DELETE,
    SQL_OUTBOX_HOLDS, /* which row has that number */
    SQL_OUTBOX_SETTLE,
    SQL_OUTBOX_SETTLED,
    SQL_OUTBOX_SETTLED_COUNT,
    SQL_OUTBOX_SETTLED_DELETE,
    SQL_OUTBOX_DELETE_ASIDE,
    SQL_OUTBOX_SET_ASIDE,
    SQL_OUTBOX_UPDATE,
    SQL_OUTBOX_UPDATE_SAME, /* which leaves the index of states alone */
    SQL_OUTBOX_TARGET,
    SQL_OUTBOX_TARGET_COUNT,
    SQL_OUTBOX_LIST,
    SQL_OUTBOX_LIST_TARGET,
    SQL_OUTBOX_LIST_TASK,
    SQL_OUTBOX_REVIVE,
    SQL_OUTBOX_CENSUS,
    SQL_STOPPED,
    SQL_ALERT_PUT,
    SQL_ALERT_TRIM,
    SQL_ALERT_LIST,
    SQL_ALERT_LIVE,
    SQL_ALERT_GET,
    SQL_ALERT_ACKNOWLEDGE,
    SQL_WORKFLOW_DESCRIBE,
    SQL_SUBMISSION_TAKE,
    SQL_SUBMISSION_COUNT, /* of those that were refused */
    SQL_SUBMISSION_DELETE,
    SQL_SUBMISSION_REFUSE,
    SQL_SUBMISSION_INSERT,
    SQL_SUBMISSION_REFUSED,
    SQL_SUBMISSION_REFUSED_BRIEF,
    SQL_SUBMISSION_WAITING,
    SQL_SUBMISSION_RETRY,
    SQL_SUBMISSION_DROP,
    SQL_NOTICE_READ,
    SQL_NOTICE_REFUSED,
    SQL_NOTICE_ANY,
    SQL_NOTICE_TOLD,
    SQL_NOTICE_DELETE,
    SQL_NOTICE_REFUSE,
    SQL_NOTICE_INSERT,
    SQL_DATA_VERSION,
    SQL_OPERATION_PUT,
    SQL_OPERATION_UPDATE,
    SQL_OPERATION_LIST,
    SQL_OPERATION_OPEN,
    SQL_OPERATION_GET,
    SQL_SCHEDULE_PUT,
    SQL_SCHEDULE_UPDATE,
    SQL_SCHEDULE_DUE,
    SQL_SCHEDULE_WAITS,
    SQL_SCHEDULE_NEXT,
    SQL_SCHEDULE_WAIT_COUNT,
    SQL_SCHEDULE_LIST,
    SQL_SCHEDULE_GET,
    SQL_SCHEDULE_GAPS,
    SQL_SCHEDULE_DELETE,
    SQL_SCHEDULE_VERSION_PUT,
    SQL_SCHEDULE_VERSION_GET,
    SQL_SCHEDULE_VERSIONS_DELETE,
    SQL_LOCK_KEY,  /* there is a row for the lock from now on ... */
    SQL_LOCK_LOOK, /* ... and a task waits for it */
    SQL_LOCK_RAISE,
    SQL_LOCK_LOWER,
    SQL_LOCK_SEEN,
    SQL_LOCK_LATER,
    SQL_LOCK_DELETE,
    SQL_LOCK_HOLD,
    SQL_LOCK_LEAVE,
    SQL_LOCK_FIRST,
    SQL_LOCK_SINCE,
    SQL_LOCK_REPLACES,
    SQL_LOCK_REPLACED,
    SQL_LOCK_REPLACE,
    SQL_LOCK_FORGET,
    SQL_LOCKS_LOOK,
    SQL_LOCKS_LIST,
    SQL_LOCK_LIST,
    SQL_COUNT,
};

/* Those that write a whole row of a task: row.c binds them. */
enum { SQL_TASK_WRITES = SQL_TASK_WRITES_END - SQL_INSERT };

const char *sql_text(enum sql which);

/* A connection. Statements are prepared when they are first used. */
struct db {
    sqlite3 *handle;
    sqlite3_stmt *stmts[SQL_COUNT];
    /* Which parameter a column of a task is in a statement that writes one; 0: none. */
    unsigned char task_params[SQL_TASK_WRITES][TASK_COLUMN_COUNT];
};

/* The file that a name refers to. */
struct file_id {
    dev_t dev;
    ino_t ino; /* 0: none */
};

/* A copy of the store in the making: DIR/backup.part. */
struct copy {
    sqlite3_backup *handle; /* NULL: none is made */
    struct db to;
    int fd;            /* of the same file */
    bool holds;        /* applications wait until it is whole */
    bool lost;         /* the store was opened again meanwhile, and it ended by that */
    int64_t done;      /* pages, at the last step */
    unsigned restarts; /* how often that became less: by transactions that were undone */
};

struct sqlite_store {
    struct store base;
    char *dir, *path, *wal_path; /* the folder, the files in it */
    struct file_id file;         /* intact.db as it was first opened: no other one will do */
    struct file_id wal;          /* intact.db-wal of the open connections */
    int lock_fd;
    int file_fd; /* of intact.db, with a lock of our own; closed after SQLite's */
    struct db writer, reader;
    atomic_bool broken; /* open both connections again before the next use */
    int wal_frames;     /* in the WAL and not known to be in the file */
    int checkpoint_at;  /* so many are worth the next try */
    int64_t quiet_at;   /* steady: from then on any number is, if nothing is written until then */
    bool wrote;         /* since the last look whether the time is to be marked */
    int64_t now;        /* the server's, as last given; 0: not yet */
    int64_t marked_at;  /* the time in the lock file */
    int64_t used_until;
    uint64_t boot;
    unsigned char secret[SECRET_SIZE];
    char installation[UUID_SIZE];
    struct copy copy;     /* the backup that is being made */
    int64_t message_seq;  /* of the last message; 0: none was there at the start */
    int watch_fd;         /* reports writes to the WAL; -1: not open */
    int64_t busy_since;   /* steady: others keep us from writing since then; 0: they do not */
    int64_t waits_until;  /* steady: for them, at the call at hand */
    bool told_of_waiting; /* at the start, once */
    bool lost_wal;        /* the connections are to be closed because its companions were lost */
    int lost_shm_fd;      /* of the -shm that others may still have open; -1: none */
    int64_t data_version; /* as the writer last saw it: it moves when others commit */
    /* The reader on another thread; NULL: none. It comes and goes while our own thread works. */
    pthread_mutex_t reading_lock;
    struct sqlite_reading *reading; /* under the lock */
};

static inline struct sqlite_store *sqlite_store_of(struct store *s)
{
    return CONTAINER_OF(s, struct sqlite_store, base);
}

/* folder.c. `first`: the file may be made. */
enum err folder_lock(struct sqlite_store *s, struct error *e) MUST_USE;
enum err folder_file(struct sqlite_store *s, bool first, struct error *e) MUST_USE;
/* When the folder was last used, before anything in it is changed by us. */
void folder_used(struct sqlite_store *s);
void folder_mark_time(struct sqlite_store *s);
/* Whether the names still refer to the files that we have open. PLACE_UNKNOWN: *e has the
 * reason. */
enum place { PLACE_KEPT, PLACE_LOST, PLACE_UNKNOWN };
enum place folder_place(struct sqlite_store *s, const char *path, const struct file_id *id,
                        struct error *e) MUST_USE;
enum err folder_lost(struct sqlite_store *s, struct error *e);         /* intact.db */
enum err folder_wal(struct sqlite_store *s, struct error *e) MUST_USE; /* remembers it */
/* Removes what a backup or a restore that was cut short has left. */
void folder_sweep(struct sqlite_store *s);
/* `what` failed with errno, at DIR/name; name may be NULL. */
enum err folder_failed(const char *dir, struct error *e, const char *what, const char *name);
bool folder_sync(const char *path); /* makes the names in it durable */
bool outside_fails(void);           /* a fault(), with errno */
/* Takes the lock of intact.db, open at `fd`, which must stay open for it. */
enum err folder_file_lock(struct sqlite_store *s, int fd, struct error *e);
/* Takes away the second name that a restore which was cut short gave to the store. */
bool folder_drop_aside(struct sqlite_store *s, const struct stat *file);
/* Gives a file that root made to the folder's owner, whose server could not use it otherwise.
 * `name` is in the folder; links are not followed. False: errno says why. */
bool folder_give(const char *dir, const char *name);

/* identity.c */
int identity_write(struct db *d, const char *path) MUST_USE; /* `path` is the file of `d` */
int identity_is_kept(struct db *d, const char *path, bool *ret) MUST_USE;
/* The file goes on as a store of its own. The number of its next start is one that the original,
 * which was perhaps started since, does not have. */
int identity_renew(struct db *d, const char *path, int64_t version) MUST_USE;
enum err identity_check(struct sqlite_store *s, struct error *e) MUST_USE; /* ERR_COPIED */

/* schema.c: the version of the schema that this program knows. */
extern const int schema_version;
/* On the writer. `first`: a file without a schema may get one. */
enum err schema_check(struct sqlite_store *s, bool first, struct error *e) MUST_USE;
enum err schema_secret(struct sqlite_store *s, struct error *e) MUST_USE;
int schema_secret_make(struct db *d) MUST_USE; /* replaces the one that is there */
/* Reads the id of this installation, and makes one where the store has none yet. */
enum err schema_installation(struct sqlite_store *s, struct error *e) MUST_USE;
enum err schema_boot(struct sqlite_store *s, struct error *e) MUST_USE;

/* db.c */
int db_open(struct db *d, const char *path, int flags) MUST_USE;
void db_close(struct db *d);
int db_exec(struct db *d, const char *sql) MUST_USE;
int db_number(struct db *d, const char *sql, int64_t *ret) MUST_USE; /* of one row */

/* A statement ready to be bound. CLEANUP(query_end) ends its use. */
int db_query(struct db *d, enum sql which, sqlite3_stmt **ret) MUST_USE;
int query_step(sqlite3_stmt *q) MUST_USE; /* SQLITE_ROW, SQLITE_DONE, or what went wrong */
int query_run(sqlite3_stmt *q) MUST_USE;  /* a statement without rows: SQLITE_OK, or ... */
void query_end(sqlite3_stmt **q);

/* Binding fails only if our own statement is wrong, or without memory. */
void bind_text(sqlite3_stmt *q, int i, struct slice s);
void bind_number(sqlite3_stmt *q, int i, int64_t v);
void bind_time(sqlite3_stmt *q, int i, int64_t at);
struct slice query_text(sqlite3_stmt *q, int col); /* valid until the next step */

/* Opens the connections again if an earlier failure asks for it. Fails if intact.db is not where it
 * was. */
enum err store_ready(struct sqlite_store *s, struct error *e) MUST_USE;
/* The same, before something is written. */
enum err store_ready_to_write(struct sqlite_store *s, struct error *e) MUST_USE;
/* After a commit: it is durable if a new start would find it. If not: ERR_UNKNOWN. */
enum err store_committed(struct sqlite_store *s, struct error *e) MUST_USE;

/* Sets *e to the failure `rc` of `what`, and returns its code. */
enum err store_failed(struct sqlite_store *s, int rc, struct error *e, const char *what);
const char *errno_advice(int code); /* what to do about it; NULL: that depends */
enum err rc_err(int rc);
enum err rc_err_now(int rc); /* right after the call: errno knows more than SQLite of some */

/* Rolls back the open transaction, if any. */
void db_rollback(struct db *d);

/* COMMIT. On failure *ret_unknown says whether it may have become durable nevertheless. */
int db_commit(struct db *d, bool *ret_unknown) MUST_USE;

/* row.c */
/* The parameters of a prepared statement that writes a task. */
void row_params(struct db *d, enum sql which);
/* Binds the columns that the statement has, which db_query has given out. */
void row_bind(struct db *d, enum sql which, const struct task_row *row);
int row_read(sqlite3_stmt *q, struct arena *a, struct task_row *ret) MUST_USE;
int row_read_payloads(struct db *d, struct arena *a, struct task_row *row) MUST_USE;
int row_read_groups(struct db *d, struct arena *a, struct task_row *row) MUST_USE;
/* Those of a task, by their numbers; what is not there is left out. */
int payloads_read(struct db *d, struct arena *a, int64_t seq, const uint32_t *numbers, size_t count,
                  struct payload **ret, size_t *ret_count) MUST_USE;

/* Rows in the making. */
struct rows {
    struct task_row *rows;
    size_t count, cap;
};
struct task_row *rows_add(struct rows *r, struct arena *a);
/* Copies at most `limit` rows; the statement gives one more if there are more. */
int rows_read(sqlite3_stmt *q, struct arena *a, size_t limit, struct row_page *ret) MUST_USE;

/* commit.c, claim.c, read.c, workflow.c */
enum err sqlite_commit(struct store *s, struct batch *b, struct arena *a, struct error *e);
enum err sqlite_probe(struct store *s, struct error *e);
int waits_delete(struct db *d, struct slice id) MUST_USE; /* of a task that waits for several */
int sqlite_claim(struct sqlite_store *s, struct claim *c, struct arena *a) MUST_USE;
/* Takes one row, and reads its payloads. */
int claim_take(struct db *d, const struct claim *c, struct arena *a, struct task_row *row) MUST_USE;

/* item.c */
int items_put(struct db *d, const struct task_row *row) MUST_USE; /* those of a change */
enum err sqlite_items_read(struct store *s, struct item_read *r, struct arena *a, struct error *e);
enum err sqlite_items_outputs(struct store *s, struct item_outputs *o, struct arena *a,
                              struct error *e);

/* lock.c */
/* What a change that was made does to the lock of its task. SQLITE_NOTFOUND: there is no room, and
 * c->lock_holder has it. */
int lock_change(struct db *d, struct change *c, struct arena *a) MUST_USE;
int lock_claim(struct db *d, struct claim *c, struct arena *a) MUST_USE;
enum err sqlite_lock_list(struct store *s, const struct lock_query *q, struct arena *a,
                          struct lock_page *ret, struct error *e);
enum err sqlite_lock_held(struct store *s, struct slice lock, struct arena *a,
                          struct lock_held *ret, struct error *e);
enum err sqlite_glance(struct store *s, const struct slice *ids, size_t count, struct arena *a,
                       struct glance *ret, struct error *e);
enum err sqlite_get(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e);
enum err sqlite_overdue(struct store *s, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e);
/* reading.c */
struct store *sqlite_reading_new(struct store *s);
/* False: a call of it is at work; if it is asked for, there will be a pause after that. True: none
 * begins until it may go on. */
bool reading_pause(struct sqlite_store *of, bool ask) MUST_USE;
void reading_go_on(struct sqlite_store *of);
/* The call at work is broken off and the connection closed; none is made until it may resume. */
void reading_halt(struct sqlite_store *of);
void reading_resume(struct sqlite_store *of);
/* list.c */
enum err sqlite_list(struct store *s, const struct list_query *q, struct arena *a,
                     struct row_page *ret, struct error *e);
enum err sqlite_workflow_put(struct store *s, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e);
enum err sqlite_workflow_describe(struct store *s, const struct workflow_inputs *list, size_t count,
                                  struct error *e);
enum err sqlite_workflow_get(struct store *s, struct slice name, int64_t version, struct arena *a,
                             struct workflow_row *ret, struct error *e);
enum err sqlite_workflow_list(struct store *s, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count, struct error *e);

/* census.c */
enum err sqlite_census(struct store *s, int64_t now, size_t most, struct arena *a,
                       struct census *ret, struct error *e);
enum err sqlite_owners(struct store *s, struct owners_part *p, struct arena *a, struct error *e);

/* retire.c */
enum err sqlite_retire_look(struct store *s, struct retire_look *r, struct arena *a,
                            struct error *e);
enum err sqlite_retire(struct store *s, struct retire *r, struct error *e);
enum err sqlite_reserved(struct store *s, struct slice id, struct arena *a, struct reservation *ret,
                         struct error *e);
enum err sqlite_reserved_sweep(struct store *s, int64_t now, size_t limit, size_t *ret_count,
                               struct error *e);

/* shrink.c */
enum err sqlite_shrink(struct store *s, struct shrink *k, struct error *e);

/* access.c */
int audit_insert(struct db *d, const struct audit *audit) MUST_USE; /* NULL: nothing */
int audit_read(struct db *d, const struct audit_query *aq, struct arena *a,
               struct audit_page *p) MUST_USE; /* adds to an empty page */
enum err sqlite_token_put(struct store *s, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e);
enum err sqlite_token_change(struct store *s, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e);
enum err sqlite_token_delete(struct store *s, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e);
enum err sqlite_token_list(struct store *s, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e);
enum err sqlite_audit_list(struct store *s, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e);
enum err sqlite_audit_put(struct store *s, const struct audit *audit, struct error *e);
void bind_hash(sqlite3_stmt *q, int at, const unsigned char hash[TOKEN_HASH_SIZE]);
/* False, and nothing is written, unless it is as long as a hash. */
bool query_hash(sqlite3_stmt *q, int col, unsigned char ret[TOKEN_HASH_SIZE]);

/* session.c */
enum err sqlite_session_put(struct store *s, const struct session_row *row,
                            const unsigned char *code, const struct audit *audit, struct error *e);
enum err sqlite_session_delete(struct store *s, struct slice id, const struct audit *audit,
                               struct error *e);
enum err sqlite_session_list(struct store *s, struct arena *a, struct session_row **ret,
                             size_t *ret_count, struct error *e);
/* The end of a transaction of `rc`: its outcome and story. */
enum err transaction_end(struct sqlite_store *s, int rc, bool unknown, struct error *e,
                         const char *what);

/* overrun.c */
int overrun_delete(struct db *d, struct slice task); /* in the transaction that there is */
enum err sqlite_overrun_count(struct store *s, const struct overrun_count *c, struct error *e);
enum err sqlite_overrun_list(struct store *s, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e);

/* agent.c */
enum err sqlite_agent_put(struct store *s, const struct agent_change *c, const struct audit *audit,
                          struct error *e);
enum err sqlite_agent_since(struct store *s, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e);

/* bundle.c: messages that were not set aside. */
/* Inserts the messages of the changes that were made. */
int messages_begin(struct sqlite_store *s) MUST_USE;
int messages_insert(struct sqlite_store *s, struct batch *b, struct arena *a) MUST_USE;
struct bundle_query {
    int64_t after_seq;
    struct slice target, task; /* NONE: any */
    size_t limit, bytes_max;   /* a page ends behind the message with which it becomes as large */
};
int bundles_read(struct db *d, const struct bundle_query *want, struct arena *a,
                 struct message_page *ret) MUST_USE;
/* They were delivered, or set aside. */
int bundles_settle(struct db *d, int64_t from, int64_t to) MUST_USE;

/* outbox.c */
enum err sqlite_outbox_read(struct store *s, struct outbox_read *r, struct arena *a,
                            struct error *e);
enum err sqlite_outbox_settle(struct store *s, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e);
enum err sqlite_outbox_targets(struct store *s, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e);
enum err sqlite_outbox_list(struct store *s, const struct outbox_query *q, struct arena *a,
                            struct message_page *ret, struct error *e);
enum err sqlite_outbox_do(struct store *s, struct outbox_verb *v, struct error *e);
enum err sqlite_outbox_census(struct store *s, size_t most, struct outbox_census *ret,
                              struct error *e);

/* alert.c */
enum err sqlite_stopped(struct store *s, int64_t after_ended_at, int64_t after_seq, size_t limit,
                        struct arena *a, struct stopped_page *ret, struct error *e);
enum err sqlite_alert_put(struct store *s, const struct alert_row *row, struct error *e);
enum err sqlite_alert_list(struct store *s, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e);
enum err sqlite_alert_acknowledge(struct store *s, struct slice id, const struct audit *audit,
                                  struct error *e);

/* submission.c */
enum err sqlite_notices_read(struct store *s, struct notice_read *n, struct arena *a,
                             struct error *e);
enum err sqlite_notices_told(struct store *s, const struct slice *ids, size_t count,
                             int64_t *ret_at, struct error *e);
enum err sqlite_notices_refused(struct store *s, struct notice_read *n, struct arena *a,
                                struct error *e);
enum err sqlite_notices_settle(struct store *s, const struct notice_verdict *list, size_t count,
                               struct error *e);
enum err sqlite_notices_put(struct store *s, const struct notice_row *rows, size_t count,
                            struct error *e);
/* One that is to be decided. */
int notice_delete(struct db *d, int64_t seq, bool *ret_done) MUST_USE;
int notice_insert(struct db *d, const struct notice_row *row) MUST_USE;
enum err sqlite_submissions_take(struct store *s, struct submission_take *t, struct arena *a,
                                 struct error *e);
enum err sqlite_submissions_settle(struct store *s, const struct submission_verdict *list,
                                   size_t count, struct error *e);
enum err sqlite_submissions_put(struct store *s, const struct submission_row *rows, size_t count,
                                struct error *e);
enum err sqlite_submissions_list(struct store *s, const struct submission_query *q, struct arena *a,
                                 struct submission_page *ret, struct error *e);
enum err sqlite_submissions_verb(struct store *s, struct submission_verb *v, struct error *e);
int sqlite_watch(struct store *s);
void sqlite_watch_again(struct sqlite_store *s); /* the WAL may be another file now */
int submission_insert(struct db *d, const struct submission_row *row) MUST_USE;
/* One that waits; *ret_done: it was there. */
int submission_delete(struct db *d, int64_t seq, bool *ret_done) MUST_USE;

/* operation.c */
enum err sqlite_operation_put(struct store *s, const struct operation_row *row,
                              const struct audit *audit, struct error *e);
enum err sqlite_operation_list(struct store *s, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e);

/* schedule.c */
enum err sqlite_schedule_write(struct store *s, struct schedule_change *list, size_t count,
                               const struct fence *fence, struct error *e);
enum err sqlite_schedule_look(struct store *s, struct schedule_look *l, struct arena *a,
                              struct error *e);
enum err sqlite_schedule_list(struct store *s, const struct schedule_query *q, struct arena *a,
                              struct schedule_page *ret, struct error *e);
enum err sqlite_schedule_version(struct store *s, struct slice name, int64_t version,
                                 struct arena *a, struct schedule_version_row *ret,
                                 struct error *e);
enum err sqlite_schedule_remove(struct store *s, struct slice name, const struct audit *audit,
                                struct error *e);

/* sqlite.c */

/* others.c: applications that have the file open */
/* What they wrote has to be brought from the WAL into the file by us: finds out whether they did.
 */
int store_look_for_others(struct sqlite_store *s) MUST_USE;
void others_pause(int count); /* before the next check of whether they are done; `count`: how many
                               * pauses so far */
void others_wait_for(struct sqlite_store *s); /* the writer, from now on */
/* At the start, after that time of waiting for them: logs it, once. */
void others_tell_of_waiting(struct sqlite_store *s, int64_t waited_ms);
/* The process that keeps us from writing, for an error text; "": unknown. */
void others_tell(const struct sqlite_store *s, char *ret, size_t size);
/* Whether another process is about to commit. To be called while we do not write ourselves. */
bool others_write(const struct sqlite_store *s);
bool others_share_index(const struct sqlite_store *s); /* the -shm is the one that its name means */
/* After the -wal or the -shm was lost: no process may go on with the old ones. */
void others_before_close(struct sqlite_store *s);
enum err others_are_gone(struct sqlite_store *s, struct error *e) MUST_USE;
struct sqlite_store *sqlite_store_new(const char *dir); /* nothing is opened; close frees it */
void sqlite_store_free(struct sqlite_store *s);

/* backup.c */
enum err sqlite_backup_begin(struct store *s, const struct audit *audit, struct error *e);
enum err sqlite_backup_step(struct store *s, struct backup_step *b, struct error *e);
void sqlite_backup_end(struct store *s);
void backup_lose(struct sqlite_store *s); /* before the writer is closed */
/* Removes the WAL mark from a complete, closed copy. */
bool backup_settle(int fd) MUST_USE;

/* offline.c */
/* Is it ours, and of a version that we know? *ret_version is that. `name` is what people call it.
 */
enum err offline_version(struct db *d, const char *name, int64_t *ret_version,
                         struct error *e) MUST_USE;
enum err offline_integrity(struct db *d, const char *name, struct error *e) MUST_USE;
enum err offline_failed(int rc, const char *name, const char *what, struct error *e);

#endif
